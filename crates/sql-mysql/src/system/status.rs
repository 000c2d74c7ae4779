//! SHOW STATUS and its tables in performance_schema: session counters (`instance::count`) and the state of the server
//! and its engine. Only values that are counted have a row.

use crate::system::column::chars;
use crate::types::Type;
use datum::Result;

use crate::batch::Row;
use crate::instance::count::NAMES;
use crate::instance::database::Database;
use crate::instance::variables::{VARIABLES, Variable, find, shown, text_of};
use crate::system::text;
use crate::system::viewer::viewer;
use crate::value::Value;
use query::nodes::context::EvalContext;
use query::nodes::system_table::SystemRows::Computed;
use query::nodes::system_table::SystemTable;

const COLUMNS: &[(&str, Type)] = &[("VARIABLE_NAME", chars(64)), ("VARIABLE_VALUE", chars(1024))];

pub const TABLES: &[SystemTable] = &[
    SystemTable {
        schema: "performance_schema",
        name: "global_status",
        columns: COLUMNS,
        rows: Computed(|ctx| Ok(rows(ctx, true))),
    },
    SystemTable {
        schema: "performance_schema",
        name: "global_variables",
        columns: COLUMNS,
        rows: Computed(global_variables),
    },
    SystemTable {
        schema: "performance_schema",
        name: "persisted_variables",
        columns: COLUMNS,
        rows: Computed(persisted_variables),
    },
    SystemTable {
        schema: "performance_schema",
        name: "session_status",
        columns: COLUMNS,
        rows: Computed(|ctx| Ok(rows(ctx, false))),
    },
    SystemTable {
        schema: "performance_schema",
        name: "session_variables",
        columns: COLUMNS,
        rows: Computed(session_variables),
    },
];

/// Returns names and values in the order of the names. Some values are global even in the session's list.
pub fn rows(ctx: &mut EvalContext, global: bool) -> Vec<Row> {
    let host = viewer(ctx);
    let of_all = host.db.counted();
    let counted = if global { of_all.clone() } else { host.handle.counts.all() };
    let named = |name: &str| of_all[NAMES.iter().position(|known| *known == name).expect("a name of the table")];
    let mut found: Vec<(&str, u64)> = NAMES.iter().copied().zip(counted).collect();
    found.extend([
        ("Innodb_rows_deleted", named("Handler_delete")),
        ("Innodb_rows_inserted", named("Handler_write")),
        ("Innodb_rows_updated", named("Handler_update")),
        ("Queries", named("Questions")),
    ]);
    found.extend(of_server(&host.db));
    let mut rows: Vec<(&str, String)> = found.into_iter().map(|(name, number)| (name, number.to_string())).collect();
    if let Some(hooks) = host.db.hooks() {
        rows.extend((hooks.status)());
    }
    if !global {
        let shown = host.handle.shown();
        rows.extend(of_stream(shown.compression));
        let (version, cipher) = shown.sealing.unwrap_or_default();
        rows.extend([("Ssl_cipher", cipher.to_owned()), ("Ssl_version", version.to_owned())]);
    }
    rows.sort_by_key(|(name, _)| name.to_ascii_lowercase());
    rows.into_iter().map(|(name, value)| vec![text(name), text(value)]).collect()
}

/// Returns the compression settings of the session's connection.
fn of_stream(compression: Option<(&'static str, u8)>) -> [(&'static str, String); 3] {
    let (algorithm, level) = compression.unwrap_or_default();
    let word = if compression.is_some() { "ON" } else { "OFF" };
    [
        ("Compression", word.to_owned()),
        ("Compression_algorithm", algorithm.to_owned()),
        ("Compression_level", level.to_string()),
    ]
}

pub fn of_server(db: &Database) -> Vec<(&'static str, u64)> {
    const PAGE: u64 = 4096;
    let (connections, most) = db.connections();
    let sessions = db.sessions();
    let running = sessions.iter().filter(|handle| handle.shown().statement().is_some()).count();
    let pager = db.engine().pager();
    let (total, used, dirty) = pager.frame_use();
    vec![
        ("Connections", connections),
        ("Innodb_buffer_pool_bytes_data", used * PAGE),
        ("Innodb_buffer_pool_bytes_dirty", dirty * PAGE),
        ("Innodb_buffer_pool_pages_data", used),
        ("Innodb_buffer_pool_pages_dirty", dirty),
        ("Innodb_buffer_pool_pages_free", total.saturating_sub(used)),
        ("Innodb_buffer_pool_pages_total", total),
        ("Innodb_page_size", PAGE),
        ("Innodb_redo_log_checkpoint_lsn", pager.checkpoint_lsn()),
        ("Innodb_redo_log_current_lsn", pager.wal_head()),
        ("Max_used_connections", most),
        ("Threads_connected", sessions.len() as u64),
        ("Threads_running", running as u64),
        ("Uptime", db.opened.elapsed().as_secs()),
    ]
}

fn global_variables(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let globals = viewer(ctx).db.globals.lock();
    let row = |variable: &Variable| {
        let value = globals.get(variable.name).cloned().unwrap_or_else(|| variable.default());
        vec![text(variable.name), text(shown(variable, &value))]
    };
    Ok(VARIABLES.iter().map(row).collect())
}

/// Returns session variables as SHOW VARIABLES does.
fn session_variables(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let now = ctx.now;
    let host = viewer(ctx);
    let globals = host.db.globals.lock().clone();
    let row = |variable: &Variable| {
        let value = match (variable.may, variable.name) {
            (may, name) if may.is_of_server() => globals.get(name).cloned().unwrap_or_else(|| variable.default()),
            (_, "timestamp") if host.variables.number("timestamp") == 0 => Value::Double(now.0 as f64 / 1e6),
            _ => host.variables.get(variable),
        };
        vec![text(variable.name), text(shown(variable, &value))]
    };
    Ok(VARIABLES.iter().map(row).collect())
}

/// Returns the values of SET PERSIST.
fn persisted_variables(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let kept = viewer(ctx).db.persisted()?;
    let row = |(name, value): (String, Value)| {
        let value = find(&name).map_or_else(|_| text_of(&value), |variable| shown(variable, &value));
        vec![text(name), text(value)]
    };
    Ok(kept.into_iter().map(row).collect())
}
