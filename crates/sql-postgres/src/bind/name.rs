//! Names of columns and tables in expressions.

use query::nodes::expr::Expr;
use syntax::postgres::tree::ColumnRef;

use crate::bind::Binder;
use crate::bind::name_site::NameSiteKind;
use crate::bind::scope::{AGGREGATES, Clause, NameColumn, NameItem};
use crate::bind::typing::{Operand, unsupported};
use crate::define::names::{PG_TEMP, schema_of};
use crate::error::{PgError, Result, state};
use crate::types::foreign::is_foreign;

/// System columns; `tableoid` alone is served.
const SYSTEM: &[&str] = &["ctid", "xmin", "cmin", "xmax", "cmax", "tableoid"];

/// The greatest edit distance of a name that a hint proposes.
const FUZZY_MAX: usize = 3;

impl Binder<'_> {
    /// Binds a name with one to four parts.
    pub fn column(&mut self, name: &ColumnRef, at: u32) -> Result<Operand> {
        let ColumnRef { fields, star } = name;
        if *star {
            let Some((table, schema)) = fields.split_last() else {
                return self.fail(state::SYNTAX_ERROR, "row expansion via \"*\" is not supported here", at);
            };
            return match self.find_item(schema.last().map(String::as_str), table, at)? {
                Some((depth, item)) => self.whole_row(depth, &item, at),
                None => Err(self.missing_table(schema.last().map(String::as_str), table, at)),
            };
        }
        match &fields[..] {
            [column] => self.unqualified(column, at),
            [table, column] => self.qualified(None, table, column, at),
            [schema, table, column] => self.qualified(Some(schema), table, column, at),
            [database, schema, table, column] => {
                self.check_database(database, fields, at)?;
                self.qualified(Some(schema), table, column, at)
            }
            _ => {
                let text = format!("improper qualified name (too many dotted names): {}", fields.join("."));
                Err(self.error(PgError::new(state::SYNTAX_ERROR, text), at))
            }
        }
    }

    pub fn check_database(&self, database: &str, fields: &[String], at: u32) -> Result<()> {
        if database == self.environment.database {
            return Ok(());
        }
        let text = format!("cross-database references are not implemented: {}", fields.join("."));
        Err(self.error(PgError::new(state::FEATURE_NOT_SUPPORTED, text), at))
    }

    fn unqualified(&mut self, name: &str, at: u32) -> Result<Operand> {
        for depth in (0..self.scopes.len()).rev() {
            if let Some(column) = self.find_column(depth, name, at)? {
                return self.read(depth, &column, at);
            }
            if SYSTEM.contains(&name)
                && let Some(operand) = self.system_column(depth, None, name, at)?
            {
                return Ok(operand);
            }
        }
        if let Some((depth, item)) = self.find_item(None, name, at)? {
            return self.whole_row(depth, &item, at);
        }
        Err(self.undefined_column(None, name, at))
    }

    /// Returns the block's column of that name.
    fn find_column(&self, depth: usize, name: &str, at: u32) -> Result<Option<NameColumn>> {
        let items = self.scopes[depth].names.iter().filter(|item| item.are_columns_visible);
        let mut found =
            items.flat_map(|item| item.columns.iter()).filter(|column| !column.is_hidden && column.name == name);
        let Some(column) = found.next() else { return Ok(None) };
        if found.next().is_some() {
            let text = format!("column reference \"{name}\" is ambiguous");
            return Err(self.error(PgError::new(state::AMBIGUOUS_COLUMN, text), at));
        }
        Ok(Some(column.clone()))
    }

    /// Returns the table that a qualified name means, and its block.
    pub fn find_item(&self, named: Option<&str>, table: &str, at: u32) -> Result<Option<(usize, NameItem)>> {
        let schema = match named {
            Some(PG_TEMP) => self.environment.snapshot.temporary_schema.as_deref().map(schema_of),
            schema => schema,
        };
        for depth in (0..self.scopes.len()).rev() {
            let is_meant = |item: &&NameItem| {
                item.is_relation_visible
                    && item.alias == table
                    && schema.is_none_or(|schema| item.schema.as_deref() == Some(schema))
            };
            let mut found = self.scopes[depth].names.iter().filter(is_meant);
            let Some(item) = found.next() else { continue };
            if found.next().is_some() {
                let text = format!("table reference \"{table}\" is ambiguous");
                return Err(self.error(PgError::new(state::AMBIGUOUS_ALIAS, text), at));
            }
            if let Some(schema) = named {
                let (schema, table) = (schema.to_owned(), table.to_owned());
                self.note_name(at, NameSiteKind::Qualifier { schema, table });
            }
            return Ok(Some((depth, item.clone())));
        }
        Ok(None)
    }

    fn qualified(&mut self, schema: Option<&str>, table: &str, name: &str, at: u32) -> Result<Operand> {
        let Some((depth, item)) = self.find_item(schema, table, at)? else {
            return Err(self.missing_table(schema, table, at));
        };
        let mut found = item.columns.iter().filter(|column| !column.is_hidden && column.name == name);
        if let Some(column) = found.next() {
            if found.next().is_some() {
                let text = format!("column reference \"{name}\" is ambiguous");
                return Err(self.error(PgError::new(state::AMBIGUOUS_COLUMN, text), at));
            }
            return self.read(depth, column, at);
        }
        if SYSTEM.contains(&name)
            && let Some(operand) = self.system_column(depth, Some(table), name, at)?
        {
            return Ok(operand);
        }
        Err(self.undefined_column(Some(table), name, at))
    }

    /// Returns `tableoid` of a stored table. The other system columns are refused by name.
    fn system_column(&mut self, depth: usize, table: Option<&str>, name: &str, at: u32) -> Result<Option<Operand>> {
        let items = &self.scopes[depth].names;
        let is_meant = |item: &&NameItem| table.is_none_or(|table| item.alias == table && item.is_relation_visible);
        let found = items.iter().filter(is_meant).find_map(|item| {
            let first = item.columns.first()?;
            match first.origin {
                Some((id, _)) => self.tables.iter().any(|table| table.id == id).then(|| crate::bind::relation_oid(id)),
                None => crate::system::catalog_oid(item.schema.as_deref()?, item.table_name.as_deref()?),
            }
        });
        let Some(oid) = found else { return Ok(None) };
        if name != "tableoid" {
            return Err(self.error(unsupported(format!("the system column \"{name}\"")), at));
        }
        let oid = super::typing::literal(query::value::Value::UInt(oid.into()), crate::types::oid::OID);
        Ok(Some(Operand { expr: oid, at }))
    }

    /// Returns a column as the current block reads it.
    pub fn read(&mut self, depth: usize, column: &NameColumn, at: u32) -> Result<Operand> {
        let expr = column.expr.clone();
        if expr.carried().is_some_and(is_foreign) {
            let text = format!("the type of column \"{}\"", column.name);
            return Err(self.error(unsupported(text), at));
        }
        let is_own = depth + 1 == self.scopes.len();
        self.note_selected(column.origin);
        let scope = &mut self.scopes[depth];
        scope.note_use(&expr);
        if is_own {
            if !scope.in_aggregate {
                let places = expr.columns();
                scope.references.extend(places.into_iter().map(|place| (place, at)));
            }
            return Ok(Operand { expr, at });
        }
        let scope = &self.scopes[depth];
        let is_of_group = scope.grouped.is_some() && !scope.in_aggregate;
        let expr = if is_of_group { self.grouped_outer(depth, expr, at)? } else { expr };
        Ok(Operand { expr: self.read_inside(depth, expr), at })
    }

    /// Rewrites an expression of that block's rows for the current block, as outer references.
    pub fn read_inside(&mut self, depth: usize, mut expr: Expr) -> Expr {
        let inner = &mut self.correlations[depth + 1..];
        expr.rewrite(&mut |expr| {
            let Expr::Column(at, ty) = expr else { return };
            for reads in inner.iter_mut().filter(|reads| !reads.contains(&(depth, *at))) {
                reads.push((depth, *at));
            }
            *expr = Expr::Outer { depth, at: *at, ty: ty.clone() };
        });
        expr
    }

    pub fn undefined_column(&self, table: Option<&str>, name: &str, at: u32) -> PgError {
        let shown = table.map_or_else(|| format!("\"{name}\""), |table| format!("{table}.{name}"));
        let error = PgError::new(state::UNDEFINED_COLUMN, format!("column {shown} does not exist"));
        let is_it = |column: &NameColumn| column.name == name && !column.is_hidden;
        let is_meant = |item: &&NameItem| table.is_none_or(|table| item.alias == table);
        let mut hidden = self.unreachable.iter().filter(is_meant).filter(|item| item.columns.iter().any(is_it));
        let error = match (hidden.next(), self.similar_column(table, name)) {
            (Some(item), _) => {
                let detail = format!(
                    "There is a column named \"{name}\" in table \"{}\", but it cannot be referenced from this part of the query.",
                    item.alias
                );
                let error = error.detail(detail);
                let hint = "To reference that column, you must mark this subquery with LATERAL.";
                if item.is_relation_visible { error.hint(hint) } else { error }
            }
            (None, Some(hint)) => hint(error),
            (None, None) => error,
        };
        self.error(error, at)
    }

    fn missing_table(&self, schema: Option<&str>, table: &str, at: u32) -> PgError {
        let shown = schema.map_or_else(|| table.to_owned(), |schema| format!("{schema}.{table}"));
        let is_hidden = |item: &NameItem| item.alias == table;
        let scopes = &self.scopes;
        let error = if self.unreachable.iter().any(is_hidden) {
            let text = format!("invalid reference to FROM-clause entry for table \"{shown}\"");
            let detail = format!(
                "There is an entry for table \"{shown}\", but it cannot be referenced from this part of the query."
            );
            let hint = "To reference that table, you must mark this subquery with LATERAL.";
            let error = PgError::new(state::UNDEFINED_TABLE, text).detail(detail);
            let is_lateral = self.unreachable.iter().any(|item| item.alias == table && item.is_relation_visible);
            if is_lateral { error.hint(hint) } else { error }
        } else if let Some(item) = scopes.iter().flat_map(|scope| &scope.names).find(|item| item.is_of_table(table)) {
            let text = format!("invalid reference to FROM-clause entry for table \"{shown}\"");
            let hint = format!("Perhaps you meant to reference the table alias \"{}\".", item.alias);
            PgError::new(state::UNDEFINED_TABLE, text).hint(hint)
        } else if schema.is_some() && scopes.iter().flat_map(|scope| &scope.names).any(|item| item.alias == table) {
            let text = format!("invalid reference to FROM-clause entry for table \"{table}\"");
            let detail = format!(
                "There is an entry for table \"{table}\", but it cannot be referenced from this part of the query."
            );
            PgError::new(state::UNDEFINED_TABLE, text).detail(detail)
        } else {
            PgError::new(state::UNDEFINED_TABLE, format!("missing FROM-clause entry for table \"{shown}\""))
        };
        self.error(error, at)
    }

    /// Returns what adds a hint to the error of a column that does not exist.
    #[allow(clippy::type_complexity)]
    fn similar_column(&self, table: Option<&str>, name: &str) -> Option<Box<dyn Fn(PgError) -> PgError>> {
        let mut best: Vec<(usize, String)> = Vec::new();
        for item in self.scopes.iter().flat_map(|scope| scope.names.iter()).filter(|item| !item.alias.is_empty()) {
            // A name of another table costs more.
            let penalty = table.map_or(Some(0), |table| distance(table, &item.alias, FUZZY_MAX));
            let Some(penalty) = penalty else { continue };
            for column in item.columns.iter().filter(|column| !column.is_hidden) {
                if let Some(far) = distance(name, &column.name, FUZZY_MAX) {
                    let far = far + penalty;
                    if far <= FUZZY_MAX && far * 2 <= name.chars().count() {
                        best.push((far, format!("{}.{}", item.alias, column.name)));
                    }
                }
            }
        }
        let least = best.iter().map(|(far, _)| *far).min()?;
        let names: Vec<String> = best.into_iter().filter(|(far, _)| *far == least).map(|(_, name)| name).collect();
        match &names[..] {
            [one] => {
                let hint = format!("Perhaps you meant to reference the column \"{one}\".");
                Some(Box::new(move |error: PgError| error.hint(hint.clone())))
            }
            [one, other] => {
                let hint = format!("Perhaps you meant to reference the column \"{one}\" or the column \"{other}\".");
                Some(Box::new(move |error: PgError| error.hint(hint.clone())))
            }
            _ => None,
        }
    }

    /// Returns the error of an ungrouped column.
    pub fn ungrouped(&self, depth: usize, place: usize, at: u32, is_outer: bool) -> PgError {
        let scope = &self.scopes[depth];
        let name = scope.names.iter().filter(|item| !item.alias.is_empty()).find_map(|item| {
            let is_it = |column: &&NameColumn| matches!(column.expr, Expr::Column(known, _) if known == place);
            item.columns.iter().find(is_it).map(|column| format!("{}.{}", item.alias, column.name))
        });
        let name = name.unwrap_or_else(|| {
            let column =
                scope.table_of(place).map(|at| &scope.tables[at]).map(|table| &table.columns[place - table.offset]);
            column.map(|column| format!("{}.{}", column.table, column.name)).unwrap_or_default()
        });
        let text = match is_outer {
            true => format!("subquery uses ungrouped column \"{name}\" from outer query"),
            false => {
                format!("column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function")
            }
        };
        self.error(PgError::new(state::GROUPING_ERROR, text), at)
    }

    /// Returns whether the expression has an aggregate's result within.
    pub fn has_aggregate_place(expr: &Expr) -> bool {
        let mut has = false;
        expr.walk(&mut |expr| has |= matches!(expr, Expr::Column(place, _) if *place >= AGGREGATES));
        has
    }

    pub fn set_clause(&mut self, clause: Clause) -> Clause {
        std::mem::replace(&mut self.scope().clause, clause)
    }
}

impl NameItem {
    /// Returns whether the item is a stored table.
    pub fn is_stored(&self) -> bool {
        self.table_name.is_some() && self.columns.iter().all(|column| column.origin.is_some())
    }

    /// Returns whether the item has another alias than the name of its table.
    fn is_of_table(&self, table: &str) -> bool {
        let of = |column: &NameColumn| column.origin.is_some();
        self.alias != table && self.table_name.as_deref() == Some(table) && self.columns.iter().any(of)
    }
}

/// Returns the edit distance of two names, up to a bound.
fn distance(a: &str, b: &str, most: usize) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > most {
        return None;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut before = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let cost = before + usize::from(x != y);
            before = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(before + 1);
        }
    }
    Some(row[b.len()]).filter(|far| *far <= most)
}
