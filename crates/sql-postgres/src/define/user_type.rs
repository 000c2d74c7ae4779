//! CREATE, ALTER and DROP of types.

use std::collections::BTreeSet;

use query::catalog::Snapshot;
use query::catalog::user_type::{EnumLabel, TypeDefinition, UserType, first_keys, key_between};
use query::types::TypeId;
use syntax::postgres::tree::{
    AlterEnumAction, AlterEnumStmt, AlterObjectSchemaStmt, AnyName, CreateEnumStmt, EnumPlace, ObjectName, ObjectType,
    RangeVar, TypeName,
};

use std::sync::Arc;

use crate::define::names::{Relation, find, find_type, missing_schema};
use crate::error::{PgError, Result, state};
use crate::session::Session;
use crate::types::oid::Oid;
use crate::types::text::NAME_MAX;
use crate::types::{registry, user};

fn missing_type(name: &AnyName) -> PgError {
    PgError::new(state::UNDEFINED_OBJECT, format!("type \"{}\" does not exist", name.dotted()))
}

fn existing_type(name: &str) -> PgError {
    PgError::new(state::DUPLICATE_OBJECT, format!("type \"{name}\" already exists"))
}

fn existing_label(label: &str) -> PgError {
    PgError::new(state::DUPLICATE_OBJECT, format!("enum label \"{label}\" already exists"))
}

fn check_label(label: &str) -> Result<()> {
    if label.len() <= NAME_MAX {
        return Ok(());
    }
    let error = PgError::new(state::INVALID_NAME, format!("invalid enum label \"{label}\""));
    Err(error.detail("Labels must be 63 bytes or less."))
}

fn place_of(labels: &[EnumLabel], label: &str) -> Result<usize> {
    labels.iter().position(|known| known.name == label).ok_or_else(|| {
        let message = format!("\"{label}\" is not an existing enum label");
        PgError::new(state::INVALID_PARAMETER_VALUE, message)
    })
}

/// Returns the rank of a label between its neighbours: theirs and the next whole number, or the middle. `None` if no number is left there.
fn rank_between(low: Option<f32>, high: Option<f32>) -> Option<f32> {
    match (low, high) {
        (None, None) => Some(1.0),
        (Some(low), None) => Some(low + 1.0),
        (None, Some(high)) => Some(high - 1.0),
        (Some(low), Some(high)) => Some(low.midpoint(high)).filter(|rank| *rank > low && *rank < high),
    }
}

/// Adds a label at a place among the others.
fn insert_label(labels: &mut Vec<EnumLabel>, at: usize, label: EnumLabel) -> Result<()> {
    let low = at.checked_sub(1).map(|low| &labels[low]);
    let key = key_between(low.map(|low| &*low.key), labels.get(at).map(|high| &*high.key));
    let Some(key) = key else {
        let message = "too many labels of an enum were added at one place";
        return Err(PgError::new(state::PROGRAM_LIMIT_EXCEEDED, message));
    };
    let rank = rank_between(low.map(|low| low.rank), labels.get(at).map(|high| high.rank));
    labels.insert(at, EnumLabel { key, rank: rank.unwrap_or(0.0), ..label });
    if rank.is_none() {
        labels.iter_mut().enumerate().for_each(|(nth, label)| label.rank = nth as f32 + 1.0);
    }
    Ok(())
}

impl Session {
    /// Fails for a name that a type has, since a relation's rows have a type of its name.
    pub(super) fn refuse_type_name(&self, snapshot: &Snapshot, schema: &str, name: &str) -> Result<()> {
        match snapshot.user_type(schema, name) {
            None => Ok(()),
            Some(ty) if ty.row().is_some() => {
                Err(PgError::new(state::DUPLICATE_TABLE, format!("relation \"{name}\" already exists")))
            }
            Some(_) => Err(existing_type(name).hint(
                "A relation has an associated type of the same name, so you must use a name that doesn't conflict with any existing type.",
            )),
        }
    }

    /// Fails for a name that another type has, or that of a table's or a view's rows.
    pub(super) fn refuse_taken_type(&self, snapshot: &Snapshot, schema: &str, name: &str) -> Result<()> {
        let of_rows = snapshot.table(schema, name).is_ok() || snapshot.view(schema, name).is_some();
        match of_rows || snapshot.user_type(schema, name).is_some() {
            true => Err(existing_type(name)),
            false => Ok(()),
        }
    }

