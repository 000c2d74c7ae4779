//! Floating point numbers with a 64-bit significand, in which INCRBYFLOAT computes on x86-64.
//!
//! Redis adds `long double` values and prints them with seventeen decimals, so an `f64` would give other digits from the sixteenth on. This file implements the
//! part of that format that INCRBYFLOAT needs: exact reading of decimal and hexadecimal text (round to nearest, ties to even), addition, and the exact "%.17Lf"
//! text without trailing zeros. Exactness comes from integers of any length.

/// A finite value is `(-1)^negative * significand * 2^exponent`. Bit 63 of the significand is set unless the value is subnormal or zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extended {
    Finite { negative: bool, significand: u64, exponent: i32 },
    Infinite { negative: bool },
}

/// Exponent of the lowest bit of the smallest normal number. Subnormals share it.
const EXPONENT_MIN: i32 = -16445;
/// Exponent of the lowest bit of the largest number.
const EXPONENT_MAX: i32 = 16383 - 63;
/// Redis first copies the text into a buffer of this size. Longer text is not a number.
const TEXT_MAX: usize = 5 * 1024;

impl Extended {
    /// Parses the whole text as `strtold` does. Refuses what Redis refuses: blanks, trailing text, NaN, overflow, and underflow to zero.
    pub fn parse(text: &[u8]) -> Option<Extended> {
        if text.is_empty() || text.len() >= TEXT_MAX {
            return None;
        }
        let (negative, body) = match text[0] {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        if body.eq_ignore_ascii_case(b"inf") || body.eq_ignore_ascii_case(b"infinity") {
            return Some(Extended::Infinite { negative });
        }
        match body {
            [b'0', b'x' | b'X', rest @ ..] => parse_radix(rest, negative, Radix::Hexadecimal),
            _ => parse_radix(body, negative, Radix::Decimal),
        }
    }

    /// Returns about the same number.
    pub fn to_f64(self) -> f64 {
        let (negative, size) = match self {
            Extended::Infinite { negative } => (negative, f64::INFINITY),
            Extended::Finite { negative, significand, exponent } => {
                (negative, significand as f64 * 2.0_f64.powi(exponent))
            }
        };
        if negative { -size } else { size }
    }

    pub fn is_infinite(&self) -> bool {
        matches!(self, Extended::Infinite { .. })
    }

    /// Returns the sum, rounded to nearest, ties to even. Both must be finite.
    pub fn plus(self, other: Extended) -> Extended {
        let (
            Extended::Finite { negative: n1, significand: s1, exponent: e1 },
            Extended::Finite { negative: n2, significand: s2, exponent: e2 },
        ) = (self, other)
        else {
            return if self.is_infinite() { self } else { other };
        };
        if s1 == 0 || s2 == 0 {
            return match (s1, s2) {
                (0, 0) => Extended::Finite { negative: n1 && n2, significand: 0, exponent: 0 },
                (0, _) => other,
                _ => self,
            };
        }
        // With 63 bits below each significand, the bits shifted out are kept as a sticky lowest bit, far below the rounding position.
        let ((n1, s1, e1), (n2, s2, e2)) =
            if e1 >= e2 { ((n1, s1, e1), (n2, s2, e2)) } else { ((n2, s2, e2), (n1, s1, e1)) };
        let high = u128::from(s1) << 63;
        let low = shift_right_sticky(u128::from(s2) << 63, (e1 - e2) as u32);
        let (negative, sum) = match (n1 == n2, high >= low) {
            (true, _) => (n1, high + low),
            (false, true) => (n1, high - low),
            (false, false) => (n2, low - high),
        };
        if sum == 0 {
            return Extended::Finite { negative: false, significand: 0, exponent: 0 };
        }
        round(negative, sum, e1 - 63, false)
    }

    /// Appends the text that Redis stores and replies: "%.17Lf" without trailing zeros, never "-0".
    pub fn print(&self, out: &mut Vec<u8>) {
        let Extended::Finite { negative, significand, exponent } = *self else {
            unreachable!("INCRBYFLOAT refuses an infinite sum before it prints");
        };
        let (whole, fraction) = if exponent >= 0 {
            let mut whole = Big::from(significand);
            whole.shift_left(exponent as u32);
            (whole.to_decimal(), 0)
        } else {
            // significand < 2^64 and 10^17 < 2^57, so the product fits.
            let scaled = round_shift_right(u128::from(significand) * u128::from(TEN_17), exponent.unsigned_abs());
            ((scaled / u128::from(TEN_17)).to_string(), (scaled % u128::from(TEN_17)) as u64)
        };
        if negative && !(whole == "0" && fraction == 0) {
            out.push(b'-');
        }
        out.extend_from_slice(whole.as_bytes());
        if fraction != 0 {
            let digits = format!("{fraction:017}");
            out.push(b'.');
            out.extend_from_slice(digits.trim_end_matches('0').as_bytes());
        }
    }
}

const TEN_17: u64 = 100_000_000_000_000_000;

#[derive(Clone, Copy, PartialEq)]
enum Radix {
    Decimal,
    Hexadecimal,
}

/// Parses digits with at most one point and an optional exponent.
fn parse_radix(text: &[u8], negative: bool, radix: Radix) -> Option<Extended> {
    let (base, mark) = if radix == Radix::Decimal { (10, b'e') } else { (16, b'p') };
    let mut digits = Big::default();
    let mut digit_count = 0;
    let mut fraction_count = 0i64;
    let mut point = false;
    let mut at = 0;
    while at < text.len() {
        match (text[at] as char).to_digit(base) {
            Some(digit) => {
                digits.multiply_add(base, digit);
                digit_count += 1;
                fraction_count += i64::from(point);
            }
            None if text[at] == b'.' && !point => point = true,
            None => break,
        }
        at += 1;
    }
    if digit_count == 0 {
        return None;
    }
    let exponent = match &text[at..] {
        [] => 0,
        [first, rest @ ..] if first.eq_ignore_ascii_case(&mark) => parse_exponent(rest)?,
        _ => return None,
    };
    if digits.is_zero() {
        return Some(Extended::Finite { negative, significand: 0, exponent: 0 });
    }
    let value = if radix == Radix::Hexadecimal {
        scale_binary(negative, digits, exponent - 4 * fraction_count)
    } else {
        scale_decimal(negative, digits, exponent - fraction_count)
    };
    // ERANGE: Redis refuses overflow and underflow to zero, and keeps subnormals.
    match value {
        Extended::Infinite { .. } | Extended::Finite { significand: 0, .. } => None,
        finite => Some(finite),
    }
}

/// Any number of digits is legal. Beyond a billion the value is out of every range anyway.
fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let magnitude = digits.iter().fold(0i64, |sum, d| (sum * 10 + i64::from(d - b'0')).min(1_000_000_000));
    Some(if negative { -magnitude } else { magnitude })
}

