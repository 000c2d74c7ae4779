//! Integers and strings in the protocol's encoding: little endian and length-encoded.
//!
//! Writing appends to the connection's buffer and allocates nothing else. Reading never passes the end: `None` means that the packet is malformed.

/// NULL in a text row.
pub const NULL: u8 = 0xfb;

/// Appends a length-encoded integer of 1, 3, 4 or 9 bytes.
#[inline]
pub fn put_length(out: &mut Vec<u8>, number: u64) {
    match number {
        0..=250 => out.push(number as u8),
        251..=0xffff => {
            let [a, b, ..] = number.to_le_bytes();
            out.extend_from_slice(&[0xfc, a, b]);
        }
        0x1_0000..=0xff_ffff => {
            let [a, b, c, ..] = number.to_le_bytes();
            out.extend_from_slice(&[0xfd, a, b, c]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&number.to_le_bytes());
        }
    }
}

/// Appends length-encoded bytes.
#[inline]
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_length(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends the output of `write`, length-encoded. Up to 250 bytes, as of numbers and dates, are not moved.
#[inline]
pub fn put_measured(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.push(0);
    write(out);
    let length = out.len() - at - 1;
    if length <= 250 {
        out[at] = length as u8;
    } else {
        let body = out.split_off(at + 1);
        out.truncate(at);
        put_bytes(out, &body);
    }
}

/// Appends decimal digits.
#[inline]
pub fn put_digits(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[inline]
pub fn put_signed_digits(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    put_digits(out, number.unsigned_abs());
}

/// The unread part of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    #[inline]
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads a length-encoded integer. The marks of NULL and of an error packet are not lengths.
    #[inline]
    pub fn length(&mut self) -> Option<u64> {
        match self.u8()? {
            small @ 0..=250 => Some(u64::from(small)),
            0xfc => self.u16().map(u64::from),
            0xfd => self.array().map(|[a, b, c]| u64::from(u32::from_le_bytes([a, b, c, 0]))),
            0xfe => self.u64(),
            _ => None,
        }
    }

    /// Reads length-encoded bytes.
    #[inline]
    pub fn measured(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.length()?).ok()?;
        self.bytes(length)
    }

    /// Reads bytes up to a zero byte.
    pub fn terminated(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let text = self.bytes(end)?;
        self.u8()?;
        Some(text)
    }

    /// Reads bytes up to a zero byte, or all that are left.
    pub fn terminated_or_rest(&mut self) -> &'a [u8] {
        match self.terminated() {
            Some(text) => text,
            None => std::mem::take(&mut self.0),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_the_widths_of_the_protocol_and_come_back() {
        for (number, width) in
            [(0, 1), (250, 1), (251, 3), (0xffff, 3), (0x1_0000, 4), (0xff_ffff, 4), (0x100_0000, 9), (u64::MAX, 9)]
        {
            let mut out = Vec::new();
            put_length(&mut out, number);
            assert_eq!(out.len(), width, "{number}");
            let mut reader = Reader(&out);
            assert_eq!(reader.length(), Some(number));
            assert!(reader.is_empty());
        }
    }

    #[test]
    fn a_length_that_is_cut_or_promises_too_much_is_none() {
        for bad in
            [&[][..], &[0xfb], &[0xff], &[0xfc, 1], &[0xfd, 1, 2], &[0xfe, 1, 2, 3, 4, 5, 6, 7], &[2, 7], &[0xfe; 9]]
        {
            assert_eq!(Reader(bad).measured(), None, "{bad:x?}");
        }
    }

    #[test]
    fn measured_writing_is_the_same_as_writing_what_was_measured() {
        for length in [0, 1, 250, 251, 70_000] {
            let body = vec![7; length];
            let (mut one, mut two) = (vec![9], vec![9]);
            put_bytes(&mut one, &body);
            put_measured(&mut two, |out| out.extend_from_slice(&body));
            assert_eq!(one, two);
        }
    }

    #[test]
    fn digits_are_those_of_the_number() {
        for number in [0, 9, 10, 99, 100, 12345, u64::MAX] {
            let mut out = Vec::new();
            put_digits(&mut out, number);
            assert_eq!(out, number.to_string().into_bytes());
        }
        for number in [0, -1, i64::MIN, i64::MAX] {
            let mut out = Vec::new();
            put_signed_digits(&mut out, number);
            assert_eq!(out, number.to_string().into_bytes());
        }
    }

    #[test]
    fn text_ends_at_its_zero() {
        let mut reader = Reader(b"ab\0cd");
        assert_eq!(reader.terminated(), Some(&b"ab"[..]));
        assert_eq!(reader.terminated(), None);
        assert_eq!(reader.terminated_or_rest(), b"cd");
        assert!(reader.is_empty());
    }
}
