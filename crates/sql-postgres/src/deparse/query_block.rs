//! Queries.

use syntax::postgres::tree::{
    self, CommonTableExpr, CycleClause, Distinct, ExprKind, GroupItem, Ident, Indirection, LockStrength, LockWait,
    SearchClause, SelectBody, SelectStmt, SetOp, Statement,
};

use crate::bind::output_name::name_of_expr;
use crate::bind::recursion::ordered;
use crate::bind::typing::unsupported;
use crate::deparse::analyse::Analyser;
use crate::deparse::function::target_named;
use crate::deparse::node::{
    CycleText, FromSource, Group, Query, QueryBody, Select, SortItem, SqlForm, SqlNode, Table, Ty, With,
};
use crate::deparse::scope::DeparseScope;
use crate::deparse::text;
use crate::error::Result;
use crate::types::oid;

impl Analyser<'_, '_> {
    /// Calls `act` for a query of FROM, which sees nothing of the tables beside it.
    pub fn apart<T>(&mut self, act: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        // The query's own scope is opened within.
        self.hides_next = true;
        act(self)
    }

    pub fn query(&mut self, tree: &SelectStmt) -> Result<Query> {
        let hides_outer = std::mem::take(&mut self.hides_next);
        self.scopes.push(DeparseScope { hides_outer, ..DeparseScope::default() });
        let before = self.commons.len();
        let query = self.open_query(tree);
        self.commons.truncate(before);
        let tables = self.scopes.pop().map(|scope| scope.tables).unwrap_or_default();
        Ok(Query { tables, ..query? })
    }

    fn open_query(&mut self, tree: &SelectStmt) -> Result<Query> {
        let mut query = Query::default();
        if let Some(with) = &tree.with {
            query.is_recursive = with.recursive;
            let ordered = match with.recursive {
                true => ordered(&with.tables).map_err(|refusal| refusal.0)?,
                false => with.tables.iter().map(|common| (common, false)).collect(),
            };
            for (common, is_recursive) in ordered {
                let common = self.common_table(common, is_recursive)?;
                self.commons.push(common.clone());
                query.with.push(common);
            }
        }
        let (mut body, mut targets) = self.body(&tree.body)?;
        if let QueryBody::Select(select) = &mut body {
            for (target, (_, named)) in select.targets.iter_mut().zip(&mut targets) {
                *named = self.settled(named.clone())?;
                *target = named.clone();
            }
        }
        let is_set = matches!(body, QueryBody::Set { .. });
        query.order_by = match is_set {
            true => self.set_sorts(&tree.order_by, &targets)?,
            false => self.sorts(&tree.order_by, Some(&targets))?,
        };
        query.columns = targets.into_iter().map(|(name, node)| (name, node.ty())).collect();
        query.body = body;
        if let Some(limit) = &tree.limit {
            query.limit = limit.count.as_ref().map(|count| self.count(count)).transpose()?;
            query.offset = limit.offset.as_ref().map(|offset| self.count(offset)).transpose()?;
            query.with_ties = limit.with_ties;
        }
        for clause in &tree.locking {
            let strength = match clause.strength {
                LockStrength::KeyShare => "KEY SHARE",
                LockStrength::Share => "SHARE",
                LockStrength::NoKeyUpdate => "NO KEY UPDATE",
                LockStrength::Update => "UPDATE",
            };
            let wait = match clause.wait {
                LockWait::Wait => "",
                LockWait::NoWait => " NOWAIT",
                LockWait::SkipLocked => " SKIP LOCKED",
            };
            let is_locked = |table: &Table| {
                matches!(table.source, FromSource::Relation { .. })
                    && (clause.of.is_empty() || clause.of.iter().any(|name| name.name == table.alias))
            };
            let tables = self.scope().tables.iter().enumerate().filter(|(_, table)| is_locked(table));
            let tables = tables.map(|(at, _)| at).collect();
            query.locking.push((strength, tables, wait));
        }
        Ok(query)
    }

    fn count(&mut self, tree: &tree::Expr) -> Result<SqlNode> {
        let node = self.expr(tree)?;
        self.coerce(node, oid::INT8, SqlForm::Implicit)
    }

