#![forbid(unsafe_code)]
mod cases;
mod control;
mod load;
mod machine;
mod measure;
mod probe;
mod process;
mod server;

use std::time::Duration;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let threads = args[1].parse().unwrap();
    let rounds = args[2].parse().unwrap();
    let folder = server::WorkFolder::create(std::path::Path::new("target")).unwrap();
    let place = server::Place { beluga: "target/release/beluga".into(), redis: "redis-server".into(), folder: folder.path().into() };
    let effort = cases::Effort { rounds, threads, turn: Duration::from_secs(3), ..cases::Effort::FULL };
    let sides = [server::Side::RedisAlways, server::Side::RedisEverysec];
    let p = probe::ProbeFile::create(&place.folder, 256 << 20).unwrap();
    println!("dsync {:?} seq {:.0} MB/s rand128 {:.0}", p.durable_write(Duration::from_secs(1)).unwrap(), p.sequential_write(Duration::from_secs(1)).unwrap()/1e6, p.random_read(128, Duration::from_secs(1)).unwrap());
    for case in cases::ALL {
        let arena = cases::Arena::open(&sides, &place, "base", &server::Launch::default()).unwrap();
        if case.name.starts_with("GET") { arena.fill(|s| case.shape(s, &effort)).unwrap(); }
        let row = arena.rounds(effort.rounds, |s| case.shape(s, &effort)).unwrap();
        for (side, f) in row {
            println!("| {} | {} | {:.0} | {:.2} | {:.3} | {:.3} | {:.3} | {:.2} | {:.2} | {:.2} | {:.2} | {:.0} | {:.1} | {} |", case.name, side.name(), f.operations_per_second, f.server_cpu_us, f.p50_ms, f.p99_ms, f.p999_ms, f.client_cpu_us, f.server_cores, f.client_cores, f.other_cores, f.written_bytes, f.megabytes_per_second, f.errors);
        }
    }
}
