//! Polymorphic parameters: the types for which `anyelement`, `anyarray` and `anycompatible` of a signature stand.
//!
//! Parameters of the first family (`anyelement`, `anynonarray`, `anyenum`, `anyarray`, `anyrange`, `anymultirange`) take one element type as it is. Those of the second (`anycompatible` and its like) are
//! brought to the common type of their arguments. `is_consistent` is PostgreSQL's `check_generic_type_consistency`, `settle` its `enforce_generic_type_consistency`.

use crate::bind::coerce::can_coerce;
use crate::bind::resolve::Signature;
use crate::bind::typing::{category, is_preferred, shown};
use crate::error::{PgError, Result, state};
use crate::functions::CastContext;
use crate::types::oid::{
    ANYARRAY, ANYCOMPATIBLE, ANYCOMPATIBLEARRAY, ANYCOMPATIBLENONARRAY, ANYELEMENT, ANYENUM, ANYMULTIRANGE,
    ANYNONARRAY, ANYRANGE, Oid, TEXT, UNKNOWN,
};
use crate::types::registry::{array_of, element_of, is_array};
use crate::types::{range, user};

/// The types that the parameters of a call stand for.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    element: Option<Oid>,
    array: Option<Oid>,
    range: Option<Oid>,
    multirange: Option<Oid>,
    common: Option<Oid>,
}

/// Returns whether the type stands for others in a signature; `any` takes each argument as it is.
pub fn is_polymorphic(ty: Oid) -> bool {
    is_of_first(ty) || is_of_second(ty)
}

fn is_of_first(ty: Oid) -> bool {
    matches!(ty, ANYELEMENT | ANYNONARRAY | ANYARRAY | ANYENUM | ANYRANGE | ANYMULTIRANGE)
}

fn is_of_element(ty: Oid) -> bool {
    matches!(ty, ANYELEMENT | ANYNONARRAY | ANYENUM)
}

fn is_of_second(ty: Oid) -> bool {
    matches!(ty, ANYCOMPATIBLE | ANYCOMPATIBLENONARRAY | ANYCOMPATIBLEARRAY)
}

/// Returns whether arguments of these types can be those of the polymorphic parameters among `declared`.
pub fn is_consistent(inputs: &[Oid], declared: &[Oid]) -> bool {
    !declared.iter().any(|ty| is_polymorphic(*ty)) || find(inputs, declared).is_ok()
}

/// Finds the types, or returns the error of arguments that contradict each other.
#[inline(never)]
fn find(inputs: &[Oid], declared: &[Oid]) -> Result<Found> {
    let mut found = Found::default();
    let mut commons = Vec::new();
    let mismatch = |text: String| PgError::new(state::DATATYPE_MISMATCH, text);
    for (input, declared) in inputs.iter().zip(declared).filter(|(input, _)| **input != UNKNOWN) {
        let known = match *declared {
            ANYELEMENT | ANYNONARRAY | ANYENUM => &mut found.element,
            ANYARRAY => &mut found.array,
            ANYRANGE => &mut found.range,
            ANYMULTIRANGE => &mut found.multirange,
            ANYCOMPATIBLEARRAY => {
                let Some(element) = element_of(*input) else {
                    let text = "argument declared anycompatiblearray is not an array but type";
                    return Err(mismatch(format!("{text} {}", shown(*input))));
                };
                commons.push(element.oid);
                continue;
            }
            ty if is_of_second(ty) => {
                commons.push(*input);
                continue;
            }
            _ => continue,
        };
        let first = *known.get_or_insert(*input);
        if first != *input {
            let name = if is_of_element(*declared) { "anyelement".to_owned() } else { shown(*declared) };
            let error = mismatch(format!("arguments declared \"{name}\" are not all alike"));
            return Err(error.detail(versus(first, *input)));
        }
    }
    if let Some(array) = found.array {
        let Some(element) = element_of(array).map(|row| row.oid) else {
            let text = format!("argument declared anyarray is not an array but type {}", shown(array));
            return Err(mismatch(text));
        };
        if let Some(other) = found.element.filter(|other| *other != element) {
            let text = "argument declared anyarray is not consistent with argument declared anyelement";
            return Err(mismatch(text.to_owned()).detail(versus(array, other)));
        }
        found.element = Some(element);
    }
    found.settle_ranges()?;
    check_non_array(found.element, declared.contains(&ANYNONARRAY), "anynonarray")?;
    if declared.contains(&ANYENUM) && !found.element.is_some_and(user::is_enum) {
        let ty = found.element.map_or_else(|| "unknown".to_owned(), shown);
        return Err(mismatch(format!("type matched to anyenum is not an enum type: {ty}")));
    }
    if declared.iter().any(|ty| is_of_second(*ty)) {
        found.common = Some(common_type(&commons)?);
    }
    check_non_array(found.common, declared.contains(&ANYCOMPATIBLENONARRAY), "anycompatiblenonarray")?;
    Ok(found)
}

fn versus(left: Oid, right: Oid) -> String {
    format!("{} versus {}", shown(left), shown(right))
}

