//! The part of the keyspace that a scan has to read, from the conditions of the statement.
//!
//! Conditions only narrow the scan, and all conditions are rechecked above. A condition that is not understood here costs time and nothing else.

use datum::Result;
use engine::{Kind, StreamId};

use crate::batch::Row;
use crate::catalog::keyspace_rows::{DB, ELEMENT_VALUE, KEY, MS, NAME};
use crate::nodes::comparison::{Comparator, Comparison, ComparisonType};
use crate::nodes::context::EvalContext;
use crate::nodes::expr::Expr;
use crate::nodes::system_table::SystemTable;
use crate::types::Collation;
use crate::value::Value;

/// The part of the keyspace to read.
#[derive(Debug)]
pub struct Wanted {
    /// None: all databases.
    pub databases: Option<Vec<u8>>,
    /// None: all keys with the prefix.
    pub keys: Option<Vec<Vec<u8>>>,
    pub prefix: Vec<u8>,
    /// The elements to read, by name; None: all in these ranges.
    pub names: Option<Vec<Vec<u8>>>,
    /// Least and greatest score.
    pub scores: (f64, f64),
    /// First and last position in a list.
    pub positions: (i64, i64),
    /// First and last id of entries.
    pub ids: (StreamId, StreamId),
}

impl Default for Wanted {
    fn default() -> Wanted {
        Wanted {
            databases: None,
            keys: None,
            prefix: Vec::new(),
            names: None,
            scores: (f64::NEG_INFINITY, f64::INFINITY),
            positions: (i64::MIN, i64::MAX),
            ids: (StreamId::MIN, StreamId::MAX),
        }
    }
}

/// A column of a table of keys that conditions can narrow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Narrowed {
    Database,
    Key,
    Name,
    Position,
    Score,
    Ms,
}

impl Narrowed {
    fn of(kind: Kind, column: usize) -> Option<Narrowed> {
        Some(match (column, kind) {
            (DB, _) => Narrowed::Database,
            (KEY, _) => Narrowed::Key,
            (NAME, Kind::List) => Narrowed::Position,
            (NAME, Kind::Hash | Kind::Set | Kind::ZSet | Kind::Stream) => Narrowed::Name,
            (ELEMENT_VALUE, Kind::ZSet) => Narrowed::Score,
            (MS, Kind::Stream) => Narrowed::Ms,
            _ => return None,
        })
    }
}

