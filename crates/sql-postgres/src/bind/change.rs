//! Binds INSERT, UPDATE and DELETE.

use std::sync::Arc;

use engine::rows::Strength;
use query::block::{PlanningInputs, QueryBlock};
use query::catalog::foreign_graph::RowChangeKind;
use query::catalog::table::{Identity, Table};
use query::nodes::change::{Delete, Insert, OnConflict, Returning, Target, Update, Values};
use query::nodes::expr::Expr;
use query::nodes::node::{Candidates, Lock, LockWait, Node};
use query::nodes::relation::Source;
use query::nodes::subquery::{Question, Subquery};
use query::nodes::walk::{conjuncts, has_subquery};
use query::plan::statistics::Statistics;
use syntax::postgres::tree::{
    self, DeleteStmt, ExprKind, FromItem, Ident, InsertColumn, InsertStmt, Overriding, RangeVar, ResTarget, SelectBody,
    SelectStmt, SetClause, UpdateStmt,
};

use crate::bind::Binder;
use crate::bind::from::{FoundRelation, base_of, names_of};
use crate::bind::insert_part::{has_parts, unique};
use crate::bind::query_expression::project_column;
use crate::bind::rights::ChangedNeed;
use crate::bind::rules::{Omitted, target_type};
use crate::bind::scope::{BoundQuery, Clause, OutputColumn};
use crate::bind::select::output_columns;
use crate::bind::typing::{Operand, unknown_type, unsupported};
use crate::bind::updatable::{ChangedView, Verb};
use crate::error::{PgError, Result, state};
use crate::types::oid;

/// A bound RETURNING list, and its columns.
type Returned = (Option<Returning>, Vec<OutputColumn>);

