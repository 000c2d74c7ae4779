//! Functions of documents that return sets of rows. A row is made when it is wanted, and the document is read no further.

use datum::json::Node;
use datum::{Json, Result};
use query::batch::Row;
use query::nodes::context::EvalContext;
use query::nodes::table_function::{RowStream, SetCall, SetFunction, SetStart};

use crate::functions::args::text;
use crate::functions::json::text::{TextPart, as_json, as_text, rest};
use crate::functions::json::{access, document, invalid, path};
use crate::types::json::parse::{Event, Parser, Suspended};
use crate::types::json::unquoted;
use crate::value::{Text, Value};

const fn strict(name: &'static str, start: SetStart) -> SetFunction {
    SetFunction { name, strict: true, volatile: false, start }
}

/// The columns of a function's rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PartColumns {
    /// Name and value of each member.
    Members,
    MembersAsText,
    Names,
    Elements,
    ElementsAsText,
}

use PartColumns::{Elements, ElementsAsText, Members, MembersAsText, Names};

pub static JSON_EACH: SetFunction = strict("json_each", |_, values, _| text_rows(values, Members, "json_each"));
pub static JSON_EACH_TEXT: SetFunction =
    strict("json_each_text", |_, values, _| text_rows(values, MembersAsText, "json_each_text"));
pub static JSON_OBJECT_KEYS: SetFunction =
    strict("json_object_keys", |_, values, _| text_rows(values, Names, "json_object_keys"));
pub static JSON_ARRAY_ELEMENTS: SetFunction =
    strict("json_array_elements", |_, values, _| text_rows(values, Elements, "json_array_elements"));
pub static JSON_ARRAY_ELEMENTS_TEXT: SetFunction =
    strict("json_array_elements_text", |_, values, _| text_rows(values, ElementsAsText, "json_array_elements_text"));
pub static JSONB_EACH: SetFunction = strict("jsonb_each", |_, values, _| tree_rows(values, Members, "jsonb_each"));
pub static JSONB_EACH_TEXT: SetFunction =
    strict("jsonb_each_text", |_, values, _| tree_rows(values, MembersAsText, "jsonb_each_text"));
pub static JSONB_OBJECT_KEYS: SetFunction =
    strict("jsonb_object_keys", |_, values, _| tree_rows(values, Names, "jsonb_object_keys"));
pub static JSONB_ARRAY_ELEMENTS: SetFunction =
    strict("jsonb_array_elements", |_, values, _| tree_rows(values, Elements, "jsonb_array_elements"));
pub static JSONB_ARRAY_ELEMENTS_TEXT: SetFunction =
    strict("jsonb_array_elements_text", |_, values, _| tree_rows(values, ElementsAsText, "jsonb_array_elements_text"));
pub static JSONB_PATH_QUERY: SetFunction =
    strict("jsonb_path_query", |_: &SetCall, values: &[Value], ctx: &mut EvalContext| {
        Ok(Box::new(Items(path::query(values, ctx)?.into_iter())))
    });

/// The items that a path has found.
struct Items(std::vec::IntoIter<Value>);

impl RowStream for Items {
    fn next(&mut self, _: &mut EvalContext) -> Result<Option<Row>> {
        Ok(self.0.next().map(|item| vec![item]))
    }
}

/// A json that is being read.
struct JsonTextRows {
    document: Text,
    /// `None` after the end.
    parser: Option<Suspended>,
    columns: PartColumns,
}

fn text_rows(values: &[Value], columns: PartColumns, name: &str) -> Result<Box<dyn RowStream>> {
    let document = text(values, 0)?;
    let mut parser = Parser::new(document);
    match (columns, parser.event()?) {
        (Members | MembersAsText | Names, Event::ObjectStart) | (Elements | ElementsAsText, Event::ArrayStart) => {}
        (Members | MembersAsText, Event::ArrayStart) => return invalid("cannot deconstruct an array as an object"),
        (Members | MembersAsText, _) => return invalid("cannot deconstruct a scalar"),
        (Names, Event::ArrayStart) => return invalid(format!("cannot call {name} on an array")),
        (Elements | ElementsAsText, Event::ObjectStart) => {
            return invalid(format!("cannot call {name} on a non-array"));
        }
        _ => return invalid(format!("cannot call {name} on a scalar")),
    }
    let parser = Some(parser.suspend());
    Ok(Box::new(JsonTextRows { document: document.into(), parser, columns }))
}

impl RowStream for JsonTextRows {
    fn next(&mut self, _: &mut EvalContext) -> Result<Option<Row>> {
        let Some(suspended) = self.parser.take() else { return Ok(None) };
        let document = &*self.document;
        let mut parser = Parser::resume(document, suspended);
        let (name, value) = match parser.event()? {
            Event::End => return Ok(None),
            Event::Name(name) => (Some(name), parser.event()?),
            value => (None, value),
        };
        let part = rest(document, &mut parser, value)?;
        self.parser = Some(parser.suspend());
        let name = || unquoted(name.unwrap_or("\"\"")).map(|name| Value::Text(name.into()));
        let shown = |part: TextPart<'_>| as_text(Some(part));
        Ok(Some(match self.columns {
            Members => vec![name()?, as_json(Some(part))],
            MembersAsText => vec![name()?, shown(part)?],
            Names => vec![name()?],
            Elements => vec![as_json(Some(part))],
            ElementsAsText => vec![shown(part)?],
        }))
    }
}

/// A jsonb, and the place of the next member or element.
struct JsonTreeRows {
    document: Json,
    at: usize,
    columns: PartColumns,
}

fn tree_rows(values: &[Value], columns: PartColumns, name: &str) -> Result<Box<dyn RowStream>> {
    match (columns, document(values, 0)?) {
        (Members | MembersAsText | Names, Node::Object(_)) | (Elements | ElementsAsText, Node::Array(_)) => {}
        (Members | MembersAsText, _) => return invalid(format!("cannot call {name} on a non-object")),
        (Names, Node::Array(_)) => return invalid(format!("cannot call {name} on an array")),
        (Names, _) => return invalid(format!("cannot call {name} on a scalar")),
        (_, Node::Object(_)) => return invalid("cannot extract elements from an object"),
        _ => return invalid("cannot extract elements from a scalar"),
    }
    let Value::Json(document) = &values[0] else { return invalid("a document in another form") };
    Ok(Box::new(JsonTreeRows { document: document.clone(), at: 0, columns }))
}

impl RowStream for JsonTreeRows {
    fn next(&mut self, _: &mut EvalContext) -> Result<Option<Row>> {
        let (name, node) = match self.document.node() {
            Node::Array(elements) => ("", elements.get(self.at)),
            Node::Object(members) => match members.at(self.at) {
                Some((name, node)) => (name, Some(node)),
                None => ("", None),
            },
            _ => ("", None),
        };
        let Some(node) = node else { return Ok(None) };
        self.at += 1;
        let copied = || Value::Json(node.clone().into());
        Ok(Some(match self.columns {
            Members => vec![Value::text(name), copied()],
            MembersAsText => vec![Value::text(name), access::as_text(node)],
            Names => vec![Value::text(name)],
            Elements => vec![copied()],
            ElementsAsText => vec![access::as_text(node)],
        }))
    }
}
