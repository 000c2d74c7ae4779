//! to_char of numbers: the digits of a number are laid out by a template.

use datum::Result;
use datum::decimal::Decimal;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use super::format::{Pattern, SignPlace, Template, Token};
use crate::error::{PgError, state};
use crate::functions::args::{integer, text};
use crate::types::numeric::integer::Width;
use crate::value::Value;

/// A number as digits with a point, without its sign.
struct Digits {
    digits: String,
    sign: char,
    /// Blanks before the digits.
    blanks: usize,
}

/// Returns the digits in the room of the template, or signs that there are too many.
fn fitted(shown: &str, template: &Template) -> Digits {
    let (sign, digits) = match shown.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', shown),
    };
    let whole = digits.find('.').unwrap_or(digits.len());
    if whole > template.pre {
        let digits = format!("{}.{}", "#".repeat(template.pre), "#".repeat(template.post));
        return Digits { digits, sign, blanks: 0 };
    }
    Digits { digits: digits.to_owned(), sign, blanks: template.pre - whole }
}

/// Returns what stands for a number without an exponent in an exponential template.
fn no_exponent(template: &Template) -> String {
    let mut marks = vec!['#'; template.pre + template.post + 6];
    marks[0] = ' ';
    marks[template.pre + 1] = '.';
    marks.into_iter().collect()
}

/// Returns an exponential form with a blank in the place of a plus.
fn signed(form: String) -> String {
    if form.starts_with('-') { form } else { format!(" {form}") }
}

