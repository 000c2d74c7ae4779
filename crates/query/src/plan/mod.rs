//! The planner: chooses how the rows of a bound block are reached, joined and ordered. It gives a tree of `nodes::node::Node`.

pub mod access;
pub mod again;
pub mod cost;
pub mod equal;
pub mod estimate;
pub mod fold;
pub mod generated;
pub mod join;
pub mod order;
pub mod pack;
pub mod planner;
mod restrict;
mod said;
pub mod share;
pub mod statistics;
pub mod target;
