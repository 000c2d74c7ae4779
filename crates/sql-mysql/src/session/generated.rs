//! Generated columns and functional indexes in DDL: checks of their expressions, and the hidden columns of functional
//! key parts.
//!
//! `KEY ((a + b))` is an index on a hidden VIRTUAL column, so the rules for indexed generated columns apply.

use std::sync::Arc;

use syntax::tree::{ColumnOption, ExprKind, Ident, IndexDef, IndexKind, KeyPart, PartKey, TableConstraint};

use crate::bind::Bind;
use crate::error::{self, Result, SqlError};
use crate::parse::parse_expression;
use crate::parse::stored::{Disallowed, disallowed, stored_text};
use crate::scalar::state::StateOf as _;
use crate::session::Session;
use crate::types::{Kind, MysqlType as _, Type};
use query::catalog::foreign_key::{Action, ForeignKey};
use query::catalog::table::{self, Generated, Table, TableColumn};
use query::nodes::expr::Expr;

/// A key whose expressions have been replaced by hidden columns.
pub(super) struct Named {
    pub constraint: TableConstraint,
    /// The new columns; their slots follow the existing ones.
    pub columns: Vec<TableColumn>,
}

/// Refuses column options that are not allowed with GENERATED.
pub(super) fn check_generated_options(column: &TableColumn, options: &[ColumnOption]) -> Result<()> {
    if column.generated.is_none() {
        return Ok(());
    }
    let has_default = options.iter().any(|option| matches!(option, ColumnOption::Default(_)));
    let wrong = match () {
        () if has_default => "DEFAULT",
        () if column.on_update_now => "ON UPDATE",
        () if column.auto_increment => "AUTO_INCREMENT",
        () => return Ok(()),
    };
    Err(error::WRONG_USAGE.with(&[&wrong, &"generated column"]))
}

impl Session {
    /// Makes hidden columns for the expressions in a key. `slot` is the first free slot.
    pub(super) fn name_key_expressions(
        &mut self,
        constraint: &TableConstraint,
        columns: &[TableColumn],
        slot: usize,
        table: &str,
    ) -> Result<Named> {
        let mut constraint = constraint.clone();
        let mut made: Vec<TableColumn> = Vec::new();
        let TableConstraint::Index(IndexDef { kind, constraint: symbol, name, parts, options: _ }) = &mut constraint
        else {
            return Ok(Named { constraint, columns: made });
        };
        match kind {
            IndexKind::Primary if parts.iter().any(is_expression) => {
                return Err(error::FUNCTIONAL_INDEX_PRIMARY_KEY.bare());
            }
            IndexKind::Unique | IndexKind::Plain => {}
            IndexKind::Primary | IndexKind::Fulltext | IndexKind::Spatial => {
                return Ok(Named { constraint, columns: made });
            }
        }
        let index = name.as_ref().or(symbol.as_ref()).map_or("functional_index".to_owned(), |name| name.value.clone());
        for part in &*parts {
            match &part.key {
                PartKey::Expr(expr) if matches!(expr.kind, ExprKind::Row(_)) => {
                    return Err(error::FUNCTIONAL_INDEX_ROW_VALUE_IS_NOT_ALLOWED.with(&[&index]));
                }
                PartKey::Expr(expr) if matches!(expr.kind, ExprKind::Cast { operand: _, to: _, array: true }) => {
                    return Err(SqlError::unsupported("multi-valued indexes: CAST ... AS ... ARRAY"));
                }
                PartKey::Expr(_) | PartKey::Column { name: _, length: _ } => {}
            }
        }
        for (nth, KeyPart { key, descending: _ }) in parts.iter_mut().enumerate() {
            let PartKey::Expr(expr) = key else { continue };
            if disallowed(expr).is_some() {
                return Err(error::FUNCTIONAL_INDEX_FUNCTION_IS_NOT_ALLOWED.with(&[&index]));
            }
            let text = stored_text(expr, self.ctx.sql_mode())?;
            let ty = self.key_expression_type(&text, &index, columns, table)?;
            let taken = |name: &str| columns.iter().chain(&made).any(|column| column.name == *name);
            let mut names = (0..).map(|number| format!("!hidden!{index}!{nth}!{number}"));
            let name = names.find(|name| !taken(name)).unwrap_or_default();
            *key = PartKey::Column { name: Ident::new(&name), length: None };
            let generated = Some(Generated { text, stored: false, hidden: true, kept: true });
            made.push(TableColumn { generated, ..TableColumn::new(name, ty, slot + made.len()) });
        }
        Ok(Named { constraint, columns: made })
    }

    /// Returns the type of a functional key part.
    fn key_expression_type(&mut self, text: &str, index: &str, columns: &[TableColumn], table: &str) -> Result<Type> {
        let draft = Arc::new(Table::draft(table, columns));
        let environment = self.bind_environment();
        let expr = Bind::new(&environment).formula(&draft, text, None).map_err(|error| match error.code {
            1241 => error::FUNCTIONAL_INDEX_ROW_VALUE_IS_NOT_ALLOWED.with(&[&index]),
            _ => error,
        })?;
        if expr.columns().iter().any(|at| columns[*at].auto_increment) {
            return Err(error::FUNCTIONAL_INDEX_REF_AUTO_INCREMENT.with(&[&index]));
        }
        let ty = expr.ty();
        match ty.kind() {
            _ if matches!(expr, Expr::Column(..)) => Err(error::FUNCTIONAL_INDEX_ON_FIELD.bare()),
            Kind::Json => Err(error::FUNCTIONAL_INDEX_ON_JSON_OR_GEOMETRY_FUNCTION.bare()),
            kind if kind.is_blob() => Err(error::FUNCTIONAL_INDEX_ON_LOB.bare()),
            Kind::Null => Ok(Type::integer()),
            _ => Ok(ty.with_nullable(true)),
        }
    }

