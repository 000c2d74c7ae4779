//! Values of another dialect's columns whose form is not MySQL's.
//!
//! PostgreSQL keeps dates and times as numbers since 2000, a UUID as bytes, a document with decimals for its numbers.
//! Such a column keeps its stored type, so rows and keys are read as they are. An expression never sees the stored
//! form: `read` wraps the column in a conversion, and `store` converts an assigned value twice, to MySQL's type by its
//! rules and then to the stored form (MY-29). A value that one side cannot express is an error, never the nearest one.

use datum::Result;
use datum::temporal::{Date, DateTime, MICROS_PER_SECOND, Time, Timestamp};
use query::nodes::assignment::Place;
use query::nodes::context::EvalContext;
use query::nodes::expr::{Call, Expr, Extra};
use query::nodes::function::{Function, Run};

use crate::error;
use crate::other_dialects::{DATE, JSONB, NUMERIC, TIME, TIMESTAMP, TIMESTAMPTZ, UUID, form_of, is_of_others};
use crate::scalar::decimal::Decimal;
use crate::types::{Kind, MysqlType as _, Type};
use crate::value::Value;

/// Decimal digits of a numeric without declared ones, as MySQL sees it.
const DIGITS: (u32, u8) = (65, 30);
/// Instants that a TIMESTAMP can be, in microseconds since 1970.
const INSTANTS: std::ops::Range<i64> = MICROS_PER_SECOND..(1 << 31) * MICROS_PER_SECOND;

static READ: Function = Function::new(&["<read>"], Run::Strict(read_value));

/// Returns MySQL's type of a column whose stored form is another, or None.
pub fn seen_type(ty: &Type) -> Option<Type> {
    if !is_of_others(ty) {
        return None;
    }
    // The modifier of times is their number of digits; without one they have all.
    let digits = u8::try_from(ty.length).ok().filter(|digits| *digits < 6).unwrap_or(6);
    let form = match form_of(ty) {
        DATE => Type::of_kind(Kind::Date),
        TIME => Type::temporal(Kind::Time, digits),
        TIMESTAMP => Type::temporal(Kind::DateTime, digits),
        TIMESTAMPTZ => Type::temporal(Kind::Timestamp, digits),
        UUID => Type { length: 36, ..Type::of_kind(Kind::Char) },
        JSONB => Type::of_kind(Kind::Json),
        NUMERIC => Type::decimal(DIGITS.0, DIGITS.1),
        _ => return None,
    };
    Some(form.with_nullable(ty.nullable))
}

/// Returns a column in MySQL's form. Errors of its values have the name.
pub fn read(column: Expr, name: &str) -> Expr {
    let Some(ty) = seen_type(&column.ty()) else { return column };
    let collation = ty.collation;
    let extra = Extra { text: name.into(), ..Extra::default() };
    Expr::Call(Box::new(Call { function: &READ, arguments: vec![column], ty, collation, extra }))
}

fn read_value(call: &Call, values: &[Value], _: &mut EvalContext) -> Result<Value> {
    let read = match (call.ty.kind(), &values[0]) {
        (Kind::Date, Value::Int(days)) => Date::from_days_since_2000(*days).map(Value::Date),
        (Kind::Time, Value::Int(micros)) => Time::checked(*micros).map(Value::Time),
        (Kind::DateTime, Value::Int(micros)) => DateTime::from_micros_since_2000(*micros).map(Value::DateTime),
        (Kind::Timestamp, Value::Int(micros)) => Timestamp::from_micros_since_2000(*micros)
            .filter(|instant| INSTANTS.contains(&instant.0))
            .map(Value::Timestamp),
        (Kind::Char, Value::Bytes(bytes)) => uuid_text(bytes).map(Value::text),
        (Kind::Json, Value::Json(json)) => json.node().with_machine_numbers().map(|node| Value::Json(node.into())),
        (Kind::Decimal, Value::Decimal(number)) => decimal(number).map(Value::Decimal),
        _ => None,
    };
    read.ok_or_else(|| unreadable(call, &values[0]))
}

/// Returns a number with all the digits of the type, or None if it has more.
fn decimal(number: &Decimal) -> Option<Decimal> {
    let is_narrow = number.is_finite() && number.whole_digits() <= DIGITS.0 - u32::from(DIGITS.1);
    let rounded = is_narrow.then(|| number.rounded(DIGITS.1.into()))?;
    (rounded.whole_digits() <= DIGITS.0 - u32::from(DIGITS.1)).then_some(rounded)
}

