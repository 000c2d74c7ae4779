//! `information_schema`: the standard's view of the same definitions.

mod columns;
mod constraints;
mod privileges;

use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::table_function::Give;

use crate::deparse::Style;
use crate::instance::database::POSTGRES;
use crate::rights::object::Object;
use crate::rights::privilege::{CREATE, ObjectClass, USAGE};
use crate::system::cells::{null, number, text, yes};
use crate::system::relations;
use crate::system::view::{Shown, view_text};
use crate::system::wanted::Wanted;

pub use columns::{columns, domain_constraints, domains};
pub use constraints::{
    check_constraints, constraint_column_usage, key_column_usage, referential_constraints, table_constraints,
};
pub use privileges::{
    administrable_role_authorizations, applicable_roles, column_privileges, enabled_roles, role_column_grants,
    role_table_grants, table_privileges,
};

pub fn information_schema_catalog_name(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    match Shown::of(ctx) {
        Some(shown) => give(vec![text(&shown.database)], ctx),
        None => Ok(()),
    }
}

pub fn schemata(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    let system = crate::system::SCHEMAS.into_iter().map(|(name, _)| name);
    let schemas = system.chain(shown.schemas().map(|(name, _)| name));
    for name in schemas {
        let (owner, is_seen) = match shown.schemas().find(|(known, _)| *known == name) {
            None => (POSTGRES.to_owned(), true),
            Some((_, schema)) => {
                let object = Object::schema(schema);
                (shown.owner_name(&object), shown.sees(&object, USAGE | CREATE))
            }
        };
        if is_seen {
            give(vec![text(&shown.database), text(name), text(owner), null(), null(), null(), null()], ctx)?;
        }
    }
    Ok(())
}

pub fn tables(wanted: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    let is_wanted = |name: &str| wanted.name("table_name").is_none_or(|wanted| wanted == name);
    let database = shown.database.clone();
    let row = |schema: &str, name: &str, kind: &str, is_insertable: bool| {
        let names = [text(&database), text(schema), text(name), text(kind)];
        let rest = [null(), null(), null(), null(), null(), yes(is_insertable), yes(false), null()];
        names.into_iter().chain(rest).collect::<Vec<_>>()
    };
    for relation in relations::all().iter().filter(|relation| is_wanted(relation.table.name)) {
        let kind = if relation.kind == 'v' { "VIEW" } else { "BASE TABLE" };
        give(row(relation.table.schema, relation.table.name, kind, relation.kind == 'r'), ctx)?;
    }
    for (name, schema) in shown.schemas() {
        let is_seen = |object: &Object| shown.sees(object, ObjectClass::Relation.all());
        let tables = schema.tables.values().filter(|table| table.query.is_none() && is_wanted(&table.name));
        for table in tables.filter(|table| is_seen(&Object::table(table))) {
            let kind = if table.temporary { "LOCAL TEMPORARY" } else { "BASE TABLE" };
            give(row(name, &table.name, kind, true), ctx)?;
        }
        let views = schema.views.values().filter(|view| is_wanted(&view.name));
        for view in views.filter(|view| is_seen(&Object::view(view))) {
            let kind = if view.temporary { "LOCAL TEMPORARY" } else { "VIEW" };
            give(row(name, &view.name, kind, false), ctx)?;
        }
    }
    Ok(())
}

pub fn views(wanted: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    for (name, schema) in shown.schemas() {
        for view in schema.views.values() {
            let object = Object::view(view);
            let is_other = wanted.name("table_name").is_some_and(|wanted| wanted != view.name);
            if is_other || !shown.sees(&object, ObjectClass::Relation.all()) {
                continue;
            }
            let is_own = shown.sees(&object, 0);
            let names = [
                text(&shown.database),
                text(name),
                text(&view.name),
                if is_own { text(view_text(view, Style::PLAIN, ctx)?) } else { null() },
                text("NONE"),
            ];
            let rest = [yes(false), yes(false), yes(false), yes(false), yes(false)];
            give(names.into_iter().chain(rest).collect(), ctx)?;
        }
    }
    Ok(())
}

pub fn sequences(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    for (name, schema) in shown.schemas() {
        for sequence in schema.sequences.values() {
            // Those of identity columns are details of their tables.
            let owner = shown.snapshot.owner(sequence);
            let is_identity =
                owner.is_some_and(|(table, at)| table.columns[at].identity != query::catalog::table::Identity::None);
            if is_identity || !shown.sees(&Object::sequence(sequence), ObjectClass::Sequence.all()) {
                continue;
            }
            let parameters = sequence.parameters;
            let ty = match parameters.bytes {
                2 => "smallint",
                4 => "integer",
                _ => "bigint",
            };
            let row = vec![
                text(&shown.database),
                text(name),
                text(&sequence.name),
                text(ty),
                number(i64::from(parameters.bytes) * 8),
                number(2),
                number(0),
                text(parameters.start.to_string()),
                text(parameters.min.to_string()),
                text(parameters.max.to_string()),
                text(parameters.increment.to_string()),
                yes(parameters.cycle),
            ];
            give(row, ctx)?;
        }
    }
    Ok(())
}
