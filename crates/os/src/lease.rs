//! The lease of a database in shared storage: which node may answer clients.
//!
//! ```text
//!   holder      renew: version v -> v + 1, sent at s          confirmed until s + ttl
//!   candidate   has read version v at r, r > s ............... r + ttl + ttl / 8: version v -> v + 1 under its own name
//! ```
//! The lease is an object whose epoch is its version. The holder raises the version a few times per `ttl`. A candidate may replace a version that it has seen
//! unchanged for longer than the `ttl` in it; the guard compares the version, so a renewal in between refuses the candidate, and a candidate that was quicker refuses the renewal.
//!
//! Hard part: no two clocks are compared. The holder counts from the moment before it sends a renewal, the candidate from the moment after it has received the answer that
//! shows it, both with their own clock, which counts on while the process or the machine sleeps. So the holder's time ends first (OS-9), if
//! the clocks run equally fast within an eighth.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicU64, Ordering};

use crate::clock::Clock;
use crate::objects::{Guard, ObjectError, ObjectStore};

const NAME: &str = "lease";
const MAGIC: u64 = u64::from_le_bytes(*b"BELUGALS");
const WORDS: usize = 5;
/// Bytes of the holder's name that are kept.
const OWNER_BYTES_MAX: usize = 216;
const BYTES: usize = WORDS * 8 + OWNER_BYTES_MAX;
/// The holder of a lease that was given back.
const NOBODY: u64 = 0;
/// A candidate waits longer than the holder counts, by `ttl` divided by this.
const MARGIN: u64 = 8;

/// The content of the object.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LeaseRecord {
    version: u64,
    ttl_ns: u64,
    /// A random number of the holder.
    holder: u64,
    /// The holder, for a person.
    owner: String,
}

impl LeaseRecord {
    fn encode(&self) -> [u8; BYTES] {
        let mut end = self.owner.len().min(OWNER_BYTES_MAX);
        while !self.owner.is_char_boundary(end) {
            end -= 1;
        }
        let mut bytes = [0; BYTES];
        let words: [u64; WORDS] = [MAGIC, self.version, self.ttl_ns, self.holder, end as u64];
        for (at, word) in words.into_iter().enumerate() {
            bytes[at * 8..][..8].copy_from_slice(&word.to_le_bytes());
        }
        bytes[WORDS * 8..][..end].copy_from_slice(&self.owner.as_bytes()[..end]);
        bytes
    }

    fn decode(bytes: &[u8; BYTES]) -> io::Result<LeaseRecord> {
        let word = |at: usize| u64::from_le_bytes(bytes[at * 8..][..8].try_into().expect("eight bytes"));
        let damaged =
            || io::Error::new(io::ErrorKind::InvalidData, "the object 'lease' is damaged, or it is not Beluga's");
        if word(0) != MAGIC || word(1) == 0 || word(4) > OWNER_BYTES_MAX as u64 {
            return Err(damaged());
        }
        let owner = &bytes[WORDS * 8..][..word(4) as usize];
        let owner = std::str::from_utf8(owner).map_err(|_| damaged())?.to_owned();
        Ok(LeaseRecord { version: word(1), ttl_ns: word(2), holder: word(3), owner })
    }
}

/// The result of one attempt to get the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseAttempt {
    Acquired,
    /// It is another node's.
    Held(LeaseHolder),
}

/// The node that has the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseHolder {
    pub owner: String,
    /// The number of times that the lease was taken or renewed: it grows while the holder is alive.
    pub version: u64,
    /// The time until it may be replaced, if it is not renewed.
    pub left: Duration,
}

/// For simulation: a rule of the lease that is left out, so that the loss can be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseFlaw {
    /// A candidate waits for a quarter of the holder's time.
    ShortWait,
    /// The holder counts from the answer to a renewal.
    FromAnswer,
}

/// The version that this node knows.
#[derive(Default)]
struct LeaseState {
    /// The version that was read or written last; 0 before that.
    version: u64,
    /// The moment after it was read first.
    seen_ns: u64,
}

/// The lease of a database, as one candidate or holder has it.
pub struct Lease {
    objects: Arc<dyn ObjectStore>,
    clock: Arc<dyn Clock>,
    owner: String,
    holder: u64,
    ttl_ns: u64,
    flaw: Option<LeaseFlaw>,
    state: Mutex<LeaseState>,
    /// The holder may answer before this moment of its clock.
    confirmed_until_ns: AtomicU64,
}

impl Lease {
    /// Prepares a candidate. `owner` is shown to persons; `random` tells this candidate from all others, also of the same node. The clock must count on while the machine sleeps.
    pub fn new(objects: Arc<dyn ObjectStore>, clock: Arc<dyn Clock>, owner: &str, random: u64, ttl: Duration) -> Lease {
        Lease {
            objects,
            clock,
            owner: owner.into(),
            holder: random.max(NOBODY + 1),
            ttl_ns: ttl.as_nanos() as u64,
            flaw: None,
            state: Mutex::default(),
            confirmed_until_ns: AtomicU64::new(0),
        }
    }

    /// Leaves out a rule.
    pub fn with_flaw(self, flaw: Option<LeaseFlaw>) -> Lease {
        Lease { flaw, ..self }
    }

