//! An event source besides the sockets that the threads of a group poll, such as the group's asynchronous page reads.

use std::os::fd::OwnedFd;

/// The functions that the threads of one group call for an event source (RE-11).
pub struct EventSource {
    /// Readable while there are completions. It is registered edge-triggered in the group's epoll set.
    pub fd: OwnedFd,
    /// Called by each thread of the group when it starts.
    pub enter: Box<dyn Fn() + Send + Sync>,
    /// Submits the requests that sessions have made since the last call. Called by each thread at the end of a round, and before it waits inside one.
    pub submit: Box<dyn Fn() + Send + Sync>,
    /// Processes completions without waiting. Called by each thread before it looks at the queue and waits for events.
    pub poll: Box<dyn Fn() + Send + Sync>,
}
