//! Accounts and views after a crash: what was answered is there again, and what was not finished is not.

use crate::support::{World, run};

#[test]
fn users_roles_and_views_outlive_a_crash() {
    let world = World::new(21);
    let mut root = world.session(1);
    for sql in [
        "create database d",
        "create table d.t (id int primary key, a int)",
        "insert into d.t values (1, 1), (2, 2)",
        "create view d.v as select id, a from d.t where a > 1 with check option",
        "create role r",
        "grant select on d.v to r",
        "create user app identified by 'x', gone",
        "grant r to app",
        "set default role all to app",
        "grant update (a) on d.t to app",
        "drop user gone",
    ] {
        let answer = run(&mut root, sql);
        assert!(answer[0].starts_with("ok"), "{sql}: {answer:?}");
    }
    // The door holds an answer until its gate has passed.
    world.engine.durable().wait(root.gate());
    let before = run(&mut root, "show grants for app");
    drop(root);
    let world = world.crash();
    let mut root = world.session(1);
    assert_eq!(run(&mut root, "show grants for app"), before);
    assert!(world.session_of("gone", "localhost", 2).is_err());
    let mut app = world.session_of("app", "localhost", 3).expect("app is there");
    assert_eq!(run(&mut app, "select * from d.v"), ["[id | a]", "2 | 2"]);
    assert!(
        run(&mut app, "select * from d.t")[0].starts_with("error 1143")
            || run(&mut app, "select * from d.t")[0].starts_with("error 1142")
    );
    assert!(run(&mut root, "insert into d.v values (3, 0)")[0].starts_with("error 1369"));
    drop((app, root));
    let world = world.reopen();
    let mut root = world.session(1);
    assert_eq!(run(&mut root, "select count(*) from information_schema.views where table_schema = 'd'")[1], "1");
}

#[test]
fn a_statement_of_several_accounts_changes_all_or_none() {
    let world = World::new(22);
    let mut root = world.session(1);
    assert_eq!(run(&mut root, "create user a, b")[0], "ok 0");
    assert!(run(&mut root, "create user c, b")[0].starts_with("error 1396"));
    assert!(run(&mut root, "grant select on *.* to a, nobody")[0].starts_with("error 1410"));
    assert!(run(&mut root, "drop user a, nobody")[0].starts_with("error 1396"));
    assert_eq!(run(&mut root, "show grants for a")[1], "GRANT USAGE ON *.* TO `a`@`%`");
    assert!(run(&mut root, "show grants for c")[0].starts_with("error 1141"));
}

#[test]
fn rights_that_are_taken_away_meanwhile_are_gone_for_everybody() {
    let world = World::new(23);
    let mut root = world.session(1);
    for sql in
        ["create database d", "create table d.t (id int primary key)", "create user app", "grant select on d.* to app"]
    {
        assert!(run(&mut root, sql)[0].starts_with("ok"), "{sql}");
    }
    let mut sessions: Vec<_> =
        (2..6).map(|id| world.session_of("app", "localhost", id).expect("app may come in")).collect();
    let threads: Vec<_> = sessions
        .drain(..)
        .map(|mut session| {
            std::thread::spawn(move || {
                let mut denied = false;
                for _ in 0..100_000 {
                    let answer = run(&mut session, "select id from d.t where id = 1");
                    let is_denied = answer[0].starts_with("error 1142");
                    // Once it is denied it stays so: a plan in hand is never run again.
                    assert!(is_denied || !denied && answer[0] == "[id]", "{answer:?}");
                    denied |= is_denied;
                    if denied {
                        return;
                    }
                }
                panic!("the right was never taken away");
            })
        })
        .collect();
    assert!(run(&mut root, "revoke select on d.* from app")[0].starts_with("ok"));
    for thread in threads {
        thread.join().expect("no surprise");
    }
}
