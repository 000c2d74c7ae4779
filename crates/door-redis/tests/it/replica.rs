//! Following a scripted server: its bytes come in pieces, lie, break off or are refused.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use super::{Client, Served};

/// Forty letters, as Redis' ids.
const ID: &str = "abcdefghijabcdefghijabcdefghijabcdefghij";

/// A server that is followed.
struct Master(TcpListener);

/// Its side of a link.
struct Link(BufReader<std::net::TcpStream>);

impl Master {
    fn new() -> Master {
        Master(TcpListener::bind("127.0.0.1:0").expect("a free port"))
    }

    fn replicaof(&self) -> String {
        format!("REPLICAOF 127.0.0.1 {}", self.0.local_addr().expect("bound").port())
    }

    fn accept(&self) -> Link {
        Link(BufReader::new(self.0.accept().expect("a link").0))
    }

    /// Accepts a link, and answers up to PSYNC, whose arguments it returns.
    fn shake_hands(&self) -> (Link, Vec<String>) {
        let mut link = self.accept();
        loop {
            let request = link.request();
            match request[0].as_str() {
                "PING" => link.send(b"+PONG\r\n"),
                "REPLCONF" => link.send(b"+OK\r\n"),
                "PSYNC" => return (link, request[1..].to_vec()),
                other => panic!("{other}"),
            }
        }
    }

    /// Gives a file, and expects that nothing is there to continue.
    fn synchronise(&self, file: &[u8], offset: u64) -> Link {
        let (mut link, asked) = self.shake_hands();
        assert_eq!(asked, ["?", "-1"]);
        link.send(format!("\n\n+FULLRESYNC {ID} {offset}\r\n\n${}\r\n", file.len()).as_bytes());
        link.send(file);
        link
    }
}

impl Link {
    /// Reads a request. Empty lines only say that the replica is alive.
    fn request(&mut self) -> Vec<String> {
        let count = loop {
            let line = self.line();
            if !line.is_empty() {
                break line[1..].parse().expect("a count");
            }
        };
        (0..count)
            .map(|_| {
                let length: usize = self.line()[1..].parse().expect("a length");
                let mut bytes = vec![0; length + 2];
                self.0.read_exact(&mut bytes).expect("an argument");
                String::from_utf8_lossy(&bytes[..length]).into_owned()
            })
            .collect()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.0.read_line(&mut line).expect("a line") > 0, "the replica has closed the link");
        line.trim_end().to_owned()
    }

    fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).expect("the replica reads");
    }

    /// Reads requests until this offset is acknowledged.
    fn until_acknowledged(&mut self, offset: u64) {
        loop {
            let request = self.request();
            assert_eq!(request[..2], ["REPLCONF", "ACK"]);
            let acknowledged: u64 = request[2].parse().expect("an offset");
            assert!(acknowledged <= offset, "{acknowledged} of {offset}");
            if acknowledged == offset {
                return;
            }
        }
    }
}

fn command(args: &[&str]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", args.len());
    args.iter().for_each(|arg| out += &format!("${}\r\n{arg}\r\n", arg.len()));
    out.into_bytes()
}

/// A file with strings in database 0, without a checksum.
fn file(keys: &[(&str, &str)]) -> Vec<u8> {
    let mut out = b"REDIS0010\xfe\x00".to_vec();
    for (key, value) in keys {
        out.push(0);
        for text in [key, value] {
            out.push(text.len() as u8);
            out.extend_from_slice(text.as_bytes());
        }
    }
    out.push(0xff);
    out.extend_from_slice(&[0; 8]);
    out
}

/// Waits until the reply to a request contains this.
fn until(client: &mut Client, request: &str, wanted: &str) -> String {
    for _ in 0..1_000_000 {
        let reply = client.call(request);
        if reply.contains(wanted) {
            return reply;
        }
        std::thread::yield_now();
    }
    panic!("{request} has no {wanted}: {}", client.call(request));
}

