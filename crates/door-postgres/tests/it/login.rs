//! Logins: SCRAM by hand, roles without a password, unknown roles, delays.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use door_postgres::Options;
use engine::{ScramVerifier, Verifier, sha256};

use crate::client::{Client, message, query};
use crate::serve;

/// HMAC-SHA-256 of a key that is not longer than a block.
fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let pad = |with: u8| {
        let mut block = [with; 64];
        block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        block
    };
    sha256(&[&pad(0x5c)[..], &sha256(&[&pad(0x36)[..], message].concat())].concat())
}

fn salted(password: &[u8], salt: &[u8], iterations: u32) -> [u8; 32] {
    let mut step = hmac(password, &[salt, &1_u32.to_be_bytes()].concat());
    let mut all = step;
    for _ in 1..iterations {
        step = hmac(password, &step);
        all.iter_mut().zip(step).for_each(|(byte, other)| *byte ^= other);
    }
    all
}

/// Logs in by SCRAM. `header` is the one of the first message, `channel` what it binds to. Returns what the server says in the end.
pub fn scram(client: &mut Client, mechanism: &str, (header, channel): (&str, &[u8]), password: &[u8]) -> String {
    let first_bare = "n=,r=rOprNGfwEbeRWgbNEkqO";
    let first = format!("{header}{first_bare}");
    let body = [mechanism.as_bytes(), b"\0", &(first.len() as u32).to_be_bytes(), first.as_bytes()].concat();
    client.send(&message(b'p', &body));
    let (kind, body) = client.receive().expect("an answer");
    assert_eq!((kind, &body[..4]), (b'R', &[0, 0, 0, 11][..]), "{}", String::from_utf8_lossy(&body));
    let server_first = String::from_utf8(body[4..].to_vec()).unwrap();
    let parts: Vec<&str> = server_first.split(',').map(|part| &part[2..]).collect();
    let salt = BASE64_STANDARD.decode(parts[1]).unwrap();
    let salted = salted(password, &salt, parts[2].parse().unwrap());
    let bound = BASE64_STANDARD.encode([header.as_bytes(), channel].concat());
    let without_proof = format!("c={bound},r={}", parts[0]);
    let signed = format!("{first_bare},{server_first},{without_proof}");
    let client_key = hmac(&salted, b"Client Key");
    let signature = hmac(&sha256(&client_key), signed.as_bytes());
    let proof: Vec<u8> = client_key.iter().zip(signature).map(|(key, sign)| key ^ sign).collect();
    let last = format!("{without_proof},p={}", BASE64_STANDARD.encode(proof));
    client.send(&message(b'p', last.as_bytes()));
    let (kind, body) = client.receive().expect("an answer");
    if kind != b'R' {
        return String::from_utf8_lossy(&body).replace('\0', " ");
    }
    let expected = BASE64_STANDARD.encode(hmac(&hmac(&salted, b"Server Key"), signed.as_bytes()));
    assert_eq!(String::from_utf8_lossy(&body[4..]), format!("v={expected}"), "the server proves itself");
    client.until(b'Z')
}

fn begin(served: &crate::Served, role: &str) -> Client {
    let mut client = served.connect();
    client.send(&crate::client::startup(crate::client::VERSION, &[("user", role), ("database", "postgres")]));
    client
}

#[test]
fn a_password_is_proved_and_never_sent() {
    let served = serve(0, Options::default());
    served.put("ann", |account| account.set_password(b"secret"));
    for (password, let_in) in [(&b"secret"[..], true), (b"Secret", false)] {
        let mut client = begin(&served, "ann");
        let (kind, body) = client.receive().unwrap();
        assert_eq!((kind, &body[..]), (b'R', &b"\0\0\0\x0aSCRAM-SHA-256\0\0"[..]));
        let answer = scram(&mut client, "SCRAM-SHA-256", ("n,,", b""), password);
        match let_in {
            true => assert!(answer.starts_with("R0 ") && answer.ends_with("Z(I)"), "{answer}"),
            false => assert!(answer.contains("28P01 Mpassword authentication failed for user \"ann\""), "{answer}"),
        }
    }
    assert_eq!((served.door.stats().logins.get(), served.door.stats().denied.get()), (1, 1));
    served.stop();
}

#[test]
fn an_unknown_role_is_asked_as_a_known_one() {
    let served = serve(0, Options::default());
    served.put("ann", |account| account.set_password(b"secret"));
    let mut salts = Vec::new();
    for role in ["bob", "bob", "eve"] {
        let mut client = begin(&served, role);
        assert_eq!(client.receive().map(|(kind, _)| kind), Some(b'R'));
        let first = b"SCRAM-SHA-256\0\0\0\0\x0en,,n=,r=aaaaaa";
        client.send(&message(b'p', first));
        let (_, body) = client.receive().expect("a salt");
        let text = String::from_utf8(body[4..].to_vec()).unwrap();
        salts.push(text.split(',').nth(1).unwrap().to_owned());
        let mut client = begin(&served, role);
        client.receive().expect("SASL");
        let answer = scram(&mut client, "SCRAM-SHA-256", ("n,,", b""), b"");
        assert!(answer.contains(&format!("password authentication failed for user \"{role}\"")), "{answer}");
    }
    assert!(salts[0] == salts[1] && salts[0] != salts[2], "{salts:?}");
    served.stop();
}

