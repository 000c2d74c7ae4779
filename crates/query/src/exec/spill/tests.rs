use crate::exec::spill::{decode_row, encode_row};
use crate::value::{Date, DateTime, Decimal, Span, Time, Timestamp, Value};
use datum::json::Json;

#[test]
fn every_kind_of_value_comes_back_as_it_was() {
    let decimals = [
        "0",
        "-1.50",
        "99999999999999999999999999999999999999999999999999999999999999.999",
        "-0.000000000000000000000000000001",
    ];
    let mut row: Vec<Value> = decimals.iter().map(|text| Value::Decimal(Decimal::parse(text).unwrap())).collect();
    row.extend(
        [Decimal::NAN, Decimal::INFINITY, Decimal::NEGATIVE_INFINITY, Decimal::new(-7, 16_383)].map(Value::Decimal),
    );
    row.push(Value::Interval(Span::new(1, -2, 3)));
    row.extend([
        Value::Null,
        Value::Int(i64::MIN),
        Value::UInt(u64::MAX),
        Value::Float(-1.5),
        Value::Double(f64::MAX),
        Value::text(""),
        Value::text("ein längerer Text, der nicht in den Wert selbst passt"),
        Value::bytes([0, 255, 7]),
        Value::Date(Date::new(9999, 12, 31)),
        Value::Date(Date::new(0, 0, 0)),
        Value::Time(Time::checked(-3_020_399_000_000).unwrap()),
        Value::DateTime(DateTime::new(Date::new(2024, 2, 29), 86_399_999_999)),
        Value::Timestamp(Timestamp(-5)),
        Value::Json(Json::from_value(&Value::text("x"))),
    ]);
    let mut bytes = Vec::new();
    encode_row(&row, &mut bytes);
    let whole = bytes.clone();
    let mut rest = &bytes[..];
    let came = decode_row(&mut rest).unwrap();
    assert!(rest.is_empty());
    assert_eq!(format!("{came:?}"), format!("{row:?}"));
    for cut in 0..whole.len() {
        assert!(decode_row(&mut &whole[..cut]).is_err(), "{cut}");
    }
}
