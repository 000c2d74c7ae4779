//! What is said to a client that speaks another protocol, in words that it understands: somebody looks for the reason on its side.

use crate::errors;
use crate::frame::{Mode, Opening};
use crate::message::reply::{Severity, Writer};

const WORDS: &str = "This port speaks XRPC, PolarDB-X's private protocol 2.0";

/// What a connection looks like, for the log.
pub fn name(opening: Opening) -> &'static str {
    match opening {
        Opening::Tls => "TLS, which this port does not offer",
        Opening::Http => "HTTP",
        Opening::Mysql => "MySQL's protocol",
        Opening::Postgres => "PostgreSQL's protocol",
        Opening::OtherMode => "XRPC with other headers; see polarx_rpc_galaxy_protocol",
        Opening::Unclear | Opening::Ours | Opening::Unknown => "another protocol",
    }
}

/// Appends the farewell.
pub fn put_farewell(out: &mut Vec<u8>, opening: Opening, mode: Mode) {
    match opening {
        // An alert: fatal, handshake_failure.
        Opening::Tls => out.extend_from_slice(&[21, 3, 1, 0, 2, 2, 40]),
        Opening::Http => {
            let head = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n";
            out.extend_from_slice(format!("{head}Content-Length: {}\r\n\r\n{WORDS}.\n", WORDS.len() + 2).as_bytes());
        }
        Opening::Mysql => out.extend_from_slice(&mysql_error(2)),
        Opening::Postgres => put_postgres_error(out),
        Opening::OtherMode => put_other_mode(out, mode),
        Opening::Unclear | Opening::Ours | Opening::Unknown => {}
    }
}

/// An error packet as MySQL's clients expect it where that server's greeting, or its answer, would stand.
pub fn mysql_error(sequence: u8) -> Vec<u8> {
    const BAD_HANDSHAKE: u16 = 1043;
    let mut payload = vec![0xff];
    payload.extend_from_slice(&BAD_HANDSHAKE.to_le_bytes());
    if sequence > 0 {
        payload.extend_from_slice(b"#08S01");
    }
    payload.extend_from_slice(format!("{WORDS}; MySQL's is at another port").as_bytes());
    let [a, b, c, _] = (payload.len() as u32).to_le_bytes();
    [&[a, b, c, sequence], &payload[..]].concat()
}

fn put_postgres_error(out: &mut Vec<u8>) {
    const PROTOCOL_VIOLATION: &str = "08P01";
    let fields = format!("SFATAL\0VFATAL\0C{PROTOCOL_VIOLATION}\0M{WORDS}\0\0");
    out.push(b'E');
    out.extend_from_slice(&(fields.len() as u32 + 4).to_be_bytes());
    out.extend_from_slice(fields.as_bytes());
}

/// In the other mode, so that it is read.
fn put_other_mode(out: &mut Vec<u8>, mode: Mode) {
    let (other, words) = match mode {
        Mode::Legacy => (Mode::Galaxy(0), "13 bytes (galaxy protocol off)".to_owned()),
        Mode::Galaxy(version) => (Mode::Legacy, format!("14 bytes (galaxy protocol on, version {version})")),
    };
    let error = errors::XRPC.with(&[&format!("This port expects headers of {words}.")]);
    let mut writer = Writer { out, mode: other, sid: 0 };
    writer.error(Severity::Fatal, (error.code, error.sqlstate, &error.message));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Cut, cut};

    fn farewell(opening: Opening, mode: Mode) -> Vec<u8> {
        let mut out = Vec::new();
        put_farewell(&mut out, opening, mode);
        out
    }

    #[test]
    fn each_hears_it_in_its_own_protocol() {
        let text = String::from_utf8(farewell(Opening::Http, Mode::Legacy)).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
        let packet = farewell(Opening::Mysql, Mode::Legacy);
        assert_eq!((usize::from(packet[0]), packet[3], packet[4]), (packet.len() - 4, 2, 0xff));
        let message = farewell(Opening::Postgres, Mode::Legacy);
        assert_eq!((message[0], usize::from(message[4])), (b'E', message.len() - 1));
        for (mode, other) in [(Mode::Legacy, Mode::Galaxy(0)), (Mode::Galaxy(3), Mode::Legacy)] {
            let frame = farewell(Opening::OtherMode, mode);
            let Cut::Frame(cut) = cut(&frame, other, 1000) else { panic!("{frame:?}") };
            assert_eq!((cut.sid, cut.kind, cut.size), (0, 1, frame.len()));
        }
    }
}
