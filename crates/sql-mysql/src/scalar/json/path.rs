//! Paths into a document: `$.name`, `$[1]`, `$[last-1]`, `$[1 to 3]`, `.*`, `[*]`, `**`.

use super::Node;
use crate::error;
use datum::Result;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    pub legs: Vec<Leg>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leg {
    Member(Box<str>),
    AnyMember,
    Element(Place),
    AnyElement,
    Range(Place, Place),
    /// `**`: this value and all within it.
    Anywhere,
}

/// An element's place, from the front or from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Front(usize),
    /// 0 is the last.
    Last(usize),
}

impl Place {
    /// Its index in an array of that length; it may be beyond the end, or before the front (`None`).
    pub fn index(self, length: usize) -> Option<usize> {
        match self {
            Place::Front(index) => Some(index),
            Place::Last(back) => length.checked_sub(back + 1),
        }
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.text[self.at..].starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn number(&mut self) -> Option<usize> {
        let rest = &self.text[self.at..];
        let length = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = rest[..length].parse::<u32>().ok()?;
        self.at += length;
        Some(number as usize)
    }

    fn place(&mut self) -> Option<Place> {
        if !self.eat("last") {
            return self.number().map(Place::Front);
        }
        self.blanks();
        if !self.eat("-") {
            return Some(Place::Last(0));
        }
        self.blanks();
        self.number().map(Place::Last)
    }

    fn bracket(&mut self) -> Option<Leg> {
        self.blanks();
        let leg = if self.eat("*") {
            Leg::AnyElement
        } else {
            let from = self.place()?;
            let blank = self.peek().is_some_and(char::is_whitespace);
            self.blanks();
            if blank && self.eat("to ") {
                self.blanks();
                Leg::Range(from, self.place()?)
            } else {
                Leg::Element(from)
            }
        };
        self.blanks();
        self.eat("]").then_some(leg)
    }

    fn member(&mut self) -> Option<Leg> {
        self.blanks();
        if self.eat("*") {
            return Some(Leg::AnyMember);
        }
        let rest = &self.text[self.at..];
        if let Some(inner) = rest.strip_prefix('"') {
            let mut escaped = false;
            let end = inner.char_indices().find(|(_, c)| {
                let closes = *c == '"' && !escaped;
                escaped = *c == '\\' && !escaped;
                closes
            });
            let quoted = &rest[..end?.0 + 2];
            self.at += quoted.len();
            return match super::parse(quoted).ok()? {
                Node::String(name) => Some(Leg::Member(name)),
                _ => None,
            };
        }
        let name = |c: char| c == '_' || c == '$' || c.is_alphanumeric();
        let length = rest.find(|c: char| !name(c)).unwrap_or(rest.len());
        let name = &rest[..length];
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        self.at += length;
        Some(Leg::Member(name.into()))
    }
}

impl Path {
    /// Error 3143.
    pub fn parse(text: &str) -> Result<Path> {
        let mut reader = Reader { text, at: 0 };
        let fail = |reader: &Reader<'_>| error::INVALID_JSON_PATH.raise(&[&reader.text[..reader.at].chars().count()]);
        reader.blanks();
        if !reader.eat("$") {
            return Err(error::INVALID_JSON_PATH.raise(&[&1]));
        }
        let mut legs = Vec::new();
        loop {
            reader.blanks();
            let leg = if reader.eat("**") {
                Some(Leg::Anywhere)
            } else if reader.eat(".") {
                reader.member()
            } else if reader.eat("[") {
                reader.bracket()
            } else if reader.peek().is_none() {
                break;
            } else {
                None
            };
            legs.push(leg.ok_or_else(|| fail(&reader))?);
        }
        if legs.last() == Some(&Leg::Anywhere) {
            return Err(fail(&reader));
        }
        Ok(Path { legs })
    }

    /// Returns whether the path may select several values.
    pub fn is_wild(&self) -> bool {
        self.legs.iter().any(|leg| !matches!(leg, Leg::Member(_) | Leg::Element(_)))
    }

    /// Returns all values that the path selects, in document order. A scalar counts as an array of one element.
    pub fn find<'n>(&self, root: &'n Node) -> Vec<&'n Node> {
        let mut found = Vec::new();
        descend(root, &self.legs, &mut found);
        // Only `**` can reach a value in two ways.
        if self.legs.contains(&Leg::Anywhere) {
            let mut known = std::collections::HashSet::new();
            found.retain(|node| known.insert(std::ptr::from_ref::<Node>(node)));
        }
        found
    }
}

fn descend<'n>(node: &'n Node, legs: &[Leg], found: &mut Vec<&'n Node>) {
    let Some((leg, rest)) = legs.split_first() else {
        found.push(node);
        return;
    };
    match (leg, node) {
        (Leg::Member(name), Node::Object(members)) => {
            if let Some(member) = members.get(name) {
                descend(member, rest, found);
            }
        }
        (Leg::AnyMember, Node::Object(members)) => members.iter().for_each(|(_, node)| descend(node, rest, found)),
        (Leg::Element(place), Node::Array(elements)) => {
            if let Some(element) = place.index(elements.len()).and_then(|index| elements.get(index)) {
                descend(element, rest, found);
            }
        }
        (Leg::Element(place), scalar) if place.index(1) == Some(0) => descend(scalar, rest, found),
        (Leg::AnyElement, Node::Array(elements)) => elements.iter().for_each(|node| descend(node, rest, found)),
        (Leg::Range(from, to), Node::Array(elements)) => {
            let from = from.index(elements.len()).unwrap_or(0);
            let end = to.index(elements.len()).map_or(0, |to| to + 1).min(elements.len());
            elements.get(from..end).into_iter().flatten().for_each(|node| descend(node, rest, found));
        }
        (Leg::Range(from, to), scalar) if from.index(1).unwrap_or(0) == 0 && to.index(1).is_some() => {
            descend(scalar, rest, found);
        }
        (Leg::Anywhere, _) => {
            descend(node, rest, found);
            match node {
                Node::Array(elements) => elements.iter().for_each(|node| descend(node, legs, found)),
                Node::Object(members) => members.iter().for_each(|(_, node)| descend(node, legs, found)),
                _ => {}
            }
        }
        _ => {}
    }
}
