//! ALTER.

use super::error::Result;
use super::keyword::Kw;
use super::lexer::Kind;
use super::parser::Parser;
use super::tree::*;

impl Parser<'_> {
    pub(super) fn alter(&mut self) -> Result<Statement> {
        self.take();
        let kw = self.kw();
        match kw {
            Kw::TABLE | Kw::INDEX | Kw::SEQUENCE | Kw::VIEW => {
                self.take();
                let kind = match kw {
                    Kw::TABLE => ObjectType::Table,
                    Kw::INDEX => ObjectType::Index,
                    Kw::SEQUENCE => ObjectType::Sequence,
                    _ => ObjectType::View,
                };
                self.alter_relation(kind)
            }
            Kw::MATERIALIZED => {
                self.take();
                self.expect_word(Kw::VIEW)?;
                self.alter_relation(ObjectType::MaterializedView)
            }
            Kw::DATABASE => {
                self.take();
                self.alter_database()
            }
            Kw::TYPE => {
                self.take();
                self.alter_type()
            }
            Kw::DOMAIN => {
                self.take();
                self.alter_domain()
            }
            Kw::SCHEMA => {
                self.take();
                let name = self.column_name()?;
                let object = ObjectName::Plain(ObjectType::Schema, name);
                match self.kw() {
                    Kw::RENAME => self.rename_whole(object),
                    Kw::OWNER => self.owner(object),
                    _ => Err(self.error()),
                }
            }
            Kw::ROLE | Kw::USER | Kw::GROUP if !self.peek_is(1, Kw::MAPPING) || !self.peek_is(2, Kw::FOR) => {
                self.take();
                if kw == Kw::GROUP { self.alter_group() } else { self.alter_role() }
            }
            Kw::DEFAULT => {
                self.take();
                self.default_privileges()
            }
            _ => Err(self.refuse_kind("ALTER")),
        }
    }

    pub(super) fn rename_whole(&mut self, object: ObjectName) -> Result<Statement> {
        self.expect_words(&[Kw::RENAME, Kw::TO])?;
        let is_role = matches!(object, ObjectName::Plain(ObjectType::Role, _));
        let to = if is_role { self.role_name()? } else { self.column_name()? };
        let rename = RenameStmt { object, missing_ok: false, part: RenamePart::Whole, to };
        Ok(Statement::Rename(Box::new(rename)))
    }

    pub(super) fn owner(&mut self, object: ObjectName) -> Result<Statement> {
        self.expect_words(&[Kw::OWNER, Kw::TO])?;
        let owner = self.role()?;
        Ok(Statement::AlterOwner(Box::new(AlterOwnerStmt { object, owner })))
    }

    fn alter_relation(&mut self, kind: ObjectType) -> Result<Statement> {
        let has_tablespace = matches!(kind, ObjectType::Table | ObjectType::Index | ObjectType::MaterializedView);
        if has_tablespace && self.word(Kw::ALL) {
            self.expect_word(Kw::IN)?;
            return Err(self.unsupported("ALTER ALL IN TABLESPACE"));
        }
        let missing_ok = self.if_exists()?;
        let relation = if kind == ObjectType::Table { self.relation_expr()? } else { self.relation_name()? };
        match self.kw() {
            Kw::RENAME => return self.rename(kind, relation, missing_ok),
            Kw::SET if self.peek_is(1, Kw::SCHEMA) && kind != ObjectType::Index => {
                self.take();
                self.take();
                let schema = self.column_name()?;
                let object = ObjectName::Relation(kind, relation);
                let alter = AlterObjectSchemaStmt { object, missing_ok, schema };
                return Ok(Statement::AlterObjectSchema(Box::new(alter)));
            }
            Kw::DEPENDS | Kw::NO if self.kw() == Kw::DEPENDS || self.peek_is(1, Kw::DEPENDS) => {
                return Err(self.unsupported("DEPENDS ON EXTENSION"));
            }
            _ => {}
        }
        if kind == ObjectType::Sequence {
            let options = self.sequence_options(false)?;
            if !options.is_empty() {
                let alter = AlterSeqStmt { sequence: relation, missing_ok, options };
                return Ok(Statement::AlterSequence(Box::new(alter)));
            }
        }
        let commands = match (kind, self.kw()) {
            (ObjectType::Table, Kw::ATTACH | Kw::DETACH) => vec![self.partition_command()?],
            (ObjectType::Index, Kw::ATTACH) => return Err(self.unsupported("ALTER INDEX ATTACH PARTITION")),
            _ => self.list(Parser::alter_command)?,
        };
        Ok(Statement::AlterTable(Box::new(AlterTableStmt { kind, relation, missing_ok, commands })))
    }

    fn rename(&mut self, kind: ObjectType, relation: RangeVar, missing_ok: bool) -> Result<Statement> {
        self.take();
        let has_columns = matches!(kind, ObjectType::Table | ObjectType::View | ObjectType::MaterializedView);
        let part = match self.kw() {
            Kw::TO => RenamePart::Whole,
            Kw::CONSTRAINT if kind == ObjectType::Table => {
                self.take();
                RenamePart::Constraint(self.column_name()?)
            }
            _ if has_columns => {
                self.word(Kw::COLUMN);
                RenamePart::Column(self.column_name()?)
            }
            _ => return Err(self.error()),
        };
        self.expect_word(Kw::TO)?;
        let to = self.column_name()?;
        let object = ObjectName::Relation(kind, relation);
        Ok(Statement::Rename(Box::new(RenameStmt { object, missing_ok, part, to })))
    }

    fn partition_command(&mut self) -> Result<AlterTableCmd> {
        let attach = self.take().kw == Kw::ATTACH;
        self.expect_word(Kw::PARTITION)?;
        let partition = self.relation_name()?;
        if attach {
            let bound = self.partition_bound()?;
            return Ok(AlterTableCmd::AttachPartition(Box::new(PartitionOf { parent: partition, bound })));
        }
        if self.kw() == Kw::FINALIZE {
            return Err(self.unsupported("DETACH PARTITION FINALIZE"));
        }
        Ok(AlterTableCmd::DetachPartition { partition, concurrently: self.word(Kw::CONCURRENTLY) })
    }

    /// alter_table_cmd
    fn alter_command(&mut self) -> Result<AlterTableCmd> {
        use AlterTableCmd as Cmd;
        let token = self.token();
        let words = [
            Kw::ADD,
            Kw::ALTER,
            Kw::DROP,
            Kw::VALIDATE,
            Kw::CLUSTER,
            Kw::SET,
            Kw::RESET,
            Kw::OWNER,
            Kw::INHERIT,
            Kw::NO,
            Kw::OF,
            Kw::NOT,
            Kw::ENABLE,
            Kw::DISABLE,
            Kw::FORCE,
            Kw::REPLICA,
            Kw::OPTIONS,
        ];
        let Some(kw) = self.any(&words) else { return Err(self.error()) };
        Ok(match kw {
            Kw::ADD => return self.add_command(),
            Kw::ALTER => return self.alter_column(),
            Kw::DROP => {
                if self.word(Kw::CONSTRAINT) {
                    let missing_ok = self.if_exists()?;
                    let name = self.column_name()?;
                    return Ok(Cmd::DropConstraint { name, missing_ok, cascade: self.cascade() });
                }
                self.word(Kw::COLUMN);
                let missing_ok = self.if_exists()?;
                let name = self.column_name()?;
                Cmd::DropColumn { name, missing_ok, cascade: self.cascade() }
            }
            Kw::VALIDATE => {
                self.expect_word(Kw::CONSTRAINT)?;
                Cmd::ValidateConstraint { name: self.column_name()? }
            }
            Kw::CLUSTER => {
                self.expect_word(Kw::ON)?;
                Cmd::ClusterOn(Some(self.column_name()?))
            }
            Kw::SET => return self.set_command(),
            Kw::RESET => Cmd::ResetOptions(self.reloptions()?),
            Kw::OWNER => {
                self.expect_word(Kw::TO)?;
                Cmd::OwnerTo(self.role()?)
            }
            Kw::INHERIT => Cmd::Inherit(self.relation_name()?),
            Kw::NO => {
                if self.word(Kw::FORCE) {
                    self.row_security()?;
                    return Ok(Cmd::ForceRowSecurity { forced: false });
                }
                self.expect_word(Kw::INHERIT)?;
                Cmd::NoInherit(self.relation_name()?)
            }
            Kw::OF => Cmd::OfType(TypeName::of(self.any_name()?)),
            Kw::NOT => {
                self.expect_word(Kw::OF)?;
                Cmd::NotOfType
            }
            Kw::FORCE => {
                self.row_security()?;
                Cmd::ForceRowSecurity { forced: true }
            }
            Kw::ENABLE | Kw::DISABLE => return self.enable_command(kw == Kw::ENABLE),
            Kw::REPLICA if self.kw() == Kw::IDENTITY => return Err(self.unsupported("REPLICA IDENTITY")),
            Kw::OPTIONS if self.kind() == Kind::Open => return Err(self.unsupported("OPTIONS of a table")),
            Kw::REPLICA | Kw::OPTIONS => return Err(self.error()),
            _ => return Err(self.error_of(token)),
        })
    }

    fn row_security(&mut self) -> Result<()> {
        self.expect_words(&[Kw::ROW, Kw::LEVEL, Kw::SECURITY])
    }

    fn enable_command(&mut self, enables: bool) -> Result<AlterTableCmd> {
        match self.kw() {
            Kw::ROW => {
                self.row_security()?;
                return Ok(AlterTableCmd::RowSecurity { enabled: enables });
            }
            Kw::ALWAYS | Kw::REPLICA if enables => return Err(self.unsupported("ENABLE ALWAYS and ENABLE REPLICA")),
            Kw::RULE => return Err(self.unsupported("ENABLE RULE and DISABLE RULE")),
            _ => {}
        }
        self.expect_word(Kw::TRIGGER)?;
        let selection = match self.any(&[Kw::ALL, Kw::USER]) {
            Some(Kw::ALL) => TriggerSelection::All,
            Some(_) => TriggerSelection::User,
            None => TriggerSelection::Name(self.column_name()?),
        };
        Ok(if enables { AlterTableCmd::EnableTrigger(selection) } else { AlterTableCmd::DisableTrigger(selection) })
    }

    fn add_command(&mut self) -> Result<AlterTableCmd> {
        let is_constraint = match self.kw() {
            Kw::CONSTRAINT | Kw::CHECK | Kw::UNIQUE | Kw::PRIMARY | Kw::FOREIGN => true,
            Kw::EXCLUDE => self.peek(1).kind == Kind::Open || self.peek_is(1, Kw::USING),
            _ => false,
        };
        if is_constraint {
            return Ok(AlterTableCmd::AddConstraint(Box::new(self.table_constraint()?)));
        }
        self.word(Kw::COLUMN);
        let if_not_exists = self.if_not_exists()?;
        Ok(AlterTableCmd::AddColumn { column: Box::new(self.column_definition()?), if_not_exists })
    }

    /// SET of a table.
    fn set_command(&mut self) -> Result<AlterTableCmd> {
        use AlterTableCmd as Cmd;
        if self.kind() == Kind::Open {
            return Ok(Cmd::SetOptions(self.reloptions()?));
        }
        Ok(match self.any(&[Kw::WITHOUT, Kw::LOGGED, Kw::UNLOGGED, Kw::ACCESS, Kw::TABLESPACE]) {
            Some(Kw::WITHOUT) => match self.any(&[Kw::OIDS, Kw::CLUSTER]) {
                Some(Kw::OIDS) => Cmd::SetWithoutOids,
                Some(_) => Cmd::ClusterOn(None),
                None => return Err(self.error()),
            },
            Some(Kw::LOGGED) => Cmd::SetLogged(true),
            Some(Kw::UNLOGGED) => Cmd::SetLogged(false),
            Some(Kw::ACCESS) => {
                self.expect_word(Kw::METHOD)?;
                Cmd::SetAccessMethod(self.column_name()?)
            }
            Some(_) => Cmd::SetTablespace(self.column_name()?),
            None => return Err(self.error()),
        })
    }

    /// ALTER COLUMN, ALTER CONSTRAINT.
    fn alter_column(&mut self) -> Result<AlterTableCmd> {
        use AlterTableCmd as Cmd;
        if self.word(Kw::CONSTRAINT) {
            let name = self.column_name()?;
            let (deferrable, initially_deferred) = self.constraint_timing()?;
            return Ok(Cmd::AlterConstraint { name, deferrable, initially_deferred });
        }
        self.word(Kw::COLUMN);
        if self.kind() == Kind::Integer {
            let number = self.integer()?;
            self.expect_words(&[Kw::SET, Kw::STATISTICS])?;
            return Ok(Cmd::SetStatistics { column: ColumnOrNumber::Number(number), value: self.signed_integer()? });
        }
        let column = self.column_name()?;
        match self.kw() {
            Kw::SET => self.set_column(column),
            Kw::RESTART => self.identity_options(column),
            Kw::RESET => {
                self.take();
                Ok(Cmd::ResetColumnOptions { column, options: self.reloptions()? })
            }
            Kw::TYPE => self.column_type(column),
            Kw::OPTIONS => Err(self.unsupported("OPTIONS of a column")),
            Kw::ADD => {
                self.take();
                self.expect_word(Kw::GENERATED)?;
                let always = self.generated_when()?;
                self.expect_words(&[Kw::AS, Kw::IDENTITY])?;
                let mut options = Vec::new();
                if self.accept(Kind::Open) {
                    options = self.sequence_options(true)?;
                    self.expect(Kind::Close)?;
                }
                Ok(Cmd::AddIdentity { column, always, options })
            }
            Kw::DROP => {
                self.take();
                match self.any(&[Kw::DEFAULT, Kw::NOT, Kw::EXPRESSION, Kw::IDENTITY]) {
                    Some(Kw::DEFAULT) => Ok(Cmd::DropDefault { column }),
                    Some(Kw::NOT) => {
                        self.expect_word(Kw::NULL)?;
                        Ok(Cmd::DropNotNull { column })
                    }
                    Some(Kw::EXPRESSION) => Ok(Cmd::DropExpression { column, missing_ok: self.strict_if_exists()? }),
                    Some(_) => Ok(Cmd::DropIdentity { column, missing_ok: self.strict_if_exists()? }),
                    None => Err(self.error()),
                }
            }
            _ => Err(self.error()),
        }
    }

    fn column_type(&mut self, column: Ident) -> Result<AlterTableCmd> {
        self.expect_word(Kw::TYPE)?;
        let ty = Box::new(self.type_name()?);
        let collation = self.collation()?;
        let using = if self.word(Kw::USING) { Some(self.expr()?) } else { None };
        Ok(AlterTableCmd::SetType { column, ty, collation, using })
    }

    /// SET of a column.
    fn set_column(&mut self, column: Ident) -> Result<AlterTableCmd> {
        use AlterTableCmd as Cmd;
        let next = self.peek(1);
        if next.kind == Kind::Open {
            self.take();
            return Ok(Cmd::SetColumnOptions { column, options: self.reloptions()? });
        }
        if !matches!(next.kw, Kw::DEFAULT | Kw::NOT | Kw::STATISTICS | Kw::STORAGE | Kw::COMPRESSION | Kw::DATA) {
            return self.identity_options(column);
        }
        self.take();
        Ok(match self.take().kw {
            Kw::DEFAULT => Cmd::SetDefault { column, value: self.expr()? },
            Kw::NOT => {
                self.expect_word(Kw::NULL)?;
                Cmd::SetNotNull { column }
            }
            Kw::STATISTICS => {
                Cmd::SetStatistics { column: ColumnOrNumber::Column(column), value: self.signed_integer()? }
            }
            Kw::STORAGE => Cmd::SetStorage { column, storage: self.word_or_default()? },
            Kw::COMPRESSION => Cmd::SetCompression { column, method: self.word_or_default()? },
            _ => return self.column_type(column),
        })
    }

    /// alter_identity_column_option_list
    fn identity_options(&mut self, column: Ident) -> Result<AlterTableCmd> {
        let mut options = Vec::new();
        loop {
            let at = self.here();
            match self.kw() {
                Kw::RESTART => options.extend(self.sequence_option()?),
                Kw::SET if self.peek_is(1, Kw::GENERATED) => {
                    self.take();
                    self.take();
                    let value = if self.generated_when()? { "a" } else { "d" };
                    let value = Some(DefArg::String(value.to_owned()));
                    options.push(DefElem { namespace: None, name: "generated".to_owned(), value, at });
                }
                Kw::SET => {
                    self.take();
                    let Some(option) = self.sequence_option()? else { return Err(self.error()) };
                    if matches!(option.name.as_str(), "as" | "restart" | "owned_by") {
                        let message = format!("sequence option \"{}\" not supported here", option.name);
                        return Err(self.invalid("42601", message, option.at));
                    }
                    options.push(option);
                }
                _ => return Ok(AlterTableCmd::SetIdentity { column, options }),
            }
        }
    }

    fn alter_database(&mut self) -> Result<Statement> {
        let name = self.column_name()?;
        match self.kw() {
            Kw::RENAME => self.rename_whole(ObjectName::Plain(ObjectType::Database, name)),
            Kw::OWNER if self.peek_is(1, Kw::TO) => self.owner(ObjectName::Plain(ObjectType::Database, name)),
            Kw::REFRESH => Err(self.unsupported("REFRESH COLLATION VERSION")),
            Kw::SET if self.peek_is(1, Kw::TABLESPACE) => {
                self.take();
                let at = self.here();
                self.take();
                let value = Some(DefArg::String(self.column_name()?.value));
                let options = vec![DefElem { namespace: None, name: "tablespace".to_owned(), value, at }];
                Ok(Statement::AlterDatabase(AlterDatabaseStmt { name, options }))
            }
            Kw::SET | Kw::RESET => {
                let set = self.set_or_reset()?;
                Ok(Statement::AlterDatabaseSet(Box::new(AlterDatabaseSetStmt { name, set })))
            }
            _ => {
                self.word(Kw::WITH);
                let options = self.database_options()?;
                Ok(Statement::AlterDatabase(AlterDatabaseStmt { name, options }))
            }
        }
    }

    fn alter_role(&mut self) -> Result<Statement> {
        let role = if self.word(Kw::ALL) { None } else { Some(self.role()?) };
        if let (Some(role), Kw::RENAME) = (&role, self.kw()) {
            let RoleSpecKind::Name(name) = &role.kind else { return Err(self.error()) };
            let name = Ident { value: name.clone(), at: role.at };
            return self.rename_whole(ObjectName::Plain(ObjectType::Role, name));
        }
        if matches!(self.kw(), Kw::SET | Kw::RESET) || self.kw() == Kw::IN {
            let database = if self.word(Kw::IN) {
                self.expect_word(Kw::DATABASE)?;
                Some(self.column_name()?)
            } else {
                None
            };
            let set = self.set_or_reset()?;
            return Ok(Statement::AlterRoleSet(Box::new(AlterRoleSetStmt { role, database, set })));
        }
        let Some(role) = role else { return Err(self.error()) };
        self.word(Kw::WITH);
        let mut options = Vec::new();
        while let Some(option) = self.role_option(false)? {
            options.push(option);
        }
        Ok(Statement::AlterRole(AlterRoleStmt { role, options, drops_members: false }))
    }

    fn alter_group(&mut self) -> Result<Statement> {
        let role = self.role()?;
        if let (RoleSpecKind::Name(name), Kw::RENAME) = (&role.kind, self.kw()) {
            let name = Ident { value: name.clone(), at: role.at };
            return self.rename_whole(ObjectName::Plain(ObjectType::Role, name));
        }
        let Some(kw) = self.any(&[Kw::ADD, Kw::DROP]) else { return Err(self.error()) };
        let at = self.here();
        self.expect_word(Kw::USER)?;
        let value = Some(DefArg::Roles(self.roles()?));
        let options = vec![DefElem { namespace: None, name: "rolemembers".to_owned(), value, at }];
        Ok(Statement::AlterRole(AlterRoleStmt { role, options, drops_members: kw == Kw::DROP }))
    }

    /// ALTER DEFAULT PRIVILEGES
    fn default_privileges(&mut self) -> Result<Statement> {
        self.expect_word(Kw::PRIVILEGES)?;
        let (mut roles, mut schemas, mut redundant) = (Vec::new(), Vec::new(), None);
        loop {
            let at = self.here();
            let is_again = match self.kw() {
                Kw::IN => !schemas.is_empty(),
                Kw::FOR => !roles.is_empty(),
                _ => false,
            };
            redundant = redundant.or(is_again.then_some(at));
            if self.word(Kw::IN) {
                self.expect_word(Kw::SCHEMA)?;
                schemas = self.list(Parser::column_name)?;
            } else if self.word(Kw::FOR) {
                if self.any(&[Kw::ROLE, Kw::USER]).is_none() {
                    return Err(self.error());
                }
                roles = self.roles()?;
            } else {
                break;
            }
        }
        let is_grant = match self.any(&[Kw::GRANT, Kw::REVOKE]) {
            Some(kw) => kw == Kw::GRANT,
            None => return Err(self.error()),
        };
        let mut grant_option = !is_grant && self.grant_option_for()?;
        let privileges = self.privileges()?;
        self.expect_word(Kw::ON)?;
        let objects = match self.kw() {
            Kw::TABLES => ObjectType::Table,
            Kw::FUNCTIONS => ObjectType::Function,
            Kw::ROUTINES => ObjectType::Routine,
            Kw::SEQUENCES => ObjectType::Sequence,
            Kw::TYPES => ObjectType::Type,
            Kw::SCHEMAS => ObjectType::Schema,
            _ => return Err(self.error()),
        };
        self.take();
        self.expect_word(if is_grant { Kw::TO } else { Kw::FROM })?;
        let grantees = self.grantees()?;
        if is_grant && self.word(Kw::WITH) {
            self.expect_words(&[Kw::GRANT, Kw::OPTION])?;
            grant_option = true;
        }
        let cascade = !is_grant && self.cascade();
        let alter = AlterDefaultPrivilegesStmt {
            roles,
            schemas,
            redundant,
            is_grant,
            privileges,
            objects,
            grantees,
            grant_option,
            cascade,
        };
        Ok(Statement::AlterDefaultPrivileges(Box::new(alter)))
    }
}
