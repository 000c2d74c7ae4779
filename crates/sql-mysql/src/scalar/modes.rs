//! `sql_mode`: a set of flags with names.

use datum::temporal::Rounding;

use crate::error;
use datum::Result;

/// The session's `sql_mode`: a set of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SqlMode(u64);

macro_rules! modes {
    ($($name:ident $bit:literal;)*) => {
        impl SqlMode {
            $(pub const $name: SqlMode = SqlMode(1 << $bit);)*
            const NAMES: &[(&'static str, SqlMode)] = &[$((stringify!($name), SqlMode::$name)),*];
        }
    };
}

// The bits are MySQL's: a number is accepted for `sql_mode` too.
modes! {
    REAL_AS_FLOAT 0;
    PIPES_AS_CONCAT 1;
    ANSI_QUOTES 2;
    IGNORE_SPACE 3;
    ONLY_FULL_GROUP_BY 5;
    NO_UNSIGNED_SUBTRACTION 6;
    NO_DIR_IN_CREATE 7;
    ANSI 18;
    NO_AUTO_VALUE_ON_ZERO 19;
    NO_BACKSLASH_ESCAPES 20;
    STRICT_TRANS_TABLES 21;
    STRICT_ALL_TABLES 22;
    NO_ZERO_IN_DATE 23;
    NO_ZERO_DATE 24;
    ALLOW_INVALID_DATES 25;
    ERROR_FOR_DIVISION_BY_ZERO 26;
    TRADITIONAL 27;
    HIGH_NOT_PRECEDENCE 29;
    NO_ENGINE_SUBSTITUTION 30;
    PAD_CHAR_TO_FULL_LENGTH 31;
    TIME_TRUNCATE_FRACTIONAL 32;
}

impl SqlMode {
    pub const NONE: SqlMode = SqlMode(0);
    pub const DEFAULT: SqlMode = SqlMode(
        Self::ONLY_FULL_GROUP_BY.0
            | Self::STRICT_TRANS_TABLES.0
            | Self::NO_ZERO_IN_DATE.0
            | Self::NO_ZERO_DATE.0
            | Self::ERROR_FOR_DIVISION_BY_ZERO.0
            | Self::NO_ENGINE_SUBSTITUTION.0,
    );

    /// How fractions of a second that a type cannot hold are dropped.
    pub fn rounding(self) -> Rounding {
        if self.has(SqlMode::TIME_TRUNCATE_FRACTIONAL) { Rounding::Truncate } else { Rounding::Nearest }
    }

    pub fn has(self, mode: SqlMode) -> bool {
        self.0 & mode.0 == mode.0
    }

    #[must_use]
    pub fn with(self, mode: SqlMode) -> SqlMode {
        SqlMode(self.0 | mode.0)
    }

    #[must_use]
    pub fn without(self, mode: SqlMode) -> SqlMode {
        SqlMode(self.0 & !mode.0)
    }

    pub fn is_strict(self) -> bool {
        self.has(Self::STRICT_TRANS_TABLES) || self.has(Self::STRICT_ALL_TABLES)
    }

    pub fn bits(self) -> u64 {
        self.0
    }

    /// From names with commas between them; error 1231.
    pub fn parse(text: &str) -> Result<SqlMode> {
        let mut mode = SqlMode::NONE;
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let found = Self::NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            let (_, found) = found.ok_or_else(|| error::WRONG_VALUE_FOR_VAR.raise(&[&"sql_mode", &name]))?;
            mode = mode.with(found.expanded());
        }
        Ok(mode)
    }

    /// The names of combinations.
    fn expanded(self) -> SqlMode {
        match self {
            Self::ANSI => self
                .with(Self::REAL_AS_FLOAT)
                .with(Self::PIPES_AS_CONCAT)
                .with(Self::ANSI_QUOTES)
                .with(Self::IGNORE_SPACE)
                .with(Self::ONLY_FULL_GROUP_BY),
            Self::TRADITIONAL => self
                .with(Self::STRICT_TRANS_TABLES)
                .with(Self::STRICT_ALL_TABLES)
                .with(Self::NO_ZERO_IN_DATE)
                .with(Self::NO_ZERO_DATE)
                .with(Self::ERROR_FOR_DIVISION_BY_ZERO)
                .with(Self::NO_ENGINE_SUBSTITUTION),
            mode => mode,
        }
    }
}

impl std::fmt::Display for SqlMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = Self::NAMES.iter().filter(|(_, mode)| self.has(*mode)).map(|(name, _)| *name).collect();
        f.write_str(&names.join(","))
    }
}
