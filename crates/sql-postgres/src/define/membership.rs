//! GRANT and REVOKE of roles. A membership is a grant in the member's access record: the grantee is the role that it is a member of.

use query::catalog::access::{AccessGrant, AccessKey, AccessKind, AccessRecord};
use syntax::postgres::tree::{DefArg, GrantRoleStmt, RoleSpec};

use crate::error::{PgError, Result, state};
use crate::rights::privilege::{INHERIT_OPTION, MEMBER, SET_OPTION};
use crate::rights::role::{MONITOR, Role};
use crate::session::Session;
use crate::system::oids;
use crate::types::oid::Oid;

/// The options of a membership that a statement gives; `None` where it says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MembershipOptions {
    pub admin: Option<bool>,
    pub inherit: Option<bool>,
    pub set: Option<bool>,
}

/// A membership to be made or ended.
pub(super) struct Membership {
    pub of: Role,
    pub member: Role,
    pub grantor: Oid,
    pub options: MembershipOptions,
}

impl Session {
    pub(super) fn grant_role(&mut self, grant: &GrantRoleStmt) -> Result<()> {
        let GrantRoleStmt { is_grant, roles, grantees, options, granted_by, cascade } = grant;
        self.begin_definition(if *is_grant { "GRANT ROLE" } else { "REVOKE ROLE" })?;
        self.refresh();
        let mut given = MembershipOptions::default();
        for option in options {
            let value = match &option.value {
                Some(DefArg::Bool(value)) => *value,
                _ => {
                    let message = format!("unrecognized value for role option \"{}\"", option.name);
                    return Err(PgError::new(state::INVALID_PARAMETER_VALUE, message));
                }
            };
            match &*option.name {
                "admin" => given.admin = Some(value),
                "inherit" => given.inherit = Some(value),
                "set" => given.set = Some(value),
                name => {
                    let message = format!("unrecognized role option \"{name}\"");
                    return Err(PgError::new(state::SYNTAX_ERROR, message));
                }
            }
        }
        let mut members = Vec::new();
        for member in grantees {
            members.push(self.role_of(member)?);
        }
        let mut memberships = Vec::new();
        for of in roles {
            let of = self.rights().roles().existing(&of.value)?;
            self.check_membership(&of, *is_grant)?;
            let grantor = self.grantor_of_role(&of, granted_by.as_ref(), *is_grant)?;
            let each = members.iter().map(|member| Membership {
                of: of.clone(),
                member: member.clone(),
                grantor,
                options: given,
            });
            memberships.extend(each);
        }
        match is_grant {
            true => self.add_memberships(&memberships),
            false => self.drop_memberships(&memberships, *cascade),
        }
    }

    /// Fails if the current role may not give or take membership of a role.
    pub(super) fn check_membership(&mut self, of: &Role, is_grant: bool) -> Result<()> {
        let verb = if is_grant { "grant" } else { "revoke" };
        if is_grant && of.oid == oids::PG_DATABASE_OWNER {
            let message = format!("role \"{}\" cannot have explicit members", of.name);
            return Err(PgError::new(state::INVALID_GRANT_OPERATION, message));
        }
        let current = self.current_role()?;
        let denied = |detail: String| {
            let message = format!("permission denied to {verb} role \"{}\"", of.name);
            Err(PgError::new(state::INSUFFICIENT_PRIVILEGE, message).detail(detail))
        };
        if current.is_super {
            return Ok(());
        }
        if of.is_super {
            return denied(format!(
                "Only roles with the SUPERUSER attribute may {verb} roles with the SUPERUSER attribute."
            ));
        }
        match self.rights().administers(current.oid, of.oid) {
            true => Ok(()),
            false => denied(format!("Only roles with the ADMIN option on role \"{}\" may {verb} this role.", of.name)),
        }
    }

