//! Ranges of numbers that are few enough to be compared with sets of them.

use super::*;
use crate::types::io::IoContext;
use crate::value::Decimal;

fn ends(ty: RangeType, number: i64, is_inclusive: bool) -> [RangeEnd<'static>; 2] {
    let value = Value::Decimal(Decimal::from(number));
    [true, false].map(|is_lower| RangeEnd::new(ty, Some(&value), is_lower, is_inclusive).unwrap())
}

/// Returns the text of a multirange, or of the error.
fn multirange(text: &str) -> std::result::Result<String, String> {
    let io = IoContext::default();
    let value =
        multirange_input(oid::INT4MULTIRANGE, text, &io).map_err(|error| String::from(error.detail.unwrap()))?;
    let mut out = Vec::new();
    multirange_output(oid::INT4MULTIRANGE, value.as_string_bytes().unwrap(), &io, &mut out).unwrap();
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn ranges_of_a_multirange_are_in_order_and_apart() {
    assert_eq!(multirange(" { [5,7), (,1] ,empty,[2,3],[6,9)} ").unwrap(), "{(,4),[5,9)}");
    assert_eq!(multirange("{}").unwrap(), "{}");
    assert_eq!(multirange("{empty}").unwrap(), "{}");
    assert_eq!(multirange("{[1,2],}").unwrap_err(), "Expected range start.");
    assert_eq!(multirange("{[1,2]").unwrap_err(), "Unexpected end of input.");
}

#[test]
fn many_ranges_are_read_in_the_time_of_their_number() {
    let mut text = String::from("{");
    for nth in (0..100_000).rev() {
        text += &format!("{}[{},{}]", if text.len() > 1 { "," } else { "" }, 3 * nth, 3 * nth + 1);
    }
    let read = multirange(&(text + "}")).unwrap();
    assert!(read.starts_with("{[0,2),[3,5),"));
    assert_eq!(read.matches('[').count(), 100_000);
}

/// PostgreSQL's rules of bounds at one value, all of them.
#[test]
fn ends_at_one_value_are_in_the_order_of_what_they_include() {
    let ty = of_range(oid::NUMRANGE).unwrap();
    let [lower, upper] = ends(ty, 1, true);
    let [lower_exclusive, upper_exclusive] = ends(ty, 1, false);
    for (less, greater) in
        [(&upper_exclusive, &lower), (&upper_exclusive, &upper), (&lower, &lower_exclusive), (&upper, &lower_exclusive)]
    {
        assert!(less.compare(greater).is_lt());
        assert!(greater.compare(less).is_gt());
    }
    assert!(lower.compare(&upper).is_eq());
    assert!(lower_exclusive.compare(&lower_exclusive).is_eq());
    let (none_below, none_above) =
        (RangeEnd::new(ty, None, true, true).unwrap(), RangeEnd::new(ty, None, false, true).unwrap());
    assert!(none_below.compare(&upper_exclusive).is_lt());
    assert!(none_above.compare(&lower_exclusive).is_gt());
    assert!(none_below.compare(&none_above).is_lt());
}

#[test]
fn damaged_bytes_are_an_error() {
    let ty = of_range(oid::NUMRANGE).unwrap();
    let [lower, _] = ends(ty, 1, true);
    let [_, upper] = ends(ty, 5, true);
    let value = ty.value(ty.range(lower, upper).unwrap().as_ref());
    let bytes = value.as_string_bytes().unwrap();
    assert!(ty.span(bytes).unwrap().is_some());
    for end in 2..bytes.len() {
        let read = ty.span(&bytes[..end]).and_then(|span| span.map_or(Ok(None), |span| span.upper.value(ty)));
        assert!(read.is_err(), "{end} bytes");
    }
}

#[test]
fn each_row_is_that_of_the_catalog() {
    let rows = include_str!("../../system/extract/pg_range.tsv").lines();
    let rows: Vec<Vec<Oid>> = rows.map(|line| line.split('\t').map(|field| field.parse().unwrap()).collect()).collect();
    assert_eq!(rows.len(), RANGE_TYPES.len());
    for row in rows {
        let ty = of_range(row[0]).unwrap();
        assert_eq!((ty.subtype, ty.multirange, ty.is_discrete), (row[1], row[2], row[5] != 0));
        assert_eq!(of_multirange(row[2]).map(|ty| ty.oid), Some(row[0]));
    }
}
