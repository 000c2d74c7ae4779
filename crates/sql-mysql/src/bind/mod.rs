//! The binder: resolves names and turns the syntax tree into a plan over bound expressions.
//!
//! `scalar::Binder` walks expressions and knows types and functions. For every node it first calls `Bind::hook`, which
//! handles what depends on the statement: columns, aggregates, subqueries, parameters, variables. MY-1: a place in an
//! expression is valid for the rows of the stage in which it was bound: wide rows below the grouping, grouped rows
//! above. MY-2: depth counts only subqueries in expressions, as `exec` nests them; a derived table does not see the
//! enclosing block.

mod aggregate;
mod aggregate_level;
pub mod change;
mod common_table;
pub mod from;
pub mod generated;
pub mod hints;
mod json_table;
pub mod load;
mod output_name;
mod query_expression;
pub use from::columns_of;
mod name;
pub mod returning;
pub mod scope;
pub(crate) mod select;
mod subquery;
pub mod variables;
pub mod view;
mod window;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use syntax::tree as ast;

use crate::bind::scope::{Common, Scope};
use crate::bind::variables::Variables;
use crate::error::Result;
use crate::other_tables::{check_populated, table_view};
use crate::parse::statement::Name;
use crate::rights::Rights;
use crate::scalar::bind::{Binder, is_zero_date};
use crate::scalar::modes::SqlMode;
use crate::scalar::operators;
use crate::types::{MysqlExpr as _, Type};
use crate::value::Value;
use query::catalog::Snapshot;
use query::catalog::table::Table;
use query::catalog::view::View;
use query::nodes::expr::Expr;
use query::nodes::node::Lock;
use query::nodes::walk::conjuncts;

/// The environment of binding.
pub struct BindEnvironment<'s> {
    pub snapshot: Arc<Snapshot>,
    pub rights: &'s Arc<Rights>,
    pub settings: &'s crate::scalar::settings::Settings,
    pub database: Option<&'s str>,
    pub variables: &'s dyn Variables,
    /// Types of the parameters, as far as known.
    pub parameters: &'s [Type],
    /// Known parameter values. Estimates use them, but the plan is valid for other values.
    pub values: &'s [Value],
    /// The row lock of plain SELECTs under SERIALIZABLE.
    pub reads_lock: Option<Lock>,
}

/// An alias, and for a view's base table its columns' names in the view.
type NamedAs = (String, Option<Vec<Option<String>>>);

/// Counts of table references by kind of access.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uses {
    pub reading: usize,
    /// Reads of non-transactional tables.
    pub reading_unsafe: usize,
    /// Changes and locking reads.
    pub locking: usize,
}

impl Uses {
    /// Moves `count` references from reading to locking.
    pub fn lock(&mut self, count: usize) {
        self.reading = self.reading.saturating_sub(count);
        self.locking += count;
    }
}

pub struct Bind<'s> {
    pub environment: &'s BindEnvironment<'s>,
    pub scopes: Vec<Scope>,
    /// The privileges in effect.
    pub rights: Arc<Rights>,
    /// Views that the statement reads.
    pub views: Vec<Arc<View>>,
    /// Views whose bodies are being bound.
    open_views: Vec<u64>,
    /// Only views of plain columns are merged: in an outer join other expressions would have to become NULL.
    plain_only: bool,
    /// Records ranges of the text that can be rewritten, if set.
    pub recorder: Option<Vec<view::Note>>,
    /// The text that `recorder` refers to.
    pub text: &'s str,
    pub uses_variables: bool,
    /// User variables that the statement has assigned so far.
    assigned: Vec<String>,
    /// INSERT: the target's name, and its columns if it is a view.
    named_as: Option<NamedAs>,
    commons: Vec<Common>,
    /// The height of the plan bound so far for the current query.
    height: usize,
    /// The number of its nodes, with shared ones counted at each reference.
    weight: usize,
    /// For each depth, the outer references of its blocks: (depth, place).
    correlations: Vec<Vec<(usize, usize)>>,
    /// Tables whose metadata locks the statement needs.
    pub tables: Vec<Arc<Table>>,
    pub uses: Uses,
    /// Tables named in the statement itself, not in a view: (table id, alias).
    pub named: Vec<(u64, String)>,
    /// Tables reached by foreign keys only.
    pub linked: Vec<Arc<Table>>,
    /// Tables read, with the ages of their statistics.
    pub known: Vec<(Arc<Table>, u64)>,
    /// The privileges of merged views, by the numbers that the tree has (`relation::Merged`).
    of_views: Vec<Arc<Rights>>,
    /// The plan is valid for this run only.
    pub volatile: bool,
    next_id: usize,
    /// The nodes of expressions bound so far.
    nodes: usize,
    /// The statement changes rows, so base tables carry their rows' keys.
    keyed: bool,
    /// The command named in an error if no privilege on the table exists.
    changing: &'static str,
    /// Number and kind of the current expression, for messages.
    item: usize,
    /// Set while arguments are bound only to find their blocks.
    reach: Option<aggregate_level::Reach>,
    /// ON DUPLICATE KEY UPDATE: the depth of its block, and the offset of the new row in that block's rows.
    values_at: Option<(usize, usize)>,
}

