//! Expressions that definitions store as text, written to mean the same under the default `sql_mode` whatever the mode
//! of the session that wrote them. So the catalog and SHOW CREATE TABLE need no session.

use syntax::tree::walk::{self, Visitor};
use syntax::tree::{
    BinaryOp, CastType, ColumnName, CompareOp, Expr, ExprKind, Function, Interval, Link, Literal, Query, Truth, UnaryOp,
};

use crate::error::{Result, SqlError};
use crate::scalar::modes::SqlMode;

/// A construct that must not stand in the expression of a generated column.
#[derive(Debug, PartialEq, Eq)]
pub enum Disallowed {
    Subquery,
    Variable,
    Function(String),
}

/// Returns the expression's text. The tree has resolved whatever depends on the mode but for one operator: `||` that concatenates.
pub fn stored_text(node: &Expr, mode: SqlMode) -> Result<String> {
    if mode.has(SqlMode::PIPES_AS_CONCAT) && concatenates(node) {
        return Err(SqlError::unsupported("|| for CONCAT in a definition"));
    }
    let text = node.to_string();
    // Printed parentheses count: the text may be nested deeper than the one that was read.
    crate::parse::parse_expression(&text)?;
    Ok(text)
}

/// A kept expression as MySQL shows it: strings with an introducer, operators and functions under the names that MySQL's own tree has for them.
pub fn shown_text(kept: &str) -> String {
    match crate::parse::parse_expression(kept) {
        Ok(mut node) => {
            normalise(&mut node);
            node.to_string()
        }
        Err(_) => kept.to_owned(),
    }
}

