//! The query of a cursor, and WHERE CURRENT OF.
//!
//! The rows of a cursor end with the primary keys of the tables whose rows WHERE CURRENT OF may name: those that the query locks, or the only one. A change reads the key of the current row when it runs, by a
//! function of the session, so its plan holds for any row.

use std::sync::Arc;

use query::catalog::table::Table;
use query::nodes::comparison::Comparison;
use query::nodes::context::EvalContext;
use query::nodes::expr::{Call, Compare, Expr, Extra};
use query::nodes::function::{Finish, Function, Run, SessionUse};
use query::nodes::relation::Origin;
use query::types::Collation;
use syntax::postgres::tree::{DeclareCursorStmt, Ident, Select, SelectBody, Statement};

use crate::bind::comparison::comparator;
use crate::bind::scope::BoundQuery;
use crate::bind::select::Target;
use crate::bind::typing::{oid_of, unsupported};
use crate::bind::{Binder, Bound, Environment, Plan};
use crate::error::{PgError, Result, state};
use crate::session::facts::FactsOf as _;
use crate::types::oid::{self, Oid};
use crate::types::registry::column_type;
use crate::value::Value;

/// The tables of a cursor's query whose current row WHERE CURRENT OF may name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CursorTables {
    /// The query locks its rows, so each table stands for itself.
    pub is_locking: bool,
    /// The id of each table, and the place of its key in the rows.
    pub keys: Vec<(u64, std::ops::Range<usize>)>,
}

/// The tables of the outermost block of a cursor's query, while it is bound.
#[derive(Debug)]
pub struct CursorBlock {
    /// The address of the block's tree, by which it is recognised.
    select: usize,
    tables: CursorTables,
}

/// Binds the query of a cursor.
pub fn bind_cursor(
    environment: &Environment<'_>,
    ctx: &mut EvalContext,
    text: &str,
    declare: &DeclareCursorStmt,
    parameters: Vec<Oid>,
) -> Result<(Bound, CursorTables)> {
    let with = declare.query.with.iter().flat_map(|with| &with.tables);
    if with.into_iter().any(|table| !matches!(table.statement, Statement::Select(_))) {
        let text = "DECLARE CURSOR must not contain data-modifying statements in WITH";
        return Err(PgError::new(state::FEATURE_NOT_SUPPORTED, text));
    }
    let is_locking = !declare.query.locking.is_empty();
    let tables = CursorTables { is_locking, keys: Vec::new() };
    let mut binder = Binder::new(environment, ctx, text);
    binder.parameters = parameters;
    if let SelectBody::Select(select) = &declare.query.body {
        binder.cursor = Some(CursorBlock { select: address(select), tables: tables.clone() });
    }
    let BoundQuery { node, columns, plain: _ } = binder.query(&declare.query)?;
    let mut fields = binder.fields_of_result(Some(&columns));
    let plan = Plan::Query { node, columns: columns.into_iter().map(|column| column.column).collect() };
    let tables = binder.cursor.take().map_or(tables, |block| block.tables);
    fields.truncate(tables.keys.iter().map(|(_, places)| places.start).min().unwrap_or(fields.len()));
    Ok((binder.finish(plan, fields)?, tables))
}

fn address(select: &Select) -> usize {
    std::ptr::from_ref(select).addr()
}

