//! Calls: functions with a notation of their own, aggregates, window functions, and the general form.

use super::keyword::Kw;
use super::lexer::{Kind, Token};
use super::parser::Parser;
use crate::error::{Problem, Result};
use crate::tree::{
    CastType, Expr, ExprKind, Function, Interval, JsonValue, Literal, MatchMode, OnMissing, Over, TemporalKind,
    TrimSide, Unit, WeightPad,
};

/// Aggregates, and whether they take DISTINCT.
const AGGREGATES: [(Kw, bool); 18] = [
    (Kw::AVG, true),
    (Kw::BIT_AND, false),
    (Kw::BIT_OR, false),
    (Kw::BIT_XOR, false),
    (Kw::COUNT, true),
    (Kw::GROUP_CONCAT, true),
    (Kw::JSON_ARRAYAGG, false),
    (Kw::JSON_OBJECTAGG, false),
    (Kw::MAX, true),
    (Kw::MIN, true),
    (Kw::STD, false),
    (Kw::STDDEV, false),
    (Kw::STDDEV_POP, false),
    (Kw::STDDEV_SAMP, false),
    (Kw::SUM, true),
    (Kw::VAR_POP, false),
    (Kw::VAR_SAMP, false),
    (Kw::VARIANCE, false),
];

/// Window functions that are no aggregates: least and most arguments, and whether NULLs may be ignored.
const WINDOW_FUNCTIONS: [(Kw, usize, usize, bool); 11] = [
    (Kw::ROW_NUMBER, 0, 0, false),
    (Kw::RANK, 0, 0, false),
    (Kw::DENSE_RANK, 0, 0, false),
    (Kw::CUME_DIST, 0, 0, false),
    (Kw::PERCENT_RANK, 0, 0, false),
    (Kw::NTILE, 1, 1, false),
    (Kw::LEAD, 1, 3, true),
    (Kw::LAG, 1, 3, true),
    (Kw::FIRST_VALUE, 1, 1, true),
    (Kw::LAST_VALUE, 1, 1, true),
    (Kw::NTH_VALUE, 2, 2, true),
];

/// Reserved words, and words that are functions before a parenthesis, with the general form: least and most arguments.
const GENERAL: [(Kw, usize, usize); 40] = [
    (Kw::ASCII, 1, 1),
    (Kw::CHARSET, 1, 1),
    (Kw::COALESCE, 1, usize::MAX),
    (Kw::COLLATION, 1, 1),
    (Kw::DATABASE, 0, 0),
    (Kw::DATE, 1, 1),
    (Kw::DAY, 1, 1),
    (Kw::FORMAT, 2, 3),
    (Kw::GEOMCOLLECTION, 0, usize::MAX),
    (Kw::GEOMETRYCOLLECTION, 0, usize::MAX),
    (Kw::GROUPING, 1, usize::MAX),
    (Kw::HOUR, 1, 1),
    (Kw::IF, 3, 3),
    (Kw::INSERT, 4, 4),
    (Kw::LEFT, 2, 2),
    (Kw::LINESTRING, 1, usize::MAX),
    (Kw::LOG, 1, 2),
    (Kw::MICROSECOND, 1, 1),
    (Kw::MINUTE, 1, 1),
    (Kw::MOD, 2, 2),
    (Kw::MONTH, 1, 1),
    (Kw::MULTILINESTRING, 1, usize::MAX),
    (Kw::MULTIPOINT, 1, usize::MAX),
    (Kw::MULTIPOLYGON, 1, usize::MAX),
    (Kw::POINT, 2, 2),
    (Kw::POLYGON, 1, usize::MAX),
    (Kw::QUARTER, 1, 1),
    (Kw::REPEAT, 2, 2),
    (Kw::REPLACE, 3, 3),
    (Kw::REVERSE, 1, 1),
    (Kw::RIGHT, 2, 2),
    (Kw::ROW_COUNT, 0, 0),
    (Kw::SCHEMA, 0, 0),
    (Kw::SECOND, 1, 1),
    (Kw::TIME, 1, 1),
    (Kw::TIMESTAMP, 1, 2),
    (Kw::TRUNCATE, 2, 2),
    (Kw::USER, 0, 0),
    (Kw::WEEK, 1, 2),
    (Kw::YEAR, 1, 1),
];

