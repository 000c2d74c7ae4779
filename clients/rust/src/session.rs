//! Sessions: statements one after the other, or several in flight.
//!
//! Answers arrive in the order of requests (CX-3), so an unread answer precedes the next one. A session counts outstanding answers, and discards them before its next request.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use prost::Message;

use crate::answer::{Assembly, Row, Step, Summary};
use crate::argument::Argument;
use crate::connection::{Hold, Killer};
use crate::error::{Error, ServerError, UNKNOWN_DIGEST};
use crate::frame::{self, TOP, answer, ask};
use crate::message::{self, AutoSp, Savepoint, TokenOffer};
use crate::request::{After, Form, Request, TOKEN_KIB};
use crate::value::Column;

/// A session of the server: its own transaction, variables and database. Dropped, it is closed, and what is open rolled back.
pub struct Session {
    hold: Arc<Hold>,
    sid: u64,
    /// Whole frames, taken up to `at`.
    received: Vec<u8>,
    at: usize,
    /// SESS_NEW has not been sent, or its answer not read.
    begin: Begin,
    /// Answers in flight.
    unread_count: usize,
    /// The tokens granted when those of the server are used up.
    token_kib: i32,
    schema: Option<String>,
    has_ended: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Begin {
    Unsent,
    Unread,
    Done,
}

/// A whole answer.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Answer {
    /// None for what is no query.
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    pub summary: Summary,
}

/// A server ends sessions with more than 128 requests in line; so many are sent before the first answers are read.
const WINDOW: usize = 64;

impl Session {
    pub(crate) fn new(hold: Arc<Hold>, sid: u64) -> Result<Session, Error> {
        hold.link.open(sid)?;
        hold.session_count.fetch_add(1, Ordering::Relaxed);
        let begin = if sid & TOP == 0 { Begin::Unsent } else { Begin::Done };
        Ok(Session {
            hold,
            sid,
            received: Vec::new(),
            at: 0,
            begin,
            unread_count: 0,
            token_kib: TOKEN_KIB,
            schema: None,
            has_ended: false,
        })
    }

    /// Its number on the wire.
    pub fn sid(&self) -> u64 {
        self.sid
    }

    /// Sets the database of later statements. It is sent with the next one.
    pub fn set_schema(&mut self, name: impl Into<String>) {
        self.schema = Some(name.into());
    }

    /// Executes a text with values for its `?`s and waits for the whole answer.
    pub fn execute(&mut self, sql: &str, arguments: &[Argument<'_>]) -> Result<Answer, Error> {
        self.run(&Request::text(sql).with(arguments))?.collect()
    }

    /// Executes and returns when the columns are known; rows come as they are asked for.
    pub fn run(&mut self, request: &Request<'_>) -> Result<Rows<'_>, Error> {
        self.make_ready()?;
        let mut form = self.form(request);
        loop {
            let mut out = Vec::new();
            self.write(request, form, After::Anything, &mut out);
            self.send(&out, 1)?;
            self.token_kib = request.token_kib().unwrap_or(TOKEN_KIB);
            let mut assembly = Assembly::default();
            let step = loop {
                let (kind, step) = self.step(&mut assembly)?;
                if kind != answer::COLUMN || step != Step::More {
                    break step;
                }
            };
            match step {
                Step::Failed(error) if error.code == UNKNOWN_DIGEST && form == Form::Digest => form = Form::Whole,
                Step::Failed(error) => return Err(Error::Server(error)),
                step => {
                    self.learn(request);
                    return Ok(Rows { session: self, assembly, is_done: step == Step::Done });
                }
            }
        }
    }

    /// Several requests that are sent together; their answers come in order.
    pub fn pipeline<'r>(&mut self) -> Pipeline<'_, 'r> {
        Pipeline { session: self, frames: Vec::new(), ends: Vec::new(), last: None }
    }

    /// Sets, releases or goes back to a savepoint, without a statement.
    pub fn savepoint(&mut self, what: Savepoint, name: &str) -> Result<(), Error> {
        self.make_ready()?;
        let mut out = Vec::new();
        self.write_begin(&mut out);
        let message = AutoSp { op: what as i32, sp_name: name.into(), reset_error: Some(true) };
        frame::put_message(&mut out, self.sid, ask::AUTO_SAVEPOINT, &message);
        self.send(&out, 1)?;
        match self.rest(Assembly::default())? {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::Server(error)),
        }
    }

    /// Returns a handle that can kill the session's statements from another thread.
    pub fn killer(&self) -> Killer {
        Killer { hold: self.hold.clone(), sid: self.sid }
    }

    fn form(&self, request: &Request<'_>) -> Form {
        let is_known = request.digest().is_some_and(|digest| self.sid & TOP == 0 && self.hold.server.knows(digest));
        if is_known { Form::Digest } else { Form::Whole }
    }

    fn learn(&self, request: &Request<'_>) {
        if let Some(digest) = request.digest() {
            self.hold.server.learns(*digest);
        }
    }

