use std::cmp::Ordering;

use proptest::prelude::*;

use super::Collation::{Binary, Utf8GeneralCi, Utf8PadBin, Utf8Uca400Ci, Utf8Uca900AiCi};
use super::*;

fn order(collation: Collation, a: &str, b: &str) -> Ordering {
    collation.compare(a.as_bytes(), b.as_bytes())
}

#[test]
fn letters_are_the_same_as_far_as_the_collation_says() {
    for collation in [Utf8Uca900AiCi, Utf8GeneralCi, Utf8Uca400Ci] {
        assert_eq!(order(collation, "Hello", "hELLO"), Ordering::Equal);
        assert_eq!(order(collation, "résumé", "RESUME"), Ordering::Equal);
        assert_eq!(order(collation, "a", "b"), Ordering::Less);
        assert_eq!(order(collation, "Z", "a"), Ordering::Greater);
    }
    assert_eq!(order(Utf8Uca900AiCi, "straße", "strasse"), Ordering::Equal);
    assert_eq!(order(Utf8Uca400Ci, "ß", "ss"), Ordering::Equal);
    assert_eq!(order(Utf8GeneralCi, "ß", "s"), Ordering::Equal);
    assert_eq!(order(Utf8PadBin, "a", "A"), Ordering::Greater);
    assert_eq!(order(Utf8Uca900AiCi, "😀", "😁"), Ordering::Less);
    assert_eq!(order(Utf8Uca400Ci, "😀", "😁"), Ordering::Equal);
    assert_eq!(order(Utf8Uca900AiCi, "가", "각"), Ordering::Less);
    assert_eq!(order(Collation::Latin1SwedishCi, "Ä", "a"), Ordering::Greater);
}

#[test]
fn blanks_at_the_end_count_or_not() {
    assert_eq!(order(Utf8Uca900AiCi, "a", "a "), Ordering::Less);
    assert_eq!(order(Binary, "a", "a "), Ordering::Less);
    for collation in [Utf8GeneralCi, Utf8Uca400Ci, Utf8PadBin] {
        assert_eq!(order(collation, "a", "a  "), Ordering::Equal);
        assert_eq!(order(collation, " a", "a"), Ordering::Less);
    }
    assert_eq!(order(Utf8GeneralCi, "a", "a\t"), Ordering::Greater);
    assert_eq!(order(Utf8PadBin, "a", "a\u{1}"), Ordering::Greater);
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,6}",
        "[aAbBéÉß \t\u{1}\u{0}]{0,6}",
        proptest::collection::vec(any::<char>(), 0..5).prop_map(|chars| chars.into_iter().collect()),
    ]
}

proptest! {
    #[test]
    fn keys_order_as_strings_compare(a in texts(), b in texts()) {
        for collation in Collation::ALL {
            let (mut left, mut right) = (Vec::new(), Vec::new());
            collation.sort_key(a.as_bytes(), &mut left);
            collation.sort_key(b.as_bytes(), &mut right);
            prop_assert_eq!(left.cmp(&right), order(*collation, &a, &b), "{:?} {:?} {:?}", collation, a, b);
            if left != right {
                prop_assert!(!left.starts_with(&right) && !right.starts_with(&left));
            }
        }
    }

    #[test]
    fn a_key_begins_as_is_said_before_it_is_made(text in prop_oneof![texts(), "[ -~]{4,12}", "[0-9-]{8,20}", "[a ]{4,12}"]) {
        for collation in Collation::ALL {
            let mut key = Vec::new();
            collation.sort_key(text.as_bytes(), &mut key);
            if let Some(start) = collation.sort_key_start(text.as_bytes()) {
                prop_assert!(key.starts_with(&start) && key.len() > start.len(), "{:?} {:?}", collation, text);
            }
        }
    }

    #[test]
    fn a_plain_text_needs_no_more_than_a_look(text in "[0-9a-zA-Z]{8,20}") {
        for collation in Collation::ALL {
            prop_assert!(collation.sort_key_start(text.as_bytes()).is_some(), "{:?}", collation);
        }
    }
}

/// Compares pairs that a MySQL server has compared.
fn compare_golden(pairs: &str) {
    let text = |hex: &str| -> Vec<u8> {
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
        (0..hex.len()).step_by(2).map(byte).collect()
    };
    assert!(pairs.lines().count() > 1000);
    for line in pairs.lines() {
        let [name, a, b, order] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let named = |collation: &&Collation| format!("{collation:?}") == name;
        let collation = Collation::ALL.iter().find(named).expect("known");
        let (a, b) = (text(a), text(b));
        assert_eq!(collation.compare(&a, &b) as i8, order.parse::<i8>().expect("a sign"), "{line}");
        let (mut left, mut right) = (Vec::new(), Vec::new());
        collation.sort_key(&a, &mut left);
        collation.sort_key(&b, &mut right);
        assert_eq!(left.cmp(&right) as i8, order.parse::<i8>().expect("a sign"), "{line}");
        for key in [&left, &right] {
            let byte = |at: usize| key.get(at).copied();
            assert_eq!(collation.sort_key_length(byte), Some(key.len()), "{line}");
        }
    }
}

