//! Statistics of a table: its number of rows, the number of distinct values of its key prefixes, and the distribution
//! of its columns.
//!
//! They are estimates from the time of sampling (`sampling`) and affect plans, never results (QU-22). Columns are
//! identified by slots and keys by maps, so statistics survive ALTER TABLE; those of dropped columns and indexes are
//! ignored.

use datum::Storage;
use std::cmp::Ordering;

use datum::key::{KeyOrder, encode};
use engine::rows::MapId;

use crate::types::Type;
use crate::value::Value;
use datum::temporal::calendar::day_number;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    pub rows: u64,
    /// The time of sampling in microseconds since 1970.
    pub gathered: i64,
    pub keys: Vec<KeyStatistics>,
    pub columns: Vec<ColumnStatistics>,
}

/// Statistics of the primary key or of an index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyStatistics {
    pub map: MapId,
    pub leaves: u64,
    /// The number of distinct values of its first part, its first two, and so on.
    pub distinct: Vec<u64>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnStatistics {
    pub slot: usize,
    /// The fraction of rows with NULL.
    pub nulls: f64,
    pub distinct: u64,
    /// The distribution of the other values, from a sample.
    pub spread: Vec<Bucket>,
    /// The histogram of ANALYZE TABLE ... UPDATE HISTOGRAM, which stays until that statement replaces it.
    pub histogram: Option<Histogram>,
}

/// A histogram bucket: values from `low` to `high`, both included.
#[derive(Clone, Debug, PartialEq)]
pub struct Bucket {
    pub low: Value,
    pub high: Value,
    /// The fraction of all rows that are not NULL and at most `high`.
    pub upto: f64,
    pub distinct: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    pub buckets: Vec<Bucket>,
    pub nulls: f64,
    pub updated: i64,
    /// The fraction of rows that was sampled.
    pub rate: f64,
    /// The number of buckets that was requested.
    pub wanted: u32,
}

impl Statistics {
    pub fn key(&self, map: MapId) -> Option<&KeyStatistics> {
        self.keys.iter().find(|key| key.map == map)
    }

    pub fn column(&self, slot: usize) -> Option<&ColumnStatistics> {
        self.columns.iter().find(|column| column.slot == slot)
    }

    /// Estimates the number of distinct values of the first `parts` parts of a key.
    pub fn distinct(&self, map: MapId, parts: usize) -> Option<f64> {
        let known = self.key(map)?.distinct.get(parts.checked_sub(1)?)?;
        Some((*known as f64).max(1.0))
    }

    /// Returns whether the actual number of rows differs so much that the statistics are useless.
    pub fn is_off(&self, rows: f64) -> bool {
        (rows - self.rows as f64).abs() > self.rows as f64 / 10.0 + 100.0
    }
}

fn order(a: &Value, b: &Value, ty: &Type) -> Ordering {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    encode(a, ty.shape(), KeyOrder::ASCENDING, &mut left);
    encode(b, ty.shape(), KeyOrder::ASCENDING, &mut right);
    left.cmp(&right)
}

/// Returns a number for interpolation, for types whose values have distances.
fn position(value: &Value) -> Option<f64> {
    let place = match value {
        Value::Int(number) => *number as f64,
        Value::UInt(number) => *number as f64,
        Value::Float(number) => f64::from(*number),
        Value::Double(number) => *number,
        Value::Decimal(number) => number.to_f64(),
        Value::Date(date) => day_number(*date) as f64,
        Value::DateTime(at) => day_number(at.date) as f64 + at.micros_of_day() as f64 / 86_400e6,
        Value::Timestamp(at) => at.0 as f64,
        Value::Time(time) => time.micros() as f64,
        Value::Interval(span) => span.length() as f64,
        _ => return None,
    };
    place.is_finite().then_some(place)
}

impl ColumnStatistics {
    fn buckets(&self) -> &[Bucket] {
        self.histogram.as_ref().map_or(&self.spread, |histogram| &histogram.buckets)
    }

