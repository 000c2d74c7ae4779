//! Runs scenario files: requests and, below a line `---`, their expected output.
//!
//! ```text
//! # What this scenario proves, and why it matters.
//!
//! set a 1
//! get a
//! ---
//! OK
//! 1
//! ```
//!
//! A block is a run of lines without an empty line. The requests of a block run one by one, and their outputs are concatenated. A line that starts
//! with `#` among the requests is a comment. An output that contains an empty line has `> ` before each of its lines.
//! With UPDATE=1 in the environment the file is rewritten with the actual output, for review in the diff.
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Runs every file of a folder in the order of names, each with a target of its own. Panics with all differences.
pub fn run_folder<Target: FnMut(&str) -> String>(folder: impl AsRef<Path>, mut open: impl FnMut() -> Target) {
    let folder = folder.as_ref();
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> =
        entries.map(|e| e.expect("the folder can be read").path()).filter(|p| p.is_file()).collect();
    files.sort();
    assert!(!files.is_empty(), "{}: no scenario", folder.display());
    let update = std::env::var_os("UPDATE").is_some_and(|v| v == "1");
    let differences: Vec<String> = files.iter().filter_map(|f| run_file(f, &mut open(), update).err()).collect();
    assert!(differences.is_empty(), "{}\nUPDATE=1 accepts the new output", differences.join("\n"));
}

/// Runs one file. The error is the first difference with its line.
pub fn run_file(path: &Path, target: &mut dyn FnMut(&str) -> String, update: bool) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let played = play(&text, target).map_err(|e| format!("{}:{e}", path.display()))?;
    if played == text {
        return Ok(());
    }
    if update {
        return std::fs::write(path, played).map_err(|e| format!("{}: {e}", path.display()));
    }
    let line = text.lines().zip(played.lines()).take_while(|(a, b)| a == b).count();
    let at = |text: &str| text.lines().nth(line).unwrap_or("(the end)").to_string();
    Err(format!("{}:{}: expected: {}\n    came: {}", path.display(), line + 1, at(&text), at(&played)))
}

/// Returns the file's text with every expected output replaced by the actual one.
fn play(text: &str, target: &mut dyn FnMut(&str) -> String) -> Result<String, String> {
    let mut played = String::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        let _ = writeln!(played, "{line}");
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let mut requests = vec![line];
        let mut closed = line == "---";
        while let (false, Some((_, next))) = (closed, lines.next_if(|(_, l)| !l.trim().is_empty())) {
            let _ = writeln!(played, "{next}");
            closed = next == "---";
            if !closed && !next.starts_with('#') {
                requests.push(next);
            }
        }
        if !closed || requests == ["---"] {
            return Err(format!("{}: requests without `---`, or `---` without requests", number + 1));
        }
        while lines.next_if(|(_, l)| !l.trim().is_empty()).is_some() {}
        let output: Vec<String> = requests.iter().map(|r| target(r)).collect();
        played += &written(&output.join("\n"));
    }
    Ok(played)
}

fn written(output: &str) -> String {
    let output = output.trim_end_matches('\n');
    if output.is_empty() {
        return String::new();
    }
    let quoted = output.lines().any(|l| l.trim().is_empty());
    output.lines().map(|l| if quoted { format!("> {l}\n") } else { format!("{l}\n") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A target with a memory: `add N` says the sum so far.
    fn adder() -> impl FnMut(&str) -> String {
        let mut sum = 0;
        move |request| match request.split_once(' ') {
            Some(("add", n)) => {
                sum += n.parse::<i64>().unwrap();
                sum.to_string()
            }
            Some(("lines", n)) => n.replace('|', "\n"),
            _ => "error: unknown".to_string(),
        }
    }

    const TRUE: &str =
        "# why\n\nadd 1\nadd 2\n---\n1\n3\n\nbad\n---\nerror: unknown\n\nlines a||b\n---\n> a\n> \n> b\n";

    #[test]
    fn a_true_scenario_plays_as_it_stands() {
        assert_eq!(play(TRUE, &mut adder()).unwrap(), TRUE);
    }

    #[test]
    fn a_difference_names_its_line_and_update_accepts_it() {
        let path = std::env::temp_dir().join(format!("beluga-script-{}", std::process::id()));
        std::fs::write(&path, TRUE.replace("\n3\n", "\n4\n")).unwrap();
        let error = run_file(&path, &mut adder(), false).unwrap_err();
        assert!(error.contains(":7: expected: 4"), "{error}");
        assert!(error.contains("came: 3"), "{error}");
        run_file(&path, &mut adder(), true).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), TRUE);
        run_file(&path, &mut adder(), false).unwrap();
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_request_without_an_end_is_an_error() {
        assert!(play("add 1\n\nadd 2\n---\n3\n", &mut adder()).unwrap_err().starts_with("1:"));
        assert!(play("---\n3\n", &mut adder()).is_err());
    }
}
