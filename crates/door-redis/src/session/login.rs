//! AUTH and HELLO with AUTH: when a password may be checked, and which account it opens.
//!
//! Failed logins delay later ones (`engine::Attempts`). A delayed request stays in the input, and the session sleeps without a thread. Then the same request is
//! dispatched again. A session cannot sleep inside EXEC, so a login that would be delayed fails there without a check.

use std::borrow::Cow;
use std::sync::Arc;

use engine::{Account, Attempt, DEFAULT_ACCOUNT, Turn};
use reactor::Io;

use super::{Session, Step};
use crate::command::Command;

pub(crate) const TOO_MANY: &str = "WRONGPASS too many logins of this user from this address have failed, and too many are already delayed; try again later";

/// The result of a login.
pub(crate) enum Outcome {
    Entered,
    Wrong,
    TooMany,
}

/// Credentials of a request. Without a user they are for `default`, or `user:password` in one argument.
#[derive(Clone, Copy)]
pub(crate) struct Credentials<'a> {
    pub user: Option<&'a [u8]>,
    pub password: &'a [u8],
}

impl<'a> Credentials<'a> {
    /// Returns the credentials of an AUTH or HELLO, or None if it has none.
    fn of_request(command: &Command, args: &[&'a [u8]]) -> Option<Credentials<'a>> {
        match (command.name, args) {
            ("auth", [_, password]) => Some(Credentials { user: None, password }),
            ("auth", [_, user, password]) => Some(Credentials { user: Some(user), password }),
            ("hello", [_, _, options @ ..]) => {
                let at = options.iter().position(|word| word.eq_ignore_ascii_case(b"auth"))?;
                Some(Credentials { user: Some(options.get(at + 1)?), password: options.get(at + 2)? })
            }
            _ => None,
        }
    }

    /// Returns the logins to try, in this order: names and passwords.
    fn tries(&self) -> Vec<(Cow<'a, str>, &'a [u8])> {
        let Some(user) = self.user else {
            let mut tries = vec![(Cow::Borrowed(DEFAULT_ACCOUNT), self.password)];
            if let Some(colon) = self.password.iter().position(|byte| *byte == b':') {
                tries.push((String::from_utf8_lossy(&self.password[..colon]), &self.password[colon + 1..]));
            }
            return tries;
        };
        vec![(String::from_utf8_lossy(user), self.password)]
    }
}

impl Session {
    fn arrive(&self, credentials: &Credentials<'_>) -> Turn {
        let tries = credentials.tries();
        let names: Vec<&str> = tries.iter().map(|(name, _)| name.as_ref()).collect();
        let now_ms = self.shared.clock.monotonic_ns() / 1_000_000;
        self.shared.engine.accounts().attempts().arrive(self.client.peer, &names, now_ms)
    }

    /// Holds a request with a password until the password may be checked. Returns None if it may be checked now or there is none.
    pub(super) fn delay_login(&mut self, command: &'static Command, args: &[&[u8]], io: &mut Io<'_>) -> Option<Step> {
        if self.attempt.is_some() || self.multi.is_some() {
            return None;
        }
        match self.arrive(&Credentials::of_request(command, args)?) {
            Turn::Now(attempt) => self.attempt = Some(attempt),
            Turn::After(delay, attempt) => {
                self.attempt = Some(attempt);
                self.sleep(io, self.now_ms() + delay.as_millis() as u64);
                return Some(Step::Hold);
            }
            Turn::Refused => return Some(self.reject(Some(command), TOO_MANY, io)),
        }
        None
    }

    /// Checks credentials and, if they are valid, acts for their account.
    pub(crate) fn log_in(&mut self, command: &[u8], credentials: &Credentials<'_>) -> Outcome {
        let attempt: Attempt = match self.attempt.take().map_or_else(|| self.arrive(credentials), Turn::Now) {
            Turn::Now(attempt) => attempt,
            Turn::After(..) | Turn::Refused => return Outcome::TooMany,
        };
        let accounts = self.shared.engine.accounts();
        let open = |(name, password): &(Cow<'_, str>, &[u8])| accounts.authenticate(name, password);
        let found: Option<(usize, Arc<Account>)> =
            credentials.tries().iter().enumerate().find_map(|(nth, one)| Some((nth, open(one)?)));
        match found {
            Some((nth, account)) => {
                attempt.passed(nth);
                self.act_for(account);
                Outcome::Entered
            }
            None => {
                attempt.failed();
                let tried = credentials.user.map_or(DEFAULT_ACCOUNT.into(), String::from_utf8_lossy);
                self.log_access("auth", command, &tried);
                Outcome::Wrong
            }
        }
    }
}
