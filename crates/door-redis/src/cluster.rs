//! Slots, and the rules of Redis' cluster mode: the server is the one node of a cluster, and has all slots.
//!
//! With the setting `redis_cluster_enabled` every command whose keys are in several slots is refused, as are databases other than 0, so that an application finds here what it would find in a cluster.

use crate::command::Command;
use crate::number;
use crate::session::{Queued, Session};

/// Number of slots.
pub const SLOTS: u16 = 16384;

const CROSS_SLOT: &str = "CROSSSLOT Keys in request don't hash to the same slot";

/// The reply to commands about a cluster while the setting is off.
pub const DISABLED: &str = "ERR This instance has cluster support disabled";

/// Returns the slot of a key: that of the part between the first brace and the next closing one, if that is not empty.
pub fn slot_of(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let len = rest.iter().position(|byte| *byte == b'}')?;
        (len > 0).then(|| &rest[..len])
    });
    crc16(tag.unwrap_or(key)) % SLOTS
}

/// CRC-16 of XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    const POLYNOMIAL: u16 = 0x1021;
    bytes.iter().fold(0, |crc, byte| {
        let mixed = crc ^ (u16::from(*byte) << 8);
        (0..8).fold(mixed, |crc, _| if crc & 0x8000 != 0 { (crc << 1) ^ POLYNOMIAL } else { crc << 1 })
    })
}

/// Returns whether keys, or channels of shards, are in several slots.
fn crosses<'a>(mut keys: impl Iterator<Item = &'a [u8]>) -> bool {
    let Some(first) = keys.next().map(slot_of) else { return false };
    keys.any(|key| slot_of(key) != first)
}

/// Returns the keys of a request, and channels that have slots.
fn slotted<'a>(command: &'static Command, args: &'a [&'a [u8]]) -> impl Iterator<Item = &'a [u8]> {
    command.keys.iter().flat_map(move |spec| spec.positions(args)).filter_map(move |at| args.get(at).copied())
}

impl Session {
    /// Returns whether the keys of a command are in several slots of a cluster.
    pub(crate) fn crosses_slots(&self, command: &'static Command, args: &[&[u8]]) -> bool {
        self.shared.is_cluster && crosses(slotted(command, args))
    }

    /// Returns the error of a request whose keys are in several slots.
    pub(crate) fn slot_error(&self, command: &'static Command, args: &[&[u8]]) -> Option<&'static str> {
        self.crosses_slots(command, args).then_some(CROSS_SLOT)
    }

    /// Returns the error of an EXEC whose commands have keys in several slots.
    pub(crate) fn slot_error_of_queue(&self, queue: &[Queued]) -> Option<&'static str> {
        if !self.shared.is_cluster {
            return None;
        }
        let mut first = None;
        let crosses = queue.iter().any(|queued| {
            let args: Vec<&[u8]> = queued.args.iter().map(Vec::as_slice).collect();
            slotted(queued.command, &args).any(|key| slot_of(key) != *first.get_or_insert_with(|| slot_of(key)))
        });
        crosses.then_some(CROSS_SLOT)
    }

    /// Returns the error of a command that needs a database other than 0.
    pub(crate) fn database_error(&self, command: &'static Command, args: &[&[u8]]) -> Option<&'static str> {
        if !self.shared.is_cluster {
            return None;
        }
        let is_other = |text: &[u8]| number::parse(text).is_some_and(|db| db != 0);
        match command.name {
            "select" if is_other(args[1]) => Some("ERR SELECT is not allowed in cluster mode"),
            "swapdb" => Some("ERR SWAPDB is not allowed in cluster mode"),
            "move" => Some("ERR MOVE is not allowed in cluster mode"),
            "copy" => {
                let named = args.iter().skip(3).position(|word| word.eq_ignore_ascii_case(b"db"));
                let to = named.and_then(|at| args.get(at + 4));
                to.filter(|to| is_other(to)).map(|_| "ERR Copying to another database is not allowed in cluster mode")
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis() {
        let known: [(&[u8], u16); 6] = [
            (b"abc", 7638),
            (b"123456789", 12739),
            (b"", 0),
            (b"{user1000}.following", 3443),
            (b"foo{}{bar}", 8363),
            (b"foo{{bar}}zap", 4015),
        ];
        known.iter().for_each(|(key, slot)| assert_eq!(slot_of(key), *slot, "{}", String::from_utf8_lossy(key)));
    }
}
