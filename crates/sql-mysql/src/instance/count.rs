//! Statement counters: statements by kind, row changes, ends of transactions. SHOW STATUS and performance_schema are
//! generated from one table of names.
//!
//! A session writes only its own counters. The server's value is the sum over present and past sessions. So no cache
//! line is shared by processors.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::instance::statement::Plan;
use crate::parse::statement::{Maintenance, Shown, Statement};

macro_rules! counts {
    ($($name:ident $text:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Count { $($name),* }

        /// The names of MySQL.
        pub const NAMES: &[&str] = &[$($text),*];
    };
}

counts! {
    AlterDb "Com_alter_db";
    AlterTable "Com_alter_table";
    Analyze "Com_analyze";
    Begin "Com_begin";
    CallProcedure "Com_call_procedure";
    ChangeDb "Com_change_db";
    Commit "Com_commit";
    CreateDb "Com_create_db";
    CreateIndex "Com_create_index";
    CreateTable "Com_create_table";
    DeallocSql "Com_dealloc_sql";
    Delete "Com_delete";
    Do "Com_do";
    DropDb "Com_drop_db";
    DropIndex "Com_drop_index";
    DropTable "Com_drop_table";
    ExecuteSql "Com_execute_sql";
    Flush "Com_flush";
    Insert "Com_insert";
    InsertSelect "Com_insert_select";
    Kill "Com_kill";
    Load "Com_load";
    LockTables "Com_lock_tables";
    PrepareSql "Com_prepare_sql";
    ReleaseSavepoint "Com_release_savepoint";
    RenameTable "Com_rename_table";
    Replace "Com_replace";
    ReplaceSelect "Com_replace_select";
    Rollback "Com_rollback";
    RollbackToSavepoint "Com_rollback_to_savepoint";
    Savepoint "Com_savepoint";
    Select "Com_select";
    SetOption "Com_set_option";
    ShowCreateDb "Com_show_create_db";
    ShowCreateTable "Com_show_create_table";
    ShowDatabases "Com_show_databases";
    ShowFields "Com_show_fields";
    ShowKeys "Com_show_keys";
    ShowProcesslist "Com_show_processlist";
    ShowStatus "Com_show_status";
    ShowTableStatus "Com_show_table_status";
    ShowTables "Com_show_tables";
    ShowVariables "Com_show_variables";
    ShowWarnings "Com_show_warnings";
    StmtClose "Com_stmt_close";
    StmtExecute "Com_stmt_execute";
    StmtFetch "Com_stmt_fetch";
    StmtPrepare "Com_stmt_prepare";
    StmtReset "Com_stmt_reset";
    StmtSendLongData "Com_stmt_send_long_data";
    Truncate "Com_truncate";
    UnlockTables "Com_unlock_tables";
    Update "Com_update";
    BytesReceived "Bytes_received";
    BytesSent "Bytes_sent";
    HandlerCommit "Handler_commit";
    HandlerDelete "Handler_delete";
    HandlerReadFirst "Handler_read_first";
    HandlerReadKey "Handler_read_key";
    HandlerReadLast "Handler_read_last";
    HandlerReadNext "Handler_read_next";
    HandlerReadPrev "Handler_read_prev";
    HandlerReadRndNext "Handler_read_rnd_next";
    HandlerRollback "Handler_rollback";
    HandlerSavepoint "Handler_savepoint";
    HandlerSavepointRollback "Handler_savepoint_rollback";
    HandlerUpdate "Handler_update";
    HandlerWrite "Handler_write";
    Questions "Questions";
    SlowQueries "Slow_queries";
}

const READS: [Count; 6] = [
    Count::HandlerReadFirst,
    Count::HandlerReadKey,
    Count::HandlerReadLast,
    Count::HandlerReadNext,
    Count::HandlerReadPrev,
    Count::HandlerReadRndNext,
];

/// The read counters of a session at some moment.
pub struct Reads([u64; READS.len()]);

/// The counters, one for each name.
pub struct Counts([AtomicU64; NAMES.len()]);

impl Default for Counts {
    fn default() -> Counts {
        Counts(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Counts {
    /// Adds one. Called by the owner only.
    pub fn add(&self, count: Count) {
        self.add_many(count, 1);
    }

    pub fn add_many(&self, count: Count, more: u64) {
        let number = &self.0[count as usize];
        number.store(number.load(Ordering::Relaxed) + more, Ordering::Relaxed);
    }

    /// Returns the read counters. Called by the owner only.
    pub fn reads(&self) -> Reads {
        Reads(READS.map(|count| self.0[count as usize].load(Ordering::Relaxed)))
    }

    /// Resets the read counters to `before`, since the rows will be read again. Called by the owner only.
    pub fn unread(&self, before: Reads) {
        for (count, number) in READS.into_iter().zip(before.0) {
            self.0[count as usize].store(number, Ordering::Relaxed);
        }
    }

    /// Returns the number of rows inserted, updated and deleted.
    pub fn changes(&self) -> u64 {
        let changes = [Count::HandlerWrite, Count::HandlerUpdate, Count::HandlerDelete];
        changes.into_iter().map(|count| self.0[count as usize].load(Ordering::Relaxed)).sum()
    }

    pub fn all(&self) -> Vec<u64> {
        self.0.iter().map(|number| number.load(Ordering::Relaxed)).collect()
    }

    /// Adds another's counters and resets them.
    pub fn take(&self, other: &Counts) {
        for (mine, theirs) in self.0.iter().zip(&other.0) {
            mine.fetch_add(theirs.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

/// Returns the counter of a statement, or None for those that MySQL does not count, or that are counted by their plan.
pub fn of_statement(statement: &Statement) -> Option<Count> {
    Some(match statement {
        Statement::CreateTable(_) => Count::CreateTable,
        Statement::AlterTable { .. } => Count::AlterTable,
        Statement::CreateIndex(_) => Count::CreateIndex,
        Statement::DropIndex { .. } => Count::DropIndex,
        Statement::DropTable { .. } => Count::DropTable,
        Statement::Truncate(_) => Count::Truncate,
        Statement::RenameTable(_) => Count::RenameTable,
        Statement::CreateDatabase { .. } => Count::CreateDb,
        Statement::AlterDatabase { .. } => Count::AlterDb,
        Statement::DropDatabase { .. } => Count::DropDb,
        Statement::Use(_) => Count::ChangeDb,
        Statement::Set(_) => Count::SetOption,
        Statement::Describe { .. } => Count::ShowFields,
        Statement::Begin { .. } => Count::Begin,
        Statement::Commit(_) => Count::Commit,
        Statement::Rollback(_) => Count::Rollback,
        Statement::Savepoint(_) => Count::Savepoint,
        Statement::RollbackTo(_) => Count::RollbackToSavepoint,
        Statement::Release(_) => Count::ReleaseSavepoint,
        Statement::LockTables(_) => Count::LockTables,
        Statement::LockAll | Statement::Flush(_) => Count::Flush,
        Statement::UnlockTables => Count::UnlockTables,
        Statement::Kill { .. } => Count::Kill,
        Statement::Call { .. } => Count::CallProcedure,
        Statement::Prepare { .. } => Count::PrepareSql,
        Statement::Execute { .. } => Count::ExecuteSql,
        Statement::Deallocate(_) => Count::DeallocSql,
        Statement::Maintain { what: Maintenance::Analyze, .. } => Count::Analyze,
        Statement::Show(show) => of_show(&show.what)?,
        _ => return None,
    })
}

fn of_show(what: &Shown) -> Option<Count> {
    Some(match what {
        Shown::Databases => Count::ShowDatabases,
        Shown::Tables { .. } => Count::ShowTables,
        Shown::TableStatus { .. } => Count::ShowTableStatus,
        Shown::Columns { .. } => Count::ShowFields,
        Shown::Index { .. } => Count::ShowKeys,
        Shown::CreateTable(_) => Count::ShowCreateTable,
        Shown::CreateDatabase { .. } => Count::ShowCreateDb,
        Shown::Variables { .. } => Count::ShowVariables,
        Shown::Status { .. } => Count::ShowStatus,
        Shown::Warnings { .. } => Count::ShowWarnings,
        Shown::Processlist => Count::ShowProcesslist,
        _ => return None,
    })
}

pub fn of_plan(plan: &Plan) -> Count {
    use query::nodes::change::{OnConflict, Values};
    match plan {
        Plan::Query { .. } => Count::Select,
        Plan::Evaluate(_) => Count::Do,
        Plan::Insert(insert) => match (&insert.on_conflict, &insert.values) {
            (OnConflict::Replace, Values::Query(_)) => Count::ReplaceSelect,
            (OnConflict::Replace, _) => Count::Replace,
            (_, Values::Query(_)) => Count::InsertSelect,
            _ => Count::Insert,
        },
        // MySQL has no MERGE, and no WITH that changes rows.
        Plan::Update(_) | Plan::Merge(_) | Plan::Several(_) => Count::Update,
        Plan::Delete(_) => Count::Delete,
        Plan::Load(_) => Count::Load,
    }
}
