//! The objects that depend on a type: columns of it, and texts of definitions that name it or have values of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use query::catalog::object_id::ObjectId;
use query::catalog::table::{self, Table};
use query::catalog::user_type::UserType;
use query::catalog::view::View;

use crate::bind::{self, TableExpression};
use crate::define::drop::{Dependence, Gone};
use crate::define::names::schema_of;
use crate::error::{PgError, Result, state};
use crate::session::Session;
use crate::types::registry;
use crate::types::user;

/// The part of a table that depends on a type.
#[derive(Clone, Debug)]
enum DependentPart {
    Column,
    /// The default of a column of another type.
    Default,
    Check,
}

/// The objects that depend on types that are to be dropped.
#[derive(Default)]
pub(super) struct Dependents {
    /// Parts of tables, by their names.
    parts: Vec<(Arc<Table>, DependentPart, String)>,
    views: Vec<Arc<View>>,
    /// All of them, as messages show them.
    pub lines: Vec<Dependence>,
}

impl Session {
    /// Drops types and, with `cascade`, what depends on them.
    pub(super) fn drop_types(&mut self, types: &[Arc<UserType>], cascade: bool) -> Result<()> {
        let dependents = self.dependents(types, &[])?;
        if !dependents.lines.is_empty() && !cascade {
            let (message, tail) = match types {
                [only] => {
                    let shown = registry::format_type(user::oid_of(only), None);
                    (format!("cannot drop type {shown}"), "because other objects depend on it")
                }
                _ => ("cannot drop desired object(s)".to_owned(), "because other objects depend on them"),
            };
            let error = PgError::new(state::DEPENDENT_OBJECTS_STILL_EXIST, format!("{message} {tail}"));
            let lines: Vec<String> = dependents.lines.iter().map(Dependence::line).collect();
            return Err(error.detail(lines.join("\n")).hint(super::alter::CASCADE_HINT));
        }
        let objects: Vec<String> = dependents.lines.iter().map(|line| line.object.clone()).collect();
        self.tell_cascade(&objects);
        self.drop_dependents(dependents)?;
        let db = self.database().clone();
        let mut writing = self.write(&db)?;
        for ty in types {
            writing.drop_type(ty)?;
        }
        self.finish(writing)
    }

    /// Drops what depends on types.
    pub(super) fn drop_dependents(&mut self, dependents: Dependents) -> Result<()> {
        let Dependents { parts, views, lines: _ } = dependents;
        self.drop_all(Gone { views, ..Gone::default() }, true, "", &[])?;
        for (table, part, name) in parts {
            let table = self.catalog.table(&table.schema, &table.name)?.clone();
            self.change_table(&table, |session, draft, snapshot| match part {
                DependentPart::Column => session.drop_column(draft, &name, false, true, snapshot),
                DependentPart::Default => {
                    let at = draft.column(&name)?;
                    draft.new.columns[at].default = table::Default::None;
                    Ok(())
                }
                DependentPart::Check => {
                    draft.new.checks.retain(|check| check.name != name);
                    Ok(())
                }
            })?;
        }
        Ok(())
    }

    /// Finds what depends on types, but for objects of these schemas.
    pub(super) fn dependents(&mut self, types: &[Arc<UserType>], without: &[String]) -> Result<Dependents> {
        let mut found = Dependents::default();
        let views: Vec<Arc<View>> =
            self.views_of_database().into_iter().filter(|view| !without.contains(&view.schema)).collect();
        let mut tables = self.own_tables();
        tables.retain(|table| !without.contains(&table.schema));
        // As in PostgreSQL, the dependents of the last type come first.
        for ty in types.iter().rev().map(std::slice::from_ref) {
            for table in &tables {
                self.parts_of(table, ty, &mut found);
                self.views_over(&views, ty, true, &mut found);
            }
            self.views_over(&views, ty, false, &mut found);
        }
        Ok(found)
    }

    /// Adds the views that read the columns found so far and, unless `of_columns` alone are asked for, those that depend on types by themselves; and the views over them.
    fn views_over(&mut self, views: &[Arc<View>], types: &[Arc<UserType>], of_columns: bool, found: &mut Dependents) {
        let columns = found.parts.iter().rev().filter(|(_, part, _)| matches!(part, DependentPart::Column));
        let columns: Vec<(Arc<Table>, String)> =
            columns.map(|(table, _, name)| (table.clone(), name.clone())).collect();
        let mut is_complete = false;
        while !std::mem::replace(&mut is_complete, true) {
            for view in views {
                if found.views.iter().any(|known| known.id == view.id) {
                    continue;
                }
                let Some(on) = self.view_dependence(view, types, of_columns, &columns, &found.views) else { continue };
                let object = format!("view {}", self.shown_relation(&view.schema, &view.name));
                found.lines.push(Dependence { object, on });
                found.views.push(view.clone());
                is_complete = false;
            }
        }
    }

    /// Returns the tables whose definitions are this dialect's, older ones first.
    fn own_tables(&mut self) -> Vec<Arc<Table>> {
        let mut tables = self.tables_of_database();
        tables.retain(|table| table.maker == crate::MAKER);
        tables.sort_by_key(|table| table.id);
        tables
    }

