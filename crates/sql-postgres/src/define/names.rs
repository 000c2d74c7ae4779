//! Relations by name: which object a name in a statement means, along `search_path`.

use std::borrow::Cow;
use std::sync::Arc;

use query::catalog::schema_name::SchemaName;
use query::catalog::sequence::Sequence;
use query::catalog::table::Table;
use query::catalog::user_type::UserType;
use query::catalog::view::View;
use query::catalog::{Schema, Snapshot};
use syntax::postgres::tree::RangeVar;

use crate::error::{PgError, Result, state};
use crate::rights::object::Object;
use crate::rights::privilege::USAGE;
use crate::session::Session;
use crate::types::row_type;

/// An object of the one name space that tables, views, sequences and indexes share in a schema.
#[derive(Clone, Debug)]
pub enum Relation {
    Table(Arc<Table>),
    View(Arc<View>),
    Sequence(Arc<Sequence>),
    /// `None`: the primary key.
    Index(Arc<Table>, Option<usize>),
}

impl Relation {
    /// Returns the stored name of its schema.
    pub fn schema(&self) -> &str {
        match self {
            Relation::Table(table) | Relation::Index(table, _) => &table.schema,
            Relation::View(view) => &view.schema,
            Relation::Sequence(sequence) => &sequence.schema,
        }
    }

    pub fn is_temporary(&self) -> bool {
        match self {
            Relation::Table(table) | Relation::Index(table, _) => table.temporary,
            Relation::View(view) => view.temporary,
            Relation::Sequence(sequence) => sequence.temporary,
        }
    }

    /// Returns the word that messages use.
    pub fn kind(&self) -> &'static str {
        match self {
            Relation::Table(table) if table.query.is_some() => "materialized view",
            Relation::Table(_) => "table",
            Relation::View(_) => "view",
            Relation::Sequence(_) => "sequence",
            Relation::Index(..) => "index",
        }
    }
}

/// The name by which each session calls its schema of temporary objects.
pub const PG_TEMP: &str = "pg_temp";

/// Returns the stored name of a schema of a database. `None` if it can have none: `pg_temp` before the session's first temporary object.
pub fn stored_in<'n>(snapshot: &'n Snapshot, database: &'n str, schema: &'n str) -> Option<Cow<'n, str>> {
    match schema {
        PG_TEMP => snapshot.temporary_schema.as_deref().map(Cow::Borrowed),
        _ => SchemaName::new(database, schema).map(|name| name.stored()),
    }
}

/// Returns a schema of a database (`stored_in`).
pub fn schema_in<'s>(snapshot: &'s Snapshot, database: &str, schema: &str) -> Option<&'s Arc<Schema>> {
    snapshot.schemas.get(&*stored_in(snapshot, database, schema)?)
}

/// Returns the schemas in which the name of a relation is looked up, in order. That of the session's temporary objects and `pg_catalog` come first, unless the path has them.
pub fn relation_path<'p>(snapshot: &'p Snapshot, path: &'p [String]) -> impl Iterator<Item = &'p str> {
    let is_implicit = move |name: &&str| !path.iter().any(|schema| schema == *name);
    let temporary = snapshot.temporary_schema.as_deref().map(schema_of);
    temporary.into_iter().chain(["pg_catalog"]).filter(is_implicit).chain(path.iter().map(String::as_str))
}

/// Returns a schema's name as definitions have it: `pg_temp` for that of the session's temporary objects.
pub fn schema_shown<'n>(snapshot: &Snapshot, schema: &'n str) -> &'n str {
    match snapshot.temporary_schema.as_deref().map(schema_of) {
        Some(own) if own == schema => PG_TEMP,
        _ => schema,
    }
}

/// Returns whether the name alone of a relation leads to that of this schema, by its name in PostgreSQL.
pub fn is_found_in(snapshot: &Snapshot, database: &str, path: &[String], schema: &str, name: &str) -> bool {
    let has = |known: &str| {
        crate::system::find(known, name).is_some()
            || schema_in(snapshot, database, known).is_some_and(|found| has_relation(found, name))
    };
    relation_path(snapshot, path).find(|known| *known == schema || has(known)) == Some(schema)
}

