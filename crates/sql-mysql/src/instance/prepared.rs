//! Prepared statements: a tree, and the plans that it was last run as. Sessions on one context share them (`instance::plans`).
//!
//! A session keeps a handle, and may take it along to another context: so each of the plans says on which it was made.

use std::sync::Arc;

use stdx::sync::Mutex;

use crate::instance::statement::BoundStatement;
use crate::parse::statement::Statement;
use crate::types::{Collation, Column, Kind, MysqlType as _, Type};
use crate::value::Value;

/// A longer string has a type of unlimited length.
const LONG: usize = 0xFFFF;

/// A prepared statement. Dropping it closes it.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The parameters; values of any type are accepted.
    pub parameters: Arc<[Column]>,
    /// The result columns; empty if it returns no rows.
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

/// The number of plans kept for one statement, by parameter types and context.
const RUNS: usize = 4;

/// A prepared statement: its tree, and plans for the parameter types of recent runs.
#[derive(Debug)]
pub struct Preparation {
    pub text: Box<str>,
    pub statement: Statement,
    pub parameters: usize,
    /// The statement's own MAX_EXECUTION_TIME in milliseconds, kept because searching the tree is expensive.
    pub time_limit: Option<u64>,
    /// Plans, the newest last.
    pub runs: Mutex<Vec<Run>>,
}

/// The plan of a run.
#[derive(Debug)]
pub struct Run {
    /// The types of the parameters.
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

/// A prepared statement with the plan that describes it.
#[derive(Debug)]
pub struct Described {
    pub prepared: Prepared,
    /// Its plan, with parameters of no known type: as long as it stands, so does the description.
    pub by: Arc<BoundStatement>,
}

/// Returns the type of a parameter with a known value.
pub fn type_of(value: &Value, collation: crate::types::Collation) -> Type {
    let ty = match value {
        Value::Null => return Type::null(),
        Value::Int(_) => Type::integer(),
        Value::UInt(_) => Type::unsigned(),
        Value::Decimal(decimal) => {
            Type::decimal(decimal.digits().max(u32::from(decimal.scale())).max(1), decimal.bounded_scale())
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
        Value::Interval(_) | Value::Array(_) | Value::Record(_) => Type::text(255, collation),
        Value::Json(_) => Type::of_kind(Kind::Json),
    };
    ty.with_nullable(false)
}