impl<'s> Bind<'s> {
    pub fn new(environment: &'s BindEnvironment<'s>) -> Bind<'s> {
        Bind {
            environment,
            scopes: Vec::new(),
            rights: environment.rights.clone(),
            views: Vec::new(),
            open_views: Vec::new(),
            plain_only: false,
            recorder: None,
            text: "",
            uses_variables: false,
            assigned: Vec::new(),
            named_as: None,
            commons: Vec::new(),
            height: 0,
            weight: 0,
            correlations: vec![Vec::new()],
            tables: Vec::new(),
            uses: Uses::default(),
            named: Vec::new(),
            linked: Vec::new(),
            known: Vec::new(),
            of_views: Vec::new(),
            volatile: false,
            next_id: 0,
            nodes: 0,
            keyed: false,
            changing: "SELECT",
            item: 0,
            reach: None,
            values_at: None,
        }
    }

    /// Counts a node of the syntax tree, and looks for interrupts between many.
    fn count_node(&mut self) -> Result<()> {
        self.nodes += 1;
        if self.nodes.is_multiple_of(1024) { self.environment.variables.check_interrupts() } else { Ok(()) }
    }

    pub fn new_id(&mut self) -> usize {
        self.next_id += 1;
        self.next_id
    }

    pub fn settings(&self) -> &'s crate::scalar::settings::Settings {
        self.environment.settings
    }

    pub fn has_mode(&self, mode: SqlMode) -> bool {
        self.environment.settings.sql_mode.has(mode)
    }

    /// Binds the condition of a clause or a constraint: its values are 1, 0 and NULL.
    pub fn condition(&mut self, node: &ast::Expr) -> Result<Expr> {
        self.expr(node).map(operators::truth)
    }

    /// Binds the condition of WHERE, if there is one, and returns its conjuncts.
    ///
    /// `column IS NULL` as a conjunct also finds the zero dates of a DATE or DATETIME column that is declared NOT NULL,
    /// as ODBC programs expect. Elsewhere it is false for them.
    pub fn where_conditions(&mut self, node: Option<&ast::Expr>) -> Result<Vec<Expr>> {
        let Some(node) = node else { return Ok(Vec::new()) };
        self.scope().clause = "where clause";
        let mut conditions = Vec::new();
        conjuncts(self.condition(node)?, &mut conditions);
        for condition in &mut conditions {
            if let Some(either) = self.finds_zero_dates(condition) {
                *condition = either;
            }
        }
        Ok(conditions)
    }

    /// Returns the condition that also finds zero dates, if it is IS NULL of such a column.
    fn finds_zero_dates(&self, condition: &Expr) -> Option<Expr> {
        let mut null_test = condition;
        // NOT (column IS NOT NULL)
        while let Expr::Not(once) = null_test
            && let Expr::Not(twice) = &**once
        {
            null_test = twice;
        }
        let Expr::IsNull(column) = null_test else { return None };
        let (scope, place) = match &**column {
            Expr::Column(place, _) => (self.scopes.last()?, *place),
            Expr::Outer { depth, at, ty: _ } => (self.scopes.get(*depth)?, *at),
            _ => return None,
        };
        if scope.column_at(place)?.ty.nullable {
            return None;
        }
        let zero = is_zero_date(column)?;
        // Behind an outer join the column is NULL too.
        let is_outer = scope.table_at(place).is_some_and(|table| table.nullable);
        Some(if is_outer { Expr::Or(vec![null_test.clone(), zero]) } else { zero })
    }

    /// Binds an expression over the current scope.
    pub fn expr(&mut self, node: &ast::Expr) -> Result<Expr> {
        self.with_binder(|binder| Ok(binder.bind(node)?))
    }

    /// Binds a value to be assigned to a column.
    pub fn assigned(&mut self, node: &ast::Expr, target: &Type) -> Result<Expr> {
        let mut expr = self.with_binder(|binder| Ok(binder.bind_assignment(node, target)?))?;
        expr.keep_digits(target);
        Ok(expr)
    }

    /// Calls `bind` with an expression binder over the current scope.
    fn with_binder(&mut self, bind: impl FnOnce(&mut Binder<'_>) -> Result<Expr>) -> Result<Expr> {
        let settings = self.environment.settings;
        let mut hook = |node: &ast::Expr| Ok(self.hook(node)?);
        bind(&mut Binder::new(settings, &mut hook))
    }

    pub fn scope(&mut self) -> &mut Scope {
        self.scopes.last_mut().unwrap_or_else(|| unreachable!("an expression is bound within a scope"))
    }

    pub fn open_scope(&mut self) {
        let pads = self.has_mode(SqlMode::PAD_CHAR_TO_FULL_LENGTH);
        self.scopes.push(Scope { clause: "field list", pads, ..Scope::default() });
    }

    pub fn close_scope(&mut self) -> Scope {
        self.scopes.pop().unwrap_or_default()
    }

    /// Returns the name's schema, or the current database.
    pub fn schema_of(&self, name: &Name) -> Result<String> {
        match (&name.schema, self.environment.database) {
            (Some(schema), _) => Ok(schema.clone()),
            (None, Some(database)) => Ok(database.to_owned()),
            (None, None) => Err(crate::error::NO_DB.bare()),
        }
    }

    /// Returns the visible definitions: inside a view, temporary tables are not.
    pub fn definitions(&self) -> &Snapshot {
        if self.open_views.is_empty() { &self.environment.snapshot } else { self.environment.snapshot.shared() }
    }

    /// Returns the table and adds it to the statement's tables. The caller has checked the privilege.
    pub fn base_table(&mut self, name: &Name) -> Result<Arc<Table>> {
        let schema = self.schema_of(name)?;
        if let Some(system) = crate::system::find(&schema, &name.name).filter(|system| system.is_keyspace()) {
            return Ok(query::nodes::keyspace_table::table(system).clone());
        }
        let mut table = self.definitions().table(&schema, &name.name)?.clone();
        if let Some(seen) = self.environment.variables.seen_maps() {
            let (own, is_other) = Table::seen_by(&table, &seen);
            (table, self.volatile) = (own, self.volatile || is_other);
        }
        let table = table_view(&table);
        check_populated(&table)?;
        if !self.tables.iter().any(|known| known.id == table.id) {
            self.formulas(&table)?;
            self.tables.push(table.clone());
        }
        Ok(table)
    }

    /// Ensures that the table's statistics are available to the planner.
    fn know(&mut self, table: &Arc<Table>) {
        if self.known.iter().any(|(known, _)| known.id == table.id) {
            return;
        }
        self.environment.variables.know(table);
        self.known.push((table.clone(), table.live.age.load(Ordering::Acquire)));
    }

    fn hook(&mut self, node: &ast::Expr) -> Result<Option<Expr>> {
        use ast::ExprKind as Ast;
        self.count_node()?;
        if let Some(expr) = self.group_key(node)? {
            return Ok(Some(expr));
        }
        match &node.kind {
            Ast::Column(name) => {
                self.record_column(name, node.span);
                self.column(name).map(Some)
            }
            Ast::Parameter(at) => Ok(Some(self.parameter(*at))),
            Ast::UserVariable(name) => Ok(Some(self.user_variable(name))),
            Ast::SystemVariable { scope, name } => self.system_variable(*scope, name).map(Some),
            Ast::Assign { name, value } => self.assignment(name, value).map(Some),
            Ast::InsertedValue(name) => self.inserted_value(name).map(Some),
            Ast::DefaultOf(name) => self.default_value(name).map(Some),
            Ast::Compare { op, left, right } => self.row_comparison(left, *op, right),
            Ast::Function(function) => self.function(function),
            Ast::Subquery(query) => self.scalar_subquery(query).map(Some),
            Ast::Exists(query) => self.exists(query).map(Some),
            Ast::InQuery { operand, query, negated } => self.in_subquery(operand, query, *negated).map(Some),
            Ast::Quantified { op, left, all, query } => self.quantified(left, *op, query, *all).map(Some),
            Ast::Literal(_)
            | Ast::Introduced { charset: _, literal: _ }
            | Ast::Default
            | Ast::Row(_)
            | Ast::Unary { op: _, operand: _ }
            | Ast::And(_)
            | Ast::Or(_)
            | Ast::Xor(_)
            | Ast::Concat(_)
            | Ast::Chain { first: _, links: _ }
            | Ast::Is { operand: _, test: _, negated: _ }
            | Ast::Between { operand: _, low: _, high: _, negated: _ }
            | Ast::InList { operand: _, list: _, negated: _ }
            | Ast::Like { operand: _, pattern: _, escape: _, negated: _ }
            | Ast::Regexp { operand: _, pattern: _, negated: _ }
            | Ast::SoundsLike { left: _, right: _ }
            | Ast::MemberOf { value: _, array: _ }
            | Ast::JsonPath { column: _, path: _, unquote: _ }
            | Ast::Collate { operand: _, collation: _ }
            | Ast::Case { operand: _, arms: _, otherwise: _ }
            | Ast::Cast { operand: _, to: _, array: _ }
            | Ast::CastAtZone { operand: _, zone: _, scale: _ }
            | Ast::ConvertUsing { operand: _, charset: _ }
            | Ast::DateShift { operand: _, interval: _, subtract: _ }
            | Ast::Extract { unit: _, operand: _ }
            | Ast::TimestampAdd { unit: _, count: _, operand: _ }
            | Ast::TimestampDiff { unit: _, from: _, to: _ }
            | Ast::GetFormat { of: _, region: _ }
            | Ast::Trim { side: _, remove: _, operand: _ }
            | Ast::Char { numbers: _, charset: _ }
            | Ast::WeightString { operand: _, pad: _ }
            | Ast::JsonValue(_)
            | Ast::Match { columns: _, against: _, mode: _ } => Ok(None),
        }
    }

    fn parameter(&self, at: u32) -> Expr {
        let at = at as usize;
        Expr::Parameter(at, self.environment.parameters.get(at).cloned().unwrap_or_else(Type::null))
    }
}
