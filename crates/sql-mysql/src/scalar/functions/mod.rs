//! The table of functions, one row for each, concatenated from the modules below.
//!
//! A row says the names, how many arguments, how the result's type comes about, and which Rust function does it. The implementation reads its arguments through `Args`, which
//! converts them as MySQL does; so a row is all there is to add a function.

mod bloom;
pub mod control;
pub mod crypt;
mod date;
pub mod digest;
pub mod encode;
pub mod entry;
mod info;
mod json;
mod numeric;
mod regexp;
mod string;
mod user_locks;

pub use date::named_format;
pub use numeric::crc32_of;

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::scalar::functions::entry::FunctionEntry;
use crate::scalar::temporal::Unit;
use crate::types::Type;
use query::nodes::expr::Expr;

static PARTS: [&[FunctionEntry]; 11] = [
    bloom::FUNCTIONS,
    control::FUNCTIONS,
    string::FUNCTIONS,
    regexp::FUNCTIONS,
    numeric::FUNCTIONS,
    date::FUNCTIONS,
    json::FUNCTIONS,
    encode::FUNCTIONS,
    crypt::FUNCTIONS,
    info::FUNCTIONS,
    user_locks::FUNCTIONS,
];

static BY_NAME: LazyLock<HashMap<&'static str, &'static FunctionEntry>> = LazyLock::new(|| {
    let named = all().flat_map(|entry| entry.function.names.iter().map(move |name| (*name, entry)));
    named.collect()
});

/// Iterates over all rows.
pub fn all() -> impl Iterator<Item = &'static FunctionEntry> {
    PARTS.iter().flat_map(|part| part.iter())
}

/// Returns the row of that name, in any case.
pub fn find(name: &str) -> Option<&'static FunctionEntry> {
    BY_NAME.get(name).or_else(|| BY_NAME.get(name.to_ascii_lowercase().as_str())).copied()
}

/// Returns whether the argument may be the number of fractional digits, as in NOW(6).
pub fn takes_scale(function: &FunctionEntry) -> bool {
    date::takes_scale(function.name())
}

/// Returns the type of a call with a unit: adding hours to a date yields a datetime.
pub fn type_with_unit(function: &FunctionEntry, arguments: &[Expr], unit: Unit, ty: Type) -> Type {
    date::type_with_unit(function.name(), arguments, unit, ty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::settings::Settings;

    #[test]
    fn every_name_is_there_once_and_in_lower_case() {
        let names: Vec<&str> = all().flat_map(|function| function.function.names.iter().copied()).collect();
        assert_eq!(names.len(), BY_NAME.len());
        assert!(names.iter().all(|name| name.to_ascii_lowercase() == **name));
        assert!(find("CONCAT").is_some());
        assert!(find("no_such_function").is_none());
    }

    #[test]
    fn every_row_can_tell_its_type() {
        let settings = Settings::default();
        for function in all().filter(|function| function.arity.min > 0) {
            let arguments = vec![Expr::null(); function.arity.min];
            assert!(function.result_type(&arguments, &settings).is_ok(), "{}", function.name());
        }
    }
}
