//! The types: rows of `pg_type`, the storage behind them, and type modifiers.
//!
//! `TYPES` has a row for each type that is served and for the pseudo-types that signatures of functions name. A row names the OID of its array type, whose own row is derived from it (`types`).

use std::collections::HashMap;
use std::sync::LazyLock;

use datum::{Shape, Storage};
use query::types::{Collation, Type, TypeId};
use stdx::hash::Map;

use crate::error::{PgError, Result, state};
use crate::types::oid::{self, Oid};
use crate::types::user;

/// A row of `pg_type`.
#[derive(Clone, Copy, Debug)]
pub struct PgType {
    pub oid: Oid,
    pub name: &'static str,
    /// `typlen`: bytes of a value on PostgreSQL's own pages; -1 and -2 for values of any length.
    pub len: i16,
    pub by_value: bool,
    /// `typalign`
    pub align: char,
    /// `typstorage`
    pub toast: char,
    pub kind: TypeKind,
    pub category: char,
    pub is_preferred: bool,
    /// The OID of the array type; 0 if there is none.
    pub array: Oid,
    /// `typelem`: the type of what a subscript gives; 0 if the type has no subscripts.
    pub element: Oid,
    /// The form of the values in rows and keys. That of a pseudo-type without values is a text.
    pub storage: Storage,
    pub is_collatable: bool,
    /// Spaces at the end do not count, or not in the elements.
    pub(super) pads: bool,
    /// The type's name in SQL where it differs from `name`: what `format_type` shows.
    pub(super) sql_name: &'static str,
}

/// `typtype`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeKind {
    Base,
    Enum,
    Domain,
    Composite,
    Range,
    Multirange,
    /// A column cannot have it.
    Pseudo,
}

use TypeKind::{Base, Multirange, Pseudo, Range};

/// Between values of an array, in every type that is served: `typdelim`.
pub const DELIMITER: char = ',';

const BYTE: Storage = Storage::Int { bytes: 1, signed: true };
const UBYTE: Storage = Storage::Int { bytes: 1, signed: false };
const INT2: Storage = Storage::Int { bytes: 2, signed: true };
const INT4: Storage = Storage::Int { bytes: 4, signed: true };
const INT8: Storage = Storage::Int { bytes: 8, signed: true };
const OID4: Storage = Storage::Int { bytes: 4, signed: false };
const UINT8: Storage = Storage::Int { bytes: 8, signed: false };
const ARRAY: Storage = Storage::Array;

const T: bool = true;
const F: bool = false;

