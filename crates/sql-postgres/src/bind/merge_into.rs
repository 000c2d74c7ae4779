//! Binds MERGE: the source joined to the target, and what its WHEN clauses do.

use std::sync::Arc;

use datum::Fault;
use query::catalog::foreign_graph::RowChangeKind;
use query::catalog::table::{Identity, Table};
use query::nodes::change::{Insert, Merge, MergeAction, MergeWhen, OnConflict, Values};
use query::nodes::expr::Expr;
use query::nodes::node::Node;
use query::nodes::relation::Source;
use query::nodes::walk::{conjuncts, has_subquery};
use syntax::postgres::tree::{self, ExprKind, InsertColumn, MergeStmt, MergeWhenClause, Overriding};

use crate::bind::Binder;
use crate::bind::from::FoundRelation;
use crate::bind::rules::Omitted;
use crate::bind::scope::{Clause, NameItem};
use crate::bind::typing::{unknown_type, unsupported};
use crate::error::{PgError, Result, state};
use crate::rights::privilege::DELETE;

impl Binder<'_> {
    pub fn merge(&mut self, merge: &MergeStmt) -> Result<Merge> {
        if merge.with.as_ref().is_some_and(|with| with.recursive) {
            let text = "WITH RECURSIVE is not supported for MERGE statement";
            return Err(PgError::new(state::SYNTAX_ERROR, text));
        }
        let commons = self.commons.len();
        self.with(merge.with.as_ref())?;
        let bound = self.merge_into(merge);
        self.commons.truncate(commons);
        bound
    }

    fn merge_into(&mut self, merge: &MergeStmt) -> Result<Merge> {
        let MergeStmt { with: _, relation, alias, source, condition, whens } = merge;
        self.check_whens(whens)?;
        let table = match self.find_relation(relation)? {
            FoundRelation::Table(table) if table.query.is_some() => {
                let text = format!("cannot execute MERGE on relation \"{}\"", table.name);
                let detail = "This operation is not supported for materialized views.";
                return Err(PgError::new(state::FEATURE_NOT_SUPPORTED, text).detail(detail));
            }
            FoundRelation::Table(table) => table,
            FoundRelation::View(view) => {
                let error = PgError::new(
                    state::FEATURE_NOT_SUPPORTED,
                    format!("cannot execute MERGE on relation \"{}\"", view.name),
                );
                return Err(error.detail("This operation is not supported for views."));
            }
            FoundRelation::Sequence(sequence) => {
                let text = format!("cannot execute MERGE on relation \"{}\"", sequence.name);
                let detail = "This operation is not supported for sequences.";
                let error = PgError::new(state::WRONG_OBJECT_TYPE, text).detail(detail);
                return Err(error);
            }
            FoundRelation::System(system) => {
                let text = format!("permission denied: \"{}\" is a system catalog", system.name);
                return self.fail(state::INSUFFICIENT_PRIVILEGE, text, relation.at.0);
            }
        };
        self.through = None;
        self.need_of_table(&table);
        let target = self.open_change(&table, alias.as_ref(), &[])?;
        let of_target = self.scope().names.clone();
        let source = self.from(std::slice::from_ref(source))?;
        let of_source = self.scope().names.clone();
        if let Some(item) = of_source.iter().find(|item| item.is_relation_visible && item.alias == of_target[0].alias) {
            let error =
                PgError::new(state::DUPLICATE_ALIAS, format!("name \"{}\" specified more than once", item.alias));
            return Err(error.detail("The name is used both as MERGE target table and data source."));
        }
        let both: Vec<NameItem> = of_target.iter().chain(&of_source).cloned().collect();
        self.scope().names.clone_from(&both);
        self.set_clause(Clause::On);
        let condition = self.condition(condition, "JOIN/ON")?;
        let mut on = Vec::new();
        conjuncts(condition.clone(), &mut on);
        self.scope().tables[0].nullable = true;
        let mut bound = Vec::with_capacity(whens.len());
        for when in whens {
            let hidden = self.unreachable.len();
            if !when.matched {
                self.scope().names.clone_from(&of_source);
                // No LATERAL would reach it.
                let hidden = |item: &NameItem| NameItem { is_relation_visible: false, ..item.clone() };
                self.unreachable.extend(of_target.iter().map(hidden));
            }
            let when = self.when(when, &table);
            self.unreachable.truncate(hidden);
            self.scope().names.clone_from(&both);
            bound.push(when?);
        }
        let node = self.changed_rows(Source::Left(Box::new(source), Box::new(target), on), Vec::new(), None);
        let node = self.subqueries_first(node, &mut bound);
        let place = &self.scope().tables[0];
        let (offset, key_at) = (place.offset, place.key_at.unwrap_or(place.offset));
        self.close_scope();
        Ok(Merge { node, table, offset, key_at, condition, whens: bound, affects_twice })
    }

    fn check_whens(&self, whens: &[MergeWhenClause]) -> Result<()> {
        let mut is_over = [false; 2];
        for when in whens {
            let over = &mut is_over[usize::from(when.matched)];
            if *over {
                let text = "unreachable WHEN clause specified after unconditional WHEN clause";
                return Err(PgError::new(state::SYNTAX_ERROR, text));
            }
            *over = when.condition.is_none();
        }
        Ok(())
    }

    fn when(&mut self, when: &MergeWhenClause, table: &Arc<Table>) -> Result<MergeWhen> {
        let MergeWhenClause { matched, condition, action } = when;
        self.set_clause(Clause::Where);
        let condition = condition.as_ref().map(|condition| self.condition(condition, "WHEN")).transpose()?;
        let action = match action {
            tree::MergeAction::Nothing => MergeAction::Nothing,
            tree::MergeAction::Delete => {
                let need = self.need_of_table(table);
                self.need_whole(need, DELETE);
                MergeAction::Delete(self.changed(table, Vec::new(), RowChangeKind::Delete)?)
            }
            tree::MergeAction::Update(sets) => {
                let sets = self.sets(sets, table, "updated")?;
                let columns: Vec<usize> = sets.iter().map(|(column, _)| *column).collect();
                let need = self.need_of_table(table);
                self.need_update(need, table, &columns);
                let doing = RowChangeKind::Update(columns);
                MergeAction::Update(self.changed(table, sets, doing)?)
            }
            tree::MergeAction::Insert { columns, overriding, values } => {
                self.merge_insert(table, columns, *overriding, values)?
            }
        };
        Ok(MergeWhen { is_matched: *matched, condition, action })
    }

    fn merge_insert(
        &mut self,
        table: &Arc<Table>,
        columns: &[InsertColumn],
        overriding: Option<Overriding>,
        values: &[tree::Expr],
    ) -> Result<MergeAction> {
        if let Some(part) = columns.iter().find(|column| !column.indirection.is_empty()) {
            return Err(self.error(unsupported("assignment to a part of a column in MERGE"), part.name.at.0));
        }
        let mut named = self.insert_targets(table, columns)?;
        if !values.is_empty() {
            self.check_count(values.len(), named.len(), columns, |nth| values[nth].span.start)?;
        }
        named.truncate(values.len());
        let need = self.need_of_table(table);
        self.need_insert(need, table, &named);
        self.set_clause(Clause::InsertValues);
        let (mut targets, mut exprs) = (Vec::new(), Vec::new());
        for (value, target) in values.iter().zip(named) {
            let is_identity = table.columns[target].identity != Identity::None;
            if matches!(value.kind, ExprKind::Default) || (is_identity && overriding == Some(Overriding::User)) {
                continue;
            }
            self.check_given(table, target, overriding)?;
            exprs.push(self.assigned(value, table, target)?);
            targets.push(target);
        }
        let rules = self.rules(table, &[RowChangeKind::Insert], Omitted::AllBut(&targets))?;
        let insert = Insert {
            rules,
            targets,
            values: Values::Rows(Vec::new()),
            on_conflict: OnConflict::Fail,
            updates: Vec::new(),
            disregarded: Vec::new(),
            ignore: false,
            arbiter: None,
            returning: None,
        };
        Ok(MergeAction::Insert(Box::new(insert), exprs))
    }

    /// Computes what reads tables while the rows are found, so that none sees a change of the statement. The values follow the wide row.
    fn subqueries_first(&mut self, node: Arc<Node>, whens: &mut [MergeWhen]) -> Arc<Node> {
        let mut exprs: Vec<Expr> = (0..self.scope().width).map(|at| Expr::Column(at, unknown_type())).collect();
        let width = exprs.len();
        let mut first = |expr: &mut Expr| {
            if has_subquery(expr) {
                let place = Expr::Column(exprs.len(), expr.ty());
                exprs.push(std::mem::replace(expr, place));
            }
        };
        for when in whens {
            when.condition.iter_mut().for_each(&mut first);
            match &mut when.action {
                MergeAction::Update(target) => target.sets.iter_mut().for_each(|(_, expr)| first(expr)),
                MergeAction::Insert(_, values) => values.iter_mut().for_each(&mut first),
                MergeAction::Nothing | MergeAction::Delete(_) => {}
            }
        }
        if exprs.len() == width { node } else { Arc::new(Node::Project { input: node, exprs }) }
    }
}

fn affects_twice() -> Fault {
    let text = "MERGE command cannot affect row a second time";
    let hint = "Ensure that not more than one source row matches any one target row.";
    PgError::new(state::CARDINALITY_VIOLATION, text).hint(hint).into()
}
