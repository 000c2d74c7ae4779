//! The foreign-key graph of a change: the tables that a change of one table's rows reads and may change, and the keys
//! that lead from one to the other.
//!
//! Tables may refer to themselves and to each other, so members refer to each other by number; the changed table is
//! member 0. The graph is bound to definitions like the plan that it belongs to, and the metadata locks of its tables
//! are acquired with the plan's (QU-26).

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::catalog::Snapshot;
use crate::catalog::foreign_key::{Action, KeyAt};
use crate::catalog::table::Table;

/// The kind of a change of rows.
#[derive(Clone, Debug)]
pub enum RowChangeKind {
    Insert,
    /// An update of these columns.
    Update(Vec<usize>),
    Delete,
}

#[derive(Debug, Default)]
pub struct ForeignKeyGraph {
    pub members: Vec<Member>,
}

#[derive(Debug)]
pub struct Member {
    pub table: Arc<Table>,
    /// The parents of its foreign keys, in order.
    pub parents: Vec<Parent>,
    pub children: Vec<Child>,
    /// The edges that have been searched: its parents, its children for a deletion, and its children for an update of
    /// these columns.
    has_parents: bool,
    deleted: bool,
    updated: BTreeSet<usize>,
}

/// The parent of a foreign key. None: the table does not exist or does not fit.
#[derive(Debug)]
pub struct Parent {
    pub found: Option<(Arc<Table>, KeyAt)>,
}

/// A foreign key of another member that refers to this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    pub member: usize,
    /// The number among the child's foreign keys.
    pub foreign: usize,
    /// The referenced columns, in the order of the foreign key's own.
    pub columns: Vec<usize>,
    /// The key that finds the child's rows.
    pub key: KeyAt,
}

impl ForeignKeyGraph {
    /// Returns the graph of a change, or None if it concerns no foreign key.
    pub fn of(table: &Arc<Table>, doing: &[RowChangeKind], snapshot: &Snapshot) -> Option<Arc<ForeignKeyGraph>> {
        let mut foreign_graph = ForeignKeyGraph::default();
        foreign_graph.member(table);
        for doing in doing {
            foreign_graph.follow(0, doing, snapshot);
        }
        let root = &foreign_graph.members[0];
        (!root.parents.is_empty() || !root.children.is_empty()).then(|| Arc::new(foreign_graph))
    }

    /// Returns all tables but the changed one.
    pub fn others(&self) -> Vec<Arc<Table>> {
        let members = self.members.iter().map(|member| &member.table);
        let parents = self.members.iter().flat_map(|member| &member.parents).filter_map(|parent| parent.found.as_ref());
        let mut all: Vec<Arc<Table>> = members.chain(parents.map(|found| &found.0)).cloned().collect();
        all.sort_by_key(|table| table.id);
        all.dedup_by_key(|table| table.id);
        all.retain(|table| table.id != self.members[0].table.id);
        all
    }

    /// Returns the other tables whose rows the change may change.
    pub fn changed(&self) -> impl Iterator<Item = &Arc<Table>> {
        let acted = self.members.iter().skip(1).filter(|member| member.deleted || !member.updated.is_empty());
        acted.map(|member| &member.table)
    }

    fn member(&mut self, table: &Arc<Table>) -> usize {
        if let Some(at) = self.members.iter().position(|member| member.table.id == table.id) {
            return at;
        }
        self.members.push(Member {
            table: table.clone(),
            parents: Vec::new(),
            children: Vec::new(),
            has_parents: false,
            deleted: false,
            updated: BTreeSet::new(),
        });
        self.members.len() - 1
    }

    fn follow(&mut self, at: usize, doing: &RowChangeKind, snapshot: &Snapshot) {
        match doing {
            RowChangeKind::Insert => self.find_parents(at, snapshot),
            RowChangeKind::Update(sets) => {
                let member = &mut self.members[at];
                let fresh: Vec<usize> = sets.iter().copied().filter(|column| member.updated.insert(*column)).collect();
                let table = member.table.clone();
                if table.foreign_keys.iter().any(|key| key.columns.iter().any(|column| fresh.contains(column))) {
                    self.find_parents(at, snapshot);
                }
                self.find_children(at, Some(&fresh), snapshot);
            }
            RowChangeKind::Delete => {
                if !std::mem::replace(&mut self.members[at].deleted, true) {
                    self.find_children(at, None, snapshot);
                }
            }
        }
    }

    fn find_parents(&mut self, at: usize, snapshot: &Snapshot) {
        if std::mem::replace(&mut self.members[at].has_parents, true) {
            return;
        }
        let table = self.members[at].table.clone();
        let parent = |key: &crate::catalog::foreign_key::ForeignKey| {
            let parent = snapshot.table(&key.parent_schema, &key.parent).ok()?.clone();
            let by = key.fit(&table, &parent).ok()?;
            Some((parent, by))
        };
        self.members[at].parents = table.foreign_keys.iter().map(|key| Parent { found: parent(key) }).collect();
    }

    /// Adds the children of a member: those that refer to columns among `sets`, or all for a deletion (None).
    fn find_children(&mut self, at: usize, sets: Option<&[usize]>, snapshot: &Snapshot) {
        let parent = self.members[at].table.clone();
        for table in snapshot.children(&parent.schema, &parent.name) {
            for (foreign, key) in table.foreign_keys.iter().enumerate() {
                if !key.refers_to(&parent.schema, &parent.name) {
                    continue;
                }
                let Ok(columns) = key.places_in(&parent) else { continue };
                if sets.is_some_and(|sets| !columns.iter().any(|column| sets.contains(column))) {
                    continue;
                }
                // Every child has an index over its columns (QU-6).
                let Some(by) = table.key_over(&key.columns) else { continue };
                let member = self.member(&table);
                let child = Child { member, foreign, columns, key: by };
                if !self.members[at].children.contains(&child) {
                    self.members[at].children.push(child);
                }
                let action = if sets.is_some() { key.on_update } else { key.on_delete };
                match (action, sets) {
                    (Action::Cascade, None) => self.follow(member, &RowChangeKind::Delete, snapshot),
                    (Action::Cascade | Action::SetNull, _) => {
                        self.follow(member, &RowChangeKind::Update(key.columns.clone()), snapshot);
                    }
                    (Action::Nothing | Action::Restrict, _) => {}
                }
            }
        }
    }
}
