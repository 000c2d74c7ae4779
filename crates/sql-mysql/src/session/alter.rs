//! ALTER TABLE. Adding and dropping columns and changing names and defaults leave the rows alone. A change of a type,
//! of the primary key or of the character set rebuilds the table in the same transaction.

use std::sync::Arc;

use syntax::tree::{
    ColumnDef, ColumnOption, DefaultValue, Ident, IndexKind, KeyPart, PartKey, Position, TableConstraint, TableOption,
};

use crate::bind::Bind;
use crate::error::{self, Result, SqlError};
use crate::other_tables::check_definition;
use crate::parse::parse_expression;
use crate::parse::statement::{Alteration, Name};
use crate::scalar::modes::SqlMode;
use crate::scalar::state::StateOf as _;
use crate::scalar::store::{implicit_default, store};
use crate::session::define::{self, Reach, same_storage};
use crate::session::definition_parser::{
    self, Definition, NewIndex, Options, collation_of, options_of, options_of_column,
};
use crate::session::foreign::{Wanted, check_nullable, drop_needless_indexes};
use crate::session::key_limits::{makes_row_keys_anew, wants_shorter_row_keys};
use crate::session::{Outcome, Session};
use crate::types::{CharsetName as _, Collation, Kind, MysqlType as _};
use crate::value::Value;
use query::catalog::Writing;
use query::catalog::table::{Check, Default, Part, Table, TableColumn};
use query::exec::rebuild;
use query::nodes::assignment::Place;
use query::nodes::context::EvalContext;
use query::nodes::expr::Expr;

/// Source of a column's values when the table is rebuilt.
#[derive(Clone, Debug)]
enum From {
    Old(usize),
    Initial,
}

/// A table definition while ALTER TABLE is changing it.
struct Draft<'t> {
    old: &'t Table,
    new: &'t mut Table,
    from: Vec<From>,
    rebuild: bool,
    auto_increment: Option<u64>,
    /// Foreign keys to add after all other operations.
    foreign: Vec<Wanted>,
    /// Child tables whose foreign keys refer to this table.
    referring: Vec<Arc<Table>>,
    checks_foreign_keys: bool,
    /// The columns that each CHECK of the old definition reads.
    looked_at: Vec<(String, Vec<String>)>,
    /// The SQL mode of the statement.
    sql_mode: SqlMode,
}

