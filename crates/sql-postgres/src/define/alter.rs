//! ALTER TABLE: a new definition is drafted, and the rows follow it.

use std::sync::Arc;

use query::catalog::access::{AccessGrant, AccessKey, AccessRecord};
use query::catalog::object_id::ObjectId;
use query::catalog::row_type::{has_row_of, numbers};
use query::catalog::table::{Default, Identity, Index, Table};
use query::catalog::table_lock::TableMode;
use query::catalog::{Snapshot, Writing};
use query::session::definitions::{RelatedTables, follow_names};
use query::types::Type;
use syntax::postgres::tree::{
    AlterOwnerStmt, AlterTableCmd, AlterTableStmt, ColumnOrNumber, Constraint, ConstraintKind, Expr, ObjectName,
    ObjectType,
};

use crate::bind::rights::column_key;
use crate::bind::{self, TableExpression};
use crate::define::column::{WantedExpression, WantedSequence};
use crate::define::composite::{Reshape, member_of_itself};
use crate::define::create_table::{Extras, check_column_name, make_maps, shown_primary, storage_options};
use crate::define::domain::NewDomainCheck;
use crate::define::materialized::{check_of_materialized, kind_of};
use crate::define::names::{Relation, not_a};
use crate::define::object_name::has_constraint;
use crate::define::source::{after_word, balanced};
use crate::error::{PgError, Result, state};
use crate::rights::object::Object;
use crate::session::Session;
use crate::types::{registry, user};

/// The values of a column of the new definition in old rows.
#[derive(Clone, Debug)]
pub(super) enum From {
    /// The column's `initial`, or the default expression.
    Initial,
    /// A column of the old definition.
    Old(usize),
    /// A column of the old definition, converted by an expression over the old row.
    Converted(query::nodes::expr::Expr),
    /// A column of the old definition, with the attributes that a composite type has now.
    Reshaped(usize, Arc<Reshape>),
}

/// A new definition of a table in the making.
pub(super) struct Draft {
    pub old: Arc<Table>,
    pub new: Table,
    /// For each column of `new`.
    pub from: Vec<From>,
    /// The rows must be written anew.
    pub rebuild: bool,
    /// They must be written anew though PostgreSQL would leave them where they are: readers under older snapshots must not take the table for an empty one.
    pub moves: bool,
    /// Sequences to be made for columns, which count through the rows that are there.
    pub sequences: Vec<WantedSequence>,
    /// Columns that must be checked for NULL.
    pub not_null: Vec<usize>,
    /// A new constraint of a domain.
    pub domain_check: Option<NewDomainCheck>,
}

impl Draft {
    fn new(old: &Arc<Table>) -> Draft {
        let from = (0..old.columns.len()).map(From::Old).collect();
        let (sequences, not_null) = (Vec::new(), Vec::new());
        Draft {
            old: old.clone(),
            new: old.copy(),
            from,
            rebuild: false,
            moves: false,
            sequences,
            not_null,
            domain_check: None,
        }
    }

    pub fn column(&self, name: &str) -> Result<usize> {
        let found = self.new.columns.iter().position(|column| !column.is_hidden() && column.name == name);
        found.ok_or_else(|| missing_column(name, &self.new.name))
    }

    /// Returns whether there are generated columns that the user sees.
    pub fn has_named_generated(&self) -> bool {
        self.new.named().any(|(_, column)| column.generated.is_some())
    }

    /// Returns the numbers of columns in access records, each with the new one. A column that is not among them is gone.
    fn moved_columns(&self) -> Vec<(u32, u32)> {
        let pairs = self.new.columns.iter().enumerate().zip(&self.from).filter_map(|((at, _), from)| match from {
            From::Old(old) => Some((column_key(&self.old, *old), column_key(&self.new, at))),
            From::Converted(_) | From::Reshaped(..) => {
                let name = &self.new.columns[at].name;
                let old = self.old.columns.iter().position(|column| column.name == *name)?;
                Some((column_key(&self.old, old), column_key(&self.new, at)))
            }
            From::Initial => None,
        });
        pairs.collect()
    }

    /// Returns the renamed columns as (old, new).
    fn renames(&self) -> Vec<(String, String)> {
        let pairs = self.new.columns.iter().zip(&self.from).filter_map(|(column, from)| match from {
            From::Old(at) => Some((self.old.columns[*at].name.clone(), column.name.clone())),
            From::Initial | From::Converted(_) | From::Reshaped(..) => None,
        });
        pairs.filter(|(old, new)| old != new).collect()
    }
}

pub(super) fn missing_column(name: &str, table: &str) -> PgError {
    let message = format!("column \"{name}\" of relation \"{table}\" does not exist");
    PgError::new(state::UNDEFINED_COLUMN, message)
}

pub(super) fn check_maker(table: &Table) -> Result<()> {
    if table.maker == crate::MAKER {
        return Ok(());
    }
    Err(PgError::unsupported(format!("ALTER of table \"{}\" of another dialect", table.name)))
}

