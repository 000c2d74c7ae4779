//! Open transactions and their locks: INNODB_TRX, data_locks, data_lock_waits, and innodb_lock_waits of `sys`.
//!
//! Recovered transactions that are being rolled back have no session and appear only in INNODB_TRX.
//!
//! Reading these tables blocks no transaction, so rows may be of different moments, and unknown values are NULL. A
//! session sees the sessions of its process list. A lock without a session belongs to a transaction of another door and
//! requires PROCESS.

use crate::system::column::{DATE_TIME, LONG_TEXT, NUMBER, TIME, chars};
use crate::types::Type;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use datum::Result;
use datum::key;
use engine::rows::{AwaitedLock, HeldLock, MapId, RollingBack, RowLock, Strength};

use crate::batch::Row;
use crate::error;
use crate::parse::lexical::quoted_name;
use crate::rights::Privileges;
use crate::scalar::functions::digest::sha1;
use crate::scalar::functions::encode::hex_text;
use crate::scalar::temporal::{Time, Timestamp};
use crate::scalar::{cast, convert};
use crate::session::session_tracking::level_words;
use crate::system::schema::NAME;
use crate::system::text;
use crate::system::tools::seen;
use crate::system::viewer::viewer;
use crate::value::Value;
use query::catalog::table::{Part, Table};
use query::nodes::context::EvalContext;
use query::nodes::system_table::SystemRows::Computed;
use query::nodes::system_table::SystemTable;
use query::session::registry::SessionHandle;

const LOCK_ID: Type = chars(128);

pub const TABLES: &[SystemTable] = &[
    SystemTable {
        schema: "information_schema",
        name: "INNODB_TRX",
        columns: &[
            ("trx_id", chars(18)),
            ("trx_state", chars(13)),
            ("trx_started", DATE_TIME),
            ("trx_requested_lock_id", chars(126)),
            ("trx_wait_started", DATE_TIME),
            ("trx_weight", NUMBER),
            ("trx_mysql_thread_id", NUMBER),
            ("trx_query", chars(1024)),
            ("trx_operation_state", NAME),
            ("trx_tables_in_use", NUMBER),
            ("trx_tables_locked", NUMBER),
            ("trx_lock_structs", NUMBER),
            ("trx_lock_memory_bytes", NUMBER),
            ("trx_rows_locked", NUMBER),
            ("trx_rows_modified", NUMBER),
            ("trx_concurrency_tickets", NUMBER),
            ("trx_isolation_level", chars(16)),
            ("trx_unique_checks", NUMBER),
            ("trx_foreign_key_checks", NUMBER),
            ("trx_last_foreign_key_error", chars(256)),
            ("trx_adaptive_hash_latched", NUMBER),
            ("trx_adaptive_hash_timeout", NUMBER),
            ("trx_is_read_only", NUMBER),
            ("trx_autocommit_non_locking", NUMBER),
            ("trx_schedule_weight", NUMBER),
        ],
        rows: Computed(transactions),
    },
    SystemTable {
        schema: "performance_schema",
        name: "data_locks",
        columns: &[
            ("ENGINE", chars(32)),
            ("ENGINE_LOCK_ID", LOCK_ID),
            ("ENGINE_TRANSACTION_ID", NUMBER),
            ("THREAD_ID", NUMBER),
            ("EVENT_ID", NUMBER),
            ("OBJECT_SCHEMA", NAME),
            ("OBJECT_NAME", NAME),
            ("PARTITION_NAME", NAME),
            ("SUBPARTITION_NAME", NAME),
            ("INDEX_NAME", NAME),
            ("OBJECT_INSTANCE_BEGIN", NUMBER),
            ("LOCK_TYPE", chars(32)),
            ("LOCK_MODE", chars(32)),
            ("LOCK_STATUS", chars(32)),
            ("LOCK_DATA", chars(8192)),
        ],
        rows: Computed(data_locks),
    },
    SystemTable {
        schema: "performance_schema",
        name: "data_lock_waits",
        columns: &[
            ("ENGINE", chars(32)),
            ("REQUESTING_ENGINE_LOCK_ID", LOCK_ID),
            ("REQUESTING_ENGINE_TRANSACTION_ID", NUMBER),
            ("REQUESTING_THREAD_ID", NUMBER),
            ("REQUESTING_EVENT_ID", NUMBER),
            ("REQUESTING_OBJECT_INSTANCE_BEGIN", NUMBER),
            ("BLOCKING_ENGINE_LOCK_ID", LOCK_ID),
            ("BLOCKING_ENGINE_TRANSACTION_ID", NUMBER),
            ("BLOCKING_THREAD_ID", NUMBER),
            ("BLOCKING_EVENT_ID", NUMBER),
            ("BLOCKING_OBJECT_INSTANCE_BEGIN", NUMBER),
        ],
        rows: Computed(data_lock_waits),
    },
    SystemTable {
        schema: "sys",
        name: "innodb_lock_waits",
        columns: &[
            ("wait_started", DATE_TIME),
            ("wait_age", TIME),
            ("wait_age_secs", NUMBER),
            ("locked_table", LONG_TEXT),
            ("locked_table_schema", NAME),
            ("locked_table_name", NAME),
            ("locked_table_partition", NAME),
            ("locked_table_subpartition", NAME),
            ("locked_index", NAME),
            ("locked_type", chars(32)),
            ("waiting_trx_id", NUMBER),
            ("waiting_trx_started", DATE_TIME),
            ("waiting_trx_age", TIME),
            ("waiting_trx_rows_locked", NUMBER),
            ("waiting_trx_rows_modified", NUMBER),
            ("waiting_pid", NUMBER),
            ("waiting_query", LONG_TEXT),
            ("waiting_lock_id", LOCK_ID),
            ("waiting_lock_mode", chars(32)),
            ("blocking_trx_id", NUMBER),
            ("blocking_pid", NUMBER),
            ("blocking_query", LONG_TEXT),
            ("blocking_lock_id", LOCK_ID),
            ("blocking_lock_mode", chars(32)),
            ("blocking_trx_started", DATE_TIME),
            ("blocking_trx_age", TIME),
            ("blocking_trx_rows_locked", NUMBER),
            ("blocking_trx_rows_modified", NUMBER),
            ("sql_kill_blocking_query", chars(32)),
            ("sql_kill_blocking_connection", chars(26)),
        ],
        rows: Computed(lock_waits),
    },
];

