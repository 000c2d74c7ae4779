//! SELECT ... INTO OUTFILE and DUMPFILE: writes rows into a new file of the server below `secure_file_priv`.
//!
//! Rows are written as they are produced. On an error the file is removed, so an existing file is complete.
//!
//! Keeps MY-22.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stdx::wait::{self, Reason};
use syntax::tree::{Format, Query, Statement};

use crate::batch::{Batch, Cell, Row};
use crate::charset::fixed_width;
use crate::error::{self, Result, SqlError};
use crate::instance::prepared::type_of;
use crate::rights::Privileges;
use crate::scalar::charsets;
use crate::scalar::{cast, convert};
use crate::session::load::words;
use crate::session::{Outcome, ResultSet, Session};
use crate::types::{Charset, Column, Kind, MysqlType as _, Type};
use crate::value::Value;

static WRITE: Reason = Reason::new("outfile");

/// Bytes per write.
const PIECE: usize = 256 << 10;

/// The file's name, character set and line format. Without a format one row's bytes are written as they are (DUMPFILE).
pub(super) type Out<'s> = (&'s str, Option<&'s str>, Option<&'s Format>);

impl Session {
    pub(super) fn select_into_file(
        &mut self,
        query: &Query,
        (name, charset, format): Out<'_>,
        parameters: Vec<Value>,
    ) -> Result<Outcome> {
        let types: Vec<Type> = parameters.iter().map(|value| type_of(value, self.settings.collation)).collect();
        let statement = Statement::Query(Box::new(Query { into: None, ..query.clone() }));
        let compiled = Arc::new(self.compile(&statement, (&types, &parameters))?);
        if !self.rights.global.has(Privileges::FILE) {
            return Err(self.rights.no_file());
        }
        let is_fixed = format.is_some_and(Format::is_fixed);
        let charset = charset.map_or(Ok(Charset::Binary), charsets::file_charset)?;
        let path = self.creatable(name)?;
        let outcome = self
            .run(&compiled, parameters, &mut |session| session.compile(&statement, (&types, &[])).ok().map(Arc::new))?;
        let Outcome::Rows(result) = outcome else { return Ok(outcome) };
        let widths: Option<Vec<usize>> = result.columns().iter().map(|column| fixed_width(&column.ty)).collect();
        if is_fixed && widths.is_none() {
            result.close(self);
            return Err(error::BLOBS_AND_NO_TERMINATED.bare());
        }
        let widths = widths.filter(|_| is_fixed);
        // Group-readable as in MySQL, regardless of the umask.
        let file = OpenOptions::new().write(true).create_new(true).mode(0o640).open(&path);
        let file = file.and_then(|file| file.set_permissions(Permissions::from_mode(0o640)).map(|()| file));
        let written = file.map_err(|error| cannot_create(name, &error)).and_then(|file| {
            let mut writing = Writing { file, name, format, widths, charset, buffer: Vec::new(), rows: 0 };
            let done = self.write_all(result, &mut writing);
            if done.is_err() {
                let _ = fs::remove_file(&path);
            }
            done.map(|()| writing.rows)
        });
        Ok(Outcome::Done { affected: written?, last_insert_id: 0, info: String::new() })
    }

    fn write_all(&mut self, mut result: ResultSet, writing: &mut Writing<'_>) -> Result<()> {
        let columns = result.columns().to_vec();
        let mut batch = Batch::new();
        while result.next(self, &mut batch)? {
            for cells in batch.rows() {
                let shown = |(cell, column): (Cell<'_>, &Column)| cast::present(cell.to_value(), &column.ty, &self.ctx);
                let row: Row = cells.iter().zip(&columns).map(shown).collect();
                if let Err(error) = writing.row(&row, &columns) {
                    result.close(self);
                    return Err(error);
                }
            }
        }
        writing.flush()
    }

    /// Returns the path for the file, which must not exist yet.
    fn creatable(&self, name: &str) -> Result<PathBuf> {
        let folder = self.files_folder()?;
        let refused = || error::OPTION_PREVENTS_STATEMENT.with(&[&"--secure-file-priv"]);
        let path = Path::new(name);
        let (Some(parent), Some(file), true) = (path.parent(), path.file_name(), path.is_absolute()) else {
            return Err(refused());
        };
        let parent = fs::canonicalize(parent).ok().filter(|parent| parent.starts_with(&folder)).ok_or_else(refused)?;
        let path = parent.join(file);
        match fs::symlink_metadata(&path) {
            Ok(_) => Err(error::FILE_EXISTS.with(&[&name])),
            Err(_) => Ok(path),
        }
    }
}

fn cannot_create(name: &str, error: &io::Error) -> SqlError {
    if error.kind() == io::ErrorKind::AlreadyExists {
        return error::FILE_EXISTS.with(&[&name]);
    }
    let number = error.raw_os_error().unwrap_or(0);
    let message = format!("Can't create/write to file '{name}' (OS errno {number} - {})", words(error));
    SqlError { code: 1, sqlstate: "HY000", message }
}

struct Writing<'w> {
    file: File,
    name: &'w str,
    format: Option<&'w Format>,
    /// The field widths in bytes, for a format without separators.
    widths: Option<Vec<usize>>,
    charset: Charset,
    buffer: Vec<u8>,
    rows: u64,
}

