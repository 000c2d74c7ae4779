//! A client's file on its way in: LOAD DATA LOCAL.
//!
//! The client is asked for it by name and sends its bytes in packets, an empty one at the end. The command itself has left the input by then. Frames are passed on as far as they have
//! come, so a packet's length binds no memory; and whatever the statement comes to, the client is heard to the end before it is told, else both sides would no longer talk of the same
//! thing. While nothing comes no thread is held, and `net_read_timeout` says for how long.

use std::time::Duration;

use query::error::Result;

use super::{Conversation, Next, Turn};
use crate::errors;
use crate::packet;

pub struct Incoming {
    /// The statements behind this one, and where they begin in their text.
    script: Option<(String, usize)>,
    /// Bytes of the frame that have not come.
    left: usize,
    /// The next frame goes on with the packet of the last one.
    goes_on: bool,
}

impl Conversation {
    pub fn is_receiving(&self) -> bool {
        self.incoming.is_some()
    }

    /// Asks for the file; what the client sends from here on is `receive`'s.
    pub(super) fn ask_for(
        &mut self,
        turn: &mut Turn<'_, '_>,
        name: &str,
        script: Option<(String, usize)>,
        size: usize,
    ) -> Next {
        const FILE: u8 = 0xfb;
        turn.writer().packet(|out| {
            out.push(FILE);
            out.extend_from_slice(name.as_bytes());
        });
        let patience = Duration::from_secs(self.number("net_read_timeout").unwrap_or(30));
        self.shared.clients.allow(&self.client, patience);
        self.incoming = Some(Incoming { script, left: 0, goes_on: false });
        Next::Awaits(size)
    }

    /// Takes what has come. `None`: more must come first. An error ends the connection.
    pub fn receive(&mut self, turn: &mut Turn<'_, '_>) -> Result<Option<Next>> {
        let Some(incoming) = &mut self.incoming else { return Ok(None) };
        if incoming.left > 0 {
            let input = turn.io.input();
            let count = incoming.left.min(input.len());
            incoming.left -= count;
            self.sql.load_data(&input[..count]);
            return Ok((count > 0).then_some(Next::Awaits(count)));
        }
        let Some((length, sequence)) = packet::header(turn.io.input()) else {
            turn.io.expect(packet::HEADER);
            return Ok(None);
        };
        if sequence != *turn.sequence {
            return Err(errors::OUT_OF_ORDER.bare());
        }
        *turn.sequence = sequence.wrapping_add(1);
        let is_end = length == 0 && !incoming.goes_on;
        incoming.left = length;
        incoming.goes_on = length == packet::FRAME_MAX;
        if !is_end {
            return Ok(Some(Next::Awaits(packet::HEADER)));
        }
        // The empty packet stays in front until the reply is whole, as a command does.
        let script = self.incoming.take().and_then(|incoming| incoming.script);
        self.shared.clients.allow(&self.client, self.obeyed.idle);
        let outcome = self.sql.load_end();
        let next = self.answer(turn, outcome, packet::HEADER, script);
        turn.io.hold_until_durable(self.sql.gate());
        Ok(Some(next))
    }
}
