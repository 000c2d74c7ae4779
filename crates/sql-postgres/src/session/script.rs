//! The simple protocol: a text of any number of statements, which are one transaction unless they say otherwise.

use std::sync::Arc;

use syntax::postgres::tree::RawStatement;

use crate::bind::{Bound, BoundStatement};
use crate::error::Result;
use crate::session::cursor::{leaves_cursor, leaves_cursors};
use crate::session::run::Delivery;
use crate::session::statement::{Prepared, has_plan};
use crate::session::suspension::Restart;
use crate::session::transact::Block;
use crate::session::{Outcome, Session};
use crate::value::Value;

/// The statements of a text that are still to run.
#[derive(Debug)]
pub struct Script {
    text: Arc<str>,
    work: Work,
    /// The statements that have begun.
    begun: usize,
}

#[derive(Debug)]
enum Work {
    /// The text has no statement.
    Empty,
    Statements(Vec<RawStatement>),
    /// One statement, whose plan was found by its text without literals.
    Planned(Arc<Prepared>, Vec<Value>),
}

impl Session {
    /// Begins a text of the simple protocol. An error of its syntax refuses it whole.
    pub fn simple(&mut self, text: &str) -> Result<Script> {
        self.statements.remove("");
        let leaves_cursors = leaves_cursors(text);
        let begun = self.begin_text(text, leaves_cursors);
        let work = begun.and_then(|()| {
            if !leaves_cursors && let Some((prepared, values)) = self.known_text(text) {
                return Ok(Work::Planned(prepared, values));
            }
            let statements = self.parse_text(text)?;
            Ok(if statements.is_empty() { Work::Empty } else { Work::Statements(statements) })
        });
        match work {
            Ok(work) => Ok(Script { text: text.into(), work, begun: 0 }),
            Err(error) => Err(self.fail_with(error)),
        }
    }

    /// Runs the next statement of a script. The result before it must have been read to its end. Returns `None` at the end of the script.
    pub fn next_of(&mut self, script: &mut Script) -> Result<Option<Outcome>> {
        let nth = script.begun;
        script.begun += 1;
        self.may_restart(&script.text);
        match &script.work {
            Work::Empty if nth == 0 => Ok(Some(Outcome::Empty)),
            Work::Planned(prepared, values) if nth == 0 => {
                self.transaction.is_last = true;
                let outcome = self.run_known(prepared, values.clone());
                self.ran(outcome, |_| Restart::Known(prepared.clone(), values.clone())).map(Some)
            }
            Work::Statements(statements) if nth < statements.len() => {
                if nth > 0 {
                    let begun = self.begin_text(&script.text, leaves_cursor(&statements[nth].statement));
                    begun.map_err(|error| self.fail_with(error))?;
                }
                let (raw, count) = (&statements[nth], statements.len());
                self.transaction.is_last = nth + 1 == count;
                self.is_script = count > 1;
                let outcome = self.run_raw(raw, &script.text);
                self.ran(outcome, |_| Restart::Raw(Box::new(raw.clone()), script.text.clone())).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Returns whether the statement is alone in its query message or pipeline so far.
    pub(super) fn is_alone(&self) -> bool {
        !self.is_script
    }

    pub(super) fn run_raw(&mut self, raw: &RawStatement, text: &Arc<str>) -> Result<Outcome> {
        if has_plan(&raw.statement) {
            self.check_not_aborted()?;
            self.need_block();
            let bound = self.bind_raw(raw, text, &[], &[])?;
            if !bound.parameter_types.is_empty() {
                return Err(super::run::no_parameter(text, raw));
            }
            let delivery = Delivery::text(&bound.fields, super::run::tag_of(&raw.statement));
            let mut again = |session: &mut Session| session.bind_raw(raw, text, &[], &[]);
            return self.run_described(&bound.statement, Vec::new(), delivery, &mut again);
        }
        self.command(raw, text)
    }

    pub(super) fn run_known(&mut self, prepared: &Arc<Prepared>, values: Vec<Value>) -> Result<Outcome> {
        self.check_not_aborted()?;
        self.is_script = false;
        self.need_block();
        debug_assert!(self.transaction.block != Block::None);
        let tag = prepared.raw.as_ref().map_or(super::run::TagKind::Select, |raw| super::run::tag_of(&raw.statement));
        let (plan, delivery) = match self.kept_plan(prepared) {
            Some(plan) => (plan, Delivery::new(prepared.columns(0), tag)),
            None => {
                // Definitions may have changed since the text was looked up, or while the statement was suspended.
                let bound = self.bind_anew(prepared, &values)?;
                let delivery = Delivery::text(&bound.fields, tag);
                (bound.statement, delivery)
            }
        };
        let mut again = |session: &mut Session| session.bind_anew(prepared, &[]);
        self.run_described(&plan, values, delivery, &mut again)
    }

    /// Runs a plan whose columns the client has not been told yet: if its tables have changed while it waited for them, the columns are those of the new
    /// definitions.
    fn run_described(
        &mut self,
        plan: &Arc<BoundStatement>,
        values: Vec<Value>,
        mut delivery: Delivery,
        again: &mut dyn FnMut(&mut Session) -> Result<Bound>,
    ) -> Result<Outcome> {
        let tag = delivery.tag;
        let mut anew = |session: &mut Session| {
            let bound = again(session)?;
            delivery = Delivery::text(&bound.fields, tag);
            Ok(bound.statement)
        };
        let statement = self.begin_run(plan, values, tag, &mut anew)?;
        self.perform(&statement, delivery)
    }
}
