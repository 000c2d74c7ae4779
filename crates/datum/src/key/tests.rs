//! Bytes that are on disk today, of every storage type: a change of one of them is a new format. The order of keys is tested against the order of values
//! where the latter is defined, in the crates above.

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
