//! BLOOMFILTER(value, bits, hashes, strategy, bitmap): may the value be one of those that the filter was made of? Plans of PolarDB-X's nodes ask so to leave out rows that a join would drop.
//!
//! The hard thing is that both sides hash the same bytes: texts and whatever is shown as one their letters, integers up to INT and YEAR four bytes, BIGINT eight, FLOAT four, DOUBLE eight, little-endian.
//! A value of another type, and NULL, may always be there: the filter only saves work. Positions are h1, h1 + h2, h1 + 2 h2 ... without the sign, modulo the number of bits; bit n is the nth of its byte from the lowest on.

use murmur3::murmur3_x64_128;

use super::entry::{FunctionEntry, Returns, row};
use crate::error;
use crate::scalar::convert;
use crate::types::{Kind, MysqlType as _, Type};
use crate::value::Value;
use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;
use query::nodes::function::Run;

/// The only hash strategy that plans name.
const STRATEGY: &str = "murmur3_128";

pub const FUNCTIONS: &[FunctionEntry] = &[row(&["bloomfilter"], 5, 5, Returns::Truth, Run::Values(bloomfilter))];

fn bloomfilter(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let [value, bits, hashes, strategy, bitmap] = values else { unreachable!("the table says five") };
    let wrong = || error::WRONG_ARGUMENTS.raise(&[&"bloomfilter"]);
    let count = |value: &Value| match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::UInt(number) => Some(*number),
        _ => None,
    };
    let bits = count(bits).filter(|bits| *bits > 0).ok_or_else(wrong)?;
    let hashes = count(hashes).ok_or_else(wrong)?;
    if strategy.as_string_bytes() != Some(STRATEGY.as_bytes()) {
        return Err(wrong());
    }
    let bitmap = bitmap.as_string_bytes().filter(|bitmap| bitmap.len() as u64 >= bits.div_ceil(8)).ok_or_else(wrong)?;
    let Some(bytes) = hashed(value, &call.arguments[0].ty()) else { return Ok(Value::from(true)) };
    Ok(Value::from(may_contain(&bytes, bits, hashes, bitmap)))
}

/// The bytes of a value that are hashed. None: it may always be there.
fn hashed(value: &Value, ty: &Type) -> Option<Vec<u8>> {
    let integer = match value {
        Value::Null => return None,
        Value::Int(number) => *number,
        Value::UInt(number) => *number as i64,
        _ => 0,
    };
    match ty.kind() {
        Kind::BigInt => Some(integer.to_le_bytes().to_vec()),
        kind if kind.is_integer() || kind == Kind::Year => Some((integer as i32).to_le_bytes().to_vec()),
        Kind::Float => match value {
            Value::Float(number) => Some(number.to_le_bytes().to_vec()),
            _ => None,
        },
        Kind::Double => match value {
            Value::Double(number) => Some(number.to_le_bytes().to_vec()),
            _ => None,
        },
        Kind::Date | Kind::Time | Kind::DateTime | Kind::Timestamp => None,
        _ => Some(match value.as_string_bytes() {
            Some(bytes) => bytes.to_vec(),
            None => convert::to_text(value, ty).as_bytes().to_vec(),
        }),
    }
}

fn may_contain(bytes: &[u8], bits: u64, hashes: u64, bitmap: &[u8]) -> bool {
    let hash = murmur3_x64_128(&mut &bytes[..], 0).unwrap_or_else(|_| unreachable!("memory can be read"));
    let (step, mut at) = ((hash >> 64) as u64, hash as u64);
    (0..hashes).all(|_| {
        let bit = (at & i64::MAX as u64) % bits;
        at = at.wrapping_add(step);
        bitmap[(bit / 8) as usize] & 1 << (bit % 8) != 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_its_definition() {
        let hash = murmur3_x64_128(&mut &b"The quick brown fox jumps over the lazy dog"[..], 0).unwrap();
        assert_eq!((hash as u64, (hash >> 64) as u64), (0xe34b_bc7b_bc07_1b6c, 0x7a43_3ca9_c49a_9347));
    }

    #[test]
    fn what_was_put_in_may_be_there_and_most_else_is_not() {
        let (bits, hashes) = (1000, 5);
        let mut bitmap = vec![0; 125];
        let key = |number: i64| hashed(&Value::Int(number), &Type::integer()).unwrap();
        for number in 0..50 {
            let hash = murmur3_x64_128(&mut &key(number)[..], 0).unwrap();
            for nth in 0..hashes {
                let bit = (hash as u64).wrapping_add(((hash >> 64) as u64).wrapping_mul(nth)) << 1 >> 1;
                bitmap[(bit % bits / 8) as usize] |= 1 << (bit % bits % 8);
            }
        }
        assert!((0..50).all(|number| may_contain(&key(number), bits, hashes, &bitmap)));
        let others = (50..1050).filter(|number| may_contain(&key(*number), bits, hashes, &bitmap)).count();
        assert!(others < 20, "{others} of 1,000");
    }
}
