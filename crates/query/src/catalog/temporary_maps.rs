//! Records of the maps of temporary tables, and their removal after a crash (QU-12).

use std::sync::Arc;

use datum::{Fault, Result};
use engine::Engine;
use engine::rows::{CATALOG, Isolation, MapId, Transaction};

use crate::catalog::table::{Table, TableId};
use crate::engine_fault::engine_fault;

/// The first number of temporary objects, also after a restart.
pub const FIRST: TableId = 1 << 62;

/// The bits of a temporary object's number that a dialect with small object identifiers keeps.
pub const NARROW_BITS: u32 = 30;

/// Returns the number under which an overlay finds an object: that of a temporary one without the bits above `NARROW_BITS`.
/// Two objects of one session share it only if a billion others were made between them.
pub fn narrow(id: TableId) -> TableId {
    if id >= FIRST { FIRST | id & ((1 << NARROW_BITS) - 1) } else { id }
}

pub fn maps_as_bytes(table: &Table) -> Vec<u8> {
    table.maps().into_iter().flat_map(MapId::to_le_bytes).collect()
}

/// Records of temporary tables from before a crash.
pub type Left = Vec<(Vec<u8>, Vec<u8>)>;

/// Drops the maps of these records. Returns the records whose maps cannot be dropped yet, because an interrupted
/// transaction is still being rolled back in them.
pub fn drop_left(engine: &Arc<Engine>, left: Left) -> Result<Left> {
    let (mut free, mut busy) = (Left::new(), Left::new());
    for (key, maps) in left {
        let is_busy = maps_of(&maps)?.into_iter().any(|map| engine.rows().is_rolling_back_in(map));
        if is_busy { busy.push((key, maps)) } else { free.push((key, maps)) }
    }
    drop_free(engine, &free)?;
    Ok(busy)
}

/// Returns the first number for new temporary tables, above those of the remaining records.
pub fn first_number(left: &Left) -> Result<TableId> {
    let number = |key: &[u8]| key.get(1..).and_then(|id| id.try_into().ok()).map(TableId::from_be_bytes);
    let numbers: Option<Vec<TableId>> = left.iter().map(|(key, _)| number(key)).collect();
    let numbers = numbers.ok_or_else(|| Fault::corrupt("the number of a temporary table"))?;
    Ok(numbers.into_iter().max().map_or(FIRST, |last| last + 1))
}

pub(super) fn drop_free(engine: &Arc<Engine>, left: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
    if left.is_empty() {
        return Ok(());
    }
    let mut txn = engine.rows().begin(Isolation::ReadCommitted);
    for (key, maps) in left {
        drop_maps(&mut txn, maps)?;
        txn.delete(CATALOG, key).map_err(engine_fault)?;
    }
    txn.commit().map_err(engine_fault)?;
    Ok(())
}

pub(super) fn maps_of(bytes: &[u8]) -> Result<Vec<MapId>> {
    let map = |bytes: &[u8]| bytes.try_into().map(MapId::from_le_bytes);
    bytes
        .chunks(4)
        .map(map)
        .collect::<std::result::Result<_, _>>()
        .map_err(|_| Fault::corrupt("the maps of a temporary table"))
}

pub(super) fn drop_maps(txn: &mut Transaction, maps: &[u8]) -> Result<()> {
    for map in maps_of(maps)? {
        txn.drop_map(map).map_err(engine_fault)?;
    }
    Ok(())
}
