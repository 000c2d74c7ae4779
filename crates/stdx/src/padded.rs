#[repr(align(128))]
pub struct Padded<T>(pub T);
