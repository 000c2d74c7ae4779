//! Evaluation of jsonpath over a document: `executeJsonPath`.
//!
//! Items go through the accessors one by one, depth first, so that what was found before an error is known when errors are suppressed. A condition has three results; an error within one makes it unknown.

mod compare;
pub mod parts;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::LazyLock;

use datum::json::{JsonbScalar, Members, Node};
use datum::{Fault, Result};
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use crate::error::{PgError, SqlState, state};
use crate::functions::args::{text, truth};
use crate::functions::json::access::kind;
use crate::functions::json::{document, of_node};
use crate::functions::numeric::arithmetic::{add, divide, modulo, multiply, subtract};
use crate::functions::text::regex::{self, RegexOptions};
use crate::types::jsonpath::{self, Accessor, Arithmetic, Expr, Flags, JsonPath, LAST_LEVEL, Method};
use crate::types::numeric::float::float_in;
use crate::types::numeric::numeric_in;
use crate::value::{Decimal, Value};

/// Items between two looks for a cancel request.
const ITEMS: u32 = 4096;

/// The reason why an evaluation ends early.
#[derive(Debug)]
enum Fail {
    /// An error of the path over this document, which may be suppressed.
    Path(PgError),
    /// An error of the statement.
    Statement(Fault),
}

impl From<Fault> for Fail {
    fn from(fault: Fault) -> Fail {
        Fail::Statement(fault)
    }
}

type Run<T> = std::result::Result<T, Fail>;

#[cold]
fn fail<T>(state: SqlState, text: impl Into<String>) -> Run<T> {
    Err(Fail::Path(PgError::new(state, text)))
}

/// The result of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Truth {
    False,
    True,
    Unknown,
}

impl From<bool> for Truth {
    fn from(truth: bool) -> Truth {
        if truth { Truth::True } else { Truth::False }
    }
}

/// An item: a node of the document, or one that was computed.
type PathItem<'d> = Cow<'d, Node>;

/// Paths that a thread keeps; when there are more, it begins anew.
const KEPT_MAX: usize = 64;

thread_local! {
    static KEPT: RefCell<HashMap<Box<str>, Rc<JsonPath>>> = RefCell::new(HashMap::new());
}

fn kept(text: &str) -> Result<Rc<JsonPath>> {
    KEPT.with_borrow_mut(|kept| {
        if let Some(path) = kept.get(text) {
            return Ok(path.clone());
        }
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        let path = Rc::new(jsonpath::parse(text)?);
        kept.insert(text.into(), path.clone());
        Ok(path)
    })
}

/// Compiles the pattern of a `like_regex`, whose flags are XQuery's.
pub fn compile(pattern: &str, flags: Flags) -> crate::error::Result<Rc<fancy_regex::Regex>> {
    let options = RegexOptions {
        ignores_case: flags.ignores_case,
        newline_stops: !flags.is_literal && !flags.dot_matches_newline,
        newline_anchors: !flags.is_literal && flags.multiline,
        is_literal: flags.is_literal,
        ..RegexOptions::PLAIN
    };
    regex::compile(pattern, options)
}

/// An evaluation.
struct Evaluation<'d, 'c> {
    root: &'d Node,
    variables: &'d Node,
    is_lax: bool,
    /// Missing parts are no errors: in lax mode, and below `.**`.
    ignores_structure: bool,
    /// The number of elements of the innermost array with a subscript.
    size: Option<usize>,
    items: u32,
    ctx: &'c mut EvalContext,
}

/// Where items go.
type Sink<'d> = Vec<PathItem<'d>>;

