//! Transactions that are open and what they have locked: INNODB_TRX, data_locks, data_lock_waits.
//!
//! A look stops nobody. So rows may be of different moments, and what is not known is NULL. Of sessions those may be seen that the process list shows; a lock without one belongs to a
//! transaction of another door, which only PROCESS sees.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use engine::rows::{Held, Isolation, MapId, RowLock, Strength, Wanted};

use crate::catalog::table::{Part, Table};
use crate::error::{self, Result};
use crate::exec::host::host;
use crate::rights::Privileges;
use crate::scalar::functions::digest::sha1;
use crate::scalar::functions::encode::hex_text;
use crate::scalar::temporal::Timestamp;
use crate::scalar::{EvalContext, cast, convert, key};
use crate::session::{Handle, Row};
use crate::system::Holds::{self, DateTime, Number, Text};
use crate::system::schema::NAME;
use crate::system::tools::seen;
use crate::system::{SystemTable, text};
use crate::value::Value;

const LOCK_ID: Holds = Text(128);

pub const TABLES: &[SystemTable] = &[
    SystemTable {
        schema: "information_schema",
        name: "INNODB_TRX",
        columns: &[
            ("trx_id", Text(18)),
            ("trx_state", Text(13)),
            ("trx_started", DateTime),
            ("trx_requested_lock_id", Text(126)),
            ("trx_wait_started", DateTime),
            ("trx_weight", Number),
            ("trx_mysql_thread_id", Number),
            ("trx_query", Text(1024)),
            ("trx_operation_state", NAME),
            ("trx_tables_in_use", Number),
            ("trx_tables_locked", Number),
            ("trx_lock_structs", Number),
            ("trx_lock_memory_bytes", Number),
            ("trx_rows_locked", Number),
            ("trx_rows_modified", Number),
            ("trx_concurrency_tickets", Number),
            ("trx_isolation_level", Text(16)),
            ("trx_unique_checks", Number),
            ("trx_foreign_key_checks", Number),
            ("trx_last_foreign_key_error", Text(256)),
            ("trx_adaptive_hash_latched", Number),
            ("trx_adaptive_hash_timeout", Number),
            ("trx_is_read_only", Number),
            ("trx_autocommit_non_locking", Number),
            ("trx_schedule_weight", Number),
        ],
        rows: transactions,
    },
    SystemTable {
        schema: "performance_schema",
        name: "data_locks",
        columns: &[
            ("ENGINE", Text(32)),
            ("ENGINE_LOCK_ID", LOCK_ID),
            ("ENGINE_TRANSACTION_ID", Number),
            ("THREAD_ID", Number),
            ("EVENT_ID", Number),
            ("OBJECT_SCHEMA", NAME),
            ("OBJECT_NAME", NAME),
            ("PARTITION_NAME", NAME),
            ("SUBPARTITION_NAME", NAME),
            ("INDEX_NAME", NAME),
            ("OBJECT_INSTANCE_BEGIN", Number),
            ("LOCK_TYPE", Text(32)),
            ("LOCK_MODE", Text(32)),
            ("LOCK_STATUS", Text(32)),
            ("LOCK_DATA", Text(8192)),
        ],
        rows: data_locks,
    },
    SystemTable {
        schema: "performance_schema",
        name: "data_lock_waits",
        columns: &[
            ("ENGINE", Text(32)),
            ("REQUESTING_ENGINE_LOCK_ID", LOCK_ID),
            ("REQUESTING_ENGINE_TRANSACTION_ID", Number),
            ("REQUESTING_THREAD_ID", Number),
            ("REQUESTING_EVENT_ID", Number),
            ("REQUESTING_OBJECT_INSTANCE_BEGIN", Number),
            ("BLOCKING_ENGINE_LOCK_ID", LOCK_ID),
            ("BLOCKING_ENGINE_TRANSACTION_ID", Number),
            ("BLOCKING_THREAD_ID", Number),
            ("BLOCKING_EVENT_ID", Number),
            ("BLOCKING_OBJECT_INSTANCE_BEGIN", Number),
        ],
        rows: data_lock_waits,
    },
];

/// A transaction's number.
type Id = u64;

/// Transactions without a number, which have locked and changed nothing, are told by that of their session, far beyond all others, as InnoDB does it.
const NUMBERLESS: Id = 1 << 48;

/// A lock, had or waited for.
struct Lock {
    txn: Id,
    held: Held,
    is_granted: bool,
}

/// All that a look finds.
struct Look {
    sessions: Vec<Arc<Handle>>,
    locks: Vec<Lock>,
    /// Who waits, for what and for whom.
    waits: Vec<(Id, Wanted, Id)>,
    sees_all: bool,
}

