//! Replies of commands as Lua values, and Lua values as replies.

use mlua::{Lua, Result, Table, Value};

use crate::raise::error_table;

/// A reply of a command, read in RESP2 or RESP3. The server has written it, so it is whole.
struct ReplyReader<'l, 'r> {
    lua: &'l Lua,
    rest: &'r [u8],
}

/// Returns a reply as a Lua value.
pub fn to_lua(lua: &Lua, reply: &[u8]) -> Result<Value> {
    ReplyReader { lua, rest: reply }.value()
}

fn integer(text: &[u8]) -> i64 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

impl<'r> ReplyReader<'_, 'r> {
    /// Takes a line without its end.
    fn line(&mut self) -> &'r [u8] {
        let end = self.rest.windows(2).position(|pair| pair == b"\r\n").unwrap_or(self.rest.len());
        let line = &self.rest[..end];
        self.rest = self.rest.get(end + 2..).unwrap_or_default();
        line
    }

    /// Takes so many bytes and the line end behind them.
    fn bulk(&mut self, length: usize) -> &'r [u8] {
        let bytes = &self.rest[..length.min(self.rest.len())];
        self.rest = self.rest.get(length + 2..).unwrap_or_default();
        bytes
    }

    fn single(&self, field: &str, value: impl mlua::IntoLua) -> Result<Value> {
        let table = self.lua.create_table()?;
        table.raw_set(field, value)?;
        Ok(Value::Table(table))
    }

    fn value(&mut self) -> Result<Value> {
        let line = self.line();
        let Some((kind, text)) = line.split_first() else { return Ok(Value::Nil) };
        match kind {
            b'+' => self.single("ok", self.lua.create_string(text)?),
            b'-' => {
                let table = error_table(self.lua, line)?;
                table.raw_set("ignore_error_stats_update", true)?;
                Ok(Value::Table(table))
            }
            b':' => Ok(Value::Number(integer(text) as f64)),
            b'$' | b'*' if text.first() == Some(&b'-') => Ok(Value::Boolean(false)),
            b'$' => self.lua.create_string(self.bulk(integer(text) as usize)).map(Value::String),
            b'*' | b'>' => self.array(integer(text)).map(Value::Table),
            b'%' => self.map(integer(text)),
            b'~' => self.set(integer(text)),
            b'#' => Ok(Value::Boolean(text == b"t")),
            b',' => self.single("double", crate::number_text::parse(text).unwrap_or(f64::NAN)),
            b'(' => self.single("big_number", self.lua.create_string(text)?),
            b'=' => {
                let whole = self.bulk(integer(text) as usize);
                let inner = self.lua.create_table()?;
                inner.raw_set("string", self.lua.create_string(whole.get(4..).unwrap_or_default())?)?;
                inner.raw_set("format", self.lua.create_string(whole.get(..3).unwrap_or_default())?)?;
                self.single("verbatim_string", inner)
            }
            _ => Ok(Value::Nil),
        }
    }

    fn array(&mut self, count: i64) -> Result<Table> {
        let table = self.lua.create_table_with_capacity(count.clamp(0, 1 << 20) as usize, 0)?;
        for at in 1..=count {
            let value = self.value()?;
            if !value.is_nil() {
                table.raw_set(at, value)?;
            }
        }
        Ok(table)
    }

    fn map(&mut self, count: i64) -> Result<Value> {
        let inner = self.lua.create_table()?;
        for _ in 0..count {
            let key = self.value()?;
            inner.raw_set(key, self.value()?)?;
        }
        self.single("map", inner)
    }

    fn set(&mut self, count: i64) -> Result<Value> {
        let inner = self.lua.create_table()?;
        for _ in 0..count {
            inner.raw_set(self.value()?, true)?;
        }
        self.single("set", inner)
    }
}

/// Levels of tables in a reply. Redis' limit is the room on Lua's stack.
const LEVELS_MAX: usize = 1900;

/// Writes a Lua value as a reply.
pub struct ReplyWriter<'o> {
    pub out: &'o mut Vec<u8>,
    /// The version of the protocol of the client.
    pub resp3: bool,
    /// The version that the script has asked for.
    pub script_resp3: bool,
    /// The longest reply. A table may contain itself more than once, or have elements without end.
    pub bytes_max: usize,
    /// Tables that were written, each as often as it occurs.
    pub tables: usize,
}

/// Bytes of an empty table. As many as a reply has must have fitted into the state, unless some of them occur more than once.
const TABLE_BYTES: usize = 64;

