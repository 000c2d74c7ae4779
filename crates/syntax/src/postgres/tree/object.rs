//! Objects by their names: DROP, COMMENT, roles, privileges, databases, schemas.

use super::{AnyName, DefElem, Ident, Location, RangeVar, RoleSpec, Statement, TypeName, VariableSetStmt};

/// A kind of object. Kinds whose objects cannot be made here are in the list too: dropping one that does not exist is no error with IF EXISTS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectType {
    Aggregate,
    Collation,
    Column,
    Constraint,
    Database,
    Domain,
    Extension,
    Function,
    Index,
    MaterializedView,
    Procedure,
    Role,
    Routine,
    Schema,
    Sequence,
    Table,
    Tablespace,
    Trigger,
    Type,
    View,
}

/// The name of an object, in the form that its kind has.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectName {
    /// TABLE, INDEX, SEQUENCE, VIEW, MATERIALIZED VIEW.
    Relation(ObjectType, RangeVar),
    /// COLLATION; TYPE and DOMAIN in ALTER; COLUMN in COMMENT, whose last part is the column.
    Qualified(ObjectType, AnyName),
    /// DATABASE, EXTENSION, ROLE, SCHEMA, TABLESPACE.
    Plain(ObjectType, Ident),
    /// TYPE, DOMAIN.
    Type(ObjectType, TypeName),
    /// FUNCTION, PROCEDURE, ROUTINE, AGGREGATE.
    Function(ObjectType, ObjectWithArgs),
    /// CONSTRAINT, TRIGGER: `name ON relation`.
    OnRelation(ObjectType, Ident, RangeVar),
    /// CONSTRAINT: `name ON DOMAIN type`.
    OnDomain(Ident, TypeName),
}

/// A function and the types of its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectWithArgs {
    pub name: AnyName,
    /// None: without parentheses, which names the only function of that name.
    pub arguments: Option<Vec<TypeName>>,
}

/// DROP of all kinds but databases and roles.
#[derive(Clone, Debug, PartialEq)]
pub struct DropStmt {
    /// At least one, all of one kind.
    pub objects: Vec<ObjectName>,
    pub missing_ok: bool,
    pub cascade: bool,
    /// DROP INDEX CONCURRENTLY.
    pub concurrently: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CommentStmt {
    pub object: ObjectName,
    /// None: IS NULL, which removes the comment.
    pub comment: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateSchemaStmt {
    /// None: that of the role.
    pub name: Option<Ident>,
    pub role: Option<RoleSpec>,
    pub if_not_exists: bool,
    /// Tables, indexes, sequences, views and grants within the schema.
    pub elements: Vec<Statement>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreatedbStmt {
    pub name: Ident,
    /// Values are strings, integers, booleans; None: DEFAULT.
    pub options: Vec<DefElem>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AlterDatabaseStmt {
    pub name: Ident,
    pub options: Vec<DefElem>,
}

/// ALTER DATABASE SET and RESET.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterDatabaseSetStmt {
    pub name: Ident,
    pub set: VariableSetStmt,
}

#[derive(Clone, Debug, PartialEq)]
pub struct DropdbStmt {
    pub name: Ident,
    pub missing_ok: bool,
    /// The option FORCE.
    pub force: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleKind {
    Role,
    User,
    Group,
}

/// CREATE ROLE, USER, GROUP. The options have PostgreSQL's names: password, superuser, inherit, createrole, createdb, isreplication, bypassrls, canlogin, connectionlimit, validUntil, adminmembers, rolemembers, addroleto, sysid.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateRoleStmt {
    pub kind: RoleKind,
    pub name: Ident,
    pub options: Vec<DefElem>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AlterRoleStmt {
    pub role: RoleSpec,
    pub options: Vec<DefElem>,
    /// ALTER GROUP ... DROP USER: the members are removed.
    pub drops_members: bool,
}

/// ALTER ROLE SET and RESET.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterRoleSetStmt {
    /// None: ALL.
    pub role: Option<RoleSpec>,
    pub database: Option<Ident>,
    pub set: VariableSetStmt,
}

#[derive(Clone, Debug, PartialEq)]
pub struct DropRoleStmt {
    pub roles: Vec<RoleSpec>,
    pub missing_ok: bool,
}

/// REASSIGN OWNED BY roles TO role.
#[derive(Clone, Debug, PartialEq)]
pub struct ReassignOwnedStmt {
    pub roles: Vec<RoleSpec>,
    pub to: RoleSpec,
}

#[derive(Clone, Debug, PartialEq)]
pub struct DropOwnedStmt {
    pub roles: Vec<RoleSpec>,
    pub cascade: bool,
}

/// GRANT and REVOKE of privileges.
#[derive(Clone, Debug, PartialEq)]
pub struct GrantStmt {
    /// Not REVOKE.
    pub is_grant: bool,
    /// Empty: ALL.
    pub privileges: Vec<AccessPriv>,
    pub target: GrantTarget,
    pub grantees: Vec<RoleSpec>,
    /// WITH GRANT OPTION; of REVOKE, GRANT OPTION FOR.
    pub grant_option: bool,
    pub granted_by: Option<RoleSpec>,
    /// Of REVOKE.
    pub cascade: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AccessPriv {
    /// In lower case. None: ALL (columns).
    pub name: Option<String>,
    pub columns: Vec<Ident>,
    pub at: Location,
}

#[derive(Clone, Debug, PartialEq)]
pub enum GrantTarget {
    Relations(Vec<RangeVar>),
    Sequences(Vec<RangeVar>),
    Databases(Vec<Ident>),
    Schemas(Vec<Ident>),
    Tablespaces(Vec<Ident>),
    Languages(Vec<Ident>),
    Types(ObjectType, Vec<AnyName>),
    /// FUNCTION, PROCEDURE, ROUTINE.
    Functions(ObjectType, Vec<ObjectWithArgs>),
    /// `ALL TABLES IN SCHEMA a, b`: Table, Sequence, Function, Procedure or Routine.
    AllInSchemas(ObjectType, Vec<Ident>),
    Parameters(Vec<AnyName>),
}

/// GRANT and REVOKE of roles.
#[derive(Clone, Debug, PartialEq)]
pub struct GrantRoleStmt {
    pub is_grant: bool,
    pub roles: Vec<Ident>,
    pub grantees: Vec<RoleSpec>,
    /// admin, inherit, set; booleans.
    pub options: Vec<DefElem>,
    pub granted_by: Option<RoleSpec>,
    pub cascade: bool,
}

/// ALTER DEFAULT PRIVILEGES.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterDefaultPrivilegesStmt {
    pub roles: Vec<RoleSpec>,
    pub schemas: Vec<Ident>,
    /// The first FOR or IN that repeats an earlier one.
    pub redundant: Option<Location>,
    pub is_grant: bool,
    /// Empty: ALL.
    pub privileges: Vec<AccessPriv>,
    /// Table, Sequence, Function, Routine, Type or Schema.
    pub objects: ObjectType,
    pub grantees: Vec<RoleSpec>,
    pub grant_option: bool,
    pub cascade: bool,
}
