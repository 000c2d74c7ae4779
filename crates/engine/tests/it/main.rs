mod support;

mod large;
mod rows;
mod stress;
mod strings;
mod trouble;
mod units;
