//! Expressions and windows.

use std::fmt::{self, Display, Formatter};

use super::{Clause, Commas, Hex, Identifier, Length, Lower, Precision, Text, Upper, Variable, Word, is_plain, when};
use crate::mysql::keyword::Kw;
use crate::tree::walk::{self, Visitor};
use crate::tree::*;

/// A chain of more operands than this has one pair of parentheses around all of it, for its text must nest less than [`HEIGHT_MAX`].
const NESTED_MAX: usize = 32;
const _: () = assert!(NESTED_MAX < HEIGHT_MAX / 8);

/// Words that begin a notation of their own before a parenthesis, or a function under another name.
const NOTATIONS: [Kw; 16] = [
    Kw::ADDDATE,
    Kw::CAST,
    Kw::CHAR,
    Kw::CONVERT,
    Kw::DATE_ADD,
    Kw::DATE_SUB,
    Kw::EXTRACT,
    Kw::GET_FORMAT,
    Kw::JSON_VALUE,
    Kw::POSITION,
    Kw::SUBDATE,
    Kw::SUBSTRING,
    Kw::TIMESTAMPADD,
    Kw::TIMESTAMPDIFF,
    Kw::TRIM,
    Kw::WEIGHT_STRING,
];

/// Reserved words that are functions.
const FUNCTIONS: [Kw; 31] = [
    Kw::CUME_DIST,
    Kw::CURRENT_DATE,
    Kw::CURRENT_TIME,
    Kw::CURRENT_TIMESTAMP,
    Kw::CURRENT_USER,
    Kw::DATABASE,
    Kw::DENSE_RANK,
    Kw::FIRST_VALUE,
    Kw::GROUPING,
    Kw::IF,
    Kw::INSERT,
    Kw::INTERVAL,
    Kw::LAG,
    Kw::LAST_VALUE,
    Kw::LEAD,
    Kw::LEFT,
    Kw::LOCALTIME,
    Kw::LOCALTIMESTAMP,
    Kw::MOD,
    Kw::NTH_VALUE,
    Kw::NTILE,
    Kw::PERCENT_RANK,
    Kw::RANK,
    Kw::REPEAT,
    Kw::REPLACE,
    Kw::RIGHT,
    Kw::ROW_NUMBER,
    Kw::SCHEMA,
    Kw::UTC_DATE,
    Kw::UTC_TIME,
    Kw::UTC_TIMESTAMP,
];

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Expr { kind, span: _ } = self;
        kind.fmt(f)
    }
}

