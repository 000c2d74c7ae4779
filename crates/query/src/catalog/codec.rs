//! How records of the catalog put values, types and names one after another.

use datum::row::{decode_value, encode_value};
use datum::{Fault, Result};

use crate::catalog::foreign_key::{Action, ForeignKey};
use crate::catalog::table::{Default, Generated, Part, TableColumn};
use crate::types::{Collation, CollationName as _, Kind, Type};

const ACTIONS: &[Action] = &[Action::Nothing, Action::Restrict, Action::Cascade, Action::SetNull];

const KINDS: &[Kind] = &[
    Kind::Null,
    Kind::TinyInt,
    Kind::SmallInt,
    Kind::MediumInt,
    Kind::Int,
    Kind::BigInt,
    Kind::Decimal,
    Kind::Float,
    Kind::Double,
    Kind::Bit,
    Kind::Char,
    Kind::VarChar,
    Kind::TinyText,
    Kind::Text,
    Kind::MediumText,
    Kind::LongText,
    Kind::Binary,
    Kind::VarBinary,
    Kind::TinyBlob,
    Kind::Blob,
    Kind::MediumBlob,
    Kind::LongBlob,
    Kind::Enum,
    Kind::Set,
    Kind::Date,
    Kind::Time,
    Kind::DateTime,
    Kind::Timestamp,
    Kind::Year,
    Kind::Json,
];

/// Puts values one after another.
#[derive(std::default::Default)]
pub struct Out(pub Vec<u8>);

impl Out {
    pub fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.0.extend_from_slice(bytes);
    }

    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub fn count(&mut self, count: usize) {
        self.0.extend_from_slice(&(count as u32).to_le_bytes());
    }

    pub fn kind(&mut self, kind: Kind) {
        self.byte(KINDS.iter().position(|known| *known == kind).unwrap_or(0) as u8);
    }

    pub fn ty(&mut self, ty: &Type) {
        self.kind(ty.kind);
        self.number(u64::from(ty.length));
        self.byte(ty.scale);
        self.byte(u8::from(ty.unsigned) | u8::from(ty.zerofill) << 1 | u8::from(ty.nullable) << 2);
        self.number(u64::from(ty.collation.id()));
        self.count(ty.members().len());
        ty.members().iter().for_each(|member| self.text(member));
    }

    pub fn column(&mut self, column: &TableColumn) -> Result<()> {
        self.text(&column.name);
        self.ty(&column.ty);
        self.number(column.slot as u64);
        match &column.default {
            Default::None => self.byte(0),
            Default::Value(value) => {
                self.byte(1);
                let mut bytes = Vec::new();
                encode_value(value, column.ty.storage(), &mut bytes)?;
                self.bytes(&bytes);
            }
            Default::Now(scale) => {
                self.byte(2);
                self.byte(*scale);
            }
            Default::Expression(text) => {
                self.byte(3);
                self.text(text);
            }
            Default::Dropped => self.byte(4),
        }
        self.byte(
            u8::from(column.on_update_now)
                | u8::from(column.auto_increment) << 1
                | u8::from(column.invisible) << 2
                | u8::from(column.collated) << 3,
        );
        self.text(&column.comment);
        let mut bytes = Vec::new();
        encode_value(&column.initial, column.ty.storage(), &mut bytes)?;
        self.bytes(&bytes);
        Ok(())
    }

    pub fn parts(&mut self, parts: &[Part]) {
        self.count(parts.len());
        for part in parts {
            self.number(part.column as u64);
            self.number(part.prefix.map_or(u64::MAX, u64::from));
            self.byte(u8::from(part.descending));
        }
    }
}

impl Out {
    pub fn foreign_key(&mut self, key: &ForeignKey) {
        self.text(&key.name);
        self.text(&key.parent_schema);
        self.text(&key.parent);
        for action in [key.on_delete, key.on_update] {
            self.byte(ACTIONS.iter().position(|known| *known == action).unwrap_or(0) as u8);
        }
        self.count(key.columns.len());
        for (own, theirs) in key.columns.iter().zip(&key.parent_columns) {
            self.number(*own as u64);
            self.text(theirs);
        }
    }
}

/// Takes values off the front.
pub struct In<'b>(pub &'b [u8]);

/// The error about bytes that no record of the catalog can hold.
pub fn damaged() -> Fault {
    Fault::corrupt("a record of the catalog")
}

