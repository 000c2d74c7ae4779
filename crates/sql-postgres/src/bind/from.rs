//! FROM: tables and joins, and the names by which their columns are reached.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use query::catalog::Snapshot;
use query::catalog::object_id::ObjectId;
use query::catalog::row_type::numbers;
use query::catalog::schema_name::SchemaName;
use query::catalog::table::Table;
use query::nodes::expr::{Case, Expr};
use query::nodes::keyspace_table;
use query::nodes::node::Node;
use query::nodes::relation::{Columns, Origin, ScopeTable, Source};
use query::nodes::system_table::SystemTable;
use query::nodes::walk::conjuncts;
use query::types::{Column, ColumnFlags};
use syntax::postgres::tree::{
    Alias, FromItem, Ident, Join, JoinKind, JoinQual, JoinedTable, Location, Operator, RangeSubselect, RangeVar,
    Relation, TableRef,
};

use crate::bind::Binder;
use crate::bind::coerce::call_of;
use crate::bind::expression::exact;
use crate::bind::merge;
use crate::bind::scope::{BoundQuery, Clause, NameColumn, NameItem, OutputColumn, Presence};
use crate::bind::typing::{Operand, settled, typmod_of_expr};
use crate::define::names::{relation_path, schema_in, stored_in};
use crate::error::{PgError, Result, state};
use crate::system::keyspace;
use crate::types::foreign;
use crate::types::oid::Oid;
use crate::types::registry::column_type;

/// The most tables of a FROM. The planner's sets of tables have 64 bits.
pub const TABLES_MAX: usize = 61;

/// The operands of a join: the tables, and the names that reach them.
pub struct Operands {
    pub source: Source,
    pub names: Vec<NameItem>,
}

/// A relation that a name leads to.
pub enum FoundRelation {
    Table(Arc<Table>),
    View(Arc<query::catalog::view::View>),
    System(&'static SystemTable),
    Sequence(Arc<query::catalog::sequence::Sequence>),
}

impl FoundRelation {
    /// Returns the number of a temporary relation.
    fn temporary_id(&self) -> Option<ObjectId> {
        match self {
            FoundRelation::Table(table) => table.temporary.then_some(table.id),
            FoundRelation::View(view) => view.temporary.then_some(view.id),
            FoundRelation::Sequence(sequence) => sequence.temporary.then_some(sequence.id),
            FoundRelation::System(_) => None,
        }
    }
}

impl Binder<'_> {
    /// Binds a FROM list. Its names are those of the scope from then on.
    pub fn from(&mut self, list: &[FromItem]) -> Result<Source> {
        let (mut items, mut names) = (Vec::new(), Vec::new());
        for item in list {
            let operands = self.join_tree(item)?;
            self.check_aliases(&names, &operands.names)?;
            items.push(operands.source);
            names.extend(operands.names);
            // LATERAL items see those before them.
            self.scope().names = names.clone();
        }
        self.scope().names = names;
        Ok(if items.len() == 1 { items.remove(0) } else { Source::Inner(items, Vec::new()) })
    }

    fn check_aliases(&self, known: &[NameItem], added: &[NameItem]) -> Result<()> {
        for item in added.iter().filter(|item| item.is_relation_visible) {
            let is_same = |other: &&NameItem| {
                let is_of_other_schema = other.schema.is_some() && item.schema.is_some() && other.schema != item.schema;
                other.is_relation_visible && other.alias == item.alias && !is_of_other_schema
            };
            if known.iter().any(|other| is_same(&other)) {
                let text = format!("table name \"{}\" specified more than once", item.alias);
                return Err(PgError::new(state::DUPLICATE_ALIAS, text));
            }
        }
        Ok(())
    }

    fn join_tree(&mut self, item: &FromItem) -> Result<Operands> {
        let FromItem { first, joins } = item;
        let outside = self.scope().names.clone();
        if let Some(last) = joins.iter().rposition(|join| join.kind == JoinKind::Full) {
            let left = self.full_join(first, &joins[..=last])?;
            return self.joined(left, &joins[last + 1..], &outside);
        }
        let left = self.table_ref(first)?;
        self.joined(left, joins, &outside)
    }

