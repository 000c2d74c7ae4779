//! Accounts of all doors: names, password digests, and rights that a door interprets.
//!
//! An account has a number, by which records elsewhere refer to it: it is the same under a new name, and no later account gets it. Accounts are stored in the catalog; a copy in memory answers. Changes go through one mutex and one transaction, and then into the copy; or they are part of a transaction of rows (`pending`). An
//! account's rights are kept twice, for the Redis door as `rules` and for SQL as `grants`; the engine interprets neither. A password is kept as its SHA-256
//! digest, as Redis keeps it, or as a `Verifier`, as MySQL does; a door that receives a password accepts either. A password that arrives in plain text at any door
//! is kept as a `ScramVerifier` too, for clients that never show it. Digests are compared in constant time.

use std::collections::BTreeMap;
use std::sync::Arc;

use pager::Lsn;
use stdx::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use stdx::sync::{Mutex, RwLock};

use crate::accounts::attempts::Attempts;
use crate::accounts::role::RoleAttributes;
use crate::accounts::scram::ScramVerifier;
use crate::accounts::verifier::{PASSWORD_MAX, Verifier};
use crate::catalog;
use crate::digest::sha256;
use crate::error::{Error, Result};
use crate::store::Store;
use crate::txn::record_txn::RecordTxn;

pub mod attempts;
pub mod pending;
pub mod role;
pub mod scram;
pub mod verifier;

#[cfg(test)]
mod tests;

/// The account of connections that have not named one. It always exists.
pub const DEFAULT_ACCOUNT: &str = "default";

const PREFIX: &[u8] = b"account\0";
/// A MySQL name of 32 characters, and a host of 255.
const NAME_MAX: usize = 384;
const PASSWORDS_MAX: usize = 1000;
/// The longest password that is compared with a SCRAM verifier, as in PostgreSQL.
const SCRAM_PASSWORD_MAX: usize = 65_535;
const RULES_MAX: usize = 64 << 10;
const PART_BYTES: usize = 1200;
const GRANTS_MAX: usize = 1 << 20;
/// Format 1 has no verifier, format 2 no grants, format 3 no SCRAM verifier, and format 4 neither number nor attributes of a role.
const FORMAT: u8 = 5;

/// The record of the number that the next account gets.
const NEXT_ID: &[u8] = b"accounts\0next";
/// The number of the first account. Numbers below it are left to roles that are no accounts.
pub const FIRST_ACCOUNT_ID: u32 = 16384;
/// The number of an account that `Accounts` has yet to number.
const UNNUMBERED: u32 = 0;

const ENABLED: u8 = 1;
const NOPASS: u8 = 2;
const NEEDS_TLS: u8 = 4;
const EXPIRED: u8 = 8;
const GRANTED: u8 = 16;
/// The SCRAM verifier is of one of the digests, which follows it.
const SCRAM_OF_DIGEST: u8 = 32;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub name: String,
    /// The number of the account: the same for its life, also under a new name, and never that of a later one. 0 before it is stored.
    pub id: u32,
    pub enabled: bool,
    /// Any password is accepted.
    pub nopass: bool,
    /// SHA-256 digests of the accepted passwords.
    pub passwords: Vec<[u8; 32]>,
    /// One more password, kept as MySQL keeps it.
    pub verifier: Option<Verifier>,
    /// A verifier for SCRAM-SHA-256 of one of these passwords, or of the only one.
    pub scram: Option<Box<Scram>>,
    /// The rights at the Redis door, as ACL rules.
    pub rules: String,
    /// The rights in SQL, in the encoding of `query`; `None` if they were never set.
    pub grants: Option<Vec<u8>>,
    /// Only connections with TLS are accepted.
    pub needs_tls: bool,
    /// The password must be changed before anything else. Only a door that can ask for that accepts the account.
    pub expired: bool,
    /// The attributes of the account as a role in SQL. The engine interprets none.
    pub role: RoleAttributes,
}

/// A SCRAM verifier, and the digest in `passwords` that is of the same password; `None` if it is of none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scram {
    pub verifier: ScramVerifier,
    pub digest: Option<[u8; 32]>,
}

