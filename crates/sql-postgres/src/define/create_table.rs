//! CREATE TABLE.

use std::sync::{Arc, OnceLock};

use datum::row::Layout;
use query::catalog::access::AccessKey;
use query::catalog::foreign_key::Deferral;
use query::catalog::object_id::UNNUMBERED;
use query::catalog::sequence::Sequence;
use query::catalog::table::{Check, Default, Index, Part, Table};
use query::catalog::table_lock::TableMode;
use query::catalog::table_state::TableState;
use query::catalog::{Snapshot, Writing};
use query::key_form::KeyForm;
use query::session::definitions::RelatedTables;
use query::session::temporary::AtCommit;
use syntax::postgres::tree::{
    ColumnDef, Constraint, ConstraintKind, CreateStmt, DefArg, DefElem, Ident, IndexConstraint, OnCommit, TableElement,
};

use crate::bind::{self, TableExpression};
use crate::define::column::{WantedExpression, WantedSequence};
use crate::define::index::{UNMADE, ascending, unmade};
use crate::define::like::LikedIndexes;
use crate::define::names::{Relation, primary_name, schema_of};
use crate::define::object_name::{constraint_name, has_constraint, index_name, relation_is_taken, sequence_name};
use crate::define::owner::NewObject;
use crate::define::source::within_parentheses;
use crate::error::{PgError, Result, state};
use crate::session::{Session, quoted};

/// The most columns of a table, as in PostgreSQL.
const COLUMNS_MAX: usize = 1600;

/// The needs of a new table beside its definition.
#[derive(Default)]
pub(super) struct Extras<'s> {
    pub sequences: Vec<WantedSequence>,
    pub expressions: Vec<WantedExpression<'s>>,
    /// Constraints, each with the column that it is declared with.
    pub constraints: Vec<(&'s Constraint, Option<usize>)>,
    /// Indexes of other tables.
    pub indexes: Vec<LikedIndexes>,
}

impl Session {
    pub(super) fn create_table(&mut self, create: &CreateStmt, text: &Arc<str>) -> Result<()> {
        let CreateStmt {
            relation,
            persistence,
            if_not_exists,
            elements,
            of_type,
            inherits,
            partition_of,
            partition_by,
            access_method,
            options,
            on_commit,
            tablespace,
        } = create;
        if of_type.is_some() {
            return Err(PgError::unsupported("a typed table"));
        }
        if !inherits.is_empty() {
            return Err(PgError::unsupported("INHERITS"));
        }
        if partition_of.is_some() || partition_by.is_some() {
            return Err(PgError::unsupported("partitioning"));
        }
        if let Some(method) = access_method.as_ref().filter(|method| method.value != "heap") {
            let message = format!("access method \"{}\" does not exist", method.value);
            return Err(PgError::new(state::UNDEFINED_OBJECT, message));
        }
        check_tablespace(tablespace.as_ref())?;
        let options = storage_options(options)?;
        let place = self.creation_place(relation, *persistence);
        let (schema, temporary) = place.map_err(|error| error.at(text, relation.at.0 as usize))?;
        self.check_on_commit(temporary, *on_commit)?;
        self.check_creation(&schema, temporary).map_err(|error| error.at(text, relation.at.0 as usize))?;
        if self.refuse_taken(&schema, &relation.name, *if_not_exists)? {
            return Ok(());
        }
        let mut table = new_table(schema.clone(), relation.name.clone(), temporary);
        table.options = options;
        let mut extras = Extras::default();
        for element in elements {
            match element {
                TableElement::Column(def) => self.declare_column(&mut table, def, text, &mut extras)?,
                TableElement::Constraint(constraint) => extras.constraints.push((constraint, None)),
                TableElement::Like(like) => self.copy_columns(&mut table, like, &mut extras)?,
            }
        }
        self.make_table(table, extras, text, |_, _, _| Ok(()))?;
        self.note_on_commit(&schema, &relation.name, *on_commit);
        Ok(())
    }

    /// Notes what becomes of a new temporary table at each commit.
    pub(super) fn note_on_commit(&mut self, schema: &str, name: &str, on_commit: OnCommit) {
        let what = match on_commit {
            OnCommit::Default | OnCommit::PreserveRows => return,
            OnCommit::DeleteRows => AtCommit::Empty,
            OnCommit::Drop => AtCommit::Drop,
        };
        if let Ok(table) = self.catalog.table(schema, name).cloned() {
            self.set_at_commit(&table, what);
        }
    }

