//! Libraries of functions: durable documents of the engine, and in memory what they register.
//!
//! Threads load a library when they first run one of its functions, and again when its number has changed. A change is in the catalog before anybody sees it.

use std::collections::BTreeMap;
use std::sync::Arc;

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
    pub functions: BTreeMap<String, Arc<Library>>,
}

impl LibrarySet {
    /// Returns a function, with its library.
    pub fn function(&self, name: &str) -> Option<(&Arc<Library>, ScriptFlags)> {
        let library = self.functions.get(name)?;
        let registered = library.functions.iter().find(|function| function.name == name)?;
        Some((library, ScriptFlags::of(registered.flags.iter().map(String::as_str))))
    }

    pub fn function_count(&self) -> usize {
        self.functions.len()
    }

    pub fn bytes(&self) -> u64 {
        self.by_name.values().map(|library| library.code.len() as u64).sum()
    }

    pub fn remove(&mut self, name: &str) {
        if let Some(library) = self.by_name.remove(name) {
            library.functions.iter().for_each(|function| drop(self.functions.remove(&function.name)));
        }
    }

    pub fn insert(&mut self, library: Arc<Library>) {
        for function in &library.functions {
            self.functions.insert(function.name.clone(), library.clone());
        }
        self.by_name.insert(library.name.clone(), library);
    }
}

/// The way in which FUNCTION RESTORE treats the libraries that there are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Policy {
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
}

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
        self.show(set);
        Ok(lsn)
    }

    /// Shows libraries that are stored. The caller has `changing`.
    pub fn show(&self, set: LibrarySet) {
        *self.set.write() = Arc::new(set);
        self.generation.fetch_add(1, Ordering::Release);
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