/// The number of columns of INNODB_TRX.
const TRANSACTION_COLUMNS: usize = TABLES[0].columns.len();

/// A transaction id.
type Id = u64;

/// The base of ids for transactions without one, which have locked and changed nothing: they are shown by their
/// session's number beyond all real ids, as in InnoDB.
const NUMBERLESS: Id = 1 << 48;

/// A lock, granted or waited for.
struct Lock {
    txn: Id,
    held: HeldLock,
    is_granted: bool,
}

/// One reading of sessions, locks and waits.
struct Look {
    sessions: Vec<Arc<dyn SessionHandle>>,
    locks: Vec<Lock>,
    /// Each wait: the waiting transaction, the lock, and its holder.
    waits: Vec<(Id, AwaitedLock, Id)>,
    sees_all: bool,
}

impl Look {
    fn new(ctx: &mut EvalContext) -> Look {
        let sessions = seen(ctx);
        let host = viewer(ctx);
        let rows = host.db.engine().rows();
        let sees_all = host.rights.global.has(Privileges::PROCESS);
        let holders: HashMap<Id, Id> = rows.lock_waits().into_iter().collect();
        let wait = |handle: &Arc<dyn SessionHandle>| {
            let (id, wanted) = (handle.open.activity.id()?, handle.open.activity.awaited()?);
            Some((id, wanted, *holders.get(&id)?))
        };
        let waits: Vec<(Id, AwaitedLock, Id)> = sessions.iter().filter_map(wait).collect();
        let had = rows.held_locks().into_iter().map(|(txn, held)| Lock { txn, held, is_granted: true });
        let mut look = Look { locks: had.collect(), sessions, waits, sees_all };
        look.add_waits();
        look
    }

    /// Adds the locks that are waited for, and the implicit row locks of their holders.
    fn add_waits(&mut self) {
        for (txn, wanted, holder) in &self.waits {
            self.locks.push(Lock { txn: *txn, held: HeldLock::Row(wanted.row.clone()), is_granted: false });
            let waits_too =
                self.waits.iter().any(|(other, its, _)| other == holder && is_same_row(&its.row, &wanted.row));
            let blocks = |lock: &Lock| lock.txn == *holder && lock.is_granted && lock.covers(&wanted.row);
            if !waits_too && !self.locks.iter().any(blocks) {
                let row = RowLock { strength: Strength::Exclusive, ..wanted.row.clone() };
                self.locks.push(Lock { txn: *holder, held: HeldLock::Row(row), is_granted: true });
            }
        }
    }

