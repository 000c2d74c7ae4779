//! Runs an INSERT of many rows piece by piece: one statement to everybody, one tree and one plan at a time.
//!
//! The gates of the first piece are held to the end, so the tables stay what they are; views have no gate, and a piece that would go elsewhere than the first ends the statement.

use std::sync::Arc;

use crate::error::{self, Result};
use crate::parse::bulk::Bulk;
use crate::parse::statement::Statement;
use crate::parse::{self, Parsed};
use crate::scalar::state::StateOf as _;
use crate::session::{Outcome, Session};
use query::catalog::table::Table;

impl Session {
    /// None: it is to be parsed as a whole, which also tells best what is wrong with it.
    pub(super) fn execute_bulk(&mut self, sql: &str) -> Option<Result<Outcome>> {
        let bulk = Bulk::of(sql, self.ctx.sql_mode())?;
        let mut statements = bulk.statements();
        let first = parse::parse_unless(&statements.next()?, self.ctx.sql_mode(), &*self.cancel).ok()?;
        let is_plain = matches!(first.statement, Statement::Insert(_)) && first.parameters == 0;
        is_plain.then(|| self.insert_pieces(&first, &mut statements))
    }

    fn insert_pieces(&mut self, first: &Parsed, rest: &mut dyn Iterator<Item = String>) -> Result<Outcome> {
        // It would begin anew with the first piece, and nobody has the others any more.
        self.leaving.is_allowed = false;
        self.ctx.warnings.clear();
        self.check_password_age(&first.statement)?;
        let compiled = Arc::new(self.compile(&first.statement, (&[], &[]))?);
        let mut again = |session: &mut Session| session.compile(&first.statement, (&[], &[])).ok().map(Arc::new);
        self.run_pieces(&compiled, Vec::new(), &mut again, &mut |session, of| {
            let Some(text) = rest.next() else { return Ok(None) };
            let piece = parse::parse_unless(&text, session.ctx.sql_mode(), &*session.cancel)?;
            let compiled = session.compile(&piece.statement, (&[], &[]))?;
            if !is_same(&of.gates, &compiled.gates) {
                return Err(error::TABLE_DEF_CHANGED.bare());
            }
            Ok(Some(Arc::new(compiled)))
        })
    }
}

/// Are these the same tables, in the same state?
fn is_same(one: &[Arc<Table>], other: &[Arc<Table>]) -> bool {
    let same = |(one, other): (&Arc<Table>, &Arc<Table>)| one.id == other.id && one.version == other.version;
    one.len() == other.len() && one.iter().zip(other).all(same)
}
