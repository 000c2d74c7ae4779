//! DDL: schemas, tables, indexes. Each statement commits the open transaction and is an atomic transaction of its own.

use crate::scalar::charsets;
use query::catalog::foreign_key::Deferral;
use std::sync::Arc;

use syntax::tree::{CreateIndex, IndexKind, TableConstraint};

use crate::bind::Bind;
use crate::error::{self, Result, SqlError};
use crate::other_dialects::MAKER;
use crate::other_tables::check_definition;
use crate::parse::parse_expression;
use crate::parse::statement::{Alteration, CreateTable, Name};
use crate::scalar::modes::SqlMode;
use crate::scalar::operators;
use crate::scalar::state::StateOf as _;
use crate::scalar::temporal::Timestamp;
use crate::session::definition_parser::{
    NewIndex, check_keys, check_name, collation_of, index_name, like_table, options_of,
};
use crate::session::foreign::{follow_names, refuse_acting_keys};
use crate::session::{Outcome, Session};
use crate::types::{MysqlType as _, Type};
use query::catalog::object_id::UNNUMBERED;
use query::catalog::table::{Default, Index, Table};
use query::catalog::table_lock::TableMode;
use query::catalog::{Snapshot, Writing};
use query::exec::rebuild;
use query::key_form::KeyForm;
use query::nodes::context::Level;
use query::nodes::system_table::SystemTable;
use query::session::definitions::{RelatedTables, after_truncate, create_table};

impl Session {
    pub(super) fn full_name(&self, name: &Name) -> Result<(String, String)> {
        let schema = name.schema.clone().or_else(|| self.database.clone()).ok_or_else(|| error::NO_DB.bare())?;
        Ok((schema, name.name.clone()))
    }