/// Lets privileges on columns follow the columns, and removes those of dropped ones.
fn move_grants(writing: &mut Writing<'_>, table: u64, moved: &[(u32, u32)]) -> Result<()> {
    let key = AccessKey::object(table);
    let has_columns = |access: &AccessRecord| access.grants.iter().flatten().any(|grant| grant.column != 0);
    if !writing.snapshot.access.get(key).is_some_and(|access| has_columns(access)) {
        return Ok(());
    }
    let Some(access) = writing.access(key)? else { return Ok(()) };
    let follow = |grant: &AccessGrant| match grant.column {
        0 => Some(*grant),
        column => {
            let to = moved.iter().find(|(from, _)| *from == column);
            to.map(|(_, to)| AccessGrant { column: *to, ..*grant })
        }
    };
    let grants = access.grants.as_ref().map(|grants| grants.iter().filter_map(follow).collect());
    Ok(writing.put_access(key, Some(AccessRecord { owner: access.owner, grants }), false)?)
}

impl Session {
    pub(super) fn alter_table(&mut self, alter: &AlterTableStmt, text: &Arc<str>) -> Result<String> {
        let AlterTableStmt { kind, relation, missing_ok, commands } = alter;
        let word = match kind {
            ObjectType::Table => "table",
            ObjectType::Index => "index",
            ObjectType::Sequence => "sequence",
            ObjectType::View => "view",
            ObjectType::MaterializedView => "materialized view",
            _ => return Err(PgError::unsupported("this form of ALTER")),
        };
        let tag = format!("ALTER {}", word.to_uppercase());
        self.begin_definition(&tag)?;
        let table = match self.relation(relation)? {
            Some(found) if commands.iter().all(|command| matches!(command, AlterTableCmd::OwnerTo(_))) => {
                self.change_owners(&found, &relation.name, commands)?;
                return Ok(tag);
            }
            Some(Relation::Table(table)) if table.query.is_some() && matches!(word, "table" | "materialized view") => {
                for command in commands {
                    check_of_materialized(command, &table)?;
                }
                table
            }
            Some(Relation::Table(table)) if word == "table" => table,
            Some(found) if found.kind() == word => {
                return Err(PgError::unsupported(format!("this form of ALTER {}", word.to_uppercase())));
            }
            Some(_) => return Err(not_a(&relation.name, word)),
            None if *missing_ok => {
                let message = format!("relation \"{}\" does not exist, skipping", relation.name);
                self.skip_notice(super::SUCCESSFUL, message);
                return Ok(tag);
            }
            None => return Err(self.missing_relation(relation, None)),
        };
        self.check_owns(&Object::table(&table))?;
        let parents = self.parents_of(commands, &table)?;
        self.change_table_with(&table, parents, |session, draft, snapshot| {
            for command in commands {
                session.alteration(draft, command, text, snapshot)?;
            }
            Ok(())
        })?;
        self.look_anew();
        self.change_owners(&Relation::Table(table), &relation.name, commands)?;
        Ok(tag)
    }