impl Account {
    /// Returns a disabled account without password or rights.
    pub fn new(name: &str) -> Account {
        Account {
            name: name.into(),
            id: UNNUMBERED,
            enabled: false,
            nopass: false,
            passwords: Vec::new(),
            verifier: None,
            scram: None,
            rules: String::new(),
            grants: None,
            needs_tls: false,
            expired: false,
            role: RoleAttributes::default(),
        }
    }

    fn default_account() -> Account {
        Account { enabled: true, nopass: true, rules: "~* &* +@all".into(), ..Account::new(DEFAULT_ACCOUNT) }
    }

    fn encode(&self) -> Vec<u8> {
        let bits = [
            (self.enabled, ENABLED),
            (self.nopass, NOPASS),
            (self.needs_tls, NEEDS_TLS),
            (self.expired, EXPIRED),
            (self.grants.is_some(), GRANTED),
            (self.scram.as_ref().is_some_and(|scram| scram.digest.is_some()), SCRAM_OF_DIGEST),
        ];
        let flags = bits.into_iter().filter(|(is_set, _)| *is_set).fold(0, |flags, (_, bit)| flags | bit);
        let mut bytes = vec![FORMAT, flags];
        bytes.extend_from_slice(&self.id.to_le_bytes());
        bytes.extend_from_slice(&self.role.encode());
        bytes.extend_from_slice(&(self.passwords.len() as u32).to_le_bytes());
        bytes.extend(self.passwords.iter().flatten());
        let verifier = self.verifier.as_ref().map_or(Vec::new(), Verifier::encode);
        bytes.push(verifier.len() as u8);
        bytes.extend_from_slice(&verifier);
        let scram = self.scram.as_ref().map_or(Vec::new(), |scram| scram.verifier.encode());
        bytes.extend_from_slice(&(scram.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&scram);
        bytes.extend(self.scram.iter().filter_map(|scram| scram.digest).flatten());
        let grants = self.grants.as_deref().unwrap_or(&[]);
        bytes.extend_from_slice(&(grants.len() as u32).to_le_bytes());
        bytes.extend_from_slice(grants);
        bytes.extend_from_slice(self.rules.as_bytes());
        bytes
    }

    fn decode(name: &str, bytes: &[u8]) -> Option<Account> {
        let ([format, flags], rest) = bytes.split_first_chunk::<2>()?;
        let (id, role, rest) = match format {
            1..FORMAT => (UNNUMBERED, RoleAttributes::default(), rest),
            _ => {
                let (id, rest) = rest.split_first_chunk::<4>()?;
                let (role, rest) = rest.split_first_chunk()?;
                (u32::from_le_bytes(*id), RoleAttributes::decode(role)?, rest)
            }
        };
        let (count, rest) = rest.split_first_chunk::<4>()?;
        let (passwords, rest) = rest.split_at_checked((u32::from_le_bytes(*count) as usize).checked_mul(32)?)?;
        let passwords = passwords.chunks_exact(32).map(|digest| digest.try_into().expect("32 bytes")).collect();
        let (verifier, rest) = match format {
            1 => (&[][..], rest),
            2..=FORMAT => rest.split_first().and_then(|(length, rest)| rest.split_at_checked(usize::from(*length)))?,
            _ => return None,
        };
        let (scram, rest) = if *format < 4 { (None, rest) } else { Scram::decode(*flags, rest)? };
        let (grants, rules) = match format {
            1 | 2 => (&[][..], rest),
            _ => rest
                .split_first_chunk::<4>()
                .and_then(|(length, rest)| rest.split_at_checked(u32::from_le_bytes(*length) as usize))?,
        };
        let verifier = if verifier.is_empty() { None } else { Some(Verifier::decode(verifier)?) };
        Some(Account {
            name: name.into(),
            id,
            role,
            enabled: flags & ENABLED != 0,
            nopass: flags & NOPASS != 0,
            passwords,
            verifier,
            scram,
            rules: String::from_utf8(rules.to_vec()).ok()?,
            grants: (flags & GRANTED != 0).then(|| grants.to_vec()),
            needs_tls: flags & NEEDS_TLS != 0,
            expired: flags & EXPIRED != 0,
        })
    }

    /// Returns an error if no such account can be stored.
    pub fn check(&self) -> Result<()> {
        let bad = |byte: u8| byte <= b' ' || byte == 0x7f;
        if self.name.is_empty() || self.name.len() > NAME_MAX || self.name.bytes().any(bad) {
            let what = format!("a user name has 1 to {NAME_MAX} bytes, none of them a space or a control character");
            return Err(Error::Invalid(what));
        }
        if self.passwords.len() > PASSWORDS_MAX {
            return Err(Error::Invalid(format!("a user has at most {PASSWORDS_MAX} passwords")));
        }
        if self.scram.as_ref().is_some_and(|scram| !scram.verifier.is_valid()) {
            return Err(Error::Invalid(
                "a SCRAM verifier has a salt of 1 to 255 bytes, and up to 1048576 iterations".into(),
            ));
        }
        if self.rules.len() > RULES_MAX {
            return Err(Error::TooLarge { what: "rules of a user", limit: RULES_MAX as u64 });
        }
        if self.grants.as_ref().is_some_and(|grants| grants.len() > GRANTS_MAX) {
            return Err(Error::TooLarge { what: "grants of a user", limit: GRANTS_MAX as u64 });
        }
        Ok(())
    }

    /// Forgets every password.
    pub fn clear_passwords(&mut self) {
        (self.nopass, self.passwords, self.verifier, self.scram) = (false, Vec::new(), None, None);
    }

    /// Adds a password by its digest, as Redis does. It also gets a SCRAM verifier, in the place of an earlier one.
    pub fn add_password(&mut self, password: &[u8]) {
        let digest = sha256(password);
        self.add_digest(digest);
        let is_kept = self.scram.as_ref().is_some_and(|scram| scram.digest == Some(digest));
        if !is_kept {
            self.scram = Some(Scram::of(password, Some(digest)));
        }
    }

    /// Adds a password of which only the digest is known.
    pub fn add_digest(&mut self, digest: [u8; 32]) {
        self.nopass = false;
        if !self.passwords.contains(&digest) {
            self.passwords.push(digest);
        }
    }

    /// Removes a password by its digest, with its SCRAM verifier. Returns false if it is none of the account's.
    pub fn remove_digest(&mut self, digest: &[u8; 32]) -> bool {
        let before = self.passwords.len();
        self.passwords.retain(|known| known != digest);
        if self.scram.as_ref().is_some_and(|scram| scram.digest.as_ref() == Some(digest)) {
            self.scram = None;
        }
        self.passwords.len() < before
    }

    /// Makes this the only password, in the forms that the doors for SQL verify. The empty one is kept by its digest.
    pub fn set_password(&mut self, password: &[u8]) {
        self.clear_passwords();
        match password.is_empty() {
            true => self.passwords.push(sha256(b"")),
            false => {
                self.verifier = (password.len() <= PASSWORD_MAX).then(|| Verifier::caching_sha2(password));
                self.scram = Some(Scram::of(password, None));
            }
        }
    }

    /// Returns true if this is a password of the account, enabled or not. A wrong password takes as long (milliseconds) for every account as for none, so that
    /// the time does not tell which names exist.
    pub fn has_password(account: Option<&Account>, password: &[u8]) -> bool {
        let digest = sha256(password);
        if account.map_or_else(|| is_same(&digest, &[0; 32]), |account| account.knows_digest(&digest)) {
            return true;
        }
        let verifier = account.and_then(|account| account.verifier.as_ref());
        if verifier.is_some_and(|verifier| verifier.accepts(password)) {
            return true;
        }
        if !matches!(verifier, Some(Verifier::CachingSha2 { .. })) {
            // Only for the time that it takes.
            std::hint::black_box(Verifier::decoy().accepts(password));
        }
        let tried = &password[..password.len().min(SCRAM_PASSWORD_MAX)];
        match account.and_then(|account| account.scram.as_ref()) {
            Some(scram) => scram.verifier.accepts(tried) && tried.len() == password.len(),
            None => {
                std::hint::black_box(ScramVerifier::decoy(b"").accepts(tried));
                false
            }
        }
    }

    /// Returns true if the account accepts the empty password, but not any password. Takes the same time for every account.
    pub fn has_empty_password(&self) -> bool {
        let empty = sha256(b"");
        self.passwords.iter().fold(false, |found, known| found | is_same(known, &empty))
    }

    fn knows_digest(&self, digest: &[u8; 32]) -> bool {
        // All digests are compared, whichever matches.
        let fits = self.passwords.iter().fold(0, |fits, known| fits | u8::from(is_same(known, digest)));
        self.nopass || fits != 0
    }
}

impl Scram {
    /// Makes a verifier of a password whose digest is among the account's, if one is given.
    fn of(password: &[u8], digest: Option<[u8; 32]>) -> Box<Scram> {
        Box::new(Scram { verifier: ScramVerifier::new(password), digest })
    }

