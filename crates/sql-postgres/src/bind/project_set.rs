//! Set-returning functions: their places in expressions, and the nodes that evaluate them.
//!
//! A call stands in expressions as a place beyond `scope::SETS`. Those of GROUP BY are evaluated over the rows that are grouped, all others above groups and windows. Calls within arguments of calls
//! are evaluated first; all of one level run side by side (PS-30).

use std::collections::HashMap;
use std::sync::Arc;

use datum::value::RecordType;
use query::nodes::expr::Expr;
use query::nodes::node::{Node, SortKey};
use query::nodes::table_function::{ProjectSet, RowForm, SetCall};
use query::nodes::walk::is_volatile;
use query::types::Type;

use crate::bind::Binder;
use crate::bind::scope::{Clause, SETS};
use crate::bind::select::{Sort, sort_keys};
use crate::bind::typing::{Operand, unsupported};
use crate::error::{PgError, Result, state};
use crate::functions::{PgFunction, SetBody};
use crate::types::oid::{self, Oid};
use crate::types::record;
use crate::types::registry::column_type;
use crate::types::user;

/// A bound call.
#[derive(Clone, Debug)]
pub struct SetOf {
    /// Its place is known when the nodes are made.
    pub call: SetCall,
    pub names: Vec<String>,
    /// The names are those of OUT parameters.
    pub has_parameters: bool,
    /// From 1; a call is of a higher level than those within its arguments.
    level: usize,
    /// It is evaluated over the rows that are grouped.
    pub is_below: bool,
    at: u32,
}

/// `json_to_recordset` and its like: their columns are those of the call.
const GIVEN_COLUMNS: &[Oid] = &[3205, 3491];

/// `json_populate_recordset` and its like: their columns are the fields of the first argument.
const FIELDS_OF_ARGUMENT: &[Oid] = &[3961, 3475];

/// The columns of a set-returning function.
struct RowsOf {
    names: Vec<String>,
    types: Vec<Type>,
    record: Option<Arc<RecordType>>,
    form: RowForm,
}

/// The set-returning functions of a block.
#[derive(Debug, Default)]
pub struct Sets {
    pub calls: Vec<SetOf>,
    /// The calls bound so far, equal ones included, and the place of the last in the text.
    bound: usize,
    last_at: u32,
}

impl Sets {
    pub fn is_used(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Returns the arguments of the calls above the groups.
    pub fn expressions(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.calls.iter_mut().filter(|set| !set.is_below).flat_map(|set| &mut set.call.arguments)
    }

    fn numbers(&self, is_below: bool) -> Vec<usize> {
        (0..self.calls.len()).filter(|number| self.calls[*number].is_below == is_below).collect()
    }

    /// Stacks the nodes of these calls on rows of this width. Notes their places and returns the new width.
    fn stack(&self, node: &mut Arc<Node>, numbers: &[usize], mut width: usize, places: &mut Places) -> usize {
        let levels = numbers.iter().map(|number| self.calls[*number].level).max().unwrap_or(0);
        for level in 1..=levels {
            let mut calls = Vec::new();
            for number in numbers.iter().filter(|number| self.calls[**number].level == level) {
                let mut call = self.calls[*number].call.clone();
                call.arguments.iter_mut().for_each(|argument| places.put(argument));
                call.at = width;
                places.0.insert(*number, width);
                width += call.types.len();
                calls.push(call);
            }
            if !calls.is_empty() {
                let input = node.clone();
                *node = Arc::new(Node::ProjectSet(ProjectSet { input, calls, ordinality: None, width }));
            }
        }
        width
    }

    /// Evaluates the calls of GROUP BY over rows of this width, and gives their places to the expressions.
    pub fn below<'e>(&self, node: &mut Arc<Node>, width: usize, exprs: impl IntoIterator<Item = &'e mut Expr>) -> bool {
        let numbers = self.numbers(true);
        let mut places = Places::default();
        self.stack(node, &numbers, width, &mut places);
        exprs.into_iter().for_each(|expr| places.put(expr));
        !numbers.is_empty()
    }

