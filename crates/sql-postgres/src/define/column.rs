//! Columns of definitions: types, defaults, identities, generated columns.

use std::sync::Arc;

use query::catalog::sequence::Parameters;
use query::catalog::table::{Default, Generated, Identity, Table, TableColumn};
use syntax::postgres::tree::{ColumnDef, Constraint, ConstraintKind, DefElem, Expr, TypeName};

use crate::bind::{self, TableExpression};
use crate::define::composite::check_levels;
use crate::define::source::{after_word, balanced, within_parentheses};
use crate::error::{PgError, Result, state};
use crate::session::Session;
use crate::types::{oid, registry, user};

/// A sequence that a column needs.
#[derive(Clone, Debug)]
pub(super) struct WantedSequence {
    pub column: usize,
    pub parameters: Parameters,
    /// An identity's sequence; else that of serial, which is the column's default.
    pub identity: bool,
    /// The name that the statement gives.
    pub name: Option<String>,
}

/// An expression of a definition, to be bound once all columns are known.
pub(super) struct WantedExpression<'s> {
    pub column: usize,
    pub expr: &'s Expr,
    pub kind: TableExpression,
    pub text: String,
}

/// A column as declared, before it is added to a table.
pub(super) struct Declared<'s> {
    pub column: TableColumn,
    pub sequence: Option<WantedSequence>,
    pub expression: Option<WantedExpression<'s>>,
    /// The constraints that belong to the table.
    pub constraints: Vec<&'s Constraint>,
}

impl Session {
    /// Resolves the name of a column's type. The second result is that of a serial type: its sequence's width.
    pub(super) fn column_type(&mut self, ty: &TypeName, text: &str) -> Result<(query::types::Type, Option<u8>)> {
        if let [name] = &ty.name.parts[..] {
            let serial = match &**name {
                "smallserial" | "serial2" => Some((2, oid::INT2)),
                "serial" | "serial4" => Some((4, oid::INT4)),
                "bigserial" | "serial8" => Some((8, oid::INT8)),
                _ => None,
            };
            if let Some((bytes, oid)) = serial {
                return Ok((registry::column_type(oid, -1, false), Some(bytes)));
            }
        }
        let (oid, typmod) =
            self.with_environment(&[], |environment, ctx| bind::bind_type_name(environment, ctx, text, ty))?;
        match registry::by_oid(oid) {
            Some(row) if row.kind.has_values() => {
                check_levels(&self.catalog, oid)?;
                Ok((registry::column_type(oid, typmod, true), None))
            }
            Some(row) => {
                let message = format!("column has pseudo-type {}", row.name);
                Err(PgError::new(state::INVALID_TABLE_DEFINITION, message))
            }
            None => Err(PgError::unsupported(format!("type {}", registry::format_type(oid, Some(typmod))))),
        }
    }

