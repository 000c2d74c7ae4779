//! A value alone in its cache lines; two of them, because processors fetch lines in pairs.

#[derive(Default, Debug)]
#[repr(align(128))]
pub struct Padded<T>(pub T);
