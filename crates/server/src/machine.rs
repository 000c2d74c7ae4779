//! The facts from which defaults are derived: the processors that this process may use and the memory that it may have.

#[derive(Clone, Copy, Debug)]
pub struct Machine {
    pub cores: u64,
    pub memory_bytes: u64,
}

impl Machine {
    pub fn here() -> Machine {
        Machine { cores: os::cpu::allowed().len().max(1) as u64, memory_bytes: os::memory::limit_bytes() }
    }
}
