use sql_mysql::batch::Batch;
use sql_mysql::scalar::decimal::Decimal;
use sql_mysql::types::{Collation, CollationName as _};

use super::*;

fn row(binary: bool, cells: &[(Type, Value)]) -> Vec<u8> {
    let columns: Vec<Column> = cells.iter().map(|(ty, _)| Column::computed("x", ty.clone())).collect();
    let values: Vec<Value> = cells.iter().map(|(_, value)| value.clone()).collect();
    let mut out = Vec::new();
    RowWriter::new(Results::UTF8, binary).put_row(&mut out, &columns, Batch::from(vec![values]).row(0)).unwrap();
    out
}

fn text(ty: Type, value: Value) -> String {
    let out = row(false, &[(ty, value)]);
    assert_eq!(usize::from(out[0]), out.len() - 1);
    String::from_utf8(out[1..].to_vec()).unwrap()
}

fn binary(ty: Type, value: Value) -> Vec<u8> {
    let out = row(true, &[(ty, value)]);
    assert_eq!(out[..2], [0, 0]);
    out[2..].to_vec()
}

fn at(micros: u32) -> Value {
    Value::DateTime(DateTime::at(Date::new(2026, 11, 21), 8, 5, 4, micros))
}

#[test]
fn values_are_shown_as_text() {
    for (ty, value, shown) in [
        (Type::integer(), Value::Int(-42), "-42"),
        (Type::unsigned(), Value::UInt(u64::MAX), "18446744073709551615"),
        (Type { length: 5, ..Type::unsigned().with_zerofill(true) }, Value::UInt(42), "00042"),
        (Type::of_kind(Kind::Float).with_unsigned(true).with_zerofill(true), Value::Float(1.5), "0000000001.5"),
        (Type::decimal(10, 2), Value::Decimal(Decimal::new(-150, 2)), "-1.50"),
        (Type::double(), Value::Double(0.1), "0.1"),
        (Type::text(9, Collation::DEFAULT), Value::text("Wal"), "Wal"),
        (Type::of_kind(Kind::Date), Value::Date(Date::new(33, 1, 2)), "0033-01-02"),
        (Type::of_kind(Kind::Date), at(0), "2026-11-21"),
        (Type::temporal(Kind::DateTime, 0), at(999_999), "2026-11-21 08:05:04"),
        (Type::temporal(Kind::DateTime, 3), at(7_000), "2026-11-21 08:05:04.007"),
        (Type::temporal(Kind::Time, 6), Value::Time(Time::from_micros(-3_020_399_000_001)), "-838:59:59.000000"),
        (Type::temporal(Kind::Time, 0), Value::Time(Time::from_micros(61_000_000)), "00:01:01"),
        (Type::of_kind(Kind::Year), Value::UInt(0), "0000"),
    ] {
        assert_eq!(text(ty, value), shown);
    }
    assert_eq!(
        row(false, &[(Type::null(), Value::Null), (Type::bytes(2), Value::bytes([0, 255]))]),
        b"\xfb\x02\x00\xff"
    );
}

/// The specialised encoders and the general one agree.
#[test]
fn moments_are_shown_as_query_shows_them() {
    for scale in 0..=6 {
        for value in [at(123_456), Value::Time(Time::from_micros(-123_456_789_012)), Value::Date(Date::new(1, 2, 3))] {
            let kind = match value {
                Value::Time(_) => Kind::Time,
                Value::Date(_) => Kind::Date,
                _ => Kind::DateTime,
            };
            let ty = Type::temporal(kind, scale);
            let mut expected = String::new();
            write_text(&value, &ty, &mut expected);
            assert_eq!(text(ty, value), expected);
        }
    }
}

#[test]
fn binary_values_have_the_width_of_their_column() {
    let tiny = Type::of_kind(Kind::TinyInt);
    assert_eq!(binary(tiny, Value::Int(-1)), [255]);
    assert_eq!(binary(Type::of_kind(Kind::SmallInt), Value::Int(-2)), [254, 255]);
    assert_eq!(binary(Type::of_kind(Kind::MediumInt), Value::Int(-2)), [254, 255, 255, 255]);
    assert_eq!(binary(Type::integer(), Value::Int(1)), [1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(binary(Type::of_kind(Kind::Float), Value::Float(1.5)), 1.5f32.to_le_bytes());
    assert_eq!(binary(Type::double(), Value::Double(-0.1)), (-0.1f64).to_le_bytes());
    assert_eq!(binary(Type::of_kind(Kind::Year), Value::UInt(2026)), [0xea, 7]);
    assert_eq!(binary(Type::decimal(4, 1), Value::Decimal(Decimal::new(15, 1))), b"\x031.5");
    assert_eq!(binary(Type::text(3, Collation::DEFAULT), Value::text("abc")), b"\x03abc");
}

#[test]
fn binary_moments_are_as_short_as_they_can_be() {
    let ty = || Type::temporal(Kind::DateTime, 6);
    assert_eq!(binary(ty(), Value::DateTime(DateTime::ZERO)), [0]);
    assert_eq!(binary(ty(), Value::Date(Date::new(2026, 11, 21))), [4, 0xea, 7, 11, 21]);
    assert_eq!(binary(ty(), at(0)), [7, 0xea, 7, 11, 21, 8, 5, 4]);
    assert_eq!(binary(ty(), at(1)), [11, 0xea, 7, 11, 21, 8, 5, 4, 1, 0, 0, 0]);
    let time = |micros| binary(Type::temporal(Kind::Time, 6), Value::Time(Time::from_micros(micros)));
    assert_eq!(time(0), [0]);
    assert_eq!(time(-(25 * 3600 + 61) * 1_000_000), [8, 1, 1, 0, 0, 0, 1, 1, 1]);
    assert_eq!(time(1), [12, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
}

#[test]
fn nulls_of_a_binary_row_are_bits_from_the_third_on() {
    let cells: Vec<(Type, Value)> = (0..9)
        .map(|at| (Type::of_kind(Kind::TinyInt), if at % 2 == 0 { Value::Null } else { Value::Int(at) }))
        .collect();
    assert_eq!(row(true, &cells), [0, 0b0101_0100, 0b0000_0101, 1, 3, 5, 7]);
}

#[test]
fn a_value_of_another_kind_is_an_error_in_binary() {
    let columns = [Column::computed("n", Type::integer())];
    let error = RowWriter::new(Results::UTF8, true)
        .put_row(&mut Vec::new(), &columns, Batch::from(vec![vec![Value::text("7")]]).row(0))
        .unwrap_err();
    assert_eq!((error.code, &error.message[..]), (1105, "column 'n' is bigint, and its value is not"));
}
