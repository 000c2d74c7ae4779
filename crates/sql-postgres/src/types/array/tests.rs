use super::*;

fn text_of(ty: Oid, value: &Value) -> String {
    let mut out = Vec::new();
    io::output(value, &registry::column_type(ty, -1, true), &IoContext::default(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn read(ty: Oid, text: &str) -> Result<Value> {
    io::input(&registry::column_type(ty, -1, true), text, &IoContext::default())
}

#[test]
fn texts_are_read_and_written_as_postgres_does() {
    let cases = [
        (oid::INT4_ARRAY, " { 1 , NULL,3 } ", "{1,NULL,3}"),
        (oid::INT4_ARRAY, "[0:1][2:2]={{1},{2}}", "[0:1][2:2]={{1},{2}}"),
        (oid::INT4_ARRAY, "[1:0]={}", ""),
        (oid::INT4_ARRAY, "{{},{}}", ""),
        (oid::TEXT_ARRAY, r#"{"a b",c\,d,"NULL","",nULL,"q\"\\"}"#, r#"{"a b","c,d","NULL","",NULL,"q\"\\"}"#),
        (oid::INT2VECTOR, " 1 2  3", "1 2 3"),
        (oid::OIDVECTOR, "", ""),
    ];
    for (ty, text, expected) in cases {
        match read(ty, text) {
            Ok(value) => assert_eq!(text_of(ty, &value), expected, "{text}"),
            Err(error) => assert!(expected.is_empty(), "{text}: {error:?}"),
        }
    }
}

#[test]
fn a_binary_form_gives_the_value_back() {
    for (ty, text) in [(oid::INT4_ARRAY, "[2:3]={1,NULL}"), (oid::TEXT_ARRAY, "{{a},{b}}"), (oid::OIDVECTOR, "7 8")] {
        let value = read(ty, text).unwrap();
        let column = registry::column_type(ty, -1, true);
        let mut bytes = Vec::new();
        io::send(&value, &column, &IoContext::default(), &mut bytes).unwrap();
        assert_eq!(io::receive(&column, &bytes, &IoContext::default()).unwrap(), value);
        for end in 0..bytes.len() {
            assert!(io::receive(&column, &bytes[..end], &IoContext::default()).is_err());
        }
    }
}
