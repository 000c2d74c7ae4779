//! SHOW: rows from definitions and variables. LIKE and WHERE are evaluated as ordinary expressions over the rows.

use std::fmt::Write;
use std::sync::Arc;

use syntax::tree::{ColumnName, Expr as Parsed, ExprKind, Literal};

use crate::batch::Row;
use crate::bind::Bind;
use crate::error::fault::foreign_key_text;
use crate::error::{self, Result, SqlError};
use crate::instance::variables::{VARIABLES, shown};
use crate::other_tables::table_view;
use crate::parse::lexical::quoted_name;
use crate::parse::statement::{Name, Pattern, Show, Shown, Statement};
use crate::parse::stored::{listed_text, shown_text};
use crate::scalar::state::level_name;
use crate::session::{Outcome, Session, number_column, text_column};
use crate::system::schemas::is_system;
use crate::system::statistics::cardinality;
use crate::system::{self, column_extra, column_key, default_text, hex_text, keys, text};
use crate::types::{CharsetName as _, Collation, CollationName as _, Column, MysqlType as _, Type};
use crate::value::Value;
use query::catalog::table::{SHOWN_OPTIONS, Table};
use query::exec::{Exec, drain};
use query::nodes::context::Level;
use query::nodes::keyspace_table;
use query::nodes::node::Node;
use query::nodes::relation::{Origin, ScopeTable};

pub(super) type Answer = (Vec<Column>, Vec<Row>);

pub(super) fn texts(names: &[&str]) -> Vec<Column> {
    names.iter().map(|name| text_column(name)).collect()
}

fn optional(value: Option<impl AsRef<str>>) -> Value {
    value.map_or(Value::Null, |value| Value::text(value))
}

impl Session {
    pub(super) fn show(&mut self, show: &Show) -> Result<Outcome> {
        self.refresh();
        let (mut columns, rows) = self.shown(&show.what)?;
        let rows = match &show.pattern {
            None => rows,
            Some(pattern) => self.matching(&columns, rows, pattern)?,
        };
        // As in MySQL, the pattern is part of the column's name.
        if let (Shown::Databases | Shown::Tables { .. }, Some(Pattern::Like(like))) = (&show.what, &show.pattern) {
            columns[0].name = format!("{} ({like})", columns[0].name);
        }
        Ok(self.rows(columns, rows))
    }

