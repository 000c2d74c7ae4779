//! Words that say that work was left over, and tests that are switched off.

use crate::workspace::Workspace;

/// In two halves, so that this file does not hold them.
const WORDS: &[(&str, &str)] =
    &[("TO", "DO"), ("FIX", "ME"), ("XX", "X"), ("to", "do!("), ("unimpl", "emented!("), ("#[ig", "nore")];

pub fn check(workspace: &Workspace) -> Result<Vec<String>, String> {
    let words: Vec<String> = WORDS.iter().map(|(a, b)| format!("{a}{b}")).collect();
    let mut complaints = Vec::new();
    for file in workspace.files.iter().filter(|f| !f.ends_with(".lock") && !f.ends_with("package-lock.json")) {
        let Some(text) = workspace.text_if_any(file) else { continue };
        for (index, line) in text.lines().enumerate() {
            if let Some(word) = words.iter().find(|w| line.contains(w.as_str())) {
                complaints.push(format!("{file}:{}: {word}", index + 1));
            }
        }
    }
    Ok(complaints)
}