    /// ALTER SCHEMA, ALTER DATABASE and others OWNER TO.
    pub(super) fn alter_owner(&mut self, alter: &AlterOwnerStmt) -> Result<&'static str> {
        let AlterOwnerStmt { object, owner } = alter;
        let tag = match object {
            ObjectName::Plain(ObjectType::Schema, name) => {
                self.begin_definition("ALTER SCHEMA")?;
                let object = Object::schema(&*self.schema_named(&name.value)?);
                let to = self.role_of(owner)?;
                self.change_owner_of(&object, &to)?;
                "ALTER SCHEMA"
            }
            ObjectName::Plain(ObjectType::Database, name) => {
                self.begin_definition("ALTER DATABASE")?;
                let object = Object::database(&*self.database_named(&name.value)?);
                let to = self.role_of(owner)?;
                self.change_owner_of(&object, &to)?;
                "ALTER DATABASE"
            }
            ObjectName::Qualified(kind @ (ObjectType::Type | ObjectType::Domain), name) => {
                let tag = if *kind == ObjectType::Type { "ALTER TYPE" } else { "ALTER DOMAIN" };
                self.begin_definition(tag)?;
                self.owned_type(*kind, name)?;
                tag
            }
            _ => return Err(PgError::unsupported("ALTER ... OWNER TO")),
        };
        Ok(tag)
    }

    /// OWNER TO among the commands of ALTER TABLE and its like.
    fn change_owners(&mut self, relation: &Relation, name: &str, commands: &[AlterTableCmd]) -> Result<()> {
        for command in commands {
            if let AlterTableCmd::OwnerTo(role) = command {
                let to = self.role_of(role)?;
                self.change_owner_of_relation(relation, name, &to)?;
            }
        }
        Ok(())
    }

    fn parents_of(&mut self, commands: &[AlterTableCmd], table: &Arc<Table>) -> Result<Vec<(String, String)>> {
        let mut parents = Vec::new();
        let mut constraints: Vec<&Constraint> = Vec::new();
        for command in commands {
            match command {
                AlterTableCmd::AddConstraint(constraint) => constraints.push(constraint),
                AlterTableCmd::AddColumn { column, .. } => constraints.extend(&column.constraints),
                _ => {}
            }
        }
        for constraint in constraints {
            if let ConstraintKind::Foreign(node) = &constraint.kind {
                parents.push(self.parent_of(node, table)?);
            }
        }
        Ok(parents)
    }

    /// Changes a table's definition under its exclusive metadata lock.
    pub(super) fn change_table(
        &mut self,
        table: &Arc<Table>,
        change: impl FnOnce(&mut Session, &mut Draft, &Snapshot) -> Result<()>,
    ) -> Result<()> {
        self.change_table_with(table, Vec::new(), change)
    }

    /// Adds an index of columns. Others read the table meanwhile, and change nothing in it.
    pub(super) fn change_table_in_use(
        &mut self,
        table: &Arc<Table>,
        add: impl FnOnce(&mut Session, &mut Draft, &Snapshot) -> Result<()>,
    ) -> Result<()> {
        check_maker(table)?;
        let db = self.database().clone();
        let needs = |snapshot: &Snapshot| {
            let changed = vec![snapshot.table(&table.schema, &table.name)?.clone()];
            Ok(RelatedTables { changed, ..RelatedTables::default() })
        };
        let mut writing = self.lock_and_write(&db, TableMode::ShareRowExclusive, needs)?;
        let old = writing.snapshot.table(&table.schema, &table.name)?.clone();
        let mut draft = Draft::new(&old);
        add(self, &mut draft, &writing.snapshot)?;
        self.settle_rows(&mut draft, &mut writing)?;
        writing.put_table_in_use(draft.new)?;
        self.finish(writing)
    }

    fn change_table_with(
        &mut self,
        table: &Arc<Table>,
        parents: Vec<(String, String)>,
        change: impl FnOnce(&mut Session, &mut Draft, &Snapshot) -> Result<()>,
    ) -> Result<()> {
        self.refuse_waiting(table, "ALTER TABLE")?;
        check_maker(table)?;
        self.check_owns(&Object::table(table))?;
        let db = self.database().clone();
        let needs = |snapshot: &Snapshot| {
            let parents = parents.iter().filter_map(|(schema, name)| snapshot.table(schema, name).ok().cloned());
            let changed = vec![snapshot.table(&table.schema, &table.name)?.clone()];
            Ok(RelatedTables::of(changed, snapshot).and(parents))
        };
        let mut writing = match table.temporary {
            true => self.write_temporary(&db)?,
            false => self.lock_and_write(&db, TableMode::AccessExclusive, needs)?,
        };
        let ends = if table.temporary { RelatedTables::default() } else { needs(&writing.snapshot)? };
        let old = writing.snapshot.table(&table.schema, &table.name)?.clone();
        let mut draft = Draft::new(&old);
        change(self, &mut draft, &writing.snapshot)?;
        draft.drop_unused_columns();
        self.check_row_type(&draft, &writing.snapshot)?;
        let sequences = std::mem::take(&mut draft.sequences);
        self.make_sequences(&mut draft.new, sequences, &mut writing)?;
        self.settle_rows(&mut draft, &mut writing)?;
        let renames = draft.renames();
        let moved = draft.moved_columns();
        let Draft { mut new, .. } = draft;
        follow_names(&mut writing, &old, &mut new, &renames, |a, b| a == b)?;
        let is_moved = new.name != old.name || new.schema != old.schema;
        if is_moved {
            writing.forget_name(&old)?;
        }
        self.check_children(&new, &writing.snapshot)?;
        let ties_change = is_moved || new.foreign_keys != old.foreign_keys || !renames.is_empty();
        writing.put_table(new)?;
        move_grants(&mut writing, old.id, &moved)?;
        if ties_change {
            self.touch(&mut writing, &ends.tied)?;
        }
        self.finish(writing)
    }

    /// Fails for a change of a table's row type while a column has values of it (QU-70), and for a row that would be within itself.
    fn check_row_type(&mut self, draft: &Draft, snapshot: &Snapshot) -> Result<()> {
        let (table, Some(own)) = (&draft.old, numbers(draft.old.id)) else { return Ok(()) };
        if has_row_of(table, &draft.new) {
            return Ok(());
        }
        let containing = snapshot.types_containing(&own);
        if draft.new.columns.iter().any(|column| containing.contains(&column.ty.id)) {
            return Err(member_of_itself(own[0].0));
        }
        self.check_no_rows(snapshot, table.id, kind_of(table), &table.name)
    }

    /// Fails if a column has rows of a relation, which is about to change.
    pub(super) fn check_no_rows(
        &mut self,
        snapshot: &Snapshot,
        relation: ObjectId,
        kind: &str,
        name: &str,
    ) -> Result<()> {
        let Some((user, column)) = snapshot.column_of_rows(std::iter::once(relation), |_| true) else { return Ok(()) };
        let first = numbers(relation).and_then(|[rows, _]| self.column_with_type(rows.0));
        let column = first.unwrap_or_else(|| format!("{}.{column}", user.name));
        let message = format!("cannot alter {kind} \"{name}\" because column \"{column}\" uses its row type");
        Err(PgError::new(state::FEATURE_NOT_SUPPORTED, message))
    }

    /// Brings rows and indexes into the form of the new definition, and checks them against what is new in it.
    fn settle_rows(&mut self, draft: &mut Draft, writing: &mut Writing<'_>) -> Result<()> {
        draft.moves |= primary_differs(&draft.old, &draft.new);
        if draft.rebuild || draft.moves {
            make_maps(&mut draft.new, writing)?;
            self.rebuild(draft, writing)?;
            if !draft.rebuild {
                draft.new.note_moved_rows();
            }
        } else {
            let kept = |index: &Index| draft.new.indexes.iter().any(|other| other.map == index.map);
            for index in draft.old.indexes.iter().filter(|index| !kept(index)) {
                writing.txn.drop_map(index.map)?;
            }
            make_maps(&mut draft.new, writing)?;
            let fresh = |index: &&Index| !draft.old.indexes.iter().any(|old| old.map == index.map);
            let names: Vec<&str> = draft.new.indexes.iter().filter(fresh).map(|index| &*index.name).collect();
            let settled = draft.new.copy().with_derived_fields();
            let settled = Arc::new(Table { version: draft.new.version, ..settled });
            if !names.is_empty() {
                let all = settled.indexes.iter().enumerate();
                let fresh: Vec<usize> =
                    all.filter(|(_, index)| names.contains(&&*index.name)).map(|(at, _)| at).collect();
                super::rebuild::fill(&mut writing.txn, &settled, &fresh, self.context())?;
            }
            self.check_rows(draft, &settled, writing)?;
        }
        let settled = Arc::new(draft.new.copy().with_derived_fields());
        let old = draft.old.clone();
        self.check_new_keys(&old, &settled, writing)
    }

    fn alteration(
        &mut self,
        draft: &mut Draft,
        command: &AlterTableCmd,
        text: &Arc<str>,
        snapshot: &Snapshot,
    ) -> Result<()> {
        match command {
            AlterTableCmd::AddColumn { column, if_not_exists } => {
                let name = &column.name.value;
                if *if_not_exists && draft.new.columns.iter().any(|known| known.name == *name) {
                    let message =
                        format!("column \"{name}\" of relation \"{}\" already exists, skipping", draft.new.name);
                    self.skip_notice(state::DUPLICATE_COLUMN, message);
                    return Ok(());
                }
                if draft.new.columns.iter().any(|known| !known.is_hidden() && known.name == *name) {
                    let message = format!("column \"{name}\" of relation \"{}\" already exists", draft.new.name);
                    return Err(PgError::new(state::DUPLICATE_COLUMN, message));
                }
                self.add_column(draft, column, text, snapshot)
            }
            AlterTableCmd::DropColumn { name, missing_ok, cascade } => {
                self.drop_column(draft, &name.value, *missing_ok, *cascade, snapshot)
            }
            AlterTableCmd::SetDefault { column, value } => {
                let at = draft.column(&column.value)?;
                let from = after_word(text, column.at.0 as usize, "default");
                let source = from.and_then(|from| balanced(text, from, value.span.end as usize)).unwrap_or_default();
                self.set_default(draft, at, value, source, text)
            }
            AlterTableCmd::DropDefault { column } => {
                let at = draft.column(&column.value)?;
                if draft.new.columns[at].identity != Identity::None {
                    let message =
                        format!("column \"{}\" of relation \"{}\" is an identity column", column.value, draft.new.name);
                    return Err(PgError::new(state::SYNTAX_ERROR, message));
                }
                draft.new.columns[at].default = Default::None;
                Ok(())
            }
            AlterTableCmd::SetNotNull { column } => {
                let at = draft.column(&column.value)?;
                if draft.new.columns[at].ty.nullable {
                    let ty = draft.new.columns[at].ty.clone();
                    draft.new.columns[at].ty = ty.with_nullable(false);
                    draft.not_null.push(at);
                }
                Ok(())
            }
            AlterTableCmd::DropNotNull { column } => {
                let at = draft.column(&column.value)?;
                let in_primary = draft.new.primary_parts().into_iter().flatten().any(|part| part.column == at);
                if in_primary {
                    let message = format!("column \"{}\" is in a primary key", column.value);
                    return Err(PgError::new(state::INVALID_TABLE_DEFINITION, message));
                }
                if draft.new.columns[at].identity != Identity::None {
                    let message =
                        format!("column \"{}\" of relation \"{}\" is an identity column", column.value, draft.new.name);
                    return Err(PgError::new(state::SYNTAX_ERROR, message));
                }
                let ty = draft.new.columns[at].ty.clone();
                draft.new.columns[at].ty = ty.with_nullable(true);
                Ok(())
            }
            AlterTableCmd::SetType { column, ty, collation, using } => {
                if let Some(collation) = collation {
                    return Err(PgError::unsupported(format!("collation \"{}\"", collation.last())));
                }
                self.set_type(draft, &column.value, ty, using.as_ref(), text)
            }
            AlterTableCmd::AddConstraint(constraint) => {
                let before = draft.new.primary_parts().is_some();
                self.add_constraint(&mut draft.new, constraint, None, text, snapshot)?;
                if !before {
                    let parts = draft.new.primary_parts().into_iter().flatten();
                    let columns: Vec<usize> = parts.map(|part| part.column).collect();
                    draft.not_null.extend(columns);
                }
                match &constraint.kind {
                    ConstraintKind::Check(_) if constraint.not_valid => {
                        draft.new.checks.last_mut().expect("it was added").is_validated = false;
                    }
                    ConstraintKind::Foreign(_) if constraint.not_valid => {
                        draft.new.foreign_keys.last_mut().expect("it was added").is_validated = false;
                    }
                    _ => {}
                }
                Ok(())
            }
            AlterTableCmd::DropConstraint { name, missing_ok, cascade } => {
                self.drop_constraint(draft, &name.value, *missing_ok, *cascade, snapshot)
            }
            AlterTableCmd::AlterConstraint { name, deferrable, initially_deferred } => {
                let (new, name) = (&mut draft.new, &name.value);
                let Some(key) = new.foreign_keys.iter_mut().find(|key| key.name == *name) else {
                    let (state, what) = match has_constraint(new, name) {
                        true => (state::WRONG_OBJECT_TYPE, "is not a foreign key constraint"),
                        false => (state::UNDEFINED_OBJECT, "does not exist"),
                    };
                    let message = format!("constraint \"{name}\" of relation \"{}\" {what}", new.name);
                    return Err(PgError::new(state, message));
                };
                key.deferral = super::foreign::deferral(*deferrable, *initially_deferred);
                Ok(())
            }
            AlterTableCmd::AddIdentity { column, always, options } => {
                let at = draft.column(&column.value)?;
                let known = &draft.new.columns[at];
                if known.ty.nullable {
                    let message = format!(
                        "column \"{}\" of relation \"{}\" must be declared NOT NULL before identity can be added",
                        column.value, draft.new.name
                    );
                    return Err(PgError::new(state::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
                }
                let mut changed = known.clone();
                let wanted = self.identity(&mut changed, at, *always, options)?;
                draft.new.columns[at] = changed;
                draft.sequences.push(wanted);
                Ok(())
            }
            AlterTableCmd::OwnerTo(_) => Ok(()),
            AlterTableCmd::SetOptions(options) => {
                for (name, value) in storage_options(options)? {
                    draft.new.options.retain(|(known, _)| *known != name);
                    draft.new.options.push((name, value));
                }
                Ok(())
            }
            AlterTableCmd::ResetOptions(options) => {
                for (name, _) in storage_options(options)? {
                    draft.new.options.retain(|(known, _)| *known != name);
                }
                Ok(())
            }
            AlterTableCmd::SetStatistics { column: ColumnOrNumber::Column(column), value } => {
                draft.column(&column.value)?;
                match value {
                    // Statistics are gathered as finely as they are needed.
                    -1 => Ok(()),
                    ..-1 => {
                        let message = format!("statistics target {value} is too low");
                        Err(PgError::new(state::INVALID_PARAMETER_VALUE, message))
                    }
                    _ => Err(PgError::unsupported("a statistics target of a column")),
                }
            }
            AlterTableCmd::SetStorage { column, storage } => {
                let at = draft.column(&column.value)?;
                check_storage(&draft.new.columns[at].ty, storage)
            }
            AlterTableCmd::SetCompression { column, method } => {
                let at = draft.column(&column.value)?;
                check_compression(&draft.new.columns[at].ty, method)
            }
            AlterTableCmd::ValidateConstraint { name } => validate(&mut draft.new, &name.value),
            AlterTableCmd::SetLogged(false) => {
                self.tell_logged();
                Ok(())
            }
            AlterTableCmd::SetLogged(true) | AlterTableCmd::SetWithoutOids | AlterTableCmd::ClusterOn(None) => Ok(()),
            AlterTableCmd::EnableTrigger(_) | AlterTableCmd::DisableTrigger(_) => {
                Err(PgError::unsupported("ALTER TABLE ... TRIGGER"))
            }
            other => Err(PgError::unsupported(format!("{} {}", words_of(&draft.old), command_word(other)))),
        }
    }

    fn add_column(
        &mut self,
        draft: &mut Draft,
        def: &syntax::postgres::tree::ColumnDef,
        text: &Arc<str>,
        snapshot: &Snapshot,
    ) -> Result<()> {
        check_column_name(&draft.new, &def.name.value)?;
        let mut extras = Extras::default();
        self.declare_column(&mut draft.new, def, text, &mut extras)?;
        let at = draft.new.columns.len() - 1;
        // A slot of its own: slots of dropped columns are not given again (QU-20).
        draft.new.columns[at].slot = draft.new.slots.len();
        draft.new.slots.push(draft.new.columns[at].ty.storage);
        draft.from.push(From::Initial);
        for wanted in &extras.expressions {
            self.settle_expression(&mut draft.new, wanted, text)?;
        }
        let column = &mut draft.new.columns[at];
        draft.rebuild |= user::is_domain(registry::oid_of(&column.ty));
        match &column.default {
            Default::Value(value) => column.initial = value.clone(),
            Default::Expression(_) => draft.rebuild = true,
            _ => {}
        }
        draft.rebuild |= column.generated.is_some() || !extras.sequences.is_empty();
        if !column.ty.nullable && column.initial.is_null() && !draft.rebuild {
            draft.not_null.push(at);
        }
        draft.sequences.extend(extras.sequences);
        for (constraint, column) in extras.constraints {
            self.add_constraint(&mut draft.new, constraint, column, text, snapshot)?;
        }
        Ok(())
    }

    fn set_default(&mut self, draft: &mut Draft, at: usize, expr: &Expr, source: &str, text: &str) -> Result<()> {
        let column = &draft.new.columns[at];
        if column.identity != Identity::None || column.generated.is_some() {
            let kind = if column.generated.is_some() { "a generated column" } else { "an identity column" };
            let message = format!("column \"{}\" of relation \"{}\" is {kind}", column.name, draft.new.name);
            return Err(PgError::new(state::SYNTAX_ERROR, message));
        }
        let kind = TableExpression::Default;
        let wanted = WantedExpression { column: at, expr, kind, text: source.to_owned() };
        self.settle_expression(&mut draft.new, &wanted, text)
    }

    fn set_type(
        &mut self,
        draft: &mut Draft,
        name: &str,
        ty: &syntax::postgres::tree::TypeName,
        using: Option<&Expr>,
        text: &Arc<str>,
    ) -> Result<()> {
        let at = draft.column(name)?;
        if draft.new.columns[at].generated.is_some()
            || draft.new.foreign_keys.iter().any(|key| key.columns.contains(&at))
        {
            return Err(PgError::unsupported("ALTER TYPE of a column of a foreign key or a generated column"));
        }
        if !draft.new.checks.is_empty() || draft.has_named_generated() {
            return Err(PgError::unsupported("ALTER TYPE in a table with checks or generated columns"));
        }
        let old = draft.old.clone();
        let views = self.views_of_database();
        if let Some(view) = views.iter().find(|view| self.reads_column(view, &old, name)) {
            let message = "cannot alter type of a column used by a view or rule";
            let shown = self.shown_view(view);
            let detail = format!("rule _RETURN on {shown} depends on column \"{name}\"");
            return Err(PgError::new(state::FEATURE_NOT_SUPPORTED, message).detail(detail));
        }
        let From::Old(source) = draft.from[at] else {
            return Err(PgError::unsupported("ALTER TYPE of a column that the same statement adds"));
        };
        let (made, serial) = self.column_type(ty, text)?;
        if serial.is_some() {
            return Err(PgError::new(state::UNDEFINED_OBJECT, format!("type \"{}\" does not exist", ty.name.last())));
        }
        let made = made.with_nullable(draft.new.columns[at].ty.nullable);
        // The expression assigns to a column of the new type over the old row.
        let mut over = draft.old.copy();
        over.columns.push(query::catalog::table::TableColumn::new(String::new(), made.clone(), over.slots.len()));
        over.slots.push(made.storage);
        let target = over.columns.len() - 1;
        let over = Arc::new(over.with_derived_fields());
        let plain = syntax::postgres::tree::Expr {
            kind: syntax::postgres::tree::ExprKind::Column(syntax::postgres::tree::ColumnRef {
                fields: vec![draft.old.columns[source].name.clone()],
                star: false,
            }),
            span: syntax::postgres::tree::Span::default(),
        };
        let expr = using.unwrap_or(&plain);
        let bound = self.with_environment(&[], |environment, ctx| {
            bind::bind_table_expression(environment, ctx, text, (&over, expr), TableExpression::Generated, Some(target))
        });
        let bound = bound.map_err(|error| match using {
            None if error.state == state::DATATYPE_MISMATCH => {
                let shown = crate::types::registry::format_type(
                    crate::types::registry::oid_of(&made),
                    Some(crate::types::registry::typmod_of(&made)),
                );
                let message = format!("column \"{name}\" cannot be cast automatically to type {shown}");
                let hint = format!("You might need to specify \"USING {name}::{shown}\".");
                PgError::new(state::DATATYPE_MISMATCH, message).hint(hint)
            }
            _ => error,
        })?;
        match &draft.new.columns[at].default {
            Default::None | Default::Dropped => {}
            _ => return Err(PgError::unsupported("ALTER TYPE of a column with a default")),
        }
        for index in draft.new.indexes.iter().filter(|index| index.parts.iter().any(|part| part.column == at)) {
            index.terms.map_or(Ok(()), |form| super::gin::check_type(form, &made))?;
        }
        draft.new.columns[at].ty = made;
        draft.new.columns[at].initial = crate::value::Value::Null;
        draft.from[at] = From::Converted(bound);
        draft.rebuild = true;
        self.retype_hidden_columns(&mut draft.new)
    }

    pub(super) fn drop_column(
        &mut self,
        draft: &mut Draft,
        name: &str,
        missing_ok: bool,
        cascade: bool,
        snapshot: &Snapshot,
    ) -> Result<()> {
        let at = match draft.column(name) {
            Ok(at) => at,
            Err(error) if missing_ok => {
                self.skip_notice(super::SUCCESSFUL, error.message + ", skipping");
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if draft.has_named_generated() && draft.new.columns[at].generated.is_none() {
            return Err(PgError::unsupported("DROP COLUMN in a table with generated columns"));
        }
        self.refuse_dependent_views(&draft.old, Some(name), cascade)?;
        let children: Vec<Arc<Table>> = snapshot.children_now(&draft.new.schema, &draft.new.name);
        for child in &children {
            for key in child.foreign_keys.iter().filter(|key| key.refers_to(&draft.new.schema, &draft.new.name)) {
                if key.parent_columns.iter().any(|column| column == name) && child.id != draft.new.id {
                    if cascade {
                        return Err(PgError::unsupported("DROP COLUMN ... CASCADE of a referenced column"));
                    }
                    let table = &draft.new.name;
                    let message =
                        format!("cannot drop column {name} of table {table} because other objects depend on it");
                    let error = PgError::new(state::DEPENDENT_OBJECTS_STILL_EXIST, message);
                    let detail = format!(
                        "constraint {} on table {} depends on column {name} of table {table}",
                        key.name, child.name
                    );
                    return Err(error.detail(detail).hint(CASCADE_HINT));
                }
            }
        }
        let checks = self.checks_over(&draft.new, at)?;
        draft.new.checks.retain(|check| !checks.contains(&check.name));
        draft.new.foreign_keys.retain(|key| !key.columns.contains(&at));
        if draft.new.primary.iter().flatten().any(|part| part.column == at) {
            draft.new.primary = None;
            draft.new.primary_name.clear();
        }
        let readers = self.hidden_readers(&draft.new, at)?;
        let reads = |column: usize| column == at || readers.contains(&column);
        draft.new.indexes.retain(|index| !index.columns().any(reads));
        draft.remove_column(at);
        draft.drop_unused_columns();
        Ok(())
    }

    /// Returns the names of the checks that read a column.
    fn checks_over(&mut self, table: &Table, column: usize) -> Result<Vec<String>> {
        let over = Arc::new(table.copy().with_derived_fields());
        let mut names = Vec::new();
        for check in &table.checks {
            let expr = syntax::postgres::parse_expression(&check.text)
                .map_err(|_| PgError::new(state::DATA_CORRUPTED, "the text of a check has no meaning"))?;
            let bound = self.with_environment(&[], |environment, ctx| {
                bind::bind_table_expression(environment, ctx, &check.text, (&over, &expr), TableExpression::Check, None)
            })?;
            if bound.columns().contains(&column) {
                names.push(check.name.clone());
            }
        }
        Ok(names)
    }

    fn drop_constraint(
        &mut self,
        draft: &mut Draft,
        name: &str,
        missing_ok: bool,
        cascade: bool,
        snapshot: &Snapshot,
    ) -> Result<()> {
        let new = &mut draft.new;
        let is_primary = new.primary.is_some() && shown_primary(new) == name;
        let is_unique = new.indexes.iter().any(|index| index.is_constraint && index.name == name);
        if is_primary || is_unique {
            let children = snapshot.children_now(&new.schema, &new.name);
            let key = children.iter().flat_map(|child| {
                let keys = child.foreign_keys.iter().filter(|key| key.refers_to(&new.schema, &new.name));
                keys.map(move |key| (key, child))
            });
            let mut without = new.copy();
            without.primary = without.primary.filter(|_| !is_primary);
            without.indexes.retain(|index| index.name != name);
            let lost = key.into_iter().find(|(key, child)| {
                let parent = &without;
                key.fit(child, parent).is_err()
            });
            if let Some((key, child)) = lost {
                if cascade {
                    return Err(PgError::unsupported("DROP CONSTRAINT ... CASCADE of a referenced key"));
                }
                let message =
                    format!("cannot drop constraint {name} on table {} because other objects depend on it", new.name);
                let detail = format!("constraint {} on table {} depends on index {name}", key.name, child.name);
                let error = PgError::new(state::DEPENDENT_OBJECTS_STILL_EXIST, message);
                return Err(error.detail(detail).hint(CASCADE_HINT));
            }
        }
        if is_primary {
            new.primary = None;
            new.primary_name.clear();
        } else if is_unique {
            new.indexes.retain(|index| index.name != name);
        } else if new.checks.iter().any(|check| check.name == name) {
            new.checks.retain(|check| check.name != name);
        } else if let Some(at) = new.foreign_keys.iter().position(|key| key.name == name) {
            new.foreign_keys.remove(at);
            new.indexes.retain(|index| !(index.generated && index.name == name));
        } else {
            let message = format!("constraint \"{name}\" of relation \"{}\" does not exist", new.name);
            if !missing_ok {
                return Err(PgError::new(state::UNDEFINED_OBJECT, message));
            }
            self.skip_notice(super::SUCCESSFUL, message + ", skipping");
        }
        Ok(())
    }
}

pub(super) const CASCADE_HINT: &str = "Use DROP ... CASCADE to drop the dependent objects too.";

fn primary_differs(old: &Table, new: &Table) -> bool {
    // Slots stay, so positions of columns may differ while the keys do not.
    let slots = |table: &Table| {
        table.primary.as_ref().map(|parts| {
            parts.iter().map(|part| (table.columns[part.column].slot, part.order, part.prefix)).collect::<Vec<_>>()
        })
    };
    slots(old) != slots(new)
}

/// Returns the words of a statement that changes a definition.
fn words_of(table: &Table) -> &'static str {
    if table.query.is_some() { "ALTER MATERIALIZED VIEW" } else { "ALTER TABLE" }
}

fn command_word(command: &AlterTableCmd) -> String {
    let shown = format!("{command:?}");
    let word = shown.split([' ', '(', '{']).next().unwrap_or_default();
    let mut out = String::new();
    for c in word.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push(' ');
        }
        out.push(c.to_ascii_uppercase());
    }
    out
}

