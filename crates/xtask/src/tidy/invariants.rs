//! Tags of invariants: `**PG-3**` in the README of a crate defines one, `PG-3` in that crate's code or tests refers to it.
//!
//! Every tag is defined once in the project, with the letters of its crate, and referred to at least once. A tag in code that no
//! README defines fails. Tags without the crate's letters (`**P3**`) are older than this rule; their number may only sink.

use std::collections::{BTreeMap, BTreeSet};

use super::ratchet::Ratchet;
use crate::workspace::Workspace;

/// Crates without a row have no invariants.
const LETTERS: &[(&str, &str)] = &[
    ("bench", "BE"),
    ("beluga-xrpc", "CX"),
    ("btree", "BT"),
    ("datum", "DA"),
    ("door-mysql", "DM"),
    ("door-postgres", "DP"),
    ("door-redis", "DR"),
    ("door-xrpc", "DX"),
    ("engine", "EN"),
    ("os", "OS"),
    ("pager", "PG"),
    ("query", "QU"),
    ("sql-mysql", "MY"),
    ("sql-postgres", "PS"),
    ("rdb", "RD"),
    ("reactor", "RE"),
    ("server", "SV"),
    ("sim", "SI"),
    ("stdx", "SX"),
    ("syntax", "SY"),
];

const OLD: Ratchet = Ratchet { what: "tags without the letters of the crate", table: "invariants.rs", rows: &[] };

pub fn check(workspace: &Workspace) -> Result<Vec<String>, String> {
    let mut texts = Vec::new();
    for c in workspace.crates.iter().filter(|c| !letters_of(&c.name).is_empty()) {
        let own = |file: &&String| file.starts_with(&format!("{}/", c.folder));
        for file in workspace.with_ending(&[".rs", "README.md"]).filter(own) {
            texts.push((c.name.as_str(), file.as_str(), workspace.text(file)?));
        }
    }
    let texts: Vec<Text> = texts.iter().map(|(owner, file, text)| Text { owner, file, text }).collect();
    let mut complaints = complaints(&texts);
    complaints.extend(OLD.check(&old_tags(&texts)));
    Ok(complaints)
}

struct Text<'a> {
    /// The crate that the file belongs to.
    owner: &'a str,
    file: &'a str,
    text: &'a str,
}

impl Text<'_> {
    fn is_readme(&self) -> bool {
        self.file.ends_with(".md")
    }
}

fn letters_of(owner: &str) -> &'static str {
    LETTERS.iter().find(|(name, _)| *name == owner).map_or("", |(_, letters)| letters)
}

fn complaints(texts: &[Text]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut defined: BTreeMap<&str, &str> = BTreeMap::new();
    for Text { owner, file, text } in texts.iter().filter(|t| t.is_readme()) {
        for tag in bold(text).filter(|tag| is_tag(tag)) {
            if &tag[..2] != letters_of(owner) {
                complaints.push(format!("{file}: {tag} should have the letters of {owner}, {}", letters_of(owner)));
            }
            if let Some(first) = defined.insert(tag, owner) {
                complaints.push(format!("{file}: {tag} is defined twice, first in crate {first}"));
            }
        }
    }
    let mut referred: BTreeSet<(&str, &str)> = BTreeSet::new();
    for Text { owner, file, text } in texts.iter().filter(|t| !t.is_readme()) {
        for (index, line) in text.lines().enumerate() {
            for tag in words(line).filter(|w| is_tag(w) && LETTERS.iter().any(|(_, letters)| w.starts_with(letters))) {
                referred.insert((owner, tag));
                if !defined.contains_key(tag) {
                    complaints.push(format!("{file}:{}: {tag}, which no README defines", index + 1));
                }
            }
        }
    }
    let unused = defined.iter().filter(|(tag, owner)| !referred.contains(&(**owner, **tag)));
    complaints.extend(unused.map(|(tag, owner)| format!("{owner}: nothing in its code or tests refers to {tag}")));
    complaints
}

fn old_tags(texts: &[Text]) -> BTreeMap<String, Vec<String>> {
    let mut finds: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for Text { owner, file, text } in texts.iter().filter(|t| t.is_readme()) {
        let old = bold(text).filter(|w| {
            w.len() <= 4 && w.starts_with(|c: char| c.is_ascii_uppercase()) && w[1..].parse::<u8>().is_ok()
        });
        finds.entry((*owner).into()).or_default().extend(old.map(|tag| format!("{file}: {tag}")));
    }
    finds
}

/// Two capital letters, a hyphen, digits.
fn is_tag(word: &str) -> bool {
    let Some((letters, number)) = word.split_once('-') else { return false };
    let is_number = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
    letters.len() == 2 && letters.chars().all(|c| c.is_ascii_uppercase()) && is_number
}

/// The words between double asterisks, one at a time.
fn bold(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split("**").skip(1).step_by(2))
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_').filter(|w| !w.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(texts: &[(&str, &str, &str)]) -> Vec<String> {
        let texts: Vec<Text> = texts.iter().map(|(owner, file, text)| Text { owner, file, text }).collect();
        complaints(&texts)
    }

    #[test]
    fn tags_that_are_defined_once_and_used() {
        let readme = ("pager", "pager/README.md", "- **PG-1** A page is in one frame.\n- **Note** **bold**");
        assert!(check(&[readme, ("pager", "pager/a.rs", "assert!(one, \"PG-1: two frames\");")]).is_empty());
        assert!(check(&[readme, ("pager", "pager/a.rs", "// (PG-1). UTF-8, AES-256, ME-1, XPG-2")]).is_empty());
    }

    #[test]
    fn tags_that_fail() {
        let readme = ("pager", "pager/README.md", "- **PG-1** A.\n- **PG-2** B.\n- **BT-1** C.");
        let twice = ("pager", "pager/src/README.md", "- **PG-2** D.");
        let code = ("pager", "pager/src/a.rs", "// BT-1\n// PG-3 and PG-2");
        let other = ("btree", "btree/src/a.rs", "// PG-1");
        assert_eq!(
            check(&[readme, twice, code, other]),
            [
                "pager/README.md: BT-1 should have the letters of pager, PG",
                "pager/src/README.md: PG-2 is defined twice, first in crate pager",
                "pager/src/a.rs:2: PG-3, which no README defines",
                "pager: nothing in its code or tests refers to PG-1",
            ]
        );
    }

    #[test]
    fn old_tags_are_counted() {
        let readme = Text { owner: "os", file: "os/README.md", text: "- **B1** x **B1x** **OS-1** **R17** y **4**" };
        assert_eq!(old_tags(&[readme])["os"], ["os/README.md: B1", "os/README.md: R17"]);
    }
}
