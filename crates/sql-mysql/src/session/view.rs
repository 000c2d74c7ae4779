//! CREATE, ALTER, DROP and SHOW CREATE VIEW.
//!
//! CREATE VIEW binds the query once with the creator's privileges. The stored text is qualified with schemas and has
//! column lists for `*`. SHOW CREATE VIEW omits the schema where it is the current database (MY-20), so that a restored
//! dump reads the tables there.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use syntax::tree::{CreateView, ViewAlgorithm, ViewCheck};

use crate::batch::Row;
use crate::bind::view::{Note, Noted};
use crate::bind::{Bind, BindEnvironment};
use crate::error::{self, Result, SqlError};
use crate::parse::lexical::quoted_name as name;
use crate::parse::statement::Name;
use crate::parse::view::query;
use crate::rights::{Privileges, Rights};
use crate::scalar::modes::SqlMode;
use crate::scalar::state::StateOf as _;
use crate::session::definition_parser::check_name;
use crate::session::foreign::check_rows_unused;
use crate::session::{Outcome, Session, text_column};
use crate::system::text;
use crate::types::{CollationName as _, Column, MysqlType as _, Type};
use crate::value::Value;
use query::catalog::table::Table;
use query::catalog::view::{Algorithm, CheckOption, View};
use query::nodes::context::Level;
use query::nodes::relation::Origin;

/// Replaces these ranges of the text. They come in any order, and repeatedly from a block that was bound twice.
fn rewritten<'n>(text: &str, places: impl Iterator<Item = (&'n Range<usize>, &'n str)>) -> String {
    let mut places: Vec<_> = places.collect();
    // From the end, so that earlier ranges stay valid.
    places.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    places.dedup();
    let mut text = text.to_owned();
    for (range, with) in places {
        text.replace_range(range.clone(), with);
    }
    text
}

fn algorithm(algorithm: ViewAlgorithm) -> Algorithm {
    match algorithm {
        ViewAlgorithm::Undefined => Algorithm::Undefined,
        ViewAlgorithm::Merge => Algorithm::Merge,
        ViewAlgorithm::Temptable => Algorithm::Temptable,
    }
}

fn check_option(check: ViewCheck) -> CheckOption {
    match check {
        ViewCheck::None => CheckOption::None,
        ViewCheck::Local => CheckOption::Local,
        ViewCheck::Cascaded => CheckOption::Cascaded,
    }
}

/// Properties of a view found while binding its query.
struct Found {
    text: String,
    columns: Vec<String>,
    types: Vec<Type>,
    over: Option<(String, String)>,
    updatable: bool,
}

impl Session {
    /// Creates or alters a view. `text` is the whole statement's.
    pub(super) fn create_view(&mut self, create: &CreateView, text: &str) -> Result<Outcome> {
        let CreateView {
            or_replace,
            alter,
            algorithm: of_algorithm,
            definer,
            invoker,
            name,
            columns: _,
            query: _,
            check,
        } = create;
        let (schema, view_name) = self.full_name(name)?;
        check_name(&view_name, &error::WRONG_TABLE_NAME)?;
        self.refuse_system(&schema)?;
        self.catalog.schema(&schema)?;
        self.check_may_come(&schema, &view_name)?;
        let definer = match definer {
            None => self.account_state.account.clone(),
            Some(name) => self.key_of(name),
        };
        if definer != self.account_state.account {
            self.rights.need_global(Privileges::SUPER | Privileges::SET_USER_ID)?;
            self.may_change(&self.all_accounts(), std::iter::once(&definer))?;
            if self.db.engine().accounts().get(&definer).is_none() {
                let who = self.who_of(&definer);
                self.ctx.warnings.push(Level::Note, error::NO_SUCH_USER.with(&[&who.user, &who.host]));
            }
        }
        let found = self.bound_view(create, text, &schema, &view_name)?;
        let is_simple = found.updatable;
        if *check != ViewCheck::None && !is_simple {
            return Err(error::VIEW_NONUPD_CHECK.with(&[&schema, &view_name]));
        }
        let db = self.db.clone();
        let _defining = self.define()?;
        let mut writing = self.core.begin_own_change(db.instance(), self.mdl_wait());
        if writing.snapshot.table(&schema, &view_name).is_ok() {
            return Err(if *alter || *or_replace {
                error::WRONG_OBJECT.with(&[&schema, &view_name, &"VIEW"])
            } else {
                error::TABLE_EXISTS.with(&[&view_name])
            });
        }
        let old = writing.snapshot.view(&schema, &view_name).cloned();
        match &old {
            Some(_) if !or_replace && !alter => return Err(error::TABLE_EXISTS.with(&[&view_name])),
            None if *alter => return Err(error::NO_SUCH_TABLE.with(&[&schema, &view_name])),
            _ => {}
        }
        let id = writing.new_id();
        writing.put_view(View {
            id,
            maker: crate::other_dialects::MAKER,
            schema,
            name: view_name,
            columns: found.columns,
            types: found.types,
            text: found.text,
            definer,
            invoker: *invoker,
            algorithm: algorithm(*of_algorithm),
            check: check_option(*check),
            modes: self.ctx.sql_mode().to_string(),
            charset: self.values.word("character_set_client"),
            collation: self.settings.collation.name().to_owned(),
            over: found.over,
            ..View::default()
        })?;
        self.finish(writing)?;
        if let Some(old) = old {
            old.gone.store(true, Ordering::Release);
        }
        Ok(Outcome::done())
    }

