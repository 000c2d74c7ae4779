//! `string.find`, `match`, `gmatch`, `gsub` and `rep`: Lua's own, in Rust, so that a script can be ended in the middle of one.
//!
//! Lua checks for interrupts between its instructions. One call of the original with a pattern of some quantifiers may take hours, and an empty text can be repeated 10^15 times. Here a match counts its steps, and asks the host now and then
//! whether to go on (RL-3). Recursion is bounded as well, by the depth that later versions of Lua allow.

use std::cell::Cell;
use std::rc::Rc;

use mlua::{Function, Lua, LuaString, MultiValue, Result, Table, Value};

use crate::arguments::Arguments;
use crate::frame::Frame;
use crate::library::add;
use crate::number_text;
use crate::raise::{raise_text, thrown, type_name, wrong_type};

const CAPTURES_MAX: usize = 32;
/// Nested steps of one match.
const DEPTH_MAX: usize = 200;
/// Steps between two questions to the host.
const STEPS: u32 = 1 << 16;
const ESCAPE: u8 = b'%';
const SPECIALS: &[u8] = b"^$*+?.([%-";

#[derive(Clone, Copy, PartialEq)]
enum Length {
    Open,
    Position,
    Bytes(usize),
}

/// A match under way. Positions behind the end of the pattern read as NUL, as in C.
struct Matcher<'m> {
    lua: &'m Lua,
    frame: &'m Frame,
    text: &'m [u8],
    pattern: &'m [u8],
    captures: Vec<(usize, Length)>,
    steps: u32,
    depth: usize,
}

