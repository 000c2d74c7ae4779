use proptest::prelude::*;

use super::*;

fn decimal(text: &str) -> Decimal {
    Decimal::parse(text).expect("a decimal")
}

#[test]
fn what_is_parsed_is_shown_again() {
    for text in [
        "0",
        "1",
        "-1",
        "0.5",
        "-0.05",
        "123456789.123456789",
        "99999999999999999999999999999999999.999999999999999999999999999999",
    ] {
        assert_eq!(decimal(text).to_string(), text);
    }
    for (text, shown) in
        [("1e3", "1000"), ("1.5e1", "15"), ("12e-3", "0.012"), ("1.", "1"), (".5", "0.5"), ("007", "7"), ("-0", "0")]
    {
        assert_eq!(decimal(text).to_string(), shown);
    }
    assert_eq!(Decimal::parse_prefix("12abc").map(|(d, used)| (d.to_string(), used)), Some(("12".into(), 2)));
    assert_eq!(Decimal::parse_prefix("12e").map(|(d, used)| (d.to_string(), used)), Some(("12".into(), 2)));
    assert!(Decimal::parse_prefix("abc").is_none());
    assert!(Decimal::parse_prefix(".").is_none());
}

#[test]
fn sums_and_products_leave_128_bits_without_a_seam() {
    let large = decimal("170141183460469231731687303715884105727");
    assert_eq!(large.plus(&decimal("1")).to_string(), "170141183460469231731687303715884105728");
    assert_eq!(large.plus(&decimal("1")).minus(&decimal("1")).small(), Some(i128::MAX));
    assert_eq!(
        decimal("99999999999999999999999999999.5").times(&decimal("99999999999999999999999999999.5")).to_string(),
        "9999999999999999999999999999900000000000000000000000000000.25"
    );
}

#[test]
fn a_quotient_has_whole_words_behind_the_point() {
    assert_eq!(decimal("1").divided(&decimal("3"), 4).expect("not zero").to_string(), "0.333333333");
    assert_eq!(decimal("10.5").divided(&decimal("2"), 4).expect("not zero").to_string(), "5.250000000");
    assert_eq!(decimal("1").divided(&decimal("0.00"), 4), None);
}

#[test]
fn halves_round_away_from_zero() {
    for (text, scale, shown) in
        [("2.5", 0, "3"), ("-2.5", 0, "-3"), ("1.005", 2, "1.01"), ("1.004", 2, "1.00"), ("1", 2, "1.00")]
    {
        assert_eq!(decimal(text).rounded(scale).to_string(), shown);
    }
    assert_eq!(decimal("-1.999").truncated(1).to_string(), "-1.9");
    assert_eq!(decimal("1250").at_power(2, true).to_string(), "1300");
    assert_eq!(decimal("1250").at_power(2, false).to_string(), "1200");
    assert_eq!(decimal("-1.5").floor().to_string(), "-2");
    assert_eq!(decimal("1.2").ceiling().to_string(), "2");
}

#[test]
fn comparison_does_not_see_the_scale() {
    assert_eq!(decimal("1.50"), decimal("1.5"));
    assert!(decimal("-2") < decimal("1.0"));
    assert!(decimal("99999999999999999999999999999999999999999999") > decimal("1"));
}

#[test]
fn doubles_convert_as_they_are_shown() {
    assert_eq!(Decimal::from_f64(0.1).expect("finite").to_string(), "0.1");
    assert_eq!(Decimal::from_f64(1e20).expect("finite").to_string(), "100000000000000000000");
    assert_eq!(decimal("0.1").to_f64(), 0.1);
    assert_eq!(decimal("12345678901234567890.12345").to_f64(), 12345678901234567890.12345);
}

fn decimals() -> impl Strategy<Value = Decimal> {
    prop_oneof!["-?[0-9]{1,5}(\\.[0-9]{1,4})?", "-?[0-9]{1,35}\\.[0-9]{1,30}", "-?[0-9]{20,38}",]
        .prop_map(|text| decimal(&text))
}

