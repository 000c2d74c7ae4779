//! Long and deeply nested texts: an answer in time linear in the text, on a small stack (SY-1, SY-2, SY-3, SY-4, SY-8).
//!
//! `STRESS_VERBOSE` prints tables of times and heights.

use std::cell::Cell;
use std::hint::black_box;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use syntax::tree::{HEIGHT_MAX, TOKENS_MAX};
use syntax::{Error, Mode, Parsed, Problem, parse, parse_unless};

/// The stack of the threads that parse.
const STACK_BYTES: usize = 2 << 20;

/// Repetitions of a construct that repeats: the largest text is ten times as long as the one before.
const WIDE: [usize; 4] = [0, 100, 3_000, 30_000];

/// Repetitions of what costs next to nothing each.
const CHEAP: [usize; 4] = [0, 100, 100_000, 1_000_000];

/// Repetitions of a construct that nests; all are beyond [`HEIGHT_MAX`].
const TALL: [usize; 3] = [10_000, 100_000, 1_000_000];

/// Every construct that nests does so at least that often.
const TALL_LEAST: usize = 60;

/// The most that ten times the text may cost.
const RATIO_MAX: f64 = 50.0;

/// A shorter time counts as this one: caches and page faults decide it, not the text.
const LEAST: Duration = Duration::from_millis(1);

