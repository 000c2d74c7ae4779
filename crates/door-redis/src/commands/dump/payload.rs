//! A payload as it grows, and why one is refused.

use engine::{Entry, KeyTransaction};
use stdx::memory;

/// Longest payload, as the longest string that a client can send back.
const PAYLOAD_MAX: usize = rdb::STRING_MAX as usize;

/// Bytes of a streamed value that are handed over together.
const STREAMED_PIECE: usize = 64 << 10;
/// Values of at least this size are streamed in pieces, and not compressed.
pub(super) const LONG_VALUE: u64 = 1 << 20;
const VALUE_PIECE: u64 = 256 << 10;

/// Takes the bytes of a value.
pub(crate) type Sink<'s> = &'s mut dyn FnMut(&[u8]) -> Result<(), engine::Error>;

/// A value as it is written: a payload that grows as far as memory has room, or pieces for a file.
pub(crate) struct Payload<'s> {
    pub(super) bytes: Vec<u8>,
    /// The version of RDB that it is in.
    pub(crate) version: u16,
    /// Fields of hashes are written with their expiry times.
    pub(crate) has_field_times: bool,
    /// Of a value that is written in pieces: who takes them.
    sink: Option<Sink<'s>>,
    /// Of a value in a file: its key, which stands behind the type.
    key: Option<&'s [u8]>,
    /// Bytes that were handed over, and their checksum.
    handed_over: usize,
    digest: rdb::PayloadDigest,
}

impl Default for Payload<'_> {
    fn default() -> Self {
        Payload {
            bytes: Vec::new(),
            version: rdb::VERSION_WRITTEN,
            has_field_times: true,
            sink: None,
            key: None,
            handed_over: 0,
            digest: rdb::PayloadDigest::default(),
        }
    }
}

/// How much of a value was written.
pub(crate) enum Dumped {
    Whole,
    TooLong,
}

impl<'s> Payload<'s> {
    /// Begins a value of a file. It takes little memory, whatever its size.
    pub(crate) fn streamed(key: &'s [u8], sink: Sink<'s>) -> Payload<'s> {
        Payload { sink: Some(sink), key: Some(key), ..Payload::default() }
    }

    /// Begins a payload of DUMP whose pieces go to `sink`, but for the last one. It takes little memory, whatever its size.
    pub(crate) fn in_pieces(sink: Sink<'s>) -> Payload<'s> {
        Payload { sink: Some(sink), ..Payload::default() }
    }

    pub(super) fn is_streamed(&self) -> bool {
        self.sink.is_some()
    }

    /// Writes the type of the value.
    pub(super) fn begin(&mut self, kind: u8) -> Result<(), engine::Error> {
        self.bytes.push(kind);
        match self.key {
            Some(key) => self.string(key),
            None => Ok(()),
        }
    }

    /// Makes room for `more` bytes.
    pub(super) fn reserve(&mut self, more: usize) -> Result<(), engine::Error> {
        if self.is_streamed() && self.bytes.len() >= STREAMED_PIECE {
            self.hand_over()?;
        }
        let needed = self.bytes.len() + more;
        if needed > self.bytes.capacity() {
            let room = needed.next_power_of_two().min(PAYLOAD_MAX.max(needed));
            let _claim = memory::claim(room).map_err(engine::Error::OutOfMemory)?;
            self.bytes.reserve_exact(room - self.bytes.len());
        }
        Ok(())
    }

    fn hand_over(&mut self) -> Result<(), engine::Error> {
        if let Some(sink) = &mut self.sink {
            sink(&self.bytes)?;
            if self.key.is_none() {
                self.digest.update(&self.bytes);
            }
            self.handed_over += self.bytes.len();
            self.bytes.clear();
            self.bytes.shrink_to(STREAMED_PIECE * 2);
        }
        Ok(())
    }

    pub(super) fn string(&mut self, bytes: &[u8]) -> Result<(), engine::Error> {
        const HEADER_MAX: usize = 9;
        self.reserve(bytes.len() + HEADER_MAX)?;
        rdb::write_string(&mut self.bytes, bytes);
        Ok(())
    }

    /// Writes a value of the engine as a string.
    pub(super) fn value(&mut self, txn: &mut KeyTransaction<'_>, of: &Entry) -> Result<(), engine::Error> {
        let mut bytes = Vec::new();
        if !self.is_streamed() || of.len < LONG_VALUE {
            let _claim = memory::claim(of.len as usize).map_err(engine::Error::OutOfMemory)?;
            bytes.reserve_exact(of.len as usize);
            txn.value(of, 0..of.len, &mut bytes)?;
            return self.string(&bytes);
        }
        rdb::write_length(&mut self.bytes, of.len);
        for from in (0..of.len).step_by(VALUE_PIECE as usize) {
            bytes.clear();
            txn.value(of, from..of.len.min(from + VALUE_PIECE), &mut bytes)?;
            self.reserve(bytes.len())?;
            self.bytes.extend_from_slice(&bytes);
        }
        Ok(())
    }

    pub(super) fn is_too_long(&self) -> bool {
        // A file has values of any length.
        self.key.is_none() && self.handed_over + self.bytes.len() > PAYLOAD_MAX - rdb::PAYLOAD_END
    }

    /// Returns the payload of DUMP.
    pub(super) fn end(mut self) -> Vec<u8> {
        rdb::end_payload(&mut self.bytes, self.version);
        self.bytes
    }

    /// Returns the last piece of a payload that was written in pieces, and the length of the whole.
    pub(crate) fn last_piece(mut self) -> (Vec<u8>, usize) {
        self.digest.update(&self.bytes);
        self.bytes.extend(self.digest.end(self.version));
        let length = self.handed_over + self.bytes.len();
        (self.bytes, length)
    }

    /// Hands over the rest of a value of a file. Returns the version that it is in.
    pub(crate) fn end_streamed(mut self) -> Result<u16, engine::Error> {
        self.hand_over()?;
        Ok(self.version)
    }
}

/// Why a payload is not stored.
pub(crate) enum NotRestored {
    Engine(engine::Error),
    /// The rule that is broken.
    Format(String),
}

impl From<engine::Error> for NotRestored {
    fn from(error: engine::Error) -> NotRestored {
        NotRestored::Engine(error)
    }
}

impl From<rdb::Error> for NotRestored {
    fn from(error: rdb::Error) -> NotRestored {
        NotRestored::Format(error.to_string())
    }
}

impl NotRestored {
    pub(crate) fn format<T>(rule: &str) -> Result<T, NotRestored> {
        Err(NotRestored::Format(rule.to_owned()))
    }
}
