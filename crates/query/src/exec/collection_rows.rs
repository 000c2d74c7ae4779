//! Rows of the tables of collections: how an element is shown, and how a changed row changes it.
//!
//! The key is locked as a whole, and the element is changed in the transaction's memory until COMMIT (`engine::rows`). A row's key names the element: database,
//! length of the key, key, and name. The expiry time is the key's, so all rows of a key show the same, and setting it in one row sets it for all.

use datum::fault::{CellPosition, KeyOfOtherType};
use datum::{Fault, Result};
use engine::rows::{ElementPlace, FoundElement, Strength, item_name, item_number};
use engine::{Kind, StreamId};

use crate::batch::Row;
use crate::catalog::keyspace_rows::{DB, ELEMENT_VALUE, KEY, KeyspaceTable, NAME};
use crate::engine_fault::engine_fault;
use crate::exec::host::host;
use crate::exec::keys::database;
use crate::nodes::context::EvalContext;
use crate::value::Value;

/// The position that stands for the place before the first item.
const FRONT: i64 = -1;

/// Returns the row of an element. `position` is that of an item of a list.
pub fn element_row(
    table: &KeyspaceTable,
    (db, key): (u8, &[u8]),
    name: &[u8],
    value: &[u8],
    position: i64,
    expire_at_ms: Option<u64>,
) -> Row {
    let mut row = vec![(table.forms.database)(db), Value::bytes(key)];
    match table.kind {
        Kind::List => row.extend([Value::Int(position), Value::bytes(value)]),
        Kind::ZSet => row.extend([Value::bytes(name), Value::Double(score_of(value))]),
        Kind::Set => row.push(Value::bytes(name)),
        _ => row.extend([Value::bytes(name), Value::bytes(value)]),
    }
    row.push(expire_at_ms.map_or(Value::Null, table.forms.instant));
    row
}

/// Returns the rows of an entry of a stream, one for each field.
pub fn entry_rows<'r>(
    table: &'r KeyspaceTable,
    (db, key): (u8, &'r [u8]),
    id: StreamId,
    fields: &'r [(Vec<u8>, Vec<u8>)],
    expire_at_ms: Option<u64>,
) -> impl Iterator<Item = Row> + use<'r> {
    let forms = table.forms;
    fields.iter().enumerate().map(move |(position, (field, value))| {
        vec![
            (forms.database)(db),
            Value::bytes(key),
            (forms.id)(&name_of_id(id)),
            (forms.unsigned)(id.ms),
            (forms.unsigned)(id.seq),
            (forms.unsigned)(position as u64),
            Value::bytes(field),
            Value::bytes(value),
            expire_at_ms.map_or(Value::Null, forms.instant),
        ]
    })
}

pub fn name_of_id(id: StreamId) -> String {
    format!("{}-{}", id.ms, id.seq)
}

fn score_of(value: &[u8]) -> f64 {
    value.try_into().map_or(0.0, f64::from_le_bytes)
}

pub fn row_key(db: u8, key: &[u8], name: &[u8]) -> Vec<u8> {
    [&[db], &(key.len() as u32).to_be_bytes()[..], key, name].concat()
}

fn place_of(kind: Kind, row_key: &[u8]) -> Result<ElementPlace<'_>> {
    let parts = || {
        let (db, rest) = row_key.split_first()?;
        let (len, rest) = rest.split_first_chunk()?;
        let (key, name) = rest.split_at_checked(u32::from_be_bytes(*len) as usize)?;
        Some(ElementPlace { db: *db, key, kind, name })
    };
    parts().ok_or_else(|| Fault::corrupt("an element without a key"))
}

/// Checks that a given value is possible for an element.
pub fn check(table: &KeyspaceTable, column: usize, value: &Value, row: u64) -> Result<()> {
    match (table.kind, column, value) {
        (Kind::ZSet, ELEMENT_VALUE, Value::Double(score)) if score.is_nan() => {
            Err(Fault::OutOfRange(Box::new(CellPosition { column: "score".into(), row })))
        }
        _ => Ok(()),
    }
}

