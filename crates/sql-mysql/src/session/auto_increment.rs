//! ALTER TABLE ... AUTO_INCREMENT = n: sets the counter, but never to a value that a row has, nor below 1.

use std::ops::Bound::Unbounded;

use engine::rows::{RowBatch, Transaction};

use crate::error::Result;
use crate::session::Session;
use crate::value::Value;
use query::catalog::decode::decode;
use query::catalog::table::Table;

impl Session {
    /// Sets the counter. The caller holds the table's exclusive metadata lock. The definition may be a draft.
    pub(super) fn set_auto(&mut self, table: &Table, wanted: u64, txn: &mut Transaction) -> Result<()> {
        let settled = table.copy().with_derived_fields();
        let next = wanted.max(self.highest_auto(&settled, txn)?.saturating_add(1));
        let mut counter = table.live.auto.lock();
        (counter.next, counter.reserved) = (next, next);
        Ok(self.db.catalog().reserve_auto(table.id, next)?)
    }

    /// Returns the greatest AUTO_INCREMENT value of the rows. A primary key that leads with the column is scanned
    /// backward.
    fn highest_auto(&mut self, table: &Table, txn: &mut Transaction) -> Result<u64> {
        let Some(at) = table.auto_column() else { return Ok(0) };
        let in_order = table.primary.as_ref().is_some_and(|parts| parts[0].column == at && !parts[0].order.descending);
        let mut cursor = txn.scan(table.map, Unbounded, Unbounded, in_order)?;
        let (mut batch, mut row, mut highest) = (RowBatch::new(), vec![Value::Null; table.columns.len()], 0);
        while cursor.next(txn, &mut batch)? {
            self.host().look_up()?;
            for (_, bytes) in batch.iter() {
                decode(table, bytes, &[at], &mut row)?;
                highest = highest.max(match &row[at] {
                    Value::Int(number) => u64::try_from(*number).unwrap_or(0),
                    Value::UInt(number) => *number,
                    Value::Float(number) => number.max(0.0) as u64,
                    Value::Double(number) => number.max(0.0) as u64,
                    _ => 0,
                });
                if in_order {
                    return Ok(highest);
                }
            }
        }
        Ok(highest)
    }
}
