//! MySQL's grammar where the parser's own MySQL dialect departs from it: precedence of operators, `||`, `!`, BINARY, MOD, quotes.
//!
//! Binding strength, from weak to strong: `:=`; OR `||`; XOR; AND; NOT; comparisons and IS; LIKE, IN, BETWEEN, REGEXP; `|`; `&`; shifts; `+ -`;
//! `* / DIV %`; `^`; unary `- ~`; `!`; BINARY, COLLATE. The predicates stand above the comparisons, as in MySQL's grammar: `a = b in (c)` is `a = (b in (c))`.

use std::any::TypeId;

use sqlparser::ast::{BinaryOperator, CastKind, ColumnOption, DataType, Expr, UnaryOperator};
use sqlparser::dialect::{Dialect, MySqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, Word};

use crate::parse::notation;
use crate::scalar::SqlMode;

const ASSIGN: u8 = 1;
const OR: u8 = 5;
const XOR: u8 = 7;
const AND: u8 = 10;
const NOT: u8 = 15;
const COMPARE: u8 = 20;
const PREDICATE: u8 = 22;
const PIPE: u8 = 24;
const AMPERSAND: u8 = 26;
const SHIFT: u8 = 28;
const PLUS: u8 = 30;
const TIMES: u8 = 40;
const CARET: u8 = 42;
const UNARY: u8 = 45;
const BANG: u8 = 46;
const BINARY: u8 = 47;
const ARROW: u8 = 50;

/// Operators that `rewrite` makes of words.
pub const DIV: &str = "DIV";
pub const SOUNDS_LIKE: &str = "SOUNDS LIKE";

/// The dialect of one session: `sql_mode` decides what `||` and `"` mean.
#[derive(Debug)]
pub struct Grammar {
    pipes_concat: bool,
    ansi_quotes: bool,
    backslash_escapes: bool,
    high_not: bool,
}

impl Grammar {
    pub fn new(mode: SqlMode) -> Grammar {
        Grammar {
            pipes_concat: mode.has(SqlMode::PIPES_AS_CONCAT),
            ansi_quotes: mode.has(SqlMode::ANSI_QUOTES),
            backslash_escapes: !mode.has(SqlMode::NO_BACKSLASH_ESCAPES),
            high_not: mode.has(SqlMode::HIGH_NOT_PRECEDENCE),
        }
    }

    pub fn backslash_escapes(&self) -> bool {
        self.backslash_escapes
    }

    pub fn pipes_concat(&self) -> bool {
        self.pipes_concat
    }

    fn word_precedence(&self, parser: &Parser, word: &Word) -> u8 {
        match word.keyword {
            Keyword::OR => OR,
            Keyword::XOR => XOR,
            Keyword::AND => AND,
            Keyword::NOT => match &parser.peek_nth_token_ref(1).token {
                Token::Word(next) => match next.keyword {
                    Keyword::IN | Keyword::BETWEEN | Keyword::LIKE | Keyword::RLIKE | Keyword::REGEXP => PREDICATE,
                    _ => 0,
                },
                _ => 0,
            },
            Keyword::IS => COMPARE,
            Keyword::IN | Keyword::BETWEEN | Keyword::LIKE | Keyword::RLIKE | Keyword::REGEXP | Keyword::MEMBER => {
                PREDICATE
            }
            Keyword::DIV => TIMES,
            _ if is_mod(word) => TIMES,
            _ => 0,
        }
    }
}

fn is_mod(word: &Word) -> bool {
    word.quote_style.is_none() && word.value.eq_ignore_ascii_case("mod")
}

fn binary(left: &Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left.clone()), op, right: Box::new(right) }
}

impl Dialect for Grammar {
    fn dialect(&self) -> TypeId {
        TypeId::of::<MySqlDialect>()
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        MySqlDialect {}.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        MySqlDialect {}.is_identifier_part(ch)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        ch == '`' || (self.ansi_quotes && ch == '"')
    }

    fn identifier_quote_style(&self, _identifier: &str) -> Option<char> {
        Some('`')
    }

