mod support;

mod strings;
mod units;
