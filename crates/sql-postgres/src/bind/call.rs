//! Calls of functions by name.

use query::catalog::schema_name::SchemaName;
use query::nodes::expr::Expr;
use syntax::postgres::tree::{AnyName, Argument, FuncCall};

use crate::bind::Binder;
use crate::bind::coerce::{call, can_coerce, common_type, is_polymorphic};
use crate::bind::resolve::{Resolution, Signature, cast_between, function, functions_named};
use crate::bind::scope::Clause;
use crate::bind::typing::{Operand, category, shown, shown_list, unsupported};
use crate::bind::walk::is_aggregate;
use crate::error::{PgError, Result, state};
use crate::functions::{Body, CastContext, PgFunction};
use crate::types::oid::{self, Oid};
use crate::types::registry;

/// The most arguments of a call.
const ARGUMENTS_MAX: usize = 100;

impl Binder<'_> {
    /// Binds a call as it is written: of a function, an aggregate or a window function.
    pub fn function(&mut self, node: &FuncCall, at: u32) -> Result<Operand> {
        let FuncCall { name, arguments, variadic, star, distinct, order_by, within_group, filter, over, sql_syntax: _ } =
            node;
        if *variadic {
            return Err(self.error(unsupported("VARIADIC with an array"), at));
        }
        if let Some(named) = arguments.iter().find_map(|argument| argument.name.as_ref()) {
            return Err(self.error(unsupported("an argument by name"), named.at.0));
        }
        if arguments.len() > ARGUMENTS_MAX {
            let text = format!("cannot pass more than {ARGUMENTS_MAX} arguments to a function");
            return self.fail(state::TOO_MANY_ARGUMENTS, text, at);
        }
        if *within_group {
            return Err(self.error(unsupported("WITHIN GROUP"), at));
        }
        if over.is_some() {
            return self.window_function(node, at);
        }
        if self.is_system(name) && is_aggregate(node) {
            return self.aggregate(node, at);
        }
        let bare = name.last();
        if *star && functions_named(bare).iter().all(|row| !row.arguments.is_empty()) {
            return Err(self.no_function(name, &[], at));
        }
        let misused = |binder: &Binder<'_>, what: &str| {
            let text = format!("{what}, but {bare} is not an aggregate function");
            Err(binder.error(PgError::new(state::WRONG_OBJECT_TYPE, text), at))
        };
        if *star {
            return misused(self, &format!("{bare}(*) specified"));
        }
        if *distinct {
            return misused(self, "DISTINCT specified");
        }
        if !order_by.is_empty() {
            return misused(self, "ORDER BY specified");
        }
        if filter.is_some() {
            return misused(self, "FILTER specified");
        }
        let mut operands = Vec::with_capacity(arguments.len());
        for Argument { name: _, value } in arguments {
            operands.push(self.expr(value)?);
        }
        if !self.is_system(name) {
            self.check_schema(name, at)?;
            return Err(self.no_function(name, &operands, at));
        }
        self.call_of_name(name, operands, at)
    }

    /// Refuses a name in a schema that does not exist.
    fn check_schema(&self, name: &AnyName, at: u32) -> Result<()> {
        let Some(schema) = name.parts.len().checked_sub(2).map(|nth| &name.parts[nth]) else { return Ok(()) };
        let stored = SchemaName::new(self.environment.database, schema).map(|name| name.stored().into_owned());
        let exists = stored.is_some_and(|stored| self.environment.snapshot.schemas.contains_key(&stored));
        if exists || schema == "information_schema" {
            return Ok(());
        }
        self.fail(state::INVALID_SCHEMA_NAME, format!("schema \"{schema}\" does not exist"), at)
    }

    /// Returns whether a name of a function is looked up in `pg_catalog`.
    pub fn is_system(&self, name: &AnyName) -> bool {
        match &name.parts[..] {
            [_] => true,
            [schema, _] => schema == "pg_catalog",
            _ => false,
        }
    }

    /// Returns a call of the system's function of that name.
    pub fn call_named(&mut self, name: &str, operands: Vec<Operand>, at: u32) -> Result<Operand> {
        let name = AnyName { parts: vec![name.to_owned()], at: syntax::postgres::tree::Location(at) };
        self.call_of_name(&name, operands, at)
    }

    fn call_of_name(&mut self, name: &AnyName, operands: Vec<Operand>, at: u32) -> Result<Operand> {
        let types: Vec<Oid> = operands.iter().map(Operand::oid).collect();
        let found = function(name.last(), &types);
        let is_exact = matches!(&found, Resolution::One((_, parameters)) if *parameters == types);
        if let ([operand], false) = (&operands[..], is_exact)
            && let Some(target) = cast_by_name(name.last(), operand.oid())
        {
            return self.cast_to(operand.clone(), (target, -1), at);
        }
        let (row, parameters) = match found {
            Resolution::One(signature) => signature,
            Resolution::None => return Err(self.no_function(name, &operands, at)),
            Resolution::Many => {
                let text = format!("function {}({}) is not unique", name.dotted(), shown_list(&types));
                let hint = "Could not choose a best candidate function. You might need to add explicit type casts.";
                return Err(self.error(PgError::new(state::AMBIGUOUS_FUNCTION, text).hint(hint), at));
            }
        };
        if matches!(row.body, Body::Window) {
            let text = format!("window function {} requires an OVER clause", row.name);
            return self.fail(state::WRONG_OBJECT_TYPE, text, at);
        }
        let (arguments, result) = self.arguments_of((row, parameters), operands, at)?;
        if let Body::Set(body) = row.body {
            return self.set_returning(row, (body, result), arguments, at);
        }
        Ok(Operand { expr: call(row, arguments, result, -1)?, at })
    }

    fn no_function(&self, name: &AnyName, operands: &[Operand], at: u32) -> PgError {
        let types: Vec<Oid> = operands.iter().map(Operand::oid).collect();
        let text = format!("function {}({}) does not exist", name.dotted(), shown_list(&types));
        let hint = "No function matches the given name and argument types. You might need to add explicit type casts.";
        self.error(PgError::new(state::UNDEFINED_FUNCTION, text).hint(hint), at)
    }

    /// Resolves the function of a call that is an aggregate or a window function.
    pub fn signature_of(&mut self, node: &FuncCall, operands: &[Operand], at: u32) -> Result<Signature> {
        let types: Vec<Oid> = operands.iter().map(Operand::oid).collect();
        match function(node.name.last(), &types) {
            Resolution::One(signature) if self.is_system(&node.name) => Ok(signature),
            Resolution::Many => {
                let text = format!("function {}({}) is not unique", node.name.dotted(), shown_list(&types));
                let hint = "Could not choose a best candidate function. You might need to add explicit type casts.";
                Err(self.error(PgError::new(state::AMBIGUOUS_FUNCTION, text).hint(hint), at))
            }
            _ => Err(self.no_function(&node.name, operands, at)),
        }
    }

    /// Coerces the arguments to the types of the parameters. Returns them and the type of the result.
    pub fn arguments_of(
        &mut self,
        (row, parameters): Signature,
        operands: Vec<Operand>,
        at: u32,
    ) -> Result<(Vec<Expr>, Oid)> {
        let element = self.element_type(row, &parameters, &operands, at)?;
        let mut arguments = Vec::with_capacity(operands.len());
        for (operand, parameter) in operands.into_iter().zip(&parameters) {
            let target = match *parameter {
                oid::ANY => oid::ANY,
                ty if is_polymorphic(ty) => element.unwrap_or(oid::TEXT),
                ty => ty,
            };
            arguments.push(match target {
                oid::ANY => self.settle(operand)?,
                target => self.coerce(operand, target, CastContext::Implicit)?,
            });
        }
        let result = if is_polymorphic(row.result) { element.unwrap_or(oid::TEXT) } else { row.result };
        Ok((arguments, result))
    }

    /// Returns the type for which the polymorphic parameters of a call stand.
    fn element_type(&self, row: &PgFunction, parameters: &[Oid], operands: &[Operand], at: u32) -> Result<Option<Oid>> {
        let is_open = |ty: &Oid| is_polymorphic(*ty) && *ty != oid::ANY;
        let given = operands.iter().zip(parameters).filter(|(_, parameter)| is_open(parameter));
        let given: Vec<&Operand> = given.map(|(operand, _)| operand).collect();
        if given.is_empty() {
            return Ok(None);
        }
        let is_compatible = parameters.iter().any(|ty| matches!(*ty, oid::ANYCOMPATIBLE | oid::ANYCOMPATIBLENONARRAY));
        if is_compatible {
            return common_type(&given).map(Some).map_err(|(left, right, at)| {
                let text = format!("function {} could not match types {} and {}", row.name, shown(left), shown(right));
                self.error(PgError::new(state::DATATYPE_MISMATCH, text), at)
            });
        }
        let mut known = given.iter().map(|operand| operand.oid()).filter(|ty| *ty != oid::UNKNOWN);
        let Some(first) = known.next() else {
            let text = "could not determine polymorphic type because input has type unknown";
            return self.fail(state::DATATYPE_MISMATCH, text, at);
        };
        if let Some(other) = known.find(|ty| *ty != first) {
            let text = "arguments declared \"anyelement\" are not all alike".to_owned();
            let detail = format!("{} versus {}", shown(first), shown(other));
            return Err(self.error(PgError::new(state::DATATYPE_MISMATCH, text).detail(detail), at));
        }
        Ok(Some(first))
    }

    /// Refuses an aggregate in a clause that has no groups yet.
    pub fn check_aggregate_place(&self, clause: Clause, at: u32) -> Result<()> {
        let within = match clause {
            Clause::SelectList | Clause::Having | Clause::OrderBy | Clause::DistinctOn => return Ok(()),
            Clause::WindowPartition | Clause::WindowOrder | Clause::WindowArgument => return Ok(()),
            Clause::AggregateArgument => {
                return self.fail(state::GROUPING_ERROR, "aggregate function calls cannot be nested", at);
            }
            clause => clause.in_words(),
        };
        self.fail(state::GROUPING_ERROR, format!("aggregate functions are not allowed in {within}"), at)
    }

    /// Refuses a window function in a clause that is evaluated before the windows.
    pub fn check_window_place(&self, clause: Clause, at: u32) -> Result<()> {
        let within = match clause {
            Clause::SelectList | Clause::OrderBy | Clause::DistinctOn => return Ok(()),
            Clause::AggregateArgument => {
                let text = "aggregate function calls cannot contain window function calls";
                return self.fail(state::GROUPING_ERROR, text, at);
            }
            Clause::WindowPartition | Clause::WindowOrder | Clause::WindowFrame => "window definitions",
            Clause::WindowArgument => {
                return self.fail(state::WINDOWING_ERROR, "window function calls cannot be nested", at);
            }
            clause => clause.in_words(),
        };
        self.fail(state::WINDOWING_ERROR, format!("window functions are not allowed in {within}"), at)
    }
}