/// `scripts/charsets.py` has asked.
#[test]
fn packed_collations_compare_as_the_golden_pairs_do() {
    compare_golden(include_str!("charsets_golden.txt"));
}

/// `scripts/charsets_multibyte.py` has asked.
#[test]
fn collations_of_several_bytes_compare_as_the_golden_pairs_do() {
    compare_golden(include_str!("multibyte_golden.txt"));
    assert_eq!(order(Collation::GbkChineseCi, "吖", "安"), Ordering::Less);
}

/// `scripts/uca900.py` has asked.
#[test]
fn further_levels_compare_as_the_golden_pairs_do() {
    compare_golden(include_str!("uca900_golden.txt"));
    assert_eq!(order(Collation::Utf8Uca900AsCs, "a", "A"), Ordering::Less);
    assert_eq!(order(Collation::Utf8Uca900AsCi, "a", "A"), Ordering::Equal);
    // An accent decides only where all letters are equal.
    assert_eq!(order(Collation::Utf8Uca900AsCi, "éa", "eb"), Ordering::Less);
    assert!(Collation::Utf8Uca900AsCi.same_char('é', 'É') && !Collation::Utf8Uca900AsCi.same_char('é', 'e'));
    assert!(!Collation::Utf8Uca900AsCs.same_char('é', 'É'));
}

#[test]
fn sets_with_a_byte_a_character_come_back_as_they_went() {
    for charset in Charset::ALL.iter().filter(|charset| charset.is_single_byte()) {
        let all: Vec<u8> = (0..=255).collect();
        let text = charset.decode_bytes(&all);
        for (byte, letter) in all.iter().zip(text.chars()) {
            if letter != '?' {
                assert!(charset.holds(letter));
                let again = charset.encode(&letter.to_string())[0];
                assert_eq!(charset.decode_bytes(&[again]), letter.to_string(), "{charset:?} {byte:02X}");
            }
        }
    }
    assert_eq!(Charset::Cp1251.encode("Привет")[..], [0xCF, 0xF0, 0xE8, 0xE2, 0xE5, 0xF2]);
    assert_eq!(Charset::Latin2.decode_bytes(b"\xb1\xe6"), "ąć");
}

#[test]
fn sets_of_several_bytes_come_back_as_they_went() {
    for charset in Charset::ALL.iter().filter(|charset| charset.has_own_encoding()) {
        for letter in ('\0'..'\u{10000}').chain(('\u{10000}'..=char::MAX).step_by(1009)) {
            let bytes = charset.encode(letter.encode_utf8(&mut [0; 4])).into_owned();
            if charset.holds(letter) {
                assert_eq!(charset.char_length(&bytes), bytes.len(), "{charset:?} {letter:?}");
                assert!(bytes.len() <= charset.max_bytes() as usize && bytes.len() >= charset.min_bytes());
                assert_eq!(charset.try_decode(&bytes), Ok(letter.to_string()), "{charset:?} {bytes:02X?}");
            } else {
                assert_eq!(charset.decode_bytes(&bytes), "?", "{charset:?} {letter:?}");
            }
        }
    }
    assert_eq!(Charset::Gbk.encode("中文表")[..], [0xD6, 0xD0, 0xCE, 0xC4, 0xB1, 0xED]);
    assert_eq!(Charset::Sjis.encode("表ｱ")[..], [0x95, 0x5C, 0xB1]);
    assert_eq!(Charset::Ujis.encode("ｱ丂")[..], [0x8E, 0xB1, 0x8F, 0xB0, 0xA1]);
    assert_eq!(Charset::Gb18030.encode("é€😀\u{E7C7}ḿ")[..4], [0xA8, 0xA6, 0xA2, 0xE3]);
    assert_eq!(Charset::Utf16.encode("a😀")[..], [0, 0x61, 0xD8, 0x3D, 0xDE, 0]);
}

/// A second byte that is a backslash or a quote is a part of its character, and no bytes of several make a character of ASCII: a statement that is decoded first
/// has the same literals.
#[test]
fn no_character_of_several_bytes_is_ascii() {
    for charset in Charset::ALL.iter().filter(|charset| charset.has_own_encoding() && charset.contains_ascii()) {
        for code in 0x8000..=0xFFFFu16 {
            for text in [&code.to_be_bytes()[..], &[0x8F, code.to_be_bytes()[0], code.to_be_bytes()[1]]] {
                if charset.char_length(text) == text.len() {
                    assert!(!charset.try_decode(text).is_ok_and(|text| text.is_ascii()), "{charset:?} {text:02X?}");
                }
            }
        }
    }
}

#[test]
fn bytes_that_are_no_character_have_a_place() {
    assert_eq!(Charset::Gbk.try_decode(b"a\xd6\xd0\xd6"), Err(3));
    assert_eq!(Charset::Gbk.try_decode(b"a\xd6'"), Err(1));
    assert_eq!(Charset::Gbk.decode_bytes(b"\xa1\x40\xd6'"), "??'");
    assert_eq!(Charset::Utf16.try_decode(b"\xd8\x00"), Err(0));
    assert_eq!(Charset::Utf32.try_decode(b"\0\0\0a\0"), Err(4));
    assert_eq!(Charset::Gb18030.try_decode(b"\x81\x30\x81\x30\xe3\x32\x9a\x36"), Err(4));
}
