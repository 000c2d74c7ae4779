//! Values as redis-server 7.0.15 dumps them (`scripts/rdb_corpus.py`): read, and written again to the same bytes.

use std::fmt::Write;

use rdb::{Event, Intset, Listpack, Source, StreamEntries, StreamEvent, StreamId, types};

const CORPUS: &str = include_str!("corpus.txt");

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("hexadecimal")).collect()
}

fn hex(bytes: &[u8]) -> String {
    match bytes {
        [] => "-".into(),
        _ => bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")),
    }
}

fn id(id: StreamId) -> String {
    format!("{}-{}", id.ms, id.seq)
}

fn part(event: &Event<'_>) -> String {
    match event {
        Event::String(bytes) => format!("string {}", hex(bytes)),
        Event::Item(bytes) => format!("item {}", hex(bytes)),
        Event::Member(bytes) => format!("member {}", hex(bytes)),
        Event::Scored(bytes, score) => format!("scored {} {:016x}", hex(bytes), score.to_bits()),
        Event::Field(field, value, None) => format!("field {} {}", hex(field), hex(value)),
        Event::Field(field, value, Some(time)) => format!("field {} {} {time}", hex(field), hex(value)),
        Event::Stream(event) => stream_part(event),
    }
}

fn stream_part(event: &StreamEvent<'_>) -> String {
    match event {
        StreamEvent::Entry(at, items) => {
            items.iter().fold(format!("entry {}", id(*at)), |text, item| text + " " + &hex(item))
        }
        StreamEvent::State(state) => {
            format!("state {} {} {} {}", state.len, id(state.last_id), id(state.max_deleted_id), state.entries_added)
        }
        StreamEvent::Group { name, last_id, entries_read } => {
            let read = entries_read.map_or("?".into(), |read| read.to_string());
            format!("group {} {} {read}", hex(name), id(*last_id))
        }
        StreamEvent::Pending { id: at, time_ms, deliveries } => format!("pending {} {time_ms} {deliveries}", id(*at)),
        StreamEvent::Consumer { name, seen_time_ms, .. } => format!("consumer {} {seen_time_ms}", hex(name)),
        StreamEvent::ConsumerPending(at) => format!("owns {}", id(*at)),
    }
}

/// Reads a payload's value; returns its parts as lines of the corpus have them.
fn parts_of(payload: &[u8]) -> Result<Vec<String>, rdb::Error> {
    let (number, value) = rdb::check_payload(payload).expect("version and checksum");
    let mut source = Source::of_bytes(value);
    let mut parts = Vec::new();
    rdb::read_value(&mut source, number, &mut |event| {
        parts.push(part(&event));
        Ok::<(), rdb::Error>(())
    })?;
    assert!(source.is_at_end(), "bytes are left");
    Ok(parts)
}

fn lines() -> impl Iterator<Item = (&'static str, Vec<u8>, Vec<&'static str>)> {
    CORPUS.lines().map(|line| {
        let mut columns = line.split('\t');
        let mut column = || columns.next().expect("three columns");
        (column(), bytes_of(column()), column().split("; ").collect())
    })
}

#[test]
fn values_that_redis_dumps_are_read() {
    let mut count = 0;
    for (kind, payload, expected) in lines() {
        let mut parts = parts_of(&payload).unwrap_or_else(|error| panic!("{kind}: {error}"));
        if matches!(kind, "set" | "hash" | "zset") {
            parts.sort();
        }
        assert_eq!(parts, expected, "{kind} {}", hex(&payload));
        count += 1;
    }
    assert!(count >= 100, "{count}");
}

#[test]
fn values_are_written_as_redis_dumps_them() {
    let mut types_seen = std::collections::BTreeSet::new();
    for (kind, payload, _) in lines().filter(|(kind, ..)| *kind != "stream") {
        let (number, value) = rdb::check_payload(&payload).expect("version and checksum");
        // How a list is cut into nodes depends on how it was made.
        if number == types::LIST_QUICKLIST_2 && value[0] != 1 {
            continue;
        }
        types_seen.insert(number);
        let mut again = vec![number];
        write_again(number, value, &mut again);
        rdb::end_payload(&mut again, rdb::VERSION_WRITTEN);
        assert_eq!(hex(&again), hex(&payload), "{kind}");
    }
    let expected = [
        types::STRING,
        types::SET,
        types::HASH,
        types::ZSET_2,
        types::SET_INTSET,
        types::HASH_LISTPACK,
        types::ZSET_LISTPACK,
        types::LIST_QUICKLIST_2,
    ];
    assert!(types_seen.into_iter().eq(expected), "the corpus lacks a type");
}

