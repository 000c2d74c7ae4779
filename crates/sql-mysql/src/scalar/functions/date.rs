//! Date and time functions.
//!
//! A function that counts days needs an existing day and returns NULL for any other. A function that extracts a part of a date accepts `2026-00-00` too.

use super::entry::{Args, FunctionEntry, Returns, folded, row, volatile};
use crate::error;
use crate::scalar::decimal::Decimal;
use crate::scalar::keyword_argument::Word;
use crate::scalar::settings::Settings;
use crate::scalar::state::StateOf as _;
use crate::scalar::temporal::calendar::{self, WeekMode};
use crate::scalar::temporal::{
    self, Date, DateTime, Interval, MICROS_PER_DAY, MICROS_PER_SECOND, Strictness, Time, Timestamp, Unit, Zone,
};
use crate::scalar::{bind, convert};
use crate::types::{Kind, MysqlExpr as _, MysqlType as _, Type};
use crate::value::Value;
use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::expr::{Call, Expr};
use query::nodes::function::Run;

pub const FUNCTIONS: &[FunctionEntry] = &[
    row(
        &["now", "current_timestamp", "localtime", "localtimestamp"],
        0,
        0,
        Returns::Kind(Kind::DateTime),
        Run::Values(now),
    ),
    volatile(row(&["sysdate"], 0, 0, Returns::Kind(Kind::DateTime), Run::Values(sysdate))),
    row(&["utc_timestamp"], 0, 0, Returns::Kind(Kind::DateTime), Run::Values(utc_timestamp)),
    row(&["curdate", "current_date"], 0, 0, Returns::Kind(Kind::Date), Run::Values(curdate)),
    row(&["utc_date"], 0, 0, Returns::Kind(Kind::Date), Run::Values(utc_date)),
    row(&["curtime", "current_time"], 0, 0, Returns::Kind(Kind::Time), Run::Values(curtime)),
    row(&["utc_time"], 0, 0, Returns::Kind(Kind::Time), Run::Values(utc_time)),
    row(&["year"], 1, 1, Returns::Int, Run::Strict(year)),
    row(&["quarter"], 1, 1, Returns::Int, Run::Strict(quarter)),
    row(&["month"], 1, 1, Returns::Int, Run::Strict(month)),
    row(&["day", "dayofmonth"], 1, 1, Returns::Int, Run::Strict(day)),
    row(&["dayofweek"], 1, 1, Returns::Int, Run::Strict(dayofweek)),
    row(&["weekday"], 1, 1, Returns::Int, Run::Strict(weekday)),
    row(&["dayofyear"], 1, 1, Returns::Int, Run::Strict(dayofyear)),
    row(&["week"], 1, 2, Returns::Int, Run::Strict(week)),
    row(&["weekofyear"], 1, 1, Returns::Int, Run::Strict(weekofyear)),
    row(&["yearweek"], 1, 2, Returns::Int, Run::Strict(yearweek)),
    row(&["hour"], 1, 1, Returns::Int, Run::Strict(hour)),
    row(&["minute"], 1, 1, Returns::Int, Run::Strict(minute)),
    row(&["second"], 1, 1, Returns::Int, Run::Strict(second)),
    row(&["microsecond"], 1, 1, Returns::Int, Run::Strict(microsecond)),
    row(&["monthname"], 1, 1, Returns::Plain(9), Run::Strict(monthname)),
    row(&["dayname"], 1, 1, Returns::Plain(9), Run::Strict(dayname)),
    row(&["extract"], 1, 1, Returns::Int, Run::Strict(extract)),
    row(&["date"], 1, 1, Returns::Kind(Kind::Date), Run::Strict(date)),
    row(&["time"], 1, 1, Returns::Custom(type_of_time), Run::Strict(time)),
    row(&["timestamp"], 1, 2, Returns::Custom(type_of_datetime), Run::Strict(timestamp)),
    row(&["last_day"], 1, 1, Returns::Kind(Kind::Date), Run::Strict(last_day)),
    folded(row(&["date_add", "adddate"], 2, 2, Returns::Custom(type_of_sum), Run::Strict(date_add))),
    folded(row(&["date_sub", "subdate"], 2, 2, Returns::Custom(type_of_sum), Run::Strict(date_sub))),
    row(&["timestampadd"], 2, 2, Returns::Custom(type_of_sum), Run::Strict(timestampadd)),
    row(&["timestampdiff"], 2, 2, Returns::Int, Run::Strict(timestampdiff)),
    row(&["datediff"], 2, 2, Returns::Int, Run::Strict(datediff)),
    row(&["timediff"], 2, 2, Returns::Custom(type_of_time), Run::Strict(timediff)),
    row(&["addtime"], 2, 2, Returns::Custom(type_of_time_sum), Run::Strict(addtime)),
    row(&["subtime"], 2, 2, Returns::Custom(type_of_time_sum), Run::Strict(subtime)),
    row(&["get_format"], 2, 2, Returns::Plain(17), Run::Values(get_format)),
    row(&["date_format"], 2, 2, Returns::Plain(1024), Run::Strict(date_format)),
    row(&["time_format"], 2, 2, Returns::Plain(1024), Run::Strict(time_format)),
    row(&["str_to_date"], 2, 2, Returns::Custom(type_of_str_to_date), Run::Strict(str_to_date)),
    row(&["from_days"], 1, 1, Returns::Kind(Kind::Date), Run::Strict(from_days)),
    row(&["to_days"], 1, 1, Returns::Int, Run::Strict(to_days)),
    row(&["to_seconds"], 1, 1, Returns::Int, Run::Strict(to_seconds)),
    row(&["makedate"], 2, 2, Returns::Kind(Kind::Date), Run::Strict(makedate)),
    row(&["maketime"], 3, 3, Returns::Custom(type_of_maketime), Run::Strict(maketime)),
    row(&["sec_to_time"], 1, 1, Returns::Custom(type_of_time), Run::Strict(sec_to_time)),
    row(&["time_to_sec"], 1, 1, Returns::Int, Run::Strict(time_to_sec)),
    row(&["unix_timestamp"], 0, 1, Returns::Custom(type_of_unix), Run::Strict(unix_timestamp)),
    row(&["from_unixtime"], 1, 2, Returns::Custom(type_of_from_unix), Run::Strict(from_unixtime)),
    row(&["convert_tz"], 3, 3, Returns::Custom(type_of_datetime), Run::Strict(convert_tz)),
    row(&["period_add"], 2, 2, Returns::Int, Run::Strict(period_add)),
    row(&["period_diff"], 2, 2, Returns::Int, Run::Strict(period_diff)),
];

