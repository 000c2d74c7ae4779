//! Plans that sessions share: what one session has planned is right in the other, or is not run there.

use sql_mysql::value::Value;
use sql_mysql::{Prepared, Session};
use stdx::prng::Prng;

use crate::support::{World, run, told};

const SETUP: &[&str] = &[
    "create database one",
    "create database two collate utf8mb4_bin",
    "create table one.t (id int primary key, a int, s varchar(10), key (a))",
    "create table two.t (id int primary key, a varchar(5), s varchar(10), key (s))",
    "insert into one.t values (1, 10, 'x'), (2, 20, 'X'), (3, 20, 'y'), (4, null, 'Y')",
    "insert into two.t values (1, 'p', 'x'), (2, 'q', 'X'), (3, 'r', 'z')",
    "create user full, narrow, roled",
    "create role reader",
    "grant select, update, create temporary tables on *.* to full",
    "grant select (id, s), update (s) on one.t to narrow",
    "grant select on two.t to narrow",
    "grant select on one.* to reader",
    "grant reader to roled",
    "create user definer",
    "grant select on one.t to definer",
    "create definer = definer view one.v as select id, a from one.t",
    "grant select on one.v to full, narrow",
];

/// Statements that mean one thing here and another there.
const STATEMENTS: &[&str] = &[
    "select id, s from t where id = ?",
    "select a from t where id = ?",
    "select * from t where s = 'x' order by id",
    "select count(*) from t where a = ?",
    "select id from v where id < ? order by id",
    "select id from one.t where s = 'x' || ? order by id",
    "select id, ? / 3 from one.t where id < 3 order by id",
    "select 'a' = 'A', ?",
    "select database(), current_user(), current_role(), connection_id(), ?",
    "select @v, @@sql_mode, ?",
    "select not ? between -1 and 1",
    "select id from one.t order by id, s",
    "update t set s = s where s = 'x' and ? > 0",
    "update t set s = s where id = ?",
    "select cast('2024-01-01 12:00:00' as datetime) < from_unixtime(1704110400 + ?)",
    "select 18446744073709551615 - ? > -1",
    "select id from t where a in (10, 'q', ?) order by id",
];

/// A statement that changes the plan-cache context of a session.
const MOVES: &[&str] = &[
    "use one",
    "use two",
    "set names utf8mb4 collate utf8mb4_bin",
    "set names utf8mb4",
    "set names latin1",
    "set sql_mode = ''",
    "set sql_mode = default",
    "set sql_mode = 'pipes_as_concat,ansi_quotes'",
    "set sql_mode = 'high_not_precedence'",
    "set sql_mode = 'no_unsigned_subtraction'",
    "set div_precision_increment = 8",
    "set div_precision_increment = 4",
    "set sql_select_limit = 1",
    "set sql_select_limit = default",
    "set sql_safe_updates = 1",
    "set sql_safe_updates = 0",
    "set time_zone = '+03:00'",
    "set time_zone = '+00:00'",
    "set @v = 1",
    "set @v = 'text'",
    "set role reader",
    "set role none",
    "create temporary table t select 1 id, 0.5 a, 'temporary' s",
    "drop temporary table if exists t",
    "set transaction_isolation = 'serializable'",
    "set transaction_isolation = 'repeatable-read'",
];

/// And that of all of them, or the tables below.
const UPHEAVALS: &[&str] = &[
    "grant select on *.* to narrow",
    "revoke select on *.* from narrow",
    "grant reader to narrow",
    "revoke reader from narrow",
    "revoke select on one.t from definer",
    "grant select on one.t to definer",
    "alter table one.t modify a bigint",
    "alter table one.t modify a int",
    "alter table two.t add column b int default 7",
    "alter table two.t drop column b",
    "create or replace definer = definer view one.v as select id, a from one.t where id > 1",
    "create or replace definer = definer view one.v as select id, a from one.t",
    "analyze table one.t, two.t",
];

/// The outcome, and what was warned of.
fn outcome(session: &mut Session, f: impl FnOnce(&mut Session) -> Vec<String>) -> Vec<String> {
    let mut lines = f(session);
    lines.extend(session.warnings().map(|(level, warning)| format!("{level:?} {} {}", warning.code, warning.message)));
    lines
}

