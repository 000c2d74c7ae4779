//! The bound expression: names resolved, conversions decided, types known. `eval` walks it over one row.
//!
//! The binder decides once as which type two sides are compared, which function a name leads to, in which collation. A NULL literal has kind
//! `Null`; a parameter without a known type has it too, and then its operators decide by the value they meet.

use datum::Storage;
use std::sync::Arc;

use crate::nodes::comparison::{Comparator, Comparison};
use crate::nodes::function::{Function, SessionUse};
use crate::nodes::subquery::Subquery;
use crate::types::{Collation, Type};
use crate::value::{RecordType, Value};

#[derive(Clone, Debug)]
pub enum Expr {
    Literal(Value, Type),
    /// A value of the row by its place, in stored form.
    Column(usize, Type),
    /// A value of `EvalContext::parameters` by its place.
    Parameter(usize, Type),
    /// A column of the row around a subquery: `depth` counts the blocks from the outermost.
    Outer {
        depth: usize,
        at: usize,
        ty: Type,
    },
    Subquery(Arc<Subquery>, Type),
    /// False as soon as one is false, else NULL if one is NULL.
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Xor(Box<[Expr; 2]>),
    Not(Box<Expr>),
    IsNull(Box<Expr>),
    /// IS TRUE and IS FALSE: never NULL. IS UNKNOWN is `IsNull`.
    IsTruth(Box<Expr>, bool),
    Compare(Box<Compare>),
    /// `needle` between `low` and `high`: two comparisons, each by its own types.
    Between(Box<Between>),
    In(Box<In>),
    Case(Box<Case>),
    Call(Box<Call>),
    /// The value with all the digits of a quotient, not those that are shown: it goes where they are kept.
    Exact(Box<Expr>),
    /// Of a place that holds all digits those that its type shows; to who asks for all of them, all.
    Shown(Box<Expr>),
    /// An array that stands for each of its elements: among the candidates of an `In`, and among the values of an access path.
    Elements(Box<Expr>),
}

#[derive(Clone, Debug)]
pub struct Compare {
    pub op: Comparison,
    pub left: Expr,
    pub right: Expr,
    pub by: Comparator,
}

#[derive(Clone, Debug)]
pub struct Between {
    pub needle: Expr,
    pub low: Expr,
    pub high: Expr,
    pub low_by: Comparator,
    pub high_by: Comparator,
    pub negated: bool,
}

#[derive(Clone, Debug)]
pub struct In {
    pub needle: Expr,
    pub list: Vec<(Expr, Comparator)>,
    /// The comparator that all candidates share, if they are literals other than NULL, sorted by it.
    pub sorted: Option<Comparator>,
    pub negated: bool,
}

#[derive(Clone, Debug)]
pub struct Case {
    /// Conditions, or with an operand the comparisons with it.
    pub arms: Vec<(Expr, Expr)>,
    pub otherwise: Expr,
    pub ty: Type,
}

#[derive(Clone, Debug)]
pub struct Call {
    pub function: &'static Function,
    pub arguments: Vec<Expr>,
    pub ty: Type,
    /// In which the call compares, where it compares strings.
    pub collation: Collation,
    pub extra: Extra,
}

/// Parts of a call that are no expressions. Only the dialect that bound the call reads them.
#[derive(Clone, Debug, Default)]
pub struct Extra {
    /// A word of the call's syntax, as a number of the dialect's.
    pub word: [u8; 2],
    /// The call as it was written, for messages. It does not tell calls apart.
    pub text: Box<str>,
    /// An expression over a row of its own, which the call evaluates for each element of an array.
    pub each: Option<Arc<Expr>>,
    /// The type of a record that the call makes.
    pub record: Option<Arc<RecordType>>,
}

impl Call {
    fn has_same_type(&self, other: &Call) -> bool {
        self.collation == other.collation && self.ty.is_same_but_null(&other.ty)
    }
}

impl Expr {
    pub fn null() -> Expr {
        Expr::Literal(Value::Null, Type::null())
    }

    pub fn is_null_literal(&self) -> bool {
        matches!(self, Expr::Literal(value, _) if value.is_null())
    }

