//! Views: bound as derived tables or merged.
//!
//! A view that only selects rows and columns is merged: its tables join those of the statement, hidden from name
//! resolution, and each of its columns is an expression over theirs. So conditions on the view are conditions on its
//! tables. Other views are derived tables.
//!
//! MY-17: a view's body sees its own tables only: no other name of the statement, no common table expression, no outer
//! block. MY-18: the body is bound with the definer's privileges (or the invoker's, SQL SECURITY INVOKER), the view itself
//! with the invoker's. MY-19: a merged view's column has a place in the wide row that is never filled; binding it yields
//! the expression instead.

use std::ops::Range;
use std::sync::Arc;

use syntax::tree::{self, ColumnName, Query, QueryBody, Select, SelectExpr, SelectItem, Span};

use crate::bind::Bind;
use crate::bind::aggregate::{has_aggregate, has_subquery, has_window};
use crate::bind::query_expression::TABLE;
use crate::bind::scope::{Common, Scope};
use crate::bind::select::Item;
use crate::error::{self, Result, SqlError};
use crate::parse::lexical::quoted_name;
use crate::parse::statement::Name;
use crate::rights::{Privileges, Rights};
use crate::scalar::modes::SqlMode;
use crate::types::Column;
use query::catalog::table::Table;
use query::catalog::view::{Algorithm, CheckOption, View};
use query::nodes::expr::Expr;
use query::nodes::keyspace_table;
use query::nodes::relation::Columns;
use query::nodes::relation::{Merged, Origin, ScopeTable, Source};

/// A range of the text that can be rewritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub range: Range<usize>,
    pub what: Noted,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Noted {
    /// A table without its schema: the qualified name.
    Bare(String),
    /// A `*`: the columns that it stands for.
    Star(String),
    /// The schema before a table, with its dot, if it is the current database.
    SchemaOfTable,
    /// The schema before a column that resolves the same without it.
    SchemaOfColumn,
    /// The schema before a column that resolves differently without it.
    SchemaNeeded,
}

/// The base table and checks of a change through a view.
pub struct Through {
    pub table: Arc<Table>,
    /// The base table's position in the scope.
    pub at: usize,
    /// For each column of the view, the column of the table.
    pub columns: Vec<Option<usize>>,
    /// CHECK OPTION: the view's name, and a condition over the table's row.
    pub options: Vec<(String, Expr)>,
}

/// The binder state saved while a view's body is bound.
struct Outside {
    scopes: Vec<Scope>,
    commons: Vec<Common>,
    rights: Arc<Rights>,
    recorder: Option<Vec<Note>>,
}

/// Replaces errors that would reveal the view's tables to a user without privileges on them.
fn veiled(error: SqlError, view: &View) -> SqlError {
    match error.code {
        1044 | 1046 | 1049 | 1054 | 1142 | 1143 | 1146 | 1356 | 1449 => {
            error::VIEW_INVALID.with(&[&view.schema, &view.name])
        }
        _ => error,
    }
}

/// Returns the SELECT if the body only selects rows and columns. Changes of rows may ignore an ORDER BY.
fn is_simple(query: &Query, ignore_order: bool) -> Option<&Select> {
    let Query { with, body, order_by, limit, locks, into: _, span: _ } = query;
    let QueryBody::Select(select) = body else { return None };
    let Select {
        hints: _,
        distinct,
        straight_join: _,
        calc_found_rows: _,
        items,
        from,
        selection: _,
        group_by,
        rollup: _,
        having,
        windows,
    } = &**select;
    let is_plain = |item: &SelectItem| match item {
        SelectItem::Expr(SelectExpr { expr, alias: _, text: _ }) => {
            !has_aggregate(expr) && !has_subquery(expr) && !has_window(expr)
        }
        SelectItem::All(_) | SelectItem::AllOf(..) => false,
    };
    let simple = with.is_none()
        && limit.is_none()
        && locks.is_empty()
        && (ignore_order || order_by.is_empty())
        && !distinct
        && having.is_none()
        && windows.is_empty()
        && group_by.is_empty()
        && !from.is_empty()
        && items.iter().all(is_plain);
    simple.then_some(select)
}

