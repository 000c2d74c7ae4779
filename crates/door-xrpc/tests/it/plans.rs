//! Plans of clients: each node, keys and names as parameters, digests, errors.

use door_xrpc::proto::{put_bytes, put_measured, put_number, zigzag};

use super::client::Answer;
use super::*;

fn scalar(kind: u64, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(&mut out, 1, kind);
    write(&mut out);
    out
}

pub fn int(value: i64) -> Vec<u8> {
    scalar(1, |out| put_number(out, 2, zigzag(value)))
}

pub fn string(value: &str) -> Vec<u8> {
    scalar(8, |out| put_measured(out, 9, |out| put_bytes(out, 1, value.as_bytes())))
}

/// A name as clients send it, in the place of a string.
fn identifier(name: &str) -> Vec<u8> {
    scalar(10, |out| put_measured(out, 9, |out| put_bytes(out, 1, name.as_bytes())))
}

pub fn placeholder(at: u64) -> Vec<u8> {
    scalar(9, |out| put_number(out, 10, at))
}

fn node(kind: u64, place: u32, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(&mut out, 1, kind);
    put_measured(&mut out, place, write);
    out
}

fn table(out: &mut Vec<u8>, place: u32, (name, schema): (&[u8], &[u8])) {
    put_measured(out, place, |out| {
        put_bytes(out, 2, name);
        put_bytes(out, 3, schema);
    });
}

fn index(out: &mut Vec<u8>, place: u32, name: &str) {
    put_measured(out, place, |out| put_bytes(out, 1, &string(name)));
}

fn key(out: &mut Vec<u8>, place: u32, parts: &[(&str, Vec<u8>)]) {
    put_measured(out, place, |out| {
        for (column, value) in parts {
            put_measured(out, 1, |out| {
                if !column.is_empty() {
                    put_bytes(out, 1, &string(column));
                }
                put_bytes(out, 2, value);
            });
        }
    });
}

fn names() -> (Vec<u8>, Vec<u8>) {
    (placeholder(0), placeholder(1))
}

/// Reads the table and schema of parameters 0 and 1 by the primary key.
pub fn get(keys: &[&[(&str, Vec<u8>)]]) -> Vec<u8> {
    let (name, schema) = names();
    node(1, 2, |out| {
        table(out, 1, (&name, &schema));
        keys.iter().for_each(|parts| key(out, 3, parts));
    })
}

fn scan(by: Option<&str>, reverse: bool) -> Vec<u8> {
    let (name, schema) = names();
    node(2, 3, |out| {
        table(out, 1, (&name, &schema));
        by.into_iter().for_each(|name| index(out, 2, name));
        put_number(out, 3, reverse.into());
    })
}

fn range(from: &[(&str, Vec<u8>)], to: &[(&str, Vec<u8>)], by: &str) -> Vec<u8> {
    let (name, schema) = names();
    node(8, 8, |out| {
        table(out, 3, (&name, &schema));
        index(out, 4, by);
        if !from.is_empty() {
            key(out, 5, from);
        }
        if !to.is_empty() {
            key(out, 6, to);
        }
    })
}

pub fn pick(below: &[u8], columns: &[Vec<u8>]) -> Vec<u8> {
    node(3, 4, |out| {
        put_bytes(out, 1, below);
        columns.iter().for_each(|column| put_bytes(out, 2, column));
    })
}

fn filter(below: &[u8], expr: &[u8]) -> Vec<u8> {
    node(5, 6, |out| {
        put_bytes(out, 1, below);
        put_bytes(out, 2, expr);
    })
}

fn project(below: &[u8], columns: &[(&str, Vec<u8>)]) -> Vec<u8> {
    node(4, 5, |out| {
        put_bytes(out, 1, below);
        columns.iter().for_each(|(name, _)| put_bytes(out, 2, &string(name)));
        columns.iter().for_each(|(_, expr)| put_bytes(out, 3, expr));
    })
}

fn aggregate(below: &[u8], kind: u64, of: Option<&str>) -> Vec<u8> {
    node(9, 9, |out| {
        put_bytes(out, 1, below);
        put_number(out, 2, kind);
        of.into_iter().for_each(|column| put_bytes(out, 3, &string(column)));
    })
}

