//! Exact decimal numbers of up to 65 digits, 30 of them behind the point.
//!
//! A number is an integer coefficient and a scale, the number of its digits behind the point. The coefficient is an `i128` while it fits, which 38 digits
//! nearly always do, and a big integer beyond. The scale is part of the shown form (`1.50`) and not of the order (`1.50 = 1.5`).
//!
//! A quotient carries digits to a multiple of nine behind the point, as the words of MySQL's `decimal.c` do: `1/3*3` is 1 only because of them. The
//! expression rounds when its value is shown or stored.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use num_bigint::{BigInt, Sign};

/// The most digits of a column: in all, and behind the point.
pub const PRECISION_MAX: u32 = 65;
pub const SCALE_MAX: u8 = 30;

#[derive(Clone)]
pub struct Decimal(DecimalRepr);

/// Two words and not an `i128`, whose alignment of 16 bytes would make every `Value` larger by half.
#[derive(Clone)]
enum DecimalRepr {
    Small {
        low: u64,
        high: u64,
        scale: u8,
    },
    /// A coefficient beyond the range of an `i128`.
    Big {
        coefficient: Arc<BigInt>,
        scale: u8,
    },
}

const _: () = assert!(size_of::<Decimal>() == 24);

const fn powers() -> [i128; 39] {
    let mut powers = [1i128; 39];
    let mut i = 1;
    while i < 39 {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
}

/// 10 to the power of the index.
const POWERS: [i128; 39] = powers();

fn big_power(exponent: u32) -> BigInt {
    BigInt::from(10u8).pow(exponent)
}

impl Decimal {
    pub const ZERO: Decimal = Decimal(DecimalRepr::Small { low: 0, high: 0, scale: 0 });

    /// `coefficient` / 10^`scale`.
    pub fn new(coefficient: i128, scale: u8) -> Decimal {
        let bits = coefficient as u128;
        Decimal(DecimalRepr::Small { low: bits as u64, high: (bits >> 64) as u64, scale })
    }

    pub fn from_big(coefficient: BigInt, scale: u8) -> Decimal {
        match i128::try_from(&coefficient) {
            Ok(small) => Decimal::new(small, scale),
            Err(_) => Decimal(DecimalRepr::Big { coefficient: Arc::new(coefficient), scale }),
        }
    }

    pub fn scale(&self) -> u8 {
        match self.0 {
            DecimalRepr::Small { scale, .. } | DecimalRepr::Big { scale, .. } => scale,
        }
    }

    /// Returns the coefficient where it fits an `i128`.
    pub fn small(&self) -> Option<i128> {
        match self.0 {
            DecimalRepr::Small { low, high, .. } => Some(((u128::from(high) << 64) | u128::from(low)) as i128),
            DecimalRepr::Big { .. } => None,
        }
    }

    pub fn coefficient(&self) -> BigInt {
        match &self.0 {
            DecimalRepr::Small { .. } => BigInt::from(self.small().unwrap_or(0)),
            DecimalRepr::Big { coefficient, .. } => (**coefficient).clone(),
        }
    }

    pub fn is_zero(&self) -> bool {
        self.small() == Some(0)
    }

    pub fn is_negative(&self) -> bool {
        match &self.0 {
            DecimalRepr::Small { high, .. } => (*high as i64) < 0,
            DecimalRepr::Big { coefficient, .. } => coefficient.sign() == Sign::Minus,
        }
    }

    /// The number of digits of the coefficient; 1 for zero.
    pub fn digits(&self) -> u32 {
        match self.small() {
            Some(0) => 1,
            Some(small) => small.unsigned_abs().ilog10() + 1,
            None => self.coefficient().magnitude().to_string().len() as u32,
        }
    }

    /// The number of digits before the point; 0 for a number below one.
    pub fn whole_digits(&self) -> u32 {
        if self.is_zero() { 0 } else { self.digits().saturating_sub(u32::from(self.scale())) }
    }

    /// Returns the same number with more digits behind the point.
    fn raised(&self, scale: u8) -> Decimal {
        debug_assert!(scale >= self.scale());
        let by = scale - self.scale();
        if by == 0 {
            return self.clone();
        }
        let power = POWERS.get(usize::from(by));
        match self.small().zip(power).and_then(|(small, power)| small.checked_mul(*power)) {
            Some(product) => Decimal::new(product, scale),
            None => Decimal::from_big(self.coefficient() * big_power(by.into()), scale),
        }
    }

    /// Returns both numbers with the larger scale of the two.
    fn aligned(&self, other: &Decimal) -> (Decimal, Decimal) {
        let scale = self.scale().max(other.scale());
        (self.raised(scale), other.raised(scale))
    }

    pub fn negated(&self) -> Decimal {
        match self.small().and_then(i128::checked_neg) {
            Some(small) => Decimal::new(small, self.scale()),
            None => Decimal::from_big(-self.coefficient(), self.scale()),
        }
    }

    pub fn abs(&self) -> Decimal {
        if self.is_negative() { self.negated() } else { self.clone() }
    }

    /// Returns the coefficient where it fits an `i64`, and the scale.
    #[inline]
    pub fn short(&self) -> Option<(i64, u8)> {
        match self.0 {
            DecimalRepr::Small { low, high, scale } if high as i64 == low as i64 >> 63 => Some((low as i64, scale)),
            _ => None,
        }
    }

    /// Adds a number in place where the scales are equal and both coefficients and the sum fit an `i128`. False: nothing was changed.
    #[inline]
    pub fn add_small(&mut self, other: &Decimal) -> bool {
        let Some((a, b)) = self.small().zip(other.small()).filter(|_| self.scale() == other.scale()) else {
            return false;
        };
        let Some(sum) = a.checked_add(b) else { return false };
        *self = Decimal::new(sum, self.scale());
        true
    }

    pub fn plus(&self, other: &Decimal) -> Decimal {
        let (a, b) = self.aligned(other);
        match a.small().zip(b.small()).and_then(|(a, b)| a.checked_add(b)) {
            Some(sum) => Decimal::new(sum, a.scale()),
            None => Decimal::from_big(a.coefficient() + b.coefficient(), a.scale()),
        }
    }

    pub fn minus(&self, other: &Decimal) -> Decimal {
        self.plus(&other.negated())
    }

    /// Returns the product, cut at 30 digits behind the point.
    pub fn times(&self, other: &Decimal) -> Decimal {
        let scale = self.scale() + other.scale();
        let product = match self.small().zip(other.small()).and_then(|(a, b)| a.checked_mul(b)) {
            Some(product) => Decimal::new(product, scale),
            None => Decimal::from_big(self.coefficient() * other.coefficient(), scale),
        };
        if scale > SCALE_MAX { product.truncated(SCALE_MAX) } else { product }
    }

    /// Returns the quotient with at least `increment` more digits behind the point than the dividend has, cut and not rounded. `None` for a zero divisor.
    pub fn divided(&self, other: &Decimal, increment: u8) -> Option<Decimal> {
        if other.is_zero() {
            return None;
        }
        let words = |scale: u8| scale.div_ceil(9) * 9;
        let (own, others) = (words(self.scale()), words(other.scale()));
        let spare = (own - self.scale()) + (others - other.scale());
        let scale = words(own + others + increment.saturating_sub(spare)).min(72);
        // self / other = (a / 10^s) / (b / 10^t) = a * 10^(scale - s + t) / b, in units of 10^-scale.
        let exponent = u32::from(scale + other.scale() - self.scale());
        let small = self.small().zip(other.small()).zip(POWERS.get(exponent as usize));
        if let Some(quotient) = small.and_then(|((a, b), power)| a.checked_mul(*power)?.checked_div(b)) {
            return Some(Decimal::new(quotient, scale));
        }
        Some(Decimal::from_big(self.coefficient() * big_power(exponent) / other.coefficient(), scale))
    }

    /// Returns the remainder of the division to an integer quotient, with the sign of the dividend. `None` for a zero divisor.
    pub fn remainder(&self, other: &Decimal) -> Option<Decimal> {
        if other.is_zero() {
            return None;
        }
        let (a, b) = self.aligned(other);
        Some(match a.small().zip(b.small()).and_then(|(a, b)| a.checked_rem(b)) {
            Some(rest) => Decimal::new(rest, a.scale()),
            None => Decimal::from_big(a.coefficient() % b.coefficient(), a.scale()),
        })
    }

    /// Rounds to a scale, halves away from zero. Adds zeros where the number has fewer digits.
    pub fn rounded(&self, scale: u8) -> Decimal {
        self.rescaled(scale, true)
    }

    /// Cuts the digits beyond a scale. Adds zeros where the number has fewer digits.
    pub fn truncated(&self, scale: u8) -> Decimal {
        self.rescaled(scale, false)
    }

    fn rescaled(&self, scale: u8, round: bool) -> Decimal {
        if scale >= self.scale() {
            return self.raised(scale);
        }
        let by = self.scale() - scale;
        if let Some((small, power)) = self.small().zip(POWERS.get(usize::from(by))) {
            let (whole, rest) = (small / power, small % power);
            let up = i128::from(round && rest.unsigned_abs() >= (*power as u128).div_ceil(2)) * small.signum();
            return Decimal::new(whole + up, scale);
        }
        let (coefficient, power) = (self.coefficient(), big_power(by.into()));
        let (whole, rest) = (&coefficient / &power, &coefficient % &power);
        let up = round && rest.magnitude() * 2u8 >= *power.magnitude();
        let step = if !up {
            0
        } else if coefficient.sign() == Sign::Minus {
            -1
        } else {
            1
        };
        Decimal::from_big(whole + step, scale)
    }

    /// Rounds or cuts before the point, so that the integer part ends in `digits` zeros.
    pub fn at_power(&self, digits: u32, round: bool) -> Decimal {
        let digits = digits.min(200);
        let power = big_power(digits);
        let unit = Decimal::from_big(self.rescaled_down(digits, round), 0);
        Decimal::from_big(unit.coefficient() * power, 0)
    }

    fn rescaled_down(&self, digits: u32, round: bool) -> BigInt {
        let power = big_power(digits + u32::from(self.scale()));
        let coefficient = self.coefficient();
        let (whole, rest) = (&coefficient / &power, &coefficient % &power);
        let up = round && rest.magnitude() * 2u8 >= *power.magnitude();
        let step = if !up {
            0
        } else if coefficient.sign() == Sign::Minus {
            -1
        } else {
            1
        };
        whole + step
    }

    pub fn floor(&self) -> Decimal {
        let whole = self.truncated(0);
        if self.is_negative() && whole != *self { whole.minus(&Decimal::from(1i64)) } else { whole }
    }

    pub fn ceiling(&self) -> Decimal {
        let whole = self.truncated(0);
        if !self.is_negative() && whole != *self { whole.plus(&Decimal::from(1i64)) } else { whole }
    }

    /// Returns the largest number of a precision and scale, all of whose digits are 9.
    pub fn largest(precision: u32, scale: u8) -> Decimal {
        match POWERS.get(precision as usize) {
            Some(power) => Decimal::new(power - 1, scale),
            None => Decimal::from_big(big_power(precision) - 1, scale),
        }
    }

    /// Rounds to an integer and saturates at the limits of an `i128`.
    pub fn to_whole(&self) -> i128 {
        let whole = self.rounded(0);
        whole.small().unwrap_or(if self.is_negative() { i128::MIN } else { i128::MAX })
    }

    pub fn to_f64(&self) -> f64 {
        // Both operands are exact doubles, so the division is the only rounding.
        const EXACT: u128 = 1 << 53;
        if let Some(small) = self.small().filter(|small| small.unsigned_abs() <= EXACT && self.scale() <= 22) {
            return small as f64 / 10f64.powi(self.scale().into());
        }
        self.to_string().parse().unwrap_or(0.0)
    }

    /// Returns the decimal that a double is shown as, with at most 30 digits behind the point. `None` for infinities, NaN, and 1e81 and more.
    pub fn from_f64(double: f64) -> Option<Decimal> {
        if !double.is_finite() || double.abs() >= 1e81 {
            return None;
        }
        Decimal::parse_prefix(&format!("{double:e}")).map(|(decimal, _)| decimal)
    }

    /// Parses the longest number at the start of a text, with an exponent if it has one, and returns it with its length in bytes. `None` where there is no
    /// number. Digits beyond the 30th behind the point are rounded; a number of more than 81 digits saturates.
    pub fn parse_prefix(text: &str) -> Option<(Decimal, usize)> {
        let bytes = text.as_bytes();
        let mut at = 0;
        let negative = match bytes.first() {
            Some(b'-') => true,
            Some(b'+') => false,
            _ => {
                at = 0;
                false
            }
        };
        if matches!(bytes.first(), Some(b'-' | b'+')) {
            at = 1;
        }
        let mut digits = Vec::with_capacity(bytes.len());
        let whole = digit_run(bytes, &mut at, &mut digits);
        let mut behind = 0;
        if bytes.get(at) == Some(&b'.') {
            let mut after = at + 1;
            behind = digit_run(bytes, &mut after, &mut digits);
            if whole + behind > 0 {
                at = after;
            }
        }
        if whole + behind == 0 {
            return None;
        }
        let exponent = exponent(bytes, &mut at);
        Some((from_digits(negative, digits, behind as i64, exponent), at))
    }

    /// Parses a text that is a number as a whole.
    pub fn parse(text: &str) -> Option<Decimal> {
        Decimal::parse_prefix(text).filter(|(_, used)| *used == text.len()).map(|(decimal, _)| decimal)
    }
}

fn digit_run(bytes: &[u8], at: &mut usize, digits: &mut Vec<u8>) -> usize {
    let from = *at;
    while let Some(digit) = bytes.get(*at).filter(|byte| byte.is_ascii_digit()) {
        digits.push(digit - b'0');
        *at += 1;
    }
    *at - from
}

/// Parses `e+5` behind a number. Takes nothing, and returns 0, where the exponent has no digits.
fn exponent(bytes: &[u8], at: &mut usize) -> i64 {
    if !matches!(bytes.get(*at), Some(b'e' | b'E')) {
        return 0;
    }
    let mut end = *at + 1;
    let negative = bytes.get(end) == Some(&b'-');
    if matches!(bytes.get(end), Some(b'-' | b'+')) {
        end += 1;
    }
    let mut digits = Vec::new();
    if digit_run(bytes, &mut end, &mut digits) == 0 {
        return 0;
    }
    *at = end;
    let size = digits.iter().fold(0i64, |size, digit| (size * 10 + i64::from(*digit)).min(100_000));
    if negative { -size } else { size }
}

/// Returns the number of these digits, `behind` of them after the point, times 10^`exponent`.
fn from_digits(negative: bool, digits: Vec<u8>, behind: i64, exponent: i64) -> Decimal {
    const LENGTH_MAX: i64 = 81;
    let skipped = digits.iter().take_while(|digit| **digit == 0).count();
    let mut digits = digits[skipped..].to_vec();
    let mut scale = behind - exponent;
    if digits.is_empty() {
        return Decimal::new(0, scale.clamp(0, SCALE_MAX.into()) as u8);
    }
    if digits.len() as i64 - scale > LENGTH_MAX {
        let largest = Decimal::largest(LENGTH_MAX as u32, 0);
        return if negative { largest.negated() } else { largest };
    }
    while scale < 0 {
        digits.push(0);
        scale += 1;
    }
    // Only the first of the dropped digits matters for rounding.
    let limit = i64::from(SCALE_MAX) + 1;
    if scale > limit {
        let kept = (digits.len() as i64 - (scale - limit)).max(0);
        digits.truncate(kept as usize);
        scale = limit;
    }
    let coefficient = if digits.len() <= 38 {
        BigInt::from(digits.iter().fold(0i128, |sum, digit| sum * 10 + i128::from(*digit)))
    } else {
        BigInt::from_radix_be(Sign::Plus, &digits, 10).unwrap_or_default()
    };
    let coefficient = if negative { -coefficient } else { coefficient };
    let decimal = Decimal::from_big(coefficient, scale as u8);
    if scale > i64::from(SCALE_MAX) { decimal.rounded(SCALE_MAX) } else { decimal }
}

impl From<i64> for Decimal {
    fn from(number: i64) -> Decimal {
        Decimal::new(number.into(), 0)
    }
}

impl From<u64> for Decimal {
    fn from(number: u64) -> Decimal {
        Decimal::new(number.into(), 0)
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Decimal) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        let (a, b) = self.aligned(other);
        match a.small().zip(b.small()) {
            Some((a, b)) => a.cmp(&b),
            None => a.coefficient().cmp(&b.coefficient()),
        }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = match self.small() {
            Some(small) => small.unsigned_abs().to_string(),
            None => self.coefficient().magnitude().to_string(),
        };
        let scale = usize::from(self.scale());
        let sign = if self.is_negative() { "-" } else { "" };
        if scale == 0 {
            return write!(f, "{sign}{digits}");
        }
        let digits = format!("{digits:0>width$}", width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        write!(f, "{sign}{whole}.{fraction}")
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests;
