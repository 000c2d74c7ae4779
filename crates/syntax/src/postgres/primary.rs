//! Operands: names, literals, parentheses, CASE, ARRAY, ROW.

use super::error::{Problem, Result};
use super::keyword::{Category, Kw};
use super::lexer::Kind;
use super::parser::Parser;
use super::tree::{
    AnyName, Case, CaseWhen, ColumnRef, Const, Expr, ExprKind, Ident, Indirection, Location, SelectStmt,
    SqlValueFunction, TypeName,
};

/// The content of parentheses; the location is theirs.
pub(super) enum Brackets {
    Query(Box<SelectStmt>, u32),
    Expr(Expr),
    /// At least two items.
    Row(Vec<Expr>, u32),
}

impl Parser<'_> {
    #[inline(never)]
    pub(super) fn primary(&mut self) -> Result<Expr> {
        let token = self.token();
        let start = token.start;
        match token.kind {
            Kind::Integer | Kind::Float => {
                let number = self.number()?;
                Ok(self.make(ExprKind::Const(number), start))
            }
            Kind::String | Kind::EscapeString | Kind::UnicodeString | Kind::DollarString => {
                let text = self.string()?;
                Ok(self.make(ExprKind::Const(Const::String(text)), start))
            }
            Kind::Bits | Kind::HexBits => {
                let text = self.text_of(token);
                let is_hex = token.kind == Kind::HexBits;
                self.take();
                let digits = bit_digits(text);
                let digits = if is_hex { Const::HexBits(digits) } else { Const::Bits(digits) };
                Ok(self.make(ExprKind::Const(digits), start))
            }
            Kind::Parameter => self.parameter(),
            Kind::Open => self.parenthesised(),
            Kind::Word => self.word_expr(),
            Kind::Quoted | Kind::UnicodeQuoted => self.name_expr(),
            _ => Err(self.error()),
        }
    }

    fn parameter(&mut self) -> Result<Expr> {
        let token = self.token();
        let number = self.text_of(token)[1..].parse::<u32>().ok().filter(|number| i32::try_from(*number).is_ok());
        let Some(number) = number else { return Err(self.problem(Problem::Near("parameter number too large"))) };
        self.take();
        self.parameters = self.parameters.max(number);
        let param = self.make(ExprKind::Param(number), token.start);
        self.with_indirection(param)
    }

    #[inline(never)]
    fn parenthesised(&mut self) -> Result<Expr> {
        let brackets = self.level(|parser| parser.brackets(true))?;
        self.expr_of(brackets)
    }

    /// Returns the content of parentheses as an operand.
    pub(super) fn expr_of(&mut self, brackets: Brackets) -> Result<Expr> {
        match brackets {
            Brackets::Query(query, start) => {
                let query = self.make(ExprKind::Subquery(query), start);
                self.with_indirection(query)
            }
            Brackets::Expr(inner) => self.with_indirection(inner),
            Brackets::Row(items, start) => self.overlaps(items, false, start),
        }
    }

    /// Parentheses with whatever they hold: a query, an expression, or, if `lists`, several.
    pub(super) fn brackets(&mut self, lists: bool) -> Result<Brackets> {
        let start = self.expect(Kind::Open)?.start;
        let first = if self.begins_query() {
            let query = self.query()?;
            self.expect(Kind::Close)?;
            return Ok(Brackets::Query(Box::new(query), start));
        } else if self.kind() == Kind::Open {
            match self.level(|parser| parser.brackets(true))? {
                Brackets::Query(query, _) if self.kind() == Kind::Close => {
                    self.take();
                    return Ok(Brackets::Query(query, start));
                }
                Brackets::Query(query, at) if self.continues_query() => {
                    let query = self.query_after(*query, at)?;
                    self.expect(Kind::Close)?;
                    return Ok(Brackets::Query(Box::new(query), start));
                }
                inner => {
                    let left = self.expr_of(inner)?;
                    self.expr_after(left)?
                }
            }
        } else {
            self.expr()?
        };
        if self.kind() != Kind::Comma || !lists {
            self.expect(Kind::Close)?;
            return Ok(Brackets::Expr(first));
        }
        let mut items = vec![first];
        while self.accept(Kind::Comma) {
            items.push(self.expr()?);
        }
        self.expect(Kind::Close)?;
        Ok(Brackets::Row(items, start))
    }

    /// select_with_parens: a query in parentheses, whose location is that of the parenthesis.
    pub(super) fn bracketed_query(&mut self) -> Result<SelectStmt> {
        self.expect(Kind::Open)?;
        let query = if self.kind() == Kind::Open {
            let start = self.token().start;
            let inner = self.level(Parser::bracketed_query)?;
            if self.continues_query() { self.query_after(inner, start)? } else { inner }
        } else if self.begins_query() || self.kw() == Kw::VALUES {
            self.query()?
        } else {
            return Err(self.error());
        };
        self.expect(Kind::Close)?;
        Ok(query)
    }

    /// Subscripts and fields after an operand.
    fn with_indirection(&mut self, operand: Expr) -> Result<Expr> {
        if !matches!(self.kind(), Kind::Dot | Kind::OpenBracket) {
            return Ok(operand);
        }
        let start = operand.span.start;
        let links = self.indirection()?;
        self.grow()?;
        Ok(self.make(ExprKind::Indirection { operand: Box::new(operand), links }, start))
    }

    /// indirection: `.name`, `.*`, `[i]`, `[low:high]`.
    pub(super) fn indirection(&mut self) -> Result<Vec<Indirection>> {
        let mut links = Vec::new();
        loop {
            match self.kind() {
                Kind::Dot => {
                    self.take();
                    if self.accept(Kind::Star) {
                        links.push(Indirection::Star);
                        self.nothing_behind_star()?;
                    } else {
                        links.push(Indirection::Field(self.label()?));
                    }
                }
                Kind::OpenBracket => links.push(self.subscript()?),
                _ => return Ok(links),
            }
        }
    }

    /// Refuses fields and elements of `*`, behind all of them as PostgreSQL does.
    fn nothing_behind_star(&mut self) -> Result<()> {
        if !matches!(self.kind(), Kind::Dot | Kind::OpenBracket) {
            return Ok(());
        }
        self.indirection()?;
        Err(self.near("improper use of \"*\""))
    }

    fn subscript(&mut self) -> Result<Indirection> {
        self.expect(Kind::OpenBracket)?;
        let low = if self.kind() == Kind::Colon { None } else { Some(self.expr()?) };
        if low.is_some() && self.accept(Kind::CloseBracket) {
            return low.map(Indirection::Subscript).ok_or_else(|| self.error());
        }
        self.expect(Kind::Colon)?;
        let high = if self.kind() == Kind::CloseBracket { None } else { Some(Box::new(self.expr()?)) };
        self.expect(Kind::CloseBracket)?;
        Ok(Indirection::Slice { low: low.map(Box::new), high })
    }

    /// An operand that begins with a word.
    fn word_expr(&mut self) -> Result<Expr> {
        let token = self.token();
        match token.kw.category() {
            Category::Unreserved if token.kw == Kw::DOUBLE && self.peek_is(1, Kw::PRECISION) => {
                let ty = self.type_name_of_constant()?;
                self.typed_constant(ty)
            }
            Category::Unreserved => self.name_expr(),
            Category::Column => self.column_word(),
            Category::Function => self.function_word_expr(),
            Category::Reserved => self.reserved_word(),
        }
    }

    fn constant(&mut self, value: Const) -> Result<Expr> {
        let start = self.take().start;
        Ok(self.make(ExprKind::Const(value), start))
    }

    #[inline(never)]
    fn reserved_word(&mut self) -> Result<Expr> {
        let start = self.token().start;
        match self.kw() {
            Kw::NULL => self.constant(Const::Null),
            Kw::TRUE => self.constant(Const::Bool(true)),
            Kw::FALSE => self.constant(Const::Bool(false)),
            Kw::CASE => self.case(),
            Kw::CAST => self.cast(),
            Kw::ARRAY => self.array(),
            _ => match self.sql_value()? {
                Some(function) => Ok(self.make(ExprKind::SqlValue(function), start)),
                None => Err(self.error()),
            },
        }
    }

    /// CURRENT_DATE and the like, with their precision.
    pub(super) fn sql_value(&mut self) -> Result<Option<SqlValueFunction>> {
        use SqlValueFunction::*;
        let with_precision: fn(Option<i32>) -> SqlValueFunction = match self.kw() {
            Kw::CURRENT_TIME => CurrentTime,
            Kw::CURRENT_TIMESTAMP => CurrentTimestamp,
            Kw::LOCALTIME => LocalTime,
            Kw::LOCALTIMESTAMP => LocalTimestamp,
            kw => {
                let function = match kw {
                    Kw::CURRENT_DATE => CurrentDate,
                    Kw::CURRENT_ROLE => CurrentRole,
                    Kw::CURRENT_USER => CurrentUser,
                    Kw::USER => User,
                    Kw::SESSION_USER => SessionUser,
                    Kw::SYSTEM_USER => SystemUser,
                    Kw::CURRENT_CATALOG => CurrentCatalog,
                    Kw::CURRENT_SCHEMA => CurrentSchema,
                    _ => return Ok(None),
                };
                self.take();
                return Ok(Some(function));
            }
        };
        self.take();
        if !self.accept(Kind::Open) {
            return Ok(Some(with_precision(None)));
        }
        let precision = self.integer()?;
        self.expect(Kind::Close)?;
        Ok(Some(with_precision(Some(precision))))
    }

    #[inline(never)]
    fn case(&mut self) -> Result<Expr> {
        let start = self.take().start;
        let operand = if self.kw() == Kw::WHEN { None } else { Some(self.expr()?) };
        let mut arms = Vec::new();
        while self.word(Kw::WHEN) {
            let condition = self.expr()?;
            self.expect_word(Kw::THEN)?;
            arms.push(CaseWhen { condition, result: self.expr()? });
        }
        if arms.is_empty() {
            return Err(self.error());
        }
        let otherwise = if self.word(Kw::ELSE) { Some(self.expr()?) } else { None };
        self.expect_word(Kw::END)?;
        self.grow()?;
        Ok(self.make(ExprKind::Case(Box::new(Case { operand, arms, otherwise })), start))
    }

    fn cast(&mut self) -> Result<Expr> {
        let token = self.take();
        self.expect(Kind::Open)?;
        let operand = Box::new(self.expr()?);
        self.expect_word(Kw::AS)?;
        let to = Box::new(self.type_name()?);
        self.expect(Kind::Close)?;
        Ok(self.make(ExprKind::Cast { operand, to, at: Location(token.start) }, token.start))
    }

    #[inline(never)]
    fn array(&mut self) -> Result<Expr> {
        let start = self.take().start;
        if self.kind() == Kind::Open {
            let query = Box::new(self.level(Parser::bracketed_query)?);
            return Ok(self.make(ExprKind::ArrayQuery(query), start));
        }
        self.array_items(start)
    }

    /// `[a, b]`, `[[a], [b]]`
    fn array_items(&mut self, start: u32) -> Result<Expr> {
        self.expect(Kind::OpenBracket)?;
        let items = match self.kind() {
            Kind::CloseBracket => Vec::new(),
            Kind::OpenBracket => self.list(|parser| {
                let start = parser.token().start;
                parser.level(|parser| parser.array_items(start))
            })?,
            _ => self.exprs()?,
        };
        self.expect(Kind::CloseBracket)?;
        Ok(self.make(ExprKind::Array(items), start))
    }

    /// `ROW(a, b)`
    fn explicit_row(&mut self) -> Result<Expr> {
        let start = self.take().start;
        self.expect(Kind::Open)?;
        let items = if self.kind() == Kind::Close { Vec::new() } else { self.exprs()? };
        self.expect(Kind::Close)?;
        self.overlaps(items, true, start)
    }

    /// A row, or two of them with OVERLAPS between.
    fn overlaps(&mut self, items: Vec<Expr>, explicit: bool, start: u32) -> Result<Expr> {
        if self.kw() != Kw::OVERLAPS {
            return Ok(self.make(ExprKind::Row { items, explicit }, start));
        }
        let at = Location(self.take().start);
        let right_at = self.here();
        let is_row = self.kw() == Kw::ROW;
        if is_row {
            self.take();
        }
        self.expect(Kind::Open)?;
        let right = if is_row && self.kind() == Kind::Close { Vec::new() } else { self.exprs()? };
        if !is_row && right.len() < 2 {
            return Err(self.error());
        }
        self.expect(Kind::Close)?;
        for (list, side, at) in [(&items, "left", Location(start)), (&right, "right", right_at)] {
            if list.len() != 2 {
                let message = format!("wrong number of parameters on {side} side of OVERLAPS expression");
                return Err(self.invalid("42601", message, at));
            }
        }
        let arguments = items.into_iter().chain(right).collect();
        self.grow()?;
        Ok(self.system_call("overlaps", arguments, at, start))
    }

    /// A word that names no function: one of SQL's functions or types, or a column.
    #[inline(never)]
    fn column_word(&mut self) -> Result<Expr> {
        let kw = self.kw();
        let next = self.peek(1);
        let is_constant = match kw {
            Kw::INT | Kw::INTEGER | Kw::SMALLINT | Kw::BIGINT | Kw::REAL | Kw::BOOLEAN => false,
            Kw::FLOAT | Kw::DECIMAL | Kw::DEC | Kw::NUMERIC | Kw::INTERVAL => next.kind == Kind::Open,
            Kw::BIT | Kw::CHARACTER | Kw::CHAR | Kw::VARCHAR | Kw::NCHAR => {
                next.kind == Kind::Open || next.kw == Kw::VARYING
            }
            Kw::NATIONAL => matches!(next.kw, Kw::CHARACTER | Kw::CHAR),
            Kw::TIME | Kw::TIMESTAMP => {
                let is_zone = matches!(next.kw, Kw::WITH | Kw::WITHOUT) && self.peek_is(2, Kw::TIME);
                next.kind == Kind::Open || is_zone
            }
            Kw::ROW if next.kind == Kind::Open => return self.explicit_row(),
            Kw::EXISTS if next.kind == Kind::Open => {
                let start = self.take().start;
                let query = Box::new(self.level(Parser::bracketed_query)?);
                return Ok(self.make(ExprKind::Exists(query), start));
            }
            _ if next.kind == Kind::Open => {
                return match self.special_call()? {
                    Some(call) => Ok(call),
                    None => {
                        self.take();
                        Err(self.error())
                    }
                };
            }
            _ => return self.name_expr(),
        };
        let is_string =
            matches!(next.kind, Kind::String | Kind::EscapeString | Kind::UnicodeString | Kind::DollarString);
        if is_constant || is_string {
            let ty = self.type_name_of_constant()?;
            return self.typed_constant(ty);
        }
        self.name_expr()
    }

    fn type_name_of_constant(&mut self) -> Result<TypeName> {
        let at = self.here();
        if self.kw() == Kw::DOUBLE {
            self.take();
            self.take();
            return Ok(TypeName::system("float8", at));
        }
        if self.kw() == Kw::INTERVAL {
            self.take();
            let mut ty = TypeName::system("interval", at);
            if self.accept(Kind::Open) {
                let start = self.token().start;
                let precision = self.integer()?;
                ty.modifiers = vec![self.make(ExprKind::Const(Const::Integer(precision)), start)];
                self.expect(Kind::Close)?;
            }
            return Ok(ty);
        }
        let ty = self.sql_type(false)?;
        ty.ok_or_else(|| self.error())
    }

    /// The string after a type's name, and the fields after `interval '...'`.
    fn typed_constant(&mut self, mut ty: TypeName) -> Result<Expr> {
        let at = ty.at;
        let start = self.token().start;
        let text = self.string()?;
        let operand = Box::new(self.make(ExprKind::Const(Const::String(text)), start));
        let is_interval =
            ty.name.parts.len() == 2 && ty.name.parts[0] == "pg_catalog" && ty.name.parts[1] == "interval";
        if is_interval && ty.modifiers.is_empty() && self.text_begins_with_word(at) {
            self.interval_fields(&mut ty)?;
        }
        Ok(self.make(ExprKind::Cast { operand, to: Box::new(ty), at }, at.0))
    }

    /// Whether the type was written as the keyword INTERVAL, not as `pg_catalog.interval`.
    fn text_begins_with_word(&self, at: Location) -> bool {
        self.text.get(at.0 as usize..at.0 as usize + 8).is_some_and(|word| word.eq_ignore_ascii_case("interval"))
    }

    /// A word that may name a function, but no column.
    fn function_word_expr(&mut self) -> Result<Expr> {
        let start = self.token().start;
        let next = self.peek(1);
        if self.kw() == Kw::COLLATION && next.kw == Kw::FOR {
            let at = self.here();
            self.take();
            self.take();
            self.expect(Kind::Open)?;
            let operand = self.expr()?;
            self.expect(Kind::Close)?;
            return Ok(self.system_call("pg_collation_for", vec![operand], at, start));
        }
        let is_string =
            matches!(next.kind, Kind::String | Kind::EscapeString | Kind::UnicodeString | Kind::DollarString);
        if next.kind != Kind::Open && !is_string {
            if self.word(Kw::CURRENT_SCHEMA) {
                return Ok(self.make(ExprKind::SqlValue(SqlValueFunction::CurrentSchema), start));
            }
            if self.at_function_name() {
                self.take();
            }
            return Err(self.error());
        }
        let name = self.take_name()?;
        let name = AnyName { parts: vec![name.value], at: name.at };
        self.call_or_constant(name, start)
    }

    /// A column, a call, or a constant of a named type.
    #[inline(never)]
    fn name_expr(&mut self) -> Result<Expr> {
        let token = self.token();
        let start = token.start;
        let names_function = token.kind != Kind::Word || token.kw.is_function_name();
        let first = self.column_name()?;
        let at = first.at;
        let mut fields = vec![first.value];
        let mut star = false;
        while self.kind() == Kind::Dot {
            self.take();
            if self.accept(Kind::Star) {
                self.nothing_behind_star()?;
                star = true;
                break;
            }
            fields.push(self.label()?.value);
        }
        let names_function = names_function || fields.len() > 1;
        if !star && names_function && (self.kind() == Kind::Open || self.at_string()) {
            return self.call_or_constant(AnyName { parts: fields, at }, start);
        }
        let column = self.make(ExprKind::Column(ColumnRef { fields, star }), start);
        if star { Ok(column) } else { self.with_indirection(column) }
    }

    /// `name(...)`, `name 'text'`, `name(modifiers) 'text'`
    fn call_or_constant(&mut self, name: AnyName, start: u32) -> Result<Expr> {
        if self.at_string() {
            return self.typed_constant(TypeName::of(name));
        }
        let (call, order_at) = self.application_and_order(name)?;
        if self.at_string() {
            let is_plain = !call.variadic && !call.star && !call.distinct && !call.arguments.is_empty();
            if !is_plain {
                return Err(self.error());
            }
            let at = call.name.at;
            if let Some(argument) = call.arguments.iter().find(|argument| argument.name.is_some()) {
                let at = argument.name.as_ref().map_or(at, |name| name.at);
                return Err(self.invalid("42601", "type modifier cannot have parameter name", at));
            }
            if !call.order_by.is_empty() {
                return Err(self.invalid("42601", "type modifier cannot have ORDER BY", order_at));
            }
            let modifiers = call.arguments.into_iter().map(|argument| argument.value).collect();
            return self.typed_constant(TypeName { modifiers, ..TypeName::of(call.name) });
        }
        let call = self.call_clauses(call)?;
        Ok(self.make(ExprKind::Function(Box::new(call)), start))
    }

    /// A column's name with elements and fields of it, as the target of INSERT and UPDATE.
    pub(super) fn target_column(&mut self) -> Result<(Ident, Vec<Indirection>)> {
        let name = self.column_name()?;
        let links = self.indirection()?;
        Ok((name, links))
    }
}

/// The digits of a bit string, its parts put together.
fn bit_digits(text: &str) -> String {
    let mut digits = String::new();
    let mut inside = false;
    let mut lines = text[1..].chars().peekable();
    while let Some(letter) = lines.next() {
        match letter {
            '\'' => inside = !inside,
            letter if inside => digits.push(letter),
            '-' => while lines.next_if(|letter| !matches!(letter, '\n' | '\r')).is_some() {},
            _ => {}
        }
    }
    digits
}