#[test]
fn a_stream_in_pieces_is_applied_and_acknowledged() {
    let (served, master) = (Served::start(), Master::new());
    let mut client = Client::connect(served.address);
    assert_eq!(client.call("SET old value"), "+OK");
    assert_eq!(client.call(&master.replicaof()), "+OK");
    let mark = "m".repeat(40);
    let (mut link, asked) = master.shake_hands();
    assert_eq!(asked, ["?", "-1"]);
    link.send(format!("+FULLRESYNC {ID} 1000\r\n$EOF:{mark}\r\n").as_bytes());
    let mut bytes = file(&[("a", "1"), ("n", "5")]);
    let cut = bytes.len() - 20;
    bytes.extend_from_slice(mark.as_bytes());
    link.send(&bytes[..cut]);
    until(&mut client, "INFO replication", "master_sync_in_progress:1");
    assert_eq!(client.call("GET old"), "$5 value", "the old data is served until the new is complete");
    link.send(&bytes[cut..]);
    link.until_acknowledged(1000);
    assert_eq!((client.call("GET old"), client.call("GET n")), ("$-1".into(), "$1 5".into()));

    let mut stream = Vec::new();
    for args in [
        &["SELECT", "3"][..],
        &["INCR", "n"],
        &["PING"],
        &["MULTI"],
        &["RPUSH", "list", "x", "y"],
        &["SELECT", "0"],
        &["INCR", "n"],
        &["EXEC"],
        // Its time is over, and the server that is followed has not removed it yet.
        &["SET", "due", "1", "PXAT", "1000"],
        &["PERSIST", "due"],
        &["SET", "gone", "1", "PXAT", "1000"],
        &["RPUSH", "to_sort", "2", "1"],
        &["SET", "w_1", "9"],
        &["SORT", "to_sort", "BY", "w_*", "STORE", "sorted"],
    ] {
        stream.extend_from_slice(&command(args));
    }
    stream.extend_from_slice(b"\r\nINCR inline\r\n");
    for byte in &stream {
        link.send(&[*byte]);
    }
    link.send(&command(&["REPLCONF", "GETACK", "*"]));
    link.until_acknowledged(1000 + stream.len() as u64);
    assert_eq!(client.call("MGET n due gone inline"), "*4 $1 6 $1 1 $-1 $1 1");
    assert_eq!(client.call("LRANGE sorted 0 -1"), "*2 $1 2 $1 1");
    assert_eq!(client.call("DBSIZE"), ":8", "only the other server removes keys");
    assert_eq!(client.call("SELECT 3"), "+OK");
    assert_eq!((client.call("GET n"), client.call("LRANGE list 0 -1")), ("$1 1".into(), "*2 $1 x $1 y".into()));
    assert_eq!(client.call("SET n 1"), "-READONLY You can\\'t write against a read only replica.");
    assert_eq!(client.call("REPLICAOF no one"), "+OK");
    assert_eq!(client.call("INCR n"), ":2");
    client.call("SELECT 0");
    until(&mut client, "DBSIZE", ":7");
    served.stop();
}

#[test]
fn a_file_that_is_bad_at_its_end_changes_nothing() {
    for (end, why) in [
        (&b"\xff\x01\x02\x03\x04\x05\x06\x07\x08"[..], "checksum"),
        (b"\x07\x00\x00\x00\x00\x00\x00\x00\x00", "refused"),
    ] {
        let (served, master) = (Served::start(), Master::new());
        let mut client = Client::connect(served.address);
        assert_eq!(client.call("SET old value"), "+OK");
        assert_eq!(client.call(&master.replicaof()), "+OK");
        let mut bytes = file(&[("new", "1")]);
        bytes.truncate(bytes.len() - 9);
        bytes.extend_from_slice(end);
        let _link = master.synchronise(&bytes, 0);
        let shown = until(&mut client, "INFO replication", "master_link_error");
        assert!(shown.contains(why), "{shown}");
        assert_eq!((client.call("GET old"), client.call("DBSIZE")), ("$5 value".into(), ":1".into()));
        // Another try is asked for, and succeeds.
        assert_eq!(client.call(&master.replicaof()), "+OK");
        master.synchronise(&file(&[("new", "1")]), 7).until_acknowledged(7);
        assert_eq!((client.call("GET old"), client.call("GET new")), ("$-1".into(), "$1 1".into()));
        served.stop();
    }
}

#[test]
fn each_command_is_applied_once_over_breaks_and_restarts() {
    let folder = os::SimFolder::new(1);
    let mut served = Served::start_on(folder.clone());
    let master = Master::new();
    let mut client = Client::connect(served.address);
    assert_eq!(client.call(&master.replicaof()), "+OK");
    let mut link = master.synchronise(&file(&[]), 50);
    let select = command(&["SELECT", "2"]);
    let add = [
        select.clone(),
        command(&["MULTI"]),
        command(&["INCR", "n"]),
        command(&["RPUSH", "l", "x"]),
        command(&["EXEC"]),
    ];
    let add = add.concat();
    let one = command(&["INCR", "n"]);
    let (mut offset, mut count) = (50 + add.len() as u64, 1);
    link.send(&add);
    for round in 0..6 {
        link.until_acknowledged(offset);
        // A transaction, or a command, that is cut off. Its beginning is lost with the link.
        let next = if round % 2 == 0 { &one } else { &add };
        link.send(&next[..next.len() - 3]);
        if round >= 3 {
            served.stop();
            served = Served::start_on(folder.clone());
            client = Client::connect(served.address);
            assert!(client.call("SET a b").starts_with("-READONLY"), "before the master is reached");
        }
        drop(link);
        let asked;
        (link, asked) = master.shake_hands();
        // A SELECT in front of the transaction changes nothing, and is not stored without a change.
        let from = asked[1].parse::<u64>().expect("an offset") - 1 - offset;
        assert!(from == 0 || from == select.len() as u64 && round == 1, "{from} in round {round}");
        assert_eq!(asked[0], ID);
        link.send(b"+CONTINUE\r\n");
        link.send(&next[from as usize..]);
        (offset, count) = (offset + next.len() as u64, count + 1);
    }
    link.until_acknowledged(offset);
    client.call("SELECT 2");
    assert_eq!((client.call("GET n"), client.call("LLEN l")), (format!("$1 {count}"), ":4".into()));
    // Another server continues the history under a new id.
    drop(link);
    let (mut link, _) = master.shake_hands();
    let new = ID.replace('a', "z");
    link.send(format!("+CONTINUE {new}\r\n").as_bytes());
    link.until_acknowledged(offset);
    served.stop();
    served = Served::start_on(folder);
    drop(link);
    assert_eq!(master.shake_hands().1, [new, (offset + 1).to_string()]);
    served.stop();
}