    pub fn truth(truth: bool) -> Expr {
        Expr::Literal(Value::from(truth), Type::truth().with_nullable(false))
    }

    /// All of them; one alone stands for itself.
    pub fn and(mut conditions: Vec<Expr>) -> Expr {
        if conditions.len() == 1 { conditions.swap_remove(0) } else { Expr::And(conditions) }
    }

    pub fn or(mut conditions: Vec<Expr>) -> Expr {
        if conditions.len() == 1 { conditions.swap_remove(0) } else { Expr::Or(conditions) }
    }

    /// The type that the node carries; conditions carry none.
    pub fn carried(&self) -> Option<&Type> {
        match self {
            Expr::Literal(_, ty)
            | Expr::Column(_, ty)
            | Expr::Parameter(_, ty)
            | Expr::Outer { ty, .. }
            | Expr::Subquery(_, ty) => Some(ty),
            Expr::Case(case) => Some(&case.ty),
            Expr::Call(call) => Some(&call.ty),
            Expr::Exact(inner) | Expr::Shown(inner) | Expr::Elements(inner) => inner.carried(),
            _ => None,
        }
    }

    pub fn ty(&self) -> Type {
        if let Some(ty) = self.carried() {
            return ty.clone();
        }
        match self {
            Expr::IsNull(_) | Expr::IsTruth(..) => Type::truth().with_nullable(false),
            Expr::Compare(compare) if compare.op == Comparison::NullSafeEqual => Type::truth().with_nullable(false),
            _ => Type::truth().with_nullable(self.children().iter().any(|child| child.ty().nullable)),
        }
    }

    /// The expressions within, in the order they are written.
    pub fn children(&self) -> Vec<&Expr> {
        match self {
            Expr::Literal(..) | Expr::Column(..) | Expr::Parameter(..) => Vec::new(),
            Expr::Outer { .. } | Expr::Subquery(..) => Vec::new(),
            Expr::And(list) | Expr::Or(list) => list.iter().collect(),
            Expr::Xor(sides) => sides.iter().collect(),
            Expr::Not(inner) | Expr::IsNull(inner) | Expr::IsTruth(inner, _) => vec![inner],
            Expr::Exact(inner) | Expr::Shown(inner) | Expr::Elements(inner) => vec![inner],
            Expr::Compare(node) => vec![&node.left, &node.right],
            Expr::Between(node) => vec![&node.needle, &node.low, &node.high],
            Expr::In(node) => std::iter::once(&node.needle).chain(node.list.iter().map(|(expr, _)| expr)).collect(),
            Expr::Case(node) => {
                let arms = node.arms.iter().flat_map(|(condition, result)| [condition, result]);
                arms.chain(std::iter::once(&node.otherwise)).collect()
            }
            Expr::Call(node) => node.arguments.iter().collect(),
        }
    }

