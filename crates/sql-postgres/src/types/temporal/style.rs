//! The settings `DateStyle` and `IntervalStyle`.

/// The first part of `DateStyle`: the form of dates that are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DateFormat {
    #[default]
    Iso,
    Sql,
    Postgres,
    German,
}

/// The second part of `DateStyle`: the order of a date's fields where it is ambiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DateOrder {
    #[default]
    Mdy,
    Dmy,
    Ymd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum IntervalStyle {
    #[default]
    Postgres,
    PostgresVerbose,
    SqlStandard,
    Iso8601,
}

impl DateFormat {
    pub fn name(self) -> &'static str {
        match self {
            DateFormat::Iso => "ISO",
            DateFormat::Sql => "SQL",
            DateFormat::Postgres => "Postgres",
            DateFormat::German => "German",
        }
    }
}

impl DateOrder {
    pub fn name(self) -> &'static str {
        match self {
            DateOrder::Mdy => "MDY",
            DateOrder::Dmy => "DMY",
            DateOrder::Ymd => "YMD",
        }
    }
}

impl IntervalStyle {
    pub fn name(self) -> &'static str {
        match self {
            IntervalStyle::Postgres => "postgres",
            IntervalStyle::PostgresVerbose => "postgres_verbose",
            IntervalStyle::SqlStandard => "sql_standard",
            IntervalStyle::Iso8601 => "iso_8601",
        }
    }

    /// The style of a name in any case.
    pub fn named(name: &str) -> Option<IntervalStyle> {
        use IntervalStyle::{Iso8601, Postgres, PostgresVerbose, SqlStandard};
        [Postgres, PostgresVerbose, SqlStandard, Iso8601]
            .into_iter()
            .find(|style| style.name().eq_ignore_ascii_case(name))
    }
}

/// Reads a value of the setting `DateStyle` over the styles in force: words separated by commas. `None` for an unknown word or two that conflict.
pub fn parse_date_style(text: &str, in_force: (DateFormat, DateOrder)) -> Option<(DateFormat, DateOrder)> {
    let (mut style, mut order) = (None, None);
    // A style that implies an order yields to an order that is named.
    let mut implied = None;
    for word in text.split(',') {
        let word = word.trim().trim_matches('"').to_ascii_lowercase();
        let (named_style, named_order) = match word.as_str() {
            "iso" => (Some(DateFormat::Iso), None),
            "sql" => (Some(DateFormat::Sql), None),
            "german" => {
                implied = Some(DateOrder::Dmy);
                (Some(DateFormat::German), None)
            }
            "ymd" => (None, Some(DateOrder::Ymd)),
            "default" => (Some(DateFormat::Iso), Some(DateOrder::Mdy)),
            word if word.starts_with("postgres") => (Some(DateFormat::Postgres), None),
            word if word == "dmy" || word.starts_with("euro") => (None, Some(DateOrder::Dmy)),
            word if word == "mdy" || word == "us" || word.starts_with("noneuro") => (None, Some(DateOrder::Mdy)),
            _ => return None,
        };
        if conflicts(style, named_style) || conflicts(order, named_order) {
            return None;
        }
        (style, order) = (style.or(named_style), order.or(named_order));
    }
    Some((style.unwrap_or(in_force.0), order.or(implied).unwrap_or(in_force.1)))
}

fn conflicts<T: PartialEq>(known: Option<T>, named: Option<T>) -> bool {
    matches!((known, named), (Some(known), Some(named)) if known != named)
}

#[derive(Clone, Debug, Default)]
pub struct IoContext {
    pub date_format: DateFormat,
    pub date_order: DateOrder,
    pub interval_style: IntervalStyle,
    pub zone: super::PgZone,
    pub now: i64,
}
