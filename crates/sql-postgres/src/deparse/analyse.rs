//! Expressions: names resolved, operators and casts as the binder has them.

use syntax::postgres::tree::{self, BooleanTest, Const, ExprKind, LikeKind, Link, Operator, SqlValueFunction};

use query::catalog::table::Table as Stored;

use crate::bind::Binder;
use crate::bind::resolve::{self, Resolution};
use crate::bind::typing::unsupported;
use crate::deparse::node::{Form, Node, Source, Sublink, SublinkKind, Table, With, array_of};
use crate::deparse::scope::{Named, Scope, column, outwards};
use crate::error::Result;
use crate::functions::CastContext;
use crate::system::view::{columns, type_of};
use crate::types::oid::{self, Oid};
use crate::types::registry::element_of;

/// The deepest nesting of expressions and queries. The parser bounds that of its trees too.
const DEPTH_MAX: usize = 500;

pub struct Analyser<'b, 's> {
    pub binder: &'b mut Binder<'s>,
    /// Those of the queries around, the innermost last.
    pub scopes: Vec<Scope>,
    /// Common table expressions in sight, the innermost last.
    pub commons: Vec<With>,
    /// The next query that is opened sees nothing of the tables beside it.
    pub hides_next: bool,
    depth: usize,
}

impl<'b, 's> Analyser<'b, 's> {
    pub fn new(binder: &'b mut Binder<'s>) -> Analyser<'b, 's> {
        Analyser { binder, scopes: Vec::new(), commons: Vec::new(), hides_next: false, depth: 0 }
    }

    /// Opens a scope with the columns of a table alone.
    pub fn open_table(&mut self, table: &Stored) {
        let shown: Vec<(String, crate::deparse::node::Ty)> =
            columns(table).map(|(_, column)| (column.name.clone(), type_of(column))).collect();
        let visible: Vec<usize> = (0..table.columns.len()).filter(|at| !table.columns[*at].is_hidden()).collect();
        let named = shown.iter().zip(&visible).map(|((name, ty), at)| (name.clone(), column(0, *at, *ty))).collect();
        let mut scope = Scope::default();
        scope.add(Table {
            source: Source::Join,
            alias: table.name.clone(),
            has_alias: false,
            columns: shown,
            has_column_aliases: false,
            is_lateral: false,
            is_join: false,
        });
        scope.names.push(Named { alias: table.name.clone(), schema: None, columns: named, are_columns_visible: true });
        self.scopes.push(scope);
    }

    pub fn scope(&mut self) -> &mut Scope {
        if self.scopes.is_empty() {
            self.scopes.push(Scope::default());
        }
        let last = self.scopes.len() - 1;
        &mut self.scopes[last]
    }

    pub fn expr(&mut self, tree: &tree::Expr) -> Result<Node> {
        if self.depth >= DEPTH_MAX {
            return Err(unsupported("a definition that is nested deeper"));
        }
        self.depth += 1;
        let node = self.kind(&tree.kind);
        self.depth -= 1;
        node
    }

    pub fn exprs(&mut self, trees: &[tree::Expr]) -> Result<Vec<Node>> {
        trees.iter().map(|tree| self.expr(tree)).collect()
    }

