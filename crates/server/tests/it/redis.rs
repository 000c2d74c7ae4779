//! The Redis door as the server opens it: settings take effect, data survives restarts, and the door is not open wider than configured.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use crate::support::{Folder, Server, assert_fails, run};

struct Client(BufReader<TcpStream>);

impl Client {
    fn connect(server: &Server) -> Client {
        let stream = TcpStream::connect(server.address("redis")).expect("the door is open");
        Client(BufReader::new(stream))
    }

    /// Sends one inline request. Returns the reply as one line, with the elements of an array separated by blanks.
    fn ask(&mut self, request: &str) -> String {
        // Sent in one piece: a request in two packets would wait for an acknowledgement in between.
        self.0.get_mut().write_all(format!("{request}\r\n").as_bytes()).expect("the door takes a request");
        self.reply()
    }

    fn reply(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("the door answers");
        let line = line.trim_end();
        match line.split_at_checked(1) {
            Some(("$", "-1")) => "(nil)".into(),
            Some(("$", len)) => {
                let mut bytes = vec![0; len.parse::<usize>().expect("a length") + 2];
                self.0.read_exact(&mut bytes).expect("a bulk string");
                String::from_utf8_lossy(&bytes[..bytes.len() - 2]).into_owned()
            }
            Some(("*", len)) => {
                let elements: Vec<String> =
                    (0..len.parse::<usize>().expect("a length")).map(|_| self.reply()).collect();
                elements.join(" ")
            }
            _ => line.to_string(),
        }
    }
}

#[test]
fn what_was_acknowledged_is_there_after_a_restart() {
    let folder = Folder::new("restart");
    let data = folder.join("data");
    let mut server = Server::start(&data, &[]);
    let mut client = Client::connect(&server);
    assert_eq!(client.ask("PING"), "+PONG");
    assert_eq!(client.ask("SET a 1"), "+OK");
    assert!(server.page("/metrics").contains("beluga_command_calls_total{command=\"set\"} 1\n"));
    assert_eq!(server.stop("TERM"), Some(0));
    let mut server = Server::start(&data, &[]);
    let mut client = Client::connect(&server);
    assert_eq!(client.ask("GET a"), "1");
    assert_eq!(client.ask("SET b 2"), "+OK");
    assert_eq!(server.stop("KILL"), None);
    let server = Server::start(&data, &[]);
    assert_eq!(Client::connect(&server).ask("MGET a b"), "1 2");
}

#[test]
fn config_changes_settings_and_writes_them_down() {
    let folder = Folder::new("config");
    let file = folder.join("beluga.toml");
    std::fs::write(&file, "# mine\n[redis]\nproto_max_bulk_len = \"4mb\"\n").unwrap();
    let server = Server::start(&folder.join("data"), &["--config", &file]);
    let mut client = Client::connect(&server);
    assert_eq!(client.ask("CONFIG GET proto-max-bulk-len"), "proto-max-bulk-len 4194304");
    assert_eq!(client.ask("CONFIG GET maxmemory"), format!("maxmemory {}", 96 << 20));
    assert_eq!(client.ask("CONFIG SET proto-max-bulk-len 2mb slowlog-max-len 7"), "+OK");
    assert_eq!(
        client.ask("CONFIG SET slowlog-max-len x"),
        "-ERR CONFIG SET failed (possibly related to argument 'slowlog-max-len') - argument must be a number from 0 to 100000"
    );
    assert!(
        client.ask("CONFIG SET port 1").contains("it is the setting redis_port, which takes effect at the next start")
    );
    assert!(client.ask("CONFIG SET nothing 1").contains("Unknown option"));
    assert_eq!(client.ask("CONFIG REWRITE"), "+OK");
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text, "# mine\n[redis]\nproto_max_bulk_len = \"2mb\"\nslowlog_max_len = 7\n");
    assert!(client.ask("INFO server").contains("beluga_version:0."));
    assert!(client.ask("INFO memory").contains("maxmemory_policy:noeviction"));
}

#[test]
fn a_password_is_asked_for_from_its_setting_on() {
    let folder = Folder::new("password");
    let data = folder.join("data");
    let mut server = Server::start(&data, &["--redis-password", "hush"]);
    let mut client = Client::connect(&server);
    assert!(client.ask("GET a").starts_with("-NOAUTH"));
    assert!(client.ask("AUTH wrong").starts_with("-WRONGPASS"));
    assert_eq!(client.ask("AUTH hush"), "+OK");
    assert_eq!(client.ask("CONFIG SET requirepass other"), "+OK");
    assert!(Client::connect(&server).ask("AUTH hush").starts_with("-WRONGPASS"));
    server.stop("KILL");
    let server = Server::start(&data, &[]);
    assert_eq!(Client::connect(&server).ask("AUTH other"), "+OK", "the digest is in the data folder");
}

