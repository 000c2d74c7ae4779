//! Plans: reads as a tree of operators instead of SQL, so that the server parses no text.
//!
//! A tree is built once and kept as bytes with a digest. Values that differ between executions are `parameter(n)` in the tree and arrive with each request, table names included.
//!
//! ```
//! use beluga_xrpc::plan::{Read, Table, key, parameter, reference, value};
//! let plan = Read::get(Table::named("item").schema("shop"), [key("id", parameter(0))])
//!     .columns(["id", "price"])
//!     .filter(reference(1).greater_than(value(100)))
//!     .plan();
//! ```

use std::ops;

use prost::Message;

use crate::argument::Argument;
pub use crate::message::Aggregate;
use crate::message::{
    Aggr, AnyPlan, Expr, ExprKind, Filter, FunctionCall, GetExpr, GetPlan, Identifier, IndexInfo, KeyExpr, Operator,
    PlanKind, Project, RangeScan, Scalar, ScalarKind, TableInfo, TableProject, TableScanPlan,
};
use crate::request::{Digest, digest};

/// A tree that is ready to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    bytes: Vec<u8>,
    digest: Digest,
}

impl Plan {
    /// The message AnyPlan.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn digest(&self) -> &Digest {
        &self.digest
    }
}

/// A value or a name in a plan.
#[derive(Clone, PartialEq, Debug)]
pub struct Term(Scalar);

/// The parameter of that number, from 0, of those that come with the request.
pub fn parameter(position: u32) -> Term {
    Term(Scalar { kind: ScalarKind::Placeholder as i32, v_position: Some(position), ..Scalar::default() })
}

impl<'a, T: Into<Argument<'a>>> From<T> for Term {
    fn from(value: T) -> Term {
        Term(value.into().scalar())
    }
}

/// A table, its database, and the index to read it by: the primary key where none is named.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    name: Scalar,
    schema: Option<Scalar>,
    index: Option<Scalar>,
}

impl Table {
    pub fn named(name: impl Into<Term>) -> Table {
        Table { name: name.into().0, schema: None, index: None }
    }

    pub fn schema(self, name: impl Into<Term>) -> Table {
        Table { schema: Some(name.into().0), ..self }
    }

    pub fn index(self, name: impl Into<Term>) -> Table {
        Table { index: Some(name.into().0), ..self }
    }

    fn infos(self) -> (TableInfo, Option<IndexInfo>) {
        let index = self.index.map(|name| IndexInfo { name, use_parts: None });
        (TableInfo { version: None, name: self.name, schema_name: self.schema }, index)
    }
}

/// Values for the first columns of an index, all of which must be equal.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Key(GetExpr);

/// A key of one column.
pub fn key(column: impl Into<Term>, value: impl Into<Term>) -> Key {
    Key::default().and(column, value)
}

impl Key {
    /// Values in the order of the index' columns.
    pub fn of(values: impl IntoIterator<Item = impl Into<Term>>) -> Key {
        let part = |value: Term| KeyExpr { field: None, value: value.0 };
        Key(GetExpr { keys: values.into_iter().map(|value| part(value.into())).collect() })
    }

    pub fn and(mut self, column: impl Into<Term>, value: impl Into<Term>) -> Key {
        self.0.keys.push(KeyExpr { field: Some(column.into().0), value: value.into().0 });
        self
    }
}

/// A tree under construction.
#[derive(Clone, PartialEq, Debug)]
pub struct Read(AnyPlan);

fn node(kind: PlanKind) -> AnyPlan {
    AnyPlan { plan_type: kind as i32, ..AnyPlan::default() }
}

impl Read {
    /// The rows that have one of the keys.
    pub fn get(table: Table, keys: impl IntoIterator<Item = Key>) -> Read {
        let (table_info, index_info) = table.infos();
        let get = GetPlan { table_info, index_info, keys: keys.into_iter().map(|key| key.0).collect() };
        Read(AnyPlan { get_plan: Some(get), ..node(PlanKind::Get) })
    }

    /// All rows in the order of the index.
    pub fn scan(table: Table) -> Read {
        let (table_info, index_info) = table.infos();
        let scan = TableScanPlan { table_info, index_info, reverse: None };
        Read(AnyPlan { table_scan_plan: Some(scan), ..node(PlanKind::TableScan) })
    }

    /// The rows from one key to another, both included; None is the end of the index on that side.
    pub fn range(table: Table, from: impl Into<Option<Key>>, to: impl Into<Option<Key>>) -> Read {
        let (table_info, index_info) = table.infos();
        let [key, end_key] = [from.into(), to.into()].map(|key| key.map(|key| key.0));
        let range = RangeScan { table_info, index_info, key, end_key, reverse: None };
        Read(AnyPlan { range_scan: Some(range), ..node(PlanKind::RangeScan) })
    }

    /// Reverses the order of a scan or a range. Call it before adding operators above.
    pub fn reversed(mut self) -> Read {
        if let Some(scan) = &mut self.0.table_scan_plan {
            scan.reverse = Some(true);
        }
        if let Some(range) = &mut self.0.range_scan {
            range.reverse = Some(true);
        }
        self
    }

    /// Keeps only these columns, by name or by position from 0. References number the columns in this order.
    pub fn columns(self, fields: impl IntoIterator<Item = impl Into<Term>>) -> Read {
        let fields = fields.into_iter().map(|field| field.into().0).collect();
        let project = TableProject { sub_read_plan: self.0, fields };
        Read(AnyPlan { table_project: Some(Box::new(project)), ..node(PlanKind::TableProject) })
    }

