//! SQL/JSON, as `get_json_constructor` writes it.

use syntax::postgres::tree::{
    JsonClauses, JsonConstructor, JsonContent, JsonEncoding, JsonFormat, JsonReturning, JsonTest,
};

use crate::bind::array_of_rows;
use crate::deparse::analyse::Analyser;
use crate::deparse::node::{SqlForm, SqlNode, SublinkKind, Ty};
use crate::error::Result;
use crate::types::oid;
use crate::types::registry::format_type;

fn format_text(format: &JsonFormat) -> &'static str {
    match format.encoding {
        None => " FORMAT JSON",
        Some(JsonEncoding::Utf8) => " FORMAT JSON ENCODING UTF8",
        Some(JsonEncoding::Utf16) => " FORMAT JSON ENCODING UTF16",
        Some(JsonEncoding::Utf32) => " FORMAT JSON ENCODING UTF32",
    }
}

impl Analyser<'_, '_> {
    pub fn json_value(&mut self, operand: &syntax::postgres::tree::Expr, format: &JsonFormat) -> Result<SqlNode> {
        let operand = self.expr(operand)?;
        let operand = self.settled(operand)?;
        // PostgreSQL drops the format of documents.
        match operand.ty().0 {
            oid::JSON | oid::JSONB => Ok(operand),
            _ => Ok(SqlNode::JsonValue { operand: Box::new(operand), format: format_text(format) }),
        }
    }

    pub fn json_constructor(&mut self, node: &JsonConstructor) -> Result<SqlNode> {
        let JsonConstructor { content, clauses } = node;
        let mut items = Vec::new();
        match content {
            JsonContent::Object(members) => {
                for (key, value) in members {
                    items.push(self.expr(key)?);
                    let value = self.expr(value)?;
                    items.push(self.settled(value)?);
                }
            }
            JsonContent::Array(values) => {
                for value in values {
                    let value = self.expr(value)?;
                    items.push(self.settled(value)?);
                }
            }
            JsonContent::Query(query, format) => {
                let query = array_of_rows(query, format.as_ref(), clauses, query.span.start);
                return self.sublink(SublinkKind::Scalar, None, &query);
            }
        }
        let is_object = matches!(content, JsonContent::Object(_));
        let is_binary = items.iter().any(|item| item.ty().0 == oid::JSONB);
        let own = if is_binary { oid::JSONB } else { oid::JSON };
        let (clauses, ty) = self.json_clauses(clauses, is_object, (own, -1))?;
        Ok(SqlNode::JsonConstructor { is_object, items, clauses, ty })
    }

    pub fn json_test(&mut self, node: &JsonTest) -> Result<SqlNode> {
        let JsonTest { operand, kind, unique, negated, at: _ } = node;
        let operand = self.expr(operand)?;
        let operand = match operand.ty().0 {
            oid::JSON | oid::JSONB | oid::BYTEA => operand,
            _ => self.coerce(operand, oid::TEXT, SqlForm::Implicit)?,
        };
        let unique = if *unique { " WITH UNIQUE KEYS" } else { "" };
        let words = format!(" IS JSON{}{unique}", kind.word());
        let test = SqlNode::JsonTest { operand: Box::new(operand), words };
        Ok(if *negated { SqlNode::Not(Box::new(test)) } else { test })
    }

    /// Returns the text of a constructor's clauses, and its type. `own`: the type without RETURNING, which is written too.
    pub fn json_clauses(&mut self, clauses: &JsonClauses, is_object: bool, own: Ty) -> Result<(String, Ty)> {
        let JsonClauses { absent_on_null, unique, returning } = clauses;
        let mut text = String::new();
        if *absent_on_null == is_object {
            text.push_str(if is_object { " ABSENT ON NULL" } else { " NULL ON NULL" });
        }
        if *unique {
            text.push_str(" WITH UNIQUE KEYS");
        }
        let (ty, format) = match returning {
            None => (own, None),
            Some(JsonReturning { ty, format }) => (self.binder.type_named(ty)?, format.as_ref()),
        };
        text.push_str(&format!(" RETURNING {}", format_type(ty.0, Some(ty.1))));
        // JSON is the format of every type but jsonb.
        if let Some(format) = format.filter(|_| ty.0 == oid::JSONB) {
            text.push_str(format_text(format));
        }
        Ok((text, ty))
    }
}
