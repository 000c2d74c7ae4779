//! MONITOR: clients that see every request that runs.
//!
//! One lock orders the lines, and is taken only while somebody monitors. A line is sent when its request has run, so a monitor sees the requests of a transaction before its EXEC. Passwords are not shown, nor are requests of administrators.

use std::collections::BTreeMap;
use std::sync::Arc;

use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicUsize, Ordering};

use crate::clients::Client;
use crate::command::{self, Command, flag};
use crate::messages::delivery::{Delivery, Message};
use crate::reply::Reply;

/// The clients that monitor, by id.
#[derive(Default)]
pub struct Monitors {
    clients: Mutex<BTreeMap<u64, Arc<Client>>>,
    count: AtomicUsize,
}

/// A request that has run.
pub struct Observed<'r> {
    pub wall_us: u64,
    pub db: u8,
    pub address: &'r str,
    pub args: &'r [&'r [u8]],
}

impl Monitors {
    /// Returns whether a request of the command is shown to anybody.
    #[inline]
    pub fn see(&self, command: &Command) -> bool {
        self.count.load(Ordering::Relaxed) > 0 && !command.is(flag::ADMIN)
    }

    pub fn join(&self, client: &Arc<Client>) {
        client.monitors.store(true, Ordering::Relaxed);
        let mut clients = self.clients.lock();
        clients.insert(client.id, client.clone());
        self.count.store(clients.len(), Ordering::Relaxed);
    }

    pub fn leave(&self, client: &Client) {
        if !client.monitors.swap(false, Ordering::Relaxed) {
            return;
        }
        let mut clients = self.clients.lock();
        clients.remove(&client.id);
        self.count.store(clients.len(), Ordering::Relaxed);
    }

    /// Sends the line of a request to all that monitor.
    pub fn show(&self, request: &Observed<'_>, delivery: &mut Delivery<'_>) {
        let clients = self.clients.lock();
        let mut message = Message::new(|reply: &mut Reply<'_>| request.write(reply.out));
        clients.values().for_each(|client| delivery.send(client, &mut message));
    }
}

impl Observed<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let (seconds, rest) = (self.wall_us / 1_000_000, self.wall_us % 1_000_000);
        out.extend_from_slice(format!("+{seconds}.{rest:06} [{} {}]", self.db, self.address).as_bytes());
        for (at, arg) in self.args.iter().enumerate() {
            out.extend_from_slice(b" \"");
            quote(command::shown(self.args, at, arg), out);
            out.push(b'"');
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// Writes bytes with the escapes of Redis.
fn quote(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x07 => out.extend_from_slice(b"\\a"),
            0x08 => out.extend_from_slice(b"\\b"),
            b' '..=b'~' => out.push(*byte),
            other => out.extend_from_slice(format!("\\x{other:02x}").as_bytes()),
        }
    }
}
