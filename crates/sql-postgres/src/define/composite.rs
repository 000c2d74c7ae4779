//! CREATE TYPE AS (...) and ALTER TYPE of attributes.
//!
//! Values carry the names and types of their fields. So a change of attributes writes the tables anew whose columns have values of the type (PS-53). The types of attributes stay as they are while there are such columns; nothing changes while the text
//! of a definition names the type or reads such a column.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datum::value::{RecordField, RecordType};
use datum::{Array, Storage};
use query::catalog::Snapshot;
use query::catalog::table::{Default, Table};
use query::catalog::user_type::{CompositeAttribute, CompositeDefinition, TypeDefinition, UserType};
use query::types::{Type, TypeId};
use syntax::postgres::tree::{AlterAttributeCmd, AlterCompositeStmt, AnyName, AttributeDef, CreateCompositeStmt};

use crate::bind::{self, TableExpression};
use crate::define::alter::{From, missing_column};
use crate::define::names::{find, has_relation};
use crate::error::{PgError, Result, state};
use crate::session::Session;
use crate::types::oid::{self, Oid};
use crate::types::{record, registry, row_type, user};
use crate::value::Value;

/// The most attributes that a type can have had.
const ATTRIBUTES_MAX: usize = 1600;
/// The most composite types within each other.
const LEVELS_MAX: usize = 32;

#[cold]
fn too_many() -> PgError {
    PgError::new(state::TOO_MANY_COLUMNS, format!("tables can have at most {ATTRIBUTES_MAX} columns"))
}

#[cold]
fn too_deep() -> PgError {
    let message = format!("composite types are within each other at most {LEVELS_MAX} times");
    PgError::new(state::PROGRAM_LIMIT_EXCEEDED, message)
}

#[cold]
fn existing_attribute(name: &str, ty: &str) -> PgError {
    PgError::new(state::DUPLICATE_COLUMN, format!("column \"{name}\" of relation \"{ty}\" already exists"))
}

/// Returns the type of a name that should be a composite type's.
fn composite(ty: &UserType) -> Result<&CompositeDefinition> {
    match &ty.definition {
        TypeDefinition::Composite(composite) => Ok(composite),
        _ => Err(PgError::new(state::WRONG_OBJECT_TYPE, format!("\"{}\" is not a composite type", ty.name))),
    }
}

/// Returns the composite type of a field, or that of its elements or behind its domain. `bases` are the types behind domains.
fn within(number: Oid, bases: &BTreeMap<Oid, Oid>) -> Option<Oid> {
    let mut inner = number;
    while !user::is_composite(inner) {
        inner = registry::element_of(inner).map(|element| element.oid).or_else(|| bases.get(&inner).copied())?;
    }
    Some(inner)
}

/// Returns how many composite types lie within each other in values of these types, each of which is counted once.
fn levels(snapshot: &Snapshot, types: impl Iterator<Item = Oid>) -> usize {
    let domains = snapshot.user_types().filter_map(|ty| Some((user::oid_of(ty), user::domain(ty).ok()?)));
    let bases = domains.map(|(ty, domain)| (ty, registry::oid_of(&domain.base))).collect();
    let mut level: BTreeSet<Oid> = types.filter_map(|ty| within(ty, &bases)).collect();
    let mut count = 0;
    // No type is within itself, so the levels end.
    while !level.is_empty() && count <= LEVELS_MAX {
        count += 1;
        let types: Vec<Arc<UserType>> = level.iter().filter_map(|ty| row_type::definition(snapshot, *ty)).collect();
        let fields = types.iter().filter_map(|ty| ty.row()).flat_map(|row| &row.fields);
        level = fields.filter_map(|field| within(field.number, &bases)).collect();
    }
    count
}

/// Fails for a column of a type with too many types within each other.
pub(super) fn check_levels(snapshot: &Snapshot, ty: Oid) -> Result<()> {
    match user::is_of_rows(ty) && levels(snapshot, std::iter::once(ty)) > LEVELS_MAX {
        true => Err(too_deep()),
        false => Ok(()),
    }
}

