//! Password verifiers as MySQL keeps them: never the password, and in the text form that MySQL shows and dumps of other servers contain.
//!
//! `caching_sha2_password` keeps a salted SHA-256 crypt (Drepper 2007) of 5,000 rounds, so that guessing from a stolen file is expensive. It takes some
//! milliseconds to compute, which a door does once and then remembers. `mysql_native_password` keeps SHA1(SHA1(password)), cheap and unsalted, for clients that
//! support nothing else.

use crate::digest::{sha1, sha256};

/// Longest password of caching_sha2_password in bytes, as in MySQL. The crypt takes time and memory with the square of the length.
pub const PASSWORD_MAX: usize = 256;
const SALT_BYTES: usize = 20;
const CRYPT_BYTES: usize = 43;
const ROUNDS: usize = 5000;
/// Prefix of a caching_sha2_password text: `$A$`, rounds in thousands, `$`. Salt and crypt follow.
const HEAD: &[u8] = b"$A$005$";
const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// One password, as one of MySQL's methods verifies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verifier {
    CachingSha2 { salt: [u8; SALT_BYTES], crypt: [u8; CRYPT_BYTES] },
    Native { double_sha1: [u8; 20] },
}

impl Verifier {
    /// Makes a verifier for `caching_sha2_password` with a new salt. The password must not be longer than `PASSWORD_MAX`.
    pub fn caching_sha2(password: &[u8]) -> Verifier {
        assert!(password.len() <= PASSWORD_MAX);
        let mut salt = [0; SALT_BYTES];
        os::entropy(&mut salt).expect("the kernel has random bytes");
        // No `$`, which ends a salt.
        salt.iter_mut().for_each(|byte| *byte = ALPHABET[usize::from(*byte & 63)]);
        Verifier::CachingSha2 { salt, crypt: crypt(password, &salt) }
    }

    /// Returns a verifier that accepts no password and is as slow as any of caching_sha2.
    pub fn decoy() -> Verifier {
        Verifier::CachingSha2 { salt: [b'.'; SALT_BYTES], crypt: [0; CRYPT_BYTES] }
    }

    /// Makes a verifier for `mysql_native_password`.
    pub fn native(password: &[u8]) -> Verifier {
        Verifier::Native { double_sha1: sha1(&sha1(password)) }
    }

    /// Returns the name of MySQL's method.
    pub fn plugin(&self) -> &'static str {
        match self {
            Verifier::CachingSha2 { .. } => "caching_sha2_password",
            Verifier::Native { .. } => "mysql_native_password",
        }
    }

    /// Returns true if this is the password. Takes milliseconds for caching_sha2, which accepts none longer than `PASSWORD_MAX`.
    pub fn accepts(&self, password: &[u8]) -> bool {
        match self {
            Verifier::CachingSha2 { salt, crypt: known } => {
                let tried = &password[..password.len().min(PASSWORD_MAX)];
                is_same(known, &crypt(tried, salt)) && tried.len() == password.len()
            }
            Verifier::Native { double_sha1 } => is_same(double_sha1, &sha1(&sha1(password))),
        }
    }

    /// Returns the text of MySQL's `mysql.user.authentication_string`. A salt is bytes, not always text.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Verifier::CachingSha2 { salt, crypt } => [HEAD, salt, crypt].concat(),
            Verifier::Native { double_sha1 } => {
                let digits = double_sha1.iter().map(|byte| format!("{byte:02X}")).collect::<String>();
                format!("*{digits}").into_bytes()
            }
        }
    }

    /// Parses the text that `encode` returns; its first letter names the method.
    pub fn decode(text: &[u8]) -> Option<Verifier> {
        if let Some(rest) = text.strip_prefix(HEAD) {
            let (salt, crypt) = rest.split_first_chunk::<SALT_BYTES>()?;
            return Some(Verifier::CachingSha2 { salt: *salt, crypt: crypt.try_into().ok()? });
        }
        let digits = std::str::from_utf8(text.strip_prefix(b"*")?).ok()?;
        if digits.len() != 40 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let byte = |at: usize| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).expect("two digits");
        Some(Verifier::Native { double_sha1: std::array::from_fn(byte) })
    }
}

/// Compares in constant time.
fn is_same(one: &[u8], two: &[u8]) -> bool {
    let difference = one.iter().zip(two).fold(u8::from(one.len() != two.len()), |all, (a, b)| all | (a ^ b));
    std::hint::black_box(difference) == 0
}

