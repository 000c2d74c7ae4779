//! Ports and admission: accepting connections, refusing those beyond a limit, and running out of file descriptors.
//!
//! Hard part: a process without descriptors cannot even accept a connection to refuse it, and an edge-triggered listener reports its backlog only once. A reserve descriptor and one retry
//! timer for the whole pool solve both (RE-16).

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use stdx::sync::RwLock;
use stdx::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::group::TOKEN_PORT;
use crate::shared::Shared;
use crate::state::{AnyDoor, Connection, Group};
use crate::sys::{self, EventFd};
use crate::tls::{Tls, TlsConfig};

/// How long accept pauses after an error that only time can resolve, such as a process without file descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Connections of one port that are refused at once when descriptors have run out. The others wait for the retry.
const REFUSED_AT_ONCE: usize = 64;

/// The options of a port.
#[derive(Clone, Debug, Default)]
pub struct ListenOptions {
    /// The most connections of this port; 0 leaves the limit of the pool alone.
    pub max_connections: usize,
    /// Connections use TLS from the first byte. A client that does not is sent a TLS alert and disconnected.
    pub tls: Option<Arc<TlsConfig>>,
}

/// A port of a door, with one listening socket per group.
struct Port {
    door: Arc<dyn AnyDoor>,
    sockets: Vec<TcpListener>,
    options: ListenOptions,
}

