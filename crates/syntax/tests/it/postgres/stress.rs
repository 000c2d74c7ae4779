//! Long and deeply nested texts: an answer in time linear in the text, on a small stack (SY-1, SY-2, SY-3, SY-4, SY-8).

use std::cell::Cell;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use syntax::postgres::tree::{HEIGHT_MAX, Statement, TOKENS_MAX};
use syntax::postgres::{Error, Problem, parse_script};

use super::print::printed;

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
    ("select 1", " + 1", ""),
    ("select 1", " - 1", ""),
    ("select 1", " * 1", ""),
    ("select 1", " / 1", ""),
    ("select 1", " % 1", ""),
    ("select 1", " ^ 1", ""),
    ("select 1", " || 1", ""),
    ("select 1", " <-> 1", ""),
    ("select 1", " operator(pg_catalog.+) 1", ""),
    ("select 1", " and 1", ""),
    ("select 1", " or 1", ""),
    ("select 1", " or a = 1 and b", ""),
    ("select 1", " and a between 1 and 2", ""),
    ("select 1", " and not a", ""),
    ("select 1", " + -1", ""),
    ("select 1", " + 1 * 2", ""),
    ("select 1", " || a::text", ""),
    ("select a", ".b", ""),
    ("select a", "[1]", ""),
    ("select (a)", ".b", ""),
    ("select (a)", "[1:2]", ""),
    ("select 1", ", 1", ""),
    ("select 1", ", a as b", ""),
    ("select 1 in (1", ", 1", ")"),
    ("select (1, 1", ", 1", ") = 1"),
    ("select row(1, 1", ", 1", ") = 1"),
    ("select array[1", ", 1", "]"),
    ("select array[[1]", ", [1]", "]"),
    ("select case", " when 1 then 1", " when 2 then 2 end"),
    ("select f(1", ", 1", ")"),
    ("select f(a => 1", ", b => 1", ")"),
    ("select f(1 order by 1", ", 1", ")"),
    ("select coalesce(1", ", 1", ")"),
    ("select trim(1", ", 1", ")"),
    ("select sum(a) over (partition by 1", ", 1", ")"),
    ("select sum(a) over (order by 1", ", 1 desc nulls last", ")"),
    ("select 1::t(1", ", 1", ")"),
    ("select 1 from t", ", t", ""),
    ("select 1 from t", " join t on true", ""),
    ("select 1 from t", " left join t using (a)", ""),
    ("select 1 from t", " cross join t", ""),
    ("select 1 from t", " natural join t", ""),
    ("select 1 from t join t using (a", ", a", ")"),
    ("select 1 from f(1) as t (a", ", a", ")"),
    ("select 1 from f(1) as t (a int", ", a int", ")"),
    ("select 1 from rows from (f(1)", ", f(1)", ")"),
    ("select 1 from t group by a", ", a", ""),
    ("select 1 from t group by grouping sets (a", ", ()", ")"),
    ("select 1 from t window w as (order by 1)", ", w as (order by 1)", ""),
    ("select 1 from t order by a", ", a", ""),
    ("select 1 from t for update", " for update", ""),
    ("select 1 from t for update of t", ", t", ""),
    ("select 1", " union select 1", ""),
    ("select 1", " intersect select 1", ""),
    ("select 1", " union all (select 1 limit 1)", ""),
    ("select 1", " union select 1 intersect select 1", ""),
    ("values (1)", ", (1)", ""),
    ("values (1", ", 1", ")"),
    ("with a as (select 1)", ", a as (select 1)", " select 1"),
    ("insert into t values (1)", ", (1, 'a', default)", ""),
    ("insert into t (a", ", a", ") values (1)"),
    ("insert into t (a", "[1]", ") values (1)"),
    ("insert into t values (1) on conflict (a", ", a", ") do nothing"),
    ("insert into t values (1) on conflict (a) do update set a = 1", ", a = 1", ""),
    ("insert into t values (1) returning a", ", a", ""),
    ("update t set a = 1", ", a = 1", ""),
    ("update t set (a", ", a", ") = (select 1)"),
    ("update t set a = 1 from t", ", t", ""),
    ("delete from t using t", ", t", ""),
    ("merge into t using t on true when matched then do nothing", " when matched then delete", ""),
    ("truncate t", ", t", ""),
    ("copy t (a", ", a", ") from stdin"),
    ("copy t from stdin (format csv", ", null 'x'", ")"),
    ("copy t from stdin csv", " header", ""),
    ("create table t (a int", ", a int", ")"),
    ("create table t (a int", " not null", ")"),
    ("create table t (a int", " check (a > 1)", ")"),
    ("create table t (a int", ", constraint a foreign key (a) references t (a) on delete cascade", ")"),
    ("create table t (a int", ", unique (a)", ")"),
    ("create table t (like t", " including all", ")"),
    ("create table t (a int) with (a = 1", ", a = 1", ")"),
    ("create table t (a int) inherits (t", ", t", ")"),
    ("create table t partition of t for values in (1", ", 1", ")"),
    ("create index on t (a", ", (a + 1) desc", ")"),
    ("create sequence s", " increment 1", ""),
    ("create database d", " encoding 'x'", ""),
    ("create role r", " login", ""),
    ("create schema s", " create table t (a int)", ""),
    ("create view v (a", ", a", ") as select 1"),
    ("alter table t add a int", ", drop a", ""),
    ("alter table t alter a restart", " set increment 1", ""),
    ("drop table t", ", t", ""),
    ("drop function f(int", ", int", ")"),
    ("grant select", ", select (a)", " on t to u"),
    ("grant select on t to u", ", u", ""),
    ("grant r", ", r", " to u"),
    ("revoke select", ", select", " on t from u"),
    ("set a = 1", ", 1", ""),
    ("set a", ".a", " = 1"),
    ("begin read only", ", read only", ""),
    ("prepare p (int", ", int", ") as select 1"),
    ("execute p (1", ", 1", ")"),
    ("declare c", " binary", " cursor for select 1"),
    ("explain (a", ", a", ") select 1"),
    ("vacuum t (a", ", a", ")"),
    ("vacuum t", ", t", ""),
    ("lock t", ", t", ""),
    ("do 'a'", " 'a'", ""),
    ("select 1", "; select 1", ""),
];