    fn kind(&mut self, kind: &ExprKind) -> Result<Node> {
        Ok(match kind {
            ExprKind::Const(constant) => of_const(constant)?,
            ExprKind::Column(name) => self.column(&name.fields, name.star)?,
            ExprKind::And(items) => Node::And(self.conditions(items)?),
            ExprKind::Or(items) => Node::Or(self.conditions(items)?),
            ExprKind::Not(item) => Node::Not(Box::new(self.condition(item)?)),
            ExprKind::Prefix { op, operand } => {
                let operand = self.expr(operand)?;
                self.prefix(op, operand)?
            }
            ExprKind::Chain { first, links } => self.chain(first, links)?,
            ExprKind::Quantified(quantified) => {
                let (left, array) = (self.expr(&quantified.left)?, self.expr(&quantified.array)?);
                self.quantified(&quantified.op.name, left, array, !quantified.all)?
            }
            ExprKind::QuantifiedQuery(node) => {
                let left = self.expr(&node.left)?;
                let kind = if node.all { SublinkKind::All } else { SublinkKind::Any };
                self.tested(left, &node.op.name, kind, &node.query)?
            }
            ExprKind::InQuery { operand, query, negated, at: _ } => {
                let left = self.expr(operand)?;
                let link = self.tested(left, "=", SublinkKind::Any, query)?;
                if *negated { Node::Not(Box::new(link)) } else { link }
            }
            ExprKind::Distinct { left, right, negated, at: _ } => {
                let (left, right) = (self.expr(left)?, self.expr(right)?);
                let (_, left, right) = self.operands("=", left, right)?;
                let distinct = Node::Distinct(Box::new(left), Box::new(right));
                if *negated { Node::Not(Box::new(distinct)) } else { distinct }
            }
            ExprKind::NullTest { operand, negated, at: _ } => {
                let operand = self.expr(operand)?;
                Node::NullTest { operand: Box::new(operand), negated: *negated }
            }
            ExprKind::BooleanTest { operand, test, negated, at: _ } => {
                let operand = Box::new(self.condition(operand)?);
                Node::BooleanTest { operand, test: test_text(*test, *negated) }
            }
            ExprKind::Between(between) => self.between(between)?,
            ExprKind::InList { operand, list, negated, at: _ } => self.in_list(operand, list, *negated)?,
            ExprKind::Like(like) => self.like(like)?,
            ExprKind::Cast { operand, to, at: _ } => {
                let ty = self.binder.type_named(to)?;
                let operand = self.expr(operand)?;
                self.cast(operand, ty, Form::Explicit, CastContext::Explicit)?
            }
            ExprKind::Collate { operand, collation, at: _ } => {
                let operand = self.expr(operand)?;
                let operand = Box::new(self.settled(operand)?);
                Node::Collate { operand, collation: collation.last().to_owned() }
            }
            ExprKind::Case(case) => self.case(case)?,
            ExprKind::Row { items, explicit: _ } => Node::Row(self.exprs(items)?),
            ExprKind::Array(items) => {
                let items = self.exprs(items)?;
                let ty = self.common(&items)?;
                Node::Array { items: self.coerce_all(items, ty)?, ty: array_of(ty) }
            }
            ExprKind::ArrayQuery(query) => self.sublink(SublinkKind::Array, None, query)?,
            ExprKind::Function(call) => self.function(call)?,
            ExprKind::Coalesce(items) => {
                let (items, ty) = self.in_common(items)?;
                Node::Coalesce(items, ty)
            }
            ExprKind::NullIf { left, right } => {
                let (left, right) = (self.expr(left)?, self.expr(right)?);
                let (_, left, right) = self.operands("=", left, right)?;
                Node::NullIf(Box::new(left), Box::new(right))
            }
            ExprKind::Greatest(items) => {
                let (items, ty) = self.in_common(items)?;
                Node::Extreme { word: "GREATEST", items, ty }
            }
            ExprKind::Least(items) => {
                let (items, ty) = self.in_common(items)?;
                Node::Extreme { word: "LEAST", items, ty }
            }
            ExprKind::SqlValue(value) => of_sql_value(*value),
            ExprKind::Exists(query) => self.sublink(SublinkKind::Exists, None, query)?,
            ExprKind::Subquery(query) => self.sublink(SublinkKind::Scalar, None, query)?,
            _ => return Err(unsupported("this expression of a definition")),
        })
    }

    fn in_common(&mut self, items: &[tree::Expr]) -> Result<(Vec<Node>, crate::deparse::node::Ty)> {
        let items = self.exprs(items)?;
        let ty = self.common(&items)?;
        let typmod = items.first().map_or(-1, |first| first.ty().1);
        let is_same = items.iter().all(|item| item.ty() == (ty, typmod));
        Ok((self.coerce_all(items, ty)?, (ty, if is_same { typmod } else { -1 })))
    }

    pub fn condition(&mut self, tree: &tree::Expr) -> Result<Node> {
        let node = self.expr(tree)?;
        self.coerce_in(node, oid::BOOL, Form::Implicit, CastContext::Assignment)
    }

    fn conditions(&mut self, trees: &[tree::Expr]) -> Result<Vec<Node>> {
        trees.iter().map(|tree| self.condition(tree)).collect()
    }

