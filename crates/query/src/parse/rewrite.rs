//! Words in MySQL's order that the parser knows in another one, or not: changed in the tokens before it sees them.

use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use crate::error::{self, Result, SqlError};
use crate::parse::cursor::Cursor;
use crate::parse::dialect::{DIV, Grammar, SOUNDS_LIKE};
use crate::parse::limits::TABLES_MAX;
use crate::parse::load::{Duplicates, Target};

/// The tokens of a statement as the parser is given them.
pub struct Rewritten {
    pub tokens: Vec<TokenWithSpan>,
    pub parameters: usize,
    /// SELECT ... INTO: what takes the rows.
    pub into: Option<Target>,
    /// CREATE TABLE ... IGNORE or REPLACE SELECT.
    pub duplicates: Duplicates,
}

fn is(token: &TokenWithSpan, word: &str) -> bool {
    matches!(&token.token, Token::Word(found) if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

/// `/*+ ... */`
pub fn is_hint(token: &TokenWithSpan) -> bool {
    matches!(&token.token, Token::Whitespace(Whitespace::MultiLineComment(text)) if text.starts_with('+'))
}

fn is_any(token: &TokenWithSpan, words: &[&str]) -> bool {
    words.iter().any(|word| is(token, word))
}

pub fn rewrite(tokens: Vec<TokenWithSpan>, grammar: &Grammar, text: &str) -> Result<Rewritten> {
    let mut tokens: Vec<TokenWithSpan> =
        tokens.into_iter().filter(|token| !matches!(token.token, Token::Whitespace(_)) || is_hint(token)).collect();
    // Wishes about when to do it: it is done now.
    if tokens.first().is_some_and(|first| is_any(first, &["update", "delete"])) {
        let wishes = tokens[1..].iter().take_while(|token| is_any(token, &["low_priority", "quick"])).count();
        tokens.drain(1..1 + wishes);
    }
    super::commas::as_joins(&mut tokens)?;
    infix_words(&mut tokens, grammar);
    refuse_arrays(&tokens)?;
    let reads = tokens.iter().find(|token| token.token != Token::LParen).is_some_and(|first| {
        is_any(
            first,
            &[
                "select", "with", "table", "values", "insert", "replace", "explain", "describe", "desc", "update",
                "delete", "do", "set",
            ],
        )
    });
    if reads {
        lock_in_share_mode(&mut tokens);
        from_first(&mut tokens);
        table_statement(&mut tokens);
        comma_in_brackets(&mut tokens)?;
        outer_join_braces(&mut tokens);
    }
    if tokens.first().is_some_and(|first| is_any(first, &["create", "alter"])) {
        attributes_of_numbers(&mut tokens);
    }
    let duplicates = create_from_query(&mut tokens);
    let into = select_into(&mut tokens, grammar, text)?;
    let mut parameters = 0;
    for token in &mut tokens {
        if let Token::Placeholder(name) = &mut token.token {
            *name = format!("?{parameters}");
            parameters += 1;
        }
    }
    Ok(Rewritten { tokens, parameters, into, duplicates })
}

/// CREATE TABLE ... [IGNORE | REPLACE] [AS] query: takes the word out, and puts AS before a query that has none, where the parser looks for it.
fn create_from_query(tokens: &mut Vec<TokenWithSpan>) -> Duplicates {
    let is_create = tokens.first().is_some_and(|first| is(first, "create"))
        && tokens.iter().take(3).skip(1).any(|token| is(token, "table"));
    if !is_create {
        return Duplicates::Fail;
    }
    let (mut depth, mut found) = (0, None);
    for at in 0..tokens.len() {
        match tokens[at].token {
            Token::LParen if depth == 0 && begins_query(tokens, at) => {
                found = Some(at);
                break;
            }
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        let begins = at + 1 < tokens.len()
            && is_any(&tokens[at], &["ignore", "replace", "as"])
            && begins_query(tokens, at + 1 + usize::from(is(&tokens[at + 1], "as")));
        if depth == 0 && (begins || is_any(&tokens[at], &["select", "values"]) || is(&tokens[at], "with")) {
            found = Some(at);
            break;
        }
    }
    let Some(at) = found else { return Duplicates::Fail };
    let duplicates = match () {
        () if is(&tokens[at], "ignore") => Duplicates::Ignore,
        () if is(&tokens[at], "replace") => Duplicates::Replace,
        () => Duplicates::Fail,
    };
    if duplicates != Duplicates::Fail {
        tokens.remove(at);
    }
    if !is(&tokens[at], "as") {
        let put = words(&["AS"], &tokens[at]);
        tokens.splice(at..at, put);
    }
    table_statement(tokens);
    duplicates
}

fn begins_query(tokens: &[TokenWithSpan], at: usize) -> bool {
    let opened = tokens[at..].iter().find(|token| token.token != Token::LParen);
    opened.is_some_and(|first| is_any(first, &["select", "with", "values", "table"]))
}

/// CAST(... AS type ARRAY), of which multi-valued indexes are made.
fn refuse_arrays(tokens: &[TokenWithSpan]) -> Result<()> {
    let types = ["unsigned", "signed", "char", "binary", "date", "time", "datetime", "decimal", "double", "integer"];
    let is_array = |at: &usize| {
        is(&tokens[*at], "array")
            && tokens.get(at + 1).is_some_and(|next| next.token == Token::RParen)
            && (is_any(&tokens[at - 1], &types) || tokens[at - 1].token == Token::RParen)
    };
    match (1..tokens.len()).find(is_array) {
        Some(_) => Err(SqlError::unsupported("multi-valued indexes: CAST ... AS ... ARRAY")),
        None => Ok(()),
    }
}

fn words(words: &[&str], like: &TokenWithSpan) -> Vec<TokenWithSpan> {
    words.iter().map(|word| TokenWithSpan::new(Token::make_keyword(word), like.span)).collect()
}

/// ZEROFILL is UNSIGNED too, wherever it stands among its like; and NUMERIC is DECIMAL, of which the parser knows UNSIGNED. A YEAR is both by itself.
fn attributes_of_numbers(tokens: &mut Vec<TokenWithSpan>) {
    let count = |tokens: &[TokenWithSpan]| {
        tokens.iter().take_while(|token| is_any(token, &["unsigned", "signed", "zerofill"])).count()
    };
    replace_all(tokens, |tokens, at| {
        let year = is(&tokens[at], "year");
        let has_length = year && tokens.get(at + 1).is_some_and(|token| token.token == Token::LParen);
        let kept = if has_length { 4 } else { usize::from(year) }.min(tokens.len() - at);
        let attributes = count(&tokens[at + kept..]);
        let is_zerofill = tokens[at + kept..at + kept + attributes].iter().any(|token| is(token, "zerofill"));
        match () {
            () if year && attributes > 0 => Some((kept + attributes, tokens[at..at + kept].to_vec())),
            () if is_zerofill => Some((attributes, words(&["UNSIGNED", "ZEROFILL"], &tokens[at]))),
            () if attributes > 0 => Some((attributes, tokens[at..at + attributes].to_vec())),
            () if is(&tokens[at], "numeric") => Some((1, words(&["DECIMAL"], &tokens[at]))),
            () => None,
        }
    });
}

/// Replaces tokens in one pass. `replace` looks at the tokens from a place on and gives how many of them to take out and what to put there; what it puts is not looked at again.
fn replace_all(
    tokens: &mut Vec<TokenWithSpan>,
    mut replace: impl FnMut(&[TokenWithSpan], usize) -> Option<(usize, Vec<TokenWithSpan>)>,
) {
    let (mut out, mut at, mut copied) = (Vec::new(), 0, 0);
    while at < tokens.len() {
        match replace(tokens, at) {
            Some((count, put)) => {
                out.extend_from_slice(&tokens[copied..at]);
                out.extend(put);
                at += count.max(1);
                copied = at;
            }
            None => at += 1,
        }
    }
    if copied > 0 {
        out.extend_from_slice(&tokens[copied..]);
        *tokens = out;
    }
}

/// LOCK IN SHARE MODE is FOR SHARE.
fn lock_in_share_mode(tokens: &mut Vec<TokenWithSpan>) {
    replace_all(tokens, |tokens, at| {
        let mode = ["lock", "in", "share", "mode"];
        let found = tokens.len() - at >= mode.len() && (0..mode.len()).all(|nth| is(&tokens[at + nth], mode[nth]));
        found.then(|| (mode.len(), words(&["FOR", "SHARE"], &tokens[at])))
    });
}

/// NTH_VALUE(...) FROM FIRST OVER ... says what is the case anyway.
fn from_first(tokens: &mut Vec<TokenWithSpan>) {
    replace_all(tokens, |tokens, at| {
        let [bracket, from, first, next, ..] = &tokens[at..] else { return None };
        let found = bracket.token == Token::RParen
            && is(from, "from")
            && is(first, "first")
            && is_any(next, &["over", "respect"]);
        found.then(|| (3, vec![bracket.clone()]))
    });
}

/// TABLE t, where a query can stand, is SELECT * FROM t.
fn table_statement(tokens: &mut Vec<TokenWithSpan>) {
    let begins = ["union", "all", "distinct", "intersect", "except", "explain", "describe", "desc", "analyze", "as"];
    let inserts = tokens.first().is_some_and(|first| is_any(first, &["insert", "replace"]));
    let (mut depth, mut starts) = (0i32, Vec::new());
    let mut at = 0;
    while at + 1 < tokens.len() {
        match tokens[at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        let before = at.checked_sub(1).map(|before| &tokens[before]);
        let fits = match before {
            None => true,
            Some(before) if before.token == Token::LParen || before.token == Token::Eq => true,
            Some(before) if is_any(before, &begins) => true,
            Some(before) => inserts && depth == 0 && at > 2 && !is(before, "into"),
        };
        if fits && is(&tokens[at], "table") && matches!(tokens[at + 1].token, Token::Word(_)) {
            starts.push(at);
        }
        at += 1;
    }
    replace_all(tokens, |tokens, at| {
        starts.binary_search(&at).ok()?;
        let mut put = words(&["SELECT"], &tokens[at]);
        put.push(TokenWithSpan::new(Token::Mul, tokens[at].span));
        put.extend(words(&["FROM"], &tokens[at]));
        Some((1, put))
    });
}

/// FROM (a, b) is FROM (a CROSS JOIN b).
fn comma_in_brackets(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    // Of each open bracket: is it one of tables, and how many commas it has.
    let (mut open, mut commas): (Vec<(bool, usize)>, Vec<usize>) = (Vec::new(), Vec::new());
    for at in 0..tokens.len() {
        match tokens[at].token {
            Token::LParen => {
                let is_tables = at > 0
                    && is_any(&tokens[at - 1], &["from", "join", "straight_join"])
                    && tokens.get(at + 1).is_some_and(|next| {
                        matches!(&next.token, Token::Word(_)) && !is_any(next, &["select", "with", "values", "table"])
                    });
                open.push((is_tables, 0));
            }
            Token::RParen => drop(open.pop()),
            Token::Comma => {
                if let Some((true, count)) = open.last_mut() {
                    commas.push(at);
                    *count += 1;
                    if *count >= TABLES_MAX {
                        return Err(error::TOO_MANY_TABLES.with(&[&TABLES_MAX]));
                    }
                }
            }
            _ => {}
        }
    }
    replace_all(tokens, |tokens, at| {
        commas.binary_search(&at).ok().map(|_| (1, words(&["CROSS", "JOIN"], &tokens[at])))
    });
    Ok(())
}

/// `{ OJ a LEFT JOIN b ON ... }` of ODBC.
fn outer_join_braces(tokens: &mut Vec<TokenWithSpan>) {
    let (mut open, mut gone) = (Vec::new(), Vec::new());
    for (at, token) in tokens.iter().enumerate() {
        match token.token {
            Token::LBrace => open.push(tokens.get(at + 1).filter(|next| is(next, "oj")).map(|_| at)),
            Token::RBrace => {
                if let Some(Some(from)) = open.pop() {
                    gone.extend([from, from + 1, at]);
                }
            }
            _ => {}
        }
    }
    if gone.is_empty() {
        return;
    }
    gone.sort_unstable();
    replace_all(tokens, |_, at| gone.binary_search(&at).ok().map(|_| (1, Vec::new())));
}

/// Operators that are words, and `||`: as tokens for which the parser takes the left side over. A hook of the dialect would have to copy it, once for each operator of a chain.
fn infix_words(tokens: &mut Vec<TokenWithSpan>, grammar: &Grammar) {
    replace_all(tokens, |tokens, at| {
        let put = |count: usize, token: Token| Some((count, vec![TokenWithSpan::new(token, tokens[at].span)]));
        match &tokens[at].token {
            Token::StringConcat if !grammar.pipes_concat() => put(1, Token::make_keyword("OR")),
            Token::Word(word) if word.quote_style.is_none() && at > 0 && ends_operand(&tokens[at - 1]) => {
                let next = tokens.get(at + 1)?;
                let is_like = is(&tokens[at], "sounds") && is(next, "like");
                let begins = !matches!(next.token, Token::Comma | Token::RParen | Token::EOF | Token::Period);
                match () {
                    () if is_like => put(2, Token::CustomBinaryOperator(SOUNDS_LIKE.into())),
                    () if begins && is(&tokens[at], "div") => put(1, Token::CustomBinaryOperator(DIV.into())),
                    () if begins && is(&tokens[at], "mod") => put(1, Token::Mod),
                    () => None,
                }
            }
            _ => None,
        }
    });
}

/// May an operator of two sides follow?
fn ends_operand(token: &TokenWithSpan) -> bool {
    const BEFORE_OPERANDS: [&str; 33] = [
        "select",
        "distinct",
        "distinctrow",
        "all",
        "where",
        "having",
        "on",
        "and",
        "or",
        "xor",
        "not",
        "div",
        "mod",
        "like",
        "rlike",
        "regexp",
        "in",
        "between",
        "escape",
        "when",
        "then",
        "else",
        "case",
        "by",
        "set",
        "values",
        "limit",
        "offset",
        "binary",
        "interval",
        "as",
        "do",
        "using",
    ];
    match &token.token {
        Token::Word(word) => word.quote_style.is_some() || !is_any(token, &BEFORE_OPERANDS),
        Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::DoubleQuotedString(_)
        | Token::HexStringLiteral(_)
        | Token::SingleQuotedByteStringLiteral(_)
        | Token::NationalStringLiteral(_)
        | Token::Placeholder(_)
        | Token::RParen
        | Token::RBrace => true,
        _ => false,
    }
}

/// Takes out `INTO @a, @b`, or a file, of a query.
fn select_into(tokens: &mut Vec<TokenWithSpan>, grammar: &Grammar, text: &str) -> Result<Option<Target>> {
    if !tokens
        .iter()
        .find(|token| token.token != Token::LParen)
        .is_some_and(|first| is_any(first, &["select", "with", "values"]))
    {
        return Ok(None);
    }
    let mut depth = 0;
    let found = tokens.iter().position(|token| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        depth == 0 && is(token, "into")
    });
    let Some(from) = found else { return Ok(None) };
    let rest = tokens[from + 1..].to_vec();
    let mut cursor =
        Cursor { parser: Parser::new(grammar).with_tokens_with_locations(rest), text, duplicates: Duplicates::Fail };
    let target = cursor.select_target()?;
    tokens.drain(from..from + 1 + cursor.parser.index());
    Ok(Some(target))
}
