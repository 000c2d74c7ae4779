//! The words within a call that are no arguments: the unit of INTERVAL, the side of TRIM, the digits of NOW(6).
//!
//! The tree keeps a word as a number (`nodes::expr::Extra`), which only this file makes and reads.

use crate::nodes::expr::{Call, Extra};
use crate::scalar::temporal::Unit;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    None,
    /// Of INTERVAL, EXTRACT and TIMESTAMPDIFF.
    Unit(Unit),
    /// Digits of a second's fraction: NOW(6).
    Scale(u8),
    Trim(TrimSide),
    /// `div_precision_increment` as it was when an arithmetic operator was bound.
    Increment(u8),
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

impl Word {
    /// Returns the call's word with the text for its messages.
    pub fn with_text(self, text: Box<str>) -> Extra {
        let (tag, value) = match self {
            Word::None => (0, 0),
            Word::Unit(unit) => (1, unit as u8),
            Word::Scale(scale) => (2, scale),
            Word::Trim(side) => (3, side as u8),
            Word::Increment(increment) => (4, increment),
        };
        Extra { word: [tag, value], text }
    }

    pub fn of(call: &Call) -> Word {
        let [tag, value] = call.extra.word;
        match tag {
            1 => Unit::from_number(value).map_or(Word::None, Word::Unit),
            2 => Word::Scale(value),
            3 => TrimSide::ALL.get(usize::from(value)).map_or(Word::None, |side| Word::Trim(*side)),
            4 => Word::Increment(value),
            _ => Word::None,
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
    use crate::nodes::expr::Call;
    use crate::scalar::arithmetic::{self, Operator};
    use crate::types::Type;

    #[test]
    fn every_word_comes_back_from_its_number() {
        let units = (0..).map_while(Unit::from_number).map(Word::Unit);
        let sides = TrimSide::ALL.into_iter().map(Word::Trim);
        let digits = (0..=6).flat_map(|digits| [Word::Scale(digits), Word::Increment(digits)]);
        let words: Vec<Word> = units.chain(sides).chain(digits).chain([Word::None]).collect();
        assert!(words.len() > 30);
        for word in words {
            let (function, ty) = (arithmetic::function(Operator::Add), Type::integer());
            let call = Call { function, arguments: Vec::new(), collation: ty.collation, ty, extra: word.into() };
            assert_eq!(Word::of(&call), word);
        }
    }

    #[test]
    fn operators_find_their_functions() {
        for op in [Operator::Add, Operator::Modulo, Operator::Negate, Operator::ShiftRight] {
            let (function, ty) = (arithmetic::function(op), Type::integer());
            let arguments = vec![crate::nodes::expr::Expr::integer(1); 2];
            let call = Call { function, arguments, collation: ty.collation, ty, extra: Extra::default() };
            assert_eq!(arithmetic::Arithmetic::of(&call).map(|node| node.op), Some(op));
        }
    }
}
