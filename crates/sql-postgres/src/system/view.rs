//! The definitions that a computed table shows: those of the session's database, as PostgreSQL numbers and names them.

use std::sync::Arc;

use datum::Result;
use query::catalog::default_access::{DefaultAccess, DefaultAccessKey};
use query::catalog::foreign_key::Deferral;
use query::catalog::objects::Object;
use query::catalog::schema_name::SchemaName;
use query::catalog::table::{Check, Default, Index, Part, Table, TableColumn};
use query::catalog::user_type::{DomainCheck, UserType};
use query::catalog::view::View;
use query::catalog::{Schema, Snapshot};
use query::nodes::context::EvalContext;
use query::nodes::term_test::TermForm;

use crate::bind::domain::{VALUE, value_table};
use crate::define::hidden_column::is_call;
use crate::define::names::{Relation, primary_name, schema_of, schema_shown};
use crate::deparse::{self, ExpressionPlace, Style};
use crate::functions::state::StateOf as _;
use crate::instance::database::Database;
use crate::rights::role::Facts;
use crate::session::facts::FactsOf as _;
use crate::session::quoted;
use crate::session::roles::Identity;
use crate::system::oids;
use crate::system::operator_class::GinClass;
use crate::types::oid::Oid;
use crate::types::{foreign, oid, registry, user};
use crate::value::Value;

/// The definitions of one database.
pub struct Shown {
    pub snapshot: Arc<Snapshot>,
    pub database: String,
    pub db: Arc<Database>,
    pub identity: Arc<Identity>,
}

impl Shown {
    pub fn of(ctx: &mut EvalContext) -> Option<Shown> {
        let facts = ctx.facts();
        let snapshot = facts.definitions.clone();
        let (db, identity) = (facts.db.clone()?, facts.identity.clone());
        Some(Shown { snapshot, database: facts.database.clone(), db, identity })
    }

    /// Returns the facts by which rights are decided.
    pub fn facts(&self) -> Facts<'_> {
        Facts { db: &self.db, snapshot: &self.snapshot, database: &self.database }
    }

    /// Returns the schemas of the database with their PostgreSQL names.
    pub fn schemas(&self) -> impl Iterator<Item = (&str, &Arc<Schema>)> {
        self.snapshot.schemas.values().filter_map(|schema| {
            let name = SchemaName::of_stored(&schema.name)?;
            (name.database == self.database).then_some((name.schema, schema))
        })
    }

    /// Returns the object of an OID, if it is one of this database.
    pub fn object(&self, oid: Oid) -> Option<Object> {
        let object = self.snapshot.object(oids::object_of(oid)?)?.clone();
        let schema = match &object {
            Object::Schema(schema) => &schema.name,
            Object::View(view) => &view.schema,
            Object::Sequence(sequence) => &sequence.schema,
            Object::Type(ty) | Object::DomainCheck(ty, _) => &ty.schema,
            Object::Table(table)
            | Object::PrimaryKey(table)
            | Object::Index(table, _)
            | Object::Check(table, _)
            | Object::ForeignKey(table, _) => &table.schema,
        };
        (SchemaName::of_stored(schema)?.database == self.database).then_some(object)
    }

    /// Returns the privileges of objects that roles make in the database, in the order of the records' numbers. Those of a role that another door has dropped are none.
    pub fn default_access(&self) -> Vec<(&DefaultAccessKey, &Arc<DefaultAccess>)> {
        let database = self.snapshot.schemas.get(&self.database).map_or(0, |schema| schema.id);
        let is_shown =
            |key: &DefaultAccessKey| key.database == database && self.facts().roles().by_oid(key.role).is_some();
        let mut found: Vec<_> = self.snapshot.default_access.iter().filter(|(key, _)| is_shown(key)).collect();
        found.sort_unstable_by_key(|(_, record)| record.id);
        found
    }

    /// Returns the OID of the schema of a record of default privileges; 0: every schema.
    pub fn schema_of_default(&self, key: &DefaultAccessKey) -> Oid {
        let schema = self.snapshot.schemas.values().find(|schema| schema.id == key.schema && key.schema != 0);
        schema.map_or(0, |schema| schema_oid(schema))
    }

    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.schemas().flat_map(|(_, schema)| schema.tables.values())
    }

    /// Returns the OID of a schema, by its stored name.
    pub fn schema_oid(&self, stored: &str) -> Oid {
        match self.snapshot.schemas.get(stored) {
            Some(schema) => schema_oid(schema),
            None => 0,
        }
    }
}

