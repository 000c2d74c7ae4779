//! The two levels above a table, database and schema, under the one name that the catalog keys schemas by.
//!
//! ```text
//!   database d, schema DEFAULT ◄──► d
//!   database d, schema s       ◄──► d.s      split at the first dot
//! ```
//!
//! Dialects with one level see the stored name itself, so their database `d` is the default schema of database `d`. A stored name that no pair has (`d.public`, `d.`, `.s`) exists for these alone.

use std::borrow::Cow;

/// The schema of a database whose stored name is the database's.
pub const DEFAULT: &str = "public";

/// A database and one of its schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SchemaName<'n> {
    pub database: &'n str,
    pub schema: &'n str,
}

impl<'n> SchemaName<'n> {
    /// Returns `None` if the pair has no stored name: a part is empty, or the database's name has a dot.
    pub fn new(database: &'n str, schema: &'n str) -> Option<SchemaName<'n>> {
        let is_valid = !database.is_empty() && !schema.is_empty() && !database.contains('.');
        is_valid.then_some(SchemaName { database, schema })
    }

    /// Returns `None` if no pair is stored under this name.
    pub fn of_stored(stored: &'n str) -> Option<SchemaName<'n>> {
        match stored.split_once('.') {
            None => SchemaName::new(stored, DEFAULT),
            Some((database, schema)) => SchemaName::new(database, schema).filter(|name| name.schema != DEFAULT),
        }
    }

    /// Returns the name under which the catalog keeps the schema.
    pub fn stored(&self) -> Cow<'n, str> {
        match self.schema {
            DEFAULT => Cow::Borrowed(self.database),
            schema => Cow::Owned(format!("{}.{schema}", self.database)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_and_stored_names_correspond_one_to_one() {
        for (database, schema, stored) in [
            ("d", "public", "d"),
            ("d", "s", "d.s"),
            ("d", "s.t", "d.s.t"),
            ("d", "PUBLIC", "d.PUBLIC"),
            ("d", ".", "d.."),
        ] {
            let name = SchemaName::new(database, schema).expect("a pair with a stored name");
            assert_eq!(name.stored(), stored);
            assert_eq!(SchemaName::of_stored(stored), Some(name));
        }
    }

    #[test]
    fn a_name_without_a_counterpart_is_refused() {
        assert!(["", ".s", "d.", ".", "d.public"].into_iter().all(|stored| SchemaName::of_stored(stored).is_none()));
        assert!([("", "s"), ("d", ""), ("d.e", "s")].into_iter().all(|(d, s)| SchemaName::new(d, s).is_none()));
    }
}
