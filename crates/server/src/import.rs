//! `beluga import`: loads a file of Redis into a data folder, in its server if one is running.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use door_redis::{ImportError, RedisDoor};
use engine::Replace;

use crate::exit::{Exit, Failure, say};
use crate::settings::load::Arguments;
use crate::settings::{Name, Settings};
use crate::store::{self, Until};
use crate::{control, log, redis};

const BUFFER_BYTES: usize = 1 << 20;

/// The file to import, as the control socket carries it.
pub struct Request {
    path: PathBuf,
    replace: Replace,
}

const INTO_EMPTY: &str = "import";
const REPLACING: &str = "import-replace";

impl Request {
    /// Returns None for a request of another kind.
    pub fn parse(request: &str) -> Option<Request> {
        let (word, path) = request.split_once(' ')?;
        let replace = match word {
            INTO_EMPTY => Replace::Empty,
            REPLACING => Replace::All,
            _ => return None,
        };
        Some(Request { path: path.into(), replace })
    }

    fn text(&self) -> Result<String, Failure> {
        let path = self.path.to_str().filter(|path| !path.contains('\n'));
        let path =
            path.ok_or_else(|| Failure::new(Exit::Usage, "import: the name of the file must be text of one line"))?;
        let word = if self.replace == Replace::All { REPLACING } else { INTO_EMPTY };
        Ok(format!("{word} {path}"))
    }

    /// Imports the file through a door, and returns a sentence about it.
    pub fn serve(&self, door: &RedisDoor, tell: &mut dyn FnMut(&str)) -> Result<String, Failure> {
        let shown = self.path.display();
        let fail = |exit, error: &dyn std::fmt::Display| Failure::new(exit, format!("import: {shown}: {error}"));
        let opened = File::open(&self.path).and_then(|file| Ok((file.metadata()?, file)));
        let (facts, file) = opened.map_err(|error| fail(Exit::Io, &error))?;
        log::info("import begins", &[("file", &shown)]);
        let (begin, whole, mut told) = (Instant::now(), facts.len().max(1), 0);
        let imported = door.import(BufReader::with_capacity(BUFFER_BYTES, file), self.replace, &mut |done| {
            let percent = done * 100 / whole;
            if percent >= told + 10 {
                told = percent;
                tell(&format!("{percent} % of {whole} bytes"));
            }
        });
        let imported = imported.map_err(|error| match &error {
            ImportError::File(_) => fail(Exit::Data, &format_args!("{error}; nothing was imported")),
            ImportError::Conflict(_) => {
                fail(Exit::Usage, &format_args!("{error}; nothing was imported; --replace replaces what there is"))
            }
            ImportError::Engine(_) => fail(Exit::Io, &format_args!("{error}; nothing was imported")),
        })?;
        let databases = imported.keys.iter().filter(|keys| **keys > 0).count();
        let ms = begin.elapsed().as_millis();
        log::info("import done", &[("file", &shown), ("keys", &imported.key_count()), ("ms", &ms)]);
        Ok(format!(
            "{shown}: {} keys in {databases} databases, {} libraries of functions; {} keys had expired; {:.1} s",
            imported.key_count(),
            imported.libraries,
            imported.expired,
            ms as f64 / 1000.0
        ))
    }
}

/// Imports a file through the server of the folder if one is running, otherwise directly.
pub fn run(settings: Settings, arguments: &Arguments, file: &str) -> Result<(), Failure> {
    let path = std::path::absolute(file).map_err(|error| Failure::new(Exit::Usage, format!("import: {error}")))?;
    let replace = if arguments.has("replace") { Replace::All } else { Replace::Empty };
    let request = Request { path, replace };
    let folder = arguments.option("into").map_or_else(|| settings.text(Name::Data), str::to_owned);
    let mut tell = |text: &str| say(&format!("{text}\n"));
    let done = match control::ask(Path::new(&folder), &request.text()?, &mut tell) {
        Some(done) => done.map_err(|text| Failure::new(Exit::Data, text))?,
        None => import_into(settings, &folder, &request, &mut tell)?,
    };
    say(&format!("{done}\n"));
    Ok(())
}

/// Opens a folder that no server uses, imports, and closes it.
fn import_into(
    settings: Settings,
    folder: &str,
    request: &Request,
    tell: &mut dyn FnMut(&str),
) -> Result<String, Failure> {
    let settings = Arc::new(settings);
    let opened = store::folder(Path::new(folder), true)?;
    let engine = store::open(&settings, opened, Until::default(), settings.number(Name::LogSegment))?;
    let door = redis::door(&settings, &engine);
    let done = request.serve(&door, tell);
    drop(door);
    engine.close().map_err(|error| store::failure(folder, error))?;
    done
}