    fn write_begin(&mut self, out: &mut Vec<u8>) {
        if self.begin == Begin::Unsent {
            frame::put(out, self.sid, ask::SESSION_NEW, |_| ());
            self.begin = Begin::Unread;
        }
    }

    /// Appends the frame of a request, after the frames that must precede it.
    fn write(&mut self, request: &Request<'_>, form: Form, after: After, out: &mut Vec<u8>) {
        self.write_begin(out);
        match self.schema.take_if(|_| request.is_text()) {
            Some(schema) => request.clone().schema(schema).write(out, self.sid, form, after),
            None => request.write(out, self.sid, form, after),
        }
    }

    fn send(&mut self, frames: &[u8], answer_count: usize) -> Result<(), Error> {
        self.unread_count += answer_count;
        let sent = self.hold.link.send(frames);
        self.has_ended |= sent.is_err();
        sent
    }

    /// Reads away what was not read.
    fn make_ready(&mut self) -> Result<(), Error> {
        if self.has_ended {
            return Err(Error::Ended);
        }
        while self.unread_count > 0 {
            let (kind, range) = self.next()?;
            match kind {
                answer::TOKEN_DONE => self.offer()?,
                answer::ERROR => {
                    let error = message::Error::decode(&self.received[range])?;
                    self.finish(Some(&error.into()));
                }
                answer::OK | answer::EXECUTE_OK => self.finish(None),
                _ => {}
            }
            if self.has_ended {
                return Err(Error::Ended);
            }
        }
        Ok(())
    }

    /// An answer is whole.
    fn finish(&mut self, error: Option<&ServerError>) {
        self.unread_count -= 1;
        self.has_ended |= error.is_some_and(|error| error.is_fatal);
    }

    /// The next frame of answers, without that to SESS_NEW.
    fn next(&mut self) -> Result<(u8, Range<usize>), Error> {
        let found = self.next_frame();
        if let Err(error) = &found {
            self.has_ended = true;
            if matches!(error, Error::Timeout) {
                let _ = self.killer().session();
                self.hold.link.close(self.sid);
            }
        }
        found
    }

    fn next_frame(&mut self) -> Result<(u8, Range<usize>), Error> {
        loop {
            if let Some(frame) = frame::cut(&self.received[self.at..])? {
                let (kind, end) = (frame.kind, self.at + frame.len_bytes());
                let start = end - frame.payload.len();
                self.at = end;
                // An error answers the requests that depend on the failed one, too.
                let was_unread = std::mem::replace(&mut self.begin, Begin::Done) == Begin::Unread;
                if was_unread && kind == answer::OK {
                    continue;
                }
                return Ok((kind, start..end));
            }
            self.received.clear();
            self.at = 0;
            self.hold.link.receive(self.sid, &mut self.received, self.hold.server.until())?;
        }
    }

    /// Takes a frame into the answer.
    fn step(&mut self, assembly: &mut Assembly) -> Result<(u8, Step), Error> {
        let (kind, range) = self.next()?;
        let step = assembly.take(kind, &self.received[range]);
        match &step {
            Ok(Step::TokensUsed) => self.offer()?,
            Ok(Step::Done) => self.finish(None),
            Ok(Step::Failed(error)) => self.finish(Some(error)),
            Ok(Step::More) => {}
            Err(_) => self.has_ended = true,
        }
        Ok((kind, step?))
    }

    fn offer(&mut self) -> Result<(), Error> {
        let mut out = Vec::new();
        frame::put_message(&mut out, self.sid, ask::TOKEN_OFFER, &TokenOffer { token: Some(self.token_kib) });
        self.send(&out, 0)
    }

    /// Reads the rest of an answer.
    fn rest(&mut self, mut assembly: Assembly) -> Result<Result<Answer, ServerError>, Error> {
        loop {
            match self.step(&mut assembly)?.1 {
                Step::Done => return Ok(Ok(whole(assembly))),
                Step::Failed(error) => return Ok(Err(error)),
                Step::More | Step::TokensUsed => {}
            }
        }
    }
}

fn whole(assembly: Assembly) -> Answer {
    Answer { columns: assembly.columns, rows: assembly.rows.into(), summary: assembly.summary }
}

impl Drop for Session {
    fn drop(&mut self) {
        let Hold { link, session_count, .. } = &*self.hold;
        session_count.fetch_sub(1, Ordering::Relaxed);
        link.close(self.sid);
        if self.has_ended || self.begin == Begin::Unsent || self.sid & TOP != 0 {
            return;
        }
        // A statement that waits for tokens would never come to SESS_CLOSE.
        if self.unread_count > 0 {
            let _ = self.killer().session();
        } else {
            let mut out = Vec::new();
            frame::put(&mut out, self.sid, ask::SESSION_CLOSE, |_| ());
            let _ = link.send(&out);
        }
    }
}

/// The rows of an answer as they arrive. The session's next statement skips unread rows.
pub struct Rows<'s> {
    session: &'s mut Session,
    assembly: Assembly,
    is_done: bool,
}

