//! The pool of idle sessions for single statements, by account.
//!
//! A session must not show traces of its last use: it is reset when it is taken, so that database, variables, temporary tables and transactions of the last
//! statement are gone (DX-12).

use std::collections::HashMap;
use std::time::Duration;

use sql_mysql::error::SqlError;
use sql_mysql::{Kill, Login, Session};
use stdx::sync::Mutex;

use crate::identity::Identity;

/// The limit of idle sessions of an account.
const KEPT_MAX: usize = 16;

#[derive(Default)]
pub struct SessionPool {
    by_account: Mutex<HashMap<AccountKey, Vec<IdleSession>>>,
}

/// Account, user and host: two users may have one account.
type AccountKey = (String, String, String);

struct IdleSession {
    session: Box<Session>,
    since_ms: u64,
}

fn key(identity: &Identity) -> AccountKey {
    (identity.account.clone(), identity.user.clone(), identity.host.clone())
}

impl SessionPool {
    /// Takes an idle session of the account and resets it. Returns `None` when there is none, or when the session would come back with another account.
    pub(crate) fn take(&self, identity: &Identity) -> Result<Option<Box<Session>>, SqlError> {
        let idle = self.by_account.lock().get_mut(&key(identity)).and_then(Vec::pop);
        let Some(IdleSession { mut session, .. }) = idle else { return Ok(None) };
        let login = Login {
            user: identity.user.clone(),
            host: identity.host.clone(),
            database: None,
            connection_id: session.handle().connection_id,
        };
        session.change_user(login)?;
        if session.account() != identity.account {
            return Ok(None);
        }
        session.count_found(true);
        Ok(Some(session))
    }

    /// Puts a session back, unless it was killed or enough are idle. Returns false for a killed session.
    pub(crate) fn put_back(&self, identity: &Identity, mut session: Box<Session>, now_ms: u64) -> bool {
        if session.handle().killed() == Kill::Connection {
            return false;
        }
        if session.status().in_transaction {
            // Another session may wait for its locks.
            session.reset();
        }
        let mut all = self.by_account.lock();
        let idle = all.entry(key(identity)).or_default();
        if idle.len() < KEPT_MAX {
            idle.push(IdleSession { session, since_ms: now_ms });
        }
        true
    }

    /// Drops the sessions that have been idle for longer than `lifetime`.
    pub fn forget(&self, now_ms: u64, lifetime: Duration) {
        let mut old = Vec::new();
        let mut all = self.by_account.lock();
        for free in all.values_mut() {
            let is_old = |one: &mut IdleSession| now_ms.saturating_sub(one.since_ms) as u128 >= lifetime.as_millis();
            old.extend(free.extract_if(.., is_old));
        }
        all.retain(|_, free| !free.is_empty());
        drop(all);
        // Sessions are dropped without the lock, because ending them takes time.
        drop(old);
    }

    pub fn count(&self) -> usize {
        self.by_account.lock().values().map(Vec::len).sum()
    }
}
