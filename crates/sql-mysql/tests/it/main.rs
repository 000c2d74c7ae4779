//! Statements through sessions on a whole engine.

mod accounts;
mod bulk;
mod explain;
mod foreign;
mod keys;
mod leave;
mod locks;
mod long_keys;
mod mutated;
mod named;
mod persisted;
mod plans;
mod queue;
mod ranges;
mod scenarios;
mod sorts;
mod spill;
mod statistics;
mod stress;
mod support;
mod suspend;
mod tables;
mod timestamps;
mod trouble;
mod views;