impl Session {
    pub(super) fn alter_table(&mut self, name: &Name, operations: &[Alteration]) -> Result<Outcome> {
        operations.iter().try_for_each(check_hint)?;
        let (schema, name) = self.full_name(name)?;
        self.refuse_view(&schema, &name)?;
        let table = self.catalog.table(&schema, &name)?.clone();
        check_definition(&table)?;
        let reach = self.reach(&table, operations)?;
        self.change_table(&table, &reach, |session, new, writing| {
            let old = Arc::new(new.copy().with_derived_fields());
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
                sql_mode: session.ctx.sql_mode(),
            };
            // Table options apply first, wherever they are written: new columns inherit them.
            let options = operations.iter().filter_map(|operation| match operation {
                Alteration::Option(option) => Some(option),
                _ => None,
            });
            session.table_options(&mut draft, options)?;
            // Constraints are dropped first, so that the statement can add others under the same names.
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
            draft.check_visible(operations)?;
            session.limit_keys(Some(&old), draft.new)?;
            session.warn_of_duplicate_indexes(Some(&old), draft.new);
            draft.rebuild |= draft.keeps_more() || wants_shorter_row_keys(&old, draft.new);
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

    /// Collects the other tables and names that the operations affect.
    fn reach(&self, table: &Table, operations: &[Alteration]) -> Result<Reach> {
        let others_read = !self.core.locks.has_explicit() && only_adds_indexes(table, operations);
        let mut reach = Reach { others_read, ..Reach::default() };
        for operation in operations {
            match operation {
                Alteration::RenameTable(name) => reach.becomes = Some(self.full_name(name)?),
                Alteration::Add(TableConstraint::Foreign(key)) => {
                    let Name { schema, name } = &key.references.table;
                    let schema = schema.as_ref().unwrap_or(&table.schema);
                    reach.parents.push((schema.clone(), name.clone()));
                }
                _ => {}
            }
        }
        Ok(reach)
    }

    fn alteration(&mut self, draft: &mut Draft<'_>, operation: &Alteration, writing: &mut Writing<'_>) -> Result<()> {
        match operation {
            Alteration::AddColumn { column, position } => {
                let made = self.column(column, draft.new.slots.len(), draft.new.collation)?;
                self.add_column(draft, made, position.as_ref())?;
                draft.column_keys(column, writing)
            }
            Alteration::Add(constraint) => self.add_constraint(draft, constraint, writing),
            Alteration::DropColumn(name) => draft.drop_column(&name.value, writing),
            Alteration::DropIndex(name) => draft.drop_index(&name.value),
            Alteration::DropPrimaryKey => {
                if draft.new.primary.take().is_none() {
                    return Err(error::CANT_DROP_FIELD_OR_KEY.with(&[&"PRIMARY"]));
                }
                draft.rebuild = true;
                Ok(())
            }
            Alteration::DropForeignKey(name) => draft.drop_foreign_key(&name.value),
            Alteration::DropCheck(name) => {
                let at = draft.check(&name.value)?;
                draft.new.checks.remove(at);
                Ok(())
            }
            Alteration::DropConstraint(name) => draft.drop_constraint(&name.value),
            Alteration::Modify { column, position } => {
                self.change_column(draft, &column.name.value, column, position.as_ref())?;
                draft.column_keys(column, writing)
            }
            Alteration::Change { old, column, position } => {
                self.change_column(draft, &old.value, column, position.as_ref())?;
                draft.column_keys(column, writing)
            }
            Alteration::AlterDefault { column, default } => self.column_default(draft, &column.value, default.as_ref()),
            Alteration::ColumnVisible { column, visible } => {
                let at = draft.find(&column.value)?;
                draft.new.columns[at].invisible = !visible;
                Ok(())
            }
            Alteration::RenameColumn { from, to } => draft.rename_column(&from.value, &to.value),
            Alteration::RenameIndex { from: Ident { value: from, span: _ }, to: Ident { value: to, span: _ } } => {
                if draft.new.index(to).is_some() {
                    return Err(error::DUP_KEYNAME.with(&[to]));
                }
                let at =
                    draft.new.index(from).ok_or_else(|| error::KEY_DOES_NOT_EXIST.with(&[from, &draft.old.name]))?;
                draft.new.indexes[at].name.clone_from(to);
                Ok(())
            }
            Alteration::RenameTable(name) => {
                let (schema, name) = self.full_name(name)?;
                writing.snapshot.schema(&schema)?;
                (draft.new.schema, draft.new.name) = (schema, name);
                Ok(())
            }
            Alteration::Enforce { constraint, enforced } => {
                let at = draft.check(&constraint.value)?;
                draft.new.checks[at].enforced = *enforced;
                Ok(())
            }
            Alteration::IndexVisible { index: Ident { value: name, span: _ }, visible } => {
                if name.eq_ignore_ascii_case("primary") {
                    return Err(error::PK_INDEX_CANT_BE_INVISIBLE.bare());
                }
                let at =
                    draft.new.index(name).ok_or_else(|| error::KEY_DOES_NOT_EXIST.with(&[name, &draft.old.name]))?;
                draft.new.indexes[at].invisible = !visible;
                Ok(())
            }
            Alteration::Convert { charset, collation } => {
                let default = writing.snapshot.schema(&draft.old.schema)?.collation;
                // COLLATE without CHARACTER SET must belong to the database's character set.
                let implied = collation.as_ref().map(|_| default.charset().name());
                let collation = collation_of(charset.as_deref().or(implied), collation.as_deref(), default)?;
                draft.new.collation = collation;
                draft.convert(collation);
                Ok(())
            }
            Alteration::Rebuild => {
                draft.rebuild = true;
                Ok(())
            }
            Alteration::OrderBy(_) => Err(SqlError::unsupported("ALTER TABLE ... ORDER BY")),
            // Applied before the first operation.
            Alteration::Option(_) | Alteration::Hint { name: _, value: _ } => Ok(()),
        }
    }

    fn table_options<'o>(
        &mut self,
        draft: &mut Draft<'_>,
        options: impl Iterator<Item = &'o TableOption>,
    ) -> Result<()> {
        let Options { charset, collation, comment, auto_increment, engine, noted } = options_of(options)?;
        self.settle_engine(engine.as_deref(), &draft.old.name)?;
        if let Some(comment) = comment {
            draft.new.comment = comment;
        }
        for (name, value) in noted {
            draft.new.options.retain(|(known, _)| *known != name);
            draft.new.options.push((name, value));
        }
        draft.auto_increment = auto_increment;
        draft.new.collation = collation_of(charset.as_deref(), collation.as_deref(), draft.old.collation)?;
        Ok(())
    }

    fn add_column(
        &mut self,
        draft: &mut Draft<'_>,
        mut column: TableColumn,
        position: Option<&Position>,
    ) -> Result<()> {
        if draft.new.column(&column.name).is_some() {
            return Err(error::DUP_FIELDNAME.with(&[&column.name]));
        }
        column.initial = self.initial(&column)?;
        // Each row gets a value of its own.
        let is_kept = column.generated.as_ref().is_some_and(|generated| generated.stored);
        draft.rebuild |= column.auto_increment || matches!(column.default, Default::Expression(_)) || is_kept;
        draft.new.slots.push(column.ty.storage);
        draft.new.columns.push(column);
        draft.from.push(From::Initial);
        draft.place(draft.new.columns.len() - 1, position)
    }

    /// Returns the value that existing rows get for a new column.
    fn initial(&mut self, column: &TableColumn) -> Result<Value> {
        Ok(match &column.default {
            _ if column.generated.is_some() => Value::Null,
            Default::Value(value) => value.clone(),
            Default::None if column.ty.nullable => Value::Null,
            Default::None | Default::Dropped => implicit_default(&column.ty),
            Default::Now(scale) => {
                let node = crate::parse::parse_expression(&format!("CURRENT_TIMESTAMP({scale})"))?;
                let now = self.constant(&node)?;
                let mut ctx = EvalContext::new();
                ctx.zone = self.ctx.zone.clone();
                store(now, &column.ty, Place { column: &column.name, row: 1 }, &mut ctx)?
            }
            Default::Expression(_) => Value::Null,
        })
    }

    fn change_column(
        &mut self,
        draft: &mut Draft<'_>,
        name: &str,
        def: &ColumnDef,
        position: Option<&Position>,
    ) -> Result<()> {
        let new_name = def.name.value.as_str();
        let at = draft.find(name)?;
        if !name.eq_ignore_ascii_case(new_name) && draft.new.column(new_name).is_some() {
            return Err(error::DUP_FIELDNAME.with(&[&new_name]));
        }
        let before = draft.new.columns[at].clone();
        let mut made = self.column(def, before.slot, draft.new.collation)?;
        let in_primary = draft.new.primary.iter().flatten().any(|part| part.column == at);
        if in_primary {
            made.ty.nullable = false;
        }
        let shrinks = made.ty.length < before.ty.length && (made.ty.is_string() || made.ty.kind() == Kind::Decimal);
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

    fn column_default(&mut self, draft: &mut Draft<'_>, name: &str, value: Option<&DefaultValue>) -> Result<()> {
        let at = draft.find(name)?;
        let column = &mut draft.new.columns[at];
        column.default = match value {
            Some(value) => self.default(column, value)?,
            None if column.ty.nullable => Default::Dropped,
            None => Default::None,
        };
        Ok(())
    }

    /// Rewrites all rows into a new map.
    fn rebuild(&mut self, draft: &mut Draft<'_>, writing: &mut Writing<'_>) -> Result<()> {
        rebuild::replace_maps(writing, draft.old, draft.new)?;
        let new = &*draft.new;
        let computed = self.computed(new, &draft.from)?;
        let settled = self.with_formulas(new)?;
        self.ctx.changes_rows = true;
        let mut convert = |old_row: &[Value], number, ctx: &mut EvalContext| {
            let mut row = Vec::with_capacity(new.columns.len());
            for (column, from) in new.columns.iter().zip(&draft.from) {
                row.push(match from {
                    From::Initial if column.auto_increment => {
                        store(Value::UInt(number), &column.ty, Place { column: &column.name, row: number }, ctx)?
                    }
                    _ if column.generated.is_some() => Value::Null,
                    From::Initial => column.initial.clone(),
                    From::Old(at) => converted(&old_row[*at], &draft.old.columns[*at], column, number, ctx)?,
                });
            }
            for (at, expr) in &computed {
                let (column, value) = (&new.columns[*at], expr.eval(&row, ctx)?);
                row[*at] = store(value, &column.ty, Place { column: &column.name, row: number }, ctx)?;
            }
            Ok(row)
        };
        let rows = rebuild::copy_rows(&mut writing.txn, (draft.old, &settled), &mut convert, &mut self.ctx)?;
        let mut columns = new.columns.iter().zip(&draft.from);
        if columns.any(|(column, from)| column.auto_increment && matches!(from, From::Initial)) {
            draft.auto_increment = Some(draft.auto_increment.unwrap_or(1).max(rows + 1));
        }
        Ok(())
    }

    /// Binds the expression defaults of new columns over the new table.
    fn computed(&mut self, table: &Table, from: &[From]) -> Result<Vec<(usize, Expr)>> {
        let shown = Arc::new(table.copy().with_derived_fields());
        let environment = self.bind_environment();
        let mut bind = Bind::new(&environment);
        let mut exprs = Vec::new();
        for (at, (column, from)) in table.columns.iter().zip(from).enumerate() {
            if let (Default::Expression(text), From::Initial) = (&column.default, from) {
                exprs.push((at, bind.over_table(&shown, &parse_expression(text)?)?));
            }
        }
        Ok(exprs)
    }

    /// Returns the settled definition with its generated columns bound.
    fn with_formulas(&self, table: &Table) -> Result<Arc<Table>> {
        let settled = Arc::new(table.copy().with_derived_fields());
        let environment = self.bind_environment();
        Bind::new(&environment).formulas(&settled)?;
        Ok(settled)
    }

    fn add_constraint(
        &mut self,
        draft: &mut Draft<'_>,
        constraint: &TableConstraint,
        writing: &mut Writing<'_>,
    ) -> Result<()> {
        let named =
            self.name_key_expressions(constraint, &draft.new.columns, draft.new.slots.len(), &draft.old.name)?;
        for column in named.columns {
            draft.new.slots.push(column.ty.storage);
            draft.new.columns.push(column);
            draft.from.push(From::Initial);
        }
        draft.sql_mode = self.ctx.sql_mode();
        draft.add_constraint(&named.constraint, writing)
    }

    /// Returns the columns that each CHECK of a table reads.
    fn looked_at(&self, table: &Arc<Table>) -> Result<Vec<(String, Vec<String>)>> {
        let environment = self.bind_environment();
        let mut bind = Bind::new(&environment);
        let columns = |check: &Check| {
            let mut places = bind.over_table(table, &parse_expression(&check.text)?)?.columns();
            places.sort_unstable();
            places.dedup();
            Ok((check.name.clone(), places.into_iter().map(|at| table.columns[at].name.clone()).collect()))
        };
        table.checks.iter().map(columns).collect()
    }
}

/// Returns whether the operations only add indexes of columns, and neither the rows nor another index of the table change for it.
fn only_adds_indexes(table: &Table, operations: &[Alteration]) -> bool {
    let is_kept = |part: &KeyPart| match &part.key {
        PartKey::Column { name, .. } => {
            let column = table.column(&name.value).map(|at| &table.columns[at]);
            column.is_some_and(|column| column.generated.as_ref().is_none_or(|generated| generated.kept))
        }
        PartKey::Expr(_) => false,
    };
    let is_index_of_columns = |operation: &Alteration| match operation {
        Alteration::Hint { .. } => true,
        Alteration::Add(TableConstraint::Index(index)) => {
            matches!(index.kind, IndexKind::Plain | IndexKind::Unique) && index.parts.iter().all(is_kept)
        }
        _ => false,
    };
    // An index that was made for a foreign key goes where another one covers it.
    let loses_none = !table.indexes.iter().any(|index| index.generated);
    let mut generated =
        table.columns.iter().enumerate().filter_map(|(at, column)| Some((at, column.generated.as_ref()?)));
    let rows_stay = generated.all(|(at, generated)| generated.kept || !(generated.stored || table.is_in_key(at)));
    loses_none && rows_stay && !makes_row_keys_anew(table) && operations.iter().all(is_index_of_columns)
}

/// Returns the value of a changed column in a row.
fn converted(
    value: &Value,
    old: &TableColumn,
    new: &TableColumn,
    row: u64,
    ctx: &mut EvalContext,
) -> datum::Result<Value> {
    if value.is_null() && !new.ty.nullable {
        let error = error::WARN_DATA_TRUNCATED.with(&[&new.name, &row]);
        ctx.complain(SqlError { sqlstate: "01000", ..error })?;
        return Ok(implicit_default(&new.ty));
    }
    let same = same_storage(&old.ty, &new.ty) && old.ty.length <= new.ty.length;
    // An invalid member of ENUM stays one, without a warning.
    let is_invalid = *value == Value::UInt(0) && old.ty.kind() == Kind::Enum && new.ty.kind() == Kind::Enum;
    if same || is_invalid {
        return Ok(value.clone());
    }
    let shown = crate::scalar::bind::present(query::nodes::expr::Expr::Literal(value.clone(), old.ty.clone()));
    let shown = if new.ty.kind().is_bytes() { crate::scalar::bind::as_sent(shown) } else { shown };
    let shown = shown.eval(&[], ctx)?;
    store(shown, &new.ty, Place { column: &new.name, row }, ctx)
}

/// Returns whether a change of a generated column requires a rebuild. Changing to or from VIRTUAL is an error.
fn becomes_other(before: &TableColumn, made: &TableColumn) -> Result<bool> {
    let is_virtual = |column: &TableColumn| column.generated.as_ref().is_some_and(|generated| !generated.stored);
    if is_virtual(before) != is_virtual(made) {
        return Err(error::UNSUPPORTED_ACTION_ON_GENERATED_COLUMN.with(&[&"Changing the STORED status"]));
    }
    let text = |column: &TableColumn| column.generated.as_ref().map(|generated| generated.text.clone());
    Ok(made.generated.is_some() && text(before) != text(made))
}

fn drops_constraint(operation: &Alteration) -> bool {
    use Alteration::{DropCheck, DropConstraint, DropForeignKey};
    matches!(operation, DropForeignKey(_) | DropConstraint(_) | DropCheck(_))
}

/// Ignores ALGORITHM, LOCK and the like, but refuses unknown values of them.
fn check_hint(operation: &Alteration) -> Result<()> {
    let Alteration::Hint { name, value } = operation else { return Ok(()) };
    let is_one_of = |known: &[&str]| known.iter().any(|known| value.eq_ignore_ascii_case(known));
    match name.as_str() {
        "algorithm" if !is_one_of(&["default", "instant", "inplace", "copy"]) => {
            Err(error::UNKNOWN_ALTER_ALGORITHM.with(&[value]))
        }
        "lock" if !is_one_of(&["default", "none", "shared", "exclusive"]) => {
            Err(error::UNKNOWN_ALTER_LOCK.with(&[value]))
        }
        _ => Ok(()),
    }
}

impl Draft<'_> {
    fn find(&self, name: &str) -> Result<usize> {
        self.new.column(name).ok_or_else(|| error::BAD_FIELD.with(&[&name, &self.old.name]))
    }

    /// Moves a column to the position of FIRST or AFTER and renumbers the columns of keys.
    fn place(&mut self, at: usize, position: Option<&Position>) -> Result<()> {
        let target = match position {
            None => return Ok(()),
            Some(Position::First) => 0,
            Some(Position::After(name)) => {
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
        // Removes the column from its indexes, which are rebuilt. An index on this column alone is dropped.
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

    /// Returns the renamed columns as (old, new).
    fn renames(&self) -> Vec<(String, String)> {
        let pairs = self.new.columns.iter().zip(&self.from).filter_map(|(column, from)| match from {
            From::Old(at) => Some((self.old.columns[*at].name.clone(), column.name.clone())),
            From::Initial => None,
        });
        pairs.filter(|(old, new)| old != new).collect()
    }

    /// Drops hidden columns of functional indexes that no key uses any more.
    fn drop_needless_columns(&mut self) {
        while let Some(at) =
            (0..self.new.columns.len()).find(|at| self.new.columns[*at].is_hidden() && !self.new.is_in_key(*at))
        {
            self.new.columns.remove(at);
            self.from.remove(at);
            self.renumber(|column| if column > at { column - 1 } else { column });
        }
    }

    /// Returns whether rows store the values of more generated columns than before (QU-8).
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

    fn drop_constraint(&mut self, name: &str) -> Result<()> {
        let is = |known: &str| known.eq_ignore_ascii_case(name);
        let check = self.new.checks.iter().position(|check| is(&check.name));
        let is_foreign = self.new.foreign_keys.iter().any(|key| is(&key.name));
        let is_primary = is("primary") && self.new.primary.is_some();
        let is_unique = self.new.indexes.iter().any(|index| index.unique && is(&index.name));
        match (check, is_foreign, is_primary || is_unique) {
            (None, false, false) => Err(error::CONSTRAINT_NOT_FOUND.with(&[&name])),
            (Some(at), false, false) => {
                self.new.checks.remove(at);
                Ok(())
            }
            (None, true, false) => self.drop_foreign_key(name),
            (None, false, true) => self.drop_index(name),
            _ => Err(error::MULTIPLE_CONSTRAINTS_WITH_SAME_NAME.with(&[&name])),
        }
    }

    /// Checks that a statement which makes columns invisible leaves at least one visible.
    fn check_visible(&self, operations: &[Alteration]) -> Result<()> {
        let hides = operations.iter().any(|operation| matches!(operation, Alteration::ColumnVisible { .. }));
        if hides && self.new.columns.iter().all(|column| column.invisible || column.is_hidden()) {
            return Err(error::TABLE_MUST_HAVE_A_VISIBLE_COLUMN.bare());
        }
        Ok(())
    }

    /// Returns a foreign key that refers to the column, as (child, name).
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

    /// Refuses to change the type of a foreign key's column, unless foreign_key_checks is off. Then QU-6 still applies.
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

    /// Returns the remaining CHECKs that read a column, as (name, whether they read no other column).
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

    /// Drops CHECKs that read only this column; a CHECK that reads others as well is an error.
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

    /// Adds the constraints among the options of a column. The column may have such constraints already: they stay.
    fn column_keys(&mut self, def: &ColumnDef, writing: &mut Writing<'_>) -> Result<()> {
        for option in options_of_column(def) {
            let at = self.new.column(&def.name.value).unwrap_or_default();
            match option {
                ColumnOption::Unique => define::add_index(self.new, NewIndex::unique(at), writing)?,
                ColumnOption::PrimaryKey => self.set_primary(definition_parser::single(at))?,
                ColumnOption::Check(check) => self.add_constraint(&TableConstraint::Check(check.clone()), writing)?,
                _ => {}
            }
        }
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

    fn add_constraint(&mut self, constraint: &TableConstraint, writing: &mut Writing<'_>) -> Result<()> {
        let mut definition = Definition {
            columns: self.new.columns.clone(),
            primary: None,
            primary_using: false,
            indexes: Vec::new(),
            checks: self.new.checks.clone(),
            foreign: Vec::new(),
            collation: self.new.collation,
            sql_mode: self.sql_mode,
        };
        definition_parser::add_constraint(constraint, &mut definition, &self.old.name)?;
        if definition.checks.len() > self.new.checks.len() {
            self.new.checks = definition.checks;
        }
        if let Some(parts) = definition.primary {
            self.set_primary(parts)?;
            self.new.primary_using = definition.primary_using;
        }
        self.foreign.append(&mut definition.foreign);
        for index in definition.indexes {
            define::add_index(self.new, index, writing)?;
        }
        Ok(())
    }

    fn convert(&mut self, collation: Collation) {
        for column in self.new.columns.iter_mut().filter(|column| column.ty.kind().is_text()) {
            column.ty.collation = collation;
        }
        self.rebuild = true;
    }
}

impl Session {
    /// Executes DROP INDEX.
    pub(super) fn drop_index(&mut self, table: &Name, index: &str) -> Result<Outcome> {
        self.alter_table(table, &[Alteration::DropIndex(Ident::new(index))])
    }
}
