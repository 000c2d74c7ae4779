//! An INSERT of many rows is cut into pieces and answers as if it were not: each statement runs a second time with an expression in its first row, which is parsed as a whole.

use sql_mysql::Session;

use crate::support::{World, run};

const ROWS: usize = 1500;

fn session(world: &World) -> Session {
    let mut session = world.session(1);
    for sql in [
        "create database test",
        "use test",
        "create table t (id int primary key auto_increment, k int not null, s varchar(40), b varbinary(10), x double, check (k < 100000))",
        "create unique index by_s on t (s)",
        "create view v as select id, k, s from t where k >= 0 with check option",
    ] {
        assert!(run(&mut session, sql)[0].starts_with("ok"), "{sql}");
    }
    session
}

/// Rows of (k, s), some of which are given.
fn rows(first: &str, odd: &[(usize, &str)]) -> String {
    let row = |at: usize| match odd.iter().find(|(odd, _)| *odd == at) {
        Some((_, row)) => (*row).to_owned(),
        None if at == 0 => format!("({first}, 'text 0')"),
        None => format!("({at},'text; {at}, it''s \\'long\\' (more)')"),
    };
    (0..ROWS).map(row).collect::<Vec<_>>().join(", ")
}

/// Returns the result, the warnings and the table afterwards.
fn answers(before: &[&str], head: &str, (first, odd): (&str, &[(usize, &str)]), tail: &str) -> Vec<Vec<String>> {
    let world = World::new(1);
    let mut session = session(&world);
    for sql in before {
        run(&mut session, sql);
    }
    let text = format!("{head} values {}{tail}", rows(first, odd));
    assert!(text.len() > 40_000);
    let mut all = vec![run(&mut session, &text)];
    for sql in [
        "show warnings",
        "select last_insert_id(), row_count()",
        "select count(*), sum(k), min(id), max(id), count(distinct s), sum(length(s)), count(b), sum(x) from t",
        "select * from t where id in (1, 700, 1400, 1500) order by id",
        "insert into t (k, s) values (7, 'next')",
        "select max(id) from t",
    ] {
        all.push(run(&mut session, sql));
    }
    all
}

#[test]
fn pieces_answer_what_the_whole_does() {
    type Odd<'a> = &'a [(usize, &'a str)];
    let cases: &[(&[&str], &str, Odd<'_>, &str)] = &[
        (&[], "insert into t (k, s)", &[], ""),
        (&[], "INSERT INTO `t` (k, `s`)", &[], " ; "),
        (&["insert into t (k, s) values (5, 'text 0')"], "insert into t (k, s)", &[], ""),
        (&[], "insert into t (k, s)", &[(1400, "(9, 'text 0')")], ""),
        (&[], "insert into t (k, s)", &[(1400, "(100000, 'too much')")], ""),
        (
            &[],
            "insert ignore into t (k, s)",
            &[(1400, "(9, 'text 0')"), (1300, "(100000, 'too much')"), (9, "(null, 'x')")],
            "",
        ),
        (&[], "replace t (k, s)", &[(700, "(3, 'twice')"), (1400, "(9, 'twice')"), (1499, "(10, 'twice')")], ""),
        (
            &[],
            "insert into t (k, s)",
            &[(700, "(3, 'twice')"), (1499, "(10, 'twice')")],
            " on duplicate key update k = k + values(k)",
        ),
        (
            &[],
            "insert into t (k, s)",
            &[(700, "(3, 'twice')"), (1499, "(10, 'twice')")],
            " as new on duplicate key update k = t.k + new.k, x = 1.5",
        ),
        (&[], "insert into t (k, s)", &[(1111, "(1, 'a text that is longer than what its column may hold')")], ""),
        (
            &["set sql_mode = ''"],
            "insert into t (k, s)",
            &[(1111, "(1, 'a text that is longer than what its column may hold')"), (1200, "('x', 1)")],
            "",
        ),
        (&["set sql_mode = 'no_backslash_escapes'"], "insert into t (k, s)", &[], ""),
        (&["set sql_mode = 'ansi_quotes'"], "insert into t (k, s)", &[(800, "(1, \"s\")")], ""),
        (
            &[],
            "insert into t (k, s)",
            &[(800, "(1, \"a\"), (-1, .5), (+2, 1e3), (3, 0x41), (4, x'42'), (5, _binary 'c'), (true, NULL)")],
            "",
        ),
        (&[], "insert into t (k, s)", &[(1499, "(1)")], ""),
        (&[], "insert into t (k, s)", &[(1499, "(1, 2, 3)")], ""),
        (&[], "insert into t (k, s)", &[(1499, "(1, nothing)")], ""),
        (&[], "insert into t (k, s)", &[(1499, "(1, 'a'")], ""),
        (&[], "insert into t (k, s)", &[], " on duplicate key update nothing = 1"),
        (&[], "insert into t (k, s)", &[], " on duplicate nothing"),
        (&[], "insert into t (k)", &[], ""),
        (&[], "insert into nothing (k, s)", &[], ""),
        (&[], "insert into v (k, s)", &[], ""),
        (&[], "insert into v (k, s)", &[(1400, "(-1, 'not of the view')")], ""),
        (
            &["set autocommit = 0", "insert into t (k, s) values (8, 'before')"],
            "insert into t (k, s)",
            &[(1400, "(9, 'before')")],
            "",
        ),
        (&["start transaction read only"], "insert into t (k, s)", &[], ""),
        (&["lock tables t read"], "insert into t (k, s)", &[], ""),
    ];
    for (before, head, odd, tail) in cases {
        let (cut, whole) = (answers(before, head, ("0", odd), tail), answers(before, head, ("0 + 0", odd), tail));
        assert_eq!(cut, whole, "{before:?} {head} {odd:?} {tail}");
    }
}

#[test]
fn the_rows_of_all_pieces_are_one_statement() {
    let world = World::new(1);
    let mut session = session(&world);
    let text = format!("insert into t (k, s) values {}", rows("0", &[]));
    assert_eq!(run(&mut session, &text), ["ok 1500, id 1, Records: 1500  Duplicates: 0  Warnings: 0"]);
    let again = run(&mut session, &text);
    assert!(again[0].starts_with("error 1062 "), "{again:?}");
    assert_eq!(run(&mut session, "select count(*), sum(k) from t")[1], format!("1500 | {}", 1500 * 1499 / 2));
}
