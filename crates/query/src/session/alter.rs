//! ALTER TABLE. Columns are added and dropped, names and defaults changed without touching a row; a change of a type, of the primary key or of the character set writes
//! every row anew, in the same transaction.

use std::sync::Arc;

use engine::rows::{Inserted, RowBatch};
use sqlparser::ast::{
    self, AlterColumnOperation, AlterTableOperation, ColumnOption, MySQLColumnPosition, RenameTableNameKind,
};

use crate::bind::{Bind, name_of};
use crate::catalog::Writing;
use crate::catalog::table::{Check, Default, Index, Part, Table, TableColumn};
use crate::error::{self, Result, SqlError};
use crate::exec::change::encode_row;
use crate::exec::generated;
use crate::exec::progress::Progress;
use crate::exec::scan::decode;
use crate::key;
use crate::parse::parse_expression;
use crate::parse::statement::{Alteration, Name};
use crate::row::Layout;
use crate::scalar::store::implicit_default;
use crate::scalar::{EvalContext, Expr, Place, SqlMode, store};
use crate::session::build::{self, all_of};
use crate::session::define::{self, Reach, same_storage};
use crate::session::foreign::{Wanted, check_nullable, drop_needless_indexes};
use crate::session::words::{self, Definition, Options, collation_of, index_name, option_of};
use crate::session::{Outcome, Session};
use crate::types::Collation;
use crate::value::Value;

/// Where a column's values come from, if rows are written anew.
#[derive(Clone, Debug)]
enum From {
    Old(usize),
    Initial,
}

/// A table on its way to the new definition.
struct Draft<'t> {
    old: &'t Table,
    new: &'t mut Table,
    from: Vec<From>,
    rebuild: bool,
    auto_increment: Option<u64>,
    /// Foreign keys to be added when everything else is in its place.
    foreign: Vec<Wanted>,
    /// Foreign keys of others, by which this table is the parent.
    referring: Vec<Arc<Table>>,
    checks_foreign_keys: bool,
    /// Of each CHECK that was there, the columns that it looks at.
    looked_at: Vec<(String, Vec<String>)>,
    /// Under which the statement was written.
    sql_mode: SqlMode,
}

impl Session {
    pub(super) fn alter_table(&mut self, name: &Name, operations: &[Alteration]) -> Result<Outcome> {
        let (schema, name) = self.full_name(name)?;
        self.refuse_view(&schema, &name)?;
        let table = self.catalog.table(&schema, &name)?.clone();
        let reach = self.reach(&table, operations)?;
        self.change_table(&table, &reach, |session, new, writing| {
            let old = Arc::new(new.copy().settle());
            let from = (0..old.columns.len()).map(From::Old).collect();
            let mut draft = Draft {
                old: &old,
                new,
                from,
                rebuild: false,
                auto_increment: None,
                foreign: Vec::new(),
                referring: writing.snapshot.children_now(&old.schema, &old.name),
                checks_foreign_keys: session.checks_foreign_keys(),
                looked_at: session.looked_at(&old)?,
                sql_mode: session.ctx.sql_mode,
            };
            // What is dropped no longer stands in the way of the rest.
            let (first, rest): (Vec<&Alteration>, Vec<&Alteration>) =
                operations.iter().partition(|operation| drops_constraint(operation));
            for operation in first.into_iter().chain(rest) {
                session.alteration(&mut draft, operation, writing)?;
            }
            let foreign = std::mem::take(&mut draft.foreign);
            session.add_foreign_keys(draft.new, foreign, writing)?;
            draft.new.foreign_keys.iter().try_for_each(|key| check_nullable(key, draft.new))?;
            drop_needless_indexes(draft.new);
            draft.drop_needless_columns();
            draft.rebuild |= draft.keeps_more();
            session.check_generated(Some(&old), draft.new)?;
            if draft.rebuild {
                session.rebuild(&mut draft, writing)?;
            }
            if let Some(wanted) = draft.auto_increment {
                session.set_auto(draft.new, wanted, &mut writing.txn)?;
            }
            Ok(draft.renames())
        })
    }

