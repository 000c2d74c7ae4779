//! Expressions: from syntax to operands with types. Calls, operators and subqueries have modules of their own.

use query::nodes::expr::{Case, Expr};
use syntax::postgres::tree::{self, BooleanTest, Const, ExprKind, SqlValueFunction, TypeName};

use crate::bind::coerce::call_of;
use crate::bind::comparison::comparator;
use crate::bind::name_site::NameSiteKind;
use crate::bind::special;
use crate::bind::typing::{Operand, literal, oid_of, settled, shown, typmod_of_expr, unknown_type, unsupported};
use crate::bind::{Binder, Environment};
use crate::define::names::{find_type, schema_in};
use crate::error::{Result, state};
use crate::functions::CastContext;
use crate::functions::record::ROW;
use crate::functions::state::StateOf as _;
use crate::types::oid::{self, Oid};
use crate::types::record::{anonymous_input, is_row};
use crate::types::registry::{self, PgType, by_oid, column_type, interval_field};
use crate::types::{array, bits, io, user};
use crate::value::Value;

/// Returns an expression that keeps the digits of a decimal: a core's CASE shows those of its type, and PostgreSQL's type has none.
pub fn exact(expr: Expr) -> Expr {
    let is_decimal = expr.carried().is_some_and(|ty| ty.storage == datum::Storage::Decimal);
    if is_decimal { Expr::Exact(Box::new(expr)) } else { expr }
}

