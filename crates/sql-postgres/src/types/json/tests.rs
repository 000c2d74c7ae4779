use super::{build, input, jsonb_input, unquoted, write};

fn written(text: &str) -> String {
    let mut out = String::new();
    write(&build(text).unwrap(), &mut out);
    out
}

#[test]
fn a_tree_is_written_as_jsonb_is() {
    assert_eq!(written(r#" {"b":1, "aa":[ ] ,"a":{"x":null},"b":1.50}"#), r#"{"a": {"x": null}, "b": 1.50, "aa": []}"#);
    assert_eq!(written(r#""é\n\u0001\/\u00e9\ud83d\ude00""#), "\"é\\n\\u0001/é😀\"");
    assert_eq!(written("[1E3, -0, 1.20e1]"), "[1000, 0, 12.0]");
}

#[test]
fn halves_of_surrogates_and_zero_characters_are_errors_of_jsonb_alone() {
    for (text, detail) in [
        (r#""\ud800""#, "Unicode low surrogate must follow a high surrogate."),
        (r#""\udc00""#, "Unicode low surrogate must follow a high surrogate."),
        (r#""\ud800\ud800""#, "Unicode high surrogate must not follow a high surrogate."),
        (r#""\u0000""#, "\\u0000 cannot be converted to text."),
    ] {
        let error = jsonb_input(text).unwrap_err();
        assert_eq!(error.detail.as_deref(), Some(detail), "{text}");
        assert!(input(text).is_ok());
    }
    assert_eq!(unquoted(r#""a\"b""#).unwrap(), "a\"b");
}

#[test]
fn a_jsonb_nests_as_deep_as_documents_may() {
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert!(jsonb_input(&nested(100)).is_ok());
    assert_eq!(jsonb_input(&nested(101)).unwrap_err().state, "54001");
    assert!(input(&nested(6400)).is_ok());
    assert_eq!(input(&nested(6401)).unwrap_err().state, "54001");
}
