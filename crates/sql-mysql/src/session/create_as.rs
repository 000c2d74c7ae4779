//! CREATE TABLE ... SELECT: a table with the columns and rows of a query.
//!
//! The definition, its maps and the rows are one engine transaction, so the statement is atomic, also across a crash.
//! The query reads within that transaction. The metadata locks of its tables are acquired before definitions are
//! locked, so that no session waits for one while it holds the other. Rows of a temporary table belong to the session's
//! own transaction, as in MySQL.

use std::sync::Arc;

use engine::rows::Isolation;
use syntax::tree::{CreateTable, Duplicates, Statement};

use crate::bind::Bind;
use crate::error::{self, Result};
use crate::instance::statement::{BoundStatement, Plan};
use crate::other_dialects::MAKER;
use crate::scalar::store::implicit_default;
use crate::session::session_tracking::WRITE;
use crate::session::{Outcome, Session};
use crate::types::{BOOLEAN, CONSTRAINED, Collation, Column, Kind, MysqlType as _, Type, UNASSIGNABLE};
use query::catalog::Writing;
use query::catalog::foreign_graph::RowChangeKind;
use query::catalog::table::{Default, Table, TableColumn};
use query::exec::change::{self, Changed};
use query::nodes::change::{Insert, OnConflict, Values};

/// Strings of more characters than this become TEXT.
const LONG: u32 = 512;

/// The compiled query of CREATE TABLE ... SELECT and the columns that it gives.
pub(super) struct Selection {
    pub compiled: Arc<BoundStatement>,
    pub columns: Vec<TableColumn>,
}

impl Session {
    /// Plans the query of CREATE TABLE, if there is one, and acquires the metadata locks of its tables.
    pub(super) fn selection(&mut self, create: &CreateTable) -> Result<Option<Selection>> {
        let Some(query) = &create.query else { return Ok(None) };
        let statement = Statement::Query(query.clone());
        for _ in 0..100 {
            let compiled = Arc::new(self.compile(&statement, (&[], &[]))?);
            self.check_locked(&compiled.bindings.tables, &[])?;
            if !self.share_tables(&compiled.bindings.locked)? {
                self.refresh();
                continue;
            }
            let Plan::Query { columns, .. } = &compiled.plan else { continue };
            let mut made: Vec<TableColumn> = Vec::new();
            for column in columns.iter() {
                if made.iter().any(|known| known.name.eq_ignore_ascii_case(&column.name)) {
                    return Err(error::DUP_FIELDNAME.with(&[&column.name]));
                }
                made.push(self.column_of_result(column));
            }
            return Ok(Some(Selection { compiled, columns: made }));
        }
        Err(error::LOCK_WAIT_TIMEOUT.bare())
    }

    /// Makes a table column from a result column. A base table's column keeps its type, comment and default, but not
    /// AUTO_INCREMENT or GENERATED. Other columns are made from the result's type.
    fn column_of_result(&self, column: &Column) -> TableColumn {
        let table = self.catalog.table(&column.schema, &column.org_table).ok();
        let origin = table
            .filter(|table| table.maker == MAKER)
            .and_then(|table| table.columns.get(table.column(&column.org_name)?));
        let mut made = TableColumn::new(column.name.clone(), column.ty.clone(), 0);
        let Some(origin) = origin else {
            made.ty = type_of_result(&column.ty);
            // Attributes of a column are not those of a value.
            made.ty.attributes &= !(BOOLEAN | UNASSIGNABLE | CONSTRAINED);
            made.default = default_of(&made.ty);
            return made;
        };
        made.ty = origin.ty.clone().with_nullable(column.ty.nullable);
        made.comment.clone_from(&origin.comment);
        made.on_update_now = origin.on_update_now;
        made.default = match &origin.default {
            _ if origin.auto_increment => default_of(&made.ty),
            _ if origin.generated.is_some() || made.ty.nullable != origin.ty.nullable => Default::None,
            default => default.clone(),
        };
        made
    }

    /// Inserts the query's rows into the new table, in the same transaction.
    pub(super) fn fill_from(
        &mut self,
        table: &Arc<Table>,
        selection: &Selection,
        duplicates: Duplicates,
        writing: &mut Writing<'_>,
    ) -> Result<Outcome> {
        let plan = self.filling(table, selection, duplicates)?;
        let spare = self.db.engine().rows().begin(Isolation::ReadCommitted);
        let mut own = std::mem::replace(&mut writing.txn, spare);
        own.begin_statement();
        let host = self.host();
        host.isolation = Isolation::ReadCommitted;
        host.txn = Some(own);
        self.ctx.changes_rows = true;
        let changed = change::insert(&plan, change::Tally::default(), &mut self.ctx)
            .and_then(|tally| change::inserted(&plan, tally, &mut self.ctx));
        self.note_durability_lsn();
        if let Some(own) = self.host().txn.take() {
            std::mem::replace(&mut writing.txn, own).rollback();
        }
        Ok(told(changed?))
    }