/// Constructs that repeat: what stands before, what is repeated, what stands after. Trees of them are lists.
const REPEATED: &[(&str, &str, &str)] = &[
    // Operators.
    ("select 1", " + 1", ""),
    ("select 1", " - 1", ""),
    ("select 1", " * 1", ""),
    ("select 1", " / 1", ""),
    ("select 1", " div 1", ""),
    ("select 1", " mod 1", ""),
    ("select 1", " % 1", ""),
    ("select 1", " & 1", ""),
    ("select 1", " | 1", ""),
    ("select 1", " << 1", ""),
    ("select 1", " >> 1", ""),
    ("select 1", " ^ 1", ""),
    ("select 1", " and 1", ""),
    ("select 1", " && 1", ""),
    ("select 1", " or 1", ""),
    ("select 1", " || 1", ""),
    ("select 1", " xor 1", ""),
    ("select 1", " + 1 * 2", ""),
    ("select 1", " or a = 1 and b", ""),
    ("select 1", " and a between 1 and 2", ""),
    ("select 1", " and not 1", ""),
    ("select 1", " + -1", ""),
    // Lists in expressions.
    ("select 1 in (1", ", 1", ")"),
    ("select 1 not in (1", ", 1", ")"),
    ("select (1, 1) in ((1, 1)", ", (1, 1)", ")"),
    ("select (1", ", 1", ") = 1"),
    ("select row(1, 1", ", 1", ") = 1"),
    ("select case", " when 1 then 1", " when 2 then 2 end"),
    ("select case a", " when 1 then 1", " when 2 then 2 else 1 end"),
    ("select f(1", ", 1", ")"),
    ("select f(1)", " + f(1)", ""),
    ("select interval(1", ", 1", ", 2)"),
    ("select char(1", ", 1", " using latin1)"),
    ("select count(distinct 1", ", 1", ")"),
    ("select group_concat(1", ", 1", " order by 1)"),
    ("select group_concat(1 order by 1", ", 1 desc", " separator 'x')"),
    ("select grouping(a", ", a", ")"),
    ("select sum(a) over (partition by 1", ", 1", ")"),
    ("select sum(a) over (order by 1", ", 1", ")"),
    ("select 1", ", sum(a) over (rows between 1 preceding and interval 1 day following)", ""),
    ("select match (a", ", a", ") against ('b')"),
    ("select 1", ", cast(a as char(10) charset latin1)", ""),
    ("select 1", ", a -> '$'", ""),
    ("select 1", ", @a := 1", ""),
    ("select 1", ", @@global.a", ""),
    ("select 1", ", {d '2020-01-01'}", ""),
    ("select 1", ", _latin1'a'", ""),
    ("select 1", ", exists (select 1)", ""),
    ("select 1", ", a = any (select 1)", ""),
    ("select 1", ", json_value(a, '$' returning char null on empty error on error)", ""),
    // Query blocks.
    ("select 1", ", a", ""),
    ("select 1", ", a.b.c", ""),
    ("select 1", ", t.*, s.t.*", ""),
    ("select 1", ", 1 as a", ""),
    ("select 1 from t", ", t", ""),
    ("select 1 from s.t", ", s.t as a", ""),
    ("select 1 from t", " join t on 1", ""),
    ("select 1 from t", " inner join t using (a)", ""),
    ("select 1 from t", " left join t on 1", ""),
    ("select 1 from t", " right outer join t on 1", ""),
    ("select 1 from t", " natural join t", ""),
    ("select 1 from t", " natural left join t", ""),
    ("select 1 from t", " straight_join t on 1", ""),
    ("select 1 from t", " join (t, t) on 1", ""),
    ("select 1 from t", " join (select 1) t on 1", ""),
    ("select 1 from t", ", lateral (select 1) t", ""),
    ("select 1 from (t", ", t", ")"),
    ("select 1 from t join t using (a", ", a", ")"),
    ("select 1 from t use index (a", ", a", ")"),
    ("select 1 from t", " use index for join (a)", ""),
    ("select 1 from t partition (a", ", a", ")"),
    ("select 1 from (select 1) t (a", ", a", ")"),
    ("select 1 from json_table('', '$' columns (a for ordinality", ", a int path '$'", ")) t"),
    (
        "select 1 from json_table('', '$' columns (a for ordinality",
        ", nested path '$' columns (a for ordinality)",
        ")) t",
    ),
    ("select 1 from t where 1", " or a", ""),
    ("select 1 from t group by 1", ", 1", " with rollup"),
    ("select 1 from t group by rollup (1", ", 1", ")"),
    ("select 1 from t having 1", " and 1", ""),
    ("select 1 from t window w as ()", ", w as (w order by 1)", ""),
    ("select 1 from t order by 1", ", 1 desc", ""),
    ("select 1 from t for update of t", ", t", ""),
    ("select 1 from t for update", " for share of t nowait", ""),
    ("select 1 into @a", ", @a", ""),
    ("select 1", " union select 1", ""),
    ("select 1", " union all select 1", " order by 1 limit 1"),
    ("select 1", " except select 1", ""),
    ("select 1", " intersect select 1", ""),
    ("select 1", " union select 1 intersect select 1", ""),
    ("(select 1)", " union (select 1)", ""),
    ("table t", " union table t", ""),
    ("values row(1)", ", row(1)", ""),
    ("values row(1", ", 1", ")"),
    ("with a as (select 1)", ", a as (select 1)", " select 1"),
    ("with recursive a (a", ", a", ") as (select 1) select 1"),
    ("select (select 1)", " + (select 1)", ""),
    ("select a in ((select 1)", ", (select 1)", ", 1)"),
    // Changes.
    ("insert into t values (1)", ", (1)", ""),
    ("insert into t values (1", ", default", ")"),
    ("insert into t values (1, 'abc', null)", ", (1, 'abc', null)", " as n (a) on duplicate key update a = 1"),
    ("insert into t (a", ", a", ") values (1)"),
    ("insert into t partition (a", ", a", ") values (1)"),
    ("insert into t values (1) as n (a", ", a", ")"),
    ("insert into t set a = 1", ", a = 1", ""),
    ("insert into t values (1) on duplicate key update a = 1", ", a = values(a)", ""),
    ("insert into t values (1) returning a", ", a", ""),
    ("replace into t values (1)", ", (1)", ""),
    ("update t set a = 1", ", a = 1", ""),
    ("update t", ", t", " set a = 1"),
    ("update t set a = 1 order by 1", ", 1", " limit 1"),
    ("delete t", ", t", " from t"),
    ("delete from t", ", t.*", " using t"),
    ("delete from t where 1", " and 1", ""),
    ("load data infile '' into table t (a", ", @a", ")"),
    ("load data infile '' into table t set a = 1", ", a = 1", ""),
    ("load data infile '' into table t fields terminated by 'a'", " enclosed by 'b'", ""),
    // Definitions.
    ("create table t (a int", ", a int", ")"),
    ("create table t (a int", ", a varchar(10) character set latin1 not null default 'a' comment 'b'", ")"),
    ("create table t (a int", ", key a (a)", ")"),
    ("create table t (a int", ", constraint a foreign key (a) references t (a) on delete cascade", ")"),
    ("create table t (a int", ", check (a > 1)", ")"),
    ("create table t (a int", " not null", ")"),
    ("create table t (a int", " check (a > 1)", ")"),
    ("create table t (a int", " unsigned", ")"),
    ("create table t (a enum('a'", ", 'a'", "))"),
    ("create table t (a int, key a (a", ", a desc", "))"),
    ("create table t (a int, key a (a)", " comment 'a'", ")"),
    ("create table t (a int, foreign key (a", ", a", ") references t (a))"),
    ("create table t (a int, foreign key (a) references t (a", ", a", "))"),
    ("create table t (a int)", " engine = a", ""),
    ("create table t (a int) engine = a", ", engine = a", ""),
    ("create table t (a int) union = (t", ", t", ")"),
    ("create index a on t (a", ", (a + 1)", ")"),
    ("create view v (a", ", a", ") as select 1"),
    ("create database a", " charset latin1", ""),
    ("create sequence s", " start with 1", ""),
    ("alter table t add a int", ", add a int", ""),
    ("alter table t drop a", ", drop a", ""),
    ("alter table t engine = a", " engine = a", ""),
    ("alter table t add (a int", ", key (a)", ")"),
    ("alter table t order by a", ", a", ""),
    ("alter table t rename column a to b", ", alter a set default 1", ""),
    ("drop table t", ", t", ""),
    ("drop view t", ", t", ""),
    ("rename table a to b", ", a to b", ""),
    // Others.
    ("do 1", ", 1", ""),
    ("call p(1", ", 1", ")"),
    ("set a = 1", ", a = 1", ""),
    ("set @a = 1", ", @a = 1", ""),
    ("set names a", ", names a", ""),
    ("start transaction read only", ", read only", ""),
    ("lock tables t read", ", t write", ""),
    ("flush logs", ", logs", ""),
    ("flush tables t", ", t", ""),
    ("analyze table t", ", t", ""),
    ("analyze table t update histogram on a", ", a", ""),
    ("check table t", " quick", ""),
    ("execute a using @a", ", @a", ""),
    ("create user a", ", a identified by 'b'", ""),
    ("create user a", " account lock", ""),
    ("drop user a", ", a", ""),
    ("rename user a to b", ", a to b", ""),
    ("grant select", ", select (a)", " on t to u"),
    ("grant select (a", ", a", ") on t to u"),
    ("grant select on t to u", ", u@h", ""),
    ("grant r", ", r", " to u"),
    ("revoke select", ", select", " on t from u"),
    ("revoke r", ", r", " from u"),
    ("set role r", ", r", ""),
    ("set default role r", ", r", " to u"),
    ("alter user u default role r", ", r", ""),
    ("show grants for u using r", ", r", ""),
    ("show tables where 1", " or 1", ""),
    ("explain select 1", " + 1", ""),
];