/// OID, name; length, by value, alignment, TOAST strategy; kind, category, preferred; array type; storage; collatable; the name in SQL.
#[rustfmt::skip]
pub static TYPES: &[PgType] = &[
    row(oid::BOOL, "bool", (1, T, 'c', 'p'), (Base, 'B', T), 1000, (BYTE, F), "boolean"),
    row(oid::BYTEA, "bytea", (-1, F, 'i', 'x'), (Base, 'U', F), 1001, (Storage::Bytes, F), ""),
    row(oid::CHAR, "char", (1, T, 'c', 'p'), (Base, 'Z', F), 1002, (UBYTE, F), ""),
    row(oid::NAME, "name", (64, F, 'c', 'p'), (Base, 'S', F), 1003, (Storage::Text, T), ""),
    row(oid::INT8, "int8", (8, T, 'd', 'p'), (Base, 'N', F), 1016, (INT8, F), "bigint"),
    row(oid::INT2, "int2", (2, T, 's', 'p'), (Base, 'N', F), 1005, (INT2, F), "smallint"),
    vector(oid::INT2VECTOR, "int2vector", oid::INT2, 1006),
    row(oid::INT4, "int4", (4, T, 'i', 'p'), (Base, 'N', F), 1007, (INT4, F), "integer"),
    row(oid::REGPROC, "regproc", (4, T, 'i', 'p'), (Base, 'N', F), 1008, (OID4, F), ""),
    row(oid::TEXT, "text", (-1, F, 'i', 'x'), (Base, 'S', T), 1009, (Storage::Text, T), ""),
    row(oid::OID, "oid", (4, T, 'i', 'p'), (Base, 'N', T), 1028, (OID4, F), ""),
    row(oid::XID, "xid", (4, T, 'i', 'p'), (Base, 'U', F), 1011, (OID4, F), ""),
    vector(oid::OIDVECTOR, "oidvector", oid::OID, 1013),
    row(oid::JSON, "json", (-1, F, 'i', 'x'), (Base, 'U', F), 199, (Storage::Text, F), ""),
    row(oid::PG_NODE_TREE, "pg_node_tree", (-1, F, 'i', 'x'), (Base, 'Z', F), 0, (Storage::Text, T), ""),
    row(oid::CIDR, "cidr", (-1, F, 'i', 'm'), (Base, 'I', F), 651, (Storage::Bytes, F), ""),
    row(oid::FLOAT4, "float4", (4, T, 'i', 'p'), (Base, 'N', F), 1021, (Storage::Float4, F), "real"),
    row(oid::FLOAT8, "float8", (8, T, 'd', 'p'), (Base, 'N', T), 1022, (Storage::Float8, F), "double precision"),
    row(oid::UNKNOWN, "unknown", (-2, F, 'c', 'p'), (Pseudo, 'X', F), 0, (Storage::Text, F), ""),
    row(oid::MACADDR8, "macaddr8", (8, F, 'i', 'p'), (Base, 'U', F), 775, (Storage::Bytes, F), ""),
    row(oid::MACADDR, "macaddr", (6, F, 'i', 'p'), (Base, 'U', F), 1040, (Storage::Bytes, F), ""),
    row(oid::INET, "inet", (-1, F, 'i', 'm'), (Base, 'I', T), 1041, (Storage::Bytes, F), ""),
    row(oid::ACLITEM, "aclitem", (16, F, 'd', 'p'), (Base, 'U', F), 1034, (Storage::Text, F), ""),
    row(oid::BPCHAR, "bpchar", (-1, F, 'i', 'x'), (Base, 'S', F), 1014, (Storage::Text, T), "character"),
    row(oid::VARCHAR, "varchar", (-1, F, 'i', 'x'), (Base, 'S', F), 1015, (Storage::Text, T), "character varying"),
    row(oid::DATE, "date", (4, T, 'i', 'p'), (Base, 'D', F), 1182, (INT4, F), ""),
    row(oid::TIME, "time", (8, T, 'd', 'p'), (Base, 'D', F), 1183, (INT8, F), "time without time zone"),
    row(oid::TIMESTAMP, "timestamp", (8, T, 'd', 'p'), (Base, 'D', F), 1115, (INT8, F), "timestamp without time zone"),
    row(oid::TIMESTAMPTZ, "timestamptz", (8, T, 'd', 'p'), (Base, 'D', T), 1185, (INT8, F), "timestamp with time zone"),
    row(oid::INTERVAL, "interval", (16, F, 'd', 'p'), (Base, 'T', T), 1187, (Storage::Interval, F), ""),
    row(oid::TIMETZ, "timetz", (12, F, 'd', 'p'), (Base, 'D', F), 1270, (Storage::Bytes, F), "time with time zone"),
    row(oid::BIT, "bit", (-1, F, 'i', 'x'), (Base, 'V', F), 1561, (Storage::Bytes, F), ""),
    row(oid::VARBIT, "varbit", (-1, F, 'i', 'x'), (Base, 'V', T), 1563, (Storage::Bytes, F), "bit varying"),
    row(oid::NUMERIC, "numeric", (-1, F, 'i', 'm'), (Base, 'N', F), 1231, (Storage::Decimal, F), ""),
    row(oid::REGPROCEDURE, "regprocedure", (4, T, 'i', 'p'), (Base, 'N', F), 2207, (OID4, F), ""),
    row(oid::REGOPER, "regoper", (4, T, 'i', 'p'), (Base, 'N', F), 2208, (OID4, F), ""),
    row(oid::REGOPERATOR, "regoperator", (4, T, 'i', 'p'), (Base, 'N', F), 2209, (OID4, F), ""),
    row(oid::REGCLASS, "regclass", (4, T, 'i', 'p'), (Base, 'N', F), 2210, (OID4, F), ""),
    row(oid::REGTYPE, "regtype", (4, T, 'i', 'p'), (Base, 'N', F), 2211, (OID4, F), ""),
    row(oid::RECORD, "record", (-1, F, 'd', 'x'), (Pseudo, 'P', F), 2287, (Storage::Record, F), ""),
    row(oid::CSTRING, "cstring", (-2, F, 'c', 'p'), (Pseudo, 'P', F), 1263, (Storage::Text, F), ""),
    row(oid::ANY, "any", (4, T, 'i', 'p'), (Pseudo, 'P', F), 0, (Storage::Text, F), ""),
    row(oid::ANYARRAY, "anyarray", (-1, F, 'd', 'x'), (Pseudo, 'P', F), 0, (Storage::Text, F), ""),
    row(oid::VOID, "void", (4, T, 'i', 'p'), (Pseudo, 'P', F), 0, (Storage::Text, F), ""),
    row(oid::ANYELEMENT, "anyelement", (4, T, 'i', 'p'), (Pseudo, 'P', F), 0, (Storage::Text, F), ""),
    row(oid::ANYENUM, "anyenum", (4, T, 'i', 'p'), (Pseudo, 'P', F), 0, (Storage::Text, F), ""),
    row(oid::ANYNONARRAY, "anynonarray", (4, T, 'i', 'p'), (Pseudo, 'P', F), 0, (Storage::Text, F), ""),
    row(oid::UUID, "uuid", (16, F, 'c', 'p'), (Base, 'U', F), 2951, (Storage::Bytes, F), ""),
    row(oid::TXID_SNAPSHOT, "txid_snapshot", (-1, F, 'd', 'x'), (Base, 'U', F), 2949, (Storage::Bytes, F), ""),
    row(oid::PG_LSN, "pg_lsn", (8, T, 'd', 'p'), (Base, 'U', F), 3221, (UINT8, F), ""),
    row(oid::PG_SNAPSHOT, "pg_snapshot", (-1, F, 'd', 'x'), (Base, 'U', F), 5039, (Storage::Bytes, F), ""),
    row(oid::XID8, "xid8", (8, T, 'd', 'p'), (Base, 'U', F), 271, (UINT8, F), ""),
    row(oid::REGNAMESPACE, "regnamespace", (4, T, 'i', 'p'), (Base, 'N', F), 4090, (OID4, F), ""),
    row(oid::REGROLE, "regrole", (4, T, 'i', 'p'), (Base, 'N', F), 4097, (OID4, F), ""),
    row(oid::REGCOLLATION, "regcollation", (4, T, 'i', 'p'), (Base, 'N', F), 4192, (OID4, F), ""),
    row(oid::JSONB, "jsonb", (-1, F, 'i', 'x'), (Base, 'U', F), 3807, (Storage::Jsonb, F), ""),
    row(oid::ANYRANGE, "anyrange", (-1, F, 'd', 'x'), (Pseudo, 'P', F), 0, (Storage::Text, F), ""),
    row(oid::INT4RANGE, "int4range", (-1, F, 'i', 'x'), (Range, 'R', F), 3905, (Storage::Keyed, F), ""),
    row(oid::NUMRANGE, "numrange", (-1, F, 'i', 'x'), (Range, 'R', F), 3907, (Storage::Keyed, F), ""),
    row(oid::TSRANGE, "tsrange", (-1, F, 'd', 'x'), (Range, 'R', F), 3909, (Storage::Keyed, F), ""),
    row(oid::TSTZRANGE, "tstzrange", (-1, F, 'd', 'x'), (Range, 'R', F), 3911, (Storage::Keyed, F), ""),
    row(oid::DATERANGE, "daterange", (-1, F, 'i', 'x'), (Range, 'R', F), 3913, (Storage::Keyed, F), ""),
    row(oid::INT8RANGE, "int8range", (-1, F, 'd', 'x'), (Range, 'R', F), 3927, (Storage::Keyed, F), ""),
    row(oid::JSONPATH, "jsonpath", (-1, F, 'i', 'x'), (Base, 'U', F), 4073, (Storage::Text, F), ""),
    row(oid::INT4MULTIRANGE, "int4multirange", (-1, F, 'i', 'x'), (Multirange, 'R', F), 6150, (Storage::Keyed, F), ""),
    row(oid::NUMMULTIRANGE, "nummultirange", (-1, F, 'i', 'x'), (Multirange, 'R', F), 6151, (Storage::Keyed, F), ""),
    row(oid::TSMULTIRANGE, "tsmultirange", (-1, F, 'd', 'x'), (Multirange, 'R', F), 6152, (Storage::Keyed, F), ""),
    row(oid::TSTZMULTIRANGE, "tstzmultirange", (-1, F, 'd', 'x'), (Multirange, 'R', F), 6153, (Storage::Keyed, F), ""),
    row(oid::DATEMULTIRANGE, "datemultirange", (-1, F, 'i', 'x'), (Multirange, 'R', F), 6155, (Storage::Keyed, F), ""),
    row(oid::INT8MULTIRANGE, "int8multirange", (-1, F, 'd', 'x'), (Multirange, 'R', F), 6157, (Storage::Keyed, F), ""),
    row(oid::ANYMULTIRANGE, "anymultirange", (-1, F, 'd', 'x'), (Pseudo, 'P', F), 0, (Storage::Text, F), ""),
    row(oid::ANYCOMPATIBLEMULTIRANGE, "anycompatiblemultirange", (-1, F, 'd', 'x'), (Pseudo, 'P', F), 0, (Storage::Text, F), ""),
    row(oid::ANYCOMPATIBLE, "anycompatible", (4, T, 'i', 'p'), (Pseudo, 'P', F), 0, (Storage::Text, F), ""),
    row(oid::ANYCOMPATIBLEARRAY, "anycompatiblearray", (-1, F, 'd', 'x'), (Pseudo, 'P', F), 0, (Storage::Text, F), ""),
    row(oid::ANYCOMPATIBLENONARRAY, "anycompatiblenonarray", (4, T, 'i', 'p'), (Pseudo, 'P', F), 0, (Storage::Text, F), ""),
    row(oid::ANYCOMPATIBLERANGE, "anycompatiblerange", (-1, F, 'd', 'x'), (Pseudo, 'P', F), 0, (Storage::Text, F), ""),
];