    /// Fails for a name that another relation has; with IF NOT EXISTS returns true instead.
    pub(super) fn refuse_taken(&mut self, schema: &str, name: &str, if_not_exists: bool) -> Result<bool> {
        let found = self.catalog.schemas.get(schema).and_then(|schema| super::names::find(schema, name));
        if found.is_none() {
            self.refuse_type_name(&self.catalog, schema, name)?;
            return Ok(false);
        }
        let message = format!("relation \"{name}\" already exists");
        if !if_not_exists {
            return Err(PgError::new(state::DUPLICATE_TABLE, message));
        }
        self.skip_notice(state::DUPLICATE_TABLE, message + ", skipping");
        Ok(true)
    }

    /// Adds a declared column to the draft of a table.
    pub(super) fn declare_column<'s>(
        &mut self,
        table: &mut Table,
        def: &'s ColumnDef,
        text: &str,
        extras: &mut Extras<'s>,
    ) -> Result<()> {
        let at = table.columns.len();
        check_column_name(table, &def.name.value)?;
        let declared = self.declared(def, at, &table.name, text)?;
        table.columns.push(declared.column);
        extras.sequences.extend(declared.sequence);
        extras.expressions.extend(declared.expression);
        extras.constraints.extend(declared.constraints.into_iter().map(|constraint| (constraint, Some(at))));
        Ok(())
    }

    /// Makes a table of a draft. `fill` puts its first rows in, within the same transaction.
    pub(super) fn make_table(
        &mut self,
        mut table: Table,
        extras: Extras<'_>,
        text: &Arc<str>,
        fill: impl FnOnce(&mut Session, &Arc<Table>, &mut Writing<'_>) -> Result<()>,
    ) -> Result<()> {
        let Extras { sequences, expressions, constraints, indexes } = extras;
        table.slots = table.columns.iter().map(|column| column.ty.storage).collect();
        for wanted in &expressions {
            self.settle_expression(&mut table, wanted, text)?;
        }
        let mut parents = Vec::new();
        for (constraint, _) in &constraints {
            if let ConstraintKind::Foreign(node) = &constraint.kind {
                parents.push(self.parent_of(node, &table)?);
            }
        }
        for (schema, name) in &parents {
            self.check_parent_persistence(&table, schema, name)?;
        }
        let db = self.database().clone();
        let needs = |snapshot: &Snapshot| {
            let parents = parents.iter().filter_map(|(schema, name)| snapshot.table(schema, name).ok().cloned());
            let waiting = snapshot.children_now(&table.schema, &table.name);
            Ok(RelatedTables::default().and(parents.chain(waiting)))
        };
        let mut writing = match table.temporary {
            true => self.write_temporary(&db)?,
            false => self.lock_and_write(&db, TableMode::AccessExclusive, needs)?,
        };
        let ends = if table.temporary { RelatedTables::default() } else { needs(&writing.snapshot)? };
        let schema = writing.snapshot.schema(&table.schema)?.clone();
        if super::names::find(&schema, &table.name).is_some() {
            let message = format!("relation \"{}\" already exists", table.name);
            return Err(PgError::new(state::DUPLICATE_TABLE, message));
        }
        table.id = writing.new_id();
        table.map = writing.txn.create_map()?;
        for (constraint, column) in sorted(&constraints) {
            self.add_constraint(&mut table, constraint, column, text, &writing.snapshot)?;
        }
        for liked in &indexes {
            self.copy_indexes(&mut table, liked, &writing.snapshot)?;
        }
        self.make_sequences(&mut table, sequences, &mut writing)?;
        make_maps(&mut table, &mut writing)?;
        table.live.set_rows(0);
        let table = writing.put_table(table)?;
        if !table.temporary {
            self.hold_new(&table);
            self.own(&mut writing, NewObject::relation(table.id, &table.schema))?;
        }
        self.touch(&mut writing, &ends.tied)?;
        fill(self, &table, &mut writing)?;
        self.finish(writing)
    }

    /// Makes the sequences that columns of the draft own.
    pub(super) fn make_sequences(
        &mut self,
        table: &mut Table,
        wanted: Vec<WantedSequence>,
        writing: &mut Writing<'_>,
    ) -> Result<()> {
        let mut names: Vec<String> = Vec::new();
        for WantedSequence { column, parameters, identity, name } in wanted {
            let schema = writing.snapshot.schema(&table.schema)?.clone();
            let name = name.unwrap_or_else(|| sequence_name(&schema, &table.name, &table.columns[column].name, &names));
            if super::names::find(&schema, &name).is_some() {
                return Err(PgError::new(state::DUPLICATE_TABLE, format!("relation \"{name}\" already exists")));
            }
            let id = writing.new_id();
            let mut sequence = Sequence::new(id, table.schema.clone(), name.clone(), parameters, crate::MAKER);
            (sequence.owned_by, sequence.temporary) = (Some(table.id), table.temporary);
            if !table.temporary {
                // It belongs to the owner of the table, which may be an older one.
                match writing.snapshot.table(&table.schema, &table.name).is_ok_and(|known| known.id == table.id) {
                    true => {
                        let known = writing.snapshot.access.get(AccessKey::object(table.id));
                        let owner = crate::rights::owner_of(known);
                        self.give(writing, NewObject::sequence(id, &table.schema), owner)?;
                    }
                    false => self.own(writing, NewObject::sequence(id, &table.schema))?,
                }
            }
            table.columns[column].sequences.push(id);
            if !identity {
                let qualified = format!("{}.{}", quoted(schema_of(&table.schema)), quoted(&name));
                let text = format!("nextval('{}'::regclass)", qualified.replace('\'', "''"));
                table.columns[column].default = Default::Expression(text);
            }
            writing.create_sequence(sequence)?;
            names.push(name);
        }
        Ok(())
    }

    /// Adds a constraint to the draft of a table. `column`: the one that it is declared with.
    pub(super) fn add_constraint(
        &mut self,
        table: &mut Table,
        constraint: &Constraint,
        column: Option<usize>,
        text: &str,
        snapshot: &Snapshot,
    ) -> Result<()> {
        let deferral = super::foreign::deferral(constraint.deferrable, constraint.initially_deferred);
        if let ConstraintKind::PrimaryKey(index) | ConstraintKind::Unique(index) = &constraint.kind
            && let Some(using) = &index.using_index
        {
            return self.adopt_index(table, constraint, &using.value, deferral, snapshot, text);
        }
        match &constraint.kind {
            ConstraintKind::PrimaryKey(index) => {
                refuse_second_key(table).map_err(|error| error.at(text, constraint.at.0 as usize))?;
                if !index.include.is_empty() {
                    return Err(PgError::unsupported("INCLUDE of a primary key"));
                }
                let parts = key_parts(table, index, column)?;
                let name = self.key_name(table, constraint.name.as_ref(), &parts, "pkey", snapshot)?;
                set_primary_key(table, name, parts, deferral);
            }
            ConstraintKind::Unique(index) => {
                let parts = key_parts(table, index, column)?;
                let mut included = Vec::new();
                for name in &index.include {
                    included.push(key_column(table, name)?);
                }
                let named: Vec<Part> = parts.iter().cloned().chain(included.iter().copied().map(ascending)).collect();
                let name = self.key_name(table, constraint.name.as_ref(), &named, "key", snapshot)?;
                let nulls_equal = index.nulls_not_distinct;
                let made = unmade(name, parts, deferral == Deferral::Never, false);
                let made = Index { is_constraint: true, included, nulls_equal, deferral, ..made };
                table.indexes.push(made);
            }
            ConstraintKind::Check(expr) => {
                let over = Arc::new(table.copy().with_derived_fields());
                let bound = self.with_environment(&[], |environment, ctx| {
                    bind::bind_table_expression(environment, ctx, text, (&over, expr), TableExpression::Check, None)
                })?;
                let mut columns = bound.columns();
                columns.sort_unstable();
                columns.dedup();
                let second = match &columns[..] {
                    [only] => table.columns[*only].name.as_str(),
                    _ => "",
                };
                let name = match &constraint.name {
                    Some(name) => name.value.clone(),
                    None => constraint_name(snapshot, table, second, "check"),
                };
                check_constraint_name(table, &name)?;
                let source = within_parentheses(text, constraint.at.0 as usize).unwrap_or_default().to_owned();
                table.checks.push(Check { id: UNNUMBERED, name, text: source, enforced: true, is_validated: true });
            }
            ConstraintKind::Foreign(node) => self.add_foreign_key(table, constraint, node, column, snapshot)?,
            ConstraintKind::Exclusion(_) => return Err(PgError::unsupported("an exclusion constraint")),
            ConstraintKind::Null
            | ConstraintKind::NotNull
            | ConstraintKind::Default(_)
            | ConstraintKind::Identity { .. }
            | ConstraintKind::Generated(_) => {}
        }
        Ok(())
    }

    fn key_name(
        &self,
        table: &Table,
        name: Option<&Ident>,
        parts: &[Part],
        label: &str,
        snapshot: &Snapshot,
    ) -> Result<String> {
        let schema = snapshot.schema(&table.schema)?;
        let Some(name) = name else {
            let columns: Vec<&str> = parts.iter().map(|part| &*table.columns[part.column].name).collect();
            return Ok(index_name(schema, table, &columns, label));
        };
        if relation_is_taken(schema, table, &name.value) {
            return Err(PgError::new(state::DUPLICATE_TABLE, format!("relation \"{}\" already exists", name.value)));
        }
        check_constraint_name(table, &name.value)?;
        Ok(name.value.clone())
    }

    /// Returns the relation of that name for a message, with its kind.
    pub(super) fn is_relation(&mut self, schema: &str, name: &str) -> Option<Relation> {
        self.catalog.schemas.get(schema).and_then(|schema| super::names::find(schema, name))
    }
}