/// The maximum number of view references in a statement, nested ones included: each is parsed and bound.
const VIEWS_MAX: usize = 2_000;

impl Bind<'_> {
    /// Binds a view in FROM. The caller has checked the privilege to read it.
    pub fn view(&mut self, view: &Arc<View>, shown: &str) -> Result<Source> {
        const NESTING: usize = 60;
        let is_open = self.open_views.iter().any(|open| *open == view.id);
        if is_open || self.open_views.len() >= NESTING {
            return Err(error::VIEW_RECURSIVE.with(&[&view.schema, &view.name]));
        }
        if self.views.len() >= VIEWS_MAX {
            let what = format!("views that name each other more than {VIEWS_MAX} times");
            return Err(error::STACK_OVERRUN.with(&[&what]));
        }
        let names = view.columns.iter().map(|column| &**column);
        let readable = self.rights.columns(&view.schema, &view.name, names, Privileges::SELECT);
        let rights = if view.invoker {
            self.rights.shared()
        } else {
            let found = self.environment.variables.rights_of(&view.definer)?;
            let who = || crate::rights::Who::of(&view.definer, |_| false);
            found.ok_or_else(|| error::NO_SUCH_USER.with(&[&who().user, &who().host]))?
        };
        self.views.push(view.clone());
        self.open_views.push(view.id);
        let bound = self.view_body(view, shown, readable, &rights).map_err(|error| veiled(error, view));
        self.open_views.pop();
        bound
    }

    fn view_body(&mut self, view: &Arc<View>, shown: &str, readable: Columns, rights: &Arc<Rights>) -> Result<Source> {
        let mode = SqlMode::parse(&view.modes)?;
        let (query, ..) = crate::parse::view::query(&view.text, mode)?;
        if view.algorithm != Algorithm::Temptable
            && let Some(select) = is_simple(&query, self.keyed)
            && let Some(source) = self.merged(view, select, shown, &readable, rights)?
        {
            return Ok(source);
        }
        let keyed = std::mem::replace(&mut self.keyed, false);
        // No enclosing block is visible (MY-17).
        let outside = self.step_into(rights);
        self.scopes.pop();
        let bound = self.query(&query);
        self.step_out(outside);
        self.keyed = keyed;
        let mut bound = bound?;
        if bound.columns.len() != view.columns.len() {
            return Err(error::VIEW_INVALID.with(&[&view.schema, &view.name]));
        }
        for (column, name) in bound.columns.iter_mut().zip(&view.columns) {
            column.name.clone_from(name);
        }
        let columns = columns_of(view, shown, bound.columns);
        self.add(table_of(view, shown, columns, readable, Origin::Derived { node: bound.node }))
    }

    /// Hides everything and leaves one empty block.
    fn step_into(&mut self, rights: &Arc<Rights>) -> Outside {
        let depth = self.scopes.len();
        let hidden = (0..depth).map(|_| Scope { clause: "field list", ..Scope::default() }).collect();
        Outside {
            scopes: std::mem::replace(&mut self.scopes, hidden),
            commons: std::mem::take(&mut self.commons),
            rights: std::mem::replace(&mut self.rights, rights.clone()),
            recorder: self.recorder.take(),
        }
    }

    fn step_out(&mut self, outside: Outside) {
        self.scopes = outside.scopes;
        self.commons = outside.commons;
        self.rights = outside.rights;
        self.recorder = outside.recorder;
    }

    fn number_of(&mut self, rights: &Arc<Rights>) -> usize {
        self.of_views.push(rights.clone());
        self.of_views.len() - 1
    }

    /// Merges the body into the current block. None: it cannot be merged, and nothing has changed.
    fn merged(
        &mut self,
        view: &Arc<View>,
        select: &Select,
        shown: &str,
        readable: &Columns,
        rights: &Arc<Rights>,
    ) -> Result<Option<Source>> {
        let mut outside = self.step_into(rights);
        // The body is bound in the current block, whose own names are hidden meanwhile.
        let mut own = outside.scopes.pop().unwrap_or_default();
        let first = own.tables.len();
        let before = (own.width, own.used.clone(), own.coalesced.clone(), own.star.take(), own.clause);
        let within: Vec<Option<String>> = own.tables.iter().map(|table| table.within.clone()).collect();
        for table in &mut own.tables {
            table.within.get_or_insert_default();
        }
        self.scopes.pop();
        self.scopes.push(own);
        let bound = self.body_parts(select);
        let mut own = self.scopes.pop().unwrap_or_default();
        self.step_out(outside);
        let parts = bound?;
        let fits = parts.as_ref().is_some_and(|parts| {
            parts.exprs.len() == view.columns.len()
                && (!self.plain_only || parts.exprs.iter().all(|expr| matches!(expr, Expr::Column(..))))
        });
        (own.coalesced, own.star, own.clause) = (before.2, before.3, before.4);
        let Some(parts) = parts.filter(|_| fits) else {
            own.tables.truncate(first);
            (own.width, own.used) = (before.0, before.1);
            restore(&mut own, within, None);
            self.scopes.push(own);
            return Ok(None);
        };
        let inner: Vec<usize> = (first..own.tables.len()).filter(|at| own.tables[*at].within.is_none()).collect();
        let over = match inner[..] {
            [only] => {
                let offset = own.tables[only].offset;
                let column = |place: &Option<usize>| place.and_then(|place| place.checked_sub(offset));
                Some((only, parts.places.iter().map(column).collect()))
            }
            _ => None,
        };
        restore(&mut own, within, Some(shown));
        self.scopes.push(own);
        let mut columns = parts.columns;
        for (column, name) in columns.iter_mut().zip(&view.columns) {
            column.name.clone_from(name);
        }
        let columns = columns_of(view, shown, columns);
        let merged = Merged {
            view: view.clone(),
            exprs: parts.exprs,
            conditions: parts.conditions.clone(),
            rights: self.number_of(rights),
            over,
        };
        // The view has no rows of its own; its tables are read.
        self.add(table_of(view, shown, columns, readable.clone(), Origin::View(Arc::new(merged))))?;
        Ok(Some(match parts.source {
            source if parts.conditions.is_empty() => source,
            Source::Inner(items, mut on) => {
                on.extend(parts.conditions);
                Source::Inner(items, on)
            }
            source => Source::Inner(vec![source], parts.conditions),
        }))
    }

    fn body_parts(&mut self, select: &Select) -> Result<Option<Parts>> {
        let source = self.from(&select.from)?;
        let conditions = self.where_conditions(select.selection.as_ref())?;
        self.scope().clause = "field list";
        let used = self.scope().used.clone();
        let aliases = std::mem::take(&mut self.scope().aliases);
        let items = self.items(&select.items)?;
        let places = items.iter().map(|item| self.place_of_item(item)).collect();
        let (exprs, columns) = self.select_list(&items)?;
        self.scope().aliases = aliases;
        if exprs.iter().all(|expr| matches!(expr, Expr::Column(..))) {
            // Columns of the view that are not used need not be read.
            self.scope().used = used;
        }
        Ok(Some(Parts { source, conditions, exprs, columns, places }))
    }

    /// Follows a change of a scope's table down to the base table and checks privileges at each level. `columns` are
    /// the assigned ones.
    pub fn through(&mut self, at: usize, one: Privileges, columns: &[usize]) -> Result<Through> {
        let verb = if one == Privileges::DELETE { "DELETE" } else { "UPDATE" };
        let table = &self.scope().tables[at];
        let alias = table.alias.clone();
        let not_updatable = move || error::NON_UPDATABLE_TABLE.with(&[&alias, &verb]);
        let mut map: Vec<Option<usize>> = (0..table.columns.len()).map(Some).collect();
        let mut top: Option<String> = None;
        let (mut at, mut rights, mut cascaded, mut pending) = (at, self.rights.clone(), false, Vec::new());
        loop {
            let table = &self.scope().tables[at];
            match table.origin.clone() {
                Origin::System(system) if !system.is_keyspace() => return Err(not_updatable()),
                origin @ (Origin::Base(_) | Origin::System(_)) => {
                    let base = match origin {
                        Origin::System(system) => keyspace_table::table(system).clone(),
                        Origin::Base(base) => base,
                        _ => return Err(not_updatable()),
                    };
                    let names = base.columns.iter().map(|column| &*column.name);
                    check_given(&rights, (&base.schema, &base.name), one, names.collect(), &map, columns)?;
                    let offset = table.offset;
                    let options = options_over(pending, offset)?;
                    return Ok(Through { table: base, at, columns: map, options });
                }
                Origin::View(merged) => {
                    let view = &merged.view;
                    let top = top.get_or_insert_with(|| format!("{}.{}", view.schema, view.name)).clone();
                    let names = view.columns.iter().map(|name| &**name).collect();
                    check_given(&rights, (&view.schema, &view.name), one, names, &map, columns)?;
                    if cascaded || view.check != CheckOption::None {
                        // Errors name the view that the statement names.
                        pending.extend(merged.conditions.iter().map(|condition| (top.clone(), condition.clone())));
                    }
                    cascaded |= view.check == CheckOption::Cascaded;
                    let Some((below, places)) = &merged.over else {
                        return Err(match one {
                            Privileges::DELETE => error::VIEW_DELETE_MERGE_VIEW.with(&[&view.schema, &view.name]),
                            _ => not_updatable(),
                        });
                    };
                    for column in &mut map {
                        *column = column.and_then(|column| places.get(column).copied().flatten());
                    }
                    if let Some(column) = columns.iter().find(|column| map[**column].is_none()) {
                        let name = &self.scope().tables[at].columns[*column].name;
                        return Err(error::NONUPDATEABLE_COLUMN.with(&[name]));
                    }
                    (at, rights) = (*below, self.of_views[merged.rights].clone());
                }
                _ => return Err(not_updatable()),
            }
        }
    }
}

