//! Exact decimal numbers, and the values beside them: both infinities and NaN.
//!
//! A number is an integer coefficient and a scale, the number of its digits behind the point. The coefficient is an `i128` while it fits, which 38 digits
//! nearly always do, and a big integer beyond. The scale is part of the shown form (`1.50`) and not of the order (`1.50 = 1.5`). A dialect sets its own
//! bounds: one has 65 digits, 30 of them behind the point, another 131,072 digits before the point and 16,383 behind it.
//!
//! The order is total: -Infinity, the numbers, Infinity, NaN. Every operation is defined for the special values and gives one of them; only a conversion to
//! an integer has no truth to tell, and saturates. A caller whose dialect has no such values need not ask for them.
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
        scale: u16,
    },
    /// A coefficient beyond the range of an `i128`.
    Big {
        coefficient: Arc<BigInt>,
        scale: u16,
    },
    Special(Special),
}

/// The values that are no finite number, in their order; the finite numbers are between the first and the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Special {
    NegativeInfinity,
    Infinity,
    NotANumber,
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

/// Returns the number of decimal digits of a number that is not zero, without making them.
fn big_digits(number: &BigInt) -> u32 {
    // 2^(bits - 1) <= number < 2^bits, and the estimate is at most one too small.
    let bits = number.bits();
    let estimate = ((bits - 1) as f64 * std::f64::consts::LOG10_2) as u32;
    let power = big_power(estimate + 1);
    estimate + 1 + u32::from(number.magnitude() >= power.magnitude())
}

impl Decimal {
    pub const ZERO: Decimal = Decimal(DecimalRepr::Small { low: 0, high: 0, scale: 0 });
    pub const NAN: Decimal = Decimal(DecimalRepr::Special(Special::NotANumber));
    pub const INFINITY: Decimal = Decimal(DecimalRepr::Special(Special::Infinity));
    pub const NEGATIVE_INFINITY: Decimal = Decimal(DecimalRepr::Special(Special::NegativeInfinity));

    /// `coefficient` / 10^`scale`.
    #[inline]
    pub fn new(coefficient: i128, scale: u16) -> Decimal {
        let bits = coefficient as u128;
        Decimal(DecimalRepr::Small { low: bits as u64, high: (bits >> 64) as u64, scale })
    }

    pub fn from_big(coefficient: BigInt, scale: u16) -> Decimal {
        match i128::try_from(&coefficient) {
            Ok(small) => Decimal::new(small, scale),
            Err(_) => Decimal(DecimalRepr::Big { coefficient: Arc::new(coefficient), scale }),
        }
    }

    /// The number of digits behind the point; 0 for a special value.
    #[inline]
    pub fn scale(&self) -> u16 {
        match self.0 {
            DecimalRepr::Small { scale, .. } | DecimalRepr::Big { scale, .. } => scale,
            DecimalRepr::Special(_) => 0,
        }
    }

    /// Returns the scale for a type that bounds it; one of more than 255 saturates.
    pub fn bounded_scale(&self) -> u8 {
        u8::try_from(self.scale()).unwrap_or(u8::MAX)
    }

    /// Returns which of the special values it is; `None` for a finite number.
    #[inline]
    pub fn special(&self) -> Option<Special> {
        match self.0 {
            DecimalRepr::Special(special) => Some(special),
            _ => None,
        }
    }

    #[inline]
    pub fn is_finite(&self) -> bool {
        self.special().is_none()
    }

    pub fn is_nan(&self) -> bool {
        self.special() == Some(Special::NotANumber)
    }

    /// True for both infinities.
    pub fn is_infinite(&self) -> bool {
        matches!(self.special(), Some(Special::Infinity | Special::NegativeInfinity))
    }

    /// Returns the coefficient where it fits an `i128`; `None` for a special value.
    #[inline]
    pub fn small(&self) -> Option<i128> {
        match self.0 {
            DecimalRepr::Small { low, high, .. } => Some(((u128::from(high) << 64) | u128::from(low)) as i128),
            DecimalRepr::Big { .. } | DecimalRepr::Special(_) => None,
        }
    }

