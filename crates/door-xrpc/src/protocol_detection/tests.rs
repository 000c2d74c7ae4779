use proptest::prelude::*;

use super::*;
use crate::frame::put;

const MODES: [Mode; 3] = [Mode::Legacy, Mode::Galaxy(0), Mode::Galaxy(7)];

fn written(mode: Mode, sid: u64, kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, mode, (sid, kind), |out| out.extend_from_slice(payload));
    out
}

fn farewell(detect: DetectedProtocol, mode: Mode) -> Vec<u8> {
    let mut out = Vec::new();
    put_farewell(&mut out, detect, mode);
    out
}

#[test]
fn each_hears_it_in_its_own_protocol() {
    let text = String::from_utf8(farewell(DetectedProtocol::Http, Mode::Legacy)).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    let packet = farewell(DetectedProtocol::Mysql, Mode::Legacy);
    assert_eq!((usize::from(packet[0]), packet[3], packet[4]), (packet.len() - 4, 2, 0xff));
    let message = farewell(DetectedProtocol::Postgres, Mode::Legacy);
    assert_eq!((message[0], usize::from(message[4])), (b'E', message.len() - 1));
    for (mode, other) in [(Mode::Legacy, Mode::Galaxy(0)), (Mode::Galaxy(3), Mode::Legacy)] {
        let frame = farewell(DetectedProtocol::OtherMode, mode);
        let Cut::Frame(cut) = cut(&frame, other, 1000) else { panic!("{frame:?}") };
        assert_eq!((cut.sid, cut.kind, cut.size), (0, 1, frame.len()));
    }
}

#[test]
fn foreign_protocols_are_told_apart_by_their_first_bytes() {
    let tls = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    let answer = b"\x55\x00\x00\x01\x85\xa6\xff\x01\x00\x00\x00\x01";
    let x_protocol = b"\x01\x00\x00\x00\x01";
    let (startup, ssl) = (b"\x00\x00\x00\x2a\x00\x03\x00\x00user", b"\x00\x00\x00\x08\x04\xd2\x16\x2f");
    for mode in MODES {
        for (bytes, meant) in [
            (&tls[..], DetectedProtocol::Tls),
            (b"GET / HTTP/1.1\r\n", DetectedProtocol::Http),
            (b"PRI * HTTP/2.0\r\n", DetectedProtocol::Http),
            (answer, DetectedProtocol::Mysql),
            (x_protocol, DetectedProtocol::Mysql),
            (startup, DetectedProtocol::Postgres),
            (ssl, DetectedProtocol::Postgres),
            (b"*1\r\n$4\r\nPING\r\n", DetectedProtocol::Unknown),
            (b"\x02\0\0\0\0\0\0\0\x01\0\0\0\x6e", DetectedProtocol::Unknown),
        ] {
            assert_eq!(detect(bytes, mode), meant, "{mode:?} {bytes:x?}");
            // No prefix is taken for another protocol.
            for end in 0..bytes.len() {
                let seen = detect(&bytes[..end], mode);
                assert!(seen == meant || seen == DetectedProtocol::Unclear, "{mode:?} {bytes:x?} {end} {seen:?}");
            }
        }
    }
}

#[test]
fn a_client_of_the_other_mode_is_known_by_its_first_frame() {
    let start = b"\x0a\x07MYSQL41";
    for speaks in MODES {
        for (kind, payload) in [(4, &start[..]), (1, b"")] {
            let bytes = written(speaks, 0, kind, payload);
            for mode in MODES {
                let meant = if speaks == mode { DetectedProtocol::Ours } else { DetectedProtocol::OtherMode };
                let both_galaxy = speaks != Mode::Legacy && mode != Mode::Legacy;
                if both_galaxy && speaks != mode {
                    // Another version of the same mode: `cut` reports it.
                    assert_eq!(cut(&bytes, mode, 100), Cut::Broken);
                    continue;
                }
                assert_eq!(detect(&bytes, mode), meant, "{speaks:?} at {mode:?}, type {kind}");
                for end in 0..bytes.len() {
                    let seen = detect(&bytes[..end], mode);
                    assert!(seen == meant || seen == DetectedProtocol::Unclear, "{speaks:?} {mode:?} {end} {seen:?}");
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn random_bytes_never_break_the_detection(bytes: Vec<u8>, mode in proptest::sample::select(&MODES[..])) {
        let _ = detect(&bytes, mode);
    }
}
