//! A client's bytes at the PostgreSQL door: its first packet, messages in a row, and the two messages of SCRAM. Everything that is read lies within the input.
#![no_main]

use door_postgres::fuzzed::{Cut, Exchange, PLAIN, PLUS, Request, cut, first as startup, read};
use engine::ScramVerifier;
use libfuzzer_sys::fuzz_target;

const BODY_MAX: usize = 1 << 12;

fn first_packet(data: &[u8], may_encrypt: bool) {
    match startup::cut(data, may_encrypt) {
        startup::FirstCut::More(count) => assert!(count > data.len() && count <= startup::PACKET_MAX + 4),
        startup::FirstCut::Packet(startup::First::Startup { version, body }, size) => {
            assert!(size <= data.len() && body.len() + 8 == size);
            if let Ok(startup) = startup::read(version, body) {
                assert!(!startup.user.is_empty() && startup.user.len() + startup.options.len() <= body.len());
            }
        }
        startup::FirstCut::Packet(_, size) => assert!(size <= data.len()),
        startup::FirstCut::Bad(_) => {}
    }
}

fn messages(mut data: &[u8]) {
    loop {
        match cut(data, BODY_MAX) {
            Cut::More(count) => return assert!(count > data.len() && count <= BODY_MAX + 5),
            Cut::Message(message) => {
                assert_eq!(message.body.len() + 5, message.size);
                if let Ok(Request::Bind(bind)) = read(&message) {
                    let bytes: usize = bind.parameters.iter().map(|one| 4 + one.value.map_or(0, <[u8]>::len)).sum();
                    assert!(bytes + 2 * bind.result_formats.len() <= message.body.len());
                }
                data = &data[message.size..];
            }
            Cut::TooLong(size) => return assert!(size > BODY_MAX),
            Cut::Bad(_) => return,
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else { return };
    match choice % 4 {
        0 => first_packet(rest, true),
        1 => first_packet(rest, false),
        2 => messages(rest),
        _ => {
            let (one, two) = rest.split_at(rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len()));
            let verifier = ScramVerifier::with_salt(b"secret", b"salt", 1);
            let (mechanism, channel) = if choice & 4 == 0 { (PLAIN, None) } else { (PLUS, Some(&b"hash"[..])) };
            if let Ok((exchange, answer)) = Exchange::begin(mechanism, one, verifier, channel) {
                assert!(answer.starts_with("r="));
                assert!(!matches!(exchange.finish(two), Ok(Some(_))), "the server's nonce cannot be guessed");
            }
        }
    }
});
