//! Generated columns: binding of their expressions, and matching of equal expressions in queries.
//!
//! A generation expression is bound once per table version with default session settings, so that its meaning does not
//! depend on the session that binds it.

use std::sync::Arc;

use crate::bind::scope::Scope;
use crate::bind::{Bind, BindEnvironment};
use crate::error::Result;
use crate::other_dialects::MAKER;
use crate::parse::parse_expression;
use crate::scalar::bind::present;
use crate::scalar::settings::Settings;
use crate::scalar::store::ASSIGNMENT;
use crate::types::{Kind, MysqlType as _, Type};
use datum::key::KeyOrder;
use query::catalog::table::Table;
use query::nodes::expr::Expr;
use query::nodes::formula::Formula;
use query::nodes::node::SortKey;
use query::nodes::relation::{Origin, ScopeTable};
use query::plan::generated::{indexed, is_like};

impl Bind<'_> {
    /// Binds the table's generation expressions, unless already bound.
    pub fn formulas(&self, table: &Arc<Table>) -> Result<()> {
        if table.bound_formulas().is_some() || !table.is_generated() || table.maker != MAKER {
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
            let lossless = is_lossless(&definition.ty, &expr.ty());
            formulas.push(Formula { column, expr, assignment: &ASSIGNMENT, lossless, reads });
        }
        // Another session may have stored the same result first.
        table.keep_formulas(formulas);
        Ok(())
    }

    /// Binds an expression over the table's columns, with assignment to the target type if given.
    pub fn formula(&self, table: &Arc<Table>, text: &str, target: Option<&Type>) -> Result<Expr> {
        let settings = Settings::default();
        let environment = BindEnvironment {
            snapshot: self.environment.snapshot.clone(),
            rights: self.environment.rights,
            settings: &settings,
            database: None,
            variables: self.environment.variables,
            parameters: &[],
            values: &[],
            reads_lock: None,
        };
        let mut bind = Bind::new(&environment);
        bind.open_scope();
        bind.scope().clause = if target.is_some() { "generated column function" } else { "functional index" };
        bind.add_table(table, &table.name, query::nodes::relation::Columns::All);
        let node = parse_expression(text)?;
        let expr = match target {
            Some(ty) => bind.assigned(&node, ty)?,
            None => bind.expr(&node)?,
        };
        let same_form = target.is_some_and(|ty| ty.kind() == expr.ty().kind() && ty.members == expr.ty().members);
        Ok(if same_form { expr } else { present(expr) })
    }

    /// Marks the plan volatile if an expression would match a generated column only with certain literals for its
    /// parameters. Then other literals need another plan.
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

/// Returns the sort keys, with expressions replaced by the indexed generated columns that compute them.
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
    let keys = sorts.iter().map_while(|(expr, descending)| {
        place(expr).map(|(at, ty)| SortKey { at, ty, order: KeyOrder::with_null_least(*descending) })
    });
    keys.collect()
}

/// Returns whether a column of that type holds the expression's values as they are, not others that they are converted to.
fn is_lossless(column: &Type, expr: &Type) -> bool {
    match column.kind() {
        kind if kind.is_integer() => expr.kind().is_integer() && column.is_unsigned() == expr.is_unsigned(),
        Kind::Decimal => expr.kind() == Kind::Decimal && column.scale >= expr.scale,
        Kind::Double | Kind::Date | Kind::Json | Kind::Year => column.kind() == expr.kind(),
        Kind::Time | Kind::DateTime => column.kind() == expr.kind() && column.scale >= expr.scale,
        Kind::Char | Kind::VarChar | Kind::TinyText | Kind::Text | Kind::MediumText | Kind::LongText => {
            let is_text = expr.kind().is_text() && !matches!(expr.kind(), Kind::Enum | Kind::Set);
            is_text && column.collation == expr.collation
        }
        kind if kind.is_bytes() => expr.kind().is_bytes() && column.length >= expr.length,
        _ => false,
    }
}
