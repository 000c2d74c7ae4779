//! `pg_stat_activity`: the sessions of this dialect with all that is known of them, and those of other doors with what the list of all sessions knows.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use datum::Result;
use query::catalog::schema_name::SchemaName;
use query::nodes::context::EvalContext;
use query::nodes::table_function::Give;
use query::session::deadlock::SessionWait;
use query::session::registry::SessionHandle;

use crate::batch::Row;
use crate::functions::network;
use crate::instance::handle::{ActivityState, Handle, shown_text};
use crate::rights::role::READ_ALL_STATS;
use crate::session::facts::{CursorFacts, FactsOf as _, micros_since_2000};
use crate::system::cells::{number, oid, text, truth};
use crate::system::oids;
use crate::system::view::Shown;
use crate::system::wanted::Wanted;
use crate::value::Value;

pub fn pg_stat_activity(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    let Some(db) = ctx.facts().db.clone() else { return Ok(()) };
    let holders = db.instance().lock_holders().all();
    let waits_for_table = holders.iter().filter(|holder| matches!(holder.awaits(), Some(SessionWait::Table { .. })));
    let waiting: Vec<u64> = waits_for_table.map(|holder| holder.connection()).collect();
    for handle in db.sessions() {
        give(activity(&handle, &waiting, &shown), ctx)?;
    }
    for session in db.other_sessions() {
        give(foreign_activity(&session, &shown), ctx)?;
    }
    Ok(())
}

pub fn pg_cursors(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let row = |(name, cursor): (&String, &CursorFacts)| {
        vec![
            text(name),
            text(&cursor.text),
            truth(cursor.is_holdable),
            truth(cursor.is_binary),
            truth(cursor.is_scrollable),
            number(cursor.created),
        ]
    };
    let rows: Vec<Row> = ctx.facts().cursors.iter().map(row).collect();
    rows.into_iter().try_for_each(|row| give(row, ctx))
}

/// Returns the date of a moment.
fn moment_of(at: Instant) -> Value {
    SystemTime::now().checked_sub(at.elapsed()).map_or(Value::Null, |at| number(micros_since_2000(at)))
}

/// The statement of a session whose role's rights the current one has not.
const HIDDEN: &str = "<insufficient privilege>";

/// Returns the row of a session of this dialect. `waiting` are the sessions that wait for locks of tables.
fn activity(handle: &Handle, waiting: &[u64], shown: &Shown) -> Row {
    let (seen, status) = (handle.shown(), handle.status());
    let awaits = status.awaits.or_else(|| waiting.contains(&handle.connection_id).then_some("relation"));
    let set = &shown.identity.set;
    let is_seen = set.has(handle.role()) || set.has(READ_ALL_STATS);
    let at = |time: SystemTime| number(micros_since_2000(time));
    let database = seen.database.as_deref().unwrap_or_default();
    let datid = shown.snapshot.schemas.get(database).map_or(0, |schema| oids::of_object(schema.id));
    let wait_type = awaits.map(|event| match event {
        "transactionid" | "advisory" | "relation" => "Lock",
        "PgSleep" => "Timeout",
        _ => "IO",
    });
    vec![
        oid(datid),
        text(database),
        number(handle.pid.into()),
        Value::Null,
        oid(handle.role()),
        text(&seen.user),
        text(&status.application),
        network::address_value(Some(&seen.host)),
        Value::Null,
        Value::Null,
        at(status.backend_start),
        status.transaction_start.map_or(Value::Null, at),
        at(status.query_start),
        at(status.state_change),
        wait_type.map_or(Value::Null, text),
        awaits.map_or(Value::Null, text),
        text(status.state.name()),
        Value::Null,
        Value::Null,
        Value::Null,
        text(if is_seen { seen.last_statement() } else { HIDDEN }),
        text("client backend"),
    ]
}

/// Returns the row of a session of another door. Its process id is that of its connection, and NULL where that is no int4.
fn foreign_activity(session: &Arc<dyn SessionHandle>, shown: &Shown) -> Row {
    let seen = session.shown();
    let is_seen = shown.identity.set.has(READ_ALL_STATS);
    let database = seen.database.as_deref().and_then(SchemaName::of_stored).map(|name| name.database);
    let datid = database.and_then(|name| shown.snapshot.schemas.get(name)).map(|schema| oids::of_object(schema.id));
    let application = seen.attributes.iter().find(|(name, _)| name == "program_name").map_or("", |(_, value)| value);
    let open = session.open.now(session.changes());
    let state = match (seen.statement(), &open) {
        (Some(_), _) => ActivityState::Active,
        (None, Some(_)) => ActivityState::IdleInTransaction,
        (None, None) => ActivityState::Idle,
    };
    vec![
        datid.map_or(Value::Null, oid),
        database.map_or(Value::Null, text),
        i32::try_from(session.connection_id).map_or(Value::Null, |pid| number(pid.into())),
        Value::Null,
        shown.facts().roles().named(&seen.user).map_or(Value::Null, |role| oid(role.oid)),
        text(&seen.user),
        text(application),
        network::address_value(Some(&seen.host)),
        Value::Null,
        Value::Null,
        Value::Null,
        open.map_or(Value::Null, |open| moment_of(open.since)),
        moment_of(seen.since),
        moment_of(seen.since),
        Value::Null,
        Value::Null,
        text(state.name()),
        Value::Null,
        Value::Null,
        Value::Null,
        text(if is_seen { shown_text(seen.last_statement()) } else { HIDDEN }),
        text("client backend"),
    ]
}
