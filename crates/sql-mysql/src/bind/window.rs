//! Window functions: their partitions, orders and frames, and the places of their results.
//!
//! Windows are evaluated above the grouping and below DISTINCT and ORDER BY. Results follow the columns of that stage.
//! Their offset is known for wide rows. Above a grouping it is known only when all aggregates have been bound, so
//! `select` binds such a block twice, the first time to count them.

use std::sync::Arc;

use datum::key::KeyOrder;
use syntax::tree as ast;

use crate::bind::Bind;
use crate::error::{self, Result, SqlError};
use crate::scalar::aggregate::AggregateKind;
use crate::scalar::bind::{arithmetic, common_type, compare};
use crate::scalar::operation::Operator;
use crate::scalar::operators;
use crate::types::{MysqlType as _, Type};
use query::nodes::comparison::Comparison;
use query::nodes::expr::Expr;
use query::nodes::node::Node;
use query::nodes::window::{Distance, Edge, Exclusion, Frame, Reach, Unit, What, Window, WindowCall};

/// The maximum number of named windows in a block, as in MySQL. Each is resolved through those that it inherits from.
const WINDOWS_MAX: usize = 127;
const UNNAMED: &str = "<unnamed window>";

/// Functions that are only window functions.
const NAMES: &[&str] = &[
    "row_number",
    "rank",
    "dense_rank",
    "percent_rank",
    "cume_dist",
    "ntile",
    "lag",
    "lead",
    "first_value",
    "last_value",
    "nth_value",
];

/// The context for window functions in the block.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Inside {
    Nothing,
    /// Window functions are not allowed: in HAVING and in their own arguments.
    Barred,
    Specification(String),
}

/// A partitioning and order, with the functions that share it.
#[derive(Debug)]
struct Ordering {
    partition: Vec<Expr>,
    order: Vec<(Expr, KeyOrder)>,
    calls: Vec<WindowCall>,
}

/// The window functions of a block.
#[derive(Debug)]
pub struct Windowed {
    /// The place of the first result.
    pub from: usize,
    named: Vec<(String, ast::Window)>,
    orderings: Vec<Ordering>,
    count: usize,
    inside: Inside,
}

impl Windowed {
    /// Returns the number of window nodes: one for each order.
    pub fn orders(&self) -> usize {
        self.orderings.len()
    }

    /// Returns whether the expression reads a window function's result.
    pub fn reaches(&self, expr: &Expr) -> bool {
        expr.columns().iter().any(|at| *at >= self.from)
    }

    /// Stacks the window nodes on the input.
    pub fn nodes(self, mut input: Arc<Node>) -> Arc<Node> {
        let width = self.from + self.count;
        for Ordering { partition, order, calls } in self.orderings {
            input = Arc::new(Node::Window(Window { input, partition, order, calls, width }));
        }
        input
    }

    /// Resets the windows; results start at that place.
    pub fn settle(&mut self, from: usize) {
        self.from = from;
        self.orderings.clear();
        self.count = 0;
    }
}

/// A window with its inherited parts: partition, order, frame.
type Resolved<'a> = (Vec<&'a ast::Expr>, Vec<&'a ast::OrderItem>, Option<&'a ast::Frame>);

