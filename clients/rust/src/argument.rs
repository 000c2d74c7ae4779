//! Arguments: the values that a request binds to its `?`s or placeholders.

use std::borrow::Cow;

use crate::message::{Any, AnyKind, Scalar, ScalarKind, ScalarOctets, ScalarString};
use crate::value::Value;

/// utf8mb4_general_ci: the collation that strings travel with.
const UTF8MB4: u64 = 45;

/// A value that goes to the server. Most are made by `into()`.
#[derive(Clone, PartialEq, Debug)]
pub enum Argument<'a> {
    Null,
    Int(i64),
    Uint(u64),
    Double(f64),
    Float(f32),
    Bool(bool),
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
    /// The name of a table, column or database: it becomes a part of the statement, quoted by the server.
    Identifier(Cow<'a, str>),
    /// A piece of SQL, inserted unchanged. Never pass text that a user typed.
    Raw(Cow<'a, str>),
}

impl<'a> Argument<'a> {
    pub fn identifier(name: &'a str) -> Argument<'a> {
        Argument::Identifier(name.into())
    }

    pub(crate) fn any(&self) -> Any {
        Any { kind: AnyKind::Scalar as i32, scalar: Some(self.scalar()) }
    }

    /// As plans hold it.
    pub fn scalar(&self) -> Scalar {
        let of = |kind: ScalarKind| Scalar { kind: kind as i32, ..Scalar::default() };
        let string = |text: &str| Some(ScalarString { value: text.into(), collation: Some(UTF8MB4) });
        match self {
            Argument::Null => of(ScalarKind::Null),
            Argument::Int(number) => Scalar { v_signed_int: Some(*number), ..of(ScalarKind::Sint) },
            Argument::Uint(number) => Scalar { v_unsigned_int: Some(*number), ..of(ScalarKind::Uint) },
            Argument::Double(number) => Scalar { v_double: Some(*number), ..of(ScalarKind::Double) },
            Argument::Float(number) => Scalar { v_float: Some(*number), ..of(ScalarKind::Float) },
            Argument::Bool(truth) => Scalar { v_bool: Some(*truth), ..of(ScalarKind::Bool) },
            Argument::Text(text) => Scalar { v_string: string(text), ..of(ScalarKind::String) },
            Argument::Bytes(bytes) => {
                let octets = ScalarOctets { value: bytes.to_vec(), content_type: None };
                Scalar { v_octets: Some(octets), ..of(ScalarKind::Octets) }
            }
            // Servers look for the name where strings are.
            Argument::Identifier(name) => Scalar { v_string: string(name), ..of(ScalarKind::Identifier) },
            Argument::Raw(text) => Scalar { v_string: string(text), ..of(ScalarKind::RawString) },
        }
    }
}

macro_rules! arguments {
    ($($from:ty => $variant:ident as $to:ty),*) => {
        $(impl From<$from> for Argument<'_> {
            fn from(number: $from) -> Self {
                Argument::$variant(<$to>::from(number))
            }
        })*
    };
}

arguments!(i8 => Int as i64, i16 => Int as i64, i32 => Int as i64, i64 => Int as i64, u8 => Uint as u64, u16 => Uint as u64, u32 => Uint as u64, u64 => Uint as u64,
    f32 => Float as f32, f64 => Double as f64, bool => Bool as bool);

impl<'a> From<&'a str> for Argument<'a> {
    fn from(text: &'a str) -> Self {
        Argument::Text(text.into())
    }
}

impl From<String> for Argument<'_> {
    fn from(text: String) -> Self {
        Argument::Text(text.into())
    }
}

impl<'a> From<&'a [u8]> for Argument<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Argument::Bytes(bytes.into())
    }
}

impl From<Vec<u8>> for Argument<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Argument::Bytes(bytes.into())
    }
}

impl<'a, T: Into<Argument<'a>>> From<Option<T>> for Argument<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Argument::Null, Into::into)
    }
}

/// Converts a value that was read into an argument. Decimals, dates, times and sets are sent as text, which the column converts.
impl<'a> From<&'a Value> for Argument<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Null => Argument::Null,
            Value::Int(number) => Argument::Int(*number),
            Value::Uint(number) => Argument::Uint(*number),
            Value::Double(number) => Argument::Double(*number),
            Value::Float(number) => Argument::Float(*number),
            Value::Text(text) => Argument::Text(text.into()),
            Value::Bytes(bytes) => Argument::Bytes(bytes.into()),
            other => Argument::Text(other.to_string().into()),
        }
    }
}
