//! SET: variables of the session, of the server, of the user; NAMES; TRANSACTION.

use sqlparser::ast;
use sqlparser::tokenizer::Token;

use crate::error::{Result, SqlError};
use crate::parse::cursor::Cursor;
use crate::parse::statement::{Scope, Setting, Statement};

/// Variables that a single transaction can have another value of.
const TRANSACTION: [&str; 3] = ["transaction_isolation", "transaction_read_only", "tx_isolation"];

impl Cursor<'_> {
    pub fn set(&mut self) -> Result<Statement> {
        self.expect("set")?;
        if let Some(statement) = self.set_account()? {
            return Ok(statement);
        }
        let mut settings = Vec::new();
        loop {
            self.setting(&mut settings)?;
            if !self.take(&Token::Comma) {
                return Ok(Statement::Set(settings));
            }
        }
    }

    /// RESET PERSIST [[IF EXISTS] name]: nothing else can be reset.
    pub fn reset(&mut self) -> Result<Statement> {
        self.expect("reset")?;
        if !self.word("persist") {
            let what = self.identifier()?.to_uppercase();
            return Err(SqlError::unsupported(format!("RESET {what}")));
        }
        let if_exists = self.if_exists();
        if self.at_end() && !if_exists {
            return Ok(Statement::ResetPersist { name: None, if_exists });
        }
        let name = self.text_or_name()?.to_ascii_lowercase();
        Ok(Statement::ResetPersist { name: Some(name), if_exists })
    }

    fn setting(&mut self, out: &mut Vec<Setting>) -> Result<()> {
        if ["role", "resource"].iter().any(|word| self.peek_word(0, word) && !self.is_assignment(1)) {
            let what = self.identifier()?.to_uppercase();
            return Err(SqlError::unsupported(format!("SET {what}")));
        }
        if self.word("names") || self.word("charset") || self.words(&["character", "set"]) {
            if self.word("default") {
                out.push(Setting::Names { charset: None, collation: None });
                return Ok(());
            }
            let charset = Some(self.text_or_name()?);
            let collation = if self.word("collate") { Some(self.text_or_name()?) } else { None };
            out.push(Setting::Names { charset, collation });
            return Ok(());
        }
        let mut scope = None;
        if !self.is_assignment(1) {
            if self.word("session") || self.word("local") {
                scope = Some(Scope::Session);
            } else if self.word("global") {
                scope = Some(Scope::Global);
            } else if self.word("persist") {
                scope = Some(Scope::Persist);
            } else if self.word("persist_only") {
                return Err(SqlError::unsupported("SET PERSIST_ONLY"));
            }
        }
        if self.peek_word(0, "transaction") && !self.is_assignment(1) {
            self.word("transaction");
            return self.transaction_setting(scope.unwrap_or(Scope::Next), out);
        }
        self.assignment(scope, out)
    }

    fn is_assignment(&self, nth: usize) -> bool {
        matches!(self.parser.peek_nth_token_ref(nth).token, Token::Eq | Token::Assignment)
    }

    fn transaction_setting(&mut self, scope: Scope, out: &mut Vec<Setting>) -> Result<()> {
        loop {
            if self.words(&["isolation", "level"]) {
                let mut level = self.identifier()?.to_ascii_uppercase();
                if matches!(level.as_str(), "READ" | "REPEATABLE") {
                    level = format!("{level}-{}", self.identifier()?.to_ascii_uppercase());
                }
                if !["READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"].contains(&level.as_str())
                {
                    return Err(self.error_here());
                }
                out.push(Setting::Isolation { scope, level });
            } else if self.words(&["read", "only"]) {
                out.push(Setting::Access { scope, read_only: true });
            } else if self.words(&["read", "write"]) {
                out.push(Setting::Access { scope, read_only: false });
            } else {
                return Err(self.error_here());
            }
            if !self.take(&Token::Comma) {
                return Ok(());
            }
        }
    }

    fn assignment(&mut self, scope: Option<Scope>, out: &mut Vec<Setting>) -> Result<()> {
        let mut name = match self.parser.peek_token_ref().token {
            // `@'quoted'` and `@"quoted"` come as a sign and a text.
            Token::AtSign => {
                self.parser.next_token();
                format!("@{}", self.text_or_name()?)
            }
            _ => self.identifier()?,
        };
        while self.take(&Token::Period) {
            name = format!("{name}.{}", self.identifier()?);
        }
        if !self.take(&Token::Eq) && !self.take(&Token::Assignment) {
            return Err(self.error_here());
        }
        if let Some(user) = name.strip_prefix('@').filter(|rest| !rest.starts_with('@')) {
            out.push(Setting::User { name: user.to_ascii_lowercase(), value: self.expression()? });
            return Ok(());
        }
        let is_bare = name.starts_with("@@");
        let (prefix, name) = scoped(&name);
        // `@@x` without a scope is the next transaction's.
        let is_next = is_bare && TRANSACTION.contains(&&*name);
        let scope = scope.or(prefix).unwrap_or(if is_next { Scope::Next } else { Scope::Session });
        let next_is_end =
            matches!(self.parser.peek_nth_token_ref(1).token, Token::EOF | Token::SemiColon | Token::Comma);
        if next_is_end && self.word("default") {
            out.push(Setting::Default { scope, name });
            return Ok(());
        }
        // ON, BINARY and their like are words here, not operators.
        let value = match &self.parser.peek_token_ref().token {
            Token::Word(word) if next_is_end && !word.value.starts_with('@') => {
                let quoted = ast::Value::SingleQuotedString(word.value.clone());
                let is_literal = ["true", "false", "null"].iter().any(|known| word.value.eq_ignore_ascii_case(known));
                if is_literal {
                    self.expression()?
                } else {
                    self.parser.next_token();
                    ast::Expr::value(quoted)
                }
            }
            _ => self.expression()?,
        };
        out.push(Setting::System { scope, name, value });
        Ok(())
    }
}

/// `@@global.x` as scope and name.
pub fn scoped(name: &str) -> (Option<Scope>, String) {
    let name = name.trim_start_matches("@@").to_ascii_lowercase();
    for (prefix, scope) in [
        ("session.", Scope::Session),
        ("local.", Scope::Session),
        ("global.", Scope::Global),
        ("persist.", Scope::Persist),
    ] {
        if let Some(rest) = name.strip_prefix(prefix) {
            return (Some(scope), rest.to_owned());
        }
    }
    (None, name)
}