impl<'d> Evaluation<'d, '_> {
    fn tick(&mut self) -> Run<()> {
        self.items = self.items.wrapping_add(1);
        if self.items.is_multiple_of(ITEMS) {
            self.ctx.check_killed()?;
        }
        Ok(())
    }

    /// Appends the items of an expression over the current item.
    fn expr(&mut self, expr: &Expr, current: &PathItem<'d>, out: &mut Sink<'d>) -> Run<()> {
        self.tick()?;
        match expr {
            Expr::Access(base, accessors) => self.base(base, current, accessors, out),
            base => self.base(base, current, &[], out),
        }
    }

    fn base(&mut self, base: &Expr, current: &PathItem<'d>, accessors: &[Accessor], out: &mut Sink<'d>) -> Run<()> {
        let item = match base {
            Expr::Null => Cow::Owned(Node::Null),
            Expr::Bool(truth) => Cow::Owned(Node::Bool(*truth)),
            Expr::Number(number) => Cow::Owned(Node::Decimal(number.clone())),
            Expr::String(text) => Cow::Owned(Node::String(text.clone())),
            Expr::Variable(name) => self.variable(name)?,
            Expr::Root => Cow::Borrowed(self.root),
            Expr::Current => current.clone(),
            Expr::Last => match self.size {
                Some(size) => Cow::Owned(Node::Decimal(Decimal::new(size as i128 - 1, 0))),
                None => return fail(state::INTERNAL_ERROR, "evaluating jsonpath LAST outside of array subscript"),
            },
            Expr::Arithmetic(op, left, right) => self.arithmetic(*op, left, right, current)?,
            Expr::Signed(is_minus, operand) => return self.signed(*is_minus, operand, current, accessors, out),
            // An expression in brackets.
            Expr::Access(..) => {
                let mut items = Vec::new();
                self.expr(base, current, &mut items)?;
                return items.into_iter().try_for_each(|item| self.access(item, accessors, self.is_lax, out));
            }
            condition => match self.condition(condition, current)? {
                Truth::Unknown => Cow::Owned(Node::Null),
                truth => Cow::Owned(Node::Bool(truth == Truth::True)),
            },
        };
        self.access(item, accessors, self.is_lax, out)
    }

    fn variable(&self, name: &str) -> Run<PathItem<'d>> {
        let Node::Object(variables) = self.variables else {
            return Err(Fail::Statement(Fault::corrupt("variables that are no object")));
        };
        match variables.get(name) {
            Some(node) => Ok(Cow::Borrowed(node)),
            None => {
                let text = format!("could not find jsonpath variable \"{name}\"");
                Err(Fail::Statement(PgError::new(state::UNDEFINED_OBJECT, text).into()))
            }
        }
    }

    /// Passes an item through accessors. `unwraps`: an array stands for its elements where the first accessor is for what they are.
    fn access(&mut self, item: PathItem<'d>, accessors: &[Accessor], unwraps: bool, out: &mut Sink<'d>) -> Run<()> {
        self.tick()?;
        let Some((accessor, rest)) = accessors.split_first() else {
            out.push(item);
            return Ok(());
        };
        match accessor {
            Accessor::Key(name) => self.key(item, name, (accessors, rest), unwraps, out),
            Accessor::AnyKey => match members(&item) {
                Some(parts) => self.each(parts, rest, self.is_lax, out),
                None if unwraps && is_array(&item) => self.each(elements(&item), accessors, false, out),
                None if self.ignores_structure => Ok(()),
                None => fail(
                    state::SQL_JSON_OBJECT_NOT_FOUND,
                    "jsonpath wildcard member accessor can only be applied to an object",
                ),
            },
            Accessor::AnyElement if is_array(&item) => self.each(elements(&item), rest, self.is_lax, out),
            Accessor::AnyElement if self.is_lax => self.access(item, rest, self.is_lax, out),
            Accessor::AnyElement if self.ignores_structure => Ok(()),
            Accessor::AnyElement => fail(
                state::SQL_JSON_ARRAY_NOT_FOUND,
                "jsonpath wildcard array accessor can only be applied to an array",
            ),
            Accessor::Elements(list) => self.subscripts(&item, list, rest, out),
            Accessor::AnyLevel(first, last) => {
                if *first == 0 {
                    let ignores = std::mem::replace(&mut self.ignores_structure, true);
                    let result = self.access(item.clone(), rest, self.is_lax, out);
                    self.ignores_structure = ignores;
                    result?;
                }
                self.levels(&item, 1, (*first, *last), rest, out)
            }
            Accessor::Filter(_) if unwraps && is_array(&item) => self.each(elements(&item), accessors, false, out),
            Accessor::Filter(condition) => match self.condition(condition, &item)? {
                Truth::True => self.access(item, rest, self.is_lax, out),
                _ => Ok(()),
            },
            Accessor::Method(method) => self.method(*method, item, (accessors, rest), unwraps, out),
        }
    }

    fn each(&mut self, parts: Vec<PathItem<'d>>, accessors: &[Accessor], unwraps: bool, out: &mut Sink<'d>) -> Run<()> {
        parts.into_iter().try_for_each(|part| self.access(part, accessors, unwraps, out))
    }

    fn key(
        &mut self,
        item: PathItem<'d>,
        name: &str,
        (accessors, rest): (&[Accessor], &[Accessor]),
        unwraps: bool,
        out: &mut Sink<'d>,
    ) -> Run<()> {
        if let Node::Object(_) = &*item {
            return match member(&item, name) {
                Some(part) => self.access(part, rest, self.is_lax, out),
                None if self.ignores_structure => Ok(()),
                None => fail(state::SQL_JSON_MEMBER_NOT_FOUND, format!("JSON object does not contain key \"{name}\"")),
            };
        }
        if unwraps && is_array(&item) {
            return self.each(elements(&item), accessors, false, out);
        }
        match self.ignores_structure {
            true => Ok(()),
            false => {
                fail(state::SQL_JSON_MEMBER_NOT_FOUND, "jsonpath member accessor can only be applied to an object")
            }
        }
    }

    fn subscripts(
        &mut self,
        item: &PathItem<'d>,
        list: &[(Expr, Option<Expr>)],
        rest: &[Accessor],
        out: &mut Sink<'d>,
    ) -> Run<()> {
        if !is_array(item) && !self.is_lax {
            if self.ignores_structure {
                return Ok(());
            }
            let text = "jsonpath array accessor can only be applied to an array";
            return fail(state::SQL_JSON_ARRAY_NOT_FOUND, text);
        }
        let parts = if is_array(item) { elements(item) } else { vec![item.clone()] };
        let size = parts.len() as i64;
        let around = self.size.replace(parts.len());
        for (first, last) in list {
            let first = self.subscript(first, item)?;
            let last = match last {
                Some(last) => self.subscript(last, item)?,
                None => first,
            };
            if !self.ignores_structure && (first < 0 || first > last || last >= size) {
                return fail(state::INVALID_SQL_JSON_SUBSCRIPT, "jsonpath array subscript is out of bounds");
            }
            for place in first.max(0)..=last.min(size - 1) {
                self.size = around;
                let result = self.access(parts[place as usize].clone(), rest, self.is_lax, out);
                self.size = Some(parts.len());
                result?;
            }
        }
        self.size = around;
        Ok(())
    }

    fn subscript(&mut self, expr: &Expr, item: &PathItem<'d>) -> Run<i64> {
        let mut found = Vec::new();
        self.expr(expr, item, &mut found)?;
        let number = match &found[..] {
            [only] => number(only),
            _ => None,
        };
        let Some(number) = number else {
            return fail(state::INVALID_SQL_JSON_SUBSCRIPT, "jsonpath array subscript is not a single numeric value");
        };
        let whole = number.truncated(0).small().and_then(|whole| i32::try_from(whole).ok());
        match whole {
            Some(whole) => Ok(whole.into()),
            None => fail(state::INVALID_SQL_JSON_SUBSCRIPT, "jsonpath array subscript is out of integer range"),
        }
    }

    /// Visits parts of parts, from this level to the last one.
    fn levels(
        &mut self,
        item: &PathItem<'d>,
        level: u32,
        (first, last): (u32, u32),
        rest: &[Accessor],
        out: &mut Sink<'d>,
    ) -> Run<()> {
        let parts = match members(item) {
            Some(parts) => parts,
            None if is_array(item) => elements(item),
            None => return Ok(()),
        };
        if level > last {
            return Ok(());
        }
        for part in parts {
            self.tick()?;
            let is_leaf = !matches!(*part, Node::Array(_) | Node::Object(_));
            let is_met = level >= first || (first == LAST_LEVEL && last == LAST_LEVEL && is_leaf);
            if is_met {
                let ignores = std::mem::replace(&mut self.ignores_structure, true);
                let result = self.access(part.clone(), rest, self.is_lax, out);
                self.ignores_structure = ignores;
                result?;
            }
            if level < last {
                self.levels(&part, level + 1, (first, last), rest, out)?;
            }
        }
        Ok(())
    }

    fn method(
        &mut self,
        method: Method,
        item: PathItem<'d>,
        (accessors, rest): (&[Accessor], &[Accessor]),
        unwraps: bool,
        out: &mut Sink<'d>,
    ) -> Run<()> {
        let result = match method {
            Method::Type => Node::String(kind(&item).into()),
            Method::Size => match &*item {
                Node::Array(elements) => Node::Decimal(Decimal::new(elements.len() as i128, 0)),
                _ if self.is_lax => Node::Decimal(Decimal::new(1, 0)),
                _ if self.ignores_structure => return Ok(()),
                _ => {
                    let text = "jsonpath item method .size() can only be applied to an array";
                    return fail(state::SQL_JSON_ARRAY_NOT_FOUND, text);
                }
            },
            _ if unwraps && is_array(&item) => return self.each(elements(&item), accessors, false, out),
            Method::Double => Node::Decimal(double(&item)?),
            Method::Abs | Method::Floor | Method::Ceiling => match number(&item) {
                Some(number) => Node::Decimal(match method {
                    Method::Abs => number.abs(),
                    Method::Floor => number.floor(),
                    _ => number.ceiling(),
                }),
                None => {
                    let text =
                        format!("jsonpath item method .{}() can only be applied to a numeric value", method.name());
                    return fail(state::NON_NUMERIC_SQL_JSON_ITEM, text);
                }
            },
            // The parser refuses them.
            Method::Datetime | Method::KeyValue => {
                return Err(Fail::Statement(PgError::unsupported(method.name()).into()));
            }
        };
        self.access(Cow::Owned(result), rest, self.is_lax, out)
    }

    /// Returns the items of an operand; in lax mode the elements of those that are arrays.
    fn operand(&mut self, expr: &Expr, current: &PathItem<'d>) -> Run<Vec<PathItem<'d>>> {
        let mut found = Vec::new();
        self.expr(expr, current, &mut found)?;
        if !self.is_lax || !found.iter().any(|item| is_array(item)) {
            return Ok(found);
        }
        Ok(found.into_iter().flat_map(|item| if is_array(&item) { elements(&item) } else { vec![item] }).collect())
    }

    fn arithmetic(&mut self, op: Arithmetic, left: &Expr, right: &Expr, current: &PathItem<'d>) -> Run<PathItem<'d>> {
        let mut numbers = Vec::with_capacity(2);
        // Both operands are evaluated before either is looked at.
        let operands = [self.operand(left, current)?, self.operand(right, current)?];
        for (side, operand) in ["left", "right"].into_iter().zip(&operands) {
            let found = match &operand[..] {
                [only] => number(only),
                _ => None,
            };
            let Some(found) = found else {
                let sign = op.sign();
                let text = format!("{side} operand of jsonpath operator {sign} is not a single numeric value");
                return fail(state::SINGLETON_SQL_JSON_ITEM_REQUIRED, text);
            };
            numbers.push(found);
        }
        let compute = match op {
            Arithmetic::Add => add,
            Arithmetic::Subtract => subtract,
            Arithmetic::Multiply => multiply,
            Arithmetic::Divide => divide,
            Arithmetic::Modulo => modulo,
        };
        match compute(&numbers[0], &numbers[1]) {
            Ok(result) => Ok(Cow::Owned(Node::Decimal(result))),
            Err(error) => Err(Fail::Path(error)),
        }
    }

    fn signed(
        &mut self,
        is_minus: bool,
        operand: &Expr,
        current: &PathItem<'d>,
        accessors: &[Accessor],
        out: &mut Sink<'d>,
    ) -> Run<()> {
        for item in self.operand(operand, current)? {
            let Some(number) = number(&item) else {
                let sign = if is_minus { '-' } else { '+' };
                let text = format!("operand of unary jsonpath operator {sign} is not a numeric value");
                return fail(state::SQL_JSON_NUMBER_NOT_FOUND, text);
            };
            let result = if is_minus { number.negated() } else { number };
            self.access(Cow::Owned(Node::Decimal(result)), accessors, self.is_lax, out)?;
        }
        Ok(())
    }
}

fn is_array(node: &Node) -> bool {
    matches!(node, Node::Array(_))
}

fn elements<'d>(item: &PathItem<'d>) -> Vec<PathItem<'d>> {
    match item {
        Cow::Borrowed(Node::Array(elements)) => elements.iter().map(Cow::Borrowed).collect(),
        Cow::Owned(Node::Array(elements)) => elements.iter().cloned().map(Cow::Owned).collect(),
        _ => Vec::new(),
    }
}

