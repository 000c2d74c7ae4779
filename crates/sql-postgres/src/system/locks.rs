//! `pg_locks`: locks that sessions of all SQL dialects hold or wait for.
//!
//! A session's transaction has a virtual id, of its connection and its number there, and an id once it has changed or locked a row. A transaction that waits for a row waits for its holder's id. The
//! first that waits for a row holds the lock of the tuple meanwhile, and those behind it wait for that lock. Rows are found by keys, so `page` and `tuple` are NULL.

use std::collections::HashMap;
use std::time::{Instant, SystemTime};

use datum::Result;
use engine::rows::{MapId, RowLock};
use query::catalog::schema_name::SchemaName;
use query::catalog::table::Table;
use query::catalog::table_lock::TableMode;
use query::exec::host::host;
use query::nodes::context::EvalContext;
use query::nodes::table_function::Give;
use query::session::advisory_locks::ListedLock;
use query::session::deadlock::{LockHolder, LockedObject, SessionWait};

use crate::batch::Row;
use crate::session::advisory::{LockTag, mode_name};
use crate::session::facts::micros_since_2000;
use crate::system::cells::{number, oid, text, truth};
use crate::system::oids;
use crate::system::view::Shown;
use crate::system::wanted::Wanted;
use crate::value::Value;

/// The places of columns.
mod at {
    pub const LOCK_TYPE: usize = 0;
    pub const DATABASE: usize = 1;
    pub const RELATION: usize = 2;
    pub const VIRTUAL_ID: usize = 5;
    pub const TRANSACTION: usize = 6;
    pub const CLASS: usize = 7;
    pub const OBJECT: usize = 8;
    pub const ARGUMENTS: usize = 9;
    pub const VIRTUAL_TRANSACTION: usize = 10;
    pub const PID: usize = 11;
    pub const MODE: usize = 12;
    pub const GRANTED: usize = 13;
    pub const FAST_PATH: usize = 14;
    pub const WAIT_START: usize = 15;
    pub const COUNT: usize = 16;
}

pub fn pg_locks(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    let instance = host(ctx).instance.clone();
    let holders = instance.lock_holders().all();
    let virtual_ids: HashMap<u64, String> =
        holders.iter().map(|holder| (holder.connection(), virtual_id(holder))).collect();
    for lock in instance.advisory_locks().list() {
        if let Some(row) = advisory_row(&lock, virtual_ids.get(&lock.session), &shown) {
            give(row, ctx)?;
        }
    }
    let waits: HashMap<u64, u64> = instance.engine().rows().lock_waits().into_iter().collect();
    let waiting_for: HashMap<u64, RowLock> =
        holders.iter().filter_map(|holder| Some((holder.activity().id()?, holder.activity().awaited()?.row))).collect();
    for holder in &holders {
        let mut rows = table_rows(holder, &shown);
        rows.extend(transaction_rows(holder, (&waits, &waiting_for), &shown));
        rows.into_iter().try_for_each(|row| give(row, ctx))?;
    }
    Ok(())
}

/// Returns the virtual id of the session's transaction.
fn virtual_id(holder: &LockHolder) -> String {
    let number = match holder.open().number() {
        (number, true) => number,
        (_, false) => 0,
    };
    format!("{}/{number}", holder.connection())
}

/// Returns a row of a session. `since`: it waits for the lock.
fn row_of(holder: &LockHolder, lock_type: &str, mode: &str, since: Option<SystemTime>) -> Row {
    let mut row = vec![Value::Null; at::COUNT];
    row[at::LOCK_TYPE] = text(lock_type);
    row[at::VIRTUAL_TRANSACTION] = text(virtual_id(holder));
    row[at::PID] = pid(holder.connection());
    row[at::MODE] = text(mode);
    row[at::GRANTED] = truth(since.is_none());
    row[at::FAST_PATH] = truth(false);
    row[at::WAIT_START] = since.map_or(Value::Null, |since| number(micros_since_2000(since)));
    row
}

fn pid(connection: u64) -> Value {
    i32::try_from(connection).map_or(Value::Null, |pid| number(pid.into()))
}

fn database_of(table: &Table, shown: &Shown) -> Value {
    let database = SchemaName::of_stored(&table.schema).map_or("", |name| name.database);
    oid(shown.snapshot.schemas.get(database).map_or(0, |schema| oids::of_object(schema.id)))
}

