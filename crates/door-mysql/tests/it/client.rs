//! A client that sends scripted packets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use engine::sha1;

pub const OK: u8 = 0;
/// The capabilities of most clients: the protocol of version 4.1, methods by name, SQLSTATE in errors.
pub const PLAIN: u32 = 0x0008_8200 | 0x0020_0000;

pub struct Client {
    pub stream: TcpStream,
    pub greeting: Vec<u8>,
    pub sequence: u8,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut client = Client { stream, greeting: Vec::new(), sequence: 0 };
        client.greeting = client.receive();
        client
    }

    pub fn version(&self) -> String {
        let end = self.greeting.iter().position(|byte| *byte == 0).unwrap();
        String::from_utf8(self.greeting[1..end].to_vec()).unwrap()
    }

    fn behind_version(&self) -> &[u8] {
        &self.greeting[self.version().len() + 2..]
    }

    pub fn scramble(&self) -> [u8; 20] {
        let rest = self.behind_version();
        [&rest[4..12], &rest[31..43]].concat().try_into().unwrap()
    }

    pub fn offers(&self, capability: u32) -> bool {
        let rest = self.behind_version();
        u32::from_le_bytes([rest[13], rest[14], rest[18], rest[19]]) & capability != 0
    }

    /// The handshake response.
    pub fn answer(&mut self, capabilities: u32, user: &str, response: &[u8], plugin: Option<&str>) {
        let mut payload = capabilities.to_le_bytes().to_vec();
        payload.extend_from_slice(&[0, 0, 0, 1, 45]);
        payload.extend_from_slice(&[0; 23]);
        payload.extend_from_slice(user.as_bytes());
        payload.extend_from_slice(&[0, response.len() as u8]);
        payload.extend_from_slice(response);
        payload.extend_from_slice(plugin.unwrap_or("caching_sha2_password").as_bytes());
        payload.push(0);
        self.send(&payload);
    }

    /// A payload with the next sequence number, in as many frames as it takes.
    pub fn send(&mut self, payload: &[u8]) {
        let mut rest = payload;
        loop {
            let length = rest.len().min(0xff_ffff);
            let [a, b, c, _] = (length as u32).to_le_bytes();
            let frame = [&[a, b, c, self.sequence], &rest[..length]].concat();
            self.stream.write_all(&frame).unwrap();
            self.sequence = self.sequence.wrapping_add(1);
            rest = &rest[length..];
            if length < 0xff_ffff {
                return;
            }
        }
    }

    /// A packet's payload.
    pub fn receive(&mut self) -> Vec<u8> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header).expect("a reply");
        let [a, b, c, sequence] = header;
        self.sequence = sequence.wrapping_add(1);
        let mut payload = vec![0; u32::from_le_bytes([a, b, c, 0]) as usize];
        self.stream.read_exact(&mut payload).expect("the rest of a reply");
        payload
    }

    /// Sends a command without waiting for the reply. The server may have closed the connection.
    pub fn say(&mut self, payload: &[u8]) {
        let [a, b, c, _] = (payload.len() as u32).to_le_bytes();
        let _ = self.stream.write_all(&[&[a, b, c, 0], payload].concat());
    }

    /// Sends a command and returns the first packet of its reply.
    pub fn command(&mut self, payload: &[u8]) -> Vec<u8> {
        self.say(payload);
        self.receive()
    }

    /// Asserts that the server sends nothing more.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0; 1]), Ok(0))
    }
}

/// SHA1(password) XOR SHA1(scramble + SHA1(SHA1(password))).
pub fn sha1_answer(password: &str, scramble: &[u8; 20]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let single = sha1(password.as_bytes());
    let salted = sha1(&[&scramble[..], &sha1(&single)].concat());
    single.iter().zip(salted).map(|(a, b)| a ^ b).collect()
}
