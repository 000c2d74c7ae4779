//! Coercion: which types become which others in the three contexts of casts, and the expression that does it.

use datum::Storage;
use query::nodes::context::EvalContext;
use query::nodes::expr::{Call, Expr, Extra};
use query::nodes::function::{Finish, Folding, Function, Run};
use query::types::Collation;

use crate::bind::name_site::NameSiteKind;
use crate::bind::project_set::reads_sets;
use crate::bind::record::is_record;
use crate::bind::resolve::{cast_between, function_by_oid};
use crate::bind::typing::{
    Operand, category, is_preferred, literal, oid_of, retyped, settled, shown, typmod_of_expr, unsupported,
};
use crate::bind::{Binder, polymorphic};
use crate::error::{PgError, Result, state};
use crate::functions::state::StateOf;
use crate::functions::{Body, CastContext, CastMethod, PgFunction};
use crate::types::assignment::{has_length_coercion, with_typmod};
use crate::types::oid::{self, Oid};
use crate::types::registry::{self, by_oid, column_type};
use crate::types::{array, io, user};
use crate::value::Value;

/// The way from one type to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pathway {
    /// A row of `pg_proc`.
    Function(Oid),
    Relabel,
    InOut,
    /// Each element of an array takes its own way.
    Elements,
}

/// Returns the way from one type to another in a context; `None` if there is none.
pub fn pathway(source: Oid, target: Oid, context: CastContext) -> Option<Pathway> {
    if source == target {
        return Some(Pathway::Relabel);
    }
    if target == oid::RECORD && user::is_composite(source) {
        return Some(Pathway::Relabel);
    }
    if let Some(cast) = cast_between(source, target) {
        return (cast.context <= context).then_some(match cast.method {
            CastMethod::Function => Pathway::Function(cast.function),
            CastMethod::InOut => Pathway::InOut,
            CastMethod::Binary => Pathway::Relabel,
        });
    }
    // int2vector and oidvector are made of arrays by no cast.
    if let (Some(from), Some(to)) = (registry::element_of(source), registry::element_of(target))
        && !array::is_vector(target)
        && pathway(from.oid, to.oid, context).is_some()
    {
        return Some(Pathway::Elements);
    }
    // What is not in the table goes through text: to strings by assignment, from strings if it is written.
    let is_string = |ty: Oid| category(ty) == 'S';
    let may = (context >= CastContext::Assignment && is_string(target))
        || (context >= CastContext::Explicit && is_string(source));
    let has_values = |ty: Oid| is_record(ty) || by_oid(ty).is_some_and(|row| row.kind.has_values());
    (may && has_values(source) && has_values(target)).then_some(Pathway::InOut)
}

/// Returns whether the type stands for any other in a signature.
pub fn is_polymorphic(ty: Oid) -> bool {
    ty == oid::ANY || polymorphic::is_polymorphic(ty)
}

/// Returns whether values of each input type become values of its target without a cast being written that the context does not allow.
pub fn can_coerce(inputs: &[Oid], targets: &[Oid], context: CastContext) -> bool {
    polymorphic::is_consistent(inputs, targets)
        && inputs.iter().zip(targets).all(|(input, target)| {
            input == target
                || is_polymorphic(*target)
                || *input == oid::UNKNOWN
                || (*input == oid::RECORD && user::is_composite(*target))
                || pathway(*input, *target, context).is_some()
        })
}

/// Returns the common type of expressions of these types at these places, by `select_common_type`. No type is a domain. `Err` has the two types that differ and the place of the second.
pub fn common_type(operands: &[(Oid, u32)]) -> std::result::Result<Oid, (Oid, Oid, u32)> {
    let mut chosen = oid::UNKNOWN;
    for (ty, at) in operands.iter().copied() {
        if ty == oid::UNKNOWN || ty == chosen {
            continue;
        }
        let becomes = |from: Oid, to: Oid| can_coerce(&[from], &[to], CastContext::Implicit);
        if chosen == oid::UNKNOWN {
            chosen = ty;
        } else if category(ty) != category(chosen) {
            return Err((chosen, ty, at));
        } else if !is_preferred(chosen) && becomes(chosen, ty) && !becomes(ty, chosen) {
            chosen = ty;
        }
    }
    Ok(if chosen == oid::UNKNOWN { oid::TEXT } else { chosen })
}