    /// Returns true if the lease was confirmed and its time has not passed: no other node has it, and none had it since the last call that returned true. A value that was read before the
    /// call may be shown after it, however much later.
    #[inline]
    pub fn is_confirmed(&self) -> bool {
        self.clock.monotonic_ns() < self.confirmed_until_ns.load(Ordering::Acquire)
    }

    fn read(&self) -> Result<Option<LeaseRecord>, ObjectError> {
        let mut bytes = [0; BYTES];
        match self.objects.read(NAME, 0, &mut bytes) {
            Ok(_) => LeaseRecord::decode(&bytes).map(Some).map_err(ObjectError::Io),
            Err(ObjectError::Missing) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces version `version` by the next one.
    fn write(&self, version: u64, holder: u64) -> Result<(), ObjectError> {
        let next = version + 1;
        let record = LeaseRecord { version: next, ttl_ns: self.ttl_ns, holder, owner: self.owner.clone() };
        let guard = if version == 0 { Guard::Absent } else { Guard::Equal(version) };
        self.objects.write(NAME, guard, next, &[(0, &record.encode())])
    }

    /// Writes the next version in this node's name, and confirms the lease from the moment before that.
    fn confirm(&self, state: &mut LeaseState) -> Result<(), ObjectError> {
        let sent_ns = self.clock.monotonic_ns();
        self.write(state.version, self.holder)?;
        let from_ns = if self.flaw == Some(LeaseFlaw::FromAnswer) { self.clock.monotonic_ns() } else { sent_ns };
        state.version += 1;
        self.confirmed_until_ns.fetch_max(from_ns + self.ttl_ns, Ordering::AcqRel);
        Ok(())
    }

    /// Takes the lease if nobody has it, or if its holder has not renewed it for long enough, as seen by this candidate. A candidate that wants it calls this again and again.
    ///
    /// After an error the attempt may have succeeded. The next one finds out.
    pub fn try_acquire(&self) -> Result<LeaseAttempt, ObjectError> {
        let mut state = self.state.lock();
        let found = self.read()?;
        // After the answer: the renewal that it shows was sent before (OS-9).
        let now_ns = self.clock.monotonic_ns();
        let version = found.as_ref().map_or(0, |found| found.version);
        if state.version != version {
            *state = LeaseState { version, seen_ns: now_ns };
        }
        let held = |left_ns| {
            let owner = found.as_ref().map_or(String::new(), |found| found.owner.clone());
            LeaseAttempt::Held(LeaseHolder { owner, version, left: Duration::from_nanos(left_ns) })
        };
        let of_other = found.as_ref().filter(|found| ![self.holder, NOBODY].contains(&found.holder));
        if let Some(other) = of_other {
            let wait_ns = match self.flaw {
                Some(LeaseFlaw::ShortWait) => other.ttl_ns / 4,
                _ => other.ttl_ns.saturating_add(other.ttl_ns / MARGIN),
            };
            let end_ns = state.seen_ns.saturating_add(wait_ns);
            if now_ns < end_ns {
                return Ok(held(end_ns - now_ns));
            }
        }
        match self.confirm(&mut state) {
            Ok(()) => Ok(LeaseAttempt::Acquired),
            // It was renewed, or another candidate was quicker.
            Err(ObjectError::Fenced | ObjectError::Exists) => Ok(held(self.ttl_ns)),
            Err(error) => Err(error),
        }
    }

    /// Renews the lease. `Err(Fenced)` if another node has it; then this one never has it again. After any other error it is tried again.
    pub fn renew(&self) -> Result<(), ObjectError> {
        let mut state = self.state.lock();
        loop {
            match self.confirm(&mut state) {
                Err(ObjectError::Fenced) => {}
                // Nobody removes it while the database exists.
                Err(ObjectError::Missing) => return Err(ObjectError::Fenced),
                other => return other,
            }
            // Perhaps by an earlier renewal whose answer was lost. Each turn raises the version, so the loop ends with the last of those.
            match self.read()? {
                Some(found) if found.holder == self.holder && found.version > state.version => {
                    state.version = found.version;
                }
                _ => return Err(ObjectError::Fenced),
            }
        }
    }

    /// Gives the lease back, so that a candidate need not wait. Nothing is confirmed from now on.
    pub fn release(&self) -> Result<(), ObjectError> {
        let state = self.state.lock();
        self.confirmed_until_ns.store(0, Ordering::SeqCst);
        self.write(state.version, NOBODY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_and_a_long_name_is_cut_between_letters() {
        for owner in ["", "host:1", &"ä".repeat(300)] {
            let record = LeaseRecord { version: 7, ttl_ns: 3, holder: 9, owner: owner.into() };
            let read = LeaseRecord::decode(&record.encode()).unwrap();
            assert!(owner.starts_with(&read.owner) && read.owner.len() >= owner.len().min(OWNER_BYTES_MAX - 1));
            assert_eq!(LeaseRecord { owner: owner.into(), ..read }, record);
        }
        let mut bytes = LeaseRecord { version: 7, ttl_ns: 3, holder: 9, owner: "x".into() }.encode();
        bytes[32] = 255;
        assert!(LeaseRecord::decode(&bytes).is_err());
        assert!(LeaseRecord::decode(&[0; BYTES]).is_err());
    }
}
