//! EXEC_PLAN_READ: translates a client's operator tree to a read of `query`, without text.
//!
//! Each node processes one row of its child at a time, so a tree collapses into one block: a table, a condition, and the expressions shown of each row.
//! References to the columns of the child are replaced by the expressions they stand for. Names of tables and columns may be parameters; they are part of the
//! prepared plan, so a plan that is named by its digest with the same names runs as it was prepared. Literals become parameters behind those of the client, so
//! values are never part of a plan.

use sql_mysql::error::{Result, SqlError};
use sql_mysql::read::{Aggregate, Operator, Origin, Outline, Read, Term};
use sql_mysql::value::Value;
use sql_mysql::{PreparedHandle, Session};

use crate::digests::Meaning;
use crate::encode::column_frames::ColumnFrames;
use crate::errors;
use crate::message::datatypes::Scalar;
use crate::message::expr::Expr;
use crate::message::plan::{Key, Plan, Source};
use crate::statement::{decode, plain};
use sql_mysql::types::Charset;

/// A plan that some session has prepared.
pub struct PreparedPlan {
    pub handle: PreparedHandle,
    /// The bytes of the plan: the digest may have another meaning by now.
    pub meaning: Meaning,
    pub columns: ColumnFrames,
    /// The parameters that are names, and their values.
    names: Vec<(usize, String)>,
    parameter_count: usize,
    literals: Vec<Value>,
    origin: Origin,
}

