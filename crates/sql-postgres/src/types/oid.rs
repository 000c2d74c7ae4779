//! Object identifiers of the built-in types, as in PostgreSQL's `pg_type.dat`.

pub type Oid = u32;

pub const BOOL: Oid = 16;
pub const BYTEA: Oid = 17;
pub const CHAR: Oid = 18;
pub const NAME: Oid = 19;
pub const INT8: Oid = 20;
pub const INT2: Oid = 21;
pub const INT4: Oid = 23;
pub const REGPROC: Oid = 24;
pub const TEXT: Oid = 25;
pub const OID: Oid = 26;
pub const JSON: Oid = 114;
pub const FLOAT4: Oid = 700;
pub const FLOAT8: Oid = 701;
pub const UNKNOWN: Oid = 705;
pub const BPCHAR: Oid = 1042;
pub const VARCHAR: Oid = 1043;
pub const DATE: Oid = 1082;
pub const TIME: Oid = 1083;
pub const TIMESTAMP: Oid = 1114;
pub const TIMESTAMPTZ: Oid = 1184;
pub const INTERVAL: Oid = 1186;
pub const TIMETZ: Oid = 1266;
pub const NUMERIC: Oid = 1700;
pub const REGCLASS: Oid = 2205;
pub const REGTYPE: Oid = 2206;
pub const RECORD: Oid = 2249;
pub const ANY: Oid = 2276;
pub const VOID: Oid = 2278;
pub const ANYELEMENT: Oid = 2283;
pub const UUID: Oid = 2950;
