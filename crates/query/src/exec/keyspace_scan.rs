//! Scans of `redis.strings`, and the list of keys for the other tables of keys.

use datum::Result;
use engine::rows::KeyValue;
use engine::{Entry, KeySet, Keyspace, Kind, Lsn};

use crate::batch::Row;
use crate::catalog::keyspace_rows::{KeyspaceTable, ValueForms};
use crate::engine_fault::engine_fault;
use crate::exec::held_rows::HeldRows;
use crate::exec::host::host;
use crate::exec::keyspace_wanted::wanted;
use crate::exec::memory::Held;
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::nodes::system_table::SystemTable;
use crate::value::Value;

/// The number of keys whose values are read together.
const TOGETHER: usize = 64;

/// The keys to read: named ones, or all of a database with a prefix.
pub enum FoundKeys {
    Named(Vec<(u8, Vec<u8>)>),
    Walked(u8, Vec<Vec<u8>>),
}

/// Calls `each` with the keys for which these conditions can hold. `base` is the outer row, `offset` the table's offset
/// in it.
pub fn find(
    system: &SystemTable,
    conditions: &[Expr],
    offset: usize,
    base: Option<&Row>,
    ctx: &mut EvalContext,
    mut each: impl FnMut(FoundKeys, &mut EvalContext) -> Result<()>,
) -> Result<()> {
    let wanted = wanted(system, conditions, offset, base, ctx)?;
    if let Some(named) = wanted.named() {
        return each(FoundKeys::Named(named), ctx);
    }
    for db in wanted.databases() {
        let (keys, _held) = walk(db, Kind::String, &wanted.prefix, ctx)?;
        each(FoundKeys::Walked(db, keys), ctx)?;
    }
    Ok(())
}

/// Lists the keys of a database with the type and the prefix, including those that the transaction has inserted.
pub fn walk(db: u8, kind: Kind, prefix: &[u8], ctx: &mut EvalContext) -> Result<(Vec<Vec<u8>>, Held)> {
    let keyspace = host(ctx).instance.engine().keyspace().clone();
    let (mut keys, mut bytes): (Vec<Vec<u8>>, usize) = (Vec::new(), 0);
    let walked = keyspace.read::<(), engine::Error>(KeySet::Keys(&[]), |unit| {
        keys.clear();
        bytes = 0;
        unit.keys(db, prefix, |key, of| {
            if of == kind {
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
pub fn rows(
    (system, keys): (&SystemTable, &KeyspaceTable),
    conditions: &[Expr],
    offset: usize,
    base: Option<&Row>,
    ctx: &mut EvalContext,
) -> Result<HeldRows> {
    let keyspace = host(ctx).instance.engine().keyspace().clone();
    let mut rows = HeldRows::default();
    find(system, conditions, offset, base, ctx, |found, ctx| match found {
        FoundKeys::Named(found) => {
            let named: Vec<(u8, &[u8])> = found.iter().map(|(db, key)| (*db, &**key)).collect();
            read(&keyspace, keys.forms, &named, &mut rows, ctx)
        }
        FoundKeys::Walked(db, found) => found.chunks(TOGETHER).try_for_each(|some| {
            host(ctx).look_up()?;
            let named: Vec<(u8, &[u8])> = some.iter().map(|key| (db, &**key)).collect();
            read(&keyspace, keys.forms, &named, &mut rows, ctx)
        }),
    })?;
    Ok(rows)
}

/// Reads these keys as of one moment (D11-1), with the changes of the transaction.
pub fn read(
    keyspace: &Keyspace,
    forms: &ValueForms,
    keys: &[(u8, &[u8])],
    rows: &mut HeldRows,
    ctx: &mut EvalContext,
) -> Result<()> {
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
            (Some(Some(KeyValue { value, expire_at_ms })), _) => row(forms, *db, key, &value, expire_at_ms),
            (Some(None), _) | (None, None) => continue,
            (None, Some((entry, value))) => row(forms, *db, key, &value, entry.expire_at_ms),
        };
        rows.push(row, ctx)?;
    }
    Ok(())
}

pub fn row(forms: &ValueForms, db: u8, key: &[u8], value: &[u8], expire_at_ms: Option<u64>) -> Row {
    let time = expire_at_ms.map_or(Value::Null, forms.instant);
    vec![(forms.database)(db), Value::bytes(key), Value::bytes(value), time]
}
