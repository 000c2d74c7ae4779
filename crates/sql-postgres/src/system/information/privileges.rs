//! Roles and privileges of `information_schema`.

use datum::Result;
use query::catalog::access::AccessGrant;
use query::nodes::context::EvalContext;
use query::nodes::table_function::Give;

use crate::rights::object::Object;
use crate::rights::privilege::{NAMED, Privileges, SELECT};
use crate::rights::role::PUBLIC;
use crate::system::cells::{text, yes};
use crate::system::view::{Shown, columns};
use crate::system::wanted::Wanted;
use crate::types::oid::Oid;
use crate::value::Value;

impl Shown {
    fn role_shown(&self, oid: Oid) -> String {
        if oid == PUBLIC { "PUBLIC".to_owned() } else { self.facts().roles().name_of(oid) }
    }

    /// Returns whether a grant is made by or to a role whose rights the current one has.
    fn concerns(&self, grant: &AccessGrant) -> bool {
        let set = &self.identity.set;
        set.has(grant.grantor) || grant.grantee != PUBLIC && set.has(grant.grantee)
    }

    /// Returns whether the grantee may give a privilege on: as the owner it always may.
    fn is_grantable(&self, grant: &AccessGrant, bit: Privileges, owner: Oid) -> bool {
        grant.grantable & bit != 0 || grant.grantee != PUBLIC && self.facts().role_set(grant.grantee).has(owner)
    }
}

pub fn enabled_roles(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    for role in shown.facts().roles().all().into_iter().filter(|role| shown.identity.set.has(role.oid)) {
        give(vec![text(role.name)], ctx)?;
    }
    Ok(())
}

pub fn applicable_roles(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    roles_given(ctx, give, |shown, member, _| shown.identity.set.has(member))
}

pub fn administrable_role_authorizations(_: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    roles_given(ctx, give, |shown, member, grant| shown.identity.set.has(member) && grant.grantable != 0)
}

fn roles_given(ctx: &mut EvalContext, give: &mut Give<'_>, fits: fn(&Shown, Oid, &AccessGrant) -> bool) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    let given: Vec<(Oid, AccessGrant)> = shown.facts().all_memberships().collect();
    for (member, grant) in given.into_iter().filter(|(member, grant)| fits(&shown, *member, grant)) {
        let names = [shown.role_shown(member), shown.role_shown(grant.grantee)];
        give(vec![text(&names[0]), text(&names[1]), yes(grant.grantable != 0)], ctx)?;
    }
    Ok(())
}

/// Those that the current role has given or has, or that everybody has.
pub fn table_privileges(wanted: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    on_tables(wanted, ctx, give, |shown, grant| grant.grantee == PUBLIC || shown.concerns(grant))
}

pub fn role_table_grants(wanted: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    on_tables(wanted, ctx, give, Shown::concerns)
}

fn on_tables(
    wanted: &Wanted<'_>,
    ctx: &mut EvalContext,
    give: &mut Give<'_>,
    fits: fn(&Shown, &AccessGrant) -> bool,
) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    let is_wanted = |name: &str| wanted.name("table_name").is_none_or(|wanted| wanted == name);
    for (schema, of) in shown.schemas() {
        let tables = of
            .tables
            .values()
            .filter(|table| !table.temporary && table.query.is_none())
            .map(|table| Object::table(table));
        let objects = tables.chain(of.views.values().filter(|view| !view.temporary).map(|view| Object::view(view)));
        for object in objects.filter(|object| is_wanted(&object.name)) {
            let owner = shown.owner(&object);
            let grants = shown.facts().grants_of(&object);
            for grant in grants.iter().filter(|grant| grant.column == 0 && fits(&shown, grant)) {
                for (bit, _, name) in NAMED.iter().filter(|(bit, ..)| grant.privileges & bit != 0) {
                    let row = vec![
                        text(shown.role_shown(grant.grantor)),
                        text(shown.role_shown(grant.grantee)),
                        text(&shown.database),
                        text(schema),
                        text(&object.name),
                        text(name),
                        yes(shown.is_grantable(grant, *bit, owner)),
                        yes(*bit == SELECT),
                    ];
                    give(row, ctx)?;
                }
            }
        }
    }
    Ok(())
}

pub fn column_privileges(wanted: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    on_columns(wanted, ctx, give, |shown, grant| grant.grantee == PUBLIC || shown.concerns(grant))
}

pub fn role_column_grants(wanted: &Wanted<'_>, ctx: &mut EvalContext, give: &mut Give<'_>) -> Result<()> {
    on_columns(wanted, ctx, give, Shown::concerns)
}

/// The privileges on columns, those on whole tables and views among them.
fn on_columns(
    wanted: &Wanted<'_>,
    ctx: &mut EvalContext,
    give: &mut Give<'_>,
    fits: fn(&Shown, &AccessGrant) -> bool,
) -> Result<()> {
    let Some(shown) = Shown::of(ctx) else { return Ok(()) };
    let is_wanted = |name: &str| wanted.name("table_name").is_none_or(|wanted| wanted == name);
    for (schema, of) in shown.schemas() {
        let of_table = |table: &query::catalog::table::Table| -> Vec<(String, u32)> {
            columns(table).map(|(_, column)| (column.name.clone(), column.slot as u32 + 1)).collect()
        };
        let tables = of.tables.values().filter(|table| !table.temporary && table.query.is_none());
        let tables = tables.map(|table| (Object::table(table), of_table(table)));
        let views = of.views.values().filter(|view| !view.temporary).map(|view| {
            (Object::view(view), view.columns.iter().map(|name| (name.clone(), u32::MAX)).collect::<Vec<_>>())
        });
        for (object, names) in tables.chain(views).filter(|(object, _)| is_wanted(&object.name)) {
            let (owner, grants) = (shown.owner(&object), shown.facts().grants_of(&object));
            let mut seen: Vec<[Value; 8]> = Vec::new();
            for grant in grants.iter().filter(|grant| fits(&shown, grant)) {
                for (name, _) in names.iter().filter(|(_, key)| grant.column == 0 || grant.column == *key) {
                    let of_columns = crate::rights::privilege::ObjectClass::Column.all();
                    let has = grant.privileges & of_columns;
                    for (bit, _, privilege) in NAMED.iter().filter(|(bit, ..)| has & bit != 0) {
                        let row = [
                            text(shown.role_shown(grant.grantor)),
                            text(shown.role_shown(grant.grantee)),
                            text(&shown.database),
                            text(schema),
                            text(&object.name),
                            text(name),
                            text(privilege),
                            yes(shown.is_grantable(grant, *bit, owner)),
                        ];
                        // A privilege on the table and on the column is shown once.
                        if !seen.contains(&row) {
                            seen.push(row);
                        }
                    }
                }
            }
            for row in seen {
                give(row.into(), ctx)?;
            }
        }
    }
    Ok(())
}
