//! Plans and prepared statements that sessions share.
//!
//! Hard part: a plan may run in another session only if binding would produce the same plan there. The facts that binding reads of a session, besides the statement, the types of its parameters and the
//! definitions that `Bindings::are_current` checks, are its *plan-cache context*. Contexts have numbers, and the number is part of a plan's key.
//!
//! QU-32: equal facts have one number, and a number never comes to stand for other facts. So a context that was evicted gets a new number, and its plans are never found again.

use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};

use stdx::cache::{GenerationCache, ShardedCache};
use stdx::memory::Reclaim;
use stdx::sync::Mutex;

/// The number of plans by text that are kept for each thread, the least recently used leaving first.
const TEXTS: usize = 512;
/// The number of prepared statements kept for each thread; each holds its syntax tree.
const STATEMENTS: usize = 256;
/// Longer statements are prepared for their session alone: a tree takes some fifty times its text.
const STATEMENT_BYTES_MAX: usize = 4 << 10;
/// The number of contexts whose facts are kept.
const CONTEXTS: usize = 256;

/// The caches of one dialect. `F` are the facts of a context, `P` is found by a parameterised text, `S` by a statement's text.
pub struct PlanCache<F, P, S> {
    texts: ShardedCache<P>,
    statements: ShardedCache<S>,
    contexts: Mutex<GenerationCache<F, u64>>,
    /// The number given last.
    last: AtomicU64,
}

impl<F: Hash + Eq, P: Clone, S: Clone> PlanCache<F, P, S> {
    pub fn new() -> PlanCache<F, P, S> {
        PlanCache {
            texts: ShardedCache::new(TEXTS),
            statements: ShardedCache::new(STATEMENTS),
            contexts: Mutex::new(GenerationCache::new(CONTEXTS)),
            last: AtomicU64::new(0),
        }
    }

    pub fn text(&self, context: u64, text: &[u8]) -> Option<P> {
        self.texts.get(context, text)
    }

    pub fn keep_text(&self, context: u64, text: &[u8], plan: P) {
        self.texts.insert(context, text, plan);
    }

    pub fn statement(&self, context: u64, text: &str) -> Option<S> {
        self.statements.get(context, text.as_bytes())
    }

    /// Keeps a prepared statement, unless its text is long.
    pub fn keep_statement(&self, context: u64, text: &str, statement: S) {
        if text.len() <= STATEMENT_BYTES_MAX {
            self.statements.insert(context, text.as_bytes(), statement);
        }
    }

    /// Returns the number of a context that no other session shares.
    pub fn private_context(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the number of the context with these facts (QU-32).
    pub fn context(&self, facts: F) -> u64 {
        let mut contexts = self.contexts.lock();
        contexts.get(&facts).unwrap_or_else(|| {
            let number = self.private_context();
            contexts.insert(facts, number);
            number
        })
    }
}

impl<F: Hash + Eq, P: Clone, S: Clone> Default for PlanCache<F, P, S> {
    fn default() -> PlanCache<F, P, S> {
        PlanCache::new()
    }
}

impl<F: Send, P: Clone + Send + Sync, S: Clone + Send + Sync> Reclaim for PlanCache<F, P, S> {
    fn reclaim(&self) {
        self.texts.clear();
        self.statements.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_number_stands_for_its_facts_alone() {
        let cache = PlanCache::<u64, &str, &str>::new();
        let first = cache.context(1);
        assert_eq!(cache.context(1), first);
        // More contexts than are kept: the first is evicted, and its number is not given again.
        let others: Vec<u64> = (2..10 + CONTEXTS as u64 * 2).map(|facts| cache.context(facts)).collect();
        assert!(others.iter().all(|number| *number != first));
        let anew = cache.context(1);
        assert!(anew > others[others.len() - 1], "{anew}");
        cache.keep_text(first, b"select ?", "plan");
        assert_eq!(cache.text(anew, b"select ?"), None);
        assert_ne!(cache.private_context(), cache.private_context());
    }

    #[test]
    fn long_statements_are_not_kept() {
        let cache = PlanCache::<u64, &str, &str>::new();
        let long = "x".repeat(STATEMENT_BYTES_MAX + 1);
        cache.keep_statement(1, &long, "tree");
        cache.keep_statement(1, "short", "tree");
        assert_eq!((cache.statement(1, &long), cache.statement(1, "short")), (None, Some("tree")));
        cache.reclaim();
        assert_eq!(cache.statement(1, "short"), None);
    }
}