impl Look {
    fn new(ctx: &mut EvalContext) -> Look {
        let sessions = seen(ctx);
        let host = host(ctx);
        let rows = host.db.engine().rows();
        let sees_all = host.rights.global.has(Privileges::PROCESS);
        let holders: HashMap<Id, Id> = rows.lock_waits().into_iter().collect();
        let wait = |handle: &Arc<Handle>| {
            let (id, wanted) = (handle.open.signs.id()?, handle.open.signs.wanted()?);
            Some((id, wanted, *holders.get(&id)?))
        };
        let waits: Vec<(Id, Wanted, Id)> = sessions.iter().filter_map(wait).collect();
        let had = rows.held_locks().into_iter().map(|(txn, held)| Lock { txn, held, is_granted: true });
        let mut look = Look { locks: had.collect(), sessions, waits, sees_all };
        look.add_waits();
        look
    }

    /// Locks that are waited for; and of rows that somebody has changed, and somebody else waits for, those of who has changed them.
    fn add_waits(&mut self) {
        for (txn, wanted, holder) in &self.waits {
            self.locks.push(Lock { txn: *txn, held: Held::Row(wanted.row.clone()), is_granted: false });
            let waits_too =
                self.waits.iter().any(|(other, its, _)| other == holder && is_same_row(&its.row, &wanted.row));
            let blocks = |lock: &Lock| lock.txn == *holder && lock.is_granted && lock.covers(&wanted.row);
            if !waits_too && !self.locks.iter().any(blocks) {
                let row = RowLock { strength: Strength::Exclusive, ..wanted.row.clone() };
                self.locks.push(Lock { txn: *holder, held: Held::Row(row), is_granted: true });
            }
        }
    }

    fn session(&self, txn: Id) -> Option<&Arc<Handle>> {
        let is_of = |handle: &&Arc<Handle>| handle.open.since().is_some() && handle.open.signs.id() == Some(txn);
        self.sessions.iter().find(is_of)
    }

    /// The session's thread is the session, as in `threads`.
    fn thread(&self, txn: Id) -> Value {
        self.session(txn).map_or(Value::Null, |handle| Value::UInt(handle.connection_id))
    }

    fn shows(&self, txn: Id) -> bool {
        self.sees_all || self.session(txn).is_some()
    }
}

fn is_same_row(a: &RowLock, b: &RowLock) -> bool {
    a.map == b.map && a.key == b.key
}

impl Lock {
    /// Does it stand against others at this row?
    fn covers(&self, row: &RowLock) -> bool {
        match &self.held {
            Held::Row(own) => is_same_row(own, row),
            Held::Rows { map, .. } => *map == row.map,
            Held::Range { map, from, to } => {
                *map == row.map && **from <= *row.key && to.as_ref().is_none_or(|to| *row.key < **to)
            }
        }
    }

    fn map(&self) -> MapId {
        match &self.held {
            Held::Row(row) => row.map,
            Held::Rows { map, .. } | Held::Range { map, .. } => *map,
        }
    }

    /// The same for the same lock at each look.
    fn id(&self) -> String {
        let (kind, key) = match &self.held {
            Held::Row(row) => ("row", &row.key[..]),
            Held::Rows { strength: Strength::Shared, .. } => ("shared", &[][..]),
            Held::Rows { .. } => ("rows", &[][..]),
            Held::Range { from, .. } => ("range", &from[..]),
        };
        // There is room for no more.
        let key = if key.len() > 32 { sha1(key) } else { key.to_vec() };
        let wish = if self.is_granted { "" } else { ":wanted" };
        format!("{}:{}:{kind}:{}{wish}", self.txn, self.map(), hex_text(&key, false))
    }

    /// How many rows. None: nobody has counted.
    fn rows(&self) -> Option<u64> {
        match &self.held {
            Held::Row(_) => Some(1),
            Held::Rows { count, .. } => *count,
            Held::Range { .. } => Some(0),
        }
    }
}

/// Where a map belongs: its table, and its index unless it has the rows.
fn owner(map: MapId, ctx: &mut EvalContext) -> Option<(Arc<Table>, Option<usize>)> {
    let snapshot = host(ctx).db.catalog().snapshot();
    let mut tables = snapshot.schemas.values().flat_map(|schema| schema.tables.values());
    tables.find_map(|table| {
        if table.map == map {
            return Some((table.clone(), None));
        }
        let at = table.indexes.iter().position(|index| index.map == map)?;
        Some((table.clone(), Some(at)))
    })
}

/// The values of a key, where it keeps them all. A row without a primary key is named by a number of its own.
fn shown_key(table: &Table, index: Option<usize>, bytes: &[u8], ctx: &mut EvalContext) -> Option<String> {
    let parts: &[Part] = match (index, &table.primary) {
        (Some(at), _) => &table.indexes[at].parts,
        (None, Some(parts)) => parts,
        (None, None) => return Some(format!("0x{}", hex_text(bytes, true))),
    };
    let (mut rest, mut words) = (bytes, Vec::new());
    for part in parts {
        let ty = &table.columns[part.column].ty;
        if part.prefix.is_some() || !key::is_kept(ty) {
            return None;
        }
        let (value, length) = key::decode(rest, ty, part.descending)?;
        rest = rest.get(length..)?;
        let word = match value {
            Value::Null => "NULL".to_owned(),
            value => convert::to_text(&cast::present(value, ty, ctx), ty).as_str().to_owned(),
        };
        words.push(word);
    }
    Some(words.join(", "))
}

