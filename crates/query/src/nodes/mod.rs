//! A statement between binder and executor: bound expressions, plan nodes, subqueries, changes (PostgreSQL's `nodes/primnodes.h` and `plannodes.h`).
//!
//! The files of this folder describe one recursive type: an expression may hold a subquery, a subquery a plan, a plan expressions. They hold data and how to walk it, no decisions and
//! no state of a run.

pub mod aggregate;
pub mod assignment;
pub mod change;
pub mod comparison;
pub mod context;
pub mod eval;
pub mod exact_number;
pub mod expr;
pub mod formula;
pub mod function;
pub mod keyspace_table;
pub mod node;
pub mod relation;
pub mod subquery;
pub mod system_condition;
pub mod system_table;
pub mod table_function;
pub mod term_test;
pub mod walk;
pub mod window;
