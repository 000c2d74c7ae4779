//! The life of a server from the start to SIGTERM, and what can prevent it.

use std::os::unix::fs::FileExt;
use std::process::Command;

use crate::support::{Folder, Server, assert_fails, beluga, run};

#[test]
fn a_server_starts_counts_and_stops_in_order() {
    let folder = Folder::new("life");
    let data = folder.join("data");
    let mut server = Server::start(&data, &["--redis-port", "0"]);
    let page = server.page("/metrics");
    assert!(page.contains("# TYPE polarx_rpc_tcp_connections gauge\npolarx_rpc_tcp_connections 1\n"), "{page}");
    assert!(page.contains(&format!("beluga_memory_limit_bytes {}\n", 96 << 20)));
    assert!(
        page.lines().all(|l| l.starts_with("# ") || l.split_once(' ').is_some_and(|(_, v)| v.parse::<f64>().is_ok()))
    );
    assert_eq!(server.stop("TERM"), Some(0));
    let mut again = Server::start(&data, &["--redis-port", "0"]);
    assert_eq!(again.stop("INT"), Some(0));
}

#[test]
fn one_folder_has_one_server() {
    let folder = Folder::new("locked");
    let data = folder.join("data");
    let _server = Server::start(&data, &["--redis-port", "0"]);
    assert_fails(&run(&["--data", &data]), 75, &["data: folder", &data, "in use by process", "--data"]);
    assert_fails(&run(&["check", &data]), 75, &["in use by process"]);
}

#[test]
fn a_folder_that_cannot_be_made_names_its_setting() {
    let folder = Folder::new("unmakable");
    let file = folder.join("file");
    std::fs::write(&file, "").unwrap();
    assert_fails(&run(&["--data", &format!("{file}/data")]), 73, &["data: folder", "--data"]);
    assert_fails(&run(&["--data", &file]), 73, &["data: folder", "--data"]);
}

#[test]
fn a_taken_port_names_its_setting() {
    let folder = Folder::new("port");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let words = ["--data", &folder.join("data"), "--metrics-listen", &address];
    assert_fails(&run(&words), 69, &["metrics_listen", &address, "in use", "choose another port"]);
    let words = ["--data", &folder.join("data"), "--metrics-listen", "nowhere"];
    assert_fails(&run(&words), 78, &["metrics_listen: 'nowhere' is not an address and port"]);
}

#[test]
fn a_newer_format_is_refused() {
    let folder = Folder::new("newer");
    let data = folder.join("data");
    Server::start(&data, &["--redis-port", "0"]).stop("TERM");
    // Both copies of the control block; word 1 is the format, word 8 the checksum of words 0 to 7 (docs/formats/page.md).
    let file = std::fs::File::options().read(true).write(true).open(folder.path().join("data/data")).unwrap();
    for block in 0..2 {
        let mut head = [0; 64];
        file.read_exact_at(&mut head, block * 4096).unwrap();
        head[8..16].copy_from_slice(&99_u64.to_le_bytes());
        file.write_all_at(&head, block * 4096).unwrap();
        file.write_all_at(&crc32c(&head).to_le_bytes(), block * 4096 + 64).unwrap();
    }
    assert_fails(&run(&["--data", &data]), 65, &["data: folder", "format 99", "newer version"]);
}

/// The polynomial division itself, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |c, _| (c >> 1) ^ (0x82f6_3b78 & (c & 1).wrapping_neg()))
    };
    !bytes.iter().fold(!0, step)
}

#[test]
fn a_backup_of_a_running_server_can_be_restored() {
    let folder = Folder::new("backup");
    let (data, copy, restored) = (folder.join("data"), folder.join("copy"), folder.join("restored"));
    let mut server = Server::start(&data, &["--redis-port", "0"]);
    let words = ["backup", "--from", &data, "--to", &copy];
    let output = run(&words);
    assert!(output.status.success(), "{output:?}");
    assert_fails(&run(&words), 74, &["not empty"]);
    assert!(run(&[&words[..], &["--renew"]].concat()).status.success());
    server.stop("TERM");
    // A check of the backup leaves it one.
    for to in [folder.join("before"), restored.clone()] {
        let output = run(&["restore", "--from", &copy, "--to", &to]);
        assert!(output.status.success(), "{output:?}");
        let output = run(&["check", &copy]);
        assert!(String::from_utf8_lossy(&output.stdout).contains("no damage found"), "{output:?}");
    }
    assert_fails(
        &run(&["restore", "--from", &data, "--to", &folder.join("in-use")]),
        73,
        &["was in use", "beluga copy"],
    );
    assert_fails(&run(&["restore", "--from", &copy, "--to", &restored]), 73, &["not empty"]);
    let output = run(&["check", &restored]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("no damage found"), "{output:?}");
    // And without a server.
    let second = folder.join("second");
    let output = run(&["backup", "--from", &data, "--to", &second]);
    assert!(output.status.success(), "{output:?}");
    assert_fails(
        &run(&["backup", "--from", &folder.join("nothing"), "--to", &folder.join("x")]),
        64,
        &["not a data folder"],
    );
    assert_fails(&run(&["restore", "--to", "x"]), 64, &["--from DIR is missing"]);
    assert_fails(
        &run(&["restore", "--from", &copy, "--to", &folder.join("y"), "--until-time", "noon"]),
        64,
        &["--until-time"],
    );
}

#[test]
fn memory_is_divided_or_refused() {
    let folder = Folder::new("memory");
    let words = ["--data", &folder.join("data"), "--memory", "64mb", "--log-buffer", "64mb"];
    assert_fails(&run(&words), 78, &["memory: too little"]);
    let words = ["--data", &folder.join("data"), "--log-buffer", "3mb"];
    assert_fails(&run(&words), 78, &["log_buffer: expected a power of two"]);
}

#[test]
fn lines_of_the_log_go_to_a_file() {
    let folder = Folder::new("log");
    let file = folder.join("beluga.log");
    let mut server =
        Server::start(&folder.join("data"), &["--redis-port", "0", "--log-level", "info", "--log-file", &file]);
    server.stop("TERM");
    let log = std::fs::read_to_string(&file).unwrap();
    for event in ["event=\"data opened\"", "event=listening door=metrics", "event=stopping signal=15", "event=stopped"]
    {
        assert!(log.contains(event), "no {event} in {log}");
    }
    let words = ["--data", &folder.join("data"), "--log-file", "/no/such/folder/log"];
    assert_fails(&run(&words), 73, &["log_file", "/no/such/folder/log"]);
}

#[test]
fn a_quiet_server_says_nothing_on_standard_error() {
    let folder = Folder::new("quiet");
    let script = format!(
        "\"$BELUGA\" --data {} --memory 96mb --log-segment 4mb --redis-port 0 --mysql-port 0 2>{} & pid=$!; sleep 1; kill $pid; wait $pid",
        folder.join("data"),
        folder.join("stderr")
    );
    let done = Command::new("sh").args(["-c", &script]).env("BELUGA", env!("CARGO_BIN_EXE_beluga")).output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert_eq!(std::fs::read_to_string(folder.join("stderr")).unwrap(), "");
    let warned = beluga(&["settings"]).env("BELUGA_MEMROY", "1").output().unwrap();
    assert!(String::from_utf8_lossy(&warned.stderr).contains("level=warn event=environment"), "{warned:?}");
}
