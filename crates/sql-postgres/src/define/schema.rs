//! CREATE and DROP of schemas and databases.

use std::sync::Arc;
use std::time::{Duration, Instant};

use query::catalog::schema_name::SchemaName;
use stdx::wait;
use syntax::postgres::tree::{CreateSchemaStmt, CreatedbStmt, DefArg, DropdbStmt, RangeVar, RawStatement, Statement};

use crate::define::drop::{Dependence, Gone};
use crate::define::materialized::kind_of;
use crate::define::names::schema_of;
use crate::define::owner::NewObject;
use crate::error::{PgError, Result, state};
use crate::instance::handle::Kill;
use crate::rights::object::Object;
use crate::rights::privilege::CREATE;
use crate::rights::role::Role;
use crate::session::facts::FactsOf as _;
use crate::session::{Session, quoted};
use crate::settings::values::Scope;

/// Beginnings of names that PostgreSQL keeps for itself.
const RESERVED: &str = "pg_";

/// How long DROP DATABASE waits for sessions to leave: as long as PostgreSQL does.
const DEPARTURE_PATIENCE: Duration = Duration::from_secs(5);
const DEPARTURE_SLICE: Duration = Duration::from_millis(20);

/// Returns an element of CREATE SCHEMA with the name of the schema, and its place in the order of execution.
fn element_within(schema: &str, element: &Statement) -> Result<(u8, Statement)> {
    let mut element = element.clone();
    let (order, named) = match &mut element {
        Statement::CreateSequence(create) => (0, Some(&mut create.sequence)),
        Statement::CreateTable(create) => (1, Some(&mut create.relation)),
        Statement::CreateView(create) => (2, Some(&mut create.view)),
        Statement::CreateIndex(create) => (3, Some(&mut create.relation)),
        _ => (4, None),
    };
    if let Some(RangeVar { schema: named, .. }) = named {
        match named {
            Some(other) if other != schema => {
                let message =
                    format!("CREATE specifies a schema ({other}) different from the one being created ({schema})");
                return Err(PgError::new(state::INVALID_SCHEMA_DEFINITION, message));
            }
            _ => *named = Some(schema.to_owned()),
        }
    }
    Ok((order, element))
}

static DEPARTURE: wait::Reason = wait::Reason::bounded("drop_database");

impl Session {
    pub(super) fn create_schema(
        &mut self,
        create: &CreateSchemaStmt,
        raw: &RawStatement,
        text: &Arc<str>,
    ) -> Result<()> {
        let CreateSchemaStmt { name, role, if_not_exists, elements } = create;
        self.refresh();
        let owner = match role {
            None => self.current_role()?,
            Some(role) => self.role_of(role)?,
        };
        if let Some(database) = self.database_object() {
            self.check_privileges(&database, CREATE)?;
        }
        let identity = self.current_identity();
        if !self.rights().may_become(identity.current, owner.oid) {
            let message = format!("must be able to SET ROLE \"{}\"", owner.name);
            return Err(PgError::new(state::INSUFFICIENT_PRIVILEGE, message));
        }
        let name = name.as_ref().map_or_else(|| owner.name.clone(), |name| name.value.clone());
        if name.starts_with(RESERVED) {
            let error = PgError::new(state::RESERVED_NAME, format!("unacceptable schema name \"{name}\""));
            return Err(error.detail("The prefix \"pg_\" is reserved for system schemas."));
        }
        let stored = self.stored_schema(&name)?;
        let db = self.database().clone();
        let mut writing = self.write(&db)?;
        if writing.snapshot.schemas.contains_key(&stored) || crate::system::is_system(&name) {
            let message = format!("schema \"{name}\" already exists");
            if !if_not_exists {
                return Err(PgError::new(state::DUPLICATE_SCHEMA, message));
            }
            self.skip_notice(state::DUPLICATE_SCHEMA, message + ", skipping");
            return Ok(());
        }
        writing.put_schema(&stored, super::DATABASE_COLLATION, crate::MAKER)?;
        let id = writing.snapshot.schema(&stored)?.id;
        self.give(&mut writing, NewObject::schema(id), owner.oid)?;
        self.finish(writing)?;
        self.look_anew();
        let mut within = Vec::with_capacity(elements.len());
        for element in elements {
            within.push(element_within(&name, element)?);
        }
        // As in PostgreSQL: what others are made over comes first.
        within.sort_by_key(|(order, _)| *order);
        match within.is_empty() {
            true => Ok(()),
            false => self.in_new_schema(&name, &owner, |session| {
                within.iter().try_for_each(|(_, element)| session.define_in_transaction(element, raw, text).map(drop))
            }),
        }
    }

