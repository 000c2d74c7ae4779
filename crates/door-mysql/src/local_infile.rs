//! A client's file on its way in: LOAD DATA LOCAL INFILE.
//!
//! The server asks for the file by name; the client sends its bytes in packets, with an empty packet at the end. The command itself has left the input by then.
//! Bytes are passed on as they arrive, so the length of a packet reserves no memory. The client is read to the end even if the statement has failed: otherwise the two sides would disagree on what the next
//! bytes mean (DM-12). No thread is held while nothing arrives; `net_read_timeout` limits that time.

use sql_mysql::error::Result;

use crate::command_context::{CommandContext, Progress};
use crate::connection_state::ConnectionState;
use crate::errors;
use crate::packet;

impl ConnectionState {
    /// Consumes file data that has arrived. Returns `None` when more has to arrive first; an error ends the connection.
    pub fn receive(&mut self, context: &mut CommandContext<'_, '_>) -> Result<Option<Progress>> {
        let Some(infile) = &mut self.infile else { return Ok(None) };
        if infile.left > 0 {
            let input = context.io.input();
            let count = infile.left.min(input.len());
            infile.left -= count;
            self.sql.load_data(&input[..count]);
            return Ok((count > 0).then_some(Progress::AwaitsInput(count)));
        }
        let Some((length, sequence)) = packet::header(context.io.input()) else {
            context.io.expect(packet::HEADER);
            return Ok(None);
        };
        if sequence != *context.sequence {
            return Err(errors::OUT_OF_ORDER.bare());
        }
        *context.sequence = sequence.wrapping_add(1);
        let is_end = length == 0 && !infile.continues;
        infile.left = length;
        infile.continues = length == packet::FRAME_MAX;
        if !is_end {
            return Ok(Some(Progress::AwaitsInput(packet::HEADER)));
        }
        // The empty packet stays in the input until the reply is complete, as a command does (DM-2).
        let script = self.infile.take().and_then(|infile| infile.script);
        self.allow_idle_time();
        let outcome = self.sql.load_end();
        let progress = self.answer(context, outcome, packet::HEADER, script);
        context.io.hold_until_durable(self.sql.durability_lsn());
        Ok(Some(progress))
    }
}
