//! The options of COPY, with PostgreSQL's checks.

use syntax::postgres::tree::{DefArg, DefElem, Ident};

use crate::error::{PgError, Result, state};
use crate::session::is_on;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyFormat {
    Text,
    Csv,
    Binary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    No,
    Yes,
    /// The names of the header must be those of the columns.
    Match,
}

/// The columns that an option names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Columns {
    None,
    All,
    Some(Vec<String>),
}

impl Columns {
    pub fn has(&self, name: &str) -> bool {
        match self {
            Columns::None => false,
            Columns::All => true,
            Columns::Some(names) => names.iter().any(|known| known == name),
        }
    }

    fn is_some(&self) -> bool {
        *self != Columns::None
    }
}

#[derive(Clone, Debug)]
pub struct CopyOptions {
    pub format: CopyFormat,
    pub header: Header,
    pub delimiter: u8,
    pub null: String,
    /// The text that stands for the column's default.
    pub default: Option<String>,
    pub quote: u8,
    pub escape: u8,
    pub force_quote: Columns,
    pub force_not_null: Columns,
    pub force_null: Columns,
}

fn error(state: &'static str, message: impl Into<String>) -> PgError {
    PgError::new(state, message)
}

fn unsupported(message: impl Into<String>) -> PgError {
    error(state::FEATURE_NOT_SUPPORTED, message)
}

/// The text of an option's value.
fn text_of(option: &DefElem) -> Result<String> {
    Ok(match &option.value {
        Some(DefArg::String(text) | DefArg::Keyword(text) | DefArg::Float(text)) => text.clone(),
        Some(DefArg::Integer(number)) => number.to_string(),
        Some(DefArg::Bool(is_on)) => if *is_on { "true" } else { "false" }.to_owned(),
        Some(DefArg::Type(ty)) => ty.name.last().to_owned(),
        Some(DefArg::Name(name)) => name.last().to_owned(),
        _ => return Err(error(state::SYNTAX_ERROR, format!("{} requires a parameter", option.name))),
    })
}

fn columns_of(option: &DefElem) -> Result<Columns> {
    let name = |item: &DefArg| match item {
        DefArg::String(name) => Some(name.clone()),
        DefArg::Name(name) => Some(name.last().to_owned()),
        DefArg::Type(ty) => Some(ty.name.last().to_owned()),
        _ => None,
    };
    match &option.value {
        Some(DefArg::Star) => Ok(Columns::All),
        Some(DefArg::List(items)) => Ok(Columns::Some(items.iter().filter_map(name).collect())),
        _ => {
            let message = format!("argument to option \"{}\" must be a list of column names", option.name);
            Err(error(state::INVALID_PARAMETER_VALUE, message))
        }
    }
}

fn header_of(option: &DefElem, is_from: bool) -> Result<Header> {
    let text = match &option.value {
        None => return Ok(Header::Yes),
        Some(DefArg::Integer(0)) => return Ok(Header::No),
        Some(DefArg::Integer(1)) => return Ok(Header::Yes),
        _ => text_of(option)?,
    };
    match text.to_ascii_lowercase().as_str() {
        "true" | "on" => Ok(Header::Yes),
        "false" | "off" => Ok(Header::No),
        "match" if is_from => Ok(Header::Match),
        "match" => Err(unsupported("cannot use \"match\" with HEADER in COPY TO")),
        _ => Err(error(state::SYNTAX_ERROR, "header requires a Boolean value or \"match\"")),
    }
}

/// The options as they are written, before those that depend on each other are checked.
#[derive(Default)]
struct Given {
    format: Option<CopyFormat>,
    header: Option<Header>,
    delimiter: Option<String>,
    null: Option<String>,
    default: Option<String>,
    quote: Option<String>,
    escape: Option<String>,
}

