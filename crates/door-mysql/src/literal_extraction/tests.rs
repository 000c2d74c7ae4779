use stdx::prng::Prng;

use super::*;

const UTF8: LiteralSyntax = LiteralSyntax { charset: Charset::Utf8, backslash_escapes: true, ansi_quotes: false };

fn long(piece: &str) -> String {
    piece.repeat(LONG / piece.len() + 1)
}

fn lifted(statement: impl AsRef<[u8]>) -> Option<(String, Vec<Value>)> {
    let bytes = statement.as_ref().to_vec();
    match extract(bytes.clone(), 0, UTF8) {
        Ok(Extracted { text, values }) => Some((text, values)),
        Err(same) => {
            assert_eq!(same, bytes, "what is not taken stays as it came");
            None
        }
    }
}

#[test]
fn values_come_out_as_what_they_mean() {
    let (plain, hex) = (long("ä"), long("0aFf"));
    let statement = format!(
        "insert into `t?` -- it's\n (a, b) values (1, '{plain}'), ('x?', _binary '{}'),\n(x'{hex}', 0x{hex}) on duplicate key update a = \"{}\" ;\n",
        long("a\\0\\'b''c\\%\\\\"),
        long("q\"\"'\\n"),
    );
    let (text, values) = lifted(&statement).expect("it is an insert");
    assert_eq!(
        text,
        "insert into `t?` -- it's\n (a, b) values (1, ?), ('x?', ?),\n(?, ?) on duplicate key update a = ? ;\n"
    );
    let bytes: Vec<u8> = [0x0a, 0xff].repeat(hex.len() / 4);
    let expected = [
        Value::text(&plain),
        Value::bytes(
            long("a\\0\\'b''c\\%\\\\")
                .replace("\\0", "\0")
                .replace("\\'", "'")
                .replace("''", "'")
                .replace("\\\\", "\\"),
        ),
        Value::bytes(&bytes),
        Value::bytes(&bytes),
        Value::text(long("q\"\"'\\n").replace("\"\"", "\"").replace("\\n", "\n")),
    ];
    assert!(values == expected);
    // Bytes that are not text.
    let statement = [b"UPDATE t SET a='".to_vec(), vec![0xfe; LONG], b"x' WHERE b = 1".to_vec()].concat();
    let (text, values) = lifted(&statement).expect("it is an update");
    assert_eq!(text, "UPDATE t SET a=? WHERE b = 1");
    assert!(values == [Value::bytes([vec![0xfe; LONG], vec![b'x']].concat())]);
}

#[test]
fn what_is_not_surely_a_value_is_left_to_the_parser() {
    let string = format!("'{}'", long("x"));
    for statement in [
        format!("select {string}"),
        "insert into t values ('short')".into(),
        format!("insert into t values ('a' {string})"),
        format!("insert into t values ({string} 'a')"),
        format!("insert into t values ({string} collate utf8mb4_bin)"),
        format!("insert into t values ({string} + 1)"),
        format!("insert into t values (_latin1{string})"),
        format!("insert into t values (n{string})"),
        format!("insert into t values (1 + {string})"),
        format!("insert into t values (date {string})"),
        format!("insert into t values (x'{}')", long("0g")),
        format!("insert into t values (0x{}1)", long("00")),
        format!("insert into t values (?, {string})"),
        format!("insert into t values ({string}); delete from t"),
        format!("/*!50000 insert into t values ({string}) */"),
        format!("insert into t values ({}", &string[..LONG]),
        string.clone(),
    ] {
        let shown = &statement[..statement.len().min(60)];
        assert_eq!(lifted(&statement).map(|(text, _)| text), None, "{shown}");
    }
    let ansi = LiteralSyntax { ansi_quotes: true, ..UTF8 };
    let statement = format!("insert into t values (\"{}\")", long("x"));
    assert!(extract(statement.into_bytes(), 0, ansi).is_err());
    let latin1 = LiteralSyntax { charset: Charset::Latin1, ..UTF8 };
    let statement = [b"insert into t values ('".to_vec(), vec![0xe4; LONG + 1], b"')".to_vec()].concat();
    let values = extract(statement, 0, latin1).expect("latin1").values;
    assert!(values == [Value::text("ä".repeat(LONG + 1))]);
}

#[test]
fn random_bytes_never_make_it_stumble() {
    let mut random = Prng::new(20261121);
    let alphabet = b"'\"`\\#-/*!?;,=() a\n\xff\xc3\xa4x0_";
    for _ in 0..2_000 {
        let mut bytes = b"insert into t values (".to_vec();
        for _ in 0..random.below(12) {
            let letter = alphabet[random.below(alphabet.len() as u64) as usize];
            let count = if random.chance(0.2) { LONG + 1 } else { 1 };
            bytes.extend(std::iter::repeat_n(letter, count));
        }
        let syntax = LiteralSyntax { backslash_escapes: random.chance(0.5), ..UTF8 };
        let _ = extract(bytes, 0, syntax);
    }
}
