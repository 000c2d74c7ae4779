//! Paths named in documents exist.
//!
//! The hard part is to know what is a path. In back quotes: a word with a slash whose first part is a folder of the root or the name
//! of a crate (`reactor/gate.rs` is short for the file in that crate's `src`), or a word that ends in `.rs`. In links: whatever is no address.

use std::collections::BTreeSet;

use crate::workspace::{Crate, Workspace};

pub fn check(workspace: &Workspace) -> Result<Vec<String>, String> {
    let known = Known::new(workspace);
    let mut complaints = Vec::new();
    for file in workspace.with_ending(&[".md"]) {
        let text = workspace.text(file)?;
        let mut in_block = false;
        for (index, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                in_block = !in_block;
                continue;
            }
            if in_block {
                continue;
            }
            for name in quoted(line) {
                if !known.allows(file, name) {
                    complaints.push(format!("{file}:{}: `{name}` does not exist", index + 1));
                }
            }
            for target in links(line) {
                if !known.has_link(file, target) {
                    complaints.push(format!("{file}:{}: link to {target}, which does not exist", index + 1));
                }
            }
        }
    }
    Ok(complaints)
}

/// Every crate has a README.md, and its root file opens with a header.
pub fn check_headers(workspace: &Workspace) -> Result<Vec<String>, String> {
    let mut complaints = Vec::new();
    for Crate { name, folder, .. } in &workspace.crates {
        if !workspace.files.contains(&format!("{folder}/README.md")) {
            complaints.push(format!("crate {name} has no README.md"));
        }
    }
    for file in workspace.with_ending(&[".rs"]) {
        let tests = file.ends_with("tests.rs") || file.contains("/tests/") || file.contains("/benches/");
        if !tests && !workspace.text(file)?.starts_with("//!") {
            complaints.push(format!("{file} has no header (`//!` on its first line)"));
        }
    }
    Ok(complaints)
}

struct Known<'a> {
    workspace: &'a Workspace,
    folders: BTreeSet<String>,
}

impl<'a> Known<'a> {
    fn new(workspace: &'a Workspace) -> Known<'a> {
        let mut folders = BTreeSet::new();
        for file in &workspace.files {
            let mut path = file.as_str();
            while let Some((folder, _)) = path.rsplit_once('/') {
                folders.insert(folder.to_string());
                path = folder;
            }
        }
        Known { workspace, folders }
    }

    fn exists(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        self.folders.contains(path) || self.workspace.files.binary_search_by(|f| f.as_str().cmp(path)).is_ok()
    }

    fn crate_of(&self, file: &str) -> Option<&Crate> {
        self.workspace.crates.iter().find(|c| file.starts_with(&format!("{}/", c.folder)))
    }

    /// False only for a word that claims to be a path of this repository and is not.
    fn allows(&self, document: &str, word: &str) -> bool {
        let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
        if !plain || word.starts_with(['/', '.', '-']) && !word.starts_with(".ci/") && !word.starts_with(".cargo/") {
            return true;
        }
        let home = self.crate_of(document);
        let first = word.split('/').next().unwrap_or_default();
        let of_crate = self.workspace.crates.iter().find(|c| c.name == first);
        let claims = word.ends_with(".rs")
            || word.contains('/') && (of_crate.is_some() || self.folders.contains(first))
            || !word.contains('/') && (word.ends_with(".md") || word == "Makefile");
        if !claims || self.exists(word) {
            return true;
        }
        if let (Some(c), Some((_, rest))) = (of_crate, word.split_once('/'))
            && (rest.is_empty() || ["", "src/"].iter().any(|f| self.exists(&format!("{}/{f}{rest}", c.folder))))
        {
            return true;
        }
        if let Some(c) = home {
            if self.exists(&format!("{}/{word}", c.folder)) || self.exists(&format!("{}/src/{word}", c.folder)) {
                return true;
            }
            // In a crate's own README a bare name is any file of that crate.
            let ending = format!("/{word}");
            return self.workspace.files.iter().any(|f| f.starts_with(&c.folder) && f.ends_with(&ending));
        }
        self.exists(&beside(document, word))
    }

    fn has_link(&self, document: &str, target: &str) -> bool {
        let path = target.split('#').next().unwrap_or_default();
        path.is_empty()
            || target.contains("://")
            || target.starts_with("mailto:")
            || self.exists(&beside(document, path))
    }
}

/// `path` as seen from the folder of `document`, with `..` carried out.
fn beside(document: &str, path: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// The words in back quotes of one line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The targets of the Markdown links of one line.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known_files(files: &[&str]) -> Workspace {
        let krate = |name: &str| Crate { name: name.into(), folder: format!("crates/{name}"), imports: vec![] };
        let mut files: Vec<String> = files.iter().map(|f| f.to_string()).collect();
        files.sort();
        Workspace { root: ".".into(), files, crates: vec![krate("reactor"), krate("pager")], outside: vec![] }
    }

    #[test]
    fn a_path_may_be_short_for_a_file_of_a_crate() {
        let workspace = known_files(&["crates/reactor/src/gate.rs", "crates/pager/src/wal/flush.rs", "docs/a.md"]);
        let known = Known::new(&workspace);
        assert!(known.allows("ARCHITECTURE.md", "reactor/gate.rs"));
        assert!(known.allows("ARCHITECTURE.md", "crates/pager/src/wal/"));
        assert!(known.allows("crates/pager/README.md", "flush.rs"));
        assert!(!known.allows("crates/pager/README.md", "gate.rs"));
        assert!(!known.allows("ARCHITECTURE.md", "reactor/gone.rs"));
        assert!(!known.allows("ARCHITECTURE.md", "docs/gone.md"));
        assert!(known.allows("ARCHITECTURE.md", "text/plain"), "no folder of ours: not a path");
        assert!(known.allows("ARCHITECTURE.md", "cargo run -p sim"));
    }

    #[test]
    fn links_are_seen_from_their_document() {
        let workspace = known_files(&["docs/decisions/0001-one-log.md", "docs/operating.md"]);
        let known = Known::new(&workspace);
        assert!(known.has_link("docs/operating.md", "decisions/0001-one-log.md#why"));
        assert!(known.has_link("docs/decisions/0001-one-log.md", "../operating.md"));
        assert!(!known.has_link("docs/operating.md", "operating/"));
        assert_eq!(links("see [a](b.md) and [c](https://d/e)").collect::<Vec<_>>(), ["b.md", "https://d/e"]);
    }
}
