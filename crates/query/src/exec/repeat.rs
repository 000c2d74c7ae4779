//! The cache of a correlated subquery's answers, by the outer values: rows with equal values are not evaluated twice.
//!
//! Only of subqueries that answer the same whenever they are asked with the same values (`repeats`), and not in statements that change rows. What is kept has a limit of its own, beside what is
//! counted of the statement: when it is reached all is forgotten. Where answers are not asked for again, nothing is kept any more.
//!
//! Keeps QU-24.

use stdx::hash::Map;

use crate::exec::memory::row_bytes;
use crate::value::Value;

/// Of the memory of a statement, the part that the answers of one subquery may take.
const PART: usize = 16;
/// After so many questions it is known whether they repeat: one in `SELDOM` at least.
const TRIALS: u64 = 512;
const SELDOM: u64 = 16;

#[derive(Debug, Default)]
pub struct Answers {
    known: Map<Vec<u8>, Value>,
    bytes: usize,
    asked: u64,
    hits: u64,
    is_off: bool,
}

impl Answers {
    pub fn is_on(&self) -> bool {
        !self.is_off
    }

    pub fn get(&mut self, key: &[u8]) -> Option<Value> {
        self.asked += 1;
        let known = self.known.get(key).cloned();
        self.hits += u64::from(known.is_some());
        if self.asked == TRIALS && self.hits < TRIALS / SELDOM {
            *self = Answers { is_off: true, ..Answers::default() };
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
