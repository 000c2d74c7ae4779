//! The objects that depend on a type: columns of it, and texts of definitions that name it or have values of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use query::catalog::object_id::ObjectId;
use query::catalog::table::{self, Table};
use query::catalog::user_type::{TypeDefinition, UserType};
use query::catalog::view::View;
use query::types::TypeId;

use crate::bind::domain::{VALUE, value_table};
use crate::bind::{self, TableExpression};
use crate::define::domain::is_over;
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

/// The objects among which dependents are looked for.
#[derive(Clone, Copy)]
struct DependentCandidates<'c> {
    tables: &'c [Arc<Table>],
    domains: &'c [Arc<UserType>],
    composites: &'c [Arc<UserType>],
    views: &'c [Arc<View>],
}

/// The objects that depend on types that are to be dropped.
#[derive(Default)]
pub(super) struct Dependents {
    /// Parts of tables, by their names.
    parts: Vec<(Arc<Table>, DependentPart, String)>,
    views: Vec<Arc<View>>,
    /// Domains over a type.
    domains: Vec<Arc<UserType>>,
    /// Attributes of composite types, by their names.
    attributes: Vec<(Arc<UserType>, String)>,
    /// Checks of domains, by their names.
    domain_checks: Vec<(Arc<UserType>, String)>,
    /// All of them, as messages show them.
    pub lines: Vec<Dependence>,
}

/// Adds the attributes of a composite type that have a type, or are arrays of it; as of tables, the last one first.
fn attributes_of(composite: &Arc<UserType>, ty: &UserType, place: usize, found: &mut Dependents) {
    let Some(number) = ty.numbers.get(place).map(|number| number.0) else { return };
    let shown = |number: u32| registry::format_type(number, None);
    let fields = composite.row().into_iter().flat_map(|row| row.fields.iter().rev());
    for field in fields.filter(|field| field.number == number) {
        let object = format!("column {} of composite type {}", field.name, shown(user::oid_of(composite)));
        found.lines.push(Dependence { object, on: format!("type {}", shown(number)) });
        found.attributes.push((composite.clone(), field.name.to_string()));
    }
}

impl Dependents {
    pub fn is_empty(&self) -> bool {
        let Dependents { parts, views, domains, attributes, domain_checks, lines: _ } = self;
        let has_types = !domains.is_empty() || !attributes.is_empty() || !domain_checks.is_empty();
        parts.is_empty() && views.is_empty() && !has_types
    }
}

/// Returns whether the text of a definition may name a relation or its row type.
fn may_name(text: &str, name: &str) -> bool {
    text.contains(name) || name.contains('"') || text.contains("U&") || text.contains("u&")
}

