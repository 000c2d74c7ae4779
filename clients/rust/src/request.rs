//! A request: a statement or plan with its arguments and options, and its bytes on the wire.
//!
//! Digests are the one hard thing: sixteen bytes name a statement that the server knows, and if the server does not know it, the client must be able to send its text. So a request is written in
//! one of two forms, and can be written again.

use std::borrow::Cow;

use sha1::{Digest as _, Sha1};

use crate::argument::Argument;
use crate::frame::{self, ask};
use crate::plan::Plan;
use crate::proto::{put_bytes, put_message, put_number};

/// The digest that names a statement or a plan to the server.
pub type Digest = [u8; 16];

/// The server only compares: any function that gives different texts different digests will do.
pub(crate) fn digest(bytes: &[u8]) -> Digest {
    let mut short = [0; 16];
    short.copy_from_slice(&Sha1::digest(bytes)[..16]);
    short
}

/// A text that is sent again and again: the server keeps it under its digest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statement {
    text: String,
    digest: Digest,
}

impl Statement {
    pub fn new(text: impl Into<String>) -> Statement {
        let text = text.into();
        Statement { digest: digest(text.as_bytes()), text }
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}

#[derive(Clone, Debug)]
enum What<'a> {
    Text(Cow<'a, str>),
    Statement(&'a Statement),
    Plan(&'a Plan),
}

/// How a request that has a digest is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Everything; the server keeps what has a digest.
    Whole,
    /// The digest alone. Error 8000 is the answer where it is not known.
    Digest,
}

/// Whether a request is executed when the one before it has failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum After {
    Anything,
    /// If that one failed, its error is the answer to this one too.
    Success,
}

/// KiB of a result that a server sends before it asks.
pub const TOKEN_KIB: i32 = 10_240;

/// CLIENT_FOUND_ROWS, and what servers take as given beside it.
const FOUND_ROWS: u64 = 1 << 1;
const ALWAYS: u64 = 1 << 17 | 1 << 18 | 1 << 24;

/// One statement or plan to execute.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    what: What<'a>,
    arguments: Cow<'a, [Argument<'a>]>,
    schema: Option<Cow<'a, str>>,
    hint: Option<Cow<'a, str>>,
    token_kib: Option<i32>,
    wants_chunks: bool,
    wants_names: bool,
    capabilities: Option<u64>,
}

impl<'a> Request<'a> {
    fn of(what: What<'a>) -> Request<'a> {
        Request {
            what,
            arguments: Cow::Borrowed(&[]),
            schema: None,
            hint: None,
            token_kib: Some(TOKEN_KIB),
            wants_chunks: false,
            wants_names: true,
            capabilities: None,
        }
    }

    pub fn text(sql: impl Into<Cow<'a, str>>) -> Request<'a> {
        Request::of(What::Text(sql.into()))
    }

    pub fn statement(statement: &'a Statement) -> Request<'a> {
        Request::of(What::Statement(statement))
    }

    pub fn plan(plan: &'a Plan) -> Request<'a> {
        Request::of(What::Plan(plan))
    }

    /// Values for the `?`s of a text, or for the parameters of a plan.
    pub fn with(self, arguments: impl Into<Cow<'a, [Argument<'a>]>>) -> Request<'a> {
        Request { arguments: arguments.into(), ..self }
    }

    /// The database becomes the session's. Plans name theirs.
    pub fn schema(self, name: impl Into<Cow<'a, str>>) -> Request<'a> {
        Request { schema: Some(name.into()), ..self }
    }

    /// A comment in front of the text, or what traces a plan.
    pub fn hint(self, hint: impl Into<Cow<'a, str>>) -> Request<'a> {
        Request { hint: Some(hint.into()), ..self }
    }

    /// How many KiB of rows the server may send before it waits for this client to take them; None is no limit.
    pub fn token(self, kib: Option<i32>) -> Request<'a> {
        Request { token_kib: kib, ..self }
    }

    /// Asks for rows by column, thousands at a time. The server decides; both arrive as rows here.
    pub fn chunks(self) -> Request<'a> {
        Request { wants_chunks: true, ..self }
    }

    /// Columns come without their names, which saves a little.
    pub fn without_names(self) -> Request<'a> {
        Request { wants_names: false, ..self }
    }

    /// Makes an UPDATE report the rows that it changed, instead of those that it found.
    pub fn count_changed(self) -> Request<'a> {
        Request { capabilities: Some(ALWAYS), ..self }
    }

