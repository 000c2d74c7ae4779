//! The library `cjson` 2.1.0: values to JSON and back.
//!
//! Its settings (`encode_max_depth` and the others) belong to one run of a script; the next begins with the defaults.

use std::cell::Cell;
use std::rc::Rc;

use mlua::{LightUserData, Lua, LuaString, Result, Table, Value};

use crate::arguments::Arguments;
use crate::library::add;
use crate::number_text;
use crate::raise::{bad_argument, raise_text, type_name};

/// The options that `cjson.encode_...` and `cjson.decode_...` set.
#[derive(Clone, Copy)]
struct JsonOptions {
    sparse_convert: bool,
    sparse_ratio: i64,
    sparse_safe: i64,
    encode_depth_max: i64,
    decode_depth_max: i64,
    /// NaN and infinity: refused, written as they are, or written as null.
    encode_invalid: Invalid,
    decode_invalid: bool,
    keep_buffer: bool,
    precision: i64,
}

#[derive(Clone, Copy, PartialEq)]
enum Invalid {
    Refused,
    Kept,
    Null,
}

const DEFAULT: JsonOptions = JsonOptions {
    sparse_convert: false,
    sparse_ratio: 2,
    sparse_safe: 10,
    encode_depth_max: 1000,
    decode_depth_max: 1000,
    encode_invalid: Invalid::Refused,
    decode_invalid: true,
    keep_buffer: true,
    precision: 14,
};

/// The settings of the library, which a run can change.
#[derive(Clone)]
pub struct Settings(Rc<Cell<JsonOptions>>);

impl Default for Settings {
    fn default() -> Settings {
        Settings(Rc::new(Cell::new(DEFAULT)))
    }
}

impl Settings {
    /// Sets the defaults again.
    pub fn reset(&self) {
        self.0.set(DEFAULT);
    }

    fn change(&self, f: impl FnOnce(&mut JsonOptions)) {
        let mut options = self.0.get();
        f(&mut options);
        self.0.set(options);
    }
}

pub fn library(lua: &Lua, settings: &Settings) -> Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("_NAME", "cjson")?;
    table.raw_set("_VERSION", "2.1.0")?;
    table.raw_set("null", null())?;
    let own = settings.clone();
    add(lua, &table, "encode", move |args| {
        args.check(args.len() == 1, 1, "expected 1 argument")?;
        let mut writer = Writer { lua: args.lua, options: own.0.get(), out: Vec::new(), depth: 0 };
        writer.value(&args.value(1))?;
        args.lua.create_string(writer.out)
    })?;
    let own = settings.clone();
    add(lua, &table, "decode", move |args| {
        args.check(args.len() == 1, 1, "expected 1 argument")?;
        decode(args.lua, own.0.get(), &args.string(1)?)
    })?;
    add_settings(lua, &table, settings)?;
    // A new library has settings of its own, with the defaults.
    add(lua, &table, "new", |args| library(args.lua, &Settings::default()))?;
    Ok(table)
}

/// Returns the value of JSON's null.
pub fn null() -> Value {
    Value::LightUserData(LightUserData(std::ptr::null_mut()))
}

fn integer_option(args: &Arguments<'_>, number: usize, from: i64, to: i64) -> Result<Option<i64>> {
    if args.is_none_or_nil(number) {
        return Ok(None);
    }
    let value = args.integer(number)?;
    args.check((from..=to).contains(&value), number, &format!("expected integer between {from} and {to}"))?;
    Ok(Some(value))
}

fn switch(args: &Arguments<'_>, number: usize) -> Result<Option<bool>> {
    match args.value(number) {
        Value::Nil => Ok(None),
        Value::Boolean(on) => Ok(Some(on)),
        Value::String(word) if word == "on" => Ok(Some(true)),
        Value::String(word) if word == "off" => Ok(Some(false)),
        other => Err(invalid_option(args, number, &other)),
    }
}

fn invalid_option(args: &Arguments<'_>, number: usize, value: &Value) -> mlua::Error {
    match value {
        Value::String(word) => bad_argument(args.lua, number, &format!("invalid option '{}'", word.to_string_lossy())),
        other => crate::raise::wrong_type(args.lua, number, "string", Some(other)),
    }
}

