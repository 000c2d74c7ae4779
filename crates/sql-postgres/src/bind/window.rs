//! Window functions: their partitions, orders and frames, and the places of their results.
//!
//! Windows are evaluated above the grouping and below DISTINCT and ORDER BY. Their results follow the columns of that stage, whose number is known when all clauses are
//! bound; until then a result has a place beyond `scope::WINDOWS`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use datum::key::KeyOrder;
use query::nodes::context::EvalContext;
use query::nodes::expr::{Call, Expr};
use query::nodes::function::{Finish, Function, Run};
use query::nodes::node::Node;
use query::nodes::window::{Distance, Edge, Exclusion, Frame, Reach, Unit, What, Window, WindowCall};
use query::types::Type;
use syntax::postgres::tree::{
    self, Argument, FrameBound, FrameExclusion, FrameUnit, FuncCall, NamedWindow, Over, SortBy, WindowDef,
};

use crate::bind::Binder;
use crate::bind::coerce::{call_of, can_coerce};
use crate::bind::scope::{Clause, WINDOWS};
use crate::bind::select::check_targets;
use crate::bind::typing::{Operand, literal, oid_of, settled, shown, unsupported};
use crate::bind::walk::is_aggregate;
use crate::error::{PgError, Result, state};
use crate::functions::{Body, CastContext, in_range};
use crate::types::oid::{self, Oid};
use crate::types::registry::{column_type, oid_of as type_oid};
use crate::value::Value;

/// A partition and an order, with the functions that share them.
#[derive(Debug)]
struct Ordering {
    partition: Vec<Expr>,
    order: Vec<(Expr, KeyOrder)>,
    calls: Vec<WindowCall>,
}

/// The window functions of a block.
#[derive(Debug, Default)]
pub struct Windowed {
    named: Vec<(String, WindowDef)>,
    /// The place of each name in `named`.
    names: HashMap<String, usize>,
    /// The place in `named` of the definition at each byte of the text.
    places: HashMap<u32, usize>,
    /// Those of `named` with the parts that they extend, as far as they are known.
    resolved: HashMap<usize, Resolved>,
    orderings: Vec<Ordering>,
    /// The place of each partition and order in `orderings`, by their bound forms.
    numbers: HashMap<String, usize>,
    count: usize,
    /// The place of the first result.
    first: usize,
}

impl Windowed {
    pub fn is_used(&self) -> bool {
        self.count > 0
    }

    /// Returns the number of window nodes: one for each order.
    pub fn orders(&self) -> usize {
        self.orderings.len()
    }

    /// Returns the width of the rows with the results.
    pub fn width(&self) -> usize {
        self.first + self.count
    }

    /// Puts the results behind this many places.
    pub fn settle(&mut self, first: usize) {
        self.first = first;
        for call in self.orderings.iter_mut().flat_map(|ordering| &mut ordering.calls) {
            call.at += first;
        }
    }

    /// Returns all expressions over the rows that the windows read.
    pub fn expressions(&mut self) -> Vec<&mut Expr> {
        let mut exprs = Vec::new();
        for Ordering { partition, order, calls } in &mut self.orderings {
            exprs.extend(partition);
            exprs.extend(order.iter_mut().map(|(expr, _)| expr));
            for WindowCall { at: _, what, frame, varies: _ } in calls {
                exprs.extend(of_function(what));
                for edge in [&mut frame.start, &mut frame.end] {
                    let (Edge::Preceding(distance) | Edge::Following(distance)) = edge else { continue };
                    // Nothing shares it yet.
                    if let Some(reach) = distance.reach.as_mut().and_then(Arc::get_mut) {
                        exprs.extend([&mut reach.key, &mut reach.boundary]);
                    }
                }
            }
        }
        exprs
    }

    /// Stacks the window nodes on the input.
    pub fn nodes(self, mut input: Arc<Node>) -> Arc<Node> {
        let width = self.first + self.count;
        for Ordering { partition, order, calls } in self.orderings {
            input = Arc::new(Node::Window(Window { input, partition, order, calls, width }));
        }
        input
    }
}