const fn row(
    oid: Oid,
    name: &'static str,
    (len, by_value, align, toast): (i16, bool, char, char),
    (kind, category, is_preferred): (TypeKind, char, bool),
    array: Oid,
    (storage, is_collatable): (Storage, bool),
    sql_name: &'static str,
) -> PgType {
    PgType {
        oid,
        name,
        len,
        by_value,
        align,
        toast,
        kind,
        category,
        is_preferred,
        array,
        // A name's letters have subscripts in PostgreSQL's catalog.
        element: if oid == oid::NAME { oid::CHAR } else { 0 },
        storage,
        is_collatable,
        pads: oid == oid::BPCHAR,
        sql_name,
    }
}

/// Returns the row of a type whose values are arrays in a form of their own: numbers between spaces, the first at subscript 0.
const fn vector(oid: Oid, name: &'static str, element: Oid, array: Oid) -> PgType {
    PgType { element, ..row(oid, name, (-1, F, 'i', 'p'), (Base, 'A', F), array, (ARRAY, F), "") }
}

/// The rows of array types, in the order of their elements'.
static ARRAYS: LazyLock<Vec<PgType>> = LazyLock::new(|| {
    let of = |row: &PgType| {
        let align = if row.align == 'd' { 'd' } else { 'i' };
        let kind = if row.oid == oid::RECORD { Pseudo } else { Base };
        let category = if row.oid == oid::RECORD { 'P' } else { 'A' };
        // The rows live as long as the process.
        let name = String::leak(format!("_{}", row.name));
        let array =
            self::row(row.array, name, (-1, F, align, 'x'), (kind, category, F), 0, (ARRAY, row.is_collatable), "");
        PgType { element: row.oid, pads: row.pads, ..array }
    };
    TYPES.iter().filter(|row| row.array != 0).map(of).collect()
});

