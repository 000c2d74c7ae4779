//! TABLESAMPLE: a condition on the key of each row.
//!
//! A row is chosen by a hash of its key and of the seed, whatever path leads to it. So a sample with REPEATABLE is the same as long as the keys are, and a larger percentage chooses all rows of a smaller one.

use datum::Result as CoreResult;
use query::nodes::comparison::Comparison;
use query::nodes::context::EvalContext;
use query::nodes::expr::{Call, Compare, Expr};
use query::nodes::function::{Folding, Function, Run};
use query::nodes::relation::{Origin, Source};
use syntax::postgres::tree::{self, TableSample};

use crate::bind::Binder;
use crate::bind::coerce::call_of;
use crate::bind::from::Operands;
use crate::bind::scope::{Clause, NameItem};
use crate::bind::typing::{literal, shown, unsupported};
use crate::error::{PgError, Result, state};
use crate::functions::CastContext;
use crate::functions::args::{bytes, integer, truth};
use crate::functions::state::StateOf as _;
use crate::types::comparison::comparator;
use crate::types::oid::{self, Oid};
use crate::types::registry::column_type;
use crate::value::Value;

/// A group of keys that SYSTEM chooses as a whole: those that differ in the last bits of their last byte alone.
const GROUP_BITS: u8 = 6;

/// The number of shares that all rows have.
const SHARES: f64 = (1u64 << 32) as f64;

/// The places of the arguments of `SHARE`.
const KEY: usize = 0;
const SEED: usize = 1;
const NUMBER: usize = 2;
const IS_SYSTEM: usize = 3;

/// The share of a row. Its seed is NULL without REPEATABLE.
static SHARE: Function = Function::new(&["sample_share"], Run::Values(share));
/// The limit of the shares in a sample, of a percentage and of the seed, if there is one. Its error is the statement's, even if there are no rows.
static LIMIT: Function =
    Function { folding: Folding::CheckedCoercion, ..Function::new(&["sample_limit"], Run::Values(limit)) };

impl Binder<'_> {
    /// Lets a table give a sample of its rows.
    pub(super) fn sampled(&mut self, operands: Operands, sample: &TableSample, relation: u32) -> Result<Operands> {
        let TableSample { method, arguments, repeatable, at } = sample;
        let name = match &method.parts[..] {
            [name] => name,
            [schema, name] if schema == "pg_catalog" => name,
            _ => "",
        };
        let is_system = name == "system";
        if !is_system && name != "bernoulli" {
            let text = format!("tablesample method {} does not exist", method.dotted());
            return self.fail(state::UNDEFINED_OBJECT, text, at.0);
        }
        if arguments.len() != 1 {
            let text = format!("tablesample method {} requires 1 argument, not {}", method.dotted(), arguments.len());
            return self.fail(state::INVALID_TABLESAMPLE_ARGUMENT, text, at.0);
        }
        let Operands { source, names } = operands;
        let number = match source {
            Source::Table(number) if matches!(self.scope().tables[number].origin, Origin::Base(_)) => number,
            _ => {
                let text = "TABLESAMPLE clause can only be applied to tables and materialized views";
                return self.fail(state::FEATURE_NOT_SUPPORTED, text, relation);
            }
        };
        // The tables beside it are out of reach.
        let around = std::mem::take(&mut self.scope().names);
        let hidden = self.unreachable.len();
        self.unreachable.extend(around.iter().cloned());
        // LATERAL would not bring its own columns into reach.
        let own = names.iter().cloned().map(|item| NameItem { is_relation_visible: false, ..item });
        self.unreachable.extend(own);
        let clause = std::mem::replace(&mut self.scope().clause, Clause::FunctionInFrom);
        let bound = self.sample_arguments(&arguments[0], repeatable.as_ref());
        self.unreachable.truncate(hidden);
        let scope = self.scope();
        (scope.names, scope.clause) = (around, clause);
        let (limit, seed) = bound?;
        let scope = self.scope();
        let key = match scope.tables[number].key_at {
            Some(key) => key,
            None => {
                let key = scope.width;
                scope.tables[number].key_at = Some(key);
                scope.width += 1;
                scope.used.resize(scope.width, true);
                key
            }
        };
        scope.used[key] = true;
        let number = literal(Value::Int(number as i64), oid::INT8);
        let key = Expr::Column(key, column_type(oid::BYTEA, -1, false));
        let arguments = vec![key, seed, number, literal(is_system.into(), oid::BOOL)];
        let left = call_of(&SHARE, arguments, oid::FLOAT8, -1);
        let by = comparator(&left.ty(), &limit.ty()).ok_or_else(|| unsupported("TABLESAMPLE"))?;
        let condition = Expr::Compare(Box::new(Compare { op: Comparison::Less, left, right: limit, by }));
        Ok(Operands { source: Source::Inner(vec![source], vec![condition]), names })
    }

    /// Returns the limit of the shares, and the seed.
    fn sample_arguments(&mut self, percent: &tree::Expr, seed: Option<&tree::Expr>) -> Result<(Expr, Expr)> {
        let mut arguments = vec![self.sample_argument(percent, oid::FLOAT4, "TABLESAMPLE")?];
        if let Some(seed) = seed {
            arguments.push(self.sample_argument(seed, oid::FLOAT8, "REPEATABLE")?);
        }
        let seed = match arguments.get(1) {
            Some(seed) => self.copy(seed)?,
            None => literal(Value::Null, oid::FLOAT8),
        };
        Ok((call_of(&LIMIT, arguments, oid::FLOAT8, -1), seed))
    }

    fn sample_argument(&mut self, expr: &tree::Expr, ty: Oid, clause: &str) -> Result<Expr> {
        let operand = self.expr(expr)?;
        let (source, at) = (operand.oid(), operand.at);
        match self.coerce_to(operand, ty, -1, CastContext::Assignment)? {
            Some(expr) => Ok(expr),
            None => {
                let text = format!("argument of {clause} must be type {}, not type {}", shown(ty), shown(source));
                self.fail(state::DATATYPE_MISMATCH, text, at)
            }
        }
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Float(number) => Some(f64::from(*number)),
        Value::Double(number) => Some(*number),
        _ => None,
    }
}

