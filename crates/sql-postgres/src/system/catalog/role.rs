//! `pg_roles`, `pg_authid`, `pg_user`, `pg_shadow`, `pg_auth_members`, `pg_db_role_setting`, `pg_default_acl`.

use datum::Result;
use query::catalog::session_default::DefaultsKey;
use query::nodes::context::EvalContext;
use query::nodes::table_function::Give;

use crate::rights::privilege::{INHERIT_OPTION, SET_OPTION};
use crate::rights::role::Role;
use crate::session::facts::FactsOf as _;
use crate::system::cells::{letter, null, number, oid, text, truth};
use crate::system::oids;
use crate::system::view::Shown;
use crate::system::wanted::Wanted;
use crate::system::{arrays, rights};
use crate::types::oid::Oid;
use crate::value::Value;

fn roles(ctx: &mut EvalContext) -> Vec<Role> {
    Shown::of(ctx).map(|shown| shown.facts().roles().all()).unwrap_or_default()
}

/// Returns the settings of a role in every database.
fn settings_of(ctx: &mut EvalContext, role: Oid) -> Value {
    let definitions = ctx.facts().shared_definitions();
    let texts = definitions.session_defaults.get(&DefaultsKey { database: 0, role });
    arrays::texts(texts.map(|texts| texts.to_vec()))
}

fn moment(at: Option<i64>) -> Value {
    at.map_or(null(), number)
}

impl Role {
    /// A superuser by the rights of another door has these attributes too.
    fn creates_roles(&self) -> bool {
        self.attributes.creates_roles || self.is_super && !self.attributes.is_super
    }

    fn creates_databases(&self) -> bool {
        self.attributes.creates_databases || self.is_super && !self.attributes.is_super
    }
}

pub fn pg_roles(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    for role in roles(ctx) {
        let row = vec![
            text(&role.name),
            truth(role.is_super),
            truth(role.attributes.inherits),
            truth(role.creates_roles()),
            truth(role.creates_databases()),
            truth(role.can_login),
            truth(false),
            number(role.attributes.connections_max.into()),
            text("********"),
            moment(role.attributes.valid_until),
            truth(role.oid == oids::POSTGRES),
            settings_of(ctx, role.oid),
            oid(role.oid),
        ];
        give(row, ctx)?;
    }
    Ok(())
}

pub fn pg_authid(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    for role in roles(ctx) {
        let row = vec![
            oid(role.oid),
            text(&role.name),
            truth(role.is_super),
            truth(role.attributes.inherits),
            truth(role.creates_roles()),
            truth(role.creates_databases()),
            truth(role.can_login),
            truth(false),
            truth(role.oid == oids::POSTGRES),
            number(role.attributes.connections_max.into()),
            // Verifiers are shown at no door.
            null(),
            moment(role.attributes.valid_until),
        ];
        give(row, ctx)?;
    }
    Ok(())
}

/// `pg_user` and `pg_shadow`, but for the password.
pub fn pg_user(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    for role in roles(ctx).into_iter().filter(|role| role.can_login) {
        let row = vec![
            text(&role.name),
            oid(role.oid),
            truth(role.creates_databases()),
            truth(role.is_super),
            truth(false),
            truth(role.oid == oids::POSTGRES),
            text("********"),
            moment(role.attributes.valid_until),
            settings_of(ctx, role.oid),
        ];
        give(row, ctx)?;
    }
    Ok(())
}

/// `pg_group`: the roles without login, with their members.
pub fn pg_group(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    let memberships: Vec<_> = shown.facts().all_memberships().collect();
    for role in roles(ctx).into_iter().filter(|role| !role.can_login) {
        let members: Vec<_> =
            memberships.iter().filter(|(_, grant)| grant.grantee == role.oid).map(|(member, _)| *member).collect();
        give(vec![text(&role.name), oid(role.oid), arrays::oids(&members)], ctx)?;
    }
    Ok(())
}

pub fn pg_auth_members(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    let memberships: Vec<_> = shown.facts().all_memberships().collect();
    for (member, grant) in memberships {
        let row = vec![
            oid(oids::of_membership(member, grant.grantee, grant.grantor)),
            oid(grant.grantee),
            oid(member),
            oid(grant.grantor),
            truth(grant.grantable != 0),
            truth(grant.privileges & INHERIT_OPTION != 0),
            truth(grant.privileges & SET_OPTION != 0),
        ];
        give(row, ctx)?;
    }
    Ok(())
}

/// The settings of new sessions, of all databases. Those of a role that another door has dropped are none.
pub fn pg_db_role_setting(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    for (key, texts) in &*shown.snapshot.session_defaults {
        if key.role != 0 && shown.facts().roles().by_oid(key.role).is_none() {
            continue;
        }
        let database = if key.database == 0 { 0 } else { oids::of_object(key.database) };
        give(vec![oid(database), oid(key.role), arrays::texts(Some(texts.to_vec()))], ctx)?;
    }
    Ok(())
}

/// The privileges of new objects in this database.
pub fn pg_default_acl(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    let roles = shown.facts().roles();
    for (key, record) in shown.default_access() {
        let items: Vec<String> = record.grants.iter().map(|grant| rights::item(roles, grant)).collect();
        let row = vec![
            oid(oids::of_object(record.id)),
            oid(key.role),
            oid(shown.schema_of_default(key)),
            letter(key.kind as char),
            arrays::rights(&items),
        ];
        give(row, ctx)?;
    }
    Ok(())
}
