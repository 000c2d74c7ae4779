//! What a protocol gives to the pool, and what it gets from it.

use std::any::Any;
use std::sync::Arc;

use crate::connection::Connection;
use crate::tls::{TlsConfig, TlsInfo};

/// A protocol. One value serves all its connections.
pub trait Door: Send + Sync + 'static {
    /// What a connection's state hangs on.
    type Session: Send + 'static;

    /// A connection has come; `Err` is its farewell.
    fn open(&self, connection: &Arc<Connection>) -> Result<Self::Session, Vec<u8>>;

    /// Bytes have come, or the session was woken: runs every complete request of the input and consumes it. Never two at once for one session.
    fn serve(&self, session: &mut Self::Session, io: &mut Io<'_>) -> Flow;

    /// Requests of several sessions have arrived together and will be served next: brings near what they will touch, and marks those that would have to
    /// wait for the disk. Must not wait itself.
    ///
    /// If it marks any, it returns what brings their pages: that is started when the others have been served, is given one call for each
    /// marked session, in order, and makes it when that session can be served too.
    fn look_ahead(&self, _: &mut [Received<'_, Self::Session>]) -> Option<Fetch> {
        None
    }

    /// The connection is gone. Called once for each `open` that succeeded.
    fn close(&self, session: Self::Session);

    /// What to say to a connection beyond the limit.
    fn refuse(&self) -> Vec<u8> {
        Vec::new()
    }
}

/// Starts reads without waiting for them; each of its arguments is called at the end of one of them, in any thread.
pub type Fetch = Box<dyn FnOnce(Vec<Box<dyn FnOnce() + Send>>)>;

/// A session and what has arrived for it.
pub struct Received<'a, S> {
    pub session: &'a mut S,
    pub input: &'a [u8],
    /// Serving it would wait for the disk.
    pub is_deferred: bool,
}

/// How a connection goes on after `serve`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Continue,
    /// Send what is written, when its gate has opened, then close.
    Close,
    /// Close, whatever is unsent.
    CloseNow,
}

/// Input and output of one `serve`.
pub struct Io<'a> {
    pub(crate) input: &'a [u8],
    pub(crate) consumed: usize,
    pub(crate) want: usize,
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) gate: u64,
    pub(crate) park: bool,
    pub(crate) needs_peer: bool,
    /// The length of `out` from which on the session is to pause.
    pub(crate) out_max: usize,
    pub(crate) paused: bool,
    pub(crate) tls: Option<Arc<TlsConfig>>,
    pub(crate) tls_info: Option<TlsInfo>,
    pub(crate) connection: &'a Arc<Connection>,
}

