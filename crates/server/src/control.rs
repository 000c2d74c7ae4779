//! The control socket: how `beluga backup` talks to the server that uses a data folder. It is a Unix socket in that folder, so that the folder's permissions
//! decide who may use it.
//!
//! A connection carries one request of one line: a word and its argument. The answer is any number of lines `progress ...` and then one line `ok ...` or `error
//! ...`. A thread of its own serves requests one at a time and sleeps otherwise.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::log;

const SOCKET: &str = "control";
/// Pause of the thread after an error.
const REST: Duration = Duration::from_millis(100);
const REQUEST_BYTES_MAX: u64 = 64 << 10;

/// Answers one request. Lines passed to the second argument are sent at once.
pub type Serve = dyn Fn(&str, &mut dyn FnMut(&str)) -> Result<String, String> + Send;

/// The socket. Dropping it removes its file.
pub struct Control {
    path: PathBuf,
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Creates the socket. The caller must hold the lock of the folder, so a socket that exists was left by a crash and is replaced.
pub fn listen(folder: &Path, serve: Box<Serve>) -> std::io::Result<Control> {
    let path = folder.join(SOCKET);
    match std::fs::remove_file(&path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    std::thread::Builder::new().name("control".into()).spawn(move || {
        for stream in listener.incoming() {
            let answered = stream.and_then(|stream| answer(&stream, &*serve));
            if let Err(error) = answered {
                log::debug("control", &[("error", &error)]);
                // accept fails repeatedly while the process has no file descriptors. The pause costs a malformed request nothing.
                std::thread::sleep(REST);
            }
        }
    })?;
    Ok(Control { path })
}

fn answer(stream: &UnixStream, serve: &Serve) -> std::io::Result<()> {
    let mut line = String::new();
    BufReader::new(std::io::Read::take(stream, REQUEST_BYTES_MAX)).read_line(&mut line)?;
    let mut out = stream;
    let done = serve(line.trim_end_matches('\n'), &mut |progress| {
        let _ = writeln!(&mut &*stream, "progress {progress}");
    });
    match done {
        Ok(text) => writeln!(out, "ok {text}"),
        Err(text) => writeln!(out, "error {}", text.replace('\n', " ")),
    }
}

/// Sends a request to the server that uses `folder`. Returns None if none listens there.
pub fn ask(folder: &Path, request: &str, progress: &mut dyn FnMut(&str)) -> Option<Result<String, String>> {
    let mut stream = UnixStream::connect(folder.join(SOCKET)).ok()?;
    Some(exchange(&mut stream, request, progress).unwrap_or_else(|e| Err(format!("the server does not answer: {e}"))))
}

fn exchange(
    stream: &mut UnixStream,
    request: &str,
    progress: &mut dyn FnMut(&str),
) -> std::io::Result<Result<String, String>> {
    writeln!(stream, "{request}")?;
    for line in BufReader::new(stream).lines() {
        let line = line?;
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("progress", text) => progress(text),
            ("ok", text) => return Ok(Ok(text.into())),
            (_, text) => return Ok(Err(text.into())),
        }
    }
    Ok(Err("the server stopped before it was done".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_answered_and_the_socket_goes_with_its_server() {
        let folder = std::env::temp_dir().join(format!("beluga-control-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        assert!(ask(&folder, "twice 1", &mut |_| {}).is_none(), "nobody listens yet");
        std::fs::write(folder.join(SOCKET), "left by a crash").unwrap();
        let control = listen(
            &folder,
            Box::new(|request, progress| {
                let n: u32 = request.strip_prefix("twice ").and_then(|n| n.parse().ok()).ok_or("what?\nwhat?")?;
                progress("half");
                Ok((n * 2).to_string())
            }),
        )
        .unwrap();
        let mut seen = Vec::new();
        assert_eq!(ask(&folder, "twice 21", &mut |p| seen.push(p.to_string())), Some(Ok("42".into())));
        assert_eq!(seen, ["half"]);
        assert_eq!(ask(&folder, "thrice", &mut |_| {}), Some(Err("what? what?".into())));
        drop(control);
        assert!(!folder.join(SOCKET).exists());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