/// Keys come before what may refer to them.
fn sorted<'s>(constraints: &[(&'s Constraint, Option<usize>)]) -> Vec<(&'s Constraint, Option<usize>)> {
    let mut sorted = constraints.to_vec();
    sorted.sort_by_key(|(constraint, _)| match constraint.kind {
        ConstraintKind::Check(_) => 0,
        ConstraintKind::PrimaryKey(_) => 1,
        ConstraintKind::Foreign(_) => 3,
        _ => 2,
    });
    sorted
}

pub(super) fn check_constraint_name(table: &Table, name: &str) -> Result<()> {
    match has_constraint(table, name) {
        true => {
            let message = format!("constraint \"{name}\" for relation \"{}\" already exists", table.name);
            Err(PgError::new(state::DUPLICATE_OBJECT, message))
        }
        false => Ok(()),
    }
}

/// The names of PostgreSQL's system columns.
const SYSTEM_COLUMNS: [&str; 6] = ["tableoid", "cmax", "xmax", "cmin", "xmin", "ctid"];

pub(super) fn check_column_name(table: &Table, name: &str) -> Result<()> {
    if SYSTEM_COLUMNS.contains(&name) {
        let message = format!("column name \"{name}\" conflicts with a system column name");
        return Err(PgError::new(state::DUPLICATE_COLUMN, message));
    }
    if table.columns.iter().any(|column| !column.is_hidden() && column.name == name) {
        return Err(PgError::new(state::DUPLICATE_COLUMN, format!("column \"{name}\" specified more than once")));
    }
    // The core looks columns up without regard to case.
    if table.columns.iter().any(|column| !column.is_hidden() && column.name.eq_ignore_ascii_case(name)) {
        return Err(PgError::unsupported("a table whose columns differ in case alone"));
    }
    check_column_count(table.columns.len() + 1)
}

