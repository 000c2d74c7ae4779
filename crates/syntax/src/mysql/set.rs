//! SET: variables of the session, of the server, of the user; NAMES; TRANSACTION.

use super::keyword::Kw;
use super::lexer::Kind;
use super::parser::Parser;
use crate::error::Result;
use crate::tree::{Expr, ExprKind, Literal, Scope, Setting, Statement};

/// Variables that a single transaction can have another value of.
const TRANSACTION: [&str; 3] = ["transaction_isolation", "transaction_read_only", "tx_isolation"];

impl Parser<'_> {
    pub(super) fn set(&mut self) -> Result<Statement> {
        self.take();
        self.is_outermost = false;
        if let Some(statement) = self.set_account()? {
            return Ok(statement);
        }
        if self.kw() == Kw::RESOURCE && self.peek(1).is(Kw::GROUP) {
            return Err(self.unsupported("SET RESOURCE GROUP"));
        }
        let mut settings = Vec::new();
        self.list(|parser| parser.setting(&mut settings))?;
        Ok(Statement::Set(settings))
    }

    fn is_assignment(&mut self, nth: usize) -> bool {
        matches!(self.peek(nth).kind, Kind::Equal | Kind::Assign)
    }

    fn setting(&mut self, out: &mut Vec<Setting>) -> Result<()> {
        if self.kw() == Kw::NAMES && !self.is_assignment(1) {
            self.take();
            if self.word(Kw::DEFAULT) {
                out.push(Setting::Names { charset: None, collation: None });
                return Ok(());
            }
            let charset = Some(self.charset_name()?);
            let collation = if self.word(Kw::COLLATE) { Some(self.charset_name()?) } else { None };
            out.push(Setting::Names { charset, collation });
            return Ok(());
        }
        if !self.is_assignment(1) && self.charset_words() {
            out.push(Setting::CharacterSet(if self.word(Kw::DEFAULT) { None } else { Some(self.charset_name()?) }));
            return Ok(());
        }
        let mut scope = None;
        if !self.is_assignment(1) && self.peek(1).kind != Kind::Dot {
            scope = match self.kw() {
                Kw::SESSION | Kw::LOCAL => Some(Scope::Session),
                Kw::GLOBAL => Some(Scope::Global),
                Kw::PERSIST => Some(Scope::Persist),
                Kw::PERSIST_ONLY => return Err(self.unsupported("SET PERSIST_ONLY")),
                _ => None,
            };
            if scope.is_some() {
                self.take();
            }
        }
        if self.kw() == Kw::TRANSACTION && !self.is_assignment(1) {
            self.take();
            return self.transaction_setting(scope.unwrap_or(Scope::Next), out);
        }
        self.variable_setting(scope, out)
    }

    fn transaction_setting(&mut self, scope: Scope, out: &mut Vec<Setting>) -> Result<()> {
        let (mut has_level, mut has_access) = (false, false);
        loop {
            let start = self.token().start;
            let is_level = self.kw() == Kw::ISOLATION;
            let seen = if is_level { &mut has_level } else { &mut has_access };
            if std::mem::replace(seen, true) {
                return Err(self.error_at(start));
            }
            if self.words(&[Kw::ISOLATION, Kw::LEVEL]) {
                let level = match self.take().kw {
                    Kw::SERIALIZABLE => "SERIALIZABLE",
                    Kw::REPEATABLE if self.word(Kw::READ) => "REPEATABLE-READ",
                    Kw::READ if self.word(Kw::COMMITTED) => "READ-COMMITTED",
                    Kw::READ if self.word(Kw::UNCOMMITTED) => "READ-UNCOMMITTED",
                    _ => return Err(self.error()),
                };
                out.push(Setting::Isolation { scope, level: level.to_owned() });
            } else if self.words(&[Kw::READ, Kw::ONLY]) {
                out.push(Setting::Access { scope, read_only: true });
            } else if self.words(&[Kw::READ, Kw::WRITE]) {
                out.push(Setting::Access { scope, read_only: false });
            } else {
                return Err(self.error());
            }
            if !self.accept(Kind::Comma) {
                return Ok(());
            }
        }
    }

    fn variable_setting(&mut self, scope: Option<Scope>, out: &mut Vec<Setting>) -> Result<()> {
        if self.at(Kind::Variable) && scope.is_none() {
            let name = self.variable()?;
            self.assignment_sign()?;
            out.push(Setting::User { name, value: self.expr()? });
            return Ok(());
        }
        let is_system = scope.is_none() && self.accept(Kind::System);
        let is_scope = matches!(self.kw(), Kw::GLOBAL | Kw::LOCAL | Kw::PERSIST | Kw::PERSIST_ONLY | Kw::SESSION)
            || self.kw() == Kw::NAMES && scope.is_none() && !is_system;
        if is_scope && self.peek(1).kind != Kind::Dot {
            return Err(self.error());
        }
        let mut name = self.identifier()?;
        // A scope and two parts after `@@`, two parts elsewhere.
        for _ in 0..if is_system { 2 } else { 1 } {
            if self.accept(Kind::Dot) {
                name.push('.');
                name.push_str(&self.identifier()?);
            }
        }
        self.assignment_sign()?;
        let (prefix, name) = scoped(&name, is_system);
        // `@@x` without a scope is the next transaction's.
        let is_next = is_system && TRANSACTION.contains(&&*name);
        let scope = scope.or(prefix).unwrap_or(if is_next { Scope::Next } else { Scope::Session });
        if self.kw() == Kw::DEFAULT && self.peek(1).kind != Kind::Open {
            self.take();
            out.push(Setting::Default { scope, name });
            return Ok(());
        }
        out.push(Setting::System { scope, name, value: self.setting_value()? });
        Ok(())
    }

    fn assignment_sign(&mut self) -> Result<()> {
        if !self.accept(Kind::Assign) {
            self.expect(Kind::Equal)?;
        }
        Ok(())
    }

    /// A word alone is a string: ON, ALL, BINARY, ROW, SYSTEM, utf8mb4.
    fn setting_value(&mut self) -> Result<Expr> {
        let token = self.token();
        let is_end = matches!(self.peek(1).kind, Kind::End | Kind::Semicolon | Kind::Comma);
        let is_word =
            Parser::is_name(token) || matches!(token.kw, Kw::ON | Kw::ALL | Kw::BINARY | Kw::ROW | Kw::SYSTEM);
        let is_bare_call = matches!(token.kw, Kw::CURRENT_USER | Kw::CURRENT_DATE | Kw::CURRENT_TIMESTAMP);
        if is_end && is_word && !is_bare_call {
            let value = self.ident_of(token).value;
            self.take();
            return Ok(self.make(ExprKind::Literal(Literal::String(value)), token.start));
        }
        self.expr()
    }

    /// RESET PERSIST [[IF EXISTS] name]: nothing else can be reset.
    pub(super) fn reset(&mut self) -> Result<Statement> {
        self.take();
        if !self.word(Kw::PERSIST) {
            return match self.kind() {
                Kind::Word => Err(self.unsupported(format!("RESET {}", self.text_of(self.token()).to_uppercase()))),
                _ => Err(self.error()),
            };
        }
        let if_exists = self.if_exists();
        if self.at_end() && !if_exists {
            return Ok(Statement::ResetPersist { name: None, if_exists });
        }
        let mut name = self.text_or_name()?.to_ascii_lowercase();
        if self.accept(Kind::Dot) {
            name = format!("{name}.{}", self.identifier()?.to_ascii_lowercase());
        }
        Ok(Statement::ResetPersist { name: Some(name), if_exists })
    }
}

/// `global.x` of `@@global.x` as scope and name.
fn scoped(name: &str, is_system: bool) -> (Option<Scope>, String) {
    let name = name.to_ascii_lowercase();
    let prefixes = [
        ("session.", Scope::Session),
        ("local.", Scope::Session),
        ("global.", Scope::Global),
        ("persist.", Scope::Persist),
    ];
    for (prefix, scope) in prefixes {
        if is_system && let Some(rest) = name.strip_prefix(prefix) {
            return (Some(scope), rest.to_owned());
        }
    }
    (None, name)
}