/// Returns "%.17g" of a score.
fn score_text(score: f64) -> String {
    if score.is_infinite() || score == score.trunc() && score.abs() < 1e17 {
        return format!("{score}");
    }
    let scientific = format!("{score:.16e}");
    let (digits, exponent) = scientific.split_once('e').expect("an exponent");
    let exponent: i32 = exponent.parse().expect("a number");
    if (-4..17).contains(&exponent) {
        return format!("{score:.*}", (16 - exponent) as usize).trim_end_matches('0').into();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", digits.trim_end_matches('0').trim_end_matches('.'), exponent.abs())
}

/// Reads a value and writes it in the form that it has.
fn write_again(number: u8, value: &[u8], out: &mut Vec<u8>) {
    let (mut plain, mut pack, mut integers, mut count) = (Vec::new(), Listpack::default(), Vec::new(), 0);
    rdb::read_value(&mut Source::of_bytes(value), number, &mut |event| {
        count += 1;
        match event {
            Event::String(bytes) => rdb::write_string(&mut plain, bytes),
            Event::Member(bytes) => {
                rdb::write_string(&mut plain, bytes);
                integers.extend(std::str::from_utf8(bytes).ok().and_then(|text| text.parse::<i64>().ok()));
            }
            Event::Scored(member, score) => {
                rdb::write_string(&mut plain, member);
                rdb::write_score(&mut plain, score);
                pack.push(member);
                pack.push_score(score, score_text(score).as_bytes());
            }
            Event::Field(field, value, _) => {
                [field, value].iter().for_each(|bytes| rdb::write_string(&mut plain, bytes));
                [field, value].iter().for_each(|bytes| pack.push(bytes));
            }
            Event::Item(bytes) => pack.push(bytes),
            Event::Stream(_) => unreachable!("streams have a test of their own"),
        }
        Ok::<(), rdb::Error>(())
    })
    .expect("a value");
    match number {
        types::STRING => out.extend(plain),
        types::SET | types::HASH | types::ZSET_2 => {
            rdb::write_length(out, count);
            out.extend(plain);
        }
        types::SET_INTSET => rdb::write_string(out, &Intset::of(&integers)),
        types::LIST_QUICKLIST_2 => {
            rdb::write_length(out, 1);
            rdb::write_length(out, 2);
            rdb::write_string(out, &pack.end());
        }
        _ => rdb::write_string(out, &pack.end()),
    }
}

#[test]
fn entries_of_streams_are_read_as_written() {
    let read = |value: &[u8]| {
        let mut entries = Vec::new();
        rdb::read_value(&mut Source::of_bytes(value), types::STREAM_LISTPACKS_2, &mut |event| {
            if let Event::Stream(StreamEvent::Entry(id, items)) = event {
                entries.push((id, items.iter().map(|item| item.to_vec()).collect::<Vec<_>>()));
            }
            Ok::<(), rdb::Error>(())
        })
        .map(|_| entries)
    };
    let mut entries_seen = 0;
    for (_, payload, _) in lines().filter(|(kind, ..)| *kind == "stream") {
        let (_, value) = rdb::check_payload(&payload).expect("version and checksum");
        let mut entries = read(value).expect("a stream");
        // More than a listpack takes, of their own and of long values.
        let last = entries.last().map_or(StreamId { ms: 5, seq: 7 }, |(id, _)| *id);
        for more in 1..150 {
            let value = vec![b'v'; more as usize];
            entries.push((StreamId { ms: last.ms + more, seq: 1 }, vec![b"f".to_vec(), value]));
        }
        let mut written = StreamEntries::default();
        for (id, items) in &entries {
            written.push(*id, &items.iter().map(Vec::as_slice).collect::<Vec<_>>());
        }
        let mut again = Vec::new();
        written.end(&mut again);
        rdb::write_length(&mut again, entries.len() as u64);
        for id in [entries[entries.len() - 1].0, entries[0].0, StreamId::default()] {
            rdb::write_id(&mut again, id);
        }
        rdb::write_length(&mut again, entries.len() as u64);
        rdb::write_length(&mut again, 0);
        assert_eq!(read(&again).expect("a stream"), entries);
        entries_seen += entries.len();
    }
    assert!(entries_seen > 1000, "{entries_seen}");
}

#[test]
fn damaged_values_are_refused_or_read_to_something_else() {
    let mut refused = 0;
    for (kind, payload, _) in lines() {
        let (number, value) = rdb::check_payload(&payload).expect("version and checksum");
        for at in (0..value.len()).step_by(1 + value.len() / 200) {
            for flip in [1u8, 0x80, 0xff] {
                let mut damaged = value.to_vec();
                damaged[at] ^= flip;
                let mut sum = String::new();
                let result = rdb::read_value(&mut Source::of_bytes(&damaged), number, &mut |event| {
                    sum.clear();
                    write!(sum, "{event:?}").expect("a string takes it");
                    Ok::<(), rdb::Error>(())
                });
                refused += usize::from(result.is_err());
            }
            let cut = rdb::read_value(&mut Source::of_bytes(&value[..at]), number, &mut |_| Ok::<(), rdb::Error>(()));
            assert!(cut.is_err(), "{kind} cut at {at}");
        }
    }
    assert!(refused > 1000, "{refused}");
}
