//! ALTER ... RENAME.

use query::catalog::sequence::Sequence;
use query::catalog::view::View;
use syntax::postgres::tree::{ObjectName, ObjectType, RangeVar, RenamePart, RenameStmt};

use crate::define::create_table::check_column_name;
use crate::define::drop::Gone;
use crate::define::names::{Relation, not_a, primary_name};
use crate::define::object_name::has_constraint;
use crate::error::{PgError, Result, state};
use crate::session::Session;
use crate::types::row_type;

impl Session {
    pub(super) fn rename(&mut self, rename: &RenameStmt) -> Result<String> {
        let RenameStmt { object, missing_ok, part, to } = rename;
        if let ObjectName::Qualified(kind @ (ObjectType::Type | ObjectType::Domain), name) = object
            && *part == RenamePart::Whole
        {
            let tag = if *kind == ObjectType::Type { "ALTER TYPE" } else { "ALTER DOMAIN" };
            self.begin_definition(tag)?;
            self.rename_type(*kind, name, &to.value)?;
            return Ok(tag.to_owned());
        }
        if let (ObjectName::Qualified(ObjectType::Type, name), RenamePart::Column(from)) = (object, part) {
            self.begin_definition("ALTER TYPE")?;
            self.rename_attribute(name, &from.value, &to.value)?;
            return Ok("ALTER TYPE".to_owned());
        }
        if let (ObjectName::Qualified(ObjectType::Domain, name), RenamePart::Constraint(from)) = (object, part) {
            self.begin_definition("ALTER DOMAIN")?;
            self.rename_domain_constraint(name, &from.value, &to.value)?;
            return Ok("ALTER DOMAIN".to_owned());
        }
        if let ObjectName::Plain(ObjectType::Role, name) = object {
            self.rename_role(name, to)?;
            return Ok("ALTER ROLE".to_owned());
        }
        let ObjectName::Relation(kind, name) = object else {
            return Err(PgError::unsupported("this form of ALTER ... RENAME"));
        };
        let tag = match kind {
            ObjectType::Index => "ALTER INDEX",
            ObjectType::View => "ALTER VIEW",
            ObjectType::Sequence => "ALTER SEQUENCE",
            ObjectType::MaterializedView => "ALTER MATERIALIZED VIEW",
            _ => "ALTER TABLE",
        };
        self.begin_definition(tag)?;
        let Some(found) = self.relation(name)? else {
            if *missing_ok {
                self.skip_notice(super::SUCCESSFUL, format!("relation \"{}\" does not exist, skipping", name.name));
                return Ok(tag.to_owned());
            }
            return Err(self.missing_relation(name, None));
        };
        // ALTER TABLE takes each kind.
        let wanted = match kind {
            ObjectType::MaterializedView => "materialized view",
            ObjectType::View => "view",
            _ => found.kind(),
        };
        if found.kind() != wanted {
            return Err(not_a(&name.name, wanted));
        }
        self.check_owns_relation(&found, &name.name)?;
        match (part, found) {
            (RenamePart::Whole, found) => self.rename_relation(name, &found, &to.value)?,
            (RenamePart::Column(column), Relation::Table(table)) => {
                self.refuse_dependent_views(&table, Some(&column.value), false)?;
                self.change_table(&table, |session, draft, _| {
                    let at = draft.column(&column.value)?;
                    if draft.new.columns.iter().any(|known| !known.is_hidden() && known.name == to.value) {
                        let message =
                            format!("column \"{}\" of relation \"{}\" already exists", to.value, draft.new.name);
                        return Err(PgError::new(state::DUPLICATE_COLUMN, message));
                    }
                    check_column_name(&draft.new, &to.value)?;
                    let old = draft.new.copy();
                    draft.new.columns[at].name.clone_from(&to.value);
                    session.rename_in_texts(&old, &mut draft.new)
                })?;
            }
            (RenamePart::Constraint(constraint), Relation::Table(table)) => {
                let (from, to) = (constraint.value.clone(), to.value.clone());
                self.change_table(&table, |_, draft, _| {
                    let new = &mut draft.new;
                    if has_constraint(new, &to) {
                        let message = format!("constraint \"{to}\" for relation \"{}\" already exists", new.name);
                        return Err(PgError::new(state::DUPLICATE_OBJECT, message));
                    }
                    if new.primary.is_some() && primary_name(new) == from {
                        new.primary_name = to;
                    } else if let Some(index) =
                        new.indexes.iter_mut().find(|index| index.is_constraint && index.name == from)
                    {
                        index.name = to;
                    } else if let Some(check) = new.checks.iter_mut().find(|check| check.name == from) {
                        check.name = to;
                    } else if let Some(key) = new.foreign_keys.iter_mut().find(|key| key.name == from) {
                        key.name = to;
                    } else {
                        let message = format!("constraint \"{from}\" for table \"{}\" does not exist", new.name);
                        return Err(PgError::new(state::UNDEFINED_OBJECT, message));
                    }
                    Ok(())
                })?;
            }
            _ => return Err(PgError::unsupported("this form of ALTER ... RENAME")),
        }
        Ok(tag.to_owned())
    }

    fn rename_relation(&mut self, name: &RangeVar, found: &Relation, to: &str) -> Result<()> {
        let schema = found.schema().to_owned();
        self.check_creation(&schema, found.is_temporary())?;
        if self.is_relation(&schema, to).is_some() {
            return Err(PgError::new(state::DUPLICATE_TABLE, format!("relation \"{to}\" already exists")));
        }
        if matches!(found, Relation::Table(_) | Relation::View(_)) && self.catalog.user_type(&schema, to).is_some() {
            return Err(PgError::new(state::DUPLICATE_OBJECT, format!("type \"{to}\" already exists")));
        }
        if let Some(ty) =
            row_type::of_relation(found).filter(|ty| self.may_have_users(std::slice::from_ref(ty), &Gone::default()))
        {
            self.refuse_texts_of(&ty, "RENAME")?;
        }
        match found {
            Relation::Table(table) => {
                self.refuse_dependent_views(table, None, false)?;
                self.change_table(table, |_, draft, _| {
                    draft.new.name = to.to_owned();
                    // The key keeps its name.
                    if draft.new.primary.is_some() {
                        draft.new.primary_name = primary_name(&draft.old);
                    }
                    Ok(())
                })
            }
            Relation::Index(table, None) => self.change_table(table, |_, draft, _| {
                draft.new.primary_name = to.to_owned();
                Ok(())
            }),
            Relation::Index(table, Some(_)) => self.change_table(table, |_, draft, _| {
                let index = draft.new.indexes.iter_mut().find(|index| index.name == name.name);
                index.into_iter().for_each(|index| index.name = to.to_owned());
                Ok(())
            }),
            Relation::View(view) => {
                let db = self.database().clone();
                let mut writing = self.write_of(&db, view.temporary)?;
                let renamed = View { name: to.to_owned(), ..view.copy() };
                writing.take_view_out(view)?;
                writing.put_view(renamed)?;
                self.finish(writing)
            }
            Relation::Sequence(sequence) => {
                if sequence.owned_by.is_some() {
                    return Err(PgError::unsupported("RENAME of a sequence that a column owns"));
                }
                let db = self.database().clone();
                let mut writing = self.write_of(&db, sequence.temporary)?;
                writing.forget_sequence_name(sequence)?;
                let mut renamed = Sequence::clone(sequence);
                renamed.name = to.to_owned();
                writing.alter_sequence(renamed, None)?;
                self.finish(writing)
            }
        }
    }
}
