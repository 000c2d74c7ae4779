//! `pg_depend`, `pg_rewrite`: which objects need which.

use std::sync::Arc;

use datum::Result;
use query::catalog::objects::Object;
use query::catalog::table::{Identity, Table};
use query::catalog::user_type::UserType;
use query::catalog::view::View;
use query::nodes::context::EvalContext;
use query::nodes::table_function::Give;

use crate::batch::Row;
use crate::define::materialized::view_of;
use crate::system::catalog::constraint::index_of_key;
use crate::system::cells::{letter, null, number, oid, text, truth};
use crate::system::keyspace;
use crate::system::oids::{
    self, PG_ATTRDEF, PG_CLASS, PG_CONSTRAINT, PG_DEFAULT_ACL, PG_EXTENSION, PG_NAMESPACE, PG_REWRITE, PG_TYPE,
};
use crate::system::view::{
    Shown, columns, columns_of_check, columns_read, has_default, indexes, number_of, relations_of_view,
};
use crate::system::wanted::Wanted;
use crate::types::oid::Oid;
use crate::types::{registry, row_type, user};

/// An object or a part of one: catalog, OID, number of the column.
type End = (Oid, Oid, i64);

/// `deptype`
const NORMAL: char = 'n';
const AUTO: char = 'a';
const INTERNAL: char = 'i';
const EXTENSION: char = 'e';

fn row((class, object, part): End, (of_class, of_object, of_part): End, kind: char) -> Row {
    vec![oid(class), oid(object), number(part), oid(of_class), oid(of_object), number(of_part), letter(kind)]
}

pub fn pg_depend(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    let redis = (PG_NAMESPACE, oids::REDIS, 0);
    let extension = (PG_EXTENSION, oids::REDIS_EXTENSION, 0);
    give(row(extension, redis, NORMAL), ctx)?;
    give(row(redis, extension, EXTENSION), ctx)?;
    for table in keyspace::all() {
        give(row((PG_CLASS, table.oid, 0), redis, NORMAL), ctx)?;
        give(row((PG_CLASS, table.oid, 0), extension, EXTENSION), ctx)?;
    }
    for (key, record) in shown.default_access() {
        if key.schema != 0 {
            let end = (PG_DEFAULT_ACL, oids::of_object(record.id), 0);
            give(row(end, (PG_NAMESPACE, shown.schema_of_default(key), 0), AUTO), ctx)?;
        }
    }
    for (_, schema) in shown.schemas() {
        let namespace = (PG_NAMESPACE, crate::system::view::schema_oid(schema), 0);
        for table in schema.tables.values() {
            give(row((PG_CLASS, oids::of_object(table.id), 0), namespace, NORMAL), ctx)?;
            of_table(&shown, table, ctx, give)?;
            if let Some(view) = view_of(table) {
                of_rule(&shown, &view, ctx, give)?;
            }
        }
        for ty in schema.types.values() {
            if let Ok(domain) = user::domain(ty) {
                let base = registry::oid_of(&domain.base);
                if user::is_user_type(base) {
                    give(row((PG_TYPE, user::oid_of(ty), 0), (PG_TYPE, base, 0), NORMAL), ctx)?;
                }
                for check in &domain.checks {
                    let end = (PG_CONSTRAINT, oids::of_object(check.id), 0);
                    give(row(end, (PG_TYPE, user::oid_of(ty), 0), AUTO), ctx)?;
                }
            }
            if let Some(attributes) = super::attribute::numbered(ty) {
                let class = oids::of_object(ty.id);
                give(row((PG_CLASS, class, 0), namespace, NORMAL), ctx)?;
                give(row((PG_TYPE, user::oid_of(ty), 0), (PG_CLASS, class, 0), INTERNAL), ctx)?;
                for (nth, field) in attributes.into_iter().filter(|(_, field)| user::is_user_type(field.number)) {
                    give(row((PG_CLASS, class, nth), (PG_TYPE, field.number, 0), NORMAL), ctx)?;
                }
            }
            let ends = ty.numbers.iter().map(|number| (PG_TYPE, number.0, 0));
            let of = std::iter::once((namespace, NORMAL)).chain([((PG_TYPE, user::oid_of(ty), 0), INTERNAL)]);
            // That of a composite type depends on its relation alone.
            let is_composite = usize::from(ty.row().is_some());
            for (end, (of, kind)) in ends.zip(of).skip(is_composite) {
                give(row(end, of, kind), ctx)?;
            }
        }
        for view in schema.views.values() {
            let number = oids::of_object(view.id);
            give(row((PG_CLASS, number, 0), namespace, NORMAL), ctx)?;
            of_row_type(number, row_type::of_view(view), ctx, give)?;
            give(row((PG_REWRITE, oids::of_rule(number), 0), (PG_CLASS, number, 0), NORMAL), ctx)?;
            of_rule(&shown, view, ctx, give)?;
        }
        for sequence in schema.sequences.values() {
            let end = (PG_CLASS, oids::of_object(sequence.id), 0);
            give(row(end, namespace, NORMAL), ctx)?;
            if let Some((table, at)) = shown.snapshot.owner(sequence) {
                let is_identity = table.columns[at].identity != Identity::None;
                let kind = if is_identity { INTERNAL } else { AUTO };
                give(row(end, (PG_CLASS, oids::of_object(table.id), number_of(table, at)), kind), ctx)?;
            }
        }
    }
    Ok(())
}

