//! Every variant and every optional field of PostgreSQL's tree is one that the parser fills (SY-7): by a statement of the corpus or one of [`TEXTS`].

use std::collections::BTreeSet;

use syntax::postgres::parse_script;

use super::corpus::cases;
use crate::fields::{Declarations, Reader, Type};

const SOURCES: [&str; 11] = [
    include_str!("../../../src/postgres/tree/alter.rs"),
    include_str!("../../../src/postgres/tree/change.rs"),
    include_str!("../../../src/postgres/tree/expr.rs"),
    include_str!("../../../src/postgres/tree/mod.rs"),
    include_str!("../../../src/postgres/tree/object.rs"),
    include_str!("../../../src/postgres/tree/query.rs"),
    include_str!("../../../src/postgres/tree/statement.rs"),
    include_str!("../../../src/postgres/tree/table.rs"),
    include_str!("../../../src/postgres/tree/types.rs"),
    include_str!("../../../src/postgres/tree/user_type.rs"),
    include_str!("../../../src/postgres/tree/utility.rs"),
];

/// Statements with what the corpus has not.
const TEXTS: &[&str] = &[
    "CREATE TYPE t AS (a int, b text COLLATE \"C\")",
    "CREATE DOMAIN d AS text COLLATE \"C\" DEFAULT 'x' CONSTRAINT c CHECK (value <> '') NOT NULL",
    "ALTER DOMAIN d SET DEFAULT 'y'",
    "ALTER DOMAIN d DROP DEFAULT",
    "ALTER DOMAIN d SET NOT NULL",
    "ALTER DOMAIN d DROP NOT NULL",
    "ALTER DOMAIN d ADD CONSTRAINT c CHECK (value <> '') NOT VALID",
    "ALTER DOMAIN d VALIDATE CONSTRAINT c",
    "ALTER DOMAIN d DROP CONSTRAINT IF EXISTS c CASCADE",
    "ALTER DOMAIN d DROP CONSTRAINT c",
    "CREATE TYPE e AS ENUM ('a', 'b')",
    "SELECT a FROM s.t AS x TABLESAMPLE pg_catalog.bernoulli (10, 2) REPEATABLE (1)",
    "SELECT a FROM ONLY t TABLESAMPLE system (10)",
    "ALTER TYPE e ADD VALUE IF NOT EXISTS 'c' BEFORE 'a'",
    "ALTER TYPE e ADD VALUE 'd' AFTER 'a'",
    "ALTER TYPE e RENAME VALUE 'd' TO 'f'",
    "ALTER TYPE t ADD ATTRIBUTE c text COLLATE \"C\" CASCADE, DROP ATTRIBUTE IF EXISTS a, DROP ATTRIBUTE b, ALTER ATTRIBUTE c SET DATA TYPE text COLLATE \"C\"",
];

/// Places that no text fills, with the reason.
const NEVER: &[(&str, &str)] = &[];

#[test]
fn the_parser_fills_every_field() {
    let mut declared = Declarations::default();
    SOURCES.iter().for_each(|source| declared.read(source));
    let mut seen = BTreeSet::new();
    let statement = Type { name: "Statement".to_owned(), of: Vec::new() };
    let corpus = cases();
    for text in corpus.iter().map(|case| case.text.as_str()).chain(TEXTS.iter().copied()) {
        for raw in parse_script(text, &|| false).unwrap_or_default() {
            let value = Reader::new(&format!("{:?}", raw.statement)).value();
            declared.see("", &statement, &value, &mut seen);
        }
    }
    for text in TEXTS {
        assert!(parse_script(text, &|| false).is_ok(), "{text}");
    }
    let wanted = declared.all_wanted();
    assert!(wanted.len() > 500, "{} places", wanted.len());
    let missing: Vec<&str> = wanted
        .difference(&seen)
        .map(|place| &**place)
        .filter(|place| !place.starts_with("RawStatement") && !NEVER.iter().any(|(never, _)| never == place))
        .collect();
    assert!(missing.is_empty(), "no text has {} of {} places:\n{}", missing.len(), wanted.len(), missing.join("\n"));
    for (never, reason) in NEVER {
        assert!(wanted.contains(*never) && !seen.contains(*never), "{never}: {reason}");
    }
}
