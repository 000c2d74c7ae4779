//! No circle of imports among the files of a crate.
//!
//! File A uses file B if a name in A's code leads to an item that B defines: by a path, by an import, by a glob. The hard part is a
//! re-export. It binds a name and uses nothing, so `pub use child::Item` in a parent is no edge, and who imports the item through the
//! parent uses the child that defines it. The parent uses the child only where its own code has the name.

use std::collections::{BTreeMap, VecDeque};

use super::source::{Module, Token, Tree};
use crate::workspace::Workspace;

/// Crates that still have circles. A crate leaves the list for good with its last circle. In the two dialects the binder, the functions
/// and the session name each other: 51 files of `sql-mysql` and 77 of `sql-postgres` import themselves through others.
const ALLOWED_UNTIL_CUT: &[&str] = &["beluga-xrpc", "bench", "sql-mysql", "sql-postgres"];

/// Files that together define one recursive type, so that each must name the others. An expression holds a subquery, the subquery a plan
/// node, the node expressions; so it is in a syntax tree. An operator of the executor holds its input, which is any operator.
const RECURSIVE_TYPES: &[(&str, &[&str])] = &[
    ("syntax", &["tree/expr.rs", "tree/query.rs"]),
    (
        "syntax",
        &[
            "postgres/tree/mod.rs",
            "postgres/tree/alter.rs",
            "postgres/tree/change.rs",
            "postgres/tree/expr.rs",
            "postgres/tree/object.rs",
            "postgres/tree/query.rs",
            "postgres/tree/statement.rs",
            "postgres/tree/table.rs",
            "postgres/tree/types.rs",
            "postgres/tree/utility.rs",
        ],
    ),
    (
        "query",
        &[
            "nodes/expr.rs",
            "nodes/function.rs",
            "nodes/node.rs",
            "nodes/relation.rs",
            "nodes/subquery.rs",
            "nodes/table_function.rs",
            "nodes/window.rs",
        ],
    ),
    (
        "query",
        &[
            "exec/mod.rs",
            "exec/distinct.rs",
            "exec/group.rs",
            "exec/hash.rs",
            "exec/join.rs",
            "exec/lock_rows.rs",
            "exec/project_set.rs",
            "exec/recursion.rs",
            "exec/set.rs",
            "exec/sort.rs",
            "exec/subquery.rs",
            "exec/ties.rs",
            "exec/window.rs",
        ],
    ),
];

pub fn check(workspace: &Workspace) -> Result<Vec<String>, String> {
    let mut complaints = Vec::new();
    for c in &workspace.crates {
        let mut edges = edges(&Tree::read(workspace, c)?);
        for (_, files) in RECURSIVE_TYPES.iter().filter(|(name, _)| *name == c.name) {
            forget(&mut edges, files);
        }
        let allowed = ALLOWED_UNTIL_CUT.contains(&c.name.as_str());
        match shortest_circle(&edges) {
            Some(circle) if !allowed => complaints.push(format!("{}: {}", c.name, described(&circle, &edges))),
            None if allowed => complaints.push(format!("{} has no circle: take it off the list in circles.rs", c.name)),
            _ => {}
        }
    }
    Ok(complaints)
}

/// For each file the files that it uses, each with one item by which it does.
type Edges = BTreeMap<String, BTreeMap<String, String>>;

fn edges(tree: &Tree) -> Edges {
    let mut edges = Edges::new();
    for (index, module) in tree.modules.iter().enumerate() {
        let imported = module.imports.iter().filter(|i| !i.is_public && i.name.is_some()).map(|i| i.path.clone());
        for path in imported.chain(paths(&module.tokens)) {
            let mut resolver = Resolver { tree, open: Vec::new() };
            if let Some(Target::Item(target)) = resolver.path(index, &path) {
                let target = &tree.modules[target].file;
                let item = path.last().cloned().unwrap_or_default();
                if *target != module.file {
                    edges.entry(module.file.clone()).or_default().entry(target.clone()).or_insert(item);
                }
            }
        }
    }
    edges
}