impl Parser<'_> {
    /// The call or bare function that begins with this keyword; None: it is an identifier here.
    #[inline(never)]
    pub(super) fn special(&mut self, token: Token, next: Token) -> Result<Option<ExprKind>> {
        let kw = token.kw;
        let opens = next.kind == Kind::Open;
        match kw {
            Kw::CURRENT_USER | Kw::CURRENT_DATE | Kw::UTC_DATE => {
                self.take();
                if self.accept(Kind::Open) {
                    self.expect(Kind::Close)?;
                    return Ok(Some(plain(kw, Vec::new())));
                }
                return Ok(Some(bare(kw)));
            }
            Kw::CURRENT_TIMESTAMP
            | Kw::CURRENT_TIME
            | Kw::LOCALTIME
            | Kw::LOCALTIMESTAMP
            | Kw::UTC_TIME
            | Kw::UTC_TIMESTAMP => {
                self.take();
                if self.at(Kind::Open) {
                    return self.scaled(kw).map(Some);
                }
                return Ok(Some(bare(kw)));
            }
            _ => {}
        }
        if !opens {
            return Ok(None);
        }
        if let Some((_, distinct)) = AGGREGATES.iter().find(|(known, _)| *known == kw) {
            return self.aggregate(kw, *distinct).map(Some);
        }
        if let Some((_, least, most, nulls)) = WINDOW_FUNCTIONS.iter().find(|(known, ..)| *known == kw) {
            return self.window_function(kw, *least, *most, *nulls).map(Some);
        }
        if let Some((_, least, most)) = GENERAL.iter().find(|(known, ..)| *known == kw) {
            self.take();
            let arguments = self.arguments()?;
            if !(*least..=*most).contains(&arguments.len()) {
                return Err(self.error_at(self.last_end - 1));
            }
            return Ok(Some(plain(kw, arguments)));
        }
        let kind = match kw {
            Kw::NOW | Kw::SYSDATE | Kw::CURTIME => {
                self.take();
                self.scaled(kw)?
            }
            Kw::CURDATE | Kw::SESSION_USER | Kw::SYSTEM_USER => {
                self.take();
                self.take();
                self.expect(Kind::Close)?;
                plain(kw, Vec::new())
            }
            Kw::CAST => self.cast()?,
            Kw::CONVERT => self.convert()?,
            Kw::EXTRACT => {
                self.open();
                let unit = self.unit()?;
                self.expect_word(Kw::FROM)?;
                let operand = Box::new(self.expr()?);
                self.expect(Kind::Close)?;
                ExprKind::Extract { unit, operand }
            }
            Kw::DATE_ADD | Kw::DATE_SUB | Kw::ADDDATE | Kw::SUBDATE => self.date_shift(kw)?,
            Kw::TIMESTAMPADD | Kw::TIMESTAMPDIFF => self.timestamp(kw)?,
            Kw::GET_FORMAT => {
                self.open();
                let of = match self.take().kw {
                    Kw::DATE => TemporalKind::Date,
                    Kw::TIME => TemporalKind::Time,
                    Kw::DATETIME => TemporalKind::DateTime,
                    Kw::TIMESTAMP => TemporalKind::Timestamp,
                    _ => return Err(self.error_at(self.last_end)),
                };
                self.expect(Kind::Comma)?;
                let region = Box::new(self.expr()?);
                self.expect(Kind::Close)?;
                ExprKind::GetFormat { of, region }
            }
            Kw::POSITION => {
                self.open();
                let needle = self.bit_expr()?;
                self.expect_word(Kw::IN)?;
                let text = self.expr()?;
                self.expect(Kind::Close)?;
                ExprKind::Function(Box::new(Function::plain("locate", vec![needle, text])))
            }
            Kw::SUBSTRING | Kw::SUBSTR | Kw::MID => self.substring(kw)?,
            Kw::TRIM => self.trim()?,
            Kw::CHAR | Kw::CHARACTER => {
                self.open();
                let numbers = self.exprs()?;
                let charset = if self.word(Kw::USING) { Some(self.charset_name()?) } else { None };
                self.expect(Kind::Close)?;
                ExprKind::Char { numbers, charset }
            }
            Kw::WEIGHT_STRING => self.weight_string()?,
            Kw::JSON_VALUE => self.json_value()?,
            _ => return Ok(None),
        };
        Ok(Some(kind))
    }

    /// Takes the function's name and its parenthesis.
    fn open(&mut self) {
        self.take();
        self.take();
    }

    /// `(a, b)`, `()`.
    #[inline(never)]
    fn arguments(&mut self) -> Result<Vec<Expr>> {
        self.expect(Kind::Open)?;
        if self.accept(Kind::Close) {
            return Ok(Vec::new());
        }
        let arguments = self.exprs()?;
        self.expect(Kind::Close)?;
        Ok(arguments)
    }

    /// `NOW(6)`: the digits are a literal.
    #[inline(never)]
    fn scaled(&mut self, kw: Kw) -> Result<ExprKind> {
        self.expect(Kind::Open)?;
        let mut arguments = Vec::new();
        if !self.at(Kind::Close) {
            let start = self.token().start;
            let scale = self.number()?;
            arguments.push(self.make(ExprKind::Literal(Literal::Integer(scale)), start));
        }
        self.expect(Kind::Close)?;
        Ok(plain(kw, arguments))
    }

    /// A call by a name without grammar of its own.
    #[inline(never)]
    pub(super) fn call(&mut self, schema: Option<String>, name: String, start: u32) -> Result<Expr> {
        self.expect(Kind::Open)?;
        let mut arguments = Vec::new();
        if !self.at(Kind::Close) {
            arguments = self.list(|parser| {
                let argument = parser.expr()?;
                // A loadable function's argument may have an alias; there are none of these.
                if parser.word(Kw::AS) || parser.at_name() || parser.at(Kind::String) {
                    parser.text_or_name()?;
                    return Err(parser.problem(Problem::AliasedArgument(name.clone())));
                }
                Ok(argument)
            })?;
        }
        self.expect(Kind::Close)?;
        let function = Function { schema, ..Function::plain(name, arguments) };
        Ok(self.make(ExprKind::Function(Box::new(function)), start))
    }

    #[inline(never)]
    fn aggregate(&mut self, kw: Kw, takes_distinct: bool) -> Result<ExprKind> {
        self.open();
        let mut function = Function::plain(kw.text().to_ascii_lowercase(), Vec::new());
        if kw == Kw::COUNT && self.at(Kind::Star) {
            self.take();
            function.star = true;
        } else if takes_distinct && self.word(Kw::DISTINCT) {
            function.distinct = true;
            let takes_list = matches!(kw, Kw::COUNT | Kw::GROUP_CONCAT);
            function.arguments = if takes_list { self.exprs()? } else { vec![self.expr()?] };
        } else {
            if kw == Kw::COUNT && self.kw() == Kw::ALL && self.peek(1).kind == Kind::Star {
                self.take();
                self.take();
                function.star = true;
            } else {
                if kw != Kw::GROUP_CONCAT {
                    self.word(Kw::ALL);
                }
                function.arguments = vec![self.expr()?];
                if kw == Kw::GROUP_CONCAT {
                    while self.accept(Kind::Comma) {
                        function.arguments.push(self.expr()?);
                    }
                } else if kw == Kw::JSON_OBJECTAGG {
                    self.expect(Kind::Comma)?;
                    self.word(Kw::ALL);
                    function.arguments.push(self.expr()?);
                }
            }
        }
        if kw == Kw::GROUP_CONCAT {
            if self.words(&[Kw::ORDER, Kw::BY]) {
                function.order_by = self.order_items()?;
            }
            if self.word(Kw::SEPARATOR) {
                function.separator = Some(match self.kind() {
                    Kind::Hex | Kind::Bits => {
                        let (Literal::Hex(bytes) | Literal::Bits(bytes)) = self.literal()? else {
                            return Err(self.error());
                        };
                        String::from_utf8(bytes).map_err(|_| self.error())?
                    }
                    _ => self.string()?,
                });
            }
        }
        self.expect(Kind::Close)?;
        function.over = self.over()?;
        Ok(ExprKind::Function(Box::new(function)))
    }

    #[inline(never)]
    fn over(&mut self) -> Result<Option<Over>> {
        if !self.word(Kw::OVER) {
            return Ok(None);
        }
        if self.at(Kind::Open) {
            return Ok(Some(Over::Window(Box::new(self.level(Parser::window)?))));
        }
        self.ident().map(|name| Some(Over::Named(name)))
    }

    #[inline(never)]
    fn window_function(&mut self, kw: Kw, least: usize, most: usize, takes_nulls: bool) -> Result<ExprKind> {
        self.take();
        let arguments = self.arguments()?;
        if !(least..=most).contains(&arguments.len()) {
            return Err(self.error_at(self.last_end - 1));
        }
        let is_stable = |argument: &Expr| match &argument.kind {
            ExprKind::Literal(Literal::Integer(_)) | ExprKind::Parameter(_) | ExprKind::UserVariable(_) => true,
            // A stored program's variable would be named so.
            ExprKind::Column(column) => column.table.is_none(),
            _ => false,
        };
        let stable = match kw {
            Kw::NTILE => 0,
            Kw::LEAD | Kw::LAG => 1,
            _ => usize::MAX,
        };
        if let Some(argument) = arguments.get(stable).filter(|argument| !is_stable(argument)) {
            return Err(self.error_at(argument.span.start));
        }
        let mut function = Function::plain(kw.text().to_ascii_lowercase(), arguments);
        if kw == Kw::NTH_VALUE && self.word(Kw::FROM) {
            function.from_last = self.word(Kw::LAST);
            if !function.from_last {
                self.expect_word(Kw::FIRST)?;
            }
        }
        if takes_nulls && let Some(treatment) = self.any(&[Kw::RESPECT, Kw::IGNORE]) {
            self.expect_word(Kw::NULLS)?;
            function.ignore_nulls = treatment == Kw::IGNORE;
        }
        function.over = self.over()?;
        if function.over.is_none() {
            return Err(self.error());
        }
        Ok(ExprKind::Function(Box::new(function)))
    }

    #[inline(never)]
    fn cast(&mut self) -> Result<ExprKind> {
        self.open();
        let operand = Box::new(self.expr()?);
        if self.words(&[Kw::AT, Kw::TIME, Kw::ZONE]) {
            self.word(Kw::INTERVAL);
            let zone = self.string()?;
            self.expect_words(&[Kw::AS, Kw::DATETIME])?;
            let scale = self.length()?;
            self.expect(Kind::Close)?;
            return Ok(ExprKind::CastAtZone { operand, zone, scale });
        }
        self.expect_word(Kw::AS)?;
        let to = self.cast_type()?;
        let array = self.word(Kw::ARRAY);
        self.expect(Kind::Close)?;
        Ok(ExprKind::Cast { operand, to, array })
    }

    #[inline(never)]
    fn convert(&mut self) -> Result<ExprKind> {
        self.open();
        let operand = Box::new(self.expr()?);
        let kind = if self.word(Kw::USING) {
            ExprKind::ConvertUsing { operand, charset: self.charset_name()? }
        } else {
            self.expect(Kind::Comma)?;
            ExprKind::Cast { operand, to: self.cast_type()?, array: false }
        };
        self.expect(Kind::Close)?;
        Ok(kind)
    }

    #[inline(never)]
    fn date_shift(&mut self, kw: Kw) -> Result<ExprKind> {
        self.open();
        let operand = Box::new(self.expr()?);
        self.expect(Kind::Comma)?;
        let takes_days = matches!(kw, Kw::ADDDATE | Kw::SUBDATE);
        let interval = if self.kw() == Kw::INTERVAL && !takes_days {
            self.interval()?
        } else if takes_days {
            self.interval_or_days()?
        } else {
            return Err(self.error());
        };
        self.expect(Kind::Close)?;
        let subtract = matches!(kw, Kw::DATE_SUB | Kw::SUBDATE);
        Ok(ExprKind::DateShift { operand, interval: Box::new(interval), subtract })
    }

    /// The second argument of ADDDATE: an interval, or a number of days.
    fn interval_or_days(&mut self) -> Result<Interval> {
        if self.kw() == Kw::INTERVAL {
            return self.interval();
        }
        Ok(Interval { value: self.expr()?, unit: Unit::Day })
    }

    #[inline(never)]
    fn timestamp(&mut self, kw: Kw) -> Result<ExprKind> {
        self.open();
        let token = self.token();
        let bare = super::expr::without_prefix(self.text_of(token));
        let unit = Unit::by_name(bare).filter(|unit| (*unit as u8) <= Unit::Year as u8);
        let unit = unit.filter(|_| token.kind == Kind::Word).ok_or_else(|| self.error())?;
        self.take();
        self.expect(Kind::Comma)?;
        let first = Box::new(self.expr()?);
        self.expect(Kind::Comma)?;
        let second = Box::new(self.expr()?);
        self.expect(Kind::Close)?;
        Ok(match kw {
            Kw::TIMESTAMPADD => ExprKind::TimestampAdd { unit, count: first, operand: second },
            _ => ExprKind::TimestampDiff { unit, from: first, to: second },
        })
    }

    /// `SUBSTRING(text, from, length)`, `SUBSTRING(text FROM from FOR length)`.
    #[inline(never)]
    fn substring(&mut self, kw: Kw) -> Result<ExprKind> {
        self.open();
        let mut arguments = vec![self.expr()?];
        let by_words = self.word(Kw::FROM);
        if !by_words {
            self.expect(Kind::Comma)?;
        }
        arguments.push(self.expr()?);
        if if by_words { self.word(Kw::FOR) } else { self.accept(Kind::Comma) } {
            arguments.push(self.expr()?);
        }
        self.expect(Kind::Close)?;
        let name = if kw == Kw::MID { "mid" } else { "substr" };
        Ok(ExprKind::Function(Box::new(Function::plain(name, arguments))))
    }

    /// `TRIM([{BOTH | LEADING | TRAILING}] [remove] FROM text)`, `TRIM(text)`.
    #[inline(never)]
    fn trim(&mut self) -> Result<ExprKind> {
        self.open();
        let side = match self.any(&[Kw::BOTH, Kw::LEADING, Kw::TRAILING]) {
            Some(Kw::LEADING) => Some(TrimSide::Leading),
            Some(Kw::TRAILING) => Some(TrimSide::Trailing),
            Some(_) => Some(TrimSide::Both),
            None => None,
        };
        let (mut remove, mut operand) = (None, None);
        if side.is_none() || self.kw() != Kw::FROM {
            operand = Some(Box::new(self.expr()?));
        }
        if self.kw() == Kw::FROM || side.is_some() {
            self.expect_word(Kw::FROM)?;
            remove = operand;
            operand = Some(Box::new(self.expr()?));
        }
        self.expect(Kind::Close)?;
        let operand = operand.ok_or_else(|| self.error())?;
        Ok(ExprKind::Trim { side: side.unwrap_or(TrimSide::Both), remove, operand })
    }

    #[inline(never)]
    fn weight_string(&mut self) -> Result<ExprKind> {
        self.open();
        let operand = Box::new(self.expr()?);
        let mut pad = None;
        if self.word(Kw::AS) {
            let kw = self.any(&[Kw::CHAR, Kw::BINARY]).ok_or_else(|| self.error())?;
            let length = self.length()?.ok_or_else(|| self.error())?;
            pad = Some(if kw == Kw::CHAR { WeightPad::Char(length) } else { WeightPad::Binary(length) });
        }
        self.expect(Kind::Close)?;
        Ok(ExprKind::WeightString { operand, pad })
    }

    #[inline(never)]
    fn json_value(&mut self) -> Result<ExprKind> {
        self.open();
        let document = self.simple_expr()?;
        self.expect(Kind::Comma)?;
        let start = self.token().start;
        let path = match self.kind() {
            Kind::Introducer => self.introduced()?,
            _ => ExprKind::Literal(Literal::String(self.string()?)),
        };
        let path = self.make(path, start);
        let returning: Option<CastType> = if self.word(Kw::RETURNING) { Some(self.cast_type()?) } else { None };
        let (on_empty, on_error) = self.on_missing()?;
        self.expect(Kind::Close)?;
        Ok(ExprKind::JsonValue(Box::new(JsonValue { document, path, returning, on_empty, on_error })))
    }

    /// `{NULL | ERROR | DEFAULT literal} ON EMPTY`, then the same ON ERROR.
    pub(super) fn on_missing(&mut self) -> Result<(Option<OnMissing>, Option<OnMissing>)> {
        let (mut on_empty, mut on_error) = (None, None);
        while on_error.is_none() && matches!(self.kw(), Kw::NULL | Kw::ERROR | Kw::DEFAULT) {
            let answer = match self.take().kw {
                Kw::NULL => OnMissing::Null,
                Kw::ERROR => OnMissing::Error,
                _ => OnMissing::Default(self.signed_literal()?),
            };
            self.expect_word(Kw::ON)?;
            if on_empty.is_none() && self.word(Kw::EMPTY) {
                on_empty = Some(answer);
            } else {
                self.expect_word(Kw::ERROR)?;
                on_error = Some(answer);
            }
        }
        Ok((on_empty, on_error))
    }

    /// A literal with a sign: a negative number is a decimal or float with its sign.
    pub(super) fn signed_literal(&mut self) -> Result<Literal> {
        if self.accept(Kind::Minus) {
            return Ok(match self.literal()? {
                Literal::Integer(number) => Literal::Decimal(format!("-{number}")),
                Literal::Decimal(digits) => Literal::Decimal(format!("-{digits}")),
                Literal::Float(digits) => Literal::Float(format!("-{digits}")),
                _ => return Err(self.error()),
            });
        }
        self.accept(Kind::Plus);
        let of = match self.kw() {
            Kw::DATE => TemporalKind::Date,
            Kw::TIME => TemporalKind::Time,
            Kw::TIMESTAMP => TemporalKind::Timestamp,
            _ => return self.literal(),
        };
        self.take();
        Ok(Literal::Temporal(of, self.string()?))
    }

    #[inline(never)]
    pub(super) fn match_against(&mut self) -> Result<ExprKind> {
        self.take();
        let brackets = self.accept(Kind::Open);
        let columns = self.list(Parser::column_name)?;
        if brackets {
            self.expect(Kind::Close)?;
        }
        self.expect_word(Kw::AGAINST)?;
        self.expect(Kind::Open)?;
        let against = Box::new(self.bit_expr()?);
        let mode = if self.word(Kw::IN) {
            if self.word(Kw::BOOLEAN) {
                self.expect_word(Kw::MODE)?;
                MatchMode::Boolean
            } else {
                self.expect_word(Kw::NATURAL)?;
                self.expect_words(&[Kw::LANGUAGE, Kw::MODE])?;
                if self.words(&[Kw::WITH, Kw::QUERY]) {
                    self.expect_word(Kw::EXPANSION)?;
                    MatchMode::NaturalWithExpansion
                } else {
                    MatchMode::Natural
                }
            }
        } else if self.words(&[Kw::WITH, Kw::QUERY]) {
            self.expect_word(Kw::EXPANSION)?;
            MatchMode::Expansion
        } else {
            MatchMode::Natural
        };
        self.expect(Kind::Close)?;
        Ok(ExprKind::Match { columns, against, mode })
    }
}

fn plain(kw: Kw, arguments: Vec<Expr>) -> ExprKind {
    ExprKind::Function(Box::new(Function::plain(kw.text().to_ascii_lowercase(), arguments)))
}

fn bare(kw: Kw) -> ExprKind {
    ExprKind::Function(Box::new(Function { bare: true, ..Function::plain(kw.text().to_ascii_lowercase(), Vec::new()) }))
}
