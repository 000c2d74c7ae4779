//! Aggregate functions, and expressions over grouped rows.

use datum::key::KeyOrder;
use syntax::tree as ast;
use syntax::tree::{ExprKind, walk};

use crate::bind::Bind;
use crate::bind::scope::{Grouped, Scope};
use crate::bind::window::is_window_only;
use crate::error::{self, Result, SqlError};
use crate::other_values::read;
use crate::scalar::aggregate::{self, AggregateKind};
use crate::scalar::bind::present;
use crate::scalar::compare;
use crate::scalar::operation::Arithmetic;
use crate::scalar::operators;
use crate::types::Kind::{Enum, Set};
use crate::types::{MysqlExpr as _, MysqlType as _, Type};
use crate::value::Value;
use query::nodes::comparison::{Comparison, ComparisonType};
use query::nodes::expr::{Compare, Expr};
use query::nodes::node::AggregateCall;
use query::nodes::walk::same;

impl Bind<'_> {
    /// Returns the grouping key that equals the node, if any. `staged` handles columns.
    pub fn group_key(&mut self, node: &ast::Expr) -> Result<Option<Expr>> {
        let rollup = self.scope().grouped.as_ref().is_some_and(|grouped| grouped.rollup);
        let leaf = match &node.kind {
            ExprKind::Literal(_) | ExprKind::Parameter(_) => true,
            // An outer column may be a key, which ROLLUP makes NULL.
            ExprKind::Column(_) | ExprKind::UserVariable(_) | ExprKind::SystemVariable { scope: _, name: _ } => !rollup,
            _ => false,
        };
        let has_keys = self
            .scopes
            .last()
            .and_then(|scope| scope.grouped.as_ref())
            .is_some_and(|grouped| grouped.keys.iter().any(|key| !matches!(key, Expr::Column(..))));
        if leaf || !has_keys {
            return Ok(None);
        }
        if let ExprKind::Chain { .. } | ExprKind::Xor(_) = &node.kind {
            return self.chain_key(&node.kind);
        }
        if !is_plain(node) {
            return Ok(None);
        }
        let base = self.below(|bind| bind.expr(node));
        let (Ok(base), Some(grouped)) = (base, &self.scope().grouped) else { return Ok(None) };
        let at = grouped.keys.iter().position(|key| is_key(key, &base));
        Ok(at.map(|at| key_column(grouped, at)))
    }

    /// Returns the longest prefix of an operator chain that is a grouping key, combined with the remaining operands.
    fn chain_key(&mut self, kind: &ExprKind) -> Result<Option<Expr>> {
        let operands = operands(kind);
        let mut count = operands.iter().take_while(|operand| is_plain(operand)).count();
        // A single operand is checked when it is bound itself.
        if count < 2 {
            return Ok(None);
        }
        let mut base = self.beginning(kind, count);
        if base.is_err() {
            // One of them can be bound only above the grouping.
            let first = operands[..count].iter();
            count = first.take_while(|operand| self.below(|bind| bind.expr(operand)).is_ok()).count();
            if count < 2 {
                return Ok(None);
            }
            base = self.beginning(kind, count);
        }
        let (Ok(base), Some(grouped)) = (base, &self.scope().grouped) else { return Ok(None) };
        let keys: Vec<(usize, &Expr)> = grouped.keys.iter().map(|key| (height(key), key)).collect();
        let (mut part, mut level) = (Some(&base), height(&base));
        let mut found = None;
        while let (Some(expr), true) = (part, found.is_none() && count > 1) {
            found = keys.iter().position(|(height, key)| *height == level && is_key(key, expr)).map(|at| (count, at));
            (part, level, count) = (left_of(expr), level.saturating_sub(1), count - 1);
        }
        let Some((count, at)) = found else { return Ok(None) };
        let known = (count, key_column(grouped, at));
        self.with_binder(|binder| match kind {
            ExprKind::Chain { first, links } => Ok(binder.chain(first, links, Some((known.0 - 1, known.1)))?),
            _ => Ok(binder.xor(&operands, Some(known))?),
        })
        .map(Some)
    }

    /// Binds the first `count` operands of a chain, at least two, over the grouping's input rows.
    fn beginning(&mut self, kind: &ExprKind, count: usize) -> Result<Expr> {
        self.below(|bind| {
            bind.with_binder(|binder| match kind {
                ExprKind::Chain { first, links } => Ok(binder.chain(first, &links[..count - 1], None)?),
                kind => Ok(binder.xor(&operands(kind)[..count], None)?),
            })
        })
    }

    /// Binds over the grouping's input rows.
    pub fn below<T>(&mut self, bind: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let scope = self.scope();
        let (grouped, gathers) = (scope.grouped.take(), std::mem::replace(&mut scope.gathers, true));
        let bound = bind(self);
        let scope = self.scope();
        (scope.grouped, scope.gathers) = (grouped, gathers);
        bound
    }

    /// Binds functions of the query block: aggregates and window functions.
    pub fn function(&mut self, function: &ast::Function) -> Result<Option<Expr>> {
        let name = &function.name;
        if function.schema.is_some() {
            return Ok(None);
        }
        if let Some(over) = &function.over {
            return self.window_function(function, over).map(Some);
        }
        if is_window_only(name) {
            return Err(SqlError::parse(format!("'{name}' at line 1")));
        }
        if name.eq_ignore_ascii_case("grouping") {
            return self.grouping(&function.arguments).map(Some);
        }
        let Some(kind) = AggregateKind::of_name(name) else { return Ok(None) };
        let scope = self.scope();
        let may_stand = scope.above || scope.gathers;
        let home = self.home(kind, function, may_stand)?;
        let place = match home + 1 == self.scopes.len() {
            true => self.aggregate(kind, function)?,
            false => self.aggregate_around(home, kind, function)?,
        };
        Ok(Some(place))
    }

    /// GROUPING(key, ...): one bit per key, set in rows where ROLLUP has made the key NULL. The bits follow from the
    /// row's grouping level.
    fn grouping(&mut self, arguments: &[ast::Expr]) -> Result<Expr> {
        if !self.scope().grouped.as_ref().is_some_and(|grouped| grouped.rollup) {
            return Err(error::INVALID_GROUP_FUNC_USE.bare());
        }
        let mut places = Vec::new();
        for (at, node) in arguments.iter().enumerate() {
            let bound = self.expr(node);
            let keys = self.scope().grouped.as_ref().map_or(0, |grouped| grouped.keys.len());
            match bound {
                Ok(Expr::Column(place, _)) if place < keys => places.push(place),
                Err(error) if !matches!(error.code, 1055 | 1140) => return Err(error),
                _ => return Err(error::FIELD_IN_GROUPING_NOT_GROUP_BY.with(&[&(at + 1)])),
            }
        }
        if places.is_empty() || places.len() > 64 {
            return Err(error::WRONG_PARAMCOUNT_TO_NATIVE_FCT.with(&[&"GROUPING"]));
        }
        let level = self.level()?;
        let keys = self.scope().grouped.as_ref().map_or(0, |grouped| grouped.keys.len());
        let bits = |level: usize| places.iter().fold(0, |bits, place| bits << 1 | i64::from(*place >= level));
        let is_level = |at: usize| {
            let (left, right) = (level.clone(), Expr::integer(at as i64));
            Expr::Compare(Box::new(Compare {
                op: Comparison::Equal,
                left,
                right,
                by: compare::by(ComparisonType::Integer),
            }))
        };
        let arms = (0..keys).map(|at| (is_level(at), Expr::integer(bits(at)))).collect();
        let ty = Type::integer().with_nullable(false);
        Ok(operators::case(arms, Expr::integer(0), ty))
    }

    /// Returns the number of keys that are not rolled up in a row.
    fn level(&mut self) -> Result<Expr> {
        let settings = self.settings();
        let Some(grouped) = &mut self.scope().grouped else { return Err(error::INVALID_GROUP_FUNC_USE.bare()) };
        let at = match grouped.level {
            Some(at) => at,
            None => {
                let aggregate = aggregate::new(AggregateKind::Count, false, Vec::new(), settings)?;
                grouped.calls.push(AggregateCall { aggregate, arguments: Vec::new() });
                *grouped.level.insert(grouped.calls.len() - 1)
            }
        };
        Ok(Expr::Column(grouped.keys.len() + at, Type::integer().with_nullable(false)))
    }

    pub fn call(&mut self, kind: AggregateKind, function: &ast::Function) -> Result<AggregateCall> {
        let ast::Function {
            schema: _,
            name: _,
            arguments: nodes,
            star: _,
            bare: _,
            distinct,
            order_by,
            separator,
            from_last: _,
            ignore_nulls: _,
            over: _,
        } = function;
        let mut arguments = nodes.iter().map(|node| self.expr(node)).collect::<Result<Vec<_>>>()?;
        let mut order = Vec::new();
        let own = arguments.len();
        for ast::OrderItem { expr, descending } in order_by {
            let key = match position(expr) {
                Some(number) if number == 0 || number > own => {
                    return Err(error::BAD_FIELD.with(&[&number, &"order clause"]));
                }
                Some(number) => arguments[number - 1].clone(),
                None => self.expr(expr)?,
            };
            arguments.push(key);
            order.push(KeyOrder::with_null_least(*descending));
        }
        // Members of ENUM and SET compare by name in MIN and MAX.
        if let (AggregateKind::Min | AggregateKind::Max, Some(first)) = (kind, arguments.first_mut())
            && matches!(first.kind(), Enum | Set)
        {
            *first = present(first.clone());
        }
        let types: Vec<Type> = arguments.iter().map(Expr::ty).collect();
        let mut aggregate = aggregate::new(kind, *distinct, types[..own].to_vec(), self.settings())?;
        aggregate.arguments = types;
        aggregate.order = order;
        if let Some(separator) = separator {
            aggregate.separator = separator.as_str().into();
        }
        Ok(AggregateCall { aggregate, arguments })
    }

    /// Binds VALUES(column) of ON DUPLICATE KEY UPDATE: the value that would have been inserted. Subqueries of that
    /// clause may use it.
    pub fn inserted_value(&mut self, name: &ast::ColumnName) -> Result<Expr> {
        let Some((depth, base)) = self.values_at.filter(|(depth, _)| !self.is_found_within(*depth, name)) else {
            return self.never_inserted(name);
        };
        let ast::ColumnName { schema: _, table: of, name: column } = name;
        let table = &self.scopes[depth].tables[0];
        let is_it = of.as_ref().is_none_or(|of| of.eq_ignore_ascii_case(&table.alias));
        let place = table.columns.iter().position(|known| is_it && known.name.eq_ignore_ascii_case(column));
        let place = place.ok_or_else(|| error::BAD_FIELD.with(&[&name.dotted(), &"field list"]))?;
        let ty = self.scopes[depth].type_at(place).with_nullable(true);
        let expr = read(Expr::Column(base + place, ty), column);
        Ok(if depth + 1 == self.scopes.len() { expr } else { self.read_inside(depth, expr) })
    }

    /// Returns NULL for a column that no statement inserts a value into.
    fn never_inserted(&self, name: &ast::ColumnName) -> Result<Expr> {
        let ast::ColumnName { schema, table, name: column } = name;
        for scope in self.scopes.iter().rev() {
            if let Some(place) = scope.find(schema.as_deref(), table.as_deref(), column)? {
                scope.check_readable(&self.rights, place)?;
                return Ok(Expr::Literal(Value::Null, scope.type_at(place).with_nullable(true)));
            }
        }
        let clause = self.scopes.last().map_or("field list", |scope| scope.clause);
        Err(error::BAD_FIELD.with(&[&name.dotted(), &clause]))
    }

    /// Returns whether the name is a column of a block within that of the depth, which hides the outer ones. An
    /// ambiguous name counts as found and fails then.
    fn is_found_within(&self, depth: usize, name: &ast::ColumnName) -> bool {
        let ast::ColumnName { schema, table, name } = name;
        let find = |scope: &Scope| scope.find(schema.as_deref(), table.as_deref(), name);
        self.scopes[depth + 1..].iter().any(|scope| !matches!(find(scope), Ok(None)))
    }
}

