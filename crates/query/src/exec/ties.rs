//! FETCH ... WITH TIES: a limit that goes on to the end of the rows that are equal to its last.

use datum::Result;
use datum::key::encode;

use crate::batch::Row;
use crate::exec::Exec;
use crate::nodes::context::EvalContext;
use crate::nodes::node::SortKey;

pub struct TiesState {
    /// `None` after the end.
    input: Option<Exec>,
    skip: u64,
    left: u64,
    /// The keys of the last row within the limit.
    last: Option<Vec<u8>>,
}

impl TiesState {
    pub fn new(input: Exec, left: u64, skip: u64) -> TiesState {
        TiesState { input: (left > 0).then_some(input), skip, left, last: None }
    }

    pub fn next(&mut self, keys: &[SortKey], ctx: &mut EvalContext, out: &mut Vec<Row>) -> Result<()> {
        while out.is_empty() {
            let Some(input) = &mut self.input else { return Ok(()) };
            if !input.next(ctx, out)? {
                self.input = None;
                return Ok(());
            }
            let skipped = self.skip.min(out.len() as u64);
            self.skip -= skipped;
            out.drain(..skipped as usize);
            let kept = self.left.min(out.len() as u64) as usize;
            self.left -= kept as u64;
            if self.left > 0 {
                continue;
            }
            if kept > 0 {
                self.last = Some(key_of(&out[kept - 1], keys));
            }
            let is_tied = |row: &Row| self.last.as_deref() == Some(&key_of(row, keys));
            let tied = out[kept..].iter().take_while(|row| is_tied(row)).count();
            if kept + tied < out.len() {
                out.truncate(kept + tied);
                self.input = None;
            }
        }
        Ok(())
    }
}

fn key_of(row: &Row, keys: &[SortKey]) -> Vec<u8> {
    let mut out = Vec::new();
    keys.iter().for_each(|key| encode(&row[key.at], key.ty.shape(), key.order, &mut out));
    out
}
