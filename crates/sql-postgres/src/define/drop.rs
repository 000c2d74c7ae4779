//! DROP, with what depends on the dropped objects.

use std::collections::BTreeSet;
use std::sync::Arc;

use query::catalog::object_id::ObjectId;
use query::catalog::sequence::Sequence;
use query::catalog::table::Table;
use query::catalog::table_lock::TableMode;
use query::catalog::user_type::UserType;
use query::catalog::view::View;
use query::catalog::{Schema, Snapshot, Writing};
use query::session::definitions::RelatedTables;
use query::session::statement::Bindings;
use syntax::postgres::tree::{DropStmt, ObjectName, ObjectType};

use crate::bind::Plan;
use crate::define::alter::CASCADE_HINT;
use crate::define::materialized::{kind_of, view_of};
use crate::define::names::{Relation, is_found_in, missing_schema, schema_of};
use crate::define::type_dependents::Dependents;
use crate::error::{PgError, Result, state};
use crate::rights::object::Object;
use crate::session::Session;
use crate::types::row_type;

/// The objects that a statement drops.
#[derive(Default)]
pub(super) struct Gone {
    pub tables: Vec<Arc<Table>>,
    pub views: Vec<Arc<View>>,
    pub sequences: Vec<Arc<Sequence>>,
    pub types: Vec<Arc<UserType>>,
    /// The dependents of the row types of its relations, which remain without them.
    pub of_rows: Dependents,
}

impl Gone {
    pub fn is_empty(&self) -> bool {
        let has_relations = !self.tables.is_empty() || !self.views.is_empty() || !self.sequences.is_empty();
        !has_relations && self.types.is_empty()
    }
}

/// An object that depends on another one, as messages show both.
pub(super) struct Dependence {
    pub object: String,
    pub on: String,
}

impl Dependence {
    pub fn line(&self) -> String {
        format!("{} depends on {}", self.object, self.on)
    }
}

impl Session {
    pub(super) fn drop_objects(&mut self, drop: &DropStmt) -> Result<String> {
        let DropStmt { objects, missing_ok, cascade, concurrently } = drop;
        if *concurrently {
            self.forbid_block("DROP INDEX CONCURRENTLY")?;
            let refuse = |what: &str| {
                let message = format!("DROP INDEX CONCURRENTLY does not support {what}");
                Err(PgError::new(state::FEATURE_NOT_SUPPORTED, message))
            };
            match () {
                () if objects.len() > 1 => return refuse("dropping multiple objects"),
                () if *cascade => return refuse("CASCADE"),
                () => {}
            }
        }
        let kind = match objects.first() {
            Some(ObjectName::Relation(kind, _) | ObjectName::Plain(kind, _) | ObjectName::Type(kind, _)) => *kind,
            _ => return Err(PgError::unsupported("this form of DROP")),
        };
        let (tag, word) = match kind {
            ObjectType::Table => ("DROP TABLE", "table"),
            ObjectType::View => ("DROP VIEW", "view"),
            ObjectType::MaterializedView => ("DROP MATERIALIZED VIEW", "materialized view"),
            ObjectType::Sequence => ("DROP SEQUENCE", "sequence"),
            ObjectType::Index => ("DROP INDEX", "index"),
            ObjectType::Schema => ("DROP SCHEMA", "schema"),
            ObjectType::Type => ("DROP TYPE", "type"),
            ObjectType::Domain => ("DROP DOMAIN", "type"),
            _ => return Err(PgError::unsupported("this form of DROP")),
        };
        self.begin_definition(tag)?;
        let mut gone = Gone::default();
        let mut indexes: Vec<(Arc<Table>, String)> = Vec::new();
        let mut schemas = Vec::new();
        let mut types: Vec<Arc<UserType>> = Vec::new();
        for object in objects {
            match object {
                ObjectName::Relation(_, name) => match self.droppable(name, word, *missing_ok)? {
                    Some(Relation::Table(table)) => gone.tables.push(table),
                    Some(Relation::View(view)) => gone.views.push(view),
                    Some(Relation::Sequence(sequence)) => gone.sequences.push(sequence),
                    Some(Relation::Index(table, _)) => indexes.push((table, name.name.clone())),
                    None => {}
                },
                ObjectName::Type(_, name) => {
                    let found = self.droppable_type(kind, name, *missing_ok)?;
                    types.extend(found.filter(|ty| !types.iter().any(|known| known.id == ty.id)));
                }
                ObjectName::Plain(_, name) => schemas.extend(self.droppable_schema(&name.value, *missing_ok)?),
                _ => return Err(PgError::unsupported("this form of DROP")),
            }
        }
        for (table, name) in indexes {
            self.drop_index(&table, &name)?;
        }
        if !types.is_empty() {
            self.drop_types(&types, *cascade)?;
        } else if !schemas.is_empty() {
            self.drop_schemas(&schemas, *cascade)?;
        } else {
            let names = gone.tables.iter().map(|table| (&table.schema, &table.name));
            let names = names.chain(gone.views.iter().map(|view| (&view.schema, &view.name)));
            let mut names = names.chain(gone.sequences.iter().map(|sequence| (&sequence.schema, &sequence.name)));
            let only = names.next().filter(|_| objects.len() == 1);
            let only = only.map(|(schema, name)| (schema.clone(), name.clone()));
            let what = only.map(|(schema, name)| format!("{word} {}", self.shown_relation(&schema, &name)));
            self.drop_all(gone, *cascade, what.as_deref(), &[])?;
        }
        Ok(tag.to_owned())
    }

