//! The note about a server that is followed: its address, and how far its stream of commands was applied.

/// The place in a stream of commands up to which it was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamPosition {
    /// The id of the history, as the other server gave it.
    pub id: String,
    pub offset: u64,
    /// The database that the stream has selected. It may be one that there is not here, if the next command selects another.
    pub db: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub host: String,
    pub port: u16,
    /// None until the first full synchronisation.
    pub progress: Option<StreamPosition>,
}

const FORMAT: u8 = 1;
/// Longest name of a host, so that a note fits into a record of the catalog.
pub const HOST_MAX: usize = 1000;
/// Longest id of a history. Redis' have 40 letters.
pub const ID_MAX: usize = 64;

impl Note {
    /// Returns the bytes for the catalog (docs/formats/keyspace.md).
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![FORMAT];
        out.extend_from_slice(&self.port.to_le_bytes());
        match &self.progress {
            None => out.push(0),
            Some(StreamPosition { id, offset, db }) => {
                out.push(id.len() as u8);
                out.extend_from_slice(id.as_bytes());
                out.extend_from_slice(&offset.to_le_bytes());
                out.push(*db);
            }
        }
        out.extend_from_slice(self.host.as_bytes());
        out
    }

    pub fn decode(bytes: &[u8]) -> Option<Note> {
        let (&[format, low, high, id_len], mut rest) = bytes.split_first_chunk()?;
        if format != FORMAT {
            return None;
        }
        let mut progress = None;
        if id_len > 0 {
            let (id, behind) = rest.split_at_checked(usize::from(id_len))?;
            let (offset, behind) = behind.split_first_chunk()?;
            let (&db, behind) = behind.split_first()?;
            let id = String::from_utf8(id.to_vec()).ok()?;
            (progress, rest) = (Some(StreamPosition { id, offset: u64::from_le_bytes(*offset), db }), behind);
        }
        let host = String::from_utf8(rest.to_vec()).ok()?;
        Some(Note { host, port: u16::from_le_bytes([low, high]), progress })
    }
}

#[cfg(test)]
mod tests {
    use super::{Note, StreamPosition};

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let progress = StreamPosition { id: "a".repeat(40), offset: u64::MAX - 1, db: 15 };
        for progress in [None, Some(progress)] {
            let note = Note { host: "master.example".into(), port: 6379, progress };
            let bytes = note.encode();
            assert_eq!(Note::decode(&bytes), Some(note));
            (0..4).for_each(|cut| assert_eq!(Note::decode(&bytes[..cut]), None));
        }
        assert_eq!(Note::decode(b"\x02\0\0\0host"), None, "a format that is not known");
    }
}
