//! ALTER TABLE and its relatives.

use super::{AnyName, ColumnDef, Constraint, DefElem, Expr, Ident, RangeVar, RoleSpec, TypeName};

/// ALTER TABLE, INDEX, SEQUENCE, VIEW, MATERIALIZED VIEW with a list of commands.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterTableStmt {
    pub kind: super::ObjectType,
    pub relation: RangeVar,
    pub missing_ok: bool,
    pub commands: Vec<AlterTableCmd>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum AlterTableCmd {
    AddColumn {
        column: Box<ColumnDef>,
        if_not_exists: bool,
    },
    DropColumn {
        name: Ident,
        missing_ok: bool,
        cascade: bool,
    },
    SetDefault {
        column: Ident,
        value: Expr,
    },
    DropDefault {
        column: Ident,
    },
    SetNotNull {
        column: Ident,
    },
    DropNotNull {
        column: Ident,
    },
    DropExpression {
        column: Ident,
        missing_ok: bool,
    },
    SetType {
        column: Ident,
        ty: Box<TypeName>,
        collation: Option<AnyName>,
        using: Option<Expr>,
    },
    SetStatistics {
        column: ColumnOrNumber,
        value: i32,
    },
    SetStorage {
        column: Ident,
        storage: String,
    },
    SetCompression {
        column: Ident,
        method: String,
    },
    SetColumnOptions {
        column: Ident,
        options: Vec<DefElem>,
    },
    ResetColumnOptions {
        column: Ident,
        options: Vec<DefElem>,
    },
    AddIdentity {
        column: Ident,
        always: bool,
        options: Vec<DefElem>,
    },
    /// SET GENERATED, SET sequence option, RESTART: the options `generated`, with `a` or `d`, and those of sequences.
    SetIdentity {
        column: Ident,
        options: Vec<DefElem>,
    },
    DropIdentity {
        column: Ident,
        missing_ok: bool,
    },
    AddConstraint(Box<Constraint>),
    AlterConstraint {
        name: Ident,
        deferrable: bool,
        initially_deferred: bool,
    },
    ValidateConstraint {
        name: Ident,
    },
    DropConstraint {
        name: Ident,
        missing_ok: bool,
        cascade: bool,
    },
    /// CLUSTER ON, SET WITHOUT CLUSTER.
    ClusterOn(Option<Ident>),
    SetWithoutOids,
    SetLogged(bool),
    SetAccessMethod(Ident),
    SetTablespace(Ident),
    SetOptions(Vec<DefElem>),
    ResetOptions(Vec<DefElem>),
    OwnerTo(RoleSpec),
    Inherit(RangeVar),
    NoInherit(RangeVar),
    OfType(TypeName),
    NotOfType,
    EnableTrigger(TriggerSelection),
    DisableTrigger(TriggerSelection),
    RowSecurity {
        enabled: bool,
    },
    ForceRowSecurity {
        forced: bool,
    },
    AttachPartition(Box<super::PartitionOf>),
    DetachPartition {
        partition: RangeVar,
        concurrently: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnOrNumber {
    Column(Ident),
    Number(i32),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TriggerSelection {
    Name(Ident),
    All,
    User,
}

/// ALTER ... RENAME TO.
#[derive(Clone, Debug, PartialEq)]
pub struct RenameStmt {
    pub object: super::ObjectName,
    pub missing_ok: bool,
    /// The relation itself, or the part of it that is renamed.
    pub part: RenamePart,
    pub to: Ident,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RenamePart {
    Whole,
    Column(Ident),
    Constraint(Ident),
}

/// ALTER ... OWNER TO of what is no relation.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterOwnerStmt {
    pub object: super::ObjectName,
    pub owner: RoleSpec,
}

/// ALTER ... SET SCHEMA.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterObjectSchemaStmt {
    pub object: super::ObjectName,
    pub missing_ok: bool,
    pub schema: Ident,
}
