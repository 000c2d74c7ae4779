//! PostgreSQL's grammar from outside.

mod corpus;
mod fields;
mod generate;
mod print;
mod stress;
