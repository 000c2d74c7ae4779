//! Aggregates, and what becomes of expressions above the grouping.

use sqlparser::ast;

use crate::bind::Bind;
use crate::bind::window::is_window_only;
use crate::error::{self, Result, SqlError};
use crate::plan::Call;
use crate::plan::walk::same;
use crate::scalar::Expr;
use crate::scalar::aggregate::Aggregate;
use crate::scalar::bind::present;
use crate::scalar::expr::{Case, Compare, Comparison, Domain};
use crate::types::Kind::{Enum, Set};
use crate::types::Type;

impl Bind<'_> {
    /// Above the grouping: is the node one of GROUP BY's expressions? Columns are looked at by `staged`.
    pub fn group_key(&mut self, node: &ast::Expr) -> Result<Option<Expr>> {
        let rollup = self.scope().grouped.as_ref().is_some_and(|grouped| grouped.rollup);
        let leaf = match node {
            ast::Expr::Value(_) | ast::Expr::Nested(_) => true,
            // A column of the row around may be a key, which ROLLUP makes NULL.
            ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_) => !rollup,
            _ => false,
        };
        let has_keys = self
            .scopes
            .last()
            .and_then(|scope| scope.grouped.as_ref())
            .is_some_and(|grouped| grouped.keys.iter().any(|key| !matches!(key, Expr::Column(..))));
        if leaf || !has_keys || has_aggregate(node) || has_window(node) || has_subquery(node) {
            return Ok(None);
        }
        let base = self.below(|bind| bind.expr(node));
        let (Ok(base), Some(grouped)) = (base, &self.scope().grouped) else { return Ok(None) };
        let is_key = |key: &Expr| match (key, &base) {
            (Expr::Hosted(a, _), Expr::Hosted(b, _)) => format!("{a:?}") == format!("{b:?}"),
            (key, base) => same(key, base),
        };
        let at = grouped.keys.iter().position(is_key);
        Ok(at.map(|at| {
            let ty = grouped.keys[at].ty();
            let nullable = ty.nullable || rollup;
            Expr::Column(at, ty.with_nullable(nullable))
        }))
    }

    /// Binds over the rows that are grouped.
    pub fn below<T>(&mut self, bind: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let scope = self.scope();
        let (grouped, gathers) = (scope.grouped.take(), std::mem::replace(&mut scope.gathers, true));
        let bound = bind(self);
        let scope = self.scope();
        (scope.grouped, scope.gathers) = (grouped, gathers);
        bound
    }

    /// A function that is the statement's business: an aggregate, VALUES().
    pub fn function(&mut self, function: &ast::Function) -> Result<Option<Expr>> {
        let name = function.name.to_string();
        if let Some(over) = &function.over {
            return self.window_function(function, over).map(Some);
        }
        if is_window_only(&name) {
            return Err(SqlError::parse(format!("'{function}' at line 1")));
        }
        if name.eq_ignore_ascii_case("values")
            && let Some((depth, base)) = self.values_at
        {
            return self.values(function, depth, base).map(Some);
        }
        if name.eq_ignore_ascii_case("grouping") {
            return self.grouping(function).map(Some);
        }
        let Some(kind) = Aggregate::kind(&name) else { return Ok(None) };
        let ast::FunctionArguments::List(list) = &function.args else { return Ok(None) };
        let scope = self.scope();
        let may_stand = scope.above || scope.gathers;
        let home = self.home(kind, list, may_stand)?;
        let place = match home + 1 == self.scopes.len() {
            true => self.aggregate(kind, list)?,
            false => self.aggregate_around(home, kind, list)?,
        };
        Ok(Some(place))
    }

    /// GROUPING(key, ...): a bit for each, set in rows that ROLLUP has put in over all values of the key. It follows from how many keys count in the row.
    fn grouping(&mut self, function: &ast::Function) -> Result<Expr> {
        let ast::FunctionArguments::List(list) = &function.args else {
            return Err(SqlError::parse(format!("'{function}' at line 1")));
        };
        if !self.scope().grouped.as_ref().is_some_and(|grouped| grouped.rollup) {
            return Err(error::INVALID_GROUP_FUNC_USE.bare());
        }
        let mut places = Vec::new();
        for (at, argument) in list.args.iter().enumerate() {
            let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(node)) = argument else {
                return Err(SqlError::parse(format!("'{function}' at line 1")));
            };
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
            Expr::Compare(Box::new(Compare { op: Comparison::Equal, left, right, domain: Domain::Integer }))
        };
        let arms = (0..keys).map(|at| (is_level(at), Expr::integer(bits(at)))).collect();
        let ty = Type::integer().with_nullable(false);
        Ok(Expr::Case(Box::new(Case { arms, otherwise: Expr::integer(0), ty })))
    }

    /// How many keys count in a row of the grouping.
    fn level(&mut self) -> Result<Expr> {
        let settings = self.settings();
        let Some(grouped) = &mut self.scope().grouped else { return Err(error::INVALID_GROUP_FUNC_USE.bare()) };
        let at = match grouped.level {
            Some(at) => at,
            None => {
                let aggregate = Aggregate::new(crate::scalar::aggregate::Kind::Count, false, Vec::new(), settings)?;
                grouped.calls.push(Call { aggregate, arguments: Vec::new() });
                *grouped.level.insert(grouped.calls.len() - 1)
            }
        };
        Ok(Expr::Column(grouped.keys.len() + at, Type::integer().with_nullable(false)))
    }

    pub fn call(&mut self, kind: crate::scalar::aggregate::Kind, list: &ast::FunctionArgumentList) -> Result<Call> {
        let distinct = matches!(list.duplicate_treatment, Some(ast::DuplicateTreatment::Distinct));
        let mut arguments = Vec::new();
        for argument in &list.args {
            match argument {
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => arguments.push(self.expr(expr)?),
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Wildcard) => {}
                other => return Err(SqlError::parse(format!("'{other}' at line 1"))),
            }
        }
        let (mut order, mut separator) = (Vec::new(), None);
        for clause in &list.clauses {
            match clause {
                ast::FunctionArgumentClause::OrderBy(keys) => {
                    let own = arguments.len();
                    for key in keys {
                        let at = match position(&key.expr) {
                            Some(number) if number == 0 || number > own => {
                                return Err(error::BAD_FIELD.with(&[&number, &"order clause"]));
                            }
                            at => at,
                        };
                        let key_expr = match at {
                            Some(number) => arguments[number - 1].clone(),
                            None => self.expr(&key.expr)?,
                        };
                        arguments.push(key_expr);
                        order.push(descends(&key.options));
                    }
                }
                ast::FunctionArgumentClause::Separator(value) => {
                    if let ast::Value::SingleQuotedString(text) | ast::Value::DoubleQuotedString(text) = &value.value {
                        separator = Some(text.clone());
                    }
                }
                other => return Err(SqlError::unsupported(other)),
            }
        }
        use crate::scalar::aggregate::Kind;
        // The least member is the first by its name.
        if let (Kind::Min | Kind::Max, Some(first)) = (kind, arguments.first_mut())
            && matches!(first.kind(), Enum | Set)
        {
            *first = present(first.clone());
        }
        let types: Vec<Type> = arguments.iter().map(Expr::ty).collect();
        let own = types.len() - order.len();
        let mut aggregate = Aggregate::new(kind, distinct, types[..own].to_vec(), self.settings())?;
        aggregate.arguments = types;
        aggregate.order = order;
        if let Some(separator) = separator {
            aggregate.separator = separator.into();
        }
        Ok(Call { aggregate, arguments })
    }

    /// VALUES(column) in ON DUPLICATE KEY UPDATE: what would have been inserted.
    /// VALUES(column) of ON DUPLICATE KEY UPDATE, whose block is the one at `depth`; it may stand in a subquery.
    fn values(&mut self, function: &ast::Function, depth: usize, base: usize) -> Result<Expr> {
        let ast::FunctionArguments::List(list) = &function.args else {
            return Err(SqlError::parse("'VALUES' at line 1"));
        };
        let [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Identifier(name)))] = &list.args[..]
        else {
            return Err(SqlError::parse("'VALUES' at line 1"));
        };
        let columns = &self.scopes[depth].tables[0].columns;
        let place = columns.iter().position(|column| column.name.eq_ignore_ascii_case(&name.value));
        let place = place.ok_or_else(|| error::BAD_FIELD.with(&[&name.value, &"field list"]))?;
        let ty = self.scopes[depth].type_at(place).with_nullable(true);
        let expr = Expr::Column(base + place, ty);
        Ok(if depth + 1 == self.scopes.len() { expr } else { self.read_inside(depth, expr) })
    }
}

