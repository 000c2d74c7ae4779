//! Query blocks: one SELECT from its FROM clause to its plan.

use std::sync::Arc;

use datum::key::KeyOrder;
use engine::rows::Strength;
use query::block::hashed_subquery::list;
use query::block::semi_join::{self, pull};
use query::block::shape::{Limits, group_count, group_node, limited, projected};
use query::block::{PlanningInputs, QueryBlock, shape};
use query::nodes::expr::Expr;
use query::nodes::node::{Candidates, Lock, LockWait, Node, SortKey};
use query::nodes::relation::{Origin, ScopeTable, Source};
use query::nodes::walk::{conjuncts, same};
use query::plan::column_pruning::pack;
use query::plan::join::filter;
use query::plan::selectivity::StatisticsView;
use query::plan::statistics::Statistics;
use query::types::Column;
use syntax::postgres::tree::{self, Const, Distinct, ExprKind, LockStrength, LockingClause, ResTarget, Select, SortBy};

use crate::bind::Binder;
use crate::bind::from::base_of;
use crate::bind::output_name::name_of_item;
use crate::bind::scope::{BlockScope, BoundQuery, Clause, Grouped, NameColumn, OutputColumn};
use crate::bind::typing::{Operand, oid_of, settled, unknown_type, unsupported};
use crate::bind::walk::has_aggregate;
use crate::error::{PgError, Result, state};

/// An item of the select list: an expression, or a column that `*` stands for.
pub enum Item<'a> {
    Expr(&'a ResTarget),
    Column(NameColumn, u32),
}

/// A bound item of the select list.
#[derive(Clone)]
pub struct Target {
    pub expr: Expr,
    pub name: String,
    pub origin: Option<(u64, u16)>,
    pub at: u32,
}

/// An expression by which rows are sorted.
pub struct Sort {
    pub expr: Expr,
    pub order: KeyOrder,
    pub at: u32,
}

/// LIMIT, OFFSET and FETCH.
pub struct Bounds {
    pub limits: Limits,
    /// Rows with the same keys as the last one follow it.
    pub with_ties: bool,
}

impl Bounds {
    /// Limits rows that are sorted by these keys.
    pub fn of_sorted(self, input: Arc<Node>, keys: &[SortKey]) -> Arc<Node> {
        match self.limits {
            (Some(limit), offset) if self.with_ties => {
                Arc::new(Node::Ties { input, limit, offset, keys: keys.to_vec() })
            }
            limits => limited(input, limits),
        }
    }
}

/// The clauses above the joins, over wide rows or groups.
struct Above {
    targets: Vec<Target>,
    having: Vec<Expr>,
    sorts: Vec<Sort>,
    /// DISTINCT ON.
    distinct_on: Option<Vec<Expr>>,
}

