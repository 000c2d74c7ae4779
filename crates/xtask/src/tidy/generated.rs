//! The parts of the documents that `beluga` itself writes: its settings and its counters, each between two marks
//! `<!-- generated: NAME -->` and `<!-- end -->`. `cargo xtask docs` writes them, `tidy` compares them.

use std::path::Path;

use crate::workspace::{Workspace, cargo, output};

const DOCUMENT: &str = "docs/operating.md";

pub fn check(workspace: &Workspace) -> Result<Vec<String>, String> {
    let text = workspace.text(DOCUMENT)?;
    let expected = filled(&text, |name| ask(&workspace.root, name))?;
    let differs = text.lines().zip(expected.lines()).position(|(a, b)| a != b);
    let differs = differs.or((text != expected).then(|| text.lines().count().min(expected.lines().count())));
    Ok(differs
        .map(|line| format!("{DOCUMENT}:{}: out of date; run `cargo xtask docs`", line + 1))
        .into_iter()
        .collect())
}

pub fn write() -> Result<bool, String> {
    let workspace = Workspace::read()?;
    let text = workspace.text(DOCUMENT)?;
    let filled = filled(&text, |name| ask(&workspace.root, name))?;
    std::fs::write(workspace.root.join(DOCUMENT), filled).map_err(|e| format!("{DOCUMENT}: {e}"))?;
    Ok(true)
}

/// The binary to ask; without it, one is built. The step of `test` names the one of its step `build`: alone, cargo would build the server a second time, with
/// the features of its libraries that no test turns on.
pub const SERVER: &str = "SERVER_UNDER_TEST";

/// Returns the part of that name, as the binary prints it.
fn ask(root: &Path, name: &str) -> Result<String, String> {
    if let Ok(server) = std::env::var(SERVER) {
        return output(root, &server, &[name, "--markdown"]);
    }
    output(root, cargo(), &["run", "--quiet", "--package", "server", "--bin", "beluga", "--", name, "--markdown"])
}

fn filled(text: &str, ask: impl Fn(&str) -> Result<String, String>) -> Result<String, String> {
    let mut out = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        out += line;
        out.push('\n');
        let name = line.strip_prefix("<!-- generated: ").and_then(|l| l.strip_suffix(" -->"));
        if let Some(name) = name {
            out += ask(name)?.trim_end();
            out.push('\n');
            if !lines.any(|l| l == "<!-- end -->") {
                return Err(format!("{DOCUMENT}: the part `{name}` has no end mark"));
            }
            out += "<!-- end -->\n";
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let text = "a\n<!-- generated: settings -->\nold\n<!-- end -->\nb\n";
        let new = filled(text, |name| Ok(format!("new {name}\n"))).unwrap();
        assert_eq!(new, "a\n<!-- generated: settings -->\nnew settings\n<!-- end -->\nb\n");
        assert!(filled("<!-- generated: x -->\n", |_| Ok("y".into())).is_err());
    }
}