    /// Makes an UPDATE report the rows that it found. This is the default.
    pub fn count_found(self) -> Request<'a> {
        Request { capabilities: Some(ALWAYS | FOUND_ROWS), ..self }
    }

    pub(crate) fn token_kib(&self) -> Option<i32> {
        self.token_kib
    }

    pub(crate) fn is_text(&self) -> bool {
        !matches!(self.what, What::Plan(_))
    }

    /// Returns the digest that names the statement to the server, if it has one.
    pub fn digest(&self) -> Option<&Digest> {
        match &self.what {
            What::Text(_) => None,
            What::Statement(statement) => Some(&statement.digest),
            What::Plan(plan) => Some(plan.digest()),
        }
    }

    /// Appends its frame for session `sid`. A text without a digest is whole in either form.
    pub fn write(&self, out: &mut Vec<u8>, sid: u64, form: Form, after: After) {
        match &self.what {
            What::Plan(plan) => frame::put(out, sid, ask::EXECUTE_PLAN, |out| self.put_plan(out, plan, form, after)),
            What::Text(text) => frame::put(out, sid, ask::EXECUTE_SQL, |out| self.put_sql(out, Some(text), after)),
            What::Statement(statement) => {
                let text = (form == Form::Whole).then_some(statement.text());
                frame::put(out, sid, ask::EXECUTE_SQL, |out| self.put_sql(out, text, after));
            }
        }
    }

    /// The payload of EXEC_SQL, its fields in the order of their numbers.
    fn put_sql(&self, out: &mut Vec<u8>, text: Option<&str>, after: After) {
        if let Some(text) = text {
            put_bytes(out, 1, text.as_bytes());
        }
        for argument in self.arguments.iter() {
            put_message(out, 2, &argument.any());
        }
        if !self.wants_names {
            put_number(out, 4, 1);
        }
        if let Some(schema) = &self.schema {
            put_bytes(out, 5, schema.as_bytes());
        }
        if let Some(token) = self.token_kib {
            put_number(out, 8, token as u64);
        }
        put_number(out, 9, u64::from(after == After::Anything));
        if let What::Statement(statement) = &self.what {
            put_bytes(out, 12, &statement.digest);
        }
        if let Some(hint) = &self.hint {
            put_bytes(out, 13, hint.as_bytes());
        }
        if self.wants_chunks {
            put_number(out, 14, 1);
        }
        if let Some(capabilities) = self.capabilities {
            put_number(out, 17, capabilities);
        }
    }

    /// The payload of EXEC_PLAN_READ.
    fn put_plan(&self, out: &mut Vec<u8>, plan: &Plan, form: Form, after: After) {
        if form == Form::Whole {
            put_bytes(out, 2, plan.bytes());
        }
        put_bytes(out, 3, plan.digest());
        for argument in self.arguments.iter() {
            put_message(out, 4, &argument.scalar());
        }
        if let Some(token) = self.token_kib {
            put_number(out, 6, token as u64);
        }
        put_number(out, 7, u64::from(after == After::Anything));
        if !self.wants_names {
            put_number(out, 8, 1);
        }
        if self.wants_chunks {
            put_number(out, 11, 1);
        }
        if let Some(hint) = &self.hint {
            put_bytes(out, 14, hint.as_bytes());
        }
        if let Some(capabilities) = self.capabilities {
            put_number(out, 16, capabilities);
        }
    }
}