impl PreparedPlan {
    /// Returns whether preparing the same bytes now would give the same result.
    pub fn is_for(&self, sql: &mut Session, parameters: &[Scalar<'_>]) -> bool {
        self.parameter_count == parameters.len()
            && self.names.iter().all(|(at, name)| parameters[*at].name() == Some(name.as_bytes()))
            && sql.is_current(&self.origin)
    }

    /// Returns the values of an execution.
    pub fn values(&self, parameters: &[Scalar<'_>]) -> Vec<Value> {
        parameters.iter().map(|parameter| plain(*parameter)).chain(self.literals.iter().cloned()).collect()
    }
}

/// Prepares a plan, which was read from the bytes of `meaning`.
pub fn prepare(
    sql: &mut Session,
    plan: &Plan<'_>,
    meaning: Meaning,
    parameters: &[Scalar<'_>],
    shown: &str,
) -> Result<PreparedPlan> {
    let mut block = ReadBlock {
        sql,
        parameters,
        names: Vec::new(),
        literals: Vec::new(),
        read: Read::default(),
        shapes: Vec::new(),
        filter_depth: 0,
        room: TERMS_MAX,
        origin: None,
    };
    block.add(plan)?;
    let ReadBlock { names, literals, mut read, origin, .. } = block;
    let origin = origin.ok_or_else(|| wrong("it reads no table"))?;
    read.parameters = parameters.len() + literals.len();
    let handle = sql.prepare_read(&read, shown)?.handle;
    let (columns, parameter_count) = (ColumnFrames::default(), parameters.len());
    Ok(PreparedPlan { handle, meaning, columns, names, parameter_count, literals, origin })
}

fn wrong(what: &str) -> SqlError {
    errors::XRPC.with(&[&format!("The plan cannot be run: {what}.")])
}

/// The block that a tree collapses into.
struct ReadBlock<'s, 'p> {
    sql: &'s mut Session,
    parameters: &'s [Scalar<'p>],
    names: Vec<(usize, String)>,
    literals: Vec<Value>,
    read: Read,
    /// The expression behind each of `read.columns`.
    shapes: Vec<Shape>,
    filter_depth: usize,
    /// How many more terms the read may get: a column that is computed from others is copied into each reference.
    room: usize,
    origin: Option<Origin>,
}

/// The size of a term.
#[derive(Clone, Copy, Default)]
struct Shape {
    terms: usize,
    depth: usize,
}

/// The limit of operators, values and columns of one plan.
const TERMS_MAX: usize = 200_000;
/// The limit of their nesting: operators of one node may, 64 levels deep, refer to columns that the node below computes.
const DEPTH_MAX: usize = 200;
/// The limit of an index's columns.
const KEY_PARTS_MAX: usize = 16;

impl ReadBlock<'_, '_> {
    fn add(&mut self, plan: &Plan<'_>) -> Result<()> {
        match plan {
            Plan::Get(source, keys) => {
                let outline = self.open(source)?;
                let keys = keys.iter().map(|key| self.key(&outline, key)).collect::<Result<Vec<_>>>()?;
                let alternatives = keys.into_iter().map(|key| all_of(key.into_iter().map(equal)));
                let found = alternatives.collect::<Result<Vec<_>>>()?;
                self.read.filter = Some(any_of(found).ok_or_else(|| wrong("it gets rows by no key"))?);
            }
            Plan::TableScan { source, reverse } => {
                let outline = self.open(source)?;
                self.order(&outline, *reverse);
            }
            Plan::RangeScan { source, from, to, reverse } => {
                let outline = self.open(source)?;
                let mut bounds = Vec::new();
                for (key, beyond) in [(from, Operator::Greater), (to, Operator::Less)] {
                    if let Some(key) = key.as_ref().filter(|key| !key.is_empty()) {
                        let key = self.key(&outline, key)?;
                        bounds.push(bound(&key, beyond));
                    }
                }
                self.read.filter = all_of(bounds).ok();
                self.order(&outline, *reverse);
            }
            Plan::TableProject(below, columns) => {
                self.add(below)?;
                let picked = columns.iter().map(|column| self.pick(*column)).collect::<Result<Vec<_>>>()?;
                (self.read.columns, self.shapes) = picked.into_iter().unzip();
            }
            Plan::Project(below, names, exprs) => {
                self.add(below)?;
                let computed = exprs.iter().enumerate().map(|(at, expr)| {
                    let name = names.get(at).map(|name| self.name(*name)).transpose()?;
                    let (term, shape) = self.term(expr)?;
                    Ok(((name.unwrap_or_default(), term), shape))
                });
                (self.read.columns, self.shapes) = computed.collect::<Result<Vec<_>>>()?.into_iter().unzip();
            }
            Plan::Filter(below, expr) => {
                self.add(below)?;
                if self.is_aggregated() {
                    return Err(errors::not_served("a filter above an aggregate"));
                }
                let (wanted, shape) = self.term(expr)?;
                self.filter_depth = self.filter_depth.max(shape.depth) + 1;
                check_depth(self.filter_depth)?;
                let before = self.read.filter.take();
                self.read.filter = Some(match before {
                    None => wanted,
                    Some(before) => binary(Operator::And, before, wanted),
                });
            }
            Plan::Aggregate { below, kind, field, expr } => {
                self.add(below)?;
                let of = match (expr, field) {
                    (Some(expr), _) => Some(self.term(expr)?.0),
                    (None, Some(field)) => Some(self.pick(*field)?.0.1),
                    (None, None) => None,
                };
                self.aggregate(*kind, of)?;
            }
        }
        Ok(())
    }

    /// Begins with a table: all of its columns are shown.
    fn open(&mut self, source: &Source<'_>) -> Result<Outline> {
        // Compute nodes send names in any case; data nodes keep them in lower case.
        self.read.table = self.name(source.table)?.to_lowercase();
        let schema = source.schema.map(|schema| self.name(schema)).transpose()?;
        self.read.schema = schema.map(|name| name.to_lowercase()).filter(|name| !name.is_empty());
        self.read.index = source.index.map(|index| self.name(index)).transpose()?;
        let outline = self.sql.outline(self.read.schema.as_deref(), &self.read.table, self.read.index.as_deref())?;
        self.origin = Some(outline.origin.clone());
        self.read.columns = outline.columns.iter().map(|name| (name.clone(), Term::Column(name.clone()))).collect();
        self.shapes = vec![Shape { terms: 1, depth: 1 }; self.read.columns.len()];
        Ok(outline)
    }

    fn order(&mut self, outline: &Outline, reverse: bool) {
        let key = outline.key.iter();
        self.read.order = key.map(|(name, descending)| (name.clone(), *descending != reverse)).collect();
    }

    /// Returns the columns of a key, by name or by their order in the index, and their values.
    fn key(&mut self, outline: &Outline, key: &Key<'_>) -> Result<Vec<(Term, Term)>> {
        if key.len() > KEY_PARTS_MAX {
            return Err(wrong("a key has more parts than an index may have"));
        }
        self.take(2 * key.len() * key.len())?;
        let parts = key.iter().enumerate().map(|(at, (column, value))| {
            let column = match column {
                Some(column) => self.name(*column)?,
                None => {
                    let part = outline.key.get(at).ok_or_else(|| wrong("a key has more parts than its index"))?;
                    part.0.clone()
                }
            };
            Ok((Term::Column(column), self.scalar(*value)))
        });
        parts.collect()
    }

    /// Returns a name, sent directly or as a parameter.
    fn name(&mut self, scalar: Scalar<'_>) -> Result<String> {
        let bytes = match scalar {
            Scalar::Placeholder(at) => {
                let at = at as usize;
                let bytes = self.parameters.get(at).and_then(|parameter| parameter.name());
                let bytes = bytes.ok_or_else(|| wrong(&format!("parameter {at} is no name")))?;
                let name = decode(bytes, Charset::Utf8)?.into_owned();
                self.names.push((at, name));
                bytes
            }
            scalar => scalar.name().ok_or_else(|| wrong("a name is none"))?,
        };
        Ok(decode(bytes, Charset::Utf8)?.into_owned())
    }

    fn scalar(&mut self, scalar: Scalar<'_>) -> Term {
        if let Scalar::Placeholder(at) = scalar {
            return Term::Parameter(at as usize);
        }
        self.literals.push(plain(scalar));
        Term::Parameter(self.parameters.len() + self.literals.len() - 1)
    }

    /// Returns a column of the node below, by name or position.
    fn pick(&mut self, column: Scalar<'_>) -> Result<((String, Term), Shape)> {
        let position = match column {
            Scalar::Int(at) => usize::try_from(at).ok(),
            Scalar::UInt(at) => usize::try_from(at).ok(),
            name => {
                let name = self.name(name)?;
                self.read.columns.iter().position(|(known, _)| known.eq_ignore_ascii_case(&name))
            }
        };
        let at = position.filter(|at| *at < self.read.columns.len()).ok_or_else(|| wrong("a column is not there"))?;
        let shape = self.shapes[at];
        self.take(shape.terms)?;
        Ok((self.read.columns[at].clone(), shape))
    }

    /// Counts terms before they are made.
    fn take(&mut self, terms: usize) -> Result<()> {
        let left = self.room.checked_sub(terms);
        self.room = left.ok_or_else(|| wrong(&format!("it comes to more than {TERMS_MAX} terms")))?;
        Ok(())
    }

    /// Returns the term of an expression, and its size.
    fn term(&mut self, expr: &Expr<'_>) -> Result<(Term, Shape)> {
        let before = self.room;
        let (term, below) = self.bare_term(expr)?;
        self.take(1)?;
        let shape = Shape { terms: before - self.room, depth: below + 1 };
        check_depth(shape.depth)?;
        Ok((term, shape))
    }

    fn terms(&mut self, of: &[Expr<'_>]) -> Result<(Vec<Term>, usize)> {
        let (mut terms, mut depth) = (Vec::with_capacity(of.len().min(TERMS_MAX)), 0);
        for expr in of {
            let (term, shape) = self.term(expr)?;
            depth = depth.max(shape.depth);
            terms.push(term);
        }
        // A chain of operands becomes a tree of minimal height.
        Ok((terms, depth + of.len().max(1).ilog2() as usize))
    }

    /// Returns the term, and the nesting depth below it.
    fn bare_term(&mut self, expr: &Expr<'_>) -> Result<(Term, usize)> {
        let leaf = |term| Ok((term, 0));
        match expr {
            Expr::Literal(scalar) => leaf(self.scalar(*scalar)),
            Expr::Placeholder(at) => leaf(Term::Parameter(*at as usize)),
            Expr::Ref(at) => {
                let ((_, term), shape) = self.pick(Scalar::UInt((*at).into()))?;
                Ok((term, shape.depth))
            }
            Expr::Operator(name, of) => self.operator(name, of),
            // Nodes of PolarDB-X write it in one of these ways.
            Expr::Function(b"bloomfilter" | b"bloom_filter", of) => {
                let (terms, depth) = self.terms(of)?;
                Ok((Term::BloomFilter(terms), depth))
            }
            Expr::Function(name, _) => {
                Err(errors::not_served(&format!("the function {}", String::from_utf8_lossy(name))))
            }
            Expr::Other(what) => Err(errors::not_served(&format!("{what} in a plan"))),
        }
    }

    fn operator(&mut self, name: &[u8], of: &[Expr<'_>]) -> Result<(Term, usize)> {
        if let (b"is" | b"is_not", [left, right]) = (name, of) {
            let Expr::Literal(Scalar::Null) = right else {
                return Err(errors::not_served("`is` of anything but NULL"));
            };
            let (term, shape) = self.term(left)?;
            return Ok((Term::IsNull(Box::new(term), name == b"is"), shape.depth));
        }
        let (terms, depth) = self.terms(of)?;
        Ok((operate(name, terms, of.len())?, depth))
    }

    fn is_aggregated(&self) -> bool {
        self.read.columns.iter().any(|(_, term)| matches!(term, Term::Aggregate(..)))
    }

    fn aggregate(&mut self, kind: u64, of: Option<Term>) -> Result<()> {
        let kinds = [
            Aggregate::Count,
            Aggregate::CountDistinct,
            Aggregate::Sum,
            Aggregate::SumDistinct,
            Aggregate::Avg,
            Aggregate::AvgDistinct,
            Aggregate::Min,
            Aggregate::Max,
        ];
        if self.is_aggregated() {
            return Err(errors::not_served("an aggregate of another"));
        }
        let kind = *kinds.get(kind as usize - 1).ok_or_else(|| wrong("an aggregate is not known"))?;
        self.read.order.clear();
        self.read.columns = vec![("aggr".to_owned(), Term::Aggregate(kind, of.map(Box::new)))];
        Ok(())
    }
}

/// Applies the named operator to the terms.
fn operate(name: &[u8], terms: Vec<Term>, count: usize) -> Result<Term> {
    let wrong_count = || wrong(&format!("the operator {} has {} operands", String::from_utf8_lossy(name), count));
    match (name, <[Term; 2]>::try_from(terms)) {
        (b"like", Ok([left, right])) => Ok(Term::Like(Box::new(left), Box::new(right), true)),
        (b"not_like", Ok([left, right])) => Ok(Term::Like(Box::new(left), Box::new(right), false)),
        (b"in" | b"not_in", Ok([left, right])) => Ok(Term::In(Box::new(left), vec![right], name == b"in")),
        (b"&&", Ok([left, right])) => Ok(binary(Operator::And, left, right)),
        (b"||", Ok([left, right])) => Ok(binary(Operator::Or, left, right)),
        (name, Ok([left, right])) => match binary_operator(name) {
            Some(operator) => Ok(binary(operator, left, right)),
            None => Err(unknown(name)),
        },
        (b"in" | b"not_in", Err(mut terms)) if !terms.is_empty() => {
            let left = terms.remove(0);
            if terms.is_empty() { Err(wrong_count()) } else { Ok(Term::In(Box::new(left), terms, name == b"in")) }
        }
        (b"&&", Err(terms)) => fold(Operator::And, terms).ok_or_else(wrong_count),
        (b"||", Err(terms)) => fold(Operator::Or, terms).ok_or_else(wrong_count),
        (name, Err(mut terms)) => match (terms.pop().filter(|_| count == 1).map(Box::new), name) {
            (Some(term), b"!") => Ok(Term::Not(term)),
            (Some(term), b"-") => Ok(Term::Negative(term)),
            (Some(term), b"~") => Ok(Term::Complement(term)),
            (Some(term), b"+") => Ok(*term),
            _ if is_known(name) => Err(wrong_count()),
            _ => Err(unknown(name)),
        },
    }
}

fn check_depth(depth: usize) -> Result<()> {
    match depth > DEPTH_MAX {
        true => Err(wrong(&format!("its expressions nest deeper than {DEPTH_MAX} levels"))),
        false => Ok(()),
    }
}

fn unknown(name: &[u8]) -> SqlError {
    errors::not_served(&format!("the operator {}", String::from_utf8_lossy(name)))
}

fn binary(operator: Operator, left: Term, right: Term) -> Term {
    Term::Binary(operator, Box::new(left), Box::new(right))
}

fn equal((column, value): (Term, Term)) -> Term {
    binary(Operator::Equal, column, value)
}

/// Joins the terms in their order by one operator, in a tree of minimal height: the trees are walked and dropped by recursion.
fn fold(operator: Operator, terms: impl IntoIterator<Item = Term>) -> Option<Term> {
    let mut terms: Vec<Term> = terms.into_iter().collect();
    while terms.len() > 1 {
        let mut pairs = Vec::with_capacity(terms.len().div_ceil(2));
        let mut rest = terms.into_iter();
        while let Some(left) = rest.next() {
            pairs.push(match rest.next() {
                Some(right) => binary(operator, left, right),
                None => left,
            });
        }
        terms = pairs;
    }
    terms.pop()
}

fn all_of(terms: impl IntoIterator<Item = Term>) -> Result<Term> {
    fold(Operator::And, terms).ok_or_else(|| wrong("a key has no parts"))
}

/// Joins alternatives; keys of one column become an IN list.
fn any_of(terms: Vec<Term>) -> Option<Term> {
    let (mut column, mut list) = (None, Vec::new());
    for term in &terms {
        match term {
            Term::Binary(Operator::Equal, left, right) if column.as_ref().is_none_or(|known| known == left) => {
                column = Some(left.clone());
                list.push((**right).clone());
            }
            _ => return fold(Operator::Or, terms),
        }
    }
    match (column, list.len()) {
        (Some(column), 2..) => Some(Term::In(column, list, true)),
        _ => terms.into_iter().next(),
    }
}

/// Builds the condition for rows whose key equals the given one or lies beyond it, column by column.
fn bound(key: &[(Term, Term)], beyond: Operator) -> Term {
    let [(column, value), rest @ ..] = key else { unreachable!("no empty key comes here") };
    if rest.is_empty() {
        let there = if beyond == Operator::Greater { Operator::AtLeast } else { Operator::AtMost };
        return binary(there, column.clone(), value.clone());
    }
    let farther = binary(beyond, column.clone(), value.clone());
    let same = binary(Operator::Equal, column.clone(), value.clone());
    binary(Operator::Or, farther, binary(Operator::And, same, bound(rest, beyond)))
}

fn binary_operator(name: &[u8]) -> Option<Operator> {
    Some(match name {
        b"+" => Operator::Plus,
        b"-" => Operator::Minus,
        b"*" => Operator::Times,
        b"/" => Operator::Divided,
        b"div" => Operator::WholeDivided,
        b"%" => Operator::Modulo,
        b">" => Operator::Greater,
        b">=" => Operator::AtLeast,
        b"<" => Operator::Less,
        b"<=" => Operator::AtMost,
        b"==" => Operator::Equal,
        b"<=>" => Operator::SameAs,
        b"!=" => Operator::NotEqual,
        _ => return None,
    })
}

fn is_known(name: &[u8]) -> bool {
    binary_operator(name).is_some()
        || matches!(name, b"like" | b"not_like" | b"in" | b"not_in" | b"is" | b"is_not" | b"!" | b"~")
}