/// Returns PostgreSQL's name of a stored schema.
pub fn schema_name(stored: &str) -> &str {
    schema_of(stored)
}

pub fn schema_oid(schema: &Schema) -> Oid {
    match schema_of(&schema.name) {
        "public" => oids::PUBLIC,
        _ => oids::of_object(schema.id),
    }
}

/// The OID and the modifier of a column's type; those of text for a type that has no PostgreSQL form.
pub fn type_of(column: &TableColumn) -> (Oid, i32) {
    match foreign::is_foreign(&column.ty) {
        true => foreign::type_of(&column.ty).map_or((oid::TEXT, -1), |foreign| (foreign.oid, foreign.typmod)),
        false => (registry::oid_of(&column.ty), registry::typmod_of(&column.ty)),
    }
}

pub fn type_name(column: &TableColumn) -> String {
    let (oid, typmod) = type_of(column);
    registry::format_type(oid, Some(typmod))
}

/// Returns whether a column has a default, or is generated.
pub fn has_default(column: &TableColumn) -> bool {
    column.generated.is_some()
        || !matches!(column.default, Default::None | Default::Dropped | Default::Value(Value::Null))
}

/// Returns a column's default as its definition has it; `None` without one.
fn default_source(column: &TableColumn, ctx: &mut EvalContext) -> Option<String> {
    if let Some(generated) = &column.generated {
        return Some(generated.text.clone());
    }
    match &column.default {
        Default::None | Default::Dropped | Default::Value(Value::Null) => None,
        Default::Expression(text) => Some(text.clone()),
        Default::Now(_) => Some("CURRENT_TIMESTAMP".to_owned()),
        Default::Value(value) => Some(constant_text(value, column, ctx)),
    }
}

/// Returns a constant default as SQL: as it was written, as far as the value tells.
pub fn constant_text(value: &Value, column: &TableColumn, ctx: &mut EvalContext) -> String {
    let (oid, _) = type_of(column);
    let text = (crate::types::assignment::ASSIGNMENT.text)(value, &column.ty, ctx);
    let is_number = !text.starts_with('-') && text.starts_with(|c: char| c.is_ascii_digit());
    match oid {
        oid::NUMERIC if is_number && text.contains('.') => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        oid::NUMERIC | oid::INT2 | oid::INT4 | oid::INT8 if is_number => text,
        oid::INT2 | oid::INT4 | oid::INT8 if text.starts_with('-') => format!("'{text}'::integer"),
        oid::BOOL => if text == "t" { "true" } else { "false" }.to_owned(),
        _ => format!("{}::{}", crate::deparse::literal(&text), ctx.state().io.format_type(oid, Some(-1))),
    }
}

/// Returns a column's default as SQL of the reader's `search_path`; `None` without one.
pub fn default_text(table: &Table, column: &TableColumn, ctx: &mut EvalContext) -> Option<String> {
    let source = default_source(column, ctx)?;
    if table.maker != crate::MAKER || matches!(column.default, Default::Value(_)) {
        return Some(source);
    }
    let (ty, typmod) = type_of(column);
    let place = ExpressionPlace::Column { ty, typmod };
    Some(deparse::expression(table, &source, place, Style::PLAIN, ctx).unwrap_or(source))
}

/// Returns an expression of a table's definition as a catalog keeps it: its type, modifier and text.
pub fn node_tree((ty, typmod): (Oid, i32), text: &str) -> String {
    format!("{{{ty} {typmod}}}{text}")
}

/// Returns a column's default as `pg_attrdef` keeps it.
pub fn default_tree(column: &TableColumn, ctx: &mut EvalContext) -> Option<String> {
    Some(node_tree(type_of(column), &default_source(column, ctx)?))
}

