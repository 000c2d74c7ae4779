//! The definition of a table: one immutable version of it.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use datum::Storage;
use datum::key::KeyOrder;
use datum::row::Layout;
use engine::rows::MapId;

use crate::catalog::foreign_key::{Deferral, ForeignKey};
use crate::catalog::keyspace_rows::KeyspaceTable;
use crate::catalog::object_id::{Maker, ObjectId, UNNUMBERED};
use crate::catalog::table_state::TableState;
use crate::key_form::KeyForm;
use crate::nodes::term_test::TermForm;
use crate::types::{Collation, Type};
use crate::value::Value;

pub type TableId = ObjectId;

#[derive(Debug)]
pub struct Table {
    pub id: TableId,
    pub maker: Maker,
    pub schema: String,
    pub name: String,
    /// Changes with every change of the definition.
    pub version: u64,
    /// The map of the rows, by primary key or by hidden row id.
    pub map: MapId,
    pub columns: Vec<TableColumn>,
    /// Storage types of all slots ever used. Slots of dropped columns stay, since older rows have them, and are never
    /// reused (QU-20).
    pub slots: Vec<Storage>,
    pub layout: Layout,
    /// The column of each slot.
    pub slot_columns: Vec<Option<usize>>,
    pub primary: Option<Vec<Part>>,
    /// The number of the primary key, as an index and as a constraint; `UNNUMBERED` without one.
    pub primary_id: ObjectId,
    /// Empty if the dialect names primary keys itself.
    pub primary_name: String,
    /// Of the rows' keys. Row ids fit any.
    pub primary_form: KeyForm,
    pub indexes: Vec<Index>,
    pub checks: Vec<Check>,
    pub foreign_keys: Vec<ForeignKey>,
    pub collation: Collation,
    pub comment: String,
    /// Options without an effect, as written: the name in lower case and the value.
    pub options: Vec<(String, String)>,
    /// The primary key was declared USING BTREE.
    pub primary_using: bool,
    pub created: i64,
    /// A temporary table, which its session drops when it ends.
    pub temporary: bool,
    /// The keys of the Redis door that are its rows.
    pub keyspace: Option<&'static KeyspaceTable>,
    /// The query whose rows the table keeps; no other rows are ever written into it (QU-61).
    pub query: Option<Box<KeptQuery>>,
    /// The rows were written anew after the snapshot of the transaction for which this definition was made (QU-63).
    pub is_unseen: bool,
    /// The table has columns that rows do not store (QU-8). Derived from the definition.
    pub computes: bool,
    /// The state that all versions of the table share.
    pub live: Arc<TableState>,
    /// Expressions of its generated columns, bound by the first statement that uses this version. Expressions lie above
    /// the catalog, so only `nodes::formula` knows their type.
    pub formulas: OnceLock<Box<dyn Any + Send + Sync>>,
}

/// The query of a materialized view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptQuery {
    pub text: String,
    /// The modes in which the dialect reads the text.
    pub modes: String,
    /// The rows are those of the query at some time. Otherwise there are none, and the table cannot be read.
    pub is_populated: bool,
}

#[derive(Clone, Debug)]
pub struct TableColumn {
    pub name: String,
    pub ty: Type,
    pub slot: usize,
    pub default: Default,
    pub on_update_now: bool,
    pub auto_increment: bool,
    pub invisible: bool,
    /// The definition names a character set or collation.
    pub collated: bool,
    pub comment: String,
    /// The value of the column in rows that are older than it.
    pub initial: Value,
    /// The expression of a generated column.
    pub generated: Option<Generated>,
    pub identity: Identity,
    /// The sequences that the column owns, which are dropped with it. Each names the table in `Sequence::owned_by`. The
    /// first of an identity column gives its values.
    pub sequences: Vec<ObjectId>,
}

/// GENERATED ... AS IDENTITY: whether a sequence gives the column its values, and whether a statement may give others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Identity {
    #[default]
    None,
    Always,
    ByDefault,
}

