//! The protocol over real sockets: logins, sessions and their order, statements, flow control, kills, and clients that break the protocol.

mod client;
mod faults;
mod plans;
mod runtime_settings;
mod statements;
mod suspended;

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use client::{Client, Frame, Statement};
use door_xrpc::frame::Mode;
use door_xrpc::{Options, XrpcDoor};
use engine::{Account, Engine, Verifier};
use reactor::{ListenOptions, Pool};
use sql_mysql::Database;

pub struct Served {
    pub engine: Arc<Engine>,
    pub door: Arc<XrpcDoor>,
    pub pool: Arc<Pool>,
    pub database: Arc<Database>,
    pub address: SocketAddr,
}

pub fn serve(options: Options) -> Served {
    serve_in(16 << 20, options)
}

/// Serves with this many bytes of memory for pages.
pub fn serve_in(frame_bytes: u64, options: Options) -> Served {
    let clock = Arc::new(os::RealClock::new());
    let mut sizes = engine::Options::default();
    sizes.pager.frame_bytes = frame_bytes;
    sizes.pager.ring_bytes = 1 << 20;
    sizes.pager.segment_bytes = 4 << 20;
    let engine = Engine::open(sizes, os::SimFolder::new(1), clock.clone()).expect("an empty folder opens");
    let settings = reactor::Settings { epoll_groups: 2, epoll_threads_per_group: 1, ..reactor::Settings::default() };
    let pool = Arc::new(Pool::start(&settings, engine.durable().clone(), &mut |_| None).expect("threads start"));
    let database = Database::open(engine.clone()).expect("a new catalog");
    let door = Arc::new(XrpcDoor::new(database.clone(), clock, options));
    door.attach(&pool);
    let listening = pool.listen(([127, 0, 0, 1], 0).into(), door.clone(), ListenOptions::default());
    let address = listening.expect("a free port").local_addr;
    Served { engine, door, pool, database, address }
}

impl Served {
    pub fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// Logs in as the account that needs no password.
    pub fn enter(&self) -> Client {
        let mut client = self.connect();
        assert_eq!(client.enter("root", "").kind, 4);
        client
    }

    /// Begins session 2 in the database `d`.
    pub fn session(&self) -> Client {
        let mut client = self.enter();
        client.begin(2);
        client.done(2, "create database if not exists d");
        client.done(2, "use d");
        client
    }

    pub fn stop(self) {
        self.pool.stop();
        assert_eq!(self.door.stats().sessions.get(), 0, "every session ends with its connection");
    }
}

pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_login_has_the_frames_of_the_protocol_and_capabilities_need_none() {
    let served = serve(Options::default());
    let mut client = served.connect();
    client.send(0, 1, b"");
    let capabilities = b"\x0a\x16\x0a\x0a\x70olarx_rpc\x12\x08\x08\x01\x12\x04\x08\x02\x18\x01".to_vec();
    assert_eq!(client.receive(), Frame { sid: 0, kind: 2, payload: capabilities });
    assert_eq!(client.enter("root", ""), Frame { sid: 0, kind: 4, payload: b"\x0a\x00".to_vec() });
    client.send(0, 4, b"\x0a\x07MYSQL41");
    assert_eq!((client.receive().kind, client.is_closed()), (1, true), "a second login");
    served.stop();
}

#[test]
fn capabilities_of_a_session_come_in_its_order_and_others_at_once() {
    let served = serve(Options::default());
    let mut client = served.enter();
    client.begin(2);
    // Received together, so that the connection has answered before the statement runs.
    let asked = [(2, 101, &b"\x0a\x10select sleep(.1)"[..]), (2, 1, b""), (0, 1, b""), (3, 1, b"")];
    let bytes: Vec<u8> = asked.iter().flat_map(|(sid, kind, payload)| client.frame(*sid, *kind, payload)).collect();
    client.stream.write_all(&bytes).unwrap();
    let (at_once, beside) = (client.receive(), client.receive());
    assert_eq!([(at_once.sid, at_once.kind), (beside.sid, beside.kind)], [(0, 2), (3, 2)]);
    assert_eq!(client.answer(2).numbers(), [0]);
    assert_eq!(client.receive(), Frame { sid: 2, ..at_once });
    client.send(2, 7, b"");
    assert_eq!(client.receive(), Frame { sid: 2, kind: 0, payload: Vec::new() });
    client.send(2, 1, b"");
    assert_eq!(client.receive(), Frame { sid: 2, ..beside }, "a number without a session again");
    served.stop();
}