impl Binder<'_> {
    /// Binds one SELECT. `keeps_unknown` leaves literals of unknown type to what is around it.
    pub fn select(
        &mut self,
        select: &Select,
        order: &[SortBy],
        limit: Option<&tree::Limit>,
        locks: &[LockingClause],
        keeps_unknown: bool,
    ) -> Result<BoundQuery> {
        if select.into.is_some() {
            return Err(PgError::new(state::SYNTAX_ERROR, "SELECT ... INTO is not allowed here"));
        }
        let bounds = self.bounds(limit)?;
        let depth = self.scopes.len();
        self.open_scope();
        let bound = self.block(select, order, bounds, locks, keeps_unknown);
        self.scopes.truncate(depth);
        bound
    }

    fn block(
        &mut self,
        select: &Select,
        order: &[SortBy],
        bounds: Bounds,
        locks: &[LockingClause],
        keeps_unknown: bool,
    ) -> Result<BoundQuery> {
        let source = self.from(&select.from)?;
        let tables = self.scope().tables.len();
        self.rise(tables)?;
        let mut conditions = Vec::new();
        if let Some(selection) = &select.selection {
            self.set_clause(Clause::Where);
            conjuncts(self.condition(selection, "WHERE")?, &mut conditions);
        }
        let items = self.items(&select.targets)?;
        let is_grouped = self.open_groups(select, &items, order)?;
        self.name_windows(&select.windows)?;
        let mut above = self.above(select, &items, order, keeps_unknown)?;
        self.check_windows()?;
        self.lock(select, locks, is_grouped)?;
        let is_windowed = self.scope().windowed.is_used();
        if !is_grouped && !is_windowed {
            self.add_cursor_keys(select, &mut above.targets);
        }
        self.finish_above(&mut above)?;
        self.plan_block(select, source, conditions, above, bounds, (is_grouped, is_windowed))
    }

    /// Expands `*` in a select list.
    pub fn items<'a>(&mut self, list: &'a [ResTarget]) -> Result<Vec<Item<'a>>> {
        let mut items = Vec::new();
        for item in list {
            let at = item.expr.span.start;
            match &item.expr.kind {
                ExprKind::Column(name) if name.star => self.star(&name.fields, at, &mut items)?,
                _ => items.push(Item::Expr(item)),
            }
        }
        Ok(items)
    }

    fn star(&mut self, fields: &[String], at: u32, items: &mut Vec<Item<'_>>) -> Result<()> {
        let columns = match fields {
            [] => {
                let names = &self.scope().names;
                let visible = names.iter().filter(|item| item.are_columns_visible);
                let columns: Vec<NameColumn> = visible.flat_map(|item| item.columns.iter().cloned()).collect();
                if columns.is_empty() && names.is_empty() {
                    return self.fail(state::SYNTAX_ERROR, "SELECT * with no tables specified is not valid", at);
                }
                columns
            }
            [.., table] => {
                let schema = fields.len().checked_sub(2).map(|nth| fields[nth].as_str());
                let depth = self.scopes.len() - 1;
                match self.find_item(schema, table, at)? {
                    Some((of, item)) if of == depth => item.columns.to_vec(),
                    Some(_) => return Err(self.error(unsupported("the row of an outer query"), at)),
                    None => {
                        let shown = fields.join(".");
                        let text = format!("missing FROM-clause entry for table \"{shown}\"");
                        return self.fail(state::UNDEFINED_TABLE, text, at);
                    }
                }
            }
        };
        items.extend(
            columns
                .into_iter()
                .filter(|column| !column.is_hidden && !column.is_unexpanded)
                .map(|column| Item::Column(column, at)),
        );
        Ok(())
    }

    /// Binds a key: the number or the name of an item of the select list, or an expression. A column of FROM goes before an item of that name.
    pub fn group_key<'t>(&mut self, expr: &'t tree::Expr, items: &[Item<'t>]) -> Result<(Expr, &'t tree::Expr)> {
        let text_of = |item: &Item<'t>| match item {
            Item::Expr(item) => &item.expr,
            Item::Column(..) => expr,
        };
        if let Some(at) = self.item_numbered(expr, items.len(), "GROUP BY")? {
            let is_expanded = |item: &Item<'_>| matches!(item, Item::Expr(item) if is_row_star(&item.expr));
            if items[..=at].iter().any(is_expanded) {
                return Err(self.error(unsupported("GROUP BY of a number behind (row).*"), expr.span.start));
            }
            return Ok((self.item_as_key(&items[at])?, text_of(&items[at])));
        }
        if let Some(name) = bare_name(expr) {
            let names = &self.scope().names;
            let visible = names.iter().filter(|item| item.are_columns_visible);
            let is_column = visible.flat_map(|item| item.columns.iter()).any(|column| column.name == name);
            let named = items.iter().position(|item| name_of(item) == name);
            if let (false, Some(at)) = (is_column, named) {
                return Ok((self.item_as_key(&items[at])?, text_of(&items[at])));
            }
        }
        let key = self.expr(expr)?;
        Ok((self.settle(key)?, expr))
    }

    fn item_as_key(&mut self, item: &Item<'_>) -> Result<Expr> {
        match item {
            Item::Expr(item) => {
                if let Some(at) = has_aggregate(&item.expr).then_some(item.expr.span.start) {
                    return self.fail(state::GROUPING_ERROR, "aggregate functions are not allowed in GROUP BY", at);
                }
                let key = self.expr(&item.expr)?;
                self.settle(key)
            }
            Item::Column(column, at) => {
                let depth = self.scopes.len() - 1;
                Ok(self.read(depth, column, *at)?.expr)
            }
        }
    }

    /// Returns the places of tables whose whole primary key is grouped by: they are constant in a group.
    pub fn dependent(&mut self, keys: &[Expr]) -> Vec<std::ops::Range<usize>> {
        let mut dependent = Vec::new();
        for table in &self.scope().tables {
            let Origin::Base(base) = &table.origin else { continue };
            let has = |column: usize| {
                keys.iter().any(|key| matches!(key, Expr::Column(at, _) if *at == table.offset + column))
            };
            let decides = |parts: &Vec<query::catalog::table::Part>| {
                parts.iter().all(|part| part.prefix.is_none() && has(part.column))
            };
            if base.primary.as_ref().is_some_and(decides) {
                dependent.push(table.offset..table.offset + table.columns.len());
            }
        }
        dependent
    }

    /// Binds the select list, HAVING, ORDER BY and DISTINCT.
    fn above(&mut self, select: &Select, items: &[Item<'_>], order: &[SortBy], keeps_unknown: bool) -> Result<Above> {
        let keeps_unknown = keeps_unknown && select.distinct.is_none();
        let targets = self.targets(items, Clause::SelectList, keeps_unknown)?;
        let mut having = Vec::new();
        if let Some(condition) = &select.having {
            self.set_clause(Clause::Having);
            conjuncts(self.condition(condition, "HAVING")?, &mut having);
        }
        let sorts = self.sorts(order, &targets)?;
        let mut distinct_on = None;
        match &select.distinct {
            None => {}
            Some(Distinct::Rows) => {
                for target in &targets {
                    self.check_comparable(oid_of(&target.expr), target.at)?;
                }
                for sort in &sorts {
                    if !targets.iter().any(|target| alike(&target.expr, &sort.expr)) {
                        let text = "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
                        return self.fail(state::INVALID_COLUMN_REFERENCE, text, sort.at);
                    }
                }
            }
            Some(Distinct::On(list)) => distinct_on = Some(self.distinct_on(list, &targets, &sorts)?),
        }
        Ok(Above { targets, having, sorts, distinct_on })
    }

    /// Binds the items of a list whose columns have names.
    pub fn targets(&mut self, items: &[Item<'_>], clause: Clause, keeps_unknown: bool) -> Result<Vec<Target>> {
        self.set_clause(clause);
        if clause != Clause::Returning {
            check_targets(items.len())?;
        } else if items.len() > TARGETS_MAX {
            let text = format!("number of columns ({}) exceeds limit ({TARGETS_MAX})", items.len());
            return Err(PgError::new(state::TOO_MANY_COLUMNS, text));
        }
        let depth = self.scopes.len() - 1;
        let mut targets = Vec::with_capacity(items.len());
        for item in items {
            let target = match item {
                Item::Column(column, at) => {
                    let Operand { expr, at } = self.read(depth, column, *at)?;
                    Target { expr, name: column.name.clone(), origin: column.origin, at }
                }
                Item::Expr(item) if is_row_star(&item.expr) => {
                    self.row_targets(&item.expr, &mut targets)?;
                    continue;
                }
                Item::Expr(item) => {
                    let bound = self.expr(&item.expr)?;
                    let at = bound.at;
                    let is_open = matches!(bound.expr, Expr::Literal(..) | Expr::Parameter(..));
                    let expr = if keeps_unknown && is_open { bound.expr } else { self.settle(bound)? };
                    let origin = self.origin_of(&item.expr, &expr);
                    Target { expr, name: name_of_item(item), origin, at }
                }
            };
            targets.push(target);
        }
        Ok(targets)
    }

    /// Adds the fields that `(row).*` stands for.
    #[inline(never)]
    fn row_targets(&mut self, node: &tree::Expr, targets: &mut Vec<Target>) -> Result<()> {
        let ExprKind::Indirection { operand, links } = &node.kind else { return Ok(()) };
        let whole = match &links[..links.len() - 1] {
            [] => match &operand.kind {
                ExprKind::Column(name) => self.column(name, node.span.start)?,
                _ => self.expr(operand)?,
            },
            links => self.indirection(operand, links, node.span.start)?,
        };
        for (name, Operand { expr, at }) in self.all_fields(whole)? {
            let expr = self.settle(Operand { expr, at })?;
            targets.push(Target { expr, name, origin: None, at });
        }
        check_targets(targets.len())
    }

    /// Returns the stored column that an item is.
    fn origin_of(&mut self, node: &tree::Expr, expr: &Expr) -> Option<(u64, u16)> {
        if !matches!((&node.kind, expr), (ExprKind::Column(_), Expr::Column(..))) {
            return None;
        }
        let columns = self.scope().names.iter().flat_map(|item| item.columns.iter());
        let mut same = columns.filter(|column| same(&column.expr, expr));
        same.find_map(|column| column.origin)
    }

    /// Binds ORDER BY: names and numbers of items, or expressions.
    pub fn sorts(&mut self, order: &[SortBy], targets: &[Target]) -> Result<Vec<Sort>> {
        self.set_clause(Clause::OrderBy);
        let mut sorts: Vec<Sort> = Vec::new();
        let mut added = 0;
        for item in order {
            let at = item.expr.span.start;
            let expr = self.by_item(&item.expr, targets, "ORDER BY")?;
            self.check_sortable(oid_of(&expr), at)?;
            let order = self.order_of(item)?;
            // A second key of the same values changes no order.
            if sorts.iter().any(|known| alike(&known.expr, &expr)) {
                continue;
            }
            added += usize::from(!targets.iter().any(|target| alike(&target.expr, &expr)));
            check_targets(targets.len() + added)?;
            sorts.push(Sort { expr, order, at });
        }
        Ok(sorts)
    }

    /// Binds an expression of ORDER BY or DISTINCT ON, where the name of an item goes before a column of FROM.
    fn by_item(&mut self, expr: &tree::Expr, targets: &[Target], clause: &str) -> Result<Expr> {
        let at = expr.span.start;
        if let Some(nth) = self.item_numbered(expr, targets.len(), clause)? {
            return Ok(targets[nth].expr.clone());
        }
        if let Some(name) = bare_name(expr) {
            let mut named = targets.iter().filter(|target| target.name == name);
            if let Some(first) = named.next() {
                if named.any(|other| !alike(&first.expr, &other.expr)) {
                    return self.fail(state::AMBIGUOUS_COLUMN, format!("{clause} \"{name}\" is ambiguous"), at);
                }
                return Ok(first.expr.clone());
            }
        }
        let bound = self.expr(expr)?;
        let bound = self.settle(bound)?;
        // An expression of the select list is evaluated once.
        Ok(targets.iter().find(|target| alike(&target.expr, &bound)).map_or(bound, |target| target.expr.clone()))
    }

    /// Returns the item that a bare number means.
    fn item_numbered(&self, expr: &tree::Expr, count: usize, clause: &str) -> Result<Option<usize>> {
        let ExprKind::Const(value) = &expr.kind else { return Ok(None) };
        let at = expr.span.start;
        match value {
            Const::Integer(number) => match usize::try_from(*number) {
                Ok(nth) if (1..=count).contains(&nth) => Ok(Some(nth - 1)),
                _ => {
                    let text = format!("{clause} position {number} is not in select list");
                    self.fail(state::INVALID_COLUMN_REFERENCE, text, at)
                }
            },
            _ => self.fail(state::SYNTAX_ERROR, format!("non-integer constant in {clause}"), at),
        }
    }

    fn distinct_on(&mut self, list: &[tree::Expr], targets: &[Target], sorts: &[Sort]) -> Result<Vec<Expr>> {
        self.set_clause(Clause::DistinctOn);
        let mut keys: Vec<Expr> = Vec::new();
        for expr in list {
            let key = self.by_item(expr, targets, "DISTINCT ON")?;
            self.check_sortable(oid_of(&key), expr.span.start)?;
            if !keys.iter().any(|known| alike(known, &key)) {
                keys.push(key);
            }
        }
        let is_key = |sort: &Sort| keys.iter().any(|key| alike(key, &sort.expr));
        let matched = sorts.iter().take_while(|sort| is_key(sort)).count();
        if matched < keys.len() && matched < sorts.len() {
            let is_matched = |key: &Expr| sorts[..matched].iter().any(|sort| alike(key, &sort.expr));
            let other = keys.iter().position(|key| !is_matched(key)).unwrap_or(0);
            let text = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions";
            return self.fail(state::INVALID_COLUMN_REFERENCE, text, list[other].span.start);
        }
        Ok(keys)
    }

    /// Brings the clauses to the rows of groups and gives window functions their places.
    fn finish_above(&mut self, above: &mut Above) -> Result<()> {
        let mut windowed = std::mem::take(&mut self.scope().windowed);
        let mut sets = std::mem::take(&mut self.scope().sets);
        let targets = above.targets.iter_mut().map(|target| &mut target.expr);
        let sorts = above.sorts.iter_mut().map(|sort| &mut sort.expr);
        let keys = above.distinct_on.iter_mut().flatten();
        let exprs: Vec<&mut Expr> =
            targets.chain(&mut above.having).chain(sorts).chain(keys).chain(windowed.expressions()).collect();
        let exprs = exprs.into_iter().chain(sets.expressions());
        self.bring_to_groups(exprs)?;
        let scope = self.scope();
        let first = match &scope.grouped {
            Some(grouped) => grouped.keys.len() + grouped.calls.len(),
            None => scope.width,
        };
        if windowed.is_used() {
            windowed.settle(first);
            let targets = above.targets.iter_mut().map(|target| &mut target.expr);
            let sorts = above.sorts.iter_mut().map(|sort| &mut sort.expr);
            let keys = above.distinct_on.iter_mut().flatten();
            let exprs = targets.chain(sorts).chain(keys).chain(sets.expressions());
            exprs.for_each(|expr| BlockScope::settle_windows(expr, first));
        }
        self.scope().windowed = windowed;
        self.scope().sets = sets;
        Ok(())
    }

    fn plan_block(
        &mut self,
        select: &Select,
        source: Source,
        mut conditions: Vec<Expr>,
        above: Above,
        bounds: Bounds,
        (is_grouped, is_windowed): (bool, bool),
    ) -> Result<BoundQuery> {
        let Above { targets, mut having, mut sorts, distinct_on } = above;
        let (limits, with_ties) = (&bounds.limits, bounds.with_ties);
        let distinct = matches!(select.distinct, Some(Distinct::Rows));
        let columns = output_columns(&targets);
        let mut exprs: Vec<Expr> = targets.into_iter().map(|target| target.expr).collect();
        sorts.retain(|sort| !matches!(sort.expr, Expr::Literal(..)));
        let mut scope = std::mem::take(self.scope());
        let sets = std::mem::take(&mut scope.sets);
        let is_above = is_grouped || is_windowed || sets.is_used();
        let depth = self.scopes.len() - 1;
        let wants = wanted_order(&sorts, is_grouped || is_windowed || distinct || with_ties || distinct_on.is_some());
        // A limit over an index order ends early: then the subqueries are evaluated per row.
        let ends_early = limits.0.is_some() && !(is_above || distinct || distinct_on.is_some());
        // So it is where rows are locked: a newer version is looked at by the same conditions.
        let is_locked = scope.tables.iter().any(|table| table.lock.is_some());
        let keeps_subqueries = ends_early || is_locked;
        let source =
            if keeps_subqueries { source } else { pull(&mut scope.block_tables(), depth, source, &mut conditions) };
        let mut block = QueryBlock {
            tables: std::mem::take(&mut scope.tables),
            width: scope.width,
            used: std::mem::take(&mut scope.used),
            source,
            conditions,
            exprs: if is_above { Vec::new() } else { std::mem::take(&mut exprs) },
            sorts: Vec::new(),
        };
        if !is_above {
            block.sorts = sorts.iter().map(|sort| (sort.expr.clone(), false)).collect();
        }
        let (statistics, values): (&dyn Statistics, _) = (self.environment.session, self.environment.values);
        let inputs = PlanningInputs { depth, order: &wants, limited: limits.0.is_some(), statistics, values };
        having.iter_mut().for_each(|condition| list(condition, true, inputs));
        exprs.iter_mut().for_each(|expr| list(expr, false, inputs));
        block.list(inputs);
        let locks = block.take_locks();
        let part = block.planned(inputs, !keeps_subqueries);
        if !is_above {
            exprs = std::mem::take(&mut block.exprs);
            let planned = std::mem::take(&mut block.sorts);
            sorts.iter_mut().zip(planned).for_each(|(sort, (expr, _))| sort.expr = expr);
        }
        let plain = self.plain(&block, &scope, &exprs, depth, is_windowed || !having.is_empty() || limits.0.is_some());
        let plain = plain.filter(|_| bounds.limits.1.is_none() && distinct_on.is_none() && !sets.is_used());
        let plain = plain.filter(|_| locks.is_empty());
        let is_degenerate = scope.grouped.as_ref().is_some_and(Grouped::is_degenerate);
        let plain = plain.filter(|_| !is_degenerate);
        let mut is_sorted = sorts.is_empty() || (part.ordered && wants.len() == sorts.len());
        // Nothing is read for HAVING or GROUP BY () without keys and aggregates: there is one group, whether there are rows or not.
        let mut node = if is_degenerate { Arc::new(Node::One { width: block.width }) } else { part.node };
        if !locks.is_empty() && with_ties {
            return Err(unsupported("FOR UPDATE with FETCH WITH TIES"));
        }
        if !locks.is_empty() {
            let sorts = if is_sorted { Vec::new() } else { std::mem::take(&mut sorts) };
            let mut wide: Vec<Expr> = (0..block.width).map(|at| Expr::Column(at, unknown_type())).collect();
            let keys = sort_keys(&mut wide, sorts);
            node = block.with_locks(node, locks, (wide.split_off(block.width), keys));
            is_sorted = true;
        }
        let estimates = StatisticsView { tables: &block.tables, statistics, values };
        let groups = scope.grouped.as_ref().map_or(0.0, |grouped| group_count(part.rows, grouping(grouped), estimates));
        let mut distinct_on_keys = distinct_on.unwrap_or_default();
        let mut width = block.width;
        let has_sets_below = match &mut scope.grouped {
            Some(grouped) => sets.below(&mut node, width, grouped.expressions()),
            None => sets.is_used(),
        };
        if !is_windowed && !has_sets_below {
            let sorted = sorts.iter_mut().map(|sort| &mut sort.expr);
            let above = match &mut scope.grouped {
                Some(grouped) => grouped.expressions(),
                None => exprs.iter_mut().chain(&mut having).chain(sorted).chain(&mut distinct_on_keys).collect(),
            };
            pack(&mut node, &block.used, above);
        }
        if let Some(grouped) = &scope.grouped {
            node = group_node(node, grouping(grouped), groups);
            width = grouped.keys.len() + grouped.calls.len();
        }
        node = filter(node, having);
        if is_windowed {
            self.rise(scope.windowed.orders())?;
            width = width.max(scope.windowed.width());
            node = scope.windowed.nodes(node);
        }
        if sets.is_used() {
            self.rise(sets.calls.len() + 2)?;
            let sorts_below = !is_sorted && !distinct && !with_ties && distinct_on_keys.is_empty();
            sets.above(&mut node, width, &mut sorts, (&mut exprs, &mut distinct_on_keys), sorts_below);
            is_sorted |= sorts.is_empty();
        }
        let distinct_on = Some(distinct_on_keys).filter(|keys| !keys.is_empty());
        let node = finished(node, exprs, sorts, is_sorted, distinct_on, distinct, bounds);
        Ok(BoundQuery { node, columns, plain })
    }

    /// Returns the block as tables and conditions alone, if it can be merged into the enclosing block.
    fn plain(
        &self,
        block: &QueryBlock,
        scope: &BlockScope,
        exprs: &[Expr],
        depth: usize,
        is_shaped: bool,
    ) -> Option<Arc<query::nodes::subquery::Plain>> {
        let calls = match &scope.grouped {
            Some(grouped) if grouped.keys.is_empty() && grouped.sets.is_empty() => &grouped.calls[..],
            Some(_) => return None,
            None => &[][..],
        };
        if depth == 0 || is_shaped { None } else { semi_join::plain(block, calls, exprs) }
    }

    /// Binds LIMIT, OFFSET and FETCH, which see no tables.
    pub fn bounds(&mut self, limit: Option<&tree::Limit>) -> Result<Bounds> {
        let Some(tree::Limit { count, with_ties, offset }) = limit else {
            return Ok(Bounds { limits: (None, None), with_ties: false });
        };
        let clause = if *with_ties { Clause::Ties } else { Clause::Limit };
        let count = count.as_ref().map(|count| self.limit(count, clause)).transpose()?;
        let offset = offset.as_ref().map(|offset| self.limit(offset, Clause::Offset)).transpose()?;
        Ok(Bounds { limits: (count.flatten(), offset.flatten()), with_ties: *with_ties })
    }

    fn limit(&mut self, node: &tree::Expr, clause: Clause) -> Result<Option<Expr>> {
        let word = clause.in_words();
        self.open_scope();
        self.scope().clause = clause;
        let bound = self.expr(node);
        self.close_scope();
        let bound = bound?;
        let (source, at) = (bound.oid(), bound.at);
        let coerced = self.coerce_to(bound, crate::types::oid::INT8, -1, crate::functions::CastContext::Assignment)?;
        let Some(expr) = coerced else {
            let shown = super::typing::shown(source);
            let text = format!("argument of {word} must be type bigint, not type {shown}");
            return self.fail(state::DATATYPE_MISMATCH, text, at);
        };
        let mut reads = false;
        expr.walk(&mut |expr| reads |= matches!(expr, Expr::Column(..) | Expr::Outer { .. }));
        if reads {
            let text = format!("argument of {word} must not contain variables");
            return self.fail(state::INVALID_COLUMN_REFERENCE, text, at);
        }
        Ok(match &expr {
            Expr::Literal(query::value::Value::Null, _) if clause != Clause::Ties => None,
            Expr::Literal(query::value::Value::Int(count), _) if *count >= 0 => Some(expr),
            _ => {
                let check = match clause {
                    Clause::Ties => &super::special::TIES,
                    Clause::Limit => &super::special::LIMIT,
                    _ => &super::special::OFFSET,
                };
                Some(super::coerce::call_of(check, vec![expr], crate::types::oid::INT8, -1))
            }
        })
    }

    /// Applies FOR UPDATE and the like: the engine has shared and exclusive locks.
    fn lock(&mut self, select: &Select, locks: &[LockingClause], is_grouped: bool) -> Result<()> {
        let Some(first) = locks.first() else { return Ok(()) };
        let word = strength_word(first.strength);
        let refused = match () {
            () if select.distinct.is_some() => Some("with DISTINCT clause"),
            () if !select.group_by.is_empty() => Some("with GROUP BY clause"),
            () if select.having.is_some() => Some("with HAVING clause"),
            () if is_grouped => Some("with aggregate functions"),
            () if self.scope().windowed.is_used() => Some("with window functions"),
            () if self.scope().sets.is_used() => Some("with set-returning functions in the target list"),
            () if self.scope().sets.is_used() => Some("with set-returning functions in the target list"),
            () => None,
        };
        if let Some(refused) = refused {
            let text = format!("{word} is not allowed {refused}");
            return Err(PgError::new(state::FEATURE_NOT_SUPPORTED, text));
        }
        for LockingClause { strength, of, wait } in locks {
            let lock =
                Lock { strength: engine_strength(*strength), wait: engine_wait(*wait), candidates: Candidates::Seen };
            for name in of {
                let is_it = |item: &super::scope::NameItem| item.is_relation_visible && item.alias == name.name;
                if !self.scope().names.iter().any(is_it) {
                    let text = format!("relation \"{}\" in {word} clause not found in FROM clause", name.name);
                    return self.fail(state::UNDEFINED_TABLE, text, name.at.0);
                }
            }
            let word = strength_word(*strength);
            let scope = self.scope();
            let BlockScope { tables, width, used, .. } = scope;
            let mut locked = Vec::new();
            for table in tables {
                let shown = table.within.as_ref().unwrap_or(&table.alias);
                let is_named = of.iter().any(|name| name.name == *shown);
                if !of.is_empty() && !is_named {
                    continue;
                }
                check_lockable(table, word, is_named)?;
                let Some(base) = base_of(&table.origin) else { continue };
                if base.query.is_some() {
                    let text = format!("cannot lock rows in materialized view \"{}\"", base.name);
                    return Err(PgError::new(state::WRONG_OBJECT_TYPE, text));
                }
                locked.push(base.clone());
                if table.key_at.is_none() {
                    table.key_at = Some(*width);
                    *width += 1;
                    used.resize(*width, true);
                }
                table.lock = Some(table.lock.map_or(lock, |known| both(known, lock)));
            }
            for table in locked {
                let need = self.need_of_table(&table);
                self.need_update(need, &table, &[]);
            }
        }
        Ok(())
    }
}

/// Returns the lock of a table that two clauses name: the stronger one, with the shorter wait.
fn both(one: Lock, other: Lock) -> Lock {
    let strength = one.strength.max(other.strength);
    let waits = [LockWait::NoWait, LockWait::SkipLocked];
    let wait = waits.into_iter().find(|wait| one.wait == *wait || other.wait == *wait).unwrap_or(one.wait);
    Lock { strength, wait, ..one }
}

/// Fails where the rows of an item of FROM cannot be locked, or are locked by a name that stands for others.
fn check_lockable(table: &ScopeTable, word: &str, is_named: bool) -> Result<()> {
    if table.nullable {
        let text = format!("{word} cannot be applied to the nullable side of an outer join");
        return Err(PgError::new(state::FEATURE_NOT_SUPPORTED, text));
    }
    if base_of(&table.origin).is_some() {
        return Ok(());
    }
    let (Origin::Derived { node } | Origin::Lateral { node, .. }) = &table.origin else {
        return Err(unsupported(format!("{word} of a system table")));
    };
    let kind = match &**node {
        Node::Common { .. } | Node::LastRound { .. } => "a WITH query",
        Node::TableFunction(_) | Node::ProjectSet(_) => "a function",
        _ if query::nodes::walk::reads_tables(node) => {
            return Err(unsupported(format!("{word} of the rows of a subquery")));
        }
        _ => return Ok(()),
    };
    match is_named {
        true => {
            let text = format!("{word} cannot be applied to {kind}");
            Err(PgError::new(state::FEATURE_NOT_SUPPORTED, text))
        }
        false => Ok(()),
    }
}

/// The most items of a select list, with the expressions that ORDER BY and GROUP BY add to it.
const TARGETS_MAX: usize = 1664;

pub fn check_targets(count: usize) -> Result<()> {
    if count <= TARGETS_MAX {
        return Ok(());
    }
    Err(PgError::new(state::TOO_MANY_COLUMNS, format!("target lists can have at most {TARGETS_MAX} entries")))
}

/// Returns the nodes above the joins, groups and windows: projection, order, duplicates, limits.
fn finished(
    mut node: Arc<Node>,
    mut exprs: Vec<Expr>,
    sorts: Vec<Sort>,
    is_sorted: bool,
    distinct_on: Option<Vec<Expr>>,
    distinct: bool,
    bounds: Bounds,
) -> Arc<Node> {
    if let Some(on) = distinct_on {
        return distinct_on_rows(node, exprs, sorts, on, bounds);
    }
    let width = exprs.len();
    let mut keys = Vec::new();
    if !is_sorted {
        keys = sort_keys(&mut exprs, sorts);
    }
    let types = exprs[..width].iter().map(|expr| settled(&expr.ty())).collect();
    let is_wider = exprs.len() > width;
    node = projected(node, exprs);
    // Sorted by all output columns, equal rows are adjacent.
    let unique = distinct && !keys.is_empty() && (0..width).all(|at| keys.iter().any(|key| key.at == at)) && !is_wider;
    if distinct && !unique {
        node = Arc::new(Node::Distinct { input: node, types });
    }
    if !keys.is_empty() {
        let (limit, offset) = &bounds.limits;
        let limit = limit.clone().filter(|_| !unique && !bounds.with_ties).map(|limit| (limit, offset.clone()));
        node = Arc::new(Node::Sort { input: node, keys: keys.clone(), limit, unique });
    }
    node = bounds.of_sorted(node, &keys);
    if is_wider {
        node = Arc::new(Node::Strip { input: node, width });
    }
    node
}

/// Returns the first row of each combination of the keys of DISTINCT ON, in the order of ORDER BY.
fn distinct_on_rows(node: Arc<Node>, exprs: Vec<Expr>, sorts: Vec<Sort>, on: Vec<Expr>, bounds: Bounds) -> Arc<Node> {
    // The keys come first in the rows, because duplicates are told by their first values.
    let (count, width) = (on.len(), exprs.len());
    let mut row: Vec<Expr> = on.iter().chain(&exprs).cloned().collect();
    let has_order = !sorts.is_empty();
    let mut keys = sort_keys(&mut row, sorts);
    let types = on.iter().map(|expr| settled(&expr.ty())).collect();
    let mut node = Arc::new(Node::Project { input: node, exprs: row.clone() });
    if !has_order {
        let key = |(at, expr): (usize, &Expr)| SortKey {
            at,
            ty: settled(&expr.ty()),
            order: KeyOrder::with_null_greatest(false),
        };
        keys = on.iter().enumerate().map(key).collect();
    }
    node = Arc::new(Node::Sort { input: node, keys: keys.clone(), limit: None, unique: false });
    node = Arc::new(Node::Distinct { input: node, types });
    // Duplicates that did not fit in memory come out in another order.
    node = Arc::new(Node::Sort { input: node, keys: keys.clone(), limit: None, unique: false });
    node = bounds.of_sorted(node, &keys);
    let output = (count..count + width).map(|at| Expr::Column(at, row[at].ty())).collect();
    Arc::new(Node::Project { input: node, exprs: output })
}

/// Returns the keys of a sort. Expressions that the rows do not have yet are put behind them.
pub fn sort_keys(exprs: &mut Vec<Expr>, sorts: Vec<Sort>) -> Vec<SortKey> {
    let mut keys: Vec<SortKey> = Vec::new();
    for Sort { expr, order, at: _ } in sorts {
        let ty = settled(&expr.ty());
        let at = exprs.iter().position(|known| alike(known, &expr)).unwrap_or_else(|| {
            exprs.push(expr);
            exprs.len() - 1
        });
        if !keys.iter().any(|key| key.at == at) {
            keys.push(SortKey { at, ty, order });
        }
    }
    keys
}

pub fn output_columns(targets: &[Target]) -> Vec<OutputColumn> {
    let column = |target: &Target| {
        // The type of an expression that is still unknown is told by what is around it.
        let ty = if oid_of(&target.expr) == crate::types::oid::UNKNOWN {
            target.expr.ty()
        } else {
            settled(&target.expr.ty())
        };
        OutputColumn { column: Column::computed(target.name.clone(), ty), origin: target.origin, at: target.at }
    };
    targets.iter().map(column).collect()
}

fn grouping(grouped: &Grouped) -> shape::Grouping<'_> {
    shape::Grouping {
        keys: &grouped.keys,
        calls: &grouped.calls,
        rollup: false,
        sets: &grouped.sets,
        level: grouped.level,
    }
}

