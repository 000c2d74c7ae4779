//! Values in the details of errors: a role sees none that it may not read.

use std::sync::Arc;

use datum::Fault;
use query::catalog::table::Table;
use query::nodes::context::EvalContext;

use crate::bind::rights::column_key;
use crate::rights::object::Object;
use crate::rights::privilege::SELECT;
use crate::session::facts::FactsOf as _;

/// Returns whether the current role may read a table, or these columns of it.
pub fn may_read(table: &Table, columns: Option<&[usize]>, ctx: &mut EvalContext) -> bool {
    let object = Object::table(table);
    let may = ctx.facts().with_rights(|facts, identity| {
        let set = &identity.set;
        let may_column = |at: &usize| facts.column_privileges(set, &object, column_key(table, *at)) & SELECT != 0;
        facts.privileges(set, &object) & SELECT != 0 || columns.is_some_and(|columns| columns.iter().all(may_column))
    });
    may.unwrap_or(true)
}

/// Returns the detail of an error whose values the current role may not see; `None` if it may see them.
pub fn detail_of(fault: &Fault, written: &[Arc<Table>], ctx: &mut EvalContext) -> Option<Option<Box<str>>> {
    if ctx.facts().identity.set.is_super {
        return None;
    }
    let definitions = ctx.facts().definitions.clone();
    let named = |schema: &str, name: &str| definitions.table(schema, name).ok().cloned();
    let places = |table: &Table, names: &[Box<str>]| -> Vec<usize> {
        let is_named = |at: &usize| names.iter().any(|name| **name == *table.columns[*at].name);
        (0..table.columns.len()).filter(is_named).collect()
    };
    let (table, columns, detail): (Option<Arc<Table>>, Vec<usize>, Option<String>) = match fault {
        Fault::DuplicateKey(key) => {
            let table = written.iter().find(|table| *table.name == *key.table).cloned();
            let parts = table.as_ref().and_then(|table| match &key.index {
                Some(index) => table.index(index).map(|at| table.indexes[at].parts.clone()),
                None => table.primary.clone(),
            });
            let columns = parts.iter().flatten().map(|part| part.column).collect();
            (table, columns, None)
        }
        Fault::ParentMissing(key) => {
            let table = named(&key.schema, &key.table);
            let columns = table.as_ref().map_or_else(Vec::new, |table| places(table, &key.columns));
            (table, columns, Some(format!("Key is not present in table \"{}\".", key.parent_table)))
        }
        Fault::ParentReferenced(key) => {
            let table = named(&key.parent_schema, &key.parent_table);
            let columns = table.as_ref().map_or_else(Vec::new, |table| places(table, &key.parent_columns));
            (table, columns, Some(format!("Key is still referenced from table \"{}\".", key.table)))
        }
        _ => return None,
    };
    match table {
        Some(table) if may_read(&table, Some(&columns), ctx) && !columns.is_empty() => None,
        _ => Some(detail.map(Into::into)),
    }
}