    /// Reads the verifier of an account's record, and returns the bytes behind it.
    fn decode(flags: u8, bytes: &[u8]) -> Option<(Option<Box<Scram>>, &[u8])> {
        let (length, rest) = bytes.split_first_chunk()?;
        let (verifier, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        if verifier.is_empty() {
            return (flags & SCRAM_OF_DIGEST == 0).then_some((None, rest));
        }
        let verifier = ScramVerifier::decode(verifier)?;
        if flags & SCRAM_OF_DIGEST == 0 {
            return Some((Some(Box::new(Scram { verifier, digest: None })), rest));
        }
        let (digest, rest) = rest.split_first_chunk()?;
        Some((Some(Box::new(Scram { verifier, digest: Some(*digest) })), rest))
    }
}

/// Compares in constant time.
fn is_same(one: &[u8; 32], two: &[u8; 32]) -> bool {
    let difference = one.iter().zip(two).fold(0, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(difference) == 0
}

/// Returns whether two lists have the same account, or none.
fn is_unchanged(one: Option<&Arc<Account>>, other: Option<&Arc<Account>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    }
}

/// One change of an account, among several that are made together.
#[derive(Clone, Debug)]
pub enum AccountChange {
    /// Creates the account or replaces it.
    Put(Account),
    Remove(String),
}

/// The accounts by name and by number.
#[derive(Default)]
struct List {
    by_name: BTreeMap<String, Arc<Account>>,
    names: BTreeMap<u32, String>,
}

impl List {
    fn insert(&mut self, account: Account) {
        self.remove(&account.name);
        self.names.insert(account.id, account.name.clone());
        self.by_name.insert(account.name.clone(), Arc::new(account));
    }

