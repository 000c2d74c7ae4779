//! Runs tests/scripts. Each line is a request; the expected replies are those of redis-server 7.0.15.
//!
//! `UPDATE=1 REDIS=127.0.0.1:6379 cargo test -p door-redis --test it` records them again from a running Redis, whose database is emptied. Replies are recorded
//! as received, with a blank for each line end.

mod field_expiry;
mod messages;
mod pipelines;
mod replica;
mod scripts;
mod shutdown;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use door_redis::{Host, Options, RedisDoor, Refused};
use engine::Engine;
use reactor::{ListenOptions, Pool};

/// Lines that doors have logged.
static WARNINGS: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());

/// A server without settings.
struct Bare;

impl Host for Bare {
    fn settings(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn change(&self, changes: &[(&str, &str)]) -> Result<(), Refused> {
        Err(Refused::Unknown(changes.first().map_or("", |(name, _)| name).to_string()))
    }

    fn rewrite(&self) -> Result<(), String> {
        Err("The server is running without a config file".into())
    }

    fn data_folder(&self) -> std::path::PathBuf {
        std::env::temp_dir()
    }

    fn version(&self) -> &str {
        "test"
    }

    fn facts(&self, _: &str) -> Vec<(String, String)> {
        Vec::new()
    }

    /// The test prepares and makes the stop.
    fn request_stop(&self) {
        WARNINGS.lock().unwrap().push("a stop is asked for".to_owned());
    }

    fn allocator(&self) -> String {
        "Allocator: that of the test\n".to_owned()
    }

    fn warn(&self, what: &str, _: &str) {
        WARNINGS.lock().unwrap().push(what.to_owned());
    }

    fn inform(&self, what: &str, _: &str) {
        WARNINGS.lock().unwrap().push(what.to_owned());
    }

    fn report(&self, text: &str) {
        WARNINGS.lock().unwrap().push(text.to_owned());
    }

    fn log(&self, _: i64, text: &str) {
        WARNINGS.lock().unwrap().push(text.to_owned());
    }

    /// Without SQL, an account whose rules allow everything counts as an administrator.
    fn is_system_account(&self, account: &engine::Account) -> bool {
        account.grants.is_none() && account.rules.contains("~*") && account.rules.ends_with("+@all")
    }

    fn without_privileges(&self, account: engine::Account) -> engine::Account {
        engine::Account { grants: Some(Vec::new()), ..account }
    }
}

struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    fn connect(address: impl std::net::ToSocketAddrs) -> Client {
        let stream = TcpStream::connect(address).expect("the server listens");
        Client { stream: BufReader::new(stream) }
    }

    fn call(&mut self, line: &str) -> String {
        self.stream.get_mut().write_all(format!("{line}\r\n").as_bytes()).expect("the server reads");
        self.receive()
    }

    fn send(&mut self, args: &[&str]) {
        let mut request = format!("*{}\r\n", args.len());
        args.iter().for_each(|arg| request += &format!("${}\r\n{arg}\r\n", arg.len()));
        self.stream.get_mut().write_all(request.as_bytes()).expect("the server reads");
    }

    fn receive(&mut self) -> String {
        let mut reply = Vec::new();
        self.read_reply(&mut reply);
        let text = reply.escape_ascii().to_string().replace("\\r\\n", " ");
        text.trim_end().to_string()
    }

    fn read_reply(&mut self, reply: &mut Vec<u8>) {
        let start = reply.len();
        assert!(self.stream.read_until(b'\n', reply).expect("a reply") > 0, "the server closed the connection");
        let header = String::from_utf8_lossy(&reply[start..]).trim_end().to_string();
        let number = || header[1..].parse::<i64>().unwrap_or(-1);
        match header.as_bytes()[0] {
            b'$' | b'=' if number() >= 0 => {
                let start = reply.len();
                reply.resize(start + number() as usize + 2, 0);
                self.stream.read_exact(&mut reply[start..]).expect("the rest of a bulk string");
            }
            b'*' | b'~' => (0..number()).for_each(|_| self.read_reply(reply)),
            b'%' => (0..number() * 2).for_each(|_| self.read_reply(reply)),
            _ => {}
        }
    }
}

