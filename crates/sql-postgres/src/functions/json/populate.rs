//! Documents as rows: json_populate_record, json_to_record and their like.
//!
//! A member becomes the value of the field of its name: an array of a JSON array, a row of an object, anything else by the text form of its type.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use datum::json::Node;
use datum::value::{DIMENSIONS_MAX, Dimension, RecordField, RecordType};
use datum::{Array, Fault, Json, Result};
use query::batch::Row;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;
use query::nodes::table_function::{RowStream, SetCall, SetFunction, SetStart};

use crate::error::{PgError, Result as PgResult, state};
use crate::functions::args::text;
use crate::functions::json::text::{TextPart, each, rest};
use crate::functions::json::{document, invalid};
use crate::functions::state::StateOf as _;
use crate::functions::{CastContext, CastMethod, cast_between};
use crate::types::array::too_many_dimensions;
use crate::types::io::{self, IoContext};
use crate::types::json::parse::{Event, Parser, Suspended};
use crate::types::json::{build, unquoted, write};
use crate::types::record::{record, type_of};
use crate::types::{oid, record as records};
use crate::types::{registry, user};
use crate::value::{Text, Value};

/// A value within a json or a jsonb.
#[derive(Clone, Copy)]
enum JsonSource<'d> {
    Text(&'d str, Event<'d>),
    Tree(&'d Node),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SourceKind {
    Null,
    String,
    Object,
    Array,
    Scalar,
}

impl<'d> From<TextPart<'d>> for JsonSource<'d> {
    fn from(part: TextPart<'d>) -> JsonSource<'d> {
        JsonSource::Text(part.text, part.first)
    }
}

impl<'d> JsonSource<'d> {
    fn of_text(document: &'d str) -> PgResult<JsonSource<'d>> {
        let mut parser = Parser::new(document);
        let first = parser.event()?;
        rest(document, &mut parser, first).map(JsonSource::from)
    }

    fn kind(self) -> SourceKind {
        match self {
            JsonSource::Text(_, Event::Null) | JsonSource::Tree(Node::Null) => SourceKind::Null,
            JsonSource::Text(_, Event::String(_)) | JsonSource::Tree(Node::String(_)) => SourceKind::String,
            JsonSource::Text(_, Event::ObjectStart) | JsonSource::Tree(Node::Object(_)) => SourceKind::Object,
            JsonSource::Text(_, Event::ArrayStart) | JsonSource::Tree(Node::Array(_)) => SourceKind::Array,
            _ => SourceKind::Scalar,
        }
    }

    /// Returns the text from which a value of another type is read: that of a string without its quotes.
    fn plain(self) -> PgResult<Cow<'d, str>> {
        match self {
            JsonSource::Text(_, Event::String(text)) => unquoted(text).map(Cow::Owned),
            JsonSource::Tree(Node::String(text)) => Ok(Cow::Borrowed(text)),
            source => Ok(source.written()),
        }
    }

    /// Returns the text of the document.
    fn written(self) -> Cow<'d, str> {
        match self {
            JsonSource::Text(text, _) => Cow::Borrowed(text),
            JsonSource::Tree(node) => {
                let mut out = String::new();
                write(node, &mut out);
                Cow::Owned(out)
            }
        }
    }

    fn node(self) -> PgResult<Node> {
        match self {
            JsonSource::Text(text, _) => build(text),
            JsonSource::Tree(node) => Ok(node.clone()),
        }
    }

    fn elements(self) -> PgResult<Vec<JsonSource<'d>>> {
        let mut elements = Vec::new();
        match self {
            JsonSource::Text(text, _) => {
                each(text, |_, part| {
                    elements.push(part.into());
                    Ok(())
                })?;
            }
            JsonSource::Tree(Node::Array(nodes)) => elements.extend(nodes.iter().map(JsonSource::Tree)),
            JsonSource::Tree(_) => {}
        }
        Ok(elements)
    }

    /// Returns the members of these names; of several of one name the last.
    fn members(self, ty: &RecordType) -> PgResult<Vec<Option<JsonSource<'d>>>> {
        let mut found = vec![None; ty.fields.len()];
        match self {
            JsonSource::Text(text, _) => {
                let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
                ty.fields.iter().enumerate().for_each(|(at, field)| places.entry(&field.name).or_default().push(at));
                each(text, |name, part| {
                    let name = unquoted(name.unwrap_or("\"\""))?;
                    let source = JsonSource::from(part);
                    places.get(&*name).into_iter().flatten().for_each(|at| found[*at] = Some(source));
                    Ok(())
                })?;
            }
            JsonSource::Tree(Node::Object(members)) => {
                for (slot, field) in found.iter_mut().zip(&ty.fields) {
                    *slot = members.get(&field.name).map(JsonSource::Tree);
                }
            }
            JsonSource::Tree(_) => {}
        }
        Ok(found)
    }
}

