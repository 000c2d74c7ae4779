//! The first packets of a connection, which have a length and no letter: requests for encryption, a cancel request, or the startup message.

use sql_postgres::error::{PgError, Result};

use crate::errors;
use crate::wire::Reader;

/// The longest first packet, as in PostgreSQL.
pub const PACKET_MAX: usize = 10_000;
const SSL_REQUEST: u32 = 1234 << 16 | 5679;
const GSS_REQUEST: u32 = 1234 << 16 | 5680;
const CANCEL_REQUEST: u32 = 1234 << 16 | 5678;
/// Protocol 3.0.
pub const VERSION: u32 = 3 << 16;

/// The front of the input.
#[derive(Debug, PartialEq, Eq)]
pub enum FirstCut<'a> {
    /// The packet needs this many bytes in all, as far as can be seen.
    More(usize),
    /// A packet and the bytes that it occupies.
    Packet(First<'a>, usize),
    Bad(PgError),
}

#[derive(Debug, PartialEq, Eq)]
pub enum First<'a> {
    Tls,
    Gss,
    Cancel { pid: u32, key: u32 },
    Startup { version: u32, body: &'a [u8] },
}

/// Cuts the packet at the front. An encrypted connection cannot be encrypted again: `may_encrypt` is false there.
pub fn cut(input: &[u8], may_encrypt: bool) -> FirstCut<'_> {
    let Some(length) = input.first_chunk() else { return FirstCut::More(8) };
    let size = u32::from_be_bytes(*length) as usize;
    if !(8..=PACKET_MAX + 4).contains(&size) {
        return FirstCut::Bad(errors::protocol("invalid length of startup packet"));
    }
    let Some(body) = input.get(4..size) else { return FirstCut::More(size) };
    let mut reader = Reader(body);
    let version = reader.u32().expect("checked above");
    match version {
        SSL_REQUEST if may_encrypt => FirstCut::Packet(First::Tls, size),
        GSS_REQUEST if may_encrypt => FirstCut::Packet(First::Gss, size),
        CANCEL_REQUEST => match (reader.u32(), reader.u32(), reader.end()) {
            (Ok(pid), Ok(key), Ok(())) => FirstCut::Packet(First::Cancel { pid, key }, size),
            _ => FirstCut::Bad(errors::protocol("invalid length of cancel request packet")),
        },
        _ if version >> 16 != VERSION >> 16 => FirstCut::Bad(errors::unsupported(format!(
            "unsupported frontend protocol {}.{}: server supports 3.0 to 3.0",
            version >> 16,
            version & 0xffff
        ))),
        _ => FirstCut::Packet(First::Startup { version, body: reader.0 }, size),
    }
}

/// The content of a startup message.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Startup {
    pub user: String,
    pub database: String,
    /// Settings in the order in which they are applied: those of `options` come first.
    pub options: Vec<(String, String)>,
    /// Names of protocol options that the server does not know.
    pub unrecognized: Vec<String>,
    /// The client speaks a newer minor version.
    pub is_newer: bool,
}

impl Startup {
    /// Returns whether the client has to be told what the server does not know.
    pub fn needs_negotiation(&self) -> bool {
        self.is_newer || !self.unrecognized.is_empty()
    }
}

/// Reads the body of a startup message.
pub fn read(version: u32, body: &[u8]) -> Result<Startup> {
    let bad_layout = || errors::protocol("invalid startup packet layout: expected terminator as last byte");
    let mut startup = Startup { is_newer: version > VERSION, ..Startup::default() };
    let (mut named, mut database) = (Vec::new(), None);
    let mut reader = Reader(body);
    loop {
        let name = reader.text().map_err(|_| bad_layout())?;
        if name.is_empty() {
            break;
        }
        let value = reader.text().map_err(|_| bad_layout())?;
        match name {
            "user" => startup.user = value.to_owned(),
            "database" => database = Some(value.to_owned()),
            "options" => startup.options = read_switches(value)?,
            "replication" if !is_off(value) => {
                return Err(errors::unsupported("replication connections are not supported"));
            }
            "replication" => {}
            name if name.starts_with("_pq_.") => startup.unrecognized.push(name.to_owned()),
            name => named.push((name.to_owned(), value.to_owned())),
        }
    }
    if !reader.0.is_empty() {
        return Err(bad_layout());
    }
    if startup.user.is_empty() {
        return Err(PgError::new("28000", "no PostgreSQL user name specified in startup packet"));
    }
    startup.database = database.filter(|name| !name.is_empty()).unwrap_or_else(|| startup.user.clone());
    startup.options.extend(named);
    Ok(startup)
}

fn is_off(value: &str) -> bool {
    ["false", "off", "no", "0", ""].contains(&value.to_ascii_lowercase().as_str())
}

