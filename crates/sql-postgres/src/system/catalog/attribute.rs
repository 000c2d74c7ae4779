//! `pg_attribute`, `pg_attrdef`.

use datum::Result;
use datum::value::RecordField;
use query::catalog::objects::Object;
use query::catalog::table::{Identity, Table, TableColumn};
use query::catalog::user_type::{TypeDefinition, UserType};
use query::nodes::context::EvalContext;
use query::nodes::table_function::Give;

use crate::batch::Row;
use crate::define::index::column_names;
use crate::rights::object::Object as Rights;
use crate::system::cells::{letter, null, number, oid, text, truth};
use crate::system::operator_class::gin_key_type;
use crate::system::view::{Shown, columns, default_tree, has_default, indexes, type_of};
use crate::system::wanted::Wanted;
use crate::system::{oids, relations};
use crate::types::oid::{self as types, Oid};
use crate::types::{registry, user};
use crate::value::Value;

struct Attribute<'r> {
    relation: Oid,
    name: &'r str,
    nth: i64,
    ty: (Oid, i32),
    is_not_null: bool,
    has_default: bool,
    identity: Identity,
    is_generated: bool,
    rights: Value,
}

/// Returns the collation of a column of a type: that of names is `C`.
pub fn collation_of(ty: Oid) -> Oid {
    let ty = user::form(ty);
    match registry::by_oid(ty).is_some_and(|row| row.is_collatable) {
        true if ty == types::NAME => oids::COLLATION_C,
        true => oids::COLLATION_DEFAULT,
        false => 0,
    }
}

