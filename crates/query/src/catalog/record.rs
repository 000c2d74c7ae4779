//! Definitions as bytes in the engine's catalog map.
//!
//! ```text
//!   's' name                     a schema: collation
//!   't' id (8) piece (2)         a table's definition, cut into pieces that fit a record
//!   'v' id (8) piece (2)         a view, likewise (`view`)
//!   'a' id (8)                   AUTO_INCREMENT: numbers below are spoken for
//!   'p' id (8)                   maps of a temporary table (4 each): garbage after a restart
//!   'i' id (8) piece (2)         what is known of a table's rows, likewise (`statistics`)
//!   'c'                          timestamps for clients: numbers below are spoken for (`timestamps`)
//!   'u' id (8)                   rows of the table were written, or may have lost their parents, while foreign keys were not checked
//! ```

use std::sync::{Arc, OnceLock};

use crate::catalog::foreign::{Action, ForeignKey};
use crate::catalog::generated::Generated;
use crate::catalog::live::Live;
use crate::catalog::table::{Check, Default, Index, Part, Table, TableColumn};
use crate::error::{Result, SqlError};
use crate::types::{Collation, CollationName as _, Kind, Type};
use datum::row::{Layout, decode_value, encode_value};

/// Of the bytes of a definition. Those of version 1 end before the foreign keys, those of version 2 before the generated columns, those of version 3 before the options.
const VERSION: u8 = 4;
/// Bytes of one piece.
pub const PIECE: usize = 1000;

pub const TIMESTAMPS_KEY: &[u8] = b"c";

pub fn schema_key(name: &str) -> Vec<u8> {
    [b"s", name.as_bytes()].concat()
}

pub fn table_key(id: u64, piece: u16) -> Vec<u8> {
    [&b"t"[..], &id.to_be_bytes(), &piece.to_be_bytes()].concat()
}

pub fn auto_key(id: u64) -> Vec<u8> {
    [&b"a"[..], &id.to_be_bytes()].concat()
}

pub fn temporary_key(id: u64) -> Vec<u8> {
    [&b"p"[..], &id.to_be_bytes()].concat()
}

pub fn statistics_key(id: u64, piece: u16) -> Vec<u8> {
    [&b"i"[..], &id.to_be_bytes(), &piece.to_be_bytes()].concat()
}

