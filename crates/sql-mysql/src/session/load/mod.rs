//! LOAD DATA from a file of the client or of the server.
//!
//! The door passes a client's file in pieces (`load_data`) while the session is otherwise idle. An error in the middle
//! rolls the statement back at once and is reported at the end, since the client does not read before. Files of the
//! server must be below `secure_file_priv` and require the FILE privilege (MY-21).

mod cut;
pub(super) mod rows;

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stdx::wait::{self, Reason};

use crate::error::{self, Result, SqlError};
use crate::instance::variables::find;
use crate::parse::statement::{FieldTarget, Load, Statement};
use crate::scalar::state::StateOf as _;
use crate::session::load::rows::{Loading, variable_type};
use crate::session::{Outcome, Session};
use crate::value::Value;

static READ: Reason = Reason::new("load");

/// Bytes per read.
const PIECE: usize = 256 << 10;

/// A LOAD DATA in progress, or its error.
#[derive(Debug)]
pub(super) enum Incoming {
    Loading(Box<Loading>),
    /// The statement has been rolled back.
    Failed(SqlError),
}

impl Session {
    /// Sets whether the client's capabilities allow LOCAL files.
    pub fn allow_local_files(&mut self, may: bool) {
        self.local_files = may;
    }

    pub(super) fn load(&mut self, load: &Load) -> Result<Outcome> {
        if load.is_local && !(self.local_files && self.global(find("local_infile")?) == Value::TRUE) {
            return Err(error::CLIENT_LOCAL_FILES_DISABLED.bare());
        }
        // Declares the variables, so that SET finds them with their final type.
        for field in &load.fields {
            if let FieldTarget::Variable(name) = field {
                self.ctx.state_mut().variables.set(name, Value::Null, variable_type())?;
            }
        }
        let statement = Statement::Load(Box::new(load.clone()));
        let compiled = Arc::new(self.compile(&statement, (&[], &[]))?);
        let file = if load.is_local { None } else { Some(self.readable(&load.file)?) };
        let outcome =
            self.run(&compiled, Vec::new(), &mut |session| session.compile(&statement, (&[], &[])).ok().map(Arc::new))?;
        match file {
            None => Ok(outcome),
            Some(file) => self.load_file(&load.file, file),
        }
    }

    fn load_file(&mut self, name: &str, mut file: File) -> Result<Outcome> {
        let Some(Incoming::Loading(mut loading)) = self.loading.take() else {
            return Err(SqlError::corrupt("a file that nobody has asked for"));
        };
        let mut piece = vec![0; PIECE];
        loop {
            let waiting = wait::announce(&READ);
            let count = file
                .read(&mut piece)
                .map_err(|error| error::ERROR_ON_READ.with(&[&name, &error.raw_os_error().unwrap_or(0), &error]))?;
            drop(waiting);
            if count == 0 {
                return self.loaded(*loading);
            }
            loading.feed(&piece[..count], &mut self.ctx)?;
        }
    }

    /// Takes the next bytes of the file that `Outcome::File` requested. Errors are reported by `load_end`.
    pub fn load_data(&mut self, bytes: &[u8]) {
        let Some(Incoming::Loading(loading)) = &mut self.loading else { return };
        if let Err(error) = loading.feed(bytes, &mut self.ctx) {
            let error = self.fail(error);
            self.loading = Some(Incoming::Failed(error));
        }
    }

    /// Ends the file and returns the statement's outcome.
    pub fn load_end(&mut self) -> Result<Outcome> {
        match self.loading.take() {
            Some(Incoming::Loading(loading)) => match self.loaded(*loading) {
                Ok(outcome) => Ok(self.told(outcome)),
                Err(error) => Err(self.fail(error)),
            },
            Some(Incoming::Failed(error)) => Err(error),
            None => Err(SqlError::corrupt("a file that nobody has asked for")),
        }
    }

    fn loaded(&mut self, loading: Loading) -> Result<Outcome> {
        let changed = loading.end(&mut self.ctx)?;
        self.end_statement()?;
        if changed.last_insert_id > 0 {
            self.ctx.state_mut().session.last_insert_id = changed.last_insert_id;
        }
        Ok(Outcome::Done { affected: changed.affected, last_insert_id: 0, info: changed.info })
    }

    /// Returns the folder of `secure_file_priv`.
    pub(super) fn files_folder(&self) -> Result<PathBuf> {
        let refused = || error::OPTION_PREVENTS_STATEMENT.with(&[&"--secure-file-priv"]);
        let folder = self.global(find("secure_file_priv")?);
        match &folder {
            Value::Text(folder) if folder.as_str() != "NULL" => {
                fs::canonicalize(folder.as_str()).map_err(|_| refused())
            }
            _ => Err(refused()),
        }
    }

    /// Opens a file of the server. Symbolic links are resolved first, so none leads out of the folder.
    fn readable(&self, name: &str) -> Result<File> {
        let folder = self.files_folder()?;
        let refused = || error::OPTION_PREVENTS_STATEMENT.with(&[&"--secure-file-priv"]);
        let path = Path::new(name);
        let missing = |error: &io::Error| SqlError {
            code: 29,
            sqlstate: "HY000",
            message: format!(
                "File '{name}' not found (OS errno {} - {})",
                error.raw_os_error().unwrap_or(0),
                words(error)
            ),
        };
        let real = match fs::canonicalize(path) {
            Ok(real) => real,
            // The existence of files elsewhere is not revealed.
            Err(error) => match path.parent().map(fs::canonicalize) {
                Some(Ok(parent)) if path.is_absolute() && parent.starts_with(&folder) => return Err(missing(&error)),
                _ => return Err(refused()),
            },
        };
        if !path.is_absolute() || !real.starts_with(&folder) {
            return Err(refused());
        }
        let about = fs::metadata(&real).map_err(|error| missing(&error))?;
        if !about.is_file() || about.permissions().mode() & 0o004 == 0 {
            return Err(error::TEXTFILE_NOT_READABLE.with(&[&name]));
        }
        File::open(&real).map_err(|error| missing(&error))
    }
}

/// Returns the system's message for an error, without its number.
pub(super) fn words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}
