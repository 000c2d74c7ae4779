//! Overload resolution: the function or operator that a name and the types of its arguments lead to.
//!
//! The rules are those of PostgreSQL's `func_select_candidate` (chapter 10 of its manual): exact types first, then exact or preferred ones, then the categories of
//! arguments of unknown type.

use crate::bind::coerce::can_coerce;
use crate::bind::typing::{category, is_preferred};
use crate::functions::{self, CastContext, PgFunction, PgOperator};
pub use crate::functions::{cast_between, functions_named, operators_named};
use crate::types::oid::{self, Oid};
use crate::types::registry::array_of;

pub fn function_by_oid(oid: Oid) -> Option<&'static PgFunction> {
    functions::function(oid)
}

/// The outcome of a search.
#[derive(Debug)]
pub enum Resolution<T> {
    One(T),
    None,
    /// Several fit equally well.
    Many,
}

/// A function or operator with the types of its parameters, one for each argument.
#[derive(Clone, Debug)]
struct Candidate<T> {
    row: T,
    types: Vec<Oid>,
}

/// A rule that leaves the better candidates for arguments of these types.
type Step<T> = fn(Vec<Candidate<T>>, &[Oid]) -> Vec<Candidate<T>>;

/// A function with the types of its parameters, one for each argument of the call.
pub type Signature = (&'static PgFunction, Vec<Oid>);

/// The arguments of a call beside their types.
#[derive(Clone, Copy, Debug, Default)]
pub struct Notation<'c> {
    /// The names of the last arguments: `name => value`.
    pub names: &'c [&'c str],
    /// VARIADIC before the last argument: it is an array of the others.
    pub is_variadic: bool,
}

/// Returns the function for a call with arguments of these types.
pub fn function(name: &str, inputs: &[Oid]) -> Resolution<Signature> {
    function_as(name, inputs, Notation::default())
}

/// Returns the function for a call. A function may have more parameters than there are arguments, if the others have defaults.
#[inline(never)]
pub fn function_as(name: &str, inputs: &[Oid], notation: Notation<'_>) -> Resolution<Signature> {
    let mut candidates: Vec<Candidate<&'static PgFunction>> = Vec::new();
    for row in functions_named(name) {
        let types = match notation {
            Notation { names: [], is_variadic: false } => parameters(row, inputs.len()),
            Notation { is_variadic: true, .. } => parameters_of_array(row, inputs),
            Notation { names, .. } => {
                let places = places(row, inputs.len(), names);
                places.map(|places| places.into_iter().map(|place| row.arguments[place]).collect())
            }
        };
        candidates.extend(types.map(|types| Candidate { row: *row, types }));
    }
    // A function without variadic parameters, or that leaves none to its default, is preferred to one that takes the same types with them.
    let is_plain = |row: &PgFunction| row.variadic == 0 && row.arguments.len() == inputs.len();
    let plain: Vec<Vec<Oid>> = candidates
        .iter()
        .filter(|candidate| is_plain(candidate.row))
        .map(|candidate| candidate.types.clone())
        .collect();
    candidates.retain(|candidate| is_plain(candidate.row) || !plain.contains(&candidate.types));
    let one = |candidate: Candidate<&'static PgFunction>| Resolution::One((candidate.row, candidate.types));
    if let Some(at) = candidates.iter().position(|candidate| candidate.types == inputs) {
        return one(candidates.swap_remove(at));
    }
    match select(candidates, inputs) {
        Resolution::One(candidate) => one(candidate),
        Resolution::None => Resolution::None,
        Resolution::Many => Resolution::Many,
    }
}

/// Returns the place among the parameters of each argument of a call that names the last ones. `None`: they are not its parameters, or one without a default is missing.
pub fn places(row: &PgFunction, count: usize, names: &[&str]) -> Option<Vec<usize>> {
    let known = functions::parameters::parameters(row.oid)?;
    let mut places: Vec<usize> = (0..count.checked_sub(names.len())?).collect();
    for name in names {
        let place = known.names.iter().position(|known| known == name)?;
        if places.contains(&place) || place >= row.arguments.len() {
            return None;
        }
        places.push(place);
    }
    let required = row.arguments.len().checked_sub(known.defaults.len())?;
    let is_complete = (0..required).all(|place| places.contains(&place));
    (is_complete && row.variadic == 0).then_some(places)
}

/// Returns the types of the parameters of a call whose last argument is the array of its variadic ones.
fn parameters_of_array(row: &PgFunction, inputs: &[Oid]) -> Option<Vec<Oid>> {
    let last = *inputs.last()?;
    if row.variadic == 0 || row.arguments.len() != inputs.len() {
        return None;
    }
    let mut types = row.arguments.to_vec();
    let place = types.len() - 1;
    types[place] = if row.variadic == oid::ANY { last } else { array_of(row.variadic)? };
    Some(types)
}

/// Returns the types of a function's parameters for so many arguments.
fn parameters(row: &PgFunction, count: usize) -> Option<Vec<Oid>> {
    if row.variadic == 0 {
        let missing = row.arguments.len().checked_sub(count)?;
        let defaults = functions::parameters::parameters(row.oid).map_or(0, |known| known.defaults.len());
        return (missing <= defaults).then(|| row.arguments[..count].to_vec());
    }
    let fixed = row.arguments.len().checked_sub(1)?;
    (count > fixed).then(|| {
        let mut types = row.arguments[..fixed].to_vec();
        types.resize(count, row.variadic);
        types
    })
}

