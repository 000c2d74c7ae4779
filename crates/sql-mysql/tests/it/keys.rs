//! Keys of the Redis door in transactions of SQL: what that door sees, who waits, what a full disk does to COMMIT.

use std::time::Duration;

use engine::{Error, Expire, Found, KeySet};
use sql_mysql::Session;

use crate::support::{World, run};

fn get(world: &World, key: &str) -> Option<String> {
    let mut out = Vec::new();
    let got = world.engine.keyspace().get(0, key.as_bytes(), &mut out, |_, _| {}).expect("reads work");
    (got.found == Found::Value).then(|| String::from_utf8_lossy(&out).into_owned())
}

fn count(world: &World) -> u64 {
    world.engine.keyspace().read::<_, Error>(KeySet::Keys(&[]), |unit| unit.count(0)).expect("counting works").0
}

fn ok(session: &mut Session, statements: &[&str]) {
    for sql in statements {
        let answer = run(session, sql);
        assert!(answer[0].starts_with("ok"), "{sql}: {answer:?}");
    }
}

#[test]
fn rows_and_keys_of_a_transaction_are_there_together() {
    let world = World::new(41);
    let keyspace = world.engine.keyspace();
    keyspace.limit_key_wait(Duration::ZERO);
    let set = |key: &str, value: &str| keyspace.set(0, key.as_bytes(), value.as_bytes(), Expire::None);
    set("stock", "10").unwrap();
    set("page", "old").unwrap();
    let mut session = world.session(1);
    ok(&mut session, &["create database d", "create table d.orders (id int primary key)"]);
    let mut watched = keyspace.watch_set();
    watched.add(0, b"stock").unwrap();
    let order = [
        "begin",
        "insert into d.orders values (1)",
        "update redis.strings set value = value - 3 where db = 0 and `key` = 'stock'",
        "delete from redis.strings where db = 0 and `key` = 'page'",
        "insert into redis.strings (`key`, value) values ('new', 'x')",
    ];
    for end in ["rollback", "commit"] {
        ok(&mut session, &order);
        assert_eq!(run(&mut session, "select count(*) from redis.strings"), ["[count(*)]", "2"]);
        assert_eq!((get(&world, "stock").unwrap(), get(&world, "new"), count(&world)), ("10".into(), None, 2));
        for key in ["stock", "page", "new"] {
            assert!(matches!(set(key, "no"), Err(Error::LockTimeout)), "{key}");
        }
        assert!(!watched.dirty(0));
        ok(&mut session, &[end]);
        set("free", end).unwrap();
        keyspace.write::<_, Error>(KeySet::Keys(&[(0, b"free")]), false, |unit| unit.delete(0, b"free")).unwrap();
    }
    assert!(watched.dirty(0));
    let seen = (get(&world, "stock").unwrap(), get(&world, "page"), get(&world, "new").unwrap());
    assert_eq!(seen, ("7".into(), None, "x".into()));
    drop(session);
    let world = world.reopen();
    assert_eq!((get(&world, "stock").unwrap(), count(&world)), ("7".into(), 2));
    assert_eq!(run(&mut world.session(1), "select * from d.orders"), ["[id]", "1"]);
    assert!(world.engine.check().unwrap().problems.is_empty());
}

#[test]
fn a_commit_that_finds_the_disk_full_is_an_error_and_changes_nothing() {
    let world = World::new(42);
    let mut session = world.session(1);
    ok(&mut session, &["create database d", "create table d.t (id int primary key)"]);
    world.folder.set_capacity(Some(world.folder.used_bytes() + (40 << 20)));
    ok(
        &mut session,
        &["begin", "insert into d.t values (1)", "insert into redis.strings (`key`, value) values ('a', 1)"],
    );
    for at in 0..60 {
        ok(
            &mut session,
            &[&format!("insert into redis.strings (`key`, value) values ('b{at}', repeat('x', 1000000))")],
        );
    }
    let answer = run(&mut session, "commit");
    assert!(answer[0].starts_with("error 1021"), "{answer:?}");
    assert_eq!(run(&mut session, "select * from d.t"), ["[id]"]);
    assert_eq!((get(&world, "a"), count(&world)), (None, 0));
    world.folder.set_capacity(None);
    world.engine.pager().background_step().expect("room is found again");
    ok(
        &mut session,
        &["begin", "insert into d.t values (1)", "replace into redis.strings (`key`, value) values ('a', 2)", "commit"],
    );
    assert_eq!(get(&world, "a").unwrap(), "2");
}
