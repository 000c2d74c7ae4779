//! `pg_class`: relations of the system, tables, indexes, views, sequences, composite types.

use std::sync::Arc;

use datum::Result;
use query::catalog::Schema;
use query::catalog::objects::Object;
use query::catalog::sequence::Sequence;
use query::catalog::table::Table;
use query::catalog::user_type::UserType;
use query::catalog::view::View;
use query::nodes::context::EvalContext;
use query::nodes::table_function::Give;

use crate::batch::Row;
use crate::rights::object::Object as Rights;
use crate::system::cells::{letter, null, number, oid, text, truth};
use crate::system::view::{Shown, ShownIndex, columns, indexes, schema_oid};
use crate::system::wanted::Wanted;
use crate::system::{arrays, oids, relations};
use crate::types::oid::Oid;
use crate::types::{row_type, user};
use crate::value::Value;

struct ClassRow<'r> {
    oid: Oid,
    name: &'r str,
    namespace: Oid,
    owner: Oid,
    kind: char,
    am: Oid,
    tuples: f32,
    has_index: bool,
    is_shared: bool,
    attributes: usize,
    checks: usize,
    has_triggers: bool,
    has_rules: bool,
    is_populated: bool,
    is_temporary: bool,
    rights: Value,
    options: Value,
    /// `reltype`
    row_type: Oid,
}

impl ClassRow<'_> {
    const PLAIN: ClassRow<'static> = ClassRow {
        oid: 0,
        name: "",
        namespace: 0,
        owner: oids::POSTGRES,
        kind: 'r',
        am: 0,
        tuples: -1.0,
        has_index: false,
        is_shared: false,
        attributes: 0,
        checks: 0,
        has_triggers: false,
        has_rules: false,
        is_populated: true,
        is_temporary: false,
        rights: Value::Null,
        options: Value::Null,
        row_type: 0,
    };

    fn row(self) -> Row {
        let has_file = !matches!(self.kind, 'v' | 'c') && oids::object_of(self.oid).is_some();
        vec![
            oid(self.oid),
            text(self.name),
            oid(self.namespace),
            oid(self.row_type),
            oid(0),
            oid(self.owner),
            oid(self.am),
            oid(if has_file { self.oid } else { 0 }),
            oid(if self.is_shared { oids::PG_GLOBAL } else { 0 }),
            number(0),
            Value::Float(self.tuples),
            number(0),
            oid(0),
            truth(self.has_index),
            truth(self.is_shared),
            letter(if self.is_temporary { 't' } else { 'p' }),
            letter(self.kind),
            number(self.attributes as i64),
            number(self.checks as i64),
            truth(self.has_rules),
            truth(self.has_triggers),
            truth(false),
            truth(false),
            truth(false),
            truth(self.is_populated),
            letter(if matches!(self.kind, 'r' | 'm') && oids::object_of(self.oid).is_some() { 'd' } else { 'n' }),
            truth(false),
            oid(0),
            oid(0),
            oid(0),
            self.rights,
            self.options,
            null(),
        ]
    }
}

pub fn pg_class(wanted: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    if let Some(oid) = wanted.oid("oid") {
        return match relations::by_oid(oid) {
            Some(relation) => give(system(relation), ctx),
            None => one(&shown, oid, ctx, give),
        };
    }
    let name = wanted.name("relname");
    let is_named = |known: &str| name.is_none_or(|name| name == known);
    let is_in = |namespace: Oid| wanted.oid("relnamespace").is_none_or(|wanted| wanted == namespace);
    for relation in relations::all().iter().filter(|relation| is_named(relation.table.name)) {
        give(system(relation), ctx)?;
    }
    for (_, schema) in shown.schemas().filter(|(_, schema)| is_in(schema_oid(schema))) {
        for found in schema.tables.values() {
            if is_named(&found.name) {
                give(table(&shown, schema, found), ctx)?;
            }
            for index in indexes(found).iter().filter(|index| is_named(&index.name)) {
                give(of_index(&shown, schema, found, index), ctx)?;
            }
        }
        for found in schema.views.values().filter(|view| is_named(&view.name)) {
            give(view(&shown, schema, found), ctx)?;
        }
        for found in schema.sequences.values().filter(|sequence| is_named(&sequence.name)) {
            give(sequence(&shown, schema, found), ctx)?;
        }
        for found in schema.types.values().filter(|ty| is_named(&ty.name)) {
            if let Some(row) = composite(schema, found) {
                give(row, ctx)?;
            }
        }
    }
    Ok(())
}

