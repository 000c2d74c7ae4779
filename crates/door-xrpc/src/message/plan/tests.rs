use super::*;
use crate::proto::{put_bytes, put_measured, put_number};

/// A GET of the real client, in field 2 of its request.
const GET: &[u8] = b"\x08\x01\x12\x24\x0a\x0c\x12\x04\x08\x09\x50\x00\x1a\x04\x08\x09\x50\x01\x1a\x14\x0a\x12\x0a\x0a\x08\x08\x4a\x06\x0a\x02id\x10\x2d\x12\x04\x08\x09\x50\x02";

fn string(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    crate::message::datatypes::put_string_scalar(&mut out, text.as_bytes());
    out
}

fn node(kind: u64, place: u32, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(&mut out, 1, kind);
    put_measured(&mut out, place, write);
    out
}

fn table(out: &mut Vec<u8>, place: u32, name: &str) {
    put_measured(out, place, |out| put_bytes(out, 2, &string(name)));
}

fn get_plan() -> Plan<'static> {
    let source = Source { table: Scalar::Placeholder(0), schema: Some(Scalar::Placeholder(1)), index: None };
    Plan::Get(source, vec![vec![(Some(Scalar::String(b"id", Some(45))), Scalar::Placeholder(2))]])
}

#[test]
fn a_get_of_the_real_client_is_read() {
    assert_eq!(Plan::read(GET), Ok(get_plan()));
}

#[test]
fn a_cut_plan_is_malformed_wherever_it_is_cut() {
    for end in 0..GET.len() {
        assert_eq!(Plan::read(&GET[..end]), Err(Malformed), "{end}");
    }
}

#[test]
fn scans_are_read() {
    let plan = node(2, 3, |out| {
        table(out, 1, "t");
        put_measured(out, 2, |out| put_bytes(out, 1, &string("PRIMARY")));
        put_number(out, 3, 1);
    });
    let source = |index| Source { table: Scalar::String(b"t", None), schema: None, index };
    let primary = Some(Scalar::String(b"PRIMARY", None));
    assert_eq!(Plan::read(&plan), Ok(Plan::TableScan { source: source(primary), reverse: true }));
    let plan = node(8, 8, |out| {
        table(out, 3, "t");
        put_measured(out, 5, |out| put_measured(out, 1, |out| put_bytes(out, 2, b"\x08\x01\x10\x02")));
        put_number(out, 8, 0);
    });
    let from = Some(vec![(None, Scalar::Int(1))]);
    assert_eq!(Plan::read(&plan), Ok(Plan::RangeScan { source: source(None), from, to: None, reverse: false }));
}

#[test]
fn nodes_above_hold_the_one_below() {
    let picked = node(3, 4, |out| {
        put_bytes(out, 1, GET);
        put_bytes(out, 2, &string("c"));
        put_bytes(out, 2, b"\x08\x02\x18\x01");
    });
    let picked_plan = Plan::TableProject(Box::new(get_plan()), vec![Scalar::String(b"c", None), Scalar::UInt(1)]);
    assert_eq!(Plan::read(&picked), Ok(picked_plan.clone()));
    let filtered = node(5, 6, |out| {
        put_bytes(out, 1, &picked);
        put_bytes(out, 2, b"\x08\x09\x50\x00");
    });
    let filtered_plan = Plan::Filter(Box::new(picked_plan.clone()), Expr::Ref(0));
    assert_eq!(Plan::read(&filtered), Ok(filtered_plan.clone()));
    let computed = node(4, 5, |out| {
        put_bytes(out, 1, &filtered);
        put_bytes(out, 2, &string("x"));
        put_bytes(out, 3, b"\x08\x09\x50\x01");
    });
    let names = vec![Scalar::String(b"x", None)];
    let computed_plan = Plan::Project(Box::new(filtered_plan), names, vec![Expr::Ref(1)]);
    assert_eq!(Plan::read(&computed), Ok(computed_plan));
    let counted = node(9, 9, |out| {
        put_bytes(out, 1, &picked);
        put_number(out, 2, 1);
    });
    let counted_plan = Plan::Aggregate { below: Box::new(picked_plan), kind: 1, field: None, expr: None };
    assert_eq!(Plan::read(&counted), Ok(counted_plan));
}

#[test]
fn a_node_that_lacks_what_it_must_have_is_malformed() {
    for (what, bad) in [
        ("no type", b"\x12\x00".to_vec()),
        ("an unknown type", node(7, 7, |_| {})),
        ("a type without its node", node(1, 3, |out| table(out, 1, "t"))),
        ("no table", node(1, 2, |_| {})),
        ("a table without a name", node(1, 2, |out| put_bytes(out, 1, b""))),
        ("nothing below", node(5, 6, |out| put_bytes(out, 2, b"\x08\x09"))),
        ("a filter of nothing", node(5, 6, |out| put_bytes(out, 1, GET))),
        (
            "an unknown aggregate",
            node(9, 9, |out| {
                put_bytes(out, 1, GET);
                put_number(out, 2, 9);
            }),
        ),
    ] {
        assert_eq!(Plan::read(&bad), Err(Malformed), "{what}");
    }
}

#[test]
fn plans_do_not_nest_without_end() {
    let mut deep = GET.to_vec();
    for depth in 1..DEPTH_MAX + 2 {
        assert_eq!(Plan::read(&deep).is_ok(), depth <= DEPTH_MAX, "{depth}");
        deep = node(3, 4, |out| put_bytes(out, 1, &deep));
    }
}
