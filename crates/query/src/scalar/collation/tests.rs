use std::cmp::Ordering;

use proptest::prelude::*;

use super::Collation::{Binary, Utf8mb4Bin, Utf8mb4GeneralCi, Utf8mb4UnicodeCi, Utf8mb40900AiCi};
use super::*;

fn order(collation: Collation, a: &str, b: &str) -> Ordering {
    collation.compare(a.as_bytes(), b.as_bytes())
}

#[test]
fn letters_are_the_same_as_far_as_the_collation_says() {
    for collation in [Utf8mb40900AiCi, Utf8mb4GeneralCi, Utf8mb4UnicodeCi] {
        assert_eq!(order(collation, "Hello", "hELLO"), Ordering::Equal);
        assert_eq!(order(collation, "résumé", "RESUME"), Ordering::Equal);
        assert_eq!(order(collation, "a", "b"), Ordering::Less);
        assert_eq!(order(collation, "Z", "a"), Ordering::Greater);
    }
    assert_eq!(order(Utf8mb40900AiCi, "straße", "strasse"), Ordering::Equal);
    assert_eq!(order(Utf8mb4UnicodeCi, "ß", "ss"), Ordering::Equal);
    assert_eq!(order(Utf8mb4GeneralCi, "ß", "s"), Ordering::Equal);
    assert_eq!(order(Utf8mb4Bin, "a", "A"), Ordering::Greater);
    assert_eq!(order(Utf8mb40900AiCi, "😀", "😁"), Ordering::Less);
    assert_eq!(order(Utf8mb4UnicodeCi, "😀", "😁"), Ordering::Equal);
    assert_eq!(order(Utf8mb40900AiCi, "가", "각"), Ordering::Less);
    assert_eq!(order(Collation::Latin1SwedishCi, "Ä", "a"), Ordering::Greater);
}

#[test]
fn blanks_at_the_end_count_or_not() {
    assert_eq!(order(Utf8mb40900AiCi, "a", "a "), Ordering::Less);
    assert_eq!(order(Binary, "a", "a "), Ordering::Less);
    for collation in [Utf8mb4GeneralCi, Utf8mb4UnicodeCi, Utf8mb4Bin] {
        assert_eq!(order(collation, "a", "a  "), Ordering::Equal);
        assert_eq!(order(collation, " a", "a"), Ordering::Less);
    }
    assert_eq!(order(Utf8mb4GeneralCi, "a", "a\t"), Ordering::Greater);
    assert_eq!(order(Utf8mb4Bin, "a", "a\u{1}"), Ordering::Greater);
}

#[test]
fn names_and_numbers_are_unique() {
    for collation in Collation::ALL {
        assert_eq!(Collation::by_name(collation.name()), Ok(*collation));
        assert_eq!(Collation::by_id(collation.id()), Some(*collation));
    }
    assert_eq!(Collation::by_name("utf8_general_ci"), Ok(Collation::Utf8mb3GeneralCi));
    assert_eq!(Collation::by_name("nope").expect_err("unknown").code, 1273);
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
            prop_assert_eq!(left.cmp(&right), order(*collation, &a, &b), "{} {:?} {:?}", collation.name(), a, b);
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
                prop_assert!(key.starts_with(&start) && key.len() > start.len(), "{} {:?}", collation.name(), text);
            }
        }
    }

    #[test]
    fn a_plain_text_needs_no_more_than_a_look(text in "[0-9a-zA-Z]{8,20}") {
        for collation in Collation::ALL {
            prop_assert!(collation.sort_key_start(text.as_bytes()).is_some(), "{}", collation.name());
        }
    }
}
