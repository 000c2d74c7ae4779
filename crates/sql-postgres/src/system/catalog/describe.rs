//! `pg_description` of the objects of the database, `pg_shdescription`.

use datum::Result;
use query::catalog::table::Table;
use query::catalog::user_type::TypeDefinition;
use query::nodes::context::EvalContext;
use query::nodes::table_function::Give;

use crate::system::cells::{number, oid, text};
use crate::system::comments::{self, Described};
use crate::system::oids;
use crate::system::view::{Shown, columns};
use crate::system::wanted::Wanted;
use crate::types::user;

pub fn pg_description(wanted: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    for table in super::tables(&shown, wanted.oid("objoid")) {
        of_table(&table, ctx, give)?;
    }
    for ty in super::user_type::types(&shown, wanted.oid("objoid")).iter().filter(|ty| !ty.comment.is_empty()) {
        give(vec![oid(user::oid_of(ty)), oid(oids::PG_TYPE), number(0), text(&ty.comment)], ctx)?;
    }
    for ty in super::user_type::types(&shown, None) {
        let TypeDefinition::Composite(composite) = &ty.definition else { continue };
        for attribute in composite.attributes.iter().filter(|attribute| !attribute.comment.is_empty()) {
            let (class, nth) = (oids::of_object(ty.id), number(attribute.number.into()));
            give(vec![oid(class), oid(oids::PG_CLASS), nth, text(&attribute.comment)], ctx)?;
        }
    }
    for Described { class, object, column, text: comment } in comments::all(&shown) {
        give(vec![oid(object), oid(class), number(column), text(&*comment)], ctx)?;
    }
    Ok(())
}

/// `pg_shdescription`: comments on databases and roles.
pub fn pg_shdescription(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    for Described { class, object, text: comment, .. } in comments::shared(&shown) {
        give(vec![oid(object), oid(class), text(&*comment)], ctx)?;
    }
    Ok(())
}

fn of_table(table: &Table, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let row =
        |object: u32, part: i64, comment: &str| vec![oid(object), oid(oids::PG_CLASS), number(part), text(comment)];
    let relation = oids::of_object(table.id);
    if !table.comment.is_empty() {
        give(row(relation, 0, &table.comment), ctx)?;
    }
    for (nth, column) in columns(table).filter(|(_, column)| !column.comment.is_empty()) {
        give(row(relation, nth, &column.comment), ctx)?;
    }
    for index in table.indexes.iter().filter(|index| !index.comment.is_empty()) {
        give(row(oids::of_object(index.id), 0, &index.comment), ctx)?;
    }
    Ok(())
}
