//! Transactions, settings, prepared statements, cursors, EXPLAIN, upkeep.

use super::error::Result;
use super::keyword::{Category, Kw};
use super::lexer::Kind;
use super::parser::Parser;
use super::tree::*;

impl Parser<'_> {
    /// BEGIN, START, COMMIT, END, ROLLBACK, ABORT, SAVEPOINT, RELEASE.
    pub(super) fn transaction(&mut self) -> Result<Statement> {
        let kw = self.take().kw;
        let statement = match kw {
            Kw::BEGIN => {
                self.any(&[Kw::WORK, Kw::TRANSACTION]);
                TransactionStmt::Begin { start: false, modes: self.optional_modes()? }
            }
            Kw::START => {
                self.expect_word(Kw::TRANSACTION)?;
                TransactionStmt::Begin { start: true, modes: self.optional_modes()? }
            }
            Kw::SAVEPOINT => TransactionStmt::Savepoint(self.column_name()?),
            Kw::RELEASE => TransactionStmt::Release(self.savepoint()?),
            Kw::COMMIT if self.word(Kw::PREPARED) => TransactionStmt::CommitPrepared(self.string()?),
            Kw::ROLLBACK if self.word(Kw::PREPARED) => TransactionStmt::RollbackPrepared(self.string()?),
            Kw::COMMIT | Kw::END => {
                self.any(&[Kw::WORK, Kw::TRANSACTION]);
                TransactionStmt::Commit { chain: self.chain()? }
            }
            _ => {
                self.any(&[Kw::WORK, Kw::TRANSACTION]);
                if kw == Kw::ROLLBACK && self.word(Kw::TO) {
                    TransactionStmt::RollbackTo(self.savepoint()?)
                } else {
                    TransactionStmt::Rollback { chain: self.chain()? }
                }
            }
        };
        Ok(Statement::Transaction(statement))
    }

    fn savepoint(&mut self) -> Result<Ident> {
        // A savepoint may itself be named savepoint.
        if self.kw() == Kw::SAVEPOINT && !matches!(self.peek(1).kind, Kind::End | Kind::Semicolon) {
            self.take();
        }
        self.column_name()
    }

    fn chain(&mut self) -> Result<bool> {
        if !self.word(Kw::AND) {
            return Ok(false);
        }
        let chain = !self.word(Kw::NO);
        self.expect_word(Kw::CHAIN)?;
        Ok(chain)
    }

    fn optional_modes(&mut self) -> Result<Vec<TransactionMode>> {
        if self.at_end() { Ok(Vec::new()) } else { self.modes() }
    }

    /// transaction_mode_list: commas may be left out.
    fn modes(&mut self) -> Result<Vec<TransactionMode>> {
        let mut modes = vec![self.mode()?];
        loop {
            if self.accept(Kind::Comma) || matches!(self.kw(), Kw::ISOLATION | Kw::READ | Kw::DEFERRABLE | Kw::NOT) {
                modes.push(self.mode()?);
            } else {
                return Ok(modes);
            }
        }
    }

    fn mode(&mut self) -> Result<TransactionMode> {
        Ok(match self.any(&[Kw::ISOLATION, Kw::READ, Kw::DEFERRABLE, Kw::NOT]) {
            Some(Kw::ISOLATION) => {
                self.expect_word(Kw::LEVEL)?;
                TransactionMode::Isolation(self.isolation_level()?)
            }
            Some(Kw::READ) => match self.any(&[Kw::ONLY, Kw::WRITE]) {
                Some(kw) => TransactionMode::ReadOnly(kw == Kw::ONLY),
                None => return Err(self.error()),
            },
            Some(Kw::DEFERRABLE) => TransactionMode::Deferrable(true),
            Some(_) => {
                self.expect_word(Kw::DEFERRABLE)?;
                TransactionMode::Deferrable(false)
            }
            None => return Err(self.error()),
        })
    }

    fn isolation_level(&mut self) -> Result<IsolationLevel> {
        Ok(match self.any(&[Kw::READ, Kw::REPEATABLE, Kw::SERIALIZABLE]) {
            Some(Kw::READ) => match self.any(&[Kw::UNCOMMITTED, Kw::COMMITTED]) {
                Some(Kw::COMMITTED) => IsolationLevel::ReadCommitted,
                Some(_) => IsolationLevel::ReadUncommitted,
                None => return Err(self.error()),
            },
            Some(Kw::REPEATABLE) => {
                self.expect_word(Kw::READ)?;
                IsolationLevel::RepeatableRead
            }
            Some(_) => IsolationLevel::Serializable,
            None => return Err(self.error()),
        })
    }

    /// SET as a statement.
    pub(super) fn set(&mut self) -> Result<Statement> {
        if self.peek_is(1, Kw::CONSTRAINTS) && !self.is_setting_name(2) {
            return self.set_constraints();
        }
        self.take();
        let scoped = matches!(self.kw(), Kw::LOCAL | Kw::SESSION) && !self.is_setting_name(1);
        let local = scoped && self.kw() == Kw::LOCAL;
        if scoped && (local || !self.begins_session_clause()) {
            self.take();
        }
        let action = self.set_rest()?;
        Ok(Statement::Set(VariableSetStmt { local, action }))
    }

    /// Whether SESSION begins CHARACTERISTICS or AUTHORIZATION.
    fn begins_session_clause(&mut self) -> bool {
        self.peek_is(1, Kw::CHARACTERISTICS) && self.peek_is(2, Kw::AS) || self.peek_is(1, Kw::AUTHORIZATION)
    }

    /// Whether the word before that token is the name of a setting.
    fn is_setting_name(&mut self, nth: usize) -> bool {
        let token = self.peek(nth);
        matches!(token.kind, Kind::Equal | Kind::Dot) || matches!(token.kw, Kw::TO | Kw::FROM)
    }

    fn set_constraints(&mut self) -> Result<Statement> {
        self.take();
        self.take();
        let constraints = if self.word(Kw::ALL) { Vec::new() } else { self.list(Parser::relation_name)? };
        let deferred = match self.any(&[Kw::DEFERRED, Kw::IMMEDIATE]) {
            Some(kw) => kw == Kw::DEFERRED,
            None => return Err(self.error()),
        };
        Ok(Statement::SetConstraints(ConstraintsSetStmt { constraints, deferred }))
    }

    /// SetResetClause: of ALTER ROLE and ALTER DATABASE.
    pub(super) fn set_or_reset(&mut self) -> Result<VariableSetStmt> {
        let action = if self.word(Kw::RESET) {
            self.reset_rest()?
        } else {
            self.expect_word(Kw::SET)?;
            self.set_rest()?
        };
        Ok(VariableSetStmt { local: false, action })
    }

    /// set_rest
    fn set_rest(&mut self) -> Result<VariableSet> {
        if self.is_setting_name(1) {
            return self.set_generic();
        }
        let at = self.here();
        let named = |value: &str| SettingName { value: value.to_owned(), at };
        match self.kw() {
            Kw::TRANSACTION => {
                self.take();
                if self.word(Kw::SNAPSHOT) {
                    return self.string().map(VariableSet::Snapshot);
                }
                self.modes().map(VariableSet::Transaction)
            }
            Kw::SESSION => {
                self.take();
                if self.word(Kw::CHARACTERISTICS) {
                    self.expect_words(&[Kw::AS, Kw::TRANSACTION])?;
                    return self.modes().map(VariableSet::SessionCharacteristics);
                }
                self.expect_word(Kw::AUTHORIZATION)?;
                let name = named("session_authorization");
                if self.word(Kw::DEFAULT) {
                    return Ok(VariableSet::Default(name));
                }
                let values = vec![self.word_or_string()?];
                Ok(VariableSet::Value { name, values })
            }
            Kw::TIME => {
                self.take();
                self.expect_word(Kw::ZONE)?;
                self.time_zone(named("timezone"))
            }
            Kw::CATALOG => {
                self.take();
                let at = self.here();
                self.string()?;
                Err(self.invalid("0A000", "current database cannot be changed", at))
            }
            Kw::SCHEMA => {
                self.take();
                let value_at = self.here();
                let values = vec![SettingValue::String(self.string()?, value_at)];
                Ok(VariableSet::Value { name: named("search_path"), values })
            }
            Kw::NAMES => {
                self.take();
                let name = named("client_encoding");
                let value_at = self.here();
                if self.at_end() || self.word(Kw::DEFAULT) {
                    return Ok(VariableSet::Default(name));
                }
                let values = vec![SettingValue::String(self.string()?, value_at)];
                Ok(VariableSet::Value { name, values })
            }
            Kw::ROLE => {
                self.take();
                let values = vec![self.word_or_string()?];
                Ok(VariableSet::Value { name: named("role"), values })
            }
            Kw::XML => {
                self.take();
                self.expect_word(Kw::OPTION)?;
                let value_at = self.here();
                match self.any(&[Kw::DOCUMENT, Kw::CONTENT]) {
                    Some(kw) => {
                        let values = vec![SettingValue::String(kw.text().to_owned(), value_at)];
                        Ok(VariableSet::Value { name: named("xmloption"), values })
                    }
                    None => Err(self.error()),
                }
            }
            _ => self.set_generic(),
        }
    }

    fn word_or_string(&mut self) -> Result<SettingValue> {
        let at = self.here();
        let text = if self.at_string() { self.string()? } else { self.nonreserved()?.value };
        Ok(SettingValue::String(text, at))
    }

    /// `name = values`, `name TO DEFAULT`, `name FROM CURRENT`
    fn set_generic(&mut self) -> Result<VariableSet> {
        let name = self.setting_name()?;
        if self.word(Kw::FROM) {
            self.expect_word(Kw::CURRENT)?;
            return Ok(VariableSet::Current(name));
        }
        if !self.word(Kw::TO) && !self.accept(Kind::Equal) {
            return Err(self.error());
        }
        if self.word(Kw::DEFAULT) {
            return Ok(VariableSet::Default(name));
        }
        let values = self.list(Parser::setting_value)?;
        Ok(VariableSet::Value { name, values })
    }

    /// var_name
    fn setting_name(&mut self) -> Result<SettingName> {
        let first = self.column_name()?;
        let mut name = SettingName { value: first.value, at: first.at };
        while self.accept(Kind::Dot) {
            name.value.push('.');
            name.value.push_str(&self.column_name()?.value);
        }
        Ok(name)
    }

    /// var_value
    fn setting_value(&mut self) -> Result<SettingValue> {
        let at = self.here();
        if matches!(self.kind(), Kind::Integer | Kind::Float | Kind::Plus | Kind::Minus) {
            return self.numeric_value(at);
        }
        match self.boolean_or_string()? {
            DefArg::String(text) => Ok(SettingValue::String(text, at)),
            _ => Err(self.error()),
        }
    }

    fn numeric_value(&mut self, at: Location) -> Result<SettingValue> {
        Ok(match self.signed_number()? {
            Const::Integer(number) => SettingValue::Integer(number, at),
            Const::Float(text) => SettingValue::Float(text, at),
            _ => return Err(self.error()),
        })
    }

    /// zone_value
    fn time_zone(&mut self, name: SettingName) -> Result<VariableSet> {
        let at = self.here();
        if self.any(&[Kw::DEFAULT, Kw::LOCAL]).is_some() {
            return Ok(VariableSet::Default(name));
        }
        let value = match self.kind() {
            Kind::Integer | Kind::Float | Kind::Plus | Kind::Minus => self.numeric_value(at)?,
            Kind::Word if self.kw() == Kw::INTERVAL => {
                self.take();
                let mut ty = TypeName::system("interval", at);
                let precise = self.kind() == Kind::Open;
                if precise {
                    self.precision(&mut ty)?;
                }
                let text = self.string()?;
                if !precise {
                    let at = self.here();
                    self.interval_fields(&mut ty)?;
                    if !matches!(ty.interval, None | Some(IntervalFields::Hour | IntervalFields::HourToMinute)) {
                        let message = "time zone interval must be HOUR or HOUR TO MINUTE";
                        return Err(self.invalid("42601", message, at));
                    }
                }
                SettingValue::Interval(Box::new(ty), text, at)
            }
            Kind::Word if self.kw() != Kw::OTHER => return Err(self.error()),
            Kind::Word | Kind::Quoted | Kind::UnicodeQuoted => SettingValue::String(self.take_name()?.value, at),
            _ => SettingValue::String(self.string()?, at),
        };
        Ok(VariableSet::Value { name, values: vec![value] })
    }

    /// A setting of RESET and SHOW that has several words.
    fn spelled_setting(&mut self) -> Result<Option<SettingName>> {
        let at = self.here();
        let value = match self.kw() {
            Kw::TIME if self.peek_is(1, Kw::ZONE) => "timezone",
            Kw::TRANSACTION if self.peek_is(1, Kw::ISOLATION) => {
                self.take();
                self.take();
                self.expect_word(Kw::LEVEL)?;
                return Ok(Some(SettingName { value: "transaction_isolation".to_owned(), at }));
            }
            Kw::SESSION if self.peek_is(1, Kw::AUTHORIZATION) => "session_authorization",
            _ => return Ok(None),
        };
        self.take();
        self.take();
        Ok(Some(SettingName { value: value.to_owned(), at }))
    }

    pub(super) fn reset(&mut self) -> Result<Statement> {
        self.take();
        let action = self.reset_rest()?;
        Ok(Statement::Set(VariableSetStmt { local: false, action }))
    }

    fn reset_rest(&mut self) -> Result<VariableSet> {
        if self.word(Kw::ALL) {
            return Ok(VariableSet::ResetAll);
        }
        if let Some(name) = self.spelled_setting()? {
            return Ok(VariableSet::Reset(name));
        }
        self.setting_name().map(VariableSet::Reset)
    }

    pub(super) fn show(&mut self) -> Result<Statement> {
        self.take();
        if self.word(Kw::ALL) {
            return Ok(Statement::Show(VariableShow::All));
        }
        if let Some(name) = self.spelled_setting()? {
            return Ok(Statement::Show(VariableShow::Name(name)));
        }
        Ok(Statement::Show(VariableShow::Name(self.setting_name()?)))
    }

    pub(super) fn discard(&mut self) -> Result<Statement> {
        self.take();
        let what = match self.any(&[Kw::ALL, Kw::TEMP, Kw::TEMPORARY, Kw::PLANS, Kw::SEQUENCES]) {
            Some(Kw::ALL) => Discard::All,
            Some(Kw::PLANS) => Discard::Plans,
            Some(Kw::SEQUENCES) => Discard::Sequences,
            Some(_) => Discard::Temporary,
            None => return Err(self.error()),
        };
        Ok(Statement::Discard(what))
    }

    pub(super) fn prepare(&mut self) -> Result<Statement> {
        self.take();
        if self.kw() == Kw::TRANSACTION
            && matches!(self.peek(1).kind, Kind::String | Kind::EscapeString | Kind::UnicodeString | Kind::DollarString)
        {
            self.take();
            return Ok(Statement::Transaction(TransactionStmt::Prepare(self.string()?)));
        }
        let name = self.column_name()?;
        let types = if self.kind() == Kind::Open { self.bracketed(Parser::type_name)? } else { Vec::new() };
        self.expect_word(Kw::AS)?;
        let start = self.token().start;
        let statement = Box::new(self.level(Parser::preparable)?);
        let span = self.span_from(start);
        Ok(Statement::Prepare(Box::new(PrepareStmt { name, types, statement, span })))
    }

    pub(super) fn execute(&mut self) -> Result<ExecuteStmt> {
        self.take();
        let name = self.column_name()?;
        let arguments = if self.kind() == Kind::Open { self.bracketed(Parser::expr)? } else { Vec::new() };
        Ok(ExecuteStmt { name, arguments })
    }

    pub(super) fn deallocate(&mut self) -> Result<Statement> {
        self.take();
        if self.kw() == Kw::PREPARE && !matches!(self.peek(1).kind, Kind::End | Kind::Semicolon) {
            self.take();
        }
        if self.word(Kw::ALL) {
            return Ok(Statement::Deallocate(None));
        }
        Ok(Statement::Deallocate(Some(self.column_name()?)))
    }

    pub(super) fn declare(&mut self) -> Result<Statement> {
        self.take();
        let name = self.column_name()?;
        let mut binary = false;
        let (mut scroll, mut insensitive) = (None, None);
        let mut conflict = None;
        loop {
            match self.any(&[Kw::NO, Kw::SCROLL, Kw::BINARY, Kw::ASENSITIVE, Kw::INSENSITIVE]) {
                Some(Kw::NO) => {
                    self.expect_word(Kw::SCROLL)?;
                    conflict = conflict.or(exclusive(&mut scroll, false, "SCROLL", "NO SCROLL"));
                }
                Some(Kw::SCROLL) => conflict = conflict.or(exclusive(&mut scroll, true, "SCROLL", "NO SCROLL")),
                Some(Kw::BINARY) => binary = true,
                Some(kw) => {
                    let is = kw == Kw::INSENSITIVE;
                    conflict = conflict.or(exclusive(&mut insensitive, is, "ASENSITIVE", "INSENSITIVE"));
                }
                None => break,
            }
        }
        self.expect_word(Kw::CURSOR)?;
        let hold = match self.any(&[Kw::WITH, Kw::WITHOUT]) {
            Some(kw) => {
                self.expect_word(Kw::HOLD)?;
                kw == Kw::WITH
            }
            None => false,
        };
        self.expect_word(Kw::FOR)?;
        let query = self.query()?;
        if let Some(message) = conflict {
            return Err(self.invalid("42P11", message, self.here()));
        }
        let declare = DeclareCursorStmt { name, binary, scroll, insensitive, hold, query };
        Ok(Statement::DeclareCursor(Box::new(declare)))
    }

    pub(super) fn close(&mut self) -> Result<Statement> {
        self.take();
        if self.word(Kw::ALL) {
            return Ok(Statement::ClosePortal(None));
        }
        Ok(Statement::ClosePortal(Some(self.column_name()?)))
    }

    /// FETCH and MOVE.
    pub(super) fn fetch_cursor(&mut self) -> Result<Statement> {
        use FetchDirection::*;
        let is_move = self.take().kw == Kw::MOVE;
        let is_name = self.kw() != Kw::ALL && matches!(self.peek(1).kind, Kind::End | Kind::Semicolon);
        let words =
            [Kw::NEXT, Kw::PRIOR, Kw::FIRST, Kw::LAST, Kw::ABSOLUTE, Kw::RELATIVE, Kw::ALL, Kw::FORWARD, Kw::BACKWARD];
        let word = if is_name { None } else { self.any(&words) };
        let (direction, count) = match word {
            Some(Kw::NEXT) => (Forward, Some(1)),
            Some(Kw::PRIOR) => (Backward, Some(1)),
            Some(Kw::FIRST) => (Absolute, Some(1)),
            Some(Kw::LAST) => (Absolute, Some(-1)),
            Some(Kw::ABSOLUTE) => (Absolute, Some(i64::from(self.signed_integer()?))),
            Some(Kw::RELATIVE) => (Relative, Some(i64::from(self.signed_integer()?))),
            Some(Kw::ALL) => (Forward, None),
            Some(kw) => {
                let direction = if kw == Kw::FORWARD { Forward } else { Backward };
                if self.word(Kw::ALL) { (direction, None) } else { (direction, Some(self.optional_count()?)) }
            }
            None => (Forward, Some(self.optional_count()?)),
        };
        self.any(&[Kw::FROM, Kw::IN]);
        let cursor = self.column_name()?;
        Ok(Statement::Fetch(FetchStmt { is_move, direction, count, cursor }))
    }

    fn optional_count(&mut self) -> Result<i64> {
        match self.kind() {
            Kind::Integer | Kind::Plus | Kind::Minus => self.signed_integer().map(i64::from),
            _ => Ok(1),
        }
    }

    pub(super) fn explain(&mut self) -> Result<Statement> {
        self.take();
        let mut options = Vec::new();
        if self.kind() == Kind::Open {
            let next = self.peek(1);
            let is_query = next.kind == Kind::Open
                || matches!(next.kw, Kw::SELECT | Kw::WITH | Kw::TABLE)
                || next.kw == Kw::VALUES && self.peek(2).kind == Kind::Open;
            if !is_query {
                options = self.utility_options()?;
            }
        } else {
            for (kws, name) in [(&[Kw::ANALYZE, Kw::ANALYSE][..], "analyze"), (&[Kw::VERBOSE][..], "verbose")] {
                let at = self.here();
                if self.any(kws).is_some() {
                    options.push(DefElem { namespace: None, name: name.to_owned(), value: None, at });
                }
            }
        }
        let statement = self.level(Parser::explainable)?;
        Ok(Statement::Explain(Box::new(ExplainStmt { options, statement: Box::new(statement) })))
    }

    /// ExplainableStmt
    fn explainable(&mut self) -> Result<Statement> {
        match self.kw() {
            Kw::DECLARE => self.declare(),
            Kw::EXECUTE => self.execute().map(Statement::Execute),
            Kw::REFRESH => self.refresh(),
            Kw::CREATE => self.create_from_query(),
            _ => self.preparable(),
        }
    }

    /// `(name value, ...)` of EXPLAIN, VACUUM and the like.
    fn utility_options(&mut self) -> Result<Vec<DefElem>> {
        self.bracketed(|parser| {
            let at = parser.here();
            // FORMAT is a keyword of its own before JSON.
            let name = match parser.any(&[Kw::ANALYZE, Kw::ANALYSE, Kw::FORMAT]) {
                Some(Kw::FORMAT) => "format".to_owned(),
                Some(_) => "analyze".to_owned(),
                None => parser.nonreserved()?.value,
            };
            let value = match parser.kind() {
                Kind::Comma | Kind::Close => None,
                _ => Some(parser.option_value()?),
            };
            Ok(DefElem { namespace: None, name, value, at })
        })
    }

    /// VACUUM and ANALYZE.
    pub(super) fn vacuum(&mut self) -> Result<Statement> {
        let is_vacuum = self.take().kw == Kw::VACUUM;
        let mut options = Vec::new();
        if self.kind() == Kind::Open {
            options = self.utility_options()?;
        } else {
            let words: [(&[Kw], &str); 4] = [
                (&[Kw::FULL], "full"),
                (&[Kw::FREEZE], "freeze"),
                (&[Kw::VERBOSE], "verbose"),
                (&[Kw::ANALYZE, Kw::ANALYSE], "analyze"),
            ];
            for (kws, name) in words {
                let at = self.here();
                if (is_vacuum || name == "verbose") && self.any(kws).is_some() {
                    options.push(DefElem { namespace: None, name: name.to_owned(), value: None, at });
                }
            }
        }
        let relations = if self.at_column_name() {
            self.list(|parser| {
                let relation = parser.relation_name()?;
                Ok(VacuumRelation { relation, columns: parser.optional_columns()? })
            })?
        } else {
            Vec::new()
        };
        Ok(Statement::Vacuum(VacuumStmt { is_vacuum, options, relations }))
    }

    pub(super) fn cluster(&mut self) -> Result<Statement> {
        self.take();
        let mut options = Vec::new();
        let at = self.here();
        let listed = self.kind() == Kind::Open;
        if listed {
            options = self.utility_options()?;
        } else if self.word(Kw::VERBOSE) {
            options.push(DefElem { namespace: None, name: "verbose".to_owned(), value: None, at });
        }
        if !listed && !self.at_column_name() {
            return Ok(Statement::Cluster(ClusterStmt { options, relation: None, index: None }));
        }
        let first = self.relation_name()?;
        if !listed && first.schema.is_none() && self.word(Kw::ON) {
            let index = Some(Ident { value: first.name, at: first.at });
            let relation = Some(self.relation_name()?);
            return Ok(Statement::Cluster(ClusterStmt { options, relation, index }));
        }
        let index = self.access_method()?;
        Ok(Statement::Cluster(ClusterStmt { options, relation: Some(first), index }))
    }

    pub(super) fn reindex(&mut self) -> Result<Statement> {
        self.take();
        let mut options = if self.kind() == Kind::Open { self.utility_options()? } else { Vec::new() };
        let Some(kw) = self.any(&[Kw::INDEX, Kw::TABLE, Kw::SCHEMA, Kw::SYSTEM, Kw::DATABASE]) else {
            return Err(self.error());
        };
        let at = self.here();
        if self.word(Kw::CONCURRENTLY) {
            options.push(DefElem { namespace: None, name: "concurrently".to_owned(), value: None, at });
        }
        let target = match kw {
            Kw::INDEX => ReindexTarget::Index(self.relation_name()?),
            Kw::TABLE => ReindexTarget::Table(self.relation_name()?),
            Kw::SCHEMA => ReindexTarget::Schema(self.column_name()?),
            kw => {
                let name = if self.at_end() { None } else { Some(self.column_name()?) };
                if kw == Kw::SYSTEM { ReindexTarget::System(name) } else { ReindexTarget::Database(name) }
            }
        };
        Ok(Statement::Reindex(Box::new(ReindexStmt { options, target })))
    }

    pub(super) fn lock(&mut self) -> Result<Statement> {
        self.take();
        self.word(Kw::TABLE);
        let relations = self.list(Parser::relation_expr)?;
        let mut mode = LockMode::AccessExclusive;
        if self.word(Kw::IN) {
            mode = self.lock_mode()?;
            self.expect_word(Kw::MODE)?;
        }
        Ok(Statement::Lock(LockStmt { relations, mode, nowait: self.word(Kw::NOWAIT) }))
    }

    fn lock_mode(&mut self) -> Result<LockMode> {
        Ok(match self.any(&[Kw::ACCESS, Kw::ROW, Kw::SHARE, Kw::EXCLUSIVE]) {
            Some(Kw::EXCLUSIVE) => LockMode::Exclusive,
            Some(Kw::SHARE) => match self.any(&[Kw::UPDATE, Kw::ROW]) {
                Some(Kw::UPDATE) => {
                    self.expect_word(Kw::EXCLUSIVE)?;
                    LockMode::ShareUpdateExclusive
                }
                Some(_) => {
                    self.expect_word(Kw::EXCLUSIVE)?;
                    LockMode::ShareRowExclusive
                }
                None => LockMode::Share,
            },
            Some(first) => {
                let share = match self.any(&[Kw::SHARE, Kw::EXCLUSIVE]) {
                    Some(kw) => kw == Kw::SHARE,
                    None => return Err(self.error()),
                };
                match (first == Kw::ACCESS, share) {
                    (true, true) => LockMode::AccessShare,
                    (true, false) => LockMode::AccessExclusive,
                    (false, true) => LockMode::RowShare,
                    (false, false) => LockMode::RowExclusive,
                }
            }
            None => return Err(self.error()),
        })
    }

    /// LISTEN, UNLISTEN, NOTIFY.
    pub(super) fn channel(&mut self) -> Result<Statement> {
        match self.take().kw {
            Kw::LISTEN => Ok(Statement::Listen(self.column_name()?)),
            Kw::UNLISTEN if self.accept(Kind::Star) => Ok(Statement::Unlisten(None)),
            Kw::UNLISTEN => Ok(Statement::Unlisten(Some(self.column_name()?))),
            _ => {
                let channel = self.column_name()?;
                let payload = if self.accept(Kind::Comma) { Some(self.string()?) } else { None };
                Ok(Statement::Notify(NotifyStmt { channel, payload }))
            }
        }
    }

    pub(super) fn do_block(&mut self) -> Result<Statement> {
        self.take();
        let mut options = Vec::new();
        loop {
            let at = self.here();
            let (name, value) = if self.at_string() {
                ("as", self.string()?)
            } else if self.word(Kw::LANGUAGE) {
                let value = if self.at_string() { self.string()? } else { self.nonreserved()?.value };
                ("language", value)
            } else if options.is_empty() {
                return Err(self.error());
            } else {
                return Ok(Statement::Do(DoStmt { options }));
            };
            options.push(DefElem { namespace: None, name: name.to_owned(), value: Some(DefArg::String(value)), at });
        }
    }

    pub(super) fn call_statement(&mut self) -> Result<Statement> {
        self.take();
        let token = self.token();
        let may_call =
            token.kind != Kind::Word || token.kw.category() != Category::Column || { self.peek(1).kind == Kind::Dot };
        if !may_call {
            self.column_name()?;
            return Err(self.error());
        }
        let first = if self.at_column_name() { self.take_name()? } else { self.function_word()? };
        let name = self.rest_of_name(first)?;
        let call = self.level(|parser| parser.application(name))?;
        Ok(Statement::Call(Box::new(call)))
    }

    pub(super) fn refresh(&mut self) -> Result<Statement> {
        self.expect_words(&[Kw::REFRESH, Kw::MATERIALIZED, Kw::VIEW])?;
        let concurrently = self.word(Kw::CONCURRENTLY);
        let relation = self.relation_name()?;
        let with_data = self.with_data()?;
        Ok(Statement::RefreshMaterializedView(RefreshMatViewStmt { relation, concurrently, with_data }))
    }
}

/// Sets one of two options that exclude each other; returns the message if both are given.
fn exclusive(slot: &mut Option<bool>, value: bool, yes: &str, no: &str) -> Option<String> {
    let conflicts = slot.replace(value).is_some_and(|old| old != value);
    conflicts.then(|| format!("cannot specify both {yes} and {no}"))
}
