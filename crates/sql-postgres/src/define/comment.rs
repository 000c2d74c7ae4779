//! COMMENT ON. Tables, their columns and indexes, types and attributes keep a comment in their definition; comments on all others are records of their own.

use engine::FIRST_ACCOUNT_ID;
use query::catalog::comment::{CommentKey, CommentKind};
use query::catalog::object_id::ObjectId;
use query::catalog::table::Table;
use syntax::postgres::tree::{AnyName, CommentStmt, Ident, ObjectName, ObjectType, RangeVar, TypeName};

use crate::define::names::{Relation, missing_schema, not_a, primary_name};
use crate::define::owner::hold_role;
use crate::error::{PgError, Result, state};
use crate::rights::object::Object;
use crate::rights::role;
use crate::session::Session;
use crate::system::oids;
use crate::types::{registry, user};

/// Longest comment in bytes. All definitions are kept in memory.
const LONGEST: usize = 1 << 20;

impl Session {
    pub(super) fn comment(&mut self, comment: &CommentStmt) -> Result<()> {
        let CommentStmt { object, comment } = comment;
        self.begin_definition("COMMENT")?;
        let comment = comment.as_deref().unwrap_or_default();
        if comment.len() > LONGEST {
            let error = PgError::new(state::PROGRAM_LIMIT_EXCEEDED, "comment is too long");
            return Err(error.detail(format!("It has {} bytes, and at most {LONGEST} are kept.", comment.len())));
        }
        match object {
            ObjectName::Relation(kind, name) => self.comment_on_relation(*kind, name, comment),
            ObjectName::Qualified(ObjectType::Column, name) => self.comment_on_column(name, comment),
            ObjectName::Type(kind, name) => self.comment_on_type(*kind, name, comment.to_owned()),
            ObjectName::OnRelation(ObjectType::Constraint, name, table) => {
                let table = self.table_named(table)?;
                self.check_owns(&Object::table(&table))?;
                let Some(id) = constraint_of(&table, &name.value) else {
                    let message = format!("constraint \"{}\" for table \"{}\" does not exist", name.value, table.name);
                    return Err(PgError::new(state::UNDEFINED_OBJECT, message));
                };
                if table.temporary {
                    return Err(PgError::unsupported("COMMENT ON a constraint of a temporary table"));
                }
                self.put_comment(CommentKey::whole(CommentKind::Constraint, id), some(comment))
            }
            ObjectName::OnDomain(name, domain) => self.comment_on_domain_check(name, domain, comment),
            ObjectName::Plain(ObjectType::Schema, name) => self.comment_on_schema(&name.value, comment),
            ObjectName::Plain(ObjectType::Database, name) => self.comment_on_database(&name.value, comment),
            ObjectName::Plain(ObjectType::Role, name) => self.comment_on_role(&name.value, comment),
            _ => Err(PgError::unsupported("COMMENT ON this object")),
        }
    }

    fn comment_on_relation(&mut self, kind: ObjectType, name: &RangeVar, comment: &str) -> Result<()> {
        let Some(found) = self.relation(name)? else { return Err(self.missing_relation(name, None)) };
        let wanted = match kind {
            ObjectType::Table => "table",
            ObjectType::MaterializedView => "materialized view",
            ObjectType::View => "view",
            ObjectType::Sequence => "sequence",
            _ => "index",
        };
        if found.kind() != wanted {
            return Err(not_a(&name.name, wanted));
        }
        self.check_owns_relation(&found, &name.name)?;
        let id = match &found {
            Relation::Table(table) => {
                return self.change_table(table, |_, draft, _| {
                    comment.clone_into(&mut draft.new.comment);
                    Ok(())
                });
            }
            Relation::Index(table, Some(at)) => {
                let index = table.indexes[*at].name.clone();
                return self.change_table(table, |_, draft, _| {
                    let found = draft.new.indexes.iter_mut().find(|known| known.name == index);
                    found.into_iter().for_each(|found| comment.clone_into(&mut found.comment));
                    Ok(())
                });
            }
            Relation::Index(table, None) => table.primary_id,
            Relation::View(view) => view.id,
            Relation::Sequence(sequence) => sequence.id,
        };
        if found.is_temporary() {
            return Err(PgError::unsupported(format!("COMMENT ON a temporary {wanted}")));
        }
        self.put_comment(CommentKey::whole(CommentKind::Object, id), some(comment))
    }