    fn remove(&mut self, name: &str) {
        let Some(old) = self.by_name.remove(name) else { return };
        // Under a new name the account has its number still.
        if self.names.get(&old.id).is_some_and(|known| known == name) {
            self.names.remove(&old.id);
        }
    }
}

pub struct Accounts {
    store: Arc<Store>,
    list: RwLock<List>,
    /// Serializes changes. Held until the change is decided.
    changing: Mutex<()>,
    generation: AtomicU64,
    /// The number of the next new account.
    next: AtomicU32,
    attempts: Arc<Attempts>,
}

impl Accounts {
    pub(crate) fn open(store: Arc<Store>) -> Result<Accounts> {
        let mut bytes: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for (key, part) in catalog::with_prefix(&store, PREFIX)? {
            let name =
                key.get(PREFIX.len()..key.len().saturating_sub(3)).and_then(|name| std::str::from_utf8(name).ok());
            let name = name.ok_or_else(|| Error::corrupt("an account has no name"))?;
            bytes.entry(name.into()).or_default().extend_from_slice(&part);
        }
        let mut accounts = vec![Account::default_account()];
        for (name, bytes) in bytes {
            let account = Account::decode(&name, &bytes);
            accounts.push(account.ok_or_else(|| Error::corrupt(format!("account '{name}' has an unknown form")))?);
        }
        let mut list = List::default();
        accounts.into_iter().for_each(|account| list.insert(account));
        let next = AtomicU32::new(Self::recorded_number(&store)?);
        let accounts = Accounts {
            store,
            next,
            list: RwLock::new(list),
            changing: Mutex::new(()),
            generation: AtomicU64::new(1),
            attempts: Arc::default(),
        };
        accounts.number_earlier()?;
        Ok(accounts)
    }

