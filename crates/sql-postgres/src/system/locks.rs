//! `pg_locks`: locks that sessions hold or wait for.

use std::time::SystemTime;

use datum::Result;
use query::catalog::schema_name::SchemaName;
use query::catalog::table::Table;
use query::catalog::table_lock::TableMode;
use query::exec::host::host;
use query::nodes::context::EvalContext;
use query::nodes::table_function::Give;
use query::session::advisory_locks::ListedLock;
use query::session::deadlock::{LockHolder, TableRequest};

use crate::batch::Row;
use crate::session::advisory::{LockTag, mode_name};
use crate::session::facts::micros_since_2000;
use crate::system::cells::{number, oid, text, truth};
use crate::system::oids;
use crate::system::view::Shown;
use crate::system::wanted::Wanted;
use crate::value::Value;

pub fn pg_locks(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    let advisory = host(ctx).instance.advisory_locks().list();
    advisory.iter().filter_map(|lock| advisory_row(lock, &shown)).try_for_each(|row| give(row, ctx))?;
    let holders = host(ctx).instance.lock_holders().all();
    holders.iter().flat_map(|holder| table_rows(holder, &shown)).try_for_each(|row| give(row, ctx))
}

/// Returns the rows of a session's locks of tables.
fn table_rows(holder: &LockHolder, shown: &Shown) -> Vec<Row> {
    let (held, awaited) = holder.tables();
    let of = |table: &Table, mode, since| table_row(holder, table, (mode, since), shown);
    let shared = held.shared.iter().map(|table| of(table, "AccessShareLock", None));
    let modes = held.modes.iter().map(|(table, mode)| of(table, table_mode_name(*mode), None));
    let exclusive = held.exclusive.iter().map(|table| of(table, "AccessExclusiveLock", None));
    let awaited = awaited.map(|awaited| {
        let mode = match awaited.request {
            TableRequest::Shared => "AccessShareLock",
            TableRequest::Mode(mode) => table_mode_name(mode),
            TableRequest::Exclusive => "AccessExclusiveLock",
        };
        of(&awaited.table, mode, Some(awaited.since))
    });
    shared.chain(modes).chain(exclusive).chain(awaited).collect()
}

fn table_row(holder: &LockHolder, table: &Table, (mode, since): (&str, Option<SystemTime>), shown: &Shown) -> Row {
    let database = SchemaName::of_stored(&table.schema).map_or("", |name| name.database);
    let database = shown.snapshot.schemas.get(database).map_or(0, |schema| oids::of_object(schema.id));
    let mut row = vec![Value::Null; 16];
    row[0] = text("relation");
    row[1] = oid(database);
    row[2] = oid(oids::of_object(table.id));
    row[11] = i32::try_from(holder.connection()).map_or(Value::Null, |pid| number(pid.into()));
    row[12] = text(mode);
    row[13] = truth(since.is_none());
    row[14] = truth(false);
    row[15] = since.map_or(Value::Null, |since| number(micros_since_2000(since)));
    row
}

fn table_mode_name(mode: TableMode) -> &'static str {
    match mode {
        TableMode::RowShare => "RowShareLock",
        TableMode::RowExclusive => "RowExclusiveLock",
        TableMode::ShareUpdateExclusive => "ShareUpdateExclusiveLock",
        TableMode::Share => "ShareLock",
        TableMode::ShareRowExclusive => "ShareRowExclusiveLock",
        TableMode::Exclusive => "ExclusiveLock",
    }
}

fn advisory_row(lock: &ListedLock, shown: &Shown) -> Option<Row> {
    let LockTag { database, class, object, arguments } = LockTag::of_name(&lock.name)?;
    let database = shown.snapshot.schemas.get(database).map_or(0, |schema| oids::of_object(schema.id));
    Some(vec![
        text("advisory"),
        oid(database),
        Value::Null,
        Value::Null,
        Value::Null,
        Value::Null,
        Value::Null,
        oid(class),
        oid(object),
        number(arguments.into()),
        Value::Null,
        i32::try_from(lock.session).map_or(Value::Null, |pid| number(pid.into())),
        text(mode_name(lock.mode)),
        truth(lock.waits_since.is_none()),
        truth(false),
        lock.waits_since.map_or(Value::Null, |since| number(micros_since_2000(since))),
    ])
}
