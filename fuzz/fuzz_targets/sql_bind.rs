//! SQL from a logged in client, up to its plan: names, types and functions over tables of all types. Nothing is executed.
#![no_main]

mod world;

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;

use world::World;

const TABLES: &[&str] = &[
    "create database test",
    "use test",
    "create table t (id int primary key auto_increment, k int not null default 0, c char(20), n int, key (k), unique (c))",
    "create table kinds (i tinyint, u bigint unsigned, d decimal(10,2), f float, g double, b bit(9), v varchar(20), x text, y blob, e enum('a','b'), s set('a','b'), j json, day date, at datetime(6), ts timestamp null, tm time(3), yr year)",
    "create table other (id int primary key, t_id int, a varchar(30) collate utf8mb4_bin, b int as (t_id + 1), foreign key (t_id) references t (id), check (b > -100))",
    "create view v as select id, k, c from t where k > 0",
    "insert into t values (1, 2, 'a', null), (2, 2, 'b', 3), (3, 1, 'c', 3)",
];

thread_local! {
    static WORLD: RefCell<World> = RefCell::new(World::new(TABLES));
}

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    WORLD.with_borrow_mut(|world| {
        let _ = world.session.prepare(&text);
    });
});