/// Returns the values of an object's members; `None` for what is no object.
fn members<'d>(item: &PathItem<'d>) -> Option<Vec<PathItem<'d>>> {
    match item {
        Cow::Borrowed(Node::Object(members)) => Some(members.iter().map(|(_, node)| Cow::Borrowed(node)).collect()),
        Cow::Owned(Node::Object(members)) => Some(members.iter().map(|(_, node)| Cow::Owned(node.clone())).collect()),
        _ => None,
    }
}

fn member<'d>(item: &PathItem<'d>, name: &str) -> Option<PathItem<'d>> {
    match item {
        Cow::Borrowed(Node::Object(members)) => members.get(name).map(Cow::Borrowed),
        Cow::Owned(Node::Object(members)) => members.get(name).cloned().map(Cow::Owned),
        _ => None,
    }
}

fn number(node: &Node) -> Option<Decimal> {
    match node {
        Node::Decimal(number) => Some(number.clone()),
        Node::Int(_) | Node::UInt(_) | Node::Double(_) => match node.jsonb_scalar() {
            JsonbScalar::Number(number) => Some(number),
            JsonbScalar::String(_) => None,
        },
        _ => None,
    }
}

/// The method `.double()`: the number that a float8 shows.
fn double(node: &Node) -> Run<Decimal> {
    let (text, what) = match (number(node), node) {
        (Some(number), _) => (number.to_string(), "numeric"),
        (None, Node::String(text)) => (text.to_string(), "string"),
        _ => {
            let text = "jsonpath item method .double() can only be applied to a string or numeric value";
            return fail(state::NON_NUMERIC_SQL_JSON_ITEM, text);
        }
    };
    match float_in::<f64>(&text) {
        Ok(double) if double.is_finite() => {
            // Twelve or more digits as float8's output has them would be the shortest; numeric takes fifteen.
            numeric_in(&format!("{double}"), -1).map_err(Fail::Path)
        }
        _ => {
            let article = format!("{what} argument of jsonpath item method .double()");
            fail(
                state::NON_NUMERIC_SQL_JSON_ITEM,
                match what {
                    "numeric" => format!("{article} is out of range for type double precision"),
                    _ => format!("{article} is not a valid representation of a double precision number"),
                },
            )
        }
    }
}

