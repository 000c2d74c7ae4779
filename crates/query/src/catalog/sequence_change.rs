//! DDL of sequences, as a part of a change of definitions.

use std::sync::Arc;

use datum::Result;
use engine::rows::CATALOG;

use crate::catalog::Writing;
use crate::catalog::changes::name_of;
use crate::catalog::object_id::ObjectId;
use crate::catalog::record::{position_key, put, sequence_key};
use crate::catalog::sequence::{HeldCounter, Sequence, encode_sequence};
use crate::catalog::table::TableId;
use crate::engine_fault::engine_fault;

impl Writing<'_> {
    /// Stores a new sequence, whose name is free.
    pub fn create_sequence(&mut self, sequence: Sequence) -> Result<Arc<Sequence>> {
        if !sequence.temporary {
            put(&mut self.txn, &position_key(sequence.id), &sequence.position_record())?;
        }
        self.put_sequence(sequence)
    }

    /// Stores a changed definition of a sequence. It gives `restart` next if that is some, and otherwise goes on from
    /// its position. Fails with `Fault::SequencePosition` if that is outside the new bounds. A renamed sequence loses
    /// its old name by `forget_sequence_name` first.
    pub fn alter_sequence(&mut self, mut altered: Sequence, restart: Option<i64>) -> Result<Arc<Sequence>> {
        self.hold_counter(&altered)?;
        altered.recount(restart)?;
        if !altered.temporary {
            put(&mut self.txn, &position_key(altered.id), &altered.position_record())?;
        }
        self.put_sequence(altered)
    }

    pub fn drop_sequence(&mut self, sequence: &Sequence) -> Result<()> {
        self.hold_counter(sequence)?;
        self.forget_sequence_name(sequence)?;
        self.drop_access(sequence.id)?;
        self.drop_comments_of([sequence.id])?;
        for key in [sequence_key(sequence.id), position_key(sequence.id)] {
            self.txn.delete(CATALOG, &key).map_err(engine_fault)?;
        }
        self.changes().gone.insert(sequence.id);
        Ok(())
    }

    /// Drops the sequences with these numbers that the table still owns.
    pub(super) fn drop_owned(&mut self, table: TableId, owned: &[ObjectId]) -> Result<()> {
        for id in owned {
            let mut all = self.snapshot.schemas.values().flat_map(|schema| schema.sequences.values());
            let found = all.find(|sequence| sequence.id == *id && sequence.owned_by == Some(table)).cloned();
            if let Some(sequence) = found {
                self.drop_sequence(&sequence)?;
            }
        }
        Ok(())
    }

    /// Removes a sequence's name before a drop or a rename.
    pub fn forget_sequence_name(&mut self, sequence: &Sequence) -> Result<()> {
        if !sequence.temporary {
            self.claim_sequence(sequence, &sequence.name)?;
            self.give_up_name(&sequence.schema, &sequence.name)?;
            self.changes().sequences.insert(name_of(&sequence.schema, &sequence.name), None);
        }
        self.schema_mut(&sequence.schema)?.sequences.remove(&sequence.name);
        Ok(())
    }

    fn put_sequence(&mut self, sequence: Sequence) -> Result<Arc<Sequence>> {
        let sequence = Arc::new(sequence);
        if !sequence.temporary {
            if self.snapshot.sequence(&sequence.schema, &sequence.name).is_none() {
                self.claim_name(&sequence.schema, &sequence.name)?;
            }
            put(&mut self.txn, &sequence_key(sequence.id), &encode_sequence(&sequence))?;
            let place = name_of(&sequence.schema, &sequence.name);
            self.changes().sequences.insert(place, Some(sequence.clone()));
        }
        self.schema_mut(&sequence.schema)?.sequences.insert(sequence.name.clone(), sequence.clone());
        Ok(sequence)
    }

    /// Holds the counter until the change is committed or undone (QU-39), unless only this transaction has it.
    fn hold_counter(&mut self, sequence: &Sequence) -> Result<()> {
        if sequence.is_pending() || self.holds_counter(sequence.id) {
            return Ok(());
        }
        self.claim_sequence(sequence, &sequence.name)?;
        self.pending.counters.push(HeldCounter::hold(sequence));
        Ok(())
    }
}
