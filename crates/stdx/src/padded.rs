//! A value alone in its cache lines. It takes two of them, because processors prefetch lines in pairs.

#[derive(Default, Debug)]
#[repr(align(128))]
pub struct Padded<T>(pub T);
