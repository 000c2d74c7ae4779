//! DDL of types that users define, as a part of a change of definitions.

use std::sync::Arc;

use datum::{Fault, Result};
use engine::rows::{CATALOG, Strength};

use crate::catalog::Writing;
use crate::catalog::changes::name_of;
use crate::catalog::object_id::ObjectId;
use crate::catalog::record::{PIECE, put};
use crate::catalog::table::Table;
use crate::catalog::user_type::{UserType, encode_type, type_key};
use crate::engine_fault::engine_fault;

impl Writing<'_> {
    /// Stores a type, new or changed. A renamed one loses its old name by `forget_type_name` first.
    pub fn put_type(&mut self, ty: UserType) -> Result<Arc<UserType>> {
        let old = self.snapshot.user_type(&ty.schema, &ty.name).cloned();
        match &old {
            Some(old) => {
                self.claim_type(old)?;
                if old.row() != ty.row() {
                    self.check_users(old)?;
                }
            }
            None => self.claim_name(&ty.schema, &ty.name)?,
        }
        self.hold_types_of(ty.inner().into_iter())?;
        if let Some(old) = &old {
            self.drop_comments_gone(old.ids(), ty.ids())?;
        }
        self.forget_type_pieces(ty.id)?;
        for (piece, bytes) in encode_type(&ty).chunks(PIECE).enumerate() {
            put(&mut self.txn, &type_key(ty.id, piece as u16), bytes)?;
        }
        let ty = Arc::new(ty);
        self.changes().types.insert(name_of(&ty.schema, &ty.name), Some(ty.clone()));
        self.schema_mut(&ty.schema)?.types.insert(ty.name.clone(), ty.clone());
        Ok(ty)
    }

    /// Drops a type that no table and no other type uses. Fails if another transaction has meanwhile made one that does.
    pub fn drop_type(&mut self, ty: &UserType) -> Result<()> {
        self.forget_type_name(ty)?;
        self.check_users(ty)?;
        self.drop_comments_of(ty.ids())?;
        self.forget_type_pieces(ty.id)
    }

    /// Fails if another transaction has meanwhile made a table or a type that uses the type.
    fn check_users(&self, ty: &UserType) -> Result<()> {
        self.check_users_of(&ty.numbers, Some(ty.id))
    }

    fn forget_type_pieces(&mut self, id: ObjectId) -> Result<()> {
        let mut piece = 0;
        while self.txn.delete(CATALOG, &type_key(id, piece)).map_err(engine_fault)? {
            piece += 1;
        }
        Ok(())
    }

    /// Removes a type's name before a drop or a rename.
    pub fn forget_type_name(&mut self, ty: &UserType) -> Result<()> {
        self.claim_type(ty)?;
        self.give_up_name(&ty.schema, &ty.name)?;
        self.changes().types.insert(name_of(&ty.schema, &ty.name), None);
        self.schema_mut(&ty.schema)?.types.remove(&ty.name);
        Ok(())
    }

    /// Locks a type that is changed or dropped. Fails if another transaction has meanwhile done so.
    fn claim_type(&mut self, ty: &UserType) -> Result<()> {
        self.lock(&type_key(ty.id, 0), Strength::Exclusive)?;
        self.check_type(ty)
    }

    /// Locks the types of a table's columns, so that none is dropped before the transaction ends.
    pub(super) fn hold_types(&mut self, table: &Table) -> Result<()> {
        self.hold_types_of(table.columns.iter().map(|column| column.ty.id))
    }

    /// Locks a type that is used.
    pub(super) fn hold_type(&mut self, ty: &UserType) -> Result<()> {
        self.lock(&type_key(ty.id, 0), Strength::Shared)?;
        // A change of the type leaves the table's rows as they are.
        let now = self.catalog.published();
        let is_gone = !now.user_types().any(|known| known.id == ty.id);
        match is_gone && !self.pending.changes.types.contains_key(&*name_of(&ty.schema, &ty.name)) {
            true => Err(Fault::ConcurrentChange),
            false => Ok(()),
        }
    }

    fn check_type(&self, ty: &UserType) -> Result<()> {
        if self.pending.changes.types.contains_key(&*name_of(&ty.schema, &ty.name)) {
            return Ok(());
        }
        let now = self.catalog.published();
        match (now.user_type(&ty.schema, &ty.name), self.snapshot.user_type(&ty.schema, &ty.name)) {
            (Some(now), Some(seen)) if Arc::ptr_eq(now, seen) => Ok(()),
            _ => Err(Fault::ConcurrentChange),
        }
    }
}
