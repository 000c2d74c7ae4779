//! The positions of a command's keys among its arguments, and how it accesses them.

use crate::number;

/// One run of keys: from argument `first`, every `step`-th up to `last`.
#[derive(Clone, Copy)]
pub struct KeySpec {
    pub first: usize,
    /// Relative to `first`. Negative: from the end of the request.
    pub last: i32,
    pub step: usize,
    /// `not_key`, or in the words of COMMAND INFO: `RO`, `RW`, `OW` or `RM`, then `access`, `update`, `insert`, `delete` where they apply.
    pub flags: &'static str,
    pub notes: Option<&'static str>,
    /// Argument `first` is the number of keys, which follow it.
    pub is_counted: bool,
    /// The key is behind this word, wherever that is from argument `first` on.
    pub keyword: Option<&'static str>,
    /// MIGRATE: the key is argument 3, or the keys are behind KEYS.
    pub is_migrated: bool,
    /// Clients are told that its place cannot be described.
    pub is_unknown: bool,
}

/// A single key.
pub const fn at(first: usize, flags: &'static str) -> KeySpec {
    range(first, 0, 1, flags)
}

pub const fn range(first: usize, last: i32, step: usize, flags: &'static str) -> KeySpec {
    KeySpec {
        first,
        last,
        step,
        flags,
        notes: None,
        is_counted: false,
        keyword: None,
        is_migrated: false,
        is_unknown: false,
    }
}

/// Keys behind argument `first`, which is their number.
pub const fn counted(first: usize, flags: &'static str) -> KeySpec {
    KeySpec { is_counted: true, ..at(first, flags) }
}

/// The key behind a word from argument `first` on.
pub const fn keyword(word: &'static str, first: usize, flags: &'static str) -> KeySpec {
    KeySpec { keyword: Some(word), ..at(first, flags) }
}

/// Keys behind the word STREAMS.
pub const fn streams(first: usize, flags: &'static str) -> KeySpec {
    KeySpec { keyword: Some("STREAMS"), last: -1, ..at(first, flags) }
}

/// One of the two places of keys in MIGRATE, of which a request uses one.
pub const fn migrated(spec: KeySpec) -> KeySpec {
    let last = if spec.keyword.is_some() { -1 } else { spec.last };
    KeySpec { is_migrated: true, last, ..spec }
}

/// Keys that are not among the arguments of SORT.
pub const fn found_by_sort(flags: &'static str) -> KeySpec {
    KeySpec { is_unknown: true, ..at(0, flags) }
}

/// The key behind STORE among the options of SORT.
pub const fn stored_by_sort(flags: &'static str) -> KeySpec {
    KeySpec { is_unknown: true, ..keyword("STORE", 2, flags) }
}

impl KeySpec {
    pub const fn noted(mut self, notes: &'static str) -> KeySpec {
        self.notes = Some(notes);
        self
    }

    /// Returns whether the arguments are keys. The names of shard channels are described like keys, for clients of a cluster.
    pub fn names_keys(&self) -> bool {
        self.flags != "not_key"
    }

    /// Returns whether the keys follow STREAMS, and as many ids follow them.
    pub fn follows_streams(&self) -> bool {
        self.keyword.is_some() && self.last < 0 && !self.is_migrated
    }

    /// Returns the argument indexes of the keys in a request. A number of keys that does not fit has none.
    pub fn positions(&self, args: &[&[u8]]) -> impl Iterator<Item = usize> + use<> {
        let count = args.len();
        let mut behind = Vec::new();
        if self.follows_streams() {
            let first = first_stream(args).unwrap_or(count);
            return (first..first + (count - first) / 2).step_by(1).chain(behind);
        }
        if self.is_migrated {
            let (first, last) = keys_of_migrate(args, self.keyword.is_some());
            return (first..last).step_by(1).chain(behind);
        }
        if self.is_unknown {
            behind.extend(self.keyword.and_then(|_| sort_target(args)));
            return (0..0).step_by(1).chain(behind);
        }
        if let Some(word) = self.keyword {
            // Of several, a command uses the last one.
            behind.extend((self.first + 1..count).filter(|at| args[at - 1].eq_ignore_ascii_case(word.as_bytes())));
            return (0..0).step_by(1).chain(behind);
        }
        if self.is_counted {
            let keys = args.get(self.first).and_then(|number| usize::try_from(number::parse(number)?).ok());
            let keys = keys.filter(|keys| *keys < count - self.first).unwrap_or(0);
            return (self.first + 1..self.first + 1 + keys).step_by(1).chain(behind);
        }
        let last = if self.last >= 0 { self.first as i32 + self.last } else { count as i32 + self.last };
        let end = (last + 1).clamp(0, count as i32) as usize;
        (self.first..end.max(self.first)).step_by(self.step).chain(behind)
    }

