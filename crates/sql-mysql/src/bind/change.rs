//! Binds INSERT, REPLACE, UPDATE and DELETE.

use crate::types::{Column, MysqlExpr as _, MysqlType as _, Type};
use datum::key::KeyOrder;
use std::sync::Arc;

use engine::rows::Strength;
use syntax::tree::{
    self, Assignment, ColumnName, ExprKind, Ident, InsertSource, Joined, Limit, OrderItem, RowAlias, SelectExpr,
    SelectItem, TableName, TableRef,
    walk::{self, Visitor},
};

use crate::bind::Bind;
use crate::bind::from::columns_of;
use crate::bind::generated::order_by_formulas;
use crate::bind::returning::Changing;
use crate::bind::scope::Bound;
use crate::error::{self, Result, SqlError};
use crate::other_dialects::MAKER;
use crate::other_tables::{check_assign, check_change, check_write, of_another};
use crate::parse::parse_expression;
use crate::parse::statement::Name;
use crate::rights::Privileges;
use crate::scalar::bind::as_sent;
use crate::scalar::functions::control::unsupported;
use query::block::shape::{limited, outermost};
use query::block::{PlanningInputs, QueryBlock};
use query::catalog::foreign_graph::{ForeignKeyGraph, RowChangeKind};
use query::catalog::table::{Default, Identity, Table, TableColumn};
use query::nodes::change::{Delete, Insert, OnConflict, Rules, Target, Update, Values};
use query::nodes::expr::Expr;
use query::nodes::keyspace_table;
use query::nodes::node::{Candidates, Lock, LockWait, Node, SortKey};
use query::nodes::relation::Columns;
use query::nodes::relation::{Allowed, Origin, ScopeTable, Source};
use query::plan::statistics::Statistics;

/// Returns whether the plan reads a changed table by a full scan.
fn reads_all(node: &Node) -> bool {
    match node {
        Node::Scan(scan) => scan.access.is_full() && scan.lock.is_some_and(|lock| lock.strength == Strength::Exclusive),
        Node::Loop { left, right, .. } => reads_all(left) || reads_all(right),
        Node::Hash(join) => reads_all(&join.left) || reads_all(&join.right),
        Node::Filter { input, .. } => reads_all(input),
        _ => false,
    }
}

fn targets_of(targets: &[Target]) -> impl Iterator<Item = &Arc<Table>> {
    targets.iter().map(|target| &target.rules.table)
}

/// Refuses a value other than DEFAULT for a generated column, and one for a type that takes none from MySQL.
pub(super) fn refuse_value(table: &Table, column: usize) -> Result<()> {
    check_assign(table, column)?;
    let definition = &table.columns[column];
    match definition.generated {
        None => Ok(()),
        Some(_) => Err(error::GENERATED_COLUMN_NOT_ALLOWED.with(&[&definition.name, &table.name])),
    }
}

/// Returns the columns of the query's tables that ON DUPLICATE KEY UPDATE names, as in MySQL where the query neither groups
/// nor removes duplicates. A name that the target has is the target's.
fn source_columns(insert: &tree::Insert, table: &Table) -> Vec<tree::Expr> {
    struct SourceColumns<'n> {
        insert: &'n tree::Insert,
        table: &'n Table,
        found: Vec<tree::Expr>,
    }
    impl Visitor for SourceColumns<'_> {
        fn expr(&mut self, node: &tree::Expr) -> bool {
            if let ExprKind::Column(name) = &node.kind {
                let is_own = match &name.table {
                    Some(table) => *table == self.insert.table.name,
                    None => self.table.column(&name.name).is_some(),
                };
                let is_known = |known: &tree::Expr| known.kind == node.kind;
                if !is_own && !self.found.iter().any(is_known) {
                    self.found.push(node.clone());
                }
            }
            true
        }

        fn query(&mut self, _: &tree::Query) -> bool {
            false
        }
    }
    let InsertSource::Query(query) = &insert.source else { return Vec::new() };
    let tree::QueryBody::Select(select) = &query.body else { return Vec::new() };
    if insert.row_alias.is_some() || select.distinct || !select.group_by.is_empty() {
        return Vec::new();
    }
    let mut named = SourceColumns { insert, table, found: Vec::new() };
    insert.on_duplicate.iter().for_each(|Assignment { column: _, value }| walk::expr(value, &mut named));
    // A bare name finds the column of a qualified one.
    let qualified = |expr: &tree::Expr| match &expr.kind {
        ExprKind::Column(name) if name.table.is_some() => Some(name.name.to_lowercase()),
        _ => None,
    };
    let names: Vec<String> = named.found.iter().filter_map(qualified).collect();
    let is_bare = |expr: &tree::Expr| qualified(expr).is_none();
    let is_named =
        |expr: &tree::Expr| matches!(&expr.kind, ExprKind::Column(name) if names.contains(&name.name.to_lowercase()));
    named.found.retain(|expr| !(is_bare(expr) && is_named(expr)));
    named.found
}

