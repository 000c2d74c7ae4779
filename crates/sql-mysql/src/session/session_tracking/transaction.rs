//! session_track_transaction_info: the transaction state in eight characters, and the statements that begin an equal
//! transaction.
//!
//! Only changes since the last report are sent, except that each begin and end sends the characteristics again. Reads
//! and writes count only inside a transaction; with autocommit off the first of them begins one.

use engine::rows::Isolation;

use crate::session::session_tracking::{Change, level_words, nth_or_named};
use crate::value::Value;

/// The transaction was begun by a statement, or implicitly by the first table access.
const EXPLICIT: u16 = 1;
const IMPLICIT: u16 = 2;
pub const READ: u16 = 4;
/// Reads of non-transactional tables: those of performance_schema.
pub const READ_UNSAFE: u16 = 8;
pub const WRITE: u16 = 16;
/// A statement that may have other results on another server.
pub const UNSAFE: u16 = 32;
pub const RESULT: u16 = 64;
const SNAPSHOT: u16 = 128;
pub const LOCKED: u16 = 256;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Info {
    #[default]
    Off,
    State,
    Characteristics,
}

const NAMES: [&str; 3] = ["OFF", "STATE", "CHARACTERISTICS"];

impl Info {
    pub fn named(value: &Value) -> Option<Info> {
        nth_or_named(&NAMES, value).map(|at| [Info::Off, Info::State, Info::Characteristics][at])
    }

    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }
}

#[derive(Debug, Default)]
pub struct Transactions {
    info: Info,
    now: u16,
    told: u16,
    /// Characteristics of the next or current transaction that differ from the session's.
    isolation: Option<Isolation>,
    read_only: Option<bool>,
    state_changed: bool,
    characteristics_changed: bool,
    /// A change has not been reported yet.
    pub is_changed: bool,
    /// The current statement's text is unsafe.
    pub unsafe_text: bool,
}

impl Transactions {
    #[inline]
    pub fn is_on(&self) -> bool {
        self.info != Info::Off
    }

    /// Applies the variable, starting from a known state.
    pub fn report(&mut self, info: Info, (isolation, read_only): (Option<Isolation>, Option<bool>)) {
        let was_on = self.is_on();
        self.info = info;
        if info == Info::Off {
            return;
        }
        if !was_on {
            *self = Transactions { info, isolation, read_only, state_changed: true, ..Transactions::default() };
        }
        self.characteristics_changed |= info == Info::Characteristics;
        self.is_changed = true;
    }

    fn compare(&mut self) {
        self.state_changed = self.now != self.told;
        self.is_changed |= self.state_changed || self.characteristics_changed;
    }

    pub fn begin(&mut self, snapshot: bool) {
        if self.is_on() {
            self.characteristics_changed = true;
            self.now = EXPLICIT | if snapshot { SNAPSHOT } else { 0 };
            self.compare();
        }
    }

    pub fn end(&mut self) {
        if self.is_on() && self.now != 0 {
            self.characteristics_changed |= self.now & EXPLICIT != 0;
            self.now &= LOCKED;
            self.compare();
        }
    }

    pub fn add(&mut self, deed: u16, autocommit: bool) {
        if self.now & (EXPLICIT | IMPLICIT) == 0 && !autocommit && deed & (READ | READ_UNSAFE | WRITE) != 0 {
            self.now |= IMPLICIT;
        }
        if self.now & (EXPLICIT | IMPLICIT) != 0 || deed & LOCKED != 0 {
            self.now |= deed;
        }
        self.compare();
    }

    pub fn clear(&mut self, deed: u16) {
        if self.is_on() {
            self.now &= !deed;
            self.compare();
        }
    }

    pub fn next(&mut self, isolation: Option<Isolation>, read_only: Option<bool>) {
        if self.is_on() && (self.isolation, self.read_only) != (isolation, read_only) {
            (self.isolation, self.read_only) = (isolation, read_only);
            self.characteristics_changed = true;
            self.is_changed = true;
        }
    }

    pub fn take(&mut self, changes: &mut Vec<Change>) {
        if !std::mem::take(&mut self.is_changed) {
            return;
        }
        if std::mem::take(&mut self.state_changed) {
            changes.push(Change::Transaction(self.letters()));
        }
        if std::mem::take(&mut self.characteristics_changed) && self.info == Info::Characteristics {
            changes.push(Change::Characteristics(self.statements()));
        }
        self.told = self.now;
    }

    fn letters(&self) -> [u8; 8] {
        let letter = |effects: u16, letter: u8| if self.now & effects != 0 { letter } else { b'_' };
        let kind = if self.now & EXPLICIT != 0 { b'T' } else { letter(IMPLICIT, b'I') };
        // The fourth position is for writes to non-transactional tables, which do not exist.
        [
            kind,
            letter(READ_UNSAFE, b'r'),
            letter(READ | SNAPSHOT, b'R'),
            b'_',
            letter(WRITE, b'W'),
            letter(UNSAFE, b's'),
            letter(RESULT, b'S'),
            letter(LOCKED, b'L'),
        ]
    }

    /// Returns the statements that begin such a transaction, or the empty string.
    fn statements(&self) -> String {
        let mut all = Vec::new();
        if let Some(level) = self.isolation {
            all.push(format!("SET TRANSACTION ISOLATION LEVEL {}", level_words(level)));
        }
        let access = self.read_only.map(|read_only| if read_only { "READ ONLY" } else { "READ WRITE" });
        if self.now & EXPLICIT != 0 {
            let snapshot = (self.now & SNAPSHOT != 0).then_some("WITH CONSISTENT SNAPSHOT");
            let options: Vec<&str> = snapshot.into_iter().chain(access).collect();
            all.push(format!("START TRANSACTION {}", options.join(", ")).trim_end().to_owned());
        } else if let Some(access) = access {
            all.push(format!("SET TRANSACTION {access}"));
        }
        let mut text = all.join("; ");
        if !text.is_empty() {
            text.push(';');
        }
        text
    }
}
