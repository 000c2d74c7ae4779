//! A source file has at most a thousand lines.

use crate::workspace::Workspace;

const LINES: usize = 1000;

/// Files that are longer until they are cut, with their lines today: they may only shrink.
const ALLOWED_UNTIL_CUT: &[(&str, usize)] = &[];

/// Files that stay longer, each with its reason.
const EXEMPT: &[(&str, &str)] = &[];

pub fn check(workspace: &Workspace) -> Result<Vec<String>, String> {
    let mut lengths = Vec::new();
    for file in workspace.with_ending(&[".rs"]) {
        lengths.push((file.as_str(), workspace.text(file)?.lines().count()));
    }
    Ok(complaints(&lengths, ALLOWED_UNTIL_CUT, EXEMPT))
}

fn complaints(lengths: &[(&str, usize)], until_cut: &[(&str, usize)], exempt: &[(&str, &str)]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (file, lines) in lengths.iter().filter(|(file, _)| exempt.iter().all(|(f, _)| f != file)) {
        let limit = until_cut.iter().find(|(f, _)| f == file).map_or(LINES, |(_, limit)| *limit);
        if *lines > limit {
            complaints.push(format!("{file}: {lines} lines, at most {limit}"));
        }
    }
    for file in until_cut.iter().map(|(f, _)| *f).chain(exempt.iter().map(|(f, _)| *f)) {
        let lines = lengths.iter().find(|(f, _)| *f == file).map_or(0, |(_, lines)| *lines);
        if lines <= LINES {
            complaints.push(format!("{file}: {lines} lines; take it off the list in long_files.rs"));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_fail_unless_listed() {
        let lengths = [("a.rs", 1000), ("b.rs", 1001), ("c.rs", 1200), ("d.rs", 1500), ("e.rs", 9000)];
        let found = complaints(&lengths, &[("c.rs", 1200), ("d.rs", 1499)], &[("e.rs", "generated")]);
        assert_eq!(found, ["b.rs: 1001 lines, at most 1000", "d.rs: 1500 lines, at most 1499"]);
        let found = complaints(&lengths[..1], &[("a.rs", 1200)], &[("gone.rs", "data")]);
        assert_eq!(found.len(), 2, "{found:?}");
    }
}
