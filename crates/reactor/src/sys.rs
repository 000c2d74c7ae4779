//! The system calls of the pool, each in its smallest safe dress.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn owned(fd: libc::c_int) -> io::Result<OwnedFd> {
    let fd = check(fd)?;
    // SAFETY: a descriptor that the kernel has just given to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Whether a call failed because the process, or the system, has no file descriptor left.
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// Readiness of many descriptors.
pub struct Epoll(OwnedFd);

/// One readiness report.
#[derive(Clone, Copy)]
pub struct Event {
    pub token: u64,
    pub readable: bool,
    pub writable: bool,
    /// The peer sends no more: behind what can be read stands the end.
    pub ended: bool,
}

pub const EVENTS_MAX: usize = 256;

impl Epoll {
    pub fn new() -> io::Result<Epoll> {
        // SAFETY: no memory is passed.
        owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }).map(Epoll)
    }

    /// Edge-triggered, both directions: one registration for the life of a descriptor.
    pub fn add(&self, fd: RawFd, token: u64, writable: bool) -> io::Result<()> {
        let directions = libc::EPOLLIN | libc::EPOLLRDHUP | if writable { libc::EPOLLOUT } else { 0 };
        let mut event = libc::epoll_event { events: (directions | libc::EPOLLET) as u32, u64: token };
        // SAFETY: the event lives during the call, the kernel copies it.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) }).map(drop)
    }

    pub fn remove(&self, fd: RawFd) {
        // SAFETY: a null event is allowed for removal. An error means that the descriptor is not registered, which is what we want.
        unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_DEL, fd, std::ptr::null_mut()) };
    }

    /// Waits for up to `max` events; `timeout_ms` of -1 waits for ever. Interrupted waits report nothing.
    pub fn wait(&self, events: &mut Vec<Event>, max: usize, timeout_ms: i32) -> io::Result<()> {
        events.clear();
        let mut raw = [libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX];
        let max = max.clamp(1, EVENTS_MAX) as libc::c_int;
        // SAFETY: the kernel writes at most `max` events into `raw`, which has room for EVENTS_MAX.
        let count = match check(unsafe { libc::epoll_wait(self.0.as_raw_fd(), raw.as_mut_ptr(), max, timeout_ms) }) {
            Ok(count) => count as usize,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        const END: u32 = (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32;
        const IN: u32 = libc::EPOLLIN as u32 | END;
        const OUT: u32 = (libc::EPOLLOUT | libc::EPOLLHUP | libc::EPOLLERR) as u32;
        events.extend(raw[..count].iter().map(|event| Event {
            token: event.u64,
            readable: event.events & IN != 0,
            writable: event.events & OUT != 0,
            ended: event.events & END != 0,
        }));
        Ok(())
    }
}

/// Wakes one thread that waits in the epoll set it is registered in.
pub struct EventFd(OwnedFd);

impl EventFd {
    pub fn new() -> io::Result<EventFd> {
        // SAFETY: no memory is passed.
        owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) }).map(EventFd)
    }

    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Raises the counter, which makes a new edge each time.
    pub fn signal(&self) {
        let one = 1u64;
        // SAFETY: eight bytes of a live value. A full counter (never reached) would mean that a wake-up is pending anyway.
        unsafe { libc::write(self.fd(), (&raw const one).cast(), 8) };
    }
}

/// A timer that reports through epoll.
pub struct TimerFd(OwnedFd);

impl TimerFd {
    pub fn new() -> io::Result<TimerFd> {
        // SAFETY: no memory is passed.
        owned(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) })
            .map(TimerFd)
    }

    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Fires once, `delay` from now.
    pub fn arm(&self, delay: std::time::Duration) {
        let delay = delay.max(std::time::Duration::from_nanos(1));
        let value =
            libc::timespec { tv_sec: delay.as_secs() as libc::time_t, tv_nsec: delay.subsec_nanos() as libc::c_long };
        let spec = libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        // SAFETY: the specification lives during the call.
        unsafe { libc::timerfd_settime(self.fd(), 0, &spec, std::ptr::null_mut()) };
    }
}

/// Reads what is there, at most `buf.len()` bytes, without waiting. 0 is the end of the stream.
pub fn receive(stream: &TcpStream, buf: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes at most `buf.len()` bytes.
    let got = unsafe { libc::recv(stream.as_raw_fd(), buf.as_mut_ptr().cast(), buf.len(), libc::MSG_DONTWAIT) };
    if got < 0 { Err(io::Error::last_os_error()) } else { Ok(got as usize) }
}

