//! Tests of values by their terms (`term`): what a function of a dialect says about the terms of the values for which it is true.

use datum::json::Node;

use crate::value::Value;

/// The terms that an index has of a column's values. Each index of terms has its form, in the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermForm {
    /// The elements of an array.
    Elements,
    /// The names and the scalars of a document, each by itself.
    Members,
    /// The scalars of a document, each with the names that lead to it.
    Paths,
}

impl TermForm {
    const ALL: [TermForm; 3] = [TermForm::Elements, TermForm::Members, TermForm::Paths];

    /// Returns the number in the catalog; 0 is that of an index without terms.
    pub fn code(form: Option<TermForm>) -> u8 {
        form.map_or(0, |form| form as u8 + 1)
    }

    /// Returns the form of a number; the outer `None` if it has no meaning.
    pub fn of_code(code: u8) -> Option<Option<TermForm>> {
        match code {
            0 => Some(None),
            code => TermForm::ALL.get(usize::from(code) - 1).map(|form| Some(*form)),
        }
    }
}

/// A test of the value on the left with the one on the right. It is true for no NULL.
#[derive(Clone, Copy, Debug)]
pub enum TermTest {
    /// All parts of the right value are parts of the left one.
    Holds,
    /// All elements of the left array are elements of the right one.
    IsHeldBy,
    /// The arrays share an element.
    Overlaps,
    Equals,
    /// The document has a member, or an element, of that name.
    HasName,
    HasAnyName,
    HasAllNames,
    /// The document has the parts that a path of the dialect's leads to.
    PathExists(PartsOf),
    /// The document makes a condition of the dialect's true.
    PathMatches(PartsOf),
}

/// Returns the parts that a document must have, by the other side of a test.
pub type PartsOf = fn(&Value) -> Parts;

/// Parts that each document has that passes a test.
#[derive(Clone, Debug)]
pub enum Parts {
    /// Any or none.
    Any,
    /// A member, or an element, of that name.
    Name(Box<str>),
    /// A scalar, and the names that lead to it as far as all of them are known. Arrays on the way add none.
    Scalar {
        path: Option<Vec<Box<str>>>,
        scalar: Node,
    },
    All(Vec<Parts>),
    OneOf(Vec<Parts>),
}

impl TermTest {
    /// Returns the same test of the value on the right with the one on the left.
    pub fn turned(self) -> Option<TermTest> {
        match self {
            TermTest::Holds => Some(TermTest::IsHeldBy),
            TermTest::IsHeldBy => Some(TermTest::Holds),
            TermTest::Overlaps | TermTest::Equals => Some(self),
            TermTest::HasName
            | TermTest::HasAnyName
            | TermTest::HasAllNames
            | TermTest::PathExists(_)
            | TermTest::PathMatches(_) => None,
        }
    }

    /// Returns whether terms of that form tell something about the test.
    pub fn is_told_by(self, form: TermForm) -> bool {
        match form {
            TermForm::Elements => {
                matches!(self, TermTest::Holds | TermTest::IsHeldBy | TermTest::Overlaps | TermTest::Equals)
            }
            TermForm::Members => !matches!(self, TermTest::IsHeldBy | TermTest::Overlaps | TermTest::Equals),
            TermForm::Paths => matches!(self, TermTest::Holds | TermTest::PathExists(_) | TermTest::PathMatches(_)),
        }
    }
}
