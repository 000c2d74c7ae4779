//! The constraints that a transaction checks at its end: SET CONSTRAINTS.

use std::any::Any;
use std::collections::BTreeMap;

use crate::catalog::foreign_key::{Deferral, ForeignKey};
use crate::catalog::object_id::ObjectId;
use crate::catalog::table::Index;

/// When deferrable constraints of the transaction are checked: SET CONSTRAINTS.
#[derive(Clone, Debug, Default)]
pub struct ConstraintModes {
    all: Option<bool>,
    single: BTreeMap<ObjectId, bool>,
}

impl ConstraintModes {
    pub fn set_all(&mut self, is_deferred: bool) {
        self.all = Some(is_deferred);
        self.single.clear();
    }

    pub fn set(&mut self, constraint: ObjectId, is_deferred: bool) {
        self.single.insert(constraint, is_deferred);
    }

    fn defers(&self, constraint: ObjectId, deferral: Deferral) -> bool {
        let set = || self.single.get(&constraint).copied().or(self.all);
        match deferral {
            Deferral::Never => false,
            Deferral::Immediate => set().unwrap_or(false),
            Deferral::Deferred => set().unwrap_or(true),
        }
    }
}

/// The deferral of checks in a session's transaction.
#[derive(Default)]
pub struct Deferring {
    /// The session checks what waits behind its statements and before it commits. Others check everything at once, row by row.
    pub is_served: bool,
    pub modes: ConstraintModes,
    /// The checks, whose type only `exec::deferred` knows.
    pub(super) checks: Option<Box<dyn Any + Send>>,
}

impl Deferring {
    /// Returns whether the foreign key is checked later.
    pub fn defers(&self, key: &ForeignKey) -> bool {
        self.is_served && self.modes.defers(key.id, key.deferral)
    }

    /// Returns whether the keys of a deferrable index are checked at the end of the transaction, not of the statement.
    pub fn defers_index(&self, index: &Index) -> bool {
        self.modes.defers(index.id, index.deferral)
    }

    /// Returns whether the transaction has left checks.
    pub fn has_checks(&self) -> bool {
        self.checks.is_some()
    }

    /// Forgets what belongs to the transaction.
    pub fn clear(&mut self) {
        self.modes = ConstraintModes::default();
        self.checks = None;
    }
}
