//! Columns from their words: type, defaults, options.

use sqlparser::ast::{self, ColumnOption, TableConstraint};
use sqlparser::tokenizer::Token;

use crate::catalog::generated::Generated;
use crate::catalog::table::{Default, TableColumn};
use crate::error::{self, Result, SqlError};
use crate::parse::stored::stored_text;
use crate::scalar::bind::data_type;
use crate::scalar::{EvalContext, Place, store};
use crate::session::Session;
use crate::session::generated::check_generated_options;
use crate::session::words::{COLUMNS_MAX, Definition, KEYS_MAX, add_constraint, check_name, collation_of, key_options};
use crate::types::{Collation, Kind};
use crate::value::Value;

/// A column on its way into a definition.
enum Wanted<'w> {
    Defined(&'w ast::ColumnDef),
    Selected(&'w TableColumn),
}

fn named<'c>(columns: &'c [TableColumn], name: &str) -> Option<&'c TableColumn> {
    columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))
}

/// A name without the quotes, of whichever kind, that it may stand in.
fn bare(name: &str) -> String {
    name.trim_matches(['`', '\'', '"']).to_owned()
}

impl Session {
    pub(super) fn definition(
        &mut self,
        columns: &[ast::ColumnDef],
        constraints: &[TableConstraint],
        collation: Collation,
        table: &str,
        selected: &[TableColumn],
    ) -> Result<Definition> {
        // Each name is compared with those before it.
        if columns.len() > COLUMNS_MAX {
            return Err(error::TOO_MANY_FIELDS.bare());
        }
        let mut definition = Definition {
            columns: Vec::new(),
            primary: None,
            indexes: Vec::new(),
            checks: Vec::new(),
            foreign: Vec::new(),
            collation,
            sql_mode: self.ctx.sql_mode,
        };
        if let Some(twice) = (1..columns.len()).find(|at| {
            columns[..*at].iter().any(|known| known.name.value.eq_ignore_ascii_case(&columns[*at].name.value))
        }) {
            return Err(error::DUP_FIELDNAME.with(&[&columns[twice].name.value]));
        }
        // Those that a query gives come last, in its order; some of them are defined here.
        let is_selected = |column: &&ast::ColumnDef| named(selected, &column.name.value).is_some();
        let wanted = columns.iter().filter(|column| !is_selected(column)).map(Wanted::Defined);
        let wanted = wanted.chain(selected.iter().map(|made| {
            let defined = columns.iter().find(|column| column.name.value.eq_ignore_ascii_case(&made.name));
            defined.map_or(Wanted::Selected(made), Wanted::Defined)
        }));
        for (slot, wanted) in wanted.enumerate() {
            let column = match wanted {
                Wanted::Defined(column) => column,
                Wanted::Selected(made) => {
                    check_name(&made.name, &error::WRONG_COLUMN_NAME)?;
                    definition.columns.push(TableColumn { slot, ..made.clone() });
                    continue;
                }
            };
            if definition.columns.iter().any(|known| known.name.eq_ignore_ascii_case(&column.name.value)) {
                return Err(error::DUP_FIELDNAME.with(&[&column.name.value]));
            }
            let options: Vec<&ColumnOption> = column.options.iter().map(|option| &option.option).collect();
            let made = self.column(&column.name.value, &column.data_type, &options, slot, collation)?;
            definition.columns.push(made);
            key_options(&options, slot, &mut definition, table)?;
        }
        if definition.columns.is_empty() {
            return Err(error::TABLE_MUST_HAVE_COLUMNS.bare());
        }
        if definition.columns.len() > COLUMNS_MAX {
            return Err(error::TOO_MANY_FIELDS.bare());
        }
        for constraint in constraints {
            if definition.indexes.len() > KEYS_MAX {
                return Err(error::TOO_MANY_KEYS.with(&[&KEYS_MAX]));
            }
            let taken = definition.columns.len();
            let named = self.name_key_expressions(constraint, &definition.columns, taken, table)?;
            definition.columns.extend(named.columns);
            add_constraint(&named.constraint, &mut definition, table)?;
        }
        if let Some(primary) = &definition.primary {
            for part in primary {
                definition.columns[part.column].ty.nullable = false;
                if definition.columns[part.column].default == Default::Value(Value::Null) {
                    definition.columns[part.column].default = Default::None;
                }
            }
        }
        Ok(definition)
    }

