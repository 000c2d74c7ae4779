//! Libraries of functions are loaded: when they are added, when the server starts, and by each thread that runs one of their functions.

use std::sync::Arc;

use engine::Lsn;
use redis_lua::{Answer, BAD_NAME, Host, Purpose, Question, Registered, is_valid_name};
use stdx::sync::atomic::Ordering;

use crate::commands::utf8;
use crate::parser::words;
use crate::scripts::libraries::{KIND, Libraries, Library, LibrarySet, Policy};
use crate::scripts::thread_state::{ThreadState, put_state, take_state};
use crate::shared::Shared;

/// Returns the name of a library and nothing else, from its first line. The error is a reply.
pub(crate) fn read_name(code: &[u8]) -> Result<String, String> {
    if !code.starts_with(b"#!") {
        return Err("ERR Missing library metadata".to_owned());
    }
    // As in Redis, where a NUL ends the text.
    let end = code.iter().position(|byte| matches!(byte, b'\n' | 0)).filter(|end| code[*end] == b'\n');
    let words = end.and_then(|end| words(&code[..end]));
    let Some([first, words @ ..]) = words.as_deref() else {
        return Err("ERR Invalid library metadata".to_owned());
    };
    let engine = utf8(first.get(2..).unwrap_or_default()).to_string();
    let mut name: Option<String> = None;
    for word in words {
        let word = utf8(word);
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
        let set = if policy == Policy::Flush { LibrarySet::default() } else { (*self.get()).clone() };
        let (set, names) = self.with(shared, set, codes, policy)?;
        let lsn = self.publish(&shared.engine, set).map_err(|error| crate::errors::of_engine(&error))?;
        Ok((names, lsn))
    }

    /// Returns libraries with others added, and the names of these. The error is a reply.
    pub fn with(
        &self,
        shared: &Arc<Shared>,
        mut set: LibrarySet,
        codes: &[&[u8]],
        policy: Policy,
    ) -> Result<(LibrarySet, Vec<String>), String> {
        let mut names: Vec<String> = Vec::new();
        for code in codes {
            let name = read_name(code)?;
            if names.contains(&name) || policy == Policy::New && set.by_name.contains_key(&name) {
                return Err(format!("ERR Library '{name}' already exists"));
            }
            if policy != Policy::Replace && set.by_name.contains_key(&name) {
                return Err(format!("ERR Library {name} already exists"));
            }
            let library = self.compile(shared, code)?;
            set.remove(&name);
            let taken = library.functions.iter().find(|function| set.has_function(&function.name));
            if let Some(function) = taken {
                return Err(format!("ERR Function {} already exists", function.name));
            }
            set.insert(Arc::new(library));
            names.push(name);
        }
        Ok((set, names))
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
