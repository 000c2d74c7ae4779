mod support;

mod rows;
mod stress;
mod strings;
mod trouble;
mod units;
