//! A blocking connection for the few commands around a measurement: AUTH, PING, DBSIZE, INFO, CONFIG.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::load::command;

pub struct Control {
    stream: BufReader<TcpStream>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    Text(String),
    Integer(i64),
    Null,
    Many(Vec<Answer>),
}

const PATIENCE: Duration = Duration::from_secs(60);

impl Control {
    pub fn connect(address: SocketAddr) -> io::Result<Control> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Control { stream: BufReader::new(stream) })
    }

    /// Runs one command; the server's error reply becomes an `io::Error` with its text.
    pub fn call(&mut self, words: &[&str]) -> io::Result<Answer> {
        self.stream.get_mut().write_all(&command(words))?;
        self.answer()
    }

    fn answer(&mut self) -> io::Result<Answer> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end();
        let unexpected = || io::Error::other(format!("unexpected answer {line:?}"));
        let rest = line.get(1..).ok_or_else(unexpected)?;
        let number = || rest.parse::<i64>().map_err(|_| unexpected());
        match line.as_bytes()[0] {
            b'+' => Ok(Answer::Text(rest.into())),
            b'-' => Err(io::Error::other(rest)),
            b':' => Ok(Answer::Integer(number()?)),
            b'*' => (0..number()?).map(|_| self.answer()).collect::<io::Result<_>>().map(Answer::Many),
            b'$' if number()? < 0 => Ok(Answer::Null),
            b'$' => {
                let mut body = vec![0; number()? as usize + 2];
                self.stream.read_exact(&mut body)?;
                body.truncate(body.len() - 2);
                Ok(Answer::Text(String::from_utf8_lossy(&body).into_owned()))
            }
            _ => Err(unexpected()),
        }
    }

    /// The bare stream, for a caller that goes on in non-blocking mode. No answer may be outstanding.
    pub fn into_stream(self) -> TcpStream {
        assert!(self.stream.buffer().is_empty());
        self.stream.into_inner()
    }
}
