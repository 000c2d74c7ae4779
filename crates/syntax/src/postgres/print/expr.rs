//! Expressions and windows.

use std::fmt::{self, Display, Formatter};

use super::{Clause, Clauses, Commas, Identifier, Quoted, Text, when};
use crate::postgres::keyword::Kw;
use crate::postgres::tree::*;

/// A chain of more operands than this has one pair of parentheses around all of it, for its text must nest less than [`HEIGHT_MAX`].
const NESTED_MAX: usize = 32;
const _: () = assert!(NESTED_MAX < HEIGHT_MAX / 8);

impl Display for Expr {
    // The arms only delegate, so that a level of recursion takes little stack.
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match &self.kind {
            ExprKind::Const(value) => value.fmt(f),
            ExprKind::Column(column) => column.fmt(f),
            ExprKind::Param(number) => write!(f, "${number}"),
            ExprKind::And(operands) => list(f, " AND ", operands),
            ExprKind::Or(operands) => list(f, " OR ", operands),
            ExprKind::Not(operand) => write!(f, "(NOT {})", Operand(operand)),
            ExprKind::Prefix { op, operand } => write!(f, "({op} {})", Operand(operand)),
            ExprKind::Chain { first, links } => chain(f, first, links),
            ExprKind::Quantified(quantified) => quantified.fmt(f),
            ExprKind::QuantifiedQuery(quantified) => quantified.fmt(f),
            ExprKind::Distinct { left, right, negated, at: _ } => {
                write!(f, "({} IS{} DISTINCT FROM {})", Operand(left), not(*negated), Operand(right))
            }
            ExprKind::NullTest { operand, negated, at: _ } => {
                write!(f, "({} IS{} NULL)", Operand(operand), not(*negated))
            }
            ExprKind::BooleanTest { operand, test, negated, at: _ } => {
                write!(f, "({} IS{} {})", Operand(operand), not(*negated), truth(*test))
            }
            ExprKind::Between(between) => between.fmt(f),
            ExprKind::InList { operand, list, negated, at: _ } => {
                write!(f, "({}{} IN ({}))", Operand(operand), not(*negated), Commas(list))
            }
            ExprKind::InQuery { operand, query, negated, at: _ } => {
                write!(f, "({}{} IN ({query}))", Operand(operand), not(*negated))
            }
            ExprKind::Like(like) => like.fmt(f),
            ExprKind::Cast { operand, to, at: _ } => cast(f, operand, to),
            ExprKind::Collate { operand, collation, at: _ } => {
                write!(f, "({} COLLATE {collation})", Operand(operand))
            }
            ExprKind::Case(case) => case.fmt(f),
            ExprKind::Row { items, explicit } => write!(f, "{}({})", when(*explicit, "ROW"), Commas(items)),
            ExprKind::Array(items) => write!(f, "ARRAY[{}]", Commas(items)),
            ExprKind::ArrayQuery(query) => write!(f, "ARRAY({query})"),
            ExprKind::Indirection { operand, links } => indirection(f, operand, links),
            ExprKind::Function(call) => call.fmt(f),
            ExprKind::Coalesce(list) => write!(f, "COALESCE({})", Commas(list)),
            ExprKind::NullIf { left, right } => write!(f, "NULLIF({left}, {right})"),
            ExprKind::Greatest(list) => write!(f, "GREATEST({})", Commas(list)),
            ExprKind::Least(list) => write!(f, "LEAST({})", Commas(list)),
            ExprKind::Grouping(list) => write!(f, "GROUPING({})", Commas(list)),
            ExprKind::SqlValue(function) => function.fmt(f),
            ExprKind::Exists(query) => write!(f, "EXISTS ({query})"),
            ExprKind::Subquery(query) => write!(f, "({query})"),
            ExprKind::JsonValue { operand, format } => write!(f, "{operand}{format}"),
            ExprKind::JsonConstructor(json) => json.fmt(f),
            ExprKind::JsonTest(test) => test.fmt(f),
            ExprKind::Default => f.write_str("DEFAULT"),
            ExprKind::CurrentOf(cursor) => write!(f, "CURRENT OF {cursor}"),
        }
    }
}

/// An operand: a negative number stands in parentheses, for the sign would reach what stands behind.
struct Operand<'a>(&'a Expr);

impl Display for Operand<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Operand(expr) = self;
        if is_negative(expr) { write!(f, "({expr})") } else { expr.fmt(f) }
    }
}

fn is_negative(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Const(Const::Integer(number)) => *number < 0,
        ExprKind::Const(Const::Float(text)) => text.starts_with('-'),
        _ => false,
    }
}

fn not(negated: bool) -> &'static str {
    if negated { " NOT" } else { "" }
}

fn truth(test: BooleanTest) -> &'static str {
    match test {
        BooleanTest::True => "TRUE",
        BooleanTest::False => "FALSE",
        BooleanTest::Unknown => "UNKNOWN",
    }
}