/// Constructs that repeat and whose repetitions cost little.
const REPEATED_CHEAPLY: &[(&str, &str, &str)] = &[
    ("select 1", " ", ""),
    ("select 1", "\n", " + 1"),
    ("select 1", "/**/", " + 1"),
    ("select 1 /*", "a", "*/ + 1"),
    ("select 1", "-- a\n", "+ 1"),
    ("select 'a", "b", "'"),
    ("select 'a", "''", "'"),
    ("select 'a'", "\n'b'", ""),
    ("select E'a", "\\n", "'"),
    ("select E'a", "\\u0041", "'"),
    ("select U&'a", "\\0041", "'"),
    ("select $a$", "b", "$a$"),
    ("select $a$", "$", "$a$"),
    ("select $a$", "$a ", "$a$"),
    ("select \"a", "b", "\""),
    ("select \"a", "\"\"", "\""),
    ("select a", "b", ""),
    ("select 1", "1", ""),
    ("select 1.", "1", ""),
    ("select 0x1", "1", ""),
    ("select b'1", "1", "'"),
    ("select 1", ";", ""),
];

/// Repetitions that are read one by one and refused: the error is found at once or at the end.
const REFUSED: &[(&str, &str, &str)] = &[
    ("", "(", ""),
    ("select ", "(", ""),
    ("select 1", ")", ""),
    ("select ", "- ", ""),
    ("select 1 ", "+ ", ""),
    ("select ", "not ", ""),
    ("select ", "f(", ""),
    ("select 1 from ", "(", ""),
    ("select 1 from t", " join t", ""),
    ("select 1", "/*", ""),
    ("select '", "''", ""),
    ("select \"", "\"\"", ""),
    ("select $a$", "$b", ""),
    ("select 1 + ", "@", " 1"),
    ("create table t (", "a ", ")"),
    ("select 1", " = 1", ""),
    ("with ", "a as (", "select 1"),
    ("explain ", "(", "select 1"),
];