#[cold]
pub(super) fn member_of_itself(ty: Oid) -> PgError {
    let message = format!("composite type {} cannot be made a member of itself", registry::format_type(ty, None));
    PgError::new(state::INVALID_TABLE_DEFINITION, message)
}

/// The error of a change of a type that would concern the values of a column.
#[cold]
pub(super) fn altered_type_of_column(ty: &UserType, column: &str) -> PgError {
    let message = format!("cannot alter type \"{}\" because column \"{column}\" uses it", ty.name);
    PgError::new(state::FEATURE_NOT_SUPPORTED, message)
}

/// A step of a search for columns by their types.
enum ColumnSearch {
    Found(String),
    /// The users of a type are to be searched.
    Type(Oid),
}

/// A change of a composite type's attributes, as its values follow it.
#[derive(Debug)]
pub(super) struct Reshape {
    /// The new type.
    row: Arc<RecordType>,
    /// For each new attribute its place among the old ones; `None`: it is new.
    from: Vec<Option<usize>>,
}

impl Reshape {
    /// Returns a value with the new attributes, also of rows within it.
    pub fn of(&self, value: &Value) -> datum::Result<Value> {
        Ok(match value {
            Value::Record(old) => {
                let mut values = old.values().iter().map(|value| self.of(value)).collect::<datum::Result<Vec<_>>>()?;
                if old.ty().number != self.row.number {
                    return record::record(old.ty(), values);
                }
                let mut taken = |from: &Option<usize>| from.and_then(|at| values.get_mut(at)).map(std::mem::take);
                let values = self.from.iter().map(|from| taken(from).unwrap_or_default()).collect();
                record::record(&self.row, values)?
            }
            Value::Array(old) if old.element().storage == Storage::Record && !old.is_empty() => {
                let values = old.values().iter().map(|value| self.of(value)).collect::<datum::Result<Vec<_>>>()?;
                Value::Array(Array::new(old.element(), old.dimensions(), values))
            }
            other => other.clone(),
        })
    }
}

/// A definition that is made or changed.
struct CompositeDraft {
    name: String,
    fields: Vec<RecordField>,
    attributes: Vec<CompositeAttribute>,
    last_number: u16,
}

impl CompositeDraft {
    fn of(ty: &UserType, definition: &CompositeDefinition) -> CompositeDraft {
        let CompositeDefinition { row, attributes, last_number } = definition;
        let (fields, attributes) = (row.fields.to_vec(), attributes.clone());
        CompositeDraft { name: ty.name.clone(), fields, attributes, last_number: *last_number }
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| *field.name == *name)
    }

    fn add(&mut self, field: RecordField) -> Result<()> {
        if self.place(&field.name).is_some() {
            return Err(existing_attribute(&field.name, &self.name));
        }
        if usize::from(self.last_number) >= ATTRIBUTES_MAX {
            return Err(too_many());
        }
        self.last_number += 1;
        self.fields.push(field);
        self.attributes.push(CompositeAttribute { number: self.last_number, comment: String::new() });
        Ok(())
    }

    fn settle(self, number: Oid) -> TypeDefinition {
        let CompositeDraft { name: _, fields, attributes, last_number } = self;
        let row = Arc::new(RecordType { number, fields: fields.into() });
        TypeDefinition::Composite(CompositeDefinition { row, attributes, last_number })
    }
}

