//! A client that sends scripted frames and decodes the answers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use door_xrpc::proto::{Fields, Wire, put_bytes, put_measured, put_number, unzigzag, zigzag};
use engine::sha1;

pub struct Client {
    pub stream: TcpStream,
    /// Bytes between the sid and the length.
    pub version: Option<u8>,
}

/// A frame of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub sid: u64,
    pub kind: u8,
    pub payload: Vec<u8>,
}

/// The answer to a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Names of columns; empty without metadata.
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Vec<u8>>>,
    pub chunks: usize,
    pub warnings: Vec<u64>,
    pub affected: Option<u64>,
    pub insert_id: Option<u64>,
    /// Severity, code, state, text.
    pub error: Option<(u64, u64, String, String)>,
    /// How often the server asked for tokens.
    pub token_waits: usize,
}

impl Answer {
    pub fn code(&self) -> u64 {
        self.error.as_ref().map_or(0, |error| error.1)
    }

    pub fn is_fatal(&self) -> bool {
        self.error.as_ref().is_some_and(|error| error.0 == 1)
    }

    /// Returns the first column of each row as a signed number.
    pub fn numbers(&self) -> Vec<i64> {
        self.rows.iter().map(|row| unzigzag(varint(&row[0]))).collect()
    }

    /// Returns the first value as text.
    pub fn text(&self) -> String {
        let bytes = self.rows[0][0].strip_suffix(&[0]).expect("a string ends with a zero");
        String::from_utf8(bytes.to_vec()).unwrap()
    }
}

pub fn varint(mut bytes: &[u8]) -> u64 {
    door_xrpc::proto::take_varint(&mut bytes).unwrap()
}

pub fn field(message: &[u8], wanted: u32) -> Option<Wire<'_>> {
    Fields::of(message)
        .map(|field| field.unwrap())
        .filter(|(number, _)| *number == wanted)
        .last()
        .map(|(_, value)| value)
}

pub fn number(message: &[u8], wanted: u32) -> u64 {
    field(message, wanted).map_or(0, |value| value.varint().unwrap())
}

pub fn bytes(message: &[u8], wanted: u32) -> Vec<u8> {
    field(message, wanted).map_or(Vec::new(), |value| value.bytes().unwrap().to_vec())
}

fn text(message: &[u8], wanted: u32) -> String {
    String::from_utf8(bytes(message, wanted)).unwrap()
}

/// An EXEC_SQL under construction.
#[derive(Clone, Default)]
pub struct Statement(Vec<u8>);

impl Statement {
    pub fn new(text: &str) -> Statement {
        let mut statement = Statement::default();
        put_bytes(&mut statement.0, 1, text.as_bytes());
        statement
    }

    fn scalar(mut self, kind: u64, write: impl FnOnce(&mut Vec<u8>)) -> Statement {
        put_measured(&mut self.0, 2, |out| {
            put_number(out, 1, 1);
            put_measured(out, 2, |out| {
                put_number(out, 1, kind);
                write(out);
            });
        });
        self
    }

    pub fn int(self, value: i64) -> Statement {
        self.scalar(1, |out| put_number(out, 2, zigzag(value)))
    }

    pub fn string(self, value: &str) -> Statement {
        self.scalar(8, |out| put_measured(out, 9, |out| put_bytes(out, 1, value.as_bytes())))
    }

    pub fn octets(self, value: &[u8]) -> Statement {
        self.scalar(4, |out| put_measured(out, 5, |out| put_bytes(out, 1, value)))
    }

    pub fn null(self) -> Statement {
        self.scalar(3, |_| {})
    }

    pub fn identifier(self, name: &str) -> Statement {
        self.scalar(10, |out| put_measured(out, 9, |out| put_bytes(out, 1, name.as_bytes())))
    }

    pub fn raw(self, text: &str) -> Statement {
        self.scalar(11, |out| put_measured(out, 9, |out| put_bytes(out, 1, text.as_bytes())))
    }

    fn with(mut self, field: u32, number: u64) -> Statement {
        put_number(&mut self.0, field, number);
        self
    }

    pub fn compact(self) -> Statement {
        self.with(4, 1)
    }

    pub fn schema(mut self, name: &str) -> Statement {
        put_bytes(&mut self.0, 5, name.as_bytes());
        self
    }

    pub fn token(self, token: i64) -> Statement {
        self.with(8, token as u64)
    }

    pub fn reset_error(self, reset: bool) -> Statement {
        self.with(9, reset.into())
    }

    pub fn snapshot(self, number: u64) -> Statement {
        self.with(10, number)
    }

    pub fn digest(mut self, digest: &[u8]) -> Statement {
        put_bytes(&mut self.0, 12, digest);
        self
    }

    pub fn hint(mut self, hint: &str) -> Statement {
        put_bytes(&mut self.0, 13, hint.as_bytes());
        self
    }

    pub fn chunks(self) -> Statement {
        self.with(14, 1)
    }

