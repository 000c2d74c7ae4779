//! Text on the wire: length-encoded, in the client's character set (`sql_mysql::charset`).

use sql_mysql::charset::Results;

use crate::wire::put_bytes;

/// Appends length-encoded text in the client's character set.
#[inline]
pub fn put_text(out: &mut Vec<u8>, text: &str, results: Results) {
    put_bytes(out, &results.encode(text));
}

#[cfg(test)]
mod tests {
    use sql_mysql::charset::decode;
    use sql_mysql::types::Charset;

    use super::*;

    #[test]
    fn latin1_comes_back_as_it_went() {
        let all: Vec<u8> = (0..=255).collect();
        let text = decode(&all, Charset::Latin1).unwrap();
        let mut out = Vec::new();
        put_text(&mut out, &text, Results::named("latin1"));
        assert_eq!(out[3..], all);
        assert_eq!(decode(b"\x80\xe4", Charset::Latin1).as_deref(), Some("€ä"));
    }

    #[test]
    fn letters_that_a_character_set_lacks_become_question_marks() {
        for (name, expected) in
            [("latin1", &b"\x05a\xe4\x80??"[..]), ("ascii", b"\x05a????"), ("utf8mb4", "\u{0f}aä€字🐋".as_bytes())]
        {
            let mut out = Vec::new();
            put_text(&mut out, "aä€字🐋", Results::named(name));
            let expected =
                if name == "utf8mb4" { &["\u{0d}".as_bytes(), &expected[1..]].concat()[..] } else { expected };
            assert_eq!(out, expected, "{name}");
        }
    }

    #[test]
    fn bytes_that_are_no_utf8_are_no_text() {
        assert_eq!(decode(b"a\xff", Charset::Utf8), None);
        assert_eq!(decode("ä".as_bytes(), Charset::Utf8Bmp).as_deref(), Some("ä"));
    }
}
