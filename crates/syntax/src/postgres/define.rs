//! CREATE of all but tables: indexes, sequences, views, schemas, databases, roles; kinds that are refused by name.

use super::error::Result;
use super::keyword::{Category, Kw};
use super::lexer::Kind;
use super::parser::Parser;
use super::tree::*;

/// Kinds of objects without a tree: the words that begin one (the second is OTHER if one decides), its name, and the statements that take it.
const UNSERVED: &[(Kw, Kw, &str, &str)] = &[
    (Kw::ACCESS, Kw::METHOD, "ACCESS METHOD", "CREATE DROP COMMENT ON"),
    (Kw::AGGREGATE, Kw::OTHER, "AGGREGATE", "CREATE ALTER"),
    (Kw::ASSERTION, Kw::OTHER, "ASSERTION", "CREATE"),
    (Kw::CAST, Kw::OTHER, "CAST", "CREATE DROP COMMENT ON"),
    (Kw::COLLATION, Kw::OTHER, "COLLATION", "CREATE ALTER"),
    (Kw::CONSTRAINT, Kw::TRIGGER, "CONSTRAINT TRIGGER", "CREATE"),
    (Kw::CONVERSION, Kw::OTHER, "CONVERSION", "CREATE ALTER DROP COMMENT ON"),
    (Kw::DEFAULT, Kw::CONVERSION, "CONVERSION", "CREATE"),
    (Kw::EVENT, Kw::TRIGGER, "EVENT TRIGGER", "CREATE ALTER DROP COMMENT ON"),
    (Kw::EXTENSION, Kw::OTHER, "EXTENSION", "ALTER"),
    (Kw::FOREIGN, Kw::DATA, "FOREIGN DATA WRAPPER", "CREATE ALTER DROP COMMENT ON"),
    (Kw::FOREIGN, Kw::TABLE, "FOREIGN TABLE", "CREATE ALTER DROP COMMENT ON"),
    (Kw::FUNCTION, Kw::OTHER, "FUNCTION", "CREATE ALTER"),
    (Kw::LANGUAGE, Kw::OTHER, "LANGUAGE", "CREATE ALTER DROP COMMENT ON"),
    (Kw::LARGE, Kw::OBJECT, "LARGE OBJECT", "ALTER COMMENT ON"),
    (Kw::OPERATOR, Kw::CLASS, "OPERATOR CLASS", "CREATE ALTER DROP COMMENT ON"),
    (Kw::OPERATOR, Kw::FAMILY, "OPERATOR FAMILY", "CREATE ALTER DROP COMMENT ON"),
    (Kw::OPERATOR, Kw::OTHER, "OPERATOR", "CREATE ALTER DROP COMMENT ON"),
    (Kw::POLICY, Kw::OTHER, "POLICY", "CREATE ALTER DROP COMMENT ON"),
    (Kw::PROCEDURAL, Kw::OTHER, "LANGUAGE", "CREATE ALTER DROP COMMENT ON"),
    (Kw::PROCEDURE, Kw::OTHER, "PROCEDURE", "CREATE ALTER"),
    (Kw::PUBLICATION, Kw::OTHER, "PUBLICATION", "CREATE ALTER DROP COMMENT ON"),
    (Kw::ROUTINE, Kw::OTHER, "ROUTINE", "ALTER"),
    (Kw::RULE, Kw::OTHER, "RULE", "CREATE ALTER DROP COMMENT ON"),
    (Kw::SERVER, Kw::OTHER, "SERVER", "CREATE ALTER DROP COMMENT ON"),
    (Kw::STATISTICS, Kw::OTHER, "STATISTICS", "CREATE ALTER DROP COMMENT ON"),
    (Kw::SUBSCRIPTION, Kw::OTHER, "SUBSCRIPTION", "CREATE ALTER DROP COMMENT ON"),
    (Kw::SYSTEM, Kw::OTHER, "SYSTEM", "ALTER"),
    (Kw::TABLESPACE, Kw::OTHER, "TABLESPACE", "CREATE ALTER DROP"),
    (Kw::TEXT, Kw::SEARCH, "TEXT SEARCH", "CREATE ALTER DROP COMMENT ON"),
    (Kw::TRANSFORM, Kw::OTHER, "TRANSFORM", "CREATE DROP COMMENT ON"),
    (Kw::TRIGGER, Kw::OTHER, "TRIGGER", "CREATE ALTER"),
    (Kw::TRUSTED, Kw::OTHER, "LANGUAGE", "CREATE"),
    (Kw::USER, Kw::MAPPING, "USER MAPPING", "CREATE ALTER DROP"),
];