fn limit(_: &Call, values: &[Value], _: &mut EvalContext) -> CoreResult<Value> {
    let refused = |text: &str| Err(PgError::new(state::INVALID_TABLESAMPLE_ARGUMENT, text).into());
    let percent = match number(&values[0]) {
        Some(percent) if (0.0..=100.0).contains(&percent) => percent,
        Some(_) => return refused("sample percentage must be between 0 and 100"),
        None => return refused("TABLESAMPLE parameter cannot be null"),
    };
    if values.get(1).is_some_and(Value::is_null) {
        let text = "TABLESAMPLE REPEATABLE parameter cannot be null";
        return Err(PgError::new(state::INVALID_TABLESAMPLE_REPEAT, text).into());
    }
    Ok(Value::Double((percent / 100.0 * SHARES).round_ties_even()))
}

fn share(_: &Call, values: &[Value], ctx: &mut EvalContext) -> CoreResult<Value> {
    let seed = match number(&values[SEED]) {
        // Both zeros are one seed.
        Some(seed) => (seed + 0.0).to_bits(),
        // Another sample in each statement, and for each table of one.
        None => {
            let session = &ctx.state().session;
            let statement = session.statement_start as u64 ^ (session.backend_pid as u64) << 48;
            mixed(statement ^ mixed(integer(values, NUMBER)? as u64))
        }
    };
    let key = bytes(values, KEY)?;
    let is_system = truth(values, IS_SYSTEM)?;
    let hash = match key.split_last() {
        Some((last, rest)) if is_system => hash(seed, rest, last & (u8::MAX << GROUP_BITS)),
        Some((last, rest)) => hash(seed, rest, *last),
        None => mixed(seed),
    };
    Ok(Value::Double((hash >> 32) as f64))
}

/// Returns a hash of a key, the last byte of which is given apart.
fn hash(seed: u64, key: &[u8], last: u8) -> u64 {
    let mut state = mixed(seed ^ (key.len() as u64) << 8 ^ u64::from(last));
    for chunk in key.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        state = mixed(state ^ u64::from_le_bytes(word));
    }
    state
}

/// The finaliser of SplitMix64, whose bits each depend on all bits.
fn mixed(mut word: u64) -> u64 {
    word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}
