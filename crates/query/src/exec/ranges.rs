//! The parts of a map that an access leads to: its expressions computed over the row on the left, as bytes of keys.
//!
//! A range may be wider than what it comes from, where a value does not fit its column (`ComparisonRules::coerce`) or a bound is so long that keys of the map are shortened before its end (QU-27), and is never narrower. Ranges
//! do not overlap and come in the order in which they are walked, so that no row is met twice and their rows are in the order of the index.

use std::ops::Bound;

use datum::Result;
use engine::rows::MapId;

use crate::catalog::table::{Part, Table};
use crate::exec::host::host;
use crate::key::encode_part;
use crate::key_form::{KeyForm, after};
use crate::nodes::comparison::Coerced;
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::nodes::node::{Access, Limit, Scan, Span};
use crate::nodes::term_test::TermTest;
use crate::term::{Entries, entries, wanted};
use crate::types::Type;
use crate::value::Value;

/// Room for the key of a point; most are shorter.
const POINT_BYTES: usize = 32;

/// A part of a map.
#[derive(Clone, Debug)]
pub enum Range {
    /// The whole key: one entry at most.
    Point(Vec<u8>),
    Between(Bound<Vec<u8>>, Bound<Vec<u8>>),
}

/// The key of an access that names one entry, with values that fit. None: it is to be looked at with more care.
pub fn point(scan: &Scan, row: &[Value], ctx: &mut EvalContext) -> Result<Option<Vec<u8>>> {
    let access = &scan.access;
    if !access.is_point {
        return Ok(None);
    }
    let parts = scan.parts();
    let mut key = Vec::with_capacity(POINT_BYTES);
    for (part, exprs) in parts.iter().zip(&access.equal) {
        let ty = &scan.table.columns[part.column].ty;
        let [expr] = &exprs[..] else { return Ok(None) };
        if matches!(expr, Expr::Elements(_)) {
            return Ok(None);
        }
        let Coerced::Exact(value) = access.coerce(&expr.eval(row, ctx)?, ty, ctx) else { return Ok(None) };
        encode_part(part, &value, ty, &mut key);
    }
    access.form(&scan.table).shorten(&mut key);
    Ok(Some(key))
}

/// Returns the ranges of the access path, its expressions evaluated over the left row.
/// `is_exact` becomes false if they are wider than the conditions that they come from.
pub fn ranges_of(
    table: &Table,
    access: &Access,
    row: &[Value],
    ctx: &mut EvalContext,
    is_exact: &mut bool,
) -> Result<Vec<Range>> {
    let whole = || vec![Range::Between(Bound::Unbounded, Bound::Unbounded)];
    if access.is_full() {
        return Ok(whole());
    }
    let parts: &[Part] = match access.index {
        Some(at) => &table.indexes[at].parts,
        None => table.primary.as_deref().unwrap_or(&[]),
    };
    if let Some(test) = access.test {
        *is_exact = false;
        return ranges_of_terms(table, access, test, row, ctx);
    }
    let mut prefixes: Vec<Vec<u8>> = vec![Vec::with_capacity(POINT_BYTES)];
    let mut is_whole = true;
    for (part, exprs) in parts.iter().zip(&access.equal) {
        let ty = &table.columns[part.column].ty;
        let mut values = Vec::new();
        for expr in exprs {
            if expr.is_null_literal() {
                values.push(Value::Null);
                continue;
            }
            if let Expr::Elements(array) = expr {
                if !elements(access, array, (row, ty), &mut values, ctx)? {
                    is_whole = false;
                    *is_exact = false;
                    break;
                }
                continue;
            }
            match access.coerce(&expr.eval(row, ctx)?, ty, ctx) {
                Coerced::Exact(value) => values.push(value),
                Coerced::Below | Coerced::Above | Coerced::Null => {}
                Coerced::Unusable => {
                    is_whole = false;
                    *is_exact = false;
                    break;
                }
            }
        }
        if !is_whole {
            break;
        }
        if let [value] = &values[..] {
            prefixes.iter_mut().for_each(|prefix| encode_part(part, value, ty, prefix));
            continue;
        }
        let mut longer = Vec::with_capacity(prefixes.len() * values.len());
        for prefix in &prefixes {
            for value in &values {
                let mut key = prefix.clone();
                encode_part(part, value, ty, &mut key);
                longer.push(key);
            }
        }
        prefixes = longer;
    }
    let form = access.form(table);
    let is_all = is_whole && access.equal.len() == parts.len();
    for prefix in &mut prefixes {
        if is_all {
            form.shorten(prefix);
        } else if prefix.len() > form.ordered_bytes() {
            prefix.truncate(form.ordered_bytes());
            *is_exact = false;
        }
    }
    if prefixes.len() > 1 {
        // In the order of the index, and each once.
        prefixes.sort();
        prefixes.dedup();
        if access.backward {
            prefixes.reverse();
        }
    }
    if is_all && access.is_point {
        return Ok(prefixes.into_iter().map(Range::Point).collect());
    }
    let mut ranges = Vec::new();
    for prefix in prefixes {
        let end = parts.get(access.equal.len()).filter(|_| is_whole);
        match end {
            // Keys that are shortened before the part show nothing of it.
            Some(_) if access.is_bounded() && prefix.len() >= form.ordered_bytes() => {
                *is_exact = false;
                ranges.push(Range::Between(Bound::Included(prefix.clone()), after(&prefix)));
            }
            Some(part) if access.is_bounded() => {
                let ty = &table.columns[part.column].ty;
                let is_last = access.equal.len() + 1 == parts.len();
                let next = Next { access, part, ty, prefix: &prefix, form, is_last, row };
                ranges.extend(next.ranges(ctx, is_exact)?);
            }
            _ if prefix.is_empty() => return Ok(whole()),
            _ => ranges.push(Range::Between(Bound::Included(prefix.clone()), after(&prefix))),
        }
    }
    Ok(ranges)
}

