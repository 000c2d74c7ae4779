//! Scans of `redis.strings`.
//!
//! Conditions on key and database only narrow the scan, and all conditions are rechecked above. A condition that is not
//! understood here costs time and nothing else.

use datum::Result;
use engine::rows::KeyValue;
use engine::{Entry, KeySet, Keyspace, Kind, Lsn};

use crate::batch::Row;
use crate::engine_fault::engine_fault;
use crate::exec::held_rows::HeldRows;
use crate::exec::host::host;
use crate::exec::memory::Held;
use crate::nodes::comparison::{Comparator, Comparison, ComparisonType};
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::nodes::keyspace_table::{DB, KEY, TABLES};
use crate::types::Collation;
use crate::value::Value;
use datum::temporal::Timestamp;

/// The number of keys whose values are read together.
const TOGETHER: usize = 64;

/// The part of the keyspace to read.
#[derive(Debug, Default)]
struct Wanted {
    /// None: all databases.
    databases: Option<Vec<u8>>,
    /// None: all keys with the prefix.
    keys: Option<Vec<Vec<u8>>>,
    prefix: Vec<u8>,
}

impl Wanted {
    fn want_keys(&mut self, keys: Vec<Vec<u8>>) {
        match &mut self.keys {
            None => self.keys = Some(keys),
            Some(known) => known.retain(|key| keys.contains(key)),
        }
    }

    fn want_databases(&mut self, databases: Vec<u8>) {
        match &mut self.databases {
            None => self.databases = Some(databases),
            Some(known) => known.retain(|db| databases.contains(db)),
        }
    }
}

/// The keys to read: named ones, or all of a database with a prefix.
pub enum FoundKeys {
    Named(Vec<(u8, Vec<u8>)>),
    Walked(u8, Vec<Vec<u8>>),
}

/// Calls `each` with the keys for which these conditions can hold. `base` is the outer row, `offset` the table's offset
/// in it.
pub fn find(
    conditions: &[Expr],
    offset: usize,
    base: Option<&Row>,
    ctx: &mut EvalContext,
    mut each: impl FnMut(FoundKeys, &mut EvalContext) -> Result<()>,
) -> Result<()> {
    let wanted = wanted(conditions, offset, base, ctx)?;
    let databases = wanted.databases.unwrap_or_else(|| (0..engine::DATABASES).collect());
    if let Some(keys) = wanted.keys {
        let named = databases.iter().flat_map(|db| keys.iter().map(|key| (*db, key.clone()))).collect();
        return each(FoundKeys::Named(named), ctx);
    }
    for db in databases {
        let (keys, _held) = walk(db, &wanted.prefix, ctx)?;
        each(FoundKeys::Walked(db, keys), ctx)?;
    }
    Ok(())
}

/// Lists the keys of a database with the prefix, including those that the transaction has inserted.
fn walk(db: u8, prefix: &[u8], ctx: &mut EvalContext) -> Result<(Vec<Vec<u8>>, Held)> {
    let keyspace = host(ctx).instance.engine().keyspace().clone();
    let (mut keys, mut bytes): (Vec<Vec<u8>>, usize) = (Vec::new(), 0);
    let walked = keyspace.read::<(), engine::Error>(KeySet::Keys(&[]), |unit| {
        keys.clear();
        bytes = 0;
        unit.keys(db, prefix, |key, kind| {
            if kind == Kind::String {
                bytes += 48 + key.len();
                keys.push(key.to_vec());
            }
        })
    });
    let (_, durability_lsn) = walked.map_err(engine_fault)?;
    host(ctx).seen = host(ctx).seen.max(durability_lsn);
    let own: Vec<Vec<u8>> = match &host(ctx).txn {
        Some(txn) => txn.own_keys(db).filter(|key| key.starts_with(prefix)).map(<[u8]>::to_vec).collect(),
        None => Vec::new(),
    };
    if !own.is_empty() {
        bytes += own.iter().map(|key| 48 + key.len()).sum::<usize>();
        keys.extend(own);
        keys.sort_unstable();
        keys.dedup();
    }
    let mut held = Held::default();
    host(ctx).hold(&mut held, bytes)?;
    Ok((keys, held))
}

/// Returns the rows for which these conditions can hold.
pub fn rows(conditions: &[Expr], offset: usize, base: Option<&Row>, ctx: &mut EvalContext) -> Result<HeldRows> {
    let keyspace = host(ctx).instance.engine().keyspace().clone();
    let mut rows = HeldRows::default();
    find(conditions, offset, base, ctx, |found, ctx| match found {
        FoundKeys::Named(keys) => {
            let named: Vec<(u8, &[u8])> = keys.iter().map(|(db, key)| (*db, &**key)).collect();
            read(&keyspace, &named, &mut rows, ctx)
        }
        FoundKeys::Walked(db, keys) => keys.chunks(TOGETHER).try_for_each(|some| {
            host(ctx).look_up()?;
            let named: Vec<(u8, &[u8])> = some.iter().map(|key| (db, &**key)).collect();
            read(&keyspace, &named, &mut rows, ctx)
        }),
    })?;
    Ok(rows)
}