    pub fn capabilities(self, bits: u64) -> Statement {
        self.with(17, bits)
    }
}

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Client { stream, version: None }
    }

    pub fn frame(&self, sid: u64, kind: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = sid.to_le_bytes().to_vec();
        frame.extend(self.version);
        frame.extend_from_slice(&(payload.len() as u32 + 1).to_le_bytes());
        frame.push(kind);
        frame.extend_from_slice(payload);
        frame
    }

    /// Sends bytes; the server may have closed the connection.
    pub fn send(&mut self, sid: u64, kind: u8, payload: &[u8]) {
        let frame = self.frame(sid, kind, payload);
        let _ = self.stream.write_all(&frame);
    }

    pub fn receive(&mut self) -> Frame {
        let mut header = vec![0; if self.version.is_some() { 14 } else { 13 }];
        self.stream.read_exact(&mut header).expect("a frame");
        let end = header.len();
        let length = u32::from_le_bytes(header[end - 5..end - 1].try_into().unwrap());
        let mut payload = vec![0; length as usize - 1];
        self.stream.read_exact(&mut payload).expect("the rest of a frame");
        Frame { sid: u64::from_le_bytes(header[..8].try_into().unwrap()), kind: header[end - 1], payload }
    }

    /// Logs in, and returns the answer to the proof.
    pub fn enter(&mut self, user: &str, password: &str) -> Frame {
        self.send(0, 4, b"\x0a\x07MYSQL41");
        let challenge = self.receive();
        assert_eq!((challenge.sid, challenge.kind), (0, 3));
        let proof = proof(password, &bytes(&challenge.payload, 1));
        let mut payload = Vec::new();
        put_bytes(&mut payload, 1, format!("\0{user}\0{proof}").as_bytes());
        self.send(0, 5, &payload);
        self.receive()
    }

    pub fn begin(&mut self, sid: u64) {
        self.send(sid, 110, b"");
        assert_eq!(self.receive(), Frame { sid, kind: 0, payload: Vec::new() });
    }

    pub fn say(&mut self, sid: u64, statement: &Statement) {
        self.send(sid, 101, &statement.0);
    }

    pub fn execute(&mut self, sid: u64, statement: &Statement) -> Answer {
        self.say(sid, statement);
        self.answer(sid)
    }

    pub fn run(&mut self, sid: u64, text: &str) -> Answer {
        self.execute(sid, &Statement::new(text))
    }

    /// Runs a statement that has to succeed.
    pub fn done(&mut self, sid: u64, text: &str) -> Answer {
        let answer = self.run(sid, text);
        assert_eq!(answer.error, None, "{text}");
        answer
    }

    /// Returns the next answer of a session while no other has one pending.
    pub fn answer(&mut self, sid: u64) -> Answer {
        let mut answer = Answer::default();
        loop {
            let frame = self.receive();
            assert_eq!(frame.sid, sid, "{frame:?}");
            if answer.take(&frame) {
                return answer;
            }
            if frame.kind == 19 {
                self.send(sid, 112, b"\x08\x01");
            }
        }
    }

    /// Asserts that the server sends nothing more.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0; 1]), Ok(0) | Err(_))
    }
}

impl Answer {
    /// Adds a frame. Returns true if it was the last.
    pub fn take(&mut self, frame: &Frame) -> bool {
        let payload = &frame.payload[..];
        match frame.kind {
            0 | 17 => return true,
            1 => {
                let error = (number(payload, 1), number(payload, 2), text(payload, 4), text(payload, 3));
                self.error = Some(error);
                return true;
            }
            11 => self.notice(payload),
            12 => self.columns.push(text(payload, 3)),
            13 => {
                let fields = Fields::of(payload).map(|field| field.unwrap().1.bytes().unwrap().to_vec());
                self.rows.push(fields.collect());
            }
            14 => {}
            19 => self.token_waits += 1,
            21 => self.chunks += 1,
            kind => panic!("a frame of type {kind}"),
        }
        false
    }

    fn notice(&mut self, payload: &[u8]) {
        let inside = bytes(payload, 3);
        assert_eq!(number(payload, 2), 2, "local");
        if number(payload, 1) == 1 {
            self.warnings.push(number(&inside, 2));
            return;
        }
        let value = bytes(&inside, 2);
        match number(&inside, 1) {
            3 => self.insert_id = Some(number(&value, 3)),
            4 => self.affected = Some(number(&value, 3)),
            10 => {}
            parameter => panic!("a notice of {parameter}"),
        }
    }
}

fn proof(password: &str, salt: &[u8]) -> String {
    if password.is_empty() {
        return String::new();
    }
    let single = sha1(password.as_bytes());
    let salted = sha1(&[salt, &sha1(&single)].concat());
    let digits: String = single.iter().zip(salted).map(|(a, b)| format!("{:02x}", a ^ b)).collect();
    format!("*{digits}")
}