    /// Returns the role in whose name membership of a role is given: one with the ADMIN option.
    pub(super) fn grantor_of_role(&mut self, of: &Role, said: Option<&RoleSpec>, is_grant: bool) -> Result<Oid> {
        let current = self.current_role()?;
        if let Some(said) = said {
            let said = self.role_of(said)?;
            let identity = self.current_identity();
            if !identity.set.has(said.oid) {
                let verb = if is_grant { "grant privileges" } else { "revoke privileges granted by" };
                let message = match is_grant {
                    true => format!("permission denied to {verb} as role \"{}\"", said.name),
                    false => format!("permission denied to {verb} role \"{}\"", said.name),
                };
                let doing = if is_grant { "grant privileges as" } else { "revoke privileges granted by" };
                let detail = format!("Only roles with privileges of role \"{}\" may {doing} this role.", said.name);
                return Err(PgError::new(state::INSUFFICIENT_PRIVILEGE, message).detail(detail));
            }
            if is_grant && said.oid != oids::POSTGRES && !self.has_admin_itself(said.oid, of.oid) {
                let message = format!("permission denied to grant privileges as role \"{}\"", said.name);
                let detail = format!("The grantor must have the ADMIN option on role \"{}\".", of.name);
                return Err(PgError::new(state::INSUFFICIENT_PRIVILEGE, message).detail(detail));
            }
            return Ok(said.oid);
        }
        if current.is_super {
            return Ok(oids::POSTGRES);
        }
        // The nearest role with the option; its rights are the current role's.
        let reached = self.current_identity().set.roles.clone();
        let own = std::iter::once(current.oid).chain(reached);
        Ok(own.into_iter().find(|role| self.has_admin_itself(*role, of.oid)).unwrap_or(current.oid))
    }

    fn has_admin_itself(&self, member: Oid, of: Oid) -> bool {
        self.rights().memberships(member).iter().any(|grant| grant.grantee == of && grant.grantable != 0)
    }

    pub(super) fn add_memberships(&mut self, memberships: &[Membership]) -> Result<()> {
        if memberships.is_empty() {
            return Ok(());
        }
        for Membership { of, member, grantor, options } in memberships {
            check_changeable(member)?;
            let invalid = |message: String| Err(PgError::new(state::INVALID_GRANT_OPERATION, message));
            if member.oid == oids::PG_DATABASE_OWNER {
                return invalid(format!("role \"{}\" cannot be a member of any role", member.name));
            }
            let db = self.database().clone();
            let mut writing = self.write(&db)?;
            for role in [of.oid, member.oid] {
                super::owner::hold_role(&mut writing, role)?;
            }
            let key = AccessKey::member(member.oid);
            let known = writing.access(key)?;
            let reach =
                crate::rights::role::Facts { db: &db, snapshot: &writing.snapshot, database: &self.who.database };
            if reach.reach(of.oid, 0).contains(&member.oid) {
                return invalid(format!("role \"{}\" is a member of role \"{}\"", of.name, member.name));
            }
            if options.admin == Some(true) && reach.gives_admin_back(member.oid, of.oid, *grantor) {
                return invalid("ADMIN option cannot be granted back to your own grantor".to_owned());
            }
            let mut grants = known.and_then(|known| known.grants.clone()).unwrap_or_default();
            let old = grants.iter_mut().find(|grant| (grant.grantee, grant.grantor) == (of.oid, *grantor));
            let bit = |is: bool, bit: u32| if is { bit } else { 0 };
            match old {
                Some(old) => {
                    let before = *old;
                    let keep =
                        |said: Option<bool>, mask: u32| said.map_or(before.privileges & mask, |is| bit(is, mask));
                    old.privileges = MEMBER | keep(options.inherit, INHERIT_OPTION) | keep(options.set, SET_OPTION);
                    old.grantable = options.admin.map_or(before.grantable, |is| bit(is, MEMBER));
                    if *old == before {
                        let grantor = self.rights().roles().name_of(*grantor);
                        let message = format!(
                            "role \"{}\" has already been granted membership in role \"{}\" by role \"{grantor}\"",
                            member.name, of.name
                        );
                        self.skip_notice(super::SUCCESSFUL, message);
                    }
                }
                None => grants.push(AccessGrant {
                    grantee: of.oid,
                    grantor: *grantor,
                    column: 0,
                    privileges: MEMBER
                        | bit(options.inherit.unwrap_or(member.attributes.inherits), INHERIT_OPTION)
                        | bit(options.set.unwrap_or(true), SET_OPTION),
                    grantable: bit(options.admin == Some(true), MEMBER),
                }),
            }
            writing.put_access(key, Some(AccessRecord { owner: 0, grants: Some(grants) }), false)?;
            self.finish(writing)?;
        }
        Ok(())
    }

