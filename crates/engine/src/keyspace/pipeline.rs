//! Commands that arrived together run under one set of stripes, taken once and released behind the last one.
//!
//! ```text
//!   stripes of all keys taken | command 0 | command 1 | ... | kept record written | COMMIT, if there is a record transaction | stripes released
//! ```
//! Each command is atomic, and they take effect in their order. Those that change several records share a record transaction; a change of one record is made in
//! memory and written when the next record's turn comes (`write_back`).

use crate::error::{Error, Result};
use crate::keyspace::ahead::Ahead;
use crate::keyspace::kept_record::{PipelineMark, PipelineRun};
use crate::keyspace::key::{KeySet, TreeKey};
use crate::keyspace::key_txn::{KeyTransaction, Mode, stripes_of};
use crate::keyspace::state::Keyspace;
use pager::Lsn;

/// How a pipeline ended.
#[derive(Debug)]
pub struct PipelineEnd {
    /// Number of commands that are decided. Of the others nothing has happened.
    pub settled: usize,
    /// The error of the last of these. Its change of one record is made, as alone.
    pub error: Option<Error>,
    /// The durability LSN of the replies.
    pub lsn: Lsn,
}

impl Keyspace {
    /// Runs commands one after the other under the stripes of all their keys. `f` runs the next one, for which it calls `begin_command` first; it returns false
    /// behind the last one.
    ///
    /// An error of `f` or of the engine undoes the commands since the first one that is not decided. The caller runs these alone. Returns `None`, having run
    /// nothing, if a client waits for one of the keys, a transaction of SQL holds one, or a busy script does.
    pub fn write_pipeline(
        &self,
        keys: &[(u8, &[u8])],
        mut f: impl FnMut(&mut KeyTransaction<'_>) -> Result<bool>,
    ) -> Result<Option<PipelineEnd>> {
        self.store.pager.admit()?;
        let now = self.clock.wall_ms();
        let mut txn = match KeyTransaction::new_unless_busy(self, stripes_of(keys)?, Mode::Writing, false, now) {
            Err(Error::Busy(_)) => return Ok(None),
            begun => begun?,
        };
        let is_locked = self.key_locks.any() && self.key_locks.holder_of(KeySet::Keys(keys)).is_some();
        // Whoever waits for a key is served between two commands. Nobody begins to wait while the stripes are held (EN-74).
        let is_awaited = || {
            let suffix = |key: &[u8]| TreeKey::new(0, key).suffix().to_vec();
            self.waiters.any() && keys.iter().any(|(db, key)| self.waiters.has(*db, &suffix(key)))
        };
        if is_locked || is_awaited() {
            txn.commit()?;
            return Ok(None);
        }
        txn.pipeline = Some(PipelineRun::default());
        loop {
            match f(&mut txn) {
                Ok(true) => {}
                Ok(false) => return Ok(Some(txn.end_pipeline())),
                // The command has made its change outside a record transaction.
                Err(error) if txn.changed => {
                    txn.lose_effects();
                    let number = txn.pipeline.as_ref().map_or(0, |run| run.running.command);
                    let end = txn.end_pipeline();
                    let error = (end.settled > number).then_some(error);
                    return Ok(Some(PipelineEnd { error, ..end }));
                }
                Err(_) => return Ok(Some(txn.undo_pipeline())),
            }
        }
    }
}

impl KeyTransaction<'_> {
    /// Begins the next command of a pipeline: its number, whether it may change more than one key, and a hint for its first key.
    pub fn begin_command(&mut self, command: usize, several: bool, ahead: Ahead) {
        let running = PipelineMark {
            command,
            events: self.events.len(),
            effects: self.effects.mark(),
            hits: self.hits,
            misses: self.misses,
        };
        if let Some(run) = &mut self.pipeline {
            (run.running, run.ahead) = (running, ahead);
        }
        (self.several, self.changed) = (several, false);
    }

    /// Decides the commands of a pipeline that are not decided yet.
    fn end_pipeline(mut self) -> PipelineEnd {
        assert!(self.ready.is_empty(), "EN-95: nobody waits for a key of a pipeline");
        if self.write_kept().is_err() {
            return self.undo_pipeline();
        }
        let commands = self.pipeline.as_ref().map_or(0, |run| run.running.command + 1);
        match self.record_txn.take().map(|txn| txn.commit()) {
            Some(Ok((lsn, deltas))) => {
                self.count_lookups();
                self.decided(lsn, deltas);
            }
            None => {
                self.count_lookups();
                self.announce();
                self.finish();
            }
            // Dropped undecided, it has been rolled back.
            Some(Err(_)) => return self.undo_pipeline(),
        }
        PipelineEnd { settled: commands, error: None, lsn: self.durability_lsn() }
    }

    /// Undoes the commands of a pipeline that are not decided.
    fn undo_pipeline(mut self) -> PipelineEnd {
        let run = self.pipeline.take().unwrap_or_default();
        let mark = run.unsettled.unwrap_or(run.running);
        (self.kept, self.kept_levels) = (None, None);
        if let Some(txn) = self.record_txn.take() {
            txn.abort();
        }
        self.events.truncate(mark.events);
        self.effects.truncate(mark.effects);
        (self.hits, self.misses) = (mark.hits, mark.misses);
        self.count_lookups();
        self.announce();
        self.undone();
        PipelineEnd { settled: mark.command, error: None, lsn: self.durability_lsn() }
    }
}
