//! The memory of a thread. Connections borrow their buffers from it and bring them back; how much of them is kept hangs on the thread's seat, for there are few seats and may be many threads.

use crate::worker_slots::{Seat, Seats};
use crate::{Counters, send_batch};

/// What a thread carries from one connection to the next: buffers, the time of the round, and counts that reach the counters once a round.
pub(crate) struct Scratch {
    pub input: Vec<u8>,
    /// Empty buffers for what the connections of a round receive.
    inputs: Vec<Vec<u8>>,
    /// Empty output buffers, as many as connections are put up at once.
    outputs: Vec<Vec<u8>>,
    /// Capacity of both, and how much of it may be kept: little without a seat.
    kept: usize,
    kept_max: usize,
    seat: Option<Seat>,
    /// Milliseconds of the pool's clock when the round began.
    pub now_ms: u64,
    /// The same in nanoseconds for the histograms; 0 while they are off.
    pub began: u64,
    /// The processor that the thread ran on when the round began.
    pub cpu: usize,
    pub tally: Tally,
}

/// Counts of a round.
#[derive(Default)]
pub(crate) struct Tally {
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub batches: u64,
    sends: u64,
}

impl Tally {
    /// The socket has taken so many bytes at once.
    pub fn sent(&mut self, bytes: u64) {
        self.bytes_out += bytes;
        self.sends += u64::from(bytes > 0);
    }

    pub fn settle(&mut self, counters: &Counters) {
        counters.bytes_in.add(self.bytes_in);
        counters.bytes_out.add(self.bytes_out);
        counters.batches.add(self.batches);
        counters.sends.add(self.sends);
        *self = Tally::default();
    }
}

/// Bytes that a connection receives in a round; who sends more is served on its own.
const ROUND_INPUT: usize = 32 << 10;
/// Capacity up to which a thread keeps one output buffer, and the others.
const OUTPUT_KEPT: usize = 1 << 20;
const OUTPUTS_KEPT: usize = 32 << 10;
/// A thread without a seat keeps so much less: there may be many, and each serves little.
const STANDING: usize = 16;

impl Scratch {
    pub fn new(receive_bytes: usize) -> Scratch {
        Scratch {
            input: vec![0; receive_bytes],
            inputs: Vec::new(),
            outputs: Vec::new(),
            kept: 0,
            kept_max: 0,
            seat: None,
            now_ms: 0,
            began: 0,
            cpu: usize::MAX,
            tally: Tally::default(),
        }
    }

    /// An empty buffer with room for what a connection of a round receives.
    pub fn give_input(&mut self) -> Vec<u8> {
        let buffer = self.inputs.pop();
        self.kept -= buffer.as_ref().map_or(0, Vec::capacity);
        buffer.unwrap_or_else(|| Vec::with_capacity(ROUND_INPUT))
    }

    pub fn take_input(&mut self, mut buffer: Vec<u8>) {
        if buffer.capacity() == ROUND_INPUT && self.inputs.len() < send_batch::OUTBOX_MAX && self.has_room(ROUND_INPUT)
        {
            buffer.clear();
            self.kept += ROUND_INPUT;
            self.inputs.push(buffer);
        }
    }

    /// An empty buffer for replies.
    pub fn give_output(&mut self) -> Vec<u8> {
        let buffer = self.outputs.pop().unwrap_or_default();
        self.kept -= buffer.capacity();
        buffer
    }

    /// A buffer that a connection no longer needs.
    pub fn take_output(&mut self, mut buffer: Vec<u8>) {
        let most = if self.outputs.is_empty() { OUTPUT_KEPT } else { OUTPUTS_KEPT };
        let bytes = buffer.capacity();
        if bytes > 0 && bytes <= most && self.outputs.len() < send_batch::OUTBOX_MAX && self.has_room(bytes) {
            buffer.clear();
            self.kept += bytes;
            self.outputs.push(buffer);
        }
    }

    /// Takes a free seat of the group, if it has none.
    pub fn sit(&mut self, seats: &Seats) {
        if self.seat.is_none() {
            self.seat = seats.take();
            self.kept_max =
                if self.seat.is_some() { seats.idle_buffer_bytes } else { seats.idle_buffer_bytes / STANDING };
        }
    }

    /// Gives the seat back, and what may be kept only there.
    pub fn stand_up(&mut self, seats: &Seats) {
        if let Some(seat) = self.seat.take() {
            (self.inputs, self.outputs, self.kept, self.kept_max) = (Vec::new(), Vec::new(), 0, 0);
            seats.give(seat);
        }
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.kept + bytes <= self.kept_max
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn who_sits_keeps_more_than_who_stands_and_leaves_the_seat_empty() {
        let seats = Seats::new(STANDING * 1000, false);
        seats.add(None);
        let (mut one, mut other) = (Scratch::new(1), Scratch::new(1));
        one.sit(&seats);
        other.sit(&seats);
        for scratch in [&mut one, &mut other] {
            (0..4).for_each(|_| scratch.take_output(Vec::with_capacity(600)));
        }
        assert_eq!((one.outputs.len(), other.outputs.len()), (4, 1));
        one.stand_up(&seats);
        assert_eq!(one.give_output().capacity(), 0);
        other.sit(&seats);
        (0..4).for_each(|_| other.take_output(Vec::with_capacity(600)));
        assert_eq!(other.outputs.len(), 5);
        one.sit(&seats);
        one.take_output(Vec::with_capacity(1100));
        assert_eq!(one.outputs.len(), 0, "there is one seat");
    }
}
