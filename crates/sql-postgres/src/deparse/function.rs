//! Calls: functions, aggregates, window functions.

use syntax::postgres::tree::{
    self, FrameBound, FrameExclusion, FrameUnit, FuncCall, NullsOrder, SortBy, SortDirection,
};

use crate::bind::coerce::is_polymorphic;
use crate::bind::polymorphic;
use crate::bind::resolve::{self, Notation, Resolution};
use crate::bind::typing::unsupported;
use crate::deparse::analyse::Analyser;
use crate::deparse::node::{
    Aggregate, Frame, Over, SortItem, SqlForm, SqlNode, Window, WindowBound, WindowCall, array_of,
};
use crate::error::Result;
use crate::functions::{Body, CastContext, PgFunction};
use crate::types::oid::{self, Oid};
use crate::types::registry;

impl Analyser<'_, '_> {
    pub fn function(&mut self, call: &FuncCall) -> Result<SqlNode> {
        if call.within_group || call.arguments.iter().any(|argument| argument.name.is_some()) {
            return Err(unsupported("this call of a definition"));
        }
        let mut arguments = Vec::new();
        for argument in &call.arguments {
            arguments.push(self.expr(&argument.value)?);
        }
        let name = call.name.last();
        let is_aggregate = resolve::functions_named(name).iter().any(|row| matches!(row.body, Body::Aggregate(_)));
        if call.variadic && (call.over.is_some() || is_aggregate) {
            return Err(unsupported("this call of a definition"));
        }
        if call.over.is_some() || is_aggregate || call.star {
            return self.aggregate(call, arguments);
        }
        if call.variadic {
            return self.call_with_array(name, arguments);
        }
        self.call(name, arguments, if call.sql_syntax { SqlForm::Sql } else { SqlForm::Call })
    }

    /// Returns a call of the system's function of that name.
    pub fn call(&mut self, name: &str, arguments: Vec<SqlNode>, form: SqlForm) -> Result<SqlNode> {
        let types: Vec<Oid> = arguments.iter().map(|argument| argument.ty().0).collect();
        let (row, parameters) = match resolve::function(name, &types) {
            Resolution::One(found) => found,
            _ => return self.cast_by_name(name, arguments),
        };
        if let ([argument], Some(ty)) = (&arguments[..], registry::by_name(name))
            && parameters != types
            && (argument.ty().0 == oid::UNKNOWN || !self.can_coerce(types[0], parameters[0]))
        {
            return self.cast(argument.clone(), (ty.oid, -1), SqlForm::Explicit, CastContext::Explicit);
        }
        let mut arguments = self.arguments(row, &parameters, arguments)?;
        let ty = (result(row, &parameters, &arguments), -1);
        let name = row.name.to_owned();
        if matches!(row.variadic, 0 | oid::ANY) {
            return Ok(SqlNode::Call { name, arguments, ty, form });
        }
        let items = arguments.split_off(row.arguments.len() - 1);
        arguments.push(SqlNode::Array { items, ty: array_of(row.variadic) });
        Ok(SqlNode::Call { name, arguments, ty, form: SqlForm::Variadic })
    }

    /// Returns a call whose last argument is the array of the variadic ones.
    fn call_with_array(&mut self, name: &str, arguments: Vec<SqlNode>) -> Result<SqlNode> {
        let types: Vec<Oid> = arguments.iter().map(|argument| argument.ty().0).collect();
        let notation = Notation { names: &[], is_variadic: true };
        let Resolution::One((row, parameters)) = resolve::function_as(name, &types, notation) else {
            return Err(unsupported(format!("the function {name} of a definition")));
        };
        let arguments = self.arguments(row, &parameters, arguments)?;
        let ty = (result(row, &parameters, &arguments), -1);
        Ok(SqlNode::Call { name: row.name.to_owned(), arguments, ty, form: SqlForm::Variadic })
    }

    /// Reads a call of a type's name as a cast.
    fn cast_by_name(&mut self, name: &str, mut arguments: Vec<SqlNode>) -> Result<SqlNode> {
        match (registry::by_name(name), arguments.len()) {
            (Some(ty), 1) => {
                let argument = arguments.remove(0);
                self.cast(argument, (ty.oid, -1), SqlForm::Explicit, CastContext::Explicit)
            }
            _ => Err(unsupported(format!("the function {name} of a definition"))),
        }
    }

