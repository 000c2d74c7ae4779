//! Arrays in expressions: ARRAY[...], ARRAY(query), subscripts, ANY and ALL over an array, casts of each element.

use std::sync::Arc;

use datum::value::DIMENSIONS_MAX;
use query::catalog::table::Table;
use query::nodes::aggregate::Aggregate;
use query::nodes::comparison::{Comparator, Comparison};
use query::nodes::eval::sort_literals;
use query::nodes::expr::{Call, Expr, Extra, In};
use query::nodes::function::Function;
use query::nodes::node::{AggregateCall, Group, Node};
use query::nodes::subquery::Question;
use query::types::Collation;
use syntax::postgres::tree::{self, ExprKind, Indirection, SelectStmt};

use crate::bind::Binder;
use crate::bind::coerce::REFORM;
use crate::bind::comparison::comparator;
use crate::bind::composite::PartValue;
use crate::bind::expression::common_typmod;
use crate::bind::record::is_record;
use crate::bind::special;
use crate::bind::typing::{Operand, literal, oid_of, settled, shown, typmod_of_expr, unsupported};
use crate::error::{PgError, Result, state};
use crate::functions::CastContext;
use crate::functions::array::aggregate::ARRAY_AGG;
use crate::functions::array::{construct, quantified, subscript};
use crate::functions::domain::DOMAIN_CHECK;
use crate::functions::json::subscripts;
use crate::functions::record::SET_FIELD;
use crate::types::array::too_many_dimensions;
use crate::types::oid::{self, Oid};
use crate::types::registry::{
    array_of, column_type, element_of, is_array, oid_of as type_of, shape_of, typmod_of as type_modifier,
};
use crate::value::Value;

/// The most elements of a literal that become candidates of their own.
const CANDIDATES_MAX: usize = 1000;

/// A call with parts that are no arguments.
fn call_with(function: &'static Function, arguments: Vec<Expr>, (ty, typmod): (Oid, i32), extra: Extra) -> Expr {
    let ty = column_type(ty, typmod, true);
    Expr::Call(Box::new(Call { function, arguments, ty, collation: Collation::Binary, extra }))
}

/// Returns the type that a value has where subscripts follow it: those of vectors are subscripts of plain arrays.
fn container(ty: Oid) -> Oid {
    match ty {
        oid::INT2VECTOR => oid::INT2_ARRAY,
        oid::OIDVECTOR => oid::OID_ARRAY,
        ty => ty,
    }
}

