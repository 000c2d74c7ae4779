//! Values of composite types: coercion to them, their order, and assignments to their fields.
//!
//! Such an expression has the OID of its type, so that the fields are known without a modifier; otherwise it is a row as others are (`bind/record`).

use std::collections::BTreeSet;
use std::sync::Arc;

use datum::value::RecordType;
use query::nodes::expr::{Call, Expr, Extra};
use query::types::{Collation, Type};
use syntax::postgres::tree::{Ident, Indirection};

use crate::bind::Binder;
use crate::bind::comparison::comparator;
use crate::bind::typing::{Operand, shown, unsupported};
use crate::error::{PgError, Result, state};
use crate::functions::CastContext;
use crate::functions::record::{ROW, SET_FIELD};
use crate::types::oid::{self, Oid};
use crate::types::registry::{self, column_type};
use crate::types::{row_type, user};

/// Binds the value of an assignment to a part of a column, and brings it to the type of the part.
pub type PartValue<'v, B> = dyn FnMut(&mut B, (Oid, i32)) -> Result<Expr> + 'v;

impl Binder<'_> {
    /// Returns the rows of a composite type, or of arrays of one; `None` for another type.
    pub fn composite_row(&self, ty: Oid) -> Option<Arc<RecordType>> {
        let element = registry::by_oid(ty).map_or(ty, |row| if row.element == 0 { ty } else { row.element });
        if !user::is_composite(element) {
            return None;
        }
        row_type::definition(&self.environment.snapshot, element)?.row().cloned()
    }

    /// Returns the OID of the row type of a relation by its schema's name and its own.
    pub fn rows_of_relation(&self, schema: &str, name: &str) -> Option<Oid> {
        let schema = [schema.to_owned()];
        let environment = &self.environment;
        let (ty, _) = row_type::find(&environment.snapshot, environment.database, &schema, name)?;
        (ty.name == name).then(|| user::oid_of(&ty))
    }

    /// Coerces to a composite type. `None`: there is no such cast in the context.
    #[inline(never)]
    pub fn coerce_to_composite(&mut self, operand: Operand, target: Oid, context: CastContext) -> Result<Option<Expr>> {
        let (source, at) = (operand.oid(), operand.at);
        if source == target {
            return Ok(Some(operand.expr));
        }
        self.user_types.extend(user::object_of(target));
        match operand.expr {
            expr if source == oid::UNKNOWN => self.coerce_unknown(Operand { expr, at }, target, -1).map(Some),
            Expr::Call(call) if source == oid::RECORD && std::ptr::eq(call.function, &ROW) && is_anonymous(&call) => {
                let Some(row) = self.composite_row(target) else { return Ok(None) };
                self.row_as(call.arguments, &row, (at, at), context).map(|row| Some(row.expr))
            }
            Expr::Call(call) if source == oid::RECORD => {
                let row = call.extra.record.as_ref().map_or_else(|| shown(source), |row| self.row_name(row));
                let text = format!("cannot cast type {row} to {}", shown(target));
                self.fail(state::CANNOT_COERCE, text, at)
            }
            _ if source == oid::RECORD => {
                self.fail(state::CANNOT_COERCE, format!("cannot cast type record to {}", shown(target)), at)
            }
            expr => self.coerce_by_text(Operand { expr, at }, target, context),
        }
    }

    /// Returns whether values of a type have an order: those of a composite type if the values of all fields have.
    pub fn has_order(&self, ty: Oid) -> bool {
        let mut open = vec![ty];
        let mut at = 0;
        while let Some(ty) = open.get(at).copied() {
            at += 1;
            let Ok(ty) = self.flat(ty) else { return false };
            match self.composite_row(ty) {
                Some(row) => {
                    let fields = row.fields.iter().map(|field| field.number);
                    let new: BTreeSet<Oid> = fields.filter(|field| !open.contains(field)).collect();
                    open.extend(new);
                }
                None if comparator(ty, ty).is_none() => return false,
                None => {}
            }
        }
        true
    }

    /// Returns a row with another value of one field.
    fn with_field(base: Expr, row: &Arc<RecordType>, place: usize, value: Expr, ty: Type) -> Expr {
        let word = u16::try_from(place).unwrap_or(u16::MAX).to_le_bytes();
        let extra = Extra { word, record: Some(row.clone()), ..Extra::default() };
        let (function, arguments) = (&SET_FIELD, vec![base, value]);
        Expr::Call(Box::new(Call { function, arguments, ty, collation: Collation::Binary, extra }))
    }

    /// Binds an assignment to a part of a value: `links` lead from `base`, which has the type `ty`, to the part. Returns the whole with the new part.
    #[inline(never)]
    pub fn assigned_part(
        &mut self,
        (base, ty): (Expr, (Oid, i32)),
        links: &[Indirection],
        column: &Ident,
        value: &mut PartValue<'_, Self>,
    ) -> Result<Expr> {
        self.check_stack()?;
        let [link, rest @ ..] = links else { return value(self, ty) };
        let (own, inner) = (ty.0, self.base_type(ty.0)?.0);
        let name = match link {
            Indirection::Field(name) => name,
            Indirection::Star => {
                return Err(self.error(unsupported("assignment to all fields of a column"), column.at.0));
            }
            _ => return self.assigned_elements((base, ty), links, column, value),
        };
        let refused = |binder: &Self, state: &'static str, why: String| {
            let text =
                format!("cannot assign to field \"{}\" of column \"{}\" because {why}", name.value, column.value);
            Err(binder.error(PgError::new(state, text), column.at.0))
        };
        let Some(row) = self.composite_row(inner).filter(|_| user::is_composite(inner)) else {
            let why = format!("its type {} is not a composite type", shown(own));
            return refused(self, state::DATATYPE_MISMATCH, why);
        };
        let Some(place) = row.fields.iter().position(|field| *field.name == *name.value) else {
            return refused(
                self,
                state::UNDEFINED_COLUMN,
                format!("there is no such column in data type {}", shown(inner)),
            );
        };
        let field = self.type_of_field(&row.fields[place]);
        let of_field = (registry::oid_of(&field), registry::typmod_of(&field));
        let base = self.smashed(Operand { expr: base, at: column.at.0 })?.expr;
        let part = self.copy(&base)?;
        let part = self.field_at(part, &row, place);
        let new = self.assigned_part((part, of_field), rest, name, value)?;
        let whole = Self::with_field(base, &row, place, new, column_type(inner, -1, true));
        if own == inner { Ok(whole) } else { self.checked(whole, own) }
    }

    /// Brings a value to the type of a field that it is assigned to.
    pub fn field_value(
        &mut self,
        operand: Operand,
        name: &Ident,
        (target, typmod): (Oid, i32),
        at: u32,
    ) -> Result<Expr> {
        let source = operand.oid();
        match self.coerce_to(operand, target, typmod, CastContext::Assignment)? {
            Some(value) => Ok(value),
            None => {
                let (target, source) = (shown(target), shown(source));
                let text =
                    format!("subfield \"{}\" is of type {target} but expression is of type {source}", name.value);
                let error = PgError::new(state::DATATYPE_MISMATCH, text);
                Err(self.error(error.hint("You will need to rewrite or cast the expression."), at))
            }
        }
    }
}

/// Returns whether a row is one of ROW(...), not of a table.
fn is_anonymous(call: &Call) -> bool {
    call.extra.record.as_ref().is_none_or(|row| row.number == oid::RECORD)
}
