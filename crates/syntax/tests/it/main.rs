//! Tests of the crate from outside.

mod corpus;
mod expr;
mod fields;
mod generate;
mod postgres;
mod print;
mod stress;
