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
    let packet = Packet { payload: Cow::Borrowed(b"\x03select 1"), size: 13, next: 1 };
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
        let Cut::Packet(packet) = cut(&out, 254, usize::MAX) else { panic!("{length}: not whole") };
        assert!(packet.payload == payload, "{length}: other bytes");
        assert_eq!((packet.size, packet.next), (size, next));
        for missing in [1, HEADER, length % FRAME_MAX + 1, length % FRAME_MAX + HEADER + 1] {
            if missing >= size {
                continue;
            }
            let cut = cut(&out[..size - missing], 254, usize::MAX);
            let Cut::More(wanted) = cut else { panic!("{length} less {missing}: {cut:?}") };
            assert!(wanted > size - missing && wanted <= size, "{length} less {missing}: {wanted} of {size}");
        }
    }
}

#[test]
fn what_is_too_long_is_seen_from_its_headers() {
    assert_eq!(cut(&[101, 0, 0, 0], 0, 100), Cut::TooLong(105));
    let (out, _) = framed(&vec![1; FRAME_MAX + 100], 0);
    assert_eq!(cut(&out[..FRAME_MAX + 8], 0, FRAME_MAX + 99), Cut::TooLong(FRAME_MAX + 108));
    assert!(matches!(cut(&out, 0, FRAME_MAX + 100), Cut::Packet(_)));
}

#[test]
fn a_frame_out_of_turn_is_refused() {
    assert_eq!(cut(&[1, 0, 0, 1, 14], 0, 100), Cut::OutOfOrder);
    let (mut out, _) = framed(&vec![1; FRAME_MAX + 100], 0);
    out[FRAME_MAX + HEADER + 3] = 7;
    assert_eq!(cut(&out, 0, usize::MAX), Cut::OutOfOrder);
}

#[test]
fn random_bytes_never_make_the_cutter_stumble() {
    let seed = 20261121;
    let mut random = Prng::new(seed);
    for round in 0..50_000 {
        let length = random.below(40) as usize;
        let mut input: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
        if random.below(2) == 0 && length > 3 {
            // A length that can be met.
            input[..4].copy_from_slice(&[random.below(40) as u8, 0, 0, 0]);
        }
        match cut(&input, 0, 1000) {
            Cut::More(wanted) => assert!(wanted > length, "seed {seed}, round {round}: {wanted} of {length}"),
            Cut::Packet(packet) => {
                assert!(packet.size <= length);
                assert_eq!(*packet.payload, input[HEADER..packet.size]);
            }
            Cut::TooLong(size) => assert!(size > 1000),
            Cut::OutOfOrder => assert_ne!(input[3], 0),
        }
    }
}
