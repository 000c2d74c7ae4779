//! Beginning and ending to follow another server.

use std::sync::Arc;
use std::time::Duration;

use engine::{Error, FollowWriter, Lsn};
use stdx::sync::atomic::Ordering;

use crate::clients::UNBLOCK_ROLE;
use crate::replica::note::{HOST_MAX, Note};
use crate::replica::state::{Following, LinkFacts};
use crate::shared::Shared;

/// How long a stop waits for the thread of the link.
const END_MAX: Duration = Duration::from_secs(2);

/// The outcome of REPLICAOF.
pub enum Followed {
    /// Durable from this LSN on.
    Begun(Lsn),
    Already,
}

/// Follows a server, from now on and after a restart.
pub fn follow(shared: &Shared, host: &str, port: u16) -> Result<Followed, Error> {
    if host.len() > HOST_MAX {
        return Err(Error::TooLarge { what: "host", limit: HOST_MAX as u64 });
    }
    let _changing = shared.replica.changing.lock();
    if let Some(present) = shared.replica.present()
        && present.host.eq_ignore_ascii_case(host)
        && present.port == port
        && !present.facts.lock().has_given_up
    {
        return Ok(Followed::Already);
    }
    // Another server may continue the same history: it asks for that, and gets all of it anew if not.
    let progress = shared.keyspace.follow_note()?.and_then(|note| Note::decode(&note)?.progress);
    let note = Note { host: host.to_owned(), port, progress };
    let (writer, lsn) = shared.keyspace.follow(&note.encode())?;
    start(shared, note, writer)?;
    unblock(shared);
    Ok(Followed::Begun(lsn))
}

/// Follows nobody any more. The keys stay as they are.
pub fn follow_nobody(shared: &Shared) -> Result<Lsn, Error> {
    let _changing = shared.replica.changing.lock();
    let lsn = shared.keyspace.end_follow()?;
    shared.replica.replace(None);
    Ok(lsn)
}

fn start(shared: &Shared, note: Note, writer: FollowWriter) -> Result<(), Error> {
    let facts = match &note.progress {
        Some(progress) => LinkFacts {
            id: Some(progress.id.clone()),
            offset: progress.offset,
            read_offset: progress.offset,
            ..LinkFacts::default()
        },
        None => LinkFacts::default(),
    };
    let following = Arc::new(Following::new(note.host, note.port, writer, facts));
    shared.replica.replace(Some(following.clone()));
    match shared.replica.start.get() {
        Some(start) => start(following, note.progress).map_err(Error::Io),
        None => Err(Error::Misuse("a link without its thread")),
    }
}

/// Ends the waits of blocked clients, whose commands a replica does not run.
fn unblock(shared: &Shared) {
    for client in shared.clients.list() {
        if client.waits.load(Ordering::Acquire) {
            client.unblock.store(UNBLOCK_ROLE, Ordering::Release);
            if let Some(handle) = client.handle() {
                handle.wake();
            }
        }
    }
}

/// Follows the server again that was followed before the restart, if there is one.
pub fn resume(shared: &Shared) -> Result<(), Error> {
    let _changing = shared.replica.changing.lock();
    if shared.replica.is_following() {
        return Ok(());
    }
    let Some(bytes) = shared.keyspace.follow_note()? else { return Ok(()) };
    let Some(note) = Note::decode(&bytes) else {
        return Err(Error::Format("the note about the server that is followed has an unknown form".into()));
    };
    let (writer, _) = shared.keyspace.follow(&bytes)?;
    start(shared, note, writer)
}

/// Ends the link, because this server stops. The next start continues.
pub fn end(shared: &Shared) {
    let _changing = shared.replica.changing.lock();
    if let Some(following) = shared.replica.present() {
        following.end();
        following.wait_for_end(END_MAX);
    }
}
