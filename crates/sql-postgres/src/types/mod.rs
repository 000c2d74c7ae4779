//! PostgreSQL's types over the storage types of the core.
//!
//! A type is an object identifier (OID) and a type modifier. The core's `Type` carries both: `id` is the OID, `length` the modifier's bits, so that -1, no modifier, is `u32::MAX`. PostgreSQL types its
//! expressions statically, so a `Value` need not tell a date from a number:
//!
//! | Types | storage | value |
//! |---|---|---|
//! | bool | `Int` of 1 byte | `Int`, 0 or 1 |
//! | int2, int4, int8 | `Int` of 2, 4, 8 bytes | `Int` |
//! | oid, regclass and their like | `Int` of 4 bytes, unsigned | `UInt` |
//! | xid8, pg_lsn | `Int` of 8 bytes, unsigned | `UInt` |
//! | pg_snapshot, txid_snapshot | `Bytes` | `Bytes` (`snapshot`) |
//! | "char" | `Int` of 1 byte, unsigned | `UInt`, the byte |
//! | float4, float8 | `Float4`, `Float8` | `Float`, `Double` |
//! | numeric | `Decimal` | `Decimal`, with NaN and infinities |
//! | text, varchar, name, json, jsonpath, unknown | `Text` | `Text` |
//! | bpchar | `Text` in a collation that ignores spaces at the end | `Text` |
//! | bytea | `Bytes` | `Bytes` |
//! | uuid | `Bytes` | `Bytes`, 16 of them |
//! | inet, cidr | `Bytes` | `Bytes`, which order as the addresses do (`network`) |
//! | macaddr, macaddr8 | `Bytes` | `Bytes`, 6 and 8 of them |
//! | bit, varbit | `Bytes` | `Bytes`, which order as the bit strings do (`bits`) |
//! | date | `Int` of 4 bytes | `Int`: days since 2000-01-01; the extremes are the infinities |
//! | time | `Int` of 8 bytes | `Int`: microseconds since midnight |
//! | timestamp, timestamptz | `Int` of 8 bytes | `Int`: microseconds since 2000-01-01 (UTC for timestamptz); the extremes are the infinities |
//! | timetz | `Bytes` | `Bytes`: 8 bytes of UTC time of day (time + zone) in microseconds with the sign flipped, 4 of the zone in seconds west of UTC with the sign flipped, both big-endian, so that bytes order as times do |
//! | interval | `Interval` | `Interval`: months, days, microseconds |
//! | jsonb | `Jsonb` | `Json`: a tree whose numbers are `Decimal`s |
//! | ranges, multiranges | `Keyed` | `Bytes`: the keys of the bounds, and behind them the bounds that their keys do not give back (`range`) |
//! | record | `Record` | `Record`, which knows the names and types of its fields |
//! | composite types | `Record` | `Record`, as above |
//! | domains | those of their base types | those of their base types |
//! | enums | `Bytes` | `Bytes`: the key of the label, whose bytes order as the labels do |
//! | arrays, int2vector, oidvector | `Array` | `Array`, whose elements have the form of their type |
//!
//! The forms of dates and times are PostgreSQL's own, so comparing, hashing, sorting and indexing them is that of integers.

pub mod array;
pub mod assignment;
pub mod bits;
pub mod boolean;
pub mod bytea;
pub mod comparison;
pub mod foreign;
pub mod io;
pub mod json;
pub mod jsonpath;
pub mod lsn;
pub mod macaddr;
pub mod network;
pub mod numeric;
pub mod oid;
pub mod range;
pub mod record;
pub mod reg;
pub mod registry;
pub mod row_type;
pub mod snapshot;
pub mod temporal;
pub mod text;
pub mod user;
pub mod uuid;
