#[derive(Default)]
pub struct Histogram;
impl Histogram {
    pub fn new() -> Self {
        Histogram
    }
    pub fn record(&self, _ns: u64) {}
}