/// Returns the rows of all types, array types among them.
pub fn types() -> impl Iterator<Item = &'static PgType> {
    TYPES.iter().chain(ARRAYS.iter())
}

static BY_OID: LazyLock<Map<Oid, &'static PgType>> = LazyLock::new(|| types().map(|row| (row.oid, row)).collect());
static BY_NAME: LazyLock<HashMap<&'static str, &'static PgType>> =
    LazyLock::new(|| types().map(|row| (row.name, row)).collect());

impl TypeKind {
    /// Returns whether the type has values that a column can hold.
    pub fn has_values(self) -> bool {
        self != Pseudo
    }
}

impl PgType {
    /// Returns the row of a type that users define. Its name is in the catalog alone.
    pub(super) const fn user(oid: Oid, array: Oid, kind: TypeKind, storage: Storage) -> PgType {
        row(oid, "", (4, T, 'i', 'p'), (kind, 'E', F), array, (storage, F), "")
    }

    pub(super) const fn user_composite(oid: Oid, array: Oid) -> PgType {
        row(oid, "", (-1, F, 'd', 'x'), (TypeKind::Composite, 'C', F), array, (Storage::Record, F), "")
    }

    pub(super) const fn user_array(oid: Oid, element: Oid) -> PgType {
        PgType { element, ..row(oid, "", (-1, F, 'i', 'x'), (Base, 'A', F), 0, (ARRAY, F), "") }
    }
}

