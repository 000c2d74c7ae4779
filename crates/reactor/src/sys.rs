//! The system calls of the pool behind safe functions: epoll, eventfd, timerfd and sockets.

use std::io;
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};

/// Returns true if a call failed because the process, or the system, has no file descriptor left.
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// An epoll set.
pub struct Epoll(OwnedFd);

/// One readiness report.
#[derive(Clone, Copy)]
pub struct Event {
    pub token: u64,
    pub is_readable: bool,
    pub is_writable: bool,
    /// The peer has ended its direction of the stream; bytes that were not received yet precede the end.
    pub has_ended: bool,
}

/// The most events that one wait returns.
pub const EVENTS_MAX: usize = 256;

impl Epoll {
    pub fn new() -> io::Result<Epoll> {
        Ok(Epoll(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    /// Registers a descriptor, edge-triggered, for reading and optionally for writing. One registration serves for the life of the descriptor.
    pub fn add(&self, fd: impl AsFd, token: u64, is_writable: bool) -> io::Result<()> {
        let mut flags = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        flags.set(epoll::EventFlags::OUT, is_writable);
        Ok(epoll::add(&self.0, fd, epoll::EventData::new_u64(token), flags)?)
    }

    /// Removes a descriptor from the set, if it is in it.
    pub fn remove(&self, fd: impl AsFd) {
        // The only error is that the descriptor is not registered, which is the state that the caller wants.
        let _ = epoll::delete(&self.0, fd);
    }

    /// Waits for up to `max` events and stores them in `events`; without `timeout` it waits for ever. An interrupted wait stores none.
    pub fn wait(&self, events: &mut Vec<Event>, max: usize, timeout: Option<Duration>) -> io::Result<()> {
        const END: epoll::EventFlags =
            epoll::EventFlags::RDHUP.union(epoll::EventFlags::HUP).union(epoll::EventFlags::ERR);
        const IN: epoll::EventFlags = epoll::EventFlags::IN.union(END);
        const OUT: epoll::EventFlags =
            epoll::EventFlags::OUT.union(epoll::EventFlags::HUP).union(epoll::EventFlags::ERR);
        events.clear();
        let mut raw = [const { MaybeUninit::uninit() }; EVENTS_MAX];
        let timeout = timeout
            .map(|timeout| Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() });
        let ready = match epoll::wait(&self.0, &mut raw[..max.clamp(1, EVENTS_MAX)], timeout.as_ref()) {
            Ok((ready, _)) => ready,
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        events.extend(ready.iter().map(|event| {
            let flags = event.flags;
            Event {
                token: event.data.u64(),
                is_readable: flags.intersects(IN),
                is_writable: flags.intersects(OUT),
                has_ended: flags.intersects(END),
            }
        }));
        Ok(())
    }
}

/// Wakes one thread that waits in the epoll set in which it is registered.
pub struct EventFd(OwnedFd);

impl EventFd {
    pub fn new() -> io::Result<EventFd> {
        Ok(EventFd(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Raises the counter. Each call makes a new edge.
    pub fn signal(&self) {
        // A full counter, which is never reached, would mean that a wake-up is pending anyway.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A timer that epoll reports.
pub struct TimerFd(OwnedFd);

impl TimerFd {
    pub fn new() -> io::Result<TimerFd> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(TimerFd(timerfd_create(TimerfdClockId::Monotonic, flags)?))
    }

    /// Sets the timer to fire once, after `delay`.
    pub fn arm(&self, delay: Duration) {
        let delay = delay.max(Duration::from_nanos(1));
        let it_value = Timespec { tv_sec: delay.as_secs() as i64, tv_nsec: delay.subsec_nanos().into() };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once).expect("a timer of our own with a valid time");
    }
}

impl AsFd for TimerFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Receives at most `buf.len()` bytes without waiting. Returns 0 at the end of the stream.
pub fn receive(stream: &TcpStream, buf: &mut [u8]) -> io::Result<usize> {
    let (bytes, _) = rustix::net::recv(stream, buf, RecvFlags::DONTWAIT)?;
    Ok(bytes)
}

/// Appends received bytes to `buf`, at most its spare capacity, without waiting and without zeroing the memory first. Returns their number, 0 at the end of the stream.
pub fn receive_append(stream: &TcpStream, buf: &mut Vec<u8>) -> io::Result<usize> {
    let (bytes, _) = rustix::net::recv(stream, rustix::buffer::spare_capacity(buf), RecvFlags::DONTWAIT)?;
    Ok(bytes)
}

/// Sends as many bytes as the socket's buffer takes, without waiting and without a signal if the peer is gone.
pub fn send(stream: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::net::send(stream, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?)
}

/// Sends to many sockets, in one system call where there is io_uring. Returns one result per socket.
pub fn send_many(sends: &[(BorrowedFd<'_>, &[u8])]) -> Vec<io::Result<usize>> {
    let together = if sends.len() > 1 { os::send_many(sends) } else { None };
    together.unwrap_or_else(|| sends.iter().map(|(fd, bytes)| send(*fd, bytes)).collect())
}

/// Returns the processor that handled the last packet of a connection, if the kernel knows it.
pub fn incoming_cpu(stream: &TcpStream) -> Option<usize> {
    // The kernel reports -1 for an unknown processor.
    let cpu = sockopt::socket_incoming_cpu(stream).ok()?;
    i32::try_from(cpu).is_ok().then_some(cpu as usize)
}

/// Makes a listening socket. With `is_shared` several sockets may listen on one port, and the kernel distributes connections over them.
pub fn listen(address: SocketAddr, backlog: i32, is_shared: bool) -> io::Result<TcpListener> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if is_shared {
        sockopt::set_socket_reuseport(&socket, true)?;
    }
    if address.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, backlog)?;
    Ok(TcpListener::from(socket))
}

/// Sets the sizes of the kernel's buffers of a socket, in bytes; 0 leaves a size unchanged.
pub fn set_buffers(stream: &TcpStream, receive: u32, send: u32) -> io::Result<()> {
    if receive > 0 {
        sockopt::set_socket_recv_buffer_size(stream, receive as usize)?;
    }
    if send > 0 {
        sockopt::set_socket_send_buffer_size(stream, send as usize)?;
    }
    Ok(())
}

/// Unanswered keep-alive probes after which the peer counts as gone.
const PROBES: u32 = 3;

/// Sends keep-alive probes after `seconds` of silence. A peer that answers none counts as gone after twice as long.
pub fn keep_alive(stream: &TcpStream, seconds: u32) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(seconds.into()))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs((seconds / 3).max(1).into()))?;
    sockopt::set_tcp_keepcnt(stream, PROBES)?;
    Ok(())
}
