//! Variables of SET PERSIST: a record of the catalog for each, by name. They are set again at each start, after the
//! settings of the server.

use std::collections::BTreeMap;
use std::ops::Bound;

use datum::{Fault, Result};
use engine::Lsn;
use engine::rows::{CATALOG, Isolation, RowBatch};

use crate::catalog::Catalog;
use crate::catalog::record::{PERSISTED, put};
use crate::engine_fault::engine_fault;
use crate::value::Value;

fn key(name: &str) -> Vec<u8> {
    [&[PERSISTED], name.as_bytes()].concat()
}

/// Encodes a value as a letter for its kind, and its text.
fn encode(value: &Value) -> Vec<u8> {
    match value {
        Value::Int(number) => format!("i{number}"),
        Value::UInt(number) => format!("u{number}"),
        Value::Text(text) => format!("t{text}"),
        _ => "n".to_owned(),
    }
    .into_bytes()
}

fn decode(bytes: &[u8]) -> Option<Value> {
    let (kind, text) = std::str::from_utf8(bytes).ok()?.split_at_checked(1)?;
    Some(match kind {
        "i" => Value::Int(text.parse().ok()?),
        "u" => Value::UInt(text.parse().ok()?),
        "t" => Value::text(text),
        "n" => Value::Null,
        _ => return None,
    })
}

impl Catalog {
    /// Stores the value for later starts. Returns the durability LSN.
    pub fn persist(&self, name: &str, value: &Value) -> Result<Lsn> {
        let mut txn = self.engine.rows().begin(Isolation::ReadCommitted);
        put(&mut txn, &key(name), &encode(value))?;
        txn.commit().map_err(engine_fault)
    }

    /// Removes these variables. Returns the durability LSN.
    pub fn forget_persisted<'n>(&self, names: impl Iterator<Item = &'n str>) -> Result<Lsn> {
        let mut txn = self.engine.rows().begin(Isolation::ReadCommitted);
        for name in names {
            txn.delete(CATALOG, &key(name)).map_err(engine_fault)?;
        }
        txn.commit().map_err(engine_fault)
    }

    /// Returns all persisted variables.
    pub fn persisted(&self) -> Result<BTreeMap<String, Value>> {
        let mut txn = self.engine.rows().begin(Isolation::ReadCommitted);
        let (from, to) = ([PERSISTED], [PERSISTED + 1]);
        let mut cursor =
            txn.scan(CATALOG, Bound::Included(&from), Bound::Excluded(&to), false).map_err(engine_fault)?;
        let (mut batch, mut all) = (RowBatch::new(), BTreeMap::new());
        while cursor.next(&mut txn, &mut batch).map_err(engine_fault)? {
            for (key, value) in batch.iter() {
                let name = std::str::from_utf8(&key[1..]).ok().map(str::to_owned);
                let pair = name.zip(decode(value));
                let (name, value) = pair.ok_or_else(|| Fault::corrupt("a variable that was kept"))?;
                all.insert(name, value);
            }
        }
        txn.rollback();
        Ok(all)
    }
}
