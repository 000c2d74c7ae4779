//! From sqlparser's tree to the bound expression.
//!
//! The binder knows types, operators and functions; it knows no tables. Whatever depends on the statement (columns, aggregates, subqueries, placeholders,
//! `@@variables`, DEFAULT, VALUES()) is the hook's: it is asked first, for every node. What the binder decides (by which type two sides compare, in which collation) stands in
//! the tree it gives, so that a row is evaluated without asking again.

mod call;
pub mod constant;
mod literal;
mod operator;
pub mod types;

use sqlparser::ast::{self, BinaryOperator, UnaryOperator};

use crate::error::{self, Result, SqlError};
use crate::scalar::cast;
use crate::scalar::context::{EvalContext, SqlMode};
use crate::scalar::expr::{Case, Compare, Comparison, Derivation, Domain, Expr, Like, Operator};
use crate::scalar::temporal::{Date, DateTime, Unit};
use crate::types::{Collation, Kind, Type};
use crate::value::Value;

pub use operator::{arithmetic, between, compare, comparison, in_list, sort_literals};
pub use types::{
    as_sent, charset_type, common_type, data_type, display_length, merge_collations, string_type, unified, union_type,
};

/// What binding depends on: part of a cached plan's key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    pub sql_mode: SqlMode,
    /// `collation_connection`: of literals.
    pub collation: Collation,
    pub div_precision_increment: u8,
    /// `sql_select_limit`: of a SELECT that has no LIMIT of its own.
    pub select_limit: u64,
    /// Changes must find their rows by a key, or say LIMIT.
    pub safe_updates: bool,
    /// `max_join_size`, which counts unless `sql_big_selects` is on.
    pub max_join_size: u64,
    pub big_selects: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            sql_mode: SqlMode::DEFAULT,
            collation: Collation::DEFAULT,
            div_precision_increment: 4,
            select_limit: u64::MAX,
            safe_updates: false,
            max_join_size: u64::MAX,
            big_selects: true,
        }
    }
}

/// Answers a node that is not the binder's, or `None` for one that is.
pub type Hook<'h> = dyn FnMut(&ast::Expr) -> Result<Option<Expr>> + 'h;

pub struct Binder<'b> {
    settings: &'b Settings,
    hook: &'b mut Hook<'b>,
}

/// The outermost expression of a result: what a client sees of it. The same expression where its stored form is shown as it is.
pub fn present(expr: Expr) -> Expr {
    let ty = expr.ty();
    match ty.kind {
        Kind::Enum | Kind::Set | Kind::Bit | Kind::Timestamp => {
            let shown = cast::present_type(&ty);
            Expr::Present(Box::new(expr), shown)
        }
        _ => expr,
    }
}