/// Constructs that nest: what stands before, what opens, what is inside, what closes, what stands after.
const NESTED: &[(&str, &str, &str, &str, &str)] = &[
    ("select ", "(", "1", ")", ""),
    ("select ", "(1, ", "1", ")", ""),
    ("select ", "row(", "1", ")", ""),
    ("select ", "- ", "a", "", ""),
    ("select ", "+ ", "a", "", ""),
    ("select ", "@ ", "a", "", ""),
    ("select ", "not ", "a", "", ""),
    ("select ", "(", "1", " + 1)", ""),
    ("select ", "1 + (", "1", ")", ""),
    ("select ", "(", "1", " = 1)", ""),
    ("select ", "1 and (", "1", " or 1)", ""),
    ("select ", "1 = (", "1", ")", ""),
    ("select a", "", "", "::int", ""),
    ("select a", "", "", " collate b", ""),
    ("select a", "", "", " at time zone b", ""),
    ("select a", "", "", " is null", ""),
    ("select a", "", "", " is true", ""),
    ("select a", "", "", " notnull", ""),
    ("select a", "", "", " in (1)", ""),
    ("select a", "", "", " = any (b)", ""),
    ("select a", "", "", " is normalized", ""),
    ("select ", "a like (", "1", ")", ""),
    ("select ", "a between (", "1", ") and 1", ""),
    ("select ", "a between 1 and (", "1", ")", ""),
    ("select ", "a in (", "1", ")", ""),
    ("select ", "a = any (", "1", ")", ""),
    ("select ", "a is distinct from (", "1", ")", ""),
    ("select ", "case when ", "1", " then 1 end", ""),
    ("select ", "case ", "1", " when 1 then 1 end", ""),
    ("select ", "case when 1 then ", "1", " end", ""),
    ("select ", "case when 1 then 1 else ", "1", " end", ""),
    ("select ", "array[", "1", "]", ""),
    ("select array", "[", "1", "]", ""),
    ("select ", "a[", "1", "]", ""),
    ("select ", "(a)[", "1", ":2]", ""),
    ("select ", "(", "a", ").b", ""),
    ("select ", "f(", "1", ")", ""),
    ("select ", "f(a => ", "1", ")", ""),
    ("select ", "f(1 order by ", "1", ")", ""),
    ("select ", "f(1) filter (where ", "1", ")", ""),
    ("select ", "f(1) over (partition by ", "1", ")", ""),
    ("select ", "f(1) over (order by ", "1", ")", ""),
    ("select ", "f(1) over (rows ", "1", " preceding)", ""),
    ("select ", "f(1) within group (order by ", "1", ")", ""),
    ("select ", "coalesce(", "1", ")", ""),
    ("select ", "nullif(1, ", "1", ")", ""),
    ("select ", "greatest(", "1", ")", ""),
    ("select ", "grouping(", "1", ")", ""),
    ("select ", "cast(", "1", " as int)", ""),
    ("select ", "1::t(", "1", ")", ""),
    ("select ", "extract(year from ", "1", ")", ""),
    ("select ", "overlay(", "1", " placing 1 from 1)", ""),
    ("select ", "position(", "1", " in 1)", ""),
    ("select ", "substring(", "1", " from 1)", ""),
    ("select ", "substring(1 for ", "1", ")", ""),
    ("select ", "trim(", "1", ")", ""),
    ("select ", "trim(1 from ", "1", ")", ""),
    ("select ", "treat(", "1", " as int)", ""),
    ("select ", "normalize(", "1", ")", ""),
    ("select ", "collation for (", "1", ")", ""),
    ("select ", "(1, ", "1", ") overlaps (1, 1)", ""),
    ("select ", "(select ", "1", ")", ""),
    ("select ", "((select ", "1", "))", ""),
    ("select ", "((select ", "1", ") union select 1)", ""),
    ("select ", "(select 1 union select ", "1", ")", ""),
    ("select ", "(select 1 from t where ", "1", ")", ""),
    ("select ", "(select 1 limit ", "1", ")", ""),
    ("select ", "(select 1 offset ", "1", " rows)", ""),
    ("select ", "(values (", "1", "))", ""),
    ("select ", "(with a as (select ", "1", ") table a)", ""),
    ("select ", "exists (select ", "1", ")", ""),
    ("select ", "array(select ", "1", ")", ""),
    ("select ", "1 in (select ", "1", ")", ""),
    ("select ", "1 = all (select ", "1", ")", ""),
    ("select 1 group by ", "grouping sets (", "a", ")", ""),
    ("select 1 group by ", "cube (", "a", ")", ""),
    ("select 1 from ", "(", "t join t on true", ")", ""),
    ("select 1 from ", "(", "t", " join t on true)", ""),
    ("select 1 from ", "(t cross join ", "t", ")", ""),
    ("select 1 from t", " join t", "", " on true", ""),
    ("select 1 from ", "(select 1 from ", "t", ") t", ""),
    ("select 1 from ", "((select 1 from ", "t", ")) t", ""),
    ("select 1 from ", "((select 1 from ", "t", ") t join t on true)", ""),
    ("select 1 from ", "((select 1 from ", "t", ") union select 1) t", ""),
    ("select 1 from ", "lateral (select 1 from ", "t", ") t", ""),
    ("select 1 from ", "f((select 1 from ", "t", "))", ""),
    ("", "(", "select 1", ")", ""),
    ("", "(", "select 1", ") union select 1", ""),
    ("", "(", "select 1 limit 1", ") intersect select 1", ""),
    ("", "select 1 union (", "select 1", ")", ""),
    ("", "with a as (", "select 1", ") select 1", ""),
    ("", "with a as ((", "select 1", ")) select 1", ""),
    ("", "with a as (", "select 1", ") delete from t", ""),
    ("insert into t ", "(", "select 1", ")", ""),
    ("insert into t values (", "(", "1", ")", ")"),
    ("insert into t (a[", "(", "1", ")", "]) values (1)"),
    ("update t set a = ", "(", "1", ")", ""),
    ("delete from t where ", "(", "1", ")", ""),
    ("copy (", "(", "select 1", ")", ") to stdout"),
    ("explain ", "(", "select 1", ")", ""),
    ("create table t (a int default ", "(", "1", ")", ")"),
    ("create table t (a int check (", "(", "1", ")", "))"),
    ("create table t (check (", "(", "1", ")", "))"),
    ("create table t as ", "(", "select 1", ")", ""),
    ("create view v as ", "(", "select 1", ")", ""),
    ("create index on t (", "(", "1", ")", ")"),
    ("create index on t (", "f(", "1", ")", ")"),
    ("alter table t alter a set default ", "(", "1", ")", ""),
    ("execute p (", "(", "1", ")", ")"),
    ("call p(", "f(", "1", ")", ")"),
    ("declare c cursor for ", "(", "select 1", ")", ""),
    ("prepare p as ", "(", "select 1", ")", ""),
];

