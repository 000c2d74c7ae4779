//! Column definitions: type, default and options.

use syntax::tree::{ColumnDef, ColumnOption, ColumnType, DefaultValue, ExprKind, Literal, TableConstraint};

use crate::error::{self, Result, SqlError};
use crate::parse::stored::stored_text;
use crate::scalar::bind::data_type;
use crate::scalar::state::StateOf as _;
use crate::scalar::state::context_of;
use crate::scalar::store::store;
use crate::session::Session;
use crate::session::definition_parser::{
    COLUMNS_MAX, Definition, KEYS_MAX, add_constraint, binary_of, check_name, collation_of, key_options,
    options_of_column,
};
use crate::session::generated::check_generated_options;
use crate::types::{Collation, Kind, MysqlType as _};
use crate::value::Value;
use query::catalog::table::{Default, Generated, TableColumn};
use query::nodes::assignment::Place;

/// A column to add to a definition.
enum Wanted<'w> {
    Defined(&'w ColumnDef),
    Selected(&'w TableColumn),
}

fn named<'c>(columns: &'c [TableColumn], name: &str) -> Option<&'c TableColumn> {
    columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))
}

impl Session {
    pub(super) fn definition(
        &mut self,
        columns: &[ColumnDef],
        constraints: &[TableConstraint],
        collation: Collation,
        table: &str,
        selected: &[TableColumn],
    ) -> Result<Definition> {
        // The limit comes first: duplicate names are found by comparing each name with those before it.
        if columns.len() > COLUMNS_MAX {
            return Err(error::TOO_MANY_FIELDS.bare());
        }
        let mut definition = Definition {
            columns: Vec::new(),
            primary: None,
            primary_using: false,
            indexes: Vec::new(),
            checks: Vec::new(),
            foreign: Vec::new(),
            collation,
            sql_mode: self.ctx.sql_mode(),
        };
        if let Some(twice) = (1..columns.len()).find(|at| {
            columns[..*at].iter().any(|known| known.name.value.eq_ignore_ascii_case(&columns[*at].name.value))
        }) {
            return Err(error::DUP_FIELDNAME.with(&[&columns[twice].name.value]));
        }
        // Columns of the query come last, in its order. The statement may define some of them.
        let is_selected = |column: &&ColumnDef| named(selected, &column.name.value).is_some();
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
            definition.columns.push(self.column(column, slot, collation)?);
            key_options(column, slot, &mut definition, table)?;
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

    /// Makes a column from its definition. `collation` is the table's.
    pub(super) fn column(&mut self, def: &ColumnDef, slot: usize, collation: Collation) -> Result<TableColumn> {
        let ColumnDef { name, ty, options: _ } = def;
        let name = name.value.as_str();
        check_name(name, &error::WRONG_COLUMN_NAME)?;
        let options = options_of_column(def);
        let mut ty = data_type(&ty.data, column_collation(ty, options.clone(), collation)?, name)?;
        ty.nullable = true;
        let mut column = TableColumn::new(name.to_owned(), ty, slot);
        let is_collate = |option: &ColumnOption| matches!(option, ColumnOption::Collate(_));
        let is_named = def.ty.charset.is_some() || def.ty.collation.is_some() || options.clone().any(is_collate);
        column.collated = is_named && column.ty.kind().is_text();
        // NOT NULL first, since the default is checked against it.
        if options.clone().any(|option| matches!(option, ColumnOption::NotNull | ColumnOption::PrimaryKey)) {
            column.ty.nullable = false;
        }
        for option in options {
            self.column_option(&mut column, option)?;
        }
        check_generated_options(&column, &def.options)?;
        if column.auto_increment {
            column.ty.nullable = false;
            if !(column.ty.kind().is_integer() || matches!(column.ty.kind(), Kind::Float | Kind::Double)) {
                return Err(error::WRONG_FIELD_SPEC.with(&[&name]));
            }
            if column.default != Default::None {
                return Err(error::INVALID_DEFAULT.with(&[&name]));
            }
        }
        Ok(column)
    }

    fn column_option(&mut self, column: &mut TableColumn, option: &ColumnOption) -> Result<()> {
        match option {
            // Handled with the type or with the definition's constraints.
            ColumnOption::Null | ColumnOption::NotNull | ColumnOption::Collate(_) => {}
            ColumnOption::PrimaryKey | ColumnOption::Unique | ColumnOption::Check(_) => {}
            ColumnOption::Comment(text) => column.comment.clone_from(text),
            ColumnOption::Visible(visible) => column.invisible = !visible,
            ColumnOption::AutoIncrement => column.auto_increment = true,
            ColumnOption::Default(value) => column.default = self.default(column, value)?,
            ColumnOption::OnUpdateNow(_) if matches!(column.ty.kind(), Kind::Timestamp | Kind::DateTime) => {
                column.on_update_now = true
            }
            ColumnOption::OnUpdateNow(_) => {
                return Err(SqlError {
                    code: 1294,
                    sqlstate: "HY000",
                    message: format!("Invalid ON UPDATE clause for '{}' column", column.name),
                });
            }
            ColumnOption::Generated { expr, stored } => {
                let (text, stored) = (stored_text(expr, self.ctx.sql_mode())?, *stored);
                column.generated = Some(Generated { text, stored, hidden: false, kept: stored });
            }
            // MySQL parses REFERENCES behind a column and ignores it.
            ColumnOption::References(_) => {}
            // Hints for NDB, which InnoDB ignores as well.
            ColumnOption::Other { name, value: _ } if matches!(name.as_str(), "column_format" | "storage") => {}
            ColumnOption::Other { name, value: _ } => return Err(SqlError::unsupported(name.to_uppercase())),
        }
        Ok(())
    }

    pub(super) fn default(&mut self, column: &TableColumn, value: &DefaultValue) -> Result<Default> {
        let invalid = || error::INVALID_DEFAULT.with(&[&column.name]);
        let constant = match value {
            DefaultValue::Now(scale) => {
                let is_moment = matches!(column.ty.kind(), Kind::Timestamp | Kind::DateTime);
                let fits = is_moment && *scale == u64::from(column.ty.scale);
                return if fits { Ok(Default::Now(column.ty.scale)) } else { Err(invalid()) };
            }
            DefaultValue::Expression(expr) => {
                return Ok(Default::Expression(stored_text(expr, self.ctx.sql_mode())?));
            }
            DefaultValue::Constant(expr) => expr,
        };
        if column.ty.kind().is_blob() {
            if matches!(constant.kind, ExprKind::Literal(Literal::Null)) {
                return if column.ty.nullable { Ok(Default::Value(Value::Null)) } else { Err(invalid()) };
            }
            return Err(error::BLOB_CANT_HAVE_DEFAULT.with(&[&column.name]));
        }
        let value = self.constant(constant)?;
        if value.is_null() {
            return if column.ty.nullable { Ok(Default::Value(Value::Null)) } else { Err(invalid()) };
        }
        let mut strict = context_of(self.ctx.sql_mode());
        (strict.changes_rows, strict.zone) = (true, self.ctx.zone.clone());
        let stored = store(value, &column.ty, Place { column: &column.name, row: 1 }, &mut strict);
        match stored {
            Ok(value) if strict.warnings.count() == 0 || !self.ctx.sql_mode().is_strict() => Ok(Default::Value(value)),
            _ => Err(invalid()),
        }
    }
}

/// Returns a column's collation; `default` is the table's.
fn column_collation<'o>(
    ty: &ColumnType,
    options: impl Iterator<Item = &'o ColumnOption>,
    default: Collation,
) -> Result<Collation> {
    let ColumnType { data: _, charset, binary, collation } = ty;
    let named = options.fold(collation.as_deref(), |named, option| match option {
        ColumnOption::Collate(name) => Some(name),
        _ => named,
    });
    let collation = collation_of(charset.as_deref(), named, default)?;
    if *binary { binary_of(collation.charset()) } else { Ok(collation) }
}
