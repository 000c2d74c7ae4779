//! The outside world, real and simulated: block devices in a folder, clocks, random bytes, memory, processors. Start with README.md.
//!
//! Everything nondeterministic enters the engine through this crate, so a whole engine runs from one seed on the simulated side.

mod aligned;
mod clock;
pub mod cpu;
mod device;
mod entropy;
mod lease;
pub mod memory;
mod objects;
pub mod process;
mod rados;
mod real;
mod sim;
mod sim_objects;
pub mod stack;
mod uring;

pub use aligned::Aligned;
pub use clock::{BootClock, Clock, RealClock, SimClock};
pub use device::{Device, Folder, Open};
pub use entropy::entropy;
pub use lease::{Lease, LeaseAttempt, LeaseFlaw, LeaseHolder};
pub use objects::{Guard, ObjectError, ObjectStore};
pub use rados::{RadosAddress, RadosObjects};
pub use real::RealFolder;
pub use sim::{Fault, SimFolder};
pub use sim_objects::{Fate, FateHook, Moment, SimClient, SimObjects};
pub use uring::{ReadRing, send_many};
