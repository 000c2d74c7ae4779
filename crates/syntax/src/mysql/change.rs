//! INSERT, REPLACE, UPDATE, DELETE, LOAD DATA, and INTO of SELECT.

use super::keyword::Kw;
use super::lexer::Kind;
use super::parser::Parser;
use crate::error::{Problem, Result};
use crate::tree::{
    Assignment, ColumnName, Delete, Duplicates, FieldTarget, Format, Ident, Insert, InsertSource, Joined, Limit,
    Literal, Load, Name, RowAlias, SelectItem, Statement, TableName, TableRef, Target, Update, With,
};

impl Parser<'_> {
    /// INSERT and REPLACE.
    pub(super) fn insert(&mut self) -> Result<Statement> {
        let replace = self.take().kw == Kw::REPLACE;
        self.is_outermost = false;
        let hints = self.hints();
        if replace {
            self.any(&[Kw::LOW_PRIORITY, Kw::DELAYED]);
        } else {
            self.any(&[Kw::LOW_PRIORITY, Kw::DELAYED, Kw::HIGH_PRIORITY]);
        }
        let ignore = !replace && self.word(Kw::IGNORE);
        self.word(Kw::INTO);
        let table = self.name()?;
        let partitions = if self.word(Kw::PARTITION) { self.idents_in_brackets()? } else { Vec::new() };
        let mut insert = Insert {
            replace,
            ignore,
            hints,
            table,
            partitions,
            columns: Vec::new(),
            source: InsertSource::Values(Vec::new()),
            row_alias: None,
            on_duplicate: Vec::new(),
            returning: None,
        };
        let begins_values = |parser: &Parser<'_>| matches!(parser.kw(), Kw::VALUES | Kw::VALUE);
        if self.word(Kw::SET) {
            insert.source = InsertSource::Set(self.assignments()?);
        } else {
            if self.at(Kind::Open) && !self.begins_query_in_brackets() {
                self.take();
                if !self.at(Kind::Close) {
                    insert.columns = self.list(Parser::column_name)?;
                }
                self.expect(Kind::Close)?;
            }
            // `VALUES ROW(...)` is a query.
            if begins_values(self) && !self.peek(1).is(Kw::ROW) {
                self.take();
                insert.source = InsertSource::Values(self.list(Parser::row_of_values)?);
            } else if self.begins_query() || self.at(Kind::Open) || self.kw() == Kw::VALUES {
                insert.source = InsertSource::Query(Box::new(self.query()?));
            } else {
                return Err(self.error());
            }
        }
        let takes_alias = !matches!(insert.source, InsertSource::Query(_));
        if !replace {
            if takes_alias && self.word(Kw::AS) {
                let name = self.ident()?;
                let columns = if self.at(Kind::Open) { self.idents_in_brackets()? } else { Vec::new() };
                insert.row_alias = Some(RowAlias { name, columns });
            }
            if self.words(&[Kw::ON, Kw::DUPLICATE, Kw::KEY]) {
                self.expect_word(Kw::UPDATE)?;
                insert.on_duplicate = self.assignments()?;
            }
        }
        insert.returning = self.returning()?;
        Ok(Statement::Insert(Box::new(insert)))
    }

    /// RETURNING, which MySQL has not.
    fn returning(&mut self) -> Result<Option<Vec<SelectItem>>> {
        if self.word(Kw::RETURNING) { self.select_items().map(Some) } else { Ok(None) }
    }

    pub(super) fn assignments(&mut self) -> Result<Vec<Assignment>> {
        self.list(|parser| {
            let column = parser.column_name()?;
            if !parser.accept(Kind::Equal) {
                parser.expect(Kind::Assign)?;
            }
            Ok(Assignment { column, value: parser.expr_or_default()? })
        })
    }

    /// LIMIT of a change: a number of rows.
    fn row_limit(&mut self) -> Result<Option<Limit>> {
        if !self.word(Kw::LIMIT) {
            return Ok(None);
        }
        Ok(Some(Limit { count: self.limit_value()?, offset: None }))
    }

    pub(super) fn update(&mut self, with: Option<With>) -> Result<Statement> {
        self.take();
        self.is_outermost = false;
        let hints = self.hints();
        self.word(Kw::LOW_PRIORITY);
        let ignore = self.word(Kw::IGNORE);
        let tables = self.list(Parser::joined)?;
        self.expect_word(Kw::SET)?;
        let assignments = self.assignments()?;
        let selection = if self.word(Kw::WHERE) { Some(self.expr()?) } else { None };
        let order_by = if self.words(&[Kw::ORDER, Kw::BY]) { self.order_items()? } else { Vec::new() };
        let limit = self.row_limit()?;
        let returning = self.returning()?;
        Ok(Statement::Update(Box::new(Update {
            with,
            hints,
            ignore,
            tables,
            assignments,
            selection,
            order_by,
            limit,
            returning,
        })))
    }

    pub(super) fn delete(&mut self, with: Option<With>) -> Result<Statement> {
        self.take();
        self.is_outermost = false;
        let hints = self.hints();
        let mut ignore = false;
        while let Some(word) = self.any(&[Kw::LOW_PRIORITY, Kw::QUICK, Kw::IGNORE]) {
            ignore |= word == Kw::IGNORE;
        }
        let (targets, tables) = if self.word(Kw::FROM) { self.delete_from()? } else { self.delete_targets()? };
        let selection = if self.word(Kw::WHERE) { Some(self.expr()?) } else { None };
        let is_single = targets.is_empty();
        let order_by = if is_single && self.words(&[Kw::ORDER, Kw::BY]) { self.order_items()? } else { Vec::new() };
        let limit = if is_single { self.row_limit()? } else { None };
        let returning = self.returning()?;
        Ok(Statement::Delete(Box::new(Delete {
            with,
            hints,
            ignore,
            targets,
            tables,
            selection,
            order_by,
            limit,
            returning,
        })))
    }

    /// After FROM: one table, or targets with USING.
    fn delete_from(&mut self) -> Result<(Vec<Name>, Vec<Joined>)> {
        let start = self.token().start;
        let name = self.delete_name()?;
        if matches!(self.kind(), Kind::Comma) || self.kw() == Kw::USING {
            let mut targets = vec![name];
            while self.accept(Kind::Comma) {
                targets.push(self.delete_name()?);
            }
            self.expect_word(Kw::USING)?;
            return Ok((targets, self.list(Parser::joined)?));
        }
        let span = self.span_from(start);
        let alias: Option<Ident> =
            if self.word(Kw::AS) || self.at_name() && self.kw() != Kw::RETURNING { Some(self.ident()?) } else { None };
        let partitions = if self.word(Kw::PARTITION) { self.idents_in_brackets()? } else { Vec::new() };
        let table = TableName { name, partitions, alias, hints: Vec::new(), span };
        Ok((Vec::new(), vec![Joined { first: TableRef::Table(Box::new(table)), joins: Vec::new() }]))
    }

    /// `a, b.* FROM tables`
    fn delete_targets(&mut self) -> Result<(Vec<Name>, Vec<Joined>)> {
        let targets = self.list(Parser::delete_name)?;
        self.expect_word(Kw::FROM)?;
        Ok((targets, self.list(Parser::joined)?))
    }

    /// `a`, `d.a`, `a.*`, `d.a.*`
    fn delete_name(&mut self) -> Result<Name> {
        let first = self.identifier()?;
        if !self.accept(Kind::Dot) {
            return Ok(Name { schema: None, name: first });
        }
        if self.accept(Kind::Star) {
            return Ok(Name { schema: None, name: first });
        }
        let name = self.identifier()?;
        if self.accept(Kind::Dot) {
            self.expect(Kind::Star)?;
        }
        Ok(Name { schema: Some(first), name })
    }

    pub(super) fn load(&mut self) -> Result<Statement> {
        self.take();
        for (word, what) in [(Kw::XML, "LOAD XML"), (Kw::INDEX, "LOAD INDEX")] {
            if self.kw() == word {
                return Err(self.unsupported(what));
            }
        }
        self.expect_word(Kw::DATA)?;
        self.any(&[Kw::LOW_PRIORITY, Kw::CONCURRENT]);
        let is_local = self.word(Kw::LOCAL);
        self.expect_word(Kw::INFILE)?;
        let file = self.string()?;
        let duplicates = match self.any(&[Kw::REPLACE, Kw::IGNORE]) {
            Some(Kw::REPLACE) => Duplicates::Replace,
            Some(_) => Duplicates::Ignore,
            None => Duplicates::Fail,
        };
        self.expect_words(&[Kw::INTO, Kw::TABLE])?;
        let table = self.name()?;
        if self.kw() == Kw::PARTITION {
            return Err(self.unsupported("PARTITION (...)"));
        }
        let charset = self.file_charset()?;
        let format = self.format()?;
        let mut skip = 0;
        if self.word(Kw::IGNORE) {
            skip = self.number()?;
            self.any(&[Kw::LINES, Kw::ROWS]).ok_or_else(|| self.error())?;
        }
        let mut fields = Vec::new();
        if self.accept(Kind::Open) {
            if !self.at(Kind::Close) {
                fields = self.list(|parser| {
                    if parser.at(Kind::Variable) {
                        return parser.variable().map(FieldTarget::Variable);
                    }
                    let ColumnName { schema: _, table: _, name } = parser.column_name()?;
                    Ok(FieldTarget::Column(name))
                })?;
            }
            self.expect(Kind::Close)?;
        }
        let sets = if self.word(Kw::SET) { self.assignments()? } else { Vec::new() };
        Ok(Statement::Load(Box::new(Load { is_local, file, duplicates, table, charset, format, skip, fields, sets })))
    }

    fn file_charset(&mut self) -> Result<Option<String>> {
        if self.charset_words() { self.charset_name().map(Some) } else { Ok(None) }
    }

    /// FIELDS and LINES.
    fn format(&mut self) -> Result<Format> {
        let mut format = Format::default();
        if self.any(&[Kw::FIELDS, Kw::COLUMNS]).is_some() {
            let mut any = false;
            loop {
                if self.word(Kw::TERMINATED) {
                    self.expect_word(Kw::BY)?;
                    format.field_end = self.separator()?;
                } else if self.kw() == Kw::ENCLOSED || self.kw() == Kw::OPTIONALLY {
                    format.optionally = self.word(Kw::OPTIONALLY);
                    self.expect_words(&[Kw::ENCLOSED, Kw::BY])?;
                    format.enclosed = self.one_byte()?;
                } else if self.word(Kw::ESCAPED) {
                    self.expect_word(Kw::BY)?;
                    format.escape = self.one_byte()?;
                } else if any {
                    break;
                } else {
                    return Err(self.error());
                }
                any = true;
            }
        }
        if self.word(Kw::LINES) {
            let mut any = false;
            loop {
                if self.word(Kw::TERMINATED) {
                    self.expect_word(Kw::BY)?;
                    format.line_end = self.separator()?;
                } else if self.word(Kw::STARTING) {
                    self.expect_word(Kw::BY)?;
                    format.line_start = self.separator()?;
                } else if any {
                    break;
                } else {
                    return Err(self.error());
                }
                any = true;
            }
        }
        Ok(format)
    }

    /// A separator's bytes.
    fn separator(&mut self) -> Result<Vec<u8>> {
        match self.kind() {
            Kind::Hex | Kind::Bits => match self.literal()? {
                Literal::Hex(bytes) | Literal::Bits(bytes) => Ok(bytes),
                _ => Err(self.error()),
            },
            _ => self.string().map(String::into_bytes),
        }
    }

    fn one_byte(&mut self) -> Result<Option<u8>> {
        match self.separator()?[..] {
            [] => Ok(None),
            [byte] => Ok(Some(byte)),
            _ => Err(self.problem(Problem::FieldTerminators)),
        }
    }

    /// After INTO of SELECT: variables or a file.
    pub(super) fn target(&mut self) -> Result<Target> {
        if self.word(Kw::DUMPFILE) {
            return Ok(Target::File { file: self.string()?, charset: None, format: None });
        }
        if self.word(Kw::OUTFILE) {
            let file = self.string()?;
            let charset = self.file_charset()?;
            return Ok(Target::File { file, charset, format: Some(self.format()?) });
        }
        self.list(|parser| {
            if parser.at_name() {
                let problem = Problem::UndeclaredVariable(parser.text_of(parser.token()).to_owned());
                return Err(parser.problem(problem));
            }
            parser.variable()
        })
        .map(Target::Variables)
    }
}
