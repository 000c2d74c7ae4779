//! Indexes of terms: an index whose entries are (term, row key), several for each row. Terms are the elements of an array or the parts of a document.
//!
//! ```text
//!   1, an element as in keys      of an array; shortened beyond 352 bytes as other columns are (QU-27)
//!   1, a hash of 16 bytes         of a name or a scalar of a document, or of a scalar with the names that lead to it
//!   2                             the value has no terms
//!   3                             the value has too many
//! ```
//! QU-66: a value that is not NULL has an entry for each of its terms, or one of the last two kinds. No term is the beginning of another one (QU-28).
//! QU-67: a test names groups of terms, and each value that passes it has a term of each group, or it names every row of the index; values with too many terms
//! are candidates of every test. The test itself is rechecked on the row, so a hash that two terms share costs time and changes no result.

use std::ops::Bound;

use datum::json::{JsonbScalar, Node};
use datum::key::{KeyOrder, encode};
use datum::{Shape, Storage};
use sha2::{Digest, Sha256};

use crate::key_form::{KeyForm, after};
use crate::nodes::term_test::{Parts, TermForm, TermTest};
use crate::value::Value;

/// The number of terms that one value may have in an index.
pub const TERMS_MAX: usize = 64 << 10;
/// The terms of a test that are looked up one by one.
const LOOKED_UP_MAX: usize = 4 << 10;
/// The terms that are measured for the rarest group of a conjunction.
const COMPARED_MAX: usize = 16;
/// The terms of a group that a path names, and of all its groups.
const PATH_TERMS_MAX: usize = 64;

const TERM: u8 = 1;
const NO_TERM: u8 = 2;
const MANY_TERMS: u8 = 3;
const HASH_BYTES: usize = 16;

/// A term as it stands in an index.
pub type Term = Vec<u8>;

/// Returns the terms of a value, in order and each once; none of NULL.
pub fn terms(form: TermForm, value: &Value) -> Vec<Term> {
    if value.is_null() {
        return Vec::new();
    }
    let mut gathered = TermSet { form, terms: Vec::new(), is_over: false };
    gathered.value(value);
    if gathered.is_over {
        return vec![vec![MANY_TERMS]];
    }
    match gathered.finish() {
        terms if terms.is_empty() => vec![vec![NO_TERM]],
        terms => terms,
    }
}

struct TermSet {
    form: TermForm,
    terms: Vec<Term>,
    is_over: bool,
}

impl TermSet {
    fn finish(mut self) -> Vec<Term> {
        self.terms.sort_unstable();
        self.terms.dedup();
        self.terms
    }

    fn push(&mut self, term: Term) {
        self.terms.push(term);
        if self.terms.len() > TERMS_MAX {
            self.terms.sort_unstable();
            self.terms.dedup();
            // Equal terms may hide the rest; only so many are gathered before they are merged again.
            self.is_over |= self.terms.len() > TERMS_MAX / 2;
        }
    }

    fn value(&mut self, value: &Value) {
        match (self.form, value) {
            (TermForm::Elements, Value::Array(array)) => {
                for element in array.values().iter().filter(|element| !element.is_null()) {
                    if self.is_over {
                        return;
                    }
                    self.push(of_element(element, array.element()));
                }
            }
            (TermForm::Members, Value::Json(document)) => self.members(document.node(), true),
            (TermForm::Paths, Value::Json(document)) => self.paths(document.node(), &[0; HASH_BYTES]),
            _ => {}
        }
    }

    /// Gathers names, and scalars with a mark of where they stand: a text that is an element is found as a name is. Documents
    /// nest as deep as `datum::json::DEPTH_MAX`, and so does this.
    fn members(&mut self, node: &Node, is_element: bool) {
        match node {
            _ if self.is_over => {}
            Node::Array(elements) => elements.iter().for_each(|element| self.members(element, true)),
            Node::Object(members) => {
                for (name, value) in members.iter() {
                    self.push(of_name(name));
                    self.members(value, false);
                }
            }
            scalar => match string_of(scalar).filter(|_| is_element) {
                Some(text) => self.push(of_name(&text)),
                None => self.push(of_scalar(scalar)),
            },
        }
    }

    /// Gathers scalars with the names that lead to them. Arrays add nothing to a path.
    fn paths(&mut self, node: &Node, path: &[u8; HASH_BYTES]) {
        match node {
            _ if self.is_over => {}
            Node::Array(elements) => elements.iter().for_each(|element| self.paths(element, path)),
            Node::Object(members) => {
                for (name, value) in members.iter() {
                    self.paths(value, &below(path, name));
                }
            }
            scalar => self.push(at_path(path, scalar)),
        }
    }
}