impl Binder<'_> {
    /// Adds the keys of the block's tables to the select list, if it is the outermost of a cursor and its rows are rows of tables.
    pub fn add_cursor_keys(&mut self, select: &Select, targets: &mut Vec<Target>) {
        let is_plain = select.distinct.is_none() && select.having.is_none() && select.group_by.is_empty();
        let is_plain = is_plain && self.scope().sets.calls.is_empty();
        let Some(mut block) = self.cursor.take() else { return };
        if block.select == address(select) && is_plain {
            let is_locking = block.tables.is_locking;
            let scope = self.scope();
            let only = scope.tables.len() == 1;
            for table in &scope.tables {
                let Origin::Base(base) = &table.origin else { continue };
                let is_named = if is_locking { table.lock.is_some() } else { only };
                let Some(primary) = base.primary.as_ref().filter(|_| is_named) else { continue };
                let first = targets.len();
                for part in primary {
                    let at = table.offset + part.column;
                    scope.used[at] = true;
                    let expr = Expr::Column(at, base.columns[part.column].ty.clone());
                    targets.push(Target { expr, name: String::new(), origin: None, at: 0 });
                }
                block.tables.keys.push((base.id, first..targets.len()));
            }
        }
        self.cursor = Some(block);
    }

    /// Returns the conditions of WHERE CURRENT OF on the table at this place of the wide row.
    pub fn current_of(&mut self, cursor: &Ident, table: &Arc<Table>, offset: usize, at: u32) -> Result<Vec<Expr>> {
        let Some(primary) = &table.primary else {
            let text = format!("WHERE CURRENT OF in table \"{}\", which has no primary key,", table.name);
            return Err(self.error(unsupported(text), at));
        };
        let text = |text: &str| Expr::Literal(Value::text(text), column_type(oid::TEXT, -1, false));
        let number = |number: u64| Expr::Literal(Value::Int(number as i64), column_type(oid::INT8, -1, false));
        let mut conditions = Vec::new();
        for (nth, part) in primary.iter().enumerate() {
            let ty = table.columns[part.column].ty.clone();
            let left = Expr::Column(offset + part.column, ty.clone());
            let own = oid_of(&left);
            let Some(by) = comparator(own, own) else {
                return Err(self.error(unsupported("WHERE CURRENT OF in this table"), at));
            };
            let arguments = vec![text(&cursor.value), number(table.id), text(&table.name), number(nth as u64)];
            let right = Expr::Call(Box::new(Call {
                function: &CURRENT_OF,
                arguments,
                ty,
                collation: Collation::Binary,
                extra: Extra::default(),
            }));
            conditions.push(Expr::Compare(Box::new(Compare { op: Comparison::Equal, left, right, by })));
        }
        Ok(conditions)
    }
}

/// A part of the key of a cursor's current row: the names of cursor and table, and the number of the part.
static CURRENT_OF: Function = Function {
    finish: Finish::Unchanged,
    session: SessionUse::Read,
    ..Function::new(&["current_of"], Run::Values(key_of_current_row))
};

fn key_of_current_row(_: &Call, values: &[Value], ctx: &mut EvalContext) -> datum::Result<Value> {
    let [Value::Text(cursor), Value::Int(id), Value::Text(table), Value::Int(nth)] = values else {
        return Err(datum::Fault::corrupt("the arguments of CURRENT OF"));
    };
    let found = current_key(ctx, cursor.as_str(), *id as u64, table.as_str())?;
    Ok(found.get(*nth as usize).cloned().unwrap_or_default())
}

/// Returns the key of the row of a table at which a cursor is.
fn current_key<'c>(ctx: &'c mut EvalContext, cursor: &str, id: u64, table: &str) -> Result<&'c [Value]> {
    let fail = |state, text: String| Err(PgError::new(state, text));
    let Some(known) = ctx.facts().cursors.get(cursor) else {
        return fail(state::INVALID_CURSOR_NAME, format!("cursor \"{cursor}\" does not exist"));
    };
    let state = state::INVALID_CURSOR_STATE;
    if !known.is_select {
        return fail(state, format!("cursor \"{cursor}\" is not a SELECT query"));
    }
    if known.is_held {
        return fail(state, format!("cursor \"{cursor}\" is held from a previous transaction"));
    }
    let mut places = known.tables.keys.iter().filter(|(known, _)| *known == id).map(|(_, places)| places.clone());
    let place = match (known.tables.is_locking, places.next(), places.next()) {
        (_, Some(place), None) => place,
        (true, None, _) => {
            let text = format!("cursor \"{cursor}\" does not have a FOR UPDATE/SHARE reference to table \"{table}\"");
            return fail(state, text);
        }
        (true, ..) => {
            let text = format!("cursor \"{cursor}\" has multiple FOR UPDATE/SHARE references to table \"{table}\"");
            return fail(state, text);
        }
        (false, ..) => {
            let text = format!("cursor \"{cursor}\" is not a simply updatable scan of table \"{table}\"");
            return fail(state, text);
        }
    };
    match known.row.as_ref().and_then(|row| row.get(place)) {
        Some(key) => Ok(key),
        None => fail(state, format!("cursor \"{cursor}\" is not positioned on a row")),
    }
}
