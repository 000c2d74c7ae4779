//! The run under way: its host, what is being asked of it, and whether the run has to end.
//!
//! Functions of a Lua state live as long as the state, while the host of a run (the session, its key transaction) lives as long as the run. So a run lends its host to the state as a function that expires with it (`mlua`'s scope), and
//! `Frame` carries a question to it and the answer back.

use std::cell::{Cell, RefCell};

use mlua::{Error, Function, Lua, Result};

use crate::raise::{raise_table, too_large};

/// A question of a running script.
#[derive(Debug)]
pub enum Question<'q> {
    /// Runs a command. Its reply is written in the version of the protocol that the script has asked for.
    Command(&'q [&'q [u8]]),
    /// Asks whether the user may run a command.
    MayRun(&'q [&'q [u8]]),
    Log(i64, &'q [u8]),
    /// Sets the version of the protocol of replies.
    Speak {
        resp3: bool,
    },
    /// Asks whether the run may go on. It comes after so many instructions.
    Pause,
}

#[derive(Debug)]
pub enum Answer {
    Done,
    Allowed(bool),
    /// The command has not run. The text has a code of its own if it begins with `-`.
    Refused(String),
    /// The run has to end with this error. Nothing in the script can catch it (RL-2).
    Stop(String),
}

/// The host of a run.
pub type Host<'h> = dyn FnMut(Question<'_>, &mut Vec<u8>) -> Answer + 'h;

#[derive(Clone, Copy, Debug, Default)]
enum Kind {
    #[default]
    Pause,
    Command,
    MayRun,
    Log(i64),
    Speak(bool),
}

#[derive(Default)]
pub struct Frame {
    host: RefCell<Option<Function>>,
    kind: Cell<Kind>,
    /// The arguments of the question, one behind the other, and where each ends.
    bytes: RefCell<Vec<u8>>,
    ends: RefCell<Vec<usize>>,
    pub reply: RefCell<Vec<u8>>,
    answer: RefCell<Option<Answer>>,
    /// The error with which the run ends.
    stop: RefCell<Option<String>>,
    /// Where the run was when it had to end.
    stopped_at: RefCell<Option<(String, i64)>>,
    /// Bytes that the state may take.
    pub bytes_max: Cell<usize>,
}

impl Frame {
    /// Begins a run.
    pub fn enter(&self, host: Function) {
        *self.host.borrow_mut() = Some(host);
        *self.stop.borrow_mut() = None;
        *self.stopped_at.borrow_mut() = None;
    }

    /// Notes where the run is, the first time that it has to end.
    pub fn note_place(&self, source: String, line: i64) {
        self.stopped_at.borrow_mut().get_or_insert((source, line));
    }

    /// Returns whether the run had to end.
    pub fn has_place(&self) -> bool {
        self.stopped_at.borrow().is_some()
    }

    pub fn place(&self) -> Option<(String, i64)> {
        self.stopped_at.borrow().clone()
    }

    /// Ends it. Returns the error that it had to end with.
    pub fn leave(&self) -> Option<String> {
        *self.host.borrow_mut() = None;
        self.stop.borrow_mut().take()
    }

    pub fn is_running(&self) -> bool {
        self.host.borrow().is_some()
    }

    /// Returns the error with which the run has to end.
    pub fn stop_text(&self) -> Option<String> {
        self.stop.borrow().clone()
    }

    pub fn is_stopping(&self) -> bool {
        self.stop.borrow().is_some()
    }

    /// Removes the arguments of the last question.
    pub fn clear(&self) {
        self.bytes.borrow_mut().clear();
        self.ends.borrow_mut().clear();
    }

    /// Adds an argument to the question.
    pub fn push(&self, bytes: &[u8]) {
        self.bytes.borrow_mut().extend_from_slice(bytes);
        self.ends.borrow_mut().push(self.bytes.borrow().len());
    }

    /// Puts a question to the host. Called by the function that a run lends to the state.
    pub fn put(&self, host: &mut Host<'_>) {
        let (bytes, ends) = (self.bytes.borrow(), self.ends.borrow());
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let mut words = starts.zip(ends.iter()).map(|(start, end)| &bytes[start..*end]);
        let answer = {
            let reply = &mut *self.reply.borrow_mut();
            reply.clear();
            match self.kind.get() {
                Kind::Pause => host(Question::Pause, reply),
                Kind::Command => host(Question::Command(&words.collect::<Vec<_>>()), reply),
                Kind::MayRun => host(Question::MayRun(&words.collect::<Vec<_>>()), reply),
                Kind::Log(level) => host(Question::Log(level, words.next().unwrap_or_default()), reply),
                Kind::Speak(resp3) => host(Question::Speak { resp3 }, reply),
            }
        };
        *self.answer.borrow_mut() = Some(answer);
    }

    fn ask(&self, lua: &Lua, kind: Kind) -> Result<Answer> {
        if let Some(text) = self.stop.borrow().as_deref() {
            return Err(raise_table(lua, text));
        }
        let Some(host) = self.host.borrow().clone() else { return Ok(Answer::Done) };
        self.kind.set(kind);
        host.call::<()>(())?;
        match self.answer.borrow_mut().take() {
            Some(Answer::Stop(text)) => {
                let error = raise_table(lua, &text);
                *self.stop.borrow_mut() = Some(text);
                Err(error)
            }
            Some(answer) => Ok(answer),
            None => Ok(Answer::Done),
        }
    }

    pub fn command(&self, lua: &Lua) -> Result<Answer> {
        self.ask(lua, Kind::Command)
    }

    pub fn may_run(&self, lua: &Lua) -> Result<Answer> {
        self.ask(lua, Kind::MayRun)
    }

    pub fn log(&self, lua: &Lua, level: i64, text: &[u8]) -> Result<()> {
        self.clear();
        self.push(text);
        self.ask(lua, Kind::Log(level)).map(|_| ())
    }

    pub fn speak(&self, lua: &Lua, resp3: bool) -> Result<()> {
        self.ask(lua, Kind::Speak(resp3)).map(|_| ())
    }

    /// Asks whether the run may go on.
    pub fn pause(&self, lua: &Lua) -> Result<()> {
        self.ask(lua, Kind::Pause).map(|_| ())
    }

    /// Refuses a text that has no room in the state, before it is made.
    pub fn check_size(&self, lua: &Lua, bytes: usize) -> std::result::Result<(), Error> {
        if bytes > self.bytes_max.get() { Err(too_large(lua)) } else { Ok(()) }
    }
}
