//! Types that users define.
//!
//! A type's values lie in rows and keys in the form of a storage type, so the executor needs no definition. A value of an
//! enumeration is the key of its label. Keys order as labels do, byte by byte, and between any two another one fits: a
//! label that is added anywhere leaves the keys of the others, and with them every index, as they are. A value of a
//! composite type is a record, which carries the names and types of its fields: the type of stored values cannot change.

use std::sync::Arc;

use datum::value::{RecordField, RecordType};
use datum::{Fault, Result};

use crate::catalog::codec::{DefinitionHead, In, Out};
use crate::catalog::object_id::{Maker, ObjectId};
use crate::types::{Type, TypeId};

/// The version of a definition.
const VERSION: u8 = 1;
/// The kinds of types in a record.
const ENUMERATION: u8 = 1;
const DOMAIN: u8 = 2;
const COMPOSITE: u8 = 3;

#[derive(Clone, Debug, PartialEq)]
pub struct UserType {
    pub id: ObjectId,
    pub maker: Maker,
    pub schema: String,
    pub name: String,
    /// The numbers under which columns have the type, or arrays of it.
    pub numbers: Vec<TypeId>,
    pub comment: String,
    pub definition: TypeDefinition,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TypeDefinition {
    /// The labels in their order.
    Enumeration(Vec<EnumLabel>),
    Domain(DomainDefinition),
    Composite(CompositeDefinition),
}

/// A type whose values are rows.
#[derive(Clone, Debug, PartialEq)]
pub struct CompositeDefinition {
    /// The names and types of the attributes, as values of the type carry them.
    pub row: Arc<RecordType>,
    /// The rest of each attribute.
    pub attributes: Vec<CompositeAttribute>,
    /// The highest number that an attribute has had.
    pub last_number: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompositeAttribute {
    /// It stays when others before it are dropped.
    pub number: u16,
    pub comment: String,
}

/// A type with fewer values than another one, whose form they have. The texts are the maker's.
#[derive(Clone, Debug, PartialEq)]
pub struct DomainDefinition {
    pub base: Type,
    /// The value of a column that is given none and has no default of its own.
    pub default: Option<String>,
    pub is_not_null: bool,
    pub checks: Vec<DomainCheck>,
}

/// A condition that the values of a domain satisfy.
#[derive(Clone, Debug, PartialEq)]
pub struct DomainCheck {
    pub id: ObjectId,
    pub name: String,
    pub text: String,
    /// Values from before the check are known to satisfy it.
    pub is_validated: bool,
}

/// A label of an enumeration.
#[derive(Clone, Debug, PartialEq)]
pub struct EnumLabel {
    pub id: ObjectId,
    pub name: String,
    /// Its value in rows and keys.
    pub key: Vec<u8>,
    /// A number that orders it among the others, for clients.
    pub rank: f32,
    /// It was added to a published type by a transaction that has not committed.
    pub is_pending: bool,
}

impl UserType {
    /// Returns the type of the records that are its values, if it is a composite type.
    pub fn row(&self) -> Option<&Arc<RecordType>> {
        match &self.definition {
            TypeDefinition::Composite(composite) => Some(&composite.row),
            TypeDefinition::Enumeration(_) | TypeDefinition::Domain(_) => None,
        }
    }

    /// Returns the numbers of the type and of its parts.
    pub(super) fn ids(&self) -> Vec<ObjectId> {
        match &self.definition {
            TypeDefinition::Enumeration(labels) => {
                std::iter::once(self.id).chain(labels.iter().map(|label| label.id)).collect()
            }
            TypeDefinition::Domain(domain) => {
                std::iter::once(self.id).chain(domain.checks.iter().map(|check| check.id)).collect()
            }
            TypeDefinition::Composite(_) => vec![self.id],
        }
    }