/// Constructs that repeat and whose repetitions cost little.
const REPEATED_CHEAPLY: &[(&str, &str, &str)] = &[
    ("select 1", " ", ""),
    ("select 1", "\n", " + 1"),
    ("select 1", "/**/", " + 1"),
    ("select 1 /*", "a", "*/ + 1"),
    ("select 1", "-- a\n", "+ 1"),
    ("select 1", "# a\n", "+ 1"),
    ("select 1", "/*!*/", " + 1"),
    ("select 1", "/*!99999 a */", " + 1"),
    ("select 1 /*!99999", " /* a */", "*/ + 1"),
    ("select", " /*+ a */", " 1"),
    ("select 'a'", " 'b'", ""),
    ("select n'a'", " 'b'", ""),
    ("select 'a", "b", "'"),
    ("select 'a", "\\n", "'"),
    ("select 'a", "''", "'"),
    ("select 'a", "\"", "'"),
    ("select `a", "b", "`"),
    ("select `a", "``", "`"),
    ("select a", "b", ""),
    ("select 1", "1", ""),
    ("select 1.", "1", ""),
    ("select 1.", "1", "e1"),
    ("select 0x41", "41", ""),
    ("select x'41", "41", "'"),
    ("select 0b1", "1", ""),
    ("select @a", "b", ""),
    ("select @'a", "b", "'"),
    ("select 1", ";", ""),
    ("select", " all", " 1"),
    ("select", " straight_join", " 1"),
];

/// Repetitions that are read one by one and refused: the error is found at once or at the end.
const REFUSED: &[(&str, &str, &str)] = &[
    ("", "explain ", "select 1"),
    ("", "(", ""),
    ("select ", "(", ""),
    ("select 1", ")", ""),
    ("select 1 from ", "(", ""),
    ("select ", "{", ""),
    ("select 1", " is true", ""),
    ("select 1 like 1", " like 1", ""),
    ("select 'a", "b", ""),
    ("select `a", "b", ""),
    ("select 1 /*", "a", ""),
    ("select 1 ", "/*!", ""),
    ("select 1 ", "/*!99999 ", ""),
    ("select 1e4", "0", "0.0e999999"),
    ("grant a", ", a", ""),
    ("revoke a", " a", " from"),
    ("insert into t values (1)", ", (1)", ", "),
    ("select 1", ", 1", ","),
    ("select 1", " + 1", " +"),
    ("select 1", " union select 1", " union"),
    ("create table t (a int", ", a int", ",)"),
    ("", "\0", ""),
    ("", "@", ""),
    ("", "\\", ""),
    ("", "'", "\\"),
    ("with a as ", "(", ""),
    ("select a", ".a", ""),
    ("set a", ".a", ".a.a = 1"),
    ("values ", "values ", ""),
    ("select values ", "(values ", ""),
    ("select interval ", "interval ", ""),
    ("select 1 from t", " left join t", ""),
];