impl Session {
    /// Returns whether anything may depend on the row types of relations, but for dropped objects and views, which depend on the relation itself.
    pub(super) fn may_have_users(&self, types: &[Arc<UserType>], gone: &Gone) -> bool {
        let numbers: Vec<TypeId> = types.iter().flat_map(|ty| ty.numbers.iter().copied()).collect();
        let containing = self.catalog.types_containing(&numbers);
        let may_name = |text: &str| types.iter().any(|ty| may_name(text, &ty.name));
        let without: BTreeSet<ObjectId> = gone.tables.iter().map(|table| table.id).collect();
        let remains = |table: &&Arc<Table>| !without.contains(&table.id);
        let mut tables = self.catalog.schemas.values().flat_map(|schema| schema.tables.values()).filter(remains);
        let of_table = |table: &Arc<Table>| {
            let of_column = |column: &table::TableColumn| {
                let is_named = matches!(&column.default, table::Default::Expression(text) if may_name(text));
                is_named || containing.contains(&column.ty.id)
            };
            table.columns.iter().any(of_column) || table.checks.iter().any(|check| may_name(&check.text))
        };
        let of_type = |over: &Arc<UserType>| match &over.definition {
            TypeDefinition::Domain(domain) => {
                let default = domain.default.as_deref().into_iter();
                default.chain(domain.checks.iter().map(|check| &*check.text)).any(may_name)
            }
            _ => false,
        };
        let has_type = |over: &Arc<UserType>| over.numbers.iter().any(|number| containing.contains(number));
        tables.any(of_table) || self.catalog.user_types().any(|over| has_type(over) || of_type(over))
    }

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
        let Dependents { parts, views, domains, attributes, domain_checks, lines: _ } = dependents;
        let mut gone = Gone::default();
        views.iter().for_each(|view| self.add_view(&mut gone, view));
        self.drop_all(gone, true, None, &[])?;
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
        for (ty, name) in domain_checks.iter().filter(|(ty, _)| !domains.iter().any(|gone| gone.id == ty.id)) {
            self.drop_domain_check(ty, name)?;
        }
        for (ty, name) in &attributes {
            self.drop_attribute(ty, name)?;
        }
        let db = self.database().clone();
        let mut writing = self.write(&db)?;
        for ty in &domains {
            writing.drop_type(ty)?;
        }
        self.finish(writing)
    }

    /// Finds what depends on types, but for objects of these schemas.
    pub(super) fn dependents(&mut self, types: &[Arc<UserType>], without: &[String]) -> Result<Dependents> {
        self.dependents_apart(types, without, &Gone::default())
    }

    /// Finds the same, but for dropped objects.
    pub(super) fn dependents_apart(
        &mut self,
        types: &[Arc<UserType>],
        without: &[String],
        gone: &Gone,
    ) -> Result<Dependents> {
        let mut found = Dependents::default();
        let is_gone = |id: ObjectId| {
            gone.tables.iter().any(|table| table.id == id) || gone.views.iter().any(|view| view.id == id)
        };
        let mut views = self.views_of_database();
        views.retain(|view| !without.contains(&view.schema) && !is_gone(view.id));
        let mut tables = self.own_tables();
        tables.retain(|table| !without.contains(&table.schema) && !is_gone(table.id));
        let is_dropped = |ty: &UserType| gone.types.iter().any(|gone| gone.id == ty.id);
        let domains: Vec<Arc<UserType>> = self
            .catalog
            .user_types()
            .filter(|ty| !without.contains(&ty.schema) && !is_dropped(ty) && user::domain(ty).is_ok())
            .cloned()
            .collect();
        let mut composites: Vec<Arc<UserType>> = self
            .catalog
            .user_types()
            .filter(|ty| !without.contains(&ty.schema) && !is_dropped(ty) && ty.row().is_some())
            .cloned()
            .collect();
        composites.sort_by_key(|ty| ty.id);
        // As in PostgreSQL, the dependents of the last type come first.
        for ty in types.iter().rev() {
            let all =
                DependentCandidates { tables: &tables, domains: &domains, composites: &composites, views: &views };
            self.dependents_of(ty, types, all, &mut found);
        }
        Ok(found)
    }

    /// Finds what depends on a type, those of its arrays first, then older ones first, each before its own dependents.
    fn dependents_of(
        &mut self,
        ty: &Arc<UserType>,
        dropped: &[Arc<UserType>],
        all: DependentCandidates<'_>,
        found: &mut Dependents,
    ) {
        let DependentCandidates { tables, domains, composites, views } = all;
        let is_new = |found: &Dependents, over: &UserType| {
            !dropped.iter().chain(&found.domains).any(|known| known.id == over.id)
        };
        for place in [1, 0] {
            let over = domains.iter().filter(|over| is_over(over, ty, place));
            let mut over: Vec<&Arc<UserType>> = over.chain(composites).collect();
            over.sort_by_key(|over| over.id);
            let mut over = over.into_iter().peekable();
            for table in tables.iter().map(Some).chain([None]) {
                while let Some(user) = over.next_if(|over| table.is_none_or(|table| over.id < table.id)) {
                    if user.row().is_some() {
                        if !dropped.iter().any(|gone| gone.id == user.id) {
                            attributes_of(user, ty, place, found);
                        }
                    } else if is_new(found, user) {
                        let object = format!("type {}", registry::format_type(user::oid_of(user), None));
                        let number = ty.numbers.get(place).map_or(0, |number| number.0);
                        let on = format!("type {}", registry::format_type(number, None));
                        found.lines.push(Dependence { object, on });
                        found.domains.push(user.clone());
                        self.dependents_of(user, dropped, all, found);
                    }
                }
                let older: Vec<Arc<View>> =
                    views.iter().filter(|view| table.is_some_and(|table| view.id < table.id)).cloned().collect();
                if place == 0 {
                    self.views_over(&older, std::slice::from_ref(ty), false, found);
                }
                if let Some(table) = table {
                    self.parts_of(table, ty, place, found);
                    self.views_over(views, std::slice::from_ref(ty), true, found);
                }
            }
        }
        self.texts_of_domains(ty, dropped, domains, found);
        self.views_over(views, std::slice::from_ref(ty), false, found);
    }

    /// Adds the domains whose defaults, and the checks of domains, that name a type.
    fn texts_of_domains(
        &mut self,
        ty: &Arc<UserType>,
        dropped: &[Arc<UserType>],
        domains: &[Arc<UserType>],
        found: &mut Dependents,
    ) {
        let on = format!("type {}", registry::format_type(user::oid_of(ty), None));
        for domain in domains.iter().filter(|domain| domain.id != ty.id) {
            if dropped.iter().chain(&found.domains).any(|known| known.id == domain.id) {
                continue;
            }
            let shown = registry::format_type(user::oid_of(domain), None);
            for text in self.domain_texts(domain, ty) {
                match text {
                    None => {
                        let object = format!("type {shown}");
                        found.lines.push(Dependence { object, on: on.clone() });
                        found.domains.push(domain.clone());
                    }
                    Some(check) => {
                        found.lines.push(Dependence { object: format!("constraint {check}"), on: on.clone() });
                        found.domain_checks.push((domain.clone(), check));
                    }
                }
            }
        }
    }

    /// Returns the texts of a domain that name a type or have its values: the names of checks, `None` for the default.
    fn domain_texts(&mut self, domain: &UserType, ty: &UserType) -> Vec<Option<String>> {
        let Ok(definition) = user::domain(domain) else { return Vec::new() };
        let over = Arc::new(value_table(&domain.schema, VALUE, definition));
        let mut names = Vec::new();
        if let Some(default) = &definition.default
            && self.read_by(&over, default, TableExpression::Default, Some(0)).1.contains(&ty.id)
        {
            names.push(None);
        }
        for check in &definition.checks {
            if self.read_by(&over, &check.text, TableExpression::Check, None).1.contains(&ty.id) {
                names.push(Some(check.name.clone()));
            }
        }
        names
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
                let object = self.shown_view(view);
                found.lines.push(Dependence { object, on });
                found.views.push(view.clone());
                is_complete = false;
            }
        }
    }

    /// Returns the tables whose definitions are this dialect's, older ones first.
    pub(super) fn own_tables(&mut self) -> Vec<Arc<Table>> {
        let mut tables = self.tables_of_database();
        tables.retain(|table| table.maker == crate::MAKER && table.query.is_none());
        tables.sort_by_key(|table| table.id);
        tables
    }

    /// Adds the parts of a table that depend on types. Those that go with a column are left out.
    fn parts_of(&mut self, table: &Arc<Table>, ty: &Arc<UserType>, place: usize, found: &mut Dependents) {
        let types = std::slice::from_ref(ty);
        let number = ty.numbers.get(place).copied();
        let shown = self.shown_relation(&table.schema, &table.name);
        let type_name = |ty: &UserType| registry::format_type(user::oid_of(ty), None);
        let mut add = |part: DependentPart, name: &str, object: String, on: String| {
            found.parts.push((table.clone(), part, name.to_owned()));
            found.lines.push(Dependence { object, on });
        };
        // PostgreSQL shows the last column first.
        for column in table.columns.iter().rev().filter(|column| !column.is_hidden()) {
            if number == Some(column.ty.id) {
                let on = format!("type {}", registry::format_type(column.ty.id.0, None));
                add(DependentPart::Column, &column.name, format!("column {} of table {shown}", column.name), on);
            }
        }
        // The texts come with the type itself.
        if place > 0 {
            return;
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
    pub(super) fn read_by(
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
            return Some(self.shown_view(over));
        }
        // A materialized view is a table of the views that read it.
        if let Some(over) = bindings.tables.iter().find_map(|table| gone.iter().find(|over| over.id == table.id)) {
            return Some(self.shown_view(over));
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
        for domain in self.catalog.user_types().cloned().collect::<Vec<_>>() {
            if domain.id != ty.id && !self.domain_texts(&domain, ty).is_empty() {
                return refused(format!("type {}", registry::format_type(user::oid_of(&domain), None)));
            }
        }
        for view in self.views_of_database() {
            if self.bound_view(&view).is_some_and(|(_, used)| used.contains(&ty.id)) {
                let shown = self.shown_view(&view);
                return refused(shown);
            }
        }
        Ok(())
    }
}
