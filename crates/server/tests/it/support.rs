//! A folder of its own for each test, and runs of the binary.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("beluga-it-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("the temporary folder can be made");
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn join(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("the temporary folder has a plain name").to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// `beluga` with these words, and no setting from the surroundings.
pub fn beluga(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_beluga"));
    for (variable, _) in std::env::vars().filter(|(v, _)| v.starts_with("BELUGA_")) {
        command.env_remove(variable);
    }
    command.args(words);
    command
}

pub fn run(words: &[&str]) -> Output {
    beluga(words).output().expect("beluga can be started")
}

/// Ends with this code and one line on standard error that holds all the parts.
pub fn assert_fails(output: &Output, code: i32, parts: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert_eq!(text.trim_end().lines().count(), 1, "one line: {text}");
    for part in parts {
        assert!(text.contains(part), "no '{part}' in: {text}");
    }
}
