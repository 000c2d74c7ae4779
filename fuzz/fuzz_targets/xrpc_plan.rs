//! Plans from a logged in client, down to their rows: any tree is refused with an error or returns rows of the columns that it announced.
#![no_main]

mod world;

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;

use world::World;

const TABLES: &[&str] = &[
    "create database d",
    "use d",
    "create table t (id int primary key, n int, s varchar(10), e enum('a','b'), v decimal(10,2), at datetime(6), b bit(9), key by_n (n, s))",
    "insert into t values (1, 1, 'a', 'a', 1.5, '2024-02-29 13:07:00.123456', 5), (2, 0, 'b', 'b', -2, null, 0), (3, null, null, null, null, null, null)",
];

thread_local! {
    static WORLD: RefCell<World> = RefCell::new(World::new(TABLES));
}

fuzz_target!(|data: &[u8]| WORLD.with_borrow_mut(|world| door_xrpc::fuzzed::plan(&mut world.session, data)));
