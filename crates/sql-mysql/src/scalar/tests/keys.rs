//! The order of keys against the order of values (`compare::sort_order`).

use std::cmp::Ordering;

use datum::key::{KeyOrder, decode, encode, is_lossless, length, start_of_cell};
use proptest::prelude::*;

use crate::batch::Cell;
use crate::scalar::compare;
use crate::scalar::json::{self, Json};
use crate::types::{Collation, CollationName as _, Kind, MysqlType as _, Type};
use crate::value::{Date, DateTime, Decimal, Time, Timestamp, Value};
use query::nodes::context::EvalContext;

fn order_of(value: &Value, other: &Value, ty: &Type) -> (Ordering, Ordering) {
    let mut ctx = EvalContext::new();
    let expected = compare::sort_order(ty, value, other, &mut ctx).expect("values of a type compare");
    let (up, down) = (KeyOrder::ASCENDING, KeyOrder::with_null_least(true));
    let (mut a, mut b) = (Vec::new(), Vec::new());
    encode(value, ty.shape(), up, &mut a);
    encode(other, ty.shape(), up, &mut b);
    if a != b {
        assert!(!a.starts_with(&b) && !b.starts_with(&a), "DA-3: {value:?} {other:?}");
    }
    let (mut c, mut d) = (Vec::new(), Vec::new());
    encode(value, ty.shape(), down, &mut c);
    encode(other, ty.shape(), down, &mut d);
    assert_eq!(c.cmp(&d), a.cmp(&b).reverse(), "descending: {value:?} {other:?}");
    for (key, order) in [(&a, up), (&c, down)] {
        if let Value::Text(text) = value
            && let Some(start) = start_of_cell(Cell::Text(text), ty.shape(), order)
        {
            assert!(key.starts_with(&start.to_be_bytes()), "{value:?} {order:?}");
        }
    }
    if ty.kind() != Kind::Json {
        // Whatever follows, a key's length is told by itself.
        assert_eq!(length(&[&a[..], &b].concat(), ty.shape(), up), Some(a.len()), "{value:?}");
        assert_eq!(length(&[&c[..], &[0xFF; 4]].concat(), ty.shape(), down), Some(c.len()), "{value:?}");
    }
    (a.cmp(&b), expected)
}

fn decimals() -> impl Strategy<Value = Value> {
    let small = (any::<i64>(), 0u16..20).prop_map(|(n, scale)| Value::Decimal(Decimal::new(n.into(), scale)));
    let near = (-200i64..200, 0u16..3).prop_map(|(n, scale)| Value::Decimal(Decimal::new(n.into(), scale)));
    let wide =
        "-?[0-9]{30,35}\\.[0-9]{1,30}".prop_map(|text| Value::Decimal(Decimal::parse(&text).expect("a decimal")));
    prop_oneof![small, near, wide]
}

fn documents() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        (-20i64..20).prop_map(|n| n.to_string()),
        (-2.0f64..2.0).prop_map(|n| format!("{n:?}")),
        Just("1e300".to_owned()),
        "[a-c]{0,3}".prop_map(|text| format!("\"{text}\"")),
    ];
    let tree = leaf.prop_recursive(3, 12, 3, |inner| {
        let array = proptest::collection::vec(inner.clone(), 0..3).prop_map(|items| format!("[{}]", items.join(",")));
        let object = proptest::collection::vec(("[a-b]{1,2}", inner), 0..3).prop_map(|members| {
            let members: Vec<String> = members.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
            format!("{{{}}}", members.join(","))
        });
        prop_oneof![array, object]
    });
    tree.prop_map(|text| Value::Json(Json::from(json::parse(&text).expect("a document"))))
}

fn pairs() -> impl Strategy<Value = (Value, Value, Type)> {
    fn two(values: impl Strategy<Value = Value> + 'static, ty: Type) -> BoxedStrategy<(Value, Value, Type)> {
        let nullable = prop_oneof![9 => values, 1 => Just(Value::Null)].boxed();
        (nullable.clone(), nullable).prop_map(move |(a, b)| (a, b, ty.clone())).boxed()
    }
    let micros = -3_020_399_999_999i64..3_020_399_999_999;
    let dates = (0u16..3, 0u8..13, 0u8..32).prop_map(|(year, month, day)| Date::new(year * 1000, month, day));
    let datetimes = (dates.clone(), 0..crate::scalar::temporal::MICROS_PER_DAY)
        .prop_map(|(date, micros)| Value::DateTime(DateTime::new(date, micros)));
    prop_oneof![
        two(any::<i64>().prop_map(Value::Int), Type::integer()),
        two((-3i64..3).prop_map(Value::Int), Type::integer()),
        two(any::<u64>().prop_map(Value::UInt), Type::unsigned()),
        two(any::<f64>().prop_filter("no NaN", |n| !n.is_nan()).prop_map(Value::Double), Type::double()),
        two(prop_oneof![Just(0.0), Just(-0.0), -1.0..1.0f64].prop_map(Value::Double), Type::double()),
        two(decimals(), Type::decimal(65, 30)),
        two("[ -~]{0,5}".prop_map(Value::text), Type::text(10, Collation::DEFAULT)),
        two("[aAbB \t\u{1}]{0,5}".prop_map(Value::text), Type::text(10, Collation::Utf8GeneralCi)),
        two(proptest::collection::vec(0u8..3, 0..4).prop_map(Value::bytes), Type::bytes(10)),
        two(dates.prop_map(Value::Date), Type::of_kind(Kind::Date)),
        two(datetimes, Type::temporal(Kind::DateTime, 6)),
        two(micros.prop_map(|micros| Value::Time(Time::from_micros(micros))), Type::temporal(Kind::Time, 6)),
        two(any::<i64>().prop_map(|at| Value::Timestamp(Timestamp(at))), Type::temporal(Kind::Timestamp, 6)),
        two(documents(), Type::of_kind(Kind::Json)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn keys_order_as_values_do((a, b, ty) in pairs()) {
        let (keys, values) = order_of(&a, &b, &ty);
        prop_assert_eq!(keys, values, "DA-2: {:?} {:?} {:?}", a, b, ty.kind());
    }

    #[test]
    fn keys_of_numbers_and_times_give_their_value_back((a, _, ty) in pairs(), descending in any::<bool>(), nulls_first in any::<bool>()) {
        let order = KeyOrder { descending, nulls_first };
        let mut key = Vec::new();
        encode(&a, ty.shape(), order, &mut key);
        if let Some((value, length)) = decode(&key, ty.storage, order) {
            prop_assert_eq!(length, key.len());
            let mut ctx = EvalContext::new();
            prop_assert!(compare::sort_order(&ty, &value, &a, &mut ctx).expect("compares").is_eq());
            prop_assert!(!is_lossless(ty.storage) || value == a, "DA-4: {:?} {:?}", value, a);
        }
    }
}