    /// Returns the flags for this request. With some options a command does less than its row allows for.
    pub fn flags_in(&self, command: &str, args: &[&[u8]]) -> &'static str {
        match command {
            "set" if args.iter().skip(3).any(|arg| arg.eq_ignore_ascii_case(b"get")) => "RW access update",
            "set" => "OW update",
            "bitfield" if only_reads_bits(args) => "RO access",
            "bitfield" => "RW access update",
            "migrate" => "RW access delete",
            _ => self.flags,
        }
    }
}

/// Returns the index of the argument behind STREAMS in XREAD and XREADGROUP.
fn first_stream(args: &[&[u8]]) -> Option<usize> {
    before_streams(args, |_| ())
}

/// Returns whether an XREAD or XREADGROUP waits where it finds nothing.
pub fn asks_to_wait(args: &[&[u8]]) -> bool {
    let mut waits = false;
    before_streams(args, |option| waits |= option.eq_ignore_ascii_case(b"block"));
    waits
}

/// Shows each option before STREAMS, as the commands read them. A group may have that name, too. Returns the index of the argument behind STREAMS.
fn before_streams(args: &[&[u8]], mut show: impl FnMut(&[u8])) -> Option<usize> {
    let mut at = 1;
    loop {
        show(args.get(at)?);
        at += match args.get(at)?.to_ascii_lowercase().as_slice() {
            b"streams" => return Some(at + 1),
            b"block" | b"count" => 2,
            b"group" => 3,
            b"noack" => 1,
            _ => return None,
        };
    }
}

/// Returns the index of the key that SORT stores to: the one behind the last STORE that is no argument of another option.
fn sort_target(args: &[&[u8]]) -> Option<usize> {
    let (mut at, mut target) = (2, None);
    while at < args.len() {
        match args[at].to_ascii_lowercase().as_slice() {
            b"limit" => at += 2,
            b"get" | b"by" => at += 1,
            b"store" if at + 1 < args.len() => {
                target = Some(at + 1);
                at += 1;
            }
            _ => {}
        }
        at += 1;
    }
    target
}

/// Returns where the keys of a MIGRATE begin and end that are behind KEYS, or else the one in front.
fn keys_of_migrate(args: &[&[u8]], are_behind: bool) -> (usize, usize) {
    let is = |at: usize, word: &str| args[at].eq_ignore_ascii_case(word.as_bytes());
    let mut at = 6;
    while at < args.len() {
        if is(at, "keys") {
            // Redis refuses keys in both places.
            return if are_behind && args[3].is_empty() { (at + 1, args.len()) } else { (0, 0) };
        }
        at += if is(at, "auth2") { 3 } else { 1 + usize::from(is(at, "auth")) };
    }
    if are_behind || args.len() <= 3 { (0, 0) } else { (3, 4) }
}

/// Returns whether a SORT concerns keys beside the one that it sorts.
pub fn sort_needs_more(args: &[&[u8]]) -> bool {
    let is_one = |arg: &&[u8]| [&b"by"[..], b"get", b"store"].iter().any(|word| arg.eq_ignore_ascii_case(word));
    args[2..].iter().any(is_one)
}

/// Returns whether a BITFIELD has only GET and OVERFLOW operations.
fn only_reads_bits(args: &[&[u8]]) -> bool {
    let mut rest = args.get(2..).unwrap_or_default();
    while let [word, behind @ ..] = rest {
        let takes = match word.to_ascii_lowercase().as_slice() {
            b"get" => 2,
            b"overflow" => 1,
            _ => return false,
        };
        let Some(next) = behind.get(takes..) else { return false };
        rest = next;
    }
    true
}

/// Returns the permissions that key flags require: to read the key's value, to change it.
pub fn needs(flags: &str) -> (bool, bool) {
    let has = |words: &[&str]| flags.split(' ').any(|flag| words.contains(&flag));
    (has(&["access"]), has(&["update", "insert", "delete"]))
}

impl KeySpec {
    pub(super) fn absolute_last(&self) -> i64 {
        if self.last >= 0 { self.first as i64 + i64::from(self.last) } else { i64::from(self.last) }
    }
}
