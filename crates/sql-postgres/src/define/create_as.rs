//! CREATE TABLE AS, SELECT INTO and CREATE MATERIALIZED VIEW: a table of a query's columns, filled with its rows in the same transaction.

use std::sync::Arc;

use query::catalog::table::{KeptQuery, TableColumn};
use query::exec::change;
use query::nodes::change::{Insert, OnConflict, Rules, Values};
use syntax::postgres::tree::{
    CreateTableAsSource, CreateTableAsStmt, IntoClause, RawStatement, SelectBody, SelectStmt, Span, Statement,
};

use crate::bind::{Bound, Plan};
use crate::define::create_table::{Extras, check_column_name, check_tablespace, new_table, storage_options};
use crate::define::materialized::{check_kept, check_populated};
use crate::error::{PgError, Result, state};
use crate::session::{Session, no_parameter};
use crate::types::{oid, registry};

impl Session {
    pub(super) fn create_table_as(
        &mut self,
        create: &CreateTableAsStmt,
        raw: &RawStatement,
        text: &Arc<str>,
    ) -> Result<String> {
        let CreateTableAsStmt { into, if_not_exists, materialized_view, source, query_span, with_data } = create;
        let CreateTableAsSource::Query(query) = source else {
            return Err(PgError::unsupported("CREATE TABLE AS EXECUTE"));
        };
        let what = match materialized_view {
            true => NewRelation::MaterializedView(*query_span),
            false => NewRelation::Table("CREATE TABLE AS"),
        };
        self.fill_table(into, query, (*if_not_exists, *with_data), raw, text, what)
    }

    pub(super) fn select_into(&mut self, query: &SelectStmt, raw: &RawStatement, text: &Arc<str>) -> Result<String> {
        let mut query = query.clone();
        let SelectBody::Select(select) = &mut query.body else {
            return Err(PgError::unsupported("SELECT INTO of a set operation"));
        };
        let Some(into) = select.into.take() else { return Err(PgError::unsupported("this SELECT")) };
        self.fill_table(&into, &query, (false, true), raw, text, NewRelation::Table("SELECT INTO"))
    }

    fn fill_table(
        &mut self,
        into: &IntoClause,
        query: &SelectStmt,
        (if_not_exists, with_data): (bool, bool),
        raw: &RawStatement,
        text: &Arc<str>,
        what: NewRelation,
    ) -> Result<String> {
        let IntoClause { relation, persistence, columns, access_method, options, on_commit, tablespace } = into;
        let tag = what.tag();
        self.begin_definition(tag)?;
        // The query's own faults come first, also where the table exists.
        let own = RawStatement { statement: Statement::Select(Box::new(query.clone())), ..raw.clone() };
        let bound = self.bind_raw(&own, text, &[], &[])?;
        if let NewRelation::MaterializedView(_) = what {
            if !bound.parameter_types.is_empty() {
                return Err(no_parameter(text, raw));
            }
            check_kept(&bound, *persistence)?;
        }
        if access_method.as_ref().is_some_and(|method| method.value != "heap") {
            return Err(PgError::unsupported("an access method"));
        }
        check_tablespace(tablespace.as_ref())?;
        let options = storage_options(options)?;
        let (schema, temporary) = self.creation_place(relation, *persistence)?;
        self.check_on_commit(temporary, *on_commit)?;
        self.check_creation(&schema, temporary)?;
        if self.refuse_taken(&schema, &relation.name, if_not_exists)? {
            return Ok(what.tag_without_rows().to_owned());
        }
        if columns.len() > bound.fields.len() {
            return Err(PgError::new(state::SYNTAX_ERROR, "too many column names were specified"));
        }
        if temporary && !matches!(what, NewRelation::Table(_)) {
            return Err(PgError::unsupported("a temporary materialized view"));
        }
        let mut table = new_table(schema.clone(), relation.name.clone(), temporary);
        table.options = options;
        if let NewRelation::MaterializedView(span) = what {
            let text = self.expanded(query, span, text)?;
            table.query =
                Some(Box::new(KeptQuery { text, modes: self.search_path().join(","), is_populated: with_data }));
        }
        for (nth, field) in bound.fields.iter().enumerate() {
            let name = columns.get(nth).map_or(&field.name, |name| &name.value);
            check_column_name(&table, name)?;
            let ty = if field.type_oid == oid::UNKNOWN { oid::TEXT } else { field.type_oid };
            if registry::by_oid(ty).is_none_or(|row| !row.kind.has_values()) {
                let message = format!("column \"{name}\" has pseudo-type {}", registry::format_type(ty, None));
                return Err(PgError::new(state::INVALID_TABLE_DEFINITION, message));
            }
            let ty = registry::column_type(ty, field.type_modifier, true);
            table.columns.push(TableColumn::new(name.clone(), ty, nth));
        }
        let mut rows = 0;
        // The query's tables stay as they are while it runs.
        while !self.share_tables(&bound.statement.bindings.locked)? {
            self.refresh();
        }
        if with_data {
            check_populated(&bound.statement.bindings.tables)?;
        }
        self.make_table(table, Extras::default(), text, |session, table, writing| {
            if with_data {
                let insert = filling(table, &bound)?;
                rows = session.within_writing(writing, |session, _| {
                    let ctx = session.context();
                    let tally = change::insert(&insert, change::Tally::default(), ctx)?;
                    Ok(change::inserted(&insert, tally, ctx)?.affected)
                })?;
            }
            Ok(())
        })?;
        self.note_on_commit(&schema, &relation.name, *on_commit);
        Ok(if with_data { format!("SELECT {rows}") } else { what.tag_without_rows().to_owned() })
    }
}

/// The relation that a statement makes of a query.
#[derive(Clone, Copy)]
enum NewRelation {
    /// A table, with the words of the statement.
    Table(&'static str),
    /// A materialized view, with the place of its query.
    MaterializedView(Span),
}

impl NewRelation {
    fn tag(self) -> &'static str {
        match self {
            NewRelation::Table(tag) => tag,
            NewRelation::MaterializedView(_) => "CREATE MATERIALIZED VIEW",
        }
    }

    fn tag_without_rows(self) -> &'static str {
        match self {
            NewRelation::Table(_) => "CREATE TABLE AS",
            NewRelation::MaterializedView(_) => "CREATE MATERIALIZED VIEW",
        }
    }
}

/// Returns the INSERT of a query's rows into a table without constraints.
pub(super) fn filling(table: &Arc<query::catalog::table::Table>, bound: &Bound) -> Result<Insert> {
    let Plan::Query { node, .. } = &bound.statement.plan else {
        return Err(PgError::new(state::INTERNAL_ERROR, "CREATE TABLE AS without a query"));
    };
    let rules = Rules {
        table: table.clone(),
        defaults: table.columns.iter().map(|_| Some(query::nodes::expr::Expr::null())).collect(),
        clocks: Vec::new(),
        checks: Vec::new(),
        foreign_graph: None,
        options: Vec::new(),
    };
    Ok(Insert {
        rules,
        targets: table.named().map(|(at, _)| at).collect(),
        values: Values::Query(node.clone()),
        on_conflict: OnConflict::Fail,
        updates: Vec::new(),
        disregarded: Vec::new(),
        ignore: false,
        arbiter: None,
        returning: None,
    })
}