/// Evaluates the path of a call: (document, path, variables, silent). Returns what was found; with an error that is suppressed, whether there was one.
fn found<'d>(values: &'d [Value], silent: bool, ctx: &mut EvalContext) -> Result<(Vec<PathItem<'d>>, bool)> {
    static NO_VARIABLES: LazyLock<Node> = LazyLock::new(|| Node::Object(Members::default()));
    let (root, path) = (document(values, 0)?, kept(text(values, 1)?)?);
    let variables = match values.get(2) {
        Some(_) => document(values, 2)?,
        None => &*NO_VARIABLES,
    };
    if values.len() > 2 && !matches!(variables, Node::Object(_)) {
        let detail = "Jsonpath parameters should be encoded as key-value pairs of \"vars\" object.";
        let error = PgError::new(state::INVALID_PARAMETER_VALUE, "\"vars\" argument is not an object");
        return Err(error.detail(detail).into());
    }
    let is_lax = path.is_lax;
    let mut evaluation = Evaluation { root, variables, is_lax, ignores_structure: is_lax, size: None, items: 0, ctx };
    let mut out = Vec::new();
    let item = Cow::Borrowed(root);
    match evaluation.expr(&path.root, &item, &mut out) {
        Ok(()) => Ok((out, false)),
        Err(Fail::Path(_)) if silent => Ok((out, true)),
        Err(Fail::Path(error)) => Err(error.into()),
        Err(Fail::Statement(fault)) => Err(fault),
    }
}

