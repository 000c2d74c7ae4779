//! `pg_stat_activity`: the sessions of this dialect with all that is known of them, and those of other doors with what the list of all sessions knows.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use datum::Result;
use query::catalog::schema_name::SchemaName;
use query::nodes::context::EvalContext;
use query::nodes::system_table::{SystemRows, SystemTable};
use query::session::registry::SessionHandle;

use crate::batch::Row;
use crate::instance::handle::{ActivityState, Handle, shown_text};
use crate::session::facts::{CursorFacts, FactsOf as _, micros_since_2000};
use crate::system::catalog::{number, oid, table, text, truth};
use crate::system::column::{BOOL, INT4, INT8, NAME, OID, TEXT, TIMESTAMPTZ};
use crate::system::oids;
use crate::system::view::Shown;
use crate::value::Value;

table!(
    PG_STAT_ACTIVITY,
    "pg_catalog",
    pg_stat_activity,
    [
        ("datid", OID),
        ("datname", NAME),
        ("pid", INT4),
        ("leader_pid", INT4),
        ("usesysid", OID),
        ("usename", NAME),
        ("application_name", TEXT),
        ("client_addr", TEXT),
        ("client_hostname", TEXT),
        ("client_port", INT4),
        ("backend_start", TIMESTAMPTZ),
        ("xact_start", TIMESTAMPTZ),
        ("query_start", TIMESTAMPTZ),
        ("state_change", TIMESTAMPTZ),
        ("wait_event_type", TEXT),
        ("wait_event", TEXT),
        ("state", TEXT),
        ("query_id", INT8),
        ("query", TEXT),
        ("backend_type", TEXT),
    ]
);
fn pg_stat_activity(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let Some(shown) = Shown::of(ctx) else { return Ok(Vec::new()) };
    let Some(db) = ctx.facts().db.clone() else { return Ok(Vec::new()) };
    let mut rows: Vec<Row> = db.sessions().iter().map(|handle| activity(handle, &shown)).collect();
    rows.extend(db.other_sessions().iter().map(|session| foreign_activity(session, &shown)));
    Ok(rows)
}

table!(
    PG_CURSORS,
    "pg_catalog",
    pg_cursors,
    [
        ("name", TEXT),
        ("statement", TEXT),
        ("is_holdable", BOOL),
        ("is_binary", BOOL),
        ("is_scrollable", BOOL),
        ("creation_time", TIMESTAMPTZ),
    ]
);
fn pg_cursors(ctx: &mut EvalContext) -> Result<Vec<Row>> {
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
    Ok(ctx.facts().cursors.iter().map(row).collect())
}

/// Returns the date of a moment.
fn moment_of(at: Instant) -> Value {
    SystemTime::now().checked_sub(at.elapsed()).map_or(Value::Null, |at| number(micros_since_2000(at)))
}

/// Returns the row of a session of this dialect.
fn activity(handle: &Handle, shown: &Shown) -> Row {
    let (seen, status) = (handle.shown(), handle.status());
    let at = |time: SystemTime| number(micros_since_2000(time));
    let database = seen.database.as_deref().unwrap_or_default();
    let datid = shown.snapshot.schemas.get(database).map_or(0, |schema| oids::of_object(schema.id));
    let wait_type = status.awaits.map(|event| if event == "transactionid" { "Lock" } else { "IO" });
    vec![
        oid(datid),
        text(database),
        number(handle.pid.into()),
        Value::Null,
        oid(oids::of_role(&seen.user)),
        text(&seen.user),
        text(&status.application),
        text(&seen.host),
        Value::Null,
        Value::Null,
        at(status.backend_start),
        status.transaction_start.map_or(Value::Null, at),
        at(status.query_start),
        at(status.state_change),
        wait_type.map_or(Value::Null, text),
        status.awaits.map_or(Value::Null, text),
        text(status.state.name()),
        Value::Null,
        text(seen.last_statement()),
        text("client backend"),
    ]
}

/// Returns the row of a session of another door. Its process id is that of its connection, and NULL where that is no int4.
fn foreign_activity(session: &Arc<dyn SessionHandle>, shown: &Shown) -> Row {
    let seen = session.shown();
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
        oid(oids::of_role(&seen.user)),
        text(&seen.user),
        text(application),
        text(&seen.host),
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
        text(shown_text(seen.last_statement())),
        text("client backend"),
    ]
}