/// Gives the row of an object by its OID.
fn one(shown: &Shown, oid: Oid, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let schema = |stored: &str| shown.snapshot.schemas.get(stored).cloned();
    match shown.object(oid) {
        Some(Object::Table(found)) => match schema(&found.schema) {
            Some(schema) => give(table(shown, &schema, &found), ctx),
            None => Ok(()),
        },
        Some(Object::PrimaryKey(found) | Object::Index(found, _)) => {
            let Some(schema) = schema(&found.schema) else { return Ok(()) };
            let index = indexes(&found)
                .into_iter()
                .find(|index| index.oid == oid)
                .map(|index| of_index(shown, &schema, &found, &index));
            index.map_or(Ok(()), |row| give(row, ctx))
        }
        Some(Object::View(found)) => {
            schema(&found.schema).map_or(Ok(()), |schema| give(view(shown, &schema, &found), ctx))
        }
        Some(Object::Sequence(found)) => {
            schema(&found.schema).map_or(Ok(()), |schema| give(sequence(shown, &schema, &found), ctx))
        }
        Some(Object::Type(found)) => {
            let row = schema(&found.schema).and_then(|schema| composite(&schema, &found));
            row.map_or(Ok(()), |row| give(row, ctx))
        }
        _ => Ok(()),
    }
}

/// Returns the row of a type, if it is a composite type.
fn composite(schema: &Schema, ty: &UserType) -> Option<Row> {
    let attributes = super::attribute::numbered(ty)?.last().map_or(0, |(number, _)| *number);
    let row = ClassRow {
        oid: oids::of_object(ty.id),
        name: &ty.name,
        namespace: schema_oid(schema),
        kind: 'c',
        attributes: attributes as usize,
        row_type: user::oid_of(ty),
        ..ClassRow::PLAIN
    };
    Some(row.row())
}

fn system(relation: &relations::SystemRelation) -> Row {
    let namespace = crate::system::oid_of_schema(relation.table.schema).unwrap_or(0);
    let row = ClassRow {
        oid: relation.oid,
        name: relation.table.name,
        namespace,
        kind: relation.kind,
        am: if relation.kind == 'r' { oids::HEAP } else { 0 },
        is_shared: relation.is_shared,
        has_rules: relation.kind == 'v',
        attributes: relation.columns.len(),
        ..ClassRow::PLAIN
    };
    row.row()
}

fn table(shown: &Shown, schema: &Schema, table: &Arc<Table>) -> Row {
    let options: Vec<String> = table.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let row = ClassRow {
        oid: oids::of_object(table.id),
        name: &table.name,
        namespace: schema_oid(schema),
        owner: shown.owner(&Rights::table(table)),
        rights: shown.rights(&Rights::table(table), 0),
        kind: if table.query.is_some() { 'm' } else { 'r' },
        has_rules: table.query.is_some(),
        is_populated: table.query.as_ref().is_none_or(|query| query.is_populated),
        am: oids::HEAP,
        tuples: table.live.rows().map_or(-1.0, |rows| rows as f32),
        has_index: !indexes(table).is_empty(),
        attributes: columns(table).count(),
        checks: table.checks.len(),
        has_triggers: !table.foreign_keys.is_empty() || is_parent(shown, table),
        is_temporary: table.temporary,
        options: arrays::texts((!options.is_empty()).then_some(options)),
        row_type: row_type::oid_of(row_type::of_table(table)),
        ..ClassRow::PLAIN
    };
    row.row()
}

/// Returns whether foreign keys refer to the table.
fn is_parent(shown: &Shown, table: &Table) -> bool {
    let key = (table.schema.clone(), table.name.clone());
    shown.snapshot.children.get(&key).is_some_and(|children| !children.is_empty())
}

fn of_index(shown: &Shown, schema: &Schema, table: &Table, index: &ShownIndex<'_>) -> Row {
    let row = ClassRow {
        oid: index.oid,
        name: &index.name,
        namespace: schema_oid(schema),
        owner: shown.owner(&Rights::table(table)),
        kind: 'i',
        is_temporary: table.temporary,
        am: if index.terms.is_some() { oids::GIN } else { oids::BTREE },
        tuples: 0.0,
        attributes: index.columns().count(),
        ..ClassRow::PLAIN
    };
    row.row()
}

fn view(shown: &Shown, schema: &Schema, view: &View) -> Row {
    let row = ClassRow {
        oid: oids::of_object(view.id),
        name: &view.name,
        namespace: schema_oid(schema),
        owner: shown.owner(&Rights::view(view)),
        rights: shown.rights(&Rights::view(view), 0),
        kind: 'v',
        has_rules: true,
        is_temporary: view.temporary,
        options: arrays::texts(view.invoker.then(|| vec!["security_invoker=true".to_owned()])),
        attributes: view.columns.len(),
        row_type: row_type::oid_of(row_type::of_view(view)),
        ..ClassRow::PLAIN
    };
    row.row()
}

fn sequence(shown: &Shown, schema: &Schema, sequence: &Sequence) -> Row {
    let row = ClassRow {
        oid: oids::of_object(sequence.id),
        name: &sequence.name,
        namespace: schema_oid(schema),
        owner: shown.owner(&Rights::sequence(sequence)),
        rights: shown.rights(&Rights::sequence(sequence), 0),
        kind: 'S',
        tuples: 1.0,
        attributes: 3,
        is_temporary: sequence.temporary,
        ..ClassRow::PLAIN
    };
    row.row()
}
