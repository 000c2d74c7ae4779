//! The grammar of jsonpath (`jsonpath_gram.y`), by recursive descent.

use crate::error::{PgError, Result, state};
use crate::types::jsonpath::lexer::{Lexer, PathToken};
use crate::types::jsonpath::{Accessor, Arithmetic, Compare, Expr, Flags, JsonPath, LAST_LEVEL, Method};
use crate::types::numeric::numeric_in;

/// The most levels of a path's tree. Printing and evaluating recurse as deep.
const HEIGHT_MAX: usize = 100;

/// The most levels at which an expression may stand in the text. The output of a path puts each level of its tree at most two deeper, one for an operator and one for its brackets, so that every path that is read can be read again.
const NESTING_MAX: usize = 2 * HEIGHT_MAX + 3;

struct PathParser<'t> {
    lexer: Lexer<'t>,
    token: PathToken,
    nesting: usize,
    /// The filters and the subscripts around the place that is read.
    filters: usize,
    subscripts: usize,
}

/// Parses a path.
pub fn parse(text: &str) -> Result<JsonPath> {
    if text.is_empty() {
        let message = "invalid input syntax for type jsonpath: \"\"";
        return Err(PgError::new(state::INVALID_TEXT_REPRESENTATION, message));
    }
    let mut parser =
        PathParser { lexer: Lexer::new(text), token: PathToken::End, nesting: 0, filters: 0, subscripts: 0 };
    parser.advance()?;
    let is_lax = !parser.eat_word("strict")?;
    if is_lax {
        parser.eat_word("lax")?;
    }
    let root = parser.expr(0)?;
    if parser.token != PathToken::End {
        return Err(parser.lexer.error("syntax error"));
    }
    check_height(&root, HEIGHT_MAX)?;
    Ok(JsonPath { is_lax, root })
}

/// Fails if a tree has more levels than these.
fn check_height(expr: &Expr, levels: usize) -> Result<()> {
    let below = levels.checked_sub(1).ok_or_else(too_deep)?;
    expr.operands().try_for_each(|operand| check_height(operand, below))
}