impl Display for ExprKind {
    // The arms only delegate, so that a level of recursion takes little stack.
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            ExprKind::Literal(literal) => literal.fmt(f),
            ExprKind::Introduced { charset, literal } => introduced(f, charset, literal),
            ExprKind::Column(column) => column.fmt(f),
            ExprKind::Parameter(_) => f.write_str("?"),
            ExprKind::UserVariable(name) => Variable(name).fmt(f),
            ExprKind::SystemVariable { scope, name } => SystemVariable(*scope, name).fmt(f),
            ExprKind::Assign { name, value } => write!(f, "({}:={value})", Variable(name)),
            ExprKind::Default => f.write_str("default"),
            ExprKind::DefaultOf(column) => write!(f, "default({column})"),
            ExprKind::InsertedValue(column) => write!(f, "values({column})"),
            ExprKind::Row(items) => write!(f, "({})", Commas(items)),
            ExprKind::Unary { op, operand } => unary(f, *op, operand),
            ExprKind::And(operands) => list(f, " and ", operands),
            ExprKind::Or(operands) => list(f, " or ", operands),
            ExprKind::Xor(operands) => nested(f, operands.first(), operands.get(1..).unwrap_or(&[]), xor),
            ExprKind::Concat(operands) => write!(f, "concat({})", Commas(operands)),
            ExprKind::Chain { first, links } => nested(f, Some(&**first), links, |Link { op, operand }| (*op, operand)),
            ExprKind::Compare { op, left, right } => write!(f, "({left} {op} {right})"),
            ExprKind::Quantified { op, left, all, query } => {
                write!(f, "({left} {op} {} ({query}))", if *all { "all" } else { "any" })
            }
            ExprKind::Is { operand, test, negated } => write!(f, "({operand} is{} {test})", not(*negated)),
            ExprKind::Between { operand, low, high, negated } => {
                write!(f, "({operand}{} between {low} and {high})", not(*negated))
            }
            ExprKind::InList { operand, list, negated } => {
                write!(f, "({operand}{} in ({}))", not(*negated), Commas(list))
            }
            ExprKind::InQuery { operand, query, negated } => write!(f, "({operand}{} in ({query}))", not(*negated)),
            ExprKind::Like { operand, pattern, escape, negated } => {
                write!(f, "({operand}{} like {pattern}{})", not(*negated), Clause(" escape ", escape.as_deref()))
            }
            ExprKind::Regexp { operand, pattern, negated } => {
                write!(f, "({operand}{} regexp {pattern})", not(*negated))
            }
            ExprKind::SoundsLike { left, right } => write!(f, "({left} sounds like {right})"),
            ExprKind::MemberOf { value, array } => write!(f, "({value} member of ({array}))"),
            ExprKind::JsonPath { column, path, unquote } => {
                write!(f, "{column}{}{}", if *unquote { "->>" } else { "->" }, Text(path))
            }
            ExprKind::Collate { operand, collation } => collate(f, operand, collation),
            ExprKind::Case { operand, arms, otherwise } => case(f, operand.as_deref(), arms, otherwise.as_deref()),
            ExprKind::Cast { operand, to, array } => write!(f, "cast({operand} as {to}{})", when(*array, " array")),
            ExprKind::CastAtZone { operand, zone, scale } => {
                write!(f, "cast({operand} at time zone {} as datetime{})", Text(zone), Length(*scale))
            }
            ExprKind::ConvertUsing { operand, charset } => write!(f, "convert({operand} using {})", Word(charset)),
            ExprKind::Function(function) => function.fmt(f),
            ExprKind::DateShift { operand, interval, subtract } => date_shift(f, operand, interval, *subtract),
            ExprKind::Extract { unit, operand } => write!(f, "extract({unit} from {operand})"),
            ExprKind::TimestampAdd { unit, count, operand } => {
                write!(f, "timestampadd({},{count},{operand})", Upper(unit.name()))
            }
            ExprKind::TimestampDiff { unit, from, to } => {
                write!(f, "timestampdiff({},{from},{to})", Upper(unit.name()))
            }
            ExprKind::GetFormat { of, region } => write!(f, "get_format({of}, {region})"),
            ExprKind::Trim { side, remove, operand } => trim(f, *side, remove.as_deref(), operand),
            ExprKind::Char { numbers, charset } => {
                let charset = charset.as_deref().map(Word);
                write!(f, "char({}{})", Commas(numbers), Clause(" using ", charset.as_ref()))
            }
            ExprKind::WeightString { operand, pad } => {
                write!(f, "weight_string({operand}{})", Clause(" as ", pad.as_ref()))
            }
            ExprKind::JsonValue(value) => value.fmt(f),
            ExprKind::Exists(query) => write!(f, "exists({query})"),
            ExprKind::Subquery(query) => write!(f, "({query})"),
            ExprKind::Match { columns, against, mode } => {
                write!(f, "(match ({}) against ({against}{mode}))", Commas(columns))
            }
        }
    }
}

fn not(negated: bool) -> &'static str {
    if negated { " not" } else { "" }
}

/// The expression in exactly one pair of parentheses: a subquery has its own, and a second pair would be the query's.
pub(super) struct Parenthesised<'a>(pub &'a Expr);

impl Display for Parenthesised<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Parenthesised(expr) = *self;
        match expr.kind {
            ExprKind::Subquery(_) => expr.fmt(f),
            _ => write!(f, "({expr})"),
        }
    }
}

/// A literal with its sign directly before it, as DEFAULT of a column takes it.
pub(super) struct Signed<'a>(pub &'a Expr);

impl Display for Signed<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Signed(Expr { kind, span: _ }) = *self;
        match kind {
            ExprKind::Unary { op, operand } => write!(f, "{op}{operand}"),
            _ => kind.fmt(f),
        }
    }
}

/// `@@scope.name`
pub(super) struct SystemVariable<'a>(pub Option<Scope>, pub &'a str);

impl Display for SystemVariable<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let SystemVariable(scope, name) = *self;
        f.write_str(match scope {
            None | Some(Scope::Next) => "@@",
            Some(Scope::Session) => "@@session.",
            Some(Scope::Global) => "@@global.",
            Some(Scope::Persist) => "@@persist.",
        })?;
        VariableName(name).fmt(f)
    }
}

/// The name of a system variable; its parts are separated by dots.
pub(super) struct VariableName<'a>(pub &'a str);

impl Display for VariableName<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let VariableName(name) = *self;
        for (i, part) in name.split('.').enumerate() {
            write!(f, "{}{}", when(i > 0, "."), Word(part))?;
        }
        Ok(())
    }
}

