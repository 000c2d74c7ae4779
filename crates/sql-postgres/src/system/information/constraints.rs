//! `table_constraints`, `key_column_usage`, `referential_constraints`, `constraint_column_usage`, `check_constraints`.

use std::sync::Arc;

use datum::Result;
use query::catalog::Schema;
use query::catalog::foreign_key::{Deferral, ForeignKey};
use query::catalog::table::Table;
use query::nodes::context::EvalContext;
use query::nodes::table_function::Give;

use crate::define::names::schema_of;
use crate::deparse::Style;
use crate::rights::object::Object;
use crate::rights::privilege::{ObjectClass, SELECT};
use crate::system::cells::{null, number, text, yes};
use crate::system::view::{Shown, columns, columns_of_check, indexes, schema_oid};
use crate::system::wanted::Wanted;
use crate::system::{catalog, oids};
use crate::types::user;

/// Returns the tables in question with their schemas.
fn tables(shown: &Shown, wanted: &Wanted<'_>) -> Vec<(String, Arc<Schema>, Arc<Table>)> {
    let is_wanted = |table: &Table| wanted.name("table_name").is_none_or(|wanted| wanted == table.name);
    let tables = shown.schemas().flat_map(|(name, schema)| {
        // A right to read alone shows no constraint.
        let is_seen = |table: &Table| shown.sees(&Object::table(table), ObjectClass::Relation.all() & !SELECT);
        let tables = schema.tables.values().filter(|table| is_wanted(table) && is_seen(table));
        tables.map(|table| (name.to_owned(), schema.clone(), table.clone())).collect::<Vec<_>>()
    });
    tables.collect()
}

/// Returns the name of the constraint that the standard sees in NOT NULL.
fn not_null_name(schema: &Schema, table: &Table, nth: i64) -> String {
    format!("{}_{}_{nth}_not_null", schema_oid(schema), oids::of_object(table.id))
}

pub fn table_constraints(wanted: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    for (name, schema, table) in tables(&shown, wanted) {
        let row = |constraint: &str, kind: &str, deferral: Deferral, nulls: Option<bool>| {
            let (database, nulls) = (&shown.database, nulls.map_or(null(), yes));
            let (may_wait, waits) = (deferral != Deferral::Never, deferral == Deferral::Deferred);
            let names = [text(database), text(&name), text(constraint), text(database), text(&name), text(&table.name)];
            names.into_iter().chain([text(kind), yes(may_wait), yes(waits), yes(true), nulls]).collect::<Vec<_>>()
        };
        for index in indexes(&table).iter().filter(|index| index.is_constraint) {
            let (kind, nulls) = match index.is_primary {
                true => ("PRIMARY KEY", None),
                false => ("UNIQUE", Some(!index.nulls_equal)),
            };
            give(row(&index.name, kind, index.deferral, nulls), ctx)?;
        }
        for key in &table.foreign_keys {
            give(row(&key.name, "FOREIGN KEY", key.deferral, None), ctx)?;
        }
        for check in &table.checks {
            give(row(&check.name, "CHECK", Deferral::Never, None), ctx)?;
        }
        for (nth, _) in columns(&table).filter(|(_, column)| !column.ty.nullable) {
            give(row(&not_null_name(&schema, &table, nth), "CHECK", Deferral::Never, None), ctx)?;
        }
    }
    Ok(())
}

pub fn check_constraints(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    for (name, schema) in shown.schemas() {
        for ty in schema.types.values() {
            for check in user::domain(ty).map_or(&[][..], |domain| &domain.checks) {
                let clause = crate::system::view::domain_check_text(ty, check, Style::PLAIN, ctx)?;
                give(vec![text(&shown.database), text(name), text(&check.name), text(format!("({clause})"))], ctx)?;
            }
        }
        for table in schema.tables.values().filter(|table| is_own(&shown, table)) {
            for check in &table.checks {
                let clause = crate::system::view::check_text(table, check, Style::PLAIN, ctx)?;
                give(vec![text(&shown.database), text(name), text(&check.name), text(format!("({clause})"))], ctx)?;
            }
            for (nth, column) in columns(table).filter(|(_, column)| !column.ty.nullable) {
                let constraint = not_null_name(schema, table, nth);
                let clause = format!("{} IS NOT NULL", column.name);
                give(vec![text(&shown.database), text(name), text(constraint), text(clause)], ctx)?;
            }
        }
    }
    Ok(())
}

