//! The hash of a field or member, which orders the elements of a hash or a set: 48 bits of SipHash-1-3.
//!
//! Elements in the order of a hash can be sampled uniformly, and a scan's position is a number that stays valid over changes and restarts. The hash is
//! durable, so the key of the hash function is stored in the catalog before the first element. It is secret: a client that knew it could choose members that
//! collide and make samples and scans slow.

use std::sync::OnceLock;

use crate::digest::sha256;
use crate::error::{Error, Result};
use crate::keyspace::key::HASHES;
use crate::store::Store;

const SECRET_KEY: &[u8] = b"member secret";

/// The key of the hash function.
#[derive(Default)]
pub(crate) struct MemberHash {
    secret: OnceLock<[u64; 2]>,
}

impl MemberHash {
    /// Reads the secret. A database that never had elements has none.
    pub fn load(&self, store: &Store) -> Result<()> {
        let mut bytes = Vec::new();
        if store.catalog.get(SECRET_KEY, &mut bytes)?.present {
            self.take(&bytes)?;
        }
        Ok(())
    }

    /// Takes over the secret of another one, if it has any.
    pub fn copy(&self, other: &MemberHash) {
        if let Some(secret) = other.secret.get() {
            self.secret.get_or_init(|| *secret);
        }
    }

    fn take(&self, bytes: &[u8]) -> Result<()> {
        let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let words = word(0).zip(word(8)).filter(|_| bytes.len() == 16);
        let (one, two) = words.ok_or_else(|| Error::corrupt("the catalog's secret of members has the wrong length"))?;
        self.secret.get_or_init(|| [one, two]);
        Ok(())
    }

    /// Stores a secret drawn from `random`, unless there is one. WAL order makes it durable before any element.
    pub fn ensure(&self, store: &Store, random: u64) -> Result<()> {
        if self.secret.get().is_some() {
            return Ok(());
        }
        let drawn = sha256(&[SECRET_KEY, &random.to_le_bytes()].concat());
        let done = store.catalog.modify(SECRET_KEY, None, |old, change| match old {
            Some(old) => old.value.to_vec(),
            None => {
                change.put(&[&drawn[..16]]);
                drawn[..16].to_vec()
            }
        })?;
        self.take(&done.result)
    }

    /// Returns the hash; `None` while the database has no secret, and so no elements.
    pub fn of(&self, member: &[u8]) -> Option<u64> {
        self.secret.get().map(|secret| siphash(*secret, member) % HASHES)
    }
}

/// SipHash-1-3 (Aumasson and Bernstein).
fn siphash([k0, k1]: [u64; 2], bytes: &[u8]) -> u64 {
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        compress(&mut v, u64::from_le_bytes(word.try_into().expect("eight bytes")));
    }
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    last[7] = bytes.len() as u8;
    compress(&mut v, u64::from_le_bytes(last));
    v[2] ^= 0xff;
    (0..3).for_each(|_| round(&mut v));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

fn compress(v: &mut [u64; 4], word: u64) {
    v[3] ^= word;
    round(v);
    v[0] ^= word;
}

fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[2] = v[2].rotate_left(32);
}

#[cfg(test)]
mod tests {
    use std::hash::Hasher;

    use super::*;

    /// The standard library's default hasher is SipHash-1-3 with a key of zeros.
    #[test]
    fn the_hash_is_siphash_1_3() {
        for len in [0, 1, 7, 8, 9, 63, 600] {
            let bytes: Vec<u8> = (0..len).map(|at| at as u8).collect();
            let mut std = std::collections::hash_map::DefaultHasher::new();
            std.write(&bytes);
            assert_eq!(siphash([0, 0], &bytes), std.finish(), "{len}");
        }
        assert_ne!(siphash([1, 2], b"a"), siphash([1, 3], b"a"));
    }
}
