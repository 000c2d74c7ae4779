//! Texts of definitions after relations have got another schema.
//!
//! The binder notes where a text names relations, types, constants of regclass and columns with a schema (`bind/name_site`). A name of a moved relation gets the new schema. In the definition of a table that has moved itself, names without a schema get that in which they were found, since the table's schema is where they are looked up.

use query::catalog::object_id::ObjectId;
use query::catalog::objects::Object;
use query::catalog::table::Table;

use crate::bind::name_site::{NameSite, NameSiteKind};
use crate::define::names::{primary_name, schema_of};
use crate::define::source::quoted_end;
use crate::error::{PgError, Result, state};
use crate::session::{Session, quoted};
use crate::system::oids;

/// Relations that get another schema.
pub(super) struct MovedRelations {
    /// The number and the name of each.
    relations: Vec<(ObjectId, String)>,
    /// The schemas, by PostgreSQL's names.
    from: String,
    to: String,
}

impl MovedRelations {
    /// `from` and `to`: stored names of schemas.
    pub(super) fn new(from: &str, to: &str) -> MovedRelations {
        MovedRelations { relations: Vec::new(), from: schema_of(from).to_owned(), to: schema_of(to).to_owned() }
    }

    pub(super) fn add(&mut self, id: ObjectId, name: &str) {
        self.relations.push((id, name.to_owned()));
    }

    /// Adds a table with its indexes.
    pub(super) fn add_table(&mut self, table: &Table) {
        self.add(table.id, &table.name);
        if table.primary.is_some() {
            self.add(table.primary_id, &primary_name(table));
        }
        for index in table.indexes.iter().filter(|index| !index.generated) {
            self.add(index.id, &index.name);
        }
    }

    /// Returns the names of the relations, the one that the statement names first.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.relations.iter().map(|(_, name)| name)
    }

    fn has(&self, id: ObjectId) -> bool {
        self.relations.iter().any(|(known, _)| *known == id)
    }
}

/// A replacement in a text.
struct TextEdit {
    start: usize,
    end: usize,
    text: String,
}

impl Session {
    /// Returns a text of a definition with the names that change; `None` if none does. `is_moved`: the definition is that of a table among the relations.
    pub(super) fn with_moved_names(
        &self,
        text: &str,
        sites: &[NameSite],
        moved: &MovedRelations,
        is_moved: bool,
    ) -> Result<Option<String>> {
        let mut edits = Vec::new();
        for site in sites {
            let at = site.at as usize;
            let edit = match &site.kind {
                NameSiteKind::Relation(id, parts) | NameSiteKind::Type(id, parts) => {
                    let schema = match moved.has(*id) {
                        true => Some(moved.to.as_str()),
                        false if is_moved && *parts == 1 => self.schema_of_object(*id),
                        false => None,
                    };
                    schema.map(|schema| qualify(text, at, *parts, schema)).transpose()?
                }
                NameSiteKind::Constant(oid) => self.moved_constant(text, at, *oid, moved, is_moved)?,
                NameSiteKind::Qualifier { schema, table } => {
                    let is_it = *schema == moved.from && moved.names().next() == Some(table);
                    is_it.then(|| requalify(text, at, schema, &moved.to)).transpose()?
                }
            };
            edits.extend(edit);
        }
        if edits.is_empty() {
            return Ok(None);
        }
        // Names within one another's bytes do not occur, but one place may have been bound twice.
        edits.sort_by_key(|edit| edit.start);
        edits.dedup_by_key(|edit| edit.start);
        let (mut out, mut done) = (String::with_capacity(text.len()), 0);
        for TextEdit { start, end, text: new } in edits {
            out.push_str(text.get(done..start).ok_or_else(unknown_form)?);
            out.push_str(&new);
            done = end;
        }
        out.push_str(&text[done..]);
        Ok(Some(out))
    }

    /// Returns a text of a definition with schemas before the names that have none; `None` if there are no such names.
    pub(super) fn with_schemas(&self, text: &str, sites: &[NameSite]) -> Result<Option<String>> {
        let none = MovedRelations { relations: Vec::new(), from: String::new(), to: String::new() };
        self.with_moved_names(text, sites, &none, true)
    }

    /// Returns the replacement of a constant of regclass.
    fn moved_constant(
        &self,
        text: &str,
        at: usize,
        oid: crate::types::oid::Oid,
        moved: &MovedRelations,
        is_moved: bool,
    ) -> Result<Option<TextEdit>> {
        let Some(id) = oids::object_of(oid) else { return Ok(None) };
        let (schema, name) = match moved.relations.iter().find(|(known, _)| *known == id) {
            Some((_, name)) => (moved.to.as_str(), name.as_str()),
            None if is_moved => match self.catalog_of_session().object(id) {
                Some(Object::Table(table)) => (schema_of(&table.schema), table.name.as_str()),
                Some(Object::View(view)) => (schema_of(&view.schema), view.name.as_str()),
                Some(Object::Sequence(sequence)) => (schema_of(&sequence.schema), sequence.name.as_str()),
                _ => return Ok(None),
            },
            None => return Ok(None),
        };
        let start = at;
        let quote = if text[at..].starts_with(['e', 'E']) { at + 1 } else { at };
        let end = match text.as_bytes().get(quote) {
            Some(b'\'' | b'$') => quoted_end(text, quote),
            _ => None,
        };
        let end = end.ok_or_else(unknown_form)?;
        let text = crate::deparse::literal(&format!("{}.{}", quoted(schema), quoted(name)));
        Ok(Some(TextEdit { start, end, text }))
    }