    fn common_table(&mut self, common: &CommonTableExpr, is_recursive: bool) -> Result<With> {
        let Statement::Select(tree) = &common.statement else {
            return Err(unsupported("a change in WITH of a definition"));
        };
        let names: Vec<String> = common.columns.iter().map(|name| name.value.clone()).collect();
        let named = |query: &mut Query| {
            query.columns.iter_mut().zip(&names).for_each(|((name, _), given)| name.clone_from(given));
        };
        let before = self.commons.len();
        if is_recursive && let SelectBody::SetOperations { first, .. } = &tree.body {
            // Its first part gives the columns that the rest reads.
            let first = SelectStmt {
                with: None,
                body: (**first).clone(),
                order_by: Vec::new(),
                limit: None,
                locking: Vec::new(),
                span: tree.span,
            };
            let mut query = self.query(&first)?;
            named(&mut query);
            self.commons.push(With { name: common.name.value.clone(), query, ..With::default() });
        }
        let query = self.query(tree);
        self.commons.truncate(before);
        let query = query?;
        // The names of the query itself stay: those of the list are printed before it.
        let mut shown = query.clone();
        named(&mut shown);
        let (name, materialized) = (common.name.value.clone(), common.materialized);
        let with = With { name, columns: names, materialized, query: shown, ..With::default() };
        self.search_and_cycle(with, common)
    }

    /// Adds SEARCH and CYCLE.
    fn search_and_cycle(&mut self, mut with: With, common: &CommonTableExpr) -> Result<With> {
        let list = |columns: &[Ident]| text::names(columns.iter().map(|column| &column.value));
        if let Some(search) = &common.search {
            let SearchClause { breadth_first, columns, sequence, at: _ } = &**search;
            let (order, ty) = if *breadth_first { ("BREADTH", oid::RECORD) } else { ("DEPTH", oid::RECORD_ARRAY) };
            with.search = format!(" SEARCH {order} FIRST BY {} SET {}", list(columns), text::name(&sequence.value));
            with.added.push((sequence.value.clone(), (ty, -1)));
        }
        if let Some(cycle) = &common.cycle {
            let CycleClause { columns, mark, value, otherwise, path, at: _ } = &**cycle;
            let (mut constants, ty) = self.in_common(&[value.clone(), otherwise.clone()])?;
            let is_truth = |node: &SqlNode, truth: &str| matches!(node, SqlNode::Const { text: Some(text), ty: (oid::BOOL, _) } if text == truth);
            let are_plain = is_truth(&constants[0], "t") && is_truth(&constants[1], "f");
            let otherwise = constants.pop().filter(|_| !are_plain);
            with.cycle = Some(CycleText {
                head: format!(" CYCLE {} SET {}", list(columns), text::name(&mark.value)),
                marks: constants.pop().zip(otherwise),
                tail: format!(" USING {}", text::name(&path.value)),
            });
            with.added.push((mark.value.clone(), ty));
            with.added.push((path.value.clone(), (oid::RECORD_ARRAY, -1)));
        }
        Ok(with)
    }

    /// Returns a body and its targets by name.
    fn body(&mut self, body: &SelectBody) -> Result<(QueryBody, Vec<(String, SqlNode)>)> {
        match body {
            SelectBody::Select(select) => self.select(select),
            SelectBody::Values(rows) => self.values(rows),
            SelectBody::Nested(query) => {
                let query = self.query(query)?;
                let targets = targets_of(&query);
                Ok((QueryBody::Leaf(Box::new(query)), targets))
            }
            SelectBody::SetOperations { first, links } => {
                let (mut left, mut targets) = self.operand(first)?;
                for link in links {
                    let (mut right, others) = self.operand(&link.operand)?;
                    let mut types = Vec::new();
                    for ((_, left), (_, right)) in targets.iter().zip(&others) {
                        let both = [left.clone(), right.clone()];
                        let ty = self.common(&both)?;
                        let is_same = left.ty() == right.ty();
                        types.push((ty, if is_same { left.ty().1 } else { -1 }));
                    }
                    self.settle_leaf(&mut left, &types)?;
                    self.settle_leaf(&mut right, &types)?;
                    let names = targets.into_iter().map(|(name, _)| name);
                    targets =
                        names.zip(types.iter().map(|ty| SqlNode::SqlValue { text: String::new(), ty: *ty })).collect();
                    let op = match link.op {
                        SetOp::Union => "UNION",
                        SetOp::Except => "EXCEPT",
                        SetOp::Intersect => "INTERSECT",
                    };
                    left = QueryBody::Set { op, all: link.all, left: Box::new(left), right: Box::new(right) };
                }
                Ok((left, targets))
            }
        }
    }

