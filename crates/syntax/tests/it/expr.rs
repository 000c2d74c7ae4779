//! Operators bind as in MySQL.

use syntax::{Mode, parse_expression};

fn drawn(text: &str, mode: Mode) -> String {
    match parse_expression(text, mode) {
        Ok(tree) => tree.to_string().replace('`', ""),
        Err(error) => format!("{error:?}"),
    }
}

#[test]
fn operators_bind_as_in_mysql() {
    for (text, expected) in [
        ("a || b and c", "(a or (b and c))"),
        ("a xor b or c", "((a xor b) or c)"),
        ("a and b xor c", "((a and b) xor c)"),
        ("a and b && c and d", "(a and b and c and d)"),
        ("not a = b", "(not((a = b)))"),
        ("!a = b", "((not(a)) = b)"),
        ("a = b like c", "(a = (b like c))"),
        ("a = b in (c)", "(a = (b in (c)))"),
        ("a between b and c = d", "((a between b and c) = d)"),
        ("a between b and c between d and e", "(a between b and (c between d and e))"),
        ("a is null = b", "((a is null) = b)"),
        ("a is null is not null", "((a is null) is not null)"),
        ("a | b & c << d + e * f ^ g", "(a | (b & (c << (d + (e * (f ^ g))))))"),
        ("-a ^ b", "(-(a) ^ b)"),
        ("-a * b", "(-(a) * b)"),
        ("a - b - c", "((a - b) - c)"),
        ("a - (b - c)", "(a - (b - c))"),
        ("a div b mod c", "((a DIV b) % c)"),
        ("a = b collate utf8mb4_bin", "(a = (b collate utf8mb4_bin))"),
        ("a = b = c", "((a = b) = c)"),
        ("1--2", "(1 - -(2))"),
        ("a + interval 1 day - interval b + 1 hour + 2", "(((a + interval 1 day) - interval (b + 1) hour) + 2)"),
        ("a + interval(1, 2)", "(a + interval(1,2))"),
        ("interval 1 day + a", "(a + interval 1 day)"),
        ("@a := 1 + 2", "(@a:=(1 + 2))"),
        ("a in ((select 1))", "(a in (select 1))"),
        ("((select 1))", "(select 1)"),
        ("position('a' in b)", "locate('a',b)"),
        ("count(*) over ()", "count(*) over ()"),
        ("x'41' 'b'", "Error { problem: Syntax, at: 6 }"),
        ("1 is true = 1", "Error { problem: Syntax, at: 10 }"),
        ("a like b like c", "Error { problem: Syntax, at: 9 }"),
        ("1 = not 1", "Error { problem: Syntax, at: 4 }"),
    ] {
        assert_eq!(drawn(text, Mode::default()), expected, "{text}");
    }
}

#[test]
fn sql_mode_decides() {
    let pipes = Mode { pipes_as_concat: true, ..Mode::default() };
    assert!(parse_expression("a || b ^ c", pipes).is_ok());
    assert_eq!(drawn("-a || b * c", pipes), drawn("concat(-a, b) * c", Mode::default()));
    let high = Mode { high_not_precedence: true, ..Mode::default() };
    assert_eq!(drawn("not a = b", high), "((not(a)) = b)");
    let ansi = Mode { ansi_quotes: true, ..Mode::default() };
    assert_eq!(drawn("\"a\"\"b\".\"c\"", ansi), "a\"b.c");
    let plain = Mode { no_backslash_escapes: true, ..Mode::default() };
    assert_eq!(drawn("'a\\'", plain), "'a\\\\'");
    assert!(parse_expression("now ()", Mode::default()).is_ok());
    assert!(parse_expression("count (*)", Mode::default()).is_err());
    assert!(parse_expression("count (*)", Mode { ignore_space: true, ..Mode::default() }).is_ok());
}
