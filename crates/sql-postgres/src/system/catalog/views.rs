//! `pg_tables`, `pg_indexes`, `pg_views`, `pg_matviews`.

use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::table_function::Give;

use crate::define::materialized::view_of;
use crate::deparse::Style;
use crate::instance::database::POSTGRES;
use crate::rights::object::Object;
use crate::system::cells::{null, text, truth};
use crate::system::relations;
use crate::system::view::{Shown, indexes, view_text};
use crate::system::wanted::Wanted;

pub fn pg_tables(wanted: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    for relation in relations::all().iter().filter(|relation| relation.kind == 'r') {
        let tablespace = if relation.is_shared { text("pg_global") } else { null() };
        let (schema, name) = (relation.table.schema, relation.table.name);
        let flags = [truth(false), truth(false), truth(false), truth(false)];
        give([text(schema), text(name), text(POSTGRES), tablespace].into_iter().chain(flags).collect(), ctx)?;
    }
    for (name, schema) in shown.schemas() {
        for table in schema.tables.values().filter(|table| table.query.is_none()) {
            if wanted.name("tablename").is_some_and(|wanted| wanted != table.name) {
                continue;
            }
            let key = (table.schema.clone(), table.name.clone());
            let is_parent = shown.snapshot.children.get(&key).is_some_and(|children| !children.is_empty());
            let row = vec![
                text(name),
                text(&table.name),
                text(shown.owner_name(&Object::table(table))),
                null(),
                truth(!indexes(table).is_empty()),
                truth(false),
                truth(is_parent || !table.foreign_keys.is_empty()),
                truth(false),
            ];
            give(row, ctx)?;
        }
    }
    Ok(())
}

pub fn pg_indexes(wanted: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    for (name, schema) in shown.schemas() {
        for table in schema.tables.values() {
            if wanted.name("tablename").is_some_and(|wanted| wanted != table.name) {
                continue;
            }
            for index in indexes(table) {
                let definition = index.definition(table, ctx)?;
                let row = vec![text(name), text(&table.name), text(&index.name), null(), text(definition)];
                give(row, ctx)?;
            }
        }
    }
    Ok(())
}

pub fn pg_views(wanted: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    for (name, schema) in shown.schemas() {
        for view in schema.views.values() {
            if wanted.name("viewname").is_some_and(|wanted| wanted != view.name) {
                continue;
            }
            let (definition, owner) = (view_text(view, Style::PLAIN, ctx)?, shown.owner_name(&Object::view(view)));
            give(vec![text(name), text(&view.name), text(owner), text(definition)], ctx)?;
        }
    }
    Ok(())
}

pub fn pg_matviews(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    for (name, schema) in shown.schemas() {
        for table in schema.tables.values() {
            let (Some(view), Some(query)) = (view_of(table), &table.query) else { continue };
            let row = vec![
                text(name),
                text(&table.name),
                text(shown.owner_name(&Object::table(table))),
                null(),
                truth(!indexes(table).is_empty()),
                truth(query.is_populated),
                text(view_text(&view, Style::PLAIN, ctx)?),
            ];
            give(row, ctx)?;
        }
    }
    Ok(())
}
