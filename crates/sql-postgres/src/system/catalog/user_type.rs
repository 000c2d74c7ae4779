//! Rows of `pg_type` and `pg_enum` for the types that users define.

use std::sync::Arc;

use datum::Result;
use query::catalog::Schema;
use query::catalog::objects::Object;
use query::catalog::user_type::{TypeDefinition, UserType};
use query::nodes::context::EvalContext;
use query::nodes::table_function::Give;

use crate::batch::Row;
use crate::functions::state::StateOf as _;
use crate::system::cells::{letter, null, number, oid, text, truth};
use crate::system::view::Shown;
use crate::system::wanted::Wanted;
use crate::system::{extract, oids};
use crate::types::oid::Oid;
use crate::types::{registry, row_type, user};
use crate::value::Value;

/// `typsubscript`, `typinput`, `typoutput`, `typreceive`, `typsend` and `typanalyze`.
const OF_ENUM: [Oid; 6] = [0, 3506, 3507, 3532, 3533, 0];
const OF_COMPOSITE: [Oid; 6] = [0, 2290, 2291, 2402, 2403, 0];
const OF_ARRAY: [Oid; 6] = [6179, 750, 751, 2400, 2401, 3816];

/// Returns the types in question: that of an OID, of it or of its array type, or all.
pub(super) fn types(shown: &Shown, of: Option<Oid>) -> Vec<Arc<UserType>> {
    match of {
        None => {
            let of_schema = |(_, schema): (&str, &Arc<Schema>)| {
                let defined = schema.types.values().cloned();
                let of_tables = schema.tables.values().filter_map(|table| row_type::of_table(table));
                let of_views = schema.views.values().filter_map(|view| row_type::of_view(view));
                defined.chain(of_tables).chain(of_views).collect::<Vec<_>>()
            };
            shown.schemas().flat_map(of_schema).collect()
        }
        Some(oid) => shown.user_type(oid).into_iter().collect(),
    }
}

pub fn pg_type(wanted: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    for ty in types(&shown, wanted.oid("oid")) {
        let namespace = shown.schema_oid(&ty.schema);
        for number in &ty.numbers {
            let row = row(&ty, number.0, namespace, ctx);
            give(row, ctx)?;
        }
    }
    Ok(())
}

const DOMAIN_IN: Oid = 2597;
const DOMAIN_RECV: Oid = 2598;

/// Returns the functions of a domain: values are shown and gathered as those of the base type.
fn functions_of_domain(domain: Oid, ctx: &EvalContext) -> [Oid; 6] {
    let base = user::base_type(domain, &ctx.state().io).map_or(0, |base| registry::oid_of(&base));
    let [output, send, analyze] = match base {
        base if user::is_enum(base) => [OF_ENUM[2], OF_ENUM[4], OF_ENUM[5]],
        base if registry::is_array(base) => [OF_ARRAY[2], OF_ARRAY[4], OF_ARRAY[5]],
        base if user::is_composite(base) => [OF_COMPOSITE[2], OF_COMPOSITE[4], OF_COMPOSITE[5]],
        base => {
            let fields: Vec<&str> =
                extract::PG_TYPE.line(base).map_or_else(Vec::new, |line| line.split('\t').collect());
            [16, 18, 21].map(|place| fields.get(place).and_then(|field| field.parse().ok()).unwrap_or(0))
        }
    };
    [0, DOMAIN_IN, output, DOMAIN_RECV, send, analyze]
}

/// Returns the alignment of a type: that of a domain is its base type's, and arrays have that of their elements from an integer's on.
fn alignment(ty: Oid, ctx: &EvalContext) -> char {
    let base = user::base_type(ty, &ctx.state().io).map_or(ty, |base| registry::oid_of(&base));
    match registry::element_of(base) {
        Some(element) if alignment(element.oid, ctx) == 'd' => 'd',
        Some(_) => 'i',
        None => registry::by_oid(base).map_or('i', |row| row.align),
    }
}

/// Returns the dimensions that a domain's base type was declared with, as far as its type tells.
fn dimensions(base: Oid) -> i64 {
    i64::from(registry::element_of(base).is_some())
}

fn row(ty: &UserType, own: Oid, namespace: Oid, ctx: &mut EvalContext) -> Row {
    let is_array = own != user::oid_of(ty);
    let form = registry::by_oid(own);
    let name = if is_array { format!("_{}", ty.name) } else { ty.name.clone() };
    let kind = match &ty.definition {
        _ if is_array => 'b',
        TypeDefinition::Enumeration(_) => 'e',
        TypeDefinition::Domain(_) => 'd',
        TypeDefinition::Composite(_) => 'c',
    };
    let domain = user::domain(ty).ok().filter(|_| !is_array);
    let base = domain.map(|domain| (registry::oid_of(&domain.base), registry::typmod_of(&domain.base)));
    let [subscript, input, output, receive, send, analyze] = match domain {
        _ if is_array => OF_ARRAY,
        None if ty.row().is_some() => OF_COMPOSITE,
        None => OF_ENUM,
        Some(_) => functions_of_domain(own, ctx),
    };
    let default = domain.and_then(|_| crate::system::view::domain_default_text(ty, ctx));
    let tree = domain
        .zip(base)
        .and_then(|(domain, base)| domain.default.as_ref().map(|text| crate::system::view::node_tree(base, text)));
    vec![
        oid(own),
        text(name),
        oid(namespace),
        oid(oids::POSTGRES),
        number(form.map_or(-1, |row| row.len).into()),
        truth(form.is_some_and(|row| row.by_value)),
        letter(kind),
        letter(form.map_or('U', |row| row.category)),
        truth(false),
        truth(true),
        letter(registry::DELIMITER),
        oid(if kind == 'c' { oids::of_object(ty.id) } else { 0 }),
        oid(subscript),
        oid(form.map_or(0, |row| row.element)),
        oid(form.map_or(0, |row| row.array)),
        oid(input),
        oid(output),
        oid(receive),
        oid(send),
        oid(0),
        oid(0),
        oid(analyze),
        letter(alignment(own, ctx)),
        letter(form.map_or('x', |row| row.toast)),
        truth(domain.is_some_and(|domain| domain.is_not_null)),
        oid(base.map_or(0, |(base, _)| base)),
        number(base.map_or(-1, |(_, typmod)| typmod).into()),
        number(base.map_or(0, |(base, _)| dimensions(base))),
        oid(super::attribute::collation_of(user::form(own))),
        tree.map_or(null(), text),
        default.map_or(null(), text),
        null(),
    ]
}

pub fn pg_enum(wanted: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    for ty in types(&shown, wanted.oid("enumtypid")) {
        for label in user::labels(&ty) {
            let rank = Value::Float(label.rank);
            give(vec![oid(oids::of_object(label.id)), oid(user::oid_of(&ty)), rank, text(&label.name)], ctx)?;
        }
    }
    Ok(())
}

impl Shown {
    /// Returns the type of an OID, or whose array type has it, if it is one of this database.
    pub fn user_type(&self, oid: Oid) -> Option<Arc<UserType>> {
        match self.object(oids::of_object(user::object_of(oid)?))? {
            Object::Type(ty) => Some(ty),
            object if user::is_of_rows(oid) => row_type::of_object(&object),
            _ => None,
        }
    }
}