/// A door on a simulated folder, listening on loopback.
struct Served {
    engine: Arc<Engine>,
    pool: Arc<Pool>,
    door: Arc<RedisDoor>,
    address: SocketAddr,
}

impl Served {
    fn start() -> Served {
        Served::start_on(os::SimFolder::new(1))
    }

    fn start_on(folder: Arc<dyn os::Folder>) -> Served {
        let clock = Arc::new(os::RealClock::new());
        let mut options = engine::Options::default();
        options.pager.frame_bytes = 16 << 20;
        options.pager.ring_bytes = 1 << 20;
        options.pager.segment_bytes = 4 << 20;
        let engine = Engine::open(options, folder, clock.clone()).expect("an empty folder opens");
        let settings =
            reactor::Settings { epoll_groups: 1, epoll_threads_per_group: 1, ..reactor::Settings::default() };
        let pool = Arc::new(Pool::start(&settings, engine.durable().clone(), &mut |_| None).expect("threads start"));
        let door = Arc::new(RedisDoor::new(engine.clone(), clock, Arc::new(Bare), &Options::default()));
        door.attach(&pool);
        door.resume_following().expect("a note that can be read");
        let address = "127.0.0.1:0".parse().expect("an address");
        let address = pool.listen(address, door.clone(), ListenOptions::default()).expect("a free port").local_addr;
        Served { engine, pool, door, address }
    }

    fn stop(self) {
        self.door.end_following();
        self.pool.stop();
        self.engine.close().expect("it closes");
    }
}

#[test]
fn replies_are_those_of_redis() {
    let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts");
    if let Ok(redis) = std::env::var("REDIS") {
        let mut client = Client::connect(redis);
        return script::run_folder(scripts, move || {
            client.call("RESET");
            client.call("FLUSHALL");
            let mut client = Client::connect(client.stream.get_ref().peer_addr().expect("connected"));
            move |line: &str| client.call(line)
        });
    }
    let served = Served::start();
    let address = served.address;
    script::run_folder(scripts, || {
        Client::connect(address).call("FLUSHALL");
        let mut client = Client::connect(address);
        move |line: &str| client.call(line)
    });
    served.stop();
}

/// Keys are searched before their requests run. For inline requests, blank lines and long keys there is no such search.
#[test]
fn what_was_found_ahead_for_one_key_is_not_taken_for_another() {
    let served = Served::start();
    let mut client = Client::connect(served.address);
    let long = "k".repeat(12_000);
    let mut keys: Vec<String> = (0..300).map(|at| format!("key:{at:04}")).collect();
    keys.push(long);
    // Enough keys to spread over leaves that are far apart.
    for key in &keys {
        client.send(&["SET", key, &"v".repeat(200)]);
        assert_eq!(client.receive(), "+OK");
    }
    let expected = format!("$200 {}", "v".repeat(200));
    let last = keys.len() - 1;
    for key in [&keys[150], &keys[299], &keys[last]] {
        for first in ["", "\r\n", "*0\r\n"] {
            let plain = b"*2\r\n$3\r\nGET\r\n$8\r\nkey:0000\r\n".repeat(4);
            let inline = format!("GET {key}\r\n");
            let framed = format!("*2\r\n$3\r\nGET\r\n${}\r\n{key}\r\n", key.len());
            for batch in [&[first.as_bytes(), framed.as_bytes()].concat(), &[&plain, inline.as_bytes()].concat()] {
                client.stream.get_mut().write_all(batch).expect("the server reads");
                let count = if batch.starts_with(&plain) { 5 } else { 1 };
                (0..count).for_each(|_| assert!(client.receive() == expected, "{} after {first:?}", &key[..8]));
            }
        }
    }
    served.stop();
}