/// Reads these keys as of one moment (D11-1), with the changes of the transaction.
pub fn read(keyspace: &Keyspace, keys: &[(u8, &[u8])], rows: &mut HeldRows, ctx: &mut EvalContext) -> Result<()> {
    type Seen = (Entry, Vec<u8>);
    let read = |unit: &mut engine::KeyTransaction<'_>| -> std::result::Result<Vec<Option<Seen>>, engine::Error> {
        let one = |(db, key): &(u8, &[u8])| {
            let Some(entry) = unit.peek(*db, key)?.filter(|entry| entry.kind == Kind::String) else { return Ok(None) };
            let mut value = Vec::with_capacity(entry.len as usize);
            unit.value(&entry, 0..entry.len, &mut value)?;
            Ok(Some((entry, value)))
        };
        keys.iter().map(one).collect()
    };
    let (found, durability_lsn): (Vec<Option<Seen>>, Lsn) =
        keyspace.read(KeySet::Keys(keys), read).map_err(engine_fault)?;
    host(ctx).seen = host(ctx).seen.max(durability_lsn);
    for ((db, key), seen) in keys.iter().zip(found) {
        let own = host(ctx).txn.as_ref().and_then(|txn| txn.own_key(*db, key)).map(|own| own.cloned());
        let row = match (own, seen) {
            (Some(Some(KeyValue { value, expire_at_ms })), _) => row(*db, key, &value, expire_at_ms),
            (Some(None), _) | (None, None) => continue,
            (None, Some((entry, value))) => row(*db, key, &value, entry.expire_at_ms),
        };
        rows.push(row, ctx)?;
    }
    Ok(())
}

pub fn row(db: u8, key: &[u8], value: &[u8], expire_at_ms: Option<u64>) -> Row {
    let time = expire_at_ms.map(|ms| Value::Timestamp(Timestamp((ms as i64).saturating_mul(1000))));
    vec![Value::UInt(u64::from(db)), Value::bytes(key), Value::bytes(value), time.unwrap_or(Value::Null)]
}

/// Returns the value of an expression that does not depend on the table's own row.
fn known(expr: &Expr, offset: usize, base: Option<&Row>, ctx: &mut EvalContext) -> Result<Option<Value>> {
    let reads = expr.columns();
    let own = offset..offset + TABLES[0].columns.len();
    let width = base.map_or(0, Vec::len);
    if reads.iter().any(|place| own.contains(place) || *place >= width) {
        return Ok(None);
    }
    Ok(Some(expr.eval(base.map_or(&[][..], |row| row), ctx)?))
}

fn wanted(conditions: &[Expr], offset: usize, base: Option<&Row>, ctx: &mut EvalContext) -> Result<Wanted> {
    let mut wanted = Wanted::default();
    let is = |expr: &Expr, column: usize| matches!(expr, Expr::Column(place, _) if *place == offset + column);
    for condition in conditions {
        match condition {
            Expr::Compare(compare) if compare.op == Comparison::Equal && fits(compare.by) => {
                for (mine, other) in [(&compare.left, &compare.right), (&compare.right, &compare.left)] {
                    let (of_key, of_db) = (is(mine, KEY), is(mine, DB));
                    let value = if of_key || of_db { known(other, offset, base, ctx)? } else { None };
                    match value {
                        Some(value) if of_key => as_keys(&[value]).into_iter().for_each(|keys| wanted.want_keys(keys)),
                        Some(value) => as_database(&value).into_iter().for_each(|of| wanted.want_databases(of)),
                        None => {}
                    }
                }
            }
            Expr::In(list) if !list.negated && is(&list.needle, KEY) && list.list.iter().all(|(_, of)| fits(*of)) => {
                let mut values = Vec::new();
                for (item, _) in &list.list {
                    values.extend(known(item, offset, base, ctx)?);
                }
                if values.len() == list.list.len()
                    && let Some(keys) = as_keys(&values)
                {
                    wanted.want_keys(keys);
                }
            }
            Expr::Call(call) if call.collation == Collation::Binary && is(&call.arguments[0], KEY) => {
                let Some(prefix) = call.function.prefix else { continue };
                let mut value = |expr: &Expr| known(expr, offset, base, ctx).ok().flatten();
                let begin = prefix(call, &mut value).map(|prefix| prefix.bytes);
                if let Some(begin) = begin.filter(|begin| begin.len() > wanted.prefix.len()) {
                    wanted.prefix = begin;
                }
            }
            _ => {}
        }
    }
    Ok(wanted)
}

/// Returns whether the comparison is one of byte strings or of numbers, which a lookup can use.
fn fits(by: Comparator) -> bool {
    matches!(by.ty, ComparisonType::Bytes | ComparisonType::Dynamic | ComparisonType::Integer)
}

/// Returns the distinct values as keys; NULL equals nothing. Returns None if a value is no string, since it may equal
/// keys of another spelling.
fn as_keys(values: &[Value]) -> Option<Vec<Vec<u8>>> {
    let mut keys: Vec<Vec<u8>> = Vec::new();
    for value in values.iter().filter(|value| !value.is_null()) {
        let bytes = match value {
            Value::Text(_) | Value::Bytes(_) => value.as_string_bytes()?.to_vec(),
            _ => return None,
        };
        if !keys.contains(&bytes) {
            keys.push(bytes);
        }
    }
    Some(keys)
}

fn as_database(value: &Value) -> Option<Vec<u8>> {
    let number = match value {
        Value::UInt(number) => *number,
        Value::Int(number) => u64::try_from(*number).unwrap_or(u64::MAX),
        Value::Null => return Some(Vec::new()),
        _ => return None,
    };
    Some(u8::try_from(number).ok().filter(|db| *db < engine::DATABASES).into_iter().collect())
}