pub fn unchecked_key(id: u64) -> Vec<u8> {
    [&b"u"[..], &id.to_be_bytes()].concat()
}

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

    fn kind(&mut self, kind: Kind) {
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

    fn column(&mut self, column: &TableColumn) -> Result<()> {
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

    fn parts(&mut self, parts: &[Part]) {
        self.count(parts.len());
        for part in parts {
            self.number(part.column as u64);
            self.number(part.prefix.map_or(u64::MAX, u64::from));
            self.byte(u8::from(part.descending));
        }
    }
}

impl Out {
    fn foreign_key(&mut self, key: &ForeignKey) {
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

pub fn encode_table(table: &Table) -> Result<Vec<u8>> {
    let mut out = Out::default();
    out.byte(VERSION);
    out.number(table.id);
    out.text(&table.schema);
    out.text(&table.name);
    out.number(table.version);
    out.number(u64::from(table.map));
    out.count(table.slots.len());
    table.slots.iter().for_each(|kind| out.kind(*kind));
    out.count(table.columns.len());
    for column in &table.columns {
        out.column(column)?;
    }
    out.byte(u8::from(table.primary.is_some()));
    out.parts(table.primary.as_deref().unwrap_or(&[]));
    out.count(table.indexes.len());
    for index in &table.indexes {
        out.text(&index.name);
        out.number(u64::from(index.map));
        out.byte(
            u8::from(index.unique)
                | u8::from(index.invisible) << 1
                | u8::from(index.generated) << 2
                | u8::from(index.using) << 3,
        );
        out.parts(&index.parts);
        out.text(&index.comment);
    }
    out.count(table.checks.len());
    for check in &table.checks {
        out.text(&check.name);
        out.text(&check.text);
        out.byte(u8::from(check.enforced));
    }
    out.number(u64::from(table.collation.id()));
    out.text(&table.comment);
    out.number(table.created as u64);
    out.count(table.foreign_keys.len());
    table.foreign_keys.iter().for_each(|key| out.foreign_key(key));
    let generated = table.columns.iter().enumerate().filter_map(|(at, column)| Some((at, column.generated.as_ref()?)));
    out.count(generated.clone().count());
    for (at, generated) in generated {
        out.number(at as u64);
        out.text(&generated.text);
        out.byte(u8::from(generated.stored) | u8::from(generated.hidden) << 1);
    }
    out.byte(u8::from(table.primary_using));
    out.count(table.options.len());
    for (name, value) in &table.options {
        out.text(name);
        out.text(value);
    }
    Ok(out.0)
}

/// Takes values off the front.
pub struct In<'b>(pub &'b [u8]);

fn damaged() -> SqlError {
    SqlError::corrupt("a record of the catalog")
}

impl<'b> In<'b> {
    fn take(&mut self, length: usize) -> Result<&'b [u8]> {
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

    fn kind(&mut self) -> Result<Kind> {
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

    fn column(&mut self) -> Result<TableColumn> {
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

    fn parts(&mut self, columns: usize) -> Result<Vec<Part>> {
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

    fn action(&mut self) -> Result<Action> {
        ACTIONS.get(usize::from(self.byte()?)).copied().ok_or_else(damaged)
    }

    fn foreign_key(&mut self, columns: usize) -> Result<ForeignKey> {
        let (name, parent_schema, parent) = (self.text()?, self.text()?, self.text()?);
        let (on_delete, on_update) = (self.action()?, self.action()?);
        let pairs = self.list(|from| Ok((from.number()? as usize, from.text()?)))?;
        if pairs.is_empty() || pairs.iter().any(|(column, _)| *column >= columns) {
            return Err(damaged());
        }
        let (columns, parent_columns) = pairs.into_iter().unzip();
        Ok(ForeignKey { name, columns, parent_schema, parent, parent_columns, on_delete, on_update })
    }

    fn generated(&mut self) -> Result<(usize, Generated)> {
        let (at, text, flags) = (self.number()? as usize, self.text()?, self.byte()?);
        Ok((at, Generated { text, stored: flags & 1 != 0, hidden: flags & 2 != 0, kept: false }))
    }

    pub fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        (0..self.count()?).map(|_| item(self)).collect()
    }
}

pub fn decode_table(bytes: &[u8]) -> Result<Table> {
    let mut from = In(bytes);
    let format = from.byte()?;
    if !(1..=VERSION).contains(&format) {
        return Err(SqlError::corrupt("a table of a later version"));
    }
    let (id, schema, name, version) = (from.number()?, from.text()?, from.text()?, from.number()?);
    let map = from.number()? as u32;
    let slots = from.list(In::kind)?;
    let mut columns = from.list(In::column)?;
    let count = columns.len();
    if columns.iter().any(|column| column.slot >= slots.len()) {
        return Err(damaged());
    }
    let has_primary = from.byte()? != 0;
    let primary = from.parts(count)?;
    let indexes = from.list(|from| {
        let (name, map, flags) = (from.text()?, from.number()? as u32, from.byte()?);
        let (parts, comment) = (from.parts(count)?, from.text()?);
        Ok(Index {
            name,
            map,
            unique: flags & 1 != 0,
            invisible: flags & 2 != 0,
            generated: flags & 4 != 0,
            using: flags & 8 != 0,
            parts,
            comment,
        })
    })?;
    let checks = from.list(|from| Ok(Check { name: from.text()?, text: from.text()?, enforced: from.byte()? != 0 }))?;
    let (collation, comment, created) = (from.collation()?, from.text()?, from.number()? as i64);
    let foreign_keys = if format < 2 { Vec::new() } else { from.list(|from| from.foreign_key(count))? };
    for (at, generated) in if format < 3 { Vec::new() } else { from.list(In::generated)? } {
        columns.get_mut(at).ok_or_else(damaged)?.generated = Some(generated);
    }
    let primary_using = format >= 4 && from.byte()? != 0;
    let options = if format < 4 { Vec::new() } else { from.list(|from| Ok((from.text()?, from.text()?)))? };
    let table = Table {
        id,
        schema,
        name,
        version,
        map,
        columns,
        slots,
        layout: Layout::default(),
        slot_columns: Vec::new(),
        primary: has_primary.then_some(primary),
        indexes,
        checks,
        foreign_keys,
        collation,
        comment,
        options,
        primary_using,
        created,
        temporary: false,
        computes: false,
        live: Arc::new(Live::new(version)),
        formulas: OnceLock::new(),
    };
    Ok(table.settle())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::keyspace_table;

    /// Each version ends where the next one goes on.
    #[test]
    fn definitions_of_earlier_versions_are_read() {
        let bytes = encode_table(keyspace_table::table()).unwrap();
        assert_eq!(bytes[0], VERSION);
        // Behind the foreign keys: the generated columns; the flag and the options. The lists are empty.
        for (version, missing) in [(4, 0), (3, 1 + 4), (2, 1 + 4 + 4), (1, 1 + 4 + 4 + 4)] {
            let mut earlier = bytes[..bytes.len() - missing].to_vec();
            earlier[0] = version;
            let table = decode_table(&earlier).unwrap();
            assert_eq!(encode_table(&table).unwrap(), bytes, "version {version}");
        }
        let mut later = bytes.clone();
        later[0] = VERSION + 1;
        assert!(decode_table(&later).is_err());
    }
}
