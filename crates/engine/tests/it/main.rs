mod support;

mod crash;
mod history;
mod stress;
mod strings;
mod units;
