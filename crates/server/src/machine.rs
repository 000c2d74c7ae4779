//! The facts from which defaults are derived: the processors that this process may use and the memory that it may have.

use crate::exit::{Exit, Failure};

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

/// Returns a random number of the operating system.
pub fn random() -> Result<u64, Failure> {
    let mut bytes = [0; 8];
    os::entropy(&mut bytes)
        .map_err(|e| Failure::new(Exit::Io, format!("the operating system provides no random numbers: {e}")))?;
    Ok(u64::from_le_bytes(bytes))
}