    fn session(&self, txn: Id) -> Option<&Arc<dyn SessionHandle>> {
        let is_of =
            |handle: &&Arc<dyn SessionHandle>| handle.open.since().is_some() && handle.open.activity.id() == Some(txn);
        self.sessions.iter().find(is_of)
    }

    /// Returns the session's number as its thread, as in `threads`.
    fn thread(&self, txn: Id) -> Value {
        self.session(txn).map_or(Value::Null, |handle| Value::UInt(handle.connection_id))
    }

    /// Returns when the transaction began and its age.
    fn started(&self, txn: Id, ctx: &EvalContext) -> [Value; 2] {
        let since = self.session(txn).and_then(|handle| handle.open.since());
        since.map_or([const { Value::Null }; 2], |since| [moment(since, ctx), age(since)])
    }

    /// Returns the numbers of rows locked and changed.
    fn rows_of(&self, txn: Id) -> [Value; 2] {
        let open = self.session(txn).and_then(|handle| handle.open.now(handle.changes()));
        [self.rows_locked(txn), open.map(|open| open.changes)].map(|count| count.map_or(Value::Null, Value::UInt))
    }

    /// Returns the statement that it runs.
    fn query(&self, txn: Id) -> Value {
        let shown = self.session(txn).map(|handle| handle.shown());
        shown.and_then(|shown| shown.statement().map(text)).unwrap_or_default()
    }

    /// Returns the number of rows locked. None: not counted.
    fn rows_locked(&self, txn: Id) -> Option<u64> {
        self.locks.iter().filter(|lock| lock.txn == txn && lock.is_granted).map(Lock::rows).sum()
    }

    /// Returns each wait with the requested lock and a lock that blocks it.
    fn pairs(&self) -> impl Iterator<Item = (&AwaitedLock, &Lock, &Lock)> {
        self.waits.iter().filter_map(|(txn, wanted, holder)| {
            let wish = self.locks.iter().find(|lock| lock.txn == *txn && !lock.is_granted)?;
            let block = self.locks.iter().find(|lock| lock.txn == *holder && lock.covers(&wanted.row))?;
            Some((wanted, wish, block))
        })
    }

    fn shows(&self, txn: Id) -> bool {
        self.sees_all || self.session(txn).is_some()
    }
}

fn is_same_row(a: &RowLock, b: &RowLock) -> bool {
    a.map == b.map && a.key == b.key
}

impl Lock {
    /// Returns whether the lock covers this row.
    fn covers(&self, row: &RowLock) -> bool {
        match &self.held {
            HeldLock::Row(own) => is_same_row(own, row),
            HeldLock::Rows { map, .. } => *map == row.map,
            HeldLock::Range { map, from, to } => {
                *map == row.map && **from <= *row.key && to.as_ref().is_none_or(|to| *row.key < **to)
            }
        }
    }

    fn mode(&self) -> &'static str {
        match &self.held {
            HeldLock::Range { .. } => "X,GAP",
            HeldLock::Row(RowLock { strength, .. }) | HeldLock::Rows { strength, .. } => match strength {
                // The weaker strengths are those of another dialect's transactions.
                Strength::KeyShared | Strength::Shared => "S,REC_NOT_GAP",
                Strength::NoKeyExclusive | Strength::Exclusive => "X,REC_NOT_GAP",
            },
        }
    }

    fn map(&self) -> MapId {
        match &self.held {
            HeldLock::Row(row) => row.map,
            HeldLock::Rows { map, .. } | HeldLock::Range { map, .. } => *map,
        }
    }

    /// Returns an id that is the same for the same lock at each reading.
    fn id(&self) -> String {
        let (kind, key) = match &self.held {
            HeldLock::Row(row) => ("row", &row.key[..]),
            HeldLock::Rows { strength, .. } => match strength {
                Strength::KeyShared => ("key-shared", &[][..]),
                Strength::Shared => ("shared", &[][..]),
                Strength::NoKeyExclusive => ("no-key", &[][..]),
                Strength::Exclusive => ("rows", &[][..]),
            },
            HeldLock::Range { from, .. } => ("range", &from[..]),
        };
        // The column's width is limited.
        let key = if key.len() > 32 { sha1(key) } else { key.to_vec() };
        let wish = if self.is_granted { "" } else { ":wanted" };
        format!("{}:{}:{kind}:{}{wish}", self.txn, self.map(), hex_text(&key, false))
    }

    /// Returns the number of rows. None: not counted.
    fn rows(&self) -> Option<u64> {
        match &self.held {
            HeldLock::Row(_) => Some(1),
            HeldLock::Rows { count, .. } => *count,
            HeldLock::Range { .. } => Some(0),
        }
    }
}

