//! Binding of expressions: from the syntax tree to the bound tree.
//!
//! The binder knows types, operators and functions, but no tables. The hook is called first for every node and binds
//! what depends on the statement: columns, aggregates, subqueries, placeholders, `@@variables`, DEFAULT, VALUES().
//! Decisions of the binder (comparison types, collations) are in the tree that it returns, so evaluation does not
//! repeat them.

mod call;
pub mod constant;
mod literal;
mod operator;
pub mod types;

use crate::scalar::charsets;
use std::mem::MaybeUninit;

use operator::ChainText;
use syntax::tree as ast;

use crate::charset;
use crate::error;
use crate::scalar::cast;
use crate::scalar::compare;
use crate::scalar::modes::SqlMode;
use crate::scalar::operation::Operator;
use crate::scalar::operators;
use crate::scalar::settings::Settings;
use crate::scalar::temporal::{Date, DateTime};
use crate::types::{CharsetName as _, CollationName as _, Kind, MysqlExpr as _, MysqlType as _, Type};
use crate::value::Value;
use datum::Result;
use query::nodes::comparison::{Comparison, ComparisonType};
use query::nodes::expr::{Compare, Expr};

pub use operator::{arithmetic, between, compare, comparison, in_list};
pub use types::{
    as_sent, charset_type, common_type, data_type, display_length, merge_collations, string_type, unified, union_type,
};

/// Binds a node that depends on the statement; `None` leaves it to the binder.
pub type Hook<'h> = dyn FnMut(&ast::Expr) -> Result<Option<Expr>> + 'h;

pub struct Binder<'b> {
    settings: &'b Settings,
    hook: &'b mut Hook<'b>,
}

/// Converts the outermost expression of a result to its shown form, if that differs from the stored form.
pub fn present(expr: Expr) -> Expr {
    let ty = expr.ty();
    match ty.kind() {
        Kind::Enum | Kind::Set | Kind::Bit | Kind::Timestamp => {
            let shown = cast::present_type(&ty);
            operators::present(expr, shown)
        }
        _ => expr,
    }
}

