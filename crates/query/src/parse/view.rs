//! CREATE, ALTER and DROP VIEW. The query is kept as text; it is cut out of the statement as it stands there.

use sqlparser::ast;
use sqlparser::tokenizer::{Span, Token};

use crate::catalog::view::{Algorithm, CheckOption};
use crate::error::{Result, SqlError};
use crate::parse::account::UserName;
use crate::parse::cursor::Cursor;
use crate::parse::statement::{Name, Statement};
use crate::scalar::SqlMode;

#[derive(Clone, Debug)]
pub struct CreateView {
    pub or_replace: bool,
    /// ALTER VIEW.
    pub alter: bool,
    pub algorithm: Algorithm,
    pub definer: Option<UserName>,
    pub invoker: bool,
    pub name: Name,
    pub columns: Vec<String>,
    pub text: String,
    pub check: CheckOption,
}

/// Where a place of the parser lies in the text.
pub fn offset(text: &str, line: u64, column: u64) -> Option<usize> {
    let start = match line {
        0 => return None,
        1 => 0,
        line => text.match_indices('\n').nth(line as usize - 2)?.0 + 1,
    };
    let rest = &text[start..];
    Some(start + rest.char_indices().nth((column as usize).checked_sub(1)?).map_or(rest.len(), |(at, _)| at))
}

pub fn range(text: &str, span: Span) -> Option<std::ops::Range<usize>> {
    let (start, end) = (span.start, span.end);
    Some(offset(text, start.line, start.column)?..offset(text, end.line, end.column)?)
}

/// The text of a view as a query.
pub fn query(text: &str, mode: SqlMode) -> Result<(Box<ast::Query>, Vec<String>, usize)> {
    let parsed = crate::parse::parse(text, mode)?;
    match parsed.statement {
        Statement::Query(query) => Ok((query, parsed.names, parsed.parameters)),
        _ => Err(SqlError::parse(format!("'{text}' at line 1"))),
    }
}

impl Cursor<'_> {
    /// Is this CREATE ... VIEW, whatever stands in between?
    pub fn is_create_view(&self) -> bool {
        ["or", "view", "algorithm", "definer", "sql"].iter().any(|word| self.peek_word(1, word))
    }

    /// After CREATE or ALTER.
    pub fn view(&mut self, alter: bool) -> Result<Statement> {
        let or_replace = !alter && self.words(&["or", "replace"]);
        let mut algorithm = Algorithm::Undefined;
        if self.word("algorithm") {
            self.expect_token(&Token::Eq)?;
            algorithm = match self.identifier()?.to_ascii_lowercase().as_str() {
                "undefined" => Algorithm::Undefined,
                "merge" => Algorithm::Merge,
                "temptable" => Algorithm::Temptable,
                _ => return Err(self.error_here()),
            };
        }
        let mut definer = None;
        if self.word("definer") {
            self.expect_token(&Token::Eq)?;
            definer = Some(self.user_name()?);
        }
        let mut invoker = false;
        if self.words(&["sql", "security"]) {
            invoker = self.word("invoker");
            if !invoker {
                self.expect("definer")?;
            }
        }
        if !self.word("view") {
            let what = self.identifier()?.to_uppercase();
            return Err(SqlError::unsupported(format!("CREATE {what}")));
        }
        let name = self.name()?;
        let mut columns = Vec::new();
        if self.take(&Token::LParen) {
            loop {
                columns.push(self.identifier()?);
                if !self.take(&Token::Comma) {
                    break;
                }
            }
            self.expect_token(&Token::RParen)?;
        }
        self.expect("as")?;
        let start = self.here();
        self.parsed(|parser| parser.parse_query())?;
        // To the end of its last token: comments behind it are the statement's, not the query's.
        let last = self.parser.get_current_token().span.end;
        let end = offset(self.text, last.line, last.column).unwrap_or_else(|| self.here());
        let text = self.text[start..end].trim().to_owned();
        let mut check = CheckOption::None;
        if self.word("with") {
            check = if self.word("local") { CheckOption::Local } else { CheckOption::Cascaded };
            self.word("cascaded");
            self.expect("check")?;
            self.expect("option")?;
        }
        let view = CreateView { or_replace, alter, algorithm, definer, invoker, name, columns, text, check };
        Ok(Statement::CreateView(Box::new(view)))
    }

    /// Where the next token begins in the text.
    fn here(&self) -> usize {
        let token = self.parser.peek_token_ref();
        if token.token == Token::EOF {
            return self.text.len();
        }
        offset(self.text, token.span.start.line, token.span.start.column).unwrap_or(self.text.len())
    }
}