/// Returns the query with further columns in its select list.
fn with_columns(query: &tree::Query, columns: &[tree::Expr]) -> tree::Query {
    let mut query = query.clone();
    if let tree::QueryBody::Select(select) = &mut query.body {
        let item = |expr: &tree::Expr| SelectExpr { expr: expr.clone(), alias: None, text: String::new() };
        select.items.extend(columns.iter().map(|expr| SelectItem::Expr(item(expr))));
    }
    query
}

/// Returns the table of one column of the query, under the name that the column has in ON DUPLICATE KEY UPDATE.
fn beside_table(column: &tree::Expr, ty: Type, node: &Arc<Node>) -> Option<ScopeTable> {
    let ExprKind::Column(name) = &column.kind else { return None };
    Some(ScopeTable {
        alias: name.table.clone().unwrap_or_default(),
        schema: name.schema.clone().unwrap_or_default(),
        hidden: vec![false],
        columns: vec![Column::computed(name.name.clone(), ty)],
        origin: Origin::Derived { node: node.clone() },
        offset: 0,
        key_at: None,
        lock: None,
        nullable: false,
        allowed: None,
        readable: Columns::All,
        within: None,
        after: Vec::new(),
    })
}

fn is_default(expr: &tree::Expr) -> bool {
    matches!(expr.kind, ExprKind::Default)
}

/// Returns the first table of a FROM, and whether it is the only one.
fn first_table(list: &[Joined]) -> Option<(&TableName, bool)> {
    let [Joined { first: TableRef::Table(table), joins }, others @ ..] = list else { return None };
    Some((table, joins.is_empty() && others.is_empty()))
}

