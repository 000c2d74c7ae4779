//! SCRAM-SHA-256 (RFC 5802, RFC 7677): a verifier of a password, from which the password cannot be computed and with which nobody can log in.
//!
//! The salted password is PBKDF2 of the password. Two keys are derived from it: the client proves that it knows the first one, of which only the hash is
//! stored, and the server proves itself by the second. Passwords are prepared by SASLprep (RFC 4013); those that it forbids are used as they are, as in
//! PostgreSQL.

use sha2::{Digest, Sha256};

use crate::digest::sha256;

/// The iteration count of new verifiers, as in PostgreSQL.
pub const ITERATIONS: u32 = 4096;
/// The largest iteration count that a verifier of another server may have: each check of a plain password takes as many steps.
pub const ITERATIONS_MAX: u32 = 1 << 20;
const SALT_BYTES: usize = 16;
const SALT_MAX: usize = 255;
const BLOCK: usize = 64;

/// A verifier of one password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScramVerifier {
    pub iterations: u32,
    pub salt: Vec<u8>,
    pub stored_key: [u8; 32],
    pub server_key: [u8; 32],
}

impl ScramVerifier {
    /// Makes a verifier with a new salt.
    pub fn new(password: &[u8]) -> ScramVerifier {
        let mut salt = [0; SALT_BYTES];
        os::entropy(&mut salt).expect("the kernel has random bytes");
        ScramVerifier::with_salt(password, &salt, ITERATIONS)
    }

    pub fn with_salt(password: &[u8], salt: &[u8], iterations: u32) -> ScramVerifier {
        let salted = salted_password(&prepared(password), salt, iterations);
        ScramVerifier {
            iterations,
            salt: salt.to_vec(),
            stored_key: sha256(&hmac(&salted, b"Client Key")),
            server_key: hmac(&salted, b"Server Key"),
        }
    }

    /// Returns a verifier that accepts no password and is as slow as a new one. Its salt depends on `seed` alone.
    pub fn decoy(seed: &[u8]) -> ScramVerifier {
        let salt = sha256(seed)[..SALT_BYTES].to_vec();
        ScramVerifier { iterations: ITERATIONS, salt, stored_key: [0; 32], server_key: [0; 32] }
    }

    /// Returns true if this is the password. Takes a millisecond or more.
    pub fn accepts(&self, password: &[u8]) -> bool {
        let tried = ScramVerifier::with_salt(password, &self.salt, self.iterations);
        is_same(&tried.stored_key, &self.stored_key)
    }

    /// Returns true if the client that has sent `proof` knows the password.
    pub fn is_proof(&self, auth_message: &[u8], proof: &[u8; 32]) -> bool {
        let signature = hmac(&self.stored_key, auth_message);
        let client_key: [u8; 32] = std::array::from_fn(|at| proof[at] ^ signature[at]);
        is_same(&sha256(&client_key), &self.stored_key)
    }

    /// Returns the server's proof for the client.
    pub fn server_signature(&self, auth_message: &[u8]) -> [u8; 32] {
        hmac(&self.server_key, auth_message)
    }