/// Returns the row of a type.
pub fn by_oid(oid: Oid) -> Option<PgType> {
    BY_OID.get(&oid).map(|row| **row).or_else(|| user::row(oid))
}

/// Returns the type by its name in `pg_catalog`: `int4`, not `integer`, which is the grammar's.
pub fn by_name(name: &str) -> Option<PgType> {
    BY_NAME.get(name).map(|row| **row)
}

/// Returns the type whose values are the elements of an array type.
pub fn element_of(array: Oid) -> Option<PgType> {
    by_oid(array).filter(|row| row.storage == ARRAY).and_then(|row| by_oid(row.element))
}

/// Returns the array type of elements of a type; `None` if it has none.
pub fn array_of(element: Oid) -> Option<Oid> {
    by_oid(element).map(|row| row.array).filter(|array| *array != 0)
}

/// Returns whether values of the type are arrays.
pub fn is_array(oid: Oid) -> bool {
    by_oid(oid).is_some_and(|row| row.storage == ARRAY && row.kind != TypeKind::Domain)
}

/// Returns the shape of values of a type.
pub fn shape_of(oid: Oid) -> Shape {
    column_type(oid, -1, true).shape()
}

/// Returns the type of a column or an expression. Panics for an OID without a row.
pub fn column_type(oid: Oid, typmod: i32, nullable: bool) -> Type {
    let row = by_oid(oid).unwrap_or_else(|| unreachable!("a type without a row: {oid}"));
    let collation = if row.pads { BPCHAR_COLLATION } else { Collation::Binary };
    let scale = if row.storage == Storage::Decimal { Type::ANY_SCALE } else { 0 };
    Type::plain(row.storage, TypeId(oid), (typmod as u32, scale), nullable, collation)
}