    /// Numbers accounts from before numbers, and `default` of a new store.
    fn number_earlier(&self) -> Result<()> {
        let earlier = |all: &BTreeMap<String, Arc<Account>>| -> Vec<AccountChange> {
            let earlier = all.values().filter(|account| account.id == UNNUMBERED);
            earlier.map(|account| AccountChange::Put(Account::clone(account))).collect()
        };
        if earlier(&self.list.read().by_name).is_empty() {
            return Ok(());
        }
        match self.change_many(|all| Ok::<_, std::convert::Infallible>(earlier(all)))? {
            Ok(_) => Ok(()),
            Err(never) => match never {},
        }
    }

    /// Returns the account if it accepts this password, at a door that sees neither hosts nor TLS and cannot ask for a new password. A failure takes as long
    /// for an unknown name as for a known one.
    pub fn authenticate(&self, name: &str, password: &[u8]) -> Option<Arc<Account>> {
        let account = self.get(name);
        let is_right = Account::has_password(account.as_deref(), password);
        let may_enter = |account: &Arc<Account>| {
            is_right && account.enabled && !account.needs_tls && !account.expired && !name.contains('@')
        };
        account.filter(may_enter)
    }

    /// Returns the counts of failed logins at all doors.
    pub fn attempts(&self) -> &Arc<Attempts> {
        &self.attempts
    }

    pub fn get(&self, name: &str) -> Option<Arc<Account>> {
        self.list.read().by_name.get(name).cloned()
    }

    /// Returns the account of that number.
    pub fn by_id(&self, id: u32) -> Option<Arc<Account>> {
        let list = self.list.read();
        list.names.get(&id).and_then(|name| list.by_name.get(name)).cloned()
    }

    /// Returns all accounts in the order of their names.
    pub fn list(&self) -> Vec<Arc<Account>> {
        self.list.read().by_name.values().cloned().collect()
    }

    /// Returns a number that changes with every change of an account. A holder of an `Arc<Account>` fetches it anew when the number has changed.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Creates or replaces an account. Returns the LSN at which the change is durable.
    pub fn put(&self, account: Account) -> Result<Lsn> {
        let name = account.name.clone();
        match self.change(&name, |_| Ok::<Account, std::convert::Infallible>(account))? {
            Ok(lsn) => Ok(lsn),
            Err(never) => match never {},
        }
    }

    /// Replaces an account by what `f` makes of it, without another change in between. An error of `f` changes nothing.
    pub fn change<E>(
        &self,
        name: &str,
        f: impl FnOnce(Option<&Account>) -> std::result::Result<Account, E>,
    ) -> Result<std::result::Result<Lsn, E>> {
        self.change_many(|all| Ok(vec![AccountChange::Put(f(all.get(name).map(|account| &**account))?)]))
    }

    /// Changes several accounts, all or none, as `f` decides from the whole list, without another change in between. An error of `f` changes nothing. `default`
    /// cannot be removed.
    pub fn change_many<E>(
        &self,
        f: impl FnOnce(&BTreeMap<String, Arc<Account>>) -> std::result::Result<Vec<AccountChange>, E>,
    ) -> Result<std::result::Result<Lsn, E>> {
        self.store.pager.admit()?;
        let _changing = self.changing.lock();
        let changes = {
            let list = self.list.read();
            let mut changes = match f(&list.by_name) {
                Ok(changes) => changes,
                Err(error) => return Ok(Err(error)),
            };
            self.number(&list, &mut changes)?;
            changes
        };
        for change in &changes {
            match change {
                AccountChange::Put(account) => account.check()?,
                AccountChange::Remove(name) if name == DEFAULT_ACCOUNT => {
                    return Err(Error::Invalid("The 'default' user cannot be removed".into()));
                }
                AccountChange::Remove(_) => {}
            }
        }
        let mut txn = RecordTxn::begin(&self.store);
        self.write(&mut txn, &changes)?;
        let lsn = txn.commit()?.0;
        self.publish(changes);
        Ok(Ok(lsn))
    }

