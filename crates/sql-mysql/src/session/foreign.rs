//! Foreign keys in DDL: from syntax to constraints, and the effects of DDL on one table upon the related tables.
//!
//! QU-26: DDL that makes, changes or drops a constraint takes exclusive metadata locks on both tables and gives both a new
//! version, so that plans bound without the constraint are invalidated. No metadata lock is held while waiting for
//! another one: the holder of the second may want the first.

use crate::types::MysqlType as _;
use std::collections::BTreeSet;
use std::sync::Arc;

use datum::Fault;
use syntax::tree::{self, ReferentialAction};

use crate::error::{self, Result, SqlError};
use crate::instance::database::Database;
use crate::session::Session;
use crate::session::definition_parser::{check_name, index_name, single};
use crate::session::generated::check_parent;
use query::catalog::foreign_key::{Action, Deferral, ForeignKey};
use query::catalog::object_id::{ObjectId, UNNUMBERED};
use query::catalog::table::{Index, Table, TableColumn};
use query::catalog::table_lock::TableMode;
use query::catalog::{Snapshot, Writing};
use query::exec::foreign::check_rows;
use query::key_form::KeyForm;
use query::session::definitions::{self, RelatedTables, Waits, referring};
use query::session::metadata_locks::{ApartLock, Patience};

/// A foreign key as declared. Without a name it gets one; without a schema its parent is in the child's schema.
pub(super) struct Wanted {
    pub key: ForeignKey,
    /// The name of the index that may have to be made for it.
    pub index_name: String,
}

pub(super) fn wanted(node: &tree::ForeignKey, columns: &[TableColumn]) -> Result<Wanted> {
    let tree::ForeignKey { constraint, index, columns: named, references } = node;
    let tree::References { table: parent, columns: referred, on_delete, on_update } = references;
    let text = |name: &Option<tree::Ident>| name.as_ref().map(|name| name.value.clone()).unwrap_or_default();
    let symbol = text(constraint);
    let mut own = Vec::new();
    for name in named {
        let at = columns.iter().position(|column| column.name.eq_ignore_ascii_case(&name.value));
        let at = at.ok_or_else(|| error::KEY_COLUMN_DOES_NOT_EXIST.with(&[&name.value]))?;
        if own.contains(&at) {
            return Err(error::DUP_FIELDNAME.with(&[&name.value]));
        }
        own.push(at);
    }
    if referred.len() != own.len() {
        let shown = if symbol.is_empty() { "foreign key without name" } else { &symbol };
        return Err(error::WRONG_FK_DEF.with(&[&shown, &"Key reference and table reference don't match"]));
    }
    let key = ForeignKey {
        id: UNNUMBERED,
        name: symbol.clone(),
        columns: own,
        parent_schema: parent.schema.clone().unwrap_or_default(),
        parent: parent.name.clone(),
        parent_columns: referred.iter().map(|name| name.value.clone()).collect(),
        on_delete: action(*on_delete)?,
        on_update: action(*on_update)?,
        deferral: Deferral::Never,
        is_validated: true,
    };
    Ok(Wanted { key, index_name: if symbol.is_empty() { text(index) } else { symbol } })
}

fn action(node: Option<ReferentialAction>) -> Result<Action> {
    Ok(match node {
        None | Some(ReferentialAction::NoAction) => Action::Nothing,
        Some(ReferentialAction::Restrict) => Action::Restrict,
        Some(ReferentialAction::Cascade) => Action::Cascade,
        Some(ReferentialAction::SetNull) => Action::SetNull,
        // InnoDB refuses it too.
        Some(ReferentialAction::SetDefault) => return Err(error::CANNOT_ADD_FOREIGN.bare()),
    })
}

/// Returns the number in a generated constraint name: 3 for `t_ibfk_3`.
fn made_up(name: &str, table: &str) -> Option<u64> {
    name.strip_prefix(table)?.strip_prefix("_ibfk_")?.parse().ok()
}

fn check_foreign_name(name: &str, table: &Table, snapshot: &Snapshot) -> Result<()> {
    check_name(name, &error::WRONG_COLUMN_NAME)?;
    let others = snapshot.schema(&table.schema)?.tables.values().filter(|other| other.id != table.id);
    let mut names = others.flat_map(|other| &other.foreign_keys).chain(&table.foreign_keys);
    if names.any(|key| key.name.eq_ignore_ascii_case(name)) {
        return Err(error::FK_DUP_NAME.with(&[&name]));
    }
    Ok(())
}