/// A table, and the index unless the map holds the rows.
type Owner = (Arc<Table>, Option<usize>);

/// Returns schema, table and index.
fn names((table, index): &Owner) -> [Value; 3] {
    let index = match (index, &table.primary) {
        (Some(at), _) => &*table.indexes[*at].name,
        (None, Some(_)) => "PRIMARY",
        (None, None) => "GEN_CLUST_INDEX",
    };
    [text(&table.schema), text(&table.name), text(index)]
}

/// Returns the table or index that owns the map.
fn owner(map: MapId, ctx: &mut EvalContext) -> Option<Owner> {
    let snapshot = viewer(ctx).db.catalog().snapshot();
    let mut tables = snapshot.schemas.values().flat_map(|schema| schema.tables.values());
    tables.find_map(|table| {
        if table.map == map {
            return Some((table.clone(), None));
        }
        let at = table.indexes.iter().position(|index| index.map == map)?;
        Some((table.clone(), Some(at)))
    })
}

/// Decodes a key if it stores its values in full. A row without a primary key is shown by its row id.
fn shown_key(table: &Table, index: Option<usize>, bytes: &[u8], ctx: &mut EvalContext) -> Option<String> {
    let parts: &[Part] = match (index, &table.primary) {
        (Some(at), _) => &table.indexes[at].parts,
        (None, Some(parts)) => parts,
        (None, None) => return Some(format!("0x{}", hex_text(bytes, true))),
    };
    let (mut rest, mut words) = (bytes, Vec::new());
    for part in parts {
        let ty = &table.columns[part.column].ty;
        if part.prefix.is_some() || !key::is_lossless(ty.storage) {
            return None;
        }
        let (value, length) = key::decode(rest, ty.storage, part.order)?;
        rest = rest.get(length..)?;
        let word = match value {
            Value::Null => "NULL".to_owned(),
            value => convert::to_text(&cast::present(value, ty, ctx), ty).as_str().to_owned(),
        };
        words.push(word);
    }
    Some(words.join(", "))
}

fn moment(at: Instant, ctx: &EvalContext) -> Value {
    let then = Timestamp::now().0 - at.elapsed().as_micros() as i64;
    Value::DateTime(ctx.zone.local(Timestamp(then - then.rem_euclid(1_000_000))))
}

fn age(since: Instant) -> Value {
    Value::Time(Time::from_micros(since.elapsed().as_secs() as i64 * 1_000_000))
}

fn transactions(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let look = Look::new(ctx);
    if !look.sees_all {
        return Err(error::SPECIFIC_ACCESS_DENIED.with(&[&"PROCESS"]).into());
    }
    let (own, mut rows) = (viewer(ctx).handle.connection_id, Vec::new());
    for handle in &look.sessions {
        let Some(open) = handle.open.now(handle.changes()) else { continue };
        // Skip this very statement, which is an autocommit transaction.
        if handle.connection_id == own && !open.is_lasting {
            continue;
        }
        let id = handle.open.activity.id();
        let locks: Vec<&Lock> = look.locks.iter().filter(|lock| Some(lock.txn) == id).collect();
        let granted = || locks.iter().filter(|lock| lock.is_granted);
        let rows_locked = id.map_or(Some(0), |id| look.rows_locked(id));
        let wait = look.waits.iter().find(|(waiter, ..)| Some(*waiter) == id);
        let wanted = locks.iter().find(|lock| !lock.is_granted);
        let shown = handle.shown();
        let is_rolling_back = shown.state.as_deref().is_some_and(|state| state.starts_with("rolling back"));
        let state = match wait {
            Some(_) => "LOCK WAIT",
            None if is_rolling_back => "ROLLING BACK",
            None => "RUNNING",
        };
        let mut tables: Vec<u64> =
            granted().filter_map(|lock| owner(lock.map(), ctx)).map(|(table, _)| table.id).collect();
        tables.sort_unstable();
        tables.dedup();
        rows.push(vec![
            text(id.unwrap_or(NUMBERLESS + handle.connection_id).to_string()),
            text(state),
            moment(open.since, ctx),
            wanted.map_or(Value::Null, |lock| text(lock.id())),
            wait.map_or(Value::Null, |(_, wanted, _)| moment(wanted.since, ctx)),
            Value::UInt(open.changes + locks.len() as u64),
            Value::UInt(handle.connection_id),
            shown.statement().map_or(Value::Null, text),
            shown.state.as_ref().map_or(Value::Null, text),
            Value::Null,
            Value::UInt(tables.len() as u64),
            Value::UInt(locks.len() as u64),
            Value::Null,
            rows_locked.map_or(Value::Null, Value::UInt),
            Value::UInt(open.changes),
            Value::Null,
            text(level_words(open.isolation)),
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
            Value::UInt(open.is_read_only.into()),
            Value::UInt((!open.is_lasting && id.is_none()).into()),
            Value::Null,
        ]);
    }
    rows.extend(viewer(ctx).db.engine().rows().rolling_back().into_iter().map(recovered));
    Ok(rows)
}