#[test]
fn web_pages_are_cut_off() {
    let served = Served::start();
    let attack = "POST / HTTP/1.1\r\nSET csrf owned\r\n";
    let header = "GET / HTTP/1.1\r\nhOst: localhost\r\nSET csrf owned\r\n";
    let framed = "*1\r\n$4\r\npost\r\nSET csrf owned\r\n";
    for text in [attack, header, framed] {
        let mut client = Client::connect(served.address);
        client.stream.get_mut().write_all(text.as_bytes()).expect("the server reads");
        let mut rest = Vec::new();
        // Closed with unread requests, the connection may be reset.
        let _ = client.stream.read_to_end(&mut rest);
        assert!(!rest.starts_with(b"+OK") && rest.len() < 100, "{}", rest.escape_ascii());
    }
    assert_eq!(Client::connect(served.address).call("GET csrf"), "$-1");
    let warnings = WARNINGS.lock().unwrap();
    assert_eq!(warnings.iter().filter(|text| text.contains("POST or Host:")).count(), 1, "{warnings:?}");
    drop(warnings);
    served.stop();
}

/// The door has one thread: a delay that held it would make others wait.
#[test]
fn failed_logins_delay_later_ones_and_nobody_else() {
    let served = Served::start();
    let mut other = Client::connect(served.address);
    assert_eq!(other.call("ACL SETUSER app on >secret +@all ~*"), "+OK");
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.";
    let attempts = || served.engine.accounts().attempts().counts();
    for request in
        ["AUTH app x", "AUTH app y", "HELLO 2 AUTH app x", "AUTH app secre", "HELLO 3 AUTH app x", "AUTH app x"]
    {
        assert_eq!(Client::connect(served.address).call(request), wrong, "{request}");
    }
    assert_eq!(attempts(), (6, 3, 0));
    let mut late = Client::connect(served.address);
    let begun = std::time::Instant::now();
    // Requests pipelined behind a login wait with it.
    late.stream.get_mut().write_all(b"AUTH app secret\r\nACL WHOAMI\r\n").expect("the server reads");
    assert_eq!(other.call("PING"), "+PONG");
    let quick = begun.elapsed();
    assert_eq!((late.receive().as_str(), late.receive().as_str()), ("+OK", "$3 app"));
    assert!(begun.elapsed() >= std::time::Duration::from_millis(790), "{:?}", begun.elapsed());
    assert!(quick < std::time::Duration::from_millis(790), "{quick:?}");
    assert_eq!(late.call("AUTH app secret"), "+OK");
    // In EXEC nothing can wait.
    assert_eq!(late.call("MULTI"), "+OK");
    (0..5).for_each(|_| assert_eq!(late.call("AUTH app x"), "+QUEUED"));
    let too_many = "-WRONGPASS too many logins of this user from this address have failed, and too many are already delayed; try again later";
    assert_eq!(late.call("EXEC"), format!("*5 {wrong} {wrong} {wrong} {too_many} {too_many}"));
    served.stop();
}

#[test]
fn users_without_system_user_leave_administrators_alone() {
    let served = Served::start();
    let mut admin = Client::connect(served.address);
    assert_eq!(admin.call("ACL SETUSER helper on >x ~* +@all -flushall"), "+OK");
    assert_eq!(admin.call("ACL SETUSER boss on >x ~* +@all"), "+OK");
    let mut helper = Client::connect(served.address);
    assert_eq!(helper.call("AUTH helper x"), "+OK");
    let denied = "-NOPERM only a user with SYSTEM_USER can change accounts that hold it";
    for request in
        ["ACL SETUSER default >y", "ACL SETUSER boss off", "ACL DELUSER app boss", "CONFIG SET requirepass y"]
    {
        assert_eq!(helper.call(request), denied, "{request}");
    }
    // Other accounts can be changed as before, and may get all of Redis but no more.
    assert_eq!(helper.call("ACL SETUSER app on >x ~* +@all"), "+OK");
    assert_eq!(helper.call("ACL SETUSER helper +@all"), "+OK");
    for name in ["app", "helper"] {
        assert!(served.engine.accounts().get(name).unwrap().grants.is_some(), "{name} has SQL rights of its own: none");
        assert_eq!(helper.call("ACL SETUSER default >y"), denied);
    }
    assert_eq!(helper.call("ACL DELUSER app app"), ":1");
    assert_eq!(admin.call("ACL SETUSER boss off"), "+OK");
    assert_eq!(admin.call("ACL DELUSER boss"), ":1");
    served.stop();
}