/// Reads `-c name=value` and `--name=value` of the parameter `options`.
fn read_switches(text: &str) -> Result<Vec<(String, String)>> {
    let bad = |word: &str| {
        PgError::new("42601", format!("invalid command-line argument for server process: {word}"))
            .hint("Options are -c name=value and --name=value.")
    };
    let mut settings = Vec::new();
    let mut words = split_words(text).into_iter();
    while let Some(word) = words.next() {
        let setting = match (word.strip_prefix("--"), word.strip_prefix("-c")) {
            (Some(setting), _) => setting.to_owned(),
            (None, Some("")) => words.next().ok_or_else(|| bad(&word))?,
            (None, Some(setting)) => setting.to_owned(),
            (None, None) => return Err(bad(&word)),
        };
        let Some((name, value)) = setting.split_once('=') else {
            return Err(PgError::new("42601", format!("-c {setting} requires a value")));
        };
        // A hyphen in a name is an underscore, as in PostgreSQL.
        settings.push((name.replace('-', "_"), value.to_owned()));
    }
    Ok(settings)
}

/// Splits at white space; a backslash takes the next character as it is.
fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut letters = text.chars();
    let mut word: Option<String> = None;
    while let Some(letter) = letters.next() {
        match letter {
            letter if letter.is_ascii_whitespace() || letter == '\x0b' => words.extend(word.take()),
            '\\' => word.get_or_insert_default().extend(letters.next()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use stdx::prng::Prng;

    use super::*;

    fn packet(code: u32, body: &[u8]) -> Vec<u8> {
        [&(body.len() as u32 + 8).to_be_bytes()[..], &code.to_be_bytes(), body].concat()
    }

    #[test]
    fn the_four_first_packets_are_told_apart() {
        let first = |bytes: &[u8]| match cut(bytes, true) {
            FirstCut::Packet(first, size) if size == bytes.len() => format!("{first:?}"),
            other => format!("{other:?}"),
        };
        assert_eq!(first(&packet(SSL_REQUEST, b"")), "Tls");
        assert_eq!(first(&packet(GSS_REQUEST, b"")), "Gss");
        assert_eq!(first(&packet(CANCEL_REQUEST, b"\0\0\0\x07\0\0\x01\0")), "Cancel { pid: 7, key: 256 }");
        assert!(first(&packet(VERSION, b"user\0a\0\0")).starts_with("Startup"));
        let bad = |bytes: &[u8], may_encrypt| match cut(bytes, may_encrypt) {
            FirstCut::Bad(error) => error.message,
            other => panic!("{other:?}"),
        };
        let message = "unsupported frontend protocol 2.0: server supports 3.0 to 3.0";
        assert_eq!(bad(&packet(2 << 16, b""), true), message);
        let message = "unsupported frontend protocol 1234.5679: server supports 3.0 to 3.0";
        assert_eq!(bad(&packet(SSL_REQUEST, b""), false), message);
        assert_eq!(bad(b"GET / HTTP/1.1", true), "invalid length of startup packet");
        assert_eq!(bad(b"\0\0\0\x04", true), "invalid length of startup packet");
        assert_eq!(bad(&packet(CANCEL_REQUEST, b"\0\0\0\x07"), true), "invalid length of cancel request packet");
    }

    #[test]
    fn a_startup_message_has_a_user_a_database_and_settings() {
        let body =
            b"user\0ann\0application_name\0psql\0options\0-c a.b=x\\ y --search-path=s,t -cz=1\0_pq_.new\0\x31\0\0";
        let startup = read(VERSION + 2, body).unwrap();
        assert_eq!((startup.user.as_str(), startup.database.as_str()), ("ann", "ann"));
        let pairs = startup.options.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect::<Vec<_>>();
        assert_eq!(pairs, [("a.b", "x y"), ("search_path", "s,t"), ("z", "1"), ("application_name", "psql")]);
        assert!(startup.needs_negotiation() && startup.unrecognized == ["_pq_.new"]);
        assert_eq!(read(VERSION, b"user\0ann\0database\0shop\0\0").unwrap().database, "shop");
        for (body, message) in [
            (&b"\0"[..], "no PostgreSQL user name specified in startup packet"),
            (b"user\0ann\0", "invalid startup packet layout: expected terminator as last byte"),
            (b"user\0ann\0\0x", "invalid startup packet layout: expected terminator as last byte"),
            (b"user\0ann\0replication\0true\0\0", "replication connections are not supported"),
            (b"user\0ann\0options\0-d 5\0\0", "invalid command-line argument for server process: -d"),
            (b"user\0ann\0options\0-c\0\0", "invalid command-line argument for server process: -c"),
            (b"user\0ann\0options\0-c a\0\0", "-c a requires a value"),
        ] {
            assert_eq!(read(VERSION, body).unwrap_err().message, message);
        }
    }

    #[test]
    fn random_and_cut_packets_never_panic() {
        let mut prng = Prng::new(2);
        let words: [&[u8]; 8] = [b"user", b"\0", b"options", b"-c a=b", b"\\", b"_pq_.", b"\xff", b"database\0x\0"];
        for _ in 0..100_000 {
            let body: Vec<u8> =
                (0..prng.below(9)).flat_map(|_| words[prng.below(words.len() as u64) as usize]).copied().collect();
            let _ = read(VERSION, &body);
            let codes = [SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST, VERSION, 7];
            let bytes = packet(codes[prng.below(5) as usize], &body);
            let _ = cut(&bytes[..prng.below(bytes.len() as u64 + 1) as usize], prng.below(2) == 0);
        }
    }
}
