//! The privileges that a statement needs, noted where names are resolved (PS-40).

use query::catalog::access::AccessKey;
use query::catalog::sequence::Sequence;
use query::catalog::table::Table;
use query::catalog::view::View;
use query::nodes::system_table::SystemTable;

use crate::bind::Binder;
use crate::error::Result;
use crate::rights::needs::{Need, SystemNeed};
use crate::rights::object::Object;
use crate::rights::privilege::Privileges;
use crate::types::oid::Oid;

/// The relation whose rows a statement changes, and the role that needs the privileges on it.
#[derive(Clone, Copy, Debug)]
pub struct ChangedNeed(usize);

/// Returns the number of a table's column in access records.
pub fn column_key(table: &Table, at: usize) -> u32 {
    table.columns[at].slot as u32 + 1
}

impl Binder<'_> {
    fn need(&mut self, object: Object, columns: impl FnOnce() -> Vec<u32>) -> usize {
        let is_it = |need: &Need| need.object.key == object.key && need.role == self.viewer;
        if let Some(at) = self.needs.iter().position(is_it) {
            return at;
        }
        self.needs.push(Need::new(object, self.viewer, columns()));
        self.needs.len() - 1
    }

    pub fn need_of_table(&mut self, table: &Table) -> ChangedNeed {
        let columns = || (0..table.columns.len()).map(|at| column_key(table, at)).collect();
        ChangedNeed(self.need(Object::table(table), columns))
    }

    pub fn need_of_view(&mut self, view: &View) -> ChangedNeed {
        ChangedNeed(self.need(Object::view(view), Vec::new))
    }

    /// Notes that the rows of a relation are read.
    pub fn need_select(&mut self, of: ChangedNeed) {
        self.needs[of.0].selected.is_needed = true;
    }

    pub fn need_select_of_sequence(&mut self, sequence: &Sequence) {
        let at = self.need(Object::sequence(sequence), Vec::new);
        self.needs[at].selected.is_needed = true;
    }

    pub fn need_system(&mut self, system: &'static SystemTable) {
        let need = (self.viewer, system.schema, system.name);
        if !self.system_needs.contains(&need) {
            self.system_needs.push(need);
        }
    }

    /// Notes privileges on the whole of a relation.
    pub fn need_whole(&mut self, of: ChangedNeed, privileges: Privileges) {
        self.needs[of.0].whole |= privileges;
    }

    /// Notes that columns get values from new rows.
    pub fn need_insert(&mut self, of: ChangedNeed, table: &Table, columns: &[usize]) {
        let inserted = &mut self.needs[of.0].inserted;
        inserted.is_needed = true;
        columns.iter().for_each(|at| inserted.add(column_key(table, *at)));
    }

    /// Notes that columns are changed; with none of them, that rows are locked.
    pub fn need_update(&mut self, of: ChangedNeed, table: &Table, columns: &[usize]) {
        let updated = &mut self.needs[of.0].updated;
        updated.is_needed = true;
        columns.iter().for_each(|at| updated.add(column_key(table, *at)));
    }

    pub fn need_select_of(&mut self, of: ChangedNeed, table: &Table, columns: &[usize]) {
        columns.iter().for_each(|at| self.needs[of.0].selected.add(column_key(table, *at)));
    }

    /// Notes that a column is read: that of a table by its position, or that of a view.
    pub fn note_selected(&mut self, origin: Option<(u64, u16)>) {
        let Some((id, number)) = origin else { return };
        let key = AccessKey::object(id);
        let Some(need) = self.needs.iter_mut().find(|need| need.object.key == key && need.role == self.viewer) else {
            return;
        };
        match need.columns.get(usize::from(number) - 1) {
            Some(column) => need.selected.add(*column),
            None => need.selected.is_needed = true,
        }
    }

    /// Notes the columns that a view over one relation reads: they are needed if the statement reads the view.
    pub fn need_through(&mut self, view: Option<ChangedNeed>, below: ChangedNeed, was_needed: bool) {
        let need = &mut self.needs[below.0];
        need.selected.is_needed = was_needed;
        need.follows = view.map(|view| view.0).filter(|view| *view != below.0);
    }

    pub fn is_selected(&self, of: ChangedNeed) -> bool {
        self.needs[of.0].selected.is_needed
    }

    /// Binds with the rights of a view's owner.
    pub fn with_rights_of<T>(&mut self, view: &View, bind: impl FnOnce(&mut Self) -> T) -> T {
        let viewer = match view.invoker {
            true => self.viewer,
            false => Some(self.owner_of_view(view)),
        };
        let before = std::mem::replace(&mut self.viewer, viewer);
        let bound = bind(self);
        self.viewer = before;
        bound
    }

    fn owner_of_view(&self, view: &View) -> Oid {
        if view.temporary {
            return view.owner;
        }
        let access = self.environment.snapshot.access.get(AccessKey::object(view.id));
        crate::rights::owner_of(access)
    }

    /// Gathers the needs of a common table expression apart: one that is not referred to needs nothing.
    pub fn begin_needs_of_common(&mut self) -> (Vec<Need>, Vec<SystemNeed>) {
        (std::mem::take(&mut self.needs), std::mem::take(&mut self.system_needs))
    }

    pub fn end_needs_of_common(&mut self, id: usize, around: (Vec<Need>, Vec<SystemNeed>)) {
        let own = std::mem::replace(&mut self.needs, around.0);
        let own_of_system = std::mem::replace(&mut self.system_needs, around.1);
        self.common_needs.insert(id, (own, own_of_system));
    }

    /// Notes what a common table expression needs that is referred to.
    pub fn need_common(&mut self, id: usize) {
        let Some((needs, of_system)) = self.common_needs.remove(&id) else { return };
        self.system_needs.extend(of_system);
        for need in needs {
            let is_it = |known: &Need| known.object.key == need.object.key && known.role == need.role;
            match self.needs.iter().position(is_it) {
                Some(at) => self.needs[at].merge(need),
                None => self.needs.push(need),
            }
        }
    }

    /// Fails if the statement may not run with the rights of the session.
    pub fn check_needs(&mut self) -> Result<()> {
        for at in 0..self.needs.len() {
            // A chain of views is as long as the statement's list at most.
            let mut above = self.needs[at].follows;
            for _ in 0..self.needs.len() {
                let Some(view) = above else { break };
                self.needs[at].selected.is_needed |= self.needs[view].selected.is_needed;
                above = self.needs[view].follows;
            }
        }
        self.environment.session.check_needs(self.environment, &self.needs, &self.system_needs)
    }
}
