//! Tests of the built binary `beluga` as a process: its output and its exit codes.

mod life;
mod mysql;
mod postgres;
mod redis;
mod start;
mod support;