    pub(super) fn relation_name_of(&self, name: &AnyName) -> Result<RangeVar> {
        let (catalog, schema, last) = match &name.parts[..] {
            [name] => (None, None, name),
            [schema, name] => (None, Some(schema), name),
            [catalog, schema, name] => (Some(catalog), Some(schema), name),
            _ => {
                let message = format!("improper qualified name (too many dotted names): {}", name.dotted());
                return Err(PgError::new(state::SYNTAX_ERROR, message));
            }
        };
        if catalog.is_some_and(|catalog| *catalog != self.who.database) {
            let message = format!("cross-database references are not implemented: {}", name.dotted());
            return Err(PgError::new(state::FEATURE_NOT_SUPPORTED, message));
        }
        let (catalog, schema) = (catalog.cloned(), schema.cloned());
        Ok(RangeVar { catalog, schema, name: last.clone(), at: name.at, ..RangeVar::default() })
    }

    /// Returns the type that a name means, one of PostgreSQL's own by its OID.
    pub(super) fn user_type(&mut self, name: &AnyName) -> Result<Result<Arc<UserType>, Oid>> {
        self.refresh();
        let RangeVar { schema, name: bare, .. } = self.relation_name_of(name)?;
        let is_system = schema.as_deref().is_none_or(|schema| schema == "pg_catalog");
        if let Some(row) = registry::by_name(&bare).filter(|_| is_system) {
            return Ok(Err(row.oid));
        }
        let path = match &schema {
            None => self.search_path(),
            Some(schema) => {
                let stored = self.stored_schema(schema)?;
                if !self.catalog.schemas.contains_key(&stored) && !crate::system::is_system(schema) {
                    return Err(missing_schema(schema));
                }
                vec![schema.clone()]
            }
        };
        match find_type(&self.catalog, &self.who.database, &path, &bare) {
            Some((ty, false)) => Ok(Ok(ty)),
            Some((ty, true)) => Ok(Err(user::array_oid_of(&ty))),
            None => Err(missing_type(name)),
        }
    }

    pub(super) fn create_enum(&mut self, create: &CreateEnumStmt) -> Result<()> {
        let CreateEnumStmt { name, labels } = create;
        let name = self.relation_name_of(name)?;
        let schema = self.creation_schema(&name)?;
        self.refuse_temporary_type(&schema)?;
        let db = self.database().clone();
        let mut writing = self.write(&db)?;
        self.refuse_taken_type(&writing.snapshot, &schema, &name.name)?;
        let id = writing.new_id();
        let [oid, array] = user::enum_oids(id)?;
        let Some(keys) = first_keys(labels.len()) else {
            return Err(PgError::new(state::PROGRAM_LIMIT_EXCEEDED, "too many labels of an enum"));
        };
        let mut known = BTreeSet::new();
        let mut made = Vec::with_capacity(labels.len());
        for (nth, (label, key)) in labels.iter().zip(keys).enumerate() {
            check_label(label)?;
            if !known.insert(label) {
                let message = "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"";
                let detail = format!("Key (enumtypid, enumlabel)=({oid}, {label}) already exists.");
                return Err(PgError::new(state::UNIQUE_VIOLATION, message).detail(detail));
            }
            let (id, rank) = (writing.new_id(), nth as f32 + 1.0);
            made.push(EnumLabel { id, name: label.clone(), key, rank, is_pending: false });
        }
        let numbers = vec![TypeId(oid), TypeId(array)];
        let definition = TypeDefinition::Enumeration(made);
        let (maker, name, comment) = (crate::MAKER, name.name, String::new());
        writing.put_type(UserType { id, maker, schema, name, numbers, comment, definition })?;
        self.finish(writing)
    }