    /// Calls `act` as the owner of a schema, with the schema before all others in `search_path`.
    fn in_new_schema(
        &mut self,
        schema: &str,
        owner: &Role,
        act: impl FnOnce(&mut Session) -> Result<()>,
    ) -> Result<()> {
        let is_other = self.current_identity().current != owner.oid;
        let settings = &mut self.context().facts().settings;
        let mark = settings.mark();
        let path = match settings.get("search_path") {
            "" => quoted(schema),
            path => format!("{}, {path}", quoted(schema)),
        };
        let role = if is_other { settings.set("role", &owner.name, Scope::Local, true) } else { Ok(()) };
        let done = role.and_then(|()| settings.set("search_path", &path, Scope::Local, true)).and_then(|()| {
            self.follow_settings();
            act(self)
        });
        self.context().facts().settings.undo_to(mark);
        self.follow_settings();
        done
    }

    pub(super) fn drop_schemas(&mut self, schemas: &[String], cascade: bool) -> Result<()> {
        if let Some(schema) = schemas.iter().find(|schema| schema_of(schema) == "public") {
            // It is the database itself to other dialects.
            let _ = schema;
            return Err(PgError::unsupported("DROP of the schema public"));
        }
        let mut gone = Gone::default();
        for stored in schemas {
            let schema = self.catalog.schema(stored)?.clone();
            gone.tables.extend(schema.tables.values().filter(|table| !table.temporary).cloned());
            gone.views.extend(schema.views.values().cloned());
            gone.sequences.extend(schema.sequences.values().cloned());
            gone.types.extend(schema.types.values().cloned());
        }
        gone.types.sort_by_key(|ty| ty.id);
        // What depends on types of these schemas and is in others.
        let outside = self.dependents(&gone.types, schemas)?;
        let of_rows = self.dependents_of_rows(&gone)?;
        let is_empty = gone.is_empty();
        if !cascade && !is_empty {
            let name = schema_of(&schemas[0]);
            let mut lines = Vec::new();
            let tables = gone.tables.iter().map(|table| (kind_of(table), &table.schema, &table.name));
            let views = gone.views.iter().map(|view| ("view", &view.schema, &view.name));
            let owned = |sequence: &&std::sync::Arc<query::catalog::sequence::Sequence>| sequence.owned_by.is_none();
            let sequences =
                gone.sequences.iter().filter(owned).map(|sequence| ("sequence", &sequence.schema, &sequence.name));
            for ty in &gone.types {
                let schema = schema_of(&ty.schema);
                lines.push(format!("type {schema}.{} depends on schema {schema}", ty.name));
            }
            lines.extend(outside.lines.iter().map(Dependence::line));
            for (kind, schema, object) in tables.chain(sequences).chain(views) {
                let schema = schema_of(schema);
                lines.push(format!("{kind} {schema}.{object} depends on schema {schema}"));
            }
            lines.extend(of_rows.lines.iter().map(Dependence::line));
            let message = format!("cannot drop schema {name} because other objects depend on it");
            let error = PgError::new(state::DEPENDENT_OBJECTS_STILL_EXIST, message);
            return Err(error.detail(lines.join("\n")).hint(super::alter::CASCADE_HINT));
        }
        let tables = gone.tables.iter().map(|table| (kind_of(table), &table.schema, &table.name));
        let views = gone.views.iter().map(|view| ("view", &view.schema, &view.name));
        let free = gone.sequences.iter().filter(|sequence| sequence.owned_by.is_none());
        let sequences = free.map(|sequence| ("sequence", &sequence.schema, &sequence.name));
        let types = gone.types.iter().map(|ty| ("type", &ty.schema, &ty.name));
        let shown = |(kind, schema, name): (&str, &String, &String)| format!("{kind} {}.{name}", schema_of(schema));
        let mut objects: Vec<String> = types.map(shown).collect();
        objects.extend(outside.lines.iter().map(|line| line.object.clone()));
        objects.extend(tables.chain(sequences).chain(views).map(shown));
        objects.extend(of_rows.lines.iter().map(|line| line.object.clone()));
        self.tell_cascade(&objects);
        self.drop_dependents(outside)?;
        if !of_rows.is_empty() {
            self.drop_dependents(of_rows)?;
        }
        let what = format!("schema {}", schema_of(&schemas[0]));
        self.drop_all(gone, cascade, Some(&what), schemas)?;
        self.look_anew();
        Ok(())
    }

