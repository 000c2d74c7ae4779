//! The rules of a table whose rows change: defaults, checks, generated columns, foreign keys.
//!
//! The texts in a table's definition are of the dialect that made it. A table of another dialect is changed as long as none of its texts would have to be evaluated.

use std::sync::Arc;

use query::catalog::foreign_graph::{ForeignKeyGraph, RowChangeKind};
use query::catalog::object_id::Maker;
use query::catalog::table::{Default, Identity, Table};
use query::nodes::change::Rules;
use query::nodes::expr::Expr;
use query::nodes::formula::Formula;
use query::nodes::relation::{Columns, ScopeTable};
use syntax::postgres::tree;

use crate::bind::from::{columns_of, names_of, origin_of};
use crate::bind::scope::{BlockScope, Clause, NameItem};
use crate::bind::typing::{Operand, literal, shown, unsupported};
use crate::bind::{Binder, TableExpression, relation_oid};
use crate::define::names::schema_of;
use crate::error::{PgError, Result, state};
use crate::functions::CastContext;
use crate::functions::volatility::is_immutable;
use crate::types::assignment::{ASSIGNMENT, with_typmod};
use crate::types::foreign;
use crate::types::oid::{self, Oid};
use crate::types::registry::{oid_of as type_oid, typmod_of};
use crate::types::user;
use crate::value::Value;

/// The number of this dialect as a maker of tables.
pub const MAKER: Maker = Maker(1);

/// The columns that a statement leaves to their defaults.
#[derive(Clone, Copy)]
pub enum Omitted<'c> {
    /// None: no row is inserted.
    Nothing,
    /// All but these.
    AllBut(&'c [usize]),
}

