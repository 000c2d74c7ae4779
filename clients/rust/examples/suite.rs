//! The client against a server: `tests/clients/run.sh xrpc_rust` runs this with the port of one that is empty. It ends with a line of counts.

use std::fmt::Debug;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use beluga_xrpc::plan::{Aggregate, Expression, Key, Read, Table, call, key, operator, parameter, reference, value};
use beluga_xrpc::{
    Answer, Argument, Connection, Error, Options, Plan, Pool, Request, Row, Savepoint, Session, Statement, Value,
};

type Result<T = ()> = std::result::Result<T, Error>;

#[derive(Default)]
struct Tally {
    passed: u32,
    failed: u32,
}

impl Tally {
    fn check(&mut self, name: &str, is_so: bool) {
        self.equal(name, &is_so, &true);
    }

    fn equal<T: PartialEq + Debug + ?Sized>(&mut self, name: &str, found: &T, expected: &T) {
        if found == expected {
            self.passed += 1;
        } else {
            self.failed += 1;
            let short = |text: String| text.chars().take(300).collect::<String>();
            println!(
                "FAILED {name}: found {}, expected {}",
                short(format!("{found:?}")),
                short(format!("{expected:?}"))
            );
        }
    }

    fn code<T>(&mut self, name: &str, found: Result<T>, expected: u32) {
        self.equal(name, &found.err().and_then(|error| error.code()), &Some(expected));
    }
}

