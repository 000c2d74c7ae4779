//! A session that waits for an RDB file, for the instant of one, or for MIGRATE. No thread waits; the thread that writes the file leaves the reply and wakes the session.

use reactor::Io;
use stdx::sync::atomic::Ordering;

use super::{Replies, Session};
use crate::command::Command;
use crate::reply::Reply;
use crate::saves::{SaveReply, SaveSlot, Saving};

impl Session {
    /// Makes the session wait for a reply when its command has returned.
    pub(crate) fn wait_for_save(&mut self, slot: SaveSlot, command: &'static Command) {
        let is_muted = self.replies != Replies::On;
        self.saving = Some(Saving { slot, is_muted, command: command.index(), head: None, size: 0 });
    }

    /// Makes the session wait for a file, which it sends behind `head`.
    pub(crate) fn wait_for_file(&mut self, slot: SaveSlot, command: &'static Command, head: String) {
        self.wait_for_save(slot, command);
        if let Some(saving) = &mut self.saving {
            saving.head = Some(head);
        }
    }

    /// Parks the session that waits.
    pub(super) fn park_saving(&self, io: &mut Io<'_>) {
        self.client.state.lock().parked = true;
        io.park_for_peer();
    }

    /// Continues a session if its wait has ended. Returns false if it still waits.
    pub(super) fn wake_saving(&mut self, io: &mut Io<'_>) -> bool {
        let Some(saving) = &mut self.saving else { return true };
        let Some(ended) = saving.slot.take() else {
            io.park_for_peer();
            return false;
        };
        let mark = io.out().len();
        let mut reply = Reply { out: io.out(), resp3: self.resp3 };
        match ended {
            SaveReply::Saved => reply.ok(),
            SaveReply::Done(text, lsn) => {
                reply.simple(text);
                self.durability_lsn = self.durability_lsn.max(lsn);
                // WAIT waits for the followers to have that.
                self.written_to.store(self.shared.history.end(), Ordering::Relaxed);
            }
            SaveReply::Started => reply.simple("Background saving started"),
            SaveReply::Written(head, mut spool) => {
                let before = saving.head.take().unwrap_or_default();
                reply.out.extend_from_slice(before.as_bytes());
                reply.out.extend_from_slice(head.as_bytes());
                spool.size = saving.size;
                (self.spool, self.closing) = (Some(*spool), true);
            }
            SaveReply::Failed(text) => {
                reply.error(&text);
                let stats = &self.shared.stats;
                stats.commands[saving.command].failed.add(1);
                stats.count_error(&reply.out[mark..]);
                io.consume(saving.size);
            }
        }
        if saving.is_muted {
            io.out().truncate(mark);
        }
        self.saving = None;
        self.client.state.lock().parked = false;
        true
    }
}
