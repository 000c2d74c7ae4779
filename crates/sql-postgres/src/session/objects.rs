//! Names of objects as values of regclass and its like: the catalog's answers along the session's `search_path`, in the definitions that the session sees.

use std::sync::Arc;

use query::catalog::Snapshot;
use query::catalog::objects::Object;

use crate::define::names::{
    PG_TEMP, Relation, find, find_any_type, is_found_in, primary_name, relation_path, schema_in, schema_of,
};
use crate::error::{PgError, Result, state};
use crate::instance::database::Database;
use crate::rights::role::Roles;
use crate::session::quoted;
use crate::system::{self, oids};
use crate::types::io::{ObjectKind, ObjectNames};
use crate::types::oid::Oid;
use crate::types::{registry, row_type, user};

/// Returns the answers for a database and a `search_path`.
pub(super) fn object_names(
    db: &Arc<Database>,
    definitions: &Arc<Snapshot>,
    database: &str,
    path: &[String],
) -> ObjectNames {
    let of_find = (db.clone(), definitions.clone(), database.to_owned(), path.to_vec());
    let (of_name, of_type) = (of_find.clone(), definitions.clone());
    ObjectNames {
        user_type: Arc::new(move |id| match of_type.object(id)? {
            Object::Type(ty) => Some(ty.clone()),
            object => row_type::of_object(object),
        }),
        find: Arc::new(move |kind, text| {
            let (db, definitions, database, path) = &of_find;
            find_object((db, definitions), database, path, kind, text)
        }),
        name: Arc::new(move |kind, oid| {
            let (db, definitions, database, path) = &of_name;
            name_object((db, definitions), database, path, kind, oid)
        }),
    }
}

/// Splits a name at its dots. Parts without quotes are folded to lower case.
pub(crate) fn parts(text: &str) -> Result<Vec<String>> {
    let invalid = || PgError::new(state::INVALID_NAME, "invalid name syntax");
    let (mut parts, mut rest) = (Vec::new(), text.trim());
    loop {
        let part;
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut value = String::new();
            let mut chars = quoted.char_indices().peekable();
            let end = loop {
                match chars.next().ok_or_else(invalid)? {
                    (_, '"') if chars.peek().is_some_and(|(_, c)| *c == '"') => {
                        chars.next();
                        value.push('"');
                    }
                    (at, '"') => break at + 1,
                    (_, c) => value.push(c),
                }
            };
            (part, rest) = (value, &quoted[end..]);
        } else {
            let end = rest.find('.').unwrap_or(rest.len());
            (part, rest) = (rest[..end].trim().to_lowercase(), &rest[end..]);
        }
        if part.is_empty() {
            return Err(invalid());
        }
        parts.push(part);
        match rest.trim_start().strip_prefix('.') {
            Some(more) => rest = more.trim_start(),
            None if rest.trim().is_empty() => return Ok(parts),
            None => return Err(invalid()),
        }
    }
}

fn oid_of(relation: &Relation) -> Oid {
    oids::of_object(match relation {
        Relation::Table(table) => table.id,
        Relation::View(view) => view.id,
        Relation::Sequence(sequence) => sequence.id,
        Relation::Index(table, None) => table.primary_id,
        Relation::Index(table, Some(at)) => table.indexes[*at].id,
    })
}

fn find_object(
    (db, snapshot): (&Database, &Snapshot),
    database: &str,
    path: &[String],
    kind: ObjectKind,
    text: &str,
) -> Result<Option<Oid>> {
    let parts = match kind {
        ObjectKind::FunctionSignature => Vec::new(),
        _ => parts(text)?,
    };
    match kind {
        ObjectKind::Relation => {
            let [qualifier @ .., name] = &parts[..] else { return Ok(None) };
            let system_oid = |schema: &str| system::relations::by_name(schema, name).map(|relation| relation.oid);
            let schemas: Vec<&str> = match qualifier.last() {
                Some(schema) => vec![schema],
                None => relation_path(snapshot, path).collect(),
            };
            for schema in schemas {
                if system::is_system(schema) {
                    if let Some(oid) = system_oid(schema) {
                        return Ok(Some(oid));
                    }
                    continue;
                }
                let Some(found) = schema_in(snapshot, database, schema) else { continue };
                if let Some(relation) = find(found, name) {
                    return Ok(Some(oid_of(&relation)));
                }
                if let Some(ty) = found.types.get(name.as_str()).filter(|ty| ty.row().is_some()) {
                    return Ok(Some(oids::of_object(ty.id)));
                }
            }
            Ok(None)
        }
        ObjectKind::Schema => {
            let name = parts.last().map_or("", String::as_str);
            // No schema has the name `pg_temp` itself.
            let own = || schema_in(snapshot, database, name).filter(|_| name != PG_TEMP);
            Ok(system::oid_of_schema(name).or_else(|| own().map(|schema| system::view::schema_oid(schema))))
        }
        ObjectKind::Role => {
            let name = parts.last().map_or("", String::as_str);
            Ok(Roles::seen(db, snapshot).named(name).map(|role| role.oid))
        }
        ObjectKind::FunctionSignature => Ok(system::functions::signature::find(text)),
        ObjectKind::Function => {
            let named = crate::functions::functions_named(parts.last().map_or("", String::as_str));
            match named {
                [] => Ok(None),
                [one] => Ok(Some(one.oid)),
                _ => {
                    let message = format!("more than one function named \"{text}\"");
                    Err(PgError::new(state::AMBIGUOUS_FUNCTION, message))
                }
            }
        }
        ObjectKind::Collation => Ok(match parts.last().map_or("", String::as_str) {
            "default" => Some(oids::COLLATION_DEFAULT),
            "C" => Some(oids::COLLATION_C),
            "POSIX" => Some(951),
            "ucs_basic" => Some(962),
            _ => None,
        }),
        ObjectKind::Type => Ok(find_type_oid(snapshot, database, path, text)),
        _ => Ok(None),
    }
}

