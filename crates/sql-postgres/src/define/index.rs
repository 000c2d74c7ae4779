//! CREATE INDEX: btree indexes over columns.

use std::sync::Arc;

use datum::key::KeyOrder;
use query::catalog::object_id::UNNUMBERED;
use query::catalog::table::{Index, Part, Table};
use query::key_form::KeyForm;
use syntax::postgres::tree::{IndexElem, IndexKey, IndexStmt, NullsOrder, SortDirection};

use crate::define::alter::Draft;
use crate::define::names::Relation;
use crate::define::object_name::index_name;
use crate::error::{PgError, Result, state};
use crate::session::Session;

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
    }
}

/// The map of an index that has none yet.
pub(super) const UNMADE: engine::rows::MapId = 0;

/// Returns whether users see the index: those that foreign keys need here have no counterpart in PostgreSQL.
pub fn is_shown(index: &Index) -> bool {
    !index.generated
}

impl Session {
    pub(super) fn create_index(&mut self, create: &IndexStmt) -> Result<()> {
        let IndexStmt {
            name,
            relation,
            unique,
            concurrently,
            if_not_exists,
            access_method,
            elements,
            include,
            nulls_not_distinct,
            options,
            tablespace,
            selection,
        } = create;
        if *concurrently {
            self.forbid_block("CREATE INDEX CONCURRENTLY")?;
            return Err(PgError::unsupported("CREATE INDEX CONCURRENTLY"));
        }
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
        if !include.is_empty() {
            return Err(PgError::unsupported("INCLUDE of an index"));
        }
        if *nulls_not_distinct {
            return Err(PgError::unsupported("NULLS NOT DISTINCT"));
        }
        if selection.is_some() {
            return Err(PgError::unsupported("a partial index"));
        }
        super::create_table::check_tablespace(tablespace.as_ref())?;
        super::create_table::storage_options(options)?;
        let table = match self.relation(relation)? {
            Some(Relation::Table(table)) => table,
            Some(_) => {
                let message = format!("cannot create index on relation \"{}\"", relation.name);
                return Err(PgError::new(state::WRONG_OBJECT_TYPE, message));
            }
            None => return Err(self.missing_relation(relation, None)),
        };
        let parts = parts_of(elements, &table)?;
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
        self.change_table(&table, |session, draft, snapshot| {
            let name = match name {
                Some(name) => name.value.clone(),
                None => {
                    let columns: Vec<&str> = parts.iter().map(|part| &*draft.new.columns[part.column].name).collect();
                    let schema = snapshot.schema(&draft.new.schema)?;
                    index_name(schema, &draft.new, &columns, "idx")
                }
            };
            session.check_index_name(draft, &name, snapshot)?;
            draft.new.indexes.push(unmade(name, parts, *unique, false));
            Ok(())
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

/// Returns the parts of an index.
fn parts_of(elements: &[IndexElem], table: &Arc<Table>) -> Result<Vec<Part>> {
    if elements.len() > COLUMNS_MAX {
        let message = format!("cannot use more than {COLUMNS_MAX} columns in an index");
        return Err(PgError::new(state::TOO_MANY_COLUMNS, message));
    }
    let mut parts = Vec::new();
    for element in elements {
        let IndexElem { key, collation, opclass, opclass_options, direction, nulls } = element;
        let IndexKey::Column(name) = key else { return Err(PgError::unsupported("an index over an expression")) };
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
        let at = table.columns.iter().position(|column| !column.is_hidden() && column.name == name.value);
        let at = at.ok_or_else(|| {
            PgError::new(state::UNDEFINED_COLUMN, format!("column \"{}\" does not exist", name.value))
        })?;
        let descending = *direction == SortDirection::Descending;
        let nulls_first = match nulls {
            NullsOrder::Default => descending,
            NullsOrder::First => true,
            NullsOrder::Last => false,
        };
        parts.push(Part { column: at, prefix: None, order: KeyOrder { descending, nulls_first } });
    }
    Ok(parts)
}
