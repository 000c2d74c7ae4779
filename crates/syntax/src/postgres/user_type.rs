//! CREATE and ALTER of types and domains.

use super::error::Result;
use super::keyword::Kw;
use super::lexer::Kind;
use super::parser::Parser;
use super::tree::*;

impl Parser<'_> {
    /// CREATE TYPE, behind TYPE.
    pub(super) fn create_type(&mut self) -> Result<Statement> {
        let name = self.any_name()?;
        if self.kind() == Kind::Open {
            return Err(self.unsupported("CREATE TYPE of a base type"));
        }
        if !self.word(Kw::AS) {
            return match self.at_end() {
                true => Err(self.unsupported("CREATE TYPE of a shell type")),
                false => Err(self.error()),
            };
        }
        match self.kw() {
            Kw::ENUM => {
                self.take();
                self.expect(Kind::Open)?;
                let labels = if self.kind() == Kind::Close { Vec::new() } else { self.list(Parser::string)? };
                self.expect(Kind::Close)?;
                Ok(Statement::CreateEnum(CreateEnumStmt { name, labels }))
            }
            Kw::RANGE => Err(self.unsupported("CREATE TYPE AS RANGE")),
            _ if self.kind() == Kind::Open => {
                self.take();
                let is_empty = self.kind() == Kind::Close;
                let attributes = if is_empty { Vec::new() } else { self.list(Parser::attribute)? };
                self.expect(Kind::Close)?;
                Ok(Statement::CreateComposite(CreateCompositeStmt { name, attributes }))
            }
            _ => Err(self.error()),
        }
    }

    /// The name and the type of an attribute.
    fn attribute(&mut self) -> Result<AttributeDef> {
        let name = self.column_name()?;
        let ty = self.type_name()?;
        let collation = if self.word(Kw::COLLATE) { Some(self.any_name()?) } else { None };
        Ok(AttributeDef { name, ty, collation })
    }

    /// One change of an attribute among those of ALTER TYPE.
    fn attribute_command(&mut self) -> Result<AlterAttributeCmd> {
        let command = match self.any(&[Kw::ADD, Kw::DROP, Kw::ALTER]) {
            Some(Kw::ADD) => {
                self.expect_word(Kw::ATTRIBUTE)?;
                AlterAttributeCmd::Add(self.attribute()?)
            }
            Some(Kw::DROP) => {
                self.expect_word(Kw::ATTRIBUTE)?;
                let missing_ok = self.if_exists()?;
                AlterAttributeCmd::Drop { name: self.column_name()?, missing_ok }
            }
            Some(_) => {
                self.expect_word(Kw::ATTRIBUTE)?;
                let name = self.column_name()?;
                if self.word(Kw::SET) {
                    self.expect_word(Kw::DATA)?;
                }
                self.expect_word(Kw::TYPE)?;
                let ty = self.type_name()?;
                let collation = if self.word(Kw::COLLATE) { Some(self.any_name()?) } else { None };
                AlterAttributeCmd::Retype(AttributeDef { name, ty, collation })
            }
            None => return Err(self.error()),
        };
        self.cascade();
        Ok(command)
    }

    /// ALTER TYPE, behind TYPE.
    pub(super) fn alter_type(&mut self) -> Result<Statement> {
        let name = self.any_name()?;
        match self.kw() {
            Kw::ADD if self.peek_is(1, Kw::VALUE) => {
                self.take();
                self.take();
                let if_not_exists = self.if_not_exists()?;
                let label = self.string()?;
                let place = match self.any(&[Kw::BEFORE, Kw::AFTER]) {
                    Some(Kw::BEFORE) => Some(EnumPlace::Before(self.string()?)),
                    Some(_) => Some(EnumPlace::After(self.string()?)),
                    None => None,
                };
                let action = AlterEnumAction::Add { label, if_not_exists, place };
                Ok(Statement::AlterEnum(Box::new(AlterEnumStmt { name, action })))
            }
            Kw::RENAME if self.peek_is(1, Kw::VALUE) => {
                self.take();
                self.take();
                let from = self.string()?;
                self.expect_word(Kw::TO)?;
                let action = AlterEnumAction::Rename { from, to: self.string()? };
                Ok(Statement::AlterEnum(Box::new(AlterEnumStmt { name, action })))
            }
            Kw::ADD | Kw::DROP | Kw::ALTER => {
                let commands = self.list(Parser::attribute_command)?;
                Ok(Statement::AlterComposite(Box::new(AlterCompositeStmt { name, commands })))
            }
            Kw::RENAME if self.peek_is(1, Kw::ATTRIBUTE) => {
                self.take();
                self.take();
                let attribute = self.column_name()?;
                self.expect_word(Kw::TO)?;
                let rename = RenameStmt {
                    object: ObjectName::Qualified(ObjectType::Type, name),
                    missing_ok: false,
                    part: RenamePart::Column(attribute),
                    to: self.column_name()?,
                };
                self.cascade();
                Ok(Statement::Rename(Box::new(rename)))
            }
            Kw::SET if self.peek(1).kind == Kind::Open => Err(self.unsupported("ALTER TYPE of a base type")),
            _ => self.alter_any_type(ObjectType::Type, name),
        }
    }

    /// The actions that ALTER TYPE and ALTER DOMAIN share.
    fn alter_any_type(&mut self, kind: ObjectType, name: AnyName) -> Result<Statement> {
        let object = ObjectName::Qualified(kind, name);
        match self.kw() {
            Kw::RENAME => self.rename_whole(object),
            Kw::OWNER => self.owner(object),
            Kw::SET => {
                self.expect_words(&[Kw::SET, Kw::SCHEMA])?;
                let schema = self.column_name()?;
                let alter = AlterObjectSchemaStmt { object, missing_ok: false, schema };
                Ok(Statement::AlterObjectSchema(Box::new(alter)))
            }
            _ => Err(self.error()),
        }
    }

    /// CREATE DOMAIN, behind DOMAIN.
    pub(super) fn create_domain(&mut self) -> Result<Statement> {
        let name = self.any_name()?;
        self.word(Kw::AS);
        let ty = Some(self.type_name()?);
        let column = ColumnDef {
            name: Ident::default(),
            ty,
            storage: None,
            compression: None,
            collation: None,
            constraints: Vec::new(),
        };
        let ColumnDef { name: _, ty, storage: _, compression: _, collation, constraints } =
            self.column_constraints(column)?;
        let Some(ty) = ty else { return Err(self.error()) };
        Ok(Statement::CreateDomain(Box::new(CreateDomainStmt { name, ty, collation, constraints })))
    }

    /// ALTER DOMAIN, behind DOMAIN.
    pub(super) fn alter_domain(&mut self) -> Result<Statement> {
        let name = self.any_name()?;
        let action = match self.kw() {
            Kw::SET if self.peek_is(1, Kw::DEFAULT) => {
                self.take();
                self.take();
                AlterDomainAction::SetDefault(Some(self.expr()?))
            }
            Kw::SET if self.peek_is(1, Kw::NOT) => {
                self.expect_words(&[Kw::SET, Kw::NOT, Kw::NULL])?;
                AlterDomainAction::SetNotNull(true)
            }
            Kw::DROP if self.peek_is(1, Kw::DEFAULT) => {
                self.take();
                self.take();
                AlterDomainAction::SetDefault(None)
            }
            Kw::DROP if self.peek_is(1, Kw::NOT) => {
                self.expect_words(&[Kw::DROP, Kw::NOT, Kw::NULL])?;
                AlterDomainAction::SetNotNull(false)
            }
            Kw::DROP => {
                self.expect_words(&[Kw::DROP, Kw::CONSTRAINT])?;
                let missing_ok = self.if_exists()?;
                let constraint = self.column_name()?;
                AlterDomainAction::DropConstraint { constraint, missing_ok, cascade: self.cascade() }
            }
            Kw::ADD => {
                self.take();
                AlterDomainAction::AddConstraint(self.table_constraint()?)
            }
            Kw::VALIDATE => {
                self.expect_words(&[Kw::VALIDATE, Kw::CONSTRAINT])?;
                AlterDomainAction::ValidateConstraint(self.column_name()?)
            }
            Kw::RENAME if self.peek_is(1, Kw::CONSTRAINT) => {
                self.take();
                self.take();
                let constraint = self.column_name()?;
                self.expect_word(Kw::TO)?;
                let rename = RenameStmt {
                    object: ObjectName::Qualified(ObjectType::Domain, name),
                    missing_ok: false,
                    part: RenamePart::Constraint(constraint),
                    to: self.column_name()?,
                };
                return Ok(Statement::Rename(Box::new(rename)));
            }
            _ => return self.alter_any_type(ObjectType::Domain, name),
        };
        Ok(Statement::AlterDomain(Box::new(AlterDomainStmt { name, action })))
    }
}