pub fn is_window_only(name: &str) -> bool {
    NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

impl Bind<'_> {
    /// Prepares the scope for window functions and checks the named windows.
    pub fn open_windows(&mut self, definitions: &[ast::NamedWindow]) -> Result<()> {
        if definitions.len() > WINDOWS_MAX {
            return Err(SqlError::unsupported(format!("more than {WINDOWS_MAX} named windows in a query block")));
        }
        let mut named: Vec<(String, ast::Window)> = Vec::new();
        for ast::NamedWindow { name, window } in definitions {
            if named.iter().any(|(known, _)| known.eq_ignore_ascii_case(&name.value)) {
                return Err(error::WINDOW_DUPLICATE_NAME.with(&[&name.value]));
            }
            named.push((name.value.clone(), window.clone()));
        }
        let from = self.scope().width;
        let checked = named.clone();
        self.scope().windowed =
            Some(Windowed { from, named, orderings: Vec::new(), count: 0, inside: Inside::Nothing });
        for (name, spec) in &checked {
            let (partition, order, frame) = resolve(&checked, spec, name)?;
            let (_, order) = self.ordering(&partition, &order, name)?;
            self.frame(frame, &order, name)?;
        }
        Ok(())
    }

    /// Runs `bind` where window functions are not allowed.
    pub fn without_windows<T>(&mut self, bind: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.within(Inside::Barred, bind)
    }

    fn within<T>(&mut self, inside: Inside, bind: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let put = |scope: &mut crate::bind::scope::Scope, inside| {
            scope.windowed.as_mut().map(|windowed| std::mem::replace(&mut windowed.inside, inside))
        };
        let before = put(self.scope(), inside);
        let bound = bind(self);
        if let Some(before) = before {
            put(self.scope(), before);
        }
        bound
    }

    /// Refuses an alias of a window result where it must not be used.
    pub fn check_alias(&mut self, name: &str, expr: &Expr) -> Result<()> {
        match &self.scope().windowed {
            Some(windowed)
                if windowed.inside != Inside::Nothing && expr.columns().into_iter().any(|at| at >= windowed.from) =>
            {
                Err(error::WINDOW_INVALID_WINDOW_FUNC_ALIAS_USE.with(&[&name]))
            }
            _ => Ok(()),
        }
    }

    /// Binds `function(...) OVER ...` and returns the place of its result.
    pub fn window_function(&mut self, function: &ast::Function, over: &ast::Over) -> Result<Expr> {
        let name = function.name.to_ascii_lowercase();
        let inside = self.scope().windowed.as_ref().map_or(Inside::Barred, |windowed| windowed.inside.clone());
        match inside {
            Inside::Nothing => {}
            Inside::Barred => return Err(error::WINDOW_INVALID_WINDOW_FUNC_USE.with(&[&name])),
            Inside::Specification(window) => {
                return Err(error::WINDOW_NESTED_WINDOW_FUNC_USE_IN_WINDOW_SPEC.with(&[&window]));
            }
        }
        let what = self.without_windows(|bind| bind.what(&name, function))?;
        let named = self.scope().windowed.as_ref().map(|windowed| windowed.named.clone()).unwrap_or_default();
        let (shown, (partition, order, frame)) = match over {
            ast::Over::Named(window) => {
                let (name, spec) = find(&named, &window.value)?;
                (name.as_str(), resolve(&named, spec, name)?)
            }
            ast::Over::Window(spec) => (UNNAMED, resolve(&named, spec, UNNAMED)?),
        };
        let (partition, order) = self.ordering(&partition, &order, shown)?;
        let frame = self.frame(frame, &order, shown)?;
        let ty = self.result_type(&what)?;
        let windowed = self.scope().windowed.as_mut();
        let Some(windowed) = windowed else { unreachable!("looked at above") };
        let at = windowed.from + windowed.count;
        windowed.count += 1;
        let by = |(expr, _, descending)| (expr, KeyOrder::with_null_least(descending));
        let order = order.into_iter().map(by).collect::<Vec<_>>();
        let call = WindowCall { at, what, frame, varies: false };
        let text = format!("{partition:?}{order:?}");
        match windowed.orderings.iter_mut().find(|known| format!("{:?}{:?}", known.partition, known.order) == text) {
            Some(known) => known.calls.push(call),
            None => windowed.orderings.push(Ordering { partition, order, calls: vec![call] }),
        }
        Ok(Expr::Column(at, ty))
    }

    fn what(&mut self, name: &str, function: &ast::Function) -> Result<What> {
        let ast::Function {
            schema: _,
            name: _,
            arguments,
            star,
            bare: _,
            distinct,
            order_by,
            separator,
            from_last,
            ignore_nulls,
            over: _,
        } = function;
        if *ignore_nulls {
            return Err(SqlError::unsupported("IGNORE NULLS"));
        }
        if *from_last {
            return Err(SqlError::unsupported("FROM LAST"));
        }
        if let Some(kind) = AggregateKind::of_name(name) {
            if *distinct {
                return Err(SqlError::unsupported("<window function>(DISTINCT ..)"));
            }
            if matches!(kind, AggregateKind::GroupConcat | AggregateKind::AnyValue) {
                return Err(SqlError::unsupported(format!("{name} as window function")));
            }
            return self.call(kind, function).map(What::Aggregate);
        }
        if !is_window_only(name) || *distinct || *star || !order_by.is_empty() || separator.is_some() {
            return Err(SqlError::parse(format!("'{name}' at line 1")));
        }
        let arguments = arguments.iter().map(|argument| self.expr(argument)).collect::<Result<_>>()?;
        self.named_what(name, arguments)
    }

    fn named_what(&mut self, name: &str, arguments: Vec<Expr>) -> Result<What> {
        let mut rest = arguments.into_iter();
        let given = (rest.next(), rest.next(), rest.next(), rest.next());
        let what = match (name, given) {
            ("row_number", (None, ..)) => What::RowNumber,
            ("rank", (None, ..)) => What::Rank,
            ("dense_rank", (None, ..)) => What::DenseRank,
            ("percent_rank", (None, ..)) => What::PercentRank,
            ("cume_dist", (None, ..)) => What::CumeDist,
            ("ntile", (Some(count), None, ..)) => What::Ntile(fixed(name, count)?),
            ("first_value", (Some(value), None, ..)) => What::First(value),
            ("last_value", (Some(value), None, ..)) => What::Last(value),
            ("nth_value", (Some(value), Some(nth), None, _)) => What::Nth(value, fixed(name, nth)?),
            ("lag" | "lead", (Some(value), by, otherwise, None)) => {
                let by = by.map(|by| fixed(name, by)).transpose()?;
                let otherwise = otherwise.unwrap_or_else(Expr::null);
                What::Shift { value, by, otherwise, ahead: name == "lead" }
            }
            _ => return Err(SqlError::parse("')'")),
        };
        let What::Shift { value, by, otherwise, ahead } = what else { return Ok(what) };
        // Both values are cast to their common type.
        let ty = common_type(&[&value, &otherwise], name, self.settings())?.with_nullable(true);
        let cast = |expr: Expr| {
            let own = expr.ty();
            let is_same = own.kind() == ty.kind() && own.is_unsigned() == ty.is_unsigned() && own.scale == ty.scale;
            let is_null = own.kind() == crate::types::Kind::Null;
            if is_same || is_null { expr } else { operators::cast(expr, ty.clone()) }
        };
        Ok(What::Shift { value: cast(value), by, otherwise: cast(otherwise), ahead })
    }

    fn result_type(&self, what: &What) -> Result<Type> {
        Ok(match what {
            What::RowNumber | What::Rank | What::DenseRank => Type::unsigned().with_nullable(false),
            What::Ntile(_) => Type::unsigned().with_nullable(true),
            What::PercentRank | What::CumeDist => Type::double().with_nullable(false),
            What::Shift { value, otherwise, .. } => {
                common_type(&[value, otherwise], "lag", self.settings())?.with_nullable(true)
            }
            What::First(value) | What::Last(value) | What::Nth(value, _) => value.ty().with_nullable(true),
            What::Aggregate(call) => call.aggregate.ty.clone(),
        })
    }

    /// Binds PARTITION BY and ORDER BY; for the latter it also returns the syntax.
    #[allow(clippy::type_complexity)]
    fn ordering<'a>(
        &mut self,
        partition: &[&ast::Expr],
        order: &[&'a ast::OrderItem],
        window: &str,
    ) -> Result<(Vec<Expr>, Vec<(Expr, &'a ast::Expr, bool)>)> {
        let clause = self.scope().clause;
        let bound = self.within(Inside::Specification(window.to_owned()), |bind| {
            bind.scope().clause = "window partition by";
            let mut keys = Vec::new();
            for expr in partition {
                keys.push(bind.window_key(expr, window)?);
            }
            bind.scope().clause = "window order by";
            let mut sorts = Vec::new();
            for ast::OrderItem { expr, descending } in order {
                let key = bind.window_key(expr, window)?;
                sorts.push((key, expr, *descending));
            }
            Ok((keys, sorts))
        });
        self.scope().clause = clause;
        bound
    }

    fn window_key(&mut self, expr: &ast::Expr, window: &str) -> Result<Expr> {
        use ast::Literal::{Decimal, Float, Integer};
        if matches!(expr.kind, ast::ExprKind::Literal(Integer(_) | Decimal(_) | Float(_))) {
            return Err(error::WINDOW_ILLEGAL_ORDER_BY.with(&[&window]));
        }
        self.expr(expr)
    }

    fn frame(&mut self, frame: Option<&ast::Frame>, order: &[(Expr, &ast::Expr, bool)], window: &str) -> Result<Frame> {
        let Some(ast::Frame { unit, start, end, exclude }) = frame else {
            let end = if order.is_empty() { Edge::Far } else { Edge::Current };
            return Ok(Frame {
                unit: Unit::Range,
                start: Edge::Far,
                end,
                exclusion: Exclusion::NoOthers,
                window: window.into(),
            });
        };
        let counts_rows = match unit {
            ast::FrameUnit::Rows => true,
            ast::FrameUnit::Range => false,
            ast::FrameUnit::Groups => return Err(SqlError::unsupported("GROUPS")),
        };
        if *exclude {
            return Err(SqlError::unsupported("EXCLUDE"));
        }
        if end.is_none() && matches!(start, ast::Bound::Following(_)) {
            return Err(SqlError::parse("'FOLLOWING' at line 1"));
        }
        if *start == ast::Bound::UnboundedFollowing {
            return Err(error::WINDOW_FRAME_START_ILLEGAL.with(&[&window]));
        }
        if *end == Some(ast::Bound::UnboundedPreceding) {
            return Err(error::WINDOW_FRAME_END_ILLEGAL.with(&[&window]));
        }
        let start = self.edge(start, true, counts_rows, order, window)?;
        let end = match end {
            None => Edge::Current,
            Some(bound) => self.edge(bound, false, counts_rows, order, window)?,
        };
        match (&start, &end) {
            (Edge::Current, Edge::Preceding(_)) | (Edge::Following(_), Edge::Current | Edge::Preceding(_)) => {
                Err(error::WINDOW_FRAME_ILLEGAL.with(&[&window]))
            }
            _ => {
                let unit = if counts_rows { Unit::Rows } else { Unit::Range };
                Ok(Frame { unit, start, end, exclusion: Exclusion::NoOthers, window: window.into() })
            }
        }
    }

    fn edge(
        &mut self,
        bound: &ast::Bound,
        is_start: bool,
        counts_rows: bool,
        order: &[(Expr, &ast::Expr, bool)],
        window: &str,
    ) -> Result<Edge> {
        let (offset, precedes) = match bound {
            ast::Bound::CurrentRow => return Ok(Edge::Current),
            ast::Bound::UnboundedPreceding | ast::Bound::UnboundedFollowing => return Ok(Edge::Far),
            ast::Bound::Preceding(offset) => (&**offset, true),
            ast::Bound::Following(offset) => (&**offset, false),
        };
        let (value, interval) = match offset {
            ast::Offset::Rows(value) => (value, None),
            ast::Offset::Interval(interval) => (&interval.value, Some(interval)),
        };
        let amount = self.within(Inside::Specification(window.to_owned()), |bind| bind.expr(value))?;
        if !amount.columns().is_empty() || query::nodes::walk::is_volatile(&amount) {
            return Err(error::WINDOW_RANGE_BOUND_NOT_CONSTANT.with(&[&window]));
        }
        if counts_rows && interval.is_some() {
            return Err(error::WINDOW_ROWS_INTERVAL_USE.with(&[&window]));
        }
        let reach = match counts_rows {
            true => None,
            false => Some(Arc::new(self.reach(interval, &amount, precedes, is_start, order, window)?)),
        };
        let distance = Distance { amount, reach };
        Ok(if precedes { Edge::Preceding(distance) } else { Edge::Following(distance) })
    }

    fn reach(
        &mut self,
        interval: Option<&ast::Interval>,
        amount: &Expr,
        precedes: bool,
        is_start: bool,
        order: &[(Expr, &ast::Expr, bool)],
        window: &str,
    ) -> Result<Reach> {
        let [(key, written, descending)] = order else {
            return Err(error::WINDOW_RANGE_FRAME_ORDER_TYPE.with(&[&window]));
        };
        let (descending, ty) = (*descending, key.ty());
        let goes_down = precedes != descending;
        let boundary = match interval {
            None if ty.kind().is_temporal() => {
                return Err(error::WINDOW_RANGE_FRAME_TEMPORAL_TYPE.with(&[&window]));
            }
            Some(interval) if ty.kind().is_temporal() => {
                let (operand, interval) = (Box::new((*written).clone()), Box::new(interval.clone()));
                let kind = ast::ExprKind::DateShift { operand, interval, subtract: goes_down };
                let node = ast::Expr { kind, span: written.span };
                self.within(Inside::Specification(window.to_owned()), |bind| bind.expr(&node))?
            }
            _ if !ty.kind().is_number() => return Err(error::WINDOW_RANGE_FRAME_ORDER_TYPE.with(&[&window])),
            Some(_) => return Err(error::WINDOW_RANGE_FRAME_NUMERIC_TYPE.with(&[&window])),
            None => {
                // As decimals, integers can be negative and exceed 64 bits.
                let wide = match ty.kind().is_integer() {
                    true => operators::cast(key.clone(), Type::decimal(20, 0)),
                    false => key.clone(),
                };
                let op = if goes_down { Operator::Subtract } else { Operator::Add };
                arithmetic(self.settings(), op, wide, amount.clone(), "range".into())
            }
        };
        let before = if descending { Comparison::Greater } else { Comparison::Less };
        let op = if is_start { before } else { before.flipped() };
        let (mine, theirs) = (Expr::Column(0, boundary.ty()), Expr::Column(1, ty));
        let outside = compare(self.settings(), op, theirs, mine)?;
        Ok(Reach { key: key.clone(), boundary, outside, nulls_first: !descending })
    }
}

/// Checks that an argument is constant.
fn fixed(name: &str, expr: Expr) -> Result<Expr> {
    let is_fixed = expr.columns().is_empty() && !query::nodes::walk::is_volatile(&expr);
    if is_fixed { Ok(expr) } else { Err(error::WRONG_ARGUMENTS.with(&[&name])) }
}

fn find<'a>(named: &'a [(String, ast::Window)], name: &str) -> Result<&'a (String, ast::Window)> {
    let found = named.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.ok_or_else(|| error::WINDOW_NO_SUCH_WINDOW.with(&[&name]))
}