/// The same in information_schema, where strings are escaped once more.
pub fn listed_text(kept: &str) -> String {
    let shown = shown_text(kept);
    let mut text = String::with_capacity(shown.len());
    for letter in shown.chars() {
        if matches!(letter, '\'' | '\\') {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}

/// Brings an expression into the form of MySQL's tree.
fn normalise(node: &mut Expr) {
    walk::operands_mut(node, &mut normalise);
    let kind = std::mem::replace(&mut node.kind, ExprKind::Default);
    node.kind = normal(kind);
}

fn call(name: &str, arguments: Vec<Expr>) -> ExprKind {
    ExprKind::Function(Box::new(Function::plain(name, arguments)))
}

fn number(number: u64) -> Expr {
    Expr::made(ExprKind::Literal(Literal::Integer(number)))
}

fn string(charset: &str, text: String) -> ExprKind {
    ExprKind::Introduced { charset: charset.to_owned(), literal: Literal::String(text) }
}

fn compare(op: CompareOp, left: Expr, right: Expr) -> ExprKind {
    ExprKind::Compare { op, left: Box::new(left), right: Box::new(right) }
}

fn chain(first: Expr, op: BinaryOp, operand: Expr) -> ExprKind {
    ExprKind::Chain { first: Box::new(first), links: vec![Link { op, operand }] }
}

fn not(operand: ExprKind) -> ExprKind {
    ExprKind::Unary { op: UnaryOp::Not, operand: Box::new(Expr::made(operand)) }
}

/// An operand that is tested for truth.
fn truth(operand: Expr) -> Expr {
    if is_boolean(&operand) { operand } else { Expr::made(compare(CompareOp::NotEqual, number(0), operand)) }
}

fn truths(operands: Vec<Expr>) -> Vec<Expr> {
    operands.into_iter().map(truth).collect()
}

/// The opposite of an expression.
fn negation(operand: Expr) -> ExprKind {
    if !is_boolean(&operand) {
        return compare(CompareOp::Equal, number(0), operand);
    }
    match operand.kind {
        ExprKind::Compare { op, left, right } if op != CompareOp::NullSafeEqual => {
            ExprKind::Compare { op: opposite(op), left, right }
        }
        ExprKind::Is { operand, test, negated } => ExprKind::Is { operand, test, negated: !negated },
        ExprKind::Between { operand, low, high, negated } => {
            ExprKind::Between { operand, low, high, negated: !negated }
        }
        ExprKind::InList { operand, list, negated } => ExprKind::InList { operand, list, negated: !negated },
        other => not(other),
    }
}

fn opposite(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Equal | CompareOp::NullSafeEqual => CompareOp::NotEqual,
        CompareOp::NotEqual => CompareOp::Equal,
        CompareOp::Less => CompareOp::GreaterOrEqual,
        CompareOp::LessOrEqual => CompareOp::Greater,
        CompareOp::Greater => CompareOp::LessOrEqual,
        CompareOp::GreaterOrEqual => CompareOp::Less,
    }
}

/// One node whose operands are normal already.
fn normal(kind: ExprKind) -> ExprKind {
    match kind {
        ExprKind::Literal(literal) => normal_literal(literal),
        ExprKind::Column(column) => {
            let ColumnName { schema: _, table: _, name } = *column;
            ExprKind::Column(Box::new(ColumnName { schema: None, table: None, name }))
        }
        ExprKind::JsonPath { column, path, unquote } => {
            let column = Expr::made(normal(ExprKind::Column(column)));
            let found = call("json_extract", vec![column, Expr::made(string("utf8mb4", path))]);
            if unquote { call("json_unquote", vec![Expr::made(found)]) } else { found }
        }
        ExprKind::And(operands) => ExprKind::And(truths(operands)),
        ExprKind::Or(operands) => ExprKind::Or(truths(operands)),
        ExprKind::Xor(operands) => ExprKind::Xor(truths(operands)),
        ExprKind::Unary { op: UnaryOp::Not, operand } => negation(*operand),
        ExprKind::Unary { op: UnaryOp::Plus, operand } => operand.kind,
        ExprKind::Is { operand, test: Truth::Unknown, negated } => ExprKind::Is { operand, test: Truth::Null, negated },
        ExprKind::Is { operand, test: test @ (Truth::True | Truth::False), negated } => {
            ExprKind::Is { operand: Box::new(truth(*operand)), test, negated }
        }
        ExprKind::InList { operand, mut list, negated }
            if list.len() == 1 && !matches!(operand.kind, ExprKind::Row(_)) =>
        {
            let op = if negated { CompareOp::NotEqual } else { CompareOp::Equal };
            compare(op, *operand, list.remove(0))
        }
        ExprKind::Compare { op, left, right } => normal_comparison(op, *left, *right),
        ExprKind::Like { operand, pattern, escape, negated: true } => {
            not(ExprKind::Like { operand, pattern, escape, negated: false })
        }
        ExprKind::Regexp { operand, pattern, negated } => {
            let found = call("regexp_like", vec![*operand, *pattern]);
            if negated { not(found) } else { found }
        }
        ExprKind::SoundsLike { left, right } => {
            let soundex = |side| Expr::made(call("soundex", vec![side]));
            compare(CompareOp::Equal, soundex(*left), soundex(*right))
        }
        ExprKind::TimestampAdd { unit, count, operand } => {
            let interval = Box::new(Interval { value: *count, unit });
            ExprKind::DateShift { operand, interval, subtract: false }
        }
        ExprKind::Cast { operand, to, array } => ExprKind::Cast { operand, to: normal_type(to), array },
        ExprKind::JsonValue(mut value) => {
            value.returning.get_or_insert(CastType::Char { length: Some(512), charset: None });
            ExprKind::JsonValue(value)
        }
        ExprKind::Function(function) if function.schema.is_none() => normal_call(*function),
        other => other,
    }
}

fn normal_literal(literal: Literal) -> ExprKind {
    match literal {
        Literal::String(text) => string("utf8mb4", text),
        Literal::National(text) => string("utf8mb3", text),
        Literal::Bits(bytes) => ExprKind::Literal(Literal::Hex(bytes)),
        Literal::Decimal(digits) if digits.starts_with('.') => {
            ExprKind::Literal(Literal::Decimal(format!("0{digits}")))
        }
        other => ExprKind::Literal(other),
    }
}

fn normal_comparison(op: CompareOp, left: Expr, right: Expr) -> ExprKind {
    match (op, left.kind, right.kind) {
        (CompareOp::Equal, ExprKind::Row(left), ExprKind::Row(right)) if left.len() == right.len() => {
            let pairs = left.into_iter().zip(right);
            ExprKind::And(pairs.map(|(left, right)| Expr::made(normal_comparison(op, left, right))).collect())
        }
        (op, left, right) => compare(op, Expr::made(left), Expr::made(right)),
    }
}

fn normal_type(ty: CastType) -> CastType {
    let char = |length, charset: &str| CastType::Char { length, charset: Some(charset.to_owned()) };
    match ty {
        CastType::Char { length, charset: None } => char(length, "utf8mb4"),
        CastType::NationalChar(length) => char(length, "utf8mb3"),
        CastType::Binary(length) => char(length, "binary"),
        CastType::Decimal { precision, scale } => {
            CastType::Decimal { precision: precision.or(Some(10)), scale: scale.or(Some(0)) }
        }
        other => other,
    }
}

/// Functions that MySQL knows under another name.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("atan2", "atan"),
    ("ceil", "ceiling"),
    ("character_length", "char_length"),
    ("current_date", "curdate"),
    ("current_time", "curtime"),
    ("current_timestamp", "now"),
    ("day", "dayofmonth"),
    ("lcase", "lower"),
    ("localtime", "now"),
    ("localtimestamp", "now"),
    ("mid", "substr"),
    ("octet_length", "length"),
    ("power", "pow"),
    ("schema", "database"),
    ("session_user", "user"),
    ("substring", "substr"),
    ("system_user", "user"),
    ("ucase", "upper"),
];

