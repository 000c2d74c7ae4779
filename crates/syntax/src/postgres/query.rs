//! Queries: SELECT, VALUES, TABLE, set operations, WITH, and the clauses that apply to their results.

use super::error::Result;
use super::keyword::{Category, Kw};
use super::lexer::Kind;
use super::literal;
use super::parser::Parser;
use super::tree::*;

impl Parser<'_> {
    /// Whether a query begins here, parentheses aside.
    pub(super) fn begins_query(&mut self) -> bool {
        match self.kw() {
            Kw::SELECT | Kw::WITH | Kw::TABLE => true,
            Kw::VALUES => self.peek(1).kind == Kind::Open,
            _ => false,
        }
    }

    /// Whether a clause follows that goes on with a query in parentheses.
    pub(super) fn continues_query(&self) -> bool {
        matches!(
            self.kw(),
            Kw::UNION | Kw::EXCEPT | Kw::INTERSECT | Kw::ORDER | Kw::LIMIT | Kw::OFFSET | Kw::FETCH | Kw::FOR
        )
    }

    /// select_no_parens, or a query in parentheses with what follows it.
    pub(super) fn query(&mut self) -> Result<SelectStmt> {
        self.level(|parser| {
            let start = parser.token().start;
            let with = parser.with_clause()?;
            parser.query_with(with, start)
        })
    }

    /// A query behind its WITH.
    pub(super) fn query_with(&mut self, with: Option<WithClause>, start: u32) -> Result<SelectStmt> {
        let first = self.query_operand()?;
        let mut query = self.query_tail(first, start)?;
        if let Some(with) = with {
            if query.with.is_some() {
                return Err(self.invalid("42601", "multiple WITH clauses not allowed", with.at));
            }
            query.with = Some(with);
        }
        query.span = self.span_from(start);
        Ok(query)
    }

    /// The rest of a query whose first operand, in parentheses, was read.
    pub(super) fn query_after(&mut self, first: SelectStmt, start: u32) -> Result<SelectStmt> {
        self.grow()?;
        let mut query = self.query_tail(first, start)?;
        query.span = self.span_from(start);
        Ok(query)
    }

    /// Set operations and the clauses behind them.
    fn query_tail(&mut self, first: SelectStmt, start: u32) -> Result<SelectStmt> {
        let mut query = if matches!(self.kw(), Kw::UNION | Kw::EXCEPT | Kw::INTERSECT) {
            let first = operand_body(first);
            let body = self.set_operations(first, false)?;
            self.plain_query(body, start)
        } else {
            first
        };
        self.query_options(&mut query)?;
        Ok(query)
    }

    fn plain_query(&self, body: SelectBody, start: u32) -> SelectStmt {
        let span = self.span_from(start);
        SelectStmt { with: None, body, order_by: Vec::new(), limit: None, locking: Vec::new(), span }
    }

    /// An operand of a set operation; in parentheses with clauses of its own.
    fn query_operand(&mut self) -> Result<SelectStmt> {
        let start = self.token().start;
        if self.kind() == Kind::Open {
            return self.level(Parser::bracketed_query);
        }
        let body = match self.kw() {
            Kw::SELECT => SelectBody::Select(Box::new(self.select()?)),
            Kw::VALUES => {
                self.take();
                SelectBody::Values(self.list(|parser| parser.bracketed(Parser::expr))?)
            }
            Kw::TABLE => {
                self.take();
                SelectBody::Select(Box::new(self.table_query(start)?))
            }
            _ => return Err(self.error()),
        };
        Ok(self.plain_query(body, start))
    }

    /// `TABLE t` is `SELECT * FROM t`.
    fn table_query(&mut self, start: u32) -> Result<Select> {
        let relation = self.relation_expr()?;
        let star = self.make(ExprKind::Column(ColumnRef { fields: Vec::new(), star: true }), start);
        let first = TableRef::Relation(Box::new(Relation { name: relation, alias: None, sample: None }));
        Ok(Select {
            targets: vec![ResTarget { expr: star, alias: None }],
            from: vec![FromItem { first, joins: Vec::new() }],
            ..empty_select()
        })
    }

    /// Operations of equal precedence as a list. `intersects`: only INTERSECT.
    fn set_operations(&mut self, first: SelectBody, intersects: bool) -> Result<SelectBody> {
        let mut first = first;
        if !intersects && self.kw() == Kw::INTERSECT {
            first = self.set_operations(first, true)?;
        }
        let mut links = Vec::new();
        loop {
            let at = self.here();
            let op = match self.kw() {
                Kw::INTERSECT if intersects => SetOp::Intersect,
                Kw::UNION if !intersects => SetOp::Union,
                Kw::EXCEPT if !intersects => SetOp::Except,
                _ => break,
            };
            self.take();
            let all = self.any(&[Kw::ALL, Kw::DISTINCT]) == Some(Kw::ALL);
            let mut operand = operand_body(self.query_operand()?);
            if !intersects && self.kw() == Kw::INTERSECT {
                operand = self.level(|parser| parser.set_operations(operand, true))?;
            }
            links.push(SetLink { op, all, operand, at });
        }
        if links.is_empty() {
            return Ok(first);
        }
        self.grow()?;
        Ok(SelectBody::SetOperations { first: Box::new(first), links })
    }

    /// ORDER BY, LIMIT, OFFSET, FETCH, FOR. A clause that the query has already, from its parentheses, is refused.
    fn query_options(&mut self, query: &mut SelectStmt) -> Result<()> {
        if self.kw() == Kw::ORDER {
            let order_by = self.sort_clause()?;
            if !query.order_by.is_empty() {
                let at = order_by.first().map_or(self.here(), |item| Location(item.expr.span.start));
                return Err(self.invalid("42601", "multiple ORDER BY clauses not allowed", at));
            }
            query.order_by = order_by;
        }
        if self.kw() == Kw::FOR {
            self.locking(query)?;
            self.limit(query)?;
        } else {
            self.limit(query)?;
            if self.kw() == Kw::FOR {
                self.locking(query)?;
            }
        }
        let with_ties = query.limit.as_ref().is_some_and(|limit| limit.with_ties);
        if with_ties && query.locking.iter().any(|clause| clause.wait == LockWait::SkipLocked) {
            let message = "SKIP LOCKED and WITH TIES options cannot be used together";
            return Err(self.invalid("42601", message, self.here()));
        }
        Ok(())
    }

    fn limit(&mut self, query: &mut SelectStmt) -> Result<()> {
        let had = query.limit.is_some();
        let mut limit = Limit { count: None, with_ties: false, offset: None };
        let (mut has_count, mut has_offset) = (false, false);
        loop {
            let at = self.here();
            match self.kw() {
                Kw::LIMIT | Kw::FETCH if !has_count => {
                    has_count = true;
                    if self.kw() == Kw::LIMIT { self.limit_count(&mut limit, at)? } else { self.fetch(&mut limit)? }
                }
                Kw::OFFSET if !has_offset => {
                    has_offset = true;
                    self.take();
                    limit.offset = Some(self.offset_value()?);
                }
                _ => break,
            }
        }
        if !has_count && !has_offset {
            return Ok(());
        }
        if limit.with_ties && query.order_by.is_empty() {
            let message = "WITH TIES cannot be specified without ORDER BY clause";
            return Err(self.invalid("42601", message, self.here()));
        }
        if !had {
            query.limit = Some(Box::new(limit));
            return Ok(());
        }
        self.merge_limit(query, limit)
    }

    /// Adds a limit to a query that has one from within its parentheses.
    fn merge_limit(&self, query: &mut SelectStmt, limit: Limit) -> Result<()> {
        let Some(old) = query.limit.as_mut() else { return Ok(()) };
        let Limit { count, with_ties, offset } = limit;
        if let Some(offset) = offset {
            if old.offset.is_some() {
                let at = Location(offset.span.start);
                return Err(self.invalid("42601", "multiple OFFSET clauses not allowed", at));
            }
            old.offset = Some(offset);
        }
        if let Some(count) = count {
            if old.count.is_some() {
                let at = Location(count.span.start);
                return Err(self.invalid("42601", "multiple LIMIT clauses not allowed", at));
            }
            old.count = Some(count);
        }
        if with_ties {
            old.with_ties = true;
        }
        Ok(())
    }

    fn limit_count(&mut self, limit: &mut Limit, at: Location) -> Result<()> {
        self.take();
        let start = self.token().start;
        if self.word(Kw::ALL) {
            limit.count = Some(self.make(ExprKind::Const(Const::Null), start));
            return Ok(());
        }
        limit.count = Some(self.expr()?);
        if self.accept(Kind::Comma) {
            self.expr()?;
            let (at, end) = (at.0 as usize, self.last_end as usize);
            let hint = Some("Use separate LIMIT and OFFSET clauses.");
            return Err(literal::invalid("42601", "LIMIT #,# syntax is not supported", hint, at, end));
        }
        Ok(())
    }

    /// `FETCH FIRST n ROWS ONLY`
    fn fetch(&mut self, limit: &mut Limit) -> Result<()> {
        self.take();
        if self.any(&[Kw::FIRST, Kw::NEXT]).is_none() {
            return Err(self.error());
        }
        let is_one = matches!(self.kw(), Kw::ROW | Kw::ROWS) && matches!(self.peek(1).kw, Kw::ONLY | Kw::WITH);
        let start = self.token().start;
        limit.count =
            Some(if is_one { self.make(ExprKind::Const(Const::Integer(1)), start) } else { self.row_count()? });
        if self.any(&[Kw::ROW, Kw::ROWS]).is_none() {
            return Err(self.error());
        }
        if self.word(Kw::WITH) {
            self.expect_word(Kw::TIES)?;
            limit.with_ties = true;
            return Ok(());
        }
        self.expect_word(Kw::ONLY)
    }

    /// select_fetch_first_value: an operand, or a number with a sign.
    fn row_count(&mut self) -> Result<Expr> {
        if matches!(self.kind(), Kind::Plus | Kind::Minus) {
            return self.signed_row_count();
        }
        self.c_expr()
    }

    fn signed_row_count(&mut self) -> Result<Expr> {
        let at = self.here();
        let negative = self.take().kind == Kind::Minus;
        let number = self.number()?;
        if negative {
            return Ok(self.make(ExprKind::Const(super::parser::negated(number)), at.0));
        }
        let operand = Box::new(self.make(ExprKind::Const(number), at.0));
        Ok(self.make(ExprKind::Prefix { op: Operator::plain("+", at), operand }, at.0))
    }

    /// `OFFSET expression`, `OFFSET operand ROWS`
    fn offset_value(&mut self) -> Result<Expr> {
        if matches!(self.kind(), Kind::Plus | Kind::Minus | Kind::Operator) || self.kw() == Kw::NOT {
            let value = self.expr()?;
            let is_number = match &value.kind {
                ExprKind::Const(_) => true,
                ExprKind::Prefix { op, operand } => op.name == "+" && matches!(operand.kind, ExprKind::Const(_)),
                _ => false,
            };
            if is_number {
                self.any(&[Kw::ROW, Kw::ROWS]);
            }
            return Ok(value);
        }
        let value = self.c_expr()?;
        if self.any(&[Kw::ROW, Kw::ROWS]).is_some() {
            return Ok(value);
        }
        self.expr_after(value)
    }

    /// for_locking_clause
    fn locking(&mut self, query: &mut SelectStmt) -> Result<()> {
        while self.word(Kw::FOR) {
            let strength = match self.any(&[Kw::UPDATE, Kw::SHARE, Kw::NO, Kw::KEY, Kw::READ]) {
                Some(Kw::UPDATE) => LockStrength::Update,
                Some(Kw::SHARE) => LockStrength::Share,
                Some(Kw::NO) => {
                    self.expect_words(&[Kw::KEY, Kw::UPDATE])?;
                    LockStrength::NoKeyUpdate
                }
                Some(Kw::KEY) => {
                    self.expect_word(Kw::SHARE)?;
                    LockStrength::KeyShare
                }
                Some(_) => return self.expect_word(Kw::ONLY),
                None => return Err(self.error()),
            };
            let of = if self.word(Kw::OF) { self.list(Parser::relation_name)? } else { Vec::new() };
            let wait = if self.word(Kw::NOWAIT) {
                LockWait::NoWait
            } else if self.word(Kw::SKIP) {
                self.expect_word(Kw::LOCKED)?;
                LockWait::SkipLocked
            } else {
                LockWait::Wait
            };
            query.locking.push(LockingClause { strength, of, wait });
        }
        Ok(())
    }

    /// with_clause, if there is one.
    #[inline(never)]
    pub(super) fn with_clause(&mut self) -> Result<Option<WithClause>> {
        let at = self.here();
        if !self.word(Kw::WITH) {
            return Ok(None);
        }
        let is_name = self.kw() == Kw::RECURSIVE && (self.peek_is(1, Kw::AS) || self.peek(1).kind == Kind::Open);
        let recursive = !is_name && self.word(Kw::RECURSIVE);
        let tables = self.list(Parser::common_table)?;
        self.grow()?;
        Ok(Some(WithClause { recursive, tables, at }))
    }

    #[inline(never)]
    fn common_table(&mut self) -> Result<CommonTableExpr> {
        let name = self.column_name()?;
        let columns = self.optional_columns()?;
        self.expect_word(Kw::AS)?;
        let materialized = match self.any(&[Kw::MATERIALIZED, Kw::NOT]) {
            Some(Kw::MATERIALIZED) => Some(true),
            Some(_) => {
                self.expect_word(Kw::MATERIALIZED)?;
                Some(false)
            }
            None => None,
        };
        self.expect(Kind::Open)?;
        let statement = self.level(Parser::preparable)?;
        self.expect(Kind::Close)?;
        let (search, cycle) = (self.search_clause()?, self.cycle_clause()?);
        Ok(CommonTableExpr { name, columns, materialized, statement, search, cycle })
    }

    /// opt_search_clause
    #[inline(never)]
    fn search_clause(&mut self) -> Result<Option<Box<SearchClause>>> {
        let at = self.here();
        if !self.word(Kw::SEARCH) {
            return Ok(None);
        }
        let breadth_first = match self.any(&[Kw::DEPTH, Kw::BREADTH]) {
            Some(kw) => kw == Kw::BREADTH,
            None => return Err(self.error()),
        };
        self.expect_words(&[Kw::FIRST, Kw::BY])?;
        let columns = self.list(Parser::column_name)?;
        self.expect_word(Kw::SET)?;
        let sequence = self.column_name()?;
        self.grow()?;
        Ok(Some(Box::new(SearchClause { breadth_first, columns, sequence, at })))
    }

    /// opt_cycle_clause
    #[inline(never)]
    fn cycle_clause(&mut self) -> Result<Option<Box<CycleClause>>> {
        let at = self.here();
        if !self.word(Kw::CYCLE) {
            return Ok(None);
        }
        let columns = self.list(Parser::column_name)?;
        self.expect_word(Kw::SET)?;
        let mark = self.column_name()?;
        let (value, otherwise) = if self.word(Kw::TO) {
            let value = self.any_constant()?;
            self.expect_word(Kw::DEFAULT)?;
            (value, self.any_constant()?)
        } else {
            let truth = |parser: &mut Self, is| parser.make(ExprKind::Const(Const::Bool(is)), at.0);
            (truth(self, true), truth(self, false))
        };
        self.expect_word(Kw::USING)?;
        let path = self.column_name()?;
        self.grow()?;
        Ok(Some(Box::new(CycleClause { columns, mark, value, otherwise, path, at })))
    }

    /// AexprConst
    fn any_constant(&mut self) -> Result<Expr> {
        let is_reserved = self.kw().category() == Category::Reserved;
        let is_constant = match self.kind() {
            Kind::Open | Kind::Parameter => false,
            _ => !is_reserved || matches!(self.kw(), Kw::TRUE | Kw::FALSE | Kw::NULL),
        };
        if !is_constant {
            return Err(self.error());
        }
        let expr = self.primary()?;
        match &expr.kind {
            ExprKind::Const(_) => Ok(expr),
            ExprKind::Cast { operand, .. } if matches!(operand.kind, ExprKind::Const(Const::String(_))) => Ok(expr),
            _ => Err(self.error()),
        }
    }

    fn select(&mut self) -> Result<Select> {
        self.expect_word(Kw::SELECT)?;
        let mut select = empty_select();
        match self.any(&[Kw::ALL, Kw::DISTINCT]) {
            Some(Kw::DISTINCT) => {
                select.distinct =
                    Some(if self.word(Kw::ON) { Distinct::On(self.bracketed(Parser::expr)?) } else { Distinct::Rows });
                select.targets = self.targets()?;
            }
            _ if self.begins_target() => select.targets = self.targets()?,
            _ => {}
        }
        if self.word(Kw::INTO) {
            select.into = Some(Box::new(self.select_into()?));
        }
        if self.word(Kw::FROM) {
            select.from = self.table_list()?;
        }
        if self.word(Kw::WHERE) {
            select.selection = Some(self.expr()?);
        }
        if self.word(Kw::GROUP) {
            self.expect_word(Kw::BY)?;
            select.group_distinct = self.any(&[Kw::ALL, Kw::DISTINCT]) == Some(Kw::DISTINCT);
            select.group_by = self.list(Parser::group_item)?;
        }
        if self.word(Kw::HAVING) {
            select.having = Some(self.expr()?);
        }
        if self.word(Kw::WINDOW) {
            select.windows = self.list(|parser| {
                let name = parser.window_name()?;
                parser.expect_word(Kw::AS)?;
                Ok(NamedWindow { name, window: parser.window()? })
            })?;
        }
        Ok(select)
    }

    /// Whether an item of a select list is next: the list may be empty.
    fn begins_target(&mut self) -> bool {
        !Parser::ends_target(self.token())
    }

    /// Whether the word of an operator is next that is a label: nothing follows that could be its operand.
    pub(super) fn is_label_at_end(&mut self) -> bool {
        if self.kind() != Kind::Word || !self.kw().is_bare_label() {
            return false;
        }
        let next = self.peek(1);
        next.kind == Kind::Comma || Parser::ends_target(next)
    }

    /// Whether the token can follow a select list and begin no item of it.
    fn ends_target(token: super::lexer::Token) -> bool {
        !match token.kind {
            Kind::End | Kind::Semicolon | Kind::Close => false,
            Kind::Word => !matches!(
                token.kw,
                Kw::INTO
                    | Kw::FROM
                    | Kw::WHERE
                    | Kw::GROUP
                    | Kw::HAVING
                    | Kw::WINDOW
                    | Kw::UNION
                    | Kw::EXCEPT
                    | Kw::INTERSECT
                    | Kw::ORDER
                    | Kw::LIMIT
                    | Kw::OFFSET
                    | Kw::FETCH
                    | Kw::FOR
                    | Kw::ON
                    | Kw::WITH
                    | Kw::RETURNING
            ),
            _ => true,
        }
    }

    /// target_list
    pub(super) fn targets(&mut self) -> Result<Vec<ResTarget>> {
        self.list(|parser| {
            let start = parser.token().start;
            if parser.accept(Kind::Star) {
                let expr = parser.make(ExprKind::Column(ColumnRef { fields: Vec::new(), star: true }), start);
                return Ok(ResTarget { expr, alias: None });
            }
            let depth = parser.depth() + 1;
            let outer = std::mem::replace(&mut parser.target_depth, depth);
            let expr = parser.expr()?;
            parser.target_depth = outer;
            let alias = if parser.word(Kw::AS) {
                Some(parser.label()?)
            } else if parser.at_bare_label() {
                Some(parser.take_name()?)
            } else {
                None
            };
            Ok(ResTarget { expr, alias })
        })
    }

    /// RETURNING, or nothing.
    pub(super) fn returning(&mut self) -> Result<Vec<ResTarget>> {
        if self.word(Kw::RETURNING) { self.targets() } else { Ok(Vec::new()) }
    }

    /// The table of SELECT INTO.
    fn select_into(&mut self) -> Result<IntoClause> {
        let persistence = match self.kw() {
            Kw::LOCAL | Kw::GLOBAL if matches!(self.peek(1).kw, Kw::TEMPORARY | Kw::TEMP) => {
                self.take();
                self.take();
                Persistence::Temporary
            }
            Kw::TEMPORARY | Kw::TEMP if self.peek(1).kind != Kind::Dot && !self.is_end_of_name(1) => {
                self.take();
                Persistence::Temporary
            }
            Kw::UNLOGGED if self.peek(1).kind != Kind::Dot && !self.is_end_of_name(1) => {
                self.take();
                Persistence::Unlogged
            }
            _ => Persistence::Permanent,
        };
        self.word(Kw::TABLE);
        let relation = self.relation_name()?;
        Ok(IntoClause {
            relation,
            persistence,
            columns: Vec::new(),
            access_method: None,
            options: Vec::new(),
            on_commit: OnCommit::Default,
            tablespace: None,
        })
    }

    /// Whether the token there cannot begin a name.
    fn is_end_of_name(&mut self, nth: usize) -> bool {
        let token = self.peek(nth);
        match token.kind {
            Kind::Quoted | Kind::UnicodeQuoted => false,
            Kind::Word => !token.kw.is_column_name() && token.kw != Kw::TABLE,
            _ => true,
        }
    }

    fn group_item(&mut self) -> Result<GroupItem> {
        let at = self.here();
        let opens = self.peek(1).kind == Kind::Open;
        match self.kw() {
            Kw::CUBE if opens => {
                self.take();
                Ok(GroupItem::Cube(self.bracketed(Parser::expr)?, at))
            }
            Kw::ROLLUP if opens => {
                self.take();
                Ok(GroupItem::Rollup(self.bracketed(Parser::expr)?, at))
            }
            Kw::GROUPING if self.peek_is(1, Kw::SETS) => {
                self.take();
                self.take();
                let sets = self.level(|parser| parser.bracketed(Parser::group_item))?;
                Ok(GroupItem::GroupingSets(sets, at))
            }
            _ if self.kind() == Kind::Open && self.peek(1).kind == Kind::Close => {
                self.take();
                self.take();
                Ok(GroupItem::Empty(at))
            }
            _ => self.expr().map(GroupItem::Expr),
        }
    }
}

fn empty_select() -> Select {
    Select {
        distinct: None,
        targets: Vec::new(),
        into: None,
        from: Vec::new(),
        selection: None,
        group_by: Vec::new(),
        group_distinct: false,
        having: None,
        windows: Vec::new(),
    }
}

/// Returns a query as an operand: without a node of its own where its parentheses say nothing.
fn operand_body(query: SelectStmt) -> SelectBody {
    let is_plain =
        query.with.is_none() && query.order_by.is_empty() && query.limit.is_none() && query.locking.is_empty();
    match query.body {
        body @ (SelectBody::Select(_) | SelectBody::Values(_) | SelectBody::Nested(_)) if is_plain => body,
        _ => SelectBody::Nested(Box::new(query)),
    }
}