/// Checks that the columns of ON ... SET NULL are nullable.
pub(super) fn check_nullable(key: &ForeignKey, table: &Table) -> Result<()> {
    let nulls = key.on_delete == Action::SetNull || key.on_update == Action::SetNull;
    if nulls && let Some(at) = key.columns.iter().find(|at| !table.columns[**at].ty.nullable) {
        return Err(error::FK_COLUMN_NOT_NULL.with(&[&table.columns[*at].name, &key.name]));
    }
    Ok(())
}

/// Refuses a CHECK over columns that a cascade changes, since cascades do not evaluate CHECKs.
pub(super) fn refuse_acting_keys(table: &Table, check: &str, columns: &[usize]) -> Result<()> {
    let acting = table.foreign_keys.iter().filter(|key| key.on_delete == Action::SetNull || key.on_update.acts());
    for key in acting {
        if let Some(at) = key.columns.iter().find(|at| columns.contains(at)) {
            return Err(error::CHECK_USES_FK_COLUMN.with(&[&table.columns[*at].name, &check, &key.name]));
        }
    }
    Ok(())
}

/// Drops indexes made for foreign keys once another index covers the columns.
pub(super) fn drop_needless_indexes(table: &mut Table) {
    let covers =
        |parts: &[query::catalog::table::Part], columns: &[usize]| query::catalog::foreign::leads(parts, columns);
    let needless: Vec<bool> = table
        .indexes
        .iter()
        .map(|index| {
            let columns: Vec<usize> = index.parts.iter().map(|part| part.column).collect();
            let asked = table.indexes.iter().filter(|other| !other.generated).map(|other| &other.parts);
            index.generated && asked.chain(&table.primary).any(|parts| covers(parts, &columns))
        })
        .collect();
    let mut needless = needless.into_iter();
    table.indexes.retain(|_| !needless.next().unwrap_or_default());
}

impl Session {
    pub(super) fn checks_foreign_keys(&self) -> bool {
        let host = self.ctx.host.as_ref().and_then(|host| host.downcast_ref::<query::exec::host::Host>());
        host.is_none_or(|host| host.foreign_key_checks)
    }

    /// Adds the foreign keys to a table, with the indexes that they need.
    pub(super) fn add_foreign_keys(
        &self,
        table: &mut Table,
        wanted: Vec<Wanted>,
        writing: &mut Writing<'_>,
    ) -> Result<()> {
        for Wanted { mut key, index_name: index } in wanted {
            if key.parent_schema.is_empty() {
                key.parent_schema.clone_from(&table.schema);
            }
            if key.name.is_empty() {
                let taken = table.foreign_keys.iter().filter_map(|known| made_up(&known.name, &table.name));
                key.name = format!("{}_ibfk_{}", table.name, taken.max().unwrap_or(0) + 1);
            }
            check_foreign_name(&key.name, table, &writing.snapshot)?;
            check_nullable(&key, table)?;
            if let Some(at) = key.columns.iter().find(|at| table.columns[**at].ty.kind().is_blob()) {
                return Err(error::BLOB_KEY_WITHOUT_LENGTH.with(&[&table.columns[*at].name]));
            }
            let parts: Vec<_> = key.columns.iter().flat_map(|column| single(*column)).collect();
            // An index made for an earlier constraint over the same columns is renamed after the last one, as in MySQL.
            let twin = table.indexes.iter().position(|known| known.generated && known.parts == parts);
            let kept = twin.map(|at| table.indexes.remove(at).map);
            if kept.is_some() || table.key_over(&key.columns).is_none() {
                let name = index_name(table, index, &parts)?;
                let map = kept.map_or_else(|| writing.txn.create_map(), Ok)?;
                let comment = String::new();
                let (unique, invisible, using, generated) = (false, false, false, true);
                table.indexes.push(Index {
                    id: UNNUMBERED,
                    name,
                    map,
                    unique,
                    parts,
                    form: KeyForm::Hashed,
                    comment,
                    invisible,
                    using,
                    generated,
                    is_constraint: false,
                    included: Vec::new(),
                    predicate: None,
                    terms: None,
                    nulls_equal: false,
                    deferral: Deferral::Never,
                    is_primary: false,
                    is_unseen: false,
                });
            }
            self.check_ends(&key, table, &writing.snapshot)?;
            let is_own = key.refers_to(&table.schema, &table.name);
            if !is_own && writing.snapshot.table(&key.parent_schema, &key.parent).is_err() {
                writing.hold_missing(&key.parent_schema, &key.parent)?;
            }
            table.foreign_keys.push(key);
        }
        Ok(())
    }