/// Returns the row of an object, or an error for another document. Fields without a member have the values of `base`.
fn row(source: JsonSource<'_>, ty: &Arc<RecordType>, base: &[Value], io: &IoContext) -> PgResult<Row> {
    match source.kind() {
        SourceKind::Object => {}
        SourceKind::Array => return Err(refused("cannot call populate_composite on an array")),
        _ => return Err(refused("cannot call populate_composite on a scalar")),
    }
    let mut values = Vec::with_capacity(ty.fields.len());
    for (at, (field, member)) in ty.fields.iter().zip(source.members(ty)?).enumerate() {
        values.push(match member {
            Some(member) => value(member, field, &Path { key: &field.name, places: &[] }, io)?,
            None => base.get(at).cloned().unwrap_or_default(),
        });
    }
    Ok(values)
}

#[cold]
fn refused(text: &str) -> PgError {
    PgError::new(state::INVALID_PARAMETER_VALUE, text)
}

/// The way to a value, for hints.
struct Path<'p> {
    key: &'p str,
    places: &'p [usize],
}

/// Returns the value of a field's type: `populate_record_field`.
fn value(source: JsonSource<'_>, field: &RecordField, path: &Path<'_>, io: &IoContext) -> PgResult<Value> {
    if user::is_domain(field.number) {
        // The binder puts the checks around the row.
        let base = user::base_type(field.number, io)?;
        return value(source, &records::field(&field.name, &base), path, io);
    }
    if user::is_composite(field.number) && source.kind() != SourceKind::Null {
        let row_type = user::row_type(field.number, io)?;
        return match source.kind() {
            SourceKind::String => records::input(&row_type, &source.plain()?, io),
            _ => Ok(record(&row_type, row(source, &row_type, &[], io)?)?),
        };
    }
    let ty = type_of(field);
    match (source.kind(), field.number) {
        (SourceKind::Null, _) => Ok(Value::Null),
        (_, oid::JSON) => Ok(Value::text(source.written())),
        (_, oid::JSONB) => source.node().map(|node| Value::Json(node.into())),
        (SourceKind::String, oid::RECORD) => match &field.record {
            Some(ty) => records::input(ty, &source.plain()?, io),
            None => Err(records::anonymous_input()),
        },
        (_, oid::RECORD) => match &field.record {
            Some(ty) => Ok(record(ty, row(source, ty, &[], io)?)?),
            None => Err(records::anonymous_input()),
        },
        (kind, array) if registry::is_array(array) && kind != SourceKind::String => list(source, field, path, io),
        _ => io::input(&ty, &source.plain()?, io),
    }
}

/// An array that is being gathered: `populate_array`.
struct Gathering<'g> {
    element: RecordField,
    path: &'g Path<'g>,
    io: &'g IoContext,
    /// The number of dimensions, once an element or an empty array tells it.
    depth: Option<usize>,
    lengths: Vec<Option<usize>>,
    values: Vec<Value>,
}