impl Parser<'_> {
    pub(super) fn create(&mut self) -> Result<Statement> {
        self.take();
        let replace = self.word(Kw::OR);
        if replace {
            self.expect_word(Kw::REPLACE)?;
        }
        let persistence = self.persistence()?;
        let is_bare = !replace && persistence == Persistence::Permanent;
        match self.kw() {
            Kw::TABLE if !replace => {
                self.take();
                self.create_table(persistence)
            }
            Kw::VIEW | Kw::RECURSIVE => self.create_view(replace, persistence),
            Kw::SEQUENCE if !replace => {
                self.take();
                self.create_sequence(persistence)
            }
            Kw::MATERIALIZED if !replace && persistence != Persistence::Temporary => {
                self.take();
                self.expect_word(Kw::VIEW)?;
                self.create_materialized_view(persistence)
            }
            Kw::INDEX | Kw::UNIQUE if is_bare => self.create_index(),
            Kw::SCHEMA if is_bare => {
                self.take();
                self.create_schema()
            }
            Kw::DATABASE if is_bare => {
                self.take();
                let name = self.column_name()?;
                self.word(Kw::WITH);
                Ok(Statement::CreateDatabase(CreatedbStmt { name, options: self.database_options()? }))
            }
            kw @ (Kw::ROLE | Kw::USER | Kw::GROUP) if is_bare => {
                self.take();
                if kw == Kw::USER && self.kw() == Kw::MAPPING && matches!(self.peek(1).kw, Kw::FOR | Kw::IF) {
                    return Err(self.unsupported("CREATE USER MAPPING"));
                }
                self.create_role(kw)
            }
            Kw::EXTENSION if is_bare => {
                self.take();
                self.create_extension()
            }
            Kw::TYPE if is_bare => {
                self.take();
                self.create_type()
            }
            Kw::DOMAIN if is_bare => {
                self.take();
                self.create_domain()
            }
            _ if persistence == Persistence::Permanent => Err(self.refuse_kind("CREATE")),
            _ => Err(self.error()),
        }
    }

    /// OptTemp
    pub(super) fn persistence(&mut self) -> Result<Persistence> {
        Ok(match self.kw() {
            Kw::TEMPORARY | Kw::TEMP => {
                self.take();
                Persistence::Temporary
            }
            Kw::LOCAL | Kw::GLOBAL => {
                self.take();
                if self.any(&[Kw::TEMPORARY, Kw::TEMP]).is_none() {
                    return Err(self.error());
                }
                Persistence::Temporary
            }
            Kw::UNLOGGED => {
                self.take();
                Persistence::Unlogged
            }
            _ => Persistence::Permanent,
        })
    }

    /// The error for a kind of object that PostgreSQL has and this tree has not, or that nothing has.
    pub(super) fn refuse_kind(&mut self, verb: &str) -> super::error::Error {
        let kw = self.kw();
        for (word, second, name, verbs) in UNSERVED {
            if kw != *word || !verbs.contains(verb) {
                continue;
            }
            if *second == Kw::OTHER || self.peek_is(1, *second) {
                return self.unsupported(format!("{verb} {name}"));
            }
        }
        if UNSERVED.iter().any(|(word, _, _, verbs)| kw == *word && verbs.contains(verb)) {
            self.take();
        }
        self.error()
    }

    fn create_index(&mut self) -> Result<Statement> {
        let unique = self.word(Kw::UNIQUE);
        self.expect_word(Kw::INDEX)?;
        let concurrently = self.word(Kw::CONCURRENTLY);
        let if_not_exists = self.if_not_exists()?;
        let name = if if_not_exists || self.kw() != Kw::ON { Some(self.column_name()?) } else { None };
        self.expect_word(Kw::ON)?;
        let relation = self.relation_expr()?;
        let access_method = self.access_method()?;
        let elements = self.bracketed(Parser::index_element)?;
        let include = if self.word(Kw::INCLUDE) { self.bracketed(Parser::index_element)? } else { Vec::new() };
        Ok(Statement::CreateIndex(Box::new(IndexStmt {
            name,
            relation,
            unique,
            concurrently,
            if_not_exists,
            access_method,
            elements,
            include,
            nulls_not_distinct: self.nulls_not_distinct()?,
            options: self.with_list()?,
            tablespace: self.tablespace()?,
            selection: self.selection()?,
        })))
    }

    /// index_elem
    pub(super) fn index_element(&mut self) -> Result<IndexElem> {
        let key = self.index_key()?;
        let collation = self.collation()?;
        let opclass = if self.at_column_name() { Some(self.any_name()?) } else { None };
        let opclass_options =
            if opclass.is_some() && self.kind() == Kind::Open { self.reloptions()? } else { Vec::new() };
        let direction = self.direction();
        Ok(IndexElem { key, collation, opclass, opclass_options, direction, nulls: self.nulls_order() })
    }

    pub(super) fn collation(&mut self) -> Result<Option<AnyName>> {
        if self.word(Kw::COLLATE) { self.any_name().map(Some) } else { Ok(None) }
    }

    /// A column, a call, or an expression in parentheses.
    pub(super) fn index_key(&mut self) -> Result<IndexKey> {
        if self.accept(Kind::Open) {
            let expr = self.expr()?;
            self.expect(Kind::Close)?;
            return Ok(IndexKey::Expr(expr));
        }
        let is_call = matches!(self.peek(1).kind, Kind::Open | Kind::Dot) || !self.at_column_name();
        if is_call {
            return self.level(Parser::windowless_call).map(IndexKey::Expr);
        }
        self.column_name().map(IndexKey::Column)
    }

    fn create_sequence(&mut self, persistence: Persistence) -> Result<Statement> {
        let if_not_exists = self.if_not_exists()?;
        let sequence = self.relation_name()?;
        let options = self.sequence_options(false)?;
        let create = CreateSeqStmt { sequence, persistence, if_not_exists, options };
        Ok(Statement::CreateSequence(Box::new(create)))
    }

    /// Options of a sequence; at least one if `some`.
    pub(super) fn sequence_options(&mut self, some: bool) -> Result<Vec<DefElem>> {
        let mut options = Vec::new();
        while let Some(option) = self.sequence_option()? {
            options.push(option);
        }
        if some && options.is_empty() { Err(self.error()) } else { Ok(options) }
    }

    /// SeqOptElem
    pub(super) fn sequence_option(&mut self) -> Result<Option<DefElem>> {
        let at = self.here();
        let words = [
            Kw::AS,
            Kw::CACHE,
            Kw::CYCLE,
            Kw::INCREMENT,
            Kw::MAXVALUE,
            Kw::MINVALUE,
            Kw::NO,
            Kw::OWNED,
            Kw::SEQUENCE,
            Kw::START,
            Kw::RESTART,
            Kw::LOGGED,
            Kw::UNLOGGED,
        ];
        let Some(kw) = self.any(&words) else { return Ok(None) };
        let (name, value) = match kw {
            Kw::AS => {
                let ty = self.simple_type()?;
                ("as", Some(DefArg::Type(Box::new(ty))))
            }
            Kw::CYCLE => ("cycle", Some(DefArg::Bool(true))),
            Kw::LOGGED => ("logged", None),
            Kw::UNLOGGED => ("unlogged", None),
            Kw::NO => match self.any(&[Kw::CYCLE, Kw::MAXVALUE, Kw::MINVALUE]) {
                Some(Kw::CYCLE) => ("cycle", Some(DefArg::Bool(false))),
                Some(Kw::MAXVALUE) => ("maxvalue", None),
                Some(_) => ("minvalue", None),
                None => return Err(self.error()),
            },
            Kw::OWNED => {
                self.expect_word(Kw::BY)?;
                ("owned_by", Some(DefArg::Name(self.any_name()?)))
            }
            Kw::SEQUENCE => {
                self.expect_word(Kw::NAME)?;
                ("sequence_name", Some(DefArg::Name(self.any_name()?)))
            }
            Kw::RESTART => {
                let with = self.word(Kw::WITH);
                let is_number = matches!(self.kind(), Kind::Integer | Kind::Float | Kind::Plus | Kind::Minus);
                ("restart", if with || is_number { Some(self.sequence_number()?) } else { None })
            }
            kw => {
                let (name, word) = match kw {
                    Kw::CACHE => ("cache", None),
                    Kw::INCREMENT => ("increment", Some(Kw::BY)),
                    Kw::MAXVALUE => ("maxvalue", None),
                    Kw::MINVALUE => ("minvalue", None),
                    _ => ("start", Some(Kw::WITH)),
                };
                if let Some(word) = word {
                    self.word(word);
                }
                (name, Some(self.sequence_number()?))
            }
        };
        Ok(Some(DefElem { namespace: None, name: name.to_owned(), value, at }))
    }

    fn sequence_number(&mut self) -> Result<DefArg> {
        self.signed_number().map(super::change::number_argument)
    }

    fn create_view(&mut self, replace: bool, persistence: Persistence) -> Result<Statement> {
        let recursive = self.word(Kw::RECURSIVE);
        self.expect_word(Kw::VIEW)?;
        let view = self.relation_name()?;
        let columns = if recursive { self.bracketed(Parser::column_name)? } else { self.optional_columns()? };
        let options = self.with_list()?;
        self.expect_word(Kw::AS)?;
        let start = self.token().start;
        let query = self.query()?;
        let query_span = self.span_from(start);
        let check_at = self.here();
        let check_option = if self.word(Kw::WITH) {
            let option = match self.any(&[Kw::CASCADED, Kw::LOCAL]) {
                Some(Kw::LOCAL) => CheckOption::Local,
                _ => CheckOption::Cascaded,
            };
            self.expect_words(&[Kw::CHECK, Kw::OPTION])?;
            if recursive {
                let message = "WITH CHECK OPTION not supported on recursive views";
                return Err(self.invalid("0A000", message, check_at));
            }
            Some(option)
        } else {
            None
        };
        Ok(Statement::CreateView(Box::new(ViewStmt {
            view,
            persistence,
            replace,
            recursive,
            columns,
            options,
            query,
            query_span,
            check_option,
        })))
    }

    fn create_schema(&mut self) -> Result<Statement> {
        let if_not_exists = self.if_not_exists()?;
        let name = if self.kw() == Kw::AUTHORIZATION { None } else { Some(self.column_name()?) };
        let role = if name.is_none() || self.kw() == Kw::AUTHORIZATION {
            self.expect_word(Kw::AUTHORIZATION)?;
            Some(self.role()?)
        } else {
            None
        };
        let mut elements = Vec::new();
        let elements_at = self.here();
        while matches!(self.kw(), Kw::CREATE | Kw::GRANT) {
            let start = self.token();
            let element = if self.kw() == Kw::GRANT { self.grant()? } else { self.create()? };
            let fits = matches!(
                element,
                Statement::CreateTable(_)
                    | Statement::CreateIndex(_)
                    | Statement::CreateSequence(_)
                    | Statement::CreateView(_)
                    | Statement::Grant(_)
            );
            if !fits {
                return Err(self.error_of(start));
            }
            elements.push(element);
        }
        if if_not_exists && !elements.is_empty() {
            let message = "CREATE SCHEMA IF NOT EXISTS cannot include schema elements";
            return Err(self.invalid("0A000", message, elements_at));
        }
        Ok(Statement::CreateSchema(Box::new(CreateSchemaStmt { name, role, if_not_exists, elements })))
    }

    /// createdb_opt_list
    pub(super) fn database_options(&mut self) -> Result<Vec<DefElem>> {
        let mut options = Vec::new();
        while !self.at_end() {
            let at = self.here();
            let name = match self.kw() {
                Kw::CONNECTION => {
                    self.take();
                    self.expect_word(Kw::LIMIT)?;
                    "connection_limit".to_owned()
                }
                Kw::ENCODING | Kw::LOCATION | Kw::OWNER | Kw::TABLESPACE | Kw::TEMPLATE => self.take_name()?.value,
                Kw::OTHER if self.at_column_name() => self.take_name()?.value,
                _ => return Err(self.error()),
            };
            self.accept(Kind::Equal);
            let value = if self.word(Kw::DEFAULT) { None } else { Some(self.option_value()?) };
            options.push(DefElem { namespace: None, name, value, at });
        }
        Ok(options)
    }

    fn create_role(&mut self, kw: Kw) -> Result<Statement> {
        let name = self.role_name()?;
        self.word(Kw::WITH);
        let mut options = Vec::new();
        while let Some(option) = self.role_option(true)? {
            options.push(option);
        }
        let kind = match kw {
            Kw::ROLE => RoleKind::Role,
            Kw::USER => RoleKind::User,
            _ => RoleKind::Group,
        };
        Ok(Statement::CreateRole(CreateRoleStmt { kind, name, options }))
    }

    /// RoleId: a name, not one of the words for roles.
    pub(super) fn role_name(&mut self) -> Result<Ident> {
        let RoleSpec { kind, at } = self.role()?;
        let message = match kind {
            RoleSpecKind::Name(value) => return Ok(Ident { value, at }),
            RoleSpecKind::Public => "role name \"public\" is reserved",
            RoleSpecKind::CurrentRole => "CURRENT_ROLE cannot be used as a role name here",
            RoleSpecKind::CurrentUser => "CURRENT_USER cannot be used as a role name here",
            RoleSpecKind::SessionUser => "SESSION_USER cannot be used as a role name here",
        };
        Err(self.invalid("42939", message, at))
    }

    /// RoleSpec
    pub(super) fn role(&mut self) -> Result<RoleSpec> {
        let at = self.here();
        let kind = match self.any(&[Kw::CURRENT_ROLE, Kw::CURRENT_USER, Kw::SESSION_USER]) {
            Some(Kw::CURRENT_ROLE) => RoleSpecKind::CurrentRole,
            Some(Kw::CURRENT_USER) => RoleSpecKind::CurrentUser,
            Some(_) => RoleSpecKind::SessionUser,
            None => {
                let name = self.nonreserved()?.value;
                match name.as_str() {
                    "public" => RoleSpecKind::Public,
                    "none" => return Err(self.invalid("42939", "role name \"none\" is reserved", at)),
                    _ => RoleSpecKind::Name(name),
                }
            }
        };
        Ok(RoleSpec { kind, at })
    }

    pub(super) fn roles(&mut self) -> Result<Vec<RoleSpec>> {
        self.list(Parser::role)
    }

    /// An option of CREATE ROLE (`creates`) or ALTER ROLE.
    pub(super) fn role_option(&mut self, creates: bool) -> Result<Option<DefElem>> {
        let at = self.here();
        let kw = self.kw();
        let (name, value) = match kw {
            Kw::PASSWORD => {
                self.take();
                let value = if self.word(Kw::NULL) { None } else { Some(DefArg::String(self.string()?)) };
                ("password", value)
            }
            Kw::ENCRYPTED => {
                self.take();
                self.expect_word(Kw::PASSWORD)?;
                ("password", Some(DefArg::String(self.string()?)))
            }
            Kw::UNENCRYPTED => {
                self.take();
                self.expect_word(Kw::PASSWORD)?;
                self.string()?;
                let message = "UNENCRYPTED PASSWORD is no longer supported";
                let hint = Some("Remove UNENCRYPTED to store the password in encrypted form instead.");
                return Err(super::literal::invalid("0A000", message, hint, at.0 as usize, self.last_end as usize));
            }
            Kw::INHERIT => {
                self.take();
                ("inherit", Some(DefArg::Bool(true)))
            }
            Kw::CONNECTION => {
                self.take();
                self.expect_word(Kw::LIMIT)?;
                ("connectionlimit", Some(DefArg::Integer(self.signed_integer()?)))
            }
            Kw::VALID => {
                self.take();
                self.expect_word(Kw::UNTIL)?;
                ("validUntil", Some(DefArg::String(self.string()?)))
            }
            Kw::USER => {
                self.take();
                ("rolemembers", Some(DefArg::Roles(self.roles()?)))
            }
            Kw::SYSID if creates => {
                self.take();
                ("sysid", Some(DefArg::Integer(self.integer()?)))
            }
            Kw::ADMIN if creates => {
                self.take();
                ("adminmembers", Some(DefArg::Roles(self.roles()?)))
            }
            Kw::ROLE if creates => {
                self.take();
                ("rolemembers", Some(DefArg::Roles(self.roles()?)))
            }
            Kw::IN if creates => {
                self.take();
                if self.any(&[Kw::ROLE, Kw::GROUP]).is_none() {
                    return Err(self.error());
                }
                ("addroleto", Some(DefArg::Roles(self.roles()?)))
            }
            Kw::OTHER if self.at_column_name() => return self.role_flag().map(Some),
            _ => return Ok(None),
        };
        Ok(Some(DefElem { namespace: None, name: name.to_owned(), value, at }))
    }

    /// SUPERUSER and the like, which are no keywords.
    fn role_flag(&mut self) -> Result<DefElem> {
        let word = self.take_name()?;
        let (name, value) = match word.value.as_str() {
            "superuser" => ("superuser", true),
            "nosuperuser" => ("superuser", false),
            "createrole" => ("createrole", true),
            "nocreaterole" => ("createrole", false),
            "replication" => ("isreplication", true),
            "noreplication" => ("isreplication", false),
            "createdb" => ("createdb", true),
            "nocreatedb" => ("createdb", false),
            "login" => ("canlogin", true),
            "nologin" => ("canlogin", false),
            "bypassrls" => ("bypassrls", true),
            "nobypassrls" => ("bypassrls", false),
            "noinherit" => ("inherit", false),
            other => return Err(self.invalid("42601", format!("unrecognized role option \"{other}\""), word.at)),
        };
        Ok(DefElem { namespace: None, name: name.to_owned(), value: Some(DefArg::Bool(value)), at: word.at })
    }

    fn create_extension(&mut self) -> Result<Statement> {
        let if_not_exists = self.if_not_exists()?;
        let name = self.column_name()?;
        self.word(Kw::WITH);
        let mut options = Vec::new();
        loop {
            let at = self.here();
            let (name, value) = match self.any(&[Kw::SCHEMA, Kw::VERSION, Kw::CASCADE, Kw::FROM]) {
                Some(Kw::SCHEMA) => ("schema", DefArg::String(self.column_name()?.value)),
                Some(Kw::VERSION) if self.at_string() => ("new_version", DefArg::String(self.string()?)),
                Some(Kw::VERSION) => ("new_version", DefArg::String(self.nonreserved()?.value)),
                Some(Kw::CASCADE) => ("cascade", DefArg::Bool(true)),
                Some(_) => {
                    if self.at_string() {
                        self.string()?
                    } else {
                        self.nonreserved()?.value
                    };
                    let message = "CREATE EXTENSION ... FROM is no longer supported";
                    return Err(self.invalid("0A000", message, at));
                }
                None => break,
            };
            options.push(DefElem { namespace: None, name: name.to_owned(), value: Some(value), at });
        }
        Ok(Statement::CreateExtension(CreateExtensionStmt { name, if_not_exists, options }))
    }

    /// Whether the next word may begin a type.
    pub(super) fn begins_type(&mut self) -> bool {
        let token = self.peek(1);
        match token.kind {
            Kind::Quoted | Kind::UnicodeQuoted => true,
            Kind::Word => token.kw.category() != Category::Reserved && token.kw != Kw::PRECISION,
            _ => false,
        }
    }
}
