//! ALTER TABLE and ALTER DATABASE: the parser's operations, and around them what it does not know.

use sqlparser::ast;
use sqlparser::tokenizer::Token;

use crate::error::{Result, SqlError};
use crate::parse::cursor::Cursor;
use crate::parse::statement::{Alteration, Statement};

impl Cursor<'_> {
    pub fn alter(&mut self) -> Result<Statement> {
        self.expect("alter")?;
        if self.word("database") || self.word("schema") {
            let is_option = ["default", "character", "charset", "collate"].iter().any(|word| self.peek_word(0, word));
            let name = if is_option { None } else { Some(self.identifier()?) };
            let (charset, collation) = self.database_options()?;
            return Ok(Statement::AlterDatabase { name, charset, collation });
        }
        if ["algorithm", "definer", "sql", "view"].iter().any(|word| self.peek_word(0, word)) {
            return self.view(true);
        }
        if self.word("user") {
            return self.alter_user();
        }
        if !self.word("table") {
            let what = self.identifier()?.to_uppercase();
            return Err(SqlError::unsupported(format!("ALTER {what}")));
        }
        let table = self.name()?;
        let mut operations = Vec::new();
        while !self.at_end() {
            self.alteration(&mut operations)?;
            if !self.take(&Token::Comma) && !self.at_end() && !self.begins_option() {
                return Err(self.error_here());
            }
        }
        Ok(Statement::AlterTable { table, operations })
    }

    /// Table options may follow one another without a comma.
    fn begins_option(&self) -> bool {
        [
            "engine",
            "comment",
            "row_format",
            "auto_increment",
            "default",
            "character",
            "charset",
            "collate",
            "key_block_size",
        ]
        .iter()
        .any(|word| self.peek_word(0, word))
    }

    fn alteration(&mut self, out: &mut Vec<Alteration>) -> Result<()> {
        if self.word("force") {
            out.push(Alteration::Rebuild);
        } else if self.words(&["disable", "keys"]) || self.words(&["enable", "keys"]) {
            out.push(Alteration::Nothing);
        } else if self.peek_word(0, "algorithm") || self.peek_word(0, "lock") {
            self.algorithm_and_lock()?;
            out.push(Alteration::Nothing);
        } else if self.words(&["drop", "check"]) {
            out.push(Alteration::DropCheck(self.identifier()?));
        } else if self.words(&["alter", "check"]) || self.words(&["alter", "constraint"]) {
            let name = self.identifier()?;
            let enforced = !self.word("not");
            self.expect("enforced")?;
            out.push(Alteration::EnforceCheck { name, enforced });
        } else if self.words(&["drop", "key"]) {
            let name = self.parsed(|parser| parser.parse_identifier())?;
            out.push(Alteration::Parsed(Box::new(ast::AlterTableOperation::DropIndex { name })));
        } else if self.words(&["order", "by"]) {
            return Err(SqlError::unsupported("ALTER TABLE ... ORDER BY"));
        } else if self.words(&["alter", "index"]) {
            let name = self.identifier()?;
            let visible = self.word("visible");
            if !visible {
                self.expect("invisible")?;
            }
            out.push(Alteration::IndexVisible { name, visible });
        } else if self.words(&["rename", "index"]) || self.words(&["rename", "key"]) {
            let from = self.identifier()?;
            self.expect("to")?;
            out.push(Alteration::RenameIndex { from, to: self.identifier()? });
        } else if self.peek_word(0, "rename") && !self.peek_word(1, "column") {
            self.word("rename");
            let _ = self.word("to") || self.word("as") || self.take(&Token::Eq);
            out.push(Alteration::RenameTable(self.name()?));
        } else if self.words(&["convert", "to"]) {
            if !self.words(&["character", "set"]) {
                self.expect("charset")?;
            }
            self.charset(true, out)?;
        } else if self.words(&["default", "character", "set"])
            || self.words(&["character", "set"])
            || self.words(&["default", "charset"])
            || self.word("charset")
        {
            self.charset(false, out)?;
        } else if self.word("collate") || self.words(&["default", "collate"]) {
            self.take(&Token::Eq);
            let value = Box::new(ast::Expr::value(ast::Value::SingleQuotedString(self.text_or_name()?)));
            out.push(Alteration::Option { name: "collate".to_owned(), value });
        } else if self.peek_word(0, "add") && self.parser.peek_nth_token_ref(1).token == Token::LParen
            || self.peek_word(0, "add")
                && self.peek_word(1, "column")
                && self.parser.peek_nth_token_ref(2).token == Token::LParen
        {
            self.added_columns(out)?;
        } else if [
            "engine",
            "comment",
            "row_format",
            "auto_increment",
            "key_block_size",
            "stats_persistent",
            "avg_row_length",
            "max_rows",
        ]
        .iter()
        .any(|word| self.peek_word(0, word))
        {
            let name = self.identifier()?.to_ascii_lowercase();
            self.take(&Token::Eq);
            let value = match &self.parser.peek_token_ref().token {
                Token::Word(word) => {
                    let value = ast::Expr::value(ast::Value::SingleQuotedString(word.value.clone()));
                    self.parser.next_token();
                    value
                }
                _ => self.expression()?,
            };
            out.push(Alteration::Option { name, value: Box::new(value) });
        } else {
            let operation = self.parsed(|parser| parser.parse_alter_table_operation())?;
            out.push(Alteration::Parsed(Box::new(operation)));
        }
        Ok(())
    }

    /// ADD [COLUMN] (a ..., b ...).
    fn added_columns(&mut self, out: &mut Vec<Alteration>) -> Result<()> {
        self.expect("add")?;
        self.word("column");
        self.expect_token(&Token::LParen)?;
        loop {
            let column_def = self.parsed(|parser| parser.parse_column_def())?;
            out.push(Alteration::Parsed(Box::new(ast::AlterTableOperation::AddColumn {
                column_keyword: true,
                if_not_exists: false,
                column_def,
                column_position: None,
            })));
            if !self.take(&Token::Comma) {
                return self.expect_token(&Token::RParen);
            }
        }
    }

    fn charset(&mut self, convert: bool, out: &mut Vec<Alteration>) -> Result<()> {
        self.take(&Token::Eq);
        let charset = self.text_or_name()?;
        let collation = if self.word("collate") {
            self.take(&Token::Eq);
            Some(self.text_or_name()?)
        } else {
            None
        };
        out.push(Alteration::Charset { convert, charset, collation });
        Ok(())
    }
}
