//! The protocols of the load: how a request of a slot is written, and where its reply ends. One implementation for each, so that one loop drives them all at the same cost (BE-4).

use std::io;

use beluga_xrpc::frame::{self, answer, ask};
use beluga_xrpc::plan::{Read, Table, key, parameter};
use beluga_xrpc::{After, Form, Plan, Request, Statement};
use stdx::prng::Prng;

/// A complete reply, and whether it is the right one (BE-2).
pub struct Done {
    pub slot: u32,
    pub is_right: bool,
}

/// A protocol on one connection. A slot has one request in flight at a time.
pub trait Speech: Send {
    /// Appends the next request of the slot.
    fn ask(&mut self, slot: u32, out: &mut Vec<u8>);

    /// Takes whole answers off the front of `bytes`. Returns how many bytes they were; may append the protocol's own messages.
    fn take(&mut self, bytes: &[u8], done: &mut Vec<Done>, out: &mut Vec<u8>) -> io::Result<usize>;
}

fn odd(error: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

/// CapabilitiesGet, answered by a session in its order; a plain echo answers the same frames.
pub struct Echo {
    /// Whether the slot needs no message before its next request.
    has_begun: Vec<bool>,
    kind: EchoKind,
}

/// The number that the requests of an echo carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EchoKind {
    /// A session's number: the request passes that session's queue, and its reply the path of all replies.
    Session,
    /// A number that has no session: the receiving thread answers.
    Connection,
}

/// The length of the reply to CapabilitiesGet, the same for all servers of the comparison.
pub const ECHO_ANSWER_BYTES: usize = 24;

impl Echo {
    pub fn new(kind: EchoKind, slot_count: usize) -> Echo {
        Echo { has_begun: vec![kind == EchoKind::Connection; slot_count], kind }
    }
}

impl Speech for Echo {
    fn ask(&mut self, slot: u32, out: &mut Vec<u8>) {
        let sid = u64::from(slot) + FIRST_SID;
        if !std::mem::replace(&mut self.has_begun[slot as usize], true) {
            frame::put(out, sid, ask::SESSION_NEW, |_| ());
        }
        frame::put(out, sid, ask::CAPABILITIES_GET, |_| ());
    }

    fn take(&mut self, bytes: &[u8], done: &mut Vec<Done>, _: &mut Vec<u8>) -> io::Result<usize> {
        let mut used = 0;
        while let Some(frame) = frame::cut(&bytes[used..]).map_err(odd)? {
            used += frame.len_bytes();
            let slot = frame.sid.wrapping_sub(FIRST_SID);
            if slot >= self.has_begun.len() as u64 {
                return Err(odd("an answer for no session"));
            }
            match frame.kind {
                answer::OK if self.kind == EchoKind::Session => {}
                kind => {
                    let is_right = kind == answer::CAPABILITIES && frame.payload.len() == ECHO_ANSWER_BYTES;
                    done.push(Done { slot: slot as u32, is_right });
                }
            }
        }
        Ok(used)
    }
}

/// The data that a statement of the comparison reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Query {
    One,
    /// A column of 120 characters of one of this many rows.
    Point {
        rows: u64,
    },
}

pub const TABLE: &str = "item";
pub const DATABASE: &str = "xrpcbench";
pub const TEXT_BYTES: usize = 120;

impl Query {
    pub fn sql(self) -> String {
        match self {
            Query::One => "select 1".into(),
            Query::Point { .. } => format!("select c from {DATABASE}.{TABLE} where id = ?"),
        }
    }

    /// A key, from 1.
    pub fn key(self, random: &mut Prng) -> Option<u64> {
        match self {
            Query::One => None,
            Query::Point { rows } => Some(1 + random.below(rows)),
        }
    }
}

/// The form in which a statement is sent.
pub enum XrpcForm {
    Text(String),
    Digest(Statement),
    Plan(Plan),
}

impl XrpcForm {
    /// A get by the primary key, in a tree without a name or value of its own.
    pub fn plan() -> XrpcForm {
        let table = Table::named(TABLE).schema(DATABASE).index("PRIMARY");
        XrpcForm::Plan(Read::get(table, [key("id", parameter(0))]).columns(["c"]).plan())
    }
}

/// Statements in sessions of their own, one for each slot.
pub struct XrpcStatements {
    telling: XrpcForm,
    query: Query,
    random: Prng,
    slots: Vec<Slot>,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    has_begun: bool,
    /// Rows of the expected length.
    right_count: u32,
}

const FIRST_SID: u64 = 2;

impl XrpcStatements {
    pub fn new(telling: XrpcForm, query: Query, slot_count: usize, seed: u64) -> XrpcStatements {
        XrpcStatements { telling, query, random: Prng::new(seed), slots: vec![Slot::default(); slot_count] }
    }
}