fn list(f: &mut Formatter, op: &str, operands: &[Expr]) -> fmt::Result {
    f.write_str("(")?;
    for (i, operand) in operands.iter().enumerate() {
        write!(f, "{}{}", when(i > 0, op), Operand(operand))?;
    }
    f.write_str(")")
}

/// `((a + b) - c)`; a long chain has one pair of parentheses.
fn chain(f: &mut Formatter, first: &Expr, links: &[Link]) -> fmt::Result {
    let flat = links.len() > NESTED_MAX;
    let pairs = if flat { 1 } else { links.len() };
    (0..pairs).try_for_each(|_| f.write_str("("))?;
    Operand(first).fmt(f)?;
    for Link { op, operand } in links {
        write!(f, " {op} {}{}", Operand(operand), when(!flat, ")"))?;
    }
    f.write_str(when(flat, ")"))
}

fn cast(f: &mut Formatter, operand: &Expr, to: &TypeName) -> fmt::Result {
    match operand.kind {
        ExprKind::Const(_) if !is_negative(operand) => write!(f, "{operand}::{to}"),
        _ => write!(f, "({operand})::{to}"),
    }
}

fn indirection(f: &mut Formatter, operand: &Expr, links: &[Indirection]) -> fmt::Result {
    let is_subscript = matches!(links.first(), Some(Indirection::Subscript(_) | Indirection::Slice { .. }));
    match operand.kind {
        ExprKind::Column(ColumnRef { star: false, .. }) if is_subscript => operand.fmt(f)?,
        ExprKind::Param(_) | ExprKind::Subquery(_) => operand.fmt(f)?,
        _ => write!(f, "({operand})")?,
    }
    links.iter().try_for_each(|link| link.fmt(f))
}

impl Display for Indirection {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Indirection::Field(name) => write!(f, ".{name}"),
            Indirection::Star => f.write_str(".*"),
            Indirection::Subscript(index) => write!(f, "[{index}]"),
            Indirection::Slice { low, high } => {
                write!(f, "[{}:{}]", Clause("", low.as_deref()), Clause("", high.as_deref()))
            }
        }
    }
}

impl Display for Operator {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Operator { qualifier, name, at: _ } = self;
        if qualifier.is_empty() {
            return f.write_str(name);
        }
        f.write_str("OPERATOR(")?;
        qualifier.iter().try_for_each(|part| write!(f, "{}.", Identifier(part)))?;
        write!(f, "{name})")
    }
}

impl Display for Quantified {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Quantified { left, op, all, array } = self;
        write!(f, "({} {op} {} ({array}))", Operand(left), if *all { "ALL" } else { "ANY" })
    }
}

impl Display for QuantifiedQuery {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let QuantifiedQuery { left, op, all, query } = self;
        write!(f, "({} {op} {} ({query}))", Operand(left), if *all { "ALL" } else { "ANY" })
    }
}

impl Display for Between {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Between { operand, low, high, symmetric, negated, at: _ } = self;
        let (not, symmetric) = (not(*negated), when(*symmetric, " SYMMETRIC"));
        write!(f, "({}{not} BETWEEN{symmetric} {} AND {})", Operand(operand), Operand(low), Operand(high))
    }
}

impl Display for Like {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Like { kind, operand, pattern, escape, negated, at: _ } = self;
        let kind = match kind {
            LikeKind::Like => "LIKE",
            LikeKind::ILike => "ILIKE",
            LikeKind::Similar => "SIMILAR TO",
        };
        let escape = escape.as_ref().map(Operand);
        let not = not(*negated);
        write!(f, "({}{not} {kind} {}{})", Operand(operand), Operand(pattern), Clause(" ESCAPE ", escape.as_ref()))
    }
}

impl Display for Case {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Case { operand, arms, otherwise } = self;
        write!(f, "CASE{}", Clause(" ", operand.as_ref()))?;
        for CaseWhen { condition, result } in arms {
            write!(f, " WHEN {condition} THEN {result}")?;
        }
        write!(f, "{} END", Clause(" ELSE ", otherwise.as_ref()))
    }
}

impl Display for Const {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Const::Null => f.write_str("NULL"),
            Const::Bool(true) => f.write_str("true"),
            Const::Bool(false) => f.write_str("false"),
            Const::Integer(number) => write!(f, "{number}"),
            Const::Float(digits) => f.write_str(digits),
            Const::String(text) => Text(text).fmt(f),
            Const::Bits(digits) => write!(f, "B'{digits}'"),
            Const::HexBits(digits) => write!(f, "X'{digits}'"),
        }
    }
}