    /// Joins further tables to the left operand. `outside` are the names before this item of FROM.
    pub fn joined(&mut self, mut left: Operands, joins: &[Join], outside: &[NameItem]) -> Result<Operands> {
        self.check_stack()?;
        for Join { kind, right, qual, at } in joins {
            self.rise(1)?;
            let start = self.scope().tables.len();
            self.scope().names = outside.iter().chain(&left.names).cloned().collect();
            let bound = self.join_tree(right)?;
            self.scope().names = outside.to_vec();
            self.check_aliases(&left.names, &bound.names)?;
            let is_lateral = self.scope().tables[start..].iter().any(|table| !table.after.is_empty());
            if *kind == JoinKind::Right && is_lateral {
                let text = "invalid reference to FROM-clause entry: the combining JOIN type must be INNER or LEFT for a LATERAL reference";
                return self.fail(state::INVALID_COLUMN_REFERENCE, text, at.0);
            }
            left = self.join(left, bound, *kind, qual, outside)?;
        }
        Ok(left)
    }

    fn join(
        &mut self,
        mut left: Operands,
        mut right: Operands,
        kind: JoinKind,
        qual: &JoinQual,
        outside: &[NameItem],
    ) -> Result<Operands> {
        let (of_left, of_right) = (tables_of(&left.source), tables_of(&right.source));
        let mut on = Vec::new();
        let using = match qual {
            JoinQual::Cross => None,
            JoinQual::On(condition) => {
                self.scope().names = left.names.iter().chain(&right.names).cloned().collect();
                let clause = self.set_clause(Clause::On);
                let bound = self.condition(condition, "JOIN/ON");
                self.set_clause(clause);
                self.scope().names = outside.to_vec();
                conjuncts(bound?, &mut on);
                None
            }
            JoinQual::Using { columns, alias } => Some((columns.clone(), alias.as_ref())),
            JoinQual::Natural => Some((common_names(&left.names, &right.names), None)),
        };
        let nullable = match kind {
            JoinKind::Left => of_right,
            JoinKind::Right => of_left,
            JoinKind::Inner | JoinKind::Full => Vec::new(),
        };
        for at in nullable {
            self.scope().tables[at].nullable = true;
        }
        let names = match using {
            None => {
                make_nullable(&mut left.names, &mut right.names, kind);
                left.names.into_iter().chain(right.names).collect()
            }
            Some((columns, alias)) => {
                let merged = self.merged(&left.names, &right.names, &columns, kind, &mut on)?;
                make_nullable(&mut left.names, &mut right.names, kind);
                self.merged_names(left.names, right.names, merged, alias)
            }
        };
        let source = match kind {
            JoinKind::Left => Source::Left(Box::new(left.source), Box::new(right.source), on),
            JoinKind::Right => Source::Left(Box::new(right.source), Box::new(left.source), on),
            JoinKind::Inner => inner(left.source, right.source, on),
            // `full_join` makes its two parts of this.
            JoinKind::Full => Source::Left(Box::new(left.source), Box::new(right.source), on),
        };
        Ok(Operands { source, names })
    }