impl Session {
    /// Returns an attribute as the field of a record.
    fn attribute(&mut self, def: &AttributeDef, text: &str) -> Result<RecordField> {
        let AttributeDef { name, ty, collation } = def;
        let name = &name.value;
        if ty.setof {
            let message = format!("column \"{name}\" cannot be declared SETOF");
            return Err(PgError::new(state::INVALID_TABLE_DEFINITION, message));
        }
        let found = self.with_environment(&[], |environment, ctx| bind::bind_type_name(environment, ctx, text, ty));
        let (number, typmod) = found.map_err(|error| PgError { position: None, ..error })?;
        if matches!(number, oid::RECORD | oid::RECORD_ARRAY) && typmod >= 0 {
            return Err(PgError::unsupported("an attribute of the row type of a table"));
        }
        let row = registry::by_oid(number);
        let Some(row) = row.filter(|row| row.kind.has_values()) else {
            let message = format!("column \"{name}\" has pseudo-type {}", registry::format_type(number, None));
            return Err(PgError::new(state::INVALID_TABLE_DEFINITION, message));
        };
        if let Some(collation) = collation {
            if !row.is_collatable {
                let message = format!("collations are not supported by type {}", registry::format_type(number, None));
                return Err(PgError::new(state::DATATYPE_MISMATCH, message));
            }
            if !matches!(collation.last(), "C" | "POSIX" | "default") {
                return Err(PgError::unsupported(format!("collation \"{}\"", collation.last())));
            }
        }
        Ok(record::field(name, &registry::column_type(number, typmod, true)))
    }

    pub(super) fn create_composite(&mut self, create: &CreateCompositeStmt, text: &str) -> Result<()> {
        let CreateCompositeStmt { name, attributes } = create;
        let name = self.relation_name_of(name)?;
        let schema = self.creation_schema(&name)?;
        self.refuse_temporary_type(&schema)?;
        let catalog = self.catalog.clone();
        self.refuse_taken_type(&catalog, &schema, &name.name)?;
        if attributes.len() > ATTRIBUTES_MAX {
            return Err(too_many());
        }
        let (fields, made) = (Vec::new(), Vec::new());
        let mut draft = CompositeDraft { name: name.name.clone(), fields, attributes: made, last_number: 0 };
        for def in attributes {
            if draft.place(&def.name.value).is_some() {
                let message = format!("column \"{}\" specified more than once", def.name.value);
                return Err(PgError::new(state::DUPLICATE_COLUMN, message));
            }
            let field = self.attribute(def, text)?;
            draft.add(field)?;
        }
        if catalog.schemas.get(&schema).is_some_and(|schema| find(schema, &name.name).is_some()) {
            return Err(PgError::new(state::DUPLICATE_TABLE, format!("relation \"{}\" already exists", name.name)));
        }
        if levels(&catalog, draft.fields.iter().map(|field| field.number)) >= LEVELS_MAX {
            return Err(too_deep());
        }
        let db = self.database().clone();
        let mut writing = self.write(&db)?;
        let id = writing.new_id();
        let [oid, array] = user::composite_oids(id)?;
        let definition = draft.settle(oid);
        let (numbers, name) = (vec![TypeId(oid), TypeId(array)], name.name);
        let (maker, comment) = (crate::MAKER, String::new());
        writing.put_type(UserType { id, maker, schema, name, numbers, comment, definition })?;
        self.finish(writing)
    }

    /// Fails for a new name of a composite type that a relation has.
    pub(super) fn refuse_relation_name(&self, ty: &UserType, schema: &str, to: &str) -> Result<()> {
        let is_taken = self.catalog.schemas.get(schema).is_some_and(|schema| has_relation(schema, to));
        match is_taken && ty.row().is_some() {
            true => Err(PgError::new(state::DUPLICATE_TABLE, format!("relation \"{to}\" already exists"))),
            false => Ok(()),
        }
    }

    /// Returns the composite type that ALTER TYPE changes.
    fn altered_composite(&mut self, name: &AnyName) -> Result<Arc<UserType>> {
        let relation = self.relation_name_of(name)?;
        match self.user_type(name) {
            Ok(Ok(ty)) => composite(&ty).map(|_| ty.clone()),
            Ok(Err(_)) => Err(self.missing_relation(&relation, None)),
            Err(error) if error.state == state::UNDEFINED_OBJECT => match self.relation(&relation)? {
                Some(_) => {
                    let message = format!("\"{}\" is not a composite type", relation.name);
                    Err(PgError::new(state::WRONG_OBJECT_TYPE, message))
                }
                None => Err(self.missing_relation(&relation, None)),
            },
            Err(error) => Err(error),
        }
    }