    /// Checks every generated column of a definition. `old` is the previous definition, used to name lost columns in
    /// errors.
    pub(super) fn check_generated(&self, old: Option<&Table>, new: &Table) -> Result<()> {
        let table = Arc::new(new.copy().with_derived_fields());
        let environment = self.bind_environment();
        let bind = Bind::new(&environment);
        for (at, column) in table.columns.iter().enumerate() {
            let Some(generated) = &column.generated else { continue };
            if !generated.hidden {
                check_words(&column.name, &generated.text)?;
            }
            let expr = bind.formula(&table, &generated.text, Some(&column.ty));
            let expr = expr.map_err(|error| of_lost_column(error, generated, old, &table))?;
            for read in expr.columns() {
                if table.columns[read].auto_increment {
                    return Err(error::GENERATED_COLUMN_REF_AUTO_INC.with(&[&column.name]));
                }
                let other = &table.columns[read];
                if read >= at && (other.generated.is_some() || matches!(other.default, table::Default::Expression(_))) {
                    return Err(error::GENERATED_COLUMN_NON_PRIOR.bare());
                }
            }
            let in_primary = table.primary.iter().flatten().any(|part| part.column == at);
            if in_primary && !generated.stored {
                let what = "Defining a virtual generated column as primary key";
                return Err(error::UNSUPPORTED_ACTION_ON_GENERATED_COLUMN.with(&[&what]));
            }
        }
        bind.formulas(&table)?;
        table.foreign_keys.iter().try_for_each(|key| check_child(&table, key))
    }
}

fn is_expression(part: &KeyPart) -> bool {
    matches!(part.key, PartKey::Expr(_))
}

fn check_words(column: &str, text: &str) -> Result<()> {
    match disallowed(&parse_expression(text)?) {
        None => Ok(()),
        Some(Disallowed::Subquery) => Err(error::GENERATED_COLUMN_FUNCTION_IS_NOT_ALLOWED.with(&[&column])),
        Some(Disallowed::Variable) => Err(error::GENERATED_COLUMN_VARIABLES.with(&[&column])),
        Some(Disallowed::Function(name)) => Err(error::GENERATED_COLUMN_FUNCTION.with(&[&column, &name])),
    }
}

/// Returns the error for an expression that uses a dropped or renamed column.
fn of_lost_column(error: SqlError, generated: &Generated, old: Option<&Table>, new: &Table) -> SqlError {
    if !error::BAD_FIELD.is(&error) {
        return error;
    }
    let name = error.message.split('\'').nth(1).unwrap_or("").to_owned();
    let Some(at) = old.and_then(|old| old.column(&name)) else { return error };
    let slot = old.map(|old| old.columns[at].slot);
    let is_renamed = new.columns.iter().any(|column| Some(column.slot) == slot && column.generated.is_none());
    match (generated.hidden, is_renamed) {
        (false, _) => error::DEPENDENT_BY_GENERATED_COLUMN.with(&[&name]),
        (true, true) => error::DEPENDENT_BY_FUNCTIONAL_INDEX.with(&[&name]),
        (true, false) => error::CANNOT_DROP_COLUMN_FUNCTIONAL_INDEX.with(&[&name]),
    }
}

/// Checks the generated columns and their base columns among a foreign key's columns in the child.
fn check_child(table: &Table, key: &ForeignKey) -> Result<()> {
    for at in &key.columns {
        let column = &table.columns[*at];
        let Some(generated) = &column.generated else { continue };
        if !generated.stored {
            return Err(error::FK_CANNOT_USE_VIRTUAL_COLUMN.with(&[&key.name, &column.name]));
        }
        let refused = match (key.on_delete, key.on_update) {
            (Action::SetNull, _) => "ON DELETE SET NULL",
            (_, Action::SetNull) => "ON UPDATE SET NULL",
            (_, Action::Cascade) => "ON UPDATE CASCADE",
            _ => continue,
        };
        return Err(error::WRONG_FK_OPTION_FOR_GENERATED_COLUMN.with(&[&refused]));
    }
    let acts = [key.on_delete, key.on_update].into_iter().any(Action::acts);
    let mut stored = table
        .formulas()?
        .iter()
        .filter(|formula| table.columns[formula.column].generated.as_ref().is_some_and(|generated| generated.stored));
    if acts && stored.any(|formula| formula.reads.iter().any(|read| key.columns.contains(read))) {
        return Err(error::CANNOT_ADD_FOREIGN.bare());
    }
    Ok(())
}

/// Checks the parent's columns: a foreign key cannot refer to a VIRTUAL column.
pub(super) fn check_parent(key: &ForeignKey, parent: &Table) -> Result<()> {
    for at in key.places_in(parent)? {
        let column = &parent.columns[at];
        if column.generated.as_ref().is_some_and(|generated| !generated.stored) {
            return Err(error::FK_CANNOT_USE_VIRTUAL_COLUMN.with(&[&key.name, &column.name]));
        }
    }
    Ok(())
}