impl ReplyWriter<'_> {
    pub fn write(&mut self, value: &Value) -> Result<()> {
        self.value(value, 0)
    }

    /// Writes an error, whose text has its code. Line ends become blanks.
    pub fn error(&mut self, text: &[u8]) {
        self.line(b'-', text);
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.out.push(kind);
        self.out.extend(text.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }));
        self.out.extend_from_slice(b"\r\n");
    }

    fn header(&mut self, kind: u8, count: usize) {
        self.out.push(kind);
        self.out.extend_from_slice(count.to_string().as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }

    fn bulk(&mut self, bytes: &[u8]) {
        self.header(b'$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    fn null(&mut self) {
        self.out.extend_from_slice(if self.resp3 { b"_\r\n" } else { b"$-1\r\n" });
    }

    fn integer(&mut self, number: i64) {
        self.out.push(b':');
        self.out.extend_from_slice(number.to_string().as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }

    fn boolean(&mut self, on: bool) {
        match (self.script_resp3, self.resp3) {
            (true, true) => self.out.extend_from_slice(if on { b"#t\r\n" } else { b"#f\r\n" }),
            (true, false) => self.integer(on.into()),
            (false, _) if on => self.integer(1),
            (false, _) => self.null(),
        }
    }

    fn value(&mut self, value: &Value, level: usize) -> Result<()> {
        if level > LEVELS_MAX {
            self.error(b"ERR reached lua stack limit");
            return Ok(());
        }
        if self.out.len() + self.tables * TABLE_BYTES > self.bytes_max {
            return Err(mlua::Error::MemoryError(String::new()));
        }
        match value {
            Value::String(text) => self.bulk(&text.as_bytes()),
            Value::Boolean(on) => self.boolean(*on),
            Value::Integer(number) => self.integer(*number),
            // What no integer can hold becomes the smallest one, as processors convert it.
            Value::Number(number) if *number >= -(2f64.powi(63)) && *number < 2f64.powi(63) => {
                self.integer(*number as i64);
            }
            Value::Number(_) => self.integer(i64::MIN),
            Value::Table(table) => self.table(table, level)?,
            _ => self.null(),
        }
        Ok(())
    }

    fn table(&mut self, table: &Table, level: usize) -> Result<()> {
        self.tables += 1;
        // As in Redis, metatables are not asked.
        let field = |table: &Table, name: &str| table.raw_get::<Value>(name);
        if let Value::String(text) = field(table, "err")? {
            let text = text.as_bytes();
            self.error(&text);
        } else if let Value::String(text) = field(table, "ok")? {
            self.line(b'+', c_text(&text.as_bytes()));
        } else if let Some(number) = number_of(&field(table, "double")?) {
            self.double(number);
        } else if let Value::String(text) = field(table, "big_number")? {
            let text = text.as_bytes();
            if self.resp3 {
                self.line(b'(', &text);
            } else {
                let shown: Vec<u8> =
                    text.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }).collect();
                self.bulk(&shown);
            }
        } else if self.verbatim(&field(table, "verbatim_string")?)? {
        } else if let Value::Table(map) = field(table, "map")? {
            self.map(&map, level)?;
        } else if let Value::Table(set) = field(table, "set")? {
            let members: Vec<Value> =
                set.pairs::<Value, Value>().map(|pair| pair.map(|(key, _)| key)).collect::<Result<_>>()?;
            self.header(if self.resp3 { b'~' } else { b'*' }, members.len());
            members.iter().try_for_each(|member| self.value(member, level + 1))?;
        } else {
            self.array(table, level)?;
        }
        Ok(())
    }

    fn double(&mut self, number: f64) {
        let text = if number.is_infinite() {
            if number > 0.0 { "inf" } else { "-inf" }.to_owned()
        } else {
            crate::number_text::general(number, 17)
        };
        if self.resp3 { self.line(b',', text.as_bytes()) } else { self.bulk(text.as_bytes()) }
    }

    /// Writes a text with its format. Returns false if the value is none.
    fn verbatim(&mut self, value: &Value) -> Result<bool> {
        let Value::Table(inner) = value else { return Ok(false) };
        let (Value::String(format), Value::String(text)) =
            (inner.raw_get::<Value>("format")?, inner.raw_get::<Value>("string")?)
        else {
            return Ok(false);
        };
        let (format, text) = (format.as_bytes(), text.as_bytes());
        if self.resp3 {
            let mut label = [b' '; 3];
            let letters = c_text(&format);
            let count = letters.len().min(3);
            label[..count].copy_from_slice(&letters[..count]);
            self.header(b'=', text.len() + 4);
            self.out.extend_from_slice(&label);
            self.out.push(b':');
            self.out.extend_from_slice(&text);
            self.out.extend_from_slice(b"\r\n");
        } else {
            self.bulk(&text);
        }
        Ok(true)
    }

    fn map(&mut self, map: &Table, level: usize) -> Result<()> {
        let pairs: Vec<(Value, Value)> = map.pairs::<Value, Value>().collect::<Result<_>>()?;
        if self.resp3 {
            self.header(b'%', pairs.len())
        } else {
            self.header(b'*', pairs.len() * 2)
        }
        for (key, value) in &pairs {
            self.value(key, level + 1)?;
            self.value(value, level + 1)?;
        }
        Ok(())
    }

    fn array(&mut self, table: &Table, level: usize) -> Result<()> {
        let start = self.out.len();
        let mut count = 0;
        loop {
            let value: Value = table.raw_get(count + 1)?;
            if value.is_nil() {
                break;
            }
            self.value(&value, level + 1)?;
            count += 1;
        }
        // The number of elements is known now; its header goes before them.
        let header = format!("*{count}\r\n");
        self.out.splice(start..start, header.bytes());
        Ok(())
    }
}

/// Returns a text up to its first NUL, where C's functions end it.
fn c_text(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn number_of(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Number(number) => Some(*number),
        _ => None,
    }
}
