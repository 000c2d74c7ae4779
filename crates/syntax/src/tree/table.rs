//! Definitions of tables, indexes and views, and their changes.

use super::{ColumnType, Duplicates, Expr, Ident, Name, Query, UserName};

#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    pub temporary: bool,
    pub if_not_exists: bool,
    pub name: Name,
    pub like: Option<Name>,
    pub columns: Vec<ColumnDef>,
    pub constraints: Vec<TableConstraint>,
    pub options: Vec<TableOption>,
    /// The treatment of rows of the query whose keys clash.
    pub duplicates: Duplicates,
    pub query: Option<Box<Query>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDef {
    pub name: Ident,
    pub ty: ColumnType,
    pub options: Vec<ColumnOption>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ColumnOption {
    Null,
    NotNull,
    Default(DefaultValue),
    /// ON UPDATE CURRENT_TIMESTAMP(scale)
    OnUpdateNow(u64),
    AutoIncrement,
    PrimaryKey,
    Unique,
    Comment(String),
    Collate(String),
    Visible(bool),
    Generated {
        expr: Expr,
        stored: bool,
    },
    Check(Check),
    References(References),
    /// COLUMN_FORMAT, STORAGE, ENGINE_ATTRIBUTE, SECONDARY_ENGINE_ATTRIBUTE, SRID: name in lower case and value.
    Other {
        name: String,
        value: String,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum DefaultValue {
    /// A literal, signed or not.
    Constant(Expr),
    /// CURRENT_TIMESTAMP and its synonyms, with so many digits of a second.
    Now(u64),
    /// `(expr)`
    Expression(Expr),
}

/// `CONSTRAINT name CHECK (expr) [NOT] ENFORCED`
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    pub name: Option<Ident>,
    pub expr: Expr,
    pub enforced: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TableConstraint {
    Index(IndexDef),
    Foreign(ForeignKey),
    Check(Check),
}

#[derive(Clone, Debug, PartialEq)]
pub struct IndexDef {
    pub kind: IndexKind,
    /// CONSTRAINT name; the index has it where it has none of its own. Never of a plain index.
    pub constraint: Option<Ident>,
    pub name: Option<Ident>,
    pub parts: Vec<KeyPart>,
    pub options: IndexOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    Primary,
    Unique,
    Plain,
    Fulltext,
    Spatial,
}

#[derive(Clone, Debug, PartialEq)]
pub struct KeyPart {
    pub key: PartKey,
    pub descending: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum PartKey {
    Column {
        name: Ident,
        length: Option<u64>,
    },
    /// `(expr)`
    Expr(Expr),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexOptions {
    /// BTREE, HASH or RTREE in lower case.
    pub algorithm: Option<String>,
    pub comment: Option<String>,
    pub visible: Option<bool>,
    pub key_block_size: Option<u64>,
    pub parser: Option<String>,
    pub engine_attribute: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ForeignKey {
    pub constraint: Option<Ident>,
    /// FOREIGN KEY name
    pub index: Option<Ident>,
    pub columns: Vec<Ident>,
    pub references: References,
}

#[derive(Clone, Debug, PartialEq)]
pub struct References {
    pub table: Name,
    pub columns: Vec<Ident>,
    pub on_delete: Option<ReferentialAction>,
    pub on_update: Option<ReferentialAction>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferentialAction {
    Restrict,
    Cascade,
    SetNull,
    NoAction,
    SetDefault,
}

/// `name = value`, the name in lower case: `engine`, `charset`, `collate`, `comment`, `auto_increment`, `row_format`, ...
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableOption {
    pub name: String,
    pub value: OptionValue,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionValue {
    Number(u64),
    /// DEFAULT, DYNAMIC, InnoDB, utf8mb4.
    Word(String),
    Text(String),
    Names(Vec<Name>),
}

impl OptionValue {
    /// The value without quotes.
    pub fn text(&self) -> String {
        match self {
            OptionValue::Number(number) => number.to_string(),
            OptionValue::Word(text) | OptionValue::Text(text) => text.clone(),
            OptionValue::Names(names) => names.iter().map(|name| name.name.as_str()).collect::<Vec<_>>().join(","),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateIndex {
    pub table: Name,
    pub index: IndexDef,
}

/// One operation of ALTER TABLE.
#[derive(Clone, Debug, PartialEq)]
pub enum Alteration {
    AddColumn {
        column: ColumnDef,
        position: Option<Position>,
    },
    Add(TableConstraint),
    DropColumn(Ident),
    DropIndex(Ident),
    DropPrimaryKey,
    DropForeignKey(Ident),
    DropCheck(Ident),
    /// DROP CONSTRAINT: of whatever kind.
    DropConstraint(Ident),
    Modify {
        column: ColumnDef,
        position: Option<Position>,
    },
    Change {
        old: Ident,
        column: ColumnDef,
        position: Option<Position>,
    },
    /// ALTER column SET DEFAULT, DROP DEFAULT.
    AlterDefault {
        column: Ident,
        default: Option<DefaultValue>,
    },
    ColumnVisible {
        column: Ident,
        visible: bool,
    },
    RenameColumn {
        from: Ident,
        to: Ident,
    },
    RenameIndex {
        from: Ident,
        to: Ident,
    },
    RenameTable(Name),
    /// ALTER CHECK, ALTER CONSTRAINT: [NOT] ENFORCED.
    Enforce {
        constraint: Ident,
        enforced: bool,
    },
    IndexVisible {
        index: Ident,
        visible: bool,
    },
    Option(TableOption),
    /// CONVERT TO CHARACTER SET. None: DEFAULT.
    Convert {
        charset: Option<String>,
        collation: Option<String>,
    },
    /// FORCE: all rows are written anew.
    Rebuild,
    OrderBy(Vec<Ident>),
    /// ALGORITHM, LOCK, WITH VALIDATION, ENABLE KEYS, DISABLE KEYS: name in lower case and value.
    Hint {
        name: String,
        value: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    First,
    After(Ident),
}

/// CREATE VIEW and ALTER VIEW.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateView {
    pub or_replace: bool,
    /// ALTER VIEW.
    pub alter: bool,
    pub algorithm: ViewAlgorithm,
    pub definer: Option<UserName>,
    /// SQL SECURITY INVOKER.
    pub invoker: bool,
    pub name: Name,
    pub columns: Vec<Ident>,
    pub query: Box<Query>,
    pub check: ViewCheck,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewAlgorithm {
    Undefined,
    Merge,
    Temptable,
}

/// WITH CHECK OPTION.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewCheck {
    None,
    Local,
    Cascaded,
}
