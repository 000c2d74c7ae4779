//! The session of a server that follows: it gets an RDB file, and then the history from the file's instant on (DR-21).
//!
//! No thread waits. The thread that writes the file wakes the session, and so does whoever appends to the history; a peer that takes nothing leaves the rest of
//! the history where it is, shared by all followers.

use std::sync::Arc;

use reactor::{Flow, Io};

use super::Session;
use super::feed_state::Feed;
use crate::parser::Parsed;
use crate::reply::Reply;
use crate::saves::write::{NotBegun, start};
use crate::saves::{FileContents, SaveKind, SaveReply, SaveSlot};
use crate::source::followers::{FollowStage, Follower};

/// Bytes of the history that are copied at once.
const PIECE_BYTES: usize = 64 << 10;
/// How long a follower that waits for its file hears nothing, in milliseconds.
const BLANK_MS: u64 = 1000;

impl Session {
    /// Makes the session one of a follower, which gets a file first unless it is online.
    pub(crate) fn begin_feed(&mut self, follower: Arc<Follower>, asks_for_id: bool) {
        let (takes_mark, blank_ms) = (self.sync.takes_mark, self.now_ms());
        let contents = FileContents { field_times: self.sync.takes_field_times, ..FileContents::ALL };
        self.client.is_replica.store(true, stdx::sync::atomic::Ordering::Relaxed);
        self.feed = Some(Feed { follower, asks_for_id, takes_mark, contents, slot: None, blank_ms });
    }

    pub(crate) fn end_feed(&mut self) {
        if let Some(feed) = self.feed.take() {
            self.shared.history.lock().leave(&feed.follower, self.shared.clock.wall_ms());
        }
    }

    /// Sends what there is for the follower, and reads what it says.
    pub(super) fn serve_feed(&mut self, io: &mut Io<'_>) -> Flow {
        let Some(follower) = self.feed.as_ref().map(|feed| feed.follower.clone()) else { return Flow::Continue };
        follower.begin_run();
        let is_killed = self.client.killed.load(stdx::sync::atomic::Ordering::Acquire);
        if follower.is_cut() || is_killed || !self.hear(io, &follower) {
            return Flow::CloseNow;
        }
        if follower.stage() == FollowStage::WaitsForFile && !self.wait_for_feed(io, &follower) {
            return Flow::Close;
        }
        if follower.stage() == FollowStage::GetsFile {
            follower.hear(self.now_ms());
            let Some(file) = &mut self.spool else { return Flow::CloseNow };
            match file.send(io) {
                Ok(true) => {}
                Ok(false) => {
                    io.continue_without_input();
                    return Flow::Continue;
                }
                // Part of the file has been sent, so an error cannot be told any more.
                Err(_) => return Flow::CloseNow,
            }
            self.spool = None;
            follower.enter_online(self.feed.as_ref().is_some_and(|feed| feed.takes_mark));
        }
        if follower.takes_history() && !self.send_history(io, &follower) {
            return Flow::CloseNow;
        }
        Flow::Continue
    }

    /// Takes the file when it is written, or sees that it is begun. Returns false if there will be none.
    fn wait_for_feed(&mut self, io: &mut Io<'_>, follower: &Arc<Follower>) -> bool {
        let now = self.now_ms();
        let Some(feed) = &mut self.feed else { return false };
        if let Some(ended) = feed.slot.as_ref().and_then(SaveSlot::take) {
            match ended {
                SaveReply::Written(head, file) => {
                    if feed.asks_for_id {
                        let id = self.shared.history.lock().id.clone();
                        let line = format!("+FULLRESYNC {id} {}\r\n", follower.next());
                        io.out().extend_from_slice(line.as_bytes());
                    }
                    io.out().extend_from_slice(head.as_bytes());
                    self.spool = Some(*file);
                    follower.enter(FollowStage::GetsFile);
                    return true;
                }
                SaveReply::Failed(text) => {
                    self.reply(io.out()).error(&text);
                    return false;
                }
                SaveReply::Saved | SaveReply::Started | SaveReply::Done(..) => return false,
            }
        }
        if feed.slot.is_none() {
            let (shared, of_instant) = (self.shared.clone(), follower.clone());
            let at_instant = Arc::new(move || shared.attach_follower(&of_instant));
            let slot = SaveSlot::new(self.client.handle()).at_instant(at_instant);
            let kind = SaveKind::Send { is_marked: feed.takes_mark, contents: feed.contents };
            match start(&self.shared, kind, slot.clone()) {
                Ok(()) => feed.slot = Some(slot),
                // It begins when that one is written.
                Err(NotBegun::Running(_)) => self.ask_again(),
                Err(NotBegun::Failed(text)) => {
                    Reply { out: io.out(), resp3: false }.error(&text);
                    return false;
                }
            }
        }
        let Some(feed) = &mut self.feed else { return false };
        if now.saturating_sub(feed.blank_ms) >= BLANK_MS {
            feed.blank_ms = now;
            io.out().push(b'\n');
        }
        true
    }

    /// Lets the session run again in a second.
    fn ask_again(&self) {
        if let (Some(pool), Some(handle)) = (self.shared.pool(), self.client.handle()) {
            pool.timer(std::time::Duration::from_millis(BLANK_MS), Box::new(move || handle.ask()));
        }
    }

    /// Reads acknowledgements. Returns false if the peer does not speak the protocol.
    fn hear(&mut self, io: &mut Io<'_>, follower: &Follower) -> bool {
        let (input, now) = (io.input(), self.now_ms());
        loop {
            match self.parser.next(input, &self.limits()) {
                Parsed::Request(request) => {
                    let mut args = Vec::new();
                    if !request.inline {
                        self.push_args(input, &request, &mut args);
                    }
                    follower.hear(now);
                    let is_ack = args.len() >= 3
                        && args[0].eq_ignore_ascii_case(b"replconf")
                        && args[1].eq_ignore_ascii_case(b"ack");
                    if let Some(offset) = args.get(2).filter(|_| is_ack).and_then(|text| crate::number::parse(text)) {
                        follower.acknowledge(offset.max(0) as u64, now);
                        self.shared.history.acknowledged();
                    }
                }
                Parsed::Partial { .. } => {
                    let start = self.parser.start();
                    self.consume(io, start);
                    return true;
                }
                Parsed::Invalid(_) => return false,
            }
        }
    }

    /// Sends as much of the history as the peer takes. Returns false if the history does not have the follower's offset any more.
    fn send_history(&mut self, io: &mut Io<'_>, follower: &Follower) -> bool {
        let before = follower.next();
        let mut at = before;
        let is_whole = loop {
            if io.is_full() {
                io.continue_without_input();
                break true;
            }
            let Some((count, lsn)) = self.shared.history.read(at, PIECE_BYTES, io.out()) else { break false };
            if count == 0 {
                break true;
            }
            // What a crash takes back must not be told (DR-22).
            io.hold_until_durable(lsn);
            at += count as u64;
            follower.advance_to(at);
        };
        if at > before {
            // A peer that takes bytes is alive.
            follower.hear(self.now_ms());
        }
        is_whole
    }
}