    /// What the operations touch besides the table and what it is tied to.
    fn reach(&self, table: &Table, operations: &[Alteration]) -> Result<Reach> {
        let mut reach = Reach::default();
        for operation in operations {
            match operation {
                Alteration::RenameTable(name) => reach.becomes = Some(self.full_name(name)?),
                Alteration::Parsed(operation) => match &**operation {
                    AlterTableOperation::AddConstraint {
                        constraint: ast::TableConstraint::ForeignKey(key), ..
                    } => {
                        let parent = name_of(&key.foreign_table)?;
                        reach.parents.push((parent.schema.unwrap_or_else(|| table.schema.clone()), parent.name));
                    }
                    AlterTableOperation::RenameTable {
                        table_name: RenameTableNameKind::As(name) | RenameTableNameKind::To(name),
                    } => reach.becomes = Some(self.full_name(&name_of(name)?)?),
                    _ => {}
                },
                _ => {}
            }
        }
        Ok(reach)
    }

    fn alteration(&mut self, draft: &mut Draft<'_>, operation: &Alteration, writing: &mut Writing<'_>) -> Result<()> {
        match operation {
            Alteration::Nothing => Ok(()),
            Alteration::Rebuild => {
                draft.rebuild = true;
                Ok(())
            }
            Alteration::RenameTable(name) => {
                let (schema, name) = self.full_name(name)?;
                writing.snapshot.schema(&schema)?;
                (draft.new.schema, draft.new.name) = (schema, name);
                Ok(())
            }
            Alteration::DropCheck(name) => {
                let at = draft.check(name)?;
                draft.new.checks.remove(at);
                Ok(())
            }
            Alteration::EnforceCheck { name, enforced } => {
                let at = draft.check(name)?;
                draft.new.checks[at].enforced = *enforced;
                Ok(())
            }
            Alteration::RenameIndex { from, to } => {
                if draft.new.index(to).is_some() {
                    return Err(error::DUP_KEYNAME.with(&[to]));
                }
                let at =
                    draft.new.index(from).ok_or_else(|| error::KEY_DOES_NOT_EXIST.with(&[from, &draft.old.name]))?;
                draft.new.indexes[at].name.clone_from(to);
                Ok(())
            }
            Alteration::IndexVisible { name, visible } => {
                if name.eq_ignore_ascii_case("primary") {
                    return Err(error::PK_INDEX_CANT_BE_INVISIBLE.bare());
                }
                let at =
                    draft.new.index(name).ok_or_else(|| error::KEY_DOES_NOT_EXIST.with(&[name, &draft.old.name]))?;
                draft.new.indexes[at].invisible = !visible;
                Ok(())
            }
            Alteration::Option { name, value } => {
                let text = value.to_string().trim_matches(['\'', '`']).to_owned();
                let mut options = Options::default();
                option_of(name, text, &mut options)?;
                self.settle_engine(options.engine.as_deref(), &draft.old.name)?;
                if let Some(comment) = options.comment {
                    draft.new.comment = comment;
                }
                draft.auto_increment = options.auto_increment.or(draft.auto_increment);
                if options.collation.is_some() || options.charset.is_some() {
                    draft.new.collation =
                        collation_of(options.charset.as_deref(), options.collation.as_deref(), draft.old.collation)?;
                }
                Ok(())
            }
            Alteration::Charset { convert, charset, collation } => {
                let collation = collation_of(Some(charset), collation.as_deref(), draft.old.collation)?;
                draft.new.collation = collation;
                if *convert {
                    draft.convert(collation);
                }
                Ok(())
            }
            Alteration::Parsed(operation) => self.parsed_alteration(draft, operation, writing),
        }
    }