    /// Returns the object of a DROP; `None` for one that is missing and may be.
    fn droppable(
        &mut self,
        name: &syntax::postgres::tree::RangeVar,
        word: &str,
        missing_ok: bool,
    ) -> Result<Option<Relation>> {
        let found = match self.relation(name) {
            Ok(found) => found,
            Err(error) if missing_ok && error.state == state::INVALID_SCHEMA_NAME => {
                self.skip_notice(super::SUCCESSFUL, error.message + ", skipping");
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        match found {
            Some(found) if found.kind() == word => {
                self.check_drops(&found, &name.name)?;
                Ok(Some(found))
            }
            Some(found) => {
                let article = if word == "index" { "an" } else { "a" };
                let message = format!("\"{}\" is not {article} {word}", name.name);
                let hint_article = if found.kind() == "index" { "an" } else { "a" };
                let hint =
                    format!("Use DROP {} to remove {hint_article} {}.", found.kind().to_uppercase(), found.kind());
                Err(PgError::new(state::WRONG_OBJECT_TYPE, message).hint(hint))
            }
            None if missing_ok => {
                self.skip_notice(super::SUCCESSFUL, format!("{word} \"{}\" does not exist, skipping", name.name));
                Ok(None)
            }
            None => {
                let state = if word == "index" { state::UNDEFINED_OBJECT } else { state::UNDEFINED_TABLE };
                Err(PgError::new(state, format!("{word} \"{}\" does not exist", name.name)))
            }
        }
    }

    fn droppable_schema(&mut self, name: &str, missing_ok: bool) -> Result<Option<String>> {
        let stored = self.stored_schema(name)?;
        if let Some(schema) = self.catalog.schemas.get(&stored).cloned() {
            if schema.is_temporary() {
                return Err(PgError::unsupported("DROP of the schema of temporary objects"));
            }
            self.check_owns(&Object::schema(&schema))?;
            return Ok(Some(stored));
        }
        match missing_ok {
            true => {
                self.skip_notice(super::SUCCESSFUL, format!("schema \"{name}\" does not exist, skipping"));
                Ok(None)
            }
            false => Err(missing_schema(name)),
        }
    }

    fn drop_index(&mut self, table: &Arc<Table>, name: &str) -> Result<()> {
        if table.primary.is_some() && super::names::primary_name(table) == name
            || table.indexes.iter().any(|index| index.is_constraint && index.name == name)
        {
            let message =
                format!("cannot drop index {name} because constraint {name} on table {} requires it", table.name);
            let hint = format!("You can drop constraint {name} on table {} instead.", table.name);
            return Err(PgError::new(state::DEPENDENT_OBJECTS_STILL_EXIST, message).hint(hint));
        }
        self.change_table(table, |_, draft, _| {
            draft.new.indexes.retain(|index| index.name != name);
            // A foreign key may have relied on it.
            for key in draft.new.foreign_keys.clone() {
                if draft.new.key_over(&key.columns).is_none() {
                    let parts = key.columns.iter().map(|column| super::index::ascending(*column)).collect();
                    draft.new.indexes.push(super::index::unmade(key.name.clone(), parts, false, true));
                }
            }
            Ok(())
        })
    }

    /// Drops objects and, with `cascade`, what depends on them. `what` names a single one for messages.
    pub(super) fn drop_all(
        &mut self,
        mut gone: Gone,
        cascade: bool,
        what: Option<&str>,
        schemas: &[String],
    ) -> Result<()> {
        if gone.is_empty() && schemas.is_empty() {
            return Ok(());
        }
        let dependences = self.extend_with_dependents(&mut gone)?;
        self.drop_with_dependents(gone, dependences, cascade, what, schemas)
    }

    /// Drops objects, among which are those that depend on them.
    pub(super) fn drop_with_dependents(
        &mut self,
        mut gone: Gone,
        dependences: Vec<Dependence>,
        cascade: bool,
        what: Option<&str>,
        schemas: &[String],
    ) -> Result<()> {
        for table in &gone.tables {
            self.refuse_waiting(table, "DROP TABLE")?;
        }
        if let Some(owned) = gone.sequences.iter().find(|sequence| self.owner_remains(sequence, &gone)) {
            return self.refuse_owned(owned);
        }
        if !dependences.is_empty() {
            if !cascade {
                let message = match what {
                    Some(what) => format!("cannot drop {what} because other objects depend on it"),
                    None => "cannot drop desired object(s) because other objects depend on them".to_owned(),
                };
                let lines: Vec<String> = dependences.iter().map(Dependence::line).collect();
                let error = PgError::new(state::DEPENDENT_OBJECTS_STILL_EXIST, message);
                return Err(error.detail(lines.join("\n")).hint(CASCADE_HINT));
            }
            let objects: Vec<String> = dependences.into_iter().map(|dependence| dependence.object).collect();
            self.tell_cascade(&objects);
        }
        let of_rows = std::mem::take(&mut gone.of_rows);
        if !of_rows.is_empty() {
            self.drop_dependents(of_rows)?;
        }
        let (temporary, shared) = gone.split();
        if !temporary.is_empty() {
            self.drop_temporary(&temporary)?;
        }
        if shared.is_empty() && schemas.is_empty() {
            return Ok(());
        }
        self.drop_shared(&shared, schemas)
    }

    fn drop_shared(&mut self, gone: &Gone, schemas: &[String]) -> Result<()> {
        let db = self.database().clone();
        let now = |snapshot: &Snapshot| {
            let named = gone.tables.iter().map(|table| snapshot.table(&table.schema, &table.name).cloned());
            let tables = named.collect::<datum::Result<Vec<_>>>()?;
            Ok(RelatedTables::of(tables, snapshot))
        };
        let mut writing = self.lock_and_write(&db, TableMode::AccessExclusive, now)?;
        let ends = now(&writing.snapshot)?;
        for view in &gone.views {
            writing.drop_view(view)?;
        }
        for table in &ends.changed {
            writing.drop_table(table)?;
        }
        for sequence in &gone.sequences {
            drop_remaining(&mut writing, sequence)?;
        }
        drop_foreign_keys(&mut writing, &ends.tied, &ends.changed)?;
        for ty in &gone.types {
            writing.drop_type(ty)?;
        }
        for schema in schemas {
            writing.drop_schema(schema)?;
        }
        self.finish(writing)?;
        for table in &ends.changed {
            // A session that waits for the metadata lock sees that the table is gone, unless this is undone.
            table.live.put_in_force(u64::MAX);
        }
        Ok(())
    }

    /// Tells of the objects that a CASCADE drops.
    pub(super) fn tell_cascade(&mut self, objects: &[String]) {
        let notice = match objects {
            [] => return,
            [only] => PgError::new(super::SUCCESSFUL, format!("drop cascades to {only}")),
            many => {
                let lines: Vec<String> = many.iter().map(|object| format!("drop cascades to {object}")).collect();
                PgError::new(super::SUCCESSFUL, format!("drop cascades to {} other objects", many.len()))
                    .detail(lines.join("\n"))
            }
        };
        self.tell("NOTICE", notice);
    }

    /// Adds what depends on the objects: views over tables and views, foreign keys of other tables.
    pub(super) fn extend_with_dependents(&mut self, gone: &mut Gone) -> Result<Vec<Dependence>> {
        let mut found = Vec::new();
        let mut pairs: Vec<(Arc<Table>, Arc<Table>)> = Vec::new();
        for table in &gone.tables {
            let children = self.catalog.children_now(&table.schema, &table.name);
            pairs.extend(children.into_iter().map(|child| (table.clone(), child)));
        }
        for (parent, child) in pairs {
            if gone.tables.iter().any(|table| table.id == child.id) {
                continue;
            }
            for key in child.foreign_keys.iter().filter(|key| key.refers_to(&parent.schema, &parent.name)) {
                found.push(Dependence {
                    object: format!(
                        "constraint {} on table {}",
                        key.name,
                        self.shown_relation(&child.schema, &child.name)
                    ),
                    on: format!("table {}", self.shown_relation(&parent.schema, &parent.name)),
                });
            }
        }
        let is_temporary = gone.tables.iter().all(|table| table.temporary)
            && gone.views.iter().all(|view| view.temporary)
            && gone.types.is_empty();
        let views: Vec<Arc<View>> = self.views_reaching(is_temporary);
        loop {
            let mut is_new = false;
            for view in &views {
                let is_gone = gone.views.iter().any(|known| known.id == view.id);
                if is_gone || gone.tables.iter().any(|known| known.id == view.id) {
                    continue;
                }
                let Some(on) = self.reads_gone(view, gone) else { continue };
                found.push(Dependence { object: self.shown_view(view), on });
                self.add_view(gone, view);
                is_new = true;
            }
            if !is_new {
                break;
            }
        }
        gone.of_rows = self.dependents_of_rows(gone)?;
        // The row type is older than what depends on its relation.
        let mut all = std::mem::take(&mut gone.of_rows.lines);
        all.extend(found);
        Ok(all)
    }

    /// Finds what depends on the row types of dropped relations and remains without them.
    pub(super) fn dependents_of_rows(&mut self, gone: &Gone) -> Result<Dependents> {
        let of_tables = gone.tables.iter().filter_map(|table| row_type::of_table(table));
        let of_views = gone.views.iter().filter_map(|view| row_type::of_view(view));
        let mut types: Vec<Arc<UserType>> = of_tables.chain(of_views).collect();
        if types.is_empty() || !self.may_have_users(&types, gone) {
            return Ok(Dependents::default());
        }
        types.retain(|ty| self.may_have_users(std::slice::from_ref(ty), gone));
        types.sort_by_key(|ty| ty.id);
        self.dependents_apart(&types, &[], gone)
    }

    /// Returns the object among those that a view reads; `None` if it reads none of them.
    fn reads_gone(&mut self, view: &Arc<View>, gone: &Gone) -> Option<String> {
        let bindings = self.bindings_of_view(view)?;
        let table = bindings.tables.iter().find(|table| gone.tables.iter().any(|other| other.id == table.id));
        let over = || {
            bindings.views.iter().find(|over| over.id != view.id && gone.views.iter().any(|other| other.id == over.id))
        };
        match (table, over()) {
            (_, Some(over)) => Some(format!("view {}", self.shown_relation(&over.schema, &over.name))),
            (Some(table), None) => {
                Some(format!("{} {}", kind_of(table), self.shown_relation(&table.schema, &table.name)))
            }
            (None, None) => None,
        }
    }

    /// Fails if views read a table, or a column of it, that is to change.
    pub(super) fn refuse_dependent_views(
        &mut self,
        table: &Arc<Table>,
        column: Option<&str>,
        cascade: bool,
    ) -> Result<()> {
        for view in self.views_reaching(table.temporary) {
            let Some(bindings) = self.bindings_of_view(&view) else { continue };
            if !bindings.tables.iter().any(|known| known.id == table.id) {
                continue;
            }
            if column.is_some_and(|column| !self.reads_column(&view, table, column)) {
                continue;
            }
            if cascade {
                return Err(PgError::unsupported("CASCADE of a column that a view may read"));
            }
            let what = match column {
                Some(column) => format!("column {column} of {} {}", kind_of(table), table.name),
                None => format!("{} {}", kind_of(table), table.name),
            };
            let message = format!("cannot change {what} because other objects depend on it");
            let error = PgError::new(state::DEPENDENT_OBJECTS_STILL_EXIST, message);
            return Err(error.detail(format!("{} {} depends on {what}", self.kind_of_view(&view), view.name)));
        }
        Ok(())
    }

    /// Returns the views that may read relations: only temporary ones read those that are temporary.
    fn views_reaching(&mut self, is_temporary: bool) -> Vec<Arc<View>> {
        match is_temporary {
            true => {
                let own = self.catalog.temporary().into_iter();
                let mut views: Vec<Arc<View>> = own.flat_map(|schema| schema.views.values().cloned()).collect();
                views.sort_by_key(|view| view.id);
                views
            }
            false => self.views_of_database(),
        }
    }

    pub(super) fn views_of_database(&mut self) -> Vec<Arc<View>> {
        let database = self.who.database.clone();
        let of_database = |schema: &str| {
            query::catalog::schema_name::SchemaName::of_stored(schema).is_some_and(|name| name.database == database)
        };
        let schemas = self.catalog.schemas.values().filter(|schema| of_database(&schema.name));
        let of_schema = |schema: &Arc<Schema>| {
            let views = schema.views.values().filter(|view| view.maker == crate::MAKER).cloned();
            let kept = schema.tables.values().filter_map(|table| view_of(table).map(Arc::new));
            let mut all: Vec<Arc<View>> = views.chain(kept).collect();
            all.sort_by_key(|view| view.id);
            all
        };
        schemas.flat_map(of_schema).collect()
    }

    /// Adds a view to what is dropped; a materialized one is a table.
    pub(super) fn add_view(&self, gone: &mut Gone, view: &Arc<View>) {
        match self.kept_table(view) {
            Some(table) => gone.tables.push(table),
            None => gone.views.push(view.clone()),
        }
    }

    /// Returns the table of a materialized view.
    fn kept_table(&self, view: &View) -> Option<Arc<Table>> {
        self.catalog.table(&view.schema, &view.name).ok().filter(|table| table.id == view.id).cloned()
    }

    fn kind_of_view(&self, view: &View) -> &'static str {
        if self.kept_table(view).is_some() { "materialized view" } else { "view" }
    }

    /// Returns a view as messages name it.
    pub(super) fn shown_view(&mut self, view: &View) -> String {
        format!("{} {}", self.kind_of_view(view), self.shown_relation(&view.schema, &view.name))
    }

    /// Returns what a view reads; `None` if it can no longer be bound.
    fn bindings_of_view(&mut self, view: &Arc<View>) -> Option<Bindings> {
        self.bound_view(view).map(|(bindings, _)| bindings)
    }

    /// Returns what a view reads, and the types that users have defined and it names or has values of; `None` if it can no longer be bound.
    pub(super) fn bound_view(&mut self, view: &Arc<View>) -> Option<(Bindings, BTreeSet<ObjectId>)> {
        let mut statements = self.parse_text(&view.text).ok()?;
        let raw = statements.pop()?;
        let bound = self.bind_view(view, &raw).ok()?;
        match &bound.statement.plan {
            Plan::Query { .. } => Some((bound.statement.bindings.clone(), bound.user_types)),
            _ => None,
        }
    }

    fn owner_remains(&self, sequence: &Sequence, gone: &Gone) -> bool {
        let Some((table, column)) = self.catalog.owner(sequence) else { return false };
        let is_gone = gone.tables.iter().any(|other| other.id == table.id);
        let column = &table.columns[column];
        let is_needed = column.identity != query::catalog::table::Identity::None
            || matches!(column.default, query::catalog::table::Default::Expression(_));
        !is_gone && is_needed
    }

    fn refuse_owned(&self, sequence: &Sequence) -> Result<()> {
        let Some((table, column)) = self.catalog.owner(sequence) else { return Ok(()) };
        let column = &table.columns[column];
        if column.identity != query::catalog::table::Identity::None {
            let message = format!(
                "cannot drop sequence {} because column {} of table {} requires it",
                sequence.name, column.name, table.name
            );
            let hint = format!("You can drop column {} of table {} instead.", column.name, table.name);
            return Err(PgError::new(state::DEPENDENT_OBJECTS_STILL_EXIST, message).hint(hint));
        }
        let message = format!("cannot drop sequence {} because other objects depend on it", sequence.name);
        let detail = format!(
            "default value for column {} of table {} depends on sequence {}",
            column.name, table.name, sequence.name
        );
        Err(PgError::new(state::DEPENDENT_OBJECTS_STILL_EXIST, message).detail(detail).hint(CASCADE_HINT))
    }

    /// Returns a relation's name as messages show it: with its schema where its name alone does not lead to it.
    pub(super) fn shown_relation(&mut self, schema: &str, name: &str) -> String {
        let (path, schema) = (self.search_path(), schema_of(schema));
        match is_found_in(&self.catalog, &self.who.database, &path, schema, name) {
            true => name.to_owned(),
            false => format!("{schema}.{name}"),
        }
    }
}

/// Drops a sequence, unless it went with its table.
pub(super) fn drop_remaining(writing: &mut Writing<'_>, sequence: &Sequence) -> Result<()> {
    let remains = writing.snapshot.sequence(&sequence.schema, &sequence.name).cloned();
    match remains.filter(|remains| remains.id == sequence.id) {
        Some(sequence) => Ok(writing.drop_sequence(&sequence)?),
        None => Ok(()),
    }
}

/// Removes the foreign keys of tables that remain, where they refer to dropped tables.
pub(super) fn drop_foreign_keys(
    writing: &mut Writing<'_>,
    remaining: &[Arc<Table>],
    gone: &[Arc<Table>],
) -> Result<()> {
    for child in remaining {
        let Ok(current) = writing.snapshot.table(&child.schema, &child.name).cloned() else { continue };
        let mut copy = current.copy();
        let is_of_gone = |key: &query::catalog::foreign_key::ForeignKey| {
            gone.iter().any(|table| key.refers_to(&table.schema, &table.name))
        };
        let dropped: Vec<String> =
            copy.foreign_keys.iter().filter(|key| is_of_gone(key)).map(|key| key.name.clone()).collect();
        copy.foreign_keys.retain(|key| !is_of_gone(key));
        for index in copy.indexes.iter().filter(|index| index.generated && dropped.contains(&index.name)) {
            writing.txn.drop_map(index.map)?;
        }
        copy.indexes.retain(|index| !(index.generated && dropped.contains(&index.name)));
        writing.put_table(copy)?;
    }
    Ok(())
}
