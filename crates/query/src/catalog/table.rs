//! A table as statements see it: one version, never changed in place.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use datum::Storage;
use datum::key::KeyOrder;
use datum::row::Layout;
use engine::rows::MapId;

use crate::catalog::foreign_key::ForeignKey;
use crate::catalog::live::Live;
use crate::key_form::KeyForm;
use crate::types::{Collation, Type};
use crate::value::Value;

pub type TableId = u64;

#[derive(Debug)]
pub struct Table {
    pub id: TableId,
    pub schema: String,
    pub name: String,
    /// Moves with every change of the definition.
    pub version: u64,
    /// The rows, by primary key or by hidden row id.
    pub map: MapId,
    pub columns: Vec<TableColumn>,
    /// Storage types of all slots there ever were: those of dropped columns are kept, for rows that still have them.
    /// No slot is given to another column (QU-20).
    pub slots: Vec<Storage>,
    pub layout: Layout,
    /// Of each slot, the column that lives there.
    pub slot_columns: Vec<Option<usize>>,
    pub primary: Option<Vec<Part>>,
    /// Of the rows' keys. Row ids fit any.
    pub primary_form: KeyForm,
    pub indexes: Vec<Index>,
    pub checks: Vec<Check>,
    pub foreign_keys: Vec<ForeignKey>,
    pub collation: Collation,
    pub comment: String,
    /// Options from which nothing follows here, as they were written: the name in lower case and the value.
    pub options: Vec<(String, String)>,
    /// USING BTREE was written of the primary key.
    pub primary_using: bool,
    pub created: i64,
    /// Of one session, which drops it when it goes.
    pub temporary: bool,
    /// Has it columns that rows do not hold (QU-8)? Follows from the definition.
    pub computes: bool,
    /// What all versions of the table share.
    pub live: Arc<Live>,
    /// Expressions of its generated columns (`nodes::formula` alone knows their type: expressions lie above the catalog), bound by the first statement that uses this version.
    pub formulas: OnceLock<Box<dyn Any + Send + Sync>>,
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
    /// A character set or a collation was written of it.
    pub collated: bool,
    pub comment: String,
    /// What rows have that are older than the column.
    pub initial: Value,
    /// Its values follow from others of the row.
    pub generated: Option<Generated>,
}

impl TableColumn {
    /// A column with nothing but a name and a type.
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
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Default {
    /// NULL, or a value must be given.
    None,
    /// ALTER ... DROP DEFAULT: a value must be given, although NULL can be.
    Dropped,
    Value(Value),
    /// CURRENT_TIMESTAMP with so many digits.
    Now(u8),
    /// An expression in brackets, as text.
    Expression(String),
}

/// Options in the order of SHOW CREATE TABLE.
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

/// The same in the order of CREATE_OPTIONS.
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

/// One column of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub column: usize,
    /// Only so many characters or bytes.
    pub prefix: Option<u32>,
    pub order: KeyOrder,
}

#[derive(Clone, Debug)]
pub struct Index {
    pub name: String,
    pub map: MapId,
    pub unique: bool,
    pub parts: Vec<Part>,
    pub form: KeyForm,
    pub comment: String,
    pub invisible: bool,
    /// USING BTREE was written of it.
    pub using: bool,
    /// Made for a foreign key without being asked for: it goes when another index can do its work.
    pub generated: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub name: String,
    pub text: String,
    pub enforced: bool,
}

impl Table {
    /// Puts together what follows from the definition.
    pub fn settle(mut self) -> Table {
        self.layout = Layout::new(self.slots.iter().copied());
        self.slot_columns = vec![None; self.slots.len()];
        for (at, column) in self.columns.iter().enumerate() {
            self.slot_columns[column.slot] = Some(at);
        }
        self.order_indexes();
        self.keep_what_keys_need();
        self
    }

    /// MySQL's order, which decides which of several rows in the way is met first: unique ones without NULL, other unique ones, the rest; each as they were defined.
    fn order_indexes(&mut self) {
        let columns = &self.columns;
        self.indexes.sort_by_key(|index| {
            let may_be_null = index.parts.iter().any(|part| columns[part.column].ty.nullable);
            (!index.unique, index.unique && may_be_null)
        });
    }

    /// ` NAME=value` of each option that is not as it would be without a word.
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

    /// The column of that name; those behind functional indexes have none.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| !column.is_hidden() && column.name.eq_ignore_ascii_case(name))
    }

    pub fn index(&self, name: &str) -> Option<usize> {
        self.indexes.iter().position(|index| index.name.eq_ignore_ascii_case(name))
    }

    pub fn auto_column(&self) -> Option<usize> {
        self.columns.iter().position(|column| column.auto_increment)
    }

    pub fn maps(&self) -> Vec<MapId> {
        std::iter::once(self.map).chain(self.indexes.iter().map(|index| index.map)).collect()
    }

    /// Columns alone, for expressions to be bound over.
    pub fn draft(name: &str, columns: &[TableColumn]) -> Table {
        let table = Table {
            id: 0,
            schema: String::new(),
            name: name.to_owned(),
            version: 0,
            map: 0,
            columns: columns.to_vec(),
            slots: Vec::new(),
            layout: Layout::default(),
            slot_columns: Vec::new(),
            primary: None,
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
            computes: false,
            live: Arc::new(Live::new(0)),
            formulas: OnceLock::new(),
        };
        table.laid_out()
    }

    /// Gives every column a slot of its own, in order: for rows that are written anew.
    pub fn laid_out(mut self) -> Table {
        for (slot, column) in self.columns.iter_mut().enumerate() {
            column.slot = slot;
        }
        self.slots = self.columns.iter().map(|column| column.ty.storage).collect();
        self.settle()
    }

    /// The same definition as a new version to be changed.
    pub fn copy(&self) -> Table {
        Table {
            id: self.id,
            schema: self.schema.clone(),
            name: self.name.clone(),
            version: self.version + 1,
            map: self.map,
            columns: self.columns.clone(),
            slots: self.slots.clone(),
            layout: Layout::default(),
            slot_columns: Vec::new(),
            primary: self.primary.clone(),
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
    /// It stands behind a part of a functional index, and no name reaches it.
    pub hidden: bool,
    /// Rows hold its values. Follows from the definition.
    pub kept: bool,
}