/// Returns whether the argument may be the number of fractional digits.
pub fn takes_scale(name: &str) -> bool {
    matches!(name, "now" | "sysdate" | "utc_timestamp" | "curtime" | "utc_time")
}

/// Returns the fractional digits that an argument has or may have.
fn scale_of(expr: &Expr) -> u8 {
    let ty = expr.ty();
    match (expr, ty.kind()) {
        (Expr::Literal(Value::Text(text), _), _) => {
            text.split_once('.').map_or(0, |(_, digits)| digits.len().min(6) as u8)
        }
        (_, kind) if kind.is_temporal() => ty.scale,
        (_, Kind::Decimal) => ty.scale.min(6),
        (_, kind) if kind.is_integer() || kind == Kind::Year || kind == Kind::Null => 0,
        _ => 6,
    }
}

fn scale_of_all(arguments: &[Expr]) -> u8 {
    arguments.iter().map(scale_of).max().unwrap_or(0)
}

fn type_of_time(arguments: &[Expr], _: &Settings) -> Result<Type> {
    Ok(Type::temporal(Kind::Time, scale_of_all(arguments)))
}

fn type_of_maketime(arguments: &[Expr], _: &Settings) -> Result<Type> {
    Ok(Type::temporal(Kind::Time, scale_of(&arguments[2])))
}

fn type_of_datetime(arguments: &[Expr], _: &Settings) -> Result<Type> {
    let scale = if arguments.len() == 3 { scale_of(&arguments[0]) } else { scale_of_all(arguments) };
    Ok(Type::temporal(Kind::DateTime, scale))
}

/// The result for a text is a text, because only the value tells whether it has a time of day.
fn type_of_sum(arguments: &[Expr], settings: &Settings) -> Result<Type> {
    let ty = arguments[0].ty();
    Ok(match ty.kind() {
        Kind::Date => Type::of_kind(Kind::Date),
        Kind::Time => Type::temporal(Kind::Time, ty.scale),
        Kind::DateTime | Kind::Timestamp => Type::temporal(Kind::DateTime, ty.scale),
        _ => Type::text(29, settings.collation),
    })
}

