//! Bytes that are on disk today, of every storage type: a change of one of them is a new format. The order of keys is tested against the order of values
//! where the latter is defined, in the crates above.

use proptest::prelude::*;

use super::*;
use crate::row::{Layout, decode_value, encode_value};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A row of all cases, by `Layout::encode`.
const ROW: &str = concat!(
    "011800000080fb2c01000080ff0700000000286bee0000000000000080ffffffffffffffffea070000c0bf9a9999999999b93f77d50f00fbffffffff",
    "ffffff1426e68beaaefa0101401e18240a060003000500000000000000090000000000000000000000030016001b001f0021003a0002cfc7010b7abc",
    "627050305adf14a3d9e3fffffffffb416220c3a94162202000ff09010000000100000061080200000003010000000000000002",
);

const ORDERS: [KeyOrder; 4] = [
    KeyOrder::with_null_least(false),
    KeyOrder::with_null_least(true),
    KeyOrder::with_null_greatest(false),
    KeyOrder::with_null_greatest(true),
];

struct Case {
    value: Value,
    shape: Shape,
    /// By `row::encode_value`.
    stored: &'static str,
    /// Ascending; the descending one is its complement.
    key: &'static str,
}

fn cases() -> Vec<Case> {
    let case = |value, shape: Shape, stored, key| Case { value, shape, stored, key };
    let int = |bytes, signed| Shape::from(Storage::Int { bytes, signed });
    let text = |collation| Shape { storage: Storage::Text, collation };
    let reading = DateTime::at(Date::new(2026, 11, 23), 12, 34, 56, 789_012);
    let long = Decimal::parse("99999999999999999999999999999999999999999.5").expect("a decimal");
    let document = Json::from(crate::json::parse("{\"a\": [1, true]}").expect("a document"));
    vec![
        case(Value::Int(-5), int(1, true), "01fb", "017ffffffffffffffb"),
        case(Value::Int(300), int(2, true), "012c01", "01800000000000012c"),
        case(Value::Int(-8_388_608), int(4, true), "01000080ff", "017fffffffff800000"),
        case(Value::Int(7), int(4, true), "0107000000", "018000000000000007"),
        case(Value::UInt(4_000_000_000), int(4, false), "0100286bee", "0100000000ee6b2800"),
        case(Value::Int(i64::MIN), int(8, true), "010000000000000080", "010000000000000000"),
        case(Value::UInt(u64::MAX), int(8, false), "01ffffffffffffffff", "01ffffffffffffffff"),
        case(Value::UInt(2026), int(2, false), "01ea07", "0100000000000007ea"),
        case(Value::Float(-1.5), Storage::Float4.into(), "010000c0bf", "014007ffffffffffff"),
        case(Value::Double(0.1), Storage::Float8.into(), "019a9999999999b93f", "01bfb999999999999a"),
        case(Value::Decimal(Decimal::new(-12_345, 2)), Storage::Decimal.into(), "0102cfc7", "0100bffcf2dcccff"),
        case(
            Value::Decimal(long),
            Storage::Decimal.into(),
            "01010b7abc627050305adf14a3d9e3fffffffffb",
            "0102402964646464646464646464646464646464646464646000",
        ),
        case(Value::text("Ab é"), text(Collation::Utf8Uca900AiCi), "01416220c3a9", "012075208f020920db0000"),
        case(Value::text("Ab  "), text(Collation::Utf8GeneralCi), "0141622020", "0100410042002002"),
        case(Value::bytes([0, 255]), Storage::Bytes.into(), "0100ff", "0100ffff0000"),
        case(Value::Date(reading.date), Storage::Date.into(), "0177d50f00", "01000fd577"),
        case(Value::Time(Time::from_micros(-5)), Storage::Time.into(), "01fbffffffffffffff", "017ffffffffffffffb"),
        case(Value::DateTime(reading), Storage::Timestamp.into(), "011426e68beaaefa01", "0101faaeea8be62614"),
        case(
            Value::Timestamp(Timestamp(1_700_000_000_000_001)),
            Storage::TimestampTz.into(),
            "0101401e18240a0600",
            "0180060a24181e4001",
        ),
        case(
            Value::Json(document),
            Storage::Json.into(),
            "0109010000000100000061080200000003010000000000000002",
            "0103000000016100000401010240010b0001050100",
        ),
        case(Value::UInt(3), Storage::Enum.into(), "010300", "010000000000000003"),
        case(Value::UInt(5), Storage::Set.into(), "010500000000000000", "010000000000000005"),
        case(Value::UInt(9), Storage::Bit.into(), "010900000000000000", "010000000000000009"),
        case(Value::Null, int(4, true), "00", "00"),
    ]
}

