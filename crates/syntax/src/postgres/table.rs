//! CREATE TABLE, its columns and constraints, and CREATE TABLE AS.

use super::error::Result;
use super::keyword::{Category, Kw};
use super::lexer::Kind;
use super::parser::Parser;
use super::tree::*;

/// Attributes behind a constraint.
#[derive(Default)]
struct Attributes {
    deferrable: Option<bool>,
    deferred: Option<bool>,
    not_valid: bool,
    no_inherit: bool,
}

impl Parser<'_> {
    /// CREATE TABLE from its name on.
    pub(super) fn create_table(&mut self, persistence: Persistence) -> Result<Statement> {
        let if_not_exists = self.if_not_exists()?;
        let relation = self.relation_name()?;
        let mut create = CreateStmt {
            relation,
            persistence,
            if_not_exists,
            elements: Vec::new(),
            of_type: None,
            inherits: Vec::new(),
            partition_of: None,
            partition_by: None,
            access_method: None,
            options: Vec::new(),
            on_commit: OnCommit::Default,
            tablespace: None,
        };
        if self.word(Kw::PARTITION) {
            self.expect_word(Kw::OF)?;
            let parent = self.relation_name()?;
            create.elements = self.typed_elements()?;
            create.partition_of = Some(Box::new(PartitionOf { parent, bound: self.partition_bound()? }));
        } else if self.word(Kw::OF) {
            create.of_type = Some(TypeName::of(self.any_name()?));
            create.elements = self.typed_elements()?;
        } else if self.kind() == Kind::Open && !self.is_column_list() {
            self.take();
            if self.kind() != Kind::Close {
                create.elements = self.list(Parser::table_element)?;
            }
            self.expect(Kind::Close)?;
            if self.word(Kw::INHERITS) {
                create.inherits = self.bracketed(Parser::relation_name)?;
            }
        } else {
            return self.create_table_as(create.relation, persistence, if_not_exists);
        }
        create.partition_by = self.partition_spec()?;
        create.access_method = self.access_method()?;
        create.options = self.with_options()?;
        create.on_commit = self.on_commit()?;
        create.tablespace = self.tablespace()?;
        Ok(Statement::CreateTable(Box::new(create)))
    }

    /// Whether the parentheses hold names alone: those of CREATE TABLE AS.
    fn is_column_list(&mut self) -> bool {
        let first = self.peek(1);
        let is_name = first.kind == Kind::Quoted || first.kind == Kind::Word && first.kw.is_column_name();
        is_name && matches!(self.peek(2).kind, Kind::Comma | Kind::Close)
    }

    fn create_table_as(
        &mut self,
        relation: RangeVar,
        persistence: Persistence,
        if_not_exists: bool,
    ) -> Result<Statement> {
        let columns = self.optional_columns()?;
        let into = IntoClause {
            relation,
            persistence,
            columns,
            access_method: self.access_method()?,
            options: self.with_options()?,
            on_commit: self.on_commit()?,
            tablespace: self.tablespace()?,
        };
        self.expect_word(Kw::AS)?;
        let start = self.token().start;
        let source = if self.kw() == Kw::EXECUTE {
            CreateTableAsSource::Execute(self.execute()?)
        } else {
            CreateTableAsSource::Query(Box::new(self.query()?))
        };
        let query_span = self.span_from(start);
        let with_data = self.with_data()?;
        Ok(Statement::CreateTableAs(Box::new(CreateTableAsStmt {
            into,
            if_not_exists,
            materialized_view: false,
            source,
            query_span,
            with_data,
        })))
    }

    /// CREATE TABLE AS and CREATE MATERIALIZED VIEW, where no other CREATE may be.
    pub(super) fn create_from_query(&mut self) -> Result<Statement> {
        self.take();
        let persistence = self.persistence()?;
        if persistence != Persistence::Temporary && self.word(Kw::MATERIALIZED) {
            self.expect_word(Kw::VIEW)?;
            return self.create_materialized_view(persistence);
        }
        self.expect_word(Kw::TABLE)?;
        let if_not_exists = self.if_not_exists()?;
        let relation = self.relation_name()?;
        self.create_table_as(relation, persistence, if_not_exists)
    }

    /// CREATE MATERIALIZED VIEW from its name on.
    pub(super) fn create_materialized_view(&mut self, persistence: Persistence) -> Result<Statement> {
        let if_not_exists = self.if_not_exists()?;
        let into = IntoClause {
            relation: self.relation_name()?,
            persistence,
            columns: self.optional_columns()?,
            access_method: self.access_method()?,
            options: self.with_list()?,
            on_commit: OnCommit::Default,
            tablespace: self.tablespace()?,
        };
        self.expect_word(Kw::AS)?;
        let start = self.token().start;
        let source = CreateTableAsSource::Query(Box::new(self.query()?));
        let query_span = self.span_from(start);
        let with_data = self.with_data()?;
        let create = CreateTableAsStmt { into, if_not_exists, materialized_view: true, source, query_span, with_data };
        Ok(Statement::CreateTableAs(Box::new(create)))
    }

    /// WITH DATA, WITH NO DATA, or nothing.
    pub(super) fn with_data(&mut self) -> Result<bool> {
        if !self.word(Kw::WITH) {
            return Ok(true);
        }
        let with_data = !self.word(Kw::NO);
        self.expect_word(Kw::DATA)?;
        Ok(with_data)
    }

    pub(super) fn access_method(&mut self) -> Result<Option<Ident>> {
        if self.word(Kw::USING) { self.column_name().map(Some) } else { Ok(None) }
    }

    pub(super) fn tablespace(&mut self) -> Result<Option<Ident>> {
        if self.word(Kw::TABLESPACE) { self.column_name().map(Some) } else { Ok(None) }
    }

    /// OptWith
    fn with_options(&mut self) -> Result<Vec<DefElem>> {
        if self.kw() == Kw::WITHOUT {
            self.take();
            self.expect_word(Kw::OIDS)?;
            return Ok(Vec::new());
        }
        self.with_list()
    }

    /// `WITH (options)`, or nothing.
    pub(super) fn with_list(&mut self) -> Result<Vec<DefElem>> {
        if self.word(Kw::WITH) { self.reloptions() } else { Ok(Vec::new()) }
    }

    /// `(name = value, ...)`
    pub(super) fn reloptions(&mut self) -> Result<Vec<DefElem>> {
        self.bracketed(|parser| {
            let mut name = parser.label()?;
            let at = name.at;
            let mut namespace = None;
            if parser.accept(Kind::Dot) {
                namespace = Some(name.value);
                name = parser.label()?;
            }
            let value = if parser.accept(Kind::Equal) { Some(parser.definition_argument()?) } else { None };
            Ok(DefElem { namespace, name: name.value, value, at })
        })
    }

    /// def_arg
    pub(super) fn definition_argument(&mut self) -> Result<DefArg> {
        let token = self.token();
        match token.kind {
            Kind::Integer | Kind::Float => return self.signed_number().map(super::change::number_argument),
            Kind::Plus | Kind::Minus if matches!(self.peek(1).kind, Kind::Integer | Kind::Float) => {
                return self.signed_number().map(super::change::number_argument);
            }
            _ if self.at_string() => return self.string().map(DefArg::String),
            Kind::Word if token.kw == Kw::NONE => {
                self.take();
                return Ok(DefArg::String("none".to_owned()));
            }
            Kind::Word if token.kw.category() == Category::Reserved => {
                self.take();
                return Ok(DefArg::Keyword(token.kw.text().to_ascii_lowercase()));
            }
            Kind::Word | Kind::Quoted | Kind::UnicodeQuoted
                if token.kw != Kw::OPERATOR || self.peek(1).kind != Kind::Open =>
            {
                let ty = self.argument_type()?;
                return Ok(DefArg::Type(Box::new(ty)));
            }
            _ => {}
        }
        let (op, _) = self.operator()?;
        Ok(DefArg::Operator(Box::new(op)))
    }

    fn on_commit(&mut self) -> Result<OnCommit> {
        if !self.word(Kw::ON) {
            return Ok(OnCommit::Default);
        }
        self.expect_word(Kw::COMMIT)?;
        Ok(match self.any(&[Kw::DROP, Kw::DELETE, Kw::PRESERVE]) {
            Some(Kw::DROP) => OnCommit::Drop,
            Some(Kw::DELETE) => {
                self.expect_word(Kw::ROWS)?;
                OnCommit::DeleteRows
            }
            Some(_) => {
                self.expect_word(Kw::ROWS)?;
                OnCommit::PreserveRows
            }
            None => return Err(self.error()),
        })
    }

    fn table_element(&mut self) -> Result<TableElement> {
        if self.kw() == Kw::LIKE {
            return Ok(TableElement::Like(Box::new(self.like_clause()?)));
        }
        if self.begins_constraint() {
            return Ok(TableElement::Constraint(Box::new(self.table_constraint()?)));
        }
        Ok(TableElement::Column(Box::new(self.column_definition()?)))
    }

    /// OptTypedTableElementList
    fn typed_elements(&mut self) -> Result<Vec<TableElement>> {
        if self.kind() != Kind::Open {
            return Ok(Vec::new());
        }
        self.bracketed(|parser| {
            if parser.begins_constraint() {
                return Ok(TableElement::Constraint(Box::new(parser.table_constraint()?)));
            }
            let name = parser.column_name()?;
            if parser.word(Kw::WITH) {
                parser.expect_word(Kw::OPTIONS)?;
            }
            let column = ColumnDef {
                name,
                ty: None,
                storage: None,
                compression: None,
                collation: None,
                constraints: Vec::new(),
            };
            let column = parser.column_constraints(column)?;
            Ok(TableElement::Column(Box::new(column)))
        })
    }

    fn begins_constraint(&mut self) -> bool {
        match self.kw() {
            Kw::CONSTRAINT | Kw::CHECK | Kw::UNIQUE | Kw::PRIMARY | Kw::FOREIGN => true,
            // A column may have that name.
            Kw::EXCLUDE => self.peek(1).kind == Kind::Open || self.peek_is(1, Kw::USING),
            _ => false,
        }
    }

    /// columnDef
    pub(super) fn column_definition(&mut self) -> Result<ColumnDef> {
        let name = self.column_name()?;
        let ty = Some(self.type_name()?);
        let storage = if self.word(Kw::STORAGE) { Some(self.word_or_default()?) } else { None };
        let compression = if self.word(Kw::COMPRESSION) { Some(self.word_or_default()?) } else { None };
        if self.kw() == Kw::OPTIONS {
            return Err(self.unsupported("OPTIONS of a column"));
        }
        let column = ColumnDef { name, ty, storage, compression, collation: None, constraints: Vec::new() };
        self.column_constraints(column)
    }

    /// A name, or DEFAULT.
    pub(super) fn word_or_default(&mut self) -> Result<String> {
        if self.word(Kw::DEFAULT) {
            return Ok("default".to_owned());
        }
        self.column_name().map(|name| name.value)
    }

    /// ColQualList
    pub(super) fn column_constraints(&mut self, mut column: ColumnDef) -> Result<ColumnDef> {
        let mut attributes = Attributes::default();
        loop {
            let at = self.here();
            if self.word(Kw::COLLATE) {
                if column.collation.is_some() {
                    return Err(self.invalid("42601", "multiple COLLATE clauses not allowed", at));
                }
                column.collation = Some(self.any_name()?);
                continue;
            }
            if self.begins_attribute() {
                self.column_attribute(&mut column, &mut attributes)?;
                continue;
            }
            let name = if self.word(Kw::CONSTRAINT) { Some(self.column_name()?) } else { None };
            match self.column_constraint()? {
                Some((kind, no_inherit)) => {
                    attributes = Attributes::default();
                    column.constraints.push(Constraint { name, no_inherit, ..plain_constraint(kind, at) });
                }
                None if name.is_some() => return Err(self.error()),
                None => return Ok(column),
            }
        }
    }

    fn begins_attribute(&mut self) -> bool {
        match self.kw() {
            Kw::DEFERRABLE | Kw::INITIALLY => true,
            Kw::NOT => self.peek_is(1, Kw::DEFERRABLE),
            _ => false,
        }
    }

    /// An attribute of the constraint before it.
    fn column_attribute(&mut self, column: &mut ColumnDef, attributes: &mut Attributes) -> Result<()> {
        let at = self.here();
        let clause = match self.take().kw {
            Kw::DEFERRABLE => "DEFERRABLE",
            Kw::NOT => {
                self.take();
                "NOT DEFERRABLE"
            }
            _ => match self.any(&[Kw::DEFERRED, Kw::IMMEDIATE]) {
                Some(Kw::DEFERRED) => "INITIALLY DEFERRED",
                Some(_) => "INITIALLY IMMEDIATE",
                None => return Err(self.error()),
            },
        };
        let takes = |constraint: &&mut Constraint| {
            use ConstraintKind::*;
            matches!(constraint.kind, Unique(_) | PrimaryKey(_) | Foreign(_) | Exclusion(_))
        };
        let Some(last) = column.constraints.last_mut().filter(takes) else {
            return Err(self.invalid("42601", format!("misplaced {clause} clause"), at));
        };
        match clause {
            "DEFERRABLE" | "NOT DEFERRABLE" => {
                if attributes.deferrable.is_some() {
                    let message = "multiple DEFERRABLE/NOT DEFERRABLE clauses not allowed";
                    return Err(self.invalid("42601", message, at));
                }
                attributes.deferrable = Some(clause == "DEFERRABLE");
            }
            _ => {
                if attributes.deferred.is_some() {
                    let message = "multiple INITIALLY IMMEDIATE/DEFERRED clauses not allowed";
                    return Err(self.invalid("42601", message, at));
                }
                attributes.deferred = Some(clause == "INITIALLY DEFERRED");
            }
        }
        if attributes.deferred == Some(true) && attributes.deferrable == Some(false) {
            let message = "constraint declared INITIALLY DEFERRED must be DEFERRABLE";
            return Err(self.invalid("42601", message, at));
        }
        last.initially_deferred = attributes.deferred == Some(true);
        last.deferrable = attributes.deferrable == Some(true) || last.initially_deferred;
        Ok(())
    }

    /// ColConstraintElem, and whether it is NO INHERIT.
    fn column_constraint(&mut self) -> Result<Option<(ConstraintKind, bool)>> {
        let kind = match self.kw() {
            Kw::NOT => {
                self.take();
                self.expect_word(Kw::NULL)?;
                ConstraintKind::NotNull
            }
            Kw::NULL => {
                self.take();
                ConstraintKind::Null
            }
            Kw::UNIQUE => {
                self.take();
                let mut index = empty_index();
                index.nulls_not_distinct = self.nulls_not_distinct()?;
                index.options = self.with_list()?;
                index.tablespace = self.constraint_tablespace()?;
                ConstraintKind::Unique(index)
            }
            Kw::PRIMARY => {
                self.take();
                self.expect_word(Kw::KEY)?;
                let mut index = empty_index();
                index.options = self.with_list()?;
                index.tablespace = self.constraint_tablespace()?;
                ConstraintKind::PrimaryKey(index)
            }
            Kw::CHECK => {
                self.take();
                self.expect(Kind::Open)?;
                let check = self.expr()?;
                self.expect(Kind::Close)?;
                return Ok(Some((ConstraintKind::Check(check), self.no_inherit()?)));
            }
            Kw::DEFAULT => {
                self.take();
                ConstraintKind::Default(self.b_expr()?)
            }
            Kw::GENERATED => self.generated()?,
            Kw::REFERENCES => ConstraintKind::Foreign(Box::new(self.references(Vec::new())?)),
            _ => return Ok(None),
        };
        Ok(Some((kind, false)))
    }

    fn no_inherit(&mut self) -> Result<bool> {
        if !self.word(Kw::NO) {
            return Ok(false);
        }
        self.expect_word(Kw::INHERIT)?;
        Ok(true)
    }

    /// GENERATED ... AS IDENTITY, GENERATED ALWAYS AS (expression) STORED.
    fn generated(&mut self) -> Result<ConstraintKind> {
        self.take();
        let when_at = self.here();
        let always = self.generated_when()?;
        self.expect_word(Kw::AS)?;
        if self.word(Kw::IDENTITY) {
            let options = if self.accept(Kind::Open) {
                let options = self.sequence_options(true)?;
                self.expect(Kind::Close)?;
                options
            } else {
                Vec::new()
            };
            return Ok(ConstraintKind::Identity { always, options });
        }
        self.expect(Kind::Open)?;
        let value = self.expr()?;
        self.expect(Kind::Close)?;
        self.expect_word(Kw::STORED)?;
        if !always {
            let message = "for a generated column, GENERATED ALWAYS must be specified";
            return Err(self.invalid("42601", message, when_at));
        }
        Ok(ConstraintKind::Generated(value))
    }

    /// ALWAYS, BY DEFAULT.
    pub(super) fn generated_when(&mut self) -> Result<bool> {
        match self.any(&[Kw::ALWAYS, Kw::BY]) {
            Some(Kw::ALWAYS) => Ok(true),
            Some(_) => {
                self.expect_word(Kw::DEFAULT)?;
                Ok(false)
            }
            None => Err(self.error()),
        }
    }

    /// opt_unique_null_treatment
    pub(super) fn nulls_not_distinct(&mut self) -> Result<bool> {
        if !self.word(Kw::NULLS) {
            return Ok(false);
        }
        let not = self.word(Kw::NOT);
        self.expect_word(Kw::DISTINCT)?;
        Ok(not)
    }

    /// OptConsTableSpace
    fn constraint_tablespace(&mut self) -> Result<Option<Ident>> {
        if !self.word(Kw::USING) {
            return Ok(None);
        }
        self.expect_words(&[Kw::INDEX, Kw::TABLESPACE])?;
        self.column_name().map(Some)
    }

    /// REFERENCES
    fn references(&mut self, columns: Vec<Ident>) -> Result<ForeignKey> {
        self.expect_word(Kw::REFERENCES)?;
        let mut key = ForeignKey {
            columns,
            references: self.relation_name()?,
            referenced: self.optional_columns()?,
            matching: MatchType::Simple,
            on_update: ForeignKeyAction::NoAction,
            on_delete: ForeignKeyAction::NoAction,
            on_delete_columns: Vec::new(),
        };
        let at = self.here();
        if self.word(Kw::MATCH) {
            key.matching = match self.any(&[Kw::FULL, Kw::PARTIAL, Kw::SIMPLE]) {
                Some(Kw::FULL) => MatchType::Full,
                Some(Kw::SIMPLE) => MatchType::Simple,
                Some(_) => return Err(self.invalid("0A000", "MATCH PARTIAL not yet implemented", at)),
                None => return Err(self.error()),
            };
        }
        let (mut update, mut delete) = (false, false);
        loop {
            let at = self.here();
            if !self.word(Kw::ON) {
                break;
            }
            match self.kw() {
                Kw::UPDATE if !update => {
                    update = true;
                    self.take();
                    let (action, columns) = self.foreign_key_action()?;
                    if !columns.is_empty() {
                        let action = if action == ForeignKeyAction::SetNull { "SET NULL" } else { "SET DEFAULT" };
                        let message = format!("a column list with {action} is only supported for ON DELETE actions");
                        return Err(self.invalid("0A000", message, at));
                    }
                    key.on_update = action;
                }
                Kw::DELETE if !delete => {
                    delete = true;
                    self.take();
                    (key.on_delete, key.on_delete_columns) = self.foreign_key_action()?;
                }
                _ => return Err(self.error()),
            }
        }
        Ok(key)
    }

    fn foreign_key_action(&mut self) -> Result<(ForeignKeyAction, Vec<Ident>)> {
        let action = match self.any(&[Kw::NO, Kw::RESTRICT, Kw::CASCADE, Kw::SET]) {
            Some(Kw::NO) => {
                self.expect_word(Kw::ACTION)?;
                ForeignKeyAction::NoAction
            }
            Some(Kw::RESTRICT) => ForeignKeyAction::Restrict,
            Some(Kw::CASCADE) => ForeignKeyAction::Cascade,
            Some(_) => {
                let action = match self.any(&[Kw::NULL, Kw::DEFAULT]) {
                    Some(Kw::NULL) => ForeignKeyAction::SetNull,
                    Some(_) => ForeignKeyAction::SetDefault,
                    None => return Err(self.error()),
                };
                return Ok((action, self.optional_columns()?));
            }
            None => return Err(self.error()),
        };
        Ok((action, Vec::new()))
    }

    /// TableConstraint
    pub(super) fn table_constraint(&mut self) -> Result<Constraint> {
        let at = self.here();
        let name = if self.word(Kw::CONSTRAINT) { Some(self.column_name()?) } else { None };
        let element_at = self.here();
        let (kind, label) = match self.kw() {
            Kw::CHECK => {
                self.take();
                self.expect(Kind::Open)?;
                let check = self.expr()?;
                self.expect(Kind::Close)?;
                (ConstraintKind::Check(check), "CHECK")
            }
            Kw::UNIQUE => {
                self.take();
                let nulls_not_distinct = self.nulls_not_distinct()?;
                let index = self.index_constraint(!nulls_not_distinct)?;
                (ConstraintKind::Unique(IndexConstraint { nulls_not_distinct, ..index }), "UNIQUE")
            }
            Kw::PRIMARY => {
                self.take();
                self.expect_word(Kw::KEY)?;
                (ConstraintKind::PrimaryKey(self.index_constraint(true)?), "PRIMARY KEY")
            }
            Kw::FOREIGN => {
                self.take();
                self.expect_word(Kw::KEY)?;
                let columns = self.bracketed(Parser::column_name)?;
                (ConstraintKind::Foreign(Box::new(self.references(columns)?)), "FOREIGN KEY")
            }
            Kw::EXCLUDE => {
                self.take();
                (ConstraintKind::Exclusion(Box::new(self.exclusion()?)), "EXCLUDE")
            }
            _ => return Err(self.error()),
        };
        let attributes = self.attributes()?;
        self.check_attributes(&attributes, label, element_at)?;
        let Attributes { deferrable, deferred, not_valid, no_inherit } = attributes;
        Ok(Constraint {
            name,
            kind,
            deferrable: deferrable == Some(true) || deferred == Some(true),
            initially_deferred: deferred == Some(true),
            not_valid,
            no_inherit,
            at,
        })
    }

    fn index_constraint(&mut self, may_use: bool) -> Result<IndexConstraint> {
        let mut index = empty_index();
        if may_use && self.word(Kw::USING) {
            self.expect_word(Kw::INDEX)?;
            index.using_index = Some(self.column_name()?);
            return Ok(index);
        }
        index.columns = self.bracketed(Parser::column_name)?;
        index.include = self.include()?;
        index.options = self.with_list()?;
        index.tablespace = self.constraint_tablespace()?;
        Ok(index)
    }

    fn include(&mut self) -> Result<Vec<Ident>> {
        if self.word(Kw::INCLUDE) { self.bracketed(Parser::column_name) } else { Ok(Vec::new()) }
    }

    fn exclusion(&mut self) -> Result<Exclusion> {
        let access_method = self.access_method()?;
        let elements = self.bracketed(|parser| {
            let element = parser.index_element()?;
            parser.expect_word(Kw::WITH)?;
            let at = parser.here();
            let op = if parser.kw() == Kw::OPERATOR { parser.operator()?.0 } else { parser.any_operator(at)? };
            Ok(ExclusionElement { element, op })
        })?;
        let include = self.include()?;
        let options = self.with_list()?;
        let tablespace = self.constraint_tablespace()?;
        let selection = if self.word(Kw::WHERE) {
            self.expect(Kind::Open)?;
            let selection = self.expr()?;
            self.expect(Kind::Close)?;
            Some(selection)
        } else {
            None
        };
        Ok(Exclusion { access_method, elements, include, options, tablespace, selection })
    }

    /// ConstraintAttributeSpec
    fn attributes(&mut self) -> Result<Attributes> {
        let mut attributes = Attributes::default();
        loop {
            let at = self.here();
            match self.kw() {
                Kw::DEFERRABLE => {
                    self.take();
                    self.set_attribute(&mut attributes, true, true, at)?;
                }
                Kw::INITIALLY => {
                    self.take();
                    let deferred = match self.any(&[Kw::DEFERRED, Kw::IMMEDIATE]) {
                        Some(kw) => kw == Kw::DEFERRED,
                        None => return Err(self.error()),
                    };
                    self.set_attribute(&mut attributes, false, deferred, at)?;
                }
                Kw::NOT => {
                    self.take();
                    match self.any(&[Kw::DEFERRABLE, Kw::VALID]) {
                        Some(Kw::VALID) => attributes.not_valid = true,
                        Some(_) => self.set_attribute(&mut attributes, true, false, at)?,
                        None => return Err(self.error()),
                    }
                }
                Kw::NO => attributes.no_inherit = self.no_inherit()?,
                _ => return Ok(attributes),
            }
        }
    }

    fn set_attribute(&self, attributes: &mut Attributes, deferrable: bool, value: bool, at: Location) -> Result<()> {
        let slot = if deferrable { &mut attributes.deferrable } else { &mut attributes.deferred };
        let conflicts = slot.is_some_and(|old| old != value);
        *slot = Some(value);
        if attributes.deferrable == Some(false) && attributes.deferred == Some(true) {
            let message = "constraint declared INITIALLY DEFERRED must be DEFERRABLE";
            return Err(self.invalid("42601", message, at));
        }
        if conflicts { Err(self.invalid("42601", "conflicting constraint properties", at)) } else { Ok(()) }
    }

    /// Refuses attributes that the kind of constraint has not.
    fn check_attributes(&self, attributes: &Attributes, label: &str, at: Location) -> Result<()> {
        let refuse =
            |what: &str| Err(self.invalid("0A000", format!("{label} constraints cannot be marked {what}"), at));
        let deferrable = attributes.deferrable == Some(true) || attributes.deferred == Some(true);
        if deferrable && label == "CHECK" {
            return refuse("DEFERRABLE");
        }
        if attributes.not_valid && !matches!(label, "CHECK" | "FOREIGN KEY") {
            return refuse("NOT VALID");
        }
        if attributes.no_inherit && label != "CHECK" {
            return refuse("NO INHERIT");
        }
        Ok(())
    }

    /// Attributes of ALTER CONSTRAINT: deferrable, and deferred at first.
    pub(super) fn constraint_timing(&mut self) -> Result<(bool, bool)> {
        let at = self.here();
        let attributes = self.attributes()?;
        for (is_set, what) in [(attributes.not_valid, "NOT VALID"), (attributes.no_inherit, "NO INHERIT")] {
            if is_set {
                let message = format!("FOREIGN KEY constraints cannot be marked {what}");
                return Err(self.invalid("0A000", message, at));
            }
        }
        let deferred = attributes.deferred == Some(true);
        Ok((deferred || attributes.deferrable == Some(true), deferred))
    }

    fn like_clause(&mut self) -> Result<TableLikeClause> {
        use LikeOptionKind::*;
        self.take();
        let relation = self.relation_name()?;
        let mut options = Vec::new();
        while let Some(kw) = self.any(&[Kw::INCLUDING, Kw::EXCLUDING]) {
            let kind = match self.kw() {
                Kw::COMMENTS => Comments,
                Kw::COMPRESSION => Compression,
                Kw::CONSTRAINTS => Constraints,
                Kw::DEFAULTS => Defaults,
                Kw::GENERATED => Generated,
                Kw::IDENTITY => Identity,
                Kw::INDEXES => Indexes,
                Kw::STATISTICS => Statistics,
                Kw::STORAGE => Storage,
                Kw::ALL => All,
                _ => return Err(self.error()),
            };
            self.take();
            options.push(LikeOption { including: kw == Kw::INCLUDING, kind });
        }
        Ok(TableLikeClause { relation, options })
    }

    fn partition_spec(&mut self) -> Result<Option<Box<PartitionSpec>>> {
        let at = self.here();
        if !self.word(Kw::PARTITION) {
            return Ok(None);
        }
        self.expect_word(Kw::BY)?;
        let strategy = self.column_name()?.value;
        let elements = self.bracketed(|parser| {
            let key = parser.index_key()?;
            let collation = parser.collation()?;
            let opclass = if parser.at_column_name() { Some(parser.any_name()?) } else { None };
            Ok(IndexElem {
                key,
                collation,
                opclass,
                opclass_options: Vec::new(),
                direction: SortDirection::Default,
                nulls: NullsOrder::Default,
            })
        })?;
        Ok(Some(Box::new(PartitionSpec { strategy, elements, at })))
    }

    /// PartitionBoundSpec
    pub(super) fn partition_bound(&mut self) -> Result<PartitionBound> {
        if self.word(Kw::DEFAULT) {
            return Ok(PartitionBound::Default);
        }
        self.expect_words(&[Kw::FOR, Kw::VALUES])?;
        match self.any(&[Kw::IN, Kw::FROM, Kw::WITH]) {
            Some(Kw::IN) => Ok(PartitionBound::In(self.bracketed(Parser::expr)?)),
            Some(Kw::FROM) => {
                let from = self.bracketed(Parser::expr)?;
                self.expect_word(Kw::TO)?;
                Ok(PartitionBound::Range { from, to: self.bracketed(Parser::expr)? })
            }
            Some(_) => self.hash_bound(),
            None => Err(self.error()),
        }
    }

    fn hash_bound(&mut self) -> Result<PartitionBound> {
        let at = self.here();
        let items = self.bracketed(|parser| Ok((parser.nonreserved()?, parser.integer()?)))?;
        let (mut modulus, mut remainder) = (None, None);
        for (name, value) in items {
            let slot = match name.value.as_str() {
                "modulus" => &mut modulus,
                "remainder" => &mut remainder,
                other => {
                    let message = format!("unrecognized hash partition bound specification \"{other}\"");
                    return Err(self.invalid("42601", message, name.at));
                }
            };
            if slot.replace(value).is_some() {
                let message = format!("{} for hash partition provided more than once", name.value);
                return Err(self.invalid("42710", message, name.at));
            }
        }
        match (modulus, remainder) {
            (Some(modulus), Some(remainder)) => Ok(PartitionBound::Hash { modulus, remainder }),
            (None, _) => Err(self.invalid("42601", "modulus for hash partition must be specified", at)),
            _ => Err(self.invalid("42601", "remainder for hash partition must be specified", at)),
        }
    }
}

fn plain_constraint(kind: ConstraintKind, at: Location) -> Constraint {
    Constraint {
        name: None,
        kind,
        deferrable: false,
        initially_deferred: false,
        not_valid: false,
        no_inherit: false,
        at,
    }
}

fn empty_index() -> IndexConstraint {
    IndexConstraint {
        columns: Vec::new(),
        nulls_not_distinct: false,
        include: Vec::new(),
        options: Vec::new(),
        tablespace: None,
        using_index: None,
    }
}
