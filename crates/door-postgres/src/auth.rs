//! Authentication: SCRAM-SHA-256 over the one list of accounts, or a password in clear text through TLS.
//!
//! ```text
//!   startup ──no password needed──────────────────────────────► accepted
//!      ├──the account has a SCRAM verifier──► SASL ─► proof ──► accepted / denied
//!      └──another form of its password──TLS──► password ──────► accepted / denied
//!                                       └─none─► refused: the error names the remedy
//! ```
//! An unknown role takes the steps of a known one: it gets a salt of its own, always the same one, and the proof is checked against a decoy (DP-6).

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use engine::{Account, Accounts, DEFAULT_ACCOUNT, PASSWORD_MAX, ScramVerifier};
use sql_postgres::error::{PgError, Result};

use crate::errors;
use crate::reply::{self, auth};
use crate::scram::{self, Exchange};
use crate::wire::Reader;

#[cfg(test)]
mod tests;

/// The role of a new server's owner. It is the account `default` until there is an account of its name.
pub const POSTGRES: &str = "postgres";

/// Returns the account of a role.
pub fn find(accounts: &Accounts, role: &str) -> Option<Arc<Account>> {
    // An account with a host is MySQL's alone.
    let account = accounts.get(role).filter(|_| !role.contains('@'));
    account.or_else(|| if role == POSTGRES { accounts.get(DEFAULT_ACCOUNT) } else { None })
}

/// Returns whether the account's clients are not asked for a password.
pub fn is_open(account: &Account) -> bool {
    account.nopass || account.has_empty_password()
}

/// Returns whether a moment, in microseconds since 2000, has passed.
fn is_past(until: Option<i64>) -> bool {
    let start_of_2000 = UNIX_EPOCH + Duration::from_secs(946_684_800);
    let now = SystemTime::now().duration_since(start_of_2000).map_or(0, |since| since.as_micros() as i64);
    until.is_some_and(|until| until < now)
}

/// Picks what an unknown role appears to be. The seeds are new with each start of the server.
#[derive(Default)]
pub struct Decoys {
    seed: RandomState,
}

impl Decoys {
    fn verifier(&self, role: &str) -> ScramVerifier {
        let seed = [self.seed.hash_one((role, 1)), self.seed.hash_one((role, 2))];
        ScramVerifier::decoy(&seed.map(u64::to_le_bytes).concat())
    }

    /// Returns whether the role appears to have a SCRAM verifier, as often as the accounts with a password have one.
    fn has_verifier(&self, accounts: &Accounts, role: &str) -> bool {
        let list = accounts.list();
        let closed = list.iter().filter(|account| !is_open(account) && account.enabled);
        let (all, without) =
            closed.fold((0, 0), |(all, without), account| (all + 1, without + u64::from(account.scram.is_none())));
        self.seed.hash_one((role, 3)) % std::cmp::max(all, 1) >= without
    }
}

/// The context of a login: everything besides the client's messages.
pub struct LoginContext<'a> {
    pub accounts: &'a Accounts,
    pub decoys: &'a Decoys,
    /// The connection uses TLS.
    pub is_encrypted: bool,
    /// The hash of the certificate, if the connection has one to bind to.
    pub channel: Option<&'a [u8]>,
}

/// The server's next step in a login.
#[derive(Debug)]
pub enum LoginStep {
    /// Send these messages; the client will answer.
    Say(Vec<u8>),
    /// Accept, after these messages.
    Accept(Arc<Account>, Vec<u8>),
    /// The password is wrong, or right but of no use.
    Deny(PgError),
    /// The client has not shown whether it knows the password.
    Refuse(PgError),
}

#[derive(Debug)]
enum Expects {
    /// SASLInitialResponse.
    Mechanism,
    /// The client's last message.
    Proof(Exchange),
    Password,
}

/// A login in progress.
#[derive(Debug)]
pub struct LoginExchange {
    pub role: String,
    account: Option<Arc<Account>>,
    expects: Expects,
}