fn add_settings(lua: &Lua, table: &Table, settings: &Settings) -> Result<()> {
    const MAX: i64 = i32::MAX as i64;
    let own = settings.clone();
    add(lua, table, "encode_sparse_array", move |args| {
        args.check(args.len() <= 3, 4, "found too many arguments")?;
        if let Some(on) = switch(args, 1)? {
            own.change(|options| options.sparse_convert = on);
        }
        if let Some(ratio) = integer_option(args, 2, 0, MAX)? {
            own.change(|options| options.sparse_ratio = ratio);
        }
        if let Some(safe) = integer_option(args, 3, 0, MAX)? {
            own.change(|options| options.sparse_safe = safe);
        }
        let options = own.0.get();
        Ok((options.sparse_convert, options.sparse_ratio, options.sparse_safe))
    })?;
    type Place = fn(&mut JsonOptions) -> &mut i64;
    let numbers: [(&str, i64, Place); 3] = [
        ("encode_max_depth", MAX, |options| &mut options.encode_depth_max),
        ("decode_max_depth", MAX, |options| &mut options.decode_depth_max),
        ("encode_number_precision", 14, |options| &mut options.precision),
    ];
    for (name, max, place) in numbers {
        let own = settings.clone();
        add(lua, table, name, move |args| {
            args.check(args.len() <= 1, 2, "found too many arguments")?;
            if let Some(value) = integer_option(args, 1, 1, max)? {
                own.change(|options| *place(options) = value);
            }
            Ok(*place(&mut own.0.get()))
        })?;
    }
    let own = settings.clone();
    add(lua, table, "encode_keep_buffer", move |args| {
        args.check(args.len() <= 1, 2, "found too many arguments")?;
        if let Some(on) = switch(args, 1)? {
            own.change(|options| options.keep_buffer = on);
        }
        Ok(own.0.get().keep_buffer)
    })?;
    let own = settings.clone();
    add(lua, table, "encode_invalid_numbers", move |args| {
        args.check(args.len() <= 1, 2, "found too many arguments")?;
        let is_null = matches!(args.get(1), Some(Value::String(word)) if word == "null");
        if is_null {
            own.change(|options| options.encode_invalid = Invalid::Null);
        } else if let Some(on) = switch(args, 1)? {
            own.change(|options| options.encode_invalid = if on { Invalid::Kept } else { Invalid::Refused });
        }
        match own.0.get().encode_invalid {
            Invalid::Null => args.lua.create_string("null").map(Value::String),
            other => Ok(Value::Boolean(other == Invalid::Kept)),
        }
    })?;
    let own = settings.clone();
    add(lua, table, "decode_invalid_numbers", move |args| {
        args.check(args.len() <= 1, 2, "found too many arguments")?;
        if let Some(on) = switch(args, 1)? {
            own.change(|options| options.decode_invalid = on);
        }
        Ok(own.0.get().decode_invalid)
    })
}

/// Writes a value as JSON.
struct Writer<'l> {
    lua: &'l Lua,
    options: JsonOptions,
    out: Vec<u8>,
    depth: i64,
}

