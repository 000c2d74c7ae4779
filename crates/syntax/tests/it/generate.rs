//! Random trees of all kinds of nodes, such as the parser makes them: what it flattens or drops is never there.
//!
//! Nodes are made in the order of their text, for parameters are numbered so.

use syntax::tree::*;

mod query;
mod statement;

/// A pseudorandom sequence (xorshift) and the number of parameters so far.
pub struct Random {
    state: u64,
    parameters: u32,
}

const IDENTS: [&str; 10] = ["a", "b", "t1", "order", "b c", "d`e", "ü", "1x", "A", "'q'"];
const TEXTS: [&str; 12] =
    ["", "x", "it's", "a\\b", "\\%\\_", "\0", "line\nfeed\r", "\u{1a}", "ß€", "\"", "`", "/* */ --"];
const CHARSETS: [&str; 4] = ["utf8mb4", "latin1", "binary", "ascii"];
const COLLATIONS: [&str; 3] = ["utf8mb4_bin", "binary", "latin1_german1_ci"];
const SPATIAL: [&str; 3] = ["point", "linestring", "multipolygon"];

/// Levels of operators that make chains.
const LEVELS: [&[BinaryOp]; 6] = [
    &[BinaryOp::BitOr],
    &[BinaryOp::BitAnd],
    &[BinaryOp::ShiftLeft, BinaryOp::ShiftRight],
    &[BinaryOp::Add, BinaryOp::Subtract],
    &[BinaryOp::Multiply, BinaryOp::Divide, BinaryOp::IntegerDivide, BinaryOp::Modulo],
    &[BinaryOp::BitXor],
];

fn level(op: BinaryOp) -> usize {
    LEVELS.iter().position(|level| level.contains(&op)).unwrap()
}

pub fn made(kind: ExprKind) -> Expr {
    Expr { kind, span: Span::default() }
}

impl Random {
    pub fn new(seed: u64) -> Random {
        // Seeds that follow one another begin far apart.
        let state = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Random { state, parameters: 0 }
    }

    fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// True once in so many times.
    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn flag(&mut self) -> bool {
        self.once_in(2)
    }

    fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())].clone()
    }

    fn word(&mut self, list: &[&str]) -> String {
        self.pick(list).to_owned()
    }

    fn option<T>(&mut self, make: impl FnOnce(&mut Random) -> T) -> Option<T> {
        self.once_in(3).then(|| make(self))
    }

    fn list<T>(&mut self, least: usize, most: usize, mut make: impl FnMut(&mut Random) -> T) -> Vec<T> {
        let length = least + self.below(most - least + 1);
        (0..length).map(|_| make(self)).collect()
    }

    fn number(&mut self) -> u64 {
        self.pick(&[0, 1, 2, 5, 10, 65_535])
    }

    fn size(&mut self) -> Option<u64> {
        self.option(Random::number)
    }

    fn name_text(&mut self) -> String {
        self.word(&IDENTS)
    }

    fn ident(&mut self) -> Ident {
        Ident::new(self.name_text())
    }

    fn idents(&mut self) -> Vec<Ident> {
        self.list(1, 3, Random::ident)
    }

    fn some_idents(&mut self) -> Vec<Ident> {
        if self.once_in(3) { self.idents() } else { Vec::new() }
    }

    fn name(&mut self) -> Name {
        Name { schema: self.option(Random::name_text), name: self.name_text() }
    }

    fn names(&mut self) -> Vec<Name> {
        self.list(1, 3, Random::name)
    }

    fn text(&mut self) -> String {
        let mut text = self.word(&TEXTS);
        if self.flag() {
            text += self.pick(&TEXTS);
        }
        text
    }

    fn bytes(&mut self) -> Vec<u8> {
        self.list(0, 9, |random| random.next() as u8)
    }

    fn charset(&mut self) -> String {
        self.word(&CHARSETS)
    }

    fn collation(&mut self) -> String {
        self.word(&COLLATIONS)
    }

    fn variable(&mut self) -> String {
        self.word(&["x", "a.b", "b c", "d`e", "ü", "1", "$_"])
    }

    fn column_name(&mut self) -> ColumnName {
        let table = self.option(Random::name_text);
        let schema = table.as_ref().and_then(|_| self.option(Random::name_text));
        ColumnName { schema, table, name: self.name_text() }
    }

    fn unit(&mut self) -> Unit {
        self.pick(&Unit::NAMES).1
    }

    /// A unit of one word.
    fn simple_unit(&mut self) -> Unit {
        self.pick(&Unit::NAMES[..9]).1
    }

    fn literal(&mut self) -> Literal {
        match self.below(12) {
            0 => Literal::Null,
            1 => Literal::Bool(self.flag()),
            2 | 3 => Literal::Integer(self.pick(&[0, 1, 7, 42, u64::MAX])),
            4 => Literal::Decimal(self.word(&["1.5", ".5", "1.", "0.000", "18446744073709551616"])),
            5 => Literal::Float(self.word(&["1e5", "1.5e-3", ".5E+10", "1.e0"])),
            6 | 7 => Literal::String(self.text()),
            8 => Literal::National(self.text()),
            9 => Literal::Hex(self.bytes()),
            10 => Literal::Bits(self.bytes()),
            _ => {
                let kind = self.pick(&[TemporalKind::Date, TemporalKind::Time, TemporalKind::Timestamp]);
                Literal::Temporal(kind, self.text())
            }
        }
    }

    fn parameter(&mut self) -> Expr {
        self.parameters += 1;
        made(ExprKind::Parameter(self.parameters - 1))
    }

    fn boxed(&mut self, height: usize) -> Box<Expr> {
        Box::new(self.expr(height))
    }

    fn exprs(&mut self, least: usize, most: usize, height: usize) -> Vec<Expr> {
        self.list(least, most, |random| random.expr(height))
    }

    /// An expression of at most this height.
    pub fn expr(&mut self, height: usize) -> Expr {
        if height == 0 || self.once_in(6) { self.leaf() } else { self.node(height - 1) }
    }

    fn leaf(&mut self) -> Expr {
        made(match self.below(14) {
            0..=3 => ExprKind::Literal(self.literal()),
            4..=6 => ExprKind::Column(Box::new(self.column_name())),
            7 => return self.parameter(),
            8 => ExprKind::UserVariable(self.variable()),
            9 => {
                let scope = self.pick(&[None, Some(Scope::Session), Some(Scope::Global), Some(Scope::Persist)]);
                let name = self.word(&["sql_mode", "autocommit", "hot.key_buffer_size"]);
                ExprKind::SystemVariable { scope, name }
            }
            10 => {
                let literal = match self.below(3) {
                    0 => Literal::String(self.text()),
                    1 => Literal::Hex(self.bytes()),
                    _ => Literal::Bits(self.bytes()),
                };
                ExprKind::Introduced { charset: self.charset(), literal }
            }
            11 => {
                let column = Box::new(self.column_name());
                if self.flag() { ExprKind::DefaultOf(column) } else { ExprKind::InsertedValue(column) }
            }
            12 => {
                let column = Box::new(self.column_name());
                ExprKind::JsonPath { column, path: self.text(), unquote: self.flag() }
            }
            _ => {
                let bare = [
                    "current_user",
                    "current_date",
                    "current_time",
                    "current_timestamp",
                    "localtime",
                    "localtimestamp",
                    "utc_date",
                    "utc_time",
                    "utc_timestamp",
                ];
                let function = match self.below(3) {
                    0 => Function { bare: true, ..Function::plain(self.word(&bare), Vec::new()) },
                    1 => Function { star: true, ..Function::plain("count", Vec::new()) },
                    _ => Function::plain(self.word(&["now", "database", "user", "f", "current_user"]), Vec::new()),
                };
                ExprKind::Function(Box::new(function))
            }
        })
    }

    fn node(&mut self, h: usize) -> Expr {
        let negated = self.flag();
        made(match self.below(36) {
            0 => ExprKind::Assign { name: self.variable(), value: self.boxed(h) },
            1 => ExprKind::Row(self.exprs(2, 3, h)),
            2 | 3 => {
                let op = self.pick(&[UnaryOp::Plus, UnaryOp::Minus, UnaryOp::BitNot, UnaryOp::Not]);
                ExprKind::Unary { op, operand: self.boxed(h) }
            }
            4 => ExprKind::And(self.operands(h, |kind| matches!(kind, ExprKind::And(_)))),
            5 => ExprKind::Or(self.operands(h, |kind| matches!(kind, ExprKind::Or(_)))),
            6 => ExprKind::Xor(self.operands(h, |kind| matches!(kind, ExprKind::Xor(_)))),
            7..=9 => self.chain(h),
            10 => ExprKind::Compare { op: self.compare_op(), left: self.boxed(h), right: self.boxed(h) },
            11 => {
                let (op, left) = (self.compare_op(), self.boxed(h));
                // ANY and ALL do not go with `<=>`.
                let op = if op == CompareOp::NullSafeEqual { CompareOp::Equal } else { op };
                ExprKind::Quantified { op, left, all: negated, query: Box::new(self.query(h)) }
            }
            12 => {
                let operand = self.boxed(h);
                let test = self.pick(&[Truth::Null, Truth::True, Truth::False, Truth::Unknown]);
                ExprKind::Is { operand, test, negated }
            }
            13 => ExprKind::Between { operand: self.boxed(h), low: self.boxed(h), high: self.boxed(h), negated },
            14 => {
                let operand = self.boxed(h);
                let mut list = self.exprs(1, 3, h);
                // A query alone in the list is InQuery.
                if let [Expr { kind: ExprKind::Subquery(_), .. }] = list[..] {
                    list.push(self.expr(h));
                }
                ExprKind::InList { operand, list, negated }
            }
            15 => ExprKind::InQuery { operand: self.boxed(h), query: Box::new(self.query(h)), negated },
            16 => {
                let (operand, pattern) = (self.boxed(h), self.boxed(h));
                ExprKind::Like { operand, pattern, escape: self.option(|random| random.boxed(h)), negated }
            }
            17 => ExprKind::Regexp { operand: self.boxed(h), pattern: self.boxed(h), negated },
            18 => ExprKind::SoundsLike { left: self.boxed(h), right: self.boxed(h) },
            19 => ExprKind::MemberOf { value: self.boxed(h), array: self.boxed(h) },
            20 => ExprKind::Collate { operand: self.boxed(h), collation: self.collation() },
            21 => {
                let operand = self.option(|random| random.boxed(h));
                let arms = self.list(1, 2, |random| Arm { condition: random.expr(h), result: random.expr(h) });
                ExprKind::Case { operand, arms, otherwise: self.option(|random| random.boxed(h)) }
            }
            22 => ExprKind::Cast { operand: self.boxed(h), to: self.cast_type(), array: self.once_in(4) },
            23 => ExprKind::CastAtZone { operand: self.boxed(h), zone: self.text(), scale: self.size() },
            24 => ExprKind::ConvertUsing { operand: self.boxed(h), charset: self.charset() },
            25 => self.function(h),
            26 => self.aggregate(h),
            27 => self.window_function(h),
            28 => {
                // Either may come first in the text, but a difference has the operand first.
                let first = negated.then(|| self.interval(h));
                let operand = self.boxed(h);
                let (interval, subtract) = match first {
                    Some(interval) => (interval, false),
                    None => (self.interval(h), self.flag()),
                };
                ExprKind::DateShift { operand, interval: Box::new(interval), subtract }
            }
            29 => match self.below(4) {
                0 => ExprKind::Extract { unit: self.unit(), operand: self.boxed(h) },
                1 => ExprKind::TimestampAdd { unit: self.simple_unit(), count: self.boxed(h), operand: self.boxed(h) },
                2 => ExprKind::TimestampDiff { unit: self.simple_unit(), from: self.boxed(h), to: self.boxed(h) },
                _ => {
                    let kinds =
                        [TemporalKind::Date, TemporalKind::Time, TemporalKind::DateTime, TemporalKind::Timestamp];
                    ExprKind::GetFormat { of: self.pick(&kinds), region: self.boxed(h) }
                }
            },
            30 => {
                let side = self.pick(&[TrimSide::Both, TrimSide::Leading, TrimSide::Trailing]);
                ExprKind::Trim { side, remove: self.option(|random| random.boxed(h)), operand: self.boxed(h) }
            }
            31 => match self.flag() {
                true => ExprKind::Char { numbers: self.exprs(1, 3, h), charset: self.option(Random::charset) },
                false => {
                    let operand = self.boxed(h);
                    let pad = self.pick(&[None, Some(WeightPad::Char(3)), Some(WeightPad::Binary(4))]);
                    ExprKind::WeightString { operand, pad }
                }
            },
            32 => {
                let (document, path) = (self.expr(h), made(ExprKind::Literal(Literal::String(self.text()))));
                let returning = self.option(Random::cast_type);
                let (on_empty, on_error) = (self.on_missing(), self.on_missing());
                ExprKind::JsonValue(Box::new(JsonValue { document, path, returning, on_empty, on_error }))
            }
            33 => ExprKind::Exists(Box::new(self.query(h))),
            34 => ExprKind::Subquery(Box::new(self.query(h))),
            _ => {
                let columns = self.list(1, 2, Random::column_name);
                let modes =
                    [MatchMode::Natural, MatchMode::NaturalWithExpansion, MatchMode::Boolean, MatchMode::Expansion];
                ExprKind::Match { columns, against: self.boxed(h), mode: self.pick(&modes) }
            }
        })
    }

    /// Operands none of which is such a list itself.
    fn operands(&mut self, height: usize, is_same: fn(&ExprKind) -> bool) -> Vec<Expr> {
        self.list(2, 4, |random| {
            let operand = random.expr(height);
            if is_same(&operand.kind) {
                made(ExprKind::Unary { op: UnaryOp::Minus, operand: Box::new(operand) })
            } else {
                operand
            }
        })
    }

    fn chain(&mut self, height: usize) -> ExprKind {
        let ops = self.pick(&LEVELS);
        let mut first = self.boxed(height);
        if let ExprKind::Chain { first: _, links } = &first.kind
            && level(links[0].op) == level(ops[0])
        {
            first = Box::new(made(ExprKind::Unary { op: UnaryOp::Minus, operand: first }));
        }
        let links = self.list(1, 3, |random| Link { op: random.pick(ops), operand: random.expr(height) });
        ExprKind::Chain { first, links }
    }

    fn compare_op(&mut self) -> CompareOp {
        self.pick(&[
            CompareOp::Equal,
            CompareOp::NotEqual,
            CompareOp::Less,
            CompareOp::LessOrEqual,
            CompareOp::Greater,
            CompareOp::GreaterOrEqual,
            CompareOp::NullSafeEqual,
        ])
    }

    fn interval(&mut self, height: usize) -> Interval {
        Interval { value: self.expr(height), unit: self.unit() }
    }

    fn on_missing(&mut self) -> Option<OnMissing> {
        match self.below(5) {
            0 => Some(OnMissing::Null),
            1 => Some(OnMissing::Error),
            2 => Some(OnMissing::Default(self.literal())),
            _ => None,
        }
    }

    fn function(&mut self, height: usize) -> ExprKind {
        let (name, least, most) = self.pick(&[
            ("concat", 1, 3),
            ("coalesce", 1, 3),
            ("date", 1, 1),
            ("left", 2, 2),
            ("if", 3, 3),
            ("insert", 4, 4),
            ("interval", 2, 3),
            ("mod", 2, 2),
            ("locate", 2, 3),
            ("substr", 2, 3),
            ("f_1", 0, 2),
            ("_f", 0, 2),
            ("odd `name`", 0, 2),
            ("cast", 0, 2),
            ("select", 0, 2),
        ]);
        let mut function = Function::plain(name, self.exprs(least, most, height));
        if self.once_in(4) {
            function.schema = Some(self.name_text());
            function.name = "Stored F".to_owned();
        }
        ExprKind::Function(Box::new(function))
    }

    fn aggregate(&mut self, height: usize) -> ExprKind {
        let (name, takes_distinct) = self.pick(&[
            ("count", true),
            ("sum", true),
            ("min", true),
            ("bit_and", false),
            ("json_arrayagg", false),
            ("json_objectagg", false),
            ("group_concat", true),
        ]);
        let distinct = takes_distinct && self.once_in(3);
        let count = match name {
            "count" if distinct => self.below(2) + 1,
            "json_objectagg" => 2,
            "group_concat" => self.below(2) + 1,
            _ => 1,
        };
        let mut function = Function::plain(name, self.exprs(count, count, height));
        function.distinct = distinct;
        if name == "group_concat" {
            function.order_by = self.order_by(height);
            function.separator = self.option(Random::text);
        }
        function.over = self.option(|random| random.over(height));
        ExprKind::Function(Box::new(function))
    }

    fn window_function(&mut self, height: usize) -> ExprKind {
        let (name, count, takes_nulls) = self.pick(&[
            ("row_number", 0, false),
            ("rank", 0, false),
            ("ntile", 1, false),
            ("lead", 3, true),
            ("lag", 1, true),
            ("first_value", 1, true),
            ("nth_value", 2, true),
        ]);
        // A number of rows is a literal or variable.
        let rows = match name {
            "ntile" => 0,
            "lead" => 1,
            _ => count,
        };
        let argument = |at| match at == rows {
            true => made(ExprKind::Literal(Literal::Integer(3))),
            false => self.expr(height),
        };
        let mut function = Function::plain(name, (0..count).map(argument).collect());
        function.from_last = name == "nth_value" && self.flag();
        function.ignore_nulls = takes_nulls && self.flag();
        function.over = Some(self.over(height));
        ExprKind::Function(Box::new(function))
    }

    fn over(&mut self, height: usize) -> Over {
        if self.flag() { Over::Named(self.ident()) } else { Over::Window(Box::new(self.window(height))) }
    }

    fn window(&mut self, height: usize) -> Window {
        let base = self.option(Random::ident);
        let partition_by = self.exprs(0, 2, height);
        Window {
            base,
            partition_by,
            order_by: self.order_by(height),
            frame: self.option(|random| random.frame(height)),
        }
    }

    fn frame(&mut self, height: usize) -> Frame {
        let unit = self.pick(&[FrameUnit::Rows, FrameUnit::Range, FrameUnit::Groups]);
        let is_between = self.flag();
        let start = self.bound(height, is_between);
        let end = is_between.then(|| self.bound(height, is_between));
        Frame { unit, start, end, exclude: self.once_in(4) }
    }

    fn bound(&mut self, height: usize, is_between: bool) -> Bound {
        match self.below(if is_between { 5 } else { 3 }) {
            0 => Bound::CurrentRow,
            1 => Bound::UnboundedPreceding,
            2 => Bound::Preceding(Box::new(self.offset(height))),
            3 => Bound::Following(Box::new(self.offset(height))),
            _ => Bound::UnboundedFollowing,
        }
    }

    fn offset(&mut self, height: usize) -> Offset {
        match self.below(3) {
            0 => Offset::Rows(self.parameter()),
            1 => Offset::Rows(made(ExprKind::Literal(Literal::Integer(self.number())))),
            _ => Offset::Interval(self.interval(height)),
        }
    }

    fn order_by(&mut self, height: usize) -> Vec<OrderItem> {
        self.list(0, 2, |random| OrderItem { expr: random.expr(height), descending: random.flag() })
    }

    fn cast_type(&mut self) -> CastType {
        match self.below(15) {
            0 => CastType::Signed,
            1 => CastType::Unsigned,
            2 => CastType::Char { length: self.size(), charset: self.option(Random::charset) },
            3 => CastType::NationalChar(self.size()),
            4 => CastType::Binary(self.size()),
            5 => CastType::Date,
            6 => CastType::Time(self.size()),
            7 => CastType::DateTime(self.size()),
            8 => CastType::Year,
            9 => {
                let precision = self.size();
                CastType::Decimal { precision, scale: precision.and_then(|_| self.size()) }
            }
            10 => CastType::Float(self.size()),
            11 => CastType::Double,
            12 => CastType::Json,
            _ => CastType::Spatial(self.word(&SPATIAL)),
        }
    }
}
