use stdx::prng::Prng;

use super::*;

const LIMITS: Limits = Limits { bulk_max: 512 << 20, request_max: 1 << 30, restricted: false };

/// The result of parsing a stream: its requests, and how it ended.
#[derive(Debug, PartialEq, Clone)]
struct Meaning {
    requests: Vec<Vec<Vec<u8>>>,
    broken: Option<ProtocolError>,
}

/// Feeds the input in pieces that end at the given positions. With `consume`, whole requests are consumed after each piece.
fn meaning(input: &[u8], ends: &[usize], limits: &Limits, mut consume: impl FnMut() -> bool) -> Meaning {
    let mut parser = Parser::new();
    let mut meaning = Meaning { requests: Vec::new(), broken: None };
    let mut gone = 0;
    for &end in ends {
        loop {
            match parser.next(&input[gone..end], limits) {
                Parsed::Request(request) => {
                    let bytes =
                        if request.inline { parser.line() } else { &input[gone + request.start..gone + request.end] };
                    let argument = |s: &Span| bytes[s.start as usize..(s.start + s.len) as usize].to_vec();
                    meaning.requests.push(parser.spans(&request).iter().map(argument).collect());
                }
                Parsed::Partial { needed } => {
                    assert!(
                        needed == 0 || needed + parser.start() > end - gone,
                        "a partial request needs more than there is"
                    );
                    break;
                }
                Parsed::Invalid(broken) => {
                    meaning.broken = Some(broken);
                    return meaning;
                }
            }
        }
        if consume() {
            let whole = parser.start();
            parser.consumed(whole);
            gone += whole;
        }
    }
    meaning
}

fn whole(input: &[u8]) -> Meaning {
    meaning(input, &[input.len()], &LIMITS, || false)
}

fn words(requests: &[&[&str]]) -> Meaning {
    let requests = requests.iter().map(|r| r.iter().map(|a| a.as_bytes().to_vec()).collect()).collect();
    Meaning { requests, broken: None }
}

#[test]
fn arrays_and_inline_lines() {
    let get = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
    assert_eq!(whole(get.as_bytes()), words(&[&["GET", "k"]]));
    assert_eq!(whole(get.repeat(3).as_bytes()), words(&[["GET", "k"].as_slice(); 3]));
    assert_eq!(whole(b"*1\r\n$0\r\n\r\n"), words(&[&[""]]));
    assert_eq!(whole(b"PING\r\nPING\n  GET  k \r\n"), words(&[&["PING"], &["PING"], &["GET", "k"]]));
    assert_eq!(whole(b"\r\n\n*0\r\n*-1\r\nPING\r\n"), words(&[&["PING"]]));
    assert_eq!(
        whole(b"*1\rX$4\rXPINGXXPING\r\n"),
        words(&[&["PING"], &["PING"]]),
        "the byte after a \\r is not looked at"
    );
}