    pub(super) fn alter_enum(&mut self, alter: &AlterEnumStmt) -> Result<()> {
        let AlterEnumStmt { name, action } = alter;
        let ty = self.user_type(name)?.map_err(|oid| {
            PgError::new(state::WRONG_OBJECT_TYPE, format!("{} is not an enum", registry::format_type(oid, None)))
        })?;
        let TypeDefinition::Enumeration(mut labels) = ty.definition.clone() else {
            let message = format!("{} is not an enum", registry::format_type(user::oid_of(&ty), None));
            return Err(PgError::new(state::WRONG_OBJECT_TYPE, message));
        };
        let db = self.database().clone();
        match action {
            AlterEnumAction::Add { label, if_not_exists, place } => {
                check_label(label)?;
                if labels.iter().any(|known| known.name == *label) {
                    let error = existing_label(label);
                    if !if_not_exists {
                        return Err(error);
                    }
                    self.skip_notice(error.state, error.message + ", skipping");
                    return Ok(());
                }
                let at = match place {
                    None => labels.len(),
                    Some(EnumPlace::Before(neighbour)) => place_of(&labels, neighbour)?,
                    Some(EnumPlace::After(neighbour)) => place_of(&labels, neighbour)? + 1,
                };
                let mut writing = self.write(&db)?;
                let (id, name) = (writing.new_id(), label.clone());
                let label = EnumLabel { id, name, key: Vec::new(), rank: 0.0, is_pending: true };
                insert_label(&mut labels, at, label)?;
                writing.put_type(UserType { definition: TypeDefinition::Enumeration(labels), ..(*ty).clone() })?;
                self.finish(writing)
            }
            AlterEnumAction::Rename { from, to } => {
                check_label(to)?;
                let at = place_of(&labels, from)?;
                if labels.iter().any(|known| known.name == *to) {
                    return Err(existing_label(to));
                }
                self.refuse_texts_of(&ty, "RENAME VALUE")?;
                labels[at].name.clone_from(to);
                let mut writing = self.write(&db)?;
                writing.put_type(UserType { definition: TypeDefinition::Enumeration(labels), ..(*ty).clone() })?;
                self.finish(writing)
            }
        }
    }

    /// Returns the type of an ALTER that does not say what kind of type it is.
    fn altered_type(&mut self, kind: ObjectType, name: &AnyName) -> Result<Arc<UserType>> {
        let ty = self.user_type(name)?.map_err(|oid| {
            let shown = registry::format_type(oid, None);
            match user::is_user_type(oid) {
                true => {
                    let message = format!("cannot alter array type {shown}");
                    let hint = format!(
                        "You can alter type {}, which will alter the array type as well.",
                        &shown[..shown.len() - 2]
                    );
                    PgError::new(state::WRONG_OBJECT_TYPE, message).hint(hint)
                }
                false => PgError::unsupported(format!("ALTER of type {shown}")),
            }
        })?;
        match (kind, &ty.definition) {
            (ObjectType::Domain, TypeDefinition::Enumeration(_) | TypeDefinition::Composite(_)) => {
                let message = format!("{} is not a domain", registry::format_type(user::oid_of(&ty), None));
                Err(PgError::new(state::WRONG_OBJECT_TYPE, message))
            }
            _ => Ok(ty),
        }
    }

    /// ALTER TYPE and ALTER DOMAIN ... RENAME TO.
    pub(super) fn rename_type(&mut self, kind: ObjectType, name: &AnyName, to: &str) -> Result<()> {
        let ty = self.altered_type(kind, name)?;
        self.refuse_relation_name(&ty, &ty.schema, to)?;
        self.refuse_taken_type(&self.catalog.clone(), &ty.schema, to)?;
        self.refuse_texts_of(&ty, "RENAME")?;
        self.move_type(&ty, UserType { name: to.to_owned(), ..(*ty).clone() })
    }

    /// ALTER TYPE and ALTER DOMAIN ... SET SCHEMA.
    pub(super) fn set_schema_of_type(&mut self, alter: &AlterObjectSchemaStmt) -> Result<()> {
        let AlterObjectSchemaStmt { object, missing_ok: _, schema } = alter;
        let ObjectName::Qualified(kind, name) = object else {
            return Err(PgError::unsupported("ALTER ... SET SCHEMA"));
        };
        let ty = self.altered_type(*kind, name)?;
        let place = RangeVar { schema: Some(schema.value.clone()), name: ty.name.clone(), ..RangeVar::default() };
        let stored = self.creation_schema(&place)?;
        if stored == ty.schema {
            return Ok(());
        }
        self.refuse_temporary_move(&ty.schema, &stored)?;
        if self.catalog.user_type(&stored, &ty.name).is_some()
            || self.catalog.schemas.get(&stored).is_some_and(|schema| find(schema, &ty.name).is_some())
        {
            let message = format!("type \"{}\" already exists in schema \"{}\"", ty.name, schema.value);
            return Err(PgError::new(state::DUPLICATE_OBJECT, message));
        }
        self.refuse_texts_of(&ty, "SET SCHEMA")?;
        self.move_type(&ty, UserType { schema: stored, ..(*ty).clone() })
    }

