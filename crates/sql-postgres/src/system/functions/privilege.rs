//! `has_table_privilege` and its like, `pg_has_role`, `acldefault`.
//!
//! The role, if it is given, comes first; the privileges come last. Objects are given by name or by OID: an OID of none gives NULL.

use datum::Result;
use query::catalog::objects::Object;
use query::catalog::schema_name::SchemaName;
use query::catalog::table::Table;
use query::nodes::context::EvalContext;
use query::nodes::expr::Call;
use query::nodes::keyspace_table;

use crate::error::{PgError, state};
use crate::functions::PgFunction;
use crate::functions::args::{integer, invalid, text};
use crate::functions::rows::{I, S, row, strict};
use crate::functions::state::StateOf as _;
use crate::rights::acl::first_grants;
use crate::rights::needs::SECRET;
use crate::rights::object::Object as Rights;
use crate::rights::privilege::{self, NAMED, ObjectClass, Privileges};
use crate::rights::role::{Facts, PUBLIC, RoleSet, Roles};
use crate::session::facts::FactsOf as _;
use crate::session::name_parts;
use crate::system::view::columns;
use crate::system::{arrays, oids, relations, rights};
use crate::types::io::ObjectKind;
use crate::types::oid::{BOOL, CHAR, INT2, NAME, OID, Oid, TEXT};
use crate::value::Value;

/// The type `aclitem[]`.
const RIGHTS: Oid = 1034;

