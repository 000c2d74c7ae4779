//! MySQL's limit on the declared length of a key, and what it does beyond: error 1071, or a prefix where nothing else than speed depends on it.
//!
//! The limit is that of InnoDB's row format DYNAMIC. Keys of whatever length fit the engine (`query::key`); a schema that MySQL refuses is refused all the
//! same, since it could not move there.

use crate::error::{self, Result};
use crate::scalar::state::StateOf as _;
use crate::session::Session;
use crate::types::{Kind, MysqlType as _, Type};
use query::catalog::table::{Index, Part, Table, TableColumn};
use query::key_form::KeyForm;

/// Bytes of a part of a key, and of a key.
const KEY_BYTES_MAX: u32 = 3072;

/// Returns how many bytes of a column are in a key, as MySQL counts them.
pub(crate) fn part_bytes(ty: &Type, prefix: Option<u32>) -> u32 {
    match ty.kind() {
        Kind::TinyInt | Kind::Year => 1,
        Kind::SmallInt => 2,
        Kind::MediumInt | Kind::Date => 3,
        Kind::Int | Kind::Float => 4,
        Kind::BigInt | Kind::Double => 8,
        Kind::Time => 3 + u32::from(ty.scale).div_ceil(2),
        Kind::DateTime => 5 + u32::from(ty.scale).div_ceil(2),
        Kind::Timestamp => 4 + u32::from(ty.scale).div_ceil(2),
        Kind::Decimal => {
            let (whole, scale) = (ty.length - u32::from(ty.scale).min(ty.length), u32::from(ty.scale));
            let of = |digits: u32| digits / 9 * 4 + (digits % 9).div_ceil(2);
            of(whole) + of(scale)
        }
        Kind::Enum if ty.members().len() > 255 => 2,
        Kind::Enum => 1,
        Kind::Set | Kind::Bit => ty.length.div_ceil(8).max(1),
        _ => prefix.unwrap_or(ty.length).saturating_mul(character_bytes(ty)),
    }
}

fn character_bytes(ty: &Type) -> u32 {
    if ty.kind().is_text() { ty.charset().max_bytes() } else { 1 }
}

fn key_bytes(columns: &[TableColumn], parts: &[Part]) -> u32 {
    let bytes = parts.iter().map(|part| part_bytes(&columns[part.column].ty, part.prefix));
    bytes.fold(0, u32::saturating_add)
}

impl Session {
    /// Refuses keys that are new, or longer than in the `old` definition, beyond MySQL's limit. A part that alone is longer becomes a prefix, with a
    /// warning, outside strict mode and where the index is not unique.
    pub(super) fn limit_keys(&mut self, old: Option<&Table>, new: &mut Table) -> Result<()> {
        let too_long = || error::TOO_LONG_KEY.with(&[&KEY_BYTES_MAX]);
        let is_strict = self.ctx.sql_mode().is_strict();
        let columns = &new.columns;
        if let Some(parts) = &new.primary {
            let before = old.and_then(|old| Some(key_bytes(&old.columns, old.primary.as_deref()?)));
            if key_bytes(columns, parts) > before.unwrap_or(0).max(KEY_BYTES_MAX) {
                return Err(too_long());
            }
        }
        for Index { name, unique, parts, .. } in &mut new.indexes {
            let known = old.and_then(|old| Some((old, &old.indexes[old.index(name)?])));
            let before = known.map_or(0, |(old, index)| key_bytes(&old.columns, &index.parts));
            let max = before.max(KEY_BYTES_MAX);
            for part in parts.iter_mut() {
                let column = &columns[part.column];
                if part_bytes(&column.ty, part.prefix) <= max {
                    continue;
                }
                if *unique || is_strict || column.is_hidden() {
                    return Err(too_long());
                }
                part.prefix = Some(KEY_BYTES_MAX / character_bytes(&column.ty));
                self.ctx.warn(too_long());
            }
            if key_bytes(columns, parts) > max {
                return Err(too_long());
            }
        }
        Ok(())
    }
}

/// Returns whether a new index makes the rows' keys be made anew: whole ones may leave an index's entry no room.
pub(super) fn wants_shorter_row_keys(old: &Table, new: &Table) -> bool {
    let is_new = |index: &Index| !old.indexes.iter().any(|known| known.map == index.map);
    makes_row_keys_anew(new) && new.indexes.iter().any(is_new)
}

/// Returns whether any new index does so.
pub(super) fn makes_row_keys_anew(table: &Table) -> bool {
    let mut parts = table.primary.iter().flatten();
    table.primary_form == KeyForm::Whole && parts.any(|part| table.columns[part.column].ty.storage.is_string())
}