/// Resolves a window with the parts inherited from the named one.
fn resolve<'a>(named: &'a [(String, ast::Window)], spec: &'a ast::Window, shown: &str) -> Result<Resolved<'a>> {
    let mut chain: Vec<(&str, &ast::Window)> = vec![(shown, spec)];
    while let Some(parent) = &chain[chain.len() - 1].1.base {
        let (name, spec) = find(named, &parent.value)?;
        if chain.len() > named.len() {
            return Err(error::WINDOW_CIRCULARITY_IN_WINDOW_GRAPH.bare());
        }
        chain.push((name, spec));
    }
    for pair in chain.windows(2) {
        let [(name, spec), (parent_name, parent)] = pair else { continue };
        if !spec.partition_by.is_empty() {
            return Err(error::WINDOW_NO_CHILD_PARTITIONING.bare());
        }
        if parent.frame.is_some() {
            return Err(error::WINDOW_NO_INHERIT_FRAME.with(&[parent_name]));
        }
        if !spec.order_by.is_empty() && !parent.order_by.is_empty() {
            return Err(error::WINDOW_NO_REDEFINE_ORDER_BY.with(&[name, parent_name]));
        }
    }
    let partition = chain.iter().find(|(_, spec)| !spec.partition_by.is_empty());
    let order = chain.iter().find(|(_, spec)| !spec.order_by.is_empty());
    Ok((
        partition.map_or(Vec::new(), |(_, spec)| spec.partition_by.iter().collect()),
        order.map_or(Vec::new(), |(_, spec)| spec.order_by.iter().collect()),
        spec.frame.as_ref(),
    ))
}
