//! Runs the commands of an append-only file on staged databases.
//!
//! The commands of a transaction wait for its EXEC, as the file may end before it. Then each command is a key transaction of its own: nobody sees them before
//! the import ends. Times that are over count as in Redis while it loads a file: such a key stays until a DEL in the file, or the end of the import.

use std::io::{BufRead, ErrorKind, Read};
use std::sync::Arc;

use engine::{Error, KeySet, KeyTransaction, Staging};
use stdx::memory;

use crate::alone::{Alone, Ran, run_alone};
use crate::command::Command;
use crate::commands::function::restore_libraries;
use crate::errors;
use crate::functions::{self, Run};
use crate::import::library_list::LibraryList;
use crate::import::outcome::ImportError;
use crate::number;
use crate::scripts::libraries::Policy;
use crate::shared::Shared;
use crate::table;

/// Most arguments of a command.
const ARGUMENTS_MAX: u64 = 1 << 20;
/// Most bytes of a command, as `client-query-buffer-limit` has it by default.
const COMMAND_MAX: u64 = 1 << 30;
/// Bytes of an argument that are read at once, whatever length it claims.
const STEP: u64 = 1 << 20;
/// Longest line with a length, its end included.
const LINE_MAX: u64 = 32;
const NO_PLACE: &str = "it has no place in an append-only file here; BGREWRITEAOF of Redis writes one without it";
/// Longest annotation, as in Redis.
const ANNOTATION_MAX: u64 = 1024;

/// Why no command could be read.
pub(super) enum Unread {
    /// The file ends in its middle.
    Short,
    Bad(ImportError),
}

impl From<std::io::Error> for Unread {
    fn from(error: std::io::Error) -> Unread {
        match error.kind() {
            ErrorKind::UnexpectedEof => Unread::Short,
            _ => Unread::Bad(rdb::Error::Io(error).into()),
        }
    }
}

/// A file, and how much of it was read.
pub(super) struct Counted<R> {
    pub input: R,
    pub at: u64,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        self.input.read(out).inspect(|count| self.at += *count as u64)
    }
}

impl<R: BufRead> Counted<R> {
    fn bad<T>(&self, what: &str) -> Result<T, Unread> {
        Err(Unread::Bad(ImportError::File(format!("at byte {}: {what}", self.at))))
    }

    /// Reads the next byte without taking it.
    pub fn peek(&mut self) -> std::io::Result<Option<u8>> {
        Ok(self.input.fill_buf()?.first().copied())
    }

    fn line(&mut self, most: u64) -> Result<Vec<u8>, Unread> {
        let mut line = Vec::new();
        let read = (&mut self.input).take(most).read_until(b'\n', &mut line)?;
        self.at += read as u64;
        match line.pop() {
            Some(b'\n') => Ok(line),
            _ if read as u64 == most => self.bad("a line is too long"),
            _ => Err(Unread::Short),
        }
    }

    /// Reads a line of a sign and a number.
    fn length(&mut self, sign: u8, most: u64) -> Result<u64, Unread> {
        let line = self.line(LINE_MAX)?;
        let digits = line.strip_prefix(&[sign]).and_then(|rest| rest.strip_suffix(b"\r"));
        let number = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<u64>().ok());
        match number {
            Some(number) if number <= most => Ok(number),
            Some(_) => self.bad("a command is too long"),
            None => self.bad(&format!("a line of '{}' and a number is expected", sign as char)),
        }
    }

    /// Reads a command. Returns None at the end of the file.
    pub fn command(&mut self) -> Result<Option<Vec<Vec<u8>>>, Unread> {
        loop {
            match self.peek()? {
                None => return Ok(None),
                Some(b'#') => drop(self.line(ANNOTATION_MAX)?),
                Some(_) => break,
            }
        }
        let count = self.length(b'*', ARGUMENTS_MAX)?;
        if count == 0 {
            return self.bad("a command has no name");
        }
        let (mut args, mut left) = (Vec::new(), COMMAND_MAX);
        for _ in 0..count {
            let length = self.length(b'$', left.min(rdb::STRING_MAX))?;
            left -= length;
            let mut arg = Vec::new();
            while (arg.len() as u64) < length {
                let step = (length - arg.len() as u64).min(STEP);
                let claimed = memory::claim(arg.len() + step as usize);
                let _claim = claimed.map_err(|full| Unread::Bad(Error::OutOfMemory(full).into()))?;
                let read = self.take(step).read_to_end(&mut arg)? as u64;
                if read < step {
                    return Err(Unread::Short);
                }
            }
            let mut end = [0; 2];
            self.read_exact(&mut end)?;
            if end != *b"\r\n" {
                return self.bad("an argument does not end where it should");
            }
            args.push(arg);
        }
        Ok(Some(args))
    }
}

pub(super) struct Replay<'i, 'k> {
    shared: &'i Arc<Shared>,
    staging: &'i Staging<'k>,
    libraries: &'i mut LibraryList,
    db: u8,
    /// The commands since MULTI, and where it stands.
    queue: Option<(u64, Vec<Vec<Vec<u8>>>)>,
    reply: Vec<u8>,
}