pub(super) fn check_column_count(count: usize) -> Result<()> {
    if count <= COLUMNS_MAX {
        return Ok(());
    }
    Err(PgError::new(state::TOO_MANY_COLUMNS, format!("tables can have at most {COLUMNS_MAX} columns")))
}

pub(super) fn check_tablespace(name: Option<&Ident>) -> Result<()> {
    match name {
        Some(name) if !matches!(&*name.value, "pg_default" | "") => {
            Err(PgError::new(state::UNDEFINED_OBJECT, format!("tablespace \"{}\" does not exist", name.value)))
        }
        _ => Ok(()),
    }
}

/// Returns the storage parameters of a table. They ask how PostgreSQL's own pages are filled and vacuumed, so here they have nothing to decide.
pub(super) fn storage_options(options: &[DefElem]) -> Result<Vec<(String, String)>> {
    let mut kept = Vec::new();
    for option in options {
        let known = matches!(
            &*option.name,
            "fillfactor" | "parallel_workers" | "toast_tuple_target" | "deduplicate_items" | "user_catalog_table"
        ) || option.name.starts_with("autovacuum_")
            || option.name.starts_with("vacuum_");
        if !known {
            let message = format!("unrecognized parameter \"{}\"", option.name);
            return Err(PgError::new(state::INVALID_PARAMETER_VALUE, message));
        }
        let value = match &option.value {
            Some(DefArg::Integer(number)) => number.to_string(),
            Some(DefArg::Float(text) | DefArg::String(text) | DefArg::Keyword(text)) => text.clone(),
            Some(DefArg::Bool(is_on)) => is_on.to_string(),
            Some(DefArg::Type(ty)) => ty.name.last().to_owned(),
            _ => "true".to_owned(),
        };
        if option.name == "fillfactor" && !value.parse::<u32>().is_ok_and(|percent| (10..=100).contains(&percent)) {
            let message = format!("value {value} out of bounds for option \"fillfactor\"");
            let error = PgError::new(state::INVALID_PARAMETER_VALUE, message);
            return Err(error.detail("Valid values are between \"10\" and \"100\"."));
        }
        kept.push((option.name.clone(), value));
    }
    Ok(kept)
}

