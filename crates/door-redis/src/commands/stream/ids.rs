//! Ids of entries as commands name them.

use engine::StreamId;

use crate::call::Call;

const INVALID: &str = "ERR Invalid stream ID specified as stream command argument";
/// Longest text of an id.
const TEXT_MAX: usize = 127;

/// Reads an unsigned number as Redis does: the text of a number, or whatever C's `strtoull` takes as a whole. A canonical negative number is none.
fn unsigned(text: &[u8]) -> Option<u64> {
    if text.first() == Some(&b'-') && crate::number::parse(text).is_some() {
        return None;
    }
    let text = text.trim_ascii_start();
    // C's blanks include the vertical tab, which is none of Rust's.
    let text = &text[text.iter().take_while(|byte| **byte == 0x0b || byte.is_ascii_whitespace()).count()..];
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(if is_negative { value.wrapping_neg() } else { value })
}

/// An id of XADD: `5-*` leaves the second number to the server.
#[derive(Clone, Copy)]
pub(super) struct NewId {
    pub id: StreamId,
    pub has_seq: bool,
}

/// Reads an id. Without a second number it gets `missing`.
fn parse(text: &[u8], missing: u64) -> Option<NewId> {
    if text.len() > TEXT_MAX {
        return None;
    }
    // Redis reads a text of C.
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let (ms, seq) = match text.iter().position(|byte| *byte == b'-') {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let ms = unsigned(ms)?;
    Some(match seq {
        Some(b"*") => NewId { id: StreamId::new(ms, 0), has_seq: false },
        Some(seq) => NewId { id: StreamId::new(ms, unsigned(seq)?), has_seq: true },
        None => NewId { id: StreamId::new(ms, missing), has_seq: true },
    })
}

/// Reads an id that is given completely, or without its second number, which is 0 then.
pub(super) fn strict(text: &[u8]) -> Option<StreamId> {
    parse(text, 0).filter(|new| new.has_seq).map(|new| new.id)
}

/// Reads an id, `-` or `+`.
pub(super) fn loose(text: &[u8], missing: u64) -> Option<StreamId> {
    match text.split(|byte| *byte == 0).next() {
        Some(b"-") if text.len() <= TEXT_MAX => Some(StreamId::MIN),
        Some(b"+") if text.len() <= TEXT_MAX => Some(StreamId::MAX),
        _ => parse(text, missing).filter(|new| new.has_seq).map(|new| new.id),
    }
}

impl Call<'_> {
    fn valid<T>(&mut self, id: Option<T>) -> Option<T> {
        if id.is_none() {
            self.reply.error(INVALID);
        }
        id
    }

    /// Returns an argument as an id. Replies with Redis' error if it is none.
    pub(super) fn id(&mut self, at: usize) -> Option<StreamId> {
        let id = strict(self.args[at]);
        self.valid(id)
    }

    /// Does the same, and also takes `-` and `+`.
    pub(super) fn loose_id(&mut self, at: usize) -> Option<StreamId> {
        let id = loose(self.args[at], 0);
        self.valid(id)
    }

    /// Does the same for an id of XADD.
    pub(super) fn new_id(&mut self, at: usize) -> Option<NewId> {
        let id = parse(self.args[at], 0);
        self.valid(id)
    }

    /// Returns the arguments from one on as ids.
    pub(super) fn ids(&mut self, from: usize) -> Option<Vec<StreamId>> {
        (from..self.args.len()).map(|at| self.id(at)).collect()
    }

    fn bound(&mut self, at: usize, missing: u64) -> Option<(StreamId, bool)> {
        let text = self.args[at];
        let is_exclusive = text.len() > 1 && text[0] == b'(';
        let id = if is_exclusive {
            parse(&text[1..], missing).filter(|new| new.has_seq).map(|new| new.id)
        } else {
            loose(text, missing)
        };
        self.valid(id).map(|id| (id, is_exclusive))
    }

    /// Returns an argument as the first id of a range.
    pub(super) fn range_start(&mut self, at: usize) -> Option<StreamId> {
        let (id, is_exclusive) = self.bound(at, 0)?;
        if !is_exclusive {
            return Some(id);
        }
        let next = id.next();
        if next.is_none() {
            self.reply.error("ERR invalid start ID for the interval");
        }
        next
    }

    /// Returns an argument as the last id of a range.
    pub(super) fn range_end(&mut self, at: usize) -> Option<StreamId> {
        let (id, is_exclusive) = self.bound(at, u64::MAX)?;
        if !is_exclusive {
            return Some(id);
        }
        let previous = id.previous();
        if previous.is_none() {
            self.reply.error("ERR invalid end ID for the interval");
        }
        previous
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_redis_reads_them() {
        let shown = |text: &str| strict(text.as_bytes()).map(|id| (id.ms, id.seq));
        assert_eq!(shown("5"), Some((5, 0)));
        assert_eq!(shown("5-7"), Some((5, 7)));
        assert_eq!(shown("18446744073709551615-18446744073709551615"), Some((u64::MAX, u64::MAX)));
        assert_eq!(shown("007-+3"), Some((7, 3)));
        assert_eq!(shown(" 1- 2"), Some((1, 2)));
        assert_eq!(shown("5--07"), Some((5, 7u64.wrapping_neg())));
        for text in ["", "-", "+", "x", "5-", "-5", "5--7", "5-*", "5-x", "18446744073709551616", "1-2-3"] {
            assert_eq!(shown(text), None, "{text:?}");
        }
        assert_eq!(loose(b"-", 9), Some(StreamId::MIN));
        assert_eq!(loose(b"+", 9), Some(StreamId::MAX));
        assert_eq!(loose(b"4", 9), Some(StreamId::new(4, 9)));
    }
}
