//! Numbers as C's `printf` and `strtod` write and read them.

/// Returns a number as `%.14g` prints it, which is Lua's text of a number.
pub fn lua(value: f64) -> String {
    general(value, 14)
}

/// Returns a number as `%.{precision}g` prints it.
pub fn general(value: f64, precision: usize) -> String {
    if value.is_nan() {
        return if value.is_sign_negative() { "-nan" } else { "nan" }.to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    let text = format!("{:.*e}", precision - 1, value);
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= precision as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", without_zeros(digits), exponent.unsigned_abs());
    }
    let decimals = (precision as i32 - 1 - exponent).max(0) as usize;
    without_zeros(&format!("{value:.decimals$}")).to_owned()
}

/// Removes zeros at the end of a fraction.
fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// Returns the number that a whole text is, with blanks around it, as Lua coerces a string.
pub fn parse(text: &[u8]) -> Option<f64> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let from = text.iter().position(|byte| !is_blank(byte))?;
    let to = text.iter().rposition(|byte| !is_blank(byte))? + 1;
    let (value, length) = prefix(&text[from..to])?;
    (length == to - from).then_some(value)
}

/// Returns the number at the start of a text, as `strtod` reads it, and its length.
pub fn prefix(text: &[u8]) -> Option<(f64, usize)> {
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let (negative, body) = (text.first() == Some(&b'-'), &text[sign..]);
    let begins = |word: &[u8]| body.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    let (value, length) = if begins(b"infinity") {
        (f64::INFINITY, 8)
    } else if begins(b"inf") {
        (f64::INFINITY, 3)
    } else if begins(b"nan") {
        (f64::NAN, 3)
    } else if let Some(found) = begins(b"0x").then(|| hexadecimal(&body[2..])).flatten() {
        (found.0, found.1 + 2)
    } else {
        decimal(body)?
    };
    Some((if negative { -value } else { value }, sign + length))
}

fn count(text: &[u8], is_digit: impl Fn(&u8) -> bool) -> usize {
    text.iter().take_while(|byte| is_digit(byte)).count()
}

/// Returns the length of an exponent at the start of a text, with its letter.
fn exponent(text: &[u8], letter: u8) -> usize {
    if text.first().map(u8::to_ascii_lowercase) != Some(letter) {
        return 0;
    }
    let sign = usize::from(matches!(text.get(1), Some(b'+' | b'-')));
    let digits = count(&text[1 + sign..], u8::is_ascii_digit);
    if digits == 0 { 0 } else { 1 + sign + digits }
}

fn decimal(text: &[u8]) -> Option<(f64, usize)> {
    let whole = count(text, u8::is_ascii_digit);
    let mut length = whole;
    let mut digits = whole;
    if text.get(whole) == Some(&b'.') {
        let fraction = count(&text[whole + 1..], u8::is_ascii_digit);
        digits += fraction;
        length += 1 + fraction;
    }
    if digits == 0 {
        return None;
    }
    length += exponent(&text[length..], b'e');
    let value = std::str::from_utf8(&text[..length]).ok()?.parse().ok()?;
    Some((value, length))
}

fn hexadecimal(text: &[u8]) -> Option<(f64, usize)> {
    let digit = |byte: u8| f64::from((byte as char).to_digit(16).unwrap_or(0));
    let whole = count(text, u8::is_ascii_hexdigit);
    let mut value = text[..whole].iter().fold(0.0, |value, byte| value * 16.0 + digit(*byte));
    let (mut length, mut digits) = (whole, whole);
    if text.get(whole) == Some(&b'.') {
        let fraction = count(&text[whole + 1..], u8::is_ascii_hexdigit);
        let mut weight = 1.0 / 16.0;
        for byte in &text[whole + 1..whole + 1 + fraction] {
            value += digit(*byte) * weight;
            weight /= 16.0;
        }
        (length, digits) = (length + 1 + fraction, digits + fraction);
    }
    if digits == 0 {
        return None;
    }
    let power = exponent(&text[length..], b'p');
    if power > 0 {
        let number: i32 = std::str::from_utf8(&text[length + 1..length + power]).ok()?.parse().unwrap_or(i32::MAX);
        value *= 2f64.powi(number);
        length += power;
    }
    Some((value, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_as_c_prints_them() {
        let shown = [
            (0.1, 17, "0.10000000000000001"),
            (1e20, 17, "1e+20"),
            (1e14, 14, "1e+14"),
            (123_456_789_012_345.0, 14, "1.2345678901234e+14"),
            (12_345_678_901_234_567.0, 17, "12345678901234568"),
            (-0.0, 14, "-0"),
            (1e-5, 14, "1e-05"),
            (0.0001, 14, "0.0001"),
            (99_999_999_999_999.9, 14, "1e+14"),
            (1.5, 17, "1.5"),
        ];
        for (value, precision, text) in shown {
            assert_eq!(general(value, precision), text);
        }
    }

    #[test]
    fn numbers_are_read_as_strtod_reads_them() {
        let read = [("12abc", 12.0, 2), ("-1.5e3x", -1500.0, 6), ("1e", 1.0, 1), ("0x1F", 31.0, 4), ("+.5", 0.5, 3)];
        for (text, value, length) in read {
            assert_eq!(prefix(text.as_bytes()), Some((value, length)));
        }
        assert_eq!(prefix(b"."), None);
        assert_eq!(parse(b" 10 "), Some(10.0));
        assert_eq!(parse(b"10x"), None);
    }
}
