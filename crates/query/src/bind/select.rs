//! Query blocks, set operations, common table expressions.

use std::sync::Arc;

use sqlparser::ast::{self, GroupByExpr, LimitClause, SelectItem, SetExpr};

use crate::bind::aggregate::{descends, has_aggregate, has_window, window_exprs};
use crate::bind::from::rename;
use crate::bind::generated::order_by_formulas;
use crate::bind::listed::list;
use crate::bind::scope::{Bound, Common, Grouped, Origin, Scope, ScopeTable};
use crate::bind::semi::{Plain, pull};
use crate::bind::summary::{Block, Wishes};
use crate::bind::{Bind, name_of};
use crate::error::{self, Result, SqlError};
use crate::plan::join::filter;
use crate::plan::pack::pack;
use crate::plan::share::Sight;
use crate::plan::walk::{conjuncts, same};
use crate::plan::{Group, Lock, LockWait, Node, Recursion, SortKey};
use crate::rights::Privileges;
use crate::scalar::bind::{present, union_type};
use crate::scalar::{Expr, SqlMode};
use crate::system::keys;
use crate::types::{Column, Type};
use engine::rows::Strength;

/// The limit and the offset of a query.
type Limits = (Option<Expr>, Option<Expr>);

/// How many nodes may stand above each other in a plan: joins, derived tables, views and chains of common table expressions. Planner, executor and destructors go down all of them.
const HEIGHT_MAX: usize = 1600;

/// How many nodes a plan may have, where each reference to a common table expression counts all of its nodes: who walks the plan walks these.
const WEIGHT_MAX: usize = 100_000;

/// An item of the select list: an expression to bind, or a column that `*` stands for.
pub enum Item<'a> {
    Expr(&'a ast::Expr, Option<&'a str>),
    Place(usize),
}

/// What stands above the joins and the grouping.
struct Above {
    exprs: Vec<Expr>,
    columns: Vec<Column>,
    having: Vec<Expr>,
    sorts: Vec<(Expr, bool)>,
}

/// The same, and over what rows.
struct Staged {
    is_grouped: bool,
    is_windowed: bool,
    above: Above,
}

