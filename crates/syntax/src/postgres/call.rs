//! Calls: arguments, the clauses of aggregates and windows, and the functions with a notation of their own.

use super::error::Result;
use super::expr::point;
use super::keyword::Kw;
use super::lexer::Kind;
use super::parser::Parser;
use super::tree::{
    AnyName, Argument, Const, Expr, ExprKind, Frame, FrameBound, FrameExclusion, FrameUnit, FuncCall, Ident, Location,
    NullsOrder, Over, SortBy, SortDirection, TypeName, WindowDef,
};

impl Parser<'_> {
    /// func_application: `name(arguments)` without the clauses behind it.
    pub(super) fn application(&mut self, name: AnyName) -> Result<FuncCall> {
        self.application_and_order(name).map(|(call, _)| call)
    }

    /// The same, and where its ORDER BY is.
    pub(super) fn application_and_order(&mut self, name: AnyName) -> Result<(FuncCall, Location)> {
        let mut order_at = name.at;
        self.expect(Kind::Open)?;
        let mut call = FuncCall::plain(name, Vec::new());
        match self.kind() {
            Kind::Close => {}
            Kind::Star => {
                self.take();
                call.star = true;
            }
            _ => {
                call.distinct = self.any(&[Kw::ALL, Kw::DISTINCT]) == Some(Kw::DISTINCT);
                self.arguments(&mut call)?;
                order_at = self.here();
                call.order_by = self.sort_clause()?;
            }
        }
        self.expect(Kind::Close)?;
        self.grow()?;
        Ok((call, order_at))
    }

    fn arguments(&mut self, call: &mut FuncCall) -> Result<()> {
        loop {
            if self.kw() == Kw::VARIADIC {
                self.take();
                call.variadic = true;
            }
            let argument = self.argument()?;
            call.arguments.push(argument);
            if call.variadic || !self.accept(Kind::Comma) {
                return Ok(());
            }
        }
    }

    /// func_arg_expr
    pub(super) fn argument(&mut self) -> Result<Argument> {
        let is_name = self.kind() == Kind::Quoted || self.kind() == Kind::Word && self.kw().is_function_name();
        let is_named = is_name && matches!(self.peek(1).kind, Kind::ColonEquals | Kind::EqualsGreater);
        let name = if is_named {
            let name = self.function_word()?;
            self.take();
            Some(name)
        } else {
            None
        };
        Ok(Argument { name, value: self.expr()? })
    }

    /// WITHIN GROUP, FILTER and OVER behind a call.
    pub(super) fn call_clauses(&mut self, mut call: FuncCall) -> Result<FuncCall> {
        if self.kw() == Kw::WITHIN {
            let at = self.here();
            self.take();
            self.expect_word(Kw::GROUP)?;
            self.expect(Kind::Open)?;
            if self.kw() != Kw::ORDER {
                return Err(self.error());
            }
            let order_by = self.sort_clause()?;
            self.expect(Kind::Close)?;
            let conflict = if !call.order_by.is_empty() {
                "cannot use multiple ORDER BY clauses with WITHIN GROUP"
            } else if call.distinct {
                "cannot use DISTINCT with WITHIN GROUP"
            } else if call.variadic {
                "cannot use VARIADIC with WITHIN GROUP"
            } else {
                ""
            };
            if !conflict.is_empty() {
                return Err(self.invalid("42601", conflict, at));
            }
            call.order_by = order_by;
            call.within_group = true;
        }
        if self.word(Kw::FILTER) {
            self.expect(Kind::Open)?;
            self.expect_word(Kw::WHERE)?;
            call.filter = Some(self.expr()?);
            self.expect(Kind::Close)?;
            self.grow()?;
        }
        if self.word(Kw::OVER) {
            call.over = Some(if self.kind() == Kind::Open {
                Over::Window(Box::new(self.window()?))
            } else {
                Over::Named(self.column_name()?)
            });
            self.grow()?;
        }
        Ok(call)
    }

    /// window_specification, in its parentheses.
    pub(super) fn window(&mut self) -> Result<WindowDef> {
        let at = self.here();
        self.expect(Kind::Open)?;
        let is_clause = matches!(self.kw(), Kw::PARTITION | Kw::RANGE | Kw::ROWS | Kw::GROUPS);
        let base = if !is_clause && self.at_column_name() { Some(self.take_name()?) } else { None };
        let partition_by = if self.word(Kw::PARTITION) {
            self.expect_word(Kw::BY)?;
            self.exprs()?
        } else {
            Vec::new()
        };
        let order_by = self.sort_clause()?;
        let frame = self.frame()?;
        self.expect(Kind::Close)?;
        Ok(WindowDef { base, partition_by, order_by, frame, at })
    }

    fn frame(&mut self) -> Result<Option<Frame>> {
        let at = self.here();
        let unit = match self.any(&[Kw::RANGE, Kw::ROWS, Kw::GROUPS]) {
            Some(Kw::RANGE) => FrameUnit::Range,
            Some(Kw::ROWS) => FrameUnit::Rows,
            Some(_) => FrameUnit::Groups,
            None => return Ok(None),
        };
        let between = self.word(Kw::BETWEEN);
        let start_at = self.here();
        let start = self.frame_bound()?;
        let mut end_at = start_at;
        let end = if between {
            self.expect_word(Kw::AND)?;
            end_at = self.here();
            Some(self.frame_bound()?)
        } else {
            None
        };
        self.check_frame(&start, end.as_ref(), start_at, end_at)?;
        Ok(Some(Frame { unit, start, end, exclusion: self.frame_exclusion()?, at }))
    }

    fn frame_exclusion(&mut self) -> Result<FrameExclusion> {
        if !self.word(Kw::EXCLUDE) {
            return Ok(FrameExclusion::NoOthers);
        }
        Ok(match self.any(&[Kw::CURRENT, Kw::GROUP, Kw::TIES, Kw::NO]) {
            Some(Kw::CURRENT) => {
                self.expect_word(Kw::ROW)?;
                FrameExclusion::CurrentRow
            }
            Some(Kw::GROUP) => FrameExclusion::Group,
            Some(Kw::TIES) => FrameExclusion::Ties,
            Some(_) => {
                self.expect_word(Kw::OTHERS)?;
                FrameExclusion::NoOthers
            }
            None => return Err(self.error()),
        })
    }

    fn frame_bound(&mut self) -> Result<FrameBound> {
        if self.kw() == Kw::UNBOUNDED && matches!(self.peek(1).kw, Kw::PRECEDING | Kw::FOLLOWING) {
            self.take();
            let preceding = self.take().kw == Kw::PRECEDING;
            return Ok(if preceding { FrameBound::UnboundedPreceding } else { FrameBound::UnboundedFollowing });
        }
        if self.kw() == Kw::CURRENT && self.peek_is(1, Kw::ROW) {
            self.take();
            self.take();
            return Ok(FrameBound::CurrentRow);
        }
        let offset = Box::new(self.expr()?);
        match self.any(&[Kw::PRECEDING, Kw::FOLLOWING]) {
            Some(Kw::PRECEDING) => Ok(FrameBound::Preceding(offset)),
            Some(_) => Ok(FrameBound::Following(offset)),
            None => Err(self.error()),
        }
    }

    fn check_frame(
        &self,
        start: &FrameBound,
        end: Option<&FrameBound>,
        start_at: Location,
        end_at: Location,
    ) -> Result<()> {
        use FrameBound::*;
        let (message, at) = match (start, end) {
            (UnboundedFollowing, _) => ("frame start cannot be UNBOUNDED FOLLOWING", start_at),
            (_, Some(UnboundedPreceding)) => ("frame end cannot be UNBOUNDED PRECEDING", end_at),
            (Following(_), None) => ("frame starting from following row cannot end with current row", start_at),
            (CurrentRow, Some(Preceding(_))) => ("frame starting from current row cannot have preceding rows", end_at),
            (Following(_), Some(Preceding(_) | CurrentRow)) => {
                ("frame starting from following row cannot have preceding rows", end_at)
            }
            _ => return Ok(()),
        };
        Err(self.invalid("42P20", message, at))
    }

    /// opt_sort_clause
    pub(super) fn sort_clause(&mut self) -> Result<Vec<SortBy>> {
        if !self.word(Kw::ORDER) {
            return Ok(Vec::new());
        }
        self.expect_word(Kw::BY)?;
        self.list(Parser::sort_by)
    }

    fn sort_by(&mut self) -> Result<SortBy> {
        let expr = self.expr()?;
        let direction = if self.word(Kw::USING) {
            let at = self.here();
            if self.kind() == Kind::Word && self.kw() != Kw::OPERATOR {
                return Err(self.error());
            }
            let (mut op, _) = self.operator()?;
            op.at = at;
            SortDirection::Using(op)
        } else {
            self.direction()
        };
        Ok(SortBy { expr, direction, nulls: self.nulls_order() })
    }

    pub(super) fn direction(&mut self) -> SortDirection {
        match self.any(&[Kw::ASC, Kw::DESC]) {
            Some(Kw::ASC) => SortDirection::Ascending,
            Some(_) => SortDirection::Descending,
            None => SortDirection::Default,
        }
    }

    pub(super) fn nulls_order(&mut self) -> NullsOrder {
        if self.words(&[Kw::NULLS, Kw::FIRST]) {
            NullsOrder::First
        } else if self.words(&[Kw::NULLS, Kw::LAST]) {
            NullsOrder::Last
        } else {
            NullsOrder::Default
        }
    }

    /// Whether the word begins one of those functions, if a parenthesis follows.
    pub(super) fn begins_special_call(&self) -> bool {
        matches!(
            self.kw(),
            Kw::COALESCE
                | Kw::GREATEST
                | Kw::LEAST
                | Kw::NULLIF
                | Kw::XMLCONCAT
                | Kw::XMLELEMENT
                | Kw::XMLEXISTS
                | Kw::XMLFOREST
                | Kw::XMLPARSE
                | Kw::XMLPI
                | Kw::XMLROOT
                | Kw::XMLSERIALIZE
                | Kw::XMLTABLE
                | Kw::JSON_ARRAY
                | Kw::JSON_ARRAYAGG
                | Kw::JSON_OBJECT
                | Kw::JSON_OBJECTAGG
                | Kw::EXTRACT
                | Kw::OVERLAY
                | Kw::POSITION
                | Kw::SUBSTRING
                | Kw::TRIM
                | Kw::TREAT
                | Kw::NORMALIZE
        )
    }

    /// A function whose name is no function's: COALESCE, EXTRACT and so on. None: the word is none of them.
    pub(super) fn special_call(&mut self) -> Result<Option<Expr>> {
        let at = self.here();
        let start = at.0;
        let kw = self.kw();
        match kw {
            Kw::COALESCE | Kw::GREATEST | Kw::LEAST | Kw::GROUPING => {
                self.take();
                let list = self.bracketed(Parser::expr)?;
                let kind = match kw {
                    Kw::COALESCE => ExprKind::Coalesce(list),
                    Kw::GREATEST => ExprKind::Greatest(list),
                    Kw::LEAST => ExprKind::Least(list),
                    _ => ExprKind::Grouping(list),
                };
                return Ok(Some(self.make(kind, start)));
            }
            Kw::NULLIF => {
                self.take();
                self.expect(Kind::Open)?;
                let left = Box::new(self.expr()?);
                self.expect(Kind::Comma)?;
                let right = Box::new(self.expr()?);
                self.expect(Kind::Close)?;
                return Ok(Some(self.make(ExprKind::NullIf { left, right }, start)));
            }
            Kw::XMLCONCAT
            | Kw::XMLELEMENT
            | Kw::XMLEXISTS
            | Kw::XMLFOREST
            | Kw::XMLPARSE
            | Kw::XMLPI
            | Kw::XMLROOT
            | Kw::XMLSERIALIZE
            | Kw::XMLTABLE => return Err(self.unsupported(kw.text())),
            Kw::JSON_ARRAY | Kw::JSON_ARRAYAGG | Kw::JSON_OBJECT | Kw::JSON_OBJECTAGG => {
                self.take();
                self.expect(Kind::Open)?;
                let call = match kw {
                    Kw::JSON_OBJECT => self.json_object(at)?,
                    Kw::JSON_ARRAY => self.json_array(at)?,
                    _ => self.json_aggregate(kw == Kw::JSON_OBJECTAGG, at)?,
                };
                return Ok(Some(call));
            }
            Kw::EXTRACT | Kw::OVERLAY | Kw::POSITION | Kw::SUBSTRING | Kw::TRIM | Kw::TREAT | Kw::NORMALIZE => {}
            _ => return Ok(None),
        }
        self.take();
        self.expect(Kind::Open)?;
        let call = match kw {
            Kw::EXTRACT => self.extract(at)?,
            Kw::OVERLAY => self.overlay(at)?,
            Kw::POSITION => {
                let needle = self.b_expr()?;
                self.expect_word(Kw::IN)?;
                let text = self.b_expr()?;
                self.call_of("position", vec![text, needle], at, true)
            }
            Kw::SUBSTRING => self.substring(at)?,
            Kw::TRIM => self.trim(at)?,
            Kw::TREAT => {
                let value = self.expr()?;
                self.expect_word(Kw::AS)?;
                let ty = self.type_name()?;
                let name = ty.name.last().to_owned();
                self.call_of(&name, vec![value], at, false)
            }
            _ => {
                let mut arguments = vec![self.expr()?];
                if self.accept(Kind::Comma) {
                    let form = self.normal_form()?;
                    arguments.push(form.ok_or_else(|| self.error())?);
                }
                self.call_of("normalize", arguments, at, true)
            }
        };
        self.expect(Kind::Close)?;
        self.grow()?;
        Ok(Some(self.make(ExprKind::Function(Box::new(call)), start)))
    }

    fn call_of(&self, name: &str, arguments: Vec<Expr>, at: Location, sql_syntax: bool) -> FuncCall {
        let name = AnyName { parts: vec!["pg_catalog".to_owned(), name.to_owned()], at };
        FuncCall { sql_syntax, ..FuncCall::plain(name, arguments) }
    }

    fn extract(&mut self, at: Location) -> Result<FuncCall> {
        let start = self.token().start;
        let is_field = matches!(self.kw(), Kw::YEAR | Kw::MONTH | Kw::DAY | Kw::HOUR | Kw::MINUTE | Kw::SECOND);
        let field = if self.at_string() {
            self.string()?
        } else if is_field || self.kw() == Kw::OTHER && self.at_column_name() {
            self.take_name()?.value
        } else {
            return Err(self.error());
        };
        let field = self.make(ExprKind::Const(Const::String(field)), start);
        self.expect_word(Kw::FROM)?;
        let from = self.expr()?;
        Ok(self.call_of("extract", vec![field, from], at, true))
    }

    /// A call in the general notation of OVERLAY and SUBSTRING, of which the first argument may have been read.
    pub(super) fn general(&mut self, name: &str, first: Option<Argument>, at: Location) -> Result<FuncCall> {
        let mut call = self.call_of(name, Vec::new(), at, false);
        let Some(first) = first else { return Ok(call) };
        call.arguments.push(first);
        while self.accept(Kind::Comma) {
            let argument = self.argument()?;
            call.arguments.push(argument);
        }
        Ok(call)
    }

    /// The first argument of a function that has two notations: alone if it has no name.
    fn first_argument(&mut self) -> Result<Option<Argument>> {
        if self.kind() == Kind::Close {
            return Ok(None);
        }
        let depth = self.depth() + 1;
        let outer = std::mem::replace(&mut self.substring_depth, depth);
        let argument = self.argument()?;
        self.substring_depth = outer;
        Ok(Some(argument))
    }

    fn overlay(&mut self, at: Location) -> Result<FuncCall> {
        let first = self.first_argument()?;
        match first {
            Some(Argument { name: None, value }) if self.word(Kw::PLACING) => {
                let mut arguments = vec![value, self.expr()?];
                self.expect_word(Kw::FROM)?;
                arguments.push(self.expr()?);
                if self.word(Kw::FOR) {
                    arguments.push(self.expr()?);
                }
                Ok(self.call_of("overlay", arguments, at, true))
            }
            first => self.general("overlay", first, at),
        }
    }

    fn substring(&mut self, at: Location) -> Result<FuncCall> {
        let value = match self.first_argument()? {
            Some(Argument { name: None, value }) if matches!(self.kw(), Kw::FROM | Kw::FOR | Kw::SIMILAR) => value,
            first => return self.general("substring", first, at),
        };
        let mut arguments = vec![value];
        match self.take().kw {
            Kw::SIMILAR => {
                arguments.push(self.expr()?);
                self.expect_word(Kw::ESCAPE)?;
                arguments.push(self.expr()?);
            }
            Kw::FROM => {
                arguments.push(self.expr()?);
                if self.word(Kw::FOR) {
                    arguments.push(self.expr()?);
                }
            }
            _ => {
                let length = self.expr()?;
                if self.word(Kw::FROM) {
                    arguments.push(self.expr()?);
                    arguments.push(length);
                } else {
                    // The length is cast so that FOR with a text chooses no function of regular expressions.
                    let span = length.span;
                    let one = Expr { kind: ExprKind::Const(Const::Integer(1)), span: point(at) };
                    let to = Box::new(TypeName::system("int4", Location(span.start)));
                    let at = Location(span.start);
                    arguments.push(one);
                    arguments.push(Expr { kind: ExprKind::Cast { operand: Box::new(length), to, at }, span });
                    self.grow()?;
                }
            }
        }
        Ok(self.call_of("substring", arguments, at, true))
    }

    fn trim(&mut self, at: Location) -> Result<FuncCall> {
        let name = match self.any(&[Kw::BOTH, Kw::LEADING, Kw::TRAILING]) {
            Some(Kw::LEADING) => "ltrim",
            Some(Kw::TRAILING) => "rtrim",
            _ => "btrim",
        };
        if self.word(Kw::FROM) {
            let arguments = self.exprs()?;
            return Ok(self.call_of(name, arguments, at, true));
        }
        let first = self.expr()?;
        if self.word(Kw::FROM) {
            let mut arguments = self.exprs()?;
            arguments.push(first);
            return Ok(self.call_of(name, arguments, at, true));
        }
        let mut arguments = vec![first];
        while self.accept(Kind::Comma) {
            arguments.push(self.expr()?);
        }
        Ok(self.call_of(name, arguments, at, true))
    }

    /// The name of a window in WINDOW.
    pub(super) fn window_name(&mut self) -> Result<Ident> {
        self.column_name()
    }
}
