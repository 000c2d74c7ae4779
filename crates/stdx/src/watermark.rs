use crate::sync::{Condvar, Mutex, atomic::*};
pub struct Watermark {
    v: AtomicU64,
    m: Mutex<()>,
    c: Condvar,
    l: std::sync::RwLock<Vec<Box<dyn Fn(u64) + Send + Sync>>>,
}
impl Watermark {
    pub fn new(v: u64) -> Self {
        Watermark { v: AtomicU64::new(v), m: Mutex::new(()), c: Condvar::new(), l: Default::default() }
    }
    pub fn get(&self) -> u64 {
        self.v.load(Ordering::Acquire)
    }
    pub fn advance(&self, v: u64) {
        self.v.fetch_max(v, Ordering::SeqCst);
        drop(self.m.lock());
        self.c.notify_all();
        for l in self.l.read().unwrap().iter() {
            l(v)
        }
    }
    pub fn wait(&self, v: u64) {
        let mut g = self.m.lock();
        while self.get() < v {
            g = self.c.wait(g)
        }
    }
    pub fn listen(&self, f: Box<dyn Fn(u64) + Send + Sync>) {
        self.l.write().unwrap().push(f)
    }
}
