//! The state of a connection after its login: a session of `sql-postgres`, and what is left of the current reply.

use std::sync::Arc;

use reactor::{Alarm, Connection, Io};
use sql_postgres::error::{PgError, Result};
use sql_postgres::wire::Login;

use crate::clients::Client;
use crate::errors;
use crate::reply;
use crate::shared::Shared;
use crate::sql::{CopyOut, ResultSet, Script, Session};

/// How far a message has come after one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The reply is complete; the message occupied this many bytes of the input.
    Done(usize),
    /// There is more to write.
    Running,
    /// The connection has to be closed.
    Close,
}

/// The connection's side of a running message.
pub struct Context<'t, 'io> {
    pub shared: &'t Arc<Shared>,
    pub io: &'t mut Io<'io>,
}

pub struct ConnectionState {
    pub sql: Session,
    /// The rest of the current reply.
    pub pending: Option<Pending>,
    /// Ends a client that is idle in a transaction for too long. Dropped by its next message.
    pub idle_alarm: Option<Alarm>,
    shared: Arc<Shared>,
    client: Arc<Client>,
    /// COPY FROM STDIN in progress.
    pub copy: Option<CopyIn>,
    /// After an error in the extended protocol: messages up to the next Sync are dropped (DP-3).
    pub skips_to_sync: bool,
}

/// The rest of a reply that could not be written at once. Its message stays in the input until the reply is complete (DP-2).
pub struct Pending {
    /// Bytes of the message in the input.
    pub size: usize,
    /// The statements of a simple query behind the current one; `None` in the extended protocol.
    pub script: Option<Script>,
    pub work: Work,
}

/// Where the rest of a reply comes from.
pub enum Work {
    /// The next statement of the script.
    Statement,
    Rows(Box<ResultSet>),
    Copy(Box<CopyOut>),
    /// A statement that is suspended and is resumed when the connection is woken, by the alarm at the latest (DP-9).
    Suspended {
        begun_ns: u64,
        _alarm: Option<Alarm>,
    },
}

/// The statements behind a COPY FROM STDIN of a simple query; `None` in the extended protocol.
pub struct CopyIn {
    pub script: Option<Script>,
}

impl ConnectionState {
    pub fn begin(
        shared: &Arc<Shared>,
        login: Login,
        client: &Arc<Client>,
        connection: &Arc<Connection>,
    ) -> Result<Box<ConnectionState>> {
        let mut sql = Session::new(&shared.database, login)?;
        let handle = connection.handle();
        sql.on_notification(Arc::new(move || handle.ask()));
        let (clients, ended) = (shared.clients.clone(), Arc::downgrade(client));
        sql.handle().on_kill(Box::new(move || {
            if let Some(client) = ended.upgrade() {
                clients.end(&client, &errors::shutdown());
            }
        }));
        let (database, own) = (shared.database.clone(), sql.handle().clone());
        connection.on_departure(Box::new(move || database.depart(&own)));
        let (shared, client) = (shared.clone(), client.clone());
        let (pending, copy, idle_alarm) = (None, None, None);
        Ok(Box::new(ConnectionState { sql, pending, idle_alarm, shared, client, copy, skips_to_sync: false }))
    }

    /// Writes the settings that the client follows and that have changed.
    pub fn put_parameters(&mut self, context: &mut Context<'_, '_>) {
        for (name, value) in self.sql.take_parameter_changes() {
            reply::put_parameter_status(context.io.out(), name, &value);
        }
    }

    pub fn put_notices(&mut self, context: &mut Context<'_, '_>) {
        for notice in self.sql.take_notices() {
            reply::put_notice(context.io.out(), &notice);
        }
    }

    /// Writes the notifications that have come, unless a transaction is open.
    pub fn put_notifications(&mut self, context: &mut Context<'_, '_>) {
        for notification in self.sql.take_notifications() {
            reply::put_notification(context.io.out(), &notification);
        }
    }

    /// Writes ReadyForQuery, and before it what has changed.
    pub fn put_ready(&mut self, context: &mut Context<'_, '_>) {
        self.put_notices(context);
        self.put_notifications(context);
        self.put_parameters(context);
        reply::put_ready(context.io.out(), self.sql.transaction_status());
        self.sql.idle();
        self.idle_alarm = self.sql.idle_limit().and_then(|limit| {
            let (clients, idle) = (self.shared.clients.clone(), Arc::downgrade(&self.client));
            let end = move || {
                if let Some(client) = idle.upgrade() {
                    clients.end_if_idle(&client, &errors::idle_in_transaction());
                }
            };
            self.shared.clients.alarm(limit, Box::new(end))
        });
    }

    /// Writes an error. Returns false if it ends the connection.
    pub fn put_error(&mut self, context: &mut Context<'_, '_>, error: &PgError) -> bool {
        self.put_notices(context);
        context.shared.stats.errors.add(1);
        let is_fatal = error.state == errors::ADMIN_SHUTDOWN;
        let severity = if is_fatal { reply::FATAL } else { reply::ERROR };
        reply::put_error(context.io.out(), severity, error);
        !is_fatal
    }
}