    /// Evaluates the other calls over rows of this width. A sort that reads none of their values goes below them and is emptied, so that a limit ends them early.
    pub fn above(
        mut self,
        node: &mut Arc<Node>,
        mut width: usize,
        sorts: &mut Vec<Sort>,
        (exprs, keys): (&mut [Expr], &mut [Expr]),
        sorts_below: bool,
    ) {
        // A constant call that is only part of a key of GROUP BY is evaluated again.
        let mut again = HashMap::new();
        let all = exprs.iter_mut().chain(&mut *keys).chain(sorts.iter_mut().map(|sort| &mut sort.expr));
        for expr in all {
            expr.rewrite(&mut |expr| {
                let Expr::Column(place, _) = expr else { return };
                let Some(number) = place.checked_sub(SETS).filter(|number| self.calls[*number].is_below) else {
                    return;
                };
                let copy = *again.entry(number).or_insert_with(|| {
                    self.calls.push(SetOf { is_below: false, ..self.calls[number].clone() });
                    self.calls.len() - 1
                });
                *place = SETS + copy;
            });
        }
        if sorts_below && !sorts.is_empty() && !sorts.iter().any(|sort| reads_sets(&sort.expr)) {
            let ty = column_type(oid::TEXT, -1, true);
            let mut row: Vec<Expr> = (0..width).map(|at| Expr::Column(at, ty.clone())).collect();
            let keys: Vec<SortKey> = sort_keys(&mut row, std::mem::take(sorts));
            width = row.len();
            let input = Arc::new(Node::Project { input: node.clone(), exprs: row });
            *node = Arc::new(Node::Sort { input, keys, limit: None, unique: false });
        }
        let mut places = Places::default();
        self.stack(node, &self.numbers(false), width, &mut places);
        let sorts = sorts.iter_mut().map(|sort| &mut sort.expr);
        exprs.iter_mut().chain(keys).chain(sorts).for_each(|expr| places.put(expr));
    }
}

/// The places of calls by their numbers.
#[derive(Default)]
struct Places(HashMap<usize, usize>);

impl Places {
    fn put(&self, expr: &mut Expr) {
        expr.rewrite(&mut |expr| {
            if let Expr::Column(place, _) = expr
                && let Some(known) = place.checked_sub(SETS).and_then(|number| self.0.get(&number))
            {
                *place = *known;
            }
        });
    }
}

/// Returns whether the expression reads the value of a set-returning function.
pub fn reads_sets(expr: &Expr) -> bool {
    expr.columns().iter().any(|place| *place >= SETS)
}