    /// Fills an existing temporary table in the session's transaction, and drops the table on an error.
    pub(super) fn fill_temporary(
        &mut self,
        table: &Arc<Table>,
        selection: &Selection,
        duplicates: Duplicates,
    ) -> Result<Outcome> {
        let plan = Plan::Insert(self.filling(table, selection, duplicates)?);
        let compiled = Arc::new(selection.compiled.with_plan(plan, table, WRITE));
        let filled = self.run(&compiled, Vec::new(), &mut |_| None);
        if filled.is_err() {
            let _ = self.drop_temporary(std::slice::from_ref(table));
        }
        filled
    }

    fn filling(&self, table: &Arc<Table>, selection: &Selection, duplicates: Duplicates) -> Result<Insert> {
        let Plan::Query { node, .. } = &selection.compiled.plan else {
            return Err(error::UNSUPPORTED_PS.bare());
        };
        let targets = selection.columns.iter().map(|column| {
            table.column(&column.name).ok_or_else(|| error::BAD_FIELD.with(&[&column.name, &"field list"]))
        });
        let targets = targets.collect::<Result<Vec<usize>>>()?;
        let environment = self.bind_environment();
        let mut bind = Bind::new(&environment);
        bind.formulas(table)?;
        targets.iter().try_for_each(|at| bind.refuse_generated(table, *at))?;
        let (on_conflict, doing) = match duplicates {
            Duplicates::Fail => (OnConflict::Fail, vec![RowChangeKind::Insert]),
            Duplicates::Ignore => (OnConflict::Ignore, vec![RowChangeKind::Insert]),
            Duplicates::Replace => (OnConflict::Replace, vec![RowChangeKind::Insert, RowChangeKind::Delete]),
        };
        let rules = bind.rules(table, &doing)?;
        let (values, ignore) = (Values::Query(node.clone()), duplicates == Duplicates::Ignore);
        let (updates, disregarded, returning) = (Vec::new(), Vec::new(), None);
        let arbiter = None;
        Ok(Insert { rules, targets, values, on_conflict, updates, disregarded, ignore, arbiter, returning })
    }
}

fn told(changed: Changed) -> Outcome {
    Outcome::Done { affected: changed.affected, last_insert_id: changed.last_insert_id, info: changed.info }
}

/// Returns the column type for a computed value, as MySQL chooses it: the smallest integer that fits, TEXT for long
/// strings.
fn type_of_result(ty: &Type) -> Type {
    let nullable = ty.nullable;
    let is_bytes = ty.collation == Collation::Binary && ty.is_string() || ty.kind().is_bytes();
    let made = match ty.kind() {
        Kind::Null => Type { length: 0, ..Type::of_kind(Kind::Binary) },
        Kind::BigInt if ty.length <= 10 => Type::of_kind(Kind::Int).with_unsigned(ty.is_unsigned()),
        kind if kind.is_integer() => Type::of_kind(kind).with_unsigned(ty.is_unsigned()),
        Kind::Char | Kind::VarChar | Kind::Binary | Kind::VarBinary if ty.length > LONG => {
            let kind = match (is_bytes, ty.byte_length()) {
                (true, ..=0xFFFF) => Kind::Blob,
                (true, ..=0xFF_FFFF) => Kind::MediumBlob,
                (true, _) => Kind::LongBlob,
                (false, ..=0xFFFF) => Kind::Text,
                (false, ..=0xFF_FFFF) => Kind::MediumText,
                (false, _) => Kind::LongText,
            };
            Type { collation: ty.collation, ..Type::of_kind(kind) }
        }
        Kind::Char | Kind::VarChar if ty.length == 0 => ty.clone().with_kind(Kind::Char),
        Kind::Binary | Kind::VarBinary if ty.length == 0 => ty.clone().with_kind(Kind::Binary),
        Kind::Char => ty.clone().with_kind(Kind::VarChar),
        Kind::Binary => ty.clone().with_kind(Kind::VarBinary),
        // A type that MySQL did not declare becomes its own.
        kind => ty.clone().with_kind(kind),
    };
    made.with_nullable(nullable)
}

/// Returns the default of a NOT NULL column: zero or the empty string. A date has none, since zero is not a valid date.
fn default_of(ty: &Type) -> Default {
    let is_dated = matches!(ty.kind(), Kind::Date | Kind::DateTime | Kind::Timestamp);
    if ty.nullable || is_dated || ty.kind().is_blob() || ty.kind() == Kind::Json {
        return Default::None;
    }
    Default::Value(implicit_default(ty))
}
