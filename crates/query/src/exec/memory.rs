//! What a statement holds in memory, counted by who holds it.
//!
//! X2: whoever gathers something has a `Held` for it, and gives back by dropping it. So what the right side of a loop has gathered, or one run of a subquery, is off the sum when it is gone, and the sum of nobody
//! else is touched. A statement begins with a sum of its own: what an older one still holds does not count against it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::Result;
use crate::exec::host::{host, row_bytes};
use crate::scalar::EvalContext;
use crate::session::Row;

/// The bytes of a statement. One thread at a time works on it.
#[derive(Clone, Debug, Default)]
pub struct Sum(Arc<AtomicUsize>);

/// Bytes that somebody holds.
#[derive(Debug, Default)]
pub struct Held {
    of: Option<Sum>,
    bytes: usize,
}

impl Sum {
    pub fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Held {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn add(&mut self, bytes: usize, sum: &Sum) {
        let sum = self.of.get_or_insert_with(|| sum.clone());
        sum.0.store(sum.bytes() + bytes, Ordering::Relaxed);
        self.bytes += bytes;
    }

    /// Gives back so many of the bytes.
    pub fn release(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        if let Some(sum) = &self.of {
            sum.0.store(sum.bytes().saturating_sub(bytes), Ordering::Relaxed);
        }
    }

    pub fn clear(&mut self) {
        self.release(self.bytes);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Rows that stay in memory, and are counted there.
#[derive(Debug, Default)]
pub struct Gathered {
    pub rows: Vec<Row>,
    held: Held,
}

impl Gathered {
    pub fn push(&mut self, row: Row, ctx: &mut EvalContext) -> Result<()> {
        host(ctx).hold(&mut self.held, row_bytes(&row))?;
        self.rows.push(row);
        Ok(())
    }

    pub fn into_parts(self) -> (std::vec::IntoIter<Row>, Held) {
        (self.rows.into_iter(), self.held)
    }
}
