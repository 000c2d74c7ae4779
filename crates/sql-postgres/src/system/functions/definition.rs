//! Definitions of objects as SQL: `pg_get_viewdef` and its like.

use std::sync::Arc;

use datum::Result;
use query::catalog::foreign_key::{Action, Deferral, ForeignKey};
use query::catalog::objects::Object;
use query::catalog::table::Table;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;

use super::{object, optional};
use crate::define::materialized::view_of;
use crate::define::names::{is_found_in, schema_of, schema_shown};
use crate::deparse::Style;
use crate::error::{PgError, state};
use crate::functions::args::{integer, text, truth};
use crate::functions::state::StateOf as _;
use crate::session::facts::FactsOf as _;
use crate::session::quoted;
use crate::system::view::{Shown, check_text, domain_check_text, indexes, tree_text, view_text};
use crate::system::{oids, view};
use crate::types::io::ObjectKind;
use crate::types::{reg, user};
use crate::value::Value;

/// Returns the style that an argument asks for: whether the text is to be pretty.
fn style(values: &[Value], at: usize) -> Result<Style> {
    Ok(Style::of(values.len() > at && truth(values, at)?))
}

/// Returns the value with the relation's OID in the place of its name.
fn by_name(values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    match &values[0] {
        Value::Text(name) => Ok(reg::input(ObjectKind::Relation, name, &ctx.state().io)?),
        other => Ok(other.clone()),
    }
}

fn view_in(values: &[Value], style: Style, ctx: &mut EvalContext) -> Result<Value> {
    let relation = by_name(values, ctx)?;
    match object(&[relation], ctx)? {
        Some(Object::View(view)) => view_text(&view, style, ctx).map(Value::text),
        Some(Object::Table(table)) => match view_of(&table) {
            Some(view) => view_text(&view, style, ctx).map(Value::text),
            None => Ok(Value::text("Not a view")),
        },
        // Of another kind of relation it is the empty definition of none.
        Some(Object::Sequence(_)) => Ok(Value::text("Not a view")),
        _ => Ok(Value::Null),
    }
}

pub fn view(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    view_in(values, style(values, 1)?, ctx)
}

/// Returns a pretty text whose lines are broken at a column.
pub fn wrapped_view(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let wrap = usize::try_from(integer(values, 1)?).ok();
    view_in(values, Style { wrap, ..Style::PRETTY }, ctx)
}

pub fn rule(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let style = style(values, 1)?;
    let view = oids::view_of_rule(integer(values, 0)? as u32);
    let view = match object(&[Value::UInt(view.into())], ctx)? {
        Some(Object::View(view)) => view,
        Some(Object::Table(table)) => match view_of(&table) {
            Some(view) => Arc::new(view),
            None => return Ok(Value::Null),
        },
        _ => return Ok(Value::Null),
    };
    let body = view_text(&view, style, ctx)?;
    let name = qualified(&view.schema, &view.name, style.is_pretty, ctx);
    Ok(Value::text(format!("CREATE RULE \"_RETURN\" AS\n    ON SELECT TO {name} DO INSTEAD {body}")))
}

/// Returns a relation's name, with its schema unless it is visible and the text is to be pretty.
fn qualified(schema: &str, name: &str, is_pretty: bool, ctx: &mut EvalContext) -> String {
    let (schema, facts) = (schema_of(schema), ctx.facts());
    match is_pretty && is_found_in(&facts.definitions, &facts.database, &facts.search_path, schema, name) {
        true => quoted(name),
        false => format!("{}.{}", quoted(schema_shown(&facts.definitions, schema)), quoted(name)),
    }
}

pub fn index(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let oid = integer(values, 0)? as u32;
    let (Some(Object::Index(table, _)) | Some(Object::PrimaryKey(table))) = object(values, ctx)? else {
        return Ok(Value::Null);
    };
    let found = indexes(&table).into_iter().find(|index| index.oid == oid);
    let column = if values.len() > 1 { integer(values, 1)? } else { 0 };
    let style = style(values, 2)?;
    let name = qualified(&table.schema, &table.name, style.is_pretty, ctx);
    let Some(index) = found else { return Ok(Value::Null) };
    optional(match usize::try_from(column) {
        Ok(0) => Some(index.definition_on(&table, &name, style, ctx)?),
        Ok(nth) => index.columns().nth(nth - 1).map(|at| index.column_text(&table, at, style, ctx)),
        Err(_) => None,
    })
}

