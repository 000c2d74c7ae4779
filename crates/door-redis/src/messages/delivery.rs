//! The delivery of messages to clients: each is encoded once per version of the protocol, and a client that does not read is cut.

use std::sync::Arc;
use std::time::Duration;

use reactor::Broadcast;
use stdx::sync::atomic::Ordering;

use crate::clients::Client;
use crate::messages::limits::{OutputLimits, Verdict};
use crate::reply::Reply;

/// A message in the versions of the protocol that its receivers speak.
pub struct Message<F: Fn(&mut Reply<'_>)> {
    write: F,
    /// In RESP2 and RESP3, once a receiver needs it.
    encoded: [Option<Arc<[u8]>>; 2],
}

impl<F: Fn(&mut Reply<'_>)> Message<F> {
    pub fn new(write: F) -> Message<F> {
        Message { write, encoded: [None, None] }
    }

    pub(crate) fn in_version(&mut self, resp3: bool) -> &Arc<[u8]> {
        let write = &self.write;
        self.encoded[usize::from(resp3)].get_or_insert_with(|| {
            let mut out = Vec::new();
            write(&mut Reply { out: &mut out, resp3 });
            out.into()
        })
    }
}

/// Messages of one publisher. Its receivers are notified when it is finished.
pub struct Delivery<'l> {
    broadcast: Broadcast,
    limits: &'l OutputLimits,
    /// The durability LSN of the messages.
    lsn: u64,
    now_ms: u64,
    /// Clients with more unsent bytes than their limit.
    cut: Vec<Arc<Client>>,
    /// Clients that are above their soft limit from now on, and after which time they are judged again.
    watched: Vec<(Arc<Client>, Duration)>,
}

/// Clients that do not read what they get.
pub struct SlowReaders {
    pub cut: Vec<Arc<Client>>,
    pub watched: Vec<(Arc<Client>, Duration)>,
}

impl Delivery<'_> {
    pub fn new(limits: &OutputLimits, lsn: u64, now_ms: u64) -> Delivery<'_> {
        Delivery { broadcast: Broadcast::default(), limits, lsn, now_ms, cut: Vec::new(), watched: Vec::new() }
    }

    pub fn send<F: Fn(&mut Reply<'_>)>(&mut self, client: &Arc<Client>, message: &mut Message<F>) {
        if client.killed.load(Ordering::Relaxed) {
            return;
        }
        self.put(client, message.in_version(client.resp3.load(Ordering::Relaxed)));
    }

    /// Sends an encoded message.
    pub fn put(&mut self, client: &Arc<Client>, bytes: &Arc<[u8]>) {
        let Some(connection) = client.connection.upgrade() else { return };
        let Some(backlog) = self.broadcast.put(&connection, bytes, self.lsn) else { return };
        match self.limits.judge_messages(client, backlog, self.now_ms) {
            Verdict::Within => {}
            Verdict::AboveSoft { again } => self.watched.push((client.clone(), again)),
            Verdict::Exceeded if client.killed.swap(true, Ordering::AcqRel) => {}
            Verdict::Exceeded => self.cut.push(client.clone()),
        }
    }

    /// Notifies the receivers and ends the clients that are cut.
    pub fn finish(self) -> SlowReaders {
        drop(self.broadcast);
        self.cut.iter().filter_map(|client| client.handle()).for_each(|handle| handle.kill());
        SlowReaders { cut: self.cut, watched: self.watched }
    }
}
