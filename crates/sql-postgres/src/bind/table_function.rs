//! Functions in FROM: the rows of set-returning functions, and the one row of any other function, side by side in ROWS FROM.

use std::sync::Arc;

use query::nodes::node::Node;
use query::nodes::table_function::{ProjectSet, SetCall};
use query::types::{Column, Type};
use syntax::postgres::tree::{self, ExprKind, RangeFunction, RowsFromItem};

use crate::bind::Binder;
use crate::bind::from::Operands;
use crate::bind::output_name::name_of_expr;
use crate::bind::scope::{Clause, OutputColumn};
use crate::bind::typing::settled;
use crate::error::{Result, state};
use crate::types::oid;
use crate::types::registry::column_type;

impl Binder<'_> {
    pub fn range_function(&mut self, function: &RangeFunction) -> Result<Operands> {
        let RangeFunction { lateral: _, rows_from: _, functions, ordinality, alias, columns, at } = function;
        let defined = functions.iter().flat_map(|function| &function.columns).chain(columns).next();
        if let Some(column) = defined {
            let text = "a column definition list is only allowed for functions returning \"record\"";
            return self.fail(state::SYNTAX_ERROR, text, column.name.at.0);
        }
        let first = functions.first().map_or_else(String::new, |item| name_of_expr(&item.call));
        let shown = alias.as_ref().map_or(first.as_str(), |alias| alias.name.value.as_str());
        // A function is LATERAL whether it says so or not.
        let ((calls, mut columns, has_parameters), outside) = self.deeper(|binder| {
            let (mut calls, mut columns, mut has_parameters) = (Vec::new(), Vec::new(), false);
            for RowsFromItem { call, columns: _ } in functions {
                let parts = unnested(call);
                for call in parts.as_deref().unwrap_or(std::slice::from_ref(call)) {
                    let at = columns.len();
                    let (call, named, is_of_parameters) = binder.function_in_from(call, at)?;
                    has_parameters |= is_of_parameters;
                    calls.push(call);
                    columns.extend(named);
                }
            }
            Ok((calls, columns, has_parameters))
        })?;
        // The only column of a function takes the alias of the table, unless it is an OUT parameter.
        let is_scalar = columns.len() == 1;
        if let ([(name, _)], Some(alias), false) = (&mut columns[..], alias, has_parameters) {
            alias.name.value.clone_into(name);
        }
        let ordinality = ordinality.then_some(columns.len());
        if ordinality.is_some() {
            columns.push(("ordinality".to_owned(), column_type(oid::INT8, -1, false)));
        }
        let width = columns.len();
        let node = if let ([SetCall { function: None, arguments, .. }], None) = (&calls[..], ordinality) {
            let input = Arc::new(Node::One { width: 0 });
            Arc::new(Node::Project { input, exprs: arguments.clone() })
        } else {
            let input = Arc::new(Node::One { width: 0 });
            Arc::new(Node::ProjectSet(ProjectSet { input, calls, ordinality, width }))
        };
        self.rise(2)?;
        let column = |(name, ty): (String, Type)| {
            let column = Column::computed(name, ty);
            OutputColumn { column, origin: None, at: at.0 }
        };
        let columns = columns.into_iter().map(column).collect();
        let names = alias.as_ref().map_or(&[][..], |alias| &alias.columns);
        let mut operands = self.lateral(shown, columns, names, node, &outside)?;
        operands.names[0].is_scalar = is_scalar && ordinality.is_none();
        Ok(operands)
    }

    /// Binds a function in FROM whose columns begin at a place. Returns it with the names and types of its columns, and whether these are OUT parameters.
    #[allow(clippy::type_complexity)]
    fn function_in_from(&mut self, call: &tree::Expr, place: usize) -> Result<(SetCall, Vec<(String, Type)>, bool)> {
        self.open_scope();
        self.scope().clause = Clause::FunctionInFrom;
        let bound = self.expr(call).and_then(|operand| self.settle(operand));
        let set = bound.and_then(|expr| Ok((self.sets_of_from(&expr)?, expr)));
        self.close_scope();
        let (set, expr) = set?;
        let name = || match &call.kind {
            ExprKind::Function(function) => function.name.last().to_owned(),
            _ => name_of_expr(call),
        };
        Ok(match set {
            Some(set) => {
                let mut call = set.call;
                call.at = place;
                let types = call.types.clone();
                (call, set.names.into_iter().zip(types).collect(), set.has_parameters)
            }
            None => {
                let ty = settled(&expr.ty());
                let types = vec![ty.clone().with_nullable(true)];
                (SetCall { function: None, arguments: vec![expr], types, at: place }, vec![(name(), ty)], false)
            }
        })
    }
}

/// Returns the calls that `unnest` of several arrays stands for: one of each, side by side.
fn unnested(call: &tree::Expr) -> Option<Vec<tree::Expr>> {
    let ExprKind::Function(function) = &call.kind else { return None };
    let is_unnest = matches!(&function.name.parts[..], [name] if name == "unnest");
    if !is_unnest || function.arguments.len() < 2 {
        return None;
    }
    let of = |argument: &tree::Argument| {
        let alone = tree::FuncCall::plain(function.name.clone(), vec![argument.value.clone()]);
        tree::Expr { kind: ExprKind::Function(Box::new(alone)), span: call.span }
    };
    Some(function.arguments.iter().map(of).collect())
}
