//! The volatility of bound expressions: an index may contain only those whose values depend on nothing but the row.
//!
//! A function's volatility is that of its row of `pg_proc`. The binder's own functions have none: casts through text are
//! as the input and output functions of the types, and readings of the clock are stable.

use std::collections::HashMap;
use std::sync::LazyLock;

use query::nodes::expr::{Call, Expr};
use query::nodes::function::{Folding, Function, SessionUse};

use crate::functions::{Body, Volatility, functions};
use crate::types::oid::{self, Oid};
use crate::types::registry::oid_of;

/// `anytextcat` and `textanycat`, which are stable for the sake of the types that they show.
const SHOWING: [Oid; 2] = [2003, 2004];

/// The functions of rows that are not immutable, by address.
static MUTABLE: LazyLock<HashMap<usize, Oid>> = LazyLock::new(|| {
    let mutable = functions().filter(|row| row.volatility != Volatility::Immutable);
    let scalar = mutable.filter_map(|row| match row.body {
        Body::Scalar(function) => Some((address(function), row.oid)),
        _ => None,
    });
    scalar.collect()
});

/// Whether input and output of a type are immutable, from `pg_type` and `pg_proc`.
static FORMS: LazyLock<HashMap<Oid, (bool, bool)>> = LazyLock::new(|| {
    let lines = include_str!("../system/extract/pg_proc.tsv").lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let immutable: HashMap<&str, bool> = lines.map(|fields| (fields[0], fields[14] == "i")).collect();
    let number = |field: &str| field.parse().unwrap_or(0);
    let is_immutable = |oid: &str| immutable.get(oid).copied().unwrap_or(false);
    let types = include_str!("../system/extract/pg_type.tsv").lines().map(|line| line.split('\t').collect::<Vec<_>>());
    types.map(|fields| (number(fields[0]), (is_immutable(fields[15]), is_immutable(fields[16])))).collect()
});

fn address(function: &'static Function) -> usize {
    std::ptr::from_ref(function).addr()
}

/// Returns whether the expression gives the same value for the same row at any time, in any session.
pub fn is_immutable(expr: &Expr) -> bool {
    let mut is_fixed = true;
    expr.walk(&mut |part| {
        is_fixed &= match part {
            Expr::Call(call) => is_immutable_call(call),
            part => part.subquery().is_none(),
        }
    });
    is_fixed
}

fn is_immutable_call(call: &Call) -> bool {
    let function = call.function;
    if function.volatile || function.session != SessionUse::Unused {
        return false;
    }
    if let Some(row) = MUTABLE.get(&address(function)) {
        return SHOWING.contains(row) && call.arguments.iter().all(|argument| shows_immutably(oid_of(&argument.ty())));
    }
    match function.name() {
        "through text" => {
            let source = call.arguments.first().map_or(oid::TEXT, |argument| oid_of(&argument.ty()));
            shows_immutably(source) && FORMS.get(&oid_of(&call.ty)).is_some_and(|(input, _)| *input)
        }
        "json_object constructor" | "json_array constructor" => {
            call.arguments.iter().all(|argument| shows_immutably(oid_of(&argument.ty())))
        }
        "current_date" | "current_time" | "current_timestamp" | "localtime" | "localtimestamp" => false,
        // Dates and timestamps among instants, by the zone of the session.
        "timestamptz" => function.folding != Folding::None,
        _ => true,
    }
}

fn shows_immutably(ty: Oid) -> bool {
    ty == oid::UNKNOWN || FORMS.get(&ty).is_some_and(|(_, output)| *output)
}
