//! What a client and `query` say to each other: commands in, replies out.

mod incoming;
mod long;
mod obeyed;
mod run;

use std::sync::Arc;
use std::time::Duration;

use query::error::{Result, SqlError};
use query::letters::{Results, decode, not_text};
use query::types::{Charset, CharsetName as _, CollationName as _};
use query::{Login, Session};
use reactor::{Connection, Io};

use crate::clients::Client;
use crate::commands;
use crate::door::Shared;
use crate::protocol::{capability, status};
use crate::reply::{Ending, Writer};
use crate::statements::Statements;

use incoming::Incoming;
use obeyed::{Obeyed, collation_of};
use run::Running;

pub use long::is_long;

/// How things stand after a command, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The reply is whole; the command took up so many bytes of the input.
    Done(usize),
    /// There is more to write.
    Running,
    /// The command took up so many bytes of the input; what the client sends next belongs to it.
    Awaits(usize),
    /// The client is gone, or must go.
    Close,
}

/// What a command has in hand while it runs.
pub struct Turn<'t, 'io> {
    pub shared: &'t Arc<Shared>,
    pub sequence: &'t mut u8,
    pub capabilities: u32,
    pub io: &'t mut Io<'io>,
}

impl Turn<'_, '_> {
    pub fn writer(&mut self) -> Writer<'_> {
        Writer { out: self.io.out(), sequence: self.sequence, capabilities: self.capabilities }
    }

    pub fn error(&mut self, error: &SqlError) {
        self.shared.stats.errors.add(1);
        self.writer().error(error);
    }
}

pub struct Conversation {
    pub sql: Session,
    pub statements: Statements,
    pub multi_statements: bool,
    shared: Arc<Shared>,
    client: Arc<Client>,
    obeyed: Obeyed,
    running: Option<Running>,
    incoming: Option<Incoming>,
}

/// The collation, the database and the capabilities of the client's answer.
type Wants<'a> = (u16, &'a [u8], u32);

impl Conversation {
    pub fn begin(
        shared: &Arc<Shared>,
        who: Login,
        wants: Wants<'_>,
        client: &Arc<Client>,
        connection: &Arc<Connection>,
    ) -> Result<Box<Conversation>> {
        let sql = Session::new(&shared.database, who)?;
        let handle = connection.handle();
        sql.handle().on_kill(Box::new(move || handle.kill()));
        let (database, own) = (shared.database.clone(), sql.handle().clone());
        connection.on_departure(Box::new(move || database.depart(&own)));
        let mut conversation = Box::new(Conversation {
            sql,
            statements: Statements::new(shared),
            multi_statements: wants.2 & capability::MULTI_STATEMENTS != 0,
            shared: shared.clone(),
            client: client.clone(),
            obeyed: Obeyed {
                version: 0,
                client: Charset::Utf8,
                results: Results::UTF8,
                packet_max: 0,
                idle: Duration::ZERO,
            },
            running: None,
            incoming: None,
        });
        conversation.settle(wants)?;
        Ok(conversation)
    }

    /// The same connection for somebody else.
    pub fn change_user(mut self: Box<Self>, who: Login, wants: Wants<'_>) -> Result<Box<Conversation>> {
        self.statements.clear();
        self.sql.change_user(who)?;
        self.settle(wants)?;
        Ok(self)
    }

    /// What the client's answer asked for besides entering.
    fn settle(&mut self, (collation, database, capabilities): Wants<'_>) -> Result<()> {
        let collation = collation_of(collation)?;
        self.sql.allow_local_files(capabilities & capability::LOCAL_FILES != 0);
        self.sql.count_found(capabilities & capability::FOUND_ROWS != 0);
        self.sql.set_names(collation.charset().name(), Some(collation.name()))?;
        if capabilities & capability::INTERACTIVE != 0
            && let Some(seconds) = self.number("interactive_timeout")
        {
            self.sql.set_variable("wait_timeout", query::value::Value::UInt(seconds))?;
        }
        self.obey();
        if !database.is_empty() {
            let name = self.text(database)?;
            self.sql.use_database(&name)?;
        }
        Ok(())
    }

    pub fn packet_max(&self) -> usize {
        // The command's own byte, as MySQL counts.
        self.obeyed.packet_max + 1
    }

    pub fn results(&self) -> Results {
        self.obeyed.results
    }

    pub fn client_charset(&self) -> Charset {
        self.obeyed.client
    }

    /// Text of the client.
    pub fn text(&self, bytes: &[u8]) -> Result<String> {
        let text = decode(bytes, self.obeyed.client).map(|text| text.into_owned());
        text.ok_or_else(|| not_text(bytes, self.obeyed.client))
    }

    pub fn status_word(&self) -> u16 {
        let now = self.sql.status();
        let bits = [
            (now.in_transaction, status::IN_TRANSACTION),
            (now.autocommit, status::AUTOCOMMIT),
            (now.no_backslash_escapes, status::NO_BACKSLASH_ESCAPES),
            (now.in_transaction && now.read_only_transaction, status::IN_READ_ONLY_TRANSACTION),
        ];
        bits.into_iter().filter(|(is_set, _)| *is_set).fold(0, |word, (_, bit)| word | bit)
    }

    /// Runs a command; `size` is what it takes up in the input.
    pub fn command(&mut self, turn: &mut Turn<'_, '_>, payload: &[u8], size: usize) -> Next {
        let next = commands::run(self, turn, payload, size);
        turn.io.hold_until_durable(self.sql.gate());
        next
    }

    pub fn ending(&self, more: bool) -> Ending<'static> {
        let more = if more { status::MORE_RESULTS } else { 0 };
        Ending { status: self.status_word() | more, warnings: self.sql.status().warnings, ..Ending::default() }
    }

    /// COM_RESET_CONNECTION.
    pub fn reset(&mut self) {
        self.statements.clear();
        self.sql.reset();
        self.obey();
    }
}
