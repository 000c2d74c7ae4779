//! Query blocks, set operations, common table expressions.

use std::sync::Arc;

use datum::key::KeyOrder;
use engine::rows::Strength;
use syntax::tree::walk::{self, Visitor};
use syntax::tree::{
    self, ColumnName, CommonTable, ExprKind, Join, JoinKind, Joined, Limit, Literal, Locking, LockingWait, NamedWindow,
    OrderItem, Query, QueryBody, Select, SelectExpr, SelectItem, SetLink, SetOp, Span, TableName, TableRef, UnaryOp,
    With,
};

use crate::bind::Bind;
use crate::bind::aggregate::{has_aggregate, has_window, window_exprs};
use crate::bind::from::rename;
use crate::bind::generated::order_by_formulas;
use crate::bind::listed::list;
use crate::bind::scope::{Bound, Common, Grouped, Scope};
use crate::bind::semi::{self, pull};
use crate::bind::summary::{Block, Wishes};
use crate::error::{self, Code, Result, SqlError};
use crate::parse::statement::Name;
use crate::rights::Privileges;
use crate::scalar::bind::{present, union_type};
use crate::scalar::{modes::SqlMode, operators, variable};
use crate::types::{Column, MysqlType as _, Type};
use query::nodes::expr::Expr;
use query::nodes::keyspace_table;
use query::nodes::node::{Group, Lock, LockWait, Node, Recursion, SortKey};
use query::nodes::relation::{Origin, ScopeTable};
use query::nodes::walk::{conjuncts, same};
use query::plan::share::Sight;
use query::plan::statistics::Statistics;
use query::plan::{join::filter, pack::pack};

/// The limit and the offset of a query.
type Limits = (Option<Expr>, Option<Expr>);

/// The maximum height of a plan (joins, derived tables, views, chained WITH tables); planner and executor recurse.
const HEIGHT_MAX: usize = 1600;

/// The maximum number of nodes of a plan. Each reference to a common table expression counts all of its nodes.
const WEIGHT_MAX: usize = 100_000;

/// The keyword of `TABLE t`.
pub(super) const TABLE: &str = "TABLE";

const CTE_RECURSIVE_REQUIRES_SINGLE_REFERENCE: Code = Code {
    name: "CTE_RECURSIVE_REQUIRES_SINGLE_REFERENCE",
    code: 3577,
    sqlstate: "HY000",
    format: "In recursive query block of Recursive Common Table Expression '{}', the recursive table must be referenced only once, and not in any subquery",
};

/// A select-list item: an expression to bind, or a column of `*`.
pub enum Item<'a> {
    Expr(&'a SelectExpr),
    Place(usize),
}

/// A recursive common table expression: its seed and its recursive part.
struct Recursive<'a> {
    first: &'a QueryBody,
    seed: &'a [SetLink],
    part: &'a QueryBody,
    rest: &'a [SetLink],
    distinct: bool,
}

/// The clauses evaluated after the joins and the grouping.
struct Above {
    exprs: Vec<Expr>,
    columns: Vec<Column>,
    having: Vec<Expr>,
    sorts: Vec<(Expr, bool)>,
}

/// The bound clauses, and whether the rows are grouped or windowed.
struct Staged {
    is_grouped: bool,
    is_windowed: bool,
    above: Above,
}

