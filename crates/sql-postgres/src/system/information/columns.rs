//! `information_schema.columns`.

use datum::Result;
use query::catalog::objects::Object;
use query::catalog::table::{Identity, TableColumn};
use query::catalog::user_type::UserType;
use query::nodes::context::EvalContext;
use query::nodes::table_function::Give;

use crate::batch::Row;
use crate::rights::object::Object as Rights;
use crate::rights::privilege::ObjectClass;
use crate::system::cells::{null, number, text, yes};
use crate::system::relations;
use crate::system::view::{Shown, columns as columns_of, default_text, domain_default_text, schema_name, type_of};
use crate::system::wanted::Wanted;
use crate::types::oid::{self, Oid};
use crate::types::{registry, user};
use crate::value::Value;

/// The words of a column, besides its names and type.
struct Column<'r> {
    schema: &'r str,
    table: &'r str,
    name: &'r str,
    nth: i64,
    ty: (Oid, i32),
    is_not_null: bool,
    default: Value,
    /// The words of an identity: generation, start, increment, maximum, minimum, cycle.
    identity: Option<[Value; 6]>,
    generated: Value,
    is_updatable: bool,
}

/// Precision, its radix and the scale of a number's type.
fn precision((ty, typmod): (Oid, i32)) -> (Value, Value, Value) {
    let of = |bits: i64| (number(bits), number(2));
    let digits = if ty == oid::NUMERIC { registry::numeric_digits(typmod) } else { None };
    let ((precision, radix), scale) = match ty {
        oid::INT2 => (of(16), number(0)),
        oid::INT4 => (of(32), number(0)),
        oid::INT8 => (of(64), number(0)),
        oid::FLOAT4 => (of(24), null()),
        oid::FLOAT8 => (of(53), null()),
        oid::NUMERIC => {
            let precision = digits.map_or(null(), |(precision, _)| number(precision.into()));
            ((precision, number(10)), digits.map_or(null(), |(_, scale)| number(scale.into())))
        }
        _ => ((null(), null()), null()),
    };
    (precision, radix, scale)
}

fn fraction((ty, typmod): (Oid, i32)) -> Value {
    match ty {
        oid::DATE => number(0),
        oid::TIME | oid::TIMETZ | oid::TIMESTAMP | oid::TIMESTAMPTZ => {
            number(if typmod < 0 { 6 } else { typmod.into() })
        }
        oid::INTERVAL => number(if typmod < 0 || typmod & 0xffff == 0xffff { 6 } else { i64::from(typmod & 0xffff) }),
        _ => null(),
    }
}

impl Column<'_> {
    fn row(self, shown: &Shown) -> Row {
        let database = &*shown.database;
        let domain = shown.user_type(self.ty.0).filter(|_| user::is_domain(self.ty.0));
        let base = domain.as_ref().and_then(|ty| shown.base_of(ty));
        let (ty, typmod) = base.unwrap_or(self.ty);
        let of_domain = |part: &str| domain.as_ref().map_or(null(), |_| text(part));
        let is_not_null = self.is_not_null
            || domain.as_ref().is_some_and(|ty| user::domain(ty).is_ok_and(|domain| domain.is_not_null));
        let length = match ty {
            oid::VARCHAR | oid::BPCHAR => registry::length_max(typmod),
            oid::BIT | oid::VARBIT => usize::try_from(typmod).ok(),
            _ => None,
        };
        let octets = matches!(ty, oid::TEXT | oid::VARCHAR | oid::BPCHAR)
            .then(|| length.map_or(1 << 30, |length| length as i64 * 4));
        let (precision, radix, scale) = precision((ty, typmod));
        let is_array = registry::element_of(ty).is_some();
        let user_type = shown.user_type(ty);
        let data_type = match &user_type {
            _ if is_array => "ARRAY".to_owned(),
            Some(_) => "USER-DEFINED".to_owned(),
            None => registry::format_type(ty, None),
        };
        let type_schema = user_type.as_ref().map_or("pg_catalog", |ty| schema_name(&ty.schema));
        let type_name = match (&user_type, registry::element_of(ty)) {
            (Some(ty), Some(_)) => format!("_{}", ty.name),
            (Some(ty), None) => ty.name.clone(),
            (None, Some(element)) => format!("_{}", element.name),
            (None, None) => registry::by_oid(ty).map_or_else(String::new, |row| row.name.to_owned()),
        };
        let is_name = ty == oid::NAME;
        let collation = |part: &str| if is_name { text(part) } else { null() };
        let is_identity = self.identity.is_some();
        let is_generated = !self.generated.is_null();
        let [generation, start, increment, max, min, cycle] =
            self.identity.unwrap_or_else(|| [null(), null(), null(), null(), null(), yes(false)]);
        vec![
            text(database),
            text(self.schema),
            text(self.table),
            text(self.name),
            number(self.nth),
            self.default,
            yes(!is_not_null),
            text(data_type),
            length.map_or(null(), |length| number(length as i64)),
            octets.map_or(null(), number),
            precision,
            radix,
            scale,
            fraction((ty, typmod)),
            null(),
            null(),
            null(),
            null(),
            null(),
            collation(database),
            collation("pg_catalog"),
            collation("C"),
            of_domain(database),
            of_domain(domain.as_ref().map_or("", |ty| schema_name(&ty.schema))),
            of_domain(domain.as_ref().map_or("", |ty| &ty.name)),
            text(database),
            text(type_schema),
            text(type_name),
            null(),
            null(),
            null(),
            null(),
            text(self.nth.to_string()),
            yes(false),
            yes(is_identity),
            generation,
            start,
            increment,
            max,
            min,
            cycle,
            text(if is_generated { "ALWAYS" } else { "NEVER" }),
            self.generated,
            yes(self.is_updatable),
        ]
    }
}