impl<'b> Binder<'b> {
    pub fn new(settings: &'b Settings, hook: &'b mut Hook<'b>) -> Binder<'b> {
        Binder { settings, hook }
    }

    pub fn bind(&mut self, node: &ast::Expr) -> Result<Expr> {
        // Binding takes more stack for a level than whatever walks the bound tree afterwards, so it may use half.
        if !stdx::stack::is_half_free() {
            return Err(error::STACK_OVERRUN.with(&[&"the expression is nested too deep"]));
        }
        match (self.hook)(node) {
            Ok(Some(expr)) => Ok(expr),
            Ok(None) => self.bind_own(node),
            Err(error) => Err(error),
        }
    }

    /// For a value that goes to a column of that type: 0x41 is a number to a number.
    pub fn bind_assignment(&mut self, node: &ast::Expr, target: &Type) -> Result<Expr> {
        let expr = self.bind(node)?;
        let numeric = target.kind.is_number() || matches!(target.kind, Kind::Bit | Kind::Year);
        Ok(match target.kind {
            _ if numeric => literal::hex_as_number(expr),
            kind if kind.is_bytes() => as_sent(expr),
            _ => expr,
        })
    }

    fn bind_own(&mut self, node: &ast::Expr) -> Result<Expr> {
        use ast::Expr as Ast;
        match node {
            Ast::Value(value) => literal::literal(&value.value, self.settings),
            Ast::Nested(inner) => self.bind(inner),
            Ast::Tuple(items) if items.len() == 1 => self.bind(&items[0]),
            Ast::Tuple(_) => Err(error::OPERAND_COLUMNS.with(&[&1])),
            Ast::Identifier(name) if name.quote_style.is_none() => self.bare_word(&name.value),
            Ast::Identifier(name) => Err(error::BAD_FIELD.with(&[&name.value, &"field list"])),
            Ast::CompoundIdentifier(parts) => {
                let name: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
                Err(error::BAD_FIELD.with(&[&name.join("."), &"field list"]))
            }
            Ast::UnaryOp { op, expr } => self.unary(*op, expr),
            Ast::BinaryOp { left, op, right } => self.binary(node, left, op, right),
            Ast::IsNull(inner) => Ok(is_null(self.bind(inner)?)),
            Ast::IsUnknown(inner) => Ok(Expr::IsNull(Box::new(self.bind(inner)?))),
            Ast::IsNotNull(inner) | Ast::IsNotUnknown(inner) => {
                Ok(negated(Expr::IsNull(Box::new(self.bind(inner)?)), true))
            }
            Ast::IsTrue(inner) => Ok(Expr::IsTruth(Box::new(self.bind(inner)?), true)),
            Ast::IsFalse(inner) => Ok(Expr::IsTruth(Box::new(self.bind(inner)?), false)),
            Ast::IsNotTrue(inner) => Ok(negated(Expr::IsTruth(Box::new(self.bind(inner)?), true), true)),
            Ast::IsNotFalse(inner) => Ok(negated(Expr::IsTruth(Box::new(self.bind(inner)?), false), true)),
            // `a BETWEEN b AND c BETWEEN d AND e`: c BETWEEN d AND e is the upper bound.
            Ast::Between { expr, negated, low, high } if matches!(**expr, Ast::Between { .. }) => {
                let Ast::Between { expr: first, negated: first_negated, low: first_low, high: first_high } = &**expr
                else {
                    return Err(SqlError::parse("'BETWEEN'"));
                };
                let (expr, low, high) = (first_high.clone(), low.clone(), high.clone());
                let high = Box::new(Ast::Between { expr, negated: *negated, low, high });
                let (expr, low) = (first.clone(), first_low.clone());
                self.bind(&Ast::Between { expr, negated: *first_negated, low, high })
            }
            Ast::Between { expr, negated, low, high } => {
                let (needle, low, high) = (self.bind(expr)?, self.bind(low)?, self.bind(high)?);
                between(self.settings, needle, low, high, *negated)
            }
            Ast::InList { expr, list, negated } => self.in_list(expr, list, *negated),
            Ast::Like { negated, expr, pattern, escape_char, any: false } => {
                self.like(expr, pattern, escape_char.as_deref(), *negated)
            }
            Ast::RLike { negated: not, expr, pattern, .. } => {
                let arguments = vec![self.bind(expr)?, self.bind(pattern)?];
                Ok(negated(self.call_named("regexp_like", arguments)?, *not))
            }
            Ast::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref())
            }
            Ast::Cast { expr, data_type, kind: ast::CastKind::Cast, format: None } => self.cast(expr, data_type),
            Ast::Convert { expr, data_type, charset, is_try: false, styles, .. } if styles.is_empty() => {
                self.convert(expr, data_type.as_ref(), charset.as_ref())
            }
            Ast::Collate { expr, collation } => self.collate(expr, collation),
            Ast::Prefixed { prefix, value } => self.introduced(&prefix.value, value),
            Ast::TypedString(typed) => literal::typed(typed, self.settings),
            Ast::Interval(_) => Err(SqlError::parse(format!("'{node}'"))),
            Ast::Exists { .. } | Ast::Subquery(_) | Ast::InSubquery { .. } | Ast::AnyOp { .. } | Ast::AllOp { .. } => {
                Err(SqlError::unsupported("subquery in this place"))
            }
            other => self.call(other),
        }
    }

    /// A word that is no column: CURRENT_USER, and 0b101, which the parser takes for a name.
    fn bare_word(&mut self, word: &str) -> Result<Expr> {
        if word.eq_ignore_ascii_case("current_user") {
            return self.call_named("current_user", Vec::new());
        }
        match word.strip_prefix("0b") {
            Some(digits) if !digits.is_empty() && digits.bytes().all(|digit| matches!(digit, b'0' | b'1')) => {
                literal::bits(digits)
            }
            _ => Err(error::BAD_FIELD.with(&[&word, &"field list"])),
        }
    }

    fn unary(&mut self, op: UnaryOperator, inner: &ast::Expr) -> Result<Expr> {
        match op {
            UnaryOperator::Plus => self.bind(inner),
            UnaryOperator::Not | UnaryOperator::BangNot => Ok(negated(self.bind(inner)?, true)),
            UnaryOperator::Minus => {
                if let Some(literal) = literal::negative(inner) {
                    return Ok(literal);
                }
                let text = operator::text_of(format_args!("-({inner})"));
                let inner = literal::widened(self.bind(inner)?);
                Ok(arithmetic(self.settings, Operator::Negate, inner, Expr::null(), text))
            }
            UnaryOperator::BitwiseNot => {
                let text = operator::text_of(format_args!("~({inner})"));
                let inner = self.bind(inner)?;
                Ok(arithmetic(self.settings, Operator::BitNot, inner, Expr::null(), text))
            }
            other => Err(SqlError::unsupported(other)),
        }
    }

    fn binary(&mut self, node: &ast::Expr, left: &ast::Expr, op: &BinaryOperator, right: &ast::Expr) -> Result<Expr> {
        if let Some(comparison) = operator::comparison(op) {
            return self.comparison(comparison, left, right);
        }
        if let Some(operator) = operator::operator(op) {
            if let Some(shifted) = self.date_arithmetic(operator, left, right)? {
                return Ok(shifted);
            }
            let text = operator::text_of_chain(node);
            let (left, right) = (self.bind(left)?, self.bind(right)?);
            return Ok(arithmetic(self.settings, operator, left, right, text));
        }
        match op {
            BinaryOperator::And => self.chain(node, &BinaryOperator::And).map(Expr::And),
            BinaryOperator::StringConcat if self.settings.sql_mode.has(SqlMode::PIPES_AS_CONCAT) => {
                let arguments = self.chain(node, &BinaryOperator::StringConcat)?;
                self.call_named("concat", arguments)
            }
            BinaryOperator::Or | BinaryOperator::StringConcat => self.chain(node, op).map(Expr::Or),
            BinaryOperator::Xor => {
                let (left, right) = (self.bind(left)?, self.bind(right)?);
                Ok(Expr::Xor(Box::new([left, right])))
            }
            BinaryOperator::Custom(word) if word == crate::parse::SOUNDS_LIKE => {
                let (left, right) = (self.bind(left)?, self.bind(right)?);
                let (left, right) = (self.call_named("soundex", vec![left])?, self.call_named("soundex", vec![right])?);
                compare(self.settings, Comparison::Equal, left, right)
            }
            BinaryOperator::Regexp => {
                let arguments = vec![self.bind(left)?, self.bind(right)?];
                self.call_named("regexp_like", arguments)
            }
            BinaryOperator::Arrow | BinaryOperator::LongArrow => {
                let arguments = vec![self.bind(left)?, self.bind(right)?];
                let found = self.call_named("json_extract", arguments)?;
                if *op == BinaryOperator::Arrow { Ok(found) } else { self.call_named("json_unquote", vec![found]) }
            }
            other => Err(SqlError::unsupported(other)),
        }
    }

    /// The sides of `a AND b AND c` in a row: a long chain is no deep tree, whichever way it leans.
    fn chain(&mut self, node: &ast::Expr, op: &BinaryOperator) -> Result<Vec<Expr>> {
        let (mut sides, mut waiting) = (Vec::new(), vec![node]);
        while let Some(next) = waiting.pop() {
            match next {
                ast::Expr::BinaryOp { left, op: found, right } if found == op => waiting.extend([&**right, &**left]),
                side => sides.push(self.bind(side)?),
            }
        }
        Ok(sides)
    }

    /// Rows compare part by part.
    fn comparison(&mut self, op: Comparison, left: &ast::Expr, right: &ast::Expr) -> Result<Expr> {
        let (Some(a), Some(b)) = (row_parts(left), row_parts(right)) else {
            let (left, right) = (self.bind(left)?, self.bind(right)?);
            return compare(self.settings, op, left, right);
        };
        if a.len() != b.len() {
            return Err(error::OPERAND_COLUMNS.with(&[&a.len()]));
        }
        let nested = a.iter().chain(&b).any(|part| row_parts(part).is_some());
        if nested {
            return Err(SqlError::unsupported("rows within rows"));
        }
        let mut pairs = Vec::new();
        for (a, b) in a.into_iter().zip(b) {
            pairs.push((self.bind(a)?, self.bind(b)?));
        }
        compare_rows(self.settings, op, &pairs)
    }

    fn in_list(&mut self, needle: &ast::Expr, list: &[ast::Expr], not: bool) -> Result<Expr> {
        if row_parts(needle).is_some() {
            let arms = list.iter().map(|candidate| self.comparison(Comparison::Equal, needle, candidate));
            return Ok(negated(Expr::or(arms.collect::<Result<_>>()?), not));
        }
        let needle = self.bind(needle)?;
        let list = list.iter().map(|candidate| self.bind(candidate)).collect::<Result<_>>()?;
        in_list(self.settings, needle, list, not)
    }

    fn like(
        &mut self,
        text: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::Expr>,
        negated: bool,
    ) -> Result<Expr> {
        let (text, pattern) = (present(self.bind(text)?), present(self.bind(pattern)?));
        let escape = match escape {
            Some(escape) => Some(self.bind(escape)?),
            None if self.settings.sql_mode.has(SqlMode::NO_BACKSLASH_ESCAPES) => {
                Some(Expr::Literal(Value::text(""), Type::text(0, self.settings.collation)))
            }
            None => None,
        };
        let (text, pattern) = match (text.kind().is_bytes(), pattern.kind().is_bytes()) {
            (true, false) => (text, as_sent(pattern)),
            (false, true) => (as_sent(text), pattern),
            _ => (text, pattern),
        };
        let collation = merge_collations(&[&text, &pattern], "like", self.settings)?;
        Ok(Expr::Like(Box::new(Like { text, pattern, escape, collation, negated })))
    }

    fn case(
        &mut self,
        operand: Option<&ast::Expr>,
        arms: &[ast::CaseWhen],
        otherwise: Option<&ast::Expr>,
    ) -> Result<Expr> {
        let operand = operand.map(|operand| self.bind(operand)).transpose()?;
        let mut bound = Vec::with_capacity(arms.len());
        for arm in arms {
            let condition = self.bind(&arm.condition)?;
            let condition = match &operand {
                Some(operand) => operator::compare_when(self.settings, operand.clone(), condition)?,
                None => chooser(condition),
            };
            bound.push((condition, self.bind(&arm.result)?));
        }
        let otherwise = otherwise.map_or(Ok(Expr::null()), |otherwise| self.bind(otherwise))?;
        self.finish_case(bound, otherwise)
    }

    fn finish_case(&self, mut arms: Vec<(Expr, Expr)>, mut otherwise: Expr) -> Result<Expr> {
        let results: Vec<&Expr> = arms.iter().map(|(_, result)| result).chain([&otherwise]).collect();
        let ty = types::common_type(&results, "case", self.settings)?;
        if ty.kind.is_bytes() {
            arms = arms.into_iter().map(|(condition, result)| (condition, as_sent(result))).collect();
            otherwise = as_sent(otherwise);
        }
        Ok(Expr::Case(Box::new(Case { arms, otherwise, ty })))
    }

    fn cast(&mut self, inner: &ast::Expr, to: &ast::DataType) -> Result<Expr> {
        let inner = self.bind(inner)?;
        let to = types::cast_type(to, &inner, self.settings)?;
        let inner = match inner.kind() {
            _ if to.kind.is_number() => literal::hex_as_number(inner),
            Kind::Enum | Kind::Set | Kind::Bit if to.kind.is_temporal() => present(inner),
            _ => inner,
        };
        Ok(Expr::Cast(Box::new(inner), to))
    }

    fn convert(
        &mut self,
        inner: &ast::Expr,
        to: Option<&ast::DataType>,
        charset: Option<&ast::ObjectName>,
    ) -> Result<Expr> {
        match (to, charset) {
            (Some(to), _) => self.cast(inner, to),
            (None, Some(charset)) => {
                let inner = self.bind(inner)?;
                let to = types::charset_type(&charset.to_string(), &inner)?;
                Ok(Expr::Cast(Box::new(present(inner)), to))
            }
            (None, None) => Err(SqlError::parse("'CONVERT'")),
        }
    }

    fn collate(&mut self, inner: &ast::Expr, collation: &ast::ObjectName) -> Result<Expr> {
        let name = collation.to_string();
        let collation = Collation::by_name(name.trim_matches(['\'', '`', '"']))?;
        let inner = present(self.bind(inner)?);
        let ty = inner.ty();
        let inner = if ty.is_string() {
            inner
        } else {
            Expr::Cast(Box::new(inner), types::charset_type("utf8mb4", &Expr::null())?)
        };
        let mut ty = inner.ty();
        let fits = ty.charset() == collation.charset() || inner.derivation() >= Derivation::Coercible;
        if !fits {
            return Err(error::COLLATION_CHARSET_MISMATCH.with(&[&collation.name(), &ty.charset().name()]));
        }
        ty.collation = collation;
        Ok(Expr::Collate(Box::new(inner), ty))
    }

    /// `_utf8mb4'text'`, `_binary'text'`; `BINARY text` comes here too.
    fn introduced(&mut self, prefix: &str, value: &ast::Expr) -> Result<Expr> {
        let name = prefix.strip_prefix('_').unwrap_or(prefix);
        let inner = self.bind(value)?;
        let to = types::charset_type(name, &inner)?;
        match inner {
            Expr::Literal(Value::Text(text), ty) if to.kind.is_text() => {
                Ok(Expr::Literal(Value::Text(text), Type { collation: to.collation, ..ty }))
            }
            // Bytes that are text in that set are a literal of it; others are told of where they are used.
            Expr::Literal(value @ Value::Bytes(_), ty) if to.kind.is_text() => {
                let mut ctx = EvalContext { sql_mode: self.settings.sql_mode, ..EvalContext::new() };
                match cast::cast(value.clone(), &ty, &to, &mut ctx) {
                    Ok(text @ Value::Text(_)) if ctx.warnings.count() == 0 => Ok(Expr::Literal(text, to)),
                    _ => Ok(Expr::Cast(Box::new(Expr::Literal(value, ty)), to)),
                }
            }
            other => Ok(Expr::Cast(Box::new(other), to)),
        }
    }

    /// `date + INTERVAL 1 DAY`, from either side.
    fn date_arithmetic(&mut self, op: Operator, left: &ast::Expr, right: &ast::Expr) -> Result<Option<Expr>> {
        let (date, interval, name) = match (op, left, right) {
            (Operator::Add, date, ast::Expr::Interval(interval)) => (date, interval, "date_add"),
            (Operator::Add, ast::Expr::Interval(interval), date) => (date, interval, "date_add"),
            (Operator::Subtract, date, ast::Expr::Interval(interval)) => (date, interval, "date_sub"),
            _ => return Ok(None),
        };
        let (number, unit) = self.interval(interval)?;
        let date = self.bind(date)?;
        self.call_with_unit(name, vec![date, number], unit).map(Some)
    }

    fn interval(&mut self, interval: &ast::Interval) -> Result<(Expr, Unit)> {
        let field = interval.leading_field.as_ref().map(ToString::to_string).unwrap_or_default();
        let unit = Unit::parse(&field).ok_or_else(|| SqlError::parse(format!("'{interval}'")))?;
        Ok((self.bind(&interval.value)?, unit))
    }
}