pub fn type_with_unit(name: &str, arguments: &[Expr], unit: Unit, ty: Type) -> Type {
    if !matches!(name, "date_add" | "date_sub" | "timestampadd") {
        return ty;
    }
    let own = ty.scale;
    let more = match unit {
        _ if unit.has_micros() => 6,
        Unit::Second => scale_of(&arguments[usize::from(name != "timestampadd")]).min(6),
        _ => 0,
    };
    match ty.kind() {
        Kind::Date if !unit.is_date_only() => Type::temporal(Kind::DateTime, more),
        Kind::Time if unit.is_date_only() => Type::temporal(Kind::DateTime, own),
        kind if kind.is_temporal() && kind != Kind::Date => Type { scale: own.max(more), ..ty },
        _ => ty,
    }
}

fn type_of_time_sum(arguments: &[Expr], settings: &Settings) -> Result<Type> {
    let scale = scale_of_all(arguments);
    Ok(match arguments[0].kind() {
        Kind::Time => Type::temporal(Kind::Time, scale),
        Kind::Date | Kind::DateTime | Kind::Timestamp => Type::temporal(Kind::DateTime, scale),
        _ => Type::text(29, settings.collation),
    })
}

/// STR_TO_DATE: a literal format determines the type of the result.
fn type_of_str_to_date(arguments: &[Expr], _: &Settings) -> Result<Type> {
    let Expr::Literal(Value::Text(format), _) = &arguments[1] else {
        return Ok(Type::temporal(Kind::DateTime, 6));
    };
    let letters: Vec<char> = format.split('%').skip(1).filter_map(|part| part.chars().next()).collect();
    let has = |set: &str| letters.iter().any(|letter| set.contains(*letter));
    let scale = if has("f") { 6 } else { 0 };
    Ok(match (has("abcDdejMmUuVvWwXxYy"), has("fHIhiklprSsT")) {
        (true, false) => Type::of_kind(Kind::Date),
        (false, true) => Type::temporal(Kind::Time, scale),
        _ => Type::temporal(Kind::DateTime, scale),
    })
}

fn type_of_unix(arguments: &[Expr], _: &Settings) -> Result<Type> {
    let scale = match arguments.first() {
        // MySQL assumes six fractional digits for an argument that is not temporal.
        Some(Expr::Literal(Value::Text(text), _)) if temporal::parse_datetime(text, ANY).is_none() => 6,
        Some(argument) => scale_of(argument),
        None => 0,
    };
    Ok(if scale == 0 { Type::integer() } else { Type::decimal(17 + u32::from(scale), scale) })
}

fn type_of_from_unix(arguments: &[Expr], settings: &Settings) -> Result<Type> {
    match arguments.len() {
        1 => Ok(Type::temporal(Kind::DateTime, scale_of(&arguments[0]))),
        _ => Ok(bind::string_type(1024, settings.collation)),
    }
}

fn scale(call: &Call) -> u8 {
    if let Word::Scale(scale) = Word::of(call) { scale } else { 0 }
}

fn now(call: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::DateTime(ctx.zone.local(ctx.now).truncated(scale(call))))
}

fn sysdate(call: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::DateTime(ctx.zone.local(Timestamp::now()).truncated(scale(call))))
}

fn utc_timestamp(call: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::DateTime(Zone::utc().local(ctx.now).truncated(scale(call))))
}

fn curdate(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::Date(convert::today(ctx)))
}

fn utc_date(_: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::Date(Zone::utc().local(ctx.now).date))
}

fn curtime(call: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::Time(ctx.zone.local(ctx.now).time().truncated(scale(call))))
}

fn utc_time(call: &Call, _: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    Ok(Value::Time(Zone::utc().local(ctx.now).time().truncated(scale(call))))
}

/// Accepts zero parts in a date, for functions that extract a part.
const ANY: Strictness = Strictness { no_zero_date: false, no_zero_in_date: false, allow_invalid: false };

fn of_date(
    call: &Call,
    values: &[Value],
    rules: Strictness,
    of: impl FnOnce(Date) -> i64,
    ctx: &mut EvalContext,
) -> Result<Value> {
    // The SQL mode decides whether a text may be the zero date; a column's value is accepted as stored.
    let no_zero_date =
        matches!(values[0], Value::Text(_) | Value::Bytes(_)) && Strictness::of(ctx.sql_mode()).no_zero_date;
    let rules = Strictness { no_zero_date: rules.no_zero_date || no_zero_date, ..rules };
    let at = Args::new(call, values).datetime(0, rules, ctx)?;
    Ok(at.map_or(Value::Null, |at| Value::Int(of(at.date))))
}

