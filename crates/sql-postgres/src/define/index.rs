//! CREATE INDEX: btree and GIN indexes over columns and expressions, of all rows or of some.

use std::sync::Arc;

use datum::key::KeyOrder;
use query::catalog::foreign_key::Deferral;
use query::catalog::object_id::UNNUMBERED;
use query::catalog::table::{Index, Part, Table};
use query::key_form::KeyForm;
use query::nodes::expr::Expr;
use query::nodes::term_test::TermForm;
use syntax::postgres::tree::{
    Constraint, ConstraintKind, Ident, IndexElem, IndexKey, IndexStmt, NullsOrder, SortDirection,
};

use crate::bind::TableExpression;
use crate::bind::output_name::{UNNAMED, name_of_expr};
use crate::define::alter::Draft;
use crate::define::gin;
use crate::define::hidden_column::{column_itself, require_order};
use crate::define::names::Relation;
use crate::define::object_name::index_name;
use crate::error::{PgError, Result, state};
use crate::rights::object::Object;
use crate::session::Session;
use crate::system::view::ShownIndex;

/// The most columns of an index, as in PostgreSQL.
const COLUMNS_MAX: usize = 32;

/// Returns a key part in PostgreSQL's plain order: NULLs last.
pub(super) fn ascending(column: usize) -> Part {
    Part { column, prefix: None, order: KeyOrder::with_null_greatest(false) }
}

/// Returns an index whose map is not made yet.
pub(super) fn unmade(name: String, parts: Vec<Part>, unique: bool, generated: bool) -> Index {
    Index {
        id: UNNUMBERED,
        name,
        map: UNMADE,
        unique,
        parts,
        form: KeyForm::Hashed,
        comment: String::new(),
        invisible: false,
        using: false,
        generated,
        is_constraint: false,
        included: Vec::new(),
        predicate: None,
        terms: None,
        nulls_equal: false,
        deferral: Deferral::Never,
        is_primary: false,
        is_unseen: false,
    }
}

/// The map of an index that has none yet.
pub(super) const UNMADE: engine::rows::MapId = 0;

/// Returns whether users see the index: those that foreign keys need here have no counterpart in PostgreSQL.
pub fn is_shown(index: &Index) -> bool {
    !index.generated
}

impl Session {
    pub(super) fn create_index(&mut self, create: &IndexStmt, text: &str) -> Result<()> {
        let IndexStmt {
            name,
            relation,
            unique,
            concurrently: _,
            if_not_exists,
            access_method,
            elements: _,
            include: _,
            nulls_not_distinct,
            options,
            tablespace,
            selection: _,
        } = create;
        let mut of_terms = false;
        if let Some(method) = access_method {
            match &*method.value {
                "btree" => {}
                "gin" => of_terms = true,
                "hash" | "gist" | "spgist" | "brin" => {
                    return Err(PgError::unsupported(format!("access method {}", method.value)));
                }
                other => {
                    let message = format!("access method \"{other}\" does not exist");
                    return Err(PgError::new(state::UNDEFINED_OBJECT, message));
                }
            }
        }
        super::create_table::check_tablespace(tablespace.as_ref())?;
        match of_terms {
            true => gin::check_options(options)?,
            false => drop(super::create_table::storage_options(options)?),
        }
        let table = match self.relation(relation)? {
            Some(Relation::Table(table)) => table,
            Some(found) => {
                let message = format!("cannot create index on relation \"{}\"", relation.name);
                let error = PgError::new(state::WRONG_OBJECT_TYPE, message);
                return Err(match found {
                    Relation::View(_) => error.detail("This operation is not supported for views."),
                    Relation::Sequence(_) => error.detail("This operation is not supported for sequences."),
                    Relation::Index(..) => error.detail("This operation is not supported for indexes."),
                    Relation::Table(_) => error,
                });
            }
            None => return Err(self.missing_relation(relation, None)),
        };
        self.check_owns(&Object::table(&table))?;
        self.check_creation(&table.schema, table.temporary)?;
        self.refuse_waiting(&table, "CREATE INDEX")?;
        if of_terms {
            gin::check(create)?;
        }
        let wanted = self.wanted(create, &table, text, of_terms)?;
        if let Some(name) = name {
            let schema = self.catalog.schema(&table.schema)?;
            if super::names::find(schema, &name.value).is_some() {
                let message = format!("relation \"{}\" already exists", name.value);
                if !if_not_exists {
                    return Err(PgError::new(state::DUPLICATE_TABLE, message));
                }
                self.skip_notice(state::DUPLICATE_TABLE, message + ", skipping");
                return Ok(());
            }
        }
        let is_of_columns = |parts: &[(WantedColumn, KeyOrder)]| {
            parts.iter().all(|(column, _)| matches!(column, WantedColumn::Named(_)))
        };
        // Other indexes write the rows anew, into another map.
        let others_read = wanted.predicate.is_none() && is_of_columns(&wanted.parts) && !table.temporary;
        let add = |session: &mut Session, draft: &mut Draft, snapshot: &query::catalog::Snapshot| {
            let name = match name {
                Some(name) => name.value.clone(),
                None => {
                    let columns: Vec<&str> = wanted.names.iter().map(|name| &**name).collect();
                    let schema = snapshot.schema(&draft.new.schema)?;
                    index_name(schema, &draft.new, &columns, "idx")
                }
            };
            session.check_index_name(draft, &name, snapshot)?;
            let WantedIndex { parts, terms, included, predicate, names: _ } = wanted;
            let mut place = |column| match column {
                WantedColumn::Named(at) => at,
                WantedColumn::Computed(bound, text) => draft.hidden_column(&bound, text),
            };
            let parts = parts.into_iter().map(|(column, order)| Part { column: place(column), prefix: None, order });
            let parts = parts.collect();
            let predicate = predicate.map(place);
            let made = unmade(name, parts, *unique, false);
            draft.new.indexes.push(Index { terms, included, predicate, nulls_equal: *nulls_not_distinct, ..made });
            Ok(())
        };
        match others_read {
            true => self.change_table_in_use(&table, add),
            false => self.change_table(&table, add),
        }
    }