/// Returns the text of a kept expression over a table.
pub fn tree_text(table: &Table, tree: &str, style: Style, ctx: &mut EvalContext) -> Result<String> {
    if let Some(texts) = list_text(table, tree, style, ctx) {
        return Ok(texts);
    }
    let parts = tree.strip_prefix('{').and_then(|rest| rest.split_once('}'));
    let Some((head, text)) = parts else { return Ok(tree.to_owned()) };
    let ty = head.split_once(' ').and_then(|(ty, typmod)| Some((ty.parse().ok()?, typmod.parse().ok()?)));
    let place = match ty {
        Some((oid::BOOL, -1)) => ExpressionPlace::Check,
        Some((ty, typmod)) => ExpressionPlace::Column { ty, typmod },
        None => ExpressionPlace::Plain,
    };
    if table.maker != crate::MAKER {
        return Ok(text.to_owned());
    }
    Ok(deparse::expression(table, text, place, style, ctx).unwrap_or_else(|_| text.to_owned()))
}

/// Returns the columns that users see with their numbers, from 1.
pub fn columns(table: &Table) -> impl Iterator<Item = (i64, &TableColumn)> {
    table.columns.iter().filter(|column| !column.is_hidden()).enumerate().map(|(nth, column)| (nth as i64 + 1, column))
}

/// Returns the number of a column, from 1; that of a hidden one is 0.
pub fn number_of(table: &Table, at: usize) -> i64 {
    if table.columns[at].is_hidden() {
        return 0;
    }
    table.columns[..=at].iter().filter(|column| !column.is_hidden()).count() as i64
}

/// Returns the text of a view's query as `pg_views` shows it. A query that cannot be shown otherwise is shown as it was written.
pub fn view_text(view: &View, style: Style, ctx: &mut EvalContext) -> Result<String> {
    if view.maker == crate::MAKER
        && let Ok(text) = deparse::view(view, style, ctx)
    {
        return Ok(text + ";");
    }
    Ok(format!(" {};", view.text))
}

/// Returns the condition of a check as SQL.
pub fn check_text(table: &Table, check: &Check, style: Style, ctx: &mut EvalContext) -> Result<String> {
    tree_text(table, &check_tree(check), style, ctx)
}

/// Returns the condition of a check as `pg_constraint` keeps it.
pub fn check_tree(check: &Check) -> String {
    node_tree((oid::BOOL, -1), &check.text)
}

/// Returns the condition of a check of a domain as SQL.
pub fn domain_check_text(ty: &UserType, check: &DomainCheck, style: Style, ctx: &mut EvalContext) -> Result<String> {
    let over = value_table(&ty.schema, VALUE, user::domain(ty)?);
    tree_text(&over, &node_tree((oid::BOOL, -1), &check.text), style, ctx)
}

/// Returns the default of a domain as SQL; `None` without one.
pub fn domain_default_text(ty: &UserType, ctx: &mut EvalContext) -> Option<String> {
    let domain = user::domain(ty).ok()?;
    let text = domain.default.as_ref()?;
    let over = value_table(&ty.schema, &ty.name, domain);
    let (ty, typmod) = type_of(&over.columns[0]);
    let place = ExpressionPlace::Column { ty, typmod };
    Some(deparse::expression(&over, text, place, Style::PLAIN, ctx).unwrap_or_else(|_| text.clone()))
}

/// Returns the numbers of the columns that a check reads, in order.
pub fn columns_of_check(table: &Table, check: &Check, ctx: &mut EvalContext) -> Vec<i64> {
    columns_read(table, &check.text, ctx)
}

/// Returns the numbers of the columns that an expression of a table's definition reads.
pub fn columns_read(table: &Table, text: &str, ctx: &mut EvalContext) -> Vec<i64> {
    if table.maker != crate::MAKER {
        return Vec::new();
    }
    let columns = deparse::columns_of(table, text, ctx).unwrap_or_default();
    columns.into_iter().map(|at| number_of(table, at)).collect()
}