#[test]
fn nobody_listens_to_the_world_without_a_password() {
    let folder = Folder::new("protected");
    let data = folder.join("data");
    let words = ["--data", &data, "--redis-bind", "0.0.0.0"];
    assert_fails(&run(&words), 78, &["redis_bind: 0.0.0.0", "redis_password", "redis_protected_mode"]);
    let _open = Server::start(&data, &["--redis-bind", "0.0.0.0", "--redis-password", "hush"]);
}

#[test]
fn a_taken_or_foreign_address_names_its_setting() {
    let folder = Folder::new("taken");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let data = folder.join("data");
    assert_fails(
        &run(&["--data", &data, "--redis-port", &port]),
        69,
        &["redis_port: 127.0.0.1:", "in use", "choose another port"],
    );
    let words = ["--data", &data, "--redis-bind", "192.0.2.1", "--redis-protected-mode", "no"];
    assert_fails(&run(&words), 69, &["redis_bind: 192.0.2.1", "not an address of this machine"]);
    assert_fails(&run(&["--data", &data, "--redis-bind", "no such"]), 78, &["redis_bind"]);
    let server = Server::start(&data, &["--redis-bind", "127.0.0.1 -192.0.2.1"]);
    assert_eq!(Client::connect(&server).ask("PING"), "+PONG", "an address behind a dash may be missing");
}

#[test]
fn a_copy_holds_what_was_written_before_it() {
    let folder = Folder::new("copy");
    let (data, copy, restored) = (folder.join("data"), folder.join("copy"), folder.join("restored"));
    let server = Server::start(&data, &[]);
    let mut client = Client::connect(&server);
    // Sent in one piece: one write of the WAL instead of five hundred.
    let requests: String = (0..500).map(|n| format!("SET key:{n} {n}\r\n")).collect();
    client.0.get_mut().write_all(requests.as_bytes()).unwrap();
    (0..500).for_each(|_| assert_eq!(client.reply(), "+OK"));
    assert!(run(&["backup", "--from", &data, "--to", &copy]).status.success());
    assert_eq!(client.ask("SET after 1"), "+OK");
    assert!(run(&["backup", "--from", &data, "--to", &copy, "--renew"]).status.success());
    assert_eq!(client.ask("SET later 1"), "+OK");
    assert!(run(&["restore", "--from", &copy, "--to", &restored]).status.success());
    let server = Server::start(&restored, &[]);
    let mut client = Client::connect(&server);
    assert_eq!(client.ask("DBSIZE"), ":501");
    assert_eq!(client.ask("MGET key:499 after later"), "499 1 (nil)");
}

/// Flips one bit of the page that holds `bytes`. Returns the number of the page.
fn damage(file: &std::path::Path, bytes: &[u8]) -> usize {
    let mut image = std::fs::read(file).unwrap();
    let at = image.windows(bytes.len()).position(|window| window == bytes).expect("the bytes are in the file");
    image[at] ^= 0x10;
    std::fs::write(file, image).unwrap();
    at / 4096
}

#[test]
fn damage_fails_one_request_and_check_names_every_page() {
    let folder = Folder::new("damage");
    let data = folder.join("data");
    let mut server = Server::start(&data, &[]);
    let mut client = Client::connect(&server);
    let mut requests: String = (0..2000).map(|n| format!("SET key:{n} small-value-{n}-\r\n")).collect();
    requests += &format!("SET big {}\r\n", "large-value-".repeat(1000));
    client.0.get_mut().write_all(requests.as_bytes()).unwrap();
    (0..2001).for_each(|_| assert_eq!(client.reply(), "+OK"));
    assert_eq!(server.stop("TERM"), Some(0));
    let file = folder.path().join("data/data");
    let value_page = damage(&file, b"large-value-large");
    let output = run(&["check", &data]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains(&format!("corrupt page {value_page} of file 'data'")) && text.contains("EN-51: record"),
        "{text}"
    );
    let leaf_pages = [damage(&file, b"small-value-20-"), damage(&file, b"small-value-1999-")];
    let output = run(&["check", &data]);
    let text = String::from_utf8_lossy(&output.stdout);
    for page in leaf_pages {
        assert!(text.contains(&format!("corrupt page {page} of file 'data'")), "{text}");
    }
    assert_fails(&output, 65, &["problems, listed above", "beluga restore"]);

    let server = Server::start(&data, &[]);
    let mut client = Client::connect(&server);
    for (key, page) in [("key:20", leaf_pages[0]), ("key:1999", leaf_pages[1]), ("big", value_page)] {
        let reply = client.ask(&format!("GET {key}"));
        assert!(reply.starts_with('-') && reply.contains(&format!("corrupt page {page} of file 'data'")), "{reply}");
    }
    let served = (0..2000).filter(|n| client.ask(&format!("GET key:{n}")) == format!("small-value-{n}-")).count();
    assert!(served > 1900, "{served} of 2000 keys are on other pages");
}
