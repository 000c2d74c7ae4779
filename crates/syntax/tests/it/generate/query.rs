//! Queries.

use super::{Random, made};
use syntax::tree::*;

impl Random {
    /// A query of at most this height, without INTO.
    pub fn query(&mut self, height: usize) -> Query {
        let h = height.saturating_sub(1);
        let with = if height > 0 && self.once_in(8) { Some(self.with(h)) } else { None };
        let is_short = height == 0 || self.once_in(3);
        let body = match self.below(4) {
            0 if !is_short && self.flag() => self.unions(h),
            0 if !is_short => self.intersections(h),
            1 if !is_short => QueryBody::Query(Box::new(self.query(h))),
            _ => self.block(h),
        };
        let order_by = if self.once_in(3) { self.order_by(h) } else { Vec::new() };
        let mut limit = if self.once_in(4) { Some(self.limit()) } else { None };
        let locks = if self.once_in(6) { self.list(1, 2, Random::locking) } else { Vec::new() };
        // A query in parentheses with nothing behind them is the query itself.
        let is_bare = with.is_none() && order_by.is_empty() && limit.is_none() && locks.is_empty();
        if is_bare && matches!(body, QueryBody::Query(_)) {
            limit = Some(self.limit());
        }
        Query { with, body, order_by, limit, locks, into: None, span: Span::default() }
    }

    fn with(&mut self, height: usize) -> With {
        let recursive = self.flag();
        let tables = self.list(1, 2, |random| {
            let (name, columns) = (random.ident(), random.some_idents());
            CommonTable { name, columns, query: Box::new(random.query(height)) }
        });
        With { recursive, tables }
    }

    pub fn some_with(&mut self, height: usize) -> Option<With> {
        if height > 0 && self.once_in(4) { Some(self.with(height - 1)) } else { None }
    }

    pub fn limit(&mut self) -> Limit {
        let (first, second) = (self.limit_value(), self.once_in(2).then(|| self.limit_value()));
        // `LIMIT first OFFSET second` or `LIMIT first,second`
        match second {
            Some(second) if self.flag() => Limit { count: second, offset: Some(first) },
            offset => Limit { count: first, offset },
        }
    }

    pub fn limit_value(&mut self) -> Expr {
        if self.flag() { self.parameter() } else { made(ExprKind::Literal(Literal::Integer(self.number()))) }
    }

    fn locking(&mut self) -> Locking {
        let of = if self.flag() { self.names() } else { Vec::new() };
        let wait = self.pick(&[LockingWait::Wait, LockingWait::NoWait, LockingWait::SkipLocked]);
        Locking { update: self.flag(), of, wait }
    }

    /// UNION and EXCEPT; INTERSECT among their operands needs no parentheses.
    fn unions(&mut self, height: usize) -> QueryBody {
        let operand = |random: &mut Random| match height.checked_sub(1) {
            Some(h) if random.once_in(4) => random.intersections(h),
            _ => random.operand(height),
        };
        let first = Box::new(operand(self));
        let links = self.list(1, 3, |random| SetLink {
            op: random.pick(&[SetOp::Union, SetOp::Except]),
            all: random.flag(),
            operand: operand(random),
        });
        QueryBody::SetOperations { first, links }
    }

    fn intersections(&mut self, height: usize) -> QueryBody {
        let first = Box::new(self.operand(height));
        let links = self.list(1, 3, |random| SetLink {
            op: SetOp::Intersect,
            all: random.flag(),
            operand: random.operand(height),
        });
        QueryBody::SetOperations { first, links }
    }

    fn operand(&mut self, height: usize) -> QueryBody {
        match height.checked_sub(1) {
            Some(h) if self.once_in(4) => QueryBody::Query(Box::new(self.query(h))),
            _ => self.block(height),
        }
    }

    fn block(&mut self, height: usize) -> QueryBody {
        match self.below(8) {
            0 => {
                let width = 1 + self.below(2);
                QueryBody::Values(self.list(1, 3, |random| random.exprs(width, width, height)))
            }
            1 => {
                let (name, span) = (self.name(), Span::default());
                let table = TableName { name, partitions: Vec::new(), alias: None, hints: Vec::new(), span };
                QueryBody::Table(Box::new(table))
            }
            _ => QueryBody::Select(Box::new(self.select(height))),
        }
    }

    pub fn hints(&mut self) -> Vec<String> {
        if self.once_in(6) { self.list(1, 2, |random| random.word(&["MAX_EXECUTION_TIME(1)", ""])) } else { Vec::new() }
    }

