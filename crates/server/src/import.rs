//! `beluga import`: loads a file of Redis into a data folder, in its server if one is running.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use door_redis::{ImportError, ImportPart, RedisDoor, read_manifest};
use engine::{Error, Replace};

use crate::exit::{Exit, Failure, say};
use crate::settings::load::Arguments;
use crate::settings::{Name, Settings};
use crate::shared::Patience;
use crate::stop::StopSender;
use crate::store::{self, Held, Until};
use crate::{control, log, redis};

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
        let (parts, bytes) = self.parts().map_err(|error| match error {
            ImportError::Engine(_) => fail(Exit::Io, &error),
            _ => fail(Exit::Data, &format_args!("{error}; nothing was imported")),
        })?;
        log::info("import begins", &[("file", &shown)]);
        let (begin, whole, mut told) = (Instant::now(), bytes.max(1), 0);
        let imported = door.import(parts, self.replace, &mut |done| {
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
        let mut text = format!(
            "{shown}: {} keys in {databases} databases, {} libraries of functions; {} keys had expired; {:.1} s",
            imported.key_count(),
            imported.libraries,
            imported.expired,
            ms as f64 / 1000.0
        );
        if imported.cut_bytes > 0 {
            let cut = imported.cut_bytes;
            text += &format!("; the last {cut} bytes are no whole command or transaction and were left out");
        }
        Ok(text)
    }

    /// Opens the file, or the files of the manifest that it is or has. Returns their bytes, too.
    fn parts(&self) -> Result<(Vec<ImportPart<'static>>, u64), ImportError> {
        let io = |error| ImportError::Engine(Error::Io(error));
        let paths = match self.manifest().map_err(io)? {
            None => vec![self.path.clone()],
            Some(manifest) => {
                let names = read_manifest(&std::fs::read(&manifest).map_err(io)?)?;
                names.iter().map(|name| manifest.with_file_name(name)).collect()
            }
        };
        let (mut parts, mut bytes) = (Vec::new(), 0);
        for path in paths {
            let named = |error| io(std::io::Error::other(format!("{}: {error}", path.display())));
            let file = File::open(&path).map_err(named)?;
            bytes += file.metadata().map_err(named)?.len();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            parts.push(ImportPart { name, input: Box::new(file) });
        }
        Ok((parts, bytes))
    }

    /// Returns the manifest of an append-only file: the path itself, or the one in the folder.
    fn manifest(&self) -> std::io::Result<Option<PathBuf>> {
        let is_manifest = |path: &Path| path.extension().is_some_and(|extension| extension == "manifest");
        if !self.path.is_dir() {
            return Ok(is_manifest(&self.path).then(|| self.path.clone()));
        }
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let path = entry?.path();
            if is_manifest(&path) {
                found.push(path);
            }
        }
        match found.len() {
            1 => Ok(found.pop()),
            count => Err(std::io::Error::other(format!("the folder has {count} files *.manifest, not one"))),
        }
    }
}

/// Imports a file through the server of the folder if one is running, otherwise directly.
pub fn run(settings: Settings, arguments: &Arguments, file: &str) -> Result<(), Failure> {
    let path = std::path::absolute(file).map_err(|error| Failure::new(Exit::Usage, format!("import: {error}")))?;
    let replace = if arguments.has("replace") { Replace::All } else { Replace::Empty };
    let request = Request { path, replace };
    let folder = arguments.option("into").map_or_else(|| settings.text(Name::Data), str::to_owned);
    let mut tell = |text: &str| say(&format!("{text}\n"));
    let local = store::local_folder(&settings, &folder)?;
    let done = match control::ask(&local, &request.text()?, &mut tell) {
        Some(done) => done.map_err(|text| Failure::new(Exit::Data, text))?,
        None => import_into(settings, &folder, &request, &mut tell)?,
    };
    say(&format!("{done}\n"));
    Ok(())
}

/// Opens data that no server uses, imports, and closes it.
fn import_into(
    settings: Settings,
    folder: &str,
    request: &Request,
    tell: &mut dyn FnMut(&str),
) -> Result<String, Failure> {
    let settings = Arc::new(settings);
    let held = Held::acquire(&settings, folder, true, Patience::WhileSilent)?.expect("it has the lease or fails");
    let engine = held.open(&settings, Until::default(), settings.number(Name::LogSegment))?;
    let door = redis::door(&settings, &engine, &StopSender::unheard());
    let done = request.serve(&door, tell);
    drop(door);
    engine.close().map_err(|error| held.failure(error))?;
    held.release();
    done
}
