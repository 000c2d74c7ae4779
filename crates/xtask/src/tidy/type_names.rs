//! The name of a type is taken once in a crate: struct, enum, union, trait or alias, public or private, tests aside.
//!
//! A crate that holds two dialects side by side is two halves here: a name may be taken once in each, since a `Select` is one in both.

use std::collections::BTreeMap;

use super::ratchet::Ratchet;
use super::source::Tree;
use crate::workspace::Workspace;

const RATCHET: Ratchet = Ratchet {
    what: "names of types taken more than once",
    table: "type_names.rs",
    rows: &[("beluga-xrpc", 2), ("query", 20), ("sql-mysql", 11)],
};

/// Crates that hold two dialects, and the folder of the second one. The rest of the crate is the first one's.
const HALVES: &[(&str, &str)] = &[("syntax", "/src/postgres/")];

pub fn check(workspace: &Workspace) -> Result<Vec<String>, String> {
    let mut finds = BTreeMap::new();
    for c in &workspace.crates {
        finds.insert(c.name.clone(), taken_twice(&Tree::read(workspace, c)?, half_of(&c.name)));
    }
    Ok(RATCHET.check(&finds))
}

/// Returns the folder of a crate's second half, if it has one.
fn half_of(name: &str) -> Option<&'static str> {
    HALVES.iter().find(|(owner, _)| *owner == name).map(|(_, folder)| *folder)
}

fn taken_twice(tree: &Tree, half: Option<&str>) -> Vec<String> {
    let mut files: BTreeMap<(&str, bool), Vec<&str>> = BTreeMap::new();
    for module in &tree.modules {
        let is_in_half = half.is_some_and(|folder| module.file.contains(folder));
        for item in &module.items {
            if ["struct", "enum", "union", "trait", "type"].contains(&item.keyword.as_str()) {
                files.entry((&item.name, is_in_half)).or_default().push(&module.file);
            }
        }
    }
    let twice = files.into_iter().filter(|(_, files)| files.len() > 1);
    twice.map(|((name, _), files)| format!("{name}: {}", files.join(", "))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::source::tests::tree;
    use super::*;

    #[test]
    fn a_name_taken_twice_is_found() {
        let tree = tree(&[
            ("s/lib.rs", "mod a; pub struct Place; trait Walk { type Item; } fn f() { enum Step { A } }"),
            (
                "s/a.rs",
                "type Place = u8; struct Walk2; impl T for U { type Item = u8; } enum Step {} fn Walk() {}\n#[cfg(test)] mod tests { struct Walk; }",
            ),
        ]);
        assert_eq!(taken_twice(&tree, None), ["Place: s/lib.rs, s/a.rs", "Step: s/lib.rs, s/a.rs"]);
    }

    #[test]
    fn a_name_may_be_taken_once_in_each_half() {
        let tree = tree(&[
            ("s/src/lib.rs", "mod other; pub struct Both; pub struct First; fn f() { struct First; }"),
            ("s/src/other.rs", "mod a;"),
            ("s/src/other/a.rs", "pub struct Both; pub struct Second; fn f() { struct Second; }"),
        ]);
        let first = "First: s/src/lib.rs, s/src/lib.rs";
        let second = "Second: s/src/other/a.rs, s/src/other/a.rs";
        assert_eq!(taken_twice(&tree, Some("/src/other/")), [first, second]);
        let both = "Both: s/src/lib.rs, s/src/other/a.rs";
        assert_eq!(taken_twice(&tree, None), [both, first, second]);
    }
}
