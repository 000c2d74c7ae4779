//! The RSA key with which a client without TLS encrypts its password. It is generated at first use, kept in memory, and new after each start: a client requests
//! the public key in every login, so nothing depends on its being the same.

use std::sync::OnceLock;

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rsa::{KeySize, OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, PrivateDecryptingKey};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const BITS: usize = 2048;
/// Characters in a line of PEM.
const PEM_LINE: usize = 64;

static KEY: stdx::wait::Reason = stdx::wait::Reason::new("rsa_key");

struct KeyPair {
    private: OaepPrivateDecryptingKey,
    public_pem: String,
}

impl KeyPair {
    fn new() -> Result<KeyPair, Unspecified> {
        let private = PrivateDecryptingKey::generate(KeySize::Rsa2048)?;
        let public: PublicKeyX509Der<'_> = private.public_key().as_der()?;
        let public_pem = pem(public.as_ref());
        Ok(KeyPair { private: OaepPrivateDecryptingKey::new(private)?, public_pem })
    }
}

#[derive(Default)]
pub struct RsaKey(OnceLock<KeyPair>);

impl RsaKey {
    fn key(&self) -> &KeyPair {
        if let Some(key) = self.0.get() {
            return key;
        }
        // Generation takes some tenths of a second; other logins wait for the same key.
        let _waiting = stdx::wait::announce(&KEY);
        self.0.get_or_init(|| KeyPair::new().expect("the kernel has random bytes"))
    }

    /// Returns the public key as PEM.
    pub fn public_pem(&self) -> &str {
        &self.key().public_pem
    }

    /// Returns whether the bytes have the length of the key's ciphertexts.
    pub fn has_length(&self, sealed: &[u8]) -> bool {
        sealed.len() == BITS / 8
    }

    /// Decrypts a ciphertext of the public key, with OAEP and SHA-1 as MySQL's clients use it. The time is independent of the key and the text.
    pub fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        if !self.has_length(sealed) {
            return None;
        }
        let key = &self.key().private;
        let mut text = vec![0; key.min_output_size()];
        let length = key.decrypt(&OAEP_SHA1_MGF1SHA1, sealed, &mut text, None).ok()?.len();
        text.truncate(length);
        Some(text)
    }
}

/// Encodes a SubjectPublicKeyInfo as PEM.
fn pem(der: &[u8]) -> String {
    let letters = STANDARD.encode(der);
    let lines = letters.as_bytes().chunks(PEM_LINE).map(|line| String::from_utf8_lossy(line) + "\n");
    format!("-----BEGIN PUBLIC KEY-----\n{}-----END PUBLIC KEY-----\n", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_what_was_encrypted_for_this_key_opens() {
        let rsa_key = RsaKey::default();
        for bad in [&[][..], &[1; 255], &[1; 256], &[0xff; 256], &[1; 257]] {
            assert_eq!(rsa_key.open(bad), None);
        }
        assert!(rsa_key.public_pem().starts_with("-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A"));
        assert!(rsa_key.public_pem().lines().all(|line| line.len() <= PEM_LINE));
    }
}