#[test]
fn passwords_are_checked_and_denials_name_the_user() {
    let served = serve(Options::default());
    let account = Account { enabled: true, verifier: Some(Verifier::native(b"secret")), ..Account::new("ann") };
    served.engine.accounts().put(account).unwrap();
    let mut client = served.connect();
    assert_eq!(client.enter("ann", "secret").kind, 4);
    client.begin(2);
    assert_eq!(client.done(2, "select current_user()").text(), "ann@%");
    for (password, word) in [("Secret", "YES"), ("", "NO")] {
        let mut client = served.connect();
        let denied = client.enter("ann", password);
        let text = String::from_utf8(client::bytes(&denied.payload, 3)).unwrap();
        assert_eq!((denied.kind, client::number(&denied.payload, 2)), (1, 1045));
        assert_eq!(text, format!("Access denied for user 'ann'@'localhost' (using password: {word})"));
        assert!(client.is_closed());
    }
    assert_eq!((served.door.stats().logins.get(), served.door.stats().denied.get()), (1, 2));
    served.stop();
}

#[test]
fn an_account_without_a_password_takes_none() {
    let served = serve(Options::default());
    let denied = served.connect().enter("root", "whatever");
    assert_eq!((denied.kind, client::number(&denied.payload, 2)), (1, 1045));
    drop(served.enter());
    served.stop();
}

#[test]
fn failed_logins_delay_later_ones_and_nobody_else() {
    let served = serve(Options::default());
    let account = Account { enabled: true, verifier: Some(Verifier::native(b"secret")), ..Account::new("ann") };
    served.engine.accounts().put(account).unwrap();
    for _ in 0..5 {
        assert_eq!(served.connect().enter("ann", "wrong").kind, 1);
    }
    assert_eq!(served.engine.accounts().attempts().counts(), (5, 2, 0));
    let begun = Instant::now();
    assert_eq!(served.connect().enter("ann", "secret").kind, 4);
    assert!(begun.elapsed() >= Duration::from_millis(390), "{:?}", begun.elapsed());
    assert_eq!(served.connect().enter("ann", "secret").kind, 4);
    assert_eq!(served.engine.accounts().attempts().counts(), (5, 3, 0));
    served.stop();
}

#[test]
fn a_session_and_its_first_statement_come_in_one_write() {
    let served = serve(Options::default());
    let mut client = served.enter();
    let mut bytes = client.frame(2, 110, b"");
    bytes.extend(client.frame(2, 101, b"\x0a\x08select 1\x40\x80\x50\x48\x01\x6a\x00"));
    std::io::Write::write_all(&mut client.stream, &bytes).unwrap();
    assert_eq!(client.receive(), Frame { sid: 2, kind: 0, payload: Vec::new() });
    let answer = client.answer(2);
    assert_eq!((answer.columns, answer.rows, answer.affected), (vec!["1".into()], vec![vec![vec![2]]], Some(0)));
    served.stop();
}

#[test]
fn sessions_are_each_on_their_own_and_end_when_they_are_closed() {
    let served = serve(Options::default());
    let mut client = served.session();
    client.begin(7);
    client.done(2, "create table t (id int primary key)");
    client.done(2, "begin");
    client.done(2, "insert into t values (1)");
    assert_eq!(client.done(7, "select * from d.t").rows.len(), 0, "not committed yet");
    assert_ne!(client.done(2, "select connection_id()").rows, client.done(7, "select connection_id()").rows);
    client.send(2, 110, b"");
    assert!(client.answer(2).is_fatal(), "there is such a session, and nobody knows whose it is now");
    assert_eq!(client.done(7, "select * from d.t for update").rows.len(), 0, "what it did is taken back");
    client.begin(2);
    client.done(2, "begin");
    client.done(2, "insert into d.t values (1)");
    client.send(2, 7, b"");
    assert_eq!(client.receive(), Frame { sid: 2, kind: 0, payload: Vec::new() });
    let unknown = client.run(2, "select 1");
    assert_eq!((unknown.code(), unknown.is_fatal()), (8001, true));
    client.begin(2);
    assert_eq!(client.done(2, "select count(*) from d.t").numbers(), [0], "it was rolled back");
    served.stop();
}

