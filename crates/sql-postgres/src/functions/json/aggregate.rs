//! Aggregates that make one document of the rows of a group.

use std::collections::HashSet;

use datum::Result;
use datum::json::{Members, Node};
use query::nodes::aggregate::{Accumulator, Aggregate, AggregateFunction, Memory};
use query::nodes::context::EvalContext;

use crate::error::{PgError, state};
use crate::functions::aggregate::{function, order_key};
use crate::functions::json::invalid;
use crate::functions::json::make::null_name;
use crate::functions::state::StateOf as _;
use crate::types::json::encode::{self, Category, category};
use crate::types::json::write_string;
use crate::types::registry::oid_of;
use crate::value::Value;

/// The document that an aggregate makes, and its rules.
#[derive(Clone, Copy, Debug)]
struct Rules {
    is_binary: bool,
    is_object: bool,
    /// Rows whose value is NULL are left out.
    is_strict: bool,
    /// Two members of one name are an error.
    is_unique: bool,
}

macro_rules! aggregates {
    ($($static:ident $name:literal $binary:literal $object:literal $strict:literal $unique:literal)*) => {
        $(pub static $static: AggregateFunction = AggregateFunction {
            memory: Memory::All,
            shares_state: false,
            counts_null: true,
            ..function($name, |_| start(Rules {
                is_binary: $binary, is_object: $object, is_strict: $strict, is_unique: $unique,
            }))
        };)*
    };
}

aggregates! {
    JSON_AGG "json_agg" false false false false
    JSON_AGG_STRICT "json_agg_strict" false false true false
    JSONB_AGG "jsonb_agg" true false false false
    JSONB_AGG_STRICT "jsonb_agg_strict" true false true false
    JSON_OBJECT_AGG "json_object_agg" false true false false
    JSON_OBJECT_AGG_STRICT "json_object_agg_strict" false true true false
    JSON_OBJECT_AGG_UNIQUE "json_object_agg_unique" false true false true
    JSON_OBJECT_AGG_UNIQUE_STRICT "json_object_agg_unique_strict" false true true true
    JSONB_OBJECT_AGG "jsonb_object_agg" true true false false
    JSONB_OBJECT_AGG_STRICT "jsonb_object_agg_strict" true true true false
    JSONB_OBJECT_AGG_UNIQUE "jsonb_object_agg_unique" true true false true
    JSONB_OBJECT_AGG_UNIQUE_STRICT "jsonb_object_agg_unique_strict" true true true true
}

fn start(rules: Rules) -> Box<dyn Accumulator> {
    Box::new(Gathered { rules, rows: Vec::new(), has_rows: false, bytes: 0 })
}

/// One row: its place in the order within the call, the member's name, and the value as the document has it.
#[derive(Clone, Debug)]
struct Row {
    order: Vec<u8>,
    name: Option<Box<str>>,
    part: RowPart,
    /// It is an array or a row, and begins a line.
    begins_line: bool,
}

#[derive(Clone, Debug)]
enum RowPart {
    Text(Box<str>),
    Tree(Node),
    /// Left out, but for the comparison of names.
    Absent,
}

#[derive(Clone, Debug)]
struct Gathered {
    rules: Rules,
    rows: Vec<Row>,
    /// There were rows, perhaps left out since.
    has_rows: bool,
    bytes: usize,
}

impl Gathered {
    fn name(&self, aggregate: &Aggregate, values: &[Value], ctx: &EvalContext) -> Result<Option<Box<str>>> {
        if !self.rules.is_object {
            return Ok(None);
        }
        if !values[0].is_null() {
            return Ok(Some(encode::name(&values[0], &aggregate.arguments[0], &ctx.state().io)?.into()));
        }
        if self.rules.is_binary { invalid("field name must not be null") } else { Err(null_name().into()) }
    }