impl TableColumn {
    /// Returns a column without properties but name and type.
    pub fn new(name: String, ty: Type, slot: usize) -> TableColumn {
        TableColumn {
            name,
            ty,
            slot,
            default: Default::None,
            on_update_now: false,
            auto_increment: false,
            invisible: false,
            collated: false,
            comment: String::new(),
            initial: Value::Null,
            generated: None,
            identity: Identity::None,
            sequences: Vec::new(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Default {
    /// No default: NULL, or a value is required.
    None,
    /// After ALTER ... DROP DEFAULT a value is required, even if the column is nullable.
    Dropped,
    Value(Value),
    /// CURRENT_TIMESTAMP with this number of fractional digits.
    Now(u8),
    /// The text of an expression in parentheses.
    Expression(String),
}

/// The order of options in SHOW CREATE TABLE.
pub const SHOWN_OPTIONS: [&str; 11] = [
    "min_rows",
    "max_rows",
    "avg_row_length",
    "pack_keys",
    "stats_persistent",
    "stats_auto_recalc",
    "stats_sample_pages",
    "checksum",
    "delay_key_write",
    "row_format",
    "key_block_size",
];

/// The order of options in CREATE_OPTIONS of information_schema.
pub const LISTED_OPTIONS: [&str; 11] = [
    "max_rows",
    "min_rows",
    "avg_row_length",
    "row_format",
    "stats_sample_pages",
    "stats_auto_recalc",
    "stats_persistent",
    "pack_keys",
    "checksum",
    "delay_key_write",
    "key_block_size",
];

/// A key part: one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub column: usize,
    /// The length of a prefix in characters or bytes.
    pub prefix: Option<u32>,
    pub order: KeyOrder,
}

#[derive(Clone, Debug)]
pub struct Index {
    /// Kept over rebuilds.
    pub id: ObjectId,
    pub name: String,
    pub map: MapId,
    pub unique: bool,
    pub parts: Vec<Part>,
    pub form: KeyForm,
    pub comment: String,
    pub invisible: bool,
    /// The index was declared USING BTREE.
    pub using: bool,
    /// Created implicitly for a foreign key; dropped when another index can serve it.
    pub generated: bool,
    /// Declared as a constraint rather than as an index.
    pub is_constraint: bool,
    /// Of an index of terms, which has one part: the terms of its values (QU-66). It is neither unique nor does it include columns.
    pub terms: Option<TermForm>,
    /// Columns whose values the entries carry beside the key.
    pub included: Vec<usize>,
    /// Of a partial index: the hidden column that is true in the rows of the index (QU-47).
    pub predicate: Option<usize>,
    /// Of a unique index: NULL equals NULL.
    pub nulls_equal: bool,
    /// Unless it is `Never`, the index is not `unique`: rows with equal values are found by checks behind the statement or the transaction (QU-62).
    pub deferral: Deferral,
    /// The primary key of a table whose rows it does not order, since its checks are deferrable.
    pub is_primary: bool,
    /// The index is newer than the snapshot of the transaction for which this definition was made (QU-63).
    pub is_unseen: bool,
}

impl Index {
    /// Returns whether no two rows may have equal values in it, in the end.
    pub fn tells_apart(&self) -> bool {
        self.unique || self.deferral != Deferral::Never
    }

    /// Returns whether all rows of the table differ in the index's columns, if none of them is NULL.
    pub fn is_key(&self) -> bool {
        self.unique && self.predicate.is_none()
    }

    /// Returns the columns on which its entries depend, besides those of the row's key.
    pub fn columns(&self) -> impl Iterator<Item = usize> {
        self.parts.iter().map(|part| part.column).chain(self.included.iter().copied()).chain(self.predicate)
    }

    /// Returns the same, to be numbered anew.
    pub fn columns_mut(&mut self) -> impl Iterator<Item = &mut usize> {
        let parts = self.parts.iter_mut().map(|part| &mut part.column);
        parts.chain(&mut self.included).chain(&mut self.predicate)
    }

    /// Returns whether the index has an entry for the row (QU-47).
    pub fn has_entry(&self, row: &[Value]) -> bool {
        self.predicate.is_none_or(|at| row[at] == Value::TRUE)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub id: ObjectId,
    pub name: String,
    pub text: String,
    pub enforced: bool,
    /// False: rows that were there before the constraint have not been checked (NOT VALID).
    pub is_validated: bool,
}

impl Table {
    /// Computes the derived fields of the definition.
    pub fn with_derived_fields(mut self) -> Table {
        self.layout = Layout::new(self.slots.iter().copied());
        self.slot_columns = vec![None; self.slots.len()];
        for (at, column) in self.columns.iter().enumerate() {
            self.slot_columns[column.slot] = Some(at);
        }
        self.order_indexes();
        self.keep_what_keys_need();
        self
    }

    /// Sorts indexes as MySQL does, which decides the index that reports a duplicate: unique ones without nullable
    /// parts, other unique ones, the rest, each in the order of definition.
    fn order_indexes(&mut self) {
        let columns = &self.columns;
        self.indexes.sort_by_key(|index| {
            let may_be_null = index.parts.iter().any(|part| columns[part.column].ty.nullable);
            (!index.unique, index.unique && may_be_null)
        });
    }

    /// Returns ` NAME=value` for each option that differs from its default.
    pub fn options_text(&self, order: &[&str], shown: impl Fn(&str) -> String) -> String {
        let mut text = String::new();
        for name in order {
            let Some((_, value)) = self.options.iter().find(|(known, _)| known == name) else { continue };
            let tells_zero = matches!(*name, "pack_keys" | "stats_persistent" | "stats_auto_recalc");
            if !value.eq_ignore_ascii_case("default") && (value != "0" || tells_zero) {
                text.extend([" ", &shown(name), "=", &value.to_uppercase()]);
            }
        }
        text
    }

    /// Returns the column of that name. Hidden columns of functional indexes have none.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| !column.is_hidden() && column.name.eq_ignore_ascii_case(name))
    }

    pub fn index(&self, name: &str) -> Option<usize> {
        self.indexes.iter().position(|index| index.name.eq_ignore_ascii_case(name))
    }

    pub fn auto_column(&self) -> Option<usize> {
        self.columns.iter().position(|column| column.auto_increment)
    }

    /// Returns the parts of the primary key, whether or not rows lie in its order.
    pub fn primary_parts(&self) -> Option<&[Part]> {
        let deferrable = || self.indexes.iter().find(|index| index.is_primary).map(|index| &index.parts[..]);
        self.primary.as_deref().or_else(deferrable)
    }

    pub fn maps(&self) -> Vec<MapId> {
        std::iter::once(self.map).chain(self.indexes.iter().map(|index| index.map)).collect()
    }

    /// Returns a table of these columns alone, over which expressions are bound.
    pub fn draft(name: &str, columns: &[TableColumn]) -> Table {
        let table = Table {
            id: UNNUMBERED,
            maker: Maker::default(),
            schema: String::new(),
            name: name.to_owned(),
            version: 0,
            map: 0,
            columns: columns.to_vec(),
            slots: Vec::new(),
            layout: Layout::default(),
            slot_columns: Vec::new(),
            primary: None,
            primary_id: UNNUMBERED,
            primary_name: String::new(),
            primary_form: KeyForm::Hashed,
            indexes: Vec::new(),
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            collation: Collation::Binary,
            comment: String::new(),
            options: Vec::new(),
            primary_using: false,
            created: 0,
            temporary: false,
            keyspace: None,
            query: None,
            is_unseen: false,
            computes: false,
            live: Arc::new(TableState::new(0)),
            formulas: OnceLock::new(),
        };
        table.laid_out()
    }

    /// Gives each column a slot of its own, in order, for a rebuild of the rows.
    pub fn laid_out(mut self) -> Table {
        self.lay_out();
        self.with_derived_fields()
    }

    /// Gives each column a slot of its own. Columns computed on reading and the order of indexes are not derived anew.
    pub fn lay_out(&mut self) {
        for (slot, column) in self.columns.iter_mut().enumerate() {
            column.slot = slot;
        }
        self.slots = self.columns.iter().map(|column| column.ty.storage).collect();
        self.layout = Layout::new(self.slots.iter().copied());
        self.slot_columns = (0..self.slots.len()).map(Some).collect();
    }

    /// Numbers the parts that have no number. A part keeps the number of the old definition's part of its name.
    pub(super) fn number_parts(&mut self, old: Option<&Table>, mut new_id: impl FnMut() -> ObjectId) {
        let mut number = |id: &mut ObjectId, known: Option<ObjectId>| {
            if *id == UNNUMBERED {
                *id = known.filter(|known| *known != UNNUMBERED).unwrap_or_else(&mut new_id);
            }
        };
        match self.primary {
            Some(_) => number(&mut self.primary_id, old.map(|old| old.primary_id)),
            None => (self.primary_id, self.primary_name) = (UNNUMBERED, String::new()),
        }
        for Index { id, name, .. } in &mut self.indexes {
            number(id, old.and_then(|old| Some(old.indexes.iter().find(|known| known.name == *name)?.id)));
        }
        for Check { id, name, .. } in &mut self.checks {
            number(id, old.and_then(|old| Some(old.checks.iter().find(|known| known.name == *name)?.id)));
        }
        for ForeignKey { id, name, .. } in &mut self.foreign_keys {
            number(id, old.and_then(|old| Some(old.foreign_keys.iter().find(|known| known.name == *name)?.id)));
        }
    }

    /// Returns a copy of the definition that may be changed.
    pub fn copy(&self) -> Table {
        Table {
            id: self.id,
            maker: self.maker,
            schema: self.schema.clone(),
            name: self.name.clone(),
            version: self.live.next_version(),
            map: self.map,
            columns: self.columns.clone(),
            slots: self.slots.clone(),
            layout: Layout::default(),
            slot_columns: Vec::new(),
            primary: self.primary.clone(),
            primary_id: self.primary_id,
            primary_name: self.primary_name.clone(),
            primary_form: self.primary_form,
            indexes: self.indexes.clone(),
            checks: self.checks.clone(),
            foreign_keys: self.foreign_keys.clone(),
            collation: self.collation,
            comment: self.comment.clone(),
            options: self.options.clone(),
            primary_using: self.primary_using,
            created: self.created,
            temporary: self.temporary,
            keyspace: self.keyspace,
            query: self.query.clone(),
            is_unseen: self.is_unseen,
            computes: false,
            live: self.live.clone(),
            formulas: OnceLock::new(),
        }
    }
}

/// GENERATED ALWAYS AS (text).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    pub text: String,
    pub stored: bool,
    /// A hidden column of a functional index, which no name refers to.
    pub hidden: bool,
    /// Rows store its values. Derived from the definition.
    pub kept: bool,
}
