//! Clients that subscribe to a channel and throw away its messages, on a thread of their own.

use std::io::{self, Read};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use crate::server::Server;

pub struct Subscribers {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// How often the thread looks whether it should end.
const STEP: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

impl Subscribers {
    pub fn open(server: &Server, channel: &str, count: usize) -> io::Result<Subscribers> {
        let mut streams = Vec::new();
        for _ in 0..count {
            let mut control = server.control()?;
            control.call(&["SUBSCRIBE", channel])?;
            let stream = control.into_stream();
            stream.set_nonblocking(true)?;
            streams.push(stream);
        }
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (position, stream) in streams.iter().enumerate() {
            epoll::add(&epoll, stream, epoll::EventData::new_u64(position as u64), epoll::EventFlags::IN)?;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let (mut input, mut events) = (vec![0; 64 * 1024], Vec::with_capacity(streams.len()));
            while !stopped.load(Ordering::Relaxed) {
                events.clear();
                match epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), Some(&STEP)) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(_) => return,
                }
                for event in &events {
                    drain(&mut streams[event.data.u64() as usize], &mut input, &epoll);
                }
            }
        });
        Ok(Subscribers { stop, thread: Some(thread) })
    }
}

/// Reads once; a closed connection raises no more events.
fn drain(stream: &mut TcpStream, input: &mut [u8], epoll: &std::os::fd::OwnedFd) {
    let is_open = match stream.read(input) {
        Ok(count) => count > 0,
        Err(error) => matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
    };
    if !is_open {
        let _ = epoll::delete(epoll, &*stream);
    }
}

impl Drop for Subscribers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