fn scale_binary(negative: bool, digits: Big, exponent: i64) -> Extended {
    let exponent = exponent.clamp(-200_000, 200_000) as i32;
    let (top, dropped_bits, sticky) = digits.top_bits();
    round(negative, top, exponent + dropped_bits as i32, sticky)
}

fn scale_decimal(negative: bool, mut digits: Big, exponent: i64) -> Extended {
    // 10^4932 is the largest power of ten in range. Given the number of digits, the clamp loses nothing.
    let exponent = exponent.clamp(-12_000, 12_000);
    if exponent >= 0 {
        digits.multiply_power_of_ten(exponent as u32);
        let (top, dropped_bits, sticky) = digits.top_bits();
        return round(negative, top, dropped_bits as i32, sticky);
    }
    // Computes digits / 10^k with 66 or 67 bits of quotient. Of the remainder only "not zero" matters.
    let mut divisor = Big::from(1);
    divisor.multiply_power_of_ten((-exponent) as u32);
    let shift = 66 + i64::from(divisor.bit_count()) - i64::from(digits.bit_count());
    if shift >= 0 {
        digits.shift_left(shift as u32);
    } else {
        divisor.shift_left(shift.unsigned_abs() as u32);
    }
    let (quotient, rest) = digits.divide_small_quotient(divisor);
    round(negative, quotient, -(shift as i32), rest)
}

/// Rounds `value * 2^exponent` (plus something below its lowest bit if `sticky`) to 64 bits.
fn round(negative: bool, value: u128, exponent: i32, sticky: bool) -> Extended {
    debug_assert!(value != 0);
    let bits = 128 - value.leading_zeros() as i32;
    // Drops the bits beyond 64, and more where the result is subnormal.
    let drop = (bits - 64).max(EXPONENT_MIN - exponent);
    let (mut significand, mut exponent) = if drop > 0 {
        (round_shift_right_with(value, drop as u32, sticky), exponent + drop)
    } else {
        (value << -drop, exponent + drop)
    };
    if significand >> 64 != 0 {
        significand >>= 1;
        exponent += 1;
    }
    if exponent > EXPONENT_MAX {
        return Extended::Infinite { negative };
    }
    Extended::Finite { negative, significand: significand as u64, exponent }
}

fn shift_right_sticky(value: u128, by: u32) -> u128 {
    if by >= 128 {
        return u128::from(value != 0);
    }
    let kept = value >> by;
    kept | u128::from(kept << by != value)
}

fn round_shift_right(value: u128, by: u32) -> u128 {
    round_shift_right_with(value, by, false)
}