    /// Returns an operand of a set operation: a query of its own.
    fn operand(&mut self, body: &SelectBody) -> Result<(QueryBody, Vec<(String, SqlNode)>)> {
        if matches!(body, SelectBody::SetOperations { .. }) {
            return self.body(body);
        }
        if let SelectBody::Nested(query) = body
            && query.with.is_none()
            && query.order_by.is_empty()
            && query.limit.is_none()
            && query.locking.is_empty()
        {
            return self.operand(&query.body);
        }
        self.scopes.push(DeparseScope::default());
        let found = match body {
            SelectBody::Select(select) => self.select(select),
            SelectBody::Values(rows) => self.values(rows),
            SelectBody::Nested(query) => {
                self.scopes.pop();
                let query = self.query(query)?;
                let targets = targets_of(&query);
                return Ok((QueryBody::Leaf(Box::new(query)), targets));
            }
            SelectBody::SetOperations { .. } => self.body(body),
        };
        let tables = self.scopes.pop().map(|scope| scope.tables).unwrap_or_default();
        let (body, targets) = found?;
        let columns = targets.iter().map(|(name, node)| (name.clone(), node.ty())).collect();
        Ok((QueryBody::Leaf(Box::new(Query { tables, body, columns, ..Query::default() })), targets))
    }