impl<'a> Io<'a> {
    /// Received and not yet consumed. The bytes outlive this borrow of `Io`, so replies can be written while they are looked at.
    #[inline]
    pub fn input(&self) -> &'a [u8] {
        &self.input[self.consumed..]
    }

    /// The first `count` bytes of the input are done with.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        assert!(self.consumed + count <= self.input.len());
        self.consumed += count;
    }

    /// The request at the front needs `count` bytes in all: `serve` is called again only when they are there, received into one buffer of that size.
    pub fn expect(&mut self, count: usize) {
        self.want = count;
    }

    /// Replies go here.
    #[inline]
    pub fn out(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// Everything written in this `serve` stays here until the watermark has reached `position`.
    #[inline]
    pub fn hold_until_durable(&mut self, position: u64) {
        self.gate = self.gate.max(position);
    }

    /// No further input until `Handle::wake`: the session waits for something else, without a thread. The wake may come before `serve` has returned.
    pub fn park(&mut self) {
        self.park = true;
    }

    /// The same, until the peer closes the connection: that ends it, whatever it was parked for.
    pub fn park_for_peer(&mut self) {
        self.park = true;
        self.needs_peer = true;
    }

    pub fn is_parked(&self) -> bool {
        self.park
    }

    /// True if so much waits for the peer that no further request should run: the session leaves the rest of the input and calls `pause`.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.out.len() > self.out_max
    }

    /// Whole requests are left in the input: `serve` is called again when the peer has taken enough (R10).
    pub fn pause(&mut self) {
        self.paused = true;
    }

    /// From here on the connection speaks TLS, for protocols that ask for it in plain words first. What is not consumed is the beginning of it, and the session
    /// sees it no more. The peer waits for TLS, so nothing may be written in this `serve` nor be unsent from before: such a connection is closed.
    pub fn start_tls(&mut self, config: &Arc<TlsConfig>) {
        self.input = &self.input[..self.consumed];
        self.tls = Some(config.clone());
    }

    /// The same for what lies inside of this input and output: of a protocol that wraps another. What the inner one consumes, and whether it pauses, is `consumed` and `is_paused`; its
    /// gate and its parking hold here at once.
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
            want: 0,
            out,
            gate: self.gate,
            park: false,
            needs_peer: false,
            out_max,
            paused: false,
            tls: None,
            tls_info: self.tls_info,
            connection: self.connection,
        };
        let result = serve(&mut inner);
        let (consumed, is_paused) = (inner.consumed, inner.paused);
        self.gate = inner.gate;
        self.park |= inner.park;
        self.needs_peer |= inner.needs_peer;
        Nested { result, consumed, is_paused }
    }

    /// What the connection's bytes are sealed with; None: with nothing.
    pub fn tls_info(&self) -> Option<TlsInfo> {
        self.tls_info
    }

    pub fn connection(&self) -> &'a Arc<Connection> {
        self.connection
    }
}

/// How `Io::inside` went.
pub struct Nested<R> {
    pub result: R,
    pub consumed: usize,
    pub is_paused: bool,
}

/// A session that has been taken out of its connection for a round.
pub(crate) struct Waiting {
    pub session: Box<dyn Any + Send>,
    pub input: Vec<u8>,
    pub is_deferred: bool,
}

/// A door with its session type hidden, so that connections are of one type.
pub(crate) trait AnyDoor: Send + Sync {
    fn open(&self, connection: &Arc<Connection>) -> Result<Box<dyn Any + Send>, Vec<u8>>;
    fn serve(&self, session: &mut (dyn Any + Send), io: &mut Io<'_>) -> Flow;
    fn look_ahead(&self, waiting: &mut [&mut Waiting]) -> Option<Fetch>;
    fn close(&self, session: Box<dyn Any + Send>);
    fn refuse(&self) -> Vec<u8>;
}

fn arrived<'a, D: Door>(waiting: &'a mut [&mut Waiting]) -> Vec<Received<'a, D::Session>> {
    let one = |waiting: &'a mut &mut Waiting| Received {
        session: waiting.session.downcast_mut().expect("made by this door"),
        input: &waiting.input,
        is_deferred: waiting.is_deferred,
    };
    waiting.iter_mut().map(one).collect()
}

impl<D: Door> AnyDoor for D {
    fn open(&self, connection: &Arc<Connection>) -> Result<Box<dyn Any + Send>, Vec<u8>> {
        Ok(Box::new(Door::open(self, connection)?))
    }

    fn serve(&self, session: &mut (dyn Any + Send), io: &mut Io<'_>) -> Flow {
        Door::serve(self, session.downcast_mut().expect("made by this door"), io)
    }

    fn look_ahead(&self, waiting: &mut [&mut Waiting]) -> Option<Fetch> {
        let mut all = arrived::<D>(waiting);
        let fetch = Door::look_ahead(self, &mut all);
        let late: Vec<bool> = all.iter().map(|arrived| arrived.is_deferred).collect();
        waiting
            .iter_mut()
            .zip(late)
            .for_each(|(waiting, is_deferred)| waiting.is_deferred = is_deferred && fetch.is_some());
        fetch
    }

    fn close(&self, session: Box<dyn Any + Send>) {
        Door::close(self, *session.downcast().expect("made by this door"));
    }

    fn refuse(&self) -> Vec<u8> {
        Door::refuse(self)
    }
}
