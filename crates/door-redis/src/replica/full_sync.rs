//! A full synchronisation: the file of the other server, read as it comes into staged databases, which replace everything as the last step.
//!
//! Until then the old data is served, and a file that is bad at its end changes nothing (DR-12). The databases, the libraries of functions and the note are
//! replaced by one transaction (DR-18).

use std::io::Read;
use std::time::Duration;

use engine::{DocumentChanges, Error, Lsn, Replace, Staging};
use rdb::FileEvent;

use crate::import::library_list::LibraryList;
use crate::import::loader::Loader;
use crate::import::outcome::ImportError;
use crate::replica::link::{Break, Duty, Link};
use crate::replica::note::{Note, StreamPosition};
use crate::scripts::libraries::{KIND, LibrarySet, Policy};

/// How long a transaction waits whose keys a script or a transaction of SQL holds.
pub const HELD: Duration = Duration::from_millis(10);
/// Bytes of the mark behind a file whose length is not known in front.
const MARK: usize = 40;

/// Reads the file and replaces everything by it. Returns where the stream of commands begins, and the LSN at which it is durable.
pub fn receive(link: &mut Link<'_>, id: String, offset: u64) -> Result<(StreamPosition, Lsn), Break> {
    let form = read_form(link)?;
    {
        let mut facts = link.following.facts.lock();
        (facts.sync_total, facts.sync_read) = (form.length(), 0);
    }
    link.duty = Duty::EmptyLine;
    let keyspace = link.shared.keyspace.clone();
    let staging = keyspace.stage_following(link.following.writer).map_err(of_engine)?;
    let (mut libraries, mut db) = (LibraryList::default(), 0);
    load(link, &form, &staging, &mut libraries, &mut db)?;
    let progress = StreamPosition { id, offset, db };
    let lsn = replace(link, staging, &libraries, &progress)?;
    link.duty = Duty::None;
    Ok((progress, lsn))
}

/// How the end of the file is known.
enum Form {
    Length(u64),
    Mark([u8; MARK]),
}

impl Form {
    fn length(&self) -> Option<u64> {
        match self {
            Form::Length(length) => Some(*length),
            Form::Mark(_) => None,
        }
    }
}

fn read_form(link: &mut Link<'_>) -> Result<Form, Break> {
    // The other server writes its file first, and sends empty lines meanwhile.
    let line = link.answer()?;
    let form = match line.strip_prefix("$EOF:") {
        Some(mark) => mark.as_bytes().try_into().ok().map(Form::Mark),
        None => line.strip_prefix('$').and_then(|length| length.parse().ok()).map(Form::Length),
    };
    form.ok_or_else(|| Break::Lost(format!("instead of a file came '{}'", line.escape_debug())))
}

/// The file, whose bytes are counted for INFO.
struct SyncFile<'c, 'l> {
    link: &'c mut Link<'l>,
    left: u64,
    read: u64,
}

impl Read for SyncFile<'_, '_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let most = out.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let before = self.link.input().len();
        let count = self.link.read(&mut out[..most])?;
        (self.left, self.read) = (self.left - count as u64, self.read + count as u64);
        if before == 0 {
            // It has received.
            self.link.following.facts.lock().sync_read = self.read;
        }
        Ok(count)
    }
}

/// Reads the file into staged databases.
fn load(
    link: &mut Link<'_>,
    form: &Form,
    staging: &Staging<'_>,
    libraries: &mut LibraryList,
    db: &mut u8,
) -> Result<(), Break> {
    let shared = link.shared;
    let mut loader = Loader::new(shared, staging, Replace::All).keep_expired();
    let mut file = SyncFile { link, left: form.length().unwrap_or(u64::MAX), read: 0 };
    let read = rdb::read_file(&mut file, &mut |event, at| {
        if let FileEvent::Fact(b"repl-stream-db", number) = &event {
            // The stream begins in this database, unless it says otherwise.
            *db = std::str::from_utf8(number).ok().and_then(|text| text.parse().ok()).unwrap_or(u8::MAX);
        }
        loader.take(event, at, libraries, &mut |_| ())
    });
    let left = file.left;
    let loaded = read.and_then(|()| loader.end());
    if let Some(broken) = link.broken.take() {
        return Err(broken);
    }
    loaded.map_err(of_import)?;
    match form {
        Form::Length(_) if left > 0 => Err(Break::Refused("there are bytes behind the end of the file".into())),
        Form::Length(_) => Ok(()),
        Form::Mark(mark) => {
            let mut end = [0; MARK];
            if link.read_exact(&mut end).is_err() {
                return Err(link.broken.take().unwrap_or(Break::Ended));
            }
            if end == *mark { Ok(()) } else { Err(Break::Refused("the file does not end with its mark".into())) }
        }
    }
}

/// Replaces everything by what was read.
fn replace(
    link: &mut Link<'_>,
    staging: Staging<'_>,
    codes: &LibraryList,
    progress: &StreamPosition,
) -> Result<Lsn, Break> {
    let (shared, following) = (link.shared, link.following);
    let libraries = &shared.libraries;
    let _changing = libraries.changing.lock();
    let (old, empty) = (libraries.get(), LibrarySet::default());
    let (set, _) = libraries.with(shared, empty, &codes.codes(), Policy::Append).map_err(Break::Refused)?;
    let note = Note { host: following.host.clone(), port: following.port, progress: Some(progress.clone()) };
    let documents = DocumentChanges { kind: KIND, changes: set.changes_of(&old) };
    let lsn = loop {
        match staging.replace_all(following.writer, &note.encode(), &documents) {
            // A script or a transaction of SQL holds keys.
            Err(Error::Busy(_) | Error::LockTimeout) => {
                link.work()?;
                following.pause(HELD);
            }
            other => break other.map_err(of_engine)?,
        }
    };
    drop(documents);
    drop(staging);
    libraries.show(set, lsn);
    Ok(lsn)
}

fn of_import(error: ImportError) -> Break {
    match error {
        ImportError::Engine(error) => of_engine(error),
        ImportError::File(text) | ImportError::Conflict(text) => Break::Refused(format!("its file is refused: {text}")),
    }
}

/// Returns what an error of the engine means for the link.
pub fn of_engine(error: Error) -> Break {
    match error {
        Error::Following | Error::ShuttingDown => Break::Ended,
        error @ (Error::Corrupt { .. } | Error::TooLarge { .. } | Error::Misuse(_)) => {
            Break::Refused(error.to_string())
        }
        error => Break::Lost(error.to_string()),
    }
}