    fn select(&mut self, h: usize) -> Select {
        let hints = self.hints();
        let items = self.select_items(h);
        let from = if self.once_in(4) { Vec::new() } else { self.tables(h) };
        let selection = self.option(|random| random.expr(h));
        let group_by = if self.once_in(4) { self.exprs(1, 2, h) } else { Vec::new() };
        let rollup = !group_by.is_empty() && self.flag();
        let having = self.option(|random| random.expr(h));
        let windows = if self.once_in(5) {
            self.list(1, 2, |random| NamedWindow { name: random.ident(), window: random.window(h) })
        } else {
            Vec::new()
        };
        let (distinct, straight_join, calc_found_rows) = (self.once_in(4), self.once_in(8), self.once_in(8));
        Select {
            hints,
            distinct,
            straight_join,
            calc_found_rows,
            items,
            from,
            selection,
            group_by,
            rollup,
            having,
            windows,
        }
    }

    pub fn select_items(&mut self, height: usize) -> Vec<SelectItem> {
        let mut items = self.list(1, 3, |random| {
            if random.once_in(6) {
                return SelectItem::AllOf(random.name(), Span::default());
            }
            let expr = random.expr(height);
            SelectItem::Expr(SelectExpr { expr, alias: random.option(Random::name_text), text: String::new() })
        });
        // The star can only be first.
        if self.once_in(5) {
            items.insert(0, SelectItem::All(Span::default()));
        }
        items
    }

    pub fn tables(&mut self, height: usize) -> Vec<Joined> {
        self.list(1, 2, |random| random.joined(height))
    }

    pub fn joined(&mut self, height: usize) -> Joined {
        let first = self.table(height);
        Joined { first, joins: self.list(0, 3, |random| random.join(height)) }
    }

    fn join(&mut self, height: usize) -> Join {
        let kind = self.pick(&[JoinKind::Inner, JoinKind::Straight, JoinKind::Left, JoinKind::Right]);
        let table = self.table(height);
        let constraint = match self.below(4) {
            0 if matches!(kind, JoinKind::Inner | JoinKind::Straight) => JoinConstraint::None,
            1 if kind != JoinKind::Straight => JoinConstraint::Natural,
            2 => JoinConstraint::Using(self.idents()),
            _ => JoinConstraint::On(self.expr(height)),
        };
        Join { kind, table, constraint }
    }

    pub fn table_name(&mut self) -> TableName {
        let (name, partitions) = (self.name(), if self.once_in(6) { self.idents() } else { Vec::new() });
        let alias = self.option(Random::ident);
        let hints = if self.once_in(6) { self.list(1, 2, Random::index_hint) } else { Vec::new() };
        TableName { name, partitions, alias, hints, span: Span::default() }
    }

    fn index_hint(&mut self) -> IndexHint {
        let action = self.pick(&[HintAction::Use, HintAction::Ignore, HintAction::Force]);
        let scope = self.pick(&[None, Some(HintScope::Join), Some(HintScope::OrderBy), Some(HintScope::GroupBy)]);
        let is_empty = action == HintAction::Use && self.once_in(3);
        let mut indexes = if is_empty { Vec::new() } else { self.idents() };
        if self.flag() && !is_empty {
            indexes.push(Ident::new("PRIMARY"));
        }
        IndexHint { action, scope, indexes }
    }

    fn table(&mut self, height: usize) -> TableRef {
        let Some(h) = height.checked_sub(1) else { return TableRef::Table(Box::new(self.table_name())) };
        match self.below(8) {
            0 | 1 => {
                let (lateral, query) = (self.once_in(4), Box::new(self.query(h)));
                let (alias, columns) = (Some(self.ident()), self.some_idents());
                TableRef::Derived(Box::new(Derived { lateral, query, alias, columns }))
            }
            2 => TableRef::Nested(self.tables(h)),
            3 => {
                let (document, path) = (self.expr(h), self.text());
                let columns = self.list(1, 3, |random| random.json_column(2));
                TableRef::JsonTable(Box::new(JsonTable { document, path, columns, alias: Some(self.ident()) }))
            }
            _ => TableRef::Table(Box::new(self.table_name())),
        }
    }

    fn json_column(&mut self, height: usize) -> JsonColumn {
        match self.below(4) {
            0 => JsonColumn::Ordinality(self.ident()),
            1 if height > 0 => {
                let path = self.text();
                JsonColumn::Nested { path, columns: self.list(1, 2, |random| random.json_column(height - 1)) }
            }
            _ => {
                let (name, ty, exists, path) = (self.ident(), self.column_type(), self.once_in(3), self.text());
                let (mut on_empty, mut on_error) = (None, None);
                if !exists {
                    (on_empty, on_error) = (self.on_missing(), self.on_missing());
                }
                JsonColumn::Value(Box::new(JsonValueColumn { name, ty, exists, path, on_empty, on_error }))
            }
        }
    }
}