    fn column(&mut self, fields: &[String], star: bool) -> Result<Node> {
        let refused = || unsupported("a whole-row reference in a definition");
        if star {
            return Err(refused());
        }
        let (schema, table, name) = match fields {
            [name] => (None, None, name),
            [table, name] => (None, Some(table), name),
            [schema, table, name] => (Some(schema), Some(table), name),
            _ => return Err(refused()),
        };
        let mut hidden = false;
        for (levels, scope) in self.scopes.iter().rev().enumerate() {
            let is_hidden = std::mem::replace(&mut hidden, scope.hides_outer);
            if is_hidden {
                continue;
            }
            let is_meant = |named: &&Named| match table {
                None => named.are_columns_visible,
                Some(table) => {
                    named.alias == *table && schema.is_none_or(|schema| named.schema.as_ref() == Some(schema))
                }
            };
            let found =
                scope.names.iter().filter(is_meant).flat_map(|named| &named.columns).find(|(known, _)| known == name);
            if let Some((_, node)) = found {
                return Ok(outwards(node, levels));
            }
        }
        Err(unsupported(format!("the column \"{name}\" of a definition")))
    }

    pub fn operator(&self, name: &str, left: Oid, right: Oid) -> Result<&'static crate::functions::PgOperator> {
        match resolve::operator(name, left, right) {
            Resolution::One(row) => Ok(row),
            _ => Err(unsupported(format!("the operator {name} of a definition"))),
        }
    }

    /// Returns the operator for operands of these types, and them as it takes them.
    pub fn operands(
        &mut self,
        name: &str,
        left: Node,
        right: Node,
    ) -> Result<(&'static crate::functions::PgOperator, Node, Node)> {
        let row = self.operator(name, left.ty().0, right.ty().0)?;
        let left = self.coerce(left, row.left, Form::Implicit)?;
        let right = self.coerce(right, row.right, Form::Implicit)?;
        Ok((row, left, right))
    }

    pub fn apply(&mut self, name: &str, left: Node, right: Node) -> Result<Node> {
        let (row, left, right) = self.operands(name, left, right)?;
        Ok(Node::Operator { name: row.name.to_owned(), operands: vec![left, right], ty: row.result })
    }

    fn prefix(&mut self, op: &Operator, operand: Node) -> Result<Node> {
        let row = self.operator(&op.name, 0, operand.ty().0)?;
        let operand = self.coerce(operand, row.right, Form::Implicit)?;
        Ok(Node::Operator { name: row.name.to_owned(), operands: vec![operand], ty: row.result })
    }

    fn chain(&mut self, first: &tree::Expr, links: &[Link]) -> Result<Node> {
        let mut node = self.expr(first)?;
        for Link { op, operand } in links {
            if matches!(node, Node::Row(_)) {
                return Err(unsupported("a comparison of rows in a definition"));
            }
            let right = self.expr(operand)?;
            node = self.apply(&op.name, node, right)?;
        }
        Ok(node)
    }

    /// Returns `operand op ANY (array)`.
    fn quantified(&mut self, name: &str, left: Node, array: Node, is_any: bool) -> Result<Node> {
        let array_type = array.ty().0;
        let element = element_of(array_type).map_or(array_type, |element| element.oid);
        let row = self.operator(name, left.ty().0, element)?;
        let left = self.coerce(left, row.left, Form::Implicit)?;
        let wanted = array_of(row.right);
        let array = match array_type == wanted || row.right == element {
            true => array,
            false => Node::Cast { operand: Box::new(array), ty: (wanted, -1), form: Form::Implicit },
        };
        Ok(Node::Quantified { name: row.name.to_owned(), operand: Box::new(left), array: Box::new(array), is_any })
    }

    fn between(&mut self, between: &tree::Between) -> Result<Node> {
        let operand = self.expr(&between.operand)?;
        let (low, high) = (self.expr(&between.low)?, self.expr(&between.high)?);
        let mut range = |low: Node, high: Node| -> Result<Vec<Node>> {
            let (first, second) = if between.negated { ("<", ">") } else { (">=", "<=") };
            Ok(vec![self.apply(first, operand.clone(), low)?, self.apply(second, operand.clone(), high)?])
        };
        let joined = |items: Vec<Node>| if between.negated { Node::Or(items) } else { Node::And(items) };
        if !between.symmetric {
            return range(low, high).map(joined);
        }
        let both = vec![joined(range(low.clone(), high.clone())?), joined(range(high, low)?)];
        Ok(if between.negated { Node::And(both) } else { Node::Or(both) })
    }

    fn in_list(&mut self, operand: &tree::Expr, list: &[tree::Expr], negated: bool) -> Result<Node> {
        let left = self.expr(operand)?;
        let items = self.exprs(list)?;
        let (others, constants): (Vec<Node>, Vec<Node>) = items.iter().cloned().partition(Node::reads_column);
        let name = if negated { "<>" } else { "=" };
        let mut all = Vec::new();
        let mut rest = items;
        if constants.len() > 1 {
            let with_left: Vec<Node> = std::iter::once(left.clone()).chain(constants.clone()).collect();
            if let Ok(ty) = self.common(&with_left)
                && array_of(ty) != 0
            {
                let items = self.coerce_all(constants, ty)?;
                let array = Node::Array { items, ty: array_of(ty) };
                all.push(self.quantified(name, left.clone(), array, !negated)?);
                rest = others;
            }
        }
        for item in rest {
            all.push(self.apply(name, left.clone(), item)?);
        }
        Ok(match all.len() {
            1 => all.remove(0),
            _ if negated => Node::And(all),
            _ => Node::Or(all),
        })
    }

    fn like(&mut self, like: &tree::Like) -> Result<Node> {
        let (operand, mut pattern) = (self.expr(&like.operand)?, self.expr(&like.pattern)?);
        if matches!(like.kind, LikeKind::Similar) {
            let mut arguments = vec![pattern];
            if let Some(escape) = &like.escape {
                arguments.push(self.expr(escape)?);
            }
            pattern = self.call("similar_to_escape", arguments, Form::Call)?;
        } else if let Some(escape) = &like.escape {
            let escape = self.expr(escape)?;
            pattern = self.call("like_escape", vec![pattern, escape], Form::Call)?;
        }
        self.apply(like.kind.operator(like.negated), operand, pattern)
    }

    fn case(&mut self, case: &tree::Case) -> Result<Node> {
        let operand = match &case.operand {
            Some(operand) => {
                let operand = self.expr(operand)?;
                Some(self.settled(operand)?)
            }
            None => None,
        };
        let mut conditions = Vec::new();
        for arm in &case.arms {
            conditions.push(match &operand {
                Some(operand) => {
                    let condition = self.expr(&arm.condition)?;
                    let test = Node::SqlValue { text: String::new(), ty: operand.ty() };
                    let (_, left, right) = self.operands("=", test, condition)?;
                    // An operand that is cast explicitly to be compared is not the operand itself.
                    let _ = left;
                    right
                }
                None => self.condition(&arm.condition)?,
            });
        }
        let otherwise = match &case.otherwise {
            Some(otherwise) => self.expr(otherwise)?,
            None => Node::Const { text: None, ty: (oid::UNKNOWN, -1) },
        };
        let mut results = vec![otherwise];
        for arm in &case.arms {
            results.push(self.expr(&arm.result)?);
        }
        let ty = self.common(&results)?;
        let typmod = results[0].ty().1;
        let is_same = results.iter().all(|result| result.ty() == (ty, typmod));
        let mut results = self.coerce_all(results, ty)?.into_iter();
        let otherwise = results.next().unwrap_or(Node::Const { text: None, ty: (ty, -1) });
        Ok(Node::Case {
            operand: operand.map(Box::new),
            arms: conditions.into_iter().zip(results).collect(),
            otherwise: Box::new(otherwise),
            ty: (ty, if is_same { typmod } else { -1 }),
        })
    }

    /// Returns `left op ANY (query)`.
    fn tested(&mut self, left: Node, name: &str, kind: SublinkKind, query: &tree::SelectStmt) -> Result<Node> {
        let query = self.query(query)?;
        let lefts = match left {
            Node::Row(items) => items,
            one => vec![one],
        };
        let mut operands = Vec::new();
        for (left, (_, ty)) in lefts.into_iter().zip(&query.columns) {
            let row = self.operator(name, left.ty().0, ty.0)?;
            operands.push(self.coerce(left, row.left, Form::Implicit)?);
        }
        Ok(Node::Sublink(Box::new(Sublink { kind, test: Some((operands, name.to_owned())), query })))
    }

    fn sublink(
        &mut self,
        kind: SublinkKind,
        test: Option<(Vec<Node>, String)>,
        query: &tree::SelectStmt,
    ) -> Result<Node> {
        let query = self.query(query)?;
        Ok(Node::Sublink(Box::new(Sublink { kind, test, query })))
    }
}

