//! One transfer after the other, by threads of their own: keys are locked, sent, answered and deleted.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use engine::rows::{Isolation, Transaction};
use engine::{Entry, Error, KeySet, KeyTransaction, Lsn};
use stdx::sync::atomic::Ordering;

use crate::commands::dump::payload::{Dumped, Payload};
use crate::commands::dump::{TOO_LONG, write_value};
use crate::errors;
use crate::migrations::Migration;
use crate::migrations::transfer::{Transfer, TransferFault};
use crate::reply::bulk_header;
use crate::saves::SaveReply;
use crate::shared::Shared;
use crate::spool::Spool;

/// Transfers that run at a time.
const RUNNING_MAX: usize = 16;
/// Keys that are sent before the first answer is read. The answers to so many fit into a socket's buffer.
const UNANSWERED_MAX: usize = 64;
/// How long the disk is waited for before the end of the server is looked at.
const STEP: Duration = Duration::from_millis(100);

/// Why keys were not moved.
enum NotMoved {
    Engine(Error),
    Fault(TransferFault),
    Reply(String),
}

impl From<Error> for NotMoved {
    fn from(error: Error) -> NotMoved {
        NotMoved::Engine(error)
    }
}

impl From<TransferFault> for NotMoved {
    fn from(fault: TransferFault) -> NotMoved {
        NotMoved::Fault(fault)
    }
}

impl NotMoved {
    fn text(&self) -> String {
        match self {
            NotMoved::Engine(error) => errors::of_engine(error),
            NotMoved::Fault(fault) => fault.text().to_owned(),
            NotMoved::Reply(text) => text.clone(),
        }
    }

    /// An error of the engine in the middle of a request leaves a connection that cannot be used further.
    fn amid_request(self) -> NotMoved {
        match self {
            NotMoved::Engine(_) => NotMoved::Fault(TransferFault::Writing),
            other => other,
        }
    }

    fn of_target(line: &[u8]) -> NotMoved {
        let shown = String::from_utf8_lossy(line.strip_prefix(b"-").unwrap_or(line)).into_owned();
        NotMoved::Reply(format!("ERR Target instance replied with error: {shown}"))
    }
}

impl Shared {
    /// Begins to move keys, or puts the request in line. The reply comes into its slot. Returns the error reply if there is no thread for it.
    pub(crate) fn migrate(self: &Arc<Shared>, migration: Migration) -> Result<(), String> {
        let mut line = self.migrations.line.lock();
        if self.migrations.is_ending.load(Ordering::Acquire) {
            return Err(errors::of_engine(&Error::ShuttingDown));
        }
        line.waiting.push_back(migration);
        if line.running >= RUNNING_MAX {
            return Ok(());
        }
        let shared = self.clone();
        match std::thread::Builder::new().name("migrate".into()).spawn(move || shared.run_migrations()) {
            Ok(_) => line.running += 1,
            // One that runs takes it.
            Err(_) if line.running > 0 => {}
            Err(error) => {
                line.waiting.pop_back();
                return Err(format!("ERR no thread for MIGRATE: {error}"));
            }
        }
        Ok(())
    }

    /// Gives up all transfers, because the server stops. Keys that were not answered stay here.
    pub(crate) fn end_migrations(&self) {
        let migrations = &self.migrations;
        migrations.is_ending.store(true, Ordering::Release);
        self.engine.rows().wake_waiters();
        let mut line = migrations.line.lock();
        line.waiting.clear();
        while line.running > 0 {
            line = migrations.ended.wait(line);
        }
    }

    /// Moves keys until nobody is in line.
    fn run_migrations(self: Arc<Shared>) {
        loop {
            let next = {
                let mut line = self.migrations.line.lock();
                let next = line.waiting.pop_front();
                if next.is_none() {
                    line.running -= 1;
                    self.migrations.ended.notify_all();
                }
                next
            };
            let Some(migration) = next else { return };
            if migration.slot.is_abandoned() {
                continue;
            }
            let answer = match Move::run(&self, &migration) {
                Ok((text, lsn)) => SaveReply::Done(text, lsn),
                Err(not_moved) => SaveReply::Failed(not_moved.text()),
            };
            migration.slot.answer(answer);
        }
    }
}