pub(super) fn refuse_second_key(table: &Table) -> Result<()> {
    if table.primary_parts().is_none() {
        return Ok(());
    }
    let message = format!("multiple primary keys for table \"{}\" are not allowed", table.name);
    Err(PgError::new(state::INVALID_TABLE_DEFINITION, message))
}

pub(super) fn set_primary_key(table: &mut Table, name: String, parts: Vec<Part>, deferral: Deferral) {
    for part in &parts {
        let ty = table.columns[part.column].ty.clone();
        table.columns[part.column].ty = ty.with_nullable(false);
    }
    match deferral {
        Deferral::Never => (table.primary_name, table.primary) = (name, Some(parts)),
        // Rows lie in the order of their numbers, and the key is checked behind them.
        deferral => {
            let made = unmade(name, parts, false, false);
            table.indexes.push(Index { is_constraint: true, is_primary: true, deferral, ..made });
        }
    }
}

/// Returns the parts of a key constraint.
fn key_parts(table: &Table, index: &IndexConstraint, column: Option<usize>) -> Result<Vec<Part>> {
    let IndexConstraint { columns, nulls_not_distinct: _, include: _, options, tablespace, using_index: _ } = index;
    storage_options(options)?;
    check_tablespace(tablespace.as_ref())?;
    let mut parts: Vec<Part> = column.filter(|_| columns.is_empty()).map(ascending).into_iter().collect();
    for name in columns {
        let at = key_column(table, name)?;
        if parts.iter().any(|part| part.column == at) {
            let message = format!("column \"{}\" appears twice in primary key constraint", name.value);
            return Err(PgError::new(state::DUPLICATE_COLUMN, message));
        }
        parts.push(ascending(at));
    }
    Ok(parts)
}

fn key_column(table: &Table, name: &Ident) -> Result<usize> {
    let found = table.columns.iter().position(|column| !column.is_hidden() && column.name == name.value);
    let message = || format!("column \"{}\" named in key does not exist", name.value);
    found.ok_or_else(|| PgError::new(state::UNDEFINED_COLUMN, message()))
}

/// Makes the maps of indexes that have none.
pub(super) fn make_maps(table: &mut Table, writing: &mut Writing<'_>) -> Result<()> {
    for index in table.indexes.iter_mut().filter(|index| index.map == UNMADE) {
        index.map = writing.txn.create_map()?;
    }
    Ok(())
}

/// Returns a table without columns, whose id and map are not made yet.
pub(super) fn new_table(schema: String, name: String, temporary: bool) -> Table {
    Table {
        id: UNNUMBERED,
        maker: crate::MAKER,
        schema,
        name,
        version: 1,
        map: UNMADE,
        columns: Vec::new(),
        slots: Vec::new(),
        layout: Layout::default(),
        slot_columns: Vec::new(),
        primary: None,
        primary_id: UNNUMBERED,
        primary_name: String::new(),
        primary_form: KeyForm::Hashed,
        indexes: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        collation: super::DATABASE_COLLATION,
        comment: String::new(),
        options: Vec::new(),
        primary_using: false,
        created: datum::temporal::Timestamp::now().0,
        temporary,
        keyspace: None,
        query: None,
        is_unseen: false,
        computes: false,
        live: Arc::new(TableState::new(1)),
        formulas: OnceLock::new(),
    }
}

/// Returns the name of a table's primary key, for messages.
pub(super) fn shown_primary(table: &Table) -> String {
    primary_name(table)
}
