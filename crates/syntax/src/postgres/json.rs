//! SQL/JSON: JSON_OBJECT, JSON_ARRAY, JSON_OBJECTAGG, JSON_ARRAYAGG and IS JSON.

use super::error::Result;
use super::keyword::Kw;
use super::lexer::Kind;
use super::parser::Parser;
use super::primary::Brackets;
use super::tree::*;

impl Parser<'_> {
    /// JSON_OBJECT after its parenthesis: the constructor, or the function of arrays.
    #[inline(never)]
    pub(super) fn json_object(&mut self, at: Location) -> Result<Expr> {
        if self.kind() == Kind::Close || self.kw() == Kw::RETURNING {
            let clauses = self.json_end(false, false)?;
            return Ok(self.json_constructor(JsonContent::Object(Vec::new()), clauses, at));
        }
        let is_c_expr = !self.at_prefix();
        let first = match is_c_expr && !self.at_named_argument() {
            true => self.json_operand()?,
            false => (self.argument()?, false),
        };
        let (Argument { name, value }, is_c_expr) = first;
        if name.is_some() || matches!(self.kind(), Kind::Comma | Kind::Close) {
            let call = self.general("json_object", Some(Argument { name, value }), at)?;
            self.expect(Kind::Close)?;
            self.grow()?;
            return Ok(self.make(ExprKind::Function(Box::new(call)), at.0));
        }
        let mut members = vec![self.json_member(value, is_c_expr)?];
        while self.accept(Kind::Comma) {
            let (key, is_c_expr) = self.json_key()?;
            members.push(self.json_member(key, is_c_expr)?);
        }
        let absent_on_null = self.json_null_clause(false)?;
        let clauses = self.json_end(absent_on_null, true)?;
        Ok(self.json_constructor(JsonContent::Object(members), clauses, at))
    }

    /// JSON_ARRAY after its parenthesis.
    #[inline(never)]
    pub(super) fn json_array(&mut self, at: Location) -> Result<Expr> {
        if self.kind() == Kind::Close || self.kw() == Kw::RETURNING {
            let clauses = self.json_end(true, false)?;
            return Ok(self.json_constructor(JsonContent::Array(Vec::new()), clauses, at));
        }
        let first = if self.begins_query() {
            Err(Box::new(self.query()?))
        } else if self.kind() == Kind::Open {
            let start = self.token().start;
            match self.level(|parser| parser.brackets(true))? {
                Brackets::Query(query, _) if self.continues_query() => Err(Box::new(self.query_after(*query, start)?)),
                inner => {
                    let left = self.expr_of(inner)?;
                    Ok(self.expr_after(left)?)
                }
            }
        } else {
            Ok(self.expr()?)
        };
        match first {
            Err(query) => {
                let format = self.json_format()?;
                let clauses = self.json_end(true, false)?;
                Ok(self.json_constructor(JsonContent::Query(query, format), clauses, at))
            }
            Ok(first) => {
                let mut items = vec![self.json_value(first)?];
                while self.accept(Kind::Comma) {
                    let item = self.expr()?;
                    items.push(self.json_value(item)?);
                }
                let absent_on_null = self.json_null_clause(true)?;
                let clauses = self.json_end(absent_on_null, false)?;
                Ok(self.json_constructor(JsonContent::Array(items), clauses, at))
            }
        }
    }

    /// JSON_OBJECTAGG or JSON_ARRAYAGG after its parenthesis, with the clauses behind it.
    #[inline(never)]
    pub(super) fn json_aggregate(&mut self, is_object: bool, at: Location) -> Result<Expr> {
        let mut order_by = Vec::new();
        let (name, arguments, clauses) = if is_object {
            let (key, is_c_expr) = self.json_key()?;
            let (key, value) = self.json_member(key, is_c_expr)?;
            let absent_on_null = self.json_null_clause(false)?;
            ("json_object_agg", vec![key, value], self.json_end(absent_on_null, true)?)
        } else {
            let item = self.expr()?;
            let item = self.json_value(item)?;
            order_by = self.sort_clause()?;
            let absent_on_null = self.json_null_clause(true)?;
            ("json_agg", vec![item], self.json_end(absent_on_null, false)?)
        };
        let name = AnyName { parts: vec!["pg_catalog".to_owned(), name.to_owned()], at };
        let json = Some(Box::new(clauses));
        let call = FuncCall { sql_syntax: true, order_by, json, ..FuncCall::plain(name, arguments) };
        self.grow()?;
        let call = if self.kw() == Kw::WITHIN { call } else { self.call_clauses(call)? };
        Ok(self.make(ExprKind::Function(Box::new(call)), at.0))
    }

    fn json_constructor(&self, content: JsonContent, clauses: JsonClauses, at: Location) -> Expr {
        self.make(ExprKind::JsonConstructor(Box::new(JsonConstructor { content, clauses })), at.0)
    }

    fn at_named_argument(&mut self) -> bool {
        matches!(self.peek(1).kind, Kind::ColonEquals | Kind::EqualsGreater)
    }

    /// Whether an operator before its operand begins here, so the expression is no c_expr.
    fn at_prefix(&self) -> bool {
        self.kw() == Kw::NOT
            || !matches!(self.kind(), Kind::Word | Kind::Quoted | Kind::UnicodeQuoted | Kind::Open | Kind::Parameter)
                && !self.at_constant()
    }

    fn at_constant(&self) -> bool {
        self.at_string() || matches!(self.kind(), Kind::Integer | Kind::Float | Kind::Bits | Kind::HexBits)
    }

    /// Returns an expression as an argument, and whether it is a c_expr.
    fn json_operand(&mut self) -> Result<(Argument, bool)> {
        let left = self.c_expr()?;
        let ends = matches!(self.kind(), Kind::Comma | Kind::Close | Kind::Colon) || self.kw() == Kw::VALUE;
        let value = if ends { left } else { self.expr_after(left)? };
        Ok((Argument { name: None, value }, ends))
    }

    fn json_key(&mut self) -> Result<(Expr, bool)> {
        if self.at_prefix() {
            return Ok((self.expr()?, false));
        }
        self.json_operand().map(|(argument, is_c_expr)| (argument.value, is_c_expr))
    }

    /// json_name_and_value after the name. VALUE follows a c_expr alone.
    fn json_member(&mut self, key: Expr, is_c_expr: bool) -> Result<(Expr, Expr)> {
        match self.kw() {
            Kw::VALUE if is_c_expr => drop(self.take()),
            _ => drop(self.expect(Kind::Colon)?),
        }
        let value = self.expr()?;
        Ok((key, self.json_value(value)?))
    }

    /// json_value_expr after its expression.
    fn json_value(&mut self, operand: Expr) -> Result<Expr> {
        let start = operand.span.start;
        match self.json_format()? {
            None => Ok(operand),
            Some(format) => {
                self.grow()?;
                Ok(self.make(ExprKind::JsonValue { operand: Box::new(operand), format }, start))
            }
        }
    }

    /// json_format_clause_opt
    fn json_format(&mut self) -> Result<Option<JsonFormat>> {
        let at = self.here();
        if self.kw() != Kw::FORMAT || !self.peek_is(1, Kw::JSON) {
            return Ok(None);
        }
        self.expect_words(&[Kw::FORMAT, Kw::JSON])?;
        if !self.word(Kw::ENCODING) {
            return Ok(Some(JsonFormat { encoding: None, at }));
        }
        let name = self.column_name()?.value;
        let known = [JsonEncoding::Utf8, JsonEncoding::Utf16, JsonEncoding::Utf32];
        match known.into_iter().find(|encoding| encoding.name().eq_ignore_ascii_case(&name)) {
            Some(encoding) => Ok(Some(JsonFormat { encoding: Some(encoding), at })),
            None => Err(self.invalid("22023", format!("unrecognized JSON encoding: {name}"), at)),
        }
    }

    /// The null clause of a constructor; `default` without one.
    fn json_null_clause(&mut self, default: bool) -> Result<bool> {
        let absent = match self.kw() {
            Kw::NULL => false,
            Kw::ABSENT => true,
            _ => return Ok(default),
        };
        self.take();
        self.expect_words(&[Kw::ON, Kw::NULL])?;
        Ok(absent)
    }

    /// json_key_uniqueness_constraint_opt
    fn json_unique(&mut self) -> Result<bool> {
        let unique = match self.kw() {
            Kw::WITH => true,
            Kw::WITHOUT => false,
            _ => return Ok(false),
        };
        if !self.peek_is(1, Kw::UNIQUE) {
            return Ok(false);
        }
        self.take();
        self.take();
        self.word(Kw::KEYS);
        Ok(unique)
    }

    /// The last clauses of a constructor, and its parenthesis.
    fn json_end(&mut self, absent_on_null: bool, may_be_unique: bool) -> Result<JsonClauses> {
        let unique = may_be_unique && self.json_unique()?;
        let returning = if self.word(Kw::RETURNING) {
            Some(JsonReturning { ty: self.type_name()?, format: self.json_format()? })
        } else {
            None
        };
        self.expect(Kind::Close)?;
        self.grow()?;
        Ok(JsonClauses { absent_on_null, unique, returning })
    }

    /// `IS [NOT] JSON ...` from JSON on.
    #[inline(never)]
    pub(super) fn is_json(&mut self, operand: Expr, negated: bool, at: Location) -> Result<Expr> {
        let start = operand.span.start;
        self.expect_word(Kw::JSON)?;
        let kind = match self.any(&[Kw::VALUE, Kw::SCALAR, Kw::ARRAY, Kw::OBJECT]) {
            Some(Kw::SCALAR) => JsonKind::Scalar,
            Some(Kw::ARRAY) => JsonKind::Array,
            Some(Kw::OBJECT) => JsonKind::Object,
            _ => JsonKind::Any,
        };
        let unique = self.json_unique()?;
        self.grow()?;
        Ok(self.make(ExprKind::JsonTest(Box::new(JsonTest { operand, kind, unique, negated, at })), start))
    }
}