impl CopyOptions {
    /// Reads the options. `text` is the statement's, for positions.
    pub fn read(options: &[DefElem], is_from: bool, text: &str) -> Result<CopyOptions> {
        let mut given = Given::default();
        let (mut force_quote, mut force_not_null, mut force_null) = (Columns::None, Columns::None, Columns::None);
        for (nth, option) in options.iter().enumerate() {
            let at = option.at.0 as usize;
            if options[..nth].iter().any(|other| other.name == option.name) {
                return Err(error(state::SYNTAX_ERROR, "conflicting or redundant options").at(text, at));
            }
            match &*option.name {
                "format" => {
                    let name = text_of(option)?;
                    given.format = Some(match &*name {
                        "text" => CopyFormat::Text,
                        "csv" => CopyFormat::Csv,
                        "binary" => CopyFormat::Binary,
                        _ => {
                            let message = format!("COPY format \"{name}\" not recognized");
                            return Err(error(state::INVALID_PARAMETER_VALUE, message).at(text, at));
                        }
                    });
                }
                // Rows have no state that freezing could change.
                "freeze" => drop(is_on(option)),
                "delimiter" => given.delimiter = Some(text_of(option)?),
                "null" => given.null = Some(text_of(option)?),
                "default" => given.default = Some(text_of(option)?),
                "header" => given.header = Some(header_of(option, is_from)?),
                "quote" => given.quote = Some(text_of(option)?),
                "escape" => given.escape = Some(text_of(option)?),
                "force_quote" => force_quote = columns_of(option)?,
                "force_not_null" => force_not_null = columns_of(option)?,
                "force_null" => force_null = columns_of(option)?,
                "encoding" => check_encoding(option, text)?,
                name => {
                    return Err(error(state::SYNTAX_ERROR, format!("option \"{name}\" not recognized")).at(text, at));
                }
            }
        }
        let forced = [&force_quote, &force_not_null, &force_null].map(Columns::is_some);
        let mut options = given.check(is_from, forced)?;
        (options.force_quote, options.force_not_null, options.force_null) = (force_quote, force_not_null, force_null);
        Ok(options)
    }

    /// Fails for a column of an option that is not copied.
    pub fn check_columns(&self, columns: &[String]) -> Result<()> {
        for (what, listed) in [
            ("FORCE_QUOTE", &self.force_quote),
            ("FORCE_NOT_NULL", &self.force_not_null),
            ("FORCE_NULL", &self.force_null),
        ] {
            let Columns::Some(names) = listed else { continue };
            if let Some(name) = names.iter().find(|name| !columns.contains(name)) {
                let message = format!("{what} column \"{name}\" not referenced by COPY");
                return Err(error(state::INVALID_COLUMN_REFERENCE, message));
            }
        }
        Ok(())
    }
}

fn check_encoding(option: &DefElem, text: &str) -> Result<()> {
    let name: String = text_of(option)?.chars().filter(char::is_ascii_alphanumeric).collect();
    match name.to_ascii_lowercase().as_str() {
        "utf8" | "unicode" | "sqlascii" => Ok(()),
        "latin1" | "win1252" | "iso88591" => Err(PgError::unsupported(format!("COPY with encoding {name}"))),
        _ => {
            let message = "argument to option \"encoding\" must be a valid encoding name";
            Err(error(state::INVALID_PARAMETER_VALUE, message).at(text, option.at.0 as usize))
        }
    }
}

fn single_byte(text: &str, what: &str) -> Result<u8> {
    match text.as_bytes() {
        [byte] => Ok(*byte),
        _ => Err(unsupported(format!("COPY {what} must be a single one-byte character"))),
    }
}

