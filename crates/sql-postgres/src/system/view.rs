//! The definitions that a computed table shows: those of the session's database, as PostgreSQL numbers and names them.

use std::sync::Arc;

use query::catalog::schema_name::SchemaName;
use query::catalog::table::{Default, Index, Part, Table, TableColumn};
use query::catalog::{Schema, Snapshot};
use query::nodes::context::EvalContext;

use crate::define::names::{primary_name, schema_of};
use crate::session::facts::FactsOf as _;
use crate::session::quoted;
use crate::system::oids;
use crate::types::oid::Oid;
use crate::types::{foreign, oid, registry};
use crate::value::Value;

/// The definitions of one database.
pub struct Shown {
    pub snapshot: Arc<Snapshot>,
    pub database: String,
    pub role: String,
}

impl Shown {
    pub fn of(ctx: &mut EvalContext) -> Option<Shown> {
        let facts = ctx.facts();
        let snapshot = facts.db.as_ref()?.catalog().snapshot();
        Some(Shown { snapshot, database: facts.database.clone(), role: facts.role.clone() })
    }

    /// Returns the schemas of the database with their PostgreSQL names.
    pub fn schemas(&self) -> impl Iterator<Item = (&str, &Arc<Schema>)> {
        self.snapshot.schemas.values().filter_map(|schema| {
            let name = SchemaName::of_stored(&schema.name)?;
            (name.database == self.database).then_some((name.schema, schema))
        })
    }

    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.schemas().flat_map(|(_, schema)| schema.tables.values())
    }

    /// Returns the OID of a schema, by its stored name.
    pub fn schema_oid(&self, stored: &str) -> Oid {
        match self.snapshot.schemas.get(stored) {
            Some(schema) => schema_oid(schema),
            None => 0,
        }
    }
}

pub fn schema_oid(schema: &Schema) -> Oid {
    match schema_of(&schema.name) {
        "public" => oids::PUBLIC,
        _ => oids::of_object(schema.id),
    }
}

/// The OID and the modifier of a column's type; those of text for a type that has no PostgreSQL form.
pub fn type_of(column: &TableColumn) -> (Oid, i32) {
    match foreign::is_foreign(&column.ty) {
        true => foreign::type_of(&column.ty).map_or((oid::TEXT, -1), |foreign| (foreign.oid, foreign.typmod)),
        false => (registry::oid_of(&column.ty), registry::typmod_of(&column.ty)),
    }
}

pub fn type_name(column: &TableColumn) -> String {
    let (oid, typmod) = type_of(column);
    registry::format_type(oid, Some(typmod))
}

/// Returns a column's default as SQL; `None` without one.
pub fn default_text(column: &TableColumn, ctx: &mut EvalContext) -> Option<String> {
    if let Some(generated) = &column.generated {
        return Some(generated.text.clone());
    }
    match &column.default {
        Default::None | Default::Dropped => None,
        Default::Expression(text) => Some(text.clone()),
        Default::Now(_) => Some("CURRENT_TIMESTAMP".to_owned()),
        Default::Value(Value::Null) => None,
        Default::Value(value) => {
            let (oid, _) = type_of(column);
            let text = (crate::types::assignment::ASSIGNMENT.text)(value, &column.ty, ctx);
            let is_number = matches!(oid, oid::INT4 | oid::NUMERIC) && !text.starts_with('-') && !text.contains('N');
            Some(match oid {
                _ if is_number => text,
                oid::INT2 | oid::INT8 if !text.starts_with('-') => text,
                oid::BOOL => if text == "t" { "true" } else { "false" }.to_owned(),
                _ => format!("'{}'::{}", text.replace('\'', "''"), registry::format_type(oid, None)),
            })
        }
    }
}

/// Returns the columns that users see with their numbers, from 1.
pub fn columns(table: &Table) -> impl Iterator<Item = (i64, &TableColumn)> {
    table.columns.iter().filter(|column| !column.is_hidden()).enumerate().map(|(nth, column)| (nth as i64 + 1, column))
}

/// Returns the indexes of a table: (OID, name, parts, unique, of the primary key, of a constraint).
pub fn indexes(table: &Table) -> Vec<ShownIndex<'_>> {
    let primary = table.primary.as_ref().map(|parts| ShownIndex {
        oid: oids::of_object(table.primary_id),
        name: primary_name(table),
        parts,
        is_unique: true,
        is_primary: true,
        is_constraint: true,
    });
    let others = table.indexes.iter().filter(|index| crate::define::is_shown(index)).map(|index: &Index| ShownIndex {
        oid: oids::of_object(index.id),
        name: index.name.clone(),
        parts: &index.parts,
        is_unique: index.unique,
        is_primary: false,
        is_constraint: index.is_constraint,
    });
    primary.into_iter().chain(others).collect()
}

pub struct ShownIndex<'t> {
    pub oid: Oid,
    pub name: String,
    pub parts: &'t [Part],
    pub is_unique: bool,
    pub is_primary: bool,
    pub is_constraint: bool,
}

impl ShownIndex<'_> {
    /// Returns the parts as SQL.
    pub fn parts_text(&self, table: &Table) -> String {
        let part = |part: &Part| {
            let mut text = quoted(&table.columns[part.column].name);
            match (part.order.descending, part.order.nulls_first) {
                (false, true) => text.push_str(" NULLS FIRST"),
                (true, true) => text.push_str(" DESC"),
                (true, false) => text.push_str(" DESC NULLS LAST"),
                (false, false) => {}
            }
            text
        };
        self.parts.iter().map(part).collect::<Vec<_>>().join(", ")
    }

    /// Returns the statement that makes the index.
    pub fn definition(&self, table: &Table) -> String {
        let unique = if self.is_unique { "UNIQUE " } else { "" };
        let schema = quoted(schema_of(&table.schema));
        let (name, table_name) = (quoted(&self.name), quoted(&table.name));
        format!("CREATE {unique}INDEX {name} ON {schema}.{table_name} USING btree ({})", self.parts_text(table))
    }
}