fn of_function(what: &mut What) -> Vec<&mut Expr> {
    match what {
        What::RowNumber | What::Rank | What::DenseRank | What::PercentRank | What::CumeDist => Vec::new(),
        What::Ntile(expr) | What::First(expr) | What::Last(expr) => vec![expr],
        What::Shift { value, by, otherwise, ahead: _ } => {
            std::iter::once(value).chain(by.as_mut()).chain(std::iter::once(otherwise)).collect()
        }
        What::Nth(value, nth) => vec![value, nth],
        What::Aggregate(call) => call.arguments.iter_mut().collect(),
    }
}

/// A window with the parts of the one that it extends.
#[derive(Clone, Debug)]
struct Resolved {
    partition_by: Vec<tree::Expr>,
    order_by: Vec<SortBy>,
    frame: Option<tree::Frame>,
    /// The byte where its definition begins.
    at: u32,
}

/// A number as PostgreSQL's types have it.
static SIGNED: Function = Function { finish: Finish::Unchanged, ..Function::new(&["signed"], Run::Strict(signed)) };

fn signed(_: &Call, values: &[Value], _: &mut EvalContext) -> datum::Result<Value> {
    Ok(match &values[0] {
        Value::UInt(number) => Value::Int(*number as i64),
        other => other.clone(),
    })
}

