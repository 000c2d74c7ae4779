//! Reads of one table that a door has put together itself, without a text: operator trees of clients come down to them.
//!
//! A read becomes the tree that its text would have become, and from there on it is a statement like any other: names are looked up, rights asked for, types found, a plan chosen and kept. What
//! differs between two runs are values alone: each has a number, may be named more than once, and may be one that nothing asks for.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sqlparser::ast;

use crate::catalog::table::{Part, Table};
use crate::error::{self, Result, SqlError};
use crate::parse::{self, Parsed, statement::Statement};
use crate::scalar::SqlMode;
use crate::session::{Prepared, Session};

/// Rows of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Read {
    /// None: the session's own.
    pub schema: Option<String>,
    pub table: String,
    /// By this index and no other; None: by whichever is best.
    pub index: Option<String>,
    /// What is shown of each row, by name.
    pub columns: Vec<(String, Term)>,
    pub filter: Option<Term>,
    /// By which columns rows are in order, and whether from the highest down.
    pub order: Vec<(String, bool)>,
    /// How many values it is run with.
    pub parameters: usize,
}

/// A value that follows from a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    Column(String),
    /// The value of that number.
    Parameter(usize),
    Binary(Operator, Box<Term>, Box<Term>),
    Not(Box<Term>),
    Negative(Box<Term>),
    Complement(Box<Term>),
    /// Whether it is NULL, or is not.
    IsNull(Box<Term>, bool),
    /// Whether it fits the pattern, or does not.
    Like(Box<Term>, Box<Term>, bool),
    /// Whether it is one of them, or is not.
    In(Box<Term>, Vec<Term>, bool),
    /// May the value be in a Bloom filter: the value, and what the function BLOOMFILTER takes behind it.
    BloomFilter(Vec<Term>),
    /// Of all rows; None: of the rows themselves.
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

/// What a door must know of a table to put a read together.
#[derive(Clone, Debug)]
pub struct Outline {
    pub origin: Origin,
    /// Those that `*` shows.
    pub columns: Vec<String>,
    /// The columns of the index, and which of them stand from the highest down.
    pub key: Vec<(String, bool)>,
}

/// Where an outline was seen: for `Session::is_current`.
#[derive(Clone, Debug)]
pub struct Origin {
    table: Arc<Table>,
    ground: u64,
}

impl Session {
    /// The columns of a table and those of one of its indexes, `PRIMARY` if none is named.
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
            // Rows have an order of their own then.
            (true, None) if index.is_none() => &[],
            _ => {
                let at = table.index(name).ok_or_else(|| error::KEY_DOES_NOT_EXIST.with(&[&name, &table.name]))?;
                &table.indexes[at].parts
            }
        };
        let key = parts.iter().map(|part| (table.columns[part.column].name.clone(), part.descending)).collect();
        let ground = self.ground();
        let shown = table.columns.iter().filter(|column| !column.is_hidden() && !column.invisible);
        Ok(Outline {
            origin: Origin { table: table.clone(), ground },
            columns: shown.map(|column| column.name.clone()).collect(),
            key,
        })
    }

    /// Is an outline from there what the session would be told now?
    pub fn is_current(&mut self, origin: &Origin) -> bool {
        origin.table.live.version.load(Ordering::Acquire) == origin.table.version && origin.ground == self.ground()
    }

    /// Makes a read ready to run with `execute_prepared`. `shown` is what the process list tells of it.
    pub fn prepare_read(&mut self, read: &Read, shown: &str) -> Result<Prepared> {
        let begun = self.begin_statement(shown);
        self.ctx.warnings.clear();
        let prepared = begun.and_then(|()| {
            let names = read.columns.iter().map(|(name, _)| name.clone()).collect();
            let statement = Statement::Query(Box::new(query(read)?));
            let parsed = Parsed { statement, parameters: read.parameters, names };
            self.prepare_parsed(shown, parsed).map(|(prepared, _)| prepared)
        });
        self.handle.show(super::Shown::end);
        prepared.map_err(|error| self.fail(error))
    }
}

/// Makes trees of terms. Columns are named with their table, so that none is taken for a name of the list.
struct Tree<'r> {
    table: &'r str,
}

fn quoted(name: &str) -> ast::Ident {
    ast::Ident::with_quote('`', name)
}

/// The tree of the read: that of a text which reads nothing, with everything in it replaced.
fn query(read: &Read) -> Result<ast::Query> {
    let parsed = parse::parse("SELECT 1 FROM t", SqlMode::DEFAULT)?.statement;
    let Statement::Query(mut query) = parsed else { unreachable!("it is a query") };
    let ast::SetExpr::Select(select) = &mut *query.body else { unreachable!("of one block") };
    let ast::TableFactor::Table { name, index_hints, .. } = &mut select.from[0].relation else {
        unreachable!("of one table")
    };
    *name = read.schema.iter().chain([&read.table]).map(|name| quoted(name)).collect::<Vec<_>>().into();
    index_hints.extend(read.index.as_deref().map(|index| ast::TableIndexHints {
        hint_type: ast::TableIndexHintType::Force,
        index_type: ast::TableIndexType::Index,
        for_clause: None,
        index_names: vec![quoted(index)],
    }));
    let tree = Tree { table: &read.table };
    select.projection = read.columns.iter().map(|(name, term)| tree.item(name, term)).collect::<Result<_>>()?;
    select.selection = read.filter.as_ref().map(|term| tree.expr(term)).transpose()?;
    if !read.order.is_empty() {
        let by = read.order.iter().map(|(column, descending)| {
            let options = ast::OrderByOptions { sort: descending.then_some(ast::OrderBySort::Desc), nulls_first: None };
            ast::OrderByExpr { expr: tree.column(column), options, with_fill: None }
        });
        query.order_by = Some(ast::OrderBy { kind: ast::OrderByKind::Expressions(by.collect()), interpolate: None });
    }
    Ok(*query)
}

