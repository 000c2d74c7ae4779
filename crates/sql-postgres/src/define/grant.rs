//! GRANT and REVOKE of privileges.

use std::sync::Arc;

use query::catalog::access::{AccessGrant, AccessKey, AccessKind, AccessRecord};
use query::catalog::objects::Object as CatalogObject;
use query::catalog::schema_name::SchemaName;
use query::catalog::table::Table;
use query::catalog::view::View;
use query::catalog::{Schema, Writing};
use syntax::postgres::tree::{AccessPriv, GrantStmt, GrantTarget, Ident, ObjectType, RangeVar, RoleSpec, RoleSpecKind};

use crate::bind::rights::column_key;
use crate::define::names::{Relation, missing_schema};
use crate::error::{PgError, Result, state};
use crate::rights::acl::{self, AclChange};
use crate::rights::object::{NONE_LEFT, Object, has_whole};
use crate::rights::privilege::{self, ObjectClass, Privileges, USAGE};
use crate::rights::role::PUBLIC;
use crate::session::Session;
use crate::types::oid::Oid;

const NOT_GRANTED: &str = "01007";
const NOT_REVOKED: &str = "01006";

/// An object of the statement. Tables have columns with privileges of their own.
struct Granted {
    object: Object,
    table: Option<Arc<Table>>,
    /// The numbers and names of columns.
    columns: Vec<(u32, String)>,
}

/// The privileges of the statement: on whole objects, and on columns by name.
struct WantedPrivileges {
    is_all: bool,
    whole: Privileges,
    columns: Vec<(Ident, Privileges)>,
}

/// A grant to the grantees of the statement, or the opposite.
struct Granting<'s> {
    is_grant: bool,
    option: bool,
    cascade: bool,
    is_all: bool,
    grantees: &'s [Oid],
}

impl Session {
    pub(super) fn grant(&mut self, grant: &GrantStmt) -> Result<()> {
        let GrantStmt { is_grant, privileges, target, grantees, grant_option, granted_by, cascade } = grant;
        self.begin_definition(if *is_grant { "GRANT" } else { "REVOKE" })?;
        self.refresh();
        self.check_grantor(granted_by.as_ref())?;
        let objects = self.granted_objects(target)?;
        let grantees = self.grantees(grantees)?;
        let class = class_of(target)?;
        let wanted = wanted(privileges, class)?;
        let granting = Granting {
            is_grant: *is_grant,
            option: *grant_option,
            cascade: *cascade,
            is_all: wanted.is_all,
            grantees: &grantees,
        };
        let db = self.database().clone();
        let mut writing = self.write(&db)?;
        for grantee in &grantees {
            super::owner::hold_role(&mut writing, *grantee)?;
        }
        for of in &objects {
            let whole = self.privileges_for(&wanted, of, target)?;
            self.change_access(&mut writing, of, (whole, &wanted), &granting)?;
        }
        self.finish(writing)
    }

    /// Changes the access record of an object, and of its columns.
    fn change_access(
        &mut self,
        writing: &mut Writing<'_>,
        of: &Granted,
        (whole, wanted): (Privileges, &WantedPrivileges),
        granting: &Granting<'_>,
    ) -> Result<()> {
        let known = writing.access(of.object.key)?;
        let owner = of.object.owner(known.as_deref());
        let mut grants = of.object.grants(known.as_deref()).into_owned();
        let before = grants.clone();
        if whole != 0 {
            self.change_grants(&mut grants, of, (owner, 0, whole), &before, granting)?;
        }
        for (column, privileges) in self.columns_of(wanted, whole, of, granting)? {
            self.change_grants(&mut grants, of, (owner, column, privileges), &before, granting)?;
        }
        let had_whole = known.as_ref().and_then(|known| known.grants.as_deref()).is_some_and(has_whole);
        if whole == 0 && !had_whole {
            grants.retain(|grant| grant.column != 0);
        } else if !has_whole(&grants) {
            grants.push(NONE_LEFT);
        } else if grants.iter().any(|grant| grant.column == 0 && grant.privileges != 0) {
            grants.retain(|grant| *grant != NONE_LEFT);
        }
        let owner = known.as_ref().map_or(0, |known| known.owner);
        Ok(writing.put_access(of.object.key, Some(AccessRecord { owner, grants: Some(grants) }), false)?)
    }

