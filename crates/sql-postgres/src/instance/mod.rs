//! The state that all PostgreSQL sessions of a server share: the list of sessions, their plans, the facts that the server tells.

pub mod database;
pub mod handle;
pub mod notifications;
pub mod plans;
