//! Many sessions on one table: nothing is lost, and every index agrees with the rows.

use std::sync::Arc;

use os::SimFolder;
use stdx::prng::Prng;

use crate::support::{World, run};

const ACCOUNTS: u64 = 20;
const THREADS: u64 = 4;

/// Returns the sorted rows of a full scan and of each index.
fn agree(session: &mut sql_mysql::Session) {
    let mut full = run(session, "select id, k, v from t where v + 0 > -1000000");
    let mut by_k = run(session, "select id, k, v from t where k >= 0");
    let mut by_v = run(session, "select id, k, v from t where v > -1000000 and v < 1000000 order by v");
    let keys = run(session, "select count(*) from t where k >= 0");
    assert_eq!(keys[1], (full.len() - 1).to_string());
    full.sort();
    by_k.sort();
    by_v.sort();
    assert_eq!(full, by_k);
    assert_eq!(full, by_v);
}

fn prepared(world: &World) {
    let mut session = world.session(1);
    for sql in [
        "create database d",
        "create table d.t (id int primary key auto_increment, k int not null, v int, u int, unique (u), key (k), key (v))",
    ] {
        assert!(run(&mut session, sql)[0].starts_with("ok"));
    }
    for id in 1..=ACCOUNTS {
        let sql = format!("insert into d.t values ({id}, {id}, 100, {id})");
        assert!(run(&mut session, &sql)[0].starts_with("ok"));
    }
}

/// Moves amounts about, in transactions of several statements; some are rolled back, some meet a deadlock.
fn trade(world: &World, thread: u64, seed: u64) {
    let mut session = world.session(10 + thread);
    run(&mut session, "use d");
    run(&mut session, "set innodb_lock_wait_timeout = 5");
    let mut prng = Prng::new(seed);
    for round in 0..120 {
        let (from, to, amount) = (prng.below(ACCOUNTS) + 1, prng.below(ACCOUNTS) + 1, prng.below(10));
        let work = [
            "begin".to_owned(),
            format!("update t set v = v - {amount}, k = k + 1 where id = {from}"),
            format!("update t set v = v + {amount} where u = {to}"),
            if round % 10 == 9 { "rollback".to_owned() } else { "commit".to_owned() },
        ];
        for sql in work {
            let answer = run(&mut session, &sql);
            if answer[0].starts_with("error") {
                assert!(
                    answer[0].starts_with("error 1213") || answer[0].starts_with("error 1205"),
                    "{sql}: {answer:?}"
                );
                run(&mut session, "rollback");
                break;
            }
        }
        if round % 7 == 0 {
            run(&mut session, &format!("insert into t (k, v, u) values ({round}, 0, null)"));
            run(&mut session, &format!("delete from t where u is null and k = {round} limit 1"));
        }
        if round % 5 == 0 {
            assert_eq!(run(&mut session, "select sum(v) from t")[1], (ACCOUNTS * 100).to_string());
        }
    }
}

#[test]
fn money_is_neither_made_nor_lost_and_indexes_agree() {
    let seed = 21;
    let world = Arc::new(World::on(SimFolder::new(seed)));
    prepared(&world);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let world = &world;
            scope.spawn(move || trade(world, thread, seed * 100 + thread));
        }
    });
    let mut session = world.session(1);
    run(&mut session, "use d");
    agree(&mut session);
    assert_eq!(run(&mut session, "select sum(v) from t")[1], (ACCOUNTS * 100).to_string());
}

#[test]
fn after_a_crash_rows_and_indexes_agree() {
    for seed in 31..34 {
        let world = World::on(SimFolder::new(seed));
        prepared(&world);
        trade(&world, 0, seed);
        let world = world.crash();
        let mut session = world.session(1);
        // What was not yet durable may be gone, the table itself included; what is there is whole.
        if run(&mut session, "use d")[0].starts_with("ok")
            && run(&mut session, "select count(*) from t")[0].starts_with('[')
        {
            agree(&mut session);
        }
    }
}
