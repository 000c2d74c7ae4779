mod support;

mod crash;
mod history;
mod stress;
mod strings;
mod trouble;
mod units;
