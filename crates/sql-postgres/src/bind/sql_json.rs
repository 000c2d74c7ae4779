//! SQL/JSON: constructors, aggregates and IS JSON, as PostgreSQL's `parse_expr.c` analyses them.

use query::nodes::expr::{Call, Expr, Extra};
use query::nodes::function::Function;
use query::types::Collation;
use syntax::postgres::tree::{
    self, Alias, AnyName, ColumnRef, ExprKind, FromItem, FuncCall, Ident, JsonClauses, JsonConstructor, JsonContent,
    JsonEncoding, JsonFormat, JsonReturning, JsonTest, Location, RangeSubselect, ResTarget, Select, SelectBody,
    SelectStmt, Span, TableRef,
};

use crate::bind::Binder;
use crate::bind::typing::{Operand, category, literal, shown};
use crate::error::{PgError, Result, state};
use crate::functions::CastContext;
use crate::functions::json::constructor::{ABSENT, ARRAY, IS_JSON, OBJECT, UNIQUE, word_of_kind};
use crate::types::oid::{self, Oid};
use crate::types::registry::column_type;
use crate::value::Value;

/// The result of a constructor: its own type, and that of RETURNING with the place of its format.
struct JsonResult {
    is_binary: bool,
    returned: Option<(Oid, i32, Option<Location>)>,
}

