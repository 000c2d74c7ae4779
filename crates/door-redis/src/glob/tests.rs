use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect()
}

/// Random patterns over a small alphabet and random texts, with the answers of a real server.
#[test]
fn agrees_with_redis() {
    let mut lines = include_str!("matches.txt").lines().filter(|line| !line.starts_with('#'));
    let texts: Vec<Vec<u8>> = lines.next().unwrap().split(' ').map(bytes).collect();
    let mut checked = 0;
    for line in lines {
        let (pattern, found) = line.split_once(':').unwrap();
        let pattern = bytes(pattern);
        let expected: Vec<Vec<u8>> = found.split_whitespace().map(bytes).collect();
        for text in &texts {
            assert_eq!(matches(&pattern, text, false), expected.contains(text), "{pattern:?} on {text:?}");
            checked += 1;
        }
    }
    assert!(checked > 10_000);
}

#[test]
fn folds_case_when_asked() {
    assert!(matches(b"MAX*-[C-L]?", b"maxmemory-clients"[..12].as_ref(), true));
    assert!(!matches(b"MAX*", b"maxmemory", false));
    assert!(matches(b"[A-C]", b"b", true));
    assert!(!matches(b"[\\B]", b"b", true), "an escaped byte of a class is compared exactly");
}

#[test]
fn many_stars_stay_cheap() {
    let pattern = b"a*".repeat(2_000);
    let text = vec![b'a'; 1_999];
    assert!(!matches(&pattern, &text, false));
    assert!(matches(&pattern, &b"a".repeat(2_000), false));
}
