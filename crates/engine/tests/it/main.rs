mod support;

mod stress;
mod strings;
mod trouble;
mod units;
