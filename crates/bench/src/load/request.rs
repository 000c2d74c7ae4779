//! Requests as ready-made pieces: only the key's digits and the value are written per request.
//!
//! The generator shares its cores with the server under test, so every nanosecond here is taken from the server (BE-4). The
//! head of a command depends only on the length of the key, so there is one head per number of digits.

use stdx::prng::Prng;

const DIGITS_MAX: usize = 20;
const POOL_EXTRA_BYTES: usize = 1 << 20;

pub struct Requests {
    set_heads: Vec<Vec<u8>>,
    get_heads: Vec<Vec<u8>>,
    value_head: Vec<u8>,
    value_bytes: usize,
    /// Values are windows into this pool; with random data they begin anywhere in it.
    pool: Vec<u8>,
    starts: u64,
    /// The command of `Traffic::Command`.
    pub template: Template,
}

/// A command whose numbers are filled in.
#[derive(Default)]
pub struct Template {
    bytes: Vec<u8>,
    /// Where the digits of each number begin.
    numbers: Vec<usize>,
}

const PLACEHOLDER: &str = "__rand_int__";

impl Template {
    pub fn new(words: &[&str]) -> Template {
        let bytes = command(words);
        let is_number = |at: &usize| bytes[*at..].starts_with(PLACEHOLDER.as_bytes());
        let numbers = (0..bytes.len()).filter(is_number).collect();
        Template { bytes, numbers }
    }

    /// Appends the command, with the next number at each place.
    pub fn write(&self, out: &mut Vec<u8>, mut number: impl FnMut() -> u64) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        for at in &self.numbers {
            let mut buffer = [b'0'; DIGITS_MAX];
            decimal(&mut buffer, number());
            out[start + at..][..PLACEHOLDER.len()].copy_from_slice(&buffer[DIGITS_MAX - PLACEHOLDER.len()..]);
        }
    }
}

pub const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";

impl Requests {
    pub fn new(prefix: &str, value_bytes: usize, random_data: bool, random: &mut Prng) -> Requests {
        let heads = |start: &str| -> Vec<Vec<u8>> {
            let head = |digits| format!("{start}${}\r\n{prefix}", prefix.len() + digits).into_bytes();
            (0..=DIGITS_MAX).map(head).collect()
        };
        let extra = if random_data { POOL_EXTRA_BYTES } else { 0 };
        let mut pool = vec![b'x'; value_bytes + extra];
        if random_data {
            random.fill(&mut pool);
        }
        Requests {
            set_heads: heads("*3\r\n$3\r\nSET\r\n"),
            get_heads: heads("*2\r\n$3\r\nGET\r\n"),
            value_head: format!("\r\n${value_bytes}\r\n").into_bytes(),
            value_bytes,
            pool,
            starts: extra as u64 + 1,
            template: Template::default(),
        }
    }

    pub fn get(&self, out: &mut Vec<u8>, key: u64) {
        let mut buffer = [0; DIGITS_MAX];
        let digits = decimal(&mut buffer, key);
        out.extend_from_slice(&self.get_heads[digits.len()]);
        out.extend_from_slice(digits);
        out.extend_from_slice(b"\r\n");
    }

    pub fn set(&self, out: &mut Vec<u8>, key: u64, random: &mut Prng) {
        let mut buffer = [0; DIGITS_MAX];
        let digits = decimal(&mut buffer, key);
        let start = if self.starts == 1 { 0 } else { random.below(self.starts) as usize };
        out.extend_from_slice(&self.set_heads[digits.len()]);
        out.extend_from_slice(digits);
        out.extend_from_slice(&self.value_head);
        out.extend_from_slice(&self.pool[start..start + self.value_bytes]);
        out.extend_from_slice(b"\r\n");
    }
}

fn decimal(buffer: &mut [u8; DIGITS_MAX], mut number: u64) -> &[u8] {
    let mut at = DIGITS_MAX;
    loop {
        at -= 1;
        buffer[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &buffer[at..];
        }
    }
}

/// A whole command as an array of bulk strings, for the few that are not part of the load.
pub fn command(words: &[&str]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    out
}

#[cfg(test)]
mod tests;
