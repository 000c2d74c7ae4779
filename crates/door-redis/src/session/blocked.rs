//! A session that is blocked by a command until a key has something for it.
//!
//! The command registers a ticket with the engine and parks the connection; no thread waits. The reply is written by the thread that serves the ticket, and the session
//! takes it when it is woken. A timeout, CLIENT UNBLOCK and the end of the connection give the ticket up, unless it has been served (EN-75): then the session waits
//! for the reply, which comes at once (DR-13).

use std::sync::Arc;
use std::time::Duration;

use engine::{KeyTransaction, KeyWait, Serving};
use reactor::Io;
use stdx::sync::Mutex;
use stdx::sync::atomic::Ordering;

use super::block_state::{Blocked, Slot};
use super::{Replies, Session};
use crate::call::{Blocking, Call};
use crate::clients::{UNBLOCK_ERROR, UNBLOCK_ROLE};
use crate::command::Command;
use crate::errors;
use crate::messages::tracking::Origin;
use crate::reply::Reply;
use crate::spool::Spooling;

impl Session {
    /// Registers a wait in the transaction that has found nothing.
    pub(super) fn block(
        &self,
        txn: &mut KeyTransaction<'_>,
        command: &'static Command,
        blocking: Blocking,
    ) -> Result<Blocked, engine::Error> {
        let slot = Arc::new(Mutex::new(Slot::default()));
        let Blocking { kind, class, keys, also, timeout_ms, serve, refuse: _ } = blocking;
        let (of_serve, of_served, resp3, db) = (slot.clone(), slot.clone(), self.resp3, self.db);
        let shared = self.shared.clone();
        let connection = self.client.connection.clone();
        let (handle, client) = (self.client.handle(), self.client.id);
        let serve = move |txn: &mut KeyTransaction<'_>, key: &[u8], claim: &engine::Claim<'_>| {
            if connection.upgrade().is_none_or(|connection| connection.is_closed()) {
                return Ok(Serving::Waits);
            }
            let mut out = Vec::new();
            let mut spooling = Spooling::new(shared.engine.pager().folder(), 0);
            let reply = Reply { out: &mut out, resp3 };
            let limits = &shared.pack_limits;
            let mut call = Call { args: &[], db, reply, command, spooling: &mut spooling, limits };
            let (origin, began_ns) = (Origin::wait(client), shared.clock.monotonic_ns());
            let serving = serve(txn, key, claim, &mut call)?;
            spooling.refuse()?;
            if serving == Serving::Served {
                let mut slot = of_serve.lock();
                (slot.reply, slot.origin) = (out, Some(origin));
                slot.took_ns = shared.clock.monotonic_ns().saturating_sub(began_ns);
            }
            Ok(serving)
        };
        let served = move |lsn: Result<u64, engine::Error>| {
            let mut slot = of_served.lock();
            slot.messages = Origin::finish_wait(client);
            slot.origin = None;
            slot.done = Some(*lsn.as_ref().unwrap_or(&0));
            if let Err(error) = lsn {
                slot.reply.clear();
                Reply { out: &mut slot.reply, resp3 }.error(&errors::of_engine(&error));
            }
            drop(slot);
            if let Some(handle) = &handle {
                handle.wake();
            }
        };
        let wait = KeyWait { kind, class, keys, also, serve: Box::new(serve), served: Box::new(served) };
        let ticket = txn.wait(self.db, wait)?;
        let until_ms = (timeout_ms > 0).then(|| self.now_ms().saturating_add(timeout_ms));
        Ok(Blocked {
            ticket,
            slot,
            until_ms,
            alarm: None,
            is_muted: self.replies != Replies::On,
            command: command.index(),
            took_ns: 0,
            args: None,
        })
    }

    /// Parks the blocked session.
    pub(super) fn park_blocked(&mut self, io: &mut Io<'_>) {
        let now = self.now_ms();
        let Some(blocked) = &mut self.blocked else { return };
        if let (Some(until), Some(pool)) = (blocked.until_ms, self.shared.pool()) {
            let handle = io.connection().handle();
            let delay = Duration::from_millis(until.saturating_sub(now) + 1);
            blocked.alarm = Some(pool.alarm(delay, Box::new(move || handle.wake())));
        }
        // CLIENT LIST shows the client as blocked once CLIENT UNBLOCK can end it.
        self.client.unblock.store(0, Ordering::Release);
        self.client.waits.store(true, Ordering::Release);
        self.client.state.lock().parked = true;
        io.park_for_peer();
    }

    /// Continues a blocked session if its wait has ended. Returns false if it still waits.
    pub(super) fn wake_blocked(&mut self, io: &mut Io<'_>) -> bool {
        let Some(blocked) = &mut self.blocked else { return true };
        let out = io.out();
        let mark = out.len();
        let mut reply = Reply { out, resp3: self.resp3 };
        let (done, service_ns, messages) = {
            let mut slot = blocked.slot.lock();
            (slot.done, slot.took_ns, std::mem::take(&mut slot.messages))
        };
        let mut is_answered = done.is_some();
        if let Some(lsn) = done {
            reply.out.append(&mut blocked.slot.lock().reply);
            self.durability_lsn = self.durability_lsn.max(lsn);
        } else {
            let unblocked = self.client.unblock.load(Ordering::Acquire);
            let is_over = blocked.until_ms.is_some_and(|until| until <= self.shared.clock.wall_ms());
            if unblocked == 0 && !is_over || !self.shared.keyspace.cancel_wait(&blocked.ticket) {
                io.park_for_peer();
                return false;
            }
            if unblocked == UNBLOCK_ROLE {
                reply.error(errors::ROLE_CHANGED);
                self.closing = true;
            } else if unblocked == UNBLOCK_ERROR {
                is_answered = true;
                reply.error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
            } else {
                reply.null_array();
            }
        }
        let stats = &self.shared.stats;
        if reply.out.get(mark) == Some(&b'-') {
            stats.commands[blocked.command].failed.add(1);
            stats.count_error(&reply.out[mark..]);
        }
        if blocked.is_muted {
            reply.out.truncate(mark);
        }
        messages.iter().for_each(|message| reply.out.extend_from_slice(message));
        // As in Redis, a wait that was in vain is no entry of SLOWLOG.
        if is_answered {
            let took = stats.served(blocked.command, blocked.took_ns, service_ns);
            if let Some(args) = blocked.args.take().filter(|_| stats.is_slow(took)) {
                self.note_slow(took, args);
            }
        }
        self.blocked = None;
        self.client.state.lock().parked = false;
        self.client.waits.store(false, Ordering::Release);
        self.client.unblock.store(0, Ordering::Release);
        true
    }

    /// Gives up a wait, for a connection that closes.
    pub(crate) fn leave(&mut self) {
        if let Some(blocked) = self.blocked.take() {
            self.shared.keyspace.cancel_wait(&blocked.ticket);
        }
    }
}
