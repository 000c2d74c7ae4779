//! Texts of addresses, read as `inet_net_pton.c` reads them, its leniences among them.

use super::Inet;

/// A text that is read byte by byte; 0 is its end.
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn next(&mut self) -> u8 {
        let byte = self.peek();
        self.at += 1;
        byte
    }

    /// Reads a number from its first digit on, and the byte behind it. `None` if it is greater than `max`.
    fn number(&mut self, first: u8, max: u32) -> Option<(u32, u8)> {
        let mut number = u32::from(first - b'0');
        loop {
            match self.next() {
                digit @ b'0'..=b'9' if number <= max => number = number * 10 + u32::from(digit - b'0'),
                behind => return (number <= max).then_some((number, behind)),
            }
        }
    }
}

pub fn inet(text: &[u8], is_cidr: bool) -> Option<Inet> {
    match (text.contains(&b':'), is_cidr) {
        (true, _) => v6(text),
        (false, true) => cidr_v4(text),
        (false, false) => inet_v4(text),
    }
}

/// The octets of an address that have been read.
#[derive(Default)]
struct Octets {
    octets: [u8; 4],
    count: usize,
}

impl Octets {
    fn push(&mut self, octet: u8) -> Option<()> {
        *self.octets.get_mut(self.count)? = octet;
        self.count += 1;
        Some(())
    }

    fn inet(&self, bits: u32) -> Inet {
        Inet { is_v6: false, bits: bits as u8, address: u32::from_be_bytes(self.octets).into() }
    }
}

/// Reads the length of a network of IPv4, after the byte that ended the address. The inner `None` is that of an address without one.
fn v4_bits(reader: &mut Reader<'_>, behind: u8, count: usize) -> Option<Option<u32>> {
    if behind == b'/' && reader.peek().is_ascii_digit() && count > 0 {
        let first = reader.next();
        let (bits, behind) = reader.number(first, 32)?;
        return (behind == 0).then_some(Some(bits));
    }
    (behind == 0 && count > 0).then_some(None)
}

fn inet_v4(text: &[u8]) -> Option<Inet> {
    let mut reader = Reader { text, at: 0 };
    let mut octets = Octets::default();
    let mut last = reader.next();
    while last.is_ascii_digit() {
        let (octet, behind) = reader.number(last, 255)?;
        octets.push(octet as u8)?;
        last = match behind {
            0 | b'/' => {
                last = behind;
                break;
            }
            b'.' => reader.next(),
            _ => return None,
        };
    }
    let bits = v4_bits(&mut reader, last, octets.count)?;
    // All octets make a single address.
    let bits = bits.or((octets.count == 4).then_some(32))?;
    (bits as usize / 8 <= octets.count).then(|| octets.inet(bits))
}

fn cidr_v4(text: &[u8]) -> Option<Inet> {
    let mut reader = Reader { text, at: 0 };
    let mut octets = Octets::default();
    let first = reader.next();
    let is_hex = first == b'0' && matches!(reader.peek(), b'x' | b'X');
    let behind = match is_hex && text.get(2).is_some_and(u8::is_ascii_hexdigit) {
        true => hex_octets(&mut reader, &mut octets)?,
        false => decimal_octets(first, &mut reader, &mut octets)?,
    };
    let bits = v4_bits(&mut reader, behind, octets.count)?;
    let bits = bits.unwrap_or_else(|| class_bits(&octets));
    Some(octets.inet(bits))
}

fn hex_octets(reader: &mut Reader<'_>, octets: &mut Octets) -> Option<u8> {
    reader.next();
    let mut high = None;
    loop {
        let letter = reader.next();
        let Some(digit) = char::from(letter).to_digit(16) else {
            // An odd digit at the end is a high one.
            if let Some(high) = high {
                octets.push(high << 4)?;
            }
            return Some(letter);
        };
        high = match high {
            None => Some(digit as u8),
            Some(high) => {
                octets.push(high << 4 | digit as u8)?;
                None
            }
        };
    }
}

fn decimal_octets(first: u8, reader: &mut Reader<'_>, octets: &mut Octets) -> Option<u8> {
    let mut first = first;
    loop {
        if !first.is_ascii_digit() {
            return None;
        }
        let (octet, behind) = reader.number(first, 255)?;
        octets.push(octet as u8)?;
        match behind {
            0 | b'/' => return Some(behind),
            b'.' => first = reader.next(),
            _ => return None,
        }
    }
}

