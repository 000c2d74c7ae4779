//! The handshake of a replica, up to the answer to PSYNC.

use crate::replica::link::{Break, Link};
use crate::replica::note::{ID_MAX, StreamPosition};

/// The answer to PSYNC.
pub enum SyncAnswer {
    /// A file follows, and then the commands of this history behind this offset.
    Full { id: String, offset: u64 },
    /// The commands behind those that were applied follow. The history may have a new id.
    Continue { id: Option<String> },
}

/// Introduces this server to the other one, and asks it for the commands behind those that were applied.
pub fn shake_hands(link: &mut Link<'_>, progress: Option<&StreamPosition>) -> Result<SyncAnswer, Break> {
    let (user, password) = (link.shared.setting("masteruser"), link.shared.setting("masterauth"));
    let pong = ask(link, &[b"PING"])?;
    let is_only_login =
        ["-NOAUTH", "-NOPERM", "-ERR operation not permitted"].iter().any(|text| pong.starts_with(text));
    if !pong.starts_with("+PONG") && !is_only_login {
        return Err(Break::Lost(format!("the answer to PING is '{pong}'")));
    }
    if !password.is_empty() {
        let mut login: Vec<&[u8]> = vec![b"AUTH"];
        login.extend([user.as_bytes()].into_iter().filter(|user| !user.is_empty()));
        login.push(password.as_bytes());
        let answer = ask(link, &login)?;
        if let Some(text) = answer.strip_prefix('-') {
            return Err(Break::Lost(format!("the login failed: {text}")));
        }
    }
    // Old servers know neither of the two, and need not.
    let port = link.shared.port.to_string();
    ask(link, &[b"REPLCONF", b"listening-port", port.as_bytes()])?;
    ask(link, &[b"REPLCONF", b"capa", b"eof", b"capa", b"psync2", b"capa", b"field-times"])?;
    let (id, next) = match progress {
        Some(progress) => (progress.id.as_str(), (progress.offset + 1).to_string()),
        None => ("?", "-1".to_owned()),
    };
    let answer = ask(link, &[b"PSYNC", id.as_bytes(), next.as_bytes()])?;
    read_answer(&answer, progress)
}

fn ask(link: &mut Link<'_>, args: &[&[u8]]) -> Result<String, Break> {
    link.request(args)?;
    link.answer()
}

fn read_answer(answer: &str, progress: Option<&StreamPosition>) -> Result<SyncAnswer, Break> {
    let words: Vec<&str> = answer.split(' ').collect();
    let valid = |id: &str| {
        let is_valid = !id.is_empty() && id.len() <= ID_MAX && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_valid.then(|| id.to_owned())
    };
    let bad = || Break::Lost(format!("the answer to PSYNC is '{}'", answer.escape_debug()));
    match words.as_slice() {
        ["+FULLRESYNC", id, offset] => {
            let id = valid(id).ok_or_else(bad)?;
            // The offset grows with each byte, and Redis counts in signed numbers.
            let offset = offset.parse::<u64>().ok().filter(|offset| *offset < i64::MAX as u64).ok_or_else(bad)?;
            Ok(SyncAnswer::Full { id, offset })
        }
        ["+CONTINUE"] if progress.is_some() => Ok(SyncAnswer::Continue { id: None }),
        ["+CONTINUE", id] if progress.is_some() => Ok(SyncAnswer::Continue { id: Some(valid(id).ok_or_else(bad)?) }),
        _ if answer.starts_with("-ERR unknown command") => {
            Err(Break::Lost(format!("that server has no PSYNC, so it cannot be followed ('{}')", &answer[1..])))
        }
        _ => Err(bad()),
    }
}
