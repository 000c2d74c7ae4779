use datum::key::{KeyOrder, encode, length};
use datum::value::Dimension;

use super::*;

fn ordered(ty: ComparisonType, a: &Value, b: &Value) -> Ordering {
    order(ty, a, b, &mut EvalContext::new()).unwrap()
}

fn coerced(value: &Value, oid: oid::Oid) -> Coerced {
    coerce(value, &registry::column_type(oid, -1, true), &EvalContext::new())
}

#[test]
fn nan_is_greater_than_every_float_and_equal_to_itself() {
    let [nan, infinity] = [Value::Double(f64::NAN), Value::Double(f64::INFINITY)];
    assert_eq!(ordered(ComparisonType::Double, &nan, &infinity), Ordering::Greater);
    assert_eq!(ordered(ComparisonType::Double, &nan, &nan), Ordering::Equal);
    assert_eq!(ordered(ComparisonType::Double, &Value::Double(-0.0), &Value::Double(0.0)), Ordering::Equal);
}

#[test]
fn spaces_at_the_end_of_bpchar_do_not_count() {
    let bpchar = registry::column_type(oid::BPCHAR, 7, true);
    let by = comparator(&bpchar, &bpchar).unwrap();
    assert_eq!(ordered(by.ty, &Value::text("a  "), &Value::text("a")), Ordering::Equal);
    let text = registry::column_type(oid::TEXT, -1, true);
    let by = comparator(&text, &text).unwrap();
    assert_eq!(ordered(by.ty, &Value::text("a  "), &Value::text("a")), Ordering::Greater);
}

#[test]
fn an_index_is_searched_only_with_values_that_mean_the_same() {
    assert_eq!(coerced(&Value::Double(2.0), oid::INT4), Coerced::Exact(Value::Int(2)));
    assert_eq!(coerced(&Value::Double(2.5), oid::INT4), Coerced::Unusable);
    // Several whole numbers equal this one as doubles.
    assert_eq!(coerced(&Value::Double(9_007_199_254_740_992.0), oid::INT8), Coerced::Unusable);
    assert_eq!(coerced(&Value::Double(f64::NAN), oid::INT8), Coerced::Above);
    assert_eq!(coerced(&Value::Int(40_000), oid::INT2), Coerced::Above);
    assert_eq!(coerced(&Value::Int(-40_000), oid::INT2), Coerced::Below);
    assert_eq!(coerced(&Value::Double(0.1), oid::FLOAT4), Coerced::Unusable);
    assert_eq!(coerced(&Value::Double(0.5), oid::FLOAT4), Coerced::Exact(Value::Float(0.5)));
    assert_eq!(coerced(&Value::Decimal(Decimal::new(20, 1)), oid::INT4), Coerced::Exact(Value::Int(2)));
    assert_eq!(coerced(&Value::Null, oid::INT4), Coerced::Null);
}

#[test]
fn a_whole_number_meets_a_double_as_a_double() {
    let (a, b) = (Value::Int(9_007_199_254_740_993), Value::Double(9_007_199_254_740_992.0));
    assert_eq!(ordered(ComparisonType::Double, &a, &b), Ordering::Equal);
    let b = Value::Decimal(Decimal::new(9_007_199_254_740_992, 0));
    assert_eq!(ordered(ComparisonType::Decimal, &a, &b), Ordering::Greater);
}

/// DA-2, of arrays.
#[test]
fn keys_of_arrays_are_in_the_order_of_arrays() {
    let shape = registry::shape_of(oid::TEXT);
    let mut seed = 7u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut some = || {
        let count = random(4) as usize;
        let values: Vec<Value> = (0..count)
            .map(|_| match random(5) {
                0 => Value::Null,
                1 => Value::text(""),
                2 => Value::text("a\0"),
                nth => Value::text(["a", "ab"][nth as usize - 3]),
            })
            .collect();
        let lower = random(3) as i32 - 1;
        let line = Dimension { length: count as u32, lower };
        let dimensions = if random(3) == 0 { vec![Dimension::of(1), line] } else { vec![line] };
        Value::Array(Array::new(shape, &dimensions, values))
    };
    let ty = registry::column_type(oid::TEXT_ARRAY, -1, true);
    let key = |value: &Value| {
        let mut key = Vec::new();
        encode(value, ty.shape(), KeyOrder::ASCENDING, &mut key);
        assert_eq!(length(&key, ty.shape(), KeyOrder::ASCENDING), Some(key.len()));
        key
    };
    let by = comparator(&ty, &ty).unwrap();
    for _ in 0..3000 {
        let (a, b) = (some(), some());
        let order = by.order(&a, &b, &mut EvalContext::new()).unwrap();
        assert_eq!(key(&a).cmp(&key(&b)), order, "{a} {b}");
    }
}
