//! Every outside crate stands once, in the workspace manifest, with the reason for it on its line or on the line above.

use crate::workspace::Workspace;

pub fn check(workspace: &Workspace) -> Result<Vec<String>, String> {
    let mut complaints = without_reason(&workspace.text("Cargo.toml")?);
    for c in &workspace.crates {
        let manifest = format!("{}/Cargo.toml", c.folder);
        complaints
            .extend(own_versions(&workspace.text(&manifest)?).into_iter().map(|line| format!("{manifest}: {line}")));
    }
    Ok(complaints)
}

fn without_reason(manifest: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut previous = "";
    for line in section(manifest, |s| s == "[workspace.dependencies]") {
        let ours = line.contains("path = \"crates/");
        let reason = line.contains(" # ") || previous.trim_start().starts_with('#');
        if line.contains('=') && !line.starts_with('#') && !ours && !reason {
            complaints.push(format!("Cargo.toml: no reason beside `{line}`"));
        }
        previous = line;
    }
    complaints
}

fn own_versions(manifest: &str) -> Vec<String> {
    let inherits = |line: &str| line.contains("workspace = true") || line.contains(".workspace");
    section(manifest, |s| s.contains("dependencies]"))
        .filter(|line| line.contains('=') && !line.starts_with('#') && !inherits(line))
        .map(|line| format!("`{line}` must be inherited: name = {{ workspace = true }}"))
        .collect()
}

/// The lines of the sections whose heading qualifies.
fn section<'a>(manifest: &'a str, wanted: impl Fn(&str) -> bool + 'a) -> impl Iterator<Item = &'a str> {
    let mut inside = false;
    manifest.lines().filter(move |line| {
        if line.starts_with('[') {
            inside = wanted(line.trim());
            return false;
        }
        inside
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_needs_a_reason() {
        let manifest = "[workspace.dependencies]\nos = { path = \"crates/os\" }\na = \"1\" # why\n# b is for c\nb = \"1\"\nd = \"2\"\n[x]\ne = 1\n";
        let complaints = without_reason(manifest);
        assert_eq!(complaints, ["Cargo.toml: no reason beside `d = \"2\"`"]);
    }

    #[test]
    fn versions_belong_to_the_workspace() {
        let manifest = "[package]\nversion = \"1\"\n[dependencies]\na.workspace = true\nb = \"2\"\n[dev-dependencies]\nc = { workspace = true }\n";
        assert_eq!(own_versions(manifest).len(), 1);
    }
}
