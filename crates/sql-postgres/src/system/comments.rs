//! Comments that the catalog keeps as records of their own (`query::catalog::comment`), by class, OID and column.

use std::sync::Arc;

use query::catalog::comment::{CommentKey, CommentKind};
use query::catalog::objects::Object;

use crate::system::oids;
use crate::system::view::{Shown, schema_oid};
use crate::types::oid::Oid;

/// The comment that the schema `public` has until it gets another one, or none.
const OF_PUBLIC: &str = "standard public schema";

/// A comment on an object or, if `column` is not 0, on a column of it.
pub struct Described {
    pub class: Oid,
    pub object: Oid,
    pub column: i64,
    pub text: Arc<str>,
}

/// Returns the comments on objects of the database.
pub fn all(shown: &Shown) -> Vec<Described> {
    let records = shown.snapshot.comments.iter().filter_map(|(key, text)| {
        let (class, object) = place(shown, *key)?;
        Some(Described { class, object, column: key.column.into(), text: text.clone() })
    });
    let mut all: Vec<Described> = records.collect();
    let has_public = |described: &Described| described.class == oids::PG_NAMESPACE && described.object == oids::PUBLIC;
    if !all.iter().any(has_public) {
        all.push(Described { class: oids::PG_NAMESPACE, object: oids::PUBLIC, column: 0, text: OF_PUBLIC.into() });
    }
    all.retain(|described| !described.text.is_empty());
    all
}

/// Returns the comment on an object of a class, or of any class with that OID.
pub fn of(shown: &Shown, class: Option<Oid>, object: Oid, column: i64) -> Option<Arc<str>> {
    let is_public = object == oids::PUBLIC && class.is_none_or(|class| class == oids::PG_NAMESPACE);
    let id = match is_public {
        true => shown.snapshot.schemas.get(&shown.database)?.id,
        false => oids::object_of(object)?,
    };
    let column = u32::try_from(column).ok()?;
    let found = [CommentKind::Object, CommentKind::Constraint].into_iter().find_map(|kind| {
        let key = CommentKey { kind, of: id, column };
        let text = shown.snapshot.comments.get(&key)?;
        let (known, _) = place(shown, key).filter(|(_, oid)| *oid == object)?;
        class.is_none_or(|class| class == known).then(|| text.clone())
    });
    found.or_else(|| (is_public && column == 0).then(|| OF_PUBLIC.into())).filter(|text| !text.is_empty())
}

/// Returns the class and the OID of the object that a record is on; `None` if it is none of the database.
fn place(shown: &Shown, key: CommentKey) -> Option<(Oid, Oid)> {
    let oid = oids::of_object(key.of);
    match (key.kind, shown.object(oid)?) {
        (CommentKind::Object, Object::Schema(schema)) => Some((oids::PG_NAMESPACE, schema_oid(&schema))),
        (CommentKind::Object, Object::View(_) | Object::Sequence(_) | Object::PrimaryKey(_)) => {
            Some((oids::PG_CLASS, oid))
        }
        (
            CommentKind::Constraint,
            Object::PrimaryKey(_)
            | Object::Index(..)
            | Object::Check(..)
            | Object::ForeignKey(..)
            | Object::DomainCheck(..),
        ) => Some((oids::PG_CONSTRAINT, oid)),
        _ => None,
    }
}

/// Returns the comments on databases and roles.
pub fn shared(shown: &Shown) -> Vec<Described> {
    let records = shown.snapshot.comments.iter();
    let described = records.filter_map(|(key, text)| {
        let (class, object) = match key.kind {
            CommentKind::Database => (oids::PG_DATABASE, oids::of_object(key.of)),
            CommentKind::Role => (oids::PG_AUTHID, key.of as Oid),
            CommentKind::Object | CommentKind::Constraint => return None,
        };
        Some(Described { class, object, column: 0, text: text.clone() })
    });
    described.collect()
}
