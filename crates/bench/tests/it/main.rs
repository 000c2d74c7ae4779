//! The program as a person starts it: its output and its exit codes.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bench")).args(arguments).output().expect("the program starts")
}

/// A server that answers every line PING with `reply`.
fn answers_ping(reply: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            std::thread::spawn(move || {
                let mut line = String::new();
                while stream.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                    if line == "PING\r\n" && stream.get_mut().write_all(reply.as_bytes()).is_err() {
                        return;
                    }
                    line.clear();
                }
            });
        }
    });
    port
}

#[test]
fn a_load_prints_its_report() {
    let port = answers_ping("+PONG\r\n");
    let output = bench(&["load", "-p", &port, "--ping", "-c", "3", "-t", "2", "-n", "50", "--pipeline", "4"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let ping: Vec<&str> = text.lines().find(|line| line.starts_with("PING")).unwrap().split_whitespace().collect();
    assert_eq!(ping[1], "300", "{text}");
    assert!(text.contains("errors: 0"), "{text}");
}

#[test]
fn a_load_with_errors_says_which_and_fails() {
    let port = answers_ping("-NOAUTH Authentication required.\r\n");
    let output = bench(&["load", "-p", &port, "--ping", "-c", "1", "-t", "1", "-n", "5"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains("5 x NOAUTH Authentication required."), "{text}");
}

#[test]
fn mistakes_are_one_line_and_exit_code_64() {
    let output = bench(&["load", "--wings"]);
    assert_eq!(output.status.code(), Some(64));
    assert_eq!(String::from_utf8(output.stderr).unwrap().lines().count(), 1);
    assert!(bench(&["--help"]).status.success());
    // Nobody listens on port 1: a clear error, no report.
    let output = bench(&["load", "-p", "1", "--ping"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
}
