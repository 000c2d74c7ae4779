//! The deparser: definitions as SQL, letter by letter as PostgreSQL 16 writes them (`ruleutils.c`).
//!
//! ```text
//!   text of a definition ─► syntax tree ─► analyse: SqlNode, Query ─► print
//!                                          names and types known    by the search_path of the reader
//! ```
//!
//! A definition is kept as it was written, with the `search_path` of that time. `analyse` resolves names, operators and casts by the rules of the binder; `print` shows a cast where PostgreSQL would.

mod analyse;
mod coerce;
mod from;
mod function;
mod json;
mod node;
mod print;
mod query_block;
mod scope;
mod text;

use std::sync::Arc;

use query::catalog::table::Table;
use query::catalog::view::View;
use query::nodes::context::EvalContext;
use syntax::postgres::tree::{self, Statement};

use crate::bind::{BindSession, Binder, Environment};
use crate::error::{PgError, Result, state};
use crate::functions::state::StateOf as _;
use crate::session::facts::FactsOf as _;
use crate::types::oid::Oid;
use crate::types::user;

pub use print::Style;
pub use text::literal;

/// A session of the binder that plans nothing.
struct Quiet;

impl query::plan::statistics::Statistics for Quiet {
    fn know(&self, _: &Arc<Table>) {}

    fn extent(&self, _: engine::rows::MapId, _: std::ops::Bound<&[u8]>, _: std::ops::Bound<&[u8]>) -> Option<f64> {
        None
    }
}

impl BindSession for Quiet {
    fn check_interrupts(&self) -> Result<()> {
        Ok(())
    }

    fn system_table(&self, schema: &str, name: &str) -> Option<&'static query::nodes::system_table::SystemTable> {
        crate::system::find(schema, name)
    }
}

/// Calls `act` with an analyser that looks names up in `path`, as a view does if it is one's text.
fn analysed<T>(
    path: &[String],
    view: Option<&View>,
    ctx: &mut EvalContext,
    act: impl FnOnce(&mut analyse::Analyser<'_, '_>) -> Result<T>,
) -> Result<T> {
    let facts = ctx.facts();
    let snapshot = facts.definitions.clone();
    let (database, role) = (facts.database.clone(), facts.role.clone());
    let environment = Environment {
        snapshot,
        database: &database,
        role: &role,
        search_path: path,
        session: &Quiet,
        values: &[],
        reads_lock: None,
    };
    let mut binder = Binder::new(&environment, ctx, "");
    if let Some(view) = view {
        binder.see_as(view);
    }
    act(&mut analyse::Analyser::new(&mut binder))
}

fn damaged() -> PgError {
    PgError::new(state::DATA_CORRUPTED, "the text of a definition has no meaning")
}

fn parsed(text: &str) -> Result<tree::SelectStmt> {
    let mut statements = syntax::postgres::parse_script(text, &|| false).map_err(|_| damaged())?;
    match (statements.pop().map(|raw| raw.statement), statements.is_empty()) {
        (Some(Statement::Select(query)), true) => Ok(*query),
        _ => Err(damaged()),
    }
}

/// Returns the syntax tree of an expression.
fn parsed_expression(text: &str) -> Result<tree::Expr> {
    let query = parsed(&format!("SELECT ({text})"))?;
    match query.body {
        tree::SelectBody::Select(mut select) if select.targets.len() == 1 => {
            select.targets.pop().map(|target| target.expr).ok_or_else(damaged)
        }
        _ => Err(damaged()),
    }
}

/// Returns the query of a view, without the semicolon.
pub fn view(view: &View, style: Style, ctx: &mut EvalContext) -> Result<String> {
    let query = view_query(view, ctx)?;
    let text = print::query(&query, style, ctx)?;
    Ok(with_type_names(text, ctx))
}

fn view_query(view: &View, ctx: &mut EvalContext) -> Result<node::Query> {
    let path: Vec<String> = view.modes.split(',').filter(|schema| !schema.is_empty()).map(str::to_owned).collect();
    let tree = parsed(&view.text)?;
    let mut query = analysed(&path, Some(view), ctx, |analyser| analyser.query(&tree))?;
    query.columns.iter_mut().zip(&view.columns).for_each(|((name, _), shown)| name.clone_from(shown));
    Ok(query)
}

/// Returns the relations that a view reads, by schema and name, with the numbers of the columns it reads.
pub fn relations_of(view: &View, ctx: &mut EvalContext) -> Result<Vec<(String, String, Vec<usize>)>> {
    let query = view_query(view, ctx)?;
    Ok(scope::relations(&query))
}

/// The place of an expression in a definition.
#[derive(Clone, Copy, Debug)]
pub enum ExpressionPlace {
    /// A default, or a generated column: of the type of the column.
    Column {
        ty: Oid,
        typmod: i32,
    },
    Check,
    /// Of an index.
    Plain,
}

/// Returns an expression over a table's columns.
pub fn expression(
    table: &Table,
    text: &str,
    place: ExpressionPlace,
    style: Style,
    ctx: &mut EvalContext,
) -> Result<String> {
    let node = expression_node(table, text, place, ctx)?;
    let text = print::expression(&node, table, style, ctx)?;
    Ok(with_type_names(text, ctx))
}

/// Puts the names of types that users define where the printer has left their OIDs.
fn with_type_names(text: String, ctx: &EvalContext) -> String {
    user::named(&text, &ctx.state().io).unwrap_or(text)
}

/// Returns an expression of a statement over a table's columns.
pub fn expression_of(
    table: &Table,
    tree: &tree::Expr,
    place: ExpressionPlace,
    style: Style,
    ctx: &mut EvalContext,
) -> Result<String> {
    let node = node_of(table, tree, place, ctx)?;
    print::expression(&node, table, style, ctx)
}

/// Returns the text of an expression over the columns of `old` with their names in `new`.
pub fn renamed(
    (old, new): (&Table, &Table),
    text: &str,
    place: ExpressionPlace,
    style: Style,
    ctx: &mut EvalContext,
) -> Result<String> {
    let node = expression_node(old, text, place, ctx)?;
    print::expression(&node, new, style, ctx)
}

/// Returns the positions of the columns that an expression reads.
pub fn columns_of(table: &Table, text: &str, ctx: &mut EvalContext) -> Result<Vec<usize>> {
    let node = expression_node(table, text, ExpressionPlace::Plain, ctx)?;
    let mut columns = scope::columns(&node);
    columns.sort_unstable();
    columns.dedup();
    Ok(columns)
}

fn expression_node(table: &Table, text: &str, place: ExpressionPlace, ctx: &mut EvalContext) -> Result<node::SqlNode> {
    node_of(table, &parsed_expression(text)?, place, ctx)
}

fn node_of(table: &Table, tree: &tree::Expr, place: ExpressionPlace, ctx: &mut EvalContext) -> Result<node::SqlNode> {
    let path = [crate::define::names::schema_of(&table.schema).to_owned(), "public".to_owned()];
    analysed(&path, None, ctx, |analyser| {
        analyser.open_table(table);
        let node = analyser.expr(tree)?;
        match place {
            ExpressionPlace::Column { ty, typmod } => analyser.assigned(node, (ty, typmod)),
            ExpressionPlace::Check => analyser.assigned(node, (crate::types::oid::BOOL, -1)),
            ExpressionPlace::Plain => Ok(node),
        }
    })
}
