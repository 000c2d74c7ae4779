//! Functions in FROM: the rows of generate_series, and the one row of any other function.

use std::sync::Arc;

use datum::Result as CoreResult;
use query::nodes::context::EvalContext;
use query::nodes::expr::{Call, Expr};
use query::nodes::function::{Function, Run};
use query::nodes::node::Node;
use query::nodes::table_function::{Give, RowSource, TableFunction};
use query::types::Column;
use syntax::postgres::tree::{self, Argument, ExprKind, FuncCall, RangeFunction};

use crate::bind::Binder;
use crate::bind::coerce::{call_of, common_type};
use crate::bind::from::Operands;
use crate::bind::output_name::name_of_expr;
use crate::bind::resolve::{Resolution, operator};
use crate::bind::scope::{Clause, OutputColumn};
use crate::bind::typing::{Operand, literal, oid_of, settled, shown, shown_list, unsupported};
use crate::error::{PgError, Result, state};
use crate::functions::CastContext;
use crate::session::facts::FactsOf as _;
use crate::types::oid::{self, Oid};
use crate::types::registry::column_type;
use crate::value::Value;

/// Carries the arguments of a table function for whatever looks at expressions; the rows come of copies.
static ARGUMENTS: Function = Function::new(&["arguments"], Run::Lazy(no_value));

fn no_value(_: &Call, _: &[Value], _: &mut EvalContext) -> CoreResult<Value> {
    Ok(Value::Null)
}

/// Returns whether a function of this name returns sets of rows.
pub fn is_set_returning(name: &str) -> bool {
    matches!(name, "generate_series" | "pg_listening_channels")
}

/// pg_listening_channels: the channels that the session listens to.
#[derive(Debug)]
struct ListeningChannels;

impl RowSource for ListeningChannels {
    fn rows(&self, _: Value, ctx: &mut EvalContext, give: &mut Give<'_>) -> CoreResult<()> {
        let listening = ctx.facts().channels.listening.clone();
        listening.iter().try_for_each(|channel| give(vec![Value::text(&**channel)], ctx))
    }
}

/// generate_series: values from `start` to `stop`, each the one before plus `step`.
#[derive(Debug)]
struct Series {
    start: Expr,
    stop: Expr,
    step: Expr,
    /// Over (value, step): the next value.
    next: Expr,
    /// Over (value, stop): whether a series that ascends, or descends, has not passed its end.
    is_before_end: [Expr; 2],
    /// Over (step): whether it is positive, and whether it is negative.
    signs: [Expr; 2],
}