    /// Binds the query and completes its text.
    fn bound_view(&mut self, create: &CreateView, text: &str, schema: &str, view_name: &str) -> Result<Found> {
        // Parsed by itself, so that spans refer to its own text.
        let text = create.query.span.of(text).trim();
        let (tree, parameters) = query(text, self.ctx.sql_mode())?;
        let environment = self.bind_environment();
        let mut bind = Bind::new(&environment);
        (bind.recorder, bind.text) = (Some(Vec::new()), text);
        let bound = bind.query(&tree)?;
        if parameters > 0 || bind.uses_variables {
            return Err(error::VIEW_SELECT_VARIABLE.bare());
        }
        if bind.views.iter().any(|view| view.schema == schema && view.name == view_name) {
            return Err(error::VIEW_RECURSIVE.with(&[&schema, &view_name]));
        }
        super::temporary::refuse_in_view(&bind.tables)?;
        let notes = bind.recorder.take().unwrap_or_default();
        drop(bind);
        let mut columns: Vec<String> = bound.columns.iter().map(|column| column.name.clone()).collect();
        if !create.columns.is_empty() {
            if create.columns.len() != columns.len() {
                return Err(error::VIEW_WRONG_LIST.bare());
            }
            columns = create.columns.iter().map(|column| column.value.clone()).collect();
        }
        let twice = |at: &usize| columns[..*at].iter().any(|column| column.eq_ignore_ascii_case(&columns[*at]));
        if let Some(at) = (0..columns.len()).find(twice) {
            return Err(error::DUP_FIELDNAME.with(&[&columns[at]]));
        }
        for (at, column) in columns.iter_mut().enumerate().filter(|(_, column)| column.chars().count() > 64) {
            *column = format!("Name_exp_{}", at + 1);
        }
        let completed = notes.iter().filter_map(|note| match &note.what {
            Noted::Bare(with) | Noted::Star(with) => Some((&note.range, &**with)),
            Noted::SchemaOfTable | Noted::SchemaOfColumn | Noted::SchemaNeeded => None,
        });
        let text = rewritten(text, completed);
        let view = View {
            schema: schema.to_owned(),
            name: view_name.to_owned(),
            columns: columns.clone(),
            text: text.clone(),
            invoker: true,
            algorithm: algorithm(create.algorithm),
            check: check_option(create.check),
            modes: self.ctx.sql_mode().to_string(),
            ..View::default()
        };
        let (over, updatable) = self.is_updatable(view)?;
        let types = bound.columns.iter().map(|column| column.ty.clone()).collect();
        Ok(Found { text, columns, types, over, updatable })
    }

