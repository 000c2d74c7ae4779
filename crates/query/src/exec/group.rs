//! Groups by hashing their keys. They come out in the order in which they were met.

use std::collections::HashMap;

use crate::error::Result;
use crate::exec::Exec;
use crate::exec::host::{host, row_bytes};
use crate::plan::Group;
use crate::scalar::EvalContext;
use crate::scalar::aggregate::Accumulator;
use crate::scalar::key::encode;
use crate::session::Row;
use crate::value::Value;

struct Gathering {
    keys: Row,
    sums: Vec<Accumulator>,
}

pub fn gather(group: &Group, input: &mut Exec, ctx: &mut EvalContext) -> Result<Vec<Row>> {
    let mut groups: Vec<Gathering> = Vec::new();
    let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut values = Vec::new();
    let begin = |keys: Row| Gathering { keys, sums: group.calls.iter().map(|call| call.aggregate.init()).collect() };
    if group.is_whole {
        groups.push(begin(Row::new()));
    }
    input.each(ctx, &mut |row, ctx| {
        let keys: Row = group.keys.iter().map(|key| key.eval(row, ctx)).collect::<Result<_>>()?;
        // ROLLUP counts a row in the groups of every shorter key too.
        let levels = if group.rollup { 0..=keys.len() } else { keys.len()..=keys.len() };
        for level in levels {
            let at = if group.is_whole {
                0
            } else {
                let mut key = vec![level as u8];
                keys[..level].iter().zip(&group.types).for_each(|(value, ty)| encode(value, ty, false, &mut key));
                match places.get(&key) {
                    Some(at) => *at,
                    None => {
                        let mut keys = keys.clone();
                        keys[level..].fill(Value::Null);
                        host(ctx).hold(2 * key.len() + row_bytes(&keys) + 64 * group.calls.len())?;
                        places.insert(key, groups.len());
                        groups.push(begin(keys));
                        groups.len() - 1
                    }
                }
            };
            for (call, sum) in group.calls.iter().zip(&mut groups[at].sums) {
                values.clear();
                for argument in &call.arguments {
                    values.push(argument.eval(row, ctx)?);
                }
                sum.add(&call.aggregate, &values, ctx)?;
            }
        }
        Ok(())
    })?;
    if group.rollup {
        order_rollup(group, &mut groups);
    }
    let mut rows = Vec::with_capacity(groups.len());
    for mut gathering in groups {
        let mut row = gathering.keys;
        for (call, sum) in group.calls.iter().zip(&mut gathering.sums) {
            row.push(sum.finish(&call.aggregate, ctx)?);
        }
        rows.push(row);
    }
    Ok(rows)
}

/// Sums stand behind what they sum up.
fn order_rollup(group: &Group, groups: &mut [Gathering]) {
    groups.sort_by_cached_key(|gathering| {
        let mut key = Vec::new();
        for (value, ty) in gathering.keys.iter().zip(&group.types) {
            // A NULL that stands for all comes last.
            key.push(u8::from(value.is_null()));
            encode(value, ty, false, &mut key);
        }
        key
    });
}
