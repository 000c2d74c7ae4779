//! The values that pass between a session and the door: a login, fields of a result, parameters, notices, and what a statement has led to.
//!
//! The session knows statements and the forms of values; the door knows messages. Rows cross as complete DataRow messages, because text and binary forms belong
//! to the types.

use std::sync::Arc;

use crate::error::PgError;

pub use crate::instance::notifications::{Notification, QUEUE_BYTES_MAX};
pub use query::session::interrupts::{Kill, Wake};
pub use query::session::suspension::Ready;

/// A client that has been authenticated.
#[derive(Clone, Debug, Default)]
pub struct Login {
    pub role: String,
    /// The name of the role's account.
    pub account: String,
    pub database: String,
    /// The client's address, as pg_stat_activity shows it.
    pub address: String,
    /// The id of the connection, unique among those of all doors.
    pub connection_id: u64,
    /// The process id of BackendKeyData, unique among the door's open connections. It is the id of the connection while that is an int4.
    pub pid: u32,
    /// Settings of the startup message, those of `-c` in `options` among them, in the order in which they are applied.
    pub options: Vec<(String, String)>,
}

/// A column of a result, as RowDescription describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub name: Arc<str>,
    /// The OID of the table that the column comes from, and its number there; both 0 for an expression.
    pub table: u32,
    pub column: i16,
    pub type_oid: u32,
    pub type_len: i16,
    pub typmod: i32,
    /// 0 for text, 1 for binary.
    pub format: i16,
}

/// A parameter of Bind, in the client's form; `value` is `None` for NULL.
#[derive(Clone, Copy, Debug)]
pub struct Parameter<'a> {
    pub format: i16,
    pub value: Option<&'a [u8]>,
}

/// The formats of Bind in their form on the wire: none means text, one is that of all values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Formats<'a>(pub &'a [u8]);

impl Formats<'_> {
    pub fn len(self) -> usize {
        self.0.len() / 2
    }

    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Returns the format of the value at a place; 0, for text, behind the last one.
    pub fn of(self, nth: usize) -> i16 {
        let at = if self.len() == 1 { 0 } else { nth * 2 };
        self.0.get(at..at + 2).map_or(0, |format| i16::from_be_bytes([format[0], format[1]]))
    }

    pub fn iter(self) -> impl Iterator<Item = i16> {
        (0..self.len()).map(move |nth| self.of(nth))
    }
}

/// A message to the client that is not an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// WARNING, NOTICE, INFO, LOG or DEBUG.
    pub severity: &'static str,
    pub error: PgError,
}

/// The state of a result after a call that has written rows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum More {
    /// There may be further rows; none were written if the output was full.
    Rows,
    /// The result is complete; `tag` is that of CommandComplete.
    End { tag: String },
    /// The limit of Execute is reached, and the portal is still open.
    PortalSuspended,
}

/// The effect of a statement. `Rows` and `Copy` are the session's result set and its COPY TO in progress.
#[derive(Debug)]
pub enum StatementEffect<Rows, Copy> {
    /// The text has no statement.
    Empty,
    Done {
        tag: String,
    },
    Rows(Rows),
    /// The statement reads the client's data: `copy_data`, then `copy_done` or `copy_fail`. `formats` has one entry for each column.
    CopyIn {
        formats: Vec<i16>,
        binary: bool,
    },
    CopyOut(Copy),
    /// The statement waits for a page or a lock; `when_ready`, then `resume`.
    Suspended,
    /// The limit of Execute is reached without a result set to write.
    PortalSuspended,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_format_is_that_of_all_values_and_none_is_text() {
        let formats = |formats: Formats<'_>| [0, 1, 2].map(|nth| formats.of(nth));
        assert_eq!(formats(Formats(&[])), [0, 0, 0]);
        assert_eq!(formats(Formats(&[0, 1])), [1, 1, 1]);
        assert_eq!(formats(Formats(&[0, 1, 0, 0, 0xff, 0xff])), [1, 0, -1]);
        assert_eq!(Formats(&[0, 1, 0, 0]).iter().collect::<Vec<_>>(), [1, 0]);
    }
}