    /// Returns a column as it is declared. `at` is its position in the table.
    pub(super) fn declared<'s>(
        &mut self,
        def: &'s ColumnDef,
        at: usize,
        table: &str,
        text: &str,
    ) -> Result<Declared<'s>> {
        let ColumnDef { name, ty, storage, compression, collation, constraints } = def;
        if storage.is_some() || compression.is_some() {
            return Err(PgError::unsupported("STORAGE and COMPRESSION of a column"));
        }
        if let Some(collation) = collation.as_ref().filter(|name| !matches!(name.last(), "C" | "POSIX" | "default")) {
            return Err(PgError::unsupported(format!("collation \"{}\"", collation.last())));
        }
        let Some(ty) = ty else { return Err(PgError::unsupported("a column without a type")) };
        let (ty, serial) = self.column_type(ty, text)?;
        let mut column = TableColumn::new(name.value.clone(), ty, at);
        let mut declared =
            Declared { column: column.clone(), sequence: None, expression: None, constraints: Vec::new() };
        if let Some(bytes) = serial {
            let parameters = super::sequence::defaults(bytes);
            declared.sequence = Some(WantedSequence { column: at, parameters, identity: false, name: None });
        }
        let (mut is_null, mut is_not_null) = (false, serial.is_some());
        let conflict = |what: &str| {
            let message = format!("{what} for column \"{}\" of table \"{table}\"", name.value);
            PgError::new(state::SYNTAX_ERROR, message)
        };
        for constraint in constraints {
            match &constraint.kind {
                ConstraintKind::Null => is_null = true,
                ConstraintKind::NotNull => is_not_null = true,
                ConstraintKind::Default(expr) => {
                    if declared.expression.is_some() || declared.sequence.is_some() {
                        return Err(conflict("multiple default values specified"));
                    }
                    let from = after_word(text, constraint.at.0 as usize, "default");
                    let source = from.and_then(|from| balanced(text, from, expr.span.end as usize)).unwrap_or_default();
                    let kind = TableExpression::Default;
                    declared.expression = Some(WantedExpression { column: at, expr, kind, text: source.to_owned() });
                }
                ConstraintKind::Generated(expr) => {
                    if declared.expression.is_some() {
                        return Err(conflict("both default and generation expression specified"));
                    }
                    let source = within_parentheses(text, constraint.at.0 as usize).unwrap_or_default();
                    let kind = TableExpression::Generated;
                    column.generated =
                        Some(Generated { text: source.to_owned(), stored: true, hidden: false, kept: true });
                    declared.expression = Some(WantedExpression { column: at, expr, kind, text: source.to_owned() });
                }
                ConstraintKind::Identity { always, options } => {
                    if declared.sequence.is_some() {
                        return Err(conflict("multiple identity specifications"));
                    }
                    declared.sequence = Some(self.identity(&mut column, at, *always, options)?);
                    is_not_null = true;
                }
                ConstraintKind::PrimaryKey(_) => {
                    is_not_null = true;
                    declared.constraints.push(constraint);
                }
                ConstraintKind::Unique(_) | ConstraintKind::Check(_) | ConstraintKind::Foreign(_) => {
                    declared.constraints.push(constraint);
                }
                ConstraintKind::Exclusion(_) => return Err(PgError::unsupported("an exclusion constraint")),
            }
        }
        if is_null && is_not_null {
            return Err(conflict("conflicting NULL/NOT NULL declarations"));
        }
        column.ty = column.ty.with_nullable(!is_not_null);
        declared.column = column;
        Ok(declared)
    }

    /// Makes a column an identity, and returns the sequence for it.
    pub(super) fn identity(
        &mut self,
        column: &mut TableColumn,
        at: usize,
        always: bool,
        options: &[DefElem],
    ) -> Result<WantedSequence> {
        let bytes = match registry::oid_of(&column.ty) {
            oid::INT2 => 2,
            oid::INT4 => 4,
            oid::INT8 => 8,
            _ => {
                let message = "identity column type must be smallint, integer, or bigint";
                return Err(PgError::new(state::INVALID_PARAMETER_VALUE, message));
            }
        };
        column.identity = if always { Identity::Always } else { Identity::ByDefault };
        column.ty = column.ty.clone().with_nullable(false);
        let (parameters, name) = super::sequence::of_identity(options, bytes)?;
        Ok(WantedSequence { column: at, parameters, identity: true, name })
    }

    /// Binds the expression of a default or a generated column over the table, and keeps a constant default as a value.
    pub(super) fn settle_expression(
        &mut self,
        table: &mut Table,
        wanted: &WantedExpression<'_>,
        text: &str,
    ) -> Result<()> {
        let WantedExpression { column, expr, kind, text: source } = wanted;
        let over = Arc::new(table.copy().with_derived_fields());
        let bound = self.with_environment(&[], |environment, ctx| {
            bind::bind_table_expression(environment, ctx, text, (&over, expr), *kind, Some(*column))
        })?;
        if *kind == TableExpression::Default {
            let column = &mut table.columns[*column];
            column.default = match bound {
                query::nodes::expr::Expr::Literal(value, _) if value.is_null() => Default::None,
                query::nodes::expr::Expr::Literal(..) if user::is_domain(registry::oid_of(&column.ty)) => {
                    Default::Expression(source.clone())
                }
                query::nodes::expr::Expr::Literal(value, _) => {
                    let assignment = &crate::types::assignment::ASSIGNMENT;
                    let place = query::nodes::assignment::Place { column: &column.name, row: 1 };
                    let ty = column.ty.clone().with_nullable(true);
                    let value = (assignment.store)(value, &ty, place, self.context())?;
                    let (ty, typmod) = crate::system::view::type_of(column);
                    let shown = crate::system::view::constant_text(&value, column, self.context());
                    let place = crate::deparse::ExpressionPlace::Column { ty, typmod };
                    let style = crate::deparse::Style::PLAIN;
                    let written = crate::deparse::expression(&over, source, place, style, self.context());
                    // A constant whose value does not tell how it was written keeps its text.
                    match written {
                        Ok(written) if written != shown => Default::Expression(source.clone()),
                        _ => Default::Value(value),
                    }
                }
                _ => Default::Expression(source.clone()),
            };
        }
        if let Default::Expression(_) = &table.columns[*column].default
            && !table.temporary
        {
            // What a name leads to is settled now, whatever `search_path` a later session has.
            let sites = self.with_environment(&[], |environment, ctx| {
                bind::names_in_definition(environment, ctx, (&over, source), *kind, Some(*column))
            })?;
            if let Some(qualified) = self.with_schemas(source, &sites)? {
                table.columns[*column].default = Default::Expression(qualified);
            }
        }
        Ok(())
    }
}
