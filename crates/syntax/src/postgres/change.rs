//! INSERT, UPDATE, DELETE, MERGE, TRUNCATE, COPY.

use super::error::Result;
use super::keyword::Kw;
use super::lexer::Kind;
use super::parser::Parser;
use super::tree::*;

impl Parser<'_> {
    /// PreparableStmt: a query or a change of rows.
    pub(super) fn preparable(&mut self) -> Result<Statement> {
        let start = self.token().start;
        let with = if self.kw() == Kw::WITH { self.level(Parser::with_clause)? } else { None };
        Ok(match self.kw() {
            Kw::INSERT => Statement::Insert(Box::new(self.insert(with)?)),
            Kw::UPDATE => Statement::Update(Box::new(self.update(with)?)),
            Kw::DELETE => Statement::Delete(Box::new(self.delete(with)?)),
            Kw::MERGE => Statement::Merge(Box::new(self.merge(with)?)),
            _ => {
                let query = self.level(|parser| parser.query_with(with, start))?;
                Statement::Select(Box::new(query))
            }
        })
    }

    fn insert(&mut self, with: Option<WithClause>) -> Result<InsertStmt> {
        self.expect_words(&[Kw::INSERT, Kw::INTO])?;
        let relation = self.relation_name()?;
        let alias = if self.word(Kw::AS) { Some(self.column_name()?) } else { None };
        let columns =
            if self.kind() == Kind::Open && !self.brackets_begin_query() { self.insert_columns()? } else { Vec::new() };
        let mut insert = InsertStmt {
            with,
            relation,
            alias,
            columns,
            overriding: self.overriding()?,
            source: None,
            on_conflict: None,
            returning: Vec::new(),
        };
        let is_bare = insert.columns.is_empty() && insert.overriding.is_none();
        if is_bare && self.word(Kw::DEFAULT) {
            self.expect_word(Kw::VALUES)?;
        } else {
            insert.source = Some(self.query()?);
        }
        insert.on_conflict = self.on_conflict()?;
        insert.returning = self.returning()?;
        Ok(insert)
    }

    /// Whether the parenthesis that is next encloses a query, not names.
    fn brackets_begin_query(&mut self) -> bool {
        let next = self.peek(1);
        match next.kw {
            Kw::SELECT | Kw::WITH | Kw::TABLE => true,
            Kw::VALUES => self.peek(2).kind == Kind::Open,
            _ => next.kind == Kind::Open,
        }
    }

    fn insert_columns(&mut self) -> Result<Vec<InsertColumn>> {
        self.bracketed(Parser::insert_column)
    }

    fn insert_column(&mut self) -> Result<InsertColumn> {
        let (name, indirection) = self.target_column()?;
        Ok(InsertColumn { name, indirection })
    }

    fn overriding(&mut self) -> Result<Option<Overriding>> {
        if !self.word(Kw::OVERRIDING) {
            return Ok(None);
        }
        let kind = match self.any(&[Kw::USER, Kw::SYSTEM]) {
            Some(Kw::USER) => Overriding::User,
            Some(_) => Overriding::System,
            None => return Err(self.error()),
        };
        self.expect_word(Kw::VALUE)?;
        Ok(Some(kind))
    }

    fn on_conflict(&mut self) -> Result<Option<OnConflictClause>> {
        let at = self.here();
        if !self.word(Kw::ON) {
            return Ok(None);
        }
        self.expect_word(Kw::CONFLICT)?;
        let target_at = self.here();
        let target = if self.kind() == Kind::Open {
            let elements = self.bracketed(Parser::index_element)?;
            let selection = self.selection()?;
            Some(ConflictTarget::Columns { elements, selection, at: target_at })
        } else if self.word(Kw::ON) {
            self.expect_word(Kw::CONSTRAINT)?;
            Some(ConflictTarget::Constraint(self.column_name()?))
        } else {
            None
        };
        self.expect_word(Kw::DO)?;
        let action = if self.word(Kw::NOTHING) {
            ConflictAction::Nothing
        } else {
            self.expect_words(&[Kw::UPDATE, Kw::SET])?;
            let set = self.set_clauses()?;
            ConflictAction::Update { set, selection: self.selection()? }
        };
        Ok(Some(OnConflictClause { target, action, at }))
    }

    /// where_clause
    pub(super) fn selection(&mut self) -> Result<Option<Expr>> {
        if self.word(Kw::WHERE) { self.expr().map(Some) } else { Ok(None) }
    }

    /// where_or_current_clause
    fn selection_or_cursor(&mut self) -> Result<Option<Expr>> {
        if !self.word(Kw::WHERE) {
            return Ok(None);
        }
        if self.kw() != Kw::CURRENT || !self.peek_is(1, Kw::OF) {
            return self.expr().map(Some);
        }
        let start = self.take().start;
        self.take();
        let cursor = self.column_name()?;
        Ok(Some(self.make(ExprKind::CurrentOf(cursor), start)))
    }

    fn set_clauses(&mut self) -> Result<Vec<SetClause>> {
        self.list(|parser| {
            if parser.kind() != Kind::Open {
                let target = parser.insert_column()?;
                parser.expect(Kind::Equal)?;
                return Ok(SetClause::Single { target, value: parser.expr()? });
            }
            let targets = parser.insert_columns()?;
            parser.expect(Kind::Equal)?;
            Ok(SetClause::Multiple { targets, source: parser.expr()? })
        })
    }

    /// The alias of relation_expr_opt_alias: SET is none without AS.
    fn target_alias(&mut self) -> Result<Option<Ident>> {
        if self.word(Kw::AS) || self.kw() != Kw::SET && self.at_column_name() {
            return self.column_name().map(Some);
        }
        Ok(None)
    }

    fn update(&mut self, with: Option<WithClause>) -> Result<UpdateStmt> {
        self.expect_word(Kw::UPDATE)?;
        let relation = self.relation_expr()?;
        let alias = self.target_alias()?;
        self.expect_word(Kw::SET)?;
        let set = self.set_clauses()?;
        let from = if self.word(Kw::FROM) { self.table_list()? } else { Vec::new() };
        let selection = self.selection_or_cursor()?;
        Ok(UpdateStmt { with, relation, alias, set, from, selection, returning: self.returning()? })
    }

    fn delete(&mut self, with: Option<WithClause>) -> Result<DeleteStmt> {
        self.expect_words(&[Kw::DELETE, Kw::FROM])?;
        let relation = self.relation_expr()?;
        let alias = self.target_alias()?;
        let using = if self.word(Kw::USING) { self.table_list()? } else { Vec::new() };
        let selection = self.selection_or_cursor()?;
        Ok(DeleteStmt { with, relation, alias, using, selection, returning: self.returning()? })
    }

    fn merge(&mut self, with: Option<WithClause>) -> Result<MergeStmt> {
        self.expect_words(&[Kw::MERGE, Kw::INTO])?;
        let relation = self.relation_expr()?;
        let alias = self.target_alias()?;
        self.expect_word(Kw::USING)?;
        let source = self.joined_tables()?;
        self.expect_word(Kw::ON)?;
        let condition = self.expr()?;
        let mut whens = Vec::new();
        while self.word(Kw::WHEN) {
            whens.push(self.merge_when()?);
        }
        if whens.is_empty() {
            return Err(self.error());
        }
        Ok(MergeStmt { with, relation, alias, source, condition, whens })
    }

    fn merge_when(&mut self) -> Result<MergeWhenClause> {
        let matched = !self.word(Kw::NOT);
        self.expect_word(Kw::MATCHED)?;
        let condition = if self.word(Kw::AND) { Some(self.expr()?) } else { None };
        self.expect_word(Kw::THEN)?;
        let action = match self.kw() {
            Kw::DO => {
                self.take();
                self.expect_word(Kw::NOTHING)?;
                MergeAction::Nothing
            }
            Kw::UPDATE if matched => {
                self.take();
                self.expect_word(Kw::SET)?;
                MergeAction::Update(self.set_clauses()?)
            }
            Kw::DELETE if matched => {
                self.take();
                MergeAction::Delete
            }
            Kw::INSERT if !matched => self.merge_insert()?,
            _ => return Err(self.error()),
        };
        Ok(MergeWhenClause { matched, condition, action })
    }

    fn merge_insert(&mut self) -> Result<MergeAction> {
        self.take();
        let columns = if self.kind() == Kind::Open { self.insert_columns()? } else { Vec::new() };
        let overriding = self.overriding()?;
        let values = if columns.is_empty() && overriding.is_none() && self.word(Kw::DEFAULT) {
            self.expect_word(Kw::VALUES)?;
            Vec::new()
        } else {
            self.expect_word(Kw::VALUES)?;
            self.bracketed(Parser::expr)?
        };
        Ok(MergeAction::Insert { columns, overriding, values })
    }

    pub(super) fn truncate(&mut self) -> Result<Statement> {
        self.take();
        self.word(Kw::TABLE);
        let relations = self.list(Parser::relation_expr)?;
        let restart_identity = match self.any(&[Kw::CONTINUE, Kw::RESTART]) {
            Some(kw) => {
                self.expect_word(Kw::IDENTITY)?;
                kw == Kw::RESTART
            }
            None => false,
        };
        Ok(Statement::Truncate(TruncateStmt { relations, restart_identity, cascade: self.cascade() }))
    }

    pub(super) fn copy(&mut self) -> Result<Statement> {
        self.take();
        if self.kind() == Kind::Open {
            return self.copy_query();
        }
        let mut options = Vec::new();
        let at = self.here();
        if self.word(Kw::BINARY) {
            options.push(text_option("format", "binary", at));
        }
        let relation = self.relation_name()?;
        let columns = self.optional_columns()?;
        let from = match self.any(&[Kw::FROM, Kw::TO]) {
            Some(kw) => kw == Kw::FROM,
            None => return Err(self.error()),
        };
        let endpoint = self.copy_endpoint()?;
        let delimiter_at = self.here();
        let using = self.word(Kw::USING);
        if using || self.kw() == Kw::DELIMITERS {
            self.expect_word(Kw::DELIMITERS)?;
            let text = self.string()?;
            options.push(text_option("delimiter", &text, delimiter_at));
        }
        self.copy_options(&mut options)?;
        let where_at = self.here();
        let selection = self.selection()?;
        if selection.is_some() && !from {
            return Err(self.invalid("42601", "WHERE clause not allowed with COPY TO", where_at));
        }
        let source = CopySource::Table { relation, columns };
        Ok(Statement::Copy(Box::new(CopyStmt { source, from, endpoint, options, selection })))
    }

    fn copy_query(&mut self) -> Result<Statement> {
        self.expect(Kind::Open)?;
        let statement = self.level(Parser::preparable)?;
        self.expect(Kind::Close)?;
        self.expect_word(Kw::TO)?;
        let endpoint = self.copy_endpoint()?;
        let mut options = Vec::new();
        self.copy_options(&mut options)?;
        let source = CopySource::Query(Box::new(statement));
        Ok(Statement::Copy(Box::new(CopyStmt { source, from: false, endpoint, options, selection: None })))
    }

    fn copy_endpoint(&mut self) -> Result<CopyEndpoint> {
        let at = self.here();
        let program = self.word(Kw::PROGRAM);
        if self.any(&[Kw::STDIN, Kw::STDOUT]).is_some() {
            if program {
                return Err(self.invalid("42601", "STDIN/STDOUT not allowed with PROGRAM", at));
            }
            return Ok(CopyEndpoint::Client);
        }
        let text = self.string()?;
        Ok(if program { CopyEndpoint::Program(text) } else { CopyEndpoint::File(text) })
    }

    fn copy_options(&mut self, options: &mut Vec<DefElem>) -> Result<()> {
        self.word(Kw::WITH);
        if self.kind() == Kind::Open {
            let generic = self.bracketed(Parser::generic_option)?;
            options.extend(generic);
            return Ok(());
        }
        while let Some(option) = self.old_copy_option()? {
            options.push(option);
        }
        Ok(())
    }

    /// An option of the syntax before 9.0.
    fn old_copy_option(&mut self) -> Result<Option<DefElem>> {
        let at = self.here();
        let named = |name: &str, value: DefArg| DefElem { namespace: None, name: name.into(), value: Some(value), at };
        let words = [
            Kw::BINARY,
            Kw::FREEZE,
            Kw::DELIMITER,
            Kw::NULL,
            Kw::CSV,
            Kw::HEADER,
            Kw::QUOTE,
            Kw::ESCAPE,
            Kw::FORCE,
            Kw::ENCODING,
        ];
        Ok(Some(match self.any(&words) {
            Some(Kw::BINARY) => named("format", DefArg::String("binary".to_owned())),
            Some(Kw::CSV) => named("format", DefArg::String("csv".to_owned())),
            Some(Kw::FREEZE) => named("freeze", DefArg::Bool(true)),
            Some(Kw::HEADER) => named("header", DefArg::Bool(true)),
            Some(Kw::ENCODING) => named("encoding", DefArg::String(self.string()?)),
            Some(kw @ (Kw::DELIMITER | Kw::NULL | Kw::QUOTE | Kw::ESCAPE)) => {
                self.word(Kw::AS);
                named(&kw.text().to_ascii_lowercase(), DefArg::String(self.string()?))
            }
            Some(_) => {
                let name = match self.any(&[Kw::QUOTE, Kw::NOT, Kw::NULL]) {
                    Some(Kw::QUOTE) => "force_quote",
                    Some(Kw::NOT) => {
                        self.expect_word(Kw::NULL)?;
                        "force_not_null"
                    }
                    Some(_) => "force_null",
                    None => return Err(self.error()),
                };
                if name == "force_quote" && self.accept(Kind::Star) {
                    named(name, DefArg::Star)
                } else {
                    let list = self.list(|parser| parser.column_name().map(|name| DefArg::String(name.value)))?;
                    named(name, DefArg::List(list))
                }
            }
            None => return Ok(None),
        }))
    }

    /// `name value` of COPY: a word, string, number, `*`, or list.
    fn generic_option(&mut self) -> Result<DefElem> {
        let name = self.label()?;
        let value = match self.kind() {
            Kind::Comma | Kind::Close => None,
            Kind::Star => {
                self.take();
                Some(DefArg::Star)
            }
            Kind::Open => Some(DefArg::List(self.bracketed(Parser::boolean_or_string)?)),
            _ => Some(self.option_value()?),
        };
        Ok(DefElem { namespace: None, name: name.value, value, at: name.at })
    }

    /// opt_boolean_or_string: TRUE, FALSE, ON, another word or a string.
    pub(super) fn boolean_or_string(&mut self) -> Result<DefArg> {
        if let Some(kw) = self.any(&[Kw::TRUE, Kw::FALSE, Kw::ON]) {
            return Ok(DefArg::String(kw.text().to_ascii_lowercase()));
        }
        if self.at_string() {
            return self.string().map(DefArg::String);
        }
        self.nonreserved().map(|word| DefArg::String(word.value))
    }

    /// The same, or a number.
    pub(super) fn option_value(&mut self) -> Result<DefArg> {
        match self.kind() {
            Kind::Integer | Kind::Float | Kind::Plus | Kind::Minus => self.signed_number().map(number_argument),
            _ => self.boolean_or_string(),
        }
    }
}

/// Returns a number as an option's value.
pub(super) fn number_argument(number: Const) -> DefArg {
    match number {
        Const::Integer(number) => DefArg::Integer(number),
        Const::Float(text) => DefArg::Float(text),
        _ => DefArg::Integer(0),
    }
}

fn text_option(name: &str, value: &str, at: Location) -> DefElem {
    DefElem { namespace: None, name: name.to_owned(), value: Some(DefArg::String(value.to_owned())), at }
}
