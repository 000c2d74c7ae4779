//! Messages of the server.

use sql_postgres::error::PgError;
use sql_postgres::wire::{Field, Notice, Notification};

use crate::startup;

/// Appends a message; `write` appends its body.
#[inline]
pub fn put(out: &mut Vec<u8>, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = (out.len() - at) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends a message without a body: ParseComplete and others.
#[inline]
pub fn put_bare(out: &mut Vec<u8>, kind: u8) {
    out.extend_from_slice(&[kind, 0, 0, 0, 4]);
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    // A zero byte would end the text; no text of the server has one, but a name of the client may be repeated in an error.
    match text.as_bytes().contains(&0) {
        false => out.extend_from_slice(text.as_bytes()),
        true => out.extend(text.bytes().filter(|byte| *byte != 0)),
    }
    out.push(0);
}

/// Letters of messages without a body.
pub mod bare {
    pub const PARSE_COMPLETE: u8 = b'1';
    pub const BIND_COMPLETE: u8 = b'2';
    pub const CLOSE_COMPLETE: u8 = b'3';
    pub const NO_DATA: u8 = b'n';
    pub const PORTAL_SUSPENDED: u8 = b's';
    pub const EMPTY_QUERY: u8 = b'I';
    pub const COPY_DONE: u8 = b'c';
}

/// Codes of authentication messages.
pub mod auth {
    pub const OK: u32 = 0;
    pub const CLEARTEXT_PASSWORD: u32 = 3;
    pub const SASL: u32 = 10;
    pub const SASL_CONTINUE: u32 = 11;
    pub const SASL_FINAL: u32 = 12;
}

pub fn put_authentication(out: &mut Vec<u8>, code: u32, data: &[u8]) {
    put(out, b'R', |out| {
        out.extend_from_slice(&code.to_be_bytes());
        out.extend_from_slice(data);
    });
}

/// Appends NegotiateProtocolVersion: the newest version of the server, and the options that it does not know.
pub fn put_negotiation(out: &mut Vec<u8>, unrecognized: &[String]) {
    put(out, b'v', |out| {
        out.extend_from_slice(&startup::VERSION.to_be_bytes());
        out.extend_from_slice(&(unrecognized.len() as u32).to_be_bytes());
        unrecognized.iter().for_each(|name| put_text(out, name));
    });
}

pub fn put_parameter_status(out: &mut Vec<u8>, name: &str, value: &str) {
    put(out, b'S', |out| {
        put_text(out, name);
        put_text(out, value);
    });
}

pub fn put_key(out: &mut Vec<u8>, pid: u32, key: u32) {
    put(out, b'K', |out| {
        out.extend_from_slice(&pid.to_be_bytes());
        out.extend_from_slice(&key.to_be_bytes());
    });
}

/// Appends NotificationResponse.
pub fn put_notification(out: &mut Vec<u8>, notification: &Notification) {
    put(out, b'A', |out| {
        out.extend_from_slice(&notification.pid.to_be_bytes());
        put_text(out, &notification.channel);
        put_text(out, &notification.payload);
    });
}

pub fn put_ready(out: &mut Vec<u8>, status: u8) {
    put(out, b'Z', |out| out.push(status));
}

pub fn put_complete(out: &mut Vec<u8>, tag: &str) {
    put(out, b'C', |out| put_text(out, tag));
}

pub fn put_row_description<'f>(out: &mut Vec<u8>, fields: impl ExactSizeIterator<Item = &'f Field>) {
    put(out, b'T', |out| {
        out.extend_from_slice(&(fields.len() as u16).to_be_bytes());
        for field in fields {
            put_text(out, &field.name);
            out.extend_from_slice(&field.table.to_be_bytes());
            out.extend_from_slice(&field.column.to_be_bytes());
            out.extend_from_slice(&field.type_oid.to_be_bytes());
            out.extend_from_slice(&field.type_len.to_be_bytes());
            out.extend_from_slice(&field.typmod.to_be_bytes());
            out.extend_from_slice(&field.format.to_be_bytes());
        }
    });
}

pub fn put_parameter_description(out: &mut Vec<u8>, types: &[u32]) {
    put(out, b't', |out| {
        out.extend_from_slice(&(types.len() as u16).to_be_bytes());
        types.iter().for_each(|oid| out.extend_from_slice(&oid.to_be_bytes()));
    });
}

/// Appends CopyInResponse (`G`) or CopyOutResponse (`H`).
pub fn put_copy_response(out: &mut Vec<u8>, kind: u8, is_binary: bool, formats: &[i16]) {
    put(out, kind, |out| {
        out.push(u8::from(is_binary));
        out.extend_from_slice(&(formats.len() as u16).to_be_bytes());
        formats.iter().for_each(|format| out.extend_from_slice(&format.to_be_bytes()));
    });
}