/// A conversion between types whose values differ in form though PostgreSQL's do not: signed and unsigned integers.
pub static REFORM: Function = Function {
    folding: Folding::Coercion,
    typed: true,
    finish: Finish::Unchanged,
    ..Function::new(&["reform"], Run::Strict(reform))
};

fn reform(call: &Call, values: &[Value], _: &mut EvalContext) -> datum::Result<Value> {
    Ok(match (&values[0], call.ty.storage) {
        (Value::Int(number), Storage::Int { signed: false, .. }) => Value::UInt(u64::from(*number as u32)),
        (Value::UInt(number), Storage::Int { signed: true, .. }) => Value::Int(i64::from(*number as u32 as i32)),
        (other, _) => other.clone(),
    })
}

/// A cast through text: the output of the argument's type is read as input of the call's.
static IN_OUT: Function = Function {
    folding: Folding::CheckedCoercion,
    typed: true,
    finish: Finish::Unchanged,
    ..Function::new(&["through text"], Run::Strict(in_out))
};

fn in_out(call: &Call, values: &[Value], ctx: &mut EvalContext) -> datum::Result<Value> {
    let mut text = Vec::new();
    let state = &ctx.state().io;
    io::output(&values[0], &settled(&call.arguments[0].ty()), state, &mut text)?;
    Ok(io::input(&call.ty, &String::from_utf8_lossy(&text), state)?)
}

/// The length coercion of a type: the modifier is that of the call's type.
static LENGTH: Function = Function {
    folding: Folding::CheckedCoercion,
    typed: true,
    finish: Finish::Unchanged,
    ..Function::new(&["length coercion"], Run::Strict(length))
};

fn length(call: &Call, values: &[Value], _: &mut EvalContext) -> datum::Result<Value> {
    let (ty, typmod) = (registry::oid_of(&call.ty), registry::typmod_of(&call.ty));
    Ok(with_typmod(values[0].clone(), ty, typmod, call.extra.word[0] == 1)?)
}

/// Returns a call of a function of the dialect's own.
pub fn call_of(function: &'static Function, arguments: Vec<Expr>, ty: Oid, typmod: i32) -> Expr {
    let ty = column_type(ty, typmod, true);
    let extra = Extra::default();
    Expr::Call(Box::new(Call { function, arguments, ty, collation: Collation::Binary, extra }))
}

/// Returns a call of a function whose arguments have the types of its parameters.
pub fn call(row: &'static PgFunction, arguments: Vec<Expr>, ty: Oid, typmod: i32) -> Result<Expr> {
    match row.body {
        Body::Scalar(function) => Ok(call_of(function, arguments, ty, typmod)),
        Body::Aggregate(_) | Body::OrderedSet(_) | Body::Window | Body::Set(_) => {
            Err(PgError::new(state::WRONG_OBJECT_TYPE, format!("{} is no plain function", row.name)))
        }
    }
}

