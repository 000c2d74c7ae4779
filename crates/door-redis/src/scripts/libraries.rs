//! Libraries of functions: durable documents of the engine, and in memory what they register.
//!
//! Threads load a library when they first run one of its functions, and again when its number has changed. A change is in the catalog before anybody sees it.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{Engine, Lsn};
use redis_lua::{Answer, BAD_NAME, Host, Purpose, Question, Registered, is_valid_name};
use stdx::sync::atomic::{AtomicU64, Ordering};
use stdx::sync::{Mutex, RwLock};

use crate::commands::utf8;
use crate::scripts::flags::ScriptFlags;
use crate::scripts::{ThreadState, put_state, take_state};
use crate::shared::Shared;

/// The kind of the engine's documents.
const KIND: &str = "library";

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
    functions: BTreeMap<String, Arc<Library>>,
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

    fn remove(&mut self, name: &str) {
        if let Some(library) = self.by_name.remove(name) {
            library.functions.iter().for_each(|function| drop(self.functions.remove(&function.name)));
        }
    }

    fn insert(&mut self, library: Arc<Library>) {
        for function in &library.functions {
            self.functions.insert(function.name.clone(), library.clone());
        }
        self.by_name.insert(library.name.clone(), library);
    }
}

/// What FUNCTION RESTORE does with the libraries that there are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    Flush,
    Append,
    Replace,
}

#[derive(Default)]
pub struct Libraries {
    set: RwLock<Arc<LibrarySet>>,
    changing: Mutex<()>,
    next: AtomicU64,
    /// Grows with every change.
    generation: AtomicU64,
}

/// Returns the name of a library and nothing else, from its first line. The error is a reply.
fn read_name(code: &[u8]) -> Result<String, String> {
    if !code.starts_with(b"#!") {
        return Err("ERR Missing library metadata".to_owned());
    }
    let Some(end) = code.iter().position(|byte| *byte == b'\n') else {
        return Err("ERR Invalid library metadata".to_owned());
    };
    let line = utf8(&code[2..end]);
    let mut words = line.split([' ', '\t', '\r', '\x0b', '\x0c']).filter(|word| !word.is_empty());
    let engine = words.next().unwrap_or_default().to_owned();
    let mut name: Option<String> = None;
    for word in words {
        match word.strip_prefix("name=") {
            Some(_) if name.is_some() => {
                return Err("ERR Invalid metadata value, name argument was given multiple times".to_owned());
            }
            Some(given) => name = Some(given.to_owned()),
            None => return Err(format!("ERR Invalid metadata value given: {word}")),
        }
    }
    let name = name.ok_or("ERR Library name was not given")?;
    if !is_valid_name(&name) {
        return Err(format!("ERR {BAD_NAME}"));
    }
    if !engine.eq_ignore_ascii_case("lua") {
        return Err(format!("ERR Engine '{engine}' not found"));
    }
    Ok(name)
}

impl Libraries {
    pub fn get(&self) -> Arc<LibrarySet> {
        self.set.read().clone()
    }

    /// Reads what a former run of the server has stored. Returns the libraries that could not be loaded, with the reasons.
    pub fn open(&self, shared: &Arc<Shared>) -> engine::Result<Vec<(String, String)>> {
        let mut set = LibrarySet::default();
        let mut failed = Vec::new();
        for (name, code) in shared.engine.documents().list(KIND)? {
            match self.compile(shared, &code) {
                Ok(library) => set.insert(Arc::new(library)),
                Err(text) => failed.push((name, text)),
            }
        }
        *self.set.write() = Arc::new(set);
        Ok(failed)
    }

