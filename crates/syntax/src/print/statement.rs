//! Statements.

use std::fmt::{self, Display, Formatter, Write};

use super::expr::{SystemVariable, VariableName};
use super::{
    Bytes, Clause, Clauses, Commas, Identifier, Identifiers, Text, Variable, Variables, Word, separated, when,
};
use crate::tree::*;

impl Display for Statement {
    // The arms only delegate or write, so that a level of recursion takes little stack.
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Statement::Query(query) => query.fmt(f),
            Statement::Load(load) => load.fmt(f),
            Statement::Insert(insert) => insert.fmt(f),
            Statement::Update(update) => update.fmt(f),
            Statement::Delete(delete) => delete.fmt(f),
            Statement::Do(list) => write!(f, "do {}", Commas(list)),
            Statement::CreateTable(create) => create.fmt(f),
            Statement::AlterTable { table, operations } => {
                write!(f, "alter table {table}{}", Clauses(" ", operations))
            }
            Statement::CreateIndex(create) => create.fmt(f),
            Statement::DropIndex { table, index } => write!(f, "drop index {index} on {table}"),
            Statement::DropTable { tables, if_exists, temporary } => {
                let temporary = when(*temporary, "temporary ");
                write!(f, "drop {temporary}table {}{}", if_exists_words(*if_exists), Commas(tables))
            }
            Statement::Truncate(table) => write!(f, "truncate table {table}"),
            Statement::RenameTable(pairs) => renames(f, "rename table ", pairs),
            Statement::CreateDatabase { name, if_not_exists, charset, collation } => {
                write!(f, "create database {}{}", if_not_exists_words(*if_not_exists), Identifier(name))?;
                charsets(f, charset.as_deref(), collation.as_deref())
            }
            Statement::AlterDatabase { name, charset, collation } => {
                write!(f, "alter database{}", Clause(" ", name.as_deref().map(Identifier).as_ref()))?;
                charsets(f, charset.as_deref(), collation.as_deref())
            }
            Statement::DropDatabase { name, if_exists } => {
                write!(f, "drop database {}{}", if_exists_words(*if_exists), Identifier(name))
            }
            Statement::Use(name) => write!(f, "use {}", Identifier(name)),
            Statement::Set(settings) => set(f, settings),
            Statement::Show(show) => show.fmt(f),
            Statement::Describe { table, like } => {
                write!(f, "describe {table}{}", Clause(" ", like.as_deref().map(Text).as_ref()))
            }
            Statement::Explain { statement, analyze, format } => {
                let format = format.as_deref().map(Word);
                let analyze = when(*analyze, "analyze ");
                write!(f, "explain {analyze}{}", Clause("format=", format.as_ref()))?;
                write!(f, "{}{statement}", when(format.is_some(), " "))
            }
            Statement::Begin { read_only, snapshot } => begin(f, *read_only, *snapshot),
            Statement::Commit(completion) => write!(f, "commit{completion}"),
            Statement::Rollback(completion) => write!(f, "rollback{completion}"),
            Statement::Savepoint(name) => write!(f, "savepoint {}", Identifier(name)),
            Statement::RollbackTo(name) => write!(f, "rollback to savepoint {}", Identifier(name)),
            Statement::Release(name) => write!(f, "release savepoint {}", Identifier(name)),
            Statement::LockTables(locks) => write!(f, "lock tables {}", Commas(locks)),
            Statement::LockAll => f.write_str("flush tables with read lock"),
            Statement::UnlockTables => f.write_str("unlock tables"),
            Statement::ResetPersist { name, if_exists } => {
                let name = name.as_deref().map(VariableName);
                write!(f, "reset persist{}{}", when(*if_exists, " if exists"), Clause(" ", name.as_ref()))
            }
            Statement::Kill { query, id } => write!(f, "kill {}{id}", if *query { "query " } else { "connection " }),
            Statement::Prepare { name, source } => write!(f, "prepare {} from {source}", Identifier(name)),
            Statement::Execute { name, using } => {
                write!(f, "execute {}{}{}", Identifier(name), when(!using.is_empty(), " using "), Variables(using))
            }
            Statement::Deallocate(name) => write!(f, "deallocate prepare {}", Identifier(name)),
            Statement::Maintain { what, tables, histograms } => {
                let quick = when(*what == Maintenance::Checksum(true), " quick");
                write!(f, "{what} table {}{quick}{}", Commas(tables), Clause(" ", histograms.as_ref()))
            }
            Statement::Flush(what) => {
                f.write_str("flush ")?;
                separated(f, ",", what, |f, what| f.write_str(what))
            }
            Statement::Call { name, arguments } => write!(f, "call {name}({})", Commas(arguments)),
            Statement::CreateSequence { name, if_not_exists, is_timestamp } => {
                write!(f, "create sequence {}{name}", if_not_exists_words(*if_not_exists))?;
                f.write_str(when(*is_timestamp, " timestamp"))
            }
            Statement::CreateView(create) => create.fmt(f),
            Statement::DropView { names, if_exists } => {
                write!(f, "drop view {}{}", if_exists_words(*if_exists), Commas(names))
            }
            Statement::Accounting(what) => what.fmt(f),
            Statement::Nothing => f.write_str("/* */"),
        }
    }
}

