//! Types and domains that users make.

use super::{AnyName, Constraint, Expr, Ident, TypeName};

/// CREATE TYPE ... AS ENUM.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateEnumStmt {
    pub name: AnyName,
    pub labels: Vec<String>,
}

/// ALTER TYPE of an enum's labels.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterEnumStmt {
    pub name: AnyName,
    pub action: AlterEnumAction,
}

#[derive(Clone, Debug, PartialEq)]
pub enum AlterEnumAction {
    Add {
        label: String,
        if_not_exists: bool,
        /// None: behind all others.
        place: Option<EnumPlace>,
    },
    Rename {
        from: String,
        to: String,
    },
}

/// The place of a new label, by its neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnumPlace {
    Before(String),
    After(String),
}

/// CREATE TYPE ... AS (attribute, ...).
#[derive(Clone, Debug, PartialEq)]
pub struct CreateCompositeStmt {
    pub name: AnyName,
    pub attributes: Vec<AttributeDef>,
}

/// An attribute of a composite type.
#[derive(Clone, Debug, PartialEq)]
pub struct AttributeDef {
    pub name: Ident,
    pub ty: TypeName,
    pub collation: Option<AnyName>,
}

/// ALTER TYPE of a composite type's attributes.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterCompositeStmt {
    pub name: AnyName,
    pub commands: Vec<AlterAttributeCmd>,
}

/// One change of an attribute. CASCADE concerns tables of a type alone.
#[derive(Clone, Debug, PartialEq)]
pub enum AlterAttributeCmd {
    Add(AttributeDef),
    Drop {
        name: Ident,
        missing_ok: bool,
    },
    /// SET DATA TYPE
    Retype(AttributeDef),
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateDomainStmt {
    pub name: AnyName,
    pub ty: TypeName,
    pub collation: Option<AnyName>,
    /// DEFAULT is among them.
    pub constraints: Vec<Constraint>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AlterDomainStmt {
    pub name: AnyName,
    pub action: AlterDomainAction,
}

#[derive(Clone, Debug, PartialEq)]
pub enum AlterDomainAction {
    /// None: DROP DEFAULT.
    SetDefault(Option<Expr>),
    SetNotNull(bool),
    AddConstraint(Constraint),
    DropConstraint {
        constraint: Ident,
        missing_ok: bool,
        cascade: bool,
    },
    ValidateConstraint(Ident),
}
