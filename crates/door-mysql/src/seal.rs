//! The RSA key that a client without TLS seals its password for. Made when it is first asked for, kept in memory, new after each start: a client
//! asks for the public half in every login, so nothing depends on it being the same.

use std::sync::OnceLock;

use rsa::pkcs8::{EncodePublicKey, LineEnding};
use rsa::rand_core::OsRng;
use rsa::{Oaep, RsaPrivateKey};
use sha1::Sha1;

const BITS: usize = 2048;

static KEY: stdx::wait::Reason = stdx::wait::Reason::new("rsa_key");

#[derive(Default)]
pub struct Seal(OnceLock<(RsaPrivateKey, String)>);

impl Seal {
    fn key(&self) -> &(RsaPrivateKey, String) {
        if let Some(key) = self.0.get() {
            return key;
        }
        // A second or so, and others who come meanwhile wait for the same key.
        let _waiting = stdx::wait::announce(&KEY);
        self.0.get_or_init(|| {
            let key = RsaPrivateKey::new(&mut OsRng, BITS).expect("the kernel has random bytes");
            let pem = key.to_public_key().to_public_key_pem(LineEnding::LF).expect("a fresh key can be written");
            (key, pem)
        })
    }

    /// The public half, as text.
    pub fn public_pem(&self) -> &str {
        &self.key().1
    }

    /// Only what is so long can have been sealed.
    pub fn has_length(&self, sealed: &[u8]) -> bool {
        sealed.len() == BITS / 8
    }

    /// What was sealed with the public half. Blinded, so that the time it takes tells nothing of the key.
    pub fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        if !self.has_length(sealed) {
            return None;
        }
        self.key().0.decrypt_blinded(&mut OsRng, Oaep::new::<Sha1>(), sealed).ok()
    }
}