/// Constructs that nest: what stands before, each beginning, the innermost, each end, what stands after.
const NESTED: &[(&str, &str, &str, &str, &str)] = &[
    // Operators.
    ("select ", "(", "1", ")", ""),
    ("select ", "- ", "1", "", ""),
    ("select ", "+", "1", "", ""),
    ("select ", "~", "1", "", ""),
    ("select ", "!", "1", "", ""),
    ("select ", "not ", "1", "", ""),
    ("select ", "binary ", "1", "", ""),
    ("select ", "-(", "1", ")", ""),
    ("select ", "1 + (2 * ", "1", ")", ""),
    ("select ", "1 and (2 or ", "1", ")", ""),
    ("select ", "", "1", " = 1", ""),
    ("select ", "", "1", " <=> 1", ""),
    ("select ", "", "1", " <> 1", ""),
    ("select ", "", "1", " < 1", ""),
    ("select ", "", "1", " <= 1", ""),
    ("select ", "", "1", " > 1", ""),
    ("select ", "", "1", " >= 1", ""),
    ("select ", "1 = (", "1", ")", ""),
    ("select ", "", "1", " is null", ""),
    ("select ", "", "1", " is not null", ""),
    ("select ", "(", "1", ") is true", ""),
    ("select ", "", "'a'", " collate b", ""),
    ("select ", "1 between 1 and ", "1", "", ""),
    ("select ", "1 between (", "1", ") and 2", ""),
    ("select ", "(", "1", ") between 1 and 2", ""),
    ("select ", "1 in (", "1", ")", ""),
    ("select ", "1 in (1, ", "1", ")", ""),
    ("select ", "1 not in (", "1", ")", ""),
    ("select ", "1 like (", "1", ")", ""),
    ("select ", "1 like 1 escape (", "1", ")", ""),
    ("select ", "1 regexp (", "1", ")", ""),
    ("select ", "1 sounds like (", "1", ")", ""),
    ("select ", "1 member of ((", "1", "))", ""),
    ("select ", "", "a", " + interval 1 day", ""),
    ("select ", "", "a", " - interval 1 day", ""),
    ("select ", "", "a", " + 1 + interval 1 day", ""),
    ("select ", "interval 1 day + ", "a", "", ""),
    ("select ", "a + interval ", "1", " day", ""),
    ("select ", "a + interval (", "1", ") day", ""),
    ("select ", "1 + interval(1, ", "1", ")", ""),
    ("select ", "interval(1, ", "1", ")", ""),
    ("select ", "@a := ", "1", "", ""),
    // Calls.
    ("select ", "f(", "1", ")", ""),
    ("select ", "f(1, ", "1", ", 2)", ""),
    ("select ", "s.f(", "1", ")", ""),
    ("select ", "if(1, ", "1", ", 2)", ""),
    ("select ", "case when 1 then ", "1", " end", ""),
    ("select ", "case when ", "1", " then 1 end", ""),
    ("select ", "case ", "1", " when 1 then 1 end", ""),
    ("select ", "case when 1 then 1 else ", "1", " end", ""),
    ("select ", "cast(", "1", " as char)", ""),
    ("select ", "cast(", "1", " at time zone 'a' as datetime)", ""),
    ("select ", "convert(", "1", ", char)", ""),
    ("select ", "convert(", "1", " using latin1)", ""),
    ("select ", "date_add(", "1", ", interval 1 day)", ""),
    ("select ", "date_sub(1, interval ", "1", " day)", ""),
    ("select ", "adddate(1, ", "1", ")", ""),
    ("select ", "extract(day from ", "1", ")", ""),
    ("select ", "timestampadd(day, ", "1", ", 1)", ""),
    ("select ", "timestampdiff(day, 1, ", "1", ")", ""),
    ("select ", "get_format(date, ", "1", ")", ""),
    ("select ", "trim(", "1", ")", ""),
    ("select ", "trim(both 'a' from ", "1", ")", ""),
    ("select ", "trim(", "1", " from 'a')", ""),
    ("select ", "substring(", "1", " from 1 for 1)", ""),
    ("select ", "position('a' in ", "1", ")", ""),
    ("select ", "char(", "1", ")", ""),
    ("select ", "weight_string(", "1", " as char(1))", ""),
    ("select ", "json_value(", "1", ", '$')", ""),
    ("select ", "match (a) against (", "1", ")", ""),
    ("select ", "count(", "1", ")", ""),
    ("select ", "group_concat(1 order by ", "1", ")", ""),
    ("select ", "sum(", "1", ") over ()", ""),
    ("select ", "sum(1) over (partition by ", "1", ")", ""),
    ("select ", "sum(1) over (order by ", "1", ")", ""),
    ("select ", "sum(1) over (rows interval ", "1", " day preceding)", ""),
    ("select ", "lead(", "1", ") over w", ""),
    ("select ", "(1, ", "1", ")", ""),
    ("select ", "row(1, ", "1", ")", ""),
    ("select ", "{fn ", "1", "}", ""),
    ("select ", "{d ", "'a'", "}", ""),
    // Queries in expressions.
    ("select ", "(select ", "1", ")", ""),
    ("select ", "((select ", "1", "))", ""),
    ("select ", "((select ", "1", ") union select 1)", ""),
    ("select ", "(select 1 union select ", "1", ")", ""),
    ("select ", "(select 1 from t where ", "1", ")", ""),
    ("select ", "(select 1 from t group by ", "1", ")", ""),
    ("select ", "(select 1 from t having ", "1", ")", ""),
    ("select ", "(select 1 order by ", "1", ")", ""),
    ("select ", "(select 1 from t window w as (order by ", "1", "))", ""),
    ("select ", "(values row(", "1", "))", ""),
    ("select ", "(with a as (select ", "1", ") table a)", ""),
    ("select ", "exists (select ", "1", ")", ""),
    ("select ", "not exists (select 1 from t where ", "1", ")", ""),
    ("select ", "1 = any (select ", "1", ")", ""),
    ("select ", "1 = all (select ", "1", ")", ""),
    ("select ", "1 in (select ", "1", ")", ""),
    ("select ", "1 in ((select ", "1", "))", ""),
    ("select ", "1 in ((select ", "1", ") union select 1)", ""),
    ("select ", "a + interval (select ", "1", ") day", ""),
    ("select ", "(select 1 from json_table(", "1", ", '$' columns (a for ordinality)) t)", ""),
    // FROM.
    ("select 1 from ", "(", "t", ")", ""),
    ("select 1 from ", "(t, ", "t", ")", ""),
    ("select 1 from ", "(t join ", "t", ")", ""),
    ("select 1 from ", "t left join (", "t", ") on 1", ""),
    ("select 1 from t", " join t", "", "", ""),
    ("select 1 from t", " cross join t", "", "", ""),
    ("select 1 from t", " straight_join t", "", "", ""),
    ("select 1 from t", " join t", "", " on 1", ""),
    ("select 1 from t", " left join t", "", " on 1", ""),
    ("select 1 from t", " right join t", "", " using (a)", ""),
    ("select 1 from ", "{oj ", "t", "}", ""),
    ("select 1 from ", "(select 1 from ", "t", ") t", ""),
    ("select 1 from ", "((select 1 from ", "t", ")) t", ""),
    ("select 1 from ", "((select 1 from ", "t", ") union select 1) t", ""),
    ("select 1 from ", "((select 1 from ", "t", ") t join t)", ""),
    ("select 1 from ", "t, lateral (select 1 from ", "t", ") t", ""),
    ("select 1 from ", "(select 1 union select 1 from ", "t", ") t", ""),
    ("select 1 from t join t on ", "1 in (select 1 from t join t on ", "1", ")", ""),
    ("select 1 from json_table('', '$' columns (", "nested path '$' columns (", "a for ordinality", ")", ")) t"),
    // Statements.
    ("", "(", "select 1", ")", ""),
    ("", "(", "select 1", ") union select 1", ""),
    ("", "(", "select 1", ") intersect select 1", ""),
    ("", "(", "select 1", ") limit 1", ""),
    ("", "select 1 union (", "select 1", ")", ""),
    ("", "(select 1) union (", "select 1", ")", ""),
    ("", "select 1 union (", "select 1", " limit 1)", ""),
    ("", "with a as (", "select 1", ") select 1", ""),
    ("", "with a as ((", "select 1", ")) select 1", ""),
    ("explain ", "(", "select 1", ")", ""),
    ("insert into t ", "(", "select 1", ")", ""),
    ("insert into t values (", "(", "1", ")", ")"),
    ("insert into t set a = ", "(", "1", ")", ""),
    ("insert into t values (1) on duplicate key update a = ", "(", "1", ")", ""),
    ("insert into t values (1) returning ", "(", "1", ")", ""),
    ("replace into t ", "(", "select 1", ")", ""),
    ("update t set a = ", "(", "1", ")", ""),
    ("update ", "(", "t", ")", " set a = 1"),
    ("update t set a = 1 order by ", "(", "1", ")", ""),
    ("delete from t where ", "(", "1", ")", ""),
    ("delete t from ", "(", "t", ")", ""),
    ("load data infile '' into table t set a = ", "(", "1", ")", ""),
    ("create table t ", "(", "select 1", ")", ""),
    ("create table t as ", "(", "select 1", ")", ""),
    ("create table t (a int default (", "(", "1", ")", "))"),
    ("create table t (a int as (", "(", "1", ")", "))"),
    ("create table t (a int check (", "(", "1", ")", "))"),
    ("create table t (a int, check (", "(", "1", ")", "))"),
    ("create table t (a int, key ((", "(", "1", ")", ")))"),
    ("create index a on t ((", "(", "1", ")", "))"),
    ("create view v as ", "(", "select 1", ")", ""),
    ("alter table t add check (", "(", "1", ")", ")"),
    ("alter table t alter a set default (", "(", "1", ")", ")"),
    ("do ", "(", "1", ")", ""),
    ("call p(", "(", "1", ")", ")"),
    ("kill ", "(", "1", ")", ""),
    ("set a = ", "(", "1", ")", ""),
    ("set @a = ", "(", "1", ")", ""),
    ("show tables where ", "(", "1", ")", ""),
];

