//! Sentences of doc comments and of READMEs name their subject: none begins with What, Who, Whose, Whoever or So many.
//!
//! A question may begin so; it ends with a question mark. Code blocks, quotes, headings and tables are skipped.

use std::collections::BTreeMap;

use super::ratchet::Ratchet;
use crate::workspace::Workspace;

const HEADLESS: &[&str] = &["What ", "Who ", "Whose ", "Whoever ", "So many "];

const RATCHET: Ratchet = Ratchet { what: "sentences without a subject", table: "prose.rs", rows: &[] };

pub fn check(workspace: &Workspace) -> Result<Vec<String>, String> {
    let mut finds: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in &workspace.files {
        let lines: fn(&str) -> Vec<(usize, &str)> = match file {
            f if f.ends_with(".rs") => doc_lines,
            f if f.ends_with("README.md") => |text| text.lines().enumerate().map(|(i, l)| (i + 1, l)).collect(),
            _ => continue,
        };
        let owner = workspace.crates.iter().find(|c| file.starts_with(&format!("{}/", c.folder)));
        let owner = owner.map_or("the root", |c| c.name.as_str());
        let text = workspace.text(file)?;
        let found = headless(&lines(&text)).into_iter().map(|(line, sentence)| format!("{file}:{line}: {sentence}"));
        finds.entry(owner.into()).or_default().extend(found);
    }
    Ok(RATCHET.check(&finds))
}

/// The text of doc comments with its line numbers. An empty line parts two comments.
fn doc_lines(text: &str) -> Vec<(usize, &str)> {
    let doc = |line: &str| line.starts_with("///") && !line.starts_with("////") || line.starts_with("//!");
    let line = |(i, line)| (i + 1, str::trim(line));
    text.lines().enumerate().map(line).map(|(i, line)| (i, if doc(line) { &line[3..] } else { "" })).collect()
}

/// The first words of each headless sentence of a Markdown text, with the line it begins on.
fn headless(lines: &[(usize, &str)]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_block = false;
    let mut paragraph: Vec<(usize, &str)> = Vec::new();
    for (number, line) in lines {
        let line = line.trim();
        if line.starts_with("```") {
            in_block = !in_block;
        }
        let item = ["- ", "* ", "1. "].iter().find_map(|mark| line.strip_prefix(mark));
        let item =
            item.or_else(|| line.split_once(". ").filter(|(n, _)| n.parse::<u8>().is_ok()).map(|(_, rest)| rest));
        let is_other = line.is_empty() || line.starts_with(['#', '|', '>']) || line.starts_with("```");
        let is_prose = !in_block && !is_other;
        if item.is_some() || !is_prose {
            found.extend(of_paragraph(&paragraph));
            paragraph.clear();
        }
        if is_prose {
            paragraph.push((*number, item.unwrap_or(line)));
        }
    }
    found.extend(of_paragraph(&paragraph));
    found
}

fn of_paragraph(lines: &[(usize, &str)]) -> Vec<(usize, String)> {
    // One text; a place in it leads back to its line.
    let (mut text, mut starts) = (String::new(), Vec::new());
    for (number, line) in lines {
        starts.push((text.len(), *number));
        text += line;
        text.push(' ');
    }
    let text = without_quotes(&text);
    let mut found = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices(['.', '!', '?', ':']) {
        if !text[at + 1..].starts_with(' ') {
            continue;
        }
        let sentence = text[start..=at].trim_start_matches([' ', '*', '_', '(']);
        if HEADLESS.iter().any(|word| sentence.starts_with(word)) && !sentence.ends_with('?') {
            let line = starts.iter().rev().find(|(s, _)| *s <= start + 1).map_or(0, |(_, n)| *n);
            found.push((line, sentence.chars().take(60).collect()));
        }
        start = at + 1;
    }
    found
}

/// The text with its quotes and code blanked out, at the same length in bytes.
fn without_quotes(text: &str) -> String {
    let mut open = None;
    let blank = |c: char| "x".repeat(c.len_utf8());
    let mut out = String::new();
    for c in text.chars() {
        match open {
            Some(mark) if c == mark => open = None,
            Some(_) => {
                out += &blank(c);
                continue;
            }
            None if c == '`' || c == '"' => open = Some(c),
            None => {}
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_without_a_subject_is_found_where_it_begins() {
        let source = "//! What lives here. It is a page.\n\n/// Returns it. Who asks\n/// waits.\nfn f() {}\n    /// What a row is:\n    /// - Whose it is.\n    /// 2. So many rows as fit.";
        let lines: Vec<usize> = headless(&doc_lines(source)).into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, [1, 3, 6, 7, 8]);
    }

    #[test]
    fn questions_code_and_quotes_are_skipped() {
        let text = "# What it is\n\nWhat is a page? `x. What y.` It says \"Who. What. So\" and ends.\n```\nWhat a block.\n```\n| What | Who |\n> Who is quoted.\n\nWhatever is v1.2 is fine. The reader: who asks.\n";
        assert_eq!(headless(&text.lines().enumerate().collect::<Vec<_>>()), []);
        assert_eq!(headless(&[(4, "`a` is b. **Who** asks.")]), [], "emphasis within a sentence is rare");
        assert_eq!(headless(&[(4, "**What asks.** It waits.")]).len(), 1);
    }

    #[test]
    fn ordinary_comments_are_no_prose() {
        assert!(doc_lines("// What.\nlet a = 1; // Who.\n//// Who.").iter().all(|(_, text)| text.is_empty()));
    }
}