/// Rows of `pg_proc`, by name.
#[rustfmt::skip]
pub static FUNCTIONS: &[PgFunction] = &[
    row(3943, "acldefault", &[CHAR, OID], 0, RIGHTS, I, true, strict!("acldefault", default_rights, I)),
    row(1922, "has_table_privilege", &[NAME, TEXT, TEXT], 0, BOOL, S, true, strict!("has_table_privilege", on_table, S)),
    row(1923, "has_table_privilege", &[NAME, OID, TEXT], 0, BOOL, S, true, strict!("has_table_privilege", on_table, S)),
    row(1924, "has_table_privilege", &[OID, TEXT, TEXT], 0, BOOL, S, true, strict!("has_table_privilege", on_table, S)),
    row(1925, "has_table_privilege", &[OID, OID, TEXT], 0, BOOL, S, true, strict!("has_table_privilege", on_table, S)),
    row(1926, "has_table_privilege", &[TEXT, TEXT], 0, BOOL, S, true, strict!("has_table_privilege", on_table, S)),
    row(1927, "has_table_privilege", &[OID, TEXT], 0, BOOL, S, true, strict!("has_table_privilege", on_table, S)),
    row(3024, "has_any_column_privilege", &[NAME, TEXT, TEXT], 0, BOOL, S, true, strict!("has_any_column_privilege", on_any_column, S)),
    row(3025, "has_any_column_privilege", &[NAME, OID, TEXT], 0, BOOL, S, true, strict!("has_any_column_privilege", on_any_column, S)),
    row(3026, "has_any_column_privilege", &[OID, TEXT, TEXT], 0, BOOL, S, true, strict!("has_any_column_privilege", on_any_column, S)),
    row(3027, "has_any_column_privilege", &[OID, OID, TEXT], 0, BOOL, S, true, strict!("has_any_column_privilege", on_any_column, S)),
    row(3028, "has_any_column_privilege", &[TEXT, TEXT], 0, BOOL, S, true, strict!("has_any_column_privilege", on_any_column, S)),
    row(3029, "has_any_column_privilege", &[OID, TEXT], 0, BOOL, S, true, strict!("has_any_column_privilege", on_any_column, S)),
    row(2250, "has_database_privilege", &[NAME, TEXT, TEXT], 0, BOOL, S, true, strict!("has_database_privilege", on_database, S)),
    row(2251, "has_database_privilege", &[NAME, OID, TEXT], 0, BOOL, S, true, strict!("has_database_privilege", on_database, S)),
    row(2252, "has_database_privilege", &[OID, TEXT, TEXT], 0, BOOL, S, true, strict!("has_database_privilege", on_database, S)),
    row(2253, "has_database_privilege", &[OID, OID, TEXT], 0, BOOL, S, true, strict!("has_database_privilege", on_database, S)),
    row(2254, "has_database_privilege", &[TEXT, TEXT], 0, BOOL, S, true, strict!("has_database_privilege", on_database, S)),
    row(2255, "has_database_privilege", &[OID, TEXT], 0, BOOL, S, true, strict!("has_database_privilege", on_database, S)),
    row(2268, "has_schema_privilege", &[NAME, TEXT, TEXT], 0, BOOL, S, true, strict!("has_schema_privilege", on_schema, S)),
    row(2269, "has_schema_privilege", &[NAME, OID, TEXT], 0, BOOL, S, true, strict!("has_schema_privilege", on_schema, S)),
    row(2270, "has_schema_privilege", &[OID, TEXT, TEXT], 0, BOOL, S, true, strict!("has_schema_privilege", on_schema, S)),
    row(2271, "has_schema_privilege", &[OID, OID, TEXT], 0, BOOL, S, true, strict!("has_schema_privilege", on_schema, S)),
    row(2272, "has_schema_privilege", &[TEXT, TEXT], 0, BOOL, S, true, strict!("has_schema_privilege", on_schema, S)),
    row(2273, "has_schema_privilege", &[OID, TEXT], 0, BOOL, S, true, strict!("has_schema_privilege", on_schema, S)),
    row(2181, "has_sequence_privilege", &[NAME, TEXT, TEXT], 0, BOOL, S, true, strict!("has_sequence_privilege", on_sequence, S)),
    row(2182, "has_sequence_privilege", &[NAME, OID, TEXT], 0, BOOL, S, true, strict!("has_sequence_privilege", on_sequence, S)),
    row(2183, "has_sequence_privilege", &[OID, TEXT, TEXT], 0, BOOL, S, true, strict!("has_sequence_privilege", on_sequence, S)),
    row(2184, "has_sequence_privilege", &[OID, OID, TEXT], 0, BOOL, S, true, strict!("has_sequence_privilege", on_sequence, S)),
    row(2185, "has_sequence_privilege", &[TEXT, TEXT], 0, BOOL, S, true, strict!("has_sequence_privilege", on_sequence, S)),
    row(2186, "has_sequence_privilege", &[OID, TEXT], 0, BOOL, S, true, strict!("has_sequence_privilege", on_sequence, S)),
    row(3012, "has_column_privilege", &[NAME, TEXT, TEXT, TEXT], 0, BOOL, S, true, strict!("has_column_privilege", on_column, S)),
    row(3013, "has_column_privilege", &[NAME, TEXT, INT2, TEXT], 0, BOOL, S, true, strict!("has_column_privilege", on_column, S)),
    row(3014, "has_column_privilege", &[NAME, OID, TEXT, TEXT], 0, BOOL, S, true, strict!("has_column_privilege", on_column, S)),
    row(3015, "has_column_privilege", &[NAME, OID, INT2, TEXT], 0, BOOL, S, true, strict!("has_column_privilege", on_column, S)),
    row(3016, "has_column_privilege", &[OID, TEXT, TEXT, TEXT], 0, BOOL, S, true, strict!("has_column_privilege", on_column, S)),
    row(3017, "has_column_privilege", &[OID, TEXT, INT2, TEXT], 0, BOOL, S, true, strict!("has_column_privilege", on_column, S)),
    row(3018, "has_column_privilege", &[OID, OID, TEXT, TEXT], 0, BOOL, S, true, strict!("has_column_privilege", on_column, S)),
    row(3019, "has_column_privilege", &[OID, OID, INT2, TEXT], 0, BOOL, S, true, strict!("has_column_privilege", on_column, S)),
    row(3020, "has_column_privilege", &[TEXT, TEXT, TEXT], 0, BOOL, S, true, strict!("has_column_privilege", on_column, S)),
    row(3021, "has_column_privilege", &[TEXT, INT2, TEXT], 0, BOOL, S, true, strict!("has_column_privilege", on_column, S)),
    row(3022, "has_column_privilege", &[OID, TEXT, TEXT], 0, BOOL, S, true, strict!("has_column_privilege", on_column, S)),
    row(3023, "has_column_privilege", &[OID, INT2, TEXT], 0, BOOL, S, true, strict!("has_column_privilege", on_column, S)),
    row(2705, "pg_has_role", &[NAME, NAME, TEXT], 0, BOOL, S, true, strict!("pg_has_role", of_role, S)),
    row(2706, "pg_has_role", &[NAME, OID, TEXT], 0, BOOL, S, true, strict!("pg_has_role", of_role, S)),
    row(2707, "pg_has_role", &[OID, NAME, TEXT], 0, BOOL, S, true, strict!("pg_has_role", of_role, S)),
    row(2708, "pg_has_role", &[OID, OID, TEXT], 0, BOOL, S, true, strict!("pg_has_role", of_role, S)),
    row(2709, "pg_has_role", &[NAME, TEXT], 0, BOOL, S, true, strict!("pg_has_role", of_role, S)),
    row(2710, "pg_has_role", &[OID, TEXT], 0, BOOL, S, true, strict!("pg_has_role", of_role, S)),
];