impl Bind<'_> {
    /// Binds a statement's query, with values in display form.
    pub fn statement_query(&mut self, query: &Query) -> Result<Bound> {
        let mut bound = self.query(query)?;
        let exprs: Vec<Expr> =
            bound.columns.iter().enumerate().map(|(at, column)| present(Expr::Column(at, column.ty.clone()))).collect();
        if exprs.iter().any(|expr| !matches!(expr, Expr::Column(..))) {
            bound.node = Arc::new(Node::Project { input: bound.node, exprs });
        }
        Ok(bound)
    }

    pub fn query(&mut self, query: &Query) -> Result<Bound> {
        // See `Binder::bind`.
        if !stdx::stack::is_half_free() {
            return Err(error::STACK_OVERRUN.with(&[&"the queries are nested too deep"]));
        }
        let commons = self.commons.len();
        self.with(query.with.as_ref())?;
        let around = std::mem::take(&mut self.height);
        let bound = self.body(query);
        self.commons.truncate(commons);
        self.rise(2)?;
        self.height = self.height.max(around);
        bound
    }

    /// Binds the tables of WITH. The caller removes them from `commons` again.
    pub fn with(&mut self, with: Option<&With>) -> Result<()> {
        let Some(With { recursive, tables }) = with else { return Ok(()) };
        tables.iter().try_for_each(|table| self.common(table, *recursive))
    }

    /// Counts nodes above the plan bound so far for the current query.
    pub fn rise(&mut self, nodes: usize) -> Result<()> {
        self.height += nodes;
        self.weight += nodes;
        if self.weight > WEIGHT_MAX {
            let what = format!("views and common table expressions that come to more than {WEIGHT_MAX} nodes");
            return Err(error::STACK_OVERRUN.with(&[&what]));
        }
        if self.height > HEIGHT_MAX {
            let what =
                format!("views, common table expressions and joins of more than {HEIGHT_MAX} nodes above each other");
            return Err(error::STACK_OVERRUN.with(&[&what]));
        }
        Ok(())
    }

    fn body(&mut self, query: &Query) -> Result<Bound> {
        let Query { with: _, body, order_by, limit, locks, into: _, span: _ } = query;
        match body {
            QueryBody::Select(select) => return self.select(select, order_by, limit.as_ref(), locks),
            QueryBody::Table(table) => return self.select(&self.all_of(table)?, order_by, limit.as_ref(), locks),
            QueryBody::Values(_) | QueryBody::Query(_) | QueryBody::SetOperations { .. } => {}
        }
        let mut bound = self.set_expr(body)?;
        let limits = self.limits(limit.as_ref())?;
        let mut keys = Vec::new();
        for (nth, OrderItem { expr, descending }) in order_by.iter().enumerate() {
            let at = self.output_column(expr, &bound.columns, nth)?;
            keys.push(SortKey { at, ty: bound.columns[at].ty.clone(), order: KeyOrder::with_null_least(*descending) });
        }
        if !keys.is_empty() {
            bound.node = Arc::new(Node::Sort { input: bound.node, keys, limit: None, unique: false });
        }
        bound.node = match first_select(body) {
            Some(first) if first.calc_found_rows => counted(bound.node, limits),
            _ => limited(bound.node, limits),
        };
        Ok(bound)
    }

    /// TABLE t: returns the block `SELECT * FROM t`. The span of its `*` is the word TABLE.
    fn all_of(&self, table: &TableName) -> Result<Select> {
        let mut span = Span::default();
        if self.recorder.is_some() {
            let before = self.text.get(..table.span.start as usize).unwrap_or("").trim_end();
            let start = before.len().checked_sub(TABLE.len());
            let start = start.filter(|at| before.get(*at..).is_some_and(|word| word.eq_ignore_ascii_case(TABLE)));
            let start = start.ok_or_else(|| SqlError::unsupported("a comment within TABLE in a view"))?;
            span = Span { start: start as u32, end: before.len() as u32 };
        }
        Ok(Select {
            hints: Vec::new(),
            distinct: false,
            straight_join: false,
            calc_found_rows: false,
            items: vec![SelectItem::All(span)],
            from: vec![tree::Joined { first: TableRef::Table(Box::new(table.clone())), joins: Vec::new() }],
            selection: None,
            group_by: Vec::new(),
            rollup: false,
            having: None,
            windows: Vec::new(),
        })
    }

    /// Resolves an ORDER BY item of a set operation, by name or number.
    fn output_column(&mut self, expr: &tree::Expr, columns: &[Column], nth: usize) -> Result<usize> {
        if let Some(at) = position(expr, columns.len())? {
            return Ok(at);
        }
        let Some(name) = bare_name(expr) else {
            if has_aggregate(expr) {
                return Err(error::AGGREGATE_ORDER_FOR_UNION.with(&[&(nth + 1)]));
            }
            return Err(SqlError::unsupported("ORDER BY an expression over UNION"));
        };
        let found = columns.iter().position(|column| column.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| error::BAD_FIELD.with(&[&name, &"order clause"]))
    }

    fn set_expr(&mut self, body: &QueryBody) -> Result<Bound> {
        match body {
            QueryBody::Select(select) => self.select(select, &[], None, &[]),
            QueryBody::Table(table) => self.select(&self.all_of(table)?, &[], None, &[]),
            QueryBody::Query(query) => self.query(query),
            QueryBody::Values(rows) => self.values_rows(rows),
            QueryBody::SetOperations { first, links } => self.set_operations(first, links),
        }
    }

    /// Binds an operand of a set operation. Its order matters only with a limit.
    fn set_operand(&mut self, body: &QueryBody) -> Result<Bound> {
        match body {
            QueryBody::Query(query) if query.limit.is_none() && !query.order_by.is_empty() => {
                self.query(&Query { order_by: Vec::new(), ..(**query).clone() })
            }
            body => self.set_expr(body),
        }
    }

    /// Binds set operations. Consecutive UNIONs become one node; one DISTINCT serves up to the last that has it.
    fn set_operations(&mut self, first: &QueryBody, links: &[SetLink]) -> Result<Bound> {
        let mut run = vec![self.set_operand(first)?];
        let mut distinct = 0;
        for SetLink { op, all, operand } in links {
            let right = self.set_operand(operand)?;
            if right.columns.len() != run[0].columns.len() {
                return Err(error::WRONG_NUMBER_OF_COLUMNS_IN_SELECT.bare());
            }
            match op {
                SetOp::Union => {
                    run.push(right);
                    if !all {
                        distinct = run.len();
                    }
                }
                SetOp::Intersect | SetOp::Except => {
                    let left = united(std::mem::take(&mut run), std::mem::take(&mut distinct))?;
                    self.rise(2)?;
                    run.push(self.set_operation(left, right, *op, *all)?);
                }
            }
        }
        self.rise(2)?;
        united(run, distinct)
    }

    fn set_operation(&mut self, left: Bound, right: Bound, op: SetOp, all: bool) -> Result<Bound> {
        let mut sides = unify(vec![left, right])?;
        let columns = std::mem::take(&mut sides[0].columns);
        let types: Vec<Type> = columns.iter().map(|column| column.ty.clone()).collect();
        let keeps_common = op == SetOp::Intersect;
        let [left, right] = <[Bound; 2]>::try_from(sides).unwrap_or_else(|_| unreachable!("two sides"));
        let (left, right) = (left.node, right.node);
        let node = Arc::new(Node::SetOperation { left, right, types: types.clone(), keeps_common, all });
        let node = if all { node } else { Arc::new(Node::Distinct { input: node, types }) };
        Ok(Bound { node, columns, plain: None })
    }

    fn values_rows(&mut self, list: &[Vec<tree::Expr>]) -> Result<Bound> {
        self.open_scope();
        let mut rows: Vec<Vec<Expr>> = Vec::new();
        for row in list {
            rows.push(row.iter().map(|expr| self.expr(expr)).collect::<Result<_>>()?);
        }
        self.close_scope();
        let mut types: Vec<Type> = rows[0].iter().map(Expr::ty).collect();
        for row in &rows[1..] {
            if row.len() != types.len() {
                return Err(error::WRONG_VALUE_COUNT_ON_ROW.with(&[&2]));
            }
            for (ty, expr) in types.iter_mut().zip(row) {
                *ty = union_type(ty, &expr.ty())?;
            }
        }
        let cast = |row: Vec<Expr>| row.into_iter().zip(&types).map(|(expr, ty)| cast(expr, ty)).collect();
        let rows = rows.into_iter().map(cast).collect();
        let columns =
            types.iter().enumerate().map(|(at, ty)| Column::computed(format!("column_{at}"), ty.clone())).collect();
        Ok(Bound { node: Arc::new(Node::Rows { rows }), columns, plain: None })
    }

    fn common(&mut self, table: &CommonTable, recursive: bool) -> Result<()> {
        let CommonTable { name, columns: _, query } = table;
        let id = self.new_id();
        let around = (std::mem::take(&mut self.height), std::mem::take(&mut self.weight));
        let reads = self.correlations.last().map_or(0, Vec::len);
        let recursion = if recursive { recursion(query, &name.value)? } else { None };
        let bound = match recursion {
            Some(parts) => self.recursive(table, id, &parts)?,
            None => {
                let mut bound = self.query(query)?;
                rename(&mut bound.columns, &table.columns)?;
                let node = Arc::new(Node::Common { id, source: bound.node, recursion: None });
                Bound { node, columns: bound.columns, plain: None }
            }
        };
        if self.correlations.last().map_or(0, Vec::len) != reads {
            return Err(SqlError::unsupported("a common table expression that reads the query around it"));
        }
        self.rise(1)?;
        let size = (self.height, self.weight);
        (self.height, self.weight) = (around.0, around.1 + 1);
        self.commons.push(Common { name: name.value.clone(), columns: bound.columns, node: bound.node, size });
        Ok(())
    }

    fn recursive(&mut self, table: &CommonTable, id: usize, parts: &Recursive<'_>) -> Result<Bound> {
        let CommonTable { name, columns, query } = table;
        let Query { with, body: _, order_by, limit, locks: _, into: _, span: _ } = &**query;
        let Recursive { first, seed, part, rest, distinct } = *parts;
        if !order_by.is_empty() {
            return Err(SqlError::unsupported("ORDER BY over UNION in recursive Common Table Expression"));
        }
        let commons = self.commons.len();
        self.with(with.as_ref())?;
        let mut source = self.operations(first, seed)?;
        rename(&mut source.columns, columns)?;
        for column in &mut source.columns {
            column.ty.nullable = true;
        }
        let types: Vec<Type> = source.columns.iter().map(|column| column.ty.clone()).collect();
        self.commons.push(Common {
            name: name.value.clone(),
            columns: source.columns.clone(),
            node: Arc::new(Node::LastRound { id }),
            size: (1, 1),
        });
        let bound = self.operations(part, rest);
        self.commons.truncate(commons);
        let bound = bound?;
        if bound.columns.len() != types.len() {
            return Err(error::WRONG_NUMBER_OF_COLUMNS_IN_SELECT.bare());
        }
        // The seed decides the types.
        let exprs = bound.columns.iter().zip(&types).enumerate();
        let exprs = exprs.map(|(at, (column, ty))| cast(Expr::Column(at, column.ty.clone()), ty)).collect();
        let part = Arc::new(Node::Project { input: bound.node, exprs });
        let recursion = Some(Recursion { part, distinct, types });
        let node = Arc::new(Node::Common { id, source: source.node, recursion });
        let node = limited(node, self.limits(limit.as_ref())?);
        Ok(Bound { node, columns: source.columns, plain: None })
    }

    /// Binds a set operation, or its single operand.
    fn operations(&mut self, first: &QueryBody, links: &[SetLink]) -> Result<Bound> {
        if links.is_empty() { self.set_expr(first) } else { self.set_operations(first, links) }
    }

    pub fn limits(&mut self, limit: Option<&Limit>) -> Result<Limits> {
        let Some(Limit { count, offset }) = limit else { return Ok((None, None)) };
        self.open_scope();
        let bound = (|| Ok((Some(self.expr(count)?), offset.as_ref().map(|offset| self.expr(offset)).transpose()?)))();
        self.close_scope();
        bound
    }

    fn select(
        &mut self,
        select: &Select,
        order: &[OrderItem],
        limit: Option<&Limit>,
        locks: &[Locking],
    ) -> Result<Bound> {
        let limits = self.limits(limit)?;
        self.open_scope();
        let bound = self.block(select, order, limits, locks);
        self.close_scope();
        bound
    }

    fn block(&mut self, select: &Select, order: &[OrderItem], mut limits: Limits, locks: &[Locking]) -> Result<Bound> {
        let Select {
            hints: _,
            distinct,
            straight_join,
            calc_found_rows,
            items,
            from,
            selection,
            group_by: _,
            rollup: _,
            having: _,
            windows: _,
        } = select;
        let (distinct, counts) = (*distinct, *calc_found_rows && limits.0.is_some());
        // The row order of a subquery without LIMIT does not matter.
        let is_ordered = limits.0.is_some() || self.scopes.len() == 1;
        self.scope().distinct = distinct && is_ordered;
        let source = self.from(from)?;
        let tables = self.scope().tables.len();
        self.rise(tables)?;
        self.lock(locks)?;
        let mut conditions = Vec::new();
        if let Some(selection) = selection {
            self.scope().clause = "where clause";
            conjuncts(self.condition(selection)?, &mut conditions);
        }
        let items = self.items(items)?;
        let mut staged = self.staged_above(select, &items, order)?;
        if self.scope().summoned {
            self.start_over();
            staged = self.staged_above(select, &items, order)?;
        }
        let Staged { is_grouped, is_windowed, above } = staged;
        let Above { mut exprs, columns, mut having, mut sorts } = above;
        if *straight_join {
            for (at, table) in self.scope().tables.iter_mut().enumerate() {
                table.after = (0..at).collect();
            }
        }
        let around = self.around;
        let mut scope = std::mem::take(self.scope());
        let wants = wanted_order(&scope, &sorts, is_grouped || distinct || is_windowed);
        self.note_likeness(&scope, &conditions);
        self.note_likeness(&scope, &sorts.iter().map(|(expr, _)| expr.clone()).collect::<Vec<_>>());
        let depth = self.scopes.len() - 1;
        // A limit over an index order ends early: then the subqueries are evaluated per row.
        let ends_early = limits.0.is_some() && !(is_grouped || distinct || is_windowed);
        let source = if ends_early { source } else { pull(&mut scope, depth, source, &mut conditions) };
        let is_above = is_grouped || is_windowed;
        let mut block = Block {
            tables: std::mem::take(&mut scope.tables),
            width: scope.width,
            used: std::mem::take(&mut scope.used),
            source,
            conditions,
            exprs: if is_above { Vec::new() } else { std::mem::take(&mut exprs) },
            sorts: if is_above { Vec::new() } else { std::mem::take(&mut sorts) },
        };
        let (statistics, values): (&dyn Statistics, _) = (around.variables, around.values);
        let wishes = Wishes { depth, order: &wants, limited: limits.0.is_some() && !counts, statistics, values };
        having.iter_mut().for_each(|condition| list(condition, true, wishes));
        exprs.iter_mut().for_each(|expr| list(expr, false, wishes));
        block.list(wishes);
        let part = block.planned(wishes, !ends_early);
        if !is_above {
            (exprs, sorts) = (std::mem::take(&mut block.exprs), std::mem::take(&mut block.sorts));
        }
        let is_plain = depth > 0 && limits.0.is_none() && !is_windowed && having.is_empty();
        let calls = match &scope.grouped {
            Some(grouped) if grouped.keys.is_empty() && grouped.level.is_none() => Some(&grouped.calls[..]),
            Some(_) => None,
            None => Some(&[][..]),
        };
        let plain = calls.filter(|_| is_plain).and_then(|calls| semi::plain(&block, calls, &exprs));
        let is_sorted = sorts.is_empty() || (part.ordered && wants.len() == sorts.len());
        let mut node = part.node;
        let sight = Sight { tables: &block.tables, statistics, values };
        let groups = scope.grouped.as_ref().map_or(0.0, |grouped| group_count(part.rows, grouped, sight));
        if !is_windowed {
            let sorted = sorts.iter_mut().map(|(expr, _)| expr);
            let above = match &mut scope.grouped {
                Some(grouped) => grouped.expressions(),
                None => exprs.iter_mut().chain(&mut having).chain(sorted).collect(),
            };
            pack(&mut node, &block.used, above);
        }
        if let Some(grouped) = &scope.grouped {
            node = group_node(node, grouped, groups);
        }
        node = filter(node, having);
        if let Some(windowed) = scope.windowed.take() {
            self.rise(windowed.orders())?;
            node = windowed.nodes(node);
        }
        let width = exprs.len();
        let mut keys = Vec::new();
        let sorts = match !is_sorted && !distinct && exprs.iter().any(assigns) {
            true => {
                let before = if counts { (None, None) } else { std::mem::take(&mut limits) };
                node = sorted_first(node, &exprs, std::mem::take(&mut sorts), before);
                Vec::new()
            }
            false => sorts,
        };
        if !is_sorted {
            for (expr, descending) in sorts {
                let ty = expr.ty();
                let at = exprs.iter().position(|known| same(known, &expr)).unwrap_or_else(|| {
                    exprs.push(expr);
                    exprs.len() - 1
                });
                keys.push(SortKey { at, ty, order: KeyOrder::with_null_least(descending) });
            }
        }
        let types = exprs[..width].iter().map(Expr::ty).collect();
        let is_wider = exprs.len() > width;
        node = projected(node, exprs);
        // Sorted by all output columns, equal rows are adjacent.
        let unique =
            distinct && !keys.is_empty() && (0..width).all(|at| keys.iter().any(|key| key.at == at)) && !is_wider;
        if distinct && !unique {
            node = Arc::new(Node::Distinct { input: node, types });
        }
        if !keys.is_empty() {
            let limit = limits.0.clone().filter(|_| !unique && !counts).map(|limit| (limit, limits.1.clone()));
            node = Arc::new(Node::Sort { input: node, keys, limit, unique });
        }
        if is_wider {
            node = Arc::new(Node::Strip { input: node, width });
        }
        let node = if counts { counted(node, limits) } else { limited(node, limits) };
        Ok(Bound { node, columns, plain })
    }

    /// Binds the grouping, if any, and the clauses after it.
    fn staged_above(&mut self, select: &Select, items: &[Item<'_>], order: &[OrderItem]) -> Result<Staged> {
        let is_grouped = self.group(select, items, order)?;
        self.scope().above = true;
        let is_windowed = self.windows(select, items, order)?;
        let mut above = self.above(select, items, order)?;
        if is_grouped && is_windowed {
            self.settle_windows();
            above = self.above(select, items, order)?;
        }
        Ok(Staged { is_grouped, is_windowed, above })
    }

    /// Resets the clauses for binding again, after a subquery's aggregate turned the block into a grouped one.
    fn start_over(&mut self) {
        let scope = self.scope();
        scope.aliases.clear();
        (scope.windowed, scope.above) = (None, false);
    }

    /// Binds the select list, HAVING and ORDER BY.
    fn above(&mut self, select: &Select, items: &[Item<'_>], order: &[OrderItem]) -> Result<Above> {
        self.scope().clause = "field list";
        let (exprs, columns) = self.select_list(items)?;
        let mut having = Vec::new();
        if let Some(condition) = &select.having {
            self.scope().clause = "having clause";
            conjuncts(self.without_windows(|bind| bind.condition(condition))?, &mut having);
        }
        // The order of a single row does not matter.
        let is_one = |grouped: &&mut Grouped| grouped.keys.is_empty() && !grouped.rollup;
        let strict = self.scope().grouped.as_mut().filter(is_one).map(|one| std::mem::replace(&mut one.lenient, true));
        let sorts = self.order(order, &exprs)?;
        if let (Some(lenient), Some(grouped)) = (strict, &mut self.scope().grouped) {
            grouped.lenient = lenient;
        }
        Ok(Above { exprs, columns, having, sorts })
    }

    /// Prepares the scope for window functions, if the block has any.
    fn windows(&mut self, select: &Select, items: &[Item<'_>], order: &[OrderItem]) -> Result<bool> {
        let has = items.iter().any(|item| matches!(item, Item::Expr(item) if has_window(&item.expr)))
            || order.iter().any(|item| has_window(&item.expr));
        if !has && select.windows.is_empty() {
            return Ok(false);
        }
        self.open_windows(&select.windows)?;
        Ok(has)
    }

    /// Places window results behind the aggregates, all of which are known now. The clauses are then bound again.
    fn settle_windows(&mut self) {
        let scope = self.scope();
        scope.aliases.clear();
        if let (Some(grouped), Some(windowed)) = (&mut scope.grouped, &mut scope.windowed) {
            windowed.settle(grouped.keys.len() + grouped.calls.len());
            grouped.calls.clear();
            grouped.level = None;
        }
    }

    fn lock(&mut self, locks: &[Locking]) -> Result<()> {
        let (rights, mut exclusive) = (self.rights.clone(), 0);
        for Locking { update, of, wait } in locks {
            let strength = if *update { Strength::Exclusive } else { Strength::Shared };
            let wait = match wait {
                LockingWait::Wait => LockWait::Patient,
                LockingWait::NoWait => LockWait::NoWait,
                LockingWait::SkipLocked => LockWait::SkipLocked,
            };
            for table in &mut self.scope().tables {
                let shown = table.within.as_ref().unwrap_or(&table.alias);
                let base = match &table.origin {
                    Origin::Base(base) => Some(base),
                    Origin::System(system) if system.is_keyspace() => Some(keyspace_table::table()),
                    _ => None,
                };
                if let Some(base) = base
                    && (of.is_empty() || of.iter().any(|of| of.name == *shown))
                {
                    let may = Privileges::UPDATE | Privileges::DELETE | Privileges::LOCK_TABLES;
                    if strength == Strength::Exclusive
                        && table.within.is_none()
                        && !rights.has_any_column(&base.schema, &base.name, may)
                    {
                        return Err(rights.no_table("SELECT with locking clause", &base.name));
                    }
                    exclusive += usize::from(strength == Strength::Exclusive);
                    table.lock = Some(Lock { strength, wait });
                }
            }
        }
        self.uses.lock(exclusive);
        Ok(())
    }

    pub fn items<'a>(&mut self, list: &'a [SelectItem]) -> Result<Vec<Item<'a>>> {
        let mut items = Vec::new();
        for item in list {
            match item {
                SelectItem::Expr(expr) => items.push(Item::Expr(expr)),
                SelectItem::All(span) => {
                    let first = items.len();
                    self.star(None, &mut items)?;
                    self.record_star(*span, &items[first..]);
                }
                SelectItem::AllOf(name, span) => {
                    let first = items.len();
                    self.star(Some(name), &mut items)?;
                    self.record_star(*span, &items[first..]);
                }
            }
        }
        Ok(items)
    }

    fn star(&mut self, of: Option<&Name>, items: &mut Vec<Item<'_>>) -> Result<()> {
        let rights = self.rights.clone();
        let scope = self.scope();
        let before = items.len();
        let places = |table: &ScopeTable| table.offset..table.offset + table.columns.len();
        let all = || scope.tables.iter().filter(|table| table.within.is_none()).flat_map(places);
        let selected: Vec<usize> = match (of, &scope.star) {
            (None, Some(star)) => star.clone(),
            (None, None) => all().collect(),
            (Some(of), _) => {
                let is_meant = |table: &&ScopeTable| {
                    of.name == table.alias && of.schema.as_ref().is_none_or(|schema| *schema == table.schema)
                };
                scope.tables.iter().filter(|table| table.within.is_none()).filter(is_meant).flat_map(places).collect()
            }
        };
        for place in selected {
            let Some(table) = scope.table_at(place) else { continue };
            let at = place - table.offset;
            if table.hidden[at] {
                continue;
            }
            if !table.readable.has(at) {
                // For `*`, the error does not name the column.
                return Err(rights.no_table("SELECT", &table.columns[at].org_table));
            }
            items.push(Item::Place(place));
        }
        match of {
            Some(of) if items.len() == before => Err(error::UNKNOWN_TABLE.with(&[&of.name, &"field list"])),
            None if items.len() == before => Err(SqlError {
                message: "No tables used".into(),
                ..SqlError { code: 1096, sqlstate: "HY000", message: String::new() }
            }),
            _ => Ok(()),
        }
    }

    /// Binds GROUP BY and enters the grouped stage, if the block is grouped.
    fn group(&mut self, select: &Select, items: &[Item<'_>], order: &[OrderItem]) -> Result<bool> {
        let (list, rollup) = (&select.group_by, select.rollup);
        let aggregates = self.scope().summoned || self.has_aggregates(select, items, order)?;
        if list.is_empty() && !aggregates {
            return Ok(false);
        }
        if list.is_empty() && !self.scope().summoned && !self.has_aggregates(select, items, &[])? {
            // Only ORDER BY has an aggregate.
            let mut of_order = order.iter().position(|item| has_aggregate(&item.expr)).into_iter();
            if let Some(at) = of_order.next() {
                return Err(error::AGGREGATE_ORDER_NON_AGG_QUERY.with(&[&(at + 1)]));
            }
        }
        self.scope().clause = "group statement";
        let mut keys: Vec<Expr> = Vec::new();
        let mut named = Vec::new();
        for expr in list {
            let item = self.named_item(expr, items)?;
            let key = self.group_expr(expr, item.map(|at| &items[at]))?;
            if rollup {
                named.extend(item.map(|at| (at, keys.len())));
            }
            if !keys.iter().any(|known| same(known, &key)) || rollup {
                keys.push(key);
            }
        }
        if rollup {
            // ROLLUP makes keys nullable.
            for key in &mut keys {
                match key {
                    Expr::Column(_, ty) | Expr::Literal(_, ty) | Expr::Subquery(_, ty) => ty.nullable = true,
                    Expr::Outer { ty, .. } => ty.nullable = true,
                    Expr::Call(call) if variable::is_variable(call) => call.ty.nullable = true,
                    _ => {}
                }
            }
        }
        let lenient = !self.has_mode(SqlMode::ONLY_FULL_GROUP_BY);
        let primary_covered = self.covered(&keys);
        self.scope().grouped =
            Some(Grouped { keys, calls: Vec::new(), lenient, primary_covered, rollup, items: named, level: None });
        Ok(true)
    }

    /// Returns whether the block has aggregates outside subqueries.
    fn has_aggregates(&mut self, select: &Select, items: &[Item<'_>], order: &[OrderItem]) -> Result<bool> {
        let items = items.iter().filter_map(|item| if let Item::Expr(item) = item { Some(&item.expr) } else { None });
        let mut nodes: Vec<&tree::Expr> =
            items.chain(&select.having).chain(order.iter().map(|item| &item.expr)).collect();
        for NamedWindow { name: _, window } in &select.windows {
            nodes.extend(window_exprs(window));
        }
        for node in nodes {
            if self.has_own_aggregate(node)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the select-list item that a GROUP BY expression refers to, by number or alias.
    fn named_item(&mut self, expr: &tree::Expr, items: &[Item<'_>]) -> Result<Option<usize>> {
        if let Some(at) = position_in(expr, items.len(), "group statement")? {
            return Ok(Some(at));
        }
        if let Some(name) = bare_name(expr)
            && self.scope().find(None, None, name)?.is_none()
        {
            let is_it = |alias: &String| alias.eq_ignore_ascii_case(name);
            return Ok(items
                .iter()
                .position(|item| matches!(item, Item::Expr(item) if item.alias.as_ref().is_some_and(is_it))));
        }
        Ok(None)
    }

    fn group_expr(&mut self, expr: &tree::Expr, item: Option<&Item<'_>>) -> Result<Expr> {
        match item {
            Some(Item::Place(place)) => {
                let depth = self.scopes.len() - 1;
                self.place(depth, *place)
            }
            Some(Item::Expr(SelectExpr { expr, alias, text })) if has_aggregate(expr) || has_window(expr) => {
                Err(error::WRONG_GROUP_FIELD.with(&[alias.as_ref().unwrap_or(text)]))
            }
            Some(Item::Expr(item)) => self.expr(&item.expr),
            None => self.expr(expr),
        }
    }

    /// Returns the columns of tables whose whole primary key is grouped by: they are constant in a group.
    fn covered(&mut self, keys: &[Expr]) -> Vec<usize> {
        let mut covered = Vec::new();
        for table in &self.scope().tables {
            let Origin::Base(base) = &table.origin else { continue };
            let has = |column: usize| {
                keys.iter().any(|key| matches!(key, Expr::Column(at, _) if *at == table.offset + column))
            };
            let mut ways = base
                .primary
                .iter()
                .map(Vec::as_slice)
                .chain(base.indexes.iter().filter(|index| index.unique).map(|index| &index.parts[..]));
            let decides = ways.any(|parts| {
                parts
                    .iter()
                    .all(|part| part.prefix.is_none() && has(part.column) && !base.columns[part.column].ty.nullable)
            });
            if decides {
                covered.extend(table.offset..table.offset + table.columns.len());
            }
        }
        covered
    }

    pub fn select_list(&mut self, items: &[Item<'_>]) -> Result<(Vec<Expr>, Vec<Column>)> {
        let (mut exprs, mut columns) = (Vec::new(), Vec::new());
        self.scope().coming = items.iter().filter_map(alias_of).collect();
        for (at, item) in items.iter().enumerate() {
            self.item = at + 1;
            let depth = self.scopes.len() - 1;
            let rolled = self.scope().grouped.as_ref().and_then(|grouped| grouped.rolled_item(at));
            let (expr, name, place) = match item {
                Item::Expr(item) if rolled.is_some() => {
                    (rolled.unwrap_or_else(Expr::null), Some(name_of_item(item)), self.place_of(&item.expr))
                }
                Item::Place(place) => (self.place(depth, *place)?, None, Some(*place)),
                Item::Expr(item) => {
                    let place = self.place_of(&item.expr);
                    (self.expr(&item.expr)?, Some(name_of_item(item)), place)
                }
            };
            let is_system = place
                .and_then(|place| self.scope().table_at(place))
                .is_some_and(|table| matches!(table.origin, Origin::System(_)));
            let is_named = matches!(item, Item::Expr(item) if item.alias.is_some());
            // Columns of system tables keep the spelling of their definition.
            let name = name.filter(|_| is_named || !is_system);
            let known = place.and_then(|place| self.scope().column_at(place).cloned());
            let column = match known {
                Some(column) => Column { name: name.unwrap_or_else(|| column.name.clone()), ty: expr.ty(), ..column },
                None => Column::computed(name.unwrap_or_default(), expr.ty()),
            };
            self.scope().aliases.push((column.name.clone(), expr.clone()));
            exprs.push(expr);
            columns.push(column);
        }
        Ok((exprs, columns))
    }

    pub fn place_of_item(&mut self, item: &Item<'_>) -> Option<usize> {
        match item {
            Item::Place(place) => Some(*place),
            Item::Expr(item) => self.place_of(&item.expr),
        }
    }

    /// Returns the item's place if it is a column of this block.
    fn place_of(&mut self, node: &tree::Expr) -> Option<usize> {
        let ExprKind::Column(column) = &node.kind else { return None };
        let ColumnName { schema, table, name } = &**column;
        self.scope().find(schema.as_deref(), table.as_deref(), name).ok().flatten()
    }

    pub fn order(&mut self, order: &[OrderItem], exprs: &[Expr]) -> Result<Vec<(Expr, bool)>> {
        let mut sorts = Vec::new();
        self.scope().clause = "order clause";
        for (at, OrderItem { expr, descending }) in order.iter().enumerate() {
            self.item = at + 1;
            let expr = match position(expr, exprs.len())? {
                Some(at) => exprs[at].clone(),
                None => self.expr(expr)?,
            };
            self.check_distinct(&expr, exprs)?;
            if !matches!(expr, Expr::Literal(..)) {
                sorts.push((expr, *descending));
            }
        }
        Ok(sorts)
    }
}

impl Bind<'_> {
    /// Checks that under DISTINCT an ORDER BY expression reads only the select list.
    fn check_distinct(&mut self, expr: &Expr, list: &[Expr]) -> Result<()> {
        let (item, is_strict) = (self.item, self.has_mode(SqlMode::ONLY_FULL_GROUP_BY));
        let scope = self.scope();
        if !scope.distinct || !is_strict || list.iter().any(|known| same(known, expr)) {
            return Ok(());
        }
        let keys = scope.grouped.as_ref().map(|grouped| &grouped.keys);
        let is_shown = |place: usize| list.iter().any(|known| matches!(known, Expr::Column(at, _) if *at == place));
        for place in expr.columns().into_iter().filter(|place| !is_shown(*place)) {
            // Above a grouping: the column behind a key.
            let place = match keys {
                None => Some(place),
                Some(keys) => match keys.get(place) {
                    Some(Expr::Column(below, _)) => Some(*below),
                    _ => None,
                },
            };
            let Some(column) = place.and_then(|place| scope.column_at(place)) else { continue };
            let names = [&*column.schema, &*column.table, &*column.name];
            let shown: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
            return Err(error::FIELD_IN_ORDER_NOT_SELECT.with(&[&item, &shown.join(".")]));
        }
        Ok(())
    }
}

fn alias_of(item: &Item<'_>) -> Option<String> {
    match item {
        Item::Expr(SelectExpr { expr: _, alias, text: _ }) => alias.clone(),
        Item::Place(_) => None,
    }
}

/// Returns whether the expression assigns a user variable.
fn assigns(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |part| found |= variable::is_assignment(part));
    found
}

/// Sorts before the expressions are evaluated, as assignments depend on the row order.
fn sorted_first(node: Arc<Node>, exprs: &[Expr], sorts: Vec<(Expr, bool)>, limits: Limits) -> Arc<Node> {
    let mut row: Vec<Expr> = Vec::new();
    let mut keep = |at: usize, ty: Type| {
        if row.len() <= at {
            row.resize(at + 1, Expr::null());
        }
        row[at] = Expr::Column(at, ty);
    };
    for expr in exprs {
        expr.columns().into_iter().for_each(|at| keep(at, Type::null()));
        expr.walk(&mut |part| {
            if let Expr::Column(at, ty) = part {
                keep(*at, ty.clone());
            }
        });
    }
    let mut keys = Vec::new();
    for (expr, descending) in sorts {
        keys.push(SortKey { at: row.len(), ty: expr.ty(), order: KeyOrder::with_null_least(descending) });
        row.push(expr);
    }
    let node = Arc::new(Node::Project { input: node, exprs: row });
    let limit = limits.0.clone().map(|limit| (limit, limits.1.clone()));
    limited(Arc::new(Node::Sort { input: node, keys, limit, unique: false }), limits)
}

/// Resolves an ORDER BY number to a select-list item.
fn position(expr: &tree::Expr, count: usize) -> Result<Option<usize>> {
    position_in(expr, count, "order clause")
}

/// Resolves a number to a select-list item; errors name the clause.
fn position_in(expr: &tree::Expr, count: usize, clause: &str) -> Result<Option<usize>> {
    let ExprKind::Literal(Literal::Integer(number)) = &expr.kind else { return Ok(None) };
    match usize::try_from(*number) {
        Ok(at) if (1..=count).contains(&at) => Ok(Some(at - 1)),
        _ => Err(error::BAD_FIELD.with(&[number, &clause])),
    }
}

/// Returns an unqualified column's name.
fn bare_name(expr: &tree::Expr) -> Option<&str> {
    match &expr.kind {
        ExprKind::Column(column) if column.table.is_none() => Some(&column.name),
        _ => None,
    }
}

/// Truncates a generated name to the maximum length.
fn shortened(name: String) -> String {
    const NAME_MAX: usize = 256;
    match name.char_indices().nth(NAME_MAX) {
        Some((end, _)) => name[..end].to_owned(),
        None => name,
    }
}

/// Returns an item's column name: its alias, or its text.
fn name_of_item(item: &SelectExpr) -> String {
    let SelectExpr { expr, alias, text } = item;
    if let Some(alias) = alias {
        return alias.clone();
    }
    shortened(name_of_expr(expr, text))
}

fn name_of_expr(expr: &tree::Expr, text: &str) -> String {
    match &expr.kind {
        ExprKind::Column(column) => column.name.clone(),
        ExprKind::Unary { op: UnaryOp::Plus, operand } => {
            name_of_expr(operand, text.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '+'))
        }
        ExprKind::Introduced { charset: _, literal: Literal::String(content) } => content.clone(),
        ExprKind::Literal(literal) => match literal {
            Literal::String(content) | Literal::National(content) => {
                first_of(text).unwrap_or(content.as_str()).trim_start().to_owned()
            }
            Literal::Null => "NULL".to_owned(),
            // As written, without enclosing parentheses.
            Literal::Bool(_) | Literal::Integer(_) | Literal::Decimal(_) | Literal::Float(_) => {
                text.trim_matches(|letter: char| letter.is_whitespace() || matches!(letter, '(' | ')')).to_owned()
            }
            Literal::Hex(_) | Literal::Bits(_) | Literal::Temporal(..) => text.to_owned(),
        },
        ExprKind::Parameter(_) => "?".to_owned(),
        _ => text.to_owned(),
    }
}

/// Returns the first of adjacent string literals, if it has no escapes.
fn first_of(text: &str) -> Option<&str> {
    let mark = text.chars().next().filter(|mark| matches!(mark, '\'' | '"'))?;
    let (first, rest) = text[1..].split_once(mark)?;
    let is_plain = !first.contains('\\') && !rest.is_empty() && !rest.starts_with(mark);
    is_plain.then_some(first)
}

/// Returns the order to request from the tables: columns only.
fn wanted_order(scope: &Scope, sorts: &[(Expr, bool)], is_above: bool) -> Vec<SortKey> {
    let keys = if is_above { Vec::new() } else { order_by_formulas(scope, sorts) };
    if keys.len() == sorts.len() { keys } else { Vec::new() }
}

/// Projects the expressions. A scan yields plain columns by itself.
pub(super) fn projected(mut input: Arc<Node>, exprs: Vec<Expr>) -> Arc<Node> {
    let places: Option<Vec<usize>> =
        exprs.iter().map(|expr| if let Expr::Column(at, _) = expr { Some(*at) } else { None }).collect();
    if let (Some(Node::Scan(scan)), Some(places)) = (Arc::get_mut(&mut input), places)
        && (0..places.len()).all(|at| !places[..at].contains(&places[at]))
        && !scan.needed.is_empty()
    {
        scan.narrow(exprs.iter());
        scan.output = Some(places);
        return input;
    }
    Arc::new(Node::Project { input, exprs })
}

/// Estimates the number of groups in `rows` rows.
pub fn group_count(rows: f64, grouped: &Grouped, sight: Sight<'_>) -> f64 {
    let known: Option<f64> = grouped.keys.iter().map(|key| sight.distinct(key)).product();
    known.map_or(rows / 10.0, |known| known.min(rows)).max(1.0)
}

/// Returns the grouping node, with an estimate of its groups.
pub fn group_node(mut input: Arc<Node>, grouped: &Grouped, estimate: f64) -> Arc<Node> {
    if let Some(Node::Scan(scan)) = Arc::get_mut(&mut input) {
        scan.narrow(grouped.keys.iter().chain(grouped.calls.iter().flat_map(|call| &call.arguments)));
    }
    Arc::new(Node::Group(Group {
        estimate,
        input,
        types: grouped.keys.iter().map(Expr::ty).collect(),
        keys: grouped.keys.clone(),
        calls: grouped.calls.clone(),
        is_whole: grouped.keys.is_empty(),
        rollup: grouped.rollup,
        level: grouped.level,
    }))
}

/// Returns the outermost projection of a plan.
pub fn outermost(node: &mut Arc<Node>) -> Option<&mut Vec<Expr>> {
    match Arc::get_mut(node)? {
        Node::Project { exprs, .. } => Some(exprs),
        Node::Limit { input, .. } | Node::Strip { input, .. } | Node::Sort { input, .. } => outermost(input),
        _ => None,
    }
}

pub fn limited(input: Arc<Node>, (limit, offset): Limits) -> Arc<Node> {
    match limit.is_none() && offset.is_none() {
        true => input,
        false => Arc::new(Node::Limit { input, limit, offset, counts: false }),
    }
}

fn counted(input: Arc<Node>, (limit, offset): Limits) -> Arc<Node> {
    Arc::new(Node::Limit { input, limit, offset, counts: true })
}

/// Returns the first SELECT of a set operation.
fn first_select(mut body: &QueryBody) -> Option<&Select> {
    while let QueryBody::SetOperations { first, links: _ } = body {
        body = first;
    }
    match body {
        QueryBody::Select(select) => Some(select),
        _ => None,
    }
}

fn cast(expr: Expr, ty: &Type) -> Expr {
    let own = expr.ty();
    let is_same = own.kind() == ty.kind()
        && own.is_unsigned() == ty.is_unsigned()
        && own.scale == ty.scale
        && own.members == ty.members;
    if is_same || own.kind() == crate::types::Kind::Null {
        return expr;
    }
    // BIT becomes decimal digits when unified with other types.
    let expr = match own.kind() == crate::types::Kind::Bit && ty.is_string() {
        true => operators::cast(expr, Type::unsigned().with_nullable(own.nullable)),
        false => expr,
    };
    operators::cast(expr, ty.clone())
}

/// Builds a UNION; its first `distinct` inputs are deduplicated.
fn united(inputs: Vec<Bound>, distinct: usize) -> Result<Bound> {
    if inputs.len() == 1 {
        return inputs.into_iter().next().ok_or_else(|| unreachable!("there is one"));
    }
    let mut inputs = unify(inputs)?;
    let columns = std::mem::take(&mut inputs[0].columns);
    let mut nodes: Vec<Arc<Node>> = inputs.into_iter().map(|input| input.node).collect();
    if distinct > 0 {
        let rest = nodes.split_off(distinct);
        let types = columns.iter().map(|column| column.ty.clone()).collect();
        let node = Arc::new(Node::Distinct { input: Arc::new(Node::Union { inputs: nodes }), types });
        nodes = [vec![node], rest].concat();
    }
    let node = if nodes.len() == 1 { nodes.remove(0) } else { Arc::new(Node::Union { inputs: nodes }) };
    Ok(Bound { node, columns, plain: None })
}

/// Casts all inputs to common types under the column names of the first.
fn unify(mut sides: Vec<Bound>) -> Result<Vec<Bound>> {
    let mut types: Vec<Type> = sides[0].columns.iter().map(|column| column.ty.clone()).collect();
    for side in &sides[1..] {
        if side.columns.len() != types.len() {
            return Err(error::WRONG_NUMBER_OF_COLUMNS_IN_SELECT.bare());
        }
        for (ty, column) in types.iter_mut().zip(&side.columns) {
            *ty = union_type(ty, &column.ty)?;
        }
    }
    for side in &mut sides {
        let exprs: Vec<Expr> = side
            .columns
            .iter()
            .zip(&types)
            .enumerate()
            .map(|(at, (column, ty))| cast(Expr::Column(at, column.ty.clone()), ty))
            .collect();
        if exprs.iter().any(operators::is_cast) {
            side.node = Arc::new(Node::Project { input: side.node.clone(), exprs });
        }
        side.columns = side
            .columns
            .iter()
            .zip(&types)
            .map(|(column, ty)| Column::computed(column.name.clone(), ty.clone()))
            .collect();
    }
    Ok(sides)
}

/// Splits a recursive common table expression. The UNION members before the first self-reference are the seed.
fn recursion<'a>(query: &'a Query, name: &str) -> Result<Option<Recursive<'a>>> {
    let QueryBody::SetOperations { first, links } = &query.body else {
        return match mentions(&query.body, name) {
            0 => Ok(None),
            _ => Err(error::CTE_RECURSIVE_REQUIRES_UNION.with(&[&name])),
        };
    };
    if mentions(first, name) > 0 {
        return Err(error::CTE_RECURSIVE_REQUIRES_NONRECURSIVE_FIRST.with(&[&name]));
    }
    let Some(at) = links.iter().position(|link| mentions(&link.operand, name) > 0) else { return Ok(None) };
    if links.iter().all(|link| link.op != SetOp::Union) {
        return Err(error::CTE_RECURSIVE_REQUIRES_UNION.with(&[&name]));
    }
    let (seed, members) = links.split_at(at);
    if let Some(link) = members.iter().find(|link| link.op != SetOp::Union) {
        let op = if link.op == SetOp::Except { "EXCEPT" } else { "INTERSECT" };
        return Err(SqlError::unsupported(format!("{op} in the recursive part of a Common Table Expression")));
    }
    members.iter().try_for_each(|link| check_recursive(&link.operand, name))?;
    let distinct = members.iter().any(|link| !link.all);
    if members.windows(2).any(|pair| !pair[0].all && pair[1].all) {
        let what = "recursive query blocks with UNION DISTINCT then UNION ALL, in recursive Common Table Expression";
        return Err(SqlError::unsupported(what));
    }
    Ok(Some(Recursive { first, seed, part: &members[0].operand, rest: &members[1..], distinct }))
}

/// Checks that a recursive block uses no clause that needs more than one row at a time.
fn check_recursive(body: &QueryBody, name: &str) -> Result<()> {
    let in_from = mentions_in_from(body, name);
    if mentions(body, name) > in_from {
        return Err(CTE_RECURSIVE_REQUIRES_SINGLE_REFERENCE.with(&[&name]));
    }
    let sorts = || {
        SqlError::unsupported("ORDER BY / LIMIT / SELECT DISTINCT in recursive query block of Common Table Expression")
    };
    match body {
        QueryBody::Query(query) => {
            if in_from > 0 && (!query.order_by.is_empty() || query.limit.is_some()) {
                return Err(sorts());
            }
            check_recursive(&query.body, name)
        }
        QueryBody::SetOperations { first, links } => {
            check_recursive(first, name)?;
            links.iter().try_for_each(|link| check_recursive(&link.operand, name))
        }
        QueryBody::Select(select) if in_from > 0 => {
            if in_from > 1 {
                return Err(CTE_RECURSIVE_REQUIRES_SINGLE_REFERENCE.with(&[&name]));
            }
            let gathers = |node: &tree::Expr| has_aggregate(node) || has_window(node);
            let in_list = |item: &SelectItem| matches!(item, SelectItem::Expr(item) if gathers(&item.expr));
            if !select.group_by.is_empty()
                || select.items.iter().any(in_list)
                || select.having.as_ref().is_some_and(gathers)
            {
                return Err(error::CTE_RECURSIVE_FORBIDS_AGGREGATION.with(&[&name]));
            }
            if select.distinct {
                return Err(sorts());
            }
            // A condition that rejects NULLs makes it an inner join.
            let is_met = |condition: &tree::Expr| !refuses_null(condition, name);
            if select.from.iter().any(|item| is_filled_up(item, name)) && select.selection.as_ref().is_none_or(is_met) {
                return Err(error::CTE_RECURSIVE_FORBIDDEN_JOIN_ORDER.with(&[&name]));
            }
            Ok(())
        }
        QueryBody::Select(_) | QueryBody::Values(_) | QueryBody::Table(_) => Ok(()),
    }
}

/// Returns whether a conjunct of the condition compares a column that may be the table's.
fn refuses_null(condition: &tree::Expr, name: &str) -> bool {
    let is_column = |side: &tree::Expr| match &side.kind {
        ExprKind::Column(column) => column.table.as_ref().is_none_or(|table| table.eq_ignore_ascii_case(name)),
        _ => false,
    };
    match &condition.kind {
        ExprKind::And(parts) => parts.iter().any(|part| refuses_null(part, name)),
        ExprKind::Compare { op: tree::CompareOp::NullSafeEqual, left: _, right: _ } => false,
        ExprKind::Compare { op: _, left, right } => is_column(left) || is_column(right),
        ExprKind::Between { operand, low: _, high: _, negated: _ }
        | ExprKind::InList { operand, list: _, negated: _ }
        | ExprKind::Is { operand, test: tree::Truth::Null, negated: true } => is_column(operand),
        _ => false,
    }
}

/// Returns whether the table is on the NULL-extended side of an outer join.
fn is_filled_up(item: &Joined, name: &str) -> bool {
    let has = |table: &TableRef| match table {
        TableRef::Table(table) => table.name.schema.is_none() && table.name.name.eq_ignore_ascii_case(name),
        TableRef::Nested(items) => {
            let mut mentions = Mentions { name, deep: false, count: 0 };
            walk::joined(items, &mut mentions);
            mentions.count > 0
        }
        TableRef::Derived(_) | TableRef::JsonTable(_) => false,
    };
    let within = |table: &TableRef| match table {
        TableRef::Nested(items) => items.iter().any(|item| is_filled_up(item, name)),
        TableRef::Table(_) | TableRef::Derived(_) | TableRef::JsonTable(_) => false,
    };
    let mut left = has(&item.first);
    let mut found = within(&item.first);
    for Join { kind, table, constraint: _ } in &item.joins {
        found |= within(table) || (*kind == JoinKind::Left && has(table)) || (*kind == JoinKind::Right && left);
        left |= has(table);
    }
    found
}

/// Counts references to a table.
struct Mentions<'n> {
    name: &'n str,
    /// Also in subqueries and derived tables.
    deep: bool,
    count: usize,
}