fn main() -> ExitCode {
    let port = std::env::args().next_back().unwrap_or_default();
    let options = Options::new(format!("127.0.0.1:{port}")).answer_timeout(Duration::from_secs(60));
    let mut tally = Tally::default();
    if let Err(error) = play(&mut tally, &options) {
        tally.failed += 1;
        println!("FAILED {error}");
    }
    println!("{} passed, {} failed", tally.passed, tally.failed);
    if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The door may open a moment after the others.
fn open(options: &Options) -> Result<Pool> {
    let start = Instant::now();
    loop {
        match Pool::open(options.clone(), 4) {
            Err(Error::Lost(_)) if start.elapsed() < Duration::from_secs(20) => {
                thread::sleep(Duration::from_millis(20))
            }
            other => return other,
        }
    }
}

fn play(tally: &mut Tally, options: &Options) -> Result {
    let pool = open(options)?;
    pool.execute("create database shop", &[])?;
    let mut session = pool.session()?;
    session.set_schema("shop");
    types(tally, &mut session)?;
    statements(tally, &pool, &mut session)?;
    digests(tally, &mut session)?;
    pipelines(tally, &mut session)?;
    streams(tally, &mut session)?;
    plans(tally, &mut session)?;
    expressions(tally, &mut session)?;
    crowd(tally, &pool)?;
    transactions(tally, &pool, &mut session)?;
    kills(tally, &pool, &mut session)?;
    control(tally, &pool)?;
    logins(tally, options, &mut session)
}

const TYPES: [(&str, &str); 24] = [
    ("ti", "tinyint"),
    ("tu", "tinyint unsigned"),
    ("i", "int"),
    ("b", "bigint"),
    ("bu", "bigint unsigned"),
    ("y", "year"),
    ("f", "float"),
    ("d", "double"),
    ("n", "decimal(20,4)"),
    ("nn", "decimal(65,30)"),
    ("c", "char(5)"),
    ("v", "varchar(40)"),
    ("vb", "varbinary(20)"),
    ("bi", "binary(4)"),
    ("e", "enum('a','b c','ö')"),
    ("s", "set('x','y','zz')"),
    ("bits", "bit(10)"),
    ("da", "date"),
    ("dt", "datetime(6)"),
    ("ts", "timestamp(6)"),
    ("tm", "time(6)"),
    ("t", "text"),
    ("bl", "blob"),
    ("j", "json"),
];

/// Rows of all types: what is bound, and how it reads.
fn rows_of_types() -> [Vec<(Argument<'static>, &'static str)>; 3] {
    let text = |text: &'static str| (Argument::from(text), text);
    let high = vec![
        (i8::MAX.into(), "127"),
        (u8::MAX.into(), "255"),
        (i32::MAX.into(), "2147483647"),
        (i64::MAX.into(), "9223372036854775807"),
        (u64::MAX.into(), "18446744073709551615"),
        (2155.into(), "2155"),
        (1.5f32.into(), "1.5"),
        (
            1e300.into(),
            "1000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
        ),
        text("9999999999999999.9999"),
        text("0.000000000000000000000000000001"),
        text("é字'\"\\"),
        text("a\0b"),
        (Argument::from(&b"\x01zz"[..]), "\x01zz"),
        (Argument::from(&b"\0\x01\x02\x03"[..]), "\0\x01\x02\x03"),
        text("ö"),
        text("x,zz"),
        (1023.into(), "1023"),
        text("9999-12-31"),
        text("2024-02-29 13:07:00.123456"),
        text("2001-09-09 01:46:40.500000"),
        text("-838:59:59"),
        text("long"),
        (Argument::from(&b"bytes"[..]), "bytes"),
        text("{\"a\": [1, null]}"),
    ];
    let low = vec![
        (i8::MIN.into(), "-128"),
        (0u8.into(), "0"),
        (i32::MIN.into(), "-2147483648"),
        (i64::MIN.into(), "-9223372036854775808"),
        (0u64.into(), "0"),
        (1901.into(), "1901"),
        ((-0.25f32).into(), "-0.25"),
        ((-0.1).into(), "-0.1"),
        text("-12.3401"),
        text("-99999999999999999999999999999999999.999999999999999999999999999999"),
        text(""),
        text(""),
        (Argument::from(&b""[..]), ""),
        (Argument::from(&b"abcd"[..]), "abcd"),
        text("a"),
        text(""),
        (0.into(), "0"),
        text("1000-01-01"),
        text("1999-12-31 00:00:00"),
        text("2038-01-01 00:00:00"),
        text("00:00:30"),
        text(""),
        (Argument::from(&b""[..]), ""),
        text("\"ä\""),
    ];
    let none = TYPES.iter().map(|_| (Argument::Null, "NULL")).collect();
    [high, low, none]
}

fn types(tally: &mut Tally, session: &mut Session) -> Result {
    let columns: Vec<String> = TYPES.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
    session.execute(&format!("create table types (id int primary key auto_increment, {})", columns.join(", ")), &[])?;
    let names = TYPES.map(|(name, _)| name).join(", ");
    let insert = format!("insert into types ({names}) values ({})", TYPES.map(|_| "?").join(", "));
    let expected = rows_of_types();
    for row in &expected {
        let arguments: Vec<Argument> = row.iter().map(|(argument, _)| argument.clone()).collect();
        session.execute(&insert, &arguments)?;
    }
    let texts = |answer: &Answer| {
        answer.rows.iter().map(|row| row.iter().map(Value::to_string).collect()).collect::<Vec<Vec<String>>>()
    };
    let expected: Vec<Vec<String>> =
        expected.iter().map(|row| row.iter().map(|(_, text)| text.to_string()).collect()).collect();
    let answer = session.execute(&format!("select {names} from types order by id"), &[])?;
    tally.equal("rows of all types", &texts(&answer), &expected);
    let found: Vec<&str> = answer.columns.iter().map(|column| column.name.as_str()).collect();
    tally.equal("names of columns", &found[..], &TYPES.map(|(name, _)| name)[..]);
    // What was read goes back as it came.
    for row in &answer.rows {
        session.execute(&insert, &row.iter().map(Argument::from).collect::<Vec<_>>())?;
    }
    let again = session.execute(&format!("select {names} from types where id > 3 order by id"), &[])?;
    tally.equal("rows that went back as arguments", &again.rows, &answer.rows);
    // Long strings are never put into chunks: the other columns are, twenty-one of them in three pieces.
    let short = TYPES[..21].iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    for count in ["", " , (select 1 union select 2) twice, types other"] {
        let select = format!("select {} from types a{count} order by a.id", prefixed(&short));
        let rows = session.execute(&select, &[])?.rows;
        let chunks = session.run(&Request::text(&*select).chunks())?.collect()?.rows;
        tally.equal("chunks and rows are the same", &chunks, &rows);
    }
    let bare = session.run(&Request::text("select id from types limit 1").without_names())?.collect()?;
    tally.equal("columns without names", &bare.columns[0].name, &String::new());
    Ok(())
}

fn prefixed(names: &str) -> String {
    names.split(", ").map(|name| format!("a.{name}")).collect::<Vec<_>>().join(", ")
}

/// The number in the first column of each row.
fn numbers(rows: &[Row]) -> Vec<i64> {
    rows.iter().map(|row| row[0].as_i64().unwrap_or(i64::MIN)).collect()
}

fn statements(tally: &mut Tally, pool: &Pool, session: &mut Session) -> Result {
    session.execute("create table t (id int primary key auto_increment, n int, key by_n (n))", &[])?;
    let answer = session.execute("insert into t (n) values (?), (?), (?)", &[10.into(), 20.into(), Argument::Null])?;
    tally.equal("what an INSERT tells", &(answer.summary.affected, answer.summary.insert_id), &(3, Some(1)));
    tally.check("it has no columns", answer.columns.is_empty());
    let update = "update t set n = 10 where n = 10";
    let counts = [Request::text(update).count_found(), Request::text(update).count_changed()]
        .map(|request| session.run(&request).and_then(|rows| rows.finish()).map(|summary| summary.affected).ok());
    tally.equal("rows found and rows changed", &counts, &[Some(1), Some(0)]);
    let info = session.execute(update, &[])?.summary.info;
    tally.equal("an UPDATE's line", &info.as_deref(), &Some("Rows matched: 1  Changed: 0  Warnings: 0"));
    tally.code("a key twice", session.execute("insert into t values (1, 1)", &[]), 1062);
    tally.code("no such table", session.execute("select * from nowhere", &[]), 1146);
    tally.equal("the session goes on", &numbers(&session.execute("select 1", &[])?.rows), &vec![1]);
    let warned = session.execute("select 1 / 0", &[])?;
    tally.equal("a division by zero", &warned.rows[0][0], &Value::Null);
    let by_name =
        session.execute("select ? from ? where id = 2", &[Argument::identifier("n"), Argument::identifier("t")])?;
    tally.equal("names as arguments", &numbers(&by_name.rows), &vec![20]);
    let listed = session.execute("select id from t where id in (?) order by id", &[Argument::Raw("1, 2".into())])?;
    tally.equal("a list as an argument", &numbers(&listed.rows), &vec![1, 2]);
    let hinted = session.run(&Request::text("select 5").hint("/* from here */"))?.collect()?;
    tally.equal("with a hint", &numbers(&hinted.rows), &vec![5]);
    let single = pool.connection()?.run(&Request::text("select count(*) from t").schema("shop"))?;
    tally.equal("a statement outside of sessions", &numbers(&single.rows), &vec![3]);
    tally.code("one that fails", pool.execute("select * from shop.nowhere", &[]), 1146);
    let mut other = pool.session()?;
    tally.code("a database that is not there", other.run(&Request::text("select 1").schema("nowhere")), 1049);
    Ok(())
}

/// More than the server keeps, so that it forgets the first ones.
const FORGOTTEN_AFTER: usize = 3000;

fn digests(tally: &mut Tally, session: &mut Session) -> Result {
    let statement = Statement::new("select n from t where id = ?");
    let ask = |session: &mut Session, id: i64| -> Result<Row> {
        let arguments = [id.into()];
        Ok(session.run(&Request::statement(&statement).with(&arguments[..]))?.collect()?.rows.remove(0))
    };
    for id in [1, 2, 1] {
        tally.equal("by digest", &ask(session, id)?, &vec![Value::Int(id * 10)]);
    }
    let others: Vec<Statement> = (0..FORGOTTEN_AFTER).map(|at| Statement::new(format!("select {at}"))).collect();
    for (at, other) in others.iter().enumerate() {
        let found = numbers(&session.run(&Request::statement(other))?.collect()?.rows);
        if found != [at as i64] {
            tally.equal("one of many digests", &found, &vec![at as i64]);
        }
    }
    tally.equal("by a digest that was forgotten", &ask(session, 2)?, &vec![Value::Int(20)]);
    let first = session.run(&Request::statement(&others[0]))?.collect()?;
    tally.equal("the first of many", &numbers(&first.rows), &vec![0]);
    let mut pipeline = session.pipeline();
    pipeline.add(Request::statement(&others[2])).add(Request::statement(&others[1]));
    let found: Vec<Vec<i64>> = pipeline.collect()?.into_iter().flatten().map(|answer| numbers(&answer.rows)).collect();
    tally.equal("in a pipeline", &found, &vec![vec![2], vec![1]]);
    Ok(())
}

fn pipelines(tally: &mut Tally, session: &mut Session) -> Result {
    const COUNT: usize = 500;
    let mut pipeline = session.pipeline();
    for at in 0..COUNT {
        pipeline.add(Request::text("select ?").with(vec![(at as u64).into()]));
    }
    let found: Vec<i64> = pipeline.collect()?.into_iter().flatten().flat_map(|answer| numbers(&answer.rows)).collect();
    tally.equal("more answers than the server keeps in line", &found, &(0..COUNT as i64).collect());
    let mut pipeline = session.pipeline();
    pipeline.add(Request::text("insert into t values (50, 1)"));
    pipeline.then(Request::text("insert into t values (50, 2)"));
    pipeline.then(Request::text("insert into t values (51, 1)"));
    pipeline.then(Request::text("insert into t values (52, 1)"));
    pipeline.add(Request::text("select id from t where id >= 50 order by id"));
    let answers = pipeline.collect()?;
    let codes: Vec<u32> = answers.iter().map(|answer| answer.as_ref().err().map_or(0, |error| error.code)).collect();
    tally.equal("what follows a failed request", &codes, &vec![0, 1062, 1062, 1062, 0]);
    let last = answers.into_iter().next_back().and_then(std::result::Result::ok);
    tally.equal("was not executed", &last.map(|answer| numbers(&answer.rows)), &Some(vec![50]));
    session.execute("delete from t where id = 50", &[])?;
    Ok(())
}

fn streams(tally: &mut Tally, session: &mut Session) -> Result {
    session.execute("create table big (id int primary key, s varchar(200))", &[])?;
    for start in (0..8000).step_by(1000) {
        let rows: Vec<String> = (start..start + 1000).map(|id| format!("({id}, repeat('x', 150))")).collect();
        session.execute(&format!("insert into big values {}", rows.join(", ")), &[])?;
    }
    let select = "select id, s from big order by id";
    let few = Request::text(select).token(Some(1));
    let rows = session.run(&few)?;
    tally.equal("columns before rows", &rows.columns().len(), &2);
    let mut count = 0;
    for row in rows {
        let row = row?;
        let is_right = row[0] == Value::Int(count) && row[1].as_str().is_some_and(|text| text.len() == 150);
        if !is_right {
            tally.equal("a row of many", &row[0], &Value::Int(count));
        }
        count += 1;
    }
    tally.equal("rows by tokens of a kilobyte", &count, &8000);
    let third = session.run(&few)?.nth(2);
    tally.equal(
        "a row of an answer that is left",
        &third.and_then(|row| row.ok()).map(|row| row[0].clone()),
        &Some(Value::Int(2)),
    );
    tally.equal("the next statement passes over the rest", &numbers(&session.execute("select 3", &[])?.rows), &vec![3]);
    let chunked = session.run(&Request::text(select).chunks().token(Some(1)))?.collect()?;
    tally.equal("chunks by tokens", &numbers(&chunked.rows), &(0..8000).collect());
    let unbounded = session.run(&Request::text(select).token(None))?.collect()?;
    tally.equal("without tokens", &unbounded.rows, &chunked.rows);
    Ok(())
}

/// Checks that a plan returns the same rows as the statement.
fn same(tally: &mut Tally, session: &mut Session, sql: &str, plan: &Plan, parameters: &[Argument]) -> Result {
    let expected = session.execute(sql, &[])?.rows;
    for _ in 0..2 {
        match session.run(&Request::plan(plan).with(parameters)).and_then(|rows| rows.collect()) {
            Ok(answer) => tally.equal(sql, &answer.rows, &expected),
            Err(error) => tally.equal(sql, &error.to_string(), &String::new()),
        }
    }
    Ok(())
}

fn plans(tally: &mut Tally, session: &mut Session) -> Result {
    session.execute(
        "create table p (a int, b int, s varchar(20), d decimal(10,2), primary key (a, b), key by_s (s))",
        &[],
    )?;
    session.execute(
        "insert into p values (1, 1, 'x', 1.5), (1, 2, 'y', null), (2, 1, 'x', 3), (3, 7, 'zebra', -4)",
        &[],
    )?;
    let table = || Table::named("p").schema("shop");
    let get = |keys: Vec<Key>| Read::get(table(), keys);
    same(tally, session, "select * from p where a = 1", &get(vec![key("a", 1)]).plan(), &[])?;
    let both = get(vec![key("a", 1).and("b", 2), key("a", 3).and("b", 7)]);
    same(tally, session, "select * from p where (a, b) in ((1, 2), (3, 7)) order by a", &both.plan(), &[])?;
    same(tally, session, "select * from p where a = 2", &get(vec![Key::of([2])]).plan(), &[])?;
    let by_index = Read::get(table().index("by_s"), [key("s", "x")]).columns(["s", "a"]);
    same(tally, session, "select s, a from p where s = 'x' order by a", &by_index.plan(), &[])?;
    let named = Read::get(Table::named(parameter(0)).schema(parameter(1)).index("PRIMARY"), [key("a", parameter(2))]);
    let names = [Argument::identifier("p"), Argument::identifier("shop"), 3.into()];
    same(tally, session, "select * from p where a = 3", &named.plan(), &names)?;
    same(tally, session, "select b, a from p", &Read::scan(table()).columns([1, 0]).plan(), &[])?;
    same(tally, session, "select * from p order by a desc, b desc", &Read::scan(table()).reversed().plan(), &[])?;
    let range = Read::range(table(), Key::of([1]), key("a", 2));
    same(tally, session, "select * from p where a between 1 and 2", &range.plan(), &[])?;
    same(tally, session, "select * from p where a >= 2", &Read::range(table(), key("a", 2), None).plan(), &[])?;
    let above = Read::scan(table())
        .filter(reference(0).equal_to(value(parameter(0))))
        .compute([("twice", reference(1) * value(2)), ("s", reference(2))]);
    same(tally, session, "select b * 2, s from p where a = 1", &above.plan(), &[1.into()])?;
    for (kind, sql) in [
        (Aggregate::Count, "count(b)"),
        (Aggregate::CountDistinct, "count(distinct b)"),
        (Aggregate::Sum, "sum(b)"),
        (Aggregate::SumDistinct, "sum(distinct b)"),
        (Aggregate::Avg, "avg(b)"),
        (Aggregate::AvgDistinct, "avg(distinct b)"),
        (Aggregate::Min, "min(b)"),
        (Aggregate::Max, "max(b)"),
    ] {
        let plan = Read::scan(table()).aggregate(kind, reference(1)).plan();
        same(tally, session, &format!("select {sql} from p"), &plan, &[])?;
    }
    let chunked = session.run(&Request::plan(&Read::scan(table()).plan()).chunks())?.collect()?;
    tally.equal("a plan's rows by column", &chunked.rows, &session.execute("select * from p", &[])?.rows);
    tally.code(
        "a plan of no table",
        session.run(&Request::plan(&Read::scan(Table::named("nowhere").schema("shop")).plan())),
        1146,
    );
    let function = Read::scan(table()).filter(call("bloom_filter", [reference(0)])).plan();
    tally.check(
        "a function that is not served",
        matches!(session.run(&Request::plan(&function)), Err(Error::Server(error)) if !error.is_fatal),
    );
    Ok(())
}

fn expressions(tally: &mut Tally, session: &mut Session) -> Result {
    let (a, b, s, d) = (|| reference(0), || reference(1), || reference(2), || reference(3));
    let conditions: Vec<(&str, Expression)> = vec![
        ("a = b", a().equal_to(b())),
        ("a <> b", a().not_equal_to(b())),
        ("d <=> null", d().same_as(value(Argument::Null))),
        ("a < b", a().less_than(b())),
        ("a <= b", a().at_most(b())),
        ("a > b", a().greater_than(b())),
        ("a >= b", a().at_least(b())),
        ("a = 1 and b = 2", a().equal_to(value(1)).and(b().equal_to(value(2)))),
        ("a = 1 or b = 7", a().equal_to(value(1)).or(b().equal_to(value(7)))),
        ("d is null", d().is_null()),
        ("d is not null", d().is_not_null()),
        ("s like 'z%'", s().like(value("z%"))),
        ("s not like '%e%'", s().not_like(value("%e%"))),
        ("b in (2, 7)", b().is_in([value(2), value(7)])),
        ("b not in (2, 7)", b().is_not_in([value(2), value(7)])),
        ("not (a = 1)", !a().equal_to(value(1))),
        ("d > -5.5", d().greater_than(value(-5.5))),
        ("~a = ~b", operator("~", [a()]).equal_to(operator("~", [b()]))),
    ];
    for (sql, condition) in conditions {
        let plan = Read::scan(Table::named("p").schema("shop")).filter(condition).plan();
        same(tally, session, &format!("select * from p where {sql}"), &plan, &[])?;
    }
    let computed: Vec<(&str, Expression)> = vec![
        ("a + b", a() + b()),
        ("a - b", a() - b()),
        ("a * b", a() * b()),
        ("a / b", a() / b()),
        ("a div b", a().div_whole(b())),
        ("a % b", a() % b()),
        ("-a", -a()),
        ("+a", operator("+", [a()])),
    ];
    for (sql, of) in computed {
        let plan = Read::scan(Table::named("p").schema("shop")).compute([("x", of)]).plan();
        same(tally, session, &format!("select {sql} as x from p"), &plan, &[])?;
    }
    Ok(())
}

/// Sessions of each of some threads, all on four connections.
const THREADS: i64 = 8;
const SESSIONS: i64 = 100;

fn crowd(tally: &mut Tally, pool: &Pool) -> Result {
    let wrong: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || one_thread(pool, thread))).collect();
        threads.into_iter().map(|thread| thread.join().map_or(Ok(1), |found| found)).sum::<Result<usize>>()
    })?;
    tally.equal("eight hundred sessions on four connections", &wrong, &0);
    tally.check("they are closed", pool.connection()?.session_count() < SESSIONS as usize);
    Ok(())
}

