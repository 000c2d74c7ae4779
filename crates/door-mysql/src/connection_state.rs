//! The state of a connection after its login: a session of `query`, prepared statements, settings, and what is left of the current reply.

use std::sync::Arc;
use std::time::Duration;

use reactor::Connection;
use sql_mysql::charset::{Results, decode, not_text};
use sql_mysql::error::Result;
use sql_mysql::types::{Charset, CharsetName as _, CollationName as _};
use sql_mysql::{Login, Session};

use crate::clients::Client;
use crate::pending_reply::PendingReply;
use crate::protocol::{capability, status};
use crate::reply::OkPacket;
use crate::session_settings::{self, SessionSettings, collation_of};
use crate::shared::Shared;
use crate::statements::Statements;

pub struct ConnectionState {
    pub sql: Session,
    pub statements: Statements,
    pub multi_statements: bool,
    shared: Arc<Shared>,
    client: Arc<Client>,
    settings: SessionSettings,
    /// The rest of the current reply.
    pub pending: Option<PendingReply>,
    /// The client's file while it arrives.
    pub infile: Option<LocalInfile>,
}

/// How far the client's file has arrived.
pub struct LocalInfile {
    /// The statements behind this one, and where they begin in their text.
    pub script: Option<(String, usize)>,
    /// Bytes of the current frame that have not arrived.
    pub left: usize,
    /// The next frame continues the packet of the last one.
    pub continues: bool,
}

/// The collation, the database and the capabilities of the handshake response.
type LoginOptions<'a> = (u16, &'a [u8], u32);

impl ConnectionState {
    pub fn begin(
        shared: &Arc<Shared>,
        who: Login,
        options: LoginOptions<'_>,
        client: &Arc<Client>,
        connection: &Arc<Connection>,
    ) -> Result<Box<ConnectionState>> {
        let sql = Session::new(&shared.database, who)?;
        let handle = connection.handle();
        sql.handle().on_kill(Box::new(move || handle.kill()));
        let (database, own) = (shared.database.clone(), sql.handle().clone());
        connection.on_departure(Box::new(move || database.depart(&own)));
        let mut state = Box::new(ConnectionState {
            sql,
            statements: Statements::new(shared),
            multi_statements: options.2 & capability::MULTI_STATEMENTS != 0,
            shared: shared.clone(),
            client: client.clone(),
            settings: SessionSettings::DEFAULT,
            pending: None,
            infile: None,
        });
        state.settle(options)?;
        Ok(state)
    }

    /// Switches the connection to another account.
    pub fn change_user(mut self: Box<Self>, who: Login, options: LoginOptions<'_>) -> Result<Box<ConnectionState>> {
        self.statements.clear();
        self.sql.change_user(who)?;
        self.settle(options)?;
        Ok(self)
    }

    /// Applies the options of the handshake response.
    fn settle(&mut self, (collation, database, capabilities): LoginOptions<'_>) -> Result<()> {
        let collation = collation_of(collation)?;
        self.sql.allow_local_files(capabilities & capability::LOCAL_FILES != 0);
        self.sql.count_found(capabilities & capability::FOUND_ROWS != 0);
        self.sql.set_names(collation.charset().name(), Some(collation.name()))?;
        if capabilities & capability::INTERACTIVE != 0
            && let Some(seconds) = session_settings::number(&self.sql, "interactive_timeout")
        {
            self.sql.set_variable("wait_timeout", sql_mysql::value::Value::UInt(seconds))?;
        }
        self.load_settings();
        if !database.is_empty() {
            let name = self.text(database)?;
            self.sql.use_database(&name)?;
        }
        Ok(())
    }

    pub fn packet_max(&self) -> usize {
        // MySQL counts the command byte too.
        self.settings.packet_max + 1
    }

    pub fn results(&self) -> Results {
        self.settings.results
    }

    pub fn client_charset(&self) -> Charset {
        self.settings.client
    }

    /// Decodes text in the client's character set.
    pub fn text(&self, bytes: &[u8]) -> Result<String> {
        let text = decode(bytes, self.settings.client).map(|text| text.into_owned());
        text.ok_or_else(|| not_text(bytes, self.settings.client))
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

    pub fn ok_packet(&self, more: bool) -> OkPacket<'static> {
        let more = if more { status::MORE_RESULTS } else { 0 };
        OkPacket { status: self.status_word() | more, warnings: self.sql.status().warnings, ..OkPacket::default() }
    }

    /// Resets the session, as COM_RESET_CONNECTION does.
    pub fn reset(&mut self) {
        self.statements.clear();
        self.sql.reset();
        self.load_settings();
    }

    pub fn has_pending_reply(&self) -> bool {
        self.pending.is_some()
    }

    /// Returns whether the client's next bytes belong to its file.
    pub fn is_receiving(&self) -> bool {
        self.infile.is_some()
    }

    /// Copies the session's variables again if the last statement has set any: itself, or through PREPARE and EXECUTE.
    pub fn refresh_settings(&mut self) {
        if self.sql.variables_version() != self.settings.version {
            self.load_settings();
        }
    }

    fn load_settings(&mut self) {
        self.settings = SessionSettings::of(&self.sql);
        self.allow_idle_time();
    }

    /// Sets the connection's idle limit to `wait_timeout`.
    pub fn allow_idle_time(&self) {
        self.shared.clients.allow(&self.client, self.settings.idle);
    }

    /// Sets the connection's idle limit to `net_read_timeout`, for as long as a file arrives.
    pub fn allow_file_time(&self) {
        let limit = Duration::from_secs(session_settings::number(&self.sql, "net_read_timeout").unwrap_or(30));
        self.shared.clients.allow(&self.client, limit);
    }
}