fn repeated((before, unit, after): (&str, &str, &str), count: usize) -> String {
    format!("{before}{}{after}", unit.repeat(count))
}

fn nested((before, open, inner, close, after): (&str, &str, &str, &str, &str), count: usize) -> String {
    format!("{before}{}{inner}{}{after}", open.repeat(count), close.repeat(count))
}

fn plain(text: &str) -> Result<Parsed, Error> {
    parse(text, Mode::default())
}

/// Runs it with [`STACK_BYTES`] of stack.
fn on_small_stack(run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(run).expect("a thread").join().expect("no panic");
}

fn verbose() -> bool {
    std::env::var_os("STRESS_VERBOSE").is_some()
}

/// Times of the steps of a tree's life.
#[derive(Clone, Copy)]
struct Times([Duration; STEPS.len()]);

const STEPS: [&str; 6] = ["parse", "print", "reparse", "==", "clone", "drop"];

/// The first steps are code of this crate; the others are derived, and page faults decide their times.
const OWN_STEPS: usize = 3;

/// Runs it and tells how long this thread's processor was at it: other programs do not count.
fn timed<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    let start = processor_time();
    let made = run();
    (made, processor_time() - start)
}

fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Takes a text through all steps.
fn live(text: &str) -> Result<Times, Error> {
    let (parsed, parse_time) = timed(|| plain(text));
    let tree = parsed?.statement;
    let (printed, print_time) = timed(|| tree.to_string());
    let (again, reparse) = timed(|| plain(&printed));
    let again = match again {
        Ok(parsed) => parsed.statement,
        Err(error) => panic!("{:?} near {:?} of {}", error.problem, error.near(&printed).0, cut(&printed)),
    };
    let (same, compare) = timed(|| tree == again);
    assert!(same, "another tree: {}", cut(text));
    let (copy, clone) = timed(|| tree.clone());
    let ((), drop_time) = timed(|| drop(black_box(copy)));
    Ok(Times([parse_time, print_time, reparse, compare, clone, drop_time]))
}

