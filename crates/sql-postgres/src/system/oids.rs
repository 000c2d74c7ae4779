//! Object identifiers of the catalog's objects.
//!
//! The catalog numbers all its objects in one sequence, and the numbers stay; an OID is the number above those of PostgreSQL's own objects. Those of temporary objects have bit 30 and the lower bits of their numbers.

use query::catalog::temporary_maps;

use crate::types::oid::Oid;

/// The first OID of objects that users make.
pub const FIRST: Oid = 16384;
pub const PG_CATALOG: Oid = 11;
pub const PUBLIC: Oid = 2200;
pub const INFORMATION_SCHEMA: Oid = 13183;
/// The role `postgres`.
pub const POSTGRES: Oid = 10;
/// The catalogs themselves, as `classid` names them.
pub const PG_TYPE: Oid = 1247;
pub const PG_CLASS: Oid = 1259;
pub const PG_AUTHID: Oid = 1260;
pub const PG_DATABASE: Oid = 1262;
pub const PG_ATTRDEF: Oid = 2604;
pub const PG_CONSTRAINT: Oid = 2606;
pub const PG_NAMESPACE: Oid = 2615;
pub const PG_EXTENSION: Oid = 3079;
pub const PG_REWRITE: Oid = 2618;
pub const PG_DEFAULT_ACL: Oid = 826;
/// The role that stands for the owner of the current database.
pub const PG_DATABASE_OWNER: Oid = 6171;
/// The tablespaces.
pub const PG_DEFAULT: Oid = 1663;
pub const PG_GLOBAL: Oid = 1664;
/// The collations `default` and `C`.
pub const COLLATION_DEFAULT: Oid = 100;
pub const COLLATION_C: Oid = 950;
/// The access methods.
pub const HEAP: Oid = 2;
pub const BTREE: Oid = 403;
pub const GIN: Oid = 2742;

/// The schema of the Redis door's keys, the extension that it belongs to, and the first of its tables. PostgreSQL's own objects end before them.
pub const REDIS: Oid = 16_000;
pub const REDIS_EXTENSION: Oid = 16_001;
pub const REDIS_STRINGS: Oid = 16_002;

/// Returns the OID of an object of the catalog.
pub fn of_object(id: u64) -> Oid {
    crate::bind::relation_oid(id)
}

/// Returns the number of an object in the catalog; `None` for an OID of PostgreSQL's own.
pub fn object_of(oid: Oid) -> Option<u64> {
    match oid >> temporary_maps::NARROW_BITS {
        1 => Some(temporary_maps::narrow(temporary_maps::FIRST | u64::from(oid))),
        _ => oid.checked_sub(FIRST).map(u64::from),
    }
}

/// The OIDs of defaults begin here: a column's default has the number of its column in the upper bits.
const DEFAULT_BITS: u32 = 20;

/// Returns the OID of the default of a table's column: the table's, with the number of the column in the upper bits.
pub fn of_default(relation: Oid, column: i64) -> Oid {
    relation.wrapping_add((column as u32) << DEFAULT_BITS)
}

/// Returns the OID of the table of a column's default.
pub fn table_of_default(default: Oid) -> Oid {
    default & ((1 << DEFAULT_BITS) - 1)
}

/// Returns the OID of the rule of a view.
pub fn of_rule(view: Oid) -> Oid {
    view | RULE
}

/// Returns the OID of the view of a rule.
pub fn view_of_rule(rule: Oid) -> Oid {
    rule & !RULE
}

const RULE: Oid = 0x8000_0000;

/// Returns the OID of a membership, which follows from the three roles.
pub fn of_membership(member: Oid, of: Oid, grantor: Oid) -> Oid {
    let mixed = [of, grantor].into_iter().fold(member, |mixed, role| mixed.wrapping_mul(0x0100_0193) ^ role);
    mixed | 0x8000_0000
}
