//! The plan cache: plans and prepared statements that sessions share.
//!
//! Hard part: a session may run a cached plan only if binding would give the same one. The part of a session's state
//! that binding reads, besides the statement, its parameter types and the definitions that `Session::is_plan_current`
//! checks, is its *plan-cache context*. Contexts have ids, and the id is part of the cache key.
//!
//! MY-3: equal contexts have equal ids, and an id never denotes another context. MY-4: a change of such state calls
//! `leave_context`. MY-5: a session with temporary tables has a context of its own, and plans for one run only
//! (`Compiled::volatile`: variables, system tables) are not cached. MY-6: a plan from the cache is checked by
//! `is_plan_current` before it runs.

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

/// The number of plans by text that are kept per thread.
const TEXTS: usize = 512;
/// The number of prepared statements that are kept, with their trees.
const STATEMENTS: usize = 256;
/// Longer statements are not shared, since a tree takes some fifty times its text.
const STATEMENT_MAX: usize = 4 << 10;
const CONTEXTS: usize = 256;

/// The plan-cache context: the state that binding reads from a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PlanContext {
    pub settings: Settings,
    pub database: Option<String>,
    /// The version of the list of accounts, and so of the privileges of the account, its roles and the definers of
    /// views.
    pub generation: u64,
    pub account: String,
    pub roles: BTreeSet<String>,
    /// Global privileges count as of the login (MY-14).
    pub entered_with: Privileges,
}

/// Cached plans by context and text.
pub(crate) struct Plans {
    texts: ShardedCache<OfText>,
    statements: ShardedCache<Arc<Described>>,
    contexts: Mutex<GenerationCache<PlanContext, u64>>,
    /// The last context id.
    context_id: AtomicU64,
}

/// The cached result for a parameterised text.
#[derive(Clone, Debug)]
pub(crate) enum OfText {
    Plan(Arc<Compiled>),
    /// Texts of this form are parsed each time.
    Unshared,
}

impl Plans {
    pub fn new() -> Plans {
        Plans {
            texts: ShardedCache::new(TEXTS),
            statements: ShardedCache::new(STATEMENTS),
            contexts: Mutex::new(GenerationCache::new(CONTEXTS)),
            context_id: AtomicU64::new(0),
        }
    }

    pub fn text(&self, context_id: u64, text: &[u8]) -> Option<OfText> {
        self.texts.get(context_id, text)
    }

    pub fn keep_text(&self, context_id: u64, text: &[u8], plan: OfText) {
        self.texts.insert(context_id, text, plan);
    }

    pub fn statement(&self, context_id: u64, text: &str) -> Option<Arc<Described>> {
        self.statements.get(context_id, text.as_bytes())
    }

    pub fn keep_statement(&self, context_id: u64, text: &str, statement: &Arc<Described>) {
        if text.len() <= STATEMENT_MAX {
            self.statements.insert(context_id, text.as_bytes(), statement.clone());
        }
    }

    pub fn new_context(&self) -> u64 {
        self.context_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub fn context_id(&self, plan_context: PlanContext) -> u64 {
        let mut contexts = self.contexts.lock();
        contexts.get(&plan_context).unwrap_or_else(|| {
            let number = self.new_context();
            contexts.insert(plan_context, number);
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