/// Returns the OIDs of the sequences whose values a column's default takes.
pub fn sequences_in(shown: &Shown, column: &TableColumn) -> Vec<Oid> {
    let Default::Expression(text) = &column.default else { return Vec::new() };
    let names = text.split("nextval('").skip(1).filter_map(|rest| rest.split_once('\''));
    let found = names.filter_map(|(name, _)| {
        let (schema, name) = name.rsplit_once('.').unwrap_or(("public", name));
        let stored = SchemaName::new(&shown.database, schema.trim_matches('"'))?.stored().into_owned();
        let sequence = shown.snapshot.schemas.get(&stored)?.sequences.get(name.trim_matches('"'))?;
        Some(oids::of_object(sequence.id))
    });
    found.collect()
}

/// Returns the relations that a view reads, and the columns of each; column 0 is the relation as a whole.
pub fn relations_of_view(shown: &Shown, view: &View, ctx: &mut EvalContext) -> Vec<(Oid, i64)> {
    if view.maker != crate::MAKER {
        return Vec::new();
    }
    let mut all = Vec::new();
    for (schema, name, columns) in deparse::relations_of(view, ctx).unwrap_or_default() {
        let stored = SchemaName::new(&shown.database, &schema).map(|name| name.stored().into_owned());
        let found = stored.and_then(|stored| shown.snapshot.schemas.get(&stored));
        let oid = found.and_then(|schema| match crate::define::names::find(schema, &name)? {
            Relation::Table(table) => Some(oids::of_object(table.id)),
            Relation::View(view) => Some(oids::of_object(view.id)),
            _ => None,
        });
        if let Some(oid) = oid {
            all.push((oid, 0));
            all.extend(columns.into_iter().map(|column| (oid, column as i64 + 1)));
        }
    }
    all
}

/// Returns the type of a column of a view or of a system's relation.
pub fn type_of_view_column(ty: &query::types::Type) -> (Oid, i32) {
    type_of(&TableColumn::new(String::new(), ty.clone(), 0))
}

/// Returns the indexes of a table: (OID, name, parts, unique, of the primary key, of a constraint).
pub fn indexes(table: &Table) -> Vec<ShownIndex<'_>> {
    let primary = table.primary.as_ref().map(|parts| ShownIndex {
        oid: oids::of_object(table.primary_id),
        name: primary_name(table),
        parts,
        terms: None,
        is_unique: true,
        is_primary: true,
        is_constraint: true,
        included: &[],
        predicate: None,
        nulls_equal: false,
        deferral: Deferral::Never,
    });
    let others = table.indexes.iter().filter(|index| crate::define::is_shown(index)).map(|index: &Index| ShownIndex {
        oid: oids::of_object(index.id),
        name: index.name.clone(),
        parts: &index.parts,
        terms: index.terms,
        is_unique: index.tells_apart(),
        is_primary: index.is_primary,
        is_constraint: index.is_constraint,
        included: &index.included,
        predicate: index.predicate,
        nulls_equal: index.nulls_equal,
        deferral: index.deferral,
    });
    primary.into_iter().chain(others).collect()
}

pub struct ShownIndex<'t> {
    pub oid: Oid,
    pub name: String,
    pub parts: &'t [Part],
    pub terms: Option<TermForm>,
    pub is_unique: bool,
    pub is_primary: bool,
    pub is_constraint: bool,
    pub included: &'t [usize],
    pub predicate: Option<usize>,
    pub nulls_equal: bool,
    pub deferral: Deferral,
}

/// Returns the expression of an index's column as SQL, with the parentheses that it needs there.
fn expression_text(table: &Table, text: &str, style: Style, ctx: &mut EvalContext) -> String {
    let place = ExpressionPlace::Plain;
    let shown = deparse::expression(table, text, place, style, ctx).unwrap_or_else(|_| text.to_owned());
    if is_call(text) { shown } else { format!("({shown})") }
}

