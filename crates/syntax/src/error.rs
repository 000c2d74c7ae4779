//! Errors of reading a text, with their position.

/// An error and the byte of the text where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub problem: Problem,
    pub at: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The text does not follow the grammar (1064).
    Syntax,
    /// Nothing but space (1065).
    Empty,
    /// More nested constructs than [`crate::tree::HEIGHT_MAX`] (1436).
    TooDeep,
    /// More SELECTs within each other than [`crate::tree::BLOCKS_MAX`] (1473).
    TooManyBlocks,
    /// More tokens than [`crate::tree::TOKENS_MAX`].
    TooManyTokens,
    /// Parsing was cancelled (1317).
    Cancelled,
    /// More than 65,535 parameters (1390).
    TooManyParameters,
    /// Grammar that is known and refused by name (SY-9).
    Unsupported(String),
    /// A number with an exponent beyond a double's range (1367).
    IllegalDouble(String),
    /// An alias of a function's argument (1583).
    AliasedArgument(String),
    /// A variable of a stored program, which this is none of (1327).
    UndeclaredVariable(String),
    /// Two clauses that exclude each other (1221).
    WrongUsage(&'static str, &'static str),
    /// A separator of LOAD DATA that must be one character (1083).
    FieldTerminators,
    /// A word that is no ALGORITHM of ALTER TABLE (1800).
    UnknownAlgorithm(String),
    /// A word that is no LOCK of ALTER TABLE (1801).
    UnknownLock(String),
    /// A number outside its range: what it is, and of which statement (1690).
    OutOfRange(&'static str, &'static str),
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Returns the rest of the text from the error on, at most 80 characters, and the number of its line, as error 1064 shows them.
    pub fn near<'t>(&self, text: &'t str) -> (&'t str, usize) {
        let mut at = self.at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let rest = &text[at..];
        let end = rest.char_indices().nth(80).map_or(rest.len(), |(end, _)| end);
        (&rest[..end], text[..at].bytes().filter(|byte| *byte == b'\n').count() + 1)
    }
}
