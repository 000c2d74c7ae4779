//! Long commands: those of several frames, or with a long literal. The command owns its bytes, so a value can be a slice of them instead of a copy.

use std::sync::Arc;

use crate::command_context::{CommandContext, Progress};
use crate::commands;
use crate::connection_state::ConnectionState;
use crate::literal_extraction::{self, Extracted, LiteralSyntax};

const QUERY: u8 = 0x03;
const EXECUTE: u8 = 0x17;

/// A statement longer than this is searched for literals to extract.
const LONG_TEXT: usize = 256 << 10;

/// Returns whether it pays to give the command a buffer of its own.
pub fn is_long(payload: &[u8]) -> bool {
    payload.len() > LONG_TEXT && payload.first() == Some(&QUERY)
}

/// Runs a command that owns its payload; `size` is what it occupies in the input.
pub fn run(
    state: &mut ConnectionState,
    context: &mut CommandContext<'_, '_>,
    payload: Vec<u8>,
    size: usize,
) -> Progress {
    let progress = match payload.first() {
        Some(&QUERY) => long_text(state, context, payload, size),
        Some(&EXECUTE) => {
            let payload = Arc::new(payload);
            let result = commands::execute_of(state, context, (&payload[1..], Some(&payload)), size);
            context.finish(result, size)
        }
        _ => commands::dispatch(state, context, &payload, size),
    };
    context.io.hold_until_durable(state.sql.durability_lsn());
    progress
}

fn long_text(
    state: &mut ConnectionState,
    context: &mut CommandContext<'_, '_>,
    payload: Vec<u8>,
    size: usize,
) -> Progress {
    let status = state.sql.status();
    let syntax = LiteralSyntax {
        charset: state.client_charset(),
        backslash_escapes: !status.no_backslash_escapes,
        ansi_quotes: status.ansi_quotes,
    };
    let Extracted { text, values } = match literal_extraction::extract(payload, 1, syntax) {
        Ok(extracted) => extracted,
        Err(payload) => return commands::dispatch(state, context, &payload, size),
    };
    state.prepare_to_run(context);
    let begun = context.shared.clock.monotonic_ns();
    let outcome = state.sql.execute_with(&text, values);
    context.shared.stats.times.record(context.shared.clock.monotonic_ns() - begun);
    state.refresh_settings();
    state.answer(context, outcome, size, None)
}