fn list(source: JsonSource<'_>, field: &RecordField, path: &Path<'_>, io: &IoContext) -> PgResult<Value> {
    let Some(element) = registry::element_of(field.number) else {
        return Err(PgError::unsupported(registry::format_type(field.number, None)));
    };
    let shape = registry::shape_of(element.oid);
    let element = RecordField { number: element.oid, shape, ..field.clone() };
    let mut gathering =
        Gathering { element, path, io, depth: None, lengths: vec![None; DIMENSIONS_MAX + 1], values: Vec::new() };
    if source.kind() != SourceKind::Array {
        return Err(gathering.expected(&[]));
    }
    gathering.gather(source, &mut Vec::new())?;
    let count = gathering.depth.unwrap_or(1);
    let dimensions: Vec<Dimension> =
        gathering.lengths[..count].iter().map(|length| Dimension::of(length.unwrap_or(0))).collect();
    Ok(Value::Array(match gathering.values.is_empty() {
        true => Array::empty(shape),
        false => Array::new(shape, &dimensions, gathering.values),
    }))
}

impl Gathering<'_> {
    fn gather(&mut self, source: JsonSource<'_>, places: &mut Vec<usize>) -> PgResult<()> {
        let level = places.len();
        if level >= DIMENSIONS_MAX {
            return Err(too_many_dimensions(level as i64 + 1));
        }
        let elements = source.elements()?;
        let length = elements.len();
        for (at, element) in elements.into_iter().enumerate() {
            places.push(at);
            let is_array = element.kind() == SourceKind::Array;
            if self.depth.is_none() && !is_array {
                self.depth = Some(level + 1);
            }
            match self.depth {
                Some(depth) if depth == level + 1 => {
                    let places = self.path.places.iter().chain(&*places).copied().collect::<Vec<_>>();
                    let path = Path { key: self.path.key, places: &places };
                    let value = value(element, &self.element, &path, self.io)?;
                    self.values.push(value);
                }
                Some(_) if !is_array => return Err(self.expected(places)),
                _ => self.gather(element, places)?,
            }
            places.pop();
        }
        self.depth.get_or_insert(level + 1);
        match *self.lengths[level].get_or_insert(length) == length {
            true => Ok(()),
            false => {
                let detail = "Multidimensional arrays must have sub-arrays with matching dimensions.";
                Err(PgError::new(state::INVALID_TEXT_REPRESENTATION, "malformed JSON array").detail(detail))
            }
        }
    }

    #[cold]
    fn expected(&self, places: &[usize]) -> PgError {
        let key = self.path.key;
        let shown: String = self.path.places.iter().chain(places).map(|place| format!("[{place}]")).collect();
        let hint = match shown.is_empty() {
            true => format!("See the value of key \"{key}\"."),
            false => format!("See the array element {shown} of key \"{key}\"."),
        };
        PgError::new(state::INVALID_TEXT_REPRESENTATION, "expected JSON array").hint(hint)
    }
}

#[cold]
fn unknown_row_type(name: &str) -> Fault {
    let text = format!("could not determine row type for result of {name}");
    let hint =
        "Provide a non-null record argument, or call the function in the FROM clause using a column definition list.";
    PgError::new(state::FEATURE_NOT_SUPPORTED, text).hint(hint).into()
}

/// Returns whether rows of a type have the columns that the query expects.
fn has_columns(given: &RecordType, expected: &RecordType) -> bool {
    let fits = |(given, expected): (&RecordField, &RecordField)| is_binary_coercible(given.number, expected.number);
    given.fields.len() == expected.fields.len() && given.fields.iter().zip(&expected.fields).all(fits)
}

fn is_binary_coercible(from: u32, to: u32) -> bool {
    from == to
        || cast_between(from, to)
            .is_some_and(|cast| cast.context == CastContext::Implicit && matches!(cast.method, CastMethod::Binary))
}

