//! Window functions: their partitions, orders and frames, and the places of their results.
//!
//! Windows are evaluated above the grouping and below DISTINCT and ORDER BY. Their results follow the columns of that stage, whose number is known when all clauses are
//! bound; until then a result has a place beyond `scope::WINDOWS`.

use std::sync::Arc;

use datum::key::KeyOrder;
use query::nodes::context::EvalContext;
use query::nodes::expr::{Call, Expr};
use query::nodes::function::{Function, Run};
use query::nodes::node::Node;
use query::nodes::walk::is_volatile;
use query::nodes::window::{Distance, Edge, Frame, Reach, What, Window, WindowCall};
use syntax::postgres::tree::{
    self, Argument, FrameBound, FrameExclusion, FrameUnit, FuncCall, Location, NamedWindow, Operator, Over, SortBy,
    WindowDef,
};

use crate::bind::Binder;
use crate::bind::coerce::{call_of, same};
use crate::bind::scope::{Clause, WINDOWS};
use crate::bind::typing::{Operand, literal, oid_of, settled, shown, unsupported};
use crate::bind::walk::is_aggregate;
use crate::error::{PgError, Result, state};
use crate::functions::{Body, CastContext};
use crate::types::oid::{self, Oid};
use crate::types::registry::column_type;
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
    orderings: Vec<Ordering>,
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
            for WindowCall { at: _, what, frame } in calls {
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
struct Resolved {
    partition_by: Vec<tree::Expr>,
    order_by: Vec<SortBy>,
    frame: Option<tree::Frame>,
}

/// A number as PostgreSQL's types have it.
static SIGNED: Function = Function { finish: Some(same), ..Function::new(&["signed"], Run::Strict(signed)) };

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
            if self.scope().windowed.named.iter().any(|(known, _)| *known == name.value) {
                let text = format!("window \"{}\" is already defined", name.value);
                return self.fail(state::WINDOWING_ERROR, text, name.at.0);
            }
            self.scope().windowed.named.push((name.value.clone(), window.clone()));
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
        let (what, ty) = self.what(node, at)?;
        let resolved = self.resolve_window(over)?;
        let (partition, order) = self.ordering(&resolved)?;
        let frame = self.frame(resolved.frame.as_ref(), &order)?;
        let windowed = &mut self.scope().windowed;
        let number = windowed.count;
        windowed.count += 1;
        let call = WindowCall { at: number, what, frame };
        let text = format!("{partition:?}{order:?}");
        match windowed.orderings.iter_mut().find(|known| format!("{:?}{:?}", known.partition, known.order) == text) {
            Some(known) => known.calls.push(call),
            None => windowed.orderings.push(Ordering { partition, order, calls: vec![call] }),
        }
        let place = Expr::Column(WINDOWS + number, column_type(ty, -1, true));
        // The core counts in unsigned numbers.
        let is_count = matches!(ty, oid::INT8 | oid::INT4) && !is_aggregate(node);
        Ok(Operand { expr: if is_count { call_of(&SIGNED, vec![place], ty, -1) } else { place }, at })
    }

    /// Binds the function and its arguments. Returns the type of the result too.
    fn what(&mut self, node: &FuncCall, at: u32) -> Result<(What, Oid)> {
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
            let ty = oid_of(&Expr::Column(0, call.aggregate.ty.clone()));
            return Ok((What::Aggregate(call), ty));
        }
        let mut operands = Vec::new();
        for Argument { name: _, value } in &node.arguments {
            operands.push(self.expr(value)?);
        }
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
        let (arguments, result) = self.arguments_of(signature, operands, at)?;
        Ok((self.named_what(node.name.last(), arguments, at)?, result))
    }

    fn named_what(&self, name: &str, arguments: Vec<Expr>, at: u32) -> Result<What> {
        let mut rest = arguments.into_iter();
        let given = (rest.next(), rest.next(), rest.next());
        let fixed = |expr: Expr| {
            let is_fixed = expr.columns().is_empty() && !is_volatile(&expr);
            if is_fixed { Ok(expr) } else { Err(self.error(unsupported(format!("{name} by a column")), at)) }
        };
        Ok(match (name, given) {
            ("row_number", _) => What::RowNumber,
            ("rank", _) => What::Rank,
            ("dense_rank", _) => What::DenseRank,
            ("percent_rank", _) => What::PercentRank,
            ("cume_dist", _) => What::CumeDist,
            ("ntile", (Some(count), ..)) => What::Ntile(fixed(count)?),
            ("first_value", (Some(value), ..)) => What::First(value),
            ("last_value", (Some(value), ..)) => What::Last(value),
            ("nth_value", (Some(value), Some(nth), _)) => What::Nth(value, fixed(nth)?),
            ("lag" | "lead", (Some(value), by, otherwise)) => {
                let by = by.map(fixed).transpose()?;
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
        let found = self.scope().windowed.named.iter().find(|(known, _)| known == name).cloned();
        match found {
            Some((_, window)) => Ok(window),
            None => self.fail(state::UNDEFINED_OBJECT, format!("window \"{name}\" does not exist"), at),
        }
    }

    /// Returns a window with the parts of those that it extends.
    fn extended(&mut self, window: &WindowDef) -> Result<Resolved> {
        let WindowDef { base, partition_by, order_by, frame, at: own } = window;
        let plain = Resolved { partition_by: partition_by.clone(), order_by: order_by.clone(), frame: frame.clone() };
        let Some(base) = base else { return Ok(plain) };
        self.check_stack()?;
        let parent = self.window_named(&base.value, base.at.0)?;
        // A window can extend those before it only.
        let index =
            |binder: &mut Self, name: &str| binder.scope().windowed.named.iter().position(|(known, _)| known == name);
        let (named, of_parent) = (self.name_of_window(window), index(self, &base.value));
        if let (Some(named), Some(of_parent)) = (named, of_parent)
            && of_parent >= named
        {
            return self.fail(state::UNDEFINED_OBJECT, format!("window \"{}\" does not exist", base.value), base.at.0);
        }
        let refuse = |binder: &Self, text: String| binder.fail(state::WINDOWING_ERROR, text, own.0);
        if !partition_by.is_empty() {
            return refuse(self, format!("cannot override PARTITION BY clause of window \"{}\"", base.value));
        }
        if !order_by.is_empty() && !parent.order_by.is_empty() {
            return refuse(self, format!("cannot override ORDER BY clause of window \"{}\"", base.value));
        }
        if parent.frame.is_some() {
            return refuse(self, format!("cannot copy window \"{}\" because it has a frame clause", base.value));
        }
        let parent = self.extended(&parent)?;
        let order_by = if plain.order_by.is_empty() { parent.order_by } else { plain.order_by };
        Ok(Resolved { partition_by: parent.partition_by, order_by, frame: plain.frame })
    }

    fn name_of_window(&mut self, window: &WindowDef) -> Option<usize> {
        self.scope().windowed.named.iter().position(|(_, known)| known == window)
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

    fn frame(&mut self, frame: Option<&tree::Frame>, order: &[(Expr, KeyOrder)]) -> Result<Frame> {
        let window: Arc<str> = "".into();
        let Some(tree::Frame { unit, start, end, exclusion, at }) = frame else {
            let end = if order.is_empty() { Edge::Far } else { Edge::Current };
            return Ok(Frame { counts_rows: false, start: Edge::Far, end, window });
        };
        let counts_rows = match unit {
            FrameUnit::Rows => true,
            FrameUnit::Range => false,
            FrameUnit::Groups => return Err(self.error(unsupported("GROUPS"), at.0)),
        };
        if *exclusion != FrameExclusion::NoOthers {
            return Err(self.error(unsupported("EXCLUDE"), at.0));
        }
        // Without an order all rows of a partition are peers.
        let whole = !counts_rows && order.is_empty();
        let start = self.edge(start, true, counts_rows, order, at.0)?;
        let end = match end {
            None => Edge::Current,
            Some(end) => self.edge(end, false, counts_rows, order, at.0)?,
        };
        let or_far = |edge: Edge| if whole && matches!(edge, Edge::Current) { Edge::Far } else { edge };
        Ok(Frame { counts_rows, start: or_far(start), end: or_far(end), window })
    }

    fn edge(
        &mut self,
        bound: &FrameBound,
        is_start: bool,
        counts_rows: bool,
        order: &[(Expr, KeyOrder)],
        at: u32,
    ) -> Result<Edge> {
        let (offset, precedes) = match bound {
            FrameBound::CurrentRow => return Ok(Edge::Current),
            FrameBound::UnboundedPreceding | FrameBound::UnboundedFollowing => return Ok(Edge::Far),
            FrameBound::Preceding(offset) => (offset, true),
            FrameBound::Following(offset) => (offset, false),
        };
        let clause = self.set_clause(Clause::WindowFrame);
        let amount = self.expr(offset)?;
        self.set_clause(clause);
        let at_amount = amount.at;
        let (amount, reach) = match counts_rows {
            true => {
                let source = amount.oid();
                let Some(amount) = self.coerce_to(amount, oid::INT8, -1, CastContext::Assignment)? else {
                    let text = format!("argument of ROWS must be type bigint, not type {}", shown(source));
                    return self.fail(state::DATATYPE_MISMATCH, text, at_amount);
                };
                (amount, None)
            }
            false => {
                let (amount, reach) = self.reach(amount, precedes, is_start, order, at)?;
                (amount, Some(Arc::new(reach)))
            }
        };
        if !amount.columns().is_empty() || is_volatile(&amount) {
            let word = if counts_rows { "ROWS" } else { "RANGE" };
            let text = format!("argument of {word} must not contain variables");
            return self.fail(state::INVALID_COLUMN_REFERENCE, text, at_amount);
        }
        let distance = Distance { amount, reach };
        Ok(if precedes { Edge::Preceding(distance) } else { Edge::Following(distance) })
    }

    /// Binds a bound of RANGE: the value at that distance from the row's, and the test of rows beyond it.
    fn reach(
        &mut self,
        amount: Operand,
        precedes: bool,
        is_start: bool,
        order: &[(Expr, KeyOrder)],
        at: u32,
    ) -> Result<(Expr, Reach)> {
        let [(key, order)] = order else {
            let text = "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column";
            return self.fail(state::WINDOWING_ERROR, text, at);
        };
        let (descending, ty) = (order.descending, oid_of(key));
        let goes_down = precedes != descending;
        let wide = match ty {
            oid::INT2 | oid::INT4 => Some(oid::INT8),
            // The sum may be beyond the type.
            oid::INT8 => Some(oid::NUMERIC),
            _ => None,
        };
        let base = Operand { expr: key.clone(), at };
        let base = match wide {
            Some(wide) => Operand { expr: self.coerce(base, wide, CastContext::Implicit)?, at },
            None => base,
        };
        let op = Operator::plain(if goes_down { "-" } else { "+" }, Location(amount.at));
        let refused = |binder: &Self| {
            let text = format!("RANGE with offset PRECEDING/FOLLOWING is not supported for column type {}", shown(ty));
            binder.error(PgError::new(state::FEATURE_NOT_SUPPORTED, text), at)
        };
        let boundary = self.make_operator(&op, base, amount).map_err(|_| refused(self))?.expr;
        let amount = match &boundary {
            Expr::Call(call) if call.arguments.len() == 2 => call.arguments[1].clone(),
            _ => return Err(refused(self)),
        };
        let before = if descending { ">" } else { "<" };
        let after = if descending { "<" } else { ">" };
        let op = Operator::plain(if is_start { before } else { after }, Location(at));
        let theirs = Operand { expr: Expr::Column(1, settled(&key.ty())), at };
        let mine = Operand { expr: Expr::Column(0, settled(&boundary.ty())), at };
        let outside = self.make_operator(&op, theirs, mine)?.expr;
        Ok((amount, Reach { key: key.clone(), boundary, outside, descending }))
    }
}