fn if_exists_words(if_exists: bool) -> &'static str {
    if if_exists { "if exists " } else { "" }
}

fn if_not_exists_words(if_not_exists: bool) -> &'static str {
    if if_not_exists { "if not exists " } else { "" }
}

fn renames<T: Display>(f: &mut Formatter, words: &str, pairs: &[(T, T)]) -> fmt::Result {
    f.write_str(words)?;
    separated(f, ",", pairs, |f, (from, to)| write!(f, "{from} to {to}"))
}

fn charsets(f: &mut Formatter, charset: Option<&str>, collation: Option<&str>) -> fmt::Result {
    Clause(" character set ", charset.map(Word).as_ref()).fmt(f)?;
    Clause(" collate ", collation.map(Word).as_ref()).fmt(f)
}

fn begin(f: &mut Formatter, read_only: Option<bool>, snapshot: bool) -> fmt::Result {
    write!(f, "start transaction{}", when(snapshot, " with consistent snapshot"))?;
    let Some(read_only) = read_only else { return Ok(()) };
    write!(f, "{} {}", when(snapshot, ","), access(read_only))
}

fn access(read_only: bool) -> &'static str {
    if read_only { "read only" } else { "read write" }
}

/// `AND CHAIN` and `RELEASE`, with a space before each.
impl Display for Completion {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Completion { chain, release } = *self;
        let word = |value, yes, no| match value {
            None => "",
            Some(true) => yes,
            Some(false) => no,
        };
        f.write_str(word(chain, " and chain", " and no chain"))?;
        f.write_str(word(release, " release", " no release"))
    }
}

impl Display for TableLock {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let TableLock { table, alias, write } = self;
        let alias = alias.as_deref().map(Identifier);
        write!(f, "{table}{} {}", Clause(" as ", alias.as_ref()), if *write { "write" } else { "read" })
    }
}

impl Display for PrepareSource {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            PrepareSource::Text(text) => Text(text).fmt(f),
            PrepareSource::Variable(name) => Variable(name).fmt(f),
        }
    }
}

impl Display for Maintenance {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self {
            Maintenance::Analyze => "analyze",
            Maintenance::Check => "check",
            Maintenance::Optimize => "optimize",
            Maintenance::Repair => "repair",
            Maintenance::Checksum(_) => "checksum",
        })
    }
}

impl Display for Histograms {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Histograms::Update(columns, buckets) => {
                write!(f, "update histogram on {} with {buckets} buckets", Identifiers(columns))
            }
            Histograms::Drop(columns) => write!(f, "drop histogram on {}", Identifiers(columns)),
        }
    }
}

/// The characteristics of transactions share the word TRANSACTION and stand alone in their statement.
fn set(f: &mut Formatter, settings: &[Setting]) -> fmt::Result {
    let (scope, characteristic) = match settings.first() {
        Some(Setting::Isolation { scope, level: _ } | Setting::Access { scope, read_only: _ }) => (*scope, true),
        _ => (Scope::Next, false),
    };
    if !characteristic {
        return write!(f, "set {}", Commas(settings));
    }
    write!(f, "set {}transaction ", scope_word(scope))?;
    separated(f, ",", settings, |f, setting| match setting {
        Setting::Isolation { scope: _, level } => isolation(f, level),
        Setting::Access { scope: _, read_only } => f.write_str(access(*read_only)),
        other => other.fmt(f),
    })
}

/// The word with a space behind it.
fn scope_word(scope: Scope) -> &'static str {
    match scope {
        Scope::Session => "session ",
        Scope::Global => "global ",
        Scope::Persist => "persist ",
        Scope::Next => "",
    }
}

/// The level's words have hyphens between them.
fn isolation(f: &mut Formatter, level: &str) -> fmt::Result {
    f.write_str("isolation level ")?;
    let plain = |letter: char| if letter == '-' { ' ' } else { letter.to_ascii_lowercase() };
    level.chars().try_for_each(|letter| f.write_char(plain(letter)))
}

