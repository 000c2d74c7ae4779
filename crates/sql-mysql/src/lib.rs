//! MySQL's dialect over the core of SQL: its statements, names, functions, coercions, variables, accounts and system tables. Start with README.md beside this crate.

#![forbid(unsafe_code)]

pub use datum::{batch, value};

pub mod collation;
pub mod error;
pub mod types;

pub mod charset;
pub mod mysql_column;

pub mod scalar;

mod bind;
pub mod check;
mod explain;
mod instance;
mod other_dialects;
mod other_tables;
mod other_values;
mod parse;
pub mod rights;
mod session;
mod system;

/// The entry point of the fuzz target of the parser.
#[cfg(fuzzing)]
pub mod fuzzed {
    use crate::parse::{lexical, parameterise, parameterise::ParameterisedText, parse};
    use crate::scalar::modes::SqlMode;

    /// All that is done with a text before names are looked up. The bits of `mode` are the SQL modes that change how a text is read.
    pub fn read(text: &str, mode: u8) {
        let modes = [
            SqlMode::ANSI_QUOTES,
            SqlMode::PIPES_AS_CONCAT,
            SqlMode::NO_BACKSLASH_ESCAPES,
            SqlMode::HIGH_NOT_PRECEDENCE,
        ];
        let chosen = modes.iter().enumerate().filter(|(bit, _)| mode & (1 << bit) != 0);
        let mode = chosen.fold(SqlMode::DEFAULT, |all, (_, one)| all.with(*one));
        let mut rest = text;
        while !rest.is_empty() {
            let (one, behind) = lexical::split(rest, mode);
            assert!(one.len() + behind.len() <= rest.len());
            let _ = parse(one, mode);
            let mut taken = ParameterisedText::default();
            if mode == SqlMode::DEFAULT
                && taken.take(one)
                && let Ok(parsed) = parse(&parameterise::text_of(&taken.key), mode)
            {
                assert_eq!(parsed.parameters, taken.literals.len());
            }
            rest = behind;
        }
    }
}

pub use batch::Row;
pub use instance::count::Count;
pub use instance::database::Database;
pub use instance::handle::{Handle, Kill, Wake};
pub use instance::hooks::{Procedure, ServerHooks};
pub use instance::prepared::{Prepared, PreparedHandle};
pub use other_dialects::MAKER;
pub use query::nodes::context::Level as WarningLevel;
pub use session::read;
pub use session::server_hooks::returning;
pub use session::{Change, Login, Outcome, Ready, ResultSet, Session, Status};
