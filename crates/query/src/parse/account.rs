//! Statements about accounts: users, roles, privileges.
//!
//! A name comes as `'u'@'h'`, as `u@h`, which is one word to the tokenizer, or as anything between.

use sqlparser::tokenizer::Token;

use crate::error::{Result, SqlError};
use crate::parse::cursor::Cursor;
use crate::parse::statement::{Name, Statement};

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

#[derive(Clone, Debug)]
pub struct User {
    pub name: UserName,
    pub secret: Option<Secret>,
}

/// What follows the users. None: not said.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub locked: Option<bool>,
    pub expired: Option<bool>,
    pub needs_tls: Option<bool>,
}

#[derive(Clone, Debug)]
pub enum RoleChoice {
    None,
    All,
    AllExcept(Vec<UserName>),
    Default,
    List(Vec<UserName>),
}

/// What GRANT names, by its level.
#[derive(Clone, Debug)]
pub enum Level {
    Server,
    /// None: the current one. A pattern.
    Database(Option<String>),
    Table(Name),
}

/// A privilege's words, and the columns it is for.
#[derive(Clone, Debug)]
pub struct Given {
    pub words: String,
    pub columns: Vec<String>,
}

#[derive(Clone, Debug)]
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

impl Cursor<'_> {
    fn text_token(&mut self) -> Result<String> {
        self.text_or_name()
    }

    pub fn user_name(&mut self) -> Result<UserName> {
        if self.peek_word(0, "current_user") {
            self.word("current_user");
            self.empty_brackets()?;
            return Ok(UserName::Current);
        }
        if self.peek_word(0, "user") && self.parser.peek_nth_token_ref(1).token == Token::LParen {
            self.word("user");
            self.empty_brackets()?;
            return Ok(UserName::Current);
        }
        let is_bare = matches!(&self.parser.peek_token_ref().token, Token::Word(word) if word.quote_style.is_none());
        let first = self.text_token()?;
        if is_bare && let Some((user, host)) = first.split_once('@') {
            let host = if host.is_empty() { self.text_token()? } else { host.to_owned() };
            return Ok(named(user, &host));
        }
        if self.take(&Token::AtSign) {
            let host = self.text_token()?;
            return Ok(named(&first, &host));
        }
        let follows = match &self.parser.peek_token_ref().token {
            Token::Word(word) if word.quote_style.is_none() => word.value.strip_prefix('@').map(str::to_owned),
            _ => None,
        };
        let Some(host) = follows else { return Ok(named(&first, "%")) };
        self.parser.next_token();
        let host = if host.is_empty() { self.text_token()? } else { host };
        Ok(named(&first, &host))
    }

    fn empty_brackets(&mut self) -> Result<()> {
        if self.take(&Token::LParen) { self.expect_token(&Token::RParen) } else { Ok(()) }
    }

    pub fn user_names(&mut self) -> Result<Vec<UserName>> {
        let mut names = vec![self.user_name()?];
        while self.take(&Token::Comma) {
            names.push(self.user_name()?);
        }
        Ok(names)
    }

    fn users(&mut self) -> Result<Vec<User>> {
        let mut users = Vec::new();
        loop {
            let name = self.user_name()?;
            let secret = if self.word("identified") { Some(self.secret()?) } else { None };
            if self.peek_word(0, "replace") || self.peek_word(0, "retain") || self.peek_word(0, "discard") {
                return Err(SqlError::unsupported("a second password of an account"));
            }
            if self.peek_word(0, "and") {
                return Err(SqlError::unsupported("a second factor of an account"));
            }
            users.push(User { name, secret });
            if !self.take(&Token::Comma) {
                return Ok(users);
            }
        }
    }

    fn secret(&mut self) -> Result<Secret> {
        if self.word("by") {
            if self.words(&["random", "password"]) {
                return Err(SqlError::unsupported("RANDOM PASSWORD"));
            }
            return Ok(Secret::Password { plugin: None, text: self.quoted_text()? });
        }
        self.expect("with")?;
        let plugin = self.text_token()?.to_ascii_lowercase();
        if self.word("by") {
            if self.words(&["random", "password"]) {
                return Err(SqlError::unsupported("RANDOM PASSWORD"));
            }
            return Ok(Secret::Password { plugin: Some(plugin), text: self.quoted_text()? });
        }
        if !self.word("as") {
            return Ok(Secret::Plugin(plugin));
        }
        let bytes = match self.parser.peek_token_ref().token.clone() {
            Token::HexStringLiteral(digits) => {
                self.parser.next_token();
                let byte = |at: usize| digits.get(2 * at..2 * at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
                (0..digits.len() / 2).map(byte).collect::<Option<Vec<u8>>>().ok_or_else(|| self.error_here())?
            }
            _ => self.quoted_text()?.into_bytes(),
        };
        Ok(Secret::Digest { plugin, bytes })
    }

    fn quoted_text(&mut self) -> Result<String> {
        match self.parser.peek_token_ref().token.clone() {
            Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => {
                self.parser.next_token();
                Ok(text)
            }
            _ => Err(self.error_here()),
        }
    }

    fn account_options(&mut self) -> Result<Options> {
        let mut options = Options::default();
        loop {
            if self.word("require") {
                if self.word("none") {
                    options.needs_tls = Some(false);
                } else if self.word("ssl") {
                    options.needs_tls = Some(true);
                } else {
                    return Err(SqlError::unsupported("REQUIRE of a client's certificate"));
                }
            } else if self.words(&["account", "lock"]) {
                options.locked = Some(true);
            } else if self.words(&["account", "unlock"]) {
                options.locked = Some(false);
            } else if self.words(&["password", "expire"]) {
                if self.word("interval") {
                    return Err(SqlError::unsupported("PASSWORD EXPIRE INTERVAL"));
                }
                // Without a lifetime of passwords both mean that they do not expire.
                let lasts = self.word("never") || self.word("default");
                options.expired = if lasts { options.expired } else { Some(true) };
            } else if self.word("password") {
                // HISTORY, REUSE INTERVAL, REQUIRE CURRENT: the server's default is that there are none.
                let known =
                    self.word("history") || self.words(&["reuse", "interval"]) || self.words(&["require", "current"]);
                if !known || !self.word("default") {
                    return Err(SqlError::unsupported("rules for new passwords"));
                }
            } else if ["with", "comment", "attribute", "failed_login_attempts", "password_lock_time"]
                .iter()
                .any(|word| self.peek_word(0, word))
            {
                return Err(SqlError::unsupported("limits and comments of an account"));
            } else {
                return Ok(options);
            }
        }
    }

    fn role_choice(&mut self) -> Result<RoleChoice> {
        if self.word("none") {
            return Ok(RoleChoice::None);
        }
        if self.word("default") {
            return Ok(RoleChoice::Default);
        }
        if self.word("all") {
            let except = self.word("except");
            return Ok(if except { RoleChoice::AllExcept(self.user_names()?) } else { RoleChoice::All });
        }
        self.user_names().map(RoleChoice::List)
    }

    /// After CREATE.
    pub fn create_account(&mut self) -> Result<Statement> {
        let role = self.word("role");
        if !role {
            self.expect("user")?;
        }
        let if_not_exists = self.words(&["if", "not", "exists"]);
        if role {
            return Ok(accounting(Accounting::CreateRole { names: self.user_names()?, if_not_exists }));
        }
        let users = self.users()?;
        let default_roles = if self.words(&["default", "role"]) { Some(self.role_choice()?) } else { None };
        let options = self.account_options()?;
        Ok(accounting(Accounting::CreateUser { users, if_not_exists, options, default_roles }))
    }

    /// After ALTER USER.
    pub fn alter_user(&mut self) -> Result<Statement> {
        let if_exists = self.if_exists();
        let users = self.users()?;
        if self.words(&["default", "role"]) {
            let of = users.into_iter().map(|user| user.name).collect();
            return Ok(accounting(Accounting::SetDefaultRole { roles: self.role_choice()?, of }));
        }
        let options = self.account_options()?;
        Ok(accounting(Accounting::AlterUser { users, if_exists, options }))
    }

    /// After DROP USER or DROP ROLE.
    pub fn drop_account(&mut self, roles: bool) -> Result<Statement> {
        let if_exists = self.if_exists();
        Ok(accounting(Accounting::DropUser { names: self.user_names()?, if_exists, roles }))
    }

    /// After RENAME USER.
    pub fn rename_user(&mut self) -> Result<Statement> {
        let mut pairs = Vec::new();
        loop {
            let from = self.user_name()?;
            self.expect("to")?;
            pairs.push((from, self.user_name()?));
            if !self.take(&Token::Comma) {
                return Ok(accounting(Accounting::RenameUser(pairs)));
            }
        }
    }

    /// After SET: PASSWORD, ROLE, DEFAULT ROLE. None: it is something else.
    pub fn set_account(&mut self) -> Result<Option<Statement>> {
        if self.peek_word(0, "password") {
            self.word("password");
            let name = if self.word("for") { self.user_name()? } else { UserName::Current };
            if self.words(&["to", "random"]) {
                return Err(SqlError::unsupported("RANDOM PASSWORD"));
            }
            if !self.take(&Token::Assignment) {
                self.expect_token(&Token::Eq)?;
            }
            let password = self.quoted_text()?;
            return Ok(Some(accounting(Accounting::SetPassword { name, password })));
        }
        if self.peek_word(0, "role") && !self.is_assigned(1) {
            self.word("role");
            return Ok(Some(accounting(Accounting::SetRole(self.role_choice()?))));
        }
        if self.words(&["default", "role"]) {
            let roles = self.role_choice()?;
            self.expect("to")?;
            return Ok(Some(accounting(Accounting::SetDefaultRole { roles, of: self.user_names()? })));
        }
        Ok(None)
    }

    fn is_assigned(&self, nth: usize) -> bool {
        matches!(self.parser.peek_nth_token_ref(nth).token, Token::Eq | Token::Assignment)
    }

    /// Do privileges follow, or roles? Only the former have an ON before `end`.
    fn names_privileges(&self, end: &str) -> bool {
        for nth in 0.. {
            if matches!(self.parser.peek_nth_token_ref(nth).token, Token::EOF) || self.peek_word(nth, end) {
                return false;
            }
            if self.peek_word(nth, "on") {
                return true;
            }
        }
        false
    }

    fn given(&mut self) -> Result<Vec<Given>> {
        let mut list = Vec::new();
        loop {
            let mut words = Vec::new();
            while let Token::Word(word) = &self.parser.peek_token_ref().token {
                if self.peek_word(0, "on") {
                    break;
                }
                words.push(word.value.to_ascii_uppercase());
                self.parser.next_token();
            }
            if words.is_empty() {
                return Err(self.error_here());
            }
            let mut columns = Vec::new();
            if self.take(&Token::LParen) {
                loop {
                    columns.push(self.identifier()?);
                    if !self.take(&Token::Comma) {
                        break;
                    }
                }
                self.expect_token(&Token::RParen)?;
            }
            list.push(Given { words: words.join(" "), columns });
            if !self.take(&Token::Comma) {
                return Ok(list);
            }
        }
    }

    fn level(&mut self) -> Result<Level> {
        self.expect("on")?;
        if self.peek_word(0, "function") || self.peek_word(0, "procedure") {
            return Err(SqlError::unsupported("privileges of routines"));
        }
        if self.peek_word(0, "table") && self.parser.peek_nth_token_ref(1).token != Token::Period {
            self.word("table");
        }
        if self.take(&Token::Mul) {
            if !self.take(&Token::Period) {
                return Ok(Level::Database(None));
            }
            self.expect_token(&Token::Mul)?;
            return Ok(Level::Server);
        }
        let first = self.identifier()?;
        if !self.take(&Token::Period) {
            return Ok(Level::Table(Name { schema: None, name: first }));
        }
        if self.take(&Token::Mul) {
            return Ok(Level::Database(Some(first)));
        }
        Ok(Level::Table(Name { schema: Some(first), name: self.identifier()? }))
    }

    pub fn grant(&mut self) -> Result<Statement> {
        self.expect("grant")?;
        if self.peek_word(0, "proxy") {
            return Err(SqlError::unsupported("GRANT PROXY"));
        }
        if !self.names_privileges("to") {
            let roles = self.user_names()?;
            self.expect("to")?;
            let to = self.user_names()?;
            let admin_option = self.words(&["with", "admin", "option"]);
            return Ok(accounting(Accounting::GrantRoles { roles, to, admin_option }));
        }
        let (given, level) = (self.given()?, self.level()?);
        self.expect("to")?;
        let to = self.user_names()?;
        let grant_option = self.words(&["with", "grant", "option"]);
        if self.peek_word(0, "as") {
            return Err(SqlError::unsupported("GRANT ... AS"));
        }
        Ok(accounting(Accounting::Grant { given, level, to, grant_option }))
    }

    pub fn revoke(&mut self) -> Result<Statement> {
        self.expect("revoke")?;
        let if_exists = self.if_exists();
        let all = self.words(&["all", "privileges"])
            || self.peek_word(0, "all") && !self.names_privileges("from") && self.word("all");
        if all && self.take(&Token::Comma) {
            if !self.words(&["grant", "option"]) {
                return Err(self.error_here());
            }
            self.expect("from")?;
            let from = self.user_names()?;
            let ignore_unknown = self.words(&["ignore", "unknown", "user"]);
            return Ok(accounting(Accounting::RevokeAll { from, if_exists, ignore_unknown }));
        }
        if !all && !self.names_privileges("from") {
            let roles = self.user_names()?;
            self.expect("from")?;
            let from = self.user_names()?;
            let ignore_unknown = self.words(&["ignore", "unknown", "user"]);
            return Ok(accounting(Accounting::RevokeRoles { roles, from, if_exists, ignore_unknown }));
        }
        let given = if all { vec![Given { words: "ALL".to_owned(), columns: Vec::new() }] } else { self.given()? };
        let level = self.level()?;
        self.expect("from")?;
        let from = self.user_names()?;
        let ignore_unknown = self.words(&["ignore", "unknown", "user"]);
        Ok(accounting(Accounting::Revoke { given, level, from, if_exists, ignore_unknown }))
    }
}

fn named(user: &str, host: &str) -> UserName {
    UserName::Named { user: user.to_owned(), host: host.to_ascii_lowercase() }
}

fn accounting(what: Accounting) -> Statement {
    Statement::Accounting(Box::new(what))
}
