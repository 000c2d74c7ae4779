//! Authentication: MySQL's two methods over the one list of accounts.
//!
//! The client answers a random challenge (the scramble) with a digest that only the password yields. For `mysql_native_password` the account's verifier
//! suffices to check the answer. For `caching_sha2_password` it does not, by design: the first time, the password itself has to arrive, through TLS or
//! encrypted for the server's RSA key, and is checked against the slow hash (or a Redis digest). From then on SHA256(SHA256(password)) is cached in memory, and
//! the fast answer is enough.
//!
//! ```text
//!   answer ──other method──► switch ──► answer again
//!     │ digest cached: fast            │ digest not cached
//!     ▼                                ▼
//!   accepted / denied      full authentication ──TLS, or loopback: password─► checked
//!                               └─key requested─► key ─► encrypted password ─►
//! ```
//! Newer MariaDB clients treat a loopback connection as private as TLS and send the password in the clear.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use engine::{Account, Accounts, PASSWORD_MAX, Verifier, sha1, sha256};
use stdx::sync::Mutex;

use crate::protocol::SCRAMBLE_LEN;
use crate::rsa::RsaKey;

#[cfg(test)]
mod tests;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plugin {
    CachingSha2,
    Native,
}

impl Plugin {
    pub fn name(self) -> &'static str {
        match self {
            Plugin::CachingSha2 => "caching_sha2_password",
            Plugin::Native => "mysql_native_password",
        }
    }

    /// Returns the method to try first for an account.
    fn of(account: &Account) -> Plugin {
        match account.verifier {
            Some(Verifier::Native { .. }) => Plugin::Native,
            _ => Plugin::CachingSha2,
        }
    }

    /// Returns the method to try for an account. An unknown name gets the method of some account, always the same one for the same name, so that the method
    /// does not reveal which names exist (DM-8).
    fn to_try(ground: &LoginContext<'_>, account: Option<&Account>, user: &str) -> Plugin {
        if let Some(account) = account {
            return Plugin::of(account);
        }
        let all: Vec<Plugin> = ground.accounts.list().iter().map(|account| Plugin::of(account)).collect();
        let native = all.iter().filter(|plugin| **plugin == Plugin::Native).count() as u64;
        let is_native = ground.digest_cache.decoys.hash_one(user) % (all.len() as u64).max(1) < native;
        if is_native { Plugin::Native } else { Plugin::CachingSha2 }
    }
}

/// The method named in the greeting.
pub const OFFERED: Plugin = Plugin::CachingSha2;

const QUICK_ACCEPTED: u8 = 3;
const SEND_IT_ALL: u8 = 4;
const KEY_WANTED: u8 = 2;

/// The context of a login: everything besides the client's packets.
pub struct LoginContext<'a> {
    pub accounts: &'a Accounts,
    pub digest_cache: &'a DigestCache,
    pub rsa_key: &'a RsaKey,
    /// The connection uses TLS.
    pub is_encrypted: bool,
    /// The client is on this machine: its packets cross no network.
    pub is_local: bool,
    /// The client can handle an expired password.
    pub handles_expired: bool,
}

/// Why a login is denied although the password is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenyReason {
    No,
    Locked,
    Expired,
}

/// The server's next step in a login.
#[derive(Debug, PartialEq, Eq)]
pub enum LoginStep {
    /// Send this payload; the client will answer.
    Say(Vec<u8>),
    /// Accept, and send the payload before the OK packet unless it is empty.
    Accept(Arc<Account>, Vec<u8>),
    Deny,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expects {
    /// No password.
    Nothing,
    /// A digest computed with this method.
    Digest(Plugin),
    /// The password, or a request for the public key.
    Password,
    /// The encrypted password.
    Sealed,
}

/// A login in progress.
#[derive(Debug)]
pub struct LoginExchange {
    pub user: String,
    scramble: [u8; SCRAMBLE_LEN],
    account: Option<Arc<Account>>,
    expects: Expects,
    /// The client has sent a password or a proof of one.
    pub has_password: bool,
    pub deny_reason: DenyReason,
}

impl LoginExchange {
    /// Starts with the handshake response.
    pub fn begin(
        ground: &LoginContext<'_>,
        user: &str,
        host: &str,
        scramble: [u8; SCRAMBLE_LEN],
        plugin: &[u8],
        response: &[u8],
    ) -> (LoginExchange, LoginStep) {
        let account = sql_mysql::rights::find(ground.accounts, user, host);
        let wanted = Plugin::to_try(ground, account.as_deref(), user);
        let mut login = LoginExchange {
            user: user.to_string(),
            scramble,
            account,
            expects: Expects::Digest(wanted),
            has_password: is_password(response),
            deny_reason: DenyReason::No,
        };
        if login.account.as_ref().is_some_and(|account| account.nopass) {
            let step = login.log_in(ground, plugin, response);
            return (login, step);
        }
        // A client that names no method uses the old one.
        let named = if plugin.is_empty() { Plugin::Native.name().as_bytes() } else { plugin };
        let step = if named == wanted.name().as_bytes() {
            login.check_digest(ground, wanted, response)
        } else {
            login.switch(wanted)
        };
        (login, step)
    }

