//! A simulated shared store with several clients, in memory: the same calls give the same results.
//!
//! A node that is paused, cut off or killed is paused, cut off or killed at an operation on the store, since nothing else that it does is seen by others. So the
//! simulation is asked twice at each operation, before and after it takes effect. It may let other nodes run for any time meanwhile, nested in the call, and answer that the
//! client is dead. An operation of a dead client may still be under way: it takes effect later, when the simulation delivers it, or never.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::objects::{Guard, ObjectError, ObjectStore};

#[derive(Clone, Default)]
struct Object {
    epoch: u64,
    bytes: Vec<u8>,
}

impl Object {
    fn put(&mut self, offset: u64, data: &[u8]) {
        let (from, to) = (offset as usize, offset as usize + data.len());
        if self.bytes.len() < to {
            self.bytes.resize(to, 0);
        }
        self.bytes[from..to].copy_from_slice(data);
    }
}

/// A write that was under way when its client died or gave it up.
struct LateWrite {
    name: String,
    guard: Guard,
    epoch: u64,
    pieces: Vec<(u64, Vec<u8>)>,
}

/// The outcome of an operation, and for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The client goes on.
    Proceed,
    /// The client is dead. Asked before the operation: it is lost. Asked after it: nobody learns of the result.
    Die,
    /// The client is dead, and the operation remains under way. After it has taken effect, the same as `Die`.
    DieUnderWay,
    /// The client goes on with an error, and the operation remains under way. After it has taken effect, only the error.
    FailUnderWay,
}

/// When the simulation is asked about an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    Before,
    After,
}

/// Decides the fate of a client at an operation.
pub type FateHook = Arc<dyn Fn(usize, Moment) -> Fate + Send + Sync>;

#[derive(Default)]
struct SharedState {
    objects: BTreeMap<String, Object>,
    late: Vec<LateWrite>,
    fate: Option<FateHook>,
    /// Guards of objects whose names have this prefix are not compared.
    ignored_guards: Option<String>,
    operations: u64,
    refused: u64,
}

/// The store that all clients share.
#[derive(Clone, Default)]
pub struct SimObjects {
    state: Arc<Mutex<SharedState>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}

impl SharedState {
    fn write(&mut self, name: &str, guard: Guard, epoch: u64, pieces: &[(u64, &[u8])]) -> Result<(), ObjectError> {
        let is_ignored = self.ignored_guards.as_ref().is_some_and(|prefix| name.starts_with(prefix.as_str()));
        let refusal = match (guard, self.objects.get(name)) {
            (Guard::Absent, None) => None,
            (Guard::Absent, Some(_)) => Some(ObjectError::Exists),
            (_, None) => Some(ObjectError::Missing),
            (Guard::Equal(expected), Some(object)) if object.epoch != expected => Some(ObjectError::Fenced),
            (Guard::AtMostNew, Some(object)) if object.epoch > epoch => Some(ObjectError::Fenced),
            _ => None,
        };
        match refusal {
            Some(ObjectError::Fenced) if is_ignored => {}
            Some(refusal) => {
                self.refused += u64::from(matches!(refusal, ObjectError::Fenced));
                return Err(refusal);
            }
            None => {}
        }
        let object = self.objects.entry(name.to_owned()).or_default();
        object.epoch = epoch;
        pieces.iter().for_each(|(offset, data)| object.put(*offset, data));
        Ok(())
    }
}

impl SimObjects {
    pub fn new() -> SimObjects {
        SimObjects::default()
    }

    /// Returns the store as the client with this number sees it.
    pub fn client(&self, number: usize) -> Arc<SimClient> {
        Arc::new(SimClient { number, state: self.state.clone() })
    }

    /// Sets the hook that decides at each operation. It is called without locks, so it may use the store.
    pub fn set_fate(&self, hook: Option<FateHook>) {
        lock(&self.state).fate = hook;
    }

    /// From now on guards that compare epochs hold on all objects whose names begin with `prefix`. No database can survive that.
    pub fn ignore_guards(&self, prefix: &str) {
        lock(&self.state).ignored_guards = Some(prefix.to_owned());
    }

    /// Returns the number of writes that are still under way, though nobody waits for them.
    pub fn late_writes(&self) -> usize {
        lock(&self.state).late.len()
    }

    /// Lets the `n`-th of them take effect, if its guard still holds.
    pub fn deliver_late(&self, n: usize) {
        let mut state = lock(&self.state);
        let LateWrite { name, guard, epoch, pieces } = state.late.remove(n);
        let pieces: Vec<(u64, &[u8])> = pieces.iter().map(|(offset, data)| (*offset, data.as_slice())).collect();
        let _ = state.write(&name, guard, epoch, &pieces);
    }

