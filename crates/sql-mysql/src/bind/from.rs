//! FROM: tables and joins.

use std::sync::Arc;

use syntax::tree::{Derived, Ident, IndexHint, Join, JoinConstraint, JoinKind, Joined, TableName, TableRef};

use crate::bind::Bind;
use crate::bind::hints::allowed;
use crate::bind::scope::Common;
use crate::error::{self, Result, SqlError};
use crate::other_dialects::MAKER;
use crate::other_tables::refused;
use crate::parse::statement::Name;
use crate::rights::Privileges;
use crate::scalar::bind::compare;
use crate::types::{Column, ColumnFlags};
use query::catalog::table::Table;
use query::nodes::comparison::Comparison;
use query::nodes::expr::Expr;
use query::nodes::node::Node;
use query::nodes::relation::Columns;
use query::nodes::relation::{Origin, ScopeTable, Source};
use query::nodes::walk::conjuncts;

/// The maximum number of tables in a FROM, an UPDATE or a DELETE, as in MySQL.
pub const TABLES_MAX: usize = 61;

/// A join operand: its tables, and the places of its visible columns in order.
struct Operand {
    source: Source,
    columns: Vec<usize>,
}

impl Bind<'_> {
    pub fn from(&mut self, list: &[Joined]) -> Result<Source> {
        let Operand { source, columns } = self.listed(list)?;
        if !self.scope().coalesced.is_empty() {
            self.scope().star = Some(columns);
        }
        Ok(source)
    }

    /// Joins the items like a comma list.
    fn listed(&mut self, list: &[Joined]) -> Result<Operand> {
        let (mut items, mut columns) = (Vec::new(), Vec::new());
        for item in list {
            let operand = self.joined(item)?;
            items.push(operand.source);
            columns.extend(operand.columns);
        }
        let source = if items.len() == 1 { items.remove(0) } else { Source::Inner(items, Vec::new()) };
        Ok(Operand { source, columns })
    }

    fn joined(&mut self, item: &Joined) -> Result<Operand> {
        let first = self.scope().tables.len();
        let plain_only = self.plain_only;
        self.plain_only |= item.joins.iter().any(|join| matches!(join.kind, JoinKind::Left | JoinKind::Right));
        let joined = self.joined_from(item, first);
        self.plain_only = plain_only;
        joined
    }

    fn joined_from(&mut self, item: &Joined, start: usize) -> Result<Operand> {
        let Joined { first, joins } = item;
        let Operand { source: mut left, mut columns } = self.operand(first)?;
        for Join { kind, table, constraint } in joins {
            let middle = self.scope().tables.len();
            let Operand { source: right, columns: right_columns } = self.operand(table)?;
            if *kind == JoinKind::Right && self.scope().tables[middle..].iter().any(|table| !table.after.is_empty()) {
                let names = self.scope().tables[middle..].iter().find(|table| !table.after.is_empty());
                let name = names.map(|table| table.alias.clone()).unwrap_or_default();
                return Err(error::TF_FORBIDDEN_JOIN_TYPE.with(&[&name]));
            }
            if *kind == JoinKind::Straight {
                let before: Vec<usize> = (start..middle).collect();
                self.scope().tables[middle..].iter_mut().for_each(|table| table.after.extend(&before));
            }
            let on = self.constraint(constraint, &mut columns, right_columns, *kind == JoinKind::Right)?;
            let nullable = match kind {
                JoinKind::Left => middle..self.scope().tables.len(),
                JoinKind::Right => start..middle,
                JoinKind::Inner | JoinKind::Straight => 0..0,
            };
            self.scope().tables[nullable].iter_mut().for_each(|table| table.nullable = true);
            left = match kind {
                JoinKind::Left => Source::Left(Box::new(left), Box::new(right), on),
                JoinKind::Right => Source::Left(Box::new(right), Box::new(left), on),
                JoinKind::Inner | JoinKind::Straight => inner(left, right, on),
            };
        }
        Ok(Operand { source: left, columns })
    }

    /// Binds a join operand.
    fn operand(&mut self, table: &TableRef) -> Result<Operand> {
        if let TableRef::Nested(list) = table {
            return self.listed(list);
        }
        let first = self.scope().tables.len();
        let source = self.table_ref(table)?;
        let shown = self.scope().tables[first..].iter().filter(|table| table.within.is_none());
        let columns = shown.flat_map(|table| table.offset..table.offset + table.columns.len()).collect();
        Ok(Operand { source, columns })
    }

    /// Binds the condition of ON, USING or NATURAL. `columns` are the left operand's visible columns on entry, and the
    /// join's on return.
    ///
    /// The common columns come first, once, in the order of the first operand; then its other columns, then the second
    /// operand's. The first operand is the left one, but the right one in a RIGHT JOIN, and supplies the common
    /// columns' values.
    fn constraint(
        &mut self,
        constraint: &JoinConstraint,
        columns: &mut Vec<usize>,
        right: Vec<usize>,
        right_first: bool,
    ) -> Result<Vec<Expr>> {
        let mut on = Vec::new();
        let names = match constraint {
            JoinConstraint::None => {
                columns.extend(right);
                return Ok(on);
            }
            JoinConstraint::On(expr) => {
                columns.extend(right);
                let clause = std::mem::replace(&mut self.scope().clause, "on clause");
                let bound = self.condition(expr);
                self.scope().clause = clause;
                conjuncts(bound?, &mut on);
                return Ok(on);
            }
            JoinConstraint::Using(names) => names.iter().map(|name| name.value.clone()).collect::<Vec<String>>(),
            JoinConstraint::Natural => {
                let scope = self.scope();
                let names = columns.iter().filter_map(|place| scope.column_at(*place)).map(|column| &column.name);
                let in_right = |name: &&String| right.iter().any(|place| scope.is_named(*place, name));
                names.filter(in_right).cloned().collect()
            }
        };
        let mut common = Vec::new();
        for name in &names {
            let (left, right) = (self.common_column(name, columns)?, self.common_column(name, &right)?);
            let (stands, coalesced) = if right_first { (right, left) } else { (left, right) };
            if common.contains(&stands) {
                continue;
            }
            common.push(stands);
            let scope = self.scope();
            scope.coalesced.push(coalesced);
            let (a, b) = (scope.expr_at(left), scope.expr_at(right));
            for place in a.columns().into_iter().chain(b.columns()) {
                scope.used[place] = true;
            }
            on.push(compare(self.settings(), Comparison::Equal, a, b)?);
        }
        let left = std::mem::take(columns);
        let (first, second) = if right_first { (right, left) } else { (left, right) };
        let (shared, rest): (Vec<usize>, Vec<usize>) = first.into_iter().partition(|place| common.contains(place));
        let coalesced = &self.scope().coalesced;
        columns.extend(shared.into_iter().chain(rest));
        columns.extend(second.into_iter().filter(|place| !coalesced.contains(place)));
        Ok(on)
    }

    /// Returns the only column of that name among an operand's visible columns.
    fn common_column(&mut self, name: &str, columns: &[usize]) -> Result<usize> {
        let scope = self.scopes.last_mut().unwrap_or_else(|| unreachable!("a join is bound within a scope"));
        let mut found = columns.iter().copied().filter(|place| scope.is_named(*place, name));
        let Some(place) = found.next() else { return Err(error::BAD_FIELD.with(&[&name, &"from clause"])) };
        if found.next().is_some() {
            return Err(error::NON_UNIQ.with(&[&name, &"from clause"]));
        }
        scope.check_readable(&self.rights, place)?;
        Ok(place)
    }

    fn table_ref(&mut self, table: &TableRef) -> Result<Source> {
        match table {
            TableRef::Table(table) => self.named(table),
            TableRef::Derived(derived) => {
                let Derived { lateral, query, alias, columns: names } = &**derived;
                let alias = alias.as_ref().ok_or_else(|| error::DERIVED_MUST_HAVE_ALIAS.bare())?;
                if *lateral {
                    // LATERAL sees the tables before it, as a subquery sees outer blocks.
                    let (bound, outside) = self.deeper(|bind| bind.query(query))?;
                    let mut columns = bound.columns;
                    rename(&mut columns, names)?;
                    return self.beside(&alias.value, columns, bound.node, &outside);
                }
                // A derived table does not see its sibling tables.
                let hidden = self.scopes.pop();
                let bound = self.query(query);
                self.scopes.extend(hidden);
                let mut bound = bound?;
                rename(&mut bound.columns, names)?;
                self.derived(&alias.value, bound.columns, bound.node)
            }
            TableRef::JsonTable(table) => self.json_table(table),
            TableRef::Nested(list) => Ok(self.listed(list)?.source),
        }
    }

    /// Adds a table that is evaluated for each row of the tables before it if it refers to them. `outside` are its
    /// outer references.
    pub fn beside(
        &mut self,
        alias: &str,
        columns: Vec<Column>,
        node: Arc<Node>,
        outside: &[(usize, usize)],
    ) -> Result<Source> {
        let depth = self.scopes.len() - 1;
        let mut reads: Vec<usize> = Vec::new();
        for (_, place) in outside.iter().filter(|(at, _)| *at == depth) {
            let table = self
                .scope()
                .tables
                .iter()
                .position(|table| (table.offset..table.offset + table.columns.len()).contains(place));
            reads.extend(table);
        }
        let source = self.derived(alias, columns, node.clone())?;
        if let (Source::Table(at), false) = (&source, outside.is_empty()) {
            let table = &mut self.scope().tables[*at];
            table.origin = Origin::Lateral { node, depth };
            table.after = reads;
        }
        Ok(source)
    }

    fn hinted(&mut self, source: &Source, hints: &[IndexHint]) -> Result<()> {
        let Source::Table(at) = source else { return Ok(()) };
        let table = &mut self.scope().tables[*at];
        if let Origin::Base(base) = &table.origin {
            table.allowed = allowed(base, &table.alias, hints)?;
        }
        Ok(())
    }

    fn derived(&mut self, alias: &str, mut columns: Vec<Column>, node: Arc<Node>) -> Result<Source> {
        for column in &mut columns {
            *column = Column { table: alias.to_owned(), ..Column::computed(column.name.clone(), column.ty.clone()) };
        }
        self.add(ScopeTable {
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
        })
    }

    pub fn add(&mut self, table: ScopeTable) -> Result<Source> {
        let seen =
            self.scopes.last().into_iter().flat_map(|scope| &scope.tables).filter(|table| table.within.is_none());
        let taken = seen.into_iter().any(|other| other.alias == table.alias && other.schema == table.schema);
        if taken {
            return Err(error::NONUNIQ_TABLE.with(&[&table.alias]));
        }
        if self.scope().tables.len() >= TABLES_MAX {
            return Err(error::TOO_MANY_TABLES.with(&[&TABLES_MAX]));
        }
        Ok(Source::Table(self.scope().add(table)))
    }

    fn named(&mut self, table: &TableName) -> Result<Source> {
        let TableName { name, partitions, alias, hints, span } = table;
        if !partitions.is_empty() {
            return Err(SqlError::unsupported("PARTITION (...)"));
        }
        let shown = alias.as_ref().map_or(&name.name, |alias| &alias.value);
        let source = match self.common_named(name).cloned() {
            Some(common) => {
                self.height = self.height.max(common.size.0);
                self.weight += common.size.1;
                self.rise(0)?;
                self.derived(shown, common.columns, common.node)?
            }
            None => {
                self.record_table(name, *span);
                self.stored(name, shown)?
            }
        };
        self.hinted(&source, hints)?;
        Ok(source)
    }

    /// Returns the common table expression of that name.
    pub fn common_named(&self, name: &Name) -> Option<&Common> {
        let is_it = |common: &&Common| common.name.eq_ignore_ascii_case(&name.name);
        self.commons.iter().rev().filter(|_| name.schema.is_none()).find(is_it)
    }

    /// Binds a stored table or a view.
    fn stored(&mut self, name: &Name, shown: &str) -> Result<Source> {
        let schema = name.schema.as_deref().or(self.environment.database).unwrap_or("");
        if let Some(system) = crate::system::find(schema, &name.name) {
            // As for stored tables below.
            let keyed = self.keyed && system.is_keyspace();
            let others = Privileges::UPDATE | Privileges::DELETE;
            if !keyed || !self.rights.has_any_column(system.schema, system.name, others) {
                self.rights.need_some_columns(system.schema, system.name, Privileges::SELECT)?;
            }
            let names = system.columns.iter().map(|(name, _)| *name);
            let readable = self.rights.columns(system.schema, system.name, names, Privileges::SELECT);
            self.volatile = true;
            let has_transactions = system.schema != "performance_schema";
            let count = if has_transactions { &mut self.uses.reading } else { &mut self.uses.reading_unsafe };
            *count += 1;
            let columns = system.columns_as(shown);
            return self.add(ScopeTable {
                alias: shown.to_owned(),
                schema: system.schema.to_owned(),
                hidden: vec![false; columns.len()],
                origin: Origin::System(system),
                offset: 0,
                columns,
                key_at: keyed.then_some(0),
                lock: None,
                nullable: false,
                allowed: None,
                readable,
                within: None,
                after: Vec::new(),
            });
        }
        let schema = self.schema_of(name)?;
        // The tables to change are determined later; all others must be readable.
        let wanted = if self.keyed { Privileges::UPDATE | Privileges::DELETE } else { Privileges::NONE };
        if !self.rights.has_any_column(&schema, &name.name, wanted | Privileges::SELECT) {
            let command = if self.keyed { self.changing } else { "SELECT" };
            return Err(self.rights.no_table(command, &name.name));
        }
        if let Some(view) = self.definitions().view(&schema, &name.name).cloned() {
            if view.maker != MAKER {
                return Err(refused("view", &view.name));
            }
            return self.view(&view, shown);
        }
        let table = self.base_table(name)?;
        if self.open_views.is_empty() && !self.named.iter().any(|(id, alias)| *id == table.id && alias == shown) {
            self.named.push((table.id, shown.to_owned()));
        }
        self.uses.reading += 1;
        self.know(&table);
        let names = table.columns.iter().map(|column| &*column.name);
        let readable = self.rights.columns(&schema, &table.name, names, Privileges::SELECT);
        let keyed = self.keyed;
        let lock = self.environment.reads_lock;
        self.add(ScopeTable {
            columns: columns_of(&table, shown),
            alias: shown.to_owned(),
            schema: table.schema.clone(),
            hidden: table.columns.iter().map(|column| column.invisible || column.is_hidden()).collect(),
            offset: 0,
            key_at: keyed.then_some(0),
            lock,
            nullable: false,
            allowed: None,
            readable,
            within: None,
            after: Vec::new(),
            origin: Origin::Base(table),
        })
    }
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