    pub fn children_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Expr::Literal(..) | Expr::Column(..) | Expr::Parameter(..) => Vec::new(),
            Expr::Outer { .. } | Expr::Subquery(..) => Vec::new(),
            Expr::And(list) | Expr::Or(list) => list.iter_mut().collect(),
            Expr::Xor(sides) => sides.iter_mut().collect(),
            Expr::Not(inner) | Expr::IsNull(inner) | Expr::IsTruth(inner, _) => vec![inner],
            Expr::Exact(inner) | Expr::Shown(inner) | Expr::Elements(inner) => vec![inner],
            Expr::Compare(node) => vec![&mut node.left, &mut node.right],
            Expr::Between(node) => vec![&mut node.needle, &mut node.low, &mut node.high],
            Expr::In(node) => {
                std::iter::once(&mut node.needle).chain(node.list.iter_mut().map(|(expr, _)| expr)).collect()
            }
            Expr::Case(node) => {
                let arms = node.arms.iter_mut().flat_map(|(condition, result)| [condition, result]);
                arms.chain(std::iter::once(&mut node.otherwise)).collect()
            }
            Expr::Call(node) => node.arguments.iter_mut().collect(),
        }
    }

    fn is_decimal(&self) -> bool {
        self.carried().is_some_and(|ty| ty.storage == Storage::Decimal)
    }

    /// Keeps all digits of a decimal that may have more than its type shows.
    pub fn keep_all_digits(&mut self) {
        let has_more = matches!(self, Expr::Case(_) | Expr::Call(_) | Expr::Shown(_));
        if has_more && self.is_decimal() {
            *self = Expr::Exact(Box::new(std::mem::replace(self, Expr::null())));
        }
    }

    /// A place that may hold more digits than its type shows.
    pub fn shown(place: Expr) -> Expr {
        if place.is_decimal() { Expr::Shown(Box::new(place)) } else { place }
    }

    /// Calls `visit` for this expression and all within, outermost first.
    pub fn walk<'e>(&'e self, visit: &mut dyn FnMut(&'e Expr)) {
        visit(self);
        for child in self.children() {
            child.walk(visit);
        }
    }

    /// Calls `change` for all within and then for this one, innermost first: to put other columns in place, say.
    pub fn rewrite(&mut self, change: &mut dyn FnMut(&mut Expr)) {
        for child in self.children_mut() {
            child.rewrite(change);
        }
        change(self);
    }

    /// The places of the row that it reads, each once, in order.
    pub fn columns(&self) -> Vec<usize> {
        let mut columns = Vec::new();
        self.walk(&mut |expr| match expr {
            Expr::Column(place, _) => columns.push(*place),
            Expr::Subquery(query, _) => columns.extend_from_slice(&query.reads),
            _ => {}
        });
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// Has it one value for the whole statement? Parameters count as such; RAND() does not.
    pub fn is_constant(&self) -> bool {
        let mut constant = true;
        self.walk(&mut |expr| match expr {
            Expr::Column(..) => constant = false,
            expr if expr.reads_outside() => constant = false,
            Expr::Call(call) => constant &= !call.function.volatile,
            _ => {}
        });
        constant
    }

    /// The subquery that this node is.
    pub fn subquery(&self) -> Option<&Arc<Subquery>> {
        match self {
            Expr::Subquery(query, _) => Some(query),
            _ => None,
        }
    }

    /// Does the node itself take its value from elsewhere than its row, the parameters and its children?
    pub fn reads_outside(&self) -> bool {
        match self {
            Expr::Outer { .. } | Expr::Subquery(..) => true,
            Expr::Call(call) => call.function.session != SessionUse::Unused,
            _ => false,
        }
    }
}

/// The same tree: of GROUP BY's expressions and those of the select list.
impl PartialEq for Expr {
    fn eq(&self, other: &Expr) -> bool {
        self.has_same_head(other) && self.children() == other.children()
    }
}

impl Expr {
    /// Are the two the same but for what is within them?
    pub fn has_same_head(&self, other: &Expr) -> bool {
        match (self, other) {
            (Expr::Literal(a, s), Expr::Literal(b, t)) => a == b && s == t,
            (Expr::Column(a, _), Expr::Column(b, _)) | (Expr::Parameter(a, _), Expr::Parameter(b, _)) => a == b,
            (Expr::Outer { depth: a, at: x, .. }, Expr::Outer { depth: b, at: y, .. }) => (a, x) == (b, y),
            (Expr::Subquery(a, _), Expr::Subquery(b, _)) => Arc::ptr_eq(a, b),
            (Expr::IsTruth(_, a), Expr::IsTruth(_, b)) => a == b,
            (Expr::Compare(a), Expr::Compare(b)) => a.op == b.op && a.by == b.by,
            (Expr::Between(a), Expr::Between(b)) => a.negated == b.negated,
            (Expr::In(a), Expr::In(b)) => a.negated == b.negated,
            (Expr::Case(a), Expr::Case(b)) => a.arms.len() == b.arms.len(),
            (Expr::Call(a), Expr::Call(b)) => {
                let is_same = std::ptr::eq(a.function, b.function)
                    && a.extra.word == b.extra.word
                    && a.extra.each == b.extra.each
                    && a.extra.record == b.extra.record;
                let is_steady = !a.function.volatile && a.function.session != SessionUse::Written;
                is_same && is_steady && (!a.function.typed || a.has_same_type(b))
            }
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        }
    }
}
