//! Row types of tables and views, as types that have a name.
//!
//! Such a type has no definition of its own: it is made of the relation's whenever it is asked for. Rows of temporary relations, and of those that another dialect made, are plain records.

use std::sync::Arc;

use datum::value::{RecordField, RecordType};
use query::catalog::Snapshot;
use query::catalog::object_id::ObjectId;
use query::catalog::objects::Object;
use query::catalog::row_type::numbers;
use query::catalog::table::Table;
use query::catalog::user_type::{CompositeAttribute, CompositeDefinition, TypeDefinition, UserType};
use query::catalog::view::View;
use query::types::Type;

use crate::define::names::{Relation, stored_in};
use crate::types::foreign::is_foreign;
use crate::types::oid::Oid;
use crate::types::record::field;
use crate::types::{registry, user};

/// Returns the row type of a table.
pub fn of_table(table: &Table) -> Option<Arc<UserType>> {
    if table.maker != crate::MAKER || table.is_keyspace() || table.temporary {
        return None;
    }
    let columns = table.columns.iter().filter(|column| !column.is_hidden());
    let fields = columns.map(|column| of_column(&column.name, &column.ty)).collect::<Option<_>>()?;
    row_type(table.id, (&table.schema, &table.name), fields)
}

/// Returns the row type of a view.
pub fn of_view(view: &View) -> Option<Arc<UserType>> {
    if view.maker != crate::MAKER || view.temporary {
        return None;
    }
    let fields = view.columns.iter().zip(&view.types).map(|(name, ty)| of_column(name, ty)).collect::<Option<_>>()?;
    row_type(view.id, (&view.schema, &view.name), fields)
}

/// Returns the row type of an object that is a relation.
pub fn of_object(object: &Object) -> Option<Arc<UserType>> {
    match object {
        Object::Table(table) => of_table(table),
        Object::View(view) => of_view(view),
        _ => None,
    }
}

/// Returns the row type of a relation.
pub fn of_relation(relation: &Relation) -> Option<Arc<UserType>> {
    match relation {
        Relation::Table(table) => of_table(table),
        Relation::View(view) => of_view(view),
        Relation::Sequence(_) | Relation::Index(..) => None,
    }
}

/// Returns the OID of the row type of a relation, or 0.
pub fn oid_of(ty: Option<Arc<UserType>>) -> Oid {
    ty.map_or(0, |ty| user::oid_of(&ty))
}

/// Returns the type of a number, or whose array type has it: one that users have defined, or of the rows of a relation.
pub fn definition(snapshot: &Snapshot, number: Oid) -> Option<Arc<UserType>> {
    match snapshot.object(user::object_of(number)?)? {
        Object::Type(ty) => Some(ty.clone()),
        object if user::is_of_rows(number) => of_object(object),
        _ => None,
    }
}

/// Returns the row type of a relation by its name along schemas, and whether the name is that of its array type.
pub fn find(snapshot: &Snapshot, database: &str, schemas: &[String], name: &str) -> Option<(Arc<UserType>, bool)> {
    schemas.iter().filter_map(|schema| stored_in(snapshot, database, schema)).find_map(|schema| {
        let schema = snapshot.schemas.get(&*schema)?;
        let named = |name: &str| match (schema.tables.get(name), schema.views.get(name)) {
            (Some(table), _) => of_table(table),
            (None, view) => of_view(view?),
        };
        let of_element = || named(name.strip_prefix('_')?).map(|ty| (ty, true));
        named(name).map(|ty| (ty, false)).or_else(of_element)
    })
}

fn of_column(name: &str, ty: &Type) -> Option<RecordField> {
    let oid = registry::oid_of(ty);
    let is_own = !is_foreign(ty) && registry::by_oid(oid).is_some();
    is_own.then(|| field(name, &registry::column_type(oid, registry::typmod_of(ty), true)))
}

fn row_type(id: ObjectId, (schema, name): (&str, &str), fields: Vec<RecordField>) -> Option<Arc<UserType>> {
    let numbers = numbers(id)?.to_vec();
    let last_number = u16::try_from(fields.len()).ok()?;
    let attributes = (1..=last_number).map(|number| CompositeAttribute { number, comment: String::new() }).collect();
    let row = Arc::new(RecordType { number: numbers[0].0, fields: fields.into() });
    let definition = TypeDefinition::Composite(CompositeDefinition { row, attributes, last_number });
    let (maker, schema, name, comment) = (crate::MAKER, schema.to_owned(), name.to_owned(), String::new());
    Some(Arc::new(UserType { id, maker, schema, name, numbers, comment, definition }))
}