    /// Revokes from a role what the current one, or the owner in its place, has given it on an object, and what others have by that.
    pub(super) fn revoke_all(
        &mut self,
        writing: &mut Writing<'_>,
        object: &CatalogObject,
        key: AccessKey,
        from: Oid,
    ) -> Result<()> {
        let plain = |object| Granted { object, table: None, columns: Vec::new() };
        let of = match object {
            CatalogObject::Table(table) => of_table(table),
            CatalogObject::View(view) => of_view(view),
            CatalogObject::Sequence(sequence) => plain(Object::sequence(sequence)),
            CatalogObject::Schema(schema) if key.kind == AccessKind::Database => plain(Object::database(schema)),
            CatalogObject::Schema(schema) => plain(Object::schema(schema)),
            _ => return Ok(()),
        };
        let wanted = WantedPrivileges { is_all: true, whole: 0, columns: Vec::new() };
        let granting = Granting { is_grant: false, option: false, cascade: true, is_all: true, grantees: &[from] };
        self.change_access(writing, &of, (of.object.class.all(), &wanted), &granting)
    }

    pub(super) fn check_grantor(&mut self, granted_by: Option<&RoleSpec>) -> Result<()> {
        let Some(spec) = granted_by else { return Ok(()) };
        let grantor = self.role_of(spec)?;
        match grantor.oid == self.current_identity().current {
            true => Ok(()),
            false => Err(PgError::new(state::FEATURE_NOT_SUPPORTED, "grantor must be current user")),
        }
    }

    pub(super) fn grantees(&mut self, specs: &[RoleSpec]) -> Result<Vec<Oid>> {
        let mut grantees = Vec::new();
        for spec in specs {
            grantees.push(match spec.kind {
                RoleSpecKind::Public => PUBLIC,
                _ => self.role_of(spec)?.oid,
            });
        }
        Ok(grantees)
    }

    fn granted_objects(&mut self, target: &GrantTarget) -> Result<Vec<Granted>> {
        let plain = |object| Granted { object, table: None, columns: Vec::new() };
        let mut objects = Vec::new();
        match target {
            GrantTarget::Relations(names) | GrantTarget::Sequences(names) => {
                let wants_sequence = matches!(target, GrantTarget::Sequences(_));
                for name in names {
                    objects.push(self.granted_relation(name, wants_sequence)?);
                }
            }
            GrantTarget::Databases(names) => {
                for name in names {
                    objects.push(plain(Object::database(&*self.database_named(&name.value)?)));
                }
            }
            GrantTarget::Schemas(names) => {
                for name in names {
                    objects.push(plain(Object::schema(&*self.schema_named(&name.value)?)));
                }
            }
            GrantTarget::AllInSchemas(kind, names) => {
                for name in names {
                    let schema = self.schema_named(&name.value)?;
                    self.check_privileges(&Object::schema(&schema), USAGE)?;
                    match kind {
                        ObjectType::Table => {
                            let tables = schema.tables.values().filter(|table| !table.temporary);
                            objects.extend(tables.map(of_table));
                            objects.extend(schema.views.values().map(|view| of_view(view)));
                        }
                        ObjectType::Sequence => {
                            objects.extend(schema.sequences.values().map(|sequence| plain(Object::sequence(sequence))));
                        }
                        // A schema has none.
                        _ => {}
                    }
                }
            }
            GrantTarget::Tablespaces(_) => return Err(PgError::unsupported("privileges on tablespaces")),
            GrantTarget::Languages(_) => return Err(PgError::unsupported("privileges on languages")),
            GrantTarget::Types(..) => return Err(PgError::unsupported("privileges on types")),
            GrantTarget::Functions(..) => return Err(PgError::unsupported("privileges on functions")),
            GrantTarget::Parameters(_) => return Err(PgError::unsupported("privileges on parameters")),
        }
        Ok(objects)
    }

