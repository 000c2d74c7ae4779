//! Expressions.

use std::borrow::Cow;

use super::{AnyName, Ident, Location, SelectStmt, Span, TypeName};

/// An expression. The start of its span is PostgreSQL's `exprLocation`: its leftmost byte without parentheses around it.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    Const(Const),
    Column(ColumnRef),
    /// `$1`
    Param(u32),
    /// At least two operands, none of which is itself an AND without parentheses.
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Not(Box<Expr>),
    /// An operator before its operand.
    Prefix {
        op: Operator,
        operand: Box<Expr>,
    },
    /// Left-associative binary operators of equal precedence, comparisons too: `first op operand op operand ...`.
    Chain {
        first: Box<Expr>,
        links: Vec<Link>,
    },
    /// `left op ANY (array)`, `left op ALL (array)`.
    Quantified(Box<Quantified>),
    /// `left op ANY (query)`, `left op ALL (query)`.
    QuantifiedQuery(Box<QuantifiedQuery>),
    /// `left IS [NOT] DISTINCT FROM right`
    Distinct {
        left: Box<Expr>,
        right: Box<Expr>,
        negated: bool,
        at: Location,
    },
    NullTest {
        operand: Box<Expr>,
        negated: bool,
        at: Location,
    },
    BooleanTest {
        operand: Box<Expr>,
        test: BooleanTest,
        negated: bool,
        at: Location,
    },
    Between(Box<Between>),
    InList {
        operand: Box<Expr>,
        list: Vec<Expr>,
        negated: bool,
        at: Location,
    },
    InQuery {
        operand: Box<Expr>,
        query: Box<SelectStmt>,
        negated: bool,
        at: Location,
    },
    Like(Box<Like>),
    Cast {
        operand: Box<Expr>,
        to: Box<TypeName>,
        /// Of `::` or CAST; of the type's name in `date '...'`.
        at: Location,
    },
    Collate {
        operand: Box<Expr>,
        collation: Box<AnyName>,
        at: Location,
    },
    Case(Box<Case>),
    /// `ROW(a, b)`, or `(a, b)` of at least two items.
    Row {
        items: Vec<Expr>,
        explicit: bool,
    },
    /// `ARRAY[a, b]`; an element in brackets alone is an Array too.
    Array(Vec<Expr>),
    /// `ARRAY(query)`
    ArrayQuery(Box<SelectStmt>),
    /// Subscripts and fields of what is no plain column name.
    Indirection {
        operand: Box<Expr>,
        links: Vec<Indirection>,
    },
    Function(Box<FuncCall>),
    Coalesce(Vec<Expr>),
    /// `NULLIF(left, right)`
    NullIf {
        left: Box<Expr>,
        right: Box<Expr>,
    },
    Greatest(Vec<Expr>),
    Least(Vec<Expr>),
    /// `GROUPING(a, b)`
    Grouping(Vec<Expr>),
    /// CURRENT_DATE and the like.
    SqlValue(SqlValueFunction),
    Exists(Box<SelectStmt>),
    Subquery(Box<SelectStmt>),
    /// An argument of an SQL/JSON function with FORMAT JSON.
    JsonValue {
        operand: Box<Expr>,
        format: JsonFormat,
    },
    /// JSON_OBJECT and JSON_ARRAY.
    JsonConstructor(Box<JsonConstructor>),
    /// `operand IS [NOT] JSON ...`
    JsonTest(Box<JsonTest>),
    /// DEFAULT in the place of a value; the binder allows it in VALUES of INSERT and in assignments.
    Default,
    /// `CURRENT OF cursor` as the condition of UPDATE or DELETE.
    CurrentOf(Ident),
}

/// A binary operator and its right operand.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    pub op: Operator,
    pub operand: Expr,
}

/// An operator's name. `!=` is `<>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    /// The schema of `OPERATOR(schema.name)`; empty otherwise.
    pub qualifier: Vec<String>,
    pub name: Cow<'static, str>,
    pub at: Location,
}

