//! Lists of grants, changed as PostgreSQL changes an `aclitem[]`: the order of entries, whose grants depend on whose, and the owner who always may grant.

use query::catalog::access::AccessGrant;

use crate::error::{PgError, Result, state};
use crate::rights::privilege::{ObjectClass, Privileges};
use crate::rights::role::{PUBLIC, RoleSet};
use crate::types::oid::Oid;

/// Returns the grants of an object on which none was made.
pub fn first_grants(class: ObjectClass, owner: Oid, of_public: Privileges) -> Vec<AccessGrant> {
    let entry = |grantee, privileges| AccessGrant { grantee, grantor: owner, column: 0, privileges, grantable: 0 };
    let mut grants = Vec::new();
    if of_public != 0 {
        grants.push(entry(PUBLIC, of_public));
    }
    if class != ObjectClass::Column {
        grants.push(entry(owner, class.all()));
    }
    grants
}

/// Returns the privileges that a role has by these grants, of a column or (0) of the whole object.
pub fn privileges_of(set: &RoleSet, grants: &[AccessGrant], column: u32) -> Privileges {
    let is_own = |grant: &&AccessGrant| {
        grant.column == column && (grant.grantee == PUBLIC || set.roles.contains(&grant.grantee))
    };
    grants.iter().filter(is_own).fold(0, |all, grant| all | grant.privileges)
}

/// Returns the privileges that a role may give on: the owner all of them.
pub fn options_of(set: &RoleSet, owner: Oid, all: Privileges, grants: &[AccessGrant], column: u32) -> Privileges {
    if set.has(owner) {
        return all;
    }
    let is_own = |grant: &&AccessGrant| grant.column == column && set.roles.contains(&grant.grantee);
    grants.iter().filter(is_own).fold(0, |all, grant| all | grant.grantable)
}

/// Returns the role that grants on behalf of the current one, and the privileges that it may give of those that are wanted.
pub fn grantor_of(
    role: Oid,
    set: &RoleSet,
    owner: Oid,
    wanted: Privileges,
    grants: &[AccessGrant],
    column: u32,
) -> (Oid, Privileges) {
    if set.has(owner) {
        return (owner, wanted);
    }
    let options = |role: Oid| {
        let own = grants.iter().filter(|grant| grant.column == column && grant.grantee == role);
        own.fold(0, |all, grant| all | grant.grantable) & wanted
    };
    let mut best = (role, options(role));
    for other in set.roles.iter().filter(|other| **other != role) {
        let found = options(*other);
        if found.count_ones() > best.1.count_ones() {
            best = (*other, found);
        }
    }
    best
}

/// A change of one grantee's privileges.
#[derive(Clone, Copy, Debug)]
pub struct AclChange {
    pub is_grant: bool,
    pub grantee: Oid,
    pub grantor: Oid,
    pub column: u32,
    pub privileges: Privileges,
    /// WITH GRANT OPTION, or GRANT OPTION FOR.
    pub option: bool,
}

/// Changes a list of grants. A revoked grant option takes back what was granted by it, if `cascade`, and is refused otherwise.
pub fn change(grants: &mut Vec<AccessGrant>, change: AclChange, owner: Oid, cascade: bool) -> Result<()> {
    let AclChange { is_grant, grantee, grantor, column, privileges, option } = change;
    let is_it = |grant: &AccessGrant| (grant.grantee, grant.grantor, grant.column) == (grantee, grantor, column);
    if is_grant && option && grantee != owner {
        check_circle(grants, change, owner)?;
    }
    let at = match grants.iter().position(is_it) {
        Some(at) => at,
        None if !is_grant => return Ok(()),
        None => {
            grants.push(AccessGrant { grantee, grantor, column, privileges: 0, grantable: 0 });
            grants.len() - 1
        }
    };
    let entry = &mut grants[at];
    let before = entry.grantable;
    match (is_grant, option) {
        (true, true) => {
            (entry.privileges, entry.grantable) = (entry.privileges | privileges, entry.grantable | privileges)
        }
        (true, false) => entry.privileges |= privileges,
        (false, true) => entry.grantable &= !privileges,
        (false, false) => {
            (entry.privileges, entry.grantable) = (entry.privileges & !privileges, entry.grantable & !privileges);
        }
    }
    let lost = before & !entry.grantable;
    if entry.privileges == 0 && entry.grantable == 0 {
        grants.remove(at);
    }
    match lost != 0 && grantee != owner {
        true => revoke_dependent(grants, grantee, column, lost, owner, cascade),
        false => Ok(()),
    }
}

/// Takes back what a role has granted by options that it has no longer.
fn revoke_dependent(
    grants: &mut Vec<AccessGrant>,
    role: Oid,
    column: u32,
    lost: Privileges,
    owner: Oid,
    cascade: bool,
) -> Result<()> {
    let of_role = |grant: &&AccessGrant| grant.grantee == role && grant.column == column;
    let still = grants.iter().filter(of_role).fold(0, |all, grant| all | grant.grantable);
    let lost = lost & !still;
    if lost == 0 {
        return Ok(());
    }
    let is_dependent =
        |grant: &AccessGrant| grant.grantor == role && grant.column == column && grant.privileges & lost != 0;
    while let Some(found) = grants.iter().copied().find(is_dependent) {
        if !cascade {
            let error = PgError::new(state::DEPENDENT_OBJECTS_STILL_EXIST, "dependent privileges exist");
            return Err(error.hint("Use CASCADE to revoke them too."));
        }
        let (grantee, grantor) = (found.grantee, found.grantor);
        let revoked = AclChange { is_grant: false, grantee, grantor, column, privileges: lost, option: false };
        change(grants, revoked, owner, true)?;
    }
    Ok(())
}