#[test]
fn rows_and_keys_have_the_bytes_of_the_format() {
    let cases = cases();
    for Case { value, shape, stored, key } in &cases {
        let (mut bytes, mut up, mut down) = (Vec::new(), Vec::new(), Vec::new());
        encode_value(value, shape.storage, &mut bytes).expect("the slot's type");
        assert_eq!(hex(&bytes), *stored, "{value:?}");
        assert_eq!(decode_value(&bytes, shape.storage).expect("a value"), *value);
        encode(value, *shape, KeyOrder::ASCENDING, &mut up);
        assert_eq!(hex(&up), *key, "{value:?}");
        encode(value, *shape, KeyOrder::with_null_least(true), &mut down);
        assert!(up.iter().zip(&down).all(|(up, down)| *up == !down) && up.len() == down.len());
    }
    let layout = Layout::new(cases.iter().map(|case| case.shape.storage));
    let mut row = Vec::new();
    layout.encode(|slot| &cases[slot].value, &mut row).expect("the slots' types");
    assert_eq!(hex(&row), ROW);
}

/// DA-4.
#[test]
fn lossless_keys_give_their_value_back() {
    for Case { value, shape, .. } in cases().iter().filter(|case| is_lossless(case.shape.storage)) {
        for order in ORDERS {
            let mut key = Vec::new();
            encode(value, *shape, order, &mut key);
            assert_eq!(decode(&key, shape.storage, order), Some((value.clone(), key.len())));
            assert_eq!(length(&key, *shape, order), Some(key.len()));
        }
    }
}

/// DA-3.
#[test]
fn no_key_is_the_beginning_of_another() {
    let shape = Shape { storage: Storage::Text, collation: Collation::Utf8GeneralCi };
    let texts = ["", " ", "a", "a ", "a  b", "a\t", "ab", "a\0", "\0"];
    let key = |text: &str| {
        let mut key = Vec::new();
        encode(&Value::text(text), shape, KeyOrder::ASCENDING, &mut key);
        key
    };
    for a in texts {
        for b in texts {
            assert!(key(a) == key(b) || !key(a).starts_with(&key(b)), "{a:?} {b:?}");
        }
    }
}

#[test]
fn null_stands_at_the_end_that_the_order_names() {
    let shape = Shape::from(Storage::Int { bytes: 4, signed: true });
    let values = [Value::Int(-1), Value::Null, Value::Int(i64::MIN), Value::Int(i64::MAX)];
    let sorted = |order: KeyOrder| {
        let key = |value: &Value| {
            let mut key = Vec::new();
            encode(value, shape, order, &mut key);
            key
        };
        let mut sorted = values.to_vec();
        sorted.sort_by_key(key);
        sorted
    };
    let (null, low, mid, high) = (Value::Null, Value::Int(i64::MIN), Value::Int(-1), Value::Int(i64::MAX));
    let [least, least_down, greatest, greatest_down] = ORDERS.map(sorted);
    assert_eq!(least, [null.clone(), low.clone(), mid.clone(), high.clone()]);
    assert_eq!(least_down, [high.clone(), mid.clone(), low.clone(), null.clone()]);
    assert_eq!(greatest, [low.clone(), mid.clone(), high.clone(), null.clone()]);
    assert_eq!(greatest_down, [null, high, mid, low]);
    let bytes = ORDERS.map(|order| {
        let mut key = Vec::new();
        encode(&Value::Null, shape, order, &mut key);
        hex(&key)
    });
    assert_eq!(bytes, ["00", "ff", "02", "fd"]);
    for order in ORDERS {
        assert_eq!(order.reversed().reversed(), order);
        // A damaged first byte is neither NULL nor a value.
        assert_eq!(decode(&[0x40; 9], shape.storage, order), None);
        assert_eq!(length(&[0x40; 9], shape, order), None);
    }
}

fn key_of(value: &Value, storage: Storage, order: KeyOrder) -> Vec<u8> {
    let mut key = Vec::new();
    encode(value, storage.into(), order, &mut key);
    key
}

/// Forms that came after those of `cases`. The key of every decimal of former versions is as it was.
#[test]
fn long_scales_special_values_and_intervals_have_the_bytes_of_the_format() {
    let wide = Decimal::new(1, 0).times_exactly(&Decimal::new(-25, 16_383));
    let far = Decimal::from_big(num_bigint::BigInt::from(10u8).pow(60_000), 0);
    let cases = [
        (Value::Decimal(Decimal::NEGATIVE_INFINITY), Storage::Decimal, "01fd", "0100000000000000ff"),
        (Value::Decimal(Decimal::INFINITY), Storage::Decimal, "01fe", "0102ffffffffffff00"),
        (Value::Decimal(Decimal::NAN), Storage::Decimal, "01ff", "0103"),
        (Value::Decimal(Decimal::new(7, 127)), Storage::Decimal, "017f07", "01023f824700"),
        (Value::Decimal(Decimal::new(7, 128)), Storage::Decimal, "01808007", "01023f814700"),
        (Value::Decimal(wide), Storage::Decimal, "01bfffe7", "0100fffce5ff"),
        (Value::Interval(Span::new(1, -2, 3)), Storage::Interval, "010300000000000000feffffff01000000", ""),
        (
            Value::Interval(Span::new(0, 0, -1)),
            Storage::Interval,
            "01ffffffffffffffff0000000000000000",
            "017fffffffffffffffffffffffffffffff",
        ),
    ];
    for (value, storage, stored, key) in &cases {
        let mut bytes = Vec::new();
        encode_value(value, *storage, &mut bytes).expect("the slot's type");
        assert_eq!(hex(&bytes), *stored, "{value:?}");
        assert_eq!(decode_value(&bytes, *storage).expect("a value"), *value);
        if !key.is_empty() {
            assert_eq!(hex(&key_of(value, *storage, KeyOrder::ASCENDING)), *key, "{value:?}");
        }
        let layout = Layout::new([*storage, Storage::Text, *storage]);
        let (mut row, text) = (Vec::new(), Value::text("between"));
        layout.encode(|slot| if slot == 1 { &text } else { value }, &mut row).expect("the slots' types");
        let view = layout.open(&row).expect("a row");
        for slot in [0, 2] {
            assert_eq!(layout.value(&view, slot, *storage).expect("a value").as_ref(), Some(value));
        }
    }
    let far = key_of(&Value::Decimal(far), Storage::Decimal, KeyOrder::ASCENDING);
    assert_eq!(hex(&far), "0102ffff8000ea610b00");
}