/// Returns the error of a value that MySQL's type cannot hold: 1292 for dates and times, else 1264.
#[cold]
fn unreadable(call: &Call, value: &Value) -> datum::Fault {
    let what = match call.ty.kind() {
        Kind::Date => "date",
        Kind::Time => "time",
        Kind::DateTime | Kind::Timestamp => "datetime",
        _ => return error::WARN_DATA_OUT_OF_RANGE.raise(&[&call.extra.text, &1]),
    };
    let shown = match (call.ty.kind(), value) {
        (_, Value::Int(i64::MIN)) => "-infinity".to_owned(),
        (_, Value::Int(i64::MAX)) => "infinity".to_owned(),
        (Kind::Date, Value::Int(days)) if *days == i64::from(i32::MIN) => "-infinity".to_owned(),
        (Kind::Date, Value::Int(days)) if *days == i64::from(i32::MAX) => "infinity".to_owned(),
        (Kind::Timestamp, Value::Int(micros)) => {
            DateTime::from_micros_since_2000(*micros).map_or_else(|| value.to_string(), |at| at.to_string())
        }
        _ => value.to_string(),
    };
    error::WRONG_VALUE_TEMPORAL.raise(&[&what, &shown])
}

/// Returns the stored form of a value that MySQL's type of the column already holds.
pub fn stored(value: Value, ty: &Type, place: Place<'_>) -> Result<Value> {
    let wrong = |what: &str, shown: String| {
        error::TRUNCATED_WRONG_VALUE_FOR_FIELD.raise(&[&what, &shown, &place.column, &place.row])
    };
    let number = match (ty.id.0, &value) {
        (DATE, Value::Date(date)) => date.days_since_2000(),
        (TIME, Value::Time(time)) => {
            // A time of day, of which PostgreSQL has 24:00:00 too.
            Some(time.micros()).filter(|micros| (0..=datum::temporal::MICROS_PER_DAY).contains(micros))
        }
        (TIMESTAMP, Value::DateTime(reading)) => reading.micros_since_2000(),
        (TIMESTAMPTZ, Value::Timestamp(instant)) => instant.micros_since_2000(),
        (UUID, Value::Text(text)) => {
            return uuid_bytes(text).map(Value::bytes).ok_or_else(|| wrong("uuid", text.to_string()));
        }
        (JSONB, Value::Json(json)) => return Ok(Value::Json(json.node().with_decimals().into())),
        (NUMERIC, Value::Decimal(number)) => return Ok(Value::Decimal(trimmed(number))),
        _ => None,
    };
    number.map(Value::Int).ok_or_else(|| {
        let what = match ty.id.0 {
            DATE => "date",
            TIME => "time",
            _ => "datetime",
        };
        error::WRONG_VALUE_FOR_COLUMN_TEMPORAL.raise(&[&what, &value.to_string(), &place.column, &place.row])
    })
}

/// Returns the number without zeros at its end, which a numeric would keep.
fn trimmed(number: &Decimal) -> Decimal {
    let mut scale = number.scale();
    while scale > 0 && number.truncated(scale - 1) == *number {
        scale -= 1;
    }
    number.truncated(scale)
}

/// Returns a UUID as text, or None for another number of bytes.
fn uuid_text(bytes: &[u8]) -> Option<String> {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let groups = [0..8, 8..12, 12..16, 16..20, 20..32];
    (bytes.len() == 16).then(|| groups.map(|group| &digits[group]).join("-"))
}

/// Reads 32 hexadecimal digits in groups as `uuid_text` writes them, in either case.
fn uuid_bytes(text: &str) -> Option<[u8; 16]> {
    let is_grouped = text.len() == 36 && [8, 13, 18, 23].iter().all(|at| text.as_bytes()[*at] == b'-');
    let digits: String = text.chars().filter(|letter| *letter != '-').collect();
    let is_whole = is_grouped && digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_whole.then(|| u128::from_str_radix(&digits, 16).ok().map(u128::to_be_bytes)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_and_its_text_lead_to_each_other() {
        let text = "00112233-4455-6677-8899-aabbccddeeff";
        let bytes = uuid_bytes(text).unwrap();
        assert_eq!((bytes[1], bytes[15]), (0x11, 0xff));
        assert_eq!(uuid_text(&bytes).as_deref(), Some(text));
        assert_eq!(uuid_bytes(&text.to_uppercase()), Some(bytes));
        for wrong in ["", "00112233445566778899aabbccddeeff", "0011223-34455-6677-8899-aabbccddeeff", &text[1..]] {
            assert_eq!(uuid_bytes(wrong), None, "{wrong}");
        }
        assert_eq!(uuid_bytes("+0112233-4455-6677-8899-aabbccddeeff"), None);
        assert_eq!(uuid_text(&bytes[1..]), None);
    }

    #[test]
    fn a_numeric_keeps_no_zeros_at_its_end() {
        for (number, kept) in [("1.50", "1.5"), ("100", "100"), ("0.000", "0"), ("-2.10", "-2.1")] {
            assert_eq!(trimmed(&Decimal::parse(number).unwrap()).to_string(), kept);
        }
        assert_eq!(decimal(&Decimal::NAN), None);
        assert_eq!(decimal(&Decimal::parse(&"9".repeat(36)).unwrap()), None);
    }
}