impl<'m> Matcher<'m> {
    fn new(lua: &'m Lua, frame: &'m Frame, text: &'m [u8], pattern: &'m [u8]) -> Matcher<'m> {
        Matcher { lua, frame, text, pattern, captures: Vec::new(), steps: 0, depth: 0 }
    }

    fn fail<T>(&self, text: &str) -> Result<T> {
        Err(raise_text(self.lua, text))
    }

    fn step(&mut self) -> Result<()> {
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS) { self.frame.pause(self.lua) } else { Ok(()) }
    }

    fn at(&self, p: usize) -> u8 {
        self.pattern.get(p).copied().unwrap_or(0)
    }

    /// Returns the end of the single item at `p`.
    fn class_end(&self, p: usize) -> Result<usize> {
        let first = self.at(p);
        let mut p = p + 1;
        match first {
            ESCAPE => {
                if p >= self.pattern.len() {
                    return self.fail("malformed pattern (ends with '%')");
                }
                Ok(p + 1)
            }
            b'[' => {
                if self.at(p) == b'^' {
                    p += 1;
                }
                loop {
                    if p >= self.pattern.len() {
                        return self.fail("malformed pattern (missing ']')");
                    }
                    let byte = self.at(p);
                    p += 1;
                    if byte == ESCAPE && p < self.pattern.len() {
                        p += 1;
                    }
                    if self.at(p) == b']' && p < self.pattern.len() {
                        return Ok(p + 1);
                    }
                }
            }
            _ => Ok(p),
        }
    }

    /// Returns whether a byte is in the set from `p`, which is a `[`, to `end`, which is its `]`.
    fn in_set(&self, byte: u8, p: usize, end: usize) -> bool {
        let (mut p, mut sense) = (p, true);
        if self.at(p + 1) == b'^' {
            (p, sense) = (p + 1, false);
        }
        p += 1;
        while p < end {
            if self.at(p) == ESCAPE {
                p += 1;
                if in_class(byte, self.at(p)) {
                    return sense;
                }
            } else if self.at(p + 1) == b'-' && p + 2 < end {
                if (self.at(p)..=self.at(p + 2)).contains(&byte) {
                    return sense;
                }
                p += 2;
            } else if self.at(p) == byte {
                return sense;
            }
            p += 1;
        }
        !sense
    }

    fn is_single(&self, byte: u8, p: usize, end: usize) -> bool {
        match self.at(p) {
            b'.' => true,
            ESCAPE => in_class(byte, self.at(p + 1)),
            b'[' => self.in_set(byte, p, end - 1),
            other => other == byte,
        }
    }

    /// Matches the pattern from `p` at `s`. Returns the end of the match.
    fn run(&mut self, s: usize, p: usize) -> Result<Option<usize>> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return self.fail("pattern too complex");
        }
        let found = self.run_here(s, p);
        self.depth -= 1;
        found
    }

    fn run_here(&mut self, mut s: usize, mut p: usize) -> Result<Option<usize>> {
        loop {
            self.step()?;
            if p >= self.pattern.len() {
                return Ok(Some(s));
            }
            match self.at(p) {
                b'(' if self.at(p + 1) == b')' => return self.open(s, p + 2, Length::Position),
                b'(' => return self.open(s, p + 1, Length::Open),
                b')' => return self.close(s, p + 1),
                ESCAPE if self.at(p + 1) == b'b' => match self.balance(s, p + 2)? {
                    Some(end) => {
                        (s, p) = (end, p + 4);
                        continue;
                    }
                    None => return Ok(None),
                },
                ESCAPE if self.at(p + 1) == b'f' => {
                    p += 2;
                    if self.at(p) != b'[' {
                        return self.fail("missing '[' after '%f' in pattern");
                    }
                    let end = self.class_end(p)?;
                    let before = if s == 0 { 0 } else { self.text[s - 1] };
                    let here = self.text.get(s).copied().unwrap_or(0);
                    if self.in_set(before, p, end - 1) || !self.in_set(here, p, end - 1) {
                        return Ok(None);
                    }
                    p = end;
                    continue;
                }
                ESCAPE if self.at(p + 1).is_ascii_digit() => match self.again(s, self.at(p + 1))? {
                    Some(end) => {
                        (s, p) = (end, p + 2);
                        continue;
                    }
                    None => return Ok(None),
                },
                b'$' if p + 1 == self.pattern.len() => return Ok((s == self.text.len()).then_some(s)),
                _ => {}
            }
            let end = self.class_end(p)?;
            let is_match = s < self.text.len() && self.is_single(self.text[s], p, end);
            match self.at(end) {
                b'?' => {
                    if is_match && let Some(found) = self.run(s + 1, end + 1)? {
                        return Ok(Some(found));
                    }
                    p = end + 1;
                }
                b'*' => return self.longest(s, p, end),
                b'+' => return if is_match { self.longest(s + 1, p, end) } else { Ok(None) },
                b'-' => return self.shortest(s, p, end),
                _ if is_match => (s, p) = (s + 1, end),
                _ => return Ok(None),
            }
        }
    }

    fn balance(&mut self, s: usize, p: usize) -> Result<Option<usize>> {
        if p + 1 >= self.pattern.len() {
            return self.fail("unbalanced pattern");
        }
        let (begin, end) = (self.at(p), self.at(p + 1));
        if self.text.get(s) != Some(&begin) {
            return Ok(None);
        }
        let mut open = 1;
        for at in s + 1..self.text.len() {
            self.step()?;
            if self.text[at] == end {
                open -= 1;
                if open == 0 {
                    return Ok(Some(at + 1));
                }
            } else if self.text[at] == begin {
                open += 1;
            }
        }
        Ok(None)
    }

    fn longest(&mut self, s: usize, p: usize, end: usize) -> Result<Option<usize>> {
        let mut count = 0;
        while s + count < self.text.len() && self.is_single(self.text[s + count], p, end) {
            count += 1;
            self.step()?;
        }
        loop {
            if let Some(found) = self.run(s + count, end + 1)? {
                return Ok(Some(found));
            }
            if count == 0 {
                return Ok(None);
            }
            count -= 1;
        }
    }

    fn shortest(&mut self, mut s: usize, p: usize, end: usize) -> Result<Option<usize>> {
        loop {
            if let Some(found) = self.run(s, end + 1)? {
                return Ok(Some(found));
            }
            if s >= self.text.len() || !self.is_single(self.text[s], p, end) {
                return Ok(None);
            }
            s += 1;
        }
    }

    fn open(&mut self, s: usize, p: usize, length: Length) -> Result<Option<usize>> {
        if self.captures.len() >= CAPTURES_MAX {
            return self.fail("too many captures");
        }
        self.captures.push((s, length));
        let found = self.run(s, p)?;
        if found.is_none() {
            self.captures.pop();
        }
        Ok(found)
    }

    fn close(&mut self, s: usize, p: usize) -> Result<Option<usize>> {
        let Some(at) = self.captures.iter().rposition(|(_, length)| *length == Length::Open) else {
            return self.fail("invalid pattern capture");
        };
        self.captures[at].1 = Length::Bytes(s - self.captures[at].0);
        let found = self.run(s, p)?;
        if found.is_none() {
            self.captures[at].1 = Length::Open;
        }
        Ok(found)
    }

    /// Matches the text of an earlier capture again.
    fn again(&mut self, s: usize, digit: u8) -> Result<Option<usize>> {
        let at = usize::from(digit).wrapping_sub(usize::from(b'1'));
        let length = match self.captures.get(at) {
            Some((_, Length::Bytes(length))) => *length,
            Some((_, Length::Position)) => return Ok(None),
            _ => return self.fail("invalid capture index"),
        };
        let from = self.captures[at].0;
        let is_same = self.text.len() - s >= length && self.text[from..from + length] == self.text[s..s + length];
        Ok(is_same.then_some(s + length))
    }

    /// Returns a capture, or the whole match if the pattern has none.
    fn capture(&self, at: usize, whole: (usize, usize)) -> Result<Value> {
        match self.captures.get(at) {
            None if at == 0 => self.lua.create_string(&self.text[whole.0..whole.1]).map(Value::String),
            None => self.fail("invalid capture index"),
            Some((from, Length::Bytes(length))) => {
                self.lua.create_string(&self.text[*from..from + length]).map(Value::String)
            }
            Some((from, Length::Position)) => Ok(Value::Integer(*from as i64 + 1)),
            Some((_, Length::Open)) => self.fail("unfinished capture"),
        }
    }

    fn all_captures(&self, whole: Option<(usize, usize)>) -> Result<Vec<Value>> {
        let count = if self.captures.is_empty() { usize::from(whole.is_some()) } else { self.captures.len() };
        (0..count).map(|at| self.capture(at, whole.unwrap_or_default())).collect()
    }
}

