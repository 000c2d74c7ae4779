//! Single-table reads that a door builds without SQL text, from clients' operator trees.
//!
//! A read becomes the syntax tree of the equivalent query and is then a statement like any other: names are resolved,
//! privileges checked, types inferred, a plan chosen and cached. Only parameter values differ between two runs. A
//! parameter has a number and may be used any number of times, or never.

use std::sync::Arc;

use syntax::tree::{
    BinaryOp, ColumnName, CompareOp, Expr, ExprKind, Function, HintAction, Ident, IndexHint, Joined, Link, Name,
    OrderItem, Query, QueryBody, Select, SelectExpr, SelectItem, Span, Statement, TableName, TableRef, Truth, UnaryOp,
};

use crate::error::{self, Result, SqlError};
use crate::instance::prepared::Prepared;
use crate::parse::Parsed;
use crate::session::Session;
use query::catalog::table::{Part, Table};

/// A read of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Read {
    /// None: the session's current database.
    pub schema: Option<String>,
    pub table: String,
    /// FORCE this index; None: the planner chooses.
    pub index: Option<String>,
    /// The output columns: (name, expression).
    pub columns: Vec<(String, Term)>,
    pub filter: Option<Term>,
    /// The sort order: (column, descending).
    pub order: Vec<(String, bool)>,
    /// The number of parameters.
    pub parameters: usize,
}

/// An expression over a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    Column(String),
    /// The parameter of that number.
    Parameter(usize),
    Binary(Operator, Box<Term>, Box<Term>),
    Not(Box<Term>),
    Negative(Box<Term>),
    Complement(Box<Term>),
    /// IS NULL, or IS NOT NULL if true.
    IsNull(Box<Term>, bool),
    /// LIKE, or NOT LIKE if true.
    Like(Box<Term>, Box<Term>, bool),
    /// IN, or NOT IN if true.
    In(Box<Term>, Vec<Term>, bool),
    /// Arguments of BLOOMFILTER: the value, then the filter's description.
    BloomFilter(Vec<Term>),
    /// An aggregate of an expression; None: COUNT(*).
    Aggregate(Aggregate, Option<Box<Term>>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Plus,
    Minus,
    Times,
    Divided,
    WholeDivided,
    Modulo,
    Greater,
    AtLeast,
    Less,
    AtMost,
    Equal,
    SameAs,
    NotEqual,
    And,
    Or,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    Count,
    CountDistinct,
    Sum,
    SumDistinct,
    Avg,
    AvgDistinct,
    Min,
    Max,
}

/// The columns of a table and of one of its keys, for building a read.
#[derive(Clone, Debug)]
pub struct Outline {
    pub origin: Origin,
    /// The columns of `*`.
    pub columns: Vec<String>,
    /// The columns of the index: (name, descending).
    pub key: Vec<(String, bool)>,
}

/// The versions that an outline was made from, for `Session::is_current`.
#[derive(Clone, Debug)]
pub struct Origin {
    table: Arc<Table>,
    context_id: u64,
}

impl Session {
    /// Returns a table's columns and those of one of its indexes, by default `PRIMARY`.
    pub fn outline(&mut self, schema: Option<&str>, table: &str, index: Option<&str>) -> Result<Outline> {
        self.refresh();
        self.follow_accounts()?;
        let own = if schema.is_none() { self.database.clone() } else { None };
        let database = schema.or(own.as_deref()).ok_or_else(|| error::NO_DB.bare())?;
        if !self.rights.sees_table(database, table) {
            return Err(self.rights.no_table("SELECT", table));
        }
        let table = self.catalog.table(database, table)?.clone();
        let name = index.unwrap_or("PRIMARY");
        let parts: &[Part] = match (name.eq_ignore_ascii_case("PRIMARY"), &table.primary) {
            (true, Some(parts)) => parts,
            // Rows are then ordered by their row ids.
            (true, None) if index.is_none() => &[],
            _ => {
                let at = table.index(name).filter(|at| table.indexes[*at].terms.is_none());
                let at = at.ok_or_else(|| error::KEY_DOES_NOT_EXIST.with(&[&name, &table.name]))?;
                &table.indexes[at].parts
            }
        };
        let key = parts.iter().map(|part| (table.columns[part.column].name.clone(), part.order.descending)).collect();
        let context_id = self.context_id();
        let shown = table.columns.iter().filter(|column| !column.is_hidden() && !column.invisible);
        Ok(Outline {
            origin: Origin { table: table.clone(), context_id },
            columns: shown.map(|column| column.name.clone()).collect(),
            key,
        })
    }