impl Binder<'_> {
    /// Coerces to a type that `can_coerce` has allowed.
    pub fn coerce(&mut self, operand: Operand, target: Oid, context: CastContext) -> Result<Expr> {
        let source = operand.oid();
        if source == target || is_polymorphic(target) {
            return Ok(operand.expr);
        }
        if user::is_user_type(source) || user::is_user_type(target) {
            return match self.coerce_to(operand, target, -1, context)? {
                Some(expr) => Ok(expr),
                None => {
                    let text = format!("cannot cast type {} to {}", shown(source), shown(target));
                    Err(PgError::new(state::CANNOT_COERCE, text))
                }
            };
        }
        if source == oid::UNKNOWN {
            return self.coerce_unknown(operand, target, -1);
        }
        match pathway(source, target, context) {
            Some(way) => self.follow(way, operand, target, -1, context),
            None => Err(self.cannot_cast(&operand, source, target)),
        }
    }

    fn cannot_cast(&self, operand: &Operand, source: Oid, target: Oid) -> PgError {
        let text = format!("cannot cast type {} to {}", shown(source), shown(target));
        self.error(PgError::new(state::CANNOT_COERCE, text), operand.at)
    }

    fn follow(
        &mut self,
        way: Pathway,
        operand: Operand,
        target: Oid,
        typmod: i32,
        context: CastContext,
    ) -> Result<Expr> {
        let Operand { expr, at: _ } = operand;
        match way {
            Pathway::Relabel => Ok(relabeled(expr, target)),
            Pathway::InOut => {
                let cast = self.folded(call_of(&IN_OUT, vec![expr], target, -1))?;
                self.checked_parts(cast)
            }
            Pathway::Elements => self.coerce_elements(expr, target, (typmod, context)),
            Pathway::Function(function) => {
                let row = function_by_oid(function).ok_or_else(|| {
                    PgError::new(state::FEATURE_NOT_SUPPORTED, format!("a cast to {} is not supported", shown(target)))
                })?;
                let arguments = with_modifier(row, expr, typmod, context);
                // A function that takes a modifier has applied it.
                let typmod = if arguments.len() > 1 { typmod } else { -1 };
                let cast = call(row, arguments, target, typmod)?;
                self.folded(cast)
            }
        }
    }

    /// Gives a literal or a parameter of unknown type its type.
    pub(super) fn coerce_unknown(&mut self, operand: Operand, target: Oid, typmod: i32) -> Result<Expr> {
        let Operand { expr, at } = operand;
        match expr {
            Expr::Literal(Value::Text(text), _) => {
                if target == oid::UNKNOWN {
                    return Ok(Expr::Literal(Value::Text(text), column_type(target, -1, false)));
                }
                self.note_moving_literal(&text, target);
                let ty = column_type(target, typmod, false);
                self.user_types.extend(user::object_of(target));
                let value = io::input(&ty, &text, &self.ctx.state().io).map_err(|error| self.error(error, at))?;
                if let (oid::REGCLASS, Value::UInt(relation)) = (target, &value) {
                    self.note_name(at, NameSiteKind::Constant(*relation as u32));
                }
                self.checked_literal(Expr::Literal(value, ty), at)
            }
            Expr::Literal(value, _) => Ok(literal(value, target)),
            Expr::Parameter(number, _) => {
                let known = self.parameters.get(number).copied().unwrap_or(0);
                if known == 0 || known == oid::UNKNOWN {
                    self.set_parameter(number, target);
                } else if known != target {
                    let text = format!("inconsistent types deduced for parameter ${}", number + 1);
                    let detail = format!("{} versus {}", shown(known), shown(target));
                    return Err(self.error(PgError::new(state::AMBIGUOUS_PARAMETER, text).detail(detail), at));
                }
                self.checked_parts(Expr::Parameter(number, column_type(target, -1, true)))
            }
            // The rest is a text in fact, of a null row or a query that is still open.
            other if target == oid::TEXT => Ok(retyped(other, oid::TEXT, -1)),
            other => {
                let text = Operand { expr: retyped(other, oid::TEXT, -1), at };
                self.follow(Pathway::InOut, text, target, -1, CastContext::Explicit)
            }
        }
    }

    /// Coerces to a type with its modifier. `None`: there is no such cast in the context.
    pub fn coerce_to(
        &mut self,
        operand: Operand,
        target: Oid,
        typmod: i32,
        context: CastContext,
    ) -> Result<Option<Expr>> {
        if user::is_domain(target) {
            return self.coerce_to_domain(operand, target, context);
        }
        let at = operand.at;
        let operand = self.smashed(operand)?;
        if user::is_composite(target) {
            return self.coerce_to_composite(operand, target, context);
        }
        let source = operand.oid();
        let (flat_source, flat_target) = (self.flat(source)?, self.flat(target)?);
        if !can_coerce(&[flat_source], &[flat_target], context) {
            return Ok(None);
        }
        if source != target && (flat_source != source || flat_target != target) {
            return self.coerce_arrays_of_domains(operand, (target, flat_target), typmod, context).map(Some);
        }
        let expr = match source {
            // Only an interval's input knows the fields of its modifier.
            oid::UNKNOWN if target == oid::INTERVAL => self.coerce_unknown(operand, target, typmod)?,
            oid::UNKNOWN => self.coerce_unknown(operand, target, -1)?,
            source if source == target => operand.expr,
            source => match pathway(source, target, context) {
                Some(way) => self.follow(way, operand, target, typmod, context)?,
                None => return Ok(None),
            },
        };
        self.with_typmod(Operand { expr, at }, typmod, context).map(Some)
    }

    /// Reads the text of a string as a value of another type. `None`: only a written cast does.
    pub fn coerce_by_text(&mut self, operand: Operand, target: Oid, context: CastContext) -> Result<Option<Expr>> {
        match pathway(operand.oid(), target, context) {
            Some(way) => self.follow(way, operand, target, -1, context).map(Some),
            None => Ok(None),
        }
    }

    /// Coerces to or from an array whose elements are a domain's.
    #[inline(never)]
    fn coerce_arrays_of_domains(
        &mut self,
        operand: Operand,
        (target, flat): (Oid, Oid),
        typmod: i32,
        context: CastContext,
    ) -> Result<Expr> {
        let at = operand.at;
        let is_literal = matches!(operand.expr, Expr::Literal(..));
        let array = match operand.is_unknown() {
            true => self.coerce_unknown(operand, flat, typmod)?,
            false if registry::is_array(operand.oid()) => operand.expr,
            // A string is read as an array of the base type.
            false => match self.coerce_to(operand, flat, typmod, context)? {
                Some(array) => array,
                None => return Err(unsupported(format!("a cast to {}", shown(target)))),
            },
        };
        if !registry::is_array(target) {
            let flat = self.flat(oid_of(&array))?;
            let array = self.coerce_elements(array, flat, (-1, context))?;
            return self.coerce(Operand { expr: array, at }, target, context);
        }
        self.user_types.extend(user::object_of(target));
        let bound = self.coerce_elements(array, target, (typmod, context));
        if is_literal { bound.map_err(|error| self.error(error, at)) } else { bound }
    }

    /// Brings a value to the length of its type's modifier.
    fn with_typmod(&mut self, operand: Operand, typmod: i32, context: CastContext) -> Result<Expr> {
        let Operand { expr, at: _ } = operand;
        let ty = oid_of(&expr);
        if typmod < 0 || typmod_of_expr(&expr) == typmod {
            return Ok(expr);
        }
        if !has_length_coercion(ty) {
            return Ok(retyped(expr, ty, typmod));
        }
        let mut cut = call_of(&LENGTH, vec![expr], ty, typmod);
        if let Expr::Call(call) = &mut cut {
            call.extra.word[0] = u8::from(context == CastContext::Explicit);
        }
        self.folded(cut)
    }

    /// Coerces the operands to the type that they have in common.
    pub fn coerce_to_common(&mut self, operands: Vec<Operand>, target: Oid, what: &str) -> Result<Vec<Expr>> {
        let mut exprs = Vec::with_capacity(operands.len());
        for operand in operands {
            let (source, at) = (operand.oid(), operand.at);
            let (from, to) = (self.flat(source)?, self.flat(target)?);
            if source != target && !can_coerce(&[from], &[to], CastContext::Implicit) {
                let text = format!("{what} could not convert type {} to {}", shown(source), shown(target));
                return Err(self.error(PgError::new(state::CANNOT_COERCE, text), at));
            }
            exprs.push(self.coerce(operand, target, CastContext::Implicit)?);
        }
        Ok(exprs)
    }

    /// Returns the common type of the operands, or the error that names the clause.
    pub fn common_type(&self, operands: &[&Operand], what: &str) -> Result<Oid> {
        self.common_of(operands)?.map_err(|(left, right, at)| {
            let text = format!("{what} types {} and {} cannot be matched", shown(left), shown(right));
            self.error(PgError::new(state::DATATYPE_MISMATCH, text), at)
        })
    }

    /// Coerces a condition. `clause` is named in the error.
    pub fn coerce_to_boolean(&mut self, operand: Operand, clause: &str) -> Result<Expr> {
        let (source, at) = (operand.oid(), operand.at);
        if source == oid::BOOL && reads_sets(&operand.expr) {
            return self.fail(state::DATATYPE_MISMATCH, format!("argument of {clause} must not return a set"), at);
        }
        if source == oid::BOOL {
            return Ok(operand.expr);
        }
        match self.coerce_to(operand, oid::BOOL, -1, CastContext::Assignment)? {
            Some(expr) => Ok(expr),
            None => {
                let text = format!("argument of {clause} must be type boolean, not type {}", shown(source));
                Err(self.error(PgError::new(state::DATATYPE_MISMATCH, text), at))
            }
        }
    }

    /// Gives an expression of unknown type the type text.
    pub fn settle(&mut self, operand: Operand) -> Result<Expr> {
        if operand.is_unknown() { self.coerce_unknown(operand, oid::TEXT, -1) } else { Ok(operand.expr) }
    }

    /// Evaluates a conversion of a literal at once, if it depends on nothing else.
    pub fn folded(&mut self, expr: Expr) -> Result<Expr> {
        let Expr::Call(node) = &expr else { return Ok(expr) };
        let is_literal = |expr: &Expr| matches!(expr, Expr::Literal(..));
        let is_fixed = !node.function.volatile && node.function.is_coercion();
        if !is_fixed || !node.arguments.iter().all(is_literal) {
            return Ok(expr);
        }
        let value = expr.eval(&[], self.ctx).map_err(PgError::from)?;
        let ty = node.ty.clone().with_nullable(value.is_null());
        Ok(Expr::Literal(value, ty))
    }

    /// Marks the plan as valid for this run only where a literal's value depends on the clock, or on the objects that there are.
    fn note_moving_literal(&mut self, text: &str, target: Oid) {
        let is_of_time = matches!(target, oid::DATE | oid::TIMESTAMP | oid::TIMESTAMPTZ | oid::TIME | oid::TIMETZ);
        let moves = ["now", "today", "tomorrow", "yesterday"];
        let text = text.to_ascii_lowercase();
        self.volatile |= is_of_time && moves.iter().any(|word| text.contains(word));
        // The object of a name may be dropped, and another made.
        let is_name = crate::types::reg::kind(target).is_some() && !text.bytes().all(|byte| byte.is_ascii_digit());
        self.volatile |= is_name;
    }
}

