//! Plans from a logged in client, down to their rows: whatever the tree says, it is refused with an error or answers rows of the columns that it told.
#![no_main]

use std::cell::RefCell;
use std::sync::Arc;

use engine::{Engine, Options};
use libfuzzer_sys::fuzz_target;
use os::{Folder, SimClock, SimFolder};
use query::{Database, Login, Session};

const TABLES: &[&str] = &[
    "create database d",
    "use d",
    "create table t (id int primary key, n int, s varchar(10), e enum('a','b'), v decimal(10,2), at datetime(6), b bit(9), key by_n (n, s))",
    "insert into t values (1, 1, 'a', 'a', 1.5, '2024-02-29 13:07:00.123456', 5), (2, 0, 'b', 'b', -2, null, 0), (3, null, null, null, null, null, null)",
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

fuzz_target!(|data: &[u8]| WORLD.with_borrow_mut(|world| door_xrpc::fuzzed::plan(&mut world.session, data)));