impl Shown {
    /// Returns the type behind a domain, as the standard's columns tell of it: of a domain over a domain that one.
    fn base_of(&self, domain: &UserType) -> Option<(Oid, i32)> {
        let base = &user::domain(domain).ok()?.base;
        Some((registry::oid_of(base), registry::typmod_of(base)))
    }
}

pub fn domains(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    let all: Vec<_> = shown.schemas().flat_map(|(_, schema)| schema.types.values().cloned()).collect();
    for ty in all {
        let Some(base) = shown.base_of(&ty) else { continue };
        let column = Column {
            schema: "",
            table: "",
            name: "",
            nth: 1,
            ty: (user::oid_of(&ty), -1),
            is_not_null: false,
            default: null(),
            identity: None,
            generated: null(),
            is_updatable: false,
        };
        let default = domain_default_text(&ty, ctx).map_or(null(), text);
        let of_column = column.row(&shown);
        // The columns from `data_type` on, and those of the type itself, are those of `columns`.
        let mut row = vec![text(&shown.database), text(schema_name(&ty.schema)), text(&ty.name)];
        // The standard's ARRAY is of columns alone there.
        row.push(match shown.user_type(base.0) {
            Some(_) => text("USER-DEFINED"),
            None => text(registry::format_type(base.0, None)),
        });
        row.extend_from_slice(&of_column[8..10]);
        row.extend_from_slice(&of_column[16..22]);
        row.extend_from_slice(&of_column[10..16]);
        row.push(default);
        row.extend_from_slice(&of_column[25..33]);
        give(row, ctx)?;
    }
    Ok(())
}

pub fn domain_constraints(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    let all: Vec<_> = shown.schemas().flat_map(|(_, schema)| schema.types.values().cloned()).collect();
    for ty in all {
        let checks = user::domain(&ty).map_or(&[][..], |domain| &domain.checks);
        for check in checks {
            let (database, schema) = (&shown.database, schema_name(&ty.schema));
            let names = [text(database), text(schema), text(&check.name), text(database), text(schema), text(&ty.name)];
            give(names.into_iter().chain([yes(false), yes(false)]).collect(), ctx)?;
        }
    }
    Ok(())
}

/// Returns the words of an identity column.
fn identity(shown: &Shown, column: &TableColumn) -> Option<[Value; 6]> {
    let generation = match column.identity {
        Identity::None => return None,
        Identity::Always => "ALWAYS",
        Identity::ByDefault => "BY DEFAULT",
    };
    let Some(Object::Sequence(sequence)) = column.sequences.first().and_then(|id| shown.snapshot.object(*id)) else {
        return Some([text(generation), null(), null(), null(), null(), null()]);
    };
    let parameters = sequence.parameters;
    let shown = |number: i64| text(number.to_string());
    Some([
        text(generation),
        shown(parameters.start),
        shown(parameters.increment),
        shown(parameters.max),
        shown(parameters.min),
        yes(parameters.cycle),
    ])
}

pub fn columns(wanted: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    let is_wanted = |name: &str| wanted.name("table_name").is_none_or(|wanted| wanted == name);
    let plain = |schema, table, name, nth, ty| Column {
        schema,
        table,
        name,
        nth,
        ty,
        is_not_null: false,
        default: null(),
        identity: None,
        generated: null(),
        is_updatable: false,
    };
    for relation in relations::all().iter().filter(|relation| is_wanted(relation.table.name)) {
        for (nth, column) in relation.served_columns() {
            let Some(ty) = registry::by_name(column.type_name) else { continue };
            let ty = (ty.oid, column.typmod);
            let row = plain(relation.table.schema, relation.table.name, column.name, nth, ty);
            let (is_not_null, is_updatable) = (column.is_not_null, relation.kind == 'r');
            give(Column { is_not_null, is_updatable, ..row }.row(&shown), ctx)?;
        }
    }
    for (schema, definitions) in shown.schemas() {
        let tables = definitions.tables.values().filter(|table| table.query.is_none() && is_wanted(&table.name));
        for table in tables.filter(|table| shown.sees(&Rights::table(table), ObjectClass::Column.all())) {
            for (nth, column) in columns_of(table) {
                let text_of = default_text(table, column, ctx).map_or(null(), text);
                let is_generated = column.generated.is_some();
                let row = Column {
                    is_not_null: !column.ty.nullable,
                    default: if is_generated { null() } else { text_of.clone() },
                    identity: identity(&shown, column),
                    generated: if is_generated { text_of } else { null() },
                    is_updatable: true,
                    ..plain(schema, &table.name, &column.name, nth, type_of(column))
                };
                give(row.row(&shown), ctx)?;
            }
        }
        let views = definitions.views.values().filter(|view| is_wanted(&view.name));
        for view in views.filter(|view| shown.sees(&Rights::view(view), ObjectClass::Column.all())) {
            for (nth, (name, ty)) in view.columns.iter().zip(&view.types).enumerate() {
                let column = TableColumn::new(name.clone(), ty.clone(), nth);
                give(plain(schema, &view.name, name, nth as i64 + 1, type_of(&column)).row(&shown), ctx)?;
            }
        }
    }
    Ok(())
}
