//! Operators, and the notations that stand for operators: BETWEEN, IN over a list, LIKE, comparisons of rows.

use std::mem::MaybeUninit;

use query::nodes::comparison::{Comparator, Comparison};
use query::nodes::eval::sort_literals;
use query::nodes::expr::{Between, Compare, Expr, In};
use query::nodes::function::Function;
use syntax::postgres::tree::{self, ExprKind, LikeKind, Link, Location, Operator};

use crate::bind::coerce::{call, call_of, can_coerce};
use crate::bind::comparison::comparator;
use crate::bind::resolve::{Resolution, function_by_oid, operator};
use crate::bind::typing::{Operand, oid_of, shown, unsupported};
use crate::bind::{Binder, polymorphic};
use crate::error::{PgError, Result, state};
use crate::functions::temporal::compare::{comparable, day_for};
use crate::functions::{CastContext, PgOperator};
use crate::types::oid::{self, Oid};
use crate::types::registry::element_of;

/// An operator with the types of its operands and its result, polymorphic ones settled.
#[derive(Clone, Copy, Debug)]
pub struct FoundOperator {
    pub row: &'static PgOperator,
    pub left: Oid,
    pub right: Oid,
    pub result: Oid,
}

/// Returns a call of the operator's function.
fn operator_call(row: &'static PgOperator, arguments: Vec<Expr>, result: Oid) -> Result<Expr> {
    let function = function_by_oid(row.function).ok_or_else(|| unsupported(format!("the operator {}", row.name)))?;
    call(function, arguments, result, -1)
}

/// Returns the function that turns `other` into a date for the comparison with a column of dates, if no column of the same row is in it.
fn day_beside(
    column: &Expr,
    op: Comparison,
    other: &Expr,
    types: (Oid, Oid),
) -> Option<(&'static Function, Comparator)> {
    let (oid::DATE, Expr::Column(..)) = (types.0, column) else { return None };
    let mut is_fixed = true;
    other.walk(&mut |expr| is_fixed &= !matches!(expr, Expr::Column(..) | Expr::Subquery(..)));
    if is_fixed { Some((day_for(op, types.1)?, comparator(oid::DATE, oid::DATE)?)) } else { None }
}

/// Stack that a link of a chain takes besides its frame, which is smaller than other levels' frames.
const LINK_BYTES: usize = 512;