    /// Compares the columns of USING and returns those that stand for both.
    fn merged(
        &mut self,
        left: &[NameItem],
        right: &[NameItem],
        columns: &[Ident],
        kind: JoinKind,
        on: &mut Vec<Expr>,
    ) -> Result<Vec<NameColumn>> {
        let mut merged: Vec<NameColumn> = Vec::new();
        for name in columns {
            if merged.iter().any(|known| known.name == name.value) {
                let text = format!("column name \"{}\" appears more than once in USING clause", name.value);
                return Err(PgError::new(state::DUPLICATE_COLUMN, text));
            }
            let (a, b) = (self.side_column(left, name, "left")?, self.side_column(right, name, "right")?);
            let at = name.at.0;
            self.note_selected(a.origin);
            self.note_selected(b.origin);
            self.scope().note_use(&a.expr);
            self.scope().note_use(&b.expr);
            let (left, right) = (Operand { expr: a.expr.clone(), at }, Operand { expr: b.expr.clone(), at });
            let op = Operator::plain("=", Location(at));
            on.push(self.make_operator(&op, left.clone(), right.clone())?.expr);
            let ty = self.common_type(&[&left, &right], "JOIN/USING")?;
            let mut sides = self.coerce_to_common(vec![left, right], ty, "JOIN/USING")?;
            let second = sides.swap_remove(1);
            let first = sides.swap_remove(0);
            let (expr, origin) = match kind {
                JoinKind::Inner | JoinKind::Left => (first, a.origin),
                JoinKind::Right => (second, b.origin),
                JoinKind::Full => (coalesced(first, second, ty), None),
            };
            let origin = origin.filter(|_| matches!(expr, Expr::Column(..)));
            merged.push(NameColumn { name: name.value.clone(), expr, origin, is_hidden: false, is_unexpanded: false });
        }
        Ok(merged)
    }

    fn side_column(&self, items: &[NameItem], name: &Ident, side: &str) -> Result<NameColumn> {
        let visible = items.iter().filter(|item| item.are_columns_visible).flat_map(|item| item.columns.iter());
        let mut found = visible.filter(|column| !column.is_hidden && column.name == name.value);
        let Some(column) = found.next() else {
            let text = format!("column \"{}\" specified in USING clause does not exist in {side} table", name.value);
            return Err(PgError::new(state::UNDEFINED_COLUMN, text));
        };
        if found.next().is_some() {
            let text = format!("common column name \"{}\" appears more than once in {side} table", name.value);
            return Err(PgError::new(state::AMBIGUOUS_COLUMN, text));
        }
        Ok(column.clone())
    }

    /// Returns the names of a join by USING: the common columns first, once; then the others of both sides.
    fn merged_names(
        &self,
        left: Vec<NameItem>,
        right: Vec<NameItem>,
        merged: Vec<NameColumn>,
        alias: Option<&Ident>,
    ) -> Vec<NameItem> {
        let is_merged = |column: &&NameColumn| merged.iter().any(|known| known.name == column.name);
        let sides = left.iter().chain(&right).filter(|item| item.are_columns_visible);
        let others = sides.flat_map(|item| item.columns.iter()).filter(|column| !is_merged(column)).cloned();
        let columns: Vec<NameColumn> = merged.iter().cloned().chain(others).collect();
        let mut names: Vec<NameItem> = left.into_iter().chain(right).collect();
        names.iter_mut().for_each(|item| item.are_columns_visible = false);
        names.push(NameItem {
            alias: String::new(),
            schema: None,
            table_name: None,
            columns: columns.into(),
            is_relation_visible: false,
            are_columns_visible: true,
            is_scalar: false,
            composite: None,
            presence: Presence::Always,
        });
        if let Some(alias) = alias {
            names.push(NameItem {
                alias: alias.value.clone(),
                schema: None,
                table_name: None,
                columns: merged.into(),
                is_relation_visible: true,
                are_columns_visible: false,
                is_scalar: false,
                composite: None,
                presence: Presence::Always,
            });
        }
        names
    }

    pub fn table_ref(&mut self, table: &TableRef) -> Result<Operands> {
        match table {
            TableRef::Relation(relation) => {
                let Relation { name, alias, sample } = &**relation;
                let operands = self.relation(name, alias.as_ref())?;
                match sample {
                    Some(sample) => self.sampled(operands, sample, name.at.0),
                    None => Ok(operands),
                }
            }
            TableRef::Subselect(subselect) => self.subselect(subselect),
            TableRef::Function(function) => self.range_function(function),
            TableRef::Joined(joined) => {
                let JoinedTable { item, alias } = &**joined;
                let Operands { source, names } = self.join_tree(item)?;
                let names = match alias {
                    Some(alias) => vec![self.join_alias(names, alias)?],
                    None => names,
                };
                Ok(Operands { source, names })
            }
        }
    }