    fn granted_relation(&mut self, name: &RangeVar, wants_sequence: bool) -> Result<Granted> {
        let wrong = |what: &str| Err(PgError::new(state::WRONG_OBJECT_TYPE, format!("\"{}\" is {what}", name.name)));
        let found = match self.relation(name)? {
            Some(found) => found,
            None if self.names_system_catalog(name) => {
                return Err(PgError::unsupported("GRANT and REVOKE on system catalogs"));
            }
            None => return Err(self.missing_relation(name, None)),
        };
        match found {
            Relation::Index(..) => wrong("an index"),
            Relation::Sequence(sequence) if sequence.temporary => {
                Err(PgError::unsupported("privileges on a temporary sequence"))
            }
            Relation::Sequence(sequence) => {
                let own = ["last_value", "log_cnt", "is_called"].into_iter().zip(1..);
                let own = own.map(|(name, key)| (key, name.to_owned()));
                Ok(Granted {
                    object: Object::sequence(&sequence),
                    table: None,
                    columns: system_columns().chain(own).collect(),
                })
            }
            _ if wants_sequence => wrong("not a sequence"),
            Relation::Table(table) if table.temporary => Err(PgError::unsupported("privileges on a temporary table")),
            Relation::Table(table) => Ok(of_table(&table)),
            Relation::View(view) if view.temporary => Err(PgError::unsupported("privileges on a temporary view")),
            Relation::View(view) => Ok(of_view(&view)),
        }
    }

    fn names_system_catalog(&self, name: &RangeVar) -> bool {
        crate::system::find(name.schema.as_deref().unwrap_or("pg_catalog"), &name.name).is_some()
    }

    pub(super) fn schema_named(&mut self, name: &str) -> Result<Arc<Schema>> {
        if crate::system::is_system(name) {
            return Err(PgError::unsupported(format!("GRANT and REVOKE on schema {name}")));
        }
        let stored = self.stored_schema(name)?;
        match self.catalog.schemas.get(&stored) {
            Some(schema) if schema.is_temporary() => {
                Err(PgError::unsupported("a change of the schema of temporary objects"))
            }
            found => found.cloned().ok_or_else(|| missing_schema(name)),
        }
    }

    /// Returns the schema `public` of a database.
    pub(super) fn database_named(&mut self, name: &str) -> Result<Arc<Schema>> {
        let is_database = SchemaName::of_stored(name).is_some_and(|found| found.schema == "public");
        let found = self.catalog.schemas.get(name).filter(|_| is_database).cloned();
        found.ok_or_else(|| PgError::new(state::INVALID_CATALOG_NAME, format!("database \"{name}\" does not exist")))
    }

    /// Returns the privileges on the whole of an object, by its kind.
    fn privileges_for(&mut self, wanted: &WantedPrivileges, of: &Granted, target: &GrantTarget) -> Result<Privileges> {
        let class = of.object.class;
        if wanted.is_all {
            return Ok(class.all());
        }
        let beyond = wanted.whole & !class.all();
        match (beyond, class) {
            (0, _) => Ok(wanted.whole),
            (_, ObjectClass::Sequence) if matches!(target, GrantTarget::Relations(_)) => {
                let message =
                    format!("sequence \"{}\" only supports USAGE, SELECT, and UPDATE privileges", of.object.name);
                self.tell("WARNING", PgError::new(state::INVALID_GRANT_OPERATION, message));
                Ok(wanted.whole & class.all())
            }
            _ => Err(PgError::new(state::INVALID_GRANT_OPERATION, "invalid privilege type USAGE for table")),
        }
    }

