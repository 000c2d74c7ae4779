//! The protocol over real sockets, byte by byte: logins, sequence numbers, limits, commands that need no table.

mod client;
mod tls;

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use client::{Client, OK, PLAIN, sha1_answer};
use door_mysql::{MysqlDoor, Options};
use engine::{Account, Engine, Verifier};
use reactor::{ListenOptions, Pool};
use sql_mysql::Database;
use stdx::prng::Prng;

struct Served {
    engine: Arc<Engine>,
    door: Arc<MysqlDoor>,
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
    let database = Database::open(engine.clone()).expect("a new catalog");
    let door = Arc::new(MysqlDoor::new(database, clock, options));
    door.attach(&pool);
    let options = ListenOptions { max_connections, ..ListenOptions::default() };
    let address = pool.listen(([127, 0, 0, 1], 0).into(), door.clone(), options).expect("a free port").local_addr;
    Served { engine, door, pool, address }
}

impl Served {
    fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// Logs in as the account that needs no password.
    fn enter(&self) -> Client {
        let mut client = self.connect();
        client.answer(PLAIN, "root", b"", None);
        assert_eq!(client.receive()[0], OK);
        client
    }

    fn put(&self, name: &str, verifier: Verifier) {
        let account = Account { enabled: true, verifier: Some(verifier), ..Account::new(name) };
        self.engine.accounts().put(account).unwrap();
    }

    fn stop(self) {
        self.pool.stop();
        assert_eq!(self.door.connection_count(), 0, "every connection is forgotten");
        assert_eq!(self.door.stats().prepared.get(), 0);
    }
}

#[test]
fn the_greeting_says_who_is_there() {
    let served = serve(0, Options::default());
    let client = served.connect();
    assert_eq!(client.greeting[0], 10);
    assert!(client.version().starts_with("8.0.") && client.version().contains("beluga"), "{}", client.version());
    assert!(!client.offers(0x800), "no TLS without a certificate");
    assert!(client.offers(0x80), "LOCAL INFILE, which local_infile then refuses");
    assert!(client.offers(0x0100_0000));
    served.stop();
}

#[test]
fn native_passwords_are_checked_and_denials_name_the_user() {
    let served = serve(0, Options::default());
    served.put("ann", Verifier::native(b"secret"));
    for (password, let_in) in [("secret", true), ("Secret", false), ("", false)] {
        let mut client = served.connect();
        let answer = sha1_answer(password, &client.scramble());
        client.answer(PLAIN, "ann", &answer, Some("mysql_native_password"));
        let reply = client.receive();
        if let_in {
            assert_eq!(reply[0], OK);
            continue;
        }
        let word = if password.is_empty() { "NO" } else { "YES" };
        let expected = format!("#28000Access denied for user 'ann'@'localhost' (using password: {word})");
        assert_eq!(reply, [&[0xff, 0x15, 0x04], expected.as_bytes()].concat());
        assert!(client.is_closed());
    }
    assert_eq!((served.door.stats().logins.get(), served.door.stats().denied.get()), (1, 2));
    served.stop();
}

#[test]
fn an_account_without_a_password_takes_none() {
    let served = serve(0, Options::default());
    let mut client = served.connect();
    client.answer(PLAIN, "root", &[7; 32], Some("caching_sha2_password"));
    let expected = b"\xff\x15\x04#28000Access denied for user 'root'@'localhost' (using password: YES)";
    assert_eq!(client.receive(), expected);
    assert!(client.is_closed());
    drop(served.enter());
    served.stop();
}