    /// Returns the one name of a join with an alias.
    fn join_alias(&self, names: Vec<NameItem>, alias: &Alias) -> Result<NameItem> {
        let visible = names.into_iter().filter(|item| item.are_columns_visible);
        let shown = |column: &NameColumn| !column.is_hidden;
        let columns: Vec<NameColumn> = visible
            .flat_map(|item| item.columns.iter().filter(|column| shown(column)).cloned().collect::<Vec<_>>())
            .collect();
        let mut item = NameItem {
            alias: alias.name.value.clone(),
            schema: None,
            table_name: None,
            columns: columns.into(),
            is_relation_visible: true,
            are_columns_visible: true,
            is_scalar: false,
            composite: None,
            presence: Presence::Always,
        };
        self.rename(&mut item, &alias.columns)?;
        Ok(item)
    }

    /// Gives columns the names of an alias.
    pub fn rename(&self, item: &mut NameItem, names: &[Ident]) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let mut columns: Vec<NameColumn> = item.columns.to_vec();
        let given = columns.iter().filter(|column| !column.is_hidden).count();
        if names.len() > given {
            let text =
                format!("table \"{}\" has {given} columns available but {} columns specified", item.alias, names.len());
            return Err(PgError::new(state::INVALID_COLUMN_REFERENCE, text));
        }
        for (column, name) in columns.iter_mut().filter(|column| !column.is_hidden).zip(names) {
            column.name = name.value.clone();
        }
        item.columns = columns.into();
        Ok(())
    }

    fn subselect(&mut self, subselect: &RangeSubselect) -> Result<Operands> {
        let RangeSubselect { lateral, query, alias, at: _ } = subselect;
        let shown = alias.as_ref().map_or("", |alias| alias.name.value.as_str());
        let names = alias.as_ref().map_or(&[][..], |alias| &alias.columns);
        if *lateral {
            let (bound, outside) = self.deeper(|binder| binder.query(query))?;
            return self.lateral(shown, bound.columns, names, bound.node, &outside);
        }
        if let Some(select) = merge::candidate(query)
            && let Some(merged) = self.merged_subselect(select, shown, names)?
        {
            return Ok(merged);
        }
        let bound = self.apart(|binder| binder.query(query))?;
        self.derived(shown, bound.columns, names, bound.node)
    }

    /// Binds a query that does not see the tables beside it.
    pub fn apart(&mut self, bind: impl FnOnce(&mut Self) -> Result<BoundQuery>) -> Result<BoundQuery> {
        let hidden = self.scopes.pop();
        let mut unreachable = hidden.as_ref().map_or_else(Vec::new, |scope| scope.names.clone());
        unreachable.append(&mut self.unreachable.clone());
        let before = std::mem::replace(&mut self.unreachable, unreachable);
        let bound = bind(self);
        self.unreachable = before;
        self.scopes.extend(hidden);
        bound
    }

    /// Adds a table that is evaluated for each row of the tables before it if it refers to them. `outside` are its outer references.
    pub fn lateral(
        &mut self,
        alias: &str,
        columns: Vec<OutputColumn>,
        names: &[Ident],
        node: Arc<Node>,
        outside: &[(usize, usize)],
    ) -> Result<Operands> {
        let depth = self.scopes.len() - 1;
        let scope = self.scope();
        let reads = outside.iter().filter(|(at, _)| *at == depth).filter_map(|(_, place)| scope.table_of(*place));
        let mut reads: Vec<usize> = reads.collect();
        reads.dedup();
        let operands = self.derived(alias, columns, names, node.clone())?;
        if let (Source::Table(at), false) = (&operands.source, outside.is_empty()) {
            let table = &mut self.scope().tables[*at];
            table.origin = Origin::Lateral { node, depth };
            table.after = reads;
        }
        Ok(operands)
    }

    /// Adds a derived table.
    pub fn derived(
        &mut self,
        alias: &str,
        columns: Vec<OutputColumn>,
        names: &[Ident],
        node: Arc<Node>,
    ) -> Result<Operands> {
        let (origins, columns): (Vec<_>, Vec<Column>) = columns
            .into_iter()
            .map(|OutputColumn { column, origin, at: _ }| {
                (origin, Column { table: alias.to_owned(), ..Column::computed(column.name, settled(&column.ty)) })
            })
            .unzip();
        let table = ScopeTable {
            alias: alias.to_owned(),
            schema: String::new(),
            hidden: vec![false; columns.len()],
            origin: Origin::Derived { node },
            offset: 0,
            columns,
            key_at: None,
            lock: None,
            nullable: false,
            allowed: None,
            readable: Columns::All,
            within: None,
            after: Vec::new(),
        };
        let at = self.add(table)?;
        let table = &self.scope().tables[at];
        let place = |nth: usize, column: &Column| Expr::Column(table.offset + nth, column.ty.clone());
        let columns = table.columns.iter().zip(origins).enumerate().map(|(nth, (column, origin))| NameColumn {
            name: column.name.clone(),
            expr: place(nth, column),
            origin,
            is_hidden: false,
            is_unexpanded: false,
        });
        let columns: Vec<NameColumn> = columns.collect();
        let mut item = NameItem {
            alias: alias.to_owned(),
            schema: None,
            table_name: None,
            columns: columns.into(),
            is_relation_visible: !alias.is_empty(),
            are_columns_visible: true,
            is_scalar: false,
            composite: None,
            presence: Presence::Always,
        };
        self.rename(&mut item, names)?;
        Ok(Operands { source: Source::Table(at), names: vec![item] })
    }

    fn add(&mut self, table: ScopeTable) -> Result<usize> {
        if self.scope().tables.len() >= TABLES_MAX {
            let text = format!("a query block has more than {TABLES_MAX} tables");
            return Err(PgError::new(state::PROGRAM_LIMIT_EXCEEDED, text));
        }
        Ok(self.scope().add(table))
    }

    fn relation(&mut self, name: &RangeVar, alias: Option<&Alias>) -> Result<Operands> {
        let shown = alias.map_or(name.name.as_str(), |alias| alias.name.value.as_str()).to_owned();
        let columns = alias.map_or(&[][..], |alias| &alias.columns);
        if name.schema.is_none()
            && let Some(common) = self.common_named(name)?
        {
            self.height = self.height.max(common.size.0);
            self.weight += common.size.1;
            self.rise(0)?;
            let own = common.columns.len() - common.added;
            if common.added == 0 {
                return self.derived(&shown, common.columns, columns, common.node);
            }
            // An alias names none of the columns that SEARCH and CYCLE add.
            let mut operands = self.derived(&shown, common.columns, &[], common.node)?;
            let item = &mut operands.names[0];
            let added = item.columns[own..].to_vec();
            item.columns = item.columns[..own].into();
            self.rename(item, columns)?;
            let is_unexpanded = common.level != self.query_level;
            let added = added.into_iter().map(|column| NameColumn { is_unexpanded, ..column });
            item.columns = item.columns.iter().cloned().chain(added).collect();
            return Ok(operands);
        }
        match self.find_relation(name)? {
            FoundRelation::Table(table) => {
                let need = self.need_of_table(&table);
                self.need_select(need);
                self.stored(&table, &shown, alias)
            }
            FoundRelation::View(view) => {
                let need = self.need_of_view(&view);
                self.need_select(need);
                let bound = self.view(&view)?;
                let mut operands = self.derived(&shown, bound.columns, columns, bound.node)?;
                operands.names[0].table_name = Some(view.name.clone());
                operands.names[0].composite = numbers(view.id).map(|[rows, _]| rows.0);
                operands.names[0].schema = schema_shown(&view.schema).filter(|_| alias.is_none());
                Ok(operands)
            }
            FoundRelation::System(system) => self.system(system, &shown, columns),
            FoundRelation::Sequence(sequence) => {
                self.need_select_of_sequence(&sequence);
                self.sequence_row(&sequence, &shown, columns)
            }
        }
    }

    /// Finds a table or view by its name in the schemas of `search_path`.
    pub fn find_relation(&mut self, name: &RangeVar) -> Result<FoundRelation> {
        let RangeVar { catalog, schema, name: bare, only: _, at } = name;
        if let Some(catalog) = catalog {
            self.check_database(catalog, &[name.dotted()], at.0)?;
        }
        let schemas: Vec<&str> = match schema {
            Some(schema) => {
                self.check_schema_usage(schema).map_err(|error| self.error(error, at.0))?;
                vec![schema]
            }
            None => relation_path(self.definitions(), &self.search_path).collect(),
        };
        let found = schemas.into_iter().find_map(|schema| self.find_in(schema, bare));
        if let Some(found) = found {
            if self.open_views.is_empty() {
                self.temporaries.extend(found.temporary_id());
            }
            self.note_relation(&found, at.0, 1 + [catalog, schema].into_iter().flatten().count());
            return Ok(match found {
                FoundRelation::Table(table) => FoundRelation::Table(self.as_seen(table)),
                found => found,
            });
        }
        self.fail(state::UNDEFINED_TABLE, format!("relation \"{}\" does not exist", name.dotted()), at.0)
    }

    /// Fails if the session may not look names up in a schema. The names in a view were looked up when it was made.
    fn check_schema_usage(&self, schema: &str) -> Result<()> {
        match stored_in(&self.environment.snapshot, self.environment.database, schema) {
            Some(stored) if self.open_views.is_empty() => {
                self.environment.session.check_schema(self.environment, &stored)
            }
            _ => Ok(()),
        }
    }

    /// Returns the definition of a table for the snapshot of the session's transaction.
    fn as_seen(&mut self, table: Arc<Table>) -> Arc<Table> {
        let Some(seen) = self.environment.session.seen_maps() else { return table };
        let (table, is_own) = Table::seen_by(&table, seen);
        self.volatile |= is_own;
        table
    }

    fn find_in(&self, schema: &str, name: &str) -> Option<FoundRelation> {
        if let Some(system) = self.environment.session.system_table(schema, name) {
            return Some(match system.is_keyspace() {
                true => FoundRelation::Table(keyspace_table::table(system).clone()),
                false => FoundRelation::System(system),
            });
        }
        let found = schema_in(self.definitions(), self.environment.database, schema)?;
        if let Some(view) = found.views.get(name) {
            return Some(FoundRelation::View(view.clone()));
        }
        if let Some(sequence) = found.sequences.get(name) {
            return Some(FoundRelation::Sequence(sequence.clone()));
        }
        found.tables.get(name).map(|table| FoundRelation::Table(table.clone()))
    }

    /// Looks the names of relations up as a view does.
    pub(crate) fn see_as(&mut self, view: &query::catalog::view::View) {
        self.view_definitions = Some(self.environment.snapshot.seen_by_view(view));
    }

    /// Returns the definitions in which the names of relations are looked up. A view sees no temporary object of the session that reads it, but for those that a temporary view was made over.
    fn definitions(&self) -> &Arc<Snapshot> {
        self.view_definitions.as_ref().unwrap_or(&self.environment.snapshot)
    }

    fn system(&mut self, system: &'static SystemTable, shown: &str, names: &[Ident]) -> Result<Operands> {
        // Its rows are of this moment.
        self.volatile = true;
        self.need_system(system);
        let columns = system.columns_as(shown);
        let table = ScopeTable {
            alias: shown.to_owned(),
            schema: system.schema.to_owned(),
            hidden: vec![false; columns.len()],
            origin: Origin::System(system),
            offset: 0,
            columns,
            key_at: None,
            lock: None,
            nullable: false,
            allowed: None,
            readable: Columns::All,
            within: None,
            after: Vec::new(),
        };
        let at = self.add(table)?;
        let table = &self.scope().tables[at];
        let columns = table.columns.iter().enumerate().map(|(nth, column)| NameColumn {
            name: column.name.clone(),
            expr: Expr::Column(table.offset + nth, column.ty.clone()),
            origin: None,
            is_hidden: false,
            is_unexpanded: false,
        });
        let columns: Vec<NameColumn> = columns.collect();
        let mut item = NameItem {
            alias: shown.to_owned(),
            schema: Some(system.schema.to_owned()),
            table_name: Some(system.name.to_owned()),
            columns: columns.into(),
            is_relation_visible: true,
            are_columns_visible: true,
            is_scalar: false,
            composite: None,
            presence: Presence::Always,
        };
        self.rename(&mut item, names)?;
        Ok(Operands { source: Source::Table(at), names: vec![item] })
    }

    /// Adds a stored table.
    pub fn stored(&mut self, table: &Arc<Table>, shown: &str, alias: Option<&Alias>) -> Result<Operands> {
        self.use_table(table, shown)?;
        self.know(table);
        self.reads.tables.push(table.id);
        let keyed = self.keyed;
        let lock = self.environment.reads_lock;
        let at = self.add(ScopeTable {
            columns: columns_of(table, shown),
            alias: shown.to_owned(),
            schema: table.schema.clone(),
            hidden: table.columns.iter().map(|column| column.is_hidden()).collect(),
            offset: 0,
            key_at: keyed.then_some(0),
            lock,
            nullable: false,
            allowed: None,
            readable: Columns::All,
            within: None,
            after: Vec::new(),
            origin: origin_of(table),
        })?;
        let offset = self.scope().tables[at].offset;
        let mut item = names_of(table, shown, offset);
        item.schema = item.schema.filter(|_| alias.is_none());
        self.rename(&mut item, alias.map_or(&[], |alias| &alias.columns))?;
        Ok(Operands { source: Source::Table(at), names: vec![item] })
    }

    /// Adds a table to those of the statement.
    pub fn use_table(&mut self, table: &Arc<Table>, shown: &str) -> Result<()> {
        if self.open_views.is_empty() && !self.named.iter().any(|(id, alias)| *id == table.id && alias == shown) {
            self.named.push((table.id, shown.to_owned()));
        }
        if table.is_keyspace() {
            // Its definition never changes, and its rows are of this moment.
            self.volatile = true;
        } else if !self.tables.iter().any(|known| known.id == table.id) {
            self.formulas(table)?;
            self.tables.push(table.clone());
        }
        Ok(())
    }

    /// Ensures that the table's statistics are available to the planner.
    pub fn know(&mut self, table: &Arc<Table>) {
        if table.is_keyspace() || self.known.iter().any(|(known, _)| known.id == table.id) {
            return;
        }
        self.environment.session.know(table);
        self.known.push((table.clone(), table.live.age.load(Ordering::Acquire)));
    }
}