/// Returns the order to request from the tables: columns only.
fn wanted_order(sorts: &[Sort], is_above: bool) -> Vec<SortKey> {
    let key = |sort: &Sort| match &sort.expr {
        Expr::Column(at, ty) => Some(SortKey { at: *at, ty: ty.clone(), order: sort.order }),
        _ => None,
    };
    if is_above { Vec::new() } else { sorts.iter().map(key).collect::<Option<_>>().unwrap_or_default() }
}

/// Returns whether two expressions have the same value: the same subquery is shared by clones only.
pub fn alike(a: &Expr, b: &Expr) -> bool {
    query::plan::generated::is_like(a, b, false)
}

/// Returns an unqualified column's name.
pub fn bare_name(expr: &tree::Expr) -> Option<&str> {
    match &expr.kind {
        ExprKind::Column(column) if !column.star && column.fields.len() == 1 => Some(&column.fields[0]),
        _ => None,
    }
}

/// Returns whether the item is `(row).*`.
fn is_row_star(expr: &tree::Expr) -> bool {
    matches!(&expr.kind, ExprKind::Indirection { operand: _, links } if links.last() == Some(&tree::Indirection::Star))
}

fn name_of(item: &Item<'_>) -> String {
    match item {
        Item::Expr(item) => name_of_item(item),
        Item::Column(column, _) => column.name.clone(),
    }
}

fn engine_strength(strength: LockStrength) -> Strength {
    match strength {
        LockStrength::KeyShare => Strength::KeyShared,
        LockStrength::Share => Strength::Shared,
        LockStrength::NoKeyUpdate => Strength::NoKeyExclusive,
        LockStrength::Update => Strength::Exclusive,
    }
}

fn engine_wait(wait: tree::LockWait) -> LockWait {
    match wait {
        tree::LockWait::Wait => LockWait::Patient,
        tree::LockWait::NoWait => LockWait::NoWait,
        tree::LockWait::SkipLocked => LockWait::SkipLocked,
    }
}

pub fn strength_word(strength: LockStrength) -> &'static str {
    match strength {
        LockStrength::KeyShare => "FOR KEY SHARE",
        LockStrength::Share => "FOR SHARE",
        LockStrength::NoKeyUpdate => "FOR NO KEY UPDATE",
        LockStrength::Update => "FOR UPDATE",
    }
}