pub fn constraint(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let oid = integer(values, 0)? as u32;
    let style = style(values, 1)?;
    let names = |table: &Table, columns: &mut dyn Iterator<Item = usize>| {
        columns.map(|at| quoted(&table.columns[at].name)).collect::<Vec<_>>().join(", ")
    };
    let defined = match object(values, ctx)? {
        Some(Object::PrimaryKey(table) | Object::Index(table, _)) => {
            indexes(&table).into_iter().find(|index| index.oid == oid && index.is_constraint).map(|index| {
                let word = if index.is_primary { "PRIMARY KEY" } else { "UNIQUE" };
                let nulls = if index.nulls_equal { " NULLS NOT DISTINCT" } else { "" };
                let columns = names(&table, &mut index.parts.iter().map(|part| part.column));
                format!("{word}{nulls} ({columns}){}{}", index.included_text(&table), deferral_text(index.deferral))
            })
        }
        // The condition has parentheses of its own, unless it is pretty.
        Some(Object::Check(table, at)) => {
            let check = &table.checks[at];
            Some(format!("CHECK ({}){}", check_text(&table, check, style, ctx)?, validity_text(check.is_validated)))
        }
        Some(Object::DomainCheck(ty, at)) => {
            let check = &user::domain(&ty)?.checks[at];
            let text = domain_check_text(&ty, check, style, ctx)?;
            Some(format!("CHECK ({text}){}", validity_text(check.is_validated)))
        }
        Some(Object::ForeignKey(table, at)) => Some(foreign_key(&table, &table.foreign_keys[at], style, ctx)),
        _ => None,
    };
    match defined {
        Some(defined) => Ok(Value::text(defined)),
        None => Ok(Value::Null),
    }
}

fn foreign_key(table: &Arc<Table>, key: &ForeignKey, _: Style, ctx: &mut EvalContext) -> String {
    let own: Vec<String> = key.columns.iter().map(|at| quoted(&table.columns[*at].name)).collect();
    let parent: Vec<String> = key.parent_columns.iter().map(|name| quoted(name)).collect();
    // The parent's name alone suffices where it finds it.
    let parent_name = qualified(&key.parent_schema, &key.parent, true, ctx);
    let mut text = format!("FOREIGN KEY ({}) REFERENCES {parent_name}({})", own.join(", "), parent.join(", "));
    for (event, action) in [("UPDATE", key.on_update), ("DELETE", key.on_delete)] {
        if action != Action::Nothing {
            text.push_str(&format!(" ON {event} {}", action.name()));
        }
    }
    text.push_str(deferral_text(key.deferral));
    text.push_str(validity_text(key.is_validated));
    text
}

fn validity_text(is_validated: bool) -> &'static str {
    if is_validated { "" } else { " NOT VALID" }
}

fn deferral_text(deferral: Deferral) -> &'static str {
    match deferral {
        Deferral::Never => "",
        Deferral::Immediate => " DEFERRABLE",
        Deferral::Deferred => " DEFERRABLE INITIALLY DEFERRED",
    }
}

pub fn expression(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let style = style(values, 2)?;
    let tree = text(values, 0)?.to_owned();
    let relation = integer(values, 1)? as u32;
    match object(&[Value::UInt(relation.into())], ctx)? {
        Some(Object::Table(table) | Object::Index(table, _) | Object::PrimaryKey(table)) => {
            tree_text(&table, &tree, style, ctx).map(Value::text)
        }
        // The default of a domain.
        _ if relation == oids::PG_TYPE => {
            tree_text(&Table { maker: crate::MAKER, ..Table::draft("", &[]) }, &tree, style, ctx).map(Value::text)
        }
        _ => optional((relation == 0).then_some(tree)),
    }
}

pub fn serial_sequence(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let column = text(values, 1)?.to_owned();
    let relation = by_name(values, ctx)?;
    let Some(Object::Table(table)) = object(&[relation], ctx)? else {
        return Ok(Value::Null);
    };
    let Some(column) = table.columns.iter().find(|known| !known.is_hidden() && known.name == column) else {
        let message = format!("column \"{column}\" of relation \"{}\" does not exist", table.name);
        return Err(PgError::new(state::UNDEFINED_COLUMN, message).into());
    };
    let Some(shown) = Shown::of(ctx) else { return Ok(Value::Null) };
    let sequence = column.sequences.first().and_then(|id| match shown.snapshot.object(*id) {
        Some(Object::Sequence(sequence)) => {
            let schema = schema_shown(&shown.snapshot, view::schema_name(&sequence.schema));
            Some(format!("{}.{}", quoted(schema), quoted(&sequence.name)))
        }
        _ => None,
    });
    optional(sequence)
}