    /// Returns the type as its commit leaves it.
    pub(super) fn settled(ty: &Arc<UserType>) -> Arc<UserType> {
        match &ty.definition {
            TypeDefinition::Enumeration(labels) if labels.iter().any(|label| label.is_pending) => {
                let labels = labels.iter().map(|label| EnumLabel { is_pending: false, ..label.clone() });
                Arc::new(UserType { definition: TypeDefinition::Enumeration(labels.collect()), ..(**ty).clone() })
            }
            TypeDefinition::Enumeration(_) | TypeDefinition::Domain(_) | TypeDefinition::Composite(_) => ty.clone(),
        }
    }
}

/// Bytes of the keys of an enumeration's first labels; trailing zeros are left out.
const FIRST_KEY: usize = 4;
/// The distance of two neighbours among the first labels.
const STEP: u32 = 1 << 16;
/// The longest key.
const KEY_MAX: usize = 512;

/// Returns the keys of so many labels; `None` if there are too many.
pub fn first_keys(count: usize) -> Option<Vec<Vec<u8>>> {
    (1..=count).map(|nth| u32::try_from(nth).ok()?.checked_mul(STEP).map(shortened)).collect()
}

fn shortened(number: u32) -> Vec<u8> {
    let mut key = number.to_be_bytes().to_vec();
    while key.last() == Some(&0) {
        key.pop();
    }
    key
}

/// Returns a key between two others; without a lower or an upper one, below or above all. `None`: it would be too long.
pub fn key_between(low: Option<&[u8]>, high: Option<&[u8]>) -> Option<Vec<u8>> {
    let low = low.unwrap_or(&[]);
    if high.is_none() {
        let mut first = [0; FIRST_KEY];
        let taken = low.len().min(FIRST_KEY);
        first[..taken].copy_from_slice(&low[..taken]);
        if let Some(next) = (u32::from_be_bytes(first) & !(STEP - 1)).checked_add(STEP) {
            return Some(shortened(next));
        }
    }
    let mut key = Vec::new();
    // Whether the key so far is that of `high`, which then bounds the next byte.
    let mut is_at_high = high.is_some();
    for at in 0..KEY_MAX {
        let below = u16::from(low.get(at).copied().unwrap_or(0));
        let above = match high {
            Some(high) if is_at_high => high.get(at).map_or(0, |byte| u16::from(*byte)),
            _ => 256,
        };
        if above > below + 1 {
            key.push(below.midpoint(above) as u8);
            return Some(key);
        }
        is_at_high &= above == below;
        key.push(below as u8);
    }
    None
}

pub(super) fn type_key(id: ObjectId, piece: u16) -> Vec<u8> {
    [&b"y"[..], &id.to_be_bytes(), &piece.to_be_bytes()].concat()
}

pub(super) fn encode_type(ty: &UserType) -> Vec<u8> {
    let UserType { id, maker, schema, name, numbers, comment, definition } = ty;
    let mut out = Out::default();
    out.byte(VERSION);
    out.head(*id, *maker, schema, name);
    out.count(numbers.len());
    numbers.iter().for_each(|number| out.number(u64::from(number.0)));
    out.text(comment);
    match definition {
        TypeDefinition::Enumeration(labels) => {
            out.byte(ENUMERATION);
            out.count(labels.len());
            for EnumLabel { id, name, key, rank, is_pending: _ } in labels {
                out.number(*id);
                out.text(name);
                out.bytes(key);
                out.number(u64::from(rank.to_bits()));
            }
        }
        TypeDefinition::Domain(DomainDefinition { base, default, is_not_null, checks }) => {
            out.byte(DOMAIN);
            out.ty(base);
            out.byte(u8::from(default.is_some()));
            out.text(default.as_deref().unwrap_or_default());
            out.byte(u8::from(*is_not_null));
            out.count(checks.len());
            for DomainCheck { id, name, text, is_validated } in checks {
                out.number(*id);
                out.text(name);
                out.text(text);
                out.byte(u8::from(*is_validated));
            }
        }
        TypeDefinition::Composite(CompositeDefinition { row, attributes, last_number }) => {
            out.byte(COMPOSITE);
            out.number(u64::from(row.number));
            out.number(u64::from(*last_number));
            out.count(attributes.len());
            for (field, CompositeAttribute { number, comment }) in row.fields.iter().zip(attributes) {
                let RecordField { name, number: ty, length, shape, record: _ } = field;
                out.text(name);
                out.ty(&Type::plain(shape.storage, TypeId(*ty), (*length, 0), true, shape.collation));
                out.number(u64::from(*number));
                out.text(comment);
            }
        }
    }
    out.0
}

pub(super) fn decode_type(bytes: &[u8]) -> Result<UserType> {
    let mut from = In(bytes);
    if from.byte()? != VERSION {
        return Err(Fault::corrupt("a type of a later version"));
    }
    let DefinitionHead { id, maker, schema, name } = from.head()?;
    let number = |from: &mut In<'_>| {
        let number = from.number()?;
        u32::try_from(number).map_err(|_| Fault::corrupt("a type's record"))
    };
    let small = |from: &mut In<'_>| u16::try_from(number(from)?).map_err(|_| Fault::corrupt("a type's record"));
    let numbers = from.list(|from| number(from).map(TypeId))?;
    let comment = from.text()?;
    let definition = match from.byte()? {
        ENUMERATION => TypeDefinition::Enumeration(from.list(|from| {
            let (id, name, key) = (from.object_id()?, from.text()?, from.bytes()?.to_vec());
            Ok(EnumLabel { id, name, key, rank: f32::from_bits(number(from)?), is_pending: false })
        })?),
        DOMAIN => {
            let (base, has_default, text) = (from.ty()?, from.byte()? != 0, from.text()?);
            let (default, is_not_null) = (Some(text).filter(|_| has_default), from.byte()? != 0);
            let checks = from.list(|from| {
                let (id, name, text) = (from.object_id()?, from.text()?, from.text()?);
                Ok(DomainCheck { id, name, text, is_validated: from.byte()? != 0 })
            })?;
            TypeDefinition::Domain(DomainDefinition { base, default, is_not_null, checks })
        }
        COMPOSITE => {
            let (of_row, last_number) = (number(&mut from)?, small(&mut from)?);
            let parts = from.list(|from| {
                let (name, ty) = (from.text()?.into(), from.ty()?);
                let (number, length, shape) = (ty.id.0, ty.length, ty.shape());
                let field = RecordField { name, number, length, shape, record: None };
                Ok((field, CompositeAttribute { number: small(from)?, comment: from.text()? }))
            })?;
            let (fields, attributes): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
            let row = Arc::new(RecordType { number: of_row, fields: fields.into() });
            TypeDefinition::Composite(CompositeDefinition { row, attributes, last_number })
        }
        _ => return Err(Fault::corrupt("a type of an unknown kind")),
    };
    Ok(UserType { id, maker, schema, name, numbers, comment, definition })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_fits_between_any_two_neighbours_until_keys_are_too_long() {
        let mut keys = first_keys(3).unwrap();
        assert_eq!(keys, [vec![0, 1], vec![0, 2], vec![0, 3]]);
        let mut seed = 7u64;
        for _ in 0..2000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (seed >> 33) as usize % (keys.len() + 1);
            let low = at.checked_sub(1).map(|low| &*keys[low]);
            let key = key_between(low, keys.get(at).map(|high| &**high)).unwrap();
            assert_ne!(key.last(), Some(&0));
            keys.insert(at, key);
        }
        assert!(keys.is_sorted_by(|a, b| a < b));
        assert!(keys.iter().all(|key| key.len() < 40));
        // Always at the one place: some seven labels for each byte.
        for is_at_the_end in [false, true] {
            let (mut low, mut high) = (vec![0, 1], vec![0, 2]);
            let mut count = 0;
            while let Some(key) = key_between(Some(&low), Some(&high)) {
                assert!(low < key && key < high);
                if is_at_the_end {
                    low = key
                } else {
                    high = key
                }
                count += 1;
            }
            assert!(count > 3000, "{count}");
        }
        let mut last = vec![0, 1];
        for _ in 0..65_000 {
            let next = key_between(Some(&last), None).unwrap();
            assert!(next > last);
            last = next;
        }
    }