/// Shifts right with rounding to nearest, ties to even. `sticky` means that the true value is slightly above `value`.
fn round_shift_right_with(value: u128, by: u32, sticky: bool) -> u128 {
    if by == 0 {
        return value;
    }
    if by > 128 {
        return 0;
    }
    let kept = if by == 128 { 0 } else { value >> by };
    let rest = if by == 128 { value } else { value & ((1 << by) - 1) };
    let half = 1u128 << (by - 1);
    let up = rest > half || (rest == half && (sticky || kept & 1 == 1));
    kept + u128::from(up)
}

/// An unsigned integer of any length: lowest limb first, no zero limb at the top.
#[derive(Clone, Default)]
struct Big(Vec<u32>);

impl From<u64> for Big {
    fn from(value: u64) -> Big {
        let mut big = Big(vec![value as u32, (value >> 32) as u32]);
        big.trim();
        big
    }
}

impl Big {
    fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    fn bit_count(&self) -> u32 {
        self.0.last().map_or(0, |top| self.0.len() as u32 * 32 - top.leading_zeros())
    }

    fn multiply_add(&mut self, factor: u32, term: u32) {
        let mut carry = u64::from(term);
        for limb in &mut self.0 {
            carry += u64::from(*limb) * u64::from(factor);
            *limb = carry as u32;
            carry >>= 32;
        }
        if carry != 0 {
            self.0.push(carry as u32);
        }
    }

    fn multiply_power_of_ten(&mut self, power: u32) {
        for _ in 0..power / 9 {
            self.multiply_add(1_000_000_000, 0);
        }
        self.multiply_add(10u32.pow(power % 9), 0);
    }

    fn shift_left(&mut self, by: u32) {
        if self.is_zero() {
            return;
        }
        let bits = by % 32;
        if bits != 0 {
            let mut carry = 0u32;
            for limb in &mut self.0 {
                let next = *limb >> (32 - bits);
                *limb = *limb << bits | carry;
                carry = next;
            }
            if carry != 0 {
                self.0.push(carry);
            }
        }
        let zeros = (by / 32) as usize;
        self.0.splice(0..0, std::iter::repeat_n(0, zeros));
    }

    /// Returns the highest bits (at most 96, and at least 65 if there are so many), the number of bits below them, and whether any of those is set.
    fn top_bits(&self) -> (u128, u32, bool) {
        let kept = self.0.len().min(3);
        let below = self.0.len() - kept;
        let top = self.0[below..].iter().rev().fold(0u128, |sum, &limb| sum << 32 | u128::from(limb));
        (top, below as u32 * 32, self.0[..below].iter().any(|&limb| limb != 0))
    }

    fn less_than(&self, other: &Big) -> bool {
        if self.0.len() != other.0.len() {
            return self.0.len() < other.0.len();
        }
        self.0.iter().rev().lt(other.0.iter().rev())
    }

    fn subtract(&mut self, other: &Big) {
        let mut borrow = 0i64;
        for at in 0..self.0.len() {
            let difference = i64::from(self.0[at]) - i64::from(other.0.get(at).copied().unwrap_or(0)) + borrow;
            self.0[at] = difference as u32;
            borrow = difference >> 32;
        }
        debug_assert_eq!(borrow, 0);
        self.trim();
    }

    /// Divides by shifting and subtracting. The quotient has at most 70 bits. Also returns whether there is a remainder.
    fn divide_small_quotient(mut self, divisor: Big) -> (u128, bool) {
        let steps = self.bit_count().saturating_sub(divisor.bit_count());
        let mut shifted = divisor;
        shifted.shift_left(steps);
        let mut quotient = 0u128;
        for _ in 0..=steps {
            quotient <<= 1;
            if !self.less_than(&shifted) {
                self.subtract(&shifted);
                quotient |= 1;
            }
            shifted.halve();
        }
        (quotient, !self.is_zero())
    }

    fn halve(&mut self) {
        let mut carry = 0u32;
        for limb in self.0.iter_mut().rev() {
            let next = *limb << 31;
            *limb = *limb >> 1 | carry;
            carry = next;
        }
        self.trim();
    }

    fn to_decimal(mut self: Big) -> String {
        let mut groups = Vec::new();
        while !self.is_zero() {
            let mut rest = 0u64;
            for limb in self.0.iter_mut().rev() {
                rest = rest << 32 | u64::from(*limb);
                *limb = (rest / 1_000_000_000) as u32;
                rest %= 1_000_000_000;
            }
            self.trim();
            groups.push(rest);
        }
        let mut text = groups.pop().unwrap_or(0).to_string();
        for group in groups.iter().rev() {
            text.push_str(&format!("{group:09}"));
        }
        text
    }
}

#[cfg(test)]
mod tests;