impl Binder<'_> {
    /// Binds JSON_OBJECT and JSON_ARRAY.
    #[inline(never)]
    pub fn json_constructor(&mut self, node: &JsonConstructor, at: u32) -> Result<Operand> {
        let JsonConstructor { content, clauses } = node;
        let (mut arguments, mut function) = (Vec::new(), &ARRAY);
        match content {
            JsonContent::Object(members) => {
                function = &OBJECT;
                for (key, value) in members {
                    arguments.push(self.expr(key)?);
                    arguments.push(self.expr(value)?);
                }
            }
            JsonContent::Array(items) => {
                for item in items {
                    arguments.push(self.expr(item)?);
                }
            }
            JsonContent::Query(query, format) => return self.json_array_of(query, format.as_ref(), clauses, at),
        }
        let types: Vec<Oid> = self.input_types(&arguments)?;
        let result = self.json_result(clauses.returning.as_ref(), &types)?;
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let argument = self.smashed(argument)?;
            values.push(self.settle(argument)?);
        }
        let absent = if clauses.absent_on_null { ABSENT } else { 0 };
        let unique = if clauses.unique { UNIQUE } else { 0 };
        let ty = if result.is_binary { oid::JSONB } else { oid::JSON };
        let expr = call_with(function, values, ty, [absent | unique, 0]);
        self.json_returned(Operand { expr, at }, &result)
    }

    /// Binds `JSON_ARRAY(query)`: a subquery with the aggregate of the query's rows.
    fn json_array_of(
        &mut self,
        query: &SelectStmt,
        format: Option<&JsonFormat>,
        clauses: &JsonClauses,
        at: u32,
    ) -> Result<Operand> {
        // Bound for the number of its columns; it is bound again within the other query.
        let (sizes, nodes, correlations) = ((self.height, self.weight), self.nodes, self.correlations.clone());
        let (bound, _) = self.deeper(|binder| binder.query(query))?;
        ((self.height, self.weight), self.nodes, self.correlations) = (sizes, nodes, correlations);
        if bound.columns.len() != 1 {
            return self.fail(state::SYNTAX_ERROR, "subquery must return only one column", at);
        }
        let subquery = ExprKind::Subquery(Box::new(array_of_rows(query, format, clauses, at)));
        self.expr(&tree::Expr { kind: subquery, span: Span { start: at, end: at } })
    }

    /// Binds JSON_OBJECTAGG and JSON_ARRAYAGG.
    pub(super) fn json_aggregate(&mut self, node: &FuncCall, clauses: &JsonClauses, at: u32) -> Result<Operand> {
        let operand = self.function_or_aggregate(node, at)?;
        let result = self.json_result(clauses.returning.as_ref(), &[operand.oid()])?;
        self.json_returned(operand, &result)
    }

    /// Returns the name of the aggregate that computes JSON_OBJECTAGG or JSON_ARRAYAGG over arguments of these types.
    pub fn json_aggregate_named(&mut self, clauses: &JsonClauses, types: &[Oid]) -> Result<&'static str> {
        let is_binary = self.json_result(clauses.returning.as_ref(), types)?.is_binary;
        Ok(json_aggregate_name(clauses, types.len() == 2, is_binary))
    }

    /// Binds an argument: a string of another type than json is one with FORMAT JSON alone.
    #[inline(never)]
    pub fn json_value(&mut self, operand: &tree::Expr, format: Option<&JsonFormat>) -> Result<Operand> {
        let bound = self.expr(operand)?;
        let bound = match bound.oid() {
            oid::UNKNOWN => {
                let at = bound.at;
                Operand { expr: self.coerce(bound, oid::TEXT, CastContext::Implicit)?, at }
            }
            _ => bound,
        };
        let Some(JsonFormat { encoding, at: format_at }) = format else { return Ok(bound) };
        let (ty, at) = (self.flat(bound.oid())?, bound.at);
        if encoding.is_some() && ty != oid::BYTEA {
            let text = "JSON ENCODING clause is only allowed for bytea input type";
            return self.fail(state::DATATYPE_MISMATCH, text, format_at.0);
        }
        match ty {
            oid::JSON | oid::JSONB => Ok(bound),
            oid::BYTEA => {
                let text = self.text_of_bytes(bound, *encoding, at)?;
                self.cast_to(text, (oid::JSON, -1), at)
            }
            _ if category(ty) == 'S' => self.cast_to(bound, (oid::JSON, -1), at),
            _ => {
                let text = "cannot use non-string types with explicit FORMAT JSON clause";
                self.fail(state::DATATYPE_MISMATCH, text, format_at.0)
            }
        }
    }

    /// Binds IS JSON.
    #[inline(never)]
    pub fn json_test(&mut self, node: &JsonTest, at: u32) -> Result<Operand> {
        let JsonTest { operand, kind, unique, negated, at: _ } = node;
        let bound = self.expr(operand)?;
        let (ty, place) = (self.flat(bound.oid())?, bound.at);
        let bound = match ty {
            oid::JSON | oid::JSONB => self.smashed(bound)?,
            oid::BYTEA => self.text_of_bytes(bound, None, place)?,
            _ if ty == oid::UNKNOWN || category(ty) == 'S' => {
                Operand { expr: self.coerce(bound, oid::TEXT, CastContext::Implicit)?, at: place }
            }
            _ => {
                let text = format!("cannot use type {} in IS JSON predicate", shown(bound.oid()));
                return Err(PgError::new(state::DATATYPE_MISMATCH, text));
            }
        };
        let word = [word_of_kind(*kind), u8::from(*unique)];
        let test = call_with(&IS_JSON, vec![bound.expr], oid::BOOL, word);
        let expr = if *negated { Expr::Not(Box::new(test)) } else { test };
        Ok(Operand { expr, at })
    }

    fn system_call(&mut self, name: &str, operands: Vec<Operand>, at: u32) -> Result<Operand> {
        let parts = vec!["pg_catalog".to_owned(), name.to_owned()];
        self.call_of_name(&AnyName { parts, at: Location(at) }, operands, at)
    }

    fn text_of_bytes(&mut self, bytes: Operand, encoding: Option<JsonEncoding>, at: u32) -> Result<Operand> {
        let encoding = encoding.unwrap_or(JsonEncoding::Utf8).name();
        let encoding = Operand { expr: literal(Value::text(encoding), oid::NAME), at };
        self.system_call("convert_from", vec![bytes, encoding], at)
    }

    /// Returns the type of a constructor: jsonb if RETURNING or an argument is one.
    fn json_result(&mut self, returning: Option<&JsonReturning>, types: &[Oid]) -> Result<JsonResult> {
        let Some(JsonReturning { ty, format }) = returning else {
            return Ok(JsonResult { is_binary: types.contains(&oid::JSONB), returned: None });
        };
        let is_set = ty.setof;
        let (target, typmod) = self.type_named(&tree::TypeName { setof: false, ..ty.clone() })?;
        if is_set {
            let text = "returning SETOF types is not supported in SQL/JSON functions";
            return Err(PgError::new(state::FEATURE_NOT_SUPPORTED, text));
        }
        if let Some(JsonFormat { encoding: Some(encoding), at }) = format {
            if target != oid::BYTEA {
                let text = "cannot set JSON encoding for non-bytea output types";
                return self.fail(state::FEATURE_NOT_SUPPORTED, text, at.0);
            }
            if *encoding != JsonEncoding::Utf8 {
                let error = PgError::new(state::FEATURE_NOT_SUPPORTED, "unsupported JSON encoding");
                return Err(self.error(error.hint("Only UTF8 JSON encoding is supported."), at.0));
            }
        }
        let is_binary = target == oid::JSONB && format.is_none();
        Ok(JsonResult { is_binary, returned: Some((target, typmod, format.as_ref().map(|format| format.at))) })
    }

    /// Converts what a constructor made to the type of RETURNING.
    fn json_returned(&mut self, operand: Operand, result: &JsonResult) -> Result<Operand> {
        let at = operand.at;
        match result.returned {
            None => Ok(operand),
            Some((target, ..)) if target == operand.oid() => Ok(operand),
            Some((oid::BYTEA, ..)) => {
                let text = Operand { expr: self.coerce(operand, oid::TEXT, CastContext::Assignment)?, at };
                let encoding = Operand { expr: literal(Value::text("UTF8"), oid::NAME), at };
                self.system_call("convert_to", vec![text, encoding], at)
            }
            Some((target, typmod, format_at)) => {
                let place = format_at.map(|at| at.0);
                let done = self.cast_to(operand, (target, typmod), place.unwrap_or(at));
                done.map(|done| Operand { at, ..done }).map_err(|error| match place {
                    None if error.state == state::CANNOT_COERCE => PgError { position: None, ..error },
                    _ => error,
                })
            }
        }
    }
}

