//! Types that users define: their object identifiers, and the forms of their values.
//!
//! The OID of such a type tells its kind, so that the binder and the forms of values know its category and storage without
//! the catalog. Only names, labels and the like are read there, through `IoContext::objects` (PS-50).
//!
//! ```text
//!   bits 31 to 27   the kind: 2 an enum, 3 arrays of one
//!   bits 26 to 0    the OID of the object as any other object has it, from 16384 on
//!
//!   bits 31 to 27   1 a composite type or arrays of one
//!   bit 26          1 arrays
//!   bits 25 to 0    the OID of the object: of a table or a view it is the type of its rows (`query::catalog::row_type`)
//!
//!   bits 31 to 29   2 a domain, 3 arrays of one
//!   bits 28 to 24   the form of its values (`FORMS`)
//!   bits 23 to 0    the OID of the object
//!
//!   bits 31 to 29   1 a domain or arrays of one
//!   bit 28          1 arrays
//!   bits 27 to 24   the form of its values (`FORMS` from 32 on)
//!   bits 23 to 0    the OID of the object
//! ```

use std::sync::Arc;

use datum::Storage;
use datum::value::RecordType;
use query::catalog::object_id::ObjectId;
use query::catalog::row_type::numbers;
use query::catalog::user_type::{DomainDefinition, EnumLabel, TypeDefinition, UserType};
use query::types::{Type, TypeId};

use crate::error::{PgError, Result, state};
use crate::system::oids;
use crate::types::io::IoContext;
use crate::types::oid::{self, Oid};
use crate::types::registry::{self, PgType, TypeKind};
use crate::value::Value;

/// The bits of the object's own OID.
const OBJECT_BITS: u32 = 27;
const ENUM: u32 = 2;
const ENUM_ARRAY: u32 = 3;

/// The bits of the OID of a composite type's object.
const COMPOSITE_OBJECT_BITS: u32 = 26;
/// The OID of a composite type, or of arrays of one, without the object's.
const COMPOSITE: u32 = 2;
const COMPOSITE_ARRAY: u32 = 3;

/// The bits of the OID of a domain's object.
const DOMAIN_OBJECT_BITS: u32 = 24;
/// The bits of a domain's OID without those that tell arrays from values.
const DOMAIN: u32 = 1 << 30;
const DOMAIN_ARRAY: u32 = 1 << 29;
/// The first number of other kinds.
const DOMAINS_END: u32 = 1 << 31;
const FORM_MASK: u32 = 31;

/// The same of domains whose forms have no place in five bits.
const FURTHER_DOMAIN: u32 = 1 << 29;
const FURTHER_DOMAIN_ARRAY: u32 = 1 << 28;
const FURTHER_FORM_MASK: u32 = 15;
const FURTHER_FORMS_FROM: u32 = FORM_MASK + 1;

/// Types that stand for the form of a domain's values: the domain's base type, or one whose values have the same form. Their places are in OIDs, so that none may move.
const FORMS: [Oid; 34] = [
    oid::BOOL,
    oid::BYTEA,
    oid::CHAR,
    oid::NAME,
    oid::INT8,
    oid::INT2,
    oid::INT4,
    oid::TEXT,
    oid::OID,
    oid::JSON,
    oid::FLOAT4,
    oid::FLOAT8,
    oid::BPCHAR,
    oid::VARCHAR,
    oid::DATE,
    oid::TIME,
    oid::TIMESTAMP,
    oid::TIMESTAMPTZ,
    oid::INTERVAL,
    oid::TIMETZ,
    oid::NUMERIC,
    oid::UUID,
    oid::JSONB,
    oid::JSONPATH,
    // The names of objects.
    oid::REGCLASS,
    // Arrays, those of bpchar, and enums.
    oid::TEXT_ARRAY,
    BPCHAR_ARRAY,
    ENUM_FORM,
    // Arrays of what has no collation.
    oid::INT4_ARRAY,
    // inet and cidr; macaddr and macaddr8.
    oid::INET,
    oid::MACADDR,
    // bit and bit varying.
    oid::VARBIT,
    // Ranges and multiranges.
    oid::INT4RANGE,
    // Composite types.
    oid::RECORD,
];
const BPCHAR_ARRAY: Oid = 1014;
/// No type: it stands for enums.
const ENUM_FORM: Oid = 0;

/// Encloses the OID of a type whose name is not at hand in the text of an error: a code point that is no character.
const MARK: char = '\u{10FFFE}';