#[test]
fn a_command_that_is_refused_stops_it_behind_those_before() {
    for (bad, why) in [
        (command(&["LPUSH", "n", "x"]), "LPUSH\\' at offset"),
        (
            [command(&["MULTI"]), command(&["INCR", "n"]), command(&["LPUSH", "n", "x"]), command(&["EXEC"])].concat(),
            "WRONGTYPE",
        ),
        (command(&["EVAL", "return 1", "0"]), "no place in a stream"),
        (command(&["NONSENSE", "1"]), "no such command"),
        (command(&["SELECT", "16"]), "no such database"),
        (command(&["EXEC"]), "there is no transaction"),
    ] {
        let (served, master) = (Served::start(), Master::new());
        let mut client = Client::connect(served.address);
        assert_eq!(client.call(&master.replicaof()), "+OK");
        let mut link = master.synchronise(&file(&[]), 0);
        let good = command(&["INCR", "n"]);
        link.send(&[&good[..], &good, &bad, &good].concat());
        let shown = until(&mut client, "INFO replication", "master_link_error");
        assert!(shown.contains(why), "{shown}");
        assert!(shown.contains(&format!("slave_repl_offset:{}", 2 * good.len())), "{shown}");
        assert_eq!(client.call("GET n"), "$1 2", "{why}");
        assert!(client.call("SET a b").starts_with("-READONLY"));
        // A new try continues behind what was applied.
        drop(link);
        assert_eq!(client.call(&master.replicaof()), "+OK");
        assert_eq!(master.shake_hands().1[1], (2 * good.len() + 1).to_string());
        served.stop();
    }
}

#[test]
fn hostile_servers_cost_little_and_stop_nothing() {
    let (served, master) = (Served::start(), Master::new());
    let mut client = Client::connect(served.address);
    assert_eq!(client.call("SET old value"), "+OK");
    assert_eq!(client.call("CONFIG SET repl-timeout 1"), "+OK");
    assert_eq!(client.call(&master.replicaof()), "+OK");
    let endless = vec![b'x'; 100_000];
    let (full, eof) = (format!("+FULLRESYNC {ID} 0\r\n"), format!("$EOF:{}\r\n", "m".repeat(40)));
    let (mut huge, mut lost) = (b"REDIS0010\xfe\x00\x00\x81".to_vec(), file(&[("new", "1")]));
    huge.extend_from_slice(&(1_u64 << 62).to_be_bytes());
    lost.truncate(15);
    for answer in [
        &b""[..],
        b"-LOADING it is loading\r\n",
        b"-NOMASTERLINK it has no master\r\n",
        b"-ERR unknown command 'PSYNC'\r\n",
        b"+CONTINUE\r\n",
        b"+FULLRESYNC\r\n",
        b"+FULLRESYNC ../../etc/passwd 5\r\n",
        b"+FULLRESYNC abc 99999999999999999999\r\n",
        &endless,
        &[full.as_bytes(), b"$-5\r\n"].concat(),
        &[full.as_bytes(), b"-ERR no\r\n"].concat(),
        &[full.as_bytes(), b"$EOF:short\r\n"].concat(),
        &[full.as_bytes(), b"$99999999999999999\r\n", &lost].concat(),
        &[full.as_bytes(), eof.as_bytes(), &lost].concat(),
    ] {
        let (mut link, _) = master.shake_hands();
        link.send(answer);
        assert_eq!(client.call("GET old"), "$5 value");
        if answer.is_empty() {
            // Silence: the link is given up, and another one is tried.
            let _ = link.0.read_to_end(&mut Vec::new());
        }
    }
    let (mut link, _) = master.shake_hands();
    link.send(&[full.as_bytes(), eof.as_bytes(), &huge].concat());
    until(&mut client, "INFO replication", "512 MB");
    assert_eq!(client.call("GET old"), "$5 value");
    assert_eq!(client.call(&master.replicaof()), "+OK");
    let mut link = master.synchronise(&file(&[]), 0);
    for broken in
        [&b"*3\r\n$1000000000000\r\n"[..], b"*9999999999\r\n", b"*1\r\n%4\r\n", &endless, b"*1\r\n$500000000\r\nx"]
    {
        link.send(broken);
        let mut rest = Vec::new();
        let _ = link.0.read_to_end(&mut rest);
        (link, _) = master.shake_hands();
        link.send(b"+CONTINUE\r\n");
    }
    link.send(&command(&["SET", "k", "v"]));
    until(&mut client, "GET k", "$1 v");
    served.stop();
}
