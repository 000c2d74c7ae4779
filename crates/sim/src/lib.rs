//! The whole engine from one seed, on a simulated disk and clock, against an oracle. README.md beside this crate has the picture.

#![forbid(unsafe_code)]

mod canary;
mod every;
mod history;
mod life;
mod model;
mod op;
mod random;
mod report;
mod tables;
mod takeover;
mod world;

pub use canary::{LIES, Lie};
pub use every::{Every, Point};
pub use history::undo_seed;
pub use random::Random;
pub use report::{Summary, Violation};
pub use takeover::{TAKEOVER_FAULTS, Takeover, TakeoverFault, TakeoverSummary};
