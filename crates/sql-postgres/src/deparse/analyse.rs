//! Expressions: names resolved, operators and casts as the binder has them.

use syntax::postgres::tree::{
    self, BooleanTest, Const, ExprKind, Indirection, LikeKind, Link, Operator, SqlValueFunction,
};

use datum::value::RecordField;
use query::catalog::table::Table as Stored;

use crate::bind::resolve::{self, Resolution};
use crate::bind::typing::unsupported;
use crate::bind::{Binder, FoundOperator};
use crate::deparse::node::{FromSource, SqlForm, SqlNode, Sublink, SublinkKind, Table, WHOLE, With, array_of};
use crate::deparse::scope::{DeparseScope, NamedSource, column, outwards};
use crate::error::Result;
use crate::functions::CastContext;
use crate::system::view::{columns, type_of};
use crate::types::bits;
use crate::types::oid::{self, Oid};
use crate::types::registry::element_of;
use crate::types::user;

/// The deepest nesting of expressions and queries. The parser bounds that of its trees too.
const DEPTH_MAX: usize = 500;

pub struct Analyser<'b, 's> {
    pub binder: &'b mut Binder<'s>,
    /// Those of the queries around, the innermost last.
    pub scopes: Vec<DeparseScope>,
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
        let mut scope = DeparseScope::default();
        scope.add(Table {
            source: FromSource::Join,
            alias: table.name.clone(),
            has_alias: false,
            columns: shown,
            has_column_aliases: false,
            is_lateral: false,
            is_join: false,
        });
        scope.names.push(NamedSource {
            alias: table.name.clone(),
            schema: Some(crate::define::names::schema_of(&table.schema).to_owned()),
            columns: named,
            are_columns_visible: true,
        });
        self.scopes.push(scope);
    }

    pub fn scope(&mut self) -> &mut DeparseScope {
        if self.scopes.is_empty() {
            self.scopes.push(DeparseScope::default());
        }
        let last = self.scopes.len() - 1;
        &mut self.scopes[last]
    }

    pub fn expr(&mut self, tree: &tree::Expr) -> Result<SqlNode> {
        if self.depth >= DEPTH_MAX {
            return Err(unsupported("a definition that is nested deeper"));
        }
        self.depth += 1;
        let node = self.kind(&tree.kind);
        self.depth -= 1;
        node
    }

    pub fn exprs(&mut self, trees: &[tree::Expr]) -> Result<Vec<SqlNode>> {
        trees.iter().map(|tree| self.expr(tree)).collect()
    }

    fn kind(&mut self, kind: &ExprKind) -> Result<SqlNode> {
        Ok(match kind {
            ExprKind::Const(constant) => of_const(constant)?,
            ExprKind::Column(name) => self.column(&name.fields, name.star)?,
            ExprKind::And(items) => SqlNode::And(self.conditions(items)?),
            ExprKind::Or(items) => SqlNode::Or(self.conditions(items)?),
            ExprKind::Not(item) => SqlNode::Not(Box::new(self.condition(item)?)),
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
                if *negated { SqlNode::Not(Box::new(link)) } else { link }
            }
            ExprKind::Distinct { left, right, negated, at: _ } => {
                let (left, right) = (self.expr(left)?, self.expr(right)?);
                let (_, left, right) = self.operands("=", left, right)?;
                let distinct = SqlNode::Distinct(Box::new(left), Box::new(right));
                if *negated { SqlNode::Not(Box::new(distinct)) } else { distinct }
            }
            ExprKind::NullTest { operand, negated, at: _ } => {
                let operand = self.expr(operand)?;
                SqlNode::NullTest { operand: Box::new(operand), negated: *negated }
            }
            ExprKind::BooleanTest { operand, test, negated, at: _ } => {
                let operand = Box::new(self.condition(operand)?);
                SqlNode::BooleanTest { operand, test: test_text(*test, *negated) }
            }
            ExprKind::Between(between) => self.between(between)?,
            ExprKind::InList { operand, list, negated, at: _ } => self.in_list(operand, list, *negated)?,
            ExprKind::Like(like) => self.like(like)?,
            ExprKind::Cast { operand, to, at: _ } => {
                let ty = self.binder.type_named(to)?;
                if let (ExprKind::Array(items), Some(element), -1) = (&operand.kind, element_of(ty.0), ty.1) {
                    return self.cast_array(items, ty.0, element.oid);
                }
                let operand = self.expr(operand)?;
                self.cast(operand, ty, SqlForm::Explicit, CastContext::Explicit)?
            }
            ExprKind::Collate { operand, collation, at: _ } => {
                let operand = self.expr(operand)?;
                let operand = Box::new(self.settled(operand)?);
                SqlNode::Collate { operand, collation: collation.last().to_owned() }
            }
            ExprKind::Case(case) => self.case(case)?,
            ExprKind::Row { items, explicit: _ } => SqlNode::Row(self.exprs(items)?),
            ExprKind::Indirection { operand, links } => {
                let operand = self.expr(operand)?;
                self.indirection(operand, links)?
            }
            ExprKind::Array(items) => {
                let items = self.exprs(items)?;
                let ty = self.common(&items)?;
                SqlNode::Array { items: self.coerce_all(items, ty)?, ty: array_of(ty) }
            }
            ExprKind::ArrayQuery(query) => self.sublink(SublinkKind::Array, None, query)?,
            ExprKind::Function(call) => self.function(call)?,
            ExprKind::JsonValue { operand, format } => self.json_value(operand, format)?,
            ExprKind::JsonConstructor(node) => self.json_constructor(node)?,
            ExprKind::JsonTest(node) => self.json_test(node)?,
            ExprKind::Coalesce(items) => {
                let (items, ty) = self.in_common(items)?;
                SqlNode::Coalesce(items, ty)
            }
            ExprKind::NullIf { left, right } => {
                let (left, right) = (self.expr(left)?, self.expr(right)?);
                let (_, left, right) = self.operands("=", left, right)?;
                SqlNode::NullIf(Box::new(left), Box::new(right))
            }
            ExprKind::Greatest(items) => {
                let (items, ty) = self.in_common(items)?;
                SqlNode::Extreme { word: "GREATEST", items, ty }
            }
            ExprKind::Least(items) => {
                let (items, ty) = self.in_common(items)?;
                SqlNode::Extreme { word: "LEAST", items, ty }
            }
            ExprKind::SqlValue(value) => of_sql_value(*value),
            ExprKind::Exists(query) => self.sublink(SublinkKind::Exists, None, query)?,
            ExprKind::Subquery(query) => self.sublink(SublinkKind::Scalar, None, query)?,
            _ => return Err(unsupported("this expression of a definition")),
        })
    }

    /// Returns all fields of a row of a composite type, with their names.
    pub fn all_fields(&mut self, node: &SqlNode) -> Result<Vec<(String, SqlNode)>> {
        let (of, _) = self.binder.base_type(node.ty().0)?;
        let Some(row) = self.binder.composite_row(of).filter(|_| user::is_composite(of)) else {
            return Err(unsupported("all fields of a row in a definition"));
        };
        let fields = row.fields.iter().enumerate();
        Ok(fields.map(|(at, field)| (field.name.to_string(), self.field_of(node.clone(), field, at))).collect())
    }

    /// Returns fields of rows and elements of arrays.
    pub fn indirection(&mut self, operand: SqlNode, links: &[Indirection]) -> Result<SqlNode> {
        let mut node = operand;
        for link in links {
            let (of, _) = node.ty();
            match link {
                Indirection::Field(name) => {
                    let (of, _) = self.binder.base_type(of)?;
                    let row = self.binder.composite_row(of).filter(|_| user::is_composite(of));
                    let place =
                        row.as_ref().and_then(|row| row.fields.iter().position(|field| *field.name == *name.value));
                    let (Some(row), Some(place)) = (row, place) else {
                        return Err(unsupported("a field of a definition"));
                    };
                    node = self.field_of(node, &row.fields[place], place);
                }
                Indirection::Subscript(index) => {
                    let index = self.expr(index)?;
                    let index = self.coerce_in(index, oid::INT4, SqlForm::Implicit, CastContext::Assignment)?;
                    // Further subscripts are of the same array.
                    if let SqlNode::Element { parts, .. } = &mut node
                        && element_of(of).is_none()
                    {
                        parts.push(index);
                        continue;
                    }
                    let Some(element) = element_of(of) else { return Err(unsupported("a subscript of a definition")) };
                    let ty = (element.oid, node.ty().1);
                    node = SqlNode::Element { parts: vec![node, index], ty };
                }
                Indirection::Slice { .. } | Indirection::Star => {
                    return Err(unsupported("a slice of a definition"));
                }
            }
        }
        Ok(node)
    }

    pub fn in_common(&mut self, items: &[tree::Expr]) -> Result<(Vec<SqlNode>, crate::deparse::node::Ty)> {
        let items = self.exprs(items)?;
        let ty = self.common(&items)?;
        let typmod = items.first().map_or(-1, |first| first.ty().1);
        let is_same = items.iter().all(|item| item.ty() == (ty, typmod));
        Ok((self.coerce_all(items, ty)?, (ty, if is_same { typmod } else { -1 })))
    }

    pub fn condition(&mut self, tree: &tree::Expr) -> Result<SqlNode> {
        let node = self.expr(tree)?;
        self.coerce_in(node, oid::BOOL, SqlForm::Implicit, CastContext::Assignment)
    }

    fn conditions(&mut self, trees: &[tree::Expr]) -> Result<Vec<SqlNode>> {
        trees.iter().map(|tree| self.condition(tree)).collect()
    }

    fn column(&mut self, fields: &[String], star: bool) -> Result<SqlNode> {
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
            let is_meant = |named: &&NamedSource| match table {
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
        self.whole_row(fields)
    }

    /// Returns the row of a relation of FROM by its name.
    fn whole_row(&self, fields: &[String]) -> Result<SqlNode> {
        let refused = || unsupported("a whole-row reference in a definition");
        let (schema, name) = match fields {
            [name] => (None, name),
            [schema, name] => (Some(schema), name),
            _ => return Err(refused()),
        };
        let mut hidden = false;
        for (levels, scope) in self.scopes.iter().rev().enumerate() {
            let is_hidden = std::mem::replace(&mut hidden, scope.hides_outer);
            let is_meant = |named: &&NamedSource| {
                named.alias == *name && schema.is_none_or(|schema| named.schema.as_ref() == Some(schema))
            };
            let Some(named) = scope.names.iter().find(is_meant).filter(|_| !is_hidden) else { continue };
            let Some((_, SqlNode::Column { table, .. })) = named.columns.first() else { return Err(refused()) };
            let FromSource::Relation { schema, name, .. } = &scope.tables[*table].source else {
                return Err(refused());
            };
            let rows = self.binder.rows_of_relation(schema, name).ok_or_else(refused)?;
            return Ok(SqlNode::Column { level: levels, table: *table, column: WHOLE, ty: (rows, -1) });
        }
        Err(unsupported(format!("the column \"{}\" of a definition", fields.join("."))))
    }

    /// Returns a field of a row: that of a relation's row is its column.
    fn field_of(&self, node: SqlNode, field: &RecordField, place: usize) -> SqlNode {
        let (name, ty) = (field.name.to_string(), (field.number, field.length as i32));
        match node {
            SqlNode::Column { level, table, column: WHOLE, ty: _ } => {
                SqlNode::Column { level, table, column: place, ty }
            }
            node => SqlNode::Field { operand: Box::new(node), name, ty },
        }
    }

    pub fn operator(&self, name: &str, left: Oid, right: Oid) -> Result<&'static crate::functions::PgOperator> {
        match resolve::operator(name, self.binder.flat(left)?, self.binder.flat(right)?) {
            Resolution::One(row) => Ok(row),
            _ => Err(unsupported(format!("the operator {name} of a definition"))),
        }
    }

    /// Returns the operator for operands of these types, and them as it takes them.
    pub fn operands(
        &mut self,
        name: &str,
        left: SqlNode,
        right: SqlNode,
    ) -> Result<(&'static crate::functions::PgOperator, SqlNode, SqlNode)> {
        let found = self.found_operator(name, left.ty().0, right.ty().0)?;
        let left = self.coerce(left, found.left, SqlForm::Implicit)?;
        let right = self.coerce(right, found.right, SqlForm::Implicit)?;
        Ok((found.row, left, right))
    }

    /// Returns the operator with the types that its polymorphic operands stand for.
    fn found_operator(&self, name: &str, left: Oid, right: Oid) -> Result<FoundOperator> {
        let operator = Operator { qualifier: Vec::new(), name: name.to_owned().into(), at: tree::Location(0) };
        self.binder.found_operator(&operator, left, right)
    }

    pub fn apply(&mut self, name: &str, left: SqlNode, right: SqlNode) -> Result<SqlNode> {
        let (row, left, right) = self.operands(name, left, right)?;
        Ok(SqlNode::Operator { name: row.name.to_owned(), operands: vec![left, right], ty: row.result })
    }

    fn prefix(&mut self, op: &Operator, operand: SqlNode) -> Result<SqlNode> {
        let row = self.operator(&op.name, 0, operand.ty().0)?;
        let operand = self.coerce(operand, row.right, SqlForm::Implicit)?;
        Ok(SqlNode::Operator { name: row.name.to_owned(), operands: vec![operand], ty: row.result })
    }

    fn chain(&mut self, first: &tree::Expr, links: &[Link]) -> Result<SqlNode> {
        let mut node = self.expr(first)?;
        for Link { op, operand } in links {
            if matches!(node, SqlNode::Row(_)) {
                return Err(unsupported("a comparison of rows in a definition"));
            }
            let right = self.expr(operand)?;
            node = self.apply(&op.name, node, right)?;
        }
        Ok(node)
    }

    /// Returns an array whose elements are cast one by one.
    fn cast_array(&mut self, items: &[tree::Expr], array: Oid, element: Oid) -> Result<SqlNode> {
        let mut cast = Vec::with_capacity(items.len());
        for item in items {
            cast.push(match &item.kind {
                ExprKind::Array(items) => self.cast_array(items, array, element)?,
                _ => {
                    let item = self.expr(item)?;
                    self.cast(item, (element, -1), SqlForm::Explicit, CastContext::Explicit)?
                }
            });
        }
        Ok(SqlNode::Array { items: cast, ty: array })
    }

    /// Returns `operand op ANY (array)`.
    fn quantified(&mut self, name: &str, left: SqlNode, array: SqlNode, is_any: bool) -> Result<SqlNode> {
        let array_type = array.ty().0;
        let element = element_of(array_type).map_or(array_type, |element| element.oid);
        let found = self.found_operator(name, left.ty().0, element)?;
        let row = found.row;
        let left = self.coerce(left, found.left, SqlForm::Implicit)?;
        let wanted = array_of(found.right);
        let array = match array_type == wanted || found.right == element {
            true => array,
            false => SqlNode::Cast { operand: Box::new(array), ty: (wanted, -1), form: SqlForm::Implicit },
        };
        Ok(SqlNode::Quantified { name: row.name.to_owned(), operand: Box::new(left), array: Box::new(array), is_any })
    }

    fn between(&mut self, between: &tree::Between) -> Result<SqlNode> {
        let operand = self.expr(&between.operand)?;
        let (low, high) = (self.expr(&between.low)?, self.expr(&between.high)?);
        let mut range = |low: SqlNode, high: SqlNode| -> Result<Vec<SqlNode>> {
            let (first, second) = if between.negated { ("<", ">") } else { (">=", "<=") };
            Ok(vec![self.apply(first, operand.clone(), low)?, self.apply(second, operand.clone(), high)?])
        };
        let joined = |items: Vec<SqlNode>| if between.negated { SqlNode::Or(items) } else { SqlNode::And(items) };
        if !between.symmetric {
            return range(low, high).map(joined);
        }
        let both = vec![joined(range(low.clone(), high.clone())?), joined(range(high, low)?)];
        Ok(if between.negated { SqlNode::And(both) } else { SqlNode::Or(both) })
    }

    fn in_list(&mut self, operand: &tree::Expr, list: &[tree::Expr], negated: bool) -> Result<SqlNode> {
        let left = self.expr(operand)?;
        let items = self.exprs(list)?;
        let (others, constants): (Vec<SqlNode>, Vec<SqlNode>) = items.iter().cloned().partition(SqlNode::reads_column);
        let name = if negated { "<>" } else { "=" };
        let mut all = Vec::new();
        let mut rest = items;
        if constants.len() > 1 {
            let with_left: Vec<SqlNode> = std::iter::once(left.clone()).chain(constants.clone()).collect();
            if let Ok(ty) = self.common(&with_left)
                && array_of(ty) != 0
            {
                let items = self.coerce_all(constants, ty)?;
                let array = SqlNode::Array { items, ty: array_of(ty) };
                all.push(self.quantified(name, left.clone(), array, !negated)?);
                rest = others;
            }
        }
        for item in rest {
            all.push(self.apply(name, left.clone(), item)?);
        }
        Ok(match all.len() {
            1 => all.remove(0),
            _ if negated => SqlNode::And(all),
            _ => SqlNode::Or(all),
        })
    }

    fn like(&mut self, like: &tree::Like) -> Result<SqlNode> {
        let (operand, mut pattern) = (self.expr(&like.operand)?, self.expr(&like.pattern)?);
        if matches!(like.kind, LikeKind::Similar) {
            let mut arguments = vec![pattern];
            if let Some(escape) = &like.escape {
                arguments.push(self.expr(escape)?);
            }
            pattern = self.call("similar_to_escape", arguments, SqlForm::Call)?;
        } else if let Some(escape) = &like.escape {
            let escape = self.expr(escape)?;
            pattern = self.call("like_escape", vec![pattern, escape], SqlForm::Call)?;
        }
        self.apply(like.kind.operator(like.negated), operand, pattern)
    }

    fn case(&mut self, case: &tree::Case) -> Result<SqlNode> {
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
                    let test = SqlNode::SqlValue { text: String::new(), ty: operand.ty() };
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
            None => SqlNode::Const { text: None, ty: (oid::UNKNOWN, -1) },
        };
        let mut results = vec![otherwise];
        for arm in &case.arms {
            results.push(self.expr(&arm.result)?);
        }
        let ty = self.common(&results)?;
        let typmod = results[0].ty().1;
        let is_same = results.iter().all(|result| result.ty() == (ty, typmod));
        let mut results = self.coerce_all(results, ty)?.into_iter();
        let otherwise = results.next().unwrap_or(SqlNode::Const { text: None, ty: (ty, -1) });
        Ok(SqlNode::Case {
            operand: operand.map(Box::new),
            arms: conditions.into_iter().zip(results).collect(),
            otherwise: Box::new(otherwise),
            ty: (ty, if is_same { typmod } else { -1 }),
        })
    }

    /// Returns `left op ANY (query)`.
    fn tested(&mut self, left: SqlNode, name: &str, kind: SublinkKind, query: &tree::SelectStmt) -> Result<SqlNode> {
        let query = self.query(query)?;
        let lefts = match left {
            SqlNode::Row(items) => items,
            one => vec![one],
        };
        let mut operands = Vec::new();
        for (left, (_, ty)) in lefts.into_iter().zip(&query.columns) {
            let found = self.found_operator(name, left.ty().0, ty.0)?;
            operands.push(self.coerce(left, found.left, SqlForm::Implicit)?);
        }
        Ok(SqlNode::Sublink(Box::new(Sublink { kind, test: Some((operands, name.to_owned())), query })))
    }

    pub fn sublink(
        &mut self,
        kind: SublinkKind,
        test: Option<(Vec<SqlNode>, String)>,
        query: &tree::SelectStmt,
    ) -> Result<SqlNode> {
        let query = self.query(query)?;
        Ok(SqlNode::Sublink(Box::new(Sublink { kind, test, query })))
    }
}

fn of_const(constant: &Const) -> Result<SqlNode> {
    let (text, ty) = match constant {
        Const::Null => (None, oid::UNKNOWN),
        Const::Bool(truth) => (Some(if *truth { "t" } else { "f" }.to_owned()), oid::BOOL),
        Const::Integer(number) => (Some(number.to_string()), oid::INT4),
        Const::Float(text) => match text.parse::<i64>() {
            Ok(number) => (Some(number.to_string()), oid::INT8),
            Err(_) => (Some(numeric(text)?), oid::NUMERIC),
        },
        Const::String(text) => (Some(text.clone()), oid::UNKNOWN),
        Const::Bits(digits) | Const::HexBits(digits) => {
            let mut shown = Vec::new();
            bits::output(&bits::of_digits(digits, matches!(constant, Const::HexBits(_)))?, &mut shown);
            (Some(String::from_utf8_lossy(&shown).into_owned()), oid::BIT)
        }
    };
    Ok(SqlNode::Const { text, ty: (ty, -1) })
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

fn of_sql_value(value: SqlValueFunction) -> SqlNode {
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
    SqlNode::SqlValue { text, ty: (ty, typmod.unwrap_or(-1)) }
}