    /// Returns the schema of a relation or type, by PostgreSQL's name.
    fn schema_of_object(&self, id: ObjectId) -> Option<&str> {
        match self.catalog_of_session().object(id)? {
            Object::Table(table) => Some(schema_of(&table.schema)),
            Object::View(view) => Some(schema_of(&view.schema)),
            Object::Sequence(sequence) => Some(schema_of(&sequence.schema)),
            Object::Type(ty) => Some(schema_of(&ty.schema)),
            _ => None,
        }
    }
}

fn unknown_form() -> PgError {
    PgError::new(
        state::FEATURE_NOT_SUPPORTED,
        "a name in this form, in a definition of which it must change, is not supported",
    )
}

/// Puts a schema before the last part of a name, in the place of what is there.
fn qualify(text: &str, at: usize, parts: usize, schema: &str) -> Result<TextEdit> {
    let mut last = at;
    for _ in 1..parts {
        let (_, end) = identifier(text, last)?;
        last = after_dot(text, end)?;
    }
    identifier(text, last)?;
    Ok(TextEdit { start: at, end: last, text: format!("{}.", quoted(schema)) })
}

/// Replaces the schema before the name of a table and its column. The name of the database may be before it.
fn requalify(text: &str, at: usize, from: &str, to: &str) -> Result<TextEdit> {
    let (first, first_end) = identifier(text, at)?;
    if first == from {
        return Ok(TextEdit { start: at, end: first_end, text: quoted(to) });
    }
    let start = after_dot(text, first_end)?;
    let (second, end) = identifier(text, start)?;
    match second == from {
        true => Ok(TextEdit { start, end, text: quoted(to) }),
        false => Err(unknown_form()),
    }
}

/// Returns the identifier at a position as the parser reads it, and its end.
fn identifier(text: &str, at: usize) -> Result<(String, usize)> {
    let rest = text.get(at..).ok_or_else(unknown_form)?;
    if rest.starts_with('"') {
        let end = quoted_end(text, at).ok_or_else(unknown_form)?;
        let inner = text.get(at + 1..end.saturating_sub(1)).ok_or_else(unknown_form)?;
        return Ok((inner.replace("\"\"", "\""), end));
    }
    let length = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii()));
    let length = length.unwrap_or(rest.len());
    match length == 0 || rest[length..].starts_with('&') && matches!(&rest[..length], "u" | "U") {
        true => Err(unknown_form()),
        false => Ok((rest[..length].to_ascii_lowercase(), at + length)),
    }
}

/// Returns where the part of a name begins that follows the dot after a position.
fn after_dot(text: &str, at: usize) -> Result<usize> {
    let dot = after_space(text, at);
    match text.as_bytes().get(dot) {
        Some(b'.') => Ok(after_space(text, dot + 1)),
        _ => Err(unknown_form()),
    }
}

/// Skips white space and comments.
fn after_space(text: &str, mut at: usize) -> usize {
    let bytes = text.as_bytes();
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'-' | b'/' => match quoted_end(text, at) {
                Some(end) => at = end,
                None => return at,
            },
            byte if byte.is_ascii_whitespace() => at += 1,
            _ => return at,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str, edit: TextEdit) -> String {
        format!("{}{}{}", &text[..edit.start], edit.text, &text[edit.end..])
    }

    #[test]
    fn a_schema_is_put_before_a_name_or_replaces_that_before_it() {
        let put = |text: &str, at, parts| qualify(text, at, parts, "New").map(|edit| edited(text, edit)).ok();
        assert_eq!(put("from t x", 5, 1).as_deref(), Some("from \"New\".t x"));
        assert_eq!(put("from old.t x", 5, 2).as_deref(), Some("from \"New\".t x"));
        assert_eq!(put("from \"a\"\"b\" . /* . */ \"T\"", 5, 2).as_deref(), Some("from \"New\".\"T\""));
        assert_eq!(put("from db.old.t", 5, 3).as_deref(), Some("from \"New\".t"));
        assert_eq!(put("from U&\"t\"", 5, 1), None);
        assert_eq!(put("from t", 5, 2), None);
    }

    #[test]
    fn the_schema_before_a_column_is_replaced() {
        let put = |text: &str| requalify(text, 0, "old", "new").map(|edit| edited(text, edit)).ok();
        assert_eq!(put("OLD.t.a").as_deref(), Some("new.t.a"));
        assert_eq!(put("db.\"old\".t.a").as_deref(), Some("db.new.t.a"));
        assert_eq!(put("db.other.t.a"), None);
    }
}
