//! What the server around a database adds to SQL: it follows variables that are its own, has lines of its own in SHOW STATUS, and procedures for CALL.
//!
//! Nothing here knows what they mean. There are no stored procedures: a CALL of anything else is error 1305, but for `dbms_trans.returning`, by which clients of PolarDB say RETURNING.

use sqlparser::ast;

use crate::error::{self, Result};
use crate::parse::statement::Name;
use crate::rights::Privileges;
use crate::session::variables::text_of;
use crate::session::{Outcome, Session};
use crate::types::{Collation, Column, Type};
use crate::value::Value;

/// See `Database::stand_in`.
pub struct Around {
    /// SET GLOBAL has set this variable, to a value within its bounds; 0 or 1 for a flag. Called in the session's thread, which holds nothing.
    pub set: Box<dyn Fn(&'static str, u64) + Send + Sync>,
    /// Names and values for SHOW STATUS.
    pub status: Box<dyn Fn() -> Vec<(&'static str, String)> + Send + Sync>,
    pub procedures: Vec<Procedure>,
}

/// From the argument to rows of texts.
pub type Run = dyn Fn(&str) -> Vec<Vec<String>> + Send + Sync;

/// What CALL can name. It has one argument, a text.
pub struct Procedure {
    pub schema: &'static str,
    pub name: &'static str,
    /// Names of its columns, and how many letters they hold.
    pub columns: &'static [(&'static str, u32)],
    /// One of these must be had to call it with that argument.
    pub needs: fn(&str) -> Privileges,
    /// Its rows.
    pub run: Box<Run>,
}

impl Session {
    pub(super) fn call(&mut self, name: &Name, arguments: &[ast::Expr]) -> Result<Outcome> {
        let schema = match (&name.schema, &self.database) {
            (Some(schema), _) | (None, Some(schema)) => schema.clone(),
            (None, None) => return Err(error::NO_DB.bare()),
        };
        let shown = format!("{schema}.{}", name.name);
        if schema.eq_ignore_ascii_case("dbms_trans") && name.name.eq_ignore_ascii_case("returning") {
            return self.call_returning(arguments, &shown);
        }
        let db = self.db.clone();
        let known = |procedure: &&Procedure| {
            procedure.schema.eq_ignore_ascii_case(&schema) && procedure.name.eq_ignore_ascii_case(&name.name)
        };
        let procedure = db.around().and_then(|around| around.procedures.iter().find(known));
        let procedure = procedure.ok_or_else(|| error::SP_DOES_NOT_EXIST.with(&[&"PROCEDURE", &shown]))?;
        let [argument] = arguments else {
            return Err(error::SP_WRONG_NO_OF_ARGS.with(&[&"PROCEDURE", &shown, &1, &arguments.len()]));
        };
        let argument = text_of(&self.constant(argument)?);
        self.rights.need_global((procedure.needs)(&argument))?;
        let column = |(name, letters): &(&str, u32)| Column::computed(*name, Type::text(*letters, Collation::DEFAULT));
        let rows = (procedure.run)(&argument).into_iter().map(|row| row.into_iter().map(Value::text).collect());
        let (columns, rows) = (procedure.columns.iter().map(column).collect(), rows.collect());
        Ok(self.rows(columns, rows))
    }

    /// `CALL dbms_trans.returning('id, a', 'DELETE ...')`: the change, and these columns of its rows.
    fn call_returning(&mut self, arguments: &[ast::Expr], shown: &str) -> Result<Outcome> {
        let [list, statement] = arguments else {
            return Err(error::SP_WRONG_NO_OF_ARGS.with(&[&"PROCEDURE", &shown, &2, &arguments.len()]));
        };
        let (list, statement) = (text_of(&self.constant(list)?), text_of(&self.constant(statement)?));
        self.execute_text(&returning(&statement, &list))
    }
}

/// The change with a RETURNING of this list. Whatever is no change is a syntax error by it.
pub fn returning(statement: &str, list: &str) -> String {
    let statement = statement.trim_end_matches(|letter: char| letter.is_whitespace() || letter == ';');
    // On a line of its own: the statement may end in a comment.
    format!("{statement}\nRETURNING {list}")
}