impl<'r> Attribute<'r> {
    fn plain(relation: Oid, name: &'r str, nth: i64, ty: (Oid, i32)) -> Attribute<'r> {
        let (identity, is_not_null) = (Identity::None, false);
        let (has_default, is_generated, rights) = (false, false, Value::Null);
        Attribute { relation, name, nth, ty, is_not_null, has_default, identity, is_generated, rights }
    }

    fn row(self) -> Row {
        let (ty, typmod) = self.ty;
        let known = registry::by_oid(ty);
        let identity = match self.identity {
            Identity::None => '\0',
            Identity::Always => 'a',
            Identity::ByDefault => 'd',
        };
        let is_array = registry::element_of(ty).is_some();
        vec![
            oid(self.relation),
            text(self.name),
            oid(ty),
            number(known.map_or(-1, |row| row.len).into()),
            number(self.nth),
            number(-1),
            number(typmod.into()),
            number(i64::from(is_array)),
            truth(known.is_some_and(|row| row.by_value)),
            letter(known.map_or('i', |row| row.align)),
            letter(known.map_or('x', |row| row.toast)),
            letter('\0'),
            truth(self.is_not_null),
            truth(self.has_default),
            truth(false),
            letter(identity),
            letter(if self.is_generated { 's' } else { '\0' }),
            truth(false),
            truth(true),
            number(0),
            number(-1),
            oid(collation_of(ty)),
            self.rights,
            null(),
            null(),
            null(),
        ]
    }
}

pub fn pg_attribute(wanted: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    let relation = wanted.oid("attrelid");
    for found in relations::all().iter().filter(|found| relation.is_none_or(|oid| oid == found.oid)) {
        for (nth, column) in found.served_columns() {
            let Some(ty) = registry::by_name(column.type_name) else { continue };
            let attribute = Attribute::plain(found.oid, column.name, nth, (ty.oid, column.typmod));
            give(Attribute { is_not_null: column.is_not_null, ..attribute }.row(), ctx)?;
        }
    }
    match relation {
        Some(relation) => one(&shown, relation, ctx, give),
        None => {
            for table in shown.tables() {
                of_table(&shown, table, ctx, give)?;
                of_indexes(table, None, ctx, give)?;
            }
            for (_, schema) in shown.schemas() {
                for view in schema.views.values() {
                    of_view(view, ctx, give)?;
                }
                for sequence in schema.sequences.values() {
                    of_sequence(oids::of_object(sequence.id), ctx, give)?;
                }
                for ty in schema.types.values() {
                    of_composite(ty, ctx, give)?;
                }
            }
            Ok(())
        }
    }
}

fn one(shown: &Shown, relation: Oid, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    match shown.object(relation) {
        Some(Object::Table(table)) => of_table(shown, &table, ctx, give),
        Some(Object::PrimaryKey(table) | Object::Index(table, _)) => of_indexes(&table, Some(relation), ctx, give),
        Some(Object::View(view)) => of_view(&view, ctx, give),
        Some(Object::Sequence(_)) => of_sequence(relation, ctx, give),
        Some(Object::Type(ty)) => of_composite(&ty, ctx, give),
        _ => Ok(()),
    }
}

fn of_table(shown: &Shown, table: &Table, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let object = Rights::table(table);
    for (nth, column) in columns(table) {
        let attribute = Attribute::plain(oids::of_object(table.id), &column.name, nth, type_of(column));
        let row = Attribute {
            is_not_null: !column.ty.nullable,
            has_default: has_default(column),
            identity: column.identity,
            is_generated: column.generated.is_some(),
            rights: shown.rights(&object, column.slot as u32 + 1),
            ..attribute
        };
        give(row.row(), ctx)?;
    }
    Ok(())
}

fn of_indexes(table: &Table, only: Option<Oid>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    for index in indexes(table).iter().filter(|index| only.is_none_or(|oid| oid == index.oid)) {
        for (nth, (at, name)) in index.columns().zip(column_names(table, index)).enumerate() {
            let column = &table.columns[at];
            let ty = match (type_of(column), index.terms) {
                ((column, _), Some(form)) => (gin_key_type(form, column), -1),
                (column, None) => column,
            };
            give(Attribute::plain(index.oid, &name, nth as i64 + 1, ty).row(), ctx)?;
        }
    }
    Ok(())
}

fn of_view(view: &query::catalog::view::View, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    for (nth, (name, ty)) in view.columns.iter().zip(&view.types).enumerate() {
        let column = TableColumn::new(name.clone(), ty.clone(), nth);
        give(Attribute::plain(oids::of_object(view.id), name, nth as i64 + 1, type_of(&column)).row(), ctx)?;
    }
    Ok(())
}

/// Returns the attributes of a composite type with their numbers; `None` for another type. A number that a dropped one had is missing.
pub fn numbered(ty: &UserType) -> Option<Vec<(i64, &RecordField)>> {
    let TypeDefinition::Composite(composite) = &ty.definition else { return None };
    let numbers = composite.attributes.iter().map(|attribute| i64::from(attribute.number));
    Some(numbers.zip(&composite.row.fields).collect())
}

fn of_composite(ty: &UserType, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    for (nth, field) in numbered(ty).unwrap_or_default() {
        let of = (field.number, field.length as i32);
        give(Attribute::plain(oids::of_object(ty.id), &field.name, nth, of).row(), ctx)?;
    }
    Ok(())
}

fn of_sequence(relation: Oid, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let columns = [("last_value", types::INT8), ("log_cnt", types::INT8), ("is_called", types::BOOL)];
    for (nth, (name, ty)) in columns.into_iter().enumerate() {
        let attribute = Attribute::plain(relation, name, nth as i64 + 1, (ty, -1));
        give(Attribute { is_not_null: true, ..attribute }.row(), ctx)?;
    }
    Ok(())
}

pub fn pg_attrdef(wanted: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    let table = wanted.oid("adrelid").or_else(|| wanted.oid("oid").map(oids::table_of_default));
    for table in super::tables(&shown, table) {
        for (nth, column) in columns(&table) {
            let Some(default) = default_tree(column, ctx) else { continue };
            let relation = oids::of_object(table.id);
            give(vec![oid(oids::of_default(relation, nth)), oid(relation), number(nth), text(default)], ctx)?;
        }
    }
    Ok(())
}
