//! Column definitions of a result set.

use std::sync::LazyLock;

use sql_mysql::charset::Results;
use sql_mysql::mysql_column::{code, common_flags, flag, set_bits, type_code};
use sql_mysql::types::{Collation, CollationName as _, Column, Kind, MysqlType as _, Type};

use crate::charset::put_text;
use crate::wire::put_bytes;

/// Returns the type of a column on the wire, by which a binary row encodes its values.
pub fn wire_kind(column: Kind) -> u8 {
    match column {
        Kind::Enum | Kind::Set => code::STRING,
        Kind::VarChar | Kind::VarBinary => code::VAR_STRING,
        column => type_code(column),
    }
}

/// The type that a computed document is described as.
static DOCUMENT: LazyLock<Type> = LazyLock::new(|| Type::text(u32::MAX / 4, Collation::DEFAULT));

/// The display length of a computed DOUBLE: one more than that of a column.
const COMPUTED_DOUBLE: u32 = 23;

/// Appends the payload of a column definition packet.
pub fn put_column(out: &mut Vec<u8>, column: &Column, results: Results) {
    let (collation, length) = match column.ty.kind() {
        // A computed document is described as text.
        Kind::Json if is_computed(column) => results.collation_and_length(&DOCUMENT),
        Kind::Double if is_computed(column) && column.ty == Type::double().with_nullable(column.ty.nullable) => {
            (results.collation_and_length(&column.ty).0, COMPUTED_DOUBLE)
        }
        _ => results.collation_and_length(&column.ty),
    };
    put_bytes(out, b"def");
    for name in [&column.schema, &column.table, &column.org_table, &column.name, &column.org_name] {
        put_text(out, name, results);
    }
    out.push(12);
    out.extend_from_slice(&collation.to_le_bytes());
    out.extend_from_slice(&length.to_le_bytes());
    out.push(wire_kind(column.ty.kind()));
    out.extend_from_slice(&flags(column).to_le_bytes());
    out.push(decimals(column));
    out.extend_from_slice(&[0, 0]);
}

fn decimals(column: &Column) -> u8 {
    let ty = &column.ty;
    match ty.kind() {
        Kind::Decimal | Kind::Float | Kind::Double | Kind::Time | Kind::DateTime | Kind::Timestamp => ty.scale,
        // 0x41 is a number as well.
        kind if kind.is_bytes() && ty.is_unsigned() => 0,
        // Computed strings have no fixed number of digits.
        kind if is_computed(column) && (ty.is_string() || kind == Kind::Json) => Type::FLOATING,
        _ => 0,
    }
}

fn is_computed(column: &Column) -> bool {
    column.org_table.is_empty()
}

fn flags(column: &Column) -> u16 {
    let (ty, of) = (&column.ty, column.flags);
    let is_computed = is_computed(column);
    let is_number = ty.kind().is_number() || ty.kind() == Kind::Year;
    let own = set_bits([
        (of.primary_key || of.part_key, flag::PART_KEY),
        (ty.kind().is_blob() && !is_computed, flag::BLOB),
        (ty.is_unsigned() && !ty.is_string() || matches!(ty.kind(), Kind::Bit | Kind::Year), flag::UNSIGNED),
        (
            ty.kind().is_bytes()
                || ty.kind().is_temporal()
                || matches!(ty.kind(), Kind::Json | Kind::Null)
                || ty.kind().is_text() && ty.collation == ty.collation.binary_twin()
                || is_number && is_computed,
            flag::BINARY,
        ),
        (ty.kind() == Kind::Timestamp && (of.default_now || of.on_update_now), flag::TIMESTAMP),
    ]);
    common_flags(column) | own
}

#[cfg(test)]
mod tests {
    use sql_mysql::types::ColumnFlags;

    use super::*;

    fn tail(column: &Column, results: Results) -> (u16, u32, u8, u16, u8) {
        let mut out = Vec::new();
        put_column(&mut out, column, results);
        let end: &[u8; 13] = out.last_chunk().unwrap();
        assert_eq!((end[0], &end[11..]), (12, &[0, 0][..]));
        let two = |at: usize| u16::from_le_bytes([end[at], end[at + 1]]);
        (two(1), u32::from_le_bytes([end[3], end[4], end[5], end[6]]), end[7], two(8), end[10])
    }

    #[test]
    fn a_definition_has_the_bytes_of_the_protocol() {
        let mut column = Column::computed("c", Type::text(10, Collation::DEFAULT).with_nullable(false));
        (column.schema, column.table, column.org_table, column.org_name) =
            ("db".into(), "a".into(), "t".into(), "o".into());
        let mut out = Vec::new();
        put_column(&mut out, &column, Results::UTF8);
        assert_eq!(out, b"\x03def\x02db\x01a\x01t\x01c\x01o\x0c\xff\x00\x28\x00\x00\x00\xfd\x01\x00\x00\x00\x00");
    }

    /// The expected values are MySQL 8.0's answers for the same columns.
    #[test]
    fn types_are_told_as_mysql_tells_them() {
        let of = |ty: Type| tail(&Column::computed("x", ty), Results::UTF8);
        assert_eq!(of(Type { length: 2, ..Type::integer() }.with_nullable(false)), (63, 2, 8, 0x81, 0));
        assert_eq!(of(Type::decimal(10, 2)), (63, 12, 246, 0x80, 2));
        assert_eq!(of(Type::double()), (63, 23, 5, 0x80, 31));
        assert_eq!(of(Type::of_kind(Kind::Text)), (255, 262_140, 252, 0, 31));
        assert_eq!(of(Type::of_kind(Kind::LongBlob)), (63, u32::MAX, 252, 0x80, 31));
        assert_eq!(of(Type::temporal(Kind::DateTime, 6)), (63, 26, 12, 0x80, 6));
        assert_eq!(of(Type::temporal(Kind::Time, 0)), (63, 10, 11, 0x80, 0));
        assert_eq!(of(Type::of_kind(Kind::Json)), (255, 4_294_967_292, 245, 0x80, 31));
        assert_eq!(of(Type::of_kind(Kind::Year)), (63, 4, 13, 0xe0, 0));
    }

    #[test]
    fn a_key_of_a_table_is_told_as_one() {
        let mut column = Column::computed("id", Type::of_kind(Kind::Int).with_nullable(false));
        column.org_table = "t".into();
        column.flags = ColumnFlags { primary_key: true, auto_increment: true, ..ColumnFlags::default() };
        assert_eq!(tail(&column, Results::UTF8), (63, 11, 3, 0x4203, 0));
    }

    #[test]
    fn lengths_are_in_bytes_of_the_clients_letters() {
        let column = Column::computed("x", Type::text(10, Collation::Utf8PadBin));
        assert_eq!(tail(&column, Results::named("latin1")).1, 10);
        assert_eq!(tail(&column, Results::named("utf8mb3")).1, 30);
        assert_eq!(tail(&column, Results::named("")).0, 46, "as it is");
    }
}