    /// Returns the base table or view, and whether the view is updatable. An error if its text is invalid.
    fn is_updatable(&mut self, view: View) -> Result<(Option<(String, String)>, bool)> {
        let environment = self.bind_environment();
        let mut bind = Bind::new(&environment);
        let shown = view.name.clone();
        bind.open_scope();
        bind.change_through_views();
        bind.view(&Arc::new(view), &shown)?;
        let at = bind.scope().tables.len() - 1;
        let count = bind.scope().tables[at].columns.len();
        let Origin::View(merged) = bind.scope().tables[at].origin.clone() else { return Ok((None, false)) };
        let below = merged.over.as_ref().map(|(below, _)| &bind.scopes[0].tables[*below]);
        let below = below.filter(|table| !matches!(table.origin, Origin::System(_)));
        let over = below.and_then(|table| Some((table.schema.clone(), table.columns.first()?.org_table.clone())));
        let over = over.filter(|(schema, _)| !schema.is_empty());
        match bind.through(at, Privileges::NONE, &[]) {
            Ok(through) => Ok((over, through.columns.iter().take(count).any(Option::is_some))),
            Err(error) if error::NON_UPDATABLE_TABLE.is(&error) => Ok((over, false)),
            Err(error) => Err(error),
        }
    }

    pub(super) fn drop_views(&mut self, names: &[Name], if_exists: bool) -> Result<Outcome> {
        self.check_unlocked()?;
        let (mut found, mut missing): (Vec<Arc<View>>, Vec<String>) = (Vec::new(), Vec::new());
        for name in names {
            let (schema, name) = self.full_name(name)?;
            if self.catalog.table(&schema, &name).is_ok() {
                return Err(error::WRONG_OBJECT.with(&[&schema, &name, &"VIEW"]));
            }
            match self.catalog.view(&schema, &name) {
                Some(view) => found.push(view.clone()),
                None => missing.push(format!("{schema}.{name}")),
            }
        }
        if !missing.is_empty() {
            let error = error::BAD_TABLE.with(&[&missing.join(",")]);
            if !if_exists {
                return Err(error);
            }
            self.note(error);
        }
        let db = self.db.clone();
        let _defining = self.define()?;
        let mut writing = self.core.begin_own_change(db.instance(), self.mdl_wait());
        for view in &found {
            if let Some(view) = writing.snapshot.view(&view.schema, &view.name).cloned() {
                check_rows_unused(&writing.snapshot, &BTreeSet::from([view.id]))?;
                writing.drop_view(&view)?;
            }
        }
        self.finish(writing)?;
        found.iter().for_each(|view| view.gone.store(true, Ordering::Release));
        Ok(Outcome::done())
    }

    /// Returns the tables that a view reads, at any depth, for LOCK TABLES. Privileges are not checked.
    pub(super) fn tables_of_view(&mut self, view: &Arc<View>) -> Result<Vec<Arc<Table>>> {
        let all = Rights { global: Privileges::OF_SERVER, ..Rights::clone(&self.rights) };
        let environment = self.bind_environment();
        let mut bind = Bind::new(&environment);
        bind.rights = Arc::new(all);
        bind.open_scope();
        bind.view(view, &view.name)?;
        Ok(std::mem::take(&mut bind.tables))
    }

    /// Returns a view's current columns.
    pub(super) fn columns_of_view(&mut self, view: &Arc<View>) -> Result<Vec<Column>> {
        let environment = self.bind_environment();
        columns(view, &environment)
    }

    pub(super) fn show_create_view(&mut self, of: &Name) -> Result<(Vec<Column>, Vec<Row>)> {
        let (schema, view_name) = self.full_name(of)?;
        let Some(view) = self.catalog.view(&schema, &view_name).cloned() else {
            self.catalog.table(&schema, &view_name)?;
            return Err(error::WRONG_OBJECT.with(&[&schema, &view_name, &"VIEW"]));
        };
        self.rights.need_table(&schema, &view_name, Privileges::SHOW_VIEW | Privileges::SELECT)?;
        if view.maker != crate::other_dialects::MAKER {
            return Err(crate::other_tables::refused("view", &view.name));
        }
        let columns = ["View", "Create View", "character_set_client", "collation_connection"].map(text_column);
        let sql = self.view_text(&view);
        Ok((columns.into(), vec![vec![text(&view.name), text(sql), text(&view.charset), text(&view.collation)]]))
    }

