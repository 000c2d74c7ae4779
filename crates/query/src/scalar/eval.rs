//! Walking the bound tree over one row.

use std::cmp::Ordering;

use stdx::memory::{self, Claim};

use crate::error::Result;
use crate::nodes::expr::{Between, Call, Case, Compare, Comparison, Domain, Expr, In, Like};
use crate::nodes::function::Run;
use crate::scalar::context::EvalContext;
use crate::scalar::{arithmetic, cast, compare, convert, like, short};
use crate::types::{Collation, Kind, Type};
use crate::value::Value;

impl Expr {
    /// The value over this row, in stored form.
    pub fn eval(&self, row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
        match self {
            Expr::Literal(value, _) => Ok(value.clone()),
            Expr::Column(place, _) => Ok(row[*place].clone()),
            Expr::Parameter(place, _) => Ok(ctx.parameters.get(*place).cloned().unwrap_or_default()),
            Expr::Outer { depth, at, .. } => {
                let outer = ctx.outer.get(*depth).and_then(|row| row.get(*at));
                Ok(outer.cloned().unwrap_or_default())
            }
            Expr::Subquery(query, _) => Ok((query.evaluate)(query, row, ctx)?),
            Expr::Variable(name, _) => Ok(ctx.variables.get(name)),
            Expr::Assign(node) => {
                let value = node.value.eval(row, ctx)?;
                ctx.variables.set(&node.name, value.clone(), node.value.ty())?;
                Ok(value)
            }
            Expr::Compare(node) => Ok(truth_value(node.decide(row, ctx)?)),
            Expr::Arithmetic(node) => Ok(arithmetic::fit(self.eval_exact(row, ctx)?, &node.ty)),
            Expr::Call(call) => Ok(shown(call.eval(row, ctx)?, &call.ty)),
            Expr::Case(case) => Ok(shown(case.eval(row, ctx)?, &case.ty)),
            Expr::Cast(inner, to) => {
                // A number takes all digits of a quotient with it, a text those that are shown.
                let value = if to.kind.is_number() { inner.eval_exact(row, ctx)? } else { inner.eval(row, ctx)? };
                if value.is_null() { Ok(value) } else { cast::cast(value, &inner.ty(), to, ctx) }
            }
            Expr::Collate(inner, _) => inner.eval(row, ctx),
            Expr::Exact(inner) => inner.eval_exact(row, ctx),
            Expr::Shown(inner) => Ok(shown(inner.eval(row, ctx)?, &inner.ty())),
            Expr::Present(inner, _) => match inner.eval(row, ctx)? {
                Value::Null => Ok(Value::Null),
                value => Ok(cast::present(value, &inner.ty(), ctx)),
            },
            condition => Ok(truth_value(condition.decide(row, ctx)?)),
        }
    }

    /// A quotient with all the digits that were computed, also behind what only chooses among values: for the operators and functions of numbers it is within, and for sums.
    pub fn eval_exact(&self, row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
        match self {
            Expr::Arithmetic(node) => {
                if let Some(number) = short::eval(node, row, ctx) {
                    return Ok(Value::Decimal(number));
                }
                let left = node.left.eval_exact(row, ctx)?;
                let right = node.right.eval_exact(row, ctx)?;
                arithmetic::compute(node, left, right, ctx)
            }
            Expr::Call(call) => call.eval(row, ctx),
            Expr::Case(case) => case.eval(row, ctx),
            Expr::Shown(inner) => inner.eval(row, ctx),
            other => other.eval(row, ctx),
        }
    }

    /// Is the row one that a condition keeps? NULL is not.
    pub fn holds(&self, row: &[Value], ctx: &mut EvalContext) -> Result<bool> {
        Ok(self.decide(row, ctx)? == Some(true))
    }

    /// Logic with three values: `None` is NULL.
    pub fn decide(&self, row: &[Value], ctx: &mut EvalContext) -> Result<Option<bool>> {
        match self {
            Expr::Compare(node) => node.decide(row, ctx),
            Expr::And(list) => decide_all(list, false, row, ctx),
            Expr::Or(list) => decide_all(list, true, row, ctx),
            Expr::Xor(sides) => {
                let Some(a) = sides[0].decide(row, ctx)? else {
                    return Ok(None);
                };
                Ok(sides[1].decide(row, ctx)?.map(|b| a != b))
            }
            Expr::Not(inner) => Ok(inner.decide(row, ctx)?.map(|truth| !truth)),
            Expr::IsNull(inner) => Ok(Some(inner.eval(row, ctx)?.is_null())),
            Expr::IsTruth(inner, wanted) => Ok(Some(inner.decide(row, ctx)? == Some(*wanted))),
            Expr::Between(node) => node.decide(row, ctx),
            Expr::In(node) => node.decide(row, ctx),
            Expr::Like(node) => node.decide(row, ctx),
            Expr::Column(place, _) => convert::truth(&row[*place], ctx),
            other => {
                let value = other.eval(row, ctx)?;
                convert::truth(&value, ctx)
            }
        }
    }