/// Returns the OIDs of an enum and of its array type. An error for a number beyond those that types can have.
pub fn enum_oids(id: ObjectId) -> Result<[Oid; 2]> {
    match oids::of_object(id) {
        object if object < 1 << OBJECT_BITS => Ok([object | ENUM << OBJECT_BITS, object | ENUM_ARRAY << OBJECT_BITS]),
        _ => Err(PgError::new(state::PROGRAM_LIMIT_EXCEEDED, "too many objects for another type")),
    }
}

/// Returns the OIDs of a composite type and of its array type. An error for a number beyond those that types can have.
pub fn composite_oids(id: ObjectId) -> Result<[Oid; 2]> {
    let numbers = numbers(id).map(|numbers| numbers.map(|number| number.0));
    numbers.ok_or_else(|| PgError::new(state::PROGRAM_LIMIT_EXCEEDED, "too many objects for another type"))
}

/// Returns the OID of a domain over a type and that of its array type. A domain over arrays has none. `None`: no domain can be over the type.
pub fn domain_oids(id: ObjectId, base: Oid) -> Option<Result<Vec<Oid>>> {
    let form = form_of(base)?;
    Some(match oids::of_object(id) {
        object if object < 1 << DOMAIN_OBJECT_BITS => {
            let oid = match form.checked_sub(FURTHER_FORMS_FROM) {
                Some(form) => FURTHER_DOMAIN | form << DOMAIN_OBJECT_BITS | object,
                None => DOMAIN | form << DOMAIN_OBJECT_BITS | object,
            };
            Ok(std::iter::once(oid).chain(row(oid).map(|row| row.array).filter(|array| *array != 0)).collect())
        }
        _ => Err(PgError::new(state::PROGRAM_LIMIT_EXCEEDED, "too many objects for another type")),
    })
}

/// Returns the place of the form of a type's values.
fn form_of(base: Oid) -> Option<u32> {
    let place = |form: Oid| FORMS.iter().position(|known| *known == form);
    let element = registry::element_of(base);
    let found = match base {
        base if is_domain(base) => return Some(form_place(base)),
        base if is_enum(base) => place(ENUM_FORM),
        oid::RECORD | oid::RECORD_ARRAY => None,
        base if is_composite(base) => place(oid::RECORD),
        oid::BIT => place(oid::VARBIT),
        oid::CIDR => place(oid::INET),
        oid::MACADDR8 => place(oid::MACADDR),
        base if place(base).is_some() => place(base),
        _ if element.is_some_and(|row| row.oid == oid::BPCHAR || form_is(row.oid, oid::BPCHAR)) => place(BPCHAR_ARRAY),
        _ if element.is_some_and(|row| row.is_collatable) => place(oid::TEXT_ARRAY),
        _ if element.is_some() => place(oid::INT4_ARRAY),
        base => match registry::by_oid(base)?.storage {
            Storage::Int { bytes: 4, signed: false } => place(oid::REGCLASS),
            Storage::Keyed => place(oid::INT4RANGE),
            _ => None,
        },
    };
    found.and_then(|place| u32::try_from(place).ok())
}

/// Returns the place of the form of a domain's values, or of those in arrays of one.
fn form_place(domain: Oid) -> u32 {
    match domain >= DOMAIN {
        true => domain >> DOMAIN_OBJECT_BITS & FORM_MASK,
        false => FURTHER_FORMS_FROM + (domain >> DOMAIN_OBJECT_BITS & FURTHER_FORM_MASK),
    }
}

/// Returns the bit that tells arrays of domains from domains with such a number.
fn array_bit(domain: Oid) -> u32 {
    if domain >= DOMAIN { DOMAIN_ARRAY } else { FURTHER_DOMAIN_ARRAY }
}

/// Returns whether the values of a domain have a form.
fn form_is(domain: Oid, form: Oid) -> bool {
    is_domain(domain) && FORMS.get(form_place(domain) as usize) == Some(&form)
}