impl Binder<'_> {
    /// Finds the table whose rows change, behind a view perhaps.
    fn changed_relation(&mut self, relation: &RangeVar, verb: Verb) -> Result<Arc<Table>> {
        self.through = None;
        let word = match verb {
            Verb::Insert => "INSERT into",
            Verb::Update => "UPDATE of",
            Verb::Delete => "DELETE from",
        };
        if let FoundRelation::View(view) = self.find_relation(relation)? {
            let (table, through) = self.changed_view(&view, verb)?;
            self.through = Some(through);
            return Ok(table);
        }
        self.target_table(relation, word)
    }

    /// Returns the need of the table whose rows change: behind a view that of the view's owner.
    fn need_of_changed(&mut self, table: &Table) -> ChangedNeed {
        match &self.through {
            Some(view) => view.need,
            None => self.need_of_table(table),
        }
    }

    /// Returns the name that reaches the changed relation's columns.
    fn shown_name(&self, table: &Table, alias: Option<&Ident>) -> String {
        let own = self.through.as_ref().map_or(&table.name, |view| &view.name);
        alias.map_or(own.as_str(), |alias| alias.value.as_str()).to_owned()
    }

    /// Lets names reach the columns of the view instead of those of the table.
    fn name_through(&mut self, shown: &str) {
        if let Some(view) = &self.through {
            let item = view.names(shown);
            self.scope().names = vec![item];
        }
    }

    /// Finds the table whose rows change.
    fn target_table(&mut self, relation: &RangeVar, verb: &str) -> Result<Arc<Table>> {
        match self.find_relation(relation)? {
            FoundRelation::Table(table) => Ok(table),
            FoundRelation::View(view) => {
                let text = format!("{verb} view \"{}\"", view.name);
                Err(self.error(unsupported(text), relation.at.0))
            }
            FoundRelation::Sequence(sequence) => {
                let text = format!("cannot change sequence \"{}\"", sequence.name);
                Err(self.error(PgError::new(state::WRONG_OBJECT_TYPE, text), relation.at.0))
            }
            FoundRelation::System(system) => {
                let text = format!("permission denied: \"{}\" is a system catalog", system.name);
                self.fail(state::INSUFFICIENT_PRIVILEGE, text, relation.at.0)
            }
        }
    }

    fn target_column(&self, table: &Table, column: &InsertColumn, verb: &str) -> Result<usize> {
        match column.indirection.is_empty() {
            true => self.target_place(table, column, verb),
            false => Err(self.error(unsupported("assignment to a part of a column"), column.name.at.0)),
        }
    }

    /// Returns the column that a target or a part of one names.
    fn target_place(&self, table: &Table, column: &InsertColumn, verb: &str) -> Result<usize> {
        let Some(view) = &self.through else { return self.named_column(table, &column.name) };
        match view.base_column(&column.name.value, verb)? {
            Some(at) => Ok(at),
            None => {
                let text = format!("column \"{}\" of relation \"{}\" does not exist", column.name.value, view.name);
                self.fail(state::UNDEFINED_COLUMN, text, column.name.at.0)
            }
        }
    }

    /// Returns a table's column by its name.
    pub fn named_column(&self, table: &Table, name: &Ident) -> Result<usize> {
        let is_it = |column: &query::catalog::table::TableColumn| !column.is_hidden() && column.name == name.value;
        match table.columns.iter().position(is_it) {
            Some(at) => Ok(at),
            None => {
                let text = format!("column \"{}\" of relation \"{}\" does not exist", name.value, table.name);
                self.fail(state::UNDEFINED_COLUMN, text, name.at.0)
            }
        }
    }

    pub fn insert(&mut self, insert: &InsertStmt) -> Result<(Insert, Vec<OutputColumn>)> {
        let commons = self.commons.len();
        self.with(insert.with.as_ref())?;
        let bound = self.inserted(insert);
        self.through = None;
        self.commons.truncate(commons);
        bound
    }

    fn inserted(&mut self, insert: &InsertStmt) -> Result<(Insert, Vec<OutputColumn>)> {
        let InsertStmt { with: _, relation, alias, columns, overriding, source, on_conflict, returning } = insert;
        let table = self.changed_relation(relation, Verb::Insert)?;
        let need = self.need_of_changed(&table);
        self.use_table(&table, &relation.name)?;
        let shown = self.shown_name(&table, alias.as_ref());
        if self.through.is_some() && on_conflict.is_some() {
            return Err(self.error(unsupported("ON CONFLICT in an INSERT into a view"), relation.at.0));
        }
        let through = self.through.clone();
        let targets = self.insert_targets(&table, columns)?;
        let overrides = *overriding;
        let (values, targets) = match source {
            None => (Values::Rows(vec![Vec::new()]), Vec::new()),
            Some(query) => self.insert_source(query, &table, targets, columns, overrides)?,
        };
        self.need_insert(need, &table, &targets);
        let conflict = self.on_conflict(on_conflict.as_ref(), &table, &shown)?;
        let (on_conflict, updates, arbiter) = conflict;
        let mut doing = vec![RowChangeKind::Insert];
        if on_conflict == OnConflict::Update {
            doing.push(RowChangeKind::Update(updates.iter().map(|(column, _)| *column).collect()));
        }
        // DEFAULT in some rows needs the default of a column with a value in others.
        let is_given = |nth: usize| match &values {
            Values::Rows(rows) => rows.iter().all(|row| row.get(nth).is_some_and(Option::is_some)),
            Values::Query(_) => true,
        };
        let given: Vec<usize> = (0..targets.len()).filter(|nth| is_given(*nth)).map(|nth| targets[nth]).collect();
        self.through.clone_from(&through);
        let mut rules = self.rules(&table, &doing, Omitted::AllBut(&given))?;
        rules.options = through.as_ref().map(|view| view.options.clone()).unwrap_or_default();
        self.open_scope();
        self.add_target(&table, &shown);
        self.name_through(&shown);
        let (returning, fields) = self.returning(returning, false)?;
        self.close_scope();
        let (disregarded, ignore) = (Vec::new(), false);
        let insert = Insert { rules, targets, values, on_conflict, updates, disregarded, ignore, arbiter, returning };
        Ok((insert, fields))
    }

    /// Returns the columns that an INSERT gives values: without a list all of them. One of which several parts are given is there as often.
    pub fn insert_targets(&mut self, table: &Arc<Table>, columns: &[InsertColumn]) -> Result<Vec<usize>> {
        let mut targets = Vec::new();
        for column in columns {
            let at = self.target_place(table, column, "insert into")?;
            let given = targets.iter().zip(columns).filter(|(known, _)| **known == at);
            let is_part = |column: &InsertColumn| !column.indirection.is_empty();
            if given.into_iter().any(|(_, other)| !is_part(column) || !is_part(other)) {
                let text = format!("column \"{}\" specified more than once", column.name.value);
                return self.fail(state::DUPLICATE_COLUMN, text, column.name.at.0);
            }
            targets.push(at);
        }
        if columns.is_empty() {
            targets = match &self.through {
                None => table.named().map(|(at, _)| at).collect(),
                Some(view) => {
                    let names = view.columns.iter().map(|column| &column.name);
                    let columns = names.map(|name| view.base_column(name, "insert into"));
                    columns.filter_map(Result::transpose).collect::<Result<_>>()?
                }
            };
        }
        Ok(targets)
    }

    /// Binds the rows of an INSERT. Without a list of columns they fill the first ones.
    fn insert_source(
        &mut self,
        query: &SelectStmt,
        table: &Arc<Table>,
        mut targets: Vec<usize>,
        columns: &[InsertColumn],
        overriding: Option<Overriding>,
    ) -> Result<(Values, Vec<usize>)> {
        let is_plain = query.with.is_none() && query.order_by.is_empty() && query.limit.is_none();
        if let (SelectBody::Values(rows), true) = (&query.body, is_plain) {
            let width = rows[0].len();
            self.check_count(width, targets.len(), columns, |nth| rows[0][nth].span.start)?;
            targets.truncate(width);
            let rows = self.insert_rows(rows, table, (&targets, columns), overriding)?;
            if has_parts(columns) {
                targets = unique(&targets);
            }
            return Ok((read_first(rows, !self.parts.is_empty()), targets));
        }
        let mut bound = self.open_query(query)?;
        let width = bound.columns.len();
        let start = query.span.start;
        self.check_count(width, targets.len(), columns, |nth| bound.columns[nth].at)?;
        targets.truncate(width);
        for (nth, target) in targets.iter().enumerate() {
            self.check_given(table, *target, overriding)?;
            if columns.get(nth).is_none_or(|column| column.indirection.is_empty()) {
                self.insert_column(&mut bound, nth, table, *target, start)?;
            }
        }
        if has_parts(columns) {
            targets = self.gather_parts(&mut bound, &targets, columns, table)?;
        }
        if let Some(Overriding::User) = overriding {
            // Given values of identity columns are passed over.
            let kept: Vec<usize> =
                (0..targets.len()).filter(|nth| table.columns[targets[*nth]].identity == Identity::None).collect();
            if kept.len() < targets.len() {
                let exprs = kept.iter().map(|nth| Expr::Column(*nth, bound.columns[*nth].column.ty.clone())).collect();
                bound.node = Arc::new(Node::Project { input: bound.node, exprs });
                targets = kept.into_iter().map(|nth| targets[nth]).collect();
            }
        }
        Ok((Values::Query(bound.node), targets))
    }

    pub fn check_count(
        &self,
        given: usize,
        wanted: usize,
        columns: &[InsertColumn],
        place: impl Fn(usize) -> u32,
    ) -> Result<()> {
        if given > wanted {
            return self.fail(state::SYNTAX_ERROR, "INSERT has more expressions than target columns", place(wanted));
        }
        if given < wanted && !columns.is_empty() {
            let at = columns[given].name.at.0;
            return self.fail(state::SYNTAX_ERROR, "INSERT has more target columns than expressions", at);
        }
        Ok(())
    }

    fn insert_rows(
        &mut self,
        rows: &[Vec<tree::Expr>],
        table: &Arc<Table>,
        (targets, columns): (&[usize], &[InsertColumn]),
        overriding: Option<Overriding>,
    ) -> Result<Vec<Vec<Option<Expr>>>> {
        let mut own = names_of(table, &table.name, 0);
        // No LATERAL would reach it.
        own.is_relation_visible = false;
        self.unreachable.push(own);
        self.open_scope();
        self.scope().clause = Clause::InsertValues;
        let mut bound = Vec::with_capacity(rows.len());
        for row in rows {
            if row.len() != targets.len() {
                let at = row[0].span.start;
                return self.fail(state::SYNTAX_ERROR, "VALUES lists must all be the same length", at);
            }
            let mut exprs: Vec<Option<Expr>> = Vec::with_capacity(row.len());
            let mut wholes: Vec<usize> = Vec::new();
            for (nth, (expr, target)) in row.iter().zip(targets).enumerate() {
                if let Some(column) = columns.get(nth).filter(|column| !column.indirection.is_empty()) {
                    self.check_given(table, *target, overriding)?;
                    self.refuse_default_part(expr, column)?;
                    let known = wholes.iter().position(|known| known == target);
                    let base = known.and_then(|at| exprs[at].take());
                    let whole = self.insert_part(base, table, (*target, column), &mut |binder, ty| {
                        let operand = binder.expr(expr)?;
                        binder.part_value(operand, column, ty)
                    })?;
                    match known {
                        Some(at) => exprs[at] = Some(whole),
                        None => {
                            wholes.push(*target);
                            exprs.push(Some(whole));
                        }
                    }
                    continue;
                }
                wholes.push(*target);
                let is_identity = table.columns[*target].identity != Identity::None;
                if matches!(expr.kind, ExprKind::Default) || (is_identity && overriding == Some(Overriding::User)) {
                    exprs.push(None);
                    continue;
                }
                self.check_given(table, *target, overriding)?;
                exprs.push(Some(self.assigned(expr, table, *target)?));
            }
            bound.push(exprs);
        }
        self.close_scope();
        self.unreachable.pop();
        Ok(bound)
    }

    /// Refuses a value for a column that has its own.
    pub fn check_given(&self, table: &Table, at: usize, overriding: Option<Overriding>) -> Result<()> {
        let column = &table.columns[at];
        let text = format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name);
        if column.generated.is_some() {
            let detail = format!("Column \"{}\" is a generated column.", column.name);
            return Err(PgError::new(state::GENERATED_ALWAYS, text).detail(detail));
        }
        if column.identity == Identity::Always && overriding.is_none() {
            let detail = format!("Column \"{}\" is an identity column defined as GENERATED ALWAYS.", column.name);
            let hint = "Use OVERRIDING SYSTEM VALUE to override.";
            return Err(PgError::new(state::GENERATED_ALWAYS, text).detail(detail).hint(hint));
        }
        Ok(())
    }

    /// Binds a value that goes into a column.
    pub fn assigned(&mut self, node: &tree::Expr, table: &Table, at: usize) -> Result<Expr> {
        let bound = self.expr(node)?;
        self.assigned_operand(bound, table, at)
    }

    fn assigned_operand(&mut self, value: Operand, table: &Table, at: usize) -> Result<Expr> {
        let column = &table.columns[at];
        self.assigned_to(value, &column.ty, |source, target| {
            format!("column \"{}\" is of type {target} but expression is of type {source}", column.name)
        })
    }

    /// Coerces a column of a query to that of the table.
    fn insert_column(
        &mut self,
        bound: &mut BoundQuery,
        nth: usize,
        table: &Table,
        target: usize,
        at: u32,
    ) -> Result<()> {
        let ty = bound.columns[nth].column.ty.clone();
        if bound.columns[nth].oid() == oid::UNKNOWN
            && let Some((target, _)) = target_type(&table.columns[target].ty)
        {
            return self.retype_column(bound, nth, target, -1, crate::functions::CastContext::Assignment);
        }
        let value = Operand { expr: Expr::Column(nth, ty), at };
        let expr = self.assigned_operand(value, table, target)?;
        if !matches!(&expr, Expr::Column(place, _) if *place == nth) {
            bound.columns[nth].column.ty = expr.ty();
            project_column(bound, nth, expr);
        }
        Ok(())
    }

    /// Binds the INSERT of COPY FROM.
    pub fn copy_from(&mut self, relation: &RangeVar, columns: &[Ident]) -> Result<Insert> {
        let table = self.target_table(relation, "COPY into")?;
        let need = self.need_of_table(&table);
        self.use_table(&table, &relation.name)?;
        let mut targets = Vec::new();
        for name in columns {
            let at = self.named_column(&table, name)?;
            if targets.contains(&at) {
                let text = format!("column \"{}\" specified more than once", name.value);
                return self.fail(state::DUPLICATE_COLUMN, text, name.at.0);
            }
            if table.columns[at].generated.is_some() {
                let text = format!("column \"{}\" is a generated column", name.value);
                let detail = "Generated columns cannot be used in COPY.";
                let error = PgError::new(state::INVALID_COLUMN_REFERENCE, text).detail(detail);
                return Err(self.error(error, name.at.0));
            }
            targets.push(at);
        }
        if columns.is_empty() {
            let given = table.named().filter(|(_, column)| column.generated.is_none());
            targets = given.map(|(at, _)| at).collect();
        }
        self.need_insert(need, &table, &targets);
        let rules = self.rules(&table, &[RowChangeKind::Insert], Omitted::AllBut(&targets))?;
        Ok(Insert {
            rules,
            targets,
            values: Values::Rows(Vec::new()),
            on_conflict: OnConflict::Fail,
            updates: Vec::new(),
            disregarded: Vec::new(),
            ignore: false,
            arbiter: None,
            returning: None,
        })
    }

    /// Binds the WHERE of COPY FROM.
    pub fn copy_condition(&mut self, table: &Arc<Table>, condition: &tree::Expr) -> Result<Expr> {
        if super::walk::has_subquery(condition) {
            let text = "cannot use subquery in COPY FROM WHERE condition";
            return self.fail(state::FEATURE_NOT_SUPPORTED, text, condition.span.start);
        }
        self.has_no_parameters = true;
        self.need_of_table(table);
        self.open_scope();
        self.add_target(table, &table.name);
        self.set_clause(Clause::CopyWhere);
        let bound = self.condition(condition, "WHERE")?;
        self.close_scope();
        self.check_needs()?;
        Ok(bound)
    }

    /// Binds RETURNING over the rows of the current scope.
    fn returning(&mut self, list: &[ResTarget], is_wide: bool) -> Result<Returned> {
        if list.is_empty() {
            return Ok((None, Vec::new()));
        }
        let items = self.items(list)?;
        let targets = self.targets(&items, Clause::Returning, false)?;
        let fields = output_columns(&targets);
        let columns = fields.iter().map(|field| field.column.clone()).collect();
        let exprs = targets.into_iter().map(|target| target.expr).collect();
        Ok((Some(Returning { exprs, is_wide, columns }), fields))
    }

    /// Opens a scope with the table whose rows change, and the tables beside it.
    pub fn open_change(&mut self, table: &Arc<Table>, alias: Option<&Ident>, others: &[FromItem]) -> Result<Source> {
        self.open_scope();
        self.keyed = true;
        let shown = self.shown_name(table, alias);
        let alias = alias.map(|name| tree::Alias { name: name.clone(), columns: Vec::new() });
        let own = self.stored(table, &shown, alias.as_ref());
        self.keyed = false;
        let own = own?;
        let names = match &self.through {
            Some(view) => vec![view.names(&shown)],
            None => own.names,
        };
        self.scope().names = names.clone();
        if others.is_empty() {
            return Ok(own.source);
        }
        let mut items = vec![own.source];
        let source = self.from(others)?;
        let mut all = names;
        all.append(&mut self.scope().names);
        for (nth, item) in all.iter().enumerate().filter(|(_, item)| item.is_relation_visible) {
            if all[..nth].iter().any(|other| other.is_relation_visible && other.alias == item.alias) {
                let text = format!("table name \"{}\" specified more than once", item.alias);
                return Err(PgError::new(state::DUPLICATE_ALIAS, text));
            }
        }
        self.scope().names = all;
        match source {
            Source::Inner(more, on) => {
                items.extend(more);
                Ok(Source::Inner(items, on))
            }
            other => {
                items.push(other);
                Ok(Source::Inner(items, Vec::new()))
            }
        }
    }

    /// Plans the wide rows to change, with their keys. The first table is the one that changes; `strength` locks its rows.
    pub fn changed_rows(&mut self, source: Source, conditions: Vec<Expr>, strength: Option<Strength>) -> Arc<Node> {
        let depth = self.scopes.len() - 1;
        let scope = self.scope();
        let table = &mut scope.tables[0];
        let locked = |strength| Lock { strength, wait: LockWait::Patient, candidates: Candidates::Seen };
        table.lock = strength.map(locked);
        scope.used[table.offset..table.offset + table.columns.len()].fill(true);
        if let Some(key_at) = table.key_at {
            // A hash table keeps the places that are read.
            scope.used[key_at] = true;
        }
        let mut block = QueryBlock {
            tables: scope.tables.clone(),
            width: scope.width,
            used: scope.used.clone(),
            source,
            conditions,
            exprs: Vec::new(),
            sorts: Vec::new(),
        };
        let (statistics, values): (&dyn Statistics, _) = (self.environment.session, self.environment.values);
        let inputs = PlanningInputs { depth, order: &[], limited: false, statistics, values };
        block.list(inputs);
        let locks = block.take_locks();
        let mut part = block.plan(inputs);
        block.with_lists(&mut part, inputs);
        block.with_locks(part.node, locks, (Vec::new(), Vec::new()))
    }

    pub fn changed(&mut self, table: &Arc<Table>, sets: Vec<(usize, Expr)>, doing: RowChangeKind) -> Result<Target> {
        let place = &self.scope().tables[0];
        let (offset, key_at) = (place.offset, place.key_at.unwrap_or(place.offset));
        debug_assert!(base_of(&place.origin).is_some());
        let mut rules = self.rules(table, &[doing], Omitted::Nothing)?;
        rules.options = self.through.as_ref().map(|view| view.options.clone()).unwrap_or_default();
        Ok(Target { rules, offset, key_at, sets })
    }

    fn selection(&mut self, selection: Option<&tree::Expr>, table: &Arc<Table>) -> Result<Vec<Expr>> {
        let mut conditions = Vec::new();
        if let Some(selection) = selection {
            if let ExprKind::CurrentOf(cursor) = &selection.kind {
                let offset = self.scope().tables[0].offset;
                return self.current_of(cursor, table, offset, selection.span.start);
            }
            self.set_clause(Clause::Where);
            conjuncts(self.condition(selection, "WHERE")?, &mut conditions);
        }
        Ok(conditions)
    }

    pub fn update(&mut self, update: &UpdateStmt) -> Result<(Update, Vec<OutputColumn>)> {
        let commons = self.commons.len();
        self.with(update.with.as_ref())?;
        let bound = self.updated(update);
        self.through = None;
        self.commons.truncate(commons);
        bound
    }

    fn updated(&mut self, update: &UpdateStmt) -> Result<(Update, Vec<OutputColumn>)> {
        let UpdateStmt { with: _, relation, alias, set, from, selection, returning } = update;
        let table = self.changed_relation(relation, Verb::Update)?;
        let need = self.need_of_changed(&table);
        let source = self.open_change(&table, alias.as_ref(), from)?;
        let mut conditions = self.selection(selection.as_ref(), &table)?;
        conditions.extend(self.through.iter().flat_map(ChangedView::rows));
        let (returning, fields) = self.returning(returning, true)?;
        let sets = self.sets(set, &table, "updated")?;
        let mut sets = sets;
        let columns: Vec<usize> = sets.iter().map(|(column, _)| *column).collect();
        self.need_update(need, &table, &columns);
        // A change of a key strengthens the lock when it is made.
        let node = self.changed_rows(source, conditions, Some(Strength::NoKeyExclusive));
        let node = self.values_first(node, &mut sets);
        let doing = RowChangeKind::Update(sets.iter().map(|(column, _)| *column).collect());
        let target = self.changed(&table, sets, doing)?;
        self.close_scope();
        Ok((Update { node, targets: vec![target], ignore: false, at_once: true, returning }, fields))
    }

    /// Computes values that read tables while the rows are found, so that none sees a change of the statement. They follow the wide row.
    fn values_first(&mut self, node: Arc<Node>, sets: &mut [(usize, Expr)]) -> Arc<Node> {
        if !sets.iter().any(|(_, expr)| has_subquery(expr)) {
            return node;
        }
        let scope = self.scope();
        let mut exprs: Vec<Expr> = (0..scope.width).map(|at| Expr::Column(at, unknown_type())).collect();
        for (_, expr) in sets.iter_mut().filter(|(_, expr)| has_subquery(expr)) {
            let place = Expr::Column(exprs.len(), expr.ty());
            exprs.push(std::mem::replace(expr, place));
        }
        Arc::new(Node::Project { input: node, exprs })
    }

    /// Binds assignments, each to a column of its own.
    pub fn sets(&mut self, list: &[SetClause], table: &Arc<Table>, verb: &str) -> Result<Vec<(usize, Expr)>> {
        self.set_clause(Clause::UpdateSource);
        let mut sets: Vec<(usize, Expr)> = Vec::new();
        for clause in list {
            match clause {
                SetClause::Single { target, value } if !target.indirection.is_empty() => {
                    self.set_part(target, value, table, &mut sets)?;
                }
                SetClause::Single { target, value } => {
                    let at = self.set_target(target, table, &sets)?;
                    sets.extend(self.set_value(value, table, at, verb)?);
                }
                SetClause::Multiple { targets, source } => self.multiple(targets, source, table, &mut sets, verb)?,
            }
        }
        Ok(sets)
    }

    fn set_target(&self, target: &InsertColumn, table: &Table, sets: &[(usize, Expr)]) -> Result<usize> {
        let at = self.target_column(table, target, "update")?;
        if sets.iter().any(|(known, _)| *known == at) {
            let text = format!("multiple assignments to same column \"{}\"", target.name.value);
            return Err(PgError::new(state::SYNTAX_ERROR, text));
        }
        Ok(at)
    }

    fn set_value(
        &mut self,
        value: &tree::Expr,
        table: &Arc<Table>,
        at: usize,
        verb: &str,
    ) -> Result<Option<(usize, Expr)>> {
        let column = &table.columns[at];
        if matches!(value.kind, ExprKind::Default) {
            // A generated column is computed in any case.
            if column.generated.is_some() {
                return Ok(None);
            }
            let default = self.default_of(table, at)?;
            let null = || Expr::Literal(query::value::Value::Null, column.ty.clone().with_nullable(true));
            return Ok(Some((at, default.unwrap_or_else(null))));
        }
        let refused = |detail: String| {
            let text = format!("column \"{}\" can only be {verb} to DEFAULT", column.name);
            Err(PgError::new(state::GENERATED_ALWAYS, text).detail(detail))
        };
        if column.generated.is_some() {
            return refused(format!("Column \"{}\" is a generated column.", column.name));
        }
        if column.identity == Identity::Always {
            return refused(format!("Column \"{}\" is an identity column defined as GENERATED ALWAYS.", column.name));
        }
        Ok(Some((at, self.assigned(value, table, at)?)))
    }

    /// Binds `(a, b) = source`.
    fn multiple(
        &mut self,
        targets: &[InsertColumn],
        source: &tree::Expr,
        table: &Arc<Table>,
        sets: &mut Vec<(usize, Expr)>,
        verb: &str,
    ) -> Result<()> {
        match &source.kind {
            ExprKind::Row { items, explicit: _ } => {
                if items.len() != targets.len() {
                    let text = "number of columns does not match number of values";
                    return self.fail(state::SYNTAX_ERROR, text, source.span.start);
                }
                for (target, value) in targets.iter().zip(items) {
                    if !target.indirection.is_empty() {
                        self.set_part(target, value, table, sets)?;
                        continue;
                    }
                    let at = self.set_target(target, table, sets)?;
                    sets.extend(self.set_value(value, table, at, verb)?);
                }
                Ok(())
            }
            ExprKind::Subquery(query) => {
                for (nth, target) in targets.iter().enumerate() {
                    let at = self.set_target(target, table, sets)?;
                    let value = self.subquery_column(query, nth, targets.len(), source.span.start)?;
                    let expr = self.assigned_operand(value, table, at)?;
                    sets.push((at, expr));
                }
                Ok(())
            }
            _ => {
                let text = "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression";
                self.fail(state::FEATURE_NOT_SUPPORTED, text, source.span.start)
            }
        }
    }

    /// Binds one column of a subquery as a value.
    fn subquery_column(&mut self, query: &SelectStmt, nth: usize, count: usize, at: u32) -> Result<Operand> {
        let (subquery, columns): (Subquery, Vec<OutputColumn>) = self.nested(query, |binder, bound| {
            if bound.columns.len() != count {
                let text = "number of columns does not match number of values";
                return binder.fail(state::SYNTAX_ERROR, text, at);
            }
            let column = bound.columns.swap_remove(nth);
            let exprs = vec![Expr::Column(nth, column.column.ty.clone())];
            bound.node = Arc::new(Node::Project { input: bound.node.clone(), exprs });
            (bound.columns, bound.plain) = (vec![column], None);
            Ok(Question::Value)
        })?;
        let ty = columns[0].column.ty.clone().with_nullable(true);
        Ok(Operand { expr: Expr::Subquery(Arc::new(subquery), ty), at })
    }

    pub fn delete(&mut self, delete: &DeleteStmt) -> Result<(Delete, Vec<OutputColumn>)> {
        let commons = self.commons.len();
        self.with(delete.with.as_ref())?;
        let bound = self.deleted(delete);
        self.through = None;
        self.commons.truncate(commons);
        bound
    }

    fn deleted(&mut self, delete: &DeleteStmt) -> Result<(Delete, Vec<OutputColumn>)> {
        let DeleteStmt { with: _, relation, alias, using, selection, returning } = delete;
        let table = self.changed_relation(relation, Verb::Delete)?;
        let need = self.need_of_changed(&table);
        self.need_whole(need, Verb::Delete.privilege());
        let source = self.open_change(&table, alias.as_ref(), using)?;
        let mut conditions = self.selection(selection.as_ref(), &table)?;
        conditions.extend(self.through.iter().flat_map(ChangedView::rows));
        let (returning, fields) = self.returning(returning, true)?;
        let node = self.changed_rows(source, conditions, Some(Strength::Exclusive));
        let target = self.changed(&table, Vec::new(), RowChangeKind::Delete)?;
        self.close_scope();
        Ok((Delete { node, targets: vec![target], ignore: false, returning }, fields))
    }
}

/// Returns rows of VALUES. Those that read tables are all computed before the first is inserted, so that none sees another, or a change of an earlier part of the statement.
fn read_first(rows: Vec<Vec<Option<Expr>>>, has_parts: bool) -> Values {
    let reads = rows.iter().flatten().flatten().any(has_subquery);
    if (rows.len() < 2 && !has_parts) || !reads || rows.iter().flatten().any(Option::is_none) {
        return Values::Rows(rows);
    }
    let rows = rows.into_iter().map(|row| row.into_iter().flatten().collect()).collect();
    Values::Query(Arc::new(Node::Rows { rows }))
}
