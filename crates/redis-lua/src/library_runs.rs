//! A state loads libraries of functions, and runs one.

use mlua::{MultiValue, Value};

use crate::frame::{Answer, Host, Question};
use crate::libraries::{Collected, Loaded, Registered};
use crate::sandbox;
use crate::state::{Ended, Protocols, State};

impl State {
    /// Loads a library, and returns its functions. A library that is loaded already stays.
    pub fn load_library(
        &mut self,
        name: &str,
        id: u64,
        code: &[u8],
        host: &mut Host<'_>,
    ) -> Result<Vec<Registered>, String> {
        if let Some(loaded) = self.libraries.get(name)
            && loaded.id == id
        {
            return Ok(Vec::new());
        }
        self.limit(crate::state::RUN_BYTES_MAX);
        let chunk = sandbox::compiled(self.lua(), code, "@user_function")
            .map_err(|text| format!("ERR Error compiling function: {text}"))?;
        let api = self.loading.api.borrow().clone();
        let Some(api) = api else { unreachable!("a state for functions") };
        self.globals.begin_loading(&api).map_err(|error| format!("ERR {error}"))?;
        *self.loading.collected.borrow_mut() = Some(Collected::new());
        // Commands are refused while a library is loaded; only questions whether it may go on reach the host.
        let mut only_time = |question: Question<'_>, reply: &mut Vec<u8>| match question {
            Question::Pause | Question::Log(..) => host(question, reply),
            _ => Answer::Refused("redis.call/pcall can only be called inside a script invocation".to_owned()),
        };
        let mut out = Vec::new();
        let protocols = Protocols { client_resp3: false };
        let ended = self.run(&chunk, MultiValue::new(), name, protocols, &mut only_time, &mut out);
        let collected = self.loading.collected.borrow_mut().take().unwrap_or_default();
        self.globals.end_loading().map_err(|error| format!("ERR {error}"))?;
        if ended != (Ended::Replied { is_error: false }) {
            return Err(load_error(&out));
        }
        let functions = collected.iter().map(|(name, (_, function))| (name.clone(), function.clone())).collect();
        self.libraries.insert(name.to_owned(), Loaded { id, functions });
        Ok(collected.into_values().map(|(registered, _)| registered).collect())
    }

    /// Forgets the libraries that `keep` does not know.
    pub fn retain_libraries(&mut self, keep: impl Fn(&str, u64) -> bool) {
        self.libraries.retain(|name, loaded| keep(name, loaded.id));
    }

    /// Runs a function of a library that is loaded.
    pub fn run_function(
        &mut self,
        (library, name): (&str, &str),
        (keys, args): (&[&[u8]], &[&[u8]]),
        protocols: Protocols,
        host: &mut Host<'_>,
        out: &mut Vec<u8>,
    ) -> Ended {
        let loaded = self.libraries.get(library).and_then(|loaded| loaded.functions.get(name)).cloned();
        let Some(function) = loaded else { unreachable!("the library is loaded") };
        let values = self.texts(keys).and_then(|keys| Ok((keys, self.texts(args)?)));
        match values {
            Ok((keys, args)) => {
                let values = MultiValue::from_vec(vec![Value::Table(keys), Value::Table(args)]);
                self.run(&function, values, name, protocols, host, out)
            }
            Err(_) => {
                out.extend_from_slice(b"-ERR not enough memory\r\n");
                Ended::Replied { is_error: true }
            }
        }
    }
}

/// Returns the reply of FUNCTION LOAD for a library whose code has failed.
fn load_error(reply: &[u8]) -> String {
    let line = String::from_utf8_lossy(reply);
    let line = line.trim_start_matches('-').trim_end();
    let text = line.split_once(" script: ").map_or(line, |(text, _)| text);
    format!("ERR Error registering functions: {text}")
}