/// Gives the dependences of the rule of a view.
fn of_rule(shown: &Shown, view: &View, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let number = oids::of_object(view.id);
    let rule = (PG_REWRITE, oids::of_rule(number), 0);
    give(row(rule, (PG_CLASS, number, 0), INTERNAL), ctx)?;
    for (relation, column) in relations_of_view(shown, view, ctx) {
        give(row(rule, (PG_CLASS, relation, column), NORMAL), ctx)?;
    }
    Ok(())
}

/// Gives the dependences of the row type of a relation and of its array type.
fn of_row_type(relation: Oid, ty: Option<Arc<UserType>>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(ty) = ty else { return Ok(()) };
    let [rows, arrays] = [user::oid_of(&ty), user::array_oid_of(&ty)].map(|oid| (PG_TYPE, oid, 0));
    give(row(rows, (PG_CLASS, relation, 0), INTERNAL), ctx)?;
    give(row(arrays, rows, INTERNAL), ctx)
}

fn of_table(shown: &Shown, table: &Table, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let relation = oids::of_object(table.id);
    let of_column = |at: usize| (PG_CLASS, relation, number_of(table, at));
    of_row_type(relation, row_type::of_table(table), ctx, give)?;
    for (nth, column) in columns(table).filter(|(_, column)| user::is_user_type(column.ty.id.0)) {
        give(row((PG_CLASS, relation, nth), (PG_TYPE, column.ty.id.0, 0), NORMAL), ctx)?;
    }
    for (nth, column) in columns(table) {
        if !has_default(column) {
            continue;
        }
        let end = (PG_ATTRDEF, oids::of_default(relation, nth), 0);
        give(row(end, (PG_CLASS, relation, nth), AUTO), ctx)?;
        for sequence in crate::system::view::sequences_in(shown, column) {
            give(row(end, (PG_CLASS, sequence, 0), NORMAL), ctx)?;
        }
        let read = column.generated.as_ref().map(|generated| columns_read(table, &generated.text, ctx));
        for nth in read.into_iter().flatten() {
            give(row(end, (PG_CLASS, relation, nth), AUTO), ctx)?;
        }
    }
    for index in indexes(table) {
        let end = (PG_CLASS, index.oid, 0);
        if index.is_constraint {
            let constraint = (PG_CONSTRAINT, index.constraint_oid(), 0);
            give(row(end, constraint, INTERNAL), ctx)?;
            for at in index.columns() {
                give(row(constraint, of_column(at), AUTO), ctx)?;
            }
        } else {
            for at in index.columns().filter(|at| !table.columns[*at].is_hidden()) {
                give(row(end, of_column(at), AUTO), ctx)?;
            }
            let texts = index.columns().chain(index.predicate).filter_map(|at| table.expression_of(at));
            let mut read: Vec<i64> = texts.flat_map(|text| columns_read(table, text, ctx)).collect();
            read.sort_unstable();
            read.dedup();
            for nth in read {
                give(row(end, (PG_CLASS, relation, nth), AUTO), ctx)?;
            }
        }
    }
    for check in &table.checks {
        let end = (PG_CONSTRAINT, oids::of_object(check.id), 0);
        for nth in columns_of_check(table, check, ctx) {
            give(row(end, (PG_CLASS, relation, nth), AUTO), ctx)?;
        }
    }
    for key in &table.foreign_keys {
        let end = (PG_CONSTRAINT, oids::of_object(key.id), 0);
        for at in &key.columns {
            give(row(end, of_column(*at), AUTO), ctx)?;
        }
        let Ok(parent) = shown.snapshot.table(&key.parent_schema, &key.parent) else { continue };
        for name in &key.parent_columns {
            let Some(at) = parent.columns.iter().position(|known| known.name == *name) else { continue };
            give(row(end, (PG_CLASS, oids::of_object(parent.id), number_of(parent, at)), NORMAL), ctx)?;
        }
        give(row(end, (PG_CLASS, index_of_key(parent, key), 0), NORMAL), ctx)?;
    }
    Ok(())
}

/// Each view has the rule that reads it.
pub fn pg_rewrite(wanted: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    let view = wanted.oid("ev_class").or_else(|| wanted.oid("oid").map(oids::view_of_rule));
    let views: Vec<Oid> = match view {
        Some(view) => {
            let has_rule = match shown.object(view) {
                Some(Object::View(_)) => true,
                Some(Object::Table(table)) => table.query.is_some(),
                _ => false,
            };
            has_rule.then_some(view).into_iter().collect()
        }
        None => {
            let views = shown.schemas().flat_map(|(_, schema)| schema.views.values().map(|view| view.id));
            let kept = shown.tables().filter(|table| table.query.is_some()).map(|table| table.id);
            views.chain(kept).map(oids::of_object).collect()
        }
    };
    for view in views {
        let row = vec![
            oid(oids::of_rule(view)),
            text("_RETURN"),
            oid(view),
            letter('1'),
            letter('O'),
            truth(true),
            text("<>"),
            null(),
        ];
        give(row, ctx)?;
    }
    Ok(())
}