    /// QU-6 from the child's side. A parent may be missing only while foreign_key_checks is off.
    fn check_ends(&self, key: &ForeignKey, child: &Table, snapshot: &Snapshot) -> Result<()> {
        if key.refers_to(&child.schema, &child.name) {
            check_parent(key, child)?;
            return Ok(key.fit(child, child).map(drop)?);
        }
        match snapshot.table(&key.parent_schema, &key.parent) {
            Ok(parent) => {
                check_parent(key, parent)?;
                Ok(key.fit(child, parent).map(drop)?)
            }
            Err(_) if !self.checks_foreign_keys() => Ok(()),
            Err(_) => Err(error::FK_CANNOT_OPEN_PARENT.with(&[&key.parent])),
        }
    }

    /// QU-6 after a table has changed: checks its own constraints and those that refer to it. `old` is the previous
    /// definition.
    pub(super) fn check_family(&self, old: Option<&Table>, new: &Table, snapshot: &Snapshot) -> Result<()> {
        let lost_index = || {
            let gone = old.into_iter().flat_map(|old| {
                let primary = old.primary.is_some() && new.primary.is_none();
                let lost = old.indexes.iter().filter(|index| new.index(&index.name).is_none());
                primary.then_some("PRIMARY").into_iter().chain(lost.map(|index| &*index.name))
            });
            gone.last().map(|name| error::DROP_INDEX_FK.with(&[&name]))
        };
        for key in &new.foreign_keys {
            check_nullable(key, new)?;
            if new.key_over(&key.columns).is_none() {
                return Err(lost_index().unwrap_or_else(|| error::CANNOT_ADD_FOREIGN.bare()));
            }
            if key.refers_to(&new.schema, &new.name) || snapshot.table(&key.parent_schema, &key.parent).is_ok() {
                self.check_ends(key, new, snapshot)?;
            }
        }
        let children = snapshot.children_now(&new.schema, &new.name);
        for child in children.iter().filter(|child| child.id != new.id) {
            for key in child.foreign_keys.iter().filter(|key| key.refers_to(&new.schema, &new.name)) {
                check_parent(key, new)?;
                key.fit(child, new).map_err(|fault| match fault {
                    Fault::ReferencedKeyMissing(_) => lost_index().unwrap_or_else(|| fault.into()),
                    fault => fault.into(),
                })?;
            }
        }
        Ok(())
    }

    /// Validates the rows against new constraints, or marks the table unchecked if foreign_key_checks is off.
    pub(super) fn check_new_constraints(&mut self, old: &Table, new: &Table, writing: &mut Writing<'_>) -> Result<()> {
        for key in new.foreign_keys.iter().filter(|key| !old.foreign_keys.contains(key)) {
            if !self.checks_foreign_keys() {
                self.db.catalog().note_unchecked(new)?;
                continue;
            }
            let is_own = key.refers_to(&new.schema, &new.name);
            let parent =
                if is_own { None } else { Some(writing.snapshot.table(&key.parent_schema, &key.parent)?.clone()) };
            let parent = parent.as_deref().unwrap_or(new);
            let by = key.fit(new, parent)?;
            check_rows(&mut writing.txn, new, key, parent, by, &mut self.ctx)?;
        }
        Ok(())
    }

