//! The contract between a protocol and the pool.

use std::any::Any;
use std::sync::Arc;

use crate::state::{AnyDoor, Batch, Connection, Fetch, Flow, Io};
use crate::tls::{TlsConfig, TlsInfo};

/// A protocol. One value serves all its connections.
pub trait Door: Send + Sync + 'static {
    /// The state of a connection.
    type Session: Send + 'static;

    /// Makes the session of a new connection. `Err` refuses it and is sent as its last bytes.
    fn open(&self, connection: &Arc<Connection>) -> Result<Self::Session, Vec<u8>>;

    /// Runs every complete request of the input and consumes it. Called when bytes have arrived or the session was woken, never twice at once for one session.
    fn serve(&self, session: &mut Self::Session, io: &mut Io<'_>) -> Flow;

    /// Prepares requests of several sessions that have arrived together and will be served next: prefetches the memory that they will touch, and marks the requests that would
    /// have to wait for the disk as deferred. Must not wait itself.
    ///
    /// If it marks any, it returns the function that fetches their pages. That function is called after the other requests have been served.
    fn look_ahead(&self, _: &mut [Received<'_, Self::Session>]) -> Option<Fetch> {
        None
    }

    /// Ends the session of a connection that has closed. Called once for each `open` that succeeded.
    fn close(&self, session: Self::Session);

    /// Returns the bytes to send to a connection that is refused because of a limit.
    fn refuse(&self) -> Vec<u8> {
        Vec::new()
    }
}

/// A session and the requests that have arrived for it.
pub struct Received<'a, S> {
    pub session: &'a mut S,
    pub input: &'a [u8],
    /// Serving them would wait for the disk.
    pub is_deferred: bool,
}

impl<'a> Io<'a> {
    /// Returns the bytes that are received and not consumed. They outlive this borrow of `Io`, so replies can be written while they are read.
    #[inline]
    pub fn input(&self) -> &'a [u8] {
        &self.input[self.consumed..]
    }

    /// Consumes the first `count` bytes of the input. Panics if there are fewer.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        assert!(self.consumed + count <= self.input.len(), "{count} bytes consumed of {}", self.input().len());
        self.consumed += count;
    }

    /// Announces that the request at the front has `count` bytes in all. `serve` is called again when all of them are there, received into one buffer of that size.
    pub fn expect(&mut self, count: usize) {
        self.needed = count;
    }

    /// Returns the buffer for replies.
    #[inline]
    pub fn out(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// Holds everything that this `serve` writes until the WAL is durable up to `lsn`.
    #[inline]
    pub fn hold_until_durable(&mut self, lsn: u64) {
        self.durability_lsn = self.durability_lsn.max(lsn);
    }

    /// Parks the session: it gets no further input until `Handle::wake`, and holds no thread. The wake may come before `serve` has returned.
    pub fn park(&mut self) {
        self.is_parked = true;
    }

    /// Parks the session until the peer closes the connection at the latest. That ends the connection, whatever the session waits for (RE-19).
    pub fn park_for_peer(&mut self) {
        self.is_parked = true;
        self.closes_with_peer = true;
    }

    pub fn is_parked(&self) -> bool {
        self.is_parked
    }

    /// Returns true if so much output waits for the peer that no further request should run. The session then leaves the rest of the input and calls `pause`.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.out.len() > self.out_max
    }

    /// Leaves whole requests in the input. `serve` is called again when the peer has taken enough output (RE-10).
    pub fn pause(&mut self) {
        self.is_paused = true;
    }

    /// Has more output than the peer takes now, whether or not there is input: `serve` is called again when the peer has taken enough output (RE-10).
    pub fn continue_without_input(&mut self) {
        self.continues = true;
    }

    /// Starts TLS, for protocols that request it in plain text first. Input that is not consumed is the beginning of the TLS stream and is hidden from the session.
    /// The peer waits for TLS, so this `serve` must write nothing and no earlier output may be unsent: otherwise the connection is closed.
    pub fn start_tls(&mut self, config: &Arc<TlsConfig>) {
        self.input = &self.input[..self.consumed];
        self.tls = Some(config.clone());
    }

    /// Serves a stream that is nested in this one, for a protocol that wraps another. `serve` sees `input` and `out` as the whole connection. Its durability LSN and its parking
    /// apply to this connection at once; the caller handles the consumed bytes and the pause.
    pub fn nested<'b, R>(
        &mut self,
        input: &'b [u8],
        out: &mut Vec<u8>,
        serve: impl FnOnce(&mut Io<'_>) -> R,
    ) -> Nested<R>
    where
        'a: 'b,
    {
        let out_max = self.out_max.saturating_sub(self.out.len());
        let mut inner = Io {
            input,
            consumed: 0,
            needed: 0,
            out,
            durability_lsn: self.durability_lsn,
            is_parked: false,
            closes_with_peer: false,
            out_max,
            is_paused: false,
            continues: false,
            tls: None,
            tls_info: self.tls_info,
            connection: self.connection,
        };
        let result = serve(&mut inner);
        let (consumed, is_paused) = (inner.consumed, inner.is_paused);
        self.durability_lsn = inner.durability_lsn;
        self.is_parked |= inner.is_parked;
        self.closes_with_peer |= inner.closes_with_peer;
        Nested { result, consumed, is_paused }
    }

    /// Returns the TLS version and cipher of the connection; None without TLS.
    pub fn tls_info(&self) -> Option<TlsInfo> {
        self.tls_info
    }

    pub fn connection(&self) -> &'a Arc<Connection> {
        self.connection
    }
}

/// The outcome of `Io::nested`.
pub struct Nested<R> {
    pub result: R,
    pub consumed: usize,
    pub is_paused: bool,
}

fn received<'a, D: Door>(batches: &'a mut [&mut Batch]) -> Vec<Received<'a, D::Session>> {
    let one = |batch: &'a mut &mut Batch| Received {
        session: batch.session.downcast_mut().expect("a session of this door"),
        input: &batch.input,
        is_deferred: batch.is_deferred,
    };
    batches.iter_mut().map(one).collect()
}

impl<D: Door> AnyDoor for D {
    fn open(&self, connection: &Arc<Connection>) -> Result<Box<dyn Any + Send>, Vec<u8>> {
        Ok(Box::new(Door::open(self, connection)?))
    }

    fn serve(&self, session: &mut (dyn Any + Send), io: &mut Io<'_>) -> Flow {
        Door::serve(self, session.downcast_mut().expect("a session of this door"), io)
    }

    fn look_ahead(&self, batches: &mut [&mut Batch]) -> Option<Fetch> {
        let mut all = received::<D>(batches);
        let fetch = Door::look_ahead(self, &mut all);
        let deferred: Vec<bool> = all.iter().map(|received| received.is_deferred).collect();
        batches
            .iter_mut()
            .zip(deferred)
            .for_each(|(batch, is_deferred)| batch.is_deferred = is_deferred && fetch.is_some());
        fetch
    }

    fn close(&self, session: Box<dyn Any + Send>) {
        Door::close(self, *session.downcast().expect("a session of this door"));
    }

    fn refuse(&self) -> Vec<u8> {
        Door::refuse(self)
    }
}
