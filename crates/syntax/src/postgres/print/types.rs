//! Names of types, in SQL's spelling where they have one.

use std::fmt::{self, Display, Formatter};

use super::{Commas, Listed, when};
use crate::postgres::tree::{Const, Expr, ExprKind, IntervalFields, TypeName};

impl Display for TypeName {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let TypeName { name, setof, of_column, modifiers, interval, array_bounds, at: _ } = self;
        f.write_str(when(*setof, "SETOF "))?;
        match name.parts.as_slice() {
            [schema, name] if schema == "pg_catalog" && !of_column && sql_name(f, name, modifiers, *interval)? => {}
            _ => write!(f, "{name}{}{}", Listed("", modifiers), when(*of_column, "%TYPE"))?,
        }
        array_bounds.iter().try_for_each(|bound| match bound {
            Some(bound) => write!(f, "[{bound}]"),
            None => f.write_str("[]"),
        })
    }
}

/// Writes a type of `pg_catalog` as SQL spells it; false: it has no spelling that is read as the same.
fn sql_name(
    f: &mut Formatter,
    name: &str,
    modifiers: &[Expr],
    interval: Option<IntervalFields>,
) -> Result<bool, fmt::Error> {
    let number = match modifiers {
        [Expr { kind: ExprKind::Const(Const::Integer(number)), span: _ }] if *number >= 0 => Some(*number),
        _ => None,
    };
    if interval.is_some() || name == "interval" {
        let fits = name == "interval" && (modifiers.is_empty() || number.is_some());
        if fits {
            write_interval(f, number, interval)?;
        }
        return Ok(fits);
    }
    let plain = match name {
        "int4" => "integer",
        "int2" => "smallint",
        "int8" => "bigint",
        "float4" => "real",
        "float8" => "double precision",
        "bool" => "boolean",
        _ => "",
    };
    if !plain.is_empty() {
        if modifiers.is_empty() {
            f.write_str(plain)?;
        }
        return Ok(modifiers.is_empty());
    }
    let (before, after) = match name {
        "numeric" => ("numeric", ""),
        "bit" if !modifiers.is_empty() => ("bit", ""),
        "varbit" => ("bit varying", ""),
        "bpchar" if number.is_some() => ("character", ""),
        "varchar" if modifiers.is_empty() || number.is_some() => ("character varying", ""),
        "timestamp" => ("timestamp", " without time zone"),
        "timestamptz" => ("timestamp", " with time zone"),
        "time" => ("time", " without time zone"),
        "timetz" => ("time", " with time zone"),
        _ => return Ok(false),
    };
    let takes_number = !after.is_empty();
    if takes_number && !modifiers.is_empty() && number.is_none() {
        return Ok(false);
    }
    f.write_str(before)?;
    if !modifiers.is_empty() {
        write!(f, "({})", Commas(modifiers))?;
    }
    f.write_str(after)?;
    Ok(true)
}

fn write_interval(f: &mut Formatter, precision: Option<i32>, fields: Option<IntervalFields>) -> fmt::Result {
    f.write_str("interval")?;
    if let Some(fields) = fields {
        write!(f, " {fields}")?;
    }
    precision.iter().try_for_each(|precision| write!(f, "({precision})"))
}

impl Display for IntervalFields {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self {
            IntervalFields::Year => "year",
            IntervalFields::Month => "month",
            IntervalFields::Day => "day",
            IntervalFields::Hour => "hour",
            IntervalFields::Minute => "minute",
            IntervalFields::Second => "second",
            IntervalFields::YearToMonth => "year to month",
            IntervalFields::DayToHour => "day to hour",
            IntervalFields::DayToMinute => "day to minute",
            IntervalFields::DayToSecond => "day to second",
            IntervalFields::HourToMinute => "hour to minute",
            IntervalFields::HourToSecond => "hour to second",
            IntervalFields::MinuteToSecond => "minute to second",
        })
    }
}
