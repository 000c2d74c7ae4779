#![forbid(unsafe_code)]
mod control;
mod load;
mod machine;
fn main() {}
