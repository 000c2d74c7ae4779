//! Weights of characters, from the packed tables beside this file.
//!
//! A packed table lists the characters whose weights no rule gives, in the order of their code points: the number of code points that are left out (a varint),
//! the number of weights, and the difference of each weight to the one before (a zigzag varint). `general.bin` maps letters to upper case without accents.
//! `uca400.bin`, `uca520.bin` and `uca900.bin` have the primary weights of the default table of the Unicode collation algorithm; `uca900_accents.bin` and
//! `uca900_cases.bin` the secondary and tertiary weights (`scripts/uca900.py`). `multibyte.rs` has those of
//! sets of several bytes for a character. A table is unpacked at its first use, into pages of 256 characters.

use std::sync::{LazyLock, OnceLock};

use super::{Collation, Weights, bytes, multibyte};

pub struct Table {
    rule: Weights,
    /// Of `Weights::MultiByte`, whose rule depends on the character set.
    collation: Option<Collation>,
    /// By code point / 256: the range of each character's weights in `pool`.
    pages: Vec<Option<Box<[PoolRange; 256]>>>,
    pool: Vec<u16>,
    /// By byte: the weight of an ASCII character that has exactly one; 0 for other characters and for bytes of longer ones.
    pub single: [u16; 256],
    /// The weight of a space.
    pub space: u16,
}

#[derive(Clone, Copy)]
struct PoolRange {
    start: u32,
    /// `NO_ENTRY` where a rule gives the weights.
    count: u8,
}

const NO_ENTRY: u8 = u8::MAX;

static GENERAL: LazyLock<Table> = LazyLock::new(|| Table::unpack(Weights::General, include_bytes!("general.bin")));
static UCA400: LazyLock<Table> = LazyLock::new(|| Table::unpack(Weights::Uca400, include_bytes!("uca400.bin")));
static UCA520: LazyLock<Table> = LazyLock::new(|| Table::unpack(Weights::Uca520, include_bytes!("uca520.bin")));
static UCA900: LazyLock<Table> = LazyLock::new(|| Table::unpack(Weights::Uca900, include_bytes!("uca900.bin")));
/// The levels behind the primary weights.
static FURTHER: [&LazyLock<Table>; 2] = [&ACCENTS, &CASES];
static ACCENTS: LazyLock<Table> =
    LazyLock::new(|| Table::unpack(Weights::Uca900Accents, include_bytes!("uca900_accents.bin")));
static CASES: LazyLock<Table> =
    LazyLock::new(|| Table::unpack(Weights::Uca900Cases, include_bytes!("uca900_cases.bin")));
/// By collation.
static PACKED: [OnceLock<Table>; Collation::ALL.len()] = [const { OnceLock::new() }; Collation::ALL.len()];

/// Returns the tables of the levels that decide between texts whose primary weights are equal.
pub fn further(collation: Collation) -> impl Iterator<Item = &'static Table> {
    let count = match collation.weights() {
        Weights::Uca900Accents => 1,
        Weights::Uca900Cases => 2,
        _ => 0,
    };
    FURTHER[..count].iter().map(|table| &***table)
}

/// Returns the table of a collation's primary weights; `None` where the weights are the bytes.
pub fn of(collation: Collation) -> Option<&'static Table> {
    Some(match collation.weights() {
        Weights::Bytes => return None,
        Weights::General => &GENERAL,
        Weights::Uca400 => &UCA400,
        Weights::Uca520 => &UCA520,
        Weights::Uca900 | Weights::Uca900Accents | Weights::Uca900Cases => &UCA900,
        Weights::Packed => PACKED[collation as usize]
            .get_or_init(|| Table::unpack(Weights::Packed, bytes::packed(collation.table_name()))),
        Weights::MultiByte => PACKED[collation as usize].get_or_init(|| Table::multi_byte(collation)),
    })
}

impl Table {
    fn unpack(rule: Weights, packed: &[u8]) -> Table {
        let mut table = Table::empty(rule);
        let mut rest = packed.iter();
        let (mut next, mut last) = (0, 0i32);
        while rest.len() > 0 {
            next += bytes::varint(&mut rest);
            let count = *rest.next().expect("the tables are whole");
            let mut weights = Vec::with_capacity(count.into());
            for _ in 0..count {
                last += bytes::zigzag(&mut rest);
                weights.push(last as u16);
            }
            table.set(next, &weights);
            next += 1;
        }
        table.finish()
    }