/// Returns the operator over operands of these types. `left` is 0 for a prefix operator.
pub fn operator(name: &str, left: Oid, right: Oid) -> Resolution<&'static PgOperator> {
    let rows = operators_named(name);
    let exact = |left: Oid, right: Oid| rows.iter().find(|row| row.left == left && row.right == right);
    if left == 0 {
        if let Some(row) = exact(0, right) {
            return Resolution::One(row);
        }
        let prefix = rows.iter().filter(|row| row.left == 0);
        let candidates = prefix.map(|row| Candidate { row: *row, types: vec![row.right] }).collect();
        return found(select(candidates, &[right]));
    }
    // An operand of unknown type is first taken to be of the other's.
    let (as_left, as_right) = match (left == oid::UNKNOWN, right == oid::UNKNOWN) {
        (true, false) => (right, right),
        (false, true) => (left, left),
        _ => (left, right),
    };
    if let Some(row) = exact(as_left, as_right) {
        return Resolution::One(row);
    }
    let binary = rows.iter().filter(|row| row.left != 0);
    let candidates = binary.map(|row| Candidate { row: *row, types: vec![row.left, row.right] }).collect();
    found(select(candidates, &[left, right]))
}

fn found(selected: Resolution<Candidate<&'static PgOperator>>) -> Resolution<&'static PgOperator> {
    match selected {
        Resolution::One(candidate) => Resolution::One(candidate.row),
        Resolution::None => Resolution::None,
        Resolution::Many => Resolution::Many,
    }
}

fn accepts(inputs: &[Oid], types: &[Oid]) -> bool {
    can_coerce(inputs, types, CastContext::Implicit)
}

fn select<T: Copy>(mut candidates: Vec<Candidate<T>>, inputs: &[Oid]) -> Resolution<Candidate<T>> {
    candidates.retain(|candidate| accepts(inputs, &candidate.types));
    let steps: [Step<T>; 4] = [most_exact, most_preferred, by_category, by_known_type];
    for step in steps {
        if candidates.len() <= 1 {
            break;
        }
        candidates = step(candidates, inputs);
    }
    match candidates.len() {
        0 => Resolution::None,
        1 => Resolution::One(candidates.remove(0)),
        _ => Resolution::Many,
    }
}

/// Keeps the candidates with the highest score.
fn best<T>(candidates: Vec<Candidate<T>>, score: impl Fn(&Candidate<T>) -> usize) -> Vec<Candidate<T>> {
    let most = candidates.iter().map(&score).max().unwrap_or(0);
    candidates.into_iter().filter(|candidate| score(candidate) == most).collect()
}

fn most_exact<T>(candidates: Vec<Candidate<T>>, inputs: &[Oid]) -> Vec<Candidate<T>> {
    let is_exact = |(input, ty): (&Oid, &Oid)| *input != oid::UNKNOWN && input == ty;
    best(candidates, |candidate| inputs.iter().zip(&candidate.types).filter(|pair| is_exact(*pair)).count())
}

fn most_preferred<T>(candidates: Vec<Candidate<T>>, inputs: &[Oid]) -> Vec<Candidate<T>> {
    let is_good = |(input, ty): (&Oid, &Oid)| {
        let is_wanted = || is_preferred(*ty) && category(*ty) == category(*input);
        *input != oid::UNKNOWN && (input == ty || is_wanted())
    };
    best(candidates, |candidate| inputs.iter().zip(&candidate.types).filter(|pair| is_good(*pair)).count())
}

/// Decides a category for each argument of unknown type and keeps the candidates that take it: that of strings if any candidate does.
fn by_category<T: Copy>(candidates: Vec<Candidate<T>>, inputs: &[Oid]) -> Vec<Candidate<T>> {
    let mut slots = Vec::new();
    for at in (0..inputs.len()).filter(|at| inputs[*at] == oid::UNKNOWN) {
        let Some((category, has_preferred)) = slot(&candidates, at) else { return candidates };
        slots.push((at, category, has_preferred));
    }
    if slots.is_empty() {
        return candidates;
    }
    let fits = |candidate: &&Candidate<T>| {
        slots.iter().all(|(at, wanted, has_preferred)| {
            let ty = candidate.types[*at];
            category(ty) == *wanted && (!has_preferred || is_preferred(ty))
        })
    };
    let kept: Vec<Candidate<T>> = candidates.iter().filter(fits).cloned().collect();
    if kept.is_empty() { candidates } else { kept }
}

/// Returns the category of an argument of unknown type, and whether a candidate takes its preferred type. `None`: the candidates differ.
fn slot<T>(candidates: &[Candidate<T>], at: usize) -> Option<(char, bool)> {
    let (mut chosen, mut has_preferred, mut conflicts) = (None, false, false);
    for candidate in candidates {
        let ty = candidate.types[at];
        match (chosen, category(ty)) {
            (None, found) => (chosen, has_preferred) = (Some(found), is_preferred(ty)),
            (Some(known), found) if known == found => has_preferred |= is_preferred(ty),
            (Some(_), 'S') => (chosen, has_preferred) = (Some('S'), is_preferred(ty)),
            _ => conflicts = true,
        }
    }
    let chosen = chosen?;
    (!conflicts || chosen == 'S').then_some((chosen, has_preferred))
}

/// Takes arguments of unknown type to be of the one known type, if a single candidate takes that.
fn by_known_type<T: Copy>(candidates: Vec<Candidate<T>>, inputs: &[Oid]) -> Vec<Candidate<T>> {
    let mut known = inputs.iter().copied().filter(|ty| *ty != oid::UNKNOWN);
    let Some(ty) = known.next() else { return candidates };
    if !known.all(|other| other == ty) || !inputs.contains(&oid::UNKNOWN) {
        return candidates;
    }
    let assumed = vec![ty; inputs.len()];
    let kept: Vec<Candidate<T>> =
        candidates.iter().filter(|candidate| accepts(&assumed, &candidate.types)).cloned().collect();
    if kept.len() == 1 { kept } else { candidates }
}