impl Writer<'_> {
    fn refuse(&self, value: &Value, why: &str) -> mlua::Error {
        raise_text(self.lua, &format!("Cannot serialise {}: {why}", type_name(value)))
    }

    fn value(&mut self, value: &Value) -> Result<()> {
        match value {
            Value::Nil => self.out.extend_from_slice(b"null"),
            Value::Boolean(on) => self.out.extend_from_slice(if *on { b"true" } else { b"false" }),
            Value::Integer(number) => self.number(*number as f64, value)?,
            Value::Number(number) => self.number(*number, value)?,
            Value::String(text) => self.string(text),
            Value::Table(table) => self.table(table, value)?,
            Value::LightUserData(pointer) if pointer.0.is_null() => self.out.extend_from_slice(b"null"),
            other => return Err(self.refuse(other, "type not supported")),
        }
        Ok(())
    }

    fn number(&mut self, number: f64, value: &Value) -> Result<()> {
        if !number.is_finite() {
            match self.options.encode_invalid {
                Invalid::Refused => return Err(self.refuse(value, "must not be NaN or Inf")),
                Invalid::Null => {
                    self.out.extend_from_slice(b"null");
                    return Ok(());
                }
                Invalid::Kept if number.is_nan() => {
                    self.out.extend_from_slice(b"nan");
                    return Ok(());
                }
                Invalid::Kept => {}
            }
        }
        self.out.extend_from_slice(number_text::general(number, self.options.precision as usize).as_bytes());
        Ok(())
    }

    fn string(&mut self, text: &LuaString) {
        self.out.push(b'"');
        for byte in text.as_bytes().iter() {
            match byte {
                b'"' => self.out.extend_from_slice(b"\\\""),
                b'\\' => self.out.extend_from_slice(b"\\\\"),
                b'/' => self.out.extend_from_slice(b"\\/"),
                8 => self.out.extend_from_slice(b"\\b"),
                b'\t' => self.out.extend_from_slice(b"\\t"),
                b'\n' => self.out.extend_from_slice(b"\\n"),
                12 => self.out.extend_from_slice(b"\\f"),
                b'\r' => self.out.extend_from_slice(b"\\r"),
                0..32 | 127 => self.out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
                other => self.out.push(*other),
            }
        }
        self.out.push(b'"');
    }

    /// Returns the length of an array, or None if the table is to be an object.
    fn array_length(&self, table: &Table, value: &Value) -> Result<Option<i64>> {
        let (mut max, mut items) = (0f64, 0i64);
        for pair in table.pairs::<Value, Value>() {
            let key = match pair?.0 {
                Value::Integer(key) => key as f64,
                Value::Number(key) => key,
                _ => return Ok(None),
            };
            if key.floor() != key || key < 1.0 {
                return Ok(None);
            }
            (max, items) = (max.max(key), items + 1);
        }
        let max = max as i64;
        let JsonOptions { sparse_ratio, sparse_safe, sparse_convert, .. } = self.options;
        if sparse_ratio > 0 && max > items.saturating_mul(sparse_ratio) && max > sparse_safe {
            if !sparse_convert {
                return Err(self.refuse(value, "excessively sparse array"));
            }
            return Ok(None);
        }
        Ok((max > 0).then_some(max))
    }

    fn table(&mut self, table: &Table, value: &Value) -> Result<()> {
        self.depth += 1;
        // Rust's own stack has room for far more levels than this, but not for any number that a script may set.
        if self.depth > self.options.encode_depth_max.min(DEPTH_MAX) {
            return Err(raise_text(self.lua, &format!("Cannot serialise, excessive nesting ({})", self.depth)));
        }
        match self.array_length(table, value)? {
            Some(length) => {
                self.out.push(b'[');
                for at in 1..=length {
                    if at > 1 {
                        self.out.push(b',');
                    }
                    self.value(&table.raw_get::<Value>(at)?)?;
                }
                self.out.push(b']');
            }
            None => self.object(table)?,
        }
        self.depth -= 1;
        Ok(())
    }

    fn object(&mut self, table: &Table) -> Result<()> {
        self.out.push(b'{');
        let mut is_first = true;
        for pair in table.pairs::<Value, Value>() {
            let (key, value) = pair?;
            if !std::mem::take(&mut is_first) {
                self.out.push(b',');
            }
            match &key {
                Value::String(text) => {
                    self.string(text);
                    self.out.push(b':');
                }
                Value::Integer(_) | Value::Number(_) => {
                    self.out.push(b'"');
                    self.value(&key)?;
                    self.out.extend_from_slice(b"\":");
                }
                other => return Err(self.refuse(other, "table key must be a number or string")),
            }
            self.value(&value)?;
        }
        self.out.push(b'}');
        Ok(())
    }
}

/// Nesting that is served whatever a script sets, for the sake of the native stack.
const DEPTH_MAX: i64 = 4000;

