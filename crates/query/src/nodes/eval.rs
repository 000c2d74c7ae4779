//! Walking the bound tree over one row.

use datum::Storage;
use std::cmp::Ordering;

use stdx::memory::{self, Claim};

use crate::nodes::comparison::{Comparator, Comparison, ComparisonType};
use crate::nodes::context::EvalContext;
use crate::nodes::expr::{Between, Call, Case, Compare, Expr, In};
use crate::nodes::function::{Body, Finish, PairBody, Run};
use crate::types::Type;
use crate::value::Value;
use datum::{Fault, Result};

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
            Expr::Subquery(query, _) => (query.evaluate)(query, row, ctx),
            Expr::Compare(node) => Ok(truth_value(node.decide(row, ctx)?)),
            Expr::Call(call) => match call.function.finish {
                Finish::Unchanged => call.eval(row, ctx),
                Finish::Rounded => Ok(shown(call.eval(row, ctx)?, &call.ty)),
                Finish::By(finish) => Ok(finish(call.eval(row, ctx)?, &call.ty)),
            },
            Expr::Case(case) => Ok(shown(case.eval(row, ctx)?, &case.ty)),
            Expr::Exact(inner) => inner.eval_exact(row, ctx),
            Expr::Shown(inner) => Ok(shown(inner.eval(row, ctx)?, &inner.ty())),
            Expr::Elements(array) => array.eval(row, ctx),
            condition => Ok(truth_value(condition.decide(row, ctx)?)),
        }
    }

    /// A quotient with all the digits that were computed, also behind what only chooses among values: for the operators and functions of numbers it is within, and for sums.
    pub fn eval_exact(&self, row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
        match self {
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
            Expr::Column(place, _) => truth(&row[*place]),
            other => truth(&other.eval(row, ctx)?),
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
        Value::Decimal(decimal)
            if ty.storage == Storage::Decimal && ty.scale != Type::ANY_SCALE && decimal.scale() != ty.scale.into() =>
        {
            Value::Decimal(decimal.rounded(ty.scale.into()))
        }
        _ => value,
    }
}

/// The truth of a condition's value: the binder wraps other operands of logic than whole numbers in a conversion of its dialect.
fn truth(value: &Value) -> Result<Option<bool>> {
    match value {
        Value::Null => Ok(None),
        Value::Int(number) => Ok(Some(*number != 0)),
        Value::UInt(number) => Ok(Some(*number != 0)),
        _ => Err(Fault::corrupt("a condition that is neither true nor false")),
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
                Ok(self.by.order_unless_null(left, right, ctx)?.map(|order| self.op.accepts(order)))
            })
        })
    }
}

