//! Tests of the built binary `beluga` as a process: its output and its exit codes.

mod copies;
mod life;
mod mysql;
mod postgres;
mod redis;
mod shared;
mod start;
mod support;