    /// Changes what the grantees have of an object, or of a column if its number is not 0.
    fn change_grants(
        &mut self,
        grants: &mut Vec<AccessGrant>,
        of: &Granted,
        (owner, column, privileges): (Oid, u32, Privileges),
        before: &[AccessGrant],
        granting: &Granting<'_>,
    ) -> Result<()> {
        let identity = self.current_identity();
        let name = of.columns.iter().find(|(key, _)| *key == column).map(|(_, name)| name.clone());
        let (grantor, given) = grantor(&identity.set, identity.current, owner, privileges, before, column);
        if given == 0 {
            let set = self.rights().role_set(grantor);
            let mask = if column == 0 { of.object.class.all() } else { ObjectClass::Column.all() };
            let facts = self.rights();
            let of_whole = facts.privileges(&set, &of.object) | facts.options(&set, &of.object, 0);
            let of_column = match column {
                0 => 0,
                _ => {
                    let options = acl::options_of(&set, owner, 0, before, column);
                    facts.column_privileges(&set, &of.object, column) | options
                }
            };
            let any = (of_whole | of_column) & mask;
            if any == 0 {
                return Err(denied(&of.object, name.as_deref()));
            }
        }
        let is_all = if column == 0 { granting.is_all } else { privileges == ObjectClass::Column.all() };
        self.tell_incomplete((granting.is_grant, is_all), &of.object, name.as_deref(), (privileges, given));
        for grantee in granting.grantees {
            if granting.is_grant && granting.option && *grantee == PUBLIC {
                let message = "grant options can only be granted to roles";
                return Err(PgError::new(state::INVALID_GRANT_OPERATION, message));
            }
            let change = AclChange {
                is_grant: granting.is_grant,
                grantee: *grantee,
                grantor,
                column,
                privileges: given,
                option: granting.option,
            };
            if given != 0 {
                acl::change(grants, change, owner, granting.cascade)?;
            }
        }
        Ok(())
    }

    fn tell_incomplete(
        &mut self,
        (is_grant, is_all): (bool, bool),
        object: &Object,
        column: Option<&str>,
        (wanted, given): (Privileges, Privileges),
    ) {
        let is_partial = given != wanted && !is_all;
        if given != 0 && !is_partial {
            return;
        }
        let of = match column {
            Some(column) => format!("column \"{column}\" of relation \"{}\"", object.name),
            None => format!("\"{}\"", object.name),
        };
        let which = if given == 0 { "no" } else { "not all" };
        let (code, doing) = match is_grant {
            true => (NOT_GRANTED, "were granted"),
            false => (NOT_REVOKED, "could be revoked"),
        };
        self.tell("WARNING", PgError::new(code, format!("{which} privileges {doing} for {of}")));
    }
}

fn grantor(
    set: &crate::rights::role::RoleSet,
    current: Oid,
    owner: Oid,
    wanted: Privileges,
    grants: &[AccessGrant],
    column: u32,
) -> (Oid, Privileges) {
    let whole = acl::grantor_of(current, set, owner, wanted, grants, 0);
    if column == 0 || whole.1 == wanted {
        return whole;
    }
    let own = acl::grantor_of(current, set, owner, wanted, grants, column);
    if own.1.count_ones() > whole.1.count_ones() { own } else { whole }
}

fn denied(object: &Object, column: Option<&str>) -> PgError {
    match column {
        None => object.as_granted().denied(),
        Some(column) => {
            let message = format!("permission denied for column \"{column}\" of relation \"{}\"", object.name);
            PgError::new(state::INSUFFICIENT_PRIVILEGE, message)
        }
    }
}

fn of_table(table: &Arc<Table>) -> Granted {
    let own = (0..table.columns.len()).filter(|at| !table.columns[*at].is_hidden());
    let own = own.map(|at| (column_key(table, at), table.columns[at].name.clone()));
    Granted { object: Object::table(table), table: Some(table.clone()), columns: system_columns().chain(own).collect() }
}

fn of_view(view: &View) -> Granted {
    let columns = view.columns.iter().enumerate().map(|(nth, name)| (nth as u32 + 1, name.clone())).collect();
    Granted { object: Object::view(view), table: None, columns }
}