/// Returns the position that a bare integer denotes, as in ORDER BY.
fn position(expr: &ast::Expr) -> Option<usize> {
    match &expr.kind {
        ExprKind::Literal(ast::Literal::Integer(number)) => usize::try_from(*number).ok(),
        _ => None,
    }
}

/// Returns whether the node can be bound over the grouping's input rows.
fn is_plain(node: &ast::Expr) -> bool {
    !has_aggregate(node) && !has_window(node) && !has_subquery(node)
}

/// Returns whether the expression equals the key.
fn is_key(key: &Expr, base: &Expr) -> bool {
    match (key, base) {
        (Expr::Subquery(a, _), Expr::Subquery(b, _)) => format!("{a:?}") == format!("{b:?}"),
        (key, base) => same(key, base),
    }
}

fn key_column(grouped: &Grouped, at: usize) -> Expr {
    let ty = grouped.keys[at].ty();
    let nullable = ty.nullable || grouped.rollup;
    Expr::Column(at, ty.with_nullable(nullable))
}

/// Returns the operands of a left-associative chain.
fn operands(kind: &ExprKind) -> Vec<&ast::Expr> {
    match kind {
        ExprKind::Chain { first, links } => {
            std::iter::once(&**first).chain(links.iter().map(|ast::Link { op: _, operand }| operand)).collect()
        }
        ExprKind::Xor(sides) => sides.iter().collect(),
        _ => Vec::new(),
    }
}