/// The order of bpchar: by bytes, but for spaces at the end.
pub const BPCHAR_COLLATION: Collation = Collation::Utf8PadBin;

/// Returns the OID of a type that PostgreSQL's dialect or the core made. Types of another dialect: `foreign::type_of`.
pub fn oid_of(ty: &Type) -> Oid {
    match ty.id {
        TypeId::TRUTH => oid::BOOL,
        TypeId::NULL => oid::UNKNOWN,
        TypeId::UNDECLARED => undeclared(ty.storage).unwrap_or(oid::UNKNOWN),
        TypeId(declared) => declared,
    }
}

/// Returns the type modifier; -1 where the type has none.
pub fn typmod_of(ty: &Type) -> i32 {
    match ty.id {
        TypeId(core) if core < CORE_END => -1,
        _ => ty.length as i32,
    }
}

/// Numbers below are those of the core's types.
const CORE_END: u32 = 16;

/// Returns the type whose values have the form of a storage type. `None` where PostgreSQL has no such type.
pub(crate) fn undeclared(storage: Storage) -> Option<Oid> {
    Some(match storage {
        Storage::Int { bytes: 1 | 2, signed: true } => oid::INT2,
        Storage::Int { bytes: 4, signed: true } => oid::INT4,
        Storage::Int { signed: true, .. } => oid::INT8,
        Storage::Float4 => oid::FLOAT4,
        Storage::Float8 => oid::FLOAT8,
        Storage::Decimal => oid::NUMERIC,
        Storage::Text => oid::TEXT,
        Storage::Bytes => oid::BYTEA,
        Storage::Json | Storage::Jsonb => oid::JSONB,
        Storage::Record => oid::RECORD,
        _ => return None,
    })
}

/// Returns the name of a type as errors have it, with its modifier where one is given: that of a type that users define is put in its place when the error leaves the session (`user::named`). Elsewhere names
/// are those of `IoContext::format_type`.
pub fn format_type(oid: Oid, typmod: Option<i32>) -> String {
    format_type_with(oid, typmod, &user::unnamed)
}

/// Returns the name of a type as SQL writes it, with its modifier where one is given. A modifier of -1 is that of a column declared without one.
pub(super) fn format_type_with(oid: Oid, typmod: Option<i32>, user_name: &dyn Fn(Oid) -> String) -> String {
    if oid == 0 {
        return "-".to_owned();
    }
    if let Some(element) = element_of(oid).filter(|_| !matches!(oid, oid::INT2VECTOR | oid::OIDVECTOR)) {
        return format_type_with(element.oid, typmod, user_name) + "[]";
    }
    if user::is_user_type(oid) {
        return user_name(oid);
    }
    let Some(row) = by_oid(oid) else { return "???".to_owned() };
    match (oid, typmod) {
        (oid::CHAR, _) => return "\"char\"".to_owned(),
        (oid::ANY, _) => return "\"any\"".to_owned(),
        // The SQL names alone mean character(1) and bit(1).
        (oid::BIT, Some(typmod)) if typmod < 0 => return "\"bit\"".to_owned(),
        (oid::BPCHAR, Some(typmod)) if typmod < 0 => return "bpchar".to_owned(),
        _ => {}
    }
    let name = if row.sql_name.is_empty() { row.name } else { row.sql_name };
    let modifier = typmod.map_or(String::new(), |typmod| typmod_out(oid, typmod));
    match name.split_once(' ') {
        Some((first, rest)) if matches!(oid, oid::TIME | oid::TIMETZ | oid::TIMESTAMP | oid::TIMESTAMPTZ) => {
            format!("{first}{modifier} {rest}")
        }
        _ => format!("{name}{modifier}"),
    }
}

