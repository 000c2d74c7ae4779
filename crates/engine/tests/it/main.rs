mod support;

mod joint;
mod large;
mod lines;
mod rename;
mod rows;
mod stress;
mod strings;
mod trouble;
mod undo;
mod units;
mod versions;
