//! The module trees of a crate as the compiler would load them: items, imports and tokens of every file, without tests.
//!
//! The tree starts at `lib.rs`, `main.rs` and the files of `bin`, and follows `mod name;`. An item under `#[cfg(test)]` is dropped with
//! all its tokens, and so are the files that only such an item declares. Doc comments are dropped too: checks of prose read the text.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::workspace::{Crate, Workspace};

pub struct Module {
    /// Relative to the root of the repository.
    pub file: String,
    pub parent: Option<usize>,
    pub children: BTreeMap<String, usize>,
    pub items: Vec<Item>,
    pub imports: Vec<Import>,
    /// Tokens outside `use` declarations and nested modules, with groups flattened into their delimiters.
    pub tokens: Vec<Token>,
}

pub struct Item {
    pub keyword: String,
    pub name: String,
    /// False for an item in a function's body.
    pub at_module_level: bool,
}

/// One leaf of a `use` declaration.
pub struct Import {
    pub is_public: bool,
    pub path: Vec<String>,
    /// The name that the leaf binds; `None` for a glob.
    pub name: Option<String>,
}

#[derive(PartialEq, Eq, Debug)]
pub struct Token {
    pub text: String,
    pub line: usize,
}

/// The modules of one crate. A module's index is its place in the list.
pub struct Tree {
    pub modules: Vec<Module>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Module,
    /// The braces of an `impl` or a trait: its types and functions are no items of the module.
    Associated,
    Body,
}

const ITEMS: &[&str] = &["struct", "enum", "union", "trait", "type", "fn", "const", "static", "mod"];

impl Tree {
    pub fn read(workspace: &Workspace, c: &Crate) -> Result<Tree, String> {
        let src = format!("{}/src/", c.folder);
        let is_root = |f: &&String| {
            let rest = f.strip_prefix(&src).unwrap_or_default();
            ["lib.rs", "main.rs"].contains(&rest) || rest.starts_with("bin/") && rest.ends_with(".rs")
        };
        let roots: Vec<&str> = workspace.files.iter().filter(is_root).map(String::as_str).collect();
        Tree::load(&roots, &|file| workspace.text_if_any(file))
    }

    /// `text` returns the text of a file, or `None` where there is no such file.
    pub fn load(roots: &[&str], text: &dyn Fn(&str) -> Option<String>) -> Result<Tree, String> {
        let mut loader = Loader { modules: Vec::new(), text };
        for root in roots {
            let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
            loader.file(root, folder, None)?;
        }
        Ok(Tree { modules: loader.modules })
    }
}

struct Loader<'a> {
    modules: Vec<Module>,
    text: &'a dyn Fn(&str) -> Option<String>,
}

