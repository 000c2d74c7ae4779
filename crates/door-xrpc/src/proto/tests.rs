use proptest::prelude::*;

use super::*;

fn all(bytes: &[u8]) -> Result<Vec<(u32, Wire<'_>)>> {
    Fields::of(bytes).collect()
}

#[test]
fn fields_come_as_they_stand_and_unknown_ones_too() {
    let bytes = b"\x08\x96\x01\x12\x02hi\x19\x00\x00\x00\x00\x00\x00\xf0\x3f\x25\x00\x00\x80\x3f\xd0\x7f\x05";
    let fields = all(bytes).unwrap();
    assert_eq!(fields[0], (1, Wire::Varint(150)));
    assert_eq!(fields[1], (2, Wire::Bytes(b"hi")));
    assert_eq!((fields[2].0, fields[2].1.double()), (3, Ok(1.0)));
    assert_eq!((fields[3].0, fields[3].1.float()), (4, Ok(1.0)));
    assert_eq!(fields[4], (2042, Wire::Varint(5)));
    assert_eq!(all(b""), Ok(vec![]));
}

#[test]
fn what_is_cut_or_promises_too_much_is_malformed() {
    let cut = b"\x12\x03abc";
    for end in 1..cut.len() {
        assert_eq!(all(&cut[..end]), Err(Malformed), "{end}");
    }
    for bad in [
        &b"\x08"[..],
        b"\x08\x80",
        b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
        b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01abc",
        b"\x19\x00\x00\x00\x00\x00\x00\xf0",
        b"\x25\x00\x00\x80",
        b"\x0b\x0c",
        b"\x06\x00",
        b"\x00\x00",
    ] {
        assert_eq!(all(bad), Err(Malformed), "{bad:x?}");
    }
}

#[test]
fn a_field_of_another_wire_type_is_malformed() {
    assert_eq!(Wire::Varint(1).bytes(), Err(Malformed));
    assert_eq!(Wire::Bytes(b"").varint(), Err(Malformed));
    assert_eq!(Wire::Fixed32([0; 4]).double(), Err(Malformed));
    assert_eq!(Wire::Fixed64([0; 8]).float(), Err(Malformed));
}

#[test]
fn a_negative_int32_is_written_with_all_bits() {
    let mut out = Vec::new();
    put_number(&mut out, 8, -1i64 as u64);
    assert_eq!(out, b"\x40\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    assert_eq!(all(&out).unwrap()[0].1.i32(), Ok(-1));
}

#[test]
fn lengths_are_those_of_what_was_written() {
    for length in [0, 1, 127, 128, 16_383, 16_384, 70_000] {
        let body = vec![7; length];
        let (mut one, mut two) = (vec![9], vec![9]);
        put_bytes(&mut one, 2, &body);
        put_measured(&mut two, 2, |out| out.extend_from_slice(&body));
        assert_eq!(one, two);
        assert_eq!(all(&one[1..]), Ok(vec![(2, Wire::Bytes(&body))]));
    }
}

proptest! {
    #[test]
    fn numbers_come_back(number: u64, signed: i64) {
        let mut out = Vec::new();
        put_varint(&mut out, number);
        prop_assert_eq!(take_varint(&mut &out[..]), Ok(number));
        prop_assert_eq!(unzigzag(zigzag(signed)), signed);
    }

    #[test]
    fn random_bytes_never_make_the_reader_stumble(bytes: Vec<u8>) {
        let read: usize = Fields::of(&bytes).map(|field| match field {
            Ok((_, Wire::Bytes(inside))) => inside.len(),
            _ => 0,
        }).sum();
        prop_assert!(read <= bytes.len());
    }
}