#[cold]
fn too_deep() -> PgError {
    PgError::new(state::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded")
}

/// Strengths of binding.
const AND: u8 = 1;
const COMPARE: u8 = 3;
const SUM: u8 = 4;
const PRODUCT: u8 = 5;
const SIGN: u8 = 6;

/// Reads an operator and its right side, and puts both around the left side.
type Apply<P> = fn(&mut P, Expr) -> Result<Expr>;

impl PathParser<'_> {
    fn advance(&mut self) -> Result<()> {
        self.token = self.lexer.next()?;
        Ok(())
    }

    #[cold]
    fn fail<T>(&self) -> Result<T> {
        Err(self.lexer.error("syntax error"))
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.token, PathToken::Sign(other) if other == sign)
    }

    fn eat(&mut self, sign: &str) -> Result<bool> {
        let found = self.is_sign(sign);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, sign: &str) -> Result<()> {
        if self.eat(sign)? { Ok(()) } else { self.fail() }
    }

    fn is_word(&self, word: &str) -> bool {
        let PathToken::Name(name) = &self.token else { return false };
        // These three are keywords in lower case alone.
        match word {
            "true" | "false" | "null" => name == word,
            _ => name.eq_ignore_ascii_case(word),
        }
    }

    fn eat_word(&mut self, word: &str) -> Result<bool> {
        let found = self.is_word(word);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.eat_word(word)? { Ok(()) } else { self.fail() }
    }

    /// Reads what `read` reads, one level deeper.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.check(self.nesting + 1)?;
        self.nesting += 1;
        let result = read(self);
        self.nesting -= 1;
        result
    }

    fn check(&self, nesting: usize) -> Result<()> {
        if nesting > NESTING_MAX { Err(too_deep()) } else { Ok(()) }
    }

    fn predicate(&self, expr: Expr) -> Result<Box<Expr>> {
        if expr.is_predicate() { Ok(Box::new(expr)) } else { self.fail() }
    }

    fn operand(&self, expr: Expr) -> Result<Box<Expr>> {
        if expr.is_predicate() { self.fail() } else { Ok(Box::new(expr)) }
    }

    /// Reads an expression or a condition whose operators bind stronger than `above`.
    fn expr(&mut self, above: u8) -> Result<Expr> {
        self.deeper(|parser| {
            let mut left = parser.unary()?;
            let mut nesting = parser.nesting;
            while let Some((strength, apply)) = parser.operator() {
                if strength <= above {
                    break;
                }
                // Each operator puts what was read one level deeper.
                nesting += 1;
                parser.check(nesting)?;
                left = apply(parser, left)?;
            }
            Ok(left)
        })
    }

    fn operator(&self) -> Option<(u8, Apply<Self>)> {
        Some(match self.token {
            PathToken::Sign("||") => (AND, Self::or),
            PathToken::Sign("&&") => (AND + 1, Self::and),
            PathToken::Sign("==" | "!=" | "<>" | "<" | "<=" | ">" | ">=") => (COMPARE, Self::compare),
            PathToken::Sign("+" | "-") => (SUM, Self::arithmetic),
            PathToken::Sign("*" | "/" | "%") => (PRODUCT, Self::arithmetic),
            PathToken::Name(_) if self.is_word("starts") => (COMPARE, Self::starts_with),
            PathToken::Name(_) if self.is_word("like_regex") => (COMPARE, Self::like_regex),
            _ => return None,
        })
    }

    fn or(&mut self, left: Expr) -> Result<Expr> {
        let left = self.predicate(left)?;
        self.advance()?;
        let right = self.expr(AND)?;
        Ok(Expr::Or(left, self.predicate(right)?))
    }

    fn and(&mut self, left: Expr) -> Result<Expr> {
        let left = self.predicate(left)?;
        self.advance()?;
        let right = self.expr(AND + 1)?;
        Ok(Expr::And(left, self.predicate(right)?))
    }

    fn compare(&mut self, left: Expr) -> Result<Expr> {
        let op = match self.token {
            PathToken::Sign("==") => Compare::Equal,
            PathToken::Sign("!=" | "<>") => Compare::NotEqual,
            PathToken::Sign("<") => Compare::Less,
            PathToken::Sign("<=") => Compare::LessEqual,
            PathToken::Sign(">") => Compare::Greater,
            _ => Compare::GreaterEqual,
        };
        let left = self.operand(left)?;
        self.advance()?;
        let right = self.expr(COMPARE)?;
        Ok(Expr::Compare(op, left, self.operand(right)?))
    }

    fn arithmetic(&mut self, left: Expr) -> Result<Expr> {
        let (op, strength) = match self.token {
            PathToken::Sign("+") => (Arithmetic::Add, SUM),
            PathToken::Sign("-") => (Arithmetic::Subtract, SUM),
            PathToken::Sign("*") => (Arithmetic::Multiply, PRODUCT),
            PathToken::Sign("/") => (Arithmetic::Divide, PRODUCT),
            _ => (Arithmetic::Modulo, PRODUCT),
        };
        let left = self.operand(left)?;
        self.advance()?;
        let right = self.expr(strength)?;
        Ok(Expr::Arithmetic(op, left, self.operand(right)?))
    }

    fn starts_with(&mut self, left: Expr) -> Result<Expr> {
        let left = self.operand(left)?;
        self.advance()?;
        self.expect_word("with")?;
        let initial = match std::mem::replace(&mut self.token, PathToken::End) {
            PathToken::String(text) => Expr::String(text.into()),
            PathToken::Variable(name) => Expr::Variable(name.into()),
            other => {
                self.token = other;
                return self.fail();
            }
        };
        self.advance()?;
        Ok(Expr::StartsWith(left, Box::new(initial)))
    }

    fn string(&mut self) -> Result<String> {
        match std::mem::replace(&mut self.token, PathToken::End) {
            PathToken::String(text) => {
                self.advance()?;
                Ok(text)
            }
            other => {
                self.token = other;
                self.fail()
            }
        }
    }

    fn like_regex(&mut self, left: Expr) -> Result<Expr> {
        let operand = self.operand(left)?;
        self.advance()?;
        let pattern: Box<str> = self.string()?.into();
        let mut flags = Flags::default();
        if self.eat_word("flag")? {
            flags = flags_of(&self.string()?)?;
        }
        // A pattern that is none is an error of the path.
        crate::functions::json::path::compile(&pattern, flags)?;
        Ok(Expr::LikeRegex { operand, pattern, flags })
    }

    fn unary(&mut self) -> Result<Expr> {
        match self.token {
            PathToken::Sign("+" | "-") => {
                let is_minus = self.is_sign("-");
                self.advance()?;
                let operand = self.expr(SIGN)?;
                Ok(match (is_minus, *self.operand(operand)?) {
                    (false, Expr::Number(number)) => Expr::Number(number),
                    (true, Expr::Number(number)) => Expr::Number(number.negated()),
                    (is_minus, operand) => Expr::Signed(is_minus, Box::new(operand)),
                })
            }
            PathToken::Sign("!") => {
                self.advance()?;
                let operand = match self.token {
                    PathToken::Sign("(") => {
                        self.advance()?;
                        let inner = self.expr(0)?;
                        self.expect(")")?;
                        self.predicate(inner)?
                    }
                    _ if self.is_word("exists") => Box::new(self.exists()?),
                    _ => return self.fail(),
                };
                Ok(Expr::Not(operand))
            }
            _ => self.accessors(),
        }
    }

    fn exists(&mut self) -> Result<Expr> {
        self.advance()?;
        self.expect("(")?;
        let operand = self.expr(0)?;
        self.expect(")")?;
        Ok(Expr::Exists(self.operand(operand)?))
    }

    fn accessors(&mut self) -> Result<Expr> {
        let base = match self.token {
            PathToken::Sign("(") => {
                self.advance()?;
                let inner = self.expr(0)?;
                self.expect(")")?;
                if inner.is_predicate() && self.eat_word("is")? {
                    self.expect_word("unknown")?;
                    return Ok(Expr::IsUnknown(Box::new(inner)));
                }
                inner
            }
            _ if self.is_word("exists") => return self.exists(),
            _ => self.primary()?,
        };
        let mut accessors = Vec::new();
        while let Some(accessor) = self.accessor()? {
            accessors.push(accessor);
        }
        match (accessors.is_empty(), base) {
            (true, base) => Ok(base),
            (false, Expr::Access(inner, mut first)) => {
                first.extend(accessors);
                Ok(Expr::Access(inner, first))
            }
            (false, base) => Ok(Expr::Access(Box::new(base), accessors)),
        }
    }

    fn primary(&mut self) -> Result<Expr> {
        let expr = match &self.token {
            PathToken::String(text) => Expr::String(text.as_str().into()),
            PathToken::Variable(name) => Expr::Variable(name.as_str().into()),
            PathToken::Integer(text) | PathToken::Number(text) => Expr::Number(numeric_in(text, -1)?),
            PathToken::Sign("$") => Expr::Root,
            PathToken::Sign("@") => {
                if self.filters == 0 {
                    return Err(PgError::new(state::SYNTAX_ERROR, "@ is not allowed in root expressions"));
                }
                Expr::Current
            }
            PathToken::Name(_) if self.is_word("null") => Expr::Null,
            PathToken::Name(_) if self.is_word("true") => Expr::Bool(true),
            PathToken::Name(_) if self.is_word("false") => Expr::Bool(false),
            PathToken::Name(_) if self.is_word("last") => {
                if self.subscripts == 0 {
                    return Err(PgError::new(state::SYNTAX_ERROR, "LAST is allowed only in array subscripts"));
                }
                Expr::Last
            }
            _ => return self.fail(),
        };
        self.advance()?;
        Ok(expr)
    }

    fn accessor(&mut self) -> Result<Option<Accessor>> {
        Ok(Some(match self.token {
            PathToken::Sign(".") => {
                self.advance()?;
                self.after_dot()?
            }
            PathToken::Sign("[") => {
                self.advance()?;
                self.elements()?
            }
            PathToken::Sign("?") => {
                self.advance()?;
                self.expect("(")?;
                self.filters += 1;
                let condition = self.expr(0);
                self.filters -= 1;
                let condition = self.predicate(condition?)?;
                self.expect(")")?;
                Accessor::Filter(*condition)
            }
            _ => return Ok(None),
        }))
    }

    fn elements(&mut self) -> Result<Accessor> {
        if self.eat("*")? {
            self.expect("]")?;
            return Ok(Accessor::AnyElement);
        }
        self.subscripts += 1;
        let list = self.subscript_list();
        self.subscripts -= 1;
        let list = list?;
        self.expect("]")?;
        Ok(Accessor::Elements(list))
    }

    fn subscript_list(&mut self) -> Result<Vec<(Expr, Option<Expr>)>> {
        let mut list = Vec::new();
        loop {
            let first = self.expr(0)?;
            let first = *self.operand(first)?;
            let last = match self.eat_word("to")? {
                true => {
                    let last = self.expr(0)?;
                    Some(*self.operand(last)?)
                }
                false => None,
            };
            list.push((first, last));
            if !self.eat(",")? {
                return Ok(list);
            }
        }
    }

    fn after_dot(&mut self) -> Result<Accessor> {
        if self.eat("**")? {
            return self.levels();
        }
        if self.eat("*")? {
            return Ok(Accessor::AnyKey);
        }
        let (name, is_quoted) = match std::mem::replace(&mut self.token, PathToken::End) {
            PathToken::String(name) => (name, true),
            PathToken::Name(name) => (name, false),
            other => {
                self.token = other;
                return self.fail();
            }
        };
        self.advance()?;
        let method = [
            Method::Type,
            Method::Size,
            Method::Abs,
            Method::Floor,
            Method::Ceiling,
            Method::Double,
            Method::Datetime,
            Method::KeyValue,
        ];
        let method = method.into_iter().find(|method| method.name().eq_ignore_ascii_case(&name));
        if is_quoted || !self.is_sign("(") {
            return Ok(Accessor::Key(name.into()));
        }
        let Some(method) = method else { return self.fail() };
        self.advance()?;
        if matches!(method, Method::Datetime | Method::KeyValue) {
            return Err(PgError::unsupported(format!("jsonpath item method .{}()", method.name())));
        }
        self.expect(")")?;
        Ok(Accessor::Method(method))
    }

    /// Reads the levels behind `**`.
    fn levels(&mut self) -> Result<Accessor> {
        if !self.eat("{")? {
            return Ok(Accessor::AnyLevel(0, LAST_LEVEL));
        }
        let first = self.level()?;
        let last = if self.eat_word("to")? { self.level()? } else { first };
        self.expect("}")?;
        Ok(Accessor::AnyLevel(first, last))
    }

    fn level(&mut self) -> Result<u32> {
        if self.eat_word("last")? {
            return Ok(LAST_LEVEL);
        }
        let PathToken::Integer(digits) = &self.token else { return self.fail() };
        let level = digits.parse::<i32>().unwrap_or(i32::MAX) as u32;
        self.advance()?;
        Ok(level)
    }
}

fn flags_of(text: &str) -> Result<Flags> {
    let mut flags = Flags::default();
    for letter in text.chars() {
        match letter {
            'i' => flags.ignores_case = true,
            's' => flags.dot_matches_newline = true,
            'm' => flags.multiline = true,
            'q' => flags.is_literal = true,
            'x' => flags.is_expanded = true,
            other => {
                let detail = format!("Unrecognized flag character \"{other}\" in LIKE_REGEX predicate.");
                let text = "invalid input syntax for type jsonpath";
                return Err(PgError::new(state::SYNTAX_ERROR, text).detail(detail));
            }
        }
    }
    if flags.is_expanded && !flags.is_literal {
        let text = "XQuery \"x\" flag (expanded regular expressions) is not implemented";
        return Err(PgError::new(state::FEATURE_NOT_SUPPORTED, text));
    }
    Ok(flags)
}
