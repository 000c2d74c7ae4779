//! LISTEN, UNLISTEN and NOTIFY in a transaction: all of them take effect with its commit.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use datum::Result as CoreResult;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;
use syntax::postgres::tree::NotifyStmt;

use crate::error::{PgError, Result, state};
use crate::instance::notifications::{Listener, Notification, QUEUE_BYTES_MAX};
use crate::session::Session;
use crate::session::facts::FactsOf as _;
use crate::session::transact::Block;
use crate::value::Value;
use crate::wire::Wake;

/// The channels of a session, and the part of the open transaction that concerns them.
#[derive(Debug, Default)]
pub struct SessionChannels {
    /// The channels that the session listens to.
    pub listening: BTreeSet<Arc<str>>,
    changes: Vec<ListenChange>,
    sent: Vec<(Arc<str>, Arc<str>)>,
    /// The same as `sent`: a transaction sends equal ones once.
    known: HashSet<(Arc<str>, Arc<str>)>,
    bytes: usize,
}

#[derive(Clone, Debug)]
enum ListenChange {
    Listen(Arc<str>),
    Unlisten(Arc<str>),
    UnlistenAll,
}

/// The state of the transaction at a savepoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChannelsMark(usize, usize);

/// The least length of a name or payload that is too long.
const NAME_BYTES: usize = 64;
const PAYLOAD_BYTES: usize = 8000;

impl SessionChannels {
    fn is_quiet(&self) -> bool {
        self.changes.is_empty() && self.sent.is_empty()
    }

    pub(super) fn mark(&self) -> ChannelsMark {
        ChannelsMark(self.changes.len(), self.sent.len())
    }

    pub(super) fn undo_to(&mut self, mark: ChannelsMark) {
        self.changes.truncate(mark.0);
        for sent in self.sent.drain(mark.1.min(self.sent.len())..) {
            self.bytes -= bytes_of(&sent);
            self.known.remove(&sent);
        }
    }

    pub(super) fn forget(&mut self) {
        if !self.is_quiet() {
            self.undo_to(ChannelsMark(0, 0));
        }
    }

    fn send(&mut self, channel: &str, payload: &str) -> Result<()> {
        let refuse = |text: &str| Err(PgError::new(state::INVALID_PARAMETER_VALUE, text));
        if channel.is_empty() {
            return refuse("channel name cannot be empty");
        }
        if channel.len() >= NAME_BYTES {
            return refuse("channel name too long");
        }
        if payload.len() >= PAYLOAD_BYTES {
            return refuse("payload string too long");
        }
        let sent = (Arc::from(channel), Arc::from(payload));
        if self.known.contains(&sent) {
            return Ok(());
        }
        self.bytes += bytes_of(&sent);
        if self.bytes > QUEUE_BYTES_MAX {
            self.bytes -= bytes_of(&sent);
            return Err(PgError::new(state::PROGRAM_LIMIT_EXCEEDED, "too many notifications in the NOTIFY queue"));
        }
        self.known.insert(sent.clone());
        self.sent.push(sent);
        Ok(())
    }
}

fn bytes_of((channel, payload): &(Arc<str>, Arc<str>)) -> usize {
    Notification { pid: 0, channel: channel.clone(), payload: payload.clone() }.bytes()
}

impl Session {
    /// Sets what is called, in any thread, when a notification has come. The caller then takes it.
    pub fn on_notification(&mut self, wake: Wake) {
        self.listener.on_notification(wake);
    }

    /// Returns whether notifications can be taken: some wait, and no transaction is open.
    #[inline]
    pub fn has_notifications(&self) -> bool {
        self.listener.has_waiting() && self.transaction.block == Block::None
    }

    /// Takes the notifications that have come.
    pub fn take_notifications(&mut self) -> Vec<Notification> {
        if !self.has_notifications() {
            return Vec::new();
        }
        let (taken, lsn) = self.listener.take();
        self.core.transaction.raise_durability_lsn(lsn);
        taken.into()
    }

    pub(super) fn notify(&mut self, notify: &NotifyStmt) -> Result<&'static str> {
        let NotifyStmt { channel, payload } = notify;
        self.ctx.facts().channels.send(&channel.value, payload.as_deref().unwrap_or_default())?;
        Ok("NOTIFY")
    }

    pub(super) fn listen(&mut self, channel: &str) -> &'static str {
        self.ctx.facts().channels.changes.push(ListenChange::Listen(channel.into()));
        "LISTEN"
    }

    /// Ends listening to a channel, or to all.
    pub(super) fn unlisten(&mut self, channel: Option<&str>) -> &'static str {
        let channels = &mut self.ctx.facts().channels;
        if channels.listening.is_empty() && channels.changes.is_empty() {
            return "UNLISTEN";
        }
        channels
            .changes
            .push(channel.map_or(ListenChange::UnlistenAll, |channel| ListenChange::Unlisten(channel.into())));
        "UNLISTEN"
    }

    /// Commits by `commit`. A transaction that listens or notifies has its place in the order of all that do.
    pub(super) fn commit_in_order(&mut self, commit: impl FnOnce(&mut Session) -> CoreResult<()>) -> CoreResult<()> {
        if self.ctx.facts().channels.is_quiet() {
            return commit(self);
        }
        let db = self.db.clone();
        let order = db.channels.order();
        commit(self)?;
        let channels = &mut self.ctx.facts().channels;
        let (changes, sent) = (std::mem::take(&mut channels.changes), std::mem::take(&mut channels.sent));
        channels.known.clear();
        channels.bytes = 0;
        changes.into_iter().for_each(|change| self.change_channels(change));
        let pid = self.who.pid;
        let sent: Vec<_> = sent.into_iter().map(|(channel, payload)| Notification { pid, channel, payload }).collect();
        let full = db.channels.publish(&self.who.database, &sent, self.durability_lsn());
        drop(order);
        full.iter().for_each(|listener| db.cut_listener(listener.pid));
        Ok(())
    }

    fn change_channels(&mut self, change: ListenChange) {
        let listening = &mut self.ctx.facts().channels.listening;
        match change {
            ListenChange::Listen(channel) => {
                if listening.insert(channel.clone()) {
                    self.db.channels.listen(&self.who.database, &channel, &self.listener);
                }
            }
            ListenChange::Unlisten(channel) => {
                if listening.remove(&channel) {
                    self.db.channels.unlisten(&self.who.database, &channel, &self.listener);
                }
            }
            ListenChange::UnlistenAll => self.unlisten_now(),
        }
    }

    /// Ends listening to all channels at once.
    pub(super) fn unlisten_now(&mut self) {
        for channel in std::mem::take(&mut self.ctx.facts().channels.listening) {
            self.db.channels.unlisten(&self.who.database, &channel, &self.listener);
        }
    }

    pub(super) fn new_listener(pid: u32) -> Arc<Listener> {
        Arc::new(Listener::new(pid))
    }
}

/// `pg_notify(channel, payload)`: NULL is an empty text.
pub fn pg_notify(_: &Call, values: &[Value], ctx: &mut EvalContext) -> CoreResult<Value> {
    let text = |at: usize| match &values[at] {
        Value::Text(text) => text.to_string(),
        _ => String::new(),
    };
    ctx.facts().channels.send(&text(0), &text(1))?;
    Ok(Value::text(""))
}

pub fn queue_usage(_: &Call, _: &[Value], ctx: &mut EvalContext) -> CoreResult<Value> {
    let usage = ctx.facts().db.as_ref().map_or(0.0, |db| db.channels.usage());
    Ok(Value::Double(usage))
}
