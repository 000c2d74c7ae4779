//! LOAD DATA, and how a file's bytes are cut into records: the words that it shares with SELECT ... INTO OUTFILE.
//!
//! A query's INTO is taken out of its tokens before the parser sees them (`rewrite`), and read here by itself.

use sqlparser::ast;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use crate::error::{self, Result, SqlError};
use crate::parse::cursor::Cursor;
use crate::parse::statement::Name;

/// FIELDS and LINES. Bytes as they are in the statement, escapes resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    pub field_end: Vec<u8>,
    pub enclosed: Option<u8>,
    /// Only values of text types are enclosed when they are written.
    pub optionally: bool,
    pub escape: Option<u8>,
    pub line_start: Vec<u8>,
    pub line_end: Vec<u8>,
}

impl Default for Format {
    fn default() -> Format {
        Format {
            field_end: b"\t".to_vec(),
            enclosed: None,
            optionally: false,
            escape: Some(b'\\'),
            line_start: Vec::new(),
            line_end: b"\n".to_vec(),
        }
    }
}

impl Format {
    /// Is nothing between fields, so that each is as wide as its column?
    pub fn is_fixed(&self) -> bool {
        self.field_end.is_empty() && self.enclosed.is_none()
    }
}

/// What a field of the file becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Into {
    Column(String),
    Variable(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    Fail,
    Ignore,
    Replace,
}

#[derive(Clone, Debug)]
pub struct Load {
    /// The client has the file.
    pub is_local: bool,
    pub file: String,
    pub duplicates: Duplicates,
    pub table: Name,
    pub charset: Option<String>,
    pub format: Format,
    pub skip: u64,
    /// Empty: all columns of the table.
    pub fields: Vec<Into>,
    pub sets: Vec<ast::Assignment>,
}

/// Where SELECT puts its rows.
#[derive(Clone, Debug)]
pub enum Target {
    Variables(Vec<String>),
    /// INTO OUTFILE; without a format INTO DUMPFILE.
    File {
        file: String,
        charset: Option<String>,
        format: Option<Format>,
    },
}

/// Error 1083.
fn one_byte(text: Vec<u8>) -> Result<Option<u8>> {
    match text[..] {
        [] => Ok(None),
        [byte] => Ok(Some(byte)),
        _ => Err(error::WRONG_FIELD_TERMINATORS.bare()),
    }
}

