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
    // The door holds a reply until the WAL is durable up to its LSN.
    world.engine.durable().wait(root.durability_lsn());
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

/// CREATE USER, ROLE_ADMIN, SET_USER_ID and CONNECTION_ADMIN together are no way to the rights of an account that holds SYSTEM_USER.
#[test]
fn accounts_with_system_user_are_changed_by_those_that_hold_it() {
    let world = World::new(27);
    let mut root = world.session(1);
    for sql in [
        "create database d",
        "create table d.t (id int primary key)",
        "create user helper, app, chief, second",
        "create role bosses",
        "grant create user, select, set_user_id, connection_admin, role_admin, create view on *.* to helper with grant option",
        "grant system_user on *.* to chief",
        "grant system_user on *.* to bosses",
        "grant bosses to second",
    ] {
        let answer = run(&mut root, sql);
        assert!(answer[0].starts_with("ok"), "{sql}: {answer:?}");
    }
    let before: Vec<_> =
        ["root", "chief", "second", "bosses"].map(|name| run(&mut root, &format!("show grants for {name}"))).into();
    let mut helper = world.session_of("helper", "localhost", 2).expect("helper is there");
    let mut chief = world.session_of("chief", "localhost", 3).expect("chief is there");
    let app = world.session_of("app", "localhost", 4).expect("app is there");
    let denied = "error 1227 Access denied; you need (at least one of) the SYSTEM_USER privilege(s) for this operation";
    for name in ["root", "chief", "second", "bosses"] {
        for sql in [
            "alter user NAME identified by 'x'",
            "alter user NAME account lock",
            "alter user app, NAME password expire",
            "set password for NAME = 'x'",
            "rename user NAME to other",
            "drop user NAME",
            "drop user app, NAME",
            "grant select on *.* to NAME",
            "revoke select on *.* from NAME",
            "revoke all privileges, grant option from NAME",
            "alter user NAME default role none",
        ] {
            // Whom every data folder begins with cannot be renamed or dropped by anybody.
            if name == "root" && (sql.starts_with("rename") || sql.contains("drop")) {
                continue;
            }
            let sql = sql.replace("NAME", name);
            assert_eq!(run(&mut helper, &sql)[0], denied, "{sql}");
        }
    }
    for sql in [
        "grant bosses to app",
        "revoke bosses from second",
        "create user new default role bosses",
        "create definer = chief view d.v as select id from d.t",
        "create definer = root view d.v as select id from d.t",
    ] {
        assert_eq!(run(&mut helper, sql)[0], denied, "{sql}");
    }
    assert!(run(&mut helper, "grant system_user on *.* to app")[0].starts_with("error 1045"));
    assert_eq!(run(&mut helper, "kill 3")[0], "error 1095 You are not owner of thread 3");
    assert_eq!(run(&mut helper, "kill 1")[0], "error 1095 You are not owner of thread 1");
    assert_eq!(run(&mut helper, "kill 4")[0], "ok 0");
    drop(app);
    let after: Vec<_> =
        ["root", "chief", "second", "bosses"].map(|name| run(&mut root, &format!("show grants for {name}"))).into();
    assert_eq!(after, before);
    // Accounts without it are changed as ever, one's own password too, and holders change each other.
    for sql in ["alter user app identified by 'x'", "alter user helper identified by 'x'", "drop user app"] {
        assert_eq!(run(&mut helper, sql)[0], "ok 0", "{sql}");
    }
    assert_eq!(run(&mut chief, "set password = 'y'")[0], "ok 0");
    assert_eq!(run(&mut root, "alter user chief account lock")[0], "ok 0");
    assert_eq!(run(&mut root, "drop user second, chief")[0], "ok 0");
}