/// Returns the name of a stored schema in its database.
pub fn schema_shown(stored: &str) -> Option<String> {
    SchemaName::of_stored(stored).map(|name| name.schema.to_owned())
}

/// Returns where the rows of a table are.
pub fn origin_of(table: &Arc<Table>) -> Origin {
    match keyspace::system_table(table) {
        Some(system) => Origin::System(system),
        None => Origin::Base(table.clone()),
    }
}

/// Returns the table whose rows a statement can lock and change.
pub fn base_of(origin: &Origin) -> Option<&Arc<Table>> {
    match origin {
        Origin::Base(table) => Some(table),
        Origin::System(system) if system.is_keyspace() => Some(keyspace_table::table(system)),
        _ => None,
    }
}

/// Returns the names of a stored table's columns, at this place of the wide row.
pub fn names_of(table: &Table, shown: &str, offset: usize) -> NameItem {
    let columns = table.columns.iter().enumerate().map(|(at, column)| NameColumn {
        name: column.name.clone(),
        expr: column_expr(table, at, offset),
        origin: Some((table.id, at as u16 + 1)),
        is_hidden: column.is_hidden(),
        is_unexpanded: false,
    });
    let columns: Vec<NameColumn> = columns.collect();
    NameItem {
        alias: shown.to_owned(),
        schema: schema_shown(&table.schema),
        table_name: Some(table.name.clone()),
        columns: columns.into(),
        is_relation_visible: true,
        are_columns_visible: true,
        is_scalar: false,
        composite: numbers(table.id).map(|[rows, _]| rows.0),
        presence: Presence::Always,
    }
}

