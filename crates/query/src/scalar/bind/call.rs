//! Function calls, and the notations that are calls in disguise: EXTRACT, SUBSTRING ... FROM, TRIM, POSITION.

use sqlparser::ast::{self, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments};

use super::Binder;
use super::constant::{Place, beside};
use crate::error::{self, Result, SqlError};
use crate::scalar::aggregate::Aggregate;
use crate::scalar::expr::{Call, Expr, Extra, TrimSide};
use crate::scalar::functions::TIMESTAMP_SEQUENCE;
use crate::scalar::functions::{self, Function, Returns};
use crate::scalar::temporal::Unit;
use crate::types::{Collation, Type};
use crate::value::Value;

impl Binder<'_> {
    pub(super) fn call(&mut self, node: &ast::Expr) -> Result<Expr> {
        use ast::Expr as Ast;
        match node {
            Ast::Function(function) => self.function(function),
            Ast::Extract { field, expr, .. } => {
                let unit = unit(&field.to_string())?;
                let inner = self.bind(expr)?;
                self.call_with_unit("extract", vec![inner], unit)
            }
            Ast::Ceil { expr, field: ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime) } => {
                let inner = self.bind(expr)?;
                self.call_named("ceiling", vec![inner])
            }
            Ast::Floor { expr, field: ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime) } => {
                let inner = self.bind(expr)?;
                self.call_named("floor", vec![inner])
            }
            Ast::Position { expr, r#in } => {
                let arguments = vec![self.bind(expr)?, self.bind(r#in)?];
                self.call_named("locate", arguments)
            }
            Ast::Substring { expr, substring_from, substring_for, .. } => {
                let mut arguments = vec![self.bind(expr)?];
                for part in [substring_from, substring_for].into_iter().flatten() {
                    arguments.push(self.bind(part)?);
                }
                self.call_named("substring", arguments)
            }
            Ast::Trim { expr, trim_where, trim_what, trim_characters: None } => {
                let mut arguments = vec![self.bind(expr)?];
                if let Some(what) = trim_what {
                    arguments.push(self.bind(what)?);
                }
                let side = match trim_where {
                    None | Some(ast::TrimWhereField::Both) => TrimSide::Both,
                    Some(ast::TrimWhereField::Leading) => TrimSide::Leading,
                    Some(ast::TrimWhereField::Trailing) => TrimSide::Trailing,
                };
                self.make("trim", arguments, Extra::Trim(side))
            }
            Ast::MemberOf(member) => {
                let arguments = vec![self.bind(&member.value)?, self.bind(&member.array)?];
                self.call_named("member of", arguments)
            }
            other => Err(SqlError::unsupported(other)),
        }
    }

    pub(super) fn call_named(&mut self, name: &str, arguments: Vec<Expr>) -> Result<Expr> {
        self.make(name, arguments, Extra::None)
    }

    pub(super) fn call_with_unit(&mut self, name: &str, arguments: Vec<Expr>, unit: Unit) -> Result<Expr> {
        self.make(name, arguments, Extra::Unit(unit))
    }

    fn make(&mut self, name: &str, arguments: Vec<Expr>, extra: Extra) -> Result<Expr> {
        let function = functions::find(name).ok_or_else(|| unknown(name))?;
        self.finish(function, arguments, extra)
    }

    fn finish(&mut self, function: &'static Function, mut arguments: Vec<Expr>, extra: Extra) -> Result<Expr> {
        function.check(arguments.len())?;
        if function.name() == "char" {
            arguments = arguments.into_iter().map(super::literal::hex_as_number).collect();
        }
        if function.name() == "if" {
            arguments[0] = super::chooser(arguments[0].clone());
        }
        if function.name() == "nullif"
            && let [value, other] = &mut arguments[..]
        {
            *other = beside(other.clone(), value, Place::Side, self.settings);
        }
        let mut ty = function.result_type(&arguments, self.settings)?;
        match extra {
            Extra::Scale(scale) if ty.kind.is_temporal() => ty.scale = scale,
            Extra::Unit(unit) if matches!(function.returns, Returns::Custom(_)) => {
                ty = functions::type_with_unit(function, &arguments, unit, ty);
            }
            _ => {}
        }
        // One of them is bytes, so all are.
        if ty.kind.is_bytes() && !matches!(function.returns, Returns::Bytes(_)) {
            arguments = arguments.into_iter().map(super::as_sent).collect();
        }
        let strings: Vec<&Expr> = arguments.iter().filter(|argument| argument.ty().is_string()).collect();
        let collation = match strings.is_empty() {
            true => self.settings.collation,
            // A function that does not compare does not mind what it is given.
            false => super::merge_collations(&strings, function.name(), self.settings).unwrap_or(Collation::Binary),
        };
        Ok(Expr::Call(Box::new(Call { function, arguments, ty, collation, extra })))
    }

    fn function(&mut self, function: &ast::Function) -> Result<Expr> {
        let name = plain_name(&function.name)?;
        if function.over.is_some() || function.filter.is_some() || !function.within_group.is_empty() {
            return Err(SqlError::unsupported(format!("window function {name}")));
        }
        if Aggregate::kind(&name).is_some() && name != "any_value" {
            return Err(error::INVALID_GROUP_FUNC_USE.bare());
        }
        let row = functions::find(&name).ok_or_else(|| unknown(&name))?;
        let nodes = argument_nodes(&function.args)?;
        match (row.name(), &nodes[..]) {
            ("date_add" | "date_sub", [date, ast::Expr::Interval(interval)]) => {
                let date = self.bind(date)?;
                let (number, unit) = self.interval(interval)?;
                self.finish(row, vec![date, number], Extra::Unit(unit))
            }
            ("date_add" | "date_sub", [date, days]) => {
                let arguments = vec![self.bind(date)?, self.bind(days)?];
                self.finish(row, arguments, Extra::Unit(Unit::Day))
            }
            ("timestampdiff" | "timestampadd", [name, first, second]) => {
                let unit = unit(&name.to_string())?;
                let arguments = vec![self.bind(first)?, self.bind(second)?];
                self.finish(row, arguments, Extra::Unit(unit))
            }
            ("get_format", [ast::Expr::Identifier(what), region]) if is_kind_of_format(what) => {
                let (what, region) = (what.value.to_ascii_lowercase(), self.bind(region)?);
                // A format that is known has its say in what STR_TO_DATE gives.
                if let Expr::Literal(Value::Text(known), _) = &region
                    && let Some(format) = functions::named_format(&what, known)
                {
                    return Ok(Expr::Literal(Value::text(format), super::string_type(17, self.settings.collation)));
                }
                let what = Expr::Literal(Value::text(what), Type::text(9, Collation::Binary));
                self.finish(row, vec![what, region], Extra::None)
            }
            ("nextval", [name]) => {
                let known = TIMESTAMP_SEQUENCE.map(str::to_owned);
                let parts: Vec<String> = match name {
                    ast::Expr::CompoundIdentifier(parts) => {
                        parts.iter().map(|part| part.value.to_lowercase()).collect()
                    }
                    _ => Vec::new(),
                };
                if parts != known {
                    return Err(SqlError::unsupported(format!("NEXTVAL of another sequence than {}", known.join("."))));
                }
                let name = Expr::Literal(Value::text(known.join(".")), Type::text(64, Collation::Binary));
                self.finish(row, vec![name], Extra::None)
            }
            ("get_format", [what, _]) => Err(SqlError::parse(format!("'{what}'"))),
            ("mod", [left, right]) => {
                let text = super::operator::text_of(format_args!("({left} % {right})"));
                let (left, right) = (self.bind(left)?, self.bind(right)?);
                Ok(super::arithmetic(self.settings, crate::scalar::expr::Operator::Modulo, left, right, text))
            }
            (_, [scale]) if functions::takes_scale(row) => {
                let scale = fraction(&self.bind(scale)?, row.name())?;
                self.finish(row, Vec::new(), Extra::Scale(scale))
            }
            _ => {
                row.check(nodes.len())?;
                let arguments = nodes.into_iter().map(|node| self.bind(node)).collect::<Result<Vec<_>>>()?;
                if row.name() == "isnull" {
                    let [inner] = <[Expr; 1]>::try_from(arguments).map_err(|_| unknown(&name))?;
                    return Ok(Expr::IsNull(Box::new(inner)));
                }
                let call = self.finish(row, arguments, Extra::None)?;
                match returning(&function.args) {
                    None => Ok(call),
                    Some(to) if row.name() == "json_value" => {
                        let to = super::types::cast_type(to, &call, self.settings)?;
                        let Expr::Call(mut call) = call else { return Ok(call) };
                        // CHAR without a length is as long as the default.
                        let length = if to.kind.is_text() { to.length.min(512) } else { to.length };
                        call.ty = Type { length, ..to };
                        Ok(Expr::Call(call))
                    }
                    Some(_) => Err(SqlError::parse("'RETURNING'")),
                }
            }
        }
    }
}