impl Loader<'_> {
    /// Loads one file. `folder` holds the files of its nested modules.
    fn file(&mut self, file: &str, folder: &str, parent: Option<usize>) -> Result<usize, String> {
        let text = (self.text)(file).ok_or_else(|| format!("{file}: missing"))?;
        let stream: TokenStream = text.parse().map_err(|e| format!("{file}: {e}"))?;
        self.module(stream, file, folder, parent)
    }

    fn module(
        &mut self,
        stream: TokenStream,
        file: &str,
        folder: &str,
        parent: Option<usize>,
    ) -> Result<usize, String> {
        let index = self.modules.len();
        let (children, items, imports, tokens) = Default::default();
        self.modules.push(Module { file: file.into(), parent, children, items, imports, tokens });
        self.group(stream, index, folder, Scope::Module)?;
        Ok(index)
    }

    fn group(&mut self, stream: TokenStream, index: usize, folder: &str, scope: Scope) -> Result<(), String> {
        let trees: Vec<TokenTree> = stream.into_iter().collect();
        let mut associated = false;
        let mut at = 0;
        while let Some(tree) = trees.get(at) {
            at += 1;
            match tree {
                TokenTree::Punct(p) if p.as_char() == '#' => {
                    let is_inner = is_punct(&trees, at, '!');
                    at += usize::from(is_inner);
                    let words = attribute(&trees, at);
                    at += usize::from(words.is_some());
                    if !is_inner && words.is_some_and(|w| is_for_tests(&w)) {
                        at = end_of_item(&trees, at);
                    }
                }
                TokenTree::Ident(i) if i == "use" && scope != Scope::Associated => {
                    let end = (at..trees.len()).find(|e| is_punct(&trees, *e, ';')).unwrap_or(trees.len());
                    let is_public =
                        at >= 2 && is_word(&trees, at - 2, "pub") || at >= 3 && is_word(&trees, at - 3, "pub");
                    leaves(&trees[at..end], is_public, &[], &mut self.modules[index].imports);
                    at = end + 1;
                }
                TokenTree::Ident(i) if i == "mod" && scope == Scope::Module => {
                    let Some(TokenTree::Ident(name)) = trees.get(at) else { continue };
                    let name = name.to_string();
                    let folder_of_child = format!("{folder}/{name}");
                    let child = match trees.get(at + 1) {
                        Some(TokenTree::Group(g)) => {
                            let file = self.modules[index].file.clone();
                            self.module(g.stream(), &file, &folder_of_child, Some(index))?
                        }
                        _ => {
                            let flat = format!("{folder_of_child}.rs");
                            let file =
                                if (self.text)(&flat).is_some() { flat } else { format!("{folder_of_child}/mod.rs") };
                            self.file(&file, &folder_of_child, Some(index))?
                        }
                    };
                    self.modules[index].children.insert(name, child);
                    at += 2;
                }
                TokenTree::Group(g) => {
                    let (open, close) = match g.delimiter() {
                        Delimiter::Parenthesis => ("(", ")"),
                        Delimiter::Brace => ("{", "}"),
                        Delimiter::Bracket => ("[", "]"),
                        Delimiter::None => ("", ""),
                    };
                    let inside = match g.delimiter() {
                        Delimiter::Brace if std::mem::take(&mut associated) => Scope::Associated,
                        _ => Scope::Body,
                    };
                    self.push(index, open, g.span_open().start().line);
                    self.group(g.stream(), index, folder, inside)?;
                    self.push(index, close, g.span_close().start().line);
                }
                _ => {
                    let text = tree.to_string();
                    let starts_item = at < 2
                        || is_group(&trees, at - 2)
                        || is_punct(&trees, at - 2, ';')
                        || is_word(&trees, at - 2, "unsafe");
                    associated |= text == "trait" || text == "impl" && starts_item;
                    associated &= text != ";";
                    if scope != Scope::Associated {
                        self.item(&text, &trees, at, index, scope);
                    }
                    self.push(index, &text, tree.span().start().line);
                }
            }
        }
        Ok(())
    }

    /// Notes the item that the keyword `text` begins, if it begins one. Its name is the next word.
    fn item(&mut self, text: &str, trees: &[TokenTree], at: usize, index: usize, scope: Scope) {
        let at = if text == "macro_rules" || is_word(trees, at, "mut") { at + 1 } else { at };
        let Some(TokenTree::Ident(name)) = trees.get(at) else { return };
        let name = name.to_string();
        if (ITEMS.contains(&text) || text == "macro_rules") && !["fn", "unsafe", "extern"].contains(&name.as_str()) {
            let at_module_level = scope == Scope::Module;
            self.modules[index].items.push(Item { keyword: text.into(), name, at_module_level });
        }
    }

    fn push(&mut self, index: usize, text: &str, line: usize) {
        self.modules[index].tokens.push(Token { text: text.into(), line });
    }
}

fn is_punct(trees: &[TokenTree], at: usize, c: char) -> bool {
    matches!(trees.get(at), Some(TokenTree::Punct(p)) if p.as_char() == c)
}

fn is_word(trees: &[TokenTree], at: usize, word: &str) -> bool {
    matches!(trees.get(at), Some(TokenTree::Ident(i)) if i == word)
}

fn is_group(trees: &[TokenTree], at: usize) -> bool {
    matches!(trees.get(at), Some(TokenTree::Group(_)))
}

/// The words of the attribute whose brackets are at `at`.
fn attribute(trees: &[TokenTree], at: usize) -> Option<Vec<String>> {
    let Some(TokenTree::Group(g)) = trees.get(at) else { return None };
    if g.delimiter() != Delimiter::Bracket {
        return None;
    }
    let text = g.stream().to_string();
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty());
    Some(words.map(String::from).collect())
}