fn of_const(constant: &Const) -> Result<Node> {
    let (text, ty) = match constant {
        Const::Null => (None, oid::UNKNOWN),
        Const::Bool(truth) => (Some(if *truth { "t" } else { "f" }.to_owned()), oid::BOOL),
        Const::Integer(number) => (Some(number.to_string()), oid::INT4),
        Const::Float(text) => match text.parse::<i64>() {
            Ok(number) => (Some(number.to_string()), oid::INT8),
            Err(_) => (Some(numeric(text)?), oid::NUMERIC),
        },
        Const::String(text) => (Some(text.clone()), oid::UNKNOWN),
        Const::Bits(_) | Const::HexBits(_) => return Err(unsupported("a bit string in a definition")),
    };
    Ok(Node::Const { text, ty: (ty, -1) })
}

/// Returns a number as numeric shows it.
fn numeric(text: &str) -> Result<String> {
    use crate::types::numeric::{numeric_in, numeric_out};
    let mut out = Vec::new();
    numeric_out(&numeric_in(text, -1)?, &mut out);
    Ok(String::from_utf8_lossy(&out).into_owned())
}

fn test_text(test: BooleanTest, negated: bool) -> &'static str {
    match (test, negated) {
        (BooleanTest::True, false) => "IS TRUE",
        (BooleanTest::True, true) => "IS NOT TRUE",
        (BooleanTest::False, false) => "IS FALSE",
        (BooleanTest::False, true) => "IS NOT FALSE",
        (BooleanTest::Unknown, false) => "IS UNKNOWN",
        (BooleanTest::Unknown, true) => "IS NOT UNKNOWN",
    }
}