/// Returns C's `%.*e`.
fn exponential(number: f64, digits: usize) -> String {
    let form = format!("{number:.digits$e}");
    let (mantissa, exponent) = form.split_once('e').unwrap_or((&form, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{exponent:0>2}")
}

/// Returns a decimal with one digit before the point and an exponent. A rounded digit may make it two.
fn exponential_decimal(number: &Decimal, digits: usize) -> String {
    let scale = i64::from(number.scale());
    let magnitude = if number.is_zero() { 0 } else { i64::from(number.digits()) - 1 - scale };
    // coefficient / 10^scale = significand * 10^magnitude. The significand has a digit before the point and these behind it; those beyond
    // the greatest scale are cut off, since rounding does not look at them.
    let places = (scale + magnitude).max(0) as u32;
    let kept = u16::try_from(places).unwrap_or(u16::MAX);
    let coefficient = number.coefficient() / crate::types::numeric::power_of_ten(places - u32::from(kept));
    let significand = Decimal::from_big(coefficient, kept);
    let sign = if magnitude < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", significand.rounded(digits as u16), magnitude.abs())
}

fn roman(number: i64) -> String {
    if !(1..=3999).contains(&number) {
        return "#".repeat(15);
    }
    const STEPS: [(i64, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let mut rest = number;
    let mut out = String::new();
    for (value, letters) in STEPS {
        while rest >= value {
            out.push_str(letters);
            rest -= value;
        }
    }
    out
}

fn roman_digits(number: i64) -> Digits {
    Digits { digits: roman(number), sign: '+', blanks: 0 }
}

#[cold]
fn out_of_range(name: &str) -> PgError {
    PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, format!("{name} out of range"))
}

fn template(values: &[Value]) -> Result<Option<Template>> {
    let format = text(values, 1)?;
    if format.is_empty() {
        return Ok(None);
    }
    Ok(Some(Template::of(format)?))
}

fn shown(text: String) -> Result<Value> {
    Ok(Value::Text(text.into()))
}

/// An int4 that V shifts beyond its range wraps around.
pub fn of_int4(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    of_integer(values, Width::Int4, |number, multi| {
        let power = i32::try_from(10i64.saturating_pow(multi)).unwrap_or(i32::MIN);
        Some((number as i32).wrapping_mul(power).into())
    })
}

pub fn of_int8(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    of_integer(values, Width::Int8, |number, multi| number.checked_mul(10i64.checked_pow(multi)?))
}

fn of_integer(values: &[Value], width: Width, shift: fn(i64, u32) -> Option<i64>) -> Result<Value> {
    let Some(mut template) = template(values)? else { return shown(String::new()) };
    let number = integer(values, 0)?;
    if template.is_roman {
        if i32::try_from(number).is_err() {
            return Err(out_of_range("integer").into());
        }
        return shown(Layout::new(template, roman_digits(number)).write()?);
    }
    if template.has_exponent {
        let form = match width {
            Width::Int8 => exponential_decimal(&Decimal::from(number), template.post),
            _ => exponential(number as f64, template.post),
        };
        return shown(signed(form));
    }
    let mut shifted = number;
    if template.shifts {
        shifted = shift(number, template.multi as u32).ok_or_else(|| out_of_range("bigint"))?;
        template.pre += template.multi;
    }
    let mut digits = shifted.to_string();
    if template.post > 0 {
        digits.push('.');
        digits.push_str(&"0".repeat(template.post));
    }
    let digits = fitted(&digits, &template);
    shown(Layout::new(template, digits).write()?)
}

pub fn of_float4(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let Value::Float(number) = values[0] else { return Err(datum::Fault::corrupt("a float in another form")) };
    of_float(f64::from(number), values, 6, true)
}

pub fn of_float8(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let Value::Double(number) = values[0] else { return Err(datum::Fault::corrupt("a float in another form")) };
    of_float(number, values, 15, false)
}

fn fixed(number: f64, digits: usize) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        if number < 0.0 { "-Infinity" } else { "Infinity" }.to_owned()
    } else {
        format!("{number:.digits$}")
    }
}

/// A float has no more digits than `precise` that mean something.
fn of_float(number: f64, values: &[Value], precise: usize, is_single: bool) -> Result<Value> {
    let Some(mut template) = template(values)? else { return shown(String::new()) };
    if template.is_roman {
        let rounded = number.round_ties_even();
        let number = if rounded.is_finite() && rounded.abs() < 1e9 { rounded as i64 } else { 0 };
        return shown(Layout::new(template, roman_digits(number)).write()?);
    }
    if template.has_exponent {
        if !number.is_finite() {
            return shown(no_exponent(&template));
        }
        return shown(signed(exponential(number, template.post)));
    }
    let mut shifted = number;
    if template.shifts {
        let power = 10f64.powi(template.multi as i32);
        shifted = if is_single { f64::from((number as f32) * (power as f32)) } else { number * power };
        template.pre += template.multi;
    }
    let whole = fixed(shifted.abs(), 0).len();
    template.post = template.post.min(precise.saturating_sub(whole));
    let digits = fitted(&fixed(shifted, template.post), &template);
    shown(Layout::new(template, digits).write()?)
}

pub fn of_numeric(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let Some(mut template) = template(values)? else { return shown(String::new()) };
    let Value::Decimal(number) = &values[0] else { return Err(datum::Fault::corrupt("a numeric in another form")) };
    if template.is_roman {
        let rounded = number.rounded(0);
        if !rounded.is_finite() {
            let name = if rounded.is_nan() { "NaN" } else { "infinity" };
            let message = format!("cannot convert {name} to integer");
            return Err(PgError::new(state::FEATURE_NOT_SUPPORTED, message).into());
        }
        let small = rounded.small().and_then(|number| i32::try_from(number).ok());
        let number = small.ok_or_else(|| out_of_range("integer"))?;
        return shown(Layout::new(template, roman_digits(number.into())).write()?);
    }
    if template.has_exponent {
        if !number.is_finite() {
            return shown(no_exponent(&template));
        }
        return shown(signed(exponential_decimal(number, template.post)));
    }
    let mut shifted = number.clone();
    if template.shifts {
        let power = crate::types::numeric::power_of_ten(template.multi as u32);
        shifted = shifted.times_exactly(&Decimal::from_big(power, 0));
        template.pre += template.multi;
    }
    let digits = fitted(&shifted.rounded(template.post as u16).to_string(), &template);
    shown(Layout::new(template, digits).write()?)
}

/// The layout of a number by a template: `NUM_processor` of PostgreSQL.
struct Layout {
    template: Template,
    digits: Vec<u8>,
    sign: char,
    blanks: usize,
    out: String,
    /// The next digit.
    next: usize,
    /// The position in the template's digits.
    position: usize,
    has_begun: bool,
    wrote_sign: bool,
    /// The last digit that is written where blanks are filled.
    last: Option<usize>,
    count: usize,
}

impl Layout {
    fn new(template: Template, digits: Digits) -> Layout {
        let Digits { digits, sign, blanks } = digits;
        let (digits, count) = (digits.into_bytes(), 0);
        let (out, last) = (String::new(), None);
        let mut layout = Layout {
            template,
            digits,
            sign,
            blanks,
            out,
            next: 0,
            position: 0,
            has_begun: false,
            wrote_sign: false,
            last,
            count,
        };
        layout.prepare();
        layout
    }

    fn prepare(&mut self) {
        let template = &mut self.template;
        template.zero_start = template.zero_start.saturating_sub(1);
        if template.is_roman {
            let tokens = std::mem::take(&mut template.tokens);
            *template = Template { tokens, is_roman: true, fills: template.fills, ..Template::default() };
            self.sign = '\0';
            self.blanks = 0;
        }
        if template.has_plus || template.has_minus {
            self.wrote_sign = !template.has_plus || template.has_minus;
        } else {
            if self.sign != '-' && template.has_bracket && template.fills {
                template.has_bracket = false;
            }
            self.wrote_sign = self.sign == '+' && template.fills && !template.has_sign;
            if template.sign == SignPlace::Before && template.pre == template.sign_at {
                template.sign = SignPlace::Behind;
            }
        }
        self.count = (template.post + template.pre).wrapping_sub(1);
        if template.fills && template.has_point {
            self.last = last_relevant(&self.digits);
            if let Some(last) = &mut self.last
                && template.zero_end > self.blanks
            {
                let zero = (self.digits.len() - 1).min(template.zero_end - self.blanks);
                *last = (*last).max(zero);
            }
        }
        if !self.wrote_sign && self.blanks == 0 {
            self.count = self.count.wrapping_add(1);
        }
    }

    fn write(mut self) -> Result<String> {
        let tokens = std::mem::take(&mut self.template.tokens);
        for token in tokens {
            match token {
                Token::Literal(letter) => self.out.push(letter),
                Token::Pattern(pattern) => self.pattern(pattern)?,
            }
        }
        let end = self.out.find('\0').unwrap_or(self.out.len());
        self.out.truncate(end);
        Ok(self.out)
    }

    /// Writes a character unless blanks are filled.
    fn blank(&mut self) {
        if !self.template.fills {
            self.out.push(' ');
        }
    }

    fn pattern(&mut self, pattern: Pattern) -> Result<()> {
        match pattern {
            Pattern::Nine | Pattern::Zero | Pattern::Point | Pattern::LocalePoint => self.digit(pattern),
            Pattern::Comma | Pattern::Group if self.has_begun => self.out.push(','),
            Pattern::Comma | Pattern::Group => self.blank(),
            Pattern::Currency => self.out.push(' '),
            Pattern::Roman | Pattern::RomanLower => {
                let text = String::from_utf8_lossy(&self.digits[self.next..]).into_owned();
                let text = if pattern == Pattern::Roman { text } else { text.to_ascii_lowercase() };
                self.out.push_str(&if self.template.fills { text } else { format!("{text:>15}") });
            }
            Pattern::Ordinal | Pattern::OrdinalLower => self.ordinal(pattern)?,
            Pattern::Minus if self.sign == '-' => self.out.push('-'),
            Pattern::Plus if self.sign == '+' => self.out.push('+'),
            Pattern::Minus | Pattern::Plus => self.blank(),
            Pattern::SignAlways => self.out.push(self.sign),
            _ => {}
        }
        Ok(())
    }

    fn ordinal(&mut self, pattern: Pattern) -> Result<()> {
        let is_marks = self.digits.first() == Some(&b'#');
        if self.template.is_roman || is_marks || self.sign == '-' || self.template.has_point {
            return Ok(());
        }
        let last = self.digits.last().copied().unwrap_or_default();
        if !last.is_ascii_digit() {
            let message = format!("\"{}\" is not a number", String::from_utf8_lossy(&self.digits));
            return Err(PgError::new(state::INVALID_TEXT_REPRESENTATION, message).into());
        }
        let is_teen = self.digits.len() > 1 && self.digits[self.digits.len() - 2] == b'1';
        let suffix = match last {
            b'1' if !is_teen => "st",
            b'2' if !is_teen => "nd",
            b'3' if !is_teen => "rd",
            _ => "th",
        };
        let upper = pattern == Pattern::Ordinal;
        self.out.push_str(&if upper { suffix.to_ascii_uppercase() } else { suffix.to_owned() });
        Ok(())
    }

    /// The zero before a point that is left out: that of 0.1 in `9.9`.
    fn is_zero_before_point(&self) -> bool {
        !self.template.has_zero && self.next == 0 && self.digits.first() == Some(&b'0') && self.template.post != 0
    }

    fn last_is_point(&self) -> bool {
        self.last.is_some_and(|last| self.digits[last] == b'.')
    }

    fn write_sign(&mut self) {
        if self.template.has_sign {
            if self.template.sign == SignPlace::Before {
                self.out.push(if self.sign == '-' { '-' } else { '+' });
                self.wrote_sign = true;
            }
        } else if self.template.has_bracket {
            self.out.push(if self.sign == '+' { ' ' } else { '<' });
            self.wrote_sign = true;
        } else if self.sign == '+' {
            self.blank();
            self.wrote_sign = true;
        } else if self.sign == '-' {
            self.out.push('-');
            self.wrote_sign = true;
        }
    }

    fn digit(&mut self, pattern: Pattern) {
        if self.template.is_roman {
            return;
        }
        self.has_begun = false;
        let begins_here = self.template.has_zero && self.template.zero_start == self.position;
        if !self.wrote_sign
            && (self.position >= self.blanks || begins_here)
            && (!self.is_zero_before_point() || self.last_is_point())
        {
            self.write_sign();
        }
        if self.position < self.blanks {
            if !self.template.has_zero || self.template.zero_start > self.position {
                self.blank();
            } else {
                self.out.push('0');
                self.has_begun = true;
            }
        } else {
            self.number_digit(pattern);
            if self.next < self.digits.len() {
                self.next += 1;
            }
        }
        let mut end =
            self.count.wrapping_add(usize::from(self.blanks > 0)).wrapping_add(usize::from(self.template.has_point));
        if self.last.is_some_and(|last| last == self.next) {
            end = self.position;
        }
        if self.position + 1 == end {
            if self.wrote_sign && self.template.has_bracket {
                self.out.push(if self.sign == '+' { ' ' } else { '>' });
            } else if self.template.has_sign && self.template.sign == SignPlace::Behind {
                self.out.push(if self.sign == '-' { '-' } else { '+' });
            }
        }
        self.position += 1;
    }

    fn number_digit(&mut self, pattern: Pattern) {
        match self.digits.get(self.next) {
            Some(b'.') => {
                if !self.last_is_point() || self.template.fills {
                    self.out.push('.');
                }
            }
            _ if self.last.is_some_and(|last| self.next > last) && pattern != Pattern::Zero => {}
            _ if self.is_zero_before_point() => {
                if !self.template.fills {
                    self.out.push(' ');
                } else if self.last_is_point() {
                    self.out.push('0');
                }
            }
            Some(digit) => {
                self.out.push(char::from(*digit));
                self.has_begun = true;
            }
            // The end of the digits ends the text, whatever follows.
            None => self.out.push('\0'),
        }
    }
}

/// Returns the place of the last digit behind the point that is not zero, or of the point.
fn last_relevant(digits: &[u8]) -> Option<usize> {
    let point = digits.iter().position(|byte| *byte == b'.')?;
    let behind = digits[point + 1..].iter().rposition(|byte| *byte != b'0');
    Some(behind.map_or(point, |at| point + 1 + at))
}