fn introduced(f: &mut Formatter, charset: &str, literal: &Literal) -> fmt::Result {
    match literal {
        Literal::String(_) => write!(f, "_{charset}{literal}"),
        _ => write!(f, "_{charset} {literal}"),
    }
}

fn unary(f: &mut Formatter, op: UnaryOp, operand: &Expr) -> fmt::Result {
    let operand = Parenthesised(operand);
    match op {
        UnaryOp::Not => write!(f, "({op}{operand})"),
        UnaryOp::Plus | UnaryOp::Minus | UnaryOp::BitNot => write!(f, "{op}{operand}"),
    }
}

fn list(f: &mut Formatter, operator: &str, operands: &[Expr]) -> fmt::Result {
    f.write_str("(")?;
    super::separated(f, operator, operands, |f, operand| operand.fmt(f))?;
    f.write_str(")")
}

struct XorWord;

impl Display for XorWord {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str("xor")
    }
}

fn xor(operand: &Expr) -> (XorWord, &Expr) {
    (XorWord, operand)
}

/// Prints `(((first op operand) op operand) op operand)`.
fn nested<T, O: Display>(
    f: &mut Formatter,
    first: Option<&Expr>,
    links: &[T],
    take: impl Fn(&T) -> (O, &Expr),
) -> fmt::Result {
    let flat = links.len() > NESTED_MAX;
    let pairs = if flat { 1 } else { links.len() };
    (0..pairs).try_for_each(|_| f.write_str("("))?;
    first.iter().try_for_each(|first| first.fmt(f))?;
    for link in links {
        let (op, operand) = take(link);
        write!(f, " {op} {operand}{}", when(!flat, ")"))?;
    }
    f.write_str(when(flat, ")"))
}

/// COLLATE binds tighter than a sign.
fn collate(f: &mut Formatter, operand: &Expr, collation: &str) -> fmt::Result {
    // The collation of bytes is a reserved word.
    let quoted = if collation.eq_ignore_ascii_case("binary") { "`" } else { "" };
    match &operand.kind {
        ExprKind::Unary { op: _, operand: _ } => {
            write!(f, "(({operand}) collate {quoted}{}{quoted})", Word(collation))
        }
        _ => write!(f, "({operand} collate {quoted}{}{quoted})", Word(collation)),
    }
}

fn case(f: &mut Formatter, operand: Option<&Expr>, arms: &[Arm], otherwise: Option<&Expr>) -> fmt::Result {
    write!(f, "(case{}", Clause(" ", operand))?;
    for Arm { condition, result } in arms {
        write!(f, " when {condition} then {result}")?;
    }
    write!(f, "{} end)", Clause(" else ", otherwise))
}

/// The interval stands first if its parameters have lower numbers: parameters are numbered in the order of the text.
fn date_shift(f: &mut Formatter, operand: &Expr, interval: &Interval, subtract: bool) -> fmt::Result {
    let swapped = !subtract
        && first_parameter(&interval.value)
            .is_some_and(|mine| first_parameter(operand).is_some_and(|others| mine < others));
    match swapped {
        true => write!(f, "({interval} + {operand})"),
        false => write!(f, "({operand} {} {interval})", if subtract { "-" } else { "+" }),
    }
}

/// The lowest number of a parameter in the expression.
fn first_parameter(expr: &Expr) -> Option<u32> {
    struct First(Option<u32>);
    impl Visitor for First {
        fn expr(&mut self, expr: &Expr) -> bool {
            if let ExprKind::Parameter(number) = expr.kind {
                self.0 = Some(self.0.map_or(number, |first| first.min(number)));
            }
            true
        }
    }
    let mut first = First(None);
    walk::expr(expr, &mut first);
    first.0
}

fn trim(f: &mut Formatter, side: TrimSide, remove: Option<&Expr>, operand: &Expr) -> fmt::Result {
    match (side, remove) {
        (TrimSide::Both, None) => write!(f, "trim({operand})"),
        (_, None) => write!(f, "trim({side} from {operand})"),
        (_, Some(remove)) => write!(f, "trim({side} {remove} from {operand})"),
    }
}

