use proptest::prelude::*;

use super::*;

fn datetime(text: &str) -> Option<String> {
    parse_datetime(text, Strictness::default()).map(|parsed| {
        let mark = if parsed.truncated { "~" } else { "" };
        format!("{:.*}{mark}", usize::from(parsed.scale), parsed.value)
    })
}

fn time(text: &str) -> Option<String> {
    parse_time(text).map(|parsed| {
        format!("{:.*}{}", usize::from(parsed.scale), parsed.value, if parsed.truncated { "~" } else { "" })
    })
}

#[test]
fn dates_are_read_in_all_their_forms() {
    for (text, read) in [
        ("2026-11-21", "2026-11-21 00:00:00"),
        ("2026-11-21 12:34:56.78", "2026-11-21 12:34:56.78"),
        ("26-1-2", "2026-01-02 00:00:00"),
        ("70-1-2", "1970-01-02 00:00:00"),
        ("20261121", "2026-11-21 00:00:00"),
        ("261121", "2026-11-21 00:00:00"),
        ("20261121123456", "2026-11-21 12:34:56"),
        ("20261121T123456", "2026-11-21 12:34:56"),
        ("2026/11/21 12*34*56", "2026-11-21 12:34:56"),
        ("2026-11-21T12:34", "2026-11-21 12:34:00"),
        ("  2026-11-21  ", "2026-11-21 00:00:00"),
        ("2026-11-21x", "2026-11-21 00:00:00~"),
        ("2026-11-21 12:34:56.9999999", "2026-11-21 12:34:57.000000"),
        ("0000-00-00", "0000-00-00 00:00:00"),
        ("2026-00-00", "2026-00-00 00:00:00"),
    ] {
        assert_eq!(datetime(text).as_deref(), Some(read), "{text}");
    }
    for text in ["", "x", "2026", "2026-13-01", "2026-02-30", "2026-11-21 25:00:00", "2026-11-21 12:60:00"] {
        assert_eq!(datetime(text), None, "{text}");
    }
}

#[test]
fn times_are_read_in_all_their_forms() {
    for (text, read) in [
        ("12:34:56", "12:34:56"),
        ("12:34", "12:34:00"),
        ("123456", "12:34:56"),
        ("56", "00:00:56"),
        ("-1:00:00.5", "-01:00:00.5"),
        ("1 2:03", "26:03:00"),
        ("34 23:00:00", "838:59:59~"),
        ("838:59:59", "838:59:59"),
        ("2026-11-21 12:34:56", "12:34:56"),
        ("12:34:56x", "12:34:56~"),
    ] {
        assert_eq!(time(text).as_deref(), Some(read), "{text}");
    }
    for text in ["", "x", "12:60:00", "1260"] {
        assert_eq!(time(text), None, "{text}");
    }
}

#[test]
fn zones_are_named_or_counted_in_hours() {
    for name in ["+00:00", "-13:59", "+14:00", "UTC", "SYSTEM"] {
        assert!(parse_zone(name).is_ok(), "{name}");
    }
    for name in ["+14:01", "+1", "Nowhere/City", ""] {
        assert_eq!(crate::error::rendered(&parse_zone(name).expect_err(name)).code, 1298);
    }
}

#[test]
fn a_composite_interval_is_filled_from_its_end() {
    let micros = |unit: Unit, text| unit.composite(text).expect("an interval").micros;
    assert_eq!(micros(Unit::DaySecond, "1 2:3:4"), 93_784_000_000);
    assert_eq!(micros(Unit::DaySecond, "3:4"), 184_000_000);
    assert_eq!(micros(Unit::HourMinute, "-1:30"), -5_400_000_000);
    assert_eq!(micros(Unit::SecondMicrosecond, "1.5"), 1_500_000);
    assert_eq!(Unit::YearMonth.composite("2-3").expect("an interval").months, 27);
}

proptest! {
    #[test]
    fn what_is_shown_is_read_again(number in 366i64..=3_652_424, micros in 0..MICROS_PER_DAY) {
        let at = DateTime::new(from_day_number(number).expect("a day"), micros);
        let read = parse_datetime(&format!("{at:.6}"), Strictness::REAL).expect("a date");
        prop_assert_eq!(read.value, at);
        prop_assert!(!read.truncated);
        let time = Time::from_micros(micros * 7 - MICROS_PER_DAY);
        prop_assert_eq!(parse_time(&format!("{time:.6}")).map(|parsed| parsed.value), Some(time));
    }

    #[test]
    fn a_time_shown_by_a_zone_is_found_again(seconds in 1i64..2_147_483_647, name in 0usize..5) {
        let zone = ["UTC", "+05:30", "Europe/Berlin", "America/New_York", "Asia/Shanghai"][name];
        let zone = parse_zone(zone).expect("a zone");
        let at = Timestamp(seconds * MICROS_PER_SECOND);
        let found = timestamp(&zone, zone.local(at)).expect("within the range");
        // Of two times with one reading it is the earlier.
        prop_assert!(found == at || zone.local(found) == zone.local(at) && found < at);
    }

    #[test]
    fn no_text_makes_the_readers_fail(text in "\\PC{0,30}|[0-9:. TZ+-]{0,30}") {
        let _ = parse_datetime(&text, Strictness::default());
        let _ = parse_time(&text);
        let _ = parse_by_format(&text, "%Y-%m-%d %H:%i:%s");
    }
}