    fn parsed_alteration(
        &mut self,
        draft: &mut Draft<'_>,
        operation: &AlterTableOperation,
        writing: &mut Writing<'_>,
    ) -> Result<()> {
        match operation {
            AlterTableOperation::AddColumn { column_def, column_position, if_not_exists: false, .. } => {
                let options: Vec<&ColumnOption> = column_def.options.iter().map(|option| &option.option).collect();
                let made = self.column(
                    &column_def.name.value,
                    &column_def.data_type,
                    &options,
                    draft.new.slots.len(),
                    draft.new.collation,
                )?;
                self.add_column(draft, made, column_position.as_ref())?;
                self.column_keys(draft, &column_def.name.value, &options, writing)
            }
            AlterTableOperation::DropColumn { column_names, if_exists: false, .. } => {
                column_names.iter().try_for_each(|name| draft.drop_column(&name.value, writing))
            }
            AlterTableOperation::ModifyColumn { col_name, data_type, options, column_position } => self.change_column(
                draft,
                &col_name.value,
                &col_name.value,
                data_type,
                options,
                column_position.as_ref(),
            ),
            AlterTableOperation::ChangeColumn { old_name, new_name, data_type, options, column_position } => self
                .change_column(draft, &old_name.value, &new_name.value, data_type, options, column_position.as_ref()),
            AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
                draft.rename_column(&old_column_name.value, &new_column_name.value)
            }
            AlterTableOperation::AlterColumn { column_name, op } => self.column_default(draft, &column_name.value, op),
            AlterTableOperation::AddConstraint { constraint, .. } => self.add_constraint(draft, constraint, writing),
            AlterTableOperation::DropPrimaryKey { .. } => {
                if draft.new.primary.take().is_none() {
                    return Err(error::CANT_DROP_FIELD_OR_KEY.with(&[&"PRIMARY"]));
                }
                draft.rebuild = true;
                Ok(())
            }
            AlterTableOperation::DropIndex { name } => draft.drop_index(&name.value),
            AlterTableOperation::DropForeignKey { name, .. } => draft.drop_foreign_key(&name.value),
            AlterTableOperation::DropConstraint { name, if_exists: false, .. } => {
                match draft.new.checks.iter().position(|check| check.name.eq_ignore_ascii_case(&name.value)) {
                    Some(at) => {
                        draft.new.checks.remove(at);
                        Ok(())
                    }
                    None if draft.new.foreign_keys.iter().any(|key| key.name.eq_ignore_ascii_case(&name.value)) => {
                        draft.drop_foreign_key(&name.value)
                    }
                    None => draft.drop_index(&name.value),
                }
            }
            AlterTableOperation::RenameTable {
                table_name: RenameTableNameKind::As(name) | RenameTableNameKind::To(name),
            } => {
                let name = name_of(name)?;
                self.alteration(draft, &Alteration::RenameTable(name), writing)
            }
            AlterTableOperation::AutoIncrement { value, .. } => {
                draft.auto_increment = value.value.to_string().parse().ok();
                Ok(())
            }
            AlterTableOperation::Algorithm { .. } | AlterTableOperation::Lock { .. } => Ok(()),
            other => Err(SqlError::unsupported(format!("ALTER TABLE {other}"))),
        }
    }

    fn add_column(
        &mut self,
        draft: &mut Draft<'_>,
        mut column: TableColumn,
        position: Option<&MySQLColumnPosition>,
    ) -> Result<()> {
        if draft.new.column(&column.name).is_some() {
            return Err(error::DUP_FIELDNAME.with(&[&column.name]));
        }
        column.initial = self.initial(&column)?;
        // Each row has a number, or a value, of its own.
        let is_kept = column.generated.as_ref().is_some_and(|generated| generated.stored);
        draft.rebuild |= column.auto_increment || matches!(column.default, Default::Expression(_)) || is_kept;
        draft.new.slots.push(column.ty.kind);
        draft.new.columns.push(column);
        draft.from.push(From::Initial);
        draft.place(draft.new.columns.len() - 1, position)
    }

    /// What rows have that are there already.
    fn initial(&mut self, column: &TableColumn) -> Result<Value> {
        Ok(match &column.default {
            _ if column.generated.is_some() => Value::Null,
            Default::Value(value) => value.clone(),
            Default::None if column.ty.nullable => Value::Null,
            Default::None => implicit_default(&column.ty),
            Default::Now(scale) => {
                let node = crate::parse::parse_expression(&format!("CURRENT_TIMESTAMP({scale})"))?;
                let now = self.constant(&node)?;
                store(
                    now,
                    &column.ty,
                    Place { column: &column.name, row: 1 },
                    &mut EvalContext { zone: self.ctx.zone.clone(), ..EvalContext::new() },
                )?
            }
            Default::Expression(_) => Value::Null,
        })
    }

    fn column_keys(
        &mut self,
        draft: &mut Draft<'_>,
        name: &str,
        options: &[&ColumnOption],
        writing: &mut Writing<'_>,
    ) -> Result<()> {
        for option in options {
            let at = draft.new.column(name).unwrap_or_default();
            let parts = vec![Part { column: at, prefix: None, descending: false }];
            match option {
                ColumnOption::Unique(_) => draft.add_index(String::new(), true, parts, String::new(), writing)?,
                ColumnOption::PrimaryKey(_) => draft.set_primary(parts)?,
                ColumnOption::Check(check) => {
                    let check = ast::TableConstraint::Check(check.clone());
                    draft.add_constraint(&check, writing)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn change_column(
        &mut self,
        draft: &mut Draft<'_>,
        name: &str,
        new_name: &str,
        data_type: &ast::DataType,
        options: &[ColumnOption],
        position: Option<&MySQLColumnPosition>,
    ) -> Result<()> {
        let at = draft.find(name)?;
        if !name.eq_ignore_ascii_case(new_name) && draft.new.column(new_name).is_some() {
            return Err(error::DUP_FIELDNAME.with(&[&new_name]));
        }
        let options: Vec<&ColumnOption> = options.iter().collect();
        let before = draft.new.columns[at].clone();
        let mut made = self.column(new_name, data_type, &options, before.slot, draft.new.collation)?;
        let in_primary = draft.new.primary.iter().flatten().any(|part| part.column == at);
        if in_primary {
            made.ty.nullable = false;
        }
        let shrinks =
            made.ty.length < before.ty.length && (made.ty.is_string() || made.ty.kind == crate::types::Kind::Decimal);
        let narrows = before.ty.nullable && !made.ty.nullable;
        if !same_storage(&made.ty, &before.ty) || made.ty.length < before.ty.length {
            draft.check_changeable(at)?;
        }
        if !same_storage(&made.ty, &before.ty) || shrinks || narrows || becomes_other(&before, &made)? {
            draft.rebuild = true;
        }
        made.initial = before.initial;
        draft.new.columns[at] = made;
        if !name.eq_ignore_ascii_case(new_name) {
            draft.check_unlooked(name)?;
        }
        draft.place(at, position)
    }

    fn column_default(&mut self, draft: &mut Draft<'_>, name: &str, op: &AlterColumnOperation) -> Result<()> {
        let at = draft.find(name)?;
        match op {
            AlterColumnOperation::SetDefault { value } => {
                let node = ColumnOption::Default(value.clone());
                let mut column = draft.new.columns[at].clone();
                self.set_default(&mut column, &node)?;
                draft.new.columns[at] = column;
            }
            AlterColumnOperation::DropDefault => draft.new.columns[at].default = Default::None,
            other => return Err(SqlError::unsupported(format!("ALTER COLUMN {other}"))),
        }
        Ok(())
    }

    /// Writes all rows anew into a map of their own.
    fn rebuild(&mut self, draft: &mut Draft<'_>, writing: &mut Writing<'_>) -> Result<()> {
        use std::ops::Bound::Unbounded;
        let new = &mut *draft.new;
        for (slot, column) in new.columns.iter_mut().enumerate() {
            column.slot = slot;
        }
        new.slots = new.columns.iter().map(|column| column.ty.kind).collect();
        define::drop_all_maps(writing, draft.old)?;
        // Indexes that this statement has made are empty yet: they can stay.
        for index in new.indexes.iter_mut().filter(|index| draft.old.indexes.iter().any(|old| old.map == index.map)) {
            index.map = writing.txn.create_map()?;
        }
        new.map = writing.txn.create_map()?;
        new.layout = Layout::new(&new.slots);
        new.slot_columns = (0..new.slots.len()).map(Some).collect();
        let all: Vec<usize> = (0..draft.old.columns.len()).collect();
        let mut cursor = writing.txn.scan(draft.old.map, Unbounded, Unbounded, false)?;
        let (mut batch, mut old_row, mut number) = (RowBatch::new(), vec![Value::Null; all.len()], 0u64);
        let (mut row_key, mut bytes) = (Vec::new(), Vec::new());
        let computed = self.computed(new, &draft.from)?;
        let settled = self.with_formulas(new)?;
        self.ctx.changes_rows = true;
        let mut progress = Progress::begin("copy to tmp table", all_of(draft.old));
        while cursor.next(&mut writing.txn, &mut batch)? {
            self.host().look_up()?;
            progress.add(batch.len(), self.host());
            for (_, old_bytes) in batch.iter() {
                number += 1;
                decode(draft.old, old_bytes, &all, &mut old_row)?;
                let mut row = Vec::with_capacity(new.columns.len());
                for (column, from) in new.columns.iter().zip(&draft.from) {
                    row.push(match from {
                        From::Initial if column.auto_increment => {
                            let place = Place { column: &column.name, row: number };
                            store(Value::UInt(number), &column.ty, place, &mut self.ctx)?
                        }
                        _ if column.generated.is_some() => Value::Null,
                        From::Initial => column.initial.clone(),
                        From::Old(at) => self.converted(&old_row[*at], &draft.old.columns[*at], column, number)?,
                    });
                }
                for (at, expr) in &computed {
                    let (column, value) = (&new.columns[*at], expr.eval(&row, &mut self.ctx)?);
                    row[*at] = store(value, &column.ty, Place { column: &column.name, row: number }, &mut self.ctx)?;
                }
                generated::compute(&settled, &mut row, None, number, &mut self.ctx)?;
                row_key.clear();
                match &new.primary {
                    Some(_) => key::primary(new, &row, &mut row_key)?,
                    None => row_key.extend_from_slice(&number.to_be_bytes()),
                }
                encode_row(&settled, &row, &mut bytes)?;
                if writing.txn.load(new.map, &row_key, &bytes)? == Inserted::Exists {
                    let parts = new.primary.as_deref().unwrap_or(&[]);
                    let shown: Vec<String> = parts
                        .iter()
                        .map(|part| {
                            crate::system::value_text(&row[part.column], &new.columns[part.column].ty, &mut self.ctx)
                        })
                        .collect();
                    return Err(error::DUP_ENTRY.with(&[&shown.join("-"), &format!("{}.PRIMARY", new.name)]));
                }
            }
        }
        *new.live.row_id.lock() = 0;
        if new
            .columns
            .iter()
            .zip(&draft.from)
            .any(|(column, from)| column.auto_increment && matches!(from, From::Initial))
        {
            draft.auto_increment = Some(draft.auto_increment.unwrap_or(1).max(number + 1));
        }
        let every: Vec<usize> = (0..new.indexes.len()).collect();
        build::fill(&mut writing.txn, new, &every, &mut self.ctx)
    }

    /// Columns that are new and have an expression as their default, bound over the new table.
    fn computed(&mut self, table: &Table, from: &[From]) -> Result<Vec<(usize, Expr)>> {
        let shown = Arc::new(table.copy().settle());
        let around = self.surroundings();
        let mut bind = Bind::new(&around);
        let mut exprs = Vec::new();
        for (at, (column, from)) in table.columns.iter().zip(from).enumerate() {
            if let (Default::Expression(text), From::Initial) = (&column.default, from) {
                exprs.push((at, bind.over_table(&shown, &parse_expression(text)?)?));
            }
        }
        Ok(exprs)
    }

    /// The definition as it is to be, with what its generated columns are computed by.
    fn with_formulas(&self, table: &Table) -> Result<Arc<Table>> {
        let settled = Arc::new(table.copy().settle());
        let around = self.surroundings();
        Bind::new(&around).formulas(&settled)?;
        Ok(settled)
    }

    fn add_constraint(
        &mut self,
        draft: &mut Draft<'_>,
        constraint: &ast::TableConstraint,
        writing: &mut Writing<'_>,
    ) -> Result<()> {
        let named =
            self.name_key_expressions(constraint, &draft.new.columns, draft.new.slots.len(), &draft.old.name)?;
        for column in named.columns {
            draft.new.slots.push(column.ty.kind);
            draft.new.columns.push(column);
            draft.from.push(From::Initial);
        }
        draft.sql_mode = self.ctx.sql_mode;
        draft.add_constraint(&named.constraint, writing)
    }

    /// The columns that each CHECK of a table looks at.
    fn looked_at(&self, table: &Arc<Table>) -> Result<Vec<(String, Vec<String>)>> {
        let around = self.surroundings();
        let mut bind = Bind::new(&around);
        let columns = |check: &Check| {
            let mut places = bind.over_table(table, &parse_expression(&check.text)?)?.columns();
            places.sort_unstable();
            places.dedup();
            Ok((check.name.clone(), places.into_iter().map(|at| table.columns[at].name.clone()).collect()))
        };
        table.checks.iter().map(columns).collect()
    }

    fn converted(&mut self, value: &Value, old: &TableColumn, new: &TableColumn, row: u64) -> Result<Value> {
        if value.is_null() && !new.ty.nullable {
            let error = error::WARN_DATA_TRUNCATED.with(&[&new.name, &row]);
            self.ctx.complain(SqlError { sqlstate: "01000", ..error })?;
            return Ok(implicit_default(&new.ty));
        }
        let same = same_storage(&old.ty, &new.ty) && old.ty.length <= new.ty.length;
        if same {
            return Ok(value.clone());
        }
        let shown = crate::scalar::bind::present(crate::scalar::Expr::Literal(value.clone(), old.ty.clone()));
        let shown = if new.ty.kind.is_bytes() { crate::scalar::bind::as_sent(shown) } else { shown };
        let shown = shown.eval(&[], &mut self.ctx)?;
        store(shown, &new.ty, Place { column: &new.name, row }, &mut self.ctx)
    }
}

/// Does a column's being generated, or its expression, change so that rows are to be written anew? Only from and to STORED is there a way.
fn becomes_other(before: &TableColumn, made: &TableColumn) -> Result<bool> {
    let is_virtual = |column: &TableColumn| column.generated.as_ref().is_some_and(|generated| !generated.stored);
    if is_virtual(before) != is_virtual(made) {
        return Err(error::UNSUPPORTED_ACTION_ON_GENERATED_COLUMN.with(&[&"Changing the STORED status"]));
    }
    let text = |column: &TableColumn| column.generated.as_ref().map(|generated| generated.text.clone());
    Ok(made.generated.is_some() && text(before) != text(made))
}

fn drops_constraint(operation: &Alteration) -> bool {
    use AlterTableOperation::{DropConstraint, DropForeignKey};
    match operation {
        Alteration::Parsed(operation) => matches!(**operation, DropForeignKey { .. } | DropConstraint { .. }),
        Alteration::DropCheck(_) => true,
        _ => false,
    }
}

impl Draft<'_> {
    fn find(&self, name: &str) -> Result<usize> {
        self.new.column(name).ok_or_else(|| error::BAD_FIELD.with(&[&name, &self.old.name]))
    }

    /// Moves a column to where FIRST or AFTER wants it. Keys name columns by number: they follow.
    fn place(&mut self, at: usize, position: Option<&MySQLColumnPosition>) -> Result<()> {
        let target = match position {
            None => return Ok(()),
            Some(MySQLColumnPosition::First) => 0,
            Some(MySQLColumnPosition::After(name)) => {
                let after = self.find(&name.value)?;
                if after < at { after + 1 } else { after }
            }
        };
        let column = self.new.columns.remove(at);
        let from = self.from.remove(at);
        self.new.columns.insert(target, column);
        self.from.insert(target, from);
        self.renumber(|column| {
            if column == at {
                return target;
            }
            let without = if column > at { column - 1 } else { column };
            if without >= target { without + 1 } else { without }
        });
        Ok(())
    }

    fn renumber(&mut self, number: impl Fn(usize) -> usize) {
        let keys = self.new.primary.iter_mut().chain(self.new.indexes.iter_mut().map(|index| &mut index.parts));
        keys.flatten().for_each(|part| part.column = number(part.column));
        let foreign = self.new.foreign_keys.iter_mut().flat_map(|key| &mut key.columns);
        let wanted = self.foreign.iter_mut().flat_map(|wanted| &mut wanted.key.columns);
        foreign.chain(wanted).for_each(|column| *column = number(*column));
    }

    fn drop_column(&mut self, name: &str, writing: &mut Writing<'_>) -> Result<()> {
        let at = self.new.column(name).ok_or_else(|| error::CANT_DROP_FIELD_OR_KEY.with(&[&name]))?;
        if self.new.columns.len() == 1 {
            return Err(error::CANT_REMOVE_ALL_FIELDS.bare());
        }
        self.check_droppable(at)?;
        self.drop_checks_of(name)?;
        if let Some(parts) = &mut self.new.primary
            && parts.iter().any(|part| part.column == at)
        {
            parts.retain(|part| part.column != at);
            self.rebuild = true;
        }
        self.new.primary = self.new.primary.take().filter(|parts| !parts.is_empty());
        // The column leaves its indexes, which are filled anew; an index of this column alone goes.
        for index in self.new.indexes.iter_mut().filter(|index| index.parts.iter().any(|part| part.column == at)) {
            index.parts.retain(|part| part.column != at);
            if !index.parts.is_empty() {
                index.map = writing.txn.create_map()?;
            }
        }
        self.new.indexes.retain(|index| !index.parts.is_empty());
        self.new.columns.remove(at);
        self.from.remove(at);
        self.renumber(|column| if column > at { column - 1 } else { column });
        Ok(())
    }

    /// Columns that have another name now: (old, new).
    fn renames(&self) -> Vec<(String, String)> {
        let pairs = self.new.columns.iter().zip(&self.from).filter_map(|(column, from)| match from {
            From::Old(at) => Some((self.old.columns[*at].name.clone(), column.name.clone())),
            From::Initial => None,
        });
        pairs.filter(|(old, new)| old != new).collect()
    }

    /// Columns behind functional indexes go with these.
    fn drop_needless_columns(&mut self) {
        while let Some(at) =
            (0..self.new.columns.len()).find(|at| self.new.columns[*at].is_hidden() && !self.new.is_in_key(*at))
        {
            self.new.columns.remove(at);
            self.from.remove(at);
            self.renumber(|column| if column > at { column - 1 } else { column });
        }
    }

    /// Are there columns whose values rows hold from now on (G1)?
    fn keeps_more(&self) -> bool {
        let was_kept = |from: &From| match from {
            From::Old(at) => self.old.columns[*at].generated.as_ref().is_none_or(|generated| generated.kept),
            From::Initial => false,
        };
        let columns = self.new.columns.iter().zip(&self.from).enumerate();
        let mut kept = columns.filter(|(at, (column, _))| {
            column.generated.as_ref().is_some_and(|generated| generated.stored || self.new.is_in_key(*at))
        });
        kept.any(|(_, (_, from))| !was_kept(from))
    }

    fn drop_foreign_key(&mut self, name: &str) -> Result<()> {
        let at = self.new.foreign_keys.iter().position(|key| key.name.eq_ignore_ascii_case(name));
        let at = at.ok_or_else(|| error::CANT_DROP_FIELD_OR_KEY.with(&[&name]))?;
        self.new.foreign_keys.remove(at);
        Ok(())
    }

    /// Foreign keys that refer to a column: (child, name).
    fn referring_to(&self, at: usize) -> Option<(String, String)> {
        let From::Old(old) = self.from[at] else { return None };
        let name = &self.old.columns[old].name;
        let keys = self.referring.iter().flat_map(|child| child.foreign_keys.iter().map(move |key| (child, key)));
        let mut keys = keys.filter(|(child, key)| {
            let stays = child.id != self.old.id || self.new.foreign_keys.iter().any(|known| known.name == key.name);
            stays && key.refers_to(&self.old.schema, &self.old.name)
        });
        let (child, key) =
            keys.find(|(_, key)| key.parent_columns.iter().any(|known| known.eq_ignore_ascii_case(name)))?;
        Some((child.name.clone(), key.name.clone()))
    }

    fn check_droppable(&self, at: usize) -> Result<()> {
        let name = &self.new.columns[at].name;
        if let Some(key) = self.new.foreign_keys.iter().find(|key| key.columns.contains(&at)) {
            return Err(error::FK_COLUMN_CANNOT_DROP.with(&[name, &key.name]));
        }
        match self.referring_to(at) {
            Some((child, key)) => Err(error::FK_COLUMN_CANNOT_DROP_CHILD.with(&[name, &key, &child])),
            None => Ok(()),
        }
    }

    /// A column that a constraint compares keeps its type, unless nothing is checked; then the ends must still fit (F5).
    fn check_changeable(&self, at: usize) -> Result<()> {
        if !self.checks_foreign_keys {
            return Ok(());
        }
        let name = &self.new.columns[at].name;
        if let Some(key) = self.new.foreign_keys.iter().find(|key| key.columns.contains(&at)) {
            return Err(error::FK_COLUMN_CANNOT_CHANGE.with(&[name, &key.name]));
        }
        match self.referring_to(at) {
            Some((child, key)) => Err(error::FK_COLUMN_CANNOT_CHANGE_CHILD.with(&[name, &key, &child])),
            None => Ok(()),
        }
    }

    fn check(&self, name: &str) -> Result<usize> {
        let at = self.new.checks.iter().position(|check| check.name.eq_ignore_ascii_case(name));
        at.ok_or_else(|| error::CHECK_CONSTRAINT_NOT_FOUND.with(&[&name]))
    }

    /// CHECKs that are still there and look at a column: (name, whether they look at nothing else).
    fn looking_at(&self, column: &str) -> Vec<(String, bool)> {
        let stays = |name: &str| self.new.checks.iter().any(|check| check.name == name);
        let looking = self
            .looked_at
            .iter()
            .filter(|(name, columns)| stays(name) && columns.iter().any(|known| known.eq_ignore_ascii_case(column)));
        looking.map(|(name, columns)| (name.clone(), columns.len() == 1)).collect()
    }

    fn check_unlooked(&self, column: &str) -> Result<()> {
        match self.looking_at(column).first() {
            Some((check, _)) => Err(error::DEPENDENT_BY_CHECK_CONSTRAINT.with(&[check, &column])),
            None => Ok(()),
        }
    }

    /// CHECKs of a column alone go with it.
    fn drop_checks_of(&mut self, column: &str) -> Result<()> {
        for (name, is_alone) in self.looking_at(column) {
            if !is_alone {
                return Err(error::DEPENDENT_BY_CHECK_CONSTRAINT.with(&[&name, &column]));
            }
            self.new.checks.retain(|check| check.name != name);
        }
        Ok(())
    }

    fn rename_column(&mut self, name: &str, new_name: &str) -> Result<()> {
        let at = self.find(name)?;
        if !name.eq_ignore_ascii_case(new_name) && self.new.column(new_name).is_some() {
            return Err(error::DUP_FIELDNAME.with(&[&new_name]));
        }
        self.check_unlooked(name)?;
        new_name.clone_into(&mut self.new.columns[at].name);
        Ok(())
    }

    fn add_index(
        &mut self,
        name: String,
        unique: bool,
        parts: Vec<Part>,
        comment: String,
        writing: &mut Writing<'_>,
    ) -> Result<()> {
        let map = writing.txn.create_map()?;
        let name = index_name(self.new, name, &parts)?;
        self.new.indexes.push(Index { name, map, unique, parts, comment, invisible: false, generated: false });
        Ok(())
    }

    fn drop_index(&mut self, name: &str) -> Result<()> {
        if name.eq_ignore_ascii_case("primary") && self.new.primary.take().is_some() {
            self.rebuild = true;
            return Ok(());
        }
        let at = self.new.index(name).ok_or_else(|| error::CANT_DROP_FIELD_OR_KEY.with(&[&name]))?;
        self.new.indexes.remove(at);
        Ok(())
    }

    fn set_primary(&mut self, parts: Vec<Part>) -> Result<()> {
        for part in &parts {
            self.new.columns[part.column].ty.nullable = false;
        }
        if self.new.primary.replace(parts).is_some() {
            return Err(error::MULTIPLE_PRI_KEY.bare());
        }
        self.rebuild = true;
        Ok(())
    }

    fn add_constraint(&mut self, constraint: &ast::TableConstraint, writing: &mut Writing<'_>) -> Result<()> {
        let mut definition = Definition {
            columns: self.new.columns.clone(),
            primary: None,
            indexes: Vec::new(),
            checks: self.new.checks.clone(),
            foreign: Vec::new(),
            collation: self.new.collation,
            sql_mode: self.sql_mode,
        };
        words::add_constraint(constraint, &mut definition, &self.old.name)?;
        if definition.checks.len() > self.new.checks.len() {
            self.new.checks = definition.checks;
        }
        if let Some(parts) = definition.primary {
            self.set_primary(parts)?;
        }
        self.foreign.append(&mut definition.foreign);
        for (name, unique, parts, comment) in definition.indexes {
            self.add_index(name, unique, parts, comment, writing)?;
        }
        Ok(())
    }

    fn convert(&mut self, collation: Collation) {
        for column in self.new.columns.iter_mut().filter(|column| column.ty.kind.is_text()) {
            column.ty.collation = collation;
        }
        self.rebuild = true;
    }
}

impl Session {
    fn set_default(&mut self, column: &mut TableColumn, option: &ColumnOption) -> Result<()> {
        column.default = Default::None;
        self.column_option(column, option)
    }

    /// DROP INDEX.
    pub(super) fn drop_index(&mut self, table: &Name, index: &str) -> Result<Outcome> {
        let operation = Alteration::Parsed(Box::new(AlterTableOperation::DropIndex { name: ast::Ident::new(index) }));
        self.alter_table(table, &[operation])
    }
}
