//! Query blocks: one SELECT from its FROM clause to its plan, without the clauses of the query expression around it.

use std::sync::Arc;

use datum::key::KeyOrder;
use engine::rows::Strength;
use syntax::tree::{
    self, ColumnName, ExprKind, Limit, Locking, LockingWait, NamedWindow, OrderItem, Select, SelectExpr, SelectItem,
};

use crate::bind::Bind;
use crate::bind::aggregate::{has_aggregate, has_window, window_exprs};
use crate::bind::generated::order_by_formulas;
use crate::bind::output_name::{bare_name, name_of_item, position, position_in};
use crate::bind::scope::{Bound, Grouped, Scope};
use crate::error::{self, Result, SqlError};
use crate::parse::statement::Name;
use crate::rights::Privileges;
use crate::scalar::modes::SqlMode;
use crate::scalar::variable;
use crate::types::{Column, Type};
use query::block::hashed_subquery::list;
use query::block::semi_join::{self, pull};
use query::block::shape::{Limits, counted, group_count, group_node, limited, projected};
use query::block::{PlanningInputs, QueryBlock};
use query::nodes::expr::Expr;
use query::nodes::keyspace_table;
use query::nodes::node::{Candidates, Lock, LockWait, Node, SortKey};
use query::nodes::relation::{Origin, ScopeTable};
use query::nodes::walk::{conjuncts, same};
use query::plan::column_pruning::pack;
use query::plan::join::filter;
use query::plan::selectivity::StatisticsView;
use query::plan::statistics::Statistics;

/// A select-list item: an expression to bind, or a column of `*`.
pub enum Item<'a> {
    Expr(&'a SelectExpr),
    Place(usize),
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
    pub(super) fn select(
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
        let mut conditions = self.where_conditions(selection.as_ref())?;
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
        let environment = self.environment;
        let mut scope = std::mem::take(self.scope());
        let wants = wanted_order(&scope, &sorts, is_grouped || distinct || is_windowed);
        self.note_likeness(&scope, &conditions);
        self.note_likeness(&scope, &sorts.iter().map(|(expr, _)| expr.clone()).collect::<Vec<_>>());
        let depth = self.scopes.len() - 1;
        // A limit over an index order ends early: then the subqueries are evaluated per row.
        let ends_early = limits.0.is_some() && !(is_grouped || distinct || is_windowed);
        let source = if ends_early { source } else { pull(&mut scope.block_tables(), depth, source, &mut conditions) };
        let is_above = is_grouped || is_windowed;
        let mut block = QueryBlock {
            tables: std::mem::take(&mut scope.tables),
            width: scope.width,
            used: std::mem::take(&mut scope.used),
            source,
            conditions,
            exprs: if is_above { Vec::new() } else { std::mem::take(&mut exprs) },
            sorts: if is_above { Vec::new() } else { std::mem::take(&mut sorts) },
        };
        let (statistics, values): (&dyn Statistics, _) = (environment.variables, environment.values);
        let inputs =
            PlanningInputs { depth, order: &wants, limited: limits.0.is_some() && !counts, statistics, values };
        having.iter_mut().for_each(|condition| list(condition, true, inputs));
        exprs.iter_mut().for_each(|expr| list(expr, false, inputs));
        block.list(inputs);
        let part = block.planned(inputs, !ends_early);
        if !is_above {
            (exprs, sorts) = (std::mem::take(&mut block.exprs), std::mem::take(&mut block.sorts));
        }
        let is_plain = depth > 0 && limits.0.is_none() && !is_windowed && having.is_empty();
        let calls = match &scope.grouped {
            Some(grouped) if grouped.keys.is_empty() && grouped.level.is_none() => Some(&grouped.calls[..]),
            Some(_) => None,
            None => Some(&[][..]),
        };
        let plain = calls.filter(|_| is_plain).and_then(|calls| semi_join::plain(&block, calls, &exprs));
        let is_sorted = sorts.is_empty() || (part.ordered && wants.len() == sorts.len());
        let mut node = part.node;
        let estimates = StatisticsView { tables: &block.tables, statistics, values };
        let groups =
            scope.grouped.as_ref().map_or(0.0, |grouped| group_count(part.rows, grouped.grouping(), estimates));
        if !is_windowed {
            let sorted = sorts.iter_mut().map(|(expr, _)| expr);
            let above = match &mut scope.grouped {
                Some(grouped) => grouped.expressions(),
                None => exprs.iter_mut().chain(&mut having).chain(sorted).collect(),
            };
            pack(&mut node, &block.used, above);
        }
        if let Some(grouped) = &scope.grouped {
            node = group_node(node, grouped.grouping(), groups);
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
                    Origin::System(system) if system.is_keyspace() => Some(keyspace_table::table(system)),
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
                    table.lock = Some(Lock { strength, wait, candidates: Candidates::Current });
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
                .chain(base.indexes.iter().filter(|index| index.is_key()).map(|index| &index.parts[..]));
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

/// Returns the order to request from the tables: columns only.
fn wanted_order(scope: &Scope, sorts: &[(Expr, bool)], is_above: bool) -> Vec<SortKey> {
    let keys = if is_above { Vec::new() } else { order_by_formulas(scope, sorts) };
    if keys.len() == sorts.len() { keys } else { Vec::new() }
}