impl Visitor for Mentions<'_> {
    fn expr(&mut self, _: &tree::Expr) -> bool {
        self.deep
    }

    fn query(&mut self, query: &Query) -> bool {
        // Another WITH table of that name hides it.
        let hides = |table: &CommonTable| table.name.value.eq_ignore_ascii_case(self.name);
        self.deep && !query.with.as_ref().is_some_and(|with| with.tables.iter().any(hides))
    }

    fn table(&mut self, table: &TableName) {
        let Name { schema, name } = &table.name;
        self.count += usize::from(schema.is_none() && name.eq_ignore_ascii_case(self.name));
    }
}

fn mentions(body: &QueryBody, name: &str) -> usize {
    let mut mentions = Mentions { name, deep: true, count: 0 };
    walk::body(body, &mut mentions);
    mentions.count
}

fn mentions_in_from(body: &QueryBody, name: &str) -> usize {
    match body {
        QueryBody::Query(query) => mentions_in_from(&query.body, name),
        QueryBody::SetOperations { first, links } => {
            let others = links.iter().map(|link| mentions_in_from(&link.operand, name));
            mentions_in_from(first, name) + others.sum::<usize>()
        }
        QueryBody::Select(_) | QueryBody::Values(_) | QueryBody::Table(_) => {
            let mut mentions = Mentions { name, deep: false, count: 0 };
            walk::body(body, &mut mentions);
            mentions.count
        }
    }
}
