//! One run of a command: its arguments, and the destination of its reply.

use engine::{Claim, EncodingLimits, Entry, Error, KeyTransaction, Kind, Serving};
use stdx::memory;

use crate::command::Command;
use crate::reply::{Reply, bulk_header};
use crate::spool::{BLOCK, LONG, Spooling};

/// A running request: its arguments, and the destination of its reply.
pub struct Call<'c> {
    pub args: &'c [&'c [u8]],
    pub db: u8,
    pub reply: Reply<'c>,
    pub command: &'static Command,
    pub spooling: &'c mut Spooling,
    pub limits: &'c EncodingLimits,
}

/// Which keys a command may use that it names by patterns, and where it runs.
#[derive(Clone, Copy, Debug)]
pub struct NamedKeys {
    /// The user may read all keys.
    pub all_allowed: bool,
    /// The keys may be on any node.
    pub in_cluster: bool,
    pub in_script: bool,
}

/// Looks at a key for a client that waits for it (`engine::KeyWait`), and writes the client's reply if it has something. The call has no arguments.
pub type Serve = Box<dyn Fn(&mut KeyTransaction<'_>, &[u8], &Claim<'_>, &mut Call<'_>) -> Done<Serving> + Send + Sync>;

/// The wait of a command that has found nothing.
pub struct Blocking {
    /// The type that a key must have to be of use.
    pub kind: Kind,
    /// Those who wait for the same (`engine::KeyWait`).
    pub class: Box<[u8]>,
    pub keys: Vec<Box<[u8]>>,
    /// Another key that serving changes.
    pub also: Option<Box<[u8]>>,
    /// 0: for ever.
    pub timeout_ms: u64,
    pub serve: Serve,
    /// Writes the reply where the command must not wait: in EXEC and in scripts.
    pub refuse: fn(&mut Reply<'_>),
}

pub type Result = std::result::Result<(), Error>;

/// A result of the engine with a value.
pub type Done<R> = std::result::Result<R, Error>;

impl Call<'_> {
    /// Writes a range of a value as a bulk string. Spools the reply to a file if memory has no room for it (DR-8).
    pub fn bulk_value(&mut self, txn: &mut KeyTransaction<'_>, entry: &Entry, range: std::ops::Range<u64>) -> Result {
        let bytes = range.end - range.start;
        bulk_header(self.reply.out, bytes as usize);
        // Claims the existing output as well, because it moves when it grows.
        let is_short = bytes < LONG && self.reply.out.len() < LONG as usize;
        let claim = if is_short { None } else { Some(memory::claim(self.reply.out.len() + bytes as usize)) };
        match claim {
            Some(Err(_)) => {
                let spool = self.spooling.take(self.reply.out)?;
                let (mut piece, mut at) = (Vec::new(), range.start);
                while at < range.end {
                    let to = range.end.min(at + BLOCK as u64);
                    piece.clear();
                    txn.value(entry, at..to, &mut piece)?;
                    spool.put(&piece)?;
                    at = to;
                }
                spool.put(b"\r\n")?;
                // Finish the file while the command can still fail. Once the command has changed keys, a full disk must not lose its reply.
                return spool.end();
            }
            claim => {
                if claim.is_some() {
                    self.reply.out.reserve_exact(bytes as usize + 2);
                }
                txn.value(entry, range, self.reply.out)?;
            }
        }
        self.reply.out.extend_from_slice(b"\r\n");
        Ok(())
    }
}