    /// Returns whether an outline of this origin is still current.
    pub fn is_current(&mut self, origin: &Origin) -> bool {
        origin.table.live.is_current(origin.table.version) && origin.context_id == self.context_id()
    }

    /// Prepares a read for `execute_prepared`. The process list shows `shown`.
    pub fn prepare_read(&mut self, read: &Read, shown: &str) -> Result<Prepared> {
        let begun = self.begin_statement(shown);
        self.ctx.warnings.clear();
        let prepared = begun.and_then(|()| {
            let statement = Statement::Query(Box::new(query(read)?));
            let parsed = Parsed { statement, parameters: read.parameters, height: 0 };
            self.prepare_parsed(shown, parsed).map(|(prepared, _)| prepared)
        });
        self.handle.show(super::ProcessListRow::end);
        prepared.map_err(|error| self.fail(error))
    }
}

/// Builds trees of terms. Columns are qualified, so that they never resolve to aliases.
struct Tree<'r> {
    table: &'r str,
}

/// Returns an expression without a source span.
fn of(kind: ExprKind) -> Expr {
    Expr { kind, span: Span::default() }
}

/// Returns the read's syntax tree.
fn query(read: &Read) -> Result<Query> {
    let tree = Tree { table: &read.table };
    let hint = |index: &String| IndexHint { action: HintAction::Force, scope: None, indexes: vec![Ident::new(index)] };
    let table = TableName {
        name: Name { schema: read.schema.clone(), name: read.table.clone() },
        partitions: Vec::new(),
        alias: None,
        hints: read.index.iter().map(hint).collect(),
        span: Span::default(),
    };
    let select = Select {
        hints: Vec::new(),
        distinct: false,
        straight_join: false,
        calc_found_rows: false,
        items: read.columns.iter().map(|(name, term)| tree.item(name, term)).collect::<Result<_>>()?,
        from: vec![Joined { first: TableRef::Table(Box::new(table)), joins: Vec::new() }],
        selection: read.filter.as_ref().map(|term| tree.expr(term)).transpose()?,
        group_by: Vec::new(),
        rollup: false,
        having: None,
        windows: Vec::new(),
    };
    let by = |(column, descending): &(String, bool)| OrderItem { expr: tree.column(column), descending: *descending };
    Ok(Query {
        with: None,
        body: QueryBody::Select(Box::new(select)),
        order_by: read.order.iter().map(by).collect(),
        limit: None,
        locks: Vec::new(),
        into: None,
        span: Span::default(),
    })
}

