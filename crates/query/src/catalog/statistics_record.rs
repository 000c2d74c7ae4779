//! Encoding of statistics as a record of the catalog.

use datum::row::{decode_value, encode_value};
use datum::{Fault, Result};

use crate::catalog::codec::{In, Out};
use crate::catalog::statistics::{Bucket, ColumnStatistics, Histogram, KeyStatistics, Statistics};
use crate::catalog::table::Table;
use crate::types::Type;

const VERSION: u8 = 1;

impl Out {
    fn fraction(&mut self, fraction: f64) {
        self.number(fraction.to_bits());
    }

    fn buckets(&mut self, buckets: &[Bucket], ty: &Type) -> Result<()> {
        self.count(buckets.len());
        for bucket in buckets {
            for value in [&bucket.low, &bucket.high] {
                let mut bytes = Vec::new();
                encode_value(value, ty.storage, &mut bytes)?;
                self.bytes(&bytes);
            }
            self.fraction(bucket.upto);
            self.number(bucket.distinct);
        }
        Ok(())
    }
}

impl In<'_> {
    fn fraction(&mut self) -> Result<f64> {
        let fraction = f64::from_bits(self.number()?);
        if (0.0..=1.0).contains(&fraction) {
            Ok(fraction)
        } else {
            Err(Fault::corrupt("a fraction in a table's statistics"))
        }
    }

    fn buckets(&mut self, ty: &Type) -> Result<Vec<Bucket>> {
        self.list(|from| {
            let low = decode_value(from.bytes()?, ty.storage)?;
            let high = decode_value(from.bytes()?, ty.storage)?;
            Ok(Bucket { low, high, upto: from.fraction()?, distinct: from.number()? })
        })
    }
}

/// Encodes statistics, of columns that the table still has.
pub fn encode_statistics(statistics: &Statistics, table: &Table) -> Result<Vec<u8>> {
    let mut out = Out::default();
    out.byte(VERSION);
    out.number(statistics.rows);
    out.number(statistics.gathered as u64);
    out.count(statistics.keys.len());
    for key in &statistics.keys {
        out.number(u64::from(key.map));
        out.number(key.leaves);
        out.count(key.distinct.len());
        key.distinct.iter().for_each(|distinct| out.number(*distinct));
    }
    let type_of = |slot: usize| table.slot_columns.get(slot).copied().flatten().map(|at| &table.columns[at].ty);
    let columns: Vec<_> =
        statistics.columns.iter().filter_map(|column| Some((column, type_of(column.slot)?))).collect();
    out.count(columns.len());
    for (column, ty) in columns {
        out.number(column.slot as u64);
        // Values are decoded with the type that they were encoded with, also after an ALTER TABLE that widens the
        // column.
        out.ty(ty);
        out.fraction(column.nulls);
        out.number(column.distinct);
        out.buckets(&column.spread, ty)?;
        out.byte(u8::from(column.histogram.is_some()));
        if let Some(histogram) = &column.histogram {
            out.buckets(&histogram.buckets, ty)?;
            out.fraction(histogram.nulls);
            out.number(histogram.updated as u64);
            out.fraction(histogram.rate);
            out.number(u64::from(histogram.wanted));
        }
    }
    Ok(out.0)
}

pub fn decode_statistics(bytes: &[u8]) -> Result<Statistics> {
    let mut from = In(bytes);
    if from.byte()? != VERSION {
        return Err(Fault::corrupt("a table's statistics of a later version"));
    }
    let (rows, gathered) = (from.number()?, from.number()? as i64);
    let keys = from.list(|from| {
        let (map, leaves) = (from.number()? as u32, from.number()?);
        Ok(KeyStatistics { map, leaves, distinct: from.list(In::number)? })
    })?;
    let columns = from.list(|from| {
        let (slot, ty) = (from.number()? as usize, from.ty()?);
        let (nulls, distinct) = (from.fraction()?, from.number()?);
        let spread = from.buckets(&ty)?;
        let histogram = match from.byte()? {
            0 => None,
            _ => Some(Histogram {
                buckets: from.buckets(&ty)?,
                nulls: from.fraction()?,
                updated: from.number()? as i64,
                rate: from.fraction()?,
                wanted: from.number()? as u32,
            }),
        };
        Ok(ColumnStatistics { slot, nulls, distinct, spread, histogram })
    })?;
    Ok(Statistics { rows, gathered, keys, columns })
}