impl<'i, 'k> Replay<'i, 'k> {
    pub fn new(shared: &'i Arc<Shared>, staging: &'i Staging<'k>, libraries: &'i mut LibraryList) -> Replay<'i, 'k> {
        Replay { shared, staging, libraries, db: 0, queue: None, reply: Vec::new() }
    }

    /// Runs all commands of a file. Returns where the last whole command or transaction ends.
    pub fn run<R: BufRead>(
        &mut self,
        file: &mut Counted<R>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64, ImportError> {
        loop {
            let at = file.at;
            let whole = |queue: &Option<(u64, _)>| queue.as_ref().map_or(at, |(began, _)| *began);
            match file.command() {
                Ok(Some(args)) => {
                    let shown = String::from_utf8_lossy(&args[0][..args[0].len().min(40)]).into_owned();
                    self.take(args, at).map_err(|error| match error {
                        NotRun::Text(text) => ImportError::File(format!(
                            "at byte {at}: command '{}': {}",
                            shown.escape_debug(),
                            text.trim_start_matches("ERR ")
                        )),
                        NotRun::Engine(error) => ImportError::Engine(error),
                    })?;
                    progress(file.at);
                }
                Ok(None) | Err(Unread::Short) => return Ok(whole(&self.queue)),
                Err(Unread::Bad(error)) => return Err(error),
            }
        }
    }

    fn take(&mut self, args: Vec<Vec<u8>>, at: u64) -> Result<(), NotRun> {
        let is = |name: &str| args[0].eq_ignore_ascii_case(name.as_bytes());
        match &mut self.queue {
            None if is("multi") => self.queue = Some((at, Vec::new())),
            Some(_) if is("multi") => return refuse("MULTI in MULTI"),
            None if is("exec") => return refuse("EXEC without MULTI"),
            Some((_, queue)) if is("exec") => {
                for args in std::mem::take(queue) {
                    self.apply(&args)?;
                }
                self.queue = None;
            }
            Some((_, queue)) => {
                let bytes = args.iter().map(|arg| arg.len() + size_of::<Vec<u8>>()).sum();
                let _claim = memory::claim(bytes).map_err(Error::OutOfMemory)?;
                queue.push(args);
            }
            None => self.apply(&args)?,
        }
        Ok(())
    }

    fn apply(&mut self, args: &[Vec<u8>]) -> Result<(), NotRun> {
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        let command = table::of_request(&args).map_err(NotRun::Text)?;
        if !command.takes(args.len()) {
            return refuse(&errors::wrong_arity(command.name));
        }
        let has = |word: &str| args[2..].iter().any(|arg| arg.eq_ignore_ascii_case(word.as_bytes()));
        match command.name {
            "select" => match number::database(args[1]) {
                Some(db) => self.db = db,
                None => return refuse("there is no such database"),
            },
            "function|load" => {
                let policy = if args.len() > 3 { Policy::Replace } else { Policy::New };
                self.libraries.add(args[args.len() - 1], policy).map_err(NotRun::Text)?;
            }
            "function|delete" => self.libraries.remove(&String::from_utf8_lossy(args[2])),
            "function|flush" => self.libraries.clear(),
            "function|restore" => {
                if has("flush") {
                    self.libraries.clear();
                }
                let policy = if has("replace") { Policy::Replace } else { Policy::Append };
                for code in restore_libraries(args[2]).map_err(|text| NotRun::Text(text.to_owned()))? {
                    self.libraries.add(&code, policy).map_err(NotRun::Text)?;
                }
            }
            _ => self.change(command, &args)?,
        }
        Ok(())
    }

    /// Runs a command that changes keys.
    fn change(&mut self, command: &'static Command, args: &[&[u8]]) -> Result<(), NotRun> {
        let keys = command.keys_of(self.db, args);
        let locks = keys.as_deref().map_or(KeySet::All, KeySet::Keys);
        let several = keys.as_ref().is_none_or(|keys| keys.len() > 1);
        if matches!(functions::of(command), Run::Grow(_)) {
            // It may use keys that the staged transaction has not.
            return refuse(NO_PLACE);
        }
        let (db, shared, reply) = (self.db, self.shared, &mut self.reply);
        let run = |txn: &mut KeyTransaction<'_>| run_alone(shared, txn, Alone { command, args, db }, reply);
        if self.staging.write::<Ran, Error>(locks, several, run)? == Ran::NotServed {
            return refuse(NO_PLACE);
        }
        match self.reply.strip_prefix(b"-") {
            Some(text) => refuse(String::from_utf8_lossy(text).trim_end()),
            None => Ok(()),
        }
    }
}

/// Why a command was not run.
enum NotRun {
    Text(String),
    Engine(Error),
}

fn refuse<T>(text: &str) -> Result<T, NotRun> {
    Err(NotRun::Text(text.to_owned()))
}

impl From<Error> for NotRun {
    fn from(error: Error) -> NotRun {
        match error {
            Error::TooLarge { .. } | Error::Invalid(_) => NotRun::Text(error.to_string()),
            error => NotRun::Engine(error),
        }
    }
}
