//! Statements about accounts: users, roles, privileges.

use super::Name;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserName {
    Current,
    Named { user: String, host: String },
}

/// How an account is to know its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Secret {
    /// With this method, or the usual one.
    Password { plugin: Option<String>, text: String },
    /// As the method keeps it.
    Digest { plugin: String, bytes: Vec<u8> },
    /// The method alone: an empty password.
    Plugin(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub name: UserName,
    pub secret: Option<Secret>,
}

/// Options after the users. None: not given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub locked: Option<bool>,
    pub expired: Option<bool>,
    pub needs_tls: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleChoice {
    None,
    All,
    AllExcept(Vec<UserName>),
    Default,
    List(Vec<UserName>),
}

/// The object of GRANT, by its level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Level {
    Server,
    /// None: the current one. A pattern.
    Database(Option<String>),
    Table(Name),
}

/// A privilege's words in upper case, and the columns it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    pub words: String,
    pub columns: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accounting {
    CreateUser { users: Vec<User>, if_not_exists: bool, options: Options, default_roles: Option<RoleChoice> },
    AlterUser { users: Vec<User>, if_exists: bool, options: Options },
    DropUser { names: Vec<UserName>, if_exists: bool, roles: bool },
    RenameUser(Vec<(UserName, UserName)>),
    SetPassword { name: UserName, password: String },
    CreateRole { names: Vec<UserName>, if_not_exists: bool },
    Grant { given: Vec<Given>, level: Level, to: Vec<UserName>, grant_option: bool },
    Revoke { given: Vec<Given>, level: Level, from: Vec<UserName>, if_exists: bool, ignore_unknown: bool },
    RevokeAll { from: Vec<UserName>, if_exists: bool, ignore_unknown: bool },
    GrantRoles { roles: Vec<UserName>, to: Vec<UserName>, admin_option: bool },
    RevokeRoles { roles: Vec<UserName>, from: Vec<UserName>, if_exists: bool, ignore_unknown: bool },
    SetDefaultRole { roles: RoleChoice, of: Vec<UserName> },
    SetRole(RoleChoice),
}
