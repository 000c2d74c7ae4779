//! The send batch of a thread: replies of several connections that leave in one submission.
//!
//! Each send wakes a peer. On the same machine the peer then takes the processor, handles one reply, sleeps again, and the round continues: two context
//! switches for each reply. In one submission all replies are in the sockets before any peer runs, so the peer finds them all. On any machine
//! it is one system call instead of one per connection.
//!
//! Hard part: a connection in the batch stays running until it is sent, so a thread must never stop with a batch that is not empty. It sends at the end of a round, when the batch is
//! full, and before any announced wait (RE-8).

use std::cell::RefCell;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use crate::scratch::{BATCH_MAX, Scratch};
use crate::state::Connection;
use crate::sys;

thread_local! {
    static BATCH: RefCell<Vec<Arc<Connection>>> = const { RefCell::new(Vec::new()) };
}

/// Adds a connection that the calling thread runs and whose output may be sent.
pub(crate) fn enqueue(connection: Arc<Connection>, scratch: &mut Scratch) {
    let is_full = BATCH.with_borrow_mut(|batch| {
        batch.push(connection);
        batch.len() >= BATCH_MAX
    });
    if is_full {
        send(Some(scratch));
    }
}

/// Sends the batch and releases its connections.
pub(crate) fn send(scratch: Option<&mut Scratch>) {
    let mut connections = BATCH.take();
    if connections.is_empty() {
        return;
    }
    let states: Vec<_> = connections.iter().map(|connection| connection.lock_batched()).collect();
    let sends: Vec<_> = connections
        .iter()
        .zip(&states)
        .map(|(connection, state)| (connection.stream.as_fd(), state.batched()))
        .collect();
    let results: Vec<io::Result<usize>> = sys::send_many(&sends);
    drop(sends);
    let mut scratch = scratch;
    for ((connection, state), result) in connections.iter().zip(states).zip(results) {
        connection.batch_sent(state, result, scratch.as_deref_mut());
    }
    connections.clear();
    BATCH.with_borrow_mut(|batch| {
        if batch.capacity() == 0 {
            *batch = connections;
        }
    });
}
