use super::*;
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
