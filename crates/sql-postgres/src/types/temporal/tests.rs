//! Inputs and outputs beside recorded answers of PostgreSQL 16.

use super::io::*;
use super::*;
use crate::error::Result;
use crate::types::oid::{self, Oid};

/// Reads a value of a type and shows it again.
fn shown(ty: Oid, typmod: i32, text: &str, io: &IoContext) -> Result<String> {
    let mut out = Vec::new();
    match ty {
        oid::DATE => date_out(date_in(text, io)?, io, &mut out),
        oid::TIME => time_out(time_in(text, typmod, io)?, &mut out),
        oid::TIMETZ => timetz_out(timetz_in(text, typmod, io)?, &mut out),
        oid::TIMESTAMP => timestamp_out(timestamp_in(text, typmod, io)?, io, &mut out),
        oid::TIMESTAMPTZ => timestamptz_out(timestamptz_in(text, typmod, io)?, io, &mut out),
        oid::INTERVAL => interval_out(interval_in(text, typmod, io)?, io, &mut out),
        _ => panic!("type {ty}"),
    }
    Ok(String::from_utf8(out).expect("UTF-8"))
}

/// The form of an error in recorded answers.
fn error_text(error: PgError) -> String {
    let detail = error.detail.map(|detail| format!("|D:{detail}")).unwrap_or_default();
    let hint = error.hint.map(|hint| format!("|H:{hint}")).unwrap_or_default();
    format!("!{} {}{detail}{hint}", error.state, error.message)
}

/// Undoes the escapes of COPY.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => out.push(match chars.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('b') => '\u{8}',
                Some('f') => '\u{c}',
                Some('v') => '\u{b}',
                Some(other) => other,
                None => '\\',
            }),
            (c, false) => out.push(c),
        }
    }
    out
}

/// Reads a line of settings: zone, format, order, interval style, now.
fn settings(fields: &[String]) -> IoContext {
    IoContext {
        zone: PgZone::named(&fields[1]).expect("zone"),
        date_format: match fields[2].as_str() {
            "ISO" => DateFormat::Iso,
            "SQL" => DateFormat::Sql,
            "German" => DateFormat::German,
            _ => DateFormat::Postgres,
        },
        date_order: match fields[3].as_str() {
            "DMY" => DateOrder::Dmy,
            "YMD" => DateOrder::Ymd,
            _ => DateOrder::Mdy,
        },
        interval_style: match fields[4].as_str() {
            "postgres" => IntervalStyle::Postgres,
            "postgres_verbose" => IntervalStyle::PostgresVerbose,
            "sql_standard" => IntervalStyle::SqlStandard,
            _ => IntervalStyle::Iso8601,
        },
        now: fields[5].parse().expect("now"),
        ..IoContext::default()
    }
}

/// Plays lines and returns those whose answers differ.
fn differences(lines: &str) -> Vec<String> {
    let mut io = IoContext::default();
    let mut differing = Vec::new();
    for line in lines.lines() {
        let fields: Vec<String> = line.split('\t').map(unescaped).collect();
        if fields[0] == "set" {
            io = settings(&fields);
            continue;
        }
        let answer = match fields[0].as_str() {
            "in" => shown(fields[1].parse().expect("type"), fields[2].parse().expect("modifier"), &fields[3], &io),
            other => panic!("{other}"),
        };
        let answer = answer.unwrap_or_else(error_text);
        if Some(&answer) != fields.last() {
            differing.push(format!(
                "{} {:?} {:?}\n    {line}\n    ours: {answer}",
                io.zone.name(),
                io.date_format,
                io.date_order
            ));
        }
    }
    differing
}

/// A file of more cases, for runs by hand.
#[test]
fn texts_read_and_show_as_recorded() {
    let Ok(path) = std::env::var("TEMPORAL_CASES") else { return };
    let lines = std::fs::read_to_string(path).expect("cases");
    let differing = differences(&lines);
    differing.iter().take(60).for_each(|line| println!("{line}"));
    assert!(differing.is_empty(), "{} of {} differ", differing.len(), lines.lines().count());
}
