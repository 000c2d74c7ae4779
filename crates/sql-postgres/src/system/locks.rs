//! `pg_locks`: locks that sessions hold or wait for.

use datum::Result;
use query::exec::host::host;
use query::nodes::context::EvalContext;
use query::nodes::table_function::Give;
use query::session::advisory_locks::ListedLock;

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
    advisory.iter().filter_map(|lock| advisory_row(lock, &shown)).try_for_each(|row| give(row, ctx))
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
