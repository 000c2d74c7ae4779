//! SHOW.

use sqlparser::tokenizer::Token;

use crate::error::{self, Result, SqlError};
use crate::parse::cursor::Cursor;
use crate::parse::statement::{Name, Pattern, Show, Shown, Statement};

impl Cursor<'_> {
    pub fn show(&mut self) -> Result<Statement> {
        self.expect("show")?;
        let full = self.word("full") | self.word("extended");
        let full = full | self.word("full");
        let global = self.word("global");
        if !global {
            let _ = self.word("session") || self.word("local");
        }
        let word = self.identifier()?.to_ascii_lowercase();
        let what = match word.as_str() {
            "databases" | "schemas" => Shown::Databases,
            "tables" => Shown::Tables { schema: self.schema_clause()?, full },
            "table" => {
                self.expect("status")?;
                Shown::TableStatus { schema: self.schema_clause()? }
            }
            "open" => {
                self.expect("tables")?;
                self.schema_clause()?;
                Shown::OpenTables
            }
            "columns" | "fields" => Shown::Columns { table: self.table_clause()?, full },
            "index" | "indexes" | "keys" => Shown::Index { table: self.table_clause()? },
            "create" => return self.show_create(),
            "variables" => Shown::Variables { global },
            "status" => Shown::Status { global },
            "warnings" | "errors" => self.show_warnings(word == "errors", false)?,
            "count" => {
                for token in [Token::LParen, Token::Mul, Token::RParen] {
                    self.expect_token(&token)?;
                }
                let errors = self.word("errors");
                if !errors {
                    self.expect("warnings")?;
                }
                self.show_warnings(errors, true)?
            }
            "storage" => {
                self.expect("engines")?;
                Shown::Engines
            }
            "engines" => Shown::Engines,
            "collation" => Shown::Collation,
            "charset" => Shown::Charset,
            "character" => {
                self.expect("set")?;
                Shown::Charset
            }
            "processlist" => Shown::Processlist,
            "grants" => {
                let of = if self.word("for") { Some(self.user_name()?) } else { None };
                let using = if self.word("using") { self.user_names()? } else { Vec::new() };
                Shown::Grants { of, using }
            }
            "privileges" => Shown::Privileges,
            "plugins" => Shown::Plugins,
            "triggers" => {
                self.schema_clause()?;
                Shown::Triggers
            }
            "events" => {
                self.schema_clause()?;
                Shown::Events
            }
            "function" | "procedure" => {
                self.expect("status")?;
                if word == "function" { Shown::FunctionStatus } else { Shown::ProcedureStatus }
            }
            "master" | "binary" | "slave" | "replica" => {
                let next = self.identifier()?.to_ascii_lowercase();
                match (word.as_str(), next.as_str()) {
                    ("master", "status") => Shown::MasterStatus,
                    ("binary" | "master", "logs") => Shown::BinaryLogs,
                    ("slave" | "replica", "status") => Shown::ReplicaStatus,
                    ("slave", "hosts") => Shown::Replicas,
                    _ => {
                        return Err(SqlError::unsupported(format!(
                            "SHOW {} {}",
                            word.to_uppercase(),
                            next.to_uppercase()
                        )));
                    }
                }
            }
            "replicas" => Shown::Replicas,
            "profiles" => Shown::Profiles,
            "engine" => {
                let name = self.identifier()?;
                if !["innodb", "all"].iter().any(|known| name.eq_ignore_ascii_case(known)) {
                    return Err(error::UNKNOWN_STORAGE_ENGINE.with(&[&name]));
                }
                if !self.word("status") {
                    return Err(SqlError::unsupported("SHOW ENGINE of anything but STATUS"));
                }
                Shown::EngineStatus
            }
            "profile" | "relaylog" | "binlog" => {
                return Err(SqlError::unsupported(format!("SHOW {}", word.to_uppercase())));
            }
            _ => {
                self.parser.prev_token();
                return Err(self.error_here());
            }
        };
        let pattern = self.pattern()?;
        Ok(Statement::Show(Show { what, pattern }))
    }

    fn schema_clause(&mut self) -> Result<Option<String>> {
        if self.word("from") || self.word("in") { self.identifier().map(Some) } else { Ok(None) }
    }

    fn table_clause(&mut self) -> Result<Name> {
        if !self.word("from") {
            self.expect("in")?;
        }
        let mut table = self.name()?;
        if let Some(schema) = self.schema_clause()? {
            table.schema = Some(schema);
        }
        Ok(table)
    }

    fn pattern(&mut self) -> Result<Option<Pattern>> {
        if self.word("like") {
            return Ok(Some(Pattern::Like(self.text_or_name()?)));
        }
        if self.word("where") {
            return Ok(Some(Pattern::Where(Box::new(self.expression()?))));
        }
        Ok(None)
    }

    fn show_create(&mut self) -> Result<Statement> {
        let word = self.identifier()?.to_ascii_lowercase();
        let what = match word.as_str() {
            "table" => Shown::CreateTable(self.name()?),
            "view" => Shown::CreateView(self.name()?),
            "user" => Shown::CreateUser(self.user_name()?),
            "database" | "schema" => {
                self.words(&["if", "not", "exists"]);
                Shown::CreateDatabase(self.identifier()?)
            }
            _ => return Err(SqlError::unsupported(format!("SHOW CREATE {}", word.to_uppercase()))),
        };
        Ok(Statement::Show(Show { what, pattern: None }))
    }

    fn show_warnings(&mut self, errors: bool, count: bool) -> Result<Shown> {
        let mut limit = None;
        if self.word("limit") {
            let first = self.parsed(|parser| parser.parse_literal_uint())?;
            limit = Some(if self.take(&Token::Comma) {
                (first, self.parsed(|parser| parser.parse_literal_uint())?)
            } else if self.word("offset") {
                (self.parsed(|parser| parser.parse_literal_uint())?, first)
            } else {
                (0, first)
            });
        }
        Ok(Shown::Warnings { errors, count, limit })
    }
}
