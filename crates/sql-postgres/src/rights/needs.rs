//! The privileges that a plan needs: gathered while a statement is bound, and checked when it is.

use crate::error::{PgError, Result, state};
use crate::rights::object::Object;
use crate::rights::privilege::{INSERT, Privileges, REFERENCES, SELECT, UPDATE};
use crate::rights::role::{Facts, RoleSet};
use crate::types::oid::Oid;

/// The columns that a statement names for one privilege, by their slots and 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NeededColumns {
    pub is_needed: bool,
    pub columns: Vec<u32>,
}

impl NeededColumns {
    pub fn add(&mut self, column: u32) {
        self.is_needed = true;
        if !self.columns.contains(&column) {
            self.columns.push(column);
        }
    }
}

/// The privileges that one role needs on one relation.
#[derive(Clone, Debug)]
pub struct Need {
    pub object: Object,
    /// The owner of the view through which the relation is reached; `None`: the current role.
    pub role: Option<Oid>,
    /// Privileges that only the whole relation has.
    pub whole: Privileges,
    pub selected: NeededColumns,
    pub inserted: NeededColumns,
    pub updated: NeededColumns,
    /// The columns that the relation has; none for a view.
    pub columns: Vec<u32>,
    /// The need of the view through which the columns are read: they are needed if it is read itself.
    pub follows: Option<usize>,
}

/// A relation of the system that a statement reads: the role as in `Need`, its schema and its name.
pub type SystemNeed = (Option<Oid>, &'static str, &'static str);

impl Need {
    pub fn new(object: Object, role: Option<Oid>, columns: Vec<u32>) -> Need {
        Need {
            object,
            role,
            whole: 0,
            selected: NeededColumns::default(),
            inserted: NeededColumns::default(),
            updated: NeededColumns::default(),
            columns,
            follows: None,
        }
    }

    /// Adds what another part of the statement needs of the same relation.
    pub fn merge(&mut self, other: Need) {
        self.whole |= other.whole;
        let pairs = [
            (&mut self.selected, other.selected),
            (&mut self.inserted, other.inserted),
            (&mut self.updated, other.updated),
        ];
        for (own, other) in pairs {
            own.is_needed |= other.is_needed;
            other.columns.into_iter().for_each(|column| own.add(column));
        }
    }

    fn is_met(&self, facts: &Facts<'_>, set: &RoleSet) -> bool {
        let has = facts.privileges(set, &self.object);
        if self.whole & !has != 0 {
            return false;
        }
        let of_columns = [(SELECT, &self.selected), (INSERT, &self.inserted), (UPDATE, &self.updated)];
        of_columns.into_iter().all(|(privilege, needed)| {
            let may = |column: &u32| facts.column_privileges(set, &self.object, *column) & privilege != 0;
            !needed.is_needed
                || has & privilege != 0
                || match needed.columns.is_empty() {
                    // Some column must do where none is named.
                    true => self.columns.iter().any(may),
                    false => needed.columns.iter().all(may),
                }
        })
    }
}

/// Fails for the first need that is not met: PostgreSQL checks views when it plans, and tables when the plan begins.
pub fn check(facts: &Facts<'_>, current: &RoleSet, needs: &[Need]) -> Result<()> {
    let is_view = |need: &&Need| need.object.kind == "view";
    for need in needs.iter().filter(is_view).chain(needs.iter().filter(|need| !is_view(need))) {
        let own;
        let set = match need.role {
            None => current,
            Some(role) => {
                own = facts.role_set(role);
                &own
            }
        };
        if !set.is_super && !need.is_met(facts, set) {
            return Err(need.object.denied());
        }
    }
    Ok(())
}

/// Relations of the system that show what ordinary roles must not see.
pub const SECRET: [(&str, &str); 6] = [
    ("pg_authid", "table"),
    ("pg_largeobject", "table"),
    ("pg_shadow", "view"),
    ("pg_statistic", "table"),
    ("pg_user_mapping", "table"),
    ("pg_subscription", "table"),
];

/// Fails if a role may not read one of these relations of the system.
pub fn check_system(facts: &Facts<'_>, current: &RoleSet, needs: &[SystemNeed]) -> Result<()> {
    for (role, schema, name) in needs {
        let secret = SECRET.iter().find(|(known, _)| known == name && *schema == "pg_catalog");
        let Some((name, kind)) = secret else { continue };
        let is_super = role.map_or(current.is_super, |role| facts.role_set(role).is_super);
        if !is_super {
            let message = format!("permission denied for {kind} {name}");
            return Err(PgError::new(state::INSUFFICIENT_PRIVILEGE, message));
        }
    }
    Ok(())
}

/// Returns whether a role may refer to these columns of a table by a foreign key.
pub fn may_refer(facts: &Facts<'_>, set: &RoleSet, object: &Object, columns: &[u32]) -> bool {
    let may = |column: &u32| facts.column_privileges(set, object, *column) & REFERENCES != 0;
    facts.privileges(set, object) & REFERENCES != 0 || (!columns.is_empty() && columns.iter().all(may))
}
