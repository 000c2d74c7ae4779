//! The thread that follows another server: it connects, again and again, until it is ended or must give up.

use std::sync::Arc;
use std::time::Duration;

use engine::{KeyTransaction, Lsn};

use crate::replica::full_sync::{of_engine, receive};
use crate::replica::handshake::{SyncAnswer, shake_hands};
use crate::replica::link::{Break, Link};
use crate::replica::note::{Note, StreamPosition};
use crate::replica::state::{Following, Stage};
use crate::replica::stream::Stream;
use crate::shared::Shared;

/// The wait before a new try. It doubles up to the longest.
const WAIT_MIN: Duration = Duration::from_millis(100);
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Follows the server until the link is ended.
pub fn run(shared: &Arc<Shared>, following: &Arc<Following>, progress: Option<StreamPosition>) {
    let _entered = following.enter();
    let mut tries = Tries { progress, wait: WAIT_MIN, told: None };
    loop {
        let broken = tries.follow(shared, following);
        following.hold(None);
        let (text, may_try) = match broken {
            Err(Break::Lost(text)) => (text, true),
            Err(Break::Refused(text)) => (text, false),
            Ok(()) | Err(Break::Ended) => return,
        };
        if following.is_ended() {
            return;
        }
        {
            let mut facts = following.facts.lock();
            facts.stage = Stage::Connect;
            facts.trouble = Some(text.clone());
            facts.has_given_up = !may_try;
            facts.down_since_ms.get_or_insert(shared.clock.wall_ms());
        }
        let master = following.address();
        if !may_try {
            // The data must not differ silently (DR-19, D32-3).
            let text = format!(
                "replication has stopped, and writes stay refused: {text}; REPLICAOF tries again, REPLICAOF NO ONE ends it"
            );
            return shared.host.warn(&text, &master);
        }
        if tries.told.as_ref() != Some(&text) {
            shared.host.warn(&format!("the master is not followed: {text}; it is tried again"), &master);
            tries.told = Some(text);
        }
        following.pause(tries.wait);
        tries.wait = (tries.wait * 2).min(WAIT_MAX);
    }
}

struct Tries {
    progress: Option<StreamPosition>,
    wait: Duration,
    /// The trouble that was logged.
    told: Option<String>,
}

impl Tries {
    fn follow(&mut self, shared: &Arc<Shared>, following: &Following) -> Result<(), Break> {
        let mut link = Link::connect(shared, following)?;
        following.facts.lock().stage = Stage::Handshake;
        let (progress, lsn) = match (shake_hands(&mut link, self.progress.as_ref())?, &mut self.progress) {
            (SyncAnswer::Continue { id }, Some(progress)) => {
                let lsn = match id {
                    Some(id) if id != progress.id => {
                        progress.id = id;
                        store(shared, following, progress)?
                    }
                    _ => 0,
                };
                shared.host.inform(
                    &format!("the master continues its stream behind offset {}", progress.offset),
                    &following.address(),
                );
                (progress.clone(), lsn)
            }
            (SyncAnswer::Full { id, offset }, _) => {
                shared.host.inform("a full synchronisation begins", &following.address());
                following.facts.lock().stage = Stage::Sync;
                let synchronised = receive(&mut link, id, offset)?;
                shared.host.inform("the full synchronisation is done", &following.address());
                synchronised
            }
            (SyncAnswer::Continue { .. }, None) => return Err(Break::Lost("it continues what was not begun".into())),
        };
        {
            let mut facts = following.facts.lock();
            facts.stage = Stage::Connected;
            (facts.trouble, facts.down_since_ms) = (None, None);
            (facts.id, facts.offset, facts.read_offset) = (Some(progress.id.clone()), progress.offset, progress.offset);
        }
        (self.wait, self.told) = (WAIT_MIN, None);
        let mut stream = Stream::new(progress, lsn);
        let broken = stream.follow(&mut link);
        self.progress = Some(stream.into_progress());
        broken
    }
}

/// Stores a note whose history has got a new id.
fn store(shared: &Shared, following: &Following, progress: &StreamPosition) -> Result<Lsn, Break> {
    let note = Note { host: following.host.clone(), port: following.port, progress: Some(progress.clone()) }.encode();
    let put = |txn: &mut KeyTransaction<'_>| txn.put_note(&note);
    let stored = shared.keyspace.write_following::<(), engine::Error>(following.writer, Some(Vec::new()), put);
    stored.map(|((), lsn)| lsn).map_err(of_engine)
}
