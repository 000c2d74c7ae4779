//! Cuts a RESP2 byte stream, arriving in arbitrary pieces, into replies without keeping the values.
//!
//! A value is only counted down, never stored, so a connection needs no input buffer: all connections of a thread read
//! into one. Only a cut line (rare) or the length of a value's rest survives between two pieces.

/// A server's reply, reduced to the facts that a load generator needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reply<'a> {
    Status(&'a [u8]),
    Error(&'a [u8]),
    Integer,
    Null,
    Value {
        bytes: usize,
    },
    /// An array with all its elements, empty or not, or the null array.
    Array,
}

/// The stream is not the RESP2 that this generator requests. No byte after this point can be trusted.
#[derive(PartialEq, Eq, Debug)]
pub struct Malformed(pub String);

#[derive(Default)]
pub struct Parser {
    /// A line of which only the beginning has arrived.
    cut: Vec<u8>,
    value: Option<Value>,
    array: OpenArray,
}

/// An array of which elements are outstanding, those of arrays in it included; 0 outside of arrays.
#[derive(Default)]
struct OpenArray {
    left: u64,
}

impl OpenArray {
    /// Hands on a reply that stands alone, or the array that the reply completes.
    fn close(&mut self, reply: Reply<'_>, each: &mut impl FnMut(Reply<'_>)) {
        match self.left {
            0 => each(reply),
            1 => {
                self.left = 0;
                each(Reply::Array);
            }
            _ => self.left -= 1,
        }
    }

    fn open(&mut self, elements: u64, each: &mut impl FnMut(Reply<'_>)) {
        match elements {
            0 => self.close(Reply::Array, each),
            _ => self.left = self.left.saturating_sub(1) + elements,
        }
    }
}

struct Value {
    bytes: usize,
    /// Bytes still to come, the closing CRLF among them.
    left: usize,
}

const LINE_BYTES_MAX: usize = 64 * 1024;

impl Parser {
    /// Hands every reply that `piece` completes to `each`, in order.
    pub fn feed(&mut self, mut piece: &[u8], mut each: impl FnMut(Reply<'_>)) -> Result<(), Malformed> {
        while !piece.is_empty() {
            if let Some(value) = &mut self.value {
                let taken = value.left.min(piece.len());
                value.left -= taken;
                let last = piece[taken - 1];
                piece = &piece[taken..];
                if value.left == 0 {
                    if last != b'\n' {
                        return Err(Malformed("a value is longer than its length says".into()));
                    }
                    self.array.close(Reply::Value { bytes: value.bytes }, &mut each);
                    self.value = None;
                }
                continue;
            }
            let Some(end) = piece.iter().position(|byte| *byte == b'\n') else {
                self.cut.extend_from_slice(piece);
                if self.cut.len() > LINE_BYTES_MAX {
                    return Err(Malformed("a line without end".into()));
                }
                return Ok(());
            };
            if self.cut.is_empty() {
                self.value = line(&piece[..end], &mut self.array, &mut each)?;
            } else {
                self.cut.extend_from_slice(&piece[..end]);
                self.value = line(&self.cut, &mut self.array, &mut each)?;
                self.cut.clear();
            }
            piece = &piece[end + 1..];
        }
        Ok(())
    }
}

/// One line without its LF: a whole reply, or the head of a value.
fn line(line: &[u8], array: &mut OpenArray, each: &mut impl FnMut(Reply<'_>)) -> Result<Option<Value>, Malformed> {
    let malformed = || Malformed(format!("unexpected line {:?}", String::from_utf8_lossy(&line[..line.len().min(80)])));
    let Some((kind, rest)) = line.strip_suffix(b"\r").and_then(|line| line.split_first()) else {
        return Err(malformed());
    };
    let number =
        || std::str::from_utf8(rest).ok().and_then(|digits| digits.parse::<usize>().ok()).ok_or_else(malformed);
    match kind {
        b'+' => array.close(Reply::Status(rest), each),
        b'-' => array.close(Reply::Error(rest), each),
        b':' => array.close(Reply::Integer, each),
        b'$' if rest == b"-1" => array.close(Reply::Null, each),
        b'*' if rest == b"-1" => array.close(Reply::Array, each),
        b'*' => array.open(number()? as u64, each),
        b'$' => {
            let bytes = number()?;
            return Ok(Some(Value { bytes, left: bytes + 2 }));
        }
        _ => return Err(malformed()),
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
