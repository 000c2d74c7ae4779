use std::sync::atomic::*;
#[derive(Default)]
pub struct Counter(AtomicU64);
impl Counter {
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