    /// Refuses to drop tables that remaining tables refer to.
    pub(super) fn check_unreferenced(&self, gone: &[Arc<Table>], snapshot: &Snapshot) -> Result<()> {
        for (table, child) in referring(gone, snapshot) {
            if !self.checks_foreign_keys() {
                self.db.catalog().note_unchecked(&child)?;
                continue;
            }
            let key = child.foreign_keys.iter().find(|key| key.refers_to(&table.schema, &table.name));
            let name = key.map(|key| key.name.clone()).unwrap_or_default();
            return Err(error::FK_CANNOT_DROP_PARENT.with(&[&table.name, &name, &child.name]));
        }
        let ids: BTreeSet<ObjectId> = gone.iter().map(|table| table.id).collect();
        check_rows_unused(snapshot, &ids)
    }

    /// Refuses TRUNCATE of a referenced table, since it does not check each row.
    pub(super) fn check_truncatable(&self, table: &Arc<Table>, snapshot: &Snapshot) -> Result<()> {
        for (table, child) in referring(std::slice::from_ref(table), snapshot) {
            if !self.checks_foreign_keys() {
                self.db.catalog().note_unchecked(&child)?;
                continue;
            }
            let key = child.foreign_keys.iter().find(|key| key.refers_to(&table.schema, &table.name));
            let name = key.map(|key| key.name.clone()).unwrap_or_default();
            let shown = format!("`{}`.`{}`, CONSTRAINT `{name}`", child.schema, child.name);
            return Err(error::TRUNCATE_ILLEGAL_FK.with(&[&shown]));
        }
        Ok(())
    }

    /// Takes the exclusive metadata locks for a change (`tables_to_lock`) and begins it. `needs` is evaluated again
    /// once no other session can change definitions.
    pub(super) fn close_and_write<'c>(
        &mut self,
        db: &'c Database,
        needs: impl Fn(&Snapshot) -> Result<RelatedTables>,
    ) -> Result<(Vec<ApartLock>, Writing<'c>)> {
        self.lock_and_write(db, TableMode::AccessExclusive, needs)
    }

    /// The same with metadata locks of another mode.
    pub(super) fn lock_and_write<'c>(
        &mut self,
        db: &'c Database,
        mode: TableMode,
        needs: impl Fn(&Snapshot) -> Result<RelatedTables>,
    ) -> Result<(Vec<ApartLock>, Writing<'c>)> {
        for _ in 0..100 {
            self.refresh();
            let (wait, handle) = (self.mdl_wait(), &self.handle);
            let metadata = Patience { wait, is_interrupted: &|| handle.is_interrupted() };
            let waits = Waits { metadata, rows: self.lock_wait() };
            let to_lock = |related: &RelatedTables| self.tables_to_lock(related);
            if let Some(begun) = self.core.try_change(db.instance(), &self.catalog, (mode, waits), &needs, to_lock)? {
                return Ok(begun);
            }
        }
        Err(error::LOCK_WAIT_TIMEOUT.bare())
    }
}

/// Updates other definitions after a table or its columns were renamed; `renames` are (old, new).
pub(super) fn follow_names(
    writing: &mut Writing<'_>,
    old: &Table,
    new: &mut Table,
    renames: &[(String, String)],
) -> Result<()> {
    let is_moved = old.schema != new.schema || old.name != new.name;
    if !is_moved && renames.is_empty() {
        return Ok(());
    }
    definitions::follow_names(writing, old, new, renames, str::eq_ignore_ascii_case)?;
    if is_moved {
        let names: Vec<String> = new.foreign_keys.iter().map(|key| key.name.clone()).collect();
        for (at, name) in names.into_iter().enumerate() {
            if let Some(number) = made_up(&name, &old.name) {
                new.foreign_keys[at].name = format!("{}_ibfk_{number}", new.name);
            }
            let mut others = new.copy();
            let key = others.foreign_keys.remove(at);
            check_foreign_name(&key.name, &others, &writing.snapshot)?;
        }
    }
    Ok(())
}

/// Refuses to drop relations whose rows are values of another table's column.
pub(super) fn check_rows_unused(snapshot: &Snapshot, gone: &BTreeSet<ObjectId>) -> Result<()> {
    let remains = |table: &Table| !gone.contains(&table.id);
    let Some((user, column)) = snapshot.column_of_rows(gone.iter().copied(), remains) else { return Ok(()) };
    let what = format!("DROP of a table or view whose row type column '{column}' of table '{}' has", user.name);
    Err(SqlError::unsupported(what))
}
