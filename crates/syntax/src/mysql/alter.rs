//! ALTER TABLE and ALTER DATABASE.

use super::keyword::Kw;
use super::lexer::Kind;
use super::parser::Parser;
use super::table::check_alter_word;
use crate::Error;
use crate::error::Result;
use crate::tree::{Alteration, Ident, Position, Statement};

impl Parser<'_> {
    pub(super) fn alter(&mut self) -> Result<Statement> {
        self.take();
        match self.kw() {
            Kw::TABLE => {
                self.take();
                self.alter_table()
            }
            Kw::DATABASE | Kw::SCHEMA => {
                self.take();
                let is_option = matches!(
                    self.kw(),
                    Kw::DEFAULT | Kw::CHARACTER | Kw::CHAR | Kw::CHARSET | Kw::COLLATE | Kw::ENCRYPTION | Kw::READ
                );
                let name = if is_option { None } else { Some(self.identifier()?) };
                if self.kw() == Kw::READ {
                    return Err(self.unsupported("READ ONLY of a database"));
                }
                if self.at_end() {
                    return Err(self.error());
                }
                let (charset, collation) = self.database_options()?;
                Ok(Statement::AlterDatabase { name, charset, collation })
            }
            Kw::USER => self.alter_user(),
            Kw::ALGORITHM | Kw::DEFINER | Kw::SQL | Kw::VIEW => self.create_view(true),
            Kw::PROCEDURE
            | Kw::FUNCTION
            | Kw::EVENT
            | Kw::INSTANCE
            | Kw::SERVER
            | Kw::TABLESPACE
            | Kw::LOGFILE
            | Kw::RESOURCE => Err(self.unsupported(format!("ALTER {}", self.kw().text()))),
            _ => Err(self.error()),
        }
    }

    fn alter_table(&mut self) -> Result<Statement> {
        self.is_outermost = false;
        let table = self.name()?;
        let mut operations = Vec::new();
        // Options may follow each other without a comma; everything else needs one.
        while !self.at_end() {
            let was_option = self.alteration(&mut operations)?;
            if self.accept(Kind::Comma) {
                if self.at_end() {
                    return Err(self.error());
                }
            } else if !self.at_end() && !was_option {
                return Err(self.error_after_alteration());
            }
        }
        Ok(Statement::AlterTable { table, operations })
    }

    fn error_after_alteration(&self) -> Error {
        if self.kw() == Kw::PARTITION { self.unsupported("PARTITION BY") } else { self.error() }
    }

    /// One operation. True: it is a table option.
    fn alteration(&mut self, out: &mut Vec<Alteration>) -> Result<bool> {
        match self.kw() {
            Kw::ADD => {
                self.take();
                self.added(out)?;
            }
            Kw::DROP => {
                self.take();
                out.push(self.dropped()?);
            }
            Kw::MODIFY => {
                self.take();
                self.word(Kw::COLUMN);
                let name = self.ident()?;
                let column = self.column_def(name)?;
                out.push(Alteration::Modify { column, position: self.position()? });
            }
            Kw::CHANGE => {
                self.take();
                self.word(Kw::COLUMN);
                let old = self.ident()?;
                let name = self.ident()?;
                let column = self.column_def(name)?;
                out.push(Alteration::Change { old, column, position: self.position()? });
            }
            Kw::ALTER => {
                self.take();
                out.push(self.altered()?);
            }
            Kw::RENAME => {
                self.take();
                out.push(self.renamed()?);
            }
            Kw::FORCE => {
                self.take();
                out.push(Alteration::Rebuild);
            }
            Kw::DISABLE | Kw::ENABLE => {
                let value = self.take().kw.text().to_owned();
                self.expect_word(Kw::KEYS)?;
                out.push(Alteration::Hint { name: "keys".to_owned(), value });
            }
            kw @ (Kw::ALGORITHM | Kw::LOCK) => {
                self.take();
                self.equals();
                let at = self.token().start as usize;
                let value = self.alter_word()?;
                check_alter_word(kw, &value).map_err(|problem| Error { problem, at })?;
                out.push(Alteration::Hint { name: kw.text().to_ascii_lowercase(), value });
            }
            kw @ (Kw::WITH | Kw::WITHOUT) => {
                self.take();
                self.expect_word(Kw::VALIDATION)?;
                out.push(Alteration::Hint { name: "validation".to_owned(), value: kw.text().to_owned() });
            }
            Kw::ORDER => {
                self.take();
                self.expect_word(Kw::BY)?;
                let columns: Vec<Ident> = self.list(|parser| {
                    let column = parser.ident()?;
                    parser.direction();
                    Ok(column)
                })?;
                out.push(Alteration::OrderBy(columns));
            }
            Kw::CONVERT => {
                self.take();
                self.expect_word(Kw::TO)?;
                if !self.charset_words() {
                    return Err(self.error());
                }
                self.equals();
                let charset = if self.word(Kw::DEFAULT) { None } else { Some(self.charset_name()?) };
                let mut collation = None;
                if self.word(Kw::COLLATE) {
                    self.equals();
                    collation = Some(self.charset_name()?);
                }
                out.push(Alteration::Convert { charset, collation });
            }
            Kw::PARTITION
            | Kw::REORGANIZE
            | Kw::EXCHANGE
            | Kw::TRUNCATE
            | Kw::REMOVE
            | Kw::ANALYZE
            | Kw::CHECK
            | Kw::OPTIMIZE
            | Kw::REBUILD
            | Kw::REPAIR
            | Kw::DISCARD
            | Kw::IMPORT => {
                return Err(self.unsupported(format!("ALTER TABLE ... {}", self.kw().text())));
            }
            _ => match self.table_option()? {
                Some(option) => {
                    out.push(Alteration::Option(option));
                    return Ok(true);
                }
                None => return Err(self.error()),
            },
        }
        Ok(false)
    }

    /// After ADD.
    fn added(&mut self, out: &mut Vec<Alteration>) -> Result<()> {
        if self.kw() == Kw::PARTITION {
            return Err(self.unsupported("ALTER TABLE ... ADD PARTITION"));
        }
        if !self.word(Kw::COLUMN)
            && let Some(constraint) = self.table_constraint()?
        {
            out.push(Alteration::Add(constraint));
            return Ok(());
        }
        if self.accept(Kind::Open) {
            self.list(|parser| {
                match parser.table_constraint()? {
                    Some(constraint) => out.push(Alteration::Add(constraint)),
                    None => {
                        let name = parser.ident()?;
                        let column = parser.column_def(name)?;
                        out.push(Alteration::AddColumn { column, position: None });
                    }
                }
                Ok(())
            })?;
            self.expect(Kind::Close)?;
            return Ok(());
        }
        let name = self.ident()?;
        let column = self.column_def(name)?;
        out.push(Alteration::AddColumn { column, position: self.position()? });
        Ok(())
    }

    fn position(&mut self) -> Result<Option<Position>> {
        if self.word(Kw::FIRST) {
            return Ok(Some(Position::First));
        }
        if self.word(Kw::AFTER) { self.ident().map(|column| Some(Position::After(column))) } else { Ok(None) }
    }

    /// After DROP.
    fn dropped(&mut self) -> Result<Alteration> {
        match self.kw() {
            Kw::INDEX | Kw::KEY => {
                self.take();
                Ok(Alteration::DropIndex(self.ident()?))
            }
            Kw::PRIMARY => {
                self.take();
                self.expect_word(Kw::KEY)?;
                Ok(Alteration::DropPrimaryKey)
            }
            Kw::FOREIGN => {
                self.take();
                self.expect_word(Kw::KEY)?;
                Ok(Alteration::DropForeignKey(self.ident()?))
            }
            Kw::CHECK => {
                self.take();
                Ok(Alteration::DropCheck(self.ident()?))
            }
            Kw::CONSTRAINT => {
                self.take();
                Ok(Alteration::DropConstraint(self.ident()?))
            }
            Kw::PARTITION => Err(self.unsupported("ALTER TABLE ... DROP PARTITION")),
            _ => {
                self.word(Kw::COLUMN);
                let column = self.ident()?;
                self.any(&[Kw::RESTRICT, Kw::CASCADE]);
                Ok(Alteration::DropColumn(column))
            }
        }
    }

    /// After ALTER.
    fn altered(&mut self) -> Result<Alteration> {
        match self.kw() {
            Kw::INDEX => {
                self.take();
                let index = self.ident()?;
                let word = self.any(&[Kw::VISIBLE, Kw::INVISIBLE]).ok_or_else(|| self.error())?;
                return Ok(Alteration::IndexVisible { index, visible: word == Kw::VISIBLE });
            }
            Kw::CHECK | Kw::CONSTRAINT => {
                self.take();
                let constraint = self.ident()?;
                let enforced = self.enforced()?.ok_or_else(|| self.error())?;
                return Ok(Alteration::Enforce { constraint, enforced });
            }
            _ => {}
        }
        self.word(Kw::COLUMN);
        let column = self.ident()?;
        if self.word(Kw::DROP) {
            self.expect_word(Kw::DEFAULT)?;
            return Ok(Alteration::AlterDefault { column, default: None });
        }
        self.expect_word(Kw::SET)?;
        if let Some(word) = self.any(&[Kw::VISIBLE, Kw::INVISIBLE]) {
            return Ok(Alteration::ColumnVisible { column, visible: word == Kw::VISIBLE });
        }
        self.expect_word(Kw::DEFAULT)?;
        Ok(Alteration::AlterDefault { column, default: Some(self.default_value()?) })
    }

    /// After RENAME.
    fn renamed(&mut self) -> Result<Alteration> {
        match self.kw() {
            Kw::INDEX | Kw::KEY => {
                self.take();
                let from = self.ident()?;
                self.expect_word(Kw::TO)?;
                Ok(Alteration::RenameIndex { from, to: self.ident()? })
            }
            Kw::COLUMN => {
                self.take();
                let from = self.ident()?;
                self.expect_word(Kw::TO)?;
                Ok(Alteration::RenameColumn { from, to: self.ident()? })
            }
            _ => {
                if self.any(&[Kw::TO, Kw::AS]).is_none() {
                    self.equals();
                }
                Ok(Alteration::RenameTable(self.name()?))
            }
        }
    }
}
