//! EXPLAIN: the plan as text, in PostgreSQL's layout.

use std::sync::Arc;

use syntax::postgres::tree::{DefArg, ExplainStmt, RawStatement, Statement};

use crate::error::{PgError, Result, state};
use crate::session::statement::has_plan;
use crate::session::{Session, is_on};

impl Session {
    pub(super) fn explain(
        &mut self,
        explain: &ExplainStmt,
        raw: &RawStatement,
        text: &Arc<str>,
    ) -> Result<Vec<String>> {
        let ExplainStmt { options, statement } = explain;
        let mut costs = true;
        for option in options {
            match &*option.name {
                "costs" => costs = is_on(option),
                "verbose" | "buffers" | "settings" | "wal" | "timing" | "summary" | "generic_plan"
                    if !is_on(option) => {}
                "format" => {
                    let text = match &option.value {
                        Some(DefArg::String(text) | DefArg::Keyword(text)) => text.to_ascii_lowercase(),
                        Some(DefArg::Type(ty)) => ty.name.last().to_owned(),
                        _ => String::new(),
                    };
                    if text != "text" {
                        return Err(PgError::unsupported(format!("EXPLAIN (FORMAT {})", text.to_uppercase())));
                    }
                }
                "analyze" | "verbose" | "buffers" | "settings" | "wal" | "timing" | "summary" | "generic_plan" => {
                    return Err(PgError::unsupported(format!("EXPLAIN ({})", option.name.to_uppercase())));
                }
                name => {
                    return Err(PgError::new(state::SYNTAX_ERROR, format!("unrecognized EXPLAIN option \"{name}\"")));
                }
            }
        }
        if !has_plan(statement) {
            return Err(PgError::unsupported("EXPLAIN of this statement"));
        }
        let own = RawStatement { statement: Statement::clone(statement), ..raw.clone() };
        let bound = self.bind_raw(&own, text, &[], &[])?;
        Ok(crate::explain::lines(&bound.statement.plan, costs))
    }
}
