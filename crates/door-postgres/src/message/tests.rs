use stdx::prng::Prng;

use super::*;

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

fn request(bytes: &[u8]) -> Result<Request<'_>> {
    match cut(bytes, 1 << 20) {
        Cut::Message(message) => read(&message),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_message_is_cut_when_it_is_whole() {
    let bytes = [message(b'Q', b"select 1\0"), message(b'S', b"")].concat();
    for length in 0..14 {
        let expected = if length < HEADER { HEADER } else { 14 };
        assert_eq!(cut(&bytes[..length], 100), Cut::More(expected), "{length}");
    }
    let Cut::Message(first) = cut(&bytes, 100) else { panic!("whole") };
    assert_eq!((first.kind, first.body, first.size), (b'Q', &b"select 1\0"[..], 14));
    assert_eq!(cut(&bytes[14..], 100), Cut::Message(Message { kind: b'S', body: b"", size: 5 }));
}

#[test]
fn lengths_are_judged_before_the_body_arrives() {
    assert_eq!(cut(b"Q\0\0\x01\0", 100), Cut::TooLong(257));
    let bad = |bytes: &[u8], text: &str| match cut(bytes, 100) {
        Cut::Bad(error) => assert_eq!((error.state, error.message.as_str()), ("08P01", text)),
        other => panic!("{other:?}"),
    };
    bad(b"Q\0\0\0\x03", "invalid message length");
    bad(b"Q\xff\xff\xff\xff", "invalid message length");
    bad(b"S\0\0\xff\0", "invalid message length");
    bad(b"G", "invalid frontend message type 71");
    bad(b"\x16\x03\x01", "invalid frontend message type 22");
}

#[test]
fn parameters_take_the_formats_that_are_given() {
    let bind =
        |formats: &[u8], parameters: &[u8]| message(b'B', &[b"p\0s\0", formats, parameters, b"\0\x01\0\x01"].concat());
    let two = b"\0\x02\0\0\0\x01x\xff\xff\xff\xff";
    let check = |formats: &[u8], expected: [i16; 2]| {
        let bytes = bind(formats, two);
        let Ok(Request::Bind(bind)) = request(&bytes) else { panic!("a Bind") };
        assert_eq!((bind.portal, bind.statement, bind.result_formats.iter().collect::<Vec<_>>()), ("p", "s", vec![1]));
        let values = bind.parameters.iter().map(|one| (one.format, one.value)).collect::<Vec<_>>();
        assert_eq!(values, [(expected[0], Some(&b"x"[..])), (expected[1], None)]);
    };
    check(b"\0\0", [0, 0]);
    check(b"\0\x01\0\x01", [1, 1]);
    check(b"\0\x02\0\x01\0\0", [1, 0]);
    let error = request(&bind(b"\0\x03\0\0\0\0\0\0", two)).unwrap_err();
    assert_eq!(error.message, "bind message has 3 parameter formats but 2 parameters");
    let error = request(&bind(b"\0\0", b"\0\x01\xff\xff\xff\xfe")).unwrap_err();
    assert_eq!(error.message, "insufficient data left in message");
}

#[test]
fn a_body_that_is_no_request_is_an_error_and_no_more() {
    for (bytes, text) in [
        (message(b'Q', b"select 1"), "invalid string in message"),
        (message(b'Q', b"select 1\0\0"), "invalid message format"),
        (message(b'D', b"Xs\0"), "invalid DESCRIBE message subtype 88"),
        (message(b'C', b""), "no data left in message"),
        (message(b'P', b"s\0select\0\0\x02\0\0\0\x17"), "insufficient data left in message"),
        (message(b'E', b"\0\0\0\0"), "insufficient data left in message"),
        (message(b'S', b"x"), "invalid message format"),
    ] {
        assert_eq!(request(&bytes).unwrap_err().message, text);
    }
    let Ok(Request::Execute { max_rows: 0, .. }) = request(&message(b'E', b"\0\xff\xff\xff\xff")) else {
        panic!("a negative limit is none")
    };
}

#[test]
fn random_and_cut_messages_never_panic() {
    let mut prng = Prng::new(1);
    let kinds = b"QPBDECHSdcfFXp";
    for _ in 0..200_000 {
        let body: Vec<u8> = (0..prng.below(40)).map(|_| prng.below(5) as u8 * 0x3f).collect();
        let kind = kinds[prng.below(kinds.len() as u64) as usize];
        let bytes = message(kind, &body);
        if let Cut::Message(message) = cut(&bytes, 64) {
            let _ = read(&message);
        }
        let length = prng.below(bytes.len() as u64 + 1) as usize;
        let _ = cut(&bytes[..length], 16);
    }
}