fn read_only() -> Fault {
    Fault::KeyChange("changes of redis.streams")
}

/// Returns the stored value of a new element.
fn value_of(kind: Kind, row: &[Value]) -> Vec<u8> {
    match (kind, row.get(ELEMENT_VALUE)) {
        (Kind::Set, _) => Vec::new(),
        (Kind::ZSet, Some(Value::Double(score))) => score.to_le_bytes().to_vec(),
        (_, Some(value)) => value.as_string_bytes().unwrap_or_default().to_vec(),
        (_, None) => Vec::new(),
    }
}

/// Locks the key of an element, which must be absent or of this type.
fn locked(place: ElementPlace<'_>, ctx: &mut EvalContext) -> Result<FoundElement> {
    let txn = host(ctx).txn()?;
    let wait = txn.patience();
    let found = txn.lock_element(place, Strength::Exclusive, wait).map_err(engine_fault)?.unwrap_or_default();
    match found.collection.filter(|collection| collection.kind != place.kind) {
        Some(other) => Err(Fault::KeyOfOtherType(Box::new(KeyOfOtherType {
            key: String::from_utf8_lossy(place.key).into(),
            wanted: noun(place.kind),
            holds: noun(other.kind),
        }))),
        None => Ok(found),
    }
}

fn noun(kind: Kind) -> &'static str {
    match kind {
        Kind::String => "a string",
        Kind::List => "a list",
        Kind::Set => "a set",
        Kind::ZSet => "a sorted set",
        Kind::Hash => "a hash",
        Kind::Stream => "a stream",
    }
}

/// Returns the name of a new row's element, with what is there already.
fn new_name(table: &KeyspaceTable, db: u8, key: &[u8], row: &[Value], ctx: &mut EvalContext) -> Result<Vec<u8>> {
    if table.kind != Kind::List {
        return Ok(row[NAME].as_string_bytes().unwrap_or_default().to_vec());
    }
    let found = locked(ElementPlace { db, key, kind: Kind::List, name: &[] }, ctx)?;
    let len = found.numbers.end - found.numbers.start;
    let number = match row[NAME] {
        Value::Int(FRONT) => found.numbers.start - 1,
        Value::Int(position) if (0..=len).contains(&position) => found.numbers.start + position,
        Value::Null => found.numbers.end,
        _ => return Err(Fault::OutOfRange(Box::new(CellPosition { column: "position".into(), row: 1 }))),
    };
    Ok(item_name(number).to_vec())
}

fn key_of(row: &[Value]) -> Result<(u8, Vec<u8>)> {
    let db = database(&row[DB]).ok_or_else(|| Fault::corrupt("a key of no database"))?;
    Ok((db, row[KEY].as_string_bytes().unwrap_or_default().to_vec()))
}

/// Gives a new item of a list without a position that of the end.
pub fn complete(table: &KeyspaceTable, row: &mut Row, ctx: &mut EvalContext) -> Result<()> {
    if table.kind == Kind::List && row[NAME].is_null() {
        let (db, key) = key_of(row)?;
        let found = locked(ElementPlace { db, key: &key, kind: Kind::List, name: &[] }, ctx)?;
        row[NAME] = Value::Int(found.numbers.end - found.numbers.start);
    }
    Ok(())
}

/// Shows an item that was added before the first one at its position.
pub fn show_position(table: &KeyspaceTable, row: &mut Row) {
    if table.kind == Kind::List && row[NAME] == Value::Int(FRONT) {
        row[NAME] = Value::Int(0);
    }
}