impl Display for ColumnRef {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let ColumnRef { fields, star } = self;
        super::dotted(f, fields)?;
        match (fields.is_empty(), star) {
            (true, _) => f.write_str("*"),
            (false, true) => f.write_str(".*"),
            _ => Ok(()),
        }
    }
}

impl Display for Argument {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Argument { name, value } = self;
        name.iter().try_for_each(|name| write!(f, "{name} => "))?;
        value.fmt(f)
    }
}

impl Display for FuncCall {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let FuncCall {
            name,
            arguments,
            variadic,
            star,
            distinct,
            order_by,
            within_group,
            filter,
            over,
            sql_syntax,
            json,
        } = self;
        if let Some(clauses) = json {
            super::json::aggregate(f, arguments, order_by, clauses)?;
            return behind_call(f, filter.as_ref(), over.as_ref());
        }
        if *sql_syntax && sql_notation(f, name.last(), arguments)? {
            return Ok(());
        }
        function_name(f, name)?;
        write!(f, "({}{}", when(*star, "*"), when(*distinct, "DISTINCT "))?;
        for (i, argument) in arguments.iter().enumerate() {
            let is_variadic = *variadic && i + 1 == arguments.len();
            write!(f, "{}{}{argument}", when(i > 0, ", "), when(is_variadic, "VARIADIC "))?;
        }
        if *within_group {
            write!(f, ") WITHIN GROUP ({}", Clauses("ORDER BY ", order_by))?;
        } else {
            Clauses(" ORDER BY ", order_by).fmt(f)?;
        }
        f.write_str(")")?;
        behind_call(f, filter.as_ref(), over.as_ref())
    }
}

fn behind_call(f: &mut Formatter, filter: Option<&Expr>, over: Option<&Over>) -> fmt::Result {
    filter.iter().try_for_each(|filter| write!(f, " FILTER (WHERE {filter})"))?;
    match over {
        Some(Over::Named(name)) => write!(f, " OVER {name}"),
        Some(Over::Window(window)) => write!(f, " OVER {window}"),
        None => Ok(()),
    }
}

/// A name before a parenthesis: some words that are not reserved begin something else there.
fn function_name(f: &mut Formatter, name: &AnyName) -> fmt::Result {
    match name.parts.as_slice() {
        [name] if matches!(name.as_str(), "cube" | "rollup" | "operator") => Quoted(name).fmt(f),
        _ => name.fmt(f),
    }
}

