//! Statements through sessions on a whole engine.

mod accounts;
mod foreign;
mod explain;
mod scenarios;
mod stress;
mod support;
mod trouble;
