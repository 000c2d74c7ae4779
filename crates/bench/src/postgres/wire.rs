//! A client of PostgreSQL's protocol that costs little: a login without a password, statements of the simple protocol, replies counted and thrown away.

use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// A connection after its login.
pub struct Wire {
    stream: BufReader<TcpStream>,
    body: Vec<u8>,
}

/// The reply to a statement.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReplySize {
    pub rows: u64,
    /// Of rows and of COPY data, with their headers.
    pub bytes: u64,
}

fn odd(text: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.into())
}

impl Wire {
    pub fn connect(address: SocketAddr, user: &str, database: &str) -> io::Result<Wire> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let mut wire = Wire { stream: BufReader::with_capacity(256 << 10, stream), body: Vec::new() };
        let parameters = format!("user\0{user}\0database\0{database}\0\0");
        let length = (8 + parameters.len()) as u32;
        let startup = [&length.to_be_bytes()[..], &[0, 3, 0, 0], parameters.as_bytes()].concat();
        wire.stream.get_mut().write_all(&startup)?;
        wire.reply(&[])?;
        Ok(wire)
    }

    /// Runs a text. Data of COPY FROM STDIN is `data`.
    pub fn query(&mut self, text: &str, data: &[u8]) -> io::Result<ReplySize> {
        self.send(b'Q', &[text.as_bytes(), b"\0"].concat())?;
        self.reply(data)
    }

    fn send(&mut self, kind: u8, body: &[u8]) -> io::Result<()> {
        let length = (body.len() + 4) as u32;
        let stream = self.stream.get_mut();
        stream.write_all(&[&[kind][..], &length.to_be_bytes()].concat())?;
        stream.write_all(body)
    }

    /// Reads messages up to ReadyForQuery.
    fn reply(&mut self, data: &[u8]) -> io::Result<ReplySize> {
        let (mut reply, mut failure) = (ReplySize::default(), None);
        loop {
            let mut header = [0; 5];
            self.stream.read_exact(&mut header)?;
            let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
            self.body.resize(length.checked_sub(4).ok_or_else(|| odd("a message without a length"))?, 0);
            self.stream.read_exact(&mut self.body)?;
            match header[0] {
                b'D' | b'd' => {
                    reply.rows += 1;
                    reply.bytes += 1 + length as u64;
                }
                b'G' => {
                    data.chunks(64 << 10).try_for_each(|part| self.send(b'd', part))?;
                    self.send(b'c', &[])?;
                }
                b'R' if self.body[..] != [0; 4] => return Err(odd("the server asks for a password")),
                b'E' => failure = Some(String::from_utf8_lossy(&self.body).replace('\0', " ")),
                b'Z' => return failure.map_or(Ok(reply), |text| Err(odd(text))),
                _ => {}
            }
        }
    }
}
