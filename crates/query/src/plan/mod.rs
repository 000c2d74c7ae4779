//! The planner: chooses access paths, join methods and join orders for a bound block. It returns a tree of
//! `nodes::node::Node`.

pub mod access;
pub mod column_pruning;
mod column_ranges;
pub mod constant_folding;
pub mod cost;
pub mod equivalence;
pub mod estimate;
pub mod generated;
pub mod implication;
pub mod join;
pub mod order;
pub mod planner;
mod predicate_extraction;
pub mod restartable;
pub mod selectivity;
pub mod statistics;
pub mod target;
