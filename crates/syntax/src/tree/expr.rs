//! Expressions.

use super::{CastType, Ident, Query, Span};

#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    Literal(Literal),
    /// `_utf8mb4'text'`: a string, hexadecimal or bit literal in a named character set.
    Introduced {
        charset: String,
        literal: Literal,
    },
    Column(Box<ColumnName>),
    /// `?`, numbered from 0 in the order of the text.
    Parameter(u32),
    /// `@name`
    UserVariable(String),
    /// `@@name`, `@@global.name`. The name may have two parts: `key_cache.key_buffer_size`.
    SystemVariable {
        scope: Option<Scope>,
        name: String,
    },
    /// `@name := value`
    Assign {
        name: String,
        value: Box<Expr>,
    },
    /// DEFAULT as the value of a column; only in VALUES and assignments.
    Default,
    /// `DEFAULT(column)`
    DefaultOf(Box<ColumnName>),
    /// `VALUES(column)` in ON DUPLICATE KEY UPDATE.
    InsertedValue(Box<ColumnName>),
    /// `(a, b)`, `ROW(a, b)`; at least two items.
    Row(Vec<Expr>),
    Unary {
        op: UnaryOp,
        operand: Box<Expr>,
    },
    /// At least two operands, none of which is itself an AND.
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Xor(Vec<Expr>),
    /// `||` under PIPES_AS_CONCAT.
    Concat(Vec<Expr>),
    /// Left-associative operators of equal precedence: `first op operand op operand ...`.
    Chain {
        first: Box<Expr>,
        links: Vec<Link>,
    },
    Compare {
        op: CompareOp,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    /// `left op ANY (query)`, `left op ALL (query)`.
    Quantified {
        op: CompareOp,
        left: Box<Expr>,
        all: bool,
        query: Box<Query>,
    },
    Is {
        operand: Box<Expr>,
        test: Truth,
        negated: bool,
    },
    Between {
        operand: Box<Expr>,
        low: Box<Expr>,
        high: Box<Expr>,
        negated: bool,
    },
    InList {
        operand: Box<Expr>,
        list: Vec<Expr>,
        negated: bool,
    },
    InQuery {
        operand: Box<Expr>,
        query: Box<Query>,
        negated: bool,
    },
    Like {
        operand: Box<Expr>,
        pattern: Box<Expr>,
        escape: Option<Box<Expr>>,
        negated: bool,
    },
    Regexp {
        operand: Box<Expr>,
        pattern: Box<Expr>,
        negated: bool,
    },
    SoundsLike {
        left: Box<Expr>,
        right: Box<Expr>,
    },
    MemberOf {
        value: Box<Expr>,
        array: Box<Expr>,
    },
    /// `column -> 'path'`, `column ->> 'path'`.
    JsonPath {
        column: Box<ColumnName>,
        path: String,
        unquote: bool,
    },
    Collate {
        operand: Box<Expr>,
        collation: String,
    },
    Case {
        operand: Option<Box<Expr>>,
        arms: Vec<Arm>,
        otherwise: Option<Box<Expr>>,
    },
    /// CAST and CONVERT to a type, and the operator BINARY. `array`: `AS type ARRAY`, of multi-valued indexes.
    Cast {
        operand: Box<Expr>,
        to: CastType,
        array: bool,
    },
    /// `CAST(operand AT TIME ZONE zone AS DATETIME(scale))`
    CastAtZone {
        operand: Box<Expr>,
        zone: String,
        scale: Option<u64>,
    },
    /// `CONVERT(operand USING charset)`
    ConvertUsing {
        operand: Box<Expr>,
        charset: String,
    },
    Function(Box<Function>),
    /// DATE_ADD, DATE_SUB, ADDDATE, SUBDATE and `operand + INTERVAL value unit`.
    DateShift {
        operand: Box<Expr>,
        interval: Box<Interval>,
        subtract: bool,
    },
    /// `EXTRACT(unit FROM operand)`
    Extract {
        unit: Unit,
        operand: Box<Expr>,
    },
    /// `TIMESTAMPADD(unit, count, operand)`
    TimestampAdd {
        unit: Unit,
        count: Box<Expr>,
        operand: Box<Expr>,
    },
    /// `TIMESTAMPDIFF(unit, from, to)`
    TimestampDiff {
        unit: Unit,
        from: Box<Expr>,
        to: Box<Expr>,
    },
    /// `GET_FORMAT(DATE, region)`
    GetFormat {
        of: TemporalKind,
        region: Box<Expr>,
    },
    Trim {
        side: TrimSide,
        remove: Option<Box<Expr>>,
        operand: Box<Expr>,
    },
    /// `CHAR(numbers USING charset)`
    Char {
        numbers: Vec<Expr>,
        charset: Option<String>,
    },
    /// `WEIGHT_STRING(operand AS CHAR(n))`
    WeightString {
        operand: Box<Expr>,
        pad: Option<WeightPad>,
    },
    JsonValue(Box<JsonValue>),
    Exists(Box<Query>),
    Subquery(Box<Query>),
    /// `MATCH (columns) AGAINST (text mode)`
    Match {
        columns: Vec<ColumnName>,
        against: Box<Expr>,
        mode: MatchMode,
    },
}