    fn move_type(&mut self, old: &Arc<UserType>, new: UserType) -> Result<()> {
        let db = self.database().clone();
        let mut writing = self.write(&db)?;
        writing.forget_type_name(old)?;
        writing.put_type(new)?;
        self.finish(writing)
    }

    pub(super) fn comment_on_type(&mut self, kind: ObjectType, name: &TypeName, comment: String) -> Result<()> {
        if !name.array_bounds.is_empty() {
            return Err(PgError::unsupported("COMMENT ON an array type"));
        }
        let ty = self.altered_type(kind, &name.name)?;
        let db = self.database().clone();
        let mut writing = self.write(&db)?;
        writing.put_type(UserType { comment, ..(*ty).clone() })?;
        self.finish(writing)
    }

    pub(super) fn owned_type(&mut self, kind: ObjectType, name: &AnyName) -> Result<()> {
        self.altered_type(kind, name).map(drop)
    }

    /// Returns the type that DROP names; `None` for one that is missing and may be.
    pub(super) fn droppable_type(
        &mut self,
        kind: ObjectType,
        name: &TypeName,
        missing_ok: bool,
    ) -> Result<Option<Arc<UserType>>> {
        let TypeName { name, array_bounds, .. } = name;
        let found = match self.user_type(name) {
            Ok(found) => found,
            Err(error) if missing_ok && matches!(error.state, state::UNDEFINED_OBJECT | state::INVALID_SCHEMA_NAME) => {
                self.skip_notice(super::SUCCESSFUL, error.message + ", skipping");
                return Ok(None);
            }
            Err(error) => {
                let relation = self.relation_name_of(name)?;
                return Err(match self.relation(&relation) {
                    Ok(Some(found @ (Relation::Table(_) | Relation::View(_))))
                        if error.state == state::UNDEFINED_OBJECT =>
                    {
                        let (kind, shown) = (found.kind(), name.last());
                        let message = format!("cannot drop type {shown} because {kind} {shown} requires it");
                        let error = PgError::new(state::DEPENDENT_OBJECTS_STILL_EXIST, message);
                        error.hint(format!("You can drop {kind} {shown} instead."))
                    }
                    _ => error,
                });
            }
        };
        let found = match found {
            Ok(ty) if !array_bounds.is_empty() => Err(user::array_oid_of(&ty)),
            Err(oid) if !array_bounds.is_empty() => Err(registry::array_of(oid).unwrap_or(oid)),
            found => found,
        };
        match found {
            Ok(ty) if kind == ObjectType::Domain && !matches!(ty.definition, TypeDefinition::Domain(_)) => {
                Err(PgError::new(state::WRONG_OBJECT_TYPE, format!("\"{}\" is not a domain", name.dotted())))
            }
            Ok(ty) => Ok(Some(ty)),
            Err(oid) if user::is_user_type(oid) => {
                let shown = registry::format_type(oid, None);
                let element = &shown[..shown.len() - 2];
                let message = format!("cannot drop type {shown} because type {element} requires it");
                let error = PgError::new(state::DEPENDENT_OBJECTS_STILL_EXIST, message);
                Err(error.hint(format!("You can drop type {element} instead.")))
            }
            Err(_) if kind == ObjectType::Domain => {
                Err(PgError::new(state::WRONG_OBJECT_TYPE, format!("\"{}\" is not a domain", name.dotted())))
            }
            Err(oid) => {
                let shown = registry::format_type(oid, None);
                let message = format!("cannot drop type {shown} because it is required by the database system");
                Err(PgError::new(state::DEPENDENT_OBJECTS_STILL_EXIST, message))
            }
        }
    }
}