/// Returns the modifier as the type's name is followed by it; empty for -1.
fn typmod_out(oid: Oid, typmod: i32) -> String {
    if typmod < 0 {
        return String::new();
    }
    match oid {
        oid::VARCHAR | oid::BPCHAR if typmod > HEADER => format!("({})", typmod - HEADER),
        oid::NUMERIC => {
            numeric_digits(typmod).map_or(String::new(), |(precision, scale)| format!("({precision},{scale})"))
        }
        oid::TIME | oid::TIMETZ | oid::TIMESTAMP | oid::TIMESTAMPTZ | oid::BIT | oid::VARBIT => format!("({typmod})"),
        oid::INTERVAL => interval_out(typmod),
        _ => String::new(),
    }
}

/// Bytes of a length word, which the modifiers of texts and numerics include.
const HEADER: i32 = 4;
const NUMERIC_PRECISION_MAX: i32 = 1000;
const NUMERIC_SCALE_MAX: i32 = 1000;
const LENGTH_MAX: i32 = 10 << 20;
const FRACTION_MAX: i32 = 6;

/// Returns the most characters of a varchar or a bpchar; `None` if there is no limit.
pub fn length_max(typmod: i32) -> Option<usize> {
    (typmod >= HEADER).then(|| (typmod - HEADER) as usize)
}

/// Returns precision and scale of a numeric; `None` if it is not bounded.
pub fn numeric_digits(typmod: i32) -> Option<(i32, i32)> {
    let bits = typmod - HEADER;
    // The scale is a number of 11 bits with a sign.
    (typmod >= HEADER).then(|| ((bits >> 16) & 0xffff, ((bits & 0x7ff) ^ 1024) - 1024))
}

pub fn numeric_typmod(precision: i32, scale: i32) -> i32 {
    ((precision << 16) | (scale & 0x7ff)) + HEADER
}

/// The fields of an interval as bits of the first modifier that the grammar gives.
pub mod interval_field {
    pub const MONTH: i32 = 1 << 1;
    pub const YEAR: i32 = 1 << 2;
    pub const DAY: i32 = 1 << 3;
    pub const HOUR: i32 = 1 << 10;
    pub const MINUTE: i32 = 1 << 11;
    pub const SECOND: i32 = 1 << 12;
    /// No fields were named.
    pub const ALL: i32 = 0x7fff;
    /// No precision of seconds was given.
    pub const FULL_PRECISION: i32 = 0xffff;
}

/// Returns fields and precision of an interval's modifier.
pub fn interval_parts(typmod: i32) -> (i32, i32) {
    ((typmod >> 16) & 0x7fff, typmod & 0xffff)
}