#[cold]
fn mismatch(given: &RecordType, expected: &RecordType) -> Fault {
    let (count, wanted) = (given.fields.len(), expected.fields.len());
    let mut pairs = given.fields.iter().zip(&expected.fields).enumerate();
    let detail = match pairs.find(|(_, (given, expected))| !is_binary_coercible(given.number, expected.number)) {
        Some((at, (given, expected))) if count == wanted => {
            let shown = |field: &RecordField| registry::format_type(field.number, None);
            let (given, expected, at) = (shown(given), shown(expected), at + 1);
            format!("Returned type {given} at ordinal position {at}, but query expects {expected}.")
        }
        _ => {
            let plural = if count == 1 { "" } else { "s" };
            format!("Returned row contains {count} attribute{plural}, but query expects {wanted}.")
        }
    };
    let text = "function return row and query-specified return row do not match";
    PgError::new(state::DATATYPE_MISMATCH, text).detail(detail).into()
}

/// Returns the type of a result, and the base whose fields it keeps.
fn type_and_base(
    known: Option<&Arc<RecordType>>,
    base: &Value,
    is_record: bool,
    name: &str,
) -> Result<(Arc<RecordType>, Vec<Value>)> {
    if !is_record {
        let text = format!("first argument of {name} must be a row type");
        return Err(PgError::new(state::DATATYPE_MISMATCH, text).into());
    }
    match (known, base) {
        // A column definition list gives the columns other names than the row has.
        (Some(ty), Value::Record(base)) if has_columns(base.ty(), ty) => {
            Ok((base.ty().clone(), base.values().to_vec()))
        }
        (Some(ty), Value::Record(base)) => Err(mismatch(base.ty(), ty)),
        (Some(ty), _) => Ok((ty.clone(), Vec::new())),
        (None, Value::Record(base)) => Ok((base.ty().clone(), base.values().to_vec())),
        (None, _) => Err(unknown_row_type(name)),
    }
}

fn populated(call: &Call, values: &[Value], ctx: &EvalContext, name: &str, is_binary: bool) -> Result<Value> {
    let is_record = records::is_row(registry::oid_of(&call.arguments[0].ty()));
    let (ty, base) = type_and_base(call.extra.record.as_ref(), &values[0], is_record, name)?;
    if values[1].is_null() {
        return Ok(values[0].clone());
    }
    let source =
        if is_binary { JsonSource::Tree(document(values, 1)?) } else { JsonSource::of_text(text(values, 1)?)? };
    record(&ty, row(source, &ty, &base, &ctx.state().io)?)
}

pub fn json_populate(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    populated(call, values, ctx, "json_populate_record", false)
}

pub fn jsonb_populate(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    populated(call, values, ctx, "jsonb_populate_record", true)
}

fn to_record(call: &Call, source: JsonSource<'_>, ctx: &EvalContext, name: &str) -> Result<Value> {
    let Some(ty) = &call.extra.record else { return Err(unknown_row_type(name)) };
    record(ty, row(source, ty, &[], &ctx.state().io)?)
}

pub fn json_to_record(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    to_record(call, JsonSource::of_text(text(values, 0)?)?, ctx, "json_to_record")
}

pub fn jsonb_to_record(call: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    to_record(call, JsonSource::Tree(document(values, 0)?), ctx, "jsonb_to_record")
}

const fn lenient(name: &'static str, start: SetStart) -> SetFunction {
    SetFunction { name, strict: false, volatile: false, start }
}