impl Binder<'_> {
    /// Binds `first op operand op operand ...` from the left.
    pub fn chain(&mut self, first: &tree::Expr, links: &[Link]) -> Result<Operand> {
        if let [Link { op, operand }] = links
            && let Some(bound) = self.row_operator(first, op, operand)?
        {
            return Ok(bound);
        }
        self.links(first, links)
    }

    /// Recurses as deep as the tree that it gives is high: whatever walks that tree does so too.
    fn links(&mut self, first: &tree::Expr, links: &[Link]) -> Result<Operand> {
        let reserved = MaybeUninit::<[u8; LINK_BYTES]>::uninit();
        std::hint::black_box(&reserved);
        self.check_stack()?;
        let Some((Link { op, operand }, before)) = links.split_last() else { return self.expr(first) };
        self.count_node()?;
        let left = self.links(first, before)?;
        let right = self.expr(operand)?;
        self.make_operator(op, left, right)
    }

    /// Binds a comparison with a row on a side.
    fn row_operator(&mut self, left: &tree::Expr, op: &Operator, right: &tree::Expr) -> Result<Option<Operand>> {
        match (&left.kind, &right.kind) {
            (ExprKind::Row { items: a, explicit: _ }, ExprKind::Row { items: b, explicit: _ }) => {
                let (a, b) = (self.row_items(a)?, self.row_items(b)?);
                self.compare_rows(op, a, b, left.span.start).map(Some)
            }
            (ExprKind::Row { items, explicit: _ }, ExprKind::Subquery(query)) => {
                self.row_subquery(items, op, query, left.span.start).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Returns the operator's row for operands of these types.
    fn resolve_operator(&self, op: &Operator, left: Oid, right: Oid) -> Result<&'static PgOperator> {
        let Operator { qualifier, name, at } = op;
        let is_system = match &qualifier[..] {
            [] => true,
            [schema] => schema == "pg_catalog",
            _ => false,
        };
        let found = if is_system { operator(name, left, right) } else { Resolution::None };
        let shown_left = if left == 0 { String::new() } else { format!("{} ", shown(left)) };
        let (qualified, right) = (qualifier.iter().map(|part| format!("{part}.")).collect::<String>(), shown(right));
        match found {
            Resolution::One(row) => Ok(row),
            Resolution::None => {
                let text = format!("operator does not exist: {shown_left}{qualified}{name} {right}");
                let hint = match left {
                    0 => {
                        "No operator matches the given name and argument type. You might need to add an explicit type cast."
                    }
                    _ => {
                        "No operator matches the given name and argument types. You might need to add explicit type casts."
                    }
                };
                Err(self.error(PgError::new(state::UNDEFINED_FUNCTION, text).hint(hint), at.0))
            }
            Resolution::Many => {
                let text = format!("operator is not unique: {shown_left}{qualified}{name} {right}");
                let hint = "Could not choose a best candidate operator. You might need to add explicit type casts.";
                Err(self.error(PgError::new(state::AMBIGUOUS_FUNCTION, text).hint(hint), at.0))
            }
        }
    }

    /// Returns the operator for operands of these types.
    #[inline(never)]
    pub fn found_operator(&self, op: &Operator, left: Oid, right: Oid) -> Result<FoundOperator> {
        let (left, right) = (self.flat(left)?, self.flat(right)?);
        let row = self.resolve_operator(op, left, right)?;
        let Some(function) = function_by_oid(row.function) else {
            return Err(self.error(unsupported(format!("the operator {}", row.name)), op.at.0));
        };
        let declared = (function, vec![row.left, row.right]);
        // Where both operands are of unknown type, they are what the operator takes.
        let (types, result) = polymorphic::settle(&declared, &[left, right])?;
        let result = if polymorphic::is_polymorphic(row.result) { result } else { row.result };
        Ok(FoundOperator { row, left: types[0], right: types[1], result })
    }

    /// Refuses a comparison of arrays whose elements do not compare.
    fn check_elements(ty: Oid) -> Result<()> {
        match element_of(ty) {
            Some(element) if comparator(element.oid, element.oid).is_none() => {
                let text = format!("could not identify an equality operator for type {}", shown(element.oid));
                Err(PgError::new(state::UNDEFINED_FUNCTION, text))
            }
            _ => Ok(()),
        }
    }

    pub fn make_prefix(&mut self, op: &Operator, operand: Operand) -> Result<Operand> {
        let row = self.resolve_operator(op, 0, self.flat(operand.oid())?)?;
        let operand = self.coerce(operand, row.right, CastContext::Implicit)?;
        Ok(Operand { expr: operator_call(row, vec![operand], row.result)?, at: op.at.0 })
    }

    /// Returns `left op right` for operands of whatever types.
    pub fn make_operator(&mut self, op: &Operator, left: Operand, right: Operand) -> Result<Operand> {
        let at = left.at.min(op.at.0);
        let (found, left, right) = self.operands(op, left, right)?;
        Ok(Operand { expr: self.applied(found, left, right)?, at })
    }

    /// Returns the operator for these operands, and them as it takes them.
    pub fn operands(&mut self, op: &Operator, left: Operand, right: Operand) -> Result<(FoundOperator, Expr, Expr)> {
        let found = self.found_operator(op, left.oid(), right.oid())?;
        let left = self.coerce(left, found.left, CastContext::Implicit)?;
        let right = self.coerce(right, found.right, CastContext::Implicit)?;
        Ok((found, left, right))
    }

    /// Returns the core's comparison where the operator is one, else a call. Of dates and timestamps of two types, the one side is brought among the values of the other, so that
    /// an index on the other can be used. A column of dates keeps its values where a date can stand for the other side.
    pub fn applied(&self, found: FoundOperator, left: Expr, right: Expr) -> Result<Expr> {
        let row = found.row;
        let Some(op) = row.comparison else { return operator_call(row, vec![left, right], found.result) };
        let brought = |ty: Oid, other: Oid| Some((comparable(ty, other)?, comparator(other, other)?));
        let (left, right, by) = if let Some(by) = comparator(found.left, found.right) {
            (left, right, by)
        } else if let Some((function, by)) = day_beside(&left, op, &right, (row.left, row.right)) {
            (left, call_of(function, vec![right], oid::DATE, -1), by)
        } else if let Some((function, by)) = day_beside(&right, op.flipped(), &left, (row.right, row.left)) {
            (call_of(function, vec![left], oid::DATE, -1), right, by)
        } else if let Some((function, by)) = brought(row.left, row.right) {
            (call_of(function, vec![left], row.right, -1), right, by)
        } else if let Some((function, by)) = brought(row.right, row.left) {
            (left, call_of(function, vec![right], row.left, -1), by)
        } else {
            Self::check_elements(found.left)?;
            return operator_call(row, vec![left, right], found.result);
        };
        Ok(Expr::Compare(Box::new(Compare { op, left, right, by })))
    }

    /// Compares rows field by field.
    pub fn compare_rows(&mut self, op: &Operator, left: Vec<Operand>, right: Vec<Operand>, at: u32) -> Result<Operand> {
        if left.len() != right.len() {
            return self.fail(state::SYNTAX_ERROR, "unequal number of entries in row expressions", op.at.0);
        }
        if left.is_empty() {
            return self.fail(state::FEATURE_NOT_SUPPORTED, "cannot compare rows of zero length", op.at.0);
        }
        let (mut tests, mut pairs) = (Vec::new(), Vec::new());
        for (left, right) in left.into_iter().zip(right) {
            let test = self.make_operator(op, left, right)?;
            let Expr::Compare(compare) = test.expr else {
                let text = format!("could not determine interpretation of row comparison operator {}", op.name);
                let hint = "Row comparison operators must be associated with btree operator families.";
                return Err(self.error(PgError::new(state::FEATURE_NOT_SUPPORTED, text).hint(hint), op.at.0));
            };
            let test = Expr::Compare(compare);
            if let Expr::Compare(pair) = self.copy(&test)? {
                pairs.push(*pair);
            }
            tests.push(test);
        }
        let expr = match pairs[0].op {
            Comparison::Equal | Comparison::NullSafeEqual => Expr::and(tests),
            Comparison::NotEqual => Expr::or(tests),
            _ => lexical(&pairs),
        };
        Ok(Operand { expr, at })
    }

    /// Binds `left IS [NOT] DISTINCT FROM right`.
    pub fn distinct_from(&mut self, left: &tree::Expr, right: &tree::Expr, negated: bool, op: u32) -> Result<Operand> {
        let at = left.span.start;
        let parts = match (&left.kind, &right.kind) {
            (ExprKind::Row { items: a, explicit: _ }, ExprKind::Row { items: b, explicit: _ }) => {
                let (a, b) = (self.row_items(a)?, self.row_items(b)?);
                if a.len() != b.len() {
                    return self.fail(state::SYNTAX_ERROR, "unequal number of entries in row expressions", op);
                }
                a.into_iter().zip(b).collect()
            }
            _ => vec![(self.expr(left)?, self.expr(right)?)],
        };
        let mut equal = Vec::new();
        for (left, right) in parts {
            equal.push(self.null_safe_equal(left, right, op)?);
        }
        let equal = Expr::and(equal);
        Ok(Operand { expr: if negated { equal } else { Expr::Not(Box::new(equal)) }, at })
    }

    fn null_safe_equal(&mut self, left: Operand, right: Operand, op: u32) -> Result<Expr> {
        for (one, other) in [(&left, &right), (&right, &left)] {
            if one.expr.is_null_literal() {
                let other = self.settle(other.clone())?;
                return Ok(Expr::IsNull(Box::new(other)));
            }
        }
        let op = Operator::plain("=", Location(op));
        let bound = self.make_operator(&op, left, right)?;
        match bound.expr {
            Expr::Compare(compare) => {
                Ok(Expr::Compare(Box::new(Compare { op: Comparison::NullSafeEqual, ..*compare })))
            }
            Expr::Call(call) => {
                let mut nulls = Vec::new();
                for argument in &call.arguments {
                    nulls.push(Expr::IsNull(Box::new(self.copy(argument)?)));
                }
                let both = Expr::And(nulls);
                Ok(Expr::Or(vec![both, Expr::IsTruth(Box::new(Expr::Call(call)), true)]))
            }
            _ => Err(unsupported("IS DISTINCT FROM of these types")),
        }
    }

    /// Binds BETWEEN as the comparisons that it stands for.
    pub fn between(&mut self, between: &tree::Between, at: u32) -> Result<Operand> {
        let tree::Between { operand, low, high, symmetric, negated, at: op } = between;
        let operand = self.expr(operand)?;
        let (low, high) = (self.expr(low)?, self.expr(high)?);
        // Each comparison takes a constant of unknown type for itself, but a parameter has one type: a plan for the one is none for the other.
        let is_untyped = |operand: &Operand| matches!(operand.expr, Expr::Parameter(..)) && operand.is_unknown();
        self.volatile |= is_untyped(&operand) || (*symmetric && (is_untyped(&low) || is_untyped(&high)));
        let mut arms = vec![(low.clone(), high.clone())];
        if *symmetric {
            arms.push((high, low));
        }
        let mut tests = Vec::new();
        for (low, high) in arms {
            let (above, below) = if *negated { ("<", ">") } else { (">=", "<=") };
            let (low, high) = (self.deduced(low), self.deduced(high));
            let above = {
                let operand = self.copy_operand(&operand)?;
                self.make_operator(&Operator::plain(above, *op), self.deduced(operand), low)?.expr
            };
            let below = {
                let operand = self.copy_operand(&operand)?;
                self.make_operator(&Operator::plain(below, *op), self.deduced(operand), high)?.expr
            };
            tests.push(bounded(above, below, *negated));
        }
        Ok(Operand { expr: if *negated { Expr::and(tests) } else { Expr::or(tests) }, at })
    }

    /// Binds `operand [NOT] IN (list)`.
    pub fn in_list(&mut self, operand: &tree::Expr, list: &[tree::Expr], negated: bool, op: u32) -> Result<Operand> {
        let at = operand.span.start;
        let equal = Operator::plain(if negated { "<>" } else { "=" }, Location(op));
        let joined = |tests: Vec<Expr>| if negated { Expr::and(tests) } else { Expr::or(tests) };
        let is_row = |expr: &tree::Expr| matches!(&expr.kind, ExprKind::Row { items: _, explicit: _ });
        if let ExprKind::Row { items, explicit: _ } = &operand.kind
            && list.iter().all(is_row)
        {
            let (needle, mut tests) = (self.row_items(items)?, Vec::new());
            for candidate in list {
                let ExprKind::Row { items, explicit: _ } = &candidate.kind else { continue };
                let items = self.row_items(items)?;
                let needle = needle.iter().map(|part| self.copy_operand(part)).collect::<Result<Vec<_>>>()?;
                tests.push(self.compare_rows(&equal, needle, items, at)?.expr);
            }
            return Ok(Operand { expr: joined(tests), at });
        }
        let needle = self.expr(operand)?;
        let candidates = self.all(list)?;
        // As in PostgreSQL, candidates without columns take one common type with the operand.
        let is_fixed = |candidate: &Operand| !candidate.expr.columns().iter().any(|_| true);
        let fixed: Vec<&Operand> = candidates.iter().filter(|candidate| is_fixed(candidate)).collect();
        let together: Vec<&Operand> = std::iter::once(&needle).chain(fixed.iter().copied()).collect();
        let shared = if fixed.len() > 1 { self.common_of(&together)?.ok() } else { None };
        let types = self.flat_all(&together.iter().map(|operand| operand.oid()).collect::<Vec<_>>())?;
        let shared = match shared {
            Some(ty) => {
                let flat = self.flat(ty)?;
                Some(ty).filter(|_| types.iter().all(|from| can_coerce(&[*from], &[flat], CastContext::Implicit)))
            }
            None => None,
        };
        let (mut tests, mut moving) = (Vec::new(), candidates);
        if let Some(ty) = shared {
            let (fixed, others) = moving.into_iter().partition(is_fixed);
            tests.push(self.in_array(&equal, needle.clone(), fixed, ty, negated)?);
            moving = others;
        }
        for candidate in moving {
            let needle = self.copy_operand(&needle)?;
            tests.push(self.make_operator(&equal, needle, candidate)?.expr);
        }
        Ok(Operand { expr: joined(tests), at })
    }

    /// Returns `needle = ANY (candidates)`, or `needle <> ALL (candidates)`, of candidates of one type.
    fn in_array(
        &mut self,
        op: &Operator,
        needle: Operand,
        candidates: Vec<Operand>,
        ty: Oid,
        negated: bool,
    ) -> Result<Expr> {
        let row = self.found_operator(op, needle.oid(), ty)?;
        let needle = self.coerce(needle, row.left, CastContext::Implicit)?;
        let mut list = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            let at = candidate.at;
            let expr = self.coerce(candidate, ty, CastContext::Implicit)?;
            list.push(self.coerce(Operand { expr, at }, row.right, CastContext::Implicit)?);
        }
        let by: Option<Comparator> = comparator(row.left, row.right).filter(|_| row.row.comparison.is_some());
        let Some(by) = by else {
            let mut tests = Vec::with_capacity(list.len());
            for candidate in list {
                let needle = self.copy(&needle)?;
                tests.push(self.applied(row, needle, candidate)?);
            }
            return Ok(if negated { Expr::and(tests) } else { Expr::or(tests) });
        };
        let mut list: Vec<(Expr, Comparator)> = list.into_iter().map(|candidate| (candidate, by)).collect();
        let sorted = sort_literals(&mut list);
        Ok(Expr::In(Box::new(In { needle, list, sorted, negated })))
    }

    /// Binds LIKE, ILIKE and SIMILAR TO as the operators that they stand for.
    pub fn like(&mut self, like: &tree::Like) -> Result<Operand> {
        let tree::Like { kind, operand, pattern, escape, negated, at } = like;
        let operand = self.expr(operand)?;
        let mut pattern = self.expr(pattern)?;
        let mut arguments = vec![pattern.clone()];
        if let Some(escape) = escape {
            arguments.push(self.expr(escape)?);
        }
        let function = match kind {
            LikeKind::Similar => Some("similar_to_escape"),
            LikeKind::Like | LikeKind::ILike => escape.is_some().then_some("like_escape"),
        };
        if let Some(function) = function {
            pattern = self.call_named(function, arguments, at.0)?;
        }
        self.make_operator(&Operator::plain(kind.operator(*negated), *at), operand, pattern)
    }

    /// Returns the comparator by which values of a type are equal.
    pub fn equality(&self, ty: Oid) -> Option<Comparator> {
        comparator(ty, ty)
    }

    /// Refuses a type whose values have no order, as ORDER BY and DISTINCT do.
    pub fn check_sortable(&self, ty: Oid, at: u32) -> Result<()> {
        let ty = self.flat(ty)?;
        if ty == oid::UNKNOWN || self.has_order(ty) {
            return Ok(());
        }
        let text = format!("could not identify an ordering operator for type {}", shown(ty));
        let hint = "Use an explicit ordering operator or modify the query.";
        Err(self.error(PgError::new(state::UNDEFINED_FUNCTION, text).hint(hint), at))
    }

    pub fn check_comparable(&self, ty: Oid, at: u32) -> Result<()> {
        let ty = self.flat(ty)?;
        if ty == oid::UNKNOWN || self.has_order(ty) {
            return Ok(());
        }
        self.fail(
            state::UNDEFINED_FUNCTION,
            format!("could not identify an equality operator for type {}", shown(ty)),
            at,
        )
    }
}