fn cut(text: &str) -> String {
    text.chars().take(200).collect()
}

/// Asserts that a step for ten times the text costs at most [`RATIO_MAX`] times as much; measures again before it complains.
fn assert_linear(name: &str, small: &str, large: &str) {
    let (mut few, mut many) = (Times([Duration::MAX; STEPS.len()]), Times([Duration::MAX; STEPS.len()]));
    for round in 0.. {
        for (times, text) in [(&mut few, small), (&mut many, large)] {
            let now = live(text).unwrap_or_else(|error| panic!("{name}: {:?} at {}", error.problem, error.at));
            times.0.iter_mut().zip(now.0).for_each(|(least, now)| *least = now.min(*least));
        }
        let steep =
            (0..OWN_STEPS).find(|step| many.0[*step].as_secs_f64() > RATIO_MAX * few.0[*step].max(LEAST).as_secs_f64());
        let Some(step) = steep else { break };
        assert!(
            round < 8,
            "{name}: {} takes {:?}, and {:?} for ten times the text",
            STEPS[step],
            few.0[step],
            many.0[step]
        );
    }
    if verbose() {
        let times: String = many.0.iter().map(|time| format!("{:>9.2}", time.as_secs_f64() * 1e3)).collect();
        println!("{name:<70.70}{times}");
    }
}

