use super::*;
use crate::decimal::Decimal;
use crate::fault::Fault;

fn shown(text: &str) -> String {
    match parse(text) {
        Ok(node) => node.to_string(),
        Err(Fault::JsonSyntax { message, position }) => format!("{message} at {position}"),
        Err(fault) => panic!("{fault}"),
    }
}

#[test]
fn a_document_is_shown_in_one_form() {
    assert_eq!(
        shown(r#" {"bb":1,"a":[1.0,2e3,-5,true,null],"bb":"x\u00e9\n"} "#),
        r#"{"a": [1.0, 2000.0, -5, true, null], "bb": "xé\n"}"#
    );
    assert_eq!(shown("18446744073709551615"), "18446744073709551615");
    assert_eq!(shown("1e400"), "Number too big to be stored in double. at 0");
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    assert_eq!(shown(""), "The document is empty. at 0");
    assert_eq!(shown("{\"a\" 1}"), "Missing a colon after a name of object member. at 5");
    assert_eq!(shown("[1, 2"), "Missing a comma or ] after an array element. at 5");
    assert_eq!(shown("abc"), "Invalid value. at 0");
    assert_eq!(parse(&"[".repeat(101)).expect_err("too deep"), Fault::JsonDepth);
}

#[test]
fn a_document_survives_its_bytes() {
    let text = r#"{"a": [1, 2.5, "x", {"b": null}], "long name": [true, false, 18446744073709551615]}"#;
    let json = Json::from(parse(text).expect("a document"));
    let mut bytes = Vec::new();
    json.encode(&mut bytes);
    assert_eq!(Json::decode(&bytes).expect("decodes"), json);
    for length in 0..bytes.len() {
        assert_eq!(Json::decode(&bytes[..length]), None);
    }
}

/// Documents in the order that PostgreSQL 16 gives them as jsonb.
const JSONB_ASCENDING: [&str; 26] = [
    "[]",
    "null",
    "\"\"",
    "\"B\"",
    "\"a\"",
    "\"é\"",
    "-1",
    "1.5",
    "100000000000000000000",
    "false",
    "true",
    "[null]",
    "[\"a\"]",
    "[1]",
    "[false]",
    "[[]]",
    "[[1]]",
    "[[1, 2]]",
    "[{}]",
    "[1, 2]",
    "[[], 1]",
    "{}",
    "{\"a\": null}",
    "{\"a\": []}",
    "{\"aa\": 1}",
    "{\"a\": 1, \"b\": 2}",
];

#[test]
fn documents_and_their_keys_order_as_jsonb_does() {
    let key = |node: &Node| {
        let mut key = Vec::new();
        let order = crate::key::KeyOrder::ASCENDING;
        crate::key::encode(&crate::Value::Json(node.clone().into()), crate::Storage::Jsonb.into(), order, &mut key);
        key
    };
    let documents = JSONB_ASCENDING.map(|text| parse(text).expect("a document"));
    for (a, left) in documents.iter().enumerate() {
        for (b, right) in documents.iter().enumerate() {
            assert_eq!(left.compare_jsonb(right), a.cmp(&b), "{left} {right}");
            assert_eq!(key(left).cmp(&key(right)), a.cmp(&b), "{left} {right}");
        }
    }
    let scaled = |digits| Node::Array(vec![Node::Decimal(Decimal::parse(digits).expect("a decimal"))]);
    assert_eq!(key(&scaled("1.0")), key(&scaled("1.00")));
    assert_eq!(scaled("1.0").compare_jsonb(&scaled("1")), Ordering::Equal);
}

#[test]
fn numbers_of_any_length_survive_their_bytes() {
    let long = Decimal::from_big(num_bigint::BigInt::from(7).pow(500), 300);
    for number in [long, Decimal::new(1, 31), Decimal::new(-5, 2)] {
        let json = Json::from(Node::Array(vec![Node::Decimal(number.clone())]));
        let mut bytes = Vec::new();
        json.encode(&mut bytes);
        let Some(Node::Array(read)) = Json::decode(&bytes).map(|json| json.node().clone()) else { panic!("no array") };
        let [Node::Decimal(read)] = &read[..] else { panic!("no number") };
        assert_eq!((read, read.scale()), (&number, number.scale()));
    }
}