#[test]
fn postgres_is_the_default_account_until_it_has_its_own() {
    let served = serve(0, Options::default());
    drop(served.enter());
    served.put("postgres", |account| account.set_password(b"secret"));
    let mut client = begin(&served, "postgres");
    assert_eq!(client.receive().map(|(_, body)| body[3]), Some(10));
    assert!(scram(&mut client, "SCRAM-SHA-256", ("n,,", b""), b"secret").ends_with("Z(I)"));
    served.stop();
}

#[test]
fn accounts_that_may_not_log_in_are_told_why_once_they_have_proved_themselves() {
    let served = serve(0, Options::default());
    served.put("locked", |account| {
        account.set_password(b"secret");
        account.enabled = false;
    });
    served.put("expired", |account| {
        account.set_password(b"secret");
        account.expired = true;
    });
    served.put("private", |account| {
        account.set_password(b"secret");
        account.needs_tls = true;
    });
    for (role, text) in [
        ("locked", "28000 Mrole \"locked\" is not permitted to log in"),
        ("expired", "28P01 Mthe password of role \"expired\" has expired"),
        ("private", "28000 Mrole \"private\" is permitted to log in with TLS only"),
    ] {
        let mut client = begin(&served, role);
        client.receive().expect("SASL");
        let answer = scram(&mut client, "SCRAM-SHA-256", ("n,,", b""), b"secret");
        assert!(answer.contains(text), "{answer}");
        let mut client = begin(&served, role);
        client.receive().expect("SASL");
        let answer = scram(&mut client, "SCRAM-SHA-256", ("n,,", b""), b"wrong");
        assert!(answer.contains("password authentication failed"), "{answer}");
    }
    served.stop();
}

#[test]
fn a_password_without_a_verifier_is_not_asked_for_in_the_open() {
    let served = serve(0, Options::default());
    served.put("digest", |account| account.add_digest(sha256(b"secret")));
    served.put("native", |account| account.verifier = Some(Verifier::native(b"secret")));
    for role in ["digest", "native"] {
        let mut client = begin(&served, role);
        let answer = client.until(b'Z');
        assert_eq!(answer, format!("E(FATAL 28000 role \"{role}\" has no SCRAM-SHA-256 verifier) end"));
    }
    assert!(served.engine.accounts().attempts().counts() == (0, 0, 0), "nobody has tried a password");
    served.stop();
}

#[test]
fn other_messages_than_a_password_end_the_login() {
    let served = serve(0, Options::default());
    served.put("ann", |account| account.set_password(b"secret"));
    let long = message(b'p', &[b'x'; 2000]);
    for (bytes, text) in [
        (query("select 1"), "E(FATAL 08P01 expected password response, got message type 81) end"),
        (long, "E(FATAL 08P01 invalid message length) end"),
        (
            message(b'p', b"PLAIN\0\0\0\0\0"),
            "E(FATAL 08P01 client selected an invalid SASL authentication mechanism) end",
        ),
        (message(b'p', b"SCRAM-SHA-256\0\0\0\0\0"), "E(FATAL 08P01 malformed SCRAM message) end"),
        (b"p\0\0\0\x03".to_vec(), "E(FATAL 08P01 invalid message length) end"),
    ] {
        let mut client = begin(&served, "ann");
        client.receive().expect("SASL");
        assert_eq!(client.ask(&bytes), text);
    }
    served.stop();
}

/// The door has one thread: a delay that held it would block the other connections.
#[test]
fn failed_logins_delay_later_ones_and_nobody_else() {
    let served = serve(0, Options::default());
    let verifier = ScramVerifier::with_salt(b"secret", b"salt", 1);
    served.put("ann", |account| {
        account.scram = Some(Box::new(engine::Scram { verifier: verifier.clone(), digest: None }))
    });
    let fails = || {
        let mut client = begin(&served, "ann");
        client.receive().expect("SASL");
        let answer = scram(&mut client, "SCRAM-SHA-256", ("n,,", b""), b"wrong");
        assert!(answer.contains("28P01"), "{answer}");
    };
    (0..6).for_each(|_| fails());
    assert_eq!(served.engine.accounts().attempts().counts(), (6, 3, 0));
    let begun = Instant::now();
    let mut late = begin(&served, "ann");
    assert!(served.enter().ask(&query("select 1")).ends_with("Z(I)"));
    let quick = begun.elapsed();
    late.receive().expect("SASL, later");
    assert!(scram(&mut late, "SCRAM-SHA-256", ("n,,", b""), b"secret").ends_with("Z(I)"));
    assert!(begun.elapsed() >= Duration::from_millis(790) && quick < Duration::from_millis(790), "{quick:?}");
    served.stop();
}