impl Rows<'_> {
    /// None for what is no query.
    pub fn columns(&self) -> &[Column] {
        &self.assembly.columns
    }

    /// Everything that is left.
    pub fn collect(self) -> Result<Answer, Error> {
        if self.is_done {
            return Ok(whole(self.assembly));
        }
        self.session.rest(self.assembly)?.map_err(Error::Server)
    }

    /// Passes over the rows that are left.
    pub fn finish(mut self) -> Result<Summary, Error> {
        for row in self.by_ref() {
            row?;
        }
        Ok(self.assembly.summary)
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<Row, Error>;

    fn next(&mut self) -> Option<Result<Row, Error>> {
        loop {
            if let Some(row) = self.assembly.rows.pop_front() {
                return Some(Ok(row));
            }
            if self.is_done {
                return None;
            }
            let step = self.session.step(&mut self.assembly);
            self.is_done = !matches!(step, Ok((_, Step::More | Step::TokensUsed)));
            match step {
                Ok((_, Step::Failed(error))) => return Some(Err(Error::Server(error))),
                Err(error) => return Some(Err(error)),
                Ok(_) => {}
            }
        }
    }
}

/// Requests of one session that travel together.
///
/// CX-4: a digest without its text is sent for the last request only. If the server does not know the digest, the text must follow, and later requests would have run before it.
pub struct Pipeline<'s, 'r> {
    session: &'s mut Session,
    frames: Vec<u8>,
    /// Where each request ends in `frames`.
    ends: Vec<usize>,
    /// It is not in `frames` yet.
    last: Option<(Request<'r>, After)>,
}

impl<'s, 'r> Pipeline<'s, 'r> {
    /// Appends a request that is executed whatever became of those before it.
    pub fn add(&mut self, request: Request<'r>) -> &mut Self {
        self.push(request, After::Anything)
    }

    /// Appends a request that is executed only if the one before it was; otherwise that one's error is its answer too.
    pub fn then(&mut self, request: Request<'r>) -> &mut Self {
        self.push(request, After::Success)
    }

    fn push(&mut self, request: Request<'r>, after: After) -> &mut Self {
        if let Some((former, former_after)) = self.last.replace((request, after)) {
            self.write(&former, Form::Whole, former_after);
        }
        self
    }

    fn write(&mut self, request: &Request<'_>, form: Form, after: After) {
        self.session.write(request, form, after, &mut self.frames);
        self.ends.push(self.frames.len());
    }

    /// Sends without waiting for answers, as many as the server keeps in line. So one thread can set several sessions to work before it collects.
    pub fn send(mut self) -> Result<Sent<'s, 'r>, Error> {
        self.session.make_ready()?;
        let last = self.last.take();
        let form = last.as_ref().map_or(Form::Whole, |(request, _)| self.session.form(request));
        if let Some((request, after)) = &last {
            self.write(request, form, *after);
        }
        let mut sent = Sent { session: self.session, frames: self.frames, ends: self.ends, last, form, sent_count: 0 };
        sent.send_window()?;
        Ok(sent)
    }

    /// Sends, and waits for all answers.
    pub fn collect(self) -> Result<Vec<Result<Answer, ServerError>>, Error> {
        self.send()?.collect()
    }
}

/// Requests whose answers are on their way.
pub struct Sent<'s, 'r> {
    session: &'s mut Session,
    frames: Vec<u8>,
    ends: Vec<usize>,
    last: Option<(Request<'r>, After)>,
    /// Of the last.
    form: Form,
    sent_count: usize,
}

impl Sent<'_, '_> {
    fn send_window(&mut self) -> Result<(), Error> {
        let begin = self.sent_count.checked_sub(1).map_or(0, |at| self.ends[at]);
        let count = (self.ends.len() - self.sent_count).min(WINDOW - self.session.unread_count);
        if count > 0 {
            self.sent_count += count;
            self.session.send(&self.frames[begin..self.ends[self.sent_count - 1]], count)?;
        }
        Ok(())
    }

    /// The answers, or the server's errors, in the order of the requests.
    pub fn collect(mut self) -> Result<Vec<Result<Answer, ServerError>>, Error> {
        let mut answers = Vec::with_capacity(self.ends.len());
        while answers.len() < self.ends.len() {
            if self.session.unread_count <= WINDOW / 2 {
                self.send_window()?;
            }
            answers.push(self.session.rest(Assembly::default())?);
        }
        let Some((request, after)) = &self.last else { return Ok(answers) };
        let is_unknown = matches!(answers.last(), Some(Err(error)) if error.code == UNKNOWN_DIGEST);
        if self.form == Form::Digest && is_unknown {
            let mut out = Vec::new();
            self.session.write(request, Form::Whole, *after, &mut out);
            self.session.send(&out, 1)?;
            answers.pop();
            answers.push(self.session.rest(Assembly::default())?);
        }
        if answers.last().is_some_and(Result::is_ok) {
            self.session.learn(request);
        }
        Ok(answers)
    }
}
