//! Deferrable constraints, and SET CONSTRAINTS.

use stdx::prng::Prng;

use crate::world::{World, play};

#[test]
fn deferred_foreign_keys_are_checked_when_postgresql_checks_them() {
    let mut world = World::new();
    let mut client = world.session();
    play(&mut client, include_str!("../definitions/deferred.txt"));
}

#[test]
fn deferrable_keys_are_checked_when_postgresql_checks_them() {
    let mut world = World::new();
    let mut client = world.session();
    play(&mut client, include_str!("../definitions/deferrable_keys.txt"));
}

/// A statement fails exactly if it leaves equal values in an immediate key, and a commit if the transaction leaves some in a deferred one.
#[test]
fn a_deferrable_key_is_unique_behind_each_statement_or_commit() {
    let (mut committed, mut refused) = (0, 0);
    for seed in 0..6 {
        let mut random = Prng::new(seed);
        let mut world = World::new();
        let mut client = world.session();
        client.run("create table t (a int primary key deferrable initially deferred, b int unique deferrable, c text)");
        client.run("create table plain (a int, b int, c text)");
        for _ in 0..60 {
            client.run("begin");
            let mut has_point = false;
            for _ in 0..random.below(6) + 1 {
                let (a, b, c) = (random.below(4), random.below(8), random.below(8));
                let change = |table: &str| match c {
                    0..3 => format!("insert into {table} values ({a}, nullif({b}, 7), 'x')"),
                    3 => format!("update {table} set a = a + {c} where a > {a}"),
                    4 => format!("update {table} set b = 6 - b"),
                    5 => format!("delete from {table} where a = {a}"),
                    6 => format!("update {table} set a = {a}, b = {b} where a = {b}"),
                    _ => format!("update {table} set c = c || 'y' where b = {b}"),
                };
                if random.below(5) == 0 {
                    let point = if std::mem::replace(&mut has_point, true) { "rollback to s" } else { "savepoint s" };
                    client.run(point);
                    continue;
                }
                client.run("savepoint before");
                client.run(&change("plain"));
                let is_unique = client.run("select count(b) = count(distinct b) from plain") == ["t"];
                let done = client.run(&change("t"));
                let has_failed = done.first().is_some_and(|line| line.starts_with("ERROR"));
                assert_eq!(has_failed, !is_unique, "seed {seed}: {done:?}");
                if has_failed {
                    client.run("rollback to before");
                }
                let difference = "select (select count(*) from (table t except all table plain) x), (select count(*) from t) - (select count(*) from plain)";
                assert_eq!(client.run(difference), ["0|0"], "seed {seed}");
            }
            let expected = client.run("select count(*) = count(distinct a) from t") == ["t"];
            let done = client.run("commit");
            assert_eq!(done == ["COMMIT"], expected, "seed {seed}: {done:?}");
            if expected {
                committed += 1;
            } else {
                refused += 1;
            }
        }
        let mut world = world.crash(client);
        let mut client = world.session();
        assert_eq!(client.run("select count(*) - count(distinct a), count(b) - count(distinct b) from t"), ["0|0"]);
    }
    assert!(committed > 20 && refused > 20, "{committed} committed, {refused} refused");
}

#[test]
fn checks_that_set_constraints_made_wait_again_behind_a_rollback_to_a_savepoint() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table p (a int primary key)");
    client.run("create table c (a int references p deferrable initially deferred)");
    client.run("create table k (a int primary key deferrable initially deferred)");
    for made in ["insert into p values (1)", "select 1"] {
        client.run("begin; insert into c values (1); savepoint s");
        client.run(made);
        client.run("set constraints all immediate");
        client.run("rollback to s");
        assert_eq!(client.run("commit")[0].split(' ').nth(2), Some("23503:"), "after {made}");
    }
    for made in ["delete from k", "select 1", "insert into p values (1), (1)"] {
        client.run("begin; insert into k values (1), (1); savepoint s");
        client.run(made);
        client.run("set constraints all immediate");
        client.run("rollback to s");
        assert_eq!(client.run("commit")[0].split(' ').nth(2), Some("23505:"), "after {made}");
    }
    assert_eq!(client.run("select (select count(*) from c), (select count(*) from k)"), ["0|0"]);
}

