//! Which names an expression can mean: the tables of its query block, and of the blocks around it.

use std::sync::Arc;

use crate::bind::window::Windowed;
use crate::error::{self, Result};
use crate::rights::Rights;
use crate::scalar::aggregate::Kind;
use crate::scalar::bind::constant::padded;
use query::nodes::expr::Expr;
use query::nodes::node::{AggregateCall, Node};
use query::nodes::relation::{Origin, ScopeTable};
use query::nodes::subquery::Plain;
use query::types::{Column, Type};

/// What rows look like above the joins.
#[derive(Debug, Default)]
pub struct Grouped {
    pub keys: Vec<Expr>,
    pub calls: Vec<AggregateCall>,
    /// Columns of the block that the keys decide, or that may be any of the group's: 1055 for others.
    pub lenient: bool,
    pub primary_covered: Vec<usize>,
    /// WITH ROLLUP
    pub rollup: bool,
    /// Items of the select list that keys named, by number or alias, and their keys: in rows of ROLLUP they are NULL with them.
    pub items: Vec<(usize, usize)>,
    /// The call in whose place stands how many keys count.
    pub level: Option<usize>,
}

impl Grouped {
    /// The key that stands for an item of the select list under ROLLUP.
    pub fn rolled_item(&self, item: usize) -> Option<Expr> {
        let (_, key) = self.items.iter().find(|(named, _)| *named == item)?;
        Some(Expr::Column(*key, self.keys[*key].ty().with_nullable(true)))
    }

    /// Does an aggregate's result, not a key or a column that the keys decide, stand at that place of a group's row?
    pub fn is_aggregate(&self, at: usize) -> bool {
        let call = at.checked_sub(self.keys.len()).and_then(|at| self.calls.get(at));
        call.is_some_and(|call| Kind::of(&call.aggregate) != Kind::AnyValue)
    }

    /// What is read of the rows below.
    pub fn expressions(&mut self) -> Vec<&mut Expr> {
        self.keys.iter_mut().chain(self.calls.iter_mut().flat_map(|call| &mut call.arguments)).collect()
    }
}

#[derive(Debug, Default)]
pub struct Scope {
    pub tables: Vec<ScopeTable>,
    pub width: usize,
    /// Which places anybody reads.
    pub used: Vec<bool>,
    /// Places of columns that USING and NATURAL have coalesced with one that stands for both: only a qualified name reaches them.
    pub coalesced: Vec<usize>,
    /// What an unqualified `*` selects, in its order; None: every table's columns, one table after the other.
    pub star: Option<Vec<usize>>,
    /// Set once the block groups: expressions are then of its groups.
    pub grouped: Option<Grouped>,
    /// Arguments of an aggregate are being bound: they are of the rows below the grouping.
    pub gathers: bool,
    /// Select list, HAVING or ORDER BY are being bound: aggregates of this block may stand there, in subqueries too.
    pub above: bool,
    /// One has been met, and the block does not group yet: it is to be bound again.
    pub summoned: bool,
    /// Set where the block has window functions, from the select list on.
    pub windowed: Option<Windowed>,
    /// Names of the select list, for HAVING and ORDER BY, and for subqueries behind them in the list.
    pub aliases: Vec<(String, Expr)>,
    /// Names of the select list that are yet to be bound.
    pub coming: Vec<String>,
    /// SELECT DISTINCT: ORDER BY may look at nothing but the select list.
    pub distinct: bool,
    /// Columns of CHAR are read with the blanks that fill them: PAD_CHAR_TO_FULL_LENGTH.
    pub pads: bool,
    pub clause: &'static str,
}

impl Scope {
    pub fn add(&mut self, mut table: ScopeTable) -> usize {
        table.offset = self.width;
        self.width += table.columns.len() + usize::from(table.key_at.is_some());
        if table.key_at.is_some() {
            table.key_at = Some(self.width - 1);
        }
        self.used.resize(self.width, false);
        self.tables.push(table);
        self.tables.len() - 1
    }

    /// The place of a column by its name. None: this block has no such column.
    pub fn find(&self, schema: Option<&str>, table: Option<&str>, name: &str) -> Result<Option<usize>> {
        let mut found: Option<usize> = None;
        for candidate in self.tables.iter().filter(|table| table.within.is_none()) {
            if table.is_some_and(|table| table != candidate.alias)
                || schema.is_some_and(|schema| schema != candidate.schema)
            {
                continue;
            }
            let Some(at) = candidate.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name)) else {
                continue;
            };
            let place = candidate.offset + at;
            if table.is_none() && self.coalesced.contains(&place) {
                continue;
            }
            match found {
                None => found = Some(place),
                Some(_) => {
                    let shown = table.map_or(name.to_owned(), |table| format!("{table}.{name}"));
                    return Err(error::NON_UNIQ.with(&[&shown, &self.clause]));
                }
            }
        }
        Ok(found)
    }

    pub fn table_at(&self, place: usize) -> Option<&ScopeTable> {
        self.tables.iter().find(|table| (table.offset..table.offset + table.columns.len()).contains(&place))
    }

    pub fn column_at(&self, place: usize) -> Option<&Column> {
        self.table_at(place).map(|table| &table.columns[place - table.offset])
    }

    pub fn is_named(&self, place: usize, name: &str) -> bool {
        self.column_at(place).is_some_and(|column| column.name.eq_ignore_ascii_case(name))
    }

    /// What the place stands for: itself, or a view's expression.
    pub fn expr_at(&self, place: usize) -> Expr {
        let table = self.table_at(place);
        if let Some(ScopeTable { origin: Origin::View(merged), offset, .. }) = table {
            let expr = merged.exprs[place - offset].clone();
            return match expr {
                Expr::Column(below, _) => self.expr_at(below),
                expr => expr,
            };
        }
        let column = Expr::Column(place, self.type_at(place));
        let is_base = table.is_some_and(|table| matches!(table.origin, Origin::Base(_)));
        if self.pads && is_base { padded(column) } else { column }
    }

    /// May that column be read? Error 1143 if not.
    pub fn check_readable(&self, rights: &Rights, place: usize) -> Result<()> {
        let Some(table) = self.table_at(place) else { return Ok(()) };
        let at = place - table.offset;
        if table.readable.has(at) {
            return Ok(());
        }
        let column = &table.columns[at];
        Err(rights.no_column("SELECT", &column.org_name, &column.org_table))
    }

    /// Its type; columns of the inner side of an outer join can be NULL.
    pub fn type_at(&self, place: usize) -> Type {
        match self.table_at(place) {
            Some(table) => {
                let ty = table.columns[place - table.offset].ty.clone();
                if table.nullable { ty.with_nullable(true) } else { ty }
            }
            None => Type::bytes(512),
        }
    }
}

/// A common table expression that can be named.
#[derive(Clone, Debug)]
pub struct Common {
    pub name: String,
    pub columns: Vec<Column>,
    pub node: Arc<Node>,
    /// How many nodes stand above each other in it, and how many it has in all (`Bind::rise`).
    pub size: (usize, usize),
}

/// A query block, bound.
#[derive(Debug)]
pub struct Bound {
    pub node: Arc<Node>,
    pub columns: Vec<Column>,
    /// The block itself, if it is one that can become part of the block around.
    pub plain: Option<Arc<Plain>>,
}
