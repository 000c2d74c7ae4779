//! `pg_index`.

use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::table_function::Give;

use crate::batch::Row;
use crate::system::arrays;
use crate::system::catalog::attribute::collation_of;
use crate::system::cells::{null, number, oid, text, truth};
use crate::system::oids;
use crate::system::operator_class::{default_class, gin_class};
use crate::system::view::{Shown, ShownIndex, indexes, number_of, type_of};
use crate::system::wanted::Wanted;
use query::catalog::foreign_key::Deferral;
use query::catalog::table::Table;

pub fn pg_index(wanted: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    let only = wanted.oid("indexrelid");
    for table in super::tables(&shown, only.or_else(|| wanted.oid("indrelid"))) {
        for index in indexes(&table).iter().filter(|index| only.is_none_or(|oid| oid == index.oid)) {
            give(row(&table, index), ctx)?;
        }
    }
    Ok(())
}

fn row(table: &Table, index: &ShownIndex<'_>) -> Row {
    let keys: Vec<i64> = index.columns().map(|at| number_of(table, at)).collect();
    let types: Vec<u32> = index.parts.iter().map(|part| type_of(&table.columns[part.column]).0).collect();
    let collations: Vec<u32> = types.iter().map(|ty| collation_of(*ty)).collect();
    let classes: Vec<u32> = match index.terms {
        Some(form) => types.iter().map(|ty| gin_class(form, *ty).unwrap_or(0)).collect(),
        None => types.iter().map(|ty| default_class(*ty)).collect(),
    };
    let options = index.parts.iter().map(|part| {
        if index.terms.is_some() {
            return 0;
        }
        let (descending, nulls_first) = (part.order.descending, part.order.nulls_first);
        i64::from(descending) | i64::from(nulls_first) << 1
    });
    vec![
        oid(index.oid),
        oid(oids::of_object(table.id)),
        number(keys.len() as i64),
        number(index.parts.len() as i64),
        truth(index.is_unique),
        truth(index.nulls_equal),
        truth(index.is_primary),
        truth(false),
        truth(index.deferral == Deferral::Never),
        truth(false),
        truth(true),
        truth(false),
        truth(true),
        truth(true),
        truth(false),
        arrays::number_vector(&keys),
        arrays::oid_vector(&collations),
        arrays::oid_vector(&classes),
        arrays::number_vector(&options.collect::<Vec<_>>()),
        index.expression_trees(table).map_or(null(), text),
        index.predicate_tree(table).map_or(null(), text),
    ]
}
