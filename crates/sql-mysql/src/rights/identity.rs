//! `'user'@'host'` names, and their accounts in the engine's list.
//!
//! All doors share the list, which has names only, so the host is part of the name: `'app'@'%'` is the account `app`,
//! `'app'@'10.%'` the account `app@10.%`. The account `default` is MySQL's root, unless an account has that name.

use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;

use engine::{Account, Accounts, DEFAULT_ACCOUNT};

use crate::parse::lexical::quoted_name;

const ROOT: &str = "root";
pub const ANY_HOST: &str = "%";

/// An account as SQL names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Who {
    pub user: String,
    pub host: String,
}

impl Who {
    pub fn new(user: &str, host: &str) -> Who {
        Who { user: user.to_owned(), host: host.to_ascii_lowercase() }
    }

    /// Returns the name in the list of accounts.
    pub fn key(&self, is_known: impl Fn(&str) -> bool) -> String {
        if self.host != ANY_HOST || self.user.contains('@') || self.user.is_empty() {
            return format!("{}@{}", self.user, self.host);
        }
        let is_default = self.user == ROOT && !is_known(ROOT);
        if is_default { DEFAULT_ACCOUNT.to_owned() } else { self.user.clone() }
    }

    /// Returns the SQL name of an account.
    pub fn of(key: &str, is_known: impl Fn(&str) -> bool) -> Who {
        if key == DEFAULT_ACCOUNT && !is_known(ROOT) {
            return Who::new(ROOT, ANY_HOST);
        }
        match key.rsplit_once('@') {
            Some((user, host)) => Who::new(user, host),
            None => Who::new(key, ANY_HOST),
        }
    }

    /// Returns `user@host`, as CURRENT_USER() does.
    pub fn plain(&self) -> String {
        format!("{}@{}", self.user, self.host)
    }

    /// Returns the quoted name, as in SHOW GRANTS.
    pub fn quoted(&self) -> String {
        format!("{}@{}", quoted_name(&self.user), quoted_name(&self.host))
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}'@'{}'", self.user, self.host)
    }
}

/// Finds the account for a user and a host (`localhost`, or an address): the one whose host matches most closely.
pub fn find(accounts: &Accounts, user: &str, host: &str) -> Option<Arc<Account>> {
    if user.is_empty() {
        return accounts.get(DEFAULT_ACCOUNT);
    }
    let own =
        |account: &Arc<Account>| account.name.rsplit_once('@').map(|(user, host)| (user.to_owned(), host.to_owned()));
    let mut best: Option<(u32, Arc<Account>)> =
        accounts.get(user).filter(|_| !user.contains('@')).map(|account| (0, account));
    for account in accounts.list() {
        let Some((name, pattern)) = own(&account) else { continue };
        if name == user
            && let Some(closeness) = closeness(&pattern, host)
            && best.as_ref().is_none_or(|(known, _)| closeness > *known)
        {
            best = Some((closeness, account));
        }
    }
    match best {
        Some((_, account)) => Some(account),
        None if user == ROOT => accounts.get(DEFAULT_ACCOUNT),
        None => None,
    }
}

/// Returns how closely the pattern matches the host, or None if it does not. An exact name is closest, then a network,
/// then the pattern with the latest wildcard.
fn closeness(pattern: &str, host: &str) -> Option<u32> {
    let names: &[&str] = if host == "localhost" { &["localhost", "127.0.0.1", "::1"] } else { &[host] };
    if names.iter().any(|name| name.eq_ignore_ascii_case(pattern)) {
        return Some(u32::MAX);
    }
    if let Some((net, mask)) = pattern.split_once('/') {
        let fits = names.iter().any(|name| in_net(net, mask, name).unwrap_or(false));
        return fits.then_some(u32::MAX - 1);
    }
    let wildcard = pattern.find(['%', '_'])?;
    names.iter().any(|name| is_like(pattern, name)).then_some(wildcard as u32 + 1)
}

fn in_net(net: &str, mask: &str, host: &str) -> Option<bool> {
    let (net, host): (Ipv4Addr, Ipv4Addr) = (net.parse().ok()?, host.parse().ok()?);
    let mask = match mask.parse::<u32>() {
        Ok(bits @ 0..=32) => u32::MAX.checked_shl(32 - bits).unwrap_or(0),
        _ => u32::from(mask.parse::<Ipv4Addr>().ok()?),
    };
    Some(u32::from(host) & mask == u32::from(net))
}

/// Matches LIKE without regard to case; `\` escapes the next character.
pub fn is_like(pattern: &str, text: &str) -> bool {
    fn fits(pattern: &[char], text: &[char]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some(('%', rest)) => (0..=text.len()).any(|skip| fits(rest, &text[skip..])),
            Some(('_', rest)) => !text.is_empty() && fits(rest, &text[1..]),
            Some(('\\', rest)) if !rest.is_empty() => text.first() == rest.first() && fits(&rest[1..], &text[1..]),
            Some((letter, rest)) => text.first() == Some(letter) && fits(rest, &text[1..]),
        }
    }
    let letters = |text: &str| text.to_lowercase().chars().collect::<Vec<char>>();
    fits(&letters(pattern), &letters(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_and_without_a_host_are_names_of_the_list() {
        let (nobody, root) = (|_: &str| false, |name: &str| name == ROOT);
        for (user, host, key) in [("app", "%", "app"), ("app", "10.%", "app@10.%"), ("a@b", "%", "a@b@%")] {
            assert_eq!(Who::new(user, host).key(nobody), key);
            assert_eq!(Who::of(key, nobody), Who::new(user, host));
        }
        assert_eq!(Who::new("root", "%").key(nobody), "default");
        assert_eq!(Who::new("root", "%").key(root), "root");
        assert_eq!((Who::of("default", nobody).user, Who::of("default", root).user), ("root".into(), "default".into()));
    }

    #[test]
    fn the_closest_host_counts() {
        let order = ["localhost", "127.0.0.0/8", "127.0.%", "%"].map(|pattern| closeness(pattern, "localhost"));
        assert!(order.windows(2).all(|pair| pair[0] > pair[1]), "{order:?}");
        assert_eq!(closeness("10.%", "localhost"), None);
        assert!(closeness("192.168.1.0/255.255.255.0", "192.168.1.77").is_some());
        assert!(closeness("192.168.1.0/24", "192.168.2.77").is_none());
        assert!(closeness("10.0._.1", "10.0.3.1").is_some());
    }
}