    pub(super) fn alter_composite(&mut self, alter: &AlterCompositeStmt, text: &str) -> Result<()> {
        let AlterCompositeStmt { name, commands } = alter;
        let ty = self.altered_composite(name)?;
        let mut draft = CompositeDraft::of(&ty, composite(&ty)?);
        // As in PostgreSQL, attributes are dropped first, then changed, then added.
        let order = |command: &&AlterAttributeCmd| match command {
            AlterAttributeCmd::Drop { .. } => 0,
            AlterAttributeCmd::Retype(_) => 1,
            AlterAttributeCmd::Add(_) => 2,
        };
        let mut commands: Vec<&AlterAttributeCmd> = commands.iter().collect();
        commands.sort_by_key(order);
        for command in commands {
            match command {
                AlterAttributeCmd::Drop { name, missing_ok } => match draft.place(&name.value) {
                    Some(at) => {
                        draft.fields.remove(at);
                        draft.attributes.remove(at);
                    }
                    None if *missing_ok => {
                        let error = missing_column(&name.value, &ty.name);
                        self.skip_notice(super::SUCCESSFUL, error.message + ", skipping");
                    }
                    None => return Err(missing_column(&name.value, &ty.name)),
                },
                AlterAttributeCmd::Retype(def) => {
                    let at = draft.place(&def.name.value);
                    let at = at.ok_or_else(|| missing_column(&def.name.value, &ty.name))?;
                    draft.fields[at] = self.member(&ty, def, text)?;
                }
                AlterAttributeCmd::Add(def) => {
                    if draft.place(&def.name.value).is_some() {
                        return Err(existing_attribute(&def.name.value, &ty.name));
                    }
                    let field = self.member(&ty, def, text)?;
                    draft.add(field)?;
                }
            }
        }
        self.put_attributes(&ty, draft)
    }

    /// Returns an attribute of a type that is there. Fails if the type would be within itself.
    fn member(&mut self, ty: &UserType, def: &AttributeDef, text: &str) -> Result<RecordField> {
        let field = self.attribute(def, text)?;
        if self.catalog.types_containing(&ty.numbers).contains(&TypeId(field.number)) {
            return Err(member_of_itself(user::oid_of(ty)));
        }
        Ok(field)
    }

