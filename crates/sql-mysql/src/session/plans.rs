//! The session's plan-cache context: the number under which it shares plans (`instance::plans`).

use crate::instance::plans::PlanContext;
use crate::session::Session;

impl Session {
    /// Returns the number of the context. A plan bound in another context is not valid here.
    pub fn context_id(&mut self) -> u64 {
        if let Some(number) = self.context_id {
            return number;
        }
        let number = match self.core.temporary.is_empty() {
            true => self.db.plans.context(self.plan_context()),
            false => self.db.plans.private_context(),
        };
        self.context_id = Some(number);
        number
    }

    /// MY-4: called before or after a change of anything that binding reads.
    pub(super) fn leave_context(&mut self) {
        self.context_id = None;
    }

    fn plan_context(&self) -> PlanContext {
        PlanContext {
            settings: self.settings.clone(),
            database: self.database.clone(),
            generation: self.account_state.generation,
            account: self.account_state.account.clone(),
            roles: self.account_state.roles.clone(),
            entered_with: self.account_state.entered_with,
        }
    }
}