impl RowSource for Series {
    fn rows(&self, _: Value, ctx: &mut EvalContext, give: &mut Give<'_>) -> CoreResult<()> {
        let mut value = self.start.eval(&[], ctx)?;
        let (stop, step) = (self.stop.eval(&[], ctx)?, self.step.eval(&[], ctx)?);
        if value.is_null() || stop.is_null() || step.is_null() {
            return Ok(());
        }
        let of_step = [step.clone()];
        let direction = match (self.signs[0].holds(&of_step, ctx)?, self.signs[1].holds(&of_step, ctx)?) {
            (true, _) => &self.is_before_end[0],
            (_, true) => &self.is_before_end[1],
            _ => return Err(PgError::new(state::INVALID_PARAMETER_VALUE, "step size cannot equal zero").into()),
        };
        let mut count = 0_u32;
        while direction.holds(&[value.clone(), stop.clone()], ctx)? {
            give(vec![value.clone()], ctx)?;
            count = count.wrapping_add(1);
            if count.is_multiple_of(1024) {
                ctx.check_killed()?;
            }
            // Beyond the type's range the series ends.
            match self.next.eval(&[value, step.clone()], ctx) {
                Ok(next) => value = next,
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }
}

/// The bound rows of a function.
struct Rows {
    node: Arc<Node>,
    columns: Vec<OutputColumn>,
}

impl Binder<'_> {
    pub fn range_function(&mut self, function: &RangeFunction) -> Result<Operands> {
        let RangeFunction { lateral: _, rows_from, functions, ordinality, alias, columns, at } = function;
        if *rows_from || functions.len() != 1 {
            return Err(self.error(unsupported("ROWS FROM"), at.0));
        }
        if *ordinality {
            return Err(self.error(unsupported("WITH ORDINALITY"), at.0));
        }
        if !columns.is_empty() || !functions[0].columns.is_empty() {
            let text = "a column definition list is only allowed for functions returning \"record\"";
            return self.fail(state::SYNTAX_ERROR, text, at.0);
        }
        let call = &functions[0].call;
        // A function alone is LATERAL whether it says so or not.
        let (rows, outside) = self.deeper(|binder| {
            binder.open_scope();
            binder.scope().clause = Clause::FunctionInFrom;
            let rows = binder.function_rows(call);
            binder.close_scope();
            rows
        })?;
        let Rows { node, mut columns } = rows;
        let name = name_of_expr(call);
        // The only column of a function takes the alias of the table.
        let shown = alias.as_ref().map_or(name.as_str(), |alias| alias.name.value.as_str());
        if let [column] = &mut columns[..] {
            column.column.name = shown.to_owned();
        }
        let names = alias.as_ref().map_or(&[][..], |alias| &alias.columns);
        self.lateral(shown, columns, names, node, &outside)
    }

    /// Binds a set-returning function of the select list: its rows join those of FROM.
    pub fn set_returning(&mut self, call: &FuncCall, at: u32) -> Result<Operand> {
        let scope = self.scope();
        if scope.clause != Clause::SelectList {
            let text = format!("set-returning functions are not allowed in {}", scope.clause.in_words());
            return self.fail(state::FEATURE_NOT_SUPPORTED, text, at);
        }
        if scope.grouped.is_some() || scope.in_aggregate || !scope.set_returning.is_empty() {
            let what = "a set-returning function beside aggregates or another one in a select list";
            return Err(self.error(unsupported(what), at));
        }
        let (rows, outside) = self.deeper(|binder| {
            binder.open_scope();
            binder.scope().clause = Clause::FunctionInFrom;
            let rows = binder.series(call, at);
            binder.close_scope();
            rows
        })?;
        let operands = self.lateral(call.name.last(), rows.columns, &[], rows.node, &outside)?;
        let expr = operands.names[0].columns[0].expr.clone();
        let scope = self.scope();
        scope.note_use(&expr);
        scope.set_returning.push(operands.source);
        Ok(Operand { expr, at })
    }

    fn function_rows(&mut self, call: &tree::Expr) -> Result<Rows> {
        if let ExprKind::Function(function) = &call.kind
            && is_set_returning(function.name.last())
            && self.is_system(&function.name)
        {
            return self.series(function, call.span.start);
        }
        let value = self.expr(call)?;
        let expr = self.settle(value)?;
        let column = Column::computed(name_of_expr(call), settled(&expr.ty()));
        let at = call.span.start;
        let width = self.scope().width;
        let node = Arc::new(Node::Project { input: Arc::new(Node::One { width }), exprs: vec![expr] });
        Ok(Rows { node, columns: vec![OutputColumn { column, origin: None, at }] })
    }

    fn series(&mut self, call: &FuncCall, at: u32) -> Result<Rows> {
        if call.name.last() == "pg_listening_channels" && call.arguments.is_empty() {
            let argument = call_of(&ARGUMENTS, Vec::new(), oid::TEXT, -1);
            let source = Box::new(ListeningChannels);
            let node = Arc::new(Node::TableFunction(Box::new(TableFunction { argument, source })));
            let column = Column::computed("pg_listening_channels", column_type(oid::TEXT, -1, true));
            return Ok(Rows { node, columns: vec![OutputColumn { column, origin: None, at }] });
        }
        let mut operands = Vec::new();
        for Argument { name: _, value } in &call.arguments {
            operands.push(self.expr(value)?);
        }
        let types: Vec<Oid> = operands.iter().map(Operand::oid).collect();
        let wrong = |binder: &Binder<'_>| {
            let text = format!("function {}({}) does not exist", call.name.last(), shown_list(&types));
            let hint =
                "No function matches the given name and argument types. You might need to add explicit type casts.";
            Err(binder.error(PgError::new(state::UNDEFINED_FUNCTION, text).hint(hint), at))
        };
        if !(2..=3).contains(&operands.len()) {
            return wrong(self);
        }
        let is_of_time = types.iter().any(|ty| matches!(*ty, oid::TIMESTAMP | oid::TIMESTAMPTZ | oid::DATE));
        let (value, step) = if is_of_time {
            if operands.len() != 3 {
                return wrong(self);
            }
            // Dates become instants, as the preferred type of their category.
            let bounds: Vec<&Operand> = operands[..2].iter().collect();
            let common = common_type(&bounds).unwrap_or(oid::TIMESTAMPTZ);
            (if common == oid::TIMESTAMP { oid::TIMESTAMP } else { oid::TIMESTAMPTZ }, oid::INTERVAL)
        } else {
            let all: Vec<&Operand> = operands.iter().collect();
            let ty = match common_type(&all) {
                Ok(oid::INT2 | oid::INT4) => oid::INT4,
                Ok(ty @ (oid::INT8 | oid::NUMERIC)) => ty,
                _ => return wrong(self),
            };
            (ty, ty)
        };
        let mut exprs = Vec::new();
        for (nth, operand) in operands.into_iter().enumerate() {
            let target = if nth == 2 { step } else { value };
            let at = operand.at;
            let coerced = self.coerce_to(operand, target, -1, CastContext::Implicit)?;
            exprs.push(coerced.ok_or_else(|| {
                let text = format!("generate_series needs {} here", shown(target));
                self.error(PgError::new(state::UNDEFINED_FUNCTION, text), at)
            })?);
        }
        if exprs.len() == 2 {
            let one = Operand { expr: literal(Value::Int(1), oid::INT4), at };
            exprs.push(self.coerce(one, step, CastContext::Implicit)?);
        }
        self.series_rows(exprs, value, step, at)
    }