/// Returns the number of a type's object; `None` for types of PostgreSQL's own and of other dialects.
pub fn object_of(oid: Oid) -> Option<ObjectId> {
    let bits = match oid >> OBJECT_BITS {
        ENUM | ENUM_ARRAY => OBJECT_BITS,
        _ if is_of_rows(oid) => COMPOSITE_OBJECT_BITS,
        _ if (FURTHER_DOMAIN..DOMAINS_END).contains(&oid) => DOMAIN_OBJECT_BITS,
        _ => return None,
    };
    oids::object_of(oid & ((1 << bits) - 1))
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

pub fn is_composite(oid: Oid) -> bool {
    oid >> COMPOSITE_OBJECT_BITS == COMPOSITE
}

/// Returns whether values of a type are rows, or arrays of them.
pub fn is_of_rows(oid: Oid) -> bool {
    matches!(oid >> COMPOSITE_OBJECT_BITS, COMPOSITE | COMPOSITE_ARRAY)
}

pub fn is_domain(oid: Oid) -> bool {
    (FURTHER_DOMAIN..DOMAINS_END).contains(&oid) && oid & array_bit(oid) == 0
}

pub fn is_user_type(oid: Oid) -> bool {
    object_of(oid).is_some()
}

/// Returns the row of a type that users define, but for its name.
pub(super) fn row(oid: Oid) -> Option<PgType> {
    object_of(oid)?;
    if oid >= FURTHER_DOMAIN {
        return domain_row(oid);
    }
    if oid < ENUM << OBJECT_BITS {
        let array_bit = 1 << COMPOSITE_OBJECT_BITS;
        return Some(match is_composite(oid) {
            true => PgType::user_composite(oid, oid | array_bit),
            false => PgType { align: 'd', ..PgType::user_array(oid, oid & !array_bit) },
        });
    }
    let (element, array) = (oid & !(1 << OBJECT_BITS), oid | 1 << OBJECT_BITS);
    Some(match oid == array {
        true => PgType::user_array(oid, element),
        false => PgType::user(oid, array, TypeKind::Enum, Storage::Bytes),
    })
}

fn domain_row(oid: Oid) -> Option<PgType> {
    if !is_domain(oid) {
        let element = domain_row(oid & !array_bit(oid))?;
        let array = PgType::user_array(oid, element.oid);
        return Some(PgType { is_collatable: element.is_collatable, pads: element.pads, ..array });
    }
    let form = match FORMS.get(form_place(oid) as usize)? {
        &ENUM_FORM => PgType::user(oid, 0, TypeKind::Enum, Storage::Bytes),
        &oid::RECORD => PgType::user_composite(oid, 0),
        base => registry::by_oid(*base)?,
    };
    // An array has no arrays as elements.
    let array = if form.storage == Storage::Array { 0 } else { oid | array_bit(oid) };
    Some(PgType { oid, name: "", kind: TypeKind::Domain, array, element: 0, is_preferred: false, ..form })
}

/// Returns a type whose values have the form of a domain's, and are compared alike; that of another type as it is.
pub fn form(oid: Oid) -> Oid {
    match FORMS.get(form_place(oid) as usize).filter(|_| is_domain(oid)) {
        Some(&ENUM_FORM) => oid::ANYENUM,
        Some(form) => *form,
        None => oid,
    }
}

/// Returns the type under which the values of a domain are read and shown; that of another type as it is.
pub fn base_type(oid: Oid, io: &IoContext) -> Result<Type> {
    let (mut oid, mut typmod) = (oid, -1);
    while is_domain(oid) {
        let ty = definition(oid, io)?;
        let base = &domain(&ty)?.base;
        (oid, typmod) = (registry::oid_of(base), registry::typmod_of(base));
    }
    Ok(registry::column_type(oid, typmod, true))
}

/// Returns the definition of a domain.
pub fn domain(ty: &UserType) -> Result<&DomainDefinition> {
    match &ty.definition {
        TypeDefinition::Domain(domain) => Ok(domain),
        TypeDefinition::Enumeration(_) | TypeDefinition::Composite(_) => {
            Err(PgError::new(state::WRONG_OBJECT_TYPE, format!("{} is not a domain", unnamed(oid_of(ty)))))
        }
    }
}

/// Returns what stands for the name of a type until `named` puts it there.
pub fn unnamed(oid: Oid) -> String {
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

/// Returns the type that a text stands for as `unnamed` makes it.
pub fn marked(text: &str, io: &IoContext) -> Option<Arc<UserType>> {
    let number = text.strip_prefix(MARK)?.strip_suffix(MARK)?;
    definition(number.parse().ok()?, io).ok()
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
        TypeDefinition::Domain(_) | TypeDefinition::Composite(_) => &[],
    }
}

/// Returns the type of the records that are the values of a composite type.
pub fn row_type(oid: Oid, io: &IoContext) -> Result<Arc<RecordType>> {
    let ty = definition(oid, io)?;
    ty.row().cloned().ok_or_else(|| PgError::new(state::INTERNAL_ERROR, format!("type {oid} is not composite")))
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