/// The argument `silent`, false where it is left out.
fn is_silent(values: &[Value]) -> Result<bool> {
    if values.len() > 3 { truth(values, 3) } else { Ok(false) }
}

fn exists_in(values: &[Value], silent: bool, ctx: &mut EvalContext) -> Result<Value> {
    let (items, has_failed) = found(values, silent, ctx)?;
    // In lax mode the first item decides, before any error behind it.
    let is_lax = kept(text(values, 1)?)?.is_lax;
    Ok(match has_failed && (items.is_empty() || !is_lax) {
        true => Value::Null,
        false => (!items.is_empty()).into(),
    })
}

pub fn exists(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    exists_in(values, is_silent(values)?, ctx)
}

pub fn exists_operator(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    exists_in(values, true, ctx)
}

fn match_in(values: &[Value], silent: bool, ctx: &mut EvalContext) -> Result<Value> {
    let (items, _) = found(values, silent, ctx)?;
    match items.first().filter(|_| items.len() == 1).map(|item| &**item) {
        Some(Node::Bool(truth)) => return Ok((*truth).into()),
        Some(Node::Null) => return Ok(Value::Null),
        _ => {}
    }
    if silent {
        return Ok(Value::Null);
    }
    Err(PgError::new(state::SINGLETON_SQL_JSON_ITEM_REQUIRED, "single boolean result is expected").into())
}

pub fn matches(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    match_in(values, is_silent(values)?, ctx)
}

pub fn match_operator(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    match_in(values, true, ctx)
}

pub fn query_array(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let (items, _) = found(values, is_silent(values)?, ctx)?;
    of_node(Node::Array(items.into_iter().map(Cow::into_owned).collect()))
}

pub fn query_first(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let (items, _) = found(values, is_silent(values)?, ctx)?;
    items.into_iter().next().map_or(Ok(Value::Null), |item| of_node(item.into_owned()))
}

/// Returns the items of `jsonb_path_query`, a row each.
pub fn query(values: &[Value], ctx: &mut EvalContext) -> Result<Vec<Value>> {
    let (items, _) = found(values, is_silent(values)?, ctx)?;
    Ok(items.into_iter().map(|item| Value::Json(item.into_owned().into())).collect())
}
