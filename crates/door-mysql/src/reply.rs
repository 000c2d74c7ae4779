//! The three packets that end a reply: OK, EOF and ERR.

use sql_mysql::error::SqlError;

use crate::packet;
use crate::protocol::{capability, status};
use crate::wire::{put_bytes, put_length};

/// The content of an OK or EOF packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct OkPacket<'a> {
    pub affected: u64,
    pub last_insert_id: u64,
    pub status: u16,
    pub warnings: u16,
    pub info: &'a str,
    /// Changes of the session's state, encoded by `track`.
    pub changes: &'a [u8],
}

/// The writer of a reply: the output buffer, the next sequence number and the client's capabilities.
pub struct Writer<'a> {
    pub out: &'a mut Vec<u8>,
    pub sequence: &'a mut u8,
    pub capabilities: u32,
}

impl Writer<'_> {
    pub fn has(&self, capability: u32) -> bool {
        self.capabilities & capability != 0
    }

    /// Appends one packet; `write` appends its payload.
    #[inline]
    pub fn packet(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let at = packet::begin(self.out);
        write(self.out);
        packet::finish(self.out, at, self.sequence);
    }

    pub fn ok(&mut self, ending: &OkPacket<'_>) {
        self.ending(0x00, ending);
    }

    /// Writes the end of a result's rows.
    pub fn rows_end(&mut self, ending: &OkPacket<'_>) {
        if self.has(capability::DEPRECATE_EOF) { self.ending(0xfe, ending) } else { self.eof(ending) }
    }

    /// Writes the end of a list of columns, if the client expects one.
    pub fn columns_end(&mut self, ending: &OkPacket<'_>) {
        if !self.has(capability::DEPRECATE_EOF) {
            self.eof(ending);
        }
    }

    pub fn eof(&mut self, ending: &OkPacket<'_>) {
        self.packet(|out| {
            out.push(0xfe);
            out.extend_from_slice(&ending.warnings.to_le_bytes());
            out.extend_from_slice(&ending.status.to_le_bytes());
        });
    }

    fn ending(&mut self, head: u8, ending: &OkPacket<'_>) {
        let tracks = self.has(capability::SESSION_TRACK);
        let changed = tracks && !ending.changes.is_empty();
        let status = ending.status | if changed { status::SESSION_STATE_CHANGED } else { 0 };
        self.packet(|out| {
            out.push(head);
            put_length(out, ending.affected);
            put_length(out, ending.last_insert_id);
            out.extend_from_slice(&status.to_le_bytes());
            out.extend_from_slice(&ending.warnings.to_le_bytes());
            if changed || !ending.info.is_empty() {
                put_bytes(out, ending.info.as_bytes());
            }
            if changed {
                put_bytes(out, ending.changes);
            }
        });
    }

    pub fn error(&mut self, error: &SqlError) {
        let with_state = self.has(capability::PROTOCOL_41);
        self.packet(|out| {
            out.push(0xff);
            out.extend_from_slice(&error.code.to_le_bytes());
            if with_state {
                out.push(b'#');
                out.extend_from_slice(error.sqlstate.as_bytes());
            }
            out.extend_from_slice(cut_to(&error.message, MESSAGE_MAX).as_bytes());
        });
    }
}

/// The longest message of MySQL.
const MESSAGE_MAX: usize = 511;

fn cut_to(text: &str, length: usize) -> &str {
    if text.len() <= length {
        return text;
    }
    let end = (0..=length).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

/// Session state changes for clients with CLIENT_SESSION_TRACK.
pub mod track {
    use sql_mysql::Change;

    use crate::wire::{put_bytes, put_measured};

    /// Appends one change: its type and its length-encoded data. Names are UTF-8 whatever the client's character set is, as in MySQL.
    pub fn put(out: &mut Vec<u8>, change: &Change) {
        match change {
            Change::Variable { name, value } => note(out, 0, &[name.as_bytes(), value.as_bytes()]),
            Change::Schema(name) => note(out, 1, &[name.as_bytes()]),
            // The data is one character without a length of its own.
            Change::State => out.extend_from_slice(&[2, 1, b'1']),
            Change::Characteristics(statements) => note(out, 4, &[statements.as_bytes()]),
            Change::Transaction(letters) => note(out, 5, &[letters]),
        }
    }

    fn note(out: &mut Vec<u8>, kind: u8, texts: &[&[u8]]) {
        out.push(kind);
        put_measured(out, |out| texts.iter().for_each(|text| put_bytes(out, text)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(capabilities: u32, write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let (mut out, mut sequence) = (Vec::new(), 1);
        write(&mut Writer { out: &mut out, sequence: &mut sequence, capabilities });
        out
    }

    #[test]
    fn an_error_has_its_state_only_when_the_client_knows_of_states() {
        let error = SqlError { code: 1146, sqlstate: "42S02", message: "no".into() };
        assert_eq!(written(capability::PROTOCOL_41, |w| w.error(&error)), b"\x0b\x00\x00\x01\xff\x7a\x04#42S02no");
        assert_eq!(written(0, |w| w.error(&error)), b"\x05\x00\x00\x01\xff\x7a\x04no");
    }

    #[test]
    fn the_end_of_rows_is_what_the_client_expects() {
        let ending = OkPacket { status: status::AUTOCOMMIT, warnings: 1, ..OkPacket::default() };
        assert_eq!(written(0, |w| w.rows_end(&ending)), b"\x05\x00\x00\x01\xfe\x01\x00\x02\x00");
        let deprecated = written(capability::DEPRECATE_EOF, |w| w.rows_end(&ending));
        assert_eq!(deprecated, b"\x07\x00\x00\x01\xfe\x00\x00\x02\x00\x01\x00");
        assert_eq!(written(capability::DEPRECATE_EOF, |w| w.columns_end(&ending)), b"");
    }

    #[test]
    fn changes_of_state_are_told_to_those_who_follow_them() {
        let mut changes = Vec::new();
        track::put(&mut changes, &sql_mysql::Change::Schema("shop".into()));
        let ending = OkPacket { affected: 3, last_insert_id: 300, changes: &changes, ..OkPacket::default() };
        let finish = written(capability::SESSION_TRACK, |w| w.ok(&ending));
        assert_eq!(finish, b"\x12\x00\x00\x01\x00\x03\xfc\x2c\x01\x00\x40\x00\x00\x00\x07\x01\x05\x04shop");
        assert_eq!(written(0, |w| w.ok(&ending)), b"\x09\x00\x00\x01\x00\x03\xfc\x2c\x01\x00\x00\x00\x00");
    }

    #[test]
    fn each_kind_of_note_has_its_form() {
        let mut out = Vec::new();
        for change in [
            sql_mysql::Change::Variable { name: "autocommit".into(), value: "ON".into() },
            sql_mysql::Change::State,
            sql_mysql::Change::Transaction(*b"T_______"),
            sql_mysql::Change::Characteristics("START TRANSACTION;".into()),
        ] {
            track::put(&mut out, &change);
        }
        assert_eq!(out, b"\x00\x0e\x0aautocommit\x02ON\x02\x011\x05\x09\x08T_______\x04\x13\x12START TRANSACTION;");
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let message = "ä".repeat(400);
        assert_eq!(cut_to(&message, MESSAGE_MAX).len(), 510);
        assert_eq!(cut_to("short", MESSAGE_MAX), "short");
    }
}
