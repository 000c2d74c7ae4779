use super::*;

const MESSAGE: &[u8] = b"n,,n=,r=abc";

fn verifier() -> ScramVerifier {
    ScramVerifier::with_salt(b"secret", b"0123456789abcdef", 2)
}

fn begin(mechanism: &str, message: &[u8], channel: Option<&[u8]>) -> Result<(Exchange, String)> {
    Exchange::begin(mechanism, message, verifier(), channel)
}

fn message(error: PgError) -> String {
    format!("{}: {} {}", error.state, error.message, error.detail.unwrap_or_default())
}

#[test]
fn the_nonce_is_the_clients_and_the_servers() {
    let (exchange, first) = begin(PLAIN, MESSAGE, None).unwrap();
    assert!(first.starts_with("r=abc") && first.ends_with(",s=MDEyMzQ1Njc4OWFiY2RlZg==,i=2"), "{first}");
    assert_ne!(begin(PLAIN, MESSAGE, None).unwrap().1, first);
    let last = |nonce: &str| format!("c=biws,r={nonce},p={}", BASE64_STANDARD.encode([0; 32]));
    assert_eq!(exchange.finish(last(&exchange.nonce).as_bytes()).unwrap(), None, "a wrong proof is no error");
    let error = exchange.finish(last("abc").as_bytes()).unwrap_err();
    assert_eq!(message(error), "08P01: invalid SCRAM response Nonce does not match.");
    for bad in ["", "c=biws", "c=eSws,r=abc,p=", "x=biws", "c=biws,r="] {
        assert_eq!(exchange.finish(bad.as_bytes()).unwrap_err().state, "08P01", "{bad}");
    }
    let short = format!("c=biws,r={},p=AAAA", exchange.nonce);
    assert!(message(exchange.finish(short.as_bytes()).unwrap_err()).contains("Malformed proof"));
}

#[test]
fn a_downgrade_of_the_channel_binding_is_found() {
    let channel = Some(&b"hash"[..]);
    assert!(begin(PLAIN, b"y,,n=,r=abc", None).is_ok());
    let error = message(begin(PLAIN, b"y,,n=,r=abc", channel).unwrap_err());
    assert!(error.starts_with("28000: SCRAM channel binding negotiation error"), "{error}");
    assert!(begin(PLAIN, MESSAGE, channel).is_ok());
    assert!(begin(PLUS, MESSAGE, channel).is_err());
    assert!(begin(PLAIN, b"p=tls-server-end-point,,n=,r=abc", channel).is_err());
    let error = message(begin(PLUS, b"p=tls-unique,,n=,r=abc", channel).unwrap_err());
    assert_eq!(error, "08P01: unsupported SCRAM channel-binding type \"tls-unique\" ");
    let (exchange, _) = begin(PLUS, b"p=tls-server-end-point,,n=,r=abc", channel).unwrap();
    assert_eq!(exchange.binding, b"p=tls-server-end-point,,hash");
    let other = BASE64_STANDARD.encode(b"p=tls-server-end-point,,hush");
    let last = format!("c={other},r={},p=", exchange.nonce);
    assert_eq!(message(exchange.finish(last.as_bytes()).unwrap_err()), "28000: SCRAM channel binding check failed ");
}

#[test]
fn other_first_messages_are_errors() {
    for (bytes, text) in [
        (&b""[..], "The message is empty."),
        (b"n", "Unexpected end of message."),
        (b"n,", "Unexpected end of message."),
        (b"x,,n=,r=a", "Unexpected channel-binding flag \"x\"."),
        (b"n,a=b,n=,r=a", "client uses authorization identity, but it is not supported"),
        (b"n,,m=x,n=,r=a", "client requires an unsupported SCRAM extension"),
        (b"n,,r=a", "Expected attribute \"n\"."),
        (b"n,,n=a", "Expected attribute \"r\"."),
        (b"n,,n=,r=", "non-printable characters in SCRAM nonce"),
        (b"n,,n=,r=\xc3\xa4", "non-printable characters in SCRAM nonce"),
        (b"n,,n=,r=a\0", "Message length does not match input length."),
    ] {
        let error = message(begin(PLAIN, bytes, None).unwrap_err());
        assert!(error.contains(text), "{error}");
    }
}