fn of_sql_value(value: SqlValueFunction) -> Node {
    let with = |word: &str, typmod: Option<i32>| match typmod {
        Some(typmod) => format!("{word}({typmod})"),
        None => word.to_owned(),
    };
    let (text, ty, typmod) = match value {
        SqlValueFunction::CurrentDate => ("CURRENT_DATE".to_owned(), oid::DATE, None),
        SqlValueFunction::CurrentTime(typmod) => (with("CURRENT_TIME", typmod), oid::TIMETZ, typmod),
        SqlValueFunction::CurrentTimestamp(typmod) => (with("CURRENT_TIMESTAMP", typmod), oid::TIMESTAMPTZ, typmod),
        SqlValueFunction::LocalTime(typmod) => (with("LOCALTIME", typmod), oid::TIME, typmod),
        SqlValueFunction::LocalTimestamp(typmod) => (with("LOCALTIMESTAMP", typmod), oid::TIMESTAMP, typmod),
        SqlValueFunction::CurrentRole => ("CURRENT_ROLE".to_owned(), oid::NAME, None),
        SqlValueFunction::CurrentUser => ("CURRENT_USER".to_owned(), oid::NAME, None),
        SqlValueFunction::User => ("USER".to_owned(), oid::NAME, None),
        SqlValueFunction::SessionUser => ("SESSION_USER".to_owned(), oid::NAME, None),
        SqlValueFunction::SystemUser => ("SYSTEM_USER".to_owned(), oid::TEXT, None),
        SqlValueFunction::CurrentCatalog => ("CURRENT_CATALOG".to_owned(), oid::NAME, None),
        SqlValueFunction::CurrentSchema => ("CURRENT_SCHEMA".to_owned(), oid::NAME, None),
    };
    Node::SqlValue { text, ty: (ty, typmod.unwrap_or(-1)) }
}
