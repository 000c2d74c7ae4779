//! The checkout as the checks see it: its tracked files, its crates and what each may import.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

pub struct Workspace {
    pub root: PathBuf,
    /// Paths of all files of the repository (tracked, or new and not ignored), relative to the root, sorted.
    pub files: Vec<String>,
    pub crates: Vec<Crate>,
    /// Name, version and licence expression of every package of another author that is built.
    pub outside: Vec<Outside>,
}

pub struct Crate {
    pub name: String,
    /// Folder relative to the root.
    pub folder: String,
    /// Crates of this workspace that its product code may name (no dev-dependencies).
    pub imports: Vec<String>,
}

pub struct Outside {
    pub name: String,
    pub version: String,
    pub licence: Option<String>,
}

impl Workspace {
    pub fn read() -> Result<Workspace, String> {
        let root = PathBuf::from(output(Path::new("."), "git", &["rev-parse", "--show-toplevel"])?.trim());
        let listed = output(&root, "git", &["ls-files", "--cached", "--others", "--exclude-standard"])?;
        let mut files: Vec<String> = listed.lines().filter(|f| root.join(f).is_file()).map(String::from).collect();
        files.sort();
        files.dedup();
        let metadata = output(&root, cargo(), &["metadata", "--format-version", "1", "--locked"])?;
        let metadata: Value = serde_json::from_str(&metadata).map_err(|e| format!("cargo metadata: {e}"))?;
        let (crates, outside) = packages(&metadata, &root);
        Ok(Workspace { root, files, crates, outside })
    }

    pub fn text(&self, file: &str) -> Result<String, String> {
        std::fs::read_to_string(self.root.join(file)).map_err(|e| format!("{file}: {e}"))
    }

    /// The text, or nothing if the file is not text.
    pub fn text_if_any(&self, file: &str) -> Option<String> {
        std::fs::read_to_string(self.root.join(file)).ok()
    }

    pub fn with_ending<'a>(&'a self, endings: &'a [&str]) -> impl Iterator<Item = &'a String> {
        self.files.iter().filter(move |f| endings.iter().any(|e| f.ends_with(e)))
    }
}

fn packages(metadata: &Value, root: &Path) -> (Vec<Crate>, Vec<Outside>) {
    let (mut crates, mut outside) = (Vec::new(), Vec::new());
    let all = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ours = |p: &Value| p["source"].is_null();
    let names: Vec<&str> = all.iter().filter(|p| ours(p)).filter_map(|p| p["name"].as_str()).collect();
    for package in all {
        let name = package["name"].as_str().unwrap_or_default().to_string();
        if !ours(package) {
            let version = package["version"].as_str().unwrap_or_default().to_string();
            outside.push(Outside { name, version, licence: package["license"].as_str().map(String::from) });
            continue;
        }
        let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        let folder = manifest.parent().and_then(|f| f.strip_prefix(root).ok()).unwrap_or(Path::new(""));
        let dependencies = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut imports: Vec<String> = dependencies
            .iter()
            .filter(|d| d["kind"].is_null())
            .filter_map(|d| d["name"].as_str())
            .filter(|d| names.contains(d))
            .map(String::from)
            .collect();
        imports.sort();
        imports.dedup();
        crates.push(Crate { name, folder: folder.to_string_lossy().into_owned(), imports });
    }
    crates.sort_by(|a, b| a.name.cmp(&b.name));
    (crates, outside)
}

pub fn cargo() -> &'static str {
    option_env!("CARGO").unwrap_or("cargo")
}

/// Returns the standard output of a program, or its standard error as the message of the error.
pub fn output(folder: &Path, program: &str, arguments: &[&str]) -> Result<String, String> {
    let done = Command::new(program).args(arguments).current_dir(folder).output();
    let done = done.map_err(|e| format!("{program}: {e}"))?;
    if !done.status.success() {
        return Err(format!("{program} {}: {}", arguments.join(" "), String::from_utf8_lossy(&done.stderr).trim()));
    }
    String::from_utf8(done.stdout).map_err(|e| format!("{program}: {e}"))
}