/// Returns a bound chain without its last operand.
fn left_of(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Call(call) => Arithmetic::of(call).map(|node| node.left),
        Expr::Xor(sides) => Some(&sides[0]),
        _ => None,
    }
}

fn height(expr: &Expr) -> usize {
    std::iter::successors(left_of(expr), |expr| left_of(expr)).count()
}

/// Returns whether the node contains an aggregate outside subqueries.
pub fn has_aggregate(node: &ast::Expr) -> bool {
    seek(node, &|node| aggregate_of(node).is_some())
}

/// Returns the aggregates in the node, outside subqueries, outer ones first.
pub fn aggregates(node: &ast::Expr) -> Vec<(AggregateKind, &ast::Function)> {
    aggregate_of(node).into_iter().chain(children(node).into_iter().flat_map(aggregates)).collect()
}

fn aggregate_of(node: &ast::Expr) -> Option<(AggregateKind, &ast::Function)> {
    match &node.kind {
        ExprKind::Function(function) if function.over.is_none() && function.schema.is_none() => {
            AggregateKind::of_name(&function.name).map(|kind| (kind, &**function))
        }
        _ => None,
    }
}

/// Returns whether the node contains a window function outside subqueries.
pub fn has_window(node: &ast::Expr) -> bool {
    seek(node, &|node| matches!(&node.kind, ExprKind::Function(function) if function.over.is_some()))
}

