//! Definitions: CREATE, ALTER and DROP of databases, schemas, tables, indexes, sequences and views.
//!
//! PS-3: a change of definitions is a part of the session's transaction, as a change of rows is. Each statement takes its locks, begins a `query::catalog::Writing` in the transaction, and leaves its changes there; until the commit only the session sees them.

mod alter;
mod column;
mod comment;
mod composite;
mod create_as;
mod create_table;
mod default_privileges;
mod domain;
mod drop;
mod foreign;
mod gin;
mod grant;
pub(crate) mod hidden_column;
pub(crate) mod index;
mod like;
mod maintain;
pub mod materialized;
mod membership;
mod moved_names;
pub mod names;
pub mod object_name;
mod owned;
mod owner;
mod rebuild;
mod rename;
mod role;
mod schema;
mod sequence;
mod session_default;
mod set_schema;
mod source;
mod temporary;
mod truncate;
mod type_dependents;
mod user_type;
mod view;

use std::sync::Arc;

use datum::Collation;
use engine::rows::Isolation;
use query::catalog::table_lock::TableMode;
use query::catalog::{Snapshot, Writing};
use query::exec::host::host;
use query::session::definitions::RelatedTables;
use syntax::postgres::tree::{ObjectName, ObjectType, RawStatement, Statement};

use crate::error::{PgError, Result, SqlState, state};
use crate::instance::database::Database;
use crate::session::Session;

/// The collation that a database made here gives to tables of other dialects: by bytes.
pub const DATABASE_COLLATION: Collation = Collation::Binary;

pub use index::is_shown;

/// The SQLSTATE of messages that are no errors.
const SUCCESSFUL: SqlState = "00000";

impl Session {
    /// Runs a statement that changes definitions, and returns its tag.
    pub(crate) fn define(&mut self, statement: &Statement, raw: &RawStatement, text: &Arc<str>) -> Result<String> {
        let done = self.define_in_transaction(statement, raw, text);
        self.take_back();
        done
    }

    fn define_in_transaction(&mut self, statement: &Statement, raw: &RawStatement, text: &Arc<str>) -> Result<String> {
        let tag = match statement {
            Statement::CreateTable(create) => {
                self.begin_definition("CREATE TABLE")?;
                self.create_table(create, text)?;
                "CREATE TABLE"
            }
            Statement::CreateTableAs(create) => return self.create_table_as(create, raw, text),
            Statement::Select(query) => return self.select_into(query, raw, text),
            Statement::CreateIndex(create) => {
                // The index is made under the table's lock in any case.
                if create.concurrently {
                    self.forbid_block("CREATE INDEX CONCURRENTLY")?;
                }
                self.begin_definition("CREATE INDEX")?;
                self.create_index(create, text)?;
                "CREATE INDEX"
            }
            Statement::CreateSequence(create) => {
                self.begin_definition("CREATE SEQUENCE")?;
                self.create_sequence(create)?;
                "CREATE SEQUENCE"
            }
            Statement::AlterSequence(alter) => {
                self.begin_definition("ALTER SEQUENCE")?;
                self.alter_sequence(alter)?;
                "ALTER SEQUENCE"
            }
            Statement::CreateView(create) => {
                self.begin_definition("CREATE VIEW")?;
                self.create_view(create, text)?;
                "CREATE VIEW"
            }
            Statement::CreateSchema(create) => {
                self.begin_definition("CREATE SCHEMA")?;
                self.create_schema(create, raw, text)?;
                "CREATE SCHEMA"
            }
            Statement::CreateDatabase(create) => {
                self.forbid_block("CREATE DATABASE")?;
                self.begin_definition("CREATE DATABASE")?;
                self.create_database(create)?;
                "CREATE DATABASE"
            }
            Statement::DropDatabase(drop) => {
                self.forbid_block("DROP DATABASE")?;
                self.begin_definition("DROP DATABASE")?;
                self.drop_database(drop)?;
                "DROP DATABASE"
            }
            Statement::CreateEnum(create) => {
                self.begin_definition("CREATE TYPE")?;
                self.create_enum(create)?;
                "CREATE TYPE"
            }
            Statement::CreateComposite(create) => {
                self.begin_definition("CREATE TYPE")?;
                self.create_composite(create, text)?;
                "CREATE TYPE"
            }
            Statement::AlterComposite(alter) => {
                self.begin_definition("ALTER TYPE")?;
                self.alter_composite(alter, text)?;
                "ALTER TYPE"
            }
            Statement::CreateDomain(create) => {
                self.begin_definition("CREATE DOMAIN")?;
                self.create_domain(create, text)?;
                "CREATE DOMAIN"
            }
            Statement::AlterDomain(alter) => {
                self.begin_definition("ALTER DOMAIN")?;
                self.alter_domain(alter, text)?;
                "ALTER DOMAIN"
            }
            Statement::AlterEnum(alter) => {
                self.begin_definition("ALTER TYPE")?;
                self.alter_enum(alter)?;
                "ALTER TYPE"
            }
            Statement::AlterObjectSchema(alter) => {
                if let ObjectName::Relation(kind, name) = &alter.object {
                    return self.set_schema(*kind, name, alter);
                }
                let tag = match &alter.object {
                    ObjectName::Qualified(ObjectType::Domain, _) => "ALTER DOMAIN",
                    ObjectName::Qualified(ObjectType::Type, _) => "ALTER TYPE",
                    _ => return Err(crate::session::refused(statement)),
                };
                self.begin_definition(tag)?;
                self.set_schema_of_type(alter)?;
                tag
            }
            Statement::RefreshMaterializedView(refresh) => {
                self.begin_definition("REFRESH MATERIALIZED VIEW")?;
                self.refresh_materialized_view(refresh)?;
                "REFRESH MATERIALIZED VIEW"
            }
            Statement::Reindex(reindex) => {
                self.reindex(reindex)?;
                "REINDEX"
            }
            Statement::AlterTable(alter) => return self.alter_table(alter, text),
            Statement::AlterOwner(alter) => self.alter_owner(alter)?,
            Statement::Rename(rename) => return self.rename(rename),
            Statement::Drop(drop) => return self.drop_objects(drop),
            Statement::Truncate(truncate) => {
                self.truncate(truncate)?;
                "TRUNCATE TABLE"
            }
            Statement::Comment(comment) => {
                self.comment(comment)?;
                "COMMENT"
            }
            Statement::Grant(grant) => {
                self.grant(grant)?;
                if grant.is_grant { "GRANT" } else { "REVOKE" }
            }
            Statement::GrantRole(grant) => {
                self.grant_role(grant)?;
                if grant.is_grant { "GRANT ROLE" } else { "REVOKE ROLE" }
            }
            Statement::CreateRole(create) => {
                self.create_role(create, text)?;
                "CREATE ROLE"
            }
            Statement::AlterRole(alter) => {
                self.alter_role(alter)?;
                "ALTER ROLE"
            }
            Statement::AlterDefaultPrivileges(alter) => {
                self.alter_default_privileges(alter, text)?;
                "ALTER DEFAULT PRIVILEGES"
            }
            Statement::AlterRoleSet(alter) => {
                self.alter_role_set(alter)?;
                "ALTER ROLE"
            }
            Statement::AlterDatabaseSet(alter) => {
                self.alter_database_set(alter)?;
                "ALTER DATABASE"
            }
            Statement::DropRole(drop) => {
                self.drop_role(drop)?;
                "DROP ROLE"
            }
            Statement::ReassignOwned(reassign) => {
                self.reassign_owned(reassign)?;
                "REASSIGN OWNED"
            }
            Statement::DropOwned(drop) => {
                self.drop_owned(drop)?;
                "DROP OWNED"
            }
            other => return Err(crate::session::refused(other)),
        };
        Ok(tag.to_owned())
    }

