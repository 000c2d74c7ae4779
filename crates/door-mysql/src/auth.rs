//! Who may enter: MySQL's two methods over the one list of accounts.
//!
//! A client answers a scramble with a digest that only the password gives. For `mysql_native_password` the account's verifier suffices to check that. For
//! `caching_sha2_password` it does not, on purpose: the first time, the password itself has to come, through TLS or sealed for our RSA key, and is checked
//! against the slow crypt (or a Redis digest). From then on SHA256(SHA256(password)) is remembered in memory, and the quick answer is enough.
//!
//! ```text
//!   answer ──other method──► switch ──► answer again
//!     │ digest known: quick            │ digest unknown
//!     ▼                                ▼
//!   accepted / denied      "send it all" ──TLS, or loopback: password─► checked
//!                               └─key wanted─► key ─► sealed password ─►
//! ```
//! Newer clients of MariaDB take a connection to the own machine for as private as TLS and send the password as it is.

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

    /// The method to try first with an account.
    fn of(account: &Account) -> Plugin {
        match account.verifier {
            Some(Verifier::Native { .. }) => Plugin::Native,
            _ => Plugin::CachingSha2,
        }
    }

    /// The method to try with an account, or for an unknown name: the one of some account, always the same for the same name, so that the method does not tell which names exist.
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

/// The method that the greeting names.
pub const OFFERED: Plugin = Plugin::CachingSha2;

const QUICK_ACCEPTED: u8 = 3;
const SEND_IT_ALL: u8 = 4;
const KEY_WANTED: u8 = 2;

/// What a login needs besides what the client sends.
pub struct LoginContext<'a> {
    pub accounts: &'a Accounts,
    pub digest_cache: &'a DigestCache,
    pub rsa_key: &'a RsaKey,
    /// Nobody can listen: TLS.
    pub is_encrypted: bool,
    /// The client is on this machine: what it sends crosses no net.
    pub is_local: bool,
    /// The client knows what to do about a password that has expired.
    pub handles_expired: bool,
}

/// Why a login is denied although the password is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenyReason {
    No,
    Locked,
    Expired,
}

/// What the server does next.
#[derive(Debug, PartialEq, Eq)]
pub enum LoginStep {
    /// Send this payload; the client will answer.
    Say(Vec<u8>),
    /// Let in; a payload to send before the OK, if it is not empty.
    Accept(Arc<Account>, Vec<u8>),
    Deny,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expects {
    /// No password.
    Nothing,
    /// A digest, made by this method.
    Digest(Plugin),
    /// The password, or the wish for the key.
    Password,
    /// The password, sealed.
    Sealed,
}

/// One login under way.
#[derive(Debug)]
pub struct LoginExchange {
    pub user: String,
    scramble: [u8; SCRAMBLE_LEN],
    account: Option<Arc<Account>>,
    expects: Expects,
    /// The client has sent something for a password.
    pub has_password: bool,
    pub deny_reason: DenyReason,
}

impl LoginExchange {
    /// Begins with what the client sent unasked.
    pub fn begin(
        ground: &LoginContext<'_>,
        user: &str,
        host: &str,
        scramble: [u8; SCRAMBLE_LEN],
        plugin: &[u8],
        response: &[u8],
    ) -> (LoginExchange, LoginStep) {
        let account = query::rights::find(ground.accounts, user, host);
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
        // Who does not name a method speaks the old one.
        let named = if plugin.is_empty() { Plugin::Native.name().as_bytes() } else { plugin };
        let step = if named == wanted.name().as_bytes() {
            login.check_digest(ground, wanted, response)
        } else {
            login.switch(wanted)
        };
        (login, step)
    }

    /// The account has no password, so none may come, and not in any order of packets. A client whose method is not the one that the greeting offered has not had its scramble,
    /// and may take no OK before it has.
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

    /// The password is right: may the account enter like this?
    fn proved(&mut self, ground: &LoginContext<'_>, account: Arc<Account>, word: Vec<u8>) -> LoginStep {
        self.deny_reason = match &account {
            account if !account.enabled => DenyReason::Locked,
            account if account.expired && !ground.handles_expired => DenyReason::Expired,
            _ => DenyReason::No,
        };
        let is_seen = account.needs_tls && !ground.is_encrypted;
        if self.deny_reason != DenyReason::No || is_seen { LoginStep::Deny } else { LoginStep::Accept(account, word) }
    }

    /// The client has been told that its first proof was not enough.
    pub fn quick_proof_failed(&self) -> bool {
        matches!(self.expects, Expects::Password | Expects::Sealed)
    }

    /// Goes on with the client's next packet.
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
            // A client may know the key from before.
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
                    // Also for an account that there is not, so that nobody can tell.
                    _ => {
                        self.expects = Expects::Password;
                        LoginStep::Say(vec![1, SEND_IT_ALL])
                    }
                }
            }
        }
    }

    /// response = SHA1(password) XOR SHA1(scramble + SHA1(SHA1(password))).
    fn check_native(&mut self, ground: &LoginContext<'_>, response: &[u8]) -> LoginStep {
        let verifier = self.account.as_ref().and_then(|account| account.verifier.as_ref());
        let (double_sha1, is_known) = match verifier {
            Some(Verifier::Native { double_sha1 }) => (*double_sha1, true),
            // The same steps for an account that there is not.
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

    /// `text` is the password and a zero.
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

/// An empty password is sent as nothing, or as a lone zero.
fn is_password(response: &[u8]) -> bool {
    !response.is_empty() && response != [0]
}

/// response = SHA256(password) XOR SHA256(SHA256(SHA256(password)) + scramble), and `known` is SHA256(SHA256(password)).
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

/// SHA256(SHA256(password)) of those who have shown their password, as long as their account stays as it is.
#[derive(Default)]
pub struct DigestCache {
    known: Mutex<HashMap<String, CachedDigest>>,
    /// Which method an unknown name seems to have.
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

/// Twenty random bytes without zero and `$`, as some clients need them.
pub fn new_scramble() -> [u8; SCRAMBLE_LEN] {
    let mut scramble = [0; SCRAMBLE_LEN];
    os::entropy(&mut scramble).expect("the kernel has random bytes");
    scramble.map(|byte| match byte & 0x7f {
        0 => 1,
        b'$' => b'%',
        byte => byte,
    })
}