    fn supports_string_literal_backslash_escape(&self) -> bool {
        self.backslash_escapes
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        match precedence {
            Precedence::Period => 100,
            Precedence::DoubleColon => 60,
            Precedence::MulDivModOp => UNARY,
            Precedence::PlusMinus => PLUS,
            Precedence::Xor => XOR,
            Precedence::Ampersand => AMPERSAND,
            Precedence::Caret => CARET,
            Precedence::Pipe => PIPE,
            Precedence::Between | Precedence::Like => PREDICATE,
            Precedence::Eq | Precedence::Is => COMPARE,
            Precedence::UnaryNot if self.high_not => BANG,
            Precedence::UnaryNot => NOT,
            Precedence::And => AND,
            Precedence::Or => OR,
            _ => ARROW,
        }
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        let strength = match &parser.peek_token_ref().token {
            Token::CustomBinaryOperator(word) if word == SOUNDS_LIKE => PREDICATE,
            Token::CustomBinaryOperator(_) => TIMES,
            Token::Word(word) => self.word_precedence(parser, word),
            Token::Assignment => ASSIGN,
            Token::StringConcat if self.pipes_concat => UNARY - 1,
            Token::StringConcat => OR,
            Token::Overlap => AND,
            Token::Eq | Token::Lt | Token::LtEq | Token::Neq | Token::Gt | Token::GtEq | Token::Spaceship => COMPARE,
            Token::Pipe => PIPE,
            Token::Ampersand => AMPERSAND,
            Token::ShiftLeft | Token::ShiftRight => SHIFT,
            Token::Plus | Token::Minus => PLUS,
            Token::Mul | Token::Div | Token::Mod => TIMES,
            Token::Caret => CARET,
            Token::Arrow | Token::LongArrow => ARROW,
            Token::Period => 100,
            _ => 0,
        };
        Some(Ok(strength))
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        let not =
            |op, expr: Result<Expr, ParserError>| Some(expr.map(|expr| Expr::UnaryOp { op, expr: Box::new(expr) }));
        match &parser.peek_token_ref().token {
            Token::ExclamationMark => {
                parser.next_token();
                not(UnaryOperator::Not, parser.parse_subexpr(BANG - 1))
            }
            Token::DoubleExclamationMark => {
                parser.next_token();
                let inner = parser.parse_subexpr(BANG - 1);
                let inner = inner.map(|expr| Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(expr) });
                not(UnaryOperator::Not, inner)
            }
            Token::Tilde => {
                parser.next_token();
                not(UnaryOperator::BitwiseNot, parser.parse_subexpr(UNARY))
            }
            Token::Word(word) if word.keyword == Keyword::BINARY && word.quote_style.is_none() => {
                parser.next_token();
                Some(parser.parse_subexpr(BINARY).map(|expr| Expr::Cast {
                    kind: CastKind::Cast,
                    expr: Box::new(expr),
                    data_type: DataType::Binary(None),
                    format: None,
                }))
            }
            Token::Word(word) if word.quote_style.is_none() => {
                let word = word.value.clone();
                notation::prefix(parser, &word)
            }
            _ => None,
        }
    }

    fn parse_infix(&self, parser: &mut Parser, left: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
        let op = match &parser.peek_token_ref().token {
            Token::StringConcat if !self.pipes_concat => BinaryOperator::Or,
            Token::Word(word) if word.keyword == Keyword::DIV => BinaryOperator::MyIntegerDivide,
            Token::Word(word) if is_mod(word) => BinaryOperator::Modulo,
            _ => return None,
        };
        parser.next_token();
        Some(parser.parse_subexpr(precedence).map(|right| binary(left, op, right)))
    }

    fn supports_string_literal_concatenation(&self) -> bool {
        true
    }

    fn ignores_wildcard_escapes(&self) -> bool {
        true
    }

    fn supports_numeric_prefix(&self) -> bool {
        true
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        true
    }

    fn require_interval_qualifier(&self) -> bool {
        true
    }

    fn supports_limit_comma(&self) -> bool {
        true
    }

    fn supports_create_table_select(&self) -> bool {
        true
    }

    fn supports_insert_set(&self) -> bool {
        true
    }

    fn supports_user_host_grantee(&self) -> bool {
        true
    }

    fn is_table_factor_alias(&self, explicit: bool, kw: &Keyword, parser: &mut Parser) -> bool {
        MySqlDialect {}.is_table_factor_alias(explicit, kw, parser)
    }

    fn supports_table_hints(&self) -> bool {
        true
    }

    fn requires_single_line_comment_whitespace(&self) -> bool {
        true
    }

    fn supports_match_against(&self) -> bool {
        true
    }

    fn supports_select_modifiers(&self) -> bool {
        true
    }

    fn supports_comma_separated_set_assignments(&self) -> bool {
        true
    }

    fn supports_update_order_by(&self) -> bool {
        true
    }

    fn supports_data_type_signed_suffix(&self) -> bool {
        true
    }

    fn supports_cross_join_constraint(&self) -> bool {
        true
    }

    fn supports_double_ampersand_operator(&self) -> bool {
        true
    }

    fn supports_comment_optimizer_hint(&self) -> bool {
        true
    }

    fn supports_constraint_keyword_without_name(&self) -> bool {
        true
    }

    fn supports_key_column_option(&self) -> bool {
        true
    }

    /// ZEROFILL, which stands behind UNSIGNED only (`rewrite`); CHARSET, the synonym of CHARACTER SET.
    fn parse_column_option(
        &self,
        parser: &mut Parser,
    ) -> Result<Option<Result<Option<ColumnOption>, ParserError>>, ParserError> {
        let Token::Word(word) = &parser.peek_token_ref().token else { return Ok(None) };
        if word.quote_style.is_some() {
            return Ok(None);
        }
        if word.value == "ZEROFILL" {
            return Ok(Some(Ok(Some(ColumnOption::DialectSpecific(vec![parser.next_token().token])))));
        }
        if word.value.eq_ignore_ascii_case("charset") {
            parser.next_token();
            return Ok(Some(Ok(Some(ColumnOption::CharacterSet(parser.parse_object_name(false)?)))));
        }
        Ok(None)
    }

    fn supports_group_by_with_modifier(&self) -> bool {
        true
    }

    fn supports_left_associative_joins_without_parens(&self) -> bool {
        false
    }
}