    fn empty(rule: Weights) -> Table {
        Table { rule, collation: None, pages: Vec::new(), pool: Vec::new(), single: [0; 256], space: 0 }
    }

    fn set(&mut self, code: u32, weights: &[u16]) {
        let page = (code >> 8) as usize;
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, || None);
        }
        let ranges = self.pages[page].get_or_insert_with(|| Box::new([PoolRange { start: 0, count: NO_ENTRY }; 256]));
        ranges[(code & 255) as usize] = PoolRange { start: self.pool.len() as u32, count: weights.len() as u8 };
        self.pool.extend_from_slice(weights);
    }

    fn finish(mut self) -> Table {
        for code in 0..128u8 {
            let mut one = Vec::new();
            self.weights(char::from(code), |weight| one.push(weight));
            if let [weight] = one[..] {
                self.single[usize::from(code)] = weight;
            }
        }
        self.space = self.single[usize::from(b' ')];
        self
    }

    fn multi_byte(collation: Collation) -> Table {
        let mut table = Table { collation: Some(collation), ..Table::empty(Weights::MultiByte) };
        multibyte::weights(collation, |code, units| table.set(code, units));
        table.finish()
    }

    /// Calls `give` with each weight of a character, in order. An ignorable character has none.
    pub fn weights(&self, c: char, give: impl FnMut(u16)) {
        self.give_weights(c, &mut { give });
    }

    fn give_weights(&self, c: char, give: &mut dyn FnMut(u16)) {
        let code = u32::from(c);
        let page = self.pages.get((code >> 8) as usize).and_then(Option::as_ref);
        if let Some(span) = page.map(|page| page[(code & 255) as usize]).filter(|span| span.count != NO_ENTRY) {
            let start = span.start as usize;
            self.pool[start..start + usize::from(span.count)].iter().for_each(|weight| give(*weight));
            return;
        }
        match self.rule {
            Weights::General | Weights::Bytes => give(u16::try_from(code).unwrap_or(0xFFFD)),
            // A character that the set lacks sorts after all that it has.
            Weights::Packed => {
                give(0xFE00 | (code >> 16) as u16);
                give(code as u16);
            }
            Weights::MultiByte => {
                let units = self.collation.map(|collation| multibyte::weight_by_rule(collation, c));
                units.into_iter().flatten().for_each(give);
            }
            Weights::Uca400 if code > 0xFFFF => give(0xFFFD),
            Weights::Uca900 | Weights::Uca900Accents | Weights::Uca900Cases if (0xAC00..=0xD7A3).contains(&code) => {
                self.hangul(code - 0xAC00, give)
            }
            Weights::Uca900Accents => give(0x20),
            Weights::Uca900Cases => give(0x02),
            Weights::Uca900 if (0x17000..=0x18AFF).contains(&code) => {
                give(0xFB00);
                give((code - 0x17000) as u16 | 0x8000);
            }
            rule => {
                give((implicit_base(rule, code) + (code >> 15)) as u16);
                give((code & 0x7FFF) as u16 | 0x8000);
            }
        }
    }

    /// A Hangul syllable has the weights of its two or three letters.
    fn hangul(&self, index: u32, give: &mut dyn FnMut(u16)) {
        let letters = [0x1100 + index / 588, 0x1161 + index % 588 / 28, 0x11A7 + index % 28];
        let count = if index.is_multiple_of(28) { 2 } else { 3 };
        for letter in letters.into_iter().take(count).filter_map(char::from_u32) {
            self.give_weights(letter, give);
        }
    }
}

/// Returns the first implicit weight of the algorithm for a code point without an entry: of ideographs, of rarer ideographs, of the rest.
fn implicit_base(rule: Weights, code: u32) -> u32 {
    match code {
        0x4E00..=0x9FFF
        | 0xFA0E
        | 0xFA0F
        | 0xFA11
        | 0xFA13
        | 0xFA14
        | 0xFA1F
        | 0xFA21
        | 0xFA23
        | 0xFA24
        | 0xFA27..=0xFA29 => 0xFB40,
        0x3400..=0x4DBF => 0xFB80,
        0x20000..=0x323AF if rule == Weights::Uca900 => 0xFB80,
        _ => 0xFBC0,
    }
}
