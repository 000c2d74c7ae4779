//! Counts that PostgreSQL limits, and lists whose binding may not take the square of their length.

use crate::world::{Client, World};

fn list(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(", ")
}

fn refusal(client: &mut Client, text: &str) -> String {
    client.script_error(text).map_or_else(|| "none".to_owned(), |error| format!("{} {}", error.state, error.message))
}

#[test]
fn lists_end_where_postgresql_ends_them() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table t (id int primary key)");
    let ones = |count| list(count, |_| "1".to_owned());
    let sums = |count| list(count, |nth| format!("id + {nth}"));
    let targets = "54011 target lists can have at most 1664 entries";
    let columns = "54011 tables can have at most 1600 columns";
    let cases = [
        (format!("select {}", ones(1664)), "none"),
        (format!("select {}", ones(1665)), targets),
        (format!("select 1 from t order by {}", sums(1663)), "none"),
        (format!("select 1 from t order by {}", sums(1664)), targets),
        (format!("select 1 from t order by {}", list(5000, |_| "id".to_owned())), "none"),
        (format!("select 1 from t group by {}", sums(1665)), targets),
        (format!("select count(*) from (values ({})) v", ones(1665)), targets),
        (
            format!("insert into t values (1) returning {}", ones(1665)),
            "54011 number of columns (1665) exceeds limit (1664)",
        ),
        (format!("create view v as select {}", list(1601, |nth| format!("1 as c{nth}"))), columns),
        (format!("create table v as select {}", list(1601, |nth| format!("1 as c{nth}"))), columns),
        (format!("select concat({})", ones(100)), "none"),
        (format!("select concat({})", ones(101)), "54023 cannot pass more than 100 arguments to a function"),
        (format!("select coalesce({})", ones(5000)), "none"),
    ];
    for (text, expected) in cases {
        assert_eq!(refusal(&mut client, &text), expected, "{}", &text[..60.min(text.len())]);
    }
}

/// The stack of a thread that serves clients.
const STACK_BYTES: usize = 16 << 20;

#[test]
fn a_plan_of_a_thousand_windows_fits_on_the_stack() {
    let run = || {
        stdx::stack::register(STACK_BYTES);
        let mut world = World::new();
        let mut client = world.session();
        client.run("create table t (id int primary key)");
        client.run("insert into t values (1)");
        let windows = list(1000, |nth| format!("sum(1) over (order by id + {nth})"));
        let found = client.run(&format!("select {windows} from t"));
        assert_eq!(found, [["1"; 1000].join("|")]);
    };
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(run).unwrap().join().unwrap();
}

#[test]
fn statement_timeout_ends_a_statement_that_is_parsed_or_bound() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table t (id int primary key)");
    client.run("set statement_timeout = 1");
    let timeout = "57014 canceling statement due to statement timeout";
    // The one ends while it is parsed, for it has no end that is right; the other while it is bound.
    for text in [
        format!("select {})", "1 in (1), ".repeat(300_000)),
        format!("select 7 from t where id = 0{}", " or id + 1 = 3".repeat(100_000)),
    ] {
        assert_eq!(refusal(&mut client, &text), timeout, "{}", &text[..30]);
    }
}