impl Binder<'_> {
    /// Binds a table's defaults and checks. Opens a scope with the table alone.
    pub fn rules(&mut self, table: &Arc<Table>, doing: &[RowChangeKind], omitted: Omitted<'_>) -> Result<Rules> {
        let mut defaults = vec![None; table.columns.len()];
        if let Omitted::AllBut(given) = omitted {
            for at in (0..table.columns.len()).filter(|at| !given.contains(at)) {
                defaults[at] = self.default_of(table, at)?;
            }
        }
        if table.maker != MAKER && table.columns.iter().any(|column| column.on_update_now) {
            return Err(unsupported(format!("ON UPDATE of table \"{}\" of another dialect", table.name)));
        }
        let mut checks = Vec::new();
        for check in table.checks.iter().filter(|check| check.enforced) {
            if table.maker != MAKER {
                return Err(unsupported(format!("the check \"{}\" of another dialect", check.name)));
            }
            let condition = self.definition(table, &check.text, TableExpression::Check, None)?;
            checks.push((check.name.clone(), condition));
        }
        let foreign_graph = self.foreign_graph(table, doing)?;
        let (clocks, options) = (Vec::new(), Vec::new());
        Ok(Rules { table: table.clone(), defaults, clocks, checks, foreign_graph, options })
    }

    /// Returns a column's default. `None`: it must be given.
    pub fn default_of(&mut self, table: &Arc<Table>, at: usize) -> Result<Option<Expr>> {
        let column = &table.columns[at];
        if column.auto_increment || column.generated.is_some() {
            // The core fills it in.
            return Ok(Some(Expr::null()));
        }
        if column.identity != Identity::None {
            return self.next_value(table, at).map(Some);
        }
        let refused = || unsupported(format!("the default of column \"{}\" of another dialect", column.name));
        Ok(match &column.default {
            Default::None | Default::Dropped if user::is_domain(type_oid(&column.ty)) => {
                Some(self.default_of_domain(type_oid(&column.ty))?)
            }
            Default::None | Default::Dropped if column.ty.nullable => {
                Some(Expr::Literal(Value::Null, column.ty.clone()))
            }
            Default::None | Default::Dropped => None,
            Default::Value(value) => Some(Expr::Literal(value.clone(), column.ty.clone())),
            Default::Now(_) => return Err(refused()),
            Default::Expression(_) if table.maker != MAKER => return Err(refused()),
            Default::Expression(text) => {
                let expr = self.definition(table, text, TableExpression::Default, Some(at))?;
                Some(self.as_stored(expr, table, at)?)
            }
        })
    }

    /// Brings a literal to the column's stored form, in which the core takes it as it is.
    fn as_stored(&mut self, expr: Expr, table: &Table, at: usize) -> Result<Expr> {
        let ty = &table.columns[at].ty;
        match expr {
            Expr::Literal(value, _) if foreign::is_foreign(ty) => {
                Ok(Expr::Literal(foreign::stored(value, ty)?, ty.clone()))
            }
            // NULL in a column that has none is an error of the rows.
            Expr::Literal(Value::Null, _) if !ty.nullable => self.call_of_null(ty),
            Expr::Literal(value, _) if !value.is_null() => {
                let value = with_typmod(value, type_oid(ty), typmod_of(ty), false)?;
                Ok(Expr::Literal(value, ty.clone()))
            }
            other => Ok(other),
        }
    }

    /// Returns NULL as an expression that is evaluated, so that it is stored like any value.
    fn call_of_null(&self, ty: &query::types::Type) -> Result<Expr> {
        let null = Expr::Literal(Value::Null, ty.clone().with_nullable(true));
        Ok(super::coerce::call_of(&super::special::COALESCE, vec![null], type_oid(ty), typmod_of(ty)))
    }

    /// Returns the next value of an identity column's sequence.
    fn next_value(&mut self, table: &Table, at: usize) -> Result<Expr> {
        let column = &table.columns[at];
        let Some(sequence) = column.sequences.first() else {
            let text = format!("no owned sequence found for column \"{}\"", column.name);
            return Err(PgError::new(state::INTERNAL_ERROR, text));
        };
        let sequence = literal(Value::UInt(u64::from(relation_oid(*sequence))), oid::REGCLASS);
        let value = self.call_named("nextval", vec![Operand { expr: sequence, at: 0 }], 0)?;
        let target = type_oid(&column.ty);
        match self.coerce_to(value, target, -1, CastContext::Assignment)? {
            Some(expr) => Ok(expr),
            None => Err(unsupported(format!("an identity column of type {}", shown(target)))),
        }
    }

    /// Returns the tables that foreign keys reach; their metadata locks are needed too.
    fn foreign_graph(&mut self, table: &Arc<Table>, doing: &[RowChangeKind]) -> Result<Option<Arc<ForeignKeyGraph>>> {
        let mut doing = doing.to_vec();
        for doing in &mut doing {
            if let RowChangeKind::Update(sets) = doing {
                let formulas = table.bound_formulas().into_iter().flatten();
                let is_moved = |formula: &&Formula| formula.reads.iter().any(|read| sets.contains(read));
                let moved: Vec<usize> = formulas.filter(is_moved).map(|formula| formula.column).collect();
                sets.extend(moved);
            }
        }
        let Some(graph) = ForeignKeyGraph::of(table, &doing, &self.environment.snapshot) else { return Ok(None) };
        for other in graph.others() {
            self.formulas(&other)?;
            if !self.linked.iter().any(|known| known.id == other.id) {
                self.linked.push(other);
            }
        }
        Ok(Some(graph))
    }

    /// Binds the table's generation expressions, unless they are bound already.
    pub fn formulas(&mut self, table: &Arc<Table>) -> Result<()> {
        if table.bound_formulas().is_some() || !table.is_generated() {
            return Ok(());
        }
        if table.maker != MAKER {
            return Err(unsupported(format!("the generated columns of table \"{}\" of another dialect", table.name)));
        }
        let mut formulas: Vec<Formula> = Vec::new();
        for (column, definition) in table.columns.iter().enumerate() {
            let Some(generated) = &definition.generated else { continue };
            let expr = self.definition(table, &generated.text, TableExpression::Generated, Some(column))?;
            let mut reads = expr.columns();
            for formula in &formulas {
                if reads.contains(&formula.column) {
                    reads.extend(&formula.reads);
                }
            }
            reads.sort_unstable();
            reads.dedup();
            let lossless = definition.is_hidden() || typmod_of(&definition.ty) < 0;
            formulas.push(Formula { column, expr, assignment: &ASSIGNMENT, lossless, reads });
        }
        // Another session may have kept the same ones first.
        table.keep_formulas(formulas);
        Ok(())
    }

    /// Binds an expression of a table's definition from its text.
    pub(super) fn definition(
        &mut self,
        table: &Arc<Table>,
        text: &str,
        kind: TableExpression,
        column: Option<usize>,
    ) -> Result<Expr> {
        let node = syntax::postgres::parse_expression(text).map_err(|_| {
            let text = format!("an expression of table \"{}\" has no meaning: {text}", table.name);
            PgError::new(state::DATA_CORRUPTED, text)
        })?;
        let mut binder = Binder::new(self.environment, self.ctx, text);
        // Errors are not of the statement's text, and its names were found when the table was made.
        binder.open_views.push(0);
        binder.name_sites = self.name_sites.take();
        binder.view_definitions = self.environment.snapshot.below.clone().filter(|_| !table.temporary);
        for schema in [schema_of(&table.schema), "public"] {
            if !binder.search_path.iter().any(|known| known == schema) {
                binder.search_path.push(schema.to_owned());
            }
        }
        // The checks of a type are made once, also where the checks of domains name other domains.
        binder.domain_rules = std::mem::take(&mut self.domain_rules);
        binder.field_checks = std::mem::take(&mut self.field_checks);
        let bound = binder.table_expression(table, &node, kind, column);
        let name_sites = binder.name_sites.take();
        let (volatile, user_types) = (binder.volatile, std::mem::take(&mut binder.user_types));
        let rules = (std::mem::take(&mut binder.domain_rules), std::mem::take(&mut binder.field_checks));
        (self.domain_rules, self.field_checks) = rules;
        self.name_sites = name_sites;
        self.volatile |= volatile;
        self.user_types.extend(user_types);
        bound
    }

    /// Binds an expression over a table's columns.
    pub fn table_expression(
        &mut self,
        table: &Arc<Table>,
        node: &tree::Expr,
        kind: TableExpression,
        column: Option<usize>,
    ) -> Result<Expr> {
        self.has_no_parameters = true;
        let at = node.span.start;
        let (clause, what) = match kind {
            TableExpression::Default => (Clause::Default, "DEFAULT expression"),
            TableExpression::Check => (Clause::Check, "check constraint"),
            TableExpression::Generated => (Clause::Generated, "column generation expression"),
            TableExpression::IndexPart => (Clause::IndexExpression, "index expression"),
            TableExpression::IndexPredicate => (Clause::IndexPredicate, "index predicate"),
        };
        self.open_scope();
        if kind != TableExpression::Default {
            self.add_target(table, &table.name);
        }
        self.scope().clause = clause;
        let bound = self.expr(node);
        self.close_scope();
        let bound = bound.map_err(|error| match kind {
            TableExpression::Default if error.state == state::UNDEFINED_COLUMN => self.error(
                PgError::new(state::FEATURE_NOT_SUPPORTED, "cannot use column reference in DEFAULT expression"),
                at,
            ),
            _ => error,
        })?;
        self.check_definition(&bound.expr, clause, what, at)?;
        match column {
            None if kind == TableExpression::IndexPart => Ok(bound.expr),
            None if kind == TableExpression::IndexPredicate => {
                let bound = self.coerce_to_boolean(bound, "WHERE")?;
                self.check_definition(&bound, clause, what, at)?;
                Ok(bound)
            }
            None => self.coerce_to_boolean(bound, "CHECK"),
            Some(column) => {
                let definition = &table.columns[column];
                let word = if kind == TableExpression::Default { "default expression" } else { "expression" };
                self.assigned_to(bound, &definition.ty, |source, target| {
                    format!("column \"{}\" is of type {target} but {word} is of type {source}", definition.name)
                })
            }
        }
    }

    fn check_definition(&self, expr: &Expr, clause: Clause, what: &str, at: u32) -> Result<()> {
        let (mut has_subquery, mut is_volatile) = (false, false);
        expr.walk(&mut |expr| {
            has_subquery |= expr.subquery().is_some();
            is_volatile |= matches!(expr, Expr::Call(call) if call.function.volatile);
        });
        if has_subquery {
            let text = match clause {
                Clause::Check => "cannot use subquery in check constraint".to_owned(),
                _ => format!("cannot use subquery in {what}"),
            };
            return self.fail(state::FEATURE_NOT_SUPPORTED, text, at);
        }
        if matches!(clause, Clause::IndexExpression | Clause::IndexPredicate) && !is_immutable(expr) {
            let text = format!("functions in {what} must be marked IMMUTABLE");
            return Err(PgError::new(state::INVALID_OBJECT_DEFINITION, text));
        }
        if is_volatile && clause == Clause::Generated {
            return self.fail(state::INVALID_OBJECT_DEFINITION, "generation expression is not immutable", 0);
        }
        Ok(())
    }

    /// Coerces a value that goes into a column. Its modifier is applied when it is stored.
    pub fn assigned_to(
        &mut self,
        value: Operand,
        ty: &query::types::Type,
        text: impl FnOnce(&str, &str) -> String,
    ) -> Result<Expr> {
        let (source, at) = (value.oid(), value.at);
        let Some((target, typmod)) = target_type(ty) else {
            return Err(unsupported("writing a column of this type of another dialect"));
        };
        // An interval's fields are known to its input alone.
        let typmod = if target == oid::INTERVAL { typmod } else { -1 };
        match self.coerce_to(value, target, typmod, CastContext::Assignment)? {
            Some(expr) => Ok(expr),
            None => {
                let text = text(&shown(source), &shown(target));
                let hint = "You will need to rewrite or cast the expression.";
                Err(self.error(PgError::new(state::DATATYPE_MISMATCH, text).hint(hint), at))
            }
        }
    }

    /// Adds a table to the scope, under this name.
    pub fn add_target(&mut self, table: &Arc<Table>, alias: &str) -> usize {
        let columns = columns_of(table, alias);
        let scope = self.scope();
        let at = scope.add(ScopeTable {
            alias: alias.to_owned(),
            schema: table.schema.clone(),
            hidden: vec![false; columns.len()],
            columns,
            origin: origin_of(table),
            offset: 0,
            key_at: None,
            lock: None,
            nullable: false,
            allowed: None,
            readable: Columns::All,
            within: None,
            after: Vec::new(),
        });
        let item = target_names(scope, table, alias, at);
        scope.names.push(item);
        at
    }
}

fn target_names(scope: &BlockScope, table: &Table, alias: &str, at: usize) -> NameItem {
    let mut item = names_of(table, alias, scope.tables[at].offset);
    item.schema = item.schema.filter(|_| alias == table.name);
    item
}

/// Returns the PostgreSQL type of the values that go into a column. `None`: they have no form there.
pub fn target_type(ty: &query::types::Type) -> Option<(Oid, i32)> {
    if !foreign::is_foreign(ty) && ty.id.0 >= 16 {
        return Some((type_oid(ty), typmod_of(ty)));
    }
    foreign::type_of(ty).map(|found| (found.oid, found.typmod))
}