/// The name that MySQL shows for a function, which is in lower case.
fn shown_name(name: &str) -> &str {
    OTHER_NAMES.iter().find(|(other, _)| *other == name).map_or(name, |(_, shown)| shown)
}

fn normal_call(function: Function) -> ExprKind {
    let name = function.name.to_ascii_lowercase();
    let name = shown_name(&name).to_owned();
    let Function { arguments, .. } = function;
    let count = arguments.len();
    let mut given = arguments.into_iter();
    let mut next = || given.next().unwrap_or_else(|| Expr::made(ExprKind::Literal(Literal::Null)));
    match (name.as_str(), count) {
        ("bin", 1) => call("conv", vec![next(), number(10), number(2)]),
        ("oct", 1) => call("conv", vec![next(), number(10), number(8)]),
        ("round", 1) => call("round", vec![next(), number(0)]),
        ("week" | "yearweek", 1) => call(&name, vec![next(), number(0)]),
        ("weekofyear", 1) => call("week", vec![next(), number(3)]),
        ("isnull", 1) => ExprKind::Is { operand: Box::new(next()), test: Truth::Null, negated: false },
        ("date", 1) => ExprKind::Cast { operand: Box::new(next()), to: CastType::Date, array: false },
        ("mod", 2) => chain(next(), BinaryOp::Modulo, next()),
        ("instr", 2) => {
            let (within, what) = (next(), next());
            call("locate", vec![what, within])
        }
        ("datediff", 2) => {
            let mut days = || Expr::made(call("to_days", vec![next()]));
            chain(days(), BinaryOp::Subtract, days())
        }
        // Written without parentheses or not: MySQL shows them.
        _ => ExprKind::Function(Box::new(Function { name, arguments: given.collect(), bare: false, ..function })),
    }
}

/// Functions that answer a truth, and one that only counts as such.
const BOOLEAN: &[&str] = &[
    "is_ipv4",
    "is_ipv4_compat",
    "is_ipv4_mapped",
    "is_ipv6",
    "is_uuid",
    "isnull",
    "json_contains",
    "json_contains_path",
    "json_overlaps",
    "json_schema_valid",
    "json_valid",
    "regexp_like",
    "strcmp",
];

/// Whether the expression is a truth by its form, as that of a CHECK must be.
pub fn is_boolean(node: &Expr) -> bool {
    match &node.kind {
        ExprKind::Literal(Literal::Bool(_))
        | ExprKind::Unary { op: UnaryOp::Not, operand: _ }
        | ExprKind::And(_)
        | ExprKind::Or(_)
        | ExprKind::Xor(_)
        | ExprKind::Compare { op: _, left: _, right: _ }
        | ExprKind::Quantified { op: _, left: _, all: _, query: _ }
        | ExprKind::Is { operand: _, test: _, negated: _ }
        | ExprKind::Between { operand: _, low: _, high: _, negated: _ }
        | ExprKind::InList { operand: _, list: _, negated: _ }
        | ExprKind::InQuery { operand: _, query: _, negated: _ }
        | ExprKind::Like { operand: _, pattern: _, escape: _, negated: _ }
        | ExprKind::Regexp { operand: _, pattern: _, negated: _ }
        | ExprKind::SoundsLike { left: _, right: _ }
        | ExprKind::MemberOf { value: _, array: _ }
        | ExprKind::Exists(_) => true,
        ExprKind::Function(function) => BOOLEAN.iter().any(|name| function.name.eq_ignore_ascii_case(name)),
        _ => false,
    }
}

fn concatenates(node: &Expr) -> bool {
    struct Find(bool);
    impl Visitor for Find {
        fn expr(&mut self, node: &Expr) -> bool {
            self.0 |= matches!(node.kind, ExprKind::Concat(_));
            !self.0
        }
    }
    let mut find = Find(false);
    walk::expr(node, &mut find);
    find.0
}