    /// Returns the parts of an index, bound over the table.
    fn wanted(&mut self, create: &IndexStmt, table: &Arc<Table>, text: &str, of_terms: bool) -> Result<WantedIndex> {
        let mut terms = None;
        let (mut parts, mut included, mut names) = (Vec::new(), Vec::new(), Vec::new());
        if create.elements.len() + create.include.len() > COLUMNS_MAX {
            let message = format!("cannot use more than {COLUMNS_MAX} columns in an index");
            return Err(PgError::new(state::TOO_MANY_COLUMNS, message));
        }
        for element in &create.elements {
            let column = self.wanted_column(&element.key, table, text)?;
            let (ty, name) = match (&column, &element.key) {
                (WantedColumn::Named(at), _) => (table.columns[*at].ty.clone(), table.columns[*at].name.clone()),
                (WantedColumn::Computed(bound, _), IndexKey::Expr(expr)) => (bound.ty(), name_of_part(expr)),
                (WantedColumn::Computed(bound, _), IndexKey::Column(name)) => (bound.ty(), name.value.clone()),
            };
            let order = match of_terms {
                true => {
                    terms = Some(gin::form_of(element, &ty)?);
                    ascending(0).order
                }
                false => {
                    require_order(&ty)?;
                    order_of(element)?
                }
            };
            parts.push((column, order));
            names.push(free_name(&names, name));
        }
        for element in &create.include {
            let IndexElem { key, collation, opclass, opclass_options, direction, nulls } = element;
            let IndexKey::Column(name) = key else {
                let message = "expressions are not supported in included columns";
                return Err(PgError::new(state::FEATURE_NOT_SUPPORTED, message));
            };
            let refused = |what: &str| {
                let message = format!("including column does not support {what} options");
                Err(PgError::new(state::INVALID_OBJECT_DEFINITION, message))
            };
            match () {
                () if *direction != SortDirection::Default => return refused("ASC/DESC"),
                () if *nulls != NullsOrder::Default => return refused("NULLS FIRST/LAST"),
                () if collation.is_some() => {
                    let message = "including column does not support a collation";
                    return Err(PgError::new(state::INVALID_OBJECT_DEFINITION, message));
                }
                () if opclass.is_some() || !opclass_options.is_empty() => {
                    let message = "including column does not support an operator class";
                    return Err(PgError::new(state::INVALID_OBJECT_DEFINITION, message));
                }
                () => {}
            }
            included.push(named_column(table, name)?);
            names.push(free_name(&names, name.value.clone()));
        }
        let predicate = match &create.selection {
            Some(selection) => {
                let kind = TableExpression::IndexPredicate;
                let (bound, shown) = self.index_expression(table, selection, kind, text)?;
                Some(WantedColumn::Computed(bound, shown))
            }
            None => None,
        };
        Ok(WantedIndex { parts, terms, included, predicate, names })
    }

