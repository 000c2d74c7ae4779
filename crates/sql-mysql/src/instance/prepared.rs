//! Prepared statements: a tree, and the plans that it was last run as. Sessions on one context share them (`instance::plans`).
//!
//! A session keeps a handle, and may take it along to another context: so each of the plans says on which it was made.

use std::sync::Arc;

use stdx::sync::Mutex;

use crate::instance::statement::BoundStatement;
use crate::parse::statement::Statement;
use crate::types::{Collation, Column, Kind, MysqlType as _, Type};
use crate::value::Value;

/// A string of more bytes is of a type that holds any length.
const LONG: usize = 0xFFFF;

/// A statement with parameters, ready to run. Drop it to forget it.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// One for each `?`. Any value is taken.
    pub parameters: Arc<[Column]>,
    /// Empty: it answers no rows.
    pub columns: Arc<[Column]>,
    pub handle: PreparedHandle,
}

/// Names a prepared statement of one session.
#[derive(Clone, Debug)]
pub struct PreparedHandle(pub Arc<Preparation>);

impl PreparedHandle {
    pub fn text(&self) -> &str {
        self.0.text()
    }
}

/// Plans of one statement that are kept: for as many lists of types, and grounds.
const RUNS: usize = 4;

/// A prepared statement: its tree, and plans for the parameter types that it was last run with.
#[derive(Debug)]
pub struct Preparation {
    pub text: Box<str>,
    pub statement: Statement,
    pub parameters: usize,
    /// MAX_EXECUTION_TIME of the statement itself, in milliseconds: at hand, for a look at the tree is dear.
    pub time_limit: Option<u64>,
    /// The newest last.
    pub runs: Mutex<Vec<Run>>,
}

/// What a prepared statement was run as.
#[derive(Debug)]
pub struct Run {
    /// Of the parameters.
    pub types: Vec<Type>,
    pub context: u64,
    pub compiled: Arc<BoundStatement>,
}

impl Run {
    pub fn is_for(&self, context: u64, parameters: &[Value], collation: Collation) -> bool {
        let same = |(ty, value): (&Type, &Value)| *ty == type_of(value, collation);
        self.context == context && self.types.iter().zip(parameters).all(same)
    }
}

impl Preparation {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn known(&self, context: u64, parameters: &[Value], collation: Collation) -> Option<Arc<BoundStatement>> {
        let runs = self.runs.lock();
        runs.iter().find(|run| run.is_for(context, parameters, collation)).map(|run| run.compiled.clone())
    }

    pub fn keep(&self, run: Run) {
        let mut runs = self.runs.lock();
        runs.retain(|known| known.context != run.context || known.types != run.types);
        if runs.len() >= RUNS {
            runs.remove(0);
        }
        runs.push(run);
    }
}

/// A prepared statement with what it was described by.
#[derive(Debug)]
pub struct Described {
    pub prepared: Prepared,
    /// Its plan, with parameters of no known type: as long as it stands, so does the description.
    pub by: Arc<BoundStatement>,
}

/// The type of a parameter whose value is known.
pub fn type_of(value: &Value, collation: crate::types::Collation) -> Type {
    let ty = match value {
        Value::Null => return Type::null(),
        Value::Int(_) => Type::integer(),
        Value::UInt(_) => Type::unsigned(),
        Value::Decimal(decimal) => {
            Type::decimal(decimal.digits().max(u32::from(decimal.scale())).max(1), decimal.scale())
        }
        Value::Float(_) => Type::of_kind(Kind::Float),
        Value::Double(_) => Type::double(),
        Value::Text(text) if text.len() > LONG => Type { collation, ..Type::of_kind(Kind::LongText) },
        Value::Bytes(bytes) if bytes.len() > LONG => Type::of_kind(Kind::LongBlob),
        Value::Text(_) => Type::text(255, collation),
        Value::Bytes(_) => Type::bytes(255),
        Value::Date(_) => Type::of_kind(Kind::Date),
        Value::Time(_) => Type::temporal(Kind::Time, 6),
        Value::DateTime(_) => Type::temporal(Kind::DateTime, 6),
        Value::Timestamp(_) => Type::temporal(Kind::Timestamp, 6),
        Value::Json(_) => Type::of_kind(Kind::Json),
    };
    ty.with_nullable(false)
}