impl Speech for XrpcStatements {
    fn ask(&mut self, slot: u32, out: &mut Vec<u8>) {
        let sid = u64::from(slot) + FIRST_SID;
        let state = &mut self.slots[slot as usize];
        // A session sends its statement's text once, as clients do that cannot know the server's digests.
        let form = if state.has_begun { Form::Digest } else { Form::Whole };
        if !state.has_begun {
            frame::put(out, sid, ask::SESSION_NEW, |_| ());
        }
        *state = Slot { has_begun: true, right_count: 0 };
        let key = self.query.key(&mut self.random).map(|key| [key.into()]);
        let request = match &self.telling {
            XrpcForm::Text(text) => Request::text(text.as_str()),
            XrpcForm::Digest(statement) => Request::statement(statement),
            XrpcForm::Plan(plan) => Request::plan(plan),
        };
        match &key {
            Some(key) => request.with(&key[..]).write(out, sid, form, After::Anything),
            None => request.write(out, sid, form, After::Anything),
        }
    }

    fn take(&mut self, bytes: &[u8], done: &mut Vec<Done>, _: &mut Vec<u8>) -> io::Result<usize> {
        let mut used = 0;
        while let Some(frame) = frame::cut(&bytes[used..]).map_err(odd)? {
            used += frame.len_bytes();
            let slot = frame.sid.wrapping_sub(FIRST_SID);
            let state = self.slots.get_mut(slot as usize).ok_or_else(|| odd("an answer for no session"))?;
            match frame.kind {
                answer::ROW => state.right_count += u32::from(is_right(self.query, frame.payload)),
                answer::EXECUTE_OK => done.push(Done { slot: slot as u32, is_right: state.right_count == 1 }),
                answer::ERROR => done.push(Done { slot: slot as u32, is_right: false }),
                _ => {}
            }
        }
        Ok(used)
    }
}

/// The bytes of a row with one field.
fn is_right(query: Query, row: &[u8]) -> bool {
    match query {
        Query::One => row == [0x0a, 1, 2],
        // The length, the text, a zero.
        Query::Point { .. } => row.len() == 2 + TEXT_BYTES + 1 && row[1] as usize == TEXT_BYTES + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer_of(sid: u64, row: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        frame::put(&mut out, sid, answer::ROW, |out| out.extend_from_slice(row));
        frame::put(&mut out, sid, answer::EXECUTE_OK, |_| ());
        out
    }

    #[test]
    fn an_answer_counts_only_if_it_is_what_was_asked_for() {
        let mut speech = XrpcStatements::new(XrpcForm::Text("select 1".into()), Query::One, 2, 1);
        let mut out = Vec::new();
        speech.ask(0, &mut out);
        speech.ask(1, &mut out);
        let bytes = [answer_of(3, &[0x0a, 1, 2]), answer_of(2, &[0x0a, 1, 4])].concat();
        let mut done = Vec::new();
        assert_eq!(speech.take(&bytes[..bytes.len() - 1], &mut done, &mut out).unwrap(), bytes.len() - 13);
        assert_eq!(speech.take(&bytes[bytes.len() - 13..], &mut done, &mut out).unwrap(), 13);
        let found: Vec<_> = done.iter().map(|done| (done.slot, done.is_right)).collect();
        assert_eq!(found, [(1, true), (0, false)]);
    }

    #[test]
    fn the_echo_of_a_session_begins_it_once_and_that_of_a_connection_never() {
        for (kind, session_frames) in [(EchoKind::Session, 1), (EchoKind::Connection, 0)] {
            let mut echo = Echo::new(kind, 2);
            let mut out = Vec::new();
            echo.ask(1, &mut out);
            echo.ask(1, &mut out);
            assert_eq!(out.len(), (2 + session_frames) * frame::HEAD_BYTES);
            let mut bytes = Vec::new();
            if kind == EchoKind::Session {
                frame::put(&mut bytes, 3, answer::OK, |_| ());
            }
            for (sid, kind) in [(3, answer::CAPABILITIES), (2, answer::CAPABILITIES), (3, answer::ERROR)] {
                frame::put(&mut bytes, sid, kind, |out| out.extend_from_slice(&[0; ECHO_ANSWER_BYTES]));
            }
            let mut done = Vec::new();
            assert_eq!(echo.take(&bytes, &mut done, &mut out).unwrap(), bytes.len());
            let found: Vec<_> = done.iter().map(|done| (done.slot, done.is_right)).collect();
            assert_eq!(found, [(1, true), (0, true), (1, false)]);
            bytes.clear();
            frame::put(&mut bytes, 4, answer::CAPABILITIES, |_| ());
            assert!(echo.take(&bytes, &mut done, &mut out).is_err());
        }
    }

    #[test]
    fn a_session_begins_once_and_says_its_statement_once() {
        let mut speech = XrpcStatements::new(XrpcForm::Digest(Statement::new("select 1")), Query::One, 1, 1);
        let mut lengths = Vec::new();
        for _ in 0..3 {
            let mut out = Vec::new();
            speech.ask(0, &mut out);
            lengths.push(out.len());
        }
        assert_eq!(lengths[1], lengths[2]);
        assert!(lengths[0] > lengths[1] + 13);
    }
}