/// Functions whose answer is not decided by their arguments.
const CHANGING: &[&str] = &[
    "benchmark",
    "connection_id",
    "curdate",
    "current_date",
    "current_role",
    "current_time",
    "current_timestamp",
    "current_user",
    "curtime",
    "database",
    "found_rows",
    "get_lock",
    "is_free_lock",
    "is_used_lock",
    "last_insert_id",
    "load_file",
    "localtime",
    "localtimestamp",
    "name_const",
    "now",
    "rand",
    "random_bytes",
    "release_all_locks",
    "release_lock",
    "row_count",
    "schema",
    "session_user",
    "sleep",
    "sysdate",
    "system_user",
    "user",
    "utc_date",
    "utc_time",
    "utc_timestamp",
    "uuid",
    "uuid_short",
    "values",
    "version",
];

/// Returns the first construct of the expression that no generated column may have.
pub fn disallowed(node: &Expr) -> Option<Disallowed> {
    let mut search = Search(None);
    walk::expr(node, &mut search);
    search.0
}

struct Search(Option<Disallowed>);

impl Visitor for Search {
    fn expr(&mut self, node: &Expr) -> bool {
        if self.0.is_some() {
            return false;
        }
        self.0 = match &node.kind {
            ExprKind::UserVariable(_)
            | ExprKind::SystemVariable { scope: _, name: _ }
            | ExprKind::Assign { name: _, value: _ } => Some(Disallowed::Variable),
            ExprKind::InsertedValue(_) => Some(Disallowed::Function("values".to_owned())),
            ExprKind::Function(function) => {
                let name = function.name.to_ascii_lowercase();
                let is_now = name == "unix_timestamp" && function.arguments.is_empty();
                (is_now || CHANGING.contains(&&*name)).then(|| Disallowed::Function(shown_name(&name).to_owned()))
            }
            _ => None,
        };
        self.0.is_none()
    }

    fn query(&mut self, _: &Query) -> bool {
        self.0.get_or_insert(Disallowed::Subquery);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse_expression;

    #[test]
    fn what_is_kept_reads_as_what_was_written() {
        for text in [r"a REGEXP '\\\\d+'", r"concat(a, '\\n', 'it''s', `b c`)", "a + 1 > 2 OR b", "j -> '$.\"x\"'"] {
            let node = parse_expression(text).expect("it parses");
            let kept = stored_text(&node, SqlMode::DEFAULT).expect("it can be kept");
            assert_eq!(parse_expression(&kept).expect("it parses again"), node, "{kept}");
        }
    }

    #[test]
    fn what_is_shown_has_the_form_of_mysql() {
        for (kept, shown) in [
            ("a = 'it''s'", r"(`a` = _utf8mb4'it\'s')"),
            ("j ->> '$.a'", "json_unquote(json_extract(`j`,_utf8mb4'$.a'))"),
            ("not (a > 5)", "(`a` <= 5)"),
            ("not a", "(0 = `a`)"),
            ("a and not b", "((0 <> `a`) and (0 = `b`))"),
            ("t.a not like '1%'", "(not((`a` like _utf8mb4'1%')))"),
            ("(a,b) = (1,2)", "((`a` = 1) and (`b` = 2))"),
            ("(a,b) in ((1,2),(3,4))", "((`a`,`b`) in ((1,2),(3,4)))"),
            ("a regexp 'x'", "regexp_like(`a`,_utf8mb4'x')"),
            ("a = b'11' or a = .5", "((`a` = 0x03) or (`a` = 0.5))"),
            ("mod(a, 2)", "(`a` % 2)"),
            ("cast(a as char)", "cast(`a` as char charset utf8mb4)"),
            ("instr(a, b)", "locate(`b`,`a`)"),
            ("current_timestamp", "now()"),
            ("ucase(a)", "upper(`a`)"),
            ("a not in (1)", "(`a` <> 1)"),
        ] {
            assert_eq!(shown_text(kept), shown);
            assert_eq!(shown_text(&shown_text(kept)), shown, "read again");
        }
        assert_eq!(listed_text("a = '\\\\'"), r"(`a` = _utf8mb4\'\\\\\')");
    }

    #[test]
    fn what_depends_on_more_than_the_row_is_seen() {
        let disallowed = |text| disallowed(&parse_expression(text).expect("it parses"));
        assert_eq!(disallowed("a + 1"), None);
        assert_eq!(disallowed("a + `now`"), None);
        assert_eq!(disallowed("NOW(6)"), Some(Disallowed::Function("now".to_owned())));
        assert_eq!(disallowed("a + CURRENT_DATE"), Some(Disallowed::Function("curdate".to_owned())));
        assert_eq!(disallowed("a + @x"), Some(Disallowed::Variable));
        assert_eq!(disallowed("(SELECT 1)"), Some(Disallowed::Subquery));
        assert_eq!(disallowed("UNIX_TIMESTAMP(a)"), None);
    }
}