/// Takes out the edges between files of one recursive type.
fn forget(edges: &mut Edges, files: &[&str]) {
    let is_one = |file: &str| files.iter().any(|one| file.ends_with(&format!("/src/{one}")));
    for (_, targets) in edges.iter_mut().filter(|(file, _)| is_one(file)) {
        targets.retain(|target, _| !is_one(target));
    }
}

/// The paths in the tokens, also those of a single word. A word behind a dot is a field or a method.
fn paths(tokens: &[Token]) -> Vec<Vec<String>> {
    let text = |at: usize| tokens.get(at).map_or("", |t| t.text.as_str());
    let is_word = |at: usize| text(at).starts_with(|c: char| c.is_alphabetic() || c == '_');
    let mut paths = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let start = at;
        at += 1;
        if !is_word(start) {
            continue;
        }
        let mut path = vec![text(start).to_string()];
        while text(at) == ":" && text(at + 1) == ":" && is_word(at + 2) {
            path.push(text(at + 2).to_string());
            at += 3;
        }
        let before = |n: usize| start.checked_sub(n).map_or("", text);
        let is_member = before(1) == "." && before(2) != "." || before(1) == ":" && before(2) == ":";
        // A variable may have the name of an imported function: a short word is a use of it where it is called.
        let is_variable = path.len() == 1 && path[0].starts_with(char::is_lowercase) && !["(", "!"].contains(&text(at));
        let is_definition = before(1) == "fn";
        if !is_member && !is_variable && !is_definition {
            paths.push(path);
        }
    }
    paths
}

#[derive(Clone, Copy)]
enum Target {
    /// The path names a module.
    Module(usize),
    /// The path names an item, or a part of one, that this module defines.
    Item(usize),
}

struct Resolver<'a> {
    tree: &'a Tree,
    /// Names under resolution, so that globs and re-exports of each other end.
    open: Vec<(usize, String)>,
}

impl Resolver<'_> {
    /// `None` for a path that leads out of the crate.
    fn path(&mut self, from: usize, path: &[String]) -> Option<Target> {
        let mut at = from;
        for (n, word) in path.iter().enumerate() {
            match word.as_str() {
                "crate" => at = self.root(at),
                "self" => {}
                "super" => at = self.tree.modules[at].parent?,
                _ => match self.name(at, word)? {
                    Target::Module(m) => at = m,
                    item => return Some(item),
                },
            }
            // `Self`, and keywords: they are no names of modules, and no path goes on behind them.
            if n == 0 && word == "Self" {
                return None;
            }
        }
        Some(Target::Module(at))
    }

    fn root(&self, mut module: usize) -> usize {
        while let Some(parent) = self.tree.modules[module].parent {
            module = parent;
        }
        module
    }

    /// The meaning of `word` in a module: a nested module, an item, an import, or a name of a glob.
    fn name(&mut self, module: usize, word: &str) -> Option<Target> {
        let Module { children, items, imports, .. } = &self.tree.modules[module];
        if let Some(child) = children.get(word) {
            return Some(Target::Module(*child));
        }
        if items.iter().any(|i| i.at_module_level && i.name == word) {
            return Some(Target::Item(module));
        }
        let key = (module, word.to_string());
        if self.open.contains(&key) {
            return None;
        }
        self.open.push(key);
        let named = imports.iter().filter(|i| i.name.as_deref() == Some(word)).find_map(|i| self.path(module, &i.path));
        let found = named.or_else(|| {
            imports.iter().filter(|i| i.name.is_none()).find_map(|i| match self.path(module, &i.path)? {
                Target::Module(globbed) => self.name(globbed, word),
                Target::Item(_) => None,
            })
        });
        self.open.pop();
        found
    }
}

/// The files of a shortest circle, each using the next and the last using the first.
fn shortest_circle(edges: &Edges) -> Option<Vec<String>> {
    edges.keys().filter_map(|file| circle_through(file, edges)).min_by_key(Vec::len)
}

