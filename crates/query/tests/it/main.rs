//! Statements through sessions on a whole engine.

mod accounts;
mod explain;
mod foreign;
mod scenarios;
mod stress;
mod support;
mod trouble;
