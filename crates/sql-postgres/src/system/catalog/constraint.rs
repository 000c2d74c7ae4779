//! `pg_constraint`.

use datum::Result;
use query::catalog::foreign_key::{Action, Deferral, ForeignKey};
use query::catalog::table::Table;
use query::nodes::context::EvalContext;
use query::nodes::table_function::Give;

use crate::batch::Row;
use crate::system::cells::{letter, null, number, oid, text, truth};
use crate::system::operator_class::equality;
use crate::system::view::{Shown, check_tree, indexes, number_of, type_of};
use crate::system::wanted::Wanted;
use crate::system::{arrays, oids};
use crate::types::oid::{BOOL, Oid};
use crate::types::user;
use crate::value::Value;

/// The kinds of actions of a foreign key, and how it matches.
type Kinds = (char, char, char);
const NO_KINDS: Kinds = (' ', ' ', ' ');

struct Constraint<'r> {
    oid: Oid,
    name: &'r str,
    namespace: Oid,
    kind: char,
    is_validated: bool,
    relation: Oid,
    /// The domain.
    ty: Oid,
    index: Oid,
    parent: Oid,
    kinds: Kinds,
    columns: Option<Vec<i64>>,
    parent_columns: Option<Vec<i64>>,
    operators: Option<Vec<Oid>>,
    expression: Value,
    deferral: Deferral,
}

impl Constraint<'_> {
    fn row(self) -> Row {
        let operators = || self.operators.as_deref().map_or(Value::Null, arrays::oids);
        vec![
            oid(self.oid),
            text(self.name),
            oid(self.namespace),
            letter(self.kind),
            truth(self.deferral != Deferral::Never),
            truth(self.deferral == Deferral::Deferred),
            truth(self.is_validated),
            oid(self.relation),
            oid(self.ty),
            oid(self.index),
            oid(0),
            oid(self.parent),
            letter(self.kinds.0),
            letter(self.kinds.1),
            letter(self.kinds.2),
            truth(true),
            number(0),
            truth(self.kind != 'c'),
            self.columns.as_deref().map_or(Value::Null, arrays::numbers),
            self.parent_columns.as_deref().map_or(Value::Null, arrays::numbers),
            operators(),
            operators(),
            operators(),
            null(),
            null(),
            self.expression,
        ]
    }
}

pub fn pg_constraint(wanted: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    let table =
        ["conrelid", "oid", "conindid"].into_iter().find_map(|column| wanted.oid(column).filter(|oid| *oid != 0));
    // The index of a foreign key is one of its parent.
    let table = table.filter(|_| wanted.oid("conindid").is_none() || wanted.oid("conrelid").is_some());
    for table in super::tables(&shown, table) {
        of_table(&shown, &table, ctx, give)?;
    }
    of_domains(&shown, wanted, ctx, give)
}

/// The checks of domains.
fn of_domains(shown: &Shown, wanted: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    if ["conrelid", "conindid"].into_iter().any(|column| wanted.oid(column).is_some_and(|oid| oid != 0)) {
        return Ok(());
    }
    let domains: Vec<_> = shown.schemas().flat_map(|(_, schema)| schema.types.values().cloned()).collect();
    for ty in domains {
        let Ok(domain) = user::domain(&ty) else { continue };
        for check in &domain.checks {
            let row = Constraint {
                oid: oids::of_object(check.id),
                name: &check.name,
                namespace: shown.schema_oid(&ty.schema),
                kind: 'c',
                is_validated: check.is_validated,
                relation: 0,
                ty: user::oid_of(&ty),
                index: 0,
                parent: 0,
                kinds: NO_KINDS,
                columns: None,
                parent_columns: None,
                operators: None,
                expression: text(crate::system::view::node_tree((BOOL, -1), &check.text)),
                deferral: Deferral::Never,
            };
            give(row.row(), ctx)?;
        }
    }
    Ok(())
}

fn of_table(shown: &Shown, table: &Table, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let (namespace, relation) = (shown.schema_oid(&table.schema), oids::of_object(table.id));
    let plain = |number: Oid, kind: char| Constraint {
        oid: number,
        name: "",
        namespace,
        kind,
        is_validated: true,
        relation,
        ty: 0,
        index: 0,
        parent: 0,
        kinds: NO_KINDS,
        columns: None,
        parent_columns: None,
        operators: None,
        expression: Value::Null,
        deferral: Deferral::Never,
    };
    for index in indexes(table).iter().filter(|index| index.is_constraint) {
        let columns = Some(index.parts.iter().map(|part| number_of(table, part.column)).collect());
        let kind = if index.is_primary { 'p' } else { 'u' };
        let number = index.constraint_oid();
        let (name, deferral) = (&*index.name, index.deferral);
        give(Constraint { name, index: index.oid, columns, deferral, ..plain(number, kind) }.row(), ctx)?;
    }
    for check in &table.checks {
        let number = oids::of_object(check.id);
        let columns = Some(crate::system::view::columns_of_check(table, check, ctx));
        let (is_validated, expression) = (check.is_validated, text(check_tree(check)));
        let row = Constraint { name: &check.name, is_validated, columns, expression, ..plain(number, 'c') }.row();
        give(row, ctx)?;
    }
    for key in &table.foreign_keys {
        let row = foreign(shown, table, key, plain(oids::of_object(key.id), 'f'));
        give(row, ctx)?;
    }
    Ok(())
}

fn foreign<'r>(shown: &Shown, table: &Table, key: &'r ForeignKey, plain: Constraint<'r>) -> Row {
    let action = |action: Action| match action {
        Action::Nothing => 'a',
        Action::Restrict => 'r',
        Action::Cascade => 'c',
        Action::SetNull => 'n',
    };
    let parent = shown.snapshot.table(&key.parent_schema, &key.parent).ok();
    let parent_columns = parent.map(|parent| {
        let columns =
            key.parent_columns.iter().filter_map(|name| parent.columns.iter().position(|known| known.name == *name));
        columns.map(|at| number_of(parent, at)).collect::<Vec<_>>()
    });
    let row = Constraint {
        name: &key.name,
        index: parent.map_or(0, |parent| index_of_key(parent, key)),
        parent: parent.map_or(0, |parent| oids::of_object(parent.id)),
        kinds: (action(key.on_update), action(key.on_delete), 's'),
        columns: Some(key.columns.iter().map(|at| number_of(table, *at)).collect()),
        parent_columns,
        deferral: key.deferral,
        is_validated: key.is_validated,
        operators: Some(key.columns.iter().map(|at| equality(type_of(&table.columns[*at]).0)).collect()),
        ..plain
    };
    row.row()
}

/// Returns the index of the parent's key that a foreign key refers to.
pub fn index_of_key(parent: &Table, key: &ForeignKey) -> Oid {
    let mut wanted: Vec<&str> = key.parent_columns.iter().map(String::as_str).collect();
    wanted.sort_unstable();
    let indexes = indexes(parent);
    let found = indexes.iter().find(|index| {
        let mut names: Vec<&str> = index.parts.iter().map(|part| parent.columns[part.column].name.as_str()).collect();
        names.sort_unstable();
        index.is_unique && index.predicate.is_none() && names == wanted
    });
    found.map_or(0, |index| index.oid)
}
