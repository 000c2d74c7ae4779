use proptest::prelude::*;

use super::*;

const MODES: [Mode; 3] = [Mode::Legacy, Mode::Galaxy(0), Mode::Galaxy(7)];

fn written(mode: Mode, sid: u64, kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, mode, (sid, kind), |out| out.extend_from_slice(payload));
    out
}

#[test]
fn a_frame_has_the_bytes_of_the_protocol() {
    let payload = b"\x0a\x07MYSQL41";
    assert_eq!(written(Mode::Legacy, 0, 4, payload), b"\0\0\0\0\0\0\0\0\x0a\0\0\0\x04\x0a\x07MYSQL41");
    assert_eq!(written(Mode::Legacy, 2, 0x6e, b""), b"\x02\0\0\0\0\0\0\0\x01\0\0\0\x6e");
    assert_eq!(written(Mode::Galaxy(3), 2, 0x6e, b""), b"\x02\0\0\0\0\0\0\0\x03\x01\0\0\0\x6e");
}

#[test]
fn a_frame_is_cut_when_it_is_whole_and_not_before() {
    for mode in MODES {
        let bytes = [written(mode, 1 << 63 | 9, 101, b"select"), written(mode, 3, 7, b"")].concat();
        let first = bytes.len() - mode.header_bytes();
        for end in 0..first {
            let Cut::More(wanted) = cut(&bytes[..end], mode, 100) else { panic!("{mode:?} {end}") };
            assert!(wanted > end && wanted <= first, "{mode:?} {end} {wanted}");
        }
        let whole = Frame { sid: 1 << 63 | 9, kind: 101, payload: b"select", size: first };
        assert_eq!(cut(&bytes, mode, 100), Cut::Frame(whole));
        let last = Frame { sid: 3, kind: 7, payload: b"", size: mode.header_bytes() };
        assert_eq!(cut(&bytes[first..], mode, 100), Cut::Frame(last));
    }
}

#[test]
fn what_cannot_be_a_frame_is_seen_as_soon_as_its_header_says_so() {
    let long = written(Mode::Legacy, 5, 101, &[0; 100]);
    assert_eq!(cut(&long[..12], Mode::Legacy, 100), Cut::TooLong(5));
    assert!(matches!(cut(&long, Mode::Legacy, 101), Cut::Frame(_)));
    assert_eq!(cut(b"\x05\0\0\0\0\0\0\0\0\0\0\0", Mode::Legacy, 100), Cut::Broken);
    assert_eq!(cut(b"\x05\0\0\0\0\0\0\0\x01", Mode::Galaxy(0), 100), Cut::Broken);
}

proptest! {
    #[test]
    fn frames_are_the_same_wherever_the_stream_is_cut(
        frames in proptest::collection::vec((any::<u64>(), any::<u8>(), proptest::collection::vec(any::<u8>(), 0..40)), 0..6),
        piece in 1usize..50,
        mode in proptest::sample::select(&MODES[..]),
    ) {
        let bytes: Vec<u8> = frames.iter().flat_map(|(sid, kind, payload)| written(mode, *sid, *kind, payload)).collect();
        let (mut seen, mut at, mut end) = (Vec::new(), 0, 0);
        while end < bytes.len() {
            end = (end + piece).min(bytes.len());
            while let Cut::Frame(frame) = cut(&bytes[at..end], mode, 1000) {
                seen.push((frame.sid, frame.kind, frame.payload.to_vec()));
                at += frame.size;
            }
        }
        prop_assert_eq!(seen, frames);
    }

    #[test]
    fn random_bytes_never_make_the_cut_stumble(bytes: Vec<u8>, mode in proptest::sample::select(&MODES[..])) {
        if let Cut::Frame(frame) = cut(&bytes, mode, 64) {
            prop_assert!(frame.size <= bytes.len() && frame.payload.len() < 64);
        }
    }
}