impl Display for Setting {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Setting::System { scope, name, value } => write!(f, "{}={value}", SystemVariable(Some(*scope), name)),
            Setting::Default { scope, name } => write!(f, "{}=default", SystemVariable(Some(*scope), name)),
            Setting::User { name, value } => write!(f, "{}={value}", Variable(name)),
            Setting::Names { charset: None, collation: _ } => f.write_str("names default"),
            Setting::Names { charset: Some(charset), collation } => {
                let collation = collation.as_deref().map(Word);
                write!(f, "names {}{}", Word(charset), Clause(" collate ", collation.as_ref()))
            }
            Setting::CharacterSet(None) => f.write_str("character set default"),
            Setting::CharacterSet(Some(charset)) => write!(f, "character set {}", Word(charset)),
            Setting::Isolation { scope, level } => {
                write!(f, "{}transaction ", scope_word(*scope))?;
                isolation(f, level)
            }
            Setting::Access { scope, read_only } => {
                write!(f, "{}transaction {}", scope_word(*scope), access(*read_only))
            }
        }
    }
}

/// The condition, with a space before it.
impl Display for Pattern {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Pattern::Like(text) => write!(f, " like {}", Text(text)),
            Pattern::Where(condition) => write!(f, " where {condition}"),
        }
    }
}

impl Display for Show {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Show { what, pattern } = self;
        write!(f, "show {what}{}", Clause("", pattern.as_ref()))
    }
}

impl Display for Shown {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Shown::Databases => f.write_str("databases"),
            Shown::Tables { schema, full } => write!(f, "{}tables{}", when(*full, "full "), Of(schema.as_deref())),
            Shown::TableStatus { schema } => write!(f, "table status{}", Of(schema.as_deref())),
            Shown::Columns { table, full } => write!(f, "{}columns from {table}", when(*full, "full ")),
            Shown::Index { table } => write!(f, "index from {table}"),
            Shown::CreateTable(table) => write!(f, "create table {table}"),
            Shown::CreateDatabase { name, if_not_exists } => {
                write!(f, "create database {}{}", if_not_exists_words(*if_not_exists), Identifier(name))
            }
            Shown::Variables { global } => write!(f, "{}variables", when(*global, "global ")),
            Shown::Status { global } => write!(f, "{}status", when(*global, "global ")),
            Shown::Warnings { errors, count, limit } => {
                f.write_str(when(*count, "count(*) "))?;
                f.write_str(if *errors { "errors" } else { "warnings" })?;
                limit.iter().try_for_each(|(offset, count)| write!(f, " limit {offset},{count}"))
            }
            Shown::Engines => f.write_str("engines"),
            Shown::Collation => f.write_str("collation"),
            Shown::Charset => f.write_str("character set"),
            Shown::Processlist => f.write_str("processlist"),
            Shown::Grants { of, using } => {
                write!(f, "grants{}{}", Clause(" for ", of.as_ref()), Clauses(" using ", using))
            }
            Shown::CreateUser(user) => write!(f, "create user {user}"),
            Shown::CreateView(view) => write!(f, "create view {view}"),
            Shown::Privileges => f.write_str("privileges"),
            Shown::EngineStatus(engine) => write!(f, "engine {} status", Word(engine)),
            Shown::Plugins => f.write_str("plugins"),
            Shown::OpenTables => f.write_str("open tables"),
            Shown::Triggers => f.write_str("triggers"),
            Shown::Events => f.write_str("events"),
            Shown::FunctionStatus => f.write_str("function status"),
            Shown::ProcedureStatus => f.write_str("procedure status"),
            Shown::MasterStatus => f.write_str("master status"),
            Shown::ReplicaStatus => f.write_str("replica status"),
            Shown::Replicas => f.write_str("replicas"),
            Shown::BinaryLogs => f.write_str("binary logs"),
            Shown::Profiles => f.write_str("profiles"),
        }
    }
}

/// `FROM schema`, with a space before it.
struct Of<'a>(Option<&'a str>);

impl Display for Of<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Of(schema) = *self;
        Clause(" from ", schema.map(Identifier).as_ref()).fmt(f)
    }
}