/// Returns the length of the network that an address without one is of, by its class.
fn class_bits(octets: &Octets) -> u32 {
    let class = match octets.octets[0] {
        240.. => 32,
        224.. => 8,
        192.. => 24,
        128.. => 16,
        _ => 8,
    };
    match class.max(octets.count as u32 * 8) {
        8 if octets.octets[0] == 224 => 4,
        bits => bits,
    }
}

/// The bytes of an address of IPv6 that have been read, and where `::` stands.
struct Words {
    bytes: [u8; 16],
    count: usize,
    gap: Option<usize>,
}

impl Words {
    fn push(&mut self, word: u16) -> Option<()> {
        self.bytes.get_mut(self.count..self.count + 2)?.copy_from_slice(&word.to_be_bytes());
        self.count += 2;
        Some(())
    }

    /// Moves what is behind the gap to the end.
    fn address(mut self) -> Option<u128> {
        match self.gap {
            Some(gap) if self.count < 16 => {
                let moved = self.count - gap;
                self.bytes.copy_within(gap..self.count, 16 - moved);
                self.bytes[gap..16 - moved].fill(0);
            }
            None if self.count == 16 => {}
            _ => return None,
        }
        Some(u128::from_be_bytes(self.bytes))
    }
}

fn v6(text: &[u8]) -> Option<Inet> {
    let mut words = Words { bytes: [0; 16], count: 0, gap: None };
    let mut rest = match text {
        [b':', b':', ..] => &text[1..],
        [b':', ..] => return None,
        _ => text,
    };
    let mut token = rest;
    let (mut word, mut digits) = (0, 0);
    let mut bits = 128;
    while let Some((letter, behind)) = rest.split_first() {
        rest = behind;
        match letter {
            letter if letter.is_ascii_hexdigit() => {
                word = word << 4 | char::from(*letter).to_digit(16)? as u16;
                digits += 1;
                if digits > 4 {
                    return None;
                }
            }
            b':' => {
                token = rest;
                match digits {
                    0 if words.gap.is_some() => return None,
                    0 => words.gap = Some(words.count),
                    _ if rest.is_empty() => return None,
                    _ => words.push(word)?,
                }
                (word, digits) = (0, 0);
            }
            b'.' if words.count + 4 <= 16 => {
                let (octets, length) = embedded_v4(token)?;
                words.bytes[words.count..words.count + 4].copy_from_slice(&octets);
                words.count += 4;
                bits = length;
                digits = 0;
                break;
            }
            b'/' => {
                bits = v6_bits(rest)?;
                break;
            }
            _ => return None,
        }
    }
    if digits > 0 {
        words.push(word)?;
    }
    Some(Inet { is_v6: true, bits, address: words.address()? })
}

/// Reads a number without leading zeros up to a bound. Empty text is none.
fn bounded(digits: &[u8], max: u32) -> Option<u32> {
    let mut number = 0;
    for (at, digit) in digits.iter().enumerate() {
        if !digit.is_ascii_digit() || at > 0 && number == 0 {
            return None;
        }
        number = number * 10 + u32::from(digit - b'0');
        if number > max {
            return None;
        }
    }
    Some(number)
}

fn v6_bits(text: &[u8]) -> Option<u8> {
    bounded(text, 128).filter(|_| !text.is_empty()).map(|bits| bits as u8)
}

/// Reads the octets at the end of an address of IPv6, and the length of the network behind them. Fewer than four are followed by zeros.
fn embedded_v4(text: &[u8]) -> Option<([u8; 4], u8)> {
    let (address, bits) = match text.iter().position(|letter| *letter == b'/') {
        Some(at) => (&text[..at], v6_bits(&text[at + 1..])?),
        None => (text, 128),
    };
    let is_last_there = address.len() < text.len() || !address.ends_with(b".");
    let mut octets = Octets::default();
    for part in address.split(|letter| *letter == b'.') {
        octets.push(bounded(part, 255)? as u8)?;
    }
    is_last_there.then_some((octets.octets, bits))
}
