//! Connections, and pools of them: one login each, any number of sessions.

use std::collections::HashSet;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use prost::Message;

use crate::argument::Argument;
use crate::auth;
use crate::error::Error;
use crate::frame::{self, TOP, answer, ask};
use crate::link::{self, Link};
use crate::message::{self, AuthenticateContinue, AuthenticateStart, GetTso, KillKind, KillSession, ResultTso};
use crate::request::{Digest, Request};
use crate::session::{Answer, Session};

/// Where the server is, who comes, and how long is waited.
#[derive(Clone, Debug)]
pub struct Options {
    pub address: String,
    pub user: String,
    pub password: String,
    /// For the connection and for its login.
    pub connect_timeout: Duration,
    /// For the next piece of an answer; a session that waits longer is ended. None waits for ever.
    pub answer_timeout: Option<Duration>,
}

impl Options {
    /// `root` without a password, at an address like `127.0.0.1:33660`.
    pub fn new(address: impl Into<String>) -> Options {
        Options {
            address: address.into(),
            user: "root".into(),
            password: String::new(),
            connect_timeout: Duration::from_secs(10),
            answer_timeout: None,
        }
    }

    pub fn login(self, user: impl Into<String>, password: impl Into<String>) -> Options {
        Options { user: user.into(), password: password.into(), ..self }
    }

    pub fn answer_timeout(self, timeout: Duration) -> Options {
        Options { answer_timeout: Some(timeout), ..self }
    }
}

/// State shared by all connections to a server.
pub(crate) struct Server {
    pub options: Options,
    /// Digests that the server has been given. It may have forgotten some.
    known: Mutex<HashSet<Digest>>,
}

/// More than servers keep by default; beyond it none is known, which costs a text each.
const KNOWN_MAX: usize = 4096;

impl Server {
    fn new(options: Options) -> Server {
        Server { options, known: Mutex::default() }
    }

    pub fn knows(&self, digest: &Digest) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).contains(digest)
    }

    pub fn learns(&self, digest: Digest) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(digest);
    }

    pub fn until(&self) -> Option<Instant> {
        self.options.answer_timeout.map(|timeout| Instant::now() + timeout)
    }
}

/// Session numbers are never reused in a process, so that a late frame finds no session (CX-2).
static NEXT_SID: AtomicU64 = AtomicU64::new(2);

pub(crate) fn next_sid() -> u64 {
    NEXT_SID.fetch_add(1, Ordering::Relaxed)
}

/// Held by connections and sessions; the connection ends with the last of them. The reader holds the link alone.
pub(crate) struct Hold {
    pub link: Arc<Link>,
    pub server: Arc<Server>,
    pub session_count: AtomicUsize,
    /// Answers on session 0 have no number but their order, so one thread at a time asks there.
    control: Mutex<()>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.link.end();
    }
}

/// A TCP connection that is logged in. Clones are the same connection.
#[derive(Clone)]
pub struct Connection {
    hold: Arc<Hold>,
}

impl Connection {
    pub fn open(options: &Options) -> Result<Connection, Error> {
        Connection::to(&Arc::new(Server::new(options.clone())))
    }

    fn to(server: &Arc<Server>) -> Result<Connection, Error> {
        let stream = connect(&server.options)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(server.options.connect_timeout))?;
        let rest = login(&stream, &server.options)?;
        stream.set_read_timeout(None)?;
        let link = Arc::new(Link::new(stream));
        let reader = link.clone();
        thread::Builder::new().name("xrpc-reader".into()).spawn(move || reader.read(rest))?;
        let (session_count, control) = (AtomicUsize::new(0), Mutex::default());
        Ok(Connection { hold: Arc::new(Hold { link, server: server.clone(), session_count, control }) })
    }

    /// A session of its own. The server hears of it with its first statement.
    pub fn session(&self) -> Result<Session, Error> {
        Session::new(self.hold.clone(), next_sid())
    }

    /// One statement in a session that the server has ready: outside of transactions, without chunks and digests.
    pub fn execute(&self, sql: &str, arguments: &[Argument<'_>]) -> Result<Answer, Error> {
        self.run(&Request::text(sql).with(arguments))
    }

    /// As `execute`, for a request of a text.
    pub fn run(&self, request: &Request<'_>) -> Result<Answer, Error> {
        Session::new(self.hold.clone(), next_sid() | TOP)?.run(request)?.collect()
    }

    /// Asks whether the server is there. The answer tells what it can do, which so far is one thing.
    pub fn ping(&self) -> Result<message::Capabilities, Error> {
        let _one = self.hold.control.lock().unwrap_or_else(PoisonError::into_inner);
        let payload = self.ask(0, answer::CAPABILITIES, |out| frame::put(out, 0, ask::CAPABILITIES_GET, |_| ()))?;
        Ok(message::Capabilities::decode(&payload[..])?)
    }

    /// The first of `count` timestamps, which lie 64 apart from it on. They grow, across restarts too.
    pub fn timestamp(&self, count: i32) -> Result<u64, Error> {
        let sid = next_sid();
        let message = GetTso { leader_name: Vec::new(), batch_count: count };
        let payload = self.ask(sid, answer::TSO, |out| frame::put_message(out, sid, ask::GET_TSO, &message))?;
        Ok(ResultTso::decode(&payload[..])?.ts)
    }

    /// A question of one frame with an answer of one frame.
    fn ask(&self, sid: u64, expected: u8, write: impl FnOnce(&mut Vec<u8>)) -> Result<Vec<u8>, Error> {
        let Hold { link, server, .. } = &*self.hold;
        let (mut out, mut received) = (Vec::new(), Vec::new());
        write(&mut out);
        link.open(sid)?;
        let came = link.send(&out).and_then(|()| link.receive(sid, &mut received, server.until()));
        link.close(sid);
        came?;
        match frame::cut(&received)? {
            Some(frame) if frame.kind == expected => Ok(frame.payload.to_vec()),
            Some(frame) if frame.kind == answer::ERROR => {
                Err(Error::Server(message::Error::decode(frame.payload)?.into()))
            }
            other => Err(Error::Protocol(format!("{other:?} where a frame of type {expected} was expected"))),
        }
    }

    pub fn is_lost(&self) -> bool {
        self.hold.link.is_lost()
    }

    /// Sessions that are open.
    pub fn session_count(&self) -> usize {
        self.hold.session_count.load(Ordering::Relaxed)
    }
}

