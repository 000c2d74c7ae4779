//! Replies of a round, sent together.
//!
//! Each send wakes a peer. On the same machine the peer then takes the processor, handles one reply, sleeps again, and the round goes on: two context
//! switches for each reply. In one submission all replies are in the sockets before anybody else runs, so the peer finds them all. On any machine
//! it is one system call instead of one for each connection.
//!
//! Hard part: between being put up and being sent a connection still belongs to the thread that ran it (its turn stays taken), so a thread must never
//! stop with something in its outbox: it sends at the end of a round, when the outbox is full, and before any announced wait (R8).

use std::cell::RefCell;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use crate::connection::Connection;
use crate::scratch::Scratch;
use crate::sys;

/// Connections whose output goes out in one submission.
pub const OUTBOX_MAX: usize = 64;

thread_local! {
    static OUTBOX: RefCell<Vec<Arc<Connection>>> = const { RefCell::new(Vec::new()) };
}

/// Puts up a connection that the calling thread runs and whose output may go.
pub fn put(connection: Arc<Connection>, scratch: &mut Scratch) {
    let full = OUTBOX.with_borrow_mut(|outbox| {
        outbox.push(connection);
        outbox.len() >= OUTBOX_MAX
    });
    if full {
        send(Some(scratch));
    }
}

/// Sends what is put up and gives the connections free.
pub fn send(scratch: Option<&mut Scratch>) {
    let mut connections = OUTBOX.take();
    if connections.is_empty() {
        return;
    }
    let guards: Vec<_> = connections.iter().map(|connection| connection.lock_put_up()).collect();
    let sends: Vec<_> = connections
        .iter()
        .zip(&guards)
        .map(|(connection, guard)| (connection.stream().as_fd(), guard.put_up()))
        .collect();
    let results: Vec<io::Result<usize>> = sys::send_many(&sends);
    drop(sends);
    let mut scratch = scratch;
    for ((connection, guard), result) in connections.iter().zip(guards).zip(results) {
        connection.sent(guard, result, scratch.as_deref_mut());
    }
    connections.clear();
    OUTBOX.with_borrow_mut(|outbox| {
        if outbox.capacity() == 0 {
            *outbox = connections;
        }
    });
}