impl Tree<'_> {
    fn column(&self, name: &str) -> Expr {
        of(ExprKind::Column(Box::new(ColumnName {
            schema: None,
            table: Some(self.table.to_owned()),
            name: name.to_owned(),
        })))
    }

    fn item(&self, name: &str, term: &Term) -> Result<SelectItem> {
        let is_itself = matches!(term, Term::Column(column) if column == name);
        let alias = (!is_itself).then(|| name.to_owned());
        Ok(SelectItem::Expr(SelectExpr { expr: self.expr(term)?, alias, text: name.to_owned() }))
    }

    fn boxed(&self, term: &Term) -> Result<Box<Expr>> {
        self.expr(term).map(Box::new)
    }

    fn all(&self, terms: &[Term]) -> Result<Vec<Expr>> {
        terms.iter().map(|term| self.expr(term)).collect()
    }

    fn expr(&self, term: &Term) -> Result<Expr> {
        let unary = |op, term: &Term| -> Result<ExprKind> { Ok(ExprKind::Unary { op, operand: self.boxed(term)? }) };
        Ok(of(match term {
            Term::Column(name) => return Ok(self.column(name)),
            Term::Parameter(number) => {
                let number = u32::try_from(*number);
                ExprKind::Parameter(number.map_err(|_| SqlError::unsupported("as many parameters"))?)
            }
            Term::Binary(op, left, right) => self.binary(*op, left, right)?,
            Term::Not(term) => unary(UnaryOp::Not, term)?,
            Term::Negative(term) => unary(UnaryOp::Minus, term)?,
            Term::Complement(term) => unary(UnaryOp::BitNot, term)?,
            Term::IsNull(term, is) => ExprKind::Is { operand: self.boxed(term)?, test: Truth::Null, negated: !is },
            Term::Like(term, pattern, fits) => ExprKind::Like {
                operand: self.boxed(term)?,
                pattern: self.boxed(pattern)?,
                escape: None,
                negated: !fits,
            },
            Term::In(term, list, is_in) => {
                ExprKind::InList { operand: self.boxed(term)?, list: self.all(list)?, negated: !is_in }
            }
            Term::BloomFilter(arguments) => {
                ExprKind::Function(Box::new(Function::plain("BLOOMFILTER", self.all(arguments)?)))
            }
            Term::Aggregate(kind, of) => self.aggregate(*kind, of.as_deref())?,
        }))
    }

    fn binary(&self, op: Operator, left: &Term, right: &Term) -> Result<ExprKind> {
        let chain = |op| -> Result<ExprKind> {
            Ok(ExprKind::Chain { first: self.boxed(left)?, links: vec![Link { op, operand: self.expr(right)? }] })
        };
        let compare = |op| -> Result<ExprKind> {
            Ok(ExprKind::Compare { op, left: self.boxed(left)?, right: self.boxed(right)? })
        };
        match op {
            Operator::Plus => chain(BinaryOp::Add),
            Operator::Minus => chain(BinaryOp::Subtract),
            Operator::Times => chain(BinaryOp::Multiply),
            Operator::Divided => chain(BinaryOp::Divide),
            Operator::WholeDivided => chain(BinaryOp::IntegerDivide),
            Operator::Modulo => chain(BinaryOp::Modulo),
            Operator::Greater => compare(CompareOp::Greater),
            Operator::AtLeast => compare(CompareOp::GreaterOrEqual),
            Operator::Less => compare(CompareOp::Less),
            Operator::AtMost => compare(CompareOp::LessOrEqual),
            Operator::Equal => compare(CompareOp::Equal),
            Operator::SameAs => compare(CompareOp::NullSafeEqual),
            Operator::NotEqual => compare(CompareOp::NotEqual),
            Operator::And => {
                let operands = [self.expr(left)?, self.expr(right)?].into_iter();
                Ok(ExprKind::And(operands.flat_map(ands).collect()))
            }
            Operator::Or => {
                let operands = [self.expr(left)?, self.expr(right)?].into_iter();
                Ok(ExprKind::Or(operands.flat_map(ors).collect()))
            }
        }
    }

    fn aggregate(&self, kind: Aggregate, of: Option<&Term>) -> Result<ExprKind> {
        let (name, distinct) = match kind {
            Aggregate::Count => ("COUNT", false),
            Aggregate::CountDistinct => ("COUNT", true),
            Aggregate::Sum => ("SUM", false),
            Aggregate::SumDistinct => ("SUM", true),
            Aggregate::Avg => ("AVG", false),
            Aggregate::AvgDistinct => ("AVG", true),
            Aggregate::Min => ("MIN", false),
            Aggregate::Max => ("MAX", false),
        };
        let star = of.is_none();
        if star && kind != Aggregate::Count {
            return Err(SqlError::unsupported("an aggregate of nothing"));
        }
        let arguments = of.map(|of| self.expr(of)).transpose()?.into_iter().collect();
        Ok(ExprKind::Function(Box::new(Function { star, distinct, ..Function::plain(name, arguments) })))
    }
}

/// Returns the operands of AND, or the expression itself.
fn ands(expr: Expr) -> Vec<Expr> {
    match expr.kind {
        ExprKind::And(list) => list,
        kind => vec![of(kind)],
    }
}

/// Returns the operands of OR, or the expression itself.
fn ors(expr: Expr) -> Vec<Expr> {
    match expr.kind {
        ExprKind::Or(list) => list,
        kind => vec![of(kind)],
    }
}