impl<'b> Binder<'b> {
    pub fn new(settings: &'b Settings, hook: &'b mut Hook<'b>) -> Binder<'b> {
        Binder { settings, hook }
    }

    pub fn bind(&mut self, node: &ast::Expr) -> Result<Expr> {
        check_stack()?;
        match (self.hook)(node) {
            Ok(Some(expr)) => Ok(expr),
            Ok(None) => self.bind_own(node),
            Err(error) => Err(error),
        }
    }

    /// Binds a value that is assigned to a column of that type: 0x41 is a number for a numeric column.
    pub fn bind_assignment(&mut self, node: &ast::Expr, target: &Type) -> Result<Expr> {
        let expr = self.bind(node)?;
        let numeric = target.kind().is_number() || matches!(target.kind(), Kind::Bit | Kind::Year);
        Ok(match target.kind() {
            _ if numeric => literal::hex_as_number(expr),
            kind if kind.is_bytes() => as_sent(expr),
            _ => expr,
        })
    }

    fn bind_own(&mut self, node: &ast::Expr) -> Result<Expr> {
        use ast::ExprKind as Ast;
        match &node.kind {
            Ast::Literal(value) => literal::literal(value, self.settings),
            Ast::Introduced { charset, literal } => self.introduced(charset, literal),
            Ast::Column(name) => Err(error::BAD_FIELD.raise(&[&name.dotted(), &"field list"])),
            Ast::Parameter(_) => Err(error::wrong_syntax("'?'")),
            Ast::UserVariable(_) | Ast::SystemVariable { scope: _, name: _ } | Ast::Assign { name: _, value: _ } => {
                Err(error::not_supported("variable in this place"))
            }
            Ast::Default => Err(error::wrong_syntax("'DEFAULT' at line 1")),
            Ast::DefaultOf(_) => Err(error::not_supported("DEFAULT(column)")),
            Ast::InsertedValue(_) => Err(call::unknown("values")),
            Ast::Row(_) => Err(error::OPERAND_COLUMNS.raise(&[&1])),
            Ast::Unary { op, operand } => self.unary(*op, operand),
            Ast::And(sides) => self.conditions(sides).map(Expr::And),
            Ast::Or(sides) => self.conditions(sides).map(Expr::Or),
            Ast::Xor(sides) => self.xor(&sides.iter().collect::<Vec<_>>(), None),
            Ast::Concat(sides) => {
                let arguments = self.all(sides)?;
                self.call_named("concat", arguments)
            }
            Ast::Chain { first, links } => self.chain(first, links, None),
            Ast::Compare { op, left, right } => self.comparison(operator::comparison(*op), left, right),
            Ast::Is { operand, test, negated: not } => self.is(operand, *test, *not),
            Ast::Between { operand, low, high, negated } => {
                let (needle, low, high) = (self.bind(operand)?, self.bind(low)?, self.bind(high)?);
                between(self.settings, needle, low, high, *negated)
            }
            Ast::InList { operand, list, negated } => self.in_list(operand, list, *negated),
            Ast::Like { operand, pattern, escape, negated } => self.like(operand, pattern, escape.as_deref(), *negated),
            Ast::Regexp { operand, pattern, negated: not } => {
                let arguments = vec![self.bind(operand)?, self.bind(pattern)?];
                Ok(negated(self.call_named("regexp_like", arguments)?, *not))
            }
            Ast::SoundsLike { left, right } => {
                let (left, right) = (self.bind(left)?, self.bind(right)?);
                let (left, right) = (self.call_named("soundex", vec![left])?, self.call_named("soundex", vec![right])?);
                compare(self.settings, Comparison::Equal, left, right)
            }
            Ast::JsonPath { column, path, unquote } => {
                let column = ast::Expr { kind: Ast::Column(column.clone()), span: node.span };
                let arguments = vec![self.bind(&column)?, literal::string(path, self.settings)];
                let found = self.call_named("json_extract", arguments)?;
                if *unquote { self.call_named("json_unquote", vec![found]) } else { Ok(found) }
            }
            Ast::Collate { operand, collation } => self.collate(operand, collation),
            Ast::Case { operand, arms, otherwise } => self.case(operand.as_deref(), arms, otherwise.as_deref()),
            Ast::Cast { operand: _, to: _, array: true } => {
                Err(error::not_supported("multi-valued indexes: CAST ... AS ... ARRAY"))
            }
            Ast::Cast { operand, to, array: false } => self.cast(operand, to),
            Ast::CastAtZone { operand: _, zone: _, scale: _ } => Err(error::not_supported("CAST ... AT TIME ZONE")),
            Ast::ConvertUsing { operand, charset } => {
                let inner = self.bind(operand)?;
                in_charset(inner, charset)
            }
            Ast::Exists(_)
            | Ast::Subquery(_)
            | Ast::InQuery { operand: _, query: _, negated: _ }
            | Ast::Quantified { op: _, left: _, all: _, query: _ } => {
                Err(error::not_supported("subquery in this place"))
            }
            Ast::Match { columns: _, against: _, mode: _ } => Err(error::not_supported("MATCH ... AGAINST")),
            Ast::Function(_)
            | Ast::MemberOf { value: _, array: _ }
            | Ast::DateShift { operand: _, interval: _, subtract: _ }
            | Ast::Extract { unit: _, operand: _ }
            | Ast::TimestampAdd { unit: _, count: _, operand: _ }
            | Ast::TimestampDiff { unit: _, from: _, to: _ }
            | Ast::GetFormat { of: _, region: _ }
            | Ast::Trim { side: _, remove: _, operand: _ }
            | Ast::Char { numbers: _, charset: _ }
            | Ast::WeightString { operand: _, pad: _ }
            | Ast::JsonValue(_) => self.call(&node.kind),
        }
    }

    fn unary(&mut self, op: ast::UnaryOp, inner: &ast::Expr) -> Result<Expr> {
        match op {
            ast::UnaryOp::Plus => self.bind(inner),
            ast::UnaryOp::Not => Ok(negated(self.bind(inner)?, true)),
            ast::UnaryOp::Minus => {
                if let Some(literal) = literal::negative(inner) {
                    return Ok(literal);
                }
                let text = operator::text_of(format_args!("-({inner})"));
                let inner = literal::widened(self.bind(inner)?);
                Ok(arithmetic(self.settings, Operator::Negate, inner, Expr::null(), text))
            }
            ast::UnaryOp::BitNot => {
                let text = operator::text_of(format_args!("~({inner})"));
                let inner = self.bind(inner)?;
                Ok(arithmetic(self.settings, Operator::BitNot, inner, Expr::null(), text))
            }
        }
    }

    fn is(&mut self, operand: &ast::Expr, test: ast::Truth, not: bool) -> Result<Expr> {
        let operand = self.bind(operand)?;
        Ok(match test {
            ast::Truth::Null if !not => is_null(operand),
            ast::Truth::Null | ast::Truth::Unknown => negated(Expr::IsNull(Box::new(operand)), not),
            ast::Truth::True => negated(Expr::IsTruth(Box::new(operators::truth(operand)), true), not),
            ast::Truth::False => negated(Expr::IsTruth(Box::new(operators::truth(operand)), false), not),
        })
    }

    fn all(&mut self, list: &[ast::Expr]) -> Result<Vec<Expr>> {
        list.iter().map(|item| self.bind(item)).collect()
    }

    fn conditions(&mut self, list: &[ast::Expr]) -> Result<Vec<Expr>> {
        list.iter().map(|item| Ok(operators::truth(self.bind(item)?))).collect()
    }

    /// `first op operand op operand ...`, from the left. `known`: the first so many links have this value.
    pub fn chain(&mut self, first: &ast::Expr, links: &[ast::Link], mut known: Option<(usize, Expr)>) -> Result<Expr> {
        self.links(first, links, &mut known, &mut ChainText::default())
    }

    /// Recursion is as deep as the resulting tree, as it is for every walk of that tree.
    fn links(
        &mut self,
        first: &ast::Expr,
        links: &[ast::Link],
        known: &mut Option<(usize, Expr)>,
        text: &mut ChainText,
    ) -> Result<Expr> {
        let reserved = MaybeUninit::<[u8; LINK_BYTES]>::uninit();
        std::hint::black_box(&reserved);
        check_stack()?;
        if let Some((_, value)) = known.take_if(|(count, _)| *count == links.len()) {
            text.begin(first);
            links.iter().for_each(|ast::Link { op, operand }| text.link(*op, operand));
            return Ok(value);
        }
        let Some((ast::Link { op, operand }, before)) = links.split_last() else {
            text.begin(first);
            return self.bind(first);
        };
        let left = self.links(first, before, known, text)?;
        let right = self.bind(operand)?;
        text.link(*op, operand);
        Ok(arithmetic(self.settings, operator::operator(*op), left, right, text.shown()))
    }

    /// `a XOR b XOR ...`, from the left. `known`: the first so many sides have this value.
    pub fn xor(&mut self, sides: &[&ast::Expr], mut known: Option<(usize, Expr)>) -> Result<Expr> {
        self.sides(sides, &mut known)
    }

    /// Recurses as `links` does.
    fn sides(&mut self, sides: &[&ast::Expr], known: &mut Option<(usize, Expr)>) -> Result<Expr> {
        let reserved = MaybeUninit::<[u8; LINK_BYTES]>::uninit();
        std::hint::black_box(&reserved);
        check_stack()?;
        if let Some((_, value)) = known.take_if(|(count, _)| *count == sides.len()) {
            return Ok(value);
        }
        match sides {
            [] => Err(error::wrong_syntax("'XOR' at line 1")),
            [one] => self.bind(one),
            [before @ .., last] => {
                let (left, right) = (self.sides(before, known)?, self.bind(last)?);
                Ok(Expr::Xor(Box::new([operators::truth(left), operators::truth(right)])))
            }
        }
    }

    /// Rows compare part by part.
    fn comparison(&mut self, op: Comparison, left: &ast::Expr, right: &ast::Expr) -> Result<Expr> {
        let (Some(a), Some(b)) = (row_parts(left), row_parts(right)) else {
            let (left, right) = (self.bind(left)?, self.bind(right)?);
            return compare(self.settings, op, left, right);
        };
        if a.len() != b.len() {
            return Err(error::OPERAND_COLUMNS.raise(&[&a.len()]));
        }
        let nested = a.iter().chain(b).any(|part| row_parts(part).is_some());
        if nested {
            return Err(error::not_supported("rows within rows"));
        }
        let mut pairs = Vec::new();
        for (a, b) in a.iter().zip(b) {
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
        Ok(self::negated(operators::like(text, pattern, escape, collation), negated))
    }

    fn case(&mut self, operand: Option<&ast::Expr>, arms: &[ast::Arm], otherwise: Option<&ast::Expr>) -> Result<Expr> {
        let operand = operand.map(|operand| self.bind(operand)).transpose()?;
        let mut bound = Vec::with_capacity(arms.len());
        for ast::Arm { condition, result } in arms {
            let condition = self.bind(condition)?;
            let condition = match &operand {
                Some(operand) => operator::compare_when(self.settings, operand.clone(), condition)?,
                None => chooser(condition),
            };
            bound.push((condition, self.bind(result)?));
        }
        let otherwise = otherwise.map_or(Ok(Expr::null()), |otherwise| self.bind(otherwise))?;
        self.finish_case(bound, otherwise)
    }

    fn finish_case(&self, mut arms: Vec<(Expr, Expr)>, mut otherwise: Expr) -> Result<Expr> {
        let results: Vec<&Expr> = arms.iter().map(|(_, result)| result).chain([&otherwise]).collect();
        let ty = types::common_type(&results, "case", self.settings)?;
        if ty.kind().is_bytes() {
            arms = arms.into_iter().map(|(condition, result)| (condition, as_sent(result))).collect();
            otherwise = as_sent(otherwise);
        }
        Ok(operators::case(arms, otherwise, ty))
    }

    fn cast(&mut self, inner: &ast::Expr, to: &ast::CastType) -> Result<Expr> {
        let inner = self.bind(inner)?;
        match to {
            // Characters of the set `binary` are bytes.
            ast::CastType::Char { length, charset: Some(charset) } if charset.eq_ignore_ascii_case("binary") => {
                self.cast_to(inner, &ast::CastType::Binary(*length))
            }
            // A text in another character set is converted first, so that its characters are counted.
            ast::CastType::Char { length, charset: Some(charset) } => {
                let turned = in_charset(inner, charset)?;
                if length.is_none() {
                    return Ok(turned);
                }
                let cut = self.cast_to(turned, &ast::CastType::Char { length: *length, charset: None })?;
                in_charset(cut, charset)
            }
            to => self.cast_to(inner, to),
        }
    }

    fn cast_to(&mut self, inner: Expr, to: &ast::CastType) -> Result<Expr> {
        let to = types::cast_type(to, &inner, self.settings)?;
        let inner = match inner.kind() {
            _ if to.kind().is_number() => literal::hex_as_number(inner),
            Kind::Enum | Kind::Set | Kind::Bit if to.kind().is_temporal() => present(inner),
            _ => inner,
        };
        Ok(operators::cast(inner, to))
    }

    fn collate(&mut self, inner: &ast::Expr, collation: &str) -> Result<Expr> {
        let collation = charsets::collation(collation)?;
        let inner = present(self.bind(inner)?);
        let ty = inner.ty();
        // A number, a time or NULL becomes a text in the collation's character set; a string has one.
        let inner = match ty.is_string() {
            true => inner,
            false => operators::cast(inner, types::charset_type(collation.charset().name(), &Expr::null())?),
        };
        let mut ty = inner.ty();
        if ty.charset() != collation.charset() {
            return Err(error::COLLATION_CHARSET_MISMATCH.raise(&[&collation.name(), &ty.charset().name()]));
        }
        ty.collation = collation;
        Ok(operators::collate(inner, ty))
    }

    /// `_utf8mb4'text'`, `_binary'text'`
    fn introduced(&mut self, charset: &str, value: &ast::Literal) -> Result<Expr> {
        let inner = literal::literal(value, self.settings)?;
        let to = types::charset_type(charset, &inner)?;
        match inner {
            Expr::Literal(Value::Text(text), ty) if to.kind().is_text() => {
                Ok(Expr::Literal(Value::Text(text), Type { collation: to.collation, ..ty }))
            }
            Expr::Literal(Value::Bytes(bytes), _) if to.kind().is_text() => {
                match charset::text_of_bytes(&bytes, to.charset()) {
                    Ok(text) => Ok(Expr::Literal(Value::text(text), to)),
                    Err(at) => Err(cast::invalid_text(&bytes[at..], to.charset())),
                }
            }
            other => Ok(operators::cast(other, to)),
        }
    }
}

/// Stack that a link of a chain takes besides its frame, which is smaller than other levels' frames.
const LINK_BYTES: usize = 512;

/// Binding takes more stack for a level than whatever walks the bound tree afterwards, so it may use half.
fn check_stack() -> Result<()> {
    match stdx::stack::is_half_free() {
        true => Ok(()),
        false => Err(error::STACK_OVERRUN.raise(&[&"the expression is nested too deep"])),
    }
}

/// CONVERT(inner USING charset)
fn in_charset(inner: Expr, charset: &str) -> Result<Expr> {
    let to = types::charset_type(charset, &inner)?;
    Ok(operators::cast(present(inner), to))
}

/// Binds the condition of CASE and IF, where a document counts as its number. WHERE and NOT compare it with 0 instead.
fn chooser(condition: Expr) -> Expr {
    operators::truth(match condition.kind() {
        Kind::Json => operators::cast(condition, Type::double()),
        _ => condition,
    })
}

/// Binds IS NULL. A constant that cannot be NULL is not evaluated, so it cannot fail either.
pub(super) fn is_null(inner: Expr) -> Expr {
    match inner.is_constant() && !inner.ty().nullable {
        true => Expr::truth(false),
        false => Expr::IsNull(Box::new(inner)),
    }
}

/// Returns the condition that a DATE or DATETIME is zero, or None for other types.
pub fn is_zero_date(column: &Expr) -> Option<Expr> {
    let ty = column.ty();
    let zero = match ty.kind() {
        Kind::Date => Value::Date(Date::ZERO),
        Kind::DateTime => Value::DateTime(DateTime::ZERO),
        _ => return None,
    };
    let compare = Compare {
        op: Comparison::Equal,
        left: column.clone(),
        right: Expr::Literal(zero, ty.with_nullable(false)),
        by: compare::by(ComparisonType::DateTime),
    };
    Some(Expr::Compare(Box::new(compare)))
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

/// Negates the expression, inside the node if it has a flag for that.
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
        (expr, true) => Expr::Not(Box::new(operators::truth(expr))),
    }
}

/// The parts of `(a, b)` and `ROW(a, b)`.
pub fn row_parts(node: &ast::Expr) -> Option<&[ast::Expr]> {
    match &node.kind {
        ast::ExprKind::Row(parts) => Some(parts),
        _ => None,
    }
}
