//! information_schema of views. Columns are shown as of CREATE VIEW, as in MySQL; DESCRIBE shows the current ones.

use std::sync::Arc;

use datum::Result;

use crate::batch::Row;
use crate::rights::{Privileges, Rights, Who};
use crate::system::text;
use crate::system::viewer::viewer;
use crate::value::Value;
use query::catalog::Snapshot;
use query::catalog::view::{CheckOption, View};
use query::nodes::context::EvalContext;

/// Returns the views that the session may see.
pub fn seen(ctx: &mut EvalContext) -> Vec<Arc<View>> {
    let snapshot = viewer(ctx).db.catalog().snapshot();
    let rights = viewer(ctx).rights.clone();
    let all = snapshot.schemas.values().flat_map(|schema| schema.views.values());
    all.filter(|view| rights.sees_table(&view.schema, &view.name)).cloned().collect()
}

pub fn views(ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let rights: Arc<Rights> = viewer(ctx).rights.clone();
    let db = viewer(ctx).db.clone();
    let accounts = db.engine().accounts();
    let snapshot = db.catalog().snapshot();
    let row = |view: Arc<View>| {
        let shows = rights.table(&view.schema, &view.name).has(Privileges::SHOW_VIEW);
        let check = match view.check {
            CheckOption::None => "NONE",
            CheckOption::Local => "LOCAL",
            CheckOption::Cascaded => "CASCADED",
        };
        let definer = Who::of(&view.definer, |name| accounts.get(name).is_some());
        vec![
            text("def"),
            text(&view.schema),
            text(&view.name),
            text(if shows { &view.text } else { "" }),
            text(check),
            text(if is_updatable(&snapshot, &view) { "YES" } else { "NO" }),
            text(definer.plain()),
            text(if view.invoker { "INVOKER" } else { "DEFINER" }),
            text(&view.charset),
            text(&view.collation),
        ]
    };
    Ok(seen(ctx).into_iter().map(row).collect())
}

/// Returns whether the view is updatable, given the current definitions.
fn is_updatable(snapshot: &Snapshot, view: &View) -> bool {
    let mut over = view.over.as_ref();
    for _ in 0..64 {
        let Some((schema, name)) = over else { return false };
        match snapshot.view(schema, name) {
            Some(below) => over = below.over.as_ref(),
            None => return snapshot.table(schema, name).is_ok(),
        }
    }
    false
}

/// Returns the views' rows of TABLES.
pub fn tables(ctx: &mut EvalContext) -> Vec<Row> {
    let row = |view: Arc<View>| {
        let mut row = vec![Value::Null; 21];
        row[0] = text("def");
        row[1] = text(&view.schema);
        row[2] = text(&view.name);
        row[3] = text("VIEW");
        row[20] = text("VIEW");
        row
    };
    seen(ctx).into_iter().map(row).collect()
}