/// How many of its answers were not right.
fn one_thread(pool: &Pool, thread: i64) -> Result<usize> {
    let mut sessions = (0..SESSIONS).map(|_| pool.session()).collect::<Result<Vec<Session>>>()?;
    for (session, at) in sessions.iter_mut().zip(0..) {
        session.execute("set @mine = ?", &[(thread * SESSIONS + at).into()])?;
    }
    let mut wrong = 0;
    for _ in 0..3 {
        let mut sent = Vec::new();
        for session in &mut sessions {
            let mut pipeline = session.pipeline();
            pipeline.add(Request::text("select @mine"));
            sent.push(pipeline.send()?);
        }
        for (sent, at) in sent.into_iter().zip(0..) {
            let answer = sent.collect()?.remove(0).map_err(Error::Server)?;
            wrong += usize::from(numbers(&answer.rows) != [thread * SESSIONS + at]);
        }
    }
    Ok(wrong)
}

fn transactions(tally: &mut Tally, pool: &Pool, session: &mut Session) -> Result {
    let count = |session: &mut Session| session.execute("select count(*) from shop.t where id > 100", &[]);
    session.execute("begin", &[])?;
    session.execute("insert into t values (101, 1)", &[])?;
    session.savepoint(Savepoint::Set, "here")?;
    session.execute("insert into t values (102, 1)", &[])?;
    session.savepoint(Savepoint::Rollback, "here")?;
    session.savepoint(Savepoint::Release, "here")?;
    tally.code("a savepoint that is gone", session.savepoint(Savepoint::Rollback, "here"), 1305);
    let mut other = pool.session()?;
    tally.equal("others see nothing of it", &numbers(&count(&mut other)?.rows), &vec![0]);
    session.execute("commit", &[])?;
    tally.equal("until it is committed", &numbers(&count(&mut other)?.rows), &vec![1]);
    other.execute("begin", &[])?;
    other.execute("update shop.t set n = 7 where id = 101", &[])?;
    drop(other);
    let update = session.execute("update t set n = 8 where id = 101", &[])?;
    tally.equal("a session that is dropped holds no lock", &update.summary.affected, &1);
    let mut third = pool.session()?;
    let rows = third.run(&Request::text("select id, s from shop.big").token(Some(1)))?;
    tally.equal("rows of a session that is dropped", &rows.columns().len(), &2);
    drop(third);
    tally.equal("others go on", &numbers(&session.execute("select n from t where id = 101", &[])?.rows), &vec![8]);
    Ok(())
}

