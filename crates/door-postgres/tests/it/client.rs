//! A client that speaks the protocol by hand, and writes what it receives in one line: `T D(1) C(SELECT 1) Z(I)`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Something that a client can speak over: a socket, or TLS on one.
pub trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

pub struct Client {
    pub stream: Box<dyn Stream>,
    /// Of BackendKeyData.
    pub pid: u32,
    pub key: u32,
}

pub const VERSION: u32 = 3 << 16;
pub const SSL_REQUEST: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x2f";
pub const GSS_REQUEST: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x30";
pub const SYNC: &[u8] = b"S\0\0\0\x04";

pub fn socket(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the door is open");
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

pub fn query(text: &str) -> Vec<u8> {
    message(b'Q', &[text.as_bytes(), b"\0"].concat())
}

/// A statement with this many rows of one text, a multiple of 1000.
pub fn many_rows(count: u32) -> String {
    let values = |count: u32| (1..=count).map(|nth| format!("('{nth}')")).collect::<Vec<_>>().join(", ");
    format!("select a.x from (values {}) a(x), (values {}) b(x)", values(1000), values(count / 1000))
}

pub fn parse(name: &str, text: &str) -> Vec<u8> {
    message(b'P', &[name.as_bytes(), b"\0", text.as_bytes(), b"\0\0\0"].concat())
}

/// Bind without parameters, with all results as text.
pub fn bind(portal: &str, statement: &str) -> Vec<u8> {
    message(b'B', &[portal.as_bytes(), b"\0", statement.as_bytes(), b"\0\0\0\0\0\0\0"].concat())
}

pub fn execute(portal: &str, max_rows: u32) -> Vec<u8> {
    message(b'E', &[portal.as_bytes(), b"\0", &max_rows.to_be_bytes()].concat())
}

/// Parse, Bind and Execute of the unnamed statement and portal.
pub fn run(text: &str) -> Vec<u8> {
    [parse("", text), bind("", ""), execute("", 0)].concat()
}

pub fn startup(version: u32, pairs: &[(&str, &str)]) -> Vec<u8> {
    let pairs = pairs.iter().flat_map(|(name, value)| [name.as_bytes(), b"\0", value.as_bytes(), b"\0"].concat());
    let body: Vec<u8> = version.to_be_bytes().into_iter().chain(pairs).chain([0]).collect();
    [&(body.len() as u32 + 4).to_be_bytes()[..], &body].concat()
}

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        Client::over(Box::new(socket(address)))
    }

    pub fn over(stream: Box<dyn Stream>) -> Client {
        Client { stream, pid: 0, key: 0 }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server reads");
    }

    pub fn byte(&mut self) -> u8 {
        let mut byte = [0];
        self.stream.read_exact(&mut byte).expect("the server answers");
        byte[0]
    }

    /// Receives one message; `None` at the end of the stream.
    pub fn receive(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut header = [0; 5];
        self.stream.read_exact(&mut header).ok()?;
        let length = u32::from_be_bytes(header[1..].try_into().unwrap()) as usize;
        let mut body = vec![0; length - 4];
        self.stream.read_exact(&mut body).ok()?;
        if header[0] == b'K' {
            let word = |at: usize| u32::from_be_bytes(body[at..at + 4].try_into().unwrap());
            (self.pid, self.key) = (word(0), word(4));
        }
        Some((header[0], body))
    }

    /// Receives up to a message of this kind, or the end of the stream, and returns all of them.
    pub fn until(&mut self, last: u8) -> String {
        let mut words = Vec::new();
        loop {
            let Some((kind, body)) = self.receive() else {
                words.push("end".to_string());
                return words.join(" ");
            };
            words.push(written(kind, &body));
            if kind == last {
                return words.join(" ");
            }
        }
    }

    /// Sends bytes, and receives up to ReadyForQuery.
    pub fn ask(&mut self, bytes: &[u8]) -> String {
        self.send(bytes);
        self.until(b'Z')
    }

    /// Sends a startup message and receives what follows up to ReadyForQuery, a request for a password, or the end.
    pub fn start(&mut self, role: &str) -> String {
        self.send(&startup(VERSION, &[("user", role), ("database", "postgres")]));
        self.until(b'Z')
    }
}

fn written(kind: u8, body: &[u8]) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes.strip_suffix(b"\0").unwrap_or(bytes)).into_owned();
    match kind {
        b'D' => format!("D({})", row(body).join(",")),
        b'C' | b'Z' => format!("{}({})", kind as char, text(body)),
        b'S' => format!("S({})", text(body).replace('\0', "=")),
        b'E' | b'N' => {
            let fields: Vec<(char, String)> = body
                .split(|byte| *byte == 0)
                .filter(|field| !field.is_empty())
                .map(|field| (field[0] as char, text(&field[1..])))
                .collect();
            let of = |letter| fields.iter().find(|(known, _)| *known == letter).map_or("", |(_, value)| value);
            format!("{}({} {} {})", kind as char, of('V'), of('C'), of('M'))
        }
        b'R' => format!("R{}", u32::from_be_bytes(body[..4].try_into().unwrap())),
        b'd' => format!("d({})", text(body).replace('\n', "/")),
        kind => (kind as char).to_string(),
    }
}

fn row(body: &[u8]) -> Vec<String> {
    let (count, mut rest) = (u16::from_be_bytes(body[..2].try_into().unwrap()), &body[2..]);
    let value = |_| {
        let length = i32::from_be_bytes(rest[..4].try_into().unwrap());
        rest = &rest[4..];
        if length < 0 {
            return "NULL".to_string();
        }
        let (value, behind) = rest.split_at(length as usize);
        rest = behind;
        String::from_utf8_lossy(value).into_owned()
    };
    (0..count).map(value).collect()
}
