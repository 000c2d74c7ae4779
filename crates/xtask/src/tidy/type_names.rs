//! The name of a type is taken once in a crate: struct, enum, union, trait or alias, public or private, tests aside.

use std::collections::BTreeMap;

use super::ratchet::Ratchet;
use super::source::Tree;
use crate::workspace::Workspace;

const RATCHET: Ratchet = Ratchet {
    what: "names of types taken more than once",
    table: "type_names.rs",
    rows: &[("beluga-xrpc", 2), ("query", 20), ("sql-mysql", 13)],
};

pub fn check(workspace: &Workspace) -> Result<Vec<String>, String> {
    let mut finds = BTreeMap::new();
    for c in &workspace.crates {
        finds.insert(c.name.clone(), taken_twice(&Tree::read(workspace, c)?));
    }
    Ok(RATCHET.check(&finds))
}

fn taken_twice(tree: &Tree) -> Vec<String> {
    let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for module in &tree.modules {
        for item in &module.items {
            if ["struct", "enum", "union", "trait", "type"].contains(&item.keyword.as_str()) {
                files.entry(&item.name).or_default().push(&module.file);
            }
        }
    }
    let twice = files.into_iter().filter(|(_, files)| files.len() > 1);
    twice.map(|(name, files)| format!("{name}: {}", files.join(", "))).collect()
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
        assert_eq!(taken_twice(&tree), ["Place: s/lib.rs, s/a.rs", "Step: s/lib.rs, s/a.rs"]);
    }
}