/// The door has one thread: a delay that held it would block the other connections.
#[test]
fn failed_logins_delay_later_ones_and_nobody_else() {
    let served = serve(0, Options::default());
    served.put("ann", Verifier::native(b"secret"));
    let begin = |password: &str| {
        let mut client = served.connect();
        let answer = sha1_answer(password, &client.scramble());
        client.answer(PLAIN, "ann", &answer, Some("mysql_native_password"));
        client
    };
    // Some need no delay; then each takes twice as long as the one before.
    for _ in 0..7 {
        assert_eq!(begin("wrong").receive()[..3], [0xff, 0x15, 0x04]);
    }
    assert_eq!(served.engine.accounts().attempts().counts(), (7, 4, 0));
    let begun = Instant::now();
    let mut late = begin("secret");
    let mut other = served.enter();
    assert_eq!(other.command(b"\x0e")[0], OK);
    let quick = begun.elapsed();
    assert_eq!(late.receive()[0], OK, "the right password opens, later");
    assert!(begun.elapsed() >= Duration::from_millis(1500), "{:?}", begun.elapsed());
    assert!(quick < Duration::from_millis(1500), "others did not wait: {quick:?}");
    // The series has ended, and CHANGE_USER is a login too.
    assert_eq!(begin("secret").receive()[0], OK);
    for _ in 0..4 {
        let mut client = served.enter();
        client.say(b"\x11ann\0\x14aaaaaaaaaaaaaaaaaaaa\0\xff\0mysql_native_password\0");
        assert_eq!(client.receive()[..3], [0xff, 0x15, 0x04]);
    }
    assert_eq!(served.engine.accounts().attempts().counts(), (11, 6, 0));
    served.stop();
}

#[test]
fn a_client_of_another_method_is_asked_to_change() {
    let served = serve(0, Options::default());
    served.put("ann", Verifier::native(b"secret"));
    let mut client = served.connect();
    client.answer(PLAIN, "ann", &[7; 32], Some("caching_sha2_password"));
    let switch = client.receive();
    let expected = [b"\xfemysql_native_password\0", &client.scramble()[..], b"\0"].concat();
    assert_eq!(switch, expected);
    let answer = sha1_answer("secret", &client.scramble());
    client.send(&answer);
    assert_eq!(client.receive()[0], OK);
    assert_eq!(client.command(b"\x0e")[0], OK, "the sequence begins again");
    served.stop();
}

#[test]
fn a_bad_handshake_is_called_one() {
    let served = serve(0, Options::default());
    for bad in [&b""[..], b"\x00", &[0xff; 32], b"GET / HTTP/1.0\r\n\r\n"] {
        let mut client = served.connect();
        client.send(bad);
        assert_eq!(client.receive()[..3], [0xff, 0x13, 0x04], "{bad:?}");
        assert!(client.is_closed());
    }
    served.stop();
}

#[test]
fn a_packet_out_of_turn_ends_the_connection() {
    let served = serve(0, Options::default());
    let mut client = served.enter();
    client.stream.write_all(b"\x01\x00\x00\x05\x0e").unwrap();
    assert_eq!(client.receive()[..3], [0xff, 0x84, 0x04]);
    assert!(client.is_closed());
    let mut client = served.connect();
    client.stream.write_all(b"\x01\x00\x00\x00\x0e").unwrap();
    assert_eq!(client.receive()[..3], [0xff, 0x84, 0x04], "the answer to a greeting is number one");
    served.stop();
}

#[test]
fn a_packet_beyond_the_limit_is_read_to_its_end_and_refused() {
    let served = serve(0, Options::default());
    let mut client = served.enter();
    let payload = vec![b'\x03'; (64 << 20) + 100];
    client.sequence = 0;
    client.send(&payload);
    assert_eq!(client.receive()[..3], [0xff, 0x81, 0x04]);
    assert!(client.is_closed());
    let mut client = served.connect();
    client.send(&vec![1; 200 << 10]);
    assert_eq!(client.receive()[..3], [0xff, 0x81, 0x04], "before the login there is less room");
    served.stop();
}