    /// Returns the fraction of rows that are not NULL.
    pub fn some(&self) -> f64 {
        1.0 - self.histogram.as_ref().map_or(self.nulls, |histogram| histogram.nulls)
    }

    /// Estimates the fraction of rows that equal the value, or an unknown value (None).
    pub fn equal(&self, value: Option<&Value>, ty: &Type) -> f64 {
        let average = self.some() / (self.distinct as f64).max(1.0);
        let (Some(value), buckets) = (value, self.buckets()) else { return average };
        let at = buckets.partition_point(|bucket| order(&bucket.high, value, ty).is_lt());
        let Some(bucket) = buckets.get(at) else {
            return if buckets.is_empty() { average } else { average.min(0.001) };
        };
        if order(value, &bucket.low, ty).is_lt() {
            return average.min(0.001);
        }
        let before = if at == 0 { 0.0 } else { buckets[at - 1].upto };
        // A sample contains few of the values of a wide bucket.
        let distinct = if order(&bucket.low, &bucket.high, ty).is_eq() {
            1.0
        } else {
            (bucket.distinct as f64).max(self.distinct as f64 / buckets.len() as f64)
        };
        (bucket.upto - before) / distinct.max(1.0)
    }

    /// Estimates the fraction of rows below the value, or equal to it if `inclusive`. Returns None without statistics.
    pub fn below(&self, value: &Value, inclusive: bool, ty: &Type) -> Option<f64> {
        let buckets = self.buckets();
        let last = buckets.last()?;
        let at = buckets.partition_point(|bucket| order(&bucket.high, value, ty).is_lt());
        let Some(bucket) = buckets.get(at) else { return Some(last.upto) };
        let before = if at == 0 { 0.0 } else { buckets[at - 1].upto };
        let fraction = bucket.upto - before;
        if order(value, &bucket.low, ty).is_lt() {
            return Some(before);
        }
        let within = match (position(&bucket.low), position(&bucket.high), position(value)) {
            (Some(low), Some(high), Some(value)) if high > low => (value - low) / (high - low),
            _ if order(value, &bucket.high, ty).is_eq() => 1.0,
            _ => 0.5,
        };
        let equal = self.equal(Some(value), ty);
        let exclusive = if order(value, &bucket.high, ty).is_eq() { fraction - equal } else { fraction * within };
        Some((before + exclusive + if inclusive { equal } else { 0.0 }).clamp(0.0, bucket.upto))
    }
}

impl ColumnStatistics {
    /// Estimates the fraction of rows whose text begins with `text`. Returns None without statistics.
    pub fn begins(&self, text: &str, ty: &Type) -> Option<f64> {
        // No character sorts after the last one.
        let (from, to) = (Value::text(text), Value::text(format!("{text}{}", char::MAX)));
        let is_in = |value: &Value| order(value, &from, ty).is_ge() && order(value, &to, ty).is_le();
        let buckets = self.buckets();
        let (mut fraction, mut before) = (0.0, 0.0);
        for bucket in buckets {
            let whole = bucket.upto - std::mem::replace(&mut before, bucket.upto);
            // A bucket gives only its ends, so the part within it is a guess: half of it on one side of an end, a
            // quarter between two.
            fraction += whole
                * match (is_in(&bucket.low), is_in(&bucket.high)) {
                    (true, true) => 1.0,
                    (true, false) | (false, true) => 0.5,
                    _ if order(&bucket.low, &from, ty).is_lt() && order(&bucket.high, &to, ty).is_gt() => 0.25,
                    _ => 0.0,
                };
        }
        let least = self.some() / (self.distinct as f64).max(1.0);
        (!buckets.is_empty()).then_some(fraction.max(least.min(0.001)))
    }
}