    fn series_rows(&mut self, exprs: Vec<Expr>, value: Oid, step: Oid, at: u32) -> Result<Rows> {
        let place = |nth: usize, ty: Oid| Operand { expr: Expr::Column(nth, column_type(ty, -1, true)), at };
        let zero = match step {
            oid::INTERVAL => self.coerce_to(
                Operand { expr: Expr::Literal(Value::text("0"), column_type(oid::UNKNOWN, -1, false)), at },
                oid::INTERVAL,
                -1,
                CastContext::Explicit,
            )?,
            _ => {
                let zero = Operand { expr: literal(Value::Int(0), oid::INT4), at };
                self.coerce_to(zero, step, -1, CastContext::Implicit)?
            }
        };
        let zero = Operand { expr: zero.unwrap_or_else(Expr::null), at };
        let mut over = |op: &'static str, left: Operand, right: Operand| -> Result<Expr> {
            match operator(op, left.oid(), right.oid()) {
                Resolution::One(_) => {
                    let op = tree::Operator::plain(op, tree::Location(at));
                    Ok(self.make_operator(&op, left, right)?.expr)
                }
                _ => Err(unsupported(format!("generate_series over {}", shown(value)))),
            }
        };
        let next = over("+", place(0, value), place(1, step))?;
        let is_before_end =
            [over("<=", place(0, value), place(1, value))?, over(">=", place(0, value), place(1, value))?];
        let signs = [over(">", place(0, step), zero.clone())?, over("<", place(0, step), zero)?];
        let argument = call_of(&ARGUMENTS, exprs.clone(), oid::TEXT, -1);
        let [start, stop, step] = <[Expr; 3]>::try_from(exprs).unwrap_or_else(|_| unreachable!("three arguments"));
        let ty = column_type(oid_of(&start), -1, true);
        let source = Box::new(Series { start, stop, step, next, is_before_end, signs });
        let node = Arc::new(Node::TableFunction(Box::new(TableFunction { argument, source })));
        let column = Column::computed("generate_series", ty);
        Ok(Rows { node, columns: vec![OutputColumn { column, origin: None, at }] })
    }
}
