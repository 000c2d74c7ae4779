use super::*;

fn increment(value: &str, by: &str) -> String {
    let (Some(a), Some(b)) = (Extended::parse(value.as_bytes()), Extended::parse(by.as_bytes())) else {
        return "-ERR value is not a valid float".into();
    };
    let sum = a.plus(b);
    if sum.is_infinite() {
        return "-ERR increment would produce NaN or Infinity".into();
    }
    let mut out = Vec::new();
    sum.print(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn sums_agree_with_redis() {
    let mut checked = 0;
    for line in include_str!("sums.txt").lines().filter(|line| !line.starts_with('#')) {
        let [value, by, expected] = line.split('|').collect::<Vec<_>>()[..] else { panic!("{line}") };
        assert_eq!(increment(value, by), expected, "{value} + {by}");
        checked += 1;
    }
    assert!(checked > 500);
}

#[test]
fn ends_of_the_range() {
    let largest = increment("0x0.FFFFFFFFFFFFFFFFp16384", "0");
    assert_eq!(largest.len(), 4933);
    assert!(largest.starts_with("1189731495357231765021263853030970205169063322294624200440323733"));
    assert_eq!(increment(&largest, "0"), largest);
    assert_eq!(increment(&largest, &largest), "-ERR increment would produce NaN or Infinity");
    assert_eq!(increment(&"9".repeat(5_119), "0"), "-ERR value is not a valid float");
    assert_eq!(increment(&format!("{}1", "0".repeat(5_118)), "2"), "3");
    assert_eq!(increment(&format!("{}1", "0".repeat(5_119)), "2"), "-ERR value is not a valid float");
    assert_eq!(increment("1e-99999999999999999999", "0"), "-ERR value is not a valid float");
}

#[test]
fn small_sums_print_as_typed() {
    for (a, b, sum) in [
        ("3.0", "1.1", "4.1"),
        ("10.50", "0.1", "10.6"),
        ("5.0e3", "2.0e2", "5200"),
        ("1", "-1", "0"),
        ("-1.5", "1.5", "0"),
    ] {
        assert_eq!(increment(a, b), sum);
    }
}