    /// Adds the parts of a table that depend on types. Those that go with a column are left out.
    fn parts_of(&mut self, table: &Arc<Table>, types: &[Arc<UserType>], found: &mut Dependents) {
        let shown = self.shown_relation(&table.schema, &table.name);
        let type_name = |ty: &UserType| registry::format_type(user::oid_of(ty), None);
        let mut add = |part: DependentPart, name: &str, object: String, on: String| {
            found.parts.push((table.clone(), part, name.to_owned()));
            found.lines.push(Dependence { object, on });
        };
        // PostgreSQL shows the last column first.
        for column in table.columns.iter().rev().filter(|column| !column.is_hidden()) {
            if types.iter().any(|ty| ty.numbers.contains(&column.ty.id)) {
                let on = format!("type {}", registry::format_type(column.ty.id.0, None));
                add(DependentPart::Column, &column.name, format!("column {} of table {shown}", column.name), on);
            }
        }
        let is_column = |at: usize| types.iter().any(|ty| ty.numbers.contains(&table.columns[at].ty.id));
        for (at, column) in table.columns.iter().enumerate() {
            let table::Default::Expression(text) = &column.default else { continue };
            let (_, used) = self.read_by(table, text, TableExpression::Default, Some(at));
            if let Some(ty) = types.iter().find(|ty| used.contains(&ty.id) && !is_column(at)) {
                let object = format!("default value for column {} of table {shown}", column.name);
                add(DependentPart::Default, &column.name, object, format!("type {}", type_name(ty)));
            }
        }
        for check in &table.checks {
            let (columns, used) = self.read_by(table, &check.text, TableExpression::Check, None);
            let goes_with_column = columns.into_iter().any(is_column);
            if let Some(ty) = types.iter().find(|ty| used.contains(&ty.id) && !goes_with_column) {
                let object = format!("constraint {} on table {shown}", check.name);
                add(DependentPart::Check, &check.name, object, format!("type {}", type_name(ty)));
            }
        }
    }

    /// Returns the columns that an expression of a table's definition reads, and the types that it names or has values of.
    fn read_by(
        &mut self,
        table: &Arc<Table>,
        text: &str,
        kind: TableExpression,
        column: Option<usize>,
    ) -> (Vec<usize>, BTreeSet<ObjectId>) {
        let bound = self.with_environment(&[], |environment, ctx| {
            bind::bind_definition(environment, ctx, (table, text), kind, column)
        });
        bound.map_or_else(|_| Default::default(), |(expr, types)| (expr.columns(), types))
    }

    /// Returns the object through which a view depends on types.
    fn view_dependence(
        &mut self,
        view: &Arc<View>,
        types: &[Arc<UserType>],
        of_columns: bool,
        columns: &[(Arc<Table>, String)],
        gone: &[Arc<View>],
    ) -> Option<String> {
        let (bindings, used) = self.bound_view(view)?;
        if let Some(over) = bindings.views.iter().find(|over| gone.iter().any(|other| other.id == over.id)) {
            return Some(format!("view {}", self.shown_relation(&over.schema, &over.name)));
        }
        if let Some(ty) = types.iter().find(|ty| used.contains(&ty.id)) {
            return (!of_columns).then(|| format!("type {}", registry::format_type(user::oid_of(ty), None)));
        }
        for (table, column) in columns {
            if self.reads_column(view, table, column) {
                let table = self.shown_relation(&table.schema, &table.name);
                return Some(format!("column {column} of table {table}"));
            }
        }
        None
    }

    /// Returns whether the text of a view reads a column of a table.
    pub(super) fn reads_column(&mut self, view: &View, table: &Table, column: &str) -> bool {
        let read = crate::deparse::relations_of(view, self.context()).unwrap_or_default();
        let columns: Vec<_> = table.columns.iter().filter(|column| !column.is_hidden()).collect();
        read.iter().any(|(schema, name, numbers)| {
            let is_table = *name == table.name && *schema == schema_of(&table.schema);
            is_table && numbers.iter().any(|at| columns.get(*at).is_some_and(|known| known.name == column))
        })
    }

    /// Fails if a text of a definition names the type or has its values: the text would lose its meaning.
    pub(super) fn refuse_texts_of(&mut self, ty: &Arc<UserType>, what: &str) -> Result<()> {
        let refused = |object: String| {
            let name = registry::format_type(user::oid_of(ty), None);
            Err(PgError::unsupported(format!("{what} of type {name}, which {object} names,")))
        };
        for table in self.own_tables() {
            let shown = self.shown_relation(&table.schema, &table.name);
            for (at, column) in table.columns.iter().enumerate() {
                let (text, kind) = match (&column.default, &column.generated) {
                    (_, Some(generated)) => (&generated.text, TableExpression::Generated),
                    (table::Default::Expression(text), None) => (text, TableExpression::Default),
                    _ => continue,
                };
                if self.read_by(&table, text, kind, Some(at)).1.contains(&ty.id) {
                    return refused(format!("default value for column {} of table {shown}", column.name));
                }
            }
            for check in &table.checks {
                if self.read_by(&table, &check.text, TableExpression::Check, None).1.contains(&ty.id) {
                    return refused(format!("constraint {} on table {shown}", check.name));
                }
            }
        }
        for view in self.views_of_database() {
            if self.bound_view(&view).is_some_and(|(_, used)| used.contains(&ty.id)) {
                return refused(format!("view {}", self.shown_relation(&view.schema, &view.name)));
            }
        }
        Ok(())
    }
}
