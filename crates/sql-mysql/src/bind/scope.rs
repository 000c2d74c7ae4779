//! Scopes: the names visible to an expression, of its query block and of outer blocks.

use std::sync::Arc;

use crate::bind::window::Windowed;
use crate::error::{self, Result};
use crate::other_tables::check_read;
use crate::other_values::read;
use crate::rights::Rights;
use crate::scalar::aggregate::AggregateKind;
use crate::scalar::bind::constant::padded;
use crate::types::{Column, MysqlType as _, Type};
use query::block::semi_join::BlockTables;
use query::block::shape::Grouping;
use query::nodes::expr::Expr;
use query::nodes::node::{AggregateCall, Node};
use query::nodes::relation::{Origin, ScopeTable};
use query::nodes::subquery::Plain;

/// The layout of rows after grouping.
#[derive(Debug, Default)]
pub struct Grouped {
    pub keys: Vec<Expr>,
    pub calls: Vec<AggregateCall>,
    /// Columns that are not functionally dependent on the keys are allowed; otherwise they are error 1055.
    pub lenient: bool,
    pub primary_covered: Vec<usize>,
    /// WITH ROLLUP
    pub rollup: bool,
    /// Select-list items that are keys, by number or alias: (item, key). ROLLUP makes them NULL with the key.
    pub items: Vec<(usize, usize)>,
    /// The call whose result is the grouping level.
    pub level: Option<usize>,
}

impl Grouped {
    /// Returns the key that replaces a select-list item under ROLLUP.
    pub fn rolled_item(&self, item: usize) -> Option<Expr> {
        let (_, key) = self.items.iter().find(|(named, _)| *named == item)?;
        Some(Expr::Column(*key, self.keys[*key].ty().with_nullable(true)))
    }

    pub fn grouping(&self) -> Grouping<'_> {
        Grouping { keys: &self.keys, calls: &self.calls, rollup: self.rollup, sets: &[], level: self.level }
    }

    /// Returns whether the place holds an aggregate's result, not a key or a dependent column.
    pub fn is_aggregate(&self, at: usize) -> bool {
        let call = at.checked_sub(self.keys.len()).and_then(|at| self.calls.get(at));
        call.is_some_and(|call| AggregateKind::of(&call.aggregate) != AggregateKind::AnyValue)
    }

    /// Returns the expressions over the input rows.
    pub fn expressions(&mut self) -> Vec<&mut Expr> {
        self.keys.iter_mut().chain(self.calls.iter_mut().flat_map(|call| &mut call.arguments)).collect()
    }
}

#[derive(Debug, Default)]
pub struct Scope {
    pub tables: Vec<ScopeTable>,
    pub width: usize,
    /// Places that are read.
    pub used: Vec<bool>,
    /// Columns merged by USING and NATURAL: only a qualified name refers to them.
    pub coalesced: Vec<usize>,
    /// The columns of an unqualified `*` in order; None: those of all tables.
    pub star: Option<Vec<usize>>,
    /// Set once the block is grouped: expressions then refer to its groups.
    pub grouped: Option<Grouped>,
    /// Aggregate arguments are being bound, over the grouping's input rows.
    pub gathers: bool,
    /// The select list, HAVING or ORDER BY is being bound, so aggregates of this block are allowed, in subqueries too.
    pub above: bool,
    /// An aggregate was met in a block bound as ungrouped: the block must be bound again.
    pub summoned: bool,
    /// Set if the block has window functions, from the select list on.
    pub windowed: Option<Windowed>,
    /// Aliases of the select list, for HAVING, ORDER BY and later subqueries in the list.
    pub aliases: Vec<(String, Expr)>,
    /// Aliases of the select list that are not bound yet.
    pub coming: Vec<String>,
    /// SELECT DISTINCT: ORDER BY may read only the select list.
    pub distinct: bool,
    /// CHAR columns are padded with blanks: PAD_CHAR_TO_FULL_LENGTH.
    pub pads: bool,
    pub clause: &'static str,
}

impl Scope {
    /// Lets the tables of subqueries join those of the block.
    pub fn block_tables(&mut self) -> BlockTables<'_> {
        BlockTables { tables: &mut self.tables, width: &mut self.width, used: &mut self.used }
    }

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

    /// Returns a column's place by its name. None: this block has no such column.
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

    /// Returns the expression for a place: the column itself, or a merged view's expression.
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
        let column = match self.column_at(place) {
            Some(definition) if is_base => read(column, &definition.name),
            _ => column,
        };
        if self.pads && is_base { padded(column) } else { column }
    }

    /// Checks that the column may be read, by its rights (error 1143) and by its type.
    pub fn check_readable(&self, rights: &Rights, place: usize) -> Result<()> {
        let Some(table) = self.table_at(place) else { return Ok(()) };
        let at = place - table.offset;
        if !table.readable.has(at) {
            let column = &table.columns[at];
            return Err(rights.no_column("SELECT", &column.org_name, &column.org_table));
        }
        match &table.origin {
            Origin::Base(base) => check_read(base, at),
            _ => Ok(()),
        }
    }

    /// Returns the place's type. Columns of an outer join's inner side are nullable.
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

/// A common table expression in scope.
#[derive(Clone, Debug)]
pub struct Common {
    pub name: String,
    pub columns: Vec<Column>,
    pub node: Arc<Node>,
    /// The height of its plan and its number of nodes (`Bind::rise`).
    pub size: (usize, usize),
}

/// A bound query block.
#[derive(Debug)]
pub struct Bound {
    pub node: Arc<Node>,
    pub columns: Vec<Column>,
    /// The block itself, if it can be merged into the enclosing block.
    pub plain: Option<Arc<Plain>>,
}