/// Inserts an element. Returns its row key if it exists already.
pub fn put(table: &KeyspaceTable, row: &[Value], ctx: &mut EvalContext) -> Result<Option<Vec<u8>>> {
    if table.kind == Kind::Stream {
        return Err(read_only());
    }
    let (db, key) = key_of(row)?;
    let name = new_name(table, db, &key, row, ctx)?;
    let place = ElementPlace { db, key: &key, kind: table.kind, name: &name };
    if locked(place, ctx)?.value.is_some() {
        return Ok(Some(row_key(db, &key, &name)));
    }
    let txn = host(ctx).txn()?;
    txn.put_element(place, &value_of(table.kind, row)).map_err(engine_fault)?;
    // Without a time the key keeps the one that it has.
    if let Some(at_ms) = (table.forms.instant_ms)(&row[table.expires_at()]) {
        txn.set_elements_expiry(place, Some(at_ms)).map_err(engine_fault)?;
    }
    Ok(None)
}

/// Removes an element. Returns false if its key has expired meanwhile.
pub fn take_out(table: &KeyspaceTable, row_key: &[u8], ctx: &mut EvalContext) -> Result<bool> {
    let place = place_of(table.kind, row_key)?;
    if table.kind == Kind::Stream {
        return Err(read_only());
    }
    if let Some(number) = item_number(place.name).filter(|_| table.kind == Kind::List) {
        let found = locked(place, ctx)?;
        if found.value.is_some() && number != found.numbers.start && number + 1 != found.numbers.end {
            return Err(Fault::KeyChange("DELETE of an item that is at no end of its list"));
        }
    }
    host(ctx).txn()?.remove_element(place).map_err(engine_fault)
}

/// Changes an element, and moves it if its name or key is new. Returns false if the new name exists.
pub fn replace(table: &KeyspaceTable, at: &[u8], old: &[Value], new: &[Value], ctx: &mut EvalContext) -> Result<bool> {
    if table.kind == Kind::Stream {
        return Err(read_only());
    }
    let place = place_of(table.kind, at)?;
    let found = locked(place, ctx)?;
    // The key has expired since it was found, so the write is too late as well.
    let (Some(collection), true) = (found.collection, found.value.is_some()) else { return Ok(true) };
    let is_moved = [DB, KEY, NAME].iter().any(|column| old[*column] != new[*column]);
    let (shown, wanted) = (&old[table.expires_at()], &new[table.expires_at()]);
    let expiry = if shown == wanted { None } else { Some((table.forms.instant_ms)(wanted)) };
    let value = value_of(table.kind, new);
    if !is_moved {
        let txn = host(ctx).txn()?;
        if found.value.as_deref() != Some(&value[..]) {
            txn.put_element(place, &value).map_err(engine_fault)?;
        }
        if let Some(at_ms) = expiry {
            txn.set_elements_expiry(place, at_ms).map_err(engine_fault)?;
        }
        return Ok(true);
    }
    if table.kind == Kind::List {
        return Err(Fault::KeyChange("UPDATE of the key or the position of an item of a list"));
    }
    let (db, key) = key_of(new)?;
    let name = new[NAME].as_string_bytes().unwrap_or_default();
    let to = ElementPlace { db, key: &key, kind: table.kind, name };
    let target = locked(to, ctx)?;
    if target.value.is_some() {
        return Ok(false);
    }
    let txn = host(ctx).txn()?;
    // The new element comes first: it may be that of the same key, which must not vanish in between.
    txn.put_element(to, &value).map_err(engine_fault)?;
    let new_expiry = if target.collection.is_none() { Some(expiry.unwrap_or(collection.expire_at_ms)) } else { expiry };
    if let Some(at_ms) = new_expiry {
        txn.set_elements_expiry(to, at_ms).map_err(engine_fault)?;
    }
    txn.remove_element(place).map_err(engine_fault)?;
    Ok(true)
}

/// Locks an element and returns its row.
pub fn current(table: &KeyspaceTable, row_key: &[u8], ctx: &mut EvalContext) -> Result<Option<Row>> {
    let place = place_of(table.kind, row_key)?;
    let found = locked(place, ctx)?;
    let position = item_number(place.name).map_or(0, |number| number - found.numbers.start);
    let expire_at_ms = found.collection.and_then(|collection| collection.expire_at_ms);
    let row = |value: std::sync::Arc<[u8]>| {
        element_row(table, (place.db, place.key), place.name, &value, position, expire_at_ms)
    };
    Ok(found.value.map(row))
}