fn in_class(byte: u8, class: u8) -> bool {
    let is = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => matches!(byte, b' ' | b'\t'..=b'\r'),
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    is != class.is_ascii_uppercase()
}

/// Serves `find` and `match`.
fn find(args: &Arguments<'_>, frame: &Frame, is_find: bool) -> Result<MultiValue> {
    let (text, pattern) = (args.string(1)?, args.string(2)?);
    let (text, mut pattern) = (&*text.as_bytes(), &*pattern.as_bytes());
    let start = args.integer_or(3, 1)?;
    let start = if start < 0 { start + text.len() as i64 + 1 } else { start };
    let mut from = (start - 1).clamp(0, text.len() as i64) as usize;
    let is_plain = matches!(args.get(4), Some(value) if !matches!(value, Value::Nil | Value::Boolean(false)));
    if is_find && (is_plain || !pattern.iter().any(|byte| SPECIALS.contains(byte))) {
        let found = plain(args.lua, frame, &text[from..], pattern)?;
        return Ok(MultiValue::from_vec(match found {
            Some(at) => {
                let first = (from + at) as i64 + 1;
                vec![Value::Integer(first), Value::Integer(first - 1 + pattern.len() as i64)]
            }
            None => vec![Value::Nil],
        }));
    }
    let is_anchored = pattern.first() == Some(&b'^');
    if is_anchored {
        pattern = &pattern[1..];
    }
    let mut matcher = Matcher::new(args.lua, frame, text, pattern);
    loop {
        matcher.captures.clear();
        if let Some(end) = matcher.run(from, 0)? {
            if !is_find {
                return Ok(MultiValue::from_vec(matcher.all_captures(Some((from, end)))?));
            }
            let mut values = vec![Value::Integer(from as i64 + 1), Value::Integer(end as i64)];
            values.extend(matcher.all_captures(None)?);
            return Ok(MultiValue::from_vec(values));
        }
        from += 1;
        if from > text.len() || is_anchored {
            return Ok(MultiValue::from_vec(vec![Value::Nil]));
        }
    }
}