impl Cursor<'_> {
    pub(super) fn load(&mut self) -> Result<crate::parse::statement::Statement> {
        self.expect("load")?;
        for (word, what) in [("xml", "LOAD XML"), ("index", "LOAD INDEX")] {
            if self.peek_word(0, word) {
                return Err(SqlError::unsupported(what));
            }
        }
        self.expect("data")?;
        let _ = self.word("low_priority") || self.word("concurrent");
        let is_local = self.word("local");
        self.expect("infile")?;
        let file = self.string()?;
        let duplicates = match () {
            () if self.word("replace") => Duplicates::Replace,
            () if self.word("ignore") => Duplicates::Ignore,
            () => Duplicates::Fail,
        };
        self.expect("into")?;
        self.expect("table")?;
        let table = self.name()?;
        if self.peek_word(0, "partition") {
            return Err(SqlError::unsupported("PARTITION"));
        }
        let charset = self.file_charset()?;
        let format = self.format()?;
        let skip = self.skipped()?;
        let fields = self.fields()?;
        let mut sets = Vec::new();
        if self.word("set") {
            sets = self.parsed(|parser| parser.parse_comma_separated(Parser::parse_assignment))?;
        }
        let load = Load { is_local, file, duplicates, table, charset, format, skip, fields, sets };
        Ok(crate::parse::statement::Statement::Load(Box::new(load)))
    }

    fn skipped(&mut self) -> Result<u64> {
        if !self.word("ignore") {
            return Ok(0);
        }
        let number = self.parsed(|parser| parser.parse_literal_uint())?;
        if self.word("lines") || self.word("rows") { Ok(number) } else { Err(self.error_here()) }
    }

    fn fields(&mut self) -> Result<Vec<Into>> {
        let mut fields = Vec::new();
        if !self.take(&Token::LParen) || self.take(&Token::RParen) {
            return Ok(fields);
        }
        loop {
            let is_variable = matches!(&self.parser.peek_token_ref().token,
                Token::Word(word) if word.quote_style.is_none() && word.value.starts_with('@'));
            let name = self.identifier()?;
            fields.push(match is_variable {
                true => Into::Variable(name.trim_start_matches('@').to_ascii_lowercase()),
                false => Into::Column(self.behind_points(name)?),
            });
            if !self.take(&Token::Comma) {
                break;
            }
        }
        self.expect_token(&Token::RParen)?;
        Ok(fields)
    }

    /// The last of names with points between them.
    fn behind_points(&mut self, mut name: String) -> Result<String> {
        while self.take(&Token::Period) {
            name = self.identifier()?;
        }
        Ok(name)
    }

    fn file_charset(&mut self) -> Result<Option<String>> {
        if self.words(&["character", "set"]) || self.word("charset") {
            return self.text_or_name().map(Some);
        }
        Ok(None)
    }

    fn string(&mut self) -> Result<String> {
        match &self.parser.peek_token_ref().token {
            Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => {
                let text = text.clone();
                self.parser.next_token();
                Ok(text)
            }
            _ => Err(self.error_here()),
        }
    }

    /// A separator: a text, or bytes as `0x09`, `x'09'`, `0b1001`.
    fn separator(&mut self) -> Result<Vec<u8>> {
        if matches!(&self.parser.peek_token_ref().token, Token::SingleQuotedString(_) | Token::DoubleQuotedString(_)) {
            return self.string().map(String::into_bytes);
        }
        let value = self.parsed(|parser| parser.parse_value())?;
        let bytes = match value.value {
            ast::Value::HexStringLiteral(digits) => {
                let digits = if digits.len() % 2 == 1 { format!("0{digits}") } else { digits };
                let pairs = (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok());
                pairs.collect::<Option<Vec<u8>>>()
            }
            _ => None,
        };
        bytes.ok_or_else(|| self.error_here())
    }

    fn format(&mut self) -> Result<Format> {
        let mut format = Format::default();
        if self.word("fields") || self.word("columns") {
            let mut any = false;
            loop {
                if self.words(&["terminated", "by"]) {
                    format.field_end = self.separator()?;
                } else if self.words(&["optionally", "enclosed", "by"]) {
                    format.optionally = true;
                    format.enclosed = one_byte(self.separator()?)?;
                } else if self.words(&["enclosed", "by"]) {
                    format.enclosed = one_byte(self.separator()?)?;
                } else if self.words(&["escaped", "by"]) {
                    format.escape = one_byte(self.separator()?)?;
                } else if any {
                    break;
                } else {
                    return Err(self.error_here());
                }
                any = true;
            }
        }
        if self.word("lines") {
            let mut any = false;
            loop {
                if self.words(&["terminated", "by"]) {
                    format.line_end = self.separator()?;
                } else if self.words(&["starting", "by"]) {
                    format.line_start = self.separator()?;
                } else if any {
                    break;
                } else {
                    return Err(self.error_here());
                }
                any = true;
            }
        }
        Ok(format)
    }

    /// What stands behind a query's INTO.
    pub(super) fn select_target(&mut self) -> Result<Target> {
        if self.word("dumpfile") {
            return Ok(Target::File { file: self.string()?, charset: None, format: None });
        }
        if self.word("outfile") {
            let (file, charset) = (self.string()?, self.file_charset()?);
            return Ok(Target::File { file, charset, format: Some(self.format()?) });
        }
        let mut names = Vec::new();
        loop {
            match &self.parser.peek_token_ref().token {
                Token::Word(word) if word.quote_style.is_none() && word.value.starts_with('@') => {
                    names.push(word.value.trim_start_matches('@').to_ascii_lowercase());
                    self.parser.next_token();
                }
                _ => return Err(self.error_here()),
            }
            if !self.take(&Token::Comma) {
                return Ok(Target::Variables(names));
            }
        }
    }
}
