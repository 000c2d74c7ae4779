//! UPDATE of several tables: `a, b SET` has a comma where the parser knows joins alone. A comma is CROSS JOIN that binds more weakly than any other join, so what follows it
//! stands in parentheses if it is a join itself.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{self, Result};
use crate::parse::limits::TABLES_MAX;

fn is(token: &TokenWithSpan, word: &str) -> bool {
    matches!(&token.token, Token::Word(found) if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

/// Between UPDATE and SET.
pub fn as_joins(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    if !tokens.first().is_some_and(|first| is(first, "update")) {
        return Ok(());
    }
    let (mut depth, mut commas, mut end) = (0i32, Vec::new(), tokens.len());
    for (at, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            Token::Comma if depth == 0 => commas.push(at),
            _ if depth == 0 && is(token, "set") => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    if end == tokens.len() {
        return Ok(());
    }
    if commas.len() >= TABLES_MAX {
        return Err(error::TOO_MANY_TABLES.with(&[&TABLES_MAX]));
    }
    // From behind, so that the places before stay what they are.
    for at in commas.into_iter().rev() {
        let span = tokens[at].span;
        let is_join = tokens[at + 1..end].iter().any(|token| is(token, "join") || is(token, "straight_join"));
        let mut words = vec![Token::make_keyword("CROSS"), Token::make_keyword("JOIN")];
        if is_join {
            words.push(Token::LParen);
            tokens.insert(end, TokenWithSpan::new(Token::RParen, span));
        }
        tokens.splice(at..=at, words.into_iter().map(|word| TokenWithSpan::new(word, span)));
        end = at;
    }
    Ok(())
}