impl Bind<'_> {
    fn note(&mut self, range: Range<usize>, what: Noted) {
        if let Some(recorder) = &mut self.recorder
            && self.text.get(range.clone()).is_some()
        {
            recorder.push(Note { range, what });
        }
    }

    /// Records a table in the current database, named with or without it. The span starts with its name.
    pub fn record_table(&mut self, name: &Name, span: Span) {
        let (Some(_), Some(database)) = (&self.recorder, self.environment.database) else { return };
        let start = span.start as usize;
        match &name.schema {
            None => {
                let (schema, name) = (quoted_name(database), quoted_name(&name.name));
                self.note(
                    start..name_end(self.text, name_start(self.text, start)),
                    Noted::Bare(format!("{schema}.{name}")),
                );
            }
            Some(schema) if schema == database => {
                self.note(start..next_name(self.text, start), Noted::SchemaOfTable);
            }
            Some(_) => {}
        }
    }

    /// Records a column qualified with the current database. The span starts with its name, or with parentheses before
    /// it.
    pub fn record_column(&mut self, name: &ColumnName, span: Span) {
        let ColumnName { schema: Some(schema), table: Some(table), name: column } = name else { return };
        if self.recorder.is_none() || self.environment.database != Some(schema) {
            return;
        }
        let found = |schema: Option<&str>| {
            let find = |depth: usize| self.scopes[depth].find(schema, Some(table), column);
            let depth = (0..self.scopes.len()).rev().find(|depth| !matches!(find(*depth), Ok(None)))?;
            Some((depth, find(depth).ok()?))
        };
        let is_same = found(Some(schema)) == found(None);
        let what = if is_same { Noted::SchemaOfColumn } else { Noted::SchemaNeeded };
        let start = name_start(self.text, span.start as usize);
        self.note(start..next_name(self.text, start), what);
    }

    /// Records the columns of a `*`, or of the keyword in `TABLE t`.
    pub fn record_star(&mut self, span: Span, items: &[Item<'_>]) {
        if self.recorder.is_none() {
            return;
        }
        let scope = self.scope();
        let column = |item: &Item<'_>| {
            let Item::Place(place) = item else { return String::new() };
            let table = scope.table_at(*place).map_or(String::new(), |table| quoted_name(&table.alias));
            let column = scope.column_at(*place).map_or(String::new(), |column| quoted_name(&column.name));
            format!("{table}.{column}")
        };
        let mut text = items.iter().map(column).collect::<Vec<_>>().join(", ");
        if span.of(self.text).eq_ignore_ascii_case(TABLE) {
            text = format!("SELECT {text} FROM");
        }
        self.note(span.start as usize..span.end as usize, Noted::Star(text));
    }
}