impl Binder<'_> {
    /// Returns the number of set-returning functions bound so far in the block.
    pub fn sets_bound(&mut self) -> usize {
        self.scope().sets.bound
    }

    /// Refuses a set-returning function that was bound since.
    pub fn check_no_sets(&mut self, before: usize, refused: &str) -> Result<()> {
        if self.scope().sets.bound == before {
            return Ok(());
        }
        let at = self.scope().sets.last_at;
        let hint = "You might be able to move the set-returning function into a LATERAL FROM item.";
        Err(self.error(PgError::new(state::FEATURE_NOT_SUPPORTED, refused).hint(hint), at))
    }

    /// Takes the calls of a function in FROM, or `None` if it returns one row. A set-returning function is the function itself.
    pub fn sets_of_from(&mut self, expr: &Expr) -> Result<Option<SetOf>> {
        let mut sets = std::mem::take(&mut self.scope().sets);
        let is_whole = matches!(expr, Expr::Column(place, _) if *place == SETS);
        match sets.calls.pop() {
            None => Ok(None),
            Some(set) if is_whole && sets.calls.is_empty() => Ok(Some(set)),
            Some(set) => {
                let text = "set-returning functions must appear at top level of FROM";
                self.fail(state::FEATURE_NOT_SUPPORTED, text, set.at)
            }
        }
    }

    /// Returns the columns of a set-returning function: in FROM those of its rows, elsewhere one.
    #[inline(never)]
    fn rows_of(
        &mut self,
        row: &'static PgFunction,
        (body, result): (SetBody, Oid),
        arguments: &[Expr],
        at: u32,
    ) -> Result<RowsOf> {
        let is_in_from = self.scope().clause == Clause::FunctionInFrom;
        let is_given = GIVEN_COLUMNS.contains(&row.oid);
        let gives_fields = is_given || FIELDS_OF_ARGUMENT.contains(&row.oid);
        let record = match body.columns {
            [_, _, ..] => {
                let field = |(name, ty): &(&str, Oid)| record::field(name, &column_type(*ty, -1, true));
                Some(Arc::new(RecordType { number: oid::RECORD, fields: body.columns.iter().map(field).collect() }))
            }
            _ if user::is_composite(result) => self.composite_row(result),
            _ if result != oid::RECORD => None,
            _ if is_given => self.scope().defined_columns.take(),
            _ => {
                // The function compares the columns of a column definition list with those of its row.
                let of_argument = self.row_modifier(arguments, result);
                let defined = self.scope().defined_columns.take();
                defined.or_else(|| self.row_type_of(&column_type(oid::RECORD, of_argument, true)))
            }
        };
        let Some(record) = record else {
            if result == oid::RECORD && is_in_from {
                let text = "a column definition list is required for functions returning \"record\"";
                return self.fail(state::SYNTAX_ERROR, text, at);
            }
            let name = body.columns.first().map_or(row.name, |(name, _)| name);
            let types = vec![column_type(result, -1, true)];
            return Ok(RowsOf { names: vec![name.to_owned()], types, record: None, form: RowForm::Columns });
        };
        let is_columns = gives_fields || !body.columns.is_empty();
        if !is_in_from {
            let form = if is_columns { RowForm::Packed } else { RowForm::Columns };
            let types = vec![self.type_of_row(&record)];
            return Ok(RowsOf { names: vec![row.name.to_owned()], types, record: Some(record), form });
        }
        let names = record.fields.iter().map(|field| field.name.to_string()).collect();
        let types = record.fields.iter().map(|field| self.type_of_field(field)).collect();
        let form = if is_columns { RowForm::Columns } else { RowForm::Unpacked };
        Ok(RowsOf { names, types, record: Some(record), form })
    }

    /// Binds the call of a set-returning function and returns the place of its first column.
    #[inline(never)]
    pub fn set_returning(
        &mut self,
        row: &'static PgFunction,
        (body, result): (SetBody, Oid),
        arguments: Vec<Expr>,
        at: u32,
    ) -> Result<Operand> {
        let clause = self.scope().clause;
        let nested = arguments.iter().any(reads_sets);
        if row.name.starts_with("json") {
            for argument in &arguments {
                self.refuse_domains_in_rows(&argument.ty(), row.name)?;
            }
        }
        match clause {
            Clause::SelectList | Clause::OrderBy | Clause::DistinctOn | Clause::GroupBy | Clause::WindowArgument => {}
            Clause::FunctionInFrom if nested => {
                let text = "set-returning functions must appear at top level of FROM";
                let inner = self.scope().sets.last_at;
                return self.fail(state::FEATURE_NOT_SUPPORTED, text, inner);
            }
            Clause::FunctionInFrom => {}
            Clause::WindowPartition | Clause::WindowOrder => {
                return Err(self.error(unsupported("a set-returning function in a window definition"), at));
            }
            clause => {
                let within = if clause == Clause::WindowFrame { "window definitions" } else { clause.in_words() };
                let text = format!("set-returning functions are not allowed in {within}");
                return self.fail(state::FEATURE_NOT_SUPPORTED, text, at);
            }
        }
        let is_in_from = clause == Clause::FunctionInFrom;
        let RowsOf { names, types, record, form } = self.rows_of(row, (body, result), &arguments, at)?;
        let ty = types.first().cloned().unwrap_or_else(|| column_type(oid::RECORD, -1, true));
        let sets = &mut self.scope().sets;
        let inner = arguments.iter().flat_map(Expr::columns).filter_map(|place| place.checked_sub(SETS));
        let level = 1 + inner.map(|number| sets.calls[number].level).max().unwrap_or(0);
        sets.bound += 1;
        sets.last_at = at;
        let call = SetCall { function: Some(body.function), arguments, types, at: 0, record, form };
        // Equal calls run side by side with equal values.
        let is_steady = !body.function.volatile && !call.arguments.iter().any(is_volatile);
        let may_share = is_steady && !is_in_from;
        let text = format!("{call:?}");
        let known = sets.calls.iter().position(|known| may_share && format!("{:?}", known.call) == text);
        let number = known.unwrap_or_else(|| {
            let is_below = clause == Clause::GroupBy;
            let has_parameters = !body.columns.is_empty() || record::is_row(result);
            sets.calls.push(SetOf { call, names, has_parameters, level, is_below, at });
            sets.calls.len() - 1
        });
        Ok(Operand { expr: Expr::Column(SETS + number, ty), at })
    }
}