/// Returns a column in the form of its PostgreSQL type.
fn column_expr(table: &Table, at: usize, offset: usize) -> Expr {
    let ty = &table.columns[at].ty;
    let column = Expr::Column(offset + at, ty.clone());
    let is_own = !foreign::is_foreign(ty) && ty.id.0 >= 16;
    if is_own {
        return column;
    }
    match foreign::type_of(ty) {
        Some(foreign::ForeignType { oid, typmod, conversion: Some(conversion) }) => {
            call_of(conversion, vec![column], oid, typmod)
        }
        Some(foreign::ForeignType { oid, typmod, conversion: None }) => {
            let to = column_type(oid, typmod, ty.nullable);
            Expr::Column(offset + at, query::types::Type { collation: ty.collation, ..to })
        }
        None => column,
    }
}

/// Returns the description of a table's columns.
pub fn columns_of(table: &Table, alias: &str) -> Vec<Column> {
    let columns = table.columns.iter().map(|column| Column {
        schema: table.schema.clone(),
        table: alias.to_owned(),
        org_table: table.name.clone(),
        name: column.name.clone(),
        org_name: column.name.clone(),
        ty: column.ty.clone(),
        flags: ColumnFlags::default(),
    });
    columns.collect()
}

fn inner(left: Source, right: Source, mut on: Vec<Expr>) -> Source {
    // Nested inner joins are flattened, so that the planner can choose the order.
    let mut items = Vec::new();
    for side in [left, right] {
        match side {
            Source::Inner(more, conditions) => {
                items.extend(more);
                on.extend(conditions);
            }
            side => items.push(side),
        }
    }
    Source::Inner(items, on)
}

