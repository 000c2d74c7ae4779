//! Sessions for single statements: those that are free wait here, by account.
//!
//! A session that somebody else has used must not show it: when it is taken it is entered anew, so that database, variables, temporary tables and transactions of its last statement are gone (X5).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use query::error::SqlError;
use query::{Kill, Login, Session};
use stdx::sync::Mutex;

use crate::door::Shared;
use crate::session::{Who, enter};

/// So many of an account wait.
const KEPT_MAX: usize = 16;

#[derive(Default)]
pub struct Spare {
    by_account: Mutex<HashMap<Key, Vec<Free>>>,
}

/// Account, user and host: two users may have one account.
type Key = (String, String, String);

struct Free {
    session: Box<Session>,
    since_ms: u64,
}

fn key(who: &Who) -> Key {
    (who.account.clone(), who.user.clone(), who.host.clone())
}

impl Spare {
    /// A session as if it had just begun.
    pub(crate) fn take(&self, shared: &Shared, who: &Who) -> Result<Box<Session>, SqlError> {
        let free = self.by_account.lock().get_mut(&key(who)).and_then(Vec::pop);
        let Some(Free { mut session, .. }) = free else { return enter(shared, who) };
        let login = Login {
            user: who.user.clone(),
            host: who.host.clone(),
            database: None,
            connection_id: session.handle().connection_id,
        };
        session.change_user(login)?;
        if session.account() != who.account {
            return enter(shared, who);
        }
        session.count_found(true);
        Ok(session)
    }

    pub(crate) fn put_back(&self, shared: &Arc<Shared>, who: &Who, mut session: Box<Session>) {
        if session.handle().killed() == Kill::Connection {
            return;
        }
        if session.status().in_transaction {
            // Its locks are somebody else's wait.
            session.reset();
        }
        let since_ms = shared.now_ms();
        shared.tend();
        let mut all = self.by_account.lock();
        let free = all.entry(key(who)).or_default();
        if free.len() < KEPT_MAX {
            free.push(Free { session, since_ms });
        }
    }

    /// Lets go of those that have waited for so long.
    pub fn forget(&self, now_ms: u64, lifetime: Duration) {
        let mut old = Vec::new();
        let mut all = self.by_account.lock();
        for free in all.values_mut() {
            let is_old = |one: &mut Free| now_ms.saturating_sub(one.since_ms) as u128 >= lifetime.as_millis();
            old.extend(free.extract_if(.., is_old));
        }
        all.retain(|_, free| !free.is_empty());
        drop(all);
        // Their end is work, and nobody waits for it.
        drop(old);
    }

    pub fn count(&self) -> usize {
        self.by_account.lock().values().map(Vec::len).sum()
    }
}
