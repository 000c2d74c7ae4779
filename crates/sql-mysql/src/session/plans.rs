//! The ground of a session: the number under which its plans are shared (`instance::plans`).

use crate::instance::plans::Facts;
use crate::session::Session;

impl Session {
    /// The number of what plans are bound to here: what was bound under another does not hold.
    pub fn ground(&mut self) -> u64 {
        if let Some(number) = self.ground {
            return number;
        }
        let number = if self.has_temporary() { self.db.plans.new_ground() } else { self.db.plans.ground(self.facts()) };
        self.ground = Some(number);
        number
    }

    /// MY-4: something that binding reads is about to be, or has just been, changed.
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