impl Binder<'_> {
    /// Binds ARRAY[...]. `target` is the type to which it is cast at once, with the modifier of its elements.
    #[inline(never)]
    pub fn array(&mut self, items: &[tree::Expr], target: Option<(Oid, i32)>, at: u32) -> Result<Operand> {
        let (mut operands, mut is_nested) = (Vec::with_capacity(items.len()), false);
        for item in items {
            let operand = match &item.kind {
                ExprKind::Array(inner) => {
                    self.count_node()?;
                    self.check_stack()?;
                    is_nested = true;
                    self.array(inner, target, item.span.start)?
                }
                _ => self.expr(item)?,
            };
            is_nested |= is_array(operand.oid());
            operands.push(operand);
        }
        let (array, element, typmod) = match target {
            Some((array, typmod)) => (array, element_of(array).map_or(oid::TEXT, |row| row.oid), typmod),
            None if operands.is_empty() => {
                let text = "cannot determine type of empty array";
                let hint = "Explicitly cast to the desired type, for example ARRAY[]::integer[].";
                return Err(self.error(PgError::new(state::INDETERMINATE_DATATYPE, text).hint(hint), at));
            }
            None => {
                let (array, element) = self.common_element(&operands, is_nested, at)?;
                let all: Vec<&Operand> = operands.iter().collect();
                let is_of_rows = element == oid::RECORD && !is_nested;
                (array, element, if is_of_rows { common_typmod(&all, element) } else { -1 })
            }
        };
        let wanted = if is_nested { array } else { element };
        let mut arguments = Vec::with_capacity(operands.len());
        match target {
            None => arguments = self.coerce_to_common(operands, wanted, "ARRAY")?,
            Some(_) => {
                for operand in operands {
                    let place = operand.at;
                    let cast = self.cast_to(operand, (wanted, typmod), place)?;
                    arguments.push(cast.expr);
                }
            }
        }
        let mut extra = Extra::default();
        extra.word[0] = u8::from(is_nested);
        let expr = call_with(&construct::ARRAY, arguments, (array, typmod), extra);
        Ok(Operand { expr: self.constant_array(expr)?, at })
    }

    /// Returns an array of expressions that have the element type.
    #[inline(never)]
    pub fn array_of_elements(&mut self, elements: Vec<Expr>, element: Oid) -> Result<Expr> {
        let Some(array) = array_of(element) else { return Err(unsupported(shown(element))) };
        self.constant_array(call_with(&construct::ARRAY, elements, (array, -1), Extra::default()))
    }

    /// Returns the type of an array of these elements, and of the elements.
    #[inline(never)]
    fn common_element(&self, operands: &[Operand], is_nested: bool, at: u32) -> Result<(Oid, Oid)> {
        let all: Vec<&Operand> = operands.iter().collect();
        let common = self.common_type(&all, "ARRAY")?;
        let missing = |what: &str| {
            let text = format!("could not find {what} type for data type {}", shown(common));
            self.error(PgError::new(state::UNDEFINED_OBJECT, text), at)
        };
        match is_nested {
            true => element_of(common).map(|row| (common, row.oid)).ok_or_else(|| missing("element")),
            false => array_of(common).map(|array| (array, common)).ok_or_else(|| missing("array")),
        }
    }

    /// Evaluates an array of literals at once.
    #[inline(never)]
    fn constant_array(&mut self, expr: Expr) -> Result<Expr> {
        if !expr.children().iter().all(|child| matches!(child, Expr::Literal(..))) {
            return Ok(expr);
        }
        let value = expr.eval(&[], self.ctx).map_err(PgError::from)?;
        Ok(Expr::Literal(value, settled(&expr.ty()).with_nullable(false)))
    }

    /// Binds ARRAY(query): the values of its only column, in the order of its rows.
    #[inline(never)]
    pub fn array_query(&mut self, query: &SelectStmt, at: u32) -> Result<Operand> {
        let mut array = None;
        let (subquery, _) = self.nested(query, |binder, bound| {
            let [column] = &bound.columns[..] else {
                return binder.fail(state::SYNTAX_ERROR, "subquery must return only one column", at);
            };
            let ty = settled(&column.column.ty).with_nullable(true);
            let element = oid_of(&Expr::Column(0, ty.clone()));
            let result = if is_array(element) { Some(container(element)) } else { array_of(element) };
            let Some(result) = result else {
                let text = format!("could not find array type for data type {}", shown(element));
                return binder.fail(state::UNDEFINED_OBJECT, text, at);
            };
            let typmod = if is_record(element) { type_modifier(&ty) } else { -1 };
            array = Some((result, element_of(result).map_or(element, |row| row.oid), typmod));
            bound.node = gathered(bound.node.clone(), ty, result);
            bound.plain = None;
            Ok(Question::Value)
        })?;
        let Some((result, element, typmod)) = array else { return Err(unsupported("this query")) };
        let expr = Expr::Subquery(Arc::new(subquery), column_type(result, typmod, true));
        // No row is an empty array.
        let empty = Value::Array(datum::Array::empty(shape_of(element)));
        let arguments = vec![expr, literal(empty, result)];
        let expr = call_with(&special::COALESCE, arguments, (result, typmod), Extra::default());
        Ok(Operand { expr, at })
    }

    /// Binds subscripts behind a value.
    #[inline(never)]
    pub fn indirection(&mut self, operand: &tree::Expr, links: &[Indirection], at: u32) -> Result<Operand> {
        let (operand, count) = self.fields(operand, links)?;
        let links = &links[count..];
        if links.is_empty() {
            return Ok(Operand { at, ..operand });
        }
        if links.contains(&Indirection::Star) {
            return self.fail(state::SYNTAX_ERROR, "row expansion via \"*\" is not supported here", at);
        }
        let ends = |link: &Indirection| matches!(link, Indirection::Field(_));
        if let Some(end) = links.iter().position(ends) {
            // A field of an element.
            let element = self.subscripted(operand, &links[..end], at)?;
            return self.fields_of(element, &links[end..], at);
        }
        self.subscripted(operand, links, at)
    }

    /// Binds fields and further subscripts of a value.
    fn fields_of(&mut self, operand: Operand, links: &[Indirection], at: u32) -> Result<Operand> {
        let [link, rest @ ..] = links else { return Ok(Operand { at, ..operand }) };
        if let Indirection::Field(name) = link {
            let field = self.field_of(operand, name)?;
            return self.fields_of(field, rest, at);
        }
        let end = links.iter().position(|link| matches!(link, Indirection::Field(_))).unwrap_or(links.len());
        let element = self.subscripted(operand, &links[..end], at)?;
        self.fields_of(element, &links[end..], at)
    }

    /// Binds subscripts behind a value.
    fn subscripted(&mut self, operand: Operand, links: &[Indirection], at: u32) -> Result<Operand> {
        let operand = self.smashed(operand)?;
        let ty = operand.oid();
        if ty == oid::NAME {
            return self.byte_of_name(operand, links, at);
        }
        if ty == oid::JSONB {
            return self.jsonb_element(operand, links, at);
        }
        let Some(element) = element_of(ty) else {
            let text = format!("cannot subscript type {} because it does not support subscripting", shown(ty));
            return self.fail(state::DATATYPE_MISMATCH, text, operand.at);
        };
        let (array, typmod) = (container(ty), typmod_of_expr(&operand.expr));
        let mut arguments = vec![operand.expr];
        let (bounds, extra) = self.subscripts(links)?;
        arguments.extend(bounds);
        let expr = match extra {
            Some(extra) => call_with(&subscript::SLICE, arguments, (array, typmod), extra),
            None => call_with(&subscript::ELEMENT, arguments, (element.oid, typmod), Extra::default()),
        };
        Ok(Operand { expr, at })
    }

    #[inline(never)]
    fn byte_of_name(&mut self, name: Operand, links: &[Indirection], at: u32) -> Result<Operand> {
        let (bounds, slice) = self.subscripts(links)?;
        if slice.is_some() {
            let text = "slices of fixed-length arrays not implemented";
            return Err(PgError::new(state::FEATURE_NOT_SUPPORTED, text));
        }
        let arguments = std::iter::once(name.expr).chain(bounds).collect();
        Ok(Operand { expr: call_with(&subscript::NAME_BYTE, arguments, (oid::CHAR, -1), Extra::default()), at })
    }

    /// Binds subscripts. Of slices there are two bounds each, and the words of a call that tell which are written.
    #[inline(never)]
    pub fn subscripts(&mut self, links: &[Indirection]) -> Result<(Vec<Expr>, Option<Extra>)> {
        if links.len() > DIMENSIONS_MAX {
            return Err(too_many_dimensions(links.len() as i64));
        }
        let is_slice = links.iter().any(|link| matches!(link, Indirection::Slice { low: _, high: _ }));
        let (mut bounds, mut extra) = (Vec::new(), Extra::default());
        for (nth, link) in links.iter().enumerate() {
            let (low, high) = match link {
                Indirection::Subscript(index) if !is_slice => {
                    bounds.push(self.bound(index)?);
                    continue;
                }
                // Among slices `[n]` means `[1:n]`.
                Indirection::Subscript(index) => (Some(literal(Value::Int(1), oid::INT4)), Some(self.bound(index)?)),
                Indirection::Slice { low, high } => {
                    let low = low.as_ref().map(|low| self.bound(low)).transpose()?;
                    (low, high.as_ref().map(|high| self.bound(high)).transpose()?)
                }
                Indirection::Field(_) | Indirection::Star => return Err(unsupported("a field of a value")),
            };
            for (word, bound) in extra.word.iter_mut().zip([low, high]) {
                *word |= u8::from(bound.is_some()) << nth;
                bounds.push(bound.unwrap_or_else(|| literal(Value::Null, oid::INT4)));
            }
        }
        Ok((bounds, is_slice.then_some(extra)))
    }

    fn bound(&mut self, node: &tree::Expr) -> Result<Expr> {
        let operand = self.expr(node)?;
        let at = operand.at;
        match self.coerce_to(operand, oid::INT4, -1, CastContext::Assignment)? {
            Some(bound) => Ok(bound),
            None => self.fail(state::DATATYPE_MISMATCH, "array subscript must have type integer", at),
        }
    }

    /// Binds the assignment to an element or a slice of a column. Several of one column follow each other.
    #[inline(never)]
    pub fn set_part(
        &mut self,
        target: &tree::InsertColumn,
        value: &tree::Expr,
        table: &Arc<Table>,
        sets: &mut Vec<(usize, Expr)>,
    ) -> Result<()> {
        let tree::InsertColumn { name, indirection } = target;
        let at = self.named_column(table, name)?;
        let place = name.at.0;
        self.refuse_default_part(value, target)?;
        let base = match sets.iter().position(|(known, _)| *known == at) {
            Some(known) => match part_of(sets.swap_remove(known).1) {
                Some(part) => part,
                None => {
                    let text = format!("multiple assignments to same column \"{}\"", name.value);
                    return Err(PgError::new(state::SYNTAX_ERROR, text));
                }
            },
            None => {
                let depth = self.scopes.len() - 1;
                let columns = self.scope().names.first().map(|item| item.columns.clone());
                let own = columns.iter().flat_map(|list| list.iter()).find(|column| column.name == name.value).cloned();
                match own {
                    Some(column) => {
                        let whole = self.read(depth, &column, place)?;
                        self.smashed(whole)?.expr
                    }
                    None => return Err(self.error(unsupported("this assignment"), place)),
                }
            }
        };
        let ty = &table.columns[at].ty;
        let ty = (type_of(ty), type_modifier(ty));
        let whole = self.assigned_part((base, ty), indirection, name, &mut |binder, ty| {
            let operand = binder.expr(value)?;
            binder.part_value(operand, target, ty)
        })?;
        sets.push((at, whole));
        Ok(())
    }

    /// Refuses DEFAULT as the value of a part of a column.
    pub fn refuse_default_part(&self, value: &tree::Expr, target: &tree::InsertColumn) -> Result<()> {
        if !matches!(value.kind, ExprKind::Default) {
            return Ok(());
        }
        let is_field = matches!(target.indirection.first(), Some(Indirection::Field(_)));
        let what = if is_field { "a subfield" } else { "an array element" };
        self.fail(state::FEATURE_NOT_SUPPORTED, format!("cannot set {what} to DEFAULT"), target.name.at.0)
    }

    /// Brings a value to the type of the part of a column that it is assigned to.
    pub fn part_value(&mut self, operand: Operand, target: &tree::InsertColumn, ty: (Oid, i32)) -> Result<Expr> {
        let source = operand.oid();
        if let Some(Indirection::Field(field)) = target.indirection.last() {
            return self.field_value(operand, field, ty, target.name.at.0);
        }
        if let Some(new) = self.coerce_to(operand, ty.0, ty.1, CastContext::Assignment)? {
            return Ok(new);
        }
        let text = format!(
            "subscripted assignment to \"{}\" requires type {} but expression is of type {}",
            target.name.value,
            shown(ty.0),
            shown(source)
        );
        let hint = "You will need to rewrite or cast the expression.";
        Err(self.error(PgError::new(state::DATATYPE_MISMATCH, text).hint(hint), target.name.at.0))
    }

    /// Binds an assignment to elements of an array or a jsonb, or to a part of an element (`assigned_part`).
    #[inline(never)]
    pub fn assigned_elements(
        &mut self,
        (base, (column_ty, _)): (Expr, (Oid, i32)),
        links: &[Indirection],
        column: &tree::Ident,
        value: &mut PartValue<'_, Self>,
    ) -> Result<Expr> {
        // The elements are those of the base type, and the whole is checked again.
        let ty = self.base_type(column_ty)?.0;
        let element = match element_of(ty) {
            _ if ty == oid::JSONB => oid::JSONB,
            Some(element) => element.oid,
            None => {
                let text = format!("cannot subscript type {} because it does not support subscripting", shown(ty));
                return self.fail(state::DATATYPE_MISMATCH, text, column.at.0);
            }
        };
        let is_end = |link: &Indirection| matches!(link, Indirection::Field(_) | Indirection::Star);
        let (subscripts, rest) = links.split_at(links.iter().position(is_end).unwrap_or(links.len()));
        let (bounds, extra) = match ty {
            oid::JSONB => (self.jsonb_subscripts(subscripts)?, None),
            _ => self.subscripts(subscripts)?,
        };
        let wanted = if extra.is_some() { container(ty) } else { element };
        let new = match rest.is_empty() || ty == oid::JSONB || extra.is_some() {
            true => self.assigned_part(
                (Expr::Literal(Value::Null, column_type(wanted, -1, true)), (wanted, -1)),
                rest,
                column,
                value,
            )?,
            false => {
                let mut arguments = vec![self.copy(&base)?];
                for bound in &bounds {
                    arguments.push(self.copy(bound)?);
                }
                let part = call_with(&subscript::ELEMENT, arguments, (element, -1), Extra::default());
                self.assigned_part((part, (element, -1)), rest, column, value)?
            }
        };
        let mut arguments = vec![base];
        arguments.extend(bounds);
        arguments.push(new);
        let function = match extra {
            _ if ty == oid::JSONB => &subscripts::SET_ELEMENT,
            Some(_) => &subscript::SET_SLICE,
            None => &subscript::SET_ELEMENT,
        };
        let whole = call_with(function, arguments, (ty, -1), extra.unwrap_or_default());
        if column_ty == ty { Ok(whole) } else { self.checked(whole, column_ty) }
    }

    /// Binds `left op ANY (array)` and `left op ALL (array)`.
    #[inline(never)]
    pub fn quantified_array(&mut self, node: &tree::Quantified, at: u32) -> Result<Operand> {
        let tree::Quantified { left, op, all, array } = node;
        let (left, right) = (self.expr(left)?, self.expr(array)?);
        let right = self.smashed(right)?;
        let element = match right.oid() {
            oid::UNKNOWN => oid::UNKNOWN,
            ty => match element_of(ty) {
                Some(element) => element.oid,
                None => {
                    let text = "op ANY/ALL (array) requires array on right side";
                    return self.fail(state::WRONG_OBJECT_TYPE, text, op.at.0);
                }
            },
        };
        let found = self.found_operator(op, left.oid(), element)?;
        if found.result != oid::BOOL {
            let text = "op ANY/ALL (array) requires operator to yield boolean";
            return self.fail(state::WRONG_OBJECT_TYPE, text, op.at.0);
        }
        let needle = self.coerce(left, found.left, CastContext::Implicit)?;
        let Some(target) = array_of(found.right) else {
            let text = format!("could not find array type for data type {}", shown(found.right));
            return self.fail(state::UNDEFINED_OBJECT, text, op.at.0);
        };
        let array = self.coerce(right, target, CastContext::Implicit)?;
        let by = comparator(found.left, found.right);
        match (found.row.comparison, by, all) {
            (Some(Comparison::Equal), Some(by), false) => Ok(Operand { expr: among(needle, array, by, false), at }),
            (Some(Comparison::NotEqual), Some(by), true) => Ok(Operand { expr: among(needle, array, by, true), at }),
            _ => {
                let place = |nth: usize, ty: Oid| Expr::Column(nth, column_type(ty, -1, true));
                let test = self.applied(found, place(0, found.left), place(1, found.right))?;
                let extra = Extra { each: Some(Arc::new(test)), ..Extra::default() };
                let function = if *all { &quantified::ALL } else { &quantified::ANY };
                Ok(Operand { expr: call_with(function, vec![needle, array], (oid::BOOL, -1), extra), at })
            }
        }
    }

    /// Returns the cast of each element of an array. The modifier is that of the elements.
    #[inline(never)]
    pub fn coerce_elements(&mut self, expr: Expr, target: Oid, (typmod, context): (i32, CastContext)) -> Result<Expr> {
        let (Some(from), Some(to)) = (element_of(oid_of(&expr)), element_of(target)) else {
            return Err(unsupported(format!("a cast to {}", shown(target))));
        };
        let typmod_before = typmod_of_expr(&expr);
        let element = Operand { expr: Expr::Column(0, column_type(from.oid, typmod_before, true)), at: 0 };
        let each = self.coerce_to(element, to.oid, typmod, context)?;
        let Some(each) = each else { return Err(unsupported(format!("a cast to {}", shown(target)))) };
        if matches!(each, Expr::Column(..)) && shape_of(from.oid) == shape_of(to.oid) && expr.carried().is_some() {
            return Ok(crate::bind::typing::retyped(expr, target, typmod_of_expr(&each)));
        }
        let typmod = typmod_of_expr(&each);
        let extra = Extra { each: Some(Arc::new(each)), ..Extra::default() };
        self.folded(call_with(&construct::EACH, vec![expr], (target, typmod), extra))
    }
}

