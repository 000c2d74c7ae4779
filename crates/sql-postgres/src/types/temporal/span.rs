#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Span {
    pub months: i32,
    pub days: i32,
    pub micros: i64,
}