fn level(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::ReadUncommitted => "READ UNCOMMITTED",
        Isolation::ReadCommitted => "READ COMMITTED",
        Isolation::RepeatableRead => "REPEATABLE READ",
        Isolation::Serializable => "SERIALIZABLE",
    }
}

fn moment(at: Instant, ctx: &EvalContext) -> Value {
    let then = Timestamp::now().0 - at.elapsed().as_micros() as i64;
    Value::DateTime(ctx.zone.local(Timestamp(then - then.rem_euclid(1_000_000))))
}

fn transactions(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let look = Look::new(ctx);
    if !look.sees_all {
        return Err(error::SPECIFIC_ACCESS_DENIED.with(&[&"PROCESS"]));
    }
    let (own, mut rows) = (host(ctx).handle.connection_id, Vec::new());
    for handle in &look.sessions {
        let Some(open) = handle.open.now(&handle.counts) else { continue };
        // The statement that asks is a transaction of its own, which has nothing to tell.
        if handle.connection_id == own && !open.is_lasting {
            continue;
        }
        let id = handle.open.signs.id();
        let locks: Vec<&Lock> = look.locks.iter().filter(|lock| Some(lock.txn) == id).collect();
        let granted = || locks.iter().filter(|lock| lock.is_granted);
        let wait = look.waits.iter().find(|(waiter, ..)| Some(*waiter) == id);
        let wanted = locks.iter().find(|lock| !lock.is_granted);
        let shown = handle.shown();
        let is_rolling_back = shown.state.as_deref().is_some_and(|state| state.starts_with("rolling back"));
        let state = match wait {
            Some(_) => "LOCK WAIT",
            None if is_rolling_back => "ROLLING BACK",
            None => "RUNNING",
        };
        let mut maps: Vec<Option<u64>> =
            granted().map(|lock| owner(lock.map(), ctx).map(|(table, _)| table.id)).collect();
        maps.sort_unstable();
        maps.dedup();
        let rows_locked: Option<u64> = granted().map(|lock| lock.rows()).sum();
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
            Value::UInt(maps.len() as u64),
            Value::UInt(locks.len() as u64),
            Value::Null,
            rows_locked.map_or(Value::Null, Value::UInt),
            Value::UInt(open.changes),
            Value::Null,
            text(level(open.isolation)),
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
    Ok(rows)
}

fn data_locks(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let look = Look::new(ctx);
    let mut rows = Vec::new();
    for lock in look.locks.iter().filter(|lock| look.shows(lock.txn)) {
        let owner = owner(lock.map(), ctx);
        let (schema, name, index) = match &owner {
            Some((table, None)) => {
                let index = if table.primary.is_some() { "PRIMARY" } else { "GEN_CLUST_INDEX" };
                (text(&table.schema), text(&table.name), text(index))
            }
            Some((table, Some(at))) => (text(&table.schema), text(&table.name), text(&table.indexes[*at].name)),
            None => (Value::Null, Value::Null, Value::Null),
        };
        let key = |bytes: &[u8], ctx: &mut EvalContext| {
            let (table, index) = owner.as_ref()?;
            shown_key(table, *index, bytes, ctx)
        };
        let (mode, data) = match &lock.held {
            Held::Row(row) => (mode(row.strength), key(&row.key, ctx)),
            Held::Rows { strength, .. } => (mode(*strength), None),
            Held::Range { to: None, .. } => ("X,GAP", Some("supremum pseudo-record".to_owned())),
            Held::Range { to: Some(to), .. } => ("X,GAP", key(to, ctx)),
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
            text(mode),
            text(if lock.is_granted { "GRANTED" } else { "WAITING" }),
            data.map_or(Value::Null, text),
        ]);
    }
    Ok(rows)
}

fn mode(strength: Strength) -> &'static str {
    match strength {
        Strength::Shared => "S,REC_NOT_GAP",
        Strength::Exclusive => "X,REC_NOT_GAP",
    }
}

fn data_lock_waits(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let look = Look::new(ctx);
    let mut rows = Vec::new();
    for (txn, wanted, holder) in &look.waits {
        let is_wish = |lock: &&Lock| lock.txn == *txn && !lock.is_granted;
        let stands = |lock: &&Lock| lock.txn == *holder && lock.covers(&wanted.row);
        let (Some(wish), Some(block)) = (look.locks.iter().find(is_wish), look.locks.iter().find(stands)) else {
            continue;
        };
        rows.push(vec![
            text("INNODB"),
            text(wish.id()),
            Value::UInt(*txn),
            look.thread(*txn),
            Value::Null,
            Value::Null,
            text(block.id()),
            Value::UInt(*holder),
            look.thread(*holder),
            Value::Null,
            Value::Null,
        ]);
    }
    Ok(rows)
}