fn connect(options: &Options) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, format!("{}: no address", options.address));
    for address in options.address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, options.connect_timeout) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Logs in by MYSQL41 on a blocking connection, for a caller that reads the connection itself afterwards. Returns the bytes after the answer: none, unless the server sends something unasked.
pub fn login(stream: &TcpStream, options: &Options) -> Result<Vec<u8>, Error> {
    let mut buffer = Vec::new();
    let start = AuthenticateStart { mech_name: "MYSQL41".into(), ..AuthenticateStart::default() };
    let salt = login_step(stream, &mut buffer, ask::AUTHENTICATE_START, &start, answer::AUTHENTICATE_CONTINUE)?;
    let salt = AuthenticateContinue::decode(&salt[..])?.auth_data;
    let proof = AuthenticateContinue { auth_data: auth::response(&options.user, &options.password, &salt, "") };
    login_step(stream, &mut buffer, ask::AUTHENTICATE_CONTINUE, &proof, answer::AUTHENTICATE_OK)?;
    Ok(buffer)
}

fn login_step(
    stream: &TcpStream,
    buffer: &mut Vec<u8>,
    kind: u8,
    message: &impl Message,
    expected: u8,
) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    frame::put_message(&mut out, 0, kind, message);
    io::Write::write_all(&mut &*stream, &out)?;
    loop {
        let (kind, payload) = link::read_frame(stream, buffer)?;
        match kind {
            // A server may send the connection's number before the login is complete.
            answer::NOTICE => {}
            answer::ERROR => return Err(Error::Server(message::Error::decode(&payload[..])?.into())),
            kind if kind == expected => return Ok(payload),
            other => return Err(Error::Protocol(format!("a frame of type {other} during the login"))),
        }
    }
}

/// Ends what a session does, from any thread.
#[derive(Clone)]
pub struct Killer {
    pub(crate) hold: Arc<Hold>,
    pub(crate) sid: u64,
}

impl Killer {
    /// The running statement ends with error 1317; nothing happens if there is none.
    pub fn statement(&self) -> Result<(), Error> {
        self.kill(KillKind::Query)
    }

    /// The session ends; what is open is rolled back.
    pub fn session(&self) -> Result<(), Error> {
        self.kill(KillKind::Connection)
    }

    fn kill(&self, kind: KillKind) -> Result<(), Error> {
        let mut out = Vec::new();
        let message = KillSession { kind: kind as i32, x_session_id: self.sid };
        frame::put_message(&mut out, self.sid, ask::SESSION_KILL, &message);
        self.hold.link.send(&out)
    }
}

/// A few connections for many sessions.
pub struct Pool {
    server: Arc<Server>,
    connections_max: usize,
    connections: Mutex<Vec<Connection>>,
}

impl Pool {
    /// Opens the first connection, so that a wrong address or password is known at once; others when there is a session for them.
    pub fn open(options: Options, connections_max: usize) -> Result<Pool, Error> {
        let server = Arc::new(Server::new(options));
        let first = Connection::to(&server)?;
        Ok(Pool { server, connections_max: connections_max.max(1), connections: Mutex::new(vec![first]) })
    }

    /// A session on the connection that has the fewest.
    pub fn session(&self) -> Result<Session, Error> {
        self.connection()?.session()
    }

    /// The connection with the fewest sessions. A lost one is replaced.
    pub fn connection(&self) -> Result<Connection, Error> {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.retain(|connection| !connection.is_lost());
        let least = connections.iter().min_by_key(|connection| connection.session_count());
        match least {
            Some(least) if least.session_count() == 0 || connections.len() >= self.connections_max => Ok(least.clone()),
            _ => {
                let new = Connection::to(&self.server)?;
                connections.push(new.clone());
                Ok(new)
            }
        }
    }

    /// One statement outside of any session; see `Connection::execute`.
    pub fn execute(&self, sql: &str, arguments: &[Argument<'_>]) -> Result<Answer, Error> {
        self.connection()?.execute(sql, arguments)
    }
}