impl Display for Accounting {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Accounting::CreateUser { users, if_not_exists, options, default_roles } => {
                write!(f, "create user {}{}", if_not_exists_words(*if_not_exists), Commas(users))?;
                write!(f, "{}{options}", Clause(" default role ", default_roles.as_ref()))
            }
            Accounting::AlterUser { users, if_exists, options } => {
                write!(f, "alter user {}{}{options}", if_exists_words(*if_exists), Commas(users))
            }
            Accounting::DropUser { names, if_exists, roles } => {
                let what = if *roles { "role" } else { "user" };
                write!(f, "drop {what} {}{}", if_exists_words(*if_exists), Commas(names))
            }
            Accounting::RenameUser(pairs) => renames(f, "rename user ", pairs),
            Accounting::SetPassword { name, password } => {
                write!(f, "set password for {name} = {}", Text(password))
            }
            Accounting::CreateRole { names, if_not_exists } => {
                write!(f, "create role {}{}", if_not_exists_words(*if_not_exists), Commas(names))
            }
            Accounting::Grant { given, level, to, grant_option } => {
                write!(f, "grant {} on {level} to {}", Commas(given), Commas(to))?;
                f.write_str(when(*grant_option, " with grant option"))
            }
            Accounting::Revoke { given, level, from, if_exists, ignore_unknown } => {
                write!(f, "revoke {}{} on {level}", if_exists_words(*if_exists), Commas(given))?;
                revoked(f, from, *ignore_unknown)
            }
            Accounting::RevokeAll { from, if_exists, ignore_unknown } => {
                write!(f, "revoke {}all privileges,grant option", if_exists_words(*if_exists))?;
                revoked(f, from, *ignore_unknown)
            }
            Accounting::GrantRoles { roles, to, admin_option } => {
                write!(f, "grant {} to {}", Commas(roles), Commas(to))?;
                f.write_str(when(*admin_option, " with admin option"))
            }
            Accounting::RevokeRoles { roles, from, if_exists, ignore_unknown } => {
                write!(f, "revoke {}{}", if_exists_words(*if_exists), Commas(roles))?;
                revoked(f, from, *ignore_unknown)
            }
            Accounting::SetDefaultRole { roles, of } => write!(f, "set default role {roles} to {}", Commas(of)),
            Accounting::SetRole(roles) => write!(f, "set role {roles}"),
        }
    }
}

fn revoked(f: &mut Formatter, from: &[UserName], ignore_unknown: bool) -> fmt::Result {
    write!(f, " from {}{}", Commas(from), when(ignore_unknown, " ignore unknown user"))
}

impl Display for UserName {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            UserName::Current => f.write_str("current_user()"),
            UserName::Named { user, host } => write!(f, "{}@{}", UserPart(user), UserPart(host)),
        }
    }
}

/// A user's or host's name. An empty one cannot stand in backquotes.
struct UserPart<'a>(&'a str);

impl Display for UserPart<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let UserPart(name) = *self;
        if name.is_empty() { f.write_str("''") } else { Identifier(name).fmt(f) }
    }
}

impl Display for User {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let User { name, secret } = self;
        write!(f, "{name}{}", Clause(" identified ", secret.as_ref()))
    }
}

impl Display for Secret {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Secret::Password { plugin: None, text } => write!(f, "by {}", Text(text)),
            Secret::Password { plugin: Some(plugin), text } => write!(f, "with {} by {}", Text(plugin), Text(text)),
            Secret::Digest { plugin, bytes } => write!(f, "with {} as {}", Text(plugin), Bytes(bytes)),
            Secret::Plugin(plugin) => write!(f, "with {}", Text(plugin)),
        }
    }
}

/// The options, with a space before each.
impl Display for Options {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Options { locked, expired, needs_tls } = *self;
        let word = |value, yes, no| match value {
            None => "",
            Some(true) => yes,
            Some(false) => no,
        };
        f.write_str(word(needs_tls, " require ssl", " require none"))?;
        f.write_str(word(expired, " password expire", " password expire never"))?;
        f.write_str(word(locked, " account lock", " account unlock"))
    }
}

impl Display for RoleChoice {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            RoleChoice::None => f.write_str("none"),
            RoleChoice::All => f.write_str("all"),
            RoleChoice::AllExcept(roles) => write!(f, "all except {}", Commas(roles)),
            RoleChoice::Default => f.write_str("default"),
            RoleChoice::List(roles) => Commas(roles).fmt(f),
        }
    }
}

impl Display for Level {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Level::Server => f.write_str("*.*"),
            Level::Database(None) => f.write_str("*"),
            Level::Database(Some(pattern)) => write!(f, "{}.*", Identifier(pattern)),
            Level::Table(name) => name.fmt(f),
        }
    }
}

impl Display for Given {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Given { words, columns } = self;
        f.write_str(words)?;
        if columns.is_empty() { Ok(()) } else { write!(f, " ({})", Identifiers(columns)) }
    }
}