    /// Returns the numbers of operations, and of writes that were refused because of their epoch.
    pub fn counts(&self) -> (u64, u64) {
        let state = lock(&self.state);
        (state.operations, state.refused)
    }
}

/// One client of the store.
pub struct SimClient {
    number: usize,
    state: Arc<Mutex<SharedState>>,
}

fn no_answer() -> ObjectError {
    ObjectError::Io(io::Error::other("the simulated store does not answer"))
}

impl SimClient {
    /// Asks the simulation, then runs the operation, then asks again.
    fn run<R>(
        &self,
        operation: impl FnOnce(&mut SharedState) -> Result<R, ObjectError>,
        late: impl FnOnce() -> Option<LateWrite>,
    ) -> Result<R, ObjectError> {
        let fate = {
            let mut state = lock(&self.state);
            state.operations += 1;
            state.fate.clone()
        };
        let ask = |moment| fate.as_ref().map_or(Fate::Proceed, |fate| fate(self.number, moment));
        match ask(Moment::Before) {
            Fate::Proceed => {}
            Fate::Die => return Err(no_answer()),
            Fate::DieUnderWay | Fate::FailUnderWay => {
                lock(&self.state).late.extend(late());
                return Err(no_answer());
            }
        }
        let result = operation(&mut lock(&self.state));
        if ask(Moment::After) == Fate::Proceed { result } else { Err(no_answer()) }
    }
}

impl ObjectStore for SimClient {
    fn write(&self, name: &str, guard: Guard, epoch: u64, pieces: &[(u64, &[u8])]) -> Result<(), ObjectError> {
        let late = || {
            let pieces = pieces.iter().map(|(offset, data)| (*offset, data.to_vec())).collect();
            Some(LateWrite { name: name.to_owned(), guard, epoch, pieces })
        };
        self.run(|state| state.write(name, guard, epoch, pieces), late)
    }

    fn read(&self, name: &str, offset: u64, buf: &mut [u8]) -> Result<usize, ObjectError> {
        let read = |state: &mut SharedState| {
            let object = state.objects.get(name).ok_or(ObjectError::Missing)?;
            let rest = object.bytes.get(offset as usize..).unwrap_or(&[]);
            let len = rest.len().min(buf.len());
            buf[..len].copy_from_slice(&rest[..len]);
            Ok(len)
        };
        self.run(read, || None)
    }

    fn remove(&self, name: &str) -> Result<(), ObjectError> {
        self.run(|state| state.objects.remove(name).map(drop).ok_or(ObjectError::Missing), || None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_with_an_older_epoch_is_refused_and_changes_nothing() {
        let store = SimObjects::new();
        let (old, new) = (store.client(0), store.client(1));
        assert!(matches!(old.write("a", Guard::Equal(1), 1, &[]), Err(ObjectError::Missing)));
        old.write("a", Guard::Absent, 1, &[(0, b"one")]).unwrap();
        assert!(matches!(new.write("a", Guard::Absent, 2, &[]), Err(ObjectError::Exists)));
        new.write("a", Guard::AtMostNew, 2, &[]).unwrap();
        assert!(matches!(old.write("a", Guard::Equal(1), 1, &[(0, b"two")]), Err(ObjectError::Fenced)));
        assert!(matches!(old.write("a", Guard::AtMostNew, 1, &[(0, b"two")]), Err(ObjectError::Fenced)));
        let mut bytes = [0; 8];
        assert_eq!(old.read("a", 0, &mut bytes).unwrap(), 3);
        assert_eq!(&bytes[..3], b"one");
        new.write("a", Guard::Equal(2), 2, &[(6, b"x"), (0, b"O")]).unwrap();
        assert_eq!(old.read("a", 0, &mut bytes).unwrap(), 7);
        assert_eq!(&bytes[..7], b"One\0\0\0x");
        assert_eq!(store.counts().1, 2);
    }

    #[test]
    fn a_write_under_way_takes_effect_late_only_if_its_guard_still_holds() {
        for raised in [false, true] {
            let store = SimObjects::new();
            store.client(0).write("a", Guard::Absent, 1, &[(0, b"one")]).unwrap();
            store.set_fate(Some(Arc::new(|_, _| Fate::DieUnderWay)));
            store.client(0).write("a", Guard::Equal(1), 1, &[(0, b"two")]).unwrap_err();
            store.set_fate(None);
            if raised {
                store.client(1).write("a", Guard::AtMostNew, 2, &[]).unwrap();
            }
            store.deliver_late(0);
            let mut bytes = [0; 3];
            store.client(1).read("a", 0, &mut bytes).unwrap();
            assert_eq!(&bytes, if raised { b"one" } else { b"two" });
        }
    }
}
