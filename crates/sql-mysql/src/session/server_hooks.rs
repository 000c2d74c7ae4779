//! Server hooks: variables that the server follows, rows that it adds to SHOW STATUS, and procedures for CALL.
//!
//! There are no stored procedures. CALL serves the server's procedures and those by which PolarDB-X compute nodes run
//! RETURNING, take timestamps and list procedures; any other name is error 1305.

use syntax::tree::Expr;

use crate::error::{self, Result, SqlError};
use crate::instance::hooks::Procedure;
use crate::instance::variables::text_of;
use crate::parse::statement::Name;
use crate::scalar::functions::entry::TIMESTAMP_SEQUENCE;
use crate::scalar::temporal::Timestamp;
use crate::session::{Outcome, Session};
use crate::types::{Collation, CollationName as _, Column, MysqlType as _, Type};
use crate::value::Value;

/// The maximum number of timestamps per call, as at the XRPC door.
const TIMESTAMPS_MAX: u32 = 1 << 16;

fn is_timestamp_sequence(schema: &str, name: &str) -> bool {
    schema.eq_ignore_ascii_case(TIMESTAMP_SEQUENCE[0]) && name.eq_ignore_ascii_case(TIMESTAMP_SEQUENCE[1])
}

/// Returns milliseconds since 1970, regardless of SET timestamp.
pub(super) fn wall_ms() -> u64 {
    u64::try_from(Timestamp::now().0 / 1000).unwrap_or(0)
}

impl Session {
    pub(super) fn call(&mut self, name: &Name, arguments: &[Expr]) -> Result<Outcome> {
        let schema = match (&name.schema, &self.database) {
            (Some(schema), _) | (None, Some(schema)) => schema.clone(),
            (None, None) => return Err(error::NO_DB.bare()),
        };
        let shown = format!("{schema}.{}", name.name);
        if schema.eq_ignore_ascii_case("dbms_trans") && name.name.eq_ignore_ascii_case("returning") {
            return self.call_returning(arguments, &shown);
        }
        if schema.eq_ignore_ascii_case("dbms_tso") && name.name.eq_ignore_ascii_case("get_timestamp") {
            return self.call_get_timestamp(arguments, &shown);
        }
        if schema.eq_ignore_ascii_case("dbms_admin") && name.name.eq_ignore_ascii_case("show_native_procedure") {
            return self.call_show_native_procedure(arguments, &shown);
        }
        let db = self.db.clone();
        let known = |procedure: &&Procedure| {
            procedure.schema.eq_ignore_ascii_case(&schema) && procedure.name.eq_ignore_ascii_case(&name.name)
        };
        let procedure = db.hooks().and_then(|hooks| hooks.procedures.iter().find(known));
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

    /// `CALL dbms_tso.get_timestamp('mysql', 'gts_base', n)`: reserves `n` timestamps for the caller and returns the
    /// number below the first, as XRPC's GET_TSO does.
    fn call_get_timestamp(&mut self, arguments: &[Expr], shown: &str) -> Result<Outcome> {
        let [schema, name, count] = arguments else {
            return Err(error::SP_WRONG_NO_OF_ARGS.with(&[&"PROCEDURE", &shown, &3, &arguments.len()]));
        };
        let (schema, name) = (text_of(&self.constant(schema)?), text_of(&self.constant(name)?));
        if !is_timestamp_sequence(&schema, &name) {
            return Err(error::NO_SUCH_TABLE.with(&[&schema, &name]));
        }
        let count = match self.constant(count)? {
            Value::Int(count) => u32::try_from(count).ok(),
            Value::UInt(count) => u32::try_from(count).ok(),
            _ => None,
        };
        let count = count.filter(|count| (1..=TIMESTAMPS_MAX).contains(count));
        let count = count.ok_or_else(|| error::WRONG_ARGUMENTS.with(&[&shown]))?;
        let (base, gate) = self.db.take_timestamps(count, wall_ms())?;
        self.core.transaction.raise_durability_lsn(gate);
        let columns = vec![Column::computed("Timestamp", Type::unsigned())];
        Ok(self.rows(columns, vec![vec![Value::UInt(base)].into_iter().collect()]))
    }

    /// `CALL dbms_admin.show_native_procedure()`: lists the procedures and the types of their arguments.
    fn call_show_native_procedure(&mut self, arguments: &[Expr], shown: &str) -> Result<Outcome> {
        if !arguments.is_empty() {
            return Err(error::SP_WRONG_NO_OF_ARGS.with(&[&"PROCEDURE", &shown, &0, &arguments.len()]));
        }
        let mut known: Vec<[&str; 4]> = vec![
            ["dbms_admin", "show_native_procedure", "ADMIN_PROC", "NULL"],
            ["dbms_trans", "returning", "TRANS_PROC", "VARCHAR, VARCHAR"],
            ["dbms_tso", "get_timestamp", "ADMIN_PROC", "VARCHAR, VARCHAR, LONGLONG"],
        ];
        let db = self.db.clone();
        let of_server = db.hooks().map_or(&[][..], |hooks| &hooks.procedures);
        known.extend(of_server.iter().map(|one| [one.schema, one.name, "ADMIN_PROC", "VARCHAR"]));
        known.sort_unstable();
        let names = ["SCHEMA_NAME", "PROC_NAME", "PROC_TYPE", "PARAMETERS"];
        let column = |name: &&str| Column::computed(*name, Type::text(128, Collation::DEFAULT));
        let rows = known.into_iter().map(|row| row.into_iter().map(Value::text).collect());
        let (columns, rows) = (names.iter().map(column).collect(), rows.collect());
        Ok(self.rows(columns, rows))
    }

    /// Executes CREATE SEQUENCE. The only timestamp sequence is built in; others are refused.
    pub(super) fn create_sequence(&mut self, name: &Name, if_not_exists: bool, is_timestamp: bool) -> Result<Outcome> {
        let (schema, name) = self.full_name(name)?;
        if !is_timestamp {
            return Err(SqlError::unsupported("CREATE SEQUENCE without TIMESTAMP"));
        }
        if !is_timestamp_sequence(&schema, &name) {
            return Err(SqlError::unsupported("timestamp sequences beside mysql.gts_base"));
        }
        let exists = error::TABLE_EXISTS.with(&[&name]);
        if !if_not_exists {
            return Err(exists);
        }
        self.note(exists);
        Ok(Outcome::done())
    }

    /// `CALL dbms_trans.returning('id, a', 'DELETE ...')`: runs the change and returns these columns of its rows.
    fn call_returning(&mut self, arguments: &[Expr], shown: &str) -> Result<Outcome> {
        let [list, statement] = arguments else {
            return Err(error::SP_WRONG_NO_OF_ARGS.with(&[&"PROCEDURE", &shown, &2, &arguments.len()]));
        };
        let (list, statement) = (text_of(&self.constant(list)?), text_of(&self.constant(statement)?));
        self.execute_text(&returning(&statement, &list))
    }
}

/// Appends RETURNING with this list to the statement. A statement that is no change then fails to parse.
pub fn returning(statement: &str, list: &str) -> String {
    let statement = statement.trim_end_matches(|letter: char| letter.is_whitespace() || letter == ';');
    // A newline first: the statement may end in a comment.
    format!("{statement}\nRETURNING {list}")
}
