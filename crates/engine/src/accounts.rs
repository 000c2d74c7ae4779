//! Who may enter, for every door: names, password digests, and rules that a door interprets.
//!
//! Accounts live in the catalog; a copy in memory answers. Changes are rare: they go through one mutex and one transaction, then the copy is replaced.
//! A password is kept as its SHA-256 digest, as Redis keeps it, or as a `Verifier`, as MySQL does; a door that is told a password takes either. Digests are compared in a time that does not depend on where they differ.

use std::collections::BTreeMap;
use std::sync::Arc;

use pager::Lsn;
use stdx::sync::atomic::{AtomicU64, Ordering};
use stdx::sync::{Mutex, RwLock};

use crate::catalog;
use crate::error::{Error, Result};
use crate::sha256::sha256;
use crate::txn::Store;

pub mod verifier;

#[cfg(test)]
mod tests;

use verifier::Verifier;

/// The account of connections that did not say who they are. It always exists.
pub const DEFAULT: &str = "default";

const PREFIX: &[u8] = b"account\0";
const NAME_MAX: usize = 128;
const PASSWORDS_MAX: usize = 1000;
const RULES_MAX: usize = 64 << 10;
const PART_BYTES: usize = 1200;
/// Format 1 has no verifier.
const FORMAT: u8 = 2;

const ENABLED: u8 = 1;
const NOPASS: u8 = 2;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub name: String,
    pub enabled: bool,
    /// Any password will do.
    pub nopass: bool,
    /// SHA-256 of each password that is accepted.
    pub passwords: Vec<[u8; 32]>,
    /// One more password, kept as MySQL keeps it.
    pub verifier: Option<Verifier>,
    /// What the account may do, in the door's own words.
    pub rules: String,
}

impl Account {
    /// Disabled, without password or rights.
    pub fn new(name: &str) -> Account {
        Account {
            name: name.into(),
            enabled: false,
            nopass: false,
            passwords: Vec::new(),
            verifier: None,
            rules: String::new(),
        }
    }

    fn default_account() -> Account {
        Account { enabled: true, nopass: true, rules: "~* &* +@all".into(), ..Account::new(DEFAULT) }
    }

    fn encode(&self) -> Vec<u8> {
        let flags = if self.enabled { ENABLED } else { 0 } | if self.nopass { NOPASS } else { 0 };
        let mut bytes = vec![FORMAT, flags];
        bytes.extend_from_slice(&(self.passwords.len() as u32).to_le_bytes());
        bytes.extend(self.passwords.iter().flatten());
        let verifier = self.verifier.as_ref().map_or(Vec::new(), Verifier::encode);
        bytes.push(verifier.len() as u8);
        bytes.extend_from_slice(&verifier);
        bytes.extend_from_slice(self.rules.as_bytes());
        bytes
    }

    fn decode(name: &str, bytes: &[u8]) -> Option<Account> {
        let ([format, flags], rest) = bytes.split_first_chunk::<2>()?;
        let (count, rest) = rest.split_first_chunk::<4>()?;
        let (passwords, rest) = rest.split_at_checked((u32::from_le_bytes(*count) as usize).checked_mul(32)?)?;
        let passwords = passwords.chunks_exact(32).map(|digest| digest.try_into().expect("32 bytes")).collect();
        let (verifier, rules) = match format {
            1 => (&[][..], rest),
            &FORMAT => rest.split_first().and_then(|(length, rest)| rest.split_at_checked(usize::from(*length)))?,
            _ => return None,
        };
        let verifier = if verifier.is_empty() { None } else { Some(Verifier::decode(verifier)?) };
        Some(Account {
            name: name.into(),
            enabled: flags & ENABLED != 0,
            nopass: flags & NOPASS != 0,
            passwords,
            verifier,
            rules: String::from_utf8(rules.to_vec()).ok()?,
        })
    }

    fn check(&self) -> Result<()> {
        let bad = |byte: u8| byte <= b' ' || byte == 0x7f;
        if self.name.is_empty() || self.name.len() > NAME_MAX || self.name.bytes().any(bad) {
            let what = format!("a user name has 1 to {NAME_MAX} bytes, none of them a space or a control character");
            return Err(Error::Invalid(what));
        }
        if self.passwords.len() > PASSWORDS_MAX {
            return Err(Error::Invalid(format!("a user has at most {PASSWORDS_MAX} passwords")));
        }
        if self.rules.len() > RULES_MAX {
            return Err(Error::TooLarge { what: "rules of a user", limit: RULES_MAX as u64 });
        }
        Ok(())
    }

    /// May somebody with this password enter? Takes milliseconds if there is a verifier, and else as long for one password as for any other.
    pub fn accepts(&self, password: &[u8]) -> bool {
        let accepted = self.accepts_digest(&sha256(password));
        accepted || self.enabled && self.verifier.as_ref().is_some_and(|verifier| verifier.accepts(password))
    }

    fn accepts_digest(&self, digest: &[u8; 32]) -> bool {
        // Every digest is looked at whole, whichever fits.
        let fits = self.passwords.iter().fold(0, |fits, known| fits | u8::from(is_same(known, digest)));
        self.enabled && (self.nopass || fits != 0)
    }
}

