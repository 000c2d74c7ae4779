//! EXPLAIN ANALYZE: it runs the plan, and says what each node has done. Times differ from run to run and are left out.

use crate::support::{World, run};

/// Is there a line of the answer with both?
fn says(answer: &str, node: &str, counts: &str) -> bool {
    answer.split("\\n").any(|line| line.contains(node) && line.ends_with(counts))
}

#[test]
fn analyze_counts_rows_and_loops_of_every_node() {
    let world = World::new(11);
    let mut session = world.session(1);
    for sql in [
        "create database test",
        "use test",
        "create table a (id int primary key, k int)",
        "create table b (id int primary key, a_id int, key a_id (a_id))",
        "insert into a values (1,1),(2,1),(3,20)",
        "insert into b values (1,1),(2,1),(3,3),(4,3)",
    ] {
        run(&mut session, sql);
    }
    let sql =
        "explain analyze select a.id, count(*) from b straight_join a on b.a_id = a.id where a.k < 9 group by a.id";
    let answer = run(&mut session, sql).join("\n");
    for (node, counts) in [
        ("Group by hash: a.id [count(0)]", "rows=1 loops=1)"),
        ("Nested loop inner join", "rows=2 loops=1)"),
        ("Table scan on b", "rows=4 loops=1)"),
        ("where (b.a_id = a.id) and (a.k < 9)", "rows=0.50 loops=4)"),
    ] {
        assert!(says(&answer, node, counts), "{node} {counts}: {answer}");
    }
    let answer =
        run(&mut session, "explain analyze select * from a where id > 9 and exists (select 1 from b)").join("\n");
    assert!(answer.contains("(never executed)"), "{answer}");
    // Of changes the rows are found and measured, and left as they are.
    for (sql, verb) in [
        ("explain analyze update a join b on b.a_id = a.id set a.k = 9, b.a_id = 0", "Update"),
        ("explain analyze delete a, b from a join b on b.a_id = a.id", "Delete"),
        ("explain analyze insert into a select b.id + 10, b.a_id from a join b on b.a_id = a.id", "Insert into"),
        ("explain analyze replace into a select b.id + 10, b.a_id from a join b on b.a_id = a.id", "Replace into"),
    ] {
        let answer = run(&mut session, sql).join("\n");
        assert!(answer.contains(verb) && says(&answer, "Nested loop inner join", "rows=4 loops=1)"), "{answer}");
    }
    assert_eq!(run(&mut session, "select count(*), sum(k) from a").join("|"), "[count(*) | sum(k)]|3 | 22");
    assert_eq!(run(&mut session, "select count(*), sum(a_id) from b").join("|"), "[count(*) | sum(a_id)]|4 | 8");
    // Nothing of it stays open, and the next statement is not measured.
    assert_eq!(run(&mut session, "select count(*) from b").join("|"), "[count(*)]|4");
}