/// A number alone names an argument, as in ORDER BY it names an item.
fn position(expr: &ast::Expr) -> Option<usize> {
    match expr {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::Number(digits, _) => digits.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

pub fn descends(options: &ast::OrderByOptions) -> bool {
    matches!(options.sort, Some(ast::OrderBySort::Desc))
}

/// Is there an aggregate in it, outside of subqueries?
pub fn has_aggregate(node: &ast::Expr) -> bool {
    seek(node, &|node| aggregate_of(node).is_some())
}

/// The aggregates in it, outside of subqueries; those around others first.
pub fn aggregates(node: &ast::Expr) -> Vec<&ast::Function> {
    aggregate_of(node).into_iter().chain(children(node).into_iter().flat_map(aggregates)).collect()
}

fn aggregate_of(node: &ast::Expr) -> Option<&ast::Function> {
    match node {
        ast::Expr::Function(function) if function.over.is_none() => {
            Aggregate::kind(&function.name.to_string()).map(|_| function)
        }
        _ => None,
    }
}

/// Is there a window function in it, outside of subqueries?
pub fn has_window(node: &ast::Expr) -> bool {
    seek(node, &|node| matches!(node, ast::Expr::Function(function) if function.over.is_some()))
}

/// Is there a subquery in it?
pub fn has_subquery(node: &ast::Expr) -> bool {
    seek(node, &|node| matches!(node, ast::Expr::Subquery(_) | ast::Expr::Exists { .. } | ast::Expr::InSubquery { .. }))
}

/// Is there a node like that? Subqueries are not entered.
fn seek(node: &ast::Expr, is_it: &dyn Fn(&ast::Expr) -> bool) -> bool {
    is_it(node) || children(node).into_iter().any(|child| seek(child, is_it))
}

fn children(node: &ast::Expr) -> Vec<&ast::Expr> {
    use ast::Expr as E;
    match node {
        E::IsFalse(e)
        | E::IsNotFalse(e)
        | E::IsTrue(e)
        | E::IsNotTrue(e)
        | E::IsNull(e)
        | E::IsNotNull(e)
        | E::IsUnknown(e)
        | E::IsNotUnknown(e)
        | E::Nested(e) => vec![e],
        E::UnaryOp { expr, .. }
        | E::Cast { expr, .. }
        | E::Convert { expr, .. }
        | E::Extract { expr, .. }
        | E::Ceil { expr, .. }
        | E::Floor { expr, .. }
        | E::Collate { expr, .. }
        | E::InSubquery { expr, .. } => vec![expr],
        E::BinaryOp { left, right, .. } | E::AnyOp { left, right, .. } | E::AllOp { left, right, .. } => {
            vec![left, right]
        }
        E::MemberOf(member) => vec![&member.value, &member.array],
        E::Position { expr, r#in } => vec![expr, r#in],
        E::Between { expr, low, high, .. } => vec![expr, low, high],
        E::Like { expr, pattern, .. } | E::RLike { expr, pattern, .. } => vec![expr, pattern],
        E::InList { expr, list, .. } => std::iter::once(&**expr).chain(list).collect(),
        E::Tuple(list) => list.iter().collect(),
        E::Substring { expr, substring_from, substring_for, .. } => {
            std::iter::once(&**expr).chain(substring_from.as_deref()).chain(substring_for.as_deref()).collect()
        }
        E::Trim { expr, trim_what, .. } => std::iter::once(&**expr).chain(trim_what.as_deref()).collect(),
        E::Interval(interval) => vec![&interval.value],
        E::Case { operand, conditions, else_result, .. } => {
            let arms = conditions.iter().flat_map(|arm| [&arm.condition, &arm.result]);
            operand.as_deref().into_iter().chain(arms).chain(else_result.as_deref()).collect()
        }
        E::Function(function) => {
            let over = match &function.over {
                Some(ast::WindowType::WindowSpec(spec)) => window_exprs(spec),
                _ => Vec::new(),
            };
            let arguments = match &function.args {
                ast::FunctionArguments::List(list) => &list.args[..],
                _ => &[],
            };
            let arguments = arguments.iter().filter_map(|argument| match argument {
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => Some(expr),
                _ => None,
            });
            arguments.chain(over).collect()
        }
        _ => Vec::new(),
    }
}

/// What a window is ordered by.
pub fn window_exprs(spec: &ast::WindowSpec) -> Vec<&ast::Expr> {
    spec.partition_by.iter().chain(spec.order_by.iter().map(|item| &item.expr)).collect()
}