/// A view that is the target of INSERT.
pub struct InsertThrough {
    pub table: Arc<Table>,
    /// For each column of the view, the column of the table.
    pub columns: Vec<Option<usize>>,
    /// For each column of the table, its name in the view.
    pub names: Vec<Option<String>>,
}

impl Bind<'_> {
    /// Sets the binder up for changing rows.
    pub fn change_through_views(&mut self) {
        (self.keyed, self.changing) = (true, "UPDATE");
    }

    /// Binds the view alone as a table to change, and calls `then` with its position.
    fn alone<T>(&mut self, view: &Arc<View>, then: impl FnOnce(&mut Self, usize) -> Result<T>) -> Result<T> {
        self.open_scope();
        let keyed = std::mem::replace(&mut self.keyed, true);
        let bound = self.view(view, &view.name);
        self.keyed = keyed;
        // After an error the scope may be gone, and nothing else is bound.
        bound?;
        let at = self.scope().tables.len().saturating_sub(1);
        let done = then(self, at);
        self.close_scope();
        done
    }

    /// Returns the base table if INSERT names a view.
    pub fn insert_view(&mut self, name: &Name, schema: &str, insert: &tree::Insert) -> Result<Option<InsertThrough>> {
        let Some(view) = self.environment.snapshot.view(schema, &name.name).cloned() else { return Ok(None) };
        if insert.replace || !insert.on_duplicate.is_empty() {
            return Err(SqlError::unsupported("REPLACE and ON DUPLICATE KEY UPDATE through a view"));
        }
        let not_insertable = || error::NON_INSERTABLE_TABLE.with(&[&view.name, &"INSERT"]);
        let through = self.alone(&view, |bind, at| bind.through(at, Privileges::NONE, &[]));
        let through =
            through.map_err(|error| if error::NON_UPDATABLE_TABLE.is(&error) { not_insertable() } else { error })?;
        let mut names: Vec<Option<String>> = vec![None; through.table.columns.len()];
        for (column, name) in through.columns.iter().zip(&view.columns) {
            let taken = &mut names[column.ok_or_else(not_insertable)?];
            if taken.replace(name.clone()).is_some() {
                return Err(not_insertable());
            }
        }
        let lacks = |(at, column): (usize, &query::catalog::table::TableColumn)| {
            names[at].is_none()
                && column.default == query::catalog::table::Default::None
                && !column.ty.nullable
                && !column.auto_increment
                && column.generated.is_none()
        };
        if through.table.columns.iter().enumerate().any(lacks) {
            return Err(error::NO_DEFAULT_FOR_VIEW_FIELD.with(&[&view.schema, &view.name]));
        }
        Ok(Some(InsertThrough { table: through.table, columns: through.columns, names }))
    }

    /// Checks the privileges to insert these columns of the view, and returns its check options.
    pub fn check_insert_view(&mut self, name: &Name, given: &[usize]) -> Result<Vec<(String, Expr)>> {
        let schema = self.schema_of(name)?;
        let Some(view) = self.environment.snapshot.view(&schema, &name.name).cloned() else { return Ok(Vec::new()) };
        Ok(self.alone(&view, |bind, at| bind.through(at, Privileges::INSERT, given))?.options)
    }
}

