//! `beluga copy` and `beluga restore`, from folder to folder; into, out of and within a Ceph cluster where `BELUGA_RADOS_POOL` names a pool (`scripts/ceph.sh test`):
//! what is copied is equal, and a command that was killed leaves nothing that is served.

use std::io::{BufRead, BufReader};
use std::process::{Output, Stdio};

use crate::support::{Client, Folder, Server, assert_fails, beluga, run};

/// Keys of a database that is copied, and bytes of a value.
const KEYS: usize = 4000;
const VALUE_BYTES: usize = 5000;

/// The places of a test.
struct Places {
    folder: Folder,
    test: &'static str,
    pool: Option<String>,
}

impl Places {
    fn new(test: &'static str) -> Places {
        let pool = std::env::var("BELUGA_RADOS_POOL").ok();
        if pool.is_none() {
            println!("without a cluster: BELUGA_RADOS_POOL names no pool");
        }
        Places { folder: Folder::new(&format!("copies-{test}")), test, pool }
    }

    /// Returns the place of this name in a folder, and in the cluster if there is one.
    fn all(&self, name: &str) -> Vec<String> {
        let shared =
            self.pool.iter().map(|pool| format!("rados:{pool}/copies-{}-{}-{name}", std::process::id(), self.test));
        [self.folder.join(name)].into_iter().chain(shared).collect()
    }

    fn run(&self, words: &[&str]) -> Output {
        run(&[words, &["--scratch", &self.folder.join("scratch"), "--memory", "96mb"]].concat())
    }

    fn serve(&self, data: &str) -> Server {
        Server::start(data, &["--scratch", &self.folder.join("scratch")])
    }

    /// Asserts that the place has the keys of `fill`, in good order.
    fn assert_filled(&self, data: &str) {
        let output = self.run(&["check", data]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(&format!("{} keys", KEYS + 1)) && text.contains("no damage found"), "{text}{output:?}");
        let mut server = self.serve(data);
        let mut client = Client::of(&server);
        for number in (0..KEYS).step_by(97) {
            assert_eq!(client.ask(&format!("get key:{number}")), Some(value(number)), "{data}: {number}");
        }
        assert_eq!(client.ask("get late").as_deref(), Some("yes"));
        assert_eq!(client.ask("set late yes").as_deref(), Some("+OK"));
        assert_eq!(server.stop("TERM"), Some(0));
    }
}

fn value(number: usize) -> String {
    let word = format!("{:08x}", number.wrapping_mul(0x9e37_79b9));
    word.repeat(VALUE_BYTES / word.len())
}

/// Fills a database, and kills its server after the last acknowledgement.
fn fill(places: &Places, data: &str) {
    let mut server = places.serve(data);
    let mut client = Client::of(&server);
    for from in (0..KEYS).step_by(100) {
        for number in from..from + 100 {
            client.send(&format!("set key:{number} {}", value(number))).unwrap();
        }
        for _ in 0..100 {
            assert_eq!(client.hear().as_deref(), Some("+OK"));
        }
    }
    assert_eq!(client.ask("set late yes").as_deref(), Some("+OK"));
    server.stop("KILL");
}

#[test]
fn a_database_is_copied_in_every_direction_however_its_server_ended() {
    let places = Places::new("directions");
    for (at, from) in places.all("source").iter().enumerate() {
        let server = places.serve(from);
        let to = places.folder.join("early");
        assert_fails(&places.run(&["copy", "--from", from, "--to", &to]), 75, &["stop"]);
        drop(server);
        fill(&places, from);
        for to in places.all(&format!("target-{at}")) {
            let copy = ["copy", "--from", from, "--to", &to];
            let output = places.run(&copy);
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{output:?}");
            for part in ["100 % of ", " pages), ", " MB/s", "bytes copied"] {
                assert!(text.contains(part), "no '{part}': {text}");
            }
            places.assert_filled(&to);
            // It is not replaced.
            for words in [&copy[..], &[&copy[..], &["--overwrite"]].concat()] {
                assert_fails(&places.run(words), 73, &[&to, "choose"]);
            }
            places.assert_filled(&to);
        }
        places.assert_filled(from);
    }
}

