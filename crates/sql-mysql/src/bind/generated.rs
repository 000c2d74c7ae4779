//! Generated columns: their expressions bound to a table, and found again where a query writes the same.
//!
//! A formula is bound once for a version of its table, with the settings that a new session has: what it means must not hang on who comes first.

use std::sync::Arc;

use crate::bind::scope::Scope;
use crate::bind::{Bind, Surroundings};
use crate::error::Result;
use crate::parse::parse_expression;
use crate::scalar::bind::present;
use crate::scalar::settings::Settings;
use crate::scalar::store::ASSIGNMENT;
use query::catalog::table::Table;
use query::nodes::expr::Expr;
use query::nodes::formula::Formula;
use query::nodes::node::SortKey;
use query::nodes::relation::{Origin, ScopeTable};
use query::plan::generated::{indexed, is_like};
use query::types::Type;

impl Bind<'_> {
    /// Binds what the table's generated columns are computed by, if nobody has.
    pub fn formulas(&self, table: &Arc<Table>) -> Result<()> {
        if table.bound_formulas().is_some() || !table.is_generated() {
            return Ok(());
        }
        let mut formulas: Vec<Formula> = Vec::new();
        for (column, definition) in table.columns.iter().enumerate() {
            let Some(generated) = &definition.generated else { continue };
            let expr = self.formula(table, &generated.text, Some(&definition.ty))?;
            let mut reads = expr.columns();
            for formula in &formulas {
                if reads.contains(&formula.column) {
                    reads.extend(&formula.reads);
                }
            }
            reads.sort_unstable();
            reads.dedup();
            formulas.push(Formula { column, expr, assignment: &ASSIGNMENT, reads });
        }
        // Somebody else may have been quicker, with the same result.
        table.keep_formulas(formulas);
        Ok(())
    }

    /// An expression over the table's columns, on its way to a column of that type.
    pub fn formula(&self, table: &Arc<Table>, text: &str, target: Option<&Type>) -> Result<Expr> {
        let settings = Settings::default();
        let around = Surroundings {
            snapshot: self.around.snapshot.clone(),
            rights: self.around.rights,
            settings: &settings,
            database: None,
            variables: self.around.variables,
            parameters: &[],
            values: &[],
            reads_lock: None,
        };
        let mut bind = Bind::new(&around);
        bind.open_scope();
        bind.scope().clause = if target.is_some() { "generated column function" } else { "functional index" };
        bind.add_table(table, &table.name, query::nodes::relation::Columns::All);
        let node = parse_expression(text)?;
        let expr = match target {
            Some(ty) => bind.assigned(&node, ty)?,
            None => bind.expr(&node)?,
        };
        let same_form = target.is_some_and(|ty| ty.kind == expr.ty().kind && ty.members == expr.ty().members);
        Ok(if same_form { expr } else { present(expr) })
    }

    /// Might the expression be one of these if its parameters were literals? Then a plan for other literals is no plan for these.
    pub(super) fn note_likeness(&mut self, scope: &Scope, exprs: &[Expr]) {
        let tables = scope.tables.iter().filter_map(|table| Some((table, base(table)?)));
        for (table, base) in tables.filter(|(_, base)| base.is_generated()) {
            for (_, formula) in indexed(base, table.offset) {
                for expr in exprs {
                    expr.walk(&mut |expr| {
                        self.volatile |= is_like(expr, &formula, true) && !is_like(expr, &formula, false)
                    });
                }
            }
        }
    }
}

fn base(table: &ScopeTable) -> Option<&Arc<Table>> {
    match &table.origin {
        Origin::Base(base) => Some(base),
        _ => None,
    }
}

/// The order that is wanted, where expressions that an indexed column is computed by count as the column.
pub fn order_by_formulas(scope: &Scope, sorts: &[(Expr, bool)]) -> Vec<SortKey> {
    let place = |expr: &Expr| match expr {
        Expr::Column(at, ty) => Some((*at, ty.clone())),
        _ => {
            let tables = scope.tables.iter().filter_map(|table| Some((table, base(table)?)));
            let mut found = tables.filter(|(_, base)| base.is_generated()).flat_map(|(table, base)| {
                let like = indexed(base, table.offset).into_iter().find(|(_, formula)| is_like(expr, formula, false));
                like.map(|(column, _)| (table.offset + column, base.columns[column].ty.clone()))
            });
            found.next()
        }
    };
    let keys = sorts
        .iter()
        .map_while(|(expr, descending)| place(expr).map(|(at, ty)| SortKey { at, ty, descending: *descending }));
    keys.collect()
}
