//! The scratch memory of a thread: connections borrow their buffers from it and return them. How much of them a thread keeps depends on its worker slot, because there are few slots and may be many threads.

use std::time::Duration;

use crate::counters::Counters;
use crate::worker_slots::{WorkerSlot, WorkerSlots};

/// The connections whose output leaves in one submission, and the buffers of each kind that a thread keeps for them.
pub(crate) const BATCH_MAX: usize = 64;

/// The state that a thread carries from one connection to the next: buffers, the time of the round, and counts that are added to the counters once per round.
pub(crate) struct Scratch {
    pub input: Vec<u8>,
    /// Empty buffers for input that the connections of a round receive.
    inputs: Vec<Vec<u8>>,
    /// Empty output buffers, as many as a send batch has connections.
    outputs: Vec<Vec<u8>>,
    /// The capacity of both, and how much of it may be kept: little without a slot.
    idle_bytes: usize,
    idle_bytes_max: usize,
    slot: Option<WorkerSlot>,
    /// The beginning of the round by the pool's clock, and in its milliseconds.
    pub round_start: Duration,
    pub now_ms: u64,
    /// The same as a timestamp for the histograms; 0 while they are off.
    pub began: u64,
    /// Runs of session queues since the round began.
    pub session_runs: u32,
    /// The processor on which the thread ran when the round began.
    pub cpu: usize,
    pub tally: Tally,
}

/// The counts of a round.
#[derive(Default)]
pub(crate) struct Tally {
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub batches: u64,
    sends: u64,
}

impl Tally {
    /// Counts a send of `bytes`.
    pub fn add_send(&mut self, bytes: u64) {
        self.bytes_out += bytes;
        self.sends += u64::from(bytes > 0);
    }

    /// Adds the counts to the counters and clears them.
    pub fn settle(&mut self, counters: &Counters) {
        counters.bytes_in.add(self.bytes_in);
        counters.bytes_out.add(self.bytes_out);
        counters.batches.add(self.batches);
        counters.sends.add(self.sends);
        *self = Tally::default();
    }
}

/// The input that a connection receives in a round. A connection with more input is served on its own.
const ROUND_INPUT: usize = 32 << 10;
/// The capacity up to which a thread keeps its first output buffer, and the others.
const FIRST_OUTPUT_MAX: usize = 1 << 20;
const OUTPUT_MAX: usize = 32 << 10;
/// A thread without a slot keeps this fraction of the memory: there may be many, and each serves little.
const WITHOUT_SLOT: usize = 16;

impl Scratch {
    pub fn new(receive_bytes: usize) -> Scratch {
        Scratch {
            input: vec![0; receive_bytes],
            inputs: Vec::new(),
            outputs: Vec::new(),
            idle_bytes: 0,
            idle_bytes_max: 0,
            slot: None,
            round_start: Duration::ZERO,
            now_ms: 0,
            began: 0,
            session_runs: 0,
            cpu: usize::MAX,
            tally: Tally::default(),
        }
    }

    /// Returns an empty buffer for the input of a connection in a round.
    pub fn take_input_buffer(&mut self) -> Vec<u8> {
        let buffer = self.inputs.pop();
        self.idle_bytes -= buffer.as_ref().map_or(0, Vec::capacity);
        buffer.unwrap_or_else(|| Vec::with_capacity(ROUND_INPUT))
    }

    pub fn return_input_buffer(&mut self, mut buffer: Vec<u8>) {
        if buffer.capacity() == ROUND_INPUT && self.inputs.len() < BATCH_MAX && self.may_keep(ROUND_INPUT) {
            buffer.clear();
            self.idle_bytes += ROUND_INPUT;
            self.inputs.push(buffer);
        }
    }

    /// Returns an empty buffer for replies.
    pub fn take_output_buffer(&mut self) -> Vec<u8> {
        let buffer = self.outputs.pop().unwrap_or_default();
        self.idle_bytes -= buffer.capacity();
        buffer
    }

    pub fn return_output_buffer(&mut self, mut buffer: Vec<u8>) {
        let most = if self.outputs.is_empty() { FIRST_OUTPUT_MAX } else { OUTPUT_MAX };
        let bytes = buffer.capacity();
        if bytes > 0 && bytes <= most && self.outputs.len() < BATCH_MAX && self.may_keep(bytes) {
            buffer.clear();
            self.idle_bytes += bytes;
            self.outputs.push(buffer);
        }
    }

    /// Takes a free slot of the group, unless the thread has one.
    pub fn take_slot(&mut self, slots: &WorkerSlots) {
        if self.slot.is_none() {
            self.slot = slots.take();
            let share = if self.slot.is_some() { 1 } else { WITHOUT_SLOT };
            self.idle_bytes_max = slots.idle_buffer_bytes / share;
        }
    }

    /// Returns the slot, and frees the buffers that only a thread with a slot may keep.
    pub fn return_slot(&mut self, slots: &WorkerSlots) {
        if let Some(slot) = self.slot.take() {
            (self.inputs, self.outputs, self.idle_bytes, self.idle_bytes_max) = (Vec::new(), Vec::new(), 0, 0);
            slots.release(slot);
        }
    }

    fn may_keep(&self, bytes: usize) -> bool {
        self.idle_bytes + bytes <= self.idle_bytes_max
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_with_a_slot_keeps_more_memory_and_returns_it_with_the_slot() {
        let slots = WorkerSlots::new(WITHOUT_SLOT * 1000, false);
        slots.add(None);
        let (mut one, mut other) = (Scratch::new(1), Scratch::new(1));
        one.take_slot(&slots);
        other.take_slot(&slots);
        for scratch in [&mut one, &mut other] {
            (0..4).for_each(|_| scratch.return_output_buffer(Vec::with_capacity(600)));
        }
        assert_eq!((one.outputs.len(), other.outputs.len()), (4, 1));
        one.return_slot(&slots);
        assert_eq!(one.take_output_buffer().capacity(), 0);
        other.take_slot(&slots);
        (0..4).for_each(|_| other.return_output_buffer(Vec::with_capacity(600)));
        assert_eq!(other.outputs.len(), 5);
        one.take_slot(&slots);
        one.return_output_buffer(Vec::with_capacity(1100));
        assert_eq!(one.outputs.len(), 0, "there is one slot");
    }
}