    fn arguments(
        &mut self,
        row: &'static PgFunction,
        parameters: &[Oid],
        arguments: Vec<SqlNode>,
    ) -> Result<Vec<SqlNode>> {
        let common = parameters.contains(&oid::ANYCOMPATIBLE).then(|| self.common(&arguments)).transpose()?;
        let settled = settled(row, parameters, &arguments);
        let mut coerced = Vec::new();
        for (at, (argument, parameter)) in arguments.into_iter().zip(parameters).enumerate() {
            let target = match *parameter {
                oid::ANYCOMPATIBLE | oid::ANYCOMPATIBLENONARRAY => common.unwrap_or(oid::TEXT),
                oid::ANYELEMENT | oid::ANYNONARRAY | oid::ANYRANGE | oid::ANYMULTIRANGE => {
                    settled.as_ref().map_or(oid::TEXT, |(types, _)| types[at])
                }
                other => other,
            };
            coerced.push(self.coerce(argument, target, SqlForm::Implicit)?);
        }
        Ok(coerced)
    }

    fn aggregate(&mut self, call: &FuncCall, arguments: Vec<SqlNode>) -> Result<SqlNode> {
        let types: Vec<Oid> = arguments.iter().map(|argument| argument.ty().0).collect();
        let name = match &call.json {
            Some(clauses) => self.binder.json_aggregate_named(clauses, &types)?,
            None => call.name.last(),
        };
        let Resolution::One((row, parameters)) = resolve::function(name, &types) else {
            return Err(unsupported(format!("the function {name} of a definition")));
        };
        let arguments = self.arguments(row, &parameters, arguments)?;
        let mut ty = (result(row, &parameters, &arguments), -1);
        let json = match &call.json {
            None => None,
            Some(clauses) => {
                let (text, returned) = self.json_clauses(clauses, arguments.len() == 2, ty)?;
                ty = returned;
                Some(text)
            }
        };
        let filter = call.filter.as_ref().map(|filter| self.condition(filter)).transpose()?;
        let order_by = self.sorts(&call.order_by, None)?;
        let aggregate = Aggregate {
            name: row.name.to_owned(),
            arguments,
            star: call.star,
            distinct: call.distinct,
            order_by,
            filter,
            ty,
            json,
        };
        Ok(match &call.over {
            None => SqlNode::Aggregate(Box::new(aggregate)),
            Some(over) => {
                let over = match over {
                    tree::Over::Named(name) => Over::Named(name.value.clone()),
                    tree::Over::Window(window) => Over::Window(self.window(window)?),
                };
                SqlNode::Window(Box::new(WindowCall { call: aggregate, over }))
            }
        })
    }

    pub fn window(&mut self, window: &tree::WindowDef) -> Result<Window> {
        let mut partition_by = Vec::new();
        for key in &window.partition_by {
            let key = self.expr(key)?;
            partition_by.push(self.settled(key)?);
        }
        let order_by = self.sorts(&window.order_by, None)?;
        let frame = window.frame.as_ref().map(|frame| self.frame(frame, &order_by)).transpose()?;
        Ok(Window { base: window.base.as_ref().map(|base| base.value.clone()), partition_by, order_by, frame })
    }