/// Returns the entries of the terms that rows have that pass a test.
fn ranges_of_terms(
    table: &Table,
    access: &Access,
    test: TermTest,
    row: &[Value],
    ctx: &mut EvalContext,
) -> Result<Vec<Range>> {
    // A plan that is shown is of no session.
    let instance = ctx.host.is_some().then(|| host(ctx).instance.clone());
    let records = |map: MapId, (from, to): &Entries| {
        let engine = instance.as_ref()?.engine();
        let extent = engine.rows().extent(map, from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice));
        Some(extent.ok()?.records)
    };
    let found = entries_of_test(table, access, test, row, ctx, |map, entries| records(map, entries).unwrap_or(0.0))?;
    Ok(found.into_iter().map(|(from, to)| Range::Between(from, to)).collect())
}

/// Returns the entries that an access by a test of terms follows, where `records` estimates those of a part of the index.
pub fn entries_of_test(
    table: &Table,
    access: &Access,
    test: TermTest,
    row: &[Value],
    ctx: &mut EvalContext,
    records: impl Fn(MapId, &Entries) -> f64,
) -> Result<Vec<Entries>> {
    let index = access.index.map(|at| &table.indexes[at]);
    let (Some(index), Some([other])) = (index, access.equal.first().map(|exprs| &exprs[..])) else {
        unreachable!("a test of terms leads through an index, with one value");
    };
    let Some(form) = index.terms else { unreachable!("a test of terms leads through an index of terms") };
    let other = other.eval(row, ctx)?;
    Ok(entries(wanted(form, test, &other), |entries| records(index.map, entries)))
}

/// The most elements of an array that are looked up one by one.
const ELEMENTS_MAX: usize = 64 << 10;

/// Appends the elements of an array that some value of the column may equal. False: the array is no list of keys.
fn elements(
    access: &Access,
    array: &Expr,
    (row, ty): (&[Value], &Type),
    values: &mut Vec<Value>,
    ctx: &mut EvalContext,
) -> Result<bool> {
    let array = match array.eval(row, ctx)? {
        Value::Array(array) if array.len() <= ELEMENTS_MAX => array,
        Value::Null => return Ok(true),
        _ => return Ok(false),
    };
    for value in array.values() {
        match access.coerce(value, ty, ctx) {
            Coerced::Exact(value) => values.push(value),
            Coerced::Below | Coerced::Above | Coerced::Null => {}
            Coerced::Unusable => return Ok(false),
        }
    }
    Ok(true)
}

/// From where to where in a map.
pub type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The parts of the map that the access leads to, as far as its expressions can be computed without a row.
pub fn bounds(table: &Table, access: &Access, ctx: &mut EvalContext) -> Result<Vec<Bounds>> {
    let part = |range| match range {
        Range::Point(key) => (Bound::Included(key.clone()), Bound::Included(key)),
        Range::Between(from, to) => (from, to),
    };
    Ok(ranges_of(table, access, &[], ctx, &mut true)?.into_iter().map(part).collect())
}

/// Keys from one on up to another, which is not one of them; None: to the end of the map.
#[derive(Clone)]
struct Stretch {
    from: Vec<u8>,
    to: Option<Vec<u8>>,
}

impl Stretch {
    /// All keys that begin so.
    fn of(prefix: &[u8]) -> Stretch {
        Stretch { from: prefix.to_vec(), to: behind(prefix) }
    }

    /// None: there is no key in both. The tree must not be asked for a stretch that ends before it begins.
    fn met(self, other: &Stretch) -> Option<Stretch> {
        let from = self.from.max(other.from.clone());
        let to = match (self.to, other.to.clone()) {
            (Some(to), Some(other)) => Some(to.min(other)),
            (to, other) => to.or(other),
        };
        to.as_ref().is_none_or(|to| from < *to).then_some(Stretch { from, to })
    }
}

/// The first key behind all that begin so.
fn behind(prefix: &[u8]) -> Option<Vec<u8>> {
    match after(prefix) {
        Bound::Excluded(key) => Some(key),
        _ => None,
    }
}