/// Renames the columns, if names are given.
pub fn rename(columns: &mut [Column], names: &[Ident]) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    if names.len() != columns.len() {
        return Err(error::WRONG_NUMBER_OF_COLUMNS_IN_SELECT.bare());
    }
    for (column, name) in columns.iter_mut().zip(names) {
        column.name = name.value.clone();
    }
    Ok(())
}

/// Returns the result metadata of a table's columns.
pub fn columns_of(table: &Table, alias: &str) -> Vec<Column> {
    let is_first = |at: usize, unique: bool| {
        table
            .indexes
            .iter()
            .any(|index| index.is_key() == unique && index.parts[0].column == at && (!unique || index.parts.len() == 1))
    };
    let leads_several = |at: usize| {
        let mut unique = table.indexes.iter().filter(|index| index.is_key() && index.parts.len() > 1);
        unique.any(|index| index.parts[0].column == at)
    };
    let in_primary = |at: usize| table.primary.as_ref().is_some_and(|parts| parts.iter().any(|part| part.column == at));
    let columns = table.columns.iter().enumerate().map(|(at, column)| Column {
        schema: table.schema.clone(),
        table: alias.to_owned(),
        org_table: table.name.clone(),
        // No identifier can refer to the hidden column of a functional index.
        name: if column.is_hidden() { format!("\0{alias}\0{at}") } else { column.name.clone() },
        org_name: column.name.clone(),
        ty: column.ty.clone(),
        flags: ColumnFlags {
            primary_key: in_primary(at),
            unique_key: is_first(at, true) && !in_primary(at),
            multiple_key: is_first(at, false) || leads_several(at),
            auto_increment: column.auto_increment,
            no_default: column.default == query::catalog::table::Default::None
                && !column.ty.nullable
                && !column.auto_increment
                && column.generated.is_none(),
            on_update_now: column.on_update_now,
            default_now: matches!(column.default, query::catalog::table::Default::Now(_)),
            part_key: table.is_in_key(at),
        },
    });
    columns.collect()
}
