//! The time of a start after a crash amid a long transaction, and of its parts. Runs tiny under `cargo test`, with 5.5 million changes under
//! `cargo bench -p engine --bench recovery`.
//!
//! `make FOLDER ROWS MEMORY` makes a data folder as the crash leaves it, `open FOLDER MEMORY` opens one, and without either it does both in processes of
//! their own in a temporary folder. MEMORY is the buffer pool in MiB; the other memories follow as the server divides them. So two builds can be compared
//! with copies of one folder.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::rows::{Isolation, MapId, Rows};
use engine::{Engine, Options, Recovering};
use os::{RealClock, RealFolder};

/// Rows changed by one transaction of the load.
const LOAD: u32 = 50_000;

fn options(pool_mib: u64) -> Options {
    let pager = pager::Options { frame_bytes: pool_mib << 20, ..pager::Options::default() };
    Options { pager, random: 1, versions_max: 2 << 20, ..Options::default() }
}

/// The row `number`: its key, its value, and the key of its entry in the second index.
fn row(number: u32) -> ([u8; 4], Vec<u8>, Vec<u8>) {
    let note = format!("row {number} {}", "x".repeat(number as usize % 40));
    let key = (number * 2).to_be_bytes();
    let entry = [note.as_bytes(), &key].concat();
    (key, [&(number % 1000).to_be_bytes(), note.as_bytes()].concat(), entry)
}

fn entry(k: u32, key: [u8; 4]) -> [u8; 8] {
    let mut entry = [0; 8];
    entry[..4].copy_from_slice(&k.to_be_bytes());
    entry[4..].copy_from_slice(&key);
    entry
}

/// Loads a table with two indexes, changes every row in one transaction, and ends the process before that commits.
fn make(folder: &Path, count: u32, pool_mib: u64) -> ! {
    let folder = RealFolder::open(folder, true).expect("a new folder");
    let engine = Engine::open(options(pool_mib), folder, Arc::new(RealClock::new())).expect("opens");
    let rows: &Arc<Rows> = engine.rows();
    let mut old = Vec::new();
    let mut txn = rows.begin(Isolation::RepeatableRead);
    let maps: [MapId; 3] = std::array::from_fn(|_| txn.create_map().expect("a map"));
    txn.commit().expect("commits");
    let [table, by_k, by_note] = maps;
    for from in (0..count).step_by(LOAD as usize) {
        let mut txn = rows.begin(Isolation::RepeatableRead);
        for number in from..(from + LOAD).min(count) {
            let (key, value, note) = row(number);
            txn.insert(table, &key, &value, &mut old).expect("inserts");
            txn.insert(by_k, &entry(number % 1000, key), &[], &mut old).expect("inserts");
            txn.insert(by_note, &note, &[], &mut old).expect("inserts");
        }
        txn.commit().expect("commits");
    }
    let mut loser = rows.begin(Isolation::RepeatableRead);
    let mut changes = 0;
    for number in 0..count {
        let (key, mut value, _) = row(number);
        let k = number % 1000;
        value[..4].copy_from_slice(&(k + 1000).to_be_bytes());
        loser.update(table, &key, &value).expect("updates");
        loser.delete(by_k, &entry(k, key)).expect("deletes");
        loser.insert(by_k, &entry(k + 1000, key), &[], &mut old).expect("inserts");
        changes += 3;
    }
    for number in (0..count).step_by(20) {
        let (key, _, note) = row(number);
        loser.delete(table, &key).expect("deletes");
        loser.delete(by_k, &entry(number % 1000 + 1000, key)).expect("deletes");
        loser.delete(by_note, &note).expect("deletes");
        changes += 3;
    }
    for number in (1..count).step_by(15) {
        let key = (number * 2 + 1).to_be_bytes();
        loser.insert(table, &key, &[&7_u32.to_be_bytes()[..], b"new"].concat(), &mut old).expect("inserts");
        loser.insert(by_k, &entry(7, key), &[], &mut old).expect("inserts");
        loser.insert(by_note, &[&b"new"[..], &key].concat(), &[], &mut old).expect("inserts");
        changes += 3;
    }
    let pager = engine.pager();
    pager.flush_to(pager.wal_head()).expect("the disk works");
    let wal = pager.wal_head() - pager.checkpoint_lsn();
    println!("{changes} changes, {} MiB of WAL since the checkpoint", wal >> 20);
    std::process::abort();
}

/// Returns the processor seconds of this process, where the system tells.
fn busy() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    // In ticks of 10 ms, as on every Linux of today.
    (ticks(11) + ticks(12)) / 100.0
}

/// Returns a line of a file of /proc/self, in MiB; 0 where there is none.
fn proc_mib(file: &str, name: &str, unit: u64) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    (line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) * unit) >> 20
}

fn open(folder: &Path, pool_mib: u64) -> ! {
    let folder = RealFolder::open(folder, false).expect("the folder");
    let started = Instant::now();
    let (redone, told) = (Cell::new(Duration::ZERO), Cell::new((Duration::ZERO, 0)));
    let is_verbose = std::env::args().any(|argument| argument == "--progress");
    let engine = Engine::open_with(options(pool_mib), folder, Arc::new(RealClock::new()), &|done| {
        if let Recovering::Redo(done) = done {
            redone.set(started.elapsed());
            let (at, lsn) = told.get();
            if is_verbose && redone.get() - at > Duration::from_secs(1) {
                let speed =
                    (done.to - lsn.max(done.from)) as f64 / (redone.get() - at).as_secs_f64() / f64::from(1 << 20);
                println!("  {:5.1} s: {speed:.1} MiB/s", redone.get().as_secs_f64());
                told.set((redone.get(), done.to));
            }
        }
    })
    .expect("opens");
    let (took, opened) = (started.elapsed(), engine.opened());
    println!(
        "open {:.2} s, of it redo {:.2} s; {:.2} s on the processors; {} MiB of WAL, {} records, {} applied; {} MiB read, {} MiB written; peak {} MiB",
        took.as_secs_f64(),
        redone.get().as_secs_f64(),
        busy(),
        (opened.pager.to - opened.pager.from) >> 20,
        opened.pager.records,
        opened.pager.applied,
        proc_mib("io", "read_bytes", 1),
        proc_mib("io", "write_bytes", 1),
        proc_mib("status", "VmHWM", 1024),
    );
    // As a crash: the folder could be opened again.
    std::process::abort();
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = arguments[1..].iter().map(String::as_str).filter(|word| !word.starts_with("--")).collect();
    let number = |word: &str| word.parse().expect("a number");
    match words[..] {
        ["make", folder, rows, pool] => make(Path::new(folder), number(rows) as u32, number(pool)),
        ["open", folder, pool] => open(Path::new(folder), number(pool)),
        _ => {}
    }
    let is_large = arguments.iter().any(|argument| argument == "--bench");
    let (rows, pool) = if is_large { ("1700000", "74") } else { ("2000", "2") };
    let folder: PathBuf = std::env::temp_dir().join(format!("beluga-recovery-{}", std::process::id()));
    let itself = std::env::current_exe().expect("this program");
    let run = |words: &[&str]| {
        let mut command = Command::new(&itself);
        let output = command.arg(words[0]).arg(&folder).args(&words[1..]).output().expect("a process");
        let text = String::from_utf8_lossy(&output.stdout);
        print!("{text}");
        assert!(!text.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run(&["make", rows, pool]);
    run(&["open", pool]);
    std::fs::remove_dir_all(folder).expect("removes what it made");
}
