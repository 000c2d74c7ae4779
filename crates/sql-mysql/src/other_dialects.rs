//! The numbers by which the catalog tells dialects and their types apart.

use std::borrow::Cow;

use query::catalog::object_id::Maker;
use query::types::Type;

/// The number of this dialect in the catalog, which is also that of definitions from before makers.
pub const MAKER: Maker = Maker(0);

/// The bit that MySQL's type numbers have.
pub const MYSQL: u32 = 1 << 31;

/// The first number of another dialect's types; those below are the core's.
const FIRST: u32 = 16;

/// Numbers of PostgreSQL's types.
pub const BOOL: u32 = 16;
pub const NAME: u32 = 19;
pub const JSON: u32 = 114;
pub const BPCHAR: u32 = 1042;
pub const VARCHAR: u32 = 1043;
pub const DATE: u32 = 1082;
pub const TIME: u32 = 1083;
pub const TIMESTAMP: u32 = 1114;
pub const TIMESTAMPTZ: u32 = 1184;
pub const NUMERIC: u32 = 1700;
pub const UUID: u32 = 2950;
pub const JSONB: u32 = 3802;

/// Types whose values have no form in MySQL.
const OPAQUE: [(u32, &str); 24] = [
    (650, "cidr"),
    (774, "macaddr8"),
    (829, "macaddr"),
    (869, "inet"),
    (1186, "interval"),
    (1266, "time with time zone"),
    (1560, "bit"),
    (1562, "bit varying"),
    (2970, "txid_snapshot"),
    (3220, "pg_lsn"),
    (3904, "int4range"),
    (3906, "numrange"),
    (3908, "tsrange"),
    (3910, "tstzrange"),
    (3912, "daterange"),
    (3926, "int8range"),
    (4451, "int4multirange"),
    (4532, "nummultirange"),
    (4533, "tsmultirange"),
    (4534, "tstzmultirange"),
    (4535, "datemultirange"),
    (4536, "int8multirange"),
    (5038, "pg_snapshot"),
    (5069, "xid8"),
];

/// Types whose values are converted (`other_values`).
const CONVERTED: [u32; 6] = [DATE, TIME, TIMESTAMP, TIMESTAMPTZ, UUID, JSONB];

/// Types whose values have MySQL's form: numbers, texts and bytes.
const PLAIN: [u32; 20] =
    [BOOL, 17, 18, NAME, 20, 21, 23, 24, 25, 26, JSON, 700, 701, 705, BPCHAR, VARCHAR, NUMERIC, 2205, 2206, 2278];

/// Returns whether another dialect declared the type.
pub fn is_of_others(ty: &Type) -> bool {
    ty.id.0 & MYSQL == 0 && ty.id.0 >= FIRST
}

/// The least number of a composite type of PostgreSQL's.
const COMPOSITES_BEGIN: u32 = 1 << 27;

/// The least number of an enum of PostgreSQL's, or of a domain.
const USER_TYPES_BEGIN: u32 = 1 << 28;

/// The least number of a PostgreSQL domain; those below `DOMAINS` have no form here.
const FURTHER_DOMAINS_BEGIN: u32 = 1 << 29;

/// The numbers of PostgreSQL's domains. Bits 24 to 28 are a place in `DOMAIN_FORMS`.
const DOMAINS: std::ops::Range<u32> = 1 << 30..3 << 29;
/// The types in whose form the values of domains are; other forms have none here.
const DOMAIN_FORMS: [u32; 24] = [
    BOOL, 17, 18, NAME, 20, 21, 23, 25, 26, JSON, 700, 701, BPCHAR, VARCHAR, 1082, 1083, 1114, 1184, 1186, 1266,
    NUMERIC, 2950, 3802, 4072,
];

/// Returns whether the type is a domain of another dialect.
pub fn is_domain(ty: &Type) -> bool {
    DOMAINS.contains(&ty.id.0)
}

/// Returns the number of a type, or of one in whose form the values of a domain are.
pub fn form_of(ty: &Type) -> u32 {
    let form = DOMAIN_FORMS.get((ty.id.0 >> 24 & 31) as usize).filter(|_| is_domain(ty));
    form.copied().unwrap_or(ty.id.0)
}

/// Returns the name of a type whose values MySQL cannot read.
pub fn opaque_name(ty: &Type) -> Option<Cow<'static, str>> {
    let form = form_of(ty);
    if !is_of_others(ty) || PLAIN.contains(&form) || CONVERTED.contains(&form) {
        return None;
    }
    let known = OPAQUE.iter().find(|(id, _)| *id == form);
    Some(match known {
        Some((_, name)) => Cow::Borrowed(*name),
        None if (DOMAINS.end..MYSQL).contains(&form) => Cow::Borrowed("array of another dialect"),
        None if (FURTHER_DOMAINS_BEGIN..DOMAINS.end).contains(&form) => Cow::Borrowed("domain of another dialect"),
        None if (COMPOSITES_BEGIN..USER_TYPES_BEGIN).contains(&ty.id.0) => Cow::Borrowed("row of another dialect"),
        // PostgreSQL gives these numbers to types that users define.
        None if ty.id.0 >= USER_TYPES_BEGIN => Cow::Borrowed("enum of another dialect"),
        None => Cow::Owned(format!("type {}", ty.id.0)),
    })
}