/// Returns the rows of a session's locks of tables.
fn table_rows(holder: &LockHolder, shown: &Shown) -> Vec<Row> {
    let row = |object: &LockedObject, mode: TableMode, since| {
        let LockedObject::Table(table) = object else { return None };
        let mut row = row_of(holder, "relation", table_mode_name(mode), since);
        row[at::DATABASE] = database_of(table, shown);
        row[at::RELATION] = oid(oids::of_object(table.id));
        Some(row)
    };
    let mut rows: Vec<Row> = holder.all_held().iter().filter_map(|(object, mode)| row(object, *mode, None)).collect();
    if let Some(SessionWait::Table { object, mode, since }) = holder.awaits() {
        rows.extend(row(&object, mode, Some(since)));
    }
    rows
}

/// Returns the rows of a session's transaction: its ids, and the row for which it waits. `waits` are the transactions that wait for others, and the rows for which they do.
fn transaction_rows(
    holder: &LockHolder,
    (waits, waiting_for): (&HashMap<u64, u64>, &HashMap<u64, RowLock>),
    shown: &Shown,
) -> Vec<Row> {
    let mut rows = Vec::new();
    if holder.open().number().1 {
        let mut row = row_of(holder, "virtualxid", "ExclusiveLock", None);
        row[at::VIRTUAL_ID] = row[at::VIRTUAL_TRANSACTION].clone();
        rows.push(row);
    }
    let Some(id) = holder.activity().id() else { return rows };
    let of_transaction = |id: u64, mode, since| {
        let mut row = row_of(holder, "transactionid", mode, since);
        row[at::TRANSACTION] = oid(id as u32);
        row
    };
    rows.push(of_transaction(id, "ExclusiveLock", None));
    let (Some(&other), Some(awaited)) = (waits.get(&id), holder.activity().awaited()) else { return rows };
    let since = SystemTime::now().checked_sub(Instant::now().saturating_duration_since(awaited.since));
    let since = since.unwrap_or(SystemTime::UNIX_EPOCH);
    let is_behind = waiting_for.get(&other).is_some_and(|row| row.map == awaited.row.map && row.key == awaited.row.key);
    let mut tuple = row_of(holder, "tuple", "ExclusiveLock", is_behind.then_some(since));
    if let Some(table) = table_of(awaited.row.map, shown) {
        tuple[at::DATABASE] = database_of(table, shown);
        tuple[at::RELATION] = oid(oids::of_object(table.id));
    }
    rows.push(tuple);
    if !is_behind {
        rows.push(of_transaction(other, "ShareLock", Some(since)));
    }
    rows
}

fn table_of(map: MapId, shown: &Shown) -> Option<&Table> {
    let mut tables = shown.snapshot.schemas.values().flat_map(|schema| schema.tables.values());
    tables.find(|table| table.maps().contains(&map)).map(|table| &**table)
}

fn table_mode_name(mode: TableMode) -> &'static str {
    match mode {
        TableMode::AccessShare => "AccessShareLock",
        TableMode::RowShare => "RowShareLock",
        TableMode::RowExclusive => "RowExclusiveLock",
        TableMode::ShareUpdateExclusive => "ShareUpdateExclusiveLock",
        TableMode::Share => "ShareLock",
        TableMode::ShareRowExclusive => "ShareRowExclusiveLock",
        TableMode::Exclusive => "ExclusiveLock",
        TableMode::AccessExclusive => "AccessExclusiveLock",
    }
}

fn advisory_row(lock: &ListedLock, virtual_id: Option<&String>, shown: &Shown) -> Option<Row> {
    let LockTag { database, class, object, arguments } = LockTag::of_name(&lock.name)?;
    let database = shown.snapshot.schemas.get(database).map_or(0, |schema| oids::of_object(schema.id));
    let mut row = vec![Value::Null; at::COUNT];
    row[at::LOCK_TYPE] = text("advisory");
    row[at::DATABASE] = oid(database);
    row[at::CLASS] = oid(class);
    row[at::OBJECT] = oid(object);
    row[at::ARGUMENTS] = number(arguments.into());
    row[at::VIRTUAL_TRANSACTION] = virtual_id.map_or(Value::Null, text);
    row[at::PID] = pid(lock.session);
    row[at::MODE] = text(mode_name(lock.mode));
    row[at::GRANTED] = truth(lock.waits_since.is_none());
    row[at::FAST_PATH] = truth(false);
    row[at::WAIT_START] = lock.waits_since.map_or(Value::Null, |since| number(micros_since_2000(since)));
    Some(row)
}