impl Bind<'_> {
    /// The whole of a statement's query: values in the form that is shown.
    pub fn statement_query(&mut self, query: &ast::Query) -> Result<Bound> {
        let mut bound = self.query(query)?;
        let exprs: Vec<Expr> =
            bound.columns.iter().enumerate().map(|(at, column)| present(Expr::Column(at, column.ty.clone()))).collect();
        if exprs.iter().any(|expr| !matches!(expr, Expr::Column(..))) {
            bound.node = Arc::new(Node::Project { input: bound.node, exprs });
        }
        Ok(bound)
    }

    pub fn query(&mut self, query: &ast::Query) -> Result<Bound> {
        if query.fetch.is_some() || query.for_clause.is_some() {
            return Err(SqlError::unsupported("FETCH"));
        }
        // See `Binder::bind`.
        if !stdx::stack::is_half_free() {
            return Err(error::STACK_OVERRUN.with(&[&"the queries are nested too deep"]));
        }
        let commons = self.commons.len();
        if let Some(with) = &query.with {
            for cte in &with.cte_tables {
                self.common(cte, with.recursive)?;
            }
        }
        let around = std::mem::take(&mut self.height);
        let bound = self.body(query);
        self.commons.truncate(commons);
        self.rise(2)?;
        self.height = self.height.max(around);
        bound
    }

    /// Counts nodes that stand above all that has been bound of the query under way.
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

    fn body(&mut self, query: &ast::Query) -> Result<Bound> {
        let order = match &query.order_by {
            None => &[][..],
            Some(ast::OrderBy { kind: ast::OrderByKind::Expressions(list), .. }) => list,
            Some(other) => return Err(SqlError::unsupported(other)),
        };
        if let SetExpr::Select(select) = &*query.body {
            return self.select(select, order, query.limit_clause.as_ref(), &query.locks);
        }
        let mut bound = self.set_expr(&query.body)?;
        let limits = self.limits(query.limit_clause.as_ref())?;
        let mut keys = Vec::new();
        for item in order {
            let at = self.output_column(&item.expr, &bound.columns)?;
            keys.push(SortKey { at, ty: bound.columns[at].ty.clone(), descending: descends(&item.options) });
        }
        if !keys.is_empty() {
            bound.node = Arc::new(Node::Sort { input: bound.node, keys, limit: None, unique: false });
        }
        bound.node = match first_select(&query.body) {
            Some(first) if counts_rows(first) => counted(bound.node, limits),
            _ => limited(bound.node, limits),
        };
        Ok(bound)
    }

    /// ORDER BY over a set operation: a name or number of its columns.
    fn output_column(&mut self, expr: &ast::Expr, columns: &[Column]) -> Result<usize> {
        if let Some(at) = position(expr, columns.len())? {
            return Ok(at);
        }
        if let ast::Expr::Identifier(name) = expr
            && let Some(at) = columns.iter().position(|column| column.name.eq_ignore_ascii_case(&name.value))
        {
            return Ok(at);
        }
        match expr {
            ast::Expr::Identifier(name) => Err(error::BAD_FIELD.with(&[&name.value, &"order clause"])),
            expr => Err(SqlError::unsupported(format!("ORDER BY {expr} over UNION"))),
        }
    }

    fn set_expr(&mut self, body: &SetExpr) -> Result<Bound> {
        match body {
            SetExpr::Select(select) => self.select(select, &[], None, &[]),
            SetExpr::Query(query) => self.query(query),
            SetExpr::Values(values) => self.values_rows(values),
            SetExpr::SetOperation { .. } => self.set_operations(body),
            other => Err(SqlError::unsupported(other)),
        }
    }

    /// A chain that leans to the left, without recursion. UNIONs that follow each other become one node over all their inputs, and one DISTINCT serves all up to the last that asks for it.
    fn set_operations(&mut self, body: &SetExpr) -> Result<Bound> {
        let (mut links, mut first) = (Vec::new(), body);
        while let SetExpr::SetOperation { left, op, set_quantifier, right } = first {
            links.push((*op, matches!(set_quantifier, ast::SetQuantifier::All), &**right));
            first = left;
        }
        let mut run = vec![self.set_expr(first)?];
        let mut distinct = 0;
        for (op, all, right) in links.into_iter().rev() {
            let right = self.set_expr(right)?;
            if right.columns.len() != run[0].columns.len() {
                return Err(error::WRONG_NUMBER_OF_COLUMNS_IN_SELECT.bare());
            }
            match op {
                ast::SetOperator::Union => {
                    run.push(right);
                    if !all {
                        distinct = run.len();
                    }
                }
                ast::SetOperator::Intersect | ast::SetOperator::Except => {
                    let left = united(std::mem::take(&mut run), std::mem::take(&mut distinct))?;
                    self.rise(2)?;
                    run.push(self.set_operation(left, right, op, all)?);
                }
                op => return Err(SqlError::unsupported(op)),
            }
        }
        self.rise(2)?;
        united(run, distinct)
    }

    fn set_operation(&mut self, left: Bound, right: Bound, op: ast::SetOperator, all: bool) -> Result<Bound> {
        let mut sides = unify(vec![left, right])?;
        let columns = std::mem::take(&mut sides[0].columns);
        let types: Vec<Type> = columns.iter().map(|column| column.ty.clone()).collect();
        let keeps_common = op == ast::SetOperator::Intersect;
        let [left, right] = <[Bound; 2]>::try_from(sides).unwrap_or_else(|_| unreachable!("two sides"));
        let (left, right) = (left.node, right.node);
        let node = Arc::new(Node::SetOperation { left, right, types: types.clone(), keeps_common, all });
        let node = if all { node } else { Arc::new(Node::Distinct { input: node, types }) };
        Ok(Bound { node, columns, plain: None })
    }

    fn values_rows(&mut self, values: &ast::Values) -> Result<Bound> {
        self.open_scope();
        let mut rows: Vec<Vec<Expr>> = Vec::new();
        for row in &values.rows {
            rows.push(row.content.iter().map(|expr| self.expr(expr)).collect::<Result<_>>()?);
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

    fn common(&mut self, cte: &ast::Cte, recursive: bool) -> Result<()> {
        let name = cte.alias.name.value.clone();
        let id = self.new_id();
        let around = (std::mem::take(&mut self.height), std::mem::take(&mut self.weight));
        let reads = self.correlations.last().map_or(0, Vec::len);
        let bound = match &*cte.query.body {
            SetExpr::SetOperation { op: ast::SetOperator::Union, left, right, set_quantifier }
                if recursive && mentions(right, &name) =>
            {
                self.recursive(cte, id, left, right, matches!(set_quantifier, ast::SetQuantifier::All))?
            }
            _ => {
                let mut bound = self.query(&cte.query)?;
                rename(&mut bound.columns, &cte.alias)?;
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
        self.commons.push(Common { name, columns: bound.columns, node: bound.node, size });
        Ok(())
    }

    fn recursive(&mut self, cte: &ast::Cte, id: usize, first: &SetExpr, part: &SetExpr, all: bool) -> Result<Bound> {
        let mut source = self.set_expr(first)?;
        rename(&mut source.columns, &cte.alias)?;
        for column in &mut source.columns {
            column.ty.nullable = true;
        }
        let types: Vec<Type> = source.columns.iter().map(|column| column.ty.clone()).collect();
        self.commons.push(Common {
            name: cte.alias.name.value.clone(),
            columns: source.columns.clone(),
            node: Arc::new(Node::LastRound { id }),
            size: (1, 1),
        });
        let bound = self.set_expr(part);
        self.commons.pop();
        let bound = bound?;
        if bound.columns.len() != types.len() {
            return Err(error::WRONG_NUMBER_OF_COLUMNS_IN_SELECT.bare());
        }
        // The first part decides the types.
        let exprs = bound.columns.iter().zip(&types).enumerate();
        let exprs = exprs.map(|(at, (column, ty))| cast(Expr::Column(at, column.ty.clone()), ty)).collect();
        let part = Arc::new(Node::Project { input: bound.node, exprs });
        let recursion = Some(Recursion { part, distinct: !all, types });
        let node = Arc::new(Node::Common { id, source: source.node, recursion });
        Ok(Bound { node, columns: source.columns, plain: None })
    }

    pub fn limits(&mut self, clause: Option<&LimitClause>) -> Result<Limits> {
        let (limit, offset) = match clause {
            None => (None, None),
            Some(LimitClause::LimitOffset { limit, offset, .. }) => {
                (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => (Some(limit), Some(offset)),
        };
        self.open_scope();
        let bound =
            (|| Ok((limit.map(|expr| self.expr(expr)).transpose()?, offset.map(|expr| self.expr(expr)).transpose()?)))(
            );
        self.close_scope();
        bound
    }

    fn select(
        &mut self,
        select: &ast::Select,
        order: &[ast::OrderByExpr],
        limit: Option<&LimitClause>,
        locks: &[ast::LockClause],
    ) -> Result<Bound> {
        if select.into.is_some() {
            return Err(SqlError::unsupported("SELECT ... INTO"));
        }
        if select.qualify.is_some() {
            return Err(SqlError::parse("'QUALIFY' at line 1"));
        }
        let limits = self.limits(limit)?;
        self.open_scope();
        let bound = self.block(select, order, limits, locks);
        self.close_scope();
        bound
    }

    fn block(
        &mut self,
        select: &ast::Select,
        order: &[ast::OrderByExpr],
        limits: Limits,
        locks: &[ast::LockClause],
    ) -> Result<Bound> {
        let source = self.from(&select.from)?;
        let tables = self.scope().tables.len();
        self.rise(tables)?;
        self.lock(locks)?;
        let mut conditions = Vec::new();
        if let Some(selection) = &select.selection {
            self.scope().clause = "where clause";
            conjuncts(self.expr(selection)?, &mut conditions);
        }
        let items = self.items(&select.projection)?;
        let mut staged = self.staged_above(select, &items, order)?;
        if self.scope().summoned {
            self.start_over();
            staged = self.staged_above(select, &items, order)?;
        }
        let Staged { is_grouped, is_windowed, above } = staged;
        let Above { mut exprs, columns, mut having, mut sorts } = above;
        let distinct = matches!(select.distinct, Some(ast::Distinct::Distinct));

        let counts = counts_rows(select) && limits.0.is_some();
        if select.select_modifiers.as_ref().is_some_and(|modifiers| modifiers.straight_join) {
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
        // A limit over an order that an index gives ends early: then each row is asked for by itself.
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
        let (variables, values) = (around.variables, around.values);
        let wishes = Wishes { depth, order: &wants, limited: limits.0.is_some() && !counts, variables, values };
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
        let plain = calls.filter(|_| is_plain).and_then(|calls| Plain::of(&block, calls, &exprs));
        let is_sorted = sorts.is_empty() || (part.ordered && wants.len() == sorts.len());
        let mut node = part.node;
        let sight = Sight { tables: &block.tables, variables, values };
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
        if !is_sorted {
            for (expr, descending) in sorts {
                let ty = expr.ty();
                let at = exprs.iter().position(|known| same(known, &expr)).unwrap_or_else(|| {
                    exprs.push(expr);
                    exprs.len() - 1
                });
                keys.push(SortKey { at, ty, descending });
            }
        }
        let types = exprs[..width].iter().map(Expr::ty).collect();
        let is_wider = exprs.len() > width;
        node = projected(node, exprs);
        // Sorted by all that it shows, equal rows stand side by side.
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

    /// Goes up to the stage of groups, if there are any, and binds what stands there.
    fn staged_above(&mut self, select: &ast::Select, items: &[Item<'_>], order: &[ast::OrderByExpr]) -> Result<Staged> {
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

    /// A subquery has an aggregate of this block, which was bound as one that does not group: what stands above the joins is forgotten.
    fn start_over(&mut self) {
        let scope = self.scope();
        scope.aliases.clear();
        (scope.windowed, scope.above) = (None, false);
    }

    /// What stands above the joins and the grouping: the select list, HAVING, ORDER BY.
    fn above(&mut self, select: &ast::Select, items: &[Item<'_>], order: &[ast::OrderByExpr]) -> Result<Above> {
        self.scope().clause = "field list";
        let (exprs, columns) = self.select_list(items)?;
        let mut having = Vec::new();
        if let Some(condition) = &select.having {
            self.scope().clause = "having clause";
            conjuncts(self.without_windows(|bind| bind.expr(condition))?, &mut having);
        }
        let sorts = self.order(order, &exprs)?;
        Ok(Above { exprs, columns, having, sorts })
    }

    /// Makes room for window functions, if the block has any.
    fn windows(&mut self, select: &ast::Select, items: &[Item<'_>], order: &[ast::OrderByExpr]) -> Result<bool> {
        let has = items.iter().any(|item| matches!(item, Item::Expr(expr, _) if has_window(expr)))
            || order.iter().any(|item| has_window(&item.expr));
        if !has && select.named_window.is_empty() {
            return Ok(false);
        }
        self.open_windows(&select.named_window)?;
        Ok(has)
    }

    /// All aggregates are known now: the results of window functions lie behind theirs. What was bound is bound again.
    fn settle_windows(&mut self) {
        let scope = self.scope();
        scope.aliases.clear();
        if let (Some(grouped), Some(windowed)) = (&mut scope.grouped, &mut scope.windowed) {
            windowed.settle(grouped.keys.len() + grouped.calls.len());
            grouped.calls.clear();
            grouped.level = None;
        }
    }

    fn lock(&mut self, locks: &[ast::LockClause]) -> Result<()> {
        let (rights, mut exclusive) = (self.rights.clone(), 0);
        for clause in locks {
            let strength = match clause.lock_type {
                ast::LockType::Share => Strength::Shared,
                ast::LockType::Update => Strength::Exclusive,
            };
            let wait = match clause.nonblock {
                None => LockWait::Patient,
                Some(ast::NonBlock::Nowait) => LockWait::NoWait,
                Some(ast::NonBlock::SkipLocked) => LockWait::SkipLocked,
            };
            let of = clause.of.as_ref().map(name_of).transpose()?;
            for table in &mut self.scope().tables {
                let shown = table.within.as_ref().unwrap_or(&table.alias);
                let base = match &table.origin {
                    Origin::Base(base) => Some(base),
                    Origin::System(system) if keys::is_keys(system) => Some(keys::table()),
                    _ => None,
                };
                if let Some(base) = base
                    && of.as_ref().is_none_or(|of| of.name == *shown)
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
                SelectItem::UnnamedExpr(expr) => items.push(Item::Expr(expr, None)),
                SelectItem::ExprWithAlias { expr, alias } => items.push(Item::Expr(expr, Some(&alias.value))),
                SelectItem::Wildcard(options) => {
                    let first = items.len();
                    self.star(None, &mut items)?;
                    self.record_star(options.wildcard_token.0.span, &items[first..]);
                }
                SelectItem::QualifiedWildcard(ast::SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                    let first = items.len();
                    self.star(Some(name_of(name)?), &mut items)?;
                    let star = options.wildcard_token.0.span;
                    let start = ast::Spanned::span(&name.0[0]).start;
                    self.record_star(sqlparser::tokenizer::Span::new(start, star.end), &items[first..]);
                }
                other => return Err(SqlError::unsupported(other)),
            }
        }
        Ok(items)
    }

    fn star(&mut self, of: Option<crate::parse::statement::Name>, items: &mut Vec<Item<'_>>) -> Result<()> {
        let rights = self.rights.clone();
        let scope = self.scope();
        let before = items.len();
        let places = |table: &ScopeTable| table.offset..table.offset + table.columns.len();
        let all = || scope.tables.iter().filter(|table| table.within.is_none()).flat_map(places);
        let selected: Vec<usize> = match (&of, &scope.star) {
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
                // The error does not name the column to those who ask for all.
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

    /// Binds GROUP BY and goes up to the stage of groups, if there are any.
    fn group(&mut self, select: &ast::Select, items: &[Item<'_>], order: &[ast::OrderByExpr]) -> Result<bool> {
        let (list, modifiers) = match &select.group_by {
            GroupByExpr::Expressions(list, modifiers) => (&list[..], &modifiers[..]),
            GroupByExpr::All(_) => return Err(SqlError::unsupported("GROUP BY ALL")),
        };
        if modifiers.iter().any(|modifier| !matches!(modifier, ast::GroupByWithModifier::Rollup)) {
            return Err(SqlError::unsupported("GROUP BY modifiers other than WITH ROLLUP"));
        }
        let aggregates = self.scope().summoned || self.has_aggregates(select, items, order)?;
        if list.is_empty() && !aggregates {
            return Ok(false);
        }
        self.scope().clause = "group statement";
        let mut keys: Vec<Expr> = Vec::new();
        let mut named = Vec::new();
        for expr in list {
            let item = self.named_item(expr, items)?;
            let key = self.group_expr(expr, item.map(|at| &items[at]))?;
            if !modifiers.is_empty() {
                named.extend(item.map(|at| (at, keys.len())));
            }
            if !keys.iter().any(|known| same(known, &key)) || !modifiers.is_empty() {
                keys.push(key);
            }
        }
        if !modifiers.is_empty() {
            // A key that is rolled up is NULL.
            for key in &mut keys {
                match key {
                    Expr::Column(_, ty) | Expr::Literal(_, ty) | Expr::Hosted(_, ty) => ty.nullable = true,
                    _ => {}
                }
            }
        }
        let lenient = !self.has_mode(SqlMode::ONLY_FULL_GROUP_BY);
        let primary_covered = self.covered(&keys);
        let (rollup, level) = (!modifiers.is_empty(), None);
        self.scope().grouped =
            Some(Grouped { keys, calls: Vec::new(), lenient, primary_covered, rollup, items: named, level });
        Ok(true)
    }

    /// Has the block aggregates, outside of subqueries?
    fn has_aggregates(&mut self, select: &ast::Select, items: &[Item<'_>], order: &[ast::OrderByExpr]) -> Result<bool> {
        let items = items.iter().filter_map(|item| if let Item::Expr(expr, _) = item { Some(*expr) } else { None });
        let mut nodes: Vec<&ast::Expr> =
            items.chain(&select.having).chain(order.iter().map(|item| &item.expr)).collect();
        for ast::NamedWindowDefinition(_, window) in &select.named_window {
            if let ast::NamedWindowExpr::WindowSpec(spec) = window {
                nodes.extend(window_exprs(spec));
            }
        }
        for node in nodes {
            if self.has_own_aggregate(node)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The item of the select list that an expression of GROUP BY names, by number or alias.
    fn named_item(&mut self, expr: &ast::Expr, items: &[Item<'_>]) -> Result<Option<usize>> {
        if let Some(at) =
            position(expr, items.len()).map_err(|_| error::BAD_FIELD.with(&[&expr, &"group statement"]))?
        {
            return Ok(Some(at));
        }
        if let ast::Expr::Identifier(name) = expr
            && self.scope().find(None, None, &name.value)?.is_none()
        {
            return Ok(items.iter().position(
                |item| matches!(item, Item::Expr(_, Some(alias)) if alias.eq_ignore_ascii_case(&name.value)),
            ));
        }
        Ok(None)
    }

    fn group_expr(&mut self, expr: &ast::Expr, item: Option<&Item<'_>>) -> Result<Expr> {
        match item {
            Some(Item::Place(place)) => {
                let depth = self.scopes.len() - 1;
                self.place(depth, *place)
            }
            Some(Item::Expr(expr, _)) if has_aggregate(expr) || has_window(expr) => {
                Err(error::WRONG_GROUP_FIELD.with(&[expr]))
            }
            Some(Item::Expr(expr, _)) => self.expr(expr),
            None => self.expr(expr),
        }
    }

    /// Columns of tables whose whole primary key is among the keys: one row for each group.
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
        for (at, item) in items.iter().enumerate() {
            self.item = at + 1;
            let depth = self.scopes.len() - 1;
            let rolled = self.scope().grouped.as_ref().and_then(|grouped| grouped.rolled_item(at));
            let (expr, name, place) = match item {
                Item::Expr(node, alias) if rolled.is_some() => {
                    let place = self.place_of(node);
                    let name = alias.map_or_else(|| shortened(item_name(node, self.around.names, at)), str::to_owned);
                    (rolled.unwrap_or_else(Expr::null), Some(name), place)
                }
                Item::Place(place) => (self.place(depth, *place)?, None, Some(*place)),
                Item::Expr(node, alias) => {
                    let place = self.place_of(node);
                    let name = alias.map_or_else(|| shortened(item_name(node, self.around.names, at)), str::to_owned);
                    (self.expr(node)?, Some(name), place)
                }
            };
            let is_system = place
                .and_then(|place| self.scope().table_at(place))
                .is_some_and(|table| matches!(table.origin, Origin::System(_)));
            let is_named = matches!(item, Item::Expr(_, Some(_)));
            // The columns of system tables have their own names, however they are written.
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
            Item::Expr(node, _) => self.place_of(node),
        }
    }

    /// If the item is a column of this block: its place.
    fn place_of(&mut self, node: &ast::Expr) -> Option<usize> {
        let scope = self.scope();
        match node {
            ast::Expr::Identifier(name) => scope.find(None, None, &name.value).ok().flatten(),
            ast::Expr::CompoundIdentifier(parts) => match &parts[..] {
                [table, name] => scope.find(None, Some(&table.value), &name.value).ok().flatten(),
                [schema, table, name] => {
                    scope.find(Some(&schema.value), Some(&table.value), &name.value).ok().flatten()
                }
                _ => None,
            },
            _ => None,
        }
    }

    pub fn order(&mut self, order: &[ast::OrderByExpr], exprs: &[Expr]) -> Result<Vec<(Expr, bool)>> {
        let mut sorts = Vec::new();
        self.scope().clause = "order clause";
        for (at, item) in order.iter().enumerate() {
            self.item = at + 1;
            let expr = match position(&item.expr, exprs.len())? {
                Some(at) => exprs[at].clone(),
                None => self.expr(&item.expr)?,
            };
            if !matches!(expr, Expr::Literal(..)) {
                sorts.push((expr, descends(&item.options)));
            }
        }
        Ok(sorts)
    }
}

/// A number in ORDER BY or GROUP BY: an item of the select list.
fn position(expr: &ast::Expr, count: usize) -> Result<Option<usize>> {
    let ast::Expr::Value(ast::ValueWithSpan { value: ast::Value::Number(number, _), .. }) = expr else {
        return Ok(None);
    };
    match number.parse::<usize>() {
        Ok(at) if (1..=count).contains(&at) => Ok(Some(at - 1)),
        Ok(_) => Err(error::BAD_FIELD.with(&[number, &"order clause"])),
        Err(_) => Ok(None),
    }
}

/// A name that is made of an expression has at most so many letters.
fn shortened(name: String) -> String {
    const NAME_MAX: usize = 256;
    match name.char_indices().nth(NAME_MAX) {
        Some((end, _)) => name[..end].to_owned(),
        None => name,
    }
}

/// What an unnamed column is called: as the text has it.
fn item_name(node: &ast::Expr, names: &[String], at: usize) -> String {
    match node {
        ast::Expr::Identifier(name) => name.value.clone(),
        ast::Expr::CompoundIdentifier(parts) => {
            let is_variable = parts[0].value.starts_with('@');
            let names: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
            if is_variable { names.join(".") } else { names.last().map_or(String::new(), |name| (*name).to_owned()) }
        }
        ast::Expr::Value(value) => match &value.value {
            ast::Value::SingleQuotedString(text)
            | ast::Value::DoubleQuotedString(text)
            | ast::Value::NationalStringLiteral(text) => text.clone(),
            ast::Value::Boolean(truth) => truth.to_string().to_uppercase(),
            // Behind the mark stands its number, for us.
            ast::Value::Placeholder(_) => "?".to_owned(),
            value => names.get(at).filter(|name| is_notation(name)).cloned().unwrap_or_else(|| value.to_string()),
        },
        node => {
            let drawn = node.to_string();
            let bare = bare_text(&drawn);
            let found = names.iter().find(|name| bare_text(name) == bare);
            // What was read as something else is found by its place.
            let found = found.or_else(|| names.get(at).filter(|name| is_notation(name)));
            found.cloned().unwrap_or(drawn)
        }
    }
}

/// Does it begin as what is read as something else than is written, and so drawn in another way?
fn is_notation(text: &str) -> bool {
    let starts = ["!", "x'", "b'", "0x", "0b", "binary "];
    if starts.iter().any(|start| text.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start))) {
        return true;
    }
    let word = text.find('(').map_or("", |end| text[..end].trim_end());
    ["cast", "char", "extract", "trim"].iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// Without what two ways of writing the same expression differ in.
fn bare_text(text: &str) -> String {
    let mut bare = String::with_capacity(text.len());
    let mut after_mark = false;
    for letter in text.chars() {
        if after_mark && letter.is_ascii_digit() {
            continue;
        }
        after_mark = letter == '?';
        if !letter.is_whitespace() && !matches!(letter, '(' | ')' | '`' | '"' | '\'') {
            bare.extend(letter.to_lowercase());
        }
    }
    bare
}

/// The order to ask of a table: of columns only.
fn wanted_order(scope: &Scope, sorts: &[(Expr, bool)], is_above: bool) -> Vec<SortKey> {
    let keys = if is_above { Vec::new() } else { order_by_formulas(scope, sorts) };
    if keys.len() == sorts.len() { keys } else { Vec::new() }
}

/// The expressions over the node's rows. A scan gives columns alone by itself.
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

/// About how many groups so many rows have.
pub fn group_count(rows: f64, grouped: &Grouped, sight: Sight<'_>) -> f64 {
    let known: Option<f64> = grouped.keys.iter().map(|key| sight.distinct(key)).product();
    known.map_or(rows / 10.0, |known| known.min(rows)).max(1.0)
}

/// The groups of these rows, about so many.
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

/// The select list of a query, where nothing between it and the rows holds them.
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

/// SQL_CALC_FOUND_ROWS
fn counts_rows(select: &ast::Select) -> bool {
    select.select_modifiers.as_ref().is_some_and(|modifiers| modifiers.sql_calc_found_rows)
}

/// The SELECT that a set operation begins with.
fn first_select(mut body: &SetExpr) -> Option<&ast::Select> {
    while let SetExpr::SetOperation { left, .. } = body {
        body = left;
    }
    match body {
        SetExpr::Select(select) => Some(select),
        _ => None,
    }
}

fn cast(expr: Expr, ty: &Type) -> Expr {
    let own = expr.ty();
    let is_same =
        own.kind == ty.kind && own.unsigned == ty.unsigned && own.scale == ty.scale && own.members == ty.members;
    if is_same || own.kind == crate::types::Kind::Null {
        return expr;
    }
    // Bits are the digits of their number beside other kinds.
    let expr = match own.kind == crate::types::Kind::Bit && ty.is_string() {
        true => Expr::Cast(Box::new(expr), Type::unsigned().with_nullable(own.nullable)),
        false => expr,
    };
    Expr::Cast(Box::new(expr), ty.clone())
}

/// UNION of them all, of which the first `distinct` give no row twice.
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

/// All with the columns of the first and types that hold those of all.
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
        if exprs.iter().any(|expr| matches!(expr, Expr::Cast(..))) {
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

/// Does the query name that table?
fn mentions(mut body: &SetExpr, name: &str) -> bool {
    let factor = |factor: &ast::TableFactor| matches!(factor, ast::TableFactor::Table { name: found, .. } if found.0.len() == 1 && found.to_string().trim_matches('`').eq_ignore_ascii_case(name));
    while let SetExpr::SetOperation { left, right, .. } = body {
        if mentions(right, name) {
            return true;
        }
        body = left;
    }
    match body {
        SetExpr::Select(select) => select
            .from
            .iter()
            .any(|item| factor(&item.relation) || item.joins.iter().any(|join| factor(&join.relation))),
        SetExpr::Query(query) => mentions(&query.body, name),
        _ => false,
    }
}