fn of_element(element: &Value, shape: Shape) -> Term {
    let mut term = vec![TERM];
    encode(element, shape, KeyOrder::ASCENDING, &mut term);
    KeyForm::Hashed.shorten(&mut term);
    term
}

/// Returns the term of a value that is a name.
fn name_of(value: &Value) -> Option<Term> {
    match value {
        Value::Text(name) => Some(of_name(name)),
        _ => None,
    }
}

fn of_name(name: &str) -> Term {
    hashed(&[b"k", name.as_bytes()])
}

fn of_scalar(scalar: &Node) -> Term {
    hashed(&[b"v", &scalar_bytes(scalar)])
}

/// Returns the path that a name continues. That of the whole document is zero.
fn below(path: &[u8; HASH_BYTES], name: &str) -> [u8; HASH_BYTES] {
    hash(&[b"p", path, name.as_bytes()])
}

fn at_path(path: &[u8; HASH_BYTES], scalar: &Node) -> Term {
    hashed(&[b"s", path, &scalar_bytes(scalar)])
}

/// Returns the text of a scalar that is a string among documents.
fn string_of(scalar: &Node) -> Option<String> {
    let is_string = scalar.jsonb_rank() == Node::String(Box::default()).jsonb_rank();
    match is_string.then(|| scalar.jsonb_scalar()) {
        Some(JsonbScalar::String(text)) => Some(text),
        _ => None,
    }
}

/// Returns bytes that two scalars share exactly if they are equal as documents.
fn scalar_bytes(scalar: &Node) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&Value::Json(scalar.clone().into()), Storage::Jsonb.into(), KeyOrder::ASCENDING, &mut bytes);
    bytes
}

fn hash(parts: &[&[u8]]) -> [u8; HASH_BYTES] {
    let mut hasher = Sha256::new();
    parts.iter().for_each(|part| hasher.update(part));
    let whole = hasher.finalize();
    std::array::from_fn(|at| whole[at])
}

fn hashed(parts: &[&[u8]]) -> Term {
    let mut term = vec![TERM];
    term.extend_from_slice(&hash(parts));
    term
}

/// The terms that the values have that pass a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantedTerms {
    /// Any or none.
    Any,
    /// No value passes.
    Nothing,
    /// One term at least of each group.
    Groups(Vec<Vec<Term>>),
}

/// Returns the terms of the values that pass a test with this other side.
pub fn wanted(form: TermForm, test: TermTest, other: &Value) -> WantedTerms {
    if other.is_null() {
        // Tests are strict.
        return WantedTerms::Nothing;
    }
    let is_fit = match test {
        TermTest::HasName => matches!(other, Value::Text(_)),
        TermTest::HasAnyName | TermTest::HasAllNames => matches!(other, Value::Array(_)),
        TermTest::PathExists(_) | TermTest::PathMatches(_) => true,
        _ if form == TermForm::Elements => matches!(other, Value::Array(_)),
        _ => matches!(other, Value::Json(_)),
    };
    if !is_fit {
        return WantedTerms::Any;
    }
    let own = || {
        let mut gathered = TermSet { form, terms: Vec::new(), is_over: false };
        gathered.value(other);
        gathered.finish()
    };
    let has_null = || matches!(other, Value::Array(array) if array.values().iter().any(Value::is_null));
    let names = || match other {
        Value::Array(array) => array.values().iter().filter_map(name_of).take(TERMS_MAX).collect(),
        _ => Vec::new(),
    };
    match test {
        TermTest::Holds if form == TermForm::Elements && has_null() => WantedTerms::Nothing,
        TermTest::Holds => all(own()),
        TermTest::Overlaps => match own() {
            terms if terms.is_empty() => WantedTerms::Nothing,
            terms => one_of(terms, other),
        },
        TermTest::IsHeldBy => {
            let mut terms = own();
            terms.push(vec![NO_TERM]);
            one_of(terms, other)
        }
        TermTest::Equals => match own() {
            terms if terms.is_empty() => WantedTerms::Groups(vec![vec![vec![NO_TERM]]]),
            terms => all(terms),
        },
        TermTest::HasName => match name_of(other) {
            Some(name) => all(vec![name]),
            None => WantedTerms::Any,
        },
        TermTest::HasAnyName => match names() {
            terms if terms.is_empty() => WantedTerms::Nothing,
            terms => one_of(terms, other),
        },
        TermTest::HasAllNames => all(names()),
        TermTest::PathExists(parts) | TermTest::PathMatches(parts) => match groups_of(form, parts(other)) {
            groups if groups.is_empty() => WantedTerms::Any,
            groups => WantedTerms::Groups(groups),
        },
    }
}