fn of_time(call: &Call, values: &[Value], of: impl FnOnce(Time) -> i64, ctx: &mut EvalContext) -> Result<Value> {
    let time = Args::new(call, values).time(0, ctx)?;
    Ok(time.map_or(Value::Null, |time| Value::Int(of(time))))
}

fn year(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    of_date(call, values, ANY, |date| date.year.into(), ctx)
}

fn quarter(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    of_date(call, values, ANY, |date| (i64::from(date.month) + 2) / 3, ctx)
}

fn month(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    of_date(call, values, ANY, |date| date.month.into(), ctx)
}

fn day(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    of_date(call, values, ANY, |date| date.day.into(), ctx)
}

fn dayofweek(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let of = |date| calendar::weekday_from_sunday(calendar::day_number(date)) + 1;
    of_date(call, values, Strictness::REAL, of, ctx)
}

fn weekday(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    of_date(call, values, Strictness::REAL, |date| calendar::weekday(calendar::day_number(date)), ctx)
}

fn dayofyear(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let of = |date: Date| calendar::day_number(date) - calendar::day_number(Date::new(date.year, 1, 1)) + 1;
    of_date(call, values, Strictness::REAL, of, ctx)
}

fn week(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let mode = WeekMode::new(Args::new(call, values).int_or(1, 0, ctx)?);
    of_date(call, values, Strictness::REAL, |date| calendar::week(date, mode).0, ctx)
}

fn weekofyear(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    of_date(call, values, Strictness::REAL, |date| calendar::week(date, WeekMode::new(3)).0, ctx)
}

fn yearweek(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let mode = WeekMode::new(Args::new(call, values).int_or(1, 0, ctx)? | 2);
    let of = |date| {
        let (week, year) = calendar::week(date, mode);
        year * 100 + week
    };
    of_date(call, values, Strictness::REAL, of, ctx)
}

fn hour(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    of_time(call, values, |time| time.parts().0.into(), ctx)
}

fn minute(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    of_time(call, values, |time| time.parts().1.into(), ctx)
}

fn second(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    of_time(call, values, |time| time.parts().2.into(), ctx)
}

fn microsecond(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    of_time(call, values, |time| time.parts().3.into(), ctx)
}

fn monthname(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let at = Args::new(call, values).datetime(0, ANY, ctx)?;
    let name = at.and_then(|at| ctx.state().time_names.months.get(usize::from(at.date.month).checked_sub(1)?));
    Ok(name.map_or(Value::Null, Value::text))
}

fn dayname(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let at = Args::new(call, values).datetime(0, Strictness::REAL, ctx)?;
    let weekday = |at: DateTime| calendar::weekday(calendar::day_number(at.date)) as usize;
    Ok(at.map_or(Value::Null, |at| Value::text(ctx.state().time_names.weekdays[weekday(at)])))
}

/// Date units read a date, time units a time; DAY_... units read either.
fn extract(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let Word::Unit(unit) = Word::of(call) else {
        return Ok(Value::Null);
    };
    let of = |date: Date| match unit {
        Unit::Year => date.year.into(),
        Unit::Quarter => (i64::from(date.month) + 2) / 3,
        Unit::Month => date.month.into(),
        Unit::Week => calendar::week(date, WeekMode::new(0)).0,
        Unit::YearMonth => i64::from(date.year) * 100 + i64::from(date.month),
        _ => date.day.into(),
    };
    if unit.is_date_only() {
        return of_date(call, values, ANY, of, ctx);
    }
    let args = Args::new(call, values);
    let days_too = matches!(unit, Unit::DayMicrosecond | Unit::DaySecond | Unit::DayMinute | Unit::DayHour);
    // Any text other than a datetime is a time.
    let is_time = match args.get(0) {
        Value::Time(_) => true,
        Value::Text(text) => {
            temporal::parse_whole_datetime(text).is_none() && temporal::parse_datetime(text, ANY).is_none()
        }
        _ => false,
    };
    let (day, time) = match days_too && !is_time {
        true => match args.datetime(0, ANY, ctx)? {
            Some(at) => (i64::from(at.date.day), at.time()),
            None => return Ok(Value::Null),
        },
        false => match args.time(0, ctx)? {
            Some(time) => (0, time),
            None => return Ok(Value::Null),
        },
    };
    let (hours, minutes, seconds, micros) = time.parts();
    let (hours, minutes, seconds, micros) =
        (i64::from(hours) + 100 * day, i64::from(minutes), i64::from(seconds), i64::from(micros));
    let number = match unit {
        Unit::Hour | Unit::DayHour => hours,
        Unit::Minute => minutes,
        Unit::Second => seconds,
        Unit::Microsecond => micros,
        Unit::HourMinute | Unit::DayMinute => hours * 100 + minutes,
        Unit::HourSecond | Unit::DaySecond => (hours * 100 + minutes) * 100 + seconds,
        Unit::HourMicrosecond | Unit::DayMicrosecond => ((hours * 100 + minutes) * 100 + seconds) * 1_000_000 + micros,
        Unit::MinuteSecond => minutes * 100 + seconds,
        Unit::MinuteMicrosecond => (minutes * 100 + seconds) * 1_000_000 + micros,
        _ => seconds * 1_000_000 + micros,
    };
    Ok(Value::Int(if time.is_negative() { -number } else { number }))
}

