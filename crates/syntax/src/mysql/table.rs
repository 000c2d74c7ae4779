//! CREATE TABLE, CREATE INDEX, CREATE VIEW: columns, constraints, options.

use super::keyword::Kw;
use super::lexer::Kind;
use super::parser::Parser;
use crate::error::{Problem, Result};
use crate::tree::{
    Check, ColumnDef, ColumnOption, ColumnType, CreateIndex, CreateTable, CreateView, DefaultValue, Duplicates, Expr,
    ExprKind, ForeignKey, Ident, IndexDef, IndexKind, IndexOptions, KeyPart, Name, OptionValue, PartKey, References,
    ReferentialAction, Statement, TableConstraint, TableOption, UnaryOp, UserName, ViewAlgorithm, ViewCheck,
};

/// Options whose value is a number.
const NUMBERS: [Kw; 7] = [
    Kw::AUTO_INCREMENT,
    Kw::MAX_ROWS,
    Kw::MIN_ROWS,
    Kw::AVG_ROW_LENGTH,
    Kw::CHECKSUM,
    Kw::TABLE_CHECKSUM,
    Kw::DELAY_KEY_WRITE,
];

/// Options whose value is a number or DEFAULT.
const NUMBERS_OR_DEFAULT: [Kw; 4] =
    [Kw::STATS_PERSISTENT, Kw::STATS_AUTO_RECALC, Kw::STATS_SAMPLE_PAGES, Kw::PACK_KEYS];

/// Options whose value is a string.
const TEXTS: [Kw; 7] = [
    Kw::COMMENT,
    Kw::CONNECTION,
    Kw::PASSWORD,
    Kw::COMPRESSION,
    Kw::ENCRYPTION,
    Kw::ENGINE_ATTRIBUTE,
    Kw::SECONDARY_ENGINE_ATTRIBUTE,
];