fn table_head() {
    if verbose() {
        println!("{:<70}{}", "milliseconds", STEPS.map(|step| format!("{step:>9}")).concat());
    }
}

#[test]
fn constructs_that_repeat_cost_linear_time() {
    on_small_stack(|| {
        table_head();
        for (cases, [none, some, many, most]) in [(REPEATED, WIDE), (REPEATED_CHEAPLY, CHEAP)] {
            for case in cases {
                let name = repeated(*case, 1);
                for count in [none, some] {
                    if let Err(error) = live(&repeated(*case, count)) {
                        panic!("{count} times in {name}: {:?} at {}", error.problem, error.at);
                    }
                }
                assert_linear(&name, &repeated(*case, many), &repeated(*case, most));
            }
        }
    });
}

#[test]
fn constructs_that_nest_are_refused_beyond_a_height() {
    on_small_stack(|| {
        for case in NESTED {
            let name = nested(*case, 1);
            let is_fine = |count| match plain(&nested(*case, count)) {
                Ok(_) => true,
                Err(Error { problem: Problem::TooDeep | Problem::TooManyBlocks, .. }) => false,
                Err(error) => panic!("{count} times in {name}: {:?} at {}", error.problem, error.at),
            };
            assert!(is_fine(TALL_LEAST), "{name}");
            // The tallest tree of this kind.
            let (mut good, mut bad) = (TALL_LEAST, 2 * HEIGHT_MAX);
            assert!(!is_fine(bad), "{name}");
            while bad - good > 1 {
                let middle = good.midpoint(bad);
                *(if is_fine(middle) { &mut good } else { &mut bad }) = middle;
            }
            if verbose() {
                println!("{name:<70.70} nests {good} times");
            }
            match live(&nested(*case, TALL_LEAST)) {
                Ok(_) => {}
                Err(error) => panic!("{name}: {:?} at {}", error.problem, error.at),
            }
            let tree = plain(&nested(*case, good)).expect("the tallest one").statement;
            let copy = tree.clone();
            assert!(tree == copy, "{name}");
            assert!(!tree.to_string().is_empty());
            drop((tree, copy));
            for count in TALL {
                let text = nested(*case, count);
                let (parsed, time) = timed(|| plain(&text));
                let is_refused =
                    matches!(parsed, Err(Error { problem: Problem::TooDeep | Problem::TooManyBlocks, .. }));
                assert!(is_refused, "{count} times in {name}");
                assert!(time < Duration::from_secs(1), "{count} times in {name} takes {time:?}");
            }
        }
    });
}

#[test]
fn refused_texts_are_refused_in_linear_time() {
    on_small_stack(|| {
        for case in REFUSED {
            let name = repeated(*case, 1);
            let refused = |count| {
                let text = repeated(*case, count);
                let least = (0..3).map(|_| {
                    let (parsed, time) = timed(|| plain(&text));
                    assert!(parsed.is_err(), "{count} times in {name}");
                    time
                });
                least.min().expect("three of them")
            };
            refused(100);
            let (mut few, mut many) = (refused(10_000), refused(100_000));
            let is_linear =
                |few: Duration, many: Duration| many.as_secs_f64() <= RATIO_MAX * few.max(LEAST).as_secs_f64();
            for _ in 0..5 {
                if !is_linear(few, many) {
                    (few, many) = (few.min(refused(10_000)), many.min(refused(100_000)));
                }
            }
            assert!(is_linear(few, many), "{name}: {few:?}, and {many:?} for ten times the text");
        }
    });
}