#[test]
fn thousands_of_sessions_on_a_connection_keep_each_its_order() {
    const SESSIONS: u64 = 1_000;
    const STATEMENTS: u64 = 4;
    let served = serve(Options::default());
    let mut client = served.enter();
    let mut writer = Client { stream: client.stream.try_clone().unwrap(), version: None };
    let sender = std::thread::spawn(move || {
        (2..2 + SESSIONS).for_each(|sid| writer.send(sid, 110, b""));
        for nth in 0..STATEMENTS {
            for sid in 2..2 + SESSIONS {
                writer.say(sid, &Statement::new("select ?").int((sid * STATEMENTS + nth) as i64));
            }
        }
    });
    let mut next = vec![0; SESSIONS as usize];
    let mut rows = 0;
    while rows < SESSIONS * STATEMENTS {
        let frame = client.receive();
        if frame.kind != 13 {
            assert_ne!(frame.kind, 1, "{frame:?}");
            continue;
        }
        let value = door_xrpc::proto::unzigzag(client::varint(&client::bytes(&frame.payload, 1))) as u64;
        let nth = &mut next[(frame.sid - 2) as usize];
        assert_eq!(value, frame.sid * STATEMENTS + *nth);
        *nth += 1;
        rows += 1;
    }
    sender.join().unwrap();
    assert_eq!(served.door.stats().sessions.get(), SESSIONS);
    served.stop();
}

#[test]
fn there_are_no_more_sessions_than_allowed() {
    let served = serve(Options { sessions_max: 2, ..Options::default() });
    let mut client = served.enter();
    client.begin(2);
    client.begin(3);
    client.send(4, 110, b"");
    let answer = client.answer(4);
    assert_eq!((answer.code(), answer.is_fatal()), (1040, true));
    client.send(3, 7, b"");
    client.receive();
    eventually("the closed one is gone", || {
        client.send(5, 110, b"");
        client.answer(5).error.is_none()
    });
    served.stop();
}

#[test]
fn a_sid_with_the_top_bit_is_good_for_a_statement_without_a_session() {
    const TOP: u64 = 1 << 63;
    let served = serve(Options::default());
    let mut client = served.session();
    client.done(2, "create table t (id int primary key)");
    let insert = Statement::new("insert into t values (?)").int(5).schema("d").token(10);
    assert_eq!(client.execute(TOP | 10, &insert).affected, Some(1));
    assert_eq!(client.run(TOP | 11, "set @x = 1").error, None);
    assert_eq!(client.run(TOP | 12, "create temporary table d.tmp (a int)").error, None);
    for text in ["select @x", "select database()"] {
        assert_eq!(client.run(TOP | 13, text).rows, [[[]]], "nothing is left of those before: {text}");
    }
    assert_eq!(client.run(TOP | 14, "select * from d.tmp").code(), 1146);
    assert_eq!(client.run(TOP | 15, "select * from nowhere.t").code(), 1049, "MySQL's own number");
    assert_eq!(client.execute(TOP | 16, &Statement::default().digest(b"d")).code(), 8001);
    client.send(TOP | 17, 7, b"");
    assert_eq!(client.answer(TOP | 17).code(), 8001, "nothing but statements");
    client.done(TOP | 18, "begin");
    eventually("it waits for the next one", || served.door.idle_session_count() == 1);
    drop(client);
    served.stop();
}

#[test]
fn sessions_for_single_statements_are_not_shared_between_accounts() {
    const TOP: u64 = 1 << 63;
    let served = serve(Options::default());
    let account = Account { enabled: true, verifier: Some(Verifier::native(b"secret")), ..Account::new("ann") };
    served.engine.accounts().put(account).unwrap();
    let mut root = served.enter();
    let mut ann = served.connect();
    ann.enter("ann", "secret");
    for sid in 10..14 {
        assert_eq!(root.run(TOP | sid, "select current_user()").text(), "root@%");
        assert_eq!(ann.run(TOP | sid, "select current_user()").text(), "ann@%");
    }
    served.stop();
}

#[test]
fn spare_sessions_do_not_stay_for_ever() {
    let served = serve(Options { idle_session_lifetime: Duration::from_millis(100), ..Options::default() });
    let mut client = served.enter();
    client.run(1 << 63 | 5, "select 1");
    eventually("it waits for the next one", || served.door.idle_session_count() == 1);
    eventually("it is let go", || served.door.idle_session_count() == 0);
    served.stop();
}

#[test]
fn a_server_in_galaxy_mode_speaks_it() {
    let served = serve(Options { mode: Mode::Galaxy(0), ..Options::default() });
    let mut client = served.connect();
    client.version = Some(0);
    assert_eq!(client.enter("root", "").kind, 4);
    client.begin(2);
    assert_eq!(client.done(2, "select 7").numbers(), [7]);
    served.stop();
}
