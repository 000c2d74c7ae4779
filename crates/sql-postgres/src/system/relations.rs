//! The relations of `pg_catalog` and `information_schema`: names, object identifiers and columns are those of PostgreSQL 16, from `extract/relations.tsv` (PS-8).
//!
//! A line has the OID, schema, name, kind, whether it is shared by all databases, and the columns: name, type (of a domain its base type), modifier, not null. A relation is here if its rows are served; a column
//! whose type is not served is absent.

use std::collections::HashMap;
use std::sync::LazyLock;

use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::system_table::{Search, SystemRows, SystemTable};
use query::nodes::table_function::Give;

use crate::batch::Row;
use crate::system::extract::Extract;
use crate::system::keyspace;
use crate::system::served::SERVED;
use crate::system::wanted::Wanted;
use crate::types::oid::Oid;
use crate::types::registry;

/// Gives the rows of a relation, with a value for each column of PostgreSQL's.
pub type Rows = fn(&Wanted<'_>, &mut EvalContext, &mut Give<'_>) -> Result<()>;

/// The source of a relation's rows.
#[derive(Clone, Copy)]
pub enum Source {
    Rows(Rows),
    /// Rows that are the same in every database, of objects that are served.
    Extract(&'static Extract),
    /// Rows of an extract, and others after them.
    Both(&'static Extract, Rows),
    /// No object of the kind can be made.
    Empty,
    /// Keys of the Redis door, which a statement reads and changes by itself.
    Keys,
}

/// A relation that is served: schema, name, the columns by which rows are found at less cost, and the rows.
pub struct Served {
    pub schema: &'static str,
    pub name: &'static str,
    pub keys: &'static [&'static str],
    pub source: Source,
}

pub struct SystemRelation {
    pub oid: Oid,
    pub kind: char,
    pub is_shared: bool,
    pub columns: Vec<RelationColumn>,
    /// The served columns, by their places among all.
    pub kept: Vec<usize>,
    pub source: Source,
    pub table: SystemTable,
}

pub struct RelationColumn {
    pub name: &'static str,
    pub type_name: &'static str,
    pub typmod: i32,
    pub is_not_null: bool,
}

impl SystemRelation {
    /// Returns the place of a column among all of PostgreSQL's.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// Returns the columns that are served, with their numbers.
    pub fn served_columns(&self) -> impl Iterator<Item = (i64, &RelationColumn)> {
        self.kept.iter().map(|at| (*at as i64 + 1, &self.columns[*at]))
    }
}

static RELATIONS: LazyLock<Vec<SystemRelation>> = LazyLock::new(read_all);
static BY_NAME: LazyLock<HashMap<(&'static str, &'static str), &'static SystemRelation>> = LazyLock::new(|| {
    RELATIONS.iter().map(|relation| ((relation.table.schema, relation.table.name), relation)).collect()
});
static BY_OID: LazyLock<HashMap<Oid, &'static SystemRelation>> =
    LazyLock::new(|| RELATIONS.iter().map(|relation| (relation.oid, relation)).collect());

pub fn all() -> &'static [SystemRelation] {
    &RELATIONS
}

pub fn by_name(schema: &str, name: &str) -> Option<&'static SystemRelation> {
    BY_NAME.get(&(schema, name)).copied()
}

pub fn by_oid(oid: Oid) -> Option<&'static SystemRelation> {
    BY_OID.get(&oid).copied()
}

fn read_all() -> Vec<SystemRelation> {
    let served: HashMap<(&str, &str), &Served> = SERVED.iter().map(|row| ((row.schema, row.name), row)).collect();
    let lines = include_str!("extract/relations.tsv").lines();
    lines.filter_map(|line| read(line, &served)).chain(keyspace::made()).collect()
}

fn read(line: &'static str, served: &HashMap<(&str, &str), &'static Served>) -> Option<SystemRelation> {
    let mut fields = line.split('\t');
    let (oid, schema, name, kind) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let served = served.get(&(schema, name))?;
    let is_shared = fields.next()? == "t";
    let columns: Vec<RelationColumn> = fields.next()?.split(',').filter_map(column).collect();
    let is_served = |column: &RelationColumn| registry::by_name(column.type_name).is_some();
    let kept: Vec<usize> = (0..columns.len()).filter(|at| is_served(&columns[*at])).collect();
    let typed = kept.iter().filter_map(|at| {
        let column = &columns[*at];
        let oid = registry::by_name(column.type_name)?.oid;
        Some((column.name, registry::column_type(oid, column.typmod, !column.is_not_null)))
    });
    let keys: Vec<usize> =
        kept.iter().enumerate().filter(|(_, at)| served.keys.contains(&columns[**at].name)).map(|(at, _)| at).collect();
    // The relations live as long as the program.
    let table = SystemTable {
        schema: served.schema,
        name: served.name,
        columns: typed.collect::<Vec<_>>().leak(),
        rows: SystemRows::Searched { keys: keys.leak(), rows: give },
    };
    let kind = kind.chars().next()?;
    Some(SystemRelation { oid: oid.parse().ok()?, kind, is_shared, columns, kept, source: served.source, table })
}

/// Returns the type of a column: an address is a text until its own type is served.
fn served_type(name: &'static str) -> &'static str {
    if name == "inet" && registry::by_name(name).is_none() { "text" } else { name }
}

fn column(text: &'static str) -> Option<RelationColumn> {
    let mut fields = text.split(' ');
    Some(RelationColumn {
        name: fields.next()?,
        type_name: served_type(fields.next()?),
        typmod: fields.next()?.parse().ok()?,
        is_not_null: fields.next()? == "t",
    })
}

/// Gives the rows of any of the relations.
fn give(search: &Search, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(relation) = search.table.and_then(|table| by_name(table.schema, table.name)) else { return Ok(()) };
    let wanted = Wanted { relation, search };
    let is_whole = relation.kept.len() == relation.columns.len();
    let mut give_kept = |row: Row, ctx: &mut EvalContext| {
        debug_assert_eq!(row.len(), relation.columns.len(), "{}", relation.table.name);
        match is_whole {
            true => give(row, ctx),
            false => {
                let mut row = row;
                let kept = relation.kept.iter().map(|at| std::mem::take(&mut row[*at])).collect();
                give(kept, ctx)
            }
        }
    };
    match relation.source {
        Source::Rows(rows) => rows(&wanted, ctx, &mut give_kept),
        Source::Extract(extract) => extract.give(&wanted, ctx, &mut give_kept),
        Source::Both(extract, rows) => {
            extract.give(&wanted, ctx, &mut give_kept)?;
            rows(&wanted, ctx, &mut give_kept)
        }
        Source::Empty | Source::Keys => Ok(()),
    }
}