/// Returns where a text is in another.
fn plain(lua: &Lua, frame: &Frame, text: &[u8], wanted: &[u8]) -> Result<Option<usize>> {
    let Some(first) = wanted.first() else { return Ok(Some(0)) };
    let (mut at, mut steps) = (0, 0u32);
    while text.len() - at >= wanted.len() {
        let Some(next) = text[at..=text.len() - wanted.len()].iter().position(|byte| byte == first) else { break };
        at += next;
        if text[at..].starts_with(wanted) {
            return Ok(Some(at));
        }
        at += 1;
        // A comparison may read as many bytes as the wanted text has.
        steps += 1 + wanted.len() as u32 / 64;
        if steps > STEPS {
            frame.pause(lua)?;
            steps = 0;
        }
    }
    Ok(None)
}

fn gmatch(args: &Arguments<'_>, frame: Rc<Frame>) -> Result<Function> {
    let (text, pattern) = (args.string(1)?, args.string(2)?);
    let from = Cell::new(0);
    args.lua.create_function(move |lua, _: MultiValue| {
        let (text, pattern) = (&*text.as_bytes(), &*pattern.as_bytes());
        let mut matcher = Matcher::new(lua, &frame, text, pattern);
        for start in from.get()..=text.len() {
            matcher.captures.clear();
            if let Some(end) = matcher.run(start, 0)? {
                from.set(if end == start { end + 1 } else { end });
                return Ok(MultiValue::from_vec(matcher.all_captures(Some((start, end)))?));
            }
        }
        from.set(text.len() + 1);
        Ok(MultiValue::new())
    })
}

/// The value that `gsub` puts in the place of a match.
enum Replacement {
    Text(LuaString),
    Table(Table),
    Function(Function),
}

fn gsub(args: &Arguments<'_>, frame: &Frame, call: &Function) -> Result<(LuaString, i64)> {
    let (text, pattern) = (args.string(1)?, args.string(2)?);
    let replacement = match args.get(3) {
        Some(Value::Table(table)) => Replacement::Table(table.clone()),
        Some(Value::Function(function)) => Replacement::Function(function.clone()),
        Some(Value::String(_) | Value::Integer(_) | Value::Number(_)) => Replacement::Text(args.string(3)?),
        other => return Err(wrong_type(args.lua, 3, "string/function/table", other)),
    };
    let (text, mut pattern) = (&*text.as_bytes(), &*pattern.as_bytes());
    let most = args.integer_or(4, text.len() as i64 + 1)?;
    let is_anchored = pattern.first() == Some(&b'^');
    if is_anchored {
        pattern = &pattern[1..];
    }
    let mut matcher = Matcher::new(args.lua, frame, text, pattern);
    let (mut out, mut at, mut count) = (Vec::new(), 0, 0);
    while count < most {
        matcher.captures.clear();
        let found = matcher.run(at, 0)?;
        if let Some(end) = found {
            count += 1;
            replace(&matcher, &replacement, call, (at, end), &mut out)?;
            frame.check_size(args.lua, out.len())?;
        }
        match found {
            Some(end) if end > at => at = end,
            _ if at < text.len() => {
                out.push(text[at]);
                at += 1;
            }
            _ => break,
        }
        if is_anchored {
            break;
        }
    }
    out.extend_from_slice(&text[at.min(text.len())..]);
    Ok((args.lua.create_string(out)?, count))
}

