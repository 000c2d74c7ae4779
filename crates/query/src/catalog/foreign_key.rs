//! Foreign keys as stored in a definition. `catalog::foreign` finds their two ends.

use std::collections::BTreeMap;

use crate::catalog::object_id::ObjectId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Nothing,
    Restrict,
    Cascade,
    SetNull,
}

impl Action {
    pub fn name(self) -> &'static str {
        match self {
            Action::Nothing => "NO ACTION",
            Action::Restrict => "RESTRICT",
            Action::Cascade => "CASCADE",
            Action::SetNull => "SET NULL",
        }
    }

    /// Returns whether the action changes the child's rows.
    pub fn acts(self) -> bool {
        matches!(self, Action::Cascade | Action::SetNull)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    pub id: ObjectId,
    pub name: String,
    /// The child's columns.
    pub columns: Vec<usize>,
    pub parent_schema: String,
    pub parent: String,
    pub parent_columns: Vec<String>,
    pub on_delete: Action,
    pub on_update: Action,
    pub deferral: Deferral,
    /// False: rows that were there before the constraint have not been checked (NOT VALID).
    pub is_validated: bool,
}

/// Whether checks may wait for the end of the transaction, and whether they do unless the transaction says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deferral {
    #[default]
    Never,
    Immediate,
    Deferred,
}

/// A key that finds rows: an index, or the primary key.
pub type KeyAt = Option<usize>;

/// The tables that refer to a parent, by its schema and name.
pub type Children = BTreeMap<(String, String), Vec<(String, String)>>;