    /// Replaces each row by computed columns with these names.
    pub fn compute<'a>(self, columns: impl IntoIterator<Item = (&'a str, Expression)>) -> Read {
        let (fields, exprs) = columns.into_iter().map(|(name, of)| (Argument::identifier(name).scalar(), of.0)).unzip();
        let project = Project { sub_read_plan: self.0, fields, exprs };
        Read(AnyPlan { project: Some(Box::new(project)), ..node(PlanKind::Project) })
    }

    /// The rows of which this is true.
    pub fn filter(self, condition: Expression) -> Read {
        let filter = Filter { sub_read_plan: self.0, expr: condition.0 };
        Read(AnyPlan { filter: Some(Box::new(filter)), ..node(PlanKind::Filter) })
    }

    /// One value of all rows.
    pub fn aggregate(self, kind: Aggregate, of: Expression) -> Read {
        let aggr = Aggr { sub_read_plan: self.0, kind: kind as i32, field: None, expr: Some(of.0) };
        Read(AnyPlan { aggr: Some(Box::new(aggr)), ..node(PlanKind::Aggr) })
    }

    pub fn plan(&self) -> Plan {
        let bytes = self.0.encode_to_vec();
        Plan { digest: digest(&bytes), bytes }
    }
}

/// An expression of a filter or a projection.
#[derive(Clone, PartialEq, Debug)]
pub struct Expression(Expr);

fn expression(kind: ExprKind) -> Expr {
    Expr { kind: kind as i32, ..Expr::default() }
}

/// A literal, or with `parameter(n)` a parameter.
pub fn value(term: impl Into<Term>) -> Expression {
    let Term(scalar) = term.into();
    if scalar.kind == ScalarKind::Placeholder as i32 {
        return Expression(Expr { position: scalar.v_position, ..expression(ExprKind::Placeholder) });
    }
    Expression(Expr { literal: Some(scalar), ..expression(ExprKind::Literal) })
}

/// A column of the node below, from 0.
pub fn reference(position: u32) -> Expression {
    Expression(Expr { ref_id: Some(position), ..expression(ExprKind::Ref) })
}

/// An operator by its name, as `+` or `is_not`.
pub fn operator(name: &str, operands: impl IntoIterator<Item = Expression>) -> Expression {
    let operator = Operator { name: name.into(), param: operands.into_iter().map(|operand| operand.0).collect() };
    Expression(Expr { operator: Some(operator), ..expression(ExprKind::Operator) })
}

/// A function by its name.
pub fn call(name: &str, arguments: impl IntoIterator<Item = Expression>) -> Expression {
    let name = Identifier { name: name.into(), schema_name: None };
    let call = FunctionCall { name, param: arguments.into_iter().map(|argument| argument.0).collect() };
    Expression(Expr { function_call: Some(call), ..expression(ExprKind::FuncCall) })
}

impl Expression {
    pub fn equal_to(self, other: Expression) -> Expression {
        operator("==", [self, other])
    }

    pub fn not_equal_to(self, other: Expression) -> Expression {
        operator("!=", [self, other])
    }

    /// Equality for which NULL is a value like others.
    pub fn same_as(self, other: Expression) -> Expression {
        operator("<=>", [self, other])
    }

    pub fn less_than(self, other: Expression) -> Expression {
        operator("<", [self, other])
    }

    pub fn at_most(self, other: Expression) -> Expression {
        operator("<=", [self, other])
    }

    pub fn greater_than(self, other: Expression) -> Expression {
        operator(">", [self, other])
    }

    pub fn at_least(self, other: Expression) -> Expression {
        operator(">=", [self, other])
    }

    pub fn and(self, other: Expression) -> Expression {
        operator("&&", [self, other])
    }

    pub fn or(self, other: Expression) -> Expression {
        operator("||", [self, other])
    }

    pub fn is_null(self) -> Expression {
        operator("is", [self, value(Argument::Null)])
    }

    pub fn is_not_null(self) -> Expression {
        operator("is_not", [self, value(Argument::Null)])
    }

    pub fn like(self, pattern: Expression) -> Expression {
        operator("like", [self, pattern])
    }

    pub fn not_like(self, pattern: Expression) -> Expression {
        operator("not_like", [self, pattern])
    }

    pub fn is_in(self, list: impl IntoIterator<Item = Expression>) -> Expression {
        operator("in", std::iter::once(self).chain(list))
    }

    pub fn is_not_in(self, list: impl IntoIterator<Item = Expression>) -> Expression {
        operator("not_in", std::iter::once(self).chain(list))
    }

    /// Division without a remainder.
    pub fn div_whole(self, other: Expression) -> Expression {
        operator("div", [self, other])
    }
}

macro_rules! operators {
    ($($trait:ident $function:ident $name:literal),*) => {
        $(impl ops::$trait for Expression {
            type Output = Expression;
            fn $function(self, other: Expression) -> Expression {
                operator($name, [self, other])
            }
        })*
    };
}

operators!(Add add "+", Sub sub "-", Mul mul "*", Div div "/", Rem rem "%");

impl ops::Neg for Expression {
    type Output = Expression;
    fn neg(self) -> Expression {
        operator("-", [self])
    }
}

impl ops::Not for Expression {
    type Output = Expression;
    fn not(self) -> Expression {
        operator("!", [self])
    }
}