/// Appends what is there to `buf`, at most its spare capacity, without waiting and without clearing memory first.
pub fn receive_append(stream: &TcpStream, buf: &mut Vec<u8>) -> io::Result<usize> {
    let spare = buf.spare_capacity_mut();
    // SAFETY: the kernel writes at most `spare.len()` bytes into memory that the vector owns.
    let got = unsafe { libc::recv(stream.as_raw_fd(), spare.as_mut_ptr().cast(), spare.len(), libc::MSG_DONTWAIT) };
    if got < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has initialised the first `got` bytes of the spare capacity.
    unsafe { buf.set_len(buf.len() + got as usize) };
    Ok(got as usize)
}

/// Writes what fits into the socket's buffer, without waiting and without a signal if the peer is gone.
pub fn send(stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    send_fd(stream.as_raw_fd(), bytes)
}

fn send_fd(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the kernel reads `bytes.len()` bytes.
    let sent = unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), flags) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
}

/// `send` for many sockets at once, in one system call where there is io_uring.
pub fn send_many(sends: &[(RawFd, &[u8])]) -> Vec<io::Result<usize>> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    let together = if sends.len() > 1 { os::send_many(sends, flags) } else { None };
    together.unwrap_or_else(|| sends.iter().map(|(fd, bytes)| send_fd(*fd, bytes)).collect())
}

/// The processor that handled the last packet of a connection.
pub fn incoming_cpu(stream: &TcpStream) -> Option<usize> {
    let mut cpu: libc::c_int = -1;
    let mut size = size_of_val(&cpu) as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes into a live value.
    let result = unsafe {
        let value = (&raw mut cpu).cast();
        libc::getsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_INCOMING_CPU, value, &mut size)
    };
    usize::try_from(cpu).ok().filter(|_| result == 0)
}

/// A listening socket; with `share`, several may listen on one port and the kernel spreads connections over them.
pub fn listen(address: SocketAddr, backlog: i32, share: bool) -> io::Result<TcpListener> {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no memory is passed.
    let socket = owned(unsafe { libc::socket(family, kind, 0) })?;
    set_option(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    if share {
        set_option(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
    }
    if address.is_ipv6() {
        set_option(socket.as_raw_fd(), libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
    }
    bind(socket.as_raw_fd(), address)?;
    // SAFETY: no memory is passed.
    check(unsafe { libc::listen(socket.as_raw_fd(), backlog) })?;
    Ok(TcpListener::from(socket))
}

fn bind(fd: RawFd, address: SocketAddr) -> io::Result<()> {
    match address {
        SocketAddr::V4(v4) => {
            let raw = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: the address lives during the call and has the length given.
            check(unsafe { libc::bind(fd, (&raw const raw).cast(), size_of_val(&raw) as libc::socklen_t) })?;
        }
        SocketAddr::V6(v6) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: as above.
            check(unsafe { libc::bind(fd, (&raw const raw).cast(), size_of_val(&raw) as libc::socklen_t) })?;
        }
    }
    Ok(())
}

pub fn set_option(fd: RawFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let size = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the value lives during the call and has the length given.
    check(unsafe { libc::setsockopt(fd, level, name, (&raw const value).cast(), size) }).map(drop)
}

/// What the system keeps for the socket, in bytes; 0 leaves it as it is.
pub fn set_buffers(stream: &TcpStream, receive: u32, send: u32) -> io::Result<()> {
    for (option, bytes) in [(libc::SO_RCVBUF, receive), (libc::SO_SNDBUF, send)] {
        if bytes > 0 {
            set_option(stream.as_raw_fd(), libc::SOL_SOCKET, option, bytes as libc::c_int)?;
        }
    }
    Ok(())
}

/// Probes that go without an answer before the peer is taken to be gone.
const PROBES: libc::c_int = 3;

/// Keep-alive probes after `seconds` of silence; a peer that answers none is gone after twice as long.
pub fn keep_alive(stream: &TcpStream, seconds: u32) -> io::Result<()> {
    let fd = stream.as_raw_fd();
    set_option(fd, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
    set_option(fd, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, seconds as libc::c_int)?;
    set_option(fd, libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, (seconds / 3).max(1) as libc::c_int)?;
    set_option(fd, libc::IPPROTO_TCP, libc::TCP_KEEPCNT, PROBES)
}