impl Parser<'_> {
    /// After CREATE, at TEMPORARY or TABLE.
    pub(super) fn create_table(&mut self) -> Result<Statement> {
        let temporary = self.word(Kw::TEMPORARY);
        self.expect_word(Kw::TABLE)?;
        self.is_outermost = false;
        let if_not_exists = self.if_not_exists();
        let mut create = CreateTable {
            temporary,
            if_not_exists,
            name: self.name()?,
            like: None,
            columns: Vec::new(),
            constraints: Vec::new(),
            options: Vec::new(),
            duplicates: Duplicates::Fail,
            query: None,
        };
        if self.word(Kw::LIKE) {
            create.like = Some(self.name()?);
            return Ok(Statement::CreateTable(Box::new(create)));
        }
        if self.at(Kind::Open) && !self.begins_query_in_brackets() {
            self.take();
            if self.word(Kw::LIKE) {
                create.like = Some(self.name()?);
                self.expect(Kind::Close)?;
                return Ok(Statement::CreateTable(Box::new(create)));
            }
            self.list(|parser| parser.table_element(&mut create))?;
            self.expect(Kind::Close)?;
        }
        create.options = self.table_options()?;
        if self.kw() == Kw::PARTITION {
            return Err(self.unsupported("PARTITION BY"));
        }
        create.duplicates = match self.any(&[Kw::IGNORE, Kw::REPLACE]) {
            Some(Kw::IGNORE) => Duplicates::Ignore,
            Some(_) => Duplicates::Replace,
            None => Duplicates::Fail,
        };
        let is_query = self.word(Kw::AS) || create.duplicates != Duplicates::Fail;
        if is_query || self.begins_query() || self.at(Kind::Open) {
            create.query = Some(Box::new(self.query()?));
        }
        Ok(Statement::CreateTable(Box::new(create)))
    }

    fn table_element(&mut self, create: &mut CreateTable) -> Result<()> {
        match self.table_constraint()? {
            Some(constraint) => create.constraints.push(constraint),
            None => {
                let name = self.ident()?;
                create.columns.push(self.column_def(name)?);
            }
        }
        Ok(())
    }

    /// A key or constraint of a table; None: a column begins here.
    pub(super) fn table_constraint(&mut self) -> Result<Option<TableConstraint>> {
        let mut constraint = None;
        let has_symbol = self.word(Kw::CONSTRAINT);
        if has_symbol && !matches!(self.kw(), Kw::PRIMARY | Kw::UNIQUE | Kw::FOREIGN | Kw::CHECK) {
            constraint = Some(self.ident()?);
        }
        let kind = match self.kw() {
            Kw::PRIMARY => {
                self.take();
                self.expect_word(Kw::KEY)?;
                IndexKind::Primary
            }
            Kw::UNIQUE => {
                self.take();
                self.any(&[Kw::INDEX, Kw::KEY]);
                IndexKind::Unique
            }
            Kw::INDEX | Kw::KEY if !has_symbol => {
                self.take();
                IndexKind::Plain
            }
            Kw::FULLTEXT | Kw::SPATIAL if !has_symbol => {
                let kind = if self.take().kw == Kw::FULLTEXT { IndexKind::Fulltext } else { IndexKind::Spatial };
                self.any(&[Kw::INDEX, Kw::KEY]);
                kind
            }
            Kw::FOREIGN => {
                self.take();
                self.expect_word(Kw::KEY)?;
                let index = if self.at(Kind::Open) { None } else { Some(self.ident()?) };
                let columns = self.idents_in_brackets()?;
                let references = self.references()?;
                return Ok(Some(TableConstraint::Foreign(ForeignKey { constraint, index, columns, references })));
            }
            Kw::CHECK => return self.check(constraint).map(|check| Some(TableConstraint::Check(check))),
            _ if has_symbol => return Err(self.error()),
            _ => return Ok(None),
        };
        self.index_def(kind, constraint).map(|index| Some(TableConstraint::Index(index)))
    }

    /// After the words that say of what kind the index is: `[name] [USING BTREE] (parts) options`.
    fn index_def(&mut self, kind: IndexKind, constraint: Option<Ident>) -> Result<IndexDef> {
        let mut options = IndexOptions::default();
        let is_type = |parser: &mut Parser<'_>| {
            parser.kw() == Kw::USING
                || parser.kw() == Kw::TYPE && matches!(parser.peek(1).kw, Kw::BTREE | Kw::HASH | Kw::RTREE)
        };
        let name = if self.at(Kind::Open) || is_type(self) { None } else { Some(self.ident()?) };
        if is_type(self) {
            options.algorithm = Some(self.index_type()?);
        }
        let parts = self.key_parts()?;
        self.index_options(&mut options)?;
        Ok(IndexDef { kind, constraint, name, parts, options })
    }

    /// `USING BTREE`, `TYPE BTREE`
    fn index_type(&mut self) -> Result<String> {
        self.take();
        let kw = self.any(&[Kw::BTREE, Kw::HASH, Kw::RTREE]).ok_or_else(|| self.error())?;
        Ok(kw.text().to_ascii_lowercase())
    }

    pub(super) fn key_parts(&mut self) -> Result<Vec<KeyPart>> {
        self.expect(Kind::Open)?;
        let parts = self.list(|parser| {
            let key = if parser.accept(Kind::Open) {
                let expr = parser.expr()?;
                parser.expect(Kind::Close)?;
                PartKey::Expr(expr)
            } else {
                let name = parser.ident()?;
                PartKey::Column { name, length: parser.length()? }
            };
            Ok(KeyPart { key, descending: parser.direction() })
        })?;
        self.expect(Kind::Close)?;
        Ok(parts)
    }

    fn index_options(&mut self, options: &mut IndexOptions) -> Result<()> {
        loop {
            match self.kw() {
                Kw::USING | Kw::TYPE => options.algorithm = Some(self.index_type()?),
                Kw::COMMENT => {
                    self.take();
                    options.comment = Some(self.string()?);
                }
                Kw::VISIBLE | Kw::INVISIBLE => options.visible = Some(self.take().kw == Kw::VISIBLE),
                Kw::KEY_BLOCK_SIZE => {
                    self.take();
                    self.equals();
                    options.key_block_size = Some(self.number()?);
                }
                Kw::WITH if self.peek(1).is(Kw::PARSER) => {
                    self.take();
                    self.take();
                    options.parser = Some(self.identifier()?);
                }
                Kw::ENGINE_ATTRIBUTE | Kw::SECONDARY_ENGINE_ATTRIBUTE => {
                    self.take();
                    self.equals();
                    options.engine_attribute = Some(self.string()?);
                }
                _ => return Ok(()),
            }
        }
    }

    /// At REFERENCES.
    fn references(&mut self) -> Result<References> {
        self.expect_word(Kw::REFERENCES)?;
        let table = self.name()?;
        let columns = if self.at(Kind::Open) { self.idents_in_brackets()? } else { Vec::new() };
        if self.word(Kw::MATCH) {
            // MATCH FULL and PARTIAL are read and mean nothing, as in MySQL.
            if !self.word(Kw::FULL) && !self.word(Kw::PARTIAL) {
                self.expect_word(Kw::SIMPLE)?;
            }
        }
        let (mut on_delete, mut on_update) = (None, None);
        while self.kw() == Kw::ON {
            self.take();
            let is_delete = match self.any(&[Kw::DELETE, Kw::UPDATE]) {
                Some(Kw::DELETE) if on_delete.is_none() => true,
                Some(Kw::UPDATE) if on_update.is_none() => false,
                _ => return Err(self.error_at(self.last_end)),
            };
            let action = match self.take().kw {
                Kw::RESTRICT => ReferentialAction::Restrict,
                Kw::CASCADE => ReferentialAction::Cascade,
                Kw::SET if self.word(Kw::NULL) => ReferentialAction::SetNull,
                Kw::SET if self.word(Kw::DEFAULT) => ReferentialAction::SetDefault,
                Kw::NO if self.word(Kw::ACTION) => ReferentialAction::NoAction,
                _ => return Err(self.error_at(self.last_end)),
            };
            *(if is_delete { &mut on_delete } else { &mut on_update }) = Some(action);
        }
        Ok(References { table, columns, on_delete, on_update })
    }

    /// At CHECK.
    fn check(&mut self, name: Option<Ident>) -> Result<Check> {
        self.take();
        self.expect(Kind::Open)?;
        let expr = self.expr()?;
        self.expect(Kind::Close)?;
        let enforced = self.enforced()?.unwrap_or(true);
        Ok(Check { name, expr, enforced })
    }

    /// `[NOT] ENFORCED`
    pub(super) fn enforced(&mut self) -> Result<Option<bool>> {
        if self.kw() == Kw::NOT && self.peek(1).is(Kw::ENFORCED) {
            self.take();
            self.take();
            return Ok(Some(false));
        }
        Ok(self.word(Kw::ENFORCED).then_some(true))
    }

    /// A column's type and options, after its name.
    pub(super) fn column_def(&mut self, name: Ident) -> Result<ColumnDef> {
        let mut ty = self.column_type()?;
        let mut options = Vec::new();
        self.column_options(&mut ty, &mut options)?;
        Ok(ColumnDef { name, ty, options })
    }

    fn column_options(&mut self, ty: &mut ColumnType, options: &mut Vec<ColumnOption>) -> Result<()> {
        let mut generated = false;
        loop {
            let option = match self.kw() {
                Kw::NULL => {
                    self.take();
                    ColumnOption::Null
                }
                Kw::NOT if self.peek(1).is(Kw::NULL) => {
                    self.take();
                    self.take();
                    ColumnOption::NotNull
                }
                Kw::NOT if matches!(options.last(), Some(ColumnOption::Check(_))) => {
                    return Err(self.error());
                }
                Kw::DEFAULT => {
                    self.take();
                    ColumnOption::Default(self.default_value()?)
                }
                Kw::ON => {
                    self.take();
                    self.expect_word(Kw::UPDATE)?;
                    ColumnOption::OnUpdateNow(self.now()?.ok_or_else(|| self.error())?)
                }
                Kw::AUTO_INCREMENT => {
                    self.take();
                    ColumnOption::AutoIncrement
                }
                Kw::SERIAL if self.peek(1).is(Kw::DEFAULT) => {
                    self.take();
                    self.take();
                    self.expect_word(Kw::VALUE)?;
                    options.extend([ColumnOption::NotNull, ColumnOption::AutoIncrement]);
                    ColumnOption::Unique
                }
                Kw::PRIMARY => {
                    self.take();
                    self.expect_word(Kw::KEY)?;
                    ColumnOption::PrimaryKey
                }
                Kw::KEY => {
                    self.take();
                    ColumnOption::PrimaryKey
                }
                Kw::UNIQUE => {
                    self.take();
                    self.word(Kw::KEY);
                    ColumnOption::Unique
                }
                Kw::COMMENT => {
                    self.take();
                    ColumnOption::Comment(self.string()?)
                }
                Kw::COLLATE => {
                    let is_second = ty.collation.is_some()
                        || options.iter().any(|option| matches!(option, ColumnOption::Collate(_)));
                    if is_second {
                        return Err(self.error());
                    }
                    self.take();
                    ColumnOption::Collate(self.charset_name()?)
                }
                // They belong to the type, but applications write them behind NOT NULL.
                Kw::CHARSET | Kw::CHARACTER if !options.is_empty() && ty.charset.is_none() => {
                    return Err(self.error());
                }
                Kw::VISIBLE | Kw::INVISIBLE => ColumnOption::Visible(self.take().kw == Kw::VISIBLE),
                Kw::GENERATED | Kw::AS if !generated => {
                    if self.word(Kw::GENERATED) {
                        self.expect_word(Kw::ALWAYS)?;
                    }
                    self.expect_word(Kw::AS)?;
                    self.expect(Kind::Open)?;
                    let expr = self.expr()?;
                    self.expect(Kind::Close)?;
                    generated = true;
                    let stored = self.any(&[Kw::VIRTUAL, Kw::STORED]) == Some(Kw::STORED);
                    ColumnOption::Generated { expr, stored }
                }
                Kw::CONSTRAINT | Kw::CHECK => {
                    let has_symbol = self.word(Kw::CONSTRAINT);
                    let name = if has_symbol && self.kw() != Kw::CHECK { Some(self.ident()?) } else { None };
                    if self.kw() != Kw::CHECK {
                        return Err(self.error());
                    }
                    ColumnOption::Check(self.check(name)?)
                }
                // Nothing follows it.
                Kw::REFERENCES => {
                    options.push(ColumnOption::References(self.references()?));
                    return Ok(());
                }
                Kw::COLUMN_FORMAT => {
                    self.take();
                    let kw = self.any(&[Kw::DEFAULT, Kw::FIXED, Kw::DYNAMIC]).ok_or_else(|| self.error())?;
                    other("column_format", kw.text())
                }
                Kw::STORAGE => {
                    self.take();
                    let token = self.token();
                    let value = self.text_of(token).to_owned();
                    if !["disk", "memory", "default"].iter().any(|known| value.eq_ignore_ascii_case(known)) {
                        return Err(self.error());
                    }
                    self.take();
                    other("storage", &value)
                }
                kw @ (Kw::ENGINE_ATTRIBUTE | Kw::SECONDARY_ENGINE_ATTRIBUTE) => {
                    self.take();
                    self.equals();
                    let value = self.string()?;
                    other(&kw.text().to_ascii_lowercase(), &value)
                }
                Kw::SRID => {
                    self.take();
                    let value = self.number()?.to_string();
                    other("srid", &value)
                }
                _ => return Ok(()),
            };
            options.push(option);
        }
    }

    /// NOW and its synonyms; None: something else.
    fn now(&mut self) -> Result<Option<u64>> {
        let is_now = matches!(self.kw(), Kw::CURRENT_TIMESTAMP | Kw::LOCALTIME | Kw::LOCALTIMESTAMP)
            || self.kw() == Kw::NOW && self.peek(1).kind == Kind::Open;
        if !is_now {
            return Ok(None);
        }
        self.take();
        if !self.accept(Kind::Open) {
            return Ok(Some(0));
        }
        let scale = if self.at(Kind::Close) { 0 } else { self.number()? };
        self.expect(Kind::Close)?;
        Ok(Some(scale))
    }

    /// After DEFAULT.
    pub(super) fn default_value(&mut self) -> Result<DefaultValue> {
        if let Some(scale) = self.now()? {
            return Ok(DefaultValue::Now(scale));
        }
        if self.accept(Kind::Open) {
            let expr = self.expr()?;
            self.expect(Kind::Close)?;
            return Ok(DefaultValue::Expression(expr));
        }
        self.signed_constant().map(DefaultValue::Constant)
    }

    /// A literal with a sign or introducer, as an expression.
    fn signed_constant(&mut self) -> Result<Expr> {
        let start = self.token().start;
        let sign = match self.kind() {
            Kind::Minus => Some(UnaryOp::Minus),
            Kind::Plus => Some(UnaryOp::Plus),
            _ => None,
        };
        if let Some(op) = sign {
            self.take();
            if !matches!(self.kind(), Kind::Integer | Kind::Decimal | Kind::Float) {
                return Err(self.error());
            }
            let from = self.token().start;
            let literal = self.literal()?;
            let operand = Box::new(self.make(ExprKind::Literal(literal), from));
            return Ok(self.make(ExprKind::Unary { op, operand }, start));
        }
        let is_constant = match self.kind() {
            Kind::Word => {
                matches!(self.kw(), Kw::NULL | Kw::TRUE | Kw::FALSE)
                    || matches!(self.kw(), Kw::DATE | Kw::TIME | Kw::TIMESTAMP) && self.peek(1).kind == Kind::String
            }
            Kind::Integer
            | Kind::Decimal
            | Kind::Float
            | Kind::String
            | Kind::Introducer
            | Kind::National
            | Kind::Hex
            | Kind::Bits => true,
            _ => false,
        };
        if !is_constant {
            return Err(self.error());
        }
        if self.kind() == Kind::Introducer {
            let kind = self.introduced()?;
            return Ok(self.make(kind, start));
        }
        if self.kind() != Kind::Word {
            let literal = self.literal()?;
            return Ok(self.make(ExprKind::Literal(literal), start));
        }
        self.level(Parser::word_primary)
    }

    /// Options of a table, commas between them or not.
    pub(super) fn table_options(&mut self) -> Result<Vec<TableOption>> {
        let mut options = Vec::new();
        while let Some(option) = self.table_option()? {
            options.push(option);
            if self.at(Kind::Comma) {
                self.take();
                if self.at_end() {
                    return Err(self.error());
                }
            }
        }
        Ok(options)
    }

    /// None: no option begins here.
    pub(super) fn table_option(&mut self) -> Result<Option<TableOption>> {
        let kw = self.kw();
        let lower = || kw.text().to_ascii_lowercase();
        let made = |name: String, value| Ok(Some(TableOption { name, value }));
        if NUMBERS.contains(&kw) {
            self.take();
            self.equals();
            return made(lower(), OptionValue::Number(self.number()?));
        }
        if NUMBERS_OR_DEFAULT.contains(&kw) {
            self.take();
            self.equals();
            if self.word(Kw::DEFAULT) {
                return made(lower(), OptionValue::Word("DEFAULT".to_owned()));
            }
            return made(lower(), OptionValue::Number(self.number()?));
        }
        if TEXTS.contains(&kw) {
            self.take();
            self.equals();
            return made(lower(), OptionValue::Text(self.string()?));
        }
        match kw {
            Kw::DEFAULT => {
                self.take();
                match self.charset_option()? {
                    Some(option) => Ok(Some(option)),
                    None => Err(self.error()),
                }
            }
            Kw::CHARACTER | Kw::CHAR | Kw::CHARSET | Kw::COLLATE => self.charset_option(),
            Kw::ENGINE | Kw::SECONDARY_ENGINE => {
                self.take();
                self.equals();
                if kw == Kw::SECONDARY_ENGINE && self.word(Kw::NULL) {
                    return made(lower(), OptionValue::Word("NULL".to_owned()));
                }
                let value = if self.at(Kind::String) {
                    OptionValue::Text(self.string()?)
                } else {
                    OptionValue::Word(self.identifier()?)
                };
                made(lower(), value)
            }
            Kw::ROW_FORMAT => {
                self.take();
                self.equals();
                let words = [Kw::DEFAULT, Kw::FIXED, Kw::DYNAMIC, Kw::COMPRESSED, Kw::REDUNDANT];
                let word = match self.any(&words) {
                    Some(word) => word.text().to_owned(),
                    None => {
                        let token = self.token();
                        let text = self.text_of(token);
                        if !text.eq_ignore_ascii_case("compact") {
                            return Err(self.error());
                        }
                        self.take();
                        "COMPACT".to_owned()
                    }
                };
                made(lower(), OptionValue::Word(word))
            }
            Kw::KEY_BLOCK_SIZE | Kw::AUTOEXTEND_SIZE => {
                self.take();
                self.equals();
                if kw == Kw::AUTOEXTEND_SIZE && self.kind() == Kind::Word {
                    let token = self.take();
                    return made(lower(), OptionValue::Word(self.text_of(token).to_owned()));
                }
                made(lower(), OptionValue::Number(self.number()?))
            }
            Kw::INSERT_METHOD => {
                self.take();
                self.equals();
                let kw = self.any(&[Kw::NO, Kw::FIRST, Kw::LAST]).ok_or_else(|| self.error())?;
                made("insert_method".to_owned(), OptionValue::Word(kw.text().to_owned()))
            }
            Kw::UNION => {
                if self.peek(1).kind != Kind::Equal && self.peek(1).kind != Kind::Open {
                    return Ok(None);
                }
                self.take();
                self.equals();
                self.expect(Kind::Open)?;
                let names: Vec<Name> = if self.at(Kind::Close) { Vec::new() } else { self.names()? };
                self.expect(Kind::Close)?;
                made("union".to_owned(), OptionValue::Names(names))
            }
            Kw::TABLESPACE => {
                self.take();
                self.equals();
                made("tablespace".to_owned(), OptionValue::Word(self.identifier()?))
            }
            Kw::STORAGE => {
                self.take();
                if !matches!(self.kw(), Kw::DISK | Kw::MEMORY) {
                    return Err(self.error());
                }
                let token = self.take();
                made("storage".to_owned(), OptionValue::Word(self.text_of(token).to_owned()))
            }
            Kw::DATA | Kw::INDEX if self.peek(1).is(Kw::DIRECTORY) => {
                self.take();
                self.take();
                self.equals();
                made(format!("{} directory", lower()), OptionValue::Text(self.string()?))
            }
            _ => Ok(None),
        }
    }

    /// `CHARACTER SET [=] x`, `COLLATE [=] x`
    fn charset_option(&mut self) -> Result<Option<TableOption>> {
        let name = if self.charset_words() {
            "charset"
        } else if self.word(Kw::COLLATE) {
            "collate"
        } else {
            return Ok(None);
        };
        self.equals();
        let value = if self.word(Kw::DEFAULT) {
            OptionValue::Word("DEFAULT".to_owned())
        } else {
            OptionValue::Word(self.charset_name()?)
        };
        Ok(Some(TableOption { name: name.to_owned(), value }))
    }

    /// After CREATE, at UNIQUE, FULLTEXT, SPATIAL or INDEX.
    pub(super) fn create_index(&mut self) -> Result<Statement> {
        let kind = match self.any(&[Kw::UNIQUE, Kw::FULLTEXT, Kw::SPATIAL]) {
            Some(Kw::UNIQUE) => IndexKind::Unique,
            Some(Kw::FULLTEXT) => IndexKind::Fulltext,
            Some(_) => IndexKind::Spatial,
            None => IndexKind::Plain,
        };
        self.expect_word(Kw::INDEX)?;
        let name = Some(self.ident()?);
        let mut options = IndexOptions::default();
        if matches!(self.kw(), Kw::USING | Kw::TYPE) {
            options.algorithm = Some(self.index_type()?);
        }
        self.expect_word(Kw::ON)?;
        let table = self.name()?;
        let parts = self.key_parts()?;
        self.index_options(&mut options)?;
        self.algorithm_and_lock()?;
        let index = IndexDef { kind, constraint: None, name, parts, options };
        Ok(Statement::CreateIndex(Box::new(CreateIndex { table, index })))
    }

    /// ALGORITHM and LOCK of CREATE INDEX and DROP INDEX: there is one way.
    pub(super) fn algorithm_and_lock(&mut self) -> Result<()> {
        let mut taken = Vec::new();
        while let Some(what) = self.any(&[Kw::ALGORITHM, Kw::LOCK]) {
            if taken.contains(&what) {
                return Err(self.error_at(self.last_end - what.text().len() as u32));
            }
            taken.push(what);
            self.equals();
            let token = self.token();
            let word = self.alter_word()?;
            check_alter_word(what, &word).map_err(|problem| crate::Error { problem, at: token.start as usize })?;
        }
        Ok(())
    }

    /// The value of ALGORITHM or LOCK.
    pub(super) fn alter_word(&mut self) -> Result<String> {
        if self.word(Kw::DEFAULT) {
            return Ok("DEFAULT".to_owned());
        }
        Ok(self.identifier()?.to_ascii_uppercase())
    }

    /// After CREATE or ALTER, at what precedes VIEW.
    pub(super) fn create_view(&mut self, alter: bool) -> Result<Statement> {
        self.is_outermost = false;
        let or_replace = !alter && self.words(&[Kw::OR, Kw::REPLACE]);
        let mut algorithm = ViewAlgorithm::Undefined;
        if self.word(Kw::ALGORITHM) {
            self.expect(Kind::Equal)?;
            algorithm = match self.any(&[Kw::UNDEFINED, Kw::MERGE, Kw::TEMPTABLE]) {
                Some(Kw::UNDEFINED) => ViewAlgorithm::Undefined,
                Some(Kw::MERGE) => ViewAlgorithm::Merge,
                Some(_) => ViewAlgorithm::Temptable,
                None => return Err(self.error()),
            };
        }
        let mut definer: Option<UserName> = None;
        if self.word(Kw::DEFINER) {
            self.expect(Kind::Equal)?;
            definer = Some(self.user_name()?);
        }
        let mut invoker = false;
        if self.words(&[Kw::SQL, Kw::SECURITY]) {
            invoker = self.word(Kw::INVOKER);
            if !invoker {
                self.expect_word(Kw::DEFINER)?;
            }
        }
        if !self.word(Kw::VIEW) {
            return match self.kw() {
                Kw::PROCEDURE | Kw::FUNCTION | Kw::TRIGGER | Kw::EVENT | Kw::AGGREGATE | Kw::SPATIAL => {
                    let what = if alter { "ALTER" } else { "CREATE" };
                    Err(self.unsupported(format!("{what} {}", self.kw().text())))
                }
                _ => Err(self.error()),
            };
        }
        if !alter && !or_replace && self.kw() == Kw::IF && self.peek(1).is(Kw::NOT) {
            return Err(self.unsupported("CREATE VIEW IF NOT EXISTS"));
        }
        let name = self.name()?;
        let columns = if self.at(Kind::Open) { self.idents_in_brackets()? } else { Vec::new() };
        self.expect_word(Kw::AS)?;
        let query = Box::new(self.query()?);
        let mut check = ViewCheck::None;
        if self.word(Kw::WITH) {
            check = if self.word(Kw::LOCAL) { ViewCheck::Local } else { ViewCheck::Cascaded };
            if check == ViewCheck::Cascaded {
                self.word(Kw::CASCADED);
            }
            self.expect_words(&[Kw::CHECK, Kw::OPTION])?;
        }
        let view = CreateView { or_replace, alter, algorithm, definer, invoker, name, columns, query, check };
        Ok(Statement::CreateView(Box::new(view)))
    }
}

fn other(name: &str, value: &str) -> ColumnOption {
    ColumnOption::Other { name: name.to_owned(), value: value.to_owned() }
}

/// Error 1800 or 1801 for a word that is none of ALGORITHM's or LOCK's.
pub(super) fn check_alter_word(what: Kw, word: &str) -> std::result::Result<(), Problem> {
    let known: &[&str] = match what {
        Kw::ALGORITHM => &["DEFAULT", "INSTANT", "INPLACE", "COPY"],
        _ => &["DEFAULT", "NONE", "SHARED", "EXCLUSIVE"],
    };
    match (known.contains(&word), what) {
        (true, _) => Ok(()),
        (false, Kw::ALGORITHM) => Err(Problem::UnknownAlgorithm(word.to_owned())),
        (false, _) => Err(Problem::UnknownLock(word.to_owned())),
    }
}