fn some_decimal() -> impl Strategy<Value = Decimal> {
    let scales = prop_oneof![0u16..40, 0u16..=16_383];
    let powers = prop_oneof![3 => Just(0u32), 2 => 0u32..60, 1 => 0u32..60_000];
    let coefficients = prop_oneof![-100i128..100, any::<i64>().prop_map(i128::from), any::<i128>()];
    let finite = (coefficients, powers, scales).prop_map(|(coefficient, power, scale)| {
        Decimal::from_big(num_bigint::BigInt::from(coefficient) * num_bigint::BigInt::from(10u8).pow(power), scale)
    });
    prop_oneof![
        12 => finite,
        1 => prop_oneof![Just(Decimal::NAN), Just(Decimal::INFINITY), Just(Decimal::NEGATIVE_INFINITY)],
    ]
}

fn some_span() -> impl Strategy<Value = Span> {
    let small = (-3i32..4, -40i32..40, -3i64..4)
        .prop_map(|(months, days, hours)| Span::new(months, days, hours * 43_200_000_000));
    let any =
        (any::<i32>(), any::<i32>(), any::<i64>()).prop_map(|(months, days, micros)| Span::new(months, days, micros));
    prop_oneof![small, any]
}

/// DA-2, DA-3: the order of keys is that of values, and a key's end is found.
fn check_pair(a: &Value, b: &Value, storage: Storage, expected: std::cmp::Ordering) {
    for order in ORDERS {
        let (left, right) = (key_of(a, storage, order), key_of(b, storage, order));
        let expected = if order.descending { expected.reverse() } else { expected };
        assert_eq!(left.cmp(&right), expected, "{a:?} {b:?}");
        assert!(left == right || !left.starts_with(&right));
        assert_eq!(length(&[&left[..], &right[..]].concat(), storage.into(), order), Some(left.len()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn keys_of_decimals_order_as_decimals_do(a in some_decimal(), b in some_decimal()) {
        check_pair(&Value::Decimal(a.clone()), &Value::Decimal(b.clone()), Storage::Decimal, a.cmp(&b));
        check_pair(&Value::Decimal(a.clone()), &Value::Decimal(a.plus(&Decimal::new(0, 9))), Storage::Decimal, std::cmp::Ordering::Equal);
    }

    #[test]
    fn rows_give_decimals_back(a in some_decimal()) {
        let mut bytes = Vec::new();
        encode_value(&Value::Decimal(a.clone()), Storage::Decimal, &mut bytes).expect("the slot's type");
        assert_eq!(decode_value(&bytes, Storage::Decimal).expect("a value"), Value::Decimal(a));
    }

    #[test]
    fn keys_of_intervals_order_as_their_lengths(a in some_span(), b in some_span()) {
        check_pair(&Value::Interval(a), &Value::Interval(b), Storage::Interval, a.order(b));
    }

    #[test]
    fn keys_of_floats_order_as_floats_do(a in any::<f64>(), b in any::<f64>()) {
        for (a, b) in [(a, b), (a, f64::NAN), (-f64::NAN, b), (0.0, -0.0), (f64::NAN, -f64::NAN), (f64::INFINITY, a)] {
            check_pair(&Value::Double(a), &Value::Double(b), Storage::Float8, crate::float::order(a, b));
            let (a, b) = (a as f32, b as f32);
            check_pair(&Value::Float(a), &Value::Float(b), Storage::Float4, crate::float::order(a.into(), b.into()));
        }
    }

    #[test]
    fn damaged_decimals_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..12)) {
        let _ = decode_value(&[&[1u8][..], &bytes].concat(), Storage::Decimal);
        let _ = length(&bytes, Storage::Decimal.into(), KeyOrder::ASCENDING);
    }
}