pub(crate) struct Acceptor {
    groups: Arc<[Arc<Group>]>,
    shared: Arc<Shared>,
    ports: RwLock<Vec<Port>>,
    next_id: AtomicU64,
    /// Held open so that it can be closed to accept one more connection and refuse it with the door's message (RE-16). None while even that descriptor is lost. Every accept holds the
    /// lock: shared, or exclusive while the reserve is closed, so that no other group's accept takes the reserve's descriptor.
    reserve: RwLock<Option<EventFd>>,
    /// A retry is scheduled. There is one for the whole pool, however many ports have failed.
    is_retry_scheduled: AtomicBool,
    on_exhausted: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Acceptor {
    /// Makes an acceptor and registers it with the groups' threads.
    pub fn new(groups: Arc<[Arc<Group>]>, shared: Arc<Shared>) -> io::Result<Arc<Acceptor>> {
        let acceptor = Arc::new(Acceptor {
            groups,
            shared,
            ports: RwLock::default(),
            next_id: AtomicU64::new(1),
            reserve: RwLock::new(Some(EventFd::new()?)),
            is_retry_scheduled: AtomicBool::new(false),
            on_exhausted: OnceLock::new(),
        });
        let weak = Arc::downgrade(&acceptor);
        let on_connections = move |group, port| {
            if let Some(acceptor) = weak.upgrade() {
                acceptor.accept(group, port);
            }
        };
        assert!(acceptor.shared.on_connections.set(Box::new(on_connections)).is_ok(), "a pool has one acceptor");
        Ok(acceptor)
    }

    /// Opens a port for a door. Returns its address.
    pub fn listen(
        &self,
        address: SocketAddr,
        door: Arc<dyn AnyDoor>,
        options: ListenOptions,
    ) -> io::Result<SocketAddr> {
        let backlog = self.shared.settings.tcp_listen_queue;
        let first = sys::listen(address, backlog, self.groups.len() > 1)?;
        let local_addr = first.local_addr()?;
        let mut sockets = vec![first];
        for _ in 1..self.groups.len() {
            sockets.push(sys::listen(local_addr, backlog, true)?);
        }
        let mut ports = self.ports.write();
        let number = ports.len();
        ports.push(Port { door, sockets, options });
        for (group, socket) in self.groups.iter().zip(&ports[number].sockets) {
            group.epoll.add(socket, TOKEN_PORT + number as u64, false)?;
        }
        Ok(local_addr)
    }

    /// Closes all listening sockets, which removes them from the epoll sets.
    pub fn close(&self) {
        self.ports.write().iter_mut().for_each(|port| port.sockets.clear());
    }

    /// Registers the function that is called when connections are refused for want of descriptors. Only the first call counts.
    pub fn on_exhausted(&self, call: Box<dyn Fn() + Send + Sync>) {
        let _ = self.on_exhausted.set(call);
    }

    /// Accepts all waiting connections of one listening socket.
    fn accept(self: &Arc<Self>, group: usize, port: u64) {
        let ports = self.ports.read();
        let Some(port) = ports.get(port as usize) else { return };
        let Some(socket) = port.sockets.get(group) else { return };
        loop {
            let reserve = self.reserve.read();
            let (accepted, has_reserve) = (socket.accept(), reserve.is_some());
            drop(reserve);
            match accepted {
                Ok((stream, peer)) if has_reserve || self.regain_reserve() => self.admit(port, stream, peer),
                Ok((stream, _)) => {
                    self.refuse(port, &stream);
                    drop(stream);
                    self.regain_reserve();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The peer has given up, or the call was interrupted: the next connection may be fine.
                Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => {
                }
                Err(error) => {
                    if sys::is_out_of_descriptors(&error) {
                        self.refuse_backlog(port, socket);
                    }
                    // The edge is consumed, so the backlog is examined again later.
                    self.schedule_retry();
                    return;
                }
            }
        }
    }

    /// Refuses up to `REFUSED_AT_ONCE` connections of a backlog with the door's message, one after another over the reserve descriptor (RE-16).
    fn refuse_backlog(&self, port: &Port, socket: &TcpListener) {
        let mut reserve = self.reserve.write();
        let mut refused = 0;
        while refused < REFUSED_AT_ONCE {
            drop(reserve.take());
            let accepted = socket.accept();
            if let Ok((stream, _)) = &accepted {
                self.refuse(port, stream);
                refused += 1;
            }
            let is_over = accepted.is_err();
            drop(accepted);
            *reserve = EventFd::new().ok();
            if is_over || reserve.is_none() {
                break;
            }
        }
        drop(reserve);
        if let Some(call) = self.on_exhausted.get() {
            call();
        }
    }

    /// Opens the reserve again if a file took its descriptor. Returns true if it is open now.
    fn regain_reserve(&self) -> bool {
        let mut reserve = self.reserve.write();
        if reserve.is_none() {
            *reserve = EventFd::new().ok();
        }
        reserve.is_some()
    }

    fn refuse(&self, port: &Port, stream: &TcpStream) {
        self.shared.counters.refused.add(1);
        if port.options.tls.is_none() {
            let _ = sys::send(stream, &port.door.refuse());
        }
    }

    fn schedule_retry(self: &Arc<Self>) {
        if self.is_retry_scheduled.swap(true, Ordering::SeqCst) {
            return;
        }
        let acceptor = Arc::downgrade(self);
        self.shared.timers.add(
            ACCEPT_RETRY,
            Box::new(move || {
                let Some(acceptor) = acceptor.upgrade() else { return };
                acceptor.is_retry_scheduled.store(false, Ordering::SeqCst);
                let count = acceptor.ports.read().len() as u64;
                for group in 0..acceptor.groups.len() {
                    (0..count).for_each(|port| acceptor.accept(group, port));
                }
            }),
        );
    }

    fn admit(&self, port: &Port, stream: TcpStream, peer: SocketAddr) {
        let limit = match port.options.max_connections {
            0 => self.shared.settings.max_connections,
            own => own.min(self.shared.settings.max_connections),
        };
        let count = &self.shared.connection_count;
        if count.fetch_add(1, Ordering::SeqCst) >= limit {
            count.fetch_sub(1, Ordering::SeqCst);
            self.refuse(port, &stream);
            return;
        }
        if self.open(port, stream, peer).is_none() {
            count.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Makes the connection, in the group that has the fewest. Returns None if that fails or the door refuses.
    fn open(&self, port: &Port, stream: TcpStream, peer: SocketAddr) -> Option<()> {
        stream.set_nonblocking(true).ok()?;
        let _ = stream.set_nodelay(true);
        let live = &self.shared.live;
        let seconds = live.keep_alive.load(Ordering::Relaxed);
        if seconds > 0 {
            let _ = sys::keep_alive(&stream, seconds);
        }
        let _ = sys::set_buffers(&stream, live.recv_buf.load(Ordering::Relaxed), live.send_buf.load(Ordering::Relaxed));
        let local = stream.local_addr().ok()?;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let home = (0..self.groups.len()).min_by_key(|at| self.groups[*at].population()).expect("a pool has groups");
        let groups_and_home = (self.groups.clone(), home);
        let tls = port.options.tls.as_ref().map(Tls::new).transpose().ok()?.map(Box::new);
        let connection = Arc::new(Connection::new(id, stream, peer, local, port.door.clone(), tls, groups_and_home));
        if !connection.start() {
            self.shared.counters.refused.add(1);
            return None;
        }
        self.shared.counters.accepted.add(1);
        if self.groups[home].watch(&connection).is_err() {
            connection.abandon();
            return None;
        }
        connection.publish();
        Some(())
    }
}