impl Between {
    fn decide(&self, row: &[Value], ctx: &mut EvalContext) -> Result<Option<bool>> {
        self.needle.with_value(row, ctx, |needle, ctx| {
            let low = self.low.with_value(row, ctx, |low, ctx| self.low_by.order_unless_null(needle, low, ctx))?;
            let low = low.map(Ordering::is_ge);
            if low == Some(false) {
                return Ok(Some(self.negated));
            }
            let high = self.high.with_value(row, ctx, |high, ctx| self.high_by.order_unless_null(needle, high, ctx))?;
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
                return Ok(self.is_empty(row, ctx)?.then_some(self.negated));
            }
            if let Some(by) = self.sorted {
                return Ok(Some(self.search(by, needle, ctx)? != self.negated));
            }
            let mut known = true;
            for (candidate, by) in &self.list {
                if let Expr::Elements(array) = candidate {
                    let found = array.with_value(row, ctx, |array, ctx| among(*by, needle, array, ctx))?;
                    if found == Some(true) {
                        return Ok(Some(!self.negated));
                    }
                    known &= found.is_some();
                    continue;
                }
                let order =
                    candidate.with_value(row, ctx, |candidate, ctx| by.order_unless_null(needle, candidate, ctx))?;
                match order {
                    Some(Ordering::Equal) => return Ok(Some(!self.negated)),
                    Some(_) => {}
                    None => known = false,
                }
            }
            Ok(known.then_some(self.negated))
        })
    }

    /// Returns whether there is no candidate at all: then not even a NULL leaves the answer open.
    fn is_empty(&self, row: &[Value], ctx: &mut EvalContext) -> Result<bool> {
        for (candidate, _) in &self.list {
            let Expr::Elements(array) = candidate else { return Ok(false) };
            let is_empty = |array: &Value| matches!(array, Value::Array(array) if array.is_empty());
            if !array.with_value(row, ctx, |array, _| Ok(is_empty(array)))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// In a list of literals in order.
    fn search(&self, by: Comparator, needle: &Value, ctx: &mut EvalContext) -> Result<bool> {
        let (mut low, mut high) = (0, self.list.len());
        while low < high {
            let middle = (low + high) / 2;
            let Expr::Literal(candidate, _) = &self.list[middle].0 else {
                break;
            };
            match by.order(needle, candidate, ctx)? {
                Ordering::Equal => return Ok(true),
                Ordering::Less => high = middle,
                Ordering::Greater => low = middle + 1,
            }
        }
        Ok(false)
    }
}

/// Returns whether a value equals one of the elements of an array. `None`: it equals none, and there is a NULL among them.
fn among(by: Comparator, needle: &Value, array: &Value, ctx: &mut EvalContext) -> Result<Option<bool>> {
    let Value::Array(array) = array else { return Ok(None) };
    let mut known = true;
    for (at, value) in array.values().iter().enumerate() {
        match by.order_unless_null(needle, value, ctx)? {
            Some(Ordering::Equal) => return Ok(Some(true)),
            Some(_) => {}
            None => known = false,
        }
        if at % ELEMENTS_CHECKED == ELEMENTS_CHECKED - 1 {
            ctx.check_killed()?;
        }
    }
    Ok(known.then_some(false))
}

/// Elements between two looks for interrupts.
const ELEMENTS_CHECKED: usize = 16 << 10;

/// Sorts a list of literals that share a comparator, for binary search. Returns the comparator.
pub fn sort_literals(list: &mut [(Expr, Comparator)]) -> Option<Comparator> {
    let by = list.first()?.1;
    let plain = |expr: &Expr| matches!(expr, Expr::Literal(value, _) if !value.is_null());
    let searchable = matches!(
        by.ty,
        ComparisonType::Integer | ComparisonType::Decimal | ComparisonType::Text(_) | ComparisonType::Bytes
    );
    if list.len() < 4 || !searchable || !list.iter().all(|(expr, found)| *found == by && plain(expr)) {
        return None;
    }
    let mut ctx = EvalContext::new();
    list.sort_by(|(a, _), (b, _)| match (a, b) {
        (Expr::Literal(a, _), Expr::Literal(b, _)) => by.order(a, b, &mut ctx).unwrap_or(Ordering::Equal),
        _ => Ordering::Equal,
    });
    Some(by)
}

impl Case {
    fn eval(&self, row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
        for (condition, result) in &self.arms {
            if condition.holds(row, ctx)? {
                return result.eval_exact(row, ctx);
            }
        }
        self.otherwise.eval_exact(row, ctx)
    }
}

impl Call {
    fn eval(&self, row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
        if let Some(number) = self.exact_number(row, ctx) {
            return Ok(Value::Decimal(number.into()));
        }
        let (run, is_strict) = match self.function.run {
            Run::Lazy(run) => return run(self, row, ctx),
            Run::Pair(run) => return self.eval_pair(run, row, ctx),
            Run::Strict(run) => (run, true),
            Run::Values(run) => (run, false),
        };
        // Most calls have few arguments, which need no allocation.
        match &self.arguments[..] {
            [] => self.apply(run, &[], ctx),
            [only] => {
                let value = self.argument(only, row, ctx)?;
                if is_strict && value.is_null() {
                    return Ok(Value::Null);
                }
                self.apply(run, &[value], ctx)
            }
            [first, second] => {
                let first = self.argument(first, row, ctx)?;
                if is_strict && first.is_null() {
                    return Ok(Value::Null);
                }
                let second = self.argument(second, row, ctx)?;
                if is_strict && second.is_null() {
                    return Ok(Value::Null);
                }
                self.apply(run, &[first, second], ctx)
            }
            arguments => {
                let mut values = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    let value = self.argument(argument, row, ctx)?;
                    if is_strict && value.is_null() {
                        return Ok(Value::Null);
                    }
                    values.push(value);
                }
                self.apply(run, &values, ctx)
            }
        }
    }

    fn eval_pair(&self, run: PairBody, row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
        let [first, second] = &self.arguments[..] else {
            return Err(Fault::corrupt("an operator without two operands"));
        };
        debug_assert!(!self.may_be_long());
        self.with_argument(first, row, ctx, |first, ctx| {
            if first.is_null() {
                return Ok(Value::Null);
            }
            self.with_argument(second, row, ctx, |second, ctx| match second {
                Value::Null => Ok(Value::Null),
                second => run(self, first, second, ctx),
            })
        })
    }

    /// Gives the value of an argument without a copy.
    #[inline]
    fn with_argument(
        &self,
        argument: &Expr,
        row: &[Value],
        ctx: &mut EvalContext,
        then: impl FnOnce(&Value, &mut EvalContext) -> Result<Value>,
    ) -> Result<Value> {
        match argument {
            Expr::Column(place, _) => then(&row[*place], ctx),
            Expr::Literal(value, _) => then(value, ctx),
            argument => match &self.argument(argument, row, ctx) {
                Ok(value) => then(value, ctx),
                Err(fault) => Err(fault.clone()),
            },
        }
    }

    #[inline]
    fn argument(&self, argument: &Expr, row: &[Value], ctx: &mut EvalContext) -> Result<Value> {
        match argument {
            Expr::Column(place, _) => Ok(row[*place].clone()),
            Expr::Literal(value, _) => Ok(value.clone()),
            argument if self.function.exact => argument.eval_exact(row, ctx),
            argument => argument.eval(row, ctx),
        }
    }

    #[inline]
    fn apply(&self, run: Body, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
        if !self.may_be_long() {
            return run(self, values, ctx);
        }
        let _claim = claim(values)?;
        let result = run(self, values, ctx)?;
        // A row of long values may take as long as thousands of others, between which a statement looks for interrupts.
        if result.heap_bytes() >= LONG {
            ctx.check_killed()?;
        }
        Ok(result)
    }

    /// Returns whether the type of the result has room for a long value.
    fn may_be_long(&self) -> bool {
        use Storage::{Array, Json, Jsonb, Keyed, Record};
        matches!(self.ty.storage, Json | Jsonb | Array | Record | Keyed)
            || self.ty.storage.is_string() && self.ty.length as usize >= LONG
    }
}

/// Values of fewer bytes are not worth a look at the process's memory or at interrupts.
const LONG: usize = 32 << 10;

/// Claims the memory of a result that is made of long arguments. Functions whose result can be much longer than their arguments claim it themselves.
fn claim(values: &[Value]) -> Result<Option<Claim>> {
    let bytes: usize = values.iter().map(Value::heap_bytes).sum();
    if bytes < LONG {
        return Ok(None);
    }
    // The result beside a copy of the arguments.
    Ok(Some(memory::claim(2 * bytes)?))
}
