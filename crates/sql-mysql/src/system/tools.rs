//! Tables that tools read: sessions (performance_schema), and empty tables of `mysql` and `sys`.

use crate::system::column::{LONG_TEXT, MOMENT, NUMBER, chars};
use crate::types::Type;
use std::sync::Arc;

use datum::Result;

use crate::batch::Row;
use crate::instance::variables::VERSION;
use crate::rights::Privileges;
use crate::system::schema::{NAME, nothing};
use crate::system::text;
use crate::system::viewer::viewer;
use crate::value::Value;
use query::nodes::context::EvalContext;
use query::nodes::system_table::SystemRows::Computed;
use query::nodes::system_table::SystemTable;
use query::session::registry::SessionHandle;

const ATTRIBUTES: &[(&str, Type)] =
    &[("PROCESSLIST_ID", NUMBER), ("ATTR_NAME", chars(32)), ("ATTR_VALUE", chars(1024)), ("ORDINAL_POSITION", NUMBER)];

pub const TABLES: &[SystemTable] = &[
    SystemTable {
        schema: "performance_schema",
        name: "session_account_connect_attrs",
        columns: ATTRIBUTES,
        rows: Computed(|ctx| Ok(attributes(ctx, false))),
    },
    SystemTable {
        schema: "performance_schema",
        name: "session_connect_attrs",
        columns: ATTRIBUTES,
        rows: Computed(|ctx| Ok(attributes(ctx, true))),
    },
    SystemTable {
        schema: "performance_schema",
        name: "threads",
        columns: &[
            ("THREAD_ID", NUMBER),
            ("NAME", chars(128)),
            ("TYPE", chars(10)),
            ("PROCESSLIST_ID", NUMBER),
            ("PROCESSLIST_USER", chars(32)),
            ("PROCESSLIST_HOST", chars(255)),
            ("PROCESSLIST_DB", NAME),
            ("PROCESSLIST_COMMAND", chars(16)),
            ("PROCESSLIST_TIME", NUMBER),
            ("PROCESSLIST_STATE", NAME),
            ("PROCESSLIST_INFO", LONG_TEXT),
            ("PARENT_THREAD_ID", NUMBER),
            ("ROLE", NAME),
            ("INSTRUMENTED", chars(3)),
            ("HISTORY", chars(3)),
            ("CONNECTION_TYPE", chars(16)),
            ("THREAD_OS_ID", NUMBER),
            ("RESOURCE_GROUP", NAME),
        ],
        rows: Computed(threads),
    },
    SystemTable {
        schema: "mysql",
        name: "func",
        columns: &[("name", NAME), ("ret", NUMBER), ("dl", chars(128)), ("type", chars(9))],
        rows: Computed(nothing),
    },
    SystemTable {
        schema: "mysql",
        name: "help_category",
        columns: &[("help_category_id", NUMBER), ("name", NAME), ("parent_category_id", NUMBER), ("url", LONG_TEXT)],
        rows: Computed(nothing),
    },
    SystemTable {
        schema: "mysql",
        name: "help_keyword",
        columns: &[("help_keyword_id", NUMBER), ("name", NAME)],
        rows: Computed(nothing),
    },
    SystemTable {
        schema: "mysql",
        name: "help_relation",
        columns: &[("help_topic_id", NUMBER), ("help_keyword_id", NUMBER)],
        rows: Computed(nothing),
    },
    SystemTable {
        schema: "mysql",
        name: "help_topic",
        columns: &[
            ("help_topic_id", NUMBER),
            ("name", NAME),
            ("help_category_id", NUMBER),
            ("description", LONG_TEXT),
            ("example", LONG_TEXT),
            ("url", LONG_TEXT),
        ],
        rows: Computed(nothing),
    },
    SystemTable {
        schema: "mysql",
        name: "procs_priv",
        columns: &[
            ("Host", chars(255)),
            ("Db", NAME),
            ("User", chars(32)),
            ("Routine_name", NAME),
            ("Routine_type", chars(9)),
            ("Grantor", chars(288)),
            ("Proc_priv", chars(64)),
            ("Timestamp", MOMENT),
        ],
        rows: Computed(nothing),
    },
    SystemTable {
        schema: "sys",
        name: "version",
        columns: &[("sys_version", chars(5)), ("mysql_version", NAME)],
        rows: Computed(|_| Ok(vec![vec![text("2.1.2"), text(VERSION)]])),
    },
];

/// Returns the sessions that may be seen: all with PROCESS, else those of the same account.
pub fn seen(ctx: &mut EvalContext) -> Vec<Arc<dyn SessionHandle>> {
    let host = viewer(ctx);
    let sees_all = host.rights.global.has(Privileges::PROCESS);
    let own = host.handle.shown().account;
    host.db.sessions().into_iter().filter(|handle| sees_all || handle.shown().account == own).collect()
}

/// Returns the connection attributes that clients sent.
fn attributes(ctx: &mut EvalContext, of_all: bool) -> Vec<Row> {
    let own = viewer(ctx).handle.shown().account;
    let handles = seen(ctx).into_iter().filter(|handle| of_all || handle.shown().account == own);
    let rows = handles.flat_map(|handle| {
        let row = |(nth, (name, value)): (usize, &(String, String))| {
            vec![Value::UInt(handle.connection_id), text(name), text(value), Value::UInt(nth as u64)]
        };
        handle.shown().attributes.iter().enumerate().map(row).collect::<Vec<Row>>()
    });
    rows.collect()
}

/// Returns a row for each session. Sessions have no thread of their own, so the columns about threads are NULL.
fn threads(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let row = |handle: Arc<dyn SessionHandle>| {
        let (id, shown) = (Value::UInt(handle.connection_id), handle.shown());
        let is_busy = shown.statement().is_some();
        vec![
            id.clone(),
            text("thread/sql/one_connection"),
            text("FOREGROUND"),
            id,
            text(&shown.user),
            text(&shown.host),
            shown.database.as_ref().map_or(Value::Null, text),
            text(if is_busy { "Query" } else { "Sleep" }),
            Value::UInt(shown.since.elapsed().as_secs()),
            shown.activity().map_or(Value::Null, text),
            shown.statement().map_or(Value::Null, text),
            Value::Null,
            Value::Null,
            text("NO"),
            text("NO"),
            Value::Null,
            Value::Null,
            Value::Null,
        ]
    };
    Ok(seen(ctx).into_iter().map(row).collect())
}