    #[test]
    fn a_type_comes_back_from_its_bytes() {
        let label = |id, name: &str, key: &[u8], rank| {
            let (name, key) = (name.to_owned(), key.to_vec());
            EnumLabel { id, name, key, rank, is_pending: false }
        };
        let labels = vec![label(8, "sad", &[0, 1], 1.0), label(9, "ok", &[0, 1, 128], 1.5)];
        let ty = UserType {
            id: 7,
            maker: Maker(2),
            schema: "s".into(),
            name: "mood".into(),
            numbers: vec![TypeId(1 << 28), TypeId(3 << 27)],
            comment: "how it goes".into(),
            definition: TypeDefinition::Enumeration(labels),
        };
        let check = DomainCheck { id: 8, name: "c".into(), text: "value > 0".into(), is_validated: true };
        let domain = DomainDefinition {
            base: Type::plain(datum::Storage::Text, TypeId(25), (u32::MAX, 0), true, datum::Collation::Binary),
            default: Some("'x'".into()),
            is_not_null: true,
            checks: vec![check],
        };
        let field = |name: &str, number: u32, storage: datum::Storage| RecordField {
            name: name.into(),
            number,
            length: u32::MAX,
            shape: storage.into(),
            record: None,
        };
        let fields =
            vec![field("a", 23, datum::Storage::Int { bytes: 4, signed: true }), field("b", 25, datum::Storage::Text)];
        let attributes = [(1, ""), (7, "the second")];
        let attributes = attributes.map(|(number, comment)| CompositeAttribute { number, comment: comment.into() });
        let row = Arc::new(RecordType { number: 1 << 27, fields: fields.into() });
        let composite = CompositeDefinition { row, attributes: attributes.into(), last_number: 9 };
        let kinds = [TypeDefinition::Domain(domain), TypeDefinition::Composite(composite)];
        let others = kinds.map(|definition| UserType { definition, ..ty.clone() });
        for ty in others.into_iter().chain([ty]) {
            let bytes = encode_type(&ty);
            assert_eq!(decode_type(&bytes).unwrap(), ty);
            assert!((0..bytes.len()).all(|end| decode_type(&bytes[..end]).is_err()));
        }
    }
}
