//! Statements about accounts: users, roles, privileges.

use super::keyword::Kw;
use super::lexer::Kind;
use super::parser::Parser;
use crate::error::Result;
use crate::tree::{Accounting, Given, Level, Literal, Name, Options, RoleChoice, Secret, Statement, User, UserName};

fn accounting(what: Accounting) -> Statement {
    Statement::Accounting(Box::new(what))
}

/// A host is compared in lower case, as MySQL stores it.
fn named(user: String, host: &str) -> UserName {
    UserName::Named { user, host: host.to_ascii_lowercase() }
}

impl Parser<'_> {
    pub(super) fn user_name(&mut self) -> Result<UserName> {
        let is_call = self.kw() == Kw::USER && self.peek(1).kind == Kind::Open;
        if self.kw() == Kw::CURRENT_USER || is_call {
            self.take();
            if self.accept(Kind::Open) {
                self.expect(Kind::Close)?;
            }
            return Ok(UserName::Current);
        }
        let user = self.text_or_name()?;
        if !self.at(Kind::Variable) {
            return Ok(named(user, "%"));
        }
        // `u@h` and `'u'@'h'`: the lexer takes the host for a variable's name.
        let host = &self.text_of(self.token())[1..];
        let Some(quote) = host.bytes().next() else {
            self.take();
            return Ok(named(user, ""));
        };
        let host = match quote {
            b'\'' | b'"' | b'`' => {
                let escapes = quote != b'`' && !self.mode.no_backslash_escapes;
                super::lexer::unescape(&host[1..host.len() - 1], quote as char, escapes)
            }
            _ => host.to_owned(),
        };
        self.take();
        Ok(named(user, &host))
    }

    fn user_names(&mut self) -> Result<Vec<UserName>> {
        self.list(Parser::user_name)
    }

    fn users(&mut self) -> Result<Vec<User>> {
        self.list(|parser| {
            let name = parser.user_name()?;
            let secret = if parser.word(Kw::IDENTIFIED) { Some(parser.secret()?) } else { None };
            match parser.kw() {
                Kw::REPLACE | Kw::RETAIN | Kw::DISCARD => {
                    return Err(parser.unsupported("a second password of an account"));
                }
                Kw::AND => return Err(parser.unsupported("a second factor of an account")),
                _ => {}
            }
            Ok(User { name, secret })
        })
    }

    fn secret(&mut self) -> Result<Secret> {
        let mut plugin = None;
        if self.word(Kw::WITH) {
            plugin = Some(self.text_or_name()?.to_ascii_lowercase());
        }
        if self.word(Kw::BY) {
            if self.words(&[Kw::RANDOM, Kw::PASSWORD]) {
                return Err(self.unsupported("RANDOM PASSWORD"));
            }
            return Ok(Secret::Password { plugin, text: self.string()? });
        }
        let plugin = plugin.ok_or_else(|| self.error())?;
        if !self.word(Kw::AS) {
            return Ok(Secret::Plugin(plugin));
        }
        let bytes = match self.kind() {
            Kind::Hex => match self.literal()? {
                Literal::Hex(bytes) => bytes,
                _ => return Err(self.error()),
            },
            _ => self.string()?.into_bytes(),
        };
        Ok(Secret::Digest { plugin, bytes })
    }

    fn account_options(&mut self) -> Result<Options> {
        let mut options = Options::default();
        let start = self.token().start;
        loop {
            match self.kw() {
                Kw::REQUIRE if self.token().start != start => return Err(self.error()),
                Kw::REQUIRE => {
                    self.take();
                    if self.word(Kw::NONE) {
                        options.needs_tls = Some(false);
                    } else if self.word(Kw::SSL) {
                        options.needs_tls = Some(true);
                    } else {
                        return Err(self.unsupported("REQUIRE of a client's certificate"));
                    }
                }
                Kw::ACCOUNT => {
                    self.take();
                    if self.word(Kw::UNLOCK) {
                        options.locked = Some(false);
                    } else {
                        self.expect_word(Kw::LOCK)?;
                        options.locked = Some(true);
                    }
                }
                Kw::PASSWORD => {
                    self.take();
                    if self.word(Kw::EXPIRE) {
                        if self.kw() == Kw::INTERVAL {
                            return Err(self.unsupported("PASSWORD EXPIRE INTERVAL"));
                        }
                        // Without a lifetime of passwords both mean that they do not expire.
                        if self.any(&[Kw::NEVER, Kw::DEFAULT]).is_none() {
                            options.expired = Some(true);
                        }
                        continue;
                    }
                    // HISTORY, REUSE INTERVAL, REQUIRE CURRENT: the server's default is that there are none.
                    let known = self.word(Kw::HISTORY)
                        || self.words(&[Kw::REUSE, Kw::INTERVAL])
                        || self.words(&[Kw::REQUIRE, Kw::CURRENT]);
                    if !known || !self.word(Kw::DEFAULT) {
                        return Err(self.unsupported("rules for new passwords"));
                    }
                }
                Kw::WITH | Kw::COMMENT | Kw::ATTRIBUTE | Kw::FAILED_LOGIN_ATTEMPTS | Kw::PASSWORD_LOCK_TIME => {
                    return Err(self.unsupported("limits and comments of an account"));
                }
                _ => return Ok(options),
            }
        }
    }

    fn role_choice(&mut self) -> Result<RoleChoice> {
        if self.word(Kw::NONE) {
            return Ok(RoleChoice::None);
        }
        if self.word(Kw::DEFAULT) {
            return Ok(RoleChoice::Default);
        }
        if self.word(Kw::ALL) {
            let except = self.word(Kw::EXCEPT);
            return Ok(if except { RoleChoice::AllExcept(self.user_names()?) } else { RoleChoice::All });
        }
        self.list(Parser::role_name).map(RoleChoice::List)
    }

    /// After CREATE, at USER or ROLE.
    pub(super) fn create_account(&mut self) -> Result<Statement> {
        let role = self.take().kw == Kw::ROLE;
        let if_not_exists = self.if_not_exists();
        if role {
            let names = self.list(Parser::role_name)?;
            return Ok(accounting(Accounting::CreateRole { names, if_not_exists }));
        }
        let users = self.users()?;
        let default_roles = if self.words(&[Kw::DEFAULT, Kw::ROLE]) { Some(self.role_choice()?) } else { None };
        let options = self.account_options()?;
        Ok(accounting(Accounting::CreateUser { users, if_not_exists, options, default_roles }))
    }

    /// After ALTER, at USER.
    pub(super) fn alter_user(&mut self) -> Result<Statement> {
        self.take();
        let if_exists = self.if_exists();
        let users = self.users()?;
        if self.words(&[Kw::DEFAULT, Kw::ROLE]) {
            let of = users.into_iter().map(|user| user.name).collect();
            return Ok(accounting(Accounting::SetDefaultRole { roles: self.role_choice()?, of }));
        }
        let options = self.account_options()?;
        Ok(accounting(Accounting::AlterUser { users, if_exists, options }))
    }

    /// After DROP, at USER or ROLE.
    pub(super) fn drop_account(&mut self) -> Result<Statement> {
        let roles = self.take().kw == Kw::ROLE;
        let if_exists = self.if_exists();
        Ok(accounting(Accounting::DropUser { names: self.user_names()?, if_exists, roles }))
    }

    /// After RENAME USER.
    pub(super) fn rename_user(&mut self) -> Result<Statement> {
        let pairs = self.list(|parser| {
            let from = parser.user_name()?;
            parser.expect_word(Kw::TO)?;
            Ok((from, parser.user_name()?))
        })?;
        Ok(accounting(Accounting::RenameUser(pairs)))
    }

    /// After SET: PASSWORD, ROLE, DEFAULT ROLE. None: it is something else.
    pub(super) fn set_account(&mut self) -> Result<Option<Statement>> {
        let next = self.peek(1).kind;
        if self.kw() == Kw::PASSWORD {
            self.take();
            let name = if self.word(Kw::FOR) { self.user_name()? } else { UserName::Current };
            if self.words(&[Kw::TO, Kw::RANDOM]) {
                return Err(self.unsupported("RANDOM PASSWORD"));
            }
            if !self.accept(Kind::Assign) {
                self.expect(Kind::Equal)?;
            }
            let password = self.string()?;
            if matches!(self.kw(), Kw::REPLACE | Kw::RETAIN) {
                return Err(self.unsupported("a second password of an account"));
            }
            return Ok(Some(accounting(Accounting::SetPassword { name, password })));
        }
        if self.kw() == Kw::ROLE && !matches!(next, Kind::Equal | Kind::Assign) {
            self.take();
            return Ok(Some(accounting(Accounting::SetRole(self.role_choice()?))));
        }
        if self.words(&[Kw::DEFAULT, Kw::ROLE]) {
            let roles = self.role_choice()?;
            self.expect_word(Kw::TO)?;
            return Ok(Some(accounting(Accounting::SetDefaultRole { roles, of: self.user_names()? })));
        }
        Ok(None)
    }

    /// Whether privileges follow, not roles: only they have an ON before `end`.
    fn names_privileges(&self, end: Kw) -> bool {
        let (mut lexer, ahead, count) = self.lexer_behind();
        let mut tokens = ahead[..count].iter().copied();
        loop {
            let token = tokens.next().unwrap_or_else(|| lexer.advance());
            if token.is(Kw::ON) {
                return true;
            }
            if token.is(end) || matches!(token.kind, Kind::End | Kind::Bad) {
                return false;
            }
        }
    }

    fn given(&mut self) -> Result<Vec<Given>> {
        self.list(|parser| {
            let words = parser.privilege()?;
            let takes_columns = matches!(words.as_str(), "SELECT" | "INSERT" | "UPDATE" | "REFERENCES");
            let columns =
                if takes_columns && parser.at(Kind::Open) { parser.idents_in_brackets()? } else { Vec::new() };
            let columns = columns.into_iter().map(|column| column.value).collect();
            Ok(Given { words, columns })
        })
    }

    /// A static privilege, of one word or several, or the name of a dynamic one; in upper case.
    fn privilege(&mut self) -> Result<String> {
        let kw = self.kw();
        let more: &[&[Kw]] = match kw {
            Kw::ALL => &[&[Kw::PRIVILEGES], &[]],
            Kw::ALTER => &[&[Kw::ROUTINE], &[]],
            Kw::CREATE => &[
                &[Kw::TEMPORARY, Kw::TABLES],
                &[Kw::VIEW],
                &[Kw::ROUTINE],
                &[Kw::USER],
                &[Kw::TABLESPACE],
                &[Kw::ROLE],
                &[],
            ],
            Kw::DROP => &[&[Kw::ROLE], &[]],
            Kw::GRANT => &[&[Kw::OPTION]],
            Kw::LOCK => &[&[Kw::TABLES]],
            Kw::REPLICATION => &[&[Kw::SLAVE], &[Kw::CLIENT]],
            Kw::SHOW => &[&[Kw::DATABASES], &[Kw::VIEW]],
            Kw::DELETE
            | Kw::EVENT
            | Kw::EXECUTE
            | Kw::FILE
            | Kw::INDEX
            | Kw::INSERT
            | Kw::PROCESS
            | Kw::REFERENCES
            | Kw::RELOAD
            | Kw::SELECT
            | Kw::SHUTDOWN
            | Kw::SUPER
            | Kw::TRIGGER
            | Kw::UPDATE
            | Kw::USAGE => &[&[]],
            Kw::NONE | Kw::RESOURCE | Kw::RESTART => return Err(self.error()),
            _ => {
                let token = self.token();
                let name = if token.kind == Kind::String { self.string()? } else { self.ident()?.value };
                if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                    return Err(self.error_at(token.start));
                }
                return Ok(name.to_ascii_uppercase());
            }
        };
        self.take();
        let found = more.iter().find(|words| self.words(words)).ok_or_else(|| self.error())?;
        Ok(found.iter().fold(kw.text().to_owned(), |all, word| all + " " + word.text()))
    }

    /// A role: some privileges are no names of roles without quotes.
    fn role_name(&mut self) -> Result<UserName> {
        let is_privilege = matches!(
            self.kw(),
            Kw::CURRENT_USER
                | Kw::EVENT
                | Kw::EXECUTE
                | Kw::FILE
                | Kw::NONE
                | Kw::PROCESS
                | Kw::PROXY
                | Kw::RELOAD
                | Kw::REPLICATION
                | Kw::RESOURCE
                | Kw::RESTART
                | Kw::SHUTDOWN
                | Kw::SUPER
        );
        if is_privilege { Err(self.error()) } else { self.user_name() }
    }

    fn grant_level(&mut self) -> Result<Level> {
        self.expect_word(Kw::ON)?;
        if matches!(self.kw(), Kw::FUNCTION | Kw::PROCEDURE) {
            return Err(self.unsupported("privileges of routines"));
        }
        self.word(Kw::TABLE);
        if self.accept(Kind::Star) {
            if !self.accept(Kind::Dot) {
                return Ok(Level::Database(None));
            }
            self.expect(Kind::Star)?;
            return Ok(Level::Server);
        }
        let first = self.identifier()?;
        if !self.accept(Kind::Dot) {
            return Ok(Level::Table(Name { schema: None, name: first }));
        }
        if self.accept(Kind::Star) {
            return Ok(Level::Database(Some(first)));
        }
        Ok(Level::Table(Name { schema: Some(first), name: self.identifier()? }))
    }

    pub(super) fn grant(&mut self) -> Result<Statement> {
        self.take();
        if self.kw() == Kw::PROXY {
            return Err(self.unsupported("GRANT PROXY"));
        }
        if !self.names_privileges(Kw::TO) {
            let roles = self.list(Parser::role_name)?;
            self.expect_word(Kw::TO)?;
            let to = self.user_names()?;
            let admin_option = self.words(&[Kw::WITH, Kw::ADMIN, Kw::OPTION]);
            return Ok(accounting(Accounting::GrantRoles { roles, to, admin_option }));
        }
        let (given, level) = (self.given()?, self.grant_level()?);
        self.expect_word(Kw::TO)?;
        let to = self.user_names()?;
        let grant_option = self.words(&[Kw::WITH, Kw::GRANT, Kw::OPTION]);
        if self.kw() == Kw::AS {
            return Err(self.unsupported("GRANT ... AS"));
        }
        Ok(accounting(Accounting::Grant { given, level, to, grant_option }))
    }

    pub(super) fn revoke(&mut self) -> Result<Statement> {
        self.take();
        let if_exists = self.if_exists();
        let all = self.words(&[Kw::ALL, Kw::PRIVILEGES]) || self.word(Kw::ALL);
        if all && self.accept(Kind::Comma) {
            self.expect_words(&[Kw::GRANT, Kw::OPTION, Kw::FROM])?;
            let from = self.user_names()?;
            let ignore_unknown = self.ignore_unknown_user();
            return Ok(accounting(Accounting::RevokeAll { from, if_exists, ignore_unknown }));
        }
        if !all && !self.names_privileges(Kw::FROM) {
            let roles = self.list(Parser::role_name)?;
            self.expect_word(Kw::FROM)?;
            let from = self.user_names()?;
            let ignore_unknown = self.ignore_unknown_user();
            return Ok(accounting(Accounting::RevokeRoles { roles, from, if_exists, ignore_unknown }));
        }
        let given = if all { vec![Given { words: "ALL".to_owned(), columns: Vec::new() }] } else { self.given()? };
        let level = self.grant_level()?;
        self.expect_word(Kw::FROM)?;
        let from = self.user_names()?;
        let ignore_unknown = self.ignore_unknown_user();
        Ok(accounting(Accounting::Revoke { given, level, from, if_exists, ignore_unknown }))
    }

    fn ignore_unknown_user(&mut self) -> bool {
        self.words(&[Kw::IGNORE, Kw::UNKNOWN, Kw::USER])
    }
}
