//! Ordered-set and hypothetical-set aggregates: `function(direct arguments) WITHIN GROUP (ORDER BY ...)`.
//!
//! The function is found by its direct arguments and the expressions of ORDER BY together. The call adds the values of both for each row; a direct argument uses grouped columns alone, so it is the same in
//! all rows of a group.

use datum::key::KeyOrder;
use query::nodes::aggregate::Aggregate;
use query::nodes::expr::Expr;
use query::nodes::node::AggregateCall;
use syntax::postgres::tree::{Argument, FuncCall};

use crate::bind::Binder;
use crate::bind::resolve::{Resolution, Signature, function};
use crate::bind::scope::Clause;
use crate::bind::typing::{Operand, oid_of, settled};
use crate::error::{PgError, Result, state};
use crate::functions::{Body, OrderedSetBody};
use crate::types::oid::Oid;
use crate::types::registry::column_type;

impl Binder<'_> {
    /// Binds the call over the rows that are grouped.
    pub fn ordered_set_call(&mut self, node: &FuncCall, at: u32) -> Result<AggregateCall> {
        let sets = self.sets_bound();
        let mut operands = Vec::new();
        for Argument { name: _, value } in &node.arguments {
            operands.push(self.expr(value)?);
        }
        let directs = operands.len();
        for item in &node.order_by {
            operands.push(self.expr(&item.expr)?);
        }
        self.check_no_sets(sets, "aggregate function calls cannot contain set-returning function calls")?;
        let (signature, body) = self.ordered_set(node, &operands, at)?;
        let direct_at: Vec<u32> = operands[..directs].iter().map(|operand| operand.at).collect();
        let sort_at: Vec<u32> = operands[directs..].iter().map(|operand| operand.at).collect();
        let (mut arguments, result) = match body.is_hypothetical {
            true => (self.unified(operands, directs)?, signature.0.result),
            false => self.arguments_of(signature, operands)?,
        };
        let typmod = self.row_modifier(&arguments, result);
        for (direct, at) in arguments[..directs].iter().zip(direct_at) {
            self.check_direct(direct, at)?;
        }
        let mut order: Vec<KeyOrder> = Vec::new();
        for ((item, key), at) in node.order_by.iter().zip(&arguments[directs..]).zip(sort_at) {
            self.check_sortable(oid_of(key), at)?;
            order.push(self.order_of(item)?);
        }
        let types = arguments.iter().map(|argument| settled(&argument.ty())).collect();
        if let Some(filter) = &node.filter {
            let clause = self.set_clause(Clause::Filter);
            let condition = self.condition(filter, "FILTER");
            self.set_clause(clause);
            arguments.push(condition?);
        }
        let aggregate = Aggregate {
            function: body.function,
            distinct: false,
            arguments: types,
            order,
            separator: "".into(),
            ty: column_type(result, typmod, true),
            filtered: node.filter.is_some(),
            by: None,
            setting: 0,
        };
        Ok(AggregateCall { aggregate, arguments })
    }

    fn ordered_set(&self, node: &FuncCall, operands: &[Operand], at: u32) -> Result<(Signature, OrderedSetBody)> {
        let name = node.name.last();
        let types: Vec<Oid> = self.input_types(operands)?;
        let (directs, sorts) = (node.arguments.len(), node.order_by.len());
        let found = function(name, &types);
        let misused = |text: String| Err(self.error(PgError::new(state::WRONG_OBJECT_TYPE, text), at));
        let is_hypothetical = |body: &OrderedSetBody| body.is_hypothetical;
        match found {
            Resolution::One(signature) if self.is_system(&node.name) => match signature.0.body {
                Body::OrderedSet(_) if node.over.is_some() => {
                    let text = format!("OVER is not supported for ordered-set aggregate {name}");
                    self.fail(state::FEATURE_NOT_SUPPORTED, text, at)
                }
                Body::OrderedSet(body) if is_hypothetical(&body) && directs != sorts => {
                    let hint = format!(
                        "To use the hypothetical-set aggregate {name}, the number of hypothetical direct arguments (here {directs}) must match the number of ordering columns (here {sorts})."
                    );
                    Err(self.no_function(&node.name, operands, at).hint(hint))
                }
                Body::OrderedSet(body) if !is_hypothetical(&body) && sorts != 1 => {
                    let wanted = types.len() - 1;
                    let plural = if wanted == 1 { "" } else { "s" };
                    let hint = format!(
                        "There is an ordered-set aggregate {name}, but it requires {wanted} direct argument{plural}, not {directs}."
                    );
                    Err(self.no_function(&node.name, operands, at).hint(hint))
                }
                Body::OrderedSet(body) => Ok((signature, body)),
                Body::Aggregate(_) => {
                    misused(format!("{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP"))
                }
                _ => misused(format!("WITHIN GROUP specified, but {name} is not an aggregate function")),
            },
            _ => Err(self.no_function(&node.name, operands, at)),
        }
    }

    /// Brings each direct argument of a hypothetical row and the column that it stands for to a common type.
    fn unified(&mut self, operands: Vec<Operand>, directs: usize) -> Result<Vec<Expr>> {
        let mut operands = operands;
        let sorts = operands.split_off(directs);
        let (mut own, mut columns) = (Vec::new(), Vec::new());
        for (direct, sort) in operands.into_iter().zip(sorts) {
            let ty = self.common_type(&[&direct, &sort], "WITHIN GROUP")?;
            let mut pair = self.coerce_to_common(vec![direct, sort], ty, "WITHIN GROUP")?;
            columns.push(pair.swap_remove(1));
            own.push(pair.swap_remove(0));
        }
        own.extend(columns);
        Ok(own)
    }

    /// Refuses a direct argument that reads a column that is not grouped by.
    fn check_direct(&mut self, direct: &Expr, at: u32) -> Result<()> {
        let detail = "Direct arguments of an ordered-set aggregate must use only grouped columns.";
        self.check_grouped(direct, at).map_err(|error| error.detail(detail))
    }
}