impl LoginExchange {
    /// Starts when the startup message has named the role.
    pub fn begin(context: &LoginContext<'_>, role: &str) -> (LoginExchange, LoginStep) {
        let account = find(context.accounts, role);
        let has_verifier = match &account {
            Some(account) => account.scram.is_some(),
            None => context.decoys.has_verifier(context.accounts, role),
        };
        let expects = if has_verifier { Expects::Mechanism } else { Expects::Password };
        let login = LoginExchange { role: role.to_owned(), account, expects };
        let step = match &login.account {
            Some(account) if is_open(account) => login.proved(context, Vec::new()),
            _ if has_verifier => {
                let plus = if context.channel.is_some() { format!("{}\0", scram::PLUS) } else { String::new() };
                let mechanisms = format!("{plus}{}\0\0", scram::PLAIN);
                LoginStep::Say(message(auth::SASL, mechanisms.as_bytes()))
            }
            _ if context.is_encrypted => LoginStep::Say(message(auth::CLEARTEXT_PASSWORD, b"")),
            _ => LoginStep::Refuse(errors::no_verifier(role)),
        };
        (login, step)
    }

    /// Continues with the body of the client's next message.
    pub fn resume(&mut self, context: &LoginContext<'_>, body: &[u8]) -> LoginStep {
        let step = match &self.expects {
            Expects::Mechanism => self.choose(context, body),
            Expects::Proof(exchange) => exchange.finish(body).map(|last| match last {
                Some(last) => self.proved(context, message(auth::SASL_FINAL, last.as_bytes())),
                None => LoginStep::Deny(errors::wrong_password(&self.role)),
            }),
            Expects::Password => self.check_password(context, body),
        };
        step.unwrap_or_else(LoginStep::Refuse)
    }

    /// Returns whether the client's next message is of SASL, and therefore short.
    pub fn is_sasl(&self) -> bool {
        !matches!(self.expects, Expects::Password)
    }

    fn choose(&mut self, context: &LoginContext<'_>, body: &[u8]) -> Result<LoginStep> {
        let mut reader = Reader(body);
        let mechanism = reader.text()?;
        if mechanism != scram::PLAIN && (mechanism != scram::PLUS || context.channel.is_none()) {
            return Err(errors::protocol("client selected an invalid SASL authentication mechanism"));
        }
        // PostgreSQL lets the message be absent, and would ask for it; no client of SCRAM leaves it out.
        let length = usize::try_from(reader.i32()?).map_err(|_| errors::insufficient_data())?;
        let first = reader.bytes(length)?;
        reader.end()?;
        let known = self.account.as_ref().and_then(|account| account.scram.as_ref());
        let verifier = known.map_or_else(|| context.decoys.verifier(&self.role), |scram| scram.verifier.clone());
        let (exchange, answer) = Exchange::begin(mechanism, first, verifier, context.channel)?;
        self.expects = Expects::Proof(exchange);
        Ok(LoginStep::Say(message(auth::SASL_CONTINUE, answer.as_bytes())))
    }

    fn check_password(&self, context: &LoginContext<'_>, body: &[u8]) -> Result<LoginStep> {
        let mut reader = Reader(body);
        let password = reader.c_string()?;
        if !reader.0.is_empty() {
            return Err(errors::protocol("invalid password packet size"));
        }
        if password.is_empty() {
            return Err(PgError::new("28P01", "empty password returned by client"));
        }
        let is_right = password.len() <= PASSWORD_MAX && Account::has_password(self.account.as_deref(), password);
        Ok(match is_right {
            true => self.proved(context, Vec::new()),
            false => LoginStep::Deny(errors::wrong_password(&self.role)),
        })
    }

    /// Decides whether the account may enter, now that the password is proved.
    fn proved(&self, context: &LoginContext<'_>, messages: Vec<u8>) -> LoginStep {
        match &self.account {
            // A decoy accepts no proof.
            None => LoginStep::Deny(errors::wrong_password(&self.role)),
            Some(account) if !account.enabled => LoginStep::Deny(errors::no_login(&self.role)),
            Some(account) if account.expired => LoginStep::Deny(errors::password_expired(&self.role)),
            // As PostgreSQL, which does not tell whether the password was right.
            Some(account) if !is_open(account) && is_past(account.role.valid_until) => {
                LoginStep::Deny(errors::wrong_password(&self.role))
            }
            Some(account) if account.needs_tls && !context.is_encrypted => {
                LoginStep::Deny(errors::needs_tls(&self.role))
            }
            Some(account) => LoginStep::Accept(account.clone(), messages),
        }
    }
}

fn message(code: u32, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    reply::put_authentication(&mut out, code, data);
    out
}