/// Returns the name of the aggregate with these rules.
pub fn json_aggregate_name(clauses: &JsonClauses, is_object: bool, is_binary: bool) -> &'static str {
    match (is_binary, is_object, clauses.unique, clauses.absent_on_null) {
        (false, false, _, false) => "json_agg",
        (false, false, _, true) => "json_agg_strict",
        (true, false, _, false) => "jsonb_agg",
        (true, false, _, true) => "jsonb_agg_strict",
        (false, true, false, false) => "json_object_agg",
        (false, true, false, true) => "json_object_agg_strict",
        (false, true, true, false) => "json_object_agg_unique",
        (false, true, true, true) => "json_object_agg_unique_strict",
        (true, true, false, false) => "jsonb_object_agg",
        (true, true, false, true) => "jsonb_object_agg_strict",
        (true, true, true, false) => "jsonb_object_agg_unique",
        (true, true, true, true) => "jsonb_object_agg_unique_strict",
    }
}

/// Returns `SELECT JSON_ARRAYAGG(q.a ...) FROM (query) q(a)`.
pub fn array_of_rows(query: &SelectStmt, format: Option<&JsonFormat>, clauses: &JsonClauses, at: u32) -> SelectStmt {
    let (span, location) = (Span { start: at, end: at }, Location(at));
    let expr = |kind| tree::Expr { kind, span };
    let column = expr(ExprKind::Column(ColumnRef { fields: vec!["q".to_owned(), "a".to_owned()], star: false }));
    let value = match format {
        None => column,
        Some(format) => expr(ExprKind::JsonValue { operand: Box::new(column), format: format.clone() }),
    };
    let name = AnyName { parts: vec!["pg_catalog".to_owned(), "json_agg".to_owned()], at: location };
    let json = Some(Box::new(clauses.clone()));
    let call = FuncCall { sql_syntax: true, json, ..FuncCall::plain(name, vec![value]) };
    let alias = Some(Alias { name: Ident::new("q"), columns: vec![Ident::new("a")] });
    let subselect = RangeSubselect { lateral: false, query: query.clone(), alias, at: location };
    let select = Select {
        distinct: None,
        targets: vec![ResTarget { expr: expr(ExprKind::Function(Box::new(call))), alias: None }],
        into: None,
        from: vec![FromItem { first: TableRef::Subselect(Box::new(subselect)), joins: Vec::new() }],
        selection: None,
        group_by: Vec::new(),
        group_distinct: false,
        having: None,
        windows: Vec::new(),
    };
    let body = SelectBody::Select(Box::new(select));
    SelectStmt { with: None, body, order_by: Vec::new(), limit: None, locking: Vec::new(), span }
}

fn call_with(function: &'static Function, arguments: Vec<Expr>, ty: Oid, word: [u8; 2]) -> Expr {
    let (ty, extra) = (column_type(ty, -1, true), Extra { word, ..Extra::default() });
    Expr::Call(Box::new(Call { function, arguments, ty, collation: Collation::Binary, extra }))
}