/// Returns whether the node contains a subquery.
pub fn has_subquery(node: &ast::Expr) -> bool {
    seek(node, &|node| {
        matches!(
            node.kind,
            ExprKind::Subquery(_)
                | ExprKind::Exists(_)
                | ExprKind::InQuery { operand: _, query: _, negated: _ }
                | ExprKind::Quantified { op: _, left: _, all: _, query: _ }
        )
    })
}

/// Returns whether a node satisfies the predicate. Subqueries are not searched.
fn seek(node: &ast::Expr, is_it: &dyn Fn(&ast::Expr) -> bool) -> bool {
    is_it(node) || children(node).into_iter().any(|child| seek(child, is_it))
}

fn children(node: &ast::Expr) -> Vec<&ast::Expr> {
    let mut children = Vec::new();
    walk::operands(node, &mut |operand| children.push(operand));
    if let ExprKind::Function(function) = &node.kind
        && let Some(ast::Over::Window(window)) = &function.over
    {
        children.extend(window_exprs(window));
    }
    children
}

/// Returns the expressions of a window's PARTITION BY and ORDER BY.
pub fn window_exprs(window: &ast::Window) -> Vec<&ast::Expr> {
    window.partition_by.iter().chain(window.order_by.iter().map(|item| &item.expr)).collect()
}
