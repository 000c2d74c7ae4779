//! CREATE INDEX: btree indexes over columns and expressions, of all rows or of some.

use std::sync::Arc;

use datum::key::KeyOrder;
use query::catalog::foreign_key::Deferral;
use query::catalog::object_id::UNNUMBERED;
use query::catalog::table::{Index, Part, Table};
use query::key_form::KeyForm;
use query::nodes::expr::Expr;
use syntax::postgres::tree::{Ident, IndexElem, IndexKey, IndexStmt, NullsOrder, SortDirection};

use crate::bind::TableExpression;
use crate::bind::output_name::{UNNAMED, name_of_expr};
use crate::define::alter::Draft;
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
        if let Some(method) = access_method {
            match &*method.value {
                "btree" => {}
                "hash" | "gist" | "gin" | "spgist" | "brin" => {
                    return Err(PgError::unsupported(format!("access method {}", method.value)));
                }
                other => {
                    let message = format!("access method \"{other}\" does not exist");
                    return Err(PgError::new(state::UNDEFINED_OBJECT, message));
                }
            }
        }
        super::create_table::check_tablespace(tablespace.as_ref())?;
        super::create_table::storage_options(options)?;
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
        let wanted = self.wanted(create, &table, text)?;
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
            let WantedIndex { parts, included, predicate, names: _ } = wanted;
            let mut place = |column| match column {
                WantedColumn::Named(at) => at,
                WantedColumn::Computed(bound, text) => draft.hidden_column(&bound, text),
            };
            let parts = parts.into_iter().map(|(column, order)| Part { column: place(column), prefix: None, order });
            let parts = parts.collect();
            let predicate = predicate.map(place);
            let made = unmade(name, parts, *unique, false);
            draft.new.indexes.push(Index { included, predicate, nulls_equal: *nulls_not_distinct, ..made });
            Ok(())
        };
        match others_read {
            true => self.change_table_in_use(&table, add),
            false => self.change_table(&table, add),
        }
    }

    /// Returns the parts of an index, bound over the table.
    fn wanted(&mut self, create: &IndexStmt, table: &Arc<Table>, text: &str) -> Result<WantedIndex> {
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
            require_order(&ty)?;
            parts.push((column, order_of(element)?));
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
        Ok(WantedIndex { parts, included, predicate, names })
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
        let name = match table.expression_of(at) {
            Some(text) => {
                syntax::postgres::parse_expression(text).map_or_else(|_| "expr".to_owned(), |expr| name_of_part(&expr))
            }
            None => table.columns[at].name.clone(),
        };
        names.push(free_name(&names, name));
    }
    names
}
