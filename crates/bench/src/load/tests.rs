//! The whole generator against a tiny server of this test: every shape must send exactly its requests.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Mutex;

use super::*;

/// Keeps keys as a real server does, and counts requests; `delay` comes before every 100th reply.
struct Stand {
    address: SocketAddr,
    store: Arc<Mutex<HashMap<Vec<u8>, usize>>>,
}

fn stand(delay: Duration) -> Stand {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let store: Arc<Mutex<HashMap<Vec<u8>, usize>>> = Arc::default();
    let shared = store.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, shared) = (stream.unwrap(), shared.clone());
            std::thread::spawn(move || serve(BufReader::new(stream), shared, delay));
        }
    });
    Stand { address, store }
}

fn serve(mut input: BufReader<TcpStream>, store: Arc<Mutex<HashMap<Vec<u8>, usize>>>, delay: Duration) {
    let number = |input: &mut BufReader<TcpStream>| {
        let mut line = String::new();
        input.read_line(&mut line).ok()?;
        line.trim_end().get(1..)?.parse::<usize>().ok()
    };
    let mut served = 0;
    while let Some(words) = number(&mut input) {
        let mut command = Vec::new();
        for _ in 0..words {
            let mut word = vec![0; number(&mut input).unwrap() + 2];
            input.read_exact(&mut word).unwrap();
            word.truncate(word.len() - 2);
            command.push(word);
        }
        served += 1;
        if served % 100 == 0 {
            std::thread::sleep(delay);
        }
        let reply = match &command[0][..] {
            b"PING" => "+PONG\r\n".to_string(),
            b"AUTH" if command[1] == b"secret" => "+OK\r\n".into(),
            b"SET" if command[1] == b"k13" => "-ERR unlucky\r\n".into(),
            b"SET" => {
                store.lock().unwrap().insert(command[1].clone(), command[2].len());
                "+OK\r\n".into()
            }
            b"GET" => match store.lock().unwrap().get(&command[1]) {
                Some(bytes) => format!("${bytes}\r\n{}\r\n", "v".repeat(*bytes)),
                None => "$-1\r\n".into(),
            },
            _ => "-ERR unknown command\r\n".into(),
        };
        if input.get_mut().write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

fn shape(stand: &Stand) -> Shape {
    Shape {
        connections: 5,
        threads: 2,
        pipeline: 4,
        value_bytes: 33,
        keys: Range { min: 1, max: 103 },
        until: Until::Requests(60),
        ..Shape::new(stand.address)
    }
}

#[test]
fn a_preload_writes_every_key_once_and_gets_then_hit() {
    let stand = stand(Duration::ZERO);
    let shape = Shape { auth: Some("secret".into()), ..shape(&stand) };
    let report = run(&shape.preload(), || {}).unwrap();
    assert_eq!((report.operations(), report.error_count()), (103, 0), "{}", report.text());
    assert_eq!(stand.store.lock().unwrap().len(), 103);
    let report = run(&Shape { traffic: Traffic::mix(0, 1), ..shape }, || {}).unwrap();
    assert_eq!((report.hits, report.misses, report.error_count()), (300, 0, 0));
}

#[test]
fn the_ratio_is_kept_and_requests_are_counted_per_connection() {
    let stand = stand(Duration::ZERO);
    let report = run(&Shape { traffic: Traffic::mix(1, 3), ..shape(&stand) }, || {}).unwrap();
    assert_eq!(report.latency(Kind::Set).len(), 75);
    assert_eq!(report.latency(Kind::Get).len(), 225);
    assert_eq!(report.hits + report.misses, 225);
    assert!(report.bytes_sent > 300 * 20 && report.bytes_received > 0);
}

#[test]
fn one_by_one_each_reply_has_a_receive_and_a_send_of_its_own() {
    let stand = stand(Duration::ZERO);
    assert_eq!(run(&shape(&stand).preload(), || {}).unwrap().error_count(), 0);
    let mixed = Shape { one_by_one: true, traffic: Traffic::mix(1, 3), ..shape(&stand) };
    for (pipeline, traffic) in [(1, mixed.traffic), (4, mixed.traffic), (1, Traffic::Ping)] {
        let report = run(&Shape { pipeline, traffic, ..mixed.clone() }, || {}).unwrap();
        assert_eq!((report.operations(), report.misses, report.error_count()), (300, 0, 0), "{}", report.text());
        // The first requests of a pipeline leave together.
        assert_eq!(report.sends, 300 - 5 * (pipeline as u64 - 1));
        assert!((300..310).contains(&report.receives), "{} receives", report.receives);
    }
    let report = run(&Shape { one_by_one: false, ..mixed }, || {}).unwrap();
    assert!(report.sends <= 300 && report.receives <= 300, "{}", report.text());
}

#[test]
fn one_by_one_large_values_are_sent_in_pieces_and_a_time_ends() {
    let stand = stand(Duration::ZERO);
    let until = Until::Time(Duration::from_millis(200));
    let large = Shape { one_by_one: true, value_bytes: 3 << 20, traffic: Traffic::mix(1, 1), until, ..shape(&stand) };
    let report = run(&Shape { keys: Range { min: 1, max: 2 }, ..large }, || {}).unwrap();
    assert!(report.operations() > 0 && report.error_count() == 0, "{}", report.text());
}

#[test]
fn error_replies_and_wrong_values_are_counted_with_their_text() {
    let stand = stand(Duration::ZERO);
    let shape = Shape { prefix: "k".into(), ..shape(&stand) };
    let report = run(&shape.preload(), || {}).unwrap();
    assert_eq!(report.errors.get("ERR unlucky"), Some(&1));
    let other = Shape { traffic: Traffic::mix(0, 1), value_bytes: 34, ..shape };
    let report = run(&other, || {}).unwrap();
    assert_eq!(report.hits, 0);
    assert!(report.errors.keys().all(|text| text.starts_with("wrong reply to GET")), "{}", report.text());
    assert_eq!(report.operations() + report.error_count(), 300);
}

#[test]
fn ping_for_a_time_stops_in_time() {
    let stand = stand(Duration::ZERO);
    let until = Until::Time(Duration::from_millis(200));
    let report = run(&Shape { traffic: Traffic::Ping, until, ..shape(&stand) }, || {}).unwrap();
    assert!(report.latency(Kind::Ping).len() > 100, "{}", report.text());
    assert_eq!(report.error_count(), 0);
    assert!((150..2_000).contains(&(report.elapsed.as_millis() as u64)), "{:?}", report.elapsed);
}

#[test]
fn the_open_loop_counts_the_time_a_request_had_to_wait_for_its_turn() {
    // One connection, 1,000 requests a second, and a pause of 50 ms before every 100th reply. A closed loop sees
    // one slow request in a hundred; in truth half of all were late, since 50 more fell due in each pause.
    let stand = stand(Duration::from_millis(50));
    let alone = Shape { connections: 1, threads: 1, pipeline: 1, traffic: Traffic::Ping, ..shape(&stand) };
    let closed = run(&Shape { until: Until::Requests(400), ..alone.clone() }, || {}).unwrap();
    assert!(closed.latency(Kind::Ping).value_at_quantile(0.90) < 10_000_000, "{}", closed.text());
    let open =
        run(&Shape { rate: Some(1_000), until: Until::Time(Duration::from_millis(900)), ..alone }, || {}).unwrap();
    assert!(open.latency(Kind::Ping).value_at_quantile(0.80) > 10_000_000, "{}", open.text());
    assert!((700..=900).contains(&open.operations()), "{}", open.text());
}

#[test]
fn a_server_that_goes_away_is_an_error_not_a_hang() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    for one_by_one in [false, true] {
        let alone = Shape { connections: 1, threads: 1, one_by_one, ..Shape::new(address) };
        let report = run(&alone, || {}).unwrap();
        assert_eq!(report.operations(), 0);
        assert_eq!(report.errors.get("no reply"), Some(&1), "{}", report.text());
    }
}
