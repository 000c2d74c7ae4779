//! Function calls, and calls with a syntax of their own: EXTRACT, TRIM, DATE_ADD, JSON_VALUE.

use syntax::tree as ast;
use syntax::tree::{ExprKind, OnMissing, TemporalKind};

use super::Binder;
use super::constant::{Place, beside};
use super::operator::adapt;
use crate::error;
use crate::scalar::aggregate::AggregateKind;
use crate::scalar::cast;
use crate::scalar::functions;
use crate::scalar::functions::entry::{FunctionEntry, Returns, TIMESTAMP_SEQUENCE};
use crate::scalar::keyword_argument::{TrimSide, Word};
use crate::scalar::operators;
use crate::scalar::temporal::Unit;
use crate::types::{Charset, CharsetName as _, Collation, Kind, MysqlExpr as _, MysqlType as _, Type};
use crate::value::Value;
use datum::Result;
use query::nodes::expr::{Call, Expr};

impl Binder<'_> {
    pub(super) fn call(&mut self, kind: &ExprKind) -> Result<Expr> {
        match kind {
            ExprKind::Function(function) => self.function(function),
            ExprKind::DateShift { operand, interval, subtract } => {
                let ast::Interval { value, unit: field } = &**interval;
                let arguments = vec![self.bind(operand)?, self.bind(value)?];
                self.call_with_unit(if *subtract { "date_sub" } else { "date_add" }, arguments, unit(*field)?)
            }
            ExprKind::Extract { unit: field, operand } => {
                let inner = self.bind(operand)?;
                self.call_with_unit("extract", vec![inner], unit(*field)?)
            }
            ExprKind::TimestampAdd { unit: field, count, operand } => {
                let arguments = vec![self.bind(count)?, self.bind(operand)?];
                self.call_with_unit("timestampadd", arguments, unit(*field)?)
            }
            ExprKind::TimestampDiff { unit: field, from, to } => {
                let arguments = vec![self.bind(from)?, self.bind(to)?];
                self.call_with_unit("timestampdiff", arguments, unit(*field)?)
            }
            ExprKind::GetFormat { of, region } => self.get_format(*of, region),
            ExprKind::Trim { side, remove, operand } => {
                let mut arguments = vec![self.bind(operand)?];
                if let Some(remove) = remove {
                    arguments.push(self.bind(remove)?);
                }
                let side = match side {
                    ast::TrimSide::Both => TrimSide::Both,
                    ast::TrimSide::Leading => TrimSide::Leading,
                    ast::TrimSide::Trailing => TrimSide::Trailing,
                };
                self.make("trim", arguments, Word::Trim(side))
            }
            ExprKind::MemberOf { value, array } => {
                let arguments = vec![self.bind(value)?, self.bind(array)?];
                self.call_named("member of", arguments)
            }
            ExprKind::Char { numbers, charset } => {
                let numbers = self.all(numbers)?;
                let made = self.call_named("char", numbers)?;
                match charset {
                    None => Ok(made),
                    Some(charset) => super::in_charset(made, charset),
                }
            }
            ExprKind::WeightString { operand, pad: None } => {
                let inner = self.bind(operand)?;
                self.call_named("weight_string", vec![inner])
            }
            ExprKind::WeightString { operand: _, pad: Some(_) } => {
                Err(error::not_supported("WEIGHT_STRING(... AS ...)"))
            }
            ExprKind::JsonValue(value) => self.json_value(value),
            other => Err(error::not_supported(other)),
        }
    }

    fn get_format(&mut self, of: TemporalKind, region: &ast::Expr) -> Result<Expr> {
        let of = match of {
            TemporalKind::Date => "date",
            TemporalKind::Time => "time",
            TemporalKind::DateTime => "datetime",
            TemporalKind::Timestamp => "timestamp",
        };
        let region = self.bind(region)?;
        // A literal format determines the type of STR_TO_DATE.
        if let Expr::Literal(Value::Text(known), _) = &region
            && let Some(format) = functions::named_format(of, known)
        {
            return Ok(Expr::Literal(Value::text(format), super::string_type(17, self.settings.collation)));
        }
        let of = Expr::Literal(Value::text(of), Type::text(9, Collation::Binary));
        self.call_named("get_format", vec![of, region])
    }

    fn json_value(&mut self, value: &ast::JsonValue) -> Result<Expr> {
        let ast::JsonValue { document, path, returning, on_empty, on_error } = value;
        // NULL is the default of both.
        if !matches!((on_empty, on_error), (None | Some(OnMissing::Null), None | Some(OnMissing::Null))) {
            return Err(error::not_supported("ON EMPTY and ON ERROR of JSON_VALUE"));
        }
        let arguments = vec![self.bind(document)?, self.bind(path)?];
        let call = self.call_named("json_value", arguments)?;
        let Some(to) = returning else { return Ok(call) };
        let to = super::types::cast_type(to, &call, self.settings)?;
        let Expr::Call(mut call) = call else { return Ok(call) };
        // CHAR without a length is as long as the default.
        let length = if to.kind().is_text() { to.length.min(512) } else { to.length };
        call.ty = Type { length, ..to };
        Ok(Expr::Call(call))
    }

    pub(super) fn call_named(&mut self, name: &str, arguments: Vec<Expr>) -> Result<Expr> {
        self.make(name, arguments, Word::None)
    }

    pub(super) fn call_with_unit(&mut self, name: &str, arguments: Vec<Expr>, unit: Unit) -> Result<Expr> {
        self.make(name, arguments, Word::Unit(unit))
    }

    fn make(&mut self, name: &str, arguments: Vec<Expr>, word: Word) -> Result<Expr> {
        let function = functions::find(name).ok_or_else(|| unknown(name))?;
        self.finish(function, arguments, word)
    }

    fn finish(&mut self, entry: &'static FunctionEntry, mut arguments: Vec<Expr>, word: Word) -> Result<Expr> {
        entry.check(arguments.len())?;
        if entry.name() == "char" {
            arguments = arguments.into_iter().map(super::literal::hex_as_number).collect();
        }
        if entry.name() == "if" {
            arguments[0] = super::chooser(arguments[0].clone());
        }
        if entry.name() == "nullif"
            && let [value, other] = &mut arguments[..]
        {
            let is_date = matches!(value.kind(), Kind::Date | Kind::DateTime | Kind::Timestamp);
            if is_date && matches!(other, Expr::Literal(Value::Text(_), _)) {
                *other = adapt(other.clone(), &value.ty(), Place::Side, self.settings)?;
            }
            *other = beside(other.clone(), value, Place::Side, self.settings);
        }
        if matches!(entry.name(), "lpad" | "rpad" | "insert" | "replace") {
            self.follow_first(&mut arguments)?;
        }
        let mut ty = entry.result_type(&arguments, self.settings)?;
        match word {
            Word::Scale(scale) if ty.kind().is_temporal() => ty.scale = scale,
            Word::Unit(unit) if matches!(entry.returns, Returns::Custom(_)) => {
                ty = functions::type_with_unit(entry, &arguments, unit, ty);
            }
            _ => {}
        }
        // One of them is bytes, so all are.
        if ty.kind().is_bytes() && !matches!(entry.returns, Returns::Bytes(_)) {
            arguments = arguments.into_iter().map(super::as_sent).collect();
        }
        let strings: Vec<&Expr> = arguments.iter().filter(|argument| argument.ty().is_string()).collect();
        let collation = match strings.is_empty() {
            true => self.settings.collation,
            // A function that does not compare accepts arguments of any collation.
            false => super::merge_collations(&strings, entry.name(), self.settings).unwrap_or(Collation::Binary),
        };
        Ok(Expr::Call(Box::new(Call { function: &entry.function, arguments, ty, collation, extra: word.into() })))
    }

    /// Takes binary arguments beside a text as text in the character set of the first argument, as MySQL does for functions that change a string.
    fn follow_first(&self, arguments: &mut [Expr]) -> Result<()> {
        let Some((first, rest)) = arguments.split_first_mut() else { return Ok(()) };
        if first.kind().is_bytes() {
            return Ok(());
        }
        let first = first.ty();
        let charset = if first.kind().is_text() { first.charset() } else { self.settings.collation.charset() };
        for argument in rest.iter_mut().filter(|argument| argument.kind().is_bytes()) {
            let inner = std::mem::replace(argument, Expr::null());
            *argument = self.text_of_bytes(inner, charset)?;
        }
        Ok(())
    }

    /// Error 3854 for a literal whose bytes are no text of the character set.
    fn text_of_bytes(&self, inner: Expr, charset: Charset) -> Result<Expr> {
        let to = super::types::charset_type(charset.name(), &inner)?;
        let Expr::Literal(value, ty) = &inner else { return Ok(operators::cast(inner, to)) };
        let mut ctx = crate::scalar::state::context_of(self.settings.sql_mode);
        match cast::cast(value.clone(), ty, &to, &mut ctx) {
            Ok(text) if ctx.warnings.count() == 0 => Ok(Expr::Literal(text, to)),
            _ => {
                let bytes = value.as_string_bytes().unwrap_or_default();
                let shown: String = bytes.iter().take(6).map(|byte| format!("\\x{byte:02X}")).collect();
                Err(error::CANNOT_CONVERT_STRING.raise(&[&shown, &"binary", &charset.name()]))
            }
        }
    }

    fn function(&mut self, function: &ast::Function) -> Result<Expr> {
        let ast::Function {
            schema,
            name,
            arguments: nodes,
            star,
            bare: _,
            distinct,
            order_by,
            separator,
            from_last: _,
            ignore_nulls: _,
            over,
        } = function;
        if let Some(schema) = schema {
            return Err(unknown(&format!("{schema}.{name}")));
        }
        let name = name.to_ascii_lowercase();
        if over.is_some() {
            return Err(error::not_supported(format!("window function {name}")));
        }
        if AggregateKind::of_name(&name).is_some() && name != "any_value" {
            return Err(error::INVALID_GROUP_FUNC_USE.raise(&[]));
        }
        let row = functions::find(&name).ok_or_else(|| unknown(&name))?;
        if *star {
            return Err(error::wrong_syntax("'*' at line 1"));
        }
        if *distinct || !order_by.is_empty() || separator.is_some() {
            return Err(error::not_supported("DISTINCT or a clause within a function's arguments"));
        }
        match (row.name(), &nodes[..]) {
            ("nextval", [sequence]) => {
                let known = TIMESTAMP_SEQUENCE.join(".");
                let is_known =
                    matches!(&sequence.kind, ExprKind::Column(name) if name.dotted().to_lowercase() == known);
                if !is_known {
                    return Err(error::not_supported(format!("NEXTVAL of another sequence than {known}")));
                }
                let name = Expr::Literal(Value::text(known), Type::text(64, Collation::Binary));
                self.finish(row, vec![name], Word::None)
            }
            ("mod", [left, right]) => {
                let text = super::operator::text_of(format_args!("({left} % {right})"));
                let (left, right) = (self.bind(left)?, self.bind(right)?);
                Ok(super::arithmetic(self.settings, crate::scalar::operation::Operator::Modulo, left, right, text))
            }
            (_, [scale]) if functions::takes_scale(row) => {
                let scale = fraction(&self.bind(scale)?, row.name())?;
                self.finish(row, Vec::new(), Word::Scale(scale))
            }
            _ => {
                row.check(nodes.len())?;
                let arguments = self.all(nodes)?;
                if row.name() == "isnull" {
                    let [inner] = <[Expr; 1]>::try_from(arguments).map_err(|_| unknown(&name))?;
                    return Ok(super::is_null(inner));
                }
                self.finish(row, arguments, Word::None)
            }
        }
    }
}

/// The error of a function that is not served (MY-27).
pub(super) fn unknown(name: &str) -> datum::Fault {
    error::SP_DOES_NOT_EXIST.raise(&[&"FUNCTION", &name])
}

fn unit(unit: ast::Unit) -> Result<Unit> {
    Unit::parse(unit.name()).ok_or_else(|| error::wrong_syntax(format!("'{}'", unit.name())))
}

/// The digits in NOW(6); error 1426 beyond six.
fn fraction(scale: &Expr, name: &str) -> Result<u8> {
    match scale {
        Expr::Literal(Value::Int(scale @ 0..=6), _) => Ok(*scale as u8),
        Expr::Literal(Value::Int(scale), _) => Err(error::TOO_BIG_PRECISION.raise(&[scale, &name, &6])),
        _ => Err(error::wrong_syntax(format!("'{name}'"))),
    }
}
