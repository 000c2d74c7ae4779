//! Regular expressions: PostgreSQL's advanced ones, translated for the library `fancy-regex`, compiled once for each thread.
//!
//! The translation covers escapes, bracket expressions, bounds, constraints, embedded options and all flags but `b`. One thing is the library's: a match is the one that a backtracking search
//! finds first, where PostgreSQL prefers the longest. The two differ for alternatives of which one begins another (`a|ab`) and for a mix of greedy and non-greedy quantifiers.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use fancy_regex::Regex;

use crate::error::{PgError, Result, state};
use crate::functions::args::invalid;

/// Options of a regular expression, as flags and embedded options set them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RegexOptions {
    pub ignores_case: bool,
    /// `.` and negated brackets do not match a newline.
    pub newline_stops: bool,
    /// `^` and `$` match at newlines.
    pub newline_anchors: bool,
    /// White space and comments in the pattern are ignored.
    pub is_expanded: bool,
    /// The pattern is no expression but a text.
    pub is_literal: bool,
    /// `g`: all matches.
    pub is_global: bool,
}

impl RegexOptions {
    pub const PLAIN: RegexOptions = RegexOptions {
        ignores_case: false,
        newline_stops: false,
        newline_anchors: false,
        is_expanded: false,
        is_literal: false,
        is_global: false,
    };
    pub const IGNORE_CASE: RegexOptions = RegexOptions { ignores_case: true, ..RegexOptions::PLAIN };

    /// Reads flags of a function.
    pub fn of_flags(flags: &str) -> Result<RegexOptions> {
        let mut options = RegexOptions::PLAIN;
        let mut is_basic = false;
        for letter in flags.chars() {
            match letter {
                'g' => options.is_global = true,
                'b' => is_basic = true,
                _ => options.set(letter).ok_or_else(|| {
                    PgError::from(invalid(format!("invalid regular expression option: \"{letter}\"")))
                })?,
            }
        }
        if is_basic {
            let message = "basic regular expressions are not supported";
            return Err(PgError::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        Ok(options)
    }

    fn set(&mut self, letter: char) -> Option<()> {
        match letter {
            'c' => self.ignores_case = false,
            'i' => self.ignores_case = true,
            'm' | 'n' => (self.newline_stops, self.newline_anchors) = (true, true),
            'p' => (self.newline_stops, self.newline_anchors) = (true, false),
            's' => (self.newline_stops, self.newline_anchors) = (false, false),
            'w' => (self.newline_stops, self.newline_anchors) = (false, true),
            'x' => self.is_expanded = true,
            't' => self.is_expanded = false,
            'q' => self.is_literal = true,
            'e' => {}
            _ => return None,
        }
        Some(())
    }
}

/// Patterns that a thread keeps; when there are more, it begins anew.
const KEPT_MAX: usize = 64;

type Kept = HashMap<(Box<str>, RegexOptions), Rc<Regex>>;

thread_local! {
    static KEPT: RefCell<Kept> = RefCell::new(HashMap::new());
}

/// Returns an expression in the syntax of the library.
pub fn translated(pattern: &str, options: RegexOptions) -> Result<String> {
    Translation::of(pattern, options)
}

/// Returns the compiled expression.
pub fn compile(pattern: &str, options: RegexOptions) -> Result<Rc<Regex>> {
    let options = RegexOptions { is_global: false, ..options };
    KEPT.with_borrow_mut(|kept| {
        let key = (Box::from(pattern), options);
        if let Some(regex) = kept.get(&key) {
            return Ok(regex.clone());
        }
        let translated = Translation::of(pattern, options)?;
        let compiled = Regex::new(&translated).map_err(|error| match error {
            fancy_regex::Error::ParseError(..) => wrong("quantifier operand invalid"),
            _ => wrong("regular expression is too complex"),
        })?;
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        let compiled = Rc::new(compiled);
        kept.insert(key, compiled.clone());
        Ok(compiled)
    })
}

/// A search with back references or look-around may take very long: the library gives up, and so does the statement.
#[cold]
pub fn gave_up(_: fancy_regex::Error) -> PgError {
    PgError::new(state::INVALID_REGULAR_EXPRESSION, "regular expression failed: too many steps")
}

#[cold]
fn wrong(message: &str) -> PgError {
    PgError::new(state::INVALID_REGULAR_EXPRESSION, format!("invalid regular expression: {message}"))
}

/// Parentheses within each other.
const DEPTH_MAX: usize = 200;
/// `DUPMAX`
const BOUND_MAX: u32 = 255;

/// The translation of one pattern.
struct Translation<'p> {
    rest: &'p str,
    options: RegexOptions,
    out: String,
    /// Open parentheses; true for one that captures.
    open: Vec<bool>,
    captures: u32,
    /// A quantifier may follow here.
    has_atom: bool,
}

impl Translation<'_> {
    fn of(pattern: &str, mut options: RegexOptions) -> Result<String> {
        let mut rest = pattern;
        if !options.is_literal {
            if let Some(text) = rest.strip_prefix("***=") {
                (rest, options.is_literal) = (text, true);
            } else if let Some(text) = rest.strip_prefix("***:") {
                rest = text;
            } else if rest.starts_with("***") {
                return Err(wrong("invalid regexp (reg version 0.8)"));
            }
        }
        if !options.is_literal
            && let Some((letters, behind)) = rest.strip_prefix("(?").and_then(|text| text.split_once(')'))
            && letters.starts_with(|first: char| first.is_ascii_alphabetic())
        {
            for letter in letters.chars() {
                options.set(letter).ok_or_else(|| wrong("invalid embedded option"))?;
            }
            rest = behind;
        }
        let start = if options.ignores_case { "(?i)" } else { "" };
        let out = String::from(start);
        let mut translation = Translation { rest, options, out, open: Vec::new(), captures: 0, has_atom: false };
        if options.is_literal {
            rest.chars().for_each(|letter| translation.literal(letter));
            return Ok(translation.out);
        }
        while let Some(letter) = translation.next() {
            translation.step(letter)?;
        }
        if !translation.open.is_empty() {
            return Err(wrong("parentheses () not balanced"));
        }
        Ok(translation.out)
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.rest.chars().next()?;
        self.rest = &self.rest[letter.len_utf8()..];
        Some(letter)
    }

