//! Answers `+PONG` to every request line. It measures the cost of the pool itself, the limit for every door.
//! `cargo run --release -p reactor --example ping -- 7000`, then `redis-benchmark -p 7000 -t ping_inline -c 128`.

use std::sync::Arc;

use reactor::{Connection, Door, Flow, Io, ListenOptions, Pool, Settings};
use stdx::watermark::Watermark;

struct Ping;

impl Door for Ping {
    type Session = ();

    fn open(&self, _: &Arc<Connection>) -> Result<(), Vec<u8>> {
        Ok(())
    }

    fn serve(&self, (): &mut (), io: &mut Io<'_>) -> Flow {
        let input = io.input();
        let mut consumed = 0;
        // The request is `PING` inline or `*1 $4 PING`; the line that names the command is answered.
        while let Some(end) = input[consumed..].iter().position(|byte| *byte == b'\n') {
            let line = &input[consumed..consumed + end];
            if line.starts_with(b"PING") || line.starts_with(b"ping") {
                io.out().extend_from_slice(b"+PONG\r\n");
            } else if line.starts_with(b"CONFIG") {
                // redis-benchmark requests settings first and continues after an error.
                io.out().extend_from_slice(b"-ERR no settings here\r\n");
            }
            consumed += end + 1;
        }
        io.consume(consumed);
        Flow::Continue
    }

    fn close(&self, (): ()) {}
}

fn main() {
    let port: u16 = std::env::args().nth(1).and_then(|port| port.parse().ok()).unwrap_or(7000);
    let pool = Pool::start(&Settings::default(), Arc::new(Watermark::new(0)), &mut |_| None).expect("the pool starts");
    let address = ([127, 0, 0, 1], port).into();
    let listener = pool.listen(address, Arc::new(Ping), ListenOptions::default()).expect("the port is free");
    println!("answering on {}, until input ends", listener.local_addr);
    let _ = std::io::stdin().read_line(&mut String::new());
    pool.stop();
}
