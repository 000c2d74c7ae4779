//! Calls of functions by name.

use query::nodes::expr::Expr;
use syntax::postgres::tree::{AnyName, Argument, FuncCall};

use crate::bind::coerce::{call, call_of, can_coerce};
use crate::bind::resolve::{
    Notation, Resolution, Signature, cast_between, function, function_as, functions_named, places,
};
use crate::bind::scope::Clause;
use crate::bind::typing::{Operand, category, shown, shown_list, unsupported};
use crate::bind::walk::is_aggregate;
use crate::bind::{Binder, polymorphic};
use crate::define::names::schema_in;
use crate::error::{PgError, Result, state};
use crate::functions::array::quantified::SPREAD;
use crate::functions::{self, Body, CastContext, PgFunction};
use crate::types::oid::{self, Oid};
use crate::types::record::is_row;
use crate::types::registry;

/// The function that tells the type of any argument.
const PG_TYPEOF: Oid = 1619;

/// The most arguments of a call.
const ARGUMENTS_MAX: usize = 100;

#[cold]
fn too_many_arguments() -> String {
    format!("cannot pass more than {ARGUMENTS_MAX} arguments to a function")
}

impl Binder<'_> {
    /// Binds a call as it is written: of a function, an aggregate or a window function.
    pub fn function(&mut self, node: &FuncCall, at: u32) -> Result<Operand> {
        if node.arguments.len() > ARGUMENTS_MAX {
            return self.fail(state::TOO_MANY_ARGUMENTS, too_many_arguments(), at);
        }
        if let Some(clauses) = &node.json {
            return self.json_aggregate(node, clauses, at);
        }
        self.function_or_aggregate(node, at)
    }

    /// Binds the call without the conversion of what an SQL/JSON aggregate returns.
    pub(super) fn function_or_aggregate(&mut self, node: &FuncCall, at: u32) -> Result<Operand> {
        if node.within_group {
            return self.aggregate(node, at);
        }
        if node.over.is_some() && !node.within_group {
            return self.window_function(node, at);
        }
        if self.is_system(&node.name) && is_aggregate(node) && !node.within_group {
            return self.aggregate(node, at);
        }
        self.check_plain(node, at)?;
        let mut operands = Vec::with_capacity(node.arguments.len());
        for Argument { name: _, value } in &node.arguments {
            operands.push(self.expr(value)?);
        }
        self.call_of_operands(node, operands, at)
    }

    /// Refuses clauses that only aggregates have.
    #[inline(never)]
    fn check_plain(&self, node: &FuncCall, at: u32) -> Result<()> {
        let FuncCall {
            name,
            arguments: _,
            variadic: _,
            star,
            distinct,
            order_by,
            within_group: _,
            filter,
            over: _,
            sql_syntax: _,
            json: _,
        } = node;
        let bare = name.last();
        if *star && functions_named(bare).iter().all(|row| !row.arguments.is_empty()) {
            return Err(self.no_function(name, &[], at));
        }
        let what = match () {
            () if *star => format!("{bare}(*) specified"),
            () if *distinct => "DISTINCT specified".to_owned(),
            () if !order_by.is_empty() => "ORDER BY specified".to_owned(),
            () if filter.is_some() => "FILTER specified".to_owned(),
            () => return Ok(()),
        };
        let text = format!("{what}, but {bare} is not an aggregate function");
        Err(self.error(PgError::new(state::WRONG_OBJECT_TYPE, text), at))
    }

    /// Returns the call over arguments that are bound. Their own calls nest here no deeper.
    #[inline(never)]
    fn call_of_operands(&mut self, node: &FuncCall, operands: Vec<Operand>, at: u32) -> Result<Operand> {
        let names = self.argument_names(&node.arguments)?;
        if !names.is_empty() || node.variadic {
            let notation = Notation { names: &names, is_variadic: node.variadic };
            return self.call_in_notation(node, operands, notation, at);
        }
        if !self.is_system(&node.name) {
            self.check_schema(&node.name, at)?;
            return Err(self.no_function(&node.name, &operands, at));
        }
        self.call_of_name(&node.name, operands, at)
    }

    /// Refuses a name in a schema that does not exist.
    fn check_schema(&self, name: &AnyName, at: u32) -> Result<()> {
        let Some(schema) = name.parts.len().checked_sub(2).map(|nth| &name.parts[nth]) else { return Ok(()) };
        let exists = schema_in(&self.environment.snapshot, self.environment.database, schema).is_some();
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

    pub(super) fn call_of_name(&mut self, name: &AnyName, operands: Vec<Operand>, at: u32) -> Result<Operand> {
        let types = self.input_types(&operands)?;
        let found = function(name.last(), &types);
        let is_exact = matches!(&found, Resolution::One((_, parameters)) if *parameters == types);
        if let ([operand], false) = (&operands[..], is_exact)
            && let Some(target) = cast_by_name(name.last(), types[0])
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
        if matches!(row.body, Body::OrderedSet(_)) {
            let text = format!("WITHIN GROUP is required for ordered-set aggregate {}", row.name);
            return self.fail(state::WRONG_OBJECT_TYPE, text, at);
        }
        if matches!(row.body, Body::Window) {
            let text = format!("window function {} requires an OVER clause", row.name);
            return self.fail(state::WRONG_OBJECT_TYPE, text, at);
        }
        let places: Vec<usize> = (0..operands.len()).collect();
        let (parameters, operands) = self.with_defaults((row, parameters), operands, &places)?;
        let (mut arguments, result) = self.arguments_of((row, parameters), operands)?;
        if !matches!(row.variadic, 0 | oid::ANY) {
            let elements = arguments.split_off(row.arguments.len() - 1);
            arguments.push(self.array_of_elements(elements, row.variadic)?);
        }
        if let Body::Set(body) = row.body {
            return self.set_returning(row, (body, result), arguments, at);
        }
        let typmod = self.row_modifier(&arguments, result);
        // A function that makes rows of documents compares the columns of a column definition list with those of its row.
        let takes_columns = result == oid::RECORD && (typmod < 0 || row.name.starts_with("json"));
        let defined = match takes_columns && self.scope().clause == Clause::FunctionInFrom {
            true => self.scope().defined_columns.take(),
            false => None,
        };
        let typmod = defined.map_or(typmod, |defined| self.known_row_type(defined));
        let mut expr = call(row, arguments, result, typmod)?;
        if let Expr::Call(call) = &mut expr {
            call.extra.record = self.row_type_of(&call.ty);
        }
        // Those make rows of documents.
        if result == oid::RECORD || (is_row(result) && row.name.starts_with("json")) {
            expr = self.checked_parts(expr)?;
        }
        Ok(Operand { expr, at })
    }

    /// Returns the names of the last arguments of a call.
    #[inline(never)]
    fn argument_names<'c>(&self, arguments: &'c [Argument]) -> Result<Vec<&'c str>> {
        let mut names: Vec<&str> = Vec::new();
        for Argument { name, value } in arguments {
            match name {
                Some(name) if names.contains(&&*name.value) => {
                    let text = format!("argument name \"{}\" used more than once", name.value);
                    return self.fail(state::SYNTAX_ERROR, text, name.at.0);
                }
                Some(name) => names.push(&name.value),
                None if !names.is_empty() => {
                    let text = "positional argument cannot follow named argument";
                    return self.fail(state::SYNTAX_ERROR, text, value.span.start);
                }
                None => {}
            }
        }
        Ok(names)
    }

    /// Binds a call with named arguments, or with an array in the place of variadic ones.
    #[inline(never)]
    fn call_in_notation(
        &mut self,
        node: &FuncCall,
        mut operands: Vec<Operand>,
        notation: Notation<'_>,
        at: u32,
    ) -> Result<Operand> {
        let types = self.input_types(&operands)?;
        let found = match self.is_system(&node.name) {
            true => function_as(node.name.last(), &types, notation),
            false => Resolution::None,
        };
        let plain = types.len() - notation.names.len();
        let shown = |nth: usize, ty: &Oid| match nth.checked_sub(plain).and_then(|nth| notation.names.get(nth)) {
            Some(name) => format!("{name} => {}", shown(*ty)),
            None => shown(*ty),
        };
        let list: Vec<String> = types.iter().enumerate().map(|(nth, ty)| shown(nth, ty)).collect();
        let called = format!("function {}({})", node.name.dotted(), list.join(", "));
        let (row, parameters) = match found {
            Resolution::One(signature) => signature,
            Resolution::None => {
                let hint =
                    "No function matches the given name and argument types. You might need to add explicit type casts.";
                let error = PgError::new(state::UNDEFINED_FUNCTION, format!("{called} does not exist"));
                return Err(self.error(error.hint(hint), at));
            }
            Resolution::Many => {
                let hint = "Could not choose a best candidate function. You might need to add explicit type casts.";
                let error = PgError::new(state::AMBIGUOUS_FUNCTION, format!("{called} is not unique"));
                return Err(self.error(error.hint(hint), at));
            }
        };
        if !matches!(row.body, Body::Scalar(_)) {
            return Err(self.error(unsupported("this notation for a function that is no plain one"), at));
        }
        if notation.is_variadic {
            let last = operands.len() - 1;
            if row.variadic == oid::ANY && !registry::is_array(types[last]) {
                let place = operands[last].at;
                return self.fail(state::DATATYPE_MISMATCH, "VARIADIC argument must be an array", place);
            }
            let (arguments, result) = self.arguments_of((row, parameters), operands)?;
            let expr = match row.variadic {
                oid::ANY => self.spread(row, arguments, result)?,
                _ => call(row, arguments, result, -1)?,
            };
            return Ok(Operand { expr, at });
        }
        let places = places(row, operands.len(), notation.names).unwrap_or_default();
        let (parameters, ordered) = self.with_defaults((row, parameters), std::mem::take(&mut operands), &places)?;
        let (arguments, result) = self.arguments_of((row, parameters), ordered)?;
        Ok(Operand { expr: call(row, arguments, result, -1)?, at })
    }

    /// Returns a call of a variadic function with the elements of an array.
    #[inline(never)]
    fn spread(&mut self, row: &'static PgFunction, arguments: Vec<Expr>, result: Oid) -> Result<Expr> {
        let fixed = arguments.len() - 1;
        let places = arguments[..fixed].iter().enumerate().map(|(nth, expr)| Expr::Column(nth, expr.ty())).collect();
        let each = call(row, places, result, -1)?;
        let mut spread = call_of(&SPREAD, arguments, result, -1);
        if let Expr::Call(call) = &mut spread {
            call.extra.each = Some(std::sync::Arc::new(each));
        }
        Ok(spread)
    }

    /// Puts arguments at the places of their parameters and defaults in the others.
    #[inline(never)]
    fn with_defaults(
        &mut self,
        (row, parameters): Signature,
        operands: Vec<Operand>,
        places: &[usize],
    ) -> Result<(Vec<Oid>, Vec<Operand>)> {
        let count = row.arguments.len();
        let is_in_order = places.iter().enumerate().all(|(nth, place)| nth == *place);
        if row.variadic != 0 || (operands.len() == count && is_in_order) {
            return Ok((parameters, operands));
        }
        let mut ordered: Vec<Option<Operand>> = Vec::new();
        ordered.resize(count, None);
        for (operand, place) in operands.into_iter().zip(places) {
            ordered[*place] = Some(operand);
        }
        let defaults = functions::parameters::parameters(row.oid).map_or(&[][..], |known| known.defaults);
        let first = count - defaults.len();
        let mut whole = Vec::with_capacity(count);
        for (place, operand) in ordered.into_iter().enumerate() {
            let default = place.checked_sub(first).and_then(|nth| defaults.get(nth));
            whole.push(match (operand, default) {
                (Some(operand), _) => operand,
                (None, Some(default)) => {
                    let node = syntax::postgres::parse_expression(default);
                    let node = node.map_err(|_| unsupported(format!("the default {default}")))?;
                    self.expr(&node)?
                }
                (None, None) => return Err(unsupported(format!("a call of {} without this argument", row.name))),
            });
        }
        Ok((row.arguments.to_vec(), whole))
    }

    pub fn no_function(&self, name: &AnyName, operands: &[Operand], at: u32) -> PgError {
        let types: Vec<Oid> = operands.iter().map(Operand::oid).collect();
        let text = format!("function {}({}) does not exist", name.dotted(), shown_list(&types));
        let hint = "No function matches the given name and argument types. You might need to add explicit type casts.";
        self.error(PgError::new(state::UNDEFINED_FUNCTION, text).hint(hint), at)
    }

    /// Resolves the function of a call that is an aggregate or a window function.
    pub fn signature_of(&mut self, node: &FuncCall, operands: &[Operand], at: u32) -> Result<Signature> {
        let types = self.input_types(operands)?;
        let name = match &node.json {
            Some(clauses) => self.json_aggregate_named(clauses, &types)?,
            None => node.name.last(),
        };
        match function(name, &types) {
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
    #[inline(never)]
    pub fn arguments_of(&mut self, (row, parameters): Signature, operands: Vec<Operand>) -> Result<(Vec<Expr>, Oid)> {
        let signature = (row, parameters);
        let inputs = self.polymorphic_inputs(&signature, &operands)?;
        let (types, result) = polymorphic::settle(&signature, &inputs)?;
        let mut arguments = Vec::with_capacity(operands.len());
        for (operand, target) in operands.into_iter().zip(types) {
            arguments.push(match target {
                oid::ANY if row.oid == PG_TYPEOF => self.settle(operand)?,
                oid::ANY => {
                    let operand = self.smashed(operand)?;
                    self.settle(operand)?
                }
                target => self.coerce(operand, target, CastContext::Implicit)?,
            });
        }
        Ok((arguments, result))
    }

    /// Returns the types of arguments, by which functions are found.
    pub(super) fn input_types(&self, operands: &[Operand]) -> Result<Vec<Oid>> {
        operands.iter().map(|operand| self.flat(operand.oid())).collect()
    }

    /// Returns the types of arguments for polymorphic parameters. A domain stays one where the result is of its type, unless an array must fit.
    fn polymorphic_inputs(&self, (row, declared): &Signature, operands: &[Operand]) -> Result<Vec<Oid>> {
        let keeps = polymorphic::is_polymorphic(row.result) && !declared.contains(&oid::ANYARRAY);
        let pairs = operands.iter().zip(declared);
        let input = |(operand, declared): (&Operand, &Oid)| match *declared {
            oid::ANYELEMENT | oid::ANYNONARRAY if keeps => Ok(operand.oid()),
            _ => self.flat(operand.oid()),
        };
        pairs.map(input).collect()
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
            Clause::IndexExpression => "index expressions",
            Clause::IndexPredicate => "index predicates",
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
