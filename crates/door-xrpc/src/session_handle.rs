//! A session as its connection knows it.

use std::sync::Arc;

use reactor::SessionQueue;
use sql_mysql::{Database, Kill};

use crate::session::{Request, Session, wake};
use crate::session_control::{EndReason, SessionControl};

pub struct SessionHandle {
    pub session_queue: SessionQueue<Session, Request>,
    pub control: Arc<SessionControl>,
    /// SESS_CLOSE has arrived: later requests are ignored.
    pub is_closing: bool,
}

impl SessionHandle {
    /// Ends the session as soon as possible: cancels its wait; the session reports the reason itself.
    pub fn end(&self, database: &Database, why: EndReason) {
        self.control.end(why);
        self.control.kill(database, Kill::Connection);
        wake(&self.session_queue);
    }

    /// Ends the session after its connection has closed.
    pub fn abandon(&self, database: &Database) {
        self.control.end(EndReason::Killed);
        self.control.kill(database, Kill::Connection);
        self.session_queue.close();
    }
}

/// Ends the sessions of a closed connection. All statements are cancelled before the first session ends: otherwise one that waits for a lock of that session
/// would continue.
pub fn abandon_all<'m>(handles: impl Iterator<Item = &'m SessionHandle> + Clone, database: &Database) {
    handles.clone().for_each(|handle| handle.control.interrupt());
    handles.for_each(|handle| handle.abandon(database));
}