impl Writing<'_> {
    fn row(&mut self, row: &[Value], columns: &[Column]) -> Result<()> {
        self.rows += 1;
        match self.format {
            Some(format) => match self.widths.take() {
                None => self.line(format, row, columns),
                Some(widths) => {
                    self.fixed_line(format, &widths, row, columns);
                    self.widths = Some(widths);
                }
            },
            None if self.rows > 1 => return Err(error::TOO_MANY_ROWS.bare()),
            None => {
                for (value, column) in row.iter().zip(columns) {
                    match value {
                        Value::Null => self.buffer.push(0),
                        value => self.buffer.extend_from_slice(&bytes_of(value, column, self.charset).0),
                    }
                }
            }
        }
        if self.buffer.len() >= PIECE { self.flush() } else { Ok(()) }
    }

    fn line(&mut self, format: &Format, row: &[Value], columns: &[Column]) {
        self.buffer.extend_from_slice(&format.line_start);
        for (nth, (value, column)) in row.iter().zip(columns).enumerate() {
            if nth > 0 {
                self.buffer.extend_from_slice(&format.field_end);
            }
            let quote = format.enclosed.filter(|_| !format.optionally || is_string(&column.ty));
            match value {
                Value::Null => match format.escape {
                    Some(escape) => self.buffer.extend_from_slice(&[escape, b'N']),
                    None => self.buffer.extend_from_slice(b"NULL"),
                },
                value => {
                    self.buffer.extend(quote);
                    let (bytes, charset) = bytes_of(value, column, self.charset);
                    escape(format, quote.is_some(), (&bytes, charset), &mut self.buffer);
                    self.buffer.extend(quote);
                }
            }
        }
        self.buffer.extend_from_slice(&format.line_end);
    }

    /// Writes fields padded with spaces to their widths. NULL is all spaces; longer values are truncated, as in MySQL.
    fn fixed_line(&mut self, format: &Format, widths: &[usize], row: &[Value], columns: &[Column]) {
        self.buffer.extend_from_slice(&format.line_start);
        for ((value, column), width) in row.iter().zip(columns).zip(widths) {
            let (bytes, charset) = match value {
                Value::Null => (Vec::new(), Charset::Binary),
                value => bytes_of(value, column, self.charset),
            };
            let taken = bytes.len().min(*width);
            escape(format, false, (&bytes[..taken], charset), &mut self.buffer);
            self.buffer.extend(std::iter::repeat_n(b' ', width - taken));
        }
        self.buffer.extend_from_slice(&format.line_end);
    }

    fn flush(&mut self) -> Result<()> {
        let _waiting = wait::announce(&WRITE);
        self.file.write_all(&self.buffer).map_err(|error| match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => error::DISK_FULL.with(&[&self.name]),
            _ => error::ERROR_ON_WRITE.with(&[&self.name, &error.raw_os_error().unwrap_or(0), &words(&error)]),
        })?;
        self.buffer.clear();
        Ok(())
    }
}

/// Returns whether OPTIONALLY ENCLOSED encloses the type.
fn is_string(ty: &Type) -> bool {
    !(ty.kind().is_integer()
        || matches!(ty.kind(), Kind::Decimal | Kind::Float | Kind::Double | Kind::Year | Kind::Bit | Kind::Null))
}

/// Escapes what would end the field or line, and zero bytes, as MySQL's `Query_result_export` does: not within characters of several bytes.
fn escape(format: &Format, is_enclosed: bool, (bytes, charset): (&[u8], Charset), out: &mut Vec<u8>) {
    let Some(escape) = format.escape else {
        out.extend_from_slice(bytes);
        return;
    };
    let field_end = format.field_end.first().copied();
    // Without a quote, the field separator takes its role.
    let separator = format.enclosed.or(field_end);
    let line_end = format.line_end.first().copied();
    // These letters have another meaning after an escape.
    let is_ambiguous = |byte: Option<u8>| byte.is_some_and(|byte| b"ntrb0ZN".contains(&byte));
    let mut rest = bytes;
    while let [byte, ..] = rest {
        let (letter, after) = rest.split_at(charset.char_length(rest));
        rest = after;
        if letter.len() > 1 {
            out.extend_from_slice(letter);
            continue;
        }
        let ends = if is_enclosed { separator } else { field_end };
        let needs = *byte == escape || Some(*byte) == ends || Some(*byte) == line_end || *byte == 0;
        if needs && (is_enclosed || !is_ambiguous(field_end) || Some(*byte) != field_end) {
            let doubled = Some(*byte) == separator && is_ambiguous(separator);
            out.push(if doubled { *byte } else { escape });
            out.push(if *byte == 0 { b'0' } else { *byte });
        } else {
            out.push(*byte);
        }
    }
}

/// Encodes the displayed value in the file's character set; `binary` keeps the column's. Returns the set of the bytes too.
fn bytes_of(value: &Value, column: &Column, charset: Charset) -> (Vec<u8>, Charset) {
    match value {
        Value::Bytes(bytes) => (bytes.to_vec(), Charset::Binary),
        value => {
            let text = convert::to_text(value, &column.ty);
            let charset = if charset == Charset::Binary { column.ty.charset() } else { charset };
            (charset.encode(&text).into_owned(), charset)
        }
    }
}
