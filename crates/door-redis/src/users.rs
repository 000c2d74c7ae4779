//! Permissions: an account of the engine with its rules in a form that is fast to check at every command.
//!
//! The engine stores an account's rules as text in Redis' own words (`~cached:* -@all +get (%R~tmp:* resetchannels -@all +get)`). The text is parsed once for
//! all sessions of the account, and again after the account has changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{Account, Accounts};
use stdx::sync::Mutex;

use crate::command::{Command, flag, keys};
use crate::glob;
use crate::messages::subscriptions::Subscriptions;

pub mod log;
pub mod rules;
#[cfg(test)]
mod tests;

use rules::Selector;

pub struct User {
    pub account: Arc<Account>,
    /// The first is the user's own; the others are alternatives in brackets.
    selectors: Vec<Selector>,
    /// All commands on all keys are allowed, so no check is needed but of channels.
    unrestricted: bool,
    all_channels: bool,
}

/// The users that sessions act for, by name.
#[derive(Default)]
pub struct Users {
    read: Mutex<BTreeMap<String, Arc<User>>>,
}

impl Users {
    pub fn of(&self, account: Arc<Account>, accounts: &Accounts) -> Arc<User> {
        let mut read = self.read.lock();
        if let Some(user) = read.get(&account.name).filter(|user| Arc::ptr_eq(&user.account, &account)) {
            return user.clone();
        }
        // The account list has changed. Users that were removed are dropped too.
        read.retain(|name, _| accounts.get(name).is_some());
        let user = Arc::new(User::new(account));
        read.insert(user.account.name.clone(), user.clone());
        user
    }
}

/// Why a command is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Denied {
    Command,
    /// The index of the argument that is a forbidden key.
    Key(usize),
    /// The index of the argument that is a forbidden channel.
    Channel(usize),
}

impl User {
    pub fn new(account: Arc<Account>) -> User {
        // Rules were checked when the account was written. Rules that cannot be parsed any more give no permissions.
        let selectors = rules::read(&account.rules).unwrap_or_else(|_| vec![Selector::nothing()]);
        let unrestricted = selectors.iter().any(|selector| selector.has_all_served() && selector.all_keys);
        let all_channels = selectors.iter().any(Selector::allows_everything);
        User { account, selectors, unrestricted, all_channels }
    }

    pub fn is_unrestricted(&self) -> bool {
        self.unrestricted
    }

    pub fn check(&self, command: &'static Command, args: &[&[u8]]) -> Result<(), Denied> {
        if self.unrestricted && (self.all_channels || !command.is(flag::PUBSUB)) {
            return Ok(());
        }
        let mut denied = Denied::Command;
        for selector in &self.selectors {
            match selector.check(command, args) {
                Ok(()) => return Ok(()),
                // The most specific reason of all selectors is reported.
                Err(reason) => denied = denied.max(reason),
            }
        }
        Err(denied)
    }
}

impl User {
    /// Returns whether the user may run a command and read any key with it.
    pub fn reads_all_keys(&self, command: &'static Command, args: &[&[u8]]) -> bool {
        self.unrestricted
            || self.selectors.iter().any(|selector| selector.reads_all_keys() && selector.check(command, args).is_ok())
    }

    /// Returns whether the user may keep such subscriptions.
    pub fn may_keep(&self, subscriptions: &Subscriptions) -> bool {
        let may = |name: &[u8], is_pattern: bool| {
            self.selectors.iter().any(|selector| selector.may_use_channel(name, is_pattern))
        };
        self.all_channels
            || subscriptions.channels.iter().chain(&subscriptions.shards).all(|name| may(name, false))
                && subscriptions.patterns.iter().all(|name| may(name, true))
    }
}

impl Denied {
    /// Returns the error for a client that sends such a command.
    pub fn text(self, command: &Command) -> String {
        match self {
            Denied::Command => {
                format!("NOPERM this user has no permissions to run the '{}' command", command.name)
            }
            Denied::Key(_) => {
                "NOPERM this user has no permissions to access one of the keys used as arguments".to_owned()
            }
            Denied::Channel(_) => {
                "NOPERM this user has no permissions to access one of the channels used as arguments".to_owned()
            }
        }
    }

    /// Returns the error in the reply of EXEC if the rules have changed since the command was queued (DR-5).
    pub fn text_in_exec(self) -> &'static str {
        match self {
            Denied::Command => {
                "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: no permission to execute the command or subcommand"
            }
            Denied::Key(_) => {
                "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: no permission to touch the specified keys"
            }
            Denied::Channel(_) => {
                "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: no permission to access one of the channels used as arguments"
            }
        }
    }
}

impl Selector {
    fn check(&self, command: &'static Command, args: &[&[u8]]) -> Result<(), Denied> {
        if !self.may_run(command, args) {
            return Err(Denied::Command);
        }
        if !self.all_keys {
            for spec in command.keys.iter().filter(|spec| spec.names_keys()) {
                let needs = keys::needs(spec.flags_in(command.name, args));
                if let Some(at) = spec.positions(args).find(|at| !self.may_access(args[*at], needs)) {
                    return Err(Denied::Key(at));
                }
            }
        }
        let Some((channels, is_pattern)) = command.channels(args.len()) else { return Ok(()) };
        match { channels }.find(|at| !self.may_use_channel(args[*at], is_pattern)) {
            Some(at) => Err(Denied::Channel(at)),
            None => Ok(()),
        }
    }

    fn may_run(&self, command: &'static Command, args: &[&[u8]]) -> bool {
        let index = command.index();
        // Commands for logging in are always allowed.
        let named = self.all_commands || command.is(flag::NO_AUTH) || self.commands[index];
        let starts_with = |word: &str| args.get(1).is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()));
        named || self.first_arguments.iter().any(|(of, word)| *of == index && starts_with(word))
    }

    fn may_access(&self, key: &[u8], (reads, writes): (bool, bool)) -> bool {
        self.keys.iter().any(|allowed| {
            (allowed.read || !reads) && (allowed.write || !writes) && glob::matches(&allowed.pattern, key, false)
        })
    }
}
