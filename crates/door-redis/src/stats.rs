//! Statistics per command, and the slow log.

use std::collections::{BTreeMap, VecDeque};
use std::sync::OnceLock;

use stdx::counter::Counter;
use stdx::histogram::{Histogram, Snapshot};
use stdx::sync::Mutex;
use stdx::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use crate::command;
use crate::latency::Monitor;
use crate::table::COMMANDS;

/// Counters of one command.
#[derive(Default)]
pub struct CommandStats {
    pub calls: Counter,
    pub nanoseconds: Counter,
    /// Calls that were not run because of a wrong arity, a missing permission or the session's state.
    pub rejected: Counter,
    /// Calls that ran and returned an error.
    pub failed: Counter,
    /// Time from parsing to the reply in the buffer, without the wait for the disk. Allocated at the first call.
    times: OnceLock<Box<Histogram>>,
}

impl CommandStats {
    fn ran(&self, nanoseconds: u64) {
        self.calls.add(1);
        self.nanoseconds.add(nanoseconds);
    }

    pub fn times(&self) -> Option<&Histogram> {
        self.times.get().map(Box::as_ref)
    }
}

/// The arguments of a request, as SLOWLOG shows them.
pub type SlowArgs = Vec<Vec<u8>>;

/// An entry of SLOWLOG.
#[derive(Clone, Debug)]
pub struct Slow {
    pub id: u64,
    pub unix_seconds: u64,
    pub microseconds: u64,
    pub args: SlowArgs,
    pub peer: String,
    pub name: String,
}

pub struct Stats {
    pub commands: Vec<CommandStats>,
    /// Error replies.
    pub errors: Counter,
    /// Clients that were ended because too many bytes waited for them.
    pub output_limit_disconnections: Counter,
    /// Followers that began with a file, that continued, and that wanted to and could not.
    pub full_syncs: Counter,
    pub partial_syncs: Counter,
    pub refused_partial_syncs: Counter,
    /// Error replies by code, the first word; at most [`CODES_MAX`] codes.
    codes: Mutex<BTreeMap<Vec<u8>, u64>>,
    pub monitor: Monitor,
    pub slow: Mutex<VecDeque<Slow>>,
    /// The parameter `latency-tracking`.
    pub tracks_times: AtomicBool,
    next_slow: AtomicU64,
    /// Threshold of the slow log; negative: off.
    pub slow_microseconds: AtomicI64,
    pub slow_entries: AtomicU64,
}

/// Number of arguments that SLOWLOG keeps, and bytes of each.
const SLOW_ARGS: usize = 32;
const SLOW_BYTES: usize = 128;
/// A limit for safety. The door has far fewer codes.
const CODES_MAX: usize = 128;

impl Default for Stats {
    fn default() -> Self {
        Stats {
            commands: COMMANDS.iter().map(|_| CommandStats::default()).collect(),
            errors: Counter::default(),
            output_limit_disconnections: Counter::default(),
            full_syncs: Counter::default(),
            partial_syncs: Counter::default(),
            refused_partial_syncs: Counter::default(),
            codes: Mutex::default(),
            monitor: Monitor::default(),
            slow: Mutex::default(),
            tracks_times: AtomicBool::new(true),
            next_slow: AtomicU64::new(0),
            slow_microseconds: AtomicI64::new(10_000),
            slow_entries: AtomicU64::new(128),
        }
    }
}

impl Stats {
    /// Counts a call.
    pub fn ran(&self, command: usize, nanoseconds: u64) {
        self.commands[command].ran(nanoseconds);
        self.track(command, nanoseconds);
    }

    /// Counts a call that has blocked its client.
    pub fn blocked(&self, command: usize, nanoseconds: u64) {
        self.commands[command].ran(nanoseconds);
    }

    /// Adds the service of a call that was blocked. Returns its time without the wait.
    pub fn served(&self, command: usize, before: u64, service: u64) -> u64 {
        self.commands[command].nanoseconds.add(service);
        self.track(command, before + service);
        before + service
    }

    fn track(&self, command: usize, nanoseconds: u64) {
        if self.tracks_times.load(Ordering::Relaxed) {
            self.commands[command].times.get_or_init(Box::default).record(nanoseconds);
        }
    }

    pub fn calls(&self) -> u64 {
        self.commands.iter().map(|command| command.calls.get()).sum()
    }

    /// Returns the times of all commands together.
    pub fn times(&self) -> Snapshot {
        let mut all = Histogram::new().snapshot();
        self.commands.iter().filter_map(CommandStats::times).for_each(|times| all.merge(&times.snapshot()));
        all
    }

    /// Counts an error reply in its wire form: `-ERR ...`.
    pub fn count_error(&self, reply: &[u8]) {
        self.errors.add(1);
        let text = reply.strip_prefix(b"-").unwrap_or(reply);
        let code = text.split(|byte| matches!(byte, b' ' | b'\r')).next().unwrap_or_default();
        let mut codes = self.codes.lock();
        if let Some(count) = codes.get_mut(code) {
            *count += 1;
        } else if codes.len() < CODES_MAX {
            codes.insert(code.to_vec(), 1);
        }
    }

    pub fn errors_by_code(&self) -> Vec<(Vec<u8>, u64)> {
        self.codes.lock().iter().map(|(code, count)| (code.clone(), *count)).collect()
    }

    pub fn is_slow(&self, nanoseconds: u64) -> bool {
        let limit = self.slow_microseconds.load(Ordering::Relaxed);
        limit >= 0 && nanoseconds / 1000 >= limit as u64
    }

    /// Returns whether a request may become an entry, however short it is.
    pub fn keeps_slow(&self) -> bool {
        self.slow_microseconds.load(Ordering::Relaxed) >= 0
    }

    /// Returns the arguments of a request as an entry has them: shortened, and without passwords.
    pub fn slow_args(args: &[&[u8]]) -> SlowArgs {
        let shorten = |arg: &&[u8]| match arg.len() {
            0..=SLOW_BYTES => arg.to_vec(),
            len => [&arg[..SLOW_BYTES], format!("... ({} more bytes)", len - SLOW_BYTES).as_bytes()].concat(),
        };
        let shown = args.iter().enumerate().take(SLOW_ARGS).map(|(at, arg)| command::shown(args, at, arg));
        let mut kept: SlowArgs = shown.map(|arg| shorten(&arg)).collect();
        if args.len() > SLOW_ARGS {
            kept[SLOW_ARGS - 1] = format!("... ({} more arguments)", args.len() - SLOW_ARGS + 1).into_bytes();
        }
        kept
    }

    pub fn add_slow(&self, unix_seconds: u64, nanoseconds: u64, args: SlowArgs, peer: String, name: String) {
        let id = self.next_slow.fetch_add(1, Ordering::Relaxed);
        let mut slow = self.slow.lock();
        slow.push_front(Slow { id, unix_seconds, microseconds: nanoseconds / 1000, args, peer, name });
        slow.truncate(self.slow_entries.load(Ordering::Relaxed) as usize);
    }

    pub fn reset(&self) {
        for command in &self.commands {
            command.calls.reset();
            command.nanoseconds.reset();
            command.rejected.reset();
            command.failed.reset();
            if let Some(times) = command.times() {
                times.reset();
            }
        }
        self.errors.reset();
        self.codes.lock().clear();
    }
}
