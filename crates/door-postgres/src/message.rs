//! Messages of the client: cutting them off the input, and reading their bodies.
//!
//! A message is a letter, the length of what follows it, and a body. The letter and the length are judged before the body has arrived, so that memory is taken
//! for known messages of bounded length only (DP-4).

use sql_postgres::error::{PgError, Result};
use sql_postgres::wire::{Formats, Parameter};

use crate::errors;
use crate::wire::{Reader, decode};

/// The letter and the length.
pub const HEADER: usize = 5;
/// The longest body of messages that hold names and numbers only, as in PostgreSQL.
pub const SHORT_MAX: usize = 10_000;
/// The longest message of PostgreSQL. A longer one is no request, but noise.
pub const LENGTH_MAX: usize = (1 << 30) - 2;

/// The front of the input.
#[derive(Debug, PartialEq, Eq)]
pub enum Cut<'a> {
    /// The message needs this many bytes in all, as far as can be seen.
    More(usize),
    Message(Message<'a>),
    /// The message is longer than allowed; it occupies this many bytes of the stream.
    TooLong(usize),
    /// The next bytes have no meaning, and neither have those behind them.
    Bad(PgError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    pub kind: u8,
    pub body: &'a [u8],
    /// Bytes of the input that the message occupies.
    pub size: usize,
}

/// Cuts the message at the front; a body may have `body_max` bytes.
#[inline]
pub fn cut(input: &[u8], body_max: usize) -> Cut<'_> {
    let Some((&kind, rest)) = input.split_first() else { return Cut::More(HEADER) };
    let is_long = match kind {
        b'Q' | b'P' | b'B' | b'F' | b'd' | b'p' => true,
        b'D' | b'E' | b'C' | b'H' | b'S' | b'X' | b'c' | b'f' => false,
        _ => return Cut::Bad(errors::protocol(format!("invalid frontend message type {kind}"))),
    };
    let Some(length) = rest.first_chunk() else { return Cut::More(HEADER) };
    let length = u32::from_be_bytes(*length) as usize;
    let short_max = if is_long { LENGTH_MAX } else { SHORT_MAX };
    if !(4..=short_max).contains(&length) {
        return Cut::Bad(errors::protocol("invalid message length"));
    }
    let size = 1 + length;
    if size - HEADER > body_max {
        return Cut::TooLong(size);
    }
    match input.get(HEADER..size) {
        None => Cut::More(size),
        Some(body) => Cut::Message(Message { kind, body, size }),
    }
}

/// The object of Describe and Close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    Statement(&'a str),
    Portal(&'a str),
}

/// A message after the login.
#[derive(Debug)]
pub enum Request<'a> {
    Query(&'a str),
    Parse { name: &'a str, text: &'a str, types: Vec<u32> },
    Bind(Bind<'a>),
    Describe(Target<'a>),
    Execute { portal: &'a str, max_rows: u64 },
    Close(Target<'a>),
    Flush,
    Sync,
    CopyData(&'a [u8]),
    CopyDone,
    CopyFail(&'a str),
    FunctionCall,
    Terminate,
}

#[derive(Debug)]
pub struct Bind<'a> {
    pub portal: &'a str,
    pub statement: &'a str,
    pub parameters: Vec<Parameter<'a>>,
    pub result_formats: Formats<'a>,
}

/// Reads the body of a message.
pub fn read<'a>(message: &Message<'a>) -> Result<Request<'a>> {
    let mut reader = Reader(message.body);
    let request = match message.kind {
        b'Q' => Request::Query(reader.text()?),
        b'P' => read_parse(&mut reader)?,
        b'B' => Request::Bind(read_bind(&mut reader)?),
        b'D' => Request::Describe(read_target(&mut reader, "DESCRIBE")?),
        b'E' => {
            let (portal, max_rows) = (reader.text()?, reader.i32()?);
            // Zero and less mean all rows.
            Request::Execute { portal, max_rows: max_rows.max(0) as u64 }
        }
        b'C' => Request::Close(read_target(&mut reader, "CLOSE")?),
        b'H' => Request::Flush,
        b'S' => Request::Sync,
        b'd' => return Ok(Request::CopyData(message.body)),
        b'c' => Request::CopyDone,
        b'f' => Request::CopyFail(reader.text()?),
        b'F' => return Ok(Request::FunctionCall),
        b'X' => return Ok(Request::Terminate),
        kind => return Err(errors::protocol(format!("invalid frontend message type {kind}"))),
    };
    reader.end()?;
    Ok(request)
}

fn read_parse<'a>(reader: &mut Reader<'a>) -> Result<Request<'a>> {
    let (name, text) = (reader.text()?, reader.text()?);
    let count = reader.u16()?;
    let types = (0..count).map(|_| reader.u32()).collect::<Result<_>>()?;
    Ok(Request::Parse { name, text, types })
}

fn read_bind<'a>(reader: &mut Reader<'a>) -> Result<Bind<'a>> {
    let (portal, statement) = (reader.text()?, reader.text()?);
    let formats = read_formats(reader)?;
    let count = usize::from(reader.u16()?);
    if formats.len() > 1 && formats.len() != count {
        return Err(errors::protocol(format!(
            "bind message has {} parameter formats but {count} parameters",
            formats.len()
        )));
    }
    // A value takes at least the bytes of its length.
    let mut parameters = Vec::with_capacity(count.min(reader.0.len() / 4));
    for nth in 0..count {
        let format = formats.of(nth);
        let value = match reader.i32()? {
            -1 => None,
            length => Some(reader.bytes(usize::try_from(length).map_err(|_| errors::insufficient_data())?)?),
        };
        parameters.push(Parameter { format, value });
    }
    Ok(Bind { portal, statement, parameters, result_formats: read_formats(reader)? })
}

fn read_formats<'a>(reader: &mut Reader<'a>) -> Result<Formats<'a>> {
    let count = reader.u16()?;
    Ok(Formats(reader.bytes(usize::from(count) * 2)?))
}

fn read_target<'a>(reader: &mut Reader<'a>, message: &str) -> Result<Target<'a>> {
    match reader.byte()? {
        b'S' => Ok(Target::Statement(decode(reader.c_string()?)?)),
        b'P' => Ok(Target::Portal(decode(reader.c_string()?)?)),
        other => Err(errors::protocol(format!("invalid {message} message subtype {other}"))),
    }
}

#[cfg(test)]
mod tests;