#[derive(Debug, PartialEq)]
enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    Text(Vec<u8>),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Bad(&'static str),
}

impl Token {
    fn name(&self) -> &'static str {
        match self {
            Token::ObjectBegin => "T_OBJ_BEGIN",
            Token::ObjectEnd => "T_OBJ_END",
            Token::ArrayBegin => "T_ARR_BEGIN",
            Token::ArrayEnd => "T_ARR_END",
            Token::Text(_) => "T_STRING",
            Token::Number(_) => "T_NUMBER",
            Token::Boolean(_) => "T_BOOLEAN",
            Token::Null => "T_NULL",
            Token::Colon => "T_COLON",
            Token::Comma => "T_COMMA",
            Token::End => "T_END",
            Token::Bad(what) => what,
        }
    }
}

/// Reads JSON. Behind the text there is a NUL, as in C.
struct Reader<'l, 't> {
    lua: &'l Lua,
    options: JsonOptions,
    text: &'t [u8],
    at: usize,
    /// Start of the last token.
    start: usize,
    depth: i64,
}

fn decode(lua: &Lua, options: JsonOptions, text: &LuaString) -> Result<Value> {
    let text = text.as_bytes();
    if let [first, second, ..] = &*text
        && (*first == 0 || *second == 0)
    {
        return Err(raise_text(lua, "JSON parser does not support UTF-16 or UTF-32"));
    }
    let mut reader = Reader { lua, options, text: &text, at: 0, start: 0, depth: 0 };
    let first = reader.next();
    let value = reader.value(first)?;
    match reader.next() {
        Token::End => Ok(value),
        other => Err(reader.expected("the end", &other)),
    }
}

