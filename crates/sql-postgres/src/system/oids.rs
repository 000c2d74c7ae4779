//! Object identifiers of the catalog's objects.
//!
//! The catalog numbers all its objects in one sequence, and the numbers stay; an OID is the number above those of PostgreSQL's own objects.

use crate::types::oid::Oid;

/// The first OID of objects that users make.
pub const FIRST: Oid = 16384;
pub const PG_CATALOG: Oid = 11;
pub const PUBLIC: Oid = 2200;
pub const INFORMATION_SCHEMA: Oid = 13183;
/// The role `postgres`.
pub const POSTGRES: Oid = 10;
/// The access methods.
pub const HEAP: Oid = 2;
pub const BTREE: Oid = 403;

/// Returns the OID of an object of the catalog.
pub fn of_object(id: u64) -> Oid {
    crate::bind::relation_oid(id)
}

/// Returns the number of an object in the catalog; `None` for an OID of PostgreSQL's own.
pub fn object_of(oid: Oid) -> Option<u64> {
    oid.checked_sub(FIRST).map(u64::from)
}

/// Returns the OID of a role: above those of objects, by its name.
pub fn of_role(name: &str) -> Oid {
    if name == crate::instance::database::POSTGRES {
        return POSTGRES;
    }
    // FNV-1a; two roles of one OID are told apart by nothing here, which names alone identify.
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash | 0xc000_0000
}