/// `#[test]`, `#[cfg(test)]`, `#[cfg(all(test, ..))]`; not `#[cfg(not(test))]`, not `#[cfg_attr(test, ..)]`.
fn is_for_tests(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let negated = words.windows(2).any(|w| w == ["not", "test"]) || words.contains(&"any");
    words == ["test"] || words.first() == Some(&"cfg") && words.contains(&"test") && !negated
}

/// The place after the item, field or statement that begins at `at`: behind its semicolon, its braces, or the comma of a field.
fn end_of_item(trees: &[TokenTree], mut at: usize) -> usize {
    let mut is_item = false;
    while let Some(tree) = trees.get(at) {
        at += 1;
        match tree {
            TokenTree::Ident(i) => is_item |= *i == "use" || *i == "impl" || ITEMS.iter().any(|k| i == k),
            TokenTree::Punct(p) if p.as_char() == ';' || p.as_char() == ',' && !is_item => return at,
            TokenTree::Group(g) if g.delimiter() == Delimiter::Brace => return at,
            _ => {}
        }
    }
    at
}

/// The leaves of a tree of imports, `a::{b, c::*, d as e}`.
fn leaves(trees: &[TokenTree], is_public: bool, prefix: &[String], out: &mut Vec<Import>) {
    let mut path = prefix.to_vec();
    let mut name = None;
    let mut at = 0;
    while let Some(tree) = trees.get(at) {
        at += 1;
        match tree {
            TokenTree::Ident(i) if i == "as" => {
                name = trees.get(at).map(ToString::to_string);
                at += 1;
            }
            TokenTree::Ident(i) => path.push(i.to_string()),
            TokenTree::Punct(p) if p.as_char() == '*' => {
                out.push(Import { is_public, path, name: None });
                return;
            }
            TokenTree::Group(g) => {
                let trees: Vec<TokenTree> = g.stream().into_iter().collect();
                let is_comma = |t: &TokenTree| matches!(t, TokenTree::Punct(p) if p.as_char() == ',');
                trees.split(is_comma).filter(|p| !p.is_empty()).for_each(|p| leaves(p, is_public, &path, out));
                return;
            }
            _ => {}
        }
    }
    // `use a::b::{self}` binds `b`.
    if path.len() > 1 && path.last().is_some_and(|w| w == "self") {
        path.pop();
    }
    let name = name.or_else(|| path.last().cloned());
    out.push(Import { is_public, path, name });
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A crate of made-up files, given as name and text. The first is the root.
    pub fn tree(files: &[(&str, &str)]) -> Tree {
        let text = |file: &str| files.iter().find(|(name, _)| *name == file).map(|(_, text)| text.to_string());
        Tree::load(&[files[0].0], &text).unwrap()
    }

    #[test]
    fn modules_are_followed_and_tests_are_dropped() {
        let tree = tree(&[
            ("s/lib.rs", "mod a; #[cfg(test)] mod b; mod c { struct C; } #[cfg(test)] use x::y; fn f() { struct L; }"),
            ("s/a/mod.rs", "pub(crate) use d::{D, e::*, F as G}; mod d; impl T for D { type O = u8; fn g() {} }"),
            ("s/a/d.rs", "//! A header.\n/// A struct.\npub struct D<T>(T);\n#[test]\nfn t() {}\npub const fn k() {}"),
        ]);
        let files: Vec<&str> = tree.modules.iter().map(|m| m.file.as_str()).collect();
        assert_eq!(files, ["s/lib.rs", "s/a/mod.rs", "s/a/d.rs", "s/lib.rs"]);
        let items: Vec<&str> = tree.modules.iter().flat_map(|m| &m.items).map(|i| i.name.as_str()).collect();
        assert_eq!(items, ["f", "L", "D", "k", "C"]);
        let imports: Vec<_> = tree.modules[1].imports.iter().map(|i| (i.path.join("::"), i.name.as_deref())).collect();
        assert_eq!(imports, [("d::D".into(), Some("D")), ("d::e".into(), None), ("d::F".into(), Some("G"))]);
        assert!(tree.modules[0].imports.is_empty() && tree.modules[1].imports[0].is_public);
        assert_eq!(tree.modules[2].tokens[0], Token { text: "pub".into(), line: 3 });
    }
}
