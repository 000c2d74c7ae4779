//! Expressions that definitions keep as text: written so that they mean the same under the default `sql_mode`, whatever the mode of the session that wrote them. So the catalog can read them without asking
//! whose they were, and SHOW CREATE TABLE can show them to anybody.

use syntax::tree::walk::{self, Visitor};
use syntax::tree::{Expr, ExprKind, Query};

use crate::error::{Result, SqlError};
use crate::scalar::SqlMode;

/// A construct that must not stand in the expression of a generated column.
#[derive(Debug, PartialEq, Eq)]
pub enum Disallowed {
    Subquery,
    Variable,
    Function(String),
}

/// Returns the expression's text. The tree has resolved whatever depends on the mode but for one operator: `||` that concatenates.
pub fn stored_text(node: &Expr, mode: SqlMode) -> Result<String> {
    if mode.has(SqlMode::PIPES_AS_CONCAT) && concatenates(node) {
        return Err(SqlError::unsupported("|| for CONCAT in a definition"));
    }
    let text = node.to_string();
    // Printed parentheses count: the text may be nested deeper than the one that was read.
    crate::parse::parse_expression(&text)?;
    Ok(text)
}

fn concatenates(node: &Expr) -> bool {
    struct Find(bool);
    impl Visitor for Find {
        fn expr(&mut self, node: &Expr) -> bool {
            self.0 |= matches!(node.kind, ExprKind::Concat(_));
            !self.0
        }
    }
    let mut find = Find(false);
    walk::expr(node, &mut find);
    find.0
}

/// Functions whose answer is not decided by their arguments.
const CHANGING: &[&str] = &[
    "benchmark",
    "connection_id",
    "curdate",
    "current_date",
    "current_role",
    "current_time",
    "current_timestamp",
    "current_user",
    "curtime",
    "database",
    "found_rows",
    "get_lock",
    "is_free_lock",
    "is_used_lock",
    "last_insert_id",
    "load_file",
    "localtime",
    "localtimestamp",
    "name_const",
    "now",
    "rand",
    "random_bytes",
    "release_all_locks",
    "release_lock",
    "row_count",
    "schema",
    "session_user",
    "sleep",
    "sysdate",
    "system_user",
    "user",
    "utc_date",
    "utc_time",
    "utc_timestamp",
    "uuid",
    "uuid_short",
    "values",
    "version",
];

/// Returns the first construct of the expression that no generated column may have.
pub fn disallowed(node: &Expr) -> Option<Disallowed> {
    let mut search = Search(None);
    walk::expr(node, &mut search);
    search.0
}

struct Search(Option<Disallowed>);

impl Visitor for Search {
    fn expr(&mut self, node: &Expr) -> bool {
        if self.0.is_some() {
            return false;
        }
        self.0 = match &node.kind {
            ExprKind::UserVariable(_)
            | ExprKind::SystemVariable { scope: _, name: _ }
            | ExprKind::Assign { name: _, value: _ } => Some(Disallowed::Variable),
            ExprKind::InsertedValue(_) => Some(Disallowed::Function("values".to_owned())),
            ExprKind::Function(function) => {
                let name = function.name.to_ascii_lowercase();
                let is_now = name == "unix_timestamp" && function.arguments.is_empty();
                (is_now || CHANGING.contains(&&*name)).then_some(Disallowed::Function(name))
            }
            _ => None,
        };
        self.0.is_none()
    }

    fn query(&mut self, _: &Query) -> bool {
        self.0.get_or_insert(Disallowed::Subquery);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse_expression;

    #[test]
    fn what_is_kept_reads_as_what_was_written() {
        for text in [r"a REGEXP '\\\\d+'", r"concat(a, '\\n', 'it''s', `b c`)", "a + 1 > 2 OR b", "j -> '$.\"x\"'"] {
            let node = parse_expression(text).expect("it parses");
            let kept = stored_text(&node, SqlMode::DEFAULT).expect("it can be kept");
            assert_eq!(parse_expression(&kept).expect("it parses again"), node, "{kept}");
        }
    }

    #[test]
    fn what_depends_on_more_than_the_row_is_seen() {
        let disallowed = |text| disallowed(&parse_expression(text).expect("it parses"));
        assert_eq!(disallowed("a + 1"), None);
        assert_eq!(disallowed("a + `now`"), None);
        assert_eq!(disallowed("NOW(6)"), Some(Disallowed::Function("now".to_owned())));
        assert_eq!(disallowed("a + CURRENT_DATE"), Some(Disallowed::Function("current_date".to_owned())));
        assert_eq!(disallowed("a + @x"), Some(Disallowed::Variable));
        assert_eq!(disallowed("(SELECT 1)"), Some(Disallowed::Subquery));
        assert_eq!(disallowed("UNIX_TIMESTAMP(a)"), None);
    }
}