pub static JSON_POPULATE_SET: SetFunction = lenient("json_populate_recordset", |call, values, _| {
    let name = "json_populate_recordset";
    if values[1].is_null() && call.record.is_some() && is_row(call) {
        return Ok(Box::new(Nothing));
    }
    let (ty, base) = type_and_base(call.record.as_ref(), &values[0], is_row(call), name)?;
    rows_of_text(&values[1], ty, base, name)
});
pub static JSONB_POPULATE_SET: SetFunction = lenient("jsonb_populate_recordset", |call, values, _| {
    let name = "jsonb_populate_recordset";
    if values[1].is_null() && call.record.is_some() && is_row(call) {
        return Ok(Box::new(Nothing));
    }
    let (ty, base) = type_and_base(call.record.as_ref(), &values[0], is_row(call), name)?;
    rows_of_tree(&values[1], ty, base, name)
});
pub static JSON_TO_SET: SetFunction = lenient("json_to_recordset", |call, values, _| match &call.record {
    Some(ty) => rows_of_text(&values[0], ty.clone(), Vec::new(), "json_to_recordset"),
    None => Err(unknown_row_type("json_to_recordset")),
});
pub static JSONB_TO_SET: SetFunction = lenient("jsonb_to_recordset", |call, values, _| match &call.record {
    Some(ty) => rows_of_tree(&values[0], ty.clone(), Vec::new(), "jsonb_to_recordset"),
    None => Err(unknown_row_type("jsonb_to_recordset")),
});

fn is_row(call: &SetCall) -> bool {
    call.arguments.first().is_some_and(|argument| records::is_row(registry::oid_of(&argument.ty())))
}

struct TextRecords {
    document: Text,
    /// `None` after the end.
    parser: Option<Suspended>,
    target: WantedRows,
}

struct TreeRecords {
    document: Json,
    at: usize,
    target: WantedRows,
}

/// The type of the rows that are wanted, and the function that gives them.
struct WantedRows {
    ty: Arc<RecordType>,
    base: Vec<Value>,
    name: &'static str,
}

impl WantedRows {
    fn row(&self, source: JsonSource<'_>, ctx: &EvalContext) -> Result<Row> {
        match source.kind() {
            SourceKind::Object => Ok(row(source, &self.ty, &self.base, &ctx.state().io)?),
            _ => invalid(format!("argument of {} must be an array of objects", self.name)),
        }
    }
}

/// No rows.
struct Nothing;

impl RowStream for Nothing {
    fn next(&mut self, _: &mut EvalContext) -> Result<Option<Row>> {
        Ok(None)
    }
}

fn rows_of_text(
    document: &Value,
    ty: Arc<RecordType>,
    base: Vec<Value>,
    name: &'static str,
) -> Result<Box<dyn RowStream>> {
    let Value::Text(document) = document else { return Ok(Box::new(Nothing)) };
    let mut parser = Parser::new(document);
    match parser.event()? {
        Event::ArrayStart => {}
        Event::ObjectStart => return invalid(format!("cannot call {name} on an object")),
        _ => return invalid(format!("cannot call {name} on a scalar")),
    }
    let parser = Some(parser.suspend());
    Ok(Box::new(TextRecords { document: document.clone(), parser, target: WantedRows { ty, base, name } }))
}

fn rows_of_tree(
    document: &Value,
    ty: Arc<RecordType>,
    base: Vec<Value>,
    name: &'static str,
) -> Result<Box<dyn RowStream>> {
    let Value::Json(document) = document else { return Ok(Box::new(Nothing)) };
    if !matches!(document.node(), Node::Array(_)) {
        return invalid(format!("cannot call {name} on a non-array"));
    }
    Ok(Box::new(TreeRecords { document: document.clone(), at: 0, target: WantedRows { ty, base, name } }))
}

impl RowStream for TextRecords {
    fn next(&mut self, ctx: &mut EvalContext) -> Result<Option<Row>> {
        let Some(suspended) = self.parser.take() else { return Ok(None) };
        let mut parser = Parser::resume(&self.document, suspended);
        let first = parser.event()?;
        if first == Event::End {
            return Ok(None);
        }
        let part = rest(&self.document, &mut parser, first)?;
        self.parser = Some(parser.suspend());
        self.target.row(part.into(), ctx).map(Some)
    }
}

impl RowStream for TreeRecords {
    fn next(&mut self, ctx: &mut EvalContext) -> Result<Option<Row>> {
        let Node::Array(elements) = self.document.node() else { return Ok(None) };
        let Some(element) = elements.get(self.at) else { return Ok(None) };
        self.at += 1;
        self.target.row(JsonSource::Tree(element), ctx).map(Some)
    }
}