/// Fails if a role would get its grant options from itself.
fn check_circle(grants: &[AccessGrant], change: AclChange, owner: Oid) -> Result<()> {
    if change.grantor == owner {
        return Ok(());
    }
    // Without the grantee's options, the grantor must still have the option to give.
    let mut left = grants.to_vec();
    let is_given = |grant: &AccessGrant| {
        grant.grantee == change.grantee && grant.column == change.column && grant.grantable & change.privileges != 0
    };
    while let Some(found) = left.iter().copied().find(is_given) {
        let (grantee, grantor, column) = (found.grantee, found.grantor, found.column);
        let revoked =
            AclChange { is_grant: false, grantee, grantor, column, privileges: found.grantable, option: true };
        self::change(&mut left, revoked, owner, true)?;
    }
    let of_grantor = |grant: &&AccessGrant| grant.grantee == change.grantor && grant.column == change.column;
    let still = left.iter().filter(of_grantor).fold(0, |all, grant| all | grant.grantable);
    match change.privileges & !still {
        0 => Ok(()),
        _ => Err(PgError::new(
            state::INVALID_GRANT_OPERATION,
            "grant options cannot be granted back to your own grantor",
        )),
    }
}

/// Puts a new owner in the place of the old one.
pub fn change_owner(grants: &mut Vec<AccessGrant>, old: Oid, new: Oid) {
    let moved = |role: Oid| if role == old { new } else { role };
    let mut changed: Vec<AccessGrant> = Vec::with_capacity(grants.len());
    for grant in &*grants {
        let (grantee, grantor) = (moved(grant.grantee), moved(grant.grantor));
        let known = changed
            .iter_mut()
            .find(|known| (known.grantee, known.grantor, known.column) == (grantee, grantor, grant.column));
        match known {
            Some(known) => {
                known.privileges |= grant.privileges;
                known.grantable |= grant.grantable;
            }
            None => changed.push(AccessGrant { grantee, grantor, ..*grant }),
        }
    }
    *grants = changed;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rights::privilege::{INSERT, SELECT, letters};

    const OWNER: Oid = 1;

    fn grant(grantor: Oid, grantee: Oid, privileges: Privileges, option: bool) -> AclChange {
        AclChange { is_grant: true, grantee, grantor, column: 0, privileges, option }
    }

    fn shown(grants: &[AccessGrant]) -> String {
        let entry = |grant: &AccessGrant| {
            format!("{}={}/{}", grant.grantee, letters(grant.privileges, grant.grantable), grant.grantor)
        };
        grants.iter().map(entry).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_revoked_option_takes_back_what_was_granted_by_it() {
        let mut grants = first_grants(ObjectClass::Relation, OWNER, 0);
        for step in [grant(1, 2, SELECT | INSERT, true), grant(2, 3, SELECT, true), grant(3, 4, SELECT, false)] {
            change(&mut grants, step, OWNER, false).unwrap();
        }
        assert_eq!(shown(&grants), "1=arwdDxt/1 2=a*r*/1 3=r*/2 4=r/3");
        let revoke = AclChange { is_grant: false, ..grant(1, 2, SELECT, true) };
        let refused = change(&mut grants.clone(), revoke, OWNER, false).unwrap_err();
        assert_eq!(refused.message, "dependent privileges exist");
        change(&mut grants, revoke, OWNER, true).unwrap();
        assert_eq!(shown(&grants), "1=arwdDxt/1 2=a*r/1");
    }

    #[test]
    fn an_option_that_comes_from_elsewhere_too_keeps_what_was_granted() {
        let mut grants = first_grants(ObjectClass::Relation, OWNER, 0);
        for step in [
            grant(1, 2, SELECT, true),
            grant(1, 3, SELECT, true),
            grant(2, 4, SELECT, true),
            grant(3, 4, SELECT, true),
            grant(4, 5, SELECT, false),
        ] {
            change(&mut grants, step, OWNER, false).unwrap();
        }
        let revoke = AclChange { is_grant: false, ..grant(2, 4, SELECT, true) };
        change(&mut grants, revoke, OWNER, false).unwrap();
        assert!(shown(&grants).ends_with("4=r/2 4=r*/3 5=r/4"), "{}", shown(&grants));
    }

    #[test]
    fn options_are_not_given_back_to_their_grantor() {
        let mut grants = first_grants(ObjectClass::Relation, OWNER, 0);
        change(&mut grants, grant(1, 2, SELECT, true), OWNER, false).unwrap();
        change(&mut grants, grant(2, 3, SELECT, true), OWNER, false).unwrap();
        assert!(change(&mut grants, grant(3, 2, SELECT, true), OWNER, false).is_err());
        change(&mut grants, grant(3, 2, SELECT, false), OWNER, false).unwrap();
    }

    #[test]
    fn a_new_owner_takes_the_place_of_the_old_one() {
        let mut grants = first_grants(ObjectClass::Relation, OWNER, 0);
        change(&mut grants, grant(1, 2, SELECT, false), OWNER, false).unwrap();
        change_owner(&mut grants, 1, 2);
        assert_eq!(shown(&grants), "2=arwdDxt/2");
    }
}
