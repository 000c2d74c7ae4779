//! The tables of types, functions, operators and casts beside an extract of the real server's catalogs, in `tests/catalog`: each row has the real object identifier, types and properties.

use std::collections::{HashMap, HashSet};

use query::nodes::comparison::Comparison;
use sql_postgres::functions::{self, Body, CastContext, CastMethod, PgFunction, PgOperator, Volatility};
use sql_postgres::types::registry::{self, TypeKind};

const PROC: &str = include_str!("../catalog/pg_proc.tsv");
const OPERATOR: &str = include_str!("../catalog/pg_operator.tsv");
const CAST: &str = include_str!("../catalog/pg_cast.tsv");
const TYPE: &str = include_str!("../catalog/pg_type.tsv");

/// Returns the lines of an extract by their first fields.
fn lines(text: &str, key: usize) -> HashMap<String, &str> {
    let key_of = |line: &str| line.split('\t').take(key).collect::<Vec<_>>().join("\t");
    text.lines().map(|line| (key_of(line), line)).collect()
}

fn flag(truth: bool) -> &'static str {
    if truth { "t" } else { "f" }
}

fn proc_line(row: &PgFunction, real: &str) -> String {
    let kind = match row.body {
        Body::Scalar(_) | Body::Set(_) => "f",
        Body::Aggregate(_) | Body::OrderedSet(_) => "a",
        Body::Window => "w",
    };
    let volatility = match row.volatility {
        Volatility::Immutable => "i",
        Volatility::Stable => "s",
        Volatility::Volatile => "v",
    };
    // An aggregate is never strict in the catalog: its transition function is, or is not.
    let is_strict = if kind == "a" { real.split('\t').nth(3).unwrap() } else { flag(row.is_strict) };
    let arguments: Vec<String> = row.arguments.iter().map(ToString::to_string).collect();
    let (oid, name, variadic, result) = (row.oid, row.name, row.variadic, row.result);
    format!("{oid}\t{name}\t{kind}\t{is_strict}\t{volatility}\t{variadic}\t{result}\t{}", arguments.join(" "))
}

#[test]
fn each_function_is_the_one_of_its_oid() {
    let real = lines(PROC, 1);
    let mut wrong = Vec::new();
    let mut seen = HashSet::new();
    for row in functions::functions() {
        assert!(seen.insert(row.oid), "two rows of function {}", row.oid);
        let expected = real.get(&row.oid.to_string()).copied().unwrap_or_default();
        let found = proc_line(row, expected);
        if found != expected {
            wrong.push(format!("{found}\n{expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_body_is_strict_exactly_if_its_row_is() {
    for row in functions::functions() {
        if let Body::Scalar(function) = row.body {
            assert_eq!(function.strict, row.is_strict, "{} {}", row.oid, row.name);
            assert_eq!(function.volatile, row.volatility == Volatility::Volatile, "{} {}", row.oid, row.name);
        }
        if let Body::Set(set) = row.body {
            assert_eq!(set.function.strict, row.is_strict, "{} {}", row.oid, row.name);
            assert_eq!(set.function.volatile, row.volatility == Volatility::Volatile, "{} {}", row.oid, row.name);
        }
    }
}

/// Operands of two types may be compared by a call alone, so such a row need not have a comparison.
fn operator_line(row: &PgOperator, real: &str) -> String {
    let strategy = match row.comparison {
        Some(Comparison::Less) => "1",
        Some(Comparison::LessEqual) => "2",
        Some(Comparison::Equal | Comparison::NullSafeEqual) => "3",
        Some(Comparison::GreaterEqual) => "4",
        Some(Comparison::Greater) => "5",
        None if row.left != row.right => real.rsplit('\t').next().unwrap(),
        Some(Comparison::NotEqual) | None => "",
    };
    let PgOperator { oid, name, left, right, result, function, commutator, negator, comparison: _ } = row;
    format!("{oid}\t{name}\t{left}\t{right}\t{result}\t{function}\t{commutator}\t{negator}\t{strategy}")
}

#[test]
fn each_operator_is_the_one_of_its_oid() {
    let real = lines(OPERATOR, 1);
    let mut wrong = Vec::new();
    let mut seen = HashSet::new();
    for row in functions::operators() {
        assert!(seen.insert(row.oid), "two rows of operator {}", row.oid);
        let expected = real.get(&row.oid.to_string()).copied().unwrap_or_default();
        let found = operator_line(row, expected);
        if found != expected {
            wrong.push(format!("{found}\n{expected}"));
        }
        assert!(functions::function(row.function).is_some(), "operator {} has no function {}", row.oid, row.function);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_operator_that_negates_an_equality_is_an_inequality() {
    for row in functions::operators() {
        let negated = functions::operator(row.negator).and_then(|row| row.comparison);
        let is_inequality = row.comparison == Some(Comparison::NotEqual);
        assert_eq!(is_inequality, negated == Some(Comparison::Equal), "{} {}", row.oid, row.name);
    }
}

#[test]
fn each_cast_is_that_of_its_types() {
    let real = lines(CAST, 2);
    let mut wrong = Vec::new();
    let mut seen = HashSet::new();
    for row in functions::casts() {
        assert!(seen.insert((row.source, row.target)), "two casts from {} to {}", row.source, row.target);
        let context = match row.context {
            CastContext::Implicit => "i",
            CastContext::Assignment => "a",
            CastContext::Explicit => "e",
        };
        let method = match row.method {
            CastMethod::Function => "f",
            CastMethod::InOut => "i",
            CastMethod::Binary => "b",
        };
        let found = format!("{}\t{}\t{}\t{context}\t{method}", row.source, row.target, row.function);
        let expected = real.get(&format!("{}\t{}", row.source, row.target)).copied().unwrap_or_default();
        if found != expected {
            wrong.push(format!("{found}\n{expected}"));
        }
        let has_function = row.function == 0 || functions::function(row.function).is_some();
        assert!(has_function, "the cast from {} to {} has no function", row.source, row.target);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_type_is_the_one_of_its_oid() {
    let real = lines(TYPE, 1);
    for row in registry::types() {
        let kind = match row.kind {
            TypeKind::Base => "b",
            TypeKind::Range => "r",
            TypeKind::Multirange => "m",
            _ => "p",
        };
        let found = [
            row.oid.to_string(),
            row.name.to_owned(),
            row.len.to_string(),
            flag(row.by_value).to_owned(),
            kind.to_owned(),
            row.category.to_string(),
            flag(row.is_preferred).to_owned(),
            registry::DELIMITER.to_string(),
            row.array.to_string(),
            row.align.to_string(),
            row.toast.to_string(),
            flag(row.is_collatable).to_owned(),
            registry::format_type(row.oid, None),
            registry::format_type(row.oid, Some(-1)),
            row.element.to_string(),
        ];
        assert_eq!(found.join("\t"), real[&row.oid.to_string()]);
    }
    assert_eq!(registry::types().count(), real.len());
}
