//! DROP, COMMENT, GRANT, REVOKE: objects by their names.

use super::error::Result;
use super::keyword::Kw;
use super::lexer::Kind;
use super::parser::Parser;
use super::tree::*;

impl Parser<'_> {
    pub(super) fn drop(&mut self) -> Result<Statement> {
        self.take();
        match self.kw() {
            Kw::DATABASE => {
                self.take();
                self.drop_database()
            }
            Kw::ROLE | Kw::USER | Kw::GROUP if !self.peek_is(1, Kw::MAPPING) => {
                self.take();
                let missing_ok = self.if_exists()?;
                Ok(Statement::DropRole(DropRoleStmt { roles: self.roles()?, missing_ok }))
            }
            Kw::OWNED => {
                self.take();
                self.expect_word(Kw::BY)?;
                let roles = self.roles()?;
                Ok(Statement::DropOwned(DropOwnedStmt { roles, cascade: self.cascade() }))
            }
            _ => self.drop_objects(),
        }
    }

    fn drop_database(&mut self) -> Result<Statement> {
        let missing_ok = self.if_exists()?;
        let name = self.column_name()?;
        let with = self.word(Kw::WITH);
        let mut force = false;
        if with || self.kind() == Kind::Open {
            self.bracketed(|parser| parser.expect_word(Kw::FORCE))?;
            force = true;
        }
        Ok(Statement::DropDatabase(DropdbStmt { name, missing_ok, force }))
    }

    fn drop_objects(&mut self) -> Result<Statement> {
        let Some(kind) = self.object_type()? else {
            return Err(self.refuse_kind("DROP"));
        };
        let concurrently = kind == ObjectType::Index && self.word(Kw::CONCURRENTLY);
        let missing_ok = self.if_exists()?;
        let objects = if kind == ObjectType::Trigger {
            vec![self.object_name(kind)?]
        } else {
            self.list(|parser| parser.object_name(kind))?
        };
        Ok(Statement::Drop(DropStmt { objects, missing_ok, cascade: self.cascade(), concurrently }))
    }

    /// The kind of object that DROP and COMMENT name, if it is one of the tree's.
    fn object_type(&mut self) -> Result<Option<ObjectType>> {
        let kind = match self.kw() {
            Kw::TABLE => ObjectType::Table,
            Kw::SEQUENCE => ObjectType::Sequence,
            Kw::VIEW => ObjectType::View,
            Kw::INDEX => ObjectType::Index,
            Kw::SCHEMA => ObjectType::Schema,
            Kw::EXTENSION => ObjectType::Extension,
            Kw::COLLATION => ObjectType::Collation,
            Kw::TYPE => ObjectType::Type,
            Kw::DOMAIN => ObjectType::Domain,
            Kw::FUNCTION => ObjectType::Function,
            Kw::PROCEDURE => ObjectType::Procedure,
            Kw::ROUTINE => ObjectType::Routine,
            Kw::AGGREGATE => ObjectType::Aggregate,
            Kw::TRIGGER => ObjectType::Trigger,
            Kw::MATERIALIZED => {
                self.take();
                self.expect_word(Kw::VIEW)?;
                return Ok(Some(ObjectType::MaterializedView));
            }
            _ => return Ok(None),
        };
        self.take();
        Ok(Some(kind))
    }

    /// The name of an object of that kind.
    fn object_name(&mut self, kind: ObjectType) -> Result<ObjectName> {
        use ObjectType::*;
        Ok(match kind {
            Table | Sequence | View | MaterializedView | Index => ObjectName::Relation(kind, self.relation_name()?),
            Collation | Column => ObjectName::Qualified(kind, self.any_name()?),
            Type | Domain => ObjectName::Type(kind, self.type_name()?),
            Function | Procedure | Routine => ObjectName::Function(kind, self.function_with_arguments()?),
            Aggregate => ObjectName::Function(kind, self.aggregate_with_arguments()?),
            Constraint | Trigger => {
                let name = self.column_name()?;
                self.expect_word(Kw::ON)?;
                if kind == Constraint && self.word(Kw::DOMAIN) {
                    return Ok(ObjectName::OnDomain(name, self.type_name()?));
                }
                ObjectName::OnRelation(kind, name, self.relation_name()?)
            }
            Database | Extension | Role | Schema | Tablespace => ObjectName::Plain(kind, self.column_name()?),
        })
    }

    /// A function's name, and whether it may have arguments.
    fn function_name(&mut self) -> Result<(AnyName, bool)> {
        let token = self.token();
        let names_function = token.kind != Kind::Word || token.kw.is_function_name();
        let first = if self.at_column_name() { self.take_name()? } else { self.function_word()? };
        let name = self.rest_of_name(first)?;
        let takes_arguments = names_function || name.parts.len() > 1;
        Ok((name, takes_arguments))
    }

    /// function_with_argtypes
    pub(super) fn function_with_arguments(&mut self) -> Result<ObjectWithArgs> {
        let (name, takes_arguments) = self.function_name()?;
        if self.kind() != Kind::Open || !takes_arguments {
            return Ok(ObjectWithArgs { name, arguments: None });
        }
        self.take();
        let mut arguments = Vec::new();
        if self.kind() != Kind::Close {
            loop {
                arguments.extend(self.function_argument()?);
                if !self.accept(Kind::Comma) {
                    break;
                }
            }
        }
        self.expect(Kind::Close)?;
        Ok(ObjectWithArgs { name, arguments: Some(arguments) })
    }

    fn aggregate_with_arguments(&mut self) -> Result<ObjectWithArgs> {
        let (name, takes_arguments) = self.function_name()?;
        if !takes_arguments {
            return Err(self.error());
        }
        self.expect(Kind::Open)?;
        if self.accept(Kind::Star) {
            self.expect(Kind::Close)?;
            return Ok(ObjectWithArgs { name, arguments: Some(Vec::new()) });
        }
        if self.kw() == Kw::ORDER {
            return Err(self.unsupported("ORDER BY in the arguments of an aggregate"));
        }
        let mut arguments = Vec::new();
        loop {
            arguments.extend(self.function_argument()?);
            if !self.accept(Kind::Comma) {
                break;
            }
        }
        if self.kw() == Kw::ORDER {
            return Err(self.unsupported("ORDER BY in the arguments of an aggregate"));
        }
        self.expect(Kind::Close)?;
        Ok(ObjectWithArgs { name, arguments: Some(arguments) })
    }

    /// func_arg: mode, name and type; None: an OUT argument, which does not name the function.
    fn function_argument(&mut self) -> Result<Option<TypeName>> {
        let mut is_out = self.argument_mode();
        let is_double = self.kw() == Kw::DOUBLE && self.peek_is(1, Kw::PRECISION);
        if !is_double && self.at_function_name() && self.begins_type_behind_name() {
            self.take_name()?;
            is_out |= self.argument_mode();
        }
        let ty = self.argument_type()?;
        Ok((!is_out).then_some(ty))
    }

    fn begins_type_behind_name(&mut self) -> bool {
        self.begins_type() || matches!(self.peek(1).kw, Kw::IN | Kw::VARIADIC)
    }

    /// arg_class; whether it is OUT.
    fn argument_mode(&mut self) -> bool {
        match self.any(&[Kw::IN, Kw::OUT, Kw::INOUT, Kw::VARIADIC]) {
            Some(Kw::IN) => {
                self.word(Kw::OUT);
                false
            }
            Some(kw) => kw == Kw::OUT,
            None => false,
        }
    }

    pub(super) fn comment(&mut self) -> Result<Statement> {
        self.take();
        self.expect_word(Kw::ON)?;
        let kind = match self.kw() {
            Kw::COLUMN => Some(ObjectType::Column),
            Kw::CONSTRAINT => Some(ObjectType::Constraint),
            Kw::DATABASE => Some(ObjectType::Database),
            Kw::ROLE => Some(ObjectType::Role),
            Kw::TABLESPACE => Some(ObjectType::Tablespace),
            _ => None,
        };
        let kind = match kind {
            Some(kind) => {
                self.take();
                kind
            }
            None => match self.object_type()? {
                Some(kind) => kind,
                None => return Err(self.refuse_kind("COMMENT ON")),
            },
        };
        let object = self.object_name(kind)?;
        self.expect_word(Kw::IS)?;
        let comment = if self.word(Kw::NULL) { None } else { Some(self.string()?) };
        Ok(Statement::Comment(Box::new(CommentStmt { object, comment })))
    }

    pub(super) fn grant(&mut self) -> Result<Statement> {
        self.take();
        let privileges = self.privileges_or_roles()?;
        if self.kw() == Kw::TO
            && let Some(list) = &privileges
        {
            let roles = self.role_names(list)?;
            self.take();
            let grantees = self.roles()?;
            let mut options = Vec::new();
            if self.word(Kw::WITH) {
                options = self.list(Parser::role_grant_option)?;
            }
            let granted_by = self.granted_by()?;
            let grant = GrantRoleStmt { is_grant: true, roles, grantees, options, granted_by, cascade: false };
            return Ok(Statement::GrantRole(Box::new(grant)));
        }
        self.expect_word(Kw::ON)?;
        let target = self.grant_target()?;
        self.expect_word(Kw::TO)?;
        let grantees = self.grantees()?;
        let grant_option = self.word(Kw::WITH);
        if grant_option {
            self.expect_words(&[Kw::GRANT, Kw::OPTION])?;
        }
        let granted_by = self.granted_by()?;
        Ok(Statement::Grant(Box::new(GrantStmt {
            is_grant: true,
            privileges: privileges.unwrap_or_default(),
            target,
            grantees,
            grant_option,
            granted_by,
            cascade: false,
        })))
    }

    /// `ADMIN OPTION`, `INHERIT TRUE`
    fn role_grant_option(&mut self) -> Result<DefElem> {
        let name = self.label()?;
        let value = match self.any(&[Kw::OPTION, Kw::TRUE, Kw::FALSE]) {
            Some(kw) => Some(DefArg::Bool(kw != Kw::FALSE)),
            None => return Err(self.error()),
        };
        Ok(DefElem { namespace: None, name: name.value, value, at: name.at })
    }

    /// GRANT OPTION FOR
    pub(super) fn grant_option_for(&mut self) -> Result<bool> {
        if !self.word(Kw::GRANT) {
            return Ok(false);
        }
        self.expect_words(&[Kw::OPTION, Kw::FOR])?;
        Ok(true)
    }

    pub(super) fn revoke(&mut self) -> Result<Statement> {
        self.take();
        let mut options = Vec::new();
        let grant_option = self.grant_option_for()?;
        if !grant_option && self.peek_is(1, Kw::OPTION) {
            let name = self.column_name()?;
            self.expect_words(&[Kw::OPTION, Kw::FOR])?;
            let value = Some(DefArg::Bool(false));
            options.push(DefElem { namespace: None, name: name.value, value, at: name.at });
        }
        let privileges = self.privileges_or_roles()?;
        if self.kw() == Kw::FROM
            && !grant_option
            && let Some(list) = &privileges
        {
            let roles = self.role_names(list)?;
            self.take();
            let grantees = self.roles()?;
            let granted_by = self.granted_by()?;
            let cascade = self.cascade();
            let revoke = GrantRoleStmt { is_grant: false, roles, grantees, options, granted_by, cascade };
            return Ok(Statement::GrantRole(Box::new(revoke)));
        }
        if !options.is_empty() {
            return Err(self.error());
        }
        self.expect_word(Kw::ON)?;
        let target = self.grant_target()?;
        self.expect_word(Kw::FROM)?;
        let grantees = self.grantees()?;
        let granted_by = self.granted_by()?;
        Ok(Statement::Grant(Box::new(GrantStmt {
            is_grant: false,
            privileges: privileges.unwrap_or_default(),
            target,
            grantees,
            grant_option,
            granted_by,
            cascade: self.cascade(),
        })))
    }

    fn granted_by(&mut self) -> Result<Option<RoleSpec>> {
        if !self.word(Kw::GRANTED) {
            return Ok(None);
        }
        self.expect_word(Kw::BY)?;
        self.role().map(Some)
    }

    pub(super) fn grantees(&mut self) -> Result<Vec<RoleSpec>> {
        self.list(|parser| {
            parser.word(Kw::GROUP);
            parser.role()
        })
    }

    /// privileges; empty: ALL.
    pub(super) fn privileges(&mut self) -> Result<Vec<AccessPriv>> {
        Ok(self.privileges_or_roles()?.unwrap_or_default())
    }

    /// None: ALL, which no role is.
    fn privileges_or_roles(&mut self) -> Result<Option<Vec<AccessPriv>>> {
        let at = self.here();
        if self.word(Kw::ALL) {
            self.word(Kw::PRIVILEGES);
            let columns = self.optional_columns()?;
            if columns.is_empty() {
                return Ok(None);
            }
            // ALL (columns) is one privilege without a name; no role may follow from it.
            return Ok(Some(vec![AccessPriv { name: None, columns, at }]));
        }
        self.list(|parser| {
            let at = parser.here();
            let name = match parser.kw() {
                Kw::SELECT | Kw::REFERENCES | Kw::CREATE => parser.take_name()?.value,
                Kw::ALTER if parser.peek_is(1, Kw::SYSTEM) => {
                    parser.take();
                    parser.take();
                    return Ok(AccessPriv { name: Some("alter system".to_owned()), columns: Vec::new(), at });
                }
                _ => parser.column_name()?.value,
            };
            Ok(AccessPriv { name: Some(name), columns: parser.optional_columns()?, at })
        })
        .map(Some)
    }

    fn grant_target(&mut self) -> Result<GrantTarget> {
        let next = self.peek(1).kind;
        let is_name = matches!(next, Kind::Dot | Kind::Comma) || matches!(self.peek(1).kw, Kw::TO | Kw::FROM);
        let kw = if is_name && self.kw().is_column_name() { Kw::OTHER } else { self.kw() };
        Ok(match kw {
            Kw::TABLE => {
                self.take();
                GrantTarget::Relations(self.list(Parser::relation_name)?)
            }
            Kw::SEQUENCE => {
                self.take();
                GrantTarget::Sequences(self.list(Parser::relation_name)?)
            }
            Kw::DATABASE => {
                self.take();
                GrantTarget::Databases(self.list(Parser::column_name)?)
            }
            Kw::SCHEMA => {
                self.take();
                GrantTarget::Schemas(self.list(Parser::column_name)?)
            }
            Kw::TABLESPACE => {
                self.take();
                GrantTarget::Tablespaces(self.list(Parser::column_name)?)
            }
            Kw::LANGUAGE => {
                self.take();
                GrantTarget::Languages(self.list(Parser::column_name)?)
            }
            Kw::TYPE | Kw::DOMAIN => {
                let kind = if self.take().kw == Kw::TYPE { ObjectType::Type } else { ObjectType::Domain };
                GrantTarget::Types(kind, self.list(Parser::any_name)?)
            }
            Kw::FUNCTION | Kw::PROCEDURE | Kw::ROUTINE => {
                let kind = match self.take().kw {
                    Kw::FUNCTION => ObjectType::Function,
                    Kw::PROCEDURE => ObjectType::Procedure,
                    _ => ObjectType::Routine,
                };
                GrantTarget::Functions(kind, self.list(Parser::function_with_arguments)?)
            }
            Kw::PARAMETER => {
                self.take();
                GrantTarget::Parameters(self.list(Parser::setting_parts)?)
            }
            Kw::ALL => {
                self.take();
                let kind = match self.kw() {
                    Kw::TABLES => ObjectType::Table,
                    Kw::SEQUENCES => ObjectType::Sequence,
                    Kw::FUNCTIONS => ObjectType::Function,
                    Kw::PROCEDURES => ObjectType::Procedure,
                    Kw::ROUTINES => ObjectType::Routine,
                    _ => return Err(self.error()),
                };
                self.take();
                self.expect_words(&[Kw::IN, Kw::SCHEMA])?;
                GrantTarget::AllInSchemas(kind, self.list(Parser::column_name)?)
            }
            Kw::FOREIGN => return Err(self.unsupported("GRANT ON FOREIGN objects")),
            Kw::LARGE if self.peek_is(1, Kw::OBJECT) => return Err(self.unsupported("GRANT ON LARGE OBJECT")),
            _ => GrantTarget::Relations(self.list(Parser::relation_name)?),
        })
    }

    /// parameter_name
    fn setting_parts(&mut self) -> Result<AnyName> {
        let first = self.column_name()?;
        let mut name = AnyName { parts: vec![first.value], at: first.at };
        while self.accept(Kind::Dot) {
            name.parts.push(self.column_name()?.value);
        }
        Ok(name)
    }

    /// The roles that GRANT and REVOKE name in the place of privileges.
    fn role_names(&self, list: &[AccessPriv]) -> Result<Vec<Ident>> {
        let role = |privilege: &AccessPriv| {
            let AccessPriv { name, columns, at } = privilege;
            let Some(name) = name else { return Err(self.error()) };
            if columns.is_empty() {
                return Ok(Ident { value: name.clone(), at: *at });
            }
            Err(self.invalid("42601", "column names cannot be included in GRANT/REVOKE ROLE", *at))
        };
        list.iter().map(role).collect()
    }
}
