//! A session as its connection knows it.

use std::sync::Arc;

use query::{Database, Kill};
use reactor::SessionQueue;

use crate::session::{Request, Session, wake};
use crate::session_control::{EndReason, SessionControl};

pub struct SessionHandle {
    pub session_queue: SessionQueue<Session, Request>,
    pub control: Arc<SessionControl>,
    /// SESS_CLOSE has come: nothing behind it is looked at.
    pub is_closing: bool,
}

impl SessionHandle {
    /// Ends the session as soon as may be: what it waits for is broken off, and it says why itself.
    pub fn end(&self, database: &Database, why: EndReason) {
        self.control.end(why);
        self.control.kill(database, Kill::Connection);
        wake(&self.session_queue);
    }

    /// As its connection is gone.
    pub fn abandon(&self, database: &Database) {
        self.control.end(EndReason::Killed);
        self.control.kill(database, Kill::Connection);
        self.session_queue.close();
    }
}

/// The connection is gone. All statements are told to stop before the first session ends: one that waits for a lock which that one gives back would go on otherwise.
pub fn abandon_all<'m>(handles: impl Iterator<Item = &'m SessionHandle> + Clone, database: &Database) {
    handles.clone().for_each(|handle| handle.control.interrupt());
    handles.for_each(|handle| handle.abandon(database));
}
