//! Statements by their first word.

use super::error::Result;
use super::keyword::Kw;
use super::parser::Parser;
use super::tree::*;

impl Parser<'_> {
    /// One statement of a script.
    pub(super) fn statement(&mut self) -> Result<Statement> {
        match self.kw() {
            Kw::SELECT | Kw::WITH | Kw::INSERT | Kw::UPDATE | Kw::DELETE | Kw::VALUES | Kw::TABLE | Kw::MERGE => {
                self.preparable()
            }
            Kw::BEGIN | Kw::START | Kw::COMMIT | Kw::END | Kw::ROLLBACK | Kw::ABORT | Kw::SAVEPOINT | Kw::RELEASE => {
                self.transaction()
            }
            Kw::SET => self.set(),
            Kw::RESET => self.reset(),
            Kw::SHOW => self.show(),
            Kw::CREATE => self.create(),
            Kw::ALTER => self.alter(),
            Kw::DROP => self.drop(),
            Kw::TRUNCATE => self.truncate(),
            Kw::COPY => self.copy(),
            Kw::GRANT => self.grant(),
            Kw::REVOKE => self.revoke(),
            Kw::COMMENT => self.comment(),
            Kw::PREPARE => self.prepare(),
            Kw::EXECUTE => self.execute().map(Statement::Execute),
            Kw::DEALLOCATE => self.deallocate(),
            Kw::DECLARE => self.declare(),
            Kw::FETCH | Kw::MOVE => self.fetch_cursor(),
            Kw::CLOSE => self.close(),
            Kw::EXPLAIN => self.explain(),
            Kw::VACUUM | Kw::ANALYZE | Kw::ANALYSE => self.vacuum(),
            Kw::LOCK => self.lock(),
            Kw::DISCARD => self.discard(),
            Kw::LISTEN | Kw::UNLISTEN | Kw::NOTIFY => self.channel(),
            Kw::DO => self.do_block(),
            Kw::CALL => self.call_statement(),
            Kw::REINDEX => self.reindex(),
            Kw::CLUSTER => self.cluster(),
            Kw::REFRESH => self.refresh(),
            Kw::CHECKPOINT => {
                self.take();
                Ok(Statement::Checkpoint)
            }
            Kw::LOAD => {
                self.take();
                self.string().map(Statement::Load)
            }
            Kw::REASSIGN => {
                self.take();
                self.expect_words(&[Kw::OWNED, Kw::BY])?;
                let roles = self.roles()?;
                self.expect_word(Kw::TO)?;
                Ok(Statement::ReassignOwned(ReassignOwnedStmt { roles, to: self.role()? }))
            }
            _ => self.other_statement(),
        }
    }

    /// A query in parentheses, or a statement that is refused by name.
    fn other_statement(&mut self) -> Result<Statement> {
        if self.kind() == super::lexer::Kind::Open {
            return self.preparable();
        }
        for (first, second, name) in
            [(Kw::SECURITY, Kw::LABEL, "SECURITY LABEL"), (Kw::IMPORT, Kw::FOREIGN, "IMPORT FOREIGN SCHEMA")]
        {
            if self.word(first) {
                return Err(if self.kw() == second { self.unsupported(name) } else { self.error() });
            }
        }
        Err(self.error())
    }
}