    pub(super) fn drop_memberships(&mut self, memberships: &[Membership], cascade: bool) -> Result<()> {
        for membership in memberships {
            self.drop_membership(membership, cascade)?;
        }
        Ok(())
    }

    fn drop_membership(&mut self, membership: &Membership, cascade: bool) -> Result<()> {
        let Membership { of, member, grantor, options } = membership;
        check_changeable(member)?;
        let db = self.database().clone();
        let mut writing = self.write(&db)?;
        let key = AccessKey::member(member.oid);
        let mut grants = writing.access(key)?.and_then(|known| known.grants.clone()).unwrap_or_default();
        let Some(at) = grants.iter().position(|grant| (grant.grantee, grant.grantor) == (of.oid, *grantor)) else {
            drop(writing);
            self.take_back();
            let message = format!(
                "role \"{}\" has not been granted membership in role \"{}\" by role \"{}\"",
                member.name,
                of.name,
                self.rights().roles().name_of(*grantor)
            );
            self.tell("WARNING", PgError::new("01000", message));
            return Ok(());
        };
        let before = grants[at];
        match (options.admin, options.inherit, options.set) {
            (None, None, None) => drop(grants.remove(at)),
            (admin, inherit, set) => {
                let grant = &mut grants[at];
                grant.grantable &= if admin.is_some() { 0 } else { MEMBER };
                grant.privileges &=
                    !((u32::from(inherit.is_some()) * INHERIT_OPTION) | (u32::from(set.is_some()) * SET_OPTION));
            }
        }
        let is_lost =
            before.grantable != 0 && !grants.iter().any(|grant| grant.grantee == of.oid && grant.grantable != 0);
        let grants = (!grants.is_empty()).then_some(grants);
        writing.put_access(key, Some(AccessRecord { owner: 0, grants }), false)?;
        self.finish(writing)?;
        match is_lost {
            true => self.drop_dependent(of, member, cascade),
            false => Ok(()),
        }
    }

    /// Ends the memberships that a role has given, which has the ADMIN option no longer.
    fn drop_dependent(&mut self, of: &Role, grantor: &Role, cascade: bool) -> Result<()> {
        self.look_anew();
        let given: Vec<Oid> = {
            let all = self.rights().all_memberships();
            let given = all.filter(|(_, grant)| grant.grantee == of.oid && grant.grantor == grantor.oid);
            given.map(|(member, _)| member).collect()
        };
        if !cascade && !given.is_empty() {
            let error = PgError::new(state::DEPENDENT_OBJECTS_STILL_EXIST, "dependent privileges exist");
            return Err(error.hint("Use CASCADE to revoke them too."));
        }
        for member in given {
            let Some(member) = self.rights().roles().by_oid(member) else { continue };
            let (of, grantor) = (of.clone(), grantor.oid);
            self.drop_membership(&Membership { of, member, grantor, options: MembershipOptions::default() }, true)?;
        }
        Ok(())
    }

    /// Ends all memberships of and in roles that are dropped.
    pub(super) fn forget_members(&mut self, roles: &[Role]) -> Result<()> {
        let is_gone = |oid: Oid| roles.iter().any(|role| role.oid == oid);
        let records = self.catalog.access.all();
        let concerned = records.filter(|(key, access)| {
            key.kind == AccessKind::Member
                && (is_gone(key.of as Oid) || access.grants.iter().flatten().any(|grant| is_gone(grant.grantee)))
        });
        let concerned: Vec<AccessKey> = concerned.map(|(key, _)| *key).collect();
        let db = self.database().clone();
        let mut writing = self.write(&db)?;
        for key in concerned {
            let mut grants = writing.access(key)?.and_then(|known| known.grants.clone()).unwrap_or_default();
            grants.retain(|grant| !is_gone(grant.grantee) && !is_gone(key.of as Oid));
            let grants = (!grants.is_empty()).then_some(grants);
            writing.put_access(key, Some(AccessRecord { owner: 0, grants }), false)?;
        }
        self.finish(writing)
    }
}

/// Fails for the member whose memberships are always the same.
fn check_changeable(member: &Role) -> Result<()> {
    match member.oid {
        MONITOR => Err(PgError::unsupported(format!("a change of the memberships of role \"{}\"", member.name))),
        _ => Ok(()),
    }
}