fn run_prepared(session: &mut Session, sql: &str, values: &[Value]) -> Vec<String> {
    let prepared: Prepared = match session.prepare(sql) {
        Ok(prepared) => prepared,
        Err(error) => return vec![format!("error {} {}", error.code, error.message)],
    };
    let names: Vec<_> = prepared.columns.iter().map(|column| (column.name.clone(), column.ty.clone())).collect();
    let outcome = session.execute_prepared(&prepared.handle, values.to_vec());
    let mut lines = told(session, outcome);
    lines.push(format!("{names:?}"));
    lines
}

/// Nothing that is kept goes by the text with this behind it.
fn alone(sql: &str, number: u32) -> String {
    format!("{sql} /* {number} */")
}

/// Errors quote the text.
fn without_number(lines: Vec<String>, number: u32) -> Vec<String> {
    lines.into_iter().map(|line| line.replace(&format!(" /* {number} */"), "")).collect()
}

#[test]
fn whatever_others_have_planned_a_statement_does_what_it_would_do_alone() {
    let world = World::new(91);
    let mut root = world.session(1);
    for sql in SETUP {
        let answer = run(&mut root, sql);
        assert!(!answer[0].starts_with("error"), "{sql}: {answer:?}");
    }
    let users = ["full", "full", "narrow", "narrow", "roled", "roled", "root", "root"];
    let enter = |at: usize, id: u64| {
        let mut session = world.session_of(users[at], "localhost", id).expect("all may come in");
        run(&mut session, if id.is_multiple_of(4) { "use two" } else { "use one" });
        session
    };
    let mut sessions: Vec<Session> = (0..users.len()).map(|at| enter(at, at as u64 + 2)).collect();
    let mut random = Prng::new(5);
    let mut below = |end: usize| random.below(end as u64) as usize;
    for number in 0..20_000u32 {
        let at = below(sessions.len());
        match below(40) {
            0 => drop(run(&mut root, UPHEAVALS[below(UPHEAVALS.len())])),
            1 => sessions[at] = enter(at, u64::from(number) + 100),
            2..=3 => drop(run(&mut sessions[at], MOVES[below(MOVES.len())])),
            _ => {}
        }
        let session = &mut sessions[at];
        let sql = STATEMENTS[below(STATEMENTS.len())];
        let value = below(4) as i64;
        let (literal, value) = match below(3) {
            0 => (format!("'{value}'"), Value::text(value.to_string())),
            1 => (
                format!("{value}.5"),
                Value::Decimal(sql_mysql::value::Decimal::parse(&format!("{value}.5")).expect("it is one")),
            ),
            _ => (value.to_string(), Value::Int(value)),
        };
        let (shared, by_itself) = if below(2) == 0 {
            let sql = sql.replace('?', &literal);
            let shared = outcome(session, |session| run(session, &sql));
            (shared, outcome(session, |session| run(session, &alone(&sql, number))))
        } else {
            let values = if sql.contains('?') { vec![value] } else { Vec::new() };
            let shared = outcome(session, |session| run_prepared(session, sql, &values));
            (shared, outcome(session, |session| run_prepared(session, &alone(sql, number), &values)))
        };
        assert_eq!(shared, without_number(by_itself, number), "{number}: {sql} with {literal} as {}", users[at]);
    }
}

#[test]
fn what_one_session_has_prepared_another_need_not() {
    let world = World::new(92);
    let (mut one, mut two) = (world.session(1), world.session(2));
    for sql in ["create database d", "use d", "create table t (id int primary key, c varchar(5))"] {
        run(&mut one, sql);
    }
    run(&mut two, "use d");
    let columns = |session: &mut Session| session.prepare("select c from t where id = ?").expect("it parses").columns;
    let first = columns(&mut one);
    assert!(std::sync::Arc::ptr_eq(&first, &columns(&mut two)));
    assert!(two.prepared("select c from t where id = ?").is_some() && two.prepared("select c from t").is_none());
    // Another context, and the first one again.
    run(&mut two, "set sql_mode = ''");
    assert!(!std::sync::Arc::ptr_eq(&first, &columns(&mut two)));
    run(&mut two, "set sql_mode = default");
    assert!(std::sync::Arc::ptr_eq(&first, &columns(&mut two)));
    run(&mut one, "alter table t modify c varchar(9)");
    assert!(two.prepared("select c from t where id = ?").is_none());
    let anew = columns(&mut two);
    assert!(!std::sync::Arc::ptr_eq(&first, &anew) && std::sync::Arc::ptr_eq(&anew, &columns(&mut one)));
    // What reads variables is prepared by each: their types are the session's.
    let own = |session: &mut Session| session.prepare("select @v").expect("it parses").columns;
    assert!(!std::sync::Arc::ptr_eq(&own(&mut one), &own(&mut two)));
}
