//! Rows of catalogs that are the same in every database: PostgreSQL 16's own, as COPY writes them, without rights. regproc is written as OID.
//!
//! A row is given only if what it describes is served.

use std::sync::OnceLock;

use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::table_function::Give;

use crate::batch::Row;
use crate::functions;
use crate::system::relations::SystemRelation;
use crate::system::wanted::Wanted;
use crate::types::io::{self, IoContext};
use crate::types::oid::Oid;
use crate::types::{oid, registry};
use crate::value::Value;

pub struct Extract {
    text: &'static str,
    /// Returns whether the object of a line, by its fields, is served.
    is_served: fn(&[&str]) -> bool,
    rows: OnceLock<Vec<Row>>,
}

impl Extract {
    const fn new(text: &'static str, is_served: fn(&[&str]) -> bool) -> Extract {
        Extract { text, is_served, rows: OnceLock::new() }
    }

    pub fn rows(&'static self, relation: &'static SystemRelation) -> &'static [Row] {
        self.rows.get_or_init(|| {
            let lines = self.text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
            lines.filter(|fields| (self.is_served)(fields)).map(|fields| row(relation, &fields)).collect()
        })
    }

    /// Returns the line of a served object, by its OID.
    pub fn line(&'static self, oid: Oid) -> Option<&'static str> {
        static LINES: OnceLock<std::collections::HashMap<Oid, &'static str>> = OnceLock::new();
        let of = |line: &'static str| line.split_once('\t').map(|(oid, _)| (number(oid), line));
        match std::ptr::eq(self, &raw const PG_PROC) {
            true => LINES.get_or_init(|| self.text.lines().filter_map(of).collect()).get(&oid).copied(),
            false => self.text.lines().filter_map(of).find(|(known, _)| *known == oid).map(|(_, line)| line),
        }
    }

    /// Returns whether an object of that OID is served.
    pub fn has(&'static self, oid: Oid) -> bool {
        self.line(oid).is_some_and(|line| (self.is_served)(&line.split('\t').collect::<Vec<_>>()))
    }

    pub fn give(&'static self, wanted: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
        self.rows(wanted.relation).iter().filter(|row| wanted.fits(row)).try_for_each(|row| give(row.clone(), ctx))
    }
}

/// Returns the row of a line. The text of a column whose type is not served is not read.
fn row(relation: &SystemRelation, fields: &[&str]) -> Row {
    let io = IoContext::default();
    let columns = relation.columns.iter().zip(fields);
    let value = |(column, field): (&crate::system::relations::RelationColumn, &&str)| {
        let ty = registry::by_name(column.type_name)?;
        let text = unescaped(field)?;
        io::input(&registry::column_type(ty.oid, column.typmod, true), &text, &io).ok()
    };
    columns.map(|column| value(column).unwrap_or(Value::Null)).collect()
}

/// Reads a field of COPY's text form; `None` is NULL.
pub fn unescaped(field: &str) -> Option<String> {
    if field == "\\N" {
        return None;
    }
    let (mut out, mut letters) = (String::new(), field.chars());
    while let Some(letter) = letters.next() {
        match (letter, letter == '\\') {
            (_, true) => match letters.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some(other) => out.push(other),
                None => break,
            },
            (letter, false) => out.push(letter),
        }
    }
    Some(out)
}

fn number(field: &str) -> Oid {
    field.parse().unwrap_or(0)
}

fn is_type(oid: Oid) -> bool {
    oid == 0 || registry::by_oid(oid).is_some() || registry::element_of(oid).is_some()
}

fn is_function(fields: &[&str]) -> bool {
    functions::function(number(fields[0])).is_some()
}

fn is_operator(fields: &[&str]) -> bool {
    functions::operator(number(fields[0])).is_some()
}

fn is_access_method(oid: Oid) -> bool {
    matches!(oid, crate::system::oids::HEAP | crate::system::oids::BTREE | crate::system::oids::GIN)
}

/// Returns whether a type, as operator classes name it, can be the key of an index.
fn is_key_type(oid: Oid) -> bool {
    let is_base = |row: &registry::PgType| row.kind == registry::TypeKind::Base && row.oid != oid::JSON;
    matches!(oid, oid::ANYARRAY | oid::ANYENUM | oid::ANYRANGE | oid::ANYMULTIRANGE)
        || registry::by_oid(oid).is_some_and(|row| is_base(&row) && !registry::is_array(oid))
}

fn is_class(fields: &[&str]) -> bool {
    is_access_method(number(fields[1])) && is_key_type(number(fields[6]))
}