impl Operator {
    /// Returns the operator of that name without a schema.
    pub fn plain(name: impl Into<Cow<'static, str>>, at: Location) -> Operator {
        Operator { qualifier: Vec::new(), name: name.into(), at }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Quantified {
    pub left: Expr,
    pub op: Operator,
    pub all: bool,
    pub array: Expr,
}

/// The operator may be `~~`, `!~~`, `~~*` or `!~~*`, of LIKE and ILIKE.
#[derive(Clone, Debug, PartialEq)]
pub struct QuantifiedQuery {
    pub left: Expr,
    pub op: Operator,
    pub all: bool,
    pub query: SelectStmt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BooleanTest {
    True,
    False,
    Unknown,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Between {
    pub operand: Expr,
    pub low: Expr,
    pub high: Expr,
    pub symmetric: bool,
    pub negated: bool,
    pub at: Location,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Like {
    pub kind: LikeKind,
    pub operand: Expr,
    pub pattern: Expr,
    pub escape: Option<Expr>,
    pub negated: bool,
    pub at: Location,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LikeKind {
    Like,
    ILike,
    /// SIMILAR TO: a match of `similar_to_escape(pattern)` by the operator `~`.
    Similar,
}

impl LikeKind {
    /// Returns the operator that PostgreSQL calls for it.
    pub fn operator(self, negated: bool) -> &'static str {
        match (self, negated) {
            (LikeKind::Like, false) => "~~",
            (LikeKind::Like, true) => "!~~",
            (LikeKind::ILike, false) => "~~*",
            (LikeKind::ILike, true) => "!~~*",
            (LikeKind::Similar, false) => "~",
            (LikeKind::Similar, true) => "!~",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    pub operand: Option<Expr>,
    /// At least one.
    pub arms: Vec<CaseWhen>,
    pub otherwise: Option<Expr>,
}

/// WHEN `condition` THEN `result`.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseWhen {
    pub condition: Expr,
    pub result: Expr,
}

/// A literal. A minus sign before a number is part of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Const {
    Null,
    Bool(bool),
    Integer(i32),
    /// A number with a point or exponent, or an integer beyond 32 bits, as written.
    Float(String),
    /// A string of unknown type, its escapes resolved.
    String(String),
    /// The digits of `b'101'`.
    Bits(String),
    /// The digits of `x'1F'`, also a bit string.
    HexBits(String),
}

/// A column, or a whole row: `a`, `t.a`, `s.t.a`, `t.*`, `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnRef {
    /// Empty only for `*` alone.
    pub fields: Vec<String>,
    pub star: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Indirection {
    Field(Ident),
    /// `.*`
    Star,
    Subscript(Expr),
    /// `[low:high]`
    Slice {
        low: Option<Box<Expr>>,
        high: Option<Box<Expr>>,
    },
}

/// A call of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct FuncCall {
    /// Where `sql_syntax` is true: the name in `pg_catalog` of the function that is called.
    pub name: AnyName,
    pub arguments: Vec<Argument>,
    /// VARIADIC before the last argument.
    pub variadic: bool,
    /// `count(*)`; there are no arguments.
    pub star: bool,
    pub distinct: bool,
    /// ORDER BY among the arguments, or of WITHIN GROUP.
    pub order_by: Vec<SortBy>,
    pub within_group: bool,
    pub filter: Option<Expr>,
    pub over: Option<Over>,
    /// Written in a notation of SQL's own: EXTRACT, OVERLAY, POSITION, SUBSTRING, TRIM, NORMALIZE, IS NORMALIZED, AT TIME ZONE, OVERLAPS, COLLATION FOR.
    pub sql_syntax: bool,
    /// JSON_OBJECTAGG or JSON_ARRAYAGG: the name is that of the plainest function of its kind.
    pub json: Option<Box<JsonClauses>>,
}

/// FORMAT JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonFormat {
    pub encoding: Option<JsonEncoding>,
    pub at: Location,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonEncoding {
    Utf8,
    Utf16,
    Utf32,
}

impl JsonEncoding {
    pub fn name(self) -> &'static str {
        match self {
            JsonEncoding::Utf8 => "UTF8",
            JsonEncoding::Utf16 => "UTF16",
            JsonEncoding::Utf32 => "UTF32",
        }
    }
}

/// The clauses of an SQL/JSON constructor.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonClauses {
    /// ABSENT ON NULL: the default of arrays, not of objects.
    pub absent_on_null: bool,
    /// WITH UNIQUE KEYS.
    pub unique: bool,
    pub returning: Option<JsonReturning>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct JsonReturning {
    pub ty: TypeName,
    pub format: Option<JsonFormat>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct JsonConstructor {
    pub content: JsonContent,
    pub clauses: JsonClauses,
}

#[derive(Clone, Debug, PartialEq)]
pub enum JsonContent {
    /// Keys and values.
    Object(Vec<(Expr, Expr)>),
    Array(Vec<Expr>),
    /// `JSON_ARRAY(query)`
    Query(Box<SelectStmt>, Option<JsonFormat>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct JsonTest {
    pub operand: Expr,
    pub kind: JsonKind,
    pub unique: bool,
    pub negated: bool,
    pub at: Location,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonKind {
    Any,
    Scalar,
    Array,
    Object,
}

impl JsonKind {
    /// Returns the word behind JSON.
    pub fn word(self) -> &'static str {
        match self {
            JsonKind::Any => "",
            JsonKind::Scalar => " SCALAR",
            JsonKind::Array => " ARRAY",
            JsonKind::Object => " OBJECT",
        }
    }
}

impl FuncCall {
    /// Returns a call of `name` without clauses.
    pub fn plain(name: AnyName, arguments: Vec<Expr>) -> FuncCall {
        FuncCall {
            name,
            arguments: arguments.into_iter().map(|value| Argument { name: None, value }).collect(),
            variadic: false,
            star: false,
            distinct: false,
            order_by: Vec::new(),
            within_group: false,
            filter: None,
            over: None,
            sql_syntax: false,
            json: None,
        }
    }
}

/// An argument, perhaps of a parameter by name: `name => value`.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    pub name: Option<Ident>,
    pub value: Expr,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Over {
    Named(Ident),
    Window(Box<WindowDef>),
}

/// The definition of a window in parentheses.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowDef {
    /// The named window that this one extends.
    pub base: Option<Ident>,
    pub partition_by: Vec<Expr>,
    pub order_by: Vec<SortBy>,
    pub frame: Option<Frame>,
    pub at: Location,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub unit: FrameUnit,
    pub start: FrameBound,
    /// None: CURRENT ROW.
    pub end: Option<FrameBound>,
    pub exclusion: FrameExclusion,
    pub at: Location,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameUnit {
    Rows,
    Range,
    Groups,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(Box<Expr>),
    CurrentRow,
    Following(Box<Expr>),
    UnboundedFollowing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameExclusion {
    /// EXCLUDE NO OTHERS, the default.
    NoOthers,
    CurrentRow,
    Group,
    Ties,
}

/// An item of ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub struct SortBy {
    pub expr: Expr,
    pub direction: SortDirection,
    pub nulls: NullsOrder,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SortDirection {
    Default,
    Ascending,
    Descending,
    Using(Operator),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NullsOrder {
    Default,
    First,
    Last,
}

/// A function without parentheses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlValueFunction {
    CurrentDate,
    CurrentTime(Option<i32>),
    CurrentTimestamp(Option<i32>),
    LocalTime(Option<i32>),
    LocalTimestamp(Option<i32>),
    CurrentRole,
    CurrentUser,
    User,
    SessionUser,
    SystemUser,
    CurrentCatalog,
    CurrentSchema,
}
