//! Runs an INSERT of many rows in pieces: one statement for the client, one tree and one plan at a time.
//!
//! The first piece's metadata locks are held to the end, so the tables do not change. Views have no metadata lock: a
//! piece that resolves to tables other than the first piece's fails the statement.

use std::sync::Arc;

use crate::error::{self, Result};
use crate::parse::bulk::Bulk;
use crate::parse::statement::Statement;
use crate::parse::{self, Parsed};
use crate::scalar::state::StateOf as _;
use crate::session::{Outcome, Session};
use query::catalog::table::Table;

impl Session {
    /// Returns None if the statement must be parsed as a whole, which also gives the best syntax errors.
    pub(super) fn execute_bulk(&mut self, sql: &str) -> Option<Result<Outcome>> {
        let bulk = Bulk::of(sql, self.ctx.sql_mode())?;
        let mut statements = bulk.statements();
        let first = parse::parse_unless(&statements.next()?, self.ctx.sql_mode(), &*self.core.cancel).ok()?;
        let is_plain = matches!(first.statement, Statement::Insert(_)) && first.parameters == 0;
        is_plain.then(|| self.insert_pieces(&first, &mut statements))
    }

    fn insert_pieces(&mut self, first: &Parsed, rest: &mut dyn Iterator<Item = String>) -> Result<Outcome> {
        // Pieces already consumed cannot be run again, so the plan must not suspend. Its tables are locked before the second piece is taken.
        self.suspension.is_allowed = false;
        self.ctx.warnings.clear();
        self.check_password_age(&first.statement)?;
        let compiled = Arc::new(self.compile(&first.statement, (&[], &[]))?);
        let mut again = |session: &mut Session| session.compile(&first.statement, (&[], &[])).ok().map(Arc::new);
        self.run_pieces(&compiled, Vec::new(), &mut again, &mut |session, of| {
            let Some(text) = rest.next() else { return Ok(None) };
            let piece = parse::parse_unless(&text, session.ctx.sql_mode(), &*session.core.cancel)?;
            let compiled = session.compile(&piece.statement, (&[], &[]))?;
            if !is_same(&of.bindings.locked, &compiled.bindings.locked) {
                return Err(error::TABLE_DEF_CHANGED.bare());
            }
            Ok(Some(Arc::new(compiled)))
        })
    }
}

/// Returns whether both lists have the same tables in the same versions.
fn is_same(one: &[Arc<Table>], other: &[Arc<Table>]) -> bool {
    let same = |(one, other): (&Arc<Table>, &Arc<Table>)| one.id == other.id && one.version == other.version;
    one.len() == other.len() && one.iter().zip(other).all(same)
}