#[test]
fn a_new_password_list_forgets_the_password_that_sql_set() {
    let served = Served::start();
    let verifier = Some(engine::Verifier::caching_sha2(b"old"));
    let account = engine::Account { enabled: true, verifier, ..engine::Account::new("app") };
    served.engine.accounts().put(account).unwrap();
    let mut client = Client::connect(served.address);
    assert_eq!(client.call("AUTH app old"), "+OK");
    let mut admin = Client::connect(served.address);
    assert_eq!(admin.call("ACL SETUSER app resetpass >new"), "+OK");
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.";
    assert_eq!(Client::connect(served.address).call("AUTH app old"), wrong);
    assert_eq!(Client::connect(served.address).call("AUTH app new"), "+OK");
    served.stop();
}

/// Its limit in Redis is the mend of CVE-2025-21605.
#[test]
fn a_stranger_that_does_not_read_is_cut() {
    let served = Served::start();
    let mut admin = Client::connect(served.address);
    assert_eq!(admin.call("ACL SETUSER default >secret"), "+OK");
    let mut stranger = Client::connect(served.address);
    // More replies than sockets hold.
    let some = b"*1\r\n$4\r\nPING\r\n".repeat(1000);
    let mut sent = 0;
    while stranger.stream.get_mut().write_all(&some).is_ok() {
        sent += some.len();
        assert!(sent < 1 << 30, "it is never cut");
    }
    assert_eq!(admin.call("AUTH secret"), "+OK");
    assert_eq!(Client::connect(served.address).call("PING"), "-NOAUTH Authentication required.");
    served.stop();
}

#[test]
fn a_rewrite_of_the_append_only_file_is_a_checkpoint() {
    let served = Served::start();
    let mut client = Client::connect(served.address);
    for round in 0..100 {
        client.call(&format!("SET key:{round} {}", "v".repeat(1000)));
    }
    let before = served.engine.pager().checkpoint_lsn();
    assert_eq!(client.call("BGREWRITEAOF"), "+Background append only file rewriting started");
    while field(&client.call("INFO persistence"), "aof_rewrite_in_progress").as_deref() != Some("0") {}
    assert!(served.engine.pager().checkpoint_lsn() > before + 100_000);
    assert_eq!(client.call("MULTI"), "+OK");
    assert_eq!(client.call("BGREWRITEAOF"), "+QUEUED");
    assert_eq!(client.call("EXEC"), "*1 +Background append only file rewriting scheduled");
    served.stop();
}

#[test]
fn bytes_behind_a_restored_value_are_ignored() {
    let served = Served::start();
    let mut client = Client::connect(served.address);
    // A string, a list and a set, each with more than its value.
    for (key, value) in [("string", &b"\x00\x02hi"[..]), ("list", b"\x01\x01\x02hi"), ("set", b"\x02\x01\x02hi")] {
        let mut payload = [value, b"more"].concat();
        rdb::end_payload(&mut payload, rdb::VERSION_WRITTEN);
        let escaped: String = payload.iter().map(|byte| format!("\\x{byte:02x}")).collect();
        assert_eq!(client.call(&format!("RESTORE {key} 0 \"{escaped}\"")), "+OK", "{key}");
    }
    assert_eq!(client.call("GET string"), "$2 hi");
    assert_eq!(client.call("LRANGE list 0 -1"), "*1 $2 hi");
    assert_eq!(client.call("SMEMBERS set"), "*1 $2 hi");
    served.stop();
}

fn field(text: &str, name: &str) -> Option<String> {
    let value = text.split([' ', '\n']).find_map(|word| word.strip_prefix(name)?.strip_prefix(['=', ':']));
    value.map(|value| value.trim_end_matches("\\n").to_owned())
}