    fn wanted_column(&mut self, key: &IndexKey, table: &Arc<Table>, text: &str) -> Result<WantedColumn> {
        let expr = match key {
            IndexKey::Column(name) => return named_column(table, name).map(WantedColumn::Named),
            IndexKey::Expr(expr) => expr,
        };
        let (bound, shown) = self.index_expression(table, expr, TableExpression::IndexPart, text)?;
        Ok(match column_itself(&bound) {
            Some(at) => WantedColumn::Named(at),
            None => WantedColumn::Computed(bound, shown),
        })
    }

    /// ADD CONSTRAINT ... USING INDEX: makes a constraint of a unique index. One that rows are found by stays as it is; a primary key becomes the order of the rows.
    pub(super) fn adopt_index(
        &mut self,
        table: &mut Table,
        constraint: &Constraint,
        using: &str,
        deferral: Deferral,
        snapshot: &query::catalog::Snapshot,
        text: &str,
    ) -> Result<()> {
        let at = adoptable(table, using, snapshot).map_err(|error| error.at(text, constraint.at.0 as usize))?;
        let is_primary = matches!(constraint.kind, ConstraintKind::PrimaryKey(_));
        if is_primary {
            super::create_table::refuse_second_key(table).map_err(|error| error.at(text, constraint.at.0 as usize))?;
        }
        let name = constraint.name.as_ref().filter(|name| name.value != using);
        if let Some(name) = name {
            super::create_table::check_constraint_name(table, &name.value)?;
            if super::object_name::relation_is_taken(snapshot.schema(&table.schema)?, table, &name.value) {
                let message = format!("relation \"{}\" already exists", name.value);
                return Err(PgError::new(state::DUPLICATE_TABLE, message));
            }
            let new = &name.value;
            let message =
                format!("ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"{using}\" to \"{new}\"");
            self.skip_notice(super::SUCCESSFUL, message);
        }
        let name = name.map_or_else(|| using.to_owned(), |name| name.value.clone());
        if is_primary {
            if !table.indexes[at].included.is_empty() {
                return Err(PgError::unsupported("INCLUDE of a primary key"));
            }
            let parts = table.indexes.remove(at).parts;
            super::create_table::set_primary_key(table, name, parts, deferral);
            return Ok(());
        }
        let index = &mut table.indexes[at];
        (index.name, index.is_constraint) = (name, true);
        if deferral != Deferral::Never {
            // Equal values may stand in it until they are checked, so its keys have another form.
            (index.deferral, index.unique, index.map, index.form) = (deferral, false, UNMADE, KeyForm::Hashed);
        }
        Ok(())
    }

    fn check_index_name(&self, draft: &Draft, name: &str, snapshot: &query::catalog::Snapshot) -> Result<()> {
        let schema = snapshot.schema(&draft.new.schema)?;
        match super::object_name::relation_is_taken(schema, &draft.new, name) {
            true => Err(PgError::new(state::DUPLICATE_TABLE, format!("relation \"{name}\" already exists"))),
            false => Ok(()),
        }
    }
}

/// A column of an index in the making.
enum WantedColumn {
    Named(usize),
    /// An expression and its text.
    Computed(Expr, String),
}

/// An index in the making.
struct WantedIndex {
    parts: Vec<(WantedColumn, KeyOrder)>,
    terms: Option<TermForm>,
    included: Vec<usize>,
    predicate: Option<WantedColumn>,
    /// The names of its columns.
    names: Vec<String>,
}