impl Given {
    /// Fills in the defaults of the format and checks what depends on it.
    fn check(self, is_from: bool, [force_quote, force_not_null, force_null]: [bool; 3]) -> Result<CopyOptions> {
        let format = self.format.unwrap_or(CopyFormat::Text);
        let (is_csv, is_binary) = (format == CopyFormat::Csv, format == CopyFormat::Binary);
        if is_binary {
            let given = [
                ("DELIMITER", self.delimiter.is_some()),
                ("NULL", self.null.is_some()),
                ("DEFAULT", self.default.is_some()),
            ];
            if let Some((name, _)) = given.iter().find(|(_, is_given)| *is_given) {
                return Err(error(state::SYNTAX_ERROR, format!("cannot specify {name} in BINARY mode")));
            }
        }
        let delimiter = self.delimiter.unwrap_or_else(|| if is_csv { "," } else { "\t" }.to_owned());
        let null = self.null.unwrap_or_else(|| if is_csv { "" } else { "\\N" }.to_owned());
        let delimiter = single_byte(&delimiter, "delimiter")?;
        if matches!(delimiter, b'\n' | b'\r') {
            let message = "COPY delimiter cannot be newline or carriage return";
            return Err(error(state::INVALID_PARAMETER_VALUE, message));
        }
        if null.contains(['\n', '\r']) {
            let message = "COPY null representation cannot use newline or carriage return";
            return Err(error(state::INVALID_PARAMETER_VALUE, message));
        }
        if self.default.as_ref().is_some_and(|default| default.contains(['\n', '\r'])) {
            let message = "COPY default representation cannot use newline or carriage return";
            return Err(error(state::INVALID_PARAMETER_VALUE, message));
        }
        if !is_csv && b"\\.abcdefghijklmnopqrstuvwxyz0123456789".contains(&delimiter) {
            let message = format!("COPY delimiter cannot be \"{}\"", delimiter as char);
            return Err(error(state::INVALID_PARAMETER_VALUE, message));
        }
        let header = self.header.unwrap_or(Header::No);
        if is_binary && header != Header::No {
            return Err(unsupported("cannot specify HEADER in BINARY mode"));
        }
        for (name, given) in [("quote", &self.quote), ("escape", &self.escape)] {
            if !is_csv && given.is_some() {
                return Err(unsupported(format!("COPY {name} available only in CSV mode")));
            }
        }
        let quote = single_byte(self.quote.as_deref().unwrap_or("\""), "quote")?;
        if is_csv && delimiter == quote {
            return Err(error(state::INVALID_PARAMETER_VALUE, "COPY delimiter and quote must be different"));
        }
        let escape = match &self.escape {
            Some(escape) => single_byte(escape, "escape")?,
            None => quote,
        };
        for (name, is_given, only) in [
            ("force quote", force_quote, (!is_from, "TO")),
            ("force not null", force_not_null, (is_from, "FROM")),
            ("force null", force_null, (is_from, "FROM")),
        ] {
            if is_given && !is_csv {
                return Err(unsupported(format!("COPY {name} available only in CSV mode")));
            }
            if is_given && !only.0 {
                return Err(unsupported(format!("COPY {name} only available using COPY {}", only.1)));
            }
        }
        if null.as_bytes().contains(&delimiter) {
            return Err(unsupported("COPY delimiter must not appear in the NULL specification"));
        }
        if is_csv && null.as_bytes().contains(&quote) {
            return Err(unsupported("CSV quote character must not appear in the NULL specification"));
        }
        if let Some(default) = &self.default {
            if !is_from {
                return Err(unsupported("COPY DEFAULT only available using COPY FROM"));
            }
            if default.as_bytes().contains(&delimiter) {
                return Err(unsupported("COPY delimiter must not appear in the DEFAULT specification"));
            }
            if is_csv && default.as_bytes().contains(&quote) {
                return Err(unsupported("CSV quote character must not appear in the DEFAULT specification"));
            }
            if *default == null {
                return Err(unsupported("NULL specification and DEFAULT specification cannot be the same"));
            }
        }
        let default = self.default;
        let none = Columns::None;
        Ok(CopyOptions {
            format,
            header,
            delimiter,
            null,
            default,
            quote,
            escape,
            force_quote: none.clone(),
            force_not_null: none.clone(),
            force_null: none,
        })
    }
}

/// Returns the names of a list of columns.
pub fn names(columns: &[Ident]) -> Vec<String> {
    columns.iter().map(|column| column.value.clone()).collect()
}
