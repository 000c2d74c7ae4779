//! Types that users define: their object identifiers, and the forms of their values.
//!
//! The OID of such a type tells its kind, so that the binder and the forms of values know its category and storage without
//! the catalog. Only names, labels and the like are read there, through `IoContext::objects` (PS-50).
//!
//! ```text
//!   bits 31 to 27   the kind: 2 an enum, 3 arrays of one
//!   bits 26 to 0    the OID of the object as any other object has it, from 16384 on
//! ```

use std::sync::Arc;

use datum::Storage;
use query::catalog::object_id::ObjectId;
use query::catalog::user_type::{EnumLabel, TypeDefinition, UserType};
use query::types::TypeId;

use crate::error::{PgError, Result, state};
use crate::system::oids;
use crate::types::io::IoContext;
use crate::types::oid::Oid;
use crate::types::registry::{PgType, TypeKind};
use crate::value::Value;

/// The bits of the object's own OID.
const OBJECT_BITS: u32 = 27;
const ENUM: u32 = 2;
const ENUM_ARRAY: u32 = 3;

/// Encloses the OID of a type whose name is not at hand in the text of an error: a code point that is no character.
const MARK: char = '\u{10FFFE}';

/// Returns the OIDs of an enum and of its array type. An error for a number beyond those that types can have.
pub fn enum_oids(id: ObjectId) -> Result<[Oid; 2]> {
    match oids::of_object(id) {
        object if object < 1 << OBJECT_BITS => Ok([object | ENUM << OBJECT_BITS, object | ENUM_ARRAY << OBJECT_BITS]),
        _ => Err(PgError::new(state::PROGRAM_LIMIT_EXCEEDED, "too many objects for another type")),
    }
}

/// Returns the number of a type's object; `None` for types of PostgreSQL's own and of other dialects.
pub fn object_of(oid: Oid) -> Option<ObjectId> {
    match oid >> OBJECT_BITS {
        ENUM | ENUM_ARRAY => oids::object_of(oid & ((1 << OBJECT_BITS) - 1)),
        _ => None,
    }
}

/// Returns the OID under which values have the type.
pub fn oid_of(ty: &UserType) -> Oid {
    ty.numbers.first().map_or(0, |TypeId(number)| *number)
}

pub fn array_oid_of(ty: &UserType) -> Oid {
    ty.numbers.get(1).map_or(0, |TypeId(number)| *number)
}

pub fn is_enum(oid: Oid) -> bool {
    oid >> OBJECT_BITS == ENUM
}

pub fn is_user_type(oid: Oid) -> bool {
    object_of(oid).is_some()
}

/// Returns the row of a type that users define, but for its name.
pub(super) fn row(oid: Oid) -> Option<PgType> {
    object_of(oid)?;
    let (element, array) = (oid & !(1 << OBJECT_BITS), oid | 1 << OBJECT_BITS);
    Some(match oid == array {
        true => PgType::user_array(oid, element),
        false => PgType::user(oid, array, TypeKind::Enum, Storage::Bytes),
    })
}

/// Returns what stands for the name of a type until `named` puts it there.
pub(super) fn unnamed(oid: Oid) -> String {
    format!("{MARK}{oid}{MARK}")
}

/// Puts the names of types into a text of an error.
pub fn named(text: &str, io: &IoContext) -> Option<String> {
    if !text.contains(MARK) {
        return None;
    }
    let mut parts = text.split(MARK);
    let mut out = parts.next().unwrap_or_default().to_owned();
    while let Some(number) = parts.next() {
        match number.parse() {
            Ok(oid) => out += &name(oid, io),
            Err(_) => out += number,
        }
        out += parts.next().unwrap_or_default();
    }
    Some(out)
}

/// Returns the name of a type as SQL must write it in the session's `search_path`.
pub fn name(oid: Oid, io: &IoContext) -> String {
    let name = io.objects.as_ref().and_then(|objects| (objects.name)(crate::types::io::ObjectKind::Type, oid));
    name.unwrap_or_else(|| "???".to_owned())
}

/// Returns the definition of a type.
pub fn definition(oid: Oid, io: &IoContext) -> Result<Arc<UserType>> {
    let found = io.objects.as_ref().zip(object_of(oid)).and_then(|(objects, id)| (objects.user_type)(id));
    found.ok_or_else(|| PgError::new(state::INTERNAL_ERROR, format!("cache lookup failed for type {oid}")))
}

pub fn labels(ty: &UserType) -> &[EnumLabel] {
    match &ty.definition {
        TypeDefinition::Enumeration(labels) => labels,
    }
}

/// Returns the value of a label that may be used: those of an uncommitted ALTER TYPE may not, since an index would keep them if it is undone.
pub fn value_of(label: &EnumLabel, ty: &UserType) -> Result<Value> {
    if label.is_pending {
        let message = format!("unsafe use of new value \"{}\" of enum type {}", label.name, ty.name);
        let error = PgError::new(state::UNSAFE_NEW_ENUM_VALUE_USAGE, message);
        return Err(error.hint("New enum values must be committed before they can be used."));
    }
    Ok(Value::bytes(&label.key))
}

pub fn enum_input(oid: Oid, text: &str, io: &IoContext) -> Result<Value> {
    let ty = definition(oid, io)?;
    match labels(&ty).iter().find(|label| label.name == text) {
        Some(label) => value_of(label, &ty),
        None => {
            let message = format!("invalid input value for enum {}: \"{text}\"", name(oid, io));
            Err(PgError::new(state::INVALID_TEXT_REPRESENTATION, message))
        }
    }
}

/// Appends the label of a value: both its text and its binary form.
pub fn enum_output(oid: Oid, key: &[u8], io: &IoContext, out: &mut Vec<u8>) -> Result<()> {
    let ty = definition(oid, io)?;
    let labels = labels(&ty);
    match labels.binary_search_by(|label| (*label.key).cmp(key)) {
        Ok(at) => out.extend_from_slice(labels[at].name.as_bytes()),
        Err(_) => {
            let message = format!("invalid internal value for enum: {key:02x?}");
            return Err(PgError::new(state::INVALID_BINARY_REPRESENTATION, message));
        }
    }
    Ok(())
}
