//! PostgreSQL's grammar from outside.

mod corpus;