impl ShownIndex<'_> {
    /// Returns the OID of the constraint that the index is of: an OID of another catalog.
    pub fn constraint_oid(&self) -> Oid {
        self.oid
    }

    /// Returns the columns of the key and the included ones.
    pub fn columns(&self) -> impl Iterator<Item = usize> {
        self.parts.iter().map(|part| part.column).chain(self.included.iter().copied())
    }

    /// Returns a column as SQL, without its order.
    pub fn column_text(&self, table: &Table, at: usize, style: Style, ctx: &mut EvalContext) -> String {
        match table.expression_of(at) {
            Some(text) => expression_text(table, text, style, ctx),
            None => quoted(&table.columns[at].name),
        }
    }

    /// Returns the parts as SQL.
    fn parts_text(&self, table: &Table, style: Style, ctx: &mut EvalContext) -> String {
        let part = |part: &Part| {
            let mut text = self.column_text(table, part.column, style, ctx);
            if let Some(class) = self.terms.map(GinClass::of) {
                if !class.is_default {
                    text.extend([" ", class.name]);
                }
                return text;
            }
            match (part.order.descending, part.order.nulls_first) {
                (false, true) => text.push_str(" NULLS FIRST"),
                (true, true) => text.push_str(" DESC"),
                (true, false) => text.push_str(" DESC NULLS LAST"),
                (false, false) => {}
            }
            text
        };
        self.parts.iter().map(part).collect::<Vec<_>>().join(", ")
    }

    /// Returns ` INCLUDE (...)`, if there are such columns.
    pub fn included_text(&self, table: &Table) -> String {
        if self.included.is_empty() {
            return String::new();
        }
        let names: Vec<String> = self.included.iter().map(|at| quoted(&table.columns[*at].name)).collect();
        format!(" INCLUDE ({})", names.join(", "))
    }

    /// Returns the expressions among the columns, as `pg_index` keeps them.
    pub fn expression_trees(&self, table: &Table) -> Option<String> {
        let texts: Vec<&str> = self.columns().filter_map(|at| table.expression_of(at)).collect();
        let items = texts.iter().map(|text| format!("{{{}}}{text}", text.len()));
        (!texts.is_empty()).then(|| format!("({})", items.collect::<String>()))
    }

    /// Returns the predicate, as `pg_index` keeps it.
    pub fn predicate_tree(&self, table: &Table) -> Option<String> {
        self.predicate.and_then(|at| table.expression_of(at)).map(|text| node_tree((oid::BOOL, -1), text))
    }

    /// Returns the statement that makes the index.
    pub fn definition(&self, table: &Table, ctx: &mut EvalContext) -> Result<String> {
        let schema = schema_shown(&ctx.facts().definitions, schema_of(&table.schema));
        let name = format!("{}.{}", quoted(schema), quoted(&table.name));
        self.definition_on(table, &name, Style::PLAIN, ctx)
    }

    /// Returns the statement that makes the index on a table of that name.
    pub fn definition_on(&self, table: &Table, name: &str, style: Style, ctx: &mut EvalContext) -> Result<String> {
        let unique = if self.is_unique { "UNIQUE " } else { "" };
        let parts = self.parts_text(table, style, ctx);
        let method = if self.terms.is_some() { "gin" } else { "btree" };
        let mut text = format!("CREATE {unique}INDEX {} ON {name} USING {method} ({parts})", quoted(&self.name));
        text.push_str(&self.included_text(table));
        if self.nulls_equal {
            text.push_str(" NULLS NOT DISTINCT");
        }
        if let Some(tree) = self.predicate_tree(table) {
            text.push_str(" WHERE ");
            text.push_str(&tree_text(table, &tree, style, ctx)?);
        }
        Ok(text)
    }
}

/// Returns the texts of a list of kept expressions over a table.
fn list_text(table: &Table, list: &str, style: Style, ctx: &mut EvalContext) -> Option<String> {
    let (mut rest, mut texts) = (list.strip_prefix('(')?.strip_suffix(')')?, Vec::new());
    while !rest.is_empty() {
        let (length, behind) = rest.strip_prefix('{')?.split_once('}')?;
        let (text, next) = behind.split_at_checked(length.parse().ok()?)?;
        let shown = deparse::expression(table, text, ExpressionPlace::Plain, style, ctx);
        texts.push(shown.unwrap_or_else(|_| text.to_owned()));
        rest = next;
    }
    Some(texts.join(", "))
}
