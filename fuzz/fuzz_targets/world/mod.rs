//! A session of root over a database in memory, with the tables that a target wants.

use std::sync::Arc;

use engine::{Engine, Options};
use os::{Folder, SimClock, SimFolder};
use sql_mysql::{Database, Login, Session};

pub struct World {
    pub session: Session,
    /// Outlive the session.
    _engine: Arc<Engine>,
}

impl World {
    /// After these statements.
    pub fn new(statements: &[&str]) -> World {
        let folder = SimFolder::new(1) as Arc<dyn Folder>;
        let engine =
            Engine::open(Options::default(), folder, Arc::new(SimClock::new(1_700_000_000_000))).expect("opens");
        let database = Database::open(engine.clone()).expect("loads");
        let who = Login { user: "root".into(), host: "localhost".into(), database: None, connection_id: 1 };
        let mut session = Session::new(&database, who).expect("root may come in");
        for statement in statements {
            session.execute(statement).expect(statement);
        }
        World { session, _engine: engine }
    }
}
