//! SHOW.

use super::keyword::Kw;
use super::lexer::Kind;
use super::parser::Parser;
use crate::error::Result;
use crate::tree::{Name, Pattern, Show, Shown, Statement};

impl Parser<'_> {
    pub(super) fn show(&mut self) -> Result<Statement> {
        self.take();
        let token = self.token();
        let lower = self.text_of(token).to_ascii_lowercase();
        // Words that modify others, and which of them they may modify.
        let extended = self.word(Kw::EXTENDED);
        let full = self.word(Kw::FULL) | extended;
        let scope = if full { None } else { self.any(&[Kw::GLOBAL, Kw::SESSION, Kw::LOCAL]) };
        let kw = self.kw();
        let fits = match kw {
            Kw::TABLES | Kw::COLUMNS | Kw::FIELDS => scope.is_none(),
            Kw::INDEX | Kw::INDEXES | Kw::KEYS => scope.is_none() && (!full || extended),
            Kw::PROCESSLIST => scope.is_none() && !extended,
            Kw::VARIABLES | Kw::STATUS => !full,
            _ => !full && scope.is_none(),
        };
        if !fits {
            return Err(self.error());
        }
        let global = scope == Some(Kw::GLOBAL);
        if self.kind() != Kind::Word {
            return Err(self.error());
        }
        self.take();
        let what = match kw {
            Kw::DATABASES | Kw::SCHEMAS => Shown::Databases,
            Kw::TABLES => Shown::Tables { schema: self.schema_clause()?, full },
            Kw::TABLE => {
                self.expect_word(Kw::STATUS)?;
                Shown::TableStatus { schema: self.schema_clause()? }
            }
            Kw::OPEN => {
                self.expect_word(Kw::TABLES)?;
                self.schema_clause()?;
                Shown::OpenTables
            }
            Kw::COLUMNS | Kw::FIELDS => Shown::Columns { table: self.table_clause()?, full },
            Kw::INDEX | Kw::INDEXES | Kw::KEYS => Shown::Index { table: self.table_clause()? },
            Kw::CREATE => return self.show_create(),
            Kw::VARIABLES => Shown::Variables { global },
            Kw::STATUS => Shown::Status { global },
            Kw::WARNINGS | Kw::ERRORS => return self.show_warnings(kw == Kw::ERRORS, false),
            Kw::COUNT => {
                self.expect(Kind::Open)?;
                self.expect(Kind::Star)?;
                self.expect(Kind::Close)?;
                let word = self.any(&[Kw::ERRORS, Kw::WARNINGS]).ok_or_else(|| self.error())?;
                return self.show_warnings(word == Kw::ERRORS, true);
            }
            Kw::STORAGE => {
                self.expect_word(Kw::ENGINES)?;
                return Ok(plain(Shown::Engines));
            }
            Kw::ENGINES => return Ok(plain(Shown::Engines)),
            Kw::COLLATION => Shown::Collation,
            Kw::CHARSET => Shown::Charset,
            Kw::CHARACTER | Kw::CHAR => {
                self.expect_word(Kw::SET)?;
                Shown::Charset
            }
            Kw::PROCESSLIST => return Ok(plain(Shown::Processlist)),
            Kw::GRANTS => {
                let of = if self.word(Kw::FOR) { Some(self.user_name()?) } else { None };
                let using = match of.is_some() && self.word(Kw::USING) {
                    true => self.list(Parser::user_name)?,
                    false => Vec::new(),
                };
                return Ok(plain(Shown::Grants { of, using }));
            }
            Kw::PRIVILEGES => return Ok(plain(Shown::Privileges)),
            Kw::PLUGINS => return Ok(plain(Shown::Plugins)),
            Kw::TRIGGERS => {
                self.schema_clause()?;
                Shown::Triggers
            }
            Kw::EVENTS => {
                self.schema_clause()?;
                Shown::Events
            }
            Kw::FUNCTION | Kw::PROCEDURE => {
                if self.kw() == Kw::CODE {
                    return Err(self.unsupported(format!("SHOW {} CODE", kw.text())));
                }
                self.expect_word(Kw::STATUS)?;
                if kw == Kw::FUNCTION { Shown::FunctionStatus } else { Shown::ProcedureStatus }
            }
            Kw::MASTER | Kw::BINARY | Kw::SLAVE | Kw::REPLICA => {
                let next = self.kw();
                return Ok(plain(match (kw, next) {
                    (Kw::MASTER, Kw::STATUS) => self.shown(Shown::MasterStatus),
                    (Kw::BINARY | Kw::MASTER, Kw::LOGS) => self.shown(Shown::BinaryLogs),
                    (Kw::BINARY, _) if self.text_of(self.token()).eq_ignore_ascii_case("log") => {
                        self.take();
                        self.expect_word(Kw::STATUS)?;
                        Shown::MasterStatus
                    }
                    (Kw::SLAVE | Kw::REPLICA, Kw::STATUS) => self.shown(Shown::ReplicaStatus),
                    (Kw::SLAVE, Kw::HOSTS) => self.shown(Shown::Replicas),
                    _ => return Err(self.error()),
                }));
            }
            Kw::REPLICAS => return Ok(plain(Shown::Replicas)),
            Kw::PROFILES => return Ok(plain(Shown::Profiles)),
            Kw::ENGINE => {
                let name = if self.word(Kw::ALL) { "all".to_owned() } else { self.text_or_name()? };
                if matches!(self.kw(), Kw::LOGS) || self.text_of(self.token()).eq_ignore_ascii_case("mutex") {
                    return Err(self.unsupported("SHOW ENGINE of anything but STATUS"));
                }
                self.expect_word(Kw::STATUS)?;
                return Ok(plain(Shown::EngineStatus(name)));
            }
            Kw::PROFILE | Kw::RELAYLOG | Kw::BINLOG => return Err(self.unsupported(format!("SHOW {}", kw.text()))),
            _ if lower == "parse_tree" => return Err(self.unsupported("SHOW PARSE_TREE")),
            _ => return Err(self.error_at(token.start)),
        };
        let pattern = self.pattern()?;
        Ok(Statement::Show(Show { what, pattern }))
    }

    /// Takes the word that names it.
    fn shown(&mut self, what: Shown) -> Shown {
        self.take();
        what
    }

    fn schema_clause(&mut self) -> Result<Option<String>> {
        if self.any(&[Kw::FROM, Kw::IN]).is_some() { self.identifier().map(Some) } else { Ok(None) }
    }

    fn table_clause(&mut self) -> Result<Name> {
        self.any(&[Kw::FROM, Kw::IN]).ok_or_else(|| self.error())?;
        let mut table = self.name()?;
        if let Some(schema) = self.schema_clause()? {
            table.schema = Some(schema);
        }
        Ok(table)
    }

    fn pattern(&mut self) -> Result<Option<Pattern>> {
        if self.word(Kw::LIKE) {
            return Ok(Some(Pattern::Like(self.string()?)));
        }
        if self.word(Kw::WHERE) {
            return Ok(Some(Pattern::Where(Box::new(self.expr()?))));
        }
        Ok(None)
    }

    fn show_create(&mut self) -> Result<Statement> {
        let kw = self.kw();
        let what = match kw {
            Kw::TABLE => {
                self.take();
                Shown::CreateTable(self.name()?)
            }
            Kw::VIEW => {
                self.take();
                Shown::CreateView(self.name()?)
            }
            Kw::USER => {
                self.take();
                Shown::CreateUser(self.user_name()?)
            }
            Kw::DATABASE | Kw::SCHEMA => {
                self.take();
                let if_not_exists = self.if_not_exists();
                Shown::CreateDatabase { name: self.identifier()?, if_not_exists }
            }
            Kw::PROCEDURE | Kw::FUNCTION | Kw::TRIGGER | Kw::EVENT => {
                return Err(self.unsupported(format!("SHOW CREATE {}", kw.text())));
            }
            _ => return Err(self.error()),
        };
        Ok(plain(what))
    }

    fn show_warnings(&mut self, errors: bool, count: bool) -> Result<Statement> {
        let mut limit = None;
        if !count && self.word(Kw::LIMIT) {
            let first = self.number()?;
            limit = Some(if self.accept(Kind::Comma) {
                (first, self.number()?)
            } else if self.word(Kw::OFFSET) {
                (self.number()?, first)
            } else {
                (0, first)
            });
        }
        Ok(plain(Shown::Warnings { errors, count, limit }))
    }
}

fn plain(what: Shown) -> Statement {
    Statement::Show(Show { what, pattern: None })
}