fn kills(tally: &mut Tally, pool: &Pool, session: &mut Session) -> Result {
    session.execute("begin", &[])?;
    session.execute("update t set n = 9 where id = 101", &[])?;
    for is_whole in [false, true] {
        let mut waiting = pool.session()?;
        let killer = waiting.killer();
        let (said, heard) = mpsc::channel();
        let thread = thread::spawn(move || {
            let _ = waiting.execute("select 1", &[]);
            let _ = said.send(());
            let found = waiting.execute("update shop.t set n = 10 where id = 101", &[]);
            let mut ask = || waiting.execute("select 1", &[]).map(|_| ());
            (found.map(|_| ()), ask(), ask())
        });
        let _ = heard.recv();
        thread::sleep(Duration::from_millis(300));
        if is_whole {
            killer.session()?
        } else {
            killer.statement()?
        }
        let Ok((found, after, last)) = thread.join() else { return Err(Error::Ended) };
        match is_whole {
            false => {
                tally.code("a killed statement", found, 1317);
                tally.check("its session goes on", after.is_ok());
            }
            true => {
                tally.code("a killed session's statement", found, 1317);
                tally.check("a killed session", matches!(after, Err(Error::Server(error)) if error.is_fatal));
                tally.check("it is over", matches!(last, Err(Error::Ended)));
            }
        }
    }
    session.execute("rollback", &[])?;
    Ok(())
}

