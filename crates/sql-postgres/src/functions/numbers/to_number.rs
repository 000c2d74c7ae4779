//! to_number: the digits that a template finds in a text.

use datum::Result;
use datum::decimal::Decimal;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use super::format::{Pattern, SignPlace, Template, Token};
use crate::error::{PgError, state};
use crate::functions::args::text;
use crate::types::numeric::numeric_in;
use crate::types::registry::numeric_typmod;
use crate::value::Value;

pub fn to_number(_: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let (input, format) = (text(values, 0)?, text(values, 1)?);
    if format.is_empty() {
        return Ok(Value::Null);
    }
    let template = Template::of(format)?;
    let refused = match () {
        () if template.has_exponent => Some("EEEE"),
        () if template.is_roman => Some("RN"),
        () => None,
    };
    if let Some(pattern) = refused {
        let message = format!("\"{pattern}\" not supported for input");
        return Err(PgError::new(state::FEATURE_NOT_SUPPORTED, message).into());
    }
    let (pre, multi, shifts) = (template.pre, template.multi, template.shifts);
    let mut reader = NumberReader {
        template,
        input: input.as_bytes(),
        at: 0,
        sign: b' ',
        digits: String::new(),
        pre: 0,
        post: 0,
        has_point: false,
    };
    reader.read();
    let scale = reader.post;
    let number = reader.number();
    let number = numeric_in(&number, numeric_typmod((pre + multi + scale) as i32, scale as i32))?;
    if shifts {
        // The power of ten has 16 digits more than it needs.
        let power = Decimal::new(10i128.pow(16), multi as u16 + 16);
        return Ok(Value::Decimal(number.times_exactly(&power)));
    }
    Ok(Value::Decimal(number))
}

/// Reads the input by the tokens of a template.
struct NumberReader<'r> {
    template: Template,
    input: &'r [u8],
    at: usize,
    /// A blank until a sign is found.
    sign: u8,
    digits: String,
    pre: usize,
    post: usize,
    has_point: bool,
}

impl NumberReader<'_> {
    fn number(self) -> String {
        let digits = self.digits.strip_suffix('.').unwrap_or(&self.digits);
        format!("{}{digits}", char::from(self.sign))
    }

    fn here(&self) -> Option<u8> {
        self.input.get(self.at).copied()
    }

    fn read(&mut self) {
        let tokens = std::mem::take(&mut self.template.tokens);
        for token in tokens {
            let Some(here) = self.here() else { return };
            match token {
                // A character of the input is skipped for one of the template, whatever it is.
                Token::Literal(_) => self.skip_character(),
                Token::Pattern(pattern) => match pattern {
                    Pattern::Nine | Pattern::Zero | Pattern::Point | Pattern::LocalePoint => {
                        self.digit(pattern);
                        self.at += 1;
                    }
                    Pattern::Comma | Pattern::Group if self.template.fills || here != b',' => {}
                    Pattern::Comma | Pattern::Group => self.at += 1,
                    Pattern::Currency => self.skip_others(1),
                    Pattern::Ordinal | Pattern::OrdinalLower => self.skip_others(2),
                    Pattern::Minus => self.take_sign(b"-"),
                    Pattern::Plus => self.take_sign(b"+"),
                    Pattern::SignAlways => self.take_sign(b"-+"),
                    _ => {}
                },
            }
        }
    }

    fn take_sign(&mut self, signs: &[u8]) {
        match self.here() {
            Some(here) if signs.contains(&here) => {
                self.sign = here;
                self.at += 1;
            }
            _ => self.skip_others(1),
        }
    }

    fn skip_character(&mut self) {
        self.at += 1;
        while self.here().is_some_and(|byte| byte & 0xc0 == 0x80) {
            self.at += 1;
        }
    }

    /// Skips characters that are no part of a number.
    fn skip_others(&mut self, count: usize) {
        for _ in 0..count {
            match self.here() {
                Some(byte) if !b"0123456789.,+-".contains(&byte) => self.skip_character(),
                _ => return,
            }
        }
    }

    fn digit(&mut self, pattern: Pattern) {
        if self.here() == Some(b' ') {
            self.at += 1;
        }
        let Some(mut here) = self.here() else { return };
        if self.sign == b' ' && matches!(pattern, Pattern::Nine | Pattern::Zero) && self.pre + self.post == 0 {
            let is_own = self.template.has_sign && self.template.sign == SignPlace::Before;
            let opens = !is_own && self.template.has_bracket && here == b'<';
            // Without a sign of its own before the digits, a plain one is taken.
            if here == b'-' || here == b'+' || opens {
                self.sign = if here == b'+' { b'+' } else { b'-' };
                self.at += 1;
            }
            let Some(next) = self.here() else { return };
            here = next;
        }
        let mut is_read = false;
        if here.is_ascii_digit() {
            if self.has_point && self.post == self.template.post {
                return;
            }
            self.digits.push(char::from(here));
            *(if self.has_point { &mut self.post } else { &mut self.pre }) += 1;
            is_read = true;
        } else if self.template.has_point && !self.has_point && here == b'.' {
            self.digits.push('.');
            self.has_point = true;
            is_read = true;
        }
        self.sign_behind(is_read, here);
    }

    fn sign_behind(&mut self, is_read: bool, here: u8) {
        if self.sign != b' ' || self.pre + self.post == 0 {
            return;
        }
        let next = self.input.get(self.at + 1).copied();
        let template = &self.template;
        if template.has_sign && is_read && next.is_some_and(|next| !next.is_ascii_digit()) {
            if let Some(sign @ (b'-' | b'+')) = next {
                self.sign = sign;
                self.at += 1;
            }
        } else if !is_read
            && !template.has_sign
            && (template.has_plus || template.has_minus)
            && matches!(here, b'-' | b'+')
        {
            self.sign = here;
        }
    }
}
