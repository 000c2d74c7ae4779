//! HyperLogLog: an estimate of how many different elements there were, in a string with Redis' own bytes.
//!
//! ```text
//!   "HYLL" | encoding u8: 0 dense, 1 sparse | 3 bytes 0 | cardinality u64 LE, bit 63: not valid | registers
//!   dense     16,384 registers of 6 bits, the lowest bits first
//!   sparse    00nnnnnn  n + 1 registers are 0       01nnnnnn nnnnnnnn  n + 1 registers are 0       1vvvvvnn  n + 1 registers are v + 1
//! ```
//! A register holds the longest run of zeros, plus one, in the hashes that it is responsible for. Updates follow Redis step by step, so that GET of a
//! HyperLogLog is the same in both.

/// Registers, and the bits of a hash that choose one.
pub const REGISTERS: usize = 1 << INDEX_BITS;
const INDEX_BITS: u32 = 14;
/// Bits of a hash in which zeros are counted.
const RUN_BITS: usize = 64 - INDEX_BITS as usize;
const HEADER: usize = 16;
const DENSE_BYTES: usize = HEADER + REGISTERS * 6 / 8;
const MAGIC: &[u8; 4] = b"HYLL";
const DENSE: u8 = 0;
const SPARSE: u8 = 1;
/// The greatest value of a register, and the longest run of equal ones, that the sparse form can hold.
const SPARSE_VALUE_MAX: u8 = 32;
const SPARSE_RUN_MAX: usize = 4;
const SHORT_ZEROS_MAX: usize = 64;

/// The sparse form does not describe all registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

/// A string that holds a HyperLogLog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HyperLogLog {
    bytes: Vec<u8>,
}

/// A step of the sparse form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    ShortZeros(usize),
    Zeros(usize),
    Values(u8, usize),
}

impl Opcode {
    /// Reads the first opcode. The second byte of a cut one counts as 0.
    fn read(bytes: &[u8]) -> Opcode {
        let first = bytes[0];
        if first & 0x80 != 0 {
            Opcode::Values((first >> 2 & 31) + 1, usize::from(first & 3) + 1)
        } else if first & 0x40 != 0 {
            let low = bytes.get(1).copied().unwrap_or(0);
            Opcode::Zeros((usize::from(first & 63) << 8 | usize::from(low)) + 1)
        } else {
            Opcode::ShortZeros(usize::from(first & 63) + 1)
        }
    }

    fn zeros(count: usize) -> Opcode {
        if count > SHORT_ZEROS_MAX { Opcode::Zeros(count) } else { Opcode::ShortZeros(count) }
    }

    fn write(self, out: &mut Vec<u8>) {
        match self {
            Opcode::ShortZeros(count) => out.push((count - 1) as u8),
            Opcode::Zeros(count) => out.extend_from_slice(&[((count - 1) >> 8) as u8 | 0x40, (count - 1) as u8]),
            Opcode::Values(value, count) => out.push((value - 1) << 2 | (count - 1) as u8 | 0x80),
        }
    }

    fn len(self) -> usize {
        if matches!(self, Opcode::Zeros(_)) { 2 } else { 1 }
    }

    /// Returns the number of registers.
    fn span(self) -> usize {
        match self {
            Opcode::ShortZeros(count) | Opcode::Zeros(count) | Opcode::Values(_, count) => count,
        }
    }
}

impl Default for HyperLogLog {
    /// Returns an empty one, whose cached cardinality is 0.
    fn default() -> HyperLogLog {
        let mut bytes = vec![0; HEADER];
        bytes[..MAGIC.len()].copy_from_slice(MAGIC);
        bytes[4] = SPARSE;
        Opcode::Zeros(REGISTERS).write(&mut bytes);
        HyperLogLog { bytes }
    }
}