    /// Gives constants of unknown type in a leaf the types of the set operation.
    fn settle_leaf(&mut self, body: &mut QueryBody, types: &[Ty]) -> Result<()> {
        match body {
            QueryBody::Leaf(query) => {
                if let QueryBody::Select(select) = &mut query.body {
                    for (target, ty) in select.targets.iter_mut().zip(types) {
                        if target.is_unknown_const() {
                            *target = self.coerce(target.clone(), ty.0, SqlForm::Implicit)?;
                        }
                    }
                }
                query
                    .columns
                    .iter_mut()
                    .zip(types)
                    .for_each(|((_, of), ty)| of.0 = if of.0 == oid::UNKNOWN { ty.0 } else { of.0 });
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn set_sorts(&mut self, sorts: &[tree::SortBy], targets: &[(String, SqlNode)]) -> Result<Vec<SortItem>> {
        if sorts.iter().any(|sort| target_named(&sort.expr, targets).is_none()) {
            return Err(unsupported("ORDER BY of a set operation in a definition"));
        }
        self.sorts(sorts, Some(targets))
    }

    fn values(&mut self, rows: &[Vec<tree::Expr>]) -> Result<(QueryBody, Vec<(String, SqlNode)>)> {
        let mut all: Vec<Vec<SqlNode>> = Vec::new();
        for row in rows {
            all.push(self.exprs(row)?);
        }
        let width = all.first().map_or(0, Vec::len);
        let mut targets = Vec::new();
        for at in 0..width {
            let column: Vec<SqlNode> = all.iter().map(|row| row[at].clone()).collect();
            let ty = self.common(&column)?;
            let typmod = column[0].ty().1;
            let is_same = column.iter().all(|node| node.ty() == (ty, typmod));
            for row in &mut all {
                let node = row[at].clone();
                row[at] = self.coerce(node, ty, SqlForm::Implicit)?;
            }
            let ty = (ty, if is_same { typmod } else { -1 });
            targets.push((format!("column{}", at + 1), SqlNode::SqlValue { text: String::new(), ty }));
        }
        Ok((QueryBody::Values(all), targets))
    }

    fn select(&mut self, tree: &tree::Select) -> Result<(QueryBody, Vec<(String, SqlNode)>)> {
        let from = self.from(&tree.from)?;
        let mut targets: Vec<(String, SqlNode)> = Vec::new();
        for target in &tree.targets {
            if let ExprKind::Column(name) = &target.expr.kind
                && name.star
            {
                targets.extend(self.star(&name.fields)?);
                continue;
            }
            if let ExprKind::Indirection { operand, links } = &target.expr.kind
                && let [links @ .., Indirection::Star] = &links[..]
            {
                let operand = self.expr(operand)?;
                let row = self.indirection(operand, links)?;
                targets.extend(self.all_fields(&row)?);
                continue;
            }
            let node = self.expr(&target.expr)?;
            let name = match &target.alias {
                Some(alias) => alias.value.clone(),
                None => name_of_expr(&target.expr),
            };
            targets.push((name, node));
        }
        let selection = tree.selection.as_ref().map(|selection| self.condition(selection)).transpose()?;
        let mut group_by = Vec::new();
        for item in &tree.group_by {
            group_by.push(self.group(item, &targets)?);
        }
        let having = tree.having.as_ref().map(|having| self.condition(having)).transpose()?;
        let mut windows = Vec::new();
        for named in &tree.windows {
            windows.push((named.name.value.clone(), self.window(&named.window)?));
        }
        let distinct = match &tree.distinct {
            None => None,
            Some(Distinct::Rows) => Some(Vec::new()),
            Some(Distinct::On(keys)) => {
                let mut all = Vec::new();
                for key in keys {
                    all.push(self.key(key, &targets)?);
                }
                Some(all)
            }
        };
        let select = Select {
            distinct,
            targets: targets.iter().map(|(_, node)| node.clone()).collect(),
            from,
            selection,
            group_by,
            group_distinct: tree.group_distinct,
            having,
            windows,
        };
        Ok((QueryBody::Select(Box::new(select)), targets))
    }

    /// Returns the columns that a star means.
    fn star(&mut self, fields: &[String]) -> Result<Vec<(String, SqlNode)>> {
        let table = fields.last();
        let names = &self.scope().names;
        let meant = names.iter().filter(|named| match table {
            None => named.are_columns_visible,
            Some(table) => named.alias == *table,
        });
        Ok(meant.flat_map(|named| named.columns.clone()).collect())
    }

    /// Returns a key of DISTINCT ON: a target by number or name, or an expression.
    fn key(&mut self, tree: &tree::Expr, targets: &[(String, SqlNode)]) -> Result<SqlNode> {
        match target_named(tree, targets) {
            Some(target) => Ok(targets[target - 1].1.clone()),
            None => self.expr(tree),
        }
    }

    fn group(&mut self, item: &GroupItem, targets: &[(String, SqlNode)]) -> Result<Group> {
        let mut list = |word, keys: &[tree::Expr]| -> Result<Group> {
            let mut all = Vec::new();
            for key in keys {
                all.push(Group::Key(self.group_key(key, targets)?));
            }
            Ok(Group::List(word, all))
        };
        match item {
            GroupItem::Expr(key) => self.group_key(key, targets).map(Group::Key),
            GroupItem::Empty(_) => Ok(Group::Empty),
            GroupItem::Rollup(keys, _) => list("ROLLUP", keys),
            GroupItem::Cube(keys, _) => list("CUBE", keys),
            GroupItem::GroupingSets(items, _) => {
                let mut all = Vec::new();
                for item in items {
                    all.push(self.group(item, targets)?);
                }
                Ok(Group::List("GROUPING SETS", all))
            }
        }
    }

    /// A name is first one of FROM's columns, then a target's.
    fn group_key(&mut self, tree: &tree::Expr, targets: &[(String, SqlNode)]) -> Result<SqlNode> {
        if matches!(tree.kind, ExprKind::Const(_))
            && let Some(target) = target_named(tree, targets)
        {
            return Ok(targets[target - 1].1.clone());
        }
        match self.expr(tree) {
            Ok(node) => Ok(node),
            Err(error) => match target_named(tree, targets) {
                Some(target) => Ok(targets[target - 1].1.clone()),
                None => Err(error),
            },
        }
    }
}

/// Returns the output columns of a query as targets of one around it.
fn targets_of(query: &Query) -> Vec<(String, SqlNode)> {
    let targets =
        query.columns.iter().map(|(name, ty)| (name.clone(), SqlNode::SqlValue { text: String::new(), ty: *ty }));
    targets.collect()
}