/// Returns the kind of objects of a target, as errors of unfit privileges name it.
fn class_of(target: &GrantTarget) -> Result<ObjectClass> {
    Ok(match target {
        GrantTarget::Sequences(_) | GrantTarget::AllInSchemas(ObjectType::Sequence, _) => ObjectClass::Sequence,
        GrantTarget::Databases(_) => ObjectClass::Database,
        GrantTarget::Schemas(_) => ObjectClass::Schema,
        GrantTarget::AllInSchemas(ObjectType::Table, _) | GrantTarget::Relations(_) => ObjectClass::Relation,
        _ => ObjectClass::Function,
    })
}

fn wanted(privileges: &[AccessPriv], class: ObjectClass) -> Result<WantedPrivileges> {
    let mut wanted = WantedPrivileges { is_all: privileges.is_empty(), whole: 0, columns: Vec::new() };
    let all = match class {
        // The name of a table may be that of a sequence.
        ObjectClass::Relation => class.all() | ObjectClass::Sequence.all(),
        class => class.all(),
    };
    for AccessPriv { name, columns, at: _ } in privileges {
        if columns.is_empty() {
            let Some(name) = name else {
                wanted.is_all = true;
                continue;
            };
            let bit = privilege::named(name)?;
            if bit & !all != 0 {
                return Err(privilege::invalid(bit, class));
            }
            wanted.whole |= bit;
            continue;
        }
        if class != ObjectClass::Relation {
            let message = "column privileges are only valid for relations";
            return Err(PgError::new(state::INVALID_GRANT_OPERATION, message));
        }
        let bits = match name {
            None => ObjectClass::Column.all(),
            Some(name) => privilege::named(name)?,
        };
        if bits & !ObjectClass::Column.all() != 0 {
            return Err(privilege::invalid(bits, ObjectClass::Column));
        }
        wanted.columns.extend(columns.iter().map(|column| (column.clone(), bits)));
    }
    Ok(wanted)
}

impl Session {
    /// Returns the numbers of columns, with the privileges that are granted or revoked there: those that the statement names, and what is revoked of the whole is revoked of each column.
    fn columns_of(
        &mut self,
        wanted: &WantedPrivileges,
        whole: Privileges,
        of: &Granted,
        granting: &Granting<'_>,
    ) -> Result<Vec<(u32, Privileges)>> {
        let revoked = if granting.is_grant { 0 } else { whole & ObjectClass::Column.all() };
        let mut found: Vec<(u32, Privileges)> = of.columns.iter().map(|(key, _)| (*key, revoked)).collect();
        for (name, privileges) in &wanted.columns {
            let Some(table) = &of.table else {
                let (kind, name) = (of.object.kind, &of.object.name);
                return Err(PgError::unsupported(format!("column privileges on {kind} \"{name}\"")));
            };
            if table.maker != crate::MAKER {
                let what = format!("column privileges on table \"{}\" of another dialect", table.name);
                return Err(PgError::unsupported(what));
            }
            let at = of.columns.iter().position(|(key, known)| *key < OF_SYSTEM && *known == name.value);
            let Some(at) = at else {
                let message = format!("column \"{}\" of relation \"{}\" does not exist", name.value, table.name);
                return Err(PgError::new(state::UNDEFINED_COLUMN, message));
            };
            found[at].1 |= privileges;
        }
        found.retain(|(_, privileges)| *privileges != 0);
        Ok(found)
    }
}

fn system_columns() -> impl Iterator<Item = (u32, String)> {
    SYSTEM_COLUMNS.iter().zip(OF_SYSTEM..).map(|(name, key)| (key, (*name).to_owned()))
}

/// System columns have no privileges, and are named by warnings.
const SYSTEM_COLUMNS: [&str; 6] = ["tableoid", "cmax", "xmax", "cmin", "xmin", "ctid"];
const OF_SYSTEM: u32 = u32::MAX - 8;