impl HyperLogLog {
    /// Takes a string; `None` if it is no HyperLogLog.
    pub fn parse(bytes: Vec<u8>) -> Option<HyperLogLog> {
        let is_sound = bytes.len() >= HEADER
            && bytes.starts_with(MAGIC)
            && (bytes[4] == SPARSE || bytes[4] == DENSE && bytes.len() == DENSE_BYTES);
        is_sound.then_some(HyperLogLog { bytes })
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn is_dense(&self) -> bool {
        self.bytes[4] == DENSE
    }

    /// Returns the cached cardinality if it is valid.
    pub fn cached(&self) -> Option<u64> {
        let cached = u64::from_le_bytes(self.bytes[8..16].try_into().expect("eight bytes"));
        (cached >> 63 == 0).then_some(cached)
    }

    pub fn set_cached(&mut self, cardinality: u64) {
        self.bytes[8..16].copy_from_slice(&cardinality.to_le_bytes());
    }

    pub fn invalidate(&mut self) {
        self.bytes[15] |= 0x80;
    }

    /// Adds an element. Returns true if a register has changed.
    pub fn add(&mut self, element: &[u8], sparse_max: usize) -> Result<bool, Corrupt> {
        let hash = murmur_64a(element, 0xadc8_3b19);
        let run = (hash >> INDEX_BITS | 1 << RUN_BITS).trailing_zeros() as u8 + 1;
        self.raise((hash as usize) & (REGISTERS - 1), run, sparse_max)
    }

    /// Sets a register to a value if that is greater. Returns true if it was.
    pub fn raise(&mut self, index: usize, value: u8, sparse_max: usize) -> Result<bool, Corrupt> {
        if self.is_dense() { Ok(self.raise_dense(index, value)) } else { self.raise_sparse(index, value, sparse_max) }
    }

    fn raise_dense(&mut self, index: usize, value: u8) -> bool {
        let registers = &mut self.bytes[HEADER..];
        if dense_register(registers, index) >= value {
            return false;
        }
        let (at, shift) = (index * 6 / 8, index * 6 % 8);
        let wide = u16::from(value) << shift;
        let mask = 63u16 << shift;
        registers[at] = registers[at] & !(mask as u8) | wide as u8;
        if mask >> 8 != 0 {
            registers[at + 1] = registers[at + 1] & !((mask >> 8) as u8) | (wide >> 8) as u8;
        }
        true
    }

    fn raise_sparse(&mut self, index: usize, value: u8, sparse_max: usize) -> Result<bool, Corrupt> {
        if value > SPARSE_VALUE_MAX {
            return self.promote(index, value);
        }
        let (mut at, mut first, mut previous) = (HEADER, 0, None);
        let found = loop {
            if at >= self.bytes.len() {
                return Err(Corrupt);
            }
            let found = Opcode::read(&self.bytes[at..]);
            if index < first + found.span() {
                break found;
            }
            previous = Some(at);
            at += found.len();
            first += found.span();
        };
        let last = first + found.span() - 1;
        let beside = |count: usize| match found {
            Opcode::Values(old, _) => Opcode::Values(old, count),
            Opcode::ShortZeros(_) | Opcode::Zeros(_) => Opcode::zeros(count),
        };
        if let Opcode::Values(old, _) = found
            && old >= value
        {
            return Ok(false);
        }
        let mut fresh = Vec::with_capacity(5);
        if index > first {
            beside(index - first).write(&mut fresh);
        }
        Opcode::Values(value, 1).write(&mut fresh);
        if index < last {
            beside(last - index).write(&mut fresh);
        }
        if fresh.len() > found.len() && self.bytes.len() + fresh.len() - found.len() > sparse_max {
            return self.promote(index, value);
        }
        let end = (at + found.len()).min(self.bytes.len());
        self.bytes.splice(at..end, fresh);
        self.join_values(previous.unwrap_or(HEADER));
        self.invalidate();
        Ok(true)
    }

    /// Joins neighbouring runs of equal values, in the five opcodes from `at` on.
    fn join_values(&mut self, mut at: usize) {
        let mut left = 5;
        while at < self.bytes.len() && left > 0 {
            left -= 1;
            let one = Opcode::read(&self.bytes[at..]);
            if let (Opcode::Values(value, count), Some(next)) =
                (one, self.bytes.get(at + 1..).filter(|next| !next.is_empty()))
                && let Opcode::Values(other, more) = Opcode::read(next)
                && value == other
                && count + more <= SPARSE_RUN_MAX
            {
                let mut joined = Vec::with_capacity(1);
                Opcode::Values(value, count + more).write(&mut joined);
                self.bytes.splice(at..at + 2, joined);
                continue;
            }
            at += one.len();
        }
    }

    fn promote(&mut self, index: usize, value: u8) -> Result<bool, Corrupt> {
        self.make_dense()?;
        Ok(self.raise_dense(index, value))
    }

    /// Converts to the dense form. Returns false if it was dense.
    pub fn make_dense(&mut self) -> Result<bool, Corrupt> {
        if self.is_dense() {
            return Ok(false);
        }
        let mut dense = HyperLogLog { bytes: vec![0; DENSE_BYTES] };
        dense.bytes[..HEADER].copy_from_slice(&self.bytes[..HEADER]);
        dense.bytes[4] = DENSE;
        self.each(|index, value| {
            dense.raise_dense(index, value);
        })?;
        *self = dense;
        Ok(true)
    }

    /// Returns the opcodes of the sparse form.
    pub fn opcodes(&self) -> impl Iterator<Item = Opcode> {
        let mut at = HEADER;
        std::iter::from_fn(move || {
            let opcode = Opcode::read(self.bytes.get(at..).filter(|rest| !rest.is_empty())?);
            at += opcode.len();
            Some(opcode)
        })
    }

    /// Calls `f` with each register that is not 0.
    fn each(&self, mut f: impl FnMut(usize, u8)) -> Result<(), Corrupt> {
        if self.is_dense() {
            for index in 0..REGISTERS {
                let value = dense_register(&self.bytes[HEADER..], index);
                if value > 0 {
                    f(index, value);
                }
            }
            return Ok(());
        }
        let mut index = 0;
        for opcode in self.opcodes() {
            if index + opcode.span() > REGISTERS {
                return Err(Corrupt);
            }
            if let Opcode::Values(value, count) = opcode {
                (index..index + count).for_each(|index| f(index, value));
            }
            index += opcode.span();
        }
        if index == REGISTERS { Ok(()) } else { Err(Corrupt) }
    }

    /// Raises registers to those of this one.
    pub fn merge_into(&self, registers: &mut Registers) -> Result<(), Corrupt> {
        self.each(|index, value| registers.0[index] = registers.0[index].max(value))
    }

    /// Computes the estimate.
    pub fn count(&self) -> Result<u64, Corrupt> {
        let mut registers = Registers::default();
        self.merge_into(&mut registers)?;
        Ok(registers.count())
    }
}

fn dense_register(registers: &[u8], index: usize) -> u8 {
    let (at, shift) = (index * 6 / 8, index * 6 % 8);
    let high = registers.get(at + 1).copied().unwrap_or(0);
    ((u16::from(registers[at]) | u16::from(high) << 8) >> shift) as u8 & 63
}

/// Registers as bytes.
pub struct Registers(pub Box<[u8]>);

impl Default for Registers {
    fn default() -> Registers {
        Registers(vec![0; REGISTERS].into())
    }
}

impl Registers {
    /// Returns the estimate of Ertl, "New cardinality estimation algorithms for HyperLogLog sketches", in Redis' order of operations.
    pub fn count(&self) -> u64 {
        const ALPHA: f64 = 0.721_347_520_444_481_7;
        let mut histogram = [0u32; 64];
        self.0.iter().for_each(|value| histogram[usize::from(*value & 63)] += 1);
        let m = REGISTERS as f64;
        let mut z = m * tau((m - f64::from(histogram[RUN_BITS + 1])) / m);
        for count in histogram[1..=RUN_BITS].iter().rev() {
            z = (z + f64::from(*count)) * 0.5;
        }
        z += m * sigma(f64::from(histogram[0]) / m);
        (ALPHA * m * m / z).round() as u64
    }
}

fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if before == z {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x).powi(2) * y;
        if before == z {
            return z / 3.0;
        }
    }
}