    /// Handles an account without a password: none may arrive, in any order of packets. A client whose method is not the one offered in the greeting has not
    /// received its scramble, and may accept no OK before it has.
    fn log_in(&mut self, ground: &LoginContext<'_>, plugin: &[u8], response: &[u8]) -> LoginStep {
        let plugin = match plugin {
            b"" => return self.accept_none(ground, response),
            name if name == OFFERED.name().as_bytes() => return self.accept_none(ground, response),
            name if name == Plugin::Native.name().as_bytes() => Plugin::Native,
            _ => OFFERED,
        };
        self.expects = Expects::Nothing;
        self.switch(plugin)
    }

    fn accept_none(&mut self, ground: &LoginContext<'_>, response: &[u8]) -> LoginStep {
        self.has_password = is_password(response);
        match self.account.clone() {
            Some(account) if !self.has_password => self.proved(ground, account, Vec::new()),
            _ => LoginStep::Deny,
        }
    }

    /// Decides whether the account may enter, now that the password is proved.
    fn proved(&mut self, ground: &LoginContext<'_>, account: Arc<Account>, word: Vec<u8>) -> LoginStep {
        self.deny_reason = match &account {
            account if !account.enabled => DenyReason::Locked,
            account if account.expired && !ground.handles_expired => DenyReason::Expired,
            _ => DenyReason::No,
        };
        let is_seen = account.needs_tls && !ground.is_encrypted;
        if self.deny_reason != DenyReason::No || is_seen { LoginStep::Deny } else { LoginStep::Accept(account, word) }
    }

    /// Returns whether the client has been told that its first proof was not enough.
    pub fn quick_proof_failed(&self) -> bool {
        matches!(self.expects, Expects::Password | Expects::Sealed)
    }

    /// Continues with the client's next packet.
    pub fn resume(&mut self, ground: &LoginContext<'_>, payload: &[u8]) -> LoginStep {
        match self.expects {
            Expects::Nothing => self.accept_none(ground, payload),
            Expects::Digest(plugin) => {
                self.has_password = is_password(payload);
                self.check_digest(ground, plugin, payload)
            }
            Expects::Password if ground.is_encrypted => self.check_password(ground, payload),
            Expects::Password if payload == [KEY_WANTED] => {
                self.expects = Expects::Sealed;
                LoginStep::Say([&[1], ground.rsa_key.public_pem().as_bytes()].concat())
            }
            Expects::Password if ground.is_local && !ground.rsa_key.has_length(payload) => {
                self.check_password(ground, payload)
            }
            // A client may have cached the public key (DM-6).
            Expects::Password | Expects::Sealed => match ground.rsa_key.open(payload) {
                Some(mut password) => {
                    password.iter_mut().zip(self.scramble.iter().cycle()).for_each(|(byte, salt)| *byte ^= salt);
                    self.check_password(ground, &password)
                }
                None => LoginStep::Deny,
            },
        }
    }

    fn switch(&mut self, wanted: Plugin) -> LoginStep {
        let mut payload = vec![0xfe];
        payload.extend_from_slice(wanted.name().as_bytes());
        payload.push(0);
        payload.extend_from_slice(&self.scramble);
        payload.push(0);
        LoginStep::Say(payload)
    }