    /// Returns the coefficient; 0 for a special value.
    pub fn coefficient(&self) -> BigInt {
        match &self.0 {
            DecimalRepr::Small { .. } => BigInt::from(self.small().unwrap_or(0)),
            DecimalRepr::Big { coefficient, .. } => (**coefficient).clone(),
            DecimalRepr::Special(_) => BigInt::ZERO,
        }
    }

    /// Returns how many bytes the number takes on the heap.
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            DecimalRepr::Big { coefficient, .. } => coefficient.bits().div_ceil(8) as usize,
            _ => 0,
        }
    }

    #[inline]
    pub fn is_zero(&self) -> bool {
        self.small() == Some(0)
    }

    #[inline]
    pub fn is_negative(&self) -> bool {
        match &self.0 {
            DecimalRepr::Small { high, .. } => (*high as i64) < 0,
            DecimalRepr::Big { coefficient, .. } => coefficient.sign() == Sign::Minus,
            DecimalRepr::Special(special) => *special == Special::NegativeInfinity,
        }
    }

    /// The number of digits of the coefficient; 1 for zero and for a special value.
    pub fn digits(&self) -> u32 {
        match self.small() {
            Some(0) => 1,
            Some(small) => small.unsigned_abs().ilog10() + 1,
            None => match &self.0 {
                DecimalRepr::Big { coefficient, .. } => big_digits(coefficient),
                _ => 1,
            },
        }
    }

    /// The number of digits before the point; 0 for a number below one.
    pub fn whole_digits(&self) -> u32 {
        if self.is_zero() { 0 } else { self.digits().saturating_sub(u32::from(self.scale())) }
    }

    /// Returns the same number with more digits behind the point.
    fn raised(&self, scale: u16) -> Decimal {
        debug_assert!(scale >= self.scale());
        let by = scale - self.scale();
        if by == 0 || !self.is_finite() {
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
        match self.special() {
            Some(Special::NegativeInfinity) => return Decimal::INFINITY,
            Some(Special::Infinity) => return Decimal::NEGATIVE_INFINITY,
            Some(Special::NotANumber) => return Decimal::NAN,
            None => {}
        }
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
    pub fn short(&self) -> Option<(i64, u16)> {
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

    /// Returns the sum: NaN if a summand is, and for infinities of opposite signs.
    pub fn plus(&self, other: &Decimal) -> Decimal {
        self.small_sum(other, i128::checked_add).unwrap_or_else(|| self.long_sum(other))
    }

    /// Returns a sum or difference where the coefficients and the result fit an `i128`.
    #[inline]
    fn small_sum(&self, other: &Decimal, join: fn(i128, i128) -> Option<i128>) -> Option<Decimal> {
        let (mut a, mut b) = (self.small()?, other.small()?);
        let (own, others) = (self.scale(), other.scale());
        if own < others {
            a = a.checked_mul(*POWERS.get(usize::from(others - own))?)?;
        } else if others < own {
            b = b.checked_mul(*POWERS.get(usize::from(own - others))?)?;
        }
        Some(Decimal::new(join(a, b)?, own.max(others)))
    }

    #[cold]
    fn long_sum(&self, other: &Decimal) -> Decimal {
        if let Some(special) = self.special_sum(other) {
            return special;
        }
        let (a, b) = self.aligned(other);
        match a.small().zip(b.small()).and_then(|(a, b)| a.checked_add(b)) {
            Some(sum) => Decimal::new(sum, a.scale()),
            None => Decimal::from_big(a.coefficient() + b.coefficient(), a.scale()),
        }
    }

    #[inline]
    fn special_sum(&self, other: &Decimal) -> Option<Decimal> {
        match (self.special(), other.special()) {
            (None, None) => None,
            (Some(_), None) => Some(self.clone()),
            (None, Some(_)) => Some(other.clone()),
            (Some(a), Some(b)) => Some(if a == b { self.clone() } else { Decimal::NAN }),
        }
    }

    pub fn minus(&self, other: &Decimal) -> Decimal {
        self.small_sum(other, i128::checked_sub).unwrap_or_else(|| self.long_sum(&other.negated()))
    }

    /// Returns the product, cut at 30 digits behind the point.
    pub fn times(&self, other: &Decimal) -> Decimal {
        let product = self.times_exactly(other);
        if product.scale() > SCALE_MAX.into() { product.truncated(SCALE_MAX.into()) } else { product }
    }

    /// Returns the product with all its digits: NaN if a factor is, and for zero times an infinity.
    pub fn times_exactly(&self, other: &Decimal) -> Decimal {
        if let (Some((a, own)), Some((b, others))) = (self.short(), other.short()) {
            return Decimal::new(i128::from(a) * i128::from(b), own.saturating_add(others));
        }
        if !self.is_finite() || !other.is_finite() {
            return self.special_product(other);
        }
        let scale = self.scale().saturating_add(other.scale());
        match self.small().zip(other.small()).and_then(|(a, b)| a.checked_mul(b)) {
            Some(product) => Decimal::new(product, scale),
            None => Decimal::from_big(self.coefficient() * other.coefficient(), scale),
        }
    }

    #[cold]
    fn special_product(&self, other: &Decimal) -> Decimal {
        if self.is_nan() || other.is_nan() || self.is_zero() || other.is_zero() {
            Decimal::NAN
        } else if self.is_negative() == other.is_negative() {
            Decimal::INFINITY
        } else {
            Decimal::NEGATIVE_INFINITY
        }
    }

    /// Returns the quotient with at least `increment` more digits behind the point than the dividend has, cut and not rounded. `None` for a zero divisor.
    pub fn divided(&self, other: &Decimal, increment: u8) -> Option<Decimal> {
        if other.is_zero() {
            return None;
        }
        if !self.is_finite() || !other.is_finite() {
            return Some(self.special_quotient(other));
        }
        let words = |scale: u16| scale.div_ceil(9) * 9;
        let (own, others) = (words(self.scale()), words(other.scale()));
        let spare = (own - self.scale()) + (others - other.scale());
        let scale = words(own + others + u16::from(increment).saturating_sub(spare)).min(72);
        // self / other = (a / 10^s) / (b / 10^t) = a * 10^(scale - s + t) / b, in units of 10^-scale.
        let Some(exponent) = (scale + other.scale()).checked_sub(self.scale()) else {
            let by = big_power((self.scale() - scale - other.scale()).into());
            return Some(Decimal::from_big(self.coefficient() / (other.coefficient() * by), scale));
        };
        let small = self.small().zip(other.small()).zip(POWERS.get(usize::from(exponent)));
        if let Some(quotient) = small.and_then(|((a, b), power)| a.checked_mul(*power)?.checked_div(b)) {
            return Some(Decimal::new(quotient, scale));
        }
        Some(Decimal::from_big(self.coefficient() * big_power(exponent.into()) / other.coefficient(), scale))
    }

    /// Returns the quotient where a side is no finite number: a number divided by an infinity is zero.
    #[cold]
    fn special_quotient(&self, other: &Decimal) -> Decimal {
        match (self.special(), other.special()) {
            (None, Some(Special::Infinity | Special::NegativeInfinity)) => Decimal::ZERO,
            (Some(Special::Infinity | Special::NegativeInfinity), None) => {
                if self.is_negative() == other.is_negative() { Decimal::INFINITY } else { Decimal::NEGATIVE_INFINITY }
            }
            _ => Decimal::NAN,
        }
    }

    /// Returns the remainder of the division to an integer quotient, with the sign of the dividend. `None` for a zero divisor.
    pub fn remainder(&self, other: &Decimal) -> Option<Decimal> {
        if other.is_zero() {
            return None;
        }
        match (self.special(), other.special()) {
            (None, None) => {}
            (None, Some(Special::Infinity | Special::NegativeInfinity)) => return Some(self.clone()),
            _ => return Some(Decimal::NAN),
        }
        let (a, b) = self.aligned(other);
        Some(match a.small().zip(b.small()).and_then(|(a, b)| a.checked_rem(b)) {
            Some(rest) => Decimal::new(rest, a.scale()),
            None => Decimal::from_big(a.coefficient() % b.coefficient(), a.scale()),
        })
    }

    /// Rounds to a scale, halves away from zero. Adds zeros where the number has fewer digits.
    pub fn rounded(&self, scale: u16) -> Decimal {
        self.rescaled(scale, true)
    }

    /// Cuts the digits beyond a scale. Adds zeros where the number has fewer digits.
    pub fn truncated(&self, scale: u16) -> Decimal {
        self.rescaled(scale, false)
    }

    fn rescaled(&self, scale: u16, round: bool) -> Decimal {
        if !self.is_finite() {
            return self.clone();
        }
        if scale >= self.scale() {
            return self.raised(scale);
        }
        let by = self.scale() - scale;
        if let Some((small, power)) = self.small().zip(POWERS.get(usize::from(by))) {
            let (whole, rest) = (small / power, small % power);
            let up = i128::from(round && rest.unsigned_abs() >= (*power as u128).div_ceil(2)) * small.signum();
            return Decimal::new(whole + up, scale);
        }
        Decimal::from_big(self.rescaled_down(by.into(), round), scale)
    }

    /// Rounds or cuts before the point, so that the integer part ends in `digits` zeros.
    pub fn at_power(&self, digits: u32, round: bool) -> Decimal {
        if !self.is_finite() || digits > self.whole_digits() {
            return if self.is_finite() { Decimal::ZERO } else { self.clone() };
        }
        let unit = self.rescaled_down(digits + u32::from(self.scale()), round);
        Decimal::from_big(unit * big_power(digits), 0)
    }

    /// Returns the coefficient without its last `digits` digits.
    fn rescaled_down(&self, digits: u32, round: bool) -> BigInt {
        if digits > self.digits() {
            return BigInt::ZERO;
        }
        let power = big_power(digits);
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
    pub fn largest(precision: u32, scale: u16) -> Decimal {
        match POWERS.get(precision as usize) {
            Some(power) => Decimal::new(power - 1, scale),
            None => Decimal::from_big(big_power(precision) - 1, scale),
        }
    }

    /// Rounds to an integer and saturates at the limits of an `i128`; 0 for NaN.
    pub fn to_whole(&self) -> i128 {
        if self.is_nan() {
            return 0;
        }
        let whole = self.rounded(0);
        whole.small().unwrap_or(if self.is_negative() { i128::MIN } else { i128::MAX })
    }

    pub fn to_f64(&self) -> f64 {
        // Both operands are exact doubles, so the division is the only rounding.
        const EXACT: u128 = 1 << 53;
        if let Some(small) = self.small().filter(|small| small.unsigned_abs() <= EXACT && self.scale() <= 22) {
            return small as f64 / 10f64.powi(self.scale().into());
        }
        // The special values have the same names there.
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
        return Decimal::new(0, scale.clamp(0, SCALE_MAX.into()) as u16);
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
    let decimal = Decimal::from_big(coefficient, scale as u16);
    if scale > i64::from(SCALE_MAX) { decimal.rounded(SCALE_MAX.into()) } else { decimal }
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
        if !self.is_finite() || !other.is_finite() {
            let rank = |special: Option<Special>| match special {
                Some(Special::NegativeInfinity) => -1,
                None => 0,
                Some(Special::Infinity) => 1,
                Some(Special::NotANumber) => 2,
            };
            return rank(self.special()).cmp(&rank(other.special()));
        }
        if let Some(order) = self.order_by_length(other) {
            return order;
        }
        let (a, b) = self.aligned(other);
        match a.small().zip(b.small()) {
            Some((a, b)) => a.cmp(&b),
            None => a.coefficient().cmp(&b.coefficient()),
        }
    }
}

impl Decimal {
    /// Returns the order where signs or lengths decide it: no zeros have to be put behind a number of very different size. `None` otherwise, and for numbers
    /// of few digits.
    fn order_by_length(&self, other: &Decimal) -> Option<Ordering> {
        if self.small().is_some() && other.small().is_some() && self.scale().abs_diff(other.scale()) <= 38 {
            return None;
        }
        let sign = |number: &Decimal| i32::from(!number.is_zero()) * if number.is_negative() { -1 } else { 1 };
        let (own, others) = (sign(self), sign(other));
        if own != others || own == 0 {
            return Some(own.cmp(&others));
        }
        // 10^(size - 1) <= |number| < 10^size
        let size = |number: &Decimal| i64::from(number.digits()) - i64::from(number.scale());
        let order = size(self).cmp(&size(other));
        (order != Ordering::Equal).then(|| if own < 0 { order.reverse() } else { order })
    }
}

impl fmt::Display for Special {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Special::NegativeInfinity => "-Infinity",
            Special::Infinity => "Infinity",
            Special::NotANumber => "NaN",
        })
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(special) = self.special() {
            return write!(f, "{special}");
        }
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
