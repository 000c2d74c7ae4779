//! The cache of a correlated subquery's results by outer values, so that outer rows with equal values evaluate it once.
//!
//! It is used only for subqueries whose result the outer values determine (`repeats`), and not in statements that
//! change rows. It has a size limit of its own besides the memory accounted to the statement, and is emptied when it
//! reaches the limit. If hits turn out to be rare, it is switched off.
//!
//! Keeps QU-24.

use stdx::hash::Map;

use crate::exec::memory::row_bytes;
use crate::value::Value;

/// The fraction of a statement's memory limit that one subquery's cache may take.
const PART: usize = 16;
/// After `TRIALS` lookups the cache is switched off unless one in `SELDOM` was a hit.
const TRIALS: u64 = 512;
const SELDOM: u64 = 16;

#[derive(Debug, Default)]
pub struct SubqueryCache {
    known: Map<Vec<u8>, Value>,
    bytes: usize,
    asked: u64,
    hits: u64,
    is_off: bool,
}

impl SubqueryCache {
    pub fn is_on(&self) -> bool {
        !self.is_off
    }

    pub fn get(&mut self, key: &[u8]) -> Option<Value> {
        self.asked += 1;
        let known = self.known.get(key).cloned();
        self.hits += u64::from(known.is_some());
        if self.asked == TRIALS && self.hits < TRIALS / SELDOM {
            *self = SubqueryCache { is_off: true, ..SubqueryCache::default() };
        }
        known
    }

    pub fn keep(&mut self, key: Vec<u8>, answer: &Value, memory_max: usize) {
        let bytes = key.len() + row_bytes(std::slice::from_ref(answer));
        if self.bytes + bytes > memory_max / PART {
            self.known.clear();
            self.bytes = 0;
        }
        if !self.is_off && bytes <= memory_max / PART {
            self.bytes += bytes;
            self.known.insert(key, answer.clone());
        }
    }
}