impl Binder<'_> {
    /// Binds an expression.
    pub fn expr(&mut self, node: &tree::Expr) -> Result<Operand> {
        self.count_node()?;
        self.check_stack()?;
        let at = node.span.start;
        if let Some(expr) = self.key_by_text(node) {
            return Ok(Operand { expr, at });
        }
        let done = |expr: Expr| Ok(Operand { expr, at });
        match &node.kind {
            ExprKind::Const(value) => done(self.constant_value(value, at)?),
            ExprKind::Column(name) => self.column(name, at),
            ExprKind::Param(number) => self.parameter(*number, at),
            ExprKind::And(list) => done(Expr::And(self.conditions(list, "AND")?)),
            ExprKind::Or(list) => done(Expr::Or(self.conditions(list, "OR")?)),
            ExprKind::Not(inner) => {
                let inner = self.expr(inner)?;
                done(Expr::Not(Box::new(self.coerce_to_boolean(inner, "NOT")?)))
            }
            ExprKind::Prefix { op, operand } => {
                let operand = self.expr(operand)?;
                self.make_prefix(op, operand)
            }
            ExprKind::Chain { first, links } => self.chain(first, links),
            ExprKind::Quantified(quantified) => self.quantified_array(quantified, at),
            ExprKind::QuantifiedQuery(quantified) => self.quantified_query(quantified, at),
            ExprKind::Distinct { left, right, negated, at: op } => self.distinct_from(left, right, *negated, op.0),
            ExprKind::NullTest { operand, negated, at: _ } => self.null_test(operand, *negated, at),
            ExprKind::BooleanTest { operand, test, negated, at: _ } => {
                let operand = self.expr(operand)?;
                self.boolean_test(operand, *test, *negated, at)
            }
            ExprKind::Between(between) => self.between(between, at),
            ExprKind::InList { operand, list, negated, at: op } => self.in_list(operand, list, *negated, op.0),
            ExprKind::InQuery { operand, query, negated, at: op } => {
                self.in_query(operand, query, *negated, (at, op.0))
            }
            ExprKind::Like(like) => self.like(like),
            ExprKind::Cast { operand, to, at: cast } => self.cast(operand, to, (at, cast.0)),
            ExprKind::Collate { operand, collation, at: op } => self.collate(operand, collation, op.0),
            ExprKind::Case(case) => self.case(case, at),
            ExprKind::Row { items, explicit: _ } => self.row(items, at),
            ExprKind::Array(items) => self.array(items, None, at),
            ExprKind::ArrayQuery(query) => self.array_query(query, at),
            ExprKind::Indirection { operand, links } => self.indirection(operand, links, at),
            ExprKind::Function(call) => self.function(call, at),
            ExprKind::JsonValue { operand, format } => self.json_value(operand, Some(format)),
            ExprKind::JsonConstructor(node) => self.json_constructor(node, at),
            ExprKind::JsonTest(node) => self.json_test(node, at),
            ExprKind::Coalesce(list) => self.coalesce(list, at),
            ExprKind::NullIf { left, right } => self.null_if(left, right, at),
            ExprKind::Greatest(list) => self.extreme(list, &special::GREATEST, "GREATEST", at),
            ExprKind::Least(list) => self.extreme(list, &special::LEAST, "LEAST", at),
            ExprKind::Grouping(list) => self.grouping(list, at),
            ExprKind::SqlValue(function) => self.sql_value(*function, at),
            ExprKind::Exists(query) => self.exists(query, at),
            ExprKind::Subquery(query) => self.scalar_subquery(query, at),
            ExprKind::Default => self.fail(state::SYNTAX_ERROR, "DEFAULT is not allowed in this context", at),
            ExprKind::CurrentOf(_) => Err(self.error(unsupported("WHERE CURRENT OF"), at)),
        }
    }

    /// Returns the key of the grouping that is written as this expression, if it has subqueries.
    fn key_by_text(&mut self, node: &tree::Expr) -> Option<Expr> {
        let scope = self.scope();
        if scope.key_texts.is_empty() || scope.in_aggregate {
            return None;
        }
        let (_, at) = scope.key_texts.iter().find(|(key, _)| key == node)?;
        scope.grouped.as_ref().map(|grouped| grouped.keys[*at].clone())
    }

    fn constant_value(&self, value: &Const, at: u32) -> Result<Expr> {
        Ok(match value {
            Const::Null => Expr::Literal(Value::Null, unknown_type()),
            Const::Bool(truth) => literal(Value::from(*truth), oid::BOOL),
            Const::Integer(number) => literal(Value::Int(i64::from(*number)), oid::INT4),
            Const::Float(digits) => match digits.parse::<i64>() {
                Ok(number) => literal(Value::Int(number), oid::INT8),
                Err(_) => {
                    let ty = column_type(oid::NUMERIC, -1, false);
                    let value = io::input(&ty, digits, &self.ctx.state().io).map_err(|error| self.error(error, at))?;
                    Expr::Literal(value, ty)
                }
            },
            Const::String(text) => Expr::Literal(Value::text(text), unknown_type().with_nullable(false)),
            Const::Bits(digits) | Const::HexBits(digits) => {
                let bits = bits::of_digits(digits, matches!(value, Const::HexBits(_)));
                literal(bits.map_err(|error| self.error(error, at))?.to_value(), oid::BIT)
            }
        })
    }

    fn conditions(&mut self, list: &[tree::Expr], clause: &str) -> Result<Vec<Expr>> {
        let mut bound = Vec::with_capacity(list.len());
        for item in list {
            let item = self.expr(item)?;
            bound.push(self.coerce_to_boolean(item, clause)?);
        }
        Ok(bound)
    }

    /// Binds the condition of a clause.
    pub fn condition(&mut self, node: &tree::Expr, clause: &str) -> Result<Expr> {
        let bound = self.expr(node)?;
        self.coerce_to_boolean(bound, clause)
    }

    pub fn all(&mut self, list: &[tree::Expr]) -> Result<Vec<Operand>> {
        list.iter().map(|item| self.expr(item)).collect()
    }

    fn null_test(&mut self, operand: &tree::Expr, negated: bool, at: u32) -> Result<Operand> {
        let tests = |list: Vec<Expr>| {
            // A row IS NOT NULL if none of its fields is.
            let test = |expr: Expr| match negated {
                true => Expr::Not(Box::new(Expr::IsNull(Box::new(expr)))),
                false => Expr::IsNull(Box::new(expr)),
            };
            Expr::and(list.into_iter().map(test).collect())
        };
        if let ExprKind::Row { items, explicit: _ } = &operand.kind {
            let list: Vec<Expr> = self.row_items(items)?.into_iter().map(|item| item.expr).collect();
            // A row without fields is NULL and is not.
            let expr = if list.is_empty() { Expr::truth(true) } else { tests(list) };
            return Ok(Operand { expr, at });
        }
        let operand = self.expr(operand)?;
        let expr = match self.record_test(&operand.expr, negated) {
            Some(test) => test,
            None => tests(vec![operand.expr]),
        };
        Ok(Operand { expr, at })
    }

    fn boolean_test(&mut self, operand: Operand, test: BooleanTest, negated: bool, at: u32) -> Result<Operand> {
        let clause = match (test, negated) {
            (BooleanTest::True, false) => "IS TRUE",
            (BooleanTest::True, true) => "IS NOT TRUE",
            (BooleanTest::False, false) => "IS FALSE",
            (BooleanTest::False, true) => "IS NOT FALSE",
            (BooleanTest::Unknown, false) => "IS UNKNOWN",
            (BooleanTest::Unknown, true) => "IS NOT UNKNOWN",
        };
        let inner = Box::new(self.coerce_to_boolean(operand, clause)?);
        let expr = match test {
            BooleanTest::True => Expr::IsTruth(inner, true),
            BooleanTest::False => Expr::IsTruth(inner, false),
            BooleanTest::Unknown => Expr::IsNull(inner),
        };
        Ok(Operand { expr: if negated { Expr::Not(Box::new(expr)) } else { expr }, at })
    }

    /// Returns the type and the modifier that a name of a type means.
    #[inline(never)]
    pub fn type_named(&mut self, name: &TypeName) -> Result<(Oid, i32)> {
        let TypeName { name: parts, setof, of_column, modifiers, interval, array_bounds, at } = name;
        if *setof {
            return self.fail(state::DATATYPE_MISMATCH, "type modifier cannot have SETOF", at.0);
        }
        if *of_column {
            return Err(self.error(unsupported("%TYPE"), at.0));
        }
        let (schema, bare) = match &parts.parts[..] {
            [bare] => (None, bare),
            [schema, bare] => (Some(schema), bare),
            _ => (None, &parts.parts[parts.parts.len() - 1]),
        };
        let row = registry::by_name(bare).filter(|_| schema.is_none_or(|schema| schema == "pg_catalog"));
        if row.is_none()
            && let Some(row) = self.row_type_named(parts)?
        {
            if let Some([rows, arrays]) = self.numbers_of_rows(&row) {
                return Ok((if array_bounds.is_empty() { rows } else { arrays }, -1));
            }
            let ty = if array_bounds.is_empty() { oid::RECORD } else { oid::RECORD_ARRAY };
            return Ok((ty, self.known_row_type(row)));
        }
        let Some(row) = row.or(self.user_type_named(schema.map(String::as_str), bare, at.0)?) else {
            let text = format!("type \"{}\" does not exist", parts.dotted());
            return self.fail(state::UNDEFINED_OBJECT, text, at.0);
        };
        let mut given = Vec::new();
        if let Some(fields) = interval {
            given.push(special::interval_bits(*fields));
        } else if row.oid == oid::INTERVAL && !modifiers.is_empty() {
            given.push(interval_field::ALL);
        }
        for modifier in modifiers {
            match &modifier.kind {
                ExprKind::Const(Const::Integer(number)) => given.push(*number),
                _ => {
                    return self.fail(
                        state::SYNTAX_ERROR,
                        "type modifiers must be simple constants or identifiers",
                        at.0,
                    );
                }
            }
        }
        let typmod = match given.is_empty() {
            true => -1,
            false => registry::typmod_in(&row, &given).map_err(|error| self.error(error, at.0))?.typmod,
        };
        // An array of arrays has more dimensions, which no type tells.
        if array_bounds.is_empty() || registry::element_of(row.oid).is_some_and(|_| !array::is_vector(row.oid)) {
            return Ok((row.oid, typmod));
        }
        match registry::array_of(row.oid) {
            Some(array) => Ok((array, typmod)),
            None => {
                let text = format!("type \"{}[]\" does not exist", parts.dotted());
                self.fail(state::UNDEFINED_OBJECT, text, at.0)
            }
        }
    }

    /// Returns the type that users have defined by that name.
    #[inline(never)]
    fn user_type_named(&mut self, schema: Option<&str>, name: &str, at: u32) -> Result<Option<PgType>> {
        let Environment { snapshot, database, .. } = self.environment;
        let path = match schema {
            None => &self.search_path,
            Some(schema) => {
                let exists = schema_in(snapshot, database, schema).is_some();
                if !exists && !crate::system::is_system(schema) {
                    return self.fail(state::INVALID_SCHEMA_NAME, format!("schema \"{schema}\" does not exist"), at);
                }
                &vec![schema.to_owned()]
            }
        };
        let Some((ty, is_array)) = find_type(snapshot, database, path, name) else { return Ok(None) };
        let oid = user::oid_of(&ty);
        self.note_name(at, NameSiteKind::Type(ty.id, 1 + usize::from(schema.is_some())));
        self.user_types.insert(ty.id);
        Ok(by_oid(if is_array { user::array_oid_of(&ty) } else { oid }))
    }

    /// Binds a cast that starts at `at`, and that errors find at `cast`.
    fn cast(&mut self, operand: &tree::Expr, to: &TypeName, (at, cast): (u32, u32)) -> Result<Operand> {
        let (target, typmod) = self.type_named(to)?;
        let base = if user::is_domain(target) { self.base_type(target)? } else { (target, typmod) };
        let operand = match &operand.kind {
            // The elements are cast one by one, and none need tell its type.
            ExprKind::Array(items) if registry::is_array(base.0) => self.array(items, Some(base), operand.span.start),
            _ => self.expr(operand),
        };
        self.cast_from(operand?, (target, typmod), (at, cast))
    }

    #[inline(never)]
    fn cast_from(&mut self, operand: Operand, to: (Oid, i32), (at, cast): (u32, u32)) -> Result<Operand> {
        let is_cast_row = operand.oid() == oid::RECORD && user::is_composite(to.0);
        let Operand { expr, at: _ } = self.cast_to(operand, to, cast)?;
        // As in PostgreSQL, a row that is cast begins at the cast.
        Ok(Operand { expr, at: if is_cast_row { cast } else { at } })
    }

    /// Casts as CAST does.
    pub fn cast_to(&mut self, operand: Operand, (target, typmod): (Oid, i32), at: u32) -> Result<Operand> {
        let source = operand.oid();
        if target == oid::RECORD && typmod >= 0 {
            return self.cast_to_row(operand, typmod, at);
        }
        if target == oid::RECORD_ARRAY && typmod >= 0 {
            return self.cast_to_rows(operand, typmod, at);
        }
        if user::is_composite(target)
            && let Expr::Call(call) = &operand.expr
            && std::ptr::eq(call.function, &ROW)
        {
            let place = operand.at;
            let cast = self.coerce_to_composite(Operand { at, ..operand }, target, CastContext::Explicit)?;
            return match cast {
                Some(expr) => Ok(Operand { expr, at }),
                None => {
                    let text = format!("cannot cast type {} to {}", shown(source), shown(target));
                    self.fail(state::CANNOT_COERCE, text, place.max(at))
                }
            };
        }
        if target == oid::RECORD {
            match (&operand.expr, source) {
                (Expr::Literal(Value::Null, _), oid::UNKNOWN) => {
                    return Ok(Operand { expr: literal(Value::Null, target), at });
                }
                (Expr::Literal(..), oid::UNKNOWN) => return Err(self.error(anonymous_input(), operand.at)),
                (_, source) if is_row(source) => return Ok(Operand { at, ..operand }),
                _ => {}
            }
        }
        // Only what has values can be cast to.
        if by_oid(target).is_some_and(|row| row.kind == registry::TypeKind::Pseudo) {
            let text = format!("cannot cast type {} to {}", shown(source), shown(target));
            return self.fail(state::CANNOT_COERCE, text, at);
        }
        match self.coerce_to(operand, target, typmod, CastContext::Explicit)? {
            Some(expr) => Ok(Operand { expr, at }),
            None => {
                let text = format!("cannot cast type {} to {}", shown(source), shown(target));
                self.fail(state::CANNOT_COERCE, text, at)
            }
        }
    }

    fn collate(&mut self, operand: &tree::Expr, collation: &tree::AnyName, at: u32) -> Result<Operand> {
        let operand = self.expr(operand)?;
        let start = operand.at;
        let expr = self.settle(operand)?;
        let ty = oid_of(&expr);
        if !by_oid(ty).is_some_and(|row| row.is_collatable) {
            let text = format!("collations are not supported by type {}", shown(ty));
            return self.fail(state::DATATYPE_MISMATCH, text, at);
        }
        let is_served = matches!(collation.last(), "C" | "POSIX" | "default" | "ucs_basic" | "C.UTF-8" | "C.utf8");
        let is_system = collation.parts.len() == 1 || collation.parts[0] == "pg_catalog";
        if !is_served || !is_system {
            let text = format!("collation \"{}\" for encoding \"UTF8\" does not exist", collation.dotted());
            return self.fail(state::UNDEFINED_OBJECT, text, at);
        }
        Ok(Operand { expr, at: start })
    }

    fn case(&mut self, case: &tree::Case, at: u32) -> Result<Operand> {
        let tree::Case { operand, arms, otherwise } = case;
        let sets = self.sets_bound();
        let operand = operand.as_ref().map(|operand| self.expr(operand)).transpose()?;
        let operand = match operand {
            // The operand is compared with each arm, so its type must be known before.
            Some(operand) => {
                let at = operand.at;
                Some(Operand { expr: self.settle(operand)?, at })
            }
            None => None,
        };
        let (mut conditions, mut results) = (Vec::new(), Vec::new());
        for tree::CaseWhen { condition, result } in arms {
            let bound = self.expr(condition)?;
            let bound = match &operand {
                Some(operand) => {
                    let op = tree::Operator::plain("=", tree::Location(condition.span.start));
                    let operand = self.copy_operand(operand)?;
                    self.make_operator(&op, operand, bound)?
                }
                None => bound,
            };
            conditions.push(self.coerce_to_boolean(bound, "CASE/WHEN")?);
            results.push(self.expr(result)?);
        }
        let otherwise = match otherwise {
            Some(otherwise) => self.expr(otherwise)?,
            None => Operand { expr: Expr::Literal(Value::Null, unknown_type()), at },
        };
        self.check_no_sets(sets, "set-returning functions are not allowed in CASE")?;
        // As in PostgreSQL, the ELSE is first.
        let list: Vec<&Operand> = std::iter::once(&otherwise).chain(&results).collect();
        let ty = self.common_type(&list, "CASE")?;
        let typmod = common_typmod(&list, ty);
        let otherwise = self.coerce_to_common(vec![otherwise], ty, "CASE/ELSE")?.swap_remove(0);
        let results = self.coerce_to_common(results, ty, "CASE/WHEN")?;
        let arms = conditions.into_iter().zip(results).collect();
        let case = Case { arms, otherwise, ty: column_type(ty, typmod, true) };
        Ok(Operand { expr: exact(Expr::Case(Box::new(case))), at })
    }

    fn coalesce(&mut self, list: &[tree::Expr], at: u32) -> Result<Operand> {
        let sets = self.sets_bound();
        let bound = self.chosen(list, &special::COALESCE, "COALESCE", at)?;
        self.check_no_sets(sets, "set-returning functions are not allowed in COALESCE")?;
        Ok(bound)
    }

    fn extreme(
        &mut self,
        list: &[tree::Expr],
        function: &'static query::nodes::function::Function,
        name: &str,
        at: u32,
    ) -> Result<Operand> {
        self.chosen(list, function, name, at)
    }

    /// Binds a function that returns one of its arguments.
    fn chosen(
        &mut self,
        list: &[tree::Expr],
        function: &'static query::nodes::function::Function,
        name: &str,
        at: u32,
    ) -> Result<Operand> {
        let operands = self.all(list)?;
        let all: Vec<&Operand> = operands.iter().collect();
        let ty = self.common_type(&all, name)?;
        let typmod = common_typmod(&all, ty);
        if name != "COALESCE" && comparator(ty, ty).is_none() {
            let text = format!("could not identify a comparison function for type {}", shown(ty));
            return self.fail(state::UNDEFINED_FUNCTION, text, at);
        }
        let arguments = self.coerce_to_common(operands, ty, name)?;
        Ok(Operand { expr: call_of(function, arguments, ty, typmod), at })
    }

    fn null_if(&mut self, left: &tree::Expr, right: &tree::Expr, at: u32) -> Result<Operand> {
        let left = self.expr(left)?;
        let right = self.expr(right)?;
        let op = tree::Operator::plain("=", tree::Location(at));
        let (row, left, right) = self.operands(&op, left, right)?;
        // The result is the first argument as the operator takes it.
        if row.row.comparison.is_some() && comparator(row.left, row.right).is_some() {
            let (ty, typmod) = (oid_of(&left), typmod_of_expr(&left));
            return Ok(Operand { expr: call_of(&special::NULL_IF, vec![left, right], ty, typmod), at });
        }
        let value = self.copy(&left)?;
        let equal = self.applied(row, left, right)?;
        let ty = settled(&value.ty()).with_nullable(true);
        let null = Expr::Literal(Value::Null, ty.clone());
        let case = Case { arms: vec![(equal, null)], otherwise: value, ty };
        Ok(Operand { expr: exact(Expr::Case(Box::new(case))), at })
    }

    /// Binds CURRENT_DATE and the like: casts of `now()`, and functions that have a name too.
    fn sql_value(&mut self, function: SqlValueFunction, at: u32) -> Result<Operand> {
        use SqlValueFunction as Sql;
        let named = |name: &str| (name.to_owned(), None);
        let (name, target) = match function {
            Sql::CurrentDate => ("now".to_owned(), Some((oid::DATE, None))),
            Sql::CurrentTime(digits) => ("now".to_owned(), Some((oid::TIMETZ, digits))),
            Sql::CurrentTimestamp(digits) => ("now".to_owned(), Some((oid::TIMESTAMPTZ, digits))),
            Sql::LocalTime(digits) => ("now".to_owned(), Some((oid::TIME, digits))),
            Sql::LocalTimestamp(digits) => ("now".to_owned(), Some((oid::TIMESTAMP, digits))),
            Sql::CurrentRole | Sql::CurrentUser | Sql::User => named("current_user"),
            Sql::SessionUser => named("session_user"),
            Sql::SystemUser => named("system_user"),
            Sql::CurrentCatalog => named("current_database"),
            Sql::CurrentSchema => named("current_schema"),
        };
        let value = self.call_named(&name, Vec::new(), at)?;
        let Some((target, digits)) = target else { return Ok(value) };
        let typmod = match (digits, by_oid(target)) {
            (Some(digits), Some(row)) => {
                registry::typmod_in(&row, &[digits]).map_err(|error| self.error(error, at))?.typmod
            }
            _ => -1,
        };
        self.cast_to(value, (target, typmod), at)
    }

    /// Binds an expression without tables.
    pub(super) fn constant(&mut self, node: &tree::Expr, target: Oid) -> Result<Expr> {
        self.has_no_parameters = true;
        self.open_scope();
        let bound = self.expr(node)?;
        self.close_scope();
        let (source, at) = (bound.oid(), bound.at);
        if target == 0 {
            return self.settle(bound);
        }
        match self.coerce_to(bound, target, -1, CastContext::Assignment)? {
            Some(expr) => Ok(expr),
            None => {
                let text = format!("cannot cast type {} to {}", shown(source), shown(target));
                self.fail(state::CANNOT_COERCE, text, at)
            }
        }
    }
}

/// Returns the modifier that the operands of the type share, or none.
pub fn common_typmod(operands: &[&Operand], ty: Oid) -> i32 {
    let mut typmods = operands.iter().map(|operand| match operand.oid() == ty {
        true => typmod_of_expr(&operand.expr),
        false => -1,
    });
    let first = typmods.next().unwrap_or(-1);
    if typmods.all(|typmod| typmod == first) { first } else { -1 }
}
