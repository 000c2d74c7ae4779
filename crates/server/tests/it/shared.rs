//! Servers of one database on RADOS, where `BELUGA_RADOS_POOL` names a pool of a cluster (`scripts/ceph.sh test`): killed, frozen, thawed, stopped.

use std::io::{BufRead, BufReader};
use std::process::Command;
use std::sync::mpsc::{self, Sender};

use crate::support::{Client, Folder, Server, WAIT_MAX, assert_fails, beluga, free_port, run};

/// A database of its own, and the folders of its nodes.
struct Database {
    folder: Folder,
    data: String,
}

impl Database {
    /// Returns nothing where there is no cluster.
    fn new(test: &str) -> Option<Database> {
        let Ok(pool) = std::env::var("BELUGA_RADOS_POOL") else {
            println!("skipped: BELUGA_RADOS_POOL names no pool of a Ceph cluster");
            return None;
        };
        let data = format!("rados:{pool}/server-{}-{test}", std::process::id());
        Some(Database { folder: Folder::new(test), data })
    }

    fn scratch(&self, node: u32) -> String {
        self.folder.join(&format!("scratch-{node}"))
    }

    /// Starts a node and waits until it serves.
    fn node(&self, node: u32, words: &[&str]) -> Server {
        let scratch = self.scratch(node);
        let words: Vec<&str> = ["--scratch", scratch.as_str()].iter().chain(words).copied().collect();
        Server::start(&self.data, &words)
    }
}

fn signal(server: &Server, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &server.id().to_string()]).status();
    assert!(sent.expect("kill can be run").success());
}

/// Freezes a server, and waits until all of its threads stand: on a busy machine others run on until the one that gets the signal does.
fn freeze(server: &Server) {
    signal(server, "STOP");
    let stands = |task: std::io::Result<std::fs::DirEntry>| {
        let stat = std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with('T'))
    };
    while !std::fs::read_dir(format!("/proc/{}/task", server.id())).unwrap().all(stands) {
        std::thread::yield_now();
    }
}

/// Counts up in the key `n` until the server does not answer any more. Reports each number that is acknowledged, and returns the last.
fn count_up(client: &mut Client, from: u64, progress: &Sender<u64>) -> u64 {
    let mut acknowledged = from;
    loop {
        match client.ask(&format!("set n {}", acknowledged + 1)) {
            Some(reply) => assert_eq!(reply, "+OK"),
            None => return acknowledged,
        }
        acknowledged += 1;
        let _ = progress.send(acknowledged);
    }
}

#[test]
fn a_killed_server_starts_again_with_everything_that_it_acknowledged() {
    let Some(database) = Database::new("killed") else { return };
    let mut acknowledged = 0;
    for round in 0..3 {
        let mut server = database.node(1, &[]);
        let mut client = Client::of(&server);
        let found: u64 = client.ask("get n").expect("it answers").parse().unwrap_or(0);
        // The last write may be there without an answer.
        assert!(found == acknowledged || found == acknowledged + 1, "round {round}: {found}, not {acknowledged}");
        let (progress, acknowledgements) = mpsc::channel();
        let counting = std::thread::spawn(move || count_up(&mut client, found, &progress));
        acknowledgements.recv_timeout(WAIT_MAX).expect("a write is acknowledged");
        server.stop("KILL");
        acknowledged = counting.join().unwrap();
    }
}

/// PG-33.
#[test]
fn a_frozen_server_loses_its_lease_and_shows_and_acknowledges_nothing_afterwards() {
    let Some(database) = Database::new("frozen") else { return };
    let mut first = database.node(1, &[]);
    let (mut writer, mut reader) = (Client::of(&first), Client::of(&first));
    assert_eq!(writer.ask("set old value").as_deref(), Some("+OK"));
    let (progress, acknowledgements) = mpsc::channel();
    let counting = std::thread::spawn(move || count_up(&mut writer, 0, &progress));
    acknowledgements.recv_timeout(WAIT_MAX).expect("a write is acknowledged");
    freeze(&first);
    // Asked while it is frozen, before and after the second node serves.
    reader.send("get old").unwrap();
    let mut second = database.node(2, &[]);
    let mut client = Client::of(&second);
    assert_eq!(client.ask("get old").as_deref(), Some("value"));
    assert_eq!(client.ask("set old new").as_deref(), Some("+OK"));
    reader.send("get old").unwrap();
    signal(&first, "CONT");
    assert_eq!(reader.hear(), None, "PG-33: a node that was replaced answers");
    let acknowledged = counting.join().unwrap();
    assert_eq!(first.wait(), Some(76));
    let found: u64 = client.ask("get n").unwrap().parse().unwrap();
    assert!(found == acknowledged || found == acknowledged + 1, "{found}, {acknowledged} was acknowledged");
    assert_eq!(client.ask("get old").as_deref(), Some("new"));
    assert_eq!(second.stop("TERM"), Some(0));
}

