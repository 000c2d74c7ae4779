//! Statements through sessions on a whole engine.

mod scenarios;
mod stress;
mod support;
mod trouble;
