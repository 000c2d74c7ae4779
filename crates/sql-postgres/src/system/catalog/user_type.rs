//! Rows of `pg_type` and `pg_enum` for the types that users define.

use std::sync::Arc;

use datum::Result;
use query::catalog::objects::Object;
use query::catalog::user_type::{TypeDefinition, UserType};
use query::nodes::context::EvalContext;
use query::nodes::table_function::Give;

use crate::batch::Row;
use crate::system::cells::{letter, null, number, oid, text, truth};
use crate::system::oids;
use crate::system::view::Shown;
use crate::system::wanted::Wanted;
use crate::types::oid::Oid;
use crate::types::{registry, user};
use crate::value::Value;

/// `typsubscript`, `typinput`, `typoutput`, `typreceive`, `typsend` and `typanalyze`.
const OF_ENUM: [Oid; 6] = [0, 3506, 3507, 3532, 3533, 0];
const OF_ARRAY: [Oid; 6] = [6179, 750, 751, 2400, 2401, 3816];

/// Returns the types in question: that of an OID, of it or of its array type, or all.
pub(super) fn types(shown: &Shown, of: Option<Oid>) -> Vec<Arc<UserType>> {
    match of {
        None => shown.schemas().flat_map(|(_, schema)| schema.types.values().cloned()).collect(),
        Some(oid) => shown.user_type(oid).into_iter().collect(),
    }
}

pub fn pg_type(wanted: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    for ty in types(&shown, wanted.oid("oid")) {
        let namespace = shown.schema_oid(&ty.schema);
        for number in &ty.numbers {
            give(row(&ty, number.0, namespace), ctx)?;
        }
    }
    Ok(())
}

fn row(ty: &UserType, own: Oid, namespace: Oid) -> Row {
    let is_array = own != user::oid_of(ty);
    let form = registry::by_oid(own);
    let name = if is_array { format!("_{}", ty.name) } else { ty.name.clone() };
    let kind = match &ty.definition {
        _ if is_array => 'b',
        TypeDefinition::Enumeration(_) => 'e',
    };
    let [subscript, input, output, receive, send, analyze] = if is_array { OF_ARRAY } else { OF_ENUM };
    vec![
        oid(own),
        text(name),
        oid(namespace),
        oid(oids::POSTGRES),
        number(form.map_or(-1, |row| row.len).into()),
        truth(form.is_some_and(|row| row.by_value)),
        letter(kind),
        letter(form.map_or('U', |row| row.category)),
        truth(false),
        truth(true),
        letter(registry::DELIMITER),
        oid(0),
        oid(subscript),
        oid(form.map_or(0, |row| row.element)),
        oid(form.map_or(0, |row| row.array)),
        oid(input),
        oid(output),
        oid(receive),
        oid(send),
        oid(0),
        oid(0),
        oid(analyze),
        letter(form.map_or('i', |row| row.align)),
        letter(form.map_or('x', |row| row.toast)),
        truth(false),
        oid(0),
        number(-1),
        number(0),
        oid(0),
        null(),
        null(),
        null(),
    ]
}

pub fn pg_enum(wanted: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    for ty in types(&shown, wanted.oid("enumtypid")) {
        let TypeDefinition::Enumeration(labels) = &ty.definition;
        for label in labels {
            let rank = Value::Float(label.rank);
            give(vec![oid(oids::of_object(label.id)), oid(user::oid_of(&ty)), rank, text(&label.name)], ctx)?;
        }
    }
    Ok(())
}

impl Shown {
    /// Returns the type of an OID, or whose array type has it, if it is one of this database.
    pub fn user_type(&self, oid: Oid) -> Option<Arc<UserType>> {
        match self.object(oids::of_object(user::object_of(oid)?))? {
            Object::Type(ty) => Some(ty),
            _ => None,
        }
    }
}
