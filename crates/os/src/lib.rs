//! The outside world, real and simulated: block devices in a folder, clocks, random bytes, memory, processors. Start with README.md.
//!
//! Everything nondeterministic enters the engine through this crate, so a whole engine runs from one seed on the simulated side.

mod aligned;
mod clock;
pub mod cpu;
mod device;
mod entropy;
pub mod memory;
pub mod process;
mod real;
mod sim;
pub mod stack;
mod uring;

pub use aligned::Aligned;
pub use clock::{Clock, RealClock, SimClock};
pub use device::{Device, Folder, Open};
pub use entropy::entropy;
pub use real::RealFolder;
pub use sim::{Fault, SimFolder};
pub use uring::{ReadRing, send_many};
