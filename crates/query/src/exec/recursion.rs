//! Recursive common table expressions.
//!
//! The first round gives the rows of the source; each further one evaluates the recursive part over the rows of the round before, until a round gives nothing new. Where the dialect says so (`Recursion::is_lazy`), a round
//! goes on only when a reader has come to the end of the rows so far: then a LIMIT, or an EXISTS, ends a recursion that has no end of its own.

use std::sync::Arc;

use datum::{Fault, Result};

use crate::batch::Row;
use crate::exec::Exec;
use crate::exec::caches::caches;
use crate::exec::host::host;
use crate::exec::row_ops::key_of;
use crate::exec::spill::keys::Keys;
use crate::exec::spill::rows::Rows;
use crate::nodes::context::EvalContext;
use crate::nodes::node::{Node, Recursion};
use crate::nodes::walk::RoundReaders;

/// A recursive common table expression, as far as it has been computed.
struct Growing {
    rows: Rows,
    /// For UNION without ALL: the keys of all rows.
    seen: Keys,
    /// The plan of the current round; `None` if the rounds are over.
    round: Option<Exec>,
    /// The rows of the current round, and of the one before.
    fresh: Rows,
    last: Arc<Rows>,
    rounds: u64,
    /// Results that hold for one round only (QU-68).
    of_round: RoundReaders,
}

impl Growing {
    fn open(id: usize, source: &Arc<Node>, recursion: &Recursion, ctx: &mut EvalContext) -> Result<Growing> {
        let round = Some(Exec::open(source, None, ctx)?);
        Ok(Growing {
            rows: Rows::default(),
            seen: Keys::default(),
            round,
            fresh: Rows::default(),
            last: Arc::default(),
            rounds: 0,
            of_round: RoundReaders::of(&recursion.part, id),
        })
    }

    /// Takes the next batch of the current round, or begins the next round. Returns false if there is none.
    fn grow(&mut self, id: usize, recursion: &Recursion, ctx: &mut EvalContext) -> Result<bool> {
        // For this call alone: other readers of the expression, over other outer rows, have last rounds of their own.
        caches(ctx).commons.insert(id, self.last.clone());
        let grown = self.advance(id, recursion, ctx);
        caches(ctx).commons.remove(&id);
        grown
    }

    fn advance(&mut self, id: usize, recursion: &Recursion, ctx: &mut EvalContext) -> Result<bool> {
        let Some(round) = &mut self.round else { return Ok(false) };
        let mut batch = Vec::new();
        if !round.next(ctx, &mut batch)? {
            self.end_round(id, recursion, ctx)?;
            return Ok(self.round.is_some());
        }
        for row in batch {
            if recursion.distinct {
                let key = key_of(&row, &recursion.types);
                if !self.seen.insert(&key, ctx)? {
                    continue;
                }
            }
            self.rows.push(row.clone(), ctx)?;
            self.fresh.push(row, ctx)?;
        }
        Ok(true)
    }

    fn end_round(&mut self, id: usize, recursion: &Recursion, ctx: &mut EvalContext) -> Result<()> {
        self.round = None;
        if self.fresh.is_empty() {
            return Ok(());
        }
        self.rounds += 1;
        if self.rounds > host(ctx).recursion_max {
            return Err(Fault::RecursionLimit { rounds: self.rounds });
        }
        self.last = Arc::new(std::mem::take(&mut self.fresh));
        let caches = caches(ctx);
        caches.forget(&self.of_round);
        caches.commons.insert(id, self.last.clone());
        self.round = Some(Exec::open(&recursion.part, None, ctx)?);
        Ok(())
    }
}

/// Returns all rows.
pub fn all(id: usize, source: &Arc<Node>, recursion: &Recursion, ctx: &mut EvalContext) -> Result<Rows> {
    let mut growing = Growing::open(id, source, recursion, ctx)?;
    while growing.grow(id, recursion, ctx)? {}
    Ok(growing.rows)
}

/// Reads the rows of an expression, and lets them grow when it has come to their end.
#[derive(Default)]
pub struct RecursionReader {
    /// The number of the next row.
    at: usize,
    /// The rows, if they are not shared.
    own: Option<Box<Growing>>,
}

impl RecursionReader {
    /// Appends the next rows to `out`; none after the last. The readers of one statement share the rows of an expression that is kept.
    #[inline(never)]
    pub fn next(
        &mut self,
        (id, is_kept): (usize, bool),
        (source, recursion): (&Arc<Node>, &Recursion),
        ctx: &mut EvalContext,
        out: &mut Vec<Row>,
    ) -> Result<()> {
        // A round runs in the context that holds the rows, so they are taken out of it. An error ends the statement, and with it the rows.
        let kept = match is_kept {
            true => caches(ctx).growing.remove(&id).and_then(|growing| growing.downcast().ok()),
            false => self.own.take(),
        };
        let mut growing: Box<Growing> = match kept {
            Some(growing) => growing,
            None => Box::new(Growing::open(id, source, recursion, ctx)?),
        };
        while self.at >= growing.rows.len() && growing.grow(id, recursion, ctx)? {}
        if self.at < growing.rows.len() {
            let (block, first) = growing.rows.block_from(self.at)?;
            self.at += block.len() - first;
            out.extend(block[first..].iter().cloned());
        }
        match is_kept {
            true => drop(caches(ctx).growing.insert(id, growing)),
            false => self.own = Some(growing),
        }
        Ok(())
    }
}