fn replace(
    matcher: &Matcher<'_>,
    replacement: &Replacement,
    call: &Function,
    whole: (usize, usize),
    out: &mut Vec<u8>,
) -> Result<()> {
    let lua = matcher.lua;
    let value = match replacement {
        Replacement::Text(text) => return expand(matcher, &text.as_bytes(), whole, out),
        Replacement::Table(table) => table.get(matcher.capture(0, whole)?)?,
        Replacement::Function(function) => {
            let mut values = matcher.all_captures(Some(whole))?;
            values.insert(0, Value::Function(function.clone()));
            // A call from Rust would lose an error that is a table, so Lua's own `pcall` makes it.
            let results: MultiValue = call.call(MultiValue::from_vec(values))?;
            let mut results = results.into_iter();
            match (results.next(), results.next()) {
                (Some(Value::Boolean(true)), value) => value.unwrap_or(Value::Nil),
                (_, error) => return Err(crate::raise::raise(thrown(lua, error.unwrap_or(Value::Nil)))),
            }
        }
    };
    match value {
        Value::Nil | Value::Boolean(false) => out.extend_from_slice(&matcher.text[whole.0..whole.1]),
        Value::String(text) => out.extend_from_slice(&text.as_bytes()),
        Value::Integer(number) => out.extend_from_slice(number_text::lua(number as f64).as_bytes()),
        Value::Number(number) => out.extend_from_slice(number_text::lua(number).as_bytes()),
        other => return matcher.fail(&format!("invalid replacement value (a {})", type_name(&other))),
    }
    Ok(())
}

fn expand(matcher: &Matcher<'_>, text: &[u8], whole: (usize, usize), out: &mut Vec<u8>) -> Result<()> {
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        if *byte != ESCAPE {
            out.push(*byte);
            continue;
        }
        match bytes.next().copied().unwrap_or(0) {
            b'0' => out.extend_from_slice(&matcher.text[whole.0..whole.1]),
            digit @ b'1'..=b'9' => match matcher.capture(usize::from(digit - b'1'), whole)? {
                Value::String(text) => out.extend_from_slice(&text.as_bytes()),
                Value::Integer(position) => out.extend_from_slice(position.to_string().as_bytes()),
                _ => {}
            },
            other => out.push(other),
        }
    }
    Ok(())
}

fn rep(args: &Arguments<'_>, frame: &Frame) -> Result<LuaString> {
    let text = args.string(1)?;
    let count = args.integer(2)?.max(0) as usize;
    let text = text.as_bytes();
    if text.is_empty() || count == 0 {
        return args.lua.create_string("");
    }
    let bytes = text.len().saturating_mul(count);
    frame.check_size(args.lua, bytes)?;
    args.lua.create_string(text.repeat(count))
}

/// Replaces functions of the library `string`.
pub fn replace_in(lua: &Lua, table: &Table, frame: &Rc<Frame>, pcall: &Function) -> Result<()> {
    let own = frame.clone();
    add(lua, table, "find", move |args| find(args, &own, true))?;
    let own = frame.clone();
    add(lua, table, "match", move |args| find(args, &own, false))?;
    for name in ["gmatch", "gfind"] {
        let own = frame.clone();
        add(lua, table, name, move |args| gmatch(args, own.clone()))?;
    }
    let (own, pcall) = (frame.clone(), pcall.clone());
    add(lua, table, "gsub", move |args| gsub(args, &own, &pcall))?;
    let own = frame.clone();
    add(lua, table, "rep", move |args| rep(args, &own))
}