/// Returns the object of that name in a schema.
pub fn find(schema: &Schema, name: &str) -> Option<Relation> {
    if let Some(table) = schema.tables.get(name) {
        return Some(Relation::Table(table.clone()));
    }
    if let Some(view) = schema.views.get(name) {
        return Some(Relation::View(view.clone()));
    }
    if let Some(sequence) = schema.sequences.get(name) {
        return Some(Relation::Sequence(sequence.clone()));
    }
    schema.tables.values().find_map(|table| {
        if table.primary.is_some() && primary_name(table) == name {
            return Some(Relation::Index(table.clone(), None));
        }
        let at = table.indexes.iter().position(|index| !index.generated && index.name == name)?;
        Some(Relation::Index(table.clone(), Some(at)))
    })
}

/// Returns whether a relation of the schema, or a composite type, has the name.
pub fn has_relation(schema: &Schema, name: &str) -> bool {
    find(schema, name).is_some() || schema.types.get(name).is_some_and(|ty| ty.row().is_some())
}

/// Returns the type that users have defined by that name, in one schema or along a `search_path`, and whether the name is that of its array type.
pub fn find_type(snapshot: &Snapshot, database: &str, schemas: &[String], name: &str) -> Option<(Arc<UserType>, bool)> {
    schemas.iter().filter_map(|schema| stored_in(snapshot, database, schema)).find_map(|schema| {
        let of_element = || name.strip_prefix('_').and_then(|element| snapshot.user_type(&schema, element));
        match snapshot.user_type(&schema, name) {
            Some(ty) => Some((ty.clone(), false)),
            None => of_element().map(|ty| (ty.clone(), true)),
        }
    })
}

/// Returns the type of that name along a `search_path`: one that users have defined, or of the rows of a relation.
pub fn find_any_type(
    snapshot: &Snapshot,
    database: &str,
    schemas: &[String],
    name: &str,
) -> Option<(Arc<UserType>, bool)> {
    schemas.iter().find_map(|schema| {
        let schema = std::slice::from_ref(schema);
        find_type(snapshot, database, schema, name).or_else(|| row_type::find(snapshot, database, schema, name))
    })
}

/// Returns the name of a table's primary key.
pub fn primary_name(table: &Table) -> String {
    crate::error::fault::primary_name(Some(table), &table.name)
}

/// Splits a stored schema's name into that of PostgreSQL's schema.
pub fn schema_of(stored: &str) -> &str {
    SchemaName::of_stored(stored).map_or(stored, |name| name.schema)
}

impl Session {
    /// Returns the catalog's name of a schema of this database.
    pub(crate) fn stored_schema(&self, schema: &str) -> Result<String> {
        match stored_in(&self.catalog, &self.who.database, schema) {
            Some(stored) => Ok(stored.into_owned()),
            None => Err(PgError::new(state::INVALID_SCHEMA_NAME, format!("schema \"{schema}\" does not exist"))),
        }
    }

    /// Returns the definitions that the session sees.
    pub(crate) fn catalog_of_session(&self) -> &Snapshot {
        &self.catalog
    }

    pub(super) fn check_database(&self, name: &RangeVar) -> Result<()> {
        match &name.catalog {
            Some(catalog) if *catalog != self.who.database => {
                let message = format!("cross-database references are not implemented: \"{}\"", name.dotted());
                Err(PgError::new(state::FEATURE_NOT_SUPPORTED, message))
            }
            _ => Ok(()),
        }
    }

    /// Returns the object that a name means; `None` if there is none. An error for a schema that does not exist.
    pub(crate) fn relation(&mut self, name: &RangeVar) -> Result<Option<Relation>> {
        self.refresh();
        self.relation_in(name, &self.catalog.clone())
    }