impl Display for ColumnName {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let ColumnName { schema, table, name } = self;
        for qualifier in [schema, table].into_iter().flatten() {
            write!(f, "{}.", Identifier(qualifier))?;
        }
        Identifier(name).fmt(f)
    }
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Literal::Null => f.write_str("NULL"),
            Literal::Bool(true) => f.write_str("true"),
            Literal::Bool(false) => f.write_str("false"),
            Literal::Integer(number) => write!(f, "{number}"),
            Literal::Decimal(digits) | Literal::Float(digits) => f.write_str(digits),
            Literal::String(text) => Text(text).fmt(f),
            Literal::National(text) => write!(f, "N{}", Text(text)),
            Literal::Hex(bytes) => Hex(bytes).fmt(f),
            Literal::Bits(bytes) => bits(f, bytes),
            Literal::Temporal(kind, text) => {
                // The literal of DATETIME is TIMESTAMP.
                let kind = if *kind == TemporalKind::DateTime { TemporalKind::Timestamp } else { *kind };
                write!(f, "{kind}{}", Text(text))
            }
        }
    }
}

/// No bits are left out but those at the front of the first byte, so that the number of bytes stays.
fn bits(f: &mut Formatter, bytes: &[u8]) -> fmt::Result {
    f.write_str("b'")?;
    if let Some((first, rest)) = bytes.split_first() {
        write!(f, "{first:b}")?;
        rest.iter().try_for_each(|byte| write!(f, "{byte:08b}"))?;
    }
    f.write_str("'")
}

impl Display for TemporalKind {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self {
            TemporalKind::Date => "DATE",
            TemporalKind::Time => "TIME",
            TemporalKind::DateTime => "DATETIME",
            TemporalKind::Timestamp => "TIMESTAMP",
        })
    }
}

impl Display for UnaryOp {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self {
            UnaryOp::Plus => "+",
            UnaryOp::Minus => "-",
            UnaryOp::BitNot => "~",
            UnaryOp::Not => "not",
        })
    }
}

impl Display for BinaryOp {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self {
            BinaryOp::BitOr => "|",
            BinaryOp::BitAnd => "&",
            BinaryOp::ShiftLeft => "<<",
            BinaryOp::ShiftRight => ">>",
            BinaryOp::Add => "+",
            BinaryOp::Subtract => "-",
            BinaryOp::Multiply => "*",
            BinaryOp::Divide => "/",
            BinaryOp::IntegerDivide => "DIV",
            BinaryOp::Modulo => "%",
            BinaryOp::BitXor => "^",
        })
    }
}

impl Display for CompareOp {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self {
            CompareOp::Equal => "=",
            CompareOp::NullSafeEqual => "<=>",
            CompareOp::NotEqual => "<>",
            CompareOp::Less => "<",
            CompareOp::LessOrEqual => "<=",
            CompareOp::Greater => ">",
            CompareOp::GreaterOrEqual => ">=",
        })
    }
}

impl Display for Truth {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self {
            Truth::Null => "null",
            Truth::True => "true",
            Truth::False => "false",
            Truth::Unknown => "unknown",
        })
    }
}

impl Display for TrimSide {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self {
            TrimSide::Both => "both",
            TrimSide::Leading => "leading",
            TrimSide::Trailing => "trailing",
        })
    }
}

impl Display for WeightPad {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            WeightPad::Char(length) => write!(f, "char({length})"),
            WeightPad::Binary(length) => write!(f, "binary({length})"),
        }
    }
}

impl Display for MatchMode {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self {
            MatchMode::Natural => "",
            MatchMode::NaturalWithExpansion => " in natural language mode with query expansion",
            MatchMode::Boolean => " in boolean mode",
            MatchMode::Expansion => " with query expansion",
        })
    }
}

impl Display for Unit {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Display for Interval {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Interval { value, unit } = self;
        // Of a row in parentheses alone the function INTERVAL would be read.
        let row = if matches!(value.kind, ExprKind::Row(_)) { "row" } else { "" };
        write!(f, "interval {row}{value} {unit}")
    }
}

impl Display for CastType {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            CastType::Signed => f.write_str("signed"),
            CastType::Unsigned => f.write_str("unsigned"),
            CastType::Char { length, charset } => {
                let charset = charset.as_deref().map(Word);
                write!(f, "char{}{}", Length(*length), Clause(" charset ", charset.as_ref()))
            }
            CastType::NationalChar(length) => write!(f, "nchar{}", Length(*length)),
            CastType::Binary(length) => write!(f, "binary{}", Length(*length)),
            CastType::Date => f.write_str("date"),
            CastType::Time(scale) => write!(f, "time{}", Length(*scale)),
            CastType::DateTime(scale) => write!(f, "datetime{}", Length(*scale)),
            CastType::Year => f.write_str("year"),
            CastType::Decimal { precision, scale } => write!(f, "decimal{}", Precision(*precision, *scale)),
            CastType::Float(precision) => write!(f, "float{}", Length(*precision)),
            CastType::Double => f.write_str("double"),
            CastType::Json => f.write_str("json"),
            CastType::Spatial(name) => f.write_str(name),
        }
    }
}