/// Drops a message that was not completed, at the end of those that begin at `start`.
#[cold]
pub fn drop_partial(out: &mut Vec<u8>, start: usize) {
    let mut end = start;
    while let Some(length) = out.get(end + 1..).and_then(|rest| rest.first_chunk()) {
        // The length of a message is written when its body is complete.
        let next = end + 1 + u32::from_be_bytes(*length) as usize;
        if next <= end + 4 || next > out.len() {
            break;
        }
        end = next;
    }
    out.truncate(end);
}

/// Severities of errors. After a fatal one the server closes the connection.
pub const ERROR: &str = "ERROR";
pub const FATAL: &str = "FATAL";

pub fn put_error(out: &mut Vec<u8>, severity: &str, error: &PgError) {
    put_report(out, b'E', severity, error);
}

pub fn put_notice(out: &mut Vec<u8>, notice: &Notice) {
    put_report(out, b'N', notice.severity, &notice.error);
}

fn put_report(out: &mut Vec<u8>, kind: u8, severity: &str, error: &PgError) {
    let position = error.position.map(|position| position.to_string());
    let object = error.object.as_deref();
    let fields = [
        (b'S', Some(severity)),
        (b'V', Some(severity)),
        (b'C', Some(error.state)),
        (b'M', Some(error.message.as_str())),
        (b'D', error.detail.as_deref()),
        (b'H', error.hint.as_deref()),
        (b'P', position.as_deref()),
        (b'W', error.context.as_deref()),
        (b's', object.and_then(|object| object.schema.as_deref())),
        (b't', object.and_then(|object| object.table.as_deref())),
        (b'c', object.and_then(|object| object.column.as_deref())),
        (b'd', object.and_then(|object| object.datatype.as_deref())),
        (b'n', object.and_then(|object| object.constraint.as_deref())),
        (b'R', error.routine),
    ];
    put(out, kind, |out| {
        for (field, text) in fields {
            if let Some(text) = text {
                out.push(field);
                put_text(out, text);
            }
        }
        out.push(0);
    });
}

#[cfg(test)]
mod tests {
    use sql_postgres::error::ErrorObject;

    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    #[test]
    fn an_error_has_the_fields_that_it_has() {
        let error = PgError::new("23505", "no").detail("why").hint("how").at("abc", 1);
        let object = ErrorObject { table: Some("t".into()), constraint: Some("k".into()), ..ErrorObject::default() };
        let error = PgError { object: Some(Box::new(object)), ..error };
        let bytes = written(|out| put_error(out, ERROR, &error));
        assert_eq!(bytes, b"E\0\0\0\x31SERROR\0VERROR\0C23505\0Mno\0Dwhy\0Hhow\0P2\0tt\0nk\0\0");
        let notice = Notice { severity: "NOTICE", error: PgError::new("00000", "a\0b") };
        assert_eq!(written(|out| put_notice(out, &notice)), b"N\0\0\0\x20SNOTICE\0VNOTICE\0C00000\0Mab\0\0");
    }

    #[test]
    fn a_message_that_was_not_completed_is_dropped() {
        let whole = written(|out| {
            out.extend_from_slice(b"zzz");
            put_complete(out, "A");
            put_bare(out, bare::COPY_DONE);
        });
        for rest in [&b""[..], b"D", b"D\0\0", b"D\0\0\0\0", b"D\0\0\0\0\0\x02\0\0\0\0", b"D\0\0\0\x09ab"] {
            let mut out = [&whole[..], rest].concat();
            drop_partial(&mut out, 3);
            assert_eq!(out, whole, "{rest:?}");
        }
    }

    #[test]
    fn fields_of_rows_and_copies_have_their_widths() {
        let field = Field { name: "a".into(), table: 1, column: 2, type_oid: 23, type_len: 4, typmod: -1, format: 1 };
        let expected = b"T\0\0\0\x1a\0\x01a\0\0\0\0\x01\0\x02\0\0\0\x17\0\x04\xff\xff\xff\xff\0\x01";
        assert_eq!(written(|out| put_row_description(out, [field].iter())), expected);
        assert_eq!(written(|out| put_copy_response(out, b'G', true, &[1])), b"G\0\0\0\x09\x01\0\x01\0\x01");
        assert_eq!(written(|out| put_parameter_description(out, &[23])), b"t\0\0\0\x0a\0\x01\0\0\0\x17");
        assert_eq!(written(|out| put_negotiation(out, &["_pq_.x".into()])), b"v\0\0\0\x13\0\x03\0\0\0\0\0\x01_pq_.x\0");
    }
}