fn date(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let rules = Strictness::of(ctx.sql_mode());
    let at = Args::new(call, values).datetime(0, rules, ctx)?;
    Ok(at.map_or(Value::Null, |at| Value::Date(at.date)))
}

fn time(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let time = Args::new(call, values).time(0, ctx)?;
    Ok(time.map_or(Value::Null, |time| Value::Time(time.rounded(call.ty.scale))))
}

fn timestamp(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let rules = Strictness::of(ctx.sql_mode());
    let Some(at) = args.datetime(0, rules, ctx)? else {
        return Ok(Value::Null);
    };
    if args.len() == 1 {
        return Ok(Value::DateTime(at));
    }
    let time = args.time(1, ctx)?;
    Ok(time.and_then(|time| at.plus_micros(time.micros())).map_or(Value::Null, Value::DateTime))
}

fn last_day(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let at = Args::new(call, values).datetime(0, ANY, ctx)?.filter(|at| at.date.month != 0);
    let last = |date: Date| Date::new(date.year, date.month, calendar::days_in_month(date.year, date.month));
    Ok(at.map_or(Value::Null, |at| Value::Date(last(at.date))))
}

fn date_add(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let Some(interval) = interval(call, values, 1, ctx)? else {
        return Ok(Value::Null);
    };
    shifted(call, values, 0, interval, ctx)
}

fn date_sub(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let Some(interval) = interval(call, values, 1, ctx)? else {
        return Ok(Value::Null);
    };
    shifted(call, values, 0, interval.negated(), ctx)
}

fn timestampadd(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let Some(interval) = interval(call, values, 0, ctx)? else {
        return Ok(Value::Null);
    };
    shifted(call, values, 1, interval, ctx)
}

fn interval(call: &Call, values: &[Value], place: usize, ctx: &mut EvalContext) -> Result<Option<Interval>> {
    let args = Args::new(call, values);
    let unit = if let Word::Unit(unit) = Word::of(call) { unit } else { Unit::Day };
    let interval = match unit.is_composite() {
        true => unit.composite(&args.text(place, ctx)),
        false if unit == Unit::Second => unit.simple(&args.decimal(place, ctx)?),
        false => match args.get(place) {
            Value::Text(_) | Value::Bytes(_) => unit.simple(&Decimal::from(args.int(place, ctx)?)),
            _ => unit.simple(&args.decimal(place, ctx)?),
        },
    };
    if interval.is_none() {
        overflow("datetime", ctx)?;
    }
    Ok(interval)
}

fn overflow(what: &str, ctx: &mut EvalContext) -> Result<()> {
    ctx.complain(error::DATETIME_FUNCTION_OVERFLOW.raise(&[&what]))
}

fn shifted(call: &Call, values: &[Value], place: usize, interval: Interval, ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    if let (Value::Time(time), Kind::Time) = (args.get(place), call.ty.kind()) {
        let sum = time.micros().checked_add(interval.micros).and_then(Time::checked);
        if sum.is_none() {
            overflow("time", ctx)?;
        }
        return Ok(sum.map_or(Value::Null, Value::Time));
    }
    let Some(parsed) = convert::to_parsed_datetime(args.get(place), Strictness::REAL, ctx)? else {
        return Ok(Value::Null);
    };
    let Some(at) = interval.added_to(parsed.value) else {
        overflow("datetime", ctx)?;
        return Ok(Value::Null);
    };
    let date_only = if let Word::Unit(unit) = Word::of(call) { unit.is_date_only() } else { true };
    Ok(match call.ty.kind() {
        Kind::Date => Value::Date(at.date),
        kind if kind.is_temporal() => Value::DateTime(at),
        _ if date_only && !parsed.has_time => Value::text(at.date.to_string()),
        _ if at.clock().3 != 0 => Value::text(format!("{at:.6}")),
        _ => Value::text(at.to_string()),
    })
}