    /// Refuses the second member of a name.
    fn check_unique(&self) -> Result<()> {
        let mut names = HashSet::new();
        for name in self.rows.iter().filter_map(|row| row.name.as_deref()) {
            if !names.insert(name) {
                let mut text = "duplicate JSON object key value".to_owned();
                if !self.rules.is_binary {
                    text.push_str(": ");
                    write_string(name, &mut text);
                }
                return Err(PgError::new(state::DUPLICATE_JSON_OBJECT_KEY_VALUE, text).into());
            }
        }
        Ok(())
    }

    fn tree(&mut self) -> Node {
        let rows = std::mem::take(&mut self.rows);
        let node = |part: RowPart| match part {
            RowPart::Tree(node) => node,
            RowPart::Text(_) | RowPart::Absent => Node::Null,
        };
        match self.rules.is_object {
            true => {
                let members = rows.into_iter().map(|row| (row.name.unwrap_or_default(), node(row.part)));
                // PostgreSQL leaves out the null of a document too.
                let is_kept = |node: &Node| !self.rules.is_strict || !matches!(node, Node::Null);
                Node::Object(Members::new(members.filter(|(_, node)| is_kept(node)).collect()))
            }
            false => Node::Array(rows.into_iter().map(|row| node(row.part)).collect()),
        }
    }

    fn text(&self) -> String {
        let (open, close) = if self.rules.is_object { ("{ ", " }") } else { ("[", "]") };
        let mut out = open.to_owned();
        for (at, row) in self.rows.iter().enumerate() {
            out.push_str(if at == 0 { "" } else { ", " });
            if at > 0 && row.begins_line {
                out.push_str("\n ");
            }
            if let Some(name) = &row.name {
                write_string(name, &mut out);
                out.push_str(" : ");
            }
            if let RowPart::Text(text) = &row.part {
                out.push_str(text);
            }
        }
        out.push_str(close);
        out
    }
}

impl Accumulator for Gathered {
    fn add(&mut self, aggregate: &Aggregate, values: &[Value], ctx: &mut EvalContext) -> Result<()> {
        self.has_rows = true;
        let at = usize::from(self.rules.is_object);
        let name = self.name(aggregate, values, ctx)?;
        let (value, ty) = (&values[at], &aggregate.arguments[at]);
        let is_absent = self.rules.is_strict && value.is_null();
        if is_absent && !self.rules.is_unique {
            return Ok(());
        }
        let io = &ctx.state().io;
        let (part, size) = match self.rules.is_binary {
            _ if is_absent => (RowPart::Absent, 0),
            true => {
                let node = encode::node(value, ty, io)?;
                let size = node.held_bytes();
                (RowPart::Tree(node), size)
            }
            false => {
                let mut text = String::new();
                encode::append(value, ty, io, &mut text)?;
                let size = text.len();
                (RowPart::Text(text.into()), size)
            }
        };
        let order = order_key(aggregate, values);
        self.bytes += size_of::<Row>() + order.len() + name.as_ref().map_or(0, |name| name.len()) + size;
        let is_structured = matches!(category(oid_of(ty)), Category::Array | Category::Composite);
        let begins_line = is_structured && !self.rules.is_object && !value.is_null();
        self.rows.push(Row { order, name, part, begins_line });
        Ok(())
    }

    fn finish(&mut self, aggregate: &Aggregate, _: &mut EvalContext) -> Result<Value> {
        if !self.has_rows {
            return Ok(Value::Null);
        }
        if !aggregate.order.is_empty() {
            self.rows.sort_by(|a, b| a.order.cmp(&b.order));
        }
        if self.rules.is_unique {
            self.check_unique()?;
            self.rows.retain(|row| !matches!(row.part, RowPart::Absent));
        }
        Ok(match self.rules.is_binary {
            true => Value::Json(self.tree().into()),
            false => {
                let _claim = crate::functions::args::claim(self.bytes)?;
                Value::Text(self.text().into())
            }
        })
    }

    fn copy(&self) -> Box<dyn Accumulator> {
        Box::new(self.clone())
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}
