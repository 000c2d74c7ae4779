//! Common table expressions, and PostgreSQL's rules for recursive ones.
//!
//! A recursive expression is `non-recursive term UNION [ALL] recursive term`. The first term alone determines the columns and their types.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;

use query::nodes::expr::Expr;
use query::nodes::node::{Node, Recursion};
use query::session::statement::{Several, StatementPart};
use syntax::postgres::tree::{CommonTableExpr, Ident, RangeVar, SelectStmt, Statement, WithClause};

use crate::bind::recursion;
use crate::bind::scope::{BoundQuery, Common, CommonState, OutputColumn};
use crate::bind::typing::{Operand, settled, shown, unsupported};
use crate::bind::{Binder, Plan};
use crate::error::{PgError, Result, state};
use crate::functions::CastContext;
use crate::types::oid;

/// Returns the address of a statement's own WITH; 0 if it has none.
pub fn address_of_with(statement: &Statement) -> usize {
    let with = match statement {
        Statement::Select(select) => select.with.as_ref(),
        Statement::Insert(insert) => insert.with.as_ref(),
        Statement::Update(update) => update.with.as_ref(),
        Statement::Delete(delete) => delete.with.as_ref(),
        Statement::Merge(merge) => merge.with.as_ref(),
        _ => None,
    };
    with.map_or(0, |with| std::ptr::from_ref(with).addr())
}

/// The tables that a part of a statement reads, by their ids, and the other parts that it reads, by their numbers.
#[derive(Clone, Debug, Default)]
pub struct PartReads {
    pub tables: Vec<u64>,
    pub parts: Vec<usize>,
}

/// Returns the order in which PostgreSQL runs the parts: those that are read come before their reader, the others after the main statement, the last one first.
fn order_of_parts(
    parts: &[StatementPart<Infallible>],
    parts_read: &[PartReads],
    main_reads: &PartReads,
) -> Vec<Option<usize>> {
    let mut is_due = vec![false; parts.len()];
    let mut visit = |reads: &PartReads, order: &mut Vec<Option<usize>>| {
        // A part reads only those before it, so one pass from the last to the first finds all that lead to the reader.
        let mut wanted: Vec<usize> = Vec::new();
        for (nth, part) in parts.iter().enumerate().rev() {
            let is_read = |reads: &PartReads| reads.parts.contains(&part.id);
            if !is_due[nth] && (is_read(reads) || wanted.iter().any(|reader| is_read(&parts_read[*reader]))) {
                wanted.push(nth);
            }
        }
        for nth in wanted.into_iter().rev() {
            is_due[nth] = true;
            order.push(Some(nth));
        }
    };
    let mut order = Vec::with_capacity(parts.len() + 1);
    visit(main_reads, &mut order);
    order.push(None);
    for part in parts.iter().rev() {
        visit(&PartReads { tables: Vec::new(), parts: vec![part.id] }, &mut order);
    }
    order
}

/// The columns that a reference to itself has beside those of the query.
#[derive(Clone, Copy, Default)]
pub(super) struct Added<'a> {
    pub columns: &'a [OutputColumn],
    /// How many of all columns SEARCH and CYCLE add.
    pub count: usize,
}

