//! The state that all sessions of a server share: the database with its catalog, the list of sessions, counters, global variables and cached plans.

pub mod compiled;
pub mod count;
pub mod database;
pub mod handle;
pub mod hooks;
pub mod open_transaction;
pub mod plans;
pub mod prepared;
pub mod variables;
