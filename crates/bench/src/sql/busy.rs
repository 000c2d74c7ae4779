//! Programs that compute beside a measurement, as other work on the machine does.

use std::io;
use std::process::{Child, Command, Stdio};

/// Shells in endless loops, which end when this is dropped.
pub struct BusyPrograms(Vec<Child>);

impl BusyPrograms {
    pub fn start(count: usize) -> io::Result<BusyPrograms> {
        let mut programs = BusyPrograms(Vec::new());
        for _ in 0..count {
            // They end with this process too: a killed measurement leaves none behind.
            let text = format!(
                "while kill -0 {} 2>/dev/null; do i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; done",
                std::process::id()
            );
            let program = Command::new("sh").args(["-c", &text]).stdin(Stdio::null()).spawn();
            programs.0.push(program?);
        }
        Ok(programs)
    }
}

impl Drop for BusyPrograms {
    fn drop(&mut self) {
        for program in &mut self.0 {
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}
