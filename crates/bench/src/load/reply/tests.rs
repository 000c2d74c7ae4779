use super::*;

const STREAM: &[u8] = b"+OK\r\n$5\r\nhe\nlo\r\n$-1\r\n:42\r\n-ERR no such thing\r\n$0\r\n\r\n+PONG\r\n\
    *0\r\n*-1\r\n*3\r\n*2\r\n$1\r\na\r\n*0\r\n:1\r\n$-1\r\n:7\r\n";

fn names(pieces: &[&[u8]]) -> Result<Vec<String>, Malformed> {
    let (mut parser, mut out) = (Parser::default(), Vec::new());
    for piece in pieces {
        parser.feed(piece, |reply| {
            out.push(match reply {
                Reply::Status(text) => format!("+{}", String::from_utf8_lossy(text)),
                Reply::Error(text) => format!("-{}", String::from_utf8_lossy(text)),
                Reply::Integer => ":".into(),
                Reply::Null => "null".into(),
                Reply::Value { bytes } => format!("${bytes}"),
                Reply::Array => "*".into(),
            });
        })?;
    }
    Ok(out)
}

#[test]
fn every_way_to_cut_the_stream_gives_the_same_replies() {
    let expected = ["+OK", "$5", "null", ":", "-ERR no such thing", "$0", "+PONG", "*", "*", "*", ":"];
    assert_eq!(names(&[STREAM]).unwrap(), expected);
    for first in 0..=STREAM.len() {
        for second in first..=STREAM.len() {
            let pieces = [&STREAM[..first], &STREAM[first..second], &STREAM[second..]];
            assert_eq!(names(&pieces).unwrap(), expected, "cut at {first} and {second}");
        }
    }
}

#[test]
fn what_is_not_resp2_is_refused() {
    for bad in [&b"hello\r\n"[..], b"+OK\n", b"\r\n", b"$x\r\n", b"$-2\r\n", b"$3\r\nabcdef", b"*x\r\n", b"*-2\r\n"] {
        assert!(names(&[bad]).is_err(), "{:?}", String::from_utf8_lossy(bad));
    }
    let endless = vec![b'a'; LINE_BYTES_MAX + 1];
    assert!(names(&[&endless]).is_err());
}