/// The type in JSON_VALUE(... RETURNING type).
fn returning(arguments: &FunctionArguments) -> Option<&ast::DataType> {
    let FunctionArguments::List(list) = arguments else {
        return None;
    };
    list.clauses.iter().find_map(|clause| match clause {
        FunctionArgumentClause::JsonReturningClause(clause) => Some(&clause.data_type),
        _ => None,
    })
}

/// What GET_FORMAT tells of.
fn is_kind_of_format(word: &ast::Ident) -> bool {
    let known = ["date", "time", "datetime", "timestamp"];
    word.quote_style.is_none() && known.iter().any(|known| word.value.eq_ignore_ascii_case(known))
}

fn unknown(name: &str) -> SqlError {
    error::SP_DOES_NOT_EXIST.with(&[&"FUNCTION", &name])
}

fn unit(name: &str) -> Result<Unit> {
    Unit::parse(name).ok_or_else(|| SqlError::parse(format!("'{name}'")))
}

fn plain_name(name: &ast::ObjectName) -> Result<String> {
    match &name.0[..] {
        [ast::ObjectNamePart::Identifier(name)] => Ok(name.value.to_ascii_lowercase()),
        _ => Err(unknown(&name.to_string())),
    }
}

pub(super) fn argument_nodes(arguments: &FunctionArguments) -> Result<Vec<&ast::Expr>> {
    let list = match arguments {
        FunctionArguments::None => return Ok(Vec::new()),
        FunctionArguments::Subquery(_) => return Err(SqlError::unsupported("subquery in this place")),
        FunctionArguments::List(list) => list,
    };
    let known = |clause: &FunctionArgumentClause| matches!(clause, FunctionArgumentClause::JsonReturningClause(_));
    if list.duplicate_treatment.is_some() || !list.clauses.iter().all(known) {
        return Err(SqlError::unsupported("DISTINCT or a clause within a function's arguments"));
    }
    let argument = |argument| match argument {
        &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref node)) => Ok(node),
        other => Err(SqlError::parse(format!("'{other}'"))),
    };
    list.args.iter().map(argument).collect()
}

/// The digits in NOW(6); error 1426 beyond six.
fn fraction(scale: &Expr, name: &str) -> Result<u8> {
    match scale {
        Expr::Literal(Value::Int(scale @ 0..=6), _) => Ok(*scale as u8),
        Expr::Literal(Value::Int(scale), _) => Err(error::TOO_BIG_PRECISION.with(&[scale, &name, &6])),
        _ => Err(SqlError::parse(format!("'{name}'"))),
    }
}
