//! The protocol over real sockets, byte by byte: startup, logins, messages in any order, limits.

mod client;
mod extended;
mod login;
mod simple;
mod startup;
mod tls;

use std::net::SocketAddr;
use std::sync::Arc;

use client::Client;
use door_postgres::{Database, Options, PostgresDoor};
use engine::{Account, Engine};
use query::exec::instance::Instance;
use reactor::{ListenOptions, Pool};

struct Served {
    engine: Arc<Engine>,
    door: Arc<PostgresDoor>,
    pool: Arc<Pool>,
    address: SocketAddr,
}

fn serve(max_connections: usize, options: Options) -> Served {
    let clock = Arc::new(os::RealClock::new());
    let mut sizes = engine::Options::default();
    sizes.pager.frame_bytes = 16 << 20;
    sizes.pager.ring_bytes = 1 << 20;
    sizes.pager.segment_bytes = 4 << 20;
    let engine = Engine::open(sizes, os::SimFolder::new(1), clock.clone()).expect("an empty folder opens");
    let settings = reactor::Settings { epoll_groups: 1, epoll_threads_per_group: 1, ..reactor::Settings::default() };
    let pool = Arc::new(Pool::start(&settings, engine.durable().clone(), &mut |_| None).expect("threads start"));
    let instance = Instance::open(engine.clone(), &[]).expect("a new catalog");
    let database = Database::open(Arc::new(instance)).expect("a new catalog");
    // Every account of these tests may do everything.
    database.set_superusers(Box::new(|_| true));
    let door = Arc::new(PostgresDoor::new(database, clock, options));
    door.attach(&pool);
    let options = ListenOptions { max_connections, ..ListenOptions::default() };
    let address = pool.listen(([127, 0, 0, 1], 0).into(), door.clone(), options).expect("a free port").local_addr;
    Served { engine, door, pool, address }
}

impl Served {
    fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// Logs in as the role that needs no password.
    fn enter(&self) -> Client {
        let mut client = self.connect();
        let answer = client.start("postgres");
        assert!(answer.starts_with("R0 ") && answer.ends_with("K Z(I)"), "{answer}");
        client
    }

    fn put(&self, name: &str, change: impl FnOnce(&mut Account)) {
        let mut account = Account { enabled: true, ..Account::new(name) };
        change(&mut account);
        self.engine.accounts().put(account).unwrap();
    }

    fn stop(self) {
        self.pool.stop();
        assert_eq!(self.door.connection_count(), 0, "every connection is forgotten");
    }
}
