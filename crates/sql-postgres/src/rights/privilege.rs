//! Privileges: their names, letters and bits, and those that each kind of object has.

use crate::error::{PgError, Result, state};

/// A set of privileges, as `AccessGrant` keeps it. The bits are those of PostgreSQL's `AclMode`.
pub type Privileges = u32;

pub const INSERT: Privileges = 1;
pub const SELECT: Privileges = 1 << 1;
pub const UPDATE: Privileges = 1 << 2;
pub const DELETE: Privileges = 1 << 3;
pub const TRUNCATE: Privileges = 1 << 4;
pub const REFERENCES: Privileges = 1 << 5;
pub const TRIGGER: Privileges = 1 << 6;
pub const EXECUTE: Privileges = 1 << 7;
pub const USAGE: Privileges = 1 << 8;
pub const CREATE: Privileges = 1 << 9;
pub const TEMPORARY: Privileges = 1 << 10;
pub const CONNECT: Privileges = 1 << 11;
pub const SET: Privileges = 1 << 12;
pub const ALTER_SYSTEM: Privileges = 1 << 13;

/// The letter and the name of each privilege, in the order in which an `aclitem` shows them.
pub const NAMED: [(Privileges, char, &str); 14] = [
    (INSERT, 'a', "INSERT"),
    (SELECT, 'r', "SELECT"),
    (UPDATE, 'w', "UPDATE"),
    (DELETE, 'd', "DELETE"),
    (TRUNCATE, 'D', "TRUNCATE"),
    (REFERENCES, 'x', "REFERENCES"),
    (TRIGGER, 't', "TRIGGER"),
    (EXECUTE, 'X', "EXECUTE"),
    (USAGE, 'U', "USAGE"),
    (CREATE, 'C', "CREATE"),
    (TEMPORARY, 'T', "TEMPORARY"),
    (CONNECT, 'c', "CONNECT"),
    (SET, 's', "SET"),
    (ALTER_SYSTEM, 'A', "ALTER SYSTEM"),
];

/// The options of a membership, in the place of privileges.
pub const MEMBER: Privileges = 1;
pub const INHERIT_OPTION: Privileges = 1 << 1;
pub const SET_OPTION: Privileges = 1 << 2;

/// A kind of object with privileges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectClass {
    /// A table or view.
    Relation,
    Column,
    Sequence,
    Schema,
    Database,
    /// Functions, of which none has privileges here.
    Function,
}

impl ObjectClass {
    /// Returns all privileges of the kind.
    pub fn all(self) -> Privileges {
        match self {
            ObjectClass::Relation => INSERT | SELECT | UPDATE | DELETE | TRUNCATE | REFERENCES | TRIGGER,
            ObjectClass::Column => INSERT | SELECT | UPDATE | REFERENCES,
            ObjectClass::Sequence => USAGE | SELECT | UPDATE,
            ObjectClass::Schema => USAGE | CREATE,
            ObjectClass::Database => CREATE | TEMPORARY | CONNECT,
            ObjectClass::Function => EXECUTE,
        }
    }

    /// Returns the privileges that everybody has at first.
    pub fn of_public(self) -> Privileges {
        match self {
            ObjectClass::Database => TEMPORARY | CONNECT,
            ObjectClass::Function => EXECUTE,
            _ => 0,
        }
    }

    fn name(self) -> &'static str {
        match self {
            ObjectClass::Relation => "relation",
            ObjectClass::Column => "column",
            ObjectClass::Sequence => "sequence",
            ObjectClass::Schema => "schema",
            ObjectClass::Database => "database",
            ObjectClass::Function => "function",
        }
    }
}

/// Returns the privilege of that name, which GRANT writes in lower case.
pub fn named(name: &str) -> Result<Privileges> {
    let upper = name.to_ascii_uppercase();
    let upper = if upper == "TEMP" { "TEMPORARY" } else { &upper };
    match NAMED.iter().find(|(_, _, known)| *known == upper) {
        Some((bit, ..)) => Ok(*bit),
        None => Err(PgError::new(state::SYNTAX_ERROR, format!("unrecognized privilege type \"{name}\""))),
    }
}

/// Returns the name of one privilege.
pub fn name_of(bit: Privileges) -> &'static str {
    NAMED.iter().find(|(known, ..)| *known == bit).map_or("", |(.., name)| name)
}

/// Returns the error for a privilege that the kind of object does not have.
pub fn invalid(bit: Privileges, class: ObjectClass) -> PgError {
    let message = format!("invalid privilege type {} for {}", name_of(bit), class.name());
    PgError::new(state::INVALID_GRANT_OPERATION, message)
}

/// Returns the letters of privileges, with a `*` behind those that may be given on.
pub fn letters(privileges: Privileges, grantable: Privileges) -> String {
    let mut text = String::new();
    for (bit, letter, _) in NAMED {
        if privileges & bit != 0 {
            text.push(letter);
        }
        if grantable & bit != 0 {
            text.push('*');
        }
    }
    text
}