impl<'b> In<'b> {
    pub fn take(&mut self, length: usize) -> Result<&'b [u8]> {
        let (head, rest) = self.0.split_at_checked(length).ok_or_else(damaged)?;
        self.0 = rest;
        Ok(head)
    }

    pub fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    pub fn number(&mut self) -> Result<u64> {
        let bytes = self.take(8)?.try_into().map_err(|_| damaged())?;
        Ok(u64::from_le_bytes(bytes))
    }

    pub fn count(&mut self) -> Result<usize> {
        let bytes = self.take(4)?.try_into().map_err(|_| damaged())?;
        let count = u32::from_le_bytes(bytes) as usize;
        // Everything counted takes at least a byte.
        if count > self.0.len() { Err(damaged()) } else { Ok(count) }
    }

    pub fn bytes(&mut self) -> Result<&'b [u8]> {
        let length = self.count()?;
        self.take(length)
    }

    pub fn text(&mut self) -> Result<String> {
        Ok(std::str::from_utf8(self.bytes()?).map_err(|_| damaged())?.to_owned())
    }

    pub fn kind(&mut self) -> Result<Kind> {
        KINDS.get(usize::from(self.byte()?)).copied().ok_or_else(damaged)
    }

    pub fn collation(&mut self) -> Result<Collation> {
        let id = u16::try_from(self.number()?).map_err(|_| damaged())?;
        Collation::by_id(id).ok_or_else(damaged)
    }

    pub fn ty(&mut self) -> Result<Type> {
        let kind = self.kind()?;
        let length = self.number()? as u32;
        let scale = self.byte()?;
        let flags = self.byte()?;
        let collation = self.collation()?;
        let mut members: Vec<Box<str>> = Vec::new();
        for _ in 0..self.count()? {
            members.push(self.text()?.into());
        }
        let members = if members.is_empty() { None } else { Some(members.into()) };
        Ok(Type {
            kind,
            length,
            scale,
            unsigned: flags & 1 != 0,
            zerofill: flags & 2 != 0,
            nullable: flags & 4 != 0,
            collation,
            members,
        })
    }

    pub fn column(&mut self) -> Result<TableColumn> {
        let name = self.text()?;
        let ty = self.ty()?;
        let slot = self.number()? as usize;
        let default = match self.byte()? {
            0 => Default::None,
            1 => Default::Value(decode_value(self.bytes()?, ty.storage())?),
            2 => Default::Now(self.byte()?),
            3 => Default::Expression(self.text()?),
            4 => Default::Dropped,
            _ => return Err(damaged()),
        };
        let flags = self.byte()?;
        let comment = self.text()?;
        let initial = decode_value(self.bytes()?, ty.storage())?;
        Ok(TableColumn {
            name,
            ty,
            slot,
            default,
            on_update_now: flags & 1 != 0,
            auto_increment: flags & 2 != 0,
            invisible: flags & 4 != 0,
            collated: flags & 8 != 0,
            comment,
            initial,
            generated: None,
        })
    }

    pub fn parts(&mut self, columns: usize) -> Result<Vec<Part>> {
        let mut parts = Vec::new();
        for _ in 0..self.count()? {
            let column = self.number()? as usize;
            if column >= columns {
                return Err(damaged());
            }
            let prefix = self.number()?;
            let prefix = if prefix == u64::MAX { None } else { Some(prefix as u32) };
            parts.push(Part { column, prefix, descending: self.byte()? != 0 });
        }
        Ok(parts)
    }

    pub fn action(&mut self) -> Result<Action> {
        ACTIONS.get(usize::from(self.byte()?)).copied().ok_or_else(damaged)
    }

    pub fn foreign_key(&mut self, columns: usize) -> Result<ForeignKey> {
        let (name, parent_schema, parent) = (self.text()?, self.text()?, self.text()?);
        let (on_delete, on_update) = (self.action()?, self.action()?);
        let pairs = self.list(|from| Ok((from.number()? as usize, from.text()?)))?;
        if pairs.is_empty() || pairs.iter().any(|(column, _)| *column >= columns) {
            return Err(damaged());
        }
        let (columns, parent_columns) = pairs.into_iter().unzip();
        Ok(ForeignKey { name, columns, parent_schema, parent, parent_columns, on_delete, on_update })
    }

    pub fn generated(&mut self) -> Result<(usize, Generated)> {
        let (at, text, flags) = (self.number()? as usize, self.text()?, self.byte()?);
        Ok((at, Generated { text, stored: flags & 1 != 0, hidden: flags & 2 != 0, kept: false }))
    }

    pub fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        (0..self.count()?).map(|_| item(self)).collect()
    }
}
