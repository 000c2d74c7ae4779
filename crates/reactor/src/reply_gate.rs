//! The gate through which all replies leave, for a server whose right to answer can end.
//!
//! Hard part: a thread may be stopped for any time between its look at the gate and its send. That is right all the same: what is sent was computed before the look, and was true at the look
//! (PG-33 of the pager). So the look comes after the requests of the output have run, never before.

/// Says whether replies may leave at this moment. It closes by the passing of time alone; whoever opens it again calls `Pool::release_held`.
pub struct ReplyGate(Box<dyn Fn() -> bool + Send + Sync>);

impl ReplyGate {
    /// `is_open` is called for each piece of output, from any thread.
    pub fn new(is_open: impl Fn() -> bool + Send + Sync + 'static) -> ReplyGate {
        ReplyGate(Box::new(is_open))
    }

    pub(crate) fn is_open(&self) -> bool {
        self.0()
    }
}