/// Searches breadth first from `file` until it is met again.
fn circle_through(file: &str, edges: &Edges) -> Option<Vec<String>> {
    let mut reached_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut queue = VecDeque::from([file]);
    while let Some(at) = queue.pop_front() {
        for next in edges.get(at).into_iter().flat_map(BTreeMap::keys) {
            if next == file {
                let back = std::iter::successors(Some(at), |f| reached_from.get(f).copied());
                let mut circle: Vec<String> = back.map(String::from).collect();
                circle.reverse();
                return Some(circle);
            }
            if !reached_from.contains_key(next.as_str()) {
                reached_from.insert(next, at);
                queue.push_back(next);
            }
        }
    }
    None
}

fn described(circle: &[String], edges: &Edges) -> String {
    let short = |file: &str| file.split_once("/src/").map_or(file, |(_, rest)| rest).to_string();
    let steps = circle.iter().zip(circle.iter().cycle().skip(1));
    let steps: Vec<String> = steps.map(|(a, b)| format!("{} uses {} ({})", short(a), short(b), edges[a][b])).collect();
    let in_circles = edges.keys().filter(|f| circle_through(f, edges).is_some()).count();
    format!("{}; {in_circles} files import themselves through others", steps.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::source::tests::tree;
    use super::*;

    fn circle(files: &[(&str, &str)]) -> Option<String> {
        let edges = edges(&tree(files));
        shortest_circle(&edges).map(|c| described(&c, &edges))
    }

    #[test]
    fn a_circle_is_named() {
        let found = circle(&[
            ("s/src/lib.rs", "mod a; mod b; mod c;"),
            ("s/src/a.rs", "use crate::b::B; pub struct A; fn f() { crate::c::f() }"),
            ("s/src/b.rs", "pub struct B; pub fn f() { super::c::f() }"),
            ("s/src/c.rs", "use crate::a; pub fn f() -> a::A { a::A }"),
        ]);
        let expected = "a.rs uses c.rs (f), c.rs uses a.rs (A); 3 files import themselves through others";
        assert_eq!(found.as_deref(), Some(expected));
    }

    #[test]
    fn a_reexport_is_a_use_of_the_definition() {
        let parent = "pub use one::One; pub use two::{Two, two as other}; mod one; mod two;";
        let one = ("s/src/p/one.rs", "use super::Two; pub struct One(Two);");
        let two = ("s/src/p/two.rs", "pub struct Two; pub fn two() {}");
        let root = ("s/src/lib.rs", "mod p;");
        assert_eq!(circle(&[root, ("s/src/p/mod.rs", parent), one, two]), None);
        let back = ("s/src/p/two.rs", "use crate::p::*; pub struct Two; fn f(_: &One) {}");
        assert!(circle(&[root, ("s/src/p/mod.rs", parent), one, back]).is_some());
        let used = format!("{parent} pub struct P; fn f() {{ other() }}");
        let up = ("s/src/p/two.rs", "pub struct Two; pub fn two() -> super::P { super::P }");
        let found = circle(&[root, ("s/src/p/mod.rs", &used), one, up]).unwrap();
        assert!(found.starts_with("p/mod.rs uses p/two.rs (other), p/two.rs uses p/mod.rs (P)"), "{found}");
    }

    #[test]
    fn what_is_no_use() {
        let root = ("s/src/lib.rs", "mod a; mod b;");
        let b = ("s/src/b.rs", "use crate::a::A; pub fn count(_: A) {}");
        let uses = |text: &str| circle(&[root, b, ("s/src/a.rs", &format!("pub struct A; {text}"))]).is_some();
        assert!(uses("use crate::b::*; fn f() { count(A) }"));
        assert!(!uses("use crate::b::*; fn f(count: u8) { x.count(); let y = Y { count }; }"), "variables");
        assert!(!uses("#[cfg(test)] mod tests { use crate::b::count; }"), "tests");
        assert!(!uses("/// As crate::b::count does.\nfn f() { \"crate::b::count()\" }"), "words");
        assert!(!uses("use std::b::count; fn f() { count(A) }"), "another crate's");
    }
}