    fn frame(&mut self, frame: &tree::Frame, order_by: &[SortItem]) -> Result<Frame> {
        let key = order_by.first().map(|sort| sort.key.ty().0);
        let ty = match (frame.unit, key) {
            (FrameUnit::Range, Some(oid::DATE | oid::TIME | oid::TIMESTAMP | oid::TIMESTAMPTZ | oid::TIMETZ)) => {
                oid::INTERVAL
            }
            (FrameUnit::Range, Some(key)) => key,
            _ => oid::INT8,
        };
        let mut bound = |bound: &FrameBound| -> Result<WindowBound> {
            let mut offset = |offset: &tree::Expr, word| -> Result<WindowBound> {
                let node = self.expr(offset)?;
                let node = match node.ty().0 {
                    oid::UNKNOWN => self.coerce(node, ty, SqlForm::Implicit)?,
                    _ if frame.unit == FrameUnit::Range => node,
                    _ => self.coerce(node, ty, SqlForm::Implicit)?,
                };
                Ok(WindowBound::Offset(node, word))
            };
            match bound {
                FrameBound::UnboundedPreceding => Ok(WindowBound::Word("UNBOUNDED PRECEDING")),
                FrameBound::Preceding(node) => offset(node, "PRECEDING"),
                FrameBound::CurrentRow => Ok(WindowBound::Word("CURRENT ROW")),
                FrameBound::Following(node) => offset(node, "FOLLOWING"),
                FrameBound::UnboundedFollowing => Ok(WindowBound::Word("UNBOUNDED FOLLOWING")),
            }
        };
        let start = bound(&frame.start)?;
        let end = frame.end.as_ref().map(&mut bound).transpose()?;
        Ok(Frame {
            unit: match frame.unit {
                FrameUnit::Rows => "ROWS",
                FrameUnit::Range => "RANGE",
                FrameUnit::Groups => "GROUPS",
            },
            start,
            end,
            exclusion: match frame.exclusion {
                FrameExclusion::NoOthers => "",
                FrameExclusion::CurrentRow => " EXCLUDE CURRENT ROW",
                FrameExclusion::Group => " EXCLUDE GROUP",
                FrameExclusion::Ties => " EXCLUDE TIES",
            },
        })
    }

    /// Analyses ORDER BY. With targets, a number or the name of one stands for it.
    pub fn sorts(&mut self, sorts: &[SortBy], targets: Option<&[(String, SqlNode)]>) -> Result<Vec<SortItem>> {
        let mut all: Vec<SortItem> = Vec::new();
        for sort in sorts {
            let descending = match &sort.direction {
                SortDirection::Default | SortDirection::Ascending => false,
                SortDirection::Descending => true,
                SortDirection::Using(_) => return Err(unsupported("USING of a definition")),
            };
            let nulls_first = match sort.nulls {
                NullsOrder::Default => descending,
                NullsOrder::First => true,
                NullsOrder::Last => false,
            };
            let target = targets.and_then(|targets| target_named(&sort.expr, targets));
            let key = match (target, targets) {
                (Some(target), Some(targets)) => targets[target - 1].1.clone(),
                _ => {
                    let key = self.expr(&sort.expr)?;
                    self.settled(key)?
                }
            };
            // A key that stands there already orders nothing more.
            // The columns of a set operation have no expressions to compare.
            let is_named = matches!(&key, SqlNode::SqlValue { text, .. } if text.is_empty());
            let is_known = |known: &SortItem| if is_named { known.target == target } else { known.key == key };
            if !all.iter().any(is_known) {
                all.push(SortItem { key, target, descending, nulls_first });
            }
        }
        Ok(all)
    }
}

/// Returns the number of the target that an item of ORDER BY names.
pub fn target_named(expr: &tree::Expr, targets: &[(String, SqlNode)]) -> Option<usize> {
    match &expr.kind {
        tree::ExprKind::Const(tree::Const::Integer(number)) => {
            usize::try_from(*number).ok().filter(|number| (1..=targets.len()).contains(number))
        }
        tree::ExprKind::Column(name) if !name.star && name.fields.len() == 1 => {
            targets.iter().position(|(known, _)| *known == name.fields[0]).map(|at| at + 1)
        }
        _ => None,
    }
}

/// Returns the types of a call's parameters and of its result; `None` if its arguments do not tell them.
fn settled(row: &'static PgFunction, parameters: &[Oid], arguments: &[SqlNode]) -> Option<(Vec<Oid>, Oid)> {
    let types: Vec<Oid> = arguments.iter().map(|argument| argument.ty().0).collect();
    polymorphic::settle(&(row, parameters.to_vec()), &types).ok()
}

/// Returns the type of a call's result.
fn result(row: &'static PgFunction, parameters: &[Oid], arguments: &[SqlNode]) -> Oid {
    match is_polymorphic(row.result) {
        true => settled(row, parameters, arguments).map_or(oid::TEXT, |(_, result)| result),
        false => row.result,
    }
}