    /// Begins a statement that changes definitions, in the session's transaction (PS-3).
    fn begin_definition(&mut self, what: &str) -> Result<()> {
        self.check_writable(what)?;
        self.begin_change_of_definitions()
    }

    /// Takes the locks of tables for a change in a mode, which the transaction holds to its end, and begins it. `needs` is evaluated again once they are held. Waits for the rollback of recovered transactions in changed tables.
    fn lock_and_write<'c>(
        &mut self,
        db: &'c Database,
        mode: TableMode,
        needs: impl Fn(&Snapshot) -> Result<RelatedTables>,
    ) -> Result<Writing<'c>> {
        for _ in 0..100 {
            self.refresh();
            let related = needs(&self.shared_definitions())?;
            self.lock_definitions(&related, mode)?;
            self.refresh();
            let now = needs(&self.shared_definitions())?;
            if now.all().all(|table| related.all().any(|known| known.id == table.id)) {
                return self.write(db);
            }
        }
        Err(PgError::new(state::LOCK_NOT_AVAILABLE, "canceling statement due to lock timeout"))
    }

    /// Begins a change that needs no metadata lock.
    fn write<'c>(&mut self, db: &'c Database) -> Result<Writing<'c>> {
        let seen = self.shared_definitions();
        self.begin_change(db, &seen, false)
    }

    /// Leaves a change to the transaction.
    fn finish(&mut self, writing: Writing<'_>) -> Result<()> {
        self.end_change(writing);
        Ok(())
    }

    /// Runs `work` with the transaction of a change as that of the executor.
    fn within_writing<T>(
        &mut self,
        writing: &mut Writing<'_>,
        work: impl FnOnce(&mut Session, &mut Writing<'_>) -> Result<T>,
    ) -> Result<T> {
        let spare = self.database().engine().rows().begin(Isolation::ReadCommitted);
        writing.restore_snapshot();
        let mut own = std::mem::replace(&mut writing.txn, spare);
        own.begin_statement();
        host(self.context()).txn = Some(own);
        self.context().changes_rows = true;
        let done = work(self, writing);
        if let Some(own) = host(self.context()).txn.take() {
            std::mem::replace(&mut writing.txn, own).rollback();
        }
        done
    }

    fn skip_notice(&mut self, state: SqlState, message: String) {
        self.tell("NOTICE", PgError::new(state, message));
    }
}