/// Returns the OID of a type that users have defined, by its name in SQL; one of PostgreSQL's own that hides it is left to the caller.
fn find_type_oid(snapshot: &Snapshot, database: &str, path: &[String], text: &str) -> Option<Oid> {
    let name = syntax::postgres::parse_type_name(text).ok()?;
    let (schemas, bare) = match &name.name.parts[..] {
        [bare] if registry::by_name(bare).is_some() => return None,
        [bare] => (path, bare),
        [schema, bare] => (std::slice::from_ref(schema), bare),
        _ => return None,
    };
    let (ty, is_array) = find_any_type(snapshot, database, schemas, bare)?;
    let is_array = is_array || !name.array_bounds.is_empty();
    Some(if is_array { user::array_oid_of(&ty) } else { user::oid_of(&ty) })
}

/// Returns the name of a type that users have defined, with its schema where the path leads to another one.
fn name_type(snapshot: &Snapshot, database: &str, path: &[String], oid: Oid) -> Option<String> {
    let ty = row_type::definition(snapshot, oid)?;
    let is_first = registry::by_name(&ty.name).is_none()
        && find_any_type(snapshot, database, path, &ty.name).is_some_and(|(found, _)| found.id == ty.id);
    let name = match is_first {
        true => quoted(&ty.name),
        false => format!("{}.{}", quoted(schema_of(&ty.schema)), quoted(&ty.name)),
    };
    Some(if oid == user::array_oid_of(&ty) { name + "[]" } else { name })
}

fn name_object(
    (db, snapshot): (&Database, &Snapshot),
    database: &str,
    path: &[String],
    kind: ObjectKind,
    oid: Oid,
) -> Option<String> {
    match kind {
        ObjectKind::Relation => {
            if let Some(relation) = system::relations::by_oid(oid) {
                let table = &relation.table;
                let is_visible = table.schema == "pg_catalog";
                let name = table.name.to_owned();
                return Some(if is_visible { name } else { format!("{}.{name}", table.schema) });
            }
            let (schema, name) = match snapshot.object(oids::object_of(oid)?)? {
                Object::Table(table) => (table.schema.clone(), table.name.clone()),
                Object::View(view) => (view.schema.clone(), view.name.clone()),
                Object::Sequence(sequence) => (sequence.schema.clone(), sequence.name.clone()),
                Object::PrimaryKey(table) => (table.schema.clone(), primary_name(table)),
                Object::Index(table, at) => (table.schema.clone(), table.indexes[*at].name.clone()),
                Object::Type(ty) if ty.row().is_some() => (ty.schema.clone(), ty.name.clone()),
                _ => return None,
            };
            let own = schema_of(&schema);
            Some(match is_found_in(snapshot, database, path, own, &name) {
                true => quoted(&name),
                false => format!("{}.{}", quoted(own), quoted(&name)),
            })
        }
        ObjectKind::Type => name_type(snapshot, database, path, oid),
        ObjectKind::Schema => match oid {
            oids::PUBLIC => Some("public".to_owned()),
            oid if system::name_of_schema(oid).is_some() => system::name_of_schema(oid).map(str::to_owned),
            oid => match snapshot.object(oids::object_of(oid)?)? {
                Object::Schema(schema) => Some(quoted(schema_of(&schema.name))),
                _ => None,
            },
        },
        ObjectKind::FunctionSignature => system::functions::signature::shown(oid),
        ObjectKind::Operator => {
            crate::functions::operator(oid).map(|row| match crate::functions::operators_named(row.name) {
                [_] => row.name.to_owned(),
                _ => format!("pg_catalog.{}", row.name),
            })
        }
        ObjectKind::Collation => match oid {
            oids::COLLATION_DEFAULT => Some("\"default\"".to_owned()),
            oids::COLLATION_C => Some("\"C\"".to_owned()),
            951 => Some("\"POSIX\"".to_owned()),
            962 => Some("ucs_basic".to_owned()),
            _ => None,
        },
        ObjectKind::Function => system::function_name(oid).map(|(name, is_shared)| {
            // A name that several functions have is qualified.
            if is_shared { format!("pg_catalog.{}", quoted(name)) } else { quoted(name) }
        }),
        ObjectKind::Role => Roles::seen(db, snapshot).by_oid(oid).map(|role| quoted(&role.name)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_at_dots_outside_quotes() {
        let split = |text: &str| parts(text).map(|parts| parts.join("|")).ok();
        assert_eq!(split("Public.T").as_deref(), Some("public|t"));
        assert_eq!(split("\"A.b\".\"c\"\"d\"").as_deref(), Some("A.b|c\"d"));
        assert_eq!(split("a..b"), None);
        assert_eq!(split("\"a"), None);
    }
}