    pub fn is_valid(&self) -> bool {
        (1..=ITERATIONS_MAX).contains(&self.iterations) && !self.salt.is_empty() && self.salt.len() <= SALT_MAX
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let iterations = self.iterations.to_le_bytes();
        [&iterations[..], &self.stored_key, &self.server_key, &self.salt].concat()
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<ScramVerifier> {
        let (iterations, rest) = bytes.split_first_chunk()?;
        let (stored_key, rest) = rest.split_first_chunk()?;
        let (server_key, salt) = rest.split_first_chunk()?;
        let verifier = ScramVerifier {
            iterations: u32::from_le_bytes(*iterations),
            salt: salt.to_vec(),
            stored_key: *stored_key,
            server_key: *server_key,
        };
        verifier.is_valid().then_some(verifier)
    }
}

/// Prepares a password by SASLprep; one that is no text, or is forbidden, stays as it is.
fn prepared(password: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(password).ok();
    let text = text.and_then(|text| stringprep::saslprep(text).ok());
    text.filter(|text| !text.is_empty()).map_or_else(|| password.to_vec(), |text| text.as_bytes().to_vec())
}

/// Compares in constant time.
fn is_same(one: &[u8; 32], two: &[u8; 32]) -> bool {
    let difference = one.iter().zip(two).fold(0, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(difference) == 0
}

/// The two inner states of HMAC-SHA-256 under one key.
struct Hmac {
    inner: Sha256,
    outer: Sha256,
}

impl Hmac {
    fn new(key: &[u8]) -> Hmac {
        let mut block = [0; BLOCK];
        match key.len() <= BLOCK {
            true => block[..key.len()].copy_from_slice(key),
            false => block[..32].copy_from_slice(&sha256(key)),
        }
        let keyed = |pad: u8| Sha256::new_with_prefix(block.map(|byte| byte ^ pad));
        Hmac { inner: keyed(0x36), outer: keyed(0x5c) }
    }

    fn of(&self, message: &[u8]) -> [u8; 32] {
        let inner = self.inner.clone().chain_update(message).finalize();
        self.outer.clone().chain_update(inner).finalize().into()
    }
}

fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    Hmac::new(key).of(message)
}

/// Computes PBKDF2 with HMAC-SHA-256; its output has one block.
fn salted_password(password: &[u8], salt: &[u8], iterations: u32) -> [u8; 32] {
    let hmac = Hmac::new(password);
    let mut step = hmac.of(&[salt, &1_u32.to_be_bytes()].concat());
    let mut all = step;
    for _ in 1..iterations {
        step = hmac.of(&step);
        all.iter_mut().zip(step).for_each(|(byte, other)| *byte ^= other);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    /// The exchange of RFC 7677, section 3.
    #[test]
    fn the_published_exchange_holds() {
        let verifier = ScramVerifier::with_salt(b"pencil", &bytes("5b6d99689d12358eeca04b141236fa81"), 4096);
        let message = b"n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let proof = bytes("747cdb65aa56224e2352137e52d7bdcad6a0f738df30782caa69a2cfb0277554");
        let mut proof: [u8; 32] = proof.try_into().unwrap();
        assert!(verifier.is_proof(message, &proof));
        let signature = bytes("eabae24d1062db75a9451ff0b6ea7e98c8546549ff741e672d3251b2397de46e");
        assert_eq!(verifier.server_signature(message)[..], signature);
        proof[31] ^= 1;
        assert!(!verifier.is_proof(message, &proof));
    }

    #[test]
    fn a_verifier_accepts_its_password_alone_and_comes_back() {
        let verifier = ScramVerifier::new(b"se cret");
        assert!(verifier.accepts(b"se cret") && !verifier.accepts(b"se cre") && !verifier.accepts(b""));
        assert_eq!(ScramVerifier::decode(&verifier.encode()).as_ref(), Some(&verifier));
        assert_ne!(ScramVerifier::new(b"se cret").salt, verifier.salt);
        assert_eq!(ScramVerifier::decode(&verifier.encode()[..68]), None, "no salt");
        assert_eq!(ScramVerifier::decode(b""), None);
    }

    #[test]
    fn passwords_are_prepared_and_forbidden_ones_are_taken_as_they_are() {
        // A soft hyphen is dropped, a ligature is taken apart, a space of any kind is a space.
        assert_eq!(prepared("a\u{ad}\u{fb01}\u{a0}".as_bytes()), "afi ".as_bytes());
        assert_eq!(prepared(b"a\tb"), b"a\tb", "control characters are forbidden");
        assert_eq!(prepared(b"\xff"), b"\xff");
        assert_eq!(prepared("\u{ad}".as_bytes()), "\u{ad}".as_bytes(), "nothing would be left");
        assert!(ScramVerifier::new("\u{2168}".as_bytes()).accepts(b"IX"));
    }

    #[test]
    fn a_decoy_depends_on_its_seed_and_accepts_nothing() {
        assert_eq!(ScramVerifier::decoy(b"ann"), ScramVerifier::decoy(b"ann"));
        assert_ne!(ScramVerifier::decoy(b"ann").salt, ScramVerifier::decoy(b"bob").salt);
        assert!(!ScramVerifier::decoy(b"ann").accepts(b"") && !ScramVerifier::decoy(b"ann").is_proof(b"", &[0; 32]));
    }
}