/// Splits ascending values, each with the number of its rows, into at most `wanted` buckets of about equally many rows;
/// fewer values get one bucket each.
pub fn buckets(runs: &[(Value, usize)], nulls: f64, wanted: usize) -> Vec<Bucket> {
    let total = runs.iter().map(|(_, count)| *count).sum::<usize>() as f64;
    let is_enough = runs.len() <= wanted;
    let mut made: Vec<Bucket> = Vec::new();
    // The rows in the current bucket, and its target: its part of the rows that remained when it was opened.
    let (mut seen, mut open, mut height) = (0usize, 0usize, 0.0);
    for (value, count) in runs {
        let count = *count;
        let left = wanted - made.len();
        let opens = made.is_empty() || is_enough || (left > 0 && (open + count) as f64 > height);
        if opens {
            (open, height) = (0, (total - seen as f64) / left as f64);
            made.push(Bucket { low: value.clone(), high: value.clone(), upto: 0.0, distinct: 0 });
        }
        (open, seen) = (open + count, seen + count);
        if let Some(bucket) = made.last_mut() {
            let upto = seen as f64 / total * (1.0 - nulls);
            (bucket.high, bucket.upto, bucket.distinct) = (value.clone(), upto, bucket.distinct + 1);
        }
    }
    made
}

/// Returns whether values of the type are sorted and kept here: not those of JSON, and no strings that may be very long.
pub fn is_spread(ty: &Type) -> bool {
    /// Longer strings have no histogram.
    const LONG: u32 = 65_535;
    match ty.storage {
        Storage::Json | Storage::Jsonb => false,
        Storage::Bytes => ty.length < LONG,
        Storage::Text => ty.length <= LONG,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(values: &[i64], nulls: f64, wanted: usize) -> ColumnStatistics {
        let runs = values.chunk_by(|one, other| one == other).map(|run| (Value::Int(run[0]), run.len()));
        let runs: Vec<(Value, usize)> = runs.collect();
        let spread = buckets(&runs, nulls, wanted);
        ColumnStatistics { slot: 0, nulls, distinct: runs.len() as u64, spread, histogram: None }
    }

    #[test]
    fn shares_of_even_values_are_even() {
        let column = spread(&(0..1000).collect::<Vec<_>>(), 0.0, 10);
        let ty = Type::truth();
        assert_eq!(column.spread.len(), 10);
        for at in [0, 1, 99, 100, 500, 999] {
            let below = column.below(&Value::Int(at), false, &ty).expect("known");
            assert!((below - at as f64 / 1000.0).abs() < 0.005, "{at}: {below}");
            let equal = column.equal(Some(&Value::Int(at)), &ty);
            assert!((equal - 0.001).abs() < 0.0005, "{at}: {equal}");
        }
        assert_eq!(column.below(&Value::Int(-1), true, &ty), Some(0.0));
        assert_eq!(column.below(&Value::Int(5000), true, &ty), Some(1.0));
    }

    #[test]
    fn a_value_of_many_rows_has_its_share_and_nulls_have_theirs() {
        let mut values = vec![7; 800];
        values.extend(0..200);
        values.sort_unstable();
        let column = spread(&values, 0.5, 8);
        let ty = Type::truth();
        let equal = column.equal(Some(&Value::Int(7)), &ty);
        assert!((equal - 0.4).abs() < 0.01, "{equal}");
        assert!(column.equal(Some(&Value::Int(150)), &ty) < 0.01);
        assert!(column.equal(Some(&Value::Int(9999)), &ty) <= 0.001);
        assert_eq!(column.below(&Value::Int(200), true, &ty), Some(0.5));
        for wanted in 1..9 {
            assert!(spread(&values, 0.0, wanted).spread.len() <= wanted);
        }
        let single = spread(&[1, 1, 2, 3], 0.0, 8);
        assert_eq!(single.equal(Some(&Value::Int(1)), &ty), 0.5);
        assert_eq!(single.below(&Value::Int(2), false, &ty), Some(0.5));
        assert_eq!(single.below(&Value::Int(2), true, &ty), Some(0.75));
    }
}
