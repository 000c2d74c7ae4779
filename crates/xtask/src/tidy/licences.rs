//! Every dependency may be used under a permissive licence: a small reading of SPDX expressions (OR, AND, WITH, parentheses).
//! The list of licences is deny.toml's, so that this quick check and cargo-deny cannot differ.

use crate::workspace::Workspace;

pub fn check(workspace: &Workspace) -> Result<Vec<String>, String> {
    let allowed = allowed(&workspace.text("deny.toml")?);
    if allowed.is_empty() {
        return Err("deny.toml: no `allow = [...]` in [licenses]".into());
    }
    let complaints = workspace.outside.iter().filter_map(|package| {
        let licence = package.licence.as_deref().unwrap_or("no licence named");
        let fine = package.licence.is_some() && satisfied(licence, &allowed);
        (!fine).then(|| format!("{} {}: {licence}", package.name, package.version))
    });
    Ok(complaints.collect())
}

fn allowed(deny: &str) -> Vec<String> {
    let after = deny.split("\n[licenses]").nth(1).and_then(|s| s.split("\nallow = [").nth(1));
    let list = after.and_then(|s| s.split(']').next()).unwrap_or_default();
    list.split('"').skip(1).step_by(2).map(String::from).collect()
}

/// Can the expression be met with allowed licences alone? An older form writes `MIT/Apache-2.0` for `MIT OR Apache-2.0`.
fn satisfied(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = Reader { words: &words, at: 0, allowed };
    reader.any() && reader.at == words.len()
}

struct Reader<'a> {
    words: &'a [&'a str],
    at: usize,
    allowed: &'a [String],
}

impl Reader<'_> {
    fn next_is(&mut self, word: &str) -> bool {
        let is = self.words.get(self.at) == Some(&word);
        self.at += usize::from(is);
        is
    }

    fn any(&mut self) -> bool {
        let mut met = self.all();
        while self.next_is("OR") {
            met |= self.all();
        }
        met
    }

    fn all(&mut self) -> bool {
        let mut met = self.one();
        while self.next_is("AND") {
            met &= self.one();
        }
        met
    }

    fn one(&mut self) -> bool {
        if self.next_is("(") {
            let met = self.any();
            return self.next_is(")") && met;
        }
        let Some(licence) = self.words.get(self.at) else { return false };
        self.at += 1;
        // An exception only adds permissions, so the licence alone decides.
        if self.next_is("WITH") {
            self.at += 1;
        }
        self.allowed.iter().any(|a| a == licence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions() {
        let allowed: Vec<String> = ["MIT", "Apache-2.0", "Unicode-3.0"].map(String::from).into();
        for fine in [
            "MIT",
            "MIT OR GPL-3.0",
            "GPL-3.0/MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
        ] {
            assert!(satisfied(fine, &allowed), "{fine}");
        }
        for bad in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Apache-2.0) AND GPL-3.0", "", "(MIT"] {
            assert!(!satisfied(bad, &allowed), "{bad}");
        }
    }

    #[test]
    fn the_list_is_that_of_cargo_deny() {
        assert_eq!(
            allowed("[bans]\nx = 1\n\n[licenses]\nversion = 2\nallow = [\n  \"MIT\", # a\n  \"BSD\",\n]\n"),
            ["MIT", "BSD"]
        );
    }
}