/// Returns the order of a part.
fn order_of(element: &IndexElem) -> Result<KeyOrder> {
    let IndexElem { key: _, collation, opclass, opclass_options, direction, nulls } = element;
    if let Some(collation) = collation.as_ref().filter(|name| !matches!(name.last(), "C" | "POSIX" | "default")) {
        return Err(PgError::unsupported(format!("collation \"{}\"", collation.last())));
    }
    if let Some(opclass) = opclass
        && !opclass.last().ends_with("_ops")
    {
        let message = format!("operator class \"{}\" does not exist for access method \"btree\"", opclass.dotted());
        return Err(PgError::new(state::UNDEFINED_OBJECT, message));
    }
    if !opclass_options.is_empty() {
        return Err(PgError::unsupported("options of an operator class"));
    }
    let descending = *direction == SortDirection::Descending;
    let nulls_first = match nulls {
        NullsOrder::Default => descending,
        NullsOrder::First => true,
        NullsOrder::Last => false,
    };
    Ok(KeyOrder { descending, nulls_first })
}

fn named_column(table: &Table, name: &Ident) -> Result<usize> {
    let found = table.columns.iter().position(|column| !column.is_hidden() && column.name == name.value);
    found.ok_or_else(|| PgError::new(state::UNDEFINED_COLUMN, format!("column \"{}\" does not exist", name.value)))
}

/// Returns the name of an index's column that is an expression.
fn name_of_part(expr: &syntax::postgres::tree::Expr) -> String {
    match name_of_expr(expr) {
        name if name == UNNAMED => "expr".to_owned(),
        name => name,
    }
}

/// Returns the name, with a number behind it where others have it.
fn free_name(taken: &[String], name: String) -> String {
    let is_free = |name: &String| !taken.contains(name);
    if is_free(&name) {
        return name;
    }
    let numbered = (1..).map(|number: usize| crate::define::object_name::numbered(&name, number)).find(is_free);
    numbered.unwrap_or(name)
}

/// Returns the names of an index's columns, in `pg_attribute`.
pub fn column_names(table: &Table, index: &ShownIndex<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let columns = index.parts.iter().map(|part| part.column).chain(index.included.iter().copied());
    for at in columns {
        names.push(free_name(&names, name_of_column(table, at)));
    }
    names
}

/// Returns the name of a column as a part of an index.
pub(super) fn name_of_column(table: &Table, at: usize) -> String {
    match table.expression_of(at) {
        Some(text) => {
            syntax::postgres::parse_expression(text).map_or_else(|_| "expr".to_owned(), |expr| name_of_part(&expr))
        }
        None => table.columns[at].name.clone(),
    }
}

/// Finds the index that may become a constraint.
fn adoptable(table: &Table, name: &str, snapshot: &query::catalog::Snapshot) -> Result<usize> {
    let taken = || {
        let message = format!("index \"{name}\" is already associated with a constraint");
        Err(PgError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message))
    };
    let Some(at) = table.indexes.iter().position(|index| is_shown(index) && index.name == name) else {
        return match super::names::find(snapshot.schema(&table.schema)?, name) {
            Some(Relation::Index(owner, None)) if owner.id == table.id => taken(),
            Some(Relation::Index(..)) => {
                let message = format!("index \"{name}\" does not belong to table \"{}\"", table.name);
                Err(PgError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message))
            }
            Some(_) => Err(super::names::not_a(name, "index")),
            None => Err(PgError::new(state::UNDEFINED_OBJECT, format!("index \"{name}\" does not exist"))),
        };
    };
    let index = &table.indexes[at];
    let is_plain = |part: &Part| !part.order.descending && !part.order.nulls_first;
    let message = match index.parts.iter().position(|part| !is_plain(part)) {
        _ if index.is_constraint => return taken(),
        _ if !index.unique => format!("\"{name}\" is not a unique index"),
        _ if index.parts.iter().any(|part| table.expression_of(part.column).is_some()) => {
            format!("index \"{name}\" contains expressions")
        }
        _ if index.predicate.is_some() => format!("\"{name}\" is a partial index"),
        Some(at) => format!("index \"{name}\" column number {} does not have default sorting behavior", at + 1),
        None => return Ok(at),
    };
    let detail = "Cannot create a primary key or unique constraint using such an index.";
    Err(PgError::new(state::WRONG_OBJECT_TYPE, message).detail(detail))
}