impl Binder<'_> {
    /// Binds the tables of WITH. The caller removes them from `commons` again.
    pub fn with(&mut self, with: Option<&WithClause>) -> Result<()> {
        let Some(with) = with else { return Ok(()) };
        let may_change = std::ptr::from_ref(with).addr() == self.changing_with;
        let WithClause { recursive, tables, at: _ } = with;
        let mut names = HashSet::new();
        if let Some(table) = tables.iter().find(|table| !names.insert(&*table.name.value)) {
            let text = format!("WITH query name \"{}\" specified more than once", table.name.value);
            return self.fail(state::DUPLICATE_ALIAS, text, table.name.at.0);
        }
        let ordered = match recursive {
            true => recursion::ordered(tables).map_err(|refusal| match *refusal {
                (error, Some(at)) => self.error(error, at),
                (error, None) => error,
            })?,
            false => tables.iter().map(|table| (table, false)).collect(),
        };
        for (table, is_recursive) in ordered {
            match table.statement {
                Statement::Select(_) => self.common(table, is_recursive)?,
                _ => self.changing_common(table, may_change)?,
            }
        }
        Ok(())
    }

    fn common(&mut self, table: &CommonTableExpr, recursive: bool) -> Result<()> {
        let CommonTableExpr { name, columns, materialized: _, statement, search, cycle } = table;
        let Statement::Select(query) = statement else {
            return Err(self.error(unsupported("a statement that changes rows in WITH"), name.at.0));
        };
        let id = self.new_id();
        let around_needs = self.begin_needs_of_common();
        let around = (std::mem::take(&mut self.height), std::mem::take(&mut self.weight));
        let read_before = self.correlations.last_mut().map(std::mem::take);
        let bound = match (search, cycle) {
            (None, None) if recursive => Some(self.recursive(name, columns, query, id, Added::default())?),
            (None, None) => None,
            _ => Some(self.searched(table, query, id, recursive)?),
        };
        let bound = match bound {
            Some(bound) => bound,
            None => {
                let mut bound = self.query(query)?;
                self.name_columns(name, &mut bound.columns, columns)?;
                let node = Arc::new(Node::Common { id, source: bound.node, recursion: None, is_kept: true });
                BoundQuery { node, columns: bound.columns, plain: None }
            }
        };
        let added = usize::from(search.is_some()) + 2 * usize::from(cycle.is_some());
        let outer = self.correlations.last_mut().map(std::mem::take).unwrap_or_default();
        if let Some((reads, before)) = self.correlations.last_mut().zip(read_before) {
            *reads = before;
        }
        self.note_outer(self.correlations.len() - 1, &outer);
        self.end_needs_of_common(id, around_needs);
        self.rise(1)?;
        let size = (self.height, self.weight);
        (self.height, self.weight) = (around.0, around.1 + 1);
        let BoundQuery { mut node, columns, plain: _ } = bound;
        if let Some(Node::Common { is_kept, .. }) = Arc::get_mut(&mut node) {
            *is_kept = outer.is_empty();
        }
        let (name, state, depth) = (name.value.clone(), CommonState::Ready, self.correlations.len() - 1);
        self.commons.push(Common {
            name,
            columns,
            added,
            level: self.query_level,
            node,
            size,
            references: 0,
            state,
            outer,
            depth,
        });
        Ok(())
    }

    /// Notes outer references of the blocks from this depth on.
    pub(super) fn note_outer(&mut self, depth: usize, outer: &[(usize, usize)]) {
        for reads in &mut self.correlations[depth..] {
            let fresh = outer.iter().filter(|read| !reads.contains(read)).copied().collect::<Vec<_>>();
            reads.extend(fresh);
        }
    }

    /// Binds a statement of WITH that changes rows. It runs once, whether it is read or not.
    fn changing_common(&mut self, table: &CommonTableExpr, may_change: bool) -> Result<()> {
        let CommonTableExpr { name, columns: names, materialized: _, statement, search, cycle } = table;
        if let Statement::Merge(_) = statement {
            return self.fail(state::FEATURE_NOT_SUPPORTED, "MERGE not supported in WITH query", name.at.0);
        }
        if !may_change {
            let text = "WITH clause containing a data-modifying statement must be at the top level";
            return self.fail(state::FEATURE_NOT_SUPPORTED, text, name.at.0);
        }
        let id = self.new_id();
        let around = (std::mem::take(&mut self.height), std::mem::take(&mut self.weight));
        // The queries of WITH before it may be evaluated for it, or for the main statement.
        let read_before = self.reads.clone();
        let (plan, mut columns) = match statement {
            Statement::Insert(insert) => {
                self.insert(insert).map(|(insert, columns)| (Plan::Insert(insert), columns))?
            }
            Statement::Update(update) => {
                self.update(update).map(|(update, columns)| (Plan::Update(update), columns))?
            }
            Statement::Delete(delete) => {
                self.delete(delete).map(|(delete, columns)| (Plan::Delete(delete), columns))?
            }
            _ => return Err(self.error(unsupported("this statement in WITH"), name.at.0)),
        };
        self.parts_read.push(std::mem::replace(&mut self.reads, read_before));
        (self.height, self.weight) = (around.0, around.1 + self.weight);
        self.name_columns(name, &mut columns, names)?;
        for column in &mut columns {
            column.column.ty.nullable = true;
        }
        let state = if plan.returning().is_some() { CommonState::Ready } else { CommonState::ReturnsNothing };
        let name = name.value.clone();
        if search.is_some() || cycle.is_some() {
            return self.fail(state::SYNTAX_ERROR, "WITH query is not recursive", table.name.at.0);
        }
        self.parts.push(StatementPart { id, name: name.clone(), plan, reads_changes: false });
        let node = Arc::new(Node::LastRound { id });
        self.commons.push(Common {
            name,
            columns,
            added: 0,
            level: self.query_level,
            node,
            size: (1, 1),
            references: 0,
            state,
            outer: Vec::new(),
            depth: 0,
        });
        Ok(())
    }

    /// Returns the statement with the parts of WITH that change rows.
    pub fn with_parts(&mut self, main: Plan) -> Plan {
        if self.parts.is_empty() {
            return main;
        }
        let mut parts = std::mem::take(&mut self.parts);
        let (parts_read, main_reads) = (std::mem::take(&mut self.parts_read), std::mem::take(&mut self.reads));
        let ids = |plan: &Plan| -> Vec<u64> { plan.written().iter().map(|table| table.id).collect() };
        let written: Vec<Vec<u64>> = parts.iter().map(|part| ids(&part.plan)).chain([ids(&main)]).collect();
        let reads = |own: usize, reads: &PartReads| {
            let others = written.iter().enumerate().filter(|(other, _)| *other != own);
            others.flat_map(|(_, tables)| tables).any(|table| reads.tables.contains(table))
        };
        for (nth, part) in parts.iter_mut().enumerate() {
            part.reads_changes = reads(nth, &parts_read[nth]);
        }
        let reads_changes = reads(parts.len(), &main_reads);
        let order = order_of_parts(&parts, &parts_read, &main_reads);
        Plan::Several(Box::new(Several { parts, main, order, reads_changes }))
    }

    fn name_columns(&self, name: &Ident, columns: &mut [OutputColumn], names: &[Ident]) -> Result<()> {
        if names.len() > columns.len() {
            let (has, given) = (columns.len(), names.len());
            let text =
                format!("WITH query \"{}\" has {has} columns available but {given} columns specified", name.value);
            return self.fail(state::INVALID_COLUMN_REFERENCE, text, name.at.0);
        }
        for (column, name) in columns.iter_mut().zip(names) {
            column.column.name = name.value.clone();
        }
        Ok(())
    }

    /// Returns the common table expression of that name, and counts the reference.
    pub fn common_named(&mut self, name: &RangeVar) -> Result<Option<Common>> {
        let depth = self.correlations.len();
        let Some(common) = self.commons.iter_mut().rev().find(|common| common.name == name.name) else {
            return Ok(None);
        };
        common.references += 1;
        let common = common.clone();
        self.note_outer(common.depth.min(depth - 1), &common.outer);
        match &*common.node {
            Node::LastRound { id } => self.reads.parts.push(*id),
            Node::Common { id, .. } => self.need_common(*id),
            _ => {}
        }
        match &common.state {
            CommonState::Ready => Ok(Some(common)),
            CommonState::ReturnsNothing => {
                let text = format!("WITH query \"{}\" does not have a RETURNING clause", name.name);
                self.fail(state::FEATURE_NOT_SUPPORTED, text, name.at.0)
            }
            CommonState::Recursive(own) if *own != depth => {
                let text = format!("recursive reference to query \"{}\" must not appear within a subquery", name.name);
                self.fail(state::INVALID_RECURSION, text, name.at.0)
            }
            CommonState::Recursive(_) if common.references > 1 => {
                let text = format!("recursive reference to query \"{}\" must not appear more than once", name.name);
                self.fail(state::INVALID_RECURSION, text, name.at.0)
            }
            CommonState::Recursive(_) => {
                self.scope().reads_itself = true;
                Ok(Some(common))
            }
        }
    }

    /// Binds a query that refers to itself, as `recursion::ordered` permits.
    pub(super) fn recursive(
        &mut self,
        name: &Ident,
        names: &[Ident],
        query: &SelectStmt,
        id: usize,
        added: Added<'_>,
    ) -> Result<BoundQuery> {
        let commons = self.commons.len();
        let Some((first, seed, last)) = recursion::terms(query) else {
            return Err(PgError::new(state::INTERNAL_ERROR, "a recursive query of another form"));
        };
        self.query_level += 1;
        self.with(query.with.as_ref())?;
        let mut source = self.operations(first, seed)?;
        for at in 0..source.columns.len() {
            if source.columns[at].oid() == oid::UNKNOWN {
                self.retype_column(&mut source, at, oid::TEXT, -1, CastContext::Implicit)?;
            }
        }
        self.name_columns(name, &mut source.columns, names)?;
        for column in &mut source.columns {
            column.column.ty.nullable = true;
            column.origin = None;
        }
        self.commons.push(Common {
            name: name.value.clone(),
            columns: source.columns.iter().chain(added.columns).cloned().collect(),
            added: added.count,
            // Every reference is within a query of its own.
            level: self.query_level,
            node: Arc::new(Node::LastRound { id }),
            size: (1, 1),
            references: 0,
            outer: Vec::new(),
            depth: 0,
            state: CommonState::Recursive(self.correlations.len()),
        });
        let part = self.set_operand(&last.operand)?;
        self.query_level -= 1;
        self.commons.truncate(commons);
        self.rounds(name, source, part, (id, !last.all))
    }

    /// Makes the node that computes the rounds.
    fn rounds(
        &mut self,
        name: &Ident,
        source: BoundQuery,
        mut part: BoundQuery,
        (id, distinct): (usize, bool),
    ) -> Result<BoundQuery> {
        if part.columns.len() != source.columns.len() {
            let text = "each UNION query must have the same number of columns";
            return self.fail(state::SYNTAX_ERROR, text, part.columns.first().map_or(name.at.0, |column| column.at));
        }
        for at in 0..source.columns.len() {
            let operand = |bound: &BoundQuery| Operand {
                expr: Expr::Column(at, bound.columns[at].column.ty.clone()),
                at: name.at.0,
            };
            let (own, other) = (operand(&source), operand(&part));
            let common = self.common_of(&[&own, &other])?.map_err(|(left, right, _)| {
                let text = format!("UNION types {} and {} cannot be matched", shown(left), shown(right));
                self.error(PgError::new(state::DATATYPE_MISMATCH, text), part.columns[at].at)
            })?;
            if common != own.oid() {
                let text = format!(
                    "recursive query \"{}\" column {} has type {} in non-recursive term but type {} overall",
                    name.value,
                    at + 1,
                    shown(own.oid()),
                    shown(common)
                );
                let hint = "Cast the output of the non-recursive term to the correct type.";
                let error = PgError::new(state::DATATYPE_MISMATCH, text).hint(hint);
                return Err(self.error(error, source.columns[at].at));
            }
            self.retype_column(&mut part, at, common, -1, CastContext::Implicit)?;
            if distinct {
                self.check_comparable(common, source.columns[at].at)?;
            }
        }
        let types = source.columns.iter().map(|column| settled(&column.column.ty)).collect();
        let recursion = Some(Recursion { part: part.node, distinct, types, is_lazy: true });
        let node = Arc::new(Node::Common { id, source: source.node, recursion, is_kept: true });
        Ok(BoundQuery { node, columns: source.columns, plain: None })
    }
}
