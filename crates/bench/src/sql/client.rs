//! A minimal client of MySQL's protocol for loads: a login without a password, statements as text, rows as text.

use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

const CAPABILITIES: u32 = 0x0000_0001 | 0x0000_0200 | 0x0000_8000 | 0x0008_0000 | 0x0000_0008;
const UTF8MB4: u8 = 45;

/// The reason why a statement failed.
#[derive(Debug)]
pub enum Failure {
    /// The server's error number and text.
    Server(u16, String),
    Wire(io::Error),
}

impl Failure {
    /// Whether the transaction may be retried: after a deadlock or a lock wait timeout.
    pub fn is_transient(&self) -> bool {
        matches!(self, Failure::Server(1205 | 1213, _))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Wire(error)
    }
}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> io::Error {
        match failure {
            Failure::Server(code, text) => io::Error::other(format!("error {code}: {text}")),
            Failure::Wire(error) => error,
        }
    }
}

/// Values as text; None is NULL.
pub type TextRow = Vec<Option<String>>;

/// The result of a statement.
#[derive(Debug, Default)]
pub struct QueryResult {
    pub rows: Vec<TextRow>,
    pub affected: u64,
}

impl QueryResult {
    /// Returns a number of the first row.
    pub fn number<T: std::str::FromStr>(&self, column: usize) -> Result<T, Failure> {
        number(self.rows.first().unwrap_or(&TextRow::new()), column)
    }
}

/// A number of a row.
pub fn number<T: std::str::FromStr>(row: &TextRow, column: usize) -> Result<T, Failure> {
    let text = row.get(column).and_then(Option::as_deref);
    text.and_then(|text| text.parse().ok()).ok_or_else(|| odd(&format!("{text:?} where a number was expected")))
}

fn odd(what: &str) -> Failure {
    Failure::Wire(io::Error::new(io::ErrorKind::InvalidData, what.to_string()))
}

pub struct Client {
    stream: BufReader<TcpStream>,
    sequence: u8,
    packet: Vec<u8>,
}

impl Client {
    pub fn connect(address: SocketAddr, database: &str) -> Result<Client, Failure> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let mut client = Client { stream: BufReader::with_capacity(16 << 10, stream), sequence: 0, packet: Vec::new() };
        client.receive()?;
        let has_database = if database.is_empty() { 0 } else { CAPABILITIES & 8 };
        let mut login = (CAPABILITIES & !8 | has_database).to_le_bytes().to_vec();
        login.extend_from_slice(&(64u32 << 20).to_le_bytes());
        login.push(UTF8MB4);
        login.extend_from_slice(&[0; 23]);
        login.extend_from_slice(b"root\0\0");
        if !database.is_empty() {
            login.extend_from_slice(database.as_bytes());
            login.push(0);
        }
        login.extend_from_slice(b"mysql_native_password\0");
        client.send(&login)?;
        loop {
            client.receive()?;
            match client.packet.first() {
                Some(0) => return Ok(client),
                // Another method, or more of one: without a password the answer is empty.
                Some(0xfe) => client.send(&[])?,
                Some(1) => {}
                _ => return Err(client.failure()),
            }
        }
    }

    fn send(&mut self, body: &[u8]) -> io::Result<()> {
        let mut packet = (body.len() as u32).to_le_bytes();
        packet[3] = self.sequence;
        self.sequence = self.sequence.wrapping_add(1);
        let whole = [&packet, body].concat();
        self.stream.get_mut().write_all(&whole)
    }

    fn receive(&mut self) -> io::Result<()> {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head)?;
        self.sequence = head[3].wrapping_add(1);
        self.packet.resize(u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize, 0);
        self.stream.read_exact(&mut self.packet)
    }

    fn failure(&self) -> Failure {
        match &self.packet[..] {
            [0xff, low, high, rest @ ..] => {
                let text = String::from_utf8_lossy(rest.get(6..).unwrap_or(rest)).into_owned();
                Failure::Server(u16::from_le_bytes([*low, *high]), text)
            }
            other => odd(&format!("a packet that begins with {:?}", other.first())),
        }
    }

    /// Prepares a statement and returns its number.
    pub fn prepare(&mut self, sql: &str) -> Result<u32, Failure> {
        self.sequence = 0;
        self.send(&[b"\x16", sql.as_bytes()].concat())?;
        self.receive()?;
        let [0, a, b, c, d, columns_low, columns_high, parameters_low, parameters_high, ..] = self.packet[..] else {
            return Err(self.failure());
        };
        let counts =
            [u16::from_le_bytes([parameters_low, parameters_high]), u16::from_le_bytes([columns_low, columns_high])];
        // Descriptions of parameters and of columns, and the end of each that has some.
        for count in counts.into_iter().filter(|count| *count > 0) {
            for _ in 0..=count {
                self.receive()?;
            }
        }
        Ok(u32::from_le_bytes([a, b, c, d]))
    }

    /// Returns the connection, between two statements.
    pub fn into_stream(self) -> TcpStream {
        self.stream.into_inner()
    }

    pub fn ask(&mut self, sql: &str) -> Result<QueryResult, Failure> {
        self.sequence = 0;
        let mut body = Vec::with_capacity(sql.len() + 1);
        body.push(3);
        body.extend_from_slice(sql.as_bytes());
        self.send(&body)?;
        self.receive()?;
        let mut answer = QueryResult::default();
        let columns = match self.packet.first() {
            Some(0) => {
                let mut rest = &self.packet[1..];
                answer.affected = length(&mut rest).ok_or_else(|| odd("an OK without its count"))?;
                return Ok(answer);
            }
            Some(0xff) => return Err(self.failure()),
            _ => length(&mut &self.packet[..]).ok_or_else(|| odd("no count of columns"))?,
        };
        // Descriptions of the columns, and the end of them.
        for _ in 0..=columns {
            self.receive()?;
        }
        loop {
            self.receive()?;
            match self.packet.first() {
                Some(0xfe) if self.packet.len() < 9 => return Ok(answer),
                Some(0xff) => return Err(self.failure()),
                _ => answer.rows.push(row(&self.packet, columns).ok_or_else(|| odd("half a row"))?),
            }
        }
    }
}

/// Cuts a length-encoded number off the front.
fn length(bytes: &mut &[u8]) -> Option<u64> {
    let (first, rest) = bytes.split_first()?;
    let count = match first {
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        _ => {
            *bytes = rest;
            return Some(u64::from(*first));
        }
    };
    let (word, rest) = rest.split_at_checked(count)?;
    *bytes = rest;
    Some(word.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn row(mut packet: &[u8], columns: u64) -> Option<TextRow> {
    let mut row = TextRow::with_capacity(columns as usize);
    for _ in 0..columns {
        if packet.first() == Some(&0xfb) {
            packet = &packet[1..];
            row.push(None);
            continue;
        }
        let len = length(&mut packet)? as usize;
        let (text, rest) = packet.split_at_checked(len)?;
        row.push(Some(String::from_utf8_lossy(text).into_owned()));
        packet = rest;
    }
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_cut_out_of_packets() {
        assert_eq!(row(&[1, b'7', 0xfb, 0], 3), Some(vec![Some("7".into()), None, Some(String::new())]));
        assert_eq!(row(&[5, b'7'], 1), None);
        assert_eq!(length(&mut &[0xfc, 1, 2][..]), Some(513));
        assert_eq!(number::<i64>(&vec![Some("-3".into())], 0).unwrap(), -3);
        assert!(number::<i64>(&vec![None], 0).is_err());
    }
}
