//! GROUP BY: its keys, and the sets of them that GROUPING SETS, ROLLUP and CUBE make; GROUPING.
//!
//! Each item of GROUP BY is a list of sets, and their product is the list of the block. The core groups once for each set; the number of a row's set is the result of a call, of which GROUPING makes bits.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use query::nodes::context::EvalContext;
use query::nodes::expr::{Call, Expr};
use query::nodes::function::{Function, Run};
use query::nodes::node::AggregateCall;
use syntax::postgres::tree::{self, Distinct, ExprKind, GroupItem, Select, SortBy};

use crate::bind::Binder;
use crate::bind::aggregate::any_value;
use crate::bind::coerce::call_of;
use crate::bind::project_set::SetOf;
use crate::bind::scope::{AGGREGATES, Clause, Grouped};
use crate::bind::select::{Item, check_targets};
use crate::bind::typing::{Operand, literal, oid_of, settled};
use crate::bind::walk::{has_aggregate, has_subquery, of_window};
use crate::error::{PgError, Result, state};
use crate::functions::Volatility;
use crate::types::oid;
use crate::types::registry::{self, column_type};
use crate::value::Value;

const SETS_MAX: usize = 4096;
const CUBE_MAX: usize = 12;
const GROUPING_MAX: usize = 31;

/// Of (number of the set, the bits of each set): those of the row's set.
static GROUPING: Function =
    crate::functions::rows::function(&["grouping"], Run::Strict(bits_of_set), Volatility::Immutable, None);

fn bits_of_set(_: &Call, values: &[Value], _: &mut EvalContext) -> datum::Result<Value> {
    let (Value::Int(number), Some(bits)) = (&values[0], values[1].as_string_bytes()) else {
        return Err(datum::Fault::corrupt("a grouping set without a number"));
    };
    Ok(Value::Int(number_of_set(bits, *number).unwrap_or(0).into()))
}

/// Of (number of the set, the number of a result for each set, results): that of the row's set.
static RESULT_OF_SET: Function =
    crate::functions::rows::function(&["result_of_set"], Run::Values(result_of_set), Volatility::Immutable, None);

fn result_of_set(_: &Call, values: &[Value], _: &mut EvalContext) -> datum::Result<Value> {
    let (Value::Int(number), Some(results)) = (&values[0], values[1].as_string_bytes()) else {
        return Err(datum::Fault::corrupt("a grouping set without a number"));
    };
    let result = number_of_set(results, *number).and_then(|result| values.get(2 + result as usize));
    result.cloned().ok_or_else(|| datum::Fault::corrupt("a grouping set without a result"))
}

/// Returns the number that a list of four bytes each has for a set.
fn number_of_set(list: &[u8], set: i64) -> Option<u32> {
    let bytes = list.chunks_exact(4).nth(usize::try_from(set).ok()?)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*bytes))
}

impl Grouped {
    /// Returns the place of the result of a call, which is computed once if it is there already.
    fn place_of(&mut self, call: AggregateCall) -> Expr {
        let ty = call.aggregate.ty.clone();
        let number = match self.numbers.entry(format!("{call:?}")) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                self.calls.push(call);
                *new.insert(self.calls.len() - 1)
            }
        };
        Expr::Column(AGGREGATES + number, ty)
    }

    /// Returns the place of the number of a row's set.
    fn number_of_row(&mut self) -> Expr {
        let none = literal(Value::Int(0), oid::INT4);
        let level = *self.level.get_or_insert_with(|| {
            self.calls.push(any_value(none));
            self.calls.len() - 1
        });
        Expr::Column(AGGREGATES + level, column_type(oid::INT4, -1, false))
    }

    /// Returns the result of a call, of whose arguments the first `directs` are evaluated for a whole group: a key that the group's set lacks is NULL in them.
    ///
    /// There is a call for each choice of such keys that a set makes, and the set of a row chooses among their results.
    pub fn result_of(&mut self, call: AggregateCall, directs: usize) -> Expr {
        let mut read = Vec::new();
        for direct in &call.arguments[..directs] {
            self.keys_in(direct, &mut read);
        }
        let (mut choices, mut results): (Vec<Vec<usize>>, Vec<u8>) = (Vec::new(), Vec::new());
        for set in &self.sets {
            let missing: Vec<usize> = read.iter().copied().filter(|key| !set.contains(key)).collect();
            let known = choices.iter().position(|choice| *choice == missing);
            let choice = known.unwrap_or_else(|| {
                choices.push(missing);
                choices.len() - 1
            });
            results.extend((choice as u32).to_be_bytes());
        }
        if read.is_empty() || choices.iter().all(Vec::is_empty) {
            return self.place_of(call);
        }
        let ty = call.aggregate.ty.clone();
        let mut arguments = vec![self.number_of_row(), literal(Value::bytes(&results), oid::BYTEA)];
        for missing in choices {
            let mut call = call.clone();
            call.arguments[..directs].iter_mut().for_each(|direct| self.without_keys(direct, &missing));
            arguments.push(self.place_of(call));
        }
        call_of(&RESULT_OF_SET, arguments, registry::oid_of(&ty), registry::typmod_of(&ty))
    }

    /// Adds the keys that the expression reads, each once.
    fn keys_in(&self, expr: &Expr, keys: &mut Vec<usize>) {
        match self.key_like(expr) {
            Some(key) if !keys.contains(&key) => keys.push(key),
            Some(_) => {}
            None => expr.children().into_iter().for_each(|child| self.keys_in(child, keys)),
        }
    }

    fn without_keys(&self, expr: &mut Expr, missing: &[usize]) {
        match self.key_like(expr) {
            Some(key) if missing.contains(&key) => {
                *expr = Expr::Literal(Value::Null, settled(&expr.ty()).with_nullable(true));
            }
            Some(_) => {}
            None => expr.children_mut().into_iter().for_each(|child| self.without_keys(child, missing)),
        }
    }
}

