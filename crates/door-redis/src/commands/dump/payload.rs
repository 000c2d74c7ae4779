//! A payload as it grows, and why one is refused.

use stdx::memory;

/// Longest payload, as the longest string that a client can send back.
const PAYLOAD_MAX: usize = rdb::STRING_MAX as usize;

/// A payload that grows as far as memory has room.
pub(super) struct Payload {
    pub(super) bytes: Vec<u8>,
    /// The version of RDB that it is in.
    pub(super) version: u16,
}

impl Default for Payload {
    fn default() -> Payload {
        Payload { bytes: Vec::new(), version: rdb::VERSION_WRITTEN }
    }
}

/// How much of a value was written.
pub(super) enum Dumped {
    Whole,
    TooLong,
}

impl Payload {
    /// Makes room for `more` bytes.
    pub(super) fn reserve(&mut self, more: usize) -> Result<(), engine::Error> {
        let needed = self.bytes.len() + more;
        if needed > self.bytes.capacity() {
            let room = needed.next_power_of_two().min(PAYLOAD_MAX.max(needed));
            let _claim = memory::claim(room).map_err(engine::Error::OutOfMemory)?;
            self.bytes.reserve_exact(room - self.bytes.len());
        }
        Ok(())
    }

    pub(super) fn string(&mut self, bytes: &[u8]) -> Result<(), engine::Error> {
        const HEADER_MAX: usize = 9;
        self.reserve(bytes.len() + HEADER_MAX)?;
        rdb::write_string(&mut self.bytes, bytes);
        Ok(())
    }

    pub(super) fn is_too_long(&self) -> bool {
        self.bytes.len() > PAYLOAD_MAX - rdb::PAYLOAD_END
    }

    pub(super) fn end(mut self) -> Vec<u8> {
        rdb::end_payload(&mut self.bytes, self.version);
        self.bytes
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