/// A payload. Its pieces but the last are in an unnamed file, so memory does not limit its length (DR-27).
struct SpooledPayload {
    spool: Option<Spool>,
    last_piece: Vec<u8>,
    length: usize,
}

impl SpooledPayload {
    /// Writes a value. Returns None if no client could send it back.
    fn of(
        txn: &mut KeyTransaction<'_>,
        (db, key): (u8, &[u8]),
        entry: &Entry,
        shared: &Shared,
    ) -> Result<Option<SpooledPayload>, Error> {
        let (folder, is_ending) = (shared.engine.pager().folder(), &shared.migrations.is_ending);
        let mut spool: Option<Spool> = None;
        let mut sink = |piece: &[u8]| {
            if is_ending.load(Ordering::Relaxed) {
                return Err(Error::ShuttingDown);
            }
            let file = match &mut spool {
                Some(file) => file,
                None => spool.insert(Spool::create(folder)?),
            };
            file.put(piece)
        };
        let mut out = Payload::in_pieces(&mut sink);
        if matches!(write_value(txn, (db, key), entry, &mut out)?, Dumped::TooLong) {
            return Ok(None);
        }
        let (last_piece, length) = out.last_piece();
        if let Some(file) = &mut spool {
            file.end()?;
        }
        Ok(Some(SpooledPayload { spool, last_piece, length }))
    }
}

/// A transfer under way.
struct Move<'m> {
    shared: &'m Shared,
    migration: &'m Migration,
    transfer: Transfer<'m>,
    /// Keys that were sent, in order, and not answered yet.
    unanswered: VecDeque<&'m [u8]>,
    moved: Vec<&'m [u8]>,
    /// The first error that the other server has answered.
    refusal: Option<NotMoved>,
}

impl<'m> Move<'m> {
    /// Moves the keys. Returns the reply, and the LSN at which it holds.
    fn run(shared: &'m Shared, migration: &'m Migration) -> Result<(&'static str, Lsn), NotMoved> {
        let is_ending = shared.migrations.is_ending.clone();
        let mut txn = shared.engine.rows().begin(Isolation::ReadCommitted);
        txn.set_cancel(Arc::new(move || is_ending.load(Ordering::Relaxed)));
        let present = lock_all(&mut txn, migration)?;
        if present.is_empty() {
            return Ok(("NOKEY", 0));
        }
        let address = (migration.host.as_str(), migration.port);
        let transfer = Transfer::connect(address, migration.timeout, &shared.migrations.is_ending)?;
        let (unanswered, moved) = (VecDeque::new(), Vec::new());
        let mut run = Move { shared, migration, transfer, unanswered, moved, refusal: None };
        run.introduce()?;
        // An error leaves those that were answered before moved.
        let sent = run.send_all(&present);
        let lsn = run.end(txn)?;
        match (run.refusal, sent) {
            (Some(refusal), _) => Err(refusal),
            (None, Err(error)) => Err(error),
            (None, Ok(())) => Ok(("OK", lsn)),
        }
    }

    /// Logs in, and selects the database. Nothing is sent to a server that refuses that.
    fn introduce(&mut self) -> Result<(), NotMoved> {
        let to_db = self.migration.to_db.to_string();
        let login: Vec<&[u8]> =
            [&b"AUTH"[..]].into_iter().chain(self.migration.login.iter().map(Vec::as_slice)).collect();
        let select: [&[u8]; 2] = [b"SELECT", to_db.as_bytes()];
        for words in [(login.len() > 1).then_some(login.as_slice()), Some(&select)].into_iter().flatten() {
            let line = self.transfer.ask(words)?;
            if !line.starts_with(b"+") {
                return Err(NotMoved::of_target(&line));
            }
        }
        Ok(())
    }