    fn check_digest(&mut self, ground: &LoginContext<'_>, plugin: Plugin, response: &[u8]) -> LoginStep {
        if !self.has_password {
            return match self.account.clone() {
                Some(account) if account.has_empty_password() => self.proved(ground, account, Vec::new()),
                _ => LoginStep::Deny,
            };
        }
        match plugin {
            Plugin::Native => self.check_native(ground, response),
            Plugin::CachingSha2 => {
                let known = self.account.as_ref().and_then(|account| ground.digest_cache.of(account));
                let is_proved = is_proof(response, &known.unwrap_or_default(), &self.scramble) && known.is_some();
                match &self.account {
                    Some(account) if is_proved => self.proved(ground, account.clone(), vec![1, QUICK_ACCEPTED]),
                    // Unknown accounts get the same answer, so that clients cannot tell them apart (DM-8).
                    _ => {
                        self.expects = Expects::Password;
                        LoginStep::Say(vec![1, SEND_IT_ALL])
                    }
                }
            }
        }
    }

    /// Checks `response` = SHA1(password) XOR SHA1(scramble + SHA1(SHA1(password))).
    fn check_native(&mut self, ground: &LoginContext<'_>, response: &[u8]) -> LoginStep {
        let verifier = self.account.as_ref().and_then(|account| account.verifier.as_ref());
        let (double_sha1, is_known) = match verifier {
            Some(Verifier::Native { double_sha1 }) => (*double_sha1, true),
            // An unknown account takes the same steps (DM-8).
            _ => ([0; 20], false),
        };
        let Ok(mut single) = <[u8; 20]>::try_from(response) else { return LoginStep::Deny };
        let salted = sha1(&[&self.scramble[..], &double_sha1].concat());
        single.iter_mut().zip(salted).for_each(|(byte, salt)| *byte ^= salt);
        let is_right = is_same(&sha1(&single), &double_sha1) && is_known;
        match self.account.clone() {
            Some(account) if is_right => self.proved(ground, account, Vec::new()),
            _ => LoginStep::Deny,
        }
    }

    /// Checks the password; `text` is the password and a zero byte.
    fn check_password(&mut self, ground: &LoginContext<'_>, text: &[u8]) -> LoginStep {
        let Some((0, password)) = text.split_last() else { return LoginStep::Deny };
        let is_right = password.len() <= PASSWORD_MAX && Account::has_password(self.account.as_deref(), password);
        match self.account.clone() {
            Some(account) if is_right => {
                ground.digest_cache.keep(&account, password);
                self.proved(ground, account, Vec::new())
            }
            _ => LoginStep::Deny,
        }
    }
}

/// Returns whether the response holds a password. An empty password is sent as an empty response or as a single zero byte.
fn is_password(response: &[u8]) -> bool {
    !response.is_empty() && response != [0]
}

/// Checks `response` = SHA256(password) XOR SHA256(SHA256(SHA256(password)) + scramble), where `known` is SHA256(SHA256(password)).
fn is_proof(response: &[u8], known: &[u8; 32], scramble: &[u8; SCRAMBLE_LEN]) -> bool {
    let Ok(mut single) = <[u8; 32]>::try_from(response) else { return false };
    let salted = sha256(&[&known[..], scramble].concat());
    single.iter_mut().zip(salted).for_each(|(byte, salt)| *byte ^= salt);
    is_same(&sha256(&single), known)
}

/// Compares in constant time.
fn is_same(one: &[u8], two: &[u8]) -> bool {
    let difference = one.iter().zip(two).fold(0, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(difference) == 0
}

/// SHA256(SHA256(password)) of accounts that have completed a full authentication. An entry is valid as long as its account is unchanged (DM-7).
#[derive(Default)]
pub struct DigestCache {
    known: Mutex<HashMap<String, CachedDigest>>,
    /// Picks the method that an unknown name appears to have.
    decoys: RandomState,
}

struct CachedDigest {
    account: Arc<Account>,
    digest: [u8; 32],
}

impl DigestCache {
    fn of(&self, account: &Arc<Account>) -> Option<[u8; 32]> {
        let digest_cache = self.known.lock();
        let known = digest_cache.get(&account.name)?;
        Arc::ptr_eq(&known.account, account).then_some(known.digest)
    }

    fn keep(&self, account: &Arc<Account>, password: &[u8]) {
        let digest = sha256(&sha256(password));
        self.known.lock().insert(account.name.clone(), CachedDigest { account: account.clone(), digest });
    }
}

/// Returns twenty random bytes without zero and `$`, as some clients require.
pub fn new_scramble() -> [u8; SCRAMBLE_LEN] {
    let mut scramble = [0; SCRAMBLE_LEN];
    os::entropy(&mut scramble).expect("the kernel has random bytes");
    scramble.map(|byte| match byte & 0x7f {
        0 => 1,
        b'$' => b'%',
        byte => byte,
    })
}