#[test]
fn packets_cut_anywhere_are_answered_whole() {
    let served = serve(0, Options::default());
    let mut client = served.enter();
    let pings = b"\x01\x00\x00\x00\x0e\x01\x00\x00\x00\x0e\x01\x00\x00\x00\x63\x01\x00\x00\x00\x0e";
    for cut in 0..pings.len() {
        client.stream.write_all(&pings[..cut]).unwrap();
        std::thread::sleep(Duration::from_micros(200));
        client.stream.write_all(&pings[cut..]).unwrap();
        let replies: Vec<u8> = (0..4).map(|_| client.receive()[0]).collect();
        assert_eq!(replies, [OK, OK, 0xff, OK], "cut at {cut}");
    }
    served.stop();
}

#[test]
fn commands_that_need_no_table_are_answered() {
    let served = serve(0, Options::default());
    let mut client = served.enter();
    assert_eq!(client.command(b"\x0e"), b"\0\0\0\x02\0\0\0", "ping");
    assert!(client.command(b"\x09").starts_with(b"Uptime: 0  Threads: 1  Questions: 2  "));
    assert_eq!(client.command(b"\x1b\0\0")[0], 0xfe, "multi-statements on");
    assert_eq!(client.command(b"\x1b\x07\0")[..3], [0xff, 0x17, 0x04]);
    assert_eq!(client.command(b"\x1f")[0], OK, "reset connection");
    for unknown in [&b"\x0d"[..], b"\x05", b"\x63", b""] {
        assert_eq!(client.command(unknown)[..3], [0xff, 0x17, 0x04], "{unknown:?}");
    }
    for statement in [&b"\x17\x09\0\0\0\0\x01\0\0\0"[..], b"\x1a\x09\0\0\0", b"\x1c\x09\0\0\0\x01\0\0\0"] {
        let reply = client.command(statement);
        assert_eq!(reply[..3], [0xff, 0xdb, 0x04], "{statement:?}");
        assert!(String::from_utf8_lossy(&reply).contains("Unknown prepared statement handler (9)"));
    }
    // Neither has a reply.
    client.say(b"\x19\x09\0\0\0");
    client.say(b"\x18\x09\0\0\0\0\0abc");
    assert_eq!(client.command(b"\x0e")[0], OK);
    client.say(b"\x01");
    assert!(client.is_closed(), "quit");
    served.stop();
}

#[test]
fn somebody_else_goes_on_with_the_connection() {
    let served = serve(0, Options::default());
    served.put("ann", Verifier::native(b"secret"));
    let mut client = served.enter();
    let answer = sha1_answer("secret", &client.scramble());
    let change = |answer: &[u8]| [&b"\x11ann\0\x14"[..], answer, b"\0\x2d\0mysql_native_password\0"].concat();
    assert_eq!(client.command(&change(&answer))[0], OK);
    assert_eq!(client.command(b"\x0e")[0], OK);
    assert_eq!(client.command(&change(&[1; 20]))[..3], [0xff, 0x15, 0x04]);
    assert!(client.is_closed());
    served.stop();
}

#[test]
fn who_is_released_is_answered_and_let_go() {
    let served = serve(0, Options::default());
    let mut bystander = served.enter();
    for text in ["create database d", "create table d.t (a int primary key)"] {
        assert_eq!(bystander.command(&[b"\x03", text.as_bytes()].concat())[0], OK);
    }
    // The reply of a session, and the rest of its rows.
    let sessions: [(&[&str], &str); 4] = [
        (&["begin", "insert into d.t values (1)", "commit release"], "1"),
        (&["begin", "insert into d.t values (2)", "rollback release"], "1"),
        (&["set completion_type = 'release'", "insert into d.t values (3)", "commit no release", "commit"], "2"),
        (&["begin", "insert into d.t values (4)", "commit and no chain release"], "3"),
    ];
    for (texts, rows) in sessions {
        let mut client = served.enter();
        for text in texts {
            assert_eq!(client.command(&[b"\x03", text.as_bytes()].concat())[0], OK, "{text}");
        }
        assert!(client.is_closed(), "{texts:?}");
        bystander.say(b"\x03select count(*) from d.t");
        let packets: Vec<Vec<u8>> = (0..5).map(|_| bystander.receive()).collect();
        assert_eq!(packets[3][1..], *rows.as_bytes(), "{texts:?}");
    }
    // The statements behind it in the text are not run.
    let mut client = served.enter();
    assert_eq!(client.command(b"\x1b\0\0")[0], 0xfe, "multi-statements on");
    let reply = client.command(b"\x03commit release; insert into d.t values (9)");
    assert_eq!((reply[0], reply[3] & 8), (OK, 8), "there was more to come");
    assert!(client.is_closed());
    bystander.say(b"\x03select count(*) from d.t where a = 9");
    let packets: Vec<Vec<u8>> = (0..5).map(|_| bystander.receive()).collect();
    assert_eq!(packets[3][1..], *b"0");
    served.stop();
}

