//! Columns and variables.

use syntax::tree as ast;

use crate::bind::Bind;
use crate::error::{self, Code, Result};
use crate::parse::statement::Scope;
use crate::scalar::aggregate::{self, AggregateKind};
use crate::scalar::bind::constant;
use crate::scalar::operators;
use crate::scalar::store::implicit_default;
use crate::scalar::variable;
use crate::types::{self, MysqlType as _, Type};
use crate::value::Value;
use query::catalog::table::Default;
use query::nodes::expr::Expr;
use query::nodes::node::AggregateCall;
use query::nodes::relation::{Origin, ScopeTable};
use query::nodes::walk::same;

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

    /// Resolves a column of this or an outer block, or an alias of the select list in clauses that allow it.
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
                // HAVING sees groups and the select list, not the ungrouped rows.
                let scope = &self.scopes[depth];
                let is_bare =
                    clause == "having clause" && !gathers && depth + 1 == self.scopes.len() && scope.grouped.is_none();
                if is_bare && !scope.aliases.iter().any(|(_, item)| same(item, &expr)) {
                    break;
                }
                return Ok(expr);
            }
        }
        if let (None, Some(expr)) = (table, self.alias_around(name)?) {
            return Ok(expr);
        }
        let shown = match (schema, table) {
            (Some(schema), Some(table)) => format!("{schema}.{table}.{name}"),
            (None, Some(table)) => format!("{table}.{name}"),
            _ => name.to_owned(),
        };
        Err(error::BAD_FIELD.with(&[&shown, &clause]))
    }

    /// Resolves an alias in the select list of an outer block, before the current subquery.
    fn alias_around(&mut self, name: &str) -> Result<Option<Expr>> {
        for depth in (0..self.scopes.len() - 1).rev() {
            let scope = &self.scopes[depth];
            if !matches!(scope.clause, "field list" | "having clause" | "order clause") {
                continue;
            }
            let illegal = |why: &str| Err(error::ILLEGAL_REFERENCE.with(&[&name, &why]));
            let mut named = scope.aliases.iter().filter(|(alias, _)| alias.eq_ignore_ascii_case(name));
            let Some((_, expr)) = named.next() else {
                if scope.coming.iter().any(|alias| alias.eq_ignore_ascii_case(name)) {
                    return illegal("forward reference in item list");
                }
                continue;
            };
            if !named.all(|(_, other)| same(expr, other)) {
                return Err(error::NON_UNIQ.with(&[&name, &self.scope().clause]));
            }
            let expr = expr.clone();
            if let Some(windowed) = &scope.windowed
                && windowed.reaches(&expr)
            {
                return Err(error::WINDOW_INVALID_WINDOW_FUNC_ALIAS_USE.with(&[&name]));
            }
            if let Some(grouped) = &scope.grouped
                && expr.columns().iter().any(|at| grouped.is_aggregate(*at))
            {
                return illegal("reference to group function");
            }
            if let Some(reach) = &mut self.reach {
                reach.note(depth);
            }
            return Ok(Some(self.read_inside(depth, expr)));
        }
        Ok(None)
    }

    /// Binds `DEFAULT(column)`.
    pub fn default_value(&mut self, name: &ast::ColumnName) -> Result<Expr> {
        let ast::ColumnName { schema, table, name: column } = name;
        let clause = self.scope().clause;
        let mut found = None;
        for scope in self.scopes.iter().rev() {
            if let Some(place) = scope.find(schema.as_deref(), table.as_deref(), column)? {
                scope.check_readable(&self.rights, place)?;
                found = Some((scope, place));
                break;
            }
        }
        let Some((scope, place)) = found else {
            return Err(error::BAD_FIELD.with(&[&name.dotted(), &clause]));
        };
        let missing = || error::NO_DEFAULT_FOR_FIELD.with(&[column]);
        let place = match scope.expr_at(place).columns()[..] {
            [below] if constant::is_field(&scope.expr_at(place)) || scope.pads => below,
            _ => return Err(missing()),
        };
        let ty = scope.type_at(place);
        let Some(ScopeTable { origin: Origin::Base(base), offset, .. }) = scope.table_at(place) else {
            let value = if ty.nullable { Value::Null } else { implicit_default(&ty) };
            return Ok(Expr::Literal(value, ty));
        };
        let definition = &base.columns[place - offset];
        let value = match &definition.default {
            Default::Value(value) => value.clone(),
            Default::Now(_) => Value::Null,
            Default::None if definition.ty.nullable => Value::Null,
            Default::None | Default::Dropped => return Err(missing()),
            Default::Expression(_) => return Err(error::DEFAULT_AS_VAL_GENERATED.bare()),
        };
        let nullable = definition.ty.nullable || value.is_null();
        Ok(Expr::Literal(value, definition.ty.clone().with_nullable(nullable)))
    }

    /// Returns whether the name is a grouping column of this block. HAVING prefers it to an alias.
    fn is_grouping_column(&mut self, name: &str) -> Result<bool> {
        let scope = self.scope();
        let Some(grouped) = &scope.grouped else { return Ok(false) };
        // An ambiguous column is no error if the name is an alias.
        let Ok(Some(place)) = scope.find(None, None, name) else { return Ok(false) };
        let column = scope.expr_at(place);
        Ok(grouped.keys.iter().any(|key| same(key, &column)))
    }

    /// Returns the expression for a place of that scope, as the current block reads it.
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
        // A view's column is its table's column.
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
        let aggregate = aggregate::new(AggregateKind::AnyValue, false, vec![ty], settings)?;
        let ty = aggregate.ty.clone();
        let is_known = |call: &AggregateCall| {
            AggregateKind::of(&call.aggregate) == AggregateKind::AnyValue
                && call.arguments.len() == 1
                && same(&call.arguments[0], &column)
        };
        if let Some(at) = grouped.calls.iter().position(is_known) {
            return Ok(Expr::Column(grouped.keys.len() + at, ty));
        }
        let at = grouped.calls.len();
        grouped.calls.push(AggregateCall { aggregate, arguments: vec![column] });
        Ok(Expr::Column(grouped.keys.len() + at, ty))
    }

    /// `@@x`, `@@global.x`
    pub fn system_variable(&mut self, scope: Option<Scope>, name: &str) -> Result<Expr> {
        self.uses_variables = true;
        self.volatile = true;
        let (value, ty) = self.environment.variables.system(scope, &name.to_ascii_lowercase())?;
        Ok(Expr::Literal(value, ty))
    }

    /// `@x`
    pub fn user_variable(&mut self, name: &str) -> Expr {
        self.uses_variables = true;
        self.volatile = true;
        let name = name.to_ascii_lowercase();
        let ty = self.environment.variables.user(&name);
        let is_assigned = self.assigned.contains(&name);
        let variable = variable::read(&name, ty.clone());
        if is_assigned && ty.kind() == types::Kind::LongBlob {
            // The variable was unset, so reads after the assignment have a string type.
            let text = Type { collation: self.settings().collation, ..Type::of_kind(types::Kind::LongText) };
            return operators::cast(variable, text.with_nullable(true));
        }
        variable
    }

    pub fn assignment(&mut self, name: &str, value: &ast::Expr) -> Result<Expr> {
        self.volatile = true;
        let value = self.expr(value)?;
        self.assigned.push(name.to_ascii_lowercase());
        Ok(variable::assign(&name.to_ascii_lowercase(), value))
    }
}
