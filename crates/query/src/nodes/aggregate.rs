//! Aggregates as a plan has them: the function that the binder chose, and the state of one group.

use std::cmp::Ordering;
use std::fmt::Debug;

use datum::Storage;
use datum::key::{self, KeyOrder};

use crate::nodes::comparison::Comparator;
use crate::nodes::context::EvalContext;
use crate::nodes::exact_number::ExactNumber;
use crate::types::Type;
use crate::value::Value;
use datum::Result;

/// An aggregate function of a dialect.
#[derive(Debug)]
pub struct AggregateFunction {
    /// In lower case.
    pub name: &'static str,
    /// Returns the state of a group without rows.
    pub start: fn(&Aggregate) -> Box<dyn Accumulator>,
    /// Functions with the same `start` share the state of a group when they are given the same values. Their `finish` leaves the state as it is, and takes the
    /// result from the function.
    pub shares_state: bool,
    /// Rows in which an argument is NULL are added too.
    pub counts_null: bool,
    /// Without DISTINCT it takes quotients with all the digits that were computed, not with those that are shown.
    pub exact: bool,
    pub memory: Memory,
    /// MIN and MAX: the order in which a value replaces the one that is kept. A moving frame finds it with a queue.
    pub extreme: Option<Ordering>,
    /// Brings a result to the digits and the kind of the aggregate's type.
    pub finish: fn(Value, &Type) -> Value,
}

/// The values that the state of a group holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    Nothing,
    /// One of its values.
    One,
    /// All of its values.
    All,
}

/// An aggregate of a statement: the function, and what it is applied to.
#[derive(Clone, Debug)]
pub struct Aggregate {
    pub function: &'static AggregateFunction,
    pub distinct: bool,
    /// Types of the values that `add` is given; those of an ORDER BY within the call follow the others.
    pub arguments: Vec<Type>,
    /// Of each expression of that ORDER BY, whether it descends.
    pub order: Vec<KeyOrder>,
    /// Between the values of an aggregate that makes a text of them.
    pub separator: Box<str>,
    pub ty: Type,
    /// The last argument of the call is a condition: only rows that satisfy it are added. It is no value for `add`.
    pub filtered: bool,
    /// How values of the first argument are compared.
    pub by: Option<Comparator>,
    /// A setting of the session when the call was bound, as the dialect reads it.
    pub setting: u8,
}

/// The state of one group. NULL is not added, unless `AggregateFunction::counts_null`.
pub trait Accumulator: Debug + Send {
    /// Adds one row of the group.
    fn add(&mut self, aggregate: &Aggregate, values: &[Value], ctx: &mut EvalContext) -> Result<()>;

    /// Adds the only argument of a row that counts, and is a decimal. False: nothing was changed.
    fn add_exact(&mut self, _: ExactNumber) -> bool {
        false
    }

    /// Returns whether rows can be removed again with the same result as if they had never been added.
    fn can_remove(&self, _: &Aggregate) -> bool {
        false
    }

    /// Removes one row that was added. Only for a state that `can_remove`.
    fn remove(&mut self, _: &[Value], _: &mut EvalContext) -> Result<()> {
        unreachable!("a state that cannot lose rows keeps them")
    }

    /// Returns the aggregate of the rows: a decimal with all its digits (`Expr::Shown`). The state is of no more use, unless its function shares it.
    fn finish(&mut self, aggregate: &Aggregate, ctx: &mut EvalContext) -> Result<Value>;

    fn copy(&self) -> Box<dyn Accumulator>;

    /// Returns about how much memory its values take.
    fn bytes(&self) -> usize;
}

impl Aggregate {
    pub fn start(&self) -> Box<dyn Accumulator> {
        (self.function.start)(self)
    }

    /// Returns whether one state serves both, given that their values are the same.
    pub fn shares_state(&self, other: &Aggregate) -> bool {
        self.function.shares_state
            && other.function.shares_state
            && std::ptr::fn_addr_eq(self.function.start, other.function.start)
            && self.sums_exactly() == other.sums_exactly()
            && (self.distinct, self.filtered, self.setting) == (other.distinct, other.filtered, other.setting)
            && self.arguments == other.arguments
    }

    /// Returns whether arguments keep the digits of quotients. Values that are made distinct first are rounded first.
    pub fn sums_exactly(&self) -> bool {
        self.function.exact && !self.distinct
    }

    /// Appends the key that equal values of DISTINCT share. False: the row does not count.
    pub fn distinct_key(&self, values: &[Value], out: &mut Vec<u8>) -> bool {
        let arguments = &values[..values.len() - self.order.len()];
        if !self.function.counts_null && arguments.iter().any(Value::is_null) {
            return false;
        }
        arguments
            .iter()
            .zip(&self.arguments)
            .for_each(|(value, ty)| key::encode(value, ty.shape(), KeyOrder::ASCENDING, out));
        true
    }

    /// Returns whether a group's state holds all of its values.
    pub fn lists(&self) -> bool {
        self.function.memory == Memory::All
    }

    /// Returns whether the memory of a group's state grows with its values.
    pub fn gathers(&self) -> bool {
        match self.function.memory {
            Memory::Nothing => false,
            Memory::One => {
                use Storage::{Bytes, Json, Jsonb, Keyed, Text};
                matches!(self.arguments[0].storage, Text | Bytes | Json | Jsonb | Keyed)
            }
            Memory::All => true,
        }
    }
}
