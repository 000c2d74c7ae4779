//! Plans of clients: a tree of nodes in which each node but the lowest has one child.

use crate::message::DEPTH_MAX;
use crate::message::datatypes::Scalar;
use crate::message::expr::Expr;
use crate::proto::{Fields, Malformed, Result};

/// A table, and the index by which it is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Source<'a> {
    pub table: Scalar<'a>,
    pub schema: Option<Scalar<'a>>,
    /// `None` is the primary key.
    pub index: Option<Scalar<'a>>,
}

/// Columns and the values that all of them must have.
pub type Key<'a> = Vec<(Option<Scalar<'a>>, Scalar<'a>)>;

#[derive(Clone, Debug, PartialEq)]
pub enum Plan<'a> {
    /// The rows that have one of the keys.
    Get(Source<'a>, Vec<Key<'a>>),
    TableScan {
        source: Source<'a>,
        reverse: bool,
    },
    /// The rows between two keys, both included.
    RangeScan {
        source: Source<'a>,
        from: Option<Key<'a>>,
        to: Option<Key<'a>>,
        reverse: bool,
    },
    /// Columns by name or by position.
    TableProject(Box<Plan<'a>>, Vec<Scalar<'a>>),
    /// Computed columns and their names.
    Project(Box<Plan<'a>>, Vec<Scalar<'a>>, Vec<Expr<'a>>),
    Filter(Box<Plan<'a>>, Expr<'a>),
    Aggregate {
        below: Box<Plan<'a>>,
        kind: u64,
        field: Option<Scalar<'a>>,
        expr: Option<Expr<'a>>,
    },
}

/// Reads a node at a depth.
type ReadNode = for<'m> fn(&'m [u8], usize) -> Result<Plan<'m>>;

impl<'a> Plan<'a> {
    /// Reads an AnyPlan.
    pub fn read(message: &'a [u8]) -> Result<Plan<'a>> {
        Plan::at_depth(message, 0)
    }

    fn at_depth(message: &'a [u8], depth: usize) -> Result<Plan<'a>> {
        if depth >= DEPTH_MAX {
            return Err(Malformed);
        }
        let mut kind = None;
        let mut bodies = [None; 10];
        for field in Fields::of(message) {
            match field? {
                (1, value) => kind = Some(value.varint()?),
                (number @ (2..=6 | 8 | 9), value) => bodies[number as usize] = Some(value.bytes()?),
                _ => {}
            }
        }
        // The number of the type equals that of the field that holds the node.
        let (read, place): (ReadNode, usize) = match kind.ok_or(Malformed)? {
            1 => (get, 2),
            2 => (table_scan, 3),
            3 => (table_project, 4),
            4 => (project, 5),
            5 => (filter, 6),
            8 => (range_scan, 8),
            9 => (aggregate, 9),
            _ => return Err(Malformed),
        };
        read(bodies[place].ok_or(Malformed)?, depth)
    }
}

fn below<'a>(message: &'a [u8], depth: usize) -> Result<Box<Plan<'a>>> {
    Plan::at_depth(message, depth + 1).map(Box::new)
}

/// Reads TableInfo: name and schema.
fn table_info(message: &[u8]) -> Result<(Scalar<'_>, Option<Scalar<'_>>)> {
    let (mut name, mut schema) = (None, None);
    for field in Fields::of(message) {
        match field? {
            (2, value) => name = Some(Scalar::read(value.bytes()?)?),
            (3, value) => schema = Some(Scalar::read(value.bytes()?)?),
            _ => {}
        }
    }
    Ok((name.ok_or(Malformed)?, schema))
}

/// Reads IndexInfo: the name.
fn index_info(message: &[u8]) -> Result<Scalar<'_>> {
    let mut name = None;
    for field in Fields::of(message) {
        if let (1, value) = field? {
            name = Some(Scalar::read(value.bytes()?)?);
        }
    }
    name.ok_or(Malformed)
}

fn source<'a>(table: Option<&'a [u8]>, index: Option<&'a [u8]>) -> Result<Source<'a>> {
    let (table, schema) = table_info(table.ok_or(Malformed)?)?;
    Ok(Source { table, schema, index: index.map(index_info).transpose()? })
}