/// Returns whether an operator family has a class that is served.
fn is_family(oid: Oid) -> bool {
    static FAMILIES: OnceLock<Vec<Oid>> = OnceLock::new();
    let families = FAMILIES.get_or_init(|| {
        let lines = include_str!("extract/pg_opclass.tsv").lines().map(|line| line.split('\t').collect::<Vec<_>>());
        lines.filter(|fields| is_class(fields)).map(|fields| number(fields[5])).collect()
    });
    families.contains(&oid)
}

fn is_described(fields: &[&str]) -> bool {
    let object = number(fields[0]);
    match number(fields[1]) {
        1255 => functions::function(object).is_some(),
        2617 => functions::operator(object).is_some(),
        1247 => registry::by_oid(object).is_some(),
        2601 => is_access_method(object),
        // The comment on `public` can be changed.
        2615 => object == crate::system::oids::PG_CATALOG,
        3456 => is_collation(object),
        2612 => is_language(object),
        _ => false,
    }
}

/// `default`, `C`, `POSIX` and `ucs_basic`.
fn is_collation(oid: Oid) -> bool {
    matches!(oid, 100 | 950 | 951 | 962)
}

/// `internal` and `sql`, in which functions of PostgreSQL's own are.
fn is_language(oid: Oid) -> bool {
    matches!(oid, 12 | 14)
}

macro_rules! extract {
    ($name:ident, $file:literal, $is_served:expr) => {
        pub static $name: Extract = Extract::new(include_str!(concat!("extract/", $file, ".tsv")), $is_served);
    };
}

extract!(PG_PROC, "pg_proc", is_function);
extract!(PG_OPERATOR, "pg_operator", is_operator);
extract!(PG_TYPE, "pg_type", |fields| is_type(number(fields[0])));
extract!(PG_RANGE, "pg_range", |fields| is_type(number(fields[0])));
extract!(PG_CAST, "pg_cast", |fields| functions::cast_between(number(fields[1]), number(fields[2])).is_some());
extract!(PG_AM, "pg_am", |fields| is_access_method(number(fields[0])));
extract!(PG_OPCLASS, "pg_opclass", is_class);
extract!(PG_OPFAMILY, "pg_opfamily", |fields| is_family(number(fields[0])));
extract!(PG_AMOP, "pg_amop", |fields| is_family(number(fields[1]))
    && is_type(number(fields[2]))
    && is_type(number(fields[3])));
extract!(PG_AMPROC, "pg_amproc", |fields| is_family(number(fields[1]))
    && is_type(number(fields[2]))
    && is_type(number(fields[3])));
extract!(PG_COLLATION, "pg_collation", |fields| is_collation(number(fields[0])));
extract!(PG_LANGUAGE, "pg_language", |fields| is_language(number(fields[0])));
extract!(PG_AGGREGATE, "pg_aggregate", is_function);
extract!(PG_TABLESPACE, "pg_tablespace", |_| true);
extract!(PG_DESCRIPTION, "pg_description", is_described);

/// Returns the name of a function of PostgreSQL's, served or not, and whether another has it too.
pub fn function_name(oid: Oid) -> Option<(&'static str, bool)> {
    static NAMES: OnceLock<std::collections::HashMap<Oid, (&'static str, bool)>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let fields =
            |line: &'static str| line.split_once('\t').map(|(oid, rest)| (number(oid), rest.split('\t').next()));
        let all: Vec<(Oid, &str)> = PG_PROC
            .text
            .lines()
            .filter_map(|line| {
                let (oid, name) = fields(line)?;
                Some((oid, name?))
            })
            .collect();
        let mut times: std::collections::HashMap<&str, usize> = std::collections::HashMap::new();
        all.iter().for_each(|(_, name)| *times.entry(name).or_default() += 1);
        all.into_iter().map(|(oid, name)| (oid, (name, times[name] > 1))).collect()
    });
    names.get(&oid).copied()
}

/// Returns the name of a type of PostgreSQL's, served or not.
pub fn type_name(oid: Oid) -> Option<&'static str> {
    PG_TYPE.line(oid)?.split('\t').nth(1)
}

/// Returns the description of an object of PostgreSQL's own, of a catalog or of any.
pub fn description(object: Oid, class: Option<Oid>) -> Option<String> {
    static ALL: OnceLock<std::collections::HashMap<Oid, Vec<(Oid, &'static str)>>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let mut all: std::collections::HashMap<Oid, Vec<(Oid, &str)>> = std::collections::HashMap::new();
        for line in PG_DESCRIPTION.text.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            if is_described(&fields) {
                all.entry(number(fields[0])).or_default().push((number(fields[1]), fields[3]));
            }
        }
        all
    });
    let found = all.get(&object)?.iter().find(|(known, _)| class.is_none_or(|class| class == *known))?;
    unescaped(found.1)
}
