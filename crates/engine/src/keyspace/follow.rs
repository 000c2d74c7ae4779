//! Following another server: the keyspace has one writer, who applies what that server tells it, and everybody else only reads.
//!
//! ```text
//!   follow ──► record of the catalog, writer number 1, 2, ... ──► apply, apply, replace ... ──► end_follow: the record goes, everybody writes
//!                 └── a crash, a restart: the record is found, and the next writer continues from its note
//! ```
//! The note says how far the writer has come. It is stored by the transaction that has brought it there, so nothing is lost and nothing applied twice wherever
//! the WAL ends (EN-88). The hard part is the moment of the change: the number of the writer changes while all stripes are held and is compared under a stripe
//! before each change, so no transaction of the old time changes a key afterwards (EN-89).

use pager::Lsn;

use crate::catalog::Documents;
use crate::error::{Error, Result};
use crate::keyspace::key::{DATABASES, KeySet};
use crate::keyspace::key_events::event_class;
use crate::keyspace::key_txn::{KeyTransaction, Mode};
use crate::keyspace::staging::Staging;
use crate::keyspace::state::Keyspace;
use crate::keyspace::stripes::TxnStripes;
use crate::keyspace::writer_number::{EVERYBODY, FOLLOW_KEY, note};

/// Longest note.
const NOTE_MAX: usize = 1200;

/// The right to write a keyspace that follows another server. A later one ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowWriter(u64);

/// Changes of documents of one kind: their names and new texts.
pub struct DocumentChanges<'d> {
    pub kind: &'d str,
    pub changes: Vec<(&'d str, Option<&'d [u8]>)>,
}

impl KeyTransaction<'_> {
    /// Stores how far the writer has come, atomically with the changes of the transaction.
    pub fn put_note(&mut self, note: &[u8]) -> Result<()> {
        if note.len() > NOTE_MAX {
            return Err(Error::TooLarge { what: "note", limit: NOTE_MAX as u64 });
        }
        self.change_note(Some(note))
    }

    fn change_note(&mut self, note: Option<&[u8]>) -> Result<()> {
        self.must_write()?;
        self.begin()?;
        let catalog = &self.keyspace.store.catalog;
        let Some(txn) = &mut self.record_txn else { return Err(Error::Misuse("a note without a transaction")) };
        txn.change(catalog, FOLLOW_KEY, |_, pages| match note {
            Some(note) => pages.change.put(&[note]),
            None => pages.change.delete(),
        })?;
        Ok(())
    }

    /// Changes documents, atomically with the changes of the transaction. The caller keeps others from changing documents of this kind until its end.
    pub fn change_documents(&mut self, documents: &DocumentChanges<'_>) -> Result<()> {
        if documents.changes.is_empty() {
            return Ok(());
        }
        self.must_write()?;
        self.begin()?;
        let store = &self.keyspace.store;
        let Some(txn) = &mut self.record_txn else { return Err(Error::Misuse("documents without a transaction")) };
        Documents::write(store, txn, documents.kind, &documents.changes)
    }
}

impl Keyspace {
    /// Returns whether the keyspace follows another server.
    pub fn is_following(&self) -> bool {
        self.writer.is_following()
    }

    /// Returns the note of the last transaction of a writer, if the keyspace follows another server.
    pub fn follow_note(&self) -> Result<Option<Vec<u8>>> {
        note(&self.store)
    }

    /// Lets nobody but the new writer change keys from here on, and nothing expire. Returns the LSN at which that is durable.
    pub fn follow(&self, note: &[u8]) -> Result<(FollowWriter, Lsn)> {
        let mut txn = self.hold_all()?;
        let before = txn.writer;
        let put = txn.put_note(note);
        let writer = FollowWriter(self.writer.renew());
        let begun = txn.end_with(put);
        if begun.is_err() {
            self.writer.set(before);
        }
        begun.map(|((), lsn)| (writer, lsn))
    }

    /// Ends the following: everybody writes. Returns the LSN at which that is durable; 0 if nobody was followed.
    pub fn end_follow(&self) -> Result<Lsn> {
        if !self.is_following() {
            return Ok(0);
        }
        let mut txn = self.hold_all()?;
        let removed = txn.change_note(None);
        let ((), lsn) = txn.end_with::<(), Error>(removed)?;
        self.writer.set(EVERYBODY);
        self.wake();
        Ok(lsn)
    }

    /// Begins a transaction that holds all stripes, as the present writer. It changes no key, so it waits for no transaction of SQL that holds one.
    fn hold_all(&self) -> Result<KeyTransaction<'_>> {
        self.store.pager.admit()?;
        let stripes = TxnStripes::All(Vec::new());
        let mut txn = KeyTransaction::new_unless_busy(self, stripes, Mode::Writing, true, self.clock.wall_ms())?;
        txn.writer = self.writer.present();
        Ok(txn)
    }

    /// Runs a transaction of the writer, as `write_growing` does. No key has expired in it, because the other server says when one has.
    pub fn write_following<R, E: From<Error>>(
        &self,
        writer: FollowWriter,
        keys: Option<Vec<(u8, &[u8])>>,
        mut f: impl FnMut(&mut KeyTransaction<'_>) -> Result<R, E>,
    ) -> Result<(R, Lsn), E> {
        self.write_growing(keys, |txn| {
            (txn.writer, txn.now) = (writer.0, 0);
            f(txn)
        })
    }

    /// Creates staged databases for the writer.
    pub fn stage_following(&self, writer: FollowWriter) -> Result<Staging<'_>> {
        self.stage_as(writer.0)
    }
}

impl Staging<'_> {
    /// Replaces all databases by the staged ones, and with them documents and the note. Returns the LSN at which that is durable. After an
    /// error they are as they were.
    pub fn replace_all(&self, writer: FollowWriter, note: &[u8], documents: &DocumentChanges<'_>) -> Result<Lsn> {
        let dbs: Vec<u8> = (0..DATABASES).collect();
        let replace = |txn: &mut KeyTransaction<'_>| {
            txn.writer = writer.0;
            txn.put_note(note)?;
            txn.change_documents(documents)?;
            dbs.iter().for_each(|db| txn.notify(*db, b"", event_class::CONTENTS, "import"));
            txn.publish(&dbs)
        };
        Ok(self.keyspace().write::<(), Error>(KeySet::All, true, replace)?.1)
    }
}