    /// Loads the code of a library. The error is a reply.
    fn compile(&self, shared: &Arc<Shared>, code: &[u8]) -> Result<Library, String> {
        let name = read_name(code)?;
        let _claim = stdx::memory::claim(2 * code.len()).map_err(crate::errors::out_of_memory)?;
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let mut library = Library { name, id, code: code.to_vec(), functions: Vec::new() };
        let mut own = take_state(shared, Purpose::Functions)?;
        let loaded = load(&mut own, &library, &mut time_host(shared));
        put_state(own);
        library.functions = loaded?;
        if library.functions.is_empty() {
            return Err("ERR No functions registered".to_owned());
        }
        Ok(library)
    }

    /// Adds libraries. Returns their names, and the LSN at which they are durable. The error is a reply.
    pub fn add(&self, shared: &Arc<Shared>, codes: &[&[u8]], policy: Policy) -> Result<(Vec<String>, Lsn), String> {
        let _changing = self.changing.lock();
        let mut set = if policy == Policy::Flush { LibrarySet::default() } else { (*self.get()).clone() };
        let mut names: Vec<String> = Vec::new();
        for code in codes {
            let name = read_name(code)?;
            if set.by_name.contains_key(&name) && (policy != Policy::Replace || names.contains(&name)) {
                return Err(format!("ERR Library '{name}' already exists"));
            }
            let library = self.compile(shared, code)?;
            set.remove(&name);
            let taken = library.functions.iter().find(|function| set.functions.contains_key(&function.name));
            if let Some(function) = taken {
                return Err(format!("ERR Function {} already exists", function.name));
            }
            set.insert(Arc::new(library));
            names.push(name);
        }
        let lsn = self.publish(&shared.engine, set).map_err(|error| crate::errors::of_engine(&error))?;
        Ok((names, lsn))
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
    fn publish(&self, engine: &Engine, set: LibrarySet) -> engine::Result<Lsn> {
        let old = self.get();
        let gone = old.by_name.keys().filter(|name| !set.by_name.contains_key(*name));
        let mut changes: Vec<(&str, Option<&[u8]>)> = gone.map(|name| (name.as_str(), None)).collect();
        let is_new =
            |library: &&Arc<Library>| old.by_name.get(&library.name).is_none_or(|other| other.id != library.id);
        changes.extend(set.by_name.values().filter(is_new).map(|one| (one.name.as_str(), Some(one.code.as_slice()))));
        let lsn = engine.documents().change(KIND, &changes)?;
        *self.set.write() = Arc::new(set);
        self.generation.fetch_add(1, Ordering::Release);
        Ok(lsn)
    }

    /// Makes a state ready to run a function of a library. The error is a reply.
    pub fn prepare(&self, shared: &Arc<Shared>, own: &mut ThreadState, library: &Library) -> Result<(), String> {
        let generation = self.generation.load(Ordering::Acquire);
        if own.library_generation != generation {
            let set = self.get();
            own.state.retain_libraries(|name, id| set.by_name.get(name).is_some_and(|library| library.id == id));
            own.library_generation = generation;
        }
        load(own, library, &mut time_host(shared)).map(|_| ())
    }
}

fn load(own: &mut ThreadState, library: &Library, host: &mut Host<'_>) -> Result<Vec<Registered>, String> {
    own.state.load_library(&library.name, library.id, library.body(), host)
}

/// How long the code of a library may take to register its functions, as in Redis.
const LOAD_NS_MAX: u64 = 500_000_000;

/// Returns the host of code that is loaded: it only limits its time.
fn time_host(shared: &Arc<Shared>) -> impl FnMut(Question<'_>, &mut Vec<u8>) -> Answer {
    let shared = shared.clone();
    let started_ns = shared.clock.monotonic_ns();
    move |question, _| match question {
        Question::Pause if shared.clock.monotonic_ns().saturating_sub(started_ns) > LOAD_NS_MAX => {
            Answer::Stop("-ERR FUNCTION LOAD timeout".to_owned())
        }
        Question::Log(level, text) => {
            shared.host.log(level, &String::from_utf8_lossy(text));
            Answer::Done
        }
        _ => Answer::Done,
    }
}
