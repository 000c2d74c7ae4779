//! COMMENT ON tables, columns, indexes and types.

use syntax::postgres::tree::{AnyName, CommentStmt, ObjectName, ObjectType, RangeVar};

use crate::define::names::Relation;
use crate::error::{PgError, Result};
use crate::session::Session;

impl Session {
    pub(super) fn comment(&mut self, comment: &CommentStmt) -> Result<()> {
        let CommentStmt { object, comment } = comment;
        self.begin_definition("COMMENT")?;
        let comment = comment.clone().unwrap_or_default();
        match object {
            ObjectName::Relation(kind @ (ObjectType::Table | ObjectType::MaterializedView), name) => {
                let table = match kind {
                    ObjectType::Table => self.table_named(name)?,
                    _ => self.materialized_named(name)?,
                };
                self.change_table(&table, |_, draft, _| {
                    draft.new.comment = comment;
                    Ok(())
                })
            }
            ObjectName::Relation(ObjectType::Index, name) => match self.relation(name)? {
                Some(Relation::Index(table, Some(at))) => {
                    let index = table.indexes[at].name.clone();
                    self.change_table(&table, |_, draft, _| {
                        let found = draft.new.indexes.iter_mut().find(|known| known.name == index);
                        found.into_iter().for_each(|found| found.comment.clone_from(&comment));
                        Ok(())
                    })
                }
                Some(_) => Err(PgError::unsupported("COMMENT ON this index")),
                None => Err(self.missing_relation(name, None)),
            },
            ObjectName::Qualified(ObjectType::Column, name) => {
                let [qualifier @ .., table, column] = &name.parts[..] else {
                    return Err(PgError::unsupported("COMMENT ON this column"));
                };
                let of_type = AnyName { parts: [qualifier, std::slice::from_ref(table)].concat(), at: name.at };
                if self.comment_on_attribute(&of_type, column, &comment)? {
                    return Ok(());
                }
                let relation =
                    RangeVar { schema: qualifier.last().cloned(), name: table.clone(), ..RangeVar::default() };
                let table = self.stored_named(&relation)?;
                self.change_table(&table, |_, draft, _| {
                    let at = draft.column(column)?;
                    draft.new.columns[at].comment = comment;
                    Ok(())
                })
            }
            ObjectName::Type(kind, name) => self.comment_on_type(*kind, name, comment),
            _ => Err(PgError::unsupported("COMMENT ON this object")),
        }
    }
}
