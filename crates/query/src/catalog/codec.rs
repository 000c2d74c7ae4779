//! Encoding of values, types and names in records of the catalog.

use std::sync::Arc;

use datum::key::KeyOrder;
use datum::row::{decode_value, encode_value};
use datum::{Collation, Fault, Result, Storage};

use crate::catalog::foreign_key::{Action, Deferral, ForeignKey};
use crate::catalog::object_id::{Maker, ObjectId, UNNUMBERED};
use crate::catalog::table::{Default, Generated, Identity, Part, TableColumn};
use crate::types::{Type, TypeId};

const ACTIONS: &[Action] = &[Action::Nothing, Action::Restrict, Action::Cascade, Action::SetNull];

/// By their codes.
const IDENTITIES: [Identity; 3] = [Identity::None, Identity::Always, Identity::ByDefault];

/// The bit of a storage type's byte. Bytes without it are kinds of the formats before 5 (`FORMER`).
const STORAGE: u8 = 0x80;

const fn int(bytes: u8) -> Storage {
    Storage::Int { bytes, signed: true }
}

/// The storage types of the kinds in tables up to version 4 and views of version 1. Unsigned integers had a flag.
const FORMER: [Storage; 30] = [
    Storage::Text,
    int(1),
    int(2),
    int(4),
    int(4),
    int(8),
    Storage::Decimal,
    Storage::Float4,
    Storage::Float8,
    Storage::Bit,
    Storage::Text,
    Storage::Text,
    Storage::Text,
    Storage::Text,
    Storage::Text,
    Storage::Text,
    Storage::Bytes,
    Storage::Bytes,
    Storage::Bytes,
    Storage::Bytes,
    Storage::Bytes,
    Storage::Bytes,
    Storage::Enum,
    Storage::Set,
    Storage::Date,
    Storage::Time,
    Storage::Timestamp,
    Storage::TimestampTz,
    Storage::Int { bytes: 2, signed: false },
    Storage::Json,
];

/// The type numbers of the former kinds; the bit marks unsigned ones.
const FORMER_TYPES: u32 = 1 << 31;
const FORMER_UNSIGNED: u32 = 1 << 8;

/// The bits of a part's order: it descends; NULL is greater than every value. Up to version 4 the byte is 0 or 1.
const DESCENDING: u8 = 1;
const NULL_GREATEST: u8 = 2;

fn order_byte(order: KeyOrder) -> u8 {
    let null = if order.nulls_first == order.descending { NULL_GREATEST } else { 0 };
    null | if order.descending { DESCENDING } else { 0 }
}

fn order_of(byte: u8) -> Option<KeyOrder> {
    let descending = byte & DESCENDING != 0;
    match byte & !DESCENDING {
        0 => Some(KeyOrder::with_null_least(descending)),
        NULL_GREATEST => Some(KeyOrder::with_null_greatest(descending)),
        _ => None,
    }
}

/// The beginning of an object's record.
pub struct DefinitionHead {
    pub id: ObjectId,
    pub maker: Maker,
    pub schema: String,
    pub name: String,
}

