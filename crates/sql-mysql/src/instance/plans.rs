//! Plans and prepared statements, which sessions share.
//!
//! Hard part: a plan may run in another session only if binding would have come to the same there. What binding reads of a session, besides the statement, the types of its parameters and the definitions
//! that `Session::stands` looks at, is its *ground*. Grounds have numbers, and the number is part of what a plan is found by.
//!
//! MY-3: equal facts, one number; a number never comes to stand for other facts. MY-4: whoever changes a fact of the session calls `leave_ground`. MY-5: a session with temporary tables has a ground of its
//! own, and what holds for one run only (`Compiled::volatile`: variables, tables of the system) is not kept. MY-6: a plan that is found is looked at by `stands` before it runs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stdx::cache::{GenerationCache, ShardedCache};
use stdx::memory::Reclaim;
use stdx::sync::Mutex;

use crate::instance::compiled::Compiled;
use crate::instance::prepared::Described;
use crate::rights::Privileges;
use crate::scalar::settings::Settings;

/// So many plans by text are kept for a thread, of those that were asked for last.
const TEXTS: usize = 512;
/// And so many prepared statements, which hold their trees besides.
const STATEMENTS: usize = 256;
/// Longer statements are prepared for their session alone: a tree takes some fifty times its text.
const STATEMENT_MAX: usize = 4 << 10;
const GROUNDS: usize = 256;

/// What binding reads of a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Facts {
    pub settings: Settings,
    pub database: Option<String>,
    /// Of the list of accounts: what this account, its roles and those that views run as may do.
    pub generation: u64,
    pub account: String,
    pub roles: BTreeSet<String>,
    /// It counts as it was when the session entered (MY-14).
    pub entered_with: Privileges,
}

/// By ground and text.
pub(crate) struct Plans {
    texts: ShardedCache<OfText>,
    statements: ShardedCache<Arc<Described>>,
    grounds: Mutex<GenerationCache<Facts, u64>>,
    /// The number given last.
    ground: AtomicU64,
}

/// The plan of a text without literals.
#[derive(Clone, Debug)]
pub(crate) enum OfText {
    Plan(Arc<Compiled>),
    /// Texts like that are each parsed as they stand.
    Unshared,
}

impl Plans {
    pub fn new() -> Plans {
        Plans {
            texts: ShardedCache::new(TEXTS),
            statements: ShardedCache::new(STATEMENTS),
            grounds: Mutex::new(GenerationCache::new(GROUNDS)),
            ground: AtomicU64::new(0),
        }
    }

    pub fn text(&self, ground: u64, text: &[u8]) -> Option<OfText> {
        self.texts.get(ground, text)
    }

    pub fn keep_text(&self, ground: u64, text: &[u8], plan: OfText) {
        self.texts.insert(ground, text, plan);
    }

    pub fn statement(&self, ground: u64, text: &str) -> Option<Arc<Described>> {
        self.statements.get(ground, text.as_bytes())
    }

    pub fn keep_statement(&self, ground: u64, text: &str, statement: &Arc<Described>) {
        if text.len() <= STATEMENT_MAX {
            self.statements.insert(ground, text.as_bytes(), statement.clone());
        }
    }

    pub fn new_ground(&self) -> u64 {
        self.ground.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub fn ground(&self, facts: Facts) -> u64 {
        let mut grounds = self.grounds.lock();
        grounds.get(&facts).unwrap_or_else(|| {
            let number = self.new_ground();
            grounds.insert(facts, number);
            number
        })
    }
}

impl Reclaim for Plans {
    fn reclaim(&self) {
        self.texts.clear();
        self.statements.clear();
    }
}