/// Compares in constant time.
fn is_same(one: &[u8; 32], two: &[u8; 32]) -> bool {
    let difference = one.iter().zip(two).fold(0, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(difference) == 0
}

pub struct Accounts {
    store: Arc<Store>,
    by_name: RwLock<BTreeMap<String, Arc<Account>>>,
    /// One change at a time; held until it is decided.
    changing: Mutex<()>,
    generation: AtomicU64,
}

impl Accounts {
    pub(crate) fn open(store: Arc<Store>) -> Result<Accounts> {
        let mut bytes: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for (key, part) in catalog::with_prefix(&store, PREFIX)? {
            let name =
                key.get(PREFIX.len()..key.len().saturating_sub(3)).and_then(|name| std::str::from_utf8(name).ok());
            let name = name.ok_or_else(|| Error::corrupt("an account without a name"))?;
            bytes.entry(name.into()).or_default().extend_from_slice(&part);
        }
        let mut by_name = BTreeMap::from([(DEFAULT.to_string(), Arc::new(Account::default_account()))]);
        for (name, bytes) in bytes {
            let account = Account::decode(&name, &bytes);
            let account = account.ok_or_else(|| Error::corrupt(format!("account '{name}' has an unknown form")))?;
            by_name.insert(name, Arc::new(account));
        }
        let (by_name, generation) = (RwLock::new(by_name), AtomicU64::new(1));
        Ok(Accounts { store, by_name, changing: Mutex::new(()), generation })
    }

    /// The account, if it may enter with this password. Takes as long for an unknown name as for a known one with one password and no verifier.
    pub fn authenticate(&self, name: &str, password: &[u8]) -> Option<Arc<Account>> {
        match self.get(name) {
            Some(account) => account.accepts(password).then_some(account),
            None => {
                std::hint::black_box(is_same(&sha256(password), &[0; 32]));
                None
            }
        }
    }

    pub fn get(&self, name: &str) -> Option<Arc<Account>> {
        self.by_name.read().get(name).cloned()
    }

    /// All accounts, by name.
    pub fn list(&self) -> Vec<Arc<Account>> {
        self.by_name.read().values().cloned().collect()
    }

    /// Changes with every change of any account: who keeps an `Arc<Account>` fetches it anew when this has moved.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Creates or replaces an account. Returns the LSN at which that is durable.
    pub fn put(&self, account: Account) -> Result<Lsn> {
        let name = account.name.clone();
        match self.change(&name, |_| Ok::<Account, std::convert::Infallible>(account))? {
            Ok(lsn) => Ok(lsn),
            Err(never) => match never {},
        }
    }

    /// Makes a new account out of the old one, if there is one; no other change comes in between. An error of `f` changes nothing.
    pub fn change<E>(
        &self,
        name: &str,
        f: impl FnOnce(Option<&Account>) -> std::result::Result<Account, E>,
    ) -> Result<std::result::Result<Lsn, E>> {
        self.store.pager.admit()?;
        let _changing = self.changing.lock();
        let account = match f(self.get(name).as_deref()) {
            Ok(account) => account,
            Err(error) => return Ok(Err(error)),
        };
        account.check()?;
        let lsn = self.replace(&account.name, Some(&account.encode()))?;
        self.by_name.write().insert(account.name.clone(), Arc::new(account));
        self.generation.fetch_add(1, Ordering::Release);
        Ok(Ok(lsn))
    }

    /// Removes the accounts that exist; returns how many that were. `default` stays.
    pub fn remove(&self, names: &[&str]) -> Result<(usize, Lsn)> {
        if names.contains(&DEFAULT) {
            return Err(Error::Invalid("The 'default' user cannot be removed".into()));
        }
        self.store.pager.admit()?;
        let _changing = self.changing.lock();
        let (mut removed, mut lsn) = (0, 0);
        for name in names {
            if self.get(name).is_some() {
                lsn = self.replace(name, None)?;
                self.by_name.write().remove(*name);
                removed += 1;
            }
        }
        self.generation.fetch_add(1, Ordering::Release);
        Ok((removed, lsn))
    }

    /// Changes all parts of an account or none.
    fn replace(&self, name: &str, bytes: Option<&[u8]>) -> Result<Lsn> {
        let prefix = [PREFIX, name.as_bytes(), &[0]].concat();
        let old_parts = catalog::with_prefix(&self.store, &prefix)?.len();
        let parts: Vec<&[u8]> = bytes.map_or(Vec::new(), |bytes| bytes.chunks(PART_BYTES).collect());
        let mut txn = self.store.begin();
        for at in 0..parts.len().max(old_parts) {
            let key = [&prefix[..], &(at as u16).to_be_bytes()].concat();
            txn.change(&self.store.catalog, &key, |_, pages| match parts.get(at) {
                Some(part) => pages.change.put(&[part]),
                None => pages.change.delete(),
            })?;
        }
        Ok(txn.commit()?.0)
    }
}
