use super::*;

#[test]
fn paths_find_what_they_name() {
    let root = parse(r#"{"a": [1, 2, {"b": 3}], "c d": {"b": 4}}"#).expect("a document");
    let find = |path: &str| {
        let found =
            path::Path::parse(path).expect("a path").find(&root).iter().map(ToString::to_string).collect::<Vec<_>>();
        found.join(" ")
    };
    assert_eq!(find("$.a[0]"), "1");
    assert_eq!(find("$.a[last].b"), "3");
    assert_eq!(find("$.a[0 to 1]"), "1 2");
    assert_eq!(find("$**.b"), "3 4");
    assert_eq!(find("$.\"c d\".b"), "4");
    assert_eq!(find("$.a[1][0]"), "2");
    assert_eq!(find("$.*[0]"), "1 {\"b\": 4}");
    assert!(path::Path::parse("$.").is_err());
    assert!(path::Path::parse("a").is_err());
    assert!(path::Path::parse("$**").is_err());
}