/// Returns the start of the name after parentheses or a leading dot.
fn name_start(text: &str, start: usize) -> usize {
    let mut at = after_space(text, start);
    while let Some(b'(' | b'.') = text.as_bytes().get(at) {
        at = after_space(text, at + 1);
    }
    at
}

/// Returns the end of the name that starts there.
fn name_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut end = start;
    let Some(quote @ (b'`' | b'"')) = bytes.get(start).copied() else {
        let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..);
        end += bytes.iter().skip(start).take_while(|byte| is_of_name(byte)).count();
        return end;
    };
    end += 1;
    while let Some(byte) = bytes.get(end) {
        end += 1;
        if *byte == quote {
            if bytes.get(end) != Some(&quote) {
                break;
            }
            end += 1;
        }
    }
    end
}

/// Returns the start of the name after the dot.
fn next_name(text: &str, start: usize) -> usize {
    let dot = after_space(text, name_end(text, start));
    after_space(text, dot + 1)
}

/// Skips spaces and comments.
fn after_space(text: &str, start: usize) -> usize {
    let mut at = start;
    loop {
        let rest = text.get(at..).unwrap_or("");
        let space = rest.len() - rest.trim_start().len();
        let comment = match &rest[space..] {
            rest if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            rest if rest.starts_with('#') || rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            _ => 0,
        };
        if space + comment == 0 {
            return at;
        }
        at += space + comment;
    }
}

