//! Column metadata, and the protocol's types by which values are encoded.

use sql_mysql::mysql_column::{common_flags, flag, set_bits, type_code};
use sql_mysql::types::{Column, Kind, MysqlType as _, Type};

use crate::message::reply::{ColumnMeta, Names};
use sql_mysql::charset::Results;

/// The protocol's types: each has one form for values in rows and one in chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireKind {
    Sint = 1,
    Uint = 2,
    Double = 5,
    Float = 6,
    Bytes = 7,
    Time = 10,
    DateTime = 12,
    Set = 15,
    Enum = 16,
    Bit = 17,
    Decimal = 18,
}

impl WireKind {
    pub fn of(ty: &Type) -> WireKind {
        match ty.kind() {
            kind if kind.is_integer() => {
                if ty.is_unsigned() {
                    WireKind::Uint
                } else {
                    WireKind::Sint
                }
            }
            Kind::Year => WireKind::Uint,
            Kind::Decimal => WireKind::Decimal,
            Kind::Float => WireKind::Float,
            Kind::Double => WireKind::Double,
            Kind::Bit => WireKind::Bit,
            Kind::Date | Kind::DateTime | Kind::Timestamp => WireKind::DateTime,
            Kind::Time => WireKind::Time,
            Kind::Enum => WireKind::Enum,
            Kind::Set => WireKind::Set,
            _ => WireKind::Bytes,
        }
    }
}

const JSON: u32 = 2;

/// Returns a column's metadata. `names` are in the client's character set; `None` omits them.
pub fn meta<'a>(column: &Column, names: Option<Names<'a>>, results: Results) -> ColumnMeta<'a> {
    let ty = &column.ty;
    let (collation, length) = results.collation_and_length(ty);
    ColumnMeta {
        kind: WireKind::of(ty) as u8,
        original_kind: type_code(ty.kind()),
        names,
        collation,
        fractional_digits: fractional_digits(ty),
        length: (ty.kind() != Kind::Null).then_some(length),
        flags: flags(column),
        content_type: (ty.kind() == Kind::Json).then_some(JSON),
        original_flags: original_flags(column).into(),
    }
}

fn fractional_digits(ty: &Type) -> Option<u8> {
    use WireKind::{DateTime, Decimal, Double, Float, Time};
    matches!(WireKind::of(ty), Float | Double | Decimal | Time | DateTime).then_some(ty.scale)
}

/// Returns the most bytes that a string of the column has on the wire; 0 for other types.
pub fn string_bytes(column: &Column, results: Results) -> u32 {
    match WireKind::of(&column.ty) {
        WireKind::Bytes | WireKind::Enum | WireKind::Set => results.collation_and_length(&column.ty).1,
        _ => 0,
    }
}

/// Returns the protocol's own flags; the meaning of the lowest bit depends on the type.
fn flags(column: &Column) -> u32 {
    const BY_TYPE: u32 = 0x01;
    let (ty, of) = (&column.ty, column.flags);
    let by_type = match WireKind::of(ty) {
        WireKind::Uint => ty.has_zerofill(),
        WireKind::Float | WireKind::Double | WireKind::Decimal => ty.is_unsigned(),
        // Padded to their length.
        WireKind::Bytes => matches!(ty.kind(), Kind::Char | Kind::Binary),
        WireKind::Set | WireKind::Enum => true,
        WireKind::DateTime => ty.kind() == Kind::Timestamp,
        _ => false,
    };
    let bits = [
        (by_type, BY_TYPE),
        (!ty.nullable, 0x10),
        (of.primary_key, 0x20),
        (of.unique_key, 0x40),
        (of.multiple_key, 0x80),
        (of.auto_increment, 0x100),
    ];
    bits.into_iter().filter(|(is_set, _)| *is_set).fold(0, |all, (_, bit)| all | bit)
}

/// Returns MySQL's flags of a column.
fn original_flags(column: &Column) -> u16 {
    let (ty, of) = (&column.ty, column.flags);
    let is_binary = ty.kind().is_bytes()
        || ty.kind().is_temporal()
        || ty.kind() == Kind::Json
        || ty.kind().is_number() && column.org_table.is_empty();
    let own = set_bits([
        (of.primary_key || of.unique_key || of.multiple_key, flag::PART_KEY),
        (ty.kind().is_blob(), flag::BLOB),
        (ty.is_unsigned() || matches!(ty.kind(), Kind::Bit | Kind::Year), flag::UNSIGNED),
        (is_binary, flag::BINARY),
        (ty.kind() == Kind::Timestamp, flag::TIMESTAMP),
    ]);
    common_flags(column) | own
}

