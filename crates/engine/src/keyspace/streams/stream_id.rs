//! The id of a stream's entry.

/// Milliseconds and a number within them. Ids of a stream only grow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct StreamId {
    pub ms: u64,
    pub seq: u64,
}

impl StreamId {
    pub const MIN: StreamId = StreamId { ms: 0, seq: 0 };
    pub const MAX: StreamId = StreamId { ms: u64::MAX, seq: u64::MAX };
    pub(crate) const BYTES: usize = 16;

    pub fn new(ms: u64, seq: u64) -> StreamId {
        StreamId { ms, seq }
    }

    /// Returns the id as bytes that sort as the id does.
    pub(crate) fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.ms) << 64 | u128::from(self.seq)).to_be_bytes()
    }

    pub(crate) fn from_bytes(bytes: [u8; 16]) -> StreamId {
        let word = u128::from_be_bytes(bytes);
        StreamId { ms: (word >> 64) as u64, seq: word as u64 }
    }

    /// Returns the least id that is greater; `None` after the last one.
    pub fn next(self) -> Option<StreamId> {
        match self.seq.checked_add(1) {
            Some(seq) => Some(StreamId { seq, ..self }),
            None => Some(StreamId { ms: self.ms.checked_add(1)?, seq: 0 }),
        }
    }

    /// Returns the greatest id that is less; `None` before the first one.
    pub fn previous(self) -> Option<StreamId> {
        match self.seq.checked_sub(1) {
            Some(seq) => Some(StreamId { seq, ..self }),
            None => Some(StreamId { ms: self.ms.checked_sub(1)?, seq: u64::MAX }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_an_id_carry_into_the_milliseconds() {
        assert_eq!(StreamId::new(1, u64::MAX).next(), Some(StreamId::new(2, 0)));
        assert_eq!(StreamId::new(2, 0).previous(), Some(StreamId::new(1, u64::MAX)));
        assert_eq!((StreamId::MAX.next(), StreamId::MIN.previous()), (None, None));
        let ids = [StreamId::MIN, StreamId::new(0, 1), StreamId::new(1, 0), StreamId::MAX];
        assert!(ids.windows(2).all(|pair| pair[0].to_bytes() < pair[1].to_bytes()));
        assert!(ids.iter().all(|id| StreamId::from_bytes(id.to_bytes()) == *id));
    }
}