fn repeated((before, unit, after): (&str, &str, &str), count: usize) -> String {
    format!("{before}{}{after}", unit.repeat(count))
}

fn nested((before, open, inner, close, after): (&str, &str, &str, &str, &str), count: usize) -> String {
    format!("{before}{}{inner}{}{after}", open.repeat(count), close.repeat(count))
}

fn plain(text: &str) -> Result<Vec<Statement>, Error> {
    Ok(parse_script(text, &|| false)?.into_iter().map(|raw| raw.statement).collect())
}

/// Runs it with [`STACK_BYTES`] of stack.
fn on_small_stack(run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(run).expect("a thread").join().expect("no panic");
}

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

fn cut(text: &str) -> String {
    text.chars().take(200).collect()
}

/// Reads a text, prints it, reads the print, compares and clones: the times of the first three.
fn live(text: &str) -> Result<[Duration; 3], Error> {
    let (parsed, parse_time) = timed(|| plain(text));
    let trees = parsed?;
    let [tree] = trees.as_slice() else { return Ok([parse_time; 3]) };
    let copy = tree.clone();
    assert!(copy == *tree, "another tree: {}", cut(text));
    let (shown, print_time) = timed(|| printed(tree));
    let Some(shown) = shown else { return Ok([parse_time; 3]) };
    let (again, again_time) = timed(|| plain(&shown));
    match again {
        Ok(again) => assert!(again == trees, "another tree: {}", cut(text)),
        Err(error) => panic!("{} of {}", error.message(&shown), cut(&shown)),
    }
    Ok([parse_time, print_time, again_time])
}

/// Asserts that a step for ten times the text costs at most [`RATIO_MAX`] times as much; measures again before it complains.
fn assert_linear(name: &str, small: &str, large: &str) {
    let (mut few, mut many) = ([Duration::MAX; 3], [Duration::MAX; 3]);
    for round in 0.. {
        for (times, text) in [(&mut few, small), (&mut many, large)] {
            let now = live(text).unwrap_or_else(|error| panic!("{name}: {:?} at {}", error.problem, error.at));
            times.iter_mut().zip(now).for_each(|(least, now)| *least = now.min(*least));
        }
        let steep = (0..3).find(|step| many[*step].as_secs_f64() > RATIO_MAX * few[*step].max(LEAST).as_secs_f64());
        let Some(step) = steep else { break };
        assert!(round < 8, "{name}: {:?}, and {:?} for ten times the text", few[step], many[step]);
    }
}

