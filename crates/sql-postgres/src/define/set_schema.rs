//! ALTER ... SET SCHEMA of tables, views, materialized views and sequences.
//!
//! Indexes, constraints and the sequences of columns move with their table. Texts of other definitions that name what has moved get its new name (`moved_names`), under the locks of their tables, so dependents mean the same relations as before.

use std::sync::Arc;

use query::catalog::sequence::Sequence;
use query::catalog::table::{Default, Table};
use query::catalog::table_lock::TableMode;
use query::catalog::user_type::TypeDefinition;
use query::catalog::view::View;
use query::catalog::{Snapshot, Writing};
use query::session::definitions::{RelatedTables, follow_names};
use syntax::postgres::tree::{AlterObjectSchemaStmt, ObjectType, RangeVar};

use crate::bind::domain::{VALUE, value_table};
use crate::bind::{self, TableExpression};
use crate::define::alter::check_maker;
use crate::define::materialized::view_of;
use crate::define::moved_names::MovedRelations;
use crate::define::names::{Relation, has_relation, not_a, schema_of};
use crate::error::{PgError, Result, state};
use crate::session::Session;

/// The place of a text in a table's definition.
#[derive(Clone, Copy)]
enum TextPlace {
    Default(usize),
    Generated(usize),
    Check(usize),
    /// The query of a materialized view.
    Query,
}

/// The new texts in a table's definition.
type NewTexts = Vec<(TextPlace, String)>;

/// A relation on its way to another schema, and the texts that change with it.
struct Move {
    relation: Relation,
    /// The sequences that columns of the table own.
    sequences: Vec<Arc<Sequence>>,
    tables: Vec<(Arc<Table>, NewTexts)>,
    views: Vec<(Arc<View>, String)>,
}

impl Move {
    /// Returns the tables whose definitions change, and those that constraints tie to the moved one.
    fn related(&self, snapshot: &Snapshot) -> RelatedTables {
        let moved: Vec<Arc<Table>> = self.table().cloned().into_iter().collect();
        let mut related = RelatedTables::of(moved, snapshot);
        for (table, _) in self.tables.iter().filter(|(table, _)| !table.temporary) {
            if !related.all().any(|known| known.id == table.id) {
                related.changed.push(table.clone());
            }
        }
        related
    }

    fn table(&self) -> Option<&Arc<Table>> {
        match &self.relation {
            Relation::Table(table) => Some(table),
            _ => None,
        }
    }
}

impl Session {
    pub(super) fn set_schema(
        &mut self,
        kind: ObjectType,
        name: &RangeVar,
        alter: &AlterObjectSchemaStmt,
    ) -> Result<String> {
        let AlterObjectSchemaStmt { object: _, missing_ok, schema } = alter;
        let (tag, wanted) = match kind {
            ObjectType::MaterializedView => ("ALTER MATERIALIZED VIEW", Some("materialized view")),
            ObjectType::View => ("ALTER VIEW", Some("view")),
            ObjectType::Sequence => ("ALTER SEQUENCE", Some("sequence")),
            ObjectType::Table => ("ALTER TABLE", None),
            _ => return Err(PgError::unsupported("ALTER ... SET SCHEMA")),
        };
        self.begin_definition(tag)?;
        let Some(found) = self.relation(name)? else {
            if *missing_ok {
                let message = format!("relation \"{}\" does not exist, skipping", name.name);
                self.skip_notice(super::SUCCESSFUL, message);
                return Ok(tag.to_owned());
            }
            return Err(self.missing_relation(name, None));
        };
        self.check_owns_relation(&found, &name.name)?;
        if let Some(wanted) = wanted.filter(|wanted| *wanted != found.kind()) {
            return Err(not_a(&name.name, wanted));
        }
        match &found {
            Relation::Index(..) => {
                let message = format!("cannot change schema of index \"{}\"", name.name);
                let error = PgError::new(state::WRONG_OBJECT_TYPE, message);
                return Err(error.hint("Change the schema of the table instead."));
            }
            Relation::Sequence(sequence) => self.refuse_owned_move(sequence)?,
            Relation::Table(table) => {
                self.refuse_waiting(table, "ALTER TABLE")?;
                check_maker(table)?;
            }
            Relation::View(view) if view.maker != crate::MAKER => {
                let what = format!("SET SCHEMA of view \"{}\" of another dialect", view.name);
                return Err(PgError::unsupported(what));
            }
            Relation::View(_) => {}
        }
        let place = RangeVar { schema: Some(schema.value.clone()), name: name.name.clone(), ..RangeVar::default() };
        let stored = self.creation_schema(&place)?;
        self.check_creation(&stored, false)?;
        self.refuse_temporary_move(found.schema(), &stored)?;
        if stored != found.schema() {
            self.move_relation(&found, &stored)?;
        }
        Ok(tag.to_owned())
    }