    /// Compares without a copy where a side is a column or a literal.
    fn with_value<R>(
        &self,
        row: &[Value],
        ctx: &mut EvalContext,
        then: impl FnOnce(&Value, &mut EvalContext) -> Result<R>,
    ) -> Result<R> {
        match self {
            Expr::Column(place, _) => then(&row[*place], ctx),
            Expr::Literal(value, _) => then(value, ctx),
            other => {
                let value = other.eval_exact(row, ctx)?;
                then(&value, ctx)
            }
        }
    }
}

/// A decimal with the digits that its type shows.
fn shown(value: Value, ty: &Type) -> Value {
    match &value {
        Value::Decimal(decimal) if ty.kind == Kind::Decimal && decimal.scale() != ty.scale => {
            arithmetic::fit(value, ty)
        }
        _ => value,
    }
}

fn truth_value(truth: Option<bool>) -> Value {
    truth.map_or(Value::Null, Value::from)
}

/// `decisive` ends it at once: false for AND, true for OR.
fn decide_all(list: &[Expr], decisive: bool, row: &[Value], ctx: &mut EvalContext) -> Result<Option<bool>> {
    let mut known = true;
    for condition in list {
        match condition.decide(row, ctx)? {
            Some(truth) if truth == decisive => return Ok(Some(decisive)),
            Some(_) => {}
            None => known = false,
        }
    }
    Ok(known.then_some(!decisive))
}

/// `None` if a side is NULL, or no date where a date is asked for.
fn meet(domain: Domain, a: &Value, b: &Value, ctx: &mut EvalContext) -> Result<Option<Ordering>> {
    if a.is_null() || b.is_null() {
        return Ok(None);
    }
    compare::order(domain, a, b, ctx).map(Some)
}

impl Compare {
    fn decide(&self, row: &[Value], ctx: &mut EvalContext) -> Result<Option<bool>> {
        self.left.with_value(row, ctx, |left, ctx| {
            if left.is_null() && self.op != Comparison::NullSafeEqual {
                return Ok(None);
            }
            self.right.with_value(row, ctx, |right, ctx| {
                if self.op == Comparison::NullSafeEqual && (left.is_null() || right.is_null()) {
                    return Ok(Some(left.is_null() && right.is_null()));
                }
                Ok(meet(self.domain, left, right, ctx)?.map(|order| self.op.accepts(order)))
            })
        })
    }
}

impl Between {
    fn decide(&self, row: &[Value], ctx: &mut EvalContext) -> Result<Option<bool>> {
        self.needle.with_value(row, ctx, |needle, ctx| {
            let low = self.low.with_value(row, ctx, |low, ctx| meet(self.low_domain, needle, low, ctx))?;
            let low = low.map(Ordering::is_ge);
            if low == Some(false) {
                return Ok(Some(self.negated));
            }
            let high = self.high.with_value(row, ctx, |high, ctx| meet(self.high_domain, needle, high, ctx))?;
            let high = high.map(Ordering::is_le);
            let within = if high == Some(false) { Some(false) } else { low.and(high) };
            Ok(within.map(|within| within != self.negated))
        })
    }
}

impl In {
    fn decide(&self, row: &[Value], ctx: &mut EvalContext) -> Result<Option<bool>> {
        self.needle.with_value(row, ctx, |needle, ctx| {
            if needle.is_null() {
                return Ok(None);
            }
            if let Some(domain) = self.sorted {
                return Ok(Some(self.search(domain, needle, ctx)? != self.negated));
            }
            let mut known = true;
            for (candidate, domain) in &self.list {
                let order = candidate.with_value(row, ctx, |candidate, ctx| meet(*domain, needle, candidate, ctx))?;
                match order {
                    Some(Ordering::Equal) => return Ok(Some(!self.negated)),
                    Some(_) => {}
                    None => known = false,
                }
            }
            Ok(known.then_some(self.negated))
        })
    }

    /// In a list of literals in order.
    fn search(&self, domain: Domain, needle: &Value, ctx: &mut EvalContext) -> Result<bool> {
        let (mut low, mut high) = (0, self.list.len());
        while low < high {
            let middle = (low + high) / 2;
            let Expr::Literal(candidate, _) = &self.list[middle].0 else {
                break;
            };
            match compare::order(domain, needle, candidate, ctx)? {
                Ordering::Equal => return Ok(true),
                Ordering::Less => high = middle,
                Ordering::Greater => low = middle + 1,
            }
        }
        Ok(false)
    }
}

