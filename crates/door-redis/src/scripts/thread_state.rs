//! The Lua states of a thread: one for scripts and one for functions, made on demand, and their memory counted.

use std::cell::RefCell;
use std::sync::Arc;

use redis_lua::{Purpose, State};
use stdx::sync::atomic::Ordering;

use crate::shared::Shared;

/// A Lua state of a thread. Its memory is counted as long as it lives.
pub struct ThreadState {
    pub state: State,
    shared: Arc<Shared>,
    counted: u64,
    /// The generation of SCRIPT FLUSH at which it was made.
    generation: u64,
    /// The generation of the libraries when it last forgot those that are gone.
    pub library_generation: u64,
}

impl ThreadState {
    fn new(shared: &Arc<Shared>, purpose: Purpose) -> Result<ThreadState, String> {
        let state = State::new(purpose).map_err(|error| format!("ERR no Lua state: {error}"))?;
        let generation = shared.script_flushes.load(Ordering::Acquire);
        let mut own = ThreadState { state, shared: shared.clone(), counted: 0, generation, library_generation: 0 };
        own.count();
        Ok(own)
    }

    fn set_counted(&mut self, bytes: u64) {
        let cell = &self.shared.runs.state_bytes[self.state.purpose() as usize];
        cell.fetch_add(bytes, Ordering::Relaxed);
        cell.fetch_sub(self.counted, Ordering::Relaxed);
        self.counted = bytes;
    }

    /// Counts the memory that the state takes now.
    pub fn count(&mut self) {
        self.set_counted(self.state.bytes() as u64);
    }
}

impl Drop for ThreadState {
    fn drop(&mut self) {
        self.set_counted(0);
    }
}

thread_local! {
    /// The states of the thread, by purpose. A state is taken out while it runs, so a run that panics drops it.
    static STATES: RefCell<[Option<ThreadState>; 2]> = const { RefCell::new([None, None]) };
}

/// Takes the thread's state for a purpose, or makes one. The error is a reply.
pub fn take_state(shared: &Arc<Shared>, purpose: Purpose) -> Result<ThreadState, String> {
    let own = STATES.with_borrow_mut(|states| states[purpose as usize].take());
    let is_current = |own: &ThreadState| {
        Arc::ptr_eq(&own.shared, shared) && own.generation == shared.script_flushes.load(Ordering::Acquire)
    };
    match own.filter(is_current) {
        Some(own) => Ok(own),
        None => ThreadState::new(shared, purpose),
    }
}

/// Gives a state back to the thread.
pub fn put_state(mut own: ThreadState) {
    own.count();
    let purpose = own.state.purpose() as usize;
    STATES.with_borrow_mut(|states| states[purpose] = Some(own));
}
