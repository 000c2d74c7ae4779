//! Checks that what the repository says of itself is true. They say nothing about taste.
//!
//! Each check is a function from the workspace to a list of complaints; an empty list is a pass. A complaint names the file, and the line where there is one.

mod arrows;
mod dependencies;
pub mod generated;
mod licences;
mod paths;
mod words;

use crate::workspace::Workspace;

type Check = fn(&Workspace) -> Result<Vec<String>, String>;

const CHECKS: &[(&str, Check)] = &[
    ("paths named in documents exist", paths::check),
    ("ARCHITECTURE.md's table of arrows equals cargo metadata", arrows::check),
    ("unsafe only where ARCHITECTURE.md allows it", arrows::check_unsafe),
    ("every crate has a README, every module tree a header", paths::check_headers),
    ("every dependency has its reason and stands in the workspace manifest", dependencies::check),
    ("licences of dependencies are permissive", licences::check),
    ("no words of leftover work, no ignored test", words::check),
    ("settings and counters are described in docs/operating.md", generated::check),
];

/// Files longer than this are listed, for a reader to ask whether there is a seam. It fails nothing.
const LONG_LINES: usize = 1200;

pub fn run() -> Result<bool, String> {
    let workspace = Workspace::read()?;
    let (mut passed, mut failed) = (0, 0);
    for (what, check) in CHECKS {
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
    for file in workspace.with_ending(&[".rs"]) {
        let lines = workspace.text(file)?.lines().count();
        if lines > LONG_LINES {
            println!("note    {file} has {lines} lines");
        }
    }
    println!("{passed} passed, {failed} failed");
    Ok(failed == 0)
}
