//! What is counted: statements by kind, changes of rows, ends of transactions. One table of names; SHOW STATUS and performance_schema come from it.
//!
//! A session counts for itself, where nobody else writes; what the server has counted is the sum over those that are there and those that have gone. So counting costs no line of
//! memory that two processors want.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::instance::statement::Plan;
use crate::parse::statement::{Maintenance, Shown, Statement};

macro_rules! counts {
    ($($name:ident $text:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Count { $($name),* }

        /// As MySQL calls them.
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

/// What a session had read at some moment.
pub struct Reads([u64; READS.len()]);

/// One number for each name.
pub struct Counts([AtomicU64; NAMES.len()]);

impl Default for Counts {
    fn default() -> Counts {
        Counts(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Counts {
    /// Only its owner calls this.
    pub fn add(&self, count: Count) {
        self.add_many(count, 1);
    }

    pub fn add_many(&self, count: Count, more: u64) {
        let number = &self.0[count as usize];
        number.store(number.load(Ordering::Relaxed) + more, Ordering::Relaxed);
    }

    /// What has been read so far. Only its owner calls this.
    pub fn reads(&self) -> Reads {
        Reads(READS.map(|count| self.0[count as usize].load(Ordering::Relaxed)))
    }

    /// What has been read since then does not count: it is going to be read again. Only its owner calls this.
    pub fn unread(&self, before: Reads) {
        for (count, number) in READS.into_iter().zip(before.0) {
            self.0[count as usize].store(number, Ordering::Relaxed);
        }
    }

    /// Rows that have been put in, changed and deleted.
    pub fn changes(&self) -> u64 {
        let changes = [Count::HandlerWrite, Count::HandlerUpdate, Count::HandlerDelete];
        changes.into_iter().map(|count| self.0[count as usize].load(Ordering::Relaxed)).sum()
    }

    pub fn all(&self) -> Vec<u64> {
        self.0.iter().map(|number| number.load(Ordering::Relaxed)).collect()
    }

    /// Takes over another's numbers, which begin anew.
    pub fn take(&self, other: &Counts) {
        for (mine, theirs) in self.0.iter().zip(&other.0) {
            mine.fetch_add(theirs.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

/// What a statement counts as. Those that MySQL has no name for, or that are counted by their plan, are none.
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
        Plan::Update(_) => Count::Update,
        Plan::Delete(_) => Count::Delete,
        Plan::Load(_) => Count::Load,
    }
}
