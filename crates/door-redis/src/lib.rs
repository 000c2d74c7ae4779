//! door-redis
pub mod extended;
pub mod glob;
pub mod number;
