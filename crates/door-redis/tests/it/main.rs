//! Plays tests/scripts: each line a request, the expected replies are what redis-server 7.0.15 gave.
//!
//! `UPDATE=1 REDIS=127.0.0.1:6379 cargo test -p door-redis --test it` records them again from a Redis that runs there; its database is emptied. Replies
//! stand as they came, with a blank for each line end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use door_redis::{Host, Options, RedisDoor, Refused};
use engine::Engine;
use reactor::{ListenOptions, Pool};

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

    fn version(&self) -> &str {
        "test"
    }

    fn facts(&self, _: &str) -> Vec<(String, String)> {
        Vec::new()
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
    address: SocketAddr,
}

impl Served {
    fn start() -> Served {
        let folder = os::SimFolder::new(1);
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
        let address = "127.0.0.1:0".parse().expect("an address");
        let address = pool.listen(address, door, ListenOptions::default()).expect("a free port").local_addr;
        Served { engine, pool, address }
    }

    fn stop(self) {
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

/// Keys are looked for before their requests run. Inline requests, blank lines and long keys have none that can be looked for.
#[test]
fn what_was_found_ahead_for_one_key_is_not_taken_for_another() {
    let served = Served::start();
    let mut client = Client::connect(served.address);
    let long = "k".repeat(12_000);
    let mut keys: Vec<String> = (0..300).map(|at| format!("key:{at:04}")).collect();
    keys.push(long);
    // So many that the first of them and the last are in leaves far apart.
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
