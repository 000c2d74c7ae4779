//! The states that a shared database may have.
//!
//! One writer at a time, so the states are a line: each write of the newest opening adds one. An opening that has recovered must be in one of them, not before the last
//! that was acknowledged or shown; from then on that one is the first of the line, and no write of an earlier opening may be acknowledged unless it lies before it.

use pager::Lsn;

pub const CELLS: usize = 8;
pub type Cells = [u64; CELLS];

/// The oracle of one history.
pub struct Oracle {
    /// Boot number of the newest opening that has recovered.
    pub epoch: u64,
    /// The states since then, each with the end of its record.
    states: Vec<(Lsn, Cells)>,
    /// The last state that a client has learned of.
    settled: usize,
    /// The last state that the newest opening holds for durable, whether or not it may reply.
    durable: usize,
    /// Openings that have recovered, and up to which position.
    recovered: Vec<(u64, Lsn)>,
}

impl Oracle {
    pub fn new() -> Oracle {
        Oracle { epoch: 0, states: vec![(0, [0; CELLS])], settled: 0, durable: 0, recovered: Vec::new() }
    }

    /// An opening has found `cells`. It is ignored if a newer one has recovered already.
    pub fn opened(&mut self, epoch: u64, to: Lsn, cells: Cells) -> Result<(), String> {
        if epoch == self.epoch {
            return Err(format!("two openings have boot number {epoch}"));
        }
        if epoch < self.epoch {
            return Ok(());
        }
        if !self.states[self.durable..].iter().any(|(_, state)| *state == cells) {
            return Err(format!(
                "SI-9: opening {epoch} found {cells:?}; {:?} was durable, and later states are {:?}",
                self.states[self.durable].1,
                &self.states[self.durable + 1..]
            ));
        }
        (self.epoch, self.states, self.settled, self.durable) = (epoch, vec![(to, cells)], 0, 0);
        self.recovered.push((epoch, to));
        Ok(())
    }

    /// The opening has written `value` to `cells`; the record ends at `lsn`.
    pub fn written(&mut self, epoch: u64, lsn: Lsn, cells: &[usize], value: u64) {
        if epoch == self.epoch {
            let mut state = self.states.last().expect("one is always there").1;
            cells.iter().for_each(|cell| state[*cell] = value);
            self.states.push((lsn, state));
        }
    }

    /// The opening holds everything up to `durable` for durable; its last own write up to there is at `last`. Returns the number of writes that it acknowledges now, if it may reply. One that
    /// may not is held to SI-9 and SI-10 all the same: they do not rest on the lease.
    pub fn acknowledged(&mut self, epoch: u64, durable: Lsn, last: Lsn, may_reply: bool) -> Result<u64, String> {
        if epoch == self.epoch {
            self.durable = self.durable.max(self.last_up_to(durable));
            return Ok(if may_reply { self.settle(durable) } else { 0 });
        }
        match self.recovered.iter().find(|(newer, _)| *newer > epoch) {
            Some((newer, to)) if last > *to => Err(format!(
                "SI-10: opening {epoch} acknowledges a write at {last}, opening {newer} recovered up to {to} only"
            )),
            _ => Ok(0),
        }
    }

    /// Returns the last state whose record ends at `lsn` or before.
    fn last_up_to(&self, lsn: Lsn) -> usize {
        self.states[1..].iter().take_while(|(end, _)| *end <= lsn).count()
    }

    fn settle(&mut self, lsn: Lsn) -> u64 {
        let before = self.settled;
        self.settled = before.max(self.last_up_to(lsn));
        self.durable = self.durable.max(self.settled);
        (self.settled - before) as u64
    }

    /// The opening shows a client the value of a cell whose page is at `lsn`.
    pub fn shown(&mut self, epoch: u64, cell: usize, value: u64, lsn: Lsn) -> Result<(), String> {
        let newest = epoch == self.epoch;
        let (_, state) =
            if newest { *self.states.last().expect("one is always there") } else { self.states[self.settled] };
        if state[cell] != value {
            return Err(format!(
                "SI-11: opening {epoch} shows {value} in cell {cell}; opening {} has {}",
                self.epoch, state[cell]
            ));
        }
        if newest {
            self.settle(lsn);
        }
        Ok(())
    }
}