/// Returns the name of the parent's constraint that a foreign key refers to, and the places of its columns there, from 1.
fn referred(shown: &Shown, key: &ForeignKey) -> Option<(String, Vec<i64>)> {
    let parent = shown.snapshot.table(&key.parent_schema, &key.parent).ok()?;
    let oid = catalog::constraint::index_of_key(parent, key);
    let index = indexes(parent).into_iter().find(|index| index.oid == oid)?;
    let place = |name: &String| {
        let at = index.parts.iter().position(|part| parent.columns[part.column].name == *name);
        at.map_or(0, |at| at as i64 + 1)
    };
    Some((index.name.clone(), key.parent_columns.iter().map(place).collect()))
}

pub fn key_column_usage(wanted: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    for (name, _, table) in tables(&shown, wanted) {
        let row = |constraint: &str, column: usize, nth: usize, place: Option<i64>| {
            let database = &shown.database;
            let names = [text(database), text(&name), text(constraint), text(database), text(&name), text(&table.name)];
            let column = text(&table.columns[column].name);
            names.into_iter().chain([column, number(nth as i64 + 1), place.map_or(null(), number)]).collect::<Vec<_>>()
        };
        for index in indexes(&table).iter().filter(|index| index.is_constraint) {
            for (nth, part) in index.parts.iter().enumerate() {
                give(row(&index.name, part.column, nth, None), ctx)?;
            }
        }
        for key in &table.foreign_keys {
            let places = referred(&shown, key).map_or_else(Vec::new, |(_, places)| places);
            for (nth, column) in key.columns.iter().enumerate() {
                give(row(&key.name, *column, nth, places.get(nth).copied()), ctx)?;
            }
        }
    }
    Ok(())
}

/// Returns whether the current role owns the table.
fn is_own(shown: &Shown, table: &Table) -> bool {
    shown.sees(&Object::table(table), 0)
}

pub fn referential_constraints(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    for (name, schema) in shown.schemas() {
        let tables = schema.tables.values();
        let seen = tables.filter(|table| shown.sees(&Object::table(table), ObjectClass::Relation.all() & !SELECT));
        for key in seen.flat_map(|table| &table.foreign_keys) {
            let unique = referred(&shown, key).map_or(null(), |(name, _)| text(name));
            let database = || text(&shown.database);
            let row = vec![
                database(),
                text(name),
                text(&key.name),
                database(),
                text(schema_of(&key.parent_schema)),
                unique,
                text("NONE"),
                text(key.on_update.name()),
                text(key.on_delete.name()),
            ];
            give(row, ctx)?;
        }
    }
    Ok(())
}

pub fn constraint_column_usage(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    for (name, schema) in shown.schemas() {
        for table in schema.tables.values().filter(|table| is_own(&shown, table)) {
            let row = |(of, used): (&str, &str), column: &str, constraint: &str| {
                let database = &shown.database;
                let names = [text(database), text(of), text(used), text(column)];
                names.into_iter().chain([text(database), text(name), text(constraint)]).collect::<Vec<_>>()
            };
            for index in indexes(table).iter().filter(|index| index.is_constraint) {
                for part in index.parts {
                    give(row((name, &table.name), &table.columns[part.column].name, &index.name), ctx)?;
                }
            }
            for check in &table.checks {
                let used = columns_of_check(table, check, ctx);
                for (_, column) in columns(table).filter(|(nth, _)| used.contains(nth)) {
                    give(row((name, &table.name), &column.name, &check.name), ctx)?;
                }
            }
            for key in &table.foreign_keys {
                for column in &key.parent_columns {
                    give(row((schema_of(&key.parent_schema), &key.parent), column, &key.name), ctx)?;
                }
            }
        }
    }
    Ok(())
}