/// Computes the SHA-256 crypt.
fn crypt(password: &[u8], salt: &[u8]) -> [u8; CRYPT_BYTES] {
    let repeat = |digest: [u8; 32], length: usize| digest.iter().copied().cycle().take(length).collect::<Vec<u8>>();
    let other = sha256(&[password, salt, password].concat());
    let mut first = [password, salt, &repeat(other, password.len())].concat();
    let mut bits = password.len();
    while bits > 0 {
        first.extend_from_slice(if bits & 1 == 1 { &other } else { password });
        bits >>= 1;
    }
    let mut digest = sha256(&first);
    let password_bytes = repeat(sha256(&password.repeat(password.len())), password.len());
    let salt_bytes = repeat(sha256(&salt.repeat(16 + usize::from(digest[0]))), salt.len());
    let mut block = Vec::with_capacity(2 * password.len() + salt.len() + 32);
    for round in 0..ROUNDS {
        block.clear();
        let odd = round % 2 == 1;
        block.extend_from_slice(if odd { &password_bytes } else { &digest });
        if round % 3 != 0 {
            block.extend_from_slice(&salt_bytes);
        }
        if round % 7 != 0 {
            block.extend_from_slice(&password_bytes);
        }
        block.extend_from_slice(if odd { &digest } else { &password_bytes });
        digest = sha256(&block);
    }
    spell(&digest)
}

/// Encodes the digest in crypt's letters: three bytes, ten apart and rotating, to four letters; the last two bytes to three.
fn spell(digest: &[u8; 32]) -> [u8; CRYPT_BYTES] {
    let mut text = [0; CRYPT_BYTES];
    for (group, letters) in text.chunks_mut(4).enumerate() {
        let three = match group {
            10 => [0, digest[31], digest[30]],
            _ => {
                let at = |turn: usize| digest[(group + 10 * ((turn + 2 * group) % 3)) % 30];
                [at(0), at(1), at(2)]
            }
        };
        let mut bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for letter in letters {
            *letter = ALPHABET[(bits & 63) as usize];
            bits >>= 6;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(salt: &[u8; SALT_BYTES], password: &str) -> String {
        let verifier = Verifier::CachingSha2 { salt: *salt, crypt: crypt(password.as_bytes(), salt) };
        String::from_utf8_lossy(&verifier.encode()[HEAD.len() + SALT_BYTES..]).into_owned()
    }

    /// Drepper's own vectors have shorter salts; `crypt` takes any.
    #[test]
    fn the_published_vector_of_sha256_crypt_holds() {
        let crypt = crypt(b"Hello world!", b"saltstring");
        assert_eq!(std::str::from_utf8(&crypt).unwrap(), "5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5");
    }

    #[test]
    fn a_verifier_made_by_mysql_accepts_its_password() {
        let salt = [
            0xf9, 0xcc, 0x98, 0xce, 0x08, 0x89, 0x29, 0x24, 0xf5, 0x0a, 0x21, 0x3b, 0x6b, 0xc5, 0x71, 0xa2, 0xc1, 0x17,
            0x78, 0xc5,
        ];
        assert_eq!(text(&salt, "hashcat"), "bTy95Y99eAME1dwEkHOA1ndHGBWz.1bxSSRkuTXFGV/");
    }

    #[test]
    fn both_kinds_come_back_from_their_text_and_accept_only_their_password() {
        for verifier in [Verifier::caching_sha2(b"se cret"), Verifier::native(b"se cret")] {
            let again = Verifier::decode(&verifier.encode());
            assert_eq!(again.as_ref(), Some(&verifier));
            assert!(verifier.accepts(b"se cret"));
            assert!(!verifier.accepts(b"se cre") && !verifier.accepts(b""));
        }
        let known = b"*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19";
        assert_eq!(Verifier::native(b"password").encode(), known);
    }

    #[test]
    fn a_long_password_is_wrong_and_costs_no_more() {
        let longest = vec![b'x'; PASSWORD_MAX];
        let verifier = Verifier::caching_sha2(&longest);
        assert!(verifier.accepts(&longest));
        // Its crypt would need the square of this in memory.
        assert!(!verifier.accepts(&vec![b'x'; 64 << 20]));
        assert!(!verifier.accepts(&[&longest[..], b"x"].concat()));
        assert!(!Verifier::decoy().accepts(b""));
    }

    #[test]
    fn other_text_is_no_verifier() {
        for bad in [
            "",
            "*",
            "$A$005$",
            "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E1",
            "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1EXY",
        ] {
            assert_eq!(Verifier::decode(bad.as_bytes()), None, "{bad}");
        }
        let mut long = Verifier::caching_sha2(b"x").encode();
        long.push(b'.');
        assert_eq!(Verifier::decode(&long), None);
    }
}
