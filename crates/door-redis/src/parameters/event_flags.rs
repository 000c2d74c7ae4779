//! The text of the parameter `notify-keyspace-events`: a letter for each class of events, and `K` and `E` for the two kinds of channels.

use engine::event_class;
use stdx::sync::atomic::{AtomicU32, Ordering};

/// Events of a key, on the channel of the key.
pub const KEYSPACE: u32 = 1;
/// Events of a name, on the channel of the name.
pub const KEYEVENT: u32 = 1 << 1;

const LETTERS: &[(char, u32)] = &[
    ('g', event_class::GENERIC),
    ('$', event_class::STRING),
    ('l', event_class::LIST),
    ('s', event_class::SET),
    ('h', event_class::HASH),
    ('z', event_class::SORTED_SET),
    ('x', event_class::EXPIRED),
    ('e', event_class::EVICTED),
    ('t', event_class::STREAM),
    ('d', event_class::MODULE),
    ('n', event_class::NEW),
];

/// The letter `A`: all of these but `n`.
const ALL: u32 = event_class::GENERIC
    | event_class::STRING
    | event_class::LIST
    | event_class::SET
    | event_class::HASH
    | event_class::SORTED_SET
    | event_class::EXPIRED
    | event_class::EVICTED
    | event_class::STREAM
    | event_class::MODULE;

/// The letters that follow the classes, in Redis' order.
const BEHIND: &[(char, u32)] = &[('K', KEYSPACE), ('E', KEYEVENT), ('m', event_class::MISS)];

/// Reads the flags. Returns None if a letter is unknown.
pub fn read(text: &str) -> Option<u32> {
    text.chars().try_fold(0, |flags, letter| {
        let known = || LETTERS.iter().chain(BEHIND).find(|(known, _)| *known == letter).map(|(_, flag)| *flag);
        Some(flags | if letter == 'A' { ALL } else { known()? })
    })
}

/// Returns the text as CONFIG GET shows it. Redis does not show `n` beside `A`.
pub fn shown(flags: u32) -> String {
    let of = |letters: &[(char, u32)]| {
        letters.iter().filter(|(_, flag)| flags & flag != 0).map(|(letter, _)| *letter).collect::<String>()
    };
    let classes = if flags & ALL == ALL { "A".to_owned() } else { of(LETTERS) };
    classes + &of(BEHIND)
}

/// Returns the text after a change. The error is Redis'.
pub fn changed(text: &str) -> Result<String, String> {
    // Redis keeps the flags; a lost `n` must not be lost here.
    match read(text) {
        Some(flags) if flags & ALL == ALL && flags & event_class::NEW != 0 => Ok(shown(flags) + "n"),
        Some(flags) => Ok(shown(flags)),
        None => Err("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".to_owned()),
    }
}

/// The flags of `notify-keyspace-events` in force.
#[derive(Default)]
pub struct EventFlags(AtomicU32);

impl EventFlags {
    /// Takes over the text of the parameter, which has been checked.
    pub fn set(&self, text: &str) {
        self.0.store(read(text).unwrap_or(0), Ordering::Relaxed);
    }

    pub fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns the classes for which there are channels.
    pub fn classes(&self) -> u32 {
        let flags = self.get();
        if flags & (KEYSPACE | KEYEVENT) == 0 { 0 } else { flags & !(KEYSPACE | KEYEVENT) }
    }
}
