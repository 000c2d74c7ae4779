//! The session's plan-cache context: the number under which it shares plans (`instance::plans`).

use crate::instance::plans::Facts;
use crate::session::Session;

impl Session {
    /// Returns the number of the context. A plan bound in another context is not valid here.
    pub fn plan_context(&mut self) -> u64 {
        if let Some(number) = self.plan_context {
            return number;
        }
        let number = match self.core.temporary.is_empty() {
            true => self.db.plans.context(self.facts()),
            false => self.db.plans.private_context(),
        };
        self.plan_context = Some(number);
        number
    }

    /// MY-4: called before or after a change of anything that binding reads.
    pub(super) fn leave_plan_context(&mut self) {
        self.plan_context = None;
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