fn literal(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(&mut out, 1, 2);
    put_bytes(&mut out, 4, value);
    out
}

fn reference(place: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(&mut out, 1, 9);
    put_number(&mut out, 10, place);
    out
}

fn operator(name: &str, of: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(&mut out, 1, 5);
    put_measured(&mut out, 6, |out| {
        put_bytes(out, 1, name.as_bytes());
        of.iter().for_each(|one| put_bytes(out, 2, one));
    });
    out
}

/// Builds EXEC_PLAN_READ of `d.t` with these values behind the names.
fn request(plan: Option<&[u8]>, digest: Option<&[u8]>, table: &str, values: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    plan.into_iter().for_each(|plan| put_bytes(&mut out, 2, plan));
    digest.into_iter().for_each(|digest| put_bytes(&mut out, 3, digest));
    let names = [identifier(table), identifier("d")];
    names.iter().chain(values).for_each(|parameter| put_bytes(&mut out, 4, parameter));
    out
}

pub fn run(client: &mut Client, plan: &[u8], values: &[Vec<u8>]) -> Answer {
    client.send(2, 100, &request(Some(plan), None, "t", values));
    client.answer(2)
}

/// Rows of three columns: id 1 to 9, n = id % 3 or NULL for 9, s = its letter.
fn filled() -> (Served, Client) {
    let served = serve(Options::default());
    let mut client = served.session();
    client.done(2, "create table t (id int primary key, n int, s varchar(10), key by_n (n, s))");
    let rows = "(1, 1, 'a'), (2, 2, 'b'), (3, 0, 'c'), (4, 1, 'd'), (5, 2, 'e'), (6, 0, 'f'), (7, 1, 'g'), (8, 2, 'h')";
    client.done(2, &format!("insert into t values {rows}, (9, null, 'i')"));
    (served, client)
}

#[test]
fn rows_are_got_by_their_keys() {
    let (served, mut client) = filled();
    let by_id = get(&[&[("id", placeholder(2))]]);
    let answer = run(&mut client, &by_id, &[int(5)]);
    assert_eq!((answer.numbers(), answer.affected, answer.error.clone()), (vec![5], Some(0), None));
    assert_eq!(answer.columns, ["id", "n", "s"]);
    assert_eq!(run(&mut client, &by_id, &[int(77)]).rows.len(), 0);
    assert_eq!(run(&mut client, &by_id, &[scalar(3, |_| {})]).rows.len(), 0, "NULL is no key");
    let several = get(&[&[("id", placeholder(2))], &[("id", int(7))], &[("id", placeholder(3))]]);
    assert_eq!(run(&mut client, &several, &[int(5), int(2)]).numbers(), [2, 5, 7]);
    let (name, schema) = names();
    let by_n = node(1, 2, |out| {
        table(out, 1, (&name, &schema));
        index(out, 2, "by_n");
        key(out, 3, &[("", int(1)), ("", string("d"))]);
    });
    assert_eq!(run(&mut client, &by_n, &[]).numbers(), [4], "parts as they stand in the index");
    served.stop();
}

#[test]
fn names_of_tables_and_schemas_count_in_lower_case() {
    let (served, mut client) = filled();
    let by_id = get(&[&[("ID", placeholder(2))]]);
    let mut out = Vec::new();
    put_bytes(&mut out, 2, &by_id);
    for parameter in [identifier("T"), identifier("D"), int(5)] {
        put_bytes(&mut out, 4, &parameter);
    }
    client.send(2, 100, &out);
    let answer = client.answer(2);
    assert_eq!((answer.numbers(), answer.error.clone()), (vec![5], None));
    served.stop();
}