    fn comment_on_column(&mut self, name: &AnyName, comment: &str) -> Result<()> {
        let [qualifier @ .., relation, column] = &name.parts[..] else {
            return Err(PgError::new(state::SYNTAX_ERROR, "column name must be qualified"));
        };
        let of_type = AnyName { parts: [qualifier, std::slice::from_ref(relation)].concat(), at: name.at };
        if self.comment_on_attribute(&of_type, column, comment)? {
            return Ok(());
        }
        let relation = RangeVar { schema: qualifier.last().cloned(), name: relation.clone(), ..RangeVar::default() };
        if let Some(Relation::View(view)) = self.relation(&relation)? {
            self.check_owns_relation(&Relation::View(view.clone()), &relation.name)?;
            let Some(at) = view.columns.iter().position(|known| known == column) else {
                let message = format!("column \"{column}\" of relation \"{}\" does not exist", view.name);
                return Err(PgError::new(state::UNDEFINED_COLUMN, message));
            };
            if view.temporary {
                return Err(PgError::unsupported("COMMENT ON a column of a temporary view"));
            }
            let key = CommentKey { kind: CommentKind::Object, of: view.id, column: at as u32 + 1 };
            return self.put_comment(key, some(comment));
        }
        let table = self.stored_named(&relation)?;
        self.change_table(&table, |_, draft, _| {
            let at = draft.column(column)?;
            comment.clone_into(&mut draft.new.columns[at].comment);
            Ok(())
        })
    }

    fn comment_on_domain_check(&mut self, name: &Ident, domain: &TypeName, comment: &str) -> Result<()> {
        let ty = self.named_domain(&domain.name)?;
        let Some(check) = user::domain(&ty)?.checks.iter().find(|check| check.name == name.value) else {
            let shown = registry::format_type(user::oid_of(&ty), None);
            let message = format!("constraint \"{}\" for domain {shown} does not exist", name.value);
            return Err(PgError::new(state::UNDEFINED_OBJECT, message));
        };
        self.put_comment(CommentKey::whole(CommentKind::Constraint, check.id), some(comment))
    }

    fn comment_on_schema(&mut self, name: &str, comment: &str) -> Result<()> {
        if crate::system::is_system(name) {
            return Err(PgError::unsupported("COMMENT ON a schema of the system"));
        }
        let stored = self.stored_schema(name)?;
        let Some(schema) = self.catalog.schemas.get(&stored).cloned() else { return Err(missing_schema(name)) };
        self.check_owns(&Object::schema(&schema))?;
        // `public` has a comment from the beginning, which an empty one takes away.
        let text = (name == "public" || !comment.is_empty()).then_some(comment);
        self.put_comment(CommentKey::whole(CommentKind::Object, schema.id), text)
    }

    fn comment_on_database(&mut self, name: &str, comment: &str) -> Result<()> {
        self.refresh();
        let Some(schema) = self.catalog.schemas.get(name).filter(|schema| !schema.name.contains('.')).cloned() else {
            // As PostgreSQL, so that a dump can be restored into a database of another name.
            let message = format!("database \"{name}\" does not exist");
            self.tell("WARNING", PgError::new(state::INVALID_CATALOG_NAME, message));
            return Ok(());
        };
        self.check_owns(&Object::database(&schema))?;
        self.put_comment(CommentKey::whole(CommentKind::Database, schema.id), some(comment))
    }

    fn comment_on_role(&mut self, name: &str, comment: &str) -> Result<()> {
        self.refresh();
        let Some(found) = self.rights().roles().named(name) else { return Err(role::missing(name)) };
        let denied = |detail: String| PgError::new(state::INSUFFICIENT_PRIVILEGE, "permission denied").detail(detail);
        let current = self.current_identity().current;
        match found.is_super {
            true if !self.is_super() => {
                return Err(denied("The current user must have the SUPERUSER attribute.".to_owned()));
            }
            false if !self.is_super() && !self.rights().administers(current, found.oid) => {
                return Err(denied(format!("The current user must have the ADMIN option on role \"{name}\".")));
            }
            _ => {}
        }
        if found.oid < FIRST_ACCOUNT_ID && found.oid != oids::POSTGRES {
            return Err(PgError::unsupported("COMMENT ON a predefined role"));
        }
        let db = self.database().clone();
        let mut writing = self.write(&db)?;
        hold_role(&mut writing, found.oid)?;
        writing.put_comment(CommentKey::whole(CommentKind::Role, found.oid.into()), some(comment))?;
        self.finish(writing)
    }

    fn put_comment(&mut self, key: CommentKey, comment: Option<&str>) -> Result<()> {
        let db = self.database().clone();
        let mut writing = self.write(&db)?;
        writing.put_comment(key, comment)?;
        self.finish(writing)
    }
}

/// Returns a comment; an empty one is none.
fn some(comment: &str) -> Option<&str> {
    (!comment.is_empty()).then_some(comment)
}

/// Returns the number of a constraint of a table.
fn constraint_of(table: &Table, name: &str) -> Option<ObjectId> {
    if table.primary.is_some() && primary_name(table) == name {
        return Some(table.primary_id);
    }
    let indexes = table.indexes.iter().filter(|index| index.is_constraint).map(|index| (&index.name, index.id));
    let checks = table.checks.iter().map(|check| (&check.name, check.id));
    let keys = table.foreign_keys.iter().map(|key| (&key.name, key.id));
    indexes.chain(checks).chain(keys).find_map(|(known, id)| (known == name).then_some(id))
}