/// The condition of CASE and IF: a document is the number that it is, while WHERE and NOT ask whether it differs from 0.
fn chooser(condition: Expr) -> Expr {
    match condition.kind() {
        Kind::Json => Expr::Cast(Box::new(condition), Type::double()),
        _ => condition,
    }
}

/// IS NULL, which finds the zero dates of a column that is NOT NULL: what other programs call no date.
fn is_null(inner: Expr) -> Expr {
    let zero = match &inner {
        Expr::Column(_, ty) if !ty.nullable && ty.kind == Kind::Date => Value::Date(Date::ZERO),
        Expr::Column(_, ty) if !ty.nullable && ty.kind == Kind::DateTime => Value::DateTime(DateTime::ZERO),
        _ => return Expr::IsNull(Box::new(inner)),
    };
    let ty = inner.ty();
    let compare =
        Compare { op: Comparison::Equal, left: inner, right: Expr::Literal(zero, ty), domain: Domain::DateTime };
    Expr::Compare(Box::new(compare))
}

/// Rows compare part by part.
pub fn compare_rows(settings: &Settings, op: Comparison, pairs: &[(Expr, Expr)]) -> Result<Expr> {
    let [(left, right), rest @ ..] = pairs else { return Ok(Expr::truth(true)) };
    let one = |op, (left, right): &(Expr, Expr)| compare(settings, op, left.clone(), right.clone());
    if rest.is_empty() {
        return compare(settings, op, left.clone(), right.clone());
    }
    match op {
        Comparison::Equal | Comparison::NullSafeEqual => {
            Ok(Expr::And(pairs.iter().map(|pair| one(op, pair)).collect::<Result<_>>()?))
        }
        Comparison::NotEqual => Ok(Expr::Or(pairs.iter().map(|pair| one(op, pair)).collect::<Result<_>>()?)),
        _ => {
            let strict = match op {
                Comparison::LessEqual => Comparison::Less,
                Comparison::GreaterEqual => Comparison::Greater,
                strict => strict,
            };
            let (decides, ties) = (one(strict, &pairs[0])?, one(Comparison::Equal, &pairs[0])?);
            let rest = compare_rows(settings, op, rest)?;
            Ok(Expr::Or(vec![decides, Expr::And(vec![ties, rest])]))
        }
    }
}

/// NOT, put into the node where it has a place for it.
pub fn negated(expr: Expr, not: bool) -> Expr {
    match (expr, not) {
        (expr, false) => expr,
        (Expr::Between(mut node), true) => {
            node.negated = !node.negated;
            Expr::Between(node)
        }
        (Expr::In(mut node), true) => {
            node.negated = !node.negated;
            Expr::In(node)
        }
        (Expr::Like(mut node), true) => {
            node.negated = !node.negated;
            Expr::Like(node)
        }
        (expr, true) => Expr::Not(Box::new(expr)),
    }
}

/// The parts of `(a, b)` and `ROW(a, b)`.
pub fn row_parts(node: &ast::Expr) -> Option<Vec<&ast::Expr>> {
    match node {
        ast::Expr::Tuple(parts) if parts.len() > 1 => Some(parts.iter().collect()),
        ast::Expr::Nested(inner) => row_parts(inner),
        ast::Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("row") => {
            call::argument_nodes(&function.args).ok().filter(|parts| parts.len() > 1)
        }
        _ => None,
    }
}