/// Reads the conditions on a table at this offset. `base` is the outer row.
pub fn wanted(
    system: &SystemTable,
    conditions: &[Expr],
    offset: usize,
    base: Option<&Row>,
    ctx: &mut EvalContext,
) -> Result<Wanted> {
    let mut wanted = Wanted::default();
    let Some(keys) = system.keyspace() else { return Ok(wanted) };
    let width = system.columns.len();
    let known = |expr: &Expr, ctx: &mut EvalContext| known(expr, offset..offset + width, base, ctx);
    let column = |expr: &Expr| match expr {
        Expr::Column(place, _) => Narrowed::of(keys.kind, place.checked_sub(offset)?),
        _ => None,
    };
    for condition in conditions {
        match condition {
            Expr::Compare(compare) => {
                let sides =
                    [(&compare.left, &compare.right, compare.op), (&compare.right, &compare.left, turned(compare.op))];
                for (mine, other, op) in sides {
                    if let Some(column) = column(mine).filter(|column| fits(*column, compare.by))
                        && let Some(value) = known(other, ctx)?
                    {
                        wanted.narrow(column, op, &value);
                    }
                }
            }
            Expr::Between(between) if !between.negated => {
                let bounds = [
                    (&between.low, between.low_by, Comparison::GreaterEqual),
                    (&between.high, between.high_by, Comparison::LessEqual),
                ];
                for (bound, by, op) in bounds {
                    if let Some(column) = column(&between.needle).filter(|column| fits(*column, by))
                        && let Some(value) = known(bound, ctx)?
                    {
                        wanted.narrow(column, op, &value);
                    }
                }
            }
            Expr::In(list) if !list.negated => {
                let Some(column) = column(&list.needle) else { continue };
                if !matches!(column, Narrowed::Key | Narrowed::Name)
                    || !list.list.iter().all(|(_, of)| fits(column, *of))
                {
                    continue;
                }
                let mut values = Vec::new();
                for (item, _) in &list.list {
                    values.extend(known(item, ctx)?);
                }
                if values.len() == list.list.len()
                    && let Some(names) = as_names(&values)
                {
                    wanted.want_names(column, names);
                }
            }
            Expr::Call(call)
                if call.collation == Collation::Binary
                    && call.arguments.first().and_then(column) == Some(Narrowed::Key) =>
            {
                let Some(prefix) = call.function.prefix else { continue };
                let mut value = |expr: &Expr| known(expr, ctx).ok().flatten();
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

impl Wanted {
    /// Returns the databases to read.
    pub fn databases(&self) -> Vec<u8> {
        self.databases.clone().unwrap_or_else(|| (0..engine::DATABASES).collect())
    }

    /// Returns the keys to read, if they are named.
    pub fn named(&self) -> Option<Vec<(u8, Vec<u8>)>> {
        let keys = self.keys.as_ref()?;
        Some(self.databases().iter().flat_map(|db| keys.iter().map(|key| (*db, key.clone()))).collect())
    }

    fn narrow(&mut self, column: Narrowed, op: Comparison, value: &Value) {
        use Comparison::{Equal, Greater, GreaterEqual, Less, LessEqual};
        let (is_from, is_to) = (matches!(op, Equal | Greater | GreaterEqual), matches!(op, Equal | Less | LessEqual));
        match column {
            Narrowed::Database if op == Equal => as_database(value).into_iter().for_each(|of| self.want_databases(of)),
            Narrowed::Key | Narrowed::Name if op == Equal => {
                as_names(std::slice::from_ref(value)).into_iter().for_each(|names| self.want_names(column, names));
            }
            Narrowed::Score => {
                let Some((low, high)) = as_score(value) else { return };
                if is_from {
                    self.scores.0 = self.scores.0.max(low);
                }
                if is_to {
                    self.scores.1 = self.scores.1.min(high);
                }
            }
            Narrowed::Position => {
                let Some(position) =
                    as_integer(value).map(|number| number.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
                else {
                    return;
                };
                if is_from {
                    self.positions.0 = self.positions.0.max(position);
                }
                if is_to {
                    self.positions.1 = self.positions.1.min(position);
                }
            }
            Narrowed::Ms => {
                let Some(number) = as_integer(value) else { return };
                let ms = number.clamp(0, u64::MAX.into()) as u64;
                if is_from {
                    self.ids.0 = self.ids.0.max(StreamId { ms, seq: 0 });
                }
                if is_to {
                    self.ids.1 = self.ids.1.min(StreamId { ms, seq: if number < 0 { 0 } else { u64::MAX } });
                }
            }
            _ => {}
        }
    }

    fn want_names(&mut self, column: Narrowed, names: Vec<Vec<u8>>) {
        let wanted = if column == Narrowed::Key { &mut self.keys } else { &mut self.names };
        match wanted {
            None => *wanted = Some(names),
            Some(known) => known.retain(|name| names.contains(name)),
        }
    }

    fn want_databases(&mut self, databases: Vec<u8>) {
        match &mut self.databases {
            None => self.databases = Some(databases),
            Some(known) => known.retain(|db| databases.contains(db)),
        }
    }
}

/// Returns the comparison with its sides exchanged.
fn turned(op: Comparison) -> Comparison {
    match op {
        Comparison::Less => Comparison::Greater,
        Comparison::LessEqual => Comparison::GreaterEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterEqual => Comparison::LessEqual,
        same => same,
    }
}

/// Returns the value of an expression that does not depend on the table's own row.
fn known(expr: &Expr, own: std::ops::Range<usize>, base: Option<&Row>, ctx: &mut EvalContext) -> Result<Option<Value>> {
    let width = base.map_or(0, Vec::len);
    if expr.columns().iter().any(|place| own.contains(place) || *place >= width) {
        return Ok(None);
    }
    Ok(Some(expr.eval(base.map_or(&[][..], |row| row), ctx)?))
}

/// Returns whether the comparison is one of byte strings or of numbers, as the column's are compared.
fn fits(column: Narrowed, by: Comparator) -> bool {
    match column {
        Narrowed::Database | Narrowed::Key | Narrowed::Name => {
            matches!(by.ty, ComparisonType::Bytes | ComparisonType::Dynamic | ComparisonType::Integer)
        }
        Narrowed::Score | Narrowed::Position | Narrowed::Ms => {
            use ComparisonType::{Decimal, Double, Dynamic, Integer};
            matches!(by.ty, Integer | Dynamic | Decimal | Double)
        }
    }
}

/// Returns the distinct values as names; NULL equals nothing. Returns None if a value is no string, since it may equal
/// names of another spelling.
fn as_names(values: &[Value]) -> Option<Vec<Vec<u8>>> {
    let mut names: Vec<Vec<u8>> = Vec::new();
    for value in values.iter().filter(|value| !value.is_null()) {
        let bytes = match value {
            Value::Text(_) | Value::Bytes(_) => value.as_string_bytes()?.to_vec(),
            _ => return None,
        };
        if !names.contains(&bytes) {
            names.push(bytes);
        }
    }
    Some(names)
}

fn as_database(value: &Value) -> Option<Vec<u8>> {
    if value.is_null() {
        return Some(Vec::new());
    }
    let number = as_integer(value)?;
    Some(u8::try_from(number).ok().filter(|db| *db < engine::DATABASES).into_iter().collect())
}

fn as_integer(value: &Value) -> Option<i128> {
    match value {
        Value::UInt(number) => Some(i128::from(*number)),
        Value::Int(number) => Some(i128::from(*number)),
        Value::Decimal(number) => number.short().filter(|(_, scale)| *scale == 0).map(|(number, _)| i128::from(number)),
        _ => None,
    }
}

/// Returns the doubles between which a number lies, both included.
fn as_score(value: &Value) -> Option<(f64, f64)> {
    let near = match value {
        Value::Double(score) => return Some((*score, *score)).filter(|_| !score.is_nan()),
        Value::Float(score) => return Some((f64::from(*score), f64::from(*score))).filter(|_| !score.is_nan()),
        Value::UInt(number) => *number as f64,
        Value::Int(number) => *number as f64,
        Value::Decimal(number) => number.to_f64(),
        _ => return None,
    };
    Some((near.next_down(), near.next_up())).filter(|_| !near.is_nan())
}