proptest! {
    #[test]
    fn arithmetic_agrees_with_whole_numbers_of_any_size(a in decimals(), b in decimals()) {
        // Both as whole numbers of units of 10^-30.
        let whole = |decimal: &Decimal| decimal.rounded(30).coefficient();
        prop_assert_eq!(whole(&a.plus(&b)), whole(&a) + whole(&b));
        prop_assert_eq!(whole(&a.minus(&b)), whole(&a) - whole(&b));
        prop_assert_eq!(a.cmp(&b), whole(&a).cmp(&whole(&b)));
        let product = a.coefficient() * b.coefficient();
        let scale = a.scale() + b.scale();
        prop_assert_eq!(a.times(&b), Decimal::from_big(product, scale).truncated(scale.min(30)));
        if let (Some(quotient), Some(rest)) = (a.divided(&b, 4), a.remainder(&b)) {
            prop_assert_eq!(whole(&rest), whole(&a) % whole(&b));
            prop_assert!(quotient.times(&b).abs() <= a.abs());
        }
    }

    #[test]
    fn what_is_shown_is_parsed_again(a in decimals(), scale in 0u16..31) {
        prop_assert_eq!(decimal(&a.to_string()).to_string(), a.to_string());
        let rounded = a.rounded(scale);
        prop_assert_eq!(rounded.scale(), scale);
        prop_assert!(rounded.minus(&a).abs().times(&decimal("2")) <= Decimal::new(1, scale));
    }
}

#[test]
fn special_values_stand_around_the_numbers_and_spread_through_sums_and_products() {
    let (below, above, nan, one) = (Decimal::NEGATIVE_INFINITY, Decimal::INFINITY, Decimal::NAN, Decimal::from(1i64));
    let huge = Decimal::from_big(BigInt::from(10u8).pow(131_071), 0);
    let tiny = Decimal::new(1, 16_383);
    let sorted = [&below, &huge.negated(), &tiny.negated(), &Decimal::ZERO, &tiny, &one, &huge, &above, &nan];
    for (at, a) in sorted.iter().enumerate() {
        for (other, b) in sorted.iter().enumerate() {
            assert_eq!(a.cmp(b), at.cmp(&other), "{at} {other}");
        }
    }
    assert_eq!(huge.digits(), 131_072);
    assert_eq!(Decimal::from_big(BigInt::from(10u8).pow(131_071) - 1, 0).digits(), 131_071);
    assert_eq!(nan.to_string(), "NaN");
    assert_eq!(below.negated().to_string(), "Infinity");
    assert_eq!(above.plus(&below), nan);
    assert_eq!(above.plus(&one), above);
    assert_eq!(below.times(&below), above);
    assert_eq!(below.times(&Decimal::ZERO), nan);
    assert_eq!(one.divided(&above, 4), Some(Decimal::ZERO));
    assert_eq!(below.divided(&one, 4), Some(below.clone()));
    assert_eq!(above.remainder(&one), Some(nan.clone()));
    assert_eq!(one.remainder(&above), Some(one.clone()));
    assert_eq!(tiny.divided(&one, 4).map(|quotient| quotient.scale()), Some(72));
    assert_eq!((above.to_f64(), below.to_f64()), (f64::INFINITY, f64::NEG_INFINITY));
    assert!(nan.to_f64().is_nan() && nan.is_nan() && !nan.is_infinite() && above.is_infinite() && !one.is_nan());
    for special in [&below, &above, &nan] {
        assert!(!special.is_finite());
        assert_eq!(special.rounded(2), *special);
        assert_eq!(
            (special.floor(), special.ceiling(), special.at_power(3, true)),
            ((*special).clone(), (*special).clone(), (*special).clone())
        );
        assert_eq!((special.digits(), special.scale(), special.small(), special.short()), (1, 0, None, None));
    }
}