/// Returns the numbers of the tables of a source.
fn tables_of(source: &Source) -> Vec<usize> {
    match source {
        Source::Table(at) => vec![*at],
        Source::Inner(items, _) => items.iter().flat_map(tables_of).collect(),
        Source::Left(left, right, _) => tables_of(left).into_iter().chain(tables_of(right)).collect(),
        Source::Semi(inner, ..) => tables_of(inner),
    }
}

/// Returns the names of columns that both sides have, in the order of the left side.
fn common_names(left: &[NameItem], right: &[NameItem]) -> Vec<Ident> {
    let visible = |items: &[NameItem]| -> Vec<String> {
        let items = items.iter().filter(|item| item.are_columns_visible);
        let columns = items.flat_map(|item| item.columns.iter()).filter(|column| !column.is_hidden);
        columns.map(|column| column.name.clone()).collect()
    };
    let right = visible(right);
    visible(left).into_iter().filter(|name| right.contains(name)).map(Ident::new).collect()
}

/// Marks the columns of the side that an outer join fills with NULLs.
fn make_nullable(left: &mut [NameItem], right: &mut [NameItem], kind: JoinKind) {
    let mark = |items: &mut [NameItem]| {
        for item in items {
            if item.presence == Presence::Always {
                let is_never_null = |column: &NameColumn| matches!(&column.expr, Expr::Column(_, ty) if !ty.nullable);
                item.presence = item.columns.iter().position(is_never_null).map_or(Presence::OfAny, Presence::OfColumn);
            }
            let mut columns: Vec<NameColumn> = item.columns.to_vec();
            for column in &mut columns {
                if let Expr::Column(_, ty) = &mut column.expr {
                    ty.nullable = true;
                }
            }
            item.columns = columns.into();
        }
    };
    match kind {
        JoinKind::Left => mark(right),
        JoinKind::Right => mark(left),
        JoinKind::Inner => {}
        JoinKind::Full => {
            mark(left);
            mark(right);
        }
    }
}

/// Returns the column that stands for both sides of a full join.
pub fn coalesced(left: Expr, right: Expr, ty: Oid) -> Expr {
    let typmod = if typmod_of_expr(&left) == typmod_of_expr(&right) { typmod_of_expr(&left) } else { -1 };
    let is_null = Expr::IsNull(Box::new(left.clone()));
    let case = Case { arms: vec![(is_null, right)], otherwise: left, ty: column_type(ty, typmod, true) };
    exact(Expr::Case(Box::new(case)))
}
