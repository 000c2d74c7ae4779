//! Libraries of functions: durable documents of the engine, and in memory what they register.
//!
//! Threads load a library when they first run one of its functions, and again when its number has changed. A change is in the catalog before anybody sees it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use engine::{Engine, Lsn};
use redis_lua::Registered;
use stdx::sync::atomic::{AtomicU64, Ordering};
use stdx::sync::{Mutex, RwLock};

use crate::scripts::flags::ScriptFlags;

/// The kind of the engine's documents.
pub const KIND: &str = "library";

/// A library of functions.
pub struct Library {
    pub name: String,
    /// Never that of another version of it.
    pub id: u64,
    /// The whole text, as FUNCTION LOAD got it.
    pub code: Vec<u8>,
    pub functions: Vec<Registered>,
}

impl Library {
    /// Returns the code without its first line. The line's end stays, so lines have their numbers.
    pub fn body(&self) -> &[u8] {
        let from = self.code.iter().position(|byte| *byte == b'\n').unwrap_or(self.code.len());
        &self.code[from..]
    }
}

/// All libraries as of one moment.
#[derive(Clone, Default)]
pub struct LibrarySet {
    pub by_name: BTreeMap<String, Arc<Library>>,
    /// The library of each function, and its place there, by the name in small letters: FCALL does not tell letters of both cases apart.
    functions: BTreeMap<String, (Arc<Library>, usize)>,
}

impl LibrarySet {
    /// Returns a function, with its library and its name there.
    pub fn function(&self, name: &str) -> Option<(&Arc<Library>, &str, ScriptFlags)> {
        let (library, at) = self.functions.get(&name.to_ascii_lowercase())?;
        let Registered { name, flags, .. } = &library.functions[*at];
        Some((library, name, ScriptFlags::of(flags.iter().map(String::as_str))))
    }

    pub fn has_function(&self, name: &str) -> bool {
        self.functions.contains_key(&name.to_ascii_lowercase())
    }

    pub fn function_count(&self) -> usize {
        self.by_name.values().map(|library| library.functions.len()).sum()
    }

    pub fn bytes(&self) -> u64 {
        self.by_name.values().map(|library| library.code.len() as u64).sum()
    }

    pub fn remove(&mut self, name: &str) {
        if let Some(library) = self.by_name.remove(name) {
            for function in &library.functions {
                self.functions.remove(&function.name.to_ascii_lowercase());
            }
        }
    }

    pub fn insert(&mut self, library: Arc<Library>) {
        for (at, function) in library.functions.iter().enumerate() {
            self.functions.entry(function.name.to_ascii_lowercase()).or_insert((library.clone(), at));
        }
        self.by_name.insert(library.name.clone(), library);
    }
}

/// The way in which FUNCTION LOAD and FUNCTION RESTORE treat the libraries that there are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// FUNCTION LOAD without REPLACE. Redis refuses a name that is taken in other words than with `Append`.
    New,
    Flush,
    Append,
    Replace,
}

#[derive(Default)]
pub struct Libraries {
    pub set: RwLock<Arc<LibrarySet>>,
    pub changing: Mutex<()>,
    /// The number of the newest version of any library.
    pub next: AtomicU64,
    /// Grows with every change.
    pub generation: AtomicU64,
    listener: OnceLock<LibraryListener>,
}

/// Hears of the libraries that there are after a change, and of the LSN at which it is durable.
pub type LibraryListener = Box<dyn Fn(&LibrarySet, Lsn) + Send + Sync>;

impl Libraries {
    pub fn get(&self) -> Arc<LibrarySet> {
        self.set.read().clone()
    }

    /// Removes a library. Returns None if there is none.
    pub fn delete(&self, engine: &Engine, name: &str) -> engine::Result<Option<Lsn>> {
        let _changing = self.changing.lock();
        let mut set = (*self.get()).clone();
        if !set.by_name.contains_key(name) {
            return Ok(None);
        }
        set.remove(name);
        self.publish(engine, set).map(Some)
    }

    /// Removes all of them.
    pub fn clear(&self, engine: &Engine) -> engine::Result<Lsn> {
        let _changing = self.changing.lock();
        self.publish(engine, LibrarySet::default())
    }

    /// Stores the difference to the libraries that there are, and then shows the new ones.
    pub fn publish(&self, engine: &Engine, set: LibrarySet) -> engine::Result<Lsn> {
        let old = self.get();
        let lsn = engine.documents().change(KIND, &set.changes_of(&old))?;
        self.show(set, lsn);
        Ok(lsn)
    }

    /// Shows libraries that are stored. The caller has `changing`.
    pub fn show(&self, set: LibrarySet, lsn: Lsn) {
        let set = Arc::new(set);
        *self.set.write() = set.clone();
        self.generation.fetch_add(1, Ordering::Release);
        if let Some(listener) = self.listener.get() {
            listener(&set, lsn);
        }
    }

    /// Registers the listener. Later registrations are ignored.
    pub fn listen(&self, listener: LibraryListener) {
        let _ = self.listener.set(listener);
    }
}

impl LibrarySet {
    /// Returns the documents to change so that these libraries are stored instead of the old ones.
    pub fn changes_of<'s>(&'s self, old: &'s LibrarySet) -> Vec<(&'s str, Option<&'s [u8]>)> {
        let set = self;
        let gone = old.by_name.keys().filter(|name| !set.by_name.contains_key(*name));
        let mut changes: Vec<(&str, Option<&[u8]>)> = gone.map(|name| (name.as_str(), None)).collect();
        let is_new =
            |library: &&Arc<Library>| old.by_name.get(&library.name).is_none_or(|other| other.id != library.id);
        changes.extend(set.by_name.values().filter(is_new).map(|one| (one.name.as_str(), Some(one.code.as_slice()))));
        changes
    }
}
