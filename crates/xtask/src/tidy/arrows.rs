//! The table of crates in ARCHITECTURE.md: who may import whom, and who may use `unsafe`.

use crate::workspace::Workspace;

const DOCUMENT: &str = "ARCHITECTURE.md";

struct Row {
    name: String,
    imports: Vec<String>,
    may_be_unsafe: bool,
}

pub fn check(workspace: &Workspace) -> Result<Vec<String>, String> {
    let rows = rows(&workspace.text(DOCUMENT)?)?;
    let mut complaints = Vec::new();
    for c in &workspace.crates {
        match rows.iter().find(|r| r.name == c.name) {
            None => complaints.push(format!("{DOCUMENT}: crate {} has no row", c.name)),
            Some(row) if row.imports != c.imports => complaints.push(format!(
                "{DOCUMENT}: {} imports [{}] in the document, [{}] in its manifest",
                c.name,
                row.imports.join(" "),
                c.imports.join(" ")
            )),
            Some(_) => {}
        }
    }
    for row in rows.iter().filter(|r| workspace.crates.iter().all(|c| c.name != r.name)) {
        complaints.push(format!("{DOCUMENT}: there is no crate {}", row.name));
    }
    Ok(complaints)
}

/// A crate whose row says "forbidden" forbids it to the compiler in each of its root files.
pub fn check_unsafe(workspace: &Workspace) -> Result<Vec<String>, String> {
    let mut complaints = Vec::new();
    for row in rows(&workspace.text(DOCUMENT)?)? {
        let Some(c) = workspace.crates.iter().find(|c| c.name == row.name) else { continue };
        for root in ["lib.rs", "main.rs"].map(|f| format!("{}/src/{f}", c.folder)) {
            let Some(text) = workspace.text_if_any(&root) else { continue };
            let forbids = text.contains("#![forbid(unsafe_code)]");
            if !row.may_be_unsafe && !forbids {
                complaints.push(format!("{root}: lacks #![forbid(unsafe_code)]"));
            }
            if row.may_be_unsafe && forbids {
                complaints.push(format!("{DOCUMENT}: {} forbids unsafe, its row says it may", row.name));
            }
        }
    }
    Ok(complaints)
}

/// The rows below the heading `| Crate | may import | unsafe | ... |`. `-` stands for none.
fn rows(document: &str) -> Result<Vec<Row>, String> {
    let mut lines = document.lines().skip_while(|l| !l.starts_with("| Crate | may import |"));
    if lines.next().is_none() {
        return Err(format!("{DOCUMENT}: no table that begins with `| Crate | may import |`"));
    }
    let rows = lines.skip(1).take_while(|l| l.starts_with('|')).map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(|c| c.trim().trim_matches('`')).collect();
        let cell = |i: usize| cells.get(i).copied().unwrap_or_default();
        let mut imports: Vec<String> = cell(1).split_whitespace().filter(|w| *w != "-").map(String::from).collect();
        imports.sort();
        Row { name: cell(0).into(), imports, may_be_unsafe: cell(2).starts_with("yes") }
    });
    Ok(rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Crate;

    #[test]
    fn rows_are_read() {
        let rows = rows(
            "# x\n| Crate | may import | unsafe |\n|---|---|---|\n| `os` | stdx | yes (x) |\n| stdx | - | no |\n\n",
        )
        .unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!(
            (rows[0].name.as_str(), rows[0].imports.join(","), rows[0].may_be_unsafe),
            ("os", "stdx".into(), true)
        );
        assert!(rows[1].imports.is_empty() && !rows[1].may_be_unsafe);
    }

    #[test]
    fn a_missing_arrow_is_a_complaint() {
        let folder = std::env::temp_dir().join(format!("beluga-arrows-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(
            folder.join(DOCUMENT),
            "| Crate | may import | unsafe |\n|---|---|---|\n| os | - | yes |\n| gone | - | no |\n",
        )
        .unwrap();
        let os = Crate { name: "os".into(), folder: "crates/os".into(), imports: vec!["stdx".into()] };
        let workspace = Workspace { root: folder.clone(), files: vec![], crates: vec![os], outside: vec![] };
        let complaints = check(&workspace).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
        assert_eq!(complaints.len(), 2, "{complaints:?}");
        assert!(complaints[0].contains("os imports [] in the document, [stdx] in its manifest"));
        assert!(complaints[1].contains("no crate gone"));
    }
}