impl Reader<'_, '_> {
    fn byte(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn begins(&self, word: &str) -> bool {
        self.text[self.at.min(self.text.len())..].starts_with(word.as_bytes())
    }

    fn expected(&self, what: &str, found: &Token) -> mlua::Error {
        let text = format!("Expected {what} but found {} at character {}", found.name(), self.start + 1);
        raise_text(self.lua, &text)
    }

    fn next(&mut self) -> Token {
        while matches!(self.byte(0), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
        self.start = self.at;
        let single = match self.byte(0) {
            b'{' => Token::ObjectBegin,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayBegin,
            b']' => Token::ArrayEnd,
            b',' => Token::Comma,
            b':' => Token::Colon,
            0 => return Token::End,
            b'"' => return self.string(),
            b'-' | b'0'..=b'9' if !self.options.decode_invalid && self.is_invalid_number() => {
                return Token::Bad("invalid number");
            }
            b'-' | b'0'..=b'9' => return self.number(),
            b'f' | b'i' | b'I' | b'n' | b'N' | b't' | b'+' => return self.word(),
            _ => return Token::Bad("invalid token"),
        };
        self.at += 1;
        single
    }

    fn word(&mut self) -> Token {
        for (word, token) in [("true", Token::Boolean(true)), ("false", Token::Boolean(false)), ("null", Token::Null)] {
            if self.begins(word) {
                self.at += word.len();
                return token;
            }
        }
        if self.options.decode_invalid && self.is_invalid_number() {
            return self.number();
        }
        Token::Bad("invalid token")
    }

    fn number(&mut self) -> Token {
        match number_text::prefix(&self.text[self.at..]) {
            Some((value, length)) => {
                self.at += length;
                Token::Number(value)
            }
            None => Token::Bad("invalid number"),
        }
    }

    /// Returns whether a number is one that JSON does not know.
    fn is_invalid_number(&self) -> bool {
        let mut ahead = 0;
        match self.byte(0) {
            b'+' => return true,
            b'-' => ahead = 1,
            _ => {}
        }
        let first = self.byte(ahead);
        if first == b'0' {
            let second = self.byte(ahead + 1);
            return second | 0x20 == b'x' || second.is_ascii_digit();
        }
        if first <= b'9' {
            return false;
        }
        let word = [first, self.byte(ahead + 1), self.byte(ahead + 2)];
        word.eq_ignore_ascii_case(b"inf") || word.eq_ignore_ascii_case(b"nan")
    }

    fn string(&mut self) -> Token {
        self.at += 1;
        let mut text = Vec::new();
        loop {
            match self.byte(0) {
                b'"' => break,
                0 => return self.bad_here("unexpected end of string"),
                b'\\' => {
                    let plain = match self.byte(1) {
                        byte @ (b'"' | b'\\' | b'/') => byte,
                        b'b' => 8,
                        b't' => b'\t',
                        b'n' => b'\n',
                        b'f' => 12,
                        b'r' => b'\r',
                        b'u' => {
                            if !self.unicode(&mut text) {
                                return self.bad_here("invalid unicode escape code");
                            }
                            continue;
                        }
                        _ => return self.bad_here("invalid escape code"),
                    };
                    text.push(plain);
                    self.at += 2;
                }
                byte => {
                    text.push(byte);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        Token::Text(text)
    }

    fn bad_here(&mut self, what: &'static str) -> Token {
        self.start = self.at;
        Token::Bad(what)
    }

    fn hex(&self, ahead: usize) -> Option<u32> {
        (0..4).try_fold(0, |code, at| Some(code << 4 | (self.byte(ahead + at) as char).to_digit(16)?))
    }

    /// Appends the character of an escape, which may be a pair. Returns false if it is none.
    fn unicode(&mut self, text: &mut Vec<u8>) -> bool {
        let Some(mut code) = self.hex(2) else { return false };
        let mut length = 6;
        if code & 0xf800 == 0xd800 {
            if code & 0x400 != 0 || self.byte(6) != b'\\' || self.byte(7) != b'u' {
                return false;
            }
            let Some(low) = self.hex(8).filter(|low| low & 0xfc00 == 0xdc00) else { return false };
            code = ((code & 0x3ff) << 10 | low & 0x3ff) + 0x10000;
            length = 12;
        }
        let Some(letter) = char::from_u32(code) else { return false };
        text.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        self.at += length;
        true
    }

    fn descend(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > self.options.decode_depth_max.min(DEPTH_MAX) {
            let text = format!("Found too many nested data structures ({}) at character {}", self.depth, self.at);
            return Err(raise_text(self.lua, &text));
        }
        Ok(())
    }

    fn value(&mut self, token: Token) -> Result<Value> {
        match token {
            Token::Text(text) => self.lua.create_string(text).map(Value::String),
            Token::Number(number) => Ok(Value::Number(number)),
            Token::Boolean(on) => Ok(Value::Boolean(on)),
            Token::Null => Ok(null()),
            Token::ObjectBegin => self.object(),
            Token::ArrayBegin => self.array(),
            other => Err(self.expected("value", &other)),
        }
    }

    fn object(&mut self) -> Result<Value> {
        self.descend()?;
        let table = self.lua.create_table()?;
        let mut token = self.next();
        if token != Token::ObjectEnd {
            loop {
                let Token::Text(key) = token else { return Err(self.expected("object key string", &token)) };
                match self.next() {
                    Token::Colon => {}
                    other => return Err(self.expected("colon", &other)),
                }
                let first = self.next();
                let value = self.value(first)?;
                table.raw_set(self.lua.create_string(key)?, value)?;
                match self.next() {
                    Token::ObjectEnd => break,
                    Token::Comma => token = self.next(),
                    other => return Err(self.expected("comma or object end", &other)),
                }
            }
        }
        self.depth -= 1;
        Ok(Value::Table(table))
    }

    fn array(&mut self) -> Result<Value> {
        self.descend()?;
        let table = self.lua.create_table()?;
        let mut token = self.next();
        if token != Token::ArrayEnd {
            for at in 1.. {
                let value = self.value(token)?;
                table.raw_set(at, value)?;
                match self.next() {
                    Token::ArrayEnd => break,
                    Token::Comma => token = self.next(),
                    other => return Err(self.expected("comma or array end", &other)),
                }
            }
        }
        self.depth -= 1;
        Ok(Value::Table(table))
    }
}