impl Clause {
    /// Returns the clause as errors name it.
    pub fn in_words(self) -> &'static str {
        match self {
            Clause::From | Clause::FunctionInFrom => "functions in FROM",
            Clause::On => "JOIN conditions",
            Clause::Where => "WHERE",
            Clause::GroupBy => "GROUP BY",
            Clause::Having => "HAVING",
            Clause::SelectList => "SELECT",
            Clause::OrderBy => "ORDER BY",
            Clause::DistinctOn => "DISTINCT ON",
            Clause::Limit | Clause::Ties => "LIMIT",
            Clause::Offset => "OFFSET",
            Clause::Values | Clause::InsertValues => "VALUES",
            Clause::UpdateSource => "UPDATE",
            Clause::Returning => "RETURNING",
            Clause::WindowPartition => "window PARTITION BY",
            Clause::WindowOrder => "window ORDER BY",
            Clause::WindowFrame => "window ROWS",
            Clause::Filter => "FILTER",
            Clause::Check => "check constraints",
            Clause::CopyWhere => "COPY FROM WHERE conditions",
            Clause::Default => "DEFAULT expressions",
            Clause::Generated => "column generation expressions",
            Clause::AggregateArgument | Clause::WindowArgument => "arguments",
        }
    }
}

/// Returns the type that `name(argument)` casts to, where the name is that of a type.
fn cast_by_name(name: &str, source: Oid) -> Option<Oid> {
    let row = registry::by_name(name)?;
    if row.kind == registry::TypeKind::Pseudo {
        return None;
    }
    let is_cast = source == oid::UNKNOWN
        || source == row.oid
        || match cast_between(source, row.oid) {
            Some(cast) => cast.method != crate::functions::CastMethod::Function,
            None => {
                (category(row.oid) == 'S' || category(source) == 'S')
                    && can_coerce(&[source], &[row.oid], CastContext::Explicit)
            }
        };
    is_cast.then_some(row.oid)
}