/// Writes a call in SQL's own notation; false: it has none with these arguments.
fn sql_notation(f: &mut Formatter, name: &str, arguments: &[Argument]) -> Result<bool, fmt::Error> {
    let Some((first, rest)) = arguments.split_first() else { return Ok(false) };
    let first = &first.value;
    let value = |nth: usize| &arguments[nth].value;
    match (name, rest.len()) {
        ("extract", 1) => extract(f, first, value(1))?,
        ("timezone", 1) => write!(f, "({} AT TIME ZONE {})", Operand(value(1)), Operand(first))?,
        ("position", 1) => write!(f, "POSITION({} IN {})", Operand(value(1)), Operand(first))?,
        ("substring", 1) => write!(f, "SUBSTRING({first} FROM {})", value(1))?,
        ("substring", 2) => write!(f, "SUBSTRING({first} FROM {} FOR {})", value(1), value(2))?,
        ("overlay", 2) => write!(f, "OVERLAY({first} PLACING {} FROM {})", value(1), value(2))?,
        ("overlay", 3) => {
            write!(f, "OVERLAY({first} PLACING {} FROM {} FOR {})", value(1), value(2), value(3))?;
        }
        ("btrim" | "ltrim" | "rtrim", _) => trim(f, name, arguments)?,
        ("normalize", 0) => write!(f, "NORMALIZE({first})")?,
        ("normalize", 1) => {
            let Some(form) = text_of(value(1)) else { return Ok(false) };
            write!(f, "NORMALIZE({first}, {form})")?;
        }
        ("is_normalized", 0) => write!(f, "({} IS NORMALIZED)", Operand(first))?,
        ("is_normalized", 1) => {
            let Some(form) = text_of(value(1)) else { return Ok(false) };
            write!(f, "({} IS {form} NORMALIZED)", Operand(first))?;
        }
        ("overlaps", 3) => {
            write!(f, "(({first}, {}) OVERLAPS ({}, {}))", value(1), value(2), value(3))?;
        }
        ("pg_collation_for", 0) => write!(f, "COLLATION FOR ({first})")?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn text_of(expr: &Expr) -> Option<&str> {
    match &expr.kind {
        ExprKind::Const(Const::String(text)) => Some(text),
        _ => None,
    }
}

/// The field as a word if it is read as one.
fn extract(f: &mut Formatter, field: &Expr, from: &Expr) -> fmt::Result {
    match text_of(field) {
        Some(field) => {
            let kw = Kw::of(field.as_bytes());
            let is_field = matches!(kw, Kw::YEAR | Kw::MONTH | Kw::DAY | Kw::HOUR | Kw::MINUTE | Kw::SECOND);
            if Identifier(field).is_plain() && (kw == Kw::OTHER || is_field) {
                return write!(f, "EXTRACT({field} FROM {from})");
            }
            write!(f, "EXTRACT({} FROM {from})", Text(field))
        }
        None => write!(f, "EXTRACT({field} FROM {from})"),
    }
}

/// The characters to remove are the last argument.
fn trim(f: &mut Formatter, name: &str, arguments: &[Argument]) -> fmt::Result {
    let side = match name {
        "ltrim" => "LEADING",
        "rtrim" => "TRAILING",
        _ => "BOTH",
    };
    match arguments {
        [first @ .., last] if !first.is_empty() => write!(f, "TRIM({side} {last} FROM {})", Commas(first)),
        _ => write!(f, "TRIM({side} FROM {})", Commas(arguments)),
    }
}

impl Display for WindowDef {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let WindowDef { base, partition_by, order_by, frame, at: _ } = self;
        let mut gap = "";
        f.write_str("(")?;
        if let Some(base) = base {
            // Words that begin a clause of the window.
            match base.value.as_str() {
                "partition" | "range" | "rows" | "groups" => Quoted(&base.value).fmt(f)?,
                _ => base.fmt(f)?,
            }
            gap = " ";
        }
        for (words, is_empty) in [("PARTITION BY ", partition_by.is_empty()), ("ORDER BY ", order_by.is_empty())] {
            if is_empty {
                continue;
            }
            write!(f, "{gap}{words}")?;
            if words == "ORDER BY " {
                Commas(order_by).fmt(f)?
            } else {
                Commas(partition_by).fmt(f)?
            }
            gap = " ";
        }
        if let Some(frame) = frame {
            write!(f, "{gap}{frame}")?;
        }
        f.write_str(")")
    }
}

impl Display for Frame {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Frame { unit, start, end, exclusion, at: _ } = self;
        f.write_str(match unit {
            FrameUnit::Rows => "ROWS ",
            FrameUnit::Range => "RANGE ",
            FrameUnit::Groups => "GROUPS ",
        })?;
        match end {
            Some(end) => write!(f, "BETWEEN {start} AND {end}")?,
            None => start.fmt(f)?,
        }
        f.write_str(match exclusion {
            FrameExclusion::NoOthers => "",
            FrameExclusion::CurrentRow => " EXCLUDE CURRENT ROW",
            FrameExclusion::Group => " EXCLUDE GROUP",
            FrameExclusion::Ties => " EXCLUDE TIES",
        })
    }
}

impl Display for FrameBound {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            FrameBound::UnboundedPreceding => f.write_str("UNBOUNDED PRECEDING"),
            // In parentheses: a column may be named unbounded or current.
            FrameBound::Preceding(offset) => write!(f, "({offset}) PRECEDING"),
            FrameBound::CurrentRow => f.write_str("CURRENT ROW"),
            FrameBound::Following(offset) => write!(f, "({offset}) FOLLOWING"),
            FrameBound::UnboundedFollowing => f.write_str("UNBOUNDED FOLLOWING"),
        }
    }
}

impl Display for SortBy {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let SortBy { expr, direction, nulls } = self;
        write!(f, "{expr}{direction}{nulls}")
    }
}

impl Display for SortDirection {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            SortDirection::Default => Ok(()),
            SortDirection::Ascending => f.write_str(" ASC"),
            SortDirection::Descending => f.write_str(" DESC"),
            SortDirection::Using(op) => write!(f, " USING {op}"),
        }
    }
}

impl Display for NullsOrder {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.write_str(match self {
            NullsOrder::Default => "",
            NullsOrder::First => " NULLS FIRST",
            NullsOrder::Last => " NULLS LAST",
        })
    }
}

impl Display for SqlValueFunction {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        use SqlValueFunction::*;
        let (name, precision) = match *self {
            CurrentDate => ("CURRENT_DATE", None),
            CurrentTime(precision) => ("CURRENT_TIME", precision),
            CurrentTimestamp(precision) => ("CURRENT_TIMESTAMP", precision),
            LocalTime(precision) => ("LOCALTIME", precision),
            LocalTimestamp(precision) => ("LOCALTIMESTAMP", precision),
            CurrentRole => ("CURRENT_ROLE", None),
            CurrentUser => ("CURRENT_USER", None),
            User => ("USER", None),
            SessionUser => ("SESSION_USER", None),
            SystemUser => ("SYSTEM_USER", None),
            CurrentCatalog => ("CURRENT_CATALOG", None),
            CurrentSchema => ("CURRENT_SCHEMA", None),
        };
        f.write_str(name)?;
        precision.iter().try_for_each(|precision| write!(f, "({precision})"))
    }
}
