//! A temporary folder for each test, and runs of the binary.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// How long a reply is waited for.
pub const WAIT_MAX: Duration = Duration::from_secs(60);

pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("beluga-it-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("the temporary folder can be made");
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn join(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("the temporary folder has a plain name").to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs `beluga` with these arguments and no settings from the environment.
pub fn beluga(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_beluga"));
    for (variable, _) in std::env::vars().filter(|(v, _)| v.starts_with("BELUGA_")) {
        command.env_remove(variable);
    }
    // Tests run many servers at once. Only a test that sets these ports itself opens the doors.
    command.env("BELUGA_MYSQL_PORT", "0").env("BELUGA_POSTGRES_PORT", "0").args(words);
    command
}

pub fn run(words: &[&str]) -> Output {
    beluga(words).output().expect("beluga can be started")
}

/// Asserts the exit code, and one line on standard error that contains all the parts.
pub fn assert_fails(output: &Output, code: i32, parts: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert_eq!(text.trim_end().lines().count(), 1, "one line: {text}");
    for part in parts {
        assert!(text.contains(part), "no '{part}' in: {text}");
    }
}

/// Returns a port that was free a moment ago.
pub fn free_port() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    listener.local_addr().expect("it has an address").port().to_string()
}

/// A running server, killed when dropped.
pub struct Server {
    child: Child,
    /// Door and address, as the server printed them.
    doors: Vec<(String, String)>,
}

impl Server {
    /// Starts a server on free ports and waits until it is ready.
    pub fn start(data: &str, words: &[&str]) -> Server {
        let port =
            if words.contains(&"--redis-port") { Vec::new() } else { vec!["--redis-port".to_string(), free_port()] };
        let fixed = ["--data", data, "--memory", "96mb", "--log-segment", "4mb", "--metrics-listen", "127.0.0.1:0"];
        let mut child =
            beluga(&fixed).args(port).args(words).stdout(Stdio::piped()).spawn().expect("beluga can be started");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let lines: Vec<String> = lines.map_while(Result::ok).take_while(|l| !l.starts_with("Ready.")).collect();
        let doors = lines.iter().filter_map(|l| l.strip_prefix("  ")).filter_map(|l| {
            let mut words = l.split_whitespace();
            Some((words.next()?.to_string(), words.next()?.to_string()))
        });
        Server { doors: doors.collect(), child }
    }

    pub fn address(&self, door: &str) -> &str {
        &self.doors.iter().find(|(name, _)| name == door).unwrap_or_else(|| panic!("no {door} in {:?}", self.doors)).1
    }

    /// Returns the body of a page of the metrics door.
    pub fn page(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.address("metrics")).expect("the metrics door is open");
        write!(stream, "GET {path} HTTP/1.1\r\nConnection: close\r\n\r\n").expect("it takes a request");
        let mut response = String::new();
        stream.read_to_string(&mut response).expect("it answers text");
        response.split_once("\r\n\r\n").expect("a head and a body").1.to_string()
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end. Returns the exit code if the process exited.
    pub fn wait(&mut self) -> Option<i32> {
        self.child.wait().expect("it ends").code()
    }

    /// Sends the signal and waits. Returns the exit code if the process exited.
    pub fn stop(&mut self, signal: &str) -> Option<i32> {
        let sent = Command::new("kill").args([&format!("-{signal}"), &self.child.id().to_string()]).status();
        assert!(sent.expect("kill can be run").success());
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of the Redis door with one request at a time.
pub struct Client(BufReader<TcpStream>);

impl Client {
    pub fn of(server: &Server) -> Client {
        let stream = TcpStream::connect(server.address("redis")).expect("the door is open");
        stream.set_read_timeout(Some(WAIT_MAX)).unwrap();
        Client(BufReader::new(stream))
    }

    pub fn send(&mut self, request: &str) -> std::io::Result<()> {
        self.0.get_mut().write_all(format!("{request}\r\n").as_bytes())
    }

    /// Returns the reply, `None` if the server has gone.
    pub fn hear(&mut self) -> Option<String> {
        let mut lines = || {
            let mut line = String::new();
            match self.0.read_line(&mut line) {
                Ok(0) => None,
                Ok(_) => Some(line.trim_end().to_owned()),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
                Err(error) => panic!("no reply: {error}"),
            }
        };
        let first = lines()?;
        if first.starts_with('$') && first != "$-1" { lines() } else { Some(first) }
    }

    pub fn ask(&mut self, request: &str) -> Option<String> {
        self.send(request).ok()?;
        self.hear()
    }
}
