//! Expressions of plans.

use crate::message::DEPTH_MAX;
use crate::message::datatypes::Scalar;
use crate::proto::{Fields, Malformed, Result};

#[derive(Clone, Debug, PartialEq)]
pub enum Expr<'a> {
    Literal(Scalar<'a>),
    /// The position of a plan's parameter.
    Placeholder(u32),
    /// A column of the node below, from 0.
    Ref(u32),
    Operator(&'a [u8], Vec<Expr<'a>>),
    Function(&'a [u8], Vec<Expr<'a>>),
    /// Valid in a message but not served: IDENT, VARIABLE, OBJECT, ARRAY.
    Other(&'static str),
}

impl<'a> Expr<'a> {
    pub fn read(message: &'a [u8]) -> Result<Expr<'a>> {
        Expr::at_depth(message, 0)
    }

    pub(super) fn at_depth(message: &'a [u8], depth: usize) -> Result<Expr<'a>> {
        if depth >= DEPTH_MAX {
            return Err(Malformed);
        }
        let (mut kind, mut literal, mut call, mut operator, mut position, mut place) = (None, None, None, None, 0, 0);
        for field in Fields::of(message) {
            match field? {
                (1, value) => kind = Some(value.varint()?),
                (4, value) => literal = Some(Scalar::read(value.bytes()?)?),
                (5, value) => call = Some(operands(value.bytes()?, depth, function_name)?),
                (6, value) => operator = Some(operands(value.bytes()?, depth, Ok)?),
                (7, value) => position = value.u32()?,
                (10, value) => place = value.u32()?,
                _ => {}
            }
        }
        Ok(match kind.ok_or(Malformed)? {
            1 => Expr::Other("a column by its name"),
            2 => match literal.ok_or(Malformed)? {
                Scalar::Placeholder(position) => Expr::Placeholder(position),
                literal => Expr::Literal(literal),
            },
            3 => Expr::Other("a variable"),
            4 => call.map(|(name, of)| Expr::Function(name, of)).ok_or(Malformed)?,
            5 => operator.map(|(name, of)| Expr::Operator(name, of)).ok_or(Malformed)?,
            6 => Expr::Placeholder(position),
            7 => Expr::Other("an object"),
            8 => Expr::Other("an array"),
            9 => Expr::Ref(place),
            _ => return Err(Malformed),
        })
    }
}

/// Reads FunctionCall or Operator: a name, and expressions.
fn operands<'a>(
    message: &'a [u8],
    depth: usize,
    name_of: fn(&'a [u8]) -> Result<&'a [u8]>,
) -> Result<(&'a [u8], Vec<Expr<'a>>)> {
    let (mut name, mut all) = (None, Vec::new());
    for field in Fields::of(message) {
        match field? {
            (1, value) => name = Some(name_of(value.bytes()?)?),
            (2, value) => all.push(Expr::at_depth(value.bytes()?, depth + 1)?),
            _ => {}
        }
    }
    Ok((name.ok_or(Malformed)?, all))
}

/// Reads Identifier, without its schema: functions have none.
fn function_name(message: &[u8]) -> Result<&[u8]> {
    let mut name = None;
    for field in Fields::of(message) {
        if let (1, value) = field? {
            name = Some(value.bytes()?);
        }
    }
    name.ok_or(Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{put_bytes, put_measured, put_number};

    fn reference(place: u64) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(&mut out, 1, 9);
        put_number(&mut out, 10, place);
        out
    }

    fn operator(name: &str, of: &[Vec<u8>]) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(&mut out, 1, 5);
        put_measured(&mut out, 6, |out| {
            put_bytes(out, 1, name.as_bytes());
            of.iter().for_each(|one| put_bytes(out, 2, one));
        });
        out
    }

    #[test]
    fn operators_and_functions_have_their_operands_in_order() {
        let literal = b"\x08\x02\x22\x04\x08\x01\x10\x0e".to_vec();
        let bytes = operator("==", &[reference(3), literal]);
        let meant = Expr::Operator(b"==", vec![Expr::Ref(3), Expr::Literal(Scalar::Int(7))]);
        assert_eq!(Expr::read(&bytes), Ok(meant));
        let mut call = Vec::new();
        put_number(&mut call, 1, 4);
        put_measured(&mut call, 5, |out| {
            put_measured(out, 1, |out| put_bytes(out, 1, b"bloomfilter"));
            put_bytes(out, 2, &reference(0));
        });
        assert_eq!(Expr::read(&call), Ok(Expr::Function(b"bloomfilter", vec![Expr::Ref(0)])));
    }

    #[test]
    fn both_forms_of_a_placeholder_are_one() {
        assert_eq!(Expr::read(b"\x08\x06\x38\x02"), Ok(Expr::Placeholder(2)));
        assert_eq!(Expr::read(b"\x08\x02\x22\x04\x08\x09\x50\x02"), Ok(Expr::Placeholder(2)));
    }

    #[test]
    fn what_is_no_expression_is_malformed_and_what_nobody_serves_is_named() {
        for bad in [&b""[..], b"\x08\x0a", b"\x08\x02", b"\x08\x05", b"\x08\x05\x32\x00", b"\x08\x04\x2a\x02\x0a\x00"] {
            assert_eq!(Expr::read(bad), Err(Malformed), "{bad:x?}");
        }
        assert_eq!(Expr::read(b"\x08\x03\x1a\x01x"), Ok(Expr::Other("a variable")));
    }

    #[test]
    fn expressions_do_not_nest_without_end() {
        let mut deep = reference(1);
        for depth in 1..DEPTH_MAX + 2 {
            assert_eq!(Expr::read(&deep).is_ok(), depth <= DEPTH_MAX, "{depth}");
            deep = operator("!", &[deep]);
        }
    }
}