#[cfg(test)]
mod tests {
    use sql_mysql::types::{Collation, ColumnFlags};

    use super::*;
    use sql_mysql::types::CollationName as _;

    fn of(ty: Type) -> ColumnMeta<'static> {
        let mut column = Column::computed("x", ty);
        column.org_table = "t".into();
        meta(&column, None, Results::UTF8)
    }

    /// Returns the protocol's type, MySQL's type, collation and length.
    fn told(ty: Type) -> (u8, u8, u16, Option<u32>) {
        let meta = of(ty);
        (meta.kind, meta.original_kind, meta.collation, meta.length)
    }

    #[test]
    fn types_are_told_as_the_tables_of_the_protocol_have_them() {
        let members = |kind| Type { members: Some(["ab".into(), "c".into()].into()), ..Type::of_kind(kind) };
        assert_eq!(told(Type::integer()), (1, 8, 63, Some(21)));
        assert_eq!(told(Type::unsigned()), (2, 8, 63, Some(21)));
        assert_eq!(told(Type::of_kind(Kind::Year)), (2, 13, 63, Some(4)));
        assert_eq!(told(Type::decimal(10, 2)), (18, 246, 63, Some(12)));
        assert_eq!(told(Type::of_kind(Kind::Float)), (6, 4, 63, Some(12)));
        assert_eq!(told(Type::double()), (5, 5, 63, Some(22)));
        assert_eq!(told(Type::of_kind(Kind::Bit)), (17, 16, 63, Some(1)));
        assert_eq!(told(Type::text(100, Collation::DEFAULT)), (7, 15, 255, Some(400)));
        assert_eq!(told(Type::of_kind(Kind::Text)), (7, 252, 255, Some(262_140)));
        assert_eq!(told(Type::bytes(3)), (7, 15, 63, Some(3)));
        assert_eq!(told(members(Kind::Enum)), (16, 247, 255, Some(8)));
        assert_eq!(told(members(Kind::Set)), (15, 248, 255, Some(16)));
        assert_eq!(told(Type::of_kind(Kind::Date)), (12, 10, 63, Some(10)));
        assert_eq!(told(Type::temporal(Kind::DateTime, 6)), (12, 12, 63, Some(26)));
        assert_eq!(told(Type::temporal(Kind::Timestamp, 0)), (12, 7, 63, Some(19)));
        assert_eq!(told(Type::temporal(Kind::Time, 0)), (10, 11, 63, Some(10)));
        assert_eq!(told(Type::of_kind(Kind::Json)), (7, 245, 63, Some(u32::MAX)));
        assert_eq!(told(Type::null()), (7, 6, 63, None));
        assert_eq!((of(Type::of_kind(Kind::Json)).content_type, of(Type::integer()).content_type), (Some(2), None));
        assert_eq!((of(Type::double()).fractional_digits, of(Type::integer()).fractional_digits), (Some(31), None));
    }

    /// An `int` primary key with AUTO_INCREMENT, with the values that the engine this protocol comes from has in its own tests.
    #[test]
    fn a_key_is_told_as_the_reference_tells_it() {
        let mut column = Column::computed("id", Type::of_kind(Kind::Int).with_nullable(false));
        column.org_table = "t".into();
        column.flags = ColumnFlags { primary_key: true, auto_increment: true, ..ColumnFlags::default() };
        let meta = meta(&column, None, Results::UTF8);
        assert_eq!((meta.kind, meta.original_kind, meta.collation, meta.length), (1, 3, 63, Some(11)));
        assert_eq!((meta.flags, meta.original_flags), (0x130, 16_899));
    }

    #[test]
    fn the_lowest_flag_says_what_its_type_has_of_it() {
        let flag = |ty: Type| of(ty).flags & 1;
        assert_eq!(flag(Type::unsigned().with_zerofill(true)), 1);
        assert_eq!(flag(Type::unsigned()), 0);
        assert_eq!(flag(Type::double().with_unsigned(true)), 1);
        assert_eq!(flag(Type::of_kind(Kind::Char)), 1);
        assert_eq!(flag(Type::of_kind(Kind::VarChar)), 0);
        assert_eq!(flag(Type::of_kind(Kind::Timestamp)), 1);
        assert_eq!(flag(Type::of_kind(Kind::DateTime)), 0);
    }
}
