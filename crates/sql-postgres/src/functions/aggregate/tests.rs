use datum::key::KeyOrder;

use super::*;
use crate::types::{oid, registry};

fn aggregate(function: &'static AggregateFunction, arguments: &[oid::Oid], order: Vec<KeyOrder>) -> Aggregate {
    let ty = |oid: &oid::Oid| registry::column_type(*oid, -1, true);
    Aggregate {
        function,
        distinct: false,
        arguments: arguments.iter().map(ty).collect(),
        order,
        separator: "".into(),
        ty: ty(&arguments[0]),
        by: None,
        filtered: false,
        setting: 0,
    }
}

fn folded(aggregate: &Aggregate, rows: &[&[Value]]) -> Value {
    let mut ctx = EvalContext::new();
    let mut state = aggregate.start();
    for row in rows {
        if aggregate.function.counts_null || !row[0].is_null() {
            state.add(aggregate, row, &mut ctx).unwrap();
        }
    }
    state.finish(aggregate, &mut ctx).unwrap()
}

#[test]
fn string_agg_puts_each_rows_delimiter_before_its_value() {
    let of = aggregate(&STRING_AGG, &[oid::TEXT, oid::TEXT], Vec::new());
    let text = |text: &str| Value::text(text);
    let rows: [&[Value]; 4] =
        [&[text("a"), text("1")], &[Value::Null, text("2")], &[text("b"), text("3")], &[text("c"), Value::Null]];
    assert_eq!(folded(&of, &rows), text("a3bc"));
    assert_eq!(folded(&of, &[&[Value::Null, text("1")]]), Value::Null);
}

#[test]
fn string_agg_follows_the_order_within_the_call() {
    let of = aggregate(&STRING_AGG, &[oid::TEXT, oid::TEXT, oid::INT4], vec![KeyOrder::ASCENDING]);
    let row = |text: &str, place: i64| [Value::text(text), Value::text(","), Value::Int(place)];
    let rows = [row("c", 3), row("a", 1), row("b", 2)];
    assert_eq!(folded(&of, &[&rows[0], &rows[1], &rows[2]]), Value::text("a,b,c"));
}

#[test]
fn bool_and_is_false_with_the_first_false_and_null_without_rows() {
    let (and, or) = (aggregate(&BOOL_AND, &[oid::BOOL], vec![]), aggregate(&BOOL_OR, &[oid::BOOL], vec![]));
    let both: [&[Value]; 2] = [&[Value::TRUE], &[Value::FALSE]];
    assert_eq!((folded(&and, &both), folded(&or, &both)), (Value::FALSE, Value::TRUE));
    assert_eq!((folded(&and, &both[..1]), folded(&or, &both[1..])), (Value::TRUE, Value::FALSE));
    assert_eq!((folded(&and, &[]), folded(&or, &[])), (Value::Null, Value::Null));
}

#[test]
fn extremes_follow_the_order_of_the_type() {
    let rows: [&[Value]; 3] = [&[Value::text("b")], &[Value::text("a ")], &[Value::text("a")]];
    let of = |function, oid| folded(&aggregate(function, &[oid], vec![]), &rows);
    assert_eq!(of(&MIN, oid::TEXT), Value::text("a"));
    assert_eq!(of(&MAX, oid::TEXT), Value::text("b"));
    // The first of equal values is kept.
    assert_eq!(of(&MIN, oid::BPCHAR), Value::text("a "));
}