#[test]
fn a_server_that_stops_gives_the_lease_to_the_one_that_waits() {
    let Some(database) = Database::new("stopped") else { return };
    let mut first = database.node(1, &[]);
    assert_eq!(Client::of(&first).ask("set k 1").as_deref(), Some("+OK"));
    // Commands without a server are refused, and say who has it.
    let scratch = database.scratch(3);
    let words = ["check", &database.data, "--scratch", &scratch];
    assert_fails(&run(&words), 75, &[&database.data, "in use by", &first.id().to_string()]);
    let taken = database.scratch(1);
    assert_fails(&run(&["--data", &database.data, "--scratch", &taken]), 75, &["scratch: folder", &taken, "--scratch"]);
    // One that waits can be stopped.
    let port = free_port();
    let waiting = ["--data", &database.data, "--scratch", &scratch, "--redis-port", &port, "--memory", "96mb"];
    let mut waiting = beluga(&waiting).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(waiting.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("waiting for the lease") && line.contains(&first.id().to_string()), "{line}");
    Command::new("kill").args(["-TERM", &waiting.id().to_string()]).status().unwrap();
    assert_eq!(waiting.wait().unwrap().code(), Some(0));
    // The next one gets it when the first stops.
    let second = std::thread::scope(|scope| {
        let second = scope.spawn(|| database.node(2, &[]));
        assert_eq!(first.stop("TERM"), Some(0));
        second.join().unwrap()
    });
    assert_eq!(Client::of(&second).ask("get k").as_deref(), Some("1"));
}

#[test]
fn the_doors_for_sql_serve_and_offline_commands_work() {
    let Some(database) = Database::new("sql") else { return };
    let (mysql, copy) = (free_port(), database.folder.join("copy"));
    let mut server = database.node(1, &["--mysql-port", &mysql, "--postgres-port", &free_port()]);
    let (host, port) = server.address("mysql").split_once(':').expect("host and port");
    let sql = |text: &str| {
        let output = Command::new("mysql").args(["-h", host, "-P", port, "-u", "root", "-N", "-e", text]).output();
        let output = output.expect("the client is installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    sql("create database d; create table d.t (a int primary key, b varchar(2000))");
    sql(
        "insert into d.t with recursive n as (select 1 a union all select a + 1 from n where a < 900) select a, repeat('x', 1000) from n",
    );
    // Sorts and joins spill to the scratch folder.
    assert_eq!(sql("select count(*), max(a) from (select a, b from d.t order by b, a desc) s"), "900\t900\n");
    let (host, port) = server.address("postgres").split_once(':').expect("host and port");
    let words = [
        "-h",
        host,
        "-p",
        port,
        "-U",
        "postgres",
        "-d",
        "postgres",
        "-At",
        "-c",
        "create table p (a int); insert into p values (7); select a + 1 from p",
    ];
    let output = Command::new("psql").args(words).output().expect("the client is installed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.ends_with("8\n"), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let scratch = database.scratch(1);
    let backup = ["backup", "--from", &database.data, "--to", &copy, "--scratch", &scratch];
    let output = run(&backup);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(server.stop("TERM"), Some(0));
    for data in [database.data.as_str(), copy.as_str()] {
        let output = run(&["check", data, "--scratch", &scratch]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("2 tables, 901 rows") && text.contains("no damage found"), "{text}");
    }
    let output =
        run(&["backup", "--from", &database.data, "--to", &database.folder.join("again"), "--scratch", &scratch]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // A database is not replaced, and is unharmed by the attempt.
    let restore = ["restore", "--from", &copy, "--to", &database.data, "--overwrite", "--scratch", &scratch];
    assert_fails(&run(&restore), 73, &[&database.data, "a database already"]);
    assert!(run(&["check", &database.data, "--scratch", &scratch]).status.success());
}

#[test]
fn an_address_in_shared_storage_is_checked_before_anything_is_opened() {
    let folder = Folder::new("address");
    let scratch = folder.join("scratch");
    for bad in ["rados:", "rados:pool", "rados:pool/", "rados:/name", "rados:pool/a/b"] {
        assert_fails(&run(&["--data", bad, "--scratch", &scratch]), 78, &["rados:POOL/NAME", bad]);
    }
    let conf = folder.join("no.conf");
    let words = ["--data", "rados:pool/name", "--scratch", &scratch, "--ceph-conf", &conf];
    assert_fails(&run(&words), 73, &["data: rados:pool/name: "]);
    std::fs::create_dir_all(&scratch).unwrap();
    std::fs::write(folder.path().join("scratch/data"), "").unwrap();
    assert_fails(&run(&words), 78, &["scratch", "holds a database"]);
    let copy = folder.join("copy");
    for words in [["backup", "--from", &copy, "--to", "rados:p/n"], ["restore", "--from", "rados:p/n", "--to", &copy]] {
        assert_fails(&run(&words), 64, &["shared storage"]);
    }
    let words = ["copy", "--from", "rados:p", "--to", &copy, "--scratch", &folder.join("other")];
    assert_fails(&run(&words), 78, &["rados:POOL/NAME"]);
}