/// Returns the two comparisons of BETWEEN, as one test where both have the same operand.
fn bounded(above: Expr, below: Expr, negated: bool) -> Expr {
    match (&above, &below) {
        (Expr::Compare(low), Expr::Compare(high)) if oid_of(&low.left) == oid_of(&high.left) => {
            Expr::Between(Box::new(Between {
                needle: low.left.clone(),
                low: low.right.clone(),
                high: high.right.clone(),
                low_by: low.by,
                high_by: high.by,
                negated,
            }))
        }
        _ if negated => Expr::Or(vec![above, below]),
        _ => Expr::And(vec![above, below]),
    }
}

/// Returns whether the first pair that differs satisfies the comparison, or all are equal and it permits that.
fn lexical(pairs: &[Compare]) -> Expr {
    let [first, rest @ ..] = pairs else { return Expr::truth(true) };
    let with = |op: Comparison| Expr::Compare(Box::new(Compare { op, ..first.clone() }));
    if rest.is_empty() {
        return with(first.op);
    }
    let strict = match first.op {
        Comparison::LessEqual => Comparison::Less,
        Comparison::GreaterEqual => Comparison::Greater,
        strict => strict,
    };
    Expr::Or(vec![with(strict), Expr::And(vec![with(Comparison::Equal), lexical(rest)])])
}
