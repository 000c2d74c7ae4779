//! Checks that what the repository says of itself is true. Some are about taste too: those count, and a count may only sink (`ratchet.rs`).
//!
//! Each check is a function from the workspace to a list of complaints; an empty list is a pass. A complaint names the file, and the line where there is one.

mod arrows;
mod circles;
mod dependencies;
mod dialect;
pub mod generated;
mod invariants;
mod licences;
mod long_files;
mod paths;
mod prose;
mod ratchet;
mod source;
mod type_names;
mod words;

use crate::workspace::Workspace;

type Check = fn(&Workspace) -> Result<Vec<String>, String>;

const CHECKS: &[(&str, Check)] = &[
    ("paths named in documents exist", paths::check),
    ("ARCHITECTURE.md's table of arrows equals cargo metadata", arrows::check),
    ("no circle of imports among the files of a crate", circles::check),
    ("unsafe only where ARCHITECTURE.md allows it", arrows::check_unsafe),
    ("every crate has a README, every module tree a header", paths::check_headers),
    ("every dependency has its reason and stands in the workspace manifest", dependencies::check),
    ("licences of dependencies are permissive", licences::check),
    ("sentences of doc comments and READMEs name their subject", prose::check),
    ("tags of invariants are unique, defined and used", invariants::check),
    ("a type's name is taken once in a crate", type_names::check),
    ("a source file has at most 1,000 lines", long_files::check),
    ("the shared SQL core names no dialect", dialect::check),
    ("no words of leftover work, no ignored test", words::check),
    ("settings and counters are described in docs/operating.md", generated::check),
];

/// Runs the checks with `part` in their names; an empty one is in all.
pub fn run(part: &str) -> Result<bool, String> {
    let workspace = Workspace::read()?;
    let (mut passed, mut failed) = (0, 0);
    for (what, check) in CHECKS.iter().filter(|(what, _)| what.contains(part)) {
        let complaints = check(&workspace).unwrap_or_else(|e| vec![e]);
        if complaints.is_empty() {
            passed += 1;
            println!("ok      {what}");
        } else {
            failed += 1;
            println!("FAILED  {what}");
            complaints.iter().for_each(|c| println!("        {c}"));
        }
    }
    println!("{passed} passed, {failed} failed");
    Ok(failed == 0)
}