fn interval_out(typmod: i32) -> String {
    use interval_field::{ALL, DAY, FULL_PRECISION, HOUR, MINUTE, MONTH, SECOND, YEAR};
    const NAMES: [(i32, &str); 6] =
        [(YEAR, "year"), (MONTH, "month"), (DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (SECOND, "second")];
    let (fields, precision) = interval_parts(typmod);
    let mut named = NAMES.iter().filter(|(bit, _)| fields != ALL && fields & bit != 0).map(|(_, name)| name);
    let mut text = match (named.next(), named.next_back()) {
        (Some(first), Some(last)) => format!(" {first} to {last}"),
        (Some(only), None) => format!(" {only}"),
        (None, _) => String::new(),
    };
    if precision != FULL_PRECISION {
        text += &format!("({precision})");
    }
    text
}

/// A type modifier, and the text of a warning (SQLSTATE 22023) if a part was reduced.
#[derive(Debug, PartialEq, Eq)]
pub struct Typmod {
    pub typmod: i32,
    pub warning: Option<String>,
}

impl From<i32> for Typmod {
    fn from(typmod: i32) -> Typmod {
        Typmod { typmod, warning: None }
    }
}

/// Returns the modifier of a type with a list of modifiers after its name: `typmodin`. An interval's first modifier is the bits of its fields.
pub fn typmod_in(row: &PgType, modifiers: &[i32]) -> Result<Typmod> {
    match row.oid {
        oid::VARCHAR => length("varchar", LENGTH_MAX, modifiers).map(|length| (length + HEADER).into()),
        oid::BPCHAR => length("char", LENGTH_MAX, modifiers).map(|length| (length + HEADER).into()),
        oid::BIT | oid::VARBIT => length(row.name, LENGTH_MAX * 8, modifiers).map(Typmod::from),
        oid::NUMERIC => numeric(modifiers),
        oid::TIME => fraction("TIME", "", modifiers),
        oid::TIMETZ => fraction("TIME", " WITH TIME ZONE", modifiers),
        oid::TIMESTAMP => fraction("TIMESTAMP", "", modifiers),
        oid::TIMESTAMPTZ => fraction("TIMESTAMP", " WITH TIME ZONE", modifiers),
        oid::INTERVAL => interval(modifiers),
        _ => {
            let name = if user::is_user_type(row.oid) { user::unnamed(row.oid) } else { row.name.to_owned() };
            let text = format!("type modifier is not allowed for type \"{name}\"");
            Err(PgError::new(state::SYNTAX_ERROR, text))
        }
    }
}

#[cold]
fn invalid(text: impl Into<String>) -> PgError {
    PgError::new(state::INVALID_PARAMETER_VALUE, text)
}

fn length(name: &str, max: i32, modifiers: &[i32]) -> Result<i32> {
    match *modifiers {
        [length] if length < 1 => Err(invalid(format!("length for type {name} must be at least 1"))),
        [length] if length > max => Err(invalid(format!("length for type {name} cannot exceed {max}"))),
        [length] => Ok(length),
        _ => Err(invalid("invalid type modifier")),
    }
}

fn numeric(modifiers: &[i32]) -> Result<Typmod> {
    let (precision, scale) = match *modifiers {
        [precision] => (precision, 0),
        [precision, scale] => (precision, scale),
        _ => return Err(invalid("invalid NUMERIC type modifier")),
    };
    if !(1..=NUMERIC_PRECISION_MAX).contains(&precision) {
        let text = format!("NUMERIC precision {precision} must be between 1 and {NUMERIC_PRECISION_MAX}");
        return Err(invalid(text));
    }
    if !(-NUMERIC_SCALE_MAX..=NUMERIC_SCALE_MAX).contains(&scale) {
        let text = format!("NUMERIC scale {scale} must be between -{NUMERIC_SCALE_MAX} and {NUMERIC_SCALE_MAX}");
        return Err(invalid(text));
    }
    Ok(numeric_typmod(precision, scale).into())
}

fn fraction(name: &str, zone: &str, modifiers: &[i32]) -> Result<Typmod> {
    match *modifiers {
        [digits] if digits < 0 => Err(invalid(format!("{name}({digits}){zone} precision must not be negative"))),
        [digits] => Ok(reduced(name, zone, digits, |digits| digits)),
        _ => Err(invalid("invalid type modifier")),
    }
}

fn reduced(name: &str, zone: &str, digits: i32, typmod: impl Fn(i32) -> i32) -> Typmod {
    let text = || format!("{name}({digits}){zone} precision reduced to maximum allowed, {FRACTION_MAX}");
    Typmod { typmod: typmod(digits.min(FRACTION_MAX)), warning: (digits > FRACTION_MAX).then(text) }
}

fn interval(modifiers: &[i32]) -> Result<Typmod> {
    use interval_field::{ALL, FULL_PRECISION};
    match *modifiers {
        [ALL] => Ok((-1).into()),
        [fields] => Ok((fields << 16 | FULL_PRECISION).into()),
        [_, digits] if digits < 0 => Err(invalid(format!("INTERVAL({digits}) precision must not be negative"))),
        [fields, digits] => Ok(reduced("INTERVAL", "", digits, |digits| fields << 16 | digits)),
        _ => Err(invalid("invalid INTERVAL type modifier")),
    }
}

#[cfg(test)]
mod tests;
