//! The stream of commands behind a synchronisation: cut into commands, gathered into batches, applied, acknowledged.
//!
//! A batch ends where no transaction of the other server is open and no whole command is left in the buffer, or when it is large. Commands are copied out of the
//! buffer, so that a transaction may be longer than it.

use std::time::Duration;

use engine::Lsn;
use stdx::memory::{self, Claim};

use crate::number;
use crate::parser::{Limits, Parsed, Parser, Request};
use crate::replica::apply::apply;
use crate::replica::link::{Break, CHUNK, Duty, Link};
use crate::replica::note::StreamPosition;
use crate::replica::received::{Received, name_of};
use crate::table;

/// Most commands and bytes that are gathered, except within a transaction of the other server.
const BATCH_COMMANDS: usize = 256;
const BATCH_BYTES: usize = 1 << 20;
/// Most bytes of a command.
const COMMAND_MAX: usize = 1 << 30;
/// How long the disk is waited for before something else is looked at.
const WAIT: Duration = Duration::from_millis(100);

pub struct Stream {
    parser: Parser,
    progress: StreamPosition,
    /// Commands that were received and not applied.
    batch: Vec<Received>,
    bytes: usize,
    /// MULTI has come, and not yet EXEC.
    in_multi: bool,
    /// The offset and the database behind all that was received.
    received: u64,
    db: u8,
    /// Durable from this LSN on.
    lsn: Lsn,
}

impl Stream {
    pub fn new(progress: StreamPosition, lsn: Lsn) -> Stream {
        let (received, db) = (progress.offset, progress.db);
        Stream { parser: Parser::new(), progress, batch: Vec::new(), bytes: 0, in_multi: false, received, db, lsn }
    }

    /// Applies commands until the link breaks.
    pub fn follow(&mut self, link: &mut Link<'_>) -> Result<(), Break> {
        self.acknowledge(link)?;
        loop {
            let missing = self.take_commands(link)?;
            self.flush(link)?;
            // A length that lies costs no more memory than was received, and one step.
            link.fill(missing)?;
        }
    }

    /// Returns what was applied.
    pub fn into_progress(self) -> StreamPosition {
        self.progress
    }

    /// Takes all whole commands out of the buffer. Returns how many bytes the one behind them lacks at least.
    fn take_commands(&mut self, link: &mut Link<'_>) -> Result<usize, Break> {
        let limits = Limits { bulk_max: rdb::STRING_MAX as i64, request_max: COMMAND_MAX, restricted: false };
        loop {
            match self.parser.next(link.input(), &limits) {
                Parsed::Request(request) => {
                    let _claim = claim(request.end)?;
                    let args = self.args(link.input(), &request);
                    self.take_bytes(link, request.end);
                    if !self.in_multi && is_getack(&args) {
                        self.answer_getack(link)?;
                    } else {
                        // What came before a refused command is applied.
                        let taken = self.take(args);
                        if taken.is_err() {
                            self.flush(link)?;
                        }
                        taken?;
                    }
                    if self.batch.len() >= BATCH_COMMANDS || self.bytes >= BATCH_BYTES {
                        self.flush(link)?;
                    }
                }
                Parsed::Partial { needed } => {
                    // Blank lines may be in front of it.
                    self.take_bytes(link, self.parser.start());
                    let there = link.input().len();
                    link.following.facts.lock().read_offset = self.received + there as u64;
                    let missing = needed.saturating_sub(there).clamp(CHUNK, BATCH_BYTES);
                    // The buffer moves when it grows.
                    let _claim = claim(there + missing)?;
                    return Ok(missing);
                }
                Parsed::Invalid(error) => {
                    let mut text = Vec::new();
                    error.reply(&mut text);
                    let text = String::from_utf8_lossy(&text).trim_start_matches('-').trim_end().to_owned();
                    return Err(Break::Lost(format!("its stream is broken behind offset {}: {text}", self.received)));
                }
            }
        }
    }

    fn take_bytes(&mut self, link: &mut Link<'_>, bytes: usize) {
        link.consume(bytes);
        self.parser.consumed(bytes);
        self.received += bytes as u64;
    }

    /// Answers REPLCONF GETACK with the offset before it, once all of that is on disk.
    fn answer_getack(&mut self, link: &mut Link<'_>) -> Result<(), Break> {
        self.flush(link)?;
        self.acknowledge(link)?;
        self.pass(link, self.received);
        Ok(())
    }

    fn args(&self, input: &[u8], request: &Request) -> Vec<Vec<u8>> {
        let base = if request.inline { self.parser.line() } else { &input[request.start..] };
        let spans = self.parser.spans(request);
        spans.iter().map(|span| base[span.start as usize..(span.start + span.len) as usize].to_vec()).collect()
    }

    /// Adds a command to the batch.
    fn take(&mut self, args: Vec<Vec<u8>>) -> Result<(), Break> {
        let shown: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        let is = |name: &str| shown[0].eq_ignore_ascii_case(name.as_bytes());
        let refuse =
            |what: &str| Err(Break::Refused(format!("'{}' at offset {}: {what}", name_of(&args), self.received)));
        if is("multi") {
            if self.in_multi {
                return refuse("a transaction in a transaction");
            }
            self.in_multi = true;
        } else if is("exec") {
            if !self.in_multi {
                return refuse("there is no transaction");
            }
            self.in_multi = false;
        } else if is("select") {
            match shown.get(1).and_then(|text| number::database(text)) {
                Some(db) => self.db = db,
                None => return refuse("there is no such database"),
            }
        }
        let command = table::of_request(&shown).ok().filter(|command| command.takes(shown.len()));
        self.bytes += args.iter().map(|arg| arg.len() + size_of::<Vec<u8>>()).sum::<usize>() + size_of::<Received>();
        let (db, end, ends_unit) = (self.db, self.received, !self.in_multi);
        self.batch.push(Received { args, db, command, end, ends_unit });
        Ok(())
    }

    /// Applies the commands that are in no open transaction.
    fn flush(&mut self, link: &mut Link<'_>) -> Result<(), Break> {
        let count = self.batch.iter().rposition(|command| command.ends_unit).map_or(0, |last| last + 1);
        if count == 0 {
            return Ok(());
        }
        let rest = self.batch.split_off(count);
        let batch = std::mem::replace(&mut self.batch, rest);
        if self.batch.is_empty() {
            self.bytes = 0;
        }
        let applied = apply(link, &batch, &mut self.progress, self.lsn);
        self.lsn = *applied.as_ref().unwrap_or(&self.lsn);
        self.pass(link, self.progress.offset);
        applied?;
        link.work()
    }

    /// Moves the offset, also over commands that change nothing.
    fn pass(&mut self, link: &mut Link<'_>, offset: u64) {
        self.progress.offset = offset;
        link.following.facts.lock().offset = offset;
        link.duty = Duty::Ack { offset, lsn: self.lsn };
    }

    /// Acknowledges at once all that was applied, when it is on disk.
    fn acknowledge(&mut self, link: &mut Link<'_>) -> Result<(), Break> {
        self.pass(link, self.progress.offset);
        let durable = link.shared.engine.durable();
        while !durable.wait_timeout(self.lsn, WAIT) {
            link.work()?;
        }
        link.acknowledge(self.progress.offset)
    }
}

fn claim(bytes: usize) -> Result<Claim, Break> {
    memory::claim(bytes).map_err(|full| Break::Lost(format!("out of memory: {full}")))
}

fn is_getack(args: &[Vec<u8>]) -> bool {
    matches!(args, [name, word, ..] if name.eq_ignore_ascii_case(b"replconf") && word.eq_ignore_ascii_case(b"getack"))
}
