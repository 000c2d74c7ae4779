//! The session's plan-cache context: the id under which it shares plans (`instance::plans`).

use crate::instance::plans::Facts;
use crate::session::Session;

impl Session {
    /// Returns the id of the context. A plan bound under another id is not valid here.
    pub fn ground(&mut self) -> u64 {
        if let Some(number) = self.ground {
            return number;
        }
        let number = if self.has_temporary() { self.db.plans.new_ground() } else { self.db.plans.ground(self.facts()) };
        self.ground = Some(number);
        number
    }

    /// MY-4: called before or after a change of anything that binding reads.
    pub(super) fn leave_ground(&mut self) {
        self.ground = None;
    }

    fn facts(&self) -> Facts {
        Facts {
            settings: self.settings.clone(),
            database: self.database.clone(),
            generation: self.standing.generation,
            account: self.standing.account.clone(),
            roles: self.standing.roles.clone(),
            entered_with: self.standing.entered_with,
        }
    }
}