fn timestampdiff(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let (Some(from), Some(to)) = (args.datetime(0, Strictness::REAL, ctx)?, args.datetime(1, Strictness::REAL, ctx)?)
    else {
        return Ok(Value::Null);
    };
    let unit = if let Word::Unit(unit) = Word::of(call) { unit } else { Unit::Day };
    let micros = to.linear() - from.linear();
    let months = |from: DateTime, to: DateTime| {
        let whole = |at: DateTime| i64::from(at.date.year) * 12 + i64::from(at.date.month);
        let rest = (to.date.day, to.micros_of_day()) < (from.date.day, from.micros_of_day());
        whole(to) - whole(from) - i64::from(rest)
    };
    let months = || if to >= from { months(from, to) } else { -months(to, from) };
    Ok(Value::Int(match unit {
        Unit::Year => months() / 12,
        Unit::Quarter => months() / 3,
        Unit::Month => months(),
        Unit::Week => micros / (7 * MICROS_PER_DAY),
        Unit::Day => micros / MICROS_PER_DAY,
        Unit::Hour => micros / (3600 * MICROS_PER_SECOND),
        Unit::Minute => micros / (60 * MICROS_PER_SECOND),
        Unit::Second => micros / MICROS_PER_SECOND,
        _ => micros,
    }))
}

fn datediff(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let (Some(a), Some(b)) = (args.datetime(0, Strictness::REAL, ctx)?, args.datetime(1, Strictness::REAL, ctx)?)
    else {
        return Ok(Value::Null);
    };
    Ok(Value::Int(calendar::day_number(a.date) - calendar::day_number(b.date)))
}

/// A text that contains a date is a datetime, any other a duration.
enum Moment {
    At(DateTime),
    Length(Time),
}

fn moment(args: &Args<'_>, place: usize, ctx: &mut EvalContext) -> Result<Option<Moment>> {
    Ok(match args.get(place) {
        Value::Date(_) | Value::DateTime(_) | Value::Timestamp(_) => args.datetime(place, ANY, ctx)?.map(Moment::At),
        Value::Text(text) => match temporal::parse_whole_datetime(text) {
            Some(parsed) => Some(Moment::At(parsed.value)),
            None => args.time(place, ctx)?.map(Moment::Length),
        },
        _ => args.time(place, ctx)?.map(Moment::Length),
    })
}

fn timediff(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let micros = match (moment(&args, 0, ctx)?, moment(&args, 1, ctx)?) {
        (Some(Moment::At(a)), Some(Moment::At(b))) => a.linear() - b.linear(),
        (Some(Moment::Length(a)), Some(Moment::Length(b))) => a.micros() - b.micros(),
        _ => return Ok(Value::Null),
    };
    let time = Time::from_micros(micros);
    if time.micros() != micros {
        ctx.complain(error::TRUNCATED_WRONG_VALUE.raise(&[&"time", &format!("{time}")]))?;
    }
    Ok(Value::Time(time))
}

fn addtime(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    time_sum(call, values, 1, ctx)
}

fn subtime(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    time_sum(call, values, -1, ctx)
}

fn time_sum(call: &Call, values: &[Value], sign: i64, ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let (Some(first), Some(length)) = (moment(&args, 0, ctx)?, args.time(1, ctx)?) else {
        return Ok(Value::Null);
    };
    let text = call.ty.is_string();
    Ok(match first {
        Moment::At(at) => match at.plus_micros(sign * length.micros()) {
            Some(sum) if text => Value::text(if sum.clock().3 == 0 { sum.to_string() } else { format!("{sum:.6}") }),
            Some(sum) => Value::DateTime(sum),
            None => {
                overflow("datetime", ctx)?;
                Value::Null
            }
        },
        Moment::Length(time) => {
            let sum = Time::from_micros(time.micros() + sign * length.micros());
            match text {
                true => Value::text(if sum.parts().3 == 0 { sum.to_string() } else { format!("{sum:.6}") }),
                false => Value::Time(sum),
            }
        }
    })
}

