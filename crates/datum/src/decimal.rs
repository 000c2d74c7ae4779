//! Exact decimal numbers: MySQL's DECIMAL(65,30).
//!
//! A number is a whole coefficient and a scale: how many of its digits stand behind the point. The coefficient is an `i128` while it fits (38 digits: nearly
//! always), a big integer beyond. The scale is part of what is shown (`1.50`), not of what compares (`1.50 = 1.5`).
//! A quotient carries digits to a multiple of nine behind the point, as MySQL's words do: `1/3*3` is 1 only because of them. Its expression rounds when it is shown.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use num_bigint::{BigInt, Sign};

/// Digits in all, and behind the point, that a column may have.
pub const PRECISION_MAX: u32 = 65;
pub const SCALE_MAX: u8 = 30;

#[derive(Clone)]
pub struct Decimal(Held);

/// Two words and not an `i128`: its alignment would widen every value by half.
#[derive(Clone)]
enum Held {
    Small {
        low: u64,
        high: u64,
        scale: u8,
    },
    /// More than an `i128` holds.
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
    pub const ZERO: Decimal = Decimal(Held::Small { low: 0, high: 0, scale: 0 });

    /// `coefficient` / 10^`scale`.
    pub fn new(coefficient: i128, scale: u8) -> Decimal {
        let bits = coefficient as u128;
        Decimal(Held::Small { low: bits as u64, high: (bits >> 64) as u64, scale })
    }

    pub fn from_big(coefficient: BigInt, scale: u8) -> Decimal {
        match i128::try_from(&coefficient) {
            Ok(small) => Decimal::new(small, scale),
            Err(_) => Decimal(Held::Big { coefficient: Arc::new(coefficient), scale }),
        }
    }

    pub fn scale(&self) -> u8 {
        match self.0 {
            Held::Small { scale, .. } | Held::Big { scale, .. } => scale,
        }
    }

    /// The coefficient where it fits an `i128`.
    pub fn small(&self) -> Option<i128> {
        match self.0 {
            Held::Small { low, high, .. } => Some(((u128::from(high) << 64) | u128::from(low)) as i128),
            Held::Big { .. } => None,
        }
    }

    pub fn coefficient(&self) -> BigInt {
        match &self.0 {
            Held::Small { .. } => BigInt::from(self.small().unwrap_or(0)),
            Held::Big { coefficient, .. } => (**coefficient).clone(),
        }
    }

    pub fn is_zero(&self) -> bool {
        self.small() == Some(0)
    }

    pub fn is_negative(&self) -> bool {
        match &self.0 {
            Held::Small { high, .. } => (*high as i64) < 0,
            Held::Big { coefficient, .. } => coefficient.sign() == Sign::Minus,
        }
    }

    /// Digits of the coefficient; 1 for zero.
    pub fn digits(&self) -> u32 {
        match self.small() {
            Some(0) => 1,
            Some(small) => small.unsigned_abs().ilog10() + 1,
            None => self.coefficient().magnitude().to_string().len() as u32,
        }
    }

    /// Digits before the point, 0 for a number below one.
    pub fn whole_digits(&self) -> u32 {
        if self.is_zero() { 0 } else { self.digits().saturating_sub(u32::from(self.scale())) }
    }

    /// The same number with more digits behind the point.
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

    /// Both with the larger scale of the two.
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

    /// The coefficient where it fits an `i64`, and the scale.
    #[inline]
    pub fn short(&self) -> Option<(i64, u8)> {
        match self.0 {
            Held::Small { low, high, scale } if high as i64 == low as i64 >> 63 => Some((low as i64, scale)),
            _ => None,
        }
    }

    /// Adds a number of the same scale in place, if both are small and so is the sum. False: nothing is changed.
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

    /// The product, cut at 30 digits behind the point.
    pub fn times(&self, other: &Decimal) -> Decimal {
        let scale = self.scale() + other.scale();
        let product = match self.small().zip(other.small()).and_then(|(a, b)| a.checked_mul(b)) {
            Some(product) => Decimal::new(product, scale),
            None => Decimal::from_big(self.coefficient() * other.coefficient(), scale),
        };
        if scale > SCALE_MAX { product.truncated(SCALE_MAX) } else { product }
    }

    /// The quotient with at least `increment` more digits behind the point than the dividend has, cut, not rounded. `None` for a zero divisor.
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

    /// What division to a whole quotient leaves; its sign is the dividend's. `None` for a zero divisor.
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

    /// To the nearest with this scale, halves away from zero; digits are added where there are fewer.
    pub fn rounded(&self, scale: u8) -> Decimal {
        self.rescaled(scale, true)
    }

    /// Digits behind `scale` are cut off; digits are added where there are fewer.
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

    /// Rounded or cut before the point: `digits` zeros at the end of the whole part.
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

    /// The largest with so many digits: 9...9.9...9.
    pub fn largest(precision: u32, scale: u8) -> Decimal {
        match POWERS.get(precision as usize) {
            Some(power) => Decimal::new(power - 1, scale),
            None => Decimal::from_big(big_power(precision) - 1, scale),
        }
    }

    /// The whole part as an `i128` after rounding, saturated: for conversions to integers.
    pub fn to_whole(&self) -> i128 {
        let whole = self.rounded(0);
        whole.small().unwrap_or(if self.is_negative() { i128::MIN } else { i128::MAX })
    }

    pub fn to_f64(&self) -> f64 {
        // Both are exact doubles, so that the one division is the only rounding.
        const EXACT: u128 = 1 << 53;
        if let Some(small) = self.small().filter(|small| small.unsigned_abs() <= EXACT && self.scale() <= 22) {
            return small as f64 / 10f64.powi(self.scale().into());
        }
        self.to_string().parse().unwrap_or(0.0)
    }

    /// The decimal that the double is shown as, cut to 30 digits behind the point. `None` for what is no number or longer than MySQL's 81 digits.
    pub fn from_f64(double: f64) -> Option<Decimal> {
        if !double.is_finite() || double.abs() >= 1e81 {
            return None;
        }
        Decimal::parse_prefix(&format!("{double:e}")).map(|(decimal, _)| decimal)
    }

    /// The longest number at the text's start, and how many bytes it takes; exponents are allowed. `None` where there is none.
    /// Digits beyond the 30th behind the point round; a number of more than 81 digits saturates.
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

    /// All of the text as a number.
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

/// `e+5` behind a number, where it is complete.
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

/// The number of these digits, `behind` of them after the point, times 10^`exponent`.
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
    // Of digits far behind the point only the first that is dropped matters.
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