impl Like {
    fn decide(&self, row: &[Value], ctx: &mut EvalContext) -> Result<Option<bool>> {
        let text = self.text.eval(row, ctx)?;
        let pattern = self.pattern.eval(row, ctx)?;
        let escape = match &self.escape {
            Some(escape) => escape.eval(row, ctx)?,
            None => Value::text("\\"),
        };
        if text.is_null() || pattern.is_null() {
            return Ok(None);
        }
        let escape = like::escape_char(&escape)?;
        let matches = |text: &[u8], pattern: &[u8]| like::matches(self.collation, text, pattern, escape);
        let found = match (text.as_string_bytes(), pattern.as_string_bytes()) {
            (Some(text), Some(pattern)) => matches(text, pattern),
            _ => {
                let text = convert::to_text(&text, &self.text.ty());
                let pattern = convert::to_text(&pattern, &self.pattern.ty());
                matches(text.as_bytes(), pattern.as_bytes())
            }
        };
        Ok(Some(found != self.negated))
    }
}

impl Case {
    fn eval(&self, row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
        for (condition, result) in &self.arms {
            if condition.holds(row, ctx)? {
                return self.settle(result, row, ctx);
            }
        }
        self.settle(&self.otherwise, row, ctx)
    }

    fn settle(&self, result: &Expr, row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
        let value = result.eval_exact(row, ctx)?;
        unify_exact(value, &result.ty(), &self.ty, ctx)
    }
}

/// The same, but for decimals, which keep their digits until they are shown.
pub fn unify_exact(value: Value, from: &Type, to: &Type, ctx: &mut EvalContext) -> Result<Value> {
    match (&value, to.kind) {
        (Value::Decimal(_), Kind::Decimal) => Ok(value),
        (Value::Decimal(decimal), kind) if !kind.is_number() && decimal.scale() != from.scale => {
            unify(arithmetic::fit(value, from), from, to, ctx)
        }
        _ => unify(value, from, to, ctx),
    }
}

/// A value of one arm as one of the type of all arms.
pub fn unify(value: Value, from: &Type, to: &Type, ctx: &mut EvalContext) -> Result<Value> {
    if value.is_null() || (from.kind == to.kind && from.scale == to.scale && from.unsigned == to.unsigned) {
        return Ok(value);
    }
    if to.is_string() && to.collation != Collation::Binary && value.as_string_bytes().is_none() {
        return Ok(Value::Text(convert::to_text(&cast::present(value, from, ctx), from)));
    }
    match to.kind {
        kind if kind == from.kind && !kind.is_number() && !kind.is_temporal() => Ok(value),
        kind if kind.is_text() && matches!(value, Value::Text(_)) => Ok(value),
        kind if kind.is_bytes() && matches!(value, Value::Bytes(_)) => Ok(value),
        kind if kind.is_bytes() && from.kind == Kind::Bit => Ok(cast::present(value, from, ctx)),
        kind if kind.is_bytes() => {
            Ok(Value::bytes(convert::to_text(&cast::present(value, from, ctx), from).as_bytes()))
        }
        Kind::Null | Kind::Enum | Kind::Set | Kind::Bit | Kind::Year => Ok(value),
        _ => cast::cast(value, from, to, ctx),
    }
}

impl Call {
    fn eval(&self, row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
        let strict = match self.function.run {
            Run::Lazy(run) => return run(self, row, ctx),
            Run::Strict(_) => true,
            Run::Values(_) => false,
        };
        let mut few: [Value; 4] = Default::default();
        let mut many = Vec::new();
        let values: &mut [Value] = match self.arguments.len() {
            count @ 0..=4 => &mut few[..count],
            count => {
                many.resize(count, Value::Null);
                &mut many
            }
        };
        for (value, argument) in values.iter_mut().zip(&self.arguments) {
            *value = if self.function.exact { argument.eval_exact(row, ctx)? } else { argument.eval(row, ctx)? };
            if strict && value.is_null() {
                return Ok(Value::Null);
            }
        }
        let _claim = self.claim(values)?;
        match self.function.run {
            Run::Strict(run) | Run::Values(run) | Run::Lazy(run) => run(self, values, ctx),
        }
    }

    /// Claims the memory of a result that is made of long arguments. Functions whose result can be much longer than their arguments claim it themselves.
    fn claim(&self, values: &[Value]) -> Result<Option<Claim>> {
        /// Shorter arguments are not worth the look at the process's count.
        const LONG: usize = 32 << 10;
        let is_short = !self.ty.is_string() || (self.ty.length as usize) < LONG;
        if is_short && self.ty.kind != Kind::Json {
            return Ok(None);
        }
        let bytes: usize = values.iter().map(Value::heap_bytes).sum();
        if bytes < LONG {
            return Ok(None);
        }
        // The result beside a copy of the arguments.
        Ok(Some(memory::claim(2 * bytes)?))
    }
}