/// Reads GetExpr.
fn key(message: &[u8]) -> Result<Key<'_>> {
    let mut key = Key::new();
    for field in Fields::of(message) {
        let (1, value) = field? else { continue };
        let (mut column, mut held) = (None, None);
        for field in Fields::of(value.bytes()?) {
            match field? {
                (1, value) => column = Some(Scalar::read(value.bytes()?)?),
                (2, value) => held = Some(Scalar::read(value.bytes()?)?),
                _ => {}
            }
        }
        key.push((column, held.ok_or(Malformed)?));
    }
    Ok(key)
}

fn get(message: &[u8], _: usize) -> Result<Plan<'_>> {
    let (mut table, mut index, mut keys) = (None, None, Vec::new());
    for field in Fields::of(message) {
        match field? {
            (1, value) => table = Some(value.bytes()?),
            (2, value) => index = Some(value.bytes()?),
            (3, value) => keys.push(key(value.bytes()?)?),
            _ => {}
        }
    }
    Ok(Plan::Get(source(table, index)?, keys))
}

fn table_scan(message: &[u8], _: usize) -> Result<Plan<'_>> {
    let (mut table, mut index, mut reverse) = (None, None, false);
    for field in Fields::of(message) {
        match field? {
            (1, value) => table = Some(value.bytes()?),
            (2, value) => index = Some(value.bytes()?),
            (3, value) => reverse = value.bool()?,
            _ => {}
        }
    }
    Ok(Plan::TableScan { source: source(table, index)?, reverse })
}

fn range_scan(message: &[u8], _: usize) -> Result<Plan<'_>> {
    let (mut table, mut index, mut from, mut to, mut reverse) = (None, None, None, None, false);
    for field in Fields::of(message) {
        match field? {
            (3, value) => table = Some(value.bytes()?),
            (4, value) => index = Some(value.bytes()?),
            (5, value) => from = Some(key(value.bytes()?)?),
            (6, value) => to = Some(key(value.bytes()?)?),
            (8, value) => reverse = value.bool()?,
            _ => {}
        }
    }
    Ok(Plan::RangeScan { source: source(table, index)?, from, to, reverse })
}

fn table_project(message: &[u8], depth: usize) -> Result<Plan<'_>> {
    let (mut child, mut columns) = (None, Vec::new());
    for field in Fields::of(message) {
        match field? {
            (1, value) => child = Some(below(value.bytes()?, depth)?),
            (2, value) => columns.push(Scalar::read(value.bytes()?)?),
            _ => {}
        }
    }
    Ok(Plan::TableProject(child.ok_or(Malformed)?, columns))
}

fn project(message: &[u8], depth: usize) -> Result<Plan<'_>> {
    let (mut child, mut names, mut exprs) = (None, Vec::new(), Vec::new());
    for field in Fields::of(message) {
        match field? {
            (1, value) => child = Some(below(value.bytes()?, depth)?),
            (2, value) => names.push(Scalar::read(value.bytes()?)?),
            (3, value) => exprs.push(Expr::at_depth(value.bytes()?, depth + 1)?),
            _ => {}
        }
    }
    Ok(Plan::Project(child.ok_or(Malformed)?, names, exprs))
}

fn filter(message: &[u8], depth: usize) -> Result<Plan<'_>> {
    let (mut child, mut expr) = (None, None);
    for field in Fields::of(message) {
        match field? {
            (1, value) => child = Some(below(value.bytes()?, depth)?),
            (2, value) => expr = Some(Expr::at_depth(value.bytes()?, depth + 1)?),
            _ => {}
        }
    }
    Ok(Plan::Filter(child.ok_or(Malformed)?, expr.ok_or(Malformed)?))
}

fn aggregate(message: &[u8], depth: usize) -> Result<Plan<'_>> {
    let (mut child, mut kind, mut of, mut expr) = (None, None, None, None);
    for field in Fields::of(message) {
        match field? {
            (1, value) => child = Some(below(value.bytes()?, depth)?),
            (2, value) => kind = Some(value.varint()?),
            (3, value) => of = Some(Scalar::read(value.bytes()?)?),
            (4, value) => expr = Some(Expr::at_depth(value.bytes()?, depth + 1)?),
            _ => {}
        }
    }
    let kind = kind.filter(|kind| (1..=8).contains(kind)).ok_or(Malformed)?;
    Ok(Plan::Aggregate { below: child.ok_or(Malformed)?, kind, field: of, expr })
}

#[cfg(test)]
mod tests;