impl Tree<'_> {
    fn column(&self, name: &str) -> ast::Expr {
        ast::Expr::CompoundIdentifier(vec![quoted(self.table), quoted(name)])
    }

    fn item(&self, name: &str, term: &Term) -> Result<ast::SelectItem> {
        Ok(match term {
            Term::Column(column) if column == name => ast::SelectItem::UnnamedExpr(self.expr(term)?),
            term => ast::SelectItem::ExprWithAlias { expr: self.expr(term)?, alias: quoted(name) },
        })
    }

    fn boxed(&self, term: &Term) -> Result<Box<ast::Expr>> {
        self.expr(term).map(Box::new)
    }

    fn expr(&self, term: &Term) -> Result<ast::Expr> {
        let unary = |op, term: &Term| -> Result<ast::Expr> { Ok(ast::Expr::UnaryOp { op, expr: self.boxed(term)? }) };
        Ok(match term {
            Term::Column(name) => self.column(name),
            Term::Parameter(number) => ast::Expr::value(ast::Value::Placeholder(format!("?{number}"))),
            Term::Binary(op, left, right) => {
                ast::Expr::BinaryOp { left: self.boxed(left)?, op: operator(*op), right: self.boxed(right)? }
            }
            Term::Not(term) => unary(ast::UnaryOperator::Not, term)?,
            Term::Negative(term) => unary(ast::UnaryOperator::Minus, term)?,
            Term::Complement(term) => unary(ast::UnaryOperator::BitwiseNot, term)?,
            Term::IsNull(term, true) => ast::Expr::IsNull(self.boxed(term)?),
            Term::IsNull(term, false) => ast::Expr::IsNotNull(self.boxed(term)?),
            Term::Like(term, pattern, fits) => ast::Expr::Like {
                negated: !fits,
                any: false,
                expr: self.boxed(term)?,
                pattern: self.boxed(pattern)?,
                escape_char: None,
            },
            Term::In(term, list, is_in) => {
                let list = list.iter().map(|term| self.expr(term)).collect::<Result<_>>()?;
                ast::Expr::InList { expr: self.boxed(term)?, list, negated: !is_in }
            }
            Term::BloomFilter(arguments) => self.call("BLOOMFILTER()", arguments)?,
            Term::Aggregate(kind, of) => self.aggregate(*kind, of.as_deref())?,
        })
    }

    /// The tree of a call, with these for its arguments.
    fn call(&self, text: &str, arguments: &[Term]) -> Result<ast::Expr> {
        let mut call = parse::parse_expression(text)?;
        if let ast::Expr::Function(function) = &mut call
            && let ast::FunctionArguments::List(list) = &mut function.args
        {
            let argument = |term| Ok(ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(self.expr(term)?)));
            list.args = arguments.iter().map(argument).collect::<Result<_>>()?;
        }
        Ok(call)
    }

    fn aggregate(&self, kind: Aggregate, of: Option<&Term>) -> Result<ast::Expr> {
        let text = match kind {
            Aggregate::Count if of.is_none() => "COUNT(*)",
            Aggregate::Count => "COUNT(x)",
            Aggregate::CountDistinct => "COUNT(DISTINCT x)",
            Aggregate::Sum => "SUM(x)",
            Aggregate::SumDistinct => "SUM(DISTINCT x)",
            Aggregate::Avg => "AVG(x)",
            Aggregate::AvgDistinct => "AVG(DISTINCT x)",
            Aggregate::Min => "MIN(x)",
            Aggregate::Max => "MAX(x)",
        };
        match of {
            Some(of) => self.call(text, std::slice::from_ref(of)),
            None if kind == Aggregate::Count => parse::parse_expression(text),
            None => Err(SqlError::unsupported("an aggregate of nothing")),
        }
    }
}

fn operator(operator: Operator) -> ast::BinaryOperator {
    use ast::BinaryOperator as Op;
    match operator {
        Operator::Plus => Op::Plus,
        Operator::Minus => Op::Minus,
        Operator::Times => Op::Multiply,
        Operator::Divided => Op::Divide,
        Operator::WholeDivided => Op::MyIntegerDivide,
        Operator::Modulo => Op::Modulo,
        Operator::Greater => Op::Gt,
        Operator::AtLeast => Op::GtEq,
        Operator::Less => Op::Lt,
        Operator::AtMost => Op::LtEq,
        Operator::Equal => Op::Eq,
        Operator::SameAs => Op::Spaceship,
        Operator::NotEqual => Op::NotEq,
        Operator::And => Op::And,
        Operator::Or => Op::Or,
    }
}