/// Returns the row of a recovered transaction, which has no session.
fn recovered(loser: RollingBack) -> Row {
    let left = Value::UInt(loser.changes - loser.done);
    let mut row = vec![Value::Null; TRANSACTION_COLUMNS];
    row[0] = text(loser.id.to_string());
    row[1] = text("ROLLING BACK");
    row[5] = left.clone();
    row[6] = Value::UInt(0);
    row[8] = text(format!("rolling back after a crash ({} of {} changes)", loser.done, loser.changes));
    row[14] = left;
    row
}

fn data_locks(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let look = Look::new(ctx);
    let mut rows = Vec::new();
    for lock in look.locks.iter().filter(|lock| look.shows(lock.txn)) {
        let owner = owner(lock.map(), ctx);
        let [schema, name, index] = owner.as_ref().map_or([const { Value::Null }; 3], names);
        let key = |bytes: &[u8], ctx: &mut EvalContext| {
            let (table, index) = owner.as_ref()?;
            shown_key(table, *index, bytes, ctx)
        };
        let data = match &lock.held {
            HeldLock::Row(row) => key(&row.key, ctx),
            HeldLock::Rows { .. } => None,
            HeldLock::Range { to: None, .. } => Some("supremum pseudo-record".to_owned()),
            HeldLock::Range { to: Some(to), .. } => key(to, ctx),
        };
        rows.push(vec![
            text("INNODB"),
            text(lock.id()),
            Value::UInt(lock.txn),
            look.thread(lock.txn),
            Value::Null,
            schema,
            name,
            Value::Null,
            Value::Null,
            index,
            Value::Null,
            text("RECORD"),
            text(lock.mode()),
            text(if lock.is_granted { "GRANTED" } else { "WAITING" }),
            data.map_or(Value::Null, text),
        ]);
    }
    Ok(rows)
}

fn data_lock_waits(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let look = Look::new(ctx);
    let row = |(_, wish, block): (&AwaitedLock, &Lock, &Lock)| {
        vec![
            text("INNODB"),
            text(wish.id()),
            Value::UInt(wish.txn),
            look.thread(wish.txn),
            Value::Null,
            Value::Null,
            text(block.id()),
            Value::UInt(block.txn),
            look.thread(block.txn),
            Value::Null,
            Value::Null,
        ]
    };
    Ok(look.pairs().map(row).collect())
}

/// Computes sys.innodb_lock_waits, which is a view over the tables above in MySQL.
fn lock_waits(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let (look, mut rows) = (Look::new(ctx), Vec::new());
    for (wanted, wish, block) in look.pairs() {
        let owner = owner(wish.map(), ctx);
        let [schema, name, index] = owner.as_ref().map_or([const { Value::Null }; 3], names);
        let full = |(table, _): &Owner| text(format!("{}.{}", quoted_name(&table.schema), quoted_name(&table.name)));
        let mut row = vec![
            moment(wanted.since, ctx),
            age(wanted.since),
            Value::UInt(wanted.since.elapsed().as_secs()),
            owner.as_ref().map_or(Value::Null, full),
            schema,
            name,
            Value::Null,
            Value::Null,
            index,
            text("RECORD"),
        ];
        let (started, rows_of) = (look.started(wish.txn, ctx), look.rows_of(wish.txn));
        row.push(Value::UInt(wish.txn));
        row.extend(started);
        row.extend(rows_of);
        row.extend([look.thread(wish.txn), look.query(wish.txn), text(wish.id()), text(wish.mode())]);
        row.extend([Value::UInt(block.txn), look.thread(block.txn), look.query(block.txn)]);
        row.extend([text(block.id()), text(block.mode())]);
        row.extend(look.started(block.txn, ctx));
        row.extend(look.rows_of(block.txn));
        let kill = |words: &str| look.session(block.txn).map(|one| text(format!("{words} {}", one.connection_id)));
        row.extend(["KILL QUERY", "KILL"].map(|words| kill(words).unwrap_or_default()));
        rows.push(row);
    }
    Ok(rows)
}