    fn refuse_owned_move(&self, sequence: &Sequence) -> Result<()> {
        let Some((table, _)) = self.catalog_of_session().owner(sequence) else { return Ok(()) };
        let message = "cannot move an owned sequence into another schema";
        let error = PgError::new(state::FEATURE_NOT_SUPPORTED, message);
        Err(error.detail(format!("Sequence \"{}\" is linked to table \"{}\".", sequence.name, table.name)))
    }

    /// Moves a relation under the locks of all tables whose definitions change (PS-54).
    fn move_relation(&mut self, found: &Relation, to: &str) -> Result<()> {
        for _ in 0..100 {
            self.refresh();
            let planned = self.planned_move(found, to)?;
            let related = planned.related(&self.shared_definitions());
            self.lock_definitions(&related, TableMode::AccessExclusive)?;
            self.refresh();
            let now = self.planned_move(found, to)?;
            let needed = now.related(&self.shared_definitions());
            if needed.all().all(|table| related.all().any(|known| known.id == table.id)) {
                return self.carry_out_move(&now, &needed, to);
            }
        }
        Err(PgError::new(state::LOCK_NOT_AVAILABLE, "canceling statement due to lock timeout"))
    }

    /// Finds what moves with a relation and which texts change, in the definitions that the session sees.
    fn planned_move(&mut self, found: &Relation, to: &str) -> Result<Move> {
        let gone = |name: &str| PgError::new(state::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist"));
        let catalog = self.catalog_of_session();
        let (mut moved, mut sequences) = (MovedRelations::new(found.schema(), to), Vec::new());
        let relation = match found {
            Relation::Table(table) | Relation::Index(table, _) => {
                let known = catalog.table(&table.schema, &table.name).ok().filter(|known| known.id == table.id);
                let table = known.ok_or_else(|| gone(&table.name))?.clone();
                moved.add_table(&table);
                let schema = catalog.schema(&table.schema)?;
                let owned = schema.sequences.values().filter(|sequence| sequence.owned_by == Some(table.id));
                sequences.extend(owned.cloned());
                sequences.sort_by_key(|sequence: &Arc<Sequence>| sequence.id);
                sequences.iter().for_each(|sequence| moved.add(sequence.id, &sequence.name));
                Relation::Table(table)
            }
            Relation::View(view) => {
                let known = catalog.view(&view.schema, &view.name).filter(|known| known.id == view.id);
                let view = known.ok_or_else(|| gone(&view.name))?.clone();
                moved.add(view.id, &view.name);
                Relation::View(view)
            }
            Relation::Sequence(sequence) => {
                let known = catalog.sequence(&sequence.schema, &sequence.name).filter(|known| known.id == sequence.id);
                let sequence = known.ok_or_else(|| gone(&sequence.name))?.clone();
                moved.add(sequence.id, &sequence.name);
                Relation::Sequence(sequence)
            }
        };
        self.refuse_taken_names(&relation, &moved, to)?;
        let own = match &relation {
            Relation::Table(table) => Some(table.id),
            _ => None,
        };
        let tables = self.texts_of_tables(&moved, own)?;
        let views = self.texts_of_views(&moved)?;
        self.refuse_texts_of_domains(&moved)?;
        Ok(Move { relation, sequences, tables, views })
    }

    /// Fails if a name is taken in the schema to which the relations go.
    fn refuse_taken_names(&mut self, relation: &Relation, moved: &MovedRelations, to: &str) -> Result<()> {
        let schema = self.catalog_of_session().schema(to)?.clone();
        let shown = schema_of(to);
        for (nth, name) in moved.names().enumerate() {
            if has_relation(&schema, name) {
                let message = format!("relation \"{name}\" already exists in schema \"{shown}\"");
                return Err(PgError::new(state::DUPLICATE_TABLE, message));
            }
            // The type of its rows moves too.
            let has_row_type = nth == 0 && !matches!(relation, Relation::Sequence(_));
            if has_row_type && schema.types.contains_key(name) {
                let message = format!("type \"{name}\" already exists in schema \"{shown}\"");
                return Err(PgError::new(state::DUPLICATE_OBJECT, message));
            }
        }
        Ok(())
    }

    /// Returns the texts that change in definitions of tables. `own`: the number of the table that moves.
    fn texts_of_tables(&mut self, moved: &MovedRelations, own: Option<u64>) -> Result<Vec<(Arc<Table>, NewTexts)>> {
        let mut changed = Vec::new();
        let mut tables = self.tables_of_database();
        tables.retain(|table| table.maker == crate::MAKER);
        for table in tables {
            let mut texts = Vec::new();
            for (at, column) in table.columns.iter().enumerate() {
                let (text, place, kind) = match (&column.generated, &column.default) {
                    (Some(generated), _) => (&generated.text, TextPlace::Generated(at), TableExpression::Generated),
                    (None, Default::Expression(text)) => (text, TextPlace::Default(at), TableExpression::Default),
                    (None, _) => continue,
                };
                // The predicate of an index is a condition, and a part of one has no column that it is assigned to.
                let is_predicate = table.indexes.iter().any(|index| index.predicate == Some(at));
                let (kind, column) = match column.is_hidden() {
                    true if is_predicate => (TableExpression::IndexPredicate, None),
                    true => (TableExpression::IndexPart, None),
                    false => (kind, Some(at)),
                };
                texts.push((place, text, kind, column));
            }
            for (nth, check) in table.checks.iter().enumerate() {
                texts.push((TextPlace::Check(nth), &check.text, TableExpression::Check, None));
            }
            let mut new = Vec::new();
            for (place, text, kind, column) in texts {
                let sites = self.with_environment(&[], |environment, ctx| {
                    bind::names_in_definition(environment, ctx, (&table, text), kind, column)
                });
                // A text that can no longer be bound names nothing.
                let Ok(sites) = sites else { continue };
                if let Some(text) = self.with_moved_names(text, &sites, moved, own == Some(table.id))? {
                    new.push((place, text));
                }
            }
            if let Some(view) = view_of(&table)
                && let Some(text) = self.moved_text_of_view(&view, moved)?
            {
                new.push((TextPlace::Query, text));
            }
            if !new.is_empty() {
                changed.push((table, new));
            }
        }
        Ok(changed)
    }

    /// Returns the texts of views that change; temporary ones among them.
    fn texts_of_views(&mut self, moved: &MovedRelations) -> Result<Vec<(Arc<View>, String)>> {
        let catalog = self.catalog_of_session();
        let own = catalog.temporary().into_iter().flat_map(|schema| schema.views.values().cloned());
        let mut views: Vec<Arc<View>> = own.collect();
        views.extend(self.views_of_database());
        // Those of tables are among the texts of tables.
        views
            .retain(|view| self.catalog_of_session().view(&view.schema, &view.name).is_some_and(|of| of.id == view.id));
        views.sort_by_key(|view| view.id);
        views.dedup_by_key(|view| view.id);
        let mut changed = Vec::new();
        for view in views {
            if let Some(text) = self.moved_text_of_view(&view, moved)? {
                changed.push((view, text));
            }
        }
        Ok(changed)
    }

    fn moved_text_of_view(&mut self, view: &View, moved: &MovedRelations) -> Result<Option<String>> {
        let Some(raw) = self.parse_text(&view.text)?.pop() else { return Ok(None) };
        match self.names_in_view(view, &raw) {
            Ok(sites) => self.with_moved_names(&view.text, &sites, moved, false),
            // A view that can no longer be bound reads nothing.
            Err(_) => Ok(None),
        }
    }

    /// Fails if a default or a check of a domain names what moves.
    fn refuse_texts_of_domains(&mut self, moved: &MovedRelations) -> Result<()> {
        for ty in self.catalog_of_session().user_types().cloned().collect::<Vec<_>>() {
            let TypeDefinition::Domain(domain) = &ty.definition else { continue };
            let over = Arc::new(value_table(&ty.schema, VALUE, domain));
            let default = domain.default.iter().map(|text| (text, TableExpression::Default, Some(0)));
            let checks = domain.checks.iter().map(|check| (&check.text, TableExpression::Check, None));
            for (text, kind, column) in default.chain(checks) {
                let sites = self.with_environment(&[], |environment, ctx| {
                    bind::names_in_definition(environment, ctx, (&over, text), kind, column)
                });
                if let Ok(sites) = sites
                    && self.with_moved_names(text, &sites, moved, false)?.is_some()
                {
                    let what = format!("SET SCHEMA of a relation that the domain \"{}\" names", ty.name);
                    return Err(PgError::unsupported(what));
                }
            }
        }
        Ok(())
    }

    fn carry_out_move(&mut self, planned: &Move, related: &RelatedTables, to: &str) -> Result<()> {
        let db = self.database().clone();
        let mut writing = self.write(&db)?;
        let own = planned.table().map(|table| table.id);
        match &planned.relation {
            Relation::Table(table) | Relation::Index(table, _) => {
                let old = writing.snapshot.table(&table.schema, &table.name)?.clone();
                let mut new = old.copy();
                let texts = planned.tables.iter().find(|(known, _)| known.id == old.id);
                texts.into_iter().for_each(|(_, texts)| put_texts(&mut new, texts));
                new.schema = to.to_owned();
                follow_names(&mut writing, &old, &mut new, &[], |a, b| a == b)?;
                writing.forget_name(&old)?;
                self.check_children(&new, &writing.snapshot)?;
                writing.put_table(new)?;
                for sequence in &planned.sequences {
                    move_sequence(&mut writing, sequence, to)?;
                }
                self.touch(&mut writing, &related.tied)?;
            }
            Relation::View(view) => {
                writing.take_view_out(view)?;
                writing.put_view(View { schema: to.to_owned(), ..view.copy() })?;
            }
            Relation::Sequence(sequence) => move_sequence(&mut writing, sequence, to)?,
        }
        for (table, texts) in planned.tables.iter().filter(|(table, _)| Some(table.id) != own && !table.temporary) {
            let current = writing.snapshot.table(&table.schema, &table.name)?.clone();
            let mut new = current.copy();
            put_texts(&mut new, texts);
            writing.put_table(new)?;
        }
        for (view, text) in planned.views.iter().filter(|(view, _)| !view.temporary) {
            writing.put_view(View { text: text.clone(), ..view.copy() })?;
        }
        self.finish(writing)?;
        self.look_anew();
        self.change_temporary_texts(planned)?;
        self.look_anew();
        Ok(())
    }

    /// Changes the texts of the session's temporary objects.
    fn change_temporary_texts(&mut self, planned: &Move) -> Result<()> {
        let tables: Vec<_> = planned.tables.iter().filter(|(table, _)| table.temporary).collect();
        let views: Vec<_> = planned.views.iter().filter(|(view, _)| view.temporary).collect();
        if tables.is_empty() && views.is_empty() {
            return Ok(());
        }
        let db = self.database().clone();
        let mut writing = self.write_temporary(&db)?;
        for (table, texts) in tables {
            let current = writing.snapshot.table(&table.schema, &table.name)?.clone();
            let mut new = current.copy();
            put_texts(&mut new, texts);
            writing.put_table(new)?;
        }
        for (view, text) in views {
            writing.put_view(View { text: text.clone(), ..view.copy() })?;
        }
        self.finish(writing)
    }
}

fn put_texts(table: &mut Table, texts: &[(TextPlace, String)]) {
    for (place, text) in texts {
        match place {
            TextPlace::Default(at) => table.columns[*at].default = Default::Expression(text.clone()),
            TextPlace::Generated(at) => {
                if let Some(generated) = &mut table.columns[*at].generated {
                    generated.text.clone_from(text);
                }
            }
            TextPlace::Check(nth) => table.checks[*nth].text.clone_from(text),
            TextPlace::Query => {
                if let Some(query) = &mut table.query {
                    query.text.clone_from(text);
                }
            }
        }
    }
}

fn move_sequence(writing: &mut Writing<'_>, sequence: &Sequence, to: &str) -> Result<()> {
    writing.forget_sequence_name(sequence)?;
    let mut moved = sequence.clone();
    to.clone_into(&mut moved.schema);
    writing.alter_sequence(moved, None)?;
    Ok(())
}