    fn takes(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn atom(&mut self, text: &str) {
        self.out.push_str(text);
        self.has_atom = true;
    }

    fn literal(&mut self, letter: char) {
        if letter.is_ascii_punctuation() {
            self.out.push('\\');
        }
        self.out.push(letter);
        self.has_atom = true;
    }

    fn constraint(&mut self, text: &str) {
        self.out.push_str(text);
        self.has_atom = false;
    }

    fn step(&mut self, letter: char) -> Result<()> {
        match letter {
            ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c' if self.options.is_expanded => {}
            '#' if self.options.is_expanded => {
                self.rest = self.rest.find('\n').map_or("", |end| &self.rest[end..]);
            }
            '\\' => self.escape()?,
            '[' => self.bracket()?,
            '.' => self.atom(if self.options.newline_stops { "[^\\n]" } else { "(?s:.)" }),
            '^' => self.constraint(if self.options.newline_anchors { "(?m:^)" } else { "\\A" }),
            '$' => self.constraint(if self.options.newline_anchors { "(?m:$)" } else { "\\z" }),
            '(' => self.begin_group()?,
            ')' => {
                self.open.pop().ok_or_else(|| wrong("parentheses () not balanced"))?;
                self.atom(")");
            }
            '|' => self.constraint("|"),
            '*' | '+' | '?' => {
                self.quantifier(&letter.to_string())?;
            }
            '{' if self.rest.starts_with(|next: char| next.is_ascii_digit()) => {
                let bound = self.bound()?;
                self.quantifier(&bound)?;
            }
            other => self.literal(other),
        }
        Ok(())
    }

    fn quantifier(&mut self, text: &str) -> Result<()> {
        if !self.has_atom {
            return Err(wrong("quantifier operand invalid"));
        }
        self.out.push_str(text);
        if self.takes("?") {
            self.out.push('?');
        }
        self.has_atom = false;
        Ok(())
    }

    /// Reads a bound behind its brace: `m}`, `m,}` or `m,n}`.
    fn bound(&mut self) -> Result<String> {
        let least = self.bound_number()?;
        let mut most = Some(least);
        if self.takes(",") {
            let has_most = self.rest.starts_with(|next: char| next.is_ascii_digit());
            most = if has_most { Some(self.bound_number()?) } else { None };
        }
        if !self.takes("}") {
            let message = if self.rest.is_empty() { "braces {} not balanced" } else { "invalid repetition count(s)" };
            return Err(wrong(message));
        }
        match most {
            Some(most) if least > most => Err(wrong("invalid repetition count(s)")),
            Some(most) if least == most => Ok(format!("{{{least}}}")),
            Some(most) => Ok(format!("{{{least},{most}}}")),
            None => Ok(format!("{{{least},}}")),
        }
    }

    fn bound_number(&mut self) -> Result<u32> {
        let length = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = self.rest[..length].parse::<u32>();
        self.rest = &self.rest[length..];
        match number {
            Ok(number) if number <= BOUND_MAX => Ok(number),
            _ => Err(wrong("invalid repetition count(s)")),
        }
    }

    fn begin_group(&mut self) -> Result<()> {
        if self.open.len() >= DEPTH_MAX {
            return Err(wrong("regular expression is too complex"));
        }
        let kinds = ["?:", "?=", "?!", "?<=", "?<!"];
        match kinds.into_iter().find(|kind| self.rest.starts_with(kind)) {
            Some(kind) => {
                self.takes(kind);
                self.open.push(false);
                self.constraint(&format!("({kind}"));
            }
            None if self.rest.starts_with('?') => return Err(wrong("quantifier operand invalid")),
            None => {
                self.captures += 1;
                self.open.push(true);
                self.constraint("(");
            }
        }
        Ok(())
    }

    fn escape(&mut self) -> Result<()> {
        let invalid = || wrong("invalid escape \\ sequence");
        let letter = self.next().ok_or_else(invalid)?;
        match letter {
            'd' => self.atom("[0-9]"),
            'D' => self.atom(if self.options.newline_stops { "[^0-9\\n]" } else { "[^0-9]" }),
            's' | 'w' => self.atom(if letter == 's' { "\\s" } else { "\\w" }),
            'S' => self.atom("\\S"),
            'W' => self.atom(if self.options.newline_stops { "[^\\w\\n]" } else { "\\W" }),
            'A' => self.constraint("\\A"),
            'Z' => self.constraint("\\z"),
            'm' => self.constraint("\\b(?=\\w)"),
            'M' => self.constraint("\\b(?<=\\w)"),
            'y' => self.constraint("\\b"),
            'Y' => self.constraint("\\B"),
            '1'..='9' if self.is_back_reference(letter) => {
                let mut number = letter.to_string();
                while let Some(digit) = self.rest.chars().next().filter(char::is_ascii_digit) {
                    let longer = format!("{number}{digit}");
                    if longer.parse::<u32>().is_ok_and(|number| number <= self.captures) {
                        number = longer;
                        self.rest = &self.rest[1..];
                    } else {
                        break;
                    }
                }
                self.atom(&format!("(?:\\{number})"));
            }
            '1'..='9' if !self.rest.starts_with(|next: char| next.is_ascii_digit()) => {
                return Err(wrong("invalid backreference number"));
            }
            _ => {
                let literal = self.character(letter)?;
                self.literal(literal);
            }
        }
        Ok(())
    }

    /// A digit alone always is a reference; several are one if there are so many groups.
    fn is_back_reference(&self, first: char) -> bool {
        first.to_digit(10).is_some_and(|number| number <= self.captures)
    }

    /// Returns the character of an escape that stands for one.
    fn character(&mut self, letter: char) -> Result<char> {
        let invalid = || wrong("invalid escape \\ sequence");
        Ok(match letter {
            'a' => '\x07',
            'b' => '\x08',
            'B' => '\\',
            'c' => {
                let control = self.next().ok_or_else(invalid)?;
                char::from((u32::from(control) & 0x1f) as u8)
            }
            'e' => '\x1b',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            'u' => self.coded(4, 16)?,
            'U' => self.coded(8, 16)?,
            'x' => {
                let length = self.rest.bytes().take_while(u8::is_ascii_hexdigit).count();
                self.coded(length.max(1), 16)?
            }
            '0'..='7' => {
                let more = self.rest.bytes().take(2).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
                let digits = format!("{letter}{}", &self.rest[..more]);
                self.rest = &self.rest[more..];
                u32::from_str_radix(&digits, 8).ok().and_then(char::from_u32).ok_or_else(invalid)?
            }
            letter if letter.is_ascii_alphanumeric() => return Err(invalid()),
            other => other,
        })
    }

    fn coded(&mut self, length: usize, radix: u32) -> Result<char> {
        let invalid = || wrong("invalid escape \\ sequence");
        let digits = self.rest.get(..length).ok_or_else(invalid)?;
        if !digits.chars().all(|digit| digit.is_digit(radix)) {
            return Err(invalid());
        }
        let code = u32::from_str_radix(digits, radix).map_err(|_| invalid())?;
        self.rest = &self.rest[length..];
        char::from_u32(code).ok_or_else(invalid)
    }

    /// Translates a bracket expression, behind its opening bracket.
    fn bracket(&mut self) -> Result<()> {
        for (word, constraint) in [("[:<:]]", "\\b(?=\\w)"), ("[:>:]]", "\\b(?<=\\w)")] {
            if self.takes(word) {
                self.constraint(constraint);
                return Ok(());
            }
        }
        let is_negated = self.takes("^");
        let mut set = String::from(if is_negated { "[^" } else { "[" });
        if is_negated && self.options.newline_stops {
            set.push_str("\\n");
        }
        let mut is_first = true;
        loop {
            if !is_first && self.takes("]") {
                break;
            }
            is_first = false;
            let Some(start) = self.bracket_item(&mut set)? else { continue };
            let is_range = self.rest.starts_with('-') && !self.rest.starts_with("-]");
            if !is_range {
                push_escaped(start, &mut set);
                continue;
            }
            self.takes("-");
            let Some(end) = self.bracket_item(&mut set)? else { return Err(wrong("invalid character range")) };
            if start > end {
                return Err(wrong("invalid character range"));
            }
            push_escaped(start, &mut set);
            set.push('-');
            push_escaped(end, &mut set);
        }
        set.push(']');
        self.atom(&set);
        Ok(())
    }

    /// Returns the next character of a bracket expression. `None`: a class has been added to the set.
    fn bracket_item(&mut self, set: &mut String) -> Result<Option<char>> {
        let unbalanced = || wrong("brackets [] not balanced");
        if self.takes("[:") {
            let (name, rest) = self.rest.split_once(":]").ok_or_else(unbalanced)?;
            self.rest = rest;
            set.push_str(class(name).ok_or_else(|| wrong("invalid character class"))?);
            return Ok(None);
        }
        for (start, end) in [("[.", ".]"), ("[=", "=]")] {
            if self.takes(start) {
                let (name, rest) = self.rest.split_once(end).ok_or_else(unbalanced)?;
                self.rest = rest;
                let mut letters = name.chars();
                return match (letters.next(), letters.next()) {
                    (Some(letter), None) => Ok(Some(letter)),
                    _ => Err(wrong("invalid collating element")),
                };
            }
        }
        match self.next().ok_or_else(unbalanced)? {
            '\\' => {
                let letter = self.next().ok_or_else(|| wrong("invalid escape \\ sequence"))?;
                let class = match letter {
                    'd' => "0-9",
                    's' => "\\s",
                    'w' => "\\w",
                    'D' => "\\D",
                    'S' => "\\S",
                    'W' => "\\W",
                    _ => return self.character(letter).map(Some),
                };
                set.push_str(class);
                Ok(None)
            }
            other => Ok(Some(other)),
        }
    }
}

fn push_escaped(letter: char, set: &mut String) {
    if letter.is_ascii_punctuation() {
        set.push('\\');
    }
    set.push(letter);
}

fn class(name: &str) -> Option<&'static str> {
    Some(match name {
        "alpha" => "\\p{Alphabetic}",
        "upper" => "\\p{Uppercase}",
        "lower" => "\\p{Lowercase}",
        "digit" => "0-9",
        "xdigit" => "0-9A-Fa-f",
        "alnum" => "\\p{Alphabetic}\\p{Nd}",
        "word" => "\\w",
        "space" => "\\s",
        "blank" => " \\t",
        "cntrl" => "\\p{Cc}",
        "punct" => "!-/:-@\\[-`{-~\\p{P}\\p{S}",
        "print" => "\\P{C}",
        "graph" => "[\\P{C}--\\s]",
        "ascii" => "\\x00-\\x7f",
        _ => return None,
    })
}

/// Returns the text with which every match of an expression begins: of one that begins with `^` and characters that stand for themselves.
pub fn fixed_prefix(pattern: &str) -> Option<(String, bool)> {
    let rest = pattern.strip_prefix('^')?;
    // An alternative may begin with something else.
    if pattern.contains('|') {
        return None;
    }
    let special = |letter: char| {
        letter.is_ascii_punctuation()
            && !matches!(
                letter,
                '_' | '-'
                    | '/'
                    | ','
                    | ' '
                    | ':'
                    | '@'
                    | '%'
                    | '"'
                    | '\''
                    | '<'
                    | '>'
                    | '='
                    | '&'
                    | '~'
                    | ';'
                    | '!'
                    | '`'
                    | '#'
            )
    };
    let end = rest.find(special).unwrap_or(rest.len());
    let (mut prefix, behind) = rest.split_at(end);
    // A quantifier belongs to the last character.
    if behind.starts_with(['*', '+', '?', '{']) {
        prefix = &prefix[..prefix.char_indices().next_back()?.0];
    }
    (!prefix.is_empty()).then(|| (prefix.to_owned(), behind == "$"))
}
