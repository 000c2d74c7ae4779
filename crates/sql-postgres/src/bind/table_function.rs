//! Functions in FROM: the rows of set-returning functions, and the one row of any other function, side by side in ROWS FROM.

use std::sync::Arc;

use datum::value::RecordType;
use query::nodes::expr::Expr;
use query::nodes::node::Node;
use query::nodes::table_function::{ProjectSet, RowForm, SetCall};
use query::types::{Column, Type};
use syntax::postgres::tree::{self, ExprKind, RangeFunction, RowsFromItem, TableFuncColumn};

use crate::bind::Binder;
use crate::bind::from::Operands;
use crate::bind::output_name::name_of_expr;
use crate::bind::scope::{Clause, OutputColumn};
use crate::bind::typing::{oid_of, settled, shown};
use crate::error::{Result, state};
use crate::types::oid;
use crate::types::record::is_row;
use crate::types::registry::{TypeKind, by_oid, column_type};
use crate::types::user;

/// A bound function in FROM.
struct FunctionInFrom {
    call: SetCall,
    columns: Vec<(String, Type)>,
    /// The columns have names of their own, which an alias of the table does not replace.
    has_parameters: bool,
    /// It is none that takes a column definition list.
    leaves_definitions: bool,
}

impl Binder<'_> {
    pub fn range_function(&mut self, function: &RangeFunction) -> Result<Operands> {
        let RangeFunction { lateral: _, rows_from: _, functions, ordinality, alias, columns, at } = function;
        let columns_of_alias = &columns[..];
        let first = functions.first().map_or_else(String::new, |item| name_of_expr(&item.call));
        let shown = alias.as_ref().map_or(first.as_str(), |alias| alias.name.value.as_str());
        // A function is LATERAL whether it says so or not.
        let ((calls, mut columns, has_parameters), outside) = self.deeper(|binder| {
            let (mut calls, mut columns, mut has_parameters) = (Vec::new(), Vec::new(), false);
            for RowsFromItem { call, columns: own } in functions {
                let parts = unnested(call);
                let defined = if own.is_empty() { columns_of_alias } else { &own[..] };
                let record = binder.defined_record(defined)?;
                for call in parts.as_deref().unwrap_or(std::slice::from_ref(call)) {
                    let at = columns.len();
                    let bound = binder.function_in_from(call, at, record.clone())?;
                    if let (true, Some(column)) = (bound.leaves_definitions, defined.first()) {
                        let text = "a column definition list is only allowed for functions returning \"record\"";
                        return binder.fail(state::SYNTAX_ERROR, text, column.name.at.0);
                    }
                    has_parameters |= bound.has_parameters;
                    calls.push(bound.call);
                    columns.extend(bound.columns);
                }
            }
            Ok((calls, columns, has_parameters))
        })?;
        // The only column of a function takes the alias of the table, unless it is an OUT parameter.
        let is_scalar = columns.len() == 1 && calls[0].record.is_none();
        let composite = match &calls[..] {
            [call] => call.record.as_ref().map(|row| row.number).filter(|number| user::is_composite(*number)),
            _ => None,
        };
        if let ([(name, _)], Some(alias), false) = (&mut columns[..], alias, has_parameters) {
            alias.name.value.clone_into(name);
        }
        let ordinality = ordinality.then_some(columns.len());
        if ordinality.is_some() {
            columns.push(("ordinality".to_owned(), column_type(oid::INT8, -1, false)));
        }
        let width = columns.len();
        let node = if let ([SetCall { function: None, arguments, form: RowForm::Columns, .. }], None) =
            (&calls[..], ordinality)
        {
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
        operands.names[0].composite = composite.filter(|_| ordinality.is_none());
        Ok(operands)
    }

    /// Binds a function in FROM whose columns begin at a place. `defined` are the columns of its column definition list.
    fn function_in_from(
        &mut self,
        call: &tree::Expr,
        place: usize,
        defined: Option<Arc<RecordType>>,
    ) -> Result<FunctionInFrom> {
        let is_defined = defined.is_some();
        self.open_scope();
        self.scope().clause = Clause::FunctionInFrom;
        self.scope().defined_columns = defined;
        let bound = self.expr(call).and_then(|operand| self.settle(operand));
        let set = bound.and_then(|expr| Ok((self.sets_of_from(&expr)?, expr)));
        let leaves_definitions = is_defined && self.scope().defined_columns.is_some();
        self.close_scope();
        let (set, expr) = set?;
        if let Some(set) = set {
            let call = SetCall { at: place, ..set.call };
            let columns = set.names.into_iter().zip(call.types.clone()).collect();
            return Ok(FunctionInFrom { call, columns, has_parameters: set.has_parameters, leaves_definitions });
        }
        if is_row(oid_of(&expr)) {
            return self.row_in_from(expr, call, place, leaves_definitions);
        }
        let name = match &call.kind {
            ExprKind::Function(function) => function.name.last().to_owned(),
            _ => name_of_expr(call),
        };
        let ty = settled(&expr.ty());
        let types = vec![ty.clone().with_nullable(true)];
        let (function, arguments) = (None, vec![expr]);
        let call = SetCall { function, arguments, types, at: place, record: None, form: RowForm::Columns };
        Ok(FunctionInFrom { call, columns: vec![(name, ty)], has_parameters: false, leaves_definitions })
    }

    /// Returns a function that returns one row: its fields are the columns.
    fn row_in_from(
        &mut self,
        expr: Expr,
        call: &tree::Expr,
        place: usize,
        leaves_definitions: bool,
    ) -> Result<FunctionInFrom> {
        let Some(row) = self.row_type_of(&expr.ty()) else {
            let text = "a column definition list is required for functions returning \"record\"";
            return self.fail(state::SYNTAX_ERROR, text, call.span.start);
        };
        let types: Vec<Type> = row.fields.iter().map(|field| self.type_of_field(field)).collect();
        let columns = row.fields.iter().map(|field| field.name.to_string()).zip(types.iter().cloned()).collect();
        let (function, arguments, form) = (None, vec![expr], RowForm::Unpacked);
        let call = SetCall { function, arguments, types, at: place, record: Some(row), form };
        Ok(FunctionInFrom { call, columns, has_parameters: true, leaves_definitions })
    }

    /// Returns the row type of a column definition list; `None` for an empty one.
    fn defined_record(&mut self, columns: &[TableFuncColumn]) -> Result<Option<Arc<RecordType>>> {
        let mut fields = Vec::with_capacity(columns.len());
        for column in columns {
            let (ty, typmod) = self.type_named(&column.ty)?;
            if by_oid(ty).is_some_and(|row| row.kind == TypeKind::Pseudo) && typmod < 0 {
                let text = format!("column \"{}\" has pseudo-type {}", column.name.value, shown(ty));
                return self.fail(state::INVALID_TABLE_DEFINITION, text, column.name.at.0);
            }
            if columns.iter().take(fields.len()).any(|other| other.name.value == column.name.value) {
                let text = format!("column name \"{}\" specified more than once", column.name.value);
                return self.fail(state::DUPLICATE_COLUMN, text, column.name.at.0);
            }
            fields.push((column.name.value.as_str(), column_type(ty, typmod, true)));
        }
        Ok((!fields.is_empty()).then(|| self.type_of_fields(oid::RECORD, fields.into_iter())))
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
