//! Columns of tables that another dialect made: the PostgreSQL type in whose form their values are, or are brought.

use datum::Storage;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;
use query::nodes::function::{Folding, Function, Run};
use query::types::{Type, TypeId};

use crate::error::{PgError, Result, state};
use crate::types::oid::{self, Oid};
use crate::types::registry;
use crate::value::{Decimal, Value};

/// The PostgreSQL type of a column.
#[derive(Clone, Copy, Debug)]
pub struct ForeignType {
    pub oid: Oid,
    pub typmod: i32,
    /// Called with each value of the column where its form is another than the type's.
    pub conversion: Option<&'static Function>,
}

/// The ids of types from here on are another dialect's.
const FOREIGN_BEGIN: u32 = 1 << 31;

/// Returns whether a type is neither PostgreSQL's nor the core's.
pub fn is_foreign(ty: &Type) -> bool {
    let TypeId(id) = ty.id;
    id >= FOREIGN_BEGIN
}

/// Returns the nearest PostgreSQL type of a column that another dialect or none declared. `None`: its values have no form here, and the column is refused by name.
pub fn type_of(ty: &Type) -> Option<ForeignType> {
    let plain = |oid| ForeignType { oid, typmod: -1, conversion: None };
    Some(match ty.storage {
        Storage::Int { bytes: 1, signed: false } => ForeignType { conversion: Some(&TO_SIGNED), ..plain(oid::INT2) },
        Storage::Int { bytes: 2, signed: false } => ForeignType { conversion: Some(&TO_SIGNED), ..plain(oid::INT4) },
        Storage::Int { bytes: 4, signed: false } => ForeignType { conversion: Some(&TO_SIGNED), ..plain(oid::INT8) },
        Storage::Int { signed: false, .. } => {
            let typmod = registry::numeric_typmod(UNSIGNED_DIGITS, 0);
            ForeignType { oid: oid::NUMERIC, typmod, conversion: Some(&TO_NUMERIC) }
        }
        Storage::Decimal if is_foreign(ty) => {
            let typmod = registry::numeric_typmod(ty.length as i32, i32::from(ty.scale));
            ForeignType { typmod, ..plain(oid::NUMERIC) }
        }
        storage => plain(registry::undeclared(storage)?),
    })
}

/// Returns a value in the form of a column that another dialect declared. An error for a value beyond the column's bounds.
pub fn stored(value: Value, ty: &Type) -> Result<Value> {
    match (ty.storage, &value) {
        (Storage::Int { bytes, signed }, _) => integer(&value, bytes, signed).ok_or_else(|| out_of_range(ty)),
        (Storage::Decimal, Value::Decimal(decimal)) => {
            let rounded = decimal.rounded(ty.scale.into());
            match rounded.whole_digits() > ty.length.saturating_sub(ty.scale.into()) {
                true => Err(PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow")),
                false => Ok(Value::Decimal(rounded)),
            }
        }
        (Storage::Float4, Value::Float(_)) | (Storage::Float8, Value::Double(_)) => Ok(value),
        (Storage::Text, Value::Text(text)) => match text.chars().all(|letter| ty.collation.charset().holds(letter)) {
            true if text.chars().count() <= ty.length as usize => Ok(value),
            true => Err(too_long(&format!("character varying({})", ty.length))),
            false => {
                let message = "character has no equivalent in the character set of the column";
                Err(PgError::new(state::UNTRANSLATABLE_CHARACTER, message))
            }
        },
        (Storage::Bytes, Value::Bytes(bytes)) if bytes.len() <= ty.length as usize => Ok(value),
        (Storage::Bytes, Value::Bytes(_)) => Err(too_long(&format!("bytea of {} bytes", ty.length))),
        _ => Err(PgError::new(state::FEATURE_NOT_SUPPORTED, "the column's type is another dialect's")),
    }
}

fn integer(value: &Value, bytes: u8, signed: bool) -> Option<Value> {
    let number = match value {
        Value::Int(number) => i128::from(*number),
        Value::UInt(number) => i128::from(*number),
        Value::Decimal(decimal) => decimal.rounded(0).small()?,
        _ => return None,
    };
    let bits = u32::from(bytes) * 8;
    match signed {
        true => (-(1i128 << (bits - 1))..1i128 << (bits - 1)).contains(&number).then_some(Value::Int(number as i64)),
        false => (0..1i128 << bits).contains(&number).then_some(Value::UInt(number as u64)),
    }
}

#[cold]
fn out_of_range(ty: &Type) -> PgError {
    let name = type_of(ty).map_or("integer".to_owned(), |near| registry::format_type(near.oid, None));
    PgError::new(state::NUMERIC_VALUE_OUT_OF_RANGE, format!("{name} out of range"))
}

#[cold]
fn too_long(name: &str) -> PgError {
    PgError::new(state::STRING_DATA_RIGHT_TRUNCATION, format!("value too long for type {name}"))
}

/// Decimal digits of the greatest unsigned number of 8 bytes.
const UNSIGNED_DIGITS: i32 = 20;

static TO_SIGNED: Function =
    Function { folding: Folding::Coercion, ..Function::new(&["int8"], Run::Strict(to_signed)) };
static TO_NUMERIC: Function =
    Function { folding: Folding::Coercion, ..Function::new(&["numeric"], Run::Strict(to_numeric)) };

fn to_signed(_: &Call, values: &[Value], _: &mut EvalContext) -> datum::Result<Value> {
    Ok(match &values[0] {
        Value::UInt(number) => Value::Int(*number as i64),
        other => other.clone(),
    })
}

fn to_numeric(_: &Call, values: &[Value], _: &mut EvalContext) -> datum::Result<Value> {
    Ok(match &values[0] {
        Value::UInt(number) => Value::Decimal(Decimal::new(i128::from(*number), 0)),
        other => other.clone(),
    })
}