    fn send_all(&mut self, present: &HashSet<&[u8]>) -> Result<(), NotMoved> {
        let sent = self.migration.keys.iter().filter(|key| present.contains(key.as_slice())).try_for_each(|key| {
            self.send(key)?;
            if self.unanswered.len() >= UNANSWERED_MAX { self.hear() } else { Ok(()) }
        });
        // A key that cannot be sent does not keep those that were.
        while !matches!(sent, Err(NotMoved::Fault(_))) && !self.unanswered.is_empty() {
            self.hear()?;
        }
        sent
    }

    /// Sends a key, unless it has expired meanwhile.
    fn send(&mut self, key: &'m [u8]) -> Result<(), NotMoved> {
        let (shared, db) = (self.shared, self.migration.db);
        let (dumped, lsn) = shared.keyspace.read(KeySet::Keys(&[(db, key)]), |txn| {
            let Some(entry) = txn.peek(db, key)? else { return Ok::<_, Error>(None) };
            let payload = SpooledPayload::of(txn, (db, key), &entry, shared)?;
            let ttl = entry.expire_at_ms.map_or(0, |at_ms| at_ms.saturating_sub(txn.now_ms()).max(1));
            Ok(Some((payload, ttl)))
        })?;
        let Some((payload, ttl)) = dumped else { return Ok(()) };
        let Some(mut payload) = payload else { return Err(NotMoved::Reply(TOO_LONG.to_owned())) };
        self.wait_durable(lsn)?;
        let name: &[u8] = if shared.is_cluster { b"RESTORE-ASKING" } else { b"RESTORE" };
        let mut head = Vec::new();
        head.extend_from_slice(if self.migration.replaces { b"*5\r\n" } else { b"*4\r\n" });
        for word in [name, key, ttl.to_string().as_bytes()] {
            bulk_header(&mut head, word.len());
            head.extend_from_slice(word);
            head.extend_from_slice(b"\r\n");
        }
        bulk_header(&mut head, payload.length);
        self.unanswered.push_back(key);
        self.transfer.put(&head)?;
        if let Some(spool) = &mut payload.spool {
            spool
                .replay(&mut |piece| self.transfer.put(piece).map_err(NotMoved::from))
                .map_err(NotMoved::amid_request)?;
        }
        self.transfer.put(&payload.last_piece)?;
        self.transfer.put(if self.migration.replaces { b"\r\n$7\r\nREPLACE\r\n" } else { b"\r\n" })?;
        Ok(())
    }

    /// The other server must not have what a crash takes from this one.
    fn wait_durable(&self, lsn: Lsn) -> Result<(), NotMoved> {
        while self.shared.strict.load(Ordering::Relaxed) && !self.shared.engine.durable().wait_timeout(lsn, STEP) {
            if self.shared.migrations.is_ending.load(Ordering::Relaxed) {
                return Err(Error::ShuttingDown.into());
            }
        }
        Ok(())
    }

    /// Reads the answer to the key that was sent first.
    fn hear(&mut self) -> Result<(), NotMoved> {
        let line = self.transfer.answer()?;
        let Some(key) = self.unanswered.pop_front() else { return Ok(()) };
        // A server that answers anything else does not speak Redis' protocol.
        if line.starts_with(b"+OK") {
            self.moved.push(key);
        } else {
            self.refusal.get_or_insert_with(|| NotMoved::of_target(&line));
        }
        Ok(())
    }

    /// Deletes the keys that have arrived.
    fn end(&mut self, mut txn: Transaction) -> Result<Lsn, NotMoved> {
        if self.migration.keeps || self.moved.is_empty() {
            txn.rollback();
            return Ok(0);
        }
        for key in &self.moved {
            txn.delete_any_key(self.migration.db, key)?;
        }
        Ok(txn.commit()?)
    }
}

/// Locks the keys in one order for all, so that two transfers do not wait for each other. Returns those that exist.
fn lock_all<'m>(txn: &mut Transaction, migration: &'m Migration) -> Result<HashSet<&'m [u8]>, Error> {
    let mut keys: Vec<&[u8]> = migration.keys.iter().map(Vec::as_slice).collect();
    keys.sort_unstable();
    keys.dedup();
    let mut present = HashSet::new();
    for key in keys {
        if txn.lock_any_key(migration.db, key)? {
            present.insert(key);
        }
    }
    Ok(present)
}