/// A privilege that a question names, and whether it asks for the right to give it on.
type Asked = Vec<(Privileges, bool)>;

/// Reads a list of privileges: one of them is enough.
fn asked(list: &str, all: Privileges) -> Result<Asked> {
    let mut asked = Vec::new();
    for word in list.split(',') {
        let word = word.trim();
        let upper = word.to_ascii_uppercase();
        let (name, option) = match upper.strip_suffix(" WITH GRANT OPTION") {
            Some(name) => (name, true),
            None => (&*upper, false),
        };
        let name = if name == "TEMP" { "TEMPORARY" } else { name };
        let known = NAMED.iter().find(|(bit, _, known)| *known == name && all & bit != 0);
        let (bit, ..) = known.ok_or_else(|| invalid(format!("unrecognized privilege type: \"{word}\"")))?;
        asked.push((*bit, option));
    }
    Ok(asked)
}

/// Returns the role that a value names or numbers.
fn role_of(value: &Value, roles: Roles<'_>) -> Result<Oid> {
    match value {
        Value::Text(name) if name.as_str() == "public" => Ok(PUBLIC),
        Value::Text(name) => Ok(roles.existing(name)?.oid),
        Value::UInt(oid) => Ok(*oid as Oid),
        Value::Int(oid) => Ok(*oid as Oid),
        _ => Err(invalid("invalid role")),
    }
}

/// The question: the rights of the role, and the other arguments.
struct Question<'v> {
    set: RoleSet,
    arguments: &'v [Value],
}

fn question<'v>(values: &'v [Value], without_role: usize, ctx: &mut EvalContext) -> Result<Option<Question<'v>>> {
    let facts = ctx.facts();
    if values.len() == without_role {
        return Ok(Some(Question { set: facts.identity.set.clone(), arguments: values }));
    }
    let Some(db) = facts.db.clone() else { return Ok(None) };
    let known = Facts { db: &db, snapshot: &facts.definitions, database: &facts.database };
    let role = role_of(&values[0], known.roles())?;
    let set = if role == PUBLIC { RoleSet::default() } else { known.role_set(role) };
    Ok(Some(Question { set, arguments: &values[1..] }))
}

/// Returns the OID of a relation that a value names or numbers.
fn relation_of(value: &Value, ctx: &mut EvalContext) -> Result<Oid> {
    let Value::Text(name) = value else { return Ok(integer(std::slice::from_ref(value), 0)? as Oid) };
    let Some(names) = ctx.state().io.objects.clone() else { return Ok(0) };
    check_schema_of(name, ctx)?;
    match (names.find)(ObjectKind::Relation, name)? {
        Some(oid) => Ok(oid),
        None => {
            let message = format!("relation \"{name}\" does not exist");
            Err(PgError::new(state::UNDEFINED_TABLE, message).into())
        }
    }
}

/// Fails if the current role may not look names up in the schema of a qualified name.
fn check_schema_of(name: &str, ctx: &mut EvalContext) -> Result<()> {
    let parts = name_parts(name)?;
    let [.., schema, _] = &parts[..] else { return Ok(()) };
    let facts = ctx.facts();
    let stored = SchemaName::new(&facts.database, schema).map(|name| name.stored().into_owned());
    let found = stored.and_then(|stored| facts.definitions.schemas.get(&stored));
    match found.map(|found| Rights::schema(found)) {
        Some(of) => Ok(facts.check_any(&of, privilege::USAGE)?),
        None => Ok(()),
    }
}