#[test]
fn constructs_that_repeat_cost_linear_time() {
    on_small_stack(|| {
        for (cases, [none, some, many, most]) in [(REPEATED, WIDE), (REPEATED_CHEAPLY, CHEAP)] {
            for case in cases {
                let name = repeated(*case, 1);
                for count in [none, some] {
                    if let Err(error) = live(&repeated(*case, count)) {
                        // Names of relations have at most three parts; no list is read in this case.
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
                Err(Error { problem: Problem::TooDeep, .. }) => false,
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
            if let Err(error) = live(&nested(*case, TALL_LEAST)) {
                panic!("{name}: {:?} at {}", error.problem, error.at);
            }
            let trees = plain(&nested(*case, good)).expect("the tallest one");
            let copy = trees.clone();
            assert!(trees == copy, "{name}");
            if let Some(text) = printed(&trees[0]) {
                assert!(!text.is_empty());
            }
            drop((trees, copy));
            for count in TALL {
                let text = nested(*case, count);
                let (parsed, time) = timed(|| plain(&text));
                let is_refused = matches!(parsed, Err(Error { problem: Problem::TooDeep, .. }));
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

#[test]
fn a_cancelled_text_ends_soon() {
    for (before, unit, after) in [
        ("select 1", " + 1", ""),
        ("select 1", ", 1", ""),
        ("insert into t values (1)", ", (1, 'a', now())", ""),
        ("create table t (a int", ", a int not null default 1 check (a > 1)", ")"),
        ("grant select", ", select", " on t to u"),
        ("select 1 from t", " cross join t", ""),
        ("select 1", " union select 1", ""),
        ("set a = 1", ", 1", ""),
        ("select 1", "; select 1", ""),
    ] {
        let text = repeated((before, unit, after), 100_000);
        // Yes from the call `after` on, and at each later one.
        for after in [0, 1, 7] {
            let calls = Cell::new(0usize);
            let cancelled = || {
                calls.set(calls.get() + 1);
                calls.get() > after
            };
            match parse_script(&text, &cancelled) {
                Err(Error { problem: Problem::Cancelled, .. }) => {}
                other => panic!("{unit}: {:?} after {} calls", other.map(|_| ()), calls.get()),
            }
            assert!(calls.get() <= after + 64, "{unit}: {} calls", calls.get());
        }
    }
}

#[test]
fn tokens_are_counted_up_to_a_bound() {
    let text = repeated(("select 1", " + 1", ""), TOKENS_MAX as usize);
    assert_eq!(plain(&text).expect_err("twice as many").problem, Problem::TooManyTokens);
}

/// Lists inside nested constructs, none of which may copy what is inside it: what stands before and after the list at each level, and the list's item.
const LISTS_WITHIN: &[(&str, &str, &str, &str, &str)] = &[
    ("select ", "(", "1 and 1", " and 1", ") and 1"),
    ("select ", "1 and (", "1 and 1", " and 1", ")"),
    ("select ", "(", "1 + 1", " + 1", ") + 1"),
    ("select ", "1 + (", "1 + 1", " + 1", ")"),
    ("select ", "(select ", "1 + 1", " + 1", ")"),
    ("select ", "f(1, ", "1", ", 1", ")"),
    ("select 1 from ", "(select 1 from ", "t", ", t", ") t"),
    ("", "(", "select 1", " union select 1", ") union select 1"),
    ("", "select 1 union (", "select 1", " union select 1", ")"),
];

#[test]
fn lists_are_not_copied_by_what_is_around_them() {
    on_small_stack(|| {
        for (before, open, inner, item, close) in LISTS_WITHIN {
            let text = |levels: usize| {
                format!("{before}{}{inner}{}{}", open.repeat(levels), item.repeat(30_000), close.repeat(levels))
            };
            let (flat, tall) = (text(1), text(60));
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
            assert!(ratio < 20.0, "60 times {open}: {few:?} for one, {many:?} for all");
        }
    });
}
