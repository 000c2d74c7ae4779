//! The names that PostgreSQL chooses for constraints, indexes and sequences.

use query::catalog::table::Table;
use query::catalog::user_type::{DomainCheck, TypeDefinition, UserType};
use query::catalog::{Schema, Snapshot};

use crate::define::names::find;

/// The longest name, in bytes.
pub const NAME_MAX: usize = 63;

/// Cuts a text to at most so many bytes, at a character's end.
fn cut(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

/// Joins the parts of a name with underscores. Where the whole is too long, the longer of the first two parts is shortened.
pub fn make_object_name(first: &str, second: &str, label: &str) -> String {
    let (has_second, has_label) = (!second.is_empty(), !label.is_empty());
    let overhead = usize::from(has_second) + if has_label { label.len() + 1 } else { 0 };
    let available = NAME_MAX.saturating_sub(overhead);
    let (mut one, mut two) = (first.len(), second.len());
    while one + two > available {
        if one > two {
            one -= 1;
        } else {
            two -= 1;
        }
    }
    let mut name = cut(first, one).to_owned();
    if has_second {
        name.push('_');
        name.push_str(cut(second, two));
    }
    if has_label {
        name.push('_');
        name.push_str(label);
    }
    name
}

/// Returns the first name of the form that is free: with a number behind the label where others have it.
fn choose(first: &str, second: &str, label: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let mut pass = 0;
    loop {
        let numbered = if pass == 0 { label.to_owned() } else { format!("{label}{pass}") };
        let name = make_object_name(first, second, &numbered);
        if !is_taken(&name) {
            return name;
        }
        pass += 1;
    }
}

/// Returns the name with a number behind it, which takes the place of its end where it would be too long.
pub fn numbered(name: &str, number: usize) -> String {
    let number = number.to_string();
    format!("{}{number}", cut(name, NAME_MAX - number.len()))
}

/// Returns the names of columns as a part of an object's name.
pub fn joined_columns(columns: &[&str]) -> String {
    let mut joined = String::new();
    for column in columns {
        if !joined.is_empty() {
            joined.push('_');
        }
        joined.push_str(column);
        if joined.len() >= NAME_MAX {
            break;
        }
    }
    cut(&joined, NAME_MAX).to_owned()
}

/// Returns whether the schema has a relation of that name, or the draft of a table an index.
pub fn relation_is_taken(schema: &Schema, draft: &Table, name: &str) -> bool {
    draft.name == name
        || (draft.primary.is_some() && draft.primary_name == name)
        || draft.indexes.iter().any(|index| !index.generated && index.name == name)
        || find(schema, name).is_some_and(|found| !is_of(&found, draft))
}

fn is_of(found: &crate::define::names::Relation, draft: &Table) -> bool {
    // Indexes of the old definition of the draft: those that remain are in the draft too.
    matches!(found, crate::define::names::Relation::Index(table, _) if table.id == draft.id)
}

/// Chooses the name of an index, or of the constraint behind it.
pub fn index_name(schema: &Schema, draft: &Table, columns: &[&str], label: &str) -> String {
    let second = if label == "pkey" { String::new() } else { joined_columns(columns) };
    choose(&draft.name, &second, label, |name| relation_is_taken(schema, draft, name))
}

/// Chooses the name of a sequence for a column.
pub fn sequence_name(schema: &Schema, table: &str, column: &str, others: &[String]) -> String {
    choose(table, column, "seq", |name| find(schema, name).is_some() || others.iter().any(|other| other == name))
}

/// Chooses the name of a CHECK or a foreign key, which no other constraint of the schema has.
pub fn constraint_name(snapshot: &Snapshot, draft: &Table, columns: &str, label: &str) -> String {
    let schema = snapshot.schemas.get(&draft.schema);
    let others = || schema.into_iter().flat_map(|schema| schema.tables.values());
    let is_taken = |name: &str| {
        has_constraint(draft, name) || others().any(|table| table.id != draft.id && has_constraint(table, name))
    };
    choose(&draft.name, columns, label, is_taken)
}

/// Chooses the name of a check of a domain, which no other constraint of the schema has.
pub fn domain_check_name(schema: Option<&Schema>, domain: &str, own: &[DomainCheck]) -> String {
    let has = |ty: &UserType, name: &str| match &ty.definition {
        TypeDefinition::Domain(domain) => domain.checks.iter().any(|check| check.name == name),
        TypeDefinition::Enumeration(_) | TypeDefinition::Composite(_) => false,
    };
    choose(domain, "", "check", |name| {
        own.iter().any(|check| check.name == name)
            || schema.is_some_and(|schema| {
                schema.types.values().any(|ty| has(ty, name))
                    || schema.tables.values().any(|table| has_constraint(table, name))
            })
    })
}

/// Returns whether a table has a constraint of that name.
pub fn has_constraint(table: &Table, name: &str) -> bool {
    table.checks.iter().any(|check| check.name == name)
        || table.foreign_keys.iter().any(|key| key.name == name)
        || table.indexes.iter().any(|index| index.is_constraint && index.name == name)
        || (table.primary.is_some() && crate::define::names::primary_name(table) == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_lose_the_end_of_their_longer_part() {
        assert_eq!(make_object_name("t", "a", "key"), "t_a_key");
        assert_eq!(make_object_name("t", "", "pkey"), "t_pkey");
        let (long, longer) = ("x".repeat(40), "y".repeat(60));
        let name = make_object_name(&long, &longer, "idx");
        assert_eq!(name.len(), NAME_MAX);
        assert_eq!(name, format!("{}_{}_idx", "x".repeat(29), "y".repeat(29)));
    }

    #[test]
    fn a_taken_name_gets_a_number_behind_its_label() {
        assert_eq!(choose("t", "a", "key", |name| name == "t_a_key" || name == "t_a_key1"), "t_a_key2");
    }
}