fn object(oid: Oid, ctx: &mut EvalContext) -> Option<Object> {
    let definitions = ctx.facts().definitions.clone();
    oids::object_of(oid).and_then(|id| definitions.object(id).cloned())
}

fn with_facts<T>(ctx: &mut EvalContext, f: impl FnOnce(&Facts<'_>) -> T) -> Option<T> {
    ctx.facts().with_rights(|facts, _| f(facts))
}

/// Answers whether the role has one of the privileges on an object.
fn answer(set: &RoleSet, of: &Rights, asked: &Asked, ctx: &mut EvalContext) -> Value {
    let has = with_facts(ctx, |facts| {
        let (privileges, options) = (facts.privileges(set, of), facts.options(set, of, 0));
        asked.iter().any(|(bit, option)| if *option { options & bit != 0 } else { privileges & bit != 0 })
    });
    has.map_or(Value::Null, Value::from)
}

/// Answers for a relation of the system: all may read it, unless it is secret.
fn of_system(oid: Oid, set: &RoleSet, asked: &Asked, ctx: &mut EvalContext) -> Option<Value> {
    let relation = relations::by_oid(oid)?;
    if relation.table.is_keyspace() {
        return Some(answer(set, &Rights::table(keyspace_table::table(&relation.table)), asked, ctx));
    }
    let is_secret = SECRET.iter().any(|(name, _)| *name == relation.table.name);
    let reads = asked.iter().any(|(bit, option)| *bit == privilege::SELECT && !option);
    Some(Value::from(set.is_super || reads && !is_secret))
}

fn rights_of(object: &Object) -> Option<Rights> {
    match object {
        Object::Table(table) => Some(Rights::table(table)),
        Object::View(view) => Some(Rights::view(view)),
        Object::Sequence(sequence) => Some(Rights::sequence(sequence)),
        Object::PrimaryKey(table) | Object::Index(table, _) => Some(Rights::table(table)),
        _ => None,
    }
}

fn on_table(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let Some(Question { set, arguments }) = question(values, 2, ctx)? else { return Ok(Value::Null) };
    let oid = relation_of(&arguments[0], ctx)?;
    let asked = asked(text(arguments, 1)?, ObjectClass::Relation.all())?;
    if let Some(answer) = of_system(oid, &set, &asked, ctx) {
        return Ok(answer);
    }
    Ok(match object(oid, ctx).as_ref().and_then(rights_of) {
        Some(of) => answer(&set, &of, &asked, ctx),
        None => Value::Null,
    })
}

/// Answers whether the role has one of the privileges on these columns of a table, by their slots and 1.
fn of_columns(set: &RoleSet, table: &Table, keys: &[u32], asked: &Asked, ctx: &mut EvalContext) -> bool {
    let of = Rights::table(table);
    let has = with_facts(ctx, |facts| {
        keys.iter().any(|key| {
            let (privileges, options) = (facts.column_privileges(set, &of, *key), facts.options(set, &of, *key));
            asked.iter().any(|(bit, option)| if *option { options & bit != 0 } else { privileges & bit != 0 })
        })
    });
    has.unwrap_or(false)
}

fn on_any_column(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let Some(Question { set, arguments }) = question(values, 2, ctx)? else { return Ok(Value::Null) };
    let oid = relation_of(&arguments[0], ctx)?;
    let asked = asked(text(arguments, 1)?, ObjectClass::Column.all())?;
    if let Some(answer) = of_system(oid, &set, &asked, ctx) {
        return Ok(answer);
    }
    let found = object(oid, ctx);
    if let Some(Object::Table(table)) = &found {
        let keys: Vec<u32> = columns(table).map(|(_, column)| column.slot as u32 + 1).collect();
        if of_columns(&set, table, &keys, &asked, ctx) {
            return Ok(Value::TRUE);
        }
    }
    Ok(match found.as_ref().and_then(rights_of) {
        Some(of) => answer(&set, &of, &asked, ctx),
        None => Value::Null,
    })
}

fn on_column(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let Some(Question { set, arguments }) = question(values, 3, ctx)? else { return Ok(Value::Null) };
    let oid = relation_of(&arguments[0], ctx)?;
    let found = object(oid, ctx);
    let names: Vec<(i64, String, Option<u32>)> = match &found {
        Some(Object::Table(table)) => {
            columns(table).map(|(nth, column)| (nth, column.name.clone(), Some(column.slot as u32 + 1))).collect()
        }
        Some(Object::View(view)) => {
            let names = view.columns.iter().enumerate();
            names.map(|(nth, name)| (nth as i64 + 1, name.clone(), None)).collect()
        }
        _ => match relations::by_oid(oid) {
            Some(relation) => {
                relation.served_columns().map(|(nth, column)| (nth, column.name.to_owned(), None)).collect()
            }
            None => return Ok(Value::Null),
        },
    };
    let wanted = match &arguments[1] {
        Value::Text(name) => names.iter().find(|(_, known, _)| known == name.as_str()),
        _ => {
            let number = integer(arguments, 1)?;
            names.iter().find(|(nth, ..)| *nth == number)
        }
    };
    let Some((_, _, key)) = wanted else {
        let Value::Text(name) = &arguments[1] else { return Ok(Value::Null) };
        let relation = found.as_ref().and_then(rights_of).map_or_else(String::new, |of| of.name);
        let message = format!("column \"{name}\" of relation \"{relation}\" does not exist");
        return Err(PgError::new(state::UNDEFINED_COLUMN, message).into());
    };
    let asked = asked(text(arguments, 2)?, ObjectClass::Column.all())?;
    if let Some(answer) = of_system(oid, &set, &asked, ctx) {
        return Ok(answer);
    }
    if let (Some(Object::Table(table)), Some(key)) = (&found, key)
        && of_columns(&set, table, &[*key], &asked, ctx)
    {
        return Ok(Value::TRUE);
    }
    Ok(match found.as_ref().and_then(rights_of) {
        Some(of) => answer(&set, &of, &asked, ctx),
        None => Value::Null,
    })
}

fn on_sequence(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let Some(Question { set, arguments }) = question(values, 2, ctx)? else { return Ok(Value::Null) };
    let oid = relation_of(&arguments[0], ctx)?;
    let asked = asked(text(arguments, 1)?, ObjectClass::Sequence.all())?;
    match object(oid, ctx).as_ref().and_then(rights_of) {
        Some(of) if of.class == ObjectClass::Sequence => Ok(answer(&set, &of, &asked, ctx)),
        Some(of) => {
            let message = format!("\"{}\" is not a sequence", of.name);
            Err(PgError::new(state::WRONG_OBJECT_TYPE, message).into())
        }
        None => Ok(Value::Null),
    }
}

fn on_schema(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let Some(Question { set, arguments }) = question(values, 2, ctx)? else { return Ok(Value::Null) };
    let asked = asked(text(arguments, 1)?, ObjectClass::Schema.all())?;
    let facts = ctx.facts();
    let (database, definitions) = (facts.database.clone(), facts.definitions.clone());
    let schemas = || {
        definitions
            .schemas
            .values()
            .filter(|schema| SchemaName::of_stored(&schema.name).is_some_and(|name| name.database == database))
    };
    let uses = || Value::from(set.is_super || asked.iter().any(|(bit, option)| *bit == privilege::USAGE && !option));
    let found = match &arguments[0] {
        Value::Text(name) if crate::system::is_system(name) => return Ok(uses()),
        Value::Text(name) => {
            let found = schemas().find(|schema| crate::define::names::schema_of(&schema.name) == name.as_str());
            match found {
                Some(found) => found.clone(),
                None => return Err(crate::define::names::missing_schema(name).into()),
            }
        }
        _ => {
            let oid = integer(arguments, 0)? as Oid;
            if [oids::PG_CATALOG, oids::INFORMATION_SCHEMA].contains(&oid) {
                return Ok(uses());
            }
            let found = schemas().find(|schema| crate::system::view::schema_oid(schema) == oid);
            let Some(found) = found else { return Ok(Value::Null) };
            found.clone()
        }
    };
    Ok(answer(&set, &Rights::schema(&found), &asked, ctx))
}

fn on_database(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let Some(Question { set, arguments }) = question(values, 2, ctx)? else { return Ok(Value::Null) };
    let asked = asked(text(arguments, 1)?, ObjectClass::Database.all())?;
    let definitions = ctx.facts().definitions.clone();
    let is_database = |name: &str| SchemaName::of_stored(name).is_some_and(|name| name.schema == "public");
    let found = match &arguments[0] {
        Value::Text(name) => match definitions.schemas.get(name.as_str()).filter(|_| is_database(name)) {
            Some(found) => found,
            None => {
                let message = format!("database \"{name}\" does not exist");
                return Err(PgError::new(state::INVALID_CATALOG_NAME, message).into());
            }
        },
        _ => {
            let oid = integer(arguments, 0)? as Oid;
            let mut all = definitions.schemas.values().filter(|schema| is_database(&schema.name));
            let Some(found) = all.find(|schema| oids::of_object(schema.id) == oid) else { return Ok(Value::Null) };
            found
        }
    };
    Ok(answer(&set, &Rights::database(found), &asked, ctx))
}

fn of_role(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let facts = ctx.facts();
    let Some(db) = facts.db.clone() else { return Ok(Value::Null) };
    let known = Facts { db: &db, snapshot: &facts.definitions, database: &facts.database };
    // "public" is no role here.
    let role = |value: &Value| match value {
        Value::Text(name) => Ok(known.roles().existing(name)?.oid),
        value => role_of(value, known.roles()),
    };
    let (member, arguments) = match values {
        [of, words] => (facts.identity.current, [of, words]),
        [member, of, words] => (role(member)?, [of, words]),
        _ => return Ok(Value::Null),
    };
    let of = role(arguments[0])?;
    let words = text(std::slice::from_ref(arguments[1]), 0)?;
    let mut has = false;
    for word in words.split(',') {
        let word = word.trim();
        let upper = word.to_ascii_uppercase();
        let suffix = [" WITH GRANT OPTION", " WITH ADMIN OPTION"];
        let name = suffix.iter().find_map(|suffix| upper.strip_suffix(suffix));
        has |= match (name.unwrap_or(&upper), name.is_some()) {
            ("USAGE" | "MEMBER" | "SET", true) => known.administers(member, of),
            ("USAGE", false) => known.role_set(member).has(of),
            ("MEMBER", false) => known.role_set(member).is_super || known.reach(member, 0).contains(&of),
            ("SET", false) => known.may_become(member, of),
            _ => return Err(invalid(format!("unrecognized privilege type: \"{word}\""))),
        };
    }
    Ok(Value::from(has))
}

/// The rights that an object of a kind has at first.
fn default_rights(_: &Call, values: &[Value], ctx: &mut EvalContext) -> Result<Value> {
    let facts = ctx.facts();
    let Some(db) = facts.db.clone() else { return Ok(Value::Null) };
    let roles = Roles::seen(&db, &facts.definitions);
    let (kind, owner) = (integer(values, 0)? as u8 as char, integer(values, 1)? as Oid);
    let class = match kind {
        'c' => return Ok(arrays::rights(&[])),
        'r' => ObjectClass::Relation,
        's' => ObjectClass::Sequence,
        'n' => ObjectClass::Schema,
        'd' => ObjectClass::Database,
        'f' => ObjectClass::Function,
        'l' | 'T' => return Ok(used(roles, owner, true)),
        'F' | 'S' => return Ok(used(roles, owner, false)),
        't' => return Ok(one(roles, owner, "C")),
        'L' => return Ok(one(roles, owner, "rw")),
        'p' => return Ok(one(roles, owner, "sA")),
        kind => return Err(invalid(format!("unrecognized object type abbreviation: {kind}"))),
    };
    let grants = first_grants(class, owner, class.of_public());
    Ok(arrays::rights(&grants.iter().map(|grant| rights::item(roles, grant)).collect::<Vec<_>>()))
}

/// Rights of the owner alone.
fn one(roles: Roles<'_>, owner: Oid, letters: &str) -> Value {
    let owner = rights::role_in_item(roles, owner);
    arrays::rights(&[format!("{owner}={letters}/{owner}")])
}

/// USAGE, of everybody too perhaps.
fn used(roles: Roles<'_>, owner: Oid, by_all: bool) -> Value {
    let owner = rights::role_in_item(roles, owner);
    let of_all = by_all.then(|| format!("=U/{owner}"));
    arrays::rights(&of_all.into_iter().chain([format!("{owner}=U/{owner}")]).collect::<Vec<_>>())
}