/// Returns the arguments of a cast's function: the value, and the modifier and whether the cast is explicit, as far as it takes them.
fn with_modifier(row: &PgFunction, expr: Expr, typmod: i32, context: CastContext) -> Vec<Expr> {
    let mut arguments = vec![expr];
    if row.arguments.len() > 1 {
        arguments.push(literal(Value::Int(i64::from(typmod)), oid::INT4));
    }
    if row.arguments.len() > 2 {
        arguments.push(literal(Value::from(context == CastContext::Explicit), oid::BOOL));
    }
    arguments
}

/// Returns the expression as of a type that PostgreSQL stores in the same form.
fn relabeled(expr: Expr, target: Oid) -> Expr {
    // A row of a type is a record as it is.
    if target == oid::RECORD && user::is_composite(oid_of(&expr)) {
        return expr;
    }
    let has_same_form = match (by_oid(oid_of(&expr)), by_oid(target)) {
        (Some(from), Some(to)) => from.storage == to.storage || !matches!(to.storage, Storage::Int { .. }),
        _ => true,
    };
    // The function of a typed call looks at its type: the length of a varchar is cut by it.
    let is_plain = expr.carried().is_some() && !matches!(&expr, Expr::Call(call) if call.function.typed);
    match has_same_form && is_plain {
        true => retyped(expr, target, -1),
        false => call_of(&REFORM, vec![expr], target, -1),
    }
}