/// An operator and its right operand.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    pub op: BinaryOp,
    pub operand: Expr,
}

/// WHEN `condition` THEN `result`.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    pub condition: Expr,
    pub result: Expr,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    pub value: Expr,
    pub unit: Unit,
}

/// `name`, `table.name`, `schema.table.name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnName {
    pub schema: Option<String>,
    pub table: Option<String>,
    pub name: String,
}

impl ColumnName {
    /// The name as error messages show it: parts joined by dots, without quotes.
    pub fn dotted(&self) -> String {
        match (&self.schema, &self.table) {
            (Some(schema), Some(table)) => format!("{schema}.{table}.{}", self.name),
            (None, Some(table)) => format!("{table}.{}", self.name),
            _ => self.name.clone(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    Null,
    Bool(bool),
    Integer(u64),
    /// Digits with a point, or an integer beyond 64 bits, as written.
    Decimal(String),
    /// Digits with an exponent, as written.
    Float(String),
    String(String),
    /// `N'text'`
    National(String),
    /// `x'41'`, `0x41`
    Hex(Vec<u8>),
    /// `b'101'`, `0b101`, as bytes with the bits at the end.
    Bits(Vec<u8>),
    /// `DATE 'text'`, `TIME 'text'`, `TIMESTAMP 'text'`
    Temporal(TemporalKind, String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemporalKind {
    Date,
    Time,
    /// DATETIME exists in GET_FORMAT only; the literal is TIMESTAMP.
    DateTime,
    Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    Plus,
    Minus,
    BitNot,
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    BitOr,
    BitAnd,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    IntegerDivide,
    Modulo,
    BitXor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareOp {
    Equal,
    NullSafeEqual,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The right side of IS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    Null,
    True,
    False,
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimSide {
    Both,
    Leading,
    Trailing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightPad {
    Char(u64),
    Binary(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchMode {
    Natural,
    NaturalWithExpansion,
    Boolean,
    Expansion,
}

/// Units of INTERVAL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Microsecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    SecondMicrosecond,
    MinuteMicrosecond,
    MinuteSecond,
    HourMicrosecond,
    HourSecond,
    HourMinute,
    DayMicrosecond,
    DaySecond,
    DayMinute,
    DayHour,
    YearMonth,
}

impl Unit {
    /// All units by name.
    pub const NAMES: [(&'static str, Unit); 20] = [
        ("microsecond", Unit::Microsecond),
        ("second", Unit::Second),
        ("minute", Unit::Minute),
        ("hour", Unit::Hour),
        ("day", Unit::Day),
        ("week", Unit::Week),
        ("month", Unit::Month),
        ("quarter", Unit::Quarter),
        ("year", Unit::Year),
        ("second_microsecond", Unit::SecondMicrosecond),
        ("minute_microsecond", Unit::MinuteMicrosecond),
        ("minute_second", Unit::MinuteSecond),
        ("hour_microsecond", Unit::HourMicrosecond),
        ("hour_second", Unit::HourSecond),
        ("hour_minute", Unit::HourMinute),
        ("day_microsecond", Unit::DayMicrosecond),
        ("day_second", Unit::DaySecond),
        ("day_minute", Unit::DayMinute),
        ("day_hour", Unit::DayHour),
        ("year_month", Unit::YearMonth),
    ];

    /// The unit of that name, in any case.
    pub fn by_name(name: &str) -> Option<Unit> {
        Unit::NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, unit)| *unit)
    }

    pub fn name(self) -> &'static str {
        Unit::NAMES[self as usize].0
    }
}

/// A call in the general notation: `name(arguments)`, with the clauses of aggregates and window functions.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    pub schema: Option<String>,
    /// As written.
    pub name: String,
    pub arguments: Vec<Expr>,
    /// `COUNT(*)`; there are no arguments.
    pub star: bool,
    /// Written without parentheses: CURRENT_TIMESTAMP, CURRENT_USER.
    pub bare: bool,
    pub distinct: bool,
    /// GROUP_CONCAT(... ORDER BY).
    pub order_by: Vec<OrderItem>,
    /// GROUP_CONCAT(... SEPARATOR).
    pub separator: Option<String>,
    /// NTH_VALUE(...) FROM LAST.
    pub from_last: bool,
    /// IGNORE NULLS; RESPECT NULLS is the default.
    pub ignore_nulls: bool,
    pub over: Option<Over>,
}

impl Function {
    /// A call of `name` with these arguments and no clauses.
    pub fn plain(name: impl Into<String>, arguments: Vec<Expr>) -> Function {
        Function {
            schema: None,
            name: name.into(),
            arguments,
            star: false,
            bare: false,
            distinct: false,
            order_by: Vec::new(),
            separator: None,
            from_last: false,
            ignore_nulls: false,
            over: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Over {
    Named(Ident),
    Window(Box<Window>),
}

/// The specification of a window.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// The named window that this one extends.
    pub base: Option<Ident>,
    pub partition_by: Vec<Expr>,
    pub order_by: Vec<OrderItem>,
    pub frame: Option<Frame>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub unit: FrameUnit,
    pub start: Bound,
    /// None: CURRENT ROW.
    pub end: Option<Bound>,
    pub exclude: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameUnit {
    Rows,
    Range,
    Groups,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    CurrentRow,
    UnboundedPreceding,
    UnboundedFollowing,
    Preceding(Box<Offset>),
    Following(Box<Offset>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Offset {
    Rows(Expr),
    Interval(Interval),
}

#[derive(Clone, Debug, PartialEq)]
pub struct OrderItem {
    pub expr: Expr,
    pub descending: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct JsonValue {
    pub document: Expr,
    pub path: Expr,
    pub returning: Option<CastType>,
    pub on_empty: Option<OnMissing>,
    pub on_error: Option<OnMissing>,
}

/// NULL, ERROR or DEFAULT `literal`, ON EMPTY or ON ERROR.
#[derive(Clone, Debug, PartialEq)]
pub enum OnMissing {
    Null,
    Error,
    Default(Literal),
}

/// The scope of a system variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Session,
    Global,
    /// The same, and for later starts.
    Persist,
    /// SET TRANSACTION without a scope: the next one only.
    Next,
}

impl Scope {
    /// Whether it is the server's value.
    pub fn is_global(self) -> bool {
        matches!(self, Scope::Global | Scope::Persist)
    }
}