    /// Returns the rewritable ranges in a view's text, bound without privilege checks. None: it cannot be bound.
    fn notes(&self, text: &str, mode: SqlMode) -> Option<Vec<Note>> {
        let (tree, _) = query(text, mode).ok()?;
        let environment = BindEnvironment { snapshot: self.db.catalog().snapshot(), ..self.bind_environment() };
        let mut bind = Bind::new(&environment);
        bind.rights = Arc::new(Rights { global: Privileges::OF_SERVER, ..Rights::clone(&self.rights) });
        (bind.recorder, bind.text) = (Some(Vec::new()), text);
        bind.query(&tree).ok()?;
        bind.recorder
    }

    /// Returns the view's query without the current database's name. None: the schema is needed.
    fn short_query(&self, view: &View) -> Option<String> {
        let mode = SqlMode::parse(&view.modes).ok()?;
        let notes = self.notes(&view.text, mode)?;
        if notes.iter().any(|note| note.what == Noted::SchemaNeeded) {
            return None;
        }
        let schemas = notes.iter().filter(|note| matches!(note.what, Noted::SchemaOfTable | Noted::SchemaOfColumn));
        let short = rewritten(&view.text, schemas.map(|note| (&note.range, "")));
        let places = |notes: &[Note], of: fn(&Noted) -> bool| {
            let places = notes.iter().filter(|note| of(&note.what)).map(|note| note.range.start);
            places.collect::<BTreeSet<_>>().len()
        };
        // MY-20: a name that resolves differently without its schema is detected here.
        let left_out = places(&notes, |what| *what == Noted::SchemaOfTable);
        let completed = places(&self.notes(&short, mode)?, |what| matches!(what, Noted::Bare(_)));
        (left_out == completed).then_some(short)
    }

    fn view_text(&self, view: &View) -> String {
        let algorithm = match view.algorithm {
            Algorithm::Undefined => "UNDEFINED",
            Algorithm::Merge => "MERGE",
            Algorithm::Temptable => "TEMPTABLE",
        };
        let columns: Vec<String> = view.columns.iter().map(|column| name(column)).collect();
        format!(
            "CREATE ALGORITHM={algorithm} DEFINER={} SQL SECURITY {} VIEW {}{} ({}) AS {}{}",
            self.who_of(&view.definer).quoted(),
            if view.invoker { "INVOKER" } else { "DEFINER" },
            if self.database.as_ref() == Some(&view.schema) { String::new() } else { name(&view.schema) + "." },
            name(&view.name),
            columns.join(","),
            self.short_query(view).as_ref().unwrap_or(&view.text),
            match view.check {
                CheckOption::None => "",
                CheckOption::Local => " WITH LOCAL CHECK OPTION",
                CheckOption::Cascaded => " WITH CASCADED CHECK OPTION",
            }
        )
    }

    pub(super) fn refuse_view(&self, schema: &str, name: &str) -> Result<()> {
        match self.catalog.view(schema, name) {
            None => Ok(()),
            Some(_) => Err(error::WRONG_OBJECT.with(&[&schema, &name, &"BASE TABLE"])),
        }
    }
}

fn columns(view: &Arc<View>, environment: &BindEnvironment<'_>) -> Result<Vec<Column>> {
    let mut bind = Bind::new(environment);
    bind.open_scope();
    bind.view(view, &view.name)?;
    Ok(bind.scope().tables.pop().map(|table| table.columns).unwrap_or_default())
}

/// Formats a view's columns for DESCRIBE. A view over a dropped table has none.
pub(super) fn described(columns: &[Column], full: bool, words: impl Fn(&str) -> String) -> Vec<Row> {
    let row = |column: &Column| {
        let null = text(if column.ty.nullable { "YES" } else { "NO" });
        let (field, ty) = (text(&column.name), text(column.ty.name()));
        if !full {
            return vec![field, ty, null, text(""), Value::Null, text("")];
        }
        let collation = if column.ty.kind().is_text() { text(column.ty.collation.name()) } else { Value::Null };
        vec![field, ty, collation, null, text(""), Value::Null, text(""), text(words(&column.name)), text("")]
    };
    columns.iter().map(row).collect()
}

/// Returns the error for RENAME TABLE of a view.
pub(super) fn unsupported_of_view() -> SqlError {
    SqlError::unsupported("RENAME of a view: drop it and create it anew")
}