fn check_non_array(found: Option<Oid>, is_declared: bool, name: &str) -> Result<()> {
    match found {
        Some(ty) if is_declared && is_array(ty) => {
            let text = format!("type matched to {name} is an array type: {}", shown(ty));
            Err(PgError::new(state::DATATYPE_MISMATCH, text))
        }
        _ => Ok(()),
    }
}

/// Returns the common type of known types; text where there is none.
#[inline(never)]
fn common_type(types: &[Oid]) -> Result<Oid> {
    let becomes = |from: Oid, to: Oid| can_coerce(&[from], &[to], CastContext::Implicit);
    let Some((first, others)) = types.split_first() else { return Ok(TEXT) };
    let mut chosen = *first;
    for ty in others.iter().copied().filter(|ty| ty != first) {
        if ty == chosen {
            continue;
        }
        if category(ty) != category(chosen) {
            let text = format!("argument types {} and {} cannot be matched", shown(chosen), shown(ty));
            return Err(PgError::new(state::DATATYPE_MISMATCH, text));
        }
        if !is_preferred(chosen) && becomes(chosen, ty) && !becomes(ty, chosen) {
            chosen = ty;
        }
    }
    match types.iter().all(|ty| *ty == chosen || becomes(*ty, chosen)) {
        true => Ok(chosen),
        false => {
            let text = "arguments of anycompatible family cannot be cast to a common type";
            Err(PgError::new(state::DATATYPE_MISMATCH, text))
        }
    }
}

/// Puts the types that the call's arguments have, or are brought to, in the place of polymorphic ones. Returns the types of the parameters and of the result.
#[inline(never)]
pub fn settle((row, declared): &Signature, inputs: &[Oid]) -> Result<(Vec<Oid>, Oid)> {
    let has_first = declared.iter().any(|ty| is_of_first(*ty));
    if !has_first && !declared.iter().any(|ty| is_of_second(*ty)) {
        return Ok((declared.clone(), row.result));
    }
    let found = find(inputs, declared)?;
    if has_first && found.element.is_none() {
        let text = "could not determine polymorphic type because input has type unknown";
        return Err(PgError::new(state::DATATYPE_MISMATCH, text));
    }
    let mut types = Vec::with_capacity(declared.len());
    for (ty, input) in declared.iter().zip(inputs) {
        types.push(match *ty {
            ty if is_of_first(ty) && *input != UNKNOWN => *input,
            ty => found.stands_for(ty)?,
        });
    }
    Ok((types, found.stands_for(row.result)?))
}

/// An array or an element tells no range type.
#[cold]
fn undetermined(ty: Oid) -> PgError {
    let text = format!("could not determine polymorphic type {} because input has type unknown", shown(ty));
    PgError::new(state::DATATYPE_MISMATCH, text)
}

impl Found {
    /// Finds the range type of a multirange type, or the other way round, and the element type of both.
    fn settle_ranges(&mut self) -> Result<()> {
        let mismatch = |text: String| PgError::new(state::DATATYPE_MISMATCH, text);
        let of_multirange = match self.multirange {
            Some(multirange) => {
                let text = "argument declared anymultirange is not a multirange type but type";
                let found = range::of_multirange(multirange);
                Some(found.ok_or_else(|| mismatch(format!("{text} {}", shown(multirange))))?)
            }
            None => None,
        };
        if let (Some(range), Some(of_multirange)) = (self.range, of_multirange)
            && range != of_multirange.oid
        {
            let text = "argument declared anymultirange is not consistent with argument declared anyrange";
            return Err(mismatch(text.to_owned()).detail(versus(of_multirange.multirange, range)));
        }
        let Some(oid) = self.range.or(of_multirange.map(|ty| ty.oid)) else { return Ok(()) };
        let ty = range::of_range(oid).ok_or_else(|| {
            mismatch(format!("argument declared anyrange is not a range type but type {}", shown(oid)))
        })?;
        if let Some(element) = self.element.filter(|element| *element != ty.subtype) {
            let text = "argument declared anyrange is not consistent with argument declared anyelement";
            return Err(mismatch(text.to_owned()).detail(versus(oid, element)));
        }
        (self.range, self.multirange, self.element) = (Some(oid), Some(ty.multirange), Some(ty.subtype));
        Ok(())
    }

    fn stands_for(&self, ty: Oid) -> Result<Oid> {
        let array = |element: Option<Oid>| {
            let element = element.unwrap_or(TEXT);
            array_of(element).ok_or_else(|| {
                let text = format!("could not find array type for data type {}", shown(element));
                PgError::new(state::UNDEFINED_OBJECT, text)
            })
        };
        match ty {
            ANYELEMENT | ANYNONARRAY | ANYENUM => Ok(self.element.unwrap_or(TEXT)),
            ANYARRAY => self.array.map_or_else(|| array(self.element), Ok),
            ANYRANGE => self.range.ok_or_else(|| undetermined(ty)),
            ANYMULTIRANGE => self.multirange.ok_or_else(|| undetermined(ty)),
            ANYCOMPATIBLE | ANYCOMPATIBLENONARRAY => Ok(self.common.unwrap_or(TEXT)),
            ANYCOMPATIBLEARRAY => array(self.common),
            ty => Ok(ty),
        }
    }
}