/// In order, those that overlap or touch made one.
fn united(mut stretches: Vec<Stretch>) -> Vec<Stretch> {
    stretches.sort_by(|a, b| a.from.cmp(&b.from));
    let mut out: Vec<Stretch> = Vec::with_capacity(stretches.len());
    for next in stretches {
        match out.last_mut() {
            Some(last) if last.to.as_ref().is_none_or(|to| next.from <= *to) => {
                // No end is behind every end.
                last.to = last.to.take().zip(next.to).map(|(a, b)| a.max(b));
            }
            _ => out.push(next),
        }
    }
    out
}

/// The keys that begin with `prefix`, by the part that comes next in them.
struct Next<'k> {
    access: &'k Access,
    part: &'k Part,
    ty: &'k Type,
    prefix: &'k [u8],
    form: KeyForm,
    /// No part follows.
    is_last: bool,
    row: &'k [Value],
}

impl Next<'_> {
    fn ranges(&self, ctx: &mut EvalContext, is_exact: &mut bool) -> Result<Vec<Range>> {
        let access = self.access;
        let mut stretches = vec![Stretch::of(self.prefix)];
        if !access.within.is_empty() {
            let spans = access.within.iter().map(|span| match span {
                Span::Equal(expr) => self.equal(expr, ctx, is_exact),
                Span::Between { low, high } => self.between((low.as_ref(), high.as_ref()), ctx, is_exact),
            });
            stretches = united(spans.filter_map(Result::transpose).collect::<Result<_>>()?);
        }
        if access.low.is_some() || access.high.is_some() {
            let around = self.between((access.low.as_ref(), access.high.as_ref()), ctx, is_exact)?;
            let met = |stretch: Stretch| stretch.met(around.as_ref()?);
            stretches = stretches.into_iter().filter_map(met).collect();
        }
        if access.backward {
            stretches.reverse();
        }
        let range = |stretch: Stretch| {
            Range::Between(Bound::Included(stretch.from), stretch.to.map_or(Bound::Unbounded, Bound::Excluded))
        };
        Ok(stretches.into_iter().map(range).collect())
    }

    fn key(&self, value: &Value) -> Vec<u8> {
        let mut key = self.prefix.to_vec();
        encode_part(self.part, value, self.ty, &mut key);
        key
    }

    /// Keeps what compares in the map. True: that is not all.
    fn truncate(&self, key: &mut Vec<u8>) -> bool {
        let is_long = key.len() > self.form.ordered_bytes();
        key.truncate(self.form.ordered_bytes());
        is_long
    }

    /// Those with one value, or with NULL. None: no row can have it.
    fn equal(&self, expr: &Expr, ctx: &mut EvalContext, is_exact: &mut bool) -> Result<Option<Stretch>> {
        if expr.is_null_literal() {
            return Ok(Some(Stretch::of(&self.key(&Value::Null))));
        }
        Ok(match self.access.coerce(&expr.eval(self.row, ctx)?, self.ty, ctx) {
            Coerced::Exact(value) => {
                let mut key = self.key(&value);
                if self.is_last {
                    self.form.shorten(&mut key);
                } else if self.truncate(&mut key) {
                    *is_exact = false;
                }
                Some(Stretch::of(&key))
            }
            Coerced::Below | Coerced::Above | Coerced::Null => None,
            Coerced::Unusable => {
                *is_exact = false;
                Some(Stretch::of(self.prefix))
            }
        })
    }

    /// None: no row can be between.
    fn between(
        &self,
        (low, high): (Option<&Limit>, Option<&Limit>),
        ctx: &mut EvalContext,
        is_exact: &mut bool,
    ) -> Result<Option<Stretch>> {
        let Stretch { mut from, mut to } = Stretch::of(self.prefix);
        // A NULL is not between anything.
        let null = self.key(&Value::Null);
        if !self.part.order.nulls_first {
            to = Some(null);
        } else {
            from = behind(&null).unwrap_or(null);
        }
        for (limit, is_low) in [(low, true), (high, false)] {
            let Some((expr, inclusive)) = limit else { continue };
            let value = match self.access.coerce(&expr.eval(self.row, ctx)?, self.ty, ctx) {
                Coerced::Exact(value) => value,
                Coerced::Null => return Ok(None),
                Coerced::Below if !is_low => return Ok(None),
                Coerced::Above if is_low => return Ok(None),
                Coerced::Below | Coerced::Above => continue,
                Coerced::Unusable => {
                    *is_exact = false;
                    continue;
                }
            };
            let mut key = self.key(&value);
            // Of keys that begin like a long bound none is known to lie behind it.
            let is_long = self.truncate(&mut key);
            *is_exact &= !is_long;
            match (is_low != self.part.order.descending, *inclusive || is_long) {
                (true, true) => from = key,
                (true, false) => from = behind(&key).unwrap_or(key),
                (false, true) => to = behind(&key),
                (false, false) => to = Some(key),
            }
        }
        Ok(to.as_ref().is_none_or(|to| from < *to).then_some(Stretch { from, to }))
    }
}
