//! Words in MySQL's order that the parser knows in another one, or not: changed in the tokens before it sees them.

use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use crate::error::{Result, SqlError};
use crate::parse::cursor::Cursor;
use crate::parse::dialect::Grammar;
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
        while tokens.get(1).is_some_and(|token| is_any(token, &["low_priority", "quick"])) {
            tokens.remove(1);
        }
    }
    super::commas::as_joins(&mut tokens);
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
        comma_in_brackets(&mut tokens);
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
    let mut at = 0;
    while at < tokens.len() {
        if is(&tokens[at], "year") {
            let has_length = tokens.get(at + 1).is_some_and(|token| token.token == Token::LParen);
            let behind = (at + if has_length { 4 } else { 1 }).min(tokens.len());
            tokens.drain(behind..behind + count(&tokens[behind..]));
        }
        let attributes = count(&tokens[at..]);
        if tokens[at..at + attributes].iter().any(|token| is(token, "zerofill")) {
            let put = words(&["UNSIGNED", "ZEROFILL"], &tokens[at]);
            tokens.splice(at..at + attributes, put);
            at += 2;
            continue;
        }
        if is(&tokens[at], "numeric") {
            tokens[at].token = Token::make_keyword("DECIMAL");
        }
        at += attributes.max(1);
    }
}

/// LOCK IN SHARE MODE is FOR SHARE.
fn lock_in_share_mode(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at + 3 < tokens.len() {
        let words_are =
            ["lock", "in", "share", "mode"].iter().enumerate().all(|(nth, word)| is(&tokens[at + nth], word));
        if words_are {
            let put = words(&["FOR", "SHARE"], &tokens[at]);
            tokens.splice(at..at + 4, put);
        }
        at += 1;
    }
}

/// NTH_VALUE(...) FROM FIRST OVER ... says what is the case anyway.
fn from_first(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at + 3 < tokens.len() {
        if tokens[at].token == Token::RParen
            && is(&tokens[at + 1], "from")
            && is(&tokens[at + 2], "first")
            && is_any(&tokens[at + 3], &["over", "respect"])
        {
            tokens.drain(at + 1..at + 3);
        }
        at += 1;
    }
}

/// TABLE t, where a query can stand, is SELECT * FROM t.
fn table_statement(tokens: &mut Vec<TokenWithSpan>) {
    let begins = ["union", "all", "distinct", "intersect", "except", "explain", "describe", "desc", "analyze", "as"];
    let inserts = tokens.first().is_some_and(|first| is_any(first, &["insert", "replace"]));
    let mut depth = 0i32;
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
            let mut put = words(&["SELECT"], &tokens[at]);
            put.push(TokenWithSpan::new(Token::Mul, tokens[at].span));
            put.extend(words(&["FROM"], &tokens[at]));
            tokens.splice(at..=at, put);
        }
        at += 1;
    }
}

/// FROM (a, b) is FROM (a CROSS JOIN b).
fn comma_in_brackets(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at + 2 < tokens.len() {
        let opens = is_any(&tokens[at], &["from", "join", "straight_join"])
            && tokens[at + 1].token == Token::LParen
            && matches!(&tokens[at + 2].token, Token::Word(_))
            && !is_any(&tokens[at + 2], &["select", "with", "values", "table"]);
        at += 1;
        if !opens {
            continue;
        }
        let (mut depth, mut inside) = (0, at);
        while inside < tokens.len() {
            match tokens[inside].token {
                Token::LParen => depth += 1,
                Token::RParen if depth == 1 => break,
                Token::RParen => depth -= 1,
                Token::Comma if depth == 1 => {
                    let put = words(&["CROSS", "JOIN"], &tokens[inside]);
                    tokens.splice(inside..=inside, put);
                }
                _ => {}
            }
            inside += 1;
        }
    }
}

/// `{ OJ a LEFT JOIN b ON ... }` of ODBC.
fn outer_join_braces(tokens: &mut Vec<TokenWithSpan>) {
    while let Some(from) = tokens.windows(2).position(|pair| pair[0].token == Token::LBrace && is(&pair[1], "oj")) {
        let Some(to) = tokens[from..].iter().position(|token| token.token == Token::RBrace) else { return };
        tokens.remove(from + to);
        tokens.drain(from..from + 2);
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
