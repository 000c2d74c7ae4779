//! Notations of MySQL's expressions that the parser reads in another way or not at all: INTERVAL with compound units, EXTRACT, TRIM, CHAR ... USING.

use sqlparser::ast::{
    CastKind, DataType, DateTimeField, Expr, ExtractSyntax, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, Ident, Interval, ObjectName, ObjectNamePart, TrimWhereField,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use crate::scalar::temporal::Unit;

type Parsed = Result<Expr, ParserError>;

/// Reads the notation that begins with this word, if it is one.
pub fn prefix(parser: &mut Parser<'_>, word: &str) -> Option<Parsed> {
    let opens = parser.peek_nth_token_ref(1).token == Token::LParen;
    let read: fn(&mut Parser<'_>) -> Parsed = match () {
        () if word.eq_ignore_ascii_case("interval") => interval,
        () if opens && word.eq_ignore_ascii_case("extract") => extract,
        () if opens && word.eq_ignore_ascii_case("trim") => trim,
        () if opens && word.eq_ignore_ascii_case("char") => char,
        () if opens && word.eq_ignore_ascii_case("cast") && names_charset(parser) => cast,
        () => return None,
    };
    parser.next_token();
    Some(read(parser))
}

fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(found) if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

pub fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let args = arguments.into_iter().map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))).collect();
    Expr::Function(Function {
        name: ObjectName(vec![ObjectNamePart::Identifier(Ident::new(name))]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        within_group: Vec::new(),
        filter: None,
        null_treatment: None,
        over: None,
    })
}

/// A unit's name, simple or compound.
fn unit(parser: &mut Parser<'_>) -> Result<DateTimeField, ParserError> {
    match &parser.peek_token_ref().token {
        Token::Word(word) if word.quote_style.is_none() && Unit::parse(&word.value).is_some() => {
            let field = DateTimeField::Custom(Ident::new(word.value.to_ascii_uppercase()));
            parser.next_token();
            Ok(field)
        }
        _ => {
            let token = parser.next_token();
            parser.expected("a unit of time", token)
        }
    }
}

/// `INTERVAL '1:30' MINUTE_SECOND`; `INTERVAL(n, a, b)` is a function.
fn interval(parser: &mut Parser<'_>) -> Parsed {
    match parser.parse_expr()? {
        Expr::Tuple(parts) if parts.len() > 1 => Ok(call("INTERVAL", parts)),
        value => Ok(Expr::Interval(Interval {
            value: Box::new(value),
            leading_field: Some(unit(parser)?),
            leading_precision: None,
            last_field: None,
            fractional_seconds_precision: None,
        })),
    }
}

fn extract(parser: &mut Parser<'_>) -> Parsed {
    parser.expect_token(&Token::LParen)?;
    let field = unit(parser)?;
    parser.expect_keyword_is(Keyword::FROM)?;
    let expr = Box::new(parser.parse_expr()?);
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Extract { field, syntax: ExtractSyntax::From, expr })
}

/// `TRIM([{BOTH | LEADING | TRAILING}] [what] FROM text)`, `TRIM(text)`.
fn trim(parser: &mut Parser<'_>) -> Parsed {
    parser.expect_token(&Token::LParen)?;
    let sides = [
        (Keyword::BOTH, TrimWhereField::Both),
        (Keyword::LEADING, TrimWhereField::Leading),
        (Keyword::TRAILING, TrimWhereField::Trailing),
    ];
    let trim_where = sides.into_iter().find(|(keyword, _)| parser.parse_keyword(*keyword)).map(|(_, side)| side);
    let (mut trim_what, mut expr) = (None, None);
    if !parser.parse_keyword(Keyword::FROM) {
        let first = Box::new(parser.parse_expr()?);
        if parser.parse_keyword(Keyword::FROM) {
            trim_what = Some(first);
        } else if trim_where.is_some() {
            return parser.expected_ref("FROM", parser.peek_token_ref());
        } else {
            expr = Some(first);
        }
    } else if trim_where.is_none() {
        return parser.expected_ref("what to trim", parser.peek_token_ref());
    }
    let expr = match expr {
        Some(expr) => expr,
        None => Box::new(parser.parse_expr()?),
    };
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Trim { trim_where, trim_what, expr, trim_characters: None })
}

/// `CHAR(77, 121 USING utf8mb4)`
fn char(parser: &mut Parser<'_>) -> Parsed {
    parser.expect_token(&Token::LParen)?;
    let numbers = parser.parse_comma_separated(Parser::parse_expr)?;
    let charset = match parser.parse_keyword(Keyword::USING) {
        true => Some(ObjectName(vec![ObjectNamePart::Identifier(parser.parse_identifier()?)])),
        false => None,
    };
    parser.expect_token(&Token::RParen)?;
    let made = call("CHAR", numbers);
    Ok(match charset {
        None => made,
        Some(charset) => converted(made, charset),
    })
}

/// CONVERT(... USING ...).
fn converted(expr: Expr, charset: ObjectName) -> Expr {
    let (data_type, charset) = (None, Some(charset));
    Expr::Convert {
        is_try: false,
        expr: Box::new(expr),
        data_type,
        charset,
        target_before_value: false,
        styles: Vec::new(),
    }
}

/// Does the CAST that begins here name a character set? Its type stands at the end of its parentheses.
fn names_charset(parser: &Parser<'_>) -> bool {
    let (mut depth, mut nth) = (0, 1);
    loop {
        let token = &parser.peek_nth_token_ref(nth).token;
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            Token::EOF => return false,
            token if depth == 1 && is_word(token, "charset") => return true,
            token if depth == 1 && is_word(token, "character") => {
                return is_word(&parser.peek_nth_token_ref(nth + 1).token, "set");
            }
            _ => {}
        }
        if depth == 0 {
            return false;
        }
        nth += 1;
    }
}

/// CAST(... AS CHAR(n) CHARACTER SET ...): what is in another character set is turned first, so that characters are counted.
fn cast(parser: &mut Parser<'_>) -> Parsed {
    parser.expect_token(&Token::LParen)?;
    let expr = parser.parse_expr()?;
    parser.expect_keyword_is(Keyword::AS)?;
    let data_type = parser.parse_data_type()?;
    if !matches!(data_type, DataType::Char(_)) {
        return parser.expected_ref("CHAR", parser.peek_token_ref());
    }
    if !parser.parse_keyword(Keyword::CHARSET) {
        parser.expect_keyword_is(Keyword::CHARACTER)?;
        parser.expect_keyword_is(Keyword::SET)?;
    }
    let charset = ObjectName(vec![ObjectNamePart::Identifier(parser.parse_identifier()?)]);
    parser.expect_token(&Token::RParen)?;
    let turned = converted(expr, charset.clone());
    if matches!(data_type, DataType::Char(None)) {
        return Ok(turned);
    }
    let cut = Expr::Cast { kind: CastKind::Cast, expr: Box::new(turned), data_type, format: None };
    Ok(converted(cut, charset))
}
