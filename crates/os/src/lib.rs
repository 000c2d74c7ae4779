//! temporary
pub mod memory;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};
pub struct Aligned {
    ptr: *mut u8,
    len: usize,
}
unsafe impl Send for Aligned {}
unsafe impl Sync for Aligned {}
impl Aligned {
    pub fn with_capacity(len: usize) -> Self {
        let ptr =
            unsafe { std::alloc::alloc_zeroed(std::alloc::Layout::from_size_align(len.max(4096), 4096).unwrap()) };
        Aligned { ptr, len }
    }
    pub fn as_slice(&self) -> &[u8] {
        unsafe { std::slice::from_raw_parts(self.ptr, self.len) }
    }
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        unsafe { std::slice::from_raw_parts_mut(self.ptr, self.len) }
    }
}
impl Drop for Aligned {
    fn drop(&mut self) {
        unsafe { std::alloc::dealloc(self.ptr, std::alloc::Layout::from_size_align(self.len.max(4096), 4096).unwrap()) }
    }
}
pub trait Device: Send + Sync {
    fn name(&self) -> &str;
    fn len(&self) -> u64;
    fn read(&self, o: u64, b: &mut [u8]) -> io::Result<()>;
    fn write(&self, o: u64, b: &[u8]) -> io::Result<()>;
    fn write_durable(&self, o: u64, b: &[u8]) -> io::Result<()>;
    fn sync(&self) -> io::Result<()>;
    fn grow(&self, len: u64) -> io::Result<()>;
    fn read_many(&self, ops: &mut [(u64, &mut [u8])]) -> Vec<io::Result<()>>;
    fn write_many(&self, ops: &[(u64, &[u8])]) -> io::Result<()>;
    fn prefill(&self, len: u64) -> io::Result<()>;
}
pub enum Open {
    Create,
    Existing,
}
pub trait Folder: Send + Sync {
    fn open(&self, name: &str, mode: Open) -> io::Result<Arc<dyn Device>>;
    fn list(&self) -> io::Result<Vec<String>>;
    fn remove(&self, name: &str) -> io::Result<()>;
    fn rename(&self, a: &str, b: &str) -> io::Result<()>;
    fn sync(&self) -> io::Result<()>;
    fn free_bytes(&self) -> io::Result<u64>;
}
pub trait Clock: Send + Sync {
    fn wall_ms(&self) -> u64;
    fn monotonic_ns(&self) -> u64;
}
pub struct SimClock(u64);
impl SimClock {
    pub fn new(v: u64) -> Self {
        SimClock(v)
    }
}
impl Clock for SimClock {
    fn wall_ms(&self) -> u64 {
        self.0
    }
    fn monotonic_ns(&self) -> u64 {
        0
    }
}
pub struct RealClock(std::time::Instant);
impl RealClock {
    pub fn new() -> Self {
        RealClock(std::time::Instant::now())
    }
}
impl Clock for RealClock {
    fn wall_ms(&self) -> u64 {
        0
    }
    fn monotonic_ns(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }
}
struct F {
    durable: Vec<u8>,
    now: Vec<u8>,
    pending: Vec<(u64, Vec<u8>)>,
}
struct St {
    files: HashMap<String, Arc<Mutex<F>>>,
    ios: u64,
    crash_at: u64,
    cap: Option<u64>,
    rng: stdx::prng::Prng,
}
pub struct SimFolder {
    st: Arc<Mutex<St>>,
}
struct D {
    name: String,
    f: Arc<Mutex<F>>,
    st: Arc<Mutex<St>>,
}
fn io(st: &Mutex<St>) -> io::Result<()> {
    let mut s = st.lock().unwrap();
    s.ios += 1;
    if s.ios > s.crash_at { Err(io::Error::other("crashed")) } else { Ok(()) }
}
impl SimFolder {
    pub fn new(seed: u64) -> Arc<Self> {
        Arc::new(SimFolder {
            st: Arc::new(Mutex::new(St {
                files: HashMap::new(),
                ios: 0,
                crash_at: u64::MAX,
                cap: None,
                rng: stdx::prng::Prng::new(seed),
            })),
        })
    }
    pub fn crash_at_io(&self, n: u64) {
        self.st.lock().unwrap().crash_at = n;
    }
    pub fn io_count(&self) -> u64 {
        self.st.lock().unwrap().ios
    }
    pub fn crash(&self) -> Arc<Self> {
        let mut s = self.st.lock().unwrap();
        let mut rng = stdx::prng::Prng::new(s.rng.next_u64());
        let mut files = HashMap::new();
        let mut names: Vec<_> = s.files.keys().cloned().collect();
        names.sort();
        for n in names {
            let f = s.files[&n].lock().unwrap();
            let mut d = f.durable.clone();
            for (o, b) in &f.pending {
                for (i, c) in b.chunks(512).enumerate() {
                    if rng.chance(0.5) {
                        let at = *o as usize + i * 512;
                        if d.len() < at + c.len() {
                            d.resize(f.now.len(), 0)
                        }
                        d[at..at + c.len()].copy_from_slice(c)
                    }
                }
            }
            let len = d.len();
            let _ = len;
            d.resize(f.now.len(), 0);
            files.insert(n, Arc::new(Mutex::new(F { now: d.clone(), durable: d, pending: vec![] })));
        }
        Arc::new(SimFolder { st: Arc::new(Mutex::new(St { files, ios: 0, crash_at: u64::MAX, cap: None, rng })) })
    }
    pub fn flip_bit(&self, file: &str, offset: u64, bit: u8) {
        let s = self.st.lock().unwrap();
        let mut f = s.files[file].lock().unwrap();
        f.now[offset as usize] ^= 1 << bit;
        f.durable[offset as usize] ^= 1 << bit;
    }
    pub fn used_bytes(&self) -> u64 {
        self.st.lock().unwrap().files.values().map(|f| f.lock().unwrap().now.len() as u64).sum()
    }
    pub fn set_capacity(&self, c: Option<u64>) {
        self.st.lock().unwrap().cap = c
    }
}
impl Folder for SimFolder {
    fn open(&self, name: &str, mode: Open) -> io::Result<Arc<dyn Device>> {
        io(&self.st)?;
        let mut s = self.st.lock().unwrap();
        if matches!(mode, Open::Existing) && !s.files.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let f = s
            .files
            .entry(name.into())
            .or_insert_with(|| Arc::new(Mutex::new(F { durable: vec![], now: vec![], pending: vec![] })))
            .clone();
        Ok(Arc::new(D { name: name.into(), f, st: self.st.clone() }))
    }
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.st.lock().unwrap().files.keys().cloned().collect())
    }
    fn remove(&self, n: &str) -> io::Result<()> {
        io(&self.st)?;
        self.st.lock().unwrap().files.remove(n);
        Ok(())
    }
    fn rename(&self, a: &str, b: &str) -> io::Result<()> {
        io(&self.st)?;
        let mut s = self.st.lock().unwrap();
        let f = s.files.remove(a).ok_or(io::ErrorKind::NotFound)?;
        s.files.insert(b.into(), f);
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        io(&self.st)
    }
    fn free_bytes(&self) -> io::Result<u64> {
        Ok(1 << 40)
    }
}
impl Device for D {
    fn name(&self) -> &str {
        &self.name
    }
    fn len(&self) -> u64 {
        self.f.lock().unwrap().now.len() as u64
    }
    fn read(&self, o: u64, b: &mut [u8]) -> io::Result<()> {
        io(&self.st)?;
        let f = self.f.lock().unwrap();
        b.copy_from_slice(f.now.get(o as usize..o as usize + b.len()).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
    fn write(&self, o: u64, b: &[u8]) -> io::Result<()> {
        let r = io(&self.st);
        let mut f = self.f.lock().unwrap();
        let e = o as usize + b.len();
        if f.now.len() < e {
            f.now.resize(e, 0)
        }
        f.now[o as usize..e].copy_from_slice(b);
        f.pending.push((o, b.to_vec()));
        r
    }
    fn write_durable(&self, o: u64, b: &[u8]) -> io::Result<()> {
        if let Err(e) = io(&self.st) {
            let hit = {
                let s = self.st.lock().unwrap();
                s.ios == s.crash_at + 1
            };
            if hit {
                self.f.lock().unwrap().pending.push((o, b.to_vec()));
            }
            return Err(e);
        }
        let mut f = self.f.lock().unwrap();
        let e = o as usize + b.len();
        let n = f.now.len().max(e);
        f.now.resize(n, 0);
        f.durable.resize(n, 0);
        f.now[o as usize..e].copy_from_slice(b);
        f.durable[o as usize..e].copy_from_slice(b);
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        io(&self.st)?;
        let mut f = self.f.lock().unwrap();
        f.durable = f.now.clone();
        f.pending.clear();
        Ok(())
    }
    fn grow(&self, len: u64) -> io::Result<()> {
        io(&self.st)?;
        let used: u64 = {
            let fs: Vec<_> = self.st.lock().unwrap().files.values().cloned().collect();
            fs.iter().map(|f| f.lock().unwrap().now.len() as u64).sum()
        };
        let mine = self.len();
        if let Some(c) = self.st.lock().unwrap().cap
            && used - mine + len > c
        {
            return Err(io::Error::from_raw_os_error(28));
        }
        let mut f = self.f.lock().unwrap();
        if f.now.len() < len as usize {
            f.now.resize(len as usize, 0);
            f.durable.resize(len as usize, 0);
        }
        Ok(())
    }
    fn prefill(&self, len: u64) -> io::Result<()> {
        self.grow(len)
    }
    fn read_many(&self, ops: &mut [(u64, &mut [u8])]) -> Vec<io::Result<()>> {
        ops.iter_mut().map(|(o, b)| self.read(*o, b)).collect()
    }
    fn write_many(&self, ops: &[(u64, &[u8])]) -> io::Result<()> {
        for (o, b) in ops {
            self.write(*o, b)?
        }
        Ok(())
    }
}
