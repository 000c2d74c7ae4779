//! Keywords within calls that are not arguments: the unit of INTERVAL, the side of TRIM, the fractional digits of
//! NOW(6).
//!
//! An expression holds such a keyword as a number (`nodes::expr::Extra`) that only this module creates and reads.

use crate::scalar::operation::Operator;
use crate::scalar::temporal::Unit;
use query::nodes::expr::{Call, Extra};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    None,
    /// Of INTERVAL, EXTRACT and TIMESTAMPDIFF.
    Unit(Unit),
    /// Digits of a second's fraction: NOW(6).
    Scale(u8),
    Trim(TrimSide),
    /// Of an arithmetic operator, with `div_precision_increment` as it was when it was bound.
    Operator(Operator, u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimSide {
    Both,
    Leading,
    Trailing,
}

impl TrimSide {
    const ALL: [TrimSide; 3] = [TrimSide::Both, TrimSide::Leading, TrimSide::Trailing];
}

/// The number of the first operator among the kinds of words.
const OPERATORS: u8 = 16;

impl Word {
    /// Returns the call's word with the text for its messages.
    pub fn with_text(self, text: Box<str>) -> Extra {
        let (tag, value) = match self {
            Word::None => (0, 0),
            Word::Unit(unit) => (1, unit as u8),
            Word::Scale(scale) => (2, scale),
            Word::Trim(side) => (3, side as u8),
            Word::Operator(op, increment) => (OPERATORS + op as u8, increment),
        };
        Extra { word: [tag, value], text, ..Extra::default() }
    }

    pub fn of(call: &Call) -> Word {
        let [tag, value] = call.extra.word;
        match tag {
            1 => Unit::from_number(value).map_or(Word::None, Word::Unit),
            2 => Word::Scale(value),
            3 => TrimSide::ALL.get(usize::from(value)).map_or(Word::None, |side| Word::Trim(*side)),
            0 => Word::None,
            tag => {
                Operator::from_number(tag.wrapping_sub(OPERATORS)).map_or(Word::None, |op| Word::Operator(op, value))
            }
        }
    }
}

impl From<Word> for Extra {
    fn from(word: Word) -> Extra {
        word.with_text("".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::arithmetic;
    use crate::types::MysqlType as _;
    use crate::types::Type;

    #[test]
    fn every_word_comes_back_from_its_number() {
        let units = (0..).map_while(Unit::from_number).map(Word::Unit);
        let sides = TrimSide::ALL.into_iter().map(Word::Trim);
        let operators = (0..).map_while(Operator::from_number).map(|op| Word::Operator(op, 4));
        let words: Vec<Word> =
            units.chain(sides).chain(operators).chain((0..=6).map(Word::Scale)).chain([Word::None]).collect();
        assert!(words.len() > 40);
        for word in words {
            let (function, ty) = (arithmetic::function(Operator::Add), Type::integer());
            let call = Call { function, arguments: Vec::new(), collation: ty.collation, ty, extra: word.into() };
            assert_eq!(Word::of(&call), word);
        }
    }
}
