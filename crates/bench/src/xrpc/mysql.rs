//! MySQL's protocol in the load: one connection for each request in flight, because it has no sessions; texts, or statements prepared once and executed in binary.

use std::io;
use std::net::{SocketAddr, TcpStream};

use stdx::prng::Prng;

use super::speech::{Done, Query, Speech, TEXT_BYTES};
use crate::sql::client::Client;

const COM_QUERY: u8 = 3;
const COM_STMT_EXECUTE: u8 = 0x17;
const TYPE_LONGLONG: u8 = 8;

/// The form in which a statement is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MysqlForm {
    Text,
    Prepared,
}

pub struct MysqlStatements {
    query: Query,
    /// The statement up to its key, which is its end.
    text: String,
    /// The number of the prepared statement.
    prepared: Option<u32>,
    random: Prng,
}

impl MysqlStatements {
    /// Returns a logged-in connection, with its statement prepared if that is its form.
    pub fn connect(
        address: SocketAddr,
        telling: MysqlForm,
        query: Query,
        seed: u64,
    ) -> io::Result<(TcpStream, MysqlStatements)> {
        let mut client = Client::connect(address, "")?;
        let prepared = match telling {
            MysqlForm::Text => None,
            MysqlForm::Prepared => Some(client.prepare(&query.sql())?),
        };
        let text = query.sql().trim_end_matches('?').to_string();
        Ok((client.into_stream(), MysqlStatements { query, text, prepared, random: Prng::new(seed) }))
    }
}

impl Speech for MysqlStatements {
    fn ask(&mut self, _: u32, out: &mut Vec<u8>) {
        let key = self.query.key(&mut self.random);
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        match self.prepared {
            None => {
                out.push(COM_QUERY);
                out.extend_from_slice(self.text.as_bytes());
                if let Some(key) = key {
                    out.extend_from_slice(key.to_string().as_bytes());
                }
            }
            Some(number) => {
                out.push(COM_STMT_EXECUTE);
                out.extend_from_slice(&number.to_le_bytes());
                // No cursor, once.
                out.extend_from_slice(&[0, 1, 0, 0, 0]);
                if let Some(key) = key {
                    // No NULL, and the types are sent.
                    out.extend_from_slice(&[0, 1, TYPE_LONGLONG, 0]);
                    out.extend_from_slice(&key.to_le_bytes());
                }
            }
        }
        let length = (out.len() - start - 4) as u32;
        out[start..start + 3].copy_from_slice(&length.to_le_bytes()[..3]);
    }

    fn take(&mut self, bytes: &[u8], done: &mut Vec<Done>, _: &mut Vec<u8>) -> io::Result<usize> {
        let mut rest = bytes;
        let Some(first) = packet(&mut rest) else { return Ok(0) };
        if first.first() == Some(&0xff) {
            done.push(Done { slot: 0, is_right: false });
            return Ok(bytes.len() - rest.len());
        }
        let columns = usize::from(*first.first().unwrap_or(&0));
        let (mut row_count, mut right_count) = (0, 0);
        // Descriptions of the columns and their end; then rows, and theirs.
        for _ in 0..=columns {
            if packet(&mut rest).is_none() {
                return Ok(0);
            }
        }
        loop {
            match packet(&mut rest) {
                None => return Ok(0),
                Some([0xfe, more @ ..]) if more.len() < 8 => break,
                Some(row) => {
                    row_count += 1;
                    right_count += u32::from(self.is_right(row));
                }
            }
        }
        done.push(Done { slot: 0, is_right: row_count == 1 && right_count == 1 });
        Ok(bytes.len() - rest.len())
    }
}

impl MysqlStatements {
    fn is_right(&self, row: &[u8]) -> bool {
        match (self.query, self.prepared) {
            (Query::One, None) => row == b"\x011",
            // A head and a bitmap go before binary values.
            (Query::One, Some(_)) => row.len() >= 2 + 4 && row[2] == 1,
            (Query::Point { .. }, None) => row.len() == 1 + TEXT_BYTES,
            (Query::Point { .. }, Some(_)) => row.len() == 2 + 1 + TEXT_BYTES,
        }
    }
}

/// The body of the packet in front, if all of it is there.
fn packet<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(4)?;
    let length = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
    let (body, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    Some(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_taken_when_all_of_it_is_there() {
        let packets: [&[u8]; 5] = [&[1], b"def", &[0xfe, 0, 0, 0, 0], b"\x011", &[0xfe, 0, 0, 0, 0]];
        let bytes: Vec<u8> = packets.iter().flat_map(|body| [&[body.len() as u8, 0, 0, 1], *body].concat()).collect();
        let mut speech =
            MysqlStatements { query: Query::One, text: String::new(), prepared: None, random: Prng::new(1) };
        let mut done = Vec::new();
        for end in 0..bytes.len() {
            assert_eq!(speech.take(&bytes[..end], &mut done, &mut Vec::new()).unwrap(), 0);
        }
        assert_eq!(speech.take(&bytes, &mut done, &mut Vec::new()).unwrap(), bytes.len());
        assert!(done.len() == 1 && done[0].is_right);
    }
}