impl Binder<'_> {
    /// Keeps the named windows of a block.
    pub fn name_windows(&mut self, definitions: &[NamedWindow]) -> Result<()> {
        for NamedWindow { name, window } in definitions {
            let windowed = &mut self.scope().windowed;
            if windowed.names.insert(name.value.clone(), windowed.named.len()).is_some() {
                let text = format!("window \"{}\" is already defined", name.value);
                return self.fail(state::WINDOWING_ERROR, text, window.at.0);
            }
            let windowed = &mut self.scope().windowed;
            windowed.places.insert(window.at.0, windowed.named.len());
            windowed.named.push((name.value.clone(), window.clone()));
        }
        Ok(())
    }

    /// Binds the named windows for their errors: one may be used by no function.
    pub fn check_windows(&mut self) -> Result<()> {
        let named = self.scope().windowed.named.clone();
        for (nth, (_, window)) in named.iter().enumerate() {
            let resolved = self.extended(window)?;
            self.scope().windowed.resolved.insert(nth, resolved.clone());
            let (_, order) = self.ordering(&resolved)?;
            self.frame(resolved.frame.as_ref(), &order, resolved.at)?;
        }
        Ok(())
    }

    /// Binds `function(...) OVER ...` and returns the place of its result.
    pub fn window_function(&mut self, node: &FuncCall, at: u32) -> Result<Operand> {
        let clause = self.scope().clause;
        let clause = if self.scope().in_aggregate { Clause::AggregateArgument } else { clause };
        self.check_window_place(clause, at)?;
        let Some(over) = &node.over else { return Err(unsupported("a window function without OVER")) };
        let before = self.set_clause(Clause::WindowArgument);
        let bound = self.windowed(node, over, at);
        self.set_clause(before);
        bound
    }

    fn windowed(&mut self, node: &FuncCall, over: &Over, at: u32) -> Result<Operand> {
        let (what, result) = self.what(node, at)?;
        let ty = type_oid(&result);
        let resolved = self.resolve_window(over)?;
        let (partition, order) = self.ordering(&resolved)?;
        let frame = self.frame(resolved.frame.as_ref(), &order, resolved.at)?;
        let windowed = &mut self.scope().windowed;
        let number = windowed.count;
        windowed.count += 1;
        let call = WindowCall { at: number, what, frame, varies: true };
        let text = format!("{partition:?}{order:?}");
        match windowed.numbers.entry(text) {
            Entry::Occupied(known) => windowed.orderings[*known.get()].calls.push(call),
            Entry::Vacant(new) => {
                check_targets(windowed.orderings.len() + 1)?;
                new.insert(windowed.orderings.len());
                windowed.orderings.push(Ordering { partition, order, calls: vec![call] });
            }
        }
        let place = Expr::Column(WINDOWS + number, result);
        // The core counts in unsigned numbers.
        let is_count = matches!(ty, oid::INT8 | oid::INT4) && !is_aggregate(node);
        Ok(Operand { expr: if is_count { call_of(&SIGNED, vec![place], ty, -1) } else { place }, at })
    }

    /// Binds the function and its arguments. Returns the type of the result too.
    fn what(&mut self, node: &FuncCall, at: u32) -> Result<(What, Type)> {
        if node.distinct {
            let text = "DISTINCT is not implemented for window functions";
            return self.fail(state::FEATURE_NOT_SUPPORTED, text, at);
        }
        if !node.order_by.is_empty() {
            let text = "aggregate ORDER BY is not implemented for window functions";
            return self.fail(state::FEATURE_NOT_SUPPORTED, text, at);
        }
        if is_aggregate(node) {
            let call = self.aggregate_call(node, at)?;
            let ty = call.aggregate.ty.clone();
            return Ok((What::Aggregate(call), ty));
        }
        let sets = self.sets_bound();
        let mut operands = Vec::new();
        for Argument { name: _, value } in &node.arguments {
            operands.push(self.expr(value)?);
        }
        self.check_no_sets(sets, "window function calls cannot contain set-returning function calls")?;
        let signature = self.signature_of(node, &operands, at)?;
        if !matches!(signature.0.body, Body::Window) {
            let text =
                format!("OVER specified, but {} is not a window function nor an aggregate function", node.name.last());
            return self.fail(state::WRONG_OBJECT_TYPE, text, at);
        }
        if node.filter.is_some() {
            let text = "FILTER is not implemented for non-aggregate window functions";
            return self.fail(state::FEATURE_NOT_SUPPORTED, text, at);
        }
        let (arguments, result) = self.arguments_of(signature, operands)?;
        let ty = column_type(result, self.row_modifier(&arguments, result), true);
        Ok((self.named_what(node.name.last(), arguments, at)?, ty))
    }

    fn named_what(&self, name: &str, arguments: Vec<Expr>, at: u32) -> Result<What> {
        let mut rest = arguments.into_iter();
        let given = (rest.next(), rest.next(), rest.next());
        Ok(match (name, given) {
            ("row_number", _) => What::RowNumber,
            ("rank", _) => What::Rank,
            ("dense_rank", _) => What::DenseRank,
            ("percent_rank", _) => What::PercentRank,
            ("cume_dist", _) => What::CumeDist,
            ("ntile", (Some(count), ..)) => What::Ntile(count),
            ("first_value", (Some(value), ..)) => What::First(value),
            ("last_value", (Some(value), ..)) => What::Last(value),
            ("nth_value", (Some(value), Some(nth), _)) => What::Nth(value, nth),
            ("lag" | "lead", (Some(value), by, otherwise)) => {
                let otherwise = otherwise.unwrap_or_else(|| literal(Value::Null, oid_of(&value)));
                What::Shift { value, by, otherwise, ahead: name == "lead" }
            }
            _ => return Err(self.error(unsupported(format!("the window function {name}")), at)),
        })
    }

    fn resolve_window(&mut self, over: &Over) -> Result<Resolved> {
        match over {
            Over::Named(name) => {
                let window = self.window_named(&name.value, name.at.0)?;
                self.extended(&window)
            }
            Over::Window(window) => self.extended(window),
        }
    }

    fn window_named(&mut self, name: &str, at: u32) -> Result<WindowDef> {
        let windowed = &self.scope().windowed;
        match windowed.names.get(name).map(|nth| windowed.named[*nth].1.clone()) {
            Some(window) => Ok(window),
            None => self.fail(state::UNDEFINED_OBJECT, format!("window \"{name}\" does not exist"), at),
        }
    }

    /// Returns a window with the parts of those that it extends.
    fn extended(&mut self, window: &WindowDef) -> Result<Resolved> {
        let WindowDef { base, partition_by, order_by, frame, at: own } = window;
        let (partition, order) = (partition_by.clone(), order_by.clone());
        let plain = Resolved { partition_by: partition, order_by: order, frame: frame.clone(), at: own.0 };
        let Some(base) = base else { return Ok(plain) };
        self.check_stack()?;
        let parent = self.window_named(&base.value, own.0)?;
        // A window can extend those before it only.
        let index = |binder: &mut Self, name: &str| binder.scope().windowed.names.get(name).copied();
        let (named, of_parent) = (self.name_of_window(window), index(self, &base.value));
        if let (Some(named), Some(of_parent)) = (named, of_parent)
            && of_parent >= named
        {
            return self.fail(state::UNDEFINED_OBJECT, format!("window \"{}\" does not exist", base.value), own.0);
        }
        let refuse = |binder: &Self, text: String| binder.fail(state::WINDOWING_ERROR, text, own.0);
        if !partition_by.is_empty() {
            return refuse(self, format!("cannot override PARTITION BY clause of window \"{}\"", base.value));
        }
        if !order_by.is_empty() && !parent.order_by.is_empty() {
            return refuse(self, format!("cannot override ORDER BY clause of window \"{}\"", base.value));
        }
        if parent.frame.is_some() {
            let text = format!("cannot copy window \"{}\" because it has a frame clause", base.value);
            let is_bare = order_by.is_empty() && frame.is_none() && self.name_of_window(window).is_none();
            let error = PgError::new(state::WINDOWING_ERROR, text);
            let error = if is_bare { error.hint("Omit the parentheses in this OVER clause.") } else { error };
            return Err(self.error(error, own.0));
        }
        let known = of_parent.and_then(|nth| self.scope().windowed.resolved.get(&nth).cloned());
        let parent = match known {
            Some(known) => known,
            None => self.extended(&parent)?,
        };
        let order_by = if plain.order_by.is_empty() { parent.order_by } else { plain.order_by };
        Ok(Resolved { partition_by: parent.partition_by, order_by, frame: plain.frame, at: own.0 })
    }

    fn name_of_window(&mut self, window: &WindowDef) -> Option<usize> {
        // No two definitions of a block are at one place of its text.
        let nth = self.scope().windowed.places.get(&window.at.0).copied()?;
        (self.scope().windowed.named[nth].1 == *window).then_some(nth)
    }

    #[allow(clippy::type_complexity)]
    fn ordering(&mut self, resolved: &Resolved) -> Result<(Vec<Expr>, Vec<(Expr, KeyOrder)>)> {
        let clause = self.set_clause(Clause::WindowPartition);
        let mut partition = Vec::new();
        for expr in &resolved.partition_by {
            let key = self.expr(expr)?;
            let key = self.settle(key)?;
            self.check_comparable(oid_of(&key), expr.span.start)?;
            partition.push(key);
        }
        self.set_clause(Clause::WindowOrder);
        let mut order = Vec::new();
        for item in &resolved.order_by {
            let key = self.expr(&item.expr)?;
            let key = self.settle(key)?;
            self.check_sortable(oid_of(&key), item.expr.span.start)?;
            order.push((key, self.order_of(item)?));
        }
        self.set_clause(clause);
        Ok((partition, order))
    }

    /// Binds a frame of the window whose definition is at `own`.
    fn frame(&mut self, frame: Option<&tree::Frame>, order: &[(Expr, KeyOrder)], own: u32) -> Result<Frame> {
        let window: Arc<str> = "".into();
        let Some(tree::Frame { unit, start, end, exclusion, at: _ }) = frame else {
            let end = if order.is_empty() { Edge::Far } else { Edge::Current };
            return Ok(Frame { unit: Unit::Range, start: Edge::Far, end, exclusion: Exclusion::NoOthers, window });
        };
        let unit = match unit {
            FrameUnit::Rows => Unit::Rows,
            FrameUnit::Range => Unit::Range,
            FrameUnit::Groups => Unit::Groups,
        };
        let exclusion = match exclusion {
            FrameExclusion::NoOthers => Exclusion::NoOthers,
            FrameExclusion::CurrentRow => Exclusion::CurrentRow,
            FrameExclusion::Group => Exclusion::Group,
            FrameExclusion::Ties => Exclusion::Ties,
        };
        if unit == Unit::Groups && order.is_empty() {
            return self.fail(state::WINDOWING_ERROR, "GROUPS mode requires an ORDER BY clause", own);
        }
        let has_offset = |bound: &FrameBound| matches!(bound, FrameBound::Preceding(_) | FrameBound::Following(_));
        let is_by_value = unit == Unit::Range && (has_offset(start) || end.as_ref().is_some_and(has_offset));
        if is_by_value && order.len() != 1 {
            let text = "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column";
            return self.fail(state::WINDOWING_ERROR, text, own);
        }
        // Without an order all rows of a partition are peers.
        let whole = unit == Unit::Range && order.is_empty();
        let start = self.edge(start, true, unit, order)?;
        let end = match end {
            None => Edge::Current,
            Some(end) => self.edge(end, false, unit, order)?,
        };
        let or_far = |edge: Edge| if whole && matches!(edge, Edge::Current) { Edge::Far } else { edge };
        Ok(Frame { unit, start: or_far(start), end: or_far(end), exclusion, window })
    }

    fn edge(&mut self, bound: &FrameBound, is_start: bool, unit: Unit, order: &[(Expr, KeyOrder)]) -> Result<Edge> {
        let (offset, precedes) = match bound {
            FrameBound::CurrentRow => return Ok(Edge::Current),
            FrameBound::UnboundedPreceding | FrameBound::UnboundedFollowing => return Ok(Edge::Far),
            FrameBound::Preceding(offset) => (offset, true),
            FrameBound::Following(offset) => (offset, false),
        };
        let word = match unit {
            Unit::Rows => "ROWS",
            Unit::Range => "RANGE",
            Unit::Groups => "GROUPS",
        };
        let clause = self.set_clause(Clause::WindowFrame);
        let amount = self.expr(offset)?;
        self.set_clause(clause);
        let at = amount.at;
        let amount = match unit {
            Unit::Range => self.range_offset(amount, order)?,
            Unit::Rows | Unit::Groups => {
                let source = amount.oid();
                let Some(amount) = self.coerce_to(amount, oid::INT8, -1, CastContext::Assignment)? else {
                    let text = format!("argument of {word} must be type bigint, not type {}", shown(source));
                    return self.fail(state::DATATYPE_MISMATCH, text, at);
                };
                amount
            }
        };
        if !amount.columns().is_empty() {
            let text = format!("argument of {word} must not contain variables");
            return self.fail(state::INVALID_COLUMN_REFERENCE, text, at);
        }
        let checked = |function: &'static Function, amount: Expr| {
            call_of(function, vec![amount, literal(is_start.into(), oid::BOOL)], oid::INT8, -1)
        };
        let distance = match (unit, order) {
            (Unit::Range, [(key, order)]) => {
                let reach = reach(key, *order, amount.clone(), precedes, is_start)
                    .ok_or_else(|| unsupported("a frame over this type"))?;
                Distance { amount: checked(&in_range::DISTANCE, amount), reach: Some(Arc::new(reach)) }
            }
            _ => Distance { amount: checked(&in_range::COUNT, amount), reach: None },
        };
        Ok(if precedes { Edge::Preceding(distance) } else { Edge::Following(distance) })
    }

    /// Brings the offset of a RANGE frame to the type in which it is added to the column's.
    fn range_offset(&mut self, amount: Operand, order: &[(Expr, KeyOrder)]) -> Result<Expr> {
        let (given, at) = (amount.oid(), amount.at);
        let column = order.first().map_or(oid::UNKNOWN, |(key, _)| oid_of(key));
        let refused = |binder: &Self, text: String, hint: Option<&str>| {
            let error = PgError::new(state::FEATURE_NOT_SUPPORTED, text);
            binder.error(hint.into_iter().fold(error, PgError::hint), at)
        };
        let served = in_range::offset_types(column);
        let own = shown(column);
        let Some(preferred) = served.first() else {
            let text = format!("RANGE with offset PRECEDING/FOLLOWING is not supported for column type {own}");
            return Err(refused(self, text, None));
        };
        let fits = |ty: &&Oid| can_coerce(&[given], &[**ty], CastContext::Implicit);
        let target = match served.iter().find(|ty| **ty == given) {
            Some(exact) => exact,
            None if given == oid::UNKNOWN => preferred,
            None => match served.iter().find(fits) {
                Some(ty) => ty,
                None => {
                    let text = format!(
                        "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {own} and offset type {}",
                        shown(given)
                    );
                    return Err(refused(self, text, Some("Cast the offset value to an appropriate type.")));
                }
            },
        };
        self.coerce(amount, *target, CastContext::Implicit)
    }
}

/// Returns the test of rows beyond a bound of RANGE.
fn reach(key: &Expr, order: KeyOrder, amount: Expr, precedes: bool, is_start: bool) -> Option<Reach> {
    let ty = settled(&key.ty());
    let flag = |truth: bool| literal(truth.into(), oid::BOOL);
    let subtracts = precedes != order.descending;
    let less = is_start == order.descending;
    let arguments = vec![Expr::Column(1, ty.clone()), Expr::Column(0, ty), amount, flag(subtracts), flag(less)];
    let outside = call_of(in_range::outside(oid_of(key))?, arguments, oid::BOOL, -1);
    Some(Reach { key: key.clone(), boundary: key.clone(), outside, nulls_first: order.nulls_first })
}