/// MurmurHash64A (Appleby).
fn murmur_64a(bytes: &[u8], seed: u64) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    const R: u32 = 47;
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(M);
    let words = bytes.chunks_exact(8);
    let rest = words.remainder();
    for word in words {
        let mut word = u64::from_le_bytes(word.try_into().expect("eight bytes")).wrapping_mul(M);
        word = (word ^ word >> R).wrapping_mul(M);
        hash = (hash ^ word).wrapping_mul(M);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(M);
    }
    hash = (hash ^ hash >> R).wrapping_mul(M);
    hash ^ hash >> R
}

/// Compares registers that were written with those that are read, and estimates with true numbers. Returns the number that is wrong, as PFSELFTEST reports it.
pub fn self_test() -> Result<(), String> {
    let mut prng = stdx::prng::Prng::new(1);
    let mut log = HyperLogLog::default();
    log.make_dense().map_err(|_| "the empty one is corrupt".to_owned())?;
    let mut expected = vec![0u8; REGISTERS];
    for _ in 0..4 * REGISTERS {
        let (index, value) = (prng.below(REGISTERS as u64) as usize, prng.below(64) as u8);
        log.raise_dense(index, value);
        expected[index] = expected[index].max(value);
    }
    for (index, value) in expected.iter().enumerate() {
        let found = dense_register(&log.bytes[HEADER..], index);
        if found != *value {
            return Err(format!("TESTFAILED Register {index} should be {value} but is {found}"));
        }
    }
    let (mut log, mut added) = (HyperLogLog::default(), 0u64);
    for target in [100, 1000, 10_000, 100_000] {
        while added < target {
            log.add(&prng.next_u64().to_le_bytes(), 3000).map_err(|_| "an added one is corrupt".to_owned())?;
            added += 1;
        }
        let found = log.count().map_err(|_| "a counted one is corrupt".to_owned())?;
        // Six standard errors, which are 1.04 / sqrt(registers) each, and three elements.
        let most = (target as f64 * 6.0 * 1.04 / (REGISTERS as f64).sqrt()) as u64 + 3;
        if found.abs_diff(target) > most {
            return Err(format!("TESTFAILED Too big error. card:{target} abserr:{}", found.abs_diff(target)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_and_estimates_are_right() {
        assert_eq!(self_test(), Ok(()));
    }

    #[test]
    fn the_sparse_and_the_dense_form_hold_the_same_registers() {
        let mut prng = stdx::prng::Prng::new(3);
        for _ in 0..20 {
            let (mut sparse, mut expected) = (HyperLogLog::default(), vec![0u8; REGISTERS]);
            let span = if prng.chance(0.5) { 200 } else { REGISTERS as u64 };
            for _ in 0..600 {
                let (index, value) = (prng.below(span) as usize, prng.below(4) as u8 + 1);
                let is_raised = sparse.raise(index, value, 3000).unwrap();
                assert_eq!(is_raised, value > expected[index]);
                expected[index] = expected[index].max(value);
            }
            let mut found = Registers::default();
            sparse.merge_into(&mut found).unwrap();
            assert_eq!(&found.0[..], expected);
            let mut dense = sparse.clone();
            dense.make_dense().unwrap();
            assert_eq!(dense.count(), sparse.count());
            assert_eq!(HyperLogLog::parse(sparse.bytes().to_vec()), Some(sparse));
        }
    }

    #[test]
    fn strings_that_are_none_are_refused() {
        assert_eq!(HyperLogLog::parse(b"HYLL".to_vec()), None);
        let mut wrong = HyperLogLog::default().bytes;
        wrong[4] = 2;
        assert_eq!(HyperLogLog::parse(wrong.clone()), None);
        wrong[4] = DENSE;
        assert_eq!(HyperLogLog::parse(wrong), None);
        let mut short = HyperLogLog::default();
        short.bytes.truncate(HEADER);
        assert_eq!((short.clone().add(b"a", 3000), short.count()), (Err(Corrupt), Err(Corrupt)));
        short.bytes.extend_from_slice(&[0x7f, 0xff, 0]);
        assert_eq!(short.make_dense(), Err(Corrupt));
    }
}