    pub(super) fn create_database(&mut self, create: &CreatedbStmt) -> Result<()> {
        let CreatedbStmt { name, options } = create;
        self.refresh();
        let mut owner = self.current_role()?;
        if !owner.is_super && !owner.attributes.creates_databases {
            return Err(PgError::new(state::INSUFFICIENT_PRIVILEGE, "permission denied to create database"));
        }
        let current = owner.oid;
        for option in options {
            let text = match &option.value {
                None => continue,
                Some(DefArg::String(text) | DefArg::Keyword(text)) => text.clone(),
                Some(DefArg::Name(name)) => name.last().to_owned(),
                Some(DefArg::Type(ty)) => ty.name.last().to_owned(),
                Some(DefArg::Integer(number)) => number.to_string(),
                Some(DefArg::Bool(is_on)) => is_on.to_string(),
                Some(_) => String::new(),
            };
            let is_served = match &*option.name {
                "encoding" => matches!(&*text.to_ascii_lowercase().replace(['-', '_'], ""), "utf8" | "unicode" | "6"),
                "template" => matches!(&*text, "template0" | "template1"),
                "owner" => {
                    owner = self.rights().roles().existing(&text)?;
                    if !self.rights().may_become(current, owner.oid) {
                        let message = format!("must be able to SET ROLE \"{}\"", owner.name);
                        return Err(PgError::new(state::INSUFFICIENT_PRIVILEGE, message));
                    }
                    true
                }
                "lc_collate" | "lc_ctype" | "locale" => matches!(&*text, "C" | "POSIX" | "C.UTF-8" | "C.utf8"),
                "locale_provider" => text == "libc",
                "strategy" => true,
                "tablespace" => text == "pg_default",
                "allow_connections" => text == "true",
                "connection_limit" => text == "-1",
                "is_template" => text == "false",
                other => {
                    return Err(PgError::new(state::SYNTAX_ERROR, format!("option \"{other}\" not recognized")));
                }
            };
            if !is_served {
                return Err(PgError::unsupported(format!("CREATE DATABASE with {} \"{text}\"", option.name)));
            }
        }
        let db = self.database().clone();
        let mut writing = self.write(&db)?;
        let is_system = writing.snapshot.is_system(&name.value) || matches!(&*name.value, "template0" | "template1");
        if SchemaName::new(&name.value, "public").is_none() {
            return Err(PgError::unsupported("a database whose name has a dot"));
        }
        if is_system || writing.snapshot.schemas.contains_key(&name.value) {
            let message = format!("database \"{}\" already exists", name.value);
            return Err(PgError::new(state::DUPLICATE_DATABASE, message));
        }
        writing.put_schema(&name.value, super::DATABASE_COLLATION, crate::MAKER)?;
        let id = writing.snapshot.schema(&name.value)?.id;
        self.give(&mut writing, NewObject::database(id), owner.oid)?;
        self.finish(writing)
    }

    /// Returns the sessions in a database.
    fn users_of(&self, name: &str) -> Vec<u32> {
        let sessions = self.database().sessions();
        let users = sessions.iter().filter(|handle| handle.shown().database.as_deref() == Some(name));
        users.map(|handle| handle.pid).collect()
    }

    /// Waits until no session is in a database: those whose clients have just left are about to end. An error where some stay.
    fn await_departure(&mut self, name: &str) -> Result<()> {
        let mut users = self.users_of(name);
        if users.is_empty() {
            return Ok(());
        }
        let busy = |users: &[u32]| {
            let error =
                PgError::new(state::OBJECT_IN_USE, format!("database \"{name}\" is being accessed by other users"));
            error.detail(match users.len() {
                1 => "There is 1 other session using the database.".to_owned(),
                count => format!("There are {count} other sessions using the database."),
            })
        };
        let Some(_waiting) = wait::try_announce(&DEPARTURE) else { return Err(busy(&users)) };
        let end = Instant::now() + DEPARTURE_PATIENCE;
        while Instant::now() < end && !users.is_empty() {
            if let Err(fault) = self.context().check_wait() {
                return Err(self.error_of(fault, &[]));
            }
            std::thread::sleep(DEPARTURE_SLICE);
            users = self.users_of(name);
        }
        if users.is_empty() { Ok(()) } else { Err(busy(&users)) }
    }

    pub(super) fn drop_database(&mut self, drop: &DropdbStmt) -> Result<()> {
        let DropdbStmt { name, missing_ok, force } = drop;
        let name = &name.value;
        if *name == self.who.database {
            return Err(PgError::new(state::OBJECT_IN_USE, "cannot drop the currently open database"));
        }
        let is_of_database =
            |stored: &str| SchemaName::of_stored(stored).is_some_and(|schema| schema.database == *name);
        let schemas: Vec<String> =
            self.catalog.schemas.keys().filter(|stored| is_of_database(stored)).cloned().collect();
        if !schemas.contains(name) {
            let message = format!("database \"{name}\" does not exist");
            if !missing_ok {
                return Err(PgError::new(state::INVALID_CATALOG_NAME, message));
            }
            self.skip_notice(super::SUCCESSFUL, message + ", skipping");
            return Ok(());
        }
        let schema = self.catalog.schema(name)?.clone();
        self.check_owns(&Object::database(&schema))?;
        if *force {
            for pid in self.users_of(name) {
                self.database().kill(pid, Kill::Connection);
            }
        }
        self.await_departure(name)?;
        let mut gone = Gone::default();
        for stored in &schemas {
            let schema = self.catalog.schema(stored)?.clone();
            gone.tables.extend(schema.tables.values().filter(|table| !table.temporary).cloned());
            gone.views.extend(schema.views.values().cloned());
            gone.sequences.extend(schema.sequences.values().cloned());
            gone.types.extend(schema.types.values().cloned());
        }
        self.drop_all(gone, true, None, &schemas)
    }
}