#[test]
fn quoting_of_inline_lines() {
    assert_eq!(whole(br#"SET "a b" 'c d' "\x41\n\q\"" '\x41\''"#), words(&[]), "no line end yet");
    let line = b"SET \"a b\" 'c d' \"\\x41\\n\\q\\\"\" '\\x41\\''\r\n";
    assert_eq!(whole(line), words(&[&["SET", "a b", "c d", "A\nq\"", "\\x41'"]]));
    assert_eq!(whole(b"a\"b c\"\r\n"), words(&[&["ab c"]]), "a quote may start inside a word");
    assert_eq!(whole(b"PING a\x0b\x0c\r\n"), words(&[&["PING", "a\x0b\x0c"]]), "only four bytes end a word");
    assert_eq!(whole(b"\"\"\r\n"), words(&[&[""]]));
    for bad in ["\"a\r\n", "'a\r\n", "\"a\"b\r\n", "'a'b\r\n", "a 'b\\'\r\n"] {
        assert_eq!(whole(bad.as_bytes()).broken, Some(ProtocolError::UnbalancedQuotes), "{bad:?}");
    }
}

#[test]
fn protocol_errors_are_those_of_redis() {
    let cases: &[(&[u8], &str)] = &[
        (b"*1\r\n!4\r\nPING\r\n", "expected '$', got '!'"),
        (b"*1\r\n\r4\r\nPING\r\n", "expected '$', got ' '"),
        (b"*1\r\n\n4\r\nPING\r\n", "expected '$', got ' '"),
        (b"*01\r\n", "invalid multibulk length"),
        (b"*\r\n", "invalid multibulk length"),
        (b"*+1\r\n", "invalid multibulk length"),
        (b"*2147483648\r\n", "invalid multibulk length"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$01\r\n", "invalid bulk length"),
        (b"*1\r\n$\r\n", "invalid bulk length"),
        (b"*1\r\n$1a\r\n", "invalid bulk length"),
        (b"*1\r\n$536870913\r\n", "invalid bulk length"),
        (b"\"a\r\n", "unbalanced quotes in request"),
    ];
    for (input, text) in cases {
        let mut out = Vec::new();
        whole(input).broken.expect("an error").reply(&mut out);
        assert_eq!(String::from_utf8_lossy(&out), format!("-ERR Protocol error: {text}\r\n"), "{input:?}");
    }
    let mut long = vec![b'x'; 64 * 1024];
    assert_eq!(whole(&long).broken, None);
    long.push(b'x');
    assert_eq!(whole(&long).broken, Some(ProtocolError::InlineTooBig));
    long[0] = b'*';
    assert_eq!(whole(&long).broken, Some(ProtocolError::MultibulkLine));
    let bulk = [b"*1\r\n$".as_slice(), &vec![b'1'; 64 * 1024]].concat();
    assert_eq!(whole(&bulk).broken, Some(ProtocolError::BulkLine));
}

#[test]
fn a_nul_hides_the_rest_of_a_line() {
    for input in [b"PING\0\r\nPING\r\n".as_slice(), b"*1\0\r\n$4\r\nPING\r\n", b"*1\r\n\0$4\r\nPING\r\n"] {
        assert_eq!(whole(input), words(&[]));
        let mut long = input.to_vec();
        long.resize(70_000, b'\n');
        assert!(whole(&long).broken.is_some(), "it is refused once it is too long");
    }
}

#[test]
fn limits_before_authentication() {
    let restricted = Limits { restricted: true, ..LIMITS };
    let broken = |input: &[u8]| meaning(input, &[input.len()], &restricted, || false).broken;
    assert_eq!(broken(b"*10\r\n"), None);
    assert_eq!(broken(b"*11\r\n"), Some(ProtocolError::MultibulkUnauthenticated));
    assert_eq!(broken(b"*1\r\n$16384\r\n"), None);
    assert_eq!(broken(b"*1\r\n$16385\r\n"), Some(ProtocolError::BulkUnauthenticated));
}

#[test]
fn a_long_request_says_its_length_and_is_not_looked_at_again() {
    let mut parser = Parser::new();
    let mut input = b"*2\r\n$3\r\nGET\r\n$500000000\r\nxy".to_vec();
    let header = input.len() - 2;
    let needed = header + 500_000_000 + 2;
    assert_eq!(parser.next(&input, &LIMITS), Parsed::Partial { needed });
    input.extend_from_slice(b"*\r\n$");
    assert_eq!(parser.next(&input, &LIMITS), Parsed::Partial { needed });
    let small = Limits { request_max: needed - 1, ..LIMITS };
    assert_eq!(parser.next(&input, &small), Parsed::Invalid(ProtocolError::RequestTooBig));
}

#[test]
fn after_a_rewind_everything_is_cut_again() {
    let input = b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPI";
    let mut parser = Parser::new();
    let first = parser.next(input, &LIMITS);
    assert!(matches!(first, Parsed::Request(_)));
    assert!(matches!(parser.next(input, &LIMITS), Parsed::Partial { .. }));
    parser.rewind();
    assert_eq!(parser.next(input, &LIMITS), first);
}

const STREAM: &[u8] = b"*3\r\n$3\r\nSET\r\n$5\r\nkey:1\r\n$12\r\nab\r\n$3\r\n*1\r\n\r\nPING\r\n*0\r\nSET \"a\\x41\" 'b c'\r\n\r\n*2\r\n$3\r\nGET\r\n$0\r\n\r\n\
    *1\r\n$4\r\nPING\r\nGET k\n*1\r\n$10001\r\n";

#[test]
fn a_stream_means_the_same_wherever_it_is_cut() {
    let mut input = STREAM.to_vec();
    input.extend_from_slice(&[b'v'; 10_001]);
    input.extend_from_slice(b"\r\n*1\r\n?");
    let expected = whole(&input);
    assert_eq!(expected.requests.len(), 7);
    assert_eq!(expected.broken, None);
    input.extend_from_slice(b"\r\n");
    let expected = whole(&input);
    assert_eq!(expected.broken, Some(ProtocolError::ExpectedDollar(b'?')));
    for cut in 0..=input.len() {
        for consume in [false, true] {
            assert_eq!(meaning(&input, &[cut, input.len()], &LIMITS, || consume), expected, "cut at {cut}");
        }
    }
    let every_byte: Vec<usize> = (0..=input.len()).collect();
    assert_eq!(meaning(&input, &every_byte, &LIMITS, || true), expected);
    assert_eq!(meaning(&input, &every_byte, &LIMITS, || false), expected);
}

/// A small fuzzer: streams of valid and damaged requests must parse the same in random pieces as in one piece, and never panic.
#[test]
fn random_streams_mean_the_same_in_random_pieces() {
    for seed in 0..3_000 {
        let mut random = Prng::new(seed);
        let input = random_stream(&mut random);
        let expected = whole(&input);
        let mut ends: Vec<usize> =
            (0..random.below(8)).map(|_| random.below(input.len() as u64 + 1) as usize).collect();
        ends.push(input.len());
        ends.sort_unstable();
        let mut coin = Prng::new(seed);
        assert_eq!(meaning(&input, &ends, &LIMITS, || coin.chance(0.5)), expected, "seed {seed}: {input:?}");
    }
}

fn random_stream(random: &mut Prng) -> Vec<u8> {
    let mut input = Vec::new();
    for _ in 0..random.below(6) {
        let count = random.below(4);
        if random.chance(0.7) {
            input.extend_from_slice(format!("*{count}\r\n").as_bytes());
            for _ in 0..count {
                let mut argument = vec![0; random.below(12) as usize];
                random.fill(&mut argument);
                input.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
                input.extend_from_slice(&argument);
                input.extend_from_slice(b"\r\n");
            }
        } else {
            for _ in 0..count {
                input.extend_from_slice(
                    [b"a ".as_slice(), b"\"b c\" ", b"'\\'' ", b"\"\\x0a\" "][random.below(4) as usize],
                );
            }
            input.extend_from_slice(b"\r\n");
        }
    }
    for _ in 0..random.below(3) {
        if !input.is_empty() {
            let at = random.below(input.len() as u64) as usize;
            input[at] = b"*$\r\n 0123\"'\\x\0a"[random.below(15) as usize];
        }
    }
    input
}

#[test]
fn the_first_key_is_found_without_cutting() {
    assert_eq!(first_key(b"*2\r\n$3\r\nGET\r\n$5\r\nmykey\r\n"), Some(&b"mykey"[..]));
    assert_eq!(first_key(b"*3\r\n$3\r\nSET\r\n$0\r\n\r\n$1\r\nv\r\n"), Some(&b""[..]));
    assert_eq!(first_key(b"*1\r\n$4\r\nPING\r\n"), None);
    assert_eq!(first_key(b"*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\n"), None, "of the first request only");
    assert_eq!(first_key(b"GET a\r\n"), None);
    let whole = b"*2\r\n$3\r\nGET\r\n$5\r\nmykey\r\n";
    for cut in 0..whole.len() {
        let seen = first_key(&whole[..cut]);
        assert!(seen.is_none() || seen == Some(b"mykey"), "cut at {cut}: {seen:?}");
    }
    for junk in
        [&b"*99999\r\n$3\r\n"[..], b"*-1\r\n", b"*2\r\n$-1\r\n", b"*2\r\n$9999\r\nGET", b"*\r\n$3\r\n", b"*2\r\n$3\rx"]
    {
        assert_eq!(first_key(junk), None);
    }
}
