//! Character sets and collations by the names that statements give them.

use crate::types::{Charset, CharsetName as _, Collation, CollationName as _};

use crate::error::{self, SqlError};

/// Returns the collation of that name in any case. Error 1273 if there is none.
pub fn collation(name: &str) -> Result<Collation, SqlError> {
    Collation::by_name(name).ok_or_else(|| error::UNKNOWN_COLLATION.with(&[&name]))
}

/// Returns the character set of that name in any case. Error 1115 if there is none.
pub fn charset(name: &str) -> Result<Charset, SqlError> {
    Charset::by_name(name).ok_or_else(|| error::UNKNOWN_CHARACTER_SET.with(&[&name]))
}

/// Returns the character set of a file. Its separators are bytes, so that a set whose ASCII characters take several is error 1235.
pub fn file_charset(name: &str) -> Result<Charset, SqlError> {
    let charset = charset(name)?;
    match charset.min_bytes() {
        1 => Ok(charset),
        _ => Err(error::not_supported(format!("a file in CHARACTER SET {}", charset.name())).into()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_that_are_not_known_are_errors() {
        assert_eq!(super::collation("nope").expect_err("unknown").code, 1273);
        assert_eq!(super::charset("tis620").expect_err("Thai").code, 1115);
    }
}
