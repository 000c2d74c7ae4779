//! Tests of the crate from outside.

mod expr;
mod fields;
mod generate;
mod print;
mod stress;