/// Returns the value of an assignment, without the checks of a domain, if it is a column with some elements replaced.
pub fn part_of(mut expr: Expr) -> Option<Expr> {
    const PARTS: [&Function; 4] =
        [&subscript::SET_ELEMENT, &subscript::SET_SLICE, &subscripts::SET_ELEMENT, &SET_FIELD];
    let is_one_of = |call: &Call, known: &[&'static Function]| known.iter().any(|of| std::ptr::eq(*of, call.function));
    loop {
        match expr {
            Expr::Call(call) if is_one_of(&call, &PARTS) => {
                return Some(Expr::Call(call));
            }
            Expr::Call(mut call) if is_one_of(&call, &[&DOMAIN_CHECK, &REFORM]) => expr = call.arguments.swap_remove(0),
            _ => return None,
        }
    }
}

/// Returns whether a value is among the elements of an array, or among none of them.
fn among(needle: Expr, array: Expr, by: Comparator, negated: bool) -> Expr {
    let mut list: Vec<(Expr, Comparator)> = match array {
        Expr::Literal(Value::Array(array), ty) if array.len() <= CANDIDATES_MAX => {
            let element = element_of(type_of(&ty)).map_or(oid::TEXT, |row| row.oid);
            array.values().iter().map(|value| (literal(value.clone(), element), by)).collect()
        }
        array => vec![(Expr::Elements(Box::new(array)), by)],
    };
    let sorted = sort_literals(&mut list);
    Expr::In(Box::new(In { needle, list, sorted, negated }))
}

/// Returns the node that makes an array of the first column of all rows.
fn gathered(input: Arc<Node>, ty: query::types::Type, result: Oid) -> Arc<Node> {
    let argument = Expr::Column(0, ty.clone());
    let aggregate = Aggregate {
        function: &ARRAY_AGG,
        distinct: false,
        arguments: vec![ty],
        order: Vec::new(),
        separator: "".into(),
        ty: column_type(result, -1, true),
        filtered: false,
        by: None,
        setting: 0,
    };
    let calls = vec![AggregateCall { aggregate, arguments: vec![argument] }];
    Arc::new(Node::Group(Group {
        input,
        keys: Vec::new(),
        types: Vec::new(),
        calls,
        is_whole: true,
        sets: Vec::new(),
        rollup: false,
        level: None,
        estimate: 1.0,
    }))
}