#[test]
fn a_killed_client_is_gone_when_the_answer_comes() {
    let served = Served::start();
    let mut killer = Client::connect(served.address);
    for round in 0..40 {
        let mut victim = Client::connect(served.address);
        let id = victim.call("CLIENT ID")[1..].to_owned();
        // It runs until it is killed, in a thread of its own.
        let mut writer = victim.stream.get_ref().try_clone().expect("a second handle");
        let busy = std::thread::spawn(move || while writer.write_all(b"INCR n\r\n").is_ok() {});
        while killer.call("GET n") == "$-1" {}
        assert_eq!(killer.call(&format!("CLIENT KILL ID {id}")), ":1", "round {round}");
        let count = killer.call("GET n");
        let list = killer.call("CLIENT LIST");
        assert!(!list.contains(&format!("id={id} ")), "{list}");
        assert_eq!(killer.call("GET n"), count, "round {round}: it ran another command");
        drop(victim);
        busy.join().expect("its socket is closed");
        killer.call("DEL n");
    }
    assert_eq!(killer.call("CLIENT KILL 127.0.0.1:1"), "-ERR No such client");
    served.stop();
}

#[test]
fn client_list_tells_what_a_client_holds() {
    let served = Served::start();
    let mut client = Client::connect(served.address);
    let line = client.call("CLIENT LIST");
    for name in
        ["qbuf", "qbuf-free", "argv-mem", "multi-mem", "rbs", "rbp", "obl", "oll", "omem", "tot-mem", "events", "resp"]
    {
        assert!(field(&line, name).is_some(), "{name}: {line}");
    }
    let number = |line: &str, name: &str| field(line, name).and_then(|value| value.parse::<u64>().ok()).unwrap_or(0);
    assert_eq!((number(&line, "qbuf"), number(&line, "argv-mem")), (13, 10), "{line}");
    let own = number(&line, "tot-mem");
    assert!(own > 500, "{line}");
    // Queued commands count.
    assert_eq!(client.call("MULTI"), "+OK");
    assert_eq!(client.call(&format!("SET k {}", "v".repeat(50_000))), "+QUEUED");
    let mut other = Client::connect(served.address);
    let lines = other.call("CLIENT LIST");
    let queued = lines.split("id=").find(|line| line.contains(" multi=1 ")).expect("it is listed");
    assert!(number(queued, "multi-mem") > 50_000 && number(queued, "tot-mem") > own + 49_000, "{queued}");
    served.stop();
}

#[test]
fn numbers_are_read_as_leniently_as_by_redis() {
    let served = Served::start();
    let mut client = Client::connect(served.address);
    for word in ["a", "0", "0.001x", "nan", "-5"] {
        assert_eq!(client.call(&format!("DEBUG SLEEP {word}")), "+OK");
    }
    for (value, stored) in [("4294967295", 65535), ("65536", 0), ("-1", 65535)] {
        client.call("DEL k");
        assert_eq!(client.call(&format!("BITFIELD k SET u16 0 {value} GET u16 0")), format!("*2 :0 :{stored}"));
    }
    assert_eq!(client.call("HELLO 3 AUTH default:x"), r"-ERR Syntax error in HELLO option \'AUTH\'");
    served.stop();
}

#[test]
fn info_has_the_fields_that_monitors_ask_for() {
    let served = Served::start();
    let mut client = Client::connect(served.address);
    client.call("SET k v");
    let info = client.call("INFO everything");
    for name in [
        "used_cpu_sys",
        "used_cpu_user",
        "used_cpu_sys_children",
        "used_cpu_user_children",
        "total_reads_processed",
        "total_writes_processed",
        "lru_clock",
        "hz",
        "configured_hz",
        "master_repl_offset",
        "mem_clients_normal",
    ] {
        assert!(field(&info, name).is_some(), "{name}: {info}");
    }
    let count = |info: &str, name: &str| field(info, name).and_then(|value| value.parse::<u64>().ok()).unwrap_or(0);
    let (reads, writes) = (count(&info, "total_reads_processed"), count(&info, "total_writes_processed"));
    (0..10).for_each(|_| drop(client.call("PING")));
    let later = client.call("INFO stats");
    assert!(count(&later, "total_reads_processed") >= reads + 10, "{later}");
    assert!(count(&later, "total_writes_processed") >= writes + 10, "{later}");
    served.stop();
}