/// GET_FORMAT: the format of a region for a date, a time, or both.
pub fn named_format(what: &str, region: &str) -> Option<&'static str> {
    const FORMATS: [(&str, [&str; 3]); 5] = [
        ("usa", ["%m.%d.%Y", "%h:%i:%s %p", "%Y-%m-%d %H.%i.%s"]),
        ("jis", ["%Y-%m-%d", "%H:%i:%s", "%Y-%m-%d %H:%i:%s"]),
        ("iso", ["%Y-%m-%d", "%H:%i:%s", "%Y-%m-%d %H:%i:%s"]),
        ("eur", ["%d.%m.%Y", "%H.%i.%s", "%Y-%m-%d %H.%i.%s"]),
        ("internal", ["%Y%m%d", "%H%i%s", "%Y%m%d%H%i%s"]),
    ];
    let at = match what {
        "date" => 0,
        "time" => 1,
        _ => 2,
    };
    FORMATS.iter().find(|(name, _)| name.eq_ignore_ascii_case(region)).map(|(_, formats)| formats[at])
}

/// The first argument is a keyword (`bind::call`).
fn get_format(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    if args.is_null(1) {
        return Ok(Value::Null);
    }
    Ok(named_format(&args.text(0, ctx), &args.text(1, ctx)).map_or(Value::Null, Value::text))
}

fn date_format(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let Some(at) = args.datetime(0, ANY, ctx)? else {
        return Ok(Value::Null);
    };
    Ok(temporal::date_format(at, &args.text(1, ctx), ctx.state().time_names).map_or(Value::Null, Value::text))
}

fn time_format(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let Some(time) = args.time(0, ctx)? else {
        return Ok(Value::Null);
    };
    Ok(temporal::time_format(time, &args.text(1, ctx), ctx.state().time_names).map_or(Value::Null, Value::text))
}

fn str_to_date(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let text = args.text(0, ctx);
    let rules = Strictness::of(ctx.sql_mode());
    let parsed = temporal::parse_by_format(&text, &args.text(1, ctx));
    let parsed = parsed.filter(|(at, _)| call.ty.kind() == Kind::Time || rules.passes(at.date));
    let Some((at, rest)) = parsed else {
        let what = if call.ty.kind() == Kind::Time { "time" } else { "datetime" };
        ctx.complain(error::WRONG_VALUE_FOR_TYPE.raise(&[&what, &text, &"str_to_date"]))?;
        return Ok(Value::Null);
    };
    if rest {
        ctx.complain(error::TRUNCATED_WRONG_VALUE.raise(&[&call.ty.kind().name(), &text]))?;
    }
    Ok(match call.ty.kind() {
        Kind::Date => Value::Date(at.date),
        Kind::Time => Value::Time(at.time()),
        _ => Value::DateTime(at),
    })
}

fn from_days(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let number = Args::new(call, values).int(0, ctx)?;
    Ok(Value::Date(calendar::from_day_number(number).unwrap_or(Date::ZERO)))
}

fn to_days(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    of_date(call, values, Strictness::REAL, calendar::day_number, ctx)
}

fn to_seconds(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let at = Args::new(call, values).datetime(0, Strictness::REAL, ctx)?;
    Ok(at.map_or(Value::Null, |at| Value::Int(at.linear().div_euclid(MICROS_PER_SECOND))))
}

fn makedate(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let (year, day) = (args.int(0, ctx)?, args.int(1, ctx)?);
    let year = match year {
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        other => other,
    };
    if day <= 0 || !(0..=9999).contains(&year) {
        return Ok(Value::Null);
    }
    let first = calendar::day_number(Date::new(year as u16, 1, 1));
    Ok(first.checked_add(day - 1).and_then(calendar::from_day_number).map_or(Value::Null, Value::Date))
}

fn maketime(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let (hours, minutes, seconds) = (args.int(0, ctx)?, args.int(1, ctx)?, args.decimal(2, ctx)?.rounded(6));
    let micros = seconds.small().unwrap_or(-1);
    if !(0..60).contains(&minutes) || !(0..60_000_000).contains(&micros) {
        return Ok(Value::Null);
    }
    let size = (hours.unsigned_abs().min(10_000) as i64 * 3600 + minutes * 60) * MICROS_PER_SECOND + micros as i64;
    let time = Time::from_micros(if hours < 0 { -size } else { size });
    if time.micros().abs() != size {
        ctx.complain(error::TRUNCATED_WRONG_VALUE.raise(&[&"time", &format!("{hours}:{minutes:02}:{seconds}")]))?;
    }
    Ok(Value::Time(time))
}

