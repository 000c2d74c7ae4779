//! Reads one statement from the tokens: by its first word either the parser's own rule or one of ours.

use sqlparser::ast;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use crate::error::{self, Result, SqlError};
use crate::parse::load::Duplicates;
use crate::parse::statement::{Completion, CreateTable, Histograms, Ignoring, Maintenance, Name, Statement};
use crate::parse::syntax;

pub struct Cursor<'t> {
    pub parser: Parser<'t>,
    pub text: &'t str,
    pub duplicates: Duplicates,
}

impl Cursor<'_> {
    pub fn error_here(&self) -> SqlError {
        let defines = ["create", "alter"]
            .iter()
            .any(|word| self.text.trim_start().get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word)));
        if defines && self.peek_word(0, "partition") && self.peek_word(1, "by") {
            return SqlError::unsupported("PARTITION BY");
        }
        let token = self.parser.peek_token_ref();
        if token.token == Token::EOF {
            return SqlError::parse(format!("'' at line {}", self.text.matches('\n').count() + 1));
        }
        syntax(self.text, token.span.start.line, token.span.start.column)
    }

    /// The parser's answer, or error 1064 where it stopped.
    pub fn parsed<T>(
        &mut self,
        parse: impl FnOnce(&mut Parser<'_>) -> std::result::Result<T, ParserError>,
    ) -> Result<T> {
        match parse(&mut self.parser) {
            Ok(parsed) => Ok(parsed),
            Err(ParserError::RecursionLimitExceeded) => Err(SqlError::unsupported("nesting that deep")),
            Err(_) => {
                // The parser has consumed what it did not like.
                self.parser.prev_token();
                Err(self.error_here())
            }
        }
    }

    /// Is the next token this word? Then it is taken.
    pub fn word(&mut self, word: &str) -> bool {
        let found = self.peek_word(0, word);
        if found {
            self.parser.next_token();
        }
        found
    }

    pub fn peek_word(&self, nth: usize, word: &str) -> bool {
        matches!(&self.parser.peek_nth_token_ref(nth).token,
            Token::Word(found) if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
    }

    pub fn words(&mut self, words: &[&str]) -> bool {
        let found = words.iter().enumerate().all(|(nth, word)| self.peek_word(nth, word));
        if found {
            words.iter().for_each(|_| drop(self.parser.next_token()));
        }
        found
    }

    pub fn expect(&mut self, word: &str) -> Result<()> {
        if self.word(word) { Ok(()) } else { Err(self.error_here()) }
    }

    pub fn take(&mut self, token: &Token) -> bool {
        self.parser.consume_token(token)
    }

    pub fn expect_token(&mut self, token: &Token) -> Result<()> {
        if self.take(token) { Ok(()) } else { Err(self.error_here()) }
    }

    pub fn at_end(&self) -> bool {
        matches!(self.parser.peek_token_ref().token, Token::EOF | Token::SemiColon)
    }

    /// A name, quoted or not.
    pub fn identifier(&mut self) -> Result<String> {
        self.parsed(|parser| parser.parse_identifier()).map(|ident| ident.value)
    }

    /// A name or a quoted text: `utf8mb4`, `'utf8mb4'`, `binary`.
    pub fn text_or_name(&mut self) -> Result<String> {
        match &self.parser.peek_token_ref().token {
            Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => {
                let text = text.clone();
                self.parser.next_token();
                Ok(text)
            }
            _ => self.identifier(),
        }
    }

    pub fn name(&mut self) -> Result<Name> {
        let first = self.identifier()?;
        if self.take(&Token::Period) {
            return Ok(Name { schema: Some(first), name: self.identifier()? });
        }
        Ok(Name { schema: None, name: first })
    }

    pub fn names(&mut self) -> Result<Vec<Name>> {
        let mut names = vec![self.name()?];
        while self.take(&Token::Comma) {
            names.push(self.name()?);
        }
        Ok(names)
    }

    pub fn expression(&mut self) -> Result<ast::Expr> {
        self.parsed(|parser| parser.parse_expr())
    }

    pub fn if_exists(&mut self) -> bool {
        self.words(&["if", "exists"])
    }

    pub fn statement(&mut self) -> Result<Statement> {
        let word = match &self.parser.peek_token_ref().token {
            Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
            Token::LParen => "select".to_owned(),
            _ => return Err(self.error_here()),
        };
        match word.as_str() {
            "select" | "with" | "values" | "table" => Ok(Statement::Query(self.parsed(|parser| parser.parse_query())?)),
            "insert" | "replace" | "update" | "delete" => self.change(),
            "create" => self.create(),
            "drop" => self.drop_object(),
            "alter" => self.alter(),
            "set" => self.set(),
            "show" => self.show(),
            "do" => {
                self.expect("do")?;
                let list = self.parsed(|parser| parser.parse_comma_separated(|parser| parser.parse_expr()))?;
                Ok(Statement::Do(list))
            }
            "truncate" => {
                self.expect("truncate")?;
                self.word("table");
                Ok(Statement::Truncate(self.name()?))
            }
            "rename" => self.rename(),
            "use" => {
                self.expect("use")?;
                Ok(Statement::Use(self.identifier()?))
            }
            "describe" | "desc" | "explain" => self.describe(),
            "begin" | "start" | "commit" | "rollback" | "savepoint" | "release" => self.transaction(&word),
            "lock" | "unlock" => self.lock(),
            "analyze" | "check" | "optimize" | "repair" | "checksum" => self.maintain(&word),
            "kill" => self.kill(),
            "prepare" | "execute" | "deallocate" => self.prepared(&word),
            "flush" => self.flush(),
            "grant" => self.grant(),
            "revoke" => self.revoke(),
            "load" => self.load(),
            "call" => self.call(),
            "reset" => self.reset(),
            "handler" | "xa" | "install" | "uninstall" | "change" | "purge" | "import" | "binlog" | "cache"
            | "shutdown" | "restart" | "clone" | "signal" | "resignal" | "help" => {
                Err(SqlError::unsupported(word.to_uppercase()))
            }
            "get" => Err(SqlError::unsupported("GET DIAGNOSTICS")),
            _ => Err(self.error_here()),
        }
    }

    fn change(&mut self) -> Result<Statement> {
        let (is_update, is_delete) = (self.peek_word(0, "update"), self.peek_word(0, "delete"));
        if !is_update && !is_delete {
            return match self.parsed(|parser| parser.parse_statement())? {
                ast::Statement::Insert(insert) => Ok(Statement::Insert(Box::new(insert))),
                _ => Err(self.error_here()),
            };
        }
        let verb = self.parser.next_token();
        let ignore = self.word("ignore");
        let changed =
            self.parsed(|parser| if is_update { parser.parse_update(verb) } else { parser.parse_delete(verb) });
        let mut changed = changed?;
        // Behind ORDER BY and LIMIT, where the grammar does not look for it.
        if self.word("returning") {
            let list = Some(self.parsed(|parser| parser.parse_projection())?);
            match &mut changed {
                ast::Statement::Update(node) if node.returning.is_none() => node.returning = list,
                ast::Statement::Delete(node) if node.returning.is_none() => node.returning = list,
                _ => return Err(self.error_here()),
            }
        }
        match changed {
            ast::Statement::Update(node) => Ok(Statement::Update(Box::new(Ignoring { node, ignore }))),
            ast::Statement::Delete(node) => Ok(Statement::Delete(Box::new(Ignoring { node, ignore }))),
            _ => Err(self.error_here()),
        }
    }

    fn create(&mut self) -> Result<Statement> {
        let object = |nth| match &self.parser.peek_nth_token_ref(nth).token {
            Token::Word(word) => word.value.to_ascii_lowercase(),
            _ => String::new(),
        };
        if self.is_create_view() {
            self.parser.next_token();
            return self.view(false);
        }
        match object(1).as_str() {
            "database" | "schema" => return self.create_database(),
            "table" | "temporary" | "index" | "unique" => {}
            "fulltext" | "spatial" => return Err(SqlError::unsupported(format!("{} INDEX", object(1).to_uppercase()))),
            "user" | "role" => {
                self.parser.next_token();
                return self.create_account();
            }
            "sequence" => return self.create_sequence(),
            "procedure" | "function" | "trigger" | "event" | "server" | "tablespace" | "logfile" | "resource"
            | "aggregate" => {
                return Err(SqlError::unsupported(format!("CREATE {}", object(1).to_uppercase())));
            }
            _ => {
                self.parser.next_token();
                return Err(self.error_here());
            }
        }
        match self.parsed(|parser| parser.parse_statement())? {
            ast::Statement::CreateTable(node) => {
                let (duplicates, names) = (self.duplicates, Vec::new());
                Ok(Statement::CreateTable(Box::new(CreateTable { node, duplicates, names })))
            }
            ast::Statement::CreateIndex(index) => Ok(Statement::CreateIndex(Box::new(index))),
            _ => Err(self.error_here()),
        }
    }

    /// As AliSQL has it: a sequence of numbers, or with TIMESTAMP of timestamps.
    fn create_sequence(&mut self) -> Result<Statement> {
        self.parser.next_token();
        self.parser.next_token();
        let if_not_exists = self.words(&["if", "not", "exists"]);
        let name = self.name()?;
        let mut is_timestamp = false;
        loop {
            let takes_number = if self.word("start") {
                self.word("with");
                true
            } else if self.word("increment") {
                self.word("by");
                true
            } else {
                ["minvalue", "maxvalue", "cache"].iter().any(|word| self.word(word))
            };
            if takes_number {
                self.take(&Token::Minus);
                let Token::Number(..) = self.parser.next_token().token else { return Err(self.error_here()) };
            } else if self.word("timestamp") {
                is_timestamp = true;
            } else if !["nominvalue", "nomaxvalue", "nocache", "cycle", "nocycle"].iter().any(|word| self.word(word)) {
                return Ok(Statement::CreateSequence { name, if_not_exists, is_timestamp });
            }
        }
    }

    fn create_database(&mut self) -> Result<Statement> {
        self.parser.next_token();
        self.parser.next_token();
        let if_not_exists = self.words(&["if", "not", "exists"]);
        let name = self.identifier()?;
        let (charset, collation) = self.database_options()?;
        Ok(Statement::CreateDatabase { name, if_not_exists, charset, collation })
    }

    /// `[DEFAULT] CHARACTER SET [=] x`, `COLLATE [=] y`, in any order.
    pub fn database_options(&mut self) -> Result<(Option<String>, Option<String>)> {
        let (mut charset, mut collation) = (None, None);
        loop {
            let is_default = self.word("default");
            if self.words(&["character", "set"]) || self.word("charset") {
                self.take(&Token::Eq);
                charset = Some(self.text_or_name()?);
            } else if self.word("collate") {
                self.take(&Token::Eq);
                collation = Some(self.text_or_name()?);
            } else if self.word("encryption") {
                self.take(&Token::Eq);
                let wish = self.text_or_name()?;
                if !wish.eq_ignore_ascii_case("n") {
                    return Err(SqlError::unsupported("ENCRYPTION"));
                }
            } else if is_default {
                return Err(self.error_here());
            } else {
                return Ok((charset, collation));
            }
        }
    }

    fn drop_object(&mut self) -> Result<Statement> {
        self.expect("drop")?;
        if self.word("database") || self.word("schema") {
            let if_exists = self.if_exists();
            return Ok(Statement::DropDatabase { name: self.identifier()?, if_exists });
        }
        if self.word("index") {
            let index = self.identifier()?;
            self.expect("on")?;
            let table = self.name()?;
            self.algorithm_and_lock()?;
            return Ok(Statement::DropIndex { table, index });
        }
        let temporary = self.word("temporary");
        if self.word("table") || self.word("tables") {
            let if_exists = self.if_exists();
            let tables = self.names()?;
            let _ = self.word("restrict") || self.word("cascade");
            return Ok(Statement::DropTable { tables, if_exists, temporary });
        }
        if self.word("view") {
            let if_exists = self.if_exists();
            let names = self.names()?;
            let _ = self.word("restrict") || self.word("cascade");
            return Ok(Statement::DropView { names, if_exists });
        }
        if self.peek_word(0, "user") || self.peek_word(0, "role") {
            let roles = self.word("role") || !self.word("user");
            return self.drop_account(roles);
        }
        let what = self.identifier()?.to_uppercase();
        Err(SqlError::unsupported(format!("DROP {what}")))
    }

    /// How MySQL should go about it: here there is one way.
    pub fn algorithm_and_lock(&mut self) -> Result<()> {
        while self.word("algorithm") || self.word("lock") {
            self.take(&Token::Eq);
            self.identifier()?;
        }
        Ok(())
    }

    fn rename(&mut self) -> Result<Statement> {
        self.expect("rename")?;
        if !self.word("table") && !self.word("tables") {
            self.expect("user")?;
            return self.rename_user();
        }
        let mut pairs = Vec::new();
        loop {
            let from = self.name()?;
            self.expect("to")?;
            pairs.push((from, self.name()?));
            if !self.take(&Token::Comma) {
                return Ok(Statement::RenameTable(pairs));
            }
        }
    }

    fn describe(&mut self) -> Result<Statement> {
        self.parser.next_token();
        let analyze = self.word("analyze");
        let mut format = None;
        if self.word("format") {
            self.expect_token(&Token::Eq)?;
            format = Some(self.text_or_name()?.to_ascii_lowercase());
        }
        if self.word("for") {
            self.expect("connection")?;
            return Err(SqlError::unsupported("EXPLAIN FOR CONNECTION"));
        }
        let _ = self.word("extended") || self.word("partitions");
        let explains = ["select", "insert", "update", "delete", "replace", "with", "table", "values"];
        if explains.iter().any(|word| self.peek_word(0, word)) || self.parser.peek_token_ref().token == Token::LParen {
            return Ok(Statement::Explain { statement: Box::new(self.statement()?), analyze, format });
        }
        let table = self.name()?;
        let like = if self.at_end() { None } else { Some(self.text_or_name()?) };
        Ok(Statement::Describe { table, like })
    }

    fn transaction(&mut self, word: &str) -> Result<Statement> {
        self.parser.next_token();
        match word {
            "begin" => {
                self.word("work");
                Ok(Statement::Begin { read_only: None, snapshot: false })
            }
            "start" => self.start(),
            "savepoint" => Ok(Statement::Savepoint(self.identifier()?)),
            "release" => {
                self.expect("savepoint")?;
                Ok(Statement::Release(self.identifier()?))
            }
            _ => {
                self.word("work");
                if word == "rollback" && self.word("to") {
                    self.word("savepoint");
                    return Ok(Statement::RollbackTo(self.identifier()?));
                }
                let completion = self.completion()?;
                Ok(if word == "commit" { Statement::Commit(completion) } else { Statement::Rollback(completion) })
            }
        }
    }

    /// `[AND [NO] CHAIN] [[NO] RELEASE]`
    fn completion(&mut self) -> Result<Completion> {
        let (mut chain, mut release) = (None, None);
        if self.word("and") {
            chain = Some(!self.word("no"));
            self.expect("chain")?;
        }
        if self.words(&["no", "release"]) {
            release = Some(false);
        } else if chain != Some(true) && self.word("release") {
            release = Some(true);
        }
        Ok(Completion { chain, release })
    }

    fn start(&mut self) -> Result<Statement> {
        if !self.word("transaction") {
            return Err(SqlError::unsupported("START of anything but TRANSACTION"));
        }
        let (mut read_only, mut snapshot) = (None, false);
        while !self.at_end() {
            if self.words(&["read", "only"]) {
                read_only = Some(true);
            } else if self.words(&["read", "write"]) {
                read_only = Some(false);
            } else if self.words(&["with", "consistent", "snapshot"]) {
                snapshot = true;
            } else if !self.take(&Token::Comma) {
                return Err(self.error_here());
            }
        }
        Ok(Statement::Begin { read_only, snapshot })
    }

    fn flush(&mut self) -> Result<Statement> {
        self.expect("flush")?;
        let _ = self.word("no_write_to_binlog") || self.word("local");
        let what = self.identifier()?.to_ascii_lowercase();
        if matches!(what.as_str(), "tables" | "table") {
            let names = match &self.parser.peek_token_ref().token {
                Token::EOF | Token::SemiColon => Vec::new(),
                _ if self.peek_word(0, "with") || self.peek_word(0, "for") => Vec::new(),
                _ => self.names()?,
            };
            if self.words(&["for", "export"]) {
                return Err(SqlError::unsupported("FLUSH TABLES ... FOR EXPORT"));
            }
            if self.words(&["with", "read", "lock"]) {
                let tables: Vec<_> = names.into_iter().map(|name| (name, false)).collect();
                return Ok(if tables.is_empty() { Statement::LockAll } else { Statement::LockTables(tables) });
            }
            return Ok(Statement::Flush(vec![what]));
        }
        let mut all = vec![what];
        loop {
            // Kinds of logs.
            if self.word("logs")
                && let Some(last) = all.last_mut()
            {
                *last = "logs".to_owned();
            }
            if !self.take(&Token::Comma) {
                return Ok(Statement::Flush(all));
            }
            all.push(self.identifier()?.to_ascii_lowercase());
        }
    }

    fn lock(&mut self) -> Result<Statement> {
        let unlock = self.word("unlock");
        if !unlock {
            self.expect("lock")?;
        }
        if !self.word("tables") && !self.word("table") {
            return Err(SqlError::unsupported("LOCK INSTANCE"));
        }
        if unlock {
            return Ok(Statement::UnlockTables);
        }
        let mut tables = Vec::new();
        loop {
            let name = self.name()?;
            if self.word("as") || !["read", "write", "low_priority"].iter().any(|word| self.peek_word(0, word)) {
                self.identifier()?;
            }
            self.word("low_priority");
            let exclusive = self.word("write");
            if !exclusive {
                self.expect("read")?;
                self.word("local");
            }
            tables.push((name, exclusive));
            if !self.take(&Token::Comma) {
                return Ok(Statement::LockTables(tables));
            }
        }
    }

    fn maintain(&mut self, word: &str) -> Result<Statement> {
        self.parser.next_token();
        let _ = self.word("no_write_to_binlog") || self.word("local");
        if !self.word("table") && !self.word("tables") {
            return Err(self.error_here());
        }
        let tables = self.names()?;
        let what = match word {
            "analyze" => Maintenance::Analyze,
            "check" => Maintenance::Check,
            "repair" => Maintenance::Repair,
            "checksum" => {
                let is_quick = self.word("quick");
                let _ = is_quick || self.word("extended");
                Maintenance::Checksum(is_quick)
            }
            _ => Maintenance::Optimize,
        };
        // How thoroughly: there is one way.
        let options: &[&str] = match what {
            Maintenance::Check => &["for", "upgrade", "quick", "fast", "medium", "extended", "changed"],
            Maintenance::Repair => &["quick", "extended", "use_frm"],
            _ => &[],
        };
        while options.iter().any(|word| self.word(word)) {}
        let histograms = if what == Maintenance::Analyze { self.histograms()? } else { None };
        Ok(Statement::Maintain { what, tables, histograms })
    }

    /// `UPDATE HISTOGRAM ON a, b [WITH n BUCKETS]`, `DROP HISTOGRAM ON a, b`.
    fn histograms(&mut self) -> Result<Option<Histograms>> {
        const BUCKETS: u32 = 100;
        let updates = self.word("update");
        if !updates && !self.word("drop") {
            return Ok(None);
        }
        self.expect("histogram")?;
        self.expect("on")?;
        let mut columns = vec![self.identifier()?];
        while self.take(&Token::Comma) {
            columns.push(self.identifier()?);
        }
        if !updates {
            return Ok(Some(Histograms::Drop(columns)));
        }
        if !self.word("with") {
            return Ok(Some(Histograms::Update(columns, BUCKETS)));
        }
        let Token::Number(number, _) = self.parser.next_token().token else { return Err(self.error_here()) };
        let number = number.parse::<u32>().ok().filter(|number| (1..=1024).contains(number));
        let number = number.ok_or_else(|| error::DATA_OUT_OF_RANGE.with(&[&"Number of buckets", &"ANALYZE TABLE"]))?;
        self.expect("buckets")?;
        Ok(Some(Histograms::Update(columns, number)))
    }

    fn call(&mut self) -> Result<Statement> {
        self.expect("call")?;
        let (name, mut arguments) = (self.name()?, Vec::new());
        if self.take(&Token::LParen) && !self.take(&Token::RParen) {
            arguments = self.parsed(|parser| parser.parse_comma_separated(|parser| parser.parse_expr()))?;
            self.expect_token(&Token::RParen)?;
        }
        Ok(Statement::Call { name, arguments })
    }

    fn kill(&mut self) -> Result<Statement> {
        self.expect("kill")?;
        let query = self.word("query");
        if !query {
            self.word("connection");
        }
        Ok(Statement::Kill { query, id: self.expression()? })
    }

    fn prepared(&mut self, word: &str) -> Result<Statement> {
        self.parser.next_token();
        match word {
            "prepare" => {
                let name = self.identifier()?;
                self.expect("from")?;
                Ok(Statement::Prepare { name, source: self.expression()? })
            }
            "execute" => {
                let (name, mut using) = (self.identifier()?, Vec::new());
                if self.word("using") {
                    loop {
                        using.push(self.identifier()?.trim_start_matches('@').to_owned());
                        if !self.take(&Token::Comma) {
                            break;
                        }
                    }
                }
                Ok(Statement::Execute { name, using })
            }
            _ => {
                self.expect("prepare")?;
                Ok(Statement::Deallocate(self.identifier()?))
            }
        }
    }
}
