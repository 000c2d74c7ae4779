//! Queries: blocks, set operations, common table expressions, FROM, windows.

use super::keyword::Kw;
use super::lexer::Kind;
use super::parser::Parser;
use crate::error::{Problem, Result};
use crate::tree::{
    Bound, CommonTable, Derived, Expr, ExprKind, Frame, FrameUnit, HintAction, HintScope, Ident, IndexHint, Interval,
    Join, JoinConstraint, JoinKind, Joined, JsonColumn, JsonTable, JsonValueColumn, Limit, Literal, Locking,
    LockingWait, Name, NamedWindow, Offset, OrderItem, Query, QueryBody, Select, SelectExpr, SelectItem, SetLink,
    SetOp, Span, TableName, TableRef, Target, Window, With,
};

/// The inside of a parenthesis in FROM.
enum Bracketed {
    Query(Box<Query>),
    Tables(Vec<Joined>),
}

impl Parser<'_> {
    /// A query expression.
    pub(super) fn query(&mut self) -> Result<Query> {
        self.level(|parser| {
            let start = parser.token().start;
            let with = parser.with()?;
            if with.is_some() && !parser.begins_query() && !parser.at(Kind::Open) || parser.kw() == Kw::WITH {
                return Err(parser.error());
            }
            let first = parser.query_operand()?;
            parser.query_rest(with, first, start)
        })
    }

    /// Set operations after the first operand, and the clauses of the whole.
    #[inline(never)]
    pub(super) fn query_rest(&mut self, with: Option<With>, first: QueryBody, start: u32) -> Result<Query> {
        let is_bracketed = matches!(first, QueryBody::Query(_));
        let first = self.intersections(first)?;
        let mut links = Vec::new();
        while let Some(op) = self.any(&[Kw::UNION, Kw::EXCEPT]) {
            let all = self.set_quantifier();
            let operand = self.query_operand()?;
            let operand = self.intersections(operand)?;
            let op = if op == Kw::UNION { SetOp::Union } else { SetOp::Except };
            links.push(SetLink { op, all, operand });
        }
        let body = match links.is_empty() {
            true => first,
            false => QueryBody::SetOperations { first: Box::new(first), links },
        };
        let is_outermost = std::mem::replace(&mut self.is_outermost, false);
        let order_by = if self.words(&[Kw::ORDER, Kw::BY]) { self.order_items()? } else { Vec::new() };
        let limit = self.limit()?;
        self.is_outermost = is_outermost;
        let mut into = if is_outermost { self.held_into.take() } else { None };
        if into.is_none() && self.kw() == Kw::INTO {
            into = self.target_clause()?;
        }
        let locks = self.locks()?;
        if into.is_none() && self.kw() == Kw::INTO {
            into = self.target_clause()?;
        }
        let span = self.span_from(start);
        // `(query)` alone is the query.
        if let QueryBody::Query(inner) = body {
            if is_bracketed && with.is_none() && order_by.is_empty() && limit.is_none() && locks.is_empty() {
                return Ok(Query { into: into.or(inner.into), span, ..*inner });
            }
            return Ok(Query { with, body: QueryBody::Query(inner), order_by, limit, locks, into, span });
        }
        Ok(Query { with, body, order_by, limit, locks, into, span })
    }

    /// INTERSECT binds tighter than the others.
    #[inline(never)]
    fn intersections(&mut self, first: QueryBody) -> Result<QueryBody> {
        let mut links = Vec::new();
        while self.word(Kw::INTERSECT) {
            let all = self.set_quantifier();
            links.push(SetLink { op: SetOp::Intersect, all, operand: self.query_operand()? });
        }
        Ok(match links.is_empty() {
            true => first,
            false => QueryBody::SetOperations { first: Box::new(first), links },
        })
    }

    fn set_quantifier(&mut self) -> bool {
        let all = self.word(Kw::ALL);
        if !all {
            self.word(Kw::DISTINCT);
        }
        all
    }

    #[inline(never)]
    pub(super) fn query_operand(&mut self) -> Result<QueryBody> {
        match self.kw() {
            Kw::SELECT => self.block(Parser::select).map(|select| QueryBody::Select(Box::new(select))),
            Kw::TABLE => {
                self.take();
                let start = self.token().start;
                let name = self.name()?;
                let span = self.span_from(start);
                let table = TableName { name, partitions: Vec::new(), alias: None, hints: Vec::new(), span };
                Ok(QueryBody::Table(Box::new(table)))
            }
            Kw::VALUES => {
                self.take();
                let rows = self.list(|parser| {
                    parser.expect_word(Kw::ROW)?;
                    parser.row_of_values()
                })?;
                Ok(QueryBody::Values(rows))
            }
            _ if self.at(Kind::Open) => {
                let is_outermost = self.is_outermost;
                let query = self.level(Parser::query_in_brackets)?;
                self.is_outermost = is_outermost;
                Ok(QueryBody::Query(Box::new(query)))
            }
            _ => Err(self.error()),
        }
    }

    /// `(a, DEFAULT)`, `()`
    pub(super) fn row_of_values(&mut self) -> Result<Vec<Expr>> {
        self.expect(Kind::Open)?;
        if self.accept(Kind::Close) {
            return Ok(Vec::new());
        }
        let row = self.list(Parser::expr_or_default)?;
        self.expect(Kind::Close)?;
        Ok(row)
    }

    pub(super) fn expr_or_default(&mut self) -> Result<Expr> {
        if self.kw() == Kw::DEFAULT && self.peek(1).kind != Kind::Open {
            let start = self.take().start;
            return Ok(self.make(ExprKind::Default, start));
        }
        self.expr()
    }

    pub(super) fn with(&mut self) -> Result<Option<With>> {
        if !self.word(Kw::WITH) {
            return Ok(None);
        }
        let recursive = self.word(Kw::RECURSIVE);
        // The words are one token to MySQL.
        if !recursive && self.kw() == Kw::ROLLUP {
            return Err(self.error());
        }
        let is_outermost = std::mem::replace(&mut self.is_outermost, false);
        let tables = self.list(|parser| {
            let name = parser.ident()?;
            let columns = if parser.at(Kind::Open) { parser.idents_in_brackets()? } else { Vec::new() };
            parser.expect_word(Kw::AS)?;
            let query = Box::new(parser.level(Parser::query_in_brackets)?);
            Ok(CommonTable { name, columns, query })
        })?;
        self.is_outermost = is_outermost;
        Ok(Some(With { recursive, tables }))
    }

    #[inline(never)]
    fn limit(&mut self) -> Result<Option<Limit>> {
        if !self.word(Kw::LIMIT) {
            return Ok(None);
        }
        let first = self.limit_value()?;
        if self.accept(Kind::Comma) {
            return Ok(Some(Limit { count: self.limit_value()?, offset: Some(first) }));
        }
        let offset = if self.word(Kw::OFFSET) { Some(self.limit_value()?) } else { None };
        Ok(Some(Limit { count: first, offset }))
    }

    /// A number or parameter.
    pub(super) fn limit_value(&mut self) -> Result<Expr> {
        let start = self.token().start;
        if self.at(Kind::Parameter) {
            return self.simple_expr();
        }
        if self.at_name() {
            let problem = Problem::UndeclaredVariable(self.text_of(self.token()).to_owned());
            return Err(self.problem(problem));
        }
        let number = self.number()?;
        Ok(self.make(ExprKind::Literal(Literal::Integer(number)), start))
    }

    #[inline(never)]
    fn locks(&mut self) -> Result<Vec<Locking>> {
        let mut locks = Vec::new();
        loop {
            if self.words(&[Kw::LOCK, Kw::IN, Kw::SHARE, Kw::MODE]) {
                locks.push(Locking { update: false, of: Vec::new(), wait: LockingWait::Wait });
                continue;
            }
            if self.kw() != Kw::FOR || !matches!(self.peek(1).kw, Kw::UPDATE | Kw::SHARE) {
                return Ok(locks);
            }
            self.take();
            let update = self.take().kw == Kw::UPDATE;
            let of = if self.word(Kw::OF) { self.names()? } else { Vec::new() };
            let wait = if self.word(Kw::NOWAIT) {
                LockingWait::NoWait
            } else if self.words(&[Kw::SKIP, Kw::LOCKED]) {
                LockingWait::SkipLocked
            } else {
                LockingWait::Wait
            };
            locks.push(Locking { update, of, wait });
        }
    }

    /// INTO, where the outermost query may have it.
    fn target_clause(&mut self) -> Result<Option<Box<Target>>> {
        if !self.is_outermost {
            return Err(self.error());
        }
        self.take();
        self.target().map(|target| Some(Box::new(target)))
    }

    /// A query block.
    #[inline(never)]
    fn select(&mut self) -> Result<Select> {
        self.take();
        let hints = self.hints();
        let mut select = Select {
            hints,
            distinct: false,
            straight_join: false,
            calc_found_rows: false,
            items: Vec::new(),
            from: Vec::new(),
            selection: None,
            group_by: Vec::new(),
            rollup: false,
            having: None,
            windows: Vec::new(),
        };
        let mut all = false;
        loop {
            match self.kw() {
                Kw::ALL => all = true,
                Kw::DISTINCT | Kw::DISTINCTROW => select.distinct = true,
                Kw::STRAIGHT_JOIN => select.straight_join = true,
                Kw::SQL_CALC_FOUND_ROWS => select.calc_found_rows = true,
                Kw::HIGH_PRIORITY | Kw::SQL_SMALL_RESULT | Kw::SQL_BIG_RESULT => {}
                // They are names if nothing of a select list follows.
                Kw::SQL_BUFFER_RESULT | Kw::SQL_NO_CACHE => {}
                _ => break,
            }
            if all && select.distinct {
                return Err(self.problem(Problem::WrongUsage("ALL", "DISTINCT")));
            }
            self.take();
        }
        let is_outermost = self.is_outermost;
        self.is_outermost = false;
        select.items = self.select_items()?;
        self.is_outermost = is_outermost;
        if self.kw() == Kw::INTO {
            self.held_into = self.target_clause()?;
        }
        self.is_outermost = false;
        if self.word(Kw::FROM) {
            if self.word(Kw::DUAL) {
                select.from = Vec::new();
            } else {
                select.from = self.list(Parser::joined)?;
            }
        }
        if self.word(Kw::WHERE) {
            select.selection = Some(self.expr()?);
        }
        if self.words(&[Kw::GROUP, Kw::BY]) {
            if self.kw() == Kw::ROLLUP && self.peek(1).kind == Kind::Open {
                self.take();
                self.take();
                select.group_by = self.exprs()?;
                self.expect(Kind::Close)?;
                select.rollup = true;
            } else {
                select.group_by = self.exprs()?;
                select.rollup = self.words(&[Kw::WITH, Kw::ROLLUP]);
            }
        }
        if self.word(Kw::HAVING) {
            select.having = Some(self.expr()?);
        }
        if self.word(Kw::WINDOW) {
            select.windows = self.list(|parser| {
                let name = parser.ident()?;
                parser.expect_word(Kw::AS)?;
                Ok(NamedWindow { name, window: parser.level(Parser::window)? })
            })?;
        }
        self.is_outermost = is_outermost;
        Ok(select)
    }

    /// The texts of `/*+ ... */` here.
    pub(super) fn hints(&mut self) -> Vec<String> {
        let mut hints = Vec::new();
        while self.at(Kind::Hint) {
            let token = self.take();
            let text = self.text_of(token);
            hints.push(text[3..text.len() - 2].trim().to_owned());
        }
        hints
    }

    pub(super) fn select_items(&mut self) -> Result<Vec<SelectItem>> {
        let mut items = Vec::new();
        if self.at(Kind::Star) {
            let token = self.take();
            items.push(SelectItem::All(Span { start: token.start, end: token.end }));
            if !self.accept(Kind::Comma) {
                return Ok(items);
            }
        }
        loop {
            items.push(self.select_item()?);
            if !self.accept(Kind::Comma) {
                return Ok(items);
            }
        }
    }

    #[inline(never)]
    fn select_item(&mut self) -> Result<SelectItem> {
        let start = self.token().start;
        if Parser::is_name(self.token()) && self.peek(1).kind == Kind::Dot {
            if self.peek(2).kind == Kind::Star {
                let name = Name { schema: None, name: self.identifier()? };
                self.take();
                self.take();
                return Ok(SelectItem::AllOf(name, self.span_from(start)));
            }
            if let Some(name) = self.schema_star()? {
                return Ok(SelectItem::AllOf(name, self.span_from(start)));
            }
        }
        let expr = self.expr()?;
        let text = self.name_of_item(start);
        let begins_alias = |parser: &Parser<'_>| {
            parser.at_name() && !matches!(parser.kw(), Kw::RETURNING | Kw::MEMBER | Kw::SOUNDS)
                || parser.kind() == Kind::String
        };
        let alias = if self.word(Kw::AS) || begins_alias(self) { Some(self.text_or_name()?) } else { None };
        Ok(SelectItem::Expr(SelectExpr { expr, alias, text }))
    }

    /// The expression's text as the name of its column; MySQL keeps as much of it.
    fn name_of_item(&self, start: u32) -> String {
        const NAME_MAX: usize = 256;
        let text = &self.text[start as usize..self.last_end as usize];
        let mut end = text.len().min(NAME_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text[..end].to_owned()
    }

    /// `schema.table.*`: five tokens, one more than are looked ahead.
    fn schema_star(&mut self) -> Result<Option<Name>> {
        let (mut lexer, ahead, count) = {
            self.peek(3);
            self.lexer_behind()
        };
        if count < 4 || ahead[3].kind != Kind::Dot || lexer.advance().kind != Kind::Star {
            return Ok(None);
        }
        let schema = Some(self.identifier()?);
        self.take();
        let name = self.identifier()?;
        self.take();
        self.take();
        Ok(Some(Name { schema, name }))
    }

    pub(super) fn order_items(&mut self) -> Result<Vec<OrderItem>> {
        self.list(|parser| {
            let expr = parser.expr()?;
            let descending = parser.direction();
            Ok(OrderItem { expr, descending })
        })
    }

    /// ASC or DESC. True: descending.
    pub(super) fn direction(&mut self) -> bool {
        self.any(&[Kw::ASC, Kw::DESC]) == Some(Kw::DESC)
    }

    /// A table and those joined to it.
    #[inline(never)]
    pub(super) fn joined(&mut self) -> Result<Joined> {
        if self.at(Kind::OpenBrace) {
            self.take();
            if !self.word(Kw::OJ) {
                self.identifier()?;
            }
            let inner = self.level(Parser::joined)?;
            self.expect(Kind::CloseBrace)?;
            return self.joins(TableRef::Nested(vec![inner]));
        }
        let first = self.table_factor()?;
        self.joins(first)
    }

    /// The joins after a first table. `JOIN b JOIN c ON .. ON ..` nests to the right: a join without a condition takes a following one, if the condition behind that one has a second.
    #[inline(never)]
    fn joins(&mut self, first: TableRef) -> Result<Joined> {
        let mut joins: Vec<Join> = Vec::new();
        loop {
            let (kind, natural, is_outer) = match self.kw() {
                Kw::JOIN => {
                    self.take();
                    (JoinKind::Inner, false, false)
                }
                Kw::INNER | Kw::CROSS => {
                    self.take();
                    self.expect_word(Kw::JOIN)?;
                    (JoinKind::Inner, false, false)
                }
                Kw::STRAIGHT_JOIN => {
                    self.take();
                    (JoinKind::Straight, false, false)
                }
                Kw::LEFT | Kw::RIGHT => {
                    let kind = if self.take().kw == Kw::LEFT { JoinKind::Left } else { JoinKind::Right };
                    self.word(Kw::OUTER);
                    self.expect_word(Kw::JOIN)?;
                    (kind, false, true)
                }
                Kw::NATURAL => {
                    self.take();
                    let kind = match self.any(&[Kw::LEFT, Kw::RIGHT, Kw::INNER]) {
                        Some(Kw::LEFT) => JoinKind::Left,
                        Some(Kw::RIGHT) => JoinKind::Right,
                        _ => JoinKind::Inner,
                    };
                    if kind != JoinKind::Inner {
                        self.word(Kw::OUTER);
                    }
                    self.expect_word(Kw::JOIN)?;
                    (kind, true, false)
                }
                _ => return Ok(Joined { first, joins }),
            };
            let table = self.table_factor()?;
            if natural {
                joins.push(Join { kind, table, constraint: JoinConstraint::Natural });
                continue;
            }
            if let Some(constraint) = self.join_constraint()? {
                joins.push(Join { kind, table, constraint });
                continue;
            }
            if !self.begins_join() {
                if is_outer {
                    return Err(self.error());
                }
                joins.push(Join { kind, table, constraint: JoinConstraint::None });
                continue;
            }
            // The operand is a join itself, if a condition is left when it ends.
            let Joined { first: inner, joins: more } = self.level(|parser| parser.joins(table))?;
            match self.join_constraint()? {
                Some(constraint) => {
                    let table = TableRef::Nested(vec![Joined { first: inner, joins: more }]);
                    joins.push(Join { kind, table, constraint });
                }
                None if is_outer => return Err(self.error()),
                None => {
                    joins.push(Join { kind, table: inner, constraint: JoinConstraint::None });
                    joins.extend(more);
                }
            }
        }
    }

    fn begins_join(&self) -> bool {
        matches!(self.kw(), Kw::JOIN | Kw::INNER | Kw::CROSS | Kw::STRAIGHT_JOIN | Kw::LEFT | Kw::RIGHT | Kw::NATURAL)
    }

    fn join_constraint(&mut self) -> Result<Option<JoinConstraint>> {
        if self.word(Kw::ON) {
            return Ok(Some(JoinConstraint::On(self.expr()?)));
        }
        if self.word(Kw::USING) {
            return self.idents_in_brackets().map(|columns| Some(JoinConstraint::Using(columns)));
        }
        Ok(None)
    }

    #[inline(never)]
    fn table_factor(&mut self) -> Result<TableRef> {
        if self.at(Kind::Open) {
            return match self.level(Parser::bracketed)? {
                Bracketed::Query(query) => self.derived(query, false),
                Bracketed::Tables(list) => Ok(TableRef::Nested(list)),
            };
        }
        if self.kw() == Kw::LATERAL {
            self.take();
            let query = Box::new(self.level(Parser::query_in_brackets)?);
            return self.derived(query, true);
        }
        if self.kw() == Kw::JSON_TABLE && self.peek(1).kind == Kind::Open {
            return self.json_table();
        }
        let start = self.token().start;
        let name = self.name()?;
        let span = self.span_from(start);
        let partitions = if self.word(Kw::PARTITION) { self.idents_in_brackets()? } else { Vec::new() };
        let alias = self.alias()?;
        let hints = self.index_hints()?;
        Ok(TableRef::Table(Box::new(TableName { name, partitions, alias, hints, span })))
    }

    /// `[AS] alias`
    fn alias(&mut self) -> Result<Option<Ident>> {
        if self.word(Kw::AS) || self.at_name() && self.kw() != Kw::RETURNING {
            self.ident().map(Some)
        } else {
            Ok(None)
        }
    }

    #[inline(never)]
    fn derived(&mut self, query: Box<Query>, lateral: bool) -> Result<TableRef> {
        let alias = self.alias()?;
        let columns = if alias.is_some() && self.at(Kind::Open) { self.idents_in_brackets()? } else { Vec::new() };
        Ok(TableRef::Derived(Box::new(Derived { lateral, query, alias, columns })))
    }

    /// `(query)`, `((query) UNION query)`, `(tables)`.
    #[inline(never)]
    fn bracketed(&mut self) -> Result<Bracketed> {
        self.expect(Kind::Open)?;
        if self.begins_query() {
            let query = Box::new(self.query()?);
            self.expect(Kind::Close)?;
            return Ok(Bracketed::Query(query));
        }
        if self.at(Kind::Open) {
            let inner = match self.level(Parser::bracketed)? {
                Bracketed::Query(query) => {
                    if self.accept(Kind::Close) {
                        return Ok(Bracketed::Query(query));
                    }
                    if self.continues_query() {
                        let query = Box::new(self.query_after(*query)?);
                        self.expect(Kind::Close)?;
                        return Ok(Bracketed::Query(query));
                    }
                    self.derived(query, false)?
                }
                Bracketed::Tables(list) => TableRef::Nested(list),
            };
            let mut list = vec![self.joins(inner)?];
            while self.accept(Kind::Comma) {
                list.push(self.joined()?);
            }
            self.expect(Kind::Close)?;
            return Ok(Bracketed::Tables(list));
        }
        let list = self.list(Parser::joined)?;
        self.expect(Kind::Close)?;
        Ok(Bracketed::Tables(list))
    }

    fn index_hints(&mut self) -> Result<Vec<IndexHint>> {
        let mut hints = Vec::new();
        while matches!(self.kw(), Kw::USE | Kw::IGNORE | Kw::FORCE) && matches!(self.peek(1).kw, Kw::INDEX | Kw::KEY) {
            let action = match self.take().kw {
                Kw::USE => HintAction::Use,
                Kw::IGNORE => HintAction::Ignore,
                _ => HintAction::Force,
            };
            self.take();
            let scope = if self.word(Kw::FOR) {
                Some(match self.take().kw {
                    Kw::JOIN => HintScope::Join,
                    Kw::ORDER => {
                        self.expect_word(Kw::BY)?;
                        HintScope::OrderBy
                    }
                    Kw::GROUP => {
                        self.expect_word(Kw::BY)?;
                        HintScope::GroupBy
                    }
                    _ => return Err(self.error_at(self.last_end)),
                })
            } else {
                None
            };
            self.expect(Kind::Open)?;
            let mut indexes = Vec::new();
            if !(action == HintAction::Use && self.at(Kind::Close)) {
                indexes = self.list(Parser::index_name)?;
            }
            self.expect(Kind::Close)?;
            hints.push(IndexHint { action, scope, indexes });
        }
        Ok(hints)
    }

    /// An index by name; PRIMARY is one.
    pub(super) fn index_name(&mut self) -> Result<Ident> {
        if self.kw() == Kw::PRIMARY {
            let token = self.take();
            return Ok(self.ident_of(token));
        }
        self.ident()
    }

    #[inline(never)]
    fn json_table(&mut self) -> Result<TableRef> {
        self.take();
        self.take();
        let document = self.expr()?;
        self.expect(Kind::Comma)?;
        let path = self.string()?;
        let columns = self.json_columns()?;
        self.expect(Kind::Close)?;
        let alias = self.alias()?;
        Ok(TableRef::JsonTable(Box::new(JsonTable { document, path, columns, alias })))
    }

    fn json_columns(&mut self) -> Result<Vec<JsonColumn>> {
        self.expect_word(Kw::COLUMNS)?;
        self.expect(Kind::Open)?;
        let columns = self.list(|parser| parser.level(Parser::json_column))?;
        self.expect(Kind::Close)?;
        Ok(columns)
    }

    fn json_column(&mut self) -> Result<JsonColumn> {
        if self.kw() == Kw::NESTED && self.peek(1).is(Kw::PATH) {
            self.take();
            self.take();
            let path = self.string()?;
            return Ok(JsonColumn::Nested { path, columns: self.json_columns()? });
        }
        let name = self.ident()?;
        if self.words(&[Kw::FOR, Kw::ORDINALITY]) {
            return Ok(JsonColumn::Ordinality(name));
        }
        let ty = self.column_type()?;
        let exists = self.word(Kw::EXISTS);
        self.expect_word(Kw::PATH)?;
        let path = self.string()?;
        let (on_empty, on_error) = if exists { (None, None) } else { self.on_missing()? };
        Ok(JsonColumn::Value(Box::new(JsonValueColumn { name, ty, exists, path, on_empty, on_error })))
    }

    /// The specification of a window, in parentheses.
    #[inline(never)]
    pub(super) fn window(&mut self) -> Result<Window> {
        self.expect(Kind::Open)?;
        let base = if self.at_name() && !self.begins_frame() { Some(self.ident()?) } else { None };
        let partition_by = if self.words(&[Kw::PARTITION, Kw::BY]) { self.exprs()? } else { Vec::new() };
        let order_by = if self.words(&[Kw::ORDER, Kw::BY]) { self.order_items()? } else { Vec::new() };
        let frame = if self.begins_frame() { Some(self.frame()?) } else { None };
        self.expect(Kind::Close)?;
        Ok(Window { base, partition_by, order_by, frame })
    }

    fn begins_frame(&self) -> bool {
        matches!(self.kw(), Kw::ROWS | Kw::RANGE | Kw::GROUPS)
    }

    #[inline(never)]
    fn frame(&mut self) -> Result<Frame> {
        let unit = match self.take().kw {
            Kw::ROWS => FrameUnit::Rows,
            Kw::RANGE => FrameUnit::Range,
            _ => FrameUnit::Groups,
        };
        let (start, end) = if self.word(Kw::BETWEEN) {
            let start = self.bound(true)?;
            self.expect_word(Kw::AND)?;
            (start, Some(self.bound(true)?))
        } else {
            (self.bound(false)?, None)
        };
        let exclude = self.word(Kw::EXCLUDE);
        if exclude && !self.words(&[Kw::CURRENT, Kw::ROW]) && !self.words(&[Kw::NO, Kw::OTHERS]) {
            self.any(&[Kw::GROUP, Kw::TIES]).ok_or_else(|| self.error())?;
        }
        Ok(Frame { unit, start, end, exclude })
    }

    #[inline(never)]
    fn bound(&mut self, is_between: bool) -> Result<Bound> {
        if self.words(&[Kw::CURRENT, Kw::ROW]) {
            return Ok(Bound::CurrentRow);
        }
        if self.word(Kw::UNBOUNDED) {
            if is_between && self.word(Kw::FOLLOWING) {
                return Ok(Bound::UnboundedFollowing);
            }
            self.expect_word(Kw::PRECEDING)?;
            return Ok(Bound::UnboundedPreceding);
        }
        let offset = if self.kw() == Kw::INTERVAL {
            let interval: Interval = self.interval()?;
            Offset::Interval(interval)
        } else {
            let start = self.token().start;
            match self.kind() {
                Kind::Parameter => Offset::Rows(self.simple_expr()?),
                Kind::Integer | Kind::Decimal | Kind::Float => {
                    let literal = self.literal()?;
                    Offset::Rows(self.make(ExprKind::Literal(literal), start))
                }
                _ => return Err(self.error()),
            }
        };
        let offset = Box::new(offset);
        if is_between && self.word(Kw::FOLLOWING) {
            return Ok(Bound::Following(offset));
        }
        self.expect_word(Kw::PRECEDING)?;
        Ok(Bound::Preceding(offset))
    }
}
