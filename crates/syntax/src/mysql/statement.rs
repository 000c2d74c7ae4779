//! One statement, by its first word.

use super::keyword::Kw;
use super::lexer::Kind;
use super::parser::Parser;
use crate::error::{Problem, Result};
use crate::tree::{Completion, Histograms, Maintenance, PrepareSource, QueryBody, Statement, TableLock};

/// Buckets of a histogram where the statement gives no number.
const BUCKETS: u32 = 100;

impl Parser<'_> {
    pub(super) fn statement(&mut self) -> Result<Statement> {
        if self.at(Kind::Open) {
            return self.query().map(|query| Statement::Query(Box::new(query)));
        }
        let kw = self.kw();
        match kw {
            Kw::SELECT | Kw::VALUES | Kw::TABLE => self.query().map(|query| Statement::Query(Box::new(query))),
            Kw::WITH => self.with_statement(),
            Kw::INSERT | Kw::REPLACE => self.insert(),
            Kw::UPDATE => self.update(None),
            Kw::DELETE => self.delete(None),
            Kw::CREATE => self.create(),
            Kw::DROP => self.drop_object(),
            Kw::ALTER => self.alter(),
            Kw::SET => self.set(),
            Kw::SHOW => self.show(),
            Kw::DO => {
                self.take();
                self.is_outermost = false;
                Ok(Statement::Do(self.select_exprs()?))
            }
            Kw::TRUNCATE => {
                self.take();
                self.word(Kw::TABLE);
                Ok(Statement::Truncate(self.name()?))
            }
            Kw::RENAME => self.rename(),
            Kw::USE => {
                self.take();
                Ok(Statement::Use(self.identifier()?))
            }
            Kw::DESCRIBE | Kw::DESC | Kw::EXPLAIN => self.describe(),
            Kw::BEGIN => {
                self.take();
                self.word(Kw::WORK);
                Ok(Statement::Begin { read_only: None, snapshot: false })
            }
            Kw::START => self.start(),
            Kw::COMMIT | Kw::ROLLBACK | Kw::SAVEPOINT | Kw::RELEASE => self.transaction(),
            Kw::LOCK | Kw::UNLOCK => self.lock(),
            Kw::ANALYZE | Kw::CHECK | Kw::OPTIMIZE | Kw::REPAIR | Kw::CHECKSUM => self.maintain(),
            Kw::KILL => {
                self.take();
                self.is_outermost = false;
                let query = self.any(&[Kw::QUERY, Kw::CONNECTION]) == Some(Kw::QUERY);
                Ok(Statement::Kill { query, id: self.expr()? })
            }
            Kw::PREPARE | Kw::EXECUTE | Kw::DEALLOCATE => self.prepared(),
            Kw::FLUSH => self.flush(),
            Kw::GRANT => self.grant(),
            Kw::REVOKE => self.revoke(),
            Kw::LOAD => self.load(),
            Kw::CALL => self.call_procedure(),
            Kw::RESET => self.reset(),
            Kw::HANDLER
            | Kw::XA
            | Kw::INSTALL
            | Kw::UNINSTALL
            | Kw::CHANGE
            | Kw::PURGE
            | Kw::IMPORT
            | Kw::BINLOG
            | Kw::CACHE
            | Kw::SHUTDOWN
            | Kw::RESTART
            | Kw::CLONE
            | Kw::SIGNAL
            | Kw::RESIGNAL
            | Kw::STOP
            | Kw::HELP => Err(self.unsupported(kw.text())),
            Kw::GET => Err(self.unsupported("GET DIAGNOSTICS")),
            _ => Err(self.error()),
        }
    }

    /// `WITH ... {SELECT | UPDATE | DELETE}`
    fn with_statement(&mut self) -> Result<Statement> {
        let start = self.token().start;
        let with = self.with()?;
        match self.kw() {
            Kw::UPDATE => self.update(with),
            Kw::DELETE => self.delete(with),
            _ => {
                let query = self.level(|parser| {
                    if !parser.begins_query() && !parser.at(Kind::Open) || parser.kw() == Kw::WITH {
                        return Err(parser.error());
                    }
                    let first: QueryBody = parser.query_operand()?;
                    parser.query_rest(with, first, start)
                })?;
                Ok(Statement::Query(Box::new(query)))
            }
        }
    }

    /// Expressions, each with an alias that means nothing.
    fn select_exprs(&mut self) -> Result<Vec<crate::tree::Expr>> {
        self.list(|parser| {
            let expr = parser.expr()?;
            if parser.word(Kw::AS) || parser.at_name() || parser.at(Kind::String) {
                parser.text_or_name()?;
            }
            Ok(expr)
        })
    }

    fn create(&mut self) -> Result<Statement> {
        self.take();
        match self.kw() {
            Kw::TABLE | Kw::TEMPORARY => self.create_table(),
            Kw::INDEX | Kw::UNIQUE | Kw::FULLTEXT => self.create_index(),
            Kw::SPATIAL if self.peek(1).is(Kw::INDEX) => self.create_index(),
            Kw::DATABASE | Kw::SCHEMA => {
                self.take();
                let if_not_exists = self.if_not_exists();
                let name = self.identifier()?;
                let (charset, collation) = self.database_options()?;
                Ok(Statement::CreateDatabase { name, if_not_exists, charset, collation })
            }
            Kw::USER | Kw::ROLE => self.create_account(),
            Kw::SEQUENCE => self.create_sequence(),
            Kw::OR if !self.peek(1).is(Kw::REPLACE) => Err(self.error()),
            Kw::OR | Kw::VIEW | Kw::ALGORITHM | Kw::DEFINER | Kw::SQL => self.create_view(false),
            kw @ (Kw::PROCEDURE
            | Kw::FUNCTION
            | Kw::TRIGGER
            | Kw::EVENT
            | Kw::SERVER
            | Kw::TABLESPACE
            | Kw::UNDO
            | Kw::LOGFILE
            | Kw::RESOURCE
            | Kw::AGGREGATE
            | Kw::SPATIAL) => Err(self.unsupported(format!("CREATE {}", kw.text()))),
            _ => Err(self.error()),
        }
    }

    /// As AliSQL has it: a sequence of numbers, or with TIMESTAMP of timestamps.
    fn create_sequence(&mut self) -> Result<Statement> {
        self.take();
        let if_not_exists = self.if_not_exists();
        let name = self.name()?;
        let mut is_timestamp = false;
        loop {
            let takes_number = match self.kw() {
                Kw::START => {
                    self.take();
                    self.word(Kw::WITH);
                    true
                }
                Kw::INCREMENT => {
                    self.take();
                    self.word(Kw::BY);
                    true
                }
                Kw::MINVALUE | Kw::MAXVALUE | Kw::CACHE => {
                    self.take();
                    true
                }
                _ => false,
            };
            if takes_number {
                self.accept(Kind::Minus);
                self.number()?;
            } else if self.word(Kw::TIMESTAMP) {
                is_timestamp = true;
            } else if self.any(&[Kw::NOMINVALUE, Kw::NOMAXVALUE, Kw::NOCACHE, Kw::CYCLE, Kw::NOCYCLE]).is_none() {
                return Ok(Statement::CreateSequence { name, if_not_exists, is_timestamp });
            }
        }
    }

    /// `[DEFAULT] CHARACTER SET [=] x`, `COLLATE [=] y`, in any order.
    pub(super) fn database_options(&mut self) -> Result<(Option<String>, Option<String>)> {
        let (mut charset, mut collation) = (None, None);
        loop {
            let is_default = self.word(Kw::DEFAULT);
            if self.charset_words() {
                self.equals();
                charset = Some(self.charset_name()?);
            } else if self.word(Kw::COLLATE) {
                self.equals();
                collation = Some(self.charset_name()?);
            } else if self.word(Kw::ENCRYPTION) {
                self.equals();
                if !self.string()?.eq_ignore_ascii_case("n") {
                    return Err(self.unsupported("ENCRYPTION"));
                }
            } else if is_default {
                return Err(self.error());
            } else {
                return Ok((charset, collation));
            }
        }
    }

    fn drop_object(&mut self) -> Result<Statement> {
        self.take();
        let kw = self.kw();
        match kw {
            Kw::DATABASE | Kw::SCHEMA => {
                self.take();
                let if_exists = self.if_exists();
                Ok(Statement::DropDatabase { name: self.identifier()?, if_exists })
            }
            Kw::INDEX => {
                self.take();
                let index = self.ident()?;
                self.expect_word(Kw::ON)?;
                let table = self.name()?;
                self.algorithm_and_lock()?;
                Ok(Statement::DropIndex { table, index })
            }
            Kw::TEMPORARY | Kw::TABLE | Kw::TABLES => {
                let temporary = self.word(Kw::TEMPORARY);
                self.any(&[Kw::TABLE, Kw::TABLES]).ok_or_else(|| self.error())?;
                let if_exists = self.if_exists();
                let tables = self.names()?;
                self.any(&[Kw::RESTRICT, Kw::CASCADE]);
                Ok(Statement::DropTable { tables, if_exists, temporary })
            }
            Kw::VIEW => {
                self.take();
                let if_exists = self.if_exists();
                let names = self.names()?;
                self.any(&[Kw::RESTRICT, Kw::CASCADE]);
                Ok(Statement::DropView { names, if_exists })
            }
            Kw::USER | Kw::ROLE => self.drop_account(),
            Kw::PREPARE => {
                self.take();
                Ok(Statement::Deallocate(self.identifier()?))
            }
            Kw::PROCEDURE
            | Kw::FUNCTION
            | Kw::TRIGGER
            | Kw::EVENT
            | Kw::SERVER
            | Kw::TABLESPACE
            | Kw::UNDO
            | Kw::LOGFILE
            | Kw::RESOURCE
            | Kw::SPATIAL
            | Kw::SEQUENCE => Err(self.unsupported(format!("DROP {}", kw.text()))),
            _ => Err(self.error()),
        }
    }

    fn rename(&mut self) -> Result<Statement> {
        self.take();
        if self.any(&[Kw::TABLE, Kw::TABLES]).is_none() {
            self.expect_word(Kw::USER)?;
            return self.rename_user();
        }
        let pairs = self.list(|parser| {
            let from = parser.name()?;
            parser.expect_word(Kw::TO)?;
            Ok((from, parser.name()?))
        })?;
        Ok(Statement::RenameTable(pairs))
    }

    fn describe(&mut self) -> Result<Statement> {
        self.take();
        let analyze = self.word(Kw::ANALYZE);
        let mut format = None;
        if self.kw() == Kw::FORMAT && self.peek(1).kind == Kind::Equal {
            self.take();
            self.take();
            format = Some(self.text_or_name()?.to_ascii_lowercase());
        }
        if self.kw() == Kw::FOR {
            self.take();
            if matches!(self.kw(), Kw::DATABASE | Kw::SCHEMA) {
                return Err(self.unsupported("EXPLAIN FOR DATABASE"));
            }
            self.expect_word(Kw::CONNECTION)?;
            return Err(self.unsupported("EXPLAIN FOR CONNECTION"));
        }
        let explains = analyze
            || format.is_some()
            || self.begins_query()
            || self.at(Kind::Open)
            || matches!(self.kw(), Kw::INSERT | Kw::REPLACE | Kw::UPDATE | Kw::DELETE);
        if explains {
            let can = self.begins_query()
                || self.at(Kind::Open)
                || matches!(self.kw(), Kw::INSERT | Kw::REPLACE | Kw::UPDATE | Kw::DELETE);
            if !can {
                return Err(self.error());
            }
            let statement = self.level(Parser::statement)?;
            return Ok(Statement::Explain { statement: Box::new(statement), analyze, format });
        }
        let table = self.name()?;
        let like = if self.at_end() { None } else { Some(self.text_or_name()?) };
        Ok(Statement::Describe { table, like })
    }

    fn transaction(&mut self) -> Result<Statement> {
        let kw = self.take().kw;
        match kw {
            Kw::SAVEPOINT => Ok(Statement::Savepoint(self.identifier()?)),
            Kw::RELEASE => {
                self.expect_word(Kw::SAVEPOINT)?;
                Ok(Statement::Release(self.identifier()?))
            }
            _ => {
                self.word(Kw::WORK);
                if kw == Kw::ROLLBACK && self.word(Kw::TO) {
                    self.word(Kw::SAVEPOINT);
                    return Ok(Statement::RollbackTo(self.identifier()?));
                }
                let completion = self.completion()?;
                Ok(if kw == Kw::COMMIT { Statement::Commit(completion) } else { Statement::Rollback(completion) })
            }
        }
    }

    /// `[AND [NO] CHAIN] [[NO] RELEASE]`
    fn completion(&mut self) -> Result<Completion> {
        let (mut chain, mut release) = (None, None);
        if self.word(Kw::AND) {
            chain = Some(!self.word(Kw::NO));
            self.expect_word(Kw::CHAIN)?;
        }
        if self.words(&[Kw::NO, Kw::RELEASE]) {
            release = Some(false);
        } else if chain != Some(true) && self.word(Kw::RELEASE) {
            release = Some(true);
        }
        Ok(Completion { chain, release })
    }

    fn start(&mut self) -> Result<Statement> {
        self.take();
        if matches!(self.kw(), Kw::SLAVE | Kw::REPLICA | Kw::GROUP_REPLICATION) {
            return Err(self.unsupported("START of anything but TRANSACTION"));
        }
        self.expect_word(Kw::TRANSACTION)?;
        let (mut read_only, mut snapshot) = (None, false);
        if self.at_end() {
            return Ok(Statement::Begin { read_only, snapshot });
        }
        self.list(|parser| {
            if parser.words(&[Kw::READ, Kw::ONLY]) && read_only != Some(false) {
                read_only = Some(true);
            } else if parser.words(&[Kw::READ, Kw::WRITE]) && read_only != Some(true) {
                read_only = Some(false);
            } else if parser.words(&[Kw::WITH, Kw::CONSISTENT, Kw::SNAPSHOT]) {
                snapshot = true;
            } else {
                return Err(parser.error());
            }
            Ok(())
        })?;
        Ok(Statement::Begin { read_only, snapshot })
    }

    fn flush(&mut self) -> Result<Statement> {
        self.take();
        self.any(&[Kw::NO_WRITE_TO_BINLOG, Kw::LOCAL]);
        if self.any(&[Kw::TABLES, Kw::TABLE]).is_some() {
            let names = match self.at_end() || matches!(self.kw(), Kw::WITH | Kw::FOR) {
                true => Vec::new(),
                false => self.names()?,
            };
            if self.words(&[Kw::FOR, Kw::EXPORT]) {
                return Err(self.unsupported("FLUSH TABLES ... FOR EXPORT"));
            }
            if self.words(&[Kw::WITH, Kw::READ, Kw::LOCK]) {
                let tables: Vec<_> =
                    names.into_iter().map(|table| TableLock { table, alias: None, write: false }).collect();
                return Ok(if tables.is_empty() { Statement::LockAll } else { Statement::LockTables(tables) });
            }
            return Ok(Statement::Flush(vec!["tables".to_owned()]));
        }
        let all = self.list(|parser| {
            let token = parser.token();
            if token.kind != Kind::Word {
                return Err(parser.error());
            }
            parser.take();
            let what = parser.text_of(token).to_ascii_lowercase();
            // Kinds of logs.
            let is_logs = matches!(what.as_str(), "binary" | "engine" | "error" | "general" | "slow" | "relay");
            if is_logs {
                parser.expect_word(Kw::LOGS)?;
                return Ok("logs".to_owned());
            }
            let known = ["logs", "privileges", "status", "hosts", "user_resources", "optimizer_costs"];
            if !known.contains(&what.as_str()) {
                return Err(parser.error_at(token.start));
            }
            Ok(what)
        })?;
        Ok(Statement::Flush(all))
    }

    fn lock(&mut self) -> Result<Statement> {
        let unlock = self.take().kw == Kw::UNLOCK;
        if self.any(&[Kw::TABLES, Kw::TABLE]).is_none() {
            if self.kw() != Kw::INSTANCE {
                return Err(self.error());
            }
            return Err(self.unsupported("LOCK INSTANCE"));
        }
        if unlock {
            return Ok(Statement::UnlockTables);
        }
        let tables = self.list(|parser| {
            let table = parser.name()?;
            let alias = if parser.word(Kw::AS) || parser.at_name() { Some(parser.identifier()?) } else { None };
            parser.word(Kw::LOW_PRIORITY);
            let write = parser.word(Kw::WRITE);
            if !write {
                parser.expect_word(Kw::READ)?;
                parser.word(Kw::LOCAL);
            }
            Ok(TableLock { table, alias, write })
        })?;
        Ok(Statement::LockTables(tables))
    }

    fn maintain(&mut self) -> Result<Statement> {
        let kw = self.take().kw;
        if !matches!(kw, Kw::CHECK | Kw::CHECKSUM) {
            self.any(&[Kw::NO_WRITE_TO_BINLOG, Kw::LOCAL]);
        }
        self.any(&[Kw::TABLE, Kw::TABLES]).ok_or_else(|| self.error())?;
        let tables = self.names()?;
        let what = match kw {
            Kw::ANALYZE => Maintenance::Analyze,
            Kw::CHECK => Maintenance::Check,
            Kw::REPAIR => Maintenance::Repair,
            Kw::CHECKSUM => Maintenance::Checksum(self.any(&[Kw::QUICK, Kw::EXTENDED]) == Some(Kw::QUICK)),
            _ => Maintenance::Optimize,
        };
        // How thoroughly: there is one way.
        loop {
            let taken = match what {
                Maintenance::Check => {
                    self.words(&[Kw::FOR, Kw::UPGRADE])
                        || self.any(&[Kw::QUICK, Kw::FAST, Kw::MEDIUM, Kw::EXTENDED, Kw::CHANGED]).is_some()
                }
                Maintenance::Repair => self.any(&[Kw::QUICK, Kw::EXTENDED, Kw::USE_FRM]).is_some(),
                _ => false,
            };
            if !taken {
                break;
            }
        }
        let histograms = if what == Maintenance::Analyze { self.histograms()? } else { None };
        Ok(Statement::Maintain { what, tables, histograms })
    }

    /// `UPDATE HISTOGRAM ON a, b [WITH n BUCKETS]`, `DROP HISTOGRAM ON a, b`.
    fn histograms(&mut self) -> Result<Option<Histograms>> {
        let Some(kw) = self.any(&[Kw::UPDATE, Kw::DROP]) else { return Ok(None) };
        self.expect_words(&[Kw::HISTOGRAM, Kw::ON])?;
        let columns = self.list(Parser::identifier)?;
        if kw == Kw::DROP {
            return Ok(Some(Histograms::Drop(columns)));
        }
        if self.word(Kw::USING) {
            return Err(self.unsupported("ANALYZE TABLE ... USING DATA"));
        }
        let mut buckets = BUCKETS;
        if self.kw() == Kw::WITH && self.peek(1).kind == Kind::Integer {
            self.take();
            let number = self.number()?;
            let range = Problem::OutOfRange("Number of buckets", "ANALYZE TABLE");
            buckets = u32::try_from(number)
                .ok()
                .filter(|number| (1..=1024).contains(number))
                .ok_or_else(|| self.problem(range))?;
            self.expect_word(Kw::BUCKETS)?;
        }
        Ok(Some(Histograms::Update(columns, buckets)))
    }

    fn call_procedure(&mut self) -> Result<Statement> {
        self.take();
        self.is_outermost = false;
        let (name, mut arguments) = (self.name()?, Vec::new());
        if self.accept(Kind::Open) {
            if !self.at(Kind::Close) {
                arguments = self.exprs()?;
            }
            self.expect(Kind::Close)?;
        }
        Ok(Statement::Call { name, arguments })
    }

    fn prepared(&mut self) -> Result<Statement> {
        match self.take().kw {
            Kw::PREPARE => {
                let name = self.identifier()?;
                self.expect_word(Kw::FROM)?;
                let source = match self.kind() {
                    Kind::Variable => PrepareSource::Variable(self.variable()?),
                    _ => PrepareSource::Text(self.string()?),
                };
                Ok(Statement::Prepare { name, source })
            }
            Kw::EXECUTE => {
                let name = self.identifier()?;
                let using = if self.word(Kw::USING) { self.list(Parser::variable)? } else { Vec::new() };
                Ok(Statement::Execute { name, using })
            }
            _ => {
                self.expect_word(Kw::PREPARE)?;
                Ok(Statement::Deallocate(self.identifier()?))
            }
        }
    }
}