#[test]
fn one_connection_too_many_is_told_so() {
    let served = serve(2, Options::default());
    let (_one, _two) = (served.enter(), served.enter());
    let mut three = std::net::TcpStream::connect(served.address).unwrap();
    let mut told = Vec::new();
    three.read_to_end(&mut told).unwrap();
    assert_eq!(told, b"\x17\0\0\0\xff\x10\x04Too many connections");
    served.stop();
}

#[test]
fn who_must_use_tls_and_does_not_is_refused() {
    let served = serve(0, Options { require_secure_transport: true, ..Options::default() });
    let mut client = served.connect();
    client.answer(PLAIN, "root", b"", None);
    assert_eq!(client.receive()[..3], [0xff, 0x57, 0x0c]);
    assert!(client.is_closed());
    served.stop();
}

/// The door answers or closes whatever it receives, and keeps serving others.
#[test]
fn random_commands_bring_nobody_down() {
    let seed = 20261121;
    let mut random = Prng::new(seed);
    let served = serve(0, Options::default());
    // CHANGE_USER with random names fails often.
    served.engine.accounts().attempts().set_limits(0, Duration::ZERO);
    for round in 0..200 {
        let mut client = served.enter();
        for _ in 0..20 {
            let mut payload = vec![0; random.below(30) as usize];
            random.fill(&mut payload);
            if let Some(code) = payload.first_mut() {
                // Neither sleeps nor quits, and mostly commands that there are.
                *code =
                    [2, 3, 4, 9, 0x0e, 0x11, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1f][random.below(14) as usize];
            }
            client.say(&payload);
        }
        let _ = client.stream.shutdown(std::net::Shutdown::Write);
        let mut rest = Vec::new();
        let _ = client.stream.read_to_end(&mut rest);
        assert_eq!(served.pool.counters().panics.get(), 0, "seed {seed}, round {round}");
    }
    assert_eq!(served.enter().command(b"\x0e")[0], OK);
    served.stop();
}

#[test]
fn variables_that_the_door_obeys_are_seen_however_they_are_set() {
    let served = serve(0, Options::default());
    let mut client = served.enter();
    let mut letter = |set: &[&str]| {
        for text in set {
            assert_eq!(client.command(&[b"\x03", text.as_bytes()].concat())[0], OK, "{text}");
        }
        assert_eq!(client.command("\x03select 'ä'".as_bytes()), [1]);
        client.receive();
        client.receive();
        let row = client.receive();
        client.receive();
        row[1..].to_vec()
    };
    assert_eq!(letter(&[]), "ä".as_bytes());
    let through_prepare = ["prepare s from 'set character_set_results = latin1'", "execute s"];
    assert_eq!(letter(&through_prepare), b"\xe4");
    assert_eq!(letter(&["-- a comment\nset character_set_results = utf8mb4"]), "ä".as_bytes());
    assert_eq!(letter(&["# another\nset character_set_results = latin1"]), b"\xe4");
    assert_eq!(letter(&["/*!40101 set character_set_results = utf8mb4 */"]), "ä".as_bytes());
    served.stop();
}
