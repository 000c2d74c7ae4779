//! `pg_roles`, `pg_authid`, `pg_user`, `pg_shadow`, `pg_auth_members`.

use datum::Result;
use query::nodes::context::EvalContext;
use query::nodes::table_function::Give;

use crate::instance::database::POSTGRES;
use crate::session::facts::FactsOf as _;
use crate::system::cells::{null, number, oid, text, truth};
use crate::system::oids;
use crate::system::wanted::Wanted;
use crate::types::oid::Oid;

/// A role as its catalogs show it.
struct Role {
    oid: Oid,
    name: String,
    is_super: bool,
    can_login: bool,
}

fn roles(ctx: &mut EvalContext) -> Vec<Role> {
    let facts = ctx.facts();
    let Some(db) = facts.db.clone() else { return Vec::new() };
    let mut names: Vec<String> = db.engine().accounts().list().iter().map(|account| account.name.clone()).collect();
    for name in [POSTGRES, &facts.role] {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    let role = |name: String| {
        let is_super = db.is_superuser(&name);
        Role { oid: oids::of_role(&name), name, is_super, can_login: is_super }
    };
    let owner =
        Role { oid: oids::PG_DATABASE_OWNER, name: "pg_database_owner".into(), is_super: false, can_login: false };
    names.into_iter().map(role).chain([owner]).collect()
}

pub fn pg_roles(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    for role in roles(ctx) {
        let row = vec![
            text(&role.name),
            truth(role.is_super),
            truth(true),
            truth(role.is_super),
            truth(role.is_super),
            truth(role.can_login),
            truth(false),
            number(-1),
            text("********"),
            null(),
            truth(role.is_super),
            null(),
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
            truth(true),
            truth(role.is_super),
            truth(role.is_super),
            truth(role.can_login),
            truth(false),
            truth(role.is_super),
            number(-1),
            // Verifiers are shown at no door.
            null(),
            null(),
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
            truth(role.is_super),
            truth(role.is_super),
            truth(false),
            truth(role.is_super),
            text("********"),
            null(),
            null(),
        ];
        give(row, ctx)?;
    }
    Ok(())
}
