//! Answers: each function writes whole frames (DX-5).

use crate::frame::{self, Mode};
use crate::message::answer;
use crate::message::datatypes::{put_string_scalar, put_uint_scalar};
use crate::proto::{put_bytes, put_measured, put_number};

/// The severity of an error: after ERROR the session continues; after FATAL it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Error = 0,
    Fatal = 1,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Note = 1,
    Warning = 2,
    Error = 3,
}

/// The metadata of one column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnMeta<'a> {
    pub kind: u8,
    pub original_kind: u8,
    /// `None` if the client knows the names already (compact metadata).
    pub names: Option<Names<'a>>,
    pub collation: u16,
    pub fractional_digits: Option<u8>,
    pub length: Option<u32>,
    pub flags: u32,
    pub content_type: Option<u32>,
    pub original_flags: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Names<'a> {
    pub name: &'a [u8],
    pub original_name: &'a [u8],
    pub table: &'a [u8],
    pub original_table: &'a [u8],
    pub schema: &'a [u8],
}

const CATALOG: &[u8] = b"def";

/// The writer of one session's frames.
pub struct Writer<'a> {
    pub out: &'a mut Vec<u8>,
    pub mode: Mode,
    pub sid: u64,
}

impl Writer<'_> {
    #[inline]
    pub fn frame<R>(&mut self, kind: u8, write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        frame::put(self.out, self.mode, (self.sid, kind), write)
    }

    fn empty(&mut self, kind: u8) {
        self.frame(kind, |_| {});
    }

    pub fn ok(&mut self) {
        self.empty(answer::OK);
    }

    pub fn error(&mut self, severity: Severity, (code, sqlstate, text): (u16, &str, &str)) {
        self.frame(answer::ERROR, |out| {
            put_number(out, 1, severity as u64);
            put_number(out, 2, code.into());
            put_bytes(out, 3, text.as_bytes());
            put_bytes(out, 4, sqlstate.as_bytes());
        });
    }

    /// Writes the only capability, for clients that probe whether the server is alive.
    pub fn capabilities(&mut self) {
        self.frame(answer::CAPABILITIES, |out| {
            put_measured(out, 1, |out| {
                put_bytes(out, 1, b"polarx_rpc");
                put_measured(out, 2, |out| {
                    put_number(out, 1, 1);
                    put_measured(out, 2, |out| put_uint_scalar(out, 1));
                });
            });
        });
    }

    pub fn authenticate_continue(&mut self, data: &[u8]) {
        self.frame(answer::AUTHENTICATE_CONTINUE, |out| put_bytes(out, 1, data));
    }

    pub fn authenticate_ok(&mut self) {
        self.frame(answer::AUTHENTICATE_OK, |out| put_bytes(out, 1, b""));
    }

    pub fn column(&mut self, meta: &ColumnMeta<'_>) {
        self.frame(answer::COLUMN, |out| {
            put_number(out, 1, meta.kind.into());
            put_number(out, 2, meta.original_kind.into());
            if let Some(names) = &meta.names {
                let Names { name, original_name, table, original_table, schema } = *names;
                for (field, name) in (3..).zip([name, original_name, table, original_table, schema, CATALOG]) {
                    put_bytes(out, field, name);
                }
            }
            put_number(out, 9, meta.collation.into());
            let optional = [
                (10, meta.fractional_digits.map(u64::from)),
                (11, meta.length.map(u64::from)),
                (12, (meta.flags != 0).then_some(meta.flags.into())),
                (13, meta.content_type.map(u64::from)),
            ];
            for (field, number) in optional {
                if let Some(number) = number {
                    put_number(out, field, number);
                }
            }
            put_number(out, 14, meta.original_flags.into());
        });
    }

    pub fn fetch_done(&mut self) {
        self.empty(answer::FETCH_DONE);
    }

    pub fn execute_ok(&mut self) {
        self.empty(answer::EXECUTE_OK);
    }

    /// Writes that the token budget is used up; the client should offer more.
    pub fn token_done(&mut self) {
        self.frame(answer::TOKEN_DONE, |out| put_number(out, 1, 0));
    }

    pub fn tso(&mut self, timestamp: u64) {
        self.frame(answer::TSO, |out| {
            put_number(out, 1, 0);
            put_number(out, 2, timestamp);
        });
    }

    /// Writes a notice for the session: its type and its payload.
    fn notice(&mut self, kind: u64, write: impl FnOnce(&mut Vec<u8>)) {
        const LOCAL: u64 = 2;
        self.frame(answer::NOTICE, |out| {
            put_number(out, 1, kind);
            put_number(out, 2, LOCAL);
            put_measured(out, 3, write);
        });
    }

    pub fn warning(&mut self, level: Level, code: u16, text: &str) {
        self.notice(1, |out| {
            put_number(out, 1, level as u64);
            put_number(out, 2, code.into());
            put_bytes(out, 3, text.as_bytes());
        });
    }

    fn state(&mut self, parameter: u64, write: impl FnOnce(&mut Vec<u8>)) {
        self.notice(3, |out| {
            put_number(out, 1, parameter);
            put_measured(out, 2, write);
        });
    }

    pub fn insert_id(&mut self, id: u64) {
        self.state(3, |out| put_uint_scalar(out, id));
    }

    pub fn rows_affected(&mut self, count: u64) {
        self.state(4, |out| put_uint_scalar(out, count));
    }

    /// Writes MySQL's summary of a change.
    pub fn message(&mut self, text: &str) {
        self.state(10, |out| put_string_scalar(out, text.as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(sid: u64, write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut Writer { out: &mut out, mode: Mode::Legacy, sid });
        out
    }

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        let digit = |byte: u8| char::from(byte).to_digit(16).unwrap() as u8;
        digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
    }

    fn assert_frame(sid: u64, write: impl FnOnce(&mut Writer<'_>), golden: &str) {
        let (out, golden) = (written(sid, write), hex(golden));
        assert_eq!(out, golden, "{out:02x?}");
    }

    #[test]
    fn frames_have_the_golden_bytes() {
        let salt = b"ABCDEFGHIJKLMNOPQRST";
        let continued = "0000000000000000 17000000 03 0a144142434445464748494a4b4c4d4e4f5051525354";
        assert_frame(0, |w| w.authenticate_continue(salt), continued);
        assert_frame(0, |w| w.authenticate_ok(), "0000000000000000 03000000 04 0a00");
        let capabilities = "0000000000000000 19000000 02 0a160a0a706f6c6172785f72706312080801120408021801";
        assert_frame(0, |w| w.capabilities(), capabilities);
        assert_frame(2, |w| w.ok(), "0200000000000000 01000000 00");
        assert_frame(2, |w| w.fetch_done(), "0200000000000000 01000000 0e");
        assert_frame(2, |w| w.execute_ok(), "0200000000000000 01000000 11");
        assert_frame(2, |w| w.token_done(), "0200000000000000 03000000 13 0800");
        let tso = "0200000000000000 0d000000 14 080010c0808080a0abfef962";
        assert_frame(2, |w| w.tso(7_130_316_800_000_000_064), tso);
        assert_frame(2, |w| w.rows_affected(0), "0200000000000000 0f000000 0b 080310021a080804120408021800");
        assert_frame(2, |w| w.insert_id(9), "0200000000000000 0f000000 0b 080310021a080803120408021809");
        let warning = "0200000000000000 1b000000 0b 080110021a14080210d50a1a0d4469766973696f6e2062792030";
        assert_frame(2, |w| w.warning(Level::Warning, 1365, "Division by 0"), warning);
    }

    #[test]
    fn errors_have_severity_code_text_and_state() {
        let text = "Duplicate entry '1' for key 't.PRIMARY'";
        let out = written(2, |w| w.error(Severity::Error, (1062, "23000", text)));
        let golden = [&hex("0200000000000000 36000000 01 080010a6081a27")[..], text.as_bytes(), &hex("22053233303030")];
        assert_eq!(out, golden.concat());
        let out = written(2, |w| w.error(Severity::Fatal, (8001, "HY000", "")));
        assert_eq!(out[13..17], [8, 1, 0x10, 0xc1]);
    }

    #[test]
    fn a_column_has_the_golden_bytes_and_its_original_flags_behind() {
        let names = Names { name: b"1", original_name: b"1", table: b"t", original_table: b"t", schema: b"db" };
        let mut meta = ColumnMeta {
            kind: 1,
            original_kind: 8,
            names: Some(names),
            collation: 63,
            length: Some(2),
            flags: 0x10,
            original_flags: 1,
            ..ColumnMeta::default()
        };
        let golden = hex("080110081a01312201312a01743201743a0264624203646566483f58026010");
        assert_eq!(written(2, |w| w.column(&meta))[13..], [&golden[..], b"\x70\x01"].concat());
        meta.names = None;
        assert_eq!(written(2, |w| w.column(&meta))[13..], hex("08011008483f580260107001"));
    }
}