    pub(super) fn refuse_system(&self, schema: &str) -> Result<()> {
        if crate::system::schemas::is_system(schema) {
            return Err(error::DBACCESS_DENIED.with(&[&self.who.user, &self.who.host, &schema]));
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, writing: Writing<'_>) -> Result<()> {
        let made = writing.temporary.then(|| writing.snapshot.clone());
        self.check_left_open(&writing.snapshot)?;
        let lsn = writing.commit()?;
        self.core.transaction.raise_durability_lsn(lsn);
        made.iter().for_each(|made| self.take_temporary(made));
        Ok(())
    }

    pub(super) fn note(&mut self, error: SqlError) {
        self.ctx.warnings.push(Level::Note, error);
    }

    pub(super) fn warn(&mut self, error: SqlError) {
        self.ctx.warnings.push(Level::Warning, error);
    }

    pub(super) fn create_database(
        &mut self,
        name: &str,
        if_not_exists: bool,
        charset: Option<&str>,
        collation: Option<&str>,
    ) -> Result<Outcome> {
        check_name(name, &error::WRONG_DB_NAME)?;
        self.refuse_system(name)?;
        self.check_unlocked()?;
        let default = charsets::collation(&self.values.word("collation_server"))?;
        let collation = collation_of(charset, collation, default)?;
        let db = self.db.clone();
        let mut writing = self.core.begin_own_change(db.instance(), self.mdl_wait());
        if writing.snapshot.schemas.contains_key(name) {
            let exists = error::DB_CREATE_EXISTS.with(&[&name]);
            if !if_not_exists {
                return Err(exists);
            }
            self.note(exists);
            return Ok(Outcome::done());
        }
        writing.put_schema(name, collation, crate::other_dialects::MAKER)?;
        self.finish(writing)?;
        Ok(Outcome::Done { affected: 1, last_insert_id: 0, info: String::new() })
    }

    pub(super) fn alter_database(
        &mut self,
        name: Option<&str>,
        charset: Option<&str>,
        collation: Option<&str>,
    ) -> Result<Outcome> {
        let name = name.map(str::to_owned).or_else(|| self.database.clone()).ok_or_else(|| error::NO_DB.bare())?;
        self.refuse_system(&name)?;
        self.check_unlocked()?;
        let db = self.db.clone();
        let mut writing = self.core.begin_own_change(db.instance(), self.mdl_wait());
        let default = writing.snapshot.schema(&name)?.collation;
        writing.put_schema(&name, collation_of(charset, collation, default)?, crate::other_dialects::MAKER)?;
        self.finish(writing)?;
        self.refresh();
        self.follow_database();
        Ok(Outcome::Done { affected: 1, last_insert_id: 0, info: String::new() })
    }

    pub(super) fn drop_database(&mut self, name: &str, if_exists: bool) -> Result<Outcome> {
        self.refuse_system(name)?;
        self.check_unlocked()?;
        let db = self.db.clone();
        if self.catalog.shared().schema(name).is_err() {
            let missing = error::DB_DROP_EXISTS.with(&[&name]);
            if !if_exists {
                return Err(missing);
            }
            self.note(missing);
            return Ok(Outcome::done());
        }
        let all = |snapshot: &Snapshot| -> Result<Vec<Arc<Table>>> {
            Ok(snapshot.schema(name)?.tables.values().cloned().collect())
        };
        let (_closed, mut writing) =
            self.close_and_write(&db, |snapshot| Ok(RelatedTables::of(all(snapshot)?, snapshot)))?;
        let ends = RelatedTables::of(all(&writing.snapshot)?, &writing.snapshot);
        let tables = &ends.changed;
        self.check_unreferenced(tables, &writing.snapshot)?;
        let views: Vec<_> = writing.snapshot.schema(name)?.views.values().cloned().collect();
        for view in &views {
            writing.drop_view(view)?;
        }
        for table in tables {
            writing.drop_table(table)?;
        }
        let sequences: Vec<_> = writing.snapshot.schema(name)?.sequences.values().cloned().collect();
        for sequence in &sequences {
            writing.drop_sequence(sequence)?;
        }
        let types: Vec<_> = writing.snapshot.schema(name)?.types.values().cloned().collect();
        for ty in &types {
            writing.drop_type(ty)?;
        }
        self.core.touch(&mut writing, &ends.tied)?;
        writing.drop_schema(name)?;
        self.finish(writing)?;
        self.core.after_drop(tables);
        views.iter().for_each(|view| view.gone.store(true, std::sync::atomic::Ordering::Release));
        if self.database.as_deref() == Some(name) {
            self.set_database(None);
            self.track_dropped_schema();
        }
        Ok(Outcome::Done { affected: (tables.len() + views.len()) as u64, last_insert_id: 0, info: String::new() })
    }

    pub(super) fn drop_tables(&mut self, names: &[Name], if_exists: bool, temporary: bool) -> Result<Outcome> {
        let (mut own, mut found, mut missing) = (Vec::new(), Vec::new(), Vec::new());
        for name in names {
            let (schema, name) = self.full_name(name)?;
            self.refuse_system(&schema)?;
            match self.catalog.table(&schema, &name) {
                Ok(table) if table.temporary => own.push(table.clone()),
                Ok(table) if !temporary => found.push(table.clone()),
                _ => missing.push(format!("{schema}.{name}")),
            }
        }
        if !missing.is_empty() && !if_exists {
            return Err(error::BAD_TABLE.with(&[&missing.join(",")]));
        }
        missing.iter().for_each(|name| self.note(error::BAD_TABLE.with(&[name])));
        if found.is_empty() {
            self.drop_temporary(&own)?;
            return Ok(Outcome::done());
        }
        let db = self.db.clone();
        let now = |snapshot: &Snapshot| {
            let named = found.iter().map(|table: &Arc<Table>| snapshot.table(&table.schema, &table.name).cloned());
            named.collect::<datum::Result<Vec<_>>>()
        };
        let (closed, mut writing) =
            self.close_and_write(&db, |snapshot| Ok(RelatedTables::of(now(snapshot)?, snapshot)))?;
        let ends = RelatedTables::of(now(&writing.snapshot)?, &writing.snapshot);
        let found = &ends.changed;
        self.check_unreferenced(found, &writing.snapshot)?;
        for table in found {
            writing.drop_table(table)?;
        }
        self.core.touch(&mut writing, &ends.tied)?;
        self.finish(writing)?;
        self.core.after_drop(found);
        drop(closed);
        self.drop_temporary(&own)?;
        Ok(Outcome::done())
    }

    pub(super) fn truncate(&mut self, name: &Name) -> Result<Outcome> {
        let (schema, name) = self.full_name(name)?;
        if crate::system::find(&schema, &name).is_some_and(SystemTable::is_keyspace) {
            return Err(SqlError::unsupported("TRUNCATE of Redis keys"));
        }
        let db = self.db.clone();
        let (_closed, mut writing) = if self.catalog.is_temporary(&schema, &name) {
            (Vec::new(), self.write_temporary(&db))
        } else {
            // No constraint is added or dropped.
            let only = |snapshot: &Snapshot| {
                Ok(RelatedTables { changed: vec![snapshot.table(&schema, &name)?.clone()], tied: Vec::new() })
            };
            self.close_and_write(&db, only)?
        };
        let old = writing.snapshot.table(&schema, &name)?.clone();
        self.check_truncatable(&old, &writing.snapshot)?;
        rebuild::truncate(&mut writing, &old)?;
        self.finish(writing)?;
        after_truncate(&old);
        let mut auto = old.live.auto.lock();
        (auto.next, auto.reserved) = (1, 0);
        db.catalog().reserve_auto(old.id, 1)?;
        auto.reserved = 1;
        Ok(Outcome::done())
    }

    pub(super) fn rename_tables(&mut self, pairs: &[(Name, Name)]) -> Result<Outcome> {
        let mut names = Vec::new();
        for (from, to) in pairs {
            let (schema, name) = self.full_name(from)?;
            if self.catalog.view(&schema, &name).is_some() {
                return Err(crate::session::view::unsupported_of_view());
            }
            names.push((self.full_name(from)?, self.full_name(to)?));
        }
        let needs = |snapshot: &Snapshot| {
            let renamed = names.iter().filter_map(|((schema, name), _)| snapshot.table(schema, name).ok().cloned());
            // Constraints declared before a table of that name existed.
            let waiting = names.iter().flat_map(|(_, (schema, name))| snapshot.children_now(schema, name));
            Ok(RelatedTables::of(renamed.collect(), snapshot).and(waiting))
        };
        let db = self.db.clone();
        let (_closed, mut writing) = self.close_and_write(&db, needs)?;
        let ends = needs(&writing.snapshot)?;
        for ((schema, name), (to_schema, to_name)) in &names {
            let table = writing.snapshot.table(schema, name)?.clone();
            if !ends.all().any(|known| known.id == table.id) {
                return Err(error::NO_SUCH_TABLE.with(&[schema, name]));
            }
            self.rename(&mut writing, &table, to_schema, to_name)?;
        }
        self.core.touch(&mut writing, &ends.tied)?;
        self.finish(writing)?;
        Ok(Outcome::done())
    }

    /// Handles ENGINE other than InnoDB. MyISAM, MEMORY and Aria are accepted as InnoDB, as in PolarDB, so that old
    /// dumps load. Unknown engines follow `sql_mode`.
    pub(super) fn settle_engine(&mut self, engine: Option<&str>, table: &str) -> Result<()> {
        const LESSER: [&str; 4] = ["myisam", "aria", "memory", "heap"];
        let Some(engine) = engine else { return Ok(()) };
        if !LESSER.iter().any(|known| engine.eq_ignore_ascii_case(known)) {
            let unknown = error::UNKNOWN_STORAGE_ENGINE.with(&[&engine]);
            if self.ctx.sql_mode().has(SqlMode::NO_ENGINE_SUBSTITUTION) {
                return Err(unknown);
            }
            self.ctx.warn(unknown);
        }
        self.ctx.warn(error::WARN_USING_OTHER_HANDLER.with(&[&"InnoDB", &table]));
        Ok(())
    }

    pub(super) fn create_table(&mut self, create: &CreateTable) -> Result<Outcome> {
        let CreateTable {
            temporary,
            if_not_exists,
            name,
            like: origin,
            columns,
            constraints,
            options,
            duplicates,
            query: _,
        } = create;
        let (temporary, duplicates) = (*temporary, *duplicates);
        let (schema, name) = self.full_name(name)?;
        check_name(&name, &error::WRONG_TABLE_NAME)?;
        self.refuse_system(&schema)?;
        let default = self.catalog.schema(&schema)?.collation;
        if !temporary {
            self.check_may_come(&schema, &name)?;
        }
        if self.name_is_taken(&schema, &name, temporary) {
            let exists = error::TABLE_EXISTS.with(&[&name]);
            if !if_not_exists {
                return Err(exists);
            }
            self.note(exists);
            return Ok(Outcome::done());
        }
        let options = options_of(options)?;
        self.settle_engine(options.engine.as_deref(), &name)?;
        let collation = collation_of(options.charset.as_deref(), options.collation.as_deref(), default)?;
        let mut like = None;
        let selection = self.selection(create)?;
        let selected = selection.as_ref().map_or(&[][..], |selection| &selection.columns);
        let definition = match origin {
            Some(named) => {
                let (like_schema, like_name) = self.full_name(named)?;
                let table = self.catalog.table(&like_schema, &like_name)?.clone();
                check_definition(&table)?;
                let definition = like_table(&table, &name);
                like = Some(table);
                definition
            }
            None => self.definition(columns, constraints, collation, &name, selected)?,
        };
        let db = self.db.clone();
        let needs = |snapshot: &Snapshot| {
            // Parents, and constraints declared before this table existed.
            let parents = definition.foreign.iter().filter_map(|wanted| {
                let parent_schema = Some(&wanted.key.parent_schema).filter(|name| !name.is_empty());
                snapshot.table(parent_schema.unwrap_or(&schema), &wanted.key.parent).ok().cloned()
            });
            Ok(RelatedTables::default().and(parents.chain(snapshot.children_now(&schema, &name))))
        };
        if selection.is_some() && !definition.foreign.is_empty() {
            return Err(error::FOREIGN_KEY_WITH_ATOMIC_CREATE_SELECT.bare());
        }
        if temporary && !definition.foreign.is_empty() {
            return Err(error::CANNOT_ADD_FOREIGN.bare());
        }
        let (_closed, mut writing) =
            if temporary { (Vec::new(), self.write_temporary(&db)) } else { self.close_and_write(&db, needs)? };
        let ends = if temporary { RelatedTables::default() } else { needs(&writing.snapshot)? };
        let is_there =
            writing.snapshot.table(&schema, &name).is_ok() || writing.snapshot.view(&schema, &name).is_some();
        if !temporary && is_there {
            return Err(error::TABLE_EXISTS.with(&[&name]));
        }
        let options_shown = like.as_ref().map_or(options.noted, |like| like.options.clone());
        let comment = like.as_ref().map_or(options.comment.unwrap_or_default(), |like| like.comment.clone());
        let mut table = Table {
            maker: MAKER,
            schema,
            map: writing.txn.create_map()?,
            primary: definition.primary,
            primary_using: definition.primary_using,
            options: options_shown,
            checks: definition.checks,
            collation: definition.collation,
            comment,
            created: Timestamp::now().0,
            temporary,
            query: None,
            ..Table::draft(&name, &definition.columns)
        };
        for index in definition.indexes {
            add_index(&mut table, index, &mut writing)?;
        }
        self.add_foreign_keys(&mut table, definition.foreign, &mut writing)?;
        self.limit_keys(None, &mut table)?;
        check_keys(&table)?;
        self.warn_of_duplicate_indexes(None, &table);
        self.check_generated(None, &table)?;
        self.check_family(None, &table, &writing.snapshot)?;
        self.check_expressions(&table)?;
        let table = create_table(&mut writing, table)?;
        if let Some(next) = options.auto_increment.filter(|next| *next > 1) {
            let mut auto = table.live.auto.lock();
            (auto.next, auto.reserved) = (next, next);
            db.catalog().reserve_auto(table.id, next)?;
        }
        self.core.touch(&mut writing, &ends.tied)?;
        let filled = match &selection {
            Some(selection) if !temporary => Some(self.fill_from(&table, selection, duplicates, &mut writing)?),
            _ => None,
        };
        self.finish(writing)?;
        match (filled, &selection) {
            (Some(filled), _) => {
                // Releases the metadata locks of the query's tables.
                self.commit()?;
                Ok(filled)
            }
            (None, Some(selection)) => self.fill_temporary(&table, selection, duplicates),
            (None, None) => Ok(Outcome::done()),
        }
    }

    /// Raises a warning for each new index that has the columns of another one and is as unique. Indexes made for
    /// foreign keys do not count.
    pub(super) fn warn_of_duplicate_indexes(&mut self, old: Option<&Table>, new: &Table) {
        for (at, index) in new.indexes.iter().enumerate() {
            let is_old = old.is_some_and(|old| old.indexes.iter().any(|known| known.map == index.map));
            let is_twin = |other: &Index| {
                !other.generated && !index.generated && other.unique == index.unique && other.parts == index.parts
            };
            if !is_old && new.indexes[..at].iter().any(is_twin) {
                self.warn(error::DUP_INDEX.with(&[&index.name, &new.schema, &new.name]));
            }
        }
    }

    /// Binds CHECKs and expression defaults, so that errors are reported now and not at the first row.
    pub(super) fn check_expressions(&mut self, table: &Table) -> Result<()> {
        let table = Arc::new(table.copy().with_derived_fields());
        let environment = self.bind_environment();
        let mut bind = Bind::new(&environment);
        for check in &table.checks {
            let bound = bind.over_table(&table, &parse_expression(&check.text)?).map_err(|error| match error.code {
                1054 => error::CHECK_CONSTRAINT_UNKNOWN_COLUMN
                    .with(&[&check.name, &error.message.split('\'').nth(1).unwrap_or("")]),
                _ => error,
            })?;
            let columns = bound.columns();
            refuse_acting_keys(&table, &check.name, &columns)?;
            if columns.iter().any(|at| table.columns[*at].auto_increment) {
                return Err(error::CHECK_CONSTRAINT_REFERS_AUTO_INCREMENT_COLUMN.with(&[&check.name]));
            }
        }
        for (nth, column) in table.columns.iter().enumerate() {
            let Default::Expression(text) = &column.default else { continue };
            // AUTO_INCREMENT values and later expression defaults are computed after this one.
            for at in bind.over_table(&table, &parse_expression(text)?)?.columns() {
                if table.columns[at].auto_increment {
                    return Err(error::DEFAULT_VAL_GENERATED_REF_AUTO_INC.with(&[&column.name]));
                }
                if at >= nth && matches!(table.columns[at].default, Default::Expression(_)) {
                    return Err(error::DEFAULT_VAL_GENERATED_NON_PRIOR.with(&[&column.name]));
                }
            }
        }
        Ok(())
    }

    /// Checks the rows against new CHECKs, or against all if the table was rebuilt.
    fn check_new_checks(&mut self, old: &Table, new: &Table, writing: &mut Writing<'_>) -> Result<()> {
        let table = Arc::new(new.copy().with_derived_fields());
        let environment = self.bind_environment();
        let mut bind = Bind::new(&environment);
        let mut checks = Vec::new();
        for check in new.checks.iter().filter(|check| check.enforced) {
            if new.map != old.map || !old.checks.contains(check) {
                checks
                    .push((&*check.name, operators::truth(bind.over_table(&table, &parse_expression(&check.text)?)?)));
            }
        }
        if checks.is_empty() {
            return Ok(());
        }
        bind.formulas(&table)?;
        drop(bind);
        Ok(rebuild::check_rows(&mut writing.txn, &table, &checks, &mut self.ctx)?)
    }

    pub(super) fn create_index(&mut self, create: &CreateIndex) -> Result<Outcome> {
        let CreateIndex { table, index } = create;
        let (schema, name) = self.full_name(table)?;
        self.refuse_view(&schema, &name)?;
        match index.kind {
            IndexKind::Fulltext => return Err(SqlError::unsupported("FULLTEXT INDEX")),
            IndexKind::Spatial => return Err(SqlError::unsupported("SPATIAL INDEX")),
            IndexKind::Primary | IndexKind::Unique | IndexKind::Plain => {}
        }
        let operation = Alteration::Add(TableConstraint::Index(index.clone()));
        self.alter_table(&Name { schema: Some(schema), name }, &[operation])
    }

    /// Changes a table's definition under its exclusive metadata lock, or one that lets others read the table, and fills new
    /// indexes from its rows.
    pub(super) fn change_table(
        &mut self,
        table: &Arc<Table>,
        reach: &Reach,
        change: impl FnOnce(&mut Session, &mut Table, &mut Writing<'_>) -> Result<Vec<(String, String)>>,
    ) -> Result<Outcome> {
        self.refuse_system(&table.schema)?;
        let db = self.db.clone();
        let needs = |snapshot: &Snapshot| {
            let parents = reach.parents.iter().filter_map(|(schema, name)| snapshot.table(schema, name).ok().cloned());
            let waiting = reach.becomes.iter().flat_map(|(schema, name)| snapshot.children_now(schema, name));
            let changed = vec![snapshot.table(&table.schema, &table.name)?.clone()];
            Ok(RelatedTables::of(changed, snapshot).and(parents.chain(waiting)))
        };
        let only = |snapshot: &Snapshot| {
            let changed = vec![snapshot.table(&table.schema, &table.name)?.clone()];
            Ok(RelatedTables { changed, ..RelatedTables::default() })
        };
        let mut others_read = reach.others_read && !table.temporary;
        let mut begun = match (table.temporary, others_read) {
            (true, _) => (Vec::new(), self.write_temporary(&db)),
            (false, true) => self.lock_and_write(&db, TableMode::ShareRowExclusive, only)?,
            (false, false) => self.close_and_write(&db, needs)?,
        };
        if others_read && begun.1.snapshot.table(&table.schema, &table.name)?.version != table.version {
            // What the statement needs was found in the older definition.
            drop(begun);
            others_read = false;
            begun = self.close_and_write(&db, needs)?;
        }
        let (_closed, mut writing) = begun;
        let ends = if table.temporary || others_read { RelatedTables::default() } else { needs(&writing.snapshot)? };
        let old = writing.snapshot.table(&table.schema, &table.name)?.clone();
        let mut new = old.copy();
        let renames = change(self, &mut new, &mut writing)?;
        if new.temporary && !new.foreign_keys.is_empty() {
            return Err(error::CANNOT_ADD_FOREIGN.bare());
        }
        check_keys(&new)?;
        self.check_generated(Some(&old), &new)?;
        self.check_expressions(&new)?;
        let new = new.with_derived_fields();
        if new.map == old.map {
            rebuild::change_indexes(&mut writing, &old, &new, &mut self.ctx)?;
        }
        self.check_new_constraints(&old, &new, &mut writing)?;
        self.check_new_checks(&old, &new, &mut writing)?;
        let mut new = new;
        follow_names(&mut writing, &old, &mut new, &renames)?;
        let is_moved = new.name != old.name || new.schema != old.schema;
        if is_moved {
            let taken =
                writing.snapshot.table(&new.schema, &new.name).is_ok_and(|there| there.temporary || !new.temporary);
            if taken {
                return Err(error::TABLE_EXISTS.with(&[&new.name]));
            }
            writing.forget_name(&old)?;
        }
        self.check_family(Some(&old), &new, &writing.snapshot)?;
        let ties_change = is_moved || new.foreign_keys != old.foreign_keys;
        if others_read {
            writing.put_table_in_use(new)?;
        } else {
            writing.put_table(new)?;
        }
        if ties_change {
            self.core.touch(&mut writing, &ends.tied)?;
        }
        self.finish(writing)?;
        Ok(Outcome::done())
    }

    fn rename(&mut self, writing: &mut Writing<'_>, table: &Table, schema: &str, name: &str) -> Result<()> {
        check_name(name, &error::WRONG_TABLE_NAME)?;
        let there = writing.snapshot.schema(schema)?;
        if there.tables.contains_key(name) || there.views.contains_key(name) {
            return Err(error::TABLE_EXISTS.with(&[&name]));
        }
        let mut new = table.copy();
        (new.schema, new.name) = (schema.to_owned(), name.to_owned());
        follow_names(writing, table, &mut new, &[])?;
        writing.forget_name(table)?;
        self.check_family(None, &new, &writing.snapshot)?;
        writing.put_table(new)?;
        Ok(())
    }
}

/// Other tables and names that a change of a table affects, besides its existing constraints.
#[derive(std::default::Default)]
pub(super) struct Reach {
    /// Parents of new foreign keys.
    pub parents: Vec<(String, String)>,
    /// The new name.
    pub becomes: Option<(String, String)>,
    /// Others may read the table meanwhile (QU-65).
    pub others_read: bool,
}

/// Returns whether two types store values alike; column-only attributes are ignored.
pub(super) fn same_storage(a: &Type, b: &Type) -> bool {
    a.kind() == b.kind()
        && a.is_unsigned() == b.is_unsigned()
        && a.collation == b.collation
        && a.members == b.members
        && a.scale == b.scale
}

/// Adds an index with an empty map to the definition of a table.
pub(super) fn add_index(table: &mut Table, index: NewIndex, writing: &mut Writing<'_>) -> Result<()> {
    let NewIndex { name, unique, parts, comment, invisible, using } = index;
    let map = writing.txn.create_map()?;
    let name = index_name(table, name, &parts)?;
    let (id, form, generated, is_constraint) = (UNNUMBERED, KeyForm::Hashed, false, false);
    table.indexes.push(Index {
        id,
        name,
        map,
        unique,
        parts,
        form,
        comment,
        invisible,
        using,
        generated,
        is_constraint,
        included: Vec::new(),
        predicate: None,
        terms: None,
        nulls_equal: false,
        deferral: Deferral::Never,
        is_primary: false,
        is_unseen: false,
    });
    Ok(())
}
