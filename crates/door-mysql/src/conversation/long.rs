//! Commands that are long: of several frames, or with a long literal. Their bytes belong to the command, so a value can be a part of them instead of a copy.

use std::sync::Arc;

use super::{Conversation, Next, Turn};
use crate::commands;
use crate::lift::{self, Lifted, Writing};

const QUERY: u8 = 0x03;
const EXECUTE: u8 = 0x17;

/// A statement of so many bytes is looked through for literals to take out.
const LONG_TEXT: usize = 256 << 10;

/// Is it worth while to give the command bytes of its own?
pub fn is_long(payload: &[u8]) -> bool {
    payload.len() > LONG_TEXT && payload.first() == Some(&QUERY)
}

impl Conversation {
    /// Runs a command, whose payload is its own.
    pub fn long_command(&mut self, turn: &mut Turn<'_, '_>, payload: Vec<u8>, size: usize) -> Next {
        let next = match payload.first() {
            Some(&QUERY) => self.long_text(turn, payload, size),
            Some(&EXECUTE) => {
                let payload = Arc::new(payload);
                let reply = commands::execute_of(self, turn, (&payload[1..], Some(&payload)), size);
                commands::told(turn, reply, size)
            }
            _ => commands::run(self, turn, &payload, size),
        };
        turn.io.hold_until_durable(self.sql.gate());
        next
    }

    fn long_text(&mut self, turn: &mut Turn<'_, '_>, payload: Vec<u8>, size: usize) -> Next {
        let status = self.sql.status();
        let writing = Writing {
            charset: self.client_charset(),
            backslash_escapes: !status.no_backslash_escapes,
            ansi_quotes: status.ansi_quotes,
        };
        let Lifted { text, values } = match lift::lift(payload, 1, writing) {
            Ok(lifted) => lifted,
            Err(payload) => return commands::run(self, turn, &payload, size),
        };
        self.prepare_to_run(turn);
        let begun = turn.shared.clock.monotonic_ns();
        let outcome = self.sql.execute_with(&text, values);
        turn.shared.stats.times.record(turn.shared.clock.monotonic_ns() - begun);
        self.obey_changes();
        self.answer(turn, outcome, size, None)
    }
}