impl Display for Function {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Function {
            schema,
            name,
            arguments,
            star,
            bare,
            distinct,
            order_by,
            separator,
            from_last,
            ignore_nulls,
            over,
        } = self;
        match schema {
            Some(schema) => write!(f, "{}.{}", Identifier(schema), Identifier(name))?,
            None if is_callable(name) => Lower(name).fmt(f)?,
            None => Identifier(name).fmt(f)?,
        }
        if *bare {
            return Ok(());
        }
        let (star, distinct) = (when(*star, "*"), when(*distinct, "distinct "));
        write!(f, "({star}{distinct}{}", Commas(arguments))?;
        write!(f, "{}", super::Clauses(" order by ", order_by))?;
        let separator = separator.as_deref().map(Text);
        write!(f, "{})", Clause(" separator ", separator.as_ref()))?;
        f.write_str(when(*from_last, " from last"))?;
        f.write_str(when(*ignore_nulls, " ignore nulls"))?;
        Clause(" over ", over.as_ref()).fmt(f)
    }
}

/// Whether a call by that name without quotes is one of this function.
fn is_callable(name: &str) -> bool {
    let kw = Kw::of(name.as_bytes());
    is_plain(name) && !NOTATIONS.contains(&kw) && (!kw.is_reserved() || FUNCTIONS.contains(&kw))
}

impl Display for Over {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Over::Named(name) => name.fmt(f),
            Over::Window(window) => window.fmt(f),
        }
    }
}

impl Display for Window {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Window { base, partition_by, order_by, frame } = self;
        let mut space = "";
        f.write_str("(")?;
        if let Some(base) = base {
            write!(f, "{base}")?;
            space = " ";
        }
        if !partition_by.is_empty() {
            write!(f, "{space}partition by {}", Commas(partition_by))?;
            space = " ";
        }
        if !order_by.is_empty() {
            write!(f, "{space}order by {}", Commas(order_by))?;
            space = " ";
        }
        if let Some(frame) = frame {
            write!(f, "{space}{frame}")?;
        }
        f.write_str(")")
    }
}

impl Display for Frame {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Frame { unit, start, end, exclude } = self;
        match end {
            Some(end) => write!(f, "{unit} between {start} and {end}")?,
            None => write!(f, "{unit} {start}")?,
        }
        f.write_str(when(*exclude, " exclude current row"))
    }
}

impl Display for FrameUnit {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self {
            FrameUnit::Rows => "rows",
            FrameUnit::Range => "range",
            FrameUnit::Groups => "groups",
        })
    }
}

impl Display for Bound {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Bound::CurrentRow => f.write_str("current row"),
            Bound::UnboundedPreceding => f.write_str("unbounded preceding"),
            Bound::UnboundedFollowing => f.write_str("unbounded following"),
            Bound::Preceding(offset) => write!(f, "{offset} preceding"),
            Bound::Following(offset) => write!(f, "{offset} following"),
        }
    }
}

impl Display for Offset {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Offset::Rows(count) => count.fmt(f),
            Offset::Interval(interval) => interval.fmt(f),
        }
    }
}

impl Display for OrderItem {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let OrderItem { expr, descending } = self;
        write!(f, "{expr}{}", when(*descending, " desc"))
    }
}

impl Display for JsonValue {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let JsonValue { document, path, returning, on_empty, on_error } = self;
        write!(f, "json_value({document}, {path}{}", Clause(" returning ", returning.as_ref()))?;
        write!(f, "{})", Missing(on_empty.as_ref(), on_error.as_ref()))
    }
}

/// ON EMPTY and ON ERROR.
pub(super) struct Missing<'a>(pub Option<&'a OnMissing>, pub Option<&'a OnMissing>);

impl Display for Missing<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Missing(on_empty, on_error) = self;
        on_empty.iter().try_for_each(|on_empty| write!(f, " {on_empty} on empty"))?;
        on_error.iter().try_for_each(|on_error| write!(f, " {on_error} on error"))
    }
}

impl Display for OnMissing {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            OnMissing::Null => f.write_str("null"),
            OnMissing::Error => f.write_str("error"),
            OnMissing::Default(literal) => write!(f, "default {literal}"),
        }
    }
}