/// Fewer terms than there are lead to more rows.
fn all(mut terms: Vec<Term>) -> WantedTerms {
    terms.truncate(LOOKED_UP_MAX);
    if terms.is_empty() {
        WantedTerms::Any
    } else {
        WantedTerms::Groups(terms.into_iter().map(|term| vec![term]).collect())
    }
}

fn one_of(mut terms: Vec<Term>, other: &Value) -> WantedTerms {
    let count = match other {
        Value::Array(array) => array.len(),
        _ => terms.len(),
    };
    if count > LOOKED_UP_MAX {
        return WantedTerms::Any;
    }
    terms.sort_unstable();
    terms.dedup();
    WantedTerms::Groups(vec![terms])
}

/// Returns groups of terms of which each value with these parts has one each; none if nothing is known. Groups may be left out.
fn groups_of(form: TermForm, parts: Parts) -> Vec<Vec<Term>> {
    let mut groups = match (parts, form) {
        (Parts::Name(name), TermForm::Members) => vec![vec![of_name(&name)]],
        (Parts::Scalar { scalar, .. }, TermForm::Members) => {
            // A text may be an element, which is found as a name is.
            let name = string_of(&scalar).map(|text| of_name(&text));
            vec![name.into_iter().chain([of_scalar(&scalar)]).collect()]
        }
        (Parts::Scalar { path: Some(path), scalar }, TermForm::Paths) => {
            let path = path.iter().fold([0; HASH_BYTES], |path, name| below(&path, name));
            vec![vec![at_path(&path, &scalar)]]
        }
        (Parts::Any | Parts::Name(_) | Parts::Scalar { .. }, _) => Vec::new(),
        (Parts::All(parts), _) => parts.into_iter().flat_map(|part| groups_of(form, part)).collect(),
        (Parts::OneOf(parts), _) => {
            let each = parts.into_iter().map(|part| groups_of(form, part));
            each.reduce(|some, others| {
                // Whoever has a term of each group on one side has one of each pair.
                let pairs = some.iter().flat_map(|one| others.iter().map(move |other| (one, other)));
                let short = pairs.filter(|(one, other)| one.len() + other.len() <= PATH_TERMS_MAX);
                short.take(PATH_TERMS_MAX).map(|(one, other)| [&one[..], other].concat()).collect()
            })
            .unwrap_or_default()
        }
    };
    groups.iter_mut().for_each(|group| {
        group.sort_unstable();
        group.dedup();
    });
    groups.sort_by_key(Vec::len);
    let mut room = PATH_TERMS_MAX;
    groups.retain(|group| {
        let fits = group.len() <= room;
        room -= if fits { group.len() } else { 0 };
        fits
    });
    groups
}

/// A part of an index: the entries of one term, or all.
pub type Entries = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Returns the entries of which each row that passes has one (QU-67), in order. `rows` estimates those of a term; the rarest
/// of several groups of terms is taken.
pub fn entries(wanted: WantedTerms, mut rows: impl FnMut(&Entries) -> f64) -> Vec<Entries> {
    let of = |term: Term| {
        let end = after(&term);
        (Bound::Included(term), end)
    };
    let groups = match wanted {
        WantedTerms::Any => return vec![(Bound::Unbounded, Bound::Unbounded)],
        WantedTerms::Nothing => return Vec::new(),
        WantedTerms::Groups(groups) => groups,
    };
    let all_of = |group: Vec<Term>| group.into_iter().map(of).collect::<Vec<Entries>>();
    let mut entries = match groups.len() {
        0 | 1 => groups.into_iter().map(all_of).next().unwrap_or_default(),
        _ => {
            let spread = groups.iter().map(Vec::len).sum::<usize>().div_ceil(COMPARED_MAX);
            let compared = groups.into_iter().step_by(spread).map(all_of);
            let measured = compared.map(|entries| (entries.iter().map(&mut rows).sum::<f64>(), entries));
            let rarest = measured.min_by(|(one, _), (other, _)| one.total_cmp(other));
            rarest.map(|(_, entries)| entries).unwrap_or_default()
        }
    };
    entries.push(of(vec![MANY_TERMS]));
    entries
}