    pub(crate) fn relation_in(&mut self, name: &RangeVar, snapshot: &Snapshot) -> Result<Option<Relation>> {
        self.check_database(name)?;
        if let Some(schema) = &name.schema {
            let stored = self.stored_schema(schema)?;
            return match snapshot.schemas.get(&stored) {
                Some(found) => {
                    self.check_privileges(&Object::schema(found), USAGE)?;
                    Ok(find(found, &name.name))
                }
                None if crate::system::is_system(schema) => Ok(None),
                None => Err(missing_schema(schema)),
            };
        }
        let path = self.search_path();
        for schema in relation_path(snapshot, &path) {
            if crate::system::find(schema, &name.name).is_some() {
                return Ok(None);
            }
            let found = schema_in(snapshot, &self.who.database, schema).and_then(|schema| find(schema, &name.name));
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Returns the schema in which an object of that name is made, by its stored name: that of temporary objects has it before it is made.
    pub(crate) fn creation_schema(&mut self, name: &RangeVar) -> Result<String> {
        self.check_database(name)?;
        self.refresh();
        if let Some(schema) = &name.schema {
            if schema == PG_TEMP || *schema == self.temporary_schema_name() {
                return self.stored_schema(&self.temporary_schema_name());
            }
            if crate::system::is_system(schema) {
                let message = format!("permission denied to create \"{}\"", name.dotted());
                let error = PgError::new(state::INSUFFICIENT_PRIVILEGE, message);
                return Err(error.detail("System catalog modifications are currently disallowed."));
            }
            let stored = self.stored_schema(schema)?;
            return match self.catalog.schemas.contains_key(&stored) {
                true => Ok(stored),
                false => Err(missing_schema(schema)),
            };
        }
        let path = self.search_path();
        match path.iter().find(|schema| !crate::system::is_system(schema)) {
            Some(schema) => self.stored_schema(schema),
            None => Err(PgError::new(state::INVALID_SCHEMA_NAME, "no schema has been selected to create in")),
        }
    }

    /// Returns the error for a name that means nothing. `kind`: the word of a statement that wants one kind of object.
    pub(crate) fn missing_relation(&self, name: &RangeVar, kind: Option<&str>) -> PgError {
        let shown = match (&name.schema, kind) {
            (Some(schema), None) => format!("{schema}.{}", name.name),
            _ => name.name.clone(),
        };
        PgError::new(state::UNDEFINED_TABLE, format!("{} \"{shown}\" does not exist", kind.unwrap_or("relation")))
    }

    /// Returns the table of that name. An error for none, and for another kind of object.
    pub(crate) fn table_named(&mut self, name: &RangeVar) -> Result<Arc<Table>> {
        match self.relation(name)? {
            Some(Relation::Table(table)) if table.query.is_none() => Ok(table),
            Some(_) => Err(not_a(&name.name, "table")),
            None => Err(self.missing_relation(name, None)),
        }
    }

    /// Returns the table or materialized view of that name. An error for none, and for another kind of object.
    pub(crate) fn stored_named(&mut self, name: &RangeVar) -> Result<Arc<Table>> {
        match self.relation(name)? {
            Some(Relation::Table(table)) => Ok(table),
            Some(_) => Err(not_a(&name.name, "table")),
            None => Err(self.missing_relation(name, None)),
        }
    }

    /// Returns the tables of the database.
    pub(crate) fn tables_of_database(&mut self) -> Vec<Arc<Table>> {
        self.refresh();
        let database = self.who.database.clone();
        let schemas = self
            .catalog
            .schemas
            .values()
            .filter(|schema| SchemaName::of_stored(&schema.name).is_some_and(|name| name.database == database));
        schemas.flat_map(|schema| schema.tables.values().cloned()).collect()
    }
}

pub(crate) fn missing_schema(schema: &str) -> PgError {
    PgError::new(state::INVALID_SCHEMA_NAME, format!("schema \"{schema}\" does not exist"))
}

/// Returns the error for an object of the wrong kind.
pub(crate) fn not_a(name: &str, kind: &str) -> PgError {
    let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    PgError::new(state::WRONG_OBJECT_TYPE, format!("\"{name}\" is not {article} {kind}"))
}