impl Bind<'_> {
    /// Returns a column's default expression. One that another dialect would have to read is an error if a row needs it.
    fn default_of(&mut self, table: &Table, column: &TableColumn) -> Result<Option<Expr>> {
        let is_foreign = matches!(column.default, Default::Expression(_)) || column.identity != Identity::None;
        if table.maker != MAKER && is_foreign {
            return Ok(Some(unsupported(of_another("default of column", &column.name))));
        }
        Ok(match &column.default {
            // Any given value is replaced by the computed one.
            Default::None if column.generated.is_some() => Some(Expr::null()),
            Default::None if column.ty.nullable => Some(Expr::null()),
            Default::None | Default::Dropped => None,
            Default::Value(value) => Some(Expr::Literal(value.clone(), column.ty.clone())),
            Default::Now(scale) => Some(self.expr(&parse_expression(&format!("CURRENT_TIMESTAMP({scale})"))?)?),
            Default::Expression(text) => Some(self.expr(&parse_expression(text)?)?),
        })
    }

    /// Binds a table's defaults, generated columns and checks. Opens a scope with the table alone.
    pub fn rules(&mut self, table: &Arc<Table>, doing: &[RowChangeKind]) -> Result<Rules> {
        check_change(table)?;
        if !doing.iter().all(|doing| matches!(doing, RowChangeKind::Delete)) {
            check_write(table)?;
        }
        let (mut defaults, mut clocks, mut checks) = (Vec::new(), Vec::new(), Vec::new());
        self.open_scope();
        self.add_table(table, &table.name, Columns::All);
        for (at, column) in table.columns.iter().enumerate() {
            defaults.push(self.default_of(table, column)?);
            if column.on_update_now {
                clocks.push((at, self.expr(&parse_expression(&format!("CURRENT_TIMESTAMP({})", column.ty.scale))?)?));
            }
        }
        for check in table.checks.iter().filter(|check| check.enforced && table.maker == MAKER) {
            checks.push((check.name.clone(), self.condition(&parse_expression(&check.text)?)?));
        }
        self.close_scope();
        let foreign_graph = self.foreign_graph(table, doing, &clocks)?;
        foreign_graph.iter().flat_map(|graph| graph.changed()).try_for_each(|table| check_write(table))?;
        Ok(Rules { table: table.clone(), defaults, clocks, checks, foreign_graph, options: Vec::new() })
    }

    /// Returns the tables that foreign keys reach; their metadata locks are needed too.
    fn foreign_graph(
        &mut self,
        table: &Arc<Table>,
        doing: &[RowChangeKind],
        clocks: &[(usize, Expr)],
    ) -> Result<Option<Arc<ForeignKeyGraph>>> {
        let mut doing = doing.to_vec();
        for doing in &mut doing {
            if let RowChangeKind::Update(sets) = doing {
                sets.extend(clocks.iter().map(|(column, _)| *column));
                let formulas = table.bound_formulas().into_iter().flatten();
                let moved: Vec<usize> = formulas
                    .filter(|formula| formula.reads.iter().any(|read| sets.contains(read)))
                    .map(|formula| formula.column)
                    .collect();
                sets.extend(moved);
            }
        }
        let Some(foreign_graph) = ForeignKeyGraph::of(table, &doing, &self.environment.snapshot) else {
            return Ok(None);
        };
        for other in foreign_graph.others() {
            self.formulas(&other)?;
            if !self.linked.iter().any(|known| known.id == other.id) {
                self.linked.push(other);
            }
        }
        Ok(Some(foreign_graph))
    }

    pub(super) fn add_table(&mut self, table: &Arc<Table>, alias: &str, readable: Columns) -> usize {
        let columns = columns_of(table, alias);
        self.scope().add(ScopeTable {
            alias: alias.to_owned(),
            schema: table.schema.clone(),
            hidden: vec![false; columns.len()],
            columns,
            origin: Origin::Base(table.clone()),
            offset: 0,
            key_at: None,
            lock: None,
            nullable: false,
            allowed: None,
            readable,
            within: None,
            after: Vec::new(),
        })
    }

    pub fn insert(&mut self, insert: &tree::Insert) -> Result<Insert> {
        let tree::Insert {
            replace,
            ignore,
            hints: _,
            table: name,
            partitions,
            columns,
            source,
            row_alias: _,
            on_duplicate,
            returning,
        } = insert;
        if !partitions.is_empty() {
            return Err(SqlError::unsupported("PARTITION (...)"));
        }
        self.refuse_system(name)?;
        let schema = self.schema_of(name)?;
        self.rights.need_some_columns(&schema, &name.name, Privileges::INSERT)?;
        if *replace {
            self.rights.need_table(&schema, &name.name, Privileges::DELETE)?;
        }
        let through = self.insert_view(name, &schema, insert)?;
        let table = match &through {
            Some(through) => through.table.clone(),
            None => self.base_table(name)?,
        };
        // Column names as the view has them; columns outside the view have none.
        let names = through.as_ref().map(|through| through.names.clone());
        self.named_as = Some((name.name.clone(), names));
        let mut targets = Vec::new();
        for column in columns {
            targets.push(self.target(&table, column)?);
        }
        if let InsertSource::Set(assignments) = source {
            for Assignment { column, value: _ } in assignments {
                targets.push(self.target(&table, column)?);
            }
        }
        if let Some(twice) = (0..targets.len()).find(|at| targets[..*at].contains(&targets[*at])) {
            return Err(error::FIELD_SPECIFIED_TWICE.with(&[&table.columns[targets[twice]].name]));
        }
        let is_bare = targets.is_empty();
        if let (true, Some(through)) = (is_bare, &through) {
            targets = through.columns.iter().copied().flatten().collect();
        } else if is_bare {
            targets = table.named().filter(|(_, column)| !column.invisible).map(|(at, _)| at).collect();
        }
        let mut options = Vec::new();
        match &through {
            Some(through) => {
                let given = |at: &usize| through.columns.iter().position(|column| *column == Some(*at));
                let given: Vec<usize> = targets.iter().filter_map(given).collect();
                options = self.check_insert_view(name, &given)?;
            }
            // Without a column list the error does not name the columns that lack INSERT.
            None if is_bare => {
                let rights = &self.rights;
                let may = |at: &usize| {
                    rights.column(&table.schema, &table.name, &table.columns[*at].name).has(Privileges::INSERT)
                };
                if !targets.iter().all(may) {
                    return Err(rights.no_table("INSERT", &table.name));
                }
            }
            None => targets.iter().try_for_each(|at| self.check_change(&table, *at, Privileges::INSERT))?,
        }
        let beside = if through.is_some() { Vec::new() } else { source_columns(insert, &table) };
        let (values, beside) = self.insert_values(source, beside, &table, &targets, is_bare)?;
        if matches!(&values, Values::Rows(rows) if !rows.is_empty() && rows.iter().all(Vec::is_empty)) {
            targets.clear();
        }
        let on_conflict = match (on_duplicate.is_empty(), *replace, *ignore) {
            (false, ..) => OnConflict::Update,
            (true, true, _) => OnConflict::Replace,
            (true, false, true) => OnConflict::Ignore,
            (true, false, false) => OnConflict::Fail,
        };
        let updates = self.on_duplicate(insert, beside, &table, &targets)?;
        let doing = match on_conflict {
            OnConflict::Replace => vec![RowChangeKind::Insert, RowChangeKind::Delete],
            OnConflict::Update => {
                vec![RowChangeKind::Insert, RowChangeKind::Update(updates.iter().map(|(column, _)| *column).collect())]
            }
            OnConflict::Fail | OnConflict::Ignore => vec![RowChangeKind::Insert],
        };
        let rules = Rules { options, ..self.rules(&table, &doing)? };
        let disregarded = self.disregarded(source, &table, &targets);
        let changing = Changing { table: table.clone(), alias: name.name.clone(), is_view: through.is_some() };
        let returning = self.returning(returning.as_deref(), &[changing])?;
        let (ignore, arbiter) = (*ignore, None);
        Ok(Insert { rules, targets, values, on_conflict, updates, disregarded, ignore, arbiter, returning })
    }

    fn refuse_system(&self, name: &Name) -> Result<()> {
        let schema = name.schema.as_deref().or(self.environment.database).unwrap_or("");
        match crate::system::find(schema, &name.name) {
            Some(table) if table.is_keyspace() => Ok(()),
            Some(table) => Err(self.rights.no_database(table.schema)),
            None => Ok(()),
        }
    }

    /// Adds the target of INSERT, or the base table of a target view under the view's names.
    pub(super) fn add_target(&mut self, table: &Arc<Table>) {
        let (alias, names) = self.named_as.clone().unwrap_or_else(|| (table.name.clone(), None));
        let readable = if names.is_some() { Columns::All } else { self.readable(table) };
        let at = self.add_table(table, &alias, readable);
        for (column, name) in self.scope().tables[at].columns.iter_mut().zip(names.iter().flatten()) {
            column.name = name.clone().unwrap_or_default();
        }
    }

    fn is_through_view(&self) -> bool {
        matches!(&self.named_as, Some((_, Some(_))))
    }

    /// Returns the columns of the table with SELECT privilege.
    pub(super) fn readable(&self, table: &Table) -> Columns {
        let names = table.columns.iter().map(|column| &*column.name);
        self.rights.columns(&table.schema, &table.name, names, Privileges::SELECT)
    }

    /// Checks the privilege to assign the column. The error names the table if no column may be assigned, else the
    /// column.
    fn check_change(&self, table: &Table, column: usize, one: Privileges) -> Result<()> {
        let rights = &self.rights;
        rights.need_some_columns(&table.schema, &table.name, one)?;
        let name = &table.columns[column].name;
        if rights.column(&table.schema, &table.name, name).has(one) {
            return Ok(());
        }
        Err(rights.no_column(one.first(), name, &table.name))
    }

    pub(super) fn target(&mut self, table: &Table, column: &ColumnName) -> Result<usize> {
        let name = &column.name;
        let found = match &self.named_as {
            Some((_, Some(names))) => {
                names.iter().position(|known| known.as_ref().is_some_and(|known| known.eq_ignore_ascii_case(name)))
            }
            _ => table.column(name),
        };
        found.ok_or_else(|| error::BAD_FIELD.with(&[name, &"field list"]))
    }

    /// Binds the new rows. Those of a query have the columns `beside` behind their values; their tables are returned, for
    /// the scope of ON DUPLICATE KEY UPDATE.
    fn insert_values(
        &mut self,
        source: &InsertSource,
        beside: Vec<tree::Expr>,
        table: &Arc<Table>,
        targets: &[usize],
        is_bare: bool,
    ) -> Result<(Values, Vec<ScopeTable>)> {
        let list = match source {
            InsertSource::Values(list) => list,
            InsertSource::Set(assignments) => {
                self.open_scope();
                self.add_target(table);
                let mut row = Vec::new();
                for (Assignment { column: _, value }, column) in assignments.iter().zip(targets) {
                    row.push(self.value_for(value, table, *column)?);
                }
                self.close_scope();
                return Ok((Values::Rows(vec![row]), Vec::new()));
            }
            InsertSource::Query(query) => {
                targets.iter().try_for_each(|at| refuse_value(table, *at))?;
                let mut bound = match beside.is_empty() {
                    true => self.query(query)?,
                    false => self.query(&with_columns(query, &beside))?,
                };
                if bound.columns.len() != targets.len() + beside.len() {
                    return Err(error::WRONG_VALUE_COUNT_ON_ROW.with(&[&1]));
                }
                if let Some(exprs) = outermost(&mut bound.node) {
                    exprs.iter_mut().zip(targets).for_each(|(expr, at)| expr.keep_digits(&table.columns[*at].ty));
                }
                let types = bound.columns[targets.len()..].iter().map(|column| column.ty.clone());
                let types: Vec<Type> = types.collect();
                let node = sent(bound, table, targets);
                let beside = beside.iter().zip(types).filter_map(|(expr, ty)| beside_table(expr, ty, &node)).collect();
                return Ok((Values::Query(node), beside));
            }
        };
        self.open_scope();
        self.add_target(table);
        let mut rows = Vec::with_capacity(list.len());
        for (at, row) in list.iter().enumerate() {
            let is_empty = row.is_empty() && (is_bare || targets.is_empty());
            if row.len() != targets.len() && !is_empty {
                return Err(error::WRONG_VALUE_COUNT_ON_ROW.with(&[&(at + 1)]));
            }
            let mut exprs = Vec::with_capacity(row.len());
            for (expr, column) in row.iter().zip(targets) {
                if self.disregards(table, *column) {
                    exprs.push(None);
                    continue;
                }
                exprs.push(self.value_for(expr, table, *column)?);
            }
            rows.push(exprs);
        }
        self.close_scope();
        Ok((Values::Rows(rows), Vec::new()))
    }

    pub(super) fn value_for(&mut self, expr: &tree::Expr, table: &Table, column: usize) -> Result<Option<Expr>> {
        if is_default(expr) {
            return Ok(None);
        }
        refuse_value(table, column)?;
        self.assigned(expr, &table.columns[column].ty).map(Some)
    }

    /// Returns whether a value for the column counts as DEFAULT, with a warning. mariadb-dump writes the values of
    /// generated columns and loads them in a mode that is not strict.
    pub(super) fn disregards(&self, table: &Table, column: usize) -> bool {
        table.columns[column].generated.is_some() && !self.settings().sql_mode.is_strict()
    }

    /// Returns error 3105 if the column is generated.
    pub fn refuse_generated(&self, table: &Table, column: usize) -> Result<()> {
        refuse_value(table, column)
    }

    fn disregarded(&self, source: &InsertSource, table: &Table, targets: &[usize]) -> Vec<usize> {
        let InsertSource::Values(rows) = source else { return Vec::new() };
        let is_given = |nth: usize| rows.iter().any(|row| row.get(nth).is_some_and(|expr| !is_default(expr)));
        let places = targets.iter().enumerate();
        places.filter(|(nth, at)| self.disregards(table, **at) && is_given(*nth)).map(|(_, at)| *at).collect()
    }

    /// Binds ON DUPLICATE KEY UPDATE. `targets` are the columns of the INSERT, `beside` the columns of its query's
    /// tables.
    fn on_duplicate(
        &mut self,
        insert: &tree::Insert,
        beside: Vec<ScopeTable>,
        table: &Arc<Table>,
        targets: &[usize],
    ) -> Result<Vec<(usize, Expr)>> {
        if insert.on_duplicate.is_empty() {
            return Ok(Vec::new());
        }
        self.open_scope();
        self.add_target(table);
        // The new row follows in the scope, under its alias if it has one.
        let new = insert.row_alias.as_ref();
        let at = self.add_table(table, new.map_or("\u{0}new", |alias| &alias.name.value), Columns::All);
        if let Some(RowAlias { name: _, columns }) = new
            && !columns.is_empty()
        {
            self.name_columns(at, columns, targets)?;
        }
        let base = self.scope().tables[at].offset;
        if new.is_none() {
            self.scope().tables.truncate(at);
        }
        for table in beside {
            self.scope().add(table);
        }
        self.values_at = Some((self.scopes.len() - 1, base));
        let mut updates = Vec::new();
        for Assignment { column, value } in &insert.on_duplicate {
            let column = self.target(table, column)?;
            if !self.is_through_view() {
                self.check_change(table, column, Privileges::UPDATE)?;
            }
            let expr = match self.value_for(value, table, column)? {
                Some(expr) => expr,
                None => self
                    .default_of(table, &table.columns[column])?
                    .ok_or_else(|| error::NO_DEFAULT_FOR_FIELD.with(&[&table.columns[column].name]))?,
            };
            if table.columns[column].generated.is_none() {
                updates.push((column, expr));
            }
        }
        self.values_at = None;
        self.close_scope();
        Ok(updates)
    }

    /// `AS new (m, n)`: names the inserted columns of the new row; its other columns lose their names.
    fn name_columns(&mut self, at: usize, names: &[Ident], targets: &[usize]) -> Result<()> {
        if names.len() != targets.len() {
            return Err(error::VIEW_WRONG_LIST.bare());
        }
        let same = |one: &Ident, other: &Ident| one.value.to_lowercase() == other.value.to_lowercase();
        if let Some(twice) = (0..names.len()).find(|at| names[..*at].iter().any(|name| same(name, &names[*at]))) {
            return Err(error::DUP_FIELDNAME.with(&[&names[twice].value]));
        }
        for (column, told) in self.scope().tables[at].columns.iter_mut().enumerate() {
            let name = targets.iter().position(|target| *target == column).map(|nth| names[nth].value.clone());
            told.name = name.unwrap_or_default();
        }
        Ok(())
    }

    /// Plans the wide rows to change, locked and with their keys.
    fn changed_rows(
        &mut self,
        source: &Source,
        selection: Option<&tree::Expr>,
        order: &[OrderItem],
        limit: Option<&Limit>,
        targets: &[usize],
        wait: LockWait,
    ) -> Result<Arc<Node>> {
        let conditions = self.where_conditions(selection)?;
        let sorts = self.order(order, &[])?;
        let limit = limit.map(|Limit { count, offset: _ }| self.expr(count)).transpose()?;
        self.uses.lock(targets.len());
        if limit.is_none() && self.settings().safe_updates {
            // Any index satisfies safe updates, however small the table is.
            self.force_keys(targets);
        }
        let environment = self.environment;
        let scope = self.scope();
        for (at, table) in scope.tables.iter_mut().enumerate() {
            let is_target = targets.contains(&at);
            let strength = if is_target { Strength::Exclusive } else { Strength::Shared };
            table.lock = Some(Lock { strength, wait, candidates: Candidates::Current });
            if is_target {
                scope.used[table.offset..table.offset + table.columns.len()].fill(true);
            }
        }
        let scope = std::mem::take(self.scope());
        self.note_likeness(&scope, &conditions);
        self.note_likeness(&scope, &sorts.iter().map(|(expr, _)| expr.clone()).collect::<Vec<_>>());
        let wants = order_by_formulas(&scope, &sorts);
        let (statistics, values): (&dyn Statistics, _) = (environment.variables, environment.values);
        let depth = self.scopes.len() - 1;
        let inputs = PlanningInputs { depth, order: &wants, limited: limit.is_some(), statistics, values };
        let mut block = QueryBlock {
            tables: scope.tables.clone(),
            width: scope.width,
            used: scope.used.clone(),
            source: source.clone(),
            conditions,
            exprs: Vec::new(),
            sorts: Vec::new(),
        };
        block.list(inputs);
        let mut part = block.plan(inputs);
        // A limit over an index order ends early, so joins to key sets would not pay.
        if limit.is_none() {
            block.with_lists(&mut part, inputs);
        }
        let mut node = part.node;
        if limit.is_none() && self.settings().safe_updates && reads_all(&node) {
            return Err(error::UPDATE_WITHOUT_KEY_IN_SAFE_MODE.bare());
        }
        if !(sorts.is_empty() || part.ordered && wants.len() == sorts.len()) {
            let mut exprs: Vec<Expr> = (0..scope.width).map(|at| Expr::Column(at, scope.type_at(at))).collect();
            let mut keys = Vec::new();
            for (expr, descending) in sorts {
                keys.push(SortKey { at: exprs.len(), ty: expr.ty(), order: KeyOrder::with_null_least(descending) });
                exprs.push(expr);
            }
            node = Arc::new(Node::Project { input: node, exprs });
            node = Arc::new(Node::Sort {
                input: node,
                keys,
                limit: limit.clone().map(|limit| (limit, None)),
                unique: false,
            });
        }
        *self.scope() = scope;
        Ok(limited(node, (limit, None)))
    }

    /// Forces the use of an index on these tables, as FORCE INDEX does.
    fn force_keys(&mut self, targets: &[usize]) {
        for at in targets {
            let table = &mut self.scope().tables[*at];
            let Origin::Base(base) = &table.origin else { continue };
            let all = || Allowed { primary: true, indexes: (0..base.indexes.len()).collect(), forced: true };
            table.allowed.get_or_insert_with(all).forced = true;
        }
    }

    fn changed(&mut self, at: usize, sets: Vec<(usize, Expr)>, doing: RowChangeKind) -> Result<Target> {
        let table = &self.scope().tables[at];
        let (offset, key_at) = (table.offset, table.key_at.unwrap_or(table.offset));
        let base = match &table.origin {
            Origin::Base(base) => base.clone(),
            Origin::System(system) if system.is_keyspace() => keyspace_table::table(system).clone(),
            _ => return Err(error::NON_UPDATABLE_TABLE.with(&[&table.alias.clone(), &"UPDATE"])),
        };
        Ok(Target { rules: self.rules(&base, &[doing])?, offset, key_at, sets })
    }

    /// Returns the target tables by their names in the statement. `at` are their positions in the scope.
    fn changing(&mut self, at: &[usize], targets: &[Target]) -> Vec<Changing> {
        let tables = &self.scope().tables;
        let changing = |(at, target): (&usize, &Target)| {
            let (table, alias) = (target.rules.table.clone(), tables[*at].alias.clone());
            Changing { table, alias, is_view: tables[*at].within.is_some() }
        };
        at.iter().zip(targets).map(changing).collect()
    }

    pub fn update(&mut self, update: &tree::Update) -> Result<Update> {
        let commons = self.commons.len();
        self.with(update.with.as_ref())?;
        let bound = self.updated(update);
        self.commons.truncate(commons);
        bound
    }

    fn updated(&mut self, update: &tree::Update) -> Result<Update> {
        let tree::Update { with: _, hints: _, ignore, tables, assignments, selection, order_by, limit, returning } =
            update;
        if let Some((TableName { name, .. }, is_only)) = first_table(tables)
            && self.common_named(name).is_none()
        {
            self.refuse_system(name)?;
            // For a single table the UPDATE privilege is checked before the table's existence (MY-15).
            if is_only {
                let schema = self.schema_of(name)?;
                self.rights.need_some_columns(&schema, &name.name, Privileges::UPDATE)?;
            }
        }
        self.open_scope();
        (self.keyed, self.changing) = (true, "UPDATE");
        let source = self.from(tables);
        self.keyed = false;
        let source = source?;
        self.scope().clause = "field list";
        let mut sets: Vec<(usize, Vec<(usize, Expr)>)> = Vec::new();
        let mut options: Vec<(usize, Vec<(String, Expr)>)> = Vec::new();
        for Assignment { column, value } in assignments {
            let (at, column) = self.assigned_column(column)?;
            let through = self.through(at, Privileges::UPDATE, &[column])?;
            let (table, at) = (through.table, through.at);
            let column = through.columns[column].unwrap_or(column);
            options.push((at, through.options));
            let expr = match self.value_for(value, &table, column)? {
                Some(expr) => expr,
                None => self
                    .default_of(&table, &table.columns[column])?
                    .ok_or_else(|| error::NO_DEFAULT_FOR_FIELD.with(&[&table.columns[column].name]))?,
            };
            // DEFAULT, the only value allowed for a generated column, assigns nothing.
            let set = (column, expr);
            let set = if table.columns[column].generated.is_some() { Vec::new() } else { vec![set] };
            match sets.iter_mut().find(|(known, _)| *known == at) {
                Some((_, list)) => list.extend(set),
                None => sets.push((at, set)),
            }
        }
        let at: Vec<usize> = sets.iter().map(|(at, _)| *at).collect();
        let (selection, limit) = (selection.as_ref(), limit.as_ref());
        let node = self.changed_rows(&source, selection, order_by, limit, &at, LockWait::Choosy)?;
        let mut targets = Vec::new();
        for (at, sets) in sets {
            let doing = RowChangeKind::Update(sets.iter().map(|(column, _)| *column).collect());
            let mut target = self.changed(at, sets, doing)?;
            let known = options.iter().find(|(of, _)| *of == at);
            target.rules.options = known.map(|(_, options)| options.clone()).unwrap_or_default();
            targets.push(target);
        }
        let changing = self.changing(&at, &targets);
        self.close_scope();
        let returning = self.returning(returning.as_deref(), &changing)?;
        Ok(Update { node, targets, ignore: *ignore, at_once: false, returning })
    }

    fn assigned_column(&mut self, column: &ColumnName) -> Result<(usize, usize)> {
        let ColumnName { schema, table, name } = column;
        let scope = self.scope();
        let place = scope.find(schema.as_deref(), table.as_deref(), name)?;
        let place = place.ok_or_else(|| error::BAD_FIELD.with(&[&column.dotted(), &"field list"]))?;
        let at =
            scope.tables.iter().position(|table| (table.offset..table.offset + table.columns.len()).contains(&place));
        let at = at.unwrap_or_default();
        Ok((at, place - scope.tables[at].offset))
    }

    pub fn delete(&mut self, delete: &tree::Delete) -> Result<Delete> {
        let commons = self.commons.len();
        self.with(delete.with.as_ref())?;
        let bound = self.deleted(delete);
        self.commons.truncate(commons);
        bound
    }

    fn deleted(&mut self, delete: &tree::Delete) -> Result<Delete> {
        let tree::Delete { with: _, hints: _, ignore, targets: names, tables, selection, order_by, limit, returning } =
            delete;
        if let Some((TableName { name, .. }, true)) = first_table(tables)
            && names.is_empty()
            && self.common_named(name).is_none()
        {
            // As for UPDATE.
            let schema = self.schema_of(name)?;
            self.rights.need_table(&schema, &name.name, Privileges::DELETE)?;
        }
        self.open_scope();
        (self.keyed, self.changing) = (true, "DELETE");
        let source = self.from(tables);
        self.keyed = false;
        let source = source?;
        let mut at = Vec::new();
        if names.is_empty() {
            let first = self.scope().tables.iter().position(|table| table.within.is_none());
            at.push(first.unwrap_or(0));
        }
        for name in names {
            let found = self.scope().tables.iter().position(|table| {
                table.within.is_none()
                    && table.alias == name.name
                    && name.schema.as_ref().is_none_or(|schema| *schema == table.schema)
            });
            at.push(found.ok_or_else(|| error::UNKNOWN_TABLE.with(&[&name.name, &"MULTI DELETE"]))?);
        }
        for at in &mut at {
            *at = self.through(*at, Privileges::DELETE, &[])?.at;
        }
        let (selection, limit) = (selection.as_ref(), limit.as_ref());
        let node = self.changed_rows(&source, selection, order_by, limit, &at, LockWait::Patient)?;
        let mut targets = Vec::new();
        for at in &at {
            targets.push(self.changed(*at, Vec::new(), RowChangeKind::Delete)?);
        }
        let changing = self.changing(&at, &targets);
        self.close_scope();
        let returning = self.returning(returning.as_deref(), &changing)?;
        let referred = |target: &Target| {
            let table = &target.rules.table;
            targets_of(&targets)
                .filter(|other| other.id != table.id && other.refers_to(&table.schema, &table.name))
                .count()
        };
        let order: Vec<usize> = targets.iter().map(referred).collect();
        let mut numbered: Vec<(usize, Target)> = order.into_iter().zip(targets).collect();
        numbered.sort_by_key(|(referred, _)| *referred);
        let targets = numbered.into_iter().map(|(_, target)| target).collect();
        Ok(Delete { node, targets, ignore: *ignore, returning })
    }

    /// Binds an expression over one table's columns, such as a CHECK in DDL.
    pub fn over_table(&mut self, table: &Arc<Table>, expr: &tree::Expr) -> Result<Expr> {
        self.open_scope();
        self.add_table(table, &table.name, Columns::All);
        let bound = self.expr(expr);
        self.close_scope();
        bound
    }
}

/// Projects a query's rows for these columns; binary columns receive strings as the client sent them.
fn sent(bound: Bound, table: &Table, targets: &[usize]) -> Arc<Node> {
    let columns = bound.columns.iter().enumerate().map(|(at, column)| Expr::Column(at, column.ty.clone()));
    let takes_bytes = |at: usize| targets.get(at).is_some_and(|target| table.columns[*target].ty.kind().is_bytes());
    let exprs: Vec<Expr> =
        columns.clone().enumerate().map(|(at, expr)| if takes_bytes(at) { as_sent(expr) } else { expr }).collect();
    match columns.eq(exprs.iter().cloned()) {
        true => bound.node,
        false => Arc::new(Node::Project { input: bound.node, exprs }),
    }
}