/// Returns the letter of a type's storage in PostgreSQL, and its name.
fn storage_of(ty: &Type) -> (char, String) {
    let oid = registry::oid_of(ty);
    (registry::by_oid(oid).map_or('x', |row| row.toast), registry::format_type(oid, None))
}

/// SET STORAGE: long values are stored in one way, which is shown as the default of their type.
fn check_storage(ty: &Type, storage: &str) -> Result<()> {
    let (default, name) = storage_of(ty);
    let wanted = match storage.to_ascii_lowercase().as_str() {
        "plain" => 'p',
        "external" => 'e',
        "main" => 'm',
        "extended" => 'x',
        "default" => default,
        _ => return Err(PgError::new(state::INVALID_PARAMETER_VALUE, format!("invalid storage type \"{storage}\""))),
    };
    if wanted == default {
        return Ok(());
    }
    if default == 'p' {
        let message = format!("column data type {name} can only have storage PLAIN");
        return Err(PgError::new(state::FEATURE_NOT_SUPPORTED, message));
    }
    Err(PgError::unsupported(format!("storage {} of type {name}", storage.to_uppercase())))
}

/// SET COMPRESSION: no value is compressed.
fn check_compression(ty: &Type, method: &str) -> Result<()> {
    let (storage, name) = storage_of(ty);
    match method {
        "default" => Ok(()),
        _ if storage == 'p' => {
            let message = format!("column data type {name} does not support compression");
            Err(PgError::new(state::FEATURE_NOT_SUPPORTED, message))
        }
        "pglz" | "lz4" => Err(PgError::unsupported(format!("compression method {method}"))),
        _ => Err(PgError::new(state::INVALID_PARAMETER_VALUE, format!("invalid compression method \"{method}\""))),
    }
}

/// VALIDATE CONSTRAINT: settling the rows checks them.
fn validate(table: &mut Table, name: &str) -> Result<()> {
    if let Some(check) = table.checks.iter_mut().find(|check| check.name == name) {
        check.is_validated = true;
    } else if let Some(key) = table.foreign_keys.iter_mut().find(|key| key.name == name) {
        key.is_validated = true;
    } else {
        let (state, what) = match has_constraint(table, name) {
            true => (state::WRONG_OBJECT_TYPE, "is not a foreign key or check constraint"),
            false => (state::UNDEFINED_OBJECT, "does not exist"),
        };
        return Err(PgError::new(state, format!("constraint \"{name}\" of relation \"{}\" {what}", table.name)));
    }
    Ok(())
}
