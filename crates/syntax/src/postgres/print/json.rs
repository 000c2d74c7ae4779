//! SQL/JSON.

use std::fmt::{self, Display, Formatter};

use super::{Clauses, Commas, when};
use crate::postgres::tree::*;

impl Display for JsonFormat {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let JsonFormat { encoding, at: _ } = self;
        f.write_str(" FORMAT JSON")?;
        encoding.iter().try_for_each(|encoding| write!(f, " ENCODING {}", encoding.name()))
    }
}

impl Display for JsonTest {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let JsonTest { operand, kind, unique, negated, at: _ } = self;
        let unique = when(*unique, " WITH UNIQUE KEYS");
        write!(f, "(({operand}) IS{} JSON{}{unique})", when(*negated, " NOT"), kind.word())
    }
}

impl Display for JsonConstructor {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let JsonConstructor { content, clauses } = self;
        match content {
            JsonContent::Object(members) => {
                f.write_str("JSON_OBJECT(")?;
                for (nth, (key, value)) in members.iter().enumerate() {
                    write!(f, "{}({key}) : {value}", when(nth > 0, ", "))?;
                }
                clauses_of(f, clauses, true, members.is_empty())
            }
            JsonContent::Array(items) => {
                write!(f, "JSON_ARRAY({}", Commas(items))?;
                clauses_of(f, clauses, false, items.is_empty())
            }
            JsonContent::Query(query, format) => {
                write!(f, "JSON_ARRAY({query}")?;
                format.iter().try_for_each(|format| format.fmt(f))?;
                clauses_of(f, clauses, false, true)
            }
        }
    }
}

/// Writes JSON_OBJECTAGG or JSON_ARRAYAGG.
pub(super) fn aggregate(
    f: &mut Formatter,
    arguments: &[Argument],
    order_by: &[SortBy],
    clauses: &JsonClauses,
) -> fmt::Result {
    match arguments {
        [key, value] => write!(f, "JSON_OBJECTAGG(({key}) : {value}")?,
        _ => write!(f, "JSON_ARRAYAGG({}", Commas(arguments))?,
    }
    Clauses(" ORDER BY ", order_by).fmt(f)?;
    clauses_of(f, clauses, arguments.len() == 2, false)
}

/// Writes the clauses of a constructor and its parenthesis. Without items it has no null clause.
fn clauses_of(f: &mut Formatter, clauses: &JsonClauses, is_object: bool, is_empty: bool) -> fmt::Result {
    let JsonClauses { absent_on_null, unique, returning } = clauses;
    if *absent_on_null == is_object && !is_empty {
        f.write_str(if is_object { " ABSENT ON NULL" } else { " NULL ON NULL" })?;
    }
    f.write_str(when(*unique, " WITH UNIQUE KEYS"))?;
    if let Some(JsonReturning { ty, format }) = returning {
        write!(f, " RETURNING {ty}")?;
        format.iter().try_for_each(|format| format.fmt(f))?;
    }
    f.write_str(")")
}