#[test]
fn a_copy_that_is_killed_is_refused_by_everyone_until_it_is_made_again() {
    let places = Places::new("killed");
    let source = places.folder.join("source");
    fill(&places, &source);
    let mut killed = 0;
    for (nth, lines) in [0, 1, 4, 8].into_iter().enumerate() {
        for to in places.all(&format!("target-{nth}")) {
            let scratch = places.folder.join("scratch");
            let copy = ["copy", "--from", &source, "--to", &to, "--scratch", &scratch];
            let mut child = beluga(&copy).stdout(Stdio::piped()).spawn().unwrap();
            let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
            // At the first line, or after some more of them.
            let seen = output.by_ref().take(lines + 1).map_while(Result::ok).count();
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(seen > lines, "{to}: {seen} lines");
            drop(output);
            let is_complete = places.run(&["check", &to]).status.success();
            if !is_complete {
                killed += 1;
                for words in [&["--data", &to][..], &["check", &to], &["copy", "--from", &to, "--to", &source]] {
                    let output = places.run(words);
                    // A server has also told that it waits for the lease of the process that was killed.
                    let text = String::from_utf8_lossy(&output.stderr);
                    let last = text.lines().last().unwrap_or_default();
                    assert_eq!(output.status.code(), Some(65), "{text}");
                    assert!(
                        last.contains(&to) && last.contains("interrupted") && last.contains("--overwrite"),
                        "{text}"
                    );
                }
                assert_fails(&places.run(&copy[..5]), 73, &[&to, "--overwrite"]);
                let output = places.run(&[&copy[..5], &["--overwrite"]].concat());
                assert!(output.status.success(), "{output:?}");
            }
            places.assert_filled(&to);
        }
    }
    assert!(killed >= 2, "{killed} copies were killed in the middle");
    places.assert_filled(&source);
}

#[test]
fn a_backup_of_either_kind_is_restored_to_both_as_of_a_moment() {
    let places = Places::new("backups");
    for (at, from) in places.all("source").iter().enumerate() {
        fill(&places, from);
        let backup = places.folder.join(&format!("backup-{at}"));
        // Through the server: in the cluster a checkpoint drops the segments that a renewal would need.
        let mut server = places.serve(from);
        let output = places.run(&["backup", "--from", from, "--to", &backup]);
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lsn =
            text.split("to LSN ").nth(1).and_then(|rest| rest.split_whitespace().next()).expect("an LSN").to_owned();
        assert_eq!(Client::of(&server).ask("set late no").as_deref(), Some("+OK"));
        let output = places.run(&["backup", "--from", from, "--to", &backup, "--renew"]);
        assert!(output.status.success(), "{output:?}");
        server.stop("TERM");
        for to in places.all(&format!("restored-{at}")) {
            let restore = ["restore", "--from", &backup, "--to", &to, "--until-lsn", &lsn];
            let output = places.run(&restore);
            assert!(output.status.success(), "{output:?}");
            places.assert_filled(&to);
            assert_fails(&places.run(&restore), 73, &[&to]);
            // A backup is not made of another database's, though it comes from it.
            let renew = ["backup", "--from", &to, "--to", &backup, "--renew"];
            assert_fails(&places.run(&renew), 74, &["no backup of this database"]);
        }
        for to in places.all(&format!("newest-{at}")) {
            assert!(places.run(&["restore", "--from", &backup, "--to", &to]).status.success());
            let server = places.serve(&to);
            assert_eq!(Client::of(&server).ask("get late").as_deref(), Some("no"));
        }
    }
}

#[test]
fn copy_names_what_is_wrong_with_its_arguments() {
    let places = Places::new("arguments");
    let (from, to) = (places.folder.join("from"), places.folder.join("to"));
    assert_fails(&places.run(&["copy", "--to", &to]), 64, &["--from DIR is missing"]);
    assert_fails(&places.run(&["copy", &from, "--to", &to]), 64, &["unexpected argument", "--from and --to"]);
    assert_fails(&places.run(&["copy", "--from", &from, "--to", &to]), 64, &[&from, "not a data folder"]);
    assert_fails(&places.run(&["copy", "--from", &from, "--to", &from]), 64, &["--to"]);
    assert!(!std::path::Path::new(&to).exists());
    if let Some(absent) = places.all("absent").get(1) {
        for words in [&["check", absent][..], &["copy", "--from", absent, "--to", &to]] {
            assert_fails(&places.run(words), 73, &[absent, "no such database"]);
        }
    }
}