/// A bound view body.
struct Parts {
    source: Source,
    conditions: Vec<Expr>,
    exprs: Vec<Expr>,
    columns: Vec<Column>,
    /// The place of each item that is a plain column.
    places: Vec<Option<usize>>,
}

/// Checks the privilege to change these columns, or the table if there are none.
fn check_given(
    rights: &Rights,
    (schema, name): (&str, &str),
    one: Privileges,
    names: Vec<&str>,
    map: &[Option<usize>],
    columns: &[usize],
) -> Result<()> {
    if one.is_none() {
        return Ok(());
    }
    if !Privileges::OF_COLUMN.has(one) {
        return rights.need_table(schema, name, one);
    }
    rights.need_some_columns(schema, name, one)?;
    for column in columns.iter().filter_map(|column| map[*column]) {
        if let Some(shown) = names.get(column)
            && !rights.column(schema, name, shown).has(one)
        {
            return Err(rights.no_column(one.first(), shown, name));
        }
    }
    Ok(())
}

/// Rebases conditions over the wide row to the table's row.
fn options_over(pending: Vec<(String, Expr)>, offset: usize) -> Result<Vec<(String, Expr)>> {
    let mut options = Vec::new();
    for (name, mut condition) in pending {
        let mut reads_outer = false;
        condition.rewrite(&mut |expr| match expr {
            Expr::Column(place, _) => *place -= offset,
            part if part.reads_outside() => reads_outer = true,
            _ => {}
        });
        if reads_outer {
            return Err(SqlError::unsupported("WITH CHECK OPTION over a subquery"));
        }
        options.push((name, condition));
    }
    Ok(options)
}

/// Restores the visibility of the block's own tables; the body's tables stay hidden behind the view's name.
fn restore(own: &mut Scope, within: Vec<Option<String>>, shown: Option<&str>) {
    let first = within.len();
    for (table, within) in own.tables.iter_mut().zip(within) {
        table.within = within;
    }
    for table in &mut own.tables[first..] {
        table.within = shown.map(str::to_owned);
    }
}

/// Returns the result metadata of a view's columns.
fn columns_of(view: &View, shown: &str, columns: Vec<Column>) -> Vec<Column> {
    let column = |column: Column| Column {
        schema: view.schema.clone(),
        table: shown.to_owned(),
        org_table: view.name.clone(),
        org_name: column.name.clone(),
        ..column
    };
    columns.into_iter().map(column).collect()
}

fn table_of(view: &View, shown: &str, columns: Vec<Column>, readable: Columns, origin: Origin) -> ScopeTable {
    ScopeTable {
        alias: shown.to_owned(),
        schema: view.schema.clone(),
        hidden: vec![false; columns.len()],
        origin,
        offset: 0,
        columns,
        key_at: None,
        lock: None,
        nullable: false,
        allowed: None,
        after: Vec::new(),
        readable,
        within: None,
    }
}