/// The keys of a grouping while they are gathered.
#[derive(Default)]
struct Keys {
    exprs: Vec<Expr>,
    /// The number of each key, by its bound form.
    numbers: HashMap<String, usize>,
    /// Keys with subqueries, as they are written.
    texts: Vec<(tree::Expr, usize)>,
}

impl Binder<'_> {
    /// Binds GROUP BY, if the block is grouped. Subqueries that are bound from then on refer to groups.
    pub fn open_groups<'t>(&mut self, select: &'t Select, items: &[Item<'t>], order: &[SortBy]) -> Result<bool> {
        let is_of_item = |item: &Item<'_>| matches!(item, Item::Expr(item) if has_aggregate(&item.expr));
        let mut is_grouped = !select.group_by.is_empty()
            || select.having.is_some()
            || items.iter().any(is_of_item)
            || order.iter().any(|item| has_aggregate(&item.expr));
        if let Some(Distinct::On(list)) = &select.distinct {
            is_grouped |= list.iter().any(has_aggregate);
        }
        let of_window = |window: &tree::NamedWindow| of_window(&window.window).into_iter().any(has_aggregate);
        is_grouped |= select.windows.iter().any(of_window);
        if !is_grouped {
            return Ok(false);
        }
        self.set_clause(Clause::GroupBy);
        let mut keys = Keys::default();
        let mut sets = vec![Vec::new()];
        for item in &select.group_by {
            let own = self.sets_of_item(item, items, &mut keys)?;
            sets = self.product(&sets, &own)?;
        }
        if select.group_distinct {
            let mut seen: Vec<Vec<usize>> = Vec::new();
            sets.retain(|set| {
                let mut sorted = set.clone();
                sorted.sort_unstable();
                let is_new = !seen.contains(&sorted);
                seen.extend(is_new.then_some(sorted));
                is_new
            });
        }
        let Keys { exprs: keys, numbers: _, texts } = keys;
        if sets.len() == 1 {
            sets.clear();
        }
        // Columns of the keys are no use of ungrouped columns.
        self.scope().references.clear();
        let common: Vec<Expr> = (0..keys.len())
            .filter(|key| sets.iter().all(|set| set.contains(key)))
            .map(|key| keys[key].clone())
            .collect();
        let dependent = self.dependent(&common);
        self.scope().key_texts = texts;
        let reads = |set: &SetOf| set.call.arguments.iter().flat_map(Expr::columns).find(|place| *place < AGGREGATES);
        let set_reads = self.scope().sets.calls.iter().map(reads).collect();
        let (calls, numbers, level) = (Vec::new(), HashMap::new(), None);
        self.scope().grouped = Some(Grouped { keys, calls, numbers, set_reads, dependent, sets, level });
        Ok(true)
    }

    /// Returns the grouping sets of an item, as numbers of keys.
    fn sets_of_item<'t>(
        &mut self,
        item: &'t GroupItem,
        items: &[Item<'t>],
        keys: &mut Keys,
    ) -> Result<Vec<Vec<usize>>> {
        self.check_stack()?;
        Ok(match item {
            GroupItem::Empty(_) => vec![Vec::new()],
            GroupItem::Expr(expr) => vec![self.key_set(expr, items, keys)?],
            GroupItem::Rollup(list, _) => {
                let parts = self.key_sets(list, items, keys)?;
                (0..=parts.len()).rev().map(|count| united(&parts[..count])).collect()
            }
            GroupItem::Cube(list, at) => {
                if list.len() > CUBE_MAX {
                    let text = format!("CUBE is limited to {CUBE_MAX} elements");
                    return self.fail(state::TOO_MANY_COLUMNS, text, at.0);
                }
                let parts = self.key_sets(list, items, keys)?;
                let chosen = |mask: usize| {
                    let parts: Vec<Vec<usize>> =
                        (0..parts.len()).filter(|at| mask >> at & 1 == 1).map(|at| parts[at].clone()).collect();
                    united(&parts)
                };
                (0..1_usize << parts.len()).rev().map(chosen).collect()
            }
            GroupItem::GroupingSets(list, _) => {
                let mut sets = Vec::new();
                for item in list {
                    sets.extend(self.sets_of_item(item, items, keys)?);
                    self.check_sets(sets.len())?;
                }
                sets
            }
        })
    }

    fn check_sets(&self, count: usize) -> Result<()> {
        match count > SETS_MAX {
            true => {
                let text = format!("too many grouping sets present (maximum {SETS_MAX})");
                Err(PgError::new(state::STATEMENT_TOO_COMPLEX, text))
            }
            false => Ok(()),
        }
    }

    fn product(&self, left: &[Vec<usize>], right: &[Vec<usize>]) -> Result<Vec<Vec<usize>>> {
        self.check_sets(left.len().saturating_mul(right.len()))?;
        let pairs = left.iter().flat_map(|set| right.iter().map(|other| united(&[set.clone(), other.clone()])));
        Ok(pairs.collect())
    }

    fn key_sets<'t>(&mut self, list: &'t [tree::Expr], items: &[Item<'t>], keys: &mut Keys) -> Result<Vec<Vec<usize>>> {
        list.iter().map(|expr| self.key_set(expr, items, keys)).collect()
    }

    /// Binds an expression, or a list in parentheses, and returns the numbers of its keys.
    fn key_set<'t>(&mut self, expr: &'t tree::Expr, items: &[Item<'t>], keys: &mut Keys) -> Result<Vec<usize>> {
        if let ExprKind::Row { items: list, explicit: false } = &expr.kind {
            return Ok(united(&self.key_sets(list, items, keys)?));
        }
        let (key, text) = self.group_key(expr, items)?;
        self.check_comparable(oid_of(&key), expr.span.start)?;
        let number = match keys.numbers.entry(format!("{key:?}")) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                check_targets(keys.exprs.len() + 1)?;
                keys.exprs.push(key);
                *new.insert(keys.exprs.len() - 1)
            }
        };
        if has_subquery(text) {
            keys.texts.push((text.clone(), number));
        }
        Ok(vec![number])
    }

    /// Binds GROUPING: a bit for each argument, set if the row's grouping set lacks it.
    pub fn grouping(&mut self, list: &[tree::Expr], at: u32) -> Result<Operand> {
        if list.len() > GROUPING_MAX {
            let text = format!("GROUPING must have fewer than {} arguments", GROUPING_MAX + 1);
            return self.fail(state::TOO_MANY_ARGUMENTS, text, at);
        }
        let clause = self.scope().clause;
        if self.scope().in_aggregate {
            self.check_aggregate_place(Clause::AggregateArgument, at)?;
        }
        if self.check_aggregate_place(clause, at).is_err() {
            let text = format!("grouping operations are not allowed in {}", clause.in_words());
            return self.fail(state::GROUPING_ERROR, text, at);
        }
        let sets = self.sets_bound();
        self.scope().in_aggregate = true;
        let operands = self.all(list);
        self.scope().in_aggregate = false;
        let operands = operands?;
        self.check_no_sets(sets, "aggregate function calls cannot contain set-returning function calls")?;
        let mut keys = Vec::new();
        for operand in operands {
            let grouped = self.scope().grouped.as_ref();
            let Some(key) = grouped.and_then(|grouped| grouped.key_like(&operand.expr)) else {
                let text = "arguments to GROUPING must be grouping expressions of the associated query level";
                return self.fail(state::GROUPING_ERROR, text, operand.at);
            };
            keys.push(key);
        }
        let none = literal(Value::Int(0), oid::INT4);
        let Some(grouped) = self.scope().grouped.as_mut().filter(|grouped| !grouped.sets.is_empty()) else {
            return Ok(Operand { expr: none, at });
        };
        let bits_of = |set: &Vec<usize>| keys.iter().fold(0_i32, |bits, key| bits << 1 | i32::from(!set.contains(key)));
        let bits: Vec<u8> = grouped.sets.iter().flat_map(|set| bits_of(set).to_be_bytes()).collect();
        let number = grouped.number_of_row();
        let bits = literal(Value::bytes(&bits), oid::BYTEA);
        Ok(Operand { expr: call_of(&GROUPING, vec![number, bits], oid::INT4, -1), at })
    }
}

/// Returns the keys of all sets, each once.
fn united(sets: &[Vec<usize>]) -> Vec<usize> {
    let mut all: Vec<usize> = Vec::new();
    for key in sets.iter().flatten() {
        if !all.contains(key) {
            all.push(*key);
        }
    }
    all
}
