//! Aggregate functions.

use datum::key::KeyOrder;
use query::nodes::aggregate::{Accumulator, Aggregate, AggregateFunction, Memory};
use query::nodes::context::EvalContext;
use query::nodes::expr::Expr;
use query::nodes::node::AggregateCall;
use query::types::Type;
use syntax::postgres::tree::{Argument, FuncCall, NullsOrder, SortBy, SortDirection};

use crate::bind::Binder;
use crate::bind::comparison::comparator;
use crate::bind::scope::Clause;
use crate::bind::typing::{Operand, oid_of, settled, unsupported};
use crate::error::{PgError, Result, state};
use crate::functions::Body;
use crate::types::registry::column_type;
use crate::value::Value;

/// Returns an aggregate's value as it is.
fn kept(value: Value, _: &Type) -> Value {
    value
}

/// The value of a column that is the same in all rows of a group.
pub static ANY_VALUE: AggregateFunction = AggregateFunction {
    name: "any row's value",
    start: |_| Box::new(AnyValue(None)),
    shares_state: false,
    counts_null: true,
    exact: true,
    memory: Memory::One,
    extreme: None,
    finish: kept,
};

#[derive(Clone, Debug)]
struct AnyValue(Option<Value>);

impl Accumulator for AnyValue {
    fn add(&mut self, _: &Aggregate, values: &[Value], _: &mut EvalContext) -> datum::Result<()> {
        if self.0.is_none() {
            self.0 = values.first().cloned();
        }
        Ok(())
    }

    fn finish(&mut self, _: &Aggregate, _: &mut EvalContext) -> datum::Result<Value> {
        Ok(self.0.take().unwrap_or_default())
    }

    fn copy(&self) -> Box<dyn Accumulator> {
        Box::new(self.clone())
    }

    fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, Value::heap_bytes)
    }
}

/// Returns the call whose result is the value that a column has in all rows of a group.
pub fn any_value(column: Expr) -> AggregateCall {
    let ty = settled(&column.ty()).with_nullable(true);
    AggregateCall {
        aggregate: Aggregate {
            function: &ANY_VALUE,
            distinct: false,
            arguments: vec![ty.clone()],
            order: Vec::new(),
            separator: "".into(),
            ty,
            filtered: false,
            by: None,
            setting: 0,
        },
        arguments: vec![column],
    }
}

/// Returns the order of a sort item: NULL counts as the greatest value unless it says otherwise.
pub fn key_order(item: &SortBy) -> Option<KeyOrder> {
    let SortBy { expr: _, direction, nulls } = item;
    let descending = match direction {
        SortDirection::Default | SortDirection::Ascending => false,
        SortDirection::Descending => true,
        SortDirection::Using(op) => match &*op.name {
            "<" => false,
            ">" => true,
            _ => return None,
        },
    };
    let nulls_first = match nulls {
        NullsOrder::Default => descending,
        NullsOrder::First => true,
        NullsOrder::Last => false,
    };
    Some(KeyOrder { descending, nulls_first })
}

