//! `block_encryption_mode`: key length and block cipher mode of AES_ENCRYPT and AES_DECRYPT.

use crate::value::Value;

pub const BLOCK: usize = 16;

/// The mode of chaining.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Chain {
    #[default]
    Ecb,
    Cbc,
    /// Cipher feedback with this number of bits.
    Cfb(u8),
    Ofb,
}

/// A value of `block_encryption_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    pub key_bits: u16,
    pub chain: Chain,
}

impl Default for Mode {
    fn default() -> Mode {
        Mode { key_bits: 128, chain: Chain::Ecb }
    }
}

const KEY_BITS: [u16; 3] = [128, 192, 256];
const CHAINS: [(Chain, &str); 6] = [
    (Chain::Ecb, "ecb"),
    (Chain::Cbc, "cbc"),
    (Chain::Cfb(1), "cfb1"),
    (Chain::Cfb(8), "cfb8"),
    (Chain::Cfb(128), "cfb128"),
    (Chain::Ofb, "ofb"),
];

impl Mode {
    /// Iterates over all modes in the order of MySQL's numbers.
    pub fn all() -> impl Iterator<Item = Mode> {
        CHAINS.iter().flat_map(|(chain, _)| KEY_BITS.map(|key_bits| Mode { key_bits, chain: *chain }))
    }

    /// Returns the mode of this name or number.
    pub fn named(value: &Value) -> Option<Mode> {
        match value {
            Value::Int(number) => Mode::all().nth(usize::try_from(*number).ok()?),
            Value::UInt(number) => Mode::all().nth(usize::try_from(*number).ok()?),
            Value::Text(text) => Mode::all().find(|mode| mode.name().eq_ignore_ascii_case(text)),
            _ => None,
        }
    }

    pub fn name(self) -> String {
        let chain = CHAINS.iter().find(|(chain, _)| *chain == self.chain).map_or("", |(_, name)| name);
        format!("aes-{}-{chain}", self.key_bits)
    }

    pub fn needs_vector(self) -> bool {
        self.chain != Chain::Ecb
    }

    /// Returns whether texts are padded to whole blocks.
    pub fn pads(self) -> bool {
        matches!(self.chain, Chain::Ecb | Chain::Cbc)
    }

    /// Returns the encrypted length of this number of bytes.
    pub fn length(self, bytes: u32) -> u32 {
        if self.pads() { (bytes / BLOCK as u32 + 1).saturating_mul(BLOCK as u32) } else { bytes }
    }
}