    /// Stores the changed attributes of a type that nothing uses but other types.
    fn put_attributes(&mut self, ty: &Arc<UserType>, draft: CompositeDraft) -> Result<()> {
        let known = composite(ty)?;
        if *known.row.fields == *draft.fields {
            return Ok(());
        }
        let place = |number: u16| known.attributes.iter().position(|known| known.number == number);
        let from: Vec<Option<usize>> = draft.attributes.iter().map(|attribute| place(attribute.number)).collect();
        let is_retyped = draft.fields.iter().zip(&from).any(|(field, from)| {
            let old = from.map(|from| &known.row.fields[from]);
            old.is_some_and(|old| (old.number, old.length) != (field.number, field.length))
        });
        if is_retyped && let Some(column) = self.column_with_type(user::oid_of(ty)) {
            return Err(altered_type_of_column(ty, &column));
        }
        self.refuse_texts_of(ty, "ALTER")?;
        let tables = self.tables_with(ty)?;
        let above = self.catalog.user_types_over(ty);
        let tops = above.iter().map(|over| levels(&self.catalog, std::iter::once(user::oid_of(over))));
        let own = levels(&self.catalog, std::iter::once(user::oid_of(ty)));
        let over = tops.max().unwrap_or(own).saturating_sub(own);
        if over + 1 + levels(&self.catalog, draft.fields.iter().map(|field| field.number)) > LEVELS_MAX {
            return Err(too_deep());
        }
        let definition = draft.settle(user::oid_of(ty));
        let db = self.database().clone();
        let mut writing = self.write(&db)?;
        let changed = writing.put_type(UserType { definition, ..(**ty).clone() })?;
        self.finish(writing)?;
        let Some(row) = changed.row().cloned() else { return Ok(()) };
        let reshape = Arc::new(Reshape { row, from });
        for (table, columns) in tables {
            let reshape = reshape.clone();
            self.change_table(&table, |_, draft, _| {
                for at in columns {
                    draft.from[at] = From::Reshaped(at, reshape.clone());
                    let column = &mut draft.new.columns[at];
                    column.initial = reshape.of(&column.initial)?;
                    if let Default::Value(value) = &column.default {
                        column.default = Default::Value(reshape.of(value)?);
                    }
                }
                draft.rebuild = true;
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Returns the tables that have columns of a type, or of one that is over it, with these columns. Fails if the text of a definition reads one.
    fn tables_with(&mut self, ty: &UserType) -> Result<Vec<(Arc<Table>, Vec<usize>)>> {
        let family = self.catalog.user_types_over(ty);
        let shown = registry::format_type(user::oid_of(ty), None);
        let refused =
            |object: &str| PgError::unsupported(format!("ALTER of type {shown}, whose values {object} reads,"));
        // The texts of domains over the type read its fields, or are its values.
        let has_texts = |over: &&Arc<UserType>| {
            user::domain(over).is_ok_and(|domain| !domain.checks.is_empty() || domain.default.is_some())
        };
        if let Some(domain) = family.iter().find(has_texts) {
            return Err(refused(&format!("type {}", registry::format_type(user::oid_of(domain), None))));
        }
        let views = self.views_of_database();
        let containing = self.catalog.types_containing(&ty.numbers);
        let mut found = Vec::new();
        for table in self.tables_of_database() {
            let columns = table.columns.iter().enumerate();
            let columns: Vec<usize> =
                columns.filter(|(_, column)| containing.contains(&column.ty.id)).map(|(at, _)| at).collect();
            if columns.is_empty() {
                continue;
            }
            let name = self.shown_relation(&table.schema, &table.name);
            if table.maker != crate::MAKER || table.query.is_some() {
                return Err(refused(&format!("materialized view {name}")));
            }
            let reads = |read: Vec<usize>| read.iter().any(|at| columns.contains(at));
            for (at, column) in table.columns.iter().enumerate() {
                let is_read = match &column.generated {
                    Some(generated) => {
                        reads(self.read_by(&table, &generated.text, TableExpression::Generated, Some(at)).0)
                    }
                    None => columns.contains(&at) && matches!(column.default, Default::Expression(_)),
                };
                if is_read {
                    let what = if column.is_hidden() { "an index" } else { "an expression" };
                    return Err(refused(&format!("{what} of table {name}")));
                }
            }
            for check in &table.checks {
                if reads(self.read_by(&table, &check.text, TableExpression::Check, None).0) {
                    return Err(refused(&format!("constraint {} on table {name}", check.name)));
                }
            }
            if table.foreign_keys.iter().any(|key| reads(key.columns.clone())) {
                return Err(refused(&format!("a foreign key of table {name}")));
            }
            for view in &views {
                if columns.iter().any(|at| self.reads_column(view, &table, &table.columns[*at].name)) {
                    return Err(refused(&self.shown_view(view)));
                }
            }
            found.push((table, columns));
        }
        Ok(found)
    }

    /// Returns the types with attributes of a type, those of rows among them, and the domains over it, older ones first.
    pub(super) fn types_over(&self, number: Oid) -> Vec<Arc<UserType>> {
        let is_it = |over: &&Arc<UserType>| match &over.definition {
            TypeDefinition::Domain(domain) => domain.base.id.0 == number,
            TypeDefinition::Composite(composite) => composite.row.fields.iter().any(|field| field.number == number),
            TypeDefinition::Enumeration(_) => false,
        };
        let mut over: Vec<Arc<UserType>> = self.catalog.user_types().filter(is_it).cloned().collect();
        for schema in self.catalog.schemas.values() {
            let has_type = |ty: &Type| ty.id.0 == number;
            let tables = schema.tables.values();
            let tables = tables.filter(|table| table.columns.iter().any(|column| has_type(&column.ty)));
            over.extend(tables.filter_map(|table| row_type::of_table(table)));
            let views = schema.views.values().filter(|view| view.types.iter().any(has_type));
            over.extend(views.filter_map(|view| row_type::of_view(view)));
        }
        over.sort_by_key(|over| over.id);
        over
    }

    /// Returns the column that PostgreSQL finds first whose values are of a type or contain such values: those of arrays, then of older tables and types.
    pub(super) fn column_with_type(&mut self, number: Oid) -> Option<String> {
        let mut tables = self.tables_of_database();
        tables.sort_by_key(|table| table.id);
        let (mut open, mut seen) = (vec![ColumnSearch::Type(number)], BTreeSet::new());
        while let Some(next) = open.pop() {
            let number = match next {
                ColumnSearch::Found(column) => return Some(column),
                ColumnSearch::Type(number) => number,
            };
            if !seen.insert(number) {
                continue;
            }
            let mut users: Vec<(u64, ColumnSearch)> = Vec::new();
            for table in &tables {
                let mut columns = table.columns.iter().filter(|column| !column.is_hidden());
                if let Some(column) = columns.find(|column| column.ty.id.0 == number) {
                    users.push((table.id, ColumnSearch::Found(format!("{}.{}", table.name, column.name))));
                }
            }
            let over = self.types_over(number);
            users.extend(over.iter().map(|over| (over.id, ColumnSearch::Type(user::oid_of(over)))));
            users.sort_by_key(|(id, _)| std::cmp::Reverse(*id));
            open.extend(users.into_iter().map(|(_, user)| user));
            open.extend(registry::array_of(number).map(ColumnSearch::Type));
        }
        None
    }

    pub(super) fn rename_attribute(&mut self, name: &AnyName, from: &str, to: &str) -> Result<()> {
        let ty = self.altered_composite(name)?;
        let mut draft = CompositeDraft::of(&ty, composite(&ty)?);
        let Some(at) = draft.place(from) else {
            return Err(PgError::new(state::UNDEFINED_COLUMN, format!("column \"{from}\" does not exist")));
        };
        if draft.place(to).is_some() {
            return Err(existing_attribute(to, &ty.name));
        }
        draft.fields[at].name = to.into();
        self.put_attributes(&ty, draft)
    }

    /// Drops an attribute whose type is dropped.
    pub(super) fn drop_attribute(&mut self, ty: &UserType, name: &str) -> Result<()> {
        let Some(ty) = self.catalog.user_type(&ty.schema, &ty.name).cloned() else { return Ok(()) };
        let mut draft = CompositeDraft::of(&ty, composite(&ty)?);
        if let Some(at) = draft.place(name) {
            draft.fields.remove(at);
            draft.attributes.remove(at);
        }
        self.put_attributes(&ty, draft)
    }

    /// COMMENT ON COLUMN of a composite type. `false`: the name is not one's.
    pub(super) fn comment_on_attribute(&mut self, name: &AnyName, attribute: &str, comment: &str) -> Result<bool> {
        let Ok(Ok(ty)) = self.user_type(name) else { return Ok(false) };
        let TypeDefinition::Composite(mut definition) = ty.definition.clone() else { return Ok(false) };
        let place = definition.row.fields.iter().position(|field| *field.name == *attribute);
        let at = place.ok_or_else(|| missing_column(attribute, &ty.name))?;
        comment.clone_into(&mut definition.attributes[at].comment);
        let db = self.database().clone();
        let mut writing = self.write(&db)?;
        writing.put_type(UserType { definition: TypeDefinition::Composite(definition), ..(*ty).clone() })?;
        self.finish(writing)?;
        Ok(true)
    }
}
