//! The types of columns of computed tables.

use datum::{Collation, Storage};
use query::types::{Type, TypeId};

use crate::types::oid::{self, Oid};

const fn of(oid: Oid, storage: Storage) -> Type {
    Type::plain(storage, TypeId(oid), (u32::MAX, 0), true, Collation::Binary)
}

pub const BOOL: Type = of(oid::BOOL, Storage::Int { bytes: 1, signed: true });
pub const CHAR: Type = of(oid::CHAR, Storage::Int { bytes: 1, signed: false });
pub const INT2: Type = of(oid::INT2, Storage::Int { bytes: 2, signed: true });
pub const INT4: Type = of(oid::INT4, Storage::Int { bytes: 4, signed: true });
pub const INT8: Type = of(oid::INT8, Storage::Int { bytes: 8, signed: true });
pub const FLOAT4: Type = of(oid::FLOAT4, Storage::Float4);
pub const NAME: Type = of(oid::NAME, Storage::Text);
pub const OID: Type = of(oid::OID, Storage::Int { bytes: 4, signed: false });
pub const REGTYPE: Type = of(oid::REGTYPE, Storage::Int { bytes: 4, signed: false });
pub const TEXT: Type = of(oid::TEXT, Storage::Text);
pub const NODE_TREE: Type = of(oid::PG_NODE_TREE, Storage::Text);
pub const TIMESTAMPTZ: Type = of(oid::TIMESTAMPTZ, Storage::Int { bytes: 8, signed: true });