fn control(tally: &mut Tally, pool: &Pool) -> Result {
    let connection = pool.connection()?;
    let told = connection.ping()?.capabilities;
    tally.equal("what the server can do", &told[0].name.as_str(), &"polarx_rpc");
    let first = connection.timestamp(5)?;
    let second = connection.timestamp(1)?;
    tally.check("timestamps grow by their batches", second >= first + 5 * 64);
    Ok(())
}

fn logins(tally: &mut Tally, options: &Options, session: &mut Session) -> Result {
    session.execute("create user app identified with mysql_native_password by 'secret'", &[])?;
    session.execute("grant select on shop.* to app", &[])?;
    let connection = Connection::open(&options.clone().login("app", "secret"))?;
    let mut app = connection.session()?;
    tally.equal(
        "an account with a password",
        &numbers(&app.execute("select id from shop.t where id = 1", &[])?.rows),
        &vec![1],
    );
    tally.code("its rights are those of SQL", app.execute("delete from shop.t", &[]), 1142);
    for (user, password) in [("app", "Secret"), ("app", ""), ("nobody", "secret")] {
        tally.code("a wrong password", Connection::open(&options.clone().login(user, password)), 1045);
    }
    let patience = options.clone().answer_timeout(Duration::from_millis(200));
    let connection = Connection::open(&patience)?;
    let (mut slow, mut quick) = (connection.session()?, connection.session()?);
    tally.check("no answer in time", matches!(slow.execute("select sleep(30)", &[]), Err(Error::Timeout)));
    tally.equal("others on the connection go on", &numbers(&quick.execute("select 4", &[])?.rows), &vec![4]);
    Ok(())
}