fn sec_to_time(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let seconds = Args::new(call, values).decimal(0, ctx)?;
    let micros = seconds.rounded(6).small().unwrap_or(i128::MAX);
    let time = Time::from_micros(micros.clamp(i64::MIN.into(), i64::MAX.into()) as i64);
    if i128::from(time.micros()) != micros {
        ctx.complain(error::TRUNCATED_WRONG_VALUE.raise(&[&"time", &seconds]))?;
    }
    Ok(Value::Time(time.rounded(call.ty.scale)))
}

fn time_to_sec(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    of_time(call, values, |time| time.micros() / MICROS_PER_SECOND, ctx)
}

/// Returns 0 outside the range of TIMESTAMP.
fn unix_timestamp(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let at = match values {
        [] => Timestamp(ctx.now.0 - ctx.now.0.rem_euclid(MICROS_PER_SECOND)),
        [Value::Timestamp(at)] => *at,
        _ => match Args::new(call, values).datetime(0, ANY, ctx)? {
            Some(reading) => ctx.zone.instant(reading).filter(|at| at.0 > 0).unwrap_or(Timestamp::ZERO),
            None if matches!(values[0], Value::Text(_)) => return Ok(zero_seconds(call)),
            None => return Ok(Value::Null),
        },
    };
    Ok(match call.ty.kind() {
        Kind::Decimal => Value::Decimal(Decimal::new(at.0.into(), 6).truncated(call.ty.scale.into())),
        _ => Value::Int(at.0.div_euclid(MICROS_PER_SECOND)),
    })
}

fn zero_seconds(call: &Call) -> Value {
    if call.ty.kind() == Kind::Decimal { Value::Decimal(Decimal::new(0, call.ty.scale.into())) } else { Value::Int(0) }
}

fn from_unixtime(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let seconds = args.decimal(0, ctx)?;
    // 3001-01-18 23:59:59, where MySQL 8.0 ends on 64-bit machines.
    let limit = Decimal::from(32_536_771_199i64);
    let micros = match seconds.rounded(6).small() {
        Some(micros @ 0..) if seconds <= limit => micros as i64,
        _ => return Ok(Value::Null),
    };
    let at = if micros == 0 { ctx.zone.local(Timestamp(1)).truncated(0) } else { ctx.zone.local(Timestamp(micros)) };
    if args.len() == 1 {
        return Ok(at.rounded(call.ty.scale).map_or(Value::Null, Value::DateTime));
    }
    Ok(temporal::date_format(at, &args.text(1, ctx), ctx.state().time_names).map_or(Value::Null, Value::text))
}

/// CONVERT_TZ: an unknown time zone yields NULL.
fn convert_tz(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let Some(at) = args.datetime(0, Strictness::REAL, ctx)? else {
        return Ok(Value::Null);
    };
    let (Ok(from), Ok(to)) = (temporal::parse_zone(&args.text(1, ctx)), temporal::parse_zone(&args.text(2, ctx)))
    else {
        return Ok(Value::Null);
    };
    Ok(Value::DateTime(match from.instant(at).filter(|instant| instant.0 > 0) {
        Some(instant) => to.local(instant),
        None => at,
    }))
}

/// 202611 and 2611 as a number of months.
fn period(number: i64) -> i64 {
    let (year, month) = (number / 100, number % 100);
    let year = match year {
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        other => other,
    };
    year * 12 + month - 1
}

fn valid_period(call: &Call, number: i64) -> Result<i64> {
    match number > 0 && (1..=12).contains(&(number % 100)) && number < 1_000_000 {
        true => Ok(period(number)),
        false => Err(error::WRONG_ARGUMENTS.raise(&[&call.function.name()])),
    }
}

fn period_add(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    let months = valid_period(call, args.int(0, ctx)?)?.saturating_add(args.int(1, ctx)?);
    Ok(Value::Int((months / 12).saturating_mul(100).saturating_add(months % 12 + 1)))
}

fn period_diff(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let args = Args::new(call, values);
    Ok(Value::Int(valid_period(call, args.int(0, ctx)?)? - valid_period(call, args.int(1, ctx)?)?))
}
