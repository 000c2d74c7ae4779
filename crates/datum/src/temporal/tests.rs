use proptest::prelude::*;

use super::*;
use crate::fault::Fault;

#[test]
fn an_unknown_zone_is_a_fault() {
    assert!(Zone::named("europe/berlin").is_ok());
    assert_eq!(Zone::named("Nowhere/City").expect_err("unknown"), Fault::InvalidZone("Nowhere/City".into()));
}

#[test]
fn intervals_stay_in_the_calendar() {
    let date = |year, month, day| DateTime::from(Date::new(year, month, day));
    assert_eq!(Interval::months(1).added_to(date(2024, 1, 31)), Some(date(2024, 2, 29)));
    assert_eq!(Interval::months(-12).added_to(date(2024, 2, 29)), Some(date(2023, 2, 28)));
    assert_eq!(Interval::micros(MICROS_PER_DAY).added_to(date(9999, 12, 31)), None);
    assert_eq!(
        Interval::micros(-1).added_to(date(2024, 3, 1)),
        Some(DateTime::new(Date::new(2024, 2, 29), MICROS_PER_DAY - 1))
    );
    assert_eq!(Interval::micros(i64::MIN).negated().micros, i64::MAX);
}

#[test]
fn fractions_are_rounded_or_cut() {
    let at = DateTime::at(Date::new(2026, 12, 31), 23, 59, 59, 999_500);
    let shown = |at: Option<DateTime>| at.map(|at| format!("{at:.3}"));
    assert_eq!(shown(at.fitted(3, Rounding::Nearest)).as_deref(), Some("2027-01-01 00:00:00.000"));
    assert_eq!(shown(at.fitted(3, Rounding::Truncate)).as_deref(), Some("2026-12-31 23:59:59.999"));
    assert_eq!(Time::from_micros(-1_500_000).fitted(0, Rounding::Nearest).to_string(), "-00:00:02");
    assert_eq!(Time::from_micros(-1_500_000).fitted(0, Rounding::Truncate).to_string(), "-00:00:01");
}

proptest! {
    #[test]
    fn a_days_number_leads_back_to_the_day(number in 366i64..=3_652_424) {
        let date = from_day_number(number).expect("within the years 0 to 9999");
        prop_assert!(date.is_real(), "{}", date);
        prop_assert_eq!(day_number(date), number);
        let next = from_day_number(number + 1);
        prop_assert!(next.is_none_or(|next| next > date));
    }
}