    /// Returns a SHOW statement's result columns, for PREPARE.
    pub(super) fn columns_of(&mut self, statement: &Statement) -> Result<Vec<Column>> {
        match statement {
            Statement::Show(show) => Ok(self.shown(&show.what)?.0),
            Statement::Describe { table, .. } => {
                Ok(self.shown(&Shown::Columns { table: table.clone(), full: false })?.0)
            }
            Statement::Explain { analyze, format, .. } => {
                Ok(super::explain::columns(super::explain::form(format.as_deref(), *analyze)?))
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Filters the rows by the pattern; LIKE applies to the first column.
    fn matching(&mut self, columns: &[Column], rows: Vec<Row>, pattern: &Pattern) -> Result<Vec<Row>> {
        let node = match pattern {
            Pattern::Like(like) => {
                let name = columns[0].name.clone();
                let column = ExprKind::Column(Box::new(ColumnName { schema: None, table: None, name }));
                Parsed::made(ExprKind::Like {
                    operand: Box::new(Parsed::made(column)),
                    pattern: Box::new(Parsed::made(ExprKind::Literal(Literal::String(like.clone())))),
                    escape: None,
                    negated: false,
                })
            }
            Pattern::Where(node) => (**node).clone(),
        };
        let environment = self.bind_environment();
        let mut bind = Bind::new(&environment);
        bind.open_scope();
        let columns = columns.to_vec();
        bind.scope().add(ScopeTable {
            alias: String::new(),
            schema: String::new(),
            hidden: vec![false; columns.len()],
            origin: Origin::Derived { node: Arc::new(Node::One { width: 0 }) },
            offset: 0,
            columns,
            key_at: None,
            lock: None,
            nullable: false,
            allowed: None,
            readable: query::nodes::relation::Columns::All,
            within: None,
            after: Vec::new(),
        });
        let condition = bind.condition(&node)?;
        drop(bind);
        let mut kept = Vec::new();
        for row in rows {
            if condition.holds(&row, &mut self.ctx)? {
                kept.push(row);
            }
        }
        Ok(kept)
    }

    fn shown(&mut self, what: &Shown) -> Result<Answer> {
        match what {
            Shown::Databases => {
                let mut names: Vec<String> = self.catalog.schemas.keys().cloned().collect();
                names.extend(system::SHOWN.map(str::to_owned));
                if !self.rights.global.has(crate::rights::Privileges::SHOW_DATABASES) {
                    names.retain(|name| self.rights.sees_database(name));
                }
                names.sort();
                Ok((texts(&["Database"]), names.into_iter().map(|name| vec![text(name)]).collect()))
            }
            Shown::Tables { schema, full } => self.show_tables(schema.as_deref(), *full),
            Shown::TableStatus { schema } => self.show_table_status(schema.as_deref()),
            Shown::Columns { table, full } => self.show_columns(table, *full),
            Shown::Index { table } => self.show_index(table),
            Shown::CreateTable(name) => {
                let of = name;
                let (schema, name) = self.full_name(name)?;
                if self.catalog.view(&schema, &name).is_some() {
                    return self.show_create_view(of);
                }
                let table = table_view(self.catalog.table(&schema, &name)?);
                let sql = self.create_text(&table)?;
                Ok((texts(&["Table", "Create Table"]), vec![vec![text(name), text(sql)]]))
            }
            Shown::CreateDatabase { name, if_not_exists: _ } => {
                let collation = self.catalog.schema(name)?.collation;
                let sql = format!(
                    "CREATE DATABASE {} /*!40100 DEFAULT CHARACTER SET {} COLLATE {} */ /*!80016 DEFAULT ENCRYPTION='N' */",
                    quoted_name(name),
                    collation.charset().name(),
                    collation.name()
                );
                Ok((texts(&["Database", "Create Database"]), vec![vec![text(name), text(sql)]]))
            }
            Shown::Variables { global } => {
                let mut rows = Vec::new();
                for variable in VARIABLES {
                    let value =
                        if *global { self.global(variable) } else { self.system_variable(None, variable.name)?.0 };
                    rows.push(vec![text(variable.name), text(shown(variable, &value))]);
                }
                Ok((texts(&["Variable_name", "Value"]), rows))
            }
            Shown::Status { global } => {
                Ok((texts(&["Variable_name", "Value"]), system::status::rows(&mut self.ctx, *global)))
            }
            Shown::Warnings { errors, count, limit } => Ok(self.show_warnings(*errors, *count, *limit)),
            Shown::Engines => self.of_system(
                "ENGINES",
                &[
                    ("ENGINE", "Engine"),
                    ("SUPPORT", "Support"),
                    ("COMMENT", "Comment"),
                    ("TRANSACTIONS", "Transactions"),
                    ("XA", "XA"),
                    ("SAVEPOINTS", "Savepoints"),
                ],
            ),
            Shown::Collation => self.of_system(
                "COLLATIONS",
                &[
                    ("COLLATION_NAME", "Collation"),
                    ("CHARACTER_SET_NAME", "Charset"),
                    ("ID", "Id"),
                    ("IS_DEFAULT", "Default"),
                    ("IS_COMPILED", "Compiled"),
                    ("SORTLEN", "Sortlen"),
                    ("PAD_ATTRIBUTE", "Pad_attribute"),
                ],
            ),
            Shown::Charset => self.of_system(
                "CHARACTER_SETS",
                &[
                    ("CHARACTER_SET_NAME", "Charset"),
                    ("DESCRIPTION", "Description"),
                    ("DEFAULT_COLLATE_NAME", "Default collation"),
                    ("MAXLEN", "Maxlen"),
                ],
            ),
            Shown::Processlist => self.of_system(
                "PROCESSLIST",
                &[
                    ("ID", "Id"),
                    ("USER", "User"),
                    ("HOST", "Host"),
                    ("DB", "db"),
                    ("COMMAND", "Command"),
                    ("TIME", "Time"),
                    ("STATE", "State"),
                    ("INFO", "Info"),
                ],
            ),
            Shown::Plugins => self.of_system(
                "PLUGINS",
                &[
                    ("PLUGIN_NAME", "Name"),
                    ("PLUGIN_STATUS", "Status"),
                    ("PLUGIN_TYPE", "Type"),
                    ("PLUGIN_LIBRARY", "Library"),
                    ("PLUGIN_LICENSE", "License"),
                ],
            ),
            Shown::OpenTables => Ok((texts(&["Database", "Table", "In_use", "Name_locked"]), Vec::new())),
            Shown::Triggers => Ok((
                texts(&[
                    "Trigger",
                    "Event",
                    "Table",
                    "Statement",
                    "Timing",
                    "Created",
                    "sql_mode",
                    "Definer",
                    "character_set_client",
                    "collation_connection",
                    "Database Collation",
                ]),
                Vec::new(),
            )),
            Shown::Events => Ok((
                texts(&[
                    "Db",
                    "Name",
                    "Definer",
                    "Time zone",
                    "Type",
                    "Execute at",
                    "Interval value",
                    "Interval field",
                    "Starts",
                    "Ends",
                    "Status",
                    "Originator",
                    "character_set_client",
                    "collation_connection",
                    "Database Collation",
                ]),
                Vec::new(),
            )),
            Shown::FunctionStatus | Shown::ProcedureStatus => Ok((
                texts(&[
                    "Db",
                    "Name",
                    "Type",
                    "Definer",
                    "Modified",
                    "Created",
                    "Security_type",
                    "Comment",
                    "character_set_client",
                    "collation_connection",
                    "Database Collation",
                ]),
                Vec::new(),
            )),
            Shown::Grants { of, using } => self.show_grants(of.as_ref(), using),
            Shown::CreateView(name) => self.show_create_view(name),
            Shown::CreateUser(name) => self.show_create_user(name),
            Shown::Privileges => Ok(self.show_privileges()),
            Shown::EngineStatus(engine) => {
                if !["innodb", "all"].iter().any(|known| engine.eq_ignore_ascii_case(known)) {
                    return Err(error::UNKNOWN_STORAGE_ENGINE.with(&[engine]));
                }
                self.show_engine_status()
            }
            Shown::Profiles => Err(SqlError::unsupported("SHOW PROFILES")),
            // Binary logs and replicas do not exist.
            Shown::MasterStatus => {
                Ok((texts(&["File", "Position", "Binlog_Do_DB", "Binlog_Ignore_DB", "Executed_Gtid_Set"]), Vec::new()))
            }
            Shown::ReplicaStatus => Ok((texts(&["Replica_IO_State"]), Vec::new())),
            Shown::Replicas => Ok((texts(&["Server_Id", "Host", "Port", "Source_Id", "Replica_UUID"]), Vec::new())),
            Shown::BinaryLogs => {
                Err(SqlError { code: 1381, sqlstate: "HY000", message: "You are not using binary logging".to_owned() })
            }
        }
    }

    /// Selects columns of a system table under other names.
    fn of_system(&mut self, name: &str, pick: &[(&str, &str)]) -> Result<Answer> {
        let Some(table) = system::find("information_schema", name) else { return Err(SqlError::unsupported(name)) };
        let all = table.columns_as(name);
        let places: Vec<usize> =
            pick.iter().filter_map(|(name, _)| all.iter().position(|column| column.name == *name)).collect();
        let columns = places
            .iter()
            .zip(pick)
            .map(|(at, (_, shown))| Column { name: (*shown).to_owned(), ..all[*at].clone() })
            .collect();
        let node =
            Arc::new(Node::System { table, offset: 0, width: all.len(), wanted: Vec::new(), lock: None, key_at: None });
        let mut exec = Exec::open(&node, None, &mut self.ctx)?;
        let rows = drain(&mut exec, &mut self.ctx, usize::MAX)?;
        Ok((columns, rows.into_iter().map(|row| places.iter().map(|at| row[*at].clone()).collect()).collect()))
    }

    fn schema_of(&self, schema: Option<&str>) -> Result<String> {
        schema.map(str::to_owned).or_else(|| self.database.clone()).ok_or_else(|| error::NO_DB.bare())
    }

    fn show_tables(&mut self, schema: Option<&str>, full: bool) -> Result<Answer> {
        let schema = self.schema_of(schema)?;
        let kind = if is_system(&schema) { "SYSTEM VIEW" } else { "BASE TABLE" };
        let names: Vec<String> = if is_system(&schema) {
            system::all()
                .filter(|table| self.rights.sees_table(&schema, table.name))
                .filter(|table| table.schema.eq_ignore_ascii_case(&schema))
                .map(|table| table.name.to_owned())
                .collect()
        } else {
            // As in MySQL, temporary tables are not listed.
            let found = self.catalog.shared().schema(&schema)?;
            let names = found.tables.keys().chain(found.views.keys());
            let mut names: Vec<String> = names.filter(|name| self.rights.sees_table(&schema, name)).cloned().collect();
            names.sort();
            names
        };
        let mut columns = texts(&[&format!("Tables_in_{schema}")]);
        if full {
            columns.push(text_column("Table_type"));
        }
        let row = |name: String| {
            let kind = if self.catalog.shared().view(&schema, &name).is_some() { "VIEW" } else { kind };
            if full { vec![text(name), text(kind)] } else { vec![text(name)] }
        };
        Ok((columns, names.into_iter().map(row).collect()))
    }

    fn show_table_status(&mut self, schema: Option<&str>) -> Result<Answer> {
        let schema = self.schema_of(schema)?;
        let (columns, rows) = self.of_system(
            "TABLES",
            &[
                ("TABLE_NAME", "Name"),
                ("ENGINE", "Engine"),
                ("VERSION", "Version"),
                ("ROW_FORMAT", "Row_format"),
                ("TABLE_ROWS", "Rows"),
                ("AVG_ROW_LENGTH", "Avg_row_length"),
                ("DATA_LENGTH", "Data_length"),
                ("MAX_DATA_LENGTH", "Max_data_length"),
                ("INDEX_LENGTH", "Index_length"),
                ("DATA_FREE", "Data_free"),
                ("AUTO_INCREMENT", "Auto_increment"),
                ("CREATE_TIME", "Create_time"),
                ("UPDATE_TIME", "Update_time"),
                ("CHECK_TIME", "Check_time"),
                ("TABLE_COLLATION", "Collation"),
                ("CHECKSUM", "Checksum"),
                ("CREATE_OPTIONS", "Create_options"),
                ("TABLE_COMMENT", "Comment"),
                ("TABLE_SCHEMA", "schema"),
            ],
        )?;
        let mine = Value::text(&schema);
        let rows = rows.into_iter().filter(|row| row.last() == Some(&mine));
        let rows = rows.map(|mut row| {
            row.pop();
            row
        });
        Ok((columns[..columns.len() - 1].to_vec(), rows.collect()))
    }

    fn show_columns(&mut self, name: &Name, full: bool) -> Result<Answer> {
        let (schema, name) = self.full_name(name)?;
        let names: &[&str] = if full {
            &["Field", "Type", "Collation", "Null", "Key", "Default", "Extra", "Privileges", "Comment"]
        } else {
            &["Field", "Type", "Null", "Key", "Default", "Extra"]
        };
        let found = system::find(&schema, &name);
        let keys = found.filter(|table| table.is_keyspace());
        if let Some(table) = found.filter(|_| keys.is_none()) {
            let row = |column: Column| {
                let (field, ty) = (text(&column.name), text(column.ty.name()));
                if full {
                    vec![
                        field,
                        ty,
                        text(column.ty.collation.name()),
                        text("YES"),
                        text(""),
                        Value::Null,
                        text(""),
                        text("select"),
                        text(""),
                    ]
                } else {
                    vec![field, ty, text("YES"), text(""), Value::Null, text("")]
                }
            };
            return Ok((texts(names), table.columns_as(&name).into_iter().map(row).collect()));
        }
        let rights = self.rights.clone();
        if let Some(view) = self.catalog.view(&schema, &name).cloned() {
            let columns = self.columns_of_view(&view)?;
            let rows = super::view::described(&columns, full, |column| rights.column_words(&schema, &name, column));
            return Ok((texts(names), rows));
        }
        let table = match keys {
            Some(system) => keyspace_table::table(system).clone(),
            None => table_view(self.catalog.table(&schema, &name)?),
        };
        let mut rows = Vec::new();
        for (at, column) in table.named() {
            if !rights.sees_column(&schema, &name, &column.name) {
                continue;
            }
            let default = optional(default_text(column, &mut self.ctx));
            let null = text(if column.ty.nullable { "YES" } else { "NO" });
            let (key, extra) = (text(column_key(&table, at)), text(column_extra(column)));
            let (field, ty) = (text(&column.name), text(column.ty.name()));
            rows.push(if full {
                let collation = optional(column.ty.kind().is_text().then(|| column.ty.collation.name()));
                vec![
                    field,
                    ty,
                    collation,
                    null,
                    key,
                    default,
                    extra,
                    text(rights.column_words(&schema, &name, &column.name)),
                    text(&column.comment),
                ]
            } else {
                vec![field, ty, null, key, default, extra]
            });
        }
        Ok((texts(names), rows))
    }

    fn show_index(&mut self, name: &Name) -> Result<Answer> {
        let (schema, name) = self.full_name(name)?;
        let table = self.catalog.table(&schema, &name)?.clone();
        self.know(&table);
        let mut columns = texts(&["Table"]);
        columns.push(number_column("Non_unique"));
        columns.push(text_column("Key_name"));
        columns.push(number_column("Seq_in_index"));
        columns.extend(texts(&["Column_name", "Collation"]));
        columns.extend([number_column("Cardinality"), number_column("Sub_part")]);
        columns.extend(texts(&["Packed", "Null", "Index_type", "Comment", "Index_comment", "Visible", "Expression"]));
        let mut rows = Vec::new();
        for (key, unique, parts, comment, visible) in keys(&table) {
            for (at, part) in parts.iter().enumerate() {
                let column = &table.columns[part.column];
                rows.push(vec![
                    text(&table.name),
                    Value::UInt(u64::from(!unique)),
                    text(key),
                    Value::UInt(at as u64 + 1),
                    optional(table.expression_of(part.column).is_none().then_some(&column.name)),
                    text(if part.order.descending { "D" } else { "A" }),
                    Value::UInt(cardinality(&table, parts, at + 1).or(table.live.rows()).unwrap_or(0)),
                    part.prefix.map_or(Value::Null, |prefix| Value::UInt(u64::from(prefix))),
                    Value::Null,
                    text(if column.ty.nullable { "YES" } else { "" }),
                    text("BTREE"),
                    text(""),
                    text(comment),
                    text(if visible { "YES" } else { "NO" }),
                    optional(table.expression_of(part.column).map(listed_text)),
                ]);
            }
        }
        Ok((columns, rows))
    }

    fn show_warnings(&mut self, errors: bool, count: bool, limit: Option<(u64, u64)>) -> Answer {
        let found: Vec<(Level, SqlError)> =
            self.warnings().filter(|(level, _)| !errors || *level == Level::Error).collect();
        if count {
            let name = if errors { "@@session.error_count" } else { "@@session.warning_count" };
            return (vec![number_column(name)], vec![vec![Value::UInt(found.len() as u64)]]);
        }
        let (skip, most) = limit.unwrap_or((0, u64::MAX));
        let rows = found.into_iter().skip(skip as usize).take(usize::try_from(most).unwrap_or(usize::MAX));
        let rows = rows.map(|(level, error)| {
            vec![text(level_name(level)), Value::UInt(u64::from(error.code)), text(error.message)]
        });
        let columns = vec![text_column("Level"), number_column("Code"), text_column("Message")];
        (columns, rows.collect())
    }

    /// Returns the CREATE TABLE statement.
    fn create_text(&mut self, table: &Table) -> Result<String> {
        let mut lines = Vec::new();
        for (_, column) in table.named() {
            lines.push(self.column_text(table, column));
        }
        for (name, unique, parts, comment, visible) in keys(table) {
            let mut line = match (name, unique) {
                ("PRIMARY", _) => "  PRIMARY KEY (".to_owned(),
                (name, true) => format!("  UNIQUE KEY {} (", quoted_name(name)),
                (name, false) => format!("  KEY {} (", quoted_name(name)),
            };
            let parts: Vec<String> = parts
                .iter()
                .map(|part| {
                    let prefix = part.prefix.map_or(String::new(), |prefix| format!("({prefix})"));
                    let direction = if part.order.descending { " DESC" } else { "" };
                    match table.expression_of(part.column) {
                        Some(expression) => format!("({}){direction}", shown_text(expression)),
                        None => format!("{}{prefix}{direction}", quoted_name(&table.columns[part.column].name)),
                    }
                })
                .collect();
            let _ = write!(line, "{})", parts.join(","));
            if table.index(name).map_or(table.primary_using, |at| table.indexes[at].using) {
                line.push_str(" USING BTREE");
            }
            if !comment.is_empty() {
                let _ = write!(line, " COMMENT {}", quoted(comment));
            }
            if !visible {
                line.push_str(" /*!80000 INVISIBLE */");
            }
            lines.push(line);
        }
        for key in by_name(&table.foreign_keys, |key| &key.name) {
            lines.push(format!("  {}", foreign_key_text(&key.parts(table))));
        }
        for check in by_name(&table.checks, |check| &check.name) {
            let enforced = if check.enforced { "" } else { " /*!80016 NOT ENFORCED */" };
            lines.push(format!(
                "  CONSTRAINT {} CHECK ({}){enforced}",
                quoted_name(&check.name),
                shown_text(&check.text)
            ));
        }
        let what = if table.temporary { "CREATE TEMPORARY TABLE" } else { "CREATE TABLE" };
        let mut sql = format!("{what} {} (\n{}\n) ENGINE=InnoDB", quoted_name(&table.name), lines.join(",\n"));
        if table.auto_column().is_some()
            && let Some(next @ 2..) = self.db.next_auto(table)?
        {
            let _ = write!(sql, " AUTO_INCREMENT={next}");
        }
        let _ = write!(sql, " DEFAULT CHARSET={}", table.collation.charset().name());
        if is_told(table.collation) {
            let _ = write!(sql, " COLLATE={}", table.collation.name());
        }
        sql.push_str(&table.options_text(&SHOWN_OPTIONS, str::to_uppercase));
        if !table.comment.is_empty() {
            let _ = write!(sql, " COMMENT={}", quoted(&table.comment));
        }
        Ok(sql)
    }

    fn column_text(&mut self, table: &Table, column: &query::catalog::table::TableColumn) -> String {
        use crate::types::Kind;
        use query::catalog::table::Default;
        let ty: &Type = &column.ty;
        let mut line = format!("  {} {}", quoted_name(&column.name), ty.name());
        if ty.kind().is_text() {
            let differs = column.collated || ty.collation != table.collation;
            if differs {
                let _ = write!(line, " CHARACTER SET {}", ty.charset().name());
            }
            let is_default = ty.collation == ty.charset().default_collation();
            if column.collated || !is_default || differs && is_told(ty.collation) {
                let _ = write!(line, " COLLATE {}", ty.collation.name());
            }
        }
        if let Some(generated) = &column.generated {
            let kind = if generated.stored { "STORED" } else { "VIRTUAL" };
            let _ = write!(line, " GENERATED ALWAYS AS ({}) {kind}", shown_text(&generated.text));
        }
        if !ty.nullable {
            line.push_str(" NOT NULL");
        } else if ty.kind() == Kind::Timestamp {
            line.push_str(" NULL");
        }
        match &column.default {
            Default::None if column.generated.is_some() => {}
            Default::Dropped => {}
            Default::None if !ty.nullable => {}
            Default::Value(value) if !value.is_null() && ty.kind().is_bytes() => {
                let _ = write!(line, " DEFAULT {}", bytes_text(value));
            }
            Default::None | Default::Value(Value::Null) => {
                if !ty.kind().is_blob() || ty.kind() == Kind::Json {
                    line.push_str(" DEFAULT NULL");
                }
            }
            Default::Value(_) => {
                let shown = default_text(column, &mut self.ctx).unwrap_or_default();
                let bit = ty.kind() == Kind::Bit;
                let _ =
                    if bit { write!(line, " DEFAULT {shown}") } else { write!(line, " DEFAULT {}", quoted(&shown)) };
            }
            Default::Now(_) => {
                let _ = write!(line, " DEFAULT {}", default_text(column, &mut self.ctx).unwrap_or_default());
            }
            Default::Expression(expression) => {
                let _ = write!(line, " DEFAULT ({})", shown_text(expression));
            }
        }
        if column.on_update_now {
            let scale = if ty.scale == 0 { String::new() } else { format!("({})", ty.scale) };
            let _ = write!(line, " ON UPDATE CURRENT_TIMESTAMP{scale}");
        }
        if column.auto_increment {
            line.push_str(" AUTO_INCREMENT");
        }
        if column.invisible {
            line.push_str(" /*!80023 INVISIBLE */");
        }
        if !column.comment.is_empty() {
            let _ = write!(line, " COMMENT {}", quoted(&column.comment));
        }
        line
    }
}

/// Returns whether SHOW prints the collation: if it is not the character set's default, or was not in older versions.
fn is_told(collation: Collation) -> bool {
    collation != collation.charset().default_collation() || collation == Collation::DEFAULT
}

/// Returns a binary column's default: a string if valid UTF-8, else hexadecimal.
fn bytes_text(value: &Value) -> String {
    let Value::Bytes(bytes) = value else { return quoted("") };
    match std::str::from_utf8(bytes) {
        Ok(text) => quoted(text),
        Err(_) => hex_text(bytes),
    }
}

/// The constraints of a table by name without case, the order of MySQL's dictionary.
fn by_name<T>(constraints: &[T], name: impl Fn(&T) -> &str) -> Vec<&T> {
    let mut sorted: Vec<&T> = constraints.iter().collect();
    sorted.sort_by_cached_key(|constraint| name(constraint).to_lowercase());
    sorted
}

fn quoted(text: &str) -> String {
    let mut out = String::from("'");
    for letter in text.chars() {
        match letter {
            '\0' => out.push_str("\\0"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("''"),
            other => out.push(other),
        }
    }
    out.push('\'');
    out
}
