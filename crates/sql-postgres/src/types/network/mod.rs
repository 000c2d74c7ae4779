//! inet and cidr: addresses of IPv4 and IPv6 with the length of their network.
//!
//! The bytes of a value order as the addresses do: the family, the network with zeros behind it, its length, and the whole address where bits of the host are set in it.

mod parse;
mod show;

use crate::error::{PgError, Result, state};
use crate::types::io;
use crate::value::Value;

/// Families as the binary form has them.
const V4: u8 = 2;
const V6: u8 = 3;

/// An address. `address` is a number of 32 or 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inet {
    pub is_v6: bool,
    pub bits: u8,
    pub address: u128,
}

impl Inet {
    /// Returns the bits of addresses of the family.
    pub fn width(self) -> u8 {
        if self.is_v6 { 128 } else { 32 }
    }

    /// Returns a number with ones where the addresses of a network of this length are alike.
    fn mask_of(self, bits: u8) -> u128 {
        let all = u128::MAX >> (128 - u32::from(self.width()));
        all & !all.checked_shr(bits.into()).unwrap_or(0)
    }

    pub fn mask(self) -> u128 {
        self.mask_of(self.bits)
    }

    pub fn host_mask(self) -> u128 {
        self.mask_of(self.width()) & !self.mask()
    }

    /// Returns the address with a network of another length.
    pub fn with_bits(self, bits: u8) -> Inet {
        Inet { bits, ..self }
    }

    /// Returns another address of the family with the length of all of it.
    pub fn with_address(self, address: u128) -> Inet {
        Inet { address, bits: self.width(), ..self }
    }

    /// Returns the address without the bits of the host.
    pub fn network(self) -> Inet {
        Inet { address: self.address & self.mask(), ..self }
    }

    /// Returns the number of leading bits that two addresses of one family have in common.
    pub fn common_bits(self, other: Inet) -> u8 {
        let unused = 128 - u32::from(self.width());
        ((self.address ^ other.address).leading_zeros() - unused) as u8
    }

    /// Returns whether the addresses are of one family and their first bits are alike.
    pub fn shares(self, other: Inet, bits: u8) -> bool {
        self.is_v6 == other.is_v6 && (self.address ^ other.address) & self.mask_of(bits) == 0
    }

    fn octets(self, number: u128) -> ([u8; 16], usize) {
        (number.to_be_bytes(), if self.is_v6 { 0 } else { 12 })
    }

    pub fn to_value(self) -> Value {
        let mut bytes = Vec::with_capacity(34);
        bytes.push(if self.is_v6 { V6 } else { V4 });
        let network = self.network();
        let (octets, from) = self.octets(network.address);
        bytes.extend_from_slice(&octets[from..]);
        bytes.push(self.bits);
        if network != self {
            let (octets, from) = self.octets(self.address);
            bytes.extend_from_slice(&octets[from..]);
        }
        Value::from_bytes(bytes)
    }

    /// Returns the address in the bytes of a value; `None` for others.
    pub fn of_bytes(bytes: &[u8]) -> Option<Inet> {
        let (family, rest) = bytes.split_first()?;
        let is_v6 = match *family {
            V4 => false,
            V6 => true,
            _ => return None,
        };
        let (network, rest) = rest.split_at_checked(if is_v6 { 16 } else { 4 })?;
        let (bits, address) = rest.split_first()?;
        let address = if address.is_empty() { network } else { address };
        let inet = Inet { is_v6, bits: *bits, address: number_of(address) };
        (address.len() == network.len() && *bits <= inet.width()).then_some(inet)
    }
}

fn number_of(octets: &[u8]) -> u128 {
    octets.iter().fold(0, |number, octet| number << 8 | u128::from(*octet))
}

/// The name of the type in errors.
fn name(is_cidr: bool) -> &'static str {
    if is_cidr { "cidr" } else { "inet" }
}

const SET_BITS: &str = "Value has bits set to right of mask.";

pub fn input(text: &str, is_cidr: bool) -> Result<Value> {
    let inet = parse::inet(text.as_bytes(), is_cidr).ok_or_else(|| io::invalid_input(name(is_cidr), text))?;
    if is_cidr && inet.network() != inet {
        let error = PgError::new(state::INVALID_TEXT_REPRESENTATION, format!("invalid cidr value: \"{text}\""));
        return Err(error.detail(SET_BITS));
    }
    Ok(inet.to_value())
}

/// Appends the text form. A cidr has the length of its network, an inet only where it is not that of a single address.
pub fn output(inet: Inet, is_cidr: bool, out: &mut Vec<u8>) {
    show::address(inet, out);
    if is_cidr || inet.bits < inet.width() {
        show::bits(inet.bits, out);
    }
}

/// Appends the address alone.
pub fn host(inet: Inet, out: &mut Vec<u8>) {
    show::address(inet, out);
}

/// Appends the octets or words of the network alone, with its length.
pub fn abbreviated(inet: Inet, out: &mut Vec<u8>) {
    match inet.is_v6 {
        true => show::network_v6(inet, out),
        false => show::network_v4(inet, out),
    }
    show::bits(inet.bits, out);
}

pub fn receive(bytes: &[u8], is_cidr: bool) -> Result<Value> {
    let invalid = |what: &str| {
        let text = format!("invalid {what} in external \"{}\" value", name(is_cidr));
        PgError::new(state::INVALID_BINARY_REPRESENTATION, text)
    };
    let short = || PgError::new(state::PROTOCOL_VIOLATION, "no data left in message");
    let is_v6 = match *bytes.first().ok_or_else(short)? {
        V4 => false,
        V6 => true,
        _ => return Err(invalid("address family")),
    };
    let family = Inet { is_v6, bits: 0, address: 0 };
    let bits = *bytes.get(1).ok_or_else(short)?;
    if bits > family.width() {
        return Err(invalid("bits"));
    }
    bytes.get(2).ok_or_else(short)?;
    let octets = usize::from(family.width() / 8);
    if usize::from(*bytes.get(3).ok_or_else(short)?) != octets {
        return Err(invalid("length"));
    }
    let rest = &bytes[4..];
    if rest.len() < octets {
        return Err(short());
    }
    if rest.len() > octets {
        return Err(PgError::new(state::INVALID_BINARY_REPRESENTATION, "incorrect binary data format"));
    }
    let inet = Inet { is_v6, bits, address: number_of(rest) };
    if is_cidr && inet.network() != inet {
        let error = PgError::new(state::INVALID_BINARY_REPRESENTATION, "invalid external \"cidr\" value");
        return Err(error.detail(SET_BITS));
    }
    Ok(inet.to_value())
}

pub fn send(inet: Inet, is_cidr: bool, out: &mut Vec<u8>) {
    let (octets, from) = inet.octets(inet.address);
    out.extend_from_slice(&[if inet.is_v6 { V6 } else { V4 }, inet.bits, is_cidr.into(), inet.width() / 8]);
    out.extend_from_slice(&octets[from..]);
}
