//! SQL from a logged in client, up to its plan: names, types and functions over tables of all types. Nothing is executed.
#![no_main]

use std::cell::RefCell;
use std::sync::Arc;

use engine::{Engine, Options};
use libfuzzer_sys::fuzz_target;
use os::{Folder, SimClock, SimFolder};
use query::{Database, Login, Session};

const TABLES: &[&str] = &[
    "create database test",
    "use test",
    "create table t (id int primary key auto_increment, k int not null default 0, c char(20), n int, key (k), unique (c))",
    "create table kinds (i tinyint, u bigint unsigned, d decimal(10,2), f float, g double, b bit(9), v varchar(20), x text, y blob, e enum('a','b'), s set('a','b'), j json, day date, at datetime(6), ts timestamp null, tm time(3), yr year)",
    "create table other (id int primary key, t_id int, a varchar(30) collate utf8mb4_bin, b int as (t_id + 1), foreign key (t_id) references t (id), check (b > -100))",
    "create view v as select id, k, c from t where k > 0",
    "insert into t values (1, 2, 'a', null), (2, 2, 'b', 3), (3, 1, 'c', 3)",
];

struct World {
    session: Session,
    /// Outlive the session.
    _engine: Arc<Engine>,
}

fn world() -> World {
    let folder = SimFolder::new(1) as Arc<dyn Folder>;
    let engine = Engine::open(Options::default(), folder, Arc::new(SimClock::new(1_700_000_000_000))).expect("opens");
    let database = Database::open(engine.clone()).expect("loads");
    let who = Login { user: "root".into(), host: "localhost".into(), database: None, connection_id: 1 };
    let mut session = Session::new(&database, who).expect("root may come in");
    for statement in TABLES {
        session.execute(statement).expect(statement);
    }
    World { session, _engine: engine }
}

thread_local! {
    static WORLD: RefCell<World> = RefCell::new(world());
}

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    WORLD.with_borrow_mut(|world| {
        let _ = world.session.prepare(&text);
    });
});
