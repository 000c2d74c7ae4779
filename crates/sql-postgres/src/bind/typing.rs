//! Types of bound expressions, and what errors say of them.

use query::nodes::expr::Expr;
use query::types::{Type, TypeId};

use crate::error::{PgError, state};
use crate::types::oid::{self, Oid};
use crate::types::registry::{self, by_oid, column_type, format_type, typmod_of};
use crate::value::Value;

/// A bound expression, and the byte of the text that errors point to.
#[derive(Clone, Debug)]
pub struct Operand {
    pub expr: Expr,
    pub at: u32,
}

impl Operand {
    pub fn oid(&self) -> Oid {
        oid_of(&self.expr)
    }

    pub fn is_unknown(&self) -> bool {
        self.oid() == oid::UNKNOWN
    }
}

/// Returns the type of an expression. Conditions are bool.
pub fn oid_of(expr: &Expr) -> Oid {
    expr.carried().map_or(oid::BOOL, registry::oid_of)
}

pub fn typmod_of_expr(expr: &Expr) -> i32 {
    expr.carried().map_or(-1, typmod_of)
}

/// Returns the type as a result column, a table or a key has it: that of conditions is bool, and whatever is still unknown a text.
pub fn settled(ty: &Type) -> Type {
    match ty.id {
        TypeId::TRUTH => column_type(oid::BOOL, -1, ty.nullable),
        TypeId::NULL => column_type(oid::TEXT, -1, ty.nullable),
        TypeId(oid::UNKNOWN) => column_type(oid::TEXT, -1, ty.nullable),
        _ => ty.clone(),
    }
}

pub fn unknown_type() -> Type {
    column_type(oid::UNKNOWN, -1, true)
}

pub fn literal(value: Value, ty: Oid) -> Expr {
    let nullable = value.is_null();
    Expr::Literal(value, column_type(ty, -1, nullable))
}

pub fn category(ty: Oid) -> char {
    match by_oid(ty) {
        Some(row) => row.category,
        None if registry::element_of(ty).is_some() => 'A',
        None => 'U',
    }
}

pub fn is_preferred(ty: Oid) -> bool {
    by_oid(ty).is_some_and(|row| row.is_preferred)
}

/// Returns the name of a type as errors have it.
pub fn shown(ty: Oid) -> String {
    format_type(ty, None)
}

/// Returns the names of types, as the arguments of a function are shown.
pub fn shown_list(types: &[Oid]) -> String {
    types.iter().map(|ty| shown(*ty)).collect::<Vec<_>>().join(", ")
}

/// Returns the expression with another type over the same values.
pub fn retyped(mut expr: Expr, target: Oid, typmod: i32) -> Expr {
    let to = column_type(target, typmod, true);
    let place = match &mut expr {
        Expr::Exact(inner) | Expr::Shown(inner) => return retyped((**inner).clone(), target, typmod),
        Expr::Literal(_, ty)
        | Expr::Column(_, ty)
        | Expr::Parameter(_, ty)
        | Expr::Outer { ty, .. }
        | Expr::Subquery(_, ty) => ty,
        Expr::Case(case) => &mut case.ty,
        Expr::Call(call) => &mut call.ty,
        _ => return expr,
    };
    *place = to.with_nullable(place.nullable);
    expr
}

pub fn unsupported(what: impl Into<String>) -> PgError {
    PgError::new(state::FEATURE_NOT_SUPPORTED, format!("{} is not supported", what.into()))
}
