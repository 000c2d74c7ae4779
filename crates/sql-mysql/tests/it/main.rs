//! Statements through sessions on a whole engine.

mod accounts;
mod bulk;
mod explain;
mod foreign;
mod keys;
mod locking_limits;
mod locks;
mod long_keys;
mod mutated;
mod other_dialect;
mod page_misses;
mod persisted;
mod plans;
mod ranges;
mod restart;
mod scenarios;
mod sorts;
mod spill;
mod statistics;
mod stress;
mod support;
mod suspend;
mod tables;
mod timestamps;
mod user_locks;
mod views;