    /// Returns the account of that name behind the changes whose transactions have ended.
    pub fn settled(&self, name: &str) -> Option<Arc<Account>> {
        // A transaction releases its locks before it has published.
        drop(self.changing.lock());
        self.get(name)
    }

    /// Returns the number of a new account. One whose account is never stored is not given again before the next start.
    pub fn take_number(&self) -> Result<u32> {
        let next = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| next.checked_add(1));
        next.map_err(|_| Error::TooLarge { what: "numbers of users", limit: u64::from(u32::MAX) })
    }

    /// Gives numbers to new accounts. One that takes the place of another of its name in the same step keeps the number.
    fn number(&self, list: &List, changes: &mut [AccountChange]) -> Result<()> {
        for change in changes {
            let AccountChange::Put(account) = change else { continue };
            if account.id == UNNUMBERED {
                account.id = list.by_name.get(&account.name).map_or(UNNUMBERED, |known| known.id);
            }
            if account.id == UNNUMBERED {
                account.id = self.take_number()?;
            }
        }
        Ok(())
    }

    fn recorded_number(store: &Store) -> Result<u32> {
        let mut known = Vec::new();
        match store.catalog.get(NEXT_ID, &mut known)?.present {
            true => {
                Ok(u32::from_le_bytes(known[..].try_into().map_err(|_| Error::corrupt("the number of an account"))?))
            }
            false => Ok(FIRST_ACCOUNT_ID),
        }
    }

    /// Writes the records of changed accounts, and that of the next number. The caller has locked the list.
    fn write(&self, txn: &mut RecordTxn<'_>, changes: &[AccountChange]) -> Result<()> {
        let numbers = changes.iter().map(|change| match change {
            AccountChange::Put(account) => account.id + 1,
            AccountChange::Remove(_) => UNNUMBERED,
        });
        let next = numbers.max().unwrap_or(UNNUMBERED);
        if next > Self::recorded_number(&self.store)? {
            txn.change(&self.store.catalog, NEXT_ID, |_, pages| pages.change.put(&[&next.to_le_bytes()]))?;
        }
        for change in changes {
            match change {
                AccountChange::Put(account) => self.replace(txn, &account.name, Some(&account.encode()))?,
                AccountChange::Remove(name) => self.replace(txn, name, None)?,
            }
        }
        Ok(())
    }

    /// Puts changes into the list that are committed. The caller has locked it since it has read it.
    fn publish(&self, changes: Vec<AccountChange>) {
        let mut list = self.list.write();
        for change in changes {
            match change {
                AccountChange::Put(account) => list.insert(account),
                AccountChange::Remove(name) => list.remove(&name),
            }
        }
        drop(list);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Removes the accounts that exist, except `default`. Returns their number.
    pub fn remove(&self, names: &[&str]) -> Result<(usize, Lsn)> {
        let mut removed = 0;
        let lsn = self.change_many(|all| {
            let known = names.iter().filter(|name| all.contains_key(**name));
            let changes: Vec<AccountChange> = known.map(|name| AccountChange::Remove((*name).to_string())).collect();
            removed = changes.len();
            Ok::<_, std::convert::Infallible>(changes)
        })?;
        match lsn {
            Ok(lsn) => Ok((removed, lsn)),
            Err(never) => match never {},
        }
    }

    /// Rewrites all parts of an account's record.
    fn replace(&self, txn: &mut RecordTxn<'_>, name: &str, bytes: Option<&[u8]>) -> Result<()> {
        let prefix = [PREFIX, name.as_bytes(), &[0]].concat();
        let old_parts = catalog::with_prefix(&self.store, &prefix)?.len();
        let parts: Vec<&[u8]> = bytes.map_or(Vec::new(), |bytes| bytes.chunks(PART_BYTES).collect());
        for at in 0..parts.len().max(old_parts) {
            let key = [&prefix[..], &(at as u16).to_be_bytes()].concat();
            txn.change(&self.store.catalog, &key, |_, pages| match parts.get(at) {
                Some(part) => pages.change.put(&[part]),
                None => pages.change.delete(),
            })?;
        }
        Ok(())
    }
}