/// Appends values to a record.
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

    pub fn storage(&mut self, storage: Storage) {
        self.byte(STORAGE | storage.code());
    }

    pub fn ty(&mut self, ty: &Type) {
        let Type { storage, id, attributes, length, scale, nullable, collation, members: _ } = ty;
        self.storage(*storage);
        self.number(u64::from(id.0));
        self.byte(*attributes);
        self.number(u64::from(*length));
        self.byte(*scale);
        self.byte(u8::from(*nullable));
        self.collation(*collation);
        self.count(ty.members().len());
        ty.members().iter().for_each(|member| self.text(member));
    }

    /// Writes the beginning of an object's record: its number, its maker and its name.
    pub fn head(&mut self, id: ObjectId, maker: Maker, schema: &str, name: &str) {
        self.number(id);
        self.byte(maker.0);
        self.text(schema);
        self.text(name);
    }

    pub fn collation(&mut self, collation: Collation) {
        self.number(u64::from(collation.code()));
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
                encode_value(value, column.ty.storage, &mut bytes)?;
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
        encode_value(&column.initial, column.ty.storage, &mut bytes)?;
        self.bytes(&bytes);
        Ok(())
    }

    pub fn parts(&mut self, parts: &[Part]) {
        self.count(parts.len());
        for part in parts {
            self.number(part.column as u64);
            self.number(part.prefix.map_or(u64::MAX, u64::from));
            self.byte(order_byte(part.order));
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

/// Reads values from the front of a record.
pub struct In<'b>(pub &'b [u8]);

/// Returns the error for bytes that are no valid record of the catalog.
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
        // Each counted item takes at least a byte.
        if count > self.0.len() { Err(damaged()) } else { Ok(count) }
    }

    pub fn bytes(&mut self) -> Result<&'b [u8]> {
        let length = self.count()?;
        self.take(length)
    }

    pub fn text(&mut self) -> Result<String> {
        Ok(std::str::from_utf8(self.bytes()?).map_err(|_| damaged())?.to_owned())
    }

    pub fn storage(&mut self) -> Result<Storage> {
        let byte = self.byte()?;
        let storage = match byte & STORAGE != 0 {
            true => Storage::of_code(byte & !STORAGE),
            false => FORMER.get(usize::from(byte)).copied(),
        };
        storage.ok_or_else(damaged)
    }

    pub fn collation(&mut self) -> Result<Collation> {
        let code = u16::try_from(self.number()?).map_err(|_| damaged())?;
        Collation::of_code(code).ok_or_else(damaged)
    }

    fn number_u32(&mut self) -> Result<u32> {
        u32::try_from(self.number()?).map_err(|_| damaged())
    }

    pub fn ty(&mut self) -> Result<Type> {
        let first = *self.0.first().ok_or_else(damaged)?;
        let storage = self.storage()?;
        if first & STORAGE == 0 {
            return self.former_type(first, storage);
        }
        Ok(Type {
            storage,
            id: TypeId(self.number_u32()?),
            attributes: self.byte()?,
            length: self.number_u32()?,
            scale: self.byte()?,
            nullable: self.byte()? != 0,
            collation: self.collation()?,
            members: self.members()?,
        })
    }

    /// Reads the rest of a type in the formats before 5, behind its kind.
    fn former_type(&mut self, kind: u8, storage: Storage) -> Result<Type> {
        let (length, scale, flags) = (self.number_u32()?, self.byte()?, self.byte()?);
        let unsigned = flags & 1 != 0;
        let storage = match storage {
            Storage::Int { bytes, signed } => Storage::Int { bytes, signed: signed && !unsigned },
            storage => storage,
        };
        let id = match kind {
            0 => TypeId::NULL,
            kind => TypeId(FORMER_TYPES | u32::from(kind) | if unsigned { FORMER_UNSIGNED } else { 0 }),
        };
        let (attributes, nullable) = (u8::from(flags & 2 != 0), flags & 4 != 0);
        let (collation, members) = (self.collation()?, self.members()?);
        Ok(Type { storage, id, attributes, length, scale, nullable, collation, members })
    }

    fn members(&mut self) -> Result<Option<Arc<[Box<str>]>>> {
        let members: Vec<Box<str>> = self.list(|from| Ok(from.text()?.into()))?;
        Ok(if members.is_empty() { None } else { Some(members.into()) })
    }

    pub fn column(&mut self) -> Result<TableColumn> {
        let name = self.text()?;
        let ty = self.ty()?;
        let slot = self.number()? as usize;
        let default = match self.byte()? {
            0 => Default::None,
            1 => Default::Value(decode_value(self.bytes()?, ty.storage)?),
            2 => Default::Now(self.byte()?),
            3 => Default::Expression(self.text()?),
            4 => Default::Dropped,
            _ => return Err(damaged()),
        };
        let flags = self.byte()?;
        let comment = self.text()?;
        let initial = decode_value(self.bytes()?, ty.storage)?;
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
            identity: Identity::None,
            sequences: Vec::new(),
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
            parts.push(Part { column, prefix, order: order_of(self.byte()?).ok_or_else(damaged)? });
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
        Ok(ForeignKey {
            id: UNNUMBERED,
            name,
            columns,
            parent_schema,
            parent,
            parent_columns,
            on_delete,
            on_update,
            deferral: Deferral::Never,
            is_validated: true,
        })
    }

    pub fn generated(&mut self) -> Result<(usize, Generated)> {
        let (at, text, flags) = (self.number()? as usize, self.text()?, self.byte()?);
        Ok((at, Generated { text, stored: flags & 1 != 0, hidden: flags & 2 != 0, kept: false }))
    }

    pub fn head(&mut self) -> Result<DefinitionHead> {
        let (id, maker) = (self.object_id()?, self.maker()?);
        Ok(DefinitionHead { id, maker, schema: self.text()?, name: self.text()? })
    }

    pub fn maker(&mut self) -> Result<Maker> {
        Ok(Maker(self.byte()?))
    }

    /// Reads the number of an object, which is not `UNNUMBERED`.
    pub fn object_id(&mut self) -> Result<ObjectId> {
        Some(self.number()?).filter(|id| *id != UNNUMBERED).ok_or_else(damaged)
    }

    pub fn identity(&mut self) -> Result<Identity> {
        IDENTITIES.get(usize::from(self.byte()?)).copied().ok_or_else(damaged)
    }

    pub fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        (0..self.count()?).map(|_| item(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_read_as_it_was_written() {
        let members: Arc<[Box<str>]> = vec!["a".into(), "b".into()].into();
        let types = [
            Type::null(),
            Type::truth().with_nullable(false),
            Type::plain(Storage::Decimal, TypeId(1700), (65, 30), true, Collation::Binary),
            Type { members: Some(members), attributes: 1, ..Type::undeclared(Storage::Enum, (1, 0), true) },
        ];
        for ty in types {
            let mut out = Out::default();
            out.ty(&ty);
            let mut from = In(&out.0);
            assert_eq!(from.ty().unwrap(), ty);
            assert!(from.0.is_empty());
            (0..out.0.len()).for_each(|end| assert!(In(&out.0[..end]).ty().is_err(), "{end} bytes of {ty:?}"));
        }
    }

    #[test]
    fn the_order_of_a_part_is_read_as_it_was_written() {
        for (byte, order) in [
            (0, KeyOrder::with_null_least(false)),
            (1, KeyOrder::with_null_least(true)),
            (2, KeyOrder::with_null_greatest(false)),
            (3, KeyOrder::with_null_greatest(true)),
        ] {
            assert_eq!((order_byte(order), order_of(byte)), (byte, Some(order)));
        }
        assert_eq!(order_of(4), None);
    }

    /// Tables up to version 4 and views of version 1 have a kind, its length, scale, flags, collation and members.
    #[test]
    fn types_of_the_formats_before_5_are_read() {
        let read = |kind: u8, flags: u8, collation: u16| {
            let mut out = Out::default();
            out.byte(kind);
            out.number(20);
            out.byte(3);
            out.byte(flags);
            out.number(u64::from(collation));
            out.count(0);
            let mut from = In(&out.0);
            let ty = from.ty();
            assert!(ty.is_err() || from.0.is_empty());
            ty
        };
        let unsigned = read(5, 1 | 2, 63).unwrap();
        let expected = Type {
            storage: Storage::Int { bytes: 8, signed: false },
            id: TypeId(FORMER_TYPES | FORMER_UNSIGNED | 5),
            attributes: 1,
            length: 20,
            scale: 3,
            nullable: false,
            collation: Collation::Binary,
            members: None,
        };
        assert_eq!(unsigned, expected);
        let text = read(11, 4, 255).unwrap();
        assert_eq!((text.storage, text.collation, text.nullable), (Storage::Text, Collation::Utf8Uca900AiCi, true));
        assert_eq!(read(0, 4, 63).unwrap().id, TypeId::NULL);
        assert!(read(30, 0, 63).is_err() && read(5, 0, 18).is_err());
    }
}