impl Binder<'_> {
    /// Returns the order of a sort item, or the error of an operator that orders nothing.
    pub fn order_of(&self, item: &SortBy) -> Result<KeyOrder> {
        key_order(item).ok_or_else(|| {
            let SortDirection::Using(op) = &item.direction else { return unsupported("this order") };
            let text = format!("operator {} is not a valid ordering operator", op.name);
            let hint = "Ordering operators must be \"<\" or \">\" members of btree operator families.";
            self.error(PgError::new(state::WRONG_OBJECT_TYPE, text).hint(hint), op.at.0)
        })
    }

    /// Binds an aggregate and returns the place of its result.
    pub fn aggregate(&mut self, node: &FuncCall, at: u32) -> Result<Operand> {
        let clause = self.scope().clause;
        if self.scope().in_aggregate {
            self.check_aggregate_place(Clause::AggregateArgument, at)?;
        }
        self.check_aggregate_place(clause, at)?;
        self.scope().in_aggregate = true;
        let read_before = self.correlations.last_mut().map(std::mem::take).unwrap_or_default();
        let bound = match node.within_group {
            true => self.ordered_set_call(node, at),
            false => self.aggregate_call(node, at),
        };
        let outer = self.correlations.last_mut().map(|reads| std::mem::replace(reads, read_before)).unwrap_or_default();
        self.note_outer(self.correlations.len() - 1, &outer);
        let scope = self.scope();
        scope.in_aggregate = false;
        scope.clause = clause;
        let call = bound?;
        // It is of the block whose columns its arguments read, subqueries in them too: the innermost of them.
        if !outer.is_empty() && call.arguments.iter().all(|argument| argument.columns().is_empty()) {
            return Err(self.error(unsupported("an aggregate of an outer query"), at));
        }
        if self.scope().reads_itself {
            let text = "aggregate functions are not allowed in a recursive query's recursive term";
            return self.fail(state::INVALID_RECURSION, text, at);
        }
        let Some(grouped) = &mut self.scope().grouped else {
            return Err(self.error(unsupported("an aggregate in this place"), at));
        };
        let directs = if node.within_group { node.arguments.len() } else { 0 };
        Ok(Operand { expr: grouped.result_of(call, directs), at })
    }

    /// Binds the call over the rows that are grouped.
    pub fn aggregate_call(&mut self, node: &FuncCall, at: u32) -> Result<AggregateCall> {
        let FuncCall {
            name: _,
            arguments: nodes,
            variadic: _,
            star,
            distinct,
            order_by,
            within_group: _,
            filter,
            over: _,
            sql_syntax: _,
            json: _,
        } = node;
        let sets = self.sets_bound();
        let mut operands = Vec::with_capacity(nodes.len());
        for (nth, Argument { name: _, value }) in nodes.iter().enumerate() {
            operands.push(match node.json {
                Some(_) if nth + 1 == nodes.len() => self.json_value(value, None)?,
                _ => self.expr(value)?,
            });
        }
        if operands.is_empty() && !star {
            let text = format!("{}(*) must be used to call a parameterless aggregate function", node.name.dotted());
            return self.fail(state::WRONG_OBJECT_TYPE, text, at);
        }
        let word = if node.over.is_some() { "window" } else { "aggregate" };
        self.check_no_sets(sets, &format!("{word} function calls cannot contain set-returning function calls"))?;
        let signature = self.signature_of(node, &operands, at)?;
        let Body::Aggregate(function) = signature.0.body else {
            let text = format!("{} is not an aggregate function", node.name.dotted());
            return self.fail(state::WRONG_OBJECT_TYPE, text, at);
        };
        let places: Vec<u32> = operands.iter().map(|operand| operand.at).collect();
        let (mut arguments, result) = self.arguments_of(signature, operands)?;
        let typmod = self.row_modifier(&arguments, result);
        if *distinct {
            for (argument, at) in arguments.iter().zip(places) {
                self.check_comparable(oid_of(argument), at)?;
            }
        }
        let mut order = Vec::new();
        for item in order_by {
            let key = self.aggregate_key(item, &arguments)?;
            if *distinct && !arguments.iter().any(|argument| query::nodes::walk::same(argument, &key)) {
                let text = "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list";
                return self.fail(state::INVALID_COLUMN_REFERENCE, text, item.expr.span.start);
            }
            order.push((key, self.order_of(item)?));
        }
        let by = arguments.first().map(oid_of).and_then(|ty| comparator(ty, ty));
        let (keys, order): (Vec<Expr>, Vec<KeyOrder>) = order.into_iter().unzip();
        arguments.extend(keys);
        let types = arguments.iter().map(|argument| settled(&argument.ty())).collect();
        if let Some(filter) = filter {
            let clause = self.set_clause(Clause::Filter);
            let condition = self.condition(filter, "FILTER");
            self.set_clause(clause);
            arguments.push(condition?);
        }
        let aggregate = Aggregate {
            function,
            distinct: *distinct,
            arguments: types,
            order,
            separator: "".into(),
            ty: column_type(result, typmod, true),
            filtered: filter.is_some(),
            by,
            setting: 0,
        };
        Ok(AggregateCall { aggregate, arguments })
    }

    fn aggregate_key(&mut self, item: &SortBy, arguments: &[Expr]) -> Result<Expr> {
        let key = self.expr(&item.expr)?;
        let at = key.at;
        // The argument itself may have been coerced.
        let same = arguments.iter().find(|argument| query::nodes::walk::same(argument, &key.expr)).cloned();
        let key = match same {
            Some(same) => same,
            None => self.settle(key)?,
        };
        self.check_sortable(oid_of(&key), at)?;
        Ok(key)
    }
}