#[test]
fn of_two_transactions_with_one_deferred_key_the_second_to_commit_fails() {
    let mut world = World::new();
    let (mut one, mut other) = (world.session(), world.session());
    one.run("create table t (a int primary key deferrable initially deferred)");
    other.run("begin; select from t");
    one.run("insert into t values (1)");
    assert_eq!(other.run("insert into t values (1)"), ["INSERT 0 1"]);
    let key = "ERROR:  23505: duplicate key value violates unique constraint \"t_pkey\"";
    assert_eq!(other.run("commit")[0], key);
    assert_eq!(one.run("select * from t"), ["1"]);
}

/// A transaction commits exactly if each child has its parent then, whatever came before, with savepoints undone.
#[test]
fn a_commit_succeeds_if_every_child_has_its_parent() {
    for seed in 0..6 {
        let mut random = Prng::new(seed);
        let mut world = World::new();
        let mut client = world.session();
        client.run("create table p (id int primary key, k text unique)");
        client.run(
            "create table c (id int primary key, a int references p deferrable initially deferred, \
             k text references p (k) on update cascade deferrable initially deferred)",
        );
        let (mut committed, mut refused) = (0, 0);
        for _ in 0..60 {
            client.run("begin");
            let mut has_point = false;
            for _ in 0..random.below(6) + 1 {
                let (id, other) = (random.below(6), random.below(6));
                let statement = match random.below(11) {
                    0 | 1 => format!("insert into p values ({id}, 'k{other}') on conflict do nothing"),
                    2 | 3 => format!("insert into c values ({id}, {other}, null) on conflict do nothing"),
                    4 => format!("insert into c values ({id}, null, 'k{other}') on conflict do nothing"),
                    5 => format!("delete from p where id = {id}"),
                    6 => format!("delete from c where id = {id}"),
                    7 => format!("update c set a = {other} where id = {id}"),
                    8 => format!("update p set id = {other} + 10 * (id % 2) where id = {id} and id <> {other}"),
                    9 if !has_point => {
                        has_point = true;
                        "savepoint s".to_owned()
                    }
                    _ if has_point => "rollback to s".to_owned(),
                    _ => continue,
                };
                let done = client.run(&statement);
                // A duplicate key aborts: back to the point, or out.
                if done.first().is_some_and(|line| line.starts_with("ERROR")) {
                    client.run(if has_point { "rollback to s" } else { "rollback" });
                    if !has_point {
                        client.run("begin");
                    }
                }
            }
            let orphans = "select count(*) from c where (a is not null and not exists (select 1 from p where p.id = c.a)) \
                           or (k is not null and not exists (select 1 from p where p.k = c.k))";
            let expected = client.run(orphans) == ["0"];
            let done = client.run("commit");
            assert_eq!(done == ["COMMIT"], expected, "seed {seed}: {done:?}");
            assert_eq!(client.run(orphans), ["0"], "seed {seed}");
            if expected { committed += 1 } else { refused += 1 }
        }
        assert!(committed > 5 && refused > 5, "seed {seed}: {committed} committed, {refused} refused");
    }
}

#[test]
fn values_to_check_are_kept_once_and_beyond_memory_in_a_file() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table p (id int primary key)");
    client.run("create table c (id int primary key, a int references p deferrable initially deferred)");
    client.run("begin");
    assert_eq!(client.run("insert into c select g, g % 3000 from generate_series(1, 9000) g"), ["INSERT 0 9000"]);
    assert_eq!(client.run("insert into p select g from generate_series(1, 2999) g"), ["INSERT 0 2999"]);
    let error = client.script_error("commit").expect("a parent is missing");
    assert_eq!(error.detail.as_deref(), Some("Key (a)=(0) is not present in table \"p\"."));
    assert_eq!(client.run("select count(*) from c"), ["0"]);
}

#[test]
fn deferrability_survives_a_crash() {
    let mut world = World::new();
    let mut client = world.session();
    client.run("create table p (id int primary key)");
    client.run("create table c (a int references p deferrable initially deferred, b int references p deferrable)");
    let mut world = world.crash(client);
    let mut client = world.session();
    let constraints =
        "select pg_get_constraintdef(oid) from pg_constraint where conrelid = 'c'::regclass order by conname";
    assert_eq!(
        client.run(constraints),
        [
            "FOREIGN KEY (a) REFERENCES p(id) DEFERRABLE INITIALLY DEFERRED",
            "FOREIGN KEY (b) REFERENCES p(id) DEFERRABLE"
        ]
    );
}
