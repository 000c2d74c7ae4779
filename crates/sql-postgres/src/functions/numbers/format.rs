//! The template of to_char and to_number for numbers: its tokens, and what they say together.

use crate::error::{PgError, Result, state};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    Comma,
    Point,
    Zero,
    Nine,
    Blank,
    Code,
    LocalePoint,
    Exponent,
    Fill,
    Group,
    Currency,
    Minus,
    Plus,
    Bracket,
    Roman,
    RomanLower,
    SignAlways,
    Spell,
    Sign,
    Ordinal,
    OrdinalLower,
    Shift,
}

use Pattern::{
    Blank, Bracket, Code, Comma, Currency, Exponent, Fill, Group, LocalePoint, Minus, Nine, Ordinal, OrdinalLower,
    Plus, Point, Roman, RomanLower, Shift, Sign, SignAlways, Spell, Zero,
};

/// Patterns, in upper and in lower case; a longer one is before its beginning.
const PATTERNS: [(&str, &str, Pattern, Pattern); 20] = [
    (",", ",", Comma, Comma),
    (".", ".", Point, Point),
    ("0", "0", Zero, Zero),
    ("9", "9", Nine, Nine),
    ("B", "b", Blank, Blank),
    ("C", "c", Code, Code),
    ("D", "d", LocalePoint, LocalePoint),
    ("EEEE", "eeee", Exponent, Exponent),
    ("FM", "fm", Fill, Fill),
    ("G", "g", Group, Group),
    ("L", "l", Currency, Currency),
    ("MI", "mi", Minus, Minus),
    ("PL", "pl", Plus, Plus),
    ("PR", "pr", Bracket, Bracket),
    ("RN", "rn", Roman, RomanLower),
    ("SG", "sg", SignAlways, SignAlways),
    ("SP", "sp", Spell, Spell),
    ("S", "s", Sign, Sign),
    ("TH", "th", Ordinal, OrdinalLower),
    ("V", "v", Shift, Shift),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    Pattern(Pattern),
    Literal(char),
}

/// The place of a sign that the pattern S writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SignPlace {
    #[default]
    None,
    Before,
    Behind,
}

/// A template with the counts and flags of its patterns.
#[derive(Clone, Debug, Default)]
pub struct Template {
    pub tokens: Vec<Token>,
    /// Digits before the point and behind it, and those that V shifts.
    pub pre: usize,
    pub post: usize,
    pub multi: usize,
    /// The first position with a 0, from 1, and the last one; 0 for none.
    pub zero_start: usize,
    pub zero_end: usize,
    pub sign: SignPlace,
    /// The digits before the sign.
    pub sign_at: usize,
    pub has_point: bool,
    pub has_zero: bool,
    pub fills: bool,
    pub has_sign: bool,
    pub has_bracket: bool,
    pub has_minus: bool,
    pub has_plus: bool,
    pub is_roman: bool,
    pub shifts: bool,
    pub is_blank: bool,
    pub has_exponent: bool,
}

#[cold]
fn wrong(text: &str) -> PgError {
    PgError::new(state::SYNTAX_ERROR, text)
}

impl Template {
    pub fn of(text: &str) -> Result<Template> {
        let mut template = Template::default();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let found = PATTERNS.iter().find_map(|(upper, lower, pattern, lower_pattern)| {
                let upper = rest.strip_prefix(upper).map(|rest| (*pattern, rest));
                upper.or_else(|| rest.strip_prefix(lower).map(|rest| (*lower_pattern, rest)))
            });
            if let Some((pattern, behind)) = found {
                rest = behind;
                template.add(pattern)?;
                template.tokens.push(Token::Pattern(pattern));
            } else if first == '"' {
                rest = template.quoted(&rest[1..]);
            } else {
                if rest.starts_with("\\\"") {
                    rest = &rest[1..];
                }
                let letter = rest.chars().next().unwrap_or(first);
                template.tokens.push(Token::Literal(letter));
                rest = &rest[letter.len_utf8()..];
            }
        }
        Ok(template)
    }

    /// Takes literal text up to a quotation mark; a backslash takes the next character as it is.
    fn quoted<'t>(&mut self, text: &'t str) -> &'t str {
        let mut letters = text.char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' => return &text[at + 1..],
                '\\' => match letters.next() {
                    Some((_, next)) => self.tokens.push(Token::Literal(next)),
                    None => self.tokens.push(Token::Literal('\\')),
                },
                other => self.tokens.push(Token::Literal(other)),
            }
        }
        ""
    }

    fn add(&mut self, pattern: Pattern) -> Result<()> {
        if self.has_exponent && pattern != Exponent {
            return Err(wrong("\"EEEE\" must be the last pattern used"));
        }
        match pattern {
            Nine if self.has_bracket => return Err(wrong("\"9\" must be ahead of \"PR\"")),
            Zero if self.has_bracket => return Err(wrong("\"0\" must be ahead of \"PR\"")),
            Nine if self.shifts => self.multi += 1,
            Nine if self.has_point => self.post += 1,
            Nine => self.pre += 1,
            Zero => {
                if !self.has_zero && !self.has_point {
                    self.has_zero = true;
                    self.zero_start = self.pre + 1;
                }
                *(if self.has_point { &mut self.post } else { &mut self.pre }) += 1;
                self.zero_end = self.pre + self.post;
            }
            Blank => self.is_blank |= self.pre == 0 && self.post == 0 && !self.has_zero,
            LocalePoint | Point => {
                if self.has_point {
                    return Err(wrong("multiple decimal points"));
                }
                if self.shifts {
                    return Err(wrong("cannot use \"V\" and decimal point together"));
                }
                self.has_point = true;
            }
            Fill => self.fills = true,
            Sign => self.add_sign()?,
            Minus | Plus | SignAlways => {
                let name = match pattern {
                    Minus => "MI",
                    Plus => "PL",
                    _ => "SG",
                };
                if self.has_sign {
                    return Err(wrong(&format!("cannot use \"S\" and \"{name}\" together")));
                }
                self.has_minus |= pattern != Plus;
                self.has_plus |= pattern != Minus;
            }
            Bracket => {
                if self.has_sign || self.has_plus || self.has_minus {
                    return Err(wrong("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together"));
                }
                self.has_bracket = true;
            }
            Roman | RomanLower => self.is_roman = true,
            Shift => {
                if self.has_point {
                    return Err(wrong("cannot use \"V\" and decimal point together"));
                }
                self.shifts = true;
            }
            Exponent => self.add_exponent()?,
            Comma | Code | Group | Currency | Spell | Ordinal | OrdinalLower => {}
        }
        Ok(())
    }

    fn add_sign(&mut self) -> Result<()> {
        if self.has_sign {
            return Err(wrong("cannot use \"S\" twice"));
        }
        if self.has_plus || self.has_minus || self.has_bracket {
            return Err(wrong("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together"));
        }
        self.has_sign = true;
        if self.has_point {
            self.sign = SignPlace::Behind;
        } else {
            (self.sign, self.sign_at) = (SignPlace::Before, self.pre);
        }
        Ok(())
    }

    fn add_exponent(&mut self) -> Result<()> {
        if self.has_exponent {
            return Err(wrong("cannot use \"EEEE\" twice"));
        }
        let has_sign = self.has_sign || self.has_bracket || self.has_minus || self.has_plus;
        if has_sign || self.is_blank || self.fills || self.is_roman || self.shifts {
            let detail = "\"EEEE\" may only be used together with digit and decimal point patterns.";
            return Err(wrong("\"EEEE\" is incompatible with other formats").detail(detail));
        }
        self.has_exponent = true;
        Ok(())
    }
}