#[test]
fn scans_and_ranges_go_by_their_index() {
    let (served, mut client) = filled();
    assert_eq!(run(&mut client, &scan(None, false), &[]).numbers(), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(run(&mut client, &scan(Some("PRIMARY"), true), &[]).numbers()[..3], [9, 8, 7]);
    assert_eq!(run(&mut client, &scan(Some("by_n"), false), &[]).numbers(), [9, 3, 6, 1, 4, 7, 2, 5, 8]);
    let ids = range(&[("id", placeholder(2))], &[("id", int(5))], "PRIMARY");
    assert_eq!(run(&mut client, &ids, &[int(3)]).numbers(), [3, 4, 5]);
    let both = range(&[("n", int(0)), ("s", string("e"))], &[("n", int(1)), ("s", string("d"))], "by_n");
    assert_eq!(run(&mut client, &both, &[]).numbers(), [6, 1, 4]);
    let open = range(&[("id", int(8))], &[], "PRIMARY");
    assert_eq!(run(&mut client, &open, &[]).numbers(), [8, 9]);
    served.stop();
}

#[test]
fn columns_are_picked_computed_and_looked_at() {
    let (served, mut client) = filled();
    let picked = pick(&scan(None, false), &[string("s"), scalar(2, |out| put_number(out, 3, 0))]);
    assert_eq!(run(&mut client, &picked, &[]).columns, ["s", "id"]);
    // References are to the selected columns: the second one is the id.
    let wanted = operator(
        "&&",
        &[
            operator(">", &[reference(1), literal(&placeholder(2))]),
            operator("!=", &[reference(0), literal(&string("h"))]),
            operator("<=", &[reference(1), literal(&int(9))]),
        ],
    );
    let filtered = filter(&picked, &wanted);
    let answer = run(&mut client, &filtered, &[int(6)]);
    assert_eq!(answer.rows, [[b"g\0".to_vec(), vec![14]], [b"i\0".to_vec(), vec![18]]]);
    let computed = project(
        &filtered,
        &[
            ("double", operator("*", &[reference(1), literal(&int(2))])),
            ("id", operator("-", &[reference(1)])),
            ("letter", reference(0)),
        ],
    );
    let answer = run(&mut client, &computed, &[int(6)]);
    assert_eq!(
        (answer.columns.clone(), answer.numbers()),
        (vec!["double".into(), "id".into(), "letter".into()], vec![14, 18])
    );
    let ids = |expr: &[u8], client: &mut Client| run(client, &filter(&scan(None, false), expr), &[]).numbers();
    let null = literal(&scalar(3, |_| {}));
    assert_eq!(ids(&operator("is", &[reference(1), null.clone()]), &mut client), [9]);
    assert_eq!(ids(&operator("is_not", &[reference(1), null]), &mut client).len(), 8);
    assert_eq!(ids(&operator("in", &[reference(0), literal(&int(1)), literal(&int(3))]), &mut client), [1, 3]);
    assert_eq!(ids(&operator("not_in", &[reference(0), literal(&int(1))]), &mut client).len(), 8);
    assert_eq!(ids(&operator("like", &[reference(2), literal(&string("%a%"))]), &mut client), [1]);
    assert_eq!(ids(&operator("!", &[operator("<", &[reference(0), literal(&int(8))])]), &mut client), [8, 9]);
    assert_eq!(
        ids(&operator("<=>", &[operator("%", &[reference(0), literal(&int(4))]), literal(&int(0))]), &mut client),
        [4, 8]
    );
    served.stop();
}

#[test]
fn rows_are_counted_and_summed() {
    let (served, mut client) = filled();
    let one = |client: &mut Client, kind, of: Option<&str>| {
        run(client, &aggregate(&scan(None, false), kind, of), &[]).rows[0][0].clone()
    };
    assert_eq!(one(&mut client, 1, None), [18], "all rows");
    assert_eq!(one(&mut client, 1, Some("n")), [16], "those that are not NULL");
    assert_eq!(one(&mut client, 2, Some("n")), [6]);
    assert_eq!(one(&mut client, 3, Some("id")), [0, 0x45, 0xc0], "a DECIMAL, as SQL's sum is");
    assert_eq!((one(&mut client, 7, Some("id")), one(&mut client, 8, Some("id"))), (vec![2], vec![18]));
    served.stop();
}

#[test]
fn a_plan_is_known_by_its_digest_with_other_names_and_other_values() {
    let (served, mut client) = filled();
    client.done(2, "create table u (id int primary key, x int)");
    client.done(2, "insert into u values (5, 50)");
    let plan = get(&[&[("id", placeholder(2))]]);
    let mut ask = |plan: Option<&[u8]>, table: &str, value: i64| {
        client.send(2, 100, &request(plan, Some(b"0123456789abcdef"), table, &[int(value)]));
        client.answer(2)
    };
    let miss = ask(None, "t", 5);
    assert_eq!((miss.code(), miss.is_fatal()), (8000, false));
    assert_eq!(ask(Some(&plan), "t", 5).numbers(), [5]);
    assert_eq!(ask(None, "t", 6).numbers(), [6]);
    assert_eq!(ask(None, "u", 5).columns, ["id", "x"], "another table");
    assert_eq!(ask(None, "t", 7).columns, ["id", "n", "s"]);
    assert_eq!((served.door.plans().hits.get(), served.door.plans().misses.get()), (3, 1));
    client.done(2, "alter table t add column z int default 3, drop column s");
    client.send(2, 100, &request(None, Some(b"0123456789abcdef"), "t", &[int(7)]));
    assert_eq!(client.answer(2).columns, ["id", "n", "z"], "the table as it is now");
    served.stop();
}

#[test]
fn plans_obey_transactions_tokens_chunks_and_dependent_errors() {
    let (served, mut client) = filled();
    client.begin(3);
    client.done(3, "begin");
    client.done(3, "insert into d.t values (10, 1, 'x')");
    assert_eq!(run(&mut client, &scan(None, false), &[]).rows.len(), 9);
    client.send(3, 100, &request(Some(&scan(None, false)), None, "t", &[]));
    assert_eq!(client.answer(3).rows.len(), 10, "its own transaction");
    let mut chunked = request(Some(&scan(None, false)), None, "t", &[]);
    put_number(&mut chunked, 11, 1);
    client.send(2, 100, &chunked);
    assert_eq!(client.answer(2).chunks, 1);
    let mut slow = request(Some(&scan(None, false)), None, "t", &[]);
    put_number(&mut slow, 6, 0);
    client.send(2, 100, &slow);
    assert_eq!(client.answer(2).token_waits, 1);
    client.send(2, 100, &request(Some(&scan(None, false)), None, "nowhere", &[]));
    let mut behind = request(Some(&scan(None, false)), None, "t", &[]);
    put_number(&mut behind, 7, 0);
    client.send(2, 100, &behind);
    assert_eq!((client.answer(2).code(), client.answer(2).code()), (1146, 1146));
    served.stop();
}

#[test]
fn a_plan_that_cannot_be_run_says_why() {
    let (served, mut client) = filled();
    for (plan, what) in [
        (scan(Some("nothing"), false), "Key 'nothing' doesn't exist in table 't'"),
        (get(&[]), "no key"),
        (get(&[&[("", int(1)), ("", int(2))]]), "more parts than its index"),
        (pick(&scan(None, false), &[string("nothing")]), "a column is not there"),
        (filter(&scan(None, false), &reference(3)), "a column is not there"),
        (filter(&scan(None, false), &operator("xor", &[reference(0), reference(1)])), "the operator xor"),
        (filter(&scan(None, false), &operator("==", &[reference(0)])), "has 1 operands"),
        (filter(&aggregate(&scan(None, false), 1, None), &reference(0)), "a filter above an aggregate"),
        (node(2, 3, |out| table(out, 1, (&placeholder(2), &placeholder(1)))), "parameter 2 is no name"),
    ] {
        let answer = run(&mut client, &plan, &[int(1)]);
        let (severity, _, _, text) = answer.error.expect(what);
        assert!(severity == 0 && text.contains(what), "{text}");
    }
    assert_eq!(run(&mut client, &scan(None, false), &[]).rows.len(), 9, "the session goes on");
    served.stop();
}

#[test]
fn a_plan_reaches_no_table_that_its_account_may_not_read() {
    let (served, mut client) = filled();
    client.done(2, "create user ann identified with mysql_native_password by 'secret'");
    let mut ann = served.connect();
    assert_eq!(ann.enter("ann", "secret").kind, 4);
    ann.begin(2);
    assert_eq!(run(&mut ann, &scan(None, false), &[]).code(), 1142);
    client.done(2, "grant select (id) on d.t to ann");
    assert_eq!(run(&mut ann, &pick(&scan(None, false), &[string("id")]), &[]).numbers().len(), 9);
    assert_eq!(run(&mut ann, &scan(None, false), &[]).code(), 1143);
    served.stop();
}
