//! Columns and variables.

use std::sync::Arc;

use syntax::tree as ast;

use crate::bind::Bind;
use crate::error::{self, Code, Result};
use crate::exec::hosted::{SetUser, UserVariable};
use crate::parse::statement::Scope;
use crate::plan::Call;
use crate::plan::walk::same;
use crate::scalar::Expr;
use crate::scalar::aggregate::{Aggregate, Kind};

const MIX_OF_GROUP_FUNC_AND_FIELDS: Code = Code {
    name: "MIX_OF_GROUP_FUNC_AND_FIELDS",
    code: 1140,
    sqlstate: "42000",
    format: "In aggregated query without GROUP BY, expression #{} of {} contains nonaggregated column '{}'; this is incompatible with sql_mode=only_full_group_by",
};

impl Bind<'_> {
    pub fn column(&mut self, name: &ast::ColumnName) -> Result<Expr> {
        let ast::ColumnName { schema, table, name } = name;
        self.resolve(schema.as_deref(), table.as_deref(), name)
    }

    /// A column of this block or of one around it, or a name of the select list where those count.
    pub fn resolve(&mut self, schema: Option<&str>, table: Option<&str>, name: &str) -> Result<Expr> {
        let clause = self.scope().clause;
        let gathers = self.scope().gathers;
        if table.is_none()
            && !gathers
            && matches!(clause, "having clause" | "order clause")
            && !(clause == "having clause" && self.is_grouping_column(name)?)
        {
            let mut named = self.scope().aliases.iter().filter(|(alias, _)| alias.eq_ignore_ascii_case(name));
            if let Some((_, expr)) = named.next() {
                let expr = expr.clone();
                if named.all(|(_, other)| same(&expr, other)) {
                    self.check_alias(name, &expr)?;
                    return Ok(expr);
                }
                return Err(error::NON_UNIQ.with(&[&name, &clause]));
            }
        }
        for depth in (0..self.scopes.len()).rev() {
            if let Some(place) = self.scopes[depth].find(schema, table, name)? {
                let expr = self.place(depth, place)?;
                // HAVING sees groups and the select list, not the rows below.
                let scope = &self.scopes[depth];
                let is_bare =
                    clause == "having clause" && !gathers && depth + 1 == self.scopes.len() && scope.grouped.is_none();
                if is_bare && !scope.aliases.iter().any(|(_, item)| same(item, &expr)) {
                    break;
                }
                return Ok(expr);
            }
        }
        let shown = match (schema, table) {
            (Some(schema), Some(table)) => format!("{schema}.{table}.{name}"),
            (None, Some(table)) => format!("{table}.{name}"),
            _ => name.to_owned(),
        };
        Err(error::BAD_FIELD.with(&[&shown, &clause]))
    }

    /// Is that a column of this block by which it is grouped? HAVING takes it before an alias that hides it.
    fn is_grouping_column(&mut self, name: &str) -> Result<bool> {
        let scope = self.scope();
        let Some(grouped) = &scope.grouped else { return Ok(false) };
        // A name that several tables have is no error where it is an alias.
        let Ok(Some(place)) = scope.find(None, None, name) else { return Ok(false) };
        let column = scope.expr_at(place);
        Ok(grouped.keys.iter().any(|key| same(key, &column)))
    }

    /// The value of a place of that scope, as the current one reads it.
    pub fn place(&mut self, depth: usize, place: usize) -> Result<Expr> {
        self.scopes[depth].check_readable(&self.rights, place)?;
        for read in self.scopes[depth].expr_at(place).columns() {
            self.scopes[depth].used[read] = true;
        }
        if let Some(reach) = &mut self.reach {
            reach.note(depth);
        }
        let expr = self.staged(depth, place)?;
        Ok(if depth + 1 == self.scopes.len() { expr } else { self.read_inside(depth, expr) })
    }

    fn staged(&mut self, depth: usize, place: usize) -> Result<Expr> {
        let (item, clause, settings) = (self.item, self.scopes[depth].clause, self.settings());
        let scope = &mut self.scopes[depth];
        let column = scope.expr_at(place);
        let ty = column.ty();
        // A column of a view is one of its table.
        let place = if let Expr::Column(below, _) = &column { *below } else { place };
        let Some(grouped) = &mut scope.grouped else { return Ok(column) };
        if let Some(at) = grouped.keys.iter().position(|key| same(key, &column)) {
            return Ok(Expr::Column(at, grouped.keys[at].ty()));
        }
        if !grouped.lenient && !grouped.primary_covered.contains(&place) {
            let is_whole = grouped.keys.is_empty();
            let shown = scope.table_at(place).map(|table| {
                let column = &table.columns[place - table.offset];
                if table.schema.is_empty() {
                    format!("{}.{}", table.alias, column.name)
                } else {
                    format!("{}.{}.{}", table.schema, table.alias, column.name)
                }
            });
            let list = match clause {
                "field list" => "SELECT list",
                "order clause" => "ORDER BY",
                "having clause" => {
                    return Err(error::NON_GROUPING_FIELD_USED.with(&[&shown.unwrap_or_default(), &"HAVING"]));
                }
                clause => clause,
            };
            let code = if is_whole { MIX_OF_GROUP_FUNC_AND_FIELDS } else { error::WRONG_FIELD_WITH_GROUP };
            return Err(code.with(&[&item, &list, &shown.unwrap_or_default()]));
        }
        let aggregate = Aggregate::new(Kind::AnyValue, false, vec![ty], settings)?;
        let ty = aggregate.ty.clone();
        let is_known = |call: &Call| {
            call.aggregate.kind == Kind::AnyValue && call.arguments.len() == 1 && same(&call.arguments[0], &column)
        };
        if let Some(at) = grouped.calls.iter().position(is_known) {
            return Ok(Expr::Column(grouped.keys.len() + at, ty));
        }
        let at = grouped.calls.len();
        grouped.calls.push(Call { aggregate, arguments: vec![column] });
        Ok(Expr::Column(grouped.keys.len() + at, ty))
    }

    /// `@@x`, `@@global.x`
    pub fn system_variable(&mut self, scope: Option<Scope>, name: &str) -> Result<Expr> {
        self.uses_variables = true;
        self.volatile = true;
        let (value, ty) = self.around.variables.system(scope, &name.to_ascii_lowercase())?;
        Ok(Expr::Literal(value, ty))
    }

    /// `@x`
    pub fn user_variable(&mut self, name: &str) -> Expr {
        self.uses_variables = true;
        self.volatile = true;
        let name = name.to_ascii_lowercase();
        let ty = self.around.variables.user(&name);
        Expr::Hosted(Arc::new(UserVariable { name }), ty)
    }

    pub fn assignment(&mut self, name: &str, value: &ast::Expr) -> Result<Expr> {
        self.volatile = true;
        let value = self.expr(value)?;
        let ty = value.ty();
        Ok(Expr::Hosted(Arc::new(SetUser { name: name.to_ascii_lowercase(), value }), ty))
    }
}
