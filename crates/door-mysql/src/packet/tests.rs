use stdx::prng::Prng;

use super::*;

fn framed(payload: &[u8], first: u8) -> (Vec<u8>, u8) {
    let (mut out, mut sequence) = (Vec::new(), first);
    let at = begin(&mut out);
    out.extend_from_slice(payload);
    finish(&mut out, at, &mut sequence);
    (out, sequence)
}

#[test]
fn a_small_packet_has_the_bytes_of_the_protocol() {
    let (out, next) = framed(b"\x03select 1", 0);
    assert_eq!(out, b"\x09\x00\x00\x00\x03select 1");
    assert_eq!(next, 1);
    let packet = Packet { payload: b"\x03select 1", size: 13, next: 1 };
    assert_eq!(cut(&out, 0, 100), Cut::Packet(packet));
}

#[test]
fn payloads_around_the_greatest_frame_come_back_whole() {
    for length in [FRAME_MAX - 1, FRAME_MAX, FRAME_MAX + 1, 2 * FRAME_MAX - 1, 2 * FRAME_MAX, 2 * FRAME_MAX + 77] {
        let payload: Vec<u8> = (0..length).map(|at| ((at * 31) >> 3) as u8).collect();
        let (mut out, next) = framed(&payload, 254);
        assert_eq!(out.len(), length + HEADER * (length / FRAME_MAX + 1));
        assert_eq!(next, 254u8.wrapping_add((length / FRAME_MAX + 1) as u8));
        let size = out.len();
        out.extend_from_slice(b"next");
        let (mut at, mut sequence, mut came) = (0, 254u8, Vec::new());
        while let Cut::Frame(frame) = cut(&out[at..], sequence, usize::MAX) {
            assert_eq!(frame.len(), FRAME_MAX);
            came.extend_from_slice(frame);
            at += HEADER + FRAME_MAX;
            sequence = sequence.wrapping_add(1);
        }
        let Cut::Packet(packet) = cut(&out[at..], sequence, usize::MAX) else { panic!("{length}: not whole") };
        came.extend_from_slice(packet.payload);
        assert!(came == payload, "{length}: other bytes");
        assert_eq!((at + packet.size, packet.next), (size, next));
        let last = size - at;
        for missing in [1, HEADER, last - 1].into_iter().filter(|missing| *missing < last) {
            let cut = cut(&out[at..size - missing], sequence, usize::MAX);
            let Cut::More(wanted) = cut else { panic!("{length} less {missing}: {cut:?}") };
            assert!(wanted > last - missing && wanted <= last, "{length} less {missing}: {wanted} of {last}");
        }
        assert!(length < FRAME_MAX || matches!(cut(&out[..FRAME_MAX], 254, usize::MAX), Cut::More(_)));
    }
}

#[test]
fn what_is_too_long_is_seen_from_its_headers() {
    assert_eq!(cut(&[101, 0, 0, 0], 0, 100), Cut::TooLong(105));
    let (out, _) = framed(&vec![1; FRAME_MAX + 100], 0);
    assert_eq!(cut(&out[..8], 0, FRAME_MAX - 1), Cut::TooLong(FRAME_MAX + 4));
    assert!(matches!(cut(&out, 0, FRAME_MAX), Cut::Frame(_)));
    assert_eq!(cut(&out[HEADER + FRAME_MAX..][..8], 1, 99), Cut::TooLong(104));
}

#[test]
fn a_frame_out_of_turn_is_refused() {
    assert_eq!(cut(&[1, 0, 0, 1, 14], 0, 100), Cut::OutOfOrder);
    let (out, _) = framed(&vec![1; FRAME_MAX + 100], 0);
    assert_eq!(cut(&out[HEADER + FRAME_MAX..], 7, usize::MAX), Cut::OutOfOrder);
}

#[test]
fn random_bytes_never_make_the_cutter_stumble() {
    let seed = 20261121;
    let mut random = Prng::new(seed);
    for round in 0..50_000 {
        let length = random.below(40) as usize;
        let mut input: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
        if random.below(2) == 0 && length > 3 {
            // Keeps the length within reach of the input.
            input[..4].copy_from_slice(&[random.below(40) as u8, 0, 0, 0]);
        }
        match cut(&input, 0, 1000) {
            Cut::More(wanted) => assert!(wanted > length, "seed {seed}, round {round}: {wanted} of {length}"),
            Cut::Packet(packet) => {
                assert!(packet.size <= length);
                assert_eq!(*packet.payload, input[HEADER..packet.size]);
            }
            Cut::Frame(frame) => panic!("seed {seed}, round {round}: {} bytes", frame.len()),
            Cut::TooLong(size) => assert!(size > 1000),
            Cut::OutOfOrder => assert_ne!(input[3], 0),
        }
    }
}