/// Lists inside nested constructs, none of which may copy what is inside it: what stands before and after the list at each level, and the list's item.
const LISTS_WITHIN: &[(&str, &str, &str, &str, &str)] = &[
    ("select ", "(", "1 and 1", " and 1", ") and 1"),
    ("select ", "1 and (", "1 and 1", " and 1", ")"),
    ("select ", "(", "1 or 1", " or 1", ") or 1"),
    ("select ", "1 or (", "1 or 1", " or 1", ")"),
    ("select ", "1 xor (", "1 xor 1", " xor 1", ")"),
    ("select ", "(", "1 + 1", " + 1", ") + 1"),
    ("select ", "1 + (", "1 + 1", " + 1", ")"),
    ("select ", "(select ", "1 + 1", " + 1", ")"),
    ("select ", "f(1, ", "1", ", 1", ")"),
    ("select 1 from ", "(", "t", ", t", ")"),
    ("select 1 from ", "(select 1 from ", "t", ", t", ") t"),
    ("select 1 from t", " join t", "", " join t on 1", ""),
    ("", "(", "select 1", " union select 1", ") union select 1"),
    ("", "select 1 union (", "select 1", " union select 1", ")"),
];

/// Levels around the list of [`LISTS_WITHIN`]; queries nest less often than expressions.
const AROUND: usize = 60;

/// The most that these levels may cost, in times of the list itself.
const AROUND_MAX: f64 = 20.0;

#[test]
fn lists_are_not_copied_by_what_is_around_them() {
    on_small_stack(|| {
        for (before, open, inner, item, close) in LISTS_WITHIN {
            let text = |levels: usize| {
                format!("{before}{}{inner}{}{}", open.repeat(levels), item.repeat(30_000), close.repeat(levels))
            };
            let (flat, tall) = (text(1), text(AROUND));
            let (mut few, mut many) = (Duration::MAX, Duration::MAX);
            for _ in 0..3 {
                let (parsed, time) = timed(|| plain(&flat));
                assert!(parsed.is_ok(), "{}", cut(&flat));
                few = few.min(time);
                let (parsed, time) = timed(|| plain(&tall));
                assert!(parsed.is_ok(), "{}", cut(&tall));
                many = many.min(time);
            }
            let ratio = many.as_secs_f64() / few.as_secs_f64();
            if verbose() {
                println!("{open:<30} {item:<20} {close:<20} {few:>12.1?} {many:>12.1?} {ratio:>6.1}");
            }
            assert!(ratio < AROUND_MAX, "{AROUND} times {open}: {few:?} for one, {many:?} for all");
        }
    });
}

#[test]
fn a_cancelled_text_ends_soon() {
    for (before, unit, after) in [
        ("select 1", " + 1", ""),
        ("select 1", ", 1", ""),
        ("select 1", " is null", ""),
        ("insert into t values (1)", ", (1, 'a', now())", ""),
        ("create table t (a int", ", a int not null default 1 comment 'a', key (a)", ")"),
        ("grant select", ", select", " on t to u"),
        ("select 1 from t", " join t on 1", ""),
        ("select 1", " union select 1", ""),
        ("set a = 1", ", @a = 1, names b", ""),
        ("select ", "(", ""),
    ] {
        let text = repeated((before, unit, after), 100_000);
        // Yes from the call `after` on, and at each later one.
        for after in [0, 1, 7] {
            let calls = Cell::new(0usize);
            let cancelled = || {
                calls.set(calls.get() + 1);
                calls.get() > after
            };
            match parse_unless(&text, Mode::default(), &cancelled) {
                Err(Error { problem: Problem::Cancelled, .. }) => {}
                Err(Error { problem: Problem::TooDeep, .. }) if calls.get() <= after => continue,
                other => panic!("{unit}: {:?} after {} calls", other.map(|_| ()), calls.get()),
            }
            assert!(calls.get() <= after + 64, "{unit}: {} calls", calls.get());
        }
    }
}

#[test]
fn a_text_is_asked_about_every_few_thousand_tokens() {
    let text = repeated(("select 1", ", 1", ""), 900_000);
    let calls = Cell::new(0usize);
    let count = || {
        calls.set(calls.get() + 1);
        false
    };
    assert!(parse_unless(&text, Mode::default(), &count).is_ok());
    assert!((400..4_000).contains(&calls.get()), "{} calls for 1,800,000 tokens", calls.get());
}

#[test]
fn tokens_are_counted_up_to_a_bound() {
    let text = repeated(("select 1", " + 1", ""), TOKENS_MAX as usize);
    assert_eq!(plain(&text).expect_err("twice as many").problem, Problem::TooManyTokens);
}

#[test]
fn parameters_are_counted_up_to_a_bound() {
    let text = |count: usize| repeated(("select ?", ", ?", ""), count - 1);
    assert_eq!(plain(&text(65_535)).expect("as many as there may be").parameters, 65_535);
    for count in [65_536, 1_000_000] {
        assert_eq!(plain(&text(count)).expect_err("one too many").problem, Problem::TooManyParameters);
    }
}