    /// A column from its words.
    pub(super) fn column(
        &mut self,
        name: &str,
        data_type_node: &ast::DataType,
        options: &[&ColumnOption],
        slot: usize,
        collation: Collation,
    ) -> Result<TableColumn> {
        check_name(name, &error::WRONG_COLUMN_NAME)?;
        let (mut charset, mut named) = (None, None);
        for option in options {
            match option {
                ColumnOption::CharacterSet(name) => charset = Some(bare(&name.to_string())),
                ColumnOption::Collation(name) => named = Some(bare(&name.to_string())),
                _ => {}
            }
        }
        let collation = collation_of(charset.as_deref(), named.as_deref(), collation)?;
        let mut ty = data_type(data_type_node, collation, name)?;
        ty.nullable = true;
        ty.zerofill = options.iter().any(|option| is_zerofill(option));
        let mut column = TableColumn::new(name.to_owned(), ty, slot);
        let serial = data_type_node.to_string().eq_ignore_ascii_case("serial");
        if serial {
            column.auto_increment = true;
            column.ty.nullable = false;
        }
        // NOT NULL first: a default is checked against it.
        for option in options {
            if let ColumnOption::NotNull | ColumnOption::PrimaryKey(_) = option {
                column.ty.nullable = false;
            }
        }
        for option in options {
            self.column_option(&mut column, option)?;
        }
        check_generated_options(&column, options)?;
        if column.auto_increment {
            column.ty.nullable = false;
            if !(column.ty.kind.is_integer() || matches!(column.ty.kind, Kind::Float | Kind::Double)) {
                return Err(error::WRONG_FIELD_SPEC.with(&[&name]));
            }
            if column.default != Default::None {
                return Err(error::INVALID_DEFAULT.with(&[&name]));
            }
        }
        Ok(column)
    }

    pub(super) fn column_option(&mut self, column: &mut TableColumn, option: &ColumnOption) -> Result<()> {
        match option {
            ColumnOption::Null | ColumnOption::NotNull | ColumnOption::CharacterSet(_) | ColumnOption::Collation(_) => {
            }
            ColumnOption::PrimaryKey(_) | ColumnOption::Unique(_) | ColumnOption::Check(_) => {}
            ColumnOption::Comment(text) => column.comment.clone_from(text),
            ColumnOption::Invisible => column.invisible = true,
            ColumnOption::Default(expr) => column.default = self.default(column, expr)?,
            ColumnOption::OnUpdate(_) if matches!(column.ty.kind, Kind::Timestamp | Kind::DateTime) => {
                column.on_update_now = true
            }
            ColumnOption::OnUpdate(_) => {
                return Err(SqlError {
                    code: 1294,
                    sqlstate: "HY000",
                    message: format!("Invalid ON UPDATE clause for '{}' column", column.name),
                });
            }
            // It is in the type.
            option if is_zerofill(option) => {}
            ColumnOption::DialectSpecific(tokens) => {
                let words: Vec<String> = tokens.iter().map(|token| token.to_string().to_ascii_lowercase()).collect();
                match words.join(" ").as_str() {
                    "auto_increment" => column.auto_increment = true,
                    other => return Err(SqlError::unsupported(other)),
                }
            }
            ColumnOption::Generated { generation_expr: Some(expr), generation_expr_mode, .. } => {
                let stored = *generation_expr_mode == Some(ast::GeneratedExpressionMode::Stored);
                let text = stored_text(expr, self.ctx.sql_mode)?;
                column.generated = Some(Generated { text, stored, hidden: false, kept: stored });
            }
            // MySQL itself reads REFERENCES behind a column and does nothing about it.
            ColumnOption::ForeignKey(_) => {}
            other => return Err(SqlError::unsupported(other)),
        }
        Ok(())
    }

    fn default(&mut self, column: &TableColumn, expr: &ast::Expr) -> Result<Default> {
        let invalid = || error::INVALID_DEFAULT.with(&[&column.name]);
        let text = expr.to_string();
        let upper = text.to_ascii_uppercase();
        let is_now = ["CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"]
            .iter()
            .any(|name| upper.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('(')));
        if is_now {
            if !matches!(column.ty.kind, Kind::Timestamp | Kind::DateTime) {
                return Err(invalid());
            }
            let scale = upper.split('(').nth(1).and_then(|rest| rest.trim_end_matches(')').parse().ok()).unwrap_or(0);
            return if scale == column.ty.scale { Ok(Default::Now(scale)) } else { Err(invalid()) };
        }
        if let ast::Expr::Nested(inner) = expr {
            return Ok(Default::Expression(stored_text(inner, self.ctx.sql_mode)?));
        }
        if column.ty.kind.is_blob() {
            if matches!(expr, ast::Expr::Value(value) if value.value == ast::Value::Null) {
                return Ok(Default::Value(Value::Null));
            }
            return Err(error::BLOB_CANT_HAVE_DEFAULT.with(&[&column.name]));
        }
        let value = self.constant(expr)?;
        if value.is_null() {
            return if column.ty.nullable { Ok(Default::Value(Value::Null)) } else { Err(invalid()) };
        }
        let mut strict = EvalContext {
            changes_rows: true,
            sql_mode: self.ctx.sql_mode,
            zone: self.ctx.zone.clone(),
            ..EvalContext::new()
        };
        let stored = store(value, &column.ty, Place { column: &column.name, row: 1 }, &mut strict);
        match stored {
            Ok(value) if strict.warnings.count() == 0 || !self.ctx.sql_mode.is_strict() => Ok(Default::Value(value)),
            _ => Err(invalid()),
        }
    }
}

fn is_zerofill(option: &ColumnOption) -> bool {
    let ColumnOption::DialectSpecific(tokens) = option else { return false };
    matches!(&tokens[..], [Token::Word(word)] if word.value == "ZEROFILL")
}
