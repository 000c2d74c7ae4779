mod support;

mod crash;
mod history;
mod strings;
mod units;
